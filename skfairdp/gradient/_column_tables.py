"""Where the numbers of each column lie: noisy counts, asked three times ever more closely, within the ε of a fit."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfairdp._docs import shared_docs
from skfairdp.privacy import DpEvent, GaussianMechanism, NeighboringRelation, NoiseSource, gdp_mu, repeat
from skfairdp.schema import NumberPlace

__all__ = ["ColumnTables"]

Array = NDArray[np.float64]

#: At most of the squared cost of the fit that rates of groups leave: gradients have 4 % more noise.
SHARE = 0.08
#: Nor is a count known to less than a hundredth of the rows, which shifts quantiles by a few hundredths.
ENOUGH = 100.0
ROUNDS = 3
CELLS = 32  # a power of two; each round looks up to so many times more closely
LIGHT = 0.25  # neighbouring cells become one below this part of an equal share
UNSEEN = 0.2  # standard deviations of rows that either half of a range gets unseen, as wide as it is
KNOTS = 8
#: Half of a column is counted with four standard deviations of a cell, which have to be a quarter of the rows at most.
CLEAR = 16.0
CLOSEST = 2.0**-17  # knots of bounds from -1 to 1: float32 tells them apart
ROWS_AT_ONCE = 8192


@shared_docs
@dataclass(frozen=True)
class ColumnTables:
    """Counts of the rows by cells of every column of numbers, three times, each time in smaller cells where many are.

    Bounds of a schema are often far wider than what a table holds, and amounts are skewed. A network that sees numbers
    scaled by such bounds sees next to nothing. From the counts follow quantiles, by which the network scales them. A
    record that comes, goes or is replaced by a null record moves one count of every column by one.

    Parameters
    ----------
    places : tuple of NumberPlace
        Columns of numbers. Public.
    n_rows : int
        Of the private rows, declared where a number is declared.
    {looks_beside_a_fit}

    Examples
    --------
    >>> from skfairdp.gradient._column_tables import ColumnTables
    >>> from skfairdp.privacy import NeighboringRelation
    >>> from skfairdp.schema import NumberPlace
    >>> tables = ColumnTables((NumberPlace(0), NumberPlace(1)), 20_000, 1.0, 1e-5, NeighboringRelation.ZERO_OUT)
    >>> tables.is_worth_it, round(tables.counts.sigma, 1)
    (True, 200.0)
    """

    places: tuple[NumberPlace, ...]
    n_rows: int
    epsilon: float
    delta: float
    relation: NeighboringRelation
    share: float = 1.0

    @property
    def is_worth_it(self) -> bool:
        """Whether there are columns of numbers, and rows enough to be seen behind the noise."""
        return bool(self.places) and self.n_rows > CLEAR * self.counts.sigma

    @property
    def counts(self) -> GaussianMechanism:
        """For the cells of all columns together, once."""
        moved = math.sqrt(len(self.places))
        mu = min(
            math.sqrt(SHARE * self.share / ROUNDS) * gdp_mu(self.epsilon, self.delta), ENOUGH * moved / self.n_rows
        )
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

    def release(self, X: Any, noise: NoiseSource) -> Array:
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
            shares = self.shares(edges, self.counts.release(self.table(X, edges), noise))
            edges = np.stack([_finer(ends, part) for ends, part in zip(edges, shares, strict=True)])
        shares = self.shares(edges, self.counts.release(self.table(X, edges), noise))
        return np.stack([_quantiles(ends, part) for ends, part in zip(edges, shares, strict=True)])

    def shares(self, edges: Array, noisy: Array) -> Array:
        """Shares of the cells by noisy counts; post-processing.

        From the top: each half of a range gets what is clear of the noise of its count. Where neither half has any,
        both get what they are wide.
        """
        n_columns = len(edges)
        shares = np.ones((n_columns, 1))
        for size in (CELLS >> level for level in range(1, CELLS.bit_length())):
            halves = noisy.reshape(n_columns, -1, 2, size).sum(axis=3)
            wide = np.diff(edges).reshape(n_columns, -1, 2, size).sum(axis=3)
            error = self.counts.sigma * math.sqrt(size)
            kept = np.maximum(halves - error, 0.0) + UNSEEN * error * wide / wide.sum(axis=2, keepdims=True)
            shares = (shares[:, :, None] * kept / kept.sum(axis=2, keepdims=True)).reshape(n_columns, -1)
        return shares


def _finer(edges: Array, shares: Array) -> Array:
    """Edges of as many cells, of which none is heavy: light neighbours become one, and the heaviest are halved."""
    cells = [(shares[0], edges[0], edges[1])]
    for share, low, high in zip(shares[1:], edges[1:-1], edges[2:], strict=True):
        before, start, _ = cells[-1]
        if before + share < LIGHT / CELLS:
            cells[-1] = (before + share, start, high)
        else:
            cells.append((share, low, high))
    while len(cells) < CELLS:
        wide = [cell for cell in cells if cell[2] - cell[1] >= 2 * CLOSEST]
        share, low, high = max(wide)
        middle = (low + high) / 2
        cells.remove((share, low, high))
        cells += [(share / 2, low, middle), (share / 2, middle, high)]
    return np.array([*sorted(low for _, low, _ in cells), edges[-1]])


def _quantiles(edges: Array, shares: Array) -> Array:
    """Quantiles of one column at KNOTS levels, apart from each other."""
    levels = (np.arange(KNOTS) + 0.5) / KNOTS
    return _apart(np.interp(levels, np.r_[0.0, np.cumsum(shares)], edges))


def _apart(knots: Array) -> Array:
    """Move knots apart that float32 could not tell from each other, within -1 … 1."""
    steps = np.arange(len(knots)) * CLOSEST
    moved = np.maximum.accumulate(np.clip(knots, -1, 1) - steps) + steps
    return np.minimum(moved, 1 - steps[::-1])
