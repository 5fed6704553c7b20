"""A student for noisy vote shares that meets any constraints on rates: equalized odds, four-fifths rule, bounds."""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, eye_array, hstack, kron, vstack
from scipy.special import ndtri, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from skfairdp._docs import shared_docs
from skfairdp._row_wise import all_probabilities
from skfairdp._tables import on_simplex
from skfairdp._typing import Floats as Array, Ints as Codes
from skfairdp._usefulness import CLEAR, VoteForecast
from skfairdp._utils import BLAS, NamedEstimator, fit_softmax
from skfairdp.fairness import RateConstraints, read_rate_constraints, tally
from skfairdp.pate._soft_label_student import LEVELS, LevelRates, SoftLabelStudent
from skfairdp.privacy import DpEvent, GaussianMechanism, NeighboringRelation, NoiseSource

MET = 1e-6  # what a linear program calls met
# Of a violation of 1, in accuracy. Gaps of a few thousand rows have noise of some hundredths, which no feature
# explains: a rule that closes them at any price is right about next to nobody.
_PRICE = 10.0
_HELD = 0.005  # what it is worth that all constraints hold, and not nearly
_ROUNDS = 12
SETTLED = 1e-3  # of a rate: to use up the bounds more closely is worth no accuracy
_TIE = 1e-9  # of what a class is worth
_MOST_ROWS = 4000  # of the program; counts are always taken of all


@dataclass(frozen=True)
class BlindRule:
    """A class for every row, by how likely each group and label are for its features. The answer is the class k with
    the largest ``P(y = k) - Σ_ay P(a, y) weights[a, y, k]``: of all rules that know features alone, one of this kind is
    the most accurate under any constraints on rates (Xian & Zhao 2024)."""

    weights: Array
    counts: Array
    tie: float = 0.0

    def scores(self, likely: Array) -> Array:
        """What speaks for each class, shape (n_rows, n_classes)."""
        return likely.sum(axis=1) - np.einsum("iay,ayk->ik", likely, self.weights)

    def answers(self, likely: Array) -> Codes:
        """The class for each row. A linear program puts some rows right where two classes are worth the same: ``tie``,
        and not the last digits of a processor, says which of them these rows get."""
        scores = self.scores(likely)
        return np.asarray((scores + self.tie * np.arange(scores.shape[1])).argmax(axis=1))


