"""Which source reads what a user gave, and how to make a DataFrame of it. Each engine is loaded on first use."""

import itertools
import pickle
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from skfairdp._rows._keyed import KeyedRows, with_key
from skfairdp._rows._source import MOST_ROWS, Chunk, Made, RowsOfFrame, RowSource, Sum, summed
from skfairdp._utils import from_arrow


class ChunkRows(RowSource):
    """What a function without arguments returns: an iterable of DataFrames, the same ones each time."""

    def __init__(self, factory: Callable[[], Iterable[Any]]) -> None:
        self.factory = factory

    @cached_property
    def _shape(self) -> tuple[list[Any], int]:
        """Columns and rows, from one pass; all chunks must have the same columns."""
        names: list[list[Any]] = []
        n_rows = 0
        for frame in self._frames():
            names.append(list(frame.columns))
            n_rows += len(frame)
            if names[0] != names[-1]:
                raise ValueError(f"A chunk has the columns {names[-1]}, the first one {names[0]}. Make them alike.")
            names = names[:1]
        return (names[0] if names else []), n_rows

    @property
    def columns(self) -> list[Any]:
        return self._shape[0]

    @property
    def n_rows(self) -> int:
        return self._shape[1]

    def chunks(self) -> Iterator[Chunk]:
        """Those that have rows."""
        start = 0
        for frame in self._frames():
            if len(frame):
                yield Chunk(frame, (start,))
            start += len(frame)

    def _frames(self) -> Iterator[pd.DataFrame]:
        handed = self.factory()
        if not hasattr(handed, "__iter__"):
            raise ValueError(
                "The function that hands out chunks must return an iterable of DataFrames, or yield them. Got "
                f"{type(handed).__name__} instead."
            )
        if iter(handed) is handed and handed is self.__dict__.get("_last"):
            raise ValueError("The function that hands out chunks returned an iterator that is used up. Make a new one.")
        self._last = handed
        yield from map(as_pandas, handed)


class FrameRows(RowsOfFrame):
    """A DataFrame in memory, in pieces."""

    def __init__(self, table: Any, n_rows_per_chunk: int = MOST_ROWS) -> None:
        super().__init__(as_pandas(table))
        self.n_rows_per_chunk = n_rows_per_chunk

    @property
    def n_rows(self) -> int:
        return len(self.frame)

    def chunks(self) -> Iterator[Chunk]:
        for start in range(0, len(self.frame), self.n_rows_per_chunk):
            yield Chunk(self.frame.iloc[start : start + self.n_rows_per_chunk], (start,))


def as_pandas(table: Any) -> pd.DataFrame:
    """A table of any library as pandas has it."""
    if isinstance(table, pd.DataFrame):
        return table
    table = table.to_arrow() if hasattr(table, "to_arrow") else table  # Polars
    if type(table).__module__.partition(".")[0] == "pyarrow":
        return pd.DataFrame(dict(enumerate(map(from_arrow, table.columns)))).set_axis(table.schema.names, axis=1)
    raise ValueError(
        f"A chunk of rows must be a DataFrame of pandas, polars or pyarrow. Got {type(table).__name__} instead."
    )


def opened(X: Any) -> RowSource | None:
    """The source that reads X; None for arrays, DataFrames and lists, which are in memory already."""
    if isinstance(X, RowSource):
        return X
    if isinstance(X, KeyedRows):
        source = opened(X.rows)
        return with_key(FrameRows(X.rows) if source is None else source, X.key)
    kind, package = type(X).__name__, type(X).__module__.partition(".")[0]
    if isinstance(X, str | Path) or (package == "pyarrow" and kind.endswith("Dataset")):
        from skfairdp._rows._parquet import ParquetRows

        return ParquetRows(X)
    if package == "polars" and kind == "LazyFrame":
        return LazyRows(X)
    if package in ("dask", "dask_expr") and kind == "DataFrame":
        from skfairdp._rows._dask import DaskRows

        return DaskRows(X)
    if package == "pyspark" and kind == "DataFrame":
        return SparkRows(X)
    return ChunkRows(X) if callable(X) and not isinstance(X, type) else None


def gathered(X: Any) -> str | None:
    """How to make a DataFrame of what :func:`opened` opens; None for what is in memory already. Nothing is opened."""
    kind, package = type(X).__name__, type(X).__module__.partition(".")[0]
    ways = {
        "pandas.read_parquet(X)": isinstance(X, str | Path),
        "X.to_table().to_pandas()": package == "pyarrow" and kind.endswith("Dataset"),
        "X.collect()": package == "polars" and kind == "LazyFrame",
        "X.compute()": package in ("dask", "dask_expr"),
        "X.toPandas()": package == "pyspark",
        "the rows without their keys": isinstance(X, KeyedRows | RowSource),
        "pandas.concat(X())": callable(X) and not isinstance(X, type),
    }
    return next((way for way, is_it in ways.items() if is_it), None)


class LazyRows(RowSource):
    """A Polars query that has not run yet: it runs slice by slice."""

    def __init__(self, query: Any, n_rows_per_chunk: int = 4 * MOST_ROWS) -> None:
        self.query, self.n_rows_per_chunk = query, n_rows_per_chunk

    @cached_property
    def columns(self) -> list[Any]:
        return list(self.query.collect_schema().names())

    @cached_property
    def n_rows(self) -> int:
        import polars as pl

        return int(self.query.select(pl.len()).collect().item())

    def chunks(self) -> Iterator[Chunk]:
        for start in range(0, self.n_rows, self.n_rows_per_chunk):
            yield Chunk(as_pandas(self.query.slice(start, self.n_rows_per_chunk).collect()), (start,))


class SparkRows(RowsOfFrame):
    """A Spark DataFrame: one sum for each partition, made where the rows are (``mapInPandas``).
    Tests drive it by Spark itself where pyspark is installed, and by a stand-in everywhere."""

    knows_places = knows_order = False

    @cached_property
    def n_rows(self) -> int:
        return int(self.frame.count())

    def chunks(self) -> Iterator[Chunk]:
        rows, start = iter(self.frame.toLocalIterator()), 0
        while some := list(itertools.islice(rows, MOST_ROWS)):
            yield Chunk(pd.DataFrame.from_records([tuple(row) for row in some], columns=self.columns), (start,))
            start += len(some)

    def each(self, function: Callable[[Chunk], Made]) -> Iterator[Made]:
        """Spark makes them where the rows are; what it made reaches the driver one partition after the other."""

        def of_partition(tables: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
            for table in tables:
                if len(table):
                    yield pd.DataFrame({"sum": [pickle.dumps((len(table), function(Chunk(table, ()))))]})

        return self._shown(self._yielded(of_partition))

    def map_reduce(self, function: Callable[[Chunk], Sum], add: Callable[[Sum, Sum], Sum]) -> Sum | None:
        def of_partition(tables: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
            total = summed((function(Chunk(table, ())) for table in tables if len(table)), add)
            yield pd.DataFrame({"sum": [pickle.dumps(total)]})

        return summed((value for value in self._yielded(of_partition) if value is not None), add)

    def _yielded(self, of_partition: Callable[[Iterator[pd.DataFrame]], Iterator[pd.DataFrame]]) -> Iterator[Any]:
        """Only what a task that ended yielded counts, however often Spark tried it."""
        rows = self.frame.mapInPandas(of_partition, "sum binary").toLocalIterator()
        return (pickle.loads(row["sum"]) for row in rows)
