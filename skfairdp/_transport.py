"""What makes scores of groups alike releases: where they lie, how those of each group are spread, how they end up."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.isotonic import isotonic_regression

from skfairdp._column_tables import ColumnTables, Cost, in_sight, without_far_ends
from skfairdp._judge import KSJudgement
from skfairdp._typing import Bools, Floats, Ints
from skfairdp.fairness import tally
from skfairdp.privacy import DpEvent, GaussianMechanism, NeighboringRelation, NoiseSource, compose, gdp_mu, repeat
from skfairdp.schema import NumberPlace

#: Of the squared cost: for the look at moved scores, for cells, and for scores of each group.
FOR_LOOK, FOR_CELLS, FOR_TABLE = 0.3, 0.15, 0.55
ROUNDS = 3  # of where scores lie
#: Cells of this part of the range are points.
NARROW = 2.0**-12
#: Between levels at which quantiles jump, and above or below all rows.
JUMP, BEYOND = 1e-12, 1e-6


def table_for(share: float, epsilon: float, delta: float, relation: NeighboringRelation) -> GaussianMechanism:
    """For a table in which a record is in one cell, at this share of the squared cost."""
    moved = 1.0 if relation.by_null else math.sqrt(2.0)
    mu = math.sqrt(share) * gdp_mu(epsilon, delta)
    return GaussianMechanism((1 + 1e-9) * moved / mu, sensitivity=moved, relation=relation)


@dataclass(frozen=True)
class ScoreCells(ColumnTables):
    """Where scores lie; where a record may be replaced by another one, that moves two cells."""

    @property
    def counts(self) -> GaussianMechanism:
        """For the cells, once."""
        return table_for(self.share * FOR_CELLS / ROUNDS, self.epsilon, self.delta, self.relation)


@dataclass(frozen=True)
class TablesOfScores:
    """Tables of scores by group share a budget, by public numbers alone."""

    n_rows: int
    n_groups: int
    epsilon: float
    delta: float
    relation: NeighboringRelation
    rows_of: str = ""
    share: float = 1.0

    def _of(self, share: float) -> GaussianMechanism:
        return table_for(self.share * share, self.epsilon, self.delta, self.relation)


@dataclass(frozen=True)
class TransportPlan(TablesOfScores):
    """Tables of counts, with their ``share`` of the squared cost, in each of which a record is in one cell: another one
    in its place moves two by one."""

    @property
    def cells(self) -> ScoreCells:
        """For where scores of all groups lie."""
        return ScoreCells((NumberPlace(0),), self.n_rows, *self._cost)

    @property
    def _cost(self) -> Cost:
        return self.epsilon, self.delta, self.relation, self.share

    @property
    def table(self) -> GaussianMechanism:
        """For scores by cell and group."""
        return self._of(FOR_TABLE)

    @property
    def look(self) -> GaussianMechanism:
        """For moved scores by cell and group."""
        return self._of(FOR_LOOK)

    @property
    def n_seen(self) -> float:
        """Rows of the look, on average."""
        return self.n_rows

    @property
    def n_looked_at(self) -> int:
        """Cells of the look, by public numbers: what is not seen inside of them beside the noise of all together."""
        return int(np.clip((2 * self.n_seen / self.n_groups / self.look.sigma) ** (2 / 3), 8, 128))

    @property
    def event(self) -> DpEvent:
        """All releases."""
        return compose(repeat(self.cells.counts.event, ROUNDS), self.table.event, self.look.event)

    @property
    def releases(self) -> tuple[str, ...]:
        """In words, for the ledger."""
        return (
            f"{ROUNDS} noisy tables of where scores lie",
            "a noisy table of scores by group",
            "a noisy table of moved scores by group",
        )

    def release(self, scores: Floats, groups: Ints, noise: NoiseSource) -> "Transport":
        """Release how scores in [0, 1] of each group are spread."""
        edges = self.release_edges(scores, noise)
        counts = self.table.release(self.counts(scores, groups, edges), noise)
        return Transport(without_far_ends(edges, counts, self.table.sigma), counts, self.table.sigma)

    def release_edges(self, scores: Floats, noise: NoiseSource) -> Floats:
        """Release where cells of about equally many scores end."""
        return np.asarray((self.cells.release_cells((2 * scores - 1)[:, None], noise, ROUNDS)[0] + 1) / 2)

    def release_judgement(
        self, transport: Any, scores: Floats, codes: Ints, groups: Ints, noise: NoiseSource, *, own: float = 0.0
    ) -> KSJudgement:
        """Release how scores of each group are spread when they are moved by these codes. Where these rows have taught
        the scores, ``own`` is by how much less groups are apart in what they follow of a row itself."""
        ends = transport.ends(self.n_looked_at)
        points = transport.points(ends)
        moved = self.look.release(self.counts(transport.move(scores, codes), groups, ends), noise)
        owed = most_within(own, ends, np.where(points, 0.0, moved.sum(axis=0)))
        return KSJudgement(moved, self.look.sigma, points, owed)

    def counts(self, scores: Floats, groups: Ints, edges: Floats) -> Ints:
        """Rows by group and cell. Private."""
        return tally(groups, np.searchsorted(edges[1:-1], scores, side="right"), (self.n_groups, len(edges) - 1))


@dataclass(frozen=True)
class Transport:
    """Moves scores of each group to where all groups together have them, keeping their order; post-processing. The
    barycenter in the Wasserstein distance has for its quantiles the mean of the groups', weighted by their rows."""

    edges: Floats
    counts: Floats
    noise: float

    @cached_property
    def levels(self) -> Floats:
        """Distribution functions of the groups at the edges."""
        counts = np.where(in_sight(self.counts, self.noise), self.counts, 0.0)
        sums = np.concatenate([np.zeros((len(counts), 1)), counts.cumsum(axis=1)], axis=1)
        shares = np.clip(sums / np.maximum(sums[:, -1:], 1.0), 0.0, 1.0)
        rising = np.stack([isotonic_regression(line, y_min=0.0, y_max=1.0) for line in shares])
        rising[:, 0], rising[:, -1] = 0.0, 1.0
        return rising

    @cached_property
    def weights(self) -> Floats:
        """Shares of the groups."""
        rows = np.maximum(self.counts.sum(axis=1), 1.0)
        return np.asarray(rows / rows.sum())

    @cached_property
    def quantiles(self) -> tuple[Floats, Floats]:
        """Levels, and the scores of the barycenter there."""
        # where a group has no rows its quantiles jump
        rising = self.levels + JUMP * np.arange(self.levels.shape[1])
        levels = np.unique(rising)
        return levels, self.weights @ np.stack([np.interp(levels, line, self.edges) for line in rising])

    def move(self, scores: Floats, groups: Ints) -> Floats:
        """The moved scores."""
        levels, barycenter = self.quantiles
        out = np.empty(len(scores))
        for code, line in enumerate(self.levels):
            mine = groups == code
            reached = np.clip(np.interp(scores[mine], self.edges, line), BEYOND, 1 - BEYOND)
            out[mine] = np.interp(reached, levels, barycenter)
        # Many rows with one score have a cell to themselves: noise in their levels is no reason to tell groups apart.
        cells = self._cells(out)
        return np.where(self._narrow[cells], (self.edges[cells] + self.edges[cells + 1]) / 2, out)

    @cached_property
    def _narrow(self) -> Bools:
        """Cells of which :meth:`move` makes one point."""
        return np.asarray(np.diff(self.edges) < NARROW)

    def _cells(self, scores: Floats) -> Ints:
        return np.clip(np.searchsorted(self.edges, scores, side="right") - 1, 0, len(self.edges) - 2)

    def ends(self, n_cells: int) -> Floats:
        """Ends of so many cells of moved scores, about equally many in each; where many are at a point, those of it."""
        many = self._narrow & (np.diff(self.levels).max(axis=0) > 1 / n_cells)
        ends = ends_of(self.quantiles, n_cells)
        apart = np.r_[ends[~many[self._cells(ends)]], self.edges[:-1][many], self.edges[1:][many]]
        return np.unique(np.r_[0.0, apart, 1.0])

    def points(self, ends: Floats) -> Bools:
        """Between which of these ends all moved scores are at one point."""
        cells = self._cells(ends[:-1])
        return self._narrow[cells] & (self.edges[cells] <= ends[:-1]) & (ends[1:] <= self.edges[cells + 1])


def most_within(width: float, ends: Floats, counts: Floats) -> float:
    """The largest part of the rows that lies so close together, by their counts between these ends."""
    below = np.r_[0.0, np.maximum(counts, 0.0).cumsum()]
    return float((np.interp(ends + width, ends, below) - below).max() / max(below[-1], 1.0))


def ends_of(quantiles: tuple[Floats, Floats], n_cells: int) -> Floats:
    """Ends of so many cells of scores with these quantiles."""
    inner = np.unique(np.interp(np.arange(1, n_cells) / n_cells, *quantiles))
    return np.r_[0.0, inner[(inner > 0) & (inner < 1)], 1.0]


def as_scores(amounts: Floats, bounds: tuple[float, float]) -> Floats:
    """Amounts as parts of the way from one bound to the other, the middle where there is none; rounded, so that the
    last bits of single precision do not decide between two cells."""
    low, high = bounds
    scores = np.clip((amounts - low) / (high - low), 0.0, 1.0).round(6)
    return np.where(np.isnan(scores), 0.5, scores)


def as_amounts_within(scores: Floats, bounds: tuple[float, float]) -> Floats:
    """The other way round."""
    low, high = bounds
    return np.clip(low + (high - low) * scores, low, high)
