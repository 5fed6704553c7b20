"""The trials of a private search: what each costs, and how one is made."""

import math
from typing import Any

import numpy as np

from skfairdp.model_selection._candidate import Candidate, Rows, UnplannedReleaseError
from skfairdp.model_selection._objectives import Bound, Objective
from skfairdp.model_selection._search import PrivateScores, PublicScores
from skfairdp.model_selection._splits import Split, split_event
from skfairdp.privacy import DpEvent, LedgerEntry, NoiseSource, PrivacyLedger, compose, epsilon_of

__all__ = ["Trials"]


class Trials:
    """Makes trials and knows what each costs. Everything in it is private but the events."""

    delta: float
    entry: LedgerEntry
    seed: int | None
    ledger: PrivacyLedger | None
    source: NoiseSource

    def __init__(
        self, candidate: Candidate, rows: Rows, grid: list[dict[str, Any]], objectives: list[Objective],
        bounds: list[Bound], scores: PublicScores | PrivateScores, splits: list[Split], refits: bool,
    ) -> None:  # fmt: skip
        self.candidate, self.rows, self.grid, self.objectives = candidate, rows, grid, objectives
        self.bounds, self.scores, self.splits = bounds, scores, splits
        self.refits = refits

    def plan(self, share: float) -> None:
        """The cost of a trial of each candidate, and of one trial of all of them."""
        table = self.scores.table if isinstance(self.scores, PrivateScores) else None
        self.options = self.candidate.fold_options(table, self.rows, share)
        n_rows, fits = len(self.rows.y), []
        kinds = set()
        for params in self.grid:
            whole = self.candidate.plan(self.candidate.model(params), self.rows, warn=False)
            kinds.add((whole.protects, whole.neighboring_relation))
            model = self.candidate.model(params, **self.options)
            parts = [self.candidate.plan(model, self.rows, train, warn=False).event for train, _ in self.splits]
            fits.append((whole.event, parts))
        self.fits = fits
        if len(kinds) > 1:
            raise ValueError(f"The candidates give unlike guarantees ({len(kinds)} kinds). Search them separately.")

        def cost(parts: list[DpEvent], wholes: list[DpEvent], n_scores: int) -> DpEvent:
            if table is None:
                return compose(*wholes)
            size = table.public_size(n_rows)
            return compose(split_event(self.splits, parts, table.event, n_scores, n_rows=size), *wholes)

        kept = self.refits or not self.splits
        self.events = [cost(parts, [whole] if kept else [], 1) for whole, parts in fits]
        together = [compose(*(parts[j] for _, parts in fits)) for j in range(len(self.splits))]
        self.composed = cost(together, [whole for whole, _ in fits] if kept else [], len(self.grid))

    def make(self, index: int) -> tuple[tuple[float, float], tuple[int, Any, float]]:
        """One trial: its rank, and what comes out if it wins.

        A fit that fails wins, and the search ends without anything: had it lost, a record that makes fits fail would
        choose among the others. That it won is the outcome of this trial, and as such paid for.
        """
        try:
            model, values = self._fitted_and_scored(index)
        except UnplannedReleaseError:
            raise
        except Exception:
            return (math.inf, math.inf), (index, None, math.nan)
        value = values[self.objectives[0].name]
        missed = sum(bound.excess(values[bound.name]) for bound in self.bounds)
        gain = -value if self.objectives[0].minimize else value
        return (-missed, -math.inf if math.isnan(gain) else gain), (index, model, value)

    def _fitted_and_scored(self, index: int) -> tuple[Any, dict[str, float]]:
        whole, parts = self.fits[index]
        epsilon = epsilon_of(whole, self.candidate.private_part(self.candidate.estimator).delta)
        if isinstance(self.scores, PublicScores):
            model = self._fit(index, None, whole)
            return model, self.scores.measure(model, self.objectives, epsilon)
        folds = []
        for (train, test), planned in zip(self.splits, parts, strict=True):
            model = self._fit(index, train, planned)
            folds.append(self.scores.measure(model, self.rows, test, self.objectives, epsilon, self.source))
        values = {o.name: float(np.mean([fold[o.name] for fold in folds])) for o in self.objectives}
        return (self._fit(index, None, whole) if self.refits else model), values

    def _fit(self, index: int, positions: Any, planned: DpEvent) -> Any:
        model = self.candidate.model(self.grid[index], **(self.options if positions is not None else {}))
        X, y, arguments = self.rows.arguments(model, positions)
        fitted = model.fit(X, y, **arguments)
        self.candidate.check_spent(fitted, planned)
        return fitted
