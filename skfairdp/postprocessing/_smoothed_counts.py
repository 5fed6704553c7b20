"""What noisy counts by bin, group and label most likely came from: between a smooth table and the counts."""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import logit, softmax

Array = NDArray[np.float64]

_NEAREST = 0.01  # scores closer than this to 0 or 1 count as that far away
_RIDGE = (0.1, 0.5)  # of intercepts and slopes: weak, and enough where a group has next to no rows


def smoothed_counts(counts: Array, edges: Array, sigma: float) -> tuple[Array, float]:
    """Draw noisy counts towards a smooth table, as far as their noise explains the difference.

    In the smooth table the log-odds of each group and label are linear in those of the score. It has two numbers for
    each group and label, where the counts have one for each bin: with few rows the counts are mostly noise, and the
    table is not. With many rows the counts tell where the table is wrong, and win: this is an estimate of James and
    Stein, whose weight goes to one.

    Only released numbers are read, so that this is post-processing.
    """
    table = counts.reshape(len(counts), -1)
    smooth = _smooth_table(table, _standard_scores(table, edges), sigma)
    apart = table - smooth
    squared = float(np.square(apart).sum())
    weight = max(0.0, 1.0 - sigma**2 * apart.size / squared) if squared > 0 else 1.0
    return (smooth + weight * apart).reshape(counts.shape), weight


def _standard_scores(table: Array, edges: Array) -> Array:
    """Log-odds of the middle of each bin, with mean 0 and deviation 1 over the rows."""
    ends = np.concatenate([[0.0], edges, [1.0]])
    odds = logit(np.clip((ends[:-1] + ends[1:]) / 2, _NEAREST, 1 - _NEAREST))
    rows = np.maximum(table.sum(1), 0.0)
    if not rows.any():
        rows = np.ones(len(table))
    centred = odds - np.average(odds, weights=rows)
    return np.asarray(centred / max(float(np.sqrt(np.average(np.square(centred), weights=rows))), 1e-6))


def _smooth_table(table: Array, scores: Array, sigma: float) -> Array:
    """Least squares in units of what noise and sampling move a count by; a bin keeps the rows that it has."""
    rows = np.maximum(table.sum(1, keepdims=True), 0.0)
    basis = np.stack([np.ones_like(scores), scores], axis=1)
    ridge = np.repeat(_RIDGE, table.shape[1])
    variance = sigma**2 + rows / 4 + 1e-9

    def loss(flat: Array) -> tuple[float, Array]:
        shares = softmax(basis @ flat.reshape(2, -1), axis=1)
        apart = rows * shares - table
        slope = apart / variance * rows
        of_odds = shares * (slope - (slope * shares).sum(1, keepdims=True))
        value = 0.5 * (np.square(apart) / variance).sum() + 0.5 * (ridge * np.square(flat)).sum()
        return float(value), (basis.T @ of_odds).ravel() + ridge * flat

    found = minimize(loss, np.zeros(len(ridge)), jac=True, method="L-BFGS-B").x
    return np.asarray(rows * softmax(basis @ found.reshape(2, -1), axis=1))
