"""Figures of models on private rows that none of them has seen: noisy, and paid for."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.dummy import DummyClassifier, DummyRegressor

from skfairdp._row_wise import public_row, row_wise_amounts, row_wise_predictions
from skfairdp._typing import Array, Floats, Ints
from skfairdp.fairness import largest_disparity, parity_bound
from skfairdp.generative import SyntheticDataClassifier, SyntheticDataRegressor
from skfairdp.model_selection._amount_scores import AmountTable
from skfairdp.pate import ConstantStudent, FairPATEClassifier
from skfairdp.privacy import DpEvent, GaussianMechanism, NeighboringRelation, NoiseSource, gdp_epsilon, repeat
from skfairdp.schema import Schema


@dataclass(frozen=True)
class _Figures(ABC):
    """Noisy tables, one for each model, on rows that no model has seen."""

    schema: Schema
    mu: float
    delta: float
    n_tables: int
    relation: NeighboringRelation = NeighboringRelation.REPLACE_ONE

    @property
    @abstractmethod
    def mechanism(self) -> GaussianMechanism:
        """Of one table."""

    @property
    def event(self) -> DpEvent:
        """All tables."""
        return repeat(self.mechanism.event, self.n_tables)


class LabelFigures(_Figures):
    """Noisy tables of group, class and prediction. A replaced record leaves one cell of each table and enters another:
    a table moves by √2."""

    utility: ClassVar[str] = "accuracy"

    @property
    def mechanism(self) -> GaussianMechanism:
        """Of one table."""
        mu = self.mu / math.sqrt(self.n_tables)
        return GaussianMechanism(math.sqrt(2.0) / mu, sensitivity=math.sqrt(2.0), relation=self.relation)

    def codes(self, rows: pd.DataFrame) -> tuple[Ints, Ints]:
        """Group and class of each row, as positions in the schema; what it does not list comes after all of them."""
        numbers = self.schema.numbers(rows)
        groups, labels = _groups_of(self.schema, numbers), numbers[str(self.schema.label)]
        n_classes = len(self.schema.classes or ())
        return groups, np.where(np.isnan(labels), n_classes, np.nan_to_num(labels)).astype(np.int64)

    def release(
        self, model: Any, rows: pd.DataFrame, truth: tuple[Ints, Array], noise: NoiseSource
    ) -> dict[str, float]:
        """Accuracy and gap, from one noisy table, without groups that the noise hides. What flatters neither: a label
        that is not listed counts as wrong, and a share is one of all rows, whose number is public."""
        groups, labels = truth
        place = {value: j for j, value in enumerate(self.schema.classes or ())}
        answers = row_wise_predictions(model, rows, None, places=np.arange(len(rows)))
        predicted = np.array([place.get(value, 0) for value in answers.tolist()], dtype=np.int64)
        n_groups, n_classes = len(self.schema.group_values or ()), len(place)
        counts = np.zeros((n_groups + 1, n_classes + 1, n_classes))
        np.add.at(counts, (groups, labels, predicted), 1.0)
        released = self.mechanism.release(counts, noise)
        of_groups = released[:-1].sum(axis=1)
        seen = of_groups.sum(axis=1) > 20 * self.mechanism.sigma * n_classes
        shown = np.rint(np.maximum(of_groups[seen], 0.0)).astype(np.int64)
        by_class = released.sum(axis=(0, 2))[:-1]
        right = min(max(float(np.trace(released.sum(axis=0)[:-1])) / len(rows), 0.0), 1.0)
        one_row = pd.DataFrame({name: [cell] for name, cell in public_row(self.schema.columns).items()})
        only_class = place[model.predict(one_row).tolist()[0]] if _has_one_answer(model) else None
        error = self._error(right, (n_groups + 1) * n_classes, len(rows))
        gap = largest_disparity(shown) if seen.sum() > 1 else math.nan
        bound = parity_bound(of_groups[seen], noise=self.mechanism.sigma * math.sqrt(n_classes + 1))
        said = {"accuracy": right, "accuracy_error": error, "disparity": gap, "gap_bound": bound, "coverage": 1.0}
        known: dict[str, Any] = {"of_classes": by_class / len(rows), "only_class": only_class}
        return {**said, **known, "groups_seen": int(seen.sum())}

    def baseline(self, rows: list[dict[str, Any]], n_rows: int) -> float:
        """The share of the majority class, by all tables together; so much are models with one answer right on, which
        have no better figure in their own table, and no gap, whatever that says."""
        shares = np.clip(np.mean([row["of_classes"] for row in rows], axis=0), 0.0, 1.0)
        n_cells = (len(self.schema.group_values or ()) + 1) * len(shares) / len(rows)
        for row in rows:
            if row["only_class"] is not None:
                right = float(shares[row["only_class"]])
                row.update(accuracy=right, accuracy_error=self._error(right, n_cells, n_rows))
                row.update(disparity=0.0, gap_bound=0.0)
        return float(shares.max())

    def _error(self, share: float, n_cells: float, n_rows: int) -> float:
        """Half of the width of a 95 % interval around a share: the noise of its cells, and the sampling of its rows."""
        sampled = max(share * (1 - share), 1 / n_rows) / n_rows
        return 1.96 * math.sqrt(n_cells * (self.mechanism.sigma / n_rows) ** 2 + sampled)


@dataclass(frozen=True)
class AmountFigures(_Figures):
    """The same of predicted amounts: noisy sums of squared errors, and counts of predictions of each group."""

    exposure: str | None = None
    utility: ClassVar[str] = "r2"

    @property
    def table(self) -> AmountTable:
        """Of one model. Rows without a group that the schema lists are one more."""
        epsilon = gdp_epsilon(self.mu / math.sqrt(self.n_tables), self.delta)
        return AmountTable(np.arange(len(self.schema.group_values or ()) + 1), epsilon, self.delta, self.relation)

    @property
    def mechanism(self) -> GaussianMechanism:
        """Of one vector of sums."""
        return self.table.mechanism

    def codes(self, rows: pd.DataFrame) -> tuple[Ints, Floats]:
        """Group of each row, as a position in the schema, and its amount, the middle where there is none."""
        numbers, label = self.schema.numbers(rows), self.schema.amounts
        assert label is not None
        amounts = numbers[str(self.schema.label)]
        return _groups_of(self.schema, numbers), np.where(np.isnan(amounts), (label.low + label.high) / 2, amounts)

    def release(self, model: Any, rows: pd.DataFrame, truth: tuple[Ints, Array], noise: NoiseSource) -> dict[str, Any]:
        """R² and gap, from one vector of noisy sums. Groups that the noise hides are left out of the gap."""
        groups, amounts = truth
        predicted = row_wise_amounts(model, rows, None, places=np.arange(len(rows)))
        # a subject without rows has NaN
        exposure = 1.0 if self.exposure is None else rows[self.exposure].fillna(1.0).to_numpy()
        sums = self.table.sums(amounts, predicted, groups, (model.y_center_, model.y_spread_), exposure)
        released = self.table.release(sums, noise, len(rows))
        released = replace(released, counts=released.counts[:-1])
        r2, gap, bound = released.r2, *released.gaps
        if _has_one_answer(model):
            r2, gap, bound = min(0.0, r2), 0.0, 0.0
        said = {"r2": r2, "r2_error": released.error, "disparity": gap, "gap_bound": bound, "coverage": 1.0}
        of_rates = {} if self.exposure is None else {"exposure": self.exposure}
        return {**said, "groups_seen": int(released.seen.sum()), **of_rates}

    def baseline(self, rows: list[dict[str, Any]], n_rows: int) -> float:
        """Of a constant prediction."""
        return 0.0


def _groups_of(schema: Schema, numbers: Any) -> Ints:
    """Group of each row, as a position in the schema; what it does not list comes after all of them."""
    sizes = [len(getattr(schema.columns[name], "values", (False, True))) for name in schema.groups]
    read = np.stack([numbers[name] for name in schema.groups])
    known = ~np.isnan(read).any(axis=0)
    groups = np.full(read.shape[1], math.prod(sizes), dtype=np.int64)
    groups[known] = np.ravel_multi_index(tuple(read[:, known].astype(np.int64)), sizes)
    return groups


def _has_one_answer(model: Any) -> bool:
    """Whether what was released is no more than one answer, by what the model is made of."""
    if isinstance(model, SyntheticDataClassifier | SyntheticDataRegressor):
        return isinstance(model.estimator_, DummyClassifier | DummyRegressor)
    if isinstance(model, FairPATEClassifier):
        return isinstance(model.student_, ConstantStudent)
    from skfairdp._networks import is_constant, module_of

    return is_constant(module_of(model.net_)) if hasattr(model, "net_") else False
