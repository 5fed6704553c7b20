"""Logistic regression held to parity between groups whose membership is known, uncertain, or a signed estimate."""

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from skfairdp._docs import shared_docs
from skfairdp._inputs import read_features, read_unprotected
from skfairdp._typing import Array, ArrayLike, Floats, Ints, MaybeArray, Pair
from skfairdp._utils import NamedEstimator, group_membership, warn_caller
from skfairdp._utils._sklearn import Interval
from skfairdp.exceptions import FairnessWarning
from skfairdp.fairness import FairnessConstraints, read_constraints
from skfairdp.lagrangian import standard_scale

_NOTIONS = ("accuracy_parity", "demographic_parity", "equalized_odds")


@shared_docs
@dataclass(kw_only=True, eq=False, repr=False)
class ParityLogisticRegression(ClassifierMixin, NamedEstimator):
    """Logistic regression whose rates are the same in every group.

    **No guarantee of privacy of its own.** It reads whatever groups it is given; fitted on released ones, as by
    :class:`RandomizedResponseClassifier`, it is post-processing.

    Groups enter as a table of weights, one column per group: 0 and 1 where groups are known, probabilities where they
    are estimated, signed numbers where they are the unbiased reading of a noisy attribute. In every cell the mean of h
    over group a, ``Σ W[i, a] h_i / Σ W[i, a]``, is held to the mean over all rows. (h and cells as in
    :class:`~skfairdp.fairness.FairnessConstraints`; the constraint is counted on predictions and moved by their
    probabilities, the proxy Lagrangian of Cotter et al. 2019, solved by the method of multipliers.)

    Parameters
    ----------
    constraints : str or fairlearn moment, default="demographic_parity"
        What is held equal: "demographic_parity" (the rate of each predicted class), "equalized_odds" (the same given
        the true class) or "accuracy_parity" (the share of errors). Moments of fairlearn without bounds mean the same:
        ``DemographicParity()``, ``EqualizedOdds()``, ``ErrorRateParity()``.
    slack : float, default=0.0
        How far the mean of a group may stay from the mean of all rows; at least 0.
    C : float, default=1.0
        Inverse strength of the ridge penalty, as in scikit-learn; features are standardised first.
    penalty : float, default=10.0
        Weight of the squared violation in the augmented Lagrangian. It changes the way to the solution, hardly the
        solution.
    max_rounds : int, default=15
        Most updates of the multipliers.
    tol : float, default=0.001
        A constraint counts as met when it is exceeded by no more.

    Attributes
    ----------
    coef_ : ndarray of shape (n_outputs, n_features)
        One output for two classes, else one per class.
    intercept_ : ndarray of shape (n_outputs,)
    {classes_}
    multipliers_ : ndarray of shape (n_groups, n_cells, n_constraints)
        A cell is a true class where the constraint compares within classes, else all rows.
    violation_ : float
        Largest distance of a group's mean from that of all rows, on the predictions of the training rows, as the
        weights tell it.
    n_iter_ : int
        Updates of the multipliers made.
    {n_features_in_, feature_names_in_}

    Raises
    ------
    ValueError
        From ``fit``: one class only, or neither groups nor weights.

    Warns
    -----
    FairnessWarning
        A group is so small, or its weights so noisy, that its mean is not known; its constraint is weakened.

    Examples
    --------
    >>> from skfairdp.baselines import ParityLogisticRegression
    >>> from skfairdp.datasets import make_biased_classification
    >>> from skfairdp.metrics import demographic_disparity
    >>> X, y, groups = make_biased_classification(2000, disparity=0.3, random_state=0)
    >>> model = ParityLogisticRegression().fit(X, y, sensitive_features=groups)
    >>> round(demographic_disparity(y, model.predict(X), sensitive_features=groups), 2)
    0.0
    """

    constraints: Any = "demographic_parity"
    slack: float = 0.0
    C: float = 1.0
    penalty: float = 10.0
    max_rounds: int = 15
    tol: float = 1e-3

    __metadata_request__fit = {"sensitive_features": True}

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "constraints": [object],
        "slack": [Interval(Real, 0, None, closed="left")],
        "C": [Interval(Real, 0, None, closed="neither")],
        "penalty": [Interval(Real, 0, None, closed="neither")],
        "max_rounds": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
    }

    def fit(
        self, X: ArrayLike, y: ArrayLike, *, sensitive_features: MaybeArray = None, group_weights: MaybeArray = None
    ) -> "ParityLogisticRegression":
        """Fit under the constraint.

        {rows_of_a_fair_learner}

        {returns_self}
        """
        self._validate_params()
        how: dict[str, Any] = {"supported": _NOTIONS, "several": False, "bounds": False}
        notions = read_constraints(self.constraints, type(self).__name__, **how)
        features, classes, codes = read_unprotected(self, X, y, sensitive_features)
        center, scale = standard_scale(features)
        rows = np.column_stack([(features - center) / scale, np.ones(len(features))])
        weights = group_membership(sensitive_features, group_weights, len(features), owner=type(self).__name__)
        contrasts = _Contrasts.of(weights, FairnessConstraints(notions, codes, len(classes)))
        problem = _Problem(rows, codes, len(classes), contrasts, ridge=1.0 / (self.C * len(features)))
        theta, multipliers, self.violation_, self.n_iter_ = _method_of_multipliers(
            problem, slack=self.slack, penalty=self.penalty, max_rounds=self.max_rounds, tol=self.tol
        )
        self.multipliers_ = multipliers.transpose(1, 0, 2)
        self.classes_ = classes
        self.coef_ = (theta[:-1] / scale[:, None]).T
        self.intercept_ = theta[-1] - self.coef_ @ center
        return self

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True  # written out
        return tags

    def decision_function(self, X: ArrayLike) -> Floats:
        """Log-odds of the second of two classes, shape (n_rows,); else one number per class.

        {predicts_scores}
        """
        check_is_fitted(self, "coef_")
        scores = read_features(self, X) @ self.coef_.T + self.intercept_
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict_proba(self, X: ArrayLike) -> Floats:
        """Class probabilities, shape (n_rows, n_classes).

        {predicts_proba}
        """
        scores = self.decision_function(X)
        return softmax(_with_reference(scores[:, None]) if scores.ndim == 1 else scores, axis=1)

    def predict(self, X: ArrayLike) -> Array:
        """Predicted classes, shape (n_rows,); the group is not needed.

        {predicts_labels}
        """
        codes = self.predict_proba(X).argmax(axis=1)
        return self.classes_[codes]


