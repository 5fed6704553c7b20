"""Exact privacy of one-bit vote releases: the worst pair of neighbouring vote counts, at every order.

A published bit reveals less than the noisy count behind it (about 2/π of its Rényi divergence). The bounds here
are suprema over all vote counts, so they depend on no data, hold under adaptive composition, and the supremum of
the hockey-stick curves is again a valid curve with a dominating pair (Zhu, Dong & Wang 2022).
"""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from skfairdp.privacy._events import ArgmaxBit, ThresholdBit

__all__ = ["bit_deltas", "bit_rdp", "max_loss"]

Array = NDArray[np.float64]

_UNIT = 2.0**-53
_LOG = 64 * _UNIT  # relative error of a log-probability: log_ndtr, its argument and the sums below, with room


def _discrete_gaussian_tails(sigma: float, low: int, high: int, *, difference: bool) -> tuple[Array, Array]:
    """Log P(N >= x) and log P(N < x) for integers x in low..high.

    N is a discrete Gaussian of scale sigma, or the difference of two independent ones. The difference's mass at x is
    exp(-x²/(4σ²)) times a theta function that depends only on the parity of x, so no convolution is needed.
    """
    spread = sigma * (math.sqrt(2) if difference else 1)
    far = max(abs(low), abs(high))
    reach = math.ceil(math.hypot(far, 10 * spread)) + 2  # beyond lies less than exp(-50) of the tail at far
    plain = reach <= 35 * spread  # no mass underflows, and plain sums (of small numbers first) will do
    x = np.arange(-reach, reach + 1)
    if difference:
        y = np.arange(-math.ceil(8 * sigma) - 1, math.ceil(8 * sigma) + 2)
        even = np.log(np.exp(-((y / sigma) ** 2)).sum())
        odd = np.log(np.exp(-(((y - 0.5) / sigma) ** 2)).sum())
        log_mass = -((x / (2 * sigma)) ** 2) + np.where(x % 2 == 0, even, odd)
    else:
        log_mass = -((x / sigma) ** 2) / 2
    at = np.arange(low, high + 1) + reach
    if plain:
        mass = np.exp(log_mass)
        from_below = mass.cumsum()
        total = math.log(from_below[-1])
        return np.log(mass[::-1].cumsum()[::-1][at]) - total, np.log(from_below[at - 1]) - total
    from_above = np.logaddexp.accumulate(log_mass[::-1])[::-1]
    from_below = np.logaddexp.accumulate(log_mass)
    total = from_below[-1]
    return from_above[at] - total, from_below[at - 1] - total


@lru_cache(maxsize=256)
def _worst_pairs(event: ThresholdBit | ArgmaxBit) -> tuple[Array, Array, Array, Array]:
    """Log P(1), log P(0) on one vote count and on its neighbour, for all ordered neighbouring pairs."""
    with np.errstate(over="ignore", divide="ignore"):
        return _tables(event, int(event.n_teachers))


def _tables(event: ThresholdBit | ArgmaxBit, n: int) -> tuple[Array, Array, Array, Array]:
    if isinstance(event, ThresholdBit):
        steps = [1]
        votes = np.arange(n + 1)
        if event.noise == "gaussian":
            z = (votes - event.threshold) / event.sigma
            log_one, log_zero = log_ndtr(z), log_ndtr(-z)
        else:  # integer noise: votes + N >= T exactly when N >= ceil(T) - votes
            needed = math.ceil(event.threshold) - votes
            one, zero = _discrete_gaussian_tails(event.sigma, int(needed.min()), int(needed.max()), difference=False)
            log_one, log_zero = one[needed - needed.min()], zero[needed - needed.min()]
    else:
        # The difference second - first. All n votes on the two classes: it has the parity of n and moves by 2.
        steps = [1, 2] if event.restricted else [1]
        difference = np.arange(-n, n + 1, 1 if event.restricted else 2)
        if event.noise == "gaussian":
            z = difference / (math.sqrt(2) * event.sigma)
            log_one, log_zero = log_ndtr(z), log_ndtr(-z)
        else:  # ties go to the first class: the second wins exactly when N2 - N1 >= 1 - difference
            needed = 1 - difference
            one, zero = _discrete_gaussian_tails(event.sigma, int(needed.min()), int(needed.max()), difference=True)
            log_one, log_zero = one[needed - needed.min()], zero[needed - needed.min()]
    pairs = []
    for step in steps:
        here, there = slice(0, -step), slice(step, None)
        for left, right in ((here, there), (there, here)):
            pairs.append((log_one[left], log_zero[left], log_one[right], log_zero[right]))
    p1, p0, q1, q0 = (np.concatenate(column) for column in zip(*pairs, strict=True))
    for array in (p1, p0, q1, q0):
        array.setflags(write=False)  # cached: a caller must not change it
    return p1, p0, q1, q0


