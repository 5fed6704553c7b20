"""Tables of any dataframe library, as pandas has them."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd

from skfairdp._utils import as_objects, as_series, from_arrow


class SameNameError(ValueError):
    """Two columns of a table have one name."""


def column_names(table: Any) -> list[str]:
    """Names of the columns as texts, which are public; ``header=None`` numbers them."""
    if not isinstance(table, pd.DataFrame) and hasattr(table, "column_names"):  # pyarrow, which narwhals asks for more
        names = list(map(str, table.column_names))
    else:
        names = list(map(str, table.columns if isinstance(table, pd.DataFrame) else _opened(table).columns))
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise SameNameError(
            f"The table has more than one column {', '.join(map(repr, twice[:5]))}. Rename or drop all but one."
        )
    return names


def as_columns(values: Any) -> list[Any]:
    """One column, or several side by side, whatever they come in. Cells stay as they are."""
    if isinstance(values, pd.DataFrame):
        return [values.iloc[:, j] for j in range(values.shape[1])]
    opened = nw.from_native(values, eager_only=True, allow_series=True, pass_through=True)
    if isinstance(opened, nw.DataFrame):
        return [_as_series(opened[name]) for name in opened.columns]
    if isinstance(opened, nw.Series):
        return [values if isinstance(values, pd.Series) else _as_series(opened)]
    if hasattr(values, "__array__"):
        array = np.asarray(values)
        return [as_series(column) for column in ([array] if array.ndim < 2 else array.reshape(len(array), -1).T)]
    return [as_series(as_objects(values))]


def as_dataframe(table: Any, names: Sequence[Any]) -> pd.DataFrame:
    """These columns as a pandas DataFrame."""
    if isinstance(table, pd.DataFrame):
        place = {name: j for j, name in enumerate(column_names(table))}
        return table.iloc[:, [place[name] for name in names]].set_axis(list(names), axis=1)
    opened = _opened(table)
    return pd.DataFrame({name: _as_series(opened[name]) for name in names})


def _opened(table: Any) -> Any:
    try:
        return nw.from_native(table, eager_only=True)
    except TypeError:
        raise ValueError(
            "A Schema reads a DataFrame (pandas, polars, pyarrow or another one that narwhals knows). Got "
            f"{type(table).__name__} instead. Make a DataFrame of it with the column names of the Schema; for one row "
            "in a dict or Series pd.DataFrame([row])."
        ) from None


def _as_series(column: Any) -> "pd.Series[Any]":
    kind = column.dtype
    if column.implementation.is_pyarrow():
        return from_arrow(column.to_native())
    if kind in (nw.Date, nw.Datetime, nw.Duration):  # the calendar of Python ends with the year 9999
        return pd.Series((column.dt.replace_time_zone(None) if kind == nw.Datetime else column).to_numpy())
    # NumPy has no integers of 128 bits, which polars takes for a column once one cell needs them, and no missing ones.
    if kind.is_numeric() and kind not in (nw.Int128, nw.UInt128) and not (kind.is_integer() and column.null_count()):
        return pd.Series(column.to_numpy())
    return pd.Series(column.to_list(), dtype=object)
