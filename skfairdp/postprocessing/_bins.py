"""What private thresholds release: scores by cell of a fine grid, then rows by bin of the score, group and label."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import minimize
from scipy.special import logit, softmax
from scipy.stats import norm

from skfairdp._transport import TablesOfScores
from skfairdp._typing import Bools, Codes, Floats, Ints
from skfairdp.fairness import RateConstraints, RateParity, gaps_of
from skfairdp.privacy import DpEvent, GaussianMechanism, NoiseSource, PoissonSample, compose

GRID = 128  # cells of equal width
MOST_BINS = 32
FOR_EDGES = 0.2  # of the squared cost: where bins end matters less than what they hold
FOR_SIZES = 0.02  # of the squared cost: what a guess needs of how large groups are is little
FOR_LOOK = 0.1  # of the squared cost: a tenth leaves rates of 1,000 rows a noise of about .03 at ε = 1
HELD = 5  # one row in five is looked at, and teaches nothing, where rows are kept aside
#: Up to this ε a network that guesses groups is looked at by the rows that taught it: the bound on the gap held in 99
#: of 100 fits of 2,000 rows at ε = 2, in 95 of 100 at 4, and in 36 of 40 of 4,000 rows at 8. So it did of few features
#: only. Groups that are right for having been seen are about as many as features, and a rate of n rows is off by √n of
#: them: of 1,500 rows at ε = 2 the bound held in 39 of 40 fits with 30 features, in 40 of 60 with 150.
BY_HEART = 2.0
HOPELESS = 0.3  # noise of all counts together, as a share of the rows: answers turned around by it cost most there
ROWS_PER_NOISE = 10.0  # a cell of the table holds that many standard deviations of its noise, on average
ROWS_BY_KIND = 5.0  # where kinds of rows divide each bin again: what a smooth table says of a cell counts for more


@dataclass(frozen=True)
class RowsAside(TablesOfScores):
    """A plan whose look is at rows that taught nothing, and where a group may be guessed beside sizes of all."""

    n_kinds: int = 1
    guess: Any = None
    n_features: int = 0  # that what guesses reads
    #: One row in so many is looked at.
    one_in: ClassVar[int] = HELD
    #: How clearly a row's features speak for a group is told in up to so many ranges, while each leaves enough bins.
    ranges: ClassVar[tuple[int, ...]] = (4, 3, 2)
    enough_bins: ClassVar[int] = 4

    @property
    def event(self) -> DpEvent:
        """All releases."""
        raise NotImplementedError

    @property
    def sizes(self) -> GaussianMechanism:
        """For the rows of each group, beside which the group is guessed."""
        return self._of(FOR_SIZES)

    @property
    def n_ranges(self) -> int:
        """Kinds of each group that is guessed."""
        return max(1, self.n_kinds // self.n_groups)

    @property
    def clearness(self) -> GaussianMechanism | None:
        """For the rows by guessed group and by how clear the guess is; None where these are not told apart."""
        return None

    @property
    def n_counted(self) -> float:
        """Rows of the tables, on average, or fewer: with a network that guesses as many as if some were kept aside."""
        return self.n_rows * (1 - 1 / self.one_in) if self.n_kinds > 1 else float(self.n_rows)

    @property
    def keeps_aside(self) -> bool:
        """Whether others are looked at than taught, or all rows are both: what follows from noisy counts alone learns
        none by heart, and a network that guesses the group may."""
        return self.n_kinds > 1

    def kept_aside(self, n_rows: int, noise: NoiseSource) -> tuple[Bools, Bools]:
        """Draw the rows that teach and those of the look: each by itself, whatever it holds, so that they stand for
        rows to come.
        The draw is secret: in whatever order rows come, a record that is replaced changes no other row's place."""
        held = np.full(n_rows, not self.keeps_aside)
        if not self.keeps_aside:
            return held, held
        held[PoissonSample(1 / self.one_in).draw(n_rows, noise)] = True
        return ~held, held


