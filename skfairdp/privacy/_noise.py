"""Where noise comes from: the operating system's CSPRNG, or a seed that voids the guarantee."""

import os
import secrets
from fractions import Fraction
from math import floor
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

__all__ = ["NoiseSource"]


class NoiseSource:
    """Draws the noise of a release.

    Parameters
    ----------
    seed : int or None, default=None
        None draws every bit from the operating system's cryptographic generator (``os.urandom``): nobody can
        replay it. An integer makes the noise reproducible for research and tests; whoever knows it can
        subtract the noise, so a release made with a seed has no privacy at all.

    Attributes
    ----------
    is_secret : bool
        False when a seed was given.

    Examples
    --------
    >>> from skfairdp.privacy import NoiseSource
    >>> NoiseSource().normal(3).shape
    (3,)
    >>> NoiseSource(seed=0).is_secret
    False
    """

    def __init__(self, seed: int | None = None) -> None:
        self._seeded = None if seed is None else np.random.default_rng(seed)

    @property
    def is_secret(self) -> bool:
        return self._seeded is None

    def __reduce__(self) -> Any:
        raise TypeError("A NoiseSource is not pickled: a copied source would add the same noise twice.")

    def _words(self, n: int) -> NDArray[np.uint64]:
        if self._seeded is not None:
            return self._seeded.integers(0, 2**64, size=n, dtype=np.uint64)
        return np.frombuffer(os.urandom(8 * n), dtype=np.uint64)

    def words(self, n: int) -> NDArray[np.uint64]:
        """Draw ``n`` independent uniform 64-bit words."""
        return self._words(n)

    def seed(self) -> int:
        """63 bits to seed a generator that cannot be replaced, such as the one of torch's dropout."""
        return int(self._words(1)[0] >> np.uint64(1))

    def normal(self, size: int | tuple[int, ...] = 1) -> NDArray[np.float64]:
        """Draw independent standard normals.

        By inversion of 63 uniform bits and a sign: the tail reaches 8.9 standard deviations, and cutting it there
        changes the distribution by less than 2e-19 in total variation.
        """
        shape = (size,) if isinstance(size, int | np.integer) else tuple(size)
        words = self._words(int(np.prod(shape)))
        sign = np.where(words & np.uint64(1), 1.0, -1.0)
        half = ((words >> np.uint64(1)).astype(np.float64) + 0.5) * 2.0**-64  # in (0, 1/2]
        return (sign * ndtri(half)).reshape(shape)

    def bernoulli(self, probability: float, size: int) -> NDArray[np.bool_]:
        """Independent coin flips that come up True with at most ``probability`` (rounded down by less than 2^-53)."""
        if not 0 <= probability <= 1:
            raise ValueError(f"probability must lie in [0, 1]. Got {probability!r} instead.")
        if probability == 1:
            return np.ones(size, dtype=bool)
        # A 64-bit word below the threshold, read byte by byte: only one row in 256 needs more than its first.
        threshold = int(probability * 2.0**53) << 11
        first = self._words(-(-size // 8)).view(np.uint8)[:size]
        chosen = first < np.uint8(threshold >> 56)
        undecided = np.flatnonzero(first == threshold >> 56)
        chosen[undecided] = self._words(len(undecided)) >> np.uint64(8) < np.uint64(threshold & (2**56 - 1))
        return chosen

    def below(self, n: int) -> int:
        """Draw one integer evenly from 0 to ``n - 1``: a choice that has to stay secret."""
        return self._below(n)

    def _below(self, n: int) -> int:
        """Uniform integer in [0, n)."""
        if self._seeded is None:
            return secrets.randbelow(n)
        bits = max(n - 1, 1).bit_length()
        while True:
            words = self._seeded.integers(0, 2**32, size=(bits + 31) // 32, dtype=np.uint64).tolist()
            value = sum(word << (32 * i) for i, word in enumerate(words)) & ((1 << bits) - 1)
            if value < n:
                return value

    def _bernoulli_exp(self, numerator: int, denominator: int) -> bool:
        """Bernoulli(exp(-numerator/denominator)), exactly (Canonne, Kamath & Steinke 2020, Algorithm 1)."""
        while numerator > denominator:
            if not self._bernoulli_exp(1, 1):
                return False
            numerator -= denominator
        k = 1
        while self._below(denominator * k) < numerator:
            k += 1
        return k % 2 == 1

    def _discrete_laplace(self, scale: int) -> int:
        """Discrete Laplace with an integer scale (Canonne, Kamath & Steinke 2020, Algorithm 2)."""
        while True:
            u = self._below(scale)
            if not self._bernoulli_exp(u, scale):
                continue
            v = 0
            while self._bernoulli_exp(1, 1):
                v += 1
            magnitude = u + scale * v
            negative = bool(self._below(2))
            if negative and magnitude == 0:
                continue
            return -magnitude if negative else magnitude

    def discrete_gaussian(self, sigma: float, size: int | tuple[int, ...] = 1) -> NDArray[np.int64]:
        """Draw from the discrete Gaussian, exactly, in integer arithmetic.

        ``P(x) ∝ exp(-x²/(2 sigma²))`` over the integers (Canonne, Kamath & Steinke 2020, Algorithm 3). A sigma
        with few binary digits is faster; the mechanisms round theirs up to a multiple of 1/1024.
        """
        variance = Fraction(sigma) ** 2
        a, b = variance.numerator, variance.denominator
        t = floor(sigma) + 1
        shape = (size,) if isinstance(size, int | np.integer) else tuple(size)
        out = np.empty(int(np.prod(shape)), dtype=np.int64)
        for i in range(out.size):
            while True:
                y = self._discrete_laplace(t)
                # (|y| - sigma²/t)² / (2 sigma²) with sigma² = a/b, as a fraction of integers
                if self._bernoulli_exp((abs(y) * b * t - a) ** 2, 2 * a * b * t * t):
                    break
            out[i] = y
        return out.reshape(shape)
