"""Where the numbers of each column lie: noisy counts, asked three times ever more closely, within the ε of a fit."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfairdp.privacy import DpEvent, GaussianMechanism, NeighboringRelation, NoiseSource, gdp_mu, repeat
from skfairdp.schema import NumberPlace

__all__ = ["ColumnTables"]

Array = NDArray[np.float64]

#: Of the squared cost of the fit: gradients have 4 % more noise.
SHARE = 0.08
ROUNDS = 3
CELLS = 16  # a power of two; each round looks up to so many times more closely
KNOTS = 8
#: Below so many standard deviations of a count a whole column is hardly clear of its noise.
CLEAR = 4.0
CLOSEST = 2.0**-17  # knots of bounds from -1 to 1: float32 tells them apart
ROWS_AT_ONCE = 8192


@dataclass(frozen=True)
class ColumnTables:
    """Counts of the rows by cells of every column of numbers, three times, each time in cells that hold equally many.

    Bounds of a schema are often far wider than what a table holds, and amounts are skewed. A network that sees numbers
    scaled by such bounds sees next to nothing. From the counts follow quantiles, by which the network scales them. A
    record that comes, goes or is replaced by a null record moves one count of every column by one.

    Parameters
    ----------
    places : tuple of NumberPlace
        Columns of numbers. Public.
    n_rows : int
        Of the private rows, declared where a number is declared.
    epsilon, delta : float
        Of the fit.
    relation : NeighboringRelation

    Examples
    --------
    >>> from skfairdp.gradient._column_tables import ColumnTables
    >>> from skfairdp.privacy import NeighboringRelation
    >>> from skfairdp.schema import NumberPlace
    >>> tables = ColumnTables((NumberPlace(0), NumberPlace(1)), 20_000, 1.0, 1e-5, NeighboringRelation.ZERO_OUT)
    >>> tables.is_worth_it, round(tables.counts.sigma, 1)
    (True, 32.3)
    """

    places: tuple[NumberPlace, ...]
    n_rows: int
    epsilon: float
    delta: float
    relation: NeighboringRelation

    @property
    def is_worth_it(self) -> bool:
        """Whether there are columns of numbers, and rows enough to be seen behind the noise."""
        return bool(self.places) and self.n_rows > CLEAR * self.counts.sigma

    @property
    def counts(self) -> GaussianMechanism:
        """For the cells of all columns together, once."""
        moved = math.sqrt(len(self.places))
        mu = math.sqrt(SHARE / ROUNDS) * gdp_mu(self.epsilon, self.delta)
        return GaussianMechanism(moved / mu, sensitivity=moved, relation=self.relation)

    @property
    def event(self) -> DpEvent:
        """All rounds."""
        return repeat(self.counts.event, ROUNDS)

    @property
    def releases(self) -> tuple[str, ...]:
        """In words, for the ledger."""
        return (f"{ROUNDS} noisy tables of where the numbers of {len(self.places)} columns lie",)

    def table(self, X: Any, edges: Array) -> Array:
        """Count the rows in the cells between edges, column by column. Private."""
        found = np.zeros((len(self.places), CELLS))
        for i in range(0, len(X), ROWS_AT_ONCE):
            rows = X[i : i + ROWS_AT_ONCE]
            for place, ends, cells in zip(self.places, edges, found, strict=True):
                numbers = rows[:, place.column]
                known = np.isfinite(numbers)  # a null record counts nowhere
                if place.missing is not None:
                    known &= rows[:, place.missing] < 0.5
                cells += np.bincount(np.searchsorted(ends[1:-1], numbers[known], side="right"), minlength=CELLS)
        return found

    def knots(self, X: Any, noise: NoiseSource) -> Array:
        """Release the tables, and return the quantiles that follow from them.

        Parameters
        ----------
        X : ndarray or KeptRows of shape (n_rows, n_features)
            Private rows, numbers scaled to -1 … 1 by their bounds.
        noise : NoiseSource

        Returns
        -------
        ndarray of shape (n_columns, KNOTS)
            Increasing.
        """
        edges = np.tile(np.linspace(-1, 1, CELLS + 1), (len(self.places), 1))
        for _ in range(ROUNDS - 1):
            edges = self.quantiles(edges, self.counts.release(self.table(X, edges), noise), np.arange(CELLS + 1) / CELLS)
        return self.quantiles(
            edges, self.counts.release(self.table(X, edges), noise), (np.arange(KNOTS) + 0.5) / KNOTS
        )

    def quantiles(self, edges: Array, noisy: Array, levels: Array) -> Array:
        """Quantiles of each column by noisy counts; post-processing."""
        return np.stack(
            [
                _apart(np.interp(levels, np.r_[0.0, np.cumsum(shares)], ends))
                for ends, shares in zip(edges, map(self._shares, noisy, np.diff(edges)), strict=True)
            ]
        )

    def _shares(self, noisy: Array, widths: Array) -> Array:
        """Shares of the cells of one column, from the top: each half of a range gets what is clear of the noise.

        Where neither half is, both get what they are wide.
        """
        shares = np.ones(1)
        for size in (CELLS >> level for level in range(1, CELLS.bit_length())):
            halves = noisy.reshape(-1, 2, size).sum(axis=2)
            wide = widths.reshape(-1, 2, size).sum(axis=2)
            error = self.counts.sigma * math.sqrt(size)
            kept = np.maximum(halves - error, 0.0) + error / 2 * wide / wide.sum(axis=1, keepdims=True)
            shares = (shares[:, None] * kept / kept.sum(axis=1, keepdims=True)).ravel()
        return shares


def _apart(knots: Array) -> Array:
    """Move knots apart that float32 could not tell from each other, within -1 … 1."""
    steps = np.arange(len(knots)) * CLOSEST
    moved = np.maximum.accumulate(np.clip(knots, -1, 1) - steps) + steps
    return np.minimum(moved, 1 - steps[::-1])
