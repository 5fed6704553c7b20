"""Which of many candidates is kept: one trade-off between the gap and what the model itself expects to get right."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import indexable

from skfairdp._utils._sklearn import take_rows
from skfairdp.fairness import largest_disparity, tally


@dataclass(frozen=True)
class CalibrationRows:
    """Public rows of a calibration, and what the model says of them before it."""

    features: Any
    table: Any
    groups: NDArray[np.int64]
    n_groups: int
    classes: NDArray[Any]
    before: NDArray[np.int64]

    def part(self, rows: NDArray[np.bool_]) -> "CalibrationRows":
        """Some of the rows."""
        at = np.flatnonzero(rows)
        features, table = (take_rows(one, at) for one in indexable(self.features, self.table))
        return replace(self, features=features, table=table, groups=self.groups[at], before=self.before[at])


class TradeOff:
    """Keeps the best set of predictions it was offered; the unchanged ones are the first.

    No candidate is kept whose gap is above that of the unchanged predictions, so the gap never rises.
    """

    def __init__(
        self,
        groups: NDArray[np.int64],
        n_groups: int,
        utility: NDArray[np.float64],
        before: NDArray[np.int64],
        *,
        gap_weight: float,
        gamma: float | None,
        disparity: str,
    ) -> None:
        self.groups, self.utility, self.before = groups, utility, before
        self.shape = (n_groups, utility.shape[1])
        self.gap_weight, self.gamma, self.disparity = gap_weight, gamma, disparity
        self.gap_before = self.gap_of(before)
        self._best = self._rank(before, self.gap_before)

    def gap_of(self, codes: NDArray[np.int64]) -> float:
        """Return the largest disparity of these predictions."""
        return largest_disparity(tally(self.groups, codes, self.shape), self.disparity)

    def is_settled(self) -> bool:
        """Whether nothing is asked for that the best predictions so far do not give: further search would be idle."""
        if self.gamma is None:
            return self.gap_weight == 0 or self.gap_before == 0
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
            return utility - self.gap_weight * gap, -gap
        return (0.0, utility) if gap <= self.gamma else (-gap, utility)
