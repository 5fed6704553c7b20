"""Kinds of columns: what is public about the values of each, and how any private value is read by it."""

import math
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields
from datetime import date, datetime
from decimal import Decimal
from functools import cache, cached_property, partial
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skfairdp._docs import shared_docs
from skfairdp._utils import Plain, as_objects, as_series, from_arrow, plain
from skfairdp.privacy import PrivacySpent

_EPOCH = date(1970, 1, 1)
_FIRST_DAY, _LAST_DAY = ((day - _EPOCH).days for day in (date.min, date.max))
#: Numbers beyond stand for something else, as infinity and the largest float do: differences of two overflow.
FARTHEST = 1e300
#: Words for nothing, where they are no listed value.
NOTHING = frozenset(
    ("", "?", "-", ".", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null", "None", "none", "<NA>", "NaT")
)
#: Words for no and yes, by their place in a column of booleans.
TRUTHS = {
    spelled(word): place
    for word, place in (("false", 0), ("true", 1), ("no", 0), ("yes", 1))
    for spelled in (str, str.upper, str.capitalize)
}
#: What may follow a day.
TIME_OF_DAY = re.compile(
    r"[T ] *(?:[01]?\d|2[0-4]):[0-5]\d(:[0-6]\d([.,]\d+)?)?( ?[AaPp][Mm])?( ?(Z|UTC|[-+]\d\d:?\d\d))?$"
)
_DIGITS = re.compile(r"\d+(\.0)?")
_OF_DIGITS = 10_000_000  # a day written as 20200131
_ISO_DAY = re.compile(r"\d{4}(-\d\d-\d\d|\d{4}|-W\d\d-\d|W\d{3})")
_SELDOM = ("decimal", "thousands", "unit", "others", "format")  # shown where it is said
_NUMBERS = (int, float, np.integer, np.floating, np.bool_)


@dataclass(frozen=True)
class _Paid:
    """What was paid to find it; None for what was written down. Copies with other values still know."""

    privacy_: PrivacySpent | None = field(default=None, kw_only=True, repr=False, compare=False)


@shared_docs
class Column(_Paid, ABC):
    """What is public about one column. Reading is total: whatever a private cell holds, it is read as a value that the
    declaration allows, or as missing. No error, warning, type or width follows it."""

    kind: ClassVar[str]
    missing: bool

    def __post_init__(self) -> None:
        if not isinstance(self.missing, bool | np.bool_):  # "false" in a file would be true
            raise ValueError(
                f"The 'missing' of a {type(self).__name__} must be True or False. Got {self.missing!r} instead."
            )

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.read.__doc__, cls.restore.__doc__ = Column.read.__doc__, Column.restore.__doc__

    @cached_property
    def ends(self) -> tuple[float, float]:
        """The smallest and the largest number that :meth:`read` gives."""
        low, high = self.read(self._limits())
        return float(low), float(high)

    @abstractmethod
    def read(self, values: Any) -> NDArray[np.float64]:
        """Read a column as numbers: the value, or the position among the declared ones.

        {column_values}

        Returns
        -------
        ndarray of shape (n_rows,)
            NaN where there is no value.
        """

    def fits(self, values: Any) -> NDArray[np.bool_]:
        """Tell which cells are what the declaration allows. The answer is as private as the cells.

        {column_values}

        Returns
        -------
        ndarray of bool of shape (n_rows,)
            False where :meth:`read` has to guess: a cell that cannot be read, a number beyond the bounds, a value that
            is not listed, and one that is missing where none may be.
        """
        found = self.misfits(values)
        wrong = np.logical_or.reduce([own for what, own in found.items() if what != "missing" or not self.missing])
        return ~wrong | (getattr(self, "others", None) is not None)

    def misfits(self, values: Any) -> dict[str, NDArray[np.bool_]]:
        """Tell which cells are no value, and why. The answer is as private as the cells.

        {column_values}

        Returns
        -------
        dict of str to ndarray of bool of shape (n_rows,)
            "missing": nothing is there, or a word for it such as NA or "?". "unreadable": something that is no value of
            this kind, such as "$5" or infinity where numbers are. "beyond": a value outside of the bounds or the list.
        """
        raw = self._values(values)
        missing = np.isnan(raw) & _are_missing(values)
        beyond = self._beyond(raw)
        return {"missing": missing, "unreadable": np.isnan(raw) & ~missing & ~beyond, "beyond": beyond & ~missing}

    @abstractmethod
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

    def __repr__(self) -> str:
        said = ((one.name, getattr(self, one.name), one.default) for one in fields(self) if one.repr)
        shown = [f"{name}={value!r}" for name, value, usual in said if name not in _SELDOM or value != usual]
        return f"{type(self).__name__}({', '.join(shown)})"

    def to_dict(self) -> dict[str, Any]:
        """Return the declaration as values that JSON and YAML hold.

        Returns
        -------
        dict
            With the key "kind", and the parameters of that kind.
        """
        said = {one.name: (getattr(self, one.name), one.default) for one in fields(self) if one.repr}
        missing = {"missing": True} if said.pop("missing")[0] else {}
        declared = {name: _in_json(value) for name, (value, usual) in said.items() if value != usual}
        return {"kind": self.kind, **declared, **missing}

    def _values(self, values: Any) -> NDArray[np.float64]:
        """What each cell is before bounds are set, NaN for what is none."""
        return self.read(values)

    def _beyond(self, raw: NDArray[np.float64]) -> NDArray[np.bool_]:
        low, high = self._values(self._limits())
        return np.asarray((raw < low) | (raw > high))

    @abstractmethod
    def _limits(self) -> list[Any]:
        """The first and the last value."""


def _in_json(value: Any) -> Any:
    """A parameter of a column as JSON and YAML hold it."""
    return list(value) if isinstance(value, tuple) else value.isoformat() if isinstance(value, date) else value


@dataclass(frozen=True, repr=False)
class Number(Column):
    """A number within public bounds. Private values beyond them count as the bound.

    Parameters
    ----------
    low, high : float
        Finite, low < high.
    step : float, default=None
        Values are multiples of it, counted from ``low``: 1 for whole numbers. None is any number.
    missing : bool, default=False
        Whether a value may be missing. Where none may, a missing one counts as the middle, as does one that cannot be
        read: infinity, a number beyond 1e300, a text that spells none.
    decimal : str, default="."
        What stands before the decimals of a number that is written as a text.
    thousands : str, default=""
        What may stand between groups of three digits of such a number.
    unit : str, default=""
        What may stand before or after such a number, as "$" or "%" does.

    privacy_ : PrivacySpent, default=None
        What was paid to find it, as ``Schema.release`` says; None for what is written down.

    Examples
    --------
    >>> from skfairdp.schema import Number
    >>> Number(17, 90).read([25, 1000, "no number"])
    array([25. , 90. , 53.5])
    >>> Number(0, 5000, decimal=",", thousands=".", unit="€").read(["1.200,50 €", 7])
    array([1200.5,    7. ])
    """

    low: float
    high: float
    step: float | None = None
    missing: bool = False
    decimal: str = "."
    thousands: str = ""
    unit: str = ""
    kind: ClassVar[str] = "number"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("low", "high", "step"):  # numpy's numbers are in no file
            if isinstance(value := getattr(self, name), np.generic):
                object.__setattr__(self, name, value.item())
        if not all(_is_number(end) and math.isfinite(end) for end in self._limits()) or not self.low < self.high:
            raise ValueError(f"Number needs finite bounds, low below high. Got low={self.low!r}, high={self.high!r}.")
        if self.step is not None and not (_is_number(self.step) and 0 < self.step <= self.high - self.low):
            raise ValueError(f"The 'step' of a Number must be in (0, high - low] or None. Got {self.step!r} instead.")
        if max(abs(self.low), abs(self.high)) > FARTHEST:
            raise ValueError(f"The bounds of a Number must be within {FARTHEST:g}. Scale the column.")
        marks = [self.decimal, self.thousands]
        if self.decimal not in (".", ",") or self.thousands not in ("", ".", ",", " ", "'") or marks[0] == marks[1]:
            raise ValueError(
                "Number needs decimal='.' or ',', and thousands='', '.', ',', ' ' or \"'\", another mark than the "
                f"decimal one. Got decimal={self.decimal!r}, thousands={self.thousands!r}."
            )
        if not isinstance(self.unit, str) or any(mark.isdigit() or mark in "+-.," for mark in self.unit):
            raise ValueError(f"The 'unit' of a Number must be a text like '$' or ' kg'. Got {self.unit!r} instead.")

    def _values(self, values: Any) -> NDArray[np.float64]:
        return _as_numbers(values, self.decimal, self.thousands, self.unit.strip())

    def _limits(self) -> list[Any]:
        return [self.low, self.high]

    def read(self, values: Any) -> NDArray[np.float64]:
        numbers = np.clip(self._values(values), self.low, self.high)
        if not self.missing:
            numbers = np.where(np.isnan(numbers), (self.low + self.high) / 2, numbers)
        if self.step is not None:
            numbers = np.clip(self.low + self.step * np.round((numbers - self.low) / self.step), self.low, self.high)
        return numbers

    def restore(self, numbers: NDArray[np.float64]) -> "pd.Series[Any]":
        # A column of whole numbers where step and bounds are whole, else of floats.
        steps = (self.low, self.high, 0.5 if self.step is None else self.step)
        whole = all(float(value).is_integer() for value in steps)
        return pd.Series(numbers).astype(("Int64" if self.missing else "int64") if whole else "float64")


@dataclass(frozen=True, repr=False)
class Category(Column):
    """One of a public list of values. Private values outside of it count as none of them.

    Parameters
    ----------
    values : sequence of str, int, float or bool
        Different ones, at least one.
    missing : bool, default=False
        Whether a value may be missing.
    others : str, int, float or bool, default=None
        The one of the values that stands for all that are not listed or are missing, such as "other". None: they are
        no value.

    privacy_ : PrivacySpent, default=None
        What was paid to find it, as ``Schema.release`` says; None for what is written down.

    Examples
    --------
    >>> from skfairdp.schema import Category
    >>> Category(["Private", "State-gov"]).read(["State-gov", "Astronaut"])
    array([ 1., nan])
    >>> Category(["Private", "State-gov", "other"], others="other").read(["State-gov", "Astronaut", None])
    array([1., 2., 2.])
    """

    values: tuple[Any, ...]
    missing: bool = False
    others: Any = None
    kind: ClassVar[str] = "category"

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.values, str) or not isinstance(self.values, Sequence | np.ndarray | pd.Index):
            raise ValueError(f"The 'values' of a Category must be a list. Got {self.values!r} instead.")
        values = tuple(value.item() if isinstance(value, np.generic) else value for value in self.values)
        allowed = all(isinstance(value, str | int | float) and value == value for value in values)
        if not values or not allowed or len(set(values)) < len(values):
            raise ValueError(
                "The 'values' of a Category must be different texts or numbers, at least one, none of them missing. "
                f"Got {list(values)!r} instead."
            )
        spent = self.privacy_ or getattr(self.values, "privacy_", None)
        object.__setattr__(self, "values", values if spent is None else PaidValues(values, spent))
        object.__setattr__(self, "privacy_", spent)
        if self.others is not None and (self.others not in values or self.missing):
            raise ValueError(
                "The 'others' of a Category must be one of its values, and stands for what is missing as well, so that "
                f"'missing' is False. Got others={self.others!r}, missing={self.missing!r}."
            )

    def read(self, values: Any) -> NDArray[np.float64]:
        places = self._values(values)
        return places if self.others is None else np.where(np.isnan(places), self.values.index(self.others), places)

    def _values(self, values: Any) -> NDArray[np.float64]:
        return positions(values, places_of(self.values))

    def _beyond(self, raw: NDArray[np.float64]) -> NDArray[np.bool_]:
        return np.isnan(raw)

    def _limits(self) -> list[Any]:
        return [self.values[0], self.values[-1]]

    def restore(self, numbers: NDArray[np.float64]) -> "pd.Series[Any]":
        # A categorical column with exactly these categories.
        codes = np.where(np.isnan(numbers), -1, numbers).astype(np.int64)
        return pd.Series(pd.Categorical.from_codes(codes, categories=list(self.values)))


