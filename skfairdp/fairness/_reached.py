"""By how much each inequality is broken, by released tables of counts, and how sure that is."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfairdp.fairness._rates import RateConstraints

Array = NDArray[np.float64]

#: Sizes are believed that are so many times their noise; no rate of a smaller group is spoken of.
CLEAR_SIZE = 3.0


@dataclass(frozen=True)
class ResidualViolation:
    """By how much each inequality is broken, by numbers that are released or public: post-processing."""

    names: Sequence[str]
    broken_by: Array
    noise: Array

    @classmethod
    def of_rates(
        cls, constraints: RateConstraints, last: Sequence[Any], earlier: Sequence[Any], noise: float
    ) -> "ResidualViolation":
        """What the mean of the last tables of counts says, with sizes from all tables."""
        counts, n_tables = np.mean(last, axis=0), len(last) + len(earlier)
        sizes = np.mean([*earlier, *last], axis=0).sum(2)
        cells, events = (part[:, : sizes.shape[1]] for part in (constraints.cells, constraints.events))
        rows, n_groups, n_classes = sizes @ cells.T, len(sizes), counts.shape[2]
        rows = np.vstack([rows, rows.sum(0)])
        of_size = (
            noise * np.sqrt(cells.sum(1) * n_classes / n_tables) * np.array([1.0] * n_groups + [n_groups**0.5])[:, None]
        )
        clear = rows > CLEAR_SIZE * of_size
        rates = np.nan_to_num(constraints.rates(counts, np.maximum(sizes, 1e-9)))
        # derivatives of each left-hand side by the counts and by the sizes of each group; a rate overall has all groups
        slopes = constraints.coefficients / np.where(clear, rows, 1.0)
        by_count = np.einsum("jar,ryk->jayk", slopes[:, :-1] + slopes[:, -1:], events)
        by_size = -np.einsum("jar,ry->jay", slopes[:, :-1] * rates[:-1] + slopes[:, -1:] * rates[-1], cells)[..., None]
        by_last, by_earlier = by_count / len(last) + by_size / n_tables, by_size / n_tables
        variance = len(last) * (by_last**2).sum((1, 2, 3)) + len(earlier) * n_classes * (by_earlier**2).sum((1, 2, 3))
        known = (clear | (constraints.coefficients == 0)).all((1, 2))
        broken_by = constraints.violations(counts, np.maximum(sizes, 1e-9))
        return cls(constraints.inequalities, broken_by, np.where(known, noise * np.sqrt(variance), math.inf))

    @property
    def violation_noise(self) -> float:
        """Standard deviation of the noise in the largest of them; infinite where no inequality can be spoken of."""
        told = np.isfinite(self.noise)
        return float(self.noise[np.where(told, self.broken_by, -math.inf).argmax()]) if told.any() else math.inf
