"""A look at the private rows for parity: how often each group would be given each class, at every level of a student.

Rows sampled from released tables have what every column has in common with group and label, and little of what columns
have in common with each other in a group. So a student that is fair on them need not be as fair on the private rows.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfairdp._usefulness import CLEAR, VoteForecast
from skfairdp.fairness import tally
from skfairdp.pate._soft_label_student import LEVELS, SoftLabelStudent
from skfairdp.privacy import DpEvent, GaussianMechanism, NeighboringRelation, NoiseSource

#: Least and most of the squared cost that votes have.
_SHARES = 0.1, 0.5
_AT_ONCE = 2**16  # rows that answers are asked for
#: How far rates of sampled rows are from those of private ones, in one group: .02 to .08 on made-up and public tables
#: whose columns hang together otherwise in a small group (tests/pate/test_parity_look.py).
APART = 0.05


def share_of_look(forecast: VoteForecast) -> float:
    """What a look gets of the squared cost that votes have: a function of public numbers.

    Half of it, as long as that leaves the votes with half of the noise at which what is learned from them is still
    clear: a student that is right a little more often is of no use where nobody knows how fair it is. Rates of a group
    of 1,000 among 30,000 rows are then known to about .01 at ε = 1.
    """
    least, most = _SHARES
    return min(max(1.0 - (2.0 * forecast.noise / CLEAR) ** 2, least), most)


@dataclass(frozen=True)
class NoisyParityEstimate:
    """Noisy counts of the answers to the private rows by group and class, at all levels of a student together.

    A replaced row takes one count of each level away and adds one to another.
    """

    mu: float
    n_groups: int
    n_classes: int
    relation: NeighboringRelation = NeighboringRelation.REPLACE_ONE

    @property
    def mechanism(self) -> GaussianMechanism:
        """For the counts of all levels there may be."""
        sensitivity = math.sqrt(2.0 * len(LEVELS))
        return GaussianMechanism(sensitivity / self.mu, sensitivity=sensitivity, relation=self.relation)

    @property
    def event(self) -> DpEvent:
        """One release."""
        return self.mechanism.event

    def release(
        self, student: Any, X: NDArray[np.float64], groups: NDArray[np.int64], asked: Any, noise: NoiseSource
    ) -> Any:
        """Release counts of the student's answers to private rows; return it with the gaps of its levels corrected."""
        if not isinstance(student, SoftLabelStudent):
            return student
        some = (slice(start, start + _AT_ONCE) for start in range(0, len(X), _AT_ONCE))
        answers = ((groups[rows], student.answers_at_levels(asked.limited(X[rows]))) for rows in some)
        counts = np.sum([[self._counts(of, codes) for codes in answered] for of, answered in answers], axis=0)
        noisy = self.mechanism.release(counts.ravel(), noise).reshape(counts.shape)
        # Released values only from here on.
        sampled = asked.public
        expected = np.stack([self._counts(sampled.groups, codes) for codes in student.answers_at_levels(sampled.X)])
        rates, errors, shares = corrected(noisy, expected.astype(float), self.mechanism.sigma)
        weights = comparisons(shares, student.disparity)
        gaps = [likely_gap(*level, weights) for level in zip(rates, errors, strict=True)]
        return student.with_gaps(gaps, noisy, self.mechanism.sigma)

    def _counts(self, groups: NDArray[np.int64], codes: NDArray[np.int64]) -> NDArray[np.int64]:
        cells = np.bincount(groups * self.n_classes + codes, minlength=self.n_groups * self.n_classes)
        return cells.reshape(self.n_groups, self.n_classes)


def corrected(
    noisy: NDArray[np.float64], expected: NDArray[np.float64], sigma: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Rates by level, group and class that both noisy and sampled counts make likely, their errors, and group sizes.

    What sets the two apart changes little from level to level: a straight line for each group and class. Noisy rates
    are right on average, sampled ones off by about ``APART``: each line counts as far as its noise is smaller than
    that, by the inverse of the two variances.
    """
    n_levels, _, n_classes = noisy.shape
    totals = noisy.sum(axis=2, keepdims=True)
    sizes = np.maximum(totals.mean(axis=0, keepdims=True), 1.0)  # of the groups, the same at all levels
    rates = expected / np.maximum(expected.sum(axis=2, keepdims=True), 1.0)
    apart = (noisy + (sizes - totals) / n_classes) / sizes - rates
    lines, _ = np.linalg.qr(np.column_stack([np.ones(n_levels), np.arange(n_levels)])[:, : min(n_levels, 2)])
    found = np.einsum("lp,lgk->pgk", lines, apart)
    # Noise on the mean of a line is that of a quotient, on its slope that of a count whose total is known.
    mean = np.square(1 - rates.mean(axis=0)) + (n_classes - 1) * np.square(rates.mean(axis=0))
    noise = np.stack([mean, np.full(mean.shape, 1 - 1 / n_classes)])[: len(found)] * np.square(sigma / sizes)
    before = np.square(APART / np.abs(lines).max(axis=0))[:, None, None]  # both parts reach so far at the ends
    trusted = before / (before + noise)
    rates = np.clip(rates + np.einsum("lp,pgk->lgk", lines, trusted * found), 0.0, 1.0)
    rates /= np.maximum(rates.sum(axis=2, keepdims=True), 1e-300)
    errors = np.sqrt(np.einsum("lp,pgk->lgk", np.square(lines), before * (1 - trusted)))
    return rates, errors, (sizes / sizes.sum())[0, :, 0]


def shrink_gaps(student: Any, public: Any) -> Any:
    """The student, with its level chosen by what its gaps on so few public rows leave likely on others.

    Of a group of 90 rows a rate of 7 % is six rows, and the first of 21 levels on which they happen to agree with the
    other groups is no parity.
    """
    if not isinstance(student, SoftLabelStudent):
        return student
    shape, likely = (public.n_groups, len(student.classes_)), []
    sizes = np.bincount(public.groups, minlength=public.n_groups)
    weights = comparisons(sizes / sizes.sum(), student.disparity)
    for codes in student.answers_at_levels(public.X):
        counts = tally(public.groups, codes, shape) + 1 / shape[1]  # nothing is known of a group without rows
        rates = counts / counts.sum(axis=1, keepdims=True)
        errors = np.sqrt(rates * (1 - rates) / counts.sum(axis=1, keepdims=True))
        likely.append(likely_gap(rates, errors, weights))
    return student.with_upper_gaps(likely)


def comparisons(shares: NDArray[np.float64], disparity: str) -> NDArray[np.float64]:
    """What :func:`~skfairdp.fairness.disparities` compares: weights of the groups' rates, one line a comparison."""
    alone = np.eye(len(shares))
    if disparity == "between":
        return (alone[:, None] - alone[None]).reshape(-1, len(shares))
    if disparity == "overall":
        return alone - shares
    others = (1 - alone) * shares
    return alone - others / np.maximum(others.sum(axis=1, keepdims=True), 1e-300)


def likely_gap(rates: NDArray[np.float64], errors: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    """The largest root mean square of a disparity, whose rates are known up to errors.

    Without it the level of several whose noise happens to hide its gap would be taken.
    """
    unknown = np.square(weights) @ np.square(errors)
    return float(min(np.sqrt(np.square(np.maximum(weights @ rates, 0.0)) + unknown).max(initial=0.0), 1.0))
