"""Four published ensembles of discriminators, each with the accounting that holds: GS-WGAN, PATE-GAN, G-PATE, DataLens.

They reproduce papers. At a small ε they learn little, for their noise is that of single rows or bits.
"""

import math
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from skfairdp._docs import shared_docs
from skfairdp._tables import Layout
from skfairdp._typing import Floats
from skfairdp._utils._sklearn import Interval, StrOptions
from skfairdp.papers import _adversarial
from skfairdp.privacy import DpEvent, NoiseSource, NoisyThreshold, compose, repeat

_REMEMBERED = 10  # rounds of PATE-GAN: rows made long ago say little about those that the generator makes now
_THRESHOLD_SHARE = 0.2  # of G-PATE's squared cost


class PATEGANPlan(_adversarial.AdversarialPlan):
    def mechanism_at(self, scale: float) -> NoisyThreshold:
        # one bit for each generated row, whether most teachers take it for real: one record changes one vote
        n, sigma = self.backend.n_teachers, scale * self.n_answers**0.5
        return NoisyThreshold(sigma, n_teachers=n, threshold=n / 2, relation=self.layout.relation)

    @property
    def released_answers(self) -> tuple[str, ...]:
        return (f"{self.n_answers} noisy majorities of {self.backend.n_teachers} discriminators",)

    def run(self, training: Any, scale: float, noise: NoiseSource, rng: Generator) -> None:
        mechanism, asked, answers = self.mechanism_at(scale), [], []
        steps = {name: getattr(self.backend, name) for name in ("student_steps", "generator_steps")}
        for _, shown in self.rounds(training):
            asked.append(shown.detach())
            answers.append(mechanism.release_each(training.votes(shown), noise))
            training.follow_student(asked[-_REMEMBERED:], np.concatenate(answers[-_REMEMBERED:]), **steps)


@shared_docs
@dataclass(kw_only=True, eq=False, repr=False)
class PATEGANBackend(_adversarial.AdversarialBackend):
    """Generator network trained by a student of noisy votes on which rows are real (PATE-GAN).

    **Guarantee.** Differential privacy for one replaced record. All that leaves the teachers are
    ``n_steps * batch_size`` bits, "most take this generated row for real", each with Gaussian noise of its own on the
    count (sensitivity 1) and accounted exactly as a bit, whatever it says. Their number is declared; nothing depends on
    a data-dependent bound. Student and generator see generated rows and bits only.

    Jordon, Yoon & van der Schaar (2019), with fair batches of PFGuard inside the teachers. Two hundred bits at ε = 1
    need noise of about forty votes: there have to be many teachers, and there is little to learn from.

    Parameters
    ----------
    {discriminators}
    n_steps, batch_size : int, default=40, 16
        Rounds of queries, and bits in each.
    teacher_steps : int, default=2
        Steps of all teachers before each round.
    {networks_of_gan, device, verbose}
    student_steps, generator_steps : int, default=10, 10
        Steps after each round, on the bits of the last ten rounds: post-processing.

    Examples
    --------
    >>> from skfairdp.papers import PATEGANBackend
    >>> PATEGANBackend(n_steps=10)
    PATEGANBackend(n_steps=10)
    """

    n_steps: int = 40
    student_steps: int = 10
    generator_steps: int = 10

    _plan_of: ClassVar = PATEGANPlan
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **_adversarial.AdversarialBackend._parameter_constraints,
        "student_steps": [Interval(Integral, 1, None, closed="left")],
        "generator_steps": [Interval(Integral, 1, None, closed="left")],
    }


class GPATEPlan(_adversarial.AdversarialPlan):
    def mechanism_at(self, scale: float) -> _adversarial.BinnedGradients:
        votes = scale * math.sqrt(self.n_answers * self.backend.n_coordinates)
        largest, sigma = votes / math.sqrt(_THRESHOLD_SHARE), votes * math.sqrt(2 / (1 - _THRESHOLD_SHARE))
        n, relation = self.backend.n_coordinates, self.layout.relation
        return _adversarial.BinnedGradients(n, sigma_threshold=largest, sigma=sigma, relation=relation)

    @property
    def released_answers(self) -> tuple[str, ...]:
        n = self.n_answers * self.backend.n_coordinates
        return (f"{n} noisy thresholds", f"{n} noisy argmaxes over {self.backend.n_bins} bins")

    def run(self, training: Any, scale: float, noise: NoiseSource, rng: Generator) -> None:
        mechanism, backend = self.mechanism_at(scale), self.backend
        projection = rng.normal(size=(training.width, backend.n_coordinates))
        width = 4.0 / backend.n_bins
        for values, shown in self.rounds(training):
            private = np.nan_to_num(training.directions(shown).astype(np.float64))
            private /= np.maximum(np.linalg.norm(private, axis=2, keepdims=True), 1e-12)
            bins = np.clip(np.floor((private @ projection + 2.0) / width), 0, backend.n_bins - 1).astype(np.int64)
            histograms = (bins[..., None] == np.arange(backend.n_bins)).sum(axis=0)
            winners, answered = mechanism.release(histograms, noise, threshold=backend.threshold * backend.n_teachers)
            centres = np.where(answered, (winners + 0.5) * width - 2.0, 0.0)
            training.follow(values, centres @ projection.T / backend.n_coordinates)


