"""How predicted amounts turn out on private rows: noisy sums of squared errors, and where those of each group lie."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfairdp import metrics
from skfairdp._judge import KSJudgement
from skfairdp._row_wise import row_wise_amounts
from skfairdp._rows import SubjectRows
from skfairdp._utils._sklearn import take_rows
from skfairdp.model_selection._scores import BASELINE, Objective, PaidScores
from skfairdp.privacy import DpEvent, GaussianMechanism, NeighboringRelation, NoiseSource, gdp_mu

Array = NDArray[np.float64]
#: Spreads from the middle at which an error stops to grow: further ones say no more, and noise follows the largest.
FARTHEST = 2.5
#: Of the counts of predictions, beside the sums of squares.
COUNTED = math.sqrt(0.5)
FEWEST_CELLS, MOST_CELLS = 8, 64
_GRID = 2.0**20


@dataclass(frozen=True)
class ReleasedAmounts:
    """Noisy sums of one model on some rows."""

    squared_errors: float
    squares: float
    counts: Array
    noise: float

    @property
    def r2(self) -> float:
        """1 less the share of squares that errors are; NaN where the noise hides the squares."""
        clear = self.squares > 3 * self.noise
        return min(1.0, 1 - self.squared_errors / self.squares) if clear else math.nan

    def error(self, n_rows: int) -> float:
        """Half of the width of a 95 % interval around it: the noise of both sums, and at most what sampling adds."""
        if math.isnan(self.r2):
            return math.nan
        share, sums = self.squared_errors / self.squares, np.array([self.squared_errors, self.squares])
        sampled = np.clip(sums, 0.0, n_rows) * (1 - np.clip(sums / n_rows, 0.0, 1.0))
        return float(1.96 / self.squares * math.sqrt((self.noise**2 + sampled) @ [1.0, share**2]))

    def without_last_group(self) -> "ReleasedAmounts":
        """The same, where gaps are those of the others."""
        return replace(self, counts=self.counts[:-1])

    @property
    def seen(self) -> NDArray[np.bool_]:
        """The groups that show through the noise."""
        return np.asarray(self.counts.sum(axis=1) > 5 * self._noise_of_counts * math.sqrt(self.counts.shape[1]))

    @cached_property
    def gaps(self) -> tuple[float, float]:
        """The largest Kolmogorov-Smirnov distance of two groups that are seen, and what bounds it; NaN without two."""
        shown = self.counts[self.seen]
        if len(shown) < 2:
            return math.nan, math.nan
        gap, bound, _ = KSJudgement(shown, self._noise_of_counts).said(1.0)
        return gap, bound

    @property
    def _noise_of_counts(self) -> float:
        return self.noise / COUNTED


@dataclass(frozen=True)
class AmountTable:
    """Releases how predicted amounts of private rows turned out, one vector of noisy sums.

    Each row adds its squared error and its square around the model's own constant, both in [0, 1], and counts in one
    cell of its group by its prediction. So a record that comes or goes moves the first two by 1 at most and one cell;
    one in the place of another moves two cells.
    """

    groups: NDArray[Any]
    epsilon: float
    delta: float
    relation: NeighboringRelation

    @property
    def mechanism(self) -> GaussianMechanism:
        """Noise and event of one vector."""
        cells = 1 if self.relation is NeighboringRelation.ADD_OR_REMOVE_ONE else 2
        sensitivity = math.sqrt(2 + cells * COUNTED**2)
        sigma = sensitivity / gdp_mu(self.epsilon, self.delta) * (1 + 1e-9)
        return GaussianMechanism(sigma, sensitivity=sensitivity, relation=self.relation)

    @property
    def event(self) -> DpEvent:
        """One vector."""
        return self.mechanism.event

    def public_size(self, n_rows: int) -> int | None:
        """The number of rows, or None where it is nothing public: there records come and go."""
        return None if self.relation is NeighboringRelation.ADD_OR_REMOVE_ONE else n_rows

    def n_cells(self, n_rows: int) -> int:
        """Cells of each group: what is not seen inside of one, beside the noise of all together."""
        rows = self.public_size(n_rows)
        if rows is None:
            return FEWEST_CELLS
        cells = (2 * rows * COUNTED / len(self.groups) / self.mechanism.sigma) ** (2 / 3)
        return int(np.clip(cells, FEWEST_CELLS, MOST_CELLS))

    def sums(self, amounts: Array, predicted: Array, codes: NDArray[np.int64], spread: tuple[float, float]) -> Array:
        """The exact vector. A row without a prediction is as far away as any, in the first cell. Private."""
        (middle, width), n_cells = spread, self.n_cells(len(amounts))
        missing, farthest = np.isnan(predicted), (FARTHEST * width) ** 2
        errors = np.where(missing, 1.0, np.clip((amounts - predicted) ** 2 / farthest, 0.0, 1.0))
        squares = np.clip((amounts - middle) ** 2 / farthest, 0.0, 1.0)
        edges = np.linspace(middle - FARTHEST * width, middle + FARTHEST * width, n_cells + 1)[1:-1]
        cells = np.searchsorted(edges, np.where(missing, -np.inf, predicted), side="right")
        counts = np.bincount(codes * n_cells + cells, minlength=len(self.groups) * n_cells)
        exact = [float((np.trunc(one * _GRID) / _GRID).sum()) for one in (errors, squares)]
        return np.concatenate([exact, COUNTED * counts])

    def release(self, sums: Array, noise: NoiseSource) -> ReleasedAmounts:
        """The vector with noise."""
        errors, squares, *counts = self.mechanism.release(sums, noise)
        of_groups = np.array(counts).reshape(len(self.groups), -1) / COUNTED
        return ReleasedAmounts(float(errors), float(squares), of_groups, self.mechanism.sigma)


@dataclass(frozen=True)
class AmountScores(PaidScores):
    """Scores of predicted amounts on private rows in memory, from one vector of noisy sums each."""

    table: AmountTable
    X: Any
    amounts: Array
    group_codes: NDArray[np.int64] | None
    groups: NDArray[Any] | None
    private_part: Callable[[Any], Any]

    @property
    def with_groups(self) -> bool:
        return self.group_codes is not None

    def measure(self, fitted: Any, test: Any, epsilon: float, noise: NoiseSource) -> dict[str, float]:
        """Release the sums of the test part, and read the objectives from them."""
        released = self.table.release(self._sums(fitted, test), noise)
        return {**{o.name: self._read(o, released, epsilon) for o in self.objectives}, BASELINE: 0.0}

    def rehearse(self, demanded: Sequence[Objective]) -> None:
        """Of an objective that the sums do not tell, say so before the charge."""
        for objective in demanded:
            self._read(objective, ReleasedAmounts(0.5, 1.0, np.ones((len(self.table.groups), 8)), 0.1), 1.0)

    def _read(self, objective: Objective, released: ReleasedAmounts, epsilon: float) -> float:
        if objective.scorer == "r2":
            return released.r2
        if objective.kind == "built in" and objective.name in ("epsilon", "coverage"):
            return epsilon if objective.name == "epsilon" else 1.0
        if objective.function is metrics.ks_disparity or (
            objective.kind == "built in" and objective.name in ("disparity", "ks_disparity")
        ):
            return released.gaps[0] if self.with_groups else math.nan
        raise ValueError(
            f"The objective {objective.name!r} needs predictions as they are, and noisy sums are all that private "
            "folds release of amounts: 'r2' and 'ks_disparity'. Score on public rows: fit(..., "
            "validation=PublicData(X, groups, y))."
        )

    def _sums(self, fitted: Any, test: NDArray[np.int64] | SubjectRows) -> Array:
        """Of the rows at these positions, or of one row of each of these subjects. Private."""
        places: NDArray[np.int64] | None
        if isinstance(test, SubjectRows):
            rows, places = test.one_each, test.places
        else:
            rows, places = test, None if self.table.public_size(len(test)) is None else np.arange(len(test))
        groups = None if self.groups is None else self.groups[rows]
        predicted = row_wise_amounts(fitted, take_rows(self.X, rows), groups, places=places)
        codes = np.zeros(len(rows), dtype=np.int64) if self.group_codes is None else self.group_codes[rows]
        inner = self.private_part(fitted)
        return self.table.sums(self.amounts[rows], predicted, codes, (inner.y_center_, inner.y_spread_))
