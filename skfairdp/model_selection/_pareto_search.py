"""Cross-validated search over several objectives, with the ε of the whole search."""

import math
import pickle
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import joblib
import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.exceptions import FitFailedWarning

from skfairdp import privacy
from skfairdp._docs import shared_docs
from skfairdp._utils import RandomStateLike, Told, invalid_parameter, progress_bar, recorded, warn_caller
from skfairdp._utils._sklearn import N_JOBS, StrOptions
from skfairdp.exceptions import BudgetExceededError, FairnessWarning, UnplannedReleaseError, UtilityWarning
from skfairdp.model_selection import _frame
from skfairdp.model_selection._candidate import Candidate, Part, SearchFailedError
from skfairdp.model_selection._frame import hypervolume, pareto_frontier
from skfairdp.model_selection._scores import BASELINE, Bound, Objective, read_bounds, utility_of
from skfairdp.model_selection._search import SearchBase, divided, search_facts
from skfairdp.model_selection._search_data import SearchData, read_search
from skfairdp.privacy import DpEvent, LedgerEntry, NoOpDpEvent, PrivacySpent, WorstOf, compose, epsilon_of, note_release

Members = tuple[tuple[int, Mapping[str, Any]], ...]


@dataclass(frozen=True)
class CandidateGroup:
    """Candidates that one private fit serves, because they differ only in what is post-processing."""

    members: Members
    teachers: str
    free: frozenset[str]
    whole: LedgerEntry
    parts: tuple[LedgerEntry, ...]

    @property
    def params(self) -> Mapping[str, Any]:
        """Of the private fit."""
        return self.members[0][1]

    def cost(self, data: SearchData) -> DpEvent:
        """Of its fits, and of the scores of its members."""
        if not data.splits:
            return self.whole.event
        return data.cost([part.event for part in self.parts], len(self.members))


@dataclass(frozen=True)
class GroupsPlan:
    """All that a search over candidates may release."""

    groups: list[CandidateGroup]
    failed: list[int]
    event: DpEvent


def reserve_for(reserve: DpEvent, group: CandidateGroup, data: SearchData) -> DpEvent:
    """What the refit of a winner may cost, if it may be one of this group too; nothing where none is needed."""
    fit = group.whole.event
    if not data.splits or isinstance(reserve, NoOpDpEvent):
        return fit if data.splits else reserve
    return fit if epsilon_of(fit, data.delta) > epsilon_of(reserve, data.delta) else reserve


def plan_groups(data: SearchData, error_score: Any, *, refits: bool) -> GroupsPlan:
    """Plan the fits of every candidate. What keeps a candidate from it shows here, before the charge, and costs
    nothing."""
    planned: list[CandidateGroup] = []
    failed: dict[int, Exception] = {}
    for members, teachers, free in _grouped(data.candidate, data.grid):
        plans: list[tuple[int, Mapping[str, Any], LedgerEntry]] = []
        lost: dict[int, Exception] = {}
        for j, params in members:  # each, for what is free after the votes can be wrong as well
            try:
                plans.append((j, params, data.plan(dict(params), folds=False)[0]))
            except Exception as error:
                lost[j] = error
        plans.sort(key=lambda one: -len(one[2].releases))  # the first is fitted: what it releases serves the others
        for j, params, _ in tuple(plans):
            try:
                whole, parts = data.plan(dict(params))
            except Exception as error:
                lost[j] = error
                del plans[0]
                continue
            served = tuple((i, others) for i, others, _ in plans)
            planned.append(CandidateGroup(served, teachers, free, whole, tuple(parts) or (whole,)))
            break
        if lost:
            *_, last = lost.values()
            if error_score == "raise":
                raise next(iter(lost.values()))
            warn_caller(
                f"Candidates {sorted(lost)} cannot be fitted: {type(last).__name__}. They cost nothing, and their "
                "scores are nan. error_score='raise' shows the error.",
                FitFailedWarning,
            )
        failed |= lost
    if not planned:
        raise next(iter(failed.values()))
    kinds = {(group.whole.protects, group.whole.neighboring_relation) for group in planned}
    if len(kinds) > 1:
        raise ValueError(
            f"The candidates of {data.owner} give unlike guarantees ({len(kinds)} kinds), which do not add up. Search "
            "them separately."
        )
    reserve: DpEvent = NoOpDpEvent()
    for group in planned if refits else ():
        reserve = reserve_for(reserve, group, data)
    return GroupsPlan(planned, sorted(failed), compose(*(group.cost(data) for group in planned), reserve))


