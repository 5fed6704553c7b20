"""How far the rates of a population can be from those of a table of counts: confidence bounds, also behind noise."""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtri

from skfairdp.fairness._rates import RateConstraints, RateParity

__all__ = ["parity_bound", "rate_bounds", "violation_bounds"]

Array = NDArray[np.float64]

_DRAWS = 2000


def violation_bounds(constraints: RateConstraints, counts: Any, *, level: float = 0.95, noise: float = 0.0) -> Array:
    """Upper confidence bounds on the violation of every inequality in the population.

    Each holds by itself with the given probability. **So does the largest of them as a bound on the largest
    violation**: it is at least the bound of the one inequality that is broken most in the population, whichever that
    is. No correction for their number is needed, and none is made.

    Parameters
    ----------
    constraints : RateConstraints
    counts : array-like of shape (n_groups, n_classes or 1, n_classes)
        Counts of independent rows that the predictions do not follow from.
    level : float, default=0.95
    noise : float, default=0.0
        Standard deviation of the Gaussian noise that each count has.

    Returns
    -------
    ndarray of shape (n_inequalities,)
    """
    draws = _draws(constraints, counts, noise)
    sizes = np.asarray(counts, dtype=np.float64).sum(2)
    # rates of whole rows move in steps, and a bound for what lies between two of them takes half a step more
    rows = sizes @ constraints.cells[:, : sizes.shape[1]].T
    half_step = 0.5 / np.maximum(np.vstack([rows, rows.sum(0)]), 1.0) * (noise == 0)
    found = np.empty(constraints.n_inequalities)
    for j, coefficients in enumerate(constraints.coefficients):
        groups, rates = np.nonzero(coefficients)
        left = coefficients[groups, rates] @ draws[groups, rates]
        step = half_step[groups, rates].min()
        found[j] = np.quantile(left, level) + step - constraints.bounds[j]
    return found


def parity_bound(counts: Any, *, level: float = 0.95, noise: float = 0.0) -> float:
    """Upper confidence bound on the largest difference between two groups' rates of being given a class.

    Parameters
    ----------
    counts : array-like of shape (n_groups, n_classes)
        Answers to independent rows that the answers do not follow from.
    level : float, default=0.95
    noise : float, default=0.0
        Standard deviation of the Gaussian noise that each count has.

    Returns
    -------
    float
        NaN where there are fewer than two groups.

    Examples
    --------
    >>> from skfairdp.fairness import parity_bound
    >>> round(parity_bound([[300, 100], [350, 50]]), 2), round(parity_bound([[300, 100], [350, 50]], noise=20.0), 2)
    (0.17, 0.24)
    """
    table = np.asarray(counts, dtype=np.float64)
    if len(table) < 2:
        return float("nan")
    constraints = RateConstraints((RateParity("selection_rate", 0.0),), range(len(table)), range(table.shape[1]))
    return float(violation_bounds(constraints, table[:, None, :], level=level, noise=noise).max())


def rate_bounds(
    constraints: RateConstraints, counts: Any, *, level: float = 0.95, noise: float = 0.0
) -> tuple[Array, Array]:
    """Lower and upper confidence bounds on every rate of every group, and of all rows: all of them together.

    Parameters
    ----------
    constraints, counts, level, noise
        As for :func:`violation_bounds`.

    Returns
    -------
    lower, upper : ndarray of shape (n_groups + 1, n_rates)
    """
    draws = _draws(constraints, counts, noise)
    tail = (1 - level) / (2 * draws[..., 0].size)  # Bonferroni: that all hold at once
    lower, upper = np.quantile(draws, [tail, 1 - tail], axis=2)
    return lower, upper


def _draws(constraints: RateConstraints, counts: Any, noise: float) -> Array:
    """Rates that the counts speak for, (n_groups + 1, n_rates, draws): Jeffreys' law of each, after that of the noise.

    Bounds from Jeffreys' law miss a rate about as often as they say, on either side; those that never miss it more
    often (Clopper and Pearson) miss it far less often where rows are few. Counts may lie below 0 behind noise: only
    what is made of them is cut to [0, 1], as to cut before would pull small rates up.
    """
    counts = np.asarray(counts, dtype=np.float64)
    events, cells = constraints.events[:, : counts.shape[1]], constraints.cells[:, : counts.shape[1]]
    spread = _spread(len(counts) * len(events))  # always the same: bounds are a function of the table
    of_noise, of_rest, of_rate, of_size = spread.reshape(4, len(counts), len(events), _DRAWS)
    hits, misses = (np.einsum("ayk,ryk->ar", counts, w)[..., None] for w in (events, cells[..., None] - events))
    if noise > 0:
        hits = hits - noise * np.sqrt(events.sum((1, 2)))[:, None] * ndtri(of_noise)
        misses = misses - noise * np.sqrt((cells[..., None] - events).sum((1, 2)))[:, None] * ndtri(of_rest)
    positive, rest = np.maximum(hits, 0.0), np.maximum(misses, 0.0)
    size, found = hits + misses, positive + rest
    sampled = betaincinv(positive + 0.5, rest + 0.5, of_rate) - positive / np.maximum(found, 1.0)
    rates = np.clip(np.where(size >= 1, hits / np.maximum(size, 1.0) + sampled, of_rate < 0.5), 0.0, 1.0)
    shares = np.maximum(found + np.sqrt(found) * ndtri(of_size), 1e-9)
    overall = (rates * shares).sum(0) / shares.sum(0)
    return np.concatenate([rates, overall[None]])


@cache
def _spread(n_rates: int) -> Array:
    """Numbers in (0, 1), evenly spread along the last axis, in an order of its own for each of four per rate."""
    rng = np.random.default_rng(0)
    even = np.broadcast_to((np.arange(_DRAWS) + 0.5) / _DRAWS, (4 * n_rates, _DRAWS))
    return rng.permuted(even, axis=-1)
