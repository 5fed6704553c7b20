"""A barycenter without the group at prediction: scores move by the group that is guessed, as far as that helps."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from skfairdp._transport import FOR_TABLE, Transport, TransportPlan, ends_of
from skfairdp.postprocessing._bins import FOR_SIZES, HOPELESS, ROWS_BY_KIND, RowsAside
from skfairdp.privacy import DpEvent, GaussianMechanism, NoiseSource, compose

Array = NDArray[np.float64]

#: How far scores may move beyond what the guess says: it takes that for groups to agree where guesses are often wrong.
STRENGTHS = np.linspace(0.1, 4.0, 40)
#: Of the distance of groups, that it has to fall by for a squared move as large as the variance of scores.
PRICE = 0.5
#: Standard deviations of the noise in a distance that moving has to make up for.
CLEAR = 1.0
#: A cell is so many points where distances are computed.
FINER = 4


@dataclass(frozen=True)
class GuessedTransportPlan(TransportPlan, RowsAside):
    """The tables of a barycenter with rows by the kind of their guess as well: a record is in one cell of each.

    *Proof.* Rows of the look are drawn without a look at any, so that it is enough to show the guarantee for each such
    set. What guesses is released before, with the sizes of groups beside which it does so (see ``GuessPlan``). So the
    kind of a row follows from the row and from what is released, a record is in one cell of the table by kind, group
    and score and in one of the look, or in none, and adaptive composition holds for all together.
    """

    #: A distance takes more rows to know than a rate does.
    one_in: ClassVar[int] = 3

    n_kinds: int = 1
    guess: Any = None

    @property
    def table(self) -> GaussianMechanism:
        """For scores by cell, group and kind, of what sizes leave."""
        return super().table if self.n_kinds == 1 else self._of(FOR_TABLE - FOR_SIZES)

    @property
    def n_seen(self) -> float:
        """Rows of the look, on average."""
        return self.n_rows / self.one_in

    @property
    def n_bins(self) -> int:
        """Cells of each group and kind that noise would let one tell apart: a function of public numbers."""
        return int(self.n_counted / (ROWS_BY_KIND * self.table.sigma) / (self.n_groups * self.n_kinds))

    @property
    def snr_too_low(self) -> bool:
        """Whether noise is going to say more than the rows: a function of public numbers."""
        cells = self.n_groups * self.n_kinds * self.n_looked_at
        return self.table.sigma * math.sqrt(cells) > HOPELESS * self.n_counted

    @property
    def event(self) -> DpEvent:
        """All releases, as if every row were in each of them."""
        if self.n_kinds == 1:
            return super().event
        tables = compose(super().event, self.sizes.event)
        return tables if self.guess is None else self.guess.event_with(tables)

    @property
    def releases(self) -> tuple[str, ...]:
        """In words, for the ledger."""
        if self.guess is None:
            return super().releases
        where, _, look = super().releases
        return "noisy counts of groups", *self.guess.releases, where, "noisy scores by guessed group and group", look

    def release_by_kind(
        self, scores: Array, groups: NDArray[np.int64], kinds: NDArray[np.int64], noise: NoiseSource
    ) -> "GuessedTransport":
        """Release how scores in [0, 1] of each kind and group are spread."""
        edges = self.release_edges(scores, noise)
        cells = replace(self, n_groups=self.n_kinds * self.n_groups)
        counts = cells.counts(scores, kinds * self.n_groups + groups, edges).reshape(self.n_kinds, self.n_groups, -1)
        return GuessedTransport(edges, self.table.release(counts, noise), self.table.sigma)


@dataclass(frozen=True)
class GuessedTransport:
    """Moves scores by the kind of their guess, of which each group has a share. Post-processing.

    A score goes to the mean of where every group's would go, weighted by the shares of groups among rows of its kind.
    The guess is often wrong, so that groups come together by a part only. Weights are stretched away from those of all
    rows therefore, by the strength at which distributions of the true groups agree best by the counts, less what so
    large moves cost. Where the counts do not show that groups come closer, beyond noise, scores stay as they are.
    """

    edges: Array
    counts: Array
    noise: float

    @cached_property
    def of_groups(self) -> Transport:
        """Where scores would go if groups were known."""
        return Transport(self.edges, self.counts.sum(axis=0), self.noise * math.sqrt(len(self.counts)))

    @cached_property
    def shares(self) -> Array:
        """Of groups among rows of each kind; those of all rows where noise hides these."""
        doubt = self.noise * math.sqrt(self.counts.shape[2])
        rows = np.maximum(self.counts.sum(axis=2), 0.0) + doubt * self.of_groups.weights
        return np.asarray(rows / rows.sum(axis=1, keepdims=True))

    @cached_property
    def _points(self) -> tuple[Array, Array, NDArray[np.int64]]:
        """Scores within the cells of each kind, how many rows of each group are there, and the kinds."""
        between = (np.arange(FINER) + 0.5) / FINER
        points = (self.edges[:-1, None] + np.diff(self.edges)[:, None] * between).ravel()
        rows = np.moveaxis(np.repeat(self.counts / FINER, FINER, axis=2), 1, 0)
        kinds = np.repeat(np.arange(len(self.counts)), len(points))
        return np.tile(points, len(self.counts)), rows.reshape(len(rows), -1), kinds

    def _where(self, scores: Array) -> Array:
        """Where each group's scores would go, (n_groups, n_scores)."""
        codes = range(self.counts.shape[1])
        return np.stack([self.of_groups.move(scores, np.full(len(scores), code)) for code in codes])

    def _mean(self, strength: float, where: Array, kinds: NDArray[np.int64]) -> Array:
        of_all = self.of_groups.weights
        weights = of_all + strength * (self.shares - of_all)
        return np.clip(np.einsum("rg,gr->r", weights[kinds], where), 0.0, 1.0)

    @cached_property
    def strength(self) -> float:
        """How far weights are stretched; 0 where scores stay as they are."""
        points, rows, kinds = self._points
        of_all, where = np.maximum(rows.sum(axis=0), 0.0) + 1e-9, self._where(points)
        variance = float(np.average((points - np.average(points, weights=of_all)) ** 2, weights=of_all))

        def cost(moved: Array) -> float:
            squared = float(np.average((moved - points) ** 2, weights=of_all))
            return _distance(moved, rows) + PRICE * squared / max(variance, 1e-12)

        costs = [cost(self._mean(strength, where, kinds)) for strength in STRENGTHS]
        n_kinds, _, n_cells = self.counts.shape
        doubt = CLEAR * self.noise * math.sqrt(2 * n_kinds * n_cells) / max(float(rows.sum(axis=1).min()), 1.0)
        return float(STRENGTHS[int(np.argmin(costs))]) if min(costs) + doubt < cost(points) else 0.0

    def move(self, scores: Array, kinds: NDArray[np.int64]) -> Array:
        """The moved scores."""
        return self._mean(self.strength, self._where(scores), kinds) if self.strength else scores

    @property
    def quantiles(self) -> tuple[Array, Array]:
        """Levels, and moved scores there."""
        points, rows, kinds = self._points
        moved, of_all = self.move(points, kinds), np.maximum(rows.sum(axis=0), 0.0)
        order = np.argsort(moved)
        levels = of_all[order].cumsum()
        return (levels - of_all[order] / 2) / max(levels[-1], 1.0), moved[order]

    def ends(self, n_cells: int) -> Array:
        """Ends of so many cells of moved scores, about equally many in each."""
        return ends_of(self.quantiles, n_cells)


def _distance(moved: Array, rows: Array) -> float:
    """The largest distance of Kolmogorov and Smirnov between rows of two groups at these scores."""
    levels = rows[:, np.argsort(moved)].cumsum(axis=1)
    levels = levels / np.maximum(levels[:, -1:], 1.0)
    return float(np.ptp(levels, axis=0).max())
