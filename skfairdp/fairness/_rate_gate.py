"""Gates and bounds of rates: of answers, and of those whose labels come back later."""

import itertools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache, cached_property, lru_cache
from numbers import Real
from typing import Any

import numpy as np
from scipy.special import betaincinv, ndtri

from skfairdp._typing import ArrayLike, Bools, Floats, Ints, MaybeArray, Values
from skfairdp.fairness._gate import as_counts, decided_in_blocks
from skfairdp.fairness._gate_stream import TOLERANCE
from skfairdp.fairness._rates import RateConstraints, RateParity, highest_of_others

Ends = tuple[Floats, Floats]


class RateGate:
    """Decide which answers keep constraints on rates, of rows whose labels come back later, in any order or never. For
    each inequality the gate computes the **worst case**: left-hand side less right-hand side for the outstanding rows
    that come back, and the labels, that break it most. It is in force once every rate in it counts ``min_count``
    labels. An answer is admissible if it makes no worst case above 0 of an inequality in force larger. As a label that
    comes back only takes choices away, **an inequality in force whose worst case is at most 0 is never broken from then
    on**; one that starts above 0 is never broken by more than its worst case was.

    A group is compared with another by their own rows, so its worst case is reached by some labels: nothing is refused
    that could not do harm. With ``method="to_overall"`` the worst case of either side is added up, which may refuse
    more.
    """

    def __init__(
        self,
        constraints: RateConstraints,
        *,
        min_count: int = 50,
        labelled: MaybeArray = None,
        outstanding: MaybeArray = None,
    ) -> None:
        self.constraints, self.min_count = constraints, max(int(min_count), 1)
        self.n_groups, self.n_classes = len(constraints.groups), len(constraints.classes)
        z, k = self.n_groups, self.n_classes
        flat = None if labelled is None else np.asarray(labelled).reshape(z, -1)
        self._labelled = as_counts(flat, (z, k * k), owner="RateGate").reshape(z, k, k)
        self._outstanding = as_counts(outstanding, (z, k), owner="RateGate")

    @property
    def outstanding(self) -> Ints:
        """Answers whose label is not back, shape (n_groups, n_classes); a copy."""
        return self._outstanding.copy()

    @property
    def in_force(self) -> Bools:
        """Which inequalities count: those with ``min_count`` labels behind each of their rates."""
        line, group, rate, _ = self.constraints.terms
        too_few = self._known[1][group, rate] < self.min_count
        return np.asarray(np.bincount(line, too_few, minlength=self.constraints.n_inequalities) == 0)

    def worst_case(self) -> Floats:
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

    def run(self, groups: ArrayLike, labels: ArrayLike) -> Bools:
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

    def _longest(self, cells: Ints, start: Ends) -> int:
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

    def _fits(self, cells: Ints, start: Ends) -> bool:
        """Whether these answers leave every worst case below 0, or as it was at the start. A pair of groups is harmed
        by one of its ends, if that has moved. So each end that has moved is held against the furthest of all others: no
        pair needs a look of its own."""
        now = self._ends(self._outstanding + self._counted(cells))
        return not any(
            ((now[one] > start[one]) & self._breaks(now[one], highest_of_others(now[1 - one]))).any() for one in (0, 1)
        )

    def _alone(self) -> Bools:
        """Which answers would be admitted as the next row, by group and class."""
        now = self._ends(self._outstanding)
        return np.stack([self._alone_of_class(k, now) for k in range(self.n_classes)], axis=1)

    def _alone_of_class(self, k: int, now: Ends) -> Bools:
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

    def _breaks(self, one: Floats, other: Floats) -> Bools:
        return np.asarray(one + other - self.constraints.comparisons.slack > TOLERANCE)

    def _ends(self, outstanding: Ints) -> Ends:
        """How far each rate can still go: up, times its factor, and down, with its sign turned.
        Of two groups that are compared the sum of the two is bounded. What is not in force is out of reach."""
        asked = self.constraints.comparisons
        highest, lowest = self._extremes(outstanding)
        up, down = asked.left(highest), -asked.right(lowest)
        return np.where(self._counts_for_all, up, -np.inf), np.where(self._counts_for_all, down, -np.inf)

    @cached_property
    def _counts_for_all(self) -> Bools:
        """Whether enough labels are back for a rate to count, by line and comparison."""
        return self.constraints.comparisons.of_comparisons(self._known[1], np.inf) >= self.min_count

    def _extremes(self, outstanding: Ints) -> tuple[Floats, Floats]:
        """The highest and the lowest that each rate of each group, and of all rows, can become."""
        hits, sizes = self._known
        # Whatever can count for a rate does and all else stays away, or the other way round.
        hit, missed = self._possible
        up, down = _with_sum(outstanding @ hit), _with_sum(outstanding @ missed)
        return (hits + up) / np.maximum(sizes + up, 1), hits / np.maximum(sizes + down, 1)

    @cached_property
    def _known(self) -> tuple[Floats, Floats]:
        """Rows that each rate of each group counts, and those it is a share of; all groups in the last line."""
        hits = np.einsum("ayk,ryk->ar", self._labelled, self.constraints.events)
        return _with_sum(hits), _with_sum(self._labelled.sum(axis=2) @ self.constraints.cells.T)

    @cached_property
    def _possible(self) -> tuple[Floats, Floats]:
        """Whether a row with this answer can, by its label, count for a rate, and against it; (n_classes, n_rates)."""
        events = self.constraints.events
        return events.max(axis=1).T, (self.constraints.cells[:, :, None] * (1 - events)).max(axis=1).T

    def _counted(self, cells: Ints) -> Ints:
        return np.bincount(cells, minlength=self.n_groups * self.n_classes).reshape(self.n_groups, self.n_classes)


