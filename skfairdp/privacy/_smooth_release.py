"""The release of a value with noise that follows its smooth sensitivity, and what that costs (Nissim et al. 2007)."""

import math

from skfairdp.privacy import _noise

_GRID = 2.0**-40


def smooth_sensitivity_release(value: float, scale: float) -> float:
    """Return ``value + N(0, scale²)`` on a grid that does not follow the scale, which is private here."""
    return round((value + scale * float(_noise.open_source().normal(1)[0])) / _GRID) * _GRID


def smooth_sensitivity_release_cost(order: float, beta: float, sigma: float) -> float:
    """Rényi cost of publishing a value plus ``smooth sensitivity * N(0, sigma²)`` (Theorem 23)."""
    if not (sigma > 0 and math.isfinite(sigma)):
        raise ValueError(f"sigma must be positive and finite. Got {sigma!r} instead.")
    if not (beta >= 0 and math.isfinite(beta)):
        raise ValueError(f"beta must be at least 0 and finite. Got {beta!r} instead.")
    limit = math.inf if beta == 0 else 1 / (2 * beta)
    if not 1 < order < limit:
        raise ValueError(f"order must lie in (1, 1/(2 beta)) = (1, {limit:g}). Got {order!r}; lower beta.")
    shift = order * math.exp(2 * beta) / sigma**2
    scale = (beta * order - math.log1p(-2 * order * beta) / 2) / (order - 1)
    return shift + scale
