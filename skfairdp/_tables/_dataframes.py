"""Private tables, labels and groups as columns of entries, whatever type their containers happen to have.

numpy and pandas infer types from values: one missing entry turns integers into floats, one string turns a column into
objects, the longest string sets the width of all. So the type of a private container says something about its rows. A
column is therefore read entry by entry, and what an entry is read as depends on that entry alone.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import repeat
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skfairdp._utils import as_pandas, private_error

_BLOCK = 8192  # rows


@dataclass(frozen=True)
class Table:
    """The columns of a DataFrame, an array or a list of rows."""

    names: list[Any]
    columns: list[Any]
    n_rows: int
    is_frame: bool

    def __len__(self) -> int:
        return self.n_rows

    def of(self, positions: Sequence[int]) -> "Table":
        """Some of the columns, under the names they have."""
        columns = [self.columns[j] for j in positions]
        return Table([self.names[j] for j in positions], columns, self.n_rows, self.is_frame)

    def blocks(self) -> list[tuple[slice, "Table"]]:
        """The rows of a table of numbers, some at a time: a row of an array is fetched once for all its columns.

        Anything else is one block, and is read as a whole.
        """
        dtypes = [values.dtype for values in self.columns]
        if not all(isinstance(dtype, np.dtype) and dtype.kind in "fiub" for dtype in dtypes):
            return [(slice(None), self)]
        columns = [np.asarray(values) for values in self.columns]
        rows = [range(self.n_rows)[start : start + _BLOCK] for start in range(0, max(self.n_rows, 1), _BLOCK)]
        places = [slice(of.start, of.stop) for of in rows]
        return [
            (place, Table(self.names, [values[place] for values in columns], len(of), self.is_frame))
            for place, of in zip(places, rows, strict=True)
        ]

    def without(self, positions: Sequence[int]) -> "Table":
        """The other columns."""
        return self.of([j for j in range(len(self.names)) if j not in positions])


def as_container(X: Any, owner: str, *, table: bool = True) -> Any:
    """X as a DataFrame or an array. Lists become arrays of objects, whose entries are as they were."""
    X = as_pandas(X)
    if isinstance(X, pd.DataFrame):
        return X
    if hasattr(X, "__array__"):
        return np.asarray(X)
    return as_matrix(X, owner) if table else as_cube(X, owner)


def read_table(X: Any) -> Table:
    """Read a DataFrame or an array that has been checked to have rows and columns."""
    if isinstance(X, pd.DataFrame):
        return Table(list(X.columns), [X.iloc[:, j] for j in range(X.shape[1])], len(X), True)
    return Table(list(range(X.shape[1])), [X[:, j] for j in range(X.shape[1])], len(X), False)


def as_matrix(rows: Any, owner: str) -> NDArray[np.object_]:
    """Rows given as lists, each entry as it is: numpy would give all entries one type."""
    rows = list(rows)
    lists = [list(row) if isinstance(row, list | tuple | np.ndarray | pd.Series) else None for row in rows]
    if any(row is None or len(row) != len(lists[0] or ()) for row in lists):
        raise private_error("ragged", owner=owner, name="X")
    out = np.empty((len(lists), len(lists[0] or ()) if lists else 0), dtype=object)
    for i, row in enumerate(lists):
        for j, entry in enumerate(row or ()):
            out[i, j] = entry
    return out


def as_cube(images: Any, owner: str) -> NDArray[np.object_]:
    """Nested lists of numbers, each number as it is."""
    try:
        arrays = [np.array(image, dtype=object) for image in images]
    except Exception:  # whatever numpy says of unlike shapes speaks of private ones
        arrays = []
    if len({array.shape for array in arrays}) != 1 or not arrays[0].ndim:
        raise private_error("ragged", owner=owner, name="X")
    return np.stack(arrays)


def as_entries(column: Any) -> NDArray[np.object_]:
    """One Python object per row."""
    if isinstance(column, pd.Series | pd.Index):
        return np.asarray(column.astype(object), dtype=object)
    if isinstance(column, np.ndarray):
        return column.astype(object)
    entries = np.empty(len(column), dtype=object)
    for i, entry in enumerate(column):
        entries[i] = entry
    return entries


def as_numbers(column: Any) -> NDArray[np.float64]:
    """Floats; NaN for every entry that is missing or no number. Strings that spell a number are numbers."""
    dtype = getattr(column, "dtype", None)
    if isinstance(dtype, np.dtype) and dtype.kind in "fiub":
        with np.errstate(all="ignore"):  # a long double may be too large
            return np.asarray(column, dtype=np.float64)
    if isinstance(dtype, pd.api.extensions.ExtensionDtype) and getattr(dtype, "kind", "O") in "fiub":
        if isinstance(dtype, pd.SparseDtype):
            return np.asarray(column, dtype=np.float64)
        return np.asarray(pd.Series(column, copy=False).to_numpy(dtype=np.float64, na_value=np.nan))
    with np.errstate(all="ignore"):
        return np.array([_number(entry) for entry in as_entries(column)], dtype=np.float64)


def _number(entry: Any) -> float:
    numeric = isinstance(entry, Real | np.bool_ | Decimal | str) and not isinstance(entry, np.timedelta64)
    try:
        return float(entry) if numeric else math.nan
    except OverflowError:
        return math.inf if entry > 0 else -math.inf
    except Exception:  # whatever a private entry does, it is no number
        return math.nan


def codes_of_entries(
    entries: NDArray[np.object_], labels: Sequence[Any], *, missing: int, other: int
) -> NDArray[np.int64]:
    """Position of each entry among public labels, ``missing`` for a missing entry and ``other`` for any other one.

    Equality is Python's, so that 1, 1.0 and True are one label. No entry raises an error.
    """
    index = {label: code for code, label in enumerate(labels)}
    listed = entries.tolist()
    try:
        codes = list(map(index.get, listed, repeat(other)))
    except Exception:  # some entry cannot be hashed or compared, so that it equals no label
        codes = [_place(index, entry, other) for entry in listed]
    return np.where(_missing(entries), missing, np.array(codes, dtype=np.int64))


def _missing(entries: NDArray[np.object_]) -> NDArray[np.bool_]:
    """Which entries are missing; one that cannot say (a signalling NaN) is."""
    try:
        return np.asarray(pd.isna(entries))
    except Exception:
        if len(entries) == 1:
            return np.array([True])
        return np.concatenate([_missing(entries[[i]]) for i in range(len(entries))])


def _place(index: dict[Any, int], value: Any, other: int) -> int:
    try:
        return index.get(value, other)
    except Exception:
        return other
