"""The trials of PrivateSearchCV: what each costs, and how one is made."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skfairdp.exceptions import UnplannedReleaseError
from skfairdp.model_selection._objectives import Bound
from skfairdp.model_selection._search_data import SearchData
from skfairdp.privacy import DpEvent, NoiseSource, compose


@dataclass(frozen=True)
class Trials:
    """Every candidate with its cost. What a trial returns is private until the best of them is chosen."""

    data: SearchData
    bounds: Sequence[Bound]
    refits: bool
    fits: list[tuple[DpEvent, list[DpEvent]]]

    @property
    def events(self) -> list[DpEvent]:
        """The cost of a trial of each candidate."""
        return [self._cost(parts, [whole], 1) for whole, parts in self.fits]

    @property
    def composed(self) -> DpEvent:
        """The cost of one trial of every candidate."""
        parts = [compose(*(parts[j] for _, parts in self.fits)) for j in range(len(self.data.splits))]
        return self._cost(parts, [whole for whole, _ in self.fits], len(self.fits))

    def _cost(self, parts: list[DpEvent], wholes: list[DpEvent], n_scores: int) -> DpEvent:
        if not self.data.splits:
            return compose(*wholes)
        return compose(self.data.cost(parts, n_scores), *(wholes if self.refits else ()))

    def make(self, index: int, noise: NoiseSource) -> tuple[tuple[float, float], tuple[int, Any, float]]:
        """One trial: its rank, and what comes out if it wins.

        A fit that fails wins, and the search ends without anything: had it lost, a record that makes fits fail would
        choose among the others. That it won is the outcome of this trial, and as such paid for.
        """
        try:
            model, values = self._fitted_and_scored(index, noise)
        except UnplannedReleaseError:
            raise
        except Exception:
            return (math.inf, math.inf), (index, None, math.nan)
        objective = self.data.scores.objectives[0]
        value = values[objective.name]
        missed = sum(bound.excess(values[bound.name]) for bound in self.bounds)
        gain = -value if objective.minimize else value
        return (-missed, -math.inf if math.isnan(gain) else gain), (index, model, value)

    def _fitted_and_scored(self, index: int, noise: NoiseSource) -> tuple[Any, dict[str, float]]:
        data, (whole, parts) = self.data, self.fits[index]
        epsilon = data.epsilon(whole)
        if not data.splits:
            model = self._fit(index, None, whole)
            return model, data.scores.measure(model, None, epsilon, None)
        folds = []
        for (train, test), planned in zip(data.splits, parts, strict=True):
            model = self._fit(index, train, planned)
            # A record is in the table of one fold: each has its own noise, and may draw it once.
            with data.scores.paid(None if noise.is_secret else noise.seed(), 1) as of_table:
                folds.append(data.scores.measure(model, test, epsilon, of_table))
        values = {name: float(np.mean([fold[name] for fold in folds])) for name in folds[0]}
        return (self._fit(index, None, whole) if self.refits else model), values

    def _fit(self, index: int, positions: Any, planned: DpEvent) -> Any:
        options = {} if positions is None else self.data.fold_options
        model = self.data.candidate.model(self.data.grid[index], **options)
        X, y, arguments = self.data.rows.arguments(model, positions)
        fitted = model.fit(X, y, **arguments)
        self.data.candidate.check_spent(fitted, planned)
        return fitted


def plan_trials(data: SearchData, bounds: Sequence[Bound], *, refits: bool) -> Trials:
    """Plan the fits of every candidate. All of them must give the same kind of guarantee."""
    planned = [data.plan(params) for params in data.grid]
    kinds = {(whole.protects, whole.neighboring_relation) for whole, _ in planned}
    if len(kinds) > 1:
        raise ValueError(f"The candidates give unlike guarantees ({len(kinds)} kinds). Search them separately.")
    fits = [(whole.event, [part.event for part in parts]) for whole, parts in planned]
    return Trials(data, bounds, refits, fits)
