"""Rows that do not fit into memory, counted chunk by chunk: all that noisy tables ask of rows are sums."""

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfairdp._rows import Chunk, RowSource, other_rows
from skfairdp._tables import Rows, Table, counted_pairs, read_table
from skfairdp.generative._schema_columns import numbers_of
from skfairdp.generative._table_codec import TableEncoder
from skfairdp.schema import RawTable, Schema

Counts = NDArray[np.int64]

_MOST_CELLS = 2**24  # of pairs that are counted in the pass over the columns, and kept until they are asked for


@dataclass(frozen=True)
class StreamedTable:
    """A source whose chunks a schema reads. Label and groups are columns of it."""

    source: RowSource
    schema: Schema
    n_classes: int
    n_groups: int
    owner: str

    def __len__(self) -> int:
        return self.source.n_rows

    @property
    def n_cells(self) -> int:
        """Groups times labels."""
        return self.n_groups * self.n_classes

    def first_counts(self, encoder: TableEncoder) -> tuple[list[Counts], Counts]:
        """One pass: the fine histogram of each unsettled column, and the rows of each group and label."""
        sizes = [encoder.columns[j].n_codes for j in encoder.unsettled]
        *histograms, cells = self._counts(partial(_fine_and_cells, encoder), [*sizes, self.n_cells])
        fine = [encoder.columns[j].n_values for j in encoder.unsettled]
        return [counts[:size] for counts, size in zip(histograms, fine, strict=True)], cells

    def table_counts(
        self, encoder: TableEncoder, columns: bool, pairs: Sequence[tuple[int, int]]
    ) -> tuple[list[Counts], list[Counts]]:
        """One pass: counts of all columns by group and label, if wanted, and of pairs of columns."""
        n_codes = encoder.n_codes
        single = [self.n_cells * size for size in n_codes] if columns else []
        together = [n_codes[i] * n_codes[j] for i, j in pairs]
        found = self._counts(partial(_columns_and_pairs, encoder, columns, list(pairs)), [*single, *together])
        further = zip(found[len(single) :], pairs, strict=True)
        return found[: len(single)], [table.reshape(n_codes[i], n_codes[j]) for table, (i, j) in further]

    def _counts(self, function: Callable[..., list[Counts]], sizes: Sequence[int]) -> list[Counts]:
        """Tables of counts, summed over all chunks. Each counts every row once."""
        count = partial(_of_chunk, function, self.schema, self.n_classes, self.n_groups, self.owner)
        total = self.source.map_reduce(count, operator.add)
        if total is None or int(total[: sizes[0]].sum()) != len(self):
            raise other_rows(self.owner)
        return np.split(total, np.cumsum(sizes)[:-1])


def _of_chunk(
    function: Callable[..., list[Counts]], schema: Schema, n_classes: int, n_groups: int, owner: str, chunk: Chunk
) -> Counts:
    raw = RawTable.read(schema, chunk.table, owner=owner, may_be_empty=True)
    labels = raw.labels() if n_classes > 1 else np.zeros(raw.n_rows, dtype=np.int64)
    groups = raw.groups() if n_groups > 1 else np.zeros(raw.n_rows, dtype=np.int64)
    tables = function(read_table(numbers_of(raw)), groups * n_classes + labels, n_groups * n_classes)
    return np.concatenate([table.ravel() for table in tables])


def _fine_and_cells(encoder: TableEncoder, table: Table, cells: Counts, n_cells: int) -> list[Counts]:
    fine = [encoder.columns[j] for j in encoder.unsettled]
    histograms = [
        np.bincount(column.encode(table.columns[j]), minlength=column.n_codes)
        for j, column in zip(encoder.unsettled, fine, strict=True)
    ]
    return [*histograms, np.bincount(cells, minlength=n_cells)]


def _columns_and_pairs(
    encoder: TableEncoder, columns: bool, pairs: list[tuple[int, int]], table: Table, cells: Counts, n_cells: int
) -> list[Counts]:
    codes = encoder.encode(table)
    single = [
        np.bincount(cells * n_codes + codes[:, j], minlength=n_cells * n_codes)
        for j, n_codes in enumerate(encoder.n_codes if columns else ())
    ]
    return [*single, *counted_pairs(codes, encoder.n_codes, pairs)]


@dataclass(frozen=True)
class StreamedRows(Rows):
    """What the backend of noisy tables learns from: sums over the chunks of a source."""

    table: Any = None
    encoder: Any = None
    _kept: dict[tuple[int, int], Counts] = field(default_factory=dict, repr=False)

    def column_counts(self, further: Sequence[tuple[int, int]] = ()) -> list[Counts]:
        """One pass, which counts further pairs as well where all of them fit into memory."""
        cells = sum(self.n_codes[i] * self.n_codes[j] for i, j in further)
        pairs = list(further) if cells <= _MOST_CELLS else []
        single, together = self.table.table_counts(self.encoder, True, pairs)
        self._kept.update(zip(pairs, together, strict=True))
        return list(single)

    def pair_counts(self, pairs: Sequence[tuple[int, int]]) -> Iterator[Counts]:
        """Of what is not known yet, as many pairs a pass as fit into memory."""
        start = 0
        while start < len(pairs):
            stop, cells = start, 0
            while stop < len(pairs) and (stop == start or cells <= _MOST_CELLS):
                cells += self.n_codes[pairs[stop][0]] * self.n_codes[pairs[stop][1]]
                stop += 1
            known = {pair: counts for pair in pairs[start:stop] if (counts := self._known(pair)) is not None}
            new = [pair for pair in pairs[start:stop] if pair not in known]
            if new:
                known.update(zip(new, self.table.table_counts(self.encoder, False, new)[1], strict=True))
            yield from (known[pair] for pair in pairs[start:stop])
            start = stop

    def _known(self, pair: tuple[int, int]) -> Counts | None:
        turned = self._kept.get((pair[1], pair[0]))
        return self._kept.get(pair) if turned is None else turned.T