@shared_docs
@dataclass(kw_only=True, eq=False, repr=False)
class GPATEBackend(_adversarial.AdversarialBackend):
    """Generator network trained by noisy votes on random projections of the gradient (G-PATE).

    **Guarantee.** Differential privacy for one replaced record: for each of ``n_steps * batch_size`` gradients and each
    of ``n_coordinates`` directions a noisy threshold and a noisy argmax over bins, all charged, answered or not. The
    published budgets hold only with data-dependent bounds.

    Long et al. (2021), with fair batches of PFGuard.

    Parameters
    ----------
    {discriminators}
    n_steps, batch_size : int, default=10, 16
        Steps of the generator, and rows (aggregated gradients) in each.
    {teacher_steps}
    {networks_of_gan, device, verbose}
    n_coordinates : int, default=10
        Random directions, public and fixed for the fit.
    n_bins : int, default=5
        Cells of a coordinate between −2 and 2, of gradients of norm one.
    threshold : float, default=0.4
        Share of the teachers that must agree on a bin.

    Examples
    --------
    >>> from skfairdp.papers import GPATEBackend
    >>> GPATEBackend(n_coordinates=5)
    GPATEBackend(n_coordinates=5)
    """

    n_coordinates: int = 10
    n_bins: int = 5
    threshold: float = 0.4

    _plan_of: ClassVar = GPATEPlan
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **_adversarial.AdversarialBackend._parameter_constraints,
        "n_coordinates": [Interval(Integral, 1, None, closed="left")],
        "n_bins": [Interval(Integral, 2, None, closed="left")],
        "threshold": [Interval(Real, 0, 1, closed="both")],
    }


class DataLensPlan(_adversarial.AdversarialPlan):
    def mechanism_at(self, scale: float) -> _adversarial.TopSigns:
        sigma = scale * 2 * math.sqrt(self.backend.k * self.n_answers)
        return _adversarial.TopSigns(self.backend.k, sigma, self.layout.relation)

    @property
    def released_answers(self) -> tuple[str, ...]:
        return (f"{self.n_answers} sums of top-{self.backend.k} signs",)

    def run(self, training: Any, scale: float, noise: NoiseSource, rng: Generator) -> None:
        mechanism = self.mechanism_at(scale)
        least = self.backend.min_norm * mechanism.sigma
        for values, shown in self.rounds(training):
            private = training.directions(shown)
            votes = (mechanism.votes(private[:, row]) for row in range(self.backend.batch_size))
            training.follow(values, np.stack([mechanism.release(own, noise, least=least) for own in votes]))


@shared_docs
@dataclass(kw_only=True, eq=False, repr=False)
class DataLensBackend(_adversarial.AdversarialBackend):
    """Generator network trained by noisy votes on the signs of the largest gradient coordinates (DataLens).

    **Guarantee.** Differential privacy for one replaced record: ``n_steps * batch_size`` sums of votes, each with
    sensitivity 2√k and Gaussian noise of its own. Cutting off weak votes is post-processing. No data-dependent bound is
    used: the published one is about an argmax, which this is not.

    Wang et al. (2021), with fair batches of PFGuard.

    Parameters
    ----------
    {discriminators}
    n_steps, batch_size : int, default=10, 32
        Steps of the generator, and rows (aggregated gradients) in each.
    {teacher_steps}
    {networks_of_gan, device, verbose}
    k : int, default=20
        Coordinates that a teacher votes on.
    min_norm : float, default=1.0
        Votes below this many standard deviations of the noise count as none.

    Examples
    --------
    >>> from skfairdp.papers import DataLensBackend
    >>> DataLensBackend(k=50)
    DataLensBackend(k=50)
    """

    batch_size: int = 32
    k: int = 20
    min_norm: float = 1.0

    _plan_of: ClassVar = DataLensPlan
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **_adversarial.AdversarialBackend._parameter_constraints,
        "k": [Interval(Integral, 1, None, closed="left")],
        "min_norm": [Interval(Real, 0, None, closed="left")],
    }