def _with_sum(by_group: Any) -> Floats:
    return np.asarray(np.vstack([by_group, by_group.sum(axis=0)]))


_LEAST, _MOST = 256, 2**20  # rows that are worth a look at all of them together
_ROUNDING = 1e-9  # far above that of any rate, and of what is added to one


class AnswerGate:
    """Decide which answers keep constraints on the rates of answers, over all answers given so far. With E = Σ max(0,
    left-hand side - right-hand side), an answer is admissible if, counted, it lowers E, or leaves it with no inequality
    of its group broken; a group with fewer than ``min_count`` answers may have any, one without takes part in no
    comparison. So no answer outside a cold start raises E, and **once every group has** ``min_count`` **answers and E =
    0, every inequality holds for the rest of the stream**. Ratios of small numbers break easily: one more of m breaks r
    unless m / (m + 1) >= r; a ``difference_bound`` beside leaves room."""

    def __init__(self, constraints: RateConstraints, *, min_count: int = 50, counts: MaybeArray = None) -> None:
        if constraints.needs_labels:
            raise ValueError("AnswerGate holds constraints on selection rates. RateGate holds those that need labels.")
        self.constraints, self.min_count = constraints, int(min_count)
        self.n_groups, self.n_classes = len(constraints.groups), len(constraints.classes)
        self._counts = as_counts(counts, (self.n_groups, self.n_classes), owner="AnswerGate")
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
    def counts(self) -> Ints:
        """Answers given so far, shape (n_groups, n_classes); a copy."""
        return self._counts.copy()

    def excess(self) -> float:
        """Return E = Σ max(0, left-hand side - right-hand side), by how much the answers break the constraints."""
        over = self._over(self._counts)
        return float(over[over > TOLERANCE].sum())

    def admissible(self) -> Bools:
        """Return which groups may be given which class next, shape (n_groups, n_classes)."""
        excess, found = self.excess(), np.ones_like(self._counts, dtype=bool)
        for z, k in np.ndindex(found.shape):
            found[z, k] = self._counts[z].sum() < self.min_count or self._try(z, k, excess) is not None
        return found

    def is_stuck(self) -> bool:
        """Return whether no group may have any class: nothing is answered until counts come from outside."""
        return not self.admissible().any()

    def starved(self) -> Ints:
        """Return classes that no group may have because so few have had them that one more would break a ratio."""
        ratios = self.constraints.comparisons.factor
        enough = np.where(ratios < 1, ratios / np.maximum(1 - ratios, 1e-12), 0.0)  # in two groups of one size
        of_class = (self._hits[:, self.constraints.comparisons.rate] * enough).max(axis=1, initial=0.0)
        few = (self._counts < of_class).all(axis=0)
        return np.flatnonzero(few & ~self.admissible().any(axis=0)) if few.any() else np.flatnonzero(few)

    def run(self, groups: ArrayLike, labels: ArrayLike) -> Bools:
        """Process a stream in order, count every admissible row and refuse the others."""
        z, k = np.asarray(groups, dtype=np.int64), np.asarray(labels, dtype=np.int64)
        return decided_in_blocks(
            self._counts, z, k, _LEAST,
            fitting=self._rows_that_fit, one_by_one=self._row_by_row, n_others=lambda: _LEAST,
        )  # fmt: skip

    def _row_by_row(self, groups: Ints, labels: Ints) -> Bools:
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

    def _over(self, counts: Ints) -> Floats:
        """Left-hand side less right-hand side of every inequality; 0 where a group has no answer yet."""
        hits, sizes = counts @ self._hits, counts.sum(axis=1)
        rates = np.zeros((self.n_groups + 2, hits.shape[1]))
        rates[:-2] = hits / np.maximum(sizes, 1)[:, None]
        rates[-2] = hits.sum(axis=0) / max(sizes.sum(), 1)
        over: Floats = (self._slopes * rates.ravel()[self._places]).sum(axis=1) - self.constraints.bounds
        return over if sizes.all() else np.where(self._known(sizes), over, 0.0)

    def _known(self, sizes: Ints) -> Bools:
        """Whether all that an inequality compares has an answer."""
        return np.asarray(np.array([*(sizes > 0), sizes.any(), True])[self._lines].all(axis=1))

    def _rows_that_fit(self, groups: Ints) -> int:
        """How many of the next rows are admitted, whatever their labels are; 0 instead of a few. A rate of n answers
        moves by at most 1/(n + 1) + ... + 1/(n + m) <= log(1 + m / n) while m more are counted. If no inequality can be
        broken by the moves of its rates, then every row, asked in its turn, finds E = 0."""
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


