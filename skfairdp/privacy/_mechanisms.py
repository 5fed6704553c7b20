"""Mechanisms on vote counts: sensitivity, noise and event in one frozen object, and noise for a target ε."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any, TypeVar

import numpy as np
from scipy.special import gammaln, log_ndtr, ndtri

from skfairdp._typing import Array, ArrayLike, Bools, Floats, Ints
from skfairdp.privacy import _dp_accounting as dpa, _noise
from skfairdp.privacy._accountants import epsilon_of, quick_epsilon_of
from skfairdp.privacy._divergences import pure_epsilon, stopping_parameter
from skfairdp.privacy._dp_accounting import DpEvent
from skfairdp.privacy._events import ArgmaxBit, DiscreteGaussian, RareDisclosure, ThresholdBit, compose
from skfairdp.privacy._gdp import _check_delta
from skfairdp.privacy._noise import NoiseSource
from skfairdp.privacy._report import NeighboringRelation

_DYADIC = 1024.0
_RATES = 2**40


def _check_positive(**figures: float) -> None:
    for name, value in figures.items():
        if not 0 < value < math.inf:
            raise ValueError(f"{name} must be positive and finite. Got {value!r} instead.")


@dataclass(frozen=True)
class _Noise:
    """A noise scale, a noise distribution, and the relation under which the sensitivity holds."""

    sigma: float
    noise: str = "gaussian"
    relation: NeighboringRelation | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if self.noise not in ("gaussian", "discrete_gaussian"):
            raise ValueError(f"noise must be 'gaussian' or 'discrete_gaussian'. Got {self.noise!r} instead.")
        _check_positive(sigma=self.sigma)
        if self.noise == "discrete_gaussian":
            # Few binary digits keep the exact sampler's integers small. Rounded up: more noise, accounted as such.
            object.__setattr__(self, "sigma", math.ceil(self.sigma * _DYADIC) / _DYADIC)

    def _draw(self, shape: tuple[int, ...], source: NoiseSource) -> Floats:
        if self.noise == "discrete_gaussian":
            return source.discrete_gaussian(self.sigma, shape).astype(np.float64)
        return self.sigma * source.normal(shape)

    @property
    def mu_squared(self: Any) -> float:
        """Squared Gaussian cost of one release, for an adaptive filter (a bit is a post-processing)."""
        if self.noise != "gaussian":
            raise ValueError(
                "Discrete Gaussian noise is not exactly Gaussian-DP, so it has no place in a Gaussian filter. Use "
                "noise='gaussian', or declare the number of releases."
            )
        return float((self.sensitivity / self.sigma) ** 2)


class _OfValues:
    """Mechanisms whose release has the form of what the noise is added to."""

    def release(self, values: ArrayLike, source: NoiseSource) -> Array:
        """Return noisy values; every one gets noise of its own."""
        return np.asarray(source.release(self, values))


@dataclass(frozen=True)
class GaussianMechanism(_OfValues, _Noise):
    """Add Gaussian noise to a vector and round it to a public grid.

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise on each coordinate.
    noise : {"gaussian", "discrete_gaussian"}, default="gaussian"
        The discrete one needs integer values.
    sensitivity : float, default=1.0
        Largest L2 distance between the vectors of two neighbours.
    relation : NeighboringRelation or None, default=None
        The neighbours that ``sensitivity`` speaks of. A fit refuses a mechanism made for other neighbours.

    Notes
    -----
    Floating-point noise can carry traces of the value in its last bits (Mironov 2012). What is released is the sum of
    the value and real Gaussian noise, rounded to a public grid (``grid``, a power of two near ``sigma / 1024``), and
    this rounded sum is drawn *exactly* in distribution: the value is split into a multiple of the grid and a rest,
    both without error, and the rest plus noise is rounded with as many random bits as that takes. Rounding the exact
    sum is post-processing, so nothing is added to δ. Values are not rounded before the noise: neighbours on either
    side of a rounding edge would move apart by a whole step of the grid, which from ``sigma = 2048`` on is twice a
    sensitivity of one vote. The discrete Gaussian is sampled exactly as well.

    Examples
    --------
    >>> from skfairdp.privacy import GaussianMechanism, NoiseSource
    >>> mechanism = GaussianMechanism(sigma=4.0, sensitivity=2.0)
    >>> mechanism.event
    GaussianDpEvent(noise_multiplier=2.0)
    >>> mechanism.release([1.0, 2.0], NoiseSource()).shape
    (2,)
    """

    sensitivity: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_positive(sensitivity=self.sensitivity)

    @property
    def event(self) -> DpEvent:
        """One release of the whole vector."""
        if self.noise == "discrete_gaussian":
            return DiscreteGaussian(self.sigma, self.sensitivity)
        return dpa.GaussianDpEvent(self.sigma / self.sensitivity)

    @property
    def grid(self) -> float:
        """Every released value is a multiple of this number."""
        return 1.0 if self.noise == "discrete_gaussian" else math.ldexp(1.0, math.frexp(self.sigma)[1] - 11)

    def noisy(self, source: NoiseSource, values: ArrayLike) -> Floats:
        """What ``source.release`` lets out."""
        values = np.asarray(values, dtype=np.float64)
        if not np.all(np.isfinite(values)):
            raise ValueError("A release needs finite values.")
        if self.noise == "discrete_gaussian":
            if np.any(values != np.rint(values)):
                raise ValueError("Discrete Gaussian noise needs integer values.")
            return values + self._draw(values.shape, source)
        return self._rounded(values, source)

    def _rounded(self, values: Floats, source: NoiseSource) -> Floats:
        """The exact sum of values and Gaussian noise, on the grid."""
        grid = self.grid
        # All of this is exact in floating point: the grid is a power of two. A value beyond 2^53 steps of it is a
        # multiple of the grid already, and rounding it to whole steps changes nothing.
        with np.errstate(over="ignore"):
            steps = values / grid
        if not np.all(np.isfinite(steps)):
            raise ValueError("A release needs finite values.")
        whole = np.rint(steps)
        return (whole + source.rounded_normal(steps - whole, self.sigma / grid)) * grid


@dataclass(frozen=True)
class ExponentialMechanism:
    """Choose one of several candidates, the likelier the higher its score: with a chance proportional to e^(rq).
    A score moves by at most ``sensitivity`` Δ, so that ratios of chances under two neighbours lie within a range of 2rΔ
    (Dong, Durfee & Rogers 2020). By two answers of such a range the tests of neighbours are the best if their log odds
    are a + rΔ and a - rΔ; the difference of their normal quantiles is largest at a = 0, because the slope of
    Φ⁻¹(logistic(x)) falls on both sides of 0. With rΔ = logit Φ(μ/2) that difference is μ: the choice is μ-GDP."""

    mu: float
    sensitivity: float = 1.0
    relation: NeighboringRelation | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        _check_positive(mu=self.mu, sensitivity=self.sensitivity)

    @property
    def sigma(self) -> float:
        """Standard deviation of Gaussian noise on a score that tells as much."""
        return self.sensitivity / self.mu

    @property
    def event(self) -> DpEvent:
        """That noise."""
        return dpa.GaussianDpEvent(1 / self.mu)

    @property
    def rate(self) -> Fraction:
        """r, rounded down."""
        logit = float(log_ndtr(self.mu / 2) - log_ndtr(-self.mu / 2))
        return Fraction(math.floor((1 - 1e-12) * logit / self.sensitivity * _RATES), _RATES)

    def release(self, scores: ArrayLike, source: NoiseSource) -> int:
        """Return the place of the choice."""
        return int(source.release(self, scores))

    def noisy(self, source: NoiseSource, scores: ArrayLike) -> int:
        """What ``source.release`` lets out: an even draw is kept with the chance e^(-r · distance to the best)."""
        scores, rate = np.asarray(scores, dtype=np.float64), self.rate
        if not len(scores) or not np.isfinite(scores).all():
            raise ValueError("The scores of an ExponentialMechanism must be finite numbers, one at least.")
        while True:
            k = source.below(len(scores))
            behind = rate * Fraction(float(scores.max() - scores[k]))
            if source.bernoulli_exp(behind.numerator, behind.denominator):
                return k


@dataclass(frozen=True)
class NoisyVotes(_OfValues, _Noise):
    """Release the vote histogram of a query ("soft labels"): of shape (n_queries, n_classes). One record changes one
    vote: with more than two classes a sensitivity of √2. Of two the first count determines the second (their sum is
    public): one number with sensitivity 1. Noisy counts may be negative and, for K > 2, need not sum up."""

    n_teachers: int = 1
    n_classes: int = 2

    @property
    def sensitivity(self) -> float:
        """Largest distance between the counts of two neighbours: with two classes one count says all."""
        return 1.0 if self.n_classes == 2 else math.sqrt(2.0)

    @property
    def event(self) -> DpEvent:
        """One query."""
        return self._vector.event

    @property
    def _vector(self) -> GaussianMechanism:
        return GaussianMechanism(self.sigma, self.noise, self.sensitivity, relation=self.relation)

    def n_releases(self, votes: ArrayLike) -> int:
        """One a query."""
        return len(np.asarray(votes))

    def noisy(self, source: NoiseSource, votes: ArrayLike) -> Floats:
        """What ``source.release`` lets out."""
        votes = np.asarray(votes)
        if self.n_classes > 2:
            return self._vector.noisy(source, votes)
        second = self._vector.noisy(source, votes[:, 1])
        return np.column_stack([self.n_teachers - second, second])


@dataclass(frozen=True)
class NoisyThreshold(_Noise):
    """Release one bit per query: does the largest admissible count, plus noise, reach the threshold?"""

    n_teachers: int = 1
    threshold: float = 0.5

    sensitivity = 1.0

    @property
    def event(self) -> DpEvent:
        """One query, as the one bit it publishes."""
        return ThresholdBit(self.n_teachers, float(self.threshold), self.sigma, self.noise)

    def n_releases(self, largest_counts: ArrayLike) -> int:
        """One a query."""
        return int(np.size(largest_counts))

    def release(self, largest_count: int, source: NoiseSource) -> bool:
        """Whether the noisy count reaches the threshold."""
        return bool(source.release(self, [largest_count])[0])

    def release_each(self, largest_counts: ArrayLike, source: NoiseSource) -> Bools:
        """One bit for each of several queries, noise of its own for each: as many releases as there are queries."""
        return np.asarray(source.release(self, largest_counts))

    def noisy(self, source: NoiseSource, largest_counts: ArrayLike) -> Bools:
        """What ``source.release`` lets out."""
        counts = np.asarray(largest_counts)
        return np.asarray(counts + self._draw(counts.shape, source) >= self.threshold)


@dataclass(frozen=True)
class GNMax(_Noise):
    """Release the class with the largest noisy count (Gaussian noisy max).

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise on each count, in votes.
    noise : {"gaussian", "discrete_gaussian"}, default="gaussian"
    n_teachers, n_classes : int

    Examples
    --------
    >>> from skfairdp.privacy import GNMax, NoiseSource
    >>> GNMax(sigma=1e-3, n_teachers=10, n_classes=3).release([1, 7, 2], NoiseSource())
    1
    """

    n_teachers: int = 1
    n_classes: int = 2

    sensitivity = math.sqrt(2.0)

    @property
    def event(self) -> DpEvent:
        """One query: exact for two classes, the Gaussian histogram it is computed from for more."""
        if self.n_classes == 2:
            return ArgmaxBit(self.n_teachers, self.sigma, self.noise)
        return GaussianMechanism(self.sigma, self.noise, self.sensitivity).event

    def release(self, counts: ArrayLike, source: NoiseSource, admissible: Bools | None = None) -> int:
        """Index of the winning class, among the admissible ones if given (ties go to the lowest index)."""
        return int(source.release(self, counts, admissible=admissible))

    def noisy(self, source: NoiseSource, counts: ArrayLike, *, admissible: Any = None) -> int:
        """What ``source.release`` lets out."""
        counts = np.asarray(counts, dtype=np.float64)
        candidates = np.arange(len(counts)) if admissible is None else np.flatnonzero(admissible)
        if not len(candidates):
            raise ValueError("GNMax needs at least one admissible class.")
        return int(candidates[np.argmax(counts[candidates] + self._draw((len(candidates),), source))])


@dataclass(frozen=True)
class LaplaceCounts(_OfValues):
    """Release how many rows there are of each kind, with Laplace noise: for rows so few that nothing else is told.

    One replaced record moves two counts by one. With two kinds the first count determines the second (the number of
    rows is public), so one number with sensitivity 1 is released; with more, all of them, with sensitivity 2 in L1
    norm. A pure ε says of a single release far more than Gaussian noise of the same ε and δ.

    Parameters
    ----------
    scale : float
        Of the noise on each count, in rows: mean distance from the count. Rounded up to a public grid.
    n_rows : int
        Of the private table.
    n_kinds : int
        At least 2. Classes, or groups times classes.
    relation : NeighboringRelation, default=NeighboringRelation.REPLACE_ONE
        The neighbours, of which each counts one row at most.

    Notes
    -----
    What is released is the sum of a count and real Laplace noise, rounded down to a public grid (``grid``, a power of
    two, at most 1). Counts are multiples of the grid, so that only the noise is rounded, and it is drawn in whole
    numbers, exactly in distribution (Canonne, Kamath & Steinke 2020).

    Examples
    --------
    >>> from skfairdp.privacy import LaplaceCounts, NoiseSource, gdp_mu
    >>> mechanism = LaplaceCounts(scale=2.0, n_rows=150, n_kinds=3)
    >>> mechanism.event
    LaplaceDpEvent(noise_multiplier=1.0)
    >>> mechanism.release([80, 40, 30], NoiseSource()).shape
    (3,)
    >>> one_count = LaplaceCounts.at(0.5, n_rows=150, n_kinds=2)
    >>> round(one_count.sigma, 1), round(1 / gdp_mu(0.5, 1e-5), 1)  # beside Gaussian noise of as much ε
    (2.8, 7.0)
    """

    scale: float
    n_rows: int
    n_kinds: int = 2
    relation: NeighboringRelation = NeighboringRelation.REPLACE_ONE

    def __post_init__(self) -> None:
        _check_positive(scale=self.scale)
        if self.n_kinds < 2:
            raise ValueError(f"n_kinds must be at least 2. Got {self.n_kinds!r} instead.")
        object.__setattr__(self, "scale", math.ceil(self.scale / self.grid) * self.grid)

    @classmethod
    def at(
        cls,
        epsilon: float,
        *,
        n_rows: int,
        n_kinds: int,
        relation: NeighboringRelation = NeighboringRelation.REPLACE_ONE,
    ) -> "LaplaceCounts":
        """With so much noise that all counts together cost at most a pure ``epsilon``."""
        return cls((1 + 1e-9) * (1.0 if n_kinds == 2 else 2.0) / epsilon, n_rows, n_kinds, relation)

    @property
    def sensitivity(self) -> float:
        """Largest L1 distance between the counts of two neighbours: with two kinds one count says all."""
        return 1.0 if self.n_kinds == 2 else 2.0

    @property
    def epsilon(self) -> float:
        """Pure ε of one release of all counts."""
        return self.sensitivity / self.scale

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise, but for rounding."""
        return math.sqrt(2.0) * self.scale

    @property
    def grid(self) -> float:
        """Every released count is a multiple of this number."""
        return min(1.0, math.ldexp(1.0, math.frexp(self.scale)[1] - 11))

    @property
    def event(self) -> DpEvent:
        """One release of all counts."""
        return dpa.LaplaceDpEvent(self.scale / self.sensitivity)

    def noisy(self, source: NoiseSource, counts: ArrayLike) -> Floats:
        """What ``source.release`` lets out."""
        values = np.asarray(counts, dtype=np.float64)
        if values.size != self.n_kinds or not np.all(np.isfinite(values)) or np.any(values != np.rint(values)):
            raise ValueError(f"A release of these counts needs {self.n_kinds} whole numbers.")  # quotes none: private
        if self.n_kinds > 2:
            return values + self._draw(values.shape, source)
        second = values[..., 1:] + self._draw((*values.shape[:-1], 1), source)
        return np.concatenate([self.n_rows - second, second], axis=-1)

    def _draw(self, shape: tuple[int, ...], source: NoiseSource) -> Floats:
        return self.grid * source.floored_laplace(round(self.scale / self.grid), shape).astype(np.float64)


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
    >>> round(noise, 2), round(epsilon_of(repeat(GaussianDpEvent(noise), 100), 1e-5), 3)
    (37.31, 1.0)
    """
    _check_delta(delta)
    if not epsilon > 0:
        raise ValueError(f"epsilon must be a float in the range (0.0, inf]. Got {epsilon!r} instead.")
    if math.isinf(epsilon):
        return 0.0

    def excess(epsilon_at: Callable[[DpEvent, float], float], noise: float) -> float:
        return (epsilon_at(event_at(noise), delta) - epsilon) / epsilon  # a quotient could round an excess to 0

    # Nearly all of the way on the cheaper bound; what is returned has been evaluated on the one that is reported.
    for epsilon_at, width in ((quick_epsilon_of, rtol / 4), (epsilon_of, rtol)):
        guess = _search(partial(excess, epsilon_at), guess, width, max_noise)
        if guess > max_noise:
            raise ValueError(
                f"No noise up to {max_noise:g} brings epsilon down to {epsilon:g} at delta={delta:g}. "
                "Plan fewer releases, or raise epsilon or delta."
            )
    return guess


def _search(excess: Callable[[float], float], guess: float, rtol: float, max_noise: float) -> float:
    """Smallest noise with ``excess(noise) <= 0``, up to ``rtol`` of it or of ε; inf beyond ``max_noise``."""
    high = guess
    high_excess = excess(high)
    step = 1.02 if abs(high_excess) < 0.02 else 1.1  # a bad guess is left behind in doubling strides
    if -rtol <= high_excess <= 0:
        return high
    low, low_excess = high, high_excess
    while high_excess > 0:
        low, low_excess = high, high_excess
        high *= step
        step *= step
        if high > max_noise:
            return math.inf
        high_excess = excess(high)
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
        share = 0.5
        if iteration % 3 < 2 and high_excess < low_excess < math.inf:
            share = min(max(low_excess / (low_excess - high_excess), 0.02), 0.98)
        middle = low * (high / low) ** share
        middle_excess = excess(middle)
        if middle_excess <= 0:
            high, high_excess = middle, middle_excess
        else:
            low, low_excess = middle, middle_excess
    return high


_GRID = 2.0**-40


def smooth_sensitivity_release(value: float, scale: float) -> float:
    """Return ``value + N(0, scale²)`` on a grid that does not follow the scale, which is private here."""
    return round((value + scale * float(_noise.open_source().normal(1)[0])) / _GRID) * _GRID


def smooth_sensitivity_release_cost(order: float, beta: float, sigma: float) -> float:
    """Rényi cost of publishing a value plus ``smooth sensitivity * N(0, sigma²)`` (Theorem 23)."""
    _check_positive(sigma=sigma)
    if not (beta >= 0 and math.isfinite(beta)):
        raise ValueError(f"beta must be at least 0 and finite. Got {beta!r} instead.")
    limit = math.inf if beta == 0 else 1 / (2 * beta)
    if not 1 < order < limit:
        raise ValueError(f"order must lie in (1, 1/(2 beta)) = (1, {limit:g}). Got {order!r}; lower beta.")
    shift = order * math.exp(2 * beta) / sigma**2
    return shift + ((beta * order - math.log1p(-2 * order * beta) / 2) / (order - 1))


_WORDS = 2**64
_SMALLEST_EPSILON = 1e-9
_MOST_VALUES = 2**16
_AT_ONCE = 2**20  # rows


@dataclass(frozen=True)
class RandomizedResponse(_OfValues):
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
        while (pure_epsilon(dpa.RandomizedResponseDpEvent(p, k)) or 0.0) > self.epsilon:
            p = math.nextafter(p, 1.0)
        object.__setattr__(self, "_noise_parameter", p)
        object.__setattr__(self, "_words_per_lie", math.ceil(Fraction(p) * _WORDS / k))

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, relation=state["relation"] and NeighboringRelation(state["relation"]))

    @property
    def event(self) -> DpEvent:
        """All answers together: a person's value reaches one of them only."""
        return dpa.RandomizedResponseDpEvent(self._noise_parameter, int(self.n_values))

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

    def noisy(self, source: NoiseSource, codes: ArrayLike) -> Ints:
        """What ``source.release`` lets out: some rows at a time, in one release."""
        answers = self._check(codes)
        per_lie, lies = np.uint64(self._words_per_lie), np.uint64((self.n_values - 1) * self._words_per_lie)
        for start in range(0, len(answers), _AT_ONCE):
            block = answers[start : start + _AT_ONCE]  # a view of a copy
            words = source.words(len(block))
            # Number r of the other values, in their order; those from the true one on are shifted past it.
            other = np.minimum(words // per_lie, np.uint64(self.n_values)).astype(np.int64)
            other += other >= block
            np.copyto(block, other, where=words < lies)
        return answers

    def weights(self, released: ArrayLike) -> Floats:
        """Return what stands for the unknown membership: its expectation over the noise is the true one, exactly. The
        inverse of the channel, ``(1[released = a] - lie) / (truth - lie)``: signed, each row summing to 1. A sum of
        ``weights[:, a] * h`` over rows estimates the sum of h over group a without bias. Post-processing."""
        answers = np.eye(self.n_values)[self._check(released)]
        ratio_minus_1 = self.ratio - 1  # exact: for a small ε, truth and lie differ in their last digits only
        return (answers - self.lie) / (float(ratio_minus_1) * self.lie)

    def _check(self, codes: ArrayLike) -> Ints:
        array = np.asarray(codes)
        if array.ndim != 1 or (len(array) and array.dtype.kind not in "iub"):
            raise ValueError("RandomizedResponse needs one column of integer codes.")
        if len(array) and not 0 <= int(array.min()) <= int(array.max()) < self.n_values:
            raise ValueError(f"RandomizedResponse got codes outside 0..{self.n_values - 1}.")
        return array.astype(np.int64)


@dataclass(frozen=True)
class CommonValues:
    """Release the values of a column whose noisy count reaches a threshold (partition selection).

    **Guarantee.** Every record holds one value. The counts of the values that both of two neighbours hold are a vector
    that moves by at most √2 where a record is replaced (one count less, another more): Gaussian noise on it is a
    Gaussian release. Beside them each of the two may hold one value that the other does not, and then holds it once.
    That value is shown with probability at most ``failure``, by noise of its own, so what it adds is a release at
    distance ``failure`` in total variation: :class:`RareDisclosure`. Nothing else depends on a value's being there: the
    order of what is shown is that of the values themselves.

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise on each count.
    failure : float
        In (0, 1/2): the largest probability with which a value of one record only is shown.
    relation : NeighboringRelation, default=None
        The neighbours: of equally many records, of which one is replaced.
    with_counts : bool, default=False
        Whether the noisy counts of the values come along, as a dict.

    Examples
    --------
    >>> from skfairdp.privacy import CommonValues, NoiseSource
    >>> mechanism = CommonValues(sigma=2.0, failure=1e-6)
    >>> round(mechanism.threshold, 1)
    10.5
    >>> mechanism.release({"Male": 400, "Female": 500, "Ms Smith": 1}, NoiseSource())
    ('Female', 'Male')
    """

    sigma: float
    failure: float
    relation: NeighboringRelation | None = field(default=None, kw_only=True)
    with_counts: bool = field(default=False, kw_only=True)

    sensitivity = math.sqrt(2.0)

    def __post_init__(self) -> None:
        if not 0 < self.failure < 0.5:
            raise ValueError(f"failure must lie in (0, 1/2). Got {self.failure!r} instead.")
        _check_positive(sigma=self.sigma)

    @property
    def event(self) -> DpEvent:
        """Noisy counts, and the value of one record only that may slip through."""
        return compose(self._counts.event, RareDisclosure(self.failure))

    @property
    def threshold(self) -> float:
        """The smallest noisy count, on the grid of the noise, that one record reaches with at most ``failure``."""
        grid = self._counts.grid
        # What rounds to the threshold may lie half a step below it. The quantile is good to 1e-13 of itself.
        least = 1 - self.sigma * float(ndtri(self.failure)) * (1 + 1e-9) + grid / 2
        return math.ceil(least / grid) * grid

    @property
    def _counts(self) -> GaussianMechanism:
        return GaussianMechanism(self.sigma, sensitivity=self.sensitivity, relation=self.relation)

    def release(self, counts: Mapping[Any, int], source: NoiseSource) -> Any:
        """The common values: None first, then numbers, then texts, each in their order.

        Parameters
        ----------
        counts : mapping of None, int, float or str to int
            How many records hold each value. A value that is always a key is public: for it alone 0 is a count.
        source : NoiseSource
            Of the Spending that pays.

        Returns
        -------
        tuple or dict
            Some of the keys.
        """
        return source.release(self, counts)

    def noisy(self, source: NoiseSource, counts: Mapping[Any, int]) -> Any:
        """What ``source.release`` lets out.

        Parameters
        ----------
        source : NoiseSource
            Of the Spending that pays.
        counts : mapping
            As :meth:`release` takes it.

        Returns
        -------
        tuple
            As :meth:`release` returns it.
        """
        values = sorted(counts, key=_place)
        noisy = self._counts.noisy(source, np.array([counts[value] for value in values], dtype=np.float64))
        found = {value: count for value, count in zip(values, noisy.tolist(), strict=True) if count >= self.threshold}
        return found if self.with_counts else tuple(found)


def _place(value: Any) -> tuple[int, Any]:
    return (0, 0) if value is None else (2, value) if isinstance(value, str) else (1, value)


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
        return dpa.RepeatAndSelectDpEvent(self.base, float(self.mean), _SHAPES[self.trial_distribution])

    def probabilities(self) -> Floats:
        """Return P[K = k] for the number of trials K.

        Returns
        -------
        ndarray of shape (n_values,)
            For k = 0, 1, ..., up to a tail below 1e-18.
        """
        shape = _SHAPES[self.trial_distribution]
        if self.trial_distribution == "poisson":
            k = np.arange(0, math.ceil(self.mean + 12 * math.sqrt(self.mean) + 60))
            mass: Floats = np.exp(k * math.log(self.mean) - self.mean - gammaln(k + 1))
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

    def draw(self, source: NoiseSource, size: int = 1) -> Ints:
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
