"""Data-dependent Rényi bounds for GNMax (Papernot et al. 2018, "Scalable Private Learning with PATE").

They bound the Rényi divergence at the votes that were cast and at no others, so they are themselves private:
good for a diagnostic, never for a certified ε and never for stopping.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr

__all__ = ["data_dependent_rdp", "log_q"]

Array = NDArray[np.float64]

# Values of one block of queries x orders: 100 kB, which stays in a core's second-level cache.
_BLOCK = 12_800
# exp overflows just above 709; below this no element of a block can.
_EXP_SAFE = 700.0


def log_q(votes: ArrayLike, sigma: float) -> Array:
    """Bound the log probability that GNMax does not answer with the plurality.

    ``q = sum over the other classes j of erfc((n_max - n_j) / (2 sigma)) / 2`` (a union bound, Proposition
    7), capped at ``1 - 1/K``, all in logarithms.

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
    array([-9.183817, -0.721756])
    """
    votes = np.atleast_2d(np.asarray(votes))
    numeric = votes.dtype.kind in "iuf" and bool(np.isfinite(votes).all())
    if votes.ndim != 2 or votes.shape[1] == 0 or not numeric:
        raise ValueError(
            "votes must be a finite numeric array of shape (n_queries, n_classes). "
            f"Got shape {votes.shape} and type {votes.dtype} instead."
        )
    _check_sigma(sigma)
    # Small or unsigned integer types would wrap around.
    votes = votes.astype(np.float64 if votes.dtype.kind == "f" else np.int64)
    n_queries, n_classes = votes.shape
    if n_classes == 1:
        return np.full(n_queries, -np.inf)
    gaps = votes.max(axis=1, keepdims=True) - votes
    scale = math.sqrt(2.0) * sigma
    if gaps.dtype.kind == "i" and gaps.size and gaps.max() < gaps.size:
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

    Theorem 6 with the higher orders of Proposition 10 (``mu2 = sigma sqrt(log 1/q)``, ``mu1 = mu2 + 1``)
    wherever all its conditions hold, and never more than the data-independent ``order / sigma**2``.

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
    The expectation of this cost over a noisy threshold is not a Rényi bound; a query that may or may not be
    answered is charged as answered. The bound is for the argmax alone: a published histogram or a soft label
    costs the data-independent figure.

    Examples
    --------
    >>> from skfairdp.privacy import data_dependent_rdp, log_q
    >>> q = log_q([[230, 20], [126, 124]], sigma=40)
    >>> data_dependent_rdp(q, 40, [2, 10]).round(6)
    array([[3.40e-05, 5.00e-05],
           [1.25e-03, 6.25e-03]])
    """
    log_q = np.atleast_1d(np.asarray(log_q, dtype=np.float64))
    orders = np.atleast_1d(np.asarray(orders, dtype=np.float64))
    if log_q.ndim != 1 or not (log_q <= 0).all():
        raise ValueError("log_q must be one-dimensional: logarithms of probabilities, none above 0 or NaN.")
    if orders.ndim != 1 or not (orders > 1).all() or not np.isfinite(orders).all():
        raise ValueError("orders must be a one-dimensional array of finite numbers greater than 1.")
    _check_sigma(sigma)
    sigma = float(sigma)
    # Equal votes cost equally; and with both sorted, what the theorem can improve is one rectangle a block.
    levels, query = np.unique(log_q, return_inverse=True)
    by_order = np.argsort(orders, kind="stable")
    table = np.empty((levels.size, orders.size))
    table[:] = orders[by_order] / sigma**2
    table[np.isneginf(levels)] = 0.0
    _improve(table, levels, sigma, orders[by_order])
    if (by_order[1:] < by_order[:-1]).any():
        table = np.take(table, np.argsort(by_order), axis=1)
    return np.take(table, query, axis=0)


def _improve(table: Array, log_q: Array, sigma: float, orders: Array) -> None:
    """Lower ``table`` (ascending ``log_q`` x ascending orders) to Theorem 6 where its conditions hold."""
    independent = orders / sigma**2
    root = np.sqrt(-log_q)
    mu2 = sigma * root
    # All conditions on q are lower limits on mu2, so they hold for a first stretch of the sorted rows. With
    # mu2 > 1 the base of A is positive, for q exp(mu2 / sigma²) < 1 says mu2 < mu2².
    first, last = np.count_nonzero(np.isneginf(log_q)), np.count_nonzero(mu2 > 1)
    # The bound grows with q only up to q = exp((mu2-1) eps2) / (mu1/(mu1-1) mu2/(mu2-1))^mu2.
    t = mu2[first:last]
    growing = log_q[first:last] <= (t - 1) * root[first:last] / sigma - t * np.log1p(2 / (t - 1))
    rows = slice(first, first + int(np.logical_and.accumulate(growing).sum()))
    table, log_q, root, mu2 = table[rows], log_q[rows], root[rows], mu2[rows]
    # The order may not exceed mu1 = mu2 + 1.
    n_columns = np.searchsorted(orders, mu2 + 1, side="right")

    # (1-q) A^(a-1) is exp(log1q + (a-1) log_a) and q B^(a-1) is exp(log_q + (a-1) log_b). In A,
    # (q exp(eps2))^(1 - 1/mu2) is exp(-((mu2-1)/sigma)²): a form that cannot cancel.
    log1q = _log1mexp(log_q)
    log_a = log1q - _log1mexp(-np.square((mu2 - 1) / sigma))
    log_b = 2 * root / sigma + 1 / sigma**2
    offset, slope = (log_q - log1q)[:, None], (log_b - log_a)[:, None]
    log_a, log1q, above = log_a[:, None], log1q[:, None], orders - 1
    step = max(1, _BLOCK // orders.size)
    for begin in range(0, log_q.size, step):
        at = slice(begin, begin + step)
        narrow, wide = n_columns[at].min(), n_columns[at].max()
        if wide == 0:
            continue
        bound = table[at, :wide]
        np.multiply(slope[at], above[:wide], out=bound)
        bound += offset[at]
        # Linear in the order, so its largest value lies at an end.
        if bound[:, [0, -1]].max() < _EXP_SAFE:
            np.exp(bound, out=bound)
            np.log1p(bound, out=bound)
        else:
            np.logaddexp(0.0, bound, out=bound)
        bound += log1q[at]
        bound /= above[:wide]
        bound += log_a[at]
        np.clip(bound, 0.0, independent[:wide], out=bound)  # rounding can leave -1e-30 where q is tiny
        outside = np.arange(narrow, wide) >= n_columns[at, None]
        np.copyto(bound[:, narrow:], independent[narrow:wide], where=outside)


def _log1mexp(x: Array) -> Array:
    """log(1 - exp(x)) for x < 0, accurate at both ends."""
    near, far = np.maximum(x, -0.6931), np.minimum(x, -0.6931)
    return np.where(x > -0.6931, np.log(-np.expm1(near)), np.log1p(-np.exp(far)))


def _check_sigma(sigma: float) -> None:
    if not (sigma > 0 and math.isfinite(sigma)):
        raise ValueError(f"sigma must be positive and finite. Got {sigma!r} instead.")