_DRAWS = 2000
_REACH = 3.0  # standard deviations
_AT_ONCE = 64  # inequalities, whose draws a processor keeps at hand
_MANY = 10_000  # of more than these only those are drawn that may be the largest


def violation_bounds(
    constraints: RateConstraints, counts: Any, *, level: float = 0.95, noise: Any = 0.0, together: float | None = None
) -> Floats:
    """Upper confidence bounds on the violation of every inequality in the population, each with at least the given
    probability, also for rates of 0 and 1 and groups of few rows or none. **So does the largest of them as a bound on
    the largest violation**: it is at least that of the inequality broken most. Where chance of these rows decides which
    that is, the largest holds with the probability ``together``. Of very many inequalities those that cannot be the
    largest get no more than a number that is not below their own and not above the largest."""
    _check_settings(level, noise)
    laws = np.stack(_laws(constraints, counts, noise))
    # A rate that noise takes beyond [0, 1] makes up for what it does to the others, as far as it may reach there.
    spreads = np.clip(laws, 0.0, 1.0).std(axis=-1, keepdims=True)
    found, most = np.empty(constraints.n_inequalities), np.full(_DRAWS, -np.inf)
    line, group, rate, value = constraints.terms  # in the order of the inequalities
    starts, from_above = np.searchsorted(line, np.arange(len(found) + 1)), (value > 0) == (level > 0.5)
    widths = np.diff(starts)
    places, is_many = np.arange(len(found)), len(found) > _MANY
    if is_many:  # at most so far: neither of two terms is beyond its part with more than half of what is allowed
        tail = 0.0 if together is not None else (1 - level) / 2
        parts = np.quantile(laws, (1 - tail, tail), axis=-1)[:, from_above.astype(int), group, rate]
        reach = value * np.where(value > 0, np.maximum(parts[0], 0.0), np.minimum(parts[1], 1.0))
        found = np.bincount(line, reach).astype(np.float64)
        found = np.minimum(found, np.bincount(line, np.maximum(value, 0.0))) - constraints.bounds
        places = np.argsort(-found, kind="stable")
    alike = (places[widths[places] == width] for width in np.unique(widths))
    largest = -np.inf
    for some in itertools.chain.from_iterable(np.array_split(js, len(js) // _AT_ONCE + 1) for js in alike):
        if is_many and (not len(some) or found[some[0]] <= largest):
            continue
        at = starts[some, None] + np.arange(widths[some[0]])
        terms, factors = (from_above[at].astype(int), group[at], rate[at]), value[at][..., None]
        moved = np.square(factors * spreads[terms])
        room = _REACH * np.sqrt(np.maximum(moved.sum(axis=1, keepdims=True) - moved, 0.0)) / np.abs(factors)
        left = (factors * np.clip(laws[terms], -room, 1 + room)).sum(axis=1)
        at_most, bounds = np.maximum(factors, 0.0).sum(axis=1), constraints.bounds[some, None]
        found[some] = np.minimum(np.quantile(left, level, axis=1), at_most[:, 0]) - bounds[:, 0]
        most = np.maximum(most, (np.minimum(left, at_most) - bounds).max(axis=0))
        largest = max(largest, found[some].max(initial=-np.inf))
        largest = largest if together is None else float(np.quantile(most, together, method="lower"))
    return found if together is None or not len(found) else np.maximum(found, np.quantile(most, together))


def gaps_of(constraints: RateConstraints) -> RateConstraints:
    """The same without slack: what a bound on a difference is broken by is then the difference itself."""
    asked = list(constraints.constraints)
    for i, one in enumerate(asked):
        if isinstance(one, RateParity) and one.ratio_bound is None:
            asked[i] = replace(one, difference_bound=0.0)
    return RateConstraints(tuple(asked), constraints.groups, constraints.classes)


def _check_settings(level: float, noise: Any) -> None:
    if not isinstance(level, Real) or not 0 < level < 1:
        raise ValueError(f"'level' must lie between 0 and 1: it is how often the bound holds. Got {level!r} instead.")
    known = isinstance(noise, Real | np.ndarray) and np.all(np.isfinite(noise))
    if not known or np.any(noise < 0):
        raise ValueError(
            f"'noise' must be a standard deviation: at least 0 (no noise) and finite. Got {noise!r} instead."
        )


def parity_bound(counts: Any, *, level: float = 0.95, noise: float = 0.0) -> float:
    """Upper confidence bound on the largest difference between two groups' rates of being given a class."""
    _check_settings(level, noise)
    try:
        table = np.ma.filled(np.ma.asarray(counts, dtype=np.float64), np.nan)  # what is masked is no count
    except (TypeError, ValueError):  # texts, complex numbers, lines of unlike lengths
        table = np.full((0,), np.nan)
    if table.ndim != 2 or not np.isfinite(table).all():
        raise ValueError("'counts' must be a table of finite numbers, of shape (n_groups, n_classes).")
    if len(table) < 2:
        return float("nan")
    constraints = RateConstraints((RateParity("selection_rate", 0.0),), range(len(table)), range(table.shape[1]))
    return float(violation_bounds(constraints, table[:, None, :], level=level, noise=noise).max())


def rate_bounds(
    constraints: RateConstraints, counts: Any, *, level: float = 0.95, noise: float = 0.0
) -> tuple[Floats, Floats]:
    """Lower and upper confidence bounds on every rate of every group, and of all rows: all of them together."""
    _check_settings(level, noise)
    lower, upper = (np.clip(rates, 0.0, 1.0) for rates in _laws(constraints, counts, noise))
    tail = (1 - level) / (2 * lower[..., 0].size)  # Bonferroni: that all hold at once
    return np.quantile(lower, tail, axis=2), np.quantile(upper, 1 - tail, axis=2)


def _laws(constraints: RateConstraints, counts: Any, noise: Any) -> tuple[Floats, Floats]:
    """Rates that the counts speak for, from below and from above, each (n_groups + 1, n_rates, draws): ``Beta(hits,
    misses + 1)`` and ``Beta(hits + 1, misses)`` are as bounds of Clopper and Pearson at every level (Fay, Proschan &
    Brittain 2015 for differences). Of a group without rows nothing is certified. Behind noise, hits and misses are
    drawn first; a rate beyond [0, 1] is left there."""
    counts = np.asarray(counts, dtype=np.float64)
    events, cells = constraints.events[:, : counts.shape[1]], constraints.cells[:, : counts.shape[1]]
    tables = counts, np.broadcast_to(np.square(noise), counts.shape), events, cells[..., None] - events
    return _laws_of(*((table.shape, np.asarray(table, dtype=np.float64).tobytes()) for table in tables))


@lru_cache(maxsize=8)  # of one table several bounds are asked
def _laws_of(*tables: tuple[tuple[int, ...], bytes]) -> tuple[Floats, Floats]:
    counts, variance, events, others = (np.frombuffer(held).reshape(shape) for shape, held in tables)
    spread = _spread(len(counts) * len(events))  # always the same: bounds are a function of the table
    of_noise, of_rest, of_rate, of_size = spread.reshape(4, len(counts), len(events), _DRAWS)
    hits, misses = (np.einsum("ayk,ryk->ar", counts, w)[..., None] for w in (events, others))
    if np.any(variance):
        hits = hits - np.sqrt(np.einsum("ayk,ryk->ar", variance, events))[..., None] * ndtri(of_noise)
        misses = misses - np.sqrt(np.einsum("ayk,ryk->ar", variance, others))[..., None] * ndtri(of_rest)
    positive, rest, size = np.maximum(hits, 0.0), np.maximum(misses, 0.0), hits + misses
    first = np.where(positive > 0, positive, 1.0), positive + 1
    second = rest + 1, np.where(rest > 0, rest, 1.0)
    with ThreadPoolExecutor(2) as both:  # of hundreds of groups this takes seconds
        lower, upper = both.map(betaincinv, first, second, (of_rate, of_rate))
    lower, upper = np.where(positive > 0, lower, 0.0), np.where(rest > 0, upper, 1.0)
    uncut = hits / np.maximum(size, 1.0)
    found = positive + rest
    shares = np.maximum(found + np.sqrt(found) * ndtri(of_size), 1e-9)
    shares /= shares.sum(0)
    each = np.where(uncut < 0, uncut, lower), np.where(uncut > 1, uncut, upper)
    low, high = (np.concatenate([rates, (rates * shares).sum(0)[None]]) for rates in each)
    return low, high


@cache
def _spread(n_rates: int) -> Floats:
    """Numbers in (0, 1), evenly spread along the last axis, in an order of its own for each of four per rate."""
    even = np.broadcast_to((np.arange(_DRAWS) + 0.5) / _DRAWS, (4 * n_rates, _DRAWS))
    return np.random.default_rng(0).permuted(even, axis=-1)


#: Sizes are believed that are so many times their noise; no rate of a smaller group is spoken of.
CLEAR_SIZE = 3.0


def noise_of_violations(constraints: RateConstraints, tables: Values, noise: float) -> tuple[Floats, Floats]:
    """By how much the mean of noisy tables of counts breaks each inequality, and the noise in that; post-processing.
    The noise is a standard deviation: infinite of an inequality that cannot be spoken of, as noise hides a group."""
    counts, n = np.mean(tables, axis=0), len(tables)
    sizes = counts.sum(2)
    cells, events = (part[:, : sizes.shape[1]] for part in (constraints.cells, constraints.events))
    rows, n_groups, n_classes = constraints.sizes_of_rates(sizes), len(sizes), counts.shape[2]
    of_size = noise * np.sqrt(cells.sum(1) * n_classes / n) * np.array([1.0] * n_groups + [n_groups**0.5])[:, None]
    clear = rows > CLEAR_SIZE * of_size
    rates = np.nan_to_num(constraints.rates(counts, np.maximum(sizes, 1e-9)))
    # derivatives of each left-hand side by the counts and by the sizes of each group; a rate overall has all groups
    slopes = constraints.coefficients / np.where(clear, rows, 1.0)
    by_count = np.einsum("jar,ryk->jayk", slopes[:, :-1] + slopes[:, -1:], events)
    by_size = -np.einsum("jar,ry->jay", slopes[:, :-1] * rates[:-1] + slopes[:, -1:] * rates[-1], cells)[..., None]
    variance = n * np.square(by_count / n + by_size / n).sum((1, 2, 3))
    known = (clear | (constraints.coefficients == 0)).all((1, 2))
    return constraints.violations(counts, np.maximum(sizes, 1e-9)), np.where(known, noise * np.sqrt(variance), np.inf)
