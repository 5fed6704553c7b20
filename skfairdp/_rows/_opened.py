"""Which source reads what a user gave, and how to make a DataFrame of it. Each engine is loaded on first use."""

from pathlib import Path
from typing import Any

from skfairdp._rows._chunks import ChunkRows, FrameRows
from skfairdp._rows._keyed import KeyedRows, KeyedSource
from skfairdp._rows._source import RowSource


def opened(X: Any) -> RowSource | None:
    """The source that reads X; None for arrays, DataFrames and lists, which are in memory already."""
    if isinstance(X, RowSource):
        return X
    if isinstance(X, KeyedRows):
        source = opened(X.rows)
        return KeyedSource(X.key, FrameRows(X.rows) if source is None else source)
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
        return ChunkRows(X)
    return None


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
