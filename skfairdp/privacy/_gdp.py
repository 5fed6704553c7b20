"""Exact accounting of Gaussian releases (Gaussian differential privacy) and its adaptive filter.

Figures are rounded outward: δ and ε up, μ down. ``log_ndtr`` is wrong by at most 5 units in the last place for negative
arguments and by 2 units of 1 for positive ones (17,000 points against 60 digits); the margins below are six times that.
"""

import math
from fractions import Fraction

from scipy.optimize import brentq
from scipy.special import log_ndtr

from skfairdp.exceptions import BudgetExceededError

_UNIT = 2.0**-53  # largest relative error of one rounding
_SLACK = 2.0**-44  # what gdp_mu leaves for the roundings between it and the event: noise, its square, their sum


def gdp_delta(epsilon: float, mu: float) -> float:
    """Smallest δ at which a μ-GDP release is (ε, δ)-private, rounded up.

    ``Φ(-ε/μ + μ/2) - e^ε Φ(-ε/μ - μ/2)``, evaluated in logarithms (Dong, Roth & Su 2022, Corollary 2.13).

    Parameters
    ----------
    epsilon : float
        Any real number.
    mu : float
        At least 0: root of the sum of (sensitivity / noise standard deviation)² over all releases.

    Returns
    -------
    delta : float
        In [0, 1].

    Examples
    --------
    >>> from skfairdp.privacy import gdp_delta
    >>> round(gdp_delta(1.993091, 0.5), 9)
    1e-05
    """
    if math.isnan(epsilon) or not mu >= 0:
        raise ValueError(f"epsilon must be a number and mu at least 0. Got {epsilon!r} and {mu!r} instead.")
    if mu == 0:
        return max(0.0, -math.expm1(min(epsilon, 0.0)))
    if math.isinf(mu):
        return 1.0
    if math.isinf(epsilon):
        return 0.0 if epsilon > 0 else 1.0
    return _delta_above(epsilon, mu)


def _delta_above(epsilon: float, mu: float, margins: int = 1) -> float:
    """δ, raised by so many times what its arithmetic may be wrong by. One margin is above the truth, and up to two
    margins above it; three are above whatever one may come to, for all smaller μ and larger ε too."""
    upper, upper_error = _log_ndtr(-epsilon / mu, mu / 2)
    if upper == -math.inf:
        return math.ulp(0.0)  # below every float, and not 0
    log_lower, lower_error = _log_ndtr(-epsilon / mu, -mu / 2)
    lower = epsilon + log_lower
    lower_error += 2 * _UNIT * (abs(epsilon) + abs(log_lower))
    # At most 0 but for rounding, which expm1 would blow up where ε is large.
    gap = min(lower - upper, 0.0) - margins * (upper_error + lower_error)
    delta = math.exp(min(upper + margins * upper_error, 0.0)) * -math.expm1(gap) * (1 + margins * 8 * _UNIT)
    return min(math.nextafter(delta, 1.0), 1.0)


def _log_ndtr(first: float, second: float) -> tuple[float, float]:
    """Logarithm of Φ(first + second) and a bound of its error, that of the argument included."""
    x = first + second
    value = float(log_ndtr(x))
    slope = max(-x, 0.0) + 1  # no less than the derivative φ(x)/Φ(x)
    return value, _UNIT * (32 * abs(value) + 16 + 4 * slope * (abs(first) + abs(second)))


