"""What a look at rows says of a column: a description of public ones, a guess for whoever holds them."""

from collections.abc import Iterable
from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skfairdp.schema import _columns
from skfairdp.schema._release import counts_of_kinds, is_called_identifier, likeliest

_FEW, _DENSE = 100, 10  # of fewer rows nothing is said; numbers of n rows lie in a range of so many times n


def guessed(column: "pd.Series[Any]", name: str) -> dict[str, Any]:
    """What a column looks like beside what its dtype says: ``{"guess": ...}``, or nothing."""
    dtype = column.dtype
    if pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(dtype):
        numbers_rows = is_called_identifier(name) or is_numbering(column)
        return {"guess": "an identifier: leave it out"} if numbers_rows else {}
    if pd.api.types.is_bool_dtype(dtype) or pd.api.types.is_datetime64_any_dtype(dtype):
        return {}
    kind, writings = likeliest(counts_of_kinds(column))
    known = [cell.strip() for cell in column if isinstance(cell, str) and not _columns._is_missing(cell)]
    truths = [_columns.TRUTHS[text] for text in known if text in _columns.TRUTHS]
    if len(truths) > len(known) / 2 and {*truths} == {0, 1}:
        kind = "boolean"
    if kind == "category" or not len(column.dropna()):
        return {}
    way = {} if writings is None else writings.best(writings.counts(column))
    said = {key: value for key, value in way.items() if value != ("." if key == "decimal" else "")}
    return {"guess": {"kind": "number" if kind == "whole" else kind, **said}}


def is_numbering(column: "pd.Series[Any]") -> bool:
    """Whether numbers tell rows apart: all of them whole and different, and too close for that to be chance.

    Of n numbers that were drawn from 10 n, some two are the same but for a chance of exp(-n/20).
    """
    numbers = _columns._as_numbers(column)
    if len(numbers) < _FEW or np.isnan(numbers).any() or (numbers != np.rint(numbers)).any():
        return False
    return bool(len(np.unique(numbers)) == len(numbers) and np.ptp(numbers) < _DENSE * len(numbers))


def described(series: "pd.Series[Any]", name: str, role: bool, max_categories: int) -> _columns.Column:
    """The narrowest declaration that fits public rows."""
    if (
        isinstance(series.dtype, np.dtype) and series.dtype.kind in "iuf" and not role
    ):  # no cell need be looked at alone
        numbers = series.to_numpy(np.float64)
        known = numbers[~np.isnan(numbers)]
        if len(known) and known.min() < known.max():
            return _number(known, name, missing=len(known) < len(numbers))
    cells = [_columns.real_number(cell) for cell in _distinct(series)]
    known = pd.Series([cell for cell in cells if isinstance(cell, str) or not _columns._is_missing(cell)], dtype=object)
    missing = len(known) < len(cells) and not role
    if not len(known):
        raise ValueError(f"Column {name!r} holds no value, and nothing follows from it. Leave the column out.")
    kinds = {_kind(cell) for cell in known}
    if None in kinds:
        kind = type(next(cell for cell in known if _kind(cell) is None)).__name__
        raise ValueError(
            f"Column {name!r} holds cells that are no numbers, dates, texts or truths ({kind}). Make numbers or texts "
            "of them, or leave the column out."
        )
    if kinds == {"boolean"}:
        return _columns.Boolean(missing=missing)
    if kinds == {"date"}:
        days = [cell.date() if isinstance(cell, datetime) else cell for cell in known]
        return _columns.Date(min(days), max(max(days), min(days) + timedelta(days=1)), missing=missing)
    if kinds == {"number"} and not isinstance(series.dtype, pd.CategoricalDtype):
        numbers = _columns._as_numbers(known)
        if not role and numbers.min() < numbers.max():
            return _number(numbers, name, missing=missing)
        _refuse_far(numbers, name)
    values = _sorted(known.unique())
    if len(values) > max_categories:
        raise ValueError(
            f"Column {name!r} has {len(values)} different values, more than max_categories={max_categories}. Free text "
            "is refused: leave the column out, or raise 'max_categories'."
        )
    try:
        return _columns.Category(tuple(values), missing=missing)
    except ValueError as error:
        raise ValueError(f"Column {name!r}: {error}") from None


def _kind(cell: Any) -> str | None:
    """A number, a date, a text or a truth; None for what is nothing of these."""
    if isinstance(cell, bool | np.bool_):
        return "boolean"
    if isinstance(cell, str):
        return "text"
    if isinstance(cell, int | float | np.integer | np.floating):
        return "number"
    return "date" if isinstance(cell, date) else None


def _distinct(series: "pd.Series[Any]") -> "pd.Series[Any]":
    try:
        return pd.Series(series.unique())
    except TypeError:  # lists cannot be compared
        return series


def _number(known: NDArray[np.float64], name: str, *, missing: bool) -> _columns.Number:
    _refuse_far(known, name)
    whole = bool((known == np.round(known)).all())
    return _columns.Number(float(known.min()), float(known.max()), step=1.0 if whole else None, missing=missing)


def _refuse_far(known: NDArray[np.float64], name: str) -> None:
    if not (np.abs(known) <= _columns.FARTHEST).all():
        raise ValueError(
            f"Column {name!r} holds numbers that are infinite or beyond {_columns.FARTHEST:g}, which stand for something "
            "else. Leave them empty, or leave the column out."
        )


def _sorted(values: Iterable[Any]) -> list[Any]:
    plain = [value.item() if isinstance(value, np.generic) else value for value in values]
    try:
        return sorted(plain)
    except TypeError:
        return sorted(plain, key=lambda value: (type(value).__name__, str(value)))
