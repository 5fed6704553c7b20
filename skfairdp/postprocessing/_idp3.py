"""IDP3: refuse the predictions that would break a constraint on rates at inference time."""

import contextlib
import os
import threading
from collections.abc import Hashable, Iterator
from dataclasses import KW_ONLY
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin, clone
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import check_consistent_length, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skfairdp import _utils, fairness
from skfairdp._docs import shared_docs
from skfairdp._typing import Array, ArrayLike, Bools, Ints, MaybeArray, Objects, SubjectLike
from skfairdp._utils._sklearn import A_LEARNER, Interval, StrOptions, answers_as_fitted, as_fitted
from skfairdp.exceptions import PrivacyLeakWarning
from skfairdp.postprocessing import _gated as gated, _inputs as inputs
from skfairdp.privacy import held_by
from skfairdp.schema import SCHEMA_CONSTRAINT, with_schema

Proposed = tuple[Array, Ints, Ints]  # answers, classes or bins, groups

#: Threads of a service commit in turn; one lock for all, which no copy or pickle has to carry along.
_COMMITS = threading.Lock()


def _forked() -> None:
    """The thread that held the lock does not exist in the child."""
    global _COMMITS
    _COMMITS = threading.Lock()


os.register_at_fork(after_in_child=_forked)


@shared_docs
@with_schema(kw_only=False)
class IDP3(inputs.RoutesToEstimator, ClassifierMixin, _utils.NamedEstimator):
    """Inference-time fairness post-processor: answers a stream of predictions, or refuses to.

    *Privacy.* The counters are counts of predictions: a function of the (private) model and of the rows it is asked
    about. For the training data of a differentially private model they are post-processing, so IDP3 costs no budget
    and changes no ε. **They are not private for the people who are asked about**: whether one of them is answered
    depends on the groups and predictions of those before, and no ε is claimed for them.

    *Fairness.* With Γ(z, k) the demographic disparity of the answers given so far and E = Σ max(0, Γ(z, k) - γ), an
    answer is given if it lowers E, or leaves E as it is with its own Γ(z, k) below γ. A group with fewer than
    ``min_count`` answers is always answered (cold start). So no answer outside a cold start raises E, and once every
    group has ``min_count`` answers and E = 0, every Γ(z, k) stays at most γ for the rest of the stream. **A cold start
    alone can leave a gap far above γ**, and a call with fewer than ``n_groups * min_count`` rows from zero counts may
    be nothing but cold start: predictions with true rates .1 and .6 keep their gap of .5 when asked row by row from
    zero counts, and get one of at most .05 in one call. A service asks :meth:`answer`, which decides and counts in one
    step. Of ratios and bounds in ``constraints``, E is what all inequalities are broken by, and the same holds of every
    inequality.

    *Amounts.* Around a regressor, Γ(z, t) is by how much the share of group z's answers up to t differs, in either
    direction: its largest value is the Kolmogorov-Smirnov distance of the answered amounts (with
    ``disparity="between"`` that of :func:`skfairdp.metrics.ks_disparity`). An amount is withheld as NaN where E would
    rise, or not fall with a Γ of its own group at γ or above. The t are the ``limits_`` of 64 bins by public
    numbers: equal shares of what is predicted of ``X_public``, else equal parts of the bounds of the regressor or
    schema. Between two of them the distance can be larger, by at most the share of a group's answers in that bin.
    ``constraints``, ``gate`` and ``reject_label`` are for classes, as is what asks for labels.

    *Fairness where labels come later.* With ``constraints`` that look at true labels every rate is that of the answered
    rows whose label has come back. A constraint is in force once ``min_count`` labels are behind each of its rates.
    An answer is given if it cannot break a constraint in force, **whichever outstanding labels come back, as what and
    in what order**: what holds in that sense, as :meth:`worst_case` says, holds for the rest of the stream. A
    constraint that could be broken when it came into force is never broken by more than it could be then.

    ``answer`` decides and counts at once, so that requests at the same time, from threads or (with a ``store``) from
    processes, cannot each take the same room. ``predict``, ``transform``, ``reject_mask`` and ``score`` are pure: they
    start from the counts, process the rows in order and change nothing. Whoever calls :meth:`update` after one of them
    has to keep other requests out in between. Which rows are refused depends on the rows before them.

    Parameters
    ----------
    estimator : classifier, regressor or None, default=None
        One that is fitted already is used as it is; wrap it in ``sklearn.frozen.FrozenEstimator`` where IDP3 is cloned,
        as searches do. Any other is fitted by ``fit``, which hands public rows and groups on to it. None makes a
        post-processor of predictions from elsewhere, with ``transform`` in place of ``predict``.
    gamma : float or None, default=0.05
        γ, from 0 to 1: the largest demographic disparity let through. None answers everything.
    constraints : str, RateParity, fairlearn moment or None, default=None
        The same in the words of the other estimators, with a bound of its own: "demographic_parity",
        ``RateParity("selection_rate", difference_bound=0.1)``, or fairlearn's ``DemographicParity``. ``gamma``,
        ``disparity`` and ``gate`` then follow from it, and stay at their defaults. Ratios of selection rates
        (``ratio_bound=0.8`` is the four-fifths rule), bounds on them, of each group, of some or of all answers, and
        several at once are held as well. What looks at true labels ("equalized_odds", "equal_opportunity", a bound on
        an error rate) needs them to come back: give ``tickets`` to :meth:`update`, and the labels to
        :meth:`update_labels`.
    min_count : int, default=50
        M, the answers each group gets unconditionally. Keep γ(M + 1) above 2, or above 1/2 for two classes: below, the
        counts easily reach a state in which every answer would widen the gap (a ``FairnessWarning`` says when). Of a
        ratio r: so many that r / (1 - r) of them, four for the four-fifths rule, have the rarest class compared. Of
        constraints on labels: the labels that have to be back before a rate counts, at least 1/(2γ²) for a difference
        of γ, or chance decides where the gate begins; as many answers of amounts (200 for γ = 0.05).
    disparity : {"others", "overall", "between"}, default="others"
        What a group's rate is compared with, see :func:`skfairdp.fairness.disparities`.
    gate : {"excess", "local"}, default="excess"
        The rule above, or the paper's check of the answered pair alone, which lets other pairs drift beyond γ; see
        :class:`skfairdp.fairness.FairnessGate`.
    reject_label : label or None, default=None
        What a refusal looks like; of the classes' type and no class. None: -1 for numbers (one less than the smallest
        class where -1 is a class), "reject" for strings. Booleans are answered as 1, 0 and -1, as no third one exists.
    store : str, PathLike or None, default=None
        A file in which all processes that answer one stream keep its counts: each call reads it, and what changes
        counts writes it, under a lock. ``fit`` goes on from what it holds, by the rule that is set by then. It is as
        private as the rows that were asked about (counts of answers, tickets of outstanding labels); only its owner can
        read it.
    groups : list of labels or None, default=None
        All groups; intersections are tuples. None takes the estimator's ``groups``, else those of the public rows, else
        those among the rows given to ``fit``; where those rows are private, that reveals which groups occur, so give
        the list.
    {sensitive_columns}
    schema : Schema, default=None
        All that is public about a raw table, of whose columns the groups are taken. The estimator gets the table as it
        is and reads it by a schema of its own, which is taken for this one where that is None, or by a SchemaEncoder.
        No ``groups`` or ``sensitive_columns`` beside it.

    Attributes
    ----------
    estimator_ : classifier or regressor
        The fitted estimator; absent with ``estimator=None``.
    classes_ : ndarray of shape (n_classes,)
        Labels, from the estimator, or from y with ``estimator=None``; not of amounts.
    limits_ : ndarray of shape (n_limits,)
        The limits t at which shares of amounts are compared, in rising order; of amounts only.
    groups_ : ndarray of shape (n_groups,), dtype object
        Groups in the order of the rows of ``counts_``.
    counts_ : ndarray of shape (n_groups, n_classes), int64
        Committed answers; of amounts ``n_limits + 1`` bins take the place of classes. Zero after ``fit``, whose rows
        are never counted; changed by ``answer`` and ``update``.
    rejected_counts_ : ndarray of shape (n_groups,), int64
        Committed refusals.
    reject_label_ : label
        What a refusal looks like; of amounts NaN.
    label_counts_ : ndarray of shape (n_groups, n_classes, n_classes), int64
        Answers whose label has come back, by group, label and answer; with constraints on labels only.
    outstanding_counts_ : ndarray of shape (n_groups, n_classes), int64
        Committed answers whose label may still come back; with constraints on labels only.
    coverage_ : float
        Share of the committed rows that were answered; set with the counts.
    rejection_rate_by_group_ : dict
        Group to the share of its committed rows that were refused (NaN without rows); set with the counts.
    {n_features_in_, feature_names_in_}

    References
    ----------
    Yaghini et al. (2023), "Learning to walk impartially on the Pareto frontier", Section 3.3, Algorithm 2 (with
    line 6 read as m(z, ŷ)).

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp import IDP3
    >>> rng = np.random.default_rng(0)
    >>> group = rng.choice(["f", "m"], size=2000)
    >>> predicted = (rng.random(2000) < np.where(group == "f", 0.2, 0.4)).astype(int)
    >>> idp = IDP3(gamma=0.05).fit(None, predicted, sensitive_features=group)
    >>> answered = idp.answer(predicted, sensitive_features=group)
    >>> idp.coverage_
    0.8445

    The same language as elsewhere, with the bound in it:

    >>> from skfairdp.fairness import RateParity
    >>> idp = IDP3(constraints=RateParity("selection_rate", difference_bound=0.05))
    >>> again = idp.fit(None, predicted, sensitive_features=group).transform(predicted, sensitive_features=group)
    >>> bool((again == answered).all())  # of two groups and two classes every comparison is the same
    True

    Labels that come back, here a day later. The model finds four in ten of the women who repay, and six of the men; the
    answers of the past, with their labels, are where the counts begin:

    >>> truth = (rng.random(2000) < 0.5).astype(int)
    >>> predicted = truth * (rng.random(2000) < np.where(group == "f", 0.4, 0.6))
    >>> idp = IDP3(constraints=RateParity("true_positive_rate", 0.1), groups=["f", "m"])
    >>> idp = idp.fit(None, [0, 1])
    >>> past, *days = np.split(np.arange(2000), range(600, 2000, 100))
    >>> idp = idp.update(predicted[past], sensitive_features=group[past], tickets=past)
    >>> idp = idp.update_labels(truth[past], tickets=past)
    >>> for day in days:
    ...     answered = idp.answer(predicted[day], sensitive_features=group[day], tickets=day)
    ...     possible = max(idp.worst_case().values())  # in the evening, whatever the labels will be
    ...     told = day[answered != idp.reject_label_]
    ...     idp = idp.update_labels(truth[told], tickets=told)
    >>> possible <= 0, round(idp.coverage_, 2)
    (True, 0.88)

    Amounts, of which public rows say where they lie:

    >>> from sklearn.linear_model import LinearRegression
    >>> sex = np.arange(3000) % 2
    >>> X = rng.normal(size=(3000, 1)) + 0.5 * sex[:, None]
    >>> model = LinearRegression().fit(X[:500], 20 + 3 * X[:500, 0])
    >>> idp = IDP3(model, min_count=200, groups=[0, 1]).fit(X[:500], X_public=X[500:1000])
    >>> amounts, sex = idp.answer(X[1000:], sensitive_features=sex[1000:]), sex[1000:]
    >>> from skfairdp.metrics import ks_disparity
    >>> told = ~np.isnan(amounts)
    >>> for said, of in ((model.predict(X[1000:]), sex), (amounts[told], sex[told])):
    ...     print(round(ks_disparity(None, said, sensitive_features=of), 2))
    0.23
    0.05
    >>> round(idp.coverage_, 2)
    0.75
    """

    estimator: Any = None
    _: KW_ONLY
    gamma: float | None = 0.05
    constraints: Any = None
    min_count: int = 50
    disparity: str = "others"
    gate: str = "excess"
    reject_label: Hashable | None = None
    store: str | os.PathLike[str] | None = None

    _read_after_fit: ClassVar[frozenset[str]] = _utils.NamedEstimator._read_after_fit | {
        "gamma", "constraints", "min_count", "disparity", "gate", "store",
    }  # fmt: skip

    # Asked for by default, so that a search or pipeline with metadata routing never drops the groups by accident.
    # Public rows go to the estimator, if it asks for them.
    __metadata_request__transform: ClassVar[dict[str, bool]] = {"sensitive_features": True}

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [A_LEARNER, None],
        "gamma": [Interval(Real, 0, 1, closed="both"), None],
        "constraints": "no_validation",
        "min_count": [Interval(Integral, 0, None, closed="left")],
        "disparity": [StrOptions({"others", "overall", "between"})],
        "gate": [StrOptions({"excess", "local"})],
        "reject_label": "no_validation",
        "groups": "no_validation",
        "sensitive_columns": [str, Integral, "array-like", None],
        "schema": [SCHEMA_CONSTRAINT, None],
        "store": [str, os.PathLike, None],
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
        """Fit the estimator, unless it is fitted already, and learn the classes and groups. No row is counted.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features) or None
            Features; may be None with ``estimator=None``.
        y : array-like of shape (n_rows,), default=None
            Labels; may be left out with an estimator that is fitted already.
        sensitive_features : array-like of shape (n_rows,), Series or DataFrame, default=None
            Group of each row; the columns of a DataFrame form intersections. May be left out where ``groups`` or
            ``sensitive_columns`` is given. Passed on to an estimator that requests it, as those of this package do.
        X_public : array-like of shape (n_public, n_features) or PublicData, default=None
            Public rows for the estimator, in the columns of X; of amounts they say where ``limits_`` lie. Use
            :class:`~skfairdp.PublicData` inside a search.
        sensitive_features_public : array-like of shape (n_public,), default=None
            Their groups, where ``X_public`` does not carry them.
        {subject}
            Passed on to the estimator, which must take it.

        {returns_self}

        Raises
        ------
        ValueError
            A parameter is outside its range; no groups, or only one where they are inferred; a group outside
            ``groups``; missing values; lengths differ; a ``reject_label`` that is a class or of another type; public
            rows for an estimator that takes none; a regressor with neither public rows nor bounds.

        Warns
        -----
        PrivacyLeakWarning
            Groups are inferred from the rows on which an estimator with a privacy guarantee is fitted.
        FairnessWarning
            Constraints on labels, or γ of amounts, ask for less than chance leaves of ``min_count`` labels or answers.
        """
        self._validate_params()
        given, domain, inferred = self._read(X, y, sensitive_features, X_public, sensitive_features_public, subject)
        if inputs.fits_its_estimator(self):
            metadata = given.metadata(self)
            self.estimator_ = _utils.without_cells(clone(self.estimator).fit, given.X, y, owner="IDP3", **metadata)
            if inferred and hasattr(inputs.last_part(self.estimator_), "privacy_"):
                _utils.warn_caller(
                    "IDP3 read its groups from the private rows given to fit, which reveals them outside the guarantee "
                    "of the estimator. Give them with the 'groups' parameter.",
                    PrivacyLeakWarning,
                )
        elif self.estimator is not None:
            self.estimator_ = self.estimator
            check_is_fitted(self.estimator)
            if not hasattr(self.estimator, "predict"):
                name = type(self.estimator).__name__
                raise ValueError(f"The 'estimator' of IDP3 must have 'predict', which it gates; {name} has none.")
        self.groups_, self._paid = domain, held_by(X_public)
        if self._amounts:
            self.limits_, self.reject_label_ = inputs.limits_of_amounts(self, given.X_public), float("nan")
        else:
            known = self.estimator is not None and getattr(self.estimator_, "classes_", None) is not None
            classes = inputs.classes_of(self.estimator_) if known else inputs.read_classes(y)
            self.reject_label_, self.classes_ = inputs.reject_label(self.reject_label, classes), classes
        gated.warn_of_noise(self.constraints, self.min_count, self.gamma if self._amounts else None)
        self._forget()
        with self._moment():  # what the store holds, and checks of the parameters before anything is predicted
            self._gate()
        return self

    def reset(self) -> Self:
        """Forget all that was committed: counts, labels and tickets. The estimator stays as it is.

        {returns_self}
        """
        check_is_fitted(self, "groups_")
        with _COMMITS, self._store_locked() as store:
            self._forget()
            if store is not None:
                store.write(self.counts_, self.rejected_counts_, self._later)
        self._gate()
        return self

    def _forget(self) -> None:
        shape = len(self.groups_), len(self.limits_) + 1 if self._amounts else len(self.classes_)
        self.counts_ = np.zeros(shape, dtype=np.int64)
        self.rejected_counts_ = np.zeros(shape[0], dtype=np.int64)
        self._later = gated.LaterLabels(*shape) if gated.asked_of_labels(as_fitted(self).constraints) else None
        for name in ("coverage_", "rejection_rate_by_group_"):
            if hasattr(self, name):
                delattr(self, name)

    @contextlib.contextmanager
    def _store_locked(self) -> Iterator[gated.AnswerStore | None]:
        """The store, which no other process has meanwhile; None where there is none."""
        path = as_fitted(self).store
        if path is None:
            yield None
            return
        answers = self.limits_ if self._amounts else self.classes_
        store = gated.AnswerStore(path, self.groups_.tolist(), answers.tolist())
        with store.locked():
            yield store

    @contextlib.contextmanager
    def _moment(self, *, commits: bool = False) -> Iterator[None]:
        """Counts of one moment: no other thread changes them meanwhile, and with a store no other process. What is
        committed is on the disk at the end. An error leaves everything as it was."""
        with _COMMITS, self._store_locked() as store:
            if store is not None:
                self._load(store)
            before = self.counts_, self.rejected_counts_, None if self._later is None else self._later.copy()
            try:
                yield
                if commits and store is not None:
                    store.write(self.counts_, self.rejected_counts_, self._later)
            except BaseException:
                self._count(*before)
                raise

    def _load(self, store: gated.AnswerStore) -> None:
        found = store.read(self._later is not None)
        if found is not None:
            self._count(*found)
        elif self.counts_.any() or self.rejected_counts_.any():
            raise ValueError(
                f"The file {store.path} of IDP3's 'store' is gone, and with it the answers of other processes. "
                "Restore it, or call reset() to start again."
            )

    def _count(self, answered: Ints, refused: Ints, later: gated.LaterLabels | None) -> None:
        self.counts_, self.rejected_counts_, self._later = answered, refused, later
        rows = answered.sum(axis=1) + refused
        if not rows.any():
            return
        self.coverage_ = float(answered.sum() / rows.sum())
        self.rejection_rate_by_group_ = {
            group: float(some / n) if n else float("nan")
            for group, some, n in zip(self.groups_.tolist(), refused, rows, strict=True)
        }

    def _commit(self, labels: Ints, groups: Ints, names: list[Any]) -> None:
        """Count answers and refusals, inside a moment."""
        n_groups, n_answers = self.counts_.shape
        answers = fairness.tally(groups, labels, (n_groups, n_answers + 1))  # the last column is refusals
        if self._later is not None:
            self._later.answered(names, groups, labels)
        self._count(self.counts_ + answers[:, :-1], self.rejected_counts_ + answers[:, -1], self._later)

    def _names(self, tickets: Any, n_rows: int, method: str) -> list[Any]:
        waits = self._later is not None
        if tickets is not None and not waits:
            raise ValueError(
                f"IDP3.{method} takes 'tickets' only with 'constraints' on true labels, such as 'equalized_odds'. "
                "Leave them out."
            )
        return gated.tickets_of(tickets, n_rows, method) if waits else []

    def answer(self, X: Any, *, sensitive_features: Any = None, tickets: Any = None) -> Array:
        """Decide which rows are answered, and commit the answers and refusals in the same step.

        What a service calls. Requests that come at once are answered one after the other, each from the counts that
        the one before has left: by threads, and with a ``store`` by processes too. Nothing is committed where an error
        is raised.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Features; with ``estimator=None`` predicted labels of shape (n_rows,), as for :meth:`transform`.
        sensitive_features : array-like of shape (n_rows,), Series or DataFrame, default=None
            Group of each row, unless ``sensitive_columns`` names them.
        tickets : array-like of shape (n_rows,), default=None
            With constraints on labels: a name of each row, as for :meth:`update`.

        {returns_gated}

        Raises
        ------
        ValueError
            As for :meth:`predict` and :meth:`update`; a ``store`` of other groups, classes or constraints.

        Examples
        --------
        >>> from skfairdp import IDP3
        >>> idp = IDP3(gamma=0.05, groups=["f", "m"], min_count=50).fit(None, [0, 1])
        >>> told = idp.answer([0] * 100 + [1] * 100, sensitive_features=["f", "m"] * 100)
        >>> idp.answer([1, 1, 1, 0], sensitive_features=["m", "m", "m", "m"]).tolist(), int(idp.counts_.sum())
        ([1, 1, 1, 0], 204)
        """
        check_is_fitted(self, "counts_")
        predicted, labels, groups = self._proposed(X, sensitive_features)
        names = self._names(tickets, len(labels), "answer")
        with self._moment(commits=True):
            given = self._admitted(groups, labels)
            self._commit(np.where(given, labels, self.counts_.shape[1]), groups, names)
        return self._withheld(predicted, given)

    @answers_as_fitted
    def _proposed(self, X: Any, sensitive_features: Any) -> Proposed:
        """What is predicted of rows: answers, and with their groups as codes."""
        if self.estimator is None:
            return self._codes(X, sensitive_features, "y_pred")
        features, groups = inputs.split_rows(self, X, sensitive_features, reset=False)
        codes = inputs.group_codes(groups, self.groups_, inputs.shape_of(X)[0])
        features = X if inputs.reads_whole(self.estimator_, X) else features
        return *self._answers(_utils.without_cells(self.estimator_.predict, features, owner="IDP3"), "y_pred"), codes

    def predict(self, X: Any, *, sensitive_features: Any = None) -> Array:
        """Predict labels, with the reject label where an answer would widen the gap. Changes nothing.

        Parameters
        ----------
        {X_predict}
        sensitive_features : array-like of shape (n_rows,), Series or DataFrame, default=None
            Group of each row, unless ``sensitive_columns`` names them.

        {returns_gated}

        Raises
        ------
        ValueError
            Groups missing, unseen or of another length; no estimator. Unfitted: ``NotFittedError``.

        Warns
        -----
        FairnessWarning
            The counts are zero and the call has fewer than ``n_groups * min_count`` rows; constraints on labels are not
            in force yet; or the counts have reached a state in which every further answer would widen the gap.
        """
        check_is_fitted(self, "counts_")
        if as_fitted(self).estimator is None:
            raise ValueError("IDP3 has no estimator to predict with. Give one, or use transform(y_pred).")
        return self._answer(*self._proposed(X, sensitive_features))

    @available_if(lambda self: as_fitted(self).estimator is None)
    def transform(self, y_pred: ArrayLike, *, sensitive_features: Any = None) -> Array:
        """Replace predictions whose answer would widen the gap by the reject label. Changes nothing.

        Available with ``estimator=None``; :meth:`reject_mask` does the same for any IDP3.

        Parameters
        ----------
        y_pred : array-like of shape (n_rows,)
            Labels among ``classes_``, predicted by anything. Reject labels among them stay and are not counted.
        sensitive_features : array-like of shape (n_rows,), Series or DataFrame
            Group of each row.

        {returns_gated}

        Raises
        ------
        ValueError
            As for :meth:`predict`, where it also warns; labels outside ``classes_``; no rows.
        """
        check_is_fitted(self, "counts_")
        return self._answer(*self._codes(y_pred, sensitive_features, "y_pred"))

    def reject_mask(self, y_pred: ArrayLike, *, sensitive_features: Any = None) -> Bools:
        """Return which of these predictions would be refused. Changes nothing.

        Parameters
        ----------
        y_pred : array-like of shape (n_rows,)
            As for :meth:`transform`.
        sensitive_features : array-like of shape (n_rows,), Series or DataFrame
            As for :meth:`transform`.

        Returns
        -------
        refused : ndarray of shape (n_rows,), bool
            Whether each of them would be refused.
        """
        check_is_fitted(self, "counts_")
        _, labels, groups = self._codes(y_pred, sensitive_features, "y_pred")
        with self._moment():
            return ~self._admitted(groups, labels)

    def update(self, y_answered: ArrayLike, *, sensitive_features: Any = None, tickets: Any = None) -> Self:
        """Commit what was told elsewhere, such as decisions of people. What :meth:`answer` says is committed already.

        Parameters
        ----------
        y_answered : array-like of shape (n_rows,)
            What each row was told: labels, decisions of people included, or the reject label for no answer.
        sensitive_features : array-like of shape (n_rows,), Series or DataFrame
            Group of each row.
        tickets : array-like of shape (n_rows,), default=None
            With constraints on labels: a name of each row, such as the index of the table, under which its label will
            come back. Refused rows wait for none, so theirs may come again once a person has decided.

        {returns_self}

        Raises
        ------
        ValueError
            As for :meth:`transform`; tickets that are missing, not needed, twice the same, or outstanding already.
            Nothing is committed then.
        """
        check_is_fitted(self, "counts_")
        _, labels, groups = self._codes(y_answered, sensitive_features, "y_answered")
        names = self._names(tickets, len(labels), "update")
        with self._moment(commits=True):
            self._commit(labels, groups, names)
        return self

    def update_labels(self, y_true: ArrayLike, *, tickets: Any) -> Self:
        """Hand in true labels of answered rows, in any order; those that stay out may come later or never.

        Parameters
        ----------
        y_true : array-like of shape (n_rows,)
            Labels among ``classes_``. None or NaN says that a label will never come: the row counts for no rate then,
            and the gate need not allow for its label any more.
        tickets : array-like of shape (n_rows,)
            What these rows were called in :meth:`update`.

        {returns_self}

        Raises
        ------
        ValueError
            A ticket that waits for no label, as it was never given, was refused or has its label; one that comes
            twice; labels outside ``classes_``; ``constraints`` look at no labels. Nothing is committed then.
        """
        check_is_fitted(self, "counts_")
        if self._later is None:
            raise ValueError(
                "IDP3.update_labels needs 'constraints' on true labels, such as 'equalized_odds'. Leave the call out: "
                "demographic parity needs no labels."
            )
        labels = gated.label_or_none(y_true, self.classes_)
        names = gated.tickets_of(tickets, len(labels), "update_labels")
        with self._moment(commits=True):
            self._later.labelled(names, labels)
        return self

    def worst_case(self) -> dict[str, float]:
        """Return by how much outstanding labels could break each inequality; with constraints on labels only.

        Returns
        -------
        dict of str to float
            The inequality in words to the largest amount by which it can be broken: at most 0 where it holds whichever
            labels come back, NaN where it is not in force yet.
        """
        check_is_fitted(self, "counts_")
        with self._moment():
            gate = self._gate()
        if not isinstance(gate, fairness.RateGate):
            raise ValueError(
                "IDP3.worst_case needs 'constraints' on true labels, such as 'equalized_odds'. Read 'counts_' "
                "instead, which are exact without labels."
            )
        return dict(zip(gate.constraints.inequalities, gate.worst_case().tolist(), strict=True))

    @property
    def label_counts_(self) -> Ints:
        """Answers whose label has come back, by group, label and answer."""
        return self._counted_later("label_counts_")[0]

    @property
    def outstanding_counts_(self) -> Ints:
        """Committed answers whose label may still come back, by group and answer."""
        return self._counted_later("outstanding_counts_")[1]

    def score(self, X: Any, y: ArrayLike, *, sensitive_features: Any = None, sample_weight: MaybeArray = None) -> float:
        """Return the accuracy on the answered rows, of amounts R².

        Parameters
        ----------
        {X_predict}
        y : array-like of shape (n_rows,)
            True labels.
        sensitive_features : array-like of shape (n_rows,), Series or DataFrame, default=None
            Group of each row, unless ``sensitive_columns`` names them.
        sample_weight : array-like of shape (n_rows,), default=None
            Weight of each row.

        Returns
        -------
        float
            In [0, 1], of R² at most 1; NaN where no row was answered.
        """
        predicted = self.predict(X, sensitive_features=sensitive_features)
        check_consistent_length(predicted, y, sample_weight)
        kept = ~np.isnan(predicted) if self._amounts else predicted != self.reject_label_
        if not kept.any():
            return float("nan")
        weight = None if sample_weight is None else np.asarray(sample_weight)[kept]
        try:
            measure = r2_score if self._amounts else accuracy_score
            return float(measure(np.asarray(y)[kept], predicted[kept], sample_weight=weight))
        except ValueError as error:  # it quotes labels, which may be private
            problem = _utils.without_values(error, owner=type(self).__name__, name="y")
        raise problem

    def __getstate__(self) -> Any:
        with _COMMITS:  # tickets of one moment, and of this object alone
            state = super().__getstate__()
            later = state.get("_later")
            return state if later is None else {**state, "_later": later.copy()}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if inputs.predicts_amounts(self.estimator):
            inner = get_tags(self.estimator)
            tags.estimator_type, tags.classifier_tags = inner.estimator_type, None
            tags.regressor_tags = inner.regressor_tags
        return tags

    @property
    def predicts_rows_alone(self) -> bool:
        """Whether each answer follows from its own row, so that a search may score it on private rows."""
        rule = as_fitted(self)
        return rule.gamma is None and rule.constraints is None

    @property
    def _amounts(self) -> bool:
        """Whether answers are amounts, as those of a regressor, and no classes."""
        return inputs.predicts_amounts(as_fitted(self).estimator)

    def _check_rule(self) -> None:
        """Raise a ValueError where constraints cannot be read, or are not alone; of amounts, where there are any."""
        given = {"constraints": self.constraints, "reject_label": self.reject_label}
        for_classes = [name for name, value in given.items() if value is not None]
        for_classes += ["gate"] if self.gate != "excess" else []
        if self._amounts and for_classes:
            raise ValueError(
                f"IDP3 around a regressor takes no '{for_classes[0]}', which is for classes: it holds the "
                "Kolmogorov-Smirnov distance of the answered amounts to 'gamma', and a refusal is NaN. Leave it out."
            )
        if self.constraints is None:
            return
        fairness.read_rate_constraints(self.constraints, "IDP3")
        usual = {"gamma": 0.05, "disparity": "others", "gate": "excess"}
        fairness.refuse_beside_constraints("IDP3", {name: getattr(self, name) != one for name, one in usual.items()})

    def _handed_on(self, X: Any, y: Any = None, **given: Any) -> tuple[Any, Any, dict[str, Any]]:
        """The arguments of the estimator's ``fit``, for a search that plans it."""
        self._validate_params()
        arguments, _, _ = self._read(X, y, **given)
        return arguments.X, y, arguments.metadata(self)

    @property
    def _asks_for_groups(self) -> bool:
        """Whether ``predict`` needs more than X."""
        return not self._finds_groups

    def _read(
        self,
        X: Any,
        y: Any,
        sensitive_features: Any = None,
        X_public: Any = None,
        sensitive_features_public: Any = None,
        subject: Any = None,
    ) -> tuple[inputs.FitArguments, Objects, bool]:
        """What the estimator is fitted on, the groups, and whether they were read from the rows."""
        self._check_rule()
        fits = inputs.fits_its_estimator(self)
        if self._amounts and X_public is None and inputs.range_of_amounts(self) is None:
            raise ValueError(
                "IDP3 around a regressor needs public knowledge of where its amounts lie: give a fitted one and public "
                "rows with X_public, or one that has bounds."
            )
        schema = inputs.schema_for(self)
        labelled = schema is not None and schema.label is not None
        if y is None and fits and not labelled and inputs.needs_labels(self.estimator):
            raise ValueError(
                "IDP3 requires y to be passed, but the target y is None: it fits its estimator. Pass y, or give an "
                "estimator that is fitted already: IDP3(sklearn.frozen.FrozenEstimator(estimator))."
            )
        if fits:
            inputs.check_takes(self.estimator, "IDP3", X_public=X_public, subject=subject)
        if sensitive_features is not None and not self._finds_groups:
            inputs.refuse_search_by_X_alone("IDP3 in a search")
        X, subject = inputs.apart_from_ids(X, subject)
        if self.estimator is None:
            inputs.read_classes(y)  # raises where y cannot be classes
        if X is None and (self.estimator is not None or self.sensitive_columns is not None):
            raise ValueError("IDP3 requires X, unless it has neither 'estimator' nor 'sensitive_columns'.")
        if X is None:
            domain = inputs.read_groups(sensitive_features, inputs.declared_groups(self), inputs.shape_of(y)[0])
            return inputs.FitArguments(None, y, None, None, None), domain, False
        features, groups = inputs.split_rows(
            self, X, sensitive_features, reset=True, private=inputs.fits_its_estimator(self)
        )
        _utils.check_same_index("IDP3", X=X, y=y)
        if inputs.schema_for(self) is None:
            check_consistent_length(X, y)
        public = inputs.without_group_columns(self, X, X_public, sensitive_features_public)
        known = self._known_groups(X, *public)
        domain = inputs.read_groups(groups, known, inputs.shape_of(X)[0])
        if known is not None:
            self._check_names(domain)
        features = X if inputs.reads_whole(self.estimator, X) else features
        named = groups is sensitive_features
        return inputs.FitArguments(features, y, groups, *public, named=named, subject=subject), domain, known is None

    def _check_names(self, domain: Objects) -> None:
        """Raise a ValueError for a group or class that constraints name and that public lists do not."""
        inner = inputs.last_part(self.estimator)
        classes = getattr(inner, "classes_", getattr(inner, "classes", None))
        if self.constraints is not None and classes is not None:
            asked = fairness.read_rate_constraints(self.constraints, "IDP3")
            fairness.RateConstraints(asked, domain.tolist(), np.asarray(classes).tolist(), "IDP3")

    def _known_groups(self, X: Any, X_public: Any, groups: Any) -> Any:
        """Groups that are public: given, known to the estimator, or those of public rows."""
        declared, inner = inputs.declared_groups(self), getattr(inputs.last_part(self.estimator), "groups", None)
        if declared is not None or inner is not None:
            return inner if declared is None else declared
        if isinstance(X_public, _utils.PublicData):
            X_public, groups = X_public.X, X_public.sensitive_features if groups is None else groups
        if X_public is None:
            return None
        if (
            groups is None
            and self.sensitive_columns is not None
            and inputs.shape_of(X_public)[1:] == inputs.shape_of(X)[1:]
        ):
            groups = _utils.split_sensitive_columns(X_public, self.sensitive_columns, owner="IDP3")[1]
        if groups is None:
            return None
        return _utils.group_domain(
            _utils.as_groups(groups, inputs.shape_of(X_public)[0], owner="IDP3", name="the public groups")
        )

    def _codes(self, y: ArrayLike, groups: Any, name: str) -> Proposed:
        _utils.check_same_index("IDP3", **{name: y, "sensitive_features": groups})
        answers, labels = self._answers(y, name)
        return answers, labels, inputs.group_codes(groups, self.groups_, len(labels))

    def _answers(self, y: Any, name: str) -> tuple[Array, Ints]:
        """Answers, and the class or bin of each; that of a refusal is the one after the last."""
        if self._amounts:
            return inputs.bins_of_amounts(y, self.limits_, name)
        labels = inputs.label_codes(y, self._codebook(), name)
        return self._codebook()[labels], labels

    def _withheld(self, answers: Array, given: Bools) -> Array:
        answers[~given] = self.reject_label_
        return answers

    def _answer(self, answers: Array, labels: Ints, groups: Ints) -> Array:
        with self._moment():
            return self._withheld(answers, self._admitted(groups, labels))

    def _admitted(self, groups: Ints, labels: Ints) -> Bools:
        gate = self._gate()
        if isinstance(gate, fairness.RateGate):
            return gated.admitted_by_rates(gate, groups, labels)
        return gated.admitted(gate, groups, labels)

    def _counted_later(self, name: str) -> tuple[Ints, Ints]:
        later = getattr(self, "_later", None)
        if later is None:
            raise AttributeError(f"IDP3 has '{name}' once it is fitted with constraints that look at true labels.")
        return later.counts

    def _codebook(self) -> Array:
        """Return the labels by code: the classes, then the refusal."""
        return np.concatenate([self.classes_, [self.reject_label_]])

    def _gate(self) -> fairness.FairnessGate | fairness.AnswerGate | fairness.RateGate:
        """What decides from here on, by the rule of the fit."""
        rule, later = as_fitted(self), self._later
        asked = (
            None if rule.constraints is None else fairness.rule_of_gate(rule.constraints, self.counts_.shape[1], "IDP3")
        )
        if rule.constraints is not None and asked is None:
            read = fairness.read_rate_constraints(rule.constraints, "IDP3")
            constraints = fairness.RateConstraints(read, self.groups_.tolist(), self.classes_.tolist(), "IDP3")
            if later is None:
                return fairness.AnswerGate(constraints, min_count=rule.min_count, counts=self.counts_)
            labelled, outstanding = later.counts
            return fairness.RateGate(constraints, min_count=rule.min_count, labelled=labelled, outstanding=outstanding)
        gamma, disparity = asked or (rule.gamma, rule.disparity)
        kind = fairness.AmountGate if self._amounts else fairness.FairnessGate
        asked_for = {"gamma": gamma, "min_count": rule.min_count, "disparity": disparity, "gate": rule.gate}
        return kind(*self.counts_.shape, counts=self.counts_, **asked_for)
