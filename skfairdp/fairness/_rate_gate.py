"""The gate for rates that need labels: which answers may be given, however the labels still outstanding come back."""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfairdp._typing import ArrayLike
from skfairdp.fairness._gaps import as_counts
from skfairdp.fairness._gate_stream import TOLERANCE
from skfairdp.fairness._rates import RateConstraints

__all__ = ["RateGate"]

Array = NDArray[np.float64]


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

    Parameters
    ----------
    constraints : RateConstraints
    min_count : int, default=50
        M: labels that have to be back before a rate counts; at least one has.
    labelled : array-like of shape (n_groups, n_classes, n_classes) or None, default=None
        Answers whose label is back, by group, label and answer. None is none.
    outstanding : array-like of shape (n_groups, n_classes) or None, default=None
        Answers whose label is not back, by group and answer.

    Examples
    --------
    >>> from skfairdp.fairness import RateConstraints, RateGate, RateParity
    >>> parity = RateConstraints([RateParity("true_positive_rate", 0.2)], ["f", "m"], [0, 1])
    >>> labelled = [[[90, 0], [40, 60]], [[90, 0], [30, 70]]]  # true positive rates .6 and .7 of a hundred each
    >>> gate = RateGate(parity, labelled=labelled)
    >>> gate.worst_case().round(2).tolist()  # f - m <= .2 and m - f <= .2
    [-0.3, -0.1]
    >>> gate.run([1] * 60, [1] * 60).sum()  # men may be told 1 until all of them could turn out right
    np.int64(50)
    >>> gate.run([0, 1], [0, 1]).tolist()  # women may be told no 0 either, which could turn out wrong
    [False, False]
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
        enough = self._known[1] >= self.min_count
        found: NDArray[np.bool_] = (enough | (self.constraints.coefficients == 0)).all(axis=(1, 2))
        return found

    def worst_case(self) -> Array:
        """Return by how much outstanding labels can break each inequality; NaN where it is not in force.

        Returns
        -------
        ndarray of shape (n_inequalities,)
            At most 0: it holds whatever comes back.
        """
        return np.where(self.in_force, self._worst(self._outstanding), np.nan)

    def is_stuck(self) -> bool:
        """Return whether no group may be told anything, until a label comes back or a person decides."""
        return not any(
            self._fits(self._one(z, k), self._limits()) for z in range(self.n_groups) for k in range(self.n_classes)
        )

    def run(self, groups: ArrayLike, labels: ArrayLike) -> NDArray[np.bool_]:
        """Process a stream in order: what is admitted is outstanding from then on, the rest is refused.

        Parameters
        ----------
        groups, labels : array-like of shape (n_rows,)
            Integer codes of each row's group and answer.

        Returns
        -------
        ndarray of shape (n_rows,), bool
            True where the row was admitted.
        """
        cells = np.asarray(groups, dtype=np.int64) * self.n_classes + np.asarray(labels, dtype=np.int64)
        limits, admitted, rest = self._limits(), np.zeros(len(cells), dtype=bool), np.arange(len(cells))
        # Answers only ever raise a worst case, so that "all rows up to here fit" is decided by bisection, and an answer
        # that is refused once is refused for the rest of the call.
        while len(rest):
            some = self._longest(cells[rest], limits)
            admitted[rest[:some]] = True
            self._outstanding += self._counted(cells[rest[:some]])
            refused, rest = rest[some : some + 1], rest[some + 1 :]
            rest = rest[~np.isin(cells[rest], cells[refused])]
        return admitted

    def _longest(self, cells: NDArray[np.int64], limits: Array) -> int:
        """How many of these rows fit, one after the other."""
        if self._fits(self._counted(cells), limits):
            return len(cells)
        low, high = 0, len(cells)  # fits, does not
        while high - low > 1:
            middle = (low + high) // 2
            if self._fits(self._counted(cells[:middle]), limits):
                low = middle
            else:
                high = middle
        return low

    def _fits(self, more: NDArray[np.int64], limits: Array) -> bool:
        return bool((self._worst(self._outstanding + more) <= limits).all())

    def _limits(self) -> Array:
        """How large each worst case may become: 0, or what it is already; anything where it is not in force."""
        return np.where(self.in_force, np.maximum(self._worst(self._outstanding), TOLERANCE), np.inf)

    def _worst(self, outstanding: NDArray[np.int64]) -> Array:
        hits, sizes = self._known
        # Whatever can count for a rate does and all else stays away, or the other way round.
        hit, missed = self._possible
        up, down = _with_sum(outstanding @ hit), _with_sum(outstanding @ missed)
        highest = (hits + up) / np.maximum(sizes + up, 1)
        lowest = hits / np.maximum(sizes + down, 1)
        slopes = self.constraints.coefficients
        worst: Array = (np.maximum(slopes, 0) * highest + np.minimum(slopes, 0) * lowest).sum(axis=(1, 2))
        return worst - self.constraints.bounds

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

    def _one(self, z: int, k: int) -> NDArray[np.int64]:
        return self._counted(np.array([z * self.n_classes + k]))

    def _counted(self, cells: NDArray[np.int64]) -> NDArray[np.int64]:
        shape = self.n_groups, self.n_classes
        return np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)


def _with_sum(by_group: Any) -> Array:
    found: Array = np.vstack([by_group, by_group.sum(axis=0)])
    return found
