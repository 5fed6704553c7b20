"""Mistakes in the noise: what it is added to, how large it is, where it comes from."""

import dataclasses
import math

import numpy as np

from skfairdp.pate import ConfidentVoting, GNMaxVoting, SoftVoting
from skfairdp.privacy import GaussianMechanism, LaplaceCounts, NoiseSource, NoisyVotes
from tests._tools.inside import PFLDPlan, ReleasedVotes
from tests.mutants.harness import draws_of, mutant, replace_draws

VOTINGS = (SoftVoting, GNMaxVoting, ConfidentVoting)


@mutant
def ten_to_the_delta_in_the_noise_scale(patch):
    """Found: ``10 ^ delta`` (an exclusive or) and ``10 ** delta`` where δ belongs, so that the noise ignores δ.

    Right: whoever adds the noise also states the event, from one number.
    """

    def draw(self, shape, source):
        return math.sqrt(2 * math.log(1.25 * 10**1e-5)) * source.normal(shape)

    replace_draws(patch, draw)


@mutant
def noise_on_labels_instead_of_votes(patch):
    """Found: teachers' votes aggregated without noise, which is then added to the student's labels.

    Right: only noisy aggregates leave the private side.
    """

    def release(self, votes, plan, noise, **kwargs):
        wobble = np.rint(0.3 * noise.normal(len(votes))).astype(np.int64)
        return ReleasedVotes((votes.argmax(axis=1) + wobble) % votes.shape[1], None)

    for voting in VOTINGS:
        patch.setattr(voting, "release", release)


@mutant
def scale_for_its_inverse(patch):
    """Found: one parameter is the scale of the noise in the sampler and the inverse scale in the accountant.

    Right: the empirical scale is the accounted one, which a two-sided test shows.
    """

    def draw(self, shape, source):
        return source.normal(shape) / self.sigma

    replace_draws(patch, draw)


@mutant
def one_noise_vector_for_all_queries(patch):
    """Found: a single vector of noise broadcast over the queries, so that differences of answers are exact.

    Right: noise of its own for every query.
    """
    original, kept = draws_of, {}

    def draw(self, shape, source):
        if isinstance(self, GaussianMechanism):
            return np.broadcast_to(original(self, (1, *shape[1:]), source), shape).copy()
        key = type(self), self.sigma, shape
        if key not in kept:
            kept[key] = original(self, shape, source)
        return kept[key]

    replace_draws(patch, draw)


@mutant
def generator_seeded_at_import(patch):
    """Found: a module-level generator seeded with 0 at import supplies all noise.

    Right: noise from the operating system's entropy, always.
    """
    generator = np.random.default_rng(0)
    patch.setattr(NoiseSource, "_words", lambda self, n: generator.integers(0, 2**64, size=n, dtype=np.uint64))
    patch.setattr(NoiseSource, "_below", lambda self, n: int(generator.integers(n)))


@mutant
def noise_from_the_global_generator(patch):
    """The same with numpy's global generator: whoever seeds it, as every tutorial does, fixes the noise."""

    def words(self, n):
        return np.random.randint(0, 2**63, size=n).astype(np.uint64)  # noqa: NPY002

    patch.setattr(NoiseSource, "_words", words)


@mutant
def noise_scale_from_private_counts(patch):
    """Found: the noise is scaled by the size of the private groups, or of the majority.

    Right: the scale is a function of public values only.
    """

    def scaled(release):
        def planted(self, votes, plan, noise, **kwargs):
            factor = 0.5 + votes[:, 1].sum() / votes.sum()
            changes = {
                name: dataclasses.replace(mechanism, sigma=factor * mechanism.sigma)
                for name in ("histogram", "maximum", "bit")
                if (mechanism := getattr(plan, name)) is not None
            }
            return release(self, votes, dataclasses.replace(plan, **changes), noise, **kwargs)

        return planted

    for voting in VOTINGS:
        patch.setattr(voting, "release", scaled(voting.release))


@mutant
def sensitivity_one_for_a_histogram(patch):
    """Found: sensitivity 1 for a whole vote histogram, of which one changed vote moves two entries.

    Right: √2 for three or more classes.
    """
    patch.setattr(NoisyVotes, "sensitivity", 1.0)


@mutant
def sensitivity_one_for_counts_of_rows(patch):
    """Planted: a pure ε for one count, where a replaced record moves two. Right: 2 for three or more kinds."""
    patch.setattr(LaplaceCounts, "sensitivity", 1.0)


@mutant
def laplace_numbers_without_a_sign(patch):
    """Planted: the magnitude of Laplace noise without its sign, which excludes every lower count for certain."""
    honest = NoiseSource.floored_laplace
    patch.setattr(NoiseSource, "floored_laplace", lambda self, scale, size=1: np.abs(honest(self, scale, size)))


@mutant
def counts_rounded_before_the_noise(patch):
    """Found in an earlier state of this package: counts rounded to the grid of the result before noise is added.

    At σ >= 2048 votes the grid is wider than one vote, and a move of one vote becomes one of two. Right: round the
    result only.
    """
    exact = GaussianMechanism._rounded
    patch.setattr(
        GaussianMechanism,
        "_rounded",
        lambda self, values, source: exact(self, np.rint(values / self.grid) * self.grid, source),
    )


@mutant
def floats_published_as_they_come(patch):
    """Found in an earlier state of this package: ``value + sigma * normal`` as a float.

    Which floats can occur depends on the value, so that some releases name it. Right: rounded to a public grid.
    """
    patch.setattr(
        GaussianMechanism, "_rounded", lambda self, values, source: values + self.sigma * source.normal(values.shape)
    )


@mutant
def sizes_released_beside_the_mechanism(patch):
    """Found in an earlier state of this package: PF-LD added its noise by itself, and rounded nothing."""

    def raw(self, values, groups, total, sigma, longest, source):
        sums = values[groups == 1].sum(0, keepdims=True) + sigma * longest * source.normal((1, values.shape[1]))
        return np.concatenate([total - sums, sums])

    patch.setattr(PFLDPlan, "_release", raw)


@mutant
def tails_that_end(patch):
    """The noise ends at 9.16 standard deviations: what lies beyond excludes a neighbour for certain."""

    def truncated(self, centers, scale):
        return np.rint(centers + scale * self.normal(np.shape(centers)))

    patch.setattr(NoiseSource, "rounded_normal", truncated)