def gdp_epsilon(mu: float, delta: float) -> float:
    """Smallest ε ≥ 0 at which a μ-GDP release is (ε, δ)-private, rounded up.

    Parameters
    ----------
    mu : float
        At least 0.
    delta : float
        In (0, 1).

    Returns
    -------
    epsilon : float
        At least 0.

    Examples
    --------
    >>> from skfairdp.privacy import gdp_epsilon
    >>> round(gdp_epsilon(0.5, 1e-5), 6)
    1.993091
    """
    _check_delta(delta)
    if not mu >= 0:
        raise ValueError(f"mu must be at least 0. Got {mu!r} instead.")
    if math.isinf(mu):
        return math.inf
    if gdp_delta(0.0, mu) <= delta:
        return 0.0
    high = 1.0
    while gdp_delta(high, mu) > delta:
        high *= 2
    root = float(brentq(lambda e: gdp_delta(e, mu) - delta, 0.0, high, xtol=1e-30, rtol=1e-14, maxiter=1000))
    # The root lies within the solver's tolerance on either side; the printed figure has to lie above it.
    step = math.ulp(root)
    while gdp_delta(root, mu) > delta:
        root, step = root + step, 2 * step
    return root


def gdp_mu(epsilon: float, delta: float) -> float:
    """Largest μ whose release is (ε, δ)-private, rounded down.

    It leaves room for a few roundings: noise computed from it in floating point costs at most ``epsilon`` when
    :func:`epsilon_of` adds it up again.

    Parameters
    ----------
    epsilon : float
        At least 0.
    delta : float
        In (0, 1).

    Returns
    -------
    mu : float
        At least 0.

    Examples
    --------
    >>> from skfairdp.privacy import gdp_mu
    >>> round(gdp_mu(1.0, 1e-5), 6)
    0.268051
    """
    _check_delta(delta)
    if not epsilon >= 0:
        raise ValueError(f"epsilon must be at least 0. Got {epsilon!r} instead.")
    if math.isinf(epsilon):
        return math.inf
    target = epsilon / (1 + _SLACK)  # gdp_epsilon finds its root within the solver's tolerance
    high = 1.0
    while _delta_above(target, high, 3) <= delta:
        high *= 2

    def excess(mu: float) -> float:
        return (_delta_above(target, mu, 3) if mu > 0 else 0.0) - delta

    root = float(brentq(excess, 0.0, high, xtol=1e-30, rtol=1e-14, maxiter=1000))
    root /= 1 + _SLACK
    # Judged by the function that will print ε, so that calibrating and printing can never disagree.
    step = math.ulp(root)
    while root > 0 and gdp_epsilon(root * (1 + _SLACK), delta) > epsilon:
        root, step = max(root - step, 0.0), 2 * step
    return root


def _check_delta(delta: float) -> None:
    if not 0 < delta < 1:
        raise ValueError(f"delta must be a float in the range (0.0, 1.0). Got {delta!r} instead.")


class GDPFilter:
    """Stops an adaptive sequence of Gaussian releases before it exceeds a fixed μ. If the squared costs, each allowed
    to depend on earlier *outputs*, never sum to more than μ², the whole interaction is μ-GDP (Smith & Thakurta 2022).
    What is certified is the cap μ, never the sum actually spent."""

    def __init__(self, mu: float) -> None:
        if not 0 < mu < math.inf:
            raise ValueError(f"The 'mu' parameter of GDPFilter must be positive and finite. Got {mu!r} instead.")
        self.mu = float(mu)
        # Exact rationals: a sum of floats could pass the cap by a rounding error.
        self._cap = Fraction(self.mu) ** 2
        self._spent = Fraction(0)

    @property
    def remaining(self) -> float:
        """What is left of μ²."""
        return float(self._cap - self._spent)

    def fits(self, mu_squared: float) -> bool:
        """Whether a release of this squared cost may still be made."""
        return 0 <= mu_squared < math.inf and self._spent + Fraction(mu_squared) <= self._cap

    def spend(self, mu_squared: float) -> None:
        """Charge a release, before it is made."""
        if not mu_squared >= 0:
            raise ValueError(f"A squared cost must be at least 0. Got {mu_squared!r} instead.")
        if not self.fits(mu_squared):
            raise BudgetExceededError(
                "This release does not fit into what is left of the Gaussian budget; nothing was released. "
                "Raise epsilon, or plan fewer or noisier releases."
            )
        self._spent += Fraction(mu_squared)
