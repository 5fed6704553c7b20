"""Hockey-stick curve of a Poisson-sampled Gaussian whose neighbours replace a contribution.

With contributions u, v of norm at most c and at most D apart, and noise s, the neighbours' outputs are
P = (1-q) N(0, s²) + q N(u, s²) and Q, the same with v. For g ≥ 1, with g' = 1 + (g-1)/q and b = g/g':

    H_g(P || Q) ≤ q sup_t [ Φ(t) - g' ((1-b) Φ(t - c/s) + b Φ(t - D/s)) ]

(Advanced joint convexity of Balle, Barthe & Gaboardi 2018, then the Neyman-Pearson lemma for N(u) against each part of
the mixture.) The rest of the sample is a common shift. Where D = 2c, u = c and v = -c attain it.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from skfairdp.privacy._events import ReplaceSampledGaussian

__all__ = ["largest_loss", "replace_sampled_deltas"]


def replace_sampled_deltas(event: ReplaceSampledGaussian, losses: NDArray[np.float64]) -> NDArray[np.float64]:
    """The bound above at g = exp(losses); for g < 1 by symmetry, H_g(P || Q) = 1 - g + g H_{1/g}(Q || P)."""
    upper = _upper(event, np.abs(losses))
    return np.where(losses >= 0, upper, -np.expm1(np.minimum(losses, 0)) + np.exp(np.minimum(losses, 0)) * upper)


def largest_loss(event: ReplaceSampledGaussian, tail: float = 1e-17) -> float:
    """A loss beyond which the curve stays below ``tail``."""
    high = 1.0
    while _upper(event, np.array([high]))[0] > tail and high < 600:
        high *= 1.25
    return high


def _upper(event: ReplaceSampledGaussian, losses: NDArray[np.float64]) -> NDArray[np.float64]:
    q, near, far = event.sampling_probability, 1 / event.noise_multiplier, event.difference / event.noise_multiplier
    scale = 1 + np.expm1(losses) / q  # g'
    share = np.exp(losses) / scale  # b

    def excess(t: NDArray[np.float64]) -> NDArray[np.float64]:
        # Both exponents rise with t: the bracket of the bound rises up to the root of this and falls after it.
        parts = np.logaddexp(
            np.log1p(-np.minimum(share, 1 - 1e-300)) + near * t - near**2 / 2, np.log(share) + far * t - far**2 / 2
        )
        return parts + np.log(scale)

    low = np.full(len(losses), -1e3 - 1e3 / min(near, far))
    high = np.full(len(losses), max(near, far) + 1.0)
    with np.errstate(divide="ignore"):
        for _ in range(80):
            middle = (low + high) / 2
            above = excess(middle) > 0
            low, high = np.where(above, low, middle), np.where(above, middle, high)
    t = (low + high) / 2
    inside = ndtr(t) - scale * ((1 - share) * ndtr(t - near) + share * ndtr(t - far))
    rounding = 4 * np.finfo(float).eps * ndtr(t)  # of the subtraction, charged to us
    return np.clip(q * (inside + rounding), 0.0, 1.0)
