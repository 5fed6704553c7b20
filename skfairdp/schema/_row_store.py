"""Rows of a source, kept where any of them can be read again: encoded, in memory or on the disk."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfairdp._rows import HELD, LISTED, Chunk, RowSource, other_rows, row_hashes, stored
from skfairdp._typing import Array, Floats, Ints
from skfairdp.schema._columns import Column, Number
from skfairdp.schema._raw_table import RawTable
from skfairdp.schema._schema import Schema

#: Grids of numbers up to here are told apart by float64 arithmetic with room to spare: the error of a quotient is below
#: 2^-10 steps where no bound lies further than 2^40 steps from zero.
_FINEST, _MOST_CODES = 2.0**40, 2**32


@dataclass(frozen=True)
class CompactRows:
    """One structured array in place of a table: codes of one, two or four bytes, float64 for numbers without steps.

    The types follow from the schema alone. Everything that a fit reads of a table comes back bit for bit.
    """

    schema: Schema
    owner: str
    names: tuple[str, ...]

    @property
    def fields(self) -> list[tuple[str, np.dtype[Any]]]:
        """Of a structured dtype: a field for each column, in their order."""
        return [(f"column{j}", _dtype(self.schema.columns[name])) for j, name in enumerate(self.names)]

    def fill(self, rows: Array, numbers: Mapping[str, Floats]) -> None:
        """Write a table into the fields."""
        for (field, _), name in zip(self.fields, self.names, strict=True):
            rows[field] = _codes(self.schema.columns[name], numbers[name])

    def rows(self, numbers: Mapping[str, Floats]) -> Array:
        """A table, written into the fields."""
        rows = np.empty(len(next(iter(numbers.values()))), dtype=self.fields)
        self.fill(rows, numbers)
        return rows

    def contents(self, rows: Array) -> tuple[Array, ...]:
        """What is in each column, by which rows without an order are sorted."""
        return tuple(rows[field] for field, _ in self.fields)

    def table(self, rows: Array) -> RawTable:
        """The inverse of :meth:`fill`."""
        places = zip(self.fields, self.names, strict=True)
        numbers = {name: _numbers(self.schema.columns[name], rows[field]) for (field, _), name in places}
        return RawTable(self.schema, self.owner, None, numbers, len(rows))


def _n_codes(column: Column) -> int | None:
    """How many values there are; None where they have no codes."""
    (low, high), step = column.ends, _step(column)
    if step is None or max(abs(low), abs(high)) / step > _FINEST:
        return None
    n_codes = int(np.round((high - low) / step)) + 1
    return n_codes if n_codes < _MOST_CODES else None


def _step(column: Column) -> float | None:
    """How far apart the numbers of codes lie, from the smallest one on."""
    return column.step if isinstance(column, Number) else 1.0


def _dtype(column: Column) -> np.dtype[Any]:
    n_codes = _n_codes(column)  # the last code is one more: no value
    return np.dtype(np.float64) if n_codes is None else np.min_scalar_type(n_codes)


def _codes(column: Column, numbers: Floats) -> Array:
    n_codes, step = _n_codes(column), _step(column)
    if n_codes is None or step is None:
        return numbers
    codes = np.round((numbers - column.ends[0]) / step)
    return np.where(np.isnan(numbers), n_codes, codes).astype(_dtype(column))


def _numbers(column: Column, codes: Array) -> Floats:
    n_codes, step = _n_codes(column), _step(column)
    if n_codes is None or step is None:
        return np.ascontiguousarray(codes, dtype=np.float64)
    numbers = np.clip(column.ends[0] + step * codes.astype(np.float64), *column.ends)
    return np.where(codes == n_codes, np.nan, numbers)


#: Of the hash that chooses public rows: anyone may know which ones are chosen.
_SEED = 0x5EED_0F_80


@dataclass(frozen=True)
class RowStore:
    """The features of a table as a matrix, of which only the rows that are asked for are ever made.

    **Private.** Row *i* is row *i* of the source, bit for bit what a DataFrame in memory would give.
    """

    compact: CompactRows
    rows: Array
    n_features: int
    places: Ints | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the matrix."""
        return len(self), self.n_features

    def __len__(self) -> int:
        return len(self.rows if self.places is None else self.places)

    def __getitem__(self, index: slice | Ints) -> Floats:
        """The features of some rows, of shape (n_some, n_features)."""
        rows = index if self.places is None else self.places[index]
        return np.ascontiguousarray(self.compact.table(self.rows[rows]).features)

    def part(self, places: Ints) -> "RowStore":
        """The rows of these places alone."""
        return replace(self, places=places)


def storage_bytes(schema: Schema, n_rows: int) -> int:
    """How much disk :func:`kept_rows` takes: public."""
    return n_rows * np.dtype(CompactRows(schema, "", schema.features).fields).itemsize


