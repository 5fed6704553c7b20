"""What a fairness constraint is: a score h of every row, and cells in which its mean is the same in all groups."""

import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from skfairdp._typing import Bools, Floats, Ints
from skfairdp.fairness._rates import RateBound, RateParity, name_of

#: Halvings of an interval of length 2 or so, down to rounding.
_HALVINGS = 50


def project_to_bounds(constraint: RateParity | RateBound, differences: Floats, means: Floats) -> Floats:
    """The point nearest to some differences among those that a constraint allows."""
    if isinstance(constraint, RateBound):
        lower = -math.inf if constraint.lower is None else constraint.lower
        upper = math.inf if constraint.upper is None else constraint.upper
        within = np.clip(differences, lower - means, upper - means)
        if constraint.groups in (None, "overall"):
            return within
        of_named = np.isin(np.arange(len(differences)), constraint.groups)
        return np.where(of_named.reshape(-1, *[1] * means.ndim), within, differences)
    factor, slack = constraint.factor_and_slack
    room = slack + (1.0 - factor) * means
    if constraint.method == "to_overall":
        return np.clip(differences, -room, room / factor)
    # the least t; the others lie between t and (t + room) / factor, and t where both sides pull alike
    low, high = differences.min(0), differences.max(0)
    allowed = factor * high <= room + low
    if factor < 1:  # below it lies no room at all
        low = np.maximum(low, -room / (1.0 - factor))
        high = np.maximum(low, high)
    for _ in range(_HALVINGS):
        t = (low + high) / 2
        pull = np.maximum(t - differences, 0.0).sum(0)
        pull -= np.maximum(differences - (t + room) / factor, 0.0).sum(0) / factor
        low, high = np.where(pull < 0, t, low), np.where(pull < 0, high, t)
    least = (low + high) / 2
    return np.asarray(np.where(allowed, differences, np.clip(differences, least, (least + room) / factor)))


# Rates that are one less the score h of their notion.
_COMPLEMENTS = ("accuracy", "false_negative_rate", "true_negative_rate")


@dataclass(frozen=True)
class ConstraintColumn:
    """One score h of a row: a power of the probability of a class, or the probability of an error."""

    notion: str
    of_class: int | None
    power: int = 1
    among: int | None = None
    allowed: RateParity | RateBound | None = None

    @property
    def by_class(self) -> bool:
        """Whether rows are compared with rows of the same true class only."""
        return self.notion == "equalized_odds" or self.among is not None

    @property
    def is_complement(self) -> bool:
        """Whether the rate that is bounded is one less the mean of h."""
        return self.allowed is not None and self.allowed.rate in _COMPLEMENTS

    @property
    def is_bound(self) -> bool:
        """Whether the rate itself of each group has a bound, and not its distance from that of others."""
        return isinstance(self.allowed, RateBound)

    @property
    def is_overall(self) -> bool:
        """Whether the rate of all rows together has a bound: no group is asked for, and all have one multiplier."""
        return isinstance(self.allowed, RateBound) and self.allowed.groups == "overall"

    @property
    def score(self) -> tuple[str, int | None, int, int | None]:
        """What h is, and in which cells: the same for all constraints on it."""
        return self.notion, self.of_class, self.power, self.among

    def cells(self, n_cells: int) -> Sequence[int]:
        """Of so many cells those in which it compares rows."""
        return (self.among,) if self.among is not None else range(n_cells if self.by_class else 1)


