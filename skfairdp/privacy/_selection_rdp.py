"""What it costs to run a private release a random number of times and to show the best (Papernot & Steinke 2022)."""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

__all__ = ["selection_rdp", "stopping_parameter"]

_UP = 1 + 2.0**-40  # above the rounding errors of the sums below, and of the root γ


def stopping_parameter(mean: float, shape: float) -> float:
    """The γ in (0, 1) at which a truncated negative binomial law of this shape η has this mean (Definition 1).

    ``E K = η (1-γ) / (γ (1-γ^η))``; for η = 0 the limit ``(1/γ - 1) / ln(1/γ)``.
    """
    if not (mean > 1 and math.isfinite(mean)):
        raise ValueError(f"The mean number of trials must be greater than 1 and finite. Got {mean!r} instead.")

    def expected(log_gamma: float) -> float:
        odds = math.expm1(-log_gamma)  # 1/γ - 1
        return odds / -log_gamma if shape == 0 else shape * odds / -math.expm1(shape * log_gamma)

    low = -1.0
    while expected(low) < mean:
        low *= 2
    return math.exp(brentq(lambda v: expected(v) - mean, low, -1e-12, xtol=1e-14, rtol=1e-14))


def selection_rdp(
    orders: NDArray[np.float64],
    rdp: NDArray[np.float64],
    mean: float,
    shape: float,
    all_orders: NDArray[np.float64] | None = None,
    all_rdp: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Rényi divergence of the best of K runs, K random and secret, from that of one run.

    Parameters
    ----------
    orders, rdp : ndarray of shape (n_orders,)
        Orders, each greater than 1, and the divergence of one run at them.
    mean : float
        Mean of K.
    shape : float
        η of the truncated negative binomial law (0 logarithmic, 1 geometric); inf is the Poisson law.
    all_orders, all_rdp : ndarray, default=None
        Where to look for the order of the constant term; None is ``orders``.

    Notes
    -----
    Theorem 2: ``r'(l) = r(l) + (1+η) min_h [(1-1/h) r(h) + ln(1/γ)/h] + ln(E K)/(l-1)``. Theorem 6 (Poisson, mean m):
    ``r'(l) = r(l) + m δ(l) + ln(m)/(l-1)``, δ(l) being that of one run at ε = ln(1 + 1/(l-1)).
    """
    if all_orders is None or all_rdp is None:
        all_orders, all_rdp = orders, rdp
    if math.isinf(shape):
        epsilons = np.log1p(1 / (orders - 1))
        return (rdp + mean * _deltas(epsilons, all_orders, all_rdp) + math.log(mean) / (orders - 1)) * _UP
    if mean == 1:
        return rdp  # one run, always
    try:
        gamma = stopping_parameter(mean, shape)
    except (ValueError, OverflowError):  # a law so extreme that no γ is found for it
        return np.full(len(orders), np.inf)
    constant = (1 + shape) * float(np.min((1 - 1 / all_orders) * all_rdp - math.log(gamma) / all_orders))
    return (rdp + constant + math.log(mean) / (orders - 1)) * _UP


def _deltas(
    epsilons: NDArray[np.float64], orders: NDArray[np.float64], rdp: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Smallest δ at each ε that the divergences prove (Canonne et al. 2020, Prop. 12; Bretagnolle & Huber 1979)."""
    usable = np.isfinite(rdp)
    orders, rdp = orders[usable], rdp[usable]
    exponents = (orders - 1) * (rdp - epsilons[:, None] + np.log1p(-1 / orders)) - np.log(orders)
    # Any divergence of an order above 1 is at least that of order 1, which bounds the total variation.
    total_variation = 0.5 * np.log(-np.expm1(-rdp.min())) if len(rdp) and rdp.min() > 0 else -np.inf
    if not len(rdp):
        return np.ones(len(epsilons))
    return np.exp(np.minimum(np.minimum(exponents.min(axis=1), total_variation), 0.0))