@dataclass(frozen=True)
class _Contrasts:
    """The violations as a linear map of h: mean over a group less mean over all rows, in every cell."""

    constraints: FairnessConstraints
    cells: list[Ints]
    tables: list[Floats]

    @classmethod
    def of(cls, weights: Floats, constraints: FairnessConstraints) -> "_Contrasts":
        cells = [np.flatnonzero(constraints.row_cells == cell) for cell in range(constraints.n_cells)]
        tables, unknown = [], False
        for members in cells:
            part = weights[members]
            totals = part.sum(axis=0)
            # Twice the noise of the total (of independent rows): below it nobody can say what the mean of the group is.
            floor = np.maximum(2 * np.sqrt(np.square(part).sum(axis=0)), 1.0)
            unknown |= bool((totals < floor).any())
            tables.append((part - totals / len(members)) / np.maximum(totals, floor))
        if unknown:
            warn_caller(
                "A group of ParityLogisticRegression is too small to estimate its rates, so its constraint "
                "is weakened. Merge groups, or give more rows.",
                FairnessWarning,
            )
        return cls(constraints, cells, tables)

    def violations(self, proba: Floats) -> Floats:
        """Shape (n_cells, n_groups, n_constraints)."""
        values = self.constraints.values(proba, self.constraints.y)
        return np.stack([table.T @ values[members] for table, members in zip(self.tables, self.cells, strict=True)])

    def gradient(self, multipliers: Floats, proba: Floats) -> Floats:
        """Derivative of ``Σ multipliers * violations`` with respect to the probabilities, (n_rows, n_classes)."""
        per_value = np.zeros((len(proba), multipliers.shape[2]))
        for table, members, part in zip(self.tables, self.cells, multipliers, strict=True):
            per_value[members] = table @ part
        return self.constraints.probability_weights(per_value, proba, self.constraints.y)


