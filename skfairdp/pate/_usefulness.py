"""What is told of a student: it beats the most frequent class on released votes, and it is as fair as was asked."""

import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from skfairdp._usefulness import CLEAR, Comparison, VoteForecast, learned_by_heart, what_is_enough
from skfairdp._utils import warn_caller
from skfairdp.exceptions import FairnessWarning, UtilityWarning
from skfairdp.fairness import constant_meets, read_rate_constraints
from skfairdp.pate._constrained_student import ConstrainedStudent
from skfairdp.pate._query_plan import ALL_BUT, SumsForecast
from skfairdp.pate._soft_label_student import SoftLabelStudent
from skfairdp.pate._student_training import ConstantStudent, LabelGate, StudentTrainingSet
from skfairdp.pate._votes import UNANSWERED

FOLDS = 3
LEAST_QUERIES = 4 * FOLDS
LEAST_KEPT = 20 * FOLDS  # to judge a student that others than ours have made
#: What a student that learned nothing may cost in accuracy, on average, by passing for a better one.
ALLOWED = 0.005
#: By how much sums over private rows have to be ahead on sampled ones, whose rates are off by about that: .02 to .08.
SAMPLED = 0.03
#: By how much constraints may be broken on public rows before it is told: about a row of a cell.
NEAR = 0.005


Teach = Callable[[StudentTrainingSet], Any]


def fall_back_to_majority(
    student: Any, lessons: StudentTrainingSet, classes: Any, owner: str, teach: Teach, given: Any
) -> Any:
    """The student, or the most frequent class where the released votes do not show that the student beats it; all of it
    post-processing. A student that stays is compared with the constant by the votes, less what it may have learned of
    their noise, and one that was ``given`` and is not ours by votes that were kept from it; teachers are surer than
    they are right, so that ``ALLOWED`` is no gain. Where the noise in a share is below ``CLEAR`` it stays, where it is
    hopeless it never does; between, it is trained without one third of the queries at a time and compared on the votes
    left out."""
    forecast = lessons.votes.forecast
    if lessons.n_classes < 2 or forecast is None:
        return student
    noise = forecast.noise
    if noise > CLEAR:
        usual = majority_class(lessons)
        if forecast.snr_too_low or not _beats(usual, lessons, teach):
            student = ConstantStudent(lessons.n_classes, usual)
    predicted = np.asarray(student.predict(lessons.X), dtype=np.int64)
    if len(np.unique(predicted)) == 1:
        is_public = noise <= CLEAR and lessons.limits is None  # else noise alone may be why, or rows are not given
        more = f" So may more public rows than {len(lessons.X):,}." if is_public else ""
        warn_caller(_words(forecast, classes[predicted[0]], owner) + more, UtilityWarning)
        return student
    rows, shares = lessons.believed
    rates = np.maximum(shares.mean(axis=0) if lessons.votes.class_counts is None else lessons.votes.class_counts, 1e-9)
    usual, by_heart, error = int(rates.argmax()), 0.0, 0.0
    where, ours = "of the released votes", given is None or isinstance(given, SoftLabelStudent | ConstrainedStudent)
    by_error = lessons.denoiser is None
    if not ours and len(lessons.queries) >= LEAST_KEPT:  # a forest knows its queries by heart
        with contextlib.suppress(Exception):  # that two thirds are too few for it is no reason to lose it
            predicted, where, by_error = _answers_to_others(lessons, teach), f"{where} that were kept from it", True
    gains = shares[np.arange(len(rows)), predicted[rows]] - shares[:, usual]
    if by_error:
        error = float(gains.std(ddof=1)) / math.sqrt(len(gains)) if len(gains) > 1 else math.inf
    else:  # what a regression that follows d directions makes of a row is off by √d times the noise in the mean
        by_heart = learned_by_heart(rates / rates.sum(), noise * math.sqrt(lessons.denoiser.n_followed_))
    ahead, of_usual = float(gains.mean()), float(shares[:, usual].mean())
    found = Comparison(usual, ahead - by_heart, of_usual, error, where, least=ALLOWED)
    if isinstance(forecast, SumsForecast) and lessons.limits is not None and ahead < SAMPLED:
        found.warn(classes[usual], owner, falls_back=True)
        return ConstantStudent(lessons.n_classes, usual)
    if not found.is_better and ahead > 0 and not by_error:
        warn_caller(
            f"{owner} may be no better than the class {classes[usual]} for every row: it agrees with a share of "
            f"{of_usual + ahead:.3f} {where}, that class alone with {of_usual:.3f}, and overfitting of noise may "
            f"account for {by_heart:.3f}. More rows, fewer features or categories, or a larger 'epsilon' would help.",
            UtilityWarning,
        )
    elif not found.is_better:
        is_behind = ahead < -max(ALLOWED, by_heart, 3 * error)
        if isinstance(student, ConstrainedStudent):  # whose bounds one class may break
            is_behind &= constant_meets(read_rate_constraints(student.constraints, owner))
        found.warn(classes[usual], owner, falls_back=is_behind)
        if is_behind:  # one class is right more often, and has no gap
            return ConstantStudent(lessons.n_classes, usual)
    return student


