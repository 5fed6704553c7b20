"""Rényi divergences of Poisson-sampled Gaussian releases, by quadrature of the dominating pair."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from skfairdp.privacy._dp_accounting import PoissonSampledDpEvent
from skfairdp.privacy._events import ReplaceSampledGaussian

__all__ = ["sampled_gaussian_rdp"]

_LARGEST_ORDER = 256.0  # beyond it a divergence is taken as infinite, which is no less than it is
_STEPS = 8  # nodes per noise standard deviation: the error of the trapezoidal rule falls faster than geometrically
_UP = 1 + 1e-9  # above its rounding


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
    return np.array([_divergence(event.sampling_probability, noise, replaced, float(order)) for order in orders])


@lru_cache(maxsize=4096)
def _divergence(q: float, noise: float, replaced: bool, order: float) -> float:
    if order > _LARGEST_ORDER:
        return np.inf
    step = noise / _STEPS
    # The integrand peaks between the means and what the order extrapolates from them.
    x = np.arange(-2.0 - 14 * noise, 2 * order + 1.0 + 14 * noise, step)

    def mixture(mean: float) -> NDArray[np.float64]:
        with np.errstate(divide="ignore"):
            parts = np.stack([-(x**2) / (2 * noise**2), -((x - mean) ** 2) / (2 * noise**2)])
            return logsumexp(parts, axis=0, b=np.array([[1 - q], [q]]))

    other = mixture(-1.0) if replaced else -(x**2) / (2 * noise**2)
    exponent = order * mixture(1.0) + (1 - order) * other
    integral = logsumexp(exponent) + np.log(step / (noise * np.sqrt(2 * np.pi)))
    return max(0.0, float(integral)) * _UP / (order - 1)
