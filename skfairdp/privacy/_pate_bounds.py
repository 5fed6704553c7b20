"""Data-dependent Rényi bounds for GNMax (Papernot et al. 2018, "Scalable Private Learning with PATE").

They bound the Rényi divergence at the votes that were cast and at no others, so they are themselves private: good
for a diagnostic, never for a certified ε and never for stopping.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr

__all__ = ["data_dependent_rdp", "log_q"]

Array = NDArray[np.float64]

# Values of one block of queries x orders: two buffers of them stay in a core's second-level cache.
_BLOCK = 12_800
# exp overflows just above 709; below this no element of a block can.
_EXP_SAFE = 700.0


def log_q(votes: ArrayLike, sigma: float) -> Array:
    """Bound the log probability that GNMax does not answer with the plurality.

    ``q = sum over the other classes j of erfc((n_max - n_j) / (2 sigma)) / 2`` (a union bound, Proposition 7),
    capped at ``1 - 1/K``, all in logarithms.

    Parameters
    ----------
    votes : array-like of shape (n_queries, n_classes)
        Vote histograms; a single histogram of shape (n_classes,) counts as one query.
    sigma : float
        Standard deviation of the Gaussian noise on each count.

    Returns
    -------
    ndarray of shape (n_queries,)
        At most ``log(1 - 1/K)``; -inf with a single class, whose answer is fixed.

    Raises
    ------
    ValueError
        Votes not a finite table, or sigma not positive.

    Examples
    --------
    >>> from skfairdp.privacy import log_q
    >>> log_q([[230, 20], [126, 124]], sigma=40).round(6)
    array([-9.183817, -0.721707])
    """
    votes = np.atleast_2d(np.asarray(votes))
    if votes.ndim != 2 or votes.shape[1] == 0 or votes.dtype.kind not in "iuf" or not np.isfinite(votes).all():
        raise ValueError(
            f"votes must be a finite numeric array of shape (n_queries, n_classes). Got shape {votes.shape} and "
            f"type {votes.dtype} instead."
        )
    _check_sigma(sigma)
    n_queries, n_classes = votes.shape
    if n_classes == 1:
        return np.full(n_queries, -np.inf)
    gaps = votes.max(axis=1, keepdims=True) - votes
    scale = math.sqrt(2.0) * sigma
    if gaps.dtype.kind in "iu" and gaps.size and gaps.max() < gaps.size:
        # Whole votes take few distinct gaps: looking their tails up is ten times cheaper than computing each.
        tails = log_ndtr(-np.arange(gaps.max() + 1) / scale)[gaps]
    else:
        tails = log_ndtr(-gaps / scale)
    tails[np.arange(n_queries), votes.argmax(axis=1)] = -np.inf  # the plurality itself; its ties stay
    top = tails.max(axis=1)
    union = top + np.log(np.exp(tails - top[:, None]).sum(axis=1))
    return np.minimum(union, math.log1p(-1.0 / n_classes))


def data_dependent_rdp(log_q: ArrayLike, sigma: float, orders: ArrayLike) -> Array:
    """Bound the Rényi divergence of GNMax at the votes behind ``log_q``.

    Theorem 6 with the higher orders of Proposition 10 (``mu2 = sigma sqrt(log 1/q)``, ``mu1 = mu2 + 1``) wherever all
    its conditions hold, and never more than the data-independent ``order / sigma**2``.

    Parameters
    ----------
    log_q : array-like of shape (n_queries,)
        From :func:`log_q`; -inf (a fixed answer) costs nothing.
    sigma : float
        Standard deviation of the Gaussian noise on each count.
    orders : array-like of shape (n_orders,)
        Rényi orders, each finite and greater than 1.

    Returns
    -------
    ndarray of shape (n_queries, n_orders)
        Between 0 and ``order / sigma**2``.

    Raises
    ------
    ValueError
        A positive or undefined ``log_q``, sigma not positive, or an order not above 1.

    Notes
    -----
    The expectation of this cost over a noisy threshold is not a Rényi bound; a query that may or may not be answered
    is charged as answered.

    Examples
    --------
    >>> from skfairdp.privacy import data_dependent_rdp, log_q
    >>> q = log_q([[230, 20], [126, 124]], sigma=40)
    >>> data_dependent_rdp(q, 40, [2, 10]).round(6)
    array([[3.4e-05, 5.0e-05],
           [1.25e-03, 6.25e-03]])
    """
    log_q = np.atleast_1d(np.asarray(log_q, dtype=np.float64))
    orders = np.atleast_1d(np.asarray(orders, dtype=np.float64))
    if log_q.ndim != 1 or not (log_q <= 0).all():
        raise ValueError("log_q must be a one-dimensional array of logarithms of probabilities, none above 0.")
    if orders.ndim != 1 or not (orders > 1).all() or not np.isfinite(orders).all():
        raise ValueError("orders must be a one-dimensional array of finite numbers greater than 1.")
    _check_sigma(sigma)
    # Equal votes cost equally, and sorted by q the valid entries of a block lie in a rectangle.
    levels, which = np.unique(log_q, return_inverse=True)
    by_size = np.argsort(orders, kind="stable")
    table = np.empty((levels.size, orders.size))
    table[:, by_size] = _rdp_sorted(levels, float(sigma), orders[by_size])
    return np.take(table, which, axis=0)


def _rdp_sorted(log_q: Array, sigma: float, orders: Array) -> Array:
    """Bounds for ascending ``log_q`` and ascending orders."""
    variance = sigma * sigma
    independent = orders / variance
    out = np.empty((log_q.size, orders.size))
    out[:] = independent
    fixed = np.isneginf(log_q)
    out[fixed] = 0.0

    root = np.sqrt(-log_q)
    mu2 = sigma * root
    # mu2 > 1 is also what keeps the base of A positive: q exp(mu2 / sigma^2) < 1 means sigma < mu2 sigma.
    usable = (mu2 > 1) & ~fixed
    log_q, root, mu2 = log_q[usable], root[usable], mu2[usable]
    # Theorem 6: the bound grows with q only up to exp((mu2-1) eps2) / (mu1/(mu1-1) mu2/(mu2-1))^mu2.
    growing = log_q <= (mu2 - 1) * root / sigma - mu2 * np.log1p(2 / (mu2 - 1))
    rows = np.flatnonzero(usable)[growing]
    log_q, root, mu2 = log_q[growing], root[growing], mu2[growing]

    # log of (1-q) A^(a-1) is log1q + (a-1) log_a, and that of q B^(a-1) is log_q + (a-1) log_b.
    log1q = _log1mexp(log_q)
    log_a = log1q - _log1mexp((log_q + root / sigma) * (1 - 1 / mu2))
    log_b = 2 * root / sigma + 1 / variance
    start, slope = log_q - log1q, log_b - log_a
    # Order <= mu1: ascending log_q means descending mu1, so the first row of a block needs the most columns.
    n_columns = np.searchsorted(orders, mu2 + 1, side="right")
    above = orders - 1
    step = max(1, _BLOCK // orders.size)
    for first in range(0, rows.size, step):
        width = n_columns[first]
        if width == 0:
            break
        block = slice(first, first + step)
        ratio = slope[block, None] * above[:width]
        ratio += start[block, None]
        # Linear in the order, so its largest value lies at an end.
        if ratio[:, [0, -1]].max() < _EXP_SAFE:
            np.exp(ratio, out=ratio)
            np.log1p(ratio, out=ratio)
        else:
            np.logaddexp(0.0, ratio, out=ratio)
        ratio += log1q[block, None]
        ratio /= above[:width]
        ratio += log_a[block, None]
        np.maximum(ratio, 0.0, out=ratio)  # rounding can leave -1e-30 where q is tiny
        np.minimum(ratio, independent[:width], out=ratio)
        if n_columns[block][-1] < width:
            invalid = np.arange(width) >= n_columns[block, None]
            np.copyto(ratio, independent[:width], where=invalid)
        out[rows[block], :width] = ratio
    return out


def _log1mexp(x: Array) -> Array:
    """log(1 - exp(x)) for x < 0."""
    return np.where(x > -0.6931, np.log(-np.expm1(x)), np.log1p(-np.exp(x)))


def _check_sigma(sigma: float) -> None:
    if not (sigma > 0 and math.isfinite(sigma)):
        raise ValueError(f"sigma must be positive and finite. Got {sigma!r} instead.")