def bit_rdp(event: ThresholdBit | ArgmaxBit, orders: Array) -> Array:
    """Rényi divergence of the bit at every order, maximised over all neighbouring vote counts.

    Parameters
    ----------
    event : ThresholdBit or ArgmaxBit
    orders : ndarray of shape (n_orders,)
        Each greater than 1.

    Returns
    -------
    ndarray of shape (n_orders,)

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.privacy import ThresholdBit, bit_rdp
    >>> bit_rdp(ThresholdBit(250, 200, 150), np.array([8.0])).round(9)
    array([0.00011318])
    """
    # Rounded up: every term of the moment falls with p's error and grows with q's.
    p1, p0, q1, q0 = (column[:, None] for column in _outward(event))
    orders = np.asarray(orders, dtype=float)
    if np.any(orders <= 1):
        raise ValueError("Rényi orders must be greater than 1.")
    out = np.empty(orders.shape)
    for start in range(0, len(orders), 64):  # blocks of orders keep the table in cache
        a = orders[None, start : start + 64]
        with np.errstate(invalid="ignore", over="ignore"):
            log_moment = np.logaddexp(a * p1 + (1 - a) * q1, a * p0 + (1 - a) * q0)
        log_moment[np.isnan(log_moment)] = np.inf  # no noise to speak of: a probability that no float holds
        out[start : start + 64] = ((log_moment + 8 * _UNIT) / (a - 1)).max(axis=0)
    return np.maximum(out, 0.0) * (1 + 8 * _UNIT)


def _outward(event: ThresholdBit | ArgmaxBit) -> tuple[Array, Array, Array, Array]:
    """The table with its errors against us: log-probabilities of the one nearer 0, of the other further from it."""
    p1, p0, q1, q0 = _worst_pairs(event)
    up = [np.minimum(log_p * (1 - _LOG) + _LOG, 0.0) for log_p in (p1, p0)]
    down = [log_q * (1 + _LOG) - _LOG for log_q in (q1, q0)]
    return up[0], up[1], down[0], down[1]


def bit_deltas(event: ThresholdBit | ArgmaxBit, epsilons: NDArray[np.floating]) -> Array:
    """Hockey-stick divergence of the bit at every ε (any sign), maximised over all neighbouring vote counts."""
    p1, p0, q1, q0 = (np.exp(column)[:, None] for column in _outward(event))
    out = np.empty(len(epsilons))
    for start in range(0, len(epsilons), 256):
        gamma = np.exp(epsilons[None, start : start + 256]) * (1 - 4 * _UNIT)
        out[start : start + 256] = (np.maximum(p1 - gamma * q1, 0) + np.maximum(p0 - gamma * q0, 0)).max(axis=0)
    return np.clip(out * (1 + 8 * _UNIT), 0.0, 1.0)


def max_loss(event: ThresholdBit | ArgmaxBit, tail_mass: float) -> float:
    """Privacy loss beyond which the bit's hockey-stick curve stays below ``tail_mass``."""
    p1, p0, q1, q0 = _worst_pairs(event)
    likely1, likely0 = p1 > math.log(tail_mass), p0 > math.log(tail_mass)
    return float(max(np.max((p1 - q1)[likely1], initial=0.0), np.max((p0 - q0)[likely0], initial=0.0)))
