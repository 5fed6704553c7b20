"""Where noise comes from: the operating system's CSPRNG, or a seed that voids the guarantee."""

import contextlib
import os
import secrets
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from math import floor
from typing import Any

import mpmath
import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

Selecting = Callable[[Any], contextlib.AbstractContextManager[Callable[[], None]]]
_MARGIN = 2e-8  # of a cell; see NoiseSource.rounded_normal
_DEEP_TAIL = float(ndtr(-6.0))
_LARGEST_SCALE = 2048.0
_RARE = 1 / 16  # rows that join no more often are found without a coin for each


class NoiseSource:
    """Draws the noise of a release.

    Parameters
    ----------
    seed : int or None, default=None
        None draws every bit from the operating system's cryptographic generator (``os.urandom``): it cannot
        be replayed. An integer makes the noise reproducible for research and tests; whoever knows it can
        subtract the noise, so a release made with a seed has no privacy at all.

    Examples
    --------
    >>> from skfairdp.privacy import NoiseSource
    >>> NoiseSource().normal(3).shape
    (3,)
    """

    def __init__(self, seed: int | None = None) -> None:
        self._seeded = None if seed is None else np.random.default_rng(seed)
        self._guard: Callable[[Any, int], None] | None = None
        self._selecting: Selecting | None = None

    @property
    def is_secret(self) -> bool:
        """Whether nobody can draw this noise again."""
        return self._seeded is None

    def __reduce__(self) -> Any:
        raise TypeError("A NoiseSource is not pickled: a copied source would add the same noise twice.")

    def guarded_by(self, guard: Callable[[Any, int], None], selecting: Selecting | None = None) -> "NoiseSource":
        """Call ``guard`` before every release, with its mechanism and how often, and before every draw, with None."""
        self._guard, self._selecting = guard, selecting
        return self

    def selecting(self, selection: Any) -> contextlib.AbstractContextManager[Callable[[], None]]:
        """While a selection is made. What it returns is called before each trial, whose releases are not told."""
        return contextlib.nullcontext(lambda: None) if self._selecting is None else self._selecting(selection)

    def release(self, mechanism: Any, *private: Any, **public: Any) -> Any:
        """Return what ``mechanism`` lets out of private values: every noisy value leaves through this method.

        Parameters
        ----------
        mechanism : object
            With a method ``noisy(source, *private, **public)``, and its ``event``.
        *private
            What the noise is added to.
        **public
            What the release may depend on besides.
        """
        self._announce(mechanism, *private)
        return mechanism.noisy(self, *private, **public)

    def _announce(self, mechanism: Any, *private: Any) -> None:
        """Before a release: some mechanisms release once for each of several queries."""
        times = mechanism.n_releases(*private) if hasattr(mechanism, "n_releases") else 1
        if self._guard is not None:
            self._guard(mechanism, times)

    def _check(self, mechanism: Any) -> None:
        if self._guard is not None:
            self._guard(mechanism, 0)

    def _words(self, n: int) -> NDArray[np.uint64]:
        self._check(None)
        if self._seeded is not None:
            return self._seeded.integers(0, 2**64, size=n, dtype=np.uint64)
        return np.frombuffer(os.urandom(8 * n), dtype=np.uint64)

    def words(self, n: int) -> NDArray[np.uint64]:
        """Draw ``n`` independent uniform 64-bit words."""
        return self._words(n)

    def seed(self) -> int:
        """A seed of 63 bits for a generator that cannot be replaced, such as that of torch's dropout: it keeps 32."""
        return int(self._words(1)[0] >> np.uint64(1))

    def normal(self, size: int | tuple[int, ...] = 1) -> NDArray[np.float64]:
        """Draw independent standard normals. By inversion of 63 uniform bits and a sign: the tail reaches 8.9 standard
        deviations, and cutting it there changes the distribution by less than 2e-19 in total variation."""
        words = self._words(int(np.prod(size)))
        sign = np.where(words & np.uint64(1), 1.0, -1.0)
        half = ((words >> np.uint64(1)).astype(np.float64) + 0.5) * 2.0**-64  # in (0, 1/2]
        drawn: NDArray[np.float64] = sign * ndtri(half)
        return drawn.reshape(size)

    def rounded_normal(self, centers: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
        """Draw ``round(centers + scale Z)`` with independent standard normals Z, exactly in distribution.

        Parameters
        ----------
        centers : ndarray
            Within [-1/2, 1/2].
        scale : float
            At most 2048.

        Returns
        -------
        ndarray of whole numbers, as float64, in the shape of ``centers``

        Notes
        -----
        64 random bits are the first digits of a uniform number, and every number that goes on with them must round to
        the same integer. For ``|Z| <= 6`` inversion with those bits is right to 5e-12: 2^-65 over the density for the
        digits that are missing, 1e-13 for ``ndtri`` and the conversion to double precision. Times 2048 that is 1.1e-8
        of a cell, so a result that is 2e-8 or more away from the edge of a cell is certain. The others, and those in
        the tails, about one in 10 million, are decided with more digits and more bits: there is neither a lattice of
        representable numbers nor an end of the tails.
        """
        if not 0 < scale <= _LARGEST_SCALE:
            raise ValueError(f"scale must lie in (0, {_LARGEST_SCALE:g}]. Got {scale!r} instead.")
        flat = np.asarray(centers, dtype=np.float64).ravel()
        words = self._words(flat.size)
        sign = np.where(words & np.uint64(1), 1.0, -1.0)
        half = (words >> np.uint64(1)).astype(np.float64)
        half += 0.5
        half *= 2.0**-64  # in (0, 1/2]
        moved: NDArray[np.float64] = ndtri(half)
        moved *= scale * sign
        moved += flat
        out = np.rint(moved)
        moved -= out
        doubtful = np.abs(moved, out=moved) > 0.5 - _MARGIN
        doubtful |= half < _DEEP_TAIL
        for i in np.flatnonzero(doubtful).tolist():
            out[i] = self._decided(float(flat[i]), scale, int(sign[i]), int(words[i] >> np.uint64(1)))
        return out.reshape(np.shape(centers))

    def _decided(self, center: float, scale: float, sign: int, digits: int) -> float:
        """The integer nearest to ``center + scale Z`` where 64 bits do not tell it: more bits until they do."""
        n_bits = 64
        while True:
            with mpmath.workprec(2 * n_bits + 128):
                edges = (_lower_quantile(edge, n_bits) if edge else -mpmath.inf for edge in (digits, digits + 1))
                low, high = (mpmath.nint(mpmath.mpf(center) + scale * sign * edge) for edge in edges)
                if low == high:
                    return float(low)
            digits = digits << 64 | int(self._words(1)[0])
            n_bits += 64

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

    def joined(self, probability: float, n_rows: int) -> NDArray[np.int64]:
        """Sorted positions of the rows whose coin of :meth:`bernoulli` comes up True, without a coin for each. The
        number of heads among a block of rows is binomial, and given it every set of so many rows is as likely. So time
        follows the number of heads. Rows that are likely to join have their coins tossed."""
        if probability > _RARE:
            return np.flatnonzero(self.bernoulli(probability, n_rows))
        if not probability >= 0:
            raise ValueError(f"probability must lie in [0, 1]. Got {probability!r} instead.")
        chance = int(probability * 2.0**53)
        if chance == 0 or n_rows == 0:
            return np.zeros(0, dtype=np.int64)
        bits, numbers = _heads_of_a_block(chance)
        counts = self._numbers(numbers, -(-n_rows >> bits))
        blocks = np.repeat(np.arange(len(counts)), counts)
        found = np.empty(len(blocks), dtype=np.int64)
        drawn = np.ones(len(blocks), dtype=bool)
        while drawn.any():  # a block that has a row twice is drawn anew, as a whole
            places = (self._words(int(drawn.sum())) >> np.uint64(64 - bits)).astype(np.int64)
            found[drawn] = (blocks[drawn] << bits) + places
            found.sort()  # no row leaves its block
            twice = blocks[1:][found[1:] == found[:-1]]
            drawn = np.isin(blocks, twice) if len(twice) else np.zeros(len(blocks), dtype=bool)
        return found[found < n_rows]

    def _numbers(self, thresholds: list[int], size: int) -> NDArray[np.int64]:
        """Independent numbers k with P(number > k) = 1 - thresholds[k] / 2^256."""
        first = np.array([threshold >> 192 for threshold in thresholds], dtype=np.uint64)
        words = self._words(size)
        numbers = np.searchsorted(first, words, side="right")
        for i in np.flatnonzero(numbers != np.searchsorted(first, words, side="left")).tolist():
            value = int(words[i])  # 64 bits do not tell
            for word in self._words(3).tolist():
                value = value << 64 | word
            numbers[i] = sum(value >= threshold for threshold in thresholds)
        return numbers

    def below(self, n: int) -> int:
        """Draw one integer evenly from 0 to ``n - 1``: a choice that has to stay secret."""
        return self._below(n)

    def _below(self, n: int) -> int:
        """Uniform integer in [0, n)."""
        self._check(None)
        if self._seeded is None:
            return secrets.randbelow(n)
        bits = max(n - 1, 1).bit_length()
        while True:
            words = self._seeded.integers(0, 2**32, size=(bits + 31) // 32, dtype=np.uint64).tolist()
            value: int = sum(word << (32 * i) for i, word in enumerate(words)) & ((1 << bits) - 1)
            if value < n:
                return value

    def bernoulli_exp(self, numerator: int, denominator: int) -> bool:
        """Bernoulli(exp(-numerator/denominator)), exactly (Canonne, Kamath & Steinke 2020, Algorithm 1)."""
        while numerator > denominator:
            if not self.bernoulli_exp(1, 1):
                return False
            numerator -= denominator
        k = 1
        while self._below(denominator * k) < numerator:
            k += 1
        return k % 2 == 1

    def _discrete_laplace(self, scale: int) -> int:
        """Discrete Laplace with an integer scale (Canonne, Kamath & Steinke 2020, Algorithm 2)."""
        while True:
            magnitude, negative = self._geometric(scale), bool(self._below(2))
            if not (negative and magnitude == 0):
                return -magnitude if negative else magnitude

    def _geometric(self, scale: int) -> int:
        """A number k with a chance proportional to exp(-k / scale), exactly."""
        while True:
            u = self._below(scale)
            if self.bernoulli_exp(u, scale):
                break
        v = 0
        while self.bernoulli_exp(1, 1):
            v += 1
        return u + scale * v

    def floored_laplace(self, scale: int, size: int | tuple[int, ...] = 1) -> NDArray[np.int64]:
        """Draw ``floor(scale L)`` with independent Laplace numbers L, exactly in distribution. Its magnitude is
        geometric, and on the other side of 0 the same, one lower: no floating-point number is drawn."""
        drawn = [self._geometric(scale) for _ in range(int(np.prod(size)))]
        return np.array([-1 - k if self._below(2) else k for k in drawn], dtype=np.int64).reshape(size)

    def discrete_gaussian(self, sigma: float, size: int | tuple[int, ...] = 1) -> NDArray[np.int64]:
        """Draw from the discrete Gaussian, exactly, in integer arithmetic. ``P(x) ∝ exp(-x²/(2 sigma²))`` over the
        integers (Canonne, Kamath & Steinke 2020, Algorithm 3). A sigma with few binary digits is faster; the mechanisms
        round theirs up to a multiple of 1/1024."""
        variance = Fraction(sigma) ** 2
        a, b = variance.numerator, variance.denominator
        t = floor(sigma) + 1
        out = np.empty(int(np.prod(size)), dtype=np.int64)
        for i in range(out.size):
            while True:
                y = self._discrete_laplace(t)
                # (|y| - sigma²/t)² / (2 sigma²) with sigma² = a/b, as a fraction of integers
                if self.bernoulli_exp((abs(y) * b * t - a) ** 2, 2 * a * b * t * t):
                    break
            out[i] = y
        return out.reshape(size)


def _lower_quantile(digits: int, n_bits: int) -> Any:
    """The quantile of the standard normal at ``digits / 2^n_bits``, at most 1/2, in mpmath's working precision."""
    return -mpmath.sqrt(2) * mpmath.erfinv(1 - mpmath.ldexp(mpmath.mpf(digits), 1 - n_bits))


@lru_cache(maxsize=64)
def _heads_of_a_block(chance: int) -> tuple[int, list[int]]:
    """Rows of a block, as a power of two, and the distribution of the heads among them, in 256 bits. Each row's coin
    shows heads with probability ``chance / 2^53``; a block has about one."""
    bits = 53 - (chance - 1).bit_length()
    with mpmath.workprec(400):
        q = mpmath.ldexp(mpmath.mpf(chance), -53)
        rows, k = 1 << bits, 0
        term = total = mpmath.exp(rows * mpmath.log1p(-q))
        thresholds: list[int] = []
        while k < rows and (threshold := int(mpmath.floor(mpmath.ldexp(total, 256)))) < 2**256 - 1:
            thresholds.append(threshold)
            term *= q / (1 - q) * (rows - k) / (k + 1)
            total += term
            k += 1
    return bits, thresholds


def open_source(seed: int | None = None) -> NoiseSource:
    """Make a source of noise: the one place where sources come from, and where tests put a recording one."""
    return NoiseSource(seed)


class PoissonSample:
    """A secret sample that each row joins by itself, with the same public probability. It releases nothing: positions
    are private and must not leave the fit."""

    def __init__(self, probability: float) -> None:
        self.probability = probability

    def draw(self, n_rows: int, source: NoiseSource) -> NDArray[np.int64]:
        """Return the sorted positions of a fresh sample of 0..n_rows - 1."""
        return source.joined(self.probability, n_rows)


class SecretChoice:
    """One of ``n`` public alternatives, drawn evenly and never let out."""

    def __init__(self, n: int) -> None:
        self.n = n

    def draw(self, source: NoiseSource) -> int:
        """Return a fresh choice in 0..n - 1."""
        return source.below(self.n)


class SecretDraws:
    """Secret draws that come before any release and cost nothing, such as the folds of a search. It has no noise to
    give."""

    def __init__(self, seed: int | None = None) -> None:
        self._source = open_source(seed)

    def folds(self, n_rows: int, n_folds: int) -> NDArray[np.int64]:
        """Return a fold in 0..n_folds - 1 for each row, drawn by each row alone."""
        return (self._source.words(n_rows) % np.uint64(n_folds)).astype(np.int64)  # uneven by at most n_folds / 2^64

    def sample(self, probability: float, n_rows: int) -> NDArray[np.bool_]:
        """Return for each row whether it is drawn, each by itself."""
        return self._source.bernoulli(probability, n_rows)
