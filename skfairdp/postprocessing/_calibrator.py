"""Public-data calibration: a fitted classifier's gap between groups, lowered on public rows."""

from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skfairdp import _utils
from skfairdp._docs import shared_docs
from skfairdp._inputs import public_arguments
from skfairdp._judge import Judgement, fifths, set_judgement
from skfairdp._rows import opened
from skfairdp._typing import Array, ArrayLike, Floats, Ints, MaybeArray, Objects, SubjectLike
from skfairdp._utils._sklearn import HasMethods, Interval, StrOptions, answers_as_fitted
from skfairdp.exceptions import FairnessWarning, PrivacyLeakWarning
from skfairdp.fairness import RateBound, RateConstraints, RateParity, read_rate_constraints, refuse_beside_constraints
from skfairdp.postprocessing import _constrained as constrained, _inputs as inputs
from skfairdp.postprocessing._bins import words_of_noise
from skfairdp.postprocessing._thresholding import CalibrationRows, FineTuning, Thresholds, TradeOff
from skfairdp.privacy import Account, StatesPrivacy, composed, held_by
from skfairdp.schema import SCHEMA_CONSTRAINT, RawTable, SchemaEncoder, with_schema

_OWNER = "FairnessCalibrator"
Method = FineTuning | Thresholds
_FEW_ROWS = 30
_FITTED = {
    "answers_", "constraint_holds_", "edges_", "estimator_", "gap_", "gap_bound_", "group_estimator_", "method_",
    "multipliers_", "privacy_", "violation_"
}  # fmt: skip


@dataclass(frozen=True)
class _Found:
    """A calibrated model, its answers to the rows that calibrated it, and their gap."""

    calibrated: Any
    answers: Ints
    gap_before: float
    gap_after: float
    is_met: bool
    violation: float = 0.0