def _grouped(candidate: Candidate, grid: list[dict[str, Any]]) -> list[tuple[Members, str, frozenset[str]]]:
    found: dict[str, list[tuple[int, Mapping[str, Any]]]] = {}
    shared: dict[str, tuple[str, frozenset[str]]] = {}
    for j, params in enumerate(grid):
        model = candidate.model(params)  # raises where a parameter does not exist
        try:
            free: frozenset[str] = getattr(model, "_free_parameters", frozenset())
        except ValueError:  # a wrong parameter: its plan says so
            free = frozenset()
        after: frozenset[str] = getattr(model, "_after_teachers", frozenset())
        paid = {name: value for name, value in params.items() if not _among(name, free)}
        # whoever leaves out what another one changes has the estimator's own value: that is another refit
        key = joblib.hash((sorted(free), sorted(params), sorted(paid.items(), key=lambda item: item[0])))
        trained = {name: value for name, value in params.items() if not _among(name, after)}
        found.setdefault(key, []).append((j, params))
        # Without anything after the teachers there is nothing to share.
        shared[key] = joblib.hash(sorted(trained.items(), key=lambda item: item[0])) if after else key, free
    return [(tuple(members), *shared[key]) for key, members in found.items()]


def _among(name: str, names: frozenset[str]) -> bool:
    """Whether a parameter is one of these, or a parameter of what one of these holds."""
    return any(name == one or name.startswith(f"{one}__") for one in names)


def score_fold(
    data: SearchData, work: list[tuple[CandidateGroup, float]], fold: int, noise_seed: int | None
) -> tuple[dict[int, dict[str, float]], dict[int, Told], bool]:
    """Scores of every candidate on one fold; without folds the fitted candidates as well; and whether a fit failed,
    which ends the search once all is charged. Only noisy tables and what follows from them leave a fold."""
    train, test = data.splits[fold] if data.splits else (None, None)
    options = data.fold_options if data.splits else {}
    shares = data.rows.y is not None and data.candidate.has("memory") and data.candidate.parameter("memory") is None
    if len(work) > 1 and shares:
        options["memory"] = _Teachers()
    measured: dict[int, dict[str, float]] = {}
    kept: dict[int, Told] = {}
    with data.scores.paid(noise_seed, sum(len(group.members) for group, _ in work)) as noise:
        for group, epsilon in work:
            try:
                served = fit_group(data, group, train, group.parts[fold].event, **options)
                if test is not None:  # rows that are read in chunks can fail to be read here as well
                    measured |= {j: data.scores.measure(one, test, epsilon, noise) for j, (one, _) in served.items()}
            except UnplannedReleaseError:
                raise
            except Exception:
                return measured, kept, True
            for j, (fitted, told) in served.items():
                if train is None:
                    measured[j] = data.scores.measure(fitted, test, epsilon, noise)
                    kept[j] = fitted, told
                    if "memory" in options:
                        fitted.set_params(**{data.candidate.prefix + "memory": None})
    return measured, kept, False


def fit_group(data: SearchData, group: CandidateGroup, part: Part | None, cost: DpEvent, **how: Any) -> dict[int, Told]:
    """One private fit, and from it a fitted estimator for each member, by position, and what each warned of."""
    fitted, told = data.fit(group.params, part, cost, **how)
    served = {group.members[0][0]: (fitted, told)}
    for j, params in group.members[1:]:
        changes = {name: value for name, value in params.items() if _among(name, group.free)}
        served[j] = recorded(partial(fitted.refit, **changes)) if changes else (fitted, told)
    return served


class _Teachers:
    """A cache of trained teachers (``TeacherCache``) in this process only, for as long as one fold lasts."""

    def __init__(self) -> None:
        self._kept: dict[str, Any] = {}

    def cache(self, function: Callable[..., Any], *, ignore: list[str]) -> Callable[..., Any]:
        def remembered(*args: Any, **ignored: Any) -> Any:
            assert set(ignored) <= set(ignore)
            try:
                key = joblib.hash(args)
            except (TypeError, AttributeError, pickle.PicklingError):  # a teacher that cannot be compared with another
                return function(*args, **ignored)
            if key not in self._kept:
                self._kept[key] = function(*args, **ignored)
            return self._kept[key]

        return remembered

    def __deepcopy__(self, memo: Any) -> "_Teachers":
        return self

    def __sklearn_clone__(self) -> "_Teachers":
        return self