def group_blind_rule(
    held: RateConstraints, likely: Array, groups: Codes, labels: Array, chance: float = 0.0
) -> tuple[BlindRule, BlindRule]:
    """The rule that meets the constraints on rows whose groups are known, and the one without constraints. Multipliers
    come from the program in which a row is in every group with its chance; what the rows, counted by their groups, say
    beyond that moves its bounds, a few times over at most. The largest accuracy less ten times the violation wins.
    What is within ``chance`` standard errors of a difference is no violation."""
    n_groups, n_classes = likely.shape[1:]
    sizes = np.maximum(likely.sum(axis=0), 1.0)
    every = np.arange(held.n_inequalities)
    unit = np.stack([held.row_weights(every == j, sizes) for j in every])
    used = likely[:: -(-len(likely) // _MOST_ROWS)]
    slopes = np.einsum("iay,jayk->jik", used, unit) / len(used)
    gains = used.sum(axis=1) / len(used)

    def rule_of(multipliers: Array, tie: float) -> BlindRule:
        counts = np.zeros((n_groups, n_classes, n_classes))
        rule = BlindRule(held.row_weights(multipliers, sizes), counts, tie)
        np.add.at(rule.counts.transpose(0, 2, 1), (groups, rule.answers(likely)), labels)
        return rule

    def worth(rule: BlindRule, bounds: Array) -> float:
        broken = max(float((held.violations(rule.counts) + held.bounds - bounds).max()), 0.0)
        accuracy = float(np.trace(rule.counts.sum(axis=0)) / len(labels))
        return accuracy - _PRICE * broken + (_HELD if broken <= MET else 0.0)

    shift = np.zeros(held.n_inequalities)
    free = best = rule_of(shift, -_TIE)
    if held.largest_violation(free.counts) <= MET:
        return free, free
    by_chance = chance * np.sqrt(held.variances(free.counts)) * (np.bincount(held.terms[0]) > 1)
    bounds, most = np.maximum(held.bounds_on_few(free.counts), by_chance), worth(free, held.bounds)
    for k in range(_ROUNDS):
        multipliers = _multipliers(gains, slopes, bounds - shift)
        found = max((rule_of(multipliers, tie) for tie in (-_TIE, _TIE)), key=lambda rule: worth(rule, bounds))
        if (value := worth(found, bounds)) > most:
            best, most = found, value
        broken = held.violations(found.counts) + held.bounds - bounds
        moved = np.where((broken > 0) | (multipliers > 0), broken, 0.0)
        if float(broken.max()) <= MET and np.abs(moved).max() <= SETTLED:
            break
        shift = shift + moved / (1 + k / 4)  # ever shorter steps, or it may go round in circles
    return best, free


def _multipliers(gains: Array, slopes: Array, bounds: Array) -> Array:
    """Prices of the constraints where answers, which may be chances, are as right as they can be under them."""
    (n_rows, n_classes), n_lines = gains.shape, len(bounds)
    # Of sums over rows, against answering the first class: of means the solver gives up, as of numbers next to nothing.
    gain = n_rows * (gains[:, 1:] - gains[:, :1]).ravel()
    lines: Any = n_rows * np.column_stack(
        [(slopes[:, :, 1:] - slopes[:, :, :1]).reshape(n_lines, -1), -np.ones(n_lines)]
    )
    right = n_rows * (bounds - slopes[:, :, 0].sum(axis=1))
    if n_classes > 2:  # chances of a row sum to 1 at most
        once = kron(eye_array(n_rows, format="csr"), np.ones((1, n_classes - 1)))
        lines = vstack([csr_array(lines), hstack([once, csr_array((n_rows, 1))])])
        right = np.append(right, np.ones(n_rows))
    limits = [(0.0, 1.0)] * len(gain) + [(0.0, None)]
    found = linprog(np.append(-gain, n_rows * _PRICE), A_ub=lines, b_ub=right, bounds=limits, method="highs")
    if found.x is None:  # all answers are feasible at the price of a violation, but a solver may give up on digits
        return np.zeros(n_lines)
    return np.maximum(-found.ineqlin.marginals[:n_lines], 0.0)


_OWNER = "ConstrainedStudent"
_FAR = 1e6  # in standard deviations


@shared_docs
class ConstrainedStudent(ClassifierMixin, NamedEstimator):
    """Regression on released vote shares whose predictions satisfy constraints on rates, without using the group.

    Everything it reads is public or differentially private, so whatever it does is post-processing and costs nothing.
    Constraints are met on the public rows, **whose true labels are estimates**: the shares that a regression on all
    released votes gives a row and its group. What the votes do not say, it cannot hold. So where a constraint looks at
    the true label, the teachers of :class:`FairPATEClassifier` get the group of a row as one more feature: what else
    sets the labels of two groups apart would go unseen, and equal rates by estimated labels would be unequal ones by
    true labels.

    The features of a row say how likely each label is and, by a logistic regression on the public groups, how likely
    each group. A linear program over the public rows finds what each answer has to cost by group and label; the answer
    is the class that is then worth most. It is the most accurate rule that knows features alone, where both estimates
    are right. A gap that features do not explain, such as the noise of few public rows, stays: at most
    10 % of accuracy is given up for 1 % of violation, and ``violation_`` is what is left. Among more than two groups
    some differ by chance: what the largest of so many differences has by chance, in half of the cases, stays as well.

    Parameters
    ----------
    constraints : str, RateParity, RateBound, fairlearn moment or list of them, default="equalized_odds"
        "equalized_odds", "equal_opportunity", "demographic_parity", ``RateParity("selection_rate", ratio_bound=0.8)``,
        ``RateBound("false_negative_rate", upper=0.1)`` and others, several at once, any number of classes and groups:
        see :class:`skfairdp.fairness.RateParity`. Names stand for a difference of at most 0.01.

    Attributes
    ----------
    violation_ : float
        By how much the worst constraint is broken on the public rows, by estimated labels; 0 where all hold.
    unconstrained_violation_ : float
        The same for the most accurate answers.
    satisfied_ : bool
        Whether all constraints hold on the public rows, by estimated labels.
    weights_ : ndarray of shape (n_groups, n_classes, n_classes)
        What each answer (last axis) costs, by group and true class. Post-processing of released values: public.
    classes_ : ndarray of shape (n_classes,)
        Class codes, 0 to n_classes - 1.
    {n_features_in_}

    See Also
    --------
    SoftLabelStudent : Demographic parity, up to ``gamma``.
    skfairdp.postprocessing.PrivateThresholds : The same constraints judged on private rows, for more ε.

    Examples
    --------
    >>> from skfairdp import FairPATEClassifier
    >>> from skfairdp.datasets import make_biased_classification, train_private_public_test_split
    >>> from skfairdp.pate import ConstrainedStudent
    >>> data = make_biased_classification(8000, disparity=0.3, random_state=0)
    >>> split = train_private_public_test_split(*data, random_state=0)
    >>> student = ConstrainedStudent("equal_opportunity")
    >>> model = FairPATEClassifier(epsilon=2.0, student=student, classes=[0, 1], random_state=0)
    >>> model = model.fit(
    ...     split.X, split.y, sensitive_features=split.sensitive_features, X_public=split.public
    ... )
    >>> student = model.student_
    >>> print(f"violation {student.unconstrained_violation_:.2f} before, {student.violation_:.2f} after")
    violation 0... before, 0.0... after
    """

    _parameter_constraints: dict[str, Any] = {"constraints": "no_validation"}

    def __init__(self, constraints: Any = "equalized_odds") -> None:
        self.constraints = constraints

    def check_parameters(self) -> None:
        """Raise a ValueError where the constraints are none: before votes are paid for."""
        read_rate_constraints(self.constraints, _OWNER)

    @property
    def looks_at_labels(self) -> bool:
        """Whether any constraint looks at the true label."""
        return any(one.rate != "selection_rate" for one in read_rate_constraints(self.constraints, _OWNER))

    def rates_of(self, domain: Any, classes: Any) -> RateConstraints:
        """Return the constraints for these groups and classes.

        {names_of_codes}

        Returns
        -------
        constraints : RateConstraints
            Inequalities on counts of rows.

        Raises
        ------
        ValueError
            They name a group or a class that is none of these, or compare groups where there is one.
        """
        asked = read_rate_constraints(self.constraints, _OWNER)
        return RateConstraints(asked, list(domain), np.asarray(classes).tolist(), _OWNER).with_groups_to_compare()

    def of_names(self, domain: Any, classes: Any) -> "ConstrainedStudent":
        """Return the same student, told what the groups and classes are called that it gets as codes.

        {names_of_codes}

        Returns
        -------
        student : ConstrainedStudent
            Not fitted.
        """
        other = ConstrainedStudent(self.constraints)
        other._names = list(domain), list(np.asarray(classes))
        return other

    # Threads do not pay for products this small.
    @BLAS.wrap(limits=1)
    def fit(
        self,
        X: Array,
        shares: Array,
        *,
        noise_std: float = 0.0,
        X_public: Array | None = None,
        groups: Codes | None = None,
        n_groups: int | None = None,
        groups_asked: Codes | None = None,
        bends: bool = False,
    ) -> "ConstrainedStudent":
        """Fit on released shares.

        Parameters
        ----------
        {released_shares}
        X_public : ndarray of shape (n_public, n_features), default=None
            Rows on which the constraints are to hold; default ``X``.
        groups : ndarray of int of shape (n_public,)
            Group codes of those rows.
        n_groups : int, default=None
            Number of groups; default ``max + 1``.
        groups_asked : ndarray of int of shape (n_queries,), default=None
            Group codes of X, where the votes are on a row and its group.
        bends : bool, default=False
            Whether the estimate of the shares may bend, as that of :class:`SoftLabelStudent`.

        {returns_student}
        """
        if groups is None:
            raise ValueError(f"{_OWNER} needs 'groups' to hold its predictions to 'constraints'.")
        public = np.asarray(X if X_public is None else X_public, dtype=float)
        n_classes, n_groups = shares.shape[1], int(n_groups or groups.max() + 1)
        names = getattr(self, "_names", (range(n_groups), range(n_classes)))
        self._by_group = groups_asked is not None
        rows, seen = np.asarray(X, dtype=float), public
        if groups_asked is not None:
            rows, seen = with_groups(rows, groups_asked, n_groups), with_groups(public, groups, n_groups)
        self._shares = SoftLabelStudent().fit(rows, shares, noise_std=noise_std, X_public=seen, bends=bends)
        # Of so many pairs of groups the largest difference is beyond this by chance in half of the tables.
        chance = float(ndtri(1 - 1 / max(n_groups * (n_groups - 1), 2)))
        return self._hold(public, groups, n_groups, names, self._shares.predict_proba(seen), chance)

    @classmethod
    def around(cls, student: Any, constraints: Any, X: Array, groups: Codes, n_groups: int, n_classes: int) -> Self:
        """Return a fitted classifier with probabilities, whose answers are moved as constraints on selection rates ask.

        Parameters
        ----------
        student : classifier
            Fitted on class codes.
        constraints : object
            As of the constructor.
        X : ndarray of shape (n_public, n_features)
            Rows on which the constraints are to hold.
        groups : ndarray of int of shape (n_public,)
            Codes of their groups.
        n_groups, n_classes : int
            How many there are.

        Returns
        -------
        ConstrainedStudent
            Fitted.
        """
        held = cls(constraints)
        held._shares, held._by_group = student, False
        labels = all_probabilities(student, X, n_classes)
        return held._hold(X, groups, n_groups, (range(n_groups), range(n_classes)), labels)

    def _hold(
        self, public: Array, groups: Codes, n_groups: int, names: tuple[Any, Any], labels: Array, chance: float = 0.0
    ) -> Self:
        """Find what each answer costs, on public rows with so likely labels."""
        self.n_features_in_, self.classes_ = public.shape[1], np.arange(labels.shape[1])
        self._fit_groups(public, groups, n_groups)
        constraints = self.rates_of(*names)
        rule, free = group_blind_rule(constraints, self._likely(public), groups, labels, chance)
        self._rule, self.weights_ = rule, rule.weights
        self.violation_ = constraints.largest_violation(rule.counts)
        self.unconstrained_violation_ = constraints.largest_violation(free.counts)
        self.satisfied_ = self.violation_ <= MET
        return self

    @property
    def counts(self) -> Array:
        """Rows that the answers were chosen by, by group, likely label and answer."""
        return np.asarray(self._rule.counts)

    @property
    def estimates(self) -> tuple[Any, bool, tuple[Array, Array, Array]]:
        """What estimates the labels, whether it reads the group, and centre, scale and coefficients for the groups."""
        return self._shares, self._by_group, (self._center, self._scale, self._of_groups)

    def flows_from(self, other: Any, X: Array, groups: Codes) -> Array:
        """Rows by group, likely label, and what another student and this one answer.

        Parameters
        ----------
        other : classifier
            Of class codes.
        X : ndarray of shape (n_rows, n_features)
            Public or sampled rows.
        groups : ndarray of int of shape (n_rows,)
            Codes of their groups.

        Returns
        -------
        flows : ndarray of shape (n_groups, n_classes, n_classes, n_classes)
            By group, label, answer of the other student, and answer.
        """
        n_groups, n_classes = self._of_groups.shape[1], len(self.classes_)
        labels = all_probabilities(self._shares, with_groups(X, groups, n_groups) if self._by_group else X, n_classes)
        found = np.zeros((n_groups, n_classes, n_classes, n_classes))
        np.add.at(found.transpose(0, 2, 3, 1), (groups, other.predict(X), self.predict(X)), labels)
        return found

    def _fit_groups(self, public: Array, groups: Codes, n_groups: int) -> None:
        """How likely each group is by the features: of public rows and their groups alone."""
        std = public.std(axis=0)
        self._center, self._scale = public.mean(axis=0), np.where(std > 0, std, 1.0)
        rows = self._standardised(public)
        penalty = np.ones((rows.shape[1], 1))
        penalty[-1] = 1e-6 * len(rows)
        start = np.zeros((rows.shape[1], n_groups))
        self._of_groups = fit_softmax(rows, rows.T @ np.eye(n_groups)[groups], penalty, start=start, maxiter=500)

    def _standardised(self, X: Array) -> Array:
        with np.errstate(over="ignore"):  # of rows far outside, and scales next to nothing
            rows = np.clip((X - self._center) / self._scale, -_FAR, _FAR)
        return np.column_stack([rows, np.ones(len(X))])

    def _likely(self, X: Array) -> Array:
        """How likely each group and label are by the features alone, (n_rows, n_groups, n_classes)."""
        check_is_fitted(self, "classes_")
        X = np.asarray(X, dtype=float)
        n_groups = self._of_groups.shape[1]
        of_groups = softmax(self._standardised(X) @ self._of_groups, axis=1)
        if not self._by_group:
            return of_groups[:, :, None] * all_probabilities(self._shares, X, len(self.classes_))[:, None]
        labels = [self._shares.predict_proba(with_groups(X, np.full(len(X), a), n_groups)) for a in range(n_groups)]
        return of_groups[:, :, None] * np.stack(labels, axis=1)

    def predict(self, X: Array) -> Codes:
        """Class codes of shape (n_rows,).

        {predicts_labels}
        """
        return self.classes_[self._rule.answers(self._likely(X))]

    def predict_proba(self, X: Array) -> Array:
        """What speaks for each class, of shape (n_rows, n_classes): vote shares, moved as the constraints ask.

        {predicts_proba}
        """
        scores = self._rule.scores(self._likely(X))
        return on_simplex(scores + (1 - scores.sum(axis=1, keepdims=True)) / scores.shape[1])


def with_groups(X: Array, groups: Codes, n_groups: int) -> Array:
    """Rows with a column for each group."""
    return np.hstack([X, np.eye(n_groups)[groups]])


#: Least and most of the squared cost that votes have.
_SHARES = 0.1, 0.5
_DEGREE = 3  # of the curve that counts follow from level to level
_AT_ONCE = 2**16  # rows that answers are asked for
#: How far rates of sampled rows are from those of private ones, in one group: .02 to .08 on made-up and public tables
#: whose columns hang together otherwise in a small group (tests/pate/test_parity_look.py).
APART = 0.05


def share_of_look(forecast: VoteForecast) -> float:
    """What a look gets of the squared cost that votes have, by public numbers: half, while that leaves votes with half
    of the noise at which they are still clear. Being right a little more often is no use where fairness is unknown."""
    least, most = _SHARES
    return min(max(1.0 - (2.0 * forecast.noise / CLEAR) ** 2, least), most)


@dataclass(frozen=True)
class NoisyParityEstimate:
    """Noisy counts of the answers to the private rows by group and class, at all levels of a student together.
    A replaced row takes one count of each level away and adds one to another."""

    mu: float
    n_groups: int
    n_classes: int
    relation: NeighboringRelation = NeighboringRelation.REPLACE_ONE
    releases: ClassVar[tuple[str, ...]] = ("answers of the student by group",)

    @property
    def mechanism(self) -> GaussianMechanism:
        """For the counts of all levels there may be."""
        sensitivity = math.sqrt(2.0 * len(LEVELS))
        return GaussianMechanism(sensitivity / self.mu, sensitivity=sensitivity, relation=self.relation)

    @property
    def left_in_counts(self) -> float:
        """Standard deviation of the noise in a count, when counts follow a cubic from level to level."""
        return self.mechanism.sigma * math.sqrt((_DEGREE + 1) / len(LEVELS))

    @property
    def event(self) -> DpEvent:
        """One release."""
        return self.mechanism.event

    def release(self, student: Any, X: Array, groups: Codes, asked: Any, noise: NoiseSource) -> Any:
        """Release counts of the student's answers to private rows; return it with the gaps of its levels corrected."""
        if not isinstance(student, SoftLabelStudent):
            return student
        some = (slice(start, start + _AT_ONCE) for start in range(0, len(X), _AT_ONCE))
        answers = ((groups[rows], student.answers_at_levels(asked.limited(X[rows]))) for rows in some)
        shape = self.n_groups, self.n_classes
        counts = np.sum([[tally(of, codes, shape) for codes in answered] for of, answered in answers], axis=0)
        noisy = self.mechanism.release(counts.ravel(), noise).reshape(counts.shape)
        return seen_at_levels(student, asked, student.disparity, noisy, self.mechanism.sigma)


def seen_at_levels(student: Any, asked: Any, disparity: str, noisy: Array, sigma: float) -> Any:
    """The student with gaps of this kind at its levels, by released counts of its answers."""
    shape, sampled, told = noisy.shape[1:], asked.public, counts_of_levels(noisy, sigma)
    tables = [tally(sampled.groups, codes, shape) for codes in student.answers_at_levels(sampled.X)]
    expected = np.stack(tables).astype(float)
    known = corrected(noisy, expected, sigma) if asked.limits is not None else beside_public_rows(*told, expected)
    seen = LevelRates(*known[:2], comparisons(known[2], disparity))
    unseen = 0.0 if asked.is_within_noise is None else asked.is_within_noise[:, None]  # anything may be true of these
    found = student.with_gaps(seen.gaps, replace(seen, errors=np.maximum(seen.errors, unseen)), *told)
    found.disparity, found._released = disparity, (noisy, sigma)
    return found


def beside_public_rows(counts: Array, noise: Array, public: Array) -> tuple[Array, Array, Array]:
    """Rates by level, group and class, their errors, and group sizes: by noisy counts and few public rows, either by
    the inverse of its variance. Which of these is answered otherwise at a level is chance, which no line follows."""
    hits, n_classes = np.maximum(counts, 0.0), counts.shape[2]
    sizes, n_public = np.maximum(hits.sum(axis=2, keepdims=True), 1.0), public.sum(axis=2, keepdims=True) + 1.0
    rates, before = hits / sizes, (public + 1 / n_classes) / n_public
    of_noise = np.square(noise / sizes) * (np.square(1 - rates) + (n_classes - 1) * np.square(rates))
    of_rows = APART**2 + before * (1 - before) / n_public
    trusted = of_rows / (of_rows + of_noise)
    rates = before + trusted * (rates - before)
    of_groups = sizes.mean(axis=0)[:, 0]
    return rates / rates.sum(axis=2, keepdims=True), np.sqrt(of_rows * (1 - trusted)), of_groups / of_groups.sum()


def corrected(noisy: Array, expected: Array, sigma: float) -> tuple[Array, Array, Array]:
    """Rates by level, group and class that both noisy and sampled counts make likely, their errors, and group sizes.
    What sets the two apart changes little by level: a straight line for each group and class. Noisy rates are right on
    average, sampled ones off by about ``APART``: each line counts by the inverse of the two variances."""
    n_levels, _, n_classes = noisy.shape
    totals = noisy.sum(axis=2, keepdims=True)
    sizes = np.maximum(totals.mean(axis=0, keepdims=True), 1.0)  # of the groups, the same at all levels
    rates = expected / np.maximum(expected.sum(axis=2, keepdims=True), 1.0)
    apart = (noisy + (sizes - totals) / n_classes) / sizes - rates
    lines = _powers(n_levels, 1)
    found = np.einsum("lp,lgk->pgk", lines, apart)
    # Noise on the mean of a line is that of a quotient, on its slope that of a count whose total is known.
    mean = np.square(1 - rates.mean(axis=0)) + (n_classes - 1) * np.square(rates.mean(axis=0))
    noise = np.stack([mean, np.full(mean.shape, 1 - 1 / n_classes)])[: len(found)] * np.square(sigma / sizes)
    before = np.square(APART / np.abs(lines).max(axis=0))[:, None, None]  # both parts reach so far at the ends
    trusted = before / (before + noise)
    rates = np.clip(rates + np.einsum("lp,pgk->lgk", lines, trusted * found), 0.0, 1.0)
    rates /= np.maximum(rates.sum(axis=2, keepdims=True), 1e-300)
    errors = np.sqrt(np.einsum("lp,pgk->lgk", np.square(lines), before * (1 - trusted)))
    return rates, errors, (sizes / sizes.sum())[0, :, 0]


def counts_of_levels(noisy: Array, sigma: float) -> tuple[Array, Array]:
    """Counts by level, group and class that all levels together make likely, and what noise is left in each. From level
    to level few rows are answered otherwise, so that counts follow a cubic. By as much as they follow none, beyond the
    noise, it is no more than near them, and that counts as noise."""
    curves = _powers(len(noisy), _DEGREE)
    along = np.einsum("lp,mp,mgk->lgk", curves, curves, noisy)
    left = np.square(noisy - along).mean(axis=2, keepdims=True).sum(axis=0) / max(len(noisy) - curves.shape[1], 1)
    beside = np.maximum(left - sigma**2, 0.0) + 0 * noisy
    return along, np.sqrt(sigma**2 * np.square(curves).sum(axis=1)[:, None, None] + beside)


def _powers(n_levels: int, degree: int) -> Array:
    """Polynomials of the level up to a degree, orthonormal."""
    powers = np.vander(np.linspace(-1, 1, n_levels), min(n_levels, degree + 1), increasing=True)
    return np.asarray(np.linalg.qr(powers)[0])


def shrink_gaps(student: Any, public: Any) -> Any:
    """The student, with its level chosen by what its gaps on so few public rows leave likely on others. Of 90 rows of a
    group 7 % are six, and the first of 21 levels on which they happen to agree with others is no parity."""
    if not isinstance(student, SoftLabelStudent):
        return student
    sizes, n_classes = np.bincount(public.groups, minlength=public.n_groups), len(student.classes_)
    counts = [tally(public.groups, codes, (len(sizes), n_classes)) for codes in student.answers_at_levels(public.X)]
    smooth = np.stack(counts) + 1 / n_classes  # nothing is known of a group without rows
    n_rows = smooth.sum(axis=2, keepdims=True)
    rates = smooth / n_rows
    weights = comparisons(sizes / sizes.sum(), student.disparity)
    return student.with_gamma(student.gamma, LevelRates(rates, np.sqrt(rates * (1 - rates) / n_rows), weights))


def comparisons(shares: Array, disparity: str) -> Array:
    """What :func:`~skfairdp.fairness.disparities` compares: weights of the groups' rates, one line a comparison."""
    alone = np.eye(len(shares))
    if disparity == "between":
        return (alone[:, None] - alone[None]).reshape(-1, len(shares))
    if disparity == "overall":
        return alone - shares
    others = (1 - alone) * shares
    rest = others.sum(axis=1, keepdims=True)
    return np.where(rest > 0, alone - others / np.maximum(rest, 1e-300), 0.0)  # one group has nobody to compare with
