"""What the privacy analysis of Papernot et al. (2018) would say about the votes of one run: a diagnostic."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from scipy.special import log_ndtr, ndtri_exp

from skfairdp._typing import ArrayLike, Floats, Ints, MaybeArray
from skfairdp.privacy import rounded_up

# exp overflows just above 709; below this no element can.
_EXP_SAFE = 700.0


def log_q(votes: ArrayLike, sigma: float) -> Floats:
    """Bound the log probability that GNMax does not answer with the plurality. ``q = sum over the other classes j of
    erfc((n_max - n_j) / (2 sigma)) / 2`` (a union bound, Proposition 7), capped at ``1 - 1/K``, all in logarithms."""
    votes = np.atleast_2d(np.asarray(votes))
    numeric = votes.dtype.kind in "iuf" and bool(np.isfinite(votes).all())
    if votes.ndim != 2 or votes.shape[1] == 0 or not numeric:
        raise ValueError(
            "votes must be a finite numeric array of shape (n_queries, n_classes). "
            f"Got shape {votes.shape} and type {votes.dtype} instead."
        )
    check_sigma(sigma)
    n_queries, n_classes = votes.shape
    if n_classes == 1:
        return np.full(n_queries, -np.inf)
    # Small or unsigned integer types would wrap around. Classes come first: reducing over long rows is faster.
    votes = np.ascontiguousarray(votes.T, dtype=np.float64 if votes.dtype.kind == "f" else np.int64)
    gaps = votes.max(axis=0) - votes
    scale = math.sqrt(2.0) * sigma
    if gaps.dtype.kind == "i" and gaps.size and gaps.max() < gaps.size:
        # Whole votes take few distinct gaps: looking their tails up is ten times cheaper than computing each.
        tails = np.take(log_ndtr(-np.arange(gaps.max() + 1) / scale), gaps)
    else:
        tails = log_ndtr(-gaps / scale)
    tails[votes.argmax(axis=0), np.arange(n_queries)] = -np.inf  # the plurality itself; its ties stay
    top = tails.max(axis=0)
    return np.minimum(top + np.log(np.exp(tails - top).sum(axis=0)), math.log1p(-1.0 / n_classes))


def data_dependent_rdp(log_q: ArrayLike, sigma: float, orders: ArrayLike) -> Floats:
    """Bound the Rényi divergence of GNMax at the votes behind ``log_q``.

    Theorem 6 with the higher orders of Proposition 10 (``mu2 = sigma sqrt(log 1/q)``, ``mu1 = mu2 + 1``)
    wherever all its conditions hold, and never more than the data-independent ``order / sigma**2``.

    Notes
    -----
    The expectation of this cost over a noisy threshold is not a Rényi bound; a query that may or may not be
    answered is charged as answered. The bound is for the argmax alone: a published histogram or a soft label
    costs the data-independent figure.
    """
    log_q = np.atleast_1d(np.asarray(log_q, dtype=np.float64))
    orders = np.atleast_1d(np.asarray(orders, dtype=np.float64))
    if log_q.ndim != 1 or not (log_q <= 0).all():
        raise ValueError("log_q must be one-dimensional: logarithms of probabilities, none above 0 or NaN.")
    if orders.ndim != 1 or not (orders > 1).all() or not np.isfinite(orders).all():
        raise ValueError("orders must be a one-dimensional array of finite numbers greater than 1.")
    check_sigma(sigma)
    sigma = float(sigma)
    # Equal votes cost equally; and sorted by q, the queries to which the theorem applies come first.
    levels, query = np.unique(log_q, return_inverse=True)
    out = np.empty((orders.size, log_q.size))
    for result, bound in zip(out, _bounds_by_order(levels, sigma, orders), strict=True):
        np.take(bound, query, out=result, mode="clip")  # "clip" writes in place; no index is out of range
    return out.T


def _bounds_by_order(log_q: Floats, sigma: float, orders: Floats) -> Iterator[Floats]:
    """Yield one order's bounds after the other, for ascending ``log_q``, in one reused buffer. So operations run over
    contiguous queries in a core's cache, with a scalar: several times faster than over a block of both."""
    root = np.sqrt(-log_q)
    mu2 = sigma * root
    # All conditions on q are lower limits on mu2, so they hold for a first stretch of the sorted queries. With
    # mu2 > 1 the base of A is positive, for q exp(mu2 / sigma²) < 1 says mu2 < mu2².
    first, last = np.count_nonzero(np.isneginf(log_q)), np.count_nonzero(mu2 > 1)
    # The bound grows with q only up to q = exp((mu2-1) eps2) / (mu1/(mu1-1) mu2/(mu2-1))^mu2. (Beyond, we have met
    # no bound below order/sigma², but the theorem asks for it.)
    t = mu2[first:last]
    growing = log_q[first:last] <= (t - 1) * root[first:last] / sigma - t * np.log1p(2 / (t - 1))
    usable = slice(first, first + int(np.logical_and.accumulate(growing).sum()))

    # (1-q) A^(a-1) is exp(log1q + (a-1) log_a) and q B^(a-1) is exp(log_q + (a-1) log_b). In A,
    # (q exp(eps2))^(1 - 1/mu2) is exp(-((mu2-1)/sigma)²): a form that cannot cancel.
    buffer = np.zeros(log_q.size)
    log_q, root, mu2 = log_q[usable], root[usable], mu2[usable]
    log1q = _log1mexp(log_q)
    log_a = log1q - _log1mexp(-np.square((mu2 - 1) / sigma))
    offset, slope = log_q - log1q, 2 * root / sigma + 1 / sigma**2 - log_a
    highest, steepest = offset.max(initial=-np.inf), slope.max(initial=0.0)
    # The order may not exceed mu1 = mu2 + 1, and mu2 descends.
    n_valid = np.searchsorted(-mu2, 1 - orders, side="right")
    for order, n in zip(orders, n_valid, strict=True):
        independent, above = order / sigma**2, order - 1
        buffer[first + n :] = independent
        bound = buffer[first : first + n]
        np.multiply(slope[:n], above, out=bound)
        bound += offset[:n]
        if highest + steepest * above < _EXP_SAFE:
            np.exp(bound, out=bound)
            np.log1p(bound, out=bound)
        else:
            np.logaddexp(0.0, bound, out=bound)
        bound += log1q[:n]
        bound /= above
        bound += log_a[:n]
        np.maximum(bound, 0.0, out=bound)  # rounding, divided by an order - 1 near 0, can fall below
        np.minimum(bound, independent, out=bound)
        yield buffer