class SearchRun:
    """What is spent and measured, group by group."""

    def __init__(self, data: SearchData, failed: list[int], *, refits: bool, n_jobs: int | None, verbose: int) -> None:
        self.data, self.refits, self.n_jobs, self.verbose = data, refits, n_jobs, verbose
        self.status: dict[int, str] = dict.fromkeys(failed, "failed")
        self.measured: dict[int, list[dict[str, float]]] = {}
        self.groups: dict[int, CandidateGroup] = {}
        self.events: list[DpEvent] = []
        self.n_fits = 0
        part = data.candidate.private_part(data.candidate.estimator)
        self._label, self._name, self._on_record = f"{data.owner} of {type(part).__name__}", secrets.token_hex(16), ""
        self.fitted: dict[int, Told] = {}  # on all rows
        self.told: dict[str, type[Warning]] = {}  # once all that was paid for is kept
        self._failed = False
        self._reserve: DpEvent = NoOpDpEvent()

    def run(self, groups: Sequence[CandidateGroup]) -> None:
        """Charge, fit and score, teachers by teachers."""
        batches: dict[str, list[CandidateGroup]] = {}
        for group in groups:
            batches.setdefault(group.teachers, []).append(group)
        refusal: BudgetExceededError | None = None
        with progress_bar(total=len(groups), desc=self.data.owner, verbose=self.verbose) as bar:
            for batch in batches.values():
                afforded = []
                for group in batch:
                    try:
                        self._pay(group)
                        afforded.append(group)
                    except BudgetExceededError as error:
                        refusal = error
                        self.status.update((j, "over the ceiling") for j, _ in group.members)
                if afforded and not self._failed:  # else it is charged all the same: charges do not tell when it failed
                    self._fit(afforded)
                bar.update(len(batch))
        if refusal is not None and not self.groups:
            raise refusal
        if refusal is not None:
            left_out = [j for j, status in sorted(self.status.items()) if status == "over the ceiling"]
            reserve = " with what refitting the winner costs" if self.refits and self.data.splits else ""
            self.told[
                f"{self.data.owner} leaves out {len(left_out)} of its {len(self.data.grid)} candidates, "
                f"{left_out[:10]}: the ledger cannot afford them{reserve}. They cost nothing, their scores are nan, "
                f"and the winner is chosen among the others. The first: {self.data.grid[left_out[0]]}. Raise the "
                "ceiling of the ledger, lower 'score_epsilon', or search fewer candidates."
            ] = UserWarning
        if self._failed:
            raise SearchFailedError(self.data.owner)

    def _pay(self, group: CandidateGroup) -> None:
        """Charge a group on all its folds, if the refit of a winner would still be affordable after it."""
        reserve = reserve_for(self._reserve, group, self.data) if self.refits else self._reserve
        releases = f"{len(group.parts)} fits, {len(group.members)} candidates"
        self._charge(group.cost(self.data), group.whole, reserve, releases)
        self._reserve = reserve
        self.n_fits += len(group.parts)
        self.groups.update((j, group) for j, _ in group.members)

    def _charge(self, event: DpEvent, entry: LedgerEntry, reserve: DpEvent, releases: str) -> None:
        ledger = self.data.ledger
        if ledger is not None:
            own = replace(entry, label=self._label, event=event, releases=(releases, *entry.releases))
            privacy.charge(ledger, replace(own, event=compose(event, reserve)), dry_run=True)
            privacy.charge(ledger, own)
            self._on_record = getattr(ledger, "head", "")
            note_release(self._name, ledger)
        self.events.append(event)

    def _fit(self, afforded: list[CandidateGroup]) -> None:
        seed = self.data.noise_seed
        work = [(group, self.epsilon(group.whole.event)) for group in afforded]
        seeds = [None if seed is None else seed + 1 + fold for fold in range(len(self.data.splits) or 1)]
        calls = [delayed(score_fold)(self.data, work, fold, own) for fold, own in enumerate(seeds)]
        if len(calls) == 1 or self.n_jobs in (None, 1):
            results = [function(*arguments) for function, arguments, _ in calls]
        else:
            results = Parallel(n_jobs=self.n_jobs)(calls)
        for measured, kept, failed in results:
            for j, values in measured.items():
                self.measured.setdefault(j, []).append(values)
                self.status.setdefault(j, "scored")
            self.fitted.update(kept)
            self._failed |= failed

    def epsilon(self, event: DpEvent) -> float:
        """Of one fit."""
        return math.inf if self.data.noise_seed is not None else self.data.epsilon(event)

    def winner(self, index: int) -> Any:
        """The candidate fitted on all rows: paid for, unless it was fitted so in the search."""
        if index not in self.fitted and (refitted := self._refitted(index)) is not None:
            self.fitted[index] = refitted
        model, told = self.fitted.get(index, (None, {}))
        self.told |= told
        return model

    def _refitted(self, index: int) -> Told | None:
        group = self.groups[index]
        try:
            # That of the dearest winner there may have been: what is certified does not follow which one won.
            fit, dearest = group.whole.event, self._reserve
            price = fit if fit == dearest else WorstOf((dearest, fit))
            self._charge(price, group.whole, NoOpDpEvent(), "refit of the winner")
        except BudgetExceededError as error:
            self.told[f"The winner is not refitted. {error}"] = UserWarning
            return None
        self.n_fits += 1
        # As it was scored: the first is what was planned and pays, and the winner follows from what that releases.
        first, *others = group.members
        members = first, *(member for member in others if member[0] == index)
        try:
            return fit_group(self.data, replace(group, members=members), None, group.whole.event)[index]
        except UnplannedReleaseError:
            raise
        except Exception:
            failed = SearchFailedError(self.data.owner)
        raise failed

    @property
    def spent(self) -> PrivacySpent:
        """All that was charged, composed."""
        own = {"label": self._label, "release": self._name, "on_record": self._on_record}
        return self.data.spent(compose(*self.events), public=search_facts(self.data), **own)


