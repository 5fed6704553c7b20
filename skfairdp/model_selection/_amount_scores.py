"""How predicted amounts turn out on private rows: noisy sums of squared errors, and where those of each group lie."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfairdp import metrics
from skfairdp._judge import KSJudgement
from skfairdp._row_wise import row_wise_amounts
from skfairdp.model_selection._scores import Objective, PaidTable, RowScores
from skfairdp.privacy import NeighboringRelation, NoiseSource

Array = NDArray[np.float64]
Codes = NDArray[np.int64]
#: Spreads from the middle at which an error stops to grow: further ones say no more, and noise follows the largest.
FARTHEST = 2.5
#: Of the counts of predictions, beside the sums of squares.
COUNTED = math.sqrt(0.5)
FEWEST_CELLS, MOST_CELLS = 8, 64
#: By how much another amount moves the sums of d² and d / 2 at most, squared.
MOVED = 1.2862
#: Standard deviations of its noise that a figure has to be away from it.
CLEAR = 5.0
#: Of the rows of every group in one cell: more of them, and their distances inside of it are not known.
MOST_TOGETHER = 0.5
_GRID = 2.0**20


@dataclass(frozen=True)
class ReleasedAmounts:
    """Noisy sums of one model on some rows, in units of the farthest distance from the middle."""

    squared_errors: float
    squares: float
    total: float
    counts: Array
    noise: float
    n_rows: float

    @cached_property
    def _around_mean(self) -> tuple[float, float]:
        """The sum of squares around the mean of these rows, and the noise in it."""
        mean = self.total / self.n_rows
        return self.squares - self.total * mean, self.noise * math.sqrt(1 + (4 * mean) ** 2)

    @property
    def r2(self) -> float:
        """1 less the share of squares around the mean that errors are; NaN where the noise hides the squares."""
        squares, noise = self._around_mean
        return min(1.0, 1 - self.squared_errors / squares) if squares > CLEAR * noise else math.nan

    @property
    def error(self) -> float:
        """Half of the width of a 95 % interval around it: noise, and at most what sampling adds, at the worst sides."""
        if math.isnan(self.r2):
            return math.nan
        squares, noise = self._around_mean
        largest = (1 + abs(self.total / self.n_rows)) ** 2  # that a square around the mean may be
        farther = _half_width(self.squared_errors, self.noise, 1.0, self.n_rows)
        nearer = _half_width(squares, noise, largest, self.n_rows)
        if nearer >= squares:
            return math.inf
        return (self.squared_errors + farther) / (squares - nearer) - self.squared_errors / squares

    @property
    def seen(self) -> NDArray[np.bool_]:
        """The groups that show through the noise."""
        return np.asarray(self.counts.sum(axis=1) > CLEAR * self._noise_of_counts * math.sqrt(self.counts.shape[1]))

    @cached_property
    def gaps(self) -> tuple[float, float]:
        """The largest Kolmogorov-Smirnov distance of two groups that are seen, and what bounds it; NaN without two, and
        where half of the rows of all groups are in one cell."""
        shown = self.counts[self.seen]
        if len(shown) < 2:
            return math.nan, math.nan
        gap, bound, _ = KSJudgement(shown, self._noise_of_counts).said(1.0)
        together = (shown / shown.sum(axis=1, keepdims=True)).min(axis=0).max()
        return math.nan if together > MOST_TOGETHER else gap, bound

    @property
    def _noise_of_counts(self) -> float:
        return self.noise / COUNTED


def _half_width(total: float, noise: float, largest: float, n_rows: float) -> float:
    """Of a 95 % interval around a noisy sum over rows that each add from 0 to ``largest``."""
    known = min(max(total, 0.0), largest * n_rows)
    return 1.96 * math.sqrt(noise**2 + known * (largest - known / n_rows))


@dataclass(frozen=True)
class AmountTable(PaidTable):
    """Releases how predicted amounts of private rows turned out, one vector of noisy sums.
    By distances d in [-1, 1] of each amount from a released middle, each row adds its squared error, in [0, 1], d² and
    d / 2, and counts in one cell of its group by its prediction (of counts the rate, and errors are those of the rate
    times the exposure of the row, which is the row's own). So a record that comes or goes moves these sums by 1, 1, 1/2
    and one cell. One in the place of another moves the first by 1 and two cells; the other two, of d and e with s = |d
    - e| and |d + e| ≤ 2 - s, by a square of s²((2 - s)² + 1/4), which is largest at s = (6 - √2) / 4."""

    @property
    def sensitivity(self) -> float:
        comes_or_goes = self.relation is NeighboringRelation.ADD_OR_REMOVE_ONE
        return math.sqrt(2.25 + COUNTED**2 if comes_or_goes else 1 + MOVED + 2 * COUNTED**2)

    def made_up(self, with_groups: bool) -> ReleasedAmounts:
        """A table of no rows: to try on it what will be read from a released one."""
        return ReleasedAmounts(0.5, 1.0, 0.0, np.ones((len(self.groups), 8)), 0.1, 8)

    def n_cells(self, n_rows: int) -> int:
        """Cells of each group: what is not seen inside of one, beside the noise of all together."""
        rows = self.public_size(n_rows)
        if rows is None:
            return FEWEST_CELLS
        cells = (2 * rows * COUNTED / len(self.groups) / self.mechanism.sigma) ** (2 / 3)
        return int(np.clip(cells, FEWEST_CELLS, MOST_CELLS))

    def sums(
        self, amounts: Array, predicted: Array, codes: Codes, spread: tuple[float, float], exposure: Array | float = 1.0
    ) -> Array:
        """The exact vector. A row without a prediction is as far away as any, in the first cell. Private."""
        (middle, width), n_cells = spread, self.n_cells(len(amounts))
        missing = np.isnan(predicted)
        known = np.where(missing, 0.0, predicted)
        of, far = (amounts, known, known * exposure), FARTHEST * width
        found, said, expected = (np.clip((one - middle) / far, -1.0, 1.0) for one in of)
        errors = np.where(missing, 1.0, np.minimum((found - expected) ** 2, 1.0))
        cells = np.searchsorted(np.linspace(-1, 1, n_cells + 1)[1:-1], np.where(missing, -1.0, said), side="right")
        counts = np.bincount(codes * n_cells + cells, minlength=len(self.groups) * n_cells)
        exact = [float((np.trunc(one * _GRID) / _GRID).sum()) for one in (errors, found**2, found / 2)]
        return np.concatenate([exact, COUNTED * counts])

    def release(self, sums: Array, noise: NoiseSource, n_rows: int) -> ReleasedAmounts:
        """The vector with noise; the number of rows is read where it is public."""
        errors, squares, half, *counts = (float(one) for one in self.mechanism.release(sums, noise))
        of_groups = np.array(counts).reshape(len(self.groups), -1) / COUNTED
        rows = self.public_size(n_rows)
        known = max(1.0, float(of_groups.sum())) if rows is None else rows
        return ReleasedAmounts(errors, squares, 2 * half, of_groups, self.mechanism.sigma, known)


@dataclass(frozen=True)
class AmountScores(RowScores):
    """Scores of predicted amounts on private rows in memory, from one vector of noisy sums each."""

    private_part: Callable[[Any], Any]
    exposure: Array | None = None

    def release(self, fitted: Any, test: Any, noise: NoiseSource) -> ReleasedAmounts:
        rows, codes, predicted = self.asked(row_wise_amounts, fitted, test)
        codes = np.zeros(len(rows), dtype=np.int64) if codes is None else codes
        inner, exposure = self.private_part(fitted), 1.0 if self.exposure is None else self.exposure[rows]
        sums = self.table.sums(self.truth[rows], predicted, codes, (inner.y_center_, inner.y_spread_), exposure)
        return self.table.release(sums, noise, len(rows))

    def problem(self, fitted: Any) -> str:
        """Why a winner has no score, which is released."""
        return (
            " Its noise hides how far amounts are from their mean, or a group: more rows, a larger 'score_epsilon' or "
            "tighter 'bounds' of amounts would help."
        )

    def read(self, objective: Objective, released: ReleasedAmounts, epsilon: float) -> float:
        if objective.scorer == "r2":
            return released.r2
        built_in = objective.name if objective.kind == "built in" else ""
        if built_in in ("epsilon", "coverage"):
            return epsilon if built_in == "epsilon" else 1.0
        if objective.function is metrics.ks_disparity or built_in in ("disparity", "ks_disparity"):
            return released.gaps[0] if self.with_groups else math.nan
        raise ValueError(
            f"The objective {objective.name!r} needs predictions as they are, and noisy sums are all that private "
            "folds release of amounts: 'r2' and 'ks_disparity'. Score on public rows: fit(..., "
            "validation=PublicData(X, groups, y))."
        )
