"""Columns of a table as integer codes: what a value is counted as, and what a code is turned back into. All public."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.random import Generator

from skfairdp._tables._counting import BinSearch
from skfairdp._tables._declared import as_entries, as_numbers, codes_of_entries
from skfairdp._typing import Bools, Codes, Floats, Ints, Pair
from skfairdp._utils import PlainState, as_objects, warn_caller
from skfairdp.exceptions import UtilityWarning
from skfairdp.privacy import GaussianMechanism, NoiseSource

_LINEAR, _OCTAVES = 200, 30  # bins of equal width within bounds, and halvings of the range towards its anchor
_TINY = 1e-300
_WIDE = 16  # bins between bounds in which few rows are looked for
_STEPS = 4  # bins per doubling where there are no bounds
_EXPONENTS = (-30, 60)  # powers of two that an unbounded column is told apart between
_EVIDENCE = 4.0  # standard deviations of noise that the outer bins must exceed to count as occupied
_IN_ONE = 0.9  # of the rows in one bin are not told apart
_OUT_OF_SCALE = 0.1  # of the rows hold numbers that are not told apart, where a fit says so
#: Numbers are counted twice. A bin with more of the rows than this is cut, for the second time, into as many parts as
#: it holds standard deviations of noise: powers of two up to the most.
LOOKS, _HEAVY, _MOST_PARTS = 2, 0.25, 256
_LONGEST = 16 * _STEPS  # bins without bounds that may show together: more leave open even how large the numbers are


@dataclass(frozen=True)
class Column(PlainState):
    """One column: how many codes it has, and how values and codes are exchanged."""

    name: Any
    dtype: Any
    nullable: bool

    @property
    def n_values(self) -> int:
        raise NotImplementedError

    @property
    def null_code(self) -> int:
        return self.n_values

    @property
    def n_codes(self) -> int:
        """Codes that rows are counted by: the values, a missing one where there may be one, and "none of these"."""
        return self.n_values + int(self.nullable) + 1

    @property
    def sampled(self) -> Bools:
        """Codes that may be sampled: all but the last, which stands for values outside the public domain."""
        return np.arange(self.n_codes) < self.n_codes - 1

    def encode(self, values: Any) -> Codes:
        raise NotImplementedError

    def encoding(self, n_rows: int) -> Callable[[Any], Codes]:
        """What encodes values, some at a time, of so many in all."""
        return self.encode

    def on_wide_bins(self) -> "Column":
        """The same for few rows."""
        return self

    def decode(self, codes: Ints, rng: Generator) -> Any:
        raise NotImplementedError


@dataclass(frozen=True)
class CategoryColumn(Column):
    """A column with a public list of values."""

    values: tuple[Any, ...] = ()
    ordered: bool = False

    @property
    def n_values(self) -> int:
        return len(self.values)

    def encode(self, values: Any) -> Codes:
        """Code of each value; one outside the list gets the last."""
        other = self.n_codes - 1
        missing = self.null_code if self.nullable else other
        return codes_of_entries(as_entries(values), self.values, missing=missing, other=other)

    def decode(self, codes: Ints, rng: Generator) -> Any:
        places = np.where(codes < self.n_values, codes, -1)
        if isinstance(self.dtype, pd.CategoricalDtype):
            return pd.Categorical.from_codes(places, categories=pd.Index(self.values), ordered=self.ordered)
        lookup = as_objects([*self.values, None if self.dtype == object else pd.NA])
        if isinstance(self.dtype, np.dtype) and self.dtype.kind in "biuf":
            if self.dtype.kind == "f":
                lookup[-1] = np.nan
            return lookup[: self.n_values + int(self.nullable)].astype(self.dtype)[places]
        return pd.array(lookup[places], dtype=self.dtype)


@dataclass(frozen=True)
class NumberColumn(Column):
    """A column of numbers, cut into bins that start at public or released places."""

    starts: Floats
    high: float
    integer: bool = False

    @property
    def n_values(self) -> int:
        return len(self.starts)

    def encode(self, values: Any) -> Codes:
        """Bin of each value; beyond the bounds counts as the bound, infinity and what is no number as missing."""
        return self.encoding(len(values))(values)

    def encoding(self, n_rows: int) -> Callable[[Any], Codes]:
        return partial(self._encode, BinSearch(self.starts[1:], n_rows))  # what is below the first is in its bin

    def _encode(self, search: BinSearch, values: Any) -> Codes:
        numbers = as_numbers(values)
        bins = search(numbers)
        bins[~np.isfinite(numbers)] = self.null_code if self.nullable else self.n_codes - 1
        return bins

    def on_wide_bins(self) -> "NumberColumn":
        """The same, cut into few bins: of equal width between bounds, else at powers of two."""
        starts = np.linspace(self.starts[0], self.high, _WIDE + 1)[:-1]
        if not _has_bounds(self.starts):
            starts = self.starts[np.isin(np.abs(np.frexp(self.starts)[0]), (0.0, 0.5))]
        return replace(self, starts=_whole(starts) if self.integer else starts)

    def closer(self, noisy: Floats, sigma: float, n_rows: int, *, evenly: bool) -> "NumberColumn":
        """The same, cut more finely where noisy counts show many rows in few bins; itself where they do not."""
        if evenly:
            starts, high = _even_bins(self.starts, self.high, noisy, sigma, _WIDE)
            starts = _whole(starts) if self.integer else starts
            is_same = starts[0] == high or np.array_equal(starts, self.starts)
            return self if is_same else replace(self, starts=starts, high=high)
        ends = np.append(self.starts[1:], self.high)
        starts = finer_starts(self.starts, ends, noisy, _EVIDENCE * sigma, sigma, n_rows, whole=self.integer)
        return self if len(starts) == len(self.starts) else replace(self, starts=starts)

    def decode(self, codes: Ints, rng: Generator) -> Any:
        """Values drawn evenly from each bin."""
        present = codes < self.n_values
        inside = np.where(present, codes, 0)
        ends = np.append(self.starts[1:], np.nextafter(self.high, np.inf))
        low, end = self.starts[inside], ends[inside]
        if self.integer:
            end = np.where(inside == self.n_values - 1, self.high + 1, end)
            numbers = np.minimum(np.floor(low + rng.random(len(codes)) * (end - low)), end - 1)
        else:
            drawn = low + rng.random(len(codes)) * (end - low)
            numbers = np.where(drawn < end, drawn, low)  # rounding may reach the next bin
        kind = getattr(self.dtype, "numpy_dtype", self.dtype)
        if kind.kind in "iuf":
            limits = np.iinfo(kind) if kind.kind in "iu" else np.finfo(kind)
            numbers = np.clip(numbers, float(limits.min), float(limits.max))
        if isinstance(self.dtype, pd.api.extensions.ExtensionDtype):
            out: Any = pd.array(numbers, dtype=self.dtype)
            out[~present] = pd.NA
            return out
        if kind.kind in "iu":
            return numbers.astype(kind)
        numbers = np.where(present, numbers, np.nan)
        return numbers.astype(kind if kind.kind == "f" else np.float64)


def _after(value: float, integer: bool) -> float:
    return value + 1.0 if integer else float(np.nextafter(value, np.inf))


def quantile_starts(values: Floats, n_bins: int, low: float, high: float, integer: bool) -> Floats:
    """Starts of bins with equally many of the (public) values; one that fills a bin alone gets a bin of its own."""
    inside = np.clip(values[np.isfinite(values)], low, high)
    if not len(inside):
        return np.array([low])
    cuts, times = np.unique(
        np.quantile(inside, np.linspace(0, 1, n_bins + 1), method="inverted_cdf"), return_counts=True
    )
    starts = {low, *cuts.tolist(), *(_after(cut, integer) for cut in cuts[times > 1].tolist())}
    return np.array(sorted(start for start in starts if low <= start <= high))


def fine_grid(bounds: tuple[float, float] | None, integer: bool) -> tuple[Floats, float]:
    """Starts of the many bins that private numbers are first counted in, and the largest value of the last. Between
    bounds the bins have equal widths, and ever smaller ones towards 0 (or the lower bound, if 0 lies outside), which
    has a bin of its own; without bounds they grow by a constant factor away from 0, and 1 and -1 have one too."""
    if bounds is None:
        powers = 2.0 ** (np.arange(_EXPONENTS[0] * _STEPS, _EXPONENTS[1] * _STEPS + 1) / _STEPS)
        low, high, anchor = -powers[-1], powers[-1], 0.0
        flags = np.array([-1.0, 1.0])  # have a bin of their own
        starts = np.concatenate([-powers, powers, np.nextafter(flags, np.inf)])
    else:
        low, high = bounds
        anchor = 0.0 if low <= 0 <= high else low
        steps = (high - low) * 2.0 ** -np.arange(1, _OCTAVES)
        starts = np.concatenate([np.linspace(low, high, _LINEAR + 1), anchor - steps, anchor + steps])
    if integer:
        low, high, anchor = float(np.floor(low)), float(np.ceil(high)), float(np.round(anchor))
        if high - low <= _LINEAR:
            return np.arange(low, high + 1), high
        starts = np.ceil(starts)
    starts = np.concatenate([starts, [low, anchor, _after(anchor, integer)]])
    return np.unique(starts[(starts >= low) & (starts <= high)]), high


def merged_grid(starts: Floats, high: float, noisy: Floats, sigma: float, n_bins: int) -> tuple[Floats, float]:
    """Merge fine bins into about ``n_bins`` of equal noisy counts. Post-processing. Outer bins whose counts are within
    the noise are cut off: rows there will count as the nearest bin kept. Where nothing shows, bins are spread between
    public bounds; without any there is one bin, of 0 alone."""
    bounded = _has_bounds(starts)
    occupied = _occupied(noisy, sigma, longest=len(noisy) if bounded else _LONGEST)
    if occupied is None:
        kept = np.unique(np.linspace(0, len(starts) - 1, min(n_bins, len(starts))).astype(int))
        return (starts[kept], high) if bounded else (np.zeros(1), 0.0)
    first, last = occupied
    inside = noisy[first : last + 1]
    reached = np.maximum.accumulate(np.cumsum(inside))
    full = reached[-1] / n_bins
    cuts = np.searchsorted(reached, full * np.arange(1, n_bins)) + 1
    heavy = np.flatnonzero(inside > full)
    kept = np.unique(np.concatenate([[0], cuts, heavy, heavy + 1]))
    kept = kept[kept < len(inside)] + first
    end = high if last == len(starts) - 1 else float(np.nextafter(starts[last + 1], -np.inf))
    return starts[kept], end


def _even_bins(starts: Floats, high: float, noisy: Floats, sigma: float, n_bins: int) -> tuple[Floats, float]:
    """Bins of equal width where wide ones show that few rows are: between bounds from the first run of them that shows
    to the last, and as far on either side of the clearest. Without bounds magnitudes are looked for, on both sides of 0
    at once. Post-processing."""
    if _has_bounds(starts):
        ends, (low, top) = np.append(starts, high), (starts[0], high)
        _, begin, end = _clear_runs(noisy, sigma, _EVIDENCE, len(noisy))
        if len(begin):
            clearest = ends[begin[0]], ends[end[0] + 1]
            first, last = _reach(begin, end)
            low = max(min(2 * clearest[0] - clearest[1], ends[first]), ends[0])
            top = min(max(2 * clearest[1] - clearest[0], ends[last + 1]), high)
        return np.linspace(low, top, n_bins + 1)[:-1], float(top)
    powers = starts[starts > _TINY]
    above, below = noisy[np.searchsorted(starts, powers[:-1])], noisy[np.searchsorted(starts, -powers[1:])]
    _, begin, end = _clear_runs(above + below, math.sqrt(2.0) * sigma, _EVIDENCE, len(above))
    if not len(begin):
        return np.zeros(1), 0.0
    first, last = _reach(begin, end)
    run, doubt = slice(first, last + 1), 2 * sigma * math.sqrt(last + 1 - first)
    inner = 0.0 if noisy[np.searchsorted(starts, 0.0)] > _EVIDENCE * sigma else powers[first]
    is_above, is_below = above[run].sum() > doubt, below[run].sum() > doubt
    outer = powers[last + 1]
    low, top = -outer if is_below else inner, outer if is_above or not is_below else -inner
    return np.linspace(low, top, n_bins + 1)[:-1], float(top)


def _beyond_doubt(n_bins: int) -> float:
    """Standard deviations of noise that none of so many empty bins hardly ever has."""
    return math.hypot(_EVIDENCE, math.sqrt(2 * math.log(n_bins)))


def _clear_runs(noisy: Floats, sigma: float, doubt: float, longest: int) -> tuple[Floats, Ints, Ints]:
    """Evidence, first and last bin of the runs up to the longest that are beyond doubt, from the clearest on."""
    summed, runs = np.concatenate([[0.0], np.cumsum(noisy)]), []
    for length in 2 ** np.arange(len(noisy).bit_length()):
        if length > longest:
            break
        evidence = (summed[length:] - summed[:-length]) / math.sqrt(length)
        begin = np.flatnonzero(evidence > doubt * sigma)
        runs.append(np.stack([evidence[begin], begin, begin + length - 1], axis=1))
    evidence, begin, end = np.concatenate(runs).T
    order = np.argsort(-evidence, kind="stable")
    return evidence[order], begin[order].astype(np.int64), end[order].astype(np.int64)


def _reach(begin: Ints, end: Ints) -> Pair:
    """First and last bin of the first run and of all that do not overlap with what is reached before."""
    low, high = begin[0], end[0]
    for one in range(len(begin)):
        if end[one] < low or begin[one] > high:
            low, high = min(low, begin[one]), max(high, end[one])
    return int(low), int(high)


def _whole(starts: Floats) -> Floats:
    return np.unique(np.ceil(starts))


def _has_bounds(starts: Floats) -> bool:
    """Whether a fine grid lies between bounds that are known."""
    return bool(starts[0] != -(2.0 ** _EXPONENTS[1]))


def _occupied(noisy: Floats, sigma: float, longest: int) -> Pair | None:
    """First and last bin of what is occupied beyond doubt; None where nothing is. Post-processing. Few rows in many
    bins show only together: of all runs up to the ``longest`` the clearest, and on either side the clearest of those
    apart, say where values may lie; inside, the one that ends first says where they begin, and the one that begins last
    where they end. The doubt grows with the number of runs: empty bins hardly ever give evidence."""
    evidence, begin, end = _clear_runs(noisy, sigma, _beyond_doubt(len(noisy)), longest)
    if not len(evidence):
        return None
    if longest < len(noisy):
        low, high = _reach(begin, end)
        inner = (begin >= low) & (end <= high)
        evidence, begin, end = evidence[inner], begin[inner], end[inner]
    left = np.lexsort((-evidence, end))[0]  # the clearest of those that end first
    return int(begin[left]), int(end[np.lexsort((-evidence, -begin))[0]])


def finer_starts(
    starts: Floats, ends: Floats, noisy: Floats, evidence: float, sigma: float, n_rows: int, *, whole: bool
) -> Floats:
    """Starts of a grid of which bins that hold much are cut into parts: years, which are all in one. Post-processing.
    Bins of a single point are not, nor those that lie next to 0, where numbers of all sizes are."""
    inner, outer = np.sort(np.abs([starts, ends]), axis=0)
    wide = _wide(starts, ends, whole) & (outer / 4 <= inner)
    parts = [
        np.linspace(starts[one], ends[one], 2 ** int(math.log2(min(noisy[one] / sigma, _MOST_PARTS))) + 1)
        for one in np.flatnonzero(wide & (noisy > max(evidence, _HEAVY * n_rows)))
    ]
    finer = np.concatenate([starts, *(part[1:-1] for part in parts)])
    return np.unique(np.ceil(finer) + 0.0 if whole else finer)


def _wide(starts: Floats, ends: Floats, whole: bool) -> Bools:
    """Bins of more than a single point."""
    return ends - starts > (1.0 if whole else np.maximum(_TINY, 1e-9 * np.maximum(np.abs(starts), np.abs(ends))))


def look_twice(
    columns: Sequence[Any],
    count: Callable[[Sequence[Any]], Sequence[Ints]],
    mechanism: GaussianMechanism,
    noise: NoiseSource,
    closer: Callable[[Any, Floats], Any],
) -> list[tuple[Any, Floats, float, Floats]]:
    """Release histograms of all columns twice; the second ones are finer where the first show that they have to be.
    Returns each column as it was counted last, its noisy counts with their noise, and the first ones. Where both are of
    the same bins, the counts are their mean."""
    counts = count(columns)
    first = released_together(counts, mechanism, noise)
    finer = [closer(column, line) for column, line in zip(columns, first, strict=True)]
    same = [new is column for new, column in zip(finer, columns, strict=True)]
    second = released_together(counts if all(same) else count(finer), mechanism, noise)
    return [
        (column, (a + b) / 2, mechanism.sigma / math.sqrt(LOOKS), a) if alike else (column, b, mechanism.sigma, a)
        for column, a, b, alike in zip(finer, first, second, same, strict=True)
    ]


def released_together(tables: Sequence[Ints], mechanism: GaussianMechanism, noise: NoiseSource) -> list[Floats]:
    """Several tables of counts in one release, each as one line."""
    ends = np.cumsum([table.size for table in tables])[:-1]
    return np.split(mechanism.release(np.concatenate([table.ravel() for table in tables]), noise), ends)


def release_bins(
    columns: Sequence[Column],
    count: Callable[[Sequence[Column]], list[Ints]],
    mechanism: GaussianMechanism,
    noise: NoiseSource,
    n_bins: int,
    n_rows: int,
    evenly: bool = False,
) -> list[Column]:
    """Columns of numbers with bins that noisy histograms have chosen, those of all columns in two releases."""
    found: list[Column] = []
    hidden, cut, beyond, close = [], [], [], []

    def closer(column: NumberColumn, line: Floats) -> NumberColumn:
        return column.closer(line, mechanism.sigma, n_rows, evenly=evenly)

    looks = look_twice(columns, count, mechanism, noise, closer)
    for given, (column, histogram, sigma, first) in zip(columns, looks, strict=True):
        assert isinstance(given, NumberColumn)
        starts, high = (_even_bins if evenly else merged_grid)(column.starts, column.high, histogram, sigma, n_bins)
        if not _has_bounds(given.starts):
            within = histogram[(column.starts >= starts[0]) & (column.starts <= high)]
            if starts[0] == high == 0.0 and within.sum() <= _EVIDENCE * sigma:
                hidden.append(column.name)
            elif within.sum() + 2 * sigma * math.sqrt(len(within)) < n_rows / 2:
                cut.append(f"{column.name!r} ({starts[0]:.3g} to {high:.3g})")
            if is_out_of_scale(given.starts, first, _EVIDENCE * mechanism.sigma, n_rows):
                beyond.append(repr(column.name))
        ends = np.append(column.starts[1:], column.high + column.integer)
        clear = _beyond_doubt(len(histogram)) * sigma
        if crowd := crowded_bin(column.starts, ends, histogram, clear, n_rows, whole=column.integer):
            close.append(f"{column.name!r} ({crowd})")
        starts = _whole(starts) if column.integer else starts
        found.append(replace(column, starts=starts, high=float(np.floor(high)) if column.integer else high))
    if hidden:
        warn_caller(
            f"The noise hides the range of {', '.join(map(repr, hidden))}, so in all sampled rows these columns are "
            "0. Give their 'bounds', which are public, or raise 'epsilon'.",
            UtilityWarning,
        )
    if cut:
        warn_caller(
            f"The noise hides the range of more than half of the rows in {', '.join(cut)}, and sampled numbers stay "
            "within the range of the others. Give their 'bounds', which are public, or raise 'epsilon'.",
            UtilityWarning,
        )
    say_out_of_scale(beyond, fine_grid(None, False)[0])
    say_close_together(close)
    return found


def is_out_of_scale(starts: Floats, noisy: Floats, evidence: float, n_rows: int) -> bool:
    """Whether a grid without bounds does not tell many of the numbers apart: in its bins next to 0, or the outermost.
    Post-processing. ``evidence`` is what the noise of a single bin hardly reaches."""
    zero = int(np.searchsorted(starts, 0.0))
    near = [] if float(starts[zero + 1]).is_integer() else [zero - 1, zero + 1]
    ends = [0, *near, len(starts) - 1]
    return bool(noisy[ends].sum() > max(evidence * math.sqrt(len(ends)), _OUT_OF_SCALE * n_rows))


def say_out_of_scale(columns: Sequence[str], grid: Floats) -> None:
    """Without bounds a fit tells numbers apart between two sizes only."""
    if columns:
        sizes = np.abs(grid[np.abs(grid) > 1e-300])
        warn_caller(
            f"Many numbers of {', '.join(columns)} are smaller than {sizes.min():.0e} or larger than "
            f"{sizes.max():.0e}, by released counts. Without bounds such numbers are not distinguished: declare "
            "bounds in a schema or by 'bounds', which are public, or scale the columns by a public number.",
            UtilityWarning,
        )


def crowded_bin(starts: Floats, ends: Floats, noisy: Floats, evidence: float, n_rows: int, *, whole: bool) -> str:
    """Between what numbers nearly all rows are that have one bin, which is not of one point; "" where none has."""
    held = np.where(_wide(starts, ends, whole), noisy, -np.inf)
    fullest = int(held.argmax())
    return f"{starts[fullest]:.6g} to {ends[fullest]:.6g}" if held[fullest] > max(_IN_ONE * n_rows, evidence) else ""


def say_close_together(columns: Sequence[str]) -> None:
    """Numbers are told apart by where they are beside 0 and by what parts of that show, and no more closely."""
    if columns:
        warn_caller(
            f"Nearly all numbers of {', '.join(columns)} are, by released counts, so close together that rows that are "
            "sampled hardly tell them apart. Where it matters how they differ, shift and scale the column by public "
            "numbers, narrow its bounds, if they may be narrower by public knowledge, or take FairDPSGDClassifier.",
            UtilityWarning,
        )


def on_simplex(noisy: Floats) -> Floats:
    """Nearest non-negative vectors with the totals of the given ones, as shares; even where the total is not positive.
    Rows of a matrix are projected one by one (Euclidean projection; Duchi et al. 2008)."""
    rows = np.atleast_2d(np.asarray(noisy, dtype=np.float64))
    totals = rows.sum(axis=1, keepdims=True)
    falling = -np.sort(-rows, axis=1)
    excess = (np.cumsum(falling, axis=1) - totals) / np.arange(1, rows.shape[1] + 1)
    last = np.count_nonzero(falling > excess, axis=1, keepdims=True) - 1
    kept = np.maximum(rows - np.take_along_axis(excess, np.maximum(last, 0), axis=1), 0.0)
    total = kept.sum(axis=1, keepdims=True)
    shares = np.where((totals > 0) & (total > 0), kept / np.where(total > 0, total, 1.0), 1.0 / rows.shape[1])
    return shares.reshape(np.shape(noisy))


def drawn_towards(shares: Floats, noisy: Floats, sigma: float) -> Floats:
    """Shares of each row of noisy counts, drawn towards given ones as far as the noise explains the difference."""
    totals = np.maximum(noisy.sum(axis=1, keepdims=True), 0.0)
    apart = np.square(noisy - totals * shares).sum(axis=1, keepdims=True)
    weight = np.maximum(0.0, 1.0 - noisy.shape[1] * sigma**2 / np.maximum(apart, 1e-12))
    return np.asarray(weight * on_simplex(noisy) + (1 - weight) * shares)


def drawn_cells(rates: Floats, n_samples: int, rng: Generator) -> Ints:
    """Groups and labels in random order, each as often as its share says, up to one row that is drawn at random."""
    expected = rates * n_samples
    times = np.floor(expected).astype(np.int64)
    missing = n_samples - int(times.sum())
    if missing:
        # Systematic sampling of the remainders: each cell gets its remainder on average, and at most one row.
        reached = np.cumsum(expected - times)
        marks = rng.random() + np.arange(missing)
        np.add.at(times, np.minimum(np.searchsorted(reached * missing / reached[-1], marks), len(rates) - 1), 1)
    return rng.permutation(np.repeat(np.arange(len(rates)), times))
