"""A student for noisy vote shares that meets any constraints on rates: equalized odds, four-fifths rule, bounds."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from skfairdp._docs import shared_docs
from skfairdp._tables import on_simplex
from skfairdp._utils import BLAS, NamedEstimator, fit_softmax
from skfairdp.fairness import RateConstraints, read_rate_constraints
from skfairdp.pate._group_blind import MET, group_blind_rule
from skfairdp.pate._soft_label_student import SoftLabelStudent

Array = NDArray[np.float64]

_OWNER = "ConstrainedStudent"
_FAR = 1e6  # in standard deviations


@shared_docs
class ConstrainedStudent(ClassifierMixin, NamedEstimator):
    """Regression on released vote shares, whose answers meet constraints on rates; no group is needed to predict.

    Everything it reads is public or differentially private, so whatever it does is post-processing and costs nothing.
    Constraints are met on the public rows, **whose true labels are estimates**: the shares that a regression on all
    released votes gives a row and its group. What the votes do not say, it cannot hold. So where a constraint looks at
    the true label, the teachers of :class:`FairPATEClassifier` get the group of a row as one more feature: what else
    sets the labels of two groups apart would go unseen, and equal rates by estimated labels would be unequal ones by
    true labels.

    The features of a row say how likely each label is and, by a logistic regression on the public groups, how likely
    each group. A linear program over the public rows finds what each answer has to cost by group and label; the answer
    is the class that is then worth most. It is the most accurate rule that knows features alone, where both estimates
    are right. A gap that features do not explain, such as the noise of few public rows, is not closed at any price: no
    more than ten points of accuracy are given for a point of violation, and ``violation_`` says what is left.

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
    >>> model.student_.unconstrained_violation_ > 0.05 > 0.01 > model.student_.violation_
    True
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

        Parameters
        ----------
        {names_of_codes}

        Returns
        -------
        constraints : RateConstraints
            Inequalities on counts of rows.

        Raises
        ------
        ValueError
            They name a group or a class that is none of these.
        """
        return RateConstraints(
            read_rate_constraints(self.constraints, _OWNER), list(domain), np.asarray(classes).tolist(), _OWNER,
        )  # fmt: skip

    def of_names(self, domain: Any, classes: Any) -> "ConstrainedStudent":
        """Return the same student, told what the groups and classes are called that it gets as codes.

        Parameters
        ----------
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
        groups: NDArray[np.int64] | None = None,
        n_groups: int | None = None,
        groups_asked: NDArray[np.int64] | None = None,
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

        Returns
        -------
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
        return self._hold(public, groups, n_groups, names, self._shares.predict_proba(seen))

    @classmethod
    def around(
        cls, student: Any, constraints: Any, X: Array, groups: NDArray[np.int64], n_groups: int, n_classes: int
    ) -> "ConstrainedStudent":
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
        self, public: Array, groups: NDArray[np.int64], n_groups: int, names: tuple[Any, Any], labels: Array
    ) -> "ConstrainedStudent":
        """Find what each answer costs, on public rows with so likely labels."""
        self.n_features_in_, self.classes_ = public.shape[1], np.arange(labels.shape[1])
        self._fit_groups(public, groups, n_groups)
        constraints = self.rates_of(*names)
        rule, free = group_blind_rule(constraints, self._likely(public), groups, labels)
        self._rule, self.weights_ = rule, rule.weights
        self.violation_ = constraints.largest_violation(rule.counts)
        self.unconstrained_violation_ = constraints.largest_violation(free.counts)
        self.satisfied_ = self.violation_ <= MET
        return self

    @property
    def counts(self) -> Array:
        """Rows that the answers were chosen by, by group, likely label and answer."""
        return np.asarray(self._rule.counts)

    def _fit_groups(self, public: Array, groups: NDArray[np.int64], n_groups: int) -> None:
        """How likely each group is by the features: of public rows and their groups alone."""
        std = public.std(axis=0)
        self._center, self._scale = public.mean(axis=0), np.where(std > 0, std, 1.0)
        rows = self._standardised(public)
        penalty = np.ones((rows.shape[1], 1))
        penalty[-1] = 1e-6 * len(rows)
        self._of_groups = fit_softmax(
            rows, rows.T @ np.eye(n_groups)[groups], penalty, start=np.zeros((rows.shape[1], n_groups)), maxiter=500
        )

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

    def predict(self, X: Array) -> NDArray[np.int64]:
        """Class codes of shape (n_rows,).

        {predicts_labels}
        """
        return self.classes_[self._rule.scores(self._likely(X)).argmax(axis=1)]

    def predict_proba(self, X: Array) -> Array:
        """What speaks for each class, of shape (n_rows, n_classes): vote shares, moved as the constraints ask.

        {predicts_proba}
        """
        scores = self._rule.scores(self._likely(X))
        return on_simplex(scores + (1 - scores.sum(axis=1, keepdims=True)) / scores.shape[1])


def all_probabilities(student: Any, X: Array, n_classes: int) -> Array:
    """Probabilities of all class codes, by a classifier that may not have seen all of them."""
    found = np.zeros((len(X), n_classes))
    found[:, np.asarray(student.classes_, dtype=np.int64)] = student.predict_proba(X)
    return found


def with_groups(X: Array, groups: NDArray[np.int64], n_groups: int) -> Array:
    """Rows with a column for each group."""
    return np.hstack([X, np.eye(n_groups)[groups]])