@dataclass(frozen=True)
class _Problem:
    rows: Floats
    codes: Ints
    n_classes: int
    contrasts: _Contrasts
    ridge: float

    @property
    def shape(self) -> Pair:
        return self.rows.shape[1], 1 if self.n_classes == 2 else self.n_classes

    def logits(self, theta: Floats) -> Floats:
        scores = self.rows @ theta
        return _with_reference(scores) if self.n_classes == 2 else scores

    def minimum(self, start: Floats, offset: Floats, *, penalty: float, slack: float, iterations: int) -> Floats:
        """Minimise cross-entropy + ridge + penalty/2 · squared distance of (violations + offset) from ±slack.
        The last term bends with the probabilities, so that this is no regression from moments (``fit_softmax``)."""
        truth = np.eye(self.n_classes)[self.codes]

        def objective(flat: Floats) -> tuple[float, Floats]:
            theta = flat.reshape(self.shape)
            logs = log_softmax(self.logits(theta), axis=1)
            proba = np.exp(logs)
            loss = -logs[np.arange(len(logs)), self.codes].mean() + self.ridge / 2 * np.square(theta[:-1]).sum()
            slope = (proba - truth) / len(logs)
            if penalty:
                moved = self.contrasts.violations(proba) + offset
                beyond = moved - moved.clip(-slack, slack)
                loss += penalty / 2 * np.square(beyond).sum()
                push = self.contrasts.gradient(penalty * beyond, proba)
                slope += proba * (push - (proba * push).sum(axis=1, keepdims=True))
            gradient = self.rows.T @ (slope[:, 1:] if self.n_classes == 2 else slope)
            gradient[:-1] += self.ridge * theta[:-1]
            return float(loss), gradient.ravel()

        found = minimize(objective, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": iterations})
        return found.x.reshape(self.shape)


def _method_of_multipliers(
    problem: _Problem, *, slack: float, penalty: float, max_rounds: int, tol: float
) -> tuple[Floats, Floats, float, int]:
    """Coefficients, multipliers, violation of the predictions, and rounds used; of all rounds, the best."""
    theta = problem.minimum(np.zeros(problem.shape), np.zeros(()), penalty=0.0, slack=slack, iterations=100)
    aim = max(slack - tol, 0.0)  # the bound itself is approached from outside, ever more slowly
    rounds = 0
    best: tuple[tuple[float, float], Floats, Floats, float] | None = None
    multipliers = difference = np.zeros(())
    while True:
        logits = problem.logits(theta)
        soft = problem.contrasts.violations(softmax(logits, axis=1))
        predicted = logits.argmax(axis=1)
        hard = problem.contrasts.violations(np.eye(problem.n_classes)[predicted])
        multipliers = multipliers + np.zeros_like(hard)
        violation = float(np.abs(hard).max())
        excess = max(violation - slack, 0.0)
        # Whatever is met within the tolerance is met: among such rounds the errors decide.
        order = (0.0 if excess <= tol else excess, float(np.mean(predicted != problem.codes)))
        if best is None or order < best[0]:
            best = (order, theta, multipliers, violation)
        if excess <= tol or rounds == max_rounds:
            return (*best[1:], rounds)
        # Probabilities are moved until the predictions are at parity. How far these are from them changes on the way:
        # it is followed at half speed, and only from the first round on, or the two would chase each other.
        difference = difference + 0.5 * (rounds > 0) * (hard - soft - difference)
        offset = difference + multipliers / penalty
        theta = problem.minimum(theta, offset, penalty=penalty, slack=aim, iterations=25)
        moved = problem.contrasts.violations(softmax(problem.logits(theta), axis=1)) + offset
        multipliers = penalty * (moved - moved.clip(-aim, aim))
        rounds += 1


def _with_reference(scores: Floats) -> Floats:
    """Prepend a column of zeros, the first class, to those of the second."""
    return np.column_stack([np.zeros(len(scores)), scores])