def _log1mexp(x: Floats) -> Floats:
    """log(1 - exp(x)) for x < 0, accurate at both ends."""
    near, far = np.maximum(x, -0.6931), np.minimum(x, -0.6931)
    return np.where(x > -0.6931, np.log(-np.expm1(near)), np.log1p(-np.exp(far)))


def check_sigma(sigma: float) -> None:
    if not (sigma > 0 and math.isfinite(sigma)):
        raise ValueError(f"sigma must be positive and finite. Got {sigma!r} instead.")


_GRID_POINTS = 4001
# Rounding of a bound is about 1e-14 relative, a true violation of C5 or C6 on the grid far above this.
_SLACK = 1e-9
# Where q < exp(-700) the bound is below 1e-300: its shape there can move no sensitivity.
_LOG_Q_NEGLIGIBLE = -700.0


def smooth_sensitivity(votes: ArrayLike, sigma: float, order: float, beta: float) -> float:
    """Bound the beta-smooth sensitivity of the summed data-dependent bound at one order. ``max over d of exp(-beta d) *
    sum over queries of LS_d``, where LS_d bounds the local sensitivity of one query's bound on every histogram within d
    teachers of the given one (Algorithms 4 and 5). One teacher may change its vote in every query at once."""
    votes = np.atleast_2d(np.asarray(votes))
    whole = votes.ndim == 2 and votes.dtype.kind in "iu" and votes.size > 0 and votes.min() >= 0
    if not whole or np.ptp(votes.sum(axis=1)):
        raise ValueError(
            "votes must be a non-empty array of whole counts, at least 0, of shape (n_queries, n_classes), each row "
            f"summing to the number of teachers. Got shape {votes.shape} and type {votes.dtype} instead."
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
    """Check numerically what Algorithms 4 and 5 assume about the bound as a function of q. C5: the bound does not
    decrease in q up to q0, where the data-independent bound takes over for good. C6: what moving one vote can add to
    the bound does not decrease in q, up to one vote short of q0."""
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
    curve = _bound(below_q0, sigma, order)
    log_q1 = float(_one_vote(np.array([log_q0]), sigma, n_classes, -1)[0])
    below_q1 = -np.square(np.linspace(math.sqrt(-min(lowest, 4 * log_q1)), math.sqrt(-log_q1), _GRID_POINTS))
    added = _bound(_one_vote(below_q1, sigma, n_classes, +1), sigma, order) - _bound(below_q1, sigma, order)
    never_decrease = [bool((values[1:] >= values[:-1] * (1 - _SLACK)).all()) for values in (curve, added)]
    return takes_over_for_good and all(never_decrease)


def _check_order(order: float) -> None:
    if not 1 < order < math.inf:
        raise ValueError(f"order must be finite and greater than 1. Got {order!r} instead.")


def _bound(log_q: Floats, sigma: float, order: float) -> Floats:
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


def _one_vote(log_q: Floats, sigma: float, n_classes: int, direction: int) -> Floats:
    """Log of B_U (direction +1) or B_L (-1): the largest or smallest q after one vote moved.
    Each gap to the plurality moves by at most 2; the extreme, by concavity, has all gaps equal."""
    others = math.log(n_classes - 1)
    return np.minimum(others + log_ndtr(ndtri_exp(log_q - others) + direction * math.sqrt(2.0) / sigma), 0.0)


def _local_sensitivity(log_q: Floats, sigma: float, order: float, n_classes: int) -> Floats:
    """Algorithm 3: bound the change of one query's bound when one vote moves. Rises to q1, falls from q0."""
    log_q0 = _log_q0(sigma, order)
    log_q1 = _one_vote(np.array([log_q0]), sigma, n_classes, -1)[0]
    log_q = np.where((log_q >= log_q1) & (log_q <= log_q0), log_q1, log_q)
    here = _bound(log_q, sigma, order)
    up = _bound(_one_vote(log_q, sigma, n_classes, +1), sigma, order)
    down = _bound(_one_vote(log_q, sigma, n_classes, -1), sigma, order)
    return np.maximum(up - here, here - down)


def _local_sensitivities(votes: Ints, sigma: float, order: float) -> Floats:
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


@dataclass(frozen=True)
class SmoothSensitivityRelease:
    """A data-dependent Rényi cost with noise scaled to its smooth sensitivity. A noisy *estimate*: neither an upper
    bound nor a privacy parameter that holds on every data set."""

    order: float
    rdp: float
    rdp_cost: float
    epsilon_estimate: float


@dataclass(frozen=True, repr=False)
class NonPrivateDiagnostic:
    """A figure computed from raw votes: not private, never publish."""

    epsilon: float
    delta: float
    n_queries: int
    epsilon_certified: float
    release: SmoothSensitivityRelease | None = None
    private: ClassVar[bool] = False

    def __repr__(self) -> str:
        return (
            f"NonPrivateDiagnostic(epsilon={rounded_up(self.epsilon, 6)}, delta={self.delta:g}, "
            f"n_queries={self.n_queries}; computed from raw votes: not private, never publish)"
        )


def pate_data_dependent_epsilon(
    votes: ArrayLike,
    *,
    sigma: float,
    delta: float,
    orders: MaybeArray = None,
    order: float | None = None,
    beta: float | None = None,
    sigma_ss: float | None = None,
) -> NonPrivateDiagnostic:
    """Compute the data-dependent ε of GNMax answers that PATE papers report.

    **No guarantee**: it bounds the Rényi divergence at these votes only, it depends on them, and looking at it (or
    stopping by it) is a release without a charge. The certified figure is an estimator's ``privacy_``.

    Parameters
    ----------
    votes : array-like of shape (n_queries, n_classes)
        Raw vote histograms of the queries that were answered by a noisy argmax with Gaussian noise. Not for soft
        labels or released histograms, whose cost does not depend on the votes.
    sigma : float
        Standard deviation of the noise on each count.
    delta : float
        In (0, 1).
    orders : array-like of shape (n_orders,), default=None
        Rényi orders to choose from; None takes those of the package's accountant.
    order, beta, sigma_ss : float, default=None
        Given together, they add a smooth-sensitivity release: the summed cost at ``order`` plus
        ``smooth sensitivity * N(0, sigma_ss²)``, with noise from the operating system. ``order`` must be fixed
        before the votes are seen, and lie in ``(1, 1/(2 beta))``.

    Returns
    -------
    NonPrivateDiagnostic
        Frozen, marked ``private = False``.

    Raises
    ------
    ValueError
        Malformed votes or parameters, only some of ``order``, ``beta`` and ``sigma_ss``, or conditions C5 and C6 of
        the smooth-sensitivity analysis not met.

    References
    ----------
    Papernot, Song, Mironov, Raghunathan, Talwar & Erlingsson (2018), "Scalable Private Learning with PATE",
    Theorem 6, Propositions 7 and 10, Algorithms 3-5, Theorem 23.

    Examples
    --------
    >>> from skfairdp.papers import pate_data_dependent_epsilon
    >>> votes = [[230, 20]] * 1000
    >>> pate_data_dependent_epsilon(votes, sigma=40, delta=1e-5)
    NonPrivateDiagnostic(epsilon=0.479..., delta=1e-05, n_queries=1000; computed from raw votes: not ...)
    """
    # Imported here: drawing a frontier needs no accountant.
    from skfairdp.privacy import RDP_ORDERS, gdp_epsilon, rdp_to_epsilon

    if not 0 < delta < 1:
        raise ValueError(f"delta must be a float in the range (0.0, 1.0). Got {delta!r} instead.")
    log_q_of_votes = log_q(votes, sigma)
    grid = np.asarray(RDP_ORDERS if orders is None else orders, dtype=float)
    total = data_dependent_rdp(log_q_of_votes, sigma, grid).sum(axis=0)
    n_queries = len(log_q_of_votes)
    release = None
    if any(value is not None for value in (order, beta, sigma_ss)):
        if order is None or beta is None or sigma_ss is None:
            raise ValueError("order, beta and sigma_ss belong together: give all three, or none for no release.")
        release = _release(votes, sigma, delta, order, beta, sigma_ss)
    certified = gdp_epsilon(math.sqrt(2 * n_queries) / sigma, delta)
    return NonPrivateDiagnostic(rdp_to_epsilon(grid, total, delta), float(delta), n_queries, certified, release)


def _release(votes: ArrayLike, sigma: float, delta: float, order: float, beta: float, sigma_ss: float) -> Any:
    from skfairdp.privacy import rdp_to_epsilon, smooth_sensitivity_release, smooth_sensitivity_release_cost

    cost = smooth_sensitivity_release_cost(order, beta, sigma_ss)
    scale = sigma_ss * smooth_sensitivity(votes, sigma, order, beta)
    rdp = float(data_dependent_rdp(log_q(votes, sigma), sigma, order).sum())
    rdp = smooth_sensitivity_release(rdp, scale)
    estimate = rdp_to_epsilon(np.array([order]), np.array([max(rdp, 0.0) + cost]), delta)
    return SmoothSensitivityRelease(float(order), rdp, cost, estimate)
