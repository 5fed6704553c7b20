"""A second look at a private network where noise drowns gradients: it has to beat the most frequent class."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfairdp._docs import shared_docs
from skfairdp._forecast import FREE_MU, gradient_noise, smallest
from skfairdp.exceptions import UtilityWarning
from skfairdp.privacy import DpEvent, GaussianMechanism, NeighboringRelation, NoiseSource, compose, gdp_mu
from skfairdp.utils import warn_caller

__all__ = ["SecondLook"]

#: Noise from which on gradients often carry nothing, whatever the features say of the classes.
DOUBTFUL = 0.06
#: Noise from which on a look is taken. Where features say little a network ends below the most frequent class from .02
#: on already, and below that it is no better without a word; from 4,000 rows on the look costs a hundredth of μ².
#: With more to spend than ``FREE_MU`` it is ``DOUBTFUL`` alone: what few rows say by chance is learned without privacy
#: too.
LOOKED_AT = 0.0025
COUNT_NOISE = 0.03  # in the share of a class: what a wrong answer costs is about a third of it
GAIN_NOISE = 0.01  # in the share of rows by which the network is ahead
MOST_FOR_COUNTS, MOST_FOR_GAIN = 0.5, 0.25  # of the squared cost of the fit that rates of groups leave
#: Of the squared cost, where that tells the gain better than ``GAIN_NOISE``. A network that is ahead by the noise is
#: given up every other time: .01 lost half of what 6,000 rows with weak features had taught. Gradients have 2 % more
#: noise by it.
FOR_GAIN = 0.04
#: Standard deviations by which the network has to be ahead: of one that is behind by L, ``L Φ(-1 - L/σ)`` is lost on
#: average, .03 σ at the worst.
EVIDENCE = 1.0
ROWS_AT_ONCE = 8192


@shared_docs
@dataclass(frozen=True)
class SecondLook:
    """Two releases beside the gradients: counts of the classes, and by how many rows the network is ahead.

    A record that comes, goes or is replaced by a null record moves one count of the classes by one, and the difference
    by at most one: the network and the most frequent class are each right or wrong about it.

    Parameters
    ----------
    n_rows, n_features : int
        Of the private rows, declared where a number is declared.
    {looks_beside_a_fit}
    for_gain : float, default=0.0
        Of that, what is spent at the least on the number of rows by which the network is ahead.

    Examples
    --------
    >>> from skfairdp._second_look import SecondLook
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
    for_gain: float = 0.0

    @property
    def noise(self) -> float:
        """What gradients are going to carry, by public numbers."""
        return gradient_noise(self.n_rows, self.n_features, epsilon=self.epsilon, delta=self.delta)

    @property
    def is_needed(self) -> bool:
        """Whether the network may end below the most frequent class, or be no better without a word."""
        return self.noise > (LOOKED_AT if gdp_mu(self.epsilon, self.delta) <= FREE_MU else DOUBTFUL)

    @property
    def counts(self) -> GaussianMechanism:
        """For the counts of the classes."""
        return self._within(COUNT_NOISE, MOST_FOR_COUNTS)

    @property
    def gain(self) -> GaussianMechanism:
        """For the number of rows by which the network is ahead."""
        return self._within(GAIN_NOISE, MOST_FOR_GAIN, self.for_gain)

    @property
    def _mu(self) -> float:
        return math.sqrt(self.share) * gdp_mu(self.epsilon, self.delta)

    def _within(self, noise: float, most: float, least: float = 0.0) -> GaussianMechanism:
        """As little noise in a share of the rows as is wanted, for at most ``most`` of the cost; less for ``least``."""
        wanted = min(1 / (self.n_rows * noise), math.sqrt(most) * self._mu)
        return GaussianMechanism(1 / max(wanted, math.sqrt(least) * self._mu), sensitivity=1.0, relation=self.relation)

    @property
    def event(self) -> DpEvent:
        """Both releases."""
        return compose(self.counts.event, self.gain.event)

    @property
    def releases(self) -> tuple[str, ...]:
        """In words, for the ledger."""
        return "noisy counts of the classes", "by how many rows the network is ahead of the largest class"

    @property
    def target(self) -> float:
        """Noise that would do: half of it where the noise alone does not explain that nothing was learned."""
        return DOUBTFUL if self.noise > DOUBTFUL else self.noise / 2

    @property
    def enough_rows(self) -> int | None:
        """Rows by which the noise is down to the target, to two digits."""

        def enough(rows: float) -> bool:
            return gradient_noise(int(rows), self.n_features, epsilon=self.epsilon, delta=self.delta) <= self.target

        found = smallest(enough, float(self.n_rows), 1e8)
        return None if found is None else int(found)

    @property
    def enough_epsilon(self) -> float | None:
        """The ε by which the noise is down to the target, to two digits."""

        def enough(epsilon: float) -> bool:
            return gradient_noise(self.n_rows, self.n_features, epsilon=epsilon, delta=self.delta) <= self.target

        return smallest(enough, self.epsilon, 1e3)

    def release(
        self, module: Any, X: NDArray[np.float64], y: NDArray[np.int64], n_classes: int, noise: NoiseSource
    ) -> Any:
        """Release how far ahead the module is; return it where that is clear, else one that always answers the most
        frequent class.

        Parameters
        ----------
        module : nn.Module
            Trained privately.
        X, y : ndarray
            Private rows and their classes.
        n_classes : int
        noise : NoiseSource
        """
        from skfairdp._networks import constant_module, private_logits

        counts = self.counts.release(np.bincount(y, minlength=n_classes), noise)
        usual = int(counts.argmax())
        # Where a row may come or go, one by one: how a row is rounded hangs on its batch.
        size = ROWS_AT_ONCE if self.relation.number_is_public else 1
        right = 0
        for i in range(0, len(y), size):
            logits = private_logits(module, X[i : i + size], size)
            known = ~np.isnan(logits).any(axis=1)  # a row without an answer has none that is right
            right += int(np.count_nonzero(known & (logits.argmax(axis=1) == y[i : i + size])))
        ahead = right - int(np.count_nonzero(y == usual))
        if self.gain.release([float(ahead)], noise)[0] > EVIDENCE * self.gain.sigma:
            return module
        return constant_module(np.maximum(counts, 1.0) / np.maximum(counts, 1.0).sum())

    def warn_of_one_class(self, module: Any, classes: NDArray[Any], owner: str) -> None:
        """Say so where the most frequent class is all that comes out; ``module`` is what :meth:`taken` returned."""
        from skfairdp._networks import is_constant, predict_logits

        if is_constant(module):
            code = predict_logits(module, np.zeros((1, self.n_features))).argmax()
            warn_caller(self.words(classes[code], owner), UtilityWarning)

    def words(self, predicted: Any, owner: str) -> str:
        """Return the warning, for the class that is predicted for every row."""
        ways = [f"{rows:,} private rows" for rows in [self.enough_rows] if rows is not None]
        ways += [f"epsilon={epsilon:g}" for epsilon in [self.enough_epsilon] if epsilon is not None]
        why = (
            f"above {DOUBTFUL:g} they often say nothing"
            if self.noise > DOUBTFUL
            else "features that tell the classes apart would show through that"
        )
        return (
            f"{owner} predicts the class {predicted} for every row: by a released count its network is not "
            f"clearly better than that. With {self.n_features} features, {self.n_rows:,} private rows and "
            f"epsilon={self.epsilon:g} gradients have {self.noise:.2g} of noise, and {why}. "
            f"{(' or '.join(ways) or 'A larger delta')} would "
            f"{'do' if self.noise > DOUBTFUL else 'halve it: try other features first'}."
        )
