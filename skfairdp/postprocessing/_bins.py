"""What private thresholds release: scores by cell of a fine grid, then rows by bin of the score, group and label."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfairdp.privacy import (
    DpEvent,
    GaussianMechanism,
    NeighboringRelation,
    NoiseSource,
    PoissonSample,
    compose,
    gdp_mu,
)

Array = NDArray[np.float64]

GRID = 128  # cells of equal width
MOST_BINS = 32
FOR_EDGES = 0.2  # of the squared cost: where bins end matters less than what they hold
FOR_LOOK = 0.1  # of the squared cost: a tenth leaves rates of 1,000 rows a noise of about .03 at ε = 1
HELD = 5  # one row in five is looked at, and teaches no threshold
HOPELESS = 0.3  # noise of all counts together, as a share of the rows: answers turned around by it cost most there
ROWS_PER_NOISE = 10.0  # a cell of the table holds that many standard deviations of its noise, on average


@dataclass(frozen=True)
class BinsPlan:
    """Two tables of counts. A record is in one cell of each, so that another one in its place moves two cells by
    one.
    """

    n_rows: int
    n_groups: int
    epsilon: float
    delta: float
    relation: NeighboringRelation

    @property
    def histogram(self) -> GaussianMechanism:
        """For the scores by cell of the grid."""
        return self._of(FOR_EDGES)

    @property
    def table(self) -> GaussianMechanism:
        """For the rows by bin, group and label."""
        return self._of(1 - FOR_EDGES - FOR_LOOK)

    @property
    def look(self) -> GaussianMechanism:
        """For the answers to rows that taught no threshold, by group and label."""
        return self._of(FOR_LOOK)

    def kept_aside(self, n_rows: int, noise: NoiseSource) -> NDArray[np.bool_]:
        """Draw the rows of the look: each by itself, whatever it holds, so that they stand for rows to come.

        The draw is secret: in whatever order rows come, a record that is replaced changes no other row's place.
        """
        held = np.zeros(n_rows, dtype=bool)
        held[PoissonSample(1 / HELD).draw(n_rows, noise)] = True
        return held

    def _of(self, share: float) -> GaussianMechanism:
        sensitivity = 1.0 if self.relation is NeighboringRelation.ZERO_OUT else math.sqrt(2.0)
        mu = math.sqrt(share) * gdp_mu(self.epsilon, self.delta)
        return GaussianMechanism((1 + 1e-9) * sensitivity / mu, sensitivity=sensitivity, relation=self.relation)

    @property
    def n_counted(self) -> float:
        """Rows of the tables, on average."""
        return self.n_rows * (1 - 1 / HELD)

    @property
    def snr_too_low(self) -> bool:
        """Whether noise is going to say more of the rates than the rows: a function of public numbers."""
        return self.table.sigma * math.sqrt(2 * self.n_groups * self.n_bins) > HOPELESS * self.n_counted

    @property
    def n_bins(self) -> int:
        """As many as the noise lets one tell apart: a function of public numbers."""
        cells = self.n_counted / (ROWS_PER_NOISE * self.table.sigma)
        return int(np.clip(cells / (2 * self.n_groups), 2, MOST_BINS))

    @property
    def event(self) -> DpEvent:
        """All releases, as if every row were in each of them."""
        return compose(self.histogram.event, self.table.event, self.look.event)

    @property
    def releases(self) -> tuple[str, ...]:
        """In words, for the ledger."""
        return (
            "a noisy histogram of scores",
            "noisy counts by bin of the score, group and label",
            "noisy counts of answers by group and label",
        )

    def release(
        self, scores: Array, groups: NDArray[np.integer[Any]], y: NDArray[np.integer[Any]], noise: NoiseSource
    ) -> tuple[Array, Array]:
        """Release where bins end, and what they hold."""
        fine = np.bincount(np.minimum((scores * GRID).astype(np.int64), GRID - 1), minlength=GRID)
        edges = edges_from(self.histogram.release(fine, noise), self.n_bins)
        shape = (len(edges) + 1, self.n_groups, 2)
        cells = np.ravel_multi_index((bins_of(scores, edges), groups, y), shape)
        counts = np.bincount(cells, minlength=math.prod(shape)).reshape(shape)
        return edges, self.table.release(counts, noise)


def edges_from(histogram: Array, n_bins: int) -> Array:
    """Where bins of about equally many rows end, from noisy counts; 1/2, the model's own threshold, is among them."""
    seen = np.cumsum(np.maximum(histogram, 0.0))
    wanted = np.arange(1, n_bins) / n_bins * max(float(seen[-1]), 1e-9)
    ends = np.searchsorted(seen, wanted) + 1
    nearest = int(np.abs(ends - GRID // 2).argmin())
    ends[nearest] = GRID // 2
    ends = np.unique(ends)
    return ends[ends < GRID] / GRID


def bins_of(scores: Array, edges: Array) -> NDArray[np.int64]:
    """The bin of every score."""
    return np.searchsorted(edges, scores, side="right").astype(np.int64)
