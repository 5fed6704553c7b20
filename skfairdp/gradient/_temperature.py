"""How sure a private network may be of its answers: one noisy table of how often it is right scales its logits."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logsumexp

from skfairdp.privacy import DpEvent, GaussianMechanism, NeighboringRelation, NoiseSource, gdp_mu

if TYPE_CHECKING:
    from skfairdp._networks import Net

Array = NDArray[np.float64]

#: Of the squared cost that rates of groups leave: gradients have 4 % more noise, and the log loss is a third lower.
SHARE = 0.08
#: Between the log odds that the predicted class has for the network, and what stands for each part.
EDGES = np.array([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0])
ODDS = np.concatenate([[0.0], (EDGES[1:] + EDGES[:-1]) / 2, [14.0]])
FACTORS = np.geomspace(0.05, 2.0, 61)
CLEAR_OF_NOISE = 1.0  # standard deviations that a line of the table has to hold
OPINION = 0.25  # of a standard deviation: rows as sure as they are right, against tables of right answers alone
ROWS_AT_ONCE = 8192


@dataclass(frozen=True)
class Temperature:
    """A table of rows, by how sure the network is of its answer and whether that is right, released once.

    Clipping shortens the gradients of rows that the network gets wrong, and of no others: it ends up surer than it
    should be. A factor on all logits mends that and changes no answer, so that no rate of any group moves. A record
    that comes, goes or is replaced by a null record moves one count by one.
    """

    epsilon: float
    delta: float
    relation: NeighboringRelation
    share: float = 1.0

    @staticmethod
    def fits(net: "Net") -> bool:
        """Whether the network ends in a linear layer of ours; what a user built is left as it is."""
        from skfairdp._networks import CNN, MLP, ResNet

        return net.module in (MLP, CNN, ResNet)

    @property
    def counts(self) -> GaussianMechanism:
        """For the table."""
        mu = math.sqrt(SHARE * self.share) * gdp_mu(self.epsilon, self.delta)
        return GaussianMechanism(1 / mu, sensitivity=1.0, relation=self.relation)

    @property
    def event(self) -> DpEvent:
        """The release."""
        return self.counts.event

    @property
    def releases(self) -> tuple[str, ...]:
        """In words, for the ledger."""
        return ("a noisy table of how sure and how often right the network is",)

    def table(self, module: Any, X: Any, y: NDArray[np.int64]) -> Array:
        """Count rows by how sure the network is, and by whether it is wrong or right. Private."""
        from skfairdp._networks import private_logits

        # Where a row may come or go, one by one: how a row is rounded hangs on its batch.
        size = ROWS_AT_ONCE if self.relation.number_is_public else 1
        found = np.zeros((len(ODDS), 2))
        for i in range(0, len(y), size):
            logits = private_logits(module, X[i : i + size], size)
            known = ~np.isnan(logits).any(axis=1)  # a row without an answer counts nowhere
            logits, truth = logits[known], y[i : i + size][known]
            answer = logits.argmax(axis=1)[:, None]
            best = np.take_along_axis(logits, answer, axis=1)[:, 0]
            np.put_along_axis(logits, answer, -np.inf, axis=1)
            sure = best - logsumexp(logits, axis=1)
            right = (answer[:, 0] == truth).astype(np.int64)
            np.add.at(found, (np.searchsorted(EDGES, sure, side="right"), right), 1.0)
        return found

    def factor(self, noisy: Array) -> float:
        """Return the factor under which so many right answers are least surprising; post-processing.

        Lines that may be noise alone are left out. Each of the others gets a few rows of the network's own opinion.
        """
        sigma = self.counts.sigma
        rows = noisy.sum(axis=1)
        kept = rows > CLEAR_OF_NOISE * math.sqrt(2) * sigma
        believed = np.stack([expit(-ODDS), expit(ODDS)], axis=1)
        counts = (np.maximum(noisy, 0.0) + OPINION * sigma * believed)[kept]
        odds = np.outer(FACTORS, ODDS[kept])
        surprise = np.logaddexp(0, odds) @ counts[:, 0] + np.logaddexp(0, -odds) @ counts[:, 1]
        return float(FACTORS[surprise.argmin()]) if kept.any() else 1.0

    def release(self, module: Any, X: Any, y: NDArray[np.int64], noise: NoiseSource) -> Any:
        """Release how sure and how right the module is; return it with its last layer scaled by that."""
        from skfairdp._networks import scale_last_layer

        return scale_last_layer(module, self.factor(self.counts.release(self.table(module, X, y), noise)))
