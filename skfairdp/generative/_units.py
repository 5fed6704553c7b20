"""Images, and tables of plain numbers: one unit in [−1, 1] for each, between public bounds."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["UnitCodec", "plan_units"]


@dataclass(frozen=True)
class UnitCodec:
    """Turns arrays of numbers into units and back; values beyond the bounds count as the bound.

    Parameters
    ----------
    shape : tuple of int
        Of one row.
    low, high : float
    dtype : numpy dtype
    """

    shape: tuple[int, ...]
    low: float
    high: float
    dtype: Any

    n_cells: tuple[int, ...] = ()
    columns: tuple[Any, ...] = ()
    sensitivity: float = 0.0

    def encode(self, rows: NDArray[Any]) -> NDArray[np.float32]:
        """Units (n_rows, n_numbers); a missing number counts as the lower bound."""
        numbers = np.nan_to_num(np.asarray(rows, dtype=np.float64).reshape(len(rows), -1), nan=self.low)
        units = 2 * (np.clip(numbers, self.low, self.high) - self.low) / (self.high - self.low) - 1
        return units.astype(np.float32)

    def decode(self, units: NDArray[np.floating], rng: np.random.Generator, extra: Any = None) -> NDArray[Any]:
        """Rows of the shape and dtype given to fit."""
        numbers = self.low + (np.asarray(units, dtype=np.float64) + 1) / 2 * (self.high - self.low)
        numbers = np.clip(numbers, self.low, self.high)
        if self.dtype.kind in "iub":
            numbers = np.rint(numbers)
        return numbers.reshape(len(units), *self.shape).astype(self.dtype)


def plan_units(X: NDArray[Any], bounds: Any, owner: str) -> UnitCodec:
    """The codec of an array, from public bounds or those of its dtype.

    Raises
    ------
    ValueError
        No bounds for floats, or not numbers at all.
    """
    if X.dtype.kind not in "fiub":
        raise ValueError(f"{owner} needs X as numbers to learn units. Encode categories, or use codec='table'.")
    if bounds is None and X.dtype == np.uint8:
        bounds = (0.0, 255.0)
    try:
        low, high = (float(limit) for limit in bounds)
    except (TypeError, ValueError):
        low, high = 0.0, 0.0
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        raise ValueError(
            f"{owner} needs public bounds of the numbers to learn units: give 'bounds' as two finite numbers, the "
            "smaller one first, such as (0, 1)."
        )
    return UnitCodec(X.shape[1:], low, high, X.dtype)
