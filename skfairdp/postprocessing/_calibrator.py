"""Public-data calibration: a fitted classifier's demographic disparity, lowered on unlabelled public rows."""

import warnings
from collections.abc import Hashable, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skfairdp.exceptions import FairnessWarning
from skfairdp.postprocessing._inputs import public_groups, shape_of, split_rows
from skfairdp.postprocessing._models import attribute_of, chosen_method, fitted_classifier, probabilities
from skfairdp.postprocessing._multipliers import (
    contrast,
    fit_group_estimator,
    group_probabilities,
    own_threshold,
    search_multipliers,
)
from skfairdp.postprocessing._networks import fine_tuned, network_view
from skfairdp.postprocessing._thresholding import Choice
from skfairdp.privacy import StatesPrivacy
from skfairdp.utils import as_groups, encode_labels
from skfairdp.utils._sklearn import HasMethods, Interval, StrOptions

__all__ = ["FairnessCalibrator"]

_OWNER = "FairnessCalibrator"
_FEW_ROWS = 30
_FITTED = {"estimator_", "method_", "multipliers_", "group_estimator_", "privacy_"}


def _has_tuned_probabilities(calibrator: "FairnessCalibrator") -> bool:
    return getattr(calibrator, "method_", None) == "fine_tune" and hasattr(calibrator.estimator_, "predict_proba")


