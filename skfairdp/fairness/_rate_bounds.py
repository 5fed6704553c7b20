"""How far the rates of a population can be from those of a table of counts: confidence bounds, also behind noise."""

from dataclasses import replace
from functools import cache
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtri

from skfairdp.fairness._rates import RateConstraints, RateParity

Array = NDArray[np.float64]

_DRAWS = 2000
_REACH = 3.0  # standard deviations


def violation_bounds(constraints: RateConstraints, counts: Any, *, level: float = 0.95, noise: Any = 0.0) -> Array:
    """Upper confidence bounds on the violation of every inequality in the population.

    Each holds by itself with at least the given probability, also for rates of 0 and 1 and for groups of a few rows or
    none. **So does the largest of them as a bound on the largest violation**: it is at least the bound of the one
    inequality that is broken most in the population, whichever that is. No correction for their number is needed, and
    none is made.
    """
    _check_settings(level, noise)
    lower, upper = _laws(constraints, counts, noise)
    found = np.empty(constraints.n_inequalities)
    line, group, rate, value = constraints.terms  # in the order of the inequalities
    starts = np.searchsorted(line, np.arange(len(found) + 1))
    for j in range(len(found)):
        at = slice(starts[j], starts[j + 1])
        terms, factors = (group[at], rate[at]), value[at][:, None]
        largest = np.where((factors > 0) == (level > 0.5), upper[terms], lower[terms])
        # A rate that noise takes beyond [0, 1] makes up for what it does to the others, as far as it may reach there.
        moved = np.square(factors * np.clip(largest, 0.0, 1.0).std(axis=1, keepdims=True))
        room = _REACH * np.sqrt(np.maximum(moved.sum() - moved, 0.0)) / np.abs(factors)
        left = (factors * np.clip(largest, -room, 1 + room)).sum(axis=0)
        found[j] = min(np.quantile(left, level), np.maximum(factors, 0.0).sum()) - constraints.bounds[j]
    return found


def gaps_of(constraints: RateConstraints) -> RateConstraints:
    """The same without slack: what a bound on a difference is broken by is then the difference itself."""
    asked = [
        replace(one, difference_bound=0.0) if isinstance(one, RateParity) and one.ratio_bound is None else one
        for one in constraints.constraints
    ]
    return RateConstraints(tuple(asked), constraints.groups, constraints.classes)


def _check_settings(level: float, noise: Any) -> None:
    if not isinstance(level, Real) or not 0 < level < 1:
        raise ValueError(f"'level' must lie between 0 and 1: it is how often the bound holds. Got {level!r} instead.")
    known = isinstance(noise, Real | np.ndarray) and np.all(np.isfinite(noise))
    if not known or np.any(noise < 0):
        raise ValueError(
            f"'noise' must be a standard deviation: at least 0 (no noise) and finite. Got {noise!r} instead."
        )


def parity_bound(counts: Any, *, level: float = 0.95, noise: float = 0.0) -> float:
    """Upper confidence bound on the largest difference between two groups' rates of being given a class."""
    _check_settings(level, noise)
    try:
        table = np.ma.filled(np.ma.asarray(counts, dtype=np.float64), np.nan)  # what is masked is no count
    except (TypeError, ValueError):  # texts, complex numbers, lines of unlike lengths
        table = np.full((0,), np.nan)
    if table.ndim != 2 or not np.isfinite(table).all():
        raise ValueError("'counts' must be a table of finite numbers, of shape (n_groups, n_classes).")
    if len(table) < 2:
        return float("nan")
    constraints = RateConstraints((RateParity("selection_rate", 0.0),), range(len(table)), range(table.shape[1]))
    return float(violation_bounds(constraints, table[:, None, :], level=level, noise=noise).max())


def rate_bounds(
    constraints: RateConstraints, counts: Any, *, level: float = 0.95, noise: float = 0.0
) -> tuple[Array, Array]:
    """Lower and upper confidence bounds on every rate of every group, and of all rows: all of them together."""
    _check_settings(level, noise)
    lower, upper = (np.clip(rates, 0.0, 1.0) for rates in _laws(constraints, counts, noise))
    tail = (1 - level) / (2 * lower[..., 0].size)  # Bonferroni: that all hold at once
    return np.quantile(lower, tail, axis=2), np.quantile(upper, 1 - tail, axis=2)


def _laws(constraints: RateConstraints, counts: Any, noise: Any) -> tuple[Array, Array]:
    """Rates that the counts speak for, from below and from above, each (n_groups + 1, n_rates, draws).

    ``Beta(hits, misses + 1)`` lies below a rate and ``Beta(hits + 1, misses)`` above it as often as a bound of Clopper
    and Pearson does, at every level. A bound on a difference draws one rate from each (Fay, Proschan & Brittain 2015).
    With no hits the lower one is 0, with no misses the upper one is 1: of a group without rows nothing is certified.
    Behind noise, hits and misses are drawn first; where that takes a rate beyond [0, 1], it is left there.
    """
    counts = np.asarray(counts, dtype=np.float64)
    events, cells = constraints.events[:, : counts.shape[1]], constraints.cells[:, : counts.shape[1]]
    spread = _spread(len(counts) * len(events))  # always the same: bounds are a function of the table
    of_noise, of_rest, of_rate, of_size = spread.reshape(4, len(counts), len(events), _DRAWS)
    variance, others = np.broadcast_to(np.square(noise), counts.shape), cells[..., None] - events
    hits, misses = (np.einsum("ayk,ryk->ar", counts, w)[..., None] for w in (events, others))
    if np.any(variance):
        hits = hits - np.sqrt(np.einsum("ayk,ryk->ar", variance, events))[..., None] * ndtri(of_noise)
        misses = misses - np.sqrt(np.einsum("ayk,ryk->ar", variance, others))[..., None] * ndtri(of_rest)
    positive, rest, size = np.maximum(hits, 0.0), np.maximum(misses, 0.0), hits + misses
    lower = np.where(positive > 0, betaincinv(np.where(positive > 0, positive, 1.0), rest + 1, of_rate), 0.0)
    upper = np.where(rest > 0, betaincinv(positive + 1, np.where(rest > 0, rest, 1.0), of_rate), 1.0)
    uncut = hits / np.maximum(size, 1.0)
    found = positive + rest
    shares = np.maximum(found + np.sqrt(found) * ndtri(of_size), 1e-9)
    shares /= shares.sum(0)
    each = np.where(uncut < 0, uncut, lower), np.where(uncut > 1, uncut, upper)
    low, high = (np.concatenate([rates, (rates * shares).sum(0)[None]]) for rates in each)
    return low, high


@cache
def _spread(n_rates: int) -> Array:
    """Numbers in (0, 1), evenly spread along the last axis, in an order of its own for each of four per rate."""
    rng = np.random.default_rng(0)
    even = np.broadcast_to((np.arange(_DRAWS) + 0.5) / _DRAWS, (4 * n_rates, _DRAWS))
    return rng.permuted(even, axis=-1)
