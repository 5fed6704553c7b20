"""What a source of rows is, and which one reads what a user gave. Sums over it are the same for every engine."""

import operator
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import pandas as pd

__all__ = ["Chunk", "RowSource", "opened", "summed_by_threads"]

Sum = TypeVar("Sum")
Part = TypeVar("Part")
MOST_ROWS = 131_072  # of a chunk, where the engine lets us choose


@dataclass(frozen=True)
class Chunk:
    """Some of the rows, and where they are: a public place that is the same whenever the source is read.

    Parameters
    ----------
    table : DataFrame
        Private.
    place : tuple
        Of the first row, such as a file and a position in it. The others follow it.
    """

    table: pd.DataFrame
    place: tuple[Any, ...]


class RowSource(ABC):
    """Rows of a table in chunks, which can be read as often as one likes.

    Chunks come in any order and may be read anew, so that only sums over rows mean anything: a function of one chunk,
    and an addition that is associative and commutative (of integers; sums of floats would follow the order).
    """

    #: Column of public ids, one for each row; None where there is none.
    key: str | None = None
    #: Whether ``map_reduce`` says where a chunk is.
    knows_places: ClassVar[bool] = True
    #: Into how many parts work by parts is cut at least, so that all workers have some.
    fewest_parts: int = 1

    @property
    @abstractmethod
    def columns(self) -> list[Any]:
        """Names of the columns, which are public."""

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """Number of rows, which is public."""

    @abstractmethod
    def chunks(self) -> Iterator[Chunk]:
        """All rows, chunk by chunk."""

    def map_reduce(self, function: Callable[[Chunk], Sum], add: Callable[[Sum, Sum], Sum]) -> Sum | None:
        """The sum of a function over all chunks, by threads of this machine; None where there is no chunk.

        Parameters
        ----------
        function : callable
            Of one chunk. Engines that run elsewhere pickle it.
        add : callable
            Of two sums.
        """
        return summed_by_threads(self.chunks(), function, add)

    def by_part(
        self,
        pick: Callable[[Part, Chunk], list[Any]],
        use: Callable[[Part, list[Any]], Sum],
        parts: Iterable[Part],
        add: Callable[[Sum, Sum], Sum],
    ) -> Sum | None:
        """The sum of what is made of each part, in a pass over all chunks for each; one part is in memory at a time.

        Parameters
        ----------
        pick : callable
            Of a part and a chunk: a list of what the chunk has of the part.
        use : callable
            Of a part and the list of all that was picked, in any order.
        parts : iterable
        add : callable
            Of two results.
        """
        total: list[Sum] = []
        for part in parts:
            value = use(part, self.map_reduce(partial(pick, part), operator.add) or [])
            total = [add(total[0], value) if total else value]
        return total[0] if total else None


def summed_by_threads(
    tasks: Iterator[Any], function: Callable[[Any], Sum], add: Callable[[Sum, Sum], Sum]
) -> Sum | None:
    """Sum a function over tasks, a few of them at a time. An error of one ends all."""
    n_threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    total: list[Sum] = []
    running: set[Future[Sum]] = set()
    with ThreadPoolExecutor(n_threads) as pool:
        try:
            for task in tasks:
                running.add(pool.submit(function, task))
                if len(running) > n_threads:
                    done, running = wait(running, return_when=FIRST_COMPLETED)
                    total = [reduce(add, (future.result() for future in done), *total)]
            total = [reduce(add, (future.result() for future in running), *total)] if running else total
        finally:
            for future in running:
                future.cancel()
    return total[0] if total else None


def opened(X: Any) -> RowSource | None:
    """The source that reads X; None for arrays, DataFrames and lists, which are in memory already.

    Parameters
    ----------
    X : object
        A :class:`RowSource`; :class:`KeyedRows`; a path of Parquet files or a ``pyarrow.dataset.Dataset``; a Polars
        LazyFrame; a dask DataFrame; a Spark DataFrame; or a function without arguments that returns an iterable of
        DataFrames, the same ones each time.
    """
    if isinstance(X, RowSource):
        return X
    if type(X).__name__ == "KeyedRows":
        from skfairdp._rows._keyed import KeyedSource

        return KeyedSource(X)
    kind, package = type(X).__name__, type(X).__module__.partition(".")[0]
    if isinstance(X, str | Path) or (package == "pyarrow" and kind.endswith("Dataset")):
        from skfairdp._rows._parquet import ParquetRows

        return ParquetRows(X)
    if package == "polars" and kind == "LazyFrame":
        from skfairdp._rows._polars import LazyRows

        return LazyRows(X)
    if package in ("dask", "dask_expr") and kind == "DataFrame":
        from skfairdp._rows._dask import DaskRows

        return DaskRows(X)
    if package == "pyspark" and kind == "DataFrame":
        from skfairdp._rows._spark import SparkRows

        return SparkRows(X)
    if callable(X) and not isinstance(X, type):
        from skfairdp._rows._chunks import ChunkRows

        return ChunkRows(X)
    return None
