"""One run of a search: plans, charges, fits in folds, and keeps what came out."""

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from joblib import Parallel, delayed
from sklearn.exceptions import FitFailedWarning

from skfairdp.exceptions import BudgetExceededError
from skfairdp.model_selection._candidate import Candidate, Rows, SearchFailedError, UnplannedReleaseError
from skfairdp.model_selection._facts import search_facts
from skfairdp.model_selection._fold_fit import Release, fit_release, score_fold
from skfairdp.model_selection._objectives import Objective
from skfairdp.model_selection._search import PrivateScores, PublicScores
from skfairdp.model_selection._splits import Split, split_event
from skfairdp.privacy import DpEvent, LedgerEntry, NoOpDpEvent, PrivacySpent, compose, epsilon_of
from skfairdp.utils import progress_bar

__all__ = ["SearchRun"]

Planned = tuple[Release, LedgerEntry, list[LedgerEntry]]  # the fit on all rows, and those on the train parts


class SearchRun:
    """Of ParetoSearchCV, which is its ``owner``."""

    def __init__(
        self, owner: Any, candidate: Candidate, rows: Rows, splits: list[Split],
        scores: PublicScores | PrivateScores, objectives: list[Objective], delta: float,
    ) -> None:  # fmt: skip
        self.owner, self.candidate, self.rows, self.splits = owner, candidate, rows, splits
        self.scores, self.objectives, self.delta = scores, objectives, delta
        self.ledger = candidate.parameter("ledger")
        self.seed = candidate.parameter("noise_seed")
        if self.seed is not None and self.ledger is not None:
            raise ValueError(
                f"{type(owner).__name__} got an estimator with both 'noise_seed' and 'ledger': seeded noise protects "
                "nobody, so no ledger may count it. Leave one of them out."
            )
        self.measured: dict[int, list[dict[str, float]]] = {}
        self.entries: dict[int, LedgerEntry] = {}  # of one fit on all rows
        self.fitted: dict[int, Any] = {}
        self.releases: dict[int, Release] = {}
        self.events: list[DpEvent] = []
        self.n_fits = 0
        self.failed = False
        self._reserve: DpEvent = NoOpDpEvent()

    def _label(self) -> str:
        return f"{type(self.owner).__name__} of {type(self.candidate.private_part(self.candidate.estimator)).__name__}"

    def run(self, releases: Sequence[Release]) -> dict[int, str]:
        """Charge, fit and score, teachers by teachers. Returns what became of each candidate."""
        status: dict[int, str] = {}
        planned_releases = self._plans(releases, status)  # all of them, before anything is spent
        kinds = {(whole.protects, whole.neighboring_relation) for _, whole, _ in planned_releases}
        if len(kinds) > 1:
            raise ValueError(
                f"The candidates of {type(self.owner).__name__} give unlike guarantees ({len(kinds)} kinds), which do "
                "not add up. Search them separately."
            )
        batches: dict[str, list[Planned]] = {}
        for planned in planned_releases:
            batches.setdefault(planned[0].teachers, []).append(planned)
        refusal: BudgetExceededError | None = None
        bar = progress_bar(total=len(planned_releases), desc=type(self.owner).__name__, verbose=self.owner.verbose)
        for batch in batches.values():
            afforded: list[Planned] = []
            for planned in batch:
                try:
                    self._pay(planned)
                    afforded.append(planned)
                except BudgetExceededError as error:
                    refusal = error
                    status.update((j, "over the ceiling") for j, _ in planned[0].members)
            if afforded and not self.failed:  # else it is charged all the same: charges do not tell when it failed
                self._fit(afforded, status)
            bar.update(len(batch))
        bar.close()
        if not self.entries:
            assert refusal is not None
            raise refusal
        if self.failed:
            raise SearchFailedError(type(self.owner).__name__)
        return status

    def _plans(self, releases: Sequence[Release], status: dict[int, str]) -> list[Planned]:
        """Those that can be planned. What keeps another from it shows before the charge, and costs nothing."""
        plans, problem = [], None
        for release in releases:
            try:
                plans.append((release, *self._plan(release)))
            except Exception as error:
                if self.owner.error_score == "raise":
                    raise
                problem = problem or error
                status.update((j, "failed") for j, _ in release.members)
                warnings.warn(
                    f"Candidates {[j for j, _ in release.members]} cannot be fitted: {type(error).__name__}. They cost "
                    "nothing, and their scores are nan. error_score='raise' shows the error.",
                    FitFailedWarning,
                    stacklevel=4,
                )
        if problem is not None and not plans:
            raise problem
        return plans

    def _pay(self, planned: Planned) -> None:
        """Charge a release on all its folds, if the refit of a winner would still be affordable after it."""
        release, whole, parts = planned
        reserve = self._reserve
        if self.splits and self.owner.refit is not False:
            reserve = _costlier(reserve, whole.event, self.delta)
        cost = self._cost(whole, parts, len(release.members))
        self._charge(cost, whole, reserve, f"{len(parts)} fits, {len(release.members)} candidates")
        self._reserve = reserve
        self.n_fits += len(parts)
        for j, _ in release.members:
            self.entries[j], self.releases[j] = whole, release

    @property
    def _fold_options(self) -> dict[str, Any]:
        table = self.scores.table if isinstance(self.scores, PrivateScores) else None
        return self.candidate.fold_options(table, self.rows, 1 - 1 / max(len(self.splits), 2))

    def _plan(self, release: Release) -> tuple[LedgerEntry, list[LedgerEntry]]:
        """The fit on all rows, and those on the train parts."""
        whole = self.candidate.plan(self.candidate.model(release.params), self.rows, warn=False)
        if not self.splits:
            return whole, [whole]
        model = self.candidate.model(release.params, **self._fold_options)
        return whole, [self.candidate.plan(model, self.rows, train, warn=False) for train, _ in self.splits]

    def _cost(self, whole: LedgerEntry, parts: list[LedgerEntry], n_members: int) -> DpEvent:
        if isinstance(self.scores, PublicScores):
            return whole.event
        fits = [part.event for part in parts]
        return split_event(self.splits, fits, self.scores.table.event, n_members,
                           n_rows=self.scores.table.public_size(len(self.rows.y)))  # fmt: skip

    def _charge(self, event: DpEvent, entry: LedgerEntry, reserve: DpEvent, releases: str) -> None:
        if self.ledger is not None:
            guarantee = {"protects": entry.protects, "neighboring_relation": entry.neighboring_relation}
            label = self._label()
            self.ledger.charge(compose(event, reserve), label=label, dry_run=True, **guarantee)
            self.ledger.charge(event, label=label, releases=(releases, *entry.releases), **guarantee)
        self.events.append(event)

    def _fit(self, afforded: list[Planned], status: dict[int, str]) -> None:
        options = self._fold_options if self.splits else {}
        folds: list[Split | None] = list(self.splits) or [None]
        calls = []
        for fold, split in enumerate(folds):
            work = [(release, parts[fold].event, self._epsilon(whole)) for release, whole, parts in afforded]
            seed = None if self.seed is None else self.seed + 1 + fold
            calls.append(
                delayed(score_fold)(self.candidate, work, self.rows, split, self.scores, self.objectives, seed, options)
            )
        if len(calls) == 1 or self.owner.n_jobs in (None, 1):
            results = [function(*arguments) for function, arguments, _ in calls]
        else:
            results = Parallel(n_jobs=self.owner.n_jobs)(calls)
        for measured, kept, failed in results:
            for j, values in measured.items():
                self.measured.setdefault(j, []).append(values)
                status.setdefault(j, "scored")
            self.fitted.update(kept)
            self.failed |= failed

    def _epsilon(self, entry: LedgerEntry) -> float:
        """Of one fit, at the estimator's own δ."""
        if self.seed is not None:
            return math.inf
        return epsilon_of(entry.event, self.candidate.private_part(self.candidate.estimator).delta)

    def winner(self, index: int) -> Any:
        """The candidate fitted on all rows: paid for, unless it was fitted so in the search."""
        if index in self.fitted:
            return self._own(self.fitted[index])
        release, entry = self.releases[index], self.entries[index]
        try:
            self._charge(entry.event, entry, NoOpDpEvent(), "refit of the winner")
        except BudgetExceededError as error:
            warnings.warn(f"The winner is not refitted. {error}", UserWarning, stacklevel=3)
            return None
        self.n_fits += 1
        alone = replace(release, members=tuple(member for member in release.members if member[0] == index))
        try:
            return self._own(fit_release(self.candidate, alone, self.rows, None, entry.event)[index])
        except UnplannedReleaseError:
            raise
        except Exception:
            failed = SearchFailedError(type(self.owner).__name__)
        raise failed

    def _own(self, fitted: Any) -> Any:
        return fitted.set_params(**{self.candidate.name: self.ledger})

    def spent(self, first: LedgerEntry) -> PrivacySpent:
        return PrivacySpent.of(
            compose(*self.events),
            self.delta,
            protects=first.protects,
            neighboring_relation=first.neighboring_relation,
            secret_noise=self.seed is None,
            public=search_facts(self.owner, self.candidate, self.rows, first.neighboring_relation, self.scores),
        )


def _costlier(first: DpEvent, second: DpEvent, delta: float) -> DpEvent:
    if isinstance(first, NoOpDpEvent):
        return second
    return second if epsilon_of(second, delta) > epsilon_of(first, delta) else first
