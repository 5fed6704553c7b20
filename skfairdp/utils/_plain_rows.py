"""Rows of any container in a form that no other row decides: which type a cell has, and where it lies in memory."""

from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_bool_dtype, is_numeric_dtype, is_object_dtype, is_string_dtype
from scipy import sparse

from skfairdp.utils._sklearn import take_rows

__all__ = ["PlainRows"]

_NUMBER, _TEXT, _MISSING, _OTHER = range(4)


class PlainRows:
    """Rows to take some from: each looks the same whatever the others hold.

    One text in a column of numbers makes objects of all of them, one fraction makes floats of whole numbers. So
    numbers are float64 here, and a row that does not hold numbers in the same columns is of another kind: only rows of
    one kind may be taken together.

    Parameters
    ----------
    X : rows, as an estimator takes them
    native : bool, default=False
        Keep the container and the types as they are.

    Examples
    --------
    >>> import pandas as pd
    >>> from skfairdp.utils import PlainRows
    >>> rows = PlainRows(pd.DataFrame({"age": [20, "?", 40]}))
    >>> rows.kinds.tolist(), rows.take([0, 2]).dtypes.tolist()
    ([0, 2, 0], [dtype('float64')])
    """

    def __init__(self, X: Any, *, native: bool = False) -> None:
        self._rows: Any = X if hasattr(X, "shape") else _array(X)
        self._columns: list[_Column] | None = None
        self._numbers: NDArray[np.float64] | None = None
        self._names: Any = None
        self.kinds = np.zeros(int(self._rows.shape[0]), dtype=np.int64)
        if not native:
            self._make_plain()

    def __len__(self) -> int:
        return len(self.kinds)

    def take(self, positions: Any) -> Any:
        """The rows at these positions, which are of one kind."""
        positions = np.asarray(positions, dtype=np.int64)
        if self._columns is None:
            if isinstance(self._rows, pd.DataFrame):
                return self._rows.iloc[positions]
            return take_rows(self._rows, positions)
        first = int(positions[0]) if len(positions) else 0
        if self._numbers is not None and not self.kinds[first]:
            taken = self._numbers[positions]
            return taken if self._names is None else pd.DataFrame(taken, columns=self._names)
        cells = [column.take(positions, first) for column in self._columns]
        if self._names is None:
            return np.column_stack([np.asarray(column, dtype=object) for column in cells])
        table = pd.DataFrame(dict(enumerate(cells)))
        table.columns = self._names
        return table

    def _make_plain(self) -> None:
        if sparse.issparse(self._rows):
            rows = self._rows.tocsr()
            self._rows = rows.astype(rows.dtype if rows.dtype.kind == "f" else np.float64, copy=True)
            self._rows.sum_duplicates()
            return
        table = nw.from_native(self._rows, eager_only=True, pass_through=True)
        if isinstance(table, nw.DataFrame):
            frame = self._rows if isinstance(self._rows, pd.DataFrame) else table.to_pandas()
            self._names = frame.columns
            self._set_columns([_Column(frame.iloc[:, j]) for j in range(frame.shape[1])])
            return
        array = np.asarray(self._rows)
        if array.dtype.kind in "OUST" and array.ndim == 2:
            self._set_columns([_Column(pd.Series(array[:, j].astype(object))) for j in range(array.shape[1])])
        elif array.dtype.kind in "biu":
            self._rows = array.astype(np.float64, order="C")
        else:
            self._rows = np.ascontiguousarray(array) if array.dtype.kind == "f" else array.astype(object)

    def _set_columns(self, columns: "list[_Column]") -> None:
        self._columns = columns
        kinds = [column.kinds for column in columns if column.kinds is not None]
        if kinds:
            of_rows = np.stack(kinds, axis=1)
            self.kinds = np.unique(of_rows, axis=0, return_inverse=True)[1].ravel().astype(np.int64) + 1
            self.kinds[(of_rows == _NUMBER).all(axis=1)] = 0
        numbers = [column.numbers for column in columns if column.numbers is not None]
        if len(numbers) == len(columns):
            self._numbers = np.column_stack([np.empty((len(self), 0)), *numbers])


class _Column:
    """Cells of a column: as numbers where they are some, and of which kind each is where its type leaves that open."""

    def __init__(self, values: Any) -> None:
        self.values, self.numbers, self.kinds = values, None, None
        dtype = values.dtype
        if is_numeric_dtype(dtype) or is_bool_dtype(dtype):
            self.numbers = _as_numbers(values)
        elif is_object_dtype(dtype) or is_string_dtype(dtype):
            self.values = cells = values.to_numpy(dtype=object)
            self.kinds = np.fromiter(map(_kind, cells), dtype=np.int64, count=len(cells))
            self.numbers = np.full(len(cells), np.nan)
            is_number = self.kinds == _NUMBER
            self.numbers[is_number] = cells[is_number].astype(np.float64)

    def take(self, positions: NDArray[np.int64], first: int) -> Any:
        """Those at these positions, of the kind of the first row."""
        if self.numbers is not None and (self.kinds is None or self.kinds[first] == _NUMBER):
            return self.numbers[positions]
        values = self.values
        return values[positions] if isinstance(values, np.ndarray) else values.iloc[positions].reset_index(drop=True)


def _as_numbers(values: Any) -> NDArray[np.float64]:
    dense = values.sparse.to_dense() if isinstance(values.dtype, pd.SparseDtype) else values
    numbers: NDArray[np.float64] = dense.to_numpy(dtype=np.float64, na_value=np.nan)
    return numbers


def _kind(cell: Any) -> int:
    if isinstance(cell, str):
        return _TEXT
    if isinstance(cell, bool | int | float | np.number | np.bool_):
        return _number_or_missing(cell)
    return _MISSING if cell is None or cell is pd.NA or cell is pd.NaT else _OTHER


def _number_or_missing(cell: Any) -> int:
    """NaN in a column of texts stays there; whole numbers beyond float64 are no numbers."""
    try:
        return _NUMBER if float(cell) == float(cell) else _MISSING
    except (OverflowError, TypeError):
        return _OTHER


def _array(X: Any) -> NDArray[Any]:
    """Rows in a sequence."""
    try:
        array = np.asarray(X)
        if array.ndim and array.dtype.kind not in "US":
            return array
    except ValueError:  # of unlike lengths
        pass
    cells = np.empty(len(X), dtype=object)
    cells[:] = list(X)
    return cells
