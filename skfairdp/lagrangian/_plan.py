"""What PF-LD releases of the private groups: counts, primal terms and violations, each with its sensitivity and noise.

What is protected is the *group of one row*; features, labels and the number of rows are public, and so is everything
computed from them and from earlier releases, sensitivities included. Hence every noise scale here is the same on two
neighbours, who differ in the group of one row.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from skfairdp._judge import Judge, Judgement
from skfairdp.fairness import FairnessConstraints
from skfairdp.privacy import (
    DpEvent,
    GaussianDpEvent,
    GaussianMechanism,
    NeighboringRelation,
    NoiseSource,
    NonPrivateDpEvent,
    ReplaceSampledGaussian,
    calibrate_noise,
    compose,
    gdp_mu,
    repeat,
)

Array = NDArray[np.float64]
_RELATION = NeighboringRelation.REPLACE_ATTRIBUTE
_ROWS = 8_192  # looked at together
_UP = 1 + 1e-9  # rounding in the sums of a plan or a release must not end above what is declared


@dataclass(frozen=True)
class PFLDPlan:
    """The releases of a fit, planned before a group is read."""

    n_groups: int
    primal_steps: int
    dual_steps: int
    sigma_count: float
    sigma_primal: float
    sigma_dual: float
    sampling_probability: float = 1.0
    moments: bool = False
    judge: Judge | None = None

    def __post_init__(self) -> None:
        if self.n_groups < 2:
            raise ValueError(f"n_groups of PFLDPlan must be at least 2. Got {self.n_groups!r} instead.")
        if not 0 < self.sampling_probability <= 1:
            raise ValueError(
                f"sampling_probability of PFLDPlan must lie in (0, 1]. Got {self.sampling_probability!r} instead."
            )
        sigmas = (self.sigma_count, self.sigma_primal, self.sigma_dual)
        if not all(sigma >= 0 and math.isfinite(sigma) for sigma in sigmas):
            raise ValueError(f"The noises of PFLDPlan must be finite and at least 0. Got {sigmas!r} instead.")
        if any(sigma == 0 for sigma in sigmas) and any(sigmas):
            raise ValueError(f"Either all noises of PFLDPlan are 0 (no privacy) or none. Got {sigmas!r} instead.")

    @classmethod
    def calibrated(
        cls,
        *,
        epsilon: float,
        delta: float,
        n_groups: int,
        primal_steps: int,
        dual_steps: int,
        budget_split: tuple[float, float, float] = (0.02, 0.78, 0.20),
        sampling_probability: float = 1.0,
        moments: bool = False,
        judge: Judge | None = None,
    ) -> "PFLDPlan":
        """The plan whose certified ε is at most ``epsilon``.

        ``budget_split`` are the shares of counts, primal and dual releases in what the judge leaves of the squared
        Gaussian budget μ². With Poisson sampling the first and the last are spent so, and primal releases get all that
        is left.
        """
        mu = gdp_mu(epsilon, delta)
        mu = mu if judge is None else math.sqrt(mu**2 - judge.squared_cost)
        counts, primal, dual = (share / sum(budget_split) for share in budget_split)
        sigma_count, sigma_primal, sigma_dual = (
            _UP / (mu * math.sqrt(counts)),
            _UP * math.sqrt(primal_steps / primal) / mu,
            _UP * math.sqrt(dual_steps / dual) / mu,
        )
        sigmas = sigma_count, sigma_primal, sigma_dual
        made = cls(n_groups, primal_steps, dual_steps, *sigmas, sampling_probability, moments, judge)
        if sampling_probability < 1:
            sigma = calibrate_noise(
                lambda sigma: replace(made, sigma_primal=sigma).event,
                epsilon,
                delta,
                guess=max(0.4, 2 * sampling_probability * sigma_primal),
            )
            return replace(made, sigma_primal=sigma)
        return made

    @classmethod
    def without_privacy(
        cls,
        *,
        n_groups: int,
        primal_steps: int,
        dual_steps: int,
        sampling_probability: float = 1.0,
        moments: bool = False,
        judge: Judge | None = None,
    ) -> "PFLDPlan":
        """The same releases without noise (F-LD)."""
        return cls(n_groups, primal_steps, dual_steps, 0.0, 0.0, 0.0, sampling_probability, moments, judge)

    @property
    def is_private(self) -> bool:
        """Whether any noise is added."""
        return self.sigma_count > 0

    @property
    def relation(self) -> NeighboringRelation:
        """Neighbours differ in the group of one row."""
        return _RELATION

    @property
    def releases(self) -> tuple[str, ...]:
        """The kinds of release, in words, for the ledger."""
        primal = "noisy moments by group" if self.moments else f"{self.primal_steps} noisy gradients"
        of_answers = () if self.judge is None else self.judge.releases
        return "noisy sizes of the groups", primal, f"{self.dual_steps} noisy tables of violations", *of_answers

    @property
    def event(self) -> DpEvent:
        """All releases together; neighbours change the group of one row."""
        if not self.is_private:
            return NonPrivateDpEvent()
        primal: DpEvent = GaussianDpEvent(self.sigma_primal)
        if self.sampling_probability < 1:
            primal = ReplaceSampledGaussian(self.sampling_probability, self.sigma_primal)
        return compose(
            GaussianDpEvent(self.sigma_count),
            repeat(primal, self.primal_steps),
            repeat(GaussianDpEvent(self.sigma_dual), self.dual_steps),
            *(() if self.judge is None else [self.judge.event]),
        )

    # ------------------------------------------------------------------ noise

    @property
    def _moved(self) -> float:
        """How far the released indicators of a row move, in L2, when it changes its group."""
        return 1.0 if self.n_groups == 2 else math.sqrt(2.0)

    @property
    def count_noise(self) -> float:
        """Standard deviation of the noise on each count, in rows."""
        return self.sigma_count * self._moved

    def primal_noise(self, radius: float) -> float:
        """Standard deviation of the noise on a gradient to which each row contributes at most ``radius``, centred."""
        if self.sampling_probability < 1:
            return self.sigma_primal * radius / self.sampling_probability
        return self.sigma_primal * 2 * radius

    def moment_noise(self, features: Array) -> float:
        """Standard deviation of the noise on each moment of these features."""
        return self.sigma_primal * self._moved * _longest_row(features)

    def dual_noise(self, violations: Array) -> float:
        """Standard deviation of the noise on each sum of these violations."""
        return self.sigma_dual * self._moved * _longest_row(violations)

    def largest_dual_noise(self, n_constraints: int) -> float:
        """The same for any violations between -1 and 1 of so many constraints at once."""
        return self.sigma_dual * self._moved * math.sqrt(n_constraints)

    # ------------------------------------------------------------------ releases

    def release_counts(
        self, groups: NDArray[np.int64], cells: NDArray[np.int64], n_cells: int, source: NoiseSource
    ) -> Array:
        """Noisy sizes of the groups in every cell, shape (n_groups, n_cells), kept away from 0.

        The sizes of the cells are public. No size is let below two standard deviations of its noise, nor below half an
        equal share: what divides by it stays bounded however small the group.
        """
        member = np.zeros((len(cells), n_cells))
        member[np.arange(len(cells)), cells] = 1.0
        sizes = member.sum(0)
        counts = self._release(member, groups, sizes, self.count_noise, self._moved, source)
        least = np.minimum(max(1.0, 2 * self.count_noise), np.maximum(sizes, 1.0) / (2 * self.n_groups))
        return np.clip(counts, least, np.maximum(sizes - (self.n_groups - 1) * least, least))

    def release_gradient(self, gradient: Array, radius: float, source: NoiseSource) -> Array:
        """A noisy copy of a sum to which each row contributes at most ``radius``, centred; no noise where that is 0."""
        noise = self.primal_noise(radius)
        if noise == 0:
            return gradient
        sampled = self.sampling_probability  # 1 for all rows; the sum has been divided by it
        return GaussianMechanism(noise, sensitivity=2 * radius / sampled, relation=_RELATION).release(gradient, source)

    def release_moments(self, features: Array, groups: NDArray[np.int64], source: NoiseSource) -> Array:
        """Noisy sums of public features, which are rounded in their place, over each group: (n_groups, n_features)."""
        features = _exactly_summable(features)
        moved = self._moved * _longest_row(features)
        return self._release(features, groups, features.sum(0), self.moment_noise(features), moved, source)

    def release_violations(
        self, values: Array, cells: NDArray[np.int64], n_cells: int, groups: NDArray[np.int64], source: NoiseSource
    ) -> Array:
        """Noisy sums of what each row says beyond the mean of its cell."""
        k = values.shape[1]
        flat, bounds = _centred(values, cells, n_cells)
        moved = self._moved * _longest_row(flat)
        released = self._release(flat, groups, np.zeros(flat.shape[1]), self.dual_noise(flat), moved, source)
        used = np.zeros((n_cells, k), dtype=bool)
        used[cells, np.arange(k)] = True
        return released.reshape(-1, n_cells, k) * bounds * used

    def release_answers(
        self, groups: NDArray[np.int64], y: NDArray[np.int64], answers: NDArray[np.int64], source: NoiseSource
    ) -> Judgement:
        """What the network that is returned does to the groups, by a noisy table of its answers."""
        assert self.judge is not None
        counts = self.judge.counts(groups, y, answers)
        if not self.is_private:
            return Judgement(self.judge.constraints, counts.astype(np.float64))
        return self.judge.release(counts, source)

    def _release(
        self, values: Array, groups: NDArray[np.int64], total: Array, noise: float, moved: float, source: NoiseSource
    ) -> Array:
        """Noisy sums of rows over each group, made to add up to their public total.

        ``moved`` is how far the sums can move, in L2, when a row changes its group.
        """
        released = range(1, 2) if self.n_groups == 2 else range(self.n_groups)
        sums = np.stack([_sum_of(values, groups, a) for a in released])
        if noise > 0:
            sums = GaussianMechanism(noise, sensitivity=moved, relation=_RELATION).release(sums, source)
        if self.n_groups == 2:
            return np.concatenate([total - sums, sums])
        return sums + (total - sums.sum(0)) / self.n_groups


def release_asked(
    plan: PFLDPlan, constraints: FairnessConstraints, groups: NDArray[np.int64], source: NoiseSource, scores: Array
) -> Array:
    """The violations as multipliers ask for them: those of each score once, whatever is asked of it."""
    first, place = constraints.unique_columns
    if not len(first):  # all is asked of all rows together
        return np.zeros((plan.n_groups, constraints.n_cells, len(place)))
    cells = constraints.cells
    if len(first) < len(place):
        scores, cells = scores[:, first], cells[:, first]
    return plan.release_violations(scores, cells, constraints.n_cells, groups, source)[..., place]


def _centred(values: Array, cells: NDArray[np.int64], n_cells: int) -> tuple[Array, Array]:
    """What each row says beyond the mean of its cell, (n_rows, n_cells · n_constraints), over its maximum."""
    n, k = values.shape
    violations = np.zeros((n, n_cells, k))
    rows = np.arange(n)
    bounds = np.zeros(k)
    for c in range(k):
        sizes = np.bincount(cells[:, c], minlength=n_cells)
        means = np.bincount(cells[:, c], weights=values[:, c], minlength=n_cells) / np.maximum(sizes, 1)
        centred = values[:, c] - means[cells[:, c]]
        bounds[c] = np.abs(centred).max(initial=0.0)
        if bounds[c] > 0:  # constraints of small range must not drown in the noise of others
            violations[rows, cells[:, c], c] = centred / bounds[c]
    return _exactly_summable(violations.reshape(n, -1)), bounds


def _exactly_summable(values: Array) -> Array:
    """Public values, in their place, as multiples of a public power of two: any sum of rows is exact in any order.

    Every partial sum is then a multiple of that power, below 2^53 times it. What a row moves follows from the rounded.
    """
    largest = max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))
    if largest == 0 or not math.isfinite(largest):
        return values
    step = math.ldexp(1.0, max(math.frexp(largest)[1] + math.ceil(math.log2(len(values) + 1)) - 52, -1074))
    values /= step
    np.rint(values, out=values)
    values *= step
    return values


def _sum_of(values: Array, groups: NDArray[np.int64], group: int) -> Array:
    """Over one group, some rows at a time: the same bits, for such sums are exact in any order."""
    blocks = (slice(start, start + _ROWS) for start in range(0, len(values), _ROWS))
    parts = [values[rows][groups[rows] == group].sum(0) for rows in blocks]
    return np.asarray(np.sum(parts, axis=0))


def _longest_row(values: Array) -> float:
    parts = (values[start : start + _ROWS] for start in range(0, len(values), _ROWS))
    longest = np.array([np.square(part).sum(1).max() for part in parts])
    return _UP * math.sqrt(float(longest.max(initial=0.0)))