def majority_class(lessons: StudentTrainingSet) -> int:
    """The most frequent class by what was released: counts, else votes."""
    return int(_rates(lessons).argmax())


def _rates(lessons: StudentTrainingSet) -> NDArray[np.float64]:
    """Released rates of the classes."""
    counts = lessons.votes.class_counts
    rates = np.maximum(_shares(lessons).mean(axis=0) if counts is None else counts, 1e-9)
    return rates / rates.sum()


def _shares(lessons: StudentTrainingSet) -> NDArray[np.float64]:
    votes = lessons.votes
    if votes.shares is not None:
        return votes.shares
    return np.eye(lessons.n_classes)[votes.labels] * (votes.labels != UNANSWERED)[:, None]


def _beats(usual: int, lessons: StudentTrainingSet, teach: Teach) -> bool:
    """Whether students get so much more of the votes kept from them than the usual class that nothing is at risk. One
    that learned nothing loses ``L = Σ q_k (p_usual - p_k)``, and is ahead by z standard errors s with probability
    ``Φ(-z - L/s)``: the smallest z by which ``L Φ(-z - L/s)`` is within what is allowed is asked for. One that predicts
    rare classes far too often is right on ``Σ min(q_k, p_k)`` at best, which has to win more than L."""
    n_queries, shares, rates = len(lessons.queries), _shares(lessons), _rates(lessons)
    if n_queries < LEAST_QUERIES:
        return False
    predicted = _answers_to_others(lessons, teach)
    gains = shares[np.arange(n_queries), predicted] - shares[:, usual]
    error, at_risk = float(gains.std(ddof=1)) / math.sqrt(n_queries), float((rates[usual] - rates[predicted]).mean())
    of_student = np.bincount(predicted, minlength=lessons.n_classes) / n_queries
    at_best = float(np.minimum(of_student, rates).sum() - rates[usual])
    if at_best < at_risk:
        return False
    if error == 0 or at_risk <= ALLOWED:
        return bool(np.any(predicted != usual))
    return float(gains.mean()) > -error * float(ndtri(ALLOWED / at_risk)) - at_risk


def _answers_to_others(lessons: StudentTrainingSet, teach: Teach) -> NDArray[np.int64]:
    """Answers to each third of the queries by a student of the others."""
    fold = np.arange(len(lessons.queries)) % FOLDS  # they are in random order
    predicted = np.empty(len(fold), dtype=np.int64)
    for left_out in range(FOLDS):
        student = teach(lessons.part(np.flatnonzero(fold != left_out)))
        predicted[fold == left_out] = student.predict(lessons.X[fold == left_out])
    return predicted


def _words(forecast: VoteForecast, predicted: Any, owner: str) -> str:
    if forecast.snr_too_low and forecast.share < 1 - ALL_BUT + 1e-9:  # nearly everything went to counts, as votes had
        forecast = replace(forecast, share=min(1.0, forecast.share / (1 - ALL_BUT)))  # had too much noise before that
    target = min(CLEAR, forecast.noise / 2)
    rows, epsilon = what_is_enough(forecast, lambda other: other.noise <= target)
    ways = [f"about {rows:,} {forecast.units}"] if rows is not None else []
    ways += [f"epsilon={epsilon:g}"] if epsilon is not None else []
    ways += ["more teachers"] if forecast.n_teachers is not None else []
    return (
        f"{owner} predicts the class {predicted} for every row: by the released votes its student is no better. With "
        f"{forecast.n_rows:,} {forecast.units} at epsilon={forecast.epsilon:g} the noise in the mean share of a class "
        f"has a standard deviation of {forecast.noise:.2g}. {' or '.join(ways).capitalize() or 'A larger delta'} "
        f"would bring it to {target:.2g}, which may help."
    )


