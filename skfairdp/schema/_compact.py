"""Rows in the smallest types that a schema allows, and back without the loss of a bit."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfairdp.schema._columns import Boolean, Category, Column, Date, Number
from skfairdp.schema._raw_table import RawTable
from skfairdp.schema._schema import Schema

#: Grids of numbers up to here are told apart by float64 arithmetic with room to spare: the error of a quotient is below
#: 2^-10 steps where no bound lies further than 2^40 steps from zero.
_FINEST, _MOST_CODES = 2.0**40, 2**32


@dataclass(frozen=True)
class CompactRows:
    """One structured array in place of a table: codes of one, two or four bytes, float64 for numbers without steps.

    The types follow from the schema alone. Everything that a fit reads of a table comes back bit for bit.
    """

    schema: Schema
    owner: str
    names: tuple[str, ...]

    @property
    def fields(self) -> list[tuple[str, np.dtype[Any]]]:
        """Of a structured dtype: a field for each column, in their order."""
        return [(f"column{j}", _dtype(self.schema.columns[name])) for j, name in enumerate(self.names)]

    def fill(self, rows: NDArray[Any], numbers: Mapping[str, NDArray[np.float64]]) -> None:
        """Write a table into the fields."""
        for (field, _), name in zip(self.fields, self.names, strict=True):
            rows[field] = _codes(self.schema.columns[name], numbers[name])

    def table(self, rows: NDArray[Any]) -> RawTable:
        """The inverse of :meth:`fill`."""
        numbers = {
            name: _numbers(self.schema.columns[name], rows[field])
            for (field, _), name in zip(self.fields, self.names, strict=True)
        }
        return RawTable(self.schema, self.owner, None, numbers, len(rows))


def _n_codes(column: Column) -> int | None:
    """How many values there are; None where they have no codes."""
    if isinstance(column, Category):
        return len(column.values)
    if isinstance(column, Boolean):
        return 2
    if isinstance(column, Date):
        return (column.last - column.first).days + 1
    assert isinstance(column, Number)
    if column.step is None or max(abs(column.low), abs(column.high)) / column.step > _FINEST:
        return None
    n_codes = int(np.round((column.high - column.low) / column.step)) + 1
    return n_codes if n_codes < _MOST_CODES else None


def _dtype(column: Column) -> np.dtype[Any]:
    n_codes = _n_codes(column)  # the last code is one more: no value
    return np.dtype(np.float64) if n_codes is None else np.min_scalar_type(n_codes)


def _origin(column: Column) -> tuple[float, float]:
    """What code 0 stands for, and how far apart codes lie."""
    if isinstance(column, Date):
        return float(column.read([column.first])[0]), 1.0
    return (float(column.low), float(column.step or 1)) if isinstance(column, Number) else (0.0, 1.0)


def _codes(column: Column, numbers: NDArray[np.float64]) -> NDArray[Any]:
    n_codes = _n_codes(column)
    if n_codes is None:
        return numbers
    first, step = _origin(column)
    return np.where(np.isnan(numbers), n_codes, np.round((numbers - first) / step)).astype(_dtype(column))


def _numbers(column: Column, codes: NDArray[Any]) -> NDArray[np.float64]:
    n_codes = _n_codes(column)
    if n_codes is None:
        return np.ascontiguousarray(codes, dtype=np.float64)
    first, step = _origin(column)
    numbers = first + step * codes.astype(np.float64)
    if isinstance(column, Number):
        numbers = np.clip(numbers, column.low, column.high)
    return np.where(codes == n_codes, np.nan, numbers)
