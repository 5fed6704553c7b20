"""Whether a fit has reached its constraints: what is left of each, by released numbers, and how sure that is."""

import inspect
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from skfairdp.exceptions import FairnessWarning
from skfairdp.fairness._allowed import comparisons_of
from skfairdp.fairness._constraints import ConstraintColumn, FairnessConstraints
from skfairdp.fairness._rates import RateConstraints, RateParity, read_rate_constraints
from skfairdp.utils import warn_caller

__all__ = ["CLEAR_SIZE", "LeftOver", "last_quarter"]

Array = NDArray[np.float64]

#: So much beyond what is allowed goes without a word, and so many standard deviations of noise at least.
WORTH_A_WORD, DEVIATIONS = 0.05, 2.0
#: How often noise alone may cause a warning, whatever the number of inequalities.
FALSE_ALARMS = 0.05
#: Sizes are believed that are so many times their noise; no rate of a smaller group is spoken of.
CLEAR_SIZE = 3.0


def last_quarter(releases: int) -> int:
    """How many of so many releases speak of the model that is kept: those of the last quarter, at least one."""
    return max(1, releases // 4)


@dataclass(frozen=True)
class LeftOver:
    """By how much each inequality is broken, by numbers that are released or public: post-processing.

    The noise of an average of releases is Gaussian with a known standard deviation, also where a release decides what
    is asked next. So no more than one fit in twenty is told of by noise alone: an inequality has to be broken by
    ``WORTH_A_WORD``, and by as many standard deviations more as leave .05 to all inequalities together.

    Parameters
    ----------
    names : sequence of str
        The inequalities, in words.
    broken_by : ndarray of shape (n_inequalities,)
        Left-hand side less right-hand side; noise included.
    noise : ndarray of shape (n_inequalities,)
        Standard deviations; infinite where a group is too small beside the noise to be spoken of.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.fairness import LeftOver
    >>> left = LeftOver(["'f' - 'm' <= 0.02", "'m' - 'f' <= 0.02"], np.array([-0.16, 0.12]), np.array([0.01, 0.01]))
    >>> left.worst, left.violation
    (1, 0.12)
    """

    names: Sequence[str]
    broken_by: Array
    noise: Array

    @classmethod
    def of_rates(
        cls, constraints: RateConstraints, last: Sequence[Any], earlier: Sequence[Any], noise: float
    ) -> "LeftOver":
        """What the mean of the last tables of counts says, with sizes from all tables.

        Parameters
        ----------
        constraints : RateConstraints
        last, earlier : sequence of ndarray of shape (n_groups, n_classes or 1, n_classes)
            Tables of the same rows; at least one of the first kind.
        noise : float
            Standard deviation of the noise on every count of every table.
        """
        counts, n_tables = np.mean(last, axis=0), len(last) + len(earlier)
        sizes = np.mean([*earlier, *last], axis=0).sum(2)
        cells, events = (part[:, : sizes.shape[1]] for part in (constraints.cells, constraints.events))
        rows, n_groups, n_classes = sizes @ cells.T, len(sizes), counts.shape[2]
        rows = np.vstack([rows, rows.sum(0)])
        of_size = (
            noise * np.sqrt(cells.sum(1) * n_classes / n_tables) * np.array([1.0] * n_groups + [n_groups**0.5])[:, None]
        )
        clear = rows > CLEAR_SIZE * of_size
        rates = np.nan_to_num(constraints.rates(counts, np.maximum(sizes, 1e-9)))
        # derivatives of each left-hand side by the counts and by the sizes of each group; a rate overall has all groups
        slopes = constraints.coefficients / np.where(clear, rows, 1.0)
        by_count = np.einsum("jar,ryk->jayk", slopes[:, :-1] + slopes[:, -1:], events)
        by_size = -np.einsum("jar,ry->jay", slopes[:, :-1] * rates[:-1] + slopes[:, -1:] * rates[-1], cells)[..., None]
        by_last, by_earlier = by_count / len(last) + by_size / n_tables, by_size / n_tables
        variance = len(last) * (by_last**2).sum((1, 2, 3)) + len(earlier) * n_classes * (by_earlier**2).sum((1, 2, 3))
        known = (clear | (constraints.coefficients == 0)).all((1, 2))
        broken_by = constraints.violations(counts, np.maximum(sizes, 1e-9))
        return cls(constraints.inequalities, broken_by, np.where(known, noise * np.sqrt(variance), math.inf))

    @classmethod
    def of_sums(
        cls,
        constraints: FairnessConstraints,
        sums: Array,
        sizes: Array,
        noise: Any,
        size_noise: Any,
        groups: Any,
        classes: Any,
        means: Array | None = None,
    ) -> "LeftOver":
        """What sums over groups say, of each score h less its mean in the cell.

        Parameters
        ----------
        constraints : FairnessConstraints
        sums, sizes : ndarray of shape (n_groups, n_cells, n_constraints)
        noise, size_noise : float or ndarray of that shape
            Standard deviations.
        groups, classes : sequence
            The names they go by.
        means : ndarray of shape (n_cells, n_constraints) or None, default=None
            Of each score h over all rows of the cell, for constraints with a bound.
        """
        beyond = sums / sizes
        # as if noise in two groups always added up: with two groups it does
        spread = np.sqrt(np.square(noise) + np.square(beyond * size_noise)) / sizes
        spread = np.where(sizes > CLEAR_SIZE * np.asarray(size_noise), spread, math.inf)
        names, broken_by, noises = [], [], []
        for c, column in enumerate(constraints.columns):
            sign = -1.0 if column.is_complement else 1.0
            for cell in column.cells(constraints.n_cells):
                mean = 0.0 if column.allowed is None or means is None else float(means[cell, c])
                overall = (1.0 - mean) if column.is_complement else mean
                # of every group, of all rows, and of nobody
                rates = np.append(overall + sign * np.append(beyond[:, cell, c], 0.0), 0.0)
                sure = np.append(spread[:, cell, c], [0.0, 0.0])
                for one, other, factor, slack in comparisons_of(column.allowed, len(groups)):
                    names.append(f"{_words(column, cell, classes)}, {_inequality(groups, one, other, factor, slack)}")
                    broken_by.append(factor * rates[one] - rates[other] - slack)
                    noises.append(factor * sure[one] + sure[other])
        return cls(names, np.array(broken_by), np.array(noises))

    @classmethod
    def of_weights(
        cls,
        constraints: FairnessConstraints,
        scores: Array,
        membership: Array,
        groups: Any,
        classes: Any,
        noise: float = 0.0,
    ) -> "LeftOver":
        """What the scores h of rows say whose groups are known, or estimated by weights.

        Weights outside of [0, 1] are unbiased answers with noise of their own: of a weight w that is 0 or 1 on average,
        ``w² - w`` is on average its variance.

        Parameters
        ----------
        constraints : FairnessConstraints
            Of these rows.
        scores : ndarray of shape (n_rows, n_constraints)
        membership : ndarray of shape (n_rows, n_groups)
        groups, classes : sequence
            The names they go by.
        noise : float, default=0.0
            Standard deviation of the noise in a sum of weights that all rows share.
        """
        shape = membership.shape[1], constraints.n_cells, constraints.n_constraints
        sums, sizes, variance, of_sizes = (np.zeros(shape) for _ in range(4))
        unsure = np.maximum(membership**2 - membership, 0.0)
        for c in range(constraints.n_constraints):
            for cell in np.unique(constraints.cells[:, c]):
                here = constraints.cells[:, c] == cell
                centred = scores[here, c] - scores[here, c].mean()
                sums[:, cell, c], sizes[:, cell, c] = centred @ membership[here], membership[here].sum(0)
                variance[:, cell, c], of_sizes[:, cell, c] = centred**2 @ unsure[here], unsure[here].sum(0)
        of_sums, of_sizes = np.sqrt(variance + noise**2), np.sqrt(of_sizes + noise**2)
        sizes, means = np.maximum(sizes, 1e-9), constraints.means(scores)
        return cls.of_sums(constraints, sums, sizes, of_sums, of_sizes, groups, classes, means)

    @classmethod
    def of_reduction(
        cls, learner: Any, X: Any, y: NDArray[np.int64], groups: NDArray[np.int64], names: Any, classes: Any
    ) -> "LeftOver | None":
        """What a fitted reduction of fairlearn leaves of its own constraint, on rows that nobody has to protect.

        Parameters
        ----------
        learner : object
            None is returned for whatever is no reduction, or has a constraint that is none on rates.
        X : array-like of shape (n_rows, n_features)
        y, groups : ndarray of int of shape (n_rows,)
            Codes.
        names, classes : sequence
            What groups and classes are called.
        """
        if type(learner).__module__.partition(".")[0] != "fairlearn" or not hasattr(learner, "constraints"):
            return None
        try:
            asked = read_rate_constraints(learner.constraints, type(learner).__name__)
            parities = (one for one in asked if isinstance(one, RateParity))
            asked = tuple(replace(one, method="to_overall") for one in parities)  # what fairlearn itself holds
        except ValueError:
            return None
        drawn = {"random_state": 0} if "random_state" in inspect.signature(learner.predict).parameters else {}
        predicted = np.asarray(learner.predict(X, **drawn)).astype(np.int64)
        constraints = RateConstraints(asked, list(names), list(classes))
        broken_by = constraints.violations(constraints.tally(groups, y, predicted))
        return cls(constraints.inequalities, broken_by, np.zeros(len(broken_by)))

    @property
    def worst(self) -> int | None:
        """The position of what is broken most surely, where that is worth a word."""
        told = np.isfinite(self.noise)
        if not told.any():
            return None
        deviations = max(DEVIATIONS, -float(ndtri(FALSE_ALARMS / told.sum())))
        surely = np.where(told, self.broken_by - deviations * np.where(told, self.noise, 0.0), -math.inf)
        worst = int(surely.argmax())
        return worst if surely[worst] > WORTH_A_WORD else None

    @property
    def violation(self) -> float:
        """By how much the worst inequality is broken, of those that can be spoken of; 0 where none is."""
        told = np.isfinite(self.noise)
        return float(np.max(self.broken_by, where=told, initial=0.0))

    @property
    def violation_noise(self) -> float:
        """Standard deviation of the noise in :attr:`violation`; infinite where no inequality can be spoken of."""
        told = np.isfinite(self.noise)
        return float(self.noise[np.where(told, self.broken_by, -math.inf).argmax()]) if told.any() else math.inf

    def warn(self, owner: str, by: str, instead: str) -> None:
        """Warn where a constraint was clearly not reached.

        Parameters
        ----------
        owner : str
            Class name for the warning.
        by : str
            By which numbers that is known.
        instead : str
            What to do.
        """
        worst = self.worst
        if worst is not None:
            sure = f" ± {DEVIATIONS * self.noise[worst]:.2f}" if self.noise[worst] > 0 else ""
            warn_caller(
                f"{owner} did not reach its constraint '{self.names[worst]}': {by} it is still broken by about "
                f"{self.broken_by[worst]:.2f}{sure}. {instead}",
                FairnessWarning,
            )


def _words(column: ConstraintColumn, cell: int, classes: Any) -> str:
    """A score of a notion, within a true class where it compares within classes."""
    if column.of_class is None:
        return column.notion
    power = "" if column.power == 1 else f", power {column.power}"
    within = f" among {classes[cell]}" if column.by_class else ""
    if column.notion == "false_positive_rate_parity":
        within = f" among {classes[1 - column.of_class]}" if len(classes) == 2 else " among all others"
    return f"{column.notion} of {classes[column.of_class]}{power}{within}"


def _inequality(groups: Any, one: int, other: int, factor: float, slack: float) -> str:
    """In words; equality is two of them."""
    names = [*(repr(group) for group in groups), "overall"]
    if other == len(names):
        return f"{names[one]} <= {slack:g}"
    if one == len(names):
        return f"{names[other]} >= {-slack:g}"
    times = "" if factor == 1 else f"{factor:g} * "
    return f"{times}{names[one]} - {names[other]} {'=' if slack == 0 and factor == 1 else '<='} {slack:g}"
