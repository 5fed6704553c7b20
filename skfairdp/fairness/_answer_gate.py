"""The gate for any constraint on rates of answers: ratios, bounds, several at once."""

import numpy as np
from numpy.typing import NDArray

from skfairdp._typing import ArrayLike
from skfairdp.fairness._gaps import as_counts, tally
from skfairdp.fairness._gate_stream import TOLERANCE
from skfairdp.fairness._rates import RateConstraints

Array = NDArray[np.float64]

_LEAST, _MOST = 256, 2**20  # rows that are worth a look at all of them together
_ROUNDING = 1e-9  # far above that of any rate, and of what is added to one


class AnswerGate:
    """Decide which answers keep constraints on the rates of answers, over all answers given so far.

    It is the rule of :class:`FairnessGate` for other constraints. With E = Σ max(0, left-hand side - right-hand side)
    over all inequalities, an answer is admissible if, counted, it lowers E, or leaves E as it is with no inequality of
    its group broken. While a group has fewer than ``min_count`` answers, it may have any (cold start). A group without
    answers takes part in no comparison. What follows: no answer outside a cold start raises E; and **once every group
    has** ``min_count`` **answers and E = 0, every inequality holds for the rest of the stream**.

    Notes
    -----
    A ratio r compares small numbers badly. Where a class was given to m members of each of two groups of one size, one
    more to either breaks the ratio unless m / (m + 1) >= r: m has to be 4 for the four-fifths rule. A
    ``difference_bound`` beside the ratio leaves room.
    """

    def __init__(self, constraints: RateConstraints, *, min_count: int = 50, counts: ArrayLike | None = None) -> None:
        if constraints.needs_labels:
            raise ValueError("AnswerGate holds constraints on selection rates. RateGate holds those that need labels.")
        self.constraints, self.min_count = constraints, int(min_count)
        self.n_groups, self.n_classes = len(constraints.groups), len(constraints.classes)
        given = np.zeros((self.n_groups, self.n_classes)) if counts is None else counts
        self._counts = as_counts(given, (self.n_groups, self.n_classes), owner="AnswerGate")
        self._hits = constraints.events[:, 0].T  # (n_classes, n_rates): which answers a rate counts
        # An inequality has two terms at most. Lines are the groups, then all rows, then nobody, whose rate is 0.
        self._slopes = np.zeros((constraints.n_inequalities, 2))
        self._lines, self._places = np.full((2, *self._slopes.shape), self.n_groups + 1)
        self._places[:] *= len(self._hits.T)
        line, group, rate, slope = constraints.terms
        which = np.append(0, line[1:] == line[:-1]).astype(np.int64)  # the first or second of its inequality
        self._slopes[line, which], self._lines[line, which] = slope, group
        self._places[line, which] = group * len(self._hits.T) + rate
        # which inequalities speak of a group, by itself or among all rows
        by_itself = (self._lines[None] == np.arange(self.n_groups)[:, None, None]).any(axis=2)
        self._speaks = by_itself | (self._lines == self.n_groups).any(axis=1)

    @property
    def counts(self) -> NDArray[np.int64]:
        """Answers given so far, shape (n_groups, n_classes); a copy."""
        return self._counts.copy()

    def excess(self) -> float:
        """Return E = Σ max(0, left-hand side - right-hand side), by how much the answers break the constraints."""
        over = self._over(self._counts)
        return float(over[over > TOLERANCE].sum())

    def admissible(self) -> NDArray[np.bool_]:
        """Return which groups may be given which class next, shape (n_groups, n_classes)."""
        excess, found = self.excess(), np.ones_like(self._counts, dtype=bool)
        for z, k in np.ndindex(found.shape):
            found[z, k] = self._counts[z].sum() < self.min_count or self._try(z, k, excess) is not None
        return found

    def is_stuck(self) -> bool:
        """Return whether no group may have any class: nothing is answered until counts come from outside."""
        return not self.admissible().any()

    def starved(self) -> NDArray[np.int64]:
        """Return classes that no group may have because so few have had them that one more would break a ratio."""
        ratios = self.constraints.comparisons.factor
        enough = np.where(ratios < 1, ratios / np.maximum(1 - ratios, 1e-12), 0.0)  # in two groups of one size
        of_class = (self._hits[:, self.constraints.comparisons.rate] * enough).max(axis=1, initial=0.0)
        few = (self._counts < of_class).all(axis=0)
        return np.flatnonzero(few & ~self.admissible().any(axis=0)) if few.any() else np.flatnonzero(few)

    def run(self, groups: ArrayLike, labels: ArrayLike) -> NDArray[np.bool_]:
        """Process a stream in order, count every admissible row and refuse the others."""
        z, k = np.asarray(groups, dtype=np.int64), np.asarray(labels, dtype=np.int64)
        mask, start, sure = np.zeros(len(z), dtype=bool), 0, 0
        while start < len(z):
            sure = self._rows_that_fit(z[start : start + 2 * max(sure, _LEAST)])
            some = slice(start, start + (sure or _LEAST))
            if sure:
                mask[some] = True
                self._counts += tally(z[some], k[some], (self.n_groups, self.n_classes))
            else:
                mask[some] = self._row_by_row(z[some], k[some])
            start = some.stop
        return mask

    def _row_by_row(self, groups: NDArray[np.int64], labels: NDArray[np.int64]) -> NDArray[np.bool_]:
        mask, excess = np.zeros(len(groups), dtype=bool), self.excess()
        sizes = self._counts.sum(axis=1)
        for i, (z, k) in enumerate(zip(groups.tolist(), labels.tolist(), strict=True)):
            if sizes[z] < self.min_count:  # a cold start may do anything
                self._counts[z, k] += 1
                excess = self.excess()
            else:
                raised = self._try(z, k, excess)
                if raised is None:
                    continue
                self._counts[z, k] += 1
                excess = raised
            sizes[z] += 1
            mask[i] = True
        return mask

    def _try(self, z: int, k: int, excess: float) -> float | None:
        """E after one more answer, which is not counted; None where that is not admissible."""
        self._counts[z, k] += 1
        over = self._over(self._counts)
        self._counts[z, k] -= 1
        broken = over > TOLERANCE
        raised = float(over[broken].sum())
        if raised < excess - TOLERANCE:
            return raised
        return raised if raised <= excess + TOLERANCE and not (broken & self._speaks[z]).any() else None

    def _over(self, counts: NDArray[np.int64]) -> Array:
        """Left-hand side less right-hand side of every inequality; 0 where a group has no answer yet."""
        hits, sizes = counts @ self._hits, counts.sum(axis=1)
        rates = np.zeros((self.n_groups + 2, hits.shape[1]))
        rates[:-2] = hits / np.maximum(sizes, 1)[:, None]
        rates[-2] = hits.sum(axis=0) / max(sizes.sum(), 1)
        over: Array = (self._slopes * rates.ravel()[self._places]).sum(axis=1) - self.constraints.bounds
        return over if sizes.all() else np.where(self._known(sizes), over, 0.0)

    def _known(self, sizes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether all that an inequality compares has an answer."""
        found: NDArray[np.bool_] = np.array([*(sizes > 0), sizes.any(), True])[self._lines].all(axis=1)
        return found

    def _rows_that_fit(self, groups: NDArray[np.int64]) -> int:
        """How many of the next rows are admitted, whatever their labels are; 0 instead of a few.

        A rate of n answers moves by at most 1/(n + 1) + ... + 1/(n + m) <= log(1 + m / n) while m more are counted. If
        no inequality can be broken by the moves of its rates, then every row, asked in its turn, finds E = 0.
        """
        sizes = self._counts.sum(axis=1)
        room, some = -_ROUNDING - self._over(self._counts), self._known(sizes)
        n_rows = min(len(groups), _MOST) if room[some].min(initial=0.0) >= 0 else 0
        while n_rows >= _LEAST:
            more = np.array([*np.bincount(groups[:n_rows], minlength=self.n_groups), n_rows, 0])
            with np.errstate(divide="ignore", invalid="ignore"):
                moves = np.where(more > 0, np.log1p(more / np.array([*sizes, sizes.sum(), 1])), 0.0)
                moved = (np.abs(self._slopes) * moves[self._lines]).sum(axis=1)
            if (moved <= room)[some].all() and np.isfinite(moved).all():
                return n_rows
            n_rows //= 2
        return 0
