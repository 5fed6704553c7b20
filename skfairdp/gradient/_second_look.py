"""A second look at a private network where noise drowns gradients: it has to beat the most frequent class."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfairdp._forecast import gradient_noise, smallest
from skfairdp.privacy import DpEvent, GaussianMechanism, NeighboringRelation, NoiseSource, compose, gdp_mu

__all__ = ["SecondLook"]

#: From here on gradients are too noisy to be trusted without a look.
DOUBTFUL = 0.06
COUNT_NOISE = 0.03  # in the share of a class: what a wrong answer costs is about a third of it
MOST_FOR_COUNTS, FOR_GAIN = 0.5, 0.25  # of the squared cost of the fit that rates of groups leave
EVIDENCE = 1.5  # standard deviations by which the network has to be ahead


@dataclass(frozen=True)
class SecondLook:
    """Two releases beside the gradients: counts of the classes, and by how many rows the network is ahead.

    A record that comes, goes or is replaced by a null record moves one count of the classes by one, and the difference
    by at most one: the network and the most frequent class are each right or wrong about it.

    Parameters
    ----------
    n_rows, n_features : int
        Of the private rows, declared where a number is declared.
    epsilon, delta : float
        Of the fit.
    relation : NeighboringRelation
    share : float, default=1.0
        Of the squared cost of the fit, what is not spent on rates of groups.

    Examples
    --------
    >>> from skfairdp.gradient._second_look import SecondLook
    >>> from skfairdp.privacy import NeighboringRelation
    >>> look = SecondLook(150, 20, 0.5, 1e-5, NeighboringRelation.ZERO_OUT)
    >>> look.is_needed, look.enough_rows, look.enough_epsilon
    (True, 530, 2.0)
    """

    n_rows: int
    n_features: int
    epsilon: float
    delta: float
    relation: NeighboringRelation
    share: float = 1.0

    @property
    def noise(self) -> float:
        """What gradients are going to carry, by public numbers."""
        return gradient_noise(self.n_rows, self.n_features, epsilon=self.epsilon, delta=self.delta)

    @property
    def is_needed(self) -> bool:
        """Whether the network may well end below the most frequent class."""
        return self.noise > DOUBTFUL

    @property
    def counts(self) -> GaussianMechanism:
        """For the counts of the classes."""
        wanted = 1 / (self.n_rows * COUNT_NOISE)
        return self._of(min(wanted, math.sqrt(MOST_FOR_COUNTS) * self._mu))

    @property
    def gain(self) -> GaussianMechanism:
        """For the number of rows by which the network is ahead."""
        return self._of(math.sqrt(FOR_GAIN) * self._mu)

    @property
    def _mu(self) -> float:
        return math.sqrt(self.share) * gdp_mu(self.epsilon, self.delta)

    def _of(self, mu: float) -> GaussianMechanism:
        return GaussianMechanism(1 / mu, sensitivity=1.0, relation=self.relation)

    @property
    def event(self) -> DpEvent:
        """Both releases."""
        return compose(self.counts.event, self.gain.event)

    @property
    def releases(self) -> tuple[str, ...]:
        """In words, for the ledger."""
        return "noisy counts of the classes", "by how many rows the network is ahead of the largest class"

    @property
    def enough_rows(self) -> int | None:
        """Rows from which no look is needed, to two digits."""

        def enough(rows: float) -> bool:
            return gradient_noise(int(rows), self.n_features, epsilon=self.epsilon, delta=self.delta) <= DOUBTFUL

        found = smallest(enough, float(self.n_rows), 1e8)
        return None if found is None else int(found)

    @property
    def enough_epsilon(self) -> float | None:
        """The ε from which no look is needed, to two digits."""

        def enough(epsilon: float) -> bool:
            return gradient_noise(self.n_rows, self.n_features, epsilon=epsilon, delta=self.delta) <= DOUBTFUL

        return smallest(enough, self.epsilon, 1e3)

    def taken(
        self, module: Any, X: NDArray[np.float64], y: NDArray[np.int64], n_classes: int, noise: NoiseSource
    ) -> Any:
        """Return the module where it is clearly ahead of the most frequent class, else one that always answers that.

        Parameters
        ----------
        module : nn.Module
            Trained privately.
        X, y : ndarray
            Private rows and their classes.
        n_classes : int
        noise : NoiseSource
        """
        from skfairdp._networks import constant_module, predict_logits

        counts = self.counts.release(np.bincount(y, minlength=n_classes), noise)
        usual = int(counts.argmax())
        # One by one: what a module answers for a row in a batch may hang on how many rows there are, by a rounding.
        predicted = np.array([predict_logits(module, X[i : i + 1]).argmax() for i in range(len(X))], dtype=np.int64)
        ahead = int(np.count_nonzero(predicted == y)) - int(np.count_nonzero(y == usual))
        if self.gain.release([float(ahead)], noise)[0] > EVIDENCE * self.gain.sigma:
            return module
        return constant_module(np.maximum(counts, 1.0) / np.maximum(counts, 1.0).sum())

    def words(self, predicted: Any, owner: str) -> str:
        """Return the warning, for the class that is predicted for every row."""
        ways = [f"{rows:,} private rows" for rows in [self.enough_rows] if rows is not None]
        ways += [f"epsilon={epsilon:g}" for epsilon in [self.enough_epsilon] if epsilon is not None]
        return (
            f"{owner} predicts the class {predicted} for every row: by a released count its network is not "
            f"clearly better than that. {self.n_features} features, {self.n_rows:,} private rows and "
            f"epsilon={self.epsilon:g} leave gradients with {self.noise:.2g} of noise, and above {DOUBTFUL:g} they "
            f"often carry nothing. {(' or '.join(ways) or 'A larger delta')} would do."
        )
