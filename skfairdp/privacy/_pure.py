"""Releases with a pure ε: exact ratios of probabilities, and the Rényi divergences that follow from them."""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from skfairdp.privacy._dp_accounting import DpEvent, LaplaceDpEvent, RandomizedResponseDpEvent

__all__ = ["laplace_rdp", "pure_epsilon", "randomized_response_rdp"]

_UP = 1 + 2.0**-49  # above the rounding errors of the expressions below, and of a sum of them
_ABSOLUTE = 2.0**-49  # the same of a logarithm of a sum near 1


def pure_epsilon(event: DpEvent) -> float | None:
    """ε of one release at δ = 0, rounded up; None where the event is no release with a pure ε of its own."""
    if isinstance(event, RandomizedResponseDpEvent):
        p, k = event.noise_parameter, event.num_buckets
        if k == 1 or p == 1:
            return 0.0
        return math.log1p(k * (1 - p) / p) * _UP if p > 0 else math.inf
    if isinstance(event, LaplaceDpEvent):
        return _UP / event.noise_multiplier if event.noise_multiplier > 0 else math.inf
    return None


def randomized_response_rdp(event: RandomizedResponseDpEvent, orders: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rényi divergence between the answers to two values, rounded up: any two are alike."""
    p, k = event.noise_parameter, event.num_buckets
    if k == 1 or p == 1:
        return np.zeros(len(orders))
    if p == 0:
        return np.full(len(orders), np.inf)
    truth, lie = math.log1p(-p * (k - 1) / k), math.log(p / k)
    # Logarithms are negative: nearer 0 where they are added, further from it where they are taken away.
    terms = [
        orders * truth / _UP + (1 - orders) * lie * _UP,
        orders * lie / _UP + (1 - orders) * truth * _UP,
    ]
    if k > 2:
        terms.append(np.full(len(orders), math.log(k - 2) + lie / _UP))
    return (np.maximum(logsumexp(terms, axis=0), 0.0) + _ABSOLUTE) * _UP / (orders - 1)


def laplace_rdp(event: LaplaceDpEvent, orders: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rényi divergence of the Laplace mechanism with unit sensitivity, rounded up (Mironov 2017, Proposition 6)."""
    b = event.noise_multiplier
    if b == 0:
        return np.full(len(orders), np.inf)
    with np.errstate(over="ignore"):
        far = np.log(orders / (2 * orders - 1)) + (orders - 1) / b * _UP
        near = np.log((orders - 1) / (2 * orders - 1)) - orders / b / _UP
        return (np.maximum(np.logaddexp(far, near), 0.0) + _ABSOLUTE) * _UP / (orders - 1)