def results_table(data: SearchData, run: SearchRun, searched: list[Objective]) -> dict[str, Any]:
    """cv_results_ in scikit-learn's form: params, fold scores, means, deviations, ranks; no times."""
    grid = data.grid
    results: dict[str, Any] = {"params": grid, "status": np.array([run.status[j] for j in range(len(grid))])}
    for name in dict.fromkeys(name for params in grid for name in params):
        column = np.ma.masked_all(len(grid), dtype=object)
        for j, params in enumerate(grid):
            if name in params:
                column[j] = params[name]
        results[f"param_{name}"] = column
    n_folds = max((len(folds) for folds in run.measured.values()), default=0)
    for objective in data.scores.objectives:
        table = np.full((len(grid), n_folds), np.nan)
        for j, folds in run.measured.items():
            table[j] = [values[objective.name] for values in folds]
        results |= {f"split{fold}_test_{objective.name}": table[:, fold] for fold in range(n_folds)}
        mean = table.mean(axis=1) if n_folds else np.full(len(grid), np.nan)
        results[f"mean_test_{objective.name}"] = mean
        with np.errstate(invalid="ignore"):  # ε is infinite where the noise was seeded
            results[f"std_test_{objective.name}"] = table.std(axis=1) if n_folds else mean
        if objective in searched:
            worst_last = np.nan_to_num(mean if objective.minimize else -mean, nan=math.inf)
            results[f"rank_test_{objective.name}"] = rankdata(worst_last, method="min").astype(np.int32)
    return results


def pareto_table(data: SearchData, run: SearchRun, results: dict[str, Any], privacy: PrivacySpent) -> pd.DataFrame:
    """The scored candidates as :func:`frontier` gives them: ready for the display."""
    scored = np.flatnonzero(results["status"] == "scored").tolist()
    rows = [_point(data, run, results, j) for j in scored]
    utility = utility_of(data.candidate.estimator)
    columns = _frame.columns_with(utility)
    frame = pd.DataFrame(rows, columns=None if rows else columns)
    common = np.array([np.mean([fold.get(BASELINE, math.nan) for fold in run.measured[j]]) for j in scored])
    frame["non_dominated"] = _frame.mark_non_dominated(frame) & ~_frame.beaten_by(common, frame)
    frame = frame[[*columns, *(c for c in frame.columns if c not in columns)]]
    of = privacy.protects, privacy.neighboring_relation, privacy.delta, privacy.epsilon
    record = _frame.guarantee_record(*of, run.n_fits)
    frame.attrs["scored_on"] = "private" if data.splits else "public"
    if np.isfinite(common).any():
        frame.attrs["references"] = [_frame.one_answer("", utility, float(np.nanmean(common)))]
    frame.attrs.update({"guarantees": [record], **record})
    return frame


