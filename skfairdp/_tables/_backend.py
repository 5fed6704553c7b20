"""What a backend is, and the plan of a fit: releases decided from public numbers before a private row is looked at."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.random import Generator
from sklearn.base import BaseEstimator

from skfairdp import privacy
from skfairdp._class_sums import ClassSums
from skfairdp._judge import Judge
from skfairdp._tables._columns import LOOKS
from skfairdp._tables._counting import counted_pairs
from skfairdp._typing import Array, Bools, Floats, Ints, Pair

#: The neighbours of every backend: one record replaced, the number of records public.
RELATION = privacy.NeighboringRelation.REPLACE_ONE

_BINS_SHARE, _COUNTS_SHARE = 0.08, 0.02  # of the squared cost of a fit


@dataclass(frozen=True)
class Layout:
    """The public shape of what is to be learnt, from which a backend plans."""

    kind: Literal["codes", "units"]
    n_rows: int
    n_columns: int
    n_groups: int
    n_classes: int
    balance: str | None
    groups_known: bool
    n_nullable: int = 0
    relation: privacy.NeighboringRelation = RELATION
    tells_interactions: bool = True

    @property
    def n_cells(self) -> int:
        return self.n_groups * self.n_classes

    def bins_above_noise(self, sigma: float) -> float:
        """Into how many bins a number can be cut that hold twelve standard deviations each in every cell."""
        return self.n_rows / (12 * self.n_cells * max(sigma, 1.0))


@dataclass(frozen=True)
class Rows:
    """What a backend learns from. Nothing of it outlives ``release``."""

    values: Array
    cells: Ints
    n_codes: tuple[int, ...]
    nullable: tuple[bool, ...]
    sampled: tuple[Bools, ...]
    observed: Floats
    rates: Floats
    public: Array | None = None
    places: Ints | None = None

    def at_their_places(self, n: int) -> "Rows":
        """As many rows as there are subjects: that of who has none is a constant, and nobody else's place follows from
        it."""
        if self.places is None or len(self.places) == n:
            return self
        values, cells = np.zeros((n, self.values.shape[1]), self.values.dtype), np.zeros(n, dtype=np.int64)
        values[self.places], cells[self.places] = self.values, self.cells
        return replace(self, values=values, cells=cells, places=None)

    def column_counts(self, further: Sequence[Pair] = ()) -> list[Ints]:
        """Counts of each column by group and label, as one line each. ``further`` are pairs that will be asked for."""
        n_cells = self.observed.size
        return [
            np.bincount(self.cells * np.int64(n_codes) + self.values[:, j], minlength=n_cells * n_codes)
            for j, n_codes in enumerate(self.n_codes)
        ]

    def pair_counts(self, pairs: Sequence[Pair]) -> Iterator[Ints]:
        """Joint counts of each pair of columns, one after the other."""
        return counted_pairs(self.values, self.n_codes, pairs)


class Model(ABC):
    """What a backend leaves: released values only, picklable."""

    @abstractmethod
    def sample(self, cells: Ints, rng: Generator) -> Array:
        """Codes or units of shape (len(cells), n_columns), one row for each given group and label."""

    def log_likelihood(self, values: Array) -> Floats | None:
        """Log density of rows in each cell, (n_rows, n_cells), where the model has one; else None."""
        return None

    def log_likelihood_of(self, values: Array, columns: Sequence[int]) -> Floats:
        """Log density of some columns of rows in each cell, the others summed out, where the model has one."""
        raise NotImplementedError(f"{type(self).__name__} has no density of some of its columns.")

    def __repr__(self) -> str:
        """The kind of model. The default would show an address, which no two runs share."""
        return f"{type(self).__name__}()"


class BackendPlan(ABC):
    """Everything a backend will release, decided from public values. Mechanisms and event come from one noise scale."""

    @abstractmethod
    def event_at(self, scale: float) -> privacy.DpEvent:
        """The event of all releases at this noise scale; its cost falls as the scale grows."""

    @property
    @abstractmethod
    def releases(self) -> tuple[str, ...]:
        """The kinds of release, in words, for the ledger."""

    @abstractmethod
    def release(self, rows: Rows, scale: float, noise: privacy.NoiseSource, rng: Generator) -> Model:
        """Make the releases of ``event_at(scale)`` and nothing else. ``rng`` is public randomness."""


class GeneratorBackend(BaseEstimator, ABC):
    """A way to learn a generator privately: the base class of all backends. It plans its releases from the public shape
    of the table, is given a noise scale that meets the budget, and learns once."""

    @abstractmethod
    def plan(self, layout: Layout) -> BackendPlan:
        """Decide all releases from public values.

        Parameters
        ----------
        layout : Layout
            The public shape of the table, and what is to be balanced.

        Returns
        -------
        BackendPlan
            Its event covers, for every two tables that differ in one replaced row, all that ``release`` lets out.

        Raises
        ------
        ValueError
            The backend cannot serve such a table.
        """


@dataclass(frozen=True)
class GeneratorPlan:
    """All releases of a fit: bins of numbers, counts of groups and labels, and what the backend has planned."""

    epsilon: float
    delta: float
    bins_sensitivity: float
    n_cells: int
    backend: BackendPlan
    counts_share: float = _COUNTS_SHARE
    gain: privacy.GaussianMechanism | None = None
    pure_counts: privacy.LaplaceCounts | None = None
    judge: Judge | None = None
    target: Any = None
    sums: ClassSums | Any = None
    relation: privacy.NeighboringRelation = RELATION
    rows_of: str = ""

    @property
    def bins(self) -> privacy.GaussianMechanism | None:
        """For the fine histograms, once."""
        return self._of(_BINS_SHARE / LOOKS, self.bins_sensitivity) if self.bins_sensitivity else None

    @property
    def counts(self) -> privacy.GaussianMechanism | privacy.LaplaceCounts | None:
        """For the counts of groups by labels: a replaced row moves two of them by one."""
        if self.pure_counts is not None:
            return self.pure_counts
        return self._of(self.counts_share, math.sqrt(2.0)) if self.n_cells > 1 else None

    def _of(self, share: float, sensitivity: float) -> privacy.GaussianMechanism:
        mu = math.sqrt(share) * self._mu
        return privacy.GaussianMechanism(sensitivity / mu, sensitivity=sensitivity, relation=self.relation)

    @property
    def _mu(self) -> float:
        """Gaussian cost of what is not pure: the two ε add up."""
        pure = 0.0 if self.pure_counts is None else self.pure_counts.epsilon
        return privacy.gdp_mu(self.epsilon - pure, self.delta)

    @cached_property
    def scale(self) -> float:
        """The backend's noise scale with which everything costs at most ``epsilon``."""
        return privacy.calibrate_noise(self.event_at, self.epsilon, self.delta, guess=1.1 / self._mu)

    def event_at(self, scale: float) -> privacy.DpEvent:
        """Everything, with this noise scale of the backend."""
        parts = self.counts, self.gain, self.judge, self.target, self.sums
        extras = [mechanism.event for mechanism in parts if mechanism is not None]
        extras += [privacy.repeat(self.bins.event, LOOKS)] if self.bins else []
        return privacy.compose(*extras, self.backend.event_at(scale))

    @property
    def event(self) -> privacy.DpEvent:
        """Everything that the fit will release."""
        return self.event_at(self.scale)

    @property
    def releases(self) -> tuple[str, ...]:
        """The kinds of release, in words, for the ledger."""
        words = ["two fine histograms of numbers"] if self.bins else []
        words += ["counts of groups and labels"] if self.counts else []
        gain = ["by how many rows the learner is ahead of the largest class"] if self.gain else []
        others = [word for part in (self.target, self.sums, self.judge) if part is not None for word in part.releases]
        return (*words, *self.backend.releases, *gain, *others)
