"""Mistakes in the noise: what it is added to, how large it is, where it comes from."""

import dataclasses
import math

import numpy as np

from skfairdp.lagrangian import PFLDPlan
from skfairdp.pate import _base_pate
from skfairdp.pate._aggregate import ReleasedVotes
from skfairdp.privacy import GaussianMechanism, NoiseSource, NoisyVotes
from tests.lagrangian.test_pfld import test_published_sizes_lie_on_the_public_grid as sizes_on_the_grid
from tests.privacy.test_release_rounding import (
    test_every_release_is_a_multiple_of_a_grid_that_follows_sigma_alone as releases_on_the_grid,
)
from tests.privacy.test_release_rounding import (
    test_neighbours_have_the_same_possible_releases as possible_releases,
)
from tests.privacy.test_release_rounding import (
    test_the_tails_do_not_end as tails_go_on,
)
from tests.statistical.test_noise_scale import (
    test_every_query_gets_noise_of_its_own as noise_is_fresh,
)
from tests.statistical.test_noise_scale import (
    test_forked_processes_draw_different_noise as forks_differ,
)
from tests.statistical.test_noise_scale import (
    test_noise_added_in_a_fit_has_the_accounted_scale as scale_is_accounted,
)
from tests.statistical.test_noise_scale import (
    test_noise_is_a_function_of_operating_system_entropy_alone as noise_is_entropy,
)
from tests.statistical.test_noise_scale import (
    test_two_fits_never_share_noise_whatever_is_seeded as seeding_does_nothing,
)
from tests.statistical.test_zero_noise_differential import (
    test_every_output_is_what_its_noisy_value_says as outputs_are_noisy_values,
)
from tests.statistical.test_zero_noise_differential import (
    test_no_release_moves_further_than_its_declared_sensitivity as sensitivity_holds,
)
from tests.statistical.test_zero_noise_differential import (
    test_noise_is_added_to_counts_that_were_not_rounded_to_a_coarser_grid as counts_are_not_rounded,
)
from tests.statistical.test_zero_noise_differential import (
    test_the_scale_of_the_noise_does_not_depend_on_private_rows as scale_is_public,
)

from .harness import draws_of, killed_by, mutant, replace_draws

SOFT, SOFT_3 = "FairPATE-soft-2classes", "FairPATE-soft-3classes"
GNMAX, GNMAX_3 = "FairPATE-gnmax-2classes", "FairPATE-gnmax-3classes"
CONFIDENT = "FairPATE-confident-2classes-binary"


@mutant(2, killed_by(scale_is_accounted, name=SOFT), killed_by(scale_is_accounted, name=GNMAX))
def ten_to_the_delta_in_the_noise_scale(patch):
    """Found: ``10 ^ delta`` (an exclusive or) and ``10 ** delta`` where δ belongs, so that the noise ignores δ.

    Right: whoever adds the noise also states the event, from one number.
    """

    def draw(self, shape, source):
        return math.sqrt(2 * math.log(1.25 * 10**1e-5)) * source.normal(shape)

    replace_draws(patch, draw)


@mutant(4, killed_by(outputs_are_noisy_values, name=GNMAX), killed_by(outputs_are_noisy_values, name=GNMAX_3))
def noise_on_labels_instead_of_votes(patch):
    """Found: teachers' votes aggregated without noise, which is then added to the student's labels.

    Right: only noisy aggregates leave the private side.
    """

    def release(votes, plan, source, **kwargs):
        wobble = np.rint(0.3 * source.normal(len(votes))).astype(np.int64)
        return ReleasedVotes((votes.argmax(axis=1) + wobble) % votes.shape[1], None)

    patch.setattr(_base_pate, "release_votes", release)


@mutant(10, killed_by(scale_is_accounted, name=SOFT), killed_by(scale_is_accounted, name=CONFIDENT))
def scale_for_its_inverse(patch):
    """Found: one parameter is the scale of the noise in the sampler and the inverse scale in the accountant.

    Right: the empirical scale is the accounted one, which a two-sided test shows.
    """

    def draw(self, shape, source):
        return source.normal(shape) / self.sigma

    replace_draws(patch, draw)


