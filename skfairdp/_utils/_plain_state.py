"""Frames, types of columns and members of enums as plain values, for formats that run no code when they are read."""

import threading
from dataclasses import dataclass
from enum import Enum
from functools import singledispatch
from pathlib import PurePath
from typing import Any

import numpy as np
import pandas as pd

from skfairdp._typing import Array


class Plain:
    """What stands for a value that such formats do not know."""

    def restored(self) -> Any:
        """The value."""
        raise NotImplementedError


@singledispatch
def plain(value: Any) -> Any:
    """Return what stands for a value. Most stand for themselves."""
    return value


def restored(value: Any) -> Any:
    """The inverse of :func:`plain`."""
    if type(value) is tuple:
        return tuple(map(restored, value))
    return value.restored() if isinstance(value, Plain) else value


@dataclass(frozen=True)
class PlainDtype(Plain):
    """The type of a column by its name; of categories, with their values and whether these are ordered."""

    name: str
    values: "PlainFrame | None" = None
    ordered: bool = False

    def restored(self) -> Any:
        if self.values is not None:
            return pd.CategoricalDtype(self.values.restored(), ordered=self.ordered)
        return pd.api.types.pandas_dtype(self.name)


@dataclass(frozen=True)
class PlainMember(Plain):
    """A member of an enum, which its text alone is not."""

    kind: type[Enum]
    text: str

    def restored(self) -> Enum:
        if not issubclass(self.kind, Enum):
            raise ValueError(f"A stored member names {self.kind.__name__}, which is no enum.")
        return self.kind(self.text)


@dataclass(frozen=True)
class PlainFrame(Plain):
    """A DataFrame or a Series: names, columns and their types, and the index where it is more than positions."""

    names: list[Any]
    columns: list[Array]
    dtypes: list[Any]
    index: "PlainFrame | None"
    is_series: bool

    def restored(self) -> Any:
        index = None if self.index is None else pd.Index(self.index.restored())
        dtypes = map(restored, self.dtypes)
        columns = [pd.Series(values, index, dtype) for values, dtype in zip(self.columns, dtypes, strict=True)]
        if self.is_series:
            return columns[0].rename(self.names[0])
        return pd.DataFrame(dict(enumerate(columns)), index=index).set_axis(pd.Index(self.names), axis=1)


@plain.register(pd.DataFrame)
@plain.register(pd.Series)
def _(table: Any) -> PlainFrame:
    frame = pd.DataFrame(table)
    columns = [frame.iloc[:, j] for j in range(frame.shape[1])]
    positions = table.index.equals(pd.RangeIndex(len(table)))
    return PlainFrame(
        [table.name] if isinstance(table, pd.Series) else list(table.columns),
        # categories and numbers that may be missing as objects
        [(c if isinstance(c.dtype, np.dtype) else c.astype(object).where(c.notna(), None)).to_numpy() for c in columns],
        [plain(column.dtype) for column in columns],
        None if positions else plain(table.index.to_series(range(len(table)))),
        isinstance(table, pd.Series),
    )


@plain.register(np.dtype)
@plain.register(pd.api.extensions.ExtensionDtype)
def _(dtype: Any) -> PlainDtype:
    if isinstance(dtype, pd.CategoricalDtype) and dtype.categories is not None:
        return PlainDtype("category", plain(pd.Series(dtype.categories)), bool(dtype.ordered))
    return PlainDtype(str(dtype))


@plain.register
def _(member: Enum) -> PlainMember:
    return PlainMember(type(member), str(member))


@plain.register
def _(path: PurePath) -> str:
    return str(path)


@plain.register
def _(values: tuple) -> Any:
    return tuple(map(plain, values)) if type(values) is tuple else values


class PlainState:
    """``__getstate__`` gives plain values. Pickles and copies are what they would be without it."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        before, _NOW.pickled = _NOW.pickled, True
        try:
            return super().__reduce_ex__(protocol)
        finally:
            _NOW.pickled = before

    def __getstate__(self) -> dict[str, Any]:
        state: Any = super().__getstate__()
        return state if _NOW.pickled else {name: plain(value) for name, value in state.items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        update = getattr(super(), "__setstate__", vars(self).update)
        update({name: restored(value) for name, value in state.items()})


class _Now(threading.local):
    pickled = False  # whether this thread takes the state of an object for a pickle


_NOW = _Now()
