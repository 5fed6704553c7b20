"""What a backend is: it plans its releases from public shapes, learns once from private rows, and leaves a model."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from skfairdp.privacy import DpEvent, NeighboringRelation, NoiseSource

__all__ = ["RELATION", "BackendPlan", "FittedModel", "GeneratorBackend", "Layout", "PrivateRows"]

#: The neighbours of every backend: one record replaced, the number of records public.
RELATION = NeighboringRelation.REPLACE_ONE


@dataclass(frozen=True)
class Layout:
    """The public shape of what is to be learnt, and the public choices about teachers.

    Parameters
    ----------
    kind : {"cells", "units"}
        Tables come as cells (integers); images and tables of plain numbers as units (floats in [−1, 1]).
    n_rows, n_columns : int
    n_groups, n_classes : int
        1 where there are no groups or no labels. A *stratum* is ``group * n_classes + label``.
    n_teachers : int
    random_state : Generator
        Public randomness: initialisation and the partition by position.
    settings : dict
        Further public choices of the generator: ``balance``, ``sampling``, ``normalization``, ``teacher_loss``,
        ``device``, ``verbose``.
    """

    kind: str
    n_rows: int
    n_columns: int
    n_groups: int
    n_classes: int
    n_teachers: int
    random_state: np.random.Generator
    settings: dict[str, Any]

    @property
    def n_strata(self) -> int:
        return self.n_groups * self.n_classes


@dataclass(frozen=True)
class PrivateRows:
    """What a backend learns from. Nothing of it outlives ``learn``.

    Parameters
    ----------
    values : ndarray of shape (n_rows, n_columns)
        Cells or units.
    n_cells : tuple of int, one per column
        Public. Empty for units.
    nullable : tuple of bool, one per column
        Public: whether the cell before the last holds missing values.
    sampled : tuple of ndarray of bool, one per column
        Public: cells that may be sampled.
    groups, labels : ndarray of int of shape (n_rows,)
        All 0 where there are none.
    observed : ndarray of shape (n_groups, n_classes)
        The *released* shares of groups and labels: public by now.
    law : ndarray of shape (n_groups, n_classes)
        The law that will be sampled from.
    reference : ndarray of shape (n_public, n_columns) or None
        Public rows, in the form of ``values``.
    """

    values: NDArray[Any]
    n_cells: tuple[int, ...]
    nullable: tuple[bool, ...]
    sampled: tuple[NDArray[np.bool_], ...]
    groups: NDArray[np.int64]
    labels: NDArray[np.int64]
    observed: NDArray[np.float64]
    law: NDArray[np.float64]
    reference: NDArray[Any] | None = None


class FittedModel(ABC):
    """What a backend leaves: released values only, picklable."""

    @abstractmethod
    def sample(self, strata: NDArray[np.int64], rng: np.random.Generator) -> NDArray[Any]:
        """Cells or units of shape (len(strata), n_columns), one row of each given stratum."""

    def log_likelihood(self, values: NDArray[Any]) -> NDArray[np.float64] | None:
        """Log density of rows in each stratum, (n_rows, n_strata), where the model has one; else None."""
        return None

    def __repr__(self) -> str:
        """The kind of model. The default would show an address, which no two runs share and nobody needs."""
        return f"{type(self).__name__}()"


class BackendPlan(ABC):
    """Everything a backend will release, decided from public values. Mechanisms and event come from one noise scale."""

    @abstractmethod
    def event_at(self, noise: float) -> DpEvent:
        """The event of all releases at this noise scale; its cost falls as the scale grows."""

    @property
    @abstractmethod
    def releases(self) -> tuple[str, ...]:
        """The kinds of release, in words, for the ledger."""

    @abstractmethod
    def learn(self, rows: PrivateRows, noise: float, source: NoiseSource) -> FittedModel:
        """Make the releases of ``event_at(noise)`` and nothing else."""


class GeneratorBackend(BaseEstimator, ABC):
    """A way to learn a generator privately. To add one, subclass this, a :class:`BackendPlan` and a
    :class:`FittedModel`, and pass an instance as ``PFGuardGenerator(backend=...)``.

    ``plan`` sees the public :class:`Layout` only. It raises for layouts it cannot serve. The plan's ``event_at`` must
    cover, for every pair of tables that differ in one replaced row, all that ``learn`` lets out; the generator
    calibrates ``noise`` against it, charges the ledger, and then calls ``learn`` once.
    """

    @abstractmethod
    def plan(self, layout: Layout) -> BackendPlan:
        """Decide all releases from public values."""
