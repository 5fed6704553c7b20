"""Which of many candidates is kept: one trade-off between the gap and what the model itself expects to get right."""

import numpy as np
from numpy.typing import NDArray

from skfairdp.fairness import largest_disparity

__all__ = ["Choice", "count_table"]


def count_table(groups: NDArray[np.int64], codes: NDArray[np.int64], shape: tuple[int, int]) -> NDArray[np.int64]:
    """Return how many members of each group were given each class."""
    return np.bincount(groups * shape[1] + codes, minlength=shape[0] * shape[1]).reshape(shape)


class Choice:
    """Keeps the best set of predictions it was offered; the unchanged ones are the first.

    No candidate is kept whose gap is above that of the unchanged predictions, so the gap never rises.

    Parameters
    ----------
    groups : ndarray of int of shape (n_rows,)
    n_groups : int
    utility : ndarray of shape (n_rows, n_classes)
        What the model itself expects of each answer: the probability that it is right.
    before : ndarray of int of shape (n_rows,)
        Unchanged predictions.
    lam : float
        Expected accuracy that is given for one unit of gap; not read with ``gamma``.
    gamma : float or None
        Largest gap wanted. The candidate of largest utility that meets it is kept, or the one with the smallest gap.
    gap : {"others", "overall", "between"}
    """

    def __init__(
        self,
        groups: NDArray[np.int64],
        n_groups: int,
        utility: NDArray[np.float64],
        before: NDArray[np.int64],
        *,
        lam: float,
        gamma: float | None,
        gap: str,
    ) -> None:
        self.groups, self.utility, self.before = groups, utility, before
        self.shape = (n_groups, utility.shape[1])
        self.lam, self.gamma, self.gap = lam, gamma, gap
        self.gap_before = self.gap_of(before)
        self._best = self._rank(before, self.gap_before)

    def gap_of(self, codes: NDArray[np.int64]) -> float:
        """Return the largest disparity of these predictions."""
        return largest_disparity(count_table(self.groups, codes, self.shape), self.gap)

    def is_settled(self) -> bool:
        """Whether nothing is asked for that the best predictions so far do not give: further search would be idle."""
        if self.gamma is None:
            return self.lam == 0 or self.gap_before == 0
        return self._best[0] == 0.0

    def keep(self, codes: NDArray[np.int64], gap: float | None = None) -> bool:
        """Say whether these predictions are better than all before them; the caller then stores what made them.

        ``gap`` is their largest disparity, where the caller has it already.
        """
        gap = self.gap_of(codes) if gap is None else gap
        if gap > self.gap_before:
            return False
        rank = self._rank(codes, gap)
        if rank <= self._best:
            return False
        self._best = rank
        return True

    def _rank(self, codes: NDArray[np.int64], gap: float) -> tuple[float, float]:
        utility = float(self.utility[np.arange(len(codes)), codes].mean())
        if self.gamma is None:
            return utility - self.lam * gap, -gap
        return (0.0, utility) if gap <= self.gamma else (-gap, utility)
