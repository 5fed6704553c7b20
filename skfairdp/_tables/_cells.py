"""Shares of groups and labels: noisy ones made shares again, and rows dealt out by them."""

import numpy as np
from numpy.typing import NDArray


def on_simplex(noisy: NDArray[np.float64]) -> NDArray[np.float64]:
    """Nearest non-negative vectors with the totals of the given ones, as shares; even where the total is not positive.

    Rows of a matrix are projected one by one (Euclidean projection; Duchi et al. 2008).
    """
    rows = np.atleast_2d(np.asarray(noisy, dtype=np.float64))
    totals = rows.sum(axis=1, keepdims=True)
    falling = -np.sort(-rows, axis=1)
    excess = (np.cumsum(falling, axis=1) - totals) / np.arange(1, rows.shape[1] + 1)
    last = np.count_nonzero(falling > excess, axis=1, keepdims=True) - 1
    kept = np.maximum(rows - np.take_along_axis(excess, np.maximum(last, 0), axis=1), 0.0)
    total = kept.sum(axis=1, keepdims=True)
    shares = np.where((totals > 0) & (total > 0), kept / np.where(total > 0, total, 1.0), 1.0 / rows.shape[1])
    return shares.reshape(np.shape(noisy))


def drawn_cells(rates: NDArray[np.float64], n_samples: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Groups and labels in random order, each as often as its share says, up to one row that is drawn at random."""
    expected = rates * n_samples
    times = np.floor(expected).astype(np.int64)
    missing = n_samples - int(times.sum())
    if missing:
        # Systematic sampling of the remainders: each cell gets its remainder on average, and at most one row.
        reached = np.cumsum(expected - times)
        marks = rng.random() + np.arange(missing)
        np.add.at(times, np.minimum(np.searchsorted(reached * missing / reached[-1], marks), len(rates) - 1), 1)
    return rng.permutation(np.repeat(np.arange(len(rates)), times))
