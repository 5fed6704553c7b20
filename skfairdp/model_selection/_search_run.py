"""One run of ParetoSearchCV: charges, fits in folds, and keeps what came out."""

import math
import pickle
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import joblib
import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy.stats import rankdata
from sklearn.exceptions import FitFailedWarning

from skfairdp import privacy
from skfairdp._utils import progress_bar, warn_caller
from skfairdp.exceptions import BudgetExceededError, UnplannedReleaseError
from skfairdp.model_selection import _frame
from skfairdp.model_selection._candidate import Candidate, Part, SearchFailedError
from skfairdp.model_selection._scores import BASELINE, Objective, utility_of
from skfairdp.model_selection._search import search_facts
from skfairdp.model_selection._search_data import SearchData
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
    """Plan the fits of every candidate.

    What keeps a candidate from it shows here, before the charge, and costs nothing.
    """
    planned: list[CandidateGroup] = []
    failed: list[int] = []
    problem = None
    for members, teachers, free in _grouped(data.candidate, data.grid):
        plans: list[tuple[int, Mapping[str, Any], LedgerEntry, list[LedgerEntry]]] = []
        lost: list[int] = []
        for j, params in members:  # each, for what is free after the votes can be wrong as well
            try:
                plans.append((j, params, *data.plan(dict(params), folds=not plans)))
            except Exception as error:
                if error_score == "raise":
                    raise
                problem = problem or error
                lost.append(j)
                name = type(error).__name__
        failed += lost
        if lost:
            warn_caller(
                f"Candidates {lost} cannot be fitted: {name}. They cost nothing, and their scores are nan. "
                "error_score='raise' shows the error.",
                FitFailedWarning,
            )
        if plans:
            *_, whole, parts = plans[0]
            served = tuple((j, params) for j, params, *_ in plans)
            planned.append(CandidateGroup(served, teachers, free, whole, tuple(parts) or (whole,)))
    if problem is not None and not planned:
        raise problem
    kinds = {(group.whole.protects, group.whole.neighboring_relation) for group in planned}
    if len(kinds) > 1:
        raise ValueError(
            f"The candidates of {data.owner} give unlike guarantees ({len(kinds)} kinds), which do not add up. Search "
            "them separately."
        )
    reserve: DpEvent = NoOpDpEvent()
    for group in planned if refits else ():
        reserve = reserve_for(reserve, group, data)
    return GroupsPlan(planned, failed, compose(*(group.cost(data) for group in planned), reserve))


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
        key = joblib.hash((sorted(free), sorted(paid.items(), key=lambda item: item[0])))
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
) -> tuple[dict[int, dict[str, float]], dict[int, Any], bool]:
    """Scores of every candidate on one fold; without folds the fitted candidates as well; and whether a fit failed.

    Only noisy tables and what follows from them leave a fold. A failure ends the search, once all of it is charged.
    """
    train, test = data.splits[fold] if data.splits else (None, None)
    options = data.fold_options if data.splits else {}
    shares = data.rows.y is not None and data.candidate.has("memory") and data.candidate.parameter("memory") is None
    if len(work) > 1 and shares:
        options["memory"] = _Teachers()
    measured: dict[int, dict[str, float]] = {}
    kept: dict[int, Any] = {}
    with data.scores.paid(noise_seed, sum(len(group.members) for group, _ in work)) as noise:
        for group, epsilon in work:
            try:
                served = fit_group(data, group, train, group.parts[fold].event, **options)
                if test is not None:  # rows that are read in chunks can fail to be read here as well
                    measured |= {j: data.scores.measure(one, test, epsilon, noise) for j, one in served.items()}
            except UnplannedReleaseError:
                raise
            except Exception:
                return measured, kept, True
            for j, fitted in served.items():
                if train is None:
                    measured[j] = data.scores.measure(fitted, test, epsilon, noise)
                    kept[j] = fitted
                    if "memory" in options:
                        fitted.set_params(**{data.candidate.prefix + "memory": None})
    return measured, kept, False


def fit_group(data: SearchData, group: CandidateGroup, part: Part | None, cost: DpEvent, **how: Any) -> dict[int, Any]:
    """One private fit, and from it a fitted estimator for each member, by position."""
    fitted = data.fit(group.params, part, cost, **how)
    served = {group.members[0][0]: fitted}
    for j, params in group.members[1:]:
        changes = {name: value for name, value in params.items() if _among(name, group.free)}
        served[j] = fitted.refit(**changes) if changes else fitted
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
        self.fitted: dict[int, Any] = {}  # on all rows
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
            warn_caller(
                f"{self.data.owner} leaves out {len(left_out)} of its {len(self.data.grid)} candidates, "
                f"{left_out[:10]}: the ledger cannot afford them{reserve}. They cost nothing, their scores are nan, "
                f"and the winner is chosen among the others. The first: {self.data.grid[left_out[0]]}. Raise the "
                "ceiling of the ledger, lower 'score_epsilon', or search fewer candidates."
            )
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
        if index in self.fitted:
            return self.fitted[index]
        group = self.groups[index]
        try:
            # That of the dearest winner there may have been: what is certified does not follow which one won.
            fit, dearest = group.whole.event, self._reserve
            price = fit if fit == dearest else WorstOf((dearest, fit))
            self._charge(price, group.whole, NoOpDpEvent(), "refit of the winner")
        except BudgetExceededError as error:
            warn_caller(f"The winner is not refitted. {error}")
            return None
        self.n_fits += 1
        alone = replace(group, members=tuple(member for member in group.members if member[0] == index))
        try:
            return fit_group(self.data, alone, None, group.whole.event)[index]
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
