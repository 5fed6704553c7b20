"""Labels of sampled rows by noisy sums of the features of each class, where tables of counts tell too little of them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from skfairdp._class_sums import ClassSums, SoftmaxRule
from skfairdp._tables import Column, Layout, Model, NumberColumn, Rows, drawn_cells, on_simplex
from skfairdp._typing import Array, Floats, Ints
from skfairdp.privacy import NoiseSource

_MOST_DRAWN = 10_000  # rows in whose place the private ones are expected


@dataclass(frozen=True)
class CodeFeatures:
    """Codes of columns, and that of the group after them, as numbers: of a bin its middle, of a category a flag."""

    tables: tuple[Floats, ...]

    @classmethod
    def of(cls, columns: Sequence[Column], n_groups: int) -> "CodeFeatures":
        """By released bins and public categories."""
        groups = np.eye(n_groups)[:, 1:] if n_groups <= 2 else np.eye(n_groups)
        return cls((*map(_numbers_of, columns), groups))

    def __call__(self, codes: Ints) -> Floats:
        return np.concatenate([table[codes[:, j]] for j, table in enumerate(self.tables)], axis=1)


def _numbers_of(column: Column) -> Floats:
    """One line for each code. A value that is missing or none of the domain is in the middle, and a flag says so."""
    flags = np.eye(column.n_codes)[:, :-1]
    if not isinstance(column, NumberColumn):
        return flags[:, int(column.n_codes <= 3) :]
    middles = (column.starts + np.append(column.starts[1:], column.high)) / 2
    further = np.full(column.n_codes - len(middles), np.median(middles))
    return np.column_stack([np.append(middles, further), flags[:, len(middles) :]])


@dataclass(frozen=True)
class LabelsBySums:
    """The label given all columns and the group, by the logistic regression that released sums tell."""

    features: CodeFeatures
    rule: SoftmaxRule

    @classmethod
    def release(
        cls,
        sums: ClassSums,
        columns: Sequence[Column],
        rows: Rows,
        model: Model,
        layout: Layout,
        noise: NoiseSource,
        rng: Generator,
    ) -> tuple["LabelsBySums", Floats]:
        """Release the sums; return what follows, and shares of groups and labels in which those of labels are theirs.
        Rows of the model stand for the private ones."""
        features, (groups, labels) = CodeFeatures.of(columns, layout.n_groups), np.divmod(rows.cells, layout.n_classes)
        cells = drawn_cells(rows.observed.ravel(), _MOST_DRAWN, rng)
        sampled = np.column_stack([model.sample(cells, rng), cells // layout.n_classes])
        codes = np.column_stack([rows.values, groups])
        rule, _, counts = sums.release_rule(codes, labels, sampled, noise, terms=features, once=codes)
        # Released values only from here on.
        of_labels, of_groups = rows.observed.sum(axis=0), rows.observed.sum(axis=1, keepdims=True)
        of_group = np.where(of_labels > 0, rows.observed / np.where(of_labels > 0, of_labels, 1.0), of_groups)
        return cls(features, rule), of_group * on_simplex(counts)

    def draw(self, values: Array, groups: Ints, weights: Floats, rng: Generator) -> Ints:
        """A label for each row, where those of a group count by weights."""
        reached = np.cumsum(self.rule(self.features(np.column_stack([values, groups]))) * weights[groups], axis=1)
        marks = rng.random((len(values), 1)) * reached[:, -1:]
        return np.asarray((marks >= reached[:, :-1]).sum(axis=1), dtype=np.int64)
