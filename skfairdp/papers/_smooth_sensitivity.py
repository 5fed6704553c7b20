"""Smooth sensitivity of the data-dependent GNMax bound (Papernot et al. 2018)."""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtri_exp

from skfairdp._typing import ArrayLike
from skfairdp.papers._pate_bounds import check_sigma, data_dependent_rdp, log_q

Array = NDArray[np.float64]

_GRID_POINTS = 4001
# Rounding of a bound is about 1e-14 relative, a true violation of C5 or C6 on the grid far above this.
_SLACK = 1e-9
# Where q < exp(-700) the bound is below 1e-300: its shape there can move no sensitivity.
_LOG_Q_NEGLIGIBLE = -700.0


def smooth_sensitivity(votes: ArrayLike, sigma: float, order: float, beta: float) -> float:
    """Bound the beta-smooth sensitivity of the summed data-dependent bound at one order.

    ``max over d of exp(-beta d) * sum over queries of LS_d``, where LS_d bounds the local sensitivity of one
    query's bound on every histogram within d teachers of the given one (Algorithms 4 and 5). One teacher may
    change its vote in every query at once.
    """
    votes = np.atleast_2d(np.asarray(votes))
    whole = votes.ndim == 2 and votes.dtype.kind in "iu" and votes.size > 0 and votes.min() >= 0
    if not whole or np.ptp(votes.sum(axis=1)):
        raise ValueError(
            "votes must be a non-empty array of whole counts, at least 0, of shape (n_queries, n_classes), "
            "each row summing to the number of teachers. "
            f"Got shape {votes.shape} and type {votes.dtype} instead."
        )
    if not (beta >= 0 and math.isfinite(beta)):
        raise ValueError(f"beta must be at least 0 and finite. Got {beta!r} instead.")
    _check_order(order)
    n_classes = votes.shape[1]
    if n_classes == 1:
        return 0.0
    if not check_conditions(sigma, n_classes, order):
        raise ValueError(
            f"Conditions C5 and C6 fail at sigma={sigma!r}, order={order!r} with {n_classes} classes, so no "
            "smooth sensitivity is proven. Lower the order or raise sigma."
        )
    by_distance = _local_sensitivities(votes.astype(np.int64), float(sigma), float(order))
    return float((np.exp(-beta * np.arange(by_distance.size)) * by_distance).max())


@lru_cache(maxsize=256)
def check_conditions(sigma: float, n_classes: int, order: float) -> bool:
    """Check numerically what Algorithms 4 and 5 assume about the bound as a function of q.

    C5: the bound does not decrease in q up to q0, where the data-independent bound takes over for good.
    C6: what moving one vote can add to the bound does not decrease in q, up to one vote short of q0.
    """
    check_sigma(sigma)
    _check_order(order)
    if n_classes < 2:
        raise ValueError(f"n_classes must be at least 2. Got {n_classes!r} instead.")
    log_q0 = _log_q0(sigma, order)
    beyond = -np.square(np.linspace(0.0, math.sqrt(-log_q0), _GRID_POINTS, endpoint=False))
    takes_over_for_good = bool((_bound(beyond, sigma, order) == order / sigma**2).all())

    lowest = min(4 * log_q0, _LOG_Q_NEGLIGIBLE)
    below_q0 = -np.square(np.linspace(math.sqrt(-lowest), math.sqrt(-log_q0), _GRID_POINTS))
    below_q0[-1] = log_q0
    c5 = _never_decreases(_bound(below_q0, sigma, order))
    log_q1 = float(_one_vote(np.array([log_q0]), sigma, n_classes, -1)[0])
    below_q1 = -np.square(np.linspace(math.sqrt(-min(lowest, 4 * log_q1)), math.sqrt(-log_q1), _GRID_POINTS))
    added = _bound(_one_vote(below_q1, sigma, n_classes, +1), sigma, order) - _bound(below_q1, sigma, order)
    return takes_over_for_good and c5 and _never_decreases(added)


def _never_decreases(values: Array) -> bool:
    return bool((values[1:] >= values[:-1] * (1 - _SLACK)).all())