_COUNTS_SHARE = 0.05  # of a step's squared cost, where bounds move by noisy counts
_LARGEST = 4.0  # bound of a group, over C
_QUANTILE, _START = 0.1, 2.0  # share of gradients above Z that is steered towards, and the first Z


@dataclass(frozen=True)
class GSWGANPlan(_adversarial.AdversarialPlan):
    """In each step gradients of all discriminators or of one; where bounds move, noisy counts of long ones as well."""

    loss: ClassVar[str] = "wasserstein"

    @property
    def counted(self) -> bool:
        """Whether each step releases counts by which bounds move."""
        return bool(self.backend.clipping != "unit")

    def gradient_at(
        self, scale: float, clip: float = 1.0
    ) -> _adversarial.MeanGradient | _adversarial.SanitisedGradient:
        """The release of gradients in one step."""
        n_teachers, batch_size = self.backend.n_teachers, self.backend.batch_size
        if self.backend.discriminators == "one":
            return _adversarial.SanitisedGradient(n_teachers, batch_size, clip, scale, self.layout.relation)
        share = 1 - _COUNTS_SHARE if self.counted else 1.0
        multiplier = scale * math.sqrt(self.backend.n_steps / share)
        return _adversarial.MeanGradient(n_teachers, batch_size, clip, multiplier, self.layout.relation)

    def counts_at(self, scale: float, sizes: tuple[int, ...]) -> _adversarial.CountsOfRows:
        """The release of counts in one step, for groups of generated rows of these sizes."""
        multiplier = scale * math.sqrt(self.backend.n_steps / _COUNTS_SHARE)
        return _adversarial.CountsOfRows(sizes, multiplier, self.backend.clipping == "dpsgd_f", self.layout.relation)

    def answers_at(self, scale: float) -> DpEvent:
        step = self.gradient_at(scale).event
        if self.counted:  # both events depend on the multiplier alone, not on the sizes and bounds of a step
            step = compose(self.counts_at(scale, (self.backend.batch_size,)).event, step)
        return repeat(step, self.backend.n_steps)

    @property
    def released_answers(self) -> tuple[str, ...]:
        n_steps, n_teachers = self.backend.n_steps, self.backend.n_teachers
        if self.backend.discriminators == "one":
            return (f"{n_steps} sanitised gradients of one of {n_teachers} discriminators",)
        counts = (f"{n_steps} noisy counts of long gradients",) if self.counted else ()
        return (*counts, f"{n_steps} mean gradients of {n_teachers} discriminators")

    def run(self, training: Any, scale: float, noise: NoiseSource, rng: Generator) -> None:
        release = self._with_moving_bounds(training, scale, noise) if self.counted else None
        mechanism = self.gradient_at(scale)
        for values, shown in self.rounds(training):
            if release is not None:
                training.follow(values, release(shown))
                continue
            asked = mechanism.draw(noise) if isinstance(mechanism, _adversarial.SanitisedGradient) else None
            gradients = training.directions(shown, asked)
            # Of norm one, about as the gradient penalty makes them: clipping then takes nothing off.
            gradients = gradients / np.maximum(np.linalg.norm(gradients, axis=-1, keepdims=True), 1e-12)
            training.follow(values, mechanism.release(gradients, noise))

    def _with_moving_bounds(self, training: Any, scale: float, noise: NoiseSource) -> Any:
        """A function of the generated rows: noisy counts by which bounds move, then the mean of what they leave."""
        from skfairdp._networks import BoundsByGroup, GlobalScaling

        by_group = self.backend.clipping == "dpsgd_f"
        n_groups = self.layout.n_groups if by_group else 1
        if by_group:
            rule: Any = BoundsByGroup(n_groups, max_norm=1.0, max_ratio=_LARGEST, count_share=_COUNTS_SHARE)
        else:
            how = {"quantile": _QUANTILE, "batch_size": self.backend.n_teachers * self.backend.batch_size}
            rule = GlobalScaling(max_norm=1.0, start=_START, count_share=_COUNTS_SHARE, **how)

        def release(shown: Any) -> Floats:
            groups = training.cells(shown) // (self.layout.n_cells // n_groups)
            counts = self.counts_at(scale, tuple(np.bincount(groups, minlength=n_groups).tolist()))
            gradients = np.nan_to_num(training.directions(shown), posinf=0.0, neginf=0.0)
            norms = np.linalg.norm(gradients.astype(np.float64), axis=2)
            counted = partial(counts.release, source=noise)
            factors = rule.factors_of_arrays(norms.ravel(), np.tile(groups, self.backend.n_teachers), counted)
            return self.gradient_at(scale, rule.bound).release(gradients * factors.reshape(*norms.shape, 1), noise)

        return release