@shared_docs
@with_schema(kw_only=False)
class FairnessCalibrator(inputs.RoutesToEstimator, StatesPrivacy, ClassifierMixin, _utils.NamedEstimator):
    """Lower the gap of a classifier between groups on public rows, without refusing any row.

    *Privacy.* It reads the fitted model and public rows, nothing else. For a differentially private model that is
    post-processing: **its ε stays what it was**, and ``privacy_`` is the model's own. **The public rows, and their
    groups, are not protected**: with a fitted model those are the rows given to ``fit``, so never give it the model's
    private rows; with an unfitted one they are ``X_public``, and ``fit`` hands its other arguments to the model. Where
    there are none it takes those that the fit of the model releases: :class:`~skfairdp.FairPATEClassifier` (without
    ``sensitive_columns``) and :class:`~skfairdp.SyntheticDataClassifier` sample some within their ε, with groups. Then
    there is one entry of the ledger, and nothing that is not protected.

    *Fairness.* On those rows the gap of the predictions (:func:`skfairdp.metrics.demographic_disparity`) is never above
    what it was: ``gap_after_ <= gap_before_``, and where nothing better is found, the model stays as it is. On new rows
    the gap is an estimate, off by about 1/(2√n) for the smallest group of n public rows, and more with many features. A
    ``FairnessWarning`` says where the gap that is asked for, or that it began with, is no more than that chance.
    Every row is answered.

    *Accuracy.* There are no labels, so the model's own probabilities say what a change costs: with c the accuracy it
    expects to lose, the predictions with the smallest ``c + gap_weight * gap`` are kept, or with ``gamma``, those with
    the smallest c whose gap is at most ``gamma``. Where the model is badly calibrated, so is that price.

    Two methods make the candidates: :class:`FineTuning` trains the model's network further, and :class:`Thresholds`
    corrects the scores of any classifier by the group, which is given at prediction or **estimated from the features**.

    *Other constraints.* With ``constraints`` the calibrator meets those instead, and each carries its own bound:
    equalized odds, parity or a bound of any rate, several at once, for any number of groups. Public rows are counted by
    score, group and label, and a linear program, that of :class:`PrivateThresholds`, finds the chance with which each
    bin of scores is answered by the second class: the most accurate ones under which **the constraints hold on the
    public rows, on average over the chances**. Which answer a row gets follows from a hash of it, so asking twice
    changes nothing. A rate that looks at the true label needs labels of the public rows.

    Parameters
    ----------
    estimator : classifier
        One that is fitted already, also as the last step of a Pipeline, is used as it is; wrap it in
        ``sklearn.frozen.FrozenEstimator`` where the calibrator is cloned, as searches do. Any other is fitted by
        ``fit``. It is not changed.
    constraints : str, RateParity, RateBound, fairlearn moment, list of them or None, default=None
        What is to hold instead of a small demographic disparity: "equalized_odds", "true_positive_rate_parity",
        ``RateParity("selection_rate", ratio_bound=0.8)`` and others, see :class:`skfairdp.fairness.RateParity`. Names
        stand for a difference of at most 0.01. For two classes, and with :class:`Thresholds`; no ``gap_weight``,
        ``gamma`` or ``disparity`` beside it.
    method : {"auto", "fine_tune", "threshold"}, FineTuning or Thresholds, default="auto"
        "fine_tune" and "threshold" stand for :class:`FineTuning` and :class:`Thresholds` with their default parameters.
        "auto" fine-tunes a model with a torch network (:class:`~skfairdp.FairDPSGDClassifier`, a skorch net), and
        moves the thresholds of all others; with ``constraints`` it always moves thresholds.
    gap_weight : float or None, default=None
        The expected accuracy, at least 0, given for one unit of gap: 0.5 gives half a point for each point, 0 changes
        nothing. None means 1. Give this or ``gamma``, not both.
    gamma : float or None, default=None
        γ, the largest gap wanted on the public rows. If no candidate meets it, the smallest gap found is kept, with a
        ``FairnessWarning``.
    disparity : {"others", "overall", "between"}, default="others"
        What a group's rate is compared with, see :func:`skfairdp.fairness.disparities`.
    groups : list of labels or None, default=None
        All groups; intersections are tuples. None takes those of the rows given to ``fit``.
    sensitive_columns : name, index or list of them, default=None
        Columns of X that hold the groups. They are dropped from the features, unless the estimator was fitted with as
        many columns as X has, or takes them out itself; ``sensitive_features`` is then not passed.
    schema : Schema, default=None
        All that is public about a raw table, of whose columns the groups are taken. The estimator gets the table as it
        is and reads it by a schema of its own, which is taken for this one where that is None. No ``groups`` or
        ``sensitive_columns`` beside it.
    public_data : PublicData, default=None
        Public rows to calibrate on, as ``X_public`` of ``fit``. ``clone`` shares it. None takes that of the estimator,
        if it is to be fitted.

    Attributes
    ----------
    estimator_ : classifier
        What predicts: the estimator, with the fine-tuned network where there is one.
    method_ : FineTuning or Thresholds
        The method used.
    classes_ : ndarray of shape (n_classes,)
        Labels, from the estimator.
    {groups_}
    gap_before_ : float
        Demographic disparity of the estimator's predictions on the public rows. With ``constraints`` the largest
        difference between two groups of the rates they speak of (of a bound or a ratio: by how much it is broken).
    gap_after_ : float
        The same after calibration; never larger.
    {judged}
        Here each fifth of the public rows is answered by what the other four calibrate, but for a row that is alone in
        its group. What all of them calibrate may differ: rows that it answers otherwise make ``gap_bound_`` wider, and
        so does that the bound was met on these rows. Of rows that the model has sampled only ``gap_`` is known, and of
        a model that public rows have taught, which may be these, by a penalty of FairDPSGD or through a ``student`` of
        your own: ``gap_bound_`` is 1. Public rows count as drawn independently: copies of a row are no further persons.
    agreement_ : float
        Share of the public rows whose prediction is unchanged.
    satisfied_ : bool
        Whether ``gap_after_`` is at most ``gamma``; True without ``gamma``. With ``constraints``, whether they hold.
    violation_ : float
        By how much the worst constraint is broken on the public rows; 0 where all hold (``constraints`` only).
    edges_ : ndarray of shape (n_bins - 1,)
        Where bins of scores end (``constraints`` only).
    answers_ : ndarray of shape (n_groups, n_bins) or None
        The chance that a bin is answered by the second class, for the group of a row or, where it is not given at
        prediction, the one its features speak for most. None where the model met the constraints already
        (``constraints`` only).
    multipliers_ : ndarray of shape (n_groups, 1, n_classes)
        μ, one for each group, the one cell that holds all rows, and each class; all zero where nothing is changed
        (:class:`Thresholds` only).
    group_estimator_ : classifier
        The estimator of the group (:class:`Thresholds` without the group at prediction only).
    privacy_ : PrivacySpent
        That of the estimator, where it has one, with what was paid for the schema: calibration adds nothing to it.
    {n_features_in_, feature_names_in_}

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
    >>> print(f"gap {fair.gap_before_:.2f} before, {fair.gap_after_:.2f} after")
    gap 0.31 before, 0.00 after

    Equalized odds needs labels of the public rows:

    >>> from skfairdp.fairness import RateParity
    >>> odds = FairnessCalibrator(model, constraints=RateParity("selection_rate_by_label", 0.05))
    >>> odds = odds.fit(split.X_public, split.y_public, sensitive_features=split.sensitive_features_public)
    >>> round(odds.gap_after_, 2), odds.satisfied_  # on the public rows; "equalized_odds" asks for 0.01
    (0.03, True)
    """

    estimator: Any
    _: KW_ONLY
    constraints: Any = None
    method: str | FineTuning | Thresholds = "auto"
    gap_weight: float | None = None
    gamma: float | None = None
    disparity: str = "others"
    public_data: _utils.PublicData | None = None

    # Asked for by default, so that a search or pipeline with metadata routing never drops the groups by accident.
    __metadata_request__fit = {"X_public": True, "sensitive_features_public": True}

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [HasMethods(["fit"])],
        "method": [StrOptions({"auto", "fine_tune", "threshold"}), FineTuning, Thresholds],
        "gap_weight": [Interval(Real, 0, None, closed="left"), None],
        "gamma": [Interval(Real, 0, 1, closed="both"), None],
        "constraints": "no_validation",
        "disparity": [StrOptions({"others", "overall", "between"})],
        "groups": ["array-like", None],
        "sensitive_columns": [str, Integral, "array-like", None],
        "schema": [SCHEMA_CONSTRAINT, None],
        "public_data": [_utils.PublicData, None],
    }

    def fit(
        self,
        X: Any,
        y: MaybeArray = None,
        *,
        sensitive_features: Any = None,
        X_public: ArrayLike | _utils.PublicData | None = None,
        sensitive_features_public: MaybeArray = None,
        subject: SubjectLike = None,
    ) -> Self:
        """Calibrate on public rows; an estimator that is not fitted is fitted first, on X and y.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            With a fitted estimator and no ``X_public``: **public** rows, as the estimator predicts them. Otherwise the
            rows that the estimator is fitted on, if it is not yet.
        y : array-like of shape (n_rows,), default=None
            Labels for an estimator that is fitted here. With a fitted one, the public labels that ``constraints`` may
            need; ignored without ``constraints``.
        sensitive_features : array-like of shape (n_rows,), Series or DataFrame, default=None
            Group of each row of X; the columns of a DataFrame form intersections. Left out where ``sensitive_columns``
            names them. Passed on to an estimator that requests it, as those of this package do.
        X_public : array-like of shape (n_public, n_features) or PublicData, default=None
            Public rows to calibrate on, which an estimator gets as well whose ``fit`` takes them. Use
            :class:`~skfairdp.PublicData` inside a search, and for public labels: ``PublicData(X, groups, y)``.
        sensitive_features_public : array-like of shape (n_public,) or DataFrame, default=None
            Their groups, where ``X_public`` does not carry them.
        {subject}
            Passed on to the estimator, which must be fitted here and take it.

        {returns_self}

        Raises
        ------
        ValueError
            A parameter is outside its range; the estimator is not fitted (``NotFittedError``) and there is nothing to
            fit or to calibrate it on; it is no classifier, has no probabilities, or no network where one is to be
            fine-tuned; groups are missing, of another length, or outside ``groups``, or a group has no row;
            ``constraints`` need labels that the public rows do not have. All of this is said before an estimator is
            fitted, wherever it can be known by then.

        Warns
        -----
        FairnessWarning
            ``gamma`` or ``constraints`` are not met; a group has fewer than 30 public rows; what is asked, or the gap
            before, is no more than chance on so few rows.
        """
        self._validate_params()
        self._check_price()
        if self._asks_for_groups:
            inputs.refuse_search_by_X_alone(f"{_OWNER} with Thresholds(group_at_prediction=True)")
        public = self._public_rows(X_public, sensitive_features_public)
        model = self._fitted_estimator()
        if model is not None and subject is not None:
            raise ValueError(
                f"{_OWNER} around a fitted estimator reads public rows only, so that 'subject' protects nobody here. "
                "Leave it out, and give it to the fit of the estimator."
            )
        samples = model is None and public is None
        if model is None:
            X, y, metadata = self._arguments(X, y, sensitive_features, public, subject)
            fitted = _utils.without_cells(clone(self.estimator).fit, X, y, owner=_OWNER, **metadata)
            for name in [name for name in vars(self) if name == "_calibrated" or name.endswith("_")]:
                delattr(self, name)  # nothing of an earlier fit stands beside this model
            self.estimator_ = fitted  # there to be used, whatever becomes of its calibration
            model = inputs.fitted(self.estimator_, _OWNER)
        if samples:
            public = model._released_rows()
        if public is not None:
            X, y, sensitive_features = public.X, public.y, public.sensitive_features
        self._calibrate(model, X, y, sensitive_features, samples=samples)
        return self

    def _calibrate(self, model: Any, X: Any, y: Any, sensitive_features: Any, *, samples: bool) -> None:
        # the method as a part of its own, with everything checked that the model can be wrong in
        if isinstance(self.method, str):
            may_tune = self.method == "auto" and self.constraints is None
            tunes = self.method == "fine_tune" or (may_tune and inputs.network_of(model) is not None)
            method: Method = FineTuning() if tunes else Thresholds()
        else:
            method = clone(self.method)
        method._check(model, _OWNER)
        rows, domain = self._read(X, model, sensitive_features)
        labels = None if self.constraints is None else self._labels(X, y, rows.classes, domain)
        for name in (_FITTED - {"estimator_"}) & vars(self).keys():
            delattr(self, name)
        self.classes_, self.groups_ = rows.classes, domain
        found = self._found_by(method, model, rows, labels)
        judgement = None
        if self.gamma is not None or self.constraints is not None:
            judgement = self._judged(method, model, rows, labels, found)
            if self.method == "auto" and isinstance(method, FineTuning) and judgement.holds == "no":
                other = Thresholds()
                by_other = self._found_by(other, model, rows, labels)
                of_other = self._judged(other, model, rows, labels, by_other)
                if of_other.violation < judgement.violation:
                    method, judgement, found = other, of_other, by_other
        self._calibrated: Any = found.calibrated
        self.gap_before_, self.gap_after_, self.satisfied_ = found.gap_before, found.gap_after, found.is_met
        if self.constraints is not None:
            self.violation_ = found.violation
        self.method_ = method
        for name, value in self._calibrated.attributes().items():
            setattr(self, name, value)
        self.agreement_ = float(np.mean(found.answers == rows.before))
        account = Account.of(model)
        taught = any(
            getattr(part, "parity_taken_", None) == "public_penalty" or getattr(part, "student", None) is not None
            for part in account.private
        )
        if judgement is not None:
            if self.constraints is None and self.disparity == "others" and len(self.groups_) > 2:
                judgement = replace(judgement, weaker=self._held(to_overall=True))  # no group is nearer to all others
            # How far rows that the model samples are from private ones, nobody has looked. A penalty knows its rows,
            # and a student that is not ours may.
            set_judgement(self, judgement, in_doubt=samples or taught)
        if paid := [*account.reports, *held_by(_utils.PublicData(X, sensitive_features))]:
            self.privacy_ = composed(*paid, *held_by(self))
        if account.reports and account.unseen:
            _utils.warn_caller(account.warning(_OWNER), PrivacyLeakWarning)
        self._warn(rows, labels if constrained.look_at_labels(self._asked()) else None, found.answers)
        if judgement is not None and self.satisfied_:
            judgement.warn(
                _OWNER,
                f"rows that {'the model samples' if samples else 'may have taught it'}"
                if samples or taught
                else "public rows that did not calibrate it",
                "It holds on the rows that did, which are overfitted. Give more public rows, or set "
                "method=Thresholds(group_at_prediction=True).",
                in_doubt=samples or taught,
                check="Calibrate on public rows" if samples else "Fit the model with lam=0 or without a 'student'",
            )

    def _found_by(self, method: Method, model: Any, rows: CalibrationRows, labels: Ints | None) -> _Found:
        """A model calibrated by these rows, and what its answers to them come to."""
        if self.constraints is None:
            gap_weight = 1.0 if self.gap_weight is None else self.gap_weight
            best = partial(TradeOff, rows, gap_weight=gap_weight, gamma=self.gamma, disparity=self.disparity)
            calibrated, choice = method._calibrate(model, rows, best, owner=_OWNER)
            answers = calibrated.answer(rows.features, rows.table, rows.groups)
            gap = choice.gap_of(answers)
            return _Found(calibrated, answers, choice.gap_before, gap, self.gamma is None or gap <= self.gamma)
        assert isinstance(method, Thresholds)
        held = constrained.constraints_of(self._asked(), self.groups_, rows.classes, _OWNER)
        by_rates, before, after, violation = constrained.meet_constraints(model, rows, held, labels, method, _OWNER)
        answers = by_rates.answer(rows.features, rows.table, rows.groups)
        return _Found(by_rates, answers, before, after, violation <= constrained.MET, violation)

    def _judged(
        self, method: Method, model: Any, rows: CalibrationRows, labels: Ints | None, found: _Found
    ) -> Judgement:
        """By rows that did not calibrate what answers them: each fifth of them is answered by what the others make."""
        answers = np.empty(len(rows.groups), dtype=np.int64)
        for taught, asked in fifths(rows.groups, labels):
            own = None if labels is None else labels[taught]
            calibrated, others = self._found_by(method, model, rows.part(taught), own).calibrated, rows.part(asked)
            answers[asked] = calibrated.answer(others.features, others.table, others.groups)
        return Judgement.by_fifths(self._held(), rows.groups, labels, answers, found.answers)

    @answers_as_fitted
    def predict(self, X: Any, *, sensitive_features: Any = None) -> Array:
        """Predict the class of each row.

        Parameters
        ----------
        {X_predict}
        sensitive_features : array-like of shape (n_rows,), Series or DataFrame, default=None
            Group of each row; required with ``Thresholds(group_at_prediction=True)`` (unless ``sensitive_columns``
            names them), and not read without.

        Returns
        -------
        {returns_labels}

        Raises
        ------
        ValueError
            Groups that are needed are missing, unseen or of another length. Unfitted: ``NotFittedError``.
        """
        check_is_fitted(self, "method_")
        reads_groups = self._calibrated.reads_groups
        given = sensitive_features if reads_groups else None
        features, table, groups = self._split(X, self.estimator_, reset=False, sensitive_features=given)
        codes = None
        if reads_groups:
            if groups is None:
                raise ValueError(
                    f"{_OWNER} with Thresholds(group_at_prediction=True) needs sensitive_features to predict."
                )
            codes = _utils.encode_groups(groups, self.groups_, inputs.shape_of(X)[0], owner=_OWNER, parameter="groups")
        return self.classes_[self._calibrated.answer(features, table, codes)]

    @available_if(
        lambda self: (
            isinstance(getattr(self, "method_", None), FineTuning) and hasattr(self.estimator_, "predict_proba")
        )
    )
    @answers_as_fitted
    def predict_proba(self, X: Any) -> Floats:
        """Class probabilities of the fine-tuned model (:class:`FineTuning` only: thresholds have none).

        {predicts_proba}
        """
        check_is_fitted(self, "method_")
        features, _, _ = self._split(X, self.estimator_, reset=False)
        return np.asarray(_utils.without_cells(self.estimator_.predict_proba, features, owner=_OWNER))

    def score(self, X: Any, y: ArrayLike, *, sensitive_features: Any = None, sample_weight: MaybeArray = None) -> float:
        """Accuracy on the given rows.

        Parameters
        ----------
        {X_predict}
        y : array-like of shape (n_rows,)
            True labels.
        sensitive_features : array-like of shape (n_rows,), Series or DataFrame, default=None
            As for :meth:`predict`.
        sample_weight : array-like of shape (n_rows,), default=None
            Weight of each row.

        Returns
        -------
        accuracy : float
            Share of rows whose prediction is true, weighted.
        """
        predicted = self.predict(X, sensitive_features=sensitive_features)
        return float(accuracy_score(y, predicted, sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self.constraints is not None:
            tags.classifier_tags.multi_class = False
        return tags

    @property
    def _asks_for_groups(self) -> bool:
        """Whether ``predict`` needs more than X."""
        return not self._finds_groups and bool(getattr(self.method, "group_at_prediction", False))

    # ------------------------------------------------------------------ an estimator that is not fitted

    def _fitted_estimator(self) -> Any:
        """The estimator, or None where it is to be fitted."""
        return None if inputs.fits_its_estimator(self) else inputs.fitted(self.estimator, _OWNER)

    def _public_rows(self, X_public: Any = None, sensitive_features_public: Any = None) -> _utils.PublicData | None:
        """Given to fit, or to the constructor of the calibrator, or of an estimator that is to be fitted."""
        labels = getattr(self.public_data if X_public is None else X_public, "y", None)
        given, groups = public_arguments(self, X_public, sensitive_features_public)
        if given is not None:
            return _utils.PublicData(given, groups, labels)
        if groups is not None:
            raise ValueError(f"{_OWNER} got sensitive_features_public without X_public.")
        inner = (
            getattr(inputs.last_part(self.estimator), "public_data", None) if inputs.fits_its_estimator(self) else None
        )
        return inner if isinstance(inner, _utils.PublicData) and not isinstance(self.estimator, Pipeline) else None

    def _handed_on(
        self, X: Any, y: Any = None, *, sensitive_features: Any = None, subject: Any = None, **public: Any
    ) -> tuple[Any, ...]:
        """The arguments of the estimator's ``fit``, for a search that plans it."""
        self._validate_params()
        self._check_price()
        return self._arguments(X, y, sensitive_features, self._public_rows(**public), subject)

    def _arguments(
        self, X: Any, y: Any, sensitive_features: Any, public: _utils.PublicData | None, subject: Any
    ) -> tuple[Any, ...]:
        """The arguments of the estimator's ``fit``, once it is known that there are rows to calibrate on."""
        releases = getattr(self.estimator, "_releases_rows", None)
        own = self.sensitive_columns is None and releases is not None and releases(sensitive_features is not None)
        if (public is None and not own) or (
            y is None and inputs.schema_for(self) is None and inputs.needs_labels(self.estimator)
        ):
            raise NotFittedError(
                f"{_OWNER} calibrates a classifier that is fitted already; this {type(self.estimator).__name__} is "
                "not. Fit it first (in a search wrap it in sklearn.frozen.FrozenEstimator), or let the calibrator "
                "fit it on private rows and pass public ones: fit(X, y, X_public=PublicData(X, groups)). Without "
                "public rows use PrivateThresholds, or an 'estimator' that samples them: FairPATEClassifier or "
                "SyntheticDataClassifier, fitted with groups."
            )
        _utils.check_same_index(_OWNER, X=X, y=y)
        inputs.check_takes(self.estimator, _OWNER, subject=subject)
        if public is not None:
            public = _utils.PublicData(inputs.apart_from_ids(public.X, subject)[0], public.sensitive_features, public.y)
        X, subject = inputs.apart_from_ids(X, subject)
        self._check_goal(public)
        if public is None:
            metadata = inputs.FitArguments(X, y, sensitive_features, None, None, subject=subject).metadata(self)
            schema = inputs.schema_for(self)
            if schema is not None and opened(X) is None:  # by groups, also where the estimator alone needs none
                raw = RawTable.read(schema, X, owner=_OWNER)
                metadata["sensitive_features"] = raw.domain[raw.groups(sensitive_features)].tolist()
            return X, y, metadata
        features, _, found = self._split(
            X, self.estimator, reset=False, sensitive_features=sensitive_features, private=True
        )
        part = inputs.last_part(self.estimator)
        has_some = getattr(part, "public_data", None) is not None or not getattr(part, "_takes_public_rows", True)
        handed, _ = inputs.without_group_columns(self, X, None if has_some else public, None)
        given = inputs.FitArguments(
            features, y, found, handed, None, named=found is sensitive_features, subject=subject
        )
        return features, y, given.metadata(self)

    def _check_goal(self, public: _utils.PublicData | None) -> None:
        """Raise a ValueError for public rows that the estimator, once fitted, cannot be calibrated on."""
        asked = self._asked()
        if public is None:
            if constrained.look_at_labels(asked) and not getattr(self.estimator, "_releases_labels", False):
                constrained.refuse_unlabelled(asked, _OWNER)
            return
        _, _, groups = self._split(public.X, self.estimator, reset=True, sensitive_features=public.sensitive_features)
        domain, codes = inputs.public_groups(
            groups, inputs.declared_groups(self), inputs.shape_of(public.X)[0], owner=_OWNER
        )
        if asked:
            schema = inputs.schema_for(self)
            named = getattr(inputs.last_part(self.estimator), "classes", None) if schema is None else schema.classes
            classes = None if named is None else np.unique(np.asarray(named))
            labels = inputs.public_labels(self, public.X, public.y, owner=_OWNER)
            if labels is None and constrained.look_at_labels(asked):
                constrained.refuse_unlabelled(asked, _OWNER)
            if classes is None and labels is not None:
                classes = np.unique(labels)
            if classes is None:
                return
            constraints = constrained.constraints_of(asked, domain, classes, _OWNER)
            if labels is not None:
                truth = _utils.encode_labels(labels, classes, owner=_OWNER, name="y", parameter="estimator")
                constrained.check_rates(constraints, constraints.tally(codes, truth, np.zeros_like(truth)), _OWNER)

    # ------------------------------------------------------------------ calibration

    def _check_price(self) -> None:
        if self.gap_weight is not None and self.gamma is not None:
            raise ValueError(
                f"{_OWNER} got both 'gap_weight', a weight of the gap, and 'gamma', a bound on it. Leave one of them "
                "out."
            )
        if self.constraints is not None:
            given = {name: getattr(self, name) is not None for name in ("gap_weight", "gamma")}
            refuse_beside_constraints(_OWNER, {**given, "disparity": self.disparity != "others"})
            if isinstance(self.method, FineTuning) or self.method == "fine_tune":
                raise ValueError(
                    f"FineTuning of {_OWNER} lowers the demographic disparity alone. With 'constraints' take "
                    'method="threshold".'
                )
        if not isinstance(self.method, str):
            self.method._validate_params()
        self._asked()

    def _asked(self) -> tuple[RateParity | RateBound, ...]:
        """The constraints, none where there are none."""
        return () if self.constraints is None else read_rate_constraints(self.constraints, _OWNER)

    def _labels(self, X: Any, y: Any, classes: Array, domain: Objects) -> Ints | None:
        """The code of each public row's label; None where there are none and no constraint needs them."""
        asked = self._asked()
        constrained.constraints_of(asked, domain, classes, _OWNER)
        labels = inputs.public_labels(self, X, y, owner=_OWNER)
        if labels is not None:
            return _utils.encode_labels(labels, classes, owner=_OWNER, name="y", parameter="estimator")
        if constrained.look_at_labels(asked):
            constrained.refuse_unlabelled(asked, _OWNER)
        return None

    def _read(self, X: Any, model: Any, sensitive_features: Any) -> tuple[CalibrationRows, Objects]:
        """The public rows with what the model says of them, and the groups."""
        features, table, groups = self._split(X, model, reset=True, sensitive_features=sensitive_features)
        domain, codes = inputs.public_groups(groups, inputs.declared_groups(self), inputs.shape_of(X)[0], owner=_OWNER)
        classes = inputs.classes_of(model)
        before = inputs.class_codes(_utils.without_cells(model.predict, features, owner=_OWNER), classes, owner=_OWNER)
        return CalibrationRows(features, table, codes, len(domain), classes, before), domain

    def _split(
        self, X: Any, model: Any, *, reset: bool, sensitive_features: Any = None, private: bool = False
    ) -> tuple[Any, Any, Any]:
        """Return what the model reads, what the estimator of the group reads, and the groups (None: not given)."""
        table, groups = inputs.split_rows(self, X, sensitive_features, reset=reset, owner=_OWNER, private=private)
        schema = inputs.schema_for(self)
        if schema is not None:
            return X, SchemaEncoder(schema).transform(X), groups
        whole = self.sensitive_columns is not None and inputs.reads_whole(model, X)
        return (X if whole else table), table, groups

    def _warn(self, rows: CalibrationRows, labels: Ints | None, after: Ints) -> None:
        sizes = np.bincount(rows.groups if labels is None else 2 * rows.groups + labels)
        smallest, counted = int(sizes[sizes > 0].min()), "public rows" if labels is None else "public rows of a label"
        if smallest < _FEW_ROWS:
            _utils.warn_caller(
                f"The smallest group has {smallest} {counted}: the gap on other rows can be far from that on these. "
                f"Give at least {_FEW_ROWS} of each to {_OWNER}.",
                FairnessWarning,
            )
        else:
            constraints, truth = self._held(), np.zeros_like(rows.groups) if labels is None else labels
            counts = constrained.answer_counts(constraints, rows.groups, truth, rows.before)
            changed = bool((after != rows.before).any())
            found = words_of_noise(constraints, counts, changed=changed, rows=counted, owner=_OWNER)
            if found is not None:
                _utils.warn_caller(found, FairnessWarning)
        if not self.satisfied_ and self.constraints is not None:
            _utils.warn_caller(
                f"No predictions that {_OWNER} found satisfy its constraints on the public rows: the best violate one "
                f"by {self.violation_:.3g}. Loosen the bounds, or use the group: "
                "method=Thresholds(group_at_prediction=True).",
                FairnessWarning,
            )
        elif not self.satisfied_:
            _utils.warn_caller(
                f"The smallest gap that {_OWNER} found on the public rows is {self.gap_after_:.3g}, above gamma="
                f"{self.gamma:g}. Give more public rows, or try method=Thresholds(group_at_prediction=True).",
                FairnessWarning,
            )

    def _held(self, *, to_overall: bool = False) -> RateConstraints:
        """What was asked for, on the rates of these groups and classes."""
        gamma = 1.0 if self.gamma is None else self.gamma
        method = "to_overall" if to_overall or self.disparity == "overall" else "between_groups"
        asked: tuple[RateParity | RateBound, ...] = (RateParity("selection_rate", gamma, method=method),)
        return RateConstraints(self._asked() or asked, self.groups_.tolist(), self.classes_.tolist(), _OWNER)
