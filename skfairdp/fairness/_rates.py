"""Rates of a classifier by group, and constraints on them: parity of any rate, a bound on any rate, several at once.

Everything here is a function of one table of counts (group, true class, predicted class). Every constraint is a set of
inequalities that are linear in the rates, so that one definition serves training, thresholds and measuring.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import chain
from numbers import Real
from typing import Any

import numpy as np

from skfairdp._typing import Bools, Floats, Ints, Values


@dataclass(frozen=True, eq=False)
class Comparisons:
    """What constraints on rates ask, in as many numbers as there are groups, not pairs of groups. Comparison f asks
    ``factor · rate of a - rate of b <= slack`` for every a of its ``ones`` and every other b of its ``others``.
    Positions are those of the groups, then all rows, then nobody, whose rate is 0: a bound compares with nobody."""

    rate: Ints
    factor: Floats
    slack: Floats
    ones: Bools
    others: Bools

    @cached_property
    def compared(self) -> Bools:
        """Whether a line takes part in a comparison, (n_groups + 2, n_comparisons)."""
        sides = (side.astype(np.float64) for side in (self.ones, self.others))
        beside_ones, beside_others = (highest_of_others(side) > 0 for side in sides)
        return (self.ones & beside_others) | (self.others & beside_ones)

    def left(self, rates: Floats) -> Floats:
        """``factor · rate`` of the ones, (n_groups + 2, n_comparisons); -inf for the rest and where a rate is NaN."""
        found = self.factor * self.of_comparisons(rates)
        return np.where(self.ones & np.isfinite(found), found, -np.inf)

    def right(self, rates: Floats) -> Floats:
        """Rates of the others, (n_groups + 2, n_comparisons); inf for the rest and where a rate is NaN."""
        found = self.of_comparisons(rates)
        return np.where(self.others & np.isfinite(found), found, np.inf)

    def of_comparisons(self, by_rate: Floats, nobody: float = 0.0) -> Floats:
        """A table (n_groups + 1, n_rates) by comparison, with a line for nobody."""
        columns = by_rate[:, self.rate]
        return np.vstack([columns, np.full(len(self.rate), nobody, dtype=columns.dtype)])

    def largest_violation(self, rates: Floats) -> float:
        """By how much the worst of all pairs breaks its bound; -inf where no two rates can be compared."""
        return float((self.left(rates) + highest_of_others(-self.right(rates)) - self.slack).max(initial=-np.inf))


def highest_of_others(values: Floats) -> Floats:
    """For every row of a table the highest entry of each column in another row: of -inf where there is none."""
    at = values.argmax(axis=0)
    columns = np.arange(values.shape[1])
    rest = values.copy()
    rest[at, columns] = -np.inf
    found = np.broadcast_to(values[at, columns], values.shape).copy()
    found[at, columns] = rest.max(axis=0)
    return found


#: A rate by its name, positive class, and true class where it matters.
Rate = tuple[str, int, int]

#: The notion of each rate.
_RATES = {
    "accuracy": "accuracy_parity",
    "error_rate": "accuracy_parity",
    "false_negative_rate": "true_positive_rate_parity",
    "false_positive_rate": "false_positive_rate_parity",
    "selection_rate": "demographic_parity",
    "selection_rate_by_label": "equalized_odds",
    "true_negative_rate": "false_positive_rate_parity",
    "true_positive_rate": "true_positive_rate_parity",
}

#: The rate that a notion compares between groups.
_RATE_OF = {
    "accuracy_parity": "error_rate",
    "demographic_parity": "selection_rate",
    "equal_opportunity": "true_positive_rate",
    "equalized_odds": "selection_rate_by_label",
    "false_negative_rate_parity": "false_negative_rate",
    "false_positive_rate_parity": "false_positive_rate",
    "true_positive_rate_parity": "true_positive_rate",
}

#: The rates that a constraint can speak of, see :class:`RateParity`.
RATES = tuple(_RATES)
_METHODS = ("between_groups", "to_overall")
#: So many standard errors of the rows of its groups may break an inequality that holds in the population.
BY_CHANCE = 2.0
_USUAL_DIFFERENCE = 0.01  # as fairlearn's moments have it


def _check_rate(rate: Any, owner: str) -> None:
    if rate not in RATES:
        raise ValueError(f"The 'rate' of {owner} must be one of {list(RATES)}. Got {rate!r} instead.")


def _check_shares(owner: str, **given: Any) -> None:
    for name, value in given.items():
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        if value is not None and not (is_number and 0 <= float(value) <= 1):
            raise ValueError(f"The '{name}' of {owner} must be a number in [0, 1]. Got {value!r} instead.")


@dataclass(frozen=True)
class RateParity:
    """A bound on the difference or the ratio of a rate between groups.

    Parameters
    ----------
    rate : str
        "selection_rate" (how often a class is predicted), "true_positive_rate", "false_positive_rate",
        "true_negative_rate", "false_negative_rate", "accuracy", "error_rate", or "selection_rate_by_label" (how often
        each class is predicted among the rows of each true class: equalized odds). The name of a notion, such as
        "demographic_parity", is read as the rate that it compares.
    difference_bound : float, default=None
        Largest difference of the rates of two groups. None is 0.01, as in fairlearn, and 0 beside a ``ratio_bound``.
    ratio_bound : float, default=None
        Smallest ratio of the rates of two groups, in (0, 1]: 0.8 is the four-fifths rule. With a ``difference_bound``
        b, too, ``ratio_bound · rate - rate' ≤ b``.
    of_class : label, default=None
        The class that counts as positive. None is the second of two classes, and every class in turn of more.
    method : {"between_groups", "to_overall"}, default="between_groups"
        Compare groups with each other, or each with all rows, as fairlearn itself does.

    See Also
    --------
    RateBound : A bound on a rate instead of a comparison.

    Examples
    --------
    >>> from skfairdp.fairness import RateParity
    >>> RateParity("selection_rate", ratio_bound=0.8)  # the four-fifths rule
    RateParity(rate='selection_rate', difference_bound=None, ratio_bound=0.8, of_class=None, method='between_groups')
    """

    rate: str
    difference_bound: float | None = None
    ratio_bound: float | None = None
    of_class: Hashable | None = None
    method: str = "between_groups"

    def __post_init__(self) -> None:
        if isinstance(self.rate, str):
            object.__setattr__(self, "rate", _RATE_OF.get(self.rate, self.rate))
        _check_rate(self.rate, "RateParity")
        if self.method not in _METHODS:
            raise ValueError(
                f"The 'method' of RateParity must be one of {list(_METHODS)}. Got {self.method!r} instead."
            )
        _check_shares("RateParity", difference_bound=self.difference_bound, ratio_bound=self.ratio_bound)
        if self.ratio_bound == 0:
            raise ValueError("The 'ratio_bound' of RateParity must be above 0. Got 0 instead, which bounds nothing.")

    @property
    def factor_and_slack(self) -> tuple[float, float]:
        """``factor · rate of one - rate of the other ≤ slack``."""
        if self.ratio_bound is None:
            return 1.0, _USUAL_DIFFERENCE if self.difference_bound is None else self.difference_bound
        return self.ratio_bound, self.difference_bound or 0.0


@dataclass(frozen=True)
class RateBound:
    """A bound on a rate in every group, such as "the false negative rate of each group is at most 0.1".

    Parameters
    ----------
    rate : str
        As for :class:`RateParity`.
    upper, lower : float, default=None
        At least one of them, in [0, 1].
    of_class : label, default=None
        As for :class:`RateParity`.
    groups : list of groups, "overall" or None, default=None
        Whose rate is bounded: that of these groups, of all rows together, or of each group.

    See Also
    --------
    RateParity : A comparison of groups instead of a bound.

    Examples
    --------
    >>> from skfairdp.fairness import RateBound
    >>> few_missed = RateBound("false_negative_rate", upper=0.1)
    >>> few_errors = RateBound("error_rate", upper=0.2, groups="overall")
    """

    rate: str
    upper: float | None = None
    lower: float | None = None
    of_class: Hashable | None = None
    groups: Any = None

    def __post_init__(self) -> None:
        _check_rate(self.rate, "RateBound")
        if self.upper is None and self.lower is None:
            raise ValueError("RateBound needs 'upper' or 'lower', a number in [0, 1]. Got neither.")
        _check_shares("RateBound", upper=self.upper, lower=self.lower)
        if self.upper is not None and self.lower is not None and self.lower > self.upper:
            raise ValueError("The 'lower' of RateBound must not lie above its 'upper'.")
        if isinstance(self.groups, str) and self.groups != "overall":
            raise ValueError(
                f"The 'groups' of RateBound must be a list of groups, 'overall' or None. Got {self.groups!r} instead; "
                "for one group give a list of one."
            )


#: What the name of a notion stands for.
RATE_NOTIONS = {notion: RateParity(rate) for notion, rate in _RATE_OF.items()}
# Classes of fairlearn.reductions, told by name, so that nobody has to import fairlearn.
_FAIRLEARN = {
    "DemographicParity": "selection_rate",
    "EqualizedOdds": "selection_rate_by_label",
    "TruePositiveRateParity": "true_positive_rate",
    "FalsePositiveRateParity": "false_positive_rate",
    "ErrorRateParity": "error_rate",
}


def read_rate_constraints(
    given: Any, owner: str, *, parameter: str = "constraints"
) -> tuple[RateParity | RateBound, ...]:
    """Return the constraints that a parameter asks for."""
    asked, found = _listed(given), []
    if not asked:
        raise ValueError(f"The '{parameter}' parameter of {owner} is empty. Name at least one constraint.")
    for one in asked:
        name = type(one).__name__
        if isinstance(one, RateParity | RateBound):
            found.append(one)
        elif isinstance(one, str) and one in RATE_NOTIONS:
            found.append(RATE_NOTIONS[one])
        elif _is_moment(one) and name in _FAIRLEARN:
            found.append(RateParity(_FAIRLEARN[name], float(one.eps), None if one.ratio == 1.0 else float(one.ratio)))
        else:
            raise ValueError(
                f"The '{parameter}' parameter of {owner} must be one or several of {sorted(RATE_NOTIONS)}, "
                f"RateParity(...), RateBound(...), or fairlearn's {sorted(_FAIRLEARN)}. Got {one!r} instead."
            )
    return tuple(found)


def _listed(given: Any) -> list[Any]:
    """What is given, alone or with others."""
    alone = isinstance(given, str | RateParity | RateBound) or _is_moment(given) or not isinstance(given, Iterable)
    return [given] if alone else list(given)


def _is_moment(one: Any) -> bool:
    """Whether this is an object of fairlearn itself; a subclass may mean something else."""
    return type(one).__module__.partition(".")[0] == "fairlearn"


def refuse_beside_constraints(owner: str, given: Mapping[str, bool], also: str = "") -> None:
    """Raise a ValueError for a parameter that is given beside 'constraints', and says the same or contradicts it."""
    for name in (name for name, is_given in given.items() if is_given):
        raise ValueError(
            f"{owner} got both 'constraints' and '{name}'. A constraint has a bound already, as in "
            f"RateParity('selection_rate', difference_bound=0.1){also}: leave one of the two out."
        )


def rule_of_gate(given: Any, n_classes: int, owner: str) -> tuple[float, str] | None:
    """Return γ and what a group is compared with, where one difference of selection rates is asked for; else None. A
    group that is nowhere above all rows by more than γ may be below by more, where there are three classes; one that
    differs from no other group by more is not."""
    one, *others = read_rate_constraints(given, owner)
    if others or not isinstance(one, RateParity) or one.rate != "selection_rate":
        return None
    if one.ratio_bound is not None or one.of_class is not None:
        return None
    return one.factor_and_slack[1], "overall" if one.method == "to_overall" and n_classes == 2 else "between"


@dataclass(frozen=True, eq=False)
class RateConstraints:
    """Constraints on rates, for groups and classes that are known: inequalities on a table of counts. Counts have the
    shape (groups, true classes, predicted classes); where ``needs_labels`` is False, true classes may be merged into
    one. Rates have the shape (groups + 1, rates): the last line is that of all rows."""

    constraints: Sequence[RateParity | RateBound]
    groups: Values
    classes: Values
    owner: str = "RateConstraints"

    def __post_init__(self) -> None:
        _ = self.comparisons  # whatever is wrong is said now

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # all else is worked out again

    # ------------------------------------------------------------------ what is asked

    @property
    def needs_labels(self) -> bool:
        """Whether any rate looks at the true class."""
        return any(name != "selection_rate" for name, _, _ in self._rates)

    @property
    def inequalities(self) -> tuple[str, ...]:
        """Every inequality in words."""
        names, everybody, found = self.rate_names, len(self.groups), []
        who = [*map(repr, self.groups), "overall"]
        of_whom = [*(f"of {group!r}" for group in self.groups), "overall"]
        for rate, one, other, factor, slack in self._pairs:
            if other > everybody:
                found.append(f"{names[rate]} {of_whom[one]} <= {slack:g}")
            elif one > everybody:
                found.append(f"{names[rate]} {of_whom[other]} >= {-slack:g}")
            else:
                times = "" if factor == 1 else f"{factor:g} * "
                found.append(f"{names[rate]}, {times}{who[one]} - {who[other]} <= {slack:g}")
        return tuple(found)

    @property
    def rate_names(self) -> tuple[str, ...]:
        """Every rate in words."""
        found = []
        for name, positive, label in self._rates:
            of_class = "" if positive < 0 else f" of {self.classes[positive]}"
            found.append(name + of_class + ("" if label < 0 else f" among {self.classes[label]}"))
        return tuple(found)

    @cached_property
    def comparisons(self) -> Comparisons:
        """All inequalities in as many numbers as there are groups: two extremes stand for all pairs of groups."""
        found = list(chain.from_iterable(self._compared))
        ones, others = np.zeros((2, len(self.groups) + 2, len(found)), dtype=bool)
        for j, (_, _, _, some, rest) in enumerate(found):
            ones[some, j], others[rest, j] = True, True
        rate, factor, slack = np.array([part[:3] for part in found], dtype=np.float64).reshape(-1, 3).T
        return Comparisons(rate.astype(np.int64), factor, slack, ones, others)

    @property
    def n_inequalities(self) -> int:
        """How many there are, and so how many multipliers."""
        return len(self._pairs)

    def with_groups_to_compare(self) -> "RateConstraints":
        """Return itself, or raise a ValueError where there is one group, and nothing to compare it with."""
        if not self.n_inequalities:
            raise ValueError(
                f"The constraints of {self.owner} compare groups, and got one group only: {self.groups[0]!r}. List two "
                "or more in 'groups', or in the column of the schema that holds them; or leave the constraints out."
            )
        return self

    @cached_property
    def bounds(self) -> Floats:
        """Right-hand sides, shape (n_inequalities,)."""
        return np.array(self._pairs, dtype=np.float64).reshape(-1, 5)[:, 4].copy()

    @cached_property
    def coefficients(self) -> Floats:
        """Left-hand sides, shape (n_inequalities, n_groups + 1, n_rates)."""
        found = np.zeros((self.n_inequalities, len(self.groups) + 1, len(self._rates)))
        line, group, rate, value = self.terms
        found[line, group, rate] = value
        return found

    @cached_property
    def terms(self) -> tuple[Ints, Ints, Ints, Floats]:
        """What is not 0 of the coefficients: positions of the inequality, the group and the rate, and the value.
        An inequality has two terms at most, while ``coefficients`` grow with the third power of the groups."""
        rates, ones, others, factors, _ = np.array(self._pairs, dtype=np.float64).reshape(-1, 5).T
        line, rate = np.repeat([np.arange(len(rates)), rates.astype(np.int64)], 2, axis=1)
        group = np.stack([ones, others], axis=1).astype(np.int64).ravel()
        value = np.stack([factors, np.full(len(rates), -1.0)], axis=1).ravel()
        order = np.lexsort([group, line])
        order = order[group[order] <= len(self.groups)]  # but nobody, whose rate is 0
        return line[order], group[order], rate[order], value[order]

    @cached_property
    def events(self) -> Floats:
        """Which (true, predicted) a rate counts, 0 or 1, shape (n_rates, n_classes, n_classes)."""
        found, codes = [], np.arange(len(self.classes))
        for (name, positive, _), cell in zip(self._rates, self.cells, strict=True):
            right = codes[:, None] == codes if name in ("accuracy", "error_rate") else codes == positive
            turned = name in ("error_rate", "true_negative_rate", "false_negative_rate")
            found.append(cell[:, None] * (~right if turned else right))
        return np.array(found).reshape(-1, len(codes), len(codes))

    @cached_property
    def cells(self) -> Floats:
        """Among which true classes a rate counts, 0 or 1, shape (n_rates, n_classes)."""
        found = np.ones((len(self._rates), len(self.classes)))
        for cell, (name, positive, label) in zip(found, self._rates, strict=True):
            if name not in ("accuracy", "error_rate", "selection_rate"):
                mine = np.arange(len(cell)) == (label if name == "selection_rate_by_label" else positive)
                cell[:] = ~mine if name in ("true_negative_rate", "false_positive_rate") else mine
        return found

    # ------------------------------------------------------------------ what is found

    def rates(self, counts: Any, sizes: Any = None) -> Floats:
        """Every rate of every group, and of all rows in the last line; NaN where there is no row to count."""
        counts = np.asarray(counts, dtype=np.float64)
        sizes = counts.sum(2) if sizes is None else np.asarray(sizes, dtype=np.float64)
        hits = np.einsum("ayk,ryk->ar", counts, self.events[:, : counts.shape[1]])
        rows = self.sizes_of_rates(sizes)
        hits = np.vstack([hits, hits.sum(0)])
        return np.asarray(np.divide(hits, rows, out=np.full(rows.shape, np.nan), where=rows > 0))

    def violations(self, counts: Any, sizes: Any = None) -> Floats:
        """Left-hand side less right-hand side of every inequality: above 0 where it is broken.
        0 where a rate is not defined. See :meth:`rates` for the arguments."""
        line, group, rate, value = self.terms
        rates = self.rates(counts, sizes)[group, rate]
        unknown = np.bincount(line, ~np.isfinite(rates), minlength=self.n_inequalities)
        found = np.bincount(line, value * np.nan_to_num(rates), minlength=self.n_inequalities) - self.bounds
        return np.where(unknown, 0.0, found)

    def largest_violation(self, counts: Any) -> float:
        """By how much the worst inequality is broken; 0 where all hold."""
        return max(self.comparisons.largest_violation(self.rates(counts)), 0.0)

    def variances(self, counts: Any) -> Floats:
        """Of the left-hand side of every inequality, if rows were drawn anew. A rate of few rows that is 0 or 1 is
        taken for one of two rows more, one of which counts (Agresti, Coull 1998)."""
        line, group, rate, value = self.terms
        sizes = self.sizes_of_rates(np.asarray(counts, dtype=np.float64).sum(2))
        rates = (np.nan_to_num(self.rates(counts)) * sizes + 1) / (sizes + 2)
        each = rates * (1 - rates) / np.maximum(sizes, 1)
        return np.bincount(line, np.square(value) * each[group, rate], minlength=self.n_inequalities).astype(np.float64)

    def beyond_chance(self, counts: Any, sizes_off: Any = 0.0) -> Bools:
        """Which groups are in an inequality that chance cannot break: for it is known well enough, or for what sets two
        groups apart is beyond two standard errors of their rows, and of noise in how many there are of each true class.
        """
        line, group, rate, value = self.terms
        more, rates = sizes_off * counts / np.maximum(counts.sum(2, keepdims=True), 1e-9), self.rates(counts)
        moved = [self.rates(counts + more * of_label[:, None]) - rates for of_label in np.eye(counts.shape[1])]
        of_rates = np.square(np.nan_to_num(moved)).sum(axis=0)[group, rate]
        chance = np.sqrt(self.variances(counts) + np.bincount(line, np.square(value) * of_rates))
        # or it compares nobody
        known = (np.maximum(self.violations(counts), 0.0) + self.bounds > BY_CHANCE * chance) | (np.bincount(line) < 2)
        return np.bincount(group, known[line], minlength=len(counts) + 1)[: len(counts)] > 0

    def bounds_on_few(self, counts: Any) -> Floats:
        """Right-hand sides for these rows, by which those to come keep to the bounds in root mean square. What sampling
        leaves open of a difference comes on top of what is allowed on the rows that are known. Of nobody all is."""
        line, group, rate, _ = self.terms
        is_difference = np.bincount(line, minlength=self.n_inequalities) > 1
        of_nobody = np.bincount(line, np.isnan(self.rates(counts))[group, rate], minlength=self.n_inequalities) > 0
        tighter = np.sqrt(np.maximum(np.square(self.bounds) - self.variances(counts), 0.0))
        return np.where(of_nobody, 1.0, np.where(is_difference & (self.bounds > 0), tighter, self.bounds))

    def heaviest(self, sizes: Floats) -> Floats:
        """What a row weighs in the Lagrangian for multipliers of 1, by inequality: in small groups more, and where one
        is compared with many others. What pushes its rate the same way adds up like chance: much of it is noise."""
        line, group, rate, value = self.terms
        weights = np.abs(value) * sizes.sum() / np.maximum(self.sizes_of_rates(sizes)[group, rate], 1e-9)
        pushes = np.ravel_multi_index((group, rate, value > 0), (len(self.groups) + 1, len(self._rates), 2))
        weights *= np.where(group < len(self.groups), np.sqrt(np.bincount(pushes)[pushes]), 1)
        found = np.zeros(self.n_inequalities)
        np.maximum.at(found, line, weights)
        return found

    def row_weights(self, multipliers: Any, sizes: Any, *, forgive: float | None = None) -> Floats:
        """What a probability of a class weighs in the Lagrangian, by the group and true class of its row. The mean over
        rows of ``Σ_k weight[group, true, k] p_k`` is ``Σ_j multiplier_j · (left-hand side)_j`` for the rates of
        predictions drawn from p."""
        sizes = np.asarray(sizes, dtype=np.float64)
        line, group, rate, value = self.terms
        weighed = value * np.asarray(multipliers, dtype=np.float64)[line]
        n_rows, n_rates = len(self.groups) + 1, len(self._rates)
        slopes = np.bincount(group * n_rates + rate, weighed, minlength=n_rows * n_rates).reshape(n_rows, n_rates)
        per_row = slopes * (sizes.sum() / np.maximum(self.sizes_of_rates(sizes), np.finfo(float).tiny))
        of_group = per_row[:-1] + per_row[-1]
        if forgive is not None:
            # rates of errors weigh at least ``-most`` in total, rates of right answers at most ``most``
            names = [name for name, _, _ in self._rates]
            errors, hits = np.array([n == "error_rate" for n in names]), np.array([n == "accuracy" for n in names])
            paid = of_group[:, hits].sum(1) - of_group[:, errors].sum(1)
            scale = np.where(paid > forgive, forgive / np.maximum(paid, forgive), 1.0)[:, None]
            of_group = np.where(errors | hits, of_group * scale, of_group)
        return np.asarray(np.einsum("ar,ryk->ayk", of_group, self.events[:, : sizes.shape[1]]))

    def tally(self, groups: Any, truth: Any, predicted: Any) -> Ints:
        """Counts of rows by the codes of group, true and predicted class."""
        n, k = len(self.groups), len(self.classes)
        cells = (np.asarray(groups) * k + np.asarray(truth)) * k + np.asarray(predicted)
        return np.bincount(cells, minlength=n * k * k).reshape(n, k, k)

    def sizes_of_rates(self, sizes: Floats) -> Floats:
        """Rows that each rate of each group is a share of, and of all groups, (n_groups + 1, n_rates)."""
        rows: Floats = sizes @ self.cells[:, : sizes.shape[1]].T
        return np.vstack([rows, rows.sum(0)])

    # ------------------------------------------------------------------ reading

    @cached_property
    def _rates(self) -> dict[Rate, int]:
        """The position of every rate."""
        every = dict.fromkeys(chain.from_iterable(map(self._rates_of, self.constraints)))
        return dict(zip(every, range(len(every)), strict=True))

    @cached_property
    def _pairs(self) -> list[tuple[int, int, int, float, float]]:
        """Every inequality: rate, one, other, factor and slack of ``factor · rate of one - rate of other <= slack``."""
        found: list[tuple[int, int, int, float, float]] = []
        for asked in self._compared:
            sides = [
                [(rate, one, other, factor, slack) for one in ones for other in others if one != other]
                for rate, factor, slack, ones, others in asked
            ]
            found += chain.from_iterable(zip(*sides, strict=True))  # of a group both sides, one after the other
        return found

    @cached_property
    def _compared(self) -> list[list[tuple[int, float, float, list[int], list[int]]]]:
        """Rate, factor, slack, ones and others: for each constraint and rate of it one comparison, or both sides."""
        groups, everybody, nobody = list(range(len(self.groups))), [len(self.groups)], [len(self.groups) + 1]
        found = []
        for constraint in self.constraints:
            if isinstance(constraint, RateBound):
                bounded = self._bounded(constraint)
                asked = [] if constraint.upper is None else [(1.0, constraint.upper, bounded, nobody)]
                asked += [] if constraint.lower is None else [(1.0, -constraint.lower, nobody, bounded)]
            elif constraint.method == "to_overall":
                how = constraint.factor_and_slack
                asked = [(*how, groups, everybody), (*how, everybody, groups)]
            else:
                asked = [(*constraint.factor_and_slack, groups, groups)]
            found += [[(self._rates[rate], *one) for one in asked] for rate in self._rates_of(constraint)]
        return found

    def _rates_of(self, constraint: RateParity | RateBound) -> list[Rate]:
        """The rates that a constraint speaks of."""
        k, name = len(self.classes), constraint.rate
        if name in ("accuracy", "error_rate"):
            return [(name, -1, -1)]
        if constraint.of_class is not None:
            positive = [_position(constraint.of_class, self.classes, "of_class", list(self.classes), self.owner)]
        else:
            positive = [1] if k == 2 else list(range(k))
        if name == "selection_rate_by_label":
            return [(name, p, y) for y in range(k) for p in positive]
        return [(name, p, -1) for p in positive]

    def _bounded(self, constraint: RateBound) -> list[int]:
        if constraint.groups is None:
            return list(range(len(self.groups)))
        if isinstance(constraint.groups, str):
            return [len(self.groups)]
        return [_position(group, self.groups, "groups", list(self.groups), self.owner) for group in constraint.groups]


#: By name, or with a bound of its own.
Notion = str | RateParity | RateBound

#: All notions, see :class:`FairnessConstraints`.
NOTIONS = tuple(sorted({*_RATES.values(), "generalized_demographic_parity"}))
# What people call a notion besides: who is missed equally often is found equally often.
_ALSO = {
    "equal_opportunity": "true_positive_rate_parity",
    "false_negative_rate_parity": "true_positive_rate_parity",
    "true_negative_rate_parity": "false_positive_rate_parity",
}
_UNBOUNDED = (0.01, 1.0)  # difference and ratio of a parity that was given no bound


def read_constraints(
    given: Any,
    owner: str,
    *,
    supported: Sequence[str] = NOTIONS,
    parameter: str = "constraints",
    several: bool = True,
    optional: bool = False,
    bounds: bool = True,
) -> tuple[Notion, ...]:
    """The notions that a parameter asks for: names, or constraints with a bound of their own."""
    if given is None and optional:
        return ()
    found = tuple(_read(one, owner, parameter, None if bounds else supported) for one in _listed(given))
    names = [name_of(one) for one in found]
    parities = [(name_of(one), getattr(one, "of_class", None)) for one in found if not isinstance(one, RateBound)]
    asks_twice = len(set(parities)) < len(parities)
    if not names or asks_twice or not set(names) <= set(supported) or (len(names) > 1 and not several):
        number = "one or several different ones" if several else "one"
        raise ValueError(
            f"The '{parameter}' parameter of {owner} must be {number} of {_names(supported)}"
            f"{', or None' if optional else ''}, or fairlearn's moments or RateParity of the same meaning. "
            f"Got {given!r} instead."
        )
    return found


def _names(supported: Sequence[str]) -> list[str]:
    """All that may be written for these notions."""
    return sorted({*supported, *(name for name, meaning in _ALSO.items() if meaning in supported)})


def name_of(notion: Notion) -> str:
    """The name of a notion, of ``NOTIONS``, that has a bound of its own or none."""
    return notion if isinstance(notion, str) else _RATES[notion.rate]


def constant_meets(notions: Iterable[Notion]) -> bool:
    """Whether one class for every row is sure to meet constraints; equal errors and bounds it may break."""
    return not any(isinstance(one, RateBound) or name_of(one) == "accuracy_parity" for one in notions)


def by_position(notions: Sequence[Notion], groups: Values, classes: Values, owner: str) -> tuple[Notion, ...]:
    """The same notions with positions in place of the names of groups and classes."""
    found = []
    for notion in notions:
        if not isinstance(notion, str) and notion.of_class is not None:
            notion = replace(notion, of_class=_position(notion.of_class, classes, "of_class", "its classes", owner))
        if isinstance(notion, RateBound) and isinstance(notion.groups, Iterable) and notion.groups != "overall":
            named = tuple(_position(group, groups, "groups", "its groups", owner) for group in notion.groups)
            notion = replace(notion, groups=named)
        found.append(notion)
    return tuple(found)


def _position(name: Any, known: Values, parameter: str, of_what: Any, owner: str) -> int:
    for i, one in enumerate(known):
        if one == name:
            return i
    raise ValueError(f"The constraints of {owner} name {name!r} in '{parameter}', which is none of {of_what}.")


def _read(one: Any, owner: str, parameter: str, without_bounds: Sequence[str] | None) -> Notion:
    if isinstance(one, str):
        return _ALSO.get(one, one)
    try:
        (found,) = read_rate_constraints([one], owner, parameter=parameter)
    except ValueError:  # of no rate
        return f"fairlearn's {type(one).__name__}" if _is_moment(one) else repr(one)
    if isinstance(found, RateParity) and found.of_class is None and found.factor_and_slack[::-1] == _UNBOUNDED:
        return _RATES[found.rate]
    if without_bounds is not None:
        same = _RATES[found.rate]
        raise ValueError(
            f"The '{parameter}' parameter of {owner} holds rates equal, without a bound of their own. Got {one!r}; "
            f"give {repr(same) if same in without_bounds else f'one of {_names(without_bounds)}'}."
        )
    return found
