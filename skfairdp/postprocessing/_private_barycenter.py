"""Amounts that are alike between groups: a fitted regressor's predictions, moved by what noisy histograms say."""

from dataclasses import KW_ONLY
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy.stats import norm
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from skfairdp import _inputs
from skfairdp._docs import shared_docs
from skfairdp._estimator import PrivateRegressor
from skfairdp._judge import KSJudgement
from skfairdp._row_wise import check_rows_alone, row_wise_amounts
from skfairdp._transport import Transport, TransportPlan, as_amounts_within, as_scores
from skfairdp._typing import Array, ArrayLike, Floats, Ints, MaybeArray, SubjectLike
from skfairdp._utils import as_amounts, warn_caller
from skfairdp._utils._sklearn import HasMethods, Interval, answers_as_fitted
from skfairdp.exceptions import FairnessWarning
from skfairdp.postprocessing import _group_guess as guessing
from skfairdp.postprocessing._charged import LEAST_EPSILON, ChargedForRows
from skfairdp.postprocessing._inputs import last_part, thawed
from skfairdp.privacy import Account, NeighboringRelation, rounded_up
from skfairdp.schema import with_schema

_MOST_GROUPS = 100


@shared_docs
@with_schema(kw_only=False)
class PrivateBarycenter(PrivateRegressor, ChargedForRows):
    """Move a fitted regressor's predictions so that their distributions agree between groups, by private rows.

    **Guarantee.** (ε, δ)-differential privacy for one *record* of the rows given to ``fit``: its features and group.
    Noisy tables of counts are released: where predictions lie (three times, ever more closely), predictions by group,
    and moved predictions by group. Where the group is guessed, noisy gradients of the network that guesses it and the
    sizes of groups are released before, within the same ε. Everything after that is post-processing. The fitted object
    holds the regressor as well, so ``privacy_`` **composes the regressor's own guarantee with that of the tables**,
    wherever it has a ``privacy_``. The ledger is charged for the tables alone. A regressor without a ``privacy_`` is
    taken to be public, with a PrivacyLeakWarning.

    *Fairness.* A prediction that is above the share u of its group's becomes the mean of what all groups have at their
    share u, weighted by rows: the barycenter in the Wasserstein distance. Of all rules that make the distributions
    agree it moves predictions least in squares (Chzhen et al. 2020; privately Xian, Li & Zhao 2024). Order within a
    group is kept.

    *Without the group at prediction* a prediction goes to the mean of where it would go in each group, weighted by how
    often its guess is right, and stretched as far as brings the true groups closest together by the released counts.
    How close depends on what features say of the group. On made tables of 8,000 rows at ε = 1 a distance of .2 fell to
    .05 where guesses were clear or middling, and stayed where they were next to chance.

    Parameters
    ----------
    estimator : regressor
        One that is fitted is not changed; wrap it in ``sklearn.frozen.FrozenEstimator`` where this object is cloned, as
        searches do. A private one that is not fitted is cloned and fitted first, on the same rows, for its own ε and
        with this ``ledger`` where it has none.
    epsilon : float, default=1.0
        Privacy budget of the tables, in [1e-3, 1e6].
    {delta}
    bounds : tuple of two floats, default=None
        Between which predictions lie, by public knowledge; those beyond count as the bound. None takes the ``bounds``
        of the estimator.
    gamma : float, default=0.05
        The largest distance of Kolmogorov and Smirnov that ``constraint_holds_`` asks for.
    group_at_prediction : bool, default=True
        Let ``predict`` and ``score`` read the group of each row. Without it **the group is guessed from the features**,
        as :class:`PrivateThresholds` does, by a network that the fit trains on the same rows for half of its squared
        cost. One row in three teaches nothing then, and is what ``gap_bound_`` is taken from. Where by public numbers
        a guess does not help, or the released counts do not show that groups come closer, predictions stay as they are.
    total_epsilon : float, default=None
        What the fit of the estimator, which is not fitted yet, and this one cost together at ``delta``, with schemas
        released for them, in [1e-3, 1e4]. One factor divides it, by which the ``epsilon`` of both are multiplied. None
        takes these as they are.
    {groups, sensitive_columns, schema}
    random_state : int, RandomState, Generator or None, default=None
        Public: what the network that guesses begins with.
    {noise_seed, ledger}

    Attributes
    ----------
    estimator_ : regressor
        The regressor whose predictions are moved.
    edges_ : ndarray of shape (n_cells + 1,)
        Where cells of predictions end. Released.
    counts_ : ndarray of shape (n_groups, n_cells) or (n_kinds, n_groups, n_cells)
        Noisy counts of rows by group and cell, and by kind of the guess before. Released, may be negative.
    strength_ : float
        Only without the group at prediction: how far predictions go, where 1 is the mean by guesses as they are, and
        0 leaves predictions as they are.
    gap_ : float
        The largest Kolmogorov-Smirnov distance between moved predictions of two groups, by noisy counts.
    gap_bound_ : float
        What it is at most in the population, with a confidence of 95 % (asymptotic in rows): noise and the sampling of
        these rows are in it, drawn anew from released counts; and, around a private regressor, what it may owe to
        having learned from these rows.
    y_center_, y_spread_ : float
        Those of the regressor; of one that has none the median of moved predictions and their standard deviation.
    constraint_holds_ : {"yes", "no", "within the noise"}
        Whether that distance is at most ``gamma`` in the population: surely, surely not, or neither.
    {groups_, privacy_, epsilon_spent_, n_features_in_, feature_names_in_}

    {fit_raises}

    See Also
    --------
    FairDPSGDRegressor : A private regressor, which also holds means of groups alike while it learns.
    PrivateThresholds : The counterpart for classes.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp import FairDPSGDRegressor, PrivacyLedger
    >>> from skfairdp.metrics import ks_disparity
    >>> from skfairdp.postprocessing import PrivateBarycenter
    >>> rng = np.random.default_rng(0)
    >>> groups = rng.integers(2, size=12_000)
    >>> X = rng.normal(size=(12_000, 3)) + groups[:, None] * [1.0, 0.0, 0.0]
    >>> y = 20 + X @ [3.0, 2.0, 0.0] + rng.normal(size=12_000)
    >>> train, test = slice(0, 8000), slice(8000, None)
    >>> ledger = PrivacyLedger(epsilon=1.0)
    >>> model = FairDPSGDRegressor(epsilon=0.5, bounds=(0, 50), random_state=0, ledger=ledger).fit(X[train], y[train])
    >>> fair = PrivateBarycenter(model, epsilon=0.7, groups=[0, 1], ledger=ledger)
    >>> fair = fair.fit(X[train], sensitive_features=groups[train])
    >>> moved = fair.predict(X[test], sensitive_features=groups[test])
    >>> before, after = (
    ...     ks_disparity(None, said, sensitive_features=groups[test]) for said in (model.predict(X[test]), moved)
    ... )
    >>> print(f"KS {before:.1f} before, {after:.2f} after; ε = {fair.epsilon_spent_:.2f} of both fits")
    KS 0... before, 0.0... after; ε = ... of both fits
    """

    estimator: Any = None
    _: KW_ONLY
    bounds: tuple[float, float] | None = None
    gamma: float = 0.05
    group_at_prediction: bool = True
    total_epsilon: float | None = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [HasMethods(["fit", "predict"]), None],
        "bounds": "no_validation",  # amount_bounds says what is wrong
        "epsilon": [Interval(Real, LEAST_EPSILON, 1e6, closed="both")],
        "gamma": [Interval(Real, 0, 1, closed="both")],
        "group_at_prediction": ["boolean"],
        "total_epsilon": [Interval(Real, LEAST_EPSILON, 1e4, closed="both"), None],
    }

    _kind = "regressor"

    def fit(
        self, X: ArrayLike, y: MaybeArray = None, *, sensitive_features: MaybeArray = None, subject: SubjectLike = None
    ) -> "PrivateBarycenter":
        """Release the tables and find how predictions move.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Private rows, as the regressor predicts them.
        y : array-like of shape (n_rows,), default=None
            There so that the signature is that of every estimator: no amount is of use.
        sensitive_features : array-like of shape (n_rows,) or DataFrame, default=None
            Private groups. Needed unless ``sensitive_columns`` or a schema names them.
        {subject}

        {returns_self}

        Warns
        -----
        PrivacyLeakWarning
            The regressor states no guarantee of its own.
        FairnessWarning
            ``constraint_holds_`` is "no", or noise hides a group.
        """
        if self._fit_both(X, y, sensitive_features=sensitive_features, subject=subject):
            return self
        data = self._read(X, y, sensitive_features=sensitive_features, subject=subject)
        plan = self._plan(data)
        model = self._fitted_estimator()
        blind = isinstance(plan, guessing.GuessedTransportPlan)
        network = guessing.guessing_network(plan, data, self.random_state, type(self).__name__) if blind else None
        transport: Transport | guessing.GuessedTransport
        low, high = self._bounds
        inner, taught_by_heart = last_part(model), self._by_heart(model, data)

        with self._spend(plan, data.reads) as noise:
            found, groups, places, units = self._scores_of_units(model, X, data)
            scores, codes, guess, looked = _everywhere(found), groups, None, np.ones(len(groups), dtype=bool)
            if isinstance(plan, guessing.GuessedTransportPlan):
                taught, looked = (rows[places] for rows in plan.kept_aside(plan.n_rows, noise))
                guess, codes = guessing.guessed_kinds(plan, network, units, places, taught, noise)
                transport = plan.release_by_kind(scores[taught], groups[taught], codes[taught], noise)
            else:
                transport = plan.release(scores, groups, noise)
            below, middle, above = low + (high - low) * np.interp(norm.cdf([-1, 0, 1]), *transport.quantiles)
            spread = getattr(inner, "y_spread_", float(above - below) / 2)
            widest = max([spread, *(getattr(one, "y_spread_", 0.0) for one in Account.of(model).private)])
            own = 2 * taught_by_heart * widest / (high - low)  # groups may be a spread off, either in its own direction
            seen = plan.release_judgement(transport, scores[looked], codes[looked], groups[looked], noise, own=own)

        self.gap_, self.gap_bound_, self.constraint_holds_ = seen.said(float(self.gamma))
        self.estimator_, self.groups_, self._transport, self._within = model, data.domain, transport, (low, high)
        self._guesses = guess
        if isinstance(transport, guessing.GuessedTransport):
            self.strength_ = transport.strength
        self.y_center_, self.y_spread_ = getattr(inner, "y_center_", float(middle)), spread
        self.edges_, self.counts_ = low + (high - low) * transport.edges, transport.counts
        _inputs.warn_of_other_units(
            type(self).__name__, "predictions", np.interp(_LEVELS, *transport.quantiles), (low, high)
        )
        self._warn(seen)
        return self

    @answers_as_fitted
    def predict(self, X: ArrayLike, *, sensitive_features: MaybeArray = None) -> Floats:
        """Predict the amount of each row.

        Parameters
        ----------
        {X_predict}
        {group_of_a_prediction}

        Returns
        -------
        amounts : ndarray of shape (n_rows,)
            The regressor's, moved, within the bounds.
        """
        check_is_fitted(self, "edges_")
        features = _inputs.read_features(self, X)
        rows = self._rows_for(self.estimator_, X, features)
        scores = _everywhere(_scores_within(self._within, self.estimator_, rows, np.arange(len(features))))
        codes = self._kinds_to_come(X, features, sensitive_features, reads_groups=self.group_at_prediction)
        return as_amounts_within(self._transport.move(scores, codes), self._within)

    # ------------------------------------------------------------------ pieces

    @property
    def _bounds(self) -> tuple[float, float]:
        """Given, or those of the estimator."""
        if self.bounds is not None:
            return _inputs.amount_bounds(self)
        last = last_part(self.estimator)  # 'bounds' beside 'bounds_y' are those of features
        return _inputs.amount_bounds(self, getattr(last, "bounds_y", getattr(last, "bounds", None)))

    def _check_settings(self) -> None:
        super()._check_settings()
        _ = self._bounds

    def _check_kinds(self, domain: Any, classes: Any = None) -> None:
        if not 2 <= len(domain) <= _MOST_GROUPS:
            raise ValueError(
                f"{type(self).__name__} compares every two groups, and got {len(domain)}: at least 2, and at most "
                f"{_MOST_GROUPS}, as each needs rows enough to show through the noise."
            )

    def _scores_of_rows(self, model: Any, table: Any, places: Ints) -> Floats:
        return _scores_within(self._bounds, model, table, places)

    def _read(
        self, X: Any, y: Any = None, *, sensitive_features: Any = None, subject: Any = None
    ) -> _inputs.TrainingData:
        model, owner = self._fitted_estimator(), type(self).__name__
        self._check_settings()
        check_rows_alone([_Amounts(thawed(model))], owner)
        data = self._read_by(_inputs.read_training, X, y, sensitive_features, subject, target=_no_target)
        self._check_columns(model, data.X.shape[1])
        self._note_the_model(model, data.reads)
        data.reads.note("bounds of predictions", "given", self._bounds, by=self.bounds)
        return data

    def _plan(self, data: _inputs.TrainingData, relation: NeighboringRelation | None = None) -> TransportPlan:
        self._check_kinds(data.domain)
        relation = relation or self._relation(self._fitted_estimator(), data.subjects is not None)
        given = data.n_units, len(data.domain), float(self.epsilon), float(self.delta), relation, data.rows_of
        if self.group_at_prediction:
            return TransportPlan(*given)
        return guessing.with_guess(guessing.GuessedTransportPlan(*given), data, self.schema, type(self).__name__)

    def _warn(self, seen: KSJudgement) -> None:
        """Everything told here is released, or follows from it."""
        owner = type(self).__name__
        if not seen.sees_all:
            group = self.groups_.tolist()[int(seen.rows.argmin())]
            warn_caller(
                f"The noise of {owner} hides the distribution of predictions in the group {group!r}, so their "
                f"correction is arbitrary. Give more rows of it, or raise epsilon ({self.epsilon:g}).",
                FairnessWarning,
            )
        elif self.constraint_holds_ == "no":
            more = f"More rows or a larger epsilon ({self.epsilon:g}) would help, where predictions are not all alike."
            if not getattr(self, "strength_", 1.0):
                more = (
                    "They are as they were: features do not show the group enough. group_at_prediction=True reads it."
                )
            warn_caller(
                f"{owner} did not reach gamma={self.gamma:g}: moved predictions of two groups are about "
                f"{self.gap_:.2g} apart, in the population at most {rounded_up(self.gap_bound_, 2)} at 95 % "
                f"confidence. {more}",
                FairnessWarning,
            )


