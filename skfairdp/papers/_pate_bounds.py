"""Data-dependent Rényi bounds for GNMax (Papernot et al. 2018, "Scalable Private Learning with PATE").

They bound the Rényi divergence at the votes that were cast and at no others, so they are themselves private:
good for a diagnostic, never for a certified ε and never for stopping.
"""

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from skfairdp._typing import ArrayLike

Array = NDArray[np.float64]

# exp overflows just above 709; below this no element can.
_EXP_SAFE = 700.0


def log_q(votes: ArrayLike, sigma: float) -> Array:
    """Bound the log probability that GNMax does not answer with the plurality.

    ``q = sum over the other classes j of erfc((n_max - n_j) / (2 sigma)) / 2`` (a union bound, Proposition
    7), capped at ``1 - 1/K``, all in logarithms.
    """
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
    union = top + np.log(np.exp(tails - top).sum(axis=0))
    return np.minimum(union, math.log1p(-1.0 / n_classes))


def data_dependent_rdp(log_q: ArrayLike, sigma: float, orders: ArrayLike) -> Array:
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


def _bounds_by_order(log_q: Array, sigma: float, orders: Array) -> Iterator[Array]:
    """Yield one order's bounds after the other, for ascending ``log_q``, in one reused buffer.

    With one order at a time every operation runs over contiguous queries in a core's cache, with a scalar: several
    times faster than over a block of both.
    """
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


def _log1mexp(x: Array) -> Array:
    """log(1 - exp(x)) for x < 0, accurate at both ends."""
    near, far = np.maximum(x, -0.6931), np.minimum(x, -0.6931)
    return np.where(x > -0.6931, np.log(-np.expm1(near)), np.log1p(-np.exp(far)))


def check_sigma(sigma: float) -> None:
    if not (sigma > 0 and math.isfinite(sigma)):
        raise ValueError(f"sigma must be positive and finite. Got {sigma!r} instead.")
