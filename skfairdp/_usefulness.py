"""Whether a model is of use: told beforehand from public numbers, and judged beside the most frequent class."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.stats import norm

from skfairdp._typing import Floats, Ints
from skfairdp._utils import PlainState, warn_caller
from skfairdp.exceptions import UtilityWarning
from skfairdp.privacy import DpEvent, GaussianMechanism, NeighboringRelation, NoiseSource, Protects, gdp_mu

FOLDS = 3
#: From fewer rows than one end of a trial to the other nothing is told; with more than the other end a learner has not
#: learned them by heart, and three trainings more take long.
LEAST_ROWS, MOST_ROWS = 12, 10_000
#: Standard errors by which a learner has to be ahead: of one that is behind by L, ``L Φ(-1 - L/s)`` is lost on average,
#: .03 s at the worst.
EVIDENCE = 1.0
#: By which it is clearly ahead: one in a hundred that is not seems to be.
CLEARLY = 2.3
#: Of the errors of the most frequent class: what spares fewer of them is no better, however well that is known.
LEAST = 0.02
#: Standard errors by which the first folds decide alone, one way or the other.
BEYOND_DOUBT = 4.0
ITS_ROWS = "of its rows, whose labels are public,"
KEPT_ROWS = "of the rows that were kept from it, whose labels are public,"
#: Of the squared cost, at most, to tell whether a model of amounts is ahead of a constant.
FOR_GAIN = 0.06
#: What one row may say for or against it, in squares of the spread of amounts.
MOST_GAIN = 2.0
#: Standard errors by which it has to be ahead.
AMOUNT_EVIDENCE = 0.5
#: Of the squared cost, at most, to tell in how many rows it is closer than a constant, where nobody knows how far apart
#: amounts lie: as much as a classifier of few rows pays for the same, for the same reason.
FOR_CLOSER = 0.25
#: For their mean amounts are cut off so many spreads from the middle; it is to be known to so many of them. By so many
#: the middle is off, or not what the mean is.
REACH, KNOWN, OFF = 2.5, 0.05, 0.4
_GRID = 2.0**20


@dataclass(frozen=True)
class Comparison:
    """A model beside the class that is the most frequent one, by public or released figures."""

    usual: int
    ahead: float
    of_usual: float
    error: float = 0.0
    where: str = ITS_ROWS
    least: float = 0.0

    @property
    def is_passed(self) -> bool:
        """Whether the model is ahead, and hardly by luck."""
        return self.ahead > EVIDENCE * self.error

    @property
    def is_better(self) -> bool:
        """Whether it is clearly ahead, and by as much as anyone would notice; if not, it is told."""
        return self.ahead > max(CLEARLY * self.error, LEAST * (1 - self.of_usual), self.least)

    @property
    def may_stay(self) -> bool:
        """Whether nothing is lost by keeping it: it is ahead, or at most so little behind that nobody would notice."""
        is_little = self.error <= LEAST * (1 - self.of_usual)
        return self.ahead > (-EVIDENCE if is_little else EVIDENCE) * self.error

    def warn(self, usual: Any, owner: str, *, falls_back: bool, advice: str = "") -> None:
        """Say that the most frequent class is as good, whether it is predicted for every row, and what may help."""
        what = f"is {'hardly' if self.is_passed else 'no'} better than the class {usual}"
        if falls_back:
            what = f"predicts the class {usual} for every row"
        if not advice and self.where == ITS_ROWS and not self.is_passed:
            advice = (
                "At this noise its constraint costs more accuracy than the features add. Raise 'epsilon', or loosen "
                "the constraint."
            )
        elif not advice:
            advice = (
                "More rows, more informative features, a larger 'epsilon' or a looser constraint (if there is one) "
                "would help."
            )
        right, alone = (min(max(share, 0.0), 1.0) for share in (self.of_usual + self.ahead, self.of_usual))
        warn_caller(  # noise leads beyond shares
            f"{owner} {what}: it is right on {right:.3f} {self.where} and that class alone on {alone:.3f}. {advice}",
            UtilityWarning,
        )


def learned_by_heart(rates: Floats, spread: float) -> float:
    """By how much a rule that follows nothing but chance seems to be ahead of the most frequent class."""
    second, first = np.sort(rates)[-2:]
    if spread <= 0:
        return 0.0
    apart = (first - second) / 2 / spread
    return float(2 * spread * (norm.pdf(apart) - apart * norm.sf(apart)))


def spread_by_rows(rates: Floats, n_features: int, n_rows: int) -> float:
    """How far chance moves what a linear rule says of a class, by the rows that it is taught by."""
    second, first = np.sort(rates)[-2:]
    return math.sqrt(max(first + second - (first - second) ** 2, 0.0) / 4 * n_features / max(n_rows, 1))


def may_fall_back(y: Ints) -> bool:
    """Whether a classifier of these labels may give way to a constant: they are few enough for a trial.
    So few that a network may have learned them by heart, and enough to tell that it has."""
    return LEAST_ROWS <= len(y) <= MOST_ROWS and len(np.unique(y)) > 1


def rows_to_try(n_rows: int, seed: int, of: Ints | None = None) -> Ints:
    """Positions of so many rows that a trial is quick, drawn in public: those of one subject stay together."""
    drawn = np.random.default_rng(seed).permutation(n_rows if of is None else int(of.max(initial=0)) + 1)
    return (drawn if of is None else np.argsort(drawn[of], kind="stable"))[:MOST_ROWS]


def seen(predicted: Ints, y: Ints, n_features: int | None = None, of: Ints | None = None) -> Comparison:
    """How often predictions are right on the rows that they were learned from, each ``of`` a subject, if given."""
    rates = np.bincount(y, minlength=2) / max(len(y), 1)
    usual = int(rates.argmax())
    gains, of_usual = (predicted == y) - 1.0 * (y == usual), float(rates[usual])
    if n_features is None or len(y) <= MOST_ROWS:
        return Comparison(usual, float(gains.mean()), of_usual)
    units = np.arange(len(y)) if of is None else of
    by_heart = learned_by_heart(rates, spread_by_rows(rates, n_features, len(np.unique(units))))
    return Comparison(usual, float(gains.mean()) - by_heart, of_usual, error=_error(gains, units))


def _error(gains: Floats, of: Ints) -> float:
    """Of their mean, where those of one subject may be alike."""
    n, sums = len(np.unique(of)), np.bincount(of, gains - gains.mean())
    return math.sqrt(float(np.square(sums).sum()) * n / max(n - 1, 1)) / len(gains)


def tried(
    y: Ints, answers: Callable[[Ints, Ints], Ints], seed: int, most: int = FOLDS, of: Ints | None = None
) -> Comparison:
    """Try a learner on rows that are kept from it, one third at a time, as long as there is doubt; rows of one subject
    are kept together. All of it has to be public or released: who gives ``answers`` has seen to that."""
    of = np.arange(len(y)) if of is None else of
    usual, folds = int(np.bincount(y).argmax()), np.random.default_rng(seed).permutation(int(of.max()) + 1)[of] % FOLDS
    gains = of_usual = np.empty(0)
    for fold in range(most):
        asked = np.flatnonzero(folds == fold)
        of_usual = np.append(of_usual, y[asked] == usual)
        right = answers(np.flatnonzero(folds != fold), asked) == y[asked]
        gains = np.append(gains, right - 1.0 * (y[asked] == usual))
        error = _error(gains, np.concatenate([of[folds == one] for one in range(fold + 1)]))
        trial = Comparison(usual, float(gains.mean()), float(of_usual.mean()), error=error, where=KEPT_ROWS)
        if abs(trial.ahead) > BEYOND_DOUBT * trial.error > 0:
            break
    return trial


#: Of errors, from which on a few rows more are learned by heart as well.
_NEARLY_ALL = 0.8


class ByHeart(NamedTuple):
    """The share of all rows that a model is right about for having seen them, at most; how many of its errors on other
    rows that spares it on these, and how often it is wrong about others, by group where these are known."""

    right: float = 1.0
    spared: Floats = np.ones(1)
    wrong: Floats = np.ones(1)


def tried_on_parts(
    y: Ints,
    answers: Callable[[Ints], Ints],
    seed: int,
    n_rows: int | None,
    groups: Floats | None = None,
    folds: int = FOLDS,
    of: Ints | None = None,
) -> tuple[Comparison, float, ByHeart]:
    """Try a learner, where ``answers`` of some rows are those to all. Also by how much less it is ahead on others than
    on rows that teach it; and what it knows by heart of ``n_rows`` like them, a network of more rows as much less,
    others (None) not: by how much each row belongs to each of the ``groups``, and to which subject it is ``of``, if
    given."""
    of = np.arange(len(y)) if of is None else np.unique(of, return_inverse=True)[1]
    if of.max() < FOLDS - 1:  # nobody could be kept
        return seen(answers(np.arange(len(y))), y), 0.0, ByHeart()
    known: list[float] = []
    lost: list[Floats] = []
    weights = np.column_stack([np.ones(len(y)), np.ones(len(y)) if groups is None else groups])

    def of_others(learned: Ints, others: Ints) -> Ints:
        found = answers(learned)
        known.append(seen(found[learned], y[learned]).ahead)
        sums = [weights[part].sum(axis=0) for part in (learned, others)]
        rights = (weights[part].T @ (found[part] == y[part]) for part in (learned, others))
        right, of_new = (np.clip(hits / np.maximum(n, 1.0), 0.0, 1.0) for hits, n in zip(rights, sums, strict=True))
        squares = [np.square(np.bincount(of[others], weight)).sum() for weight in weights[others].T]
        counted = np.maximum(sums[1], 1.0) ** 2 / np.maximum(squares, 1e-9)
        error = float(norm.ppf(0.95)) * np.sqrt(of_new * (1 - of_new) / np.maximum(counted, 1.0))
        spared = np.clip((right - of_new + error) / np.maximum(1 - of_new, 1e-9), 0.0, 1.0)
        nearly_all = np.maximum(spared - _NEARLY_ALL, 0.0) / (1 - _NEARLY_ALL)
        left = 1.0 if n_rows is None else len(learned) / n_rows
        lost.append(np.stack([spared * (left + (1 - left) * nearly_all), 1 - of_new]))
        return found[others]

    trial = tried(y, of_others, seed, folds, of)
    spared, wrong = np.mean(lost, axis=0)
    less = float(np.mean(known)) - trial.ahead
    if n_rows is not None and n_rows > len(y):  # some stand for all: what chance may have made is no loss
        less = (less - CLEARLY * trial.error) * len(y) / n_rows
    return trial, max(0.0, less), ByHeart(float(spared[0] * wrong[0]), spared[1:], wrong[1:])


@dataclass(frozen=True)
class AmountLook(PlainState):
    """By how much a model of amounts is ahead of a constant, one noisy number. Each row says at most 1 for or against:
    a record that comes, goes or gives way to a null record moves the sum by 1 at most, one that is replaced by any
    other by 2. With a power of 0 it says which is closer, whatever the spread."""

    n_rows: int
    n_features: int
    epsilon: float
    delta: float
    relation: NeighboringRelation
    share: float = 1.0
    power: int = 2
    releases: ClassVar[tuple[str, ...]] = ("by how much the model is ahead of a constant",)

    @property
    def gain(self) -> GaussianMechanism:
        """For the sum."""
        mu = math.sqrt((FOR_GAIN if self.power else FOR_CLOSER) * self.share) * gdp_mu(self.epsilon, self.delta)
        moved = 1.0 if self.relation.by_null else 2.0
        return GaussianMechanism(moved / mu, sensitivity=moved, relation=self.relation)

    @property
    def event(self) -> DpEvent:
        """The release."""
        return self.gain.event

    def release(self, y: Floats, predicted: Floats, usual: Any, spread: float, noise: NoiseSource) -> float:
        """Release the sum; a row without a prediction counts nowhere. Exact: what rows say is cut to a grid."""
        of_usual, of_model = np.abs(y - usual), np.abs(y - predicted)
        if self.power:
            gains = (of_usual**self.power - of_model**self.power) / spread**self.power
        else:
            gains = MOST_GAIN * np.sign(of_usual - of_model)
        return float(self.gain.release([exact_sum(gains / MOST_GAIN)], noise)[0])

    def may_stay(self, ahead: float) -> bool:
        """Whether the model is kept."""
        return ahead > AMOUNT_EVIDENCE * self.gain.sigma

    def is_clear(self, ahead: float) -> bool:
        """Whether nothing has to be said."""
        return ahead > CLEARLY * self.gain.sigma

    def warn(self, ahead: float, usual: float, owner: str, what: str) -> None:
        """Say that the constant is as good, or is what is predicted."""
        said = "is hardly better than the constant" if self.may_stay(ahead) else "predicts for every row the constant"
        warn_caller(
            f"{owner} {said} {usual:.4g}: by a released number its {what} is not clearly better (with {self.n_rows:,} "
            f"private rows and {self.n_features} features). More rows, a larger epsilon ({self.epsilon:g}), tighter "
            "bounds, more informative features or a looser constraint (if there is one) would help.",
            UtilityWarning,
        )


@dataclass(frozen=True)
class AmountMean(PlainState):
    """The mean of amounts that are cut off a few spreads from a released middle, by one noisy sum of how far each row
    is from there, in [-1, 1]: a null record in its place moves it by 1 at most, any other one by 2."""

    n_rows: int
    epsilon: float
    delta: float
    relation: NeighboringRelation
    most: float
    off: float = OFF
    known: float = KNOWN
    releases: ClassVar[tuple[str, ...]] = ("the mean of amounts, cut off a few spreads from their middle",)

    @property
    def total(self) -> GaussianMechanism:
        """For the sum."""
        moved = 1.0 if self.relation.by_null else 2.0
        wanted = moved * REACH / (self.known * self.n_rows)
        mu = min(wanted, math.sqrt(self.most) * gdp_mu(self.epsilon, self.delta))
        return GaussianMechanism(moved / mu, sensitivity=moved, relation=self.relation)

    @property
    def event(self) -> DpEvent:
        """The release."""
        return self.total.event

    def release(self, amounts: Floats, middle: float, spread: float, noise: NoiseSource) -> float:
        """Release the mean: from the middle as far as the noise lets one believe that it is off."""
        reach, total = REACH * spread, self.total
        off = float(total.release([exact_sum((amounts - middle) / reach)], noise)[0]) / self.n_rows
        return middle + reach * off / (1 + (REACH * (total.sigma / self.n_rows) / self.off) ** 2)


def exact_sum(said: Floats) -> float:
    """Private. Of what rows say, each at most 1 for or against, cut to a grid; what is no number counts nowhere."""
    return float((np.trunc(np.clip(said, -1.0, 1.0)[np.isfinite(said)] * _GRID) / _GRID).sum())


# ---- forecasts: what a release is going to carry, told from public numbers before anything is spent ---------------
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
#: Noise from which on gradients often carry nothing, whatever the features say of the classes.
DOUBTFUL = 0.06
#: Up to so many rows batches are the usual ones; to how many rows larger ones have been measured.
FEW_ENOUGH, MOST_MEASURED = 50_000, 1_000_000
_mu = lru_cache(maxsize=1024)(gdp_mu)  # what would do is found by asking for many rows at one ε


def default_n_teachers(n_rows: int, *, n_values: int, epsilon: float, delta: float) -> int:
    """How many disjoint parts to make of the rows: as many as balance noise against what a part can learn. A student of
    d features is wrong by noise of about ``Δ √d / (μ k)`` in the shares of k teachers, a teacher of ``n / k`` rows by a
    variance of about ``d k / n``. The sum of squares is least with k as the cube root of ``n (Δ / μ)²``."""
    least = max(ROWS_PER_TEACHER, ROWS_PER_CLASS * n_values)
    noise = VoteForecast(n_rows, n_values, epsilon, delta, n_teachers=1).noise
    balanced = TEACHERS_PER_ROOT * (n_rows * noise**2) ** (1 / 3)
    return int(max(1, min(balanced, n_rows // least, MOST_TEACHERS)))


def variance_of_shares(n_features: int, n_queries: int, *, n_rows: int, n_teachers: int, noise_std: float) -> float:
    """How far off a student's shares are: by the noise of the votes, and by what a teacher of few rows does not learn.
    The sum that :func:`default_n_teachers` makes smallest, ``d s² / q + c d k / n`` with its constant c."""
    learnt_too_little = 2.0 / TEACHERS_PER_ROOT**3  # so that the cube root is where the sum is smallest
    return n_features * (noise_std**2 / max(n_queries, 1) + learnt_too_little * n_teachers / n_rows)


def gradient_noise(n_rows: int, n_features: int, *, epsilon: float, delta: float) -> float:
    """Noise that DP-SGD of so many features has at best beside its signal, whatever its steps and batches are: all
    steps together tell the mean of clipped gradients with noise ``C / (μ n)`` in every direction, by ``√d`` of which a
    linear rule is moved. On logistic tables it may end below the most frequent class from about .07 on."""
    return math.sqrt(n_features) / (gdp_mu(epsilon, delta) * n_rows)


_HIDDEN = 64  # units of the usual network


def default_net(
    n_rows: int, n_features: int, n_outputs: int, *, epsilon: float, delta: float, most: float = DOUBTFUL
) -> str:
    """ "additive" where noise drowns hidden units, else "mlp": P parameters together carry noise of ``√P / (μ n)``
    beside gradients of norm 1. Beyond ``most`` hidden units cost more accuracy than they find; what drowns in noise has
    no gap between groups either, so parity is no reason for it."""
    n_parameters = (n_features + 1) * _HIDDEN + (_HIDDEN + 1) * n_outputs
    noise = gradient_noise(n_rows, n_parameters, epsilon=epsilon, delta=delta)
    return "additive" if noise > most else "mlp"


def larger_batches(n_rows: int) -> float:
    """How many times the usual batch to take, for as many times fewer passes. Noise follows the number of rows and how
    long all steps are together, and many rows need hardly more steps: batches grow by the power .72 of the rows. Beyond
    a million rows, where nobody has measured it, they stay as they are."""
    return max(1.0, (min(n_rows, MOST_MEASURED) / FEW_ENOUGH) ** 0.72)


def units_of(relation: NeighboringRelation) -> str:
    """What is counted where numbers say how much was learned from: of a subject, all rows are one."""
    return "subjects" if relation.protects == Protects.SUBJECT else "private rows"


@dataclass(frozen=True)
class VoteForecast(PlainState):
    """What votes are going to tell, by public numbers alone."""

    n_rows: int
    n_values: int
    epsilon: float
    delta: float
    n_teachers: int | None = None
    share: float = 1.0
    relation: NeighboringRelation = NeighboringRelation.REPLACE_ONE

    @property
    def units(self) -> str:
        """What ``n_rows`` counts: of a subject, all rows are one."""
        return units_of(self.relation)

    @property
    def mu(self) -> float:
        """Gaussian cost of the votes."""
        return math.sqrt(self.share) * _mu(self.epsilon, self.delta)

    @property
    def moved(self) -> float:
        """How far one changed vote moves a histogram: with two values one count says all, as in ``NoisyVotes``."""
        return 1.0 if self.n_values <= 2 else math.sqrt(2.0)

    @property
    def n_parts(self) -> int:
        """Teachers, of disjoint parts of the rows: as many as are given, or as there usually are."""
        return self.n_teachers or default_n_teachers(
            self.n_rows, n_values=self.n_values, epsilon=self.epsilon, delta=self.delta
        )

    @property
    def noise(self) -> float:
        """Standard deviation of the noise in the mean share of a value.
        However many rows are asked about: more of them need more noise each."""
        return self.moved / (self.mu * self.n_parts) if self.mu else math.inf  # an ε that floats cannot tell from 0

    @property
    def snr_too_low(self) -> bool:
        """Whether no look at a student could tell what it learned from luck."""
        return self.noise > (HOPELESS if _mu(self.epsilon, self.delta) <= FREE_MU else HOPELESS_AT_EASE)


def what_is_enough(forecast: Any, is_enough: Callable[[Any], bool]) -> tuple[int | None, float | None]:
    """The rows by which a forecast is good enough, and the ε, to two digits; None where no more of it helps."""
    rows = smallest(lambda n: is_enough(replace(forecast, n_rows=int(n))), float(forecast.n_rows), 1e8)
    epsilon = smallest(lambda epsilon: is_enough(replace(forecast, epsilon=epsilon)), forecast.epsilon, 1e3)
    return None if rows is None else int(rows), epsilon


def ways_of(enough: tuple[int | None, float | None], relation: NeighboringRelation) -> str:
    """Either of what is enough, in words; empty where no more of either helps."""
    rows, epsilon = enough
    ways = [] if rows is None else [f"{rows:,} {units_of(relation)}"]
    return " or ".join(ways if epsilon is None else [*ways, f"epsilon={epsilon:g}"])


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
