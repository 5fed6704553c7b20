"""What a learner can hope for from noisy tables, told from public numbers; and one noisy look at how far it got."""

import math
from dataclasses import dataclass
from typing import Any

from skfairdp._class_sums import ClassSums
from skfairdp._tables import RELATION, Layout
from skfairdp._typing import Floats
from skfairdp._usefulness import Comparison, units_of, ways_of, what_is_enough
from skfairdp._utils import PlainState
from skfairdp.privacy import GaussianMechanism, LaplaceCounts, NeighboringRelation, gdp_mu

#: Noise in the tables: from the first on a learner may end below the most frequent class, from the second on tables
#: carry nothing. Of logistic tables with known rates (tests/test_never_useless.py).
DOUBTFUL, HOPELESS = 0.01, 0.15
COUNT_NOISE = 0.03  # in the share of a class: what a wrong answer costs is about a third of it
USUAL_FOR_COUNTS, MOST_FOR_COUNTS = 0.02, 0.5  # of the squared cost of the fit
PURE = 0.8  # of ε, where nothing but counts is worth asking for
#: Where a learner may be far behind; and elsewhere at most, to tell its gain by a thousandth of the rows.
FOR_GAIN, FOR_CLEAR_GAIN = 0.25, 0.02
ENOUGH = 0.001
#: From this noise on labels follow sums, which get so much of the squared cost, and the look so much; the tables of the
#: columns that they are told of get the rest.
UNCLEAR, FOR_SUMS, BESIDE_SUMS, COUNTS_BESIDE_SUMS = 0.015, 0.6, 0.05, 0.05
MOST_LOOKED_AT = 50_000  # rows: more take long, and tell no more


@dataclass(frozen=True)
class TableForecast(PlainState):
    """What tables of counts are going to tell a learner, by public numbers alone. A replaced row moves the tables of d
    columns by ``√(2d)``, so the share of rows that have a value is off by ``√(2d) / (μ n)``, and a rule that adds up d
    columns by √d of that."""

    n_rows: int
    n_columns: int
    n_groups: int
    n_classes: int
    epsilon: float
    delta: float
    relation: NeighboringRelation = RELATION
    hopeless: float = HOPELESS
    may_sum: bool = False

    @classmethod
    def of(cls, layout: Layout, epsilon: float, delta: float, hopeless: float = HOPELESS) -> "TableForecast":
        """For the public shape of a table."""
        sizes = layout.n_rows, layout.n_columns, layout.n_groups, layout.n_classes
        return cls(*sizes, epsilon, delta, layout.relation, hopeless)

    @property
    def _mu(self) -> float:
        return gdp_mu(self.epsilon, self.delta)

    @property
    def noise(self) -> float:
        """Noise beside what all columns together may tell."""
        return math.sqrt(2.0) * self.n_columns / (self._mu * self.n_rows)

    @property
    def snr_too_low(self) -> bool:
        """Whether no learner is worth a look."""
        return self.n_classes > 1 and self.noise > self.hopeless and self.sums is None

    @property
    def snr_marginal(self) -> bool:
        """Whether a learner has to show that it is ahead of the most frequent class."""
        return self.n_classes > 1 and self.noise > DOUBTFUL and not self.snr_too_low

    @property
    def advice(self) -> str:
        """What may help a learner that is hardly better."""
        return (
            f"With {self.n_columns} columns, {self.n_rows:,} {units_of(self.relation)} and epsilon={self.epsilon:g} "
            f"the relative noise of the tables is {self.noise:.2g}. Try another 'estimator', other features, or raise "
            "'epsilon'."
        )

    @property
    def counts_share(self) -> float:
        """Share of the squared cost for the counts of groups and labels, which have to name the most frequent class.
        The noise in the share of a class adds up over the groups."""
        wanted = 2 * self.n_groups / (self.n_rows * COUNT_NOISE * self._mu) ** 2
        most = MOST_FOR_COUNTS if self.sums is None else COUNTS_BESIDE_SUMS
        return max(USUAL_FOR_COUNTS, min(wanted, most)) if self.n_classes > 1 else USUAL_FOR_COUNTS

    @property
    def pure_counts(self) -> LaplaceCounts | None:
        """For those counts where no learner is worth a look: by a pure ε, by which a single release says most."""
        n_kinds = self.n_groups * self.n_classes
        if not self.snr_too_low:
            return None
        return LaplaceCounts.at(PURE * self.epsilon, n_rows=self.n_rows, n_kinds=n_kinds, relation=self.relation)

    @property
    def gain(self) -> GaussianMechanism | None:
        """For the number of rows by which the learner is ahead: replacing a row moves it by two."""
        if self.snr_too_low or self.n_classes < 2:
            return None
        mu = math.sqrt(FOR_GAIN if self.sums is None else BESIDE_SUMS) * self._mu
        if not self.snr_marginal:
            mu = min(math.sqrt(FOR_CLEAR_GAIN) * self._mu, 2 / (self.n_looked_at * ENOUGH))
        return GaussianMechanism(2 / mu, sensitivity=2.0, relation=self.relation)

    @property
    def sums(self) -> ClassSums | None:
        """Of the features of each class, where tables tell little of them and the counts in the sums name the most
        frequent class."""
        if not (self.may_sum and self.n_classes > 1 and self.noise > UNCLEAR):
            return None
        mu = math.sqrt(FOR_SUMS) * self._mu
        sums = ClassSums(mu, self.n_rows, self.n_classes, self.relation, alone=True, of_squares=True)
        return None if sums.mechanism.sigma > COUNT_NOISE * self.n_rows else sums

    @property
    def n_looked_at(self) -> int:
        """How many of the rows say how far the learner got."""
        return min(self.n_rows, MOST_LOOKED_AT)

    def compared(self, rates: Floats, gain: float) -> Comparison:
        """The learner beside the most frequent class, by released rates of the classes and the released gain."""
        assert self.gain is not None
        usual = int(rates.argmax())
        ahead, error = gain / self.n_looked_at, self.gain.sigma / self.n_looked_at
        where = "of the private rows, by a released count,"
        return Comparison(usual, ahead, float(rates[usual] / rates.sum()), error, where)

    @property
    def enough(self) -> tuple[int | None, float | None]:
        """Rows and the ε from which no look is needed, to two digits; None where they are too many, or it too large."""
        return what_is_enough(self, lambda other: other.noise <= DOUBTFUL)

    def words(self, predicted: Any, owner: str) -> str:
        """Return the warning, for the class that is predicted for every row."""
        opening = f"{owner} predicts the class {predicted} for every row"
        if not (self.snr_marginal or self.snr_too_low):
            return (
                f"{opening}: on the rows that its generator makes the learner found nothing better. Take another "
                f"'estimator', or raise 'epsilon' ({self.epsilon:g})."
            )
        why = (
            "no learner could be clearly better"
            if self.snr_too_low
            else "by a released count its learner is not clearly better than that"
        )
        return (
            f"{opening}: {why}. With {self.n_columns} columns, {self.n_rows:,} {units_of(self.relation)} and "
            f"epsilon={self.epsilon:g} the relative noise of the tables is {self.noise:.2g}, and above {DOUBTFUL:g} "
            f"little can be learned. {ways_of(self.enough, self.relation) or 'A larger delta'} would suffice."
        )
