"""A model of rows whose labels follow noisy sums of the features of each class, where tables tell too little."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import Generator

from skfairdp._class_sums import ClassSums, SoftmaxRule
from skfairdp._tables import BackendPlan, Column, Model, NumberColumn, Rows, drawn_cells, on_simplex
from skfairdp._typing import Array, Floats, Ints
from skfairdp.privacy import NoiseSource

#: Rows in whose place the private ones are expected; and from how many at least those of a label are chosen.
_DRAWN, _LEAST_DRAWN = 10_000, 2000
_TINY = 1e-300


@dataclass(frozen=True)
class CodeFeatures:
    """Codes of columns, and that of the group after them, as numbers: of a bin its middle, of a category a flag."""

    tables: tuple[Floats, ...]

    @classmethod
    def of(cls, columns: Sequence[Column], n_groups: int) -> "CodeFeatures":
        """By released bins and public categories."""
        return cls((*map(_numbers_of, columns), np.eye(n_groups)[:, int(n_groups <= 2) :]))

    def __call__(self, codes: Any) -> Floats:
        return np.concatenate([table[codes[:, j]] for j, table in enumerate(self.tables)], axis=1)


def _numbers_of(column: Column) -> Floats:
    """One line for each code. A value that is missing or none of the domain is in the middle, and a flag says so."""
    flags = np.eye(column.n_codes)[:, :-1]
    if not isinstance(column, NumberColumn):
        return flags[:, int(column.n_codes <= 3) :]
    middles = (column.starts + np.append(column.starts[1:], column.high)) / 2
    further = np.full(column.n_codes - len(middles), np.median(middles))
    return np.column_stack([np.append(middles, further), flags[:, len(middles) :]])


class ModelBySums(Model):
    """Columns as a model of the groups draws them, given a label by the logistic regression that sums tell."""

    def __init__(self, of_groups: Model, features: CodeFeatures, rule: SoftmaxRule, rates: Floats) -> None:
        self.of_groups, self.features, self.rule, self.rates = of_groups, features, rule, rates

    def sample(self, cells: Ints, rng: Generator) -> Array:
        """Of twice as many rows of each group those that have the label, each as often as it is likely."""
        groups, labels = np.divmod(cells, self.rates.shape[1])
        out: list[Array] = []
        order = np.argsort(cells, kind="stable")
        for group in np.unique(groups):
            pool = np.full(max(2 * int(np.count_nonzero(groups == group)), _LEAST_DRAWN), int(group))
            values = self.of_groups.sample(pool, rng)
            shares = self._shares(values, group)
            for label, n in enumerate(np.bincount(labels[groups == group], minlength=shares.shape[1])):
                likely = np.maximum(shares[:, label], _TINY)
                out.append(values[rng.choice(len(values), n, p=likely / likely.sum())])
        drawn = np.concatenate(out)
        return drawn[np.argsort(order, kind="stable")]

    def log_likelihood(self, values: Array) -> Floats | None:
        """Log density of rows in each cell."""
        return self._densities(values, self.of_groups.log_likelihood(values), self.features)

    def log_likelihood_of(self, values: Array, columns: Sequence[int]) -> Floats:
        """Of some columns, where the label does not hear of the others: they are as on average."""
        tables = [
            table
            if j in columns or j == len(self.features.tables) - 1
            else np.tile(table.mean(axis=0), (len(table), 1))
            for j, table in enumerate(self.features.tables)
        ]
        found = self._densities(values, self.of_groups.log_likelihood_of(values, columns), CodeFeatures(tuple(tables)))
        assert found is not None
        return found

    def _densities(self, values: Array, of_groups: Floats | None, features: CodeFeatures) -> Floats | None:
        if of_groups is None:
            return None
        rates = self.rates / np.maximum(self.rates.sum(axis=1, keepdims=True), _TINY)
        given = [self._shares(values, group, features) / np.maximum(own, _TINY) for group, own in enumerate(rates)]
        return np.asarray(np.repeat(of_groups, rates.shape[1], axis=1) + np.log(np.maximum(np.hstack(given), _TINY)))

    def _shares(self, values: Array, group: int, features: CodeFeatures | None = None) -> Floats:
        return self.rule((features or self.features)(np.column_stack([values, np.full(len(values), group)])))


def release_by_sums(
    sums: ClassSums,
    columns: Sequence[Column],
    rows: Rows,
    backend: BackendPlan,
    scale: float,
    noise: NoiseSource,
    rng: Generator,
) -> tuple[ModelBySums, Floats]:
    """Release tables of the groups' rows, and sums of what these rows are in; return a model of groups and labels, and
    their shares, in which those of labels are as the sums count them."""
    n_groups, n_classes = rows.observed.shape
    groups, labels = np.divmod(rows.cells, n_classes)
    of_groups = rows.observed.sum(axis=1, keepdims=True)
    model = backend.release(replace(rows, cells=groups, observed=of_groups, rates=of_groups), scale, noise, rng)
    features, cells = CodeFeatures.of(columns, n_groups), drawn_cells(of_groups.ravel(), _DRAWN, rng)
    sampled, codes = (np.column_stack(both) for both in ((model.sample(cells, rng), cells), (rows.values, groups)))
    rule, _, counts = sums.release_rule(codes, labels, sampled, noise, terms=features, once=codes)
    # Released values only from here on.
    of_labels = rows.observed.sum(axis=0)
    of_group = np.where(of_labels > 0, rows.observed / np.where(of_labels > 0, of_labels, 1.0), of_groups)
    rates = of_group * on_simplex(counts)
    return ModelBySums(model, features, rule, rates), rates
