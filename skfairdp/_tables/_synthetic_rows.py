"""Rows sampled from a private table's own noisy tables: what stands in for public rows where there are none."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.special import softmax
from scipy.stats import norm
from sklearn.base import BaseEstimator

from skfairdp._tables._backend import RELATION, Layout, Model, Rows
from skfairdp._tables._columns import (
    LOOKS,
    drawn_cells,
    is_out_of_scale,
    look_twice,
    on_simplex,
    say_close_together,
    say_out_of_scale,
)
from skfairdp._tables._counting import code_type
from skfairdp._tables._marginals import MarginalsBackend, MarginalsPlan
from skfairdp._tables._matrix import MatrixColumn, coded, grid_counts, number_column
from skfairdp._typing import Bools, Floats, Ints
from skfairdp._utils._sklearn import Interval
from skfairdp.privacy import DpEvent, GaussianMechanism, NeighboringRelation, NoiseSource, compose, gdp_mu, repeat

#: Pairs of columns are scored up to this many columns: their number grows with the square.
_MOST_IN_A_TREE = 100
_LEAST_ROWS, _MOST_ROWS, _ROWS_PER_CELL = 1000, 10_000, 20
_BINS_SHARE, _COUNTS_SHARE = 0.08, 0.02  # of the squared cost of the tables
_LEAST_BINS, _MOST_BINS = 4, 8
#: Where the noise hides how far numbers reach, sampled ones reach as far as what shows. Others are likely in the next
#: bin of the first counts, and each bin is twice as far out as the one before.
_NEXT_BIN = 2.0
_EVIDENCE = 4.0  # standard deviations of its noise that the count of a group must exceed


class SyntheticRows(BaseEstimator):
    """Rows that take the place of public ones: sampled from noisy tables of the private rows, within ε.

    A share of the budget buys tables of counts of every column by group and label, and of the pairs of most dependent
    columns (:class:`MarginalsBackend`). Rows sampled from them are differentially private, so an estimator
    may use them as it uses public rows; what it then learns about them is paid from the rest of the same ε.

    Parameters
    ----------
    budget_share : float, default=0.5
        Share of the budget (of μ²) for the tables; in [0.01, 0.99].
    n_rows : int, default=None
        Rows to sample. None: as many as there are private rows, at least 1,000 and at most 10,000. More cost nothing,
        but take time.
    n_bins : int, default=None
        Bins that a column of numbers is cut into. None: 4 to 8, as many as the noise leaves something in.

    See Also
    --------
    PublicData : Public rows that you have.

    Examples
    --------
    >>> from skfairdp import FairPATEClassifier, SyntheticRows
    >>> from skfairdp.datasets import make_biased_classification
    >>> X, y, groups = make_biased_classification(4000, disparity=0.3, random_state=0)
    >>> own = SyntheticRows(budget_share=0.4, n_rows=2000)
    >>> model = FairPATEClassifier(public_data=own, classes=[0, 1], groups=[0, 1], random_state=0)
    >>> model = model.fit(X, y, sensitive_features=groups)
    >>> round(model.privacy_.epsilon, 3)
    1.0
    """

    _parameter_constraints: dict[str, Any] = {
        "budget_share": [Interval(Real, 0.01, 0.99, closed="both")],
        "n_rows": [Interval(Integral, 1, None, closed="left"), None],
        "n_bins": [Interval(Integral, 2, 1000, closed="both"), None],
    }

    def __init__(self, *, budget_share: float = 0.5, n_rows: int | None = None, n_bins: int | None = None) -> None:
        self.budget_share, self.n_rows, self.n_bins = budget_share, n_rows, n_bins

    def check(self) -> None:
        """Raise what is wrong with the parameters."""
        self._validate_params()

    def plan(
        self,
        *,
        n_rows: int,
        n_features: int,
        n_groups: int,
        n_classes: int,
        epsilon: float,
        delta: float,
        columns: Sequence[MatrixColumn] | None = None,
        relation: NeighboringRelation = RELATION,
    ) -> "SyntheticRowsPlan":
        """Decide the tables from public numbers.

        Parameters
        ----------
        n_rows, n_features, n_groups, n_classes : int
            Shape of the private table; 1 group where none are used.
        epsilon, delta : float
            Budget of the whole fit.
        columns : sequence of MatrixColumn or None, default=None
            What is public about the columns. None: nothing, so that the range of each is paid for.
        relation : NeighboringRelation, default=NeighboringRelation.REPLACE_ONE
            Which data sets count as neighbours. Of a subject at most one row may be counted.

        Returns
        -------
        SyntheticRowsPlan
            The releases, with their event.
        """
        self.check()
        if columns is None:
            columns = [number_column((j,)) for j in range(n_features)]
        layout = Layout("codes", n_rows, len(columns), n_groups, n_classes, None, True, relation=relation)
        structure = "tree" if len(columns) <= _MOST_IN_A_TREE else "star"
        backend = MarginalsBackend(structure=structure).plan(layout)
        assert isinstance(backend, MarginalsPlan)
        usual = max(min(n_rows, _MOST_ROWS), _LEAST_ROWS, _ROWS_PER_CELL * layout.n_cells)
        made, mu = usual if self.n_rows is None else self.n_rows, math.sqrt(self.budget_share) * gdp_mu(epsilon, delta)
        return SyntheticRowsPlan(layout, tuple(columns), n_features, made, self.n_bins, mu, backend)


@dataclass(frozen=True)
class SampledRows:
    """Rows that anyone may see."""

    X: Floats
    groups: Ints
    shares: Floats
    shares_of_group: Floats
    is_within_noise: Bools
    limits: Floats


@dataclass(frozen=True)
class SyntheticRowsPlan:
    """All that is released of the private table before rows are sampled: Gaussian releases that share μ²."""

    layout: Layout
    columns: tuple[MatrixColumn, ...]
    n_features: int
    n_sampled: int
    n_bins: int | None
    mu: float
    backend: MarginalsPlan
    bins_share: float = _BINS_SHARE

    @property
    def relation(self) -> NeighboringRelation:
        """Of the guarantee."""
        return self.layout.relation

    @property
    def numbers(self) -> tuple[int, ...]:
        """Columns of numbers whose bins follow from a first count."""
        return tuple(j for j, column in enumerate(self.columns) if column.coding is None)

    @property
    def bins(self) -> GaussianMechanism | None:
        """For a first count of numbers in bins, and a second: a replaced row moves two counts in each column."""
        return self._of(self.bins_share / LOOKS, math.sqrt(2 * len(self.numbers))) if self.numbers else None

    @property
    def counts(self) -> GaussianMechanism | None:
        """For the counts of groups by labels: a replaced row moves two of them by one."""
        return self._of(_COUNTS_SHARE, math.sqrt(2.0)) if self.layout.n_cells > 1 else None

    def _of(self, share: float, sensitivity: float) -> GaussianMechanism:
        sigma = sensitivity / (math.sqrt(share) * self.mu)
        return GaussianMechanism(sigma, sensitivity=sensitivity, relation=self.relation)

    @property
    def scale(self) -> float:
        """Noise of the tables, which get what is left."""
        used = (self.bins_share if self.numbers else 0.0) + (_COUNTS_SHARE if self.layout.n_cells > 1 else 0.0)
        return 1 / (math.sqrt(1 - used) * self.mu)

    @property
    def sigma(self) -> float:
        """Noise on a group's part of each count by label, if all groups had as much of it."""
        return self.backend.noise_by_label_at(self.scale) / math.sqrt(self.layout.n_groups)

    @property
    def default_bins(self) -> int:
        """Bins of a number: as many as leave each with twelve standard deviations of noise in each group and label.
        Rows are drawn within a bin as a first count says, so few are enough (tests/statistical/test_own_rows.py)."""
        if self.n_bins is not None:
            return self.n_bins
        return int(np.clip(self.layout.bins_above_noise(self.sigma), _LEAST_BINS, _MOST_BINS))

    @property
    def n_values(self) -> int:
        """Values of all categories, and bins of all numbers."""
        codings = [column.coding for column in self.columns]
        return sum(self.default_bins if coding is None else coding.n_values for coding in codings)

    @property
    def variance(self) -> float:
        """Noise in the share of rows that have a value and a label, summed over all values."""
        return float(self.n_values * self.layout.n_groups * (self.sigma / self.layout.n_rows) ** 2)

    @property
    def event(self) -> DpEvent:
        """Everything that is released."""
        extras = [repeat(self.bins.event, LOOKS)] if self.bins else []
        extras += [self.counts.event] if self.counts else []
        return compose(*extras, self.backend.event_at(self.scale))

    @property
    def releases(self) -> tuple[str, ...]:
        """The kinds of release, in words, for the ledger."""
        words = ["two first counts of numbers"] if self.bins else []
        words += ["counts of groups and labels"] if self.counts else []
        return (*words, *self.backend.releases)

    def release(self, X: Floats, y: Ints, groups: Ints | None, noise: NoiseSource, rng: Generator) -> SampledRows:
        """Release the tables and sample rows."""
        columns = self._with_bins(X, noise)
        codings = [column.coding for column in columns if column.coding is not None]
        cells = y if groups is None else groups * self.layout.n_classes + y
        observed, is_within_noise = self._observed(cells, noise)
        kind = code_type(max((coding.n_codes for coding in codings), default=1))
        values = np.empty((len(X), len(columns)), dtype=kind, order="F")
        for some, of_columns in coded(columns, X):
            for j, of_column in enumerate(of_columns):
                values[some, j] = of_column
        n_codes, sampled = tuple(one.n_codes for one in codings), tuple(one.sampled for one in codings)
        rows = Rows(values, cells, n_codes, tuple(one.nullable for one in codings), sampled, observed, observed)
        model = self.backend.release(rows, self.scale, noise, rng)
        return self._sampled(model, observed, columns, is_within_noise, rng)

    def _with_bins(self, X: Floats, noise: NoiseSource) -> list[MatrixColumn]:
        """Columns with their bins, by counts that are released here."""
        columns = list(self.columns)
        if self.bins is None:
            return columns
        numbers, n_rows, sigma = [columns[j] for j in self.numbers], self.layout.n_rows, self.bins.sigma
        # Above what noise reaches in any bin of any column, in one fit of ten thousand: one empty bin far out that is
        # taken for occupied would stretch a whole column.
        evidence = float(norm.isf(1e-4 / sum(len(column.grid) for column in numbers)))

        def closer(column: MatrixColumn, line: Floats) -> MatrixColumn:
            return column.closer(line, evidence * sigma, sigma, n_rows)

        looks = look_twice(numbers, lambda some: grid_counts(some, X), self.bins, noise, closer)
        beyond, close = [], []
        for j, (column, line, error, first) in zip(self.numbers, looks, strict=True):
            if column.bounds is None and is_out_of_scale(columns[j].grid, first, evidence * sigma, n_rows):
                beyond.append(column.positions[0])
            columns[j] = column.settled(line, evidence * error, self.default_bins, n_rows)
            if crowd := column.crowded(line, evidence * error, n_rows):
                close.append(f"{repr(column.name) if column.name else f'column {column.positions[0]}'} ({crowd})")
        say_out_of_scale([f"column {position}" for position in beyond], number_column((0,)).grid)
        say_close_together(close)
        return columns

    def _observed(self, cells: Ints, noise: NoiseSource) -> tuple[Floats, Bools]:
        """Released shares of groups and labels, and which groups are within the noise."""
        shape = self.layout.n_groups, self.layout.n_classes
        if self.counts is None:
            return np.ones(shape), np.zeros(shape[0], dtype=bool)
        noisy = self.counts.release(np.bincount(cells, minlength=self.layout.n_cells), noise)
        of_groups = noisy.reshape(shape).sum(axis=1)
        small = of_groups < _EVIDENCE * self.counts.sigma * math.sqrt(shape[1])
        return on_simplex(noisy).reshape(shape), small

    # ------------------------------------------------------------------ released values only from here on

    def _sampled(
        self, model: Model, observed: Floats, columns: Sequence[MatrixColumn], small: Bools, rng: Generator
    ) -> SampledRows:
        # Two rows at least of each group and label: no group may be without rows, whatever the noise did to its count.
        rates = np.maximum(observed, 2.0 / self.n_sampled)
        cells = drawn_cells((rates / rates.sum()).ravel(), self.n_sampled, rng)
        codes = model.sample(cells, rng)
        X = np.zeros((self.n_sampled, self.n_features))
        for j, column in enumerate(columns):
            column.write(codes[:, j], X, rng)
        # of these numbers nobody knows the range, and the released counts do not show it
        unseen = [column for column in columns if not column.is_category and column.bounds is None]
        hidden = [column.positions[0] for column in unseen if column.spread is None]
        limits = np.stack([X.min(axis=0), X.max(axis=0)])
        limits[:, hidden] = np.array([[-1.0], [1.0]]) * _NEXT_BIN * np.abs(limits[:, hidden]).max(axis=0)
        logs = model.log_likelihood(codes)
        assert logs is not None
        logs = logs + np.log(np.maximum(observed.ravel(), 1e-300))
        shares = softmax(logs, axis=1).reshape(-1, *observed.shape).sum(axis=1)
        groups = cells // observed.shape[1]
        of_group = logs.reshape(-1, *observed.shape)[np.arange(len(logs)), groups]
        return SampledRows(X, groups, shares, softmax(of_group, axis=1), small, limits)
