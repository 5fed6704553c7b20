"""Rows of a dask DataFrame: dask runs one task for each partition, on its threads or on a cluster."""

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, TypeVar

import dask
import numpy as np
from numpy.typing import NDArray

from skfairdp._rows._chunks import as_pandas
from skfairdp._rows._source import Chunk, RowSource, Split

__all__ = ["DaskRows"]

Made = TypeVar("Made")
Sum = TypeVar("Sum")
_FAN_IN = 8  # sums that are added by one task


class DaskRows(RowSource):
    """A dask DataFrame.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame
    """

    fewest_parts = 8
    spills = False

    def __init__(self, frame: Any) -> None:
        self.frame = frame

    @property
    def columns(self) -> list[Any]:
        return list(self.frame.columns)

    @property
    def n_rows(self) -> int:
        return sum(self._lengths)

    @cached_property
    def _lengths(self) -> tuple[int, ...]:
        """Rows of each partition, from one pass."""
        count = dask.delayed(len, pure=False)
        return tuple(dask.compute(*[count(part) for part in self.frame.to_delayed()]))

    def _partitions(self) -> list[tuple[int, Any]]:
        """Those that have rows: a filter may leave some without."""
        return [(j, part) for j, part in enumerate(self.frame.to_delayed()) if self._lengths[j]]

    def chunks(self) -> Iterator[Chunk]:
        for j, part in self._partitions():
            yield Chunk(as_pandas(part.compute()), (j, 0))

    def map_reduce(self, function: Callable[[Chunk], Sum], add: Callable[[Sum, Sum], Sum]) -> Sum | None:
        apply = dask.delayed(_applied, pure=False)
        return _summed([apply(function, part, j) for j, part in self._partitions()], add)

    def each(self, function: Callable[[Chunk], Made]) -> Iterator[Made]:
        """One partition after the other reaches the driver."""
        apply = dask.delayed(_applied, pure=False)
        return (apply(function, part, j).compute() for j, part in self._partitions())

    def by_part(
        self,
        split: Callable[[Chunk], Split],
        use: Callable[[int, NDArray[Any]], Sum],
        n_parts: int,
        dtype: np.dtype[Any],
        add: Callable[[Sum, Sum], Sum],
    ) -> Sum | None:
        """One pass: workers hand each other encoded rows, and only sums reach the driver."""
        deal = dask.delayed(_dealt, pure=False, nout=n_parts)
        dealt = [deal(split, n_parts, rows, j) for j, rows in self._partitions()]
        finish = dask.delayed(_used, pure=False)
        return _summed([finish(use, part, [of[part] for of in dealt]) for part in range(n_parts)], add)


def _summed(sums: list[Any], add: Callable[[Sum, Sum], Sum]) -> Sum | None:
    join = dask.delayed(_joined, pure=False)
    while len(sums) > 1:
        sums = [join(add, sums[j : j + _FAN_IN]) for j in range(0, len(sums), _FAN_IN)]
    found: Sum | None = dask.compute(*sums)[0] if sums else None
    return found


def _dealt(split: Callable[[Chunk], Split], n_parts: int, table: Any, j: int) -> list[NDArray[Any]]:
    rows, parts = split(Chunk(as_pandas(table), (j, 0)))
    order = np.argsort(parts, kind="stable")
    return np.split(rows[order], np.searchsorted(parts[order], np.arange(1, n_parts)))


def _used(use: Callable[[int, NDArray[Any]], Sum], part: int, dealt: list[NDArray[Any]]) -> Sum:
    return use(part, np.concatenate(dealt))


def _applied(function: Callable[[Chunk], Sum], table: Any, j: int) -> Sum:
    return function(Chunk(as_pandas(table), (j, 0)))


def _joined(add: Callable[[Sum, Sum], Sum], sums: list[Sum]) -> Sum:
    total = sums[0]
    for value in sums[1:]:
        total = add(total, value)
    return total
