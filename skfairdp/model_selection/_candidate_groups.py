"""Candidates that share one private fit: which they are, what they cost, and how a fold fits and scores them."""

import pickle
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import joblib
from sklearn.exceptions import FitFailedWarning

from skfairdp._utils import warn_caller
from skfairdp.exceptions import PrivacyLeakWarning, UnplannedReleaseError
from skfairdp.model_selection._candidate import Candidate, Part
from skfairdp.model_selection._search_data import SearchData
from skfairdp.privacy import DpEvent, LedgerEntry, NoOpDpEvent, compose, epsilon_of

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
    _check_alike(data.owner, planned)
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


def _check_alike(owner: str, groups: list[CandidateGroup]) -> None:
    kinds = {(group.whole.protects, group.whole.neighboring_relation) for group in groups}
    if len(kinds) > 1:
        raise ValueError(
            f"The candidates of {owner} give unlike guarantees ({len(kinds)} kinds), which do not add up. Search them "
            "separately."
        )


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


def fit_group(
    data: SearchData, group: CandidateGroup, part: Part | None, planned: DpEvent, **options: Any
) -> dict[int, Any]:
    """One private fit, and from it a fitted estimator for each member, by position."""
    model = data.candidate.model(group.params, **options)
    X, y, arguments = data.rows.arguments(model, part)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)  # the plan has given them, once
        fitted = model.fit(X, y, **arguments)
    data.candidate.check_spent(fitted, planned)
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
