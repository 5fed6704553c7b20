"""Frames, types of columns and members of enums as plain values, for formats that run no code when they are read."""

from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray


@dataclass(frozen=True)
class PlainDtype:
    """The type of a column by its name; of categories, with their values and whether these are ordered."""

    name: str
    values: "PlainFrame | None" = None
    ordered: bool = False

    def restored(self) -> Any:
        """The type."""
        if self.values is not None:
            return pd.CategoricalDtype(self.values.restored(), ordered=self.ordered)
        return pd.api.types.pandas_dtype(self.name)


@dataclass(frozen=True)
class PlainMember:
    """A member of an enum, which its text alone is not."""

    kind: type[Enum]
    text: str

    def restored(self) -> Enum:
        """The member."""
        if not issubclass(self.kind, Enum):
            raise ValueError(f"A stored member names {self.kind.__name__}, which is no enum.")
        return self.kind(self.text)


@dataclass(frozen=True)
class PlainFrame:
    """A DataFrame or a Series: names, columns and their types, and the index where it is more than positions."""

    names: list[Any]
    columns: list[NDArray[Any]]
    dtypes: list[Any]
    index: "PlainFrame | None"
    is_series: bool = False

    @classmethod
    def of(cls, table: pd.DataFrame | pd.Series) -> "PlainFrame":
        """Describe a table."""
        several = isinstance(table, pd.DataFrame)
        columns = [table.iloc[:, j] for j in range(table.shape[1])] if several else [table]
        positions = isinstance(table.index, pd.RangeIndex) and table.index.equals(pd.RangeIndex(len(table)))
        return cls(
            list(table.columns) if several else [table.name],
            [_values(column) for column in columns],
            [plain(column.dtype) for column in columns],
            None if positions else cls.of(pd.Series(table.index, name=table.index.name)),
            not several,
        )

    def restored(self) -> Any:
        """The table."""
        index = None if self.index is None else pd.Index(self.index.restored())
        dtypes = [restored(dtype) for dtype in self.dtypes]
        columns = [pd.Series(v, index, dtype=dtype) for v, dtype in zip(self.columns, dtypes, strict=True)]
        if self.is_series:
            return columns[0].rename(self.names[0])
        frame = pd.DataFrame(dict(enumerate(columns)), index=index)
        frame.columns = pd.Index(self.names)
        return frame


def _values(column: pd.Series) -> NDArray[Any]:
    if isinstance(column.dtype, np.dtype):
        return column.to_numpy()
    return column.astype(object).where(column.notna(), None).to_numpy()


def plain(value: Any) -> Any:
    """Return what stands for a frame, a type of columns or a member, also in a tuple; all else stands for itself."""
    if type(value) is tuple:
        return tuple(map(plain, value))
    if isinstance(value, Enum):
        return PlainMember(type(value), str(value))
    if isinstance(value, pd.DataFrame | pd.Series):
        return PlainFrame.of(value)
    if isinstance(value, pd.CategoricalDtype) and value.categories is not None:
        return PlainDtype("category", PlainFrame.of(pd.Series(value.categories)), bool(value.ordered))
    if isinstance(value, np.dtype | pd.api.extensions.ExtensionDtype):
        return PlainDtype(str(value)) if pd.api.types.pandas_dtype(str(value)) == value else value
    return value


def restored(value: Any) -> Any:
    """The inverse of :func:`plain`."""
    if type(value) is tuple:
        return tuple(map(restored, value))
    return value.restored() if isinstance(value, PlainDtype | PlainFrame | PlainMember) else value


class PlainState:
    """Its ``__getstate__`` is plain values; pickles are what they would be without it."""

    def __getstate__(self) -> dict[str, Any]:
        return {name: plain(value) for name, value in vars(self).items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update({name: restored(value) for name, value in state.items()})

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _unpickled, (type(self), dict(vars(self)))


def _unpickled(kind: Any, state: dict[str, Any]) -> Any:
    found = kind.__new__(kind)
    vars(found).update(state)
    return found
