"""Rows of any container in a form that no other row decides: which type a cell has, and where it lies in memory."""

import contextlib
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype
from scipy import sparse

from skfairdp._typing import Array, Bools, Floats, Ints
from skfairdp._utils._containers import as_objects
from skfairdp._utils._sklearn import take_rows

_NUMBER, _TEXT, _DATE, _MISSING, _OTHER = range(5)


class PlainRows:
    """Rows to take some from: each looks the same whatever the others hold, for one text in a column makes objects of
    all of them, one fraction floats of whole numbers. So numbers are float64, and only rows of one kind, with numbers
    in the same columns, may be taken together. Row -1 is a public one: 0, "", or what is listed."""

    def __init__(self, X: Any, *, native: bool = False, listed: Mapping[Any, Any] | None = None) -> None:
        self._listed = {} if listed is None else listed
        self._rows: Any = X if hasattr(X, "shape") else _array(X)
        self._columns: list[_Column] | None = None
        self._numbers: Floats | None = None
        self._names: Any = None
        self.kinds = np.zeros(int(self._rows.shape[0]), dtype=np.int64)
        if not native:
            self._make_plain()

    def __len__(self) -> int:
        return len(self.kinds)

    def take(self, positions: Any, like: int | None = None) -> Any:
        """The rows at these positions, all of one kind: that of the first, or of the row ``like``."""
        positions = np.asarray(positions, dtype=np.int64)
        public = positions < 0
        if like is None:
            like = int(positions[0]) if len(positions) else 0
        if self._columns is None:
            return self._native(positions, public)
        if self._numbers is not None and not self.kinds[like]:
            taken = self._numbers[positions]
            taken[public] = [column.public for column in self._columns]
            return taken if self._names is None else pd.DataFrame(taken, columns=self._names)
        cells = [column.take(positions, public, like) for column in self._columns]
        if self._names is None:
            return np.column_stack([np.asarray(column, dtype=object) for column in cells])
        table = pd.DataFrame(dict(enumerate(cells)))
        table.columns = self._names
        return table

    def _native(self, positions: Ints, public: Bools) -> Any:
        rows, frame = self._rows, isinstance(self._rows, pd.DataFrame)
        if sparse.issparse(rows):  # its last row is the public one
            return rows[positions]
        if not public.any():
            return rows.iloc[positions] if frame else take_rows(rows, positions)
        if isinstance(rows, np.ndarray):
            taken = rows[positions]
            taken[public] = self._public_numbers() if rows.dtype.kind in "biuf" else None
            return taken
        table = nw.from_native(rows, eager_only=True)
        whole = nw.concat([table[positions[~public].tolist()], nw.from_native(self._public_row(), eager_only=True)])
        return whole[np.where(public, len(whole) - 1, np.cumsum(~public) - 1).tolist()].to_native()

    def _public_numbers(self) -> Floats:
        numbers = np.zeros(self._rows.shape[1:])
        for j, value in self._listed.items():
            if numbers.ndim == 1 and isinstance(j, int) and j < len(numbers) and _kind(value) == _NUMBER:
                numbers[j] = value
        return numbers

    def _public_row(self) -> Any:
        """A table of one row, of the same container and types."""
        table = nw.from_native(self._rows, eager_only=True)
        cells = {name: [self._listed.get(name, _usual(dtype))] for name, dtype in table.schema.items()}
        if isinstance(self._rows, pd.DataFrame):
            types = self._rows.dtypes
            return pd.DataFrame({name: pd.Series(cell, dtype=types[name]) for name, cell in cells.items()})
        return nw.from_dict(cells, schema=table.schema, backend=table.implementation).to_native()

    def _make_plain(self) -> None:
        if sparse.issparse(self._rows):
            rows = self._rows.tocsr()
            rows = rows.astype(rows.dtype if rows.dtype.kind == "f" else np.float64, copy=True)
            rows.sum_duplicates()
            self._rows = sparse.vstack([rows, sparse.csr_matrix((1, rows.shape[1]), dtype=rows.dtype)], format="csr")
            return
        table = nw.from_native(self._rows, eager_only=True, pass_through=True)
        if isinstance(table, nw.DataFrame):
            frame = self._rows if isinstance(self._rows, pd.DataFrame) else table.to_pandas()
            self._names = frame.columns
            listed = [self._listed.get(name) for name in self._names]
            self._set_columns([_Column(frame.iloc[:, j], value) for j, value in enumerate(listed)])
            return
        array = np.asarray(self._rows)
        if array.dtype.kind in "OUST" and array.ndim == 2:
            listed = [self._listed.get(j) for j in range(array.shape[1])]
            self._set_columns([_Column(pd.Series(array[:, j].astype(object)), v) for j, v in enumerate(listed)])
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

    def __init__(self, values: Any, listed: Any) -> None:
        self.values, self.listed, self.numbers, self.kinds = values, listed, None, None
        self.public = float(listed) if _kind(listed) == _NUMBER else 0.0
        dtype = values.dtype
        if is_numeric_dtype(dtype) or is_bool_dtype(dtype):
            self.numbers = _as_numbers(values)
        elif not isinstance(dtype, pd.CategoricalDtype):
            self.values = cells = values.to_numpy(dtype=object)
            self.kinds = np.fromiter(map(_kind, cells), dtype=np.int64, count=len(cells))
            self.numbers = np.full(len(cells), np.nan)
            is_number = self.kinds == _NUMBER
            self.numbers[is_number] = cells[is_number].astype(np.float64)

    def take(self, positions: Ints, public: Bools, like: int) -> Any:
        """Those at these positions, of the kind of the row ``like``."""
        if self.numbers is not None and (self.kinds is None or self.kinds[like] == _NUMBER):
            taken = self.numbers[positions]
            taken[public] = self.public
        elif self.kinds is not None:
            taken, kind = self.values[positions], int(self.kinds[like])
            if public.any():
                taken[public] = self._public_cell(kind)
            if kind == _DATE:
                taken = pd.to_datetime(taken, utc=True).tz_localize(None).astype("datetime64[ns]")
            elif kind == _MISSING:
                taken = np.full(len(taken), np.nan)
        else:
            taken = self.values.iloc[positions].reset_index(drop=True)
            if public.any():
                taken = taken.mask(public, pd.Series([self.listed], dtype=self.values.dtype)[0])
        return taken

    def _public_cell(self, kind: int) -> Any:
        if kind == _OTHER:
            raise TypeError("cells of any kind have no public one beside them")
        return pd.Timestamp(0) if kind == _DATE else self.listed if isinstance(self.listed, str) else ""


