"""Rows of a Polars query that has not run yet: it runs slice by slice."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import polars as pl

from skfairdp._rows._opened import as_pandas
from skfairdp._rows._source import MOST_ROWS, Chunk, RowSource


class LazyRows(RowSource):
    """A LazyFrame."""

    def __init__(self, query: pl.LazyFrame, n_rows_per_chunk: int = 4 * MOST_ROWS) -> None:
        self.query = query
        self.n_rows_per_chunk = n_rows_per_chunk

    @cached_property
    def columns(self) -> list[Any]:
        return list(self.query.collect_schema().names())

    @cached_property
    def n_rows(self) -> int:
        return int(self.query.select(pl.len()).collect().item())

    def chunks(self) -> Iterator[Chunk]:
        for start in range(0, self.n_rows, self.n_rows_per_chunk):
            yield Chunk(as_pandas(self.query.slice(start, self.n_rows_per_chunk).collect()), (start,))
