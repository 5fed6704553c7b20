"""Cross-validated search over several objectives, with the ε of the whole search."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skfairdp._docs import shared_docs
from skfairdp._utils import RandomStateLike, invalid_parameter, warn_caller
from skfairdp._utils._sklearn import N_JOBS, StrOptions
from skfairdp.exceptions import FairnessWarning, UtilityWarning
from skfairdp.model_selection._frame import hypervolume, pareto_frontier
from skfairdp.model_selection._scores import Bound, Objective, read_bounds, utility_of
from skfairdp.model_selection._search import SearchBase, divided
from skfairdp.model_selection._search_data import SearchData, read_search
from skfairdp.model_selection._search_run import GroupsPlan, SearchRun, pareto_table, plan_groups, results_table

_DRAWN = ("disparity", "coverage", "epsilon")  # by the frontier display, beside accuracy or R²


@shared_docs
@dataclass(kw_only=True, eq=False, repr=False)
class ParetoSearchCV(SearchBase):
    """Search over parameters for the best trade-offs between accuracy, fairness and privacy.

    **Guarantee.** ``privacy_`` covers everything the search shows: all of ``cv_results_``, the frontier, the chosen
    parameters and the refitted winner. It protects what the estimator protects, under the estimator's neighbouring
    relation, and is composed from the events that the fits planned before they ran, and from those of the scores:

    * With k folds a record is in k-1 train parts and one test part, so a candidate costs k-1 fits and one score; a
      holdout costs the larger of the two.
    * Scores of private folds come from one noisy table (group, label, prediction) per fold and candidate, each of
      ``score_epsilon``; every metric is computed from it. Scores on public rows (``validation``) are exact and free,
      and then there are no folds: each candidate is fitted once, on all rows, and the winner is not refitted.
    * Candidates that differ only in what is post-processing of released votes (``gamma``, the threshold of soft votes,
      ``student`` of a PATE with soft votes) share one release. Those that share their teachers train them once.

    Use unstratified folds: stratification lets one label affect other rows' folds, and is refused unless labels are
    public, where only the sensitive attribute is protected. Where records are added or removed, each row's fold is
    drawn in secret. Exact fold scores and times are not kept: neither is covered by any ε.

    Parameters
    ----------
    estimator : estimator
        A private estimator of this package, alone or inside a Pipeline or a post-processor. Its ``ledger`` counts the
        search and may refuse parts of it. Its ``schema``, or that of the last step of a Pipeline, names the classes and
        groups of a raw table; ``classes`` and ``groups`` do without one. What else a Pipeline fits on private rows is
        not covered, and a PrivacyLeakWarning names it; :class:`~skfairdp.preprocessing.PublicPreprocessor` fits on
        public ones.
    param_grid : dict or list of dict
        Parameter names → lists of values, as for ``GridSearchCV``.
    scoring : str, list of str, or dict of name → objective, default=None
        "accuracy" (of the answered rows), "disparity" (demographic, each group against all others), "coverage",
        "epsilon" (of one fit of the candidate), a gap of :mod:`skfairdp.metrics`, the name of a scorer of scikit-learn,
        a scorer ``(estimator, X, y)``, or a pair ``(metric, "minimize" or "maximize")`` with
        ``metric(y_true, y_pred, sensitive_features=...)``. Scorers of probabilities need public rows. None is
        ``("accuracy", "disparity", "epsilon")``; of a regressor ``("r2", "disparity", "epsilon")``, where the disparity
        is that of Kolmogorov and Smirnov, and private folds tell nothing else.
    bounds : dict of name → str, default=None
        What the winner has to meet, such as ``{"disparity": "<= 0.05", "epsilon": "<= 2"}``.
    refit : bool or str, default=True
        Fit the winner on all rows, which is charged. The winner is the candidate that is best in this objective (True:
        in the first) among those that meet the bounds.
    cv : int, splitter or iterable of (train, test), default=3
        Folds by position: a number, ``KFold``, ``RepeatedKFold``, ``ShuffleSplit``, ``TimeSeriesSplit``, or positions,
        which then count as public.
    score_epsilon : float, default=0.25
        Cost of one table of scores at ``delta``.
    total_epsilon : float, default=None
        ε of the whole search at its δ: of all fits and scores, the refit of the winner and released schemas.
        One factor, by which the estimator's ``epsilon`` and ``score_epsilon`` are multiplied, divides it: these then
        say in which proportion a fit and a table of scores share. Whichever wins, its refit is charged as the
        most expensive of the candidates. :meth:`planned_privacy` says beforehand what a fit gets. None takes
        ``epsilon`` and ``score_epsilon`` as they are.
    delta : float, default=None
        δ of the whole search. None is the estimator's, which has to be greater than 0 where scores are charged.
    n_jobs : int, default=None
        Folds in parallel, through joblib.
    error_score : "raise" or nan, default=nan
        What becomes of a candidate that cannot be planned, for which nothing is charged, and of one that cannot be
        scored on public rows: an error, or scores that are nan. A fit that fails after it was charged ends the search.
    reference : dict of name → float, default=None
        Worst acceptable value of each objective, for ``hypervolume_``. None takes the worst found.
    {verbose}
    random_state : int, RandomState, Generator or None, default=None
        Public randomness of an estimator that has no ``random_state`` of its own. Never noise or secret folds.

    Attributes
    ----------
    privacy_ : PrivacySpent
        What the search cost, refit included.
    {epsilon_spent_}
    cv_results_ : dict of ndarray
        As in ``GridSearchCV``, one set of columns for each objective, without times; ``status`` says what became of a
        candidate ("scored", "failed", "over the ceiling"), ``pareto_optimal`` which are not dominated.
    pareto_table_ : DataFrame of the scored candidates
        For :class:`skfairdp.inspection.ParetoFrontierDisplay`; its ``attrs`` hold the ε of the search.
    hypervolume_ : float
        Of the scored candidates, in the objectives' units, from ``reference_``.
    reference_ : dict
    best_index_, best_params_, best_score_
        Of the winner; only where there is one.
    best_estimator_ : estimator
        The winner, fitted on all rows. Its ``privacy_`` is that of the search, for it would not be this one without
        it: the best of several tells more than each of them.
    classes_, n_features_in_
        Of the winner.
    n_splits_ : int
        0 where candidates were scored on public rows.

    {fit_raises}
    RuntimeError
        From ``fit``, after everything was charged: a fit failed. The text is always the same, and nothing comes out,
        for a failure can depend on private rows; it must not choose the winner.

    Warns
    -----
    FairnessWarning
        No candidate meets the bounds; then there is no winner.
    UtilityWarning
        No candidate has a score, and why; then there is no winner.
    UserWarning
        The ledger cannot afford some of the candidates, which are left out.

    Examples
    --------
    >>> from skfairdp import FairPATEClassifier, PublicData
    >>> from skfairdp.datasets import make_biased_classification, train_private_public_test_split
    >>> from skfairdp.model_selection import ParetoSearchCV
    >>> data = make_biased_classification(8000, disparity=0.2, random_state=0)
    >>> split = train_private_public_test_split(*data, random_state=0)
    >>> search = ParetoSearchCV(
    ...     FairPATEClassifier(classes=[0, 1], random_state=0),
    ...     {"epsilon": [0.5, 1.0], "gamma": [0.1, 0.3, None]}, cv=2, score_epsilon=0.5)
    >>> search = search.fit(split.X, split.y, sensitive_features=split.sensitive_features, X_public=split.public)
    >>> len(search.pareto_table_), str(search.privacy_.protects)
    (6, 'record')
    >>> round(search.privacy_.epsilon, 1)  # the sum of its parts is 7
    2.1

    One ε for the whole of it:

    >>> tuned = ParetoSearchCV(
    ...     FairPATEClassifier(classes=[0, 1], random_state=0), {"gamma": [0.1, 0.3, None]}, cv=2, total_epsilon=2.0)
    >>> tuned = tuned.fit(split.X, split.y, sensitive_features=split.sensitive_features, X_public=split.public)
    >>> round(tuned.privacy_.epsilon, 2)
    2.0
    """

    refit: bool | str = True
    cv: Any = 3
    score_epsilon: float = 0.25
    total_epsilon: float | None = None
    delta: float | None = None
    n_jobs: int | None = None
    error_score: Any = math.nan
    reference: Mapping[str, float] | None = None
    verbose: int = 0
    random_state: RandomStateLike = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **SearchBase._parameter_constraints,
        "refit": ["boolean", str],
        "n_jobs": N_JOBS,
        "error_score": [StrOptions({"raise"}), "nan", None],
        "reference": [dict, None],
        "verbose": ["verbose"],
    }

    def _search(self, data: SearchData, plan: GroupsPlan) -> None:
        objectives = self._asked
        bounds, reference = read_bounds(self.bounds, objectives, owner=type(self).__name__), self._checked_reference
        run = SearchRun(data, plan.failed, refits=self.refit is not False, n_jobs=self.n_jobs, verbose=self.verbose)
        try:
            run.run(plan.groups)
        finally:
            if run.events:  # what is spent stays told, whatever ends the search
                self._forget()
                self.privacy_ = run.spent
        if not run.events:
            self._forget()
        self.n_splits_ = len(data.splits)
        self.cv_results_ = results_table(data, run, objectives)
        self._judge(objectives, reference)
        self._choose(run, objectives, bounds, self._refit_objective)
        self.privacy_ = run.spent
        self.pareto_table_ = pareto_table(data, run, self.cv_results_, self.privacy_)

    def _forget(self) -> None:
        """Drop what an earlier fit has left: a search that ends without a winner must not show another's."""
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)

    def _planned(self, X: Any, y: Any = None, **given: Any) -> tuple[SearchData, GroupsPlan]:
        objectives = self._asked
        read_bounds(self.bounds, objectives, owner=type(self).__name__)
        _ = self._refit_objective, self._checked_reference  # what is wrong about them is said first
        names = {objective.name for objective in objectives}
        missing = [name for name in (utility_of(self.estimator), *_DRAWN) if name not in names]
        shown = self._scoring_of(missing) if missing else []
        data = read_search(self, X, y, **given, objectives=objectives, shown=shown)
        plan = partial(plan_groups, error_score=self.error_score, refits=self.refit is not False)
        return divided(data, self.total_epsilon, plan)

    @property
    def _asked(self) -> list[Objective]:
        usual = (utility_of(self.estimator), "disparity", "epsilon")
        return self._scoring_of(usual if self.scoring is None else self.scoring)

    @property
    def _refit_objective(self) -> Objective:
        named = {objective.name: objective for objective in self._asked}
        if isinstance(self.refit, str) and self.refit not in named:
            must = f"a bool or one of the objectives {[*named]}"
            raise invalid_parameter("refit", type(self).__name__, must, self.refit)
        return named[self.refit] if isinstance(self.refit, str) else self._asked[0]

    @property
    def _checked_reference(self) -> dict[str, float] | None:
        names = [objective.name for objective in self._asked]
        if self.reference is not None and set(self.reference) != {*names}:
            raise ValueError(
                f"The 'reference' parameter of {type(self).__name__} must give a value for each of the objectives "
                f"{names}. Got {sorted(self.reference)} instead."
            )
        return None if self.reference is None else {name: float(value) for name, value in self.reference.items()}

    def _judge(self, objectives: list[Objective], reference: dict[str, float] | None) -> None:
        """The frontier among the candidates, and its volume."""
        signs = [o.minimize for o in objectives]
        values = self._means(objectives)
        self.cv_results_["pareto_optimal"] = pareto_frontier(values, signs)
        known = values[~np.isnan(values).any(axis=1)]
        if reference is None and len(known):
            worst = np.where(signs, known.max(axis=0), known.min(axis=0))
            reference = {o.name: float(value) for o, value in zip(objectives, worst, strict=True)}
        self.reference_ = reference
        corner = [math.nan if reference is None else reference[o.name] for o in objectives]
        # With seeded noise every ε is infinite, and so is any volume.
        self.hypervolume_ = hypervolume(values, corner, signs) if np.isfinite(corner).all() else math.nan

    def _choose(self, run: SearchRun, objectives: list[Objective], bounds: list[Bound], chosen_by: Objective) -> None:
        """The winner, refitted, among the candidates that meet every bound; of equal ones the first."""
        frame = pd.DataFrame(self._means(objectives), columns=[o.name for o in objectives])
        best = frame[chosen_by.name] * (1 if chosen_by.minimize else -1)
        feasible = best.notna()
        if not feasible.any():
            why = run.data.scores.problem(next(iter(run.fitted.values()))) if run.fitted else ""
            warn_caller(
                f"No candidate of {type(self).__name__} has a score in {chosen_by.name!r}, so there is no winner. What "
                f"was found is in cv_results_.{why}",
                UtilityWarning,
            )
            return
        for bound in bounds:
            feasible &= frame[bound.name].map(bound.excess) == 0
        if not feasible.any():
            warn_caller(
                f"No candidate of {type(self).__name__} meets the bounds {self.bounds}, so there is no winner. "
                "Everything found is in cv_results_ and pareto_table_.",
                FairnessWarning,
            )
            return
        index = int(np.flatnonzero(feasible)[np.argmin(best[feasible])])
        self.best_index_, self.best_params_ = index, run.data.grid[index]
        self.best_score_ = float(frame[chosen_by.name][index])
        if self.refit is not False:
            winner = run.winner(index)
            if winner is not None:
                self.best_estimator_ = run.data.candidate.chosen(winner, run.spent)

    def _means(self, objectives: list[Objective]) -> NDArray[np.float64]:
        return np.column_stack([self.cv_results_[f"mean_test_{o.name}"] for o in objectives])