# ---- fairness --------------------------------------------------------------------------------------------------
def warn_of_gaps(model: Any, is_stuck: bool, X: NDArray[np.float64]) -> bool:
    """Say so where the gate stopped answering, or the student is above ``gamma`` though something aims at it. One that
    gives one class to all of ``X`` has no gap there, and ``fall_back_to_majority`` has told of it."""
    owner, gate, gamma = type(model).__name__, model._parts()["gate"], model._held_to()[0]
    by_counts, sampled = getattr(model.student_, "counted", None) is not None, model._lessons.limits is not None
    rows = "private" if by_counts else "sampled" if sampled else "public"
    more = "Add public rows" if rows == "public" else "Raise 'epsilon'"
    if is_stuck:
        warn_caller(
            f"The gate of {owner} reached a state in which every further label would raise the disparity, so some "
            f"queries went unanswered (gamma={gamma}, min_count={gate.min_count}). Raise 'gamma' or "
            "'min_count'; gamma * (min_count + 1) above 2 avoids this.",
            FairnessWarning,
        )
    if isinstance(model._given_student, ConstrainedStudent):
        student = model.student_
        if not isinstance(student, ConstrainedStudent) or student.violation_ <= NEAR:
            return False
        warn_caller(
            f"The student of {owner} violates its constraints by {student.violation_:.3f} on the {rows} rows "
            f"({student.unconstrained_violation_:.3f} without them); less would cost too much accuracy. {more}, "
            "or loosen the bounds.",
            FairnessWarning,
        )
        return True
    if gamma is None or model.student_gap_ <= gamma or len(np.unique(model.student_.predict(X))) == 1:
        return is_stuck
    gap, more = f"{model.student_gap_:.3f}", f". {more}"
    said = f"The student of {owner} has a demographic disparity of {gap} on the {rows} rows"
    if model._penalised:
        more = ", and no gate holds it there. Raise its 'penalty_weight' (refit(student=...) is free)"
    elif gate is None or isinstance(gate, LabelGate):
        more = ", and no gate holds it there. Set gate='votes'"
    elif model._lessons.n_small_groups or not getattr(model.student_, "is_nearest", True):
        more = f": groups of so few rows may be apart by chance{more}"
    elif hasattr(model.student_, "predict_proba"):
        said = f"The smallest demographic disparity the student of {owner} reaches on the {rows} rows is {gap}"
    else:
        more = ", and has no predict_proba to correct it by. Give a 'student' that has one (refit is free)"
    warn_caller(f"{said}, above gamma={gamma}{more}, or use IDP3 at prediction.", FairnessWarning)
    return True


#: Noise in the mean share of a group from which on gaps stay as they were (1,000 and 4,000 rows with a gap of .3).
FAIR_NOISE = 0.025
#: The rates of two groups of a part of m rows differ by chance with a standard deviation of 1/√m: by a twentieth here.
FAIR_PART = 400


@dataclass(frozen=True)
class FairForecast:
    """What the votes of SF-PATE are going to hold, by public numbers alone."""

    votes: VoteForecast
    n_queries: int
    sigma: float | None
    fair_parts: bool
    hard: bool = False
    units: str = "rows"

    @property
    def noise(self) -> float:
        """Standard deviation of the noise in the mean share of a value."""
        if self.sigma is None:
            return self.votes.noise
        return self.sigma / (self.votes.n_parts * math.sqrt(self.n_queries))

    @property
    def problems(self) -> list[str]:
        """What speaks against it that is public; one value leaves nothing to hold."""
        found: list[str] = []
        rows_of_a_part = self.votes.n_rows // self.votes.n_parts
        if self.votes.n_values < 2:
            return found
        if self.noise > FAIR_NOISE:
            found.append(
                f"noise in the mean share of a value has a standard deviation of {self.noise:.2g}, and above "
                f"{FAIR_NOISE:g} gaps are hardly reduced"
            )
        if self.fair_parts and rows_of_a_part < FAIR_PART:
            found.append(
                f"each of {self.votes.n_parts} teachers learns fairness from {rows_of_a_part} {self.units}, and "
                f"fewer than {FAIR_PART} are too few"
            )
        if self.asks_little:
            found.append(
                f"the student learns fairness from the {self.n_queries} rows with votes, and fewer than {FAIR_PART} "
                "are too few"
            )
        return found

    @property
    def asks_little(self) -> bool:
        """Whether a fair student sees too few rows for its rates to be those of others."""
        return self.hard and not self.fair_parts and self.n_queries < FAIR_PART

    @property
    def enough(self) -> tuple[int | None, float | None]:
        """The rows that would do, and the ε, to two digits; None where none do."""
        rows, epsilon = what_is_enough(self.votes, lambda votes: not replace(self, votes=votes).problems)
        return rows, epsilon if self.sigma is None else None

    def words(self, owner: str) -> str:
        """What is said of a fit that cannot be fair."""
        rows, epsilon = self.enough
        ways = ["voting='soft'"] if self.asks_little else []
        ways += [f"{rows:,} {self.units}"] if rows is not None else []
        ways += [f"epsilon={epsilon:g}"] if epsilon is not None else []
        ways += [f"max_queries={FAIR_PART} or more"] if self.asks_little else []
        ways += ["another number of teachers"] if self.votes.n_teachers is not None else []
        ways += ["a smaller sigma"] if self.sigma is not None and self.noise > FAIR_NOISE else []
        enough = " or ".join(ways or [f"more {self.units} at a larger epsilon"])
        return (
            f"The votes are too noisy or too few for the constraint of {owner}: {'; '.join(self.problems)}. "
            f"{enough[:1].upper() + enough[1:]} would suffice. PFLDClassifier has the same guarantee and "
            "needs fewer rows: it measures its constraint on all of them at once."
        )
