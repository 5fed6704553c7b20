"""Kinds of columns: what is public about the values of each, and how any private value is read by it."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skfairdp._docs import shared_docs
from skfairdp.utils import as_series

__all__ = [
    "Boolean",
    "Category",
    "Column",
    "Date",
    "Number",
    "cells_of",
    "column_from_dict",
    "real_number",
    "remembered",
    "spells_number",
]

_EPOCH = date(1970, 1, 1)
_NUMBERS = (int, float, np.integer, np.floating, np.bool_, Decimal)


@shared_docs
class Column(ABC):
    """What is public about one column.

    Reading is total: whatever a private cell holds, it is read as a value that the declaration allows, or as missing.
    No error, warning, type or width follows it.
    """

    kind: ClassVar[str]
    missing: bool

    def read(self, values: Any) -> NDArray[np.float64]:
        """Read a column as numbers: the value, or the position among the declared ones.

        {column_values}

        Returns
        -------
        ndarray of shape (n_rows,)
            NaN where there is no value.
        """
        return self._read(values)

    def fits(self, values: Any) -> NDArray[np.bool_]:
        """Tell which cells are what the declaration allows. The answer is as private as the cells.

        {column_values}

        Returns
        -------
        ndarray of bool of shape (n_rows,)
            False where :meth:`read` has to guess: a number beyond the bounds, a value that is not listed, and one that
            is missing where none may be.
        """
        return self._fits(values)

    def restore(self, numbers: NDArray[np.float64]) -> "pd.Series[Any]":
        """Make a column again, in the one dtype that the declaration gives.

        Parameters
        ----------
        numbers : ndarray of shape (n_rows,)
            As :meth:`read` returns them.

        Returns
        -------
        Series of shape (n_rows,)
            With pandas' usual index.
        """
        return self._restore(numbers)

    def to_dict(self) -> dict[str, Any]:
        """Return the declaration as values that JSON and YAML hold.

        Returns
        -------
        dict
            With the key "kind", and the parameters of that kind.
        """
        return {"kind": self.kind, **self._declared(), **({"missing": True} if self.missing else {})}

    @abstractmethod
    def _read(self, values: Any) -> NDArray[np.float64]: ...

    def _fits(self, values: Any) -> NDArray[np.bool_]:
        return ~np.isnan(self._read(values)) | self.missing

    @abstractmethod
    def _restore(self, numbers: NDArray[np.float64]) -> "pd.Series[Any]": ...

    @abstractmethod
    def _declared(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Number(Column):
    """A number within public bounds. Private values beyond them count as the bound.

    Parameters
    ----------
    low, high : float
        Finite, low < high.
    step : float, default=None
        Values are multiples of it, counted from ``low``: 1 for whole numbers. None is any number.
    missing : bool, default=False
        Whether a value may be missing. Where none may, a missing one counts as the middle.

    Examples
    --------
    >>> from skfairdp.schema import Number
    >>> Number(17, 90).read([25, 1000, "no number"])
    array([25. , 90. , 53.5])
    """

    low: float
    high: float
    step: float | None = None
    missing: bool = False
    kind: ClassVar[str] = "number"

    def __post_init__(self) -> None:
        bounds = [self.low, self.high]
        if not all(_is_number(bound) and math.isfinite(bound) for bound in bounds) or not self.low < self.high:
            raise ValueError(f"Number needs finite bounds, low below high. Got low={self.low!r}, high={self.high!r}.")
        if self.step is not None and not (_is_number(self.step) and 0 < self.step <= self.high - self.low):
            raise ValueError(f"The 'step' of a Number must be in (0, high - low] or None. Got {self.step!r} instead.")

    def _read(self, values: Any) -> NDArray[np.float64]:
        numbers = np.clip(_as_numbers(values), self.low, self.high)
        if not self.missing:
            numbers = np.where(np.isnan(numbers), (self.low + self.high) / 2, numbers)
        if self.step is not None:
            numbers = np.clip(self.low + self.step * np.round((numbers - self.low) / self.step), self.low, self.high)
        return numbers

    def _fits(self, values: Any) -> NDArray[np.bool_]:
        return _within(_as_numbers(values), self.low, self.high, self.missing)

    def _restore(self, numbers: NDArray[np.float64]) -> "pd.Series[Any]":
        # A column of whole numbers where step and bounds are whole, else of floats.
        steps = (self.low, self.high, 0.5 if self.step is None else self.step)
        whole = all(float(value).is_integer() for value in steps)
        return pd.Series(numbers).astype(("Int64" if self.missing else "int64") if whole else "float64")

    def _declared(self) -> dict[str, Any]:
        step = {} if self.step is None else {"step": self.step}
        return {"low": self.low, "high": self.high, **step}


@dataclass(frozen=True)
class Category(Column):
    """One of a public list of values. Private values outside of it count as none of them.

    Parameters
    ----------
    values : sequence of str, int, float or bool
        Different ones, at least one.
    missing : bool, default=False
        Whether a value may be missing.

    Examples
    --------
    >>> from skfairdp.schema import Category
    >>> Category(["Private", "State-gov"]).read(["State-gov", "Astronaut"])
    array([ 1., nan])
    """

    values: tuple[Any, ...]
    missing: bool = False
    kind: ClassVar[str] = "category"

    def __post_init__(self) -> None:
        if isinstance(self.values, str) or not isinstance(self.values, Sequence | np.ndarray | pd.Index):
            raise ValueError(f"The 'values' of a Category must be a list. Got {self.values!r} instead.")
        values = tuple(value.item() if isinstance(value, np.generic) else value for value in self.values)
        allowed = all(isinstance(value, str | int | float) and value == value for value in values)
        if not values or not allowed or len(set(values)) < len(values):
            raise ValueError(
                "The 'values' of a Category must be different texts or numbers, at least one, none of them missing. "
                f"Got {list(values)!r} instead."
            )
        object.__setattr__(self, "values", values)

    def _read(self, values: Any) -> NDArray[np.float64]:
        # What reads a file calls a column of 1, 2, 3 numbers, and texts once one cell is none. That is no news here.
        spelled = {other: j for j, value in enumerate(self.values) for other in _spellings(value)}
        return _positions(values, spelled | {value: j for j, value in enumerate(self.values)})

    def _restore(self, numbers: NDArray[np.float64]) -> "pd.Series[Any]":
        # A categorical column with exactly these categories.
        codes = np.where(np.isnan(numbers), -1, numbers).astype(np.int64)
        return pd.Series(pd.Categorical.from_codes(codes, categories=list(self.values)))

    def _declared(self) -> dict[str, Any]:
        return {"values": list(self.values)}


@dataclass(frozen=True)
class Boolean(Column):
    """Yes or no: True and False, 1 and 0, or "true" and "false".

    Parameters
    ----------
    missing : bool, default=False
        Whether a value may be missing.

    Examples
    --------
    >>> from skfairdp.schema import Boolean
    >>> Boolean().read([True, 0, "maybe"])
    array([ 1.,  0., nan])
    """

    missing: bool = False
    kind: ClassVar[str] = "boolean"

    def _read(self, values: Any) -> NDArray[np.float64]:
        spelled = {f(text): j for j, text in enumerate(("false", "true")) for f in (str, str.upper, str.capitalize)}
        return _positions(values, {False: 0, True: 1, "0": 0, "1": 1, **spelled})

    def _restore(self, numbers: NDArray[np.float64]) -> "pd.Series[Any]":
        # A column of pandas' booleans, which may be missing.
        return pd.Series(numbers).astype("Float64").astype("boolean")

    def _declared(self) -> dict[str, Any]:
        return {}


@dataclass(frozen=True)
class Date(Column):
    """A day within public bounds. Private days beyond them count as the bound.

    Parameters
    ----------
    first, last : date or str
        A text is read as year-month-day.
    missing : bool, default=False
        Whether a day may be missing. Where none may, a missing one counts as the middle.

    Examples
    --------
    >>> from skfairdp.schema import Date
    >>> Date("2020-01-01", "2020-01-31").read(["2020-01-03", "1999-12-31"])
    array([18264., 18262.])
    """

    first: date
    last: date
    missing: bool = False
    kind: ClassVar[str] = "date"

    def __post_init__(self) -> None:
        try:
            first, last = (
                day if isinstance(day, date) else date.fromisoformat(str(day)) for day in (self.first, self.last)
            )
        except ValueError:
            first = last = _EPOCH
        if not first < last:
            raise ValueError(
                "Date needs 'first' before 'last', as dates or as texts like '2026-01-31'. "
                f"Got first={self.first!r}, last={self.last!r}."
            )
        object.__setattr__(self, "first", first)
        object.__setattr__(self, "last", last)

    def _read(self, values: Any) -> NDArray[np.float64]:
        low, high = self._days()
        days = np.clip(_as_days(values), low, high)
        return days if self.missing else np.where(np.isnan(days), (low + high) // 2, days)

    def _fits(self, values: Any) -> NDArray[np.bool_]:
        return _within(_as_days(values), *self._days(), self.missing)

    def _days(self) -> tuple[int, int]:
        return (self.first - _EPOCH).days, (self.last - _EPOCH).days

    def _restore(self, numbers: NDArray[np.float64]) -> "pd.Series[Any]":
        # A column of timestamps.
        return pd.Series(pd.to_datetime(numbers, unit="D", origin="unix")).astype("datetime64[s]")

    def _declared(self) -> dict[str, Any]:
        return {"first": self.first.isoformat(), "last": self.last.isoformat()}


_KINDS: dict[str, type[Column]] = {kind.kind: kind for kind in (Number, Category, Boolean, Date)}


def column_from_dict(declared: Any, name: str) -> Column:
    """The inverse of ``to_dict``.

    Parameters
    ----------
    declared : dict
        With the key ``"kind"`` and the parameters of that kind.
    name : str
        Of the column, for messages.

    Returns
    -------
    Column
    """
    kind = declared.get("kind") if isinstance(declared, dict) else None
    if kind not in _KINDS:
        refused = " Free text is refused: nothing public bounds it." if kind == "text" else ""
        raise ValueError(f"Column {name!r} of a Schema needs a 'kind' among {sorted(_KINDS)}. Got {kind!r}.{refused}")
    parameters = {key: value for key, value in declared.items() if key != "kind"}
    unfilled = sorted(key for key, value in parameters.items() if value is None and key != "step")
    if unfilled:
        raise ValueError(
            f"Column {name!r} of a Schema is not filled in yet: {', '.join(unfilled)}. Write what you know without "
            "looking at the private rows, or pay for it with Schema.release."
        )
    try:
        return _KINDS[kind](**parameters)
    except (TypeError, ValueError) as error:
        raise ValueError(f"Column {name!r} of a Schema: {error}") from None


def known_from_dict(declared: Any, name: str) -> "Column | str":
    """What a template says of a column that may not be filled in: the column, or its kind where something is null.

    Parameters
    ----------
    declared : dict
        As for :func:`column_from_dict`; what is null is not known.
    name : str
        Of the column, for messages.

    Returns
    -------
    Column or str
    """
    if isinstance(declared, dict) and declared.get("kind") in _KINDS:
        unknown = [key for key, value in declared.items() if value is None and key not in ("kind", "step")]
        if unknown:
            return str(declared["kind"])
    return column_from_dict(declared, name)


# ---------------------------------------------------------------------- total readers


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _within(numbers: NDArray[np.float64], low: float, high: float, missing: bool) -> NDArray[np.bool_]:
    with np.errstate(invalid="ignore"):
        return ((low <= numbers) & (numbers <= high)) | (np.isnan(numbers) & missing)


def _as_numbers(values: Any) -> NDArray[np.float64]:
    """Every cell as a number, NaN for what is none. What one cell is must not follow from another, so no parser of
    whole columns is asked: those of pandas change their mind about all cells where they meet one of another type."""
    cells = cells_of(values)
    if isinstance(cells.dtype, pd.CategoricalDtype):
        by_code: NDArray[np.float64] = np.append(_as_numbers(cells.cat.categories.to_series()), np.nan)
        return np.asarray(by_code[cells.cat.codes.to_numpy()])
    if pd.api.types.is_numeric_dtype(cells.dtype):
        return np.asarray(cells.to_numpy(dtype=np.float64, na_value=np.nan))
    known = remembered(_number_of)
    return np.array([known(cell) if type(cell) is str else _number_of(cell) for cell in cells], dtype=np.float64)


def _number_of(cell: Any) -> float:
    try:
        if isinstance(cell, str):
            return float(cell) if cell.isascii() and "_" not in cell else math.nan
        cell = real_number(cell)
        return float(cell) if isinstance(cell, _NUMBERS) else math.nan
    except Exception:
        return math.nan


def remembered(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """The same function of texts, asked once for each; in a column the same ones come again and again.

    Parameters
    ----------
    read : callable
        Of a text alone.

    Returns
    -------
    callable
    """
    seen: dict[str, Any] = {}

    def known(text: str) -> Any:
        if text not in seen:
            seen[text] = read(text)
        return seen[text]

    return known


def _as_days(values: Any) -> NDArray[np.float64]:
    """Every cell as days since 1970, NaN for what is no day. A number counts as days."""
    cells = cells_of(values)
    if pd.api.types.is_numeric_dtype(cells.dtype) and not pd.api.types.is_bool_dtype(cells.dtype):
        return np.floor(_as_numbers(cells))
    return np.array([_day_of(cell) for cell in cells], dtype=np.float64)


def _day_of(cell: Any) -> float:
    try:
        cell = real_number(cell)
        if _is_number(cell):
            return float(np.floor(float(cell)))
        if isinstance(cell, str):
            return float((date.fromisoformat(cell.strip()[:10]) - _EPOCH).days)
        if isinstance(cell, np.datetime64):
            return math.nan if np.isnat(cell) else float(cell.astype("datetime64[D]").astype(np.int64))
        return float((date(cell.year, cell.month, cell.day) - _EPOCH).days)
    except Exception:
        return math.nan


def spells_number(text: str) -> bool:
    """Tell whether a text is how a number is written.

    Parameters
    ----------
    text : str

    Returns
    -------
    bool
    """
    return text.strip() == text and math.isfinite(_number_of(text))


def _spellings(value: Any) -> list[Any]:
    """The number that a text spells, or texts that spell a number or a truth."""
    if isinstance(value, bool):
        return [str(value), str(value).lower(), str(value).upper()]
    if isinstance(value, str):
        return [float(value)] if spells_number(value) else []
    whole = [str(int(value))] if float(value).is_integer() else []
    return [str(value), *whole]


def _positions(values: Any, places: dict[Any, int]) -> NDArray[np.float64]:
    """The place of every cell, NaN for one that has none. Equal numbers are equal whatever their type."""

    def place(cell: Any) -> float:
        try:
            return places.get(cell, math.nan)
        except Exception:  # it cannot be hashed, or compared
            return math.nan

    cells = cells_of(values)
    if isinstance(cells.dtype, pd.CategoricalDtype):
        by_code: NDArray[np.float64] = np.array([*map(place, cells.cat.categories), math.nan])
        return np.asarray(by_code[cells.cat.codes.to_numpy()])
    if cells.dtype == object or not pd.api.types.is_numeric_dtype(cells.dtype):
        return np.array([place(cell) for cell in cells], dtype=np.float64)
    numbers = cells.to_numpy(dtype=np.float64, na_value=np.nan)
    distinct, inverse = np.unique(numbers, return_inverse=True)
    return np.array([place(number) for number in distinct.tolist()], dtype=np.float64)[inverse]


def cells_of(values: Any) -> "pd.Series[Any]":
    """A column whose type is that of its cells: one complex number makes all others of its column complex as well.

    Parameters
    ----------
    values : array-like of shape (n_rows,)

    Returns
    -------
    Series of shape (n_rows,)
    """
    if isinstance(values, pd.Series):
        cells = values
    else:
        array = np.empty(len(values), dtype=object) if not isinstance(values, np.ndarray) else values
        if array is not values:
            array[:] = list(values)
        cells = as_series(array)
    return pd.Series([real_number(cell) for cell in cells], dtype=object) if cells.dtype.kind == "c" else cells


def real_number(cell: Any) -> Any:
    """The number itself where a complex one lies on the real line, or is none at all; any other cell as it is.

    Parameters
    ----------
    cell : object
    """
    if not isinstance(cell, complex | np.complexfloating):
        return cell
    return math.nan if cell != cell else cell if cell.imag else cell.real
