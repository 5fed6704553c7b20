"""One run of ParetoSearchCV: charges, fits in folds, and keeps what came out."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from joblib import Parallel, delayed

from skfairdp._utils import progress_bar, warn_caller
from skfairdp.exceptions import BudgetExceededError, UnplannedReleaseError
from skfairdp.model_selection._candidate import SearchFailedError
from skfairdp.model_selection._candidate_groups import CandidateGroup, fit_group, reserve_for, score_fold
from skfairdp.model_selection._facts import search_facts
from skfairdp.model_selection._search_data import SearchData
from skfairdp.privacy import DpEvent, LedgerEntry, NoOpDpEvent, PrivacySpent, compose, name_of_release, note_release


class SearchRun:
    """What is spent and measured, group by group."""

    def __init__(
        self, data: SearchData, failed: Sequence[int], *, refits: bool, n_jobs: int | None, verbose: int
    ) -> None:
        self.data, self.refits, self.n_jobs, self.verbose = data, refits, n_jobs, verbose
        self.status: dict[int, str] = dict.fromkeys(failed, "failed")
        self.measured: dict[int, list[dict[str, float]]] = {}
        self.groups: dict[int, CandidateGroup] = {}
        self.events: list[DpEvent] = []
        self.n_fits = 0
        part = data.candidate.private_part(data.candidate.estimator)
        self._label, self._name, self._on_record = f"{data.owner} of {type(part).__name__}", name_of_release(), ""
        self._fitted: dict[int, Any] = {}  # on all rows
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
            self._say_what_is_left_out()
        if self._failed:
            raise SearchFailedError(self.data.owner)

    def _say_what_is_left_out(self) -> None:
        left_out = [j for j, status in sorted(self.status.items()) if status == "over the ceiling"]
        n_all = len(self.data.grid)
        reserve = " with what refitting the winner costs" if self.refits and self.data.splits else ""
        warn_caller(
            f"{self.data.owner} leaves out {len(left_out)} of its {n_all} candidates, {left_out[:10]}: the ledger "
            f"cannot afford them{reserve}. They cost nothing, their scores are nan, and the winner is chosen among "
            f"the others. The first: {self.data.grid[left_out[0]]}. Raise the ceiling of the ledger, lower "
            "'score_epsilon', or search fewer candidates."
        )

    def _pay(self, group: CandidateGroup) -> None:
        """Charge a group on all its folds, if the refit of a winner would still be affordable after it."""
        reserve = reserve_for(self._reserve, group, self.data) if self.refits else self._reserve
        self._charge(
            group.cost(self.data), group.whole, reserve, f"{len(group.parts)} fits, {len(group.members)} candidates"
        )
        self._reserve = reserve
        self.n_fits += len(group.parts)
        self.groups.update((j, group) for j, _ in group.members)

    def _charge(self, event: DpEvent, entry: LedgerEntry, reserve: DpEvent, releases: str) -> None:
        ledger = self.data.ledger
        if ledger is not None:
            guarantee: dict[str, Any] = {"protects": entry.protects, "neighboring_relation": entry.neighboring_relation}
            ledger.charge(compose(event, reserve), label=self._label, dry_run=True, **guarantee)
            ledger.charge(event, label=self._label, releases=(releases, *entry.releases), **guarantee)
            self._on_record = getattr(ledger, "head", "")
            note_release(self._name, ledger)
        self.events.append(event)

    def _fit(self, afforded: list[CandidateGroup]) -> None:
        seed = self.data.noise_seed
        work = [(group, self.epsilon(group.whole.event)) for group in afforded]
        calls = [
            delayed(score_fold)(self.data, work, fold, None if seed is None else seed + 1 + fold)
            for fold in range(len(self.data.splits) or 1)
        ]
        if len(calls) == 1 or self.n_jobs in (None, 1):
            results = [function(*arguments) for function, arguments, _ in calls]
        else:
            results = Parallel(n_jobs=self.n_jobs)(calls)
        for measured, kept, failed in results:
            for j, values in measured.items():
                self.measured.setdefault(j, []).append(values)
                self.status.setdefault(j, "scored")
            self._fitted.update(kept)
            self._failed |= failed

    def epsilon(self, event: DpEvent) -> float:
        """Of one fit."""
        return math.inf if self.data.noise_seed is not None else self.data.epsilon(event)

    @property
    def fitted(self) -> list[Any]:
        """The candidates that were fitted on all rows."""
        return list(self._fitted.values())

    def winner(self, index: int) -> Any:
        """The candidate fitted on all rows: paid for, unless it was fitted so in the search."""
        if index in self._fitted:
            return self._fitted[index]
        group = self.groups[index]
        try:
            self._charge(group.whole.event, group.whole, NoOpDpEvent(), "refit of the winner")
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
        return self.data.spent(
            compose(*self.events),
            public=search_facts(self.data),
            label=self._label,
            release=self._name,
            on_record=self._on_record,
        )
