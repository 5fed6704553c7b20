"""Rows of a dask DataFrame: dask runs one task for each partition, on its threads or on a cluster."""

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any, TypeVar

import dask

from skfairdp._rows._chunks import as_pandas
from skfairdp._rows._source import Chunk, RowSource

__all__ = ["DaskRows"]

Sum = TypeVar("Sum")
Part = TypeVar("Part")
_FAN_IN = 8  # sums that are added by one task


class DaskRows(RowSource):
    """A dask DataFrame.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame
    """

    fewest_parts = 8

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
        apply = dask.delayed(_applied, pure=False)
        return _summed([apply(function, part, j) for j, part in enumerate(self.frame.to_delayed())], add)

    def by_part(
        self,
        pick: Callable[[Part, Chunk], list[Any]],
        use: Callable[[Part, list[Any]], Sum],
        parts: Iterable[Part],
        add: Callable[[Sum, Sum], Sum],
    ) -> Sum | None:
        """One pass: workers hand each other what they picked, and only sums reach the driver."""
        wanted = list(parts)
        share = dask.delayed(_picked, pure=False, nout=len(wanted))
        picked = [share(pick, wanted, rows, j) for j, rows in enumerate(self.frame.to_delayed())]
        finish = dask.delayed(_used, pure=False)
        return _summed([finish(use, part, [of[j] for of in picked]) for j, part in enumerate(wanted)], add)


def _summed(sums: list[Any], add: Callable[[Sum, Sum], Sum]) -> Sum | None:
    join = dask.delayed(_joined, pure=False)
    while len(sums) > 1:
        sums = [join(add, sums[j : j + _FAN_IN]) for j in range(0, len(sums), _FAN_IN)]
    found: Sum | None = dask.compute(*sums)[0] if sums else None
    return found


def _picked(pick: Callable[[Part, Chunk], list[Any]], parts: list[Part], table: Any, j: int) -> list[list[Any]]:
    chunk = Chunk(as_pandas(table), (j, 0))
    return [pick(part, chunk) for part in parts]


def _used(use: Callable[[Part, list[Any]], Sum], part: Part, picked: list[list[Any]]) -> Sum:
    return use(part, [some for of_chunk in picked for some in of_chunk])


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