class _Amounts(BaseEstimator):
    """A regressor's finite predictions."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def predict(self, X: Any) -> Floats:
        found = np.asarray(self.estimator.predict(X), dtype=np.float64).reshape(len(X), -1)
        if found.shape[1] != 1:
            raise ValueError("It predicts several amounts for a row.")
        found = found[:, 0]
        return np.where(np.isfinite(found), found, np.nan)


def _scores_within(bounds: tuple[float, float], model: Any, table: Any, places: Ints) -> Floats:
    """Predictions in [0, 1] between the bounds, NaN where there is none."""
    amounts = row_wise_amounts(_Amounts(thawed(model)), table, None, places=places)
    return np.where(np.isnan(amounts), np.nan, as_scores(amounts, bounds))


#: From where to where nearly all rows are.
_LEVELS = (0.05, 0.95)


def _everywhere(scores: Floats) -> Floats:
    """Scores in which a row without a prediction has the middle of the bounds: in the tables as in ``predict``."""
    return np.where(np.isnan(scores), 0.5, scores)


def _no_target(estimator: Any, y: Any, n_rows: int, reads: Any, **_: Any) -> tuple[Array, Ints]:
    """No amount is of use; those that are given are checked."""
    if y is not None:
        as_amounts(y, n_rows, owner=type(estimator).__name__)
    return np.empty(0), np.zeros(n_rows, dtype=np.int64)
