"""Rényi divergences of Poisson-sampled Gaussian releases, by quadrature of the dominating pair."""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from skfairdp.privacy._dp_accounting import PoissonSampledDpEvent
from skfairdp.privacy._events import ReplaceSampledGaussian

__all__ = ["sampled_gaussian_rdp"]

_LARGEST_ORDER = 256.0  # beyond it a divergence is taken as infinite, which is no less than it is
_STEPS = 8  # nodes per noise standard deviation: the error of the trapezoidal rule falls faster than geometrically
_UP = 1 + 1e-9  # above the error of the rule
_UNIT = 2.0**-53
_MOST_NOISE = 1e9  # more is taken for that, which costs no less
_MOST_NODES = 1_000_000  # with noise so small that more were needed, a divergence is taken as infinite too


def sampled_gaussian_rdp(
    event: PoissonSampledDpEvent | ReplaceSampledGaussian, orders: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Rényi divergence of one release at each order.

    Records that come and go: between a mixture and the Gaussian without the record, the larger of the two directions
    (Mironov, Talwar & Zhang 2019, Theorem 5). Records that change: between the mixtures with means 1 and -1, which
    dominate every pair of contributions of norm 1 (the theorem in ``_replace_sampled``, D = 2c), whatever
    ``difference`` says.
    """
    replaced = isinstance(event, ReplaceSampledGaussian)
    noise = event.noise_multiplier if replaced else event.event.noise_multiplier
    if not noise > 0:
        return np.full(len(orders), np.inf)
    noise = min(noise, _MOST_NOISE)
    return np.array([_divergence(event.sampling_probability, noise, replaced, float(order)) for order in orders])


@lru_cache(maxsize=4096)
def _divergence(q: float, noise: float, replaced: bool, order: float) -> float:
    step = noise / _STEPS
    if order > _LARGEST_ORDER or 2 * order + 30 * noise > _MOST_NODES * step:
        return np.inf
    # The integrand peaks between the means and what the order extrapolates from them.
    x = np.arange(-2.0 - 14 * noise, 2 * order + 1.0 + 14 * noise, step)

    def mixture(mean: float) -> NDArray[np.float64]:
        with np.errstate(divide="ignore"):
            parts = np.stack([-(x**2) / (2 * noise**2), -((x - mean) ** 2) / (2 * noise**2)])
            return logsumexp(parts, axis=0, b=np.array([[1 - q], [q]]))

    other = mixture(-1.0) if replaced else -(x**2) / (2 * noise**2)
    mixed = mixture(1.0)
    exponent = order * mixed + (1 - order) * other
    total = logsumexp(exponent)
    # Rounding: of every exponent relative to what it is the difference of, weighed as the terms are; of the sum itself.
    weights = np.exp(exponent - total)
    terms = order * np.abs(mixed) + (order - 1) * np.abs(other)
    rounding = _UNIT * (64 + 16 * float(weights @ np.where(np.isfinite(terms), terms, 0.0)))
    integral = float(total) + math.log(step / (noise * math.sqrt(2 * math.pi)))
    return (max(0.0, integral) * _UP + rounding) / (order - 1)
