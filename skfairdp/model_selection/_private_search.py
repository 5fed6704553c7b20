"""Search where only the winner comes out, at the price of two to three fits."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from skfairdp import privacy
from skfairdp._docs import shared_docs
from skfairdp._utils import RandomStateLike, Told, silence
from skfairdp._utils._sklearn import Interval, StrOptions
from skfairdp.exceptions import UnplannedReleaseError, UtilityWarning
from skfairdp.model_selection._candidate import SearchFailedError
from skfairdp.model_selection._scores import Bound, read_bounds, utility_of
from skfairdp.model_selection._search import SearchBase, divided, search_facts
from skfairdp.model_selection._search_data import SearchData, read_search


@dataclass(frozen=True)
class Trials:
    """Every candidate with its cost. What a trial returns is private until the best of them is chosen."""

    data: SearchData
    bounds: Sequence[Bound]
    refits: bool
    fits: list[tuple[privacy.DpEvent, list[privacy.DpEvent]]]

    @property
    def events(self) -> list[privacy.DpEvent]:
        """The cost of a trial of each candidate."""
        return [self._cost(parts, [whole], 1) for whole, parts in self.fits]

    @property
    def composed(self) -> privacy.DpEvent:
        """The cost of one trial of every candidate."""
        parts = [privacy.compose(*(parts[j] for _, parts in self.fits)) for j in range(len(self.data.splits))]
        return self._cost(parts, [whole for whole, _ in self.fits], len(self.fits))

    def _cost(self, parts: list[privacy.DpEvent], wholes: list[privacy.DpEvent], n_scores: int) -> privacy.DpEvent:
        if not self.data.splits:
            return privacy.compose(*wholes)
        return privacy.compose(self.data.cost(parts, n_scores), *(wholes if self.refits else ()))

    def make(self, index: int, noise: privacy.NoiseSource) -> tuple[tuple[float, float], tuple[int, Told, float]]:
        """One trial: its rank, and what comes out if it wins. A fit that fails wins and ends the search, which is paid
        for: had it lost, a record that makes fits fail would choose among the others."""
        try:
            made, values = self._fitted_and_scored(index, noise)
        except UnplannedReleaseError:
            raise
        except Exception:
            return (math.inf, math.inf), (index, (None, {}), math.nan)
        objective = self.data.scores.objectives[0]
        value = values[objective.name]
        if math.isnan(value):  # behind whatever has a score, and what has none but fails
            return (-math.inf, -math.inf), (index, made, value)
        missed = sum(bound.excess(values[bound.name]) for bound in self.bounds)
        return (-missed, -value if objective.minimize else value), (index, made, value)

    def _fitted_and_scored(self, index: int, noise: privacy.NoiseSource) -> tuple[Told, dict[str, float]]:
        data, (whole, parts) = self.data, self.fits[index]
        epsilon = data.epsilon(whole)
        if not data.splits:
            made = data.fit(data.grid[index], None, whole)
            return made, data.scores.measure(made[0], None, epsilon, None)
        folds = []
        for (train, test), planned in zip(data.splits, parts, strict=True):
            made = data.fit(data.grid[index], train, planned, **data.fold_options)
            # A record is in the table of one fold: each has its own noise, and may draw it once.
            with data.scores.paid(None if noise.is_secret else noise.seed(), 1) as of_table:
                folds.append(data.scores.measure(made[0], test, epsilon, of_table))
        values = {name: float(np.mean([fold[name] for fold in folds])) for name in folds[0]}
        return (data.fit(data.grid[index], None, whole) if self.refits else made), values


_FEW = 3  # so few candidates are composed: every one of them is then tried, exactly once


@shared_docs
@dataclass(kw_only=True, eq=False, repr=False)
class PrivateSearchCV(SearchBase):
    """Search over parameters that shows only the winner, for the privacy cost of about two to three fits.

    **Guarantee.** ``privacy_`` covers the winner, its parameters and its score, under the estimator's own neighbouring
    relation. Each trial draws a candidate at random, fits it, scores it (on public rows, or by a noisy table that is
    charged) and costs at most what the costliest candidate costs. The number of trials is drawn from the operating
    system and, like every trial but the best, stays secret; then the best of them costs two or three fits,
    however large the grid is (Papernot & Steinke 2022; :class:`skfairdp.privacy.PrivateSelection`). There is no
    ``cv_results_``, no progress bar and no time per trial, since each of them would reveal the number of trials. **The
    duration of the search reveals it too**, and is not covered by the guarantee: do not publish it.

    Where it is cheaper to pay for every candidate once (always for up to three), that is what is done, and the losers
    stay as secret. One ledger entry stands for the whole search, and is written before it.

    Parameters
    ----------
    estimator : estimator
        A private estimator of this package, alone or inside a Pipeline or a post-processor. Its ``schema``, or that of
        the last step of a Pipeline, names the classes and groups of a raw table.
    param_grid : dict or list of dict
        Parameter names → lists of values. It is public, and must not have been made by looking at the private rows.
    scoring : str, scorer, pair, or dict of one, default=None
        What the winner is best in, as one of the objectives of :class:`ParetoSearchCV`. None is "accuracy", or "r2" of
        a regressor.
    bounds : dict of name → str, default=None
        Bounds such as ``{"disparity": "<= 0.05"}``, judged by the same score; candidates that miss them lose to those
        that do not, and among themselves by how much they miss.
    method : {"auto", "selection", "composition"}, default="auto"
        Random trials, every candidate once, or whichever is cheaper.
    trial_distribution : {"logarithmic", "half", "geometric", "poisson"}, default="logarithmic"
        Of the number of trials. "poisson" may make none, and then there is no winner.
    expected_trials : float, default=None
        Mean number of trials, at least 1. None is the number of candidates.
    cv : int, splitter or iterable of (train, test), default=None
        Private rows to score on, where no public ones are given. None holds out one part by position, on which the
        winner is not trained: a record is then in one part or the other, and a trial costs no more than a fit. With
        folds a trial makes all of their fits and one more on all rows, and costs as many.
    test_size : float, default=0.2
        Share to hold out with ``cv=None``.
    score_epsilon : float, default=0.25
        Cost of one table of scores at ``delta``.
    total_epsilon : float, default=None
        ε of the whole search at its δ: of all fits and scores, and of released schemas.
        One factor, by which the estimator's ``epsilon`` and ``score_epsilon`` are multiplied, divides it: these then
        say in which proportion a fit and a table of scores share. ``privacy_.epsilon`` is the total, or less where
        no factor gives it exactly. :meth:`planned_privacy` says beforehand what a fit gets. None takes
        ``epsilon`` and ``score_epsilon`` as they are.
    delta : float, default=None
        δ of the search. None is the estimator's, which has to be greater than 0 where scores are charged.
    random_state : int, RandomState, Generator or None, default=None
        Public randomness: the part held out by position, an estimator without a ``random_state`` of its own.

    Attributes
    ----------
    best_estimator_ : estimator
        The winner. Its ``privacy_`` is that of the search, for it would not be this one without it.
    best_params_ : dict
    best_score_ : float
        The winner's value of the objective: exact on public rows, noisy on private ones.
    {privacy_, epsilon_spent_}
    method_ : {"selection", "composition"}
    n_candidates_ : int
    classes_, n_features_in_
        Of the winner.

    {fit_raises}
    RuntimeError
        From ``fit``, after the search was charged: a fit failed. The text is always the same, and nothing comes out,
        for a failure can depend on private rows; it must not choose the winner, nor be hidden.

    Warns
    -----
    UserWarning
        A Poisson law made no trial, so that there is no winner. Of fits only the winner's warnings are given.

    Examples
    --------
    >>> from skfairdp import FairPATEClassifier, PublicData
    >>> from skfairdp.datasets import make_biased_classification, train_private_public_test_split
    >>> from skfairdp.model_selection import PrivateSearchCV
    >>> X, y, groups = make_biased_classification(6000, disparity=0.2, random_state=0)
    >>> split = train_private_public_test_split(X, y, groups, random_state=0)
    >>> checked = PublicData(split.public.X, split.public.sensitive_features, y=split.y_public)
    >>> search = PrivateSearchCV(FairPATEClassifier(classes=[0, 1], epsilon=0.5, random_state=0),
    ...                          {"n_teachers": [10, 20, 40, 60, 80], "gamma": [0.2, 0.4]})
    >>> search = search.fit(split.X, split.y, X_public=split.public, validation=checked)
    >>> search.n_candidates_, search.method_, round(search.epsilon_spent_, 1)  # all ten would cost 1.8
    (10, 'selection', 1.0)
    """

    method: str = "auto"
    trial_distribution: str = "logarithmic"
    expected_trials: float | None = None
    cv: Any = None
    test_size: float = 0.2
    score_epsilon: float = 0.25
    total_epsilon: float | None = None
    delta: float | None = None
    random_state: RandomStateLike = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **SearchBase._parameter_constraints,
        "method": [StrOptions({"auto", "selection", "composition"})],
        "trial_distribution": [StrOptions({"logarithmic", "half", "geometric", "poisson"})],
        "expected_trials": [Interval(Real, 1, 1e6, closed="both"), None],
        "test_size": [Interval(Real, 0, 1, closed="neither")],
    }

    def _search(self, data: SearchData, plan: "_Plan") -> dict[str, type[Warning]]:
        spending = self._spending(plan)
        with spending as noise, silence():  # a warning a trial would tell how many there were
            spending.settle()  # all of it, before the first trial
            self.method_ = plan.method
            best = self._best(plan.trials, noise)
        self.n_candidates_ = len(data.grid)
        if best is None:
            return {
                f"{type(self).__name__} has no winner: the random number of trials was 0, and the cost is spent all "
                "the same. Raise 'expected_trials' to make this rarer.": UserWarning
            }
        index, (winner, told), value = best
        if winner is None:
            raise SearchFailedError(type(self).__name__)
        self.best_params_, self.best_score_ = data.grid[index], value
        self.best_estimator_ = data.candidate.chosen(winner, self.privacy_)
        if math.isnan(value):
            told[
                f"The winner of {type(self).__name__} has no score, so it is no better than any other of the "
                f"{len(data.grid)} candidates.{data.scores.problem(winner)}"
            ] = UtilityWarning
        return told

    def _planned(self, X: Any, y: Any = None, **given: Any) -> tuple[SearchData, "_Plan"]:
        owner = type(self).__name__
        scoring = utility_of(self.estimator) if self.scoring is None else self.scoring
        if isinstance(scoring, tuple) or callable(scoring):
            scoring = {"score": scoring}
        elif not isinstance(scoring, str) and not (isinstance(scoring, Mapping) and len(scoring) == 1):
            raise ValueError(f"The 'scoring' parameter of {owner} must be a single objective. Got {scoring!r} instead.")
        objective = self._scoring_of(scoring)[0]
        bounded = [name for name in (self.bounds or {}) if name != objective.name]
        objectives = [objective, *(self._scoring_of(bounded) if bounded else [])]  # first what to be best in
        bounds = read_bounds(self.bounds, objectives, owner=owner)
        holdout = self.test_size if self.cv is None else None
        data = read_search(self, X, y, **given, objectives=objectives, holdout=holdout, quiet=True)
        return divided(data, self.total_epsilon, partial(self._plan, bounds=bounds))

    def _plan(self, data: SearchData, bounds: list[Bound]) -> "_Plan":
        planned = [data.plan(params) for params in data.grid]
        kinds = {(whole.protects, whole.neighboring_relation) for whole, _ in planned}
        if len(kinds) > 1:
            raise ValueError(f"The candidates give unlike guarantees ({len(kinds)} kinds). Search them separately.")
        fits = [(whole.event, [part.event for part in parts]) for whole, parts in planned]
        trials = Trials(data, bounds, self.cv is not None, fits)
        method = "composition" if self.method == "auto" and len(fits) <= _FEW else self.method
        if method == "auto":
            costs = {one: privacy.epsilon_of(self._event(trials, one), data.delta) for one in _METHODS}
            method = min(_METHODS, key=lambda one: costs[one])
        return _Plan(trials, method, self._event(trials, method))

    def _best(self, trials: Trials, noise: privacy.NoiseSource) -> tuple[int, Told, float] | None:
        """Position, model and score of the best trial; None where none was made."""
        if self.method_ == "composition":
            made = [trials.make(j, noise) for j in range(len(trials.fits))]
            return max(made, key=lambda scored: scored[0])[1]  # of equal ones the first
        candidates = privacy.SecretChoice(len(trials.fits))
        return self._selection(trials).select(lambda: trials.make(candidates.draw(noise), noise), noise)

    def _selection(self, trials: Trials) -> privacy.PrivateSelection:
        mean = len(trials.fits) if self.expected_trials is None else self.expected_trials
        return privacy.PrivateSelection(privacy.WorstOf(tuple(trials.events)), float(mean), self.trial_distribution)

    def _event(self, trials: Trials, method: str) -> privacy.DpEvent:
        return trials.composed if method == "composition" else self._selection(trials).event

    def _spending(self, plan: "_Plan") -> privacy.Spending:
        data, releases = plan.trials.data, f"the best of {len(plan.trials.data.grid)} candidates, by {plan.method}"
        account: dict[str, Any] = {"ledger": data.ledger, "noise_seed": data.noise_seed, "forgets": (self.__dict__,)}
        said: dict[str, Any] = {"releases": (releases,), "public": search_facts(data), "rows_of": data.planned.rows_of}
        account["label"], account["holds"] = f"{type(self).__name__} of {data.planned.label}", data.holds
        report = partial(setattr, self, "privacy_")
        return privacy.Spending(plan.event, data.delta, data.relation, report_to=report, **account, **said)


_METHODS = ("selection", "composition")


@dataclass(frozen=True)
class _Plan:
    """The trials, how the best is found, and what that costs."""

    trials: Trials
    method: str
    event: privacy.DpEvent