@dataclass(frozen=True)
class BinsPlan(RowsAside):
    """Two tables of counts. A record is in one cell of each: another one in its place moves two cells by one. With a
    ``guess`` the tables get their ``share`` of the squared cost, and rows are of several kinds, by the guessed group.
    What guesses it is released before, so that a row's kind follows from the row, which is in one cell as ever."""

    @property
    def keeps_aside(self) -> bool:
        """With an ε by which a network learns rows by heart, or with so many features of them that it shows."""
        return self.n_kinds > 1 and (self.epsilon > BY_HEART or self.n_features**2 > self.n_rows)

    @property
    def histogram(self) -> GaussianMechanism:
        """For the scores by cell of the grid."""
        return self._of(FOR_EDGES / 2 if self.n_ranges > 1 else FOR_EDGES)

    @property
    def clearness(self) -> GaussianMechanism | None:
        """For the rows by guessed group and by how clear the guess is; None where these are not told apart."""
        return self._of(FOR_EDGES / 2) if self.n_ranges > 1 else None

    @property
    def table(self) -> GaussianMechanism:
        """For the rows by bin, group and label."""
        return self._of(1 - FOR_EDGES - FOR_LOOK - (FOR_SIZES if self.n_kinds > 1 else 0))

    @property
    def look(self) -> GaussianMechanism:
        """For the answers to rows that taught no threshold, by group and label."""
        return self._of(FOR_LOOK)

    @property
    def snr_too_low(self) -> bool:
        """Whether noise is going to say more of the rates than the rows: a function of public numbers."""
        return self.table.sigma * math.sqrt(2 * self.n_groups * self.n_cells) > HOPELESS * self.n_counted

    @property
    def n_bins(self) -> int:
        """As many as the noise lets one tell apart: a function of public numbers."""
        rows = ROWS_PER_NOISE if self.n_kinds == 1 else ROWS_BY_KIND
        cells = self.n_counted / (rows * self.table.sigma)
        return int(np.clip(cells / (2 * self.n_groups * self.n_kinds), 2, MOST_BINS))

    @property
    def n_cells(self) -> int:
        """Of kinds of rows and bins."""
        return self.n_kinds * self.n_bins

    @property
    def event(self) -> DpEvent:
        """All releases, as if every row were in each of them."""
        tables = self.histogram.event, self.table.event, self.look.event
        if self.n_kinds == 1:
            return compose(*tables)
        told = () if self.clearness is None else (self.clearness.event,)
        tables = compose(*tables, self.sizes.event, *told)
        return tables if self.guess is None else self.guess.event_with(tables)

    @property
    def releases(self) -> tuple[str, ...]:
        """In words, for the ledger."""
        cells = "bin of the score" if self.guess is None else "guessed group, bin of the score"
        before = () if self.guess is None else ("noisy counts of groups", *self.guess.releases)
        before += () if self.clearness is None else ("a noisy histogram of how clear guesses are",)
        return (
            *before,
            "a noisy histogram of scores",
            f"noisy counts by {cells}, group and label",
            "noisy counts of answers by group and label",
        )

    def release(
        self, scores: Floats, groups: Codes, y: Codes, noise: NoiseSource, kinds: Codes | None = None
    ) -> tuple[Floats, Floats]:
        """Release where bins end, and what they hold: those of each kind of rows after those of another."""
        kinds = np.zeros(len(scores), dtype=np.int64) if kinds is None else kinds
        fine = np.bincount(np.minimum((scores * GRID).astype(np.int64), GRID - 1), minlength=GRID)
        edges = edges_from(self.histogram.release(fine, noise), self.n_bins, by_doubt=self.n_kinds > 1)
        shape = (self.n_kinds, len(edges) + 1, self.n_groups, 2)
        cells = np.ravel_multi_index((kinds, bins_of(scores, edges), groups, y), shape)
        return edges, self.table.release(np.bincount(cells, minlength=math.prod(shape)).reshape(-1, *shape[2:]), noise)


