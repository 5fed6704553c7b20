"""Model M: groups released once by randomised response, then any fair learner."""

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skfairdp._docs import shared_docs
from skfairdp._estimator import SHARED_CONSTRAINTS, PrivateClassifier
from skfairdp._inputs import TrainingData, read_features, read_training
from skfairdp._row_wise import predict_codes
from skfairdp._teachers import as_classifiers, check_fair_learner, made_up_cells, rehearse_learner
from skfairdp._typing import ArrayLike
from skfairdp._usefulness import Comparison, may_fall_back, seen, tried
from skfairdp._utils import RandomStateLike, decode_labels, silence, warn_caller
from skfairdp._utils._sklearn import A_LEARNER, Interval
from skfairdp.baselines._group_randomizer import RandomizedGroups
from skfairdp.baselines._parity_logistic import ParityLogisticRegression
from skfairdp.exceptions import FairnessWarning
from skfairdp.lagrangian import in_codes
from skfairdp.privacy import PrivacyLedger, Protects, carrying
from skfairdp.schema import Schema


def _has_probabilities(classifier: "RandomizedResponseClassifier") -> bool:
    learner = getattr(classifier, "fair_estimator_", classifier.fair_estimator)
    return learner is None or hasattr(learner, "predict_proba")


@shared_docs
class RandomizedResponseClassifier(PrivateClassifier):
    """Fair classifier trained on groups released by randomised response.

    **Guarantee.** (ε, 0)-differential privacy for the *sensitive attribute* of one row: features and labels, the number
    of rows, the list of groups and all constructor parameters count as public. The randomised groups are released once,
    and ``privacy_`` speaks of that release; everything after it is post-processing, whatever the learner does. The
    guarantee is void if any feature reveals the group: remove such columns, with ``sensitive_columns`` or otherwise.

    The baseline "M" that SF-PATE is compared with (Tran et al. 2022, Section 7; Mozannar, Ohannessian & Srebro 2020).
    Used as if they were true, randomised groups dilute every difference between groups. ``debias=True`` gives the
    learner signed weights instead, the inverse of the channel, with which sums over groups are right on average.

    Parameters
    ----------
    fair_estimator : estimator, default=None
        Any classifier with ``fit(X, y, sensitive_features=...)`` whose ``predict`` needs no groups, such as fairlearn's
        ``ExponentiatedGradient``; it is cloned. It gets X as floats (float32 for a skorch net), y as codes 0..K-1 of
        the classes, and the released groups. None is :class:`ParityLogisticRegression`.
    epsilon : float, default=1.0
        Privacy budget at δ = 0; in [1e-9, 1e9].
    debias : bool, default=True
        Give signed weights as ``group_weights=`` (n_rows, n_groups) to a learner whose ``fit`` has that parameter. A
        learner without it gets the released groups alone, and a FairnessWarning says so. False is the paper's baseline.
    {public_classes, groups, sensitive_columns, schema}
    random_state : int, RandomState, Generator or None, default=None
        Public randomness: the predictions of a learner that randomises them. Never the released groups.
    {noise_seed, ledger}

    Attributes
    ----------
    fair_estimator_ : estimator
        The fitted learner (a constant one where y has a single class).
    released_groups_ : ndarray of shape (n_rows,), dtype object
        The randomised groups. They are the release, hence differentially private, and may be published.
    mechanism_ : RandomizedResponse
        The channel; ``mechanism_.weights(codes)`` gives the signed weights.
    {classes_, groups_, privacy_, epsilon_spent_, n_features_in_, feature_names_in_}

    {fit_raises}

    Warns
    -----
    UtilityWarning
        By its labels, which are public, it is no better than the most frequent class: on its rows or, of the built-in
        learner and at most 10,000 rows, on thirds of them that are kept from learners like it. The built-in learner
        then gives way to that class.

    Examples
    --------
    >>> from skfairdp.baselines import RandomizedResponseClassifier
    >>> from skfairdp.datasets import make_biased_classification
    >>> X, y, groups = make_biased_classification(5000, disparity=0.3, random_state=0)
    >>> model = RandomizedResponseClassifier(epsilon=1.0, groups=[0, 1]).fit(X, y, sensitive_features=groups)
    >>> print(model.privacy_)
    epsilon=1 at delta=0, protecting one sensitive attribute (replace one sensitive attribute); certified by the exact
    ratio of probabilities
    """

    __metadata_request__fit = {"X_public": UNUSED, "sensitive_features_public": UNUSED, "subject": True}

    _parameter_constraints: dict[str, Any] = {
        **SHARED_CONSTRAINTS,
        "fair_estimator": [A_LEARNER, None],
        "epsilon": [Interval(Real, 1e-9, 1e9, closed="both")],
        "debias": ["boolean"],
    }

    delta = 0.0

    def __init__(
        self,
        *,
        fair_estimator: Any = None,
        epsilon: float = 1.0,
        debias: bool = True,
        classes: ArrayLike | None = None,
        groups: Sequence[Any] | None = None,
        sensitive_columns: str | int | Sequence[str | int] | None = None,
        schema: Schema | None = None,
        random_state: RandomStateLike = None,
        noise_seed: int | None = None,
        ledger: PrivacyLedger | None = None,
    ) -> None:
        self.fair_estimator = fair_estimator
        self.epsilon = epsilon
        self.debias = debias
        self.classes = classes
        self.groups = groups
        self.sensitive_columns = sensitive_columns
        self.schema = schema
        self.random_state = random_state
        self.noise_seed = noise_seed
        self.ledger = ledger

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        sensitive_features: ArrayLike | None = None,
        subject: ArrayLike | str | None = None,
    ) -> "RandomizedResponseClassifier":
        """Release the groups and fit the learner on them.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Public features.
        y : array-like of shape (n_rows,)
            Public labels.
        sensitive_features : array-like of shape (n_rows,) or DataFrame, default=None
            Private groups. Needed unless ``sensitive_columns`` names them.
        {subject_of_a_group}

        Returns
        -------
        {returns_self}
        """
        data = self._read(X, y, sensitive_features=sensitive_features, subject=subject)
        learner, takes_weights = self._learner(data)
        plan = self._plan(data)
        if self.fair_estimator is not None:
            self._rehearse(learner, takes_weights, plan.domain, data)
        assert data.groups is not None

        with self._spend(plan, data.reads) as noise:
            answers = data.of_each_row(plan.mechanism.release(data.groups_of_units, noise))

        self.classes_, self.groups_, self.released_groups_ = data.classes, plan.domain, plan.domain[answers]
        self.mechanism_ = plan.mechanism
        released: dict[str, Any] = {"sensitive_features": plan.domain[answers]}
        if takes_weights:
            unbiased = plan.mechanism.weights(answers)
            released["group_weights"] = unbiased if self.debias else np.eye(len(plan.domain))[answers]
        trial = self._tried(data, released)
        falls_back = trial is not None and not trial.is_passed
        if falls_back or len(np.unique(data.y)) < 2:
            learner, released = DummyClassifier(), {}
        try:
            self.fair_estimator_ = carrying(learner.fit(data.X, data.y, **released), self.privacy_)
        except Exception as error:
            error.add_note(
                "The groups are paid for and kept: fit another learner on X, y and the 'released_groups_' of this "
                f"{type(self).__name__}, which is free."
            )
            raise
        if trial is None:
            trial = seen(predict_codes(self.fair_estimator_, data.X), data.y, data.X.shape[1])
        if not trial.is_better and len(data.classes) > 1:
            trial.warn(data.classes[trial.usual], type(self).__name__, falls_back=falls_back)
        return self

    def _rehearse(self, learner: Any, takes_weights: bool, domain: NDArray[Any], data: TrainingData) -> None:
        """Try the learner on public features with made-up labels and groups, before groups are paid for."""
        if len(data.classes) < 2:
            return

        def made_up(each: int) -> tuple[Any, Any, dict[str, Any]]:
            labels, groups = made_up_cells(len(data.classes), len(domain), each)
            given: dict[str, Any] = {"sensitive_features": domain[groups]}
            if takes_weights:
                given["group_weights"] = np.eye(len(domain))[groups]
            return data.X[np.arange(len(labels)) % len(data.X)], labels, given

        rehearse_learner(learner, made_up, parameter="fair_estimator", owner=type(self).__name__)

    def _tried(self, data: TrainingData, released: dict[str, Any]) -> Comparison | None:
        """Whether the usual learner, taught by part of the rows, beats one class alone on the others."""
        if self.fair_estimator is not None or not may_fall_back(data.y):
            return None

        def answers(learned: NDArray[np.int64], asked: NDArray[np.int64]) -> NDArray[np.int64]:
            if len(np.unique(data.y[learned])) < 2:
                return np.full(len(asked), data.y[learned[0]])
            given = {name: values[learned] for name, values in released.items()}
            with silence():  # of groups that are small in a part
                learner = ParityLogisticRegression().fit(data.X[learned], data.y[learned], **given)
            return np.asarray(learner.predict(data.X[asked]), dtype=np.int64)

        return tried(data.y, answers, 0)

    def _read(self, X: Any, y: Any, *, sensitive_features: Any = None, subject: Any = None) -> TrainingData:
        self._validate_params()
        return read_training(
            self, X, y, sensitive_features=sensitive_features, subject=subject, groups="private",
            protects=Protects.SENSITIVE_ATTRIBUTE,
        )  # fmt: skip

    def _plan(self, data: TrainingData) -> RandomizedGroups:
        assert data.domain is not None
        return RandomizedGroups.of(
            self.epsilon, data.domain, data.n_units, owner=type(self).__name__, relation=data.attribute_relation,
            rows_of=data.rows_of,
        )  # fmt: skip

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict the class of each row; the group is not needed.

        {predicts_labels}
        """
        check_is_fitted(self, "fair_estimator_")
        return decode_labels(self, predict_codes(self.fair_estimator_, read_features(self, X)))

    _settles_coins = True

    @available_if(_has_probabilities)
    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Class probabilities of the learner; only where it has them.

        {predicts_proba}
        """
        check_is_fitted(self, "fair_estimator_")
        features = read_features(self, X)
        proba = np.zeros((len(features), len(self.classes_)))
        proba[:, np.asarray(self.fair_estimator_.classes_).astype(np.int64)] = self.fair_estimator_.predict_proba(
            features
        )
        return proba

    def _learner(self, data: TrainingData) -> tuple[Any, bool]:
        """A clone of the learner, and whether it takes weights. What it cannot do is said before anything is spent."""
        owner = type(self).__name__
        assert data.domain is not None
        learner = ParityLogisticRegression() if self.fair_estimator is None else clone(self.fair_estimator)
        learner = in_codes(learner, data.domain.tolist(), data.classes.tolist(), owner)
        takes_weights = check_fair_learner(learner, owner)
        if self.debias and not takes_weights:
            warn_caller(
                f"{type(learner).__name__}.fit has no 'group_weights', so {owner} gives it the randomised groups as "
                "they are, which dilutes the differences between groups. Set debias=False to say that this is meant.",
                FairnessWarning,
            )
        return as_classifiers(learner, self.random_state), takes_weights