def _point(data: SearchData, run: SearchRun, results: dict[str, Any], j: int) -> dict[str, Any]:
    """A candidate as a row of the frontier's frame, and its other scores."""
    entry, model = run.groups[j].whole, data.candidate.model(data.grid[j])
    part = data.candidate.private_part(model)
    given = model.get_params(deep=True)
    held = given if "gamma" in given else part.get_params()
    # what holds constraints follows those, and 'params' says them
    gamma = math.nan if held.get("constraints") is not None else _frame.as_gamma(held.get("gamma"))
    weight = _frame.parity_weight(part)
    lam = None if weight is None else part.get_params()[weight]
    utility = utility_of(data.candidate.estimator)
    columns = _frame.columns_with(utility)
    means = {key.removeprefix("mean_test_"): values[j] for key, values in results.items() if key.startswith("mean_")}
    cost = {"epsilon": run.epsilon(entry.event), "delta": part.delta, "protects": entry.protects}
    cost["neighboring_relation"] = entry.neighboring_relation
    held = {"gamma": gamma, "student_gamma": gamma, "lam": math.nan if lam is None else float(lam)}
    held |= {"idp3": hasattr(model, "reject_mask")}
    measured = {name: means[name] for name in ("disparity", utility, "coverage")}
    row = {"dataset": "", "estimator": type(part).__name__, **cost, **held, **measured}
    others = {name: value for name, value in means.items() if name not in columns}
    return {**row, "params": _frame.expression(model), "candidate": j, **others}


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
        What the winner has to meet, such as ``{"disparity": "<= 0.05", "epsilon": "<= 2"}``, by its scores. Of many
        candidates some meet a bound by chance on the rows that they were scored on: on other rows the disparity of the
        winner is usually larger, by its ``gap_bound_`` at most.
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
        No candidate meets the bounds; then there is no winner. Or the disparity of the winner may be beyond its bound
        on other rows, by its ``gap_bound_``.
    UtilityWarning
        No candidate has a score, and why; then there is no winner.
    UserWarning
        The ledger cannot afford some of the candidates, which are left out. Of fits only the winner's warnings come.

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

    def _search(self, data: SearchData, plan: GroupsPlan) -> dict[str, type[Warning]]:
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
        try:
            self._choose(run, objectives, bounds, self._refit_objective)
        finally:
            self.privacy_ = run.spent  # with the refit, however that ends
        self.pareto_table_ = pareto_table(data, run, self.cv_results_, self.privacy_)
        return run.told

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
            why = run.data.scores.problem(next(iter(run.fitted.values()))[0]) if run.fitted else ""
            run.told[
                f"No candidate of {type(self).__name__} has a score in {chosen_by.name!r}, so there is no winner. What "
                f"was found is in cv_results_.{why}"
            ] = UtilityWarning
            return
        for bound in bounds:
            feasible &= frame[bound.name].map(bound.excess) == 0
        if not feasible.any():
            run.told[
                f"No candidate of {type(self).__name__} meets the bounds {self.bounds}, so there is no winner. "
                "Everything found is in cv_results_ and pareto_table_."
            ] = FairnessWarning
            return
        index = int(np.flatnonzero(feasible)[np.argmin(best[feasible])])
        self.best_index_, self.best_params_ = index, run.data.grid[index]
        self.best_score_ = float(frame[chosen_by.name][index])
        if self.refit is not False and (winner := run.winner(index)) is not None:
            self.best_estimator_ = run.data.candidate.chosen(winner, run.spent)
            most = {bound.name: bound.limit for bound in bounds}.get("disparity", math.inf)
            if (known := getattr(self.best_estimator_, "gap_bound_", None)) is not None and known > most:
                run.told[
                    f"The winner of {type(self).__name__} meets 'disparity' <= {most:g} by its score, on rows that "
                    f"chose it. By its own look (gap_bound_) its gap on others is at most "
                    f"{privacy.rounded_up(known, 2)}. Give more rows, or a smaller bound, where that is too much."
                ] = FairnessWarning

    def _means(self, objectives: list[Objective]) -> NDArray[np.float64]:
        return np.column_stack([self.cv_results_[f"mean_test_{o.name}"] for o in objectives])