class FairnessCalibrator(StatesPrivacy, ClassifierMixin, BaseEstimator):
    """Lower the demographic disparity of a fitted classifier on unlabelled public rows, without refusing any row.

    *Privacy.* It reads the fitted model and the rows given to ``fit``, nothing else. For a differentially private model
    that is post-processing: **its ε stays what it was**, and ``privacy_`` is the model's own. **The rows given to
    ``fit``, and their groups, are treated as public and are not protected**; never give it the model's private rows.

    *Fairness.* On those rows the gap of the predictions (:func:`skfairdp.metrics.demographic_disparity`) is never above
    what it was: ``gap_after_ <= gap_before_``, and where nothing better is found, the model stays as it is. On new rows
    the gap is an estimate, off by about 1/(2√n) for the smallest group of n public rows, and more with many features.
    Every row is answered.

    *Accuracy.* There are no labels, so the model's own probabilities say what a change costs: with c the accuracy it
    expects to lose, the predictions with the smallest ``c + lam * gap`` are kept, or with ``gamma``, those with the
    smallest c whose gap is at most ``gamma``. Where the model is badly calibrated, so is that price.

    Two methods make the candidates. ``"fine_tune"`` trains the model's network further (a copy; all rows at once, no
    randomness): near its own soft predictions, with a rising weight on a differentiable disparity. ``"threshold"``
    serves any classifier with scores: it answers ``argmax_k p_k(x) - Σ_z μ_zk (q_z(x)/π_z - (1 - q_z(x))/(1 - π_z))``,
    the form of the most accurate classifier under parity, where p are the model's probabilities, π_z is the share of
    group z, and q_z(x) is 0 or 1 where the group is given at prediction time, else its probability from the features.
    **Without the group it is thus estimated from the features**, by a model fitted on the public rows.

    Parameters
    ----------
    estimator : classifier
        Fitted already, also as the last step of a Pipeline. Wrap it in ``sklearn.frozen.FrozenEstimator`` where the
        calibrator is cloned, as searches do. It is not changed.
    method : {"auto", "fine_tune", "threshold"}, default="auto"
        "auto" fine-tunes a model with a torch network in ``net_`` (:class:`~skfairdp.FairDPSGDClassifier`), unless
        ``group_at_prediction``, and thresholds all others.
    lam : float, default=1.0
        λ >= 0, the expected accuracy given for one unit of gap: 0.5 gives half a point for each point. 0 changes
        nothing. Not used with ``gamma``.
    gamma : float or None, default=None
        Largest gap wanted on the public rows. If no candidate meets it, the smallest gap found is kept, with a
        ``FairnessWarning``.
    group_at_prediction : bool, default=False
        Let ``predict`` and ``score`` read the group of each row (``"threshold"`` only).
    group_estimator : classifier or None, default=None
        Cloned and fitted to estimate the group from the features, for ``"threshold"`` without the group at prediction.
        None: a regularised logistic regression, on one-hot names too where X is a DataFrame.
    gap : {"others", "overall", "between"}, default="others"
        What a group's rate is compared with, see :func:`skfairdp.fairness.disparities`.
    temperature : float, default=0.1
        Softness of the disparity in ``"fine_tune"``, in units of the median lead of the network's largest logit.
    steps : int, default=200
        Steps of ``"fine_tune"``, over all rows each.
    lr : float, default=0.01
        Step size of ``"fine_tune"`` (Adam).
    groups : list of labels or None, default=None
        All groups; intersections are tuples. None takes those of the rows given to ``fit``.
    sensitive_columns : name, index or list of them, default=None
        Columns of X that hold the groups. They are dropped from the features, unless the estimator was fitted with as
        many columns as X has, and ``sensitive_features`` is then not passed.

    Attributes
    ----------
    estimator_ : classifier
        What predicts: the estimator, with the fine-tuned network where there is one.
    method_ : {"fine_tune", "threshold"}
        The method used.
    classes_ : ndarray of shape (n_classes,)
        Labels, from the estimator.
    groups_ : ndarray of shape (n_groups,), dtype object
    gap_before_ : float
        Demographic disparity of the estimator's predictions on the public rows.
    gap_after_ : float
        The same after calibration; never larger.
    agreement_ : float
        Share of the public rows whose prediction is unchanged.
    satisfied_ : bool
        Whether ``gap_after_`` is at most ``gamma``; True without ``gamma``.
    multipliers_ : ndarray of shape (n_groups, n_classes)
        μ; all zero where nothing is changed (``"threshold"`` only).
    group_estimator_ : classifier
        The estimator of the group (``"threshold"`` without the group at prediction only).
    privacy_ : PrivacySpent
        The estimator's own report, where it has one: calibration adds nothing to it.
    n_features_in_ : int
        Columns of X seen in ``fit``, sensitive ones included.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where X has string names.

    References
    ----------
    Yaghini et al. (2023), "Learning to walk impartially on the Pareto frontier", Appendix D.1 (Public Data
    Calibration).

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skfairdp import FairnessCalibrator
    >>> from skfairdp.datasets import make_biased_classification, train_private_public_test_split
    >>> data = make_biased_classification(6000, disparity=0.3, random_state=0)
    >>> split = train_private_public_test_split(*data, sizes=(0.5, 0.2, 0.3), random_state=0)
    >>> model = LogisticRegression().fit(split.X, split.y)  # any classifier, private or not
    >>> fair = FairnessCalibrator(model).fit(split.X_public, sensitive_features=split.sensitive_features_public)
    >>> fair.gap_before_ > 0.2, fair.gap_after_ < 0.02, fair.score(split.X_test, split.y_test) > 0.7
    (True, True, True)
    """

    # Asked for by default, so that a search or pipeline with metadata routing never drops the groups by accident.
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"sensitive_features": True}
    __metadata_request__predict: ClassVar[dict[str, bool]] = {"sensitive_features": True}
    __metadata_request__score: ClassVar[dict[str, bool]] = {"sensitive_features": True}

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [HasMethods(["fit", "predict"])],
        "method": [StrOptions({"auto", "fine_tune", "threshold"})],
        "lam": [Interval(Real, 0, None, closed="left")],
        "gamma": [Interval(Real, 0, None, closed="left"), None],
        "group_at_prediction": ["boolean"],
        "group_estimator": [HasMethods(["fit", "predict_proba"]), None],
        "gap": [StrOptions({"others", "overall", "between"})],
        "temperature": [Interval(Real, 0, None, closed="neither")],
        "steps": [Interval(Integral, 1, None, closed="left")],
        "lr": [Interval(Real, 0, None, closed="neither")],
        "groups": ["array-like", None],
        "sensitive_columns": [str, Integral, "array-like", None],
    }

    def __init__(
        self,
        estimator: Any,
        *,
        method: str = "auto",
        lam: float = 1.0,
        gamma: float | None = None,
        group_at_prediction: bool = False,
        group_estimator: Any = None,
        gap: str = "others",
        temperature: float = 0.1,
        steps: int = 200,
        lr: float = 0.01,
        groups: Sequence[Hashable] | None = None,
        sensitive_columns: Sequence[str | int] | str | int | None = None,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.lam = lam
        self.gamma = gamma
        self.group_at_prediction = group_at_prediction
        self.group_estimator = group_estimator
        self.gap = gap
        self.temperature = temperature
        self.steps = steps
        self.lr = lr
        self.groups = groups
        self.sensitive_columns = sensitive_columns

    def fit(self, X: Any, y: ArrayLike | None = None, *, sensitive_features: Any = None) -> Self:
        """Calibrate on public rows. No label is read.

        Parameters
        ----------
        X : array-like of shape (n_public, n_features)
            **Public** rows, as the estimator predicts them.
        y : ignored
            There for the sake of pipelines and searches.
        sensitive_features : array-like of shape (n_public,), Series or DataFrame, default=None
            Group of each row; the columns of a DataFrame form intersections. Left out where ``sensitive_columns`` names
            them.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            A parameter is outside its range; the estimator is not fitted (``NotFittedError``), is no classifier, has no
            probabilities, or no network where one is to be fine-tuned; groups are missing, of another length, or
            outside ``groups``, or a group has no row.

        Warns
        -----
        FairnessWarning
            ``gamma`` is not met; a group has fewer than 30 public rows.
        """
        self._validate_params()
        model = self._fitted_estimator()
        method = chosen_method(self.method, model, self.group_at_prediction, owner=_OWNER)
        features, table, groups = self._split(X, model, reset=True, sensitive_features=sensitive_features)
        domain, codes = public_groups(groups, self.groups, shape_of(X)[0], owner=_OWNER)
        for name in _FITTED & vars(self).keys():
            delattr(self, name)
        self.classes_, self.groups_ = np.asarray(model.classes_), domain
        before = self._codes(model.predict(features))
        if method == "fine_tune":
            choice = self._fine_tune(model, features, before, codes)
        else:
            choice = self._threshold(model, features, table, before, codes)
        self.method_ = method
        after = self._predicted_codes(features, table, codes)
        self.gap_before_, self.gap_after_ = choice.gap_before, choice.gap_of(after)
        self.agreement_ = float(np.mean(after == before))
        self.satisfied_ = self.gamma is None or self.gap_after_ <= self.gamma
        report = attribute_of(model, "privacy_")
        if report is not None:
            self.privacy_ = report
        self._warn(int(np.bincount(codes).min()))
        return self

    def predict(self, X: Any, *, sensitive_features: Any = None) -> NDArray[Any]:
        """Predict the class of each row.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
        sensitive_features : array-like of shape (n_rows,), Series or DataFrame, default=None
            Group of each row; required with ``group_at_prediction`` (unless ``sensitive_columns`` names them), and not
            read without.

        Returns
        -------
        ndarray of shape (n_rows,)

        Raises
        ------
        ValueError
            Groups that are needed are missing, unseen or of another length. Unfitted: ``NotFittedError``.
        """
        check_is_fitted(self, "method_")
        given = sensitive_features if self.group_at_prediction else None
        features, table, groups = self._split(X, self.estimator_, reset=False, sensitive_features=given)
        codes = None
        if self.group_at_prediction:
            if groups is None:
                raise ValueError(f"{_OWNER} with group_at_prediction=True needs sensitive_features to predict.")
            codes = self._group_codes(groups, shape_of(X)[0])
        return self.classes_[self._predicted_codes(features, table, codes)]

    @available_if(_has_tuned_probabilities)
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Class probabilities of the fine-tuned model (``"fine_tune"`` only: thresholds have none).

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
        """
        check_is_fitted(self, "method_")
        features, _, _ = self._split(X, self.estimator_, reset=False)
        return np.asarray(self.estimator_.predict_proba(features))

    def score(
        self, X: Any, y: ArrayLike, *, sensitive_features: Any = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """Accuracy on the given rows.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
        sensitive_features : array-like of shape (n_rows,), Series or DataFrame, default=None
            As for :meth:`predict`.
        sample_weight : array-like of shape (n_rows,), default=None

        Returns
        -------
        float
        """
        predicted = self.predict(X, sensitive_features=sensitive_features)
        return float(accuracy_score(y, predicted, sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if hasattr(self.estimator, "__sklearn_tags__"):
            inner = get_tags(self.estimator)
            tags.input_tags = inner.input_tags
            if inner.classifier_tags is not None:
                tags.classifier_tags.multi_class = inner.classifier_tags.multi_class
        if self.sensitive_columns is not None:
            tags.input_tags.sparse = False
        return tags

    # ------------------------------------------------------------------ the two methods

    def _fine_tune(self, model: Any, features: Any, before: NDArray[np.int64], groups: NDArray[np.int64]) -> Choice:
        rows, utility = network_view(model, features, len(before), len(self.classes_), owner=_OWNER)
        choice = self._choice(utility, before, groups)
        settings = {"steps": self.steps, "lr": self.lr, "temperature": self.temperature}
        self.estimator_ = fine_tuned(model, rows, choice, **settings)
        if choice.gap_of(self._codes(self.estimator_.predict(features))) > choice.gap_before:
            self.estimator_ = model  # it turns logits into labels in a way of its own
        return choice

    def _threshold(
        self, model: Any, features: Any, table: Any, before: NDArray[np.int64], groups: NDArray[np.int64]
    ) -> Choice:
        utility = probabilities(model, features, len(self.classes_), owner=_OWNER)
        self._utility_shift = own_threshold(utility, before)
        choice = self._choice(utility + self._utility_shift, before, groups)
        if not self.group_at_prediction:
            self.group_estimator_ = fit_group_estimator(self.group_estimator, table, groups, owner=_OWNER)
        self._shares = np.bincount(groups, minlength=len(self.groups_)) / len(groups)
        self.multipliers_ = search_multipliers(choice, self._contrasts(table, groups))
        self.estimator_ = model
        return choice

    def _choice(self, utility: NDArray[np.float64], before: NDArray[np.int64], groups: NDArray[np.int64]) -> Choice:
        return Choice(groups, len(self.groups_), utility, before, lam=self.lam, gamma=self.gamma, gap=self.gap)

    def _contrasts(self, table: Any, groups: NDArray[np.int64] | None) -> NDArray[np.float64]:
        if self.group_at_prediction:
            return contrast(np.eye(len(self.groups_))[groups], self._shares)
        membership = group_probabilities(self.group_estimator_, table, len(self.groups_), owner=_OWNER)
        return contrast(membership, self._shares)

    def _predicted_codes(self, features: Any, table: Any, groups: NDArray[np.int64] | None) -> NDArray[np.int64]:
        if self.method_ == "fine_tune" or not self.multipliers_.any():
            return self._codes(self.estimator_.predict(features))
        utility = probabilities(self.estimator_, features, len(self.classes_), owner=_OWNER) + self._utility_shift
        return (utility - self._contrasts(table, groups) @ self.multipliers_).argmax(axis=1)

    # ------------------------------------------------------------------ rows

    def _fitted_estimator(self) -> Any:
        return fitted_classifier(self.estimator, owner=_OWNER)

    def _group_codes(self, groups: Any, rows: int) -> NDArray[np.int64]:
        values = as_groups(groups, rows, owner=_OWNER)
        return encode_labels(values, self.groups_, owner=_OWNER, name="sensitive_features", parameter="groups")

    def _split(self, X: Any, model: Any, *, reset: bool, sensitive_features: Any = None) -> tuple[Any, Any, Any]:
        """Return what the model reads, what the estimator of the group reads, and the groups (None: not given)."""
        table, groups = split_rows(self, X, sensitive_features, reset=reset, owner=_OWNER)
        whole = self.sensitive_columns is not None and getattr(model, "n_features_in_", None) == shape_of(X)[1]
        return (X if whole else table), table, groups

    def _codes(self, predicted: Any) -> NDArray[np.int64]:
        return encode_labels(np.asarray(predicted), self.classes_, owner=_OWNER, name="y_pred", parameter="estimator")

    def _warn(self, smallest: int) -> None:
        if smallest < _FEW_ROWS:
            warnings.warn(
                f"The smallest group has {smallest} public rows: the gap on other rows can be far from that on these. "
                f"{_OWNER} wants {_FEW_ROWS} and more of each.",
                FairnessWarning,
                stacklevel=3,
            )
        if not self.satisfied_:
            warnings.warn(
                f"The smallest gap that {_OWNER} found on the public rows is {self.gap_after_:.3g}, above gamma="
                f"{self.gamma:g}. Give more public rows, or try group_at_prediction=True.",
                FairnessWarning,
                stacklevel=3,
            )
