"""Scores of private rows: one noisy table of (group, label, prediction), from which everything else is computed."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfairdp.model_selection._objectives import Answers
from skfairdp.privacy import DpEvent, GaussianMechanism, NeighboringRelation, NoiseSource, gdp_mu

__all__ = ["ScoreTable"]


@dataclass(frozen=True)
class ScoreTable:
    """Releases how predictions on private rows turned out.

    Each row is one cell of the table: its group, its label, and its prediction or refusal. A replaced record, or a
    changed group, moves one row from a cell to another (sensitivity √2); a record that comes or goes changes one cell
    (1). All metrics are post-processing of the noisy table.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
    groups : ndarray of shape (n_groups,)
    epsilon, delta : float
        Cost of one table.
    relation : NeighboringRelation
        Of the search.
    refusals : bool, default=True
        Whether predictions may be refused; False leaves those cells, and their noise, out.
    """

    classes: NDArray[Any]
    groups: NDArray[Any]
    epsilon: float
    delta: float
    relation: NeighboringRelation
    refusals: bool = True

    @property
    def mechanism(self) -> GaussianMechanism:
        """Noise and event of one table."""
        sensitivity = 1.0 if self.relation is NeighboringRelation.ADD_OR_REMOVE_ONE else math.sqrt(2.0)
        # A hair more noise than the budget asks for, so that rounding cannot end above it.
        sigma = sensitivity / gdp_mu(self.epsilon, self.delta) * (1 + 1e-9)
        return GaussianMechanism(sigma, sensitivity=sensitivity, relation=self.relation)

    @property
    def event(self) -> DpEvent:
        """One table."""
        return self.mechanism.event

    def public_size(self, n_rows: int) -> int | None:
        """The number of rows, or None where it is nothing public: there records come and go."""
        return None if self.relation is NeighboringRelation.ADD_OR_REMOVE_ONE else n_rows

    def release(
        self,
        label_codes: NDArray[np.int64],
        group_codes: NDArray[np.int64] | None,
        y_pred: NDArray[Any],
        source: NoiseSource,
    ) -> Answers:
        """The noisy table, as rows that have those counts.

        Parameters
        ----------
        label_codes : ndarray of int of shape (n_rows,)
            Private.
        group_codes : ndarray of int of shape (n_rows,) or None
            Private; None where no objective needs groups.
        y_pred : ndarray of shape (n_rows,)
            Private, each a function of its own row. What is no class is a refusal; where there are none, it counts as
            the first class, so that every row has its cell.
        source : NoiseSource
        """
        n_classes, n_groups = len(self.classes), len(self.groups)
        position = {label: code for code, label in enumerate(self.classes.tolist())}
        other = n_classes if self.refusals else 0
        predicted = np.array([_code(label, position, other) for label in np.asarray(y_pred).tolist()], dtype=np.int64)
        codes = np.zeros(len(label_codes), dtype=np.int64) if group_codes is None else group_codes
        counts = np.zeros((n_groups if group_codes is not None else 1, n_classes, n_classes + 1))
        np.add.at(counts, (codes, label_codes, predicted), 1.0)
        if not self.refusals:
            counts = counts[:, :, :n_classes]
        noisy = np.maximum(np.rint(self.mechanism.release(counts, source)), 0.0).astype(np.int64)
        return self._answers(noisy, group_codes is not None)

    def made_up(self, with_groups: bool) -> Answers:
        """A table with one row in every cell: to try on it what will be read from a released one."""
        shape = (len(self.groups) if with_groups else 1, len(self.classes), len(self.classes) + self.refusals)
        return self._answers(np.ones(shape, dtype=np.int64), with_groups)

    def _answers(self, table: NDArray[np.int64], with_groups: bool) -> Answers:
        n_classes = len(self.classes)
        z, y, k = np.indices(table.shape).reshape(3, -1).repeat(table.ravel(), axis=1)
        return Answers(
            self.classes[y],
            self.classes[np.minimum(k, n_classes - 1)],
            k < n_classes,
            self.groups[z] if with_groups else None,
            self.classes,
        )


def _code(label: Any, position: dict[Any, int], other: int) -> int:
    try:
        return position.get(label, other)
    except Exception:  # a label that cannot be looked up
        return other