def edges_from(histogram: Floats, n_bins: int, *, by_doubt: bool = False) -> Floats:
    """Where bins of about equally many rows end, from noisy counts; 1/2, the model's own threshold, is among them.
    ``by_doubt`` a row counts as the standard deviation of its label: few bins go where rules may answer otherwise."""
    rows = np.maximum(histogram, 0.0)
    if by_doubt:
        middles = (np.arange(GRID) + 0.5) / GRID
        rows = rows * np.sqrt(middles * (1 - middles))
    ends = even_places(rows, n_bins) + 1
    ends[np.abs(ends - GRID // 2).argmin()] = GRID // 2  # the nearest one
    ends = np.unique(ends)
    return ends[ends < GRID] / GRID


def even_places(rows: Floats, n_parts: int) -> Ints:
    """Where to cut counts of rows in the order of their cells, for parts of as many rows each."""
    seen = np.cumsum(rows)
    return np.searchsorted(seen, np.arange(1, n_parts) / n_parts * max(float(seen[-1]), 1e-9))


def bins_of(scores: Floats, edges: Floats) -> Ints:
    """The bin of every score."""
    return np.searchsorted(edges, scores, side="right").astype(np.int64)


_NEAREST = 0.01  # scores closer than this to 0 or 1 count as that far away
_RIDGE = (0.1, 0.5)  # of intercepts and slopes: weak, and enough where a group has next to no rows


def smoothed_counts(counts: Floats, edges: Floats, sigma: float) -> tuple[Floats, float]:
    """Draw noisy counts towards a smooth table, as far as their noise explains the difference; post-processing. There
    the log-odds of each group and label are linear in those of the score, with intercepts of their own for each kind of
    rows: two numbers, where the counts have one for each bin. With many rows the counts win: an estimate of James and
    Stein, whose weight goes to one."""
    n_bins = len(edges) + 1
    table, kinds = counts.reshape(len(counts), -1), np.arange(len(counts)) // n_bins
    basis = np.column_stack([np.eye(kinds[-1] + 1)[kinds], _standard_scores(table, edges)])
    smooth = _smooth_table(table, basis, sigma)
    apart = table - smooth
    squared = float(np.square(apart).sum())
    weight = max(0.0, 1.0 - sigma**2 * apart.size / squared) if squared > 0 else 1.0
    return (smooth + weight * apart).reshape(counts.shape), weight


def _standard_scores(table: Floats, edges: Floats) -> Floats:
    """Log-odds of the middle of each bin, with mean 0 and deviation 1 over the rows."""
    ends = np.concatenate([[0.0], edges, [1.0]])
    odds = np.resize(logit(np.clip((ends[:-1] + ends[1:]) / 2, _NEAREST, 1 - _NEAREST)), len(table))
    rows = np.maximum(table.sum(1), 0.0)
    if not rows.any():
        rows = np.ones(len(table))
    centred = odds - np.average(odds, weights=rows)
    return np.asarray(centred / max(float(np.sqrt(np.average(np.square(centred), weights=rows))), 1e-6))


def _smooth_table(table: Floats, basis: Floats, sigma: float) -> Floats:
    """Least squares in units of what noise and sampling move a count by; a bin keeps the rows that it has."""
    rows = np.maximum(table.sum(1, keepdims=True), 0.0)
    n_terms = basis.shape[1]
    ridge = np.repeat([*[_RIDGE[0]] * (n_terms - 1), _RIDGE[1]], table.shape[1])
    variance = sigma**2 + rows / 4 + 1e-9

    def loss(flat: Floats) -> tuple[float, Floats]:
        shares = softmax(basis @ flat.reshape(n_terms, -1), axis=1)
        apart = rows * shares - table
        slope = apart / variance * rows
        of_odds = shares * (slope - (slope * shares).sum(1, keepdims=True))
        value = 0.5 * (np.square(apart) / variance).sum() + 0.5 * (ridge * np.square(flat)).sum()
        return float(value), (basis.T @ of_odds).ravel() + ridge * flat

    found = minimize(loss, np.zeros(len(ridge)), jac=True, method="L-BFGS-B").x
    return np.asarray(rows * softmax(basis @ found.reshape(n_terms, -1), axis=1))


def owed_to_learning(counts: Floats, answers: Floats, by_heart: float) -> float:
    """By how much closer selection rates of groups may be on rows that taught the scores: a score follows so much of
    what a row's label is off by, and groups are apart by that part of what their labels are off by on average. Rows
    that lie so close to where a rule changes its answer may be answered otherwise. Post-processing."""
    n_bins = answers.shape[1]
    table = np.maximum(counts.reshape(-1, n_bins, *counts.shape[1:]).sum(axis=0), 0.0)
    rows, sizes = table.sum(axis=(1, 2)), np.maximum(table.sum(axis=(0, 2)), 1e-9)
    rates = np.maximum.accumulate(table[..., 1].sum(axis=1) / np.maximum(rows, 1e-9))
    off = (table[..., 1] - table.sum(axis=2) * rates[:, None]).sum(axis=0) / sizes
    changes = (rates[1:] + rates[:-1]) / 2
    apart = by_heart * float(np.ptp(np.clip(off, -1.0, 1.0)))
    at = np.interp(np.add.outer([-apart, 0.0, apart], changes), np.r_[0.0, changes, 1.0], np.r_[0.0, rows.cumsum()])
    near = np.diff(at, axis=0).max(axis=0) / max(float(rows.sum()), 1e-9)
    return min(1.0, float((np.abs(np.diff(answers, axis=1)) @ near).max()))


def owed_to_choosing(counts: Floats) -> Floats:
    """By how much more often answers of bins are right to the rows of each group that have chosen them, at most: of as
    many rows of either class most are taken to be right, and on others either answer is right as often."""
    rows = np.maximum(counts, 0.0).sum(axis=2)
    apart = (counts[..., 1] - counts[..., 0]) / np.sqrt(np.maximum(rows, 1.0))
    return np.asarray((np.sqrt(rows) * norm.pdf(apart)).sum(axis=0) / np.maximum(rows.sum(axis=0), 1e-9))


def words_of_noise(constraints: RateConstraints, counts: Any, *, changed: bool, rows: str, owner: str) -> str | None:
    """Return what to say where rows are too few for what is asked of them, or for the gap to begin with; else None."""
    sizes = constraints.sizes_of_rates(np.asarray(counts, dtype=np.float64).sum(2))
    smallest = int(sizes[(constraints.coefficients != 0).any(0)].min())
    parities = [one for one in constraints.constraints if isinstance(one, RateParity) and one.ratio_bound is None]
    asked = min((one.factor_and_slack[1] for one in parities), default=1.0)
    gap, chance = chance_of_gap(constraints, counts)
    found = []
    if 0 < asked < 1 / (2 * math.sqrt(smallest)):
        found.append(
            f"The bound is {asked:g}, but {smallest} {rows} of the smallest group determine a rate only to about "
            f"±{1 / (2 * math.sqrt(smallest)):.2g}: expect a gap of that size on other rows. Set a larger bound, or "
            f"give {math.ceil(round(1 / (4 * max(asked, 1e-6) ** 2), 6))} of each group."
        )
    if changed and 0 < gap < 2 * chance:
        found.append(
            f"The gap before was {gap:.2g}, and on so few {rows} chance alone makes gaps of up to {2 * chance:.2g}: "
            "answers were changed to suit these rows, and the gap on others may grow. Leave the model as it is, or "
            f"give {math.ceil(4 * chance**2 / gap**2)} times as many."
        )
    return f"{owner} follows noise. {' '.join(found)}" if found else None


def chance_of_gap(constraints: RateConstraints, counts: Any) -> tuple[float, float]:
    """Return the largest gap, or violation of a bound, and its standard error if rows were drawn anew."""
    gaps = gaps_of(constraints)
    violations = gaps.violations(counts)
    worst = int(violations.argmax())
    return float(violations[worst]), math.sqrt(float(gaps.variances(counts)[worst]))