@dataclass(frozen=True)
class Boolean(Column):
    """Yes or no: True and False, 1 and 0, "true" and "false", or "yes" and "no".

    Parameters
    ----------
    missing : bool, default=False
        Whether a value may be missing.

    privacy_ : PrivacySpent, default=None
        What was paid to find it, as ``Schema.release`` says; None for what is written down.

    Examples
    --------
    >>> from skfairdp.schema import Boolean
    >>> Boolean().read([True, 0, "maybe"])
    array([ 1.,  0., nan])
    """

    missing: bool = False
    kind: ClassVar[str] = "boolean"

    def read(self, values: Any) -> NDArray[np.float64]:
        return positions(values, {False: 0, True: 1, **TRUTHS})

    def _limits(self) -> list[Any]:
        return [False, True]

    def restore(self, numbers: NDArray[np.float64]) -> "pd.Series[Any]":
        # A column of pandas' booleans, which may be missing.
        return pd.Series(numbers).astype("Float64").astype("boolean")


@dataclass(frozen=True, repr=False)
class Date(Column):
    """A day within public bounds. Private days beyond them count as the bound.

    Parameters
    ----------
    first, last : date or str
        A text is read as year-month-day.
    missing : bool, default=False
        Whether a day may be missing. Where none may, a missing one counts as the middle, as does one that cannot be
        read.
    format : str, default=None
        How texts write a day, in the letters of ``datetime.strptime``: "%d/%m/%Y". None is year-month-day. A time may
        follow. "%y", a year of two digits, is 1969 to 2068. Whole numbers, and texts of digits, are read by a format
        as their digits are, 1978 by "%Y"; without one 20200131 is a day, and any other counts days since 1970. Readers
        of files make 1.202 of 01.2020, which is no day: read such as texts.

    privacy_ : PrivacySpent, default=None
        What was paid to find it, as ``Schema.release`` says; None for what is written down.

    Examples
    --------
    >>> from skfairdp.schema import Date
    >>> Date("2020-01-01", "2020-01-31").read(["2020-01-03", "1999-12-31"])
    array([18264., 18262.])
    >>> Date("2020-01-01", "2020-01-31", format="%d.%m.%Y").read(["03.01.2020"])
    array([18264.])
    """

    first: date
    last: date
    missing: bool = False
    format: str | None = None
    kind: ClassVar[str] = "date"

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            days = self.first, self.last  # a moment is a date as well, whose file is read as none
            first, last = (date(d.year, d.month, d.day) if isinstance(d, date) else date.fromisoformat(d) for d in days)
        except (TypeError, ValueError):
            first = last = _EPOCH
        if not first < last:
            raise ValueError(
                "Date needs 'first' before 'last', as dates or as texts like '2026-01-31'. "
                f"Got first={self.first!r}, last={self.last!r}."
            )
        object.__setattr__(self, "first", first)
        object.__setattr__(self, "last", last)
        read = [_day_of(day.strftime(str(self.format)), self.format) for day in (_EPOCH, date(2001, 12, 31))]
        if self.format is not None and (math.isnan(sum(read)) or read[0] == read[1]):  # it tells no days apart
            raise ValueError(f"The 'format' of a Date must be a text like '%d.%m.%Y' or None. Got {self.format!r}.")

    def _values(self, values: Any) -> NDArray[np.float64]:
        return _as_days(values, self.format)

    def _limits(self) -> list[Any]:
        return [self.first, self.last]

    def read(self, values: Any) -> NDArray[np.float64]:
        low, high = self._values(self._limits())
        days = np.clip(self._values(values), low, high)
        return days if self.missing else np.where(np.isnan(days), (low + high) // 2, days)

    def restore(self, numbers: NDArray[np.float64]) -> "pd.Series[Any]":
        # A column of timestamps.
        return pd.Series(pd.to_datetime(numbers, unit="D", origin="unix")).astype("datetime64[s]")


class PaidValues(tuple[Any, ...]):
    """Values that were paid for, wherever they are handed on to: a copy of them still knows what they cost."""

    privacy_: PrivacySpent

    def __new__(cls, values: Iterable[Any], spent: PrivacySpent) -> "PaidValues":
        paid = super().__new__(cls, values)
        paid.privacy_ = spent
        return paid

    def __getnewargs__(self) -> tuple[Any, ...]:
        return tuple(self), self.privacy_

    def __deepcopy__(self, memo: Any) -> "PaidValues":
        return self

    def __getitem__(self, places: Any) -> Any:
        chosen = super().__getitem__(places)
        return PaidValues(chosen, self.privacy_) if isinstance(places, slice) else chosen

    def __add__(self, others: tuple[Any, ...]) -> "PaidValues":
        return PaidValues(super().__add__(others), self.privacy_)

    def __radd__(self, others: tuple[Any, ...]) -> "PaidValues":
        return PaidValues((*others, *self), self.privacy_)


@dataclass(frozen=True)
class PlainPaid(Plain):
    """Stands for such values in formats that know tuples alone."""

    values: tuple[Any, ...]
    spent: PrivacySpent

    def restored(self) -> PaidValues:
        return PaidValues(self.values, self.spent)


@plain.register
def _(paid: PaidValues) -> PlainPaid:
    return PlainPaid(tuple(paid), paid.privacy_)


#: From here on every float is a whole number, and next to several.
WHOLE_BELOW = 2.0**53
_MAY_BE_NONE = ("step", "others", "format")  # shown where it is said
_KINDS: dict[str, type[Column]] = {kind.kind: kind for kind in (Number, Category, Boolean, Date)}


def column_from_dict(declared: Any, name: str) -> Column:
    """The inverse of ``to_dict``."""
    kind = declared.get("kind") if isinstance(declared, dict) else None
    if kind not in _KINDS:
        refused = " Free text is refused: nothing public bounds it." if kind == "text" else ""
        raise ValueError(f"Column {name!r} of a Schema needs a 'kind' among {sorted(_KINDS)}. Got {kind!r}.{refused}")
    parameters = {key: value for key, value in declared.items() if key not in ("kind", "guess")}
    if "privacy_" in parameters:
        raise ValueError(f"Column {name!r} of a Schema: give its cost under 'releases', as Schema.save writes it.")
    allowed = [one.name for one in fields(_KINDS[kind]) if one.name != "privacy_"]
    if unknown := sorted(map(str, parameters.keys() - allowed)):
        raise ValueError(f"Column {name!r} of a Schema: a {kind} takes {', '.join(allowed)}. Got {', '.join(unknown)}.")
    unfilled = sorted(key for key, value in parameters.items() if value is None and key not in _MAY_BE_NONE)
    if unfilled:
        guess = declared.get("guess")
        guessed = f" From the rows the template guesses {guess}: write that if it is public knowledge." if guess else ""
        raise ValueError(
            f"Column {name!r} of a Schema is not filled in yet: {', '.join(unfilled)}. Write what is public, not what "
            f"the private rows show, or spend epsilon on it with Schema.release.{guessed}"
        )
    try:
        return _KINDS[kind](**parameters)
    except (TypeError, ValueError) as error:
        raise ValueError(f"Column {name!r} of a Schema: {error}") from None


def known_from_dict(declared: Any, name: str) -> "Column | str":
    """What a template says of a column that may not be filled in: the column, or its kind where something is null.
    Where the kind itself is null it is "any"."""
    if declared == {"kind": None}:
        return "any"
    known = isinstance(declared, dict) and declared.get("kind") in _KINDS
    if known and any(value is None and key not in ("kind", *_MAY_BE_NONE) for key, value in declared.items()):
        return str(declared["kind"])
    return column_from_dict(declared, name)


# ---------------------------------------------------------------------- total readers


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _are_missing(values: Any) -> NDArray[np.bool_]:
    """Which cells hold nothing, or a word for it."""
    cells = cells_of(values)
    if pd.api.types.is_numeric_dtype(cells.dtype):
        return np.isnan(cells.to_numpy(dtype=np.float64, na_value=np.nan))  # of pyarrow NaN is not null
    if cells.dtype.kind in "mM":
        return np.asarray(cells.isna().to_numpy(dtype=bool))
    return np.array(of_each(cells, _is_missing), dtype=bool)


def _is_missing(cell: Any) -> bool:
    try:
        cell = plain_cell(cell)
        if cell is None or cell is pd.NA or cell is pd.NaT:
            return True
        if isinstance(cell, str):
            return cell.strip() in NOTHING
        return isinstance(cell, float | np.number | np.datetime64) and bool(cell != cell)
    except Exception:
        return False


def _as_numbers(values: Any, decimal: str = ".", thousands: str = "", unit: str = "") -> NDArray[np.float64]:
    """Every cell as a number, NaN for what is none: no infinity either. What one cell is must not follow from another,
    and parsers of whole columns, as pandas has, change their mind about all where they meet one of another type."""
    cells = cells_of(values)
    if isinstance(cells.dtype, pd.CategoricalDtype):
        own = _as_numbers(cells.cat.categories.astype(object), decimal, thousands, unit)
        return np.asarray(np.append(own, np.nan)[cells.cat.codes.to_numpy()])
    if pd.api.types.is_numeric_dtype(cells.dtype):
        numbers = np.asarray(cells.to_numpy(dtype=np.float64, na_value=np.nan))
    else:
        plain = (decimal, thousands, unit) == (".", "", "")
        written = partial(_number_written, decimal=decimal, thousands=thousands, unit=unit)
        numbers = np.array(of_each(cells, _number_of, number_of_text if plain else written), dtype=np.float64)
    return np.where(np.abs(numbers) <= FARTHEST, numbers, np.nan)


def _number_of(cell: Any) -> float:
    try:
        if isinstance(cell, str):
            text = cell.strip().replace("\u2212", "-")  # the minus of printed tables, and spaces that do not break
            return float(text) if text.isascii() and "_" not in text else math.nan
        cell = plain_cell(cell)
        return float(cell) if isinstance(cell, _NUMBERS) else math.nan
    except Exception:
        return math.nan


def number_of_text(text: str) -> float:
    """A number in a column of numbers, NaN for what is none."""
    return float(READ_AS_TRUTHS[text]) if text in READ_AS_TRUTHS else _number_of(_with_its_sign(text))


_BELOW_ZERO = re.compile(r"\(\s*([^-+\u2212()]+)\)|([^-+\u2212()\s][^-+\u2212()]*?)\s*[-\u2212]")


def _with_its_sign(text: str) -> str:
    """Accounts write below zero in brackets or with the minus behind: (1,200) and 1,200-."""
    found = _BELOW_ZERO.fullmatch(text.strip())
    return f"-{(found[1] or found[2]).strip()}" if found else text


def _without(unit: str, text: str) -> str:
    return (text.removeprefix(unit) if text.startswith(unit) else text.removesuffix(unit)).strip()


def _number_written(text: str, decimal: str, thousands: str, unit: str) -> float:
    """A number as people of a country write it."""
    if text in READ_AS_TRUTHS:
        return float(READ_AS_TRUTHS[text])
    text = text.replace("\u00a0", " ").replace("\u202f", " ").replace("\u2212", "-").strip()
    given, text = len(text), _with_its_sign(outside := _without(unit, text))
    sign, text = (text[:1], text[1:].strip()) if text[:1] in ("+", "-") else ("", text)
    if len(outside) == given:  # the unit is within sign or brackets
        text = _without(unit, text)
    several = r"(,\d{2,3})*,\d{3}" if thousands == "," else rf"({re.escape(thousands)}\d{{3}})+"  # 1,00,000 in India
    if thousands and re.fullmatch(rf"[1-9]\d{{0,2}}{several}({re.escape(decimal)}\d*)?", text):
        text = text.replace(thousands, "")
    if decimal != ".":
        if "." in text:
            return math.nan
        text = text.replace(decimal, ".")
    return math.nan if text[:1] in ("+", "-") and sign else _number_of(sign + text)


def of_each(cells: Iterable[Any], read: Callable[[Any], Any], of_text: Callable[[str], Any] | None = None) -> list[Any]:
    """What is read of each cell; a text once, however often it comes, and in a way of its own if there is one."""
    known = cache(of_text or read)  # in a column the same texts come again and again
    return [known(cell) if type(cell) is str else read(cell) for cell in cells]


def _as_days(values: Any, format: str | None = None) -> NDArray[np.float64]:
    """Every cell as days since 1970, NaN for what is no day of the calendar. A number counts as days, or is written in
    digits, as 20200131 or by the format: readers of files make numbers of such days, unless one cell is none."""
    cells = cells_of(values)
    if pd.api.types.is_numeric_dtype(cells.dtype) and not pd.api.types.is_bool_dtype(cells.dtype):
        days = np.floor(numbers := _as_numbers(cells))
        in_digits = (numbers >= _OF_DIGITS) & (numbers < 10 * _OF_DIGITS) if format is None else np.isfinite(numbers)
        distinct, places = np.unique(numbers[in_digits], return_inverse=True)
        days[in_digits] = np.array([_day_of(float(number), format) for number in distinct], np.float64)[places]
    else:
        days = np.array(of_each(cells, partial(_day_of, format=format)), np.float64)
    return np.where((days >= _FIRST_DAY) & (days <= _LAST_DAY), days, np.nan)


def _day_of(cell: Any, format: str | None = None) -> float:
    try:
        cell = plain_cell(cell)
        number = float(cell) if _is_number(cell) else math.nan
        if isinstance(cell, str) and (format is None or _DIGITS.fullmatch(cell.strip())):
            number = _number_of(cell)
        if math.isfinite(number) and (format is not None or _OF_DIGITS <= number < 10 * _OF_DIGITS):
            cell = f"{int(number):0{len(_EPOCH.strftime(format or '%Y%m%d'))}d}" if number.is_integer() else ""
        elif not math.isnan(number):
            return float(np.floor(number))
        if isinstance(cell, str):
            return float((_written_day(cell.strip(), format) - _EPOCH).days)
        if isinstance(cell, np.datetime64):
            return math.nan if np.isnat(cell) else float(cell.astype("datetime64[D]").astype(np.int64))
        return float((date(cell.year, cell.month, cell.day) - _EPOCH).days)
    except Exception:
        return math.nan


def _written_day(text: str, format: str | None) -> date:
    if format is None:
        day = _ISO_DAY.fullmatch(TIME_OF_DAY.sub("", text))  # Python reads others too, such as 20200103xx
        return date.fromisoformat(day[0] if day else "")
    try:
        return datetime.strptime(text, format).date()
    except ValueError:
        return datetime.strptime(TIME_OF_DAY.sub("", text), format).date()


#: What readers of files take for a truth where all cells of a column are such words.
READ_AS_TRUTHS = {f(word): word == "true" for word in ("true", "false") for f in (str, str.upper, str.capitalize)}
#: As pandas writes what it has cut, of whole numbers or of floats.
_END = r"(-?(?:inf|\d+(?:\.\d+)?(?:e[-+]?\d+)?))"
_INTERVAL = re.compile(rf"([\[(]){_END}, {_END}([\])])")


def as_read(text: str) -> Any:
    """The truth or number that readers of files make of a text where their whole column is of such, and the text of an
    interval in one way. They make texts of all once one cell is none, or has other ends: that is no news of the
    others."""
    if text in READ_AS_TRUTHS:
        return READ_AS_TRUTHS[text]
    if ends := _INTERVAL.fullmatch(text):
        left, right = (_end_of_interval(float(end)) for end in ends.group(2, 3))
        return f"{ends[1]}{left}, {right}{ends[4]}"
    if abs(number := _number_of(text)) < WHOLE_BELOW:
        return number
    return int(text) if re.fullmatch(r"[-+]?[0-9]{1,400}", text) else text


def is_word(text: str) -> bool:
    """Tell whether a text spells neither a number nor a truth."""
    return isinstance(as_read(text), str)


def places_of(values: Sequence[Any]) -> dict[Any, int]:
    """The place of each listed value, by itself and as files are read."""
    listed = [plain_cell(value) for value in values]
    read = [as_read(value) if isinstance(value, str) else value for value in listed]
    of_one = Counter(read)  # 1 may be "1" or "01" where both are listed
    return {value: j for j, value in enumerate(read) if of_one[value] == 1} | {v: j for j, v in enumerate(listed)}


def positions(values: Any, places: dict[Any, int]) -> NDArray[np.float64]:
    """The place of every cell, NaN for one that has none. Equal numbers are equal whatever their type. A float from
    2^53 on may have been any of several whole numbers, and is none of those that are listed."""
    of_floats = {value: j for value, j in places.items() if not isinstance(value, int) or abs(value) < WHOLE_BELOW}

    def place(cell: Any) -> float:
        try:
            cell = plain_cell(cell)
            if isinstance(cell, str) and cell not in places:
                cell = as_read(cell)
            return (of_floats if isinstance(cell, float | np.floating) else places).get(cell, math.nan)
        except Exception:  # it cannot be hashed, or compared
            return math.nan

    cells = cells_of(values)
    if isinstance(cells.dtype, pd.CategoricalDtype):
        return np.asarray(np.array([*map(place, cells.cat.categories), math.nan])[cells.cat.codes.to_numpy()])
    if cells.dtype == object or not pd.api.types.is_numeric_dtype(cells.dtype):
        return np.array(of_each(cells, place), dtype=np.float64)
    codes, distinct = pd.factorize(cells)  # -1 where there is none
    return np.array([*map(place, distinct.tolist()), math.nan], dtype=np.float64)[codes]


def cells_of(values: Any) -> "pd.Series[Any]":
    """A column whose type is that of its cells: one complex number makes all others of its column complex as well. Long
    doubles become the floats next to them; that one is beyond all of these is no news."""
    if isinstance(values, pd.Series):
        cells = values
    else:
        cells = as_series(values if isinstance(values, np.ndarray) else as_objects(values))
    if isinstance(cells.dtype, pd.ArrowDtype) or getattr(cells.dtype, "storage", "") == "pyarrow":
        cells = from_arrow(cells.array.__arrow_array__())
    if isinstance(cells.dtype, pd.CategoricalDtype):
        zoned = cells.cat.categories.dtype
        cells = cells.astype(zoned) if isinstance(zoned, pd.DatetimeTZDtype) else cells
    if isinstance(cells.dtype, pd.DatetimeTZDtype):
        return _within_calendar(cells, cells.dtype)
    if cells.dtype == np.longdouble:
        with np.errstate(over="ignore"):
            return cells.astype(np.float64)
    return pd.Series([plain_cell(cell) for cell in cells], dtype=object) if cells.dtype.kind == "c" else cells


def _within_calendar(times: "pd.Series[Any]", zoned: pd.DatetimeTZDtype) -> "pd.Series[Any]":
    """Times of a zone, of which pandas shows none where one lies beyond the calendar of Python: NaT, or the day before,
    where only its zone takes it there."""
    if zoned.unit == "ns":
        return times
    start, first, last, end = (
        np.datetime64(day, zoned.unit) for day in ("0001-01-01", "0001-01-02", "9999-12-30", "10000-01-01")
    )
    given = times.dt.tz_convert(None).to_numpy()
    shown = np.where((given < start) | (given >= end), np.datetime64("NaT"), np.clip(given, first, last))
    return pd.Series(shown, times.index).dt.tz_localize("UTC").dt.tz_convert(zoned.tz)


def _end_of_interval(end: Any) -> str:
    """As whole numbers are written, whatever the type: one cell that is blank, or a fraction, makes all ends floats."""
    if not _is_number(end):
        return str(end)
    return str(int(end)) if abs(end) < WHOLE_BELOW and end // 1 == end else str(float(end))


def plain_cell(cell: Any) -> Any:
    """The number itself where a complex one lies on the real line, or is none at all, the float next to a decimal one,
    as a column of such has it, and the text of an interval that pandas has cut; any other cell as it is."""
    if isinstance(cell, pd.Interval):
        left, right = ("[" if cell.closed_left else "("), ("]" if cell.closed_right else ")")
        return f"{left}{_end_of_interval(cell.left)}, {_end_of_interval(cell.right)}{right}"
    if isinstance(cell, Decimal):
        return math.nan if cell.is_nan() else float(cell)
    if not isinstance(cell, complex | np.complexfloating):
        return cell
    return math.nan if cell != cell else cell if cell.imag else cell.real
