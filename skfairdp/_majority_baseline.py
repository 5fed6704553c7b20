"""A second look at a private network: it has to beat the most frequent class, and is told where it hardly does."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from skfairdp import _usefulness
from skfairdp._typing import Array, Floats, Ints
from skfairdp._utils import warn_caller
from skfairdp.exceptions import UtilityWarning
from skfairdp.privacy import DpEvent, GaussianMechanism, NeighboringRelation, NoiseSource, compose, gdp_mu

COUNT_NOISE = 0.03  # in the share of a class: what a wrong answer costs is about a third of it
#: In the share of rows by which the network is ahead: as much as is paid for at any price, and as little as is of use.
GAIN_NOISE, ENOUGH = 0.01, 0.001
MOST_FOR_COUNTS, MOST_FOR_GAIN = 0.5, 0.25  # of the squared cost of the fit that rates of groups leave
#: Of the squared cost, at most, to tell the gain better than by ``GAIN_NOISE``. A network that is ahead by the noise is
#: given up every other time: .01 lost half of what 6,000 rows with weak features had taught. Gradients have 2 % more
#: noise by it.
FOR_GAIN, FOR_COUNTS = 0.04, 0.005
ROWS_AT_ONCE = 8192


@dataclass(frozen=True)
class MajorityBaselineTest:
    """Two releases beside the gradients: counts of the classes, and by how many rows the network is ahead.

    A record that comes, goes or is replaced by a null record moves one count of the classes by one, and the difference
    by at most one: the network and the most frequent class are each right or wrong about it. Of a subject one row is
    looked at.
    """

    n_rows: int
    n_features: int
    epsilon: float
    delta: float
    relation: NeighboringRelation
    share: float = 1.0
    releases: ClassVar[tuple[str, ...]] = (
        "noisy counts of the classes",
        "by how many rows the network is ahead of the largest class",
    )

    @property
    def noise(self) -> float:
        """What gradients are going to carry, by public numbers."""
        return _usefulness.gradient_noise(self.n_rows, self.n_features, epsilon=self.epsilon, delta=self.delta)

    @property
    def counts(self) -> GaussianMechanism:
        """For the counts of the classes."""
        return self._at(max(self._within(COUNT_NOISE, MOST_FOR_COUNTS), self._within(GAIN_NOISE, FOR_COUNTS)))

    @property
    def gain(self) -> GaussianMechanism:
        """For the number of rows by which the network is ahead."""
        return self._at(max(self._within(GAIN_NOISE, MOST_FOR_GAIN), self._within(ENOUGH, FOR_GAIN)))

    def _within(self, noise: float, most: float) -> float:
        """The μ of as little noise in a share of the rows as is wanted, for at most ``most`` of the cost."""
        mu = math.sqrt(self.share) * gdp_mu(self.epsilon, self.delta)
        return min(1 / (self.n_rows * noise), math.sqrt(most) * mu)

    def _at(self, mu: float) -> GaussianMechanism:
        return GaussianMechanism(1 / mu, sensitivity=1.0, relation=self.relation)

    @property
    def event(self) -> DpEvent:
        """Both releases."""
        return compose(self.counts.event, self.gain.event)

    @property
    def target(self) -> float:
        """Noise that would do: half of it where the noise alone does not explain that nothing was learned."""
        return _usefulness.DOUBTFUL if self.noise > _usefulness.DOUBTFUL else self.noise / 2

    @property
    def enough(self) -> tuple[int | None, float | None]:
        """The rows by which the noise is down to the target, and the ε, to two digits."""
        target = self.target
        return _usefulness.what_is_enough(self, lambda other: other.noise <= target)

    def release(self, module: Any, X: Floats, y: Ints, n_classes: int, noise: NoiseSource) -> tuple[Any, Any]:
        """Release how far ahead the module is; return it with that, or else one that always answers the most frequent
        class.
        """
        from skfairdp._networks import constant_module, private_logits

        counts = self.counts.release(np.bincount(y, minlength=n_classes), noise)
        usual = int(counts.argmax())
        # Where a row may come or go, one by one: how a row is rounded hangs on its batch.
        size = ROWS_AT_ONCE if self.relation.number_is_public else 1
        right = 0
        for i in range(0, len(y), ROWS_AT_ONCE):
            logits = private_logits(module, X[i : i + ROWS_AT_ONCE], size)
            known = ~np.isnan(logits).any(axis=1)  # a row without an answer has none that is right
            right += int(np.count_nonzero(known & (logits.argmax(axis=1) == y[i : i + ROWS_AT_ONCE])))
        ahead = right - int(np.count_nonzero(y == usual))
        rates = np.maximum(counts, 1.0) / np.maximum(counts, 1.0).sum()
        found = self._compared(rates, usual, float(self.gain.release([float(ahead)], noise)[0]))
        return module if found.may_stay else constant_module(rates), found

    def _compared(self, rates: Floats, usual: int, ahead: float) -> _usefulness.Comparison:
        """The module beside that class, by what was released."""
        by_heart = _usefulness.learned_by_heart(rates, _usefulness.spread_by_rows(rates, self.n_features, self.n_rows))
        ahead, error = ahead / self.n_rows - by_heart, self.gain.sigma / self.n_rows
        where = f"of the {_usefulness.units_of(self.relation)}, by noisy counts that were released,"
        return _usefulness.Comparison(usual, ahead, float(rates[usual]), error, where)

    def warn(self, found: _usefulness.Comparison, module: Any, classes: Array, owner: str) -> None:
        """Say that the module is not clearly better than that class; both are what :meth:`release` returned."""
        from skfairdp._networks import is_constant

        if is_constant(module):
            warn_caller(self.words(classes[found.usual], owner), UtilityWarning)
        else:
            advice = f"With {self._figures}. {self._ways('halve it')} Its probabilities may still rank rows."
            found.warn(classes[found.usual], owner, falls_back=False, advice=advice)

    def _ways(self, what: str) -> str:
        rows, epsilon = self.enough
        ways = [] if rows is None else [f"{rows:,} {_usefulness.units_of(self.relation)}"]
        ways += [] if epsilon is None else [f"epsilon={epsilon:g}"]
        return f"{' or '.join(ways) or 'A larger delta'} would {what}."

    @property
    def _figures(self) -> str:
        rows = f"{self.n_rows:,} {_usefulness.units_of(self.relation)}"
        return (
            f"{self.n_features} features, {rows} and epsilon={self.epsilon:g} "
            f"the relative noise of the gradients is {self.noise:.2g}"
        )

    def words(self, predicted: Any, owner: str) -> str:
        """Return the warning, for the class that is predicted for every row."""
        is_noise = self.noise > _usefulness.DOUBTFUL
        why = (
            f"above {_usefulness.DOUBTFUL:g} a network often learns nothing"
            if is_noise
            else "informative features would exceed that"
        )
        return (
            f"{owner} predicts the class {predicted} for every row: by a released count its network is not "
            f"clearly better than that. With {self._figures}, and {why}. "
            f"{self._ways('suffice' if is_noise else 'halve it: try other features first')}"
        )
