"""Comparisons of rates between some groups and some others: two running extremes stand for all of their pairs."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Comparisons:
    """What constraints on rates ask, in as many numbers as there are groups, not pairs of groups.

    Comparison f asks ``factor · rate of a - rate of b <= slack`` for every a of its ``ones`` and every other b of its
    ``others``. Positions are those of the groups, then all rows, then nobody, whose rate is 0: a bound compares with
    nobody.
    """

    rate: NDArray[np.int64]
    factor: Array
    slack: Array
    ones: Mask
    others: Mask

    @cached_property
    def compared(self) -> Mask:
        """Whether a line takes part in a comparison, (n_groups + 2, n_comparisons)."""
        beside_ones, beside_others = (
            highest_of_others(side.astype(np.float64)) > 0 for side in (self.ones, self.others)
        )
        return (self.ones & beside_others) | (self.others & beside_ones)

    def left(self, rates: Array) -> Array:
        """``factor · rate`` of the ones, (n_groups + 2, n_comparisons); -inf for the rest and where a rate is NaN."""
        found = self.factor * self.of_comparisons(rates)
        return np.where(self.ones & np.isfinite(found), found, -np.inf)

    def right(self, rates: Array) -> Array:
        """Rates of the others, (n_groups + 2, n_comparisons); inf for the rest and where a rate is NaN."""
        found = self.of_comparisons(rates)
        return np.where(self.others & np.isfinite(found), found, np.inf)

    def of_comparisons(self, by_rate: Array, nobody: float = 0.0) -> Array:
        """A table (n_groups + 1, n_rates) by comparison, with a line for nobody."""
        columns = by_rate[:, self.rate]
        return np.vstack([columns, np.full(len(self.rate), nobody, dtype=columns.dtype)])

    def largest_violation(self, rates: Array) -> float:
        """By how much the worst of all pairs breaks its bound; -inf where no two rates can be compared."""
        over = self.left(rates) + highest_of_others(-self.right(rates)) - self.slack
        return float(over.max(initial=-np.inf))


def highest_of_others(values: Array) -> Array:
    """For every row of a table the highest entry of each column in another row: of -inf where there is none."""
    at = values.argmax(axis=0)
    columns = np.arange(values.shape[1])
    rest = values.copy()
    rest[at, columns] = -np.inf
    found = np.broadcast_to(values[at, columns], values.shape).copy()
    found[at, columns] = rest.max(axis=0)
    return found