@shared_docs
@dataclass(kw_only=True, eq=False, repr=False)
class GSWGANBackend(_adversarial.AdversarialBackend):
    """Generator network trained by noisy clipped gradients of many discriminators (GS-WGAN).

    **Guarantee.** Differential privacy for one replaced record. A step is one release of a whole batch of B rows, whose
    gradients have norm C = 1.

    * ``discriminators="all"``: the mean over all of them. One record changes one of them: the mean moves by at most
      2C√B / n_teachers, a Gaussian release composed over ``n_steps``.
    * ``discriminators="one"``, as published: one of them, drawn in secret, with D = 2C√B; the draw is shared by
      all B rows. It is accounted as a replaced contribution to a sample with probability 1/n_teachers and c = D,
      composed over ``n_steps``. The published accounting counts B independent draws a step; at its setting ε is above
      300 where 10 is claimed. All discriminators train in every step, so that earlier secret draws do not show in
      what a later one answers.

    ``clipping="dpsgd_f"`` and ``"global_adapt"`` are baselines of the paper (its Table 3), with the sensitivity they
    have: the noisy counts by which bounds move are releases too, and one record moves them by every row of one
    discriminator.

    Discriminators that have to train anyway may as well answer: with 100 of them and 400 steps the mean has 5.0 times
    less noise at ε = 10 and 1.6 times less at ε = 1; with 1,000 and the published 20,000 steps, 6.6 and 1.8 times.

    Chen, Orekondy & Fritz (2020), with fair batches of PFGuard (Kim et al. 2024).

    Parameters
    ----------
    n_teachers : int, default=100
        Discriminators on disjoint parts of the rows, dealt by position. Public: a number taken from the private
        minority's size would be a release.
    sampling : {"importance", "stratified", "weights", "by_group"} or None, default=None
        How a teacher balances groups and labels: by resampling its part (SIR), by fixed numbers of each group and label
        in a batch, or by weights in its loss. None: "importance", where the generator balances at all. ``"by_group"``
        is the paper's comparison (E.5): teacher i draws rows of group i mod n_groups alone, from its own part.
    normalization : {"N1", "N2"} or None, default=None
        Of resampling probabilities: h / Σh, or h_i / (Σh − h_i), renormalised. None: "N1", where anything is balanced.
    teacher_loss : {"plain", "gold"}, default="plain"
        ``"gold"`` weighs rows inside a teacher by the ratio of densities it estimates itself.
    n_steps, batch_size : int, default=400, 32
        Steps of the generator, and rows in each.
    teacher_steps : int, default=3
        Steps of all discriminators before each release, with a gradient penalty.
    {networks_of_gan, device, verbose}
    discriminators : {"all", "one"}, default="all"
        Who answers in a step.
    clipping : {"unit", "dpsgd_f", "global_adapt"}, default="unit"
        ``"unit"``: every gradient has norm C. ``"dpsgd_f"``: a bound for each group of the generated rows, larger where
        more of its gradients exceed C (Xu, Du & Wu 2020). ``"global_adapt"``: gradients are scaled by C/Z and clipped
        above Z (Esipova et al. 2022). Both with ``discriminators="all"``.

    Examples
    --------
    >>> from skfairdp.papers import GSWGANBackend
    >>> GSWGANBackend(n_teachers=1000, n_steps=100)
    GSWGANBackend(n_steps=100, n_teachers=1000)
    """

    n_steps: int = 400
    batch_size: int = 32
    teacher_steps: int = 3
    latent: int = 8
    teacher_lr: float = 1e-3
    discriminators: str = "all"
    clipping: str = "unit"

    _plan_of: ClassVar = GSWGANPlan
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **_adversarial.AdversarialBackend._parameter_constraints,
        "discriminators": [StrOptions({"all", "one"})],
        "clipping": [StrOptions({"unit", "dpsgd_f", "global_adapt"})],
    }

    def _checked(self, layout: Layout) -> None:
        super()._checked(layout)
        if self.clipping != "unit" and self.discriminators != "all":
            raise ValueError(
                f"GSWGANBackend(clipping={self.clipping!r}) counts the gradients of all discriminators and needs "
                "discriminators='all'."
            )
        if self.clipping == "dpsgd_f" and layout.n_groups < 2:
            raise ValueError(
                "GSWGANBackend(clipping='dpsgd_f') has a bound for each group of PFGuardGenerator: pass "
                "sensitive_features to fit, or use 'global_adapt', which reads no groups."
            )
