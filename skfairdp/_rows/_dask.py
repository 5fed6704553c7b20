"""Rows of a dask DataFrame: dask runs one task for each partition, on its threads or on a cluster."""

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, TypeVar

import dask

from skfairdp._rows._chunks import as_pandas
from skfairdp._rows._source import Chunk, RowSource

__all__ = ["DaskRows"]

Sum = TypeVar("Sum")
_FAN_IN = 8  # sums that are added by one task


class DaskRows(RowSource):
    """A dask DataFrame.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame
    """

    def __init__(self, frame: Any) -> None:
        self.frame = frame

    @property
    def columns(self) -> list[Any]:
        return list(self.frame.columns)

    @cached_property
    def n_rows(self) -> int:
        return self.map_reduce(_length, _plus) or 0

    def chunks(self) -> Iterator[Chunk]:
        for j, part in enumerate(self.frame.to_delayed()):
            yield Chunk(as_pandas(part.compute()), (j, 0))

    def map_reduce(self, function: Callable[[Chunk], Sum], add: Callable[[Sum, Sum], Sum]) -> Sum | None:
        apply, join = dask.delayed(_applied, pure=False), dask.delayed(_joined, pure=False)
        sums = [apply(function, part, j) for j, part in enumerate(self.frame.to_delayed())]
        while len(sums) > 1:
            sums = [join(add, sums[j : j + _FAN_IN]) for j in range(0, len(sums), _FAN_IN)]
        found: Sum | None = dask.compute(*sums)[0] if sums else None
        return found


def _applied(function: Callable[[Chunk], Sum], table: Any, j: int) -> Sum:
    return function(Chunk(as_pandas(table), (j, 0)))


def _joined(add: Callable[[Sum, Sum], Sum], sums: list[Sum]) -> Sum:
    total = sums[0]
    for value in sums[1:]:
        total = add(total, value)
    return total


def _length(chunk: Chunk) -> int:
    return len(chunk.table)


def _plus(one: int, other: int) -> int:
    return one + other
