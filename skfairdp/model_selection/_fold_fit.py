"""One fold of a search: teachers once, releases once, every candidate from them. Private until it is scored."""

import contextlib
import pickle
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray

from skfairdp.exceptions import PrivacyLeakWarning
from skfairdp.model_selection._candidate import Candidate, Rows, UnplannedReleaseError
from skfairdp.model_selection._objectives import Objective
from skfairdp.model_selection._search import PrivateScores, PublicScores
from skfairdp.model_selection._splits import Split
from skfairdp.privacy import DpEvent, Spending

__all__ = ["Release", "fit_release", "group_by_release", "score_fold"]


@dataclass(frozen=True)
class Release:
    """Candidates that one private fit serves, because they differ only in what is post-processing.

    Parameters
    ----------
    members : tuple of (int, mapping)
        Positions and parameters of the candidates.
    teachers : str
        Alike for releases that share their teachers.
    free : frozenset of str
        The parameters in which members may differ.
    """

    members: tuple[tuple[int, Mapping[str, Any]], ...]
    teachers: str
    free: frozenset[str]

    @property
    def params(self) -> Mapping[str, Any]:
        """Of the private fit."""
        return self.members[0][1]


def group_by_release(candidate: Candidate, grid: list[dict[str, Any]]) -> list[Release]:
    """Put candidates together that one release serves, in the order of their first."""
    found: dict[str, list[tuple[int, Mapping[str, Any]]]] = {}
    shared: dict[str, tuple[str, frozenset[str]]] = {}
    for j, params in enumerate(grid):
        model = candidate.model(params)  # raises where a parameter does not exist
        free: frozenset[str] = getattr(model, "_free_parameters", frozenset())
        after: frozenset[str] = getattr(model, "_after_teachers", frozenset())
        paid = {name: value for name, value in params.items() if name not in free}
        key = joblib.hash((sorted(free), sorted(paid.items(), key=lambda item: item[0])))
        trained = {name: value for name, value in params.items() if name not in after}
        found.setdefault(key, []).append((j, params))
        # Without anything after the teachers there is nothing to share.
        shared[key] = joblib.hash(sorted(trained.items(), key=lambda item: item[0])) if after else key, free
    return [Release(tuple(members), *shared[key]) for key, members in found.items()]


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


def fit_release(
    candidate: Candidate, release: Release, rows: Rows, positions: NDArray[np.int64] | None, planned: DpEvent,
    **private: Any,
) -> dict[int, Any]:  # fmt: skip
    """One private fit, and from it a fitted estimator for each member, by position."""
    model = candidate.model(release.params, **private)
    X, y, arguments = rows.arguments(model, positions)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)  # the plan has given them, once
        fitted = model.fit(X, y, **arguments)
    candidate.check_spent(fitted, planned)
    served = {release.members[0][0]: fitted}
    for j, params in release.members[1:]:
        changes = {name: value for name, value in params.items() if name in release.free}
        served[j] = fitted.refit_student(**changes) if changes else fitted
    return served


def _paid(scores: PrivateScores | PublicScores, noise_seed: int | None) -> Any:
    """The noise of the tables of a fold, for which the search has charged its ledger beforehand."""
    if isinstance(scores, PublicScores):
        return contextlib.nullcontext()
    table = scores.table
    return Spending(table.event, table.delta, table.relation, label="scores of a fold", noise_seed=noise_seed)


def score_fold(
    candidate: Candidate, releases: list[tuple[Release, DpEvent, float]], rows: Rows, split: Split | None,
    scores: PrivateScores | PublicScores, objectives: list[Objective], noise_seed: int | None,
    private: Mapping[str, Any],
) -> tuple[dict[int, dict[str, float]], dict[int, Any], bool]:  # fmt: skip
    """Scores of every candidate on one fold; without folds the fitted candidates as well; and whether a fit failed.

    Only noisy tables and what follows from them leave a fold. A failure ends the search, once all of it is charged.
    """
    options = dict(private)
    if len(releases) > 1 and candidate.has("memory") and candidate.parameter("memory") is None:
        options["memory"] = _Teachers()
    measured: dict[int, dict[str, float]] = {}
    kept: dict[int, Any] = {}
    with _paid(scores, noise_seed) as source:
        for release, planned, epsilon in releases:
            try:
                served = fit_release(candidate, release, rows, None if split is None else split[0], planned, **options)
            except UnplannedReleaseError:
                raise
            except Exception:
                return measured, kept, True
            for j, fitted in served.items():
                if isinstance(scores, PublicScores):
                    measured[j] = scores.measure(fitted, objectives, epsilon)
                else:
                    assert split is not None
                    measured[j] = scores.measure(fitted, rows, split[1], objectives, epsilon, source)
                if split is None:
                    kept[j] = fitted
                    if "memory" in options:
                        fitted.set_params(**{candidate.prefix + "memory": None})
    return measured, kept, False
