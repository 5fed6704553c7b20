"""What a release is going to carry, told from public numbers before anything is spent: rows, teachers, classes, ε."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

from skfairdp.privacy import gdp_mu

__all__ = [
    "CLEAR",
    "FREE_MU",
    "HOPELESS",
    "VoteForecast",
    "gradient_noise",
    "moved_by_one",
    "smallest",
    "usual_teachers",
    "variance_of_shares",
]

# With fewer rows a logistic regression says little more than which class is the larger one in its part.
ROWS_PER_TEACHER = 8
ROWS_PER_CLASS = 3
MOST_TEACHERS = 1000
# Of logistic tables with known rates (tests/test_forecast.py): half of it or half as much again is about as good.
TEACHERS_PER_ROOT = 4.5
#: Noise in the mean share of a class below which what is learned from votes needs no second look.
CLEAR = 0.04
#: Noise above which no look can tell it from luck. So few rows agree by chance, and all teachers with them: votes kept
#: aside confirm what no other row does. Of made-up tables whose features say much, little or nothing, students above
#: .07 were seldom ahead of the most frequent class, and behind it more often.
HOPELESS = 0.07
#: And with more to spend than ``FREE_MU`` (ε = 4.4 at δ = 1e-5): what few rows say by chance is learned without privacy
#: too, and noise alone is what a student is looked at for.
HOPELESS_AT_EASE, FREE_MU = 0.25, 1.0
_mu = lru_cache(maxsize=1024)(gdp_mu)  # what would do is found by asking for many rows at one ε


def usual_teachers(n_rows: int, *, n_values: int, epsilon: float, delta: float) -> int:
    """How many disjoint parts to make of the rows: as many as balance the noise against what a part can learn.

    A student of d features is wrong by noise of standard deviation about ``Δ √d / (μ k)`` in the shares of k teachers,
    however many rows are asked about: more queries need more noise each. A teacher of ``n / k`` rows is itself wrong by
    a variance of about ``d k / n``, which turns shares towards the larger class. The sum ``Δ² d / (μ k)² + c d k / n``
    is smallest where k is proportional to the cube root of ``n (Δ / μ)²``; the number of features cancels. Every
    teacher keeps enough rows to see the classes.

    Parameters
    ----------
    n_rows : int
    n_values : int
        Classes or groups that teachers vote on.
    epsilon, delta : float
        Of the votes.

    Returns
    -------
    n_teachers : int
        At least 1. A function of public numbers.

    Examples
    --------
    >>> from skfairdp._forecast import usual_teachers
    >>> usual_teachers(32_000, n_values=2, epsilon=1.0, delta=1e-5)  # about 90 rows each
    343
    >>> usual_teachers(32_000, n_values=2, epsilon=8.0, delta=1e-5)  # less noise: fewer, wiser teachers
    101
    >>> usual_teachers(400, n_values=2, epsilon=1.0, delta=1e-5)
    50
    """
    least = max(ROWS_PER_TEACHER, ROWS_PER_CLASS * n_values)
    noise = moved_by_one(n_values) / _mu(epsilon, delta)
    balanced = TEACHERS_PER_ROOT * (n_rows * noise**2) ** (1 / 3)
    return int(max(1, min(balanced, n_rows // least, MOST_TEACHERS)))


def variance_of_shares(n_features: int, *, n_rows: int, n_teachers: int, noise_std: float, n_queries: int) -> float:
    """How far off a student's shares are: by the noise of the votes, and by what a teacher of few rows does not learn.

    The sum that :func:`usual_teachers` makes smallest, ``d s² / q + c d k / n`` with its constant c.

    Parameters
    ----------
    n_features, n_rows, n_teachers, n_queries : int
    noise_std : float
        Of one released share.

    Returns
    -------
    variance : float
        A function of public numbers.

    Examples
    --------
    >>> from skfairdp._forecast import variance_of_shares
    >>> round(variance_of_shares(14, n_rows=32_000, n_teachers=343, noise_std=1.0, n_queries=2000), 4)
    0.0103
    """
    learnt_too_little = 2.0 / TEACHERS_PER_ROOT**3  # so that the cube root is where the sum is smallest
    return n_features * (noise_std**2 / max(n_queries, 1) + learnt_too_little * n_teachers / n_rows)


def gradient_noise(n_rows: int, n_features: int, *, epsilon: float, delta: float) -> float:
    """Noise that DP-SGD of so many features has at best beside its signal, whatever its steps and batches are.

    All steps together tell the mean of clipped gradients with noise of standard deviation ``C / (μ n)`` in every
    direction, where gradients have a norm of up to C. A linear rule of d features is moved by ``√d`` of it. On logistic
    tables it may end below the most frequent class from about .07 on.

    Parameters
    ----------
    n_rows, n_features : int
    epsilon, delta : float

    Examples
    --------
    >>> from skfairdp._forecast import gradient_noise
    >>> round(gradient_noise(400, 100, epsilon=0.5, delta=1e-5), 2)
    0.18
    >>> round(gradient_noise(400, 6, epsilon=1.0, delta=1e-5), 2)
    0.02
    """
    return math.sqrt(n_features) / (gdp_mu(epsilon, delta) * n_rows)


def moved_by_one(n_values: int) -> float:
    """How far one changed vote moves a histogram: with two values one count says all, as in ``NoisyVotes``."""
    return 1.0 if n_values <= 2 else math.sqrt(2.0)


@dataclass(frozen=True)
class VoteForecast:
    """What votes are going to tell, by public numbers alone.

    Parameters
    ----------
    n_rows, n_values : int
        Private rows, and what is voted on.
    epsilon, delta : float
        Of the fit.
    n_teachers : int or None, default=None
        None: as many as :func:`usual_teachers` says, also where there were more rows.
    share : float, default=1.0
        What the votes get of the squared cost.

    Examples
    --------
    >>> from skfairdp._forecast import VoteForecast
    >>> forecast = VoteForecast(400, 2, epsilon=0.5, delta=1e-5)
    >>> round(forecast.noise, 2)
    0.14
    >>> forecast.enough_rows(0.04), forecast.enough_epsilon(0.04)
    (1500, 2.0)
    """

    n_rows: int
    n_values: int
    epsilon: float
    delta: float
    n_teachers: int | None = None
    share: float = 1.0

    @property
    def mu(self) -> float:
        """Gaussian cost of the votes."""
        return math.sqrt(self.share) * _mu(self.epsilon, self.delta)

    @property
    def noise(self) -> float:
        """Standard deviation of the noise in the mean share of a value.

        However many rows are asked about: more of them need more noise each.
        """
        teachers = self.n_teachers or usual_teachers(
            self.n_rows, n_values=self.n_values, epsilon=self.epsilon, delta=self.delta
        )
        return moved_by_one(self.n_values) / (self.mu * teachers)

    @property
    def is_hopeless(self) -> bool:
        """Whether no look at a student could tell what it learned from luck."""
        return self.noise > (HOPELESS if _mu(self.epsilon, self.delta) <= FREE_MU else HOPELESS_AT_EASE)

    def enough_rows(self, noise: float) -> int | None:
        """Rows by which the noise is down to so much, to two digits; None where more rows do not help."""
        if self.n_teachers is not None:
            return None
        found = smallest(lambda rows: replace(self, n_rows=int(rows)).noise <= noise, float(self.n_rows), 1e8)
        return None if found is None else int(found)

    def enough_epsilon(self, noise: float) -> float | None:
        """The ε by which the noise is down to so much, to two digits; None beyond 1000."""
        return smallest(lambda epsilon: replace(self, epsilon=epsilon).noise <= noise, self.epsilon, 1e3)


def smallest(enough: Callable[[float], bool], start: float, most: float) -> float | None:
    """Return the smallest number of two digits, from ``start`` up to ``most``, that is enough; None where none is."""
    step = 10.0 ** (math.floor(math.log10(start)) - 1)
    value = math.ceil(start / step) * step
    while value <= most:
        if enough(value):
            return float(f"{value:.2g}")
        value += step
        if value >= 99.5 * step:
            step *= 10
    return None
