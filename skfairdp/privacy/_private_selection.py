"""Private selection: run a private release a secret, random number of times, and show only the best run."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from skfairdp.privacy._divergences import stopping_parameter
from skfairdp.privacy._dp_accounting import DpEvent, RepeatAndSelectDpEvent
from skfairdp.privacy._noise import NoiseSource

Result = TypeVar("Result")

_SHAPES = {"logarithmic": 0.0, "half": 0.5, "geometric": 1.0, "poisson": math.inf}
_TAIL = 1e-18  # mass of the number of trials that inversion of 64 bits does not reach


@dataclass(frozen=True)
class PrivateSelection:
    """Repeat a private release a random number of times and keep the best.

    **Guarantee.** The number of trials K is drawn from the operating system and never shown; neither are the trials
    that lost. Then what comes out costs two to three trials, however many were made on average (Papernot &
    Steinke 2022, Theorems 2 and 6): showing all of them would compose. How long a selection takes tells K, and is no
    part of the guarantee.

    Parameters
    ----------
    base : DpEvent
        The cost of one trial, its score included. Trials are alike: each draws its candidate at random.
    mean : float
        Mean of K, at least 1 (1: exactly one trial).
    trial_distribution : {"logarithmic", "half", "geometric", "poisson"}, default="logarithmic"
        Of K: truncated negative binomial with shape η = 0, ½ or 1, or Poisson. The smaller η is, the less it costs and
        the more K varies. A Poisson number may be 0, and then there is no best.

    Examples
    --------
    >>> from skfairdp.privacy import GaussianDpEvent, PrivateSelection, epsilon_of
    >>> selection = PrivateSelection(GaussianDpEvent(10.0), mean=10.0)
    >>> round(epsilon_of(selection.base, 1e-5), 3), round(epsilon_of(selection.event, 1e-5), 3)
    (0.341, 0.694)
    """

    base: DpEvent
    mean: float
    trial_distribution: str = "logarithmic"

    def __post_init__(self) -> None:
        if self.trial_distribution not in _SHAPES:
            raise ValueError(
                f"trial_distribution of PrivateSelection must be one of {tuple(_SHAPES)}. Got "
                f"{self.trial_distribution!r} instead."
            )
        if not (self.mean >= 1 and math.isfinite(self.mean)):
            raise ValueError(f"mean of PrivateSelection must be at least 1 and finite. Got {self.mean!r} instead.")

    @property
    def event(self) -> DpEvent:
        """The best trial, alone."""
        if self.mean == 1 and self.trial_distribution != "poisson":
            return self.base
        return RepeatAndSelectDpEvent(self.base, float(self.mean), _SHAPES[self.trial_distribution])

    def probabilities(self) -> NDArray[np.float64]:
        """Return P[K = k] for the number of trials K.

        Returns
        -------
        ndarray of shape (n_values,)
            For k = 0, 1, ..., up to a tail below 1e-18.
        """
        shape = _SHAPES[self.trial_distribution]
        if self.trial_distribution == "poisson":
            k = np.arange(0, math.ceil(self.mean + 12 * math.sqrt(self.mean) + 60))
            mass: NDArray[np.float64] = np.exp(k * math.log(self.mean) - self.mean - gammaln(k + 1))
            return mass
        if self.mean == 1:
            return np.array([0.0, 1.0])
        gamma = stopping_parameter(self.mean, shape)
        k = np.arange(1, math.ceil(math.log(_TAIL * gamma) / math.log1p(-gamma)) + 2)
        log_mass = k * math.log1p(-gamma)
        if shape == 0:
            log_mass -= np.log(k) + math.log(math.log(1 / gamma))
        else:
            log_mass += gammaln(k + shape) - gammaln(shape) - gammaln(k + 1) - math.log(gamma**-shape - 1)
        return np.concatenate([[0.0], np.exp(log_mass)])

    def draw(self, source: NoiseSource, size: int = 1) -> NDArray[np.int64]:
        """Draw numbers of trials, by inversion of 64 secret bits each.

        Parameters
        ----------
        source : NoiseSource
            Of the secret bits.
        size : int, default=1
            How many numbers.

        Returns
        -------
        ndarray of int of shape (size,)
            Private: never to be logged.
        """
        beyond = np.cumsum(self.probabilities()[::-1])[::-1]  # P[K ≥ k], summed from its small end
        uniform = (source.words(size).astype(np.float64) + 0.5) * 2.0**-64
        # K is the largest k with P[K ≥ k] ≥ U.
        first_below = np.searchsorted(-beyond, -np.minimum(uniform, beyond[0]), side="right")
        return np.asarray(first_below - 1, dtype=np.int64)

    def select(
        self, trial: Callable[[], tuple[float | tuple[float, ...], Result]], source: NoiseSource
    ) -> Result | None:
        """Make a secret number of trials and return the result of the one with the best score.

        Parameters
        ----------
        trial : callable
            Makes one trial and returns its score (more is better; NaN loses; of a tuple the first number that differs
            decides) and its result. Its candidate, its noise and everything else random in it must be drawn afresh.
        source : NoiseSource
            Of the number of trials.

        Returns
        -------
        result, or None where no trial was made
            Of equal scores, the first.
        """
        best: tuple[list[float], Result] | None = None
        with source.selecting(self) as begin:
            for _ in range(int(self.draw(source)[0])):
                begin()
                score, result = trial()
                numbers = score if isinstance(score, tuple) else (score,)
                known = [-math.inf if math.isnan(number) else number for number in numbers]
                if best is None or known > best[0]:
                    best = (known, result)
        return None if best is None else best[1]