def kept_rows(
    source: RowSource, schema: Schema, *, owner: str, n_features: int, groups: bool, held: int = HELD,
    listed: NDArray[np.uint64] | None = None, contents: tuple[str, ...] = (),
) -> tuple[RowStore, Ints, Ints | None, Ints | None]:  # fmt: skip
    """Read a source once: features, labels, groups and, where subjects are listed, whose each row is.

    Columns of theirs are kept by which the rows of one are in an order.
    """
    compact = CompactRows(schema, owner, contents or schema.features)
    codes: list[list[Any]] = []

    def encoded(chunk: Chunk) -> tuple[Array, list[Any]]:
        raw = RawTable.read(schema, chunk.table, owner=owner, may_be_empty=True)
        of = None if listed is None else np.searchsorted(listed, row_hashes(chunk, source.key, LISTED))
        return compact.rows(raw.numbers), [raw.labels(), raw.groups() if groups else None, of]

    def rows_only() -> Any:
        for rows, some in source.each(encoded):
            codes.append(some)
            yield rows

    rows = stored(rows_only(), source.n_rows, np.dtype(compact.fields), held)
    if len(rows) != source.n_rows:
        raise other_rows(owner)
    y, of_groups, of = (None if column[0] is None else np.concatenate(column) for column in zip(*codes, strict=True))
    assert y is not None
    return RowStore(compact, rows, n_features), y, of_groups, of


def numeric_memmap(
    source: RowSource, schema: Schema, *, owner: str, n_features: int, dtype: Any, chosen: Ints | None, held: int = HELD
) -> tuple[Array, Floats, Ints, Ints]:
    """Read a source whose features and labels are public once, check it, and keep its features as numbers."""
    compact = CompactRows(schema, owner, schema.features)
    codes: list[tuple[Ints, Ints]] = []
    some: list[Floats] = []

    def encoded(chunk: Chunk) -> tuple[Array, tuple[Ints, Ints]]:
        raw = RawTable.read(schema, chunk.table, owner=owner, may_be_empty=True)
        raw.check("X", label=True)
        return compact.rows(raw.numbers), (raw.labels(), raw.groups())

    def numbers() -> Iterator[Array]:
        start = 0
        for rows, own in source.each(encoded):
            codes.append(own)
            features = np.ascontiguousarray(compact.table(rows).features)
            stop = start + len(features)
            here = slice(None) if chosen is None else chosen[slice(*np.searchsorted(chosen, [start, stop]))] - start
            some.append(features[here])
            start = stop
            with np.errstate(over="ignore"):  # torch says nothing of it either
                yield features.astype(dtype)

    X = stored(numbers(), source.n_rows, np.dtype((dtype, (n_features,))), held, writeable=True)
    if len(X) != source.n_rows:
        raise other_rows(owner)
    y, groups = (np.concatenate(column) for column in zip(*codes, strict=True))
    return X, np.concatenate(some), y, groups


def subsample_rows(source: RowSource, schema: Schema, *, owner: str, most: int) -> RawTable:
    """Some rows of a source whose features and labels are public, after a check of all of them.

    Those whose public keys have the smallest hashes, in the order of these: the same rows from every engine, whatever
    the order and the size of its chunks. Groups are not read.
    """
    compact = CompactRows(schema, owner, (*schema.features, *((schema.label,) if schema.label else ())))
    dtype = np.dtype([("hash", np.uint64), *compact.fields])
    few = most < source.n_rows  # hashes are even: the bound leaves a few rows too many
    below = min(1.0, (most + 8 * math.sqrt(most) + 64) / source.n_rows) if few else 1.0
    largest = np.uint64(min(int(below * 2.0**64), 2**64 - 1))

    def chosen(chunk: Chunk) -> tuple[list[Array], int]:
        raw = RawTable.read(schema, chunk.table, owner=owner, may_be_empty=True)
        raw.check("X", label=True)
        hashes = row_hashes(chunk, source.key, _SEED)
        kept = np.flatnonzero(hashes <= largest)
        rows = np.empty(len(kept), dtype=dtype)
        rows["hash"] = hashes[kept]
        compact.fill(rows, {name: raw.numbers[name][kept] for name in compact.names})
        return [rows], raw.n_rows

    found = source.map_reduce(chosen, lambda one, other: (one[0] + other[0], one[1] + other[1]))
    if found is None or found[1] != source.n_rows:
        raise other_rows(owner)
    rows = np.concatenate(found[0])
    if not len(rows):
        raise ValueError(f"The keys of X of {owner} are no ids: far too many rows have the same one.")
    # Equal keys by what is public of their rows.
    order = np.lexsort([rows[name] for name in reversed(dtype.names or ())])
    return compact.table(rows[order[:most]])
