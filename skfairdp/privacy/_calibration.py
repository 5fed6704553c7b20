"""From a target ε to noise: the answer never costs more than was asked for."""

import math
from collections.abc import Callable
from functools import partial

from skfairdp.privacy._accountants import epsilon_of, quick_epsilon_of
from skfairdp.privacy._dp_accounting import DpEvent
from skfairdp.privacy._gdp import _check_delta

__all__ = ["calibrate_noise"]


def calibrate_noise(
    event_at: Callable[[float], DpEvent],
    epsilon: float,
    delta: float,
    *,
    guess: float = 1.0,
    rtol: float = 1e-3,
    max_noise: float = 1e9,
) -> float:
    """Smallest noise whose event costs at most ``epsilon``, rounded towards more noise.

    Parameters
    ----------
    event_at : callable
        Noise → event, the cost falling as the noise grows.
    epsilon : float
        Target, greater than 0; inf returns 0 noise.
    delta : float
        In (0, 1).
    guess : float, default=1.0
        Where to start looking, for example the answer of a cheaper bound.
    rtol : float, default=1e-3
        Stop within this share of the smallest such noise, or of the target. What is lost is utility, never privacy:
        the point returned has been evaluated, and its ε is at most the target.
    max_noise : float, default=1e9
        Give up beyond this.

    Returns
    -------
    noise : float
        The smallest that was found to meet the budget.

    Raises
    ------
    ValueError
        No noise below ``max_noise`` meets the target.

    Examples
    --------
    >>> from skfairdp.privacy import GaussianDpEvent, calibrate_noise, epsilon_of, repeat
    >>> noise = calibrate_noise(lambda s: repeat(GaussianDpEvent(s), 100), epsilon=1.0, delta=1e-5)
    >>> epsilon_of(repeat(GaussianDpEvent(noise), 100), 1e-5) <= 1.0
    True
    """
    _check_delta(delta)
    if not epsilon > 0:
        raise ValueError(f"epsilon must be a float in the range (0.0, inf]. Got {epsilon!r} instead.")
    if math.isinf(epsilon):
        return 0.0

    # Nearly all of the way on the cheaper bound; what is returned has been evaluated on the one that is reported.
    for epsilon_at, width in ((quick_epsilon_of, rtol / 4), (epsilon_of, rtol)):
        guess = _search(partial(_excess, epsilon_at, event_at, epsilon, delta), guess, width, max_noise)
        if guess > max_noise:
            raise ValueError(
                f"No noise up to {max_noise:g} brings epsilon down to {epsilon:g} at delta={delta:g}. "
                "Plan fewer releases, or raise epsilon or delta."
            )
    return guess


def _excess(
    epsilon_at: Callable[[DpEvent, float], float],
    event_at: Callable[[float], DpEvent],
    epsilon: float,
    delta: float,
    noise: float,
) -> float:
    return (epsilon_at(event_at(noise), delta) - epsilon) / epsilon  # a quotient could round an excess to 0


def _search(excess: Callable[[float], float], guess: float, rtol: float, max_noise: float) -> float:
    """Smallest noise with ``excess(noise) <= 0``, up to ``rtol`` of it or of ε; inf beyond ``max_noise``."""
    high = guess
    high_excess = excess(high)
    step = 1.02 if abs(high_excess) < 0.02 else 1.1  # a bad guess is left behind in doubling strides
    if -rtol <= high_excess <= 0:
        return high
    if high_excess > 0:
        while high_excess > 0:
            low, low_excess = high, high_excess
            high *= step
            step *= step
            if high > max_noise:
                return math.inf
            high_excess = excess(high)
    else:
        low, low_excess = high, high_excess
        while low_excess <= 0:
            high, high_excess = low, low_excess
            low /= step
            step *= step
            if low < 1e-9:
                return high
            low_excess = excess(low)
    # False position in logarithms needs few evaluations of a smooth curve; bisection guards it.
    for iteration in range(60):
        if high <= low * (1 + rtol) or high_excess >= -rtol:
            break
        if iteration % 3 < 2 and math.isfinite(low_excess):
            share = low_excess / (low_excess - high_excess) if low_excess > high_excess else 0.5
            share = min(max(share, 0.02), 0.98)
        else:
            share = 0.5
        middle = low * (high / low) ** share
        middle_excess = excess(middle)
        if middle_excess <= 0:
            high, high_excess = middle, middle_excess
        else:
            low, low_excess = middle, middle_excess
    return high
