"""Images, and tables of plain numbers: one unit in [−1, 1] for each, between public bounds."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from skfairdp._tables import as_numbers


class UnitCodec(BaseEstimator):
    """Learn numbers as they are, between public bounds: images, and tables of plain numbers for networks.

    Examples
    --------
    >>> from skfairdp.generative import PFGuardGenerator, UnitCodec
    >>> from skfairdp.papers import GSWGANBackend
    >>> PFGuardGenerator(backend=GSWGANBackend(), codec=UnitCodec(), bounds=(0, 1)).codec
    UnitCodec()
    """

    def plan(self, shape: tuple[int, ...], given: np.dtype[Any], bounds: Any, dtype: Any, owner: str) -> "UnitEncoder":
        """Decide bounds and type of an array.

        Parameters
        ----------
        shape : tuple of int
            Of one row.
        given : numpy dtype
            Of the array. Only an array of bytes has bounds by itself.
        bounds : (low, high) or None
            The public range of all numbers.
        dtype : dtype or None
            Of what is sampled: float64 where neither this nor bytes say otherwise.
        owner : str
            Class name for error messages.

        Returns
        -------
        UnitEncoder
            Turns rows into numbers from 0 to 1.

        Raises
        ------
        ValueError
            No bounds where there are no bytes, or a dtype that holds no plain numbers.
        """
        if bounds is None and given == np.uint8:
            bounds, dtype = (0.0, 255.0), np.uint8 if dtype is None else dtype
        try:
            low, high = (float(limit) for limit in bounds)
        except (TypeError, ValueError):
            low, high = 0.0, 0.0
        if not (np.isfinite(low) and np.isfinite(high) and low < high):
            raise ValueError(
                f"{owner} needs public bounds of the numbers to learn units: give 'bounds' as two finite numbers, the "
                "smaller one first, such as (0, 1)."
            )
        try:
            sampled = np.dtype(np.float64 if dtype is None else dtype)
        except TypeError:
            sampled = np.dtype(object)
        if sampled.kind not in "fiu":
            raise ValueError(f"The 'dtypes' parameter of {owner} must be one numpy dtype of numbers for units.")
        return UnitEncoder(shape, low, high, sampled)


@dataclass(frozen=True)
class UnitEncoder:
    """Turns arrays of numbers into units and back; values beyond the bounds count as the bound."""

    shape: tuple[int, ...]
    low: float
    high: float
    dtype: Any

    columns: tuple[Any, ...] = ()
    n_codes: tuple[int, ...] = ()
    sensitivity: float = 0.0  # nothing is paid for

    def fine_counts(self, rows: Any) -> list[NDArray[np.int64]]:
        """Nothing has to be paid for."""
        return []

    def release_bins(self, counts: Any, mechanism: Any, noise: Any, n_rows: int) -> "UnitEncoder":
        """Bounds are public: nothing is released."""
        return self

    def encode(self, rows: NDArray[Any]) -> NDArray[np.float32]:
        """Units (n_rows, n_numbers); what is missing or no number counts as the lower bound."""
        numbers = np.nan_to_num(as_numbers(rows.reshape(-1)).reshape(len(rows), -1), nan=self.low)
        units = 2 * (np.clip(numbers, self.low, self.high) - self.low) / (self.high - self.low) - 1
        return units.astype(np.float32)

    def made_up(self, n_rows: int, rng: np.random.Generator) -> NDArray[np.float32]:
        """Units of made-up rows."""
        return rng.uniform(-1, 1, (n_rows, math.prod(self.shape))).astype(np.float32)

    def decode(self, units: NDArray[np.floating], rng: np.random.Generator, further: Any = None) -> NDArray[Any]:
        """Rows of the shape and dtype given to fit."""
        numbers = self.low + (np.asarray(units, dtype=np.float64) + 1) / 2 * (self.high - self.low)
        numbers = np.clip(numbers, self.low, self.high)
        if self.dtype.kind in "iu":
            numbers = np.rint(numbers)
        return numbers.reshape(len(units), *self.shape).astype(self.dtype)
