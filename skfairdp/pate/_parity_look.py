"""A look at the private rows for parity: how often each group would be given each class, at every level of a student.

Rows sampled from released tables have what every column has in common with group and label, and little of what columns
have in common with each other in a group. So a student that is fair on them need not be as fair on the private rows.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfairdp.fairness import largest_disparity
from skfairdp.pate._soft_label_student import LEVELS, SoftLabelStudent
from skfairdp.privacy import DpEvent, GaussianMechanism, NeighboringRelation, NoiseSource

__all__ = ["LOOK_SHARE", "ParityLook"]

#: Of the squared cost that votes have: enough for gaps to a hundredth at 30,000 rows and ε = 1.
LOOK_SHARE = 0.1
_GRAIN = 10**8  # shares as whole numbers


@dataclass(frozen=True)
class ParityLook:
    """Noisy counts of the answers to the private rows by group and class, at all levels of a student together.

    A replaced row takes one count of each level away and adds one to another.

    Parameters
    ----------
    mu : float
        What they cost.
    n_groups, n_classes : int
    """

    mu: float
    n_groups: int
    n_classes: int

    @property
    def mechanism(self) -> GaussianMechanism:
        """For the counts of all levels there may be."""
        sensitivity = math.sqrt(2.0 * len(LEVELS))
        relation = NeighboringRelation.REPLACE_ONE
        return GaussianMechanism(sensitivity / self.mu, sensitivity=sensitivity, relation=relation)

    @property
    def event(self) -> DpEvent:
        """One release."""
        return self.mechanism.event

    def taken(
        self, student: Any, X: NDArray[np.float64], groups: NDArray[np.int64], sampled: Any, noise: NoiseSource
    ) -> Any:
        """The student with the gaps of its levels corrected by noisy counts of its answers to private rows.

        Parameters
        ----------
        student : SoftLabelStudent
            Released already. Another kind has no levels, and comes back as it is.
        X, groups : ndarray
            Private.
        sampled : PublicRows
            Rows that the student was held to parity on, with their groups.
        noise : NoiseSource
        """
        if not isinstance(student, SoftLabelStudent):
            return student
        answers = student.answers_at_levels(X)
        counts = np.stack([self._counts(groups, codes) for codes in answers])
        noisy = self.mechanism.release(counts.ravel(), noise).reshape(counts.shape)
        # Released values only from here on.
        expected = np.stack([self._counts(sampled.groups, codes) for codes in student.answers_at_levels(sampled.X)])
        tables = corrected(noisy, expected.astype(float), self.mechanism.sigma)
        return student.with_gaps([largest_disparity(table, student.disparity) for table in tables])

    def _counts(self, groups: NDArray[np.int64], codes: NDArray[np.int64]) -> NDArray[np.int64]:
        cells = np.bincount(groups * self.n_classes + codes, minlength=self.n_groups * self.n_classes)
        return cells.reshape(self.n_groups, self.n_classes)


def corrected(noisy: NDArray[np.float64], expected: NDArray[np.float64], sigma: float) -> NDArray[np.int64]:
    """Counts by level, group and class whose rates are those expected, moved towards noisy ones.

    What sets the two apart changes little from level to level: a straight line for each group and class. The lines of a
    group are drawn towards 0 as far as their noise explains them.

    Parameters
    ----------
    noisy, expected : ndarray of shape (n_levels, n_groups, n_classes)
    sigma : float
        Noise on each noisy count.
    """
    n_levels, _, n_classes = noisy.shape
    sizes = np.maximum(noisy.sum(axis=2).mean(axis=0), 1.0)  # of the groups
    rates = expected / np.maximum(expected.sum(axis=2, keepdims=True), 1.0)
    apart = noisy / sizes[None, :, None] - rates
    lines, _ = np.linalg.qr(np.column_stack([np.ones(n_levels), np.arange(n_levels)])[:, : min(n_levels, 2)])
    found = np.einsum("lp,lgk->pgk", lines, apart)
    spread = found.shape[0] * n_classes * (sigma / sizes) ** 2
    trusted = np.maximum(0.0, 1.0 - spread / np.maximum((found**2).sum(axis=(0, 2)), 1e-300))
    rates = np.clip(rates + np.einsum("lp,pgk->lgk", lines, found) * trusted[None, :, None], 0.0, 1.0)
    rates /= np.maximum(rates.sum(axis=2, keepdims=True), 1e-300)
    return np.rint(rates * (sizes / sizes.sum())[None, :, None] * _GRAIN).astype(np.int64)