def _usual(dtype: Any) -> Any:
    if dtype.is_numeric():
        return 0
    return "" if dtype == nw.String else False if dtype == nw.Boolean else None


def _as_numbers(values: Any) -> Floats:
    dense = values.sparse.to_dense() if isinstance(values.dtype, pd.SparseDtype) else values
    return dense.to_numpy(dtype=np.float64, na_value=np.nan)


def _kind(cell: Any) -> int:
    if isinstance(cell, str):
        return _TEXT
    if isinstance(cell, bool | int | float | np.number | np.bool_) and not isinstance(cell, np.timedelta64):
        try:  # NaN in a column of texts stays there; whole numbers beyond float64 are no numbers
            return _NUMBER if float(cell) == float(cell) else _MISSING
        except (OverflowError, TypeError):
            return _OTHER
    if isinstance(cell, datetime | np.datetime64) and not pd.isna(cell):
        return _DATE
    return _MISSING if cell is None or cell is pd.NA or cell is pd.NaT else _OTHER


def _array(X: Any) -> Array:
    """Rows in a sequence."""
    with contextlib.suppress(ValueError):  # of unlike lengths
        array = np.asarray(X)
        if array.ndim and array.dtype.kind not in "US":
            return array
    return as_objects(X)


def by_halves(passes: Callable[[Ints], bool], some: Ints) -> Ints:
    """Those that pass, where some of them together do if and only if each does."""
    if not len(some) or passes(some):
        return some
    if len(some) == 1:
        return some[:0]
    half = len(some) // 2
    return np.concatenate([by_halves(passes, some[:half]), by_halves(passes, some[half:])])