@mutant(
    22,
    killed_by(noise_is_fresh, name=SOFT),
    killed_by(noise_is_fresh, name=SOFT_3),
    killed_by(noise_is_fresh, name=GNMAX),
    killed_by(noise_is_fresh, name=CONFIDENT),
)
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


@mutant(
    33,
    killed_by(noise_is_entropy, noise="gaussian"),
    killed_by(noise_is_entropy, noise="discrete_gaussian"),
    killed_by(forks_differ),
)
def generator_seeded_at_import(patch):
    """Found: a module-level generator seeded with 0 at import supplies all noise.

    Right: noise from the operating system's entropy, always.
    """
    generator = np.random.default_rng(0)
    patch.setattr(NoiseSource, "_words", lambda self, n: generator.integers(0, 2**64, size=n, dtype=np.uint64))
    patch.setattr(NoiseSource, "_below", lambda self, n: int(generator.integers(n)))


@mutant(33, killed_by(seeding_does_nothing), killed_by(noise_is_entropy, noise="gaussian"))
def noise_from_the_global_generator(patch):
    """The same with numpy's global generator: whoever seeds it, as every tutorial does, fixes the noise."""

    def words(self, n):
        return np.random.randint(0, 2**63, size=n).astype(np.uint64)  # noqa: NPY002

    patch.setattr(NoiseSource, "_words", words)


@mutant(30, killed_by(scale_is_public), killed_by(sensitivity_holds, name=SOFT))
def noise_scale_from_private_counts(patch):
    """Found: the noise is scaled by the size of the private groups, or of the majority.

    Right: the scale is a function of public values only.
    """
    release = _base_pate.release_votes

    def scaled(votes, plan, source, **kwargs):
        factor = 0.5 + votes[:, 1].sum() / votes.sum()
        changes = {
            name: dataclasses.replace(mechanism, sigma=factor * mechanism.sigma)
            for name in ("soft", "gnmax", "threshold")
            if (mechanism := getattr(plan, name)) is not None
        }
        return release(votes, dataclasses.replace(plan, **changes), source, **kwargs)

    patch.setattr(_base_pate, "release_votes", scaled)


@mutant(None, killed_by(sensitivity_holds, name=SOFT_3))
def sensitivity_one_for_a_histogram(patch):
    """Found: sensitivity 1 for a whole vote histogram, of which one changed vote moves two entries.

    Right: √2 for three or more classes.
    """
    patch.setattr(NoisyVotes, "sensitivity", 1.0)


@mutant(None, killed_by(counts_are_not_rounded))
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


@mutant(38, killed_by(releases_on_the_grid), killed_by(possible_releases), killed_by(sizes_on_the_grid))
def floats_published_as_they_come(patch):
    """Found in an earlier state of this package: ``value + sigma * normal`` as a float.

    Which floats can occur depends on the value, so that some releases name it. Right: rounded to a public grid.
    """
    patch.setattr(
        GaussianMechanism, "_rounded", lambda self, values, source: values + self.sigma * source.normal(values.shape)
    )


@mutant(38, killed_by(sizes_on_the_grid))
def sizes_released_beside_the_mechanism(patch):
    """Found in an earlier state of this package: PF-LD added its noise by itself, and rounded nothing."""

    def raw(self, values, groups, total, noise, moved, source):
        sums = values[groups == 1].sum(0, keepdims=True) + noise * source.normal((1, values.shape[1]))
        return np.concatenate([total - sums, sums])

    patch.setattr(PFLDPlan, "_release", raw)


@mutant(38, killed_by(tails_go_on))
def tails_that_end(patch):
    """The noise ends at 9.16 standard deviations: what lies beyond excludes a neighbour for certain."""

    def truncated(self, centers, scale):
        return np.rint(centers + scale * self.normal(np.shape(centers)))

    patch.setattr(NoiseSource, "rounded_normal", truncated)
