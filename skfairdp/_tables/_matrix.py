"""Columns of a matrix of numbers as codes: single numbers, and blocks that are the one-hot code of a category."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.random import Generator
from scipy.optimize import isotonic_regression

from skfairdp._tables._columns import NumberColumn, crowded_bin, finer_starts
from skfairdp._typing import Codes, Floats, Ints
from skfairdp.schema import Category, Number, Schema, feature_places

#: What a bin at either end of a column has to hold, with those further out, of the evidence of a single one: about two
#: standard deviations of the noise.
_END_NOISE = 0.4
#: Powers of two between which numbers without bounds are told apart, and values that have a bin of their own: flags.
_POWERS = 2.0 ** np.arange(-10, 41)
_POINTS = np.array([-1.0, 0.0, 1.0])
#: Bins that the noise hides one by one show together, in standard deviations of their noise.
_OTHERS = 2.0
_ENTRIES = 2**20  # of a matrix, put into the order of columns at a time
_WIDTHS, _OCTAVES = 16, 20  # bins of equal width within bounds, and halvings of the range towards its anchor


@dataclass(frozen=True)
class MatrixColumn:
    """A number or a category, and where it stands in a matrix."""

    positions: tuple[int, ...]
    bounds: tuple[float, float] | None
    step: float | None
    coding: NumberColumn | Any
    is_category: bool
    spread: tuple[Floats, Floats] | Any = None
    name: str = ""
    finer: Floats | None = None  # starts that take the place of the usual grid, and where the last of its bins ends

    @property
    def nullable(self) -> bool:
        return self.is_category or len(self.positions) > 1

    @property
    def is_whole(self) -> bool:
        """Whether all of its numbers are whole."""
        return self.bounds is not None and self.step == 1.0 and all(float(end).is_integer() for end in self.bounds)

    def entries(self, X: Floats) -> Floats:
        """What each row of a matrix holds; NaN where it is missing or none of the values."""
        block = X[:, self.positions]
        if self.is_category:
            return np.where(block.max(axis=1) > 0.5, block.argmax(axis=1), np.nan)
        numbers = block[:, 0]
        if self.bounds is not None:
            low, high = self.bounds
            numbers = self._stepped((numbers * (high - low) + low + high) / 2)
        return np.where(block[:, 1] > 0.5, np.nan, numbers) if len(self.positions) > 1 else numbers

    def write(self, codes: Codes, X: Floats, rng: Generator) -> None:
        """Put codes into the rows of a matrix that holds zeros."""
        entries = np.asarray(self.coding.decode(codes.astype(np.int64), rng), dtype=np.float64)
        missing = np.isnan(entries)
        if self.is_category:
            known = np.flatnonzero(~missing)
            X[known, np.asarray(self.positions)[entries[known].astype(np.int64)]] = 1.0
            return
        if self.spread is not None:
            entries = self._drawn_by_spread(entries, codes.astype(np.int64))
        if self.bounds is not None:
            low, high = self.bounds
            entries = (2 * self._stepped(entries) - low - high) / (high - low)
        X[:, self.positions[0]] = np.nan_to_num(entries)
        if len(self.positions) > 1:
            X[:, self.positions[1]] = missing

    @property
    def has_few_values(self) -> bool:
        """Whether it is whole numbers within bounds so close that each is a bin."""
        return self.is_whole and self.bounds is not None and self.bounds[1] - self.bounds[0] <= _WIDTHS

    @property
    def grid(self) -> Floats:
        """Starts of the bins that its numbers are first counted in: wider ones away from 0, or from the lower bound."""
        if self.finer is not None:
            return self.finer[:-1]
        if self.bounds is None:
            return _with_points(np.concatenate([-_POWERS, _POWERS]), _POINTS)
        low, high = self.bounds
        if self.has_few_values:
            return np.arange(low, high + 1)
        anchor = 0.0 if low <= 0 <= high else low
        steps = (high - low) * 2.0 ** -np.arange(1, _OCTAVES)
        starts = np.concatenate([np.linspace(low, high, _WIDTHS + 1)[:-1], anchor - steps, anchor + steps])
        starts = np.ceil(starts) if self.is_whole else starts
        return _with_points(starts[(starts >= low) & (starts < high)], np.array([anchor]))

    @property
    def _ends(self) -> Floats:
        """Of the bins of the grid."""
        if self.finer is not None:
            return self.finer[1:]
        return np.append(self.grid[1:], 2 * self.grid[-1] if self.bounds is None else self.bounds[1] + self.is_whole)

    # ------------------------------------------------------------------ post-processing of released counts

    def closer(self, noisy: Floats, evidence: float, sigma: float, n_rows: int) -> "MatrixColumn":
        """The same on a finer grid where many rows show in one bin, from the first bin that shows to the last. Itself
        where none does; where less than half of the rows show, or within bounds other bins together do as well."""
        grid, ends, shown = self.grid, self._ends, noisy > evidence
        others = noisy[~shown].sum() > _OTHERS * sigma * math.sqrt(len(grid))
        if noisy[shown].sum() < n_rows / 2:
            return self
        if self.bounds is None or not others:
            first, last = np.flatnonzero(shown)[[0, -1]]
            grid, ends, noisy = (each[first : last + 1] for each in (grid, ends, noisy))
        finer = finer_starts(grid, ends, noisy, evidence, sigma, n_rows, whole=self.is_whole)
        return self if len(finer) == len(grid) else replace(self, finer=np.append(finer, ends[-1]))

    def settled(self, noisy: Floats, evidence: float, n_bins: int, n_rows: int) -> "MatrixColumn":
        """The same with about ``n_bins`` bins that hold equally much by the noisy counts of the grid, and bins of their
        own for single values that hold much. Without bounds, the first and last bin above ``evidence``, which noise
        alone hardly reaches, are taken for them; if less than half of the rows are between, the others are where the
        noise hides them: bins are then equally wide, as far as the furthest of these on both sides."""
        grid, ends = self.grid, self._ends
        occupied = np.flatnonzero(noisy > evidence)
        alone = occupied[ends[occupied] <= np.nextafter(grid[occupied], np.inf)]
        if self.bounds is None and self.finer is None:
            if not len(occupied) or noisy[occupied].sum() < n_rows / 2:
                reach = max(abs(grid[occupied[0]]), abs(ends[occupied[-1]])) if len(occupied) else 1.0
                return self._evenly(-reach, reach, n_bins)
            first, last = occupied[0], occupied[-1]
            low, high = grid[first], grid[last] if last in alone else ends[last]
        else:
            (low, high), first, last = self.bounds or (grid[0], ends[-1]), 0, len(grid) - 1
            if n_rows <= evidence:
                return self._evenly(low, high, n_bins)
            if not self.nullable:  # every row is in one of the bins
                noisy = noisy + (n_rows - noisy.sum()) / len(noisy)
        reached = np.zeros(len(grid) + 1)
        reached[first + 1 : last + 2] = _reached(noisy[first : last + 1], evidence)
        reached[last + 2 :] = reached[last + 1]
        others = np.diff(reached)
        if self.finer is not None and others.any():  # what shows closely does not reach as far as the first look says
            held = np.flatnonzero(others)
            low, high = grid[held[0]], min(high, ends[held[-1]] - self.is_whole)
        others[alone] = 0.0  # they have bins of their own: most rows may be there
        quantiles = _quantiles(grid, ends, others, n_bins)
        starts = np.unique(np.concatenate([[low], quantiles, grid[alone], ends[alone]]))
        settled = self._with_starts(starts[(starts >= low) & (starts <= high)], high)
        return replace(settled, spread=(np.append(grid, ends[-1]), reached))

    def crowded(self, noisy: Floats, evidence: float, n_rows: int) -> str:
        """Between what numbers nearly all are that have one bin of the grid, by its noisy counts; "" where none has."""
        return crowded_bin(self.grid, self._ends, noisy, evidence, n_rows, whole=self.is_whole)

    def _evenly(self, low: float, high: float, n_bins: int) -> "MatrixColumn":
        return self._with_starts(np.linspace(low, high, n_bins + 1)[:-1], high)

    def _drawn_by_spread(self, entries: Floats, codes: Ints) -> Floats:
        """Numbers that were drawn evenly from their bins, moved within them to where the released counts are."""
        starts, (places, reached) = self.coding.starts, self.spread
        edges = np.append(starts, max(self.coding.high + self.is_whole, starts[-1]))
        below, inside = np.interp(edges, places, reached), np.minimum(codes, len(starts) - 1)
        low, width, held = edges[inside], np.diff(edges)[inside], np.diff(below)[inside]
        share = np.clip((entries - low) / np.where(width > 0, width, 1.0), 0.0, 1.0)
        moved = np.clip(np.interp(below[inside] + share * held, reached, places), low, low + width)
        moved = np.minimum(np.floor(moved), self.coding.high) if self.is_whole else moved
        return np.where(held > 0, moved, entries)

    def _with_starts(self, starts: Floats, high: float | None = None) -> "MatrixColumn":
        if self.is_whole:
            starts = np.unique(np.ceil(starts))
        end = float(starts[-1] if high is None else high)
        coding = NumberColumn(None, np.dtype(np.float64), self.nullable, starts, end, self.is_whole)
        return replace(self, coding=coding)

    def _stepped(self, numbers: Floats) -> Floats:
        assert self.bounds is not None
        low, high = self.bounds
        if self.step is not None:
            numbers = low + self.step * np.round((numbers - low) / self.step)
        return np.clip(numbers, low, high)


def coded(columns: Sequence[MatrixColumn], X: Floats) -> Iterator[tuple[slice, list[Codes]]]:
    """The codes of each column of a matrix, some rows at a time: rows are fetched once for all columns."""
    encodings = [column.coding.encoding(len(X)) for column in columns if column.coding is not None]
    step = max(1, _ENTRIES // X.shape[1])
    for some in (slice(start, start + step) for start in range(0, len(X), step)):
        rows = np.asfortranarray(X[some])
        yield some, [encode(column.entries(rows)) for encode, column in zip(encodings, columns, strict=True)]


def grid_counts(columns: Sequence[MatrixColumn], X: Floats) -> list[Ints]:
    """How many rows lie in each bin of the grid of each column; what is missing in none."""
    codings = [NumberColumn(None, np.dtype(np.float64), of.nullable, of.grid, np.inf) for of in columns]
    counts = [np.zeros(coding.n_codes, dtype=np.int64) for coding in codings]
    on_grid = [replace(column, coding=coding) for column, coding in zip(columns, codings, strict=True)]
    for _, codes in coded(on_grid, X):
        for total, of_column in zip(counts, codes, strict=True):
            total += np.bincount(of_column, minlength=len(total))
    return [total[: coding.n_values] for total, coding in zip(counts, codings, strict=True)]


def number_column(
    positions: tuple[int, ...], bounds: tuple[float, float] | None = None, step: float | None = None
) -> MatrixColumn:
    """A number, with or without public bounds."""
    column = MatrixColumn(positions, bounds, step, None, False)
    return column._with_starts(column.grid) if column.has_few_values else column


def _with_points(starts: Floats, points: Floats) -> Floats:
    """Starts of bins, with a bin for each of the points alone."""
    return np.unique(np.concatenate([starts, points, np.nextafter(points, np.inf)]))


def _reached(noisy: Floats, evidence: float) -> Floats:
    """How many rows lie in each bin or before it, by noisy counts of bins. Many small bins that the noise hides one by
    one hold much together. At either end nothing is taken to lie where all bins out to that end together hold no more
    than noise may be: spread over wide bins far out it would look like much."""
    noise = _END_NOISE * evidence * np.sqrt(np.arange(1, len(noisy) + 1))
    reached = np.maximum(isotonic_regression(np.cumsum(noisy)).x, 0.0)
    first = np.flatnonzero(np.cumsum(noisy) > noise)[:1]
    last = len(noisy) - 1 - np.flatnonzero(np.cumsum(noisy[::-1]) > noise)[:1]
    if len(first) and len(last) and first[0] <= last[0]:
        reached[: first[0]] = 0.0
        reached[last[0] :] = reached[-1]
    return reached


def _quantiles(starts: Floats, ends: Floats, masses: Floats, n_bins: int) -> Floats:
    """Places that cut masses, spread evenly over their bins, into equal parts."""
    reached = np.concatenate([[0.0], np.cumsum(masses)])
    wanted = reached[-1] * np.arange(1, n_bins) / n_bins
    places = np.clip(np.searchsorted(reached, wanted, side="right") - 1, 0, len(masses) - 1)
    share = (wanted - reached[places]) / np.maximum(masses[places], 1e-300)
    return starts[places] + np.clip(share, 0, 1) * (ends - starts)[places]


def schema_columns(schema: Schema) -> list[MatrixColumn]:
    """Where the features of a schema stand in the matrix that ``SchemaEncoder`` makes of a table."""
    columns = []
    for name, place in feature_places(schema).items():
        declared, positions = schema.columns[name], tuple(range(place.start, place.stop))
        if isinstance(declared, Category):
            starts = np.arange(float(len(positions)))
            places = NumberColumn(None, np.dtype(np.float64), True, starts, len(positions) - 1.0, True)
            columns.append(MatrixColumn(positions, None, None, places, True))
        else:
            step = declared.step if isinstance(declared, Number) else 1.0
            columns.append(replace(number_column(positions, declared.ends, step), name=name))
    return columns


def table_of(schema: Schema, X: Floats, groups: Ints | None = None) -> pd.DataFrame:
    """Rows of the matrix that ``SchemaEncoder`` makes, as a table in the schema's own values and dtypes again."""
    numbers = {}
    for name, column in zip(schema.features, schema_columns(schema), strict=True):
        declared, entries = schema.columns[name], column.entries(X)
        if isinstance(declared, Category):  # a mark of what is missing comes after the values
            entries = np.where(entries < len(declared.values), entries, np.nan)
        numbers[name] = entries
    if groups is not None:
        named = [values if len(schema.groups) > 1 else (values,) for values in schema.group_values or ()]
        for name, values in zip(schema.groups, zip(*named, strict=True), strict=True):
            numbers[name] = schema.columns[name].read(values)[groups]
    return schema.restore({name: numbers[name] for name in schema.columns if name in numbers})