@dataclass(frozen=True, eq=False)
class FairnessConstraints:
    """One or several notions of fairness for rows with these labels.

    A model is fair in the sense of a notion if, in every cell, the mean of each of its scores h is the same in every
    group:

    - "demographic_parity": h is the probability of a class; all rows are one cell,
    - "equalized_odds": the same h; the rows of each true class are a cell,
    - "true_positive_rate_parity": h is the probability of the second of two classes, among the rows that have it; of
      more classes that of every class among its rows,
    - "false_positive_rate_parity": of two classes, h is the probability of the second among the rows of the first; of
      more classes that of every class among the rows of all others,
    - "accuracy_parity": h is the probability of an error; all rows are one cell,
    - "generalized_demographic_parity": h are the first powers of the probability of a class, so that whole
      distributions of scores are alike and not their means alone (Tran et al. 2022, Definition 4).

    There is one h per class, or one for two classes, as the other says the same. Features and labels decide all of it,
    and no group is known here.
    """

    notions: Sequence[str | RateParity | RateBound]
    y: Any
    n_classes: int
    moments: int = 2

    def __post_init__(self) -> None:
        if self.n_classes < 2:
            raise ValueError(f"FairnessConstraints needs at least two classes. Got n_classes={self.n_classes!r}.")

    def of_labels(self, y: Any) -> "FairnessConstraints":
        """The same notions for other rows, or for the same rows as a tensor."""
        return FairnessConstraints(self.notions, y, self.n_classes, self.moments)

    # ------------------------------------------------------------------ shapes

    @cached_property
    def columns(self) -> tuple[ConstraintColumn, ...]:
        """The constraints, in the order of the notions."""
        return tuple(column for notion in self.notions for column in self._columns_of(notion))

    def _columns_of(self, asked: str | RateParity | RateBound) -> Iterable[ConstraintColumn]:
        notion, allowed = name_of(asked), None if isinstance(asked, str) else asked
        if notion == "accuracy_parity":
            yield ConstraintColumn(notion, None, allowed=allowed)
            return
        for power in range(1, self.moments + 1) if notion == "generalized_demographic_parity" else [1]:
            for k in self._classes_of(allowed):
                among = {"true_positive_rate_parity": k, "false_positive_rate_parity": 0}.get(notion)
                yield ConstraintColumn(notion, k, power, among, allowed)

    def _classes_of(self, allowed: RateParity | RateBound | None) -> Iterable[int]:
        if allowed is not None and allowed.of_class is not None:
            return [int(allowed.of_class)]  # type: ignore[call-overload]  # a position: see by_position
        return [1] if self.n_classes == 2 else range(self.n_classes)

    @property
    def n_constraints(self) -> int:
        """How many scores h there are."""
        return len(self.columns)

    @property
    def n_cells(self) -> int:
        """Cells of the finest partition of the rows that a constraint uses: the classes, or all rows as one."""
        return self.n_classes if any(column.by_class for column in self.columns) else 1

    @cached_property
    def row_cells(self) -> Any:
        """The cell of each row in the finest partition, shape (n_rows,)."""
        return self.y if self.n_cells > 1 else _namespace(self.y).zeros_like(self.y)

    @cached_property
    def cells(self) -> Any:
        """The cell in which each constraint compares each row, shape (n_rows, n_constraints)."""
        return _namespace(self.y).stack([self._cells_of(column, self.y) for column in self.columns], 1)

    @cached_property
    def merged_cells(self) -> Ints:
        """The cell into which each constraint puts a cell of the finest partition, shape (n_cells, n_constraints)."""
        finest = np.arange(self.n_cells, dtype=np.int64)
        return np.stack([self._cells_of(column, finest) for column in self.columns], axis=1)

    def _cells_of(self, column: ConstraintColumn, classes: Any) -> Any:
        """The cells into which a constraint puts rows of these true classes."""
        if column.notion == "false_positive_rate_parity":  # others, and its own
            return classes * 0 + (classes == column.of_class)
        return classes * int(column.by_class)

    @cached_property
    def compared(self) -> Bools:
        """Whether a constraint asks for groups in a cell, shape (n_cells, n_constraints)."""
        found = np.zeros((self.n_cells, self.n_constraints), dtype=bool)
        for c, column in enumerate(self.columns):
            found[list(column.cells(self.n_cells)), c] = not column.is_overall
        return found

    @cached_property
    def unique_columns(self) -> tuple[Ints, Ints]:
        """Constraints that ask for groups, one for each score, and for each constraint whose place among them it has.
        Who releases what groups say of each score releases it once, whatever is asked of it. A constraint that asks for
        no groups has the first place, and nothing in it counts."""
        first: dict[Any, int] = {}
        for c, column in enumerate(self.columns):
            if not column.is_overall:
                first.setdefault(column.score, c)
        places = {score: place for place, score in enumerate(first)}
        of_each = [places.get(column.score, 0) for column in self.columns]
        return np.array(list(first.values()), dtype=np.int64), np.array(of_each, dtype=np.int64)

    def where_compared(self, violations: Any) -> Any:
        """Violations, (n_groups, n_cells, n_constraints), but 0 where a constraint compares nothing."""
        return violations * _like(violations, self.compared)

    @property
    def has_bounds(self) -> bool:
        """Whether a constraint has a bound of its own."""
        return any(column.allowed is not None for column in self.columns)

    def project_to_bounds(self, violations: Floats, means: Floats) -> Floats:
        """The violations nearest to these that the constraints allow, of the same shape; 0 where they allow none."""
        found = np.zeros_like(violations)
        for c, column in enumerate(self.columns):
            if column.allowed is not None:
                cells, sign = list(column.cells(self.n_cells)), -1.0 if column.is_complement else 1.0
                rates = 1.0 - means[..., cells, c] if column.is_complement else means[..., cells, c]
                found[..., cells, c] = sign * project_to_bounds(column.allowed, sign * violations[..., cells, c], rates)
        return found

    def means(self, scores: Floats) -> Floats:
        """Mean of each score h, (n_rows, n_constraints), in every cell, (n_cells, n_constraints); 0 in an empty one."""
        found = np.zeros((self.n_cells, self.n_constraints))
        for c in range(self.n_constraints):
            cells = np.asarray(self.cells[:, c])
            counts = np.bincount(cells, minlength=self.n_cells)
            found[:, c] = np.bincount(cells, weights=scores[:, c], minlength=self.n_cells) / np.maximum(counts, 1)
        return found

    def sizes(self, counts: Floats) -> Floats:
        """Group sizes by cell, (n_groups, n_cells) → by cell of each constraint, (n_groups, n_cells, n_constraints).
        A constraint that compares all rows uses the first cell only; the others have size 1."""
        found = np.zeros((len(counts), self.n_cells, self.n_constraints))
        for cell, line in enumerate(self.merged_cells):
            found[:, line, np.arange(self.n_constraints)] += counts[:, cell, None]
        return np.where(found > 0, found, 1.0)

    # ------------------------------------------------------------------ scores

    def values(self, probabilities: Any, y: Any) -> Any:
        """The scores h of rows."""
        found = []
        for column in self.columns:
            k = column.of_class
            score = 1 - _of_class(probabilities, y) if k is None else probabilities[:, k : k + 1]
            found.append(score if column.power == 1 else score**column.power)
        return _namespace(probabilities).concatenate(found, 1)

    def slopes(self, probabilities: Any, y: Any) -> Any:
        """Derivatives of h by the logits of its row, shape (n_rows, n_constraints, n_classes)."""
        unit = _like(probabilities, np.eye(self.n_classes))
        found = []
        for column in self.columns:
            k = column.of_class
            mine = _of_class(probabilities, y) if k is None else probabilities[:, k : k + 1]
            slope = mine * (unit[y if k is None else k] - probabilities)
            if column.power > 1:
                slope = slope * (column.power * mine ** (column.power - 1))
            found.append(-slope if k is None else slope)
        return _namespace(probabilities).stack(found, 1)

    def probability_weights(self, weights: Any, probabilities: Any, y: Any) -> Any:
        """Derivative of ``Σ weights · h`` by the class probabilities, shape (n_rows, n_classes).
        ``weights`` has shape (n_rows, n_constraints)."""
        found = _namespace(probabilities).zeros_like(probabilities)
        for c, column in enumerate(self.columns):
            k, power = column.of_class, column.power
            if k is None:
                found -= weights[:, c : c + 1] * _like(probabilities, np.eye(self.n_classes))[y]
            elif power == 1:
                found[:, k] += weights[:, c]
            else:
                found[:, k] += power * weights[:, c] * probabilities[:, k] ** (power - 1)
        return found


def _namespace(values: Any) -> Any:
    """numpy, or torch for a tensor: whoever has one has imported it."""
    return sys.modules[type(values).__module__.partition(".")[0]]


def _like(values: Any, numbers: Any) -> Any:
    """Numbers as an array or tensor of the same type as ``values``, and on its device."""
    if hasattr(values, "new_tensor"):
        return values.new_tensor(numbers)
    return np.asarray(numbers, dtype=values.dtype)


def _of_class(table: Any, codes: Any) -> Any:
    """The entry of each row at its code, as a column."""
    if hasattr(table, "gather"):
        return table.gather(1, codes[:, None])
    return np.take_along_axis(table, codes[:, None], axis=1)
