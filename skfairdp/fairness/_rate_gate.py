"""The gate for rates that need labels: which answers may be given, however the labels still outstanding come back."""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfairdp._typing import ArrayLike
from skfairdp.fairness._gaps import as_counts
from skfairdp.fairness._gate_stream import TOLERANCE
from skfairdp.fairness._rate_comparisons import highest_of_others
from skfairdp.fairness._rates import RateConstraints

Array = NDArray[np.float64]
Ends = tuple[Array, Array]


class RateGate:
    """Decide which answers keep constraints on rates, of rows whose labels come back later, in any order or never.

    Every rate is that of the answered rows whose label has come back. For each inequality the gate computes the
    **worst case**: its left-hand side less its right-hand side for the choice of outstanding rows that come back, and
    of their labels, that breaks it most. An inequality is in force once every rate in it counts ``min_count`` labels
    that have come back. An answer is admissible if no inequality in force has a worst case above 0 that the answer
    makes larger. What follows, as a label that comes back only takes choices away: **an inequality in force whose
    worst case is at most 0 is never broken from then on, in whatever order labels come back and whichever never do**;
    one that starts above 0 is never broken by more than its worst case was.

    A group is compared with another by their own rows, which come back independently, so its worst case is reached by
    some labels: nothing is refused that could not do harm. With ``method="to_overall"`` a group is also part of what
    it is compared with; the worst case of either side is added up then, which may refuse more than it has to.
    """

    def __init__(
        self,
        constraints: RateConstraints,
        *,
        min_count: int = 50,
        labelled: ArrayLike | None = None,
        outstanding: ArrayLike | None = None,
    ) -> None:
        self.constraints, self.min_count = constraints, max(int(min_count), 1)
        self.n_groups, self.n_classes = len(constraints.groups), len(constraints.classes)
        z, k = self.n_groups, self.n_classes
        flat = np.zeros((z, k * k)) if labelled is None else np.asarray(labelled).reshape(z, -1)
        self._labelled = as_counts(flat, (z, k * k), owner="RateGate").reshape(z, k, k)
        given = np.zeros((z, k)) if outstanding is None else outstanding
        self._outstanding = as_counts(given, (z, k), owner="RateGate")

    @property
    def outstanding(self) -> NDArray[np.int64]:
        """Answers whose label is not back, shape (n_groups, n_classes); a copy."""
        return self._outstanding.copy()

    @property
    def in_force(self) -> NDArray[np.bool_]:
        """Which inequalities count: those with ``min_count`` labels behind each of their rates."""
        line, group, rate, _ = self.constraints.terms
        too_few = self._known[1][group, rate] < self.min_count
        found: NDArray[np.bool_] = np.bincount(line, too_few, minlength=self.constraints.n_inequalities) == 0
        return found

    def worst_case(self) -> Array:
        """Return by how much outstanding labels can break each inequality; NaN where it is not in force."""
        line, group, rate, slope = self.constraints.terms
        highest, lowest = (part[group, rate] for part in self._extremes(self._outstanding))
        ends = slope * np.where(slope > 0, highest, lowest)
        worst = np.bincount(line, ends, minlength=self.constraints.n_inequalities)
        return np.where(self.in_force, worst - self.constraints.bounds, np.nan)

    def all_in_force(self) -> bool:
        """Return whether every inequality counts, in the time of the groups and not of their pairs."""
        return not (self.constraints.comparisons.compared & ~self._counts_for_all).any()

    def is_stuck(self) -> bool:
        """Return whether no group may be told anything, until a label comes back or a person decides."""
        return not self._alone().any()

    def run(self, groups: ArrayLike, labels: ArrayLike) -> NDArray[np.bool_]:
        """Process a stream in order: what is admitted is outstanding from then on, the rest is refused."""
        cells = np.asarray(groups, dtype=np.int64) * self.n_classes + np.asarray(labels, dtype=np.int64)
        start, admitted, alone = self._ends(self._outstanding), np.zeros(len(cells), dtype=bool), self._alone().ravel()
        rest = np.flatnonzero(alone[cells])
        # Answers only ever raise a worst case, so that "all rows up to here fit" is decided by bisection, and an answer
        # that is refused once is refused for the rest of the call.
        while len(rest):
            some = self._longest(cells[rest], start)
            admitted[rest[:some]] = True
            self._outstanding = self._outstanding + self._counted(cells[rest[:some]])
            if some < len(rest):
                alone[cells[rest[some]]] = False
            rest = rest[some + 1 :]
            rest = rest[alone[cells[rest]]]
        return admitted

    def _longest(self, cells: NDArray[np.int64], start: Ends) -> int:
        """How many of these rows fit, one after the other."""
        low, high = 0, 1  # so many fit; these have not been tried
        while self._fits(cells[:high], start):
            if high == len(cells):
                return high
            low, high = high, min(2 * high, len(cells))
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._fits(cells[:middle], start) else (low, middle)
        return low

    def _fits(self, cells: NDArray[np.int64], start: Ends) -> bool:
        """Whether these answers leave every worst case below 0, or as it was at the start.

        A pair of groups is harmed by one of its ends, if that has moved. So each end that has moved is held against
        the furthest of all others: no pair needs a look of its own.
        """
        now = self._ends(self._outstanding + self._counted(cells))
        return not any(
            ((now[one] > start[one]) & self._breaks(now[one], highest_of_others(now[1 - one]))).any() for one in (0, 1)
        )

    def _alone(self) -> NDArray[np.bool_]:
        """Which answers would be admitted as the next row, by group and class."""
        now = self._ends(self._outstanding)
        return np.stack([self._alone_of_class(k, now) for k in range(self.n_classes)], axis=1)

    def _alone_of_class(self, k: int, now: Ends) -> NDArray[np.bool_]:
        """Which groups may be told a class: one answer moves the ends of its group and those of all rows."""
        everybody = self.n_groups
        of_each, of_one = np.zeros((2, self.n_groups, self.n_classes), dtype=np.int64)
        of_each[:, k], of_one[0, k] = 1, 1
        moved = self._ends(self._outstanding + of_each)  # each line as if its group alone had been told k
        for side, of_all in zip(moved, self._ends(self._outstanding + of_one), strict=True):
            side[everybody] = of_all[everybody]
        harmed = np.zeros(self.n_groups, dtype=bool)
        for one, other in ((0, 1), (1, 0)):
            beside = highest_of_others(now[other])  # of a group and all rows, both moved, the second look below knows
            own = (moved[one] > now[one]) & self._breaks(moved[one], beside)
            theirs = np.maximum(beside, moved[other])[:everybody]
            of_all = (moved[one] > now[one])[everybody] & self._breaks(moved[one][everybody], theirs)
            harmed |= own[:everybody].any(axis=1) | of_all.any(axis=1)
        return ~harmed

    def _breaks(self, one: Array, other: Array) -> NDArray[np.bool_]:
        broken: NDArray[np.bool_] = one + other - self.constraints.comparisons.slack > TOLERANCE
        return broken

    def _ends(self, outstanding: NDArray[np.int64]) -> Ends:
        """How far each rate can still go: up, times its factor, and down, with its sign turned.

        Of two groups that are compared the sum of the two is bounded. What is not in force is out of reach.
        """
        asked = self.constraints.comparisons
        highest, lowest = self._extremes(outstanding)
        up, down = asked.left(highest), -asked.right(lowest)
        return np.where(self._counts_for_all, up, -np.inf), np.where(self._counts_for_all, down, -np.inf)

    @cached_property
    def _counts_for_all(self) -> NDArray[np.bool_]:
        """Whether enough labels are back for a rate to count, by line and comparison."""
        return self.constraints.comparisons.of_comparisons(self._known[1], np.inf) >= self.min_count

    def _extremes(self, outstanding: NDArray[np.int64]) -> tuple[Array, Array]:
        """The highest and the lowest that each rate of each group, and of all rows, can become."""
        hits, sizes = self._known
        # Whatever can count for a rate does and all else stays away, or the other way round.
        hit, missed = self._possible
        up, down = _with_sum(outstanding @ hit), _with_sum(outstanding @ missed)
        return (hits + up) / np.maximum(sizes + up, 1), hits / np.maximum(sizes + down, 1)

    @cached_property
    def _known(self) -> tuple[Array, Array]:
        """Rows that each rate of each group counts, and those it is a share of; all groups in the last line."""
        hits = np.einsum("ayk,ryk->ar", self._labelled, self.constraints.events)
        return _with_sum(hits), _with_sum(self._labelled.sum(axis=2) @ self.constraints.cells.T)

    @cached_property
    def _possible(self) -> tuple[Array, Array]:
        """Whether a row with this answer can, by its label, count for a rate, and against it; (n_classes, n_rates)."""
        events = self.constraints.events
        against = self.constraints.cells[:, :, None] * (1 - events)
        return events.max(axis=1).T, against.max(axis=1).T

    def _counted(self, cells: NDArray[np.int64]) -> NDArray[np.int64]:
        shape = self.n_groups, self.n_classes
        return np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)


def _with_sum(by_group: Any) -> Array:
    found: Array = np.vstack([by_group, by_group.sum(axis=0)])
    return found
