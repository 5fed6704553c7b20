"""k-ary randomised response: probabilities, noise and event in one frozen object."""

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from skfairdp._typing import ArrayLike
from skfairdp.privacy._divergences import pure_epsilon
from skfairdp.privacy._dp_accounting import DpEvent, RandomizedResponseDpEvent
from skfairdp.privacy._noise import NoiseSource
from skfairdp.privacy._report import NeighboringRelation

_WORDS = 2**64
_SMALLEST_EPSILON = 1e-9
_MOST_VALUES = 2**16
_AT_ONCE = 2**20  # rows


@dataclass(frozen=True)
class RandomizedResponse:
    """Replace each value by itself or, with a known probability, by another one.

    Every person's answer is (ε, 0)-differentially private for that person's value, whatever the others are. The answer
    is the true value with probability ``truth`` and each other one with probability ``lie``; their ratio is at most
    e^ε, and no other channel of ratio e^ε tells the truth more often.

    Notes
    -----
    One 64-bit word decides each answer: ``ceil(2^64 p / k)`` of them stand for each of the k - 1 lies, the others for
    the truth. The probabilities are therefore ratios of integers, no floating-point comparison is made, and ``ratio``
    is rounded down. (Warner 1965; Kairouz, Oh & Viswanath 2014 for k values.)
    """

    epsilon: float
    n_values: int = 2
    relation: NeighboringRelation | None = field(default=None, kw_only=True)
    _noise_parameter: float = field(init=False, repr=False, compare=False)
    _words_per_lie: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not (self.epsilon >= _SMALLEST_EPSILON and math.isfinite(self.epsilon)):
            raise ValueError(
                f"epsilon of RandomizedResponse must be finite and at least {_SMALLEST_EPSILON}. Got {self.epsilon!r}."
            )
        k = self.n_values
        if not (2 <= k <= _MOST_VALUES and int(k) == k):
            raise ValueError(f"n_values of RandomizedResponse must be an integer in 2..{_MOST_VALUES}. Got {k!r}.")
        p = max(k * math.exp(-self.epsilon) / (1 + (k - 1) * math.exp(-self.epsilon)), k / _WORDS)
        while (pure_epsilon(RandomizedResponseDpEvent(p, k)) or 0.0) > self.epsilon:
            p = math.nextafter(p, 1.0)
        object.__setattr__(self, "_noise_parameter", p)
        object.__setattr__(self, "_words_per_lie", math.ceil(Fraction(p) * _WORDS / k))

    @property
    def event(self) -> DpEvent:
        """All answers together: a person's value reaches one of them only."""
        return RandomizedResponseDpEvent(self._noise_parameter, int(self.n_values))

    @property
    def ratio(self) -> Fraction:
        """The ratio of ``truth`` and ``lie`` as drawn, exactly."""
        return Fraction(_WORDS - (self.n_values - 1) * self._words_per_lie, self._words_per_lie)

    @property
    def lie(self) -> float:
        """Probability of each value that is not the true one."""
        return self._words_per_lie / _WORDS

    @property
    def truth(self) -> float:
        """Probability of the true value."""
        return (_WORDS - (self.n_values - 1) * self._words_per_lie) / _WORDS

    def release(self, codes: ArrayLike, source: NoiseSource) -> NDArray[np.int64]:
        """Return one answer per value."""
        released: NDArray[np.int64] = source.release(self, codes)
        return released

    def noisy(self, source: NoiseSource, codes: ArrayLike) -> NDArray[np.int64]:
        """What ``source.release`` lets out: some rows at a time, in one release."""
        codes = self._check(codes)
        blocks = [codes[start : start + _AT_ONCE] for start in range(0, len(codes), _AT_ONCE)]
        return np.concatenate([codes[:0], *(self._answers(source, block) for block in blocks)])

    def _answers(self, source: NoiseSource, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        words = source.words(len(codes))
        per_lie, lies = np.uint64(self._words_per_lie), np.uint64((self.n_values - 1) * self._words_per_lie)
        # Number r of the other values, in their order; those from the true one on are shifted past it.
        other = np.minimum(words // per_lie, np.uint64(self.n_values)).astype(np.int64)
        other += other >= codes
        return np.where(words < lies, other, codes)

    def weights(self, released: ArrayLike) -> NDArray[np.float64]:
        """Return what stands for the unknown membership: its expectation over the noise is the true one, exactly.

        The inverse of the channel, ``(1[released = a] - lie) / (truth - lie)``: signed, each row summing to 1. A sum of
        ``weights[:, a] * h`` over rows estimates the sum of h over group a without bias. Post-processing.
        """
        answers = np.eye(self.n_values)[self._check(released)]
        ratio_minus_1 = self.ratio - 1  # exact: for a small ε, truth and lie differ in their last digits only
        return (answers - self.lie) / (float(ratio_minus_1) * self.lie)

    def _check(self, codes: ArrayLike) -> NDArray[np.int64]:
        array = np.asarray(codes)
        if array.ndim != 1 or (len(array) and array.dtype.kind not in "iub"):
            raise ValueError("RandomizedResponse needs one column of integer codes.")
        if len(array) and not 0 <= int(array.min()) <= int(array.max()) < self.n_values:
            raise ValueError(f"RandomizedResponse got codes outside 0..{self.n_values - 1}.")
        return array.astype(np.int64)