def _check_order(order: float) -> None:
    if not 1 < order < math.inf:
        raise ValueError(f"order must be finite and greater than 1. Got {order!r} instead.")


def _bound(log_q: Array, sigma: float, order: float) -> Array:
    return data_dependent_rdp(log_q, sigma, [order])[:, 0]


@lru_cache(maxsize=256)
def _log_q0(sigma: float, order: float) -> float:
    """Largest log q at which the data-dependent bound is below the data-independent one, to rounding."""

    def better(log_q: float) -> bool:
        return bool(_bound(np.array([log_q]), sigma, order)[0] < order / sigma**2)

    # The bound tends to 0 with q, so such a point exists.
    inside, outside = -1.0, 0.0
    while not better(inside):
        inside, outside = 2 * inside, inside
    while (middle := (inside + outside) / 2) not in (inside, outside):
        inside, outside = (middle, outside) if better(middle) else (inside, middle)
    return inside


def _one_vote(log_q: Array, sigma: float, n_classes: int, direction: int) -> Array:
    """Log of B_U (direction +1) or B_L (-1): the largest or smallest q after one vote moved.

    Each gap to the plurality moves by at most 2; the extreme, by concavity, has all gaps equal.
    """
    others = math.log(n_classes - 1)
    return np.minimum(others + log_ndtr(ndtri_exp(log_q - others) + direction * math.sqrt(2.0) / sigma), 0.0)


def _local_sensitivity(log_q: Array, sigma: float, order: float, n_classes: int) -> Array:
    """Algorithm 3: bound the change of one query's bound when one vote moves. Rises to q1, falls from q0."""
    log_q0 = _log_q0(sigma, order)
    log_q1 = _one_vote(np.array([log_q0]), sigma, n_classes, -1)[0]
    log_q = np.where((log_q >= log_q1) & (log_q <= log_q0), log_q1, log_q)
    here = _bound(log_q, sigma, order)
    up = _bound(_one_vote(log_q, sigma, n_classes, +1), sigma, order)
    down = _bound(_one_vote(log_q, sigma, n_classes, -1), sigma, order)
    return np.maximum(up - here, here - down)


def _local_sensitivities(votes: NDArray[np.int64], sigma: float, order: float) -> Array:
    """Sum over queries of the largest local sensitivity within d votes, for d = 0..n_teachers."""
    n_classes, n_teachers = votes.shape[1], int(votes[0].sum())
    votes, repeats = np.unique(-np.sort(-votes, axis=1), axis=0, return_counts=True)
    log_q0 = _log_q0(sigma, order)
    log_q1 = _one_vote(np.array([log_q0]), sigma, n_classes, -1)[0]
    plateau = _local_sensitivity(np.array([log_q1]), sigma, order, n_classes)[0]

    current = log_q(votes, sigma)
    falling = current > log_q0  # towards q0: votes move to the plurality; otherwise away from it, towards q1
    largest = _local_sensitivity(current, sigma, order, n_classes)
    done = (current >= log_q1) & (current <= log_q0)
    totals = np.empty(n_teachers + 1)
    totals[0] = repeats @ largest
    for distance in range(1, n_teachers + 1):
        # Nobody is left to win over, or the plurality would be lost (where q is far above q1 anyway).
        done |= falling & (votes[:, 1:].max(axis=1) == 0)
        lost = ~falling & ~done & (votes[:, 0] - votes[:, 1] < 2)
        largest[lost], done[lost] = plateau, True
        active = np.flatnonzero(~done)
        if active.size == 0:
            totals[distance:] = repeats @ largest
            break
        # The extreme q at this distance: always between the plurality and the runner-up (tails are convex).
        runner_up = 1 + votes[active, 1:].argmax(axis=1)
        step = np.where(falling[active], 1, -1)
        votes[active, 0] += step
        votes[active, runner_up] -= step
        now = log_q(votes[active], sigma)
        here = _local_sensitivity(now, sigma, order, n_classes)
        reached = np.where(falling[active], now <= log_q0, now >= log_q1)
        here[reached] = plateau
        largest[active] = np.maximum(largest[active], here)
        done[active[reached]] = True
        totals[distance] = repeats @ largest
    return totals
