"""What holds between the amounts that a network predicts for groups, and who judges it."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import permutations
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.stats import norm

from skfairdp._column_tables import SMALLEST, ColumnTables, Cost, where_amounts_lie
from skfairdp._inputs import TrainingData
from skfairdp._judge import KSJudgement, by_heart
from skfairdp._transport import Transport, TransportPlan, as_scores
from skfairdp._typing import Bools, Floats, Values
from skfairdp._usefulness import HOPELESS, REACH, AmountMean, gradient_noise, units_of, ways_of, what_is_enough
from skfairdp._utils import warn_caller
from skfairdp.exceptions import FairnessWarning, UtilityWarning
from skfairdp.gradient._parity import JUDGED, DPSGDPlan, PublicPenalty, SignedLoss, private_answers
from skfairdp.privacy import DpEvent, GaussianMechanism, NeighboringRelation, NoiseSource, compose, gdp_mu, rounded_up

if TYPE_CHECKING:
    from skfairdp._networks import Net, Network

#: Of the range of the bounds, where a parity is asked for by its name.
USUAL_DIFFERENCE = 0.01
#: And of Kolmogorov and Smirnov, between distributions.
USUAL_DISTANCE = 0.05
#: Of the squared cost of a fit, for tables by which predictions are moved.
FOR_MOVES = 0.35
MOST_GROUPS = 100
LEVEL = 0.95
#: So many spreads of amounts, of normal ones less than one in ten thousand, errors count as at most.
FARTHEST = 3.0
#: A group of fewer rows, or within so much noise, says nothing of its mean.
FEWEST, CLEAR = 30, 3.0
#: Rows that are added at either end of what there is, for an upper bound.
AT_EITHER_END = norm.ppf(LEVEL) ** 2 / 2
_POWERS = {"SquareLoss": 2, "AbsoluteLoss": 1}


@dataclass(frozen=True)
class AmountConstraints:
    """Bounds on the difference of two groups' mean predictions, and on the mean loss of a group, in units of y; or one
    on the ``distance`` of Kolmogorov and Smirnov between predictions of two groups."""

    groups: Values
    difference: float | None = None
    largest_loss: float | None = None
    power: int = 2
    limits: tuple[float, float] = (-math.inf, math.inf)
    cuts_errors: bool = True
    distance: float | Any = None

    @classmethod
    def asked(cls, estimator: Any, bounds: tuple[float, float], groups: Values = ()) -> "AmountConstraints":
        """Read ``constraints`` and ``gamma`` of an estimator."""
        owner, given = type(estimator).__name__, estimator.constraints
        if given == "demographic_parity" or given == ["demographic_parity"]:
            return cls(groups, distance=_distance_asked(estimator))
        difference = None if estimator.gamma is None else float(estimator.gamma)
        largest, power, limits = None, 2, bounds
        for one in given if isinstance(given, list | tuple) else [] if given is None else [given]:
            kind = type(getattr(one, "reduction_loss", None)).__name__
            if isinstance(one, str) and one == "mean_parity" and difference is None:
                difference = USUAL_DIFFERENCE * (bounds[1] - bounds[0])
            elif type(one).__name__ == "BoundedGroupLoss" and one.upper_bound is not None and kind in _POWERS:
                largest, power = float(one.upper_bound), _POWERS[kind]
                ends = one.reduction_loss.min_val, one.reduction_loss.max_val
                low, high = (float(np.clip(end, *bounds)) for end in ends)
                limits = (low, high) if low < high else bounds
            else:
                raise ValueError(
                    f"The 'constraints' of {owner} must be 'mean_parity' (or 'gamma', the largest difference of two "
                    "groups' mean predictions), fairlearn's BoundedGroupLoss(SquareLoss(low, high), upper_bound=...) "
                    "or one with AbsoluteLoss, or a list of both; or for whole distributions 'demographic_parity' "
                    f"alone. Got {one!r} instead."
                )
        if difference is not None and len(groups) == 1:
            raise ValueError(f"{owner} compares the means of groups, and got one group only: {groups[0]!r}.")
        return cls(groups, difference, largest, power, limits)

    @property
    def asks(self) -> bool:
        """Whether anything is to hold."""
        return self.n_statistics > 0 or self.distance is not None

    @property
    def n_statistics(self) -> int:
        """Numbers that are summed by group: mean, and loss."""
        return (self.difference is not None) + (self.largest_loss is not None)

    @cached_property
    def lines(self) -> tuple[Floats, Bools, Floats]:
        """Coefficients (n_lines, n_groups, n_statistics), which lines are of means, and the bounds of all."""
        n, found = len(self.groups), []
        if self.difference is not None:
            found += [({(a, 0): 1.0, (b, 0): -1.0}, True, self.difference) for a, b in permutations(range(n), 2)]
        if self.largest_loss is not None:
            found += [({(one, self.n_statistics - 1): 1.0}, False, self.largest_loss) for one in range(n)]
        coefficients = np.zeros((len(found), n, self.n_statistics))
        for line, (terms, _, _) in enumerate(found):
            for at, value in terms.items():
                coefficients[(line, *at)] = value
        return coefficients, np.array([mean for _, mean, _ in found]), np.array([bound for *_, bound in found])

    def statistics(self, scale: Any, predicted: Floats, y: Floats, exposure: Floats | float = 1.0) -> Floats:
        """What is summed of every row, numbers in [-1, 1]: of rates, and of the errors of counts."""
        low, high = float(scale.low), float(scale.high)
        found = [] if self.difference is None else [2 * (predicted - low) / (high - low) - 1]
        if self.largest_loss is not None:
            apart = np.abs(np.clip(predicted * exposure, *self.limits) - np.clip(y, *self.limits))
            found.append(2 * (apart / self._farthest(scale)) ** self.power - 1)
        return np.clip(np.stack(found, axis=1), -1.0, 1.0)

    def units(self, scale: Any) -> Floats:
        """What a statistic of 1 is on each line, in units of y."""
        _, of_means, _ = self.lines
        return np.where(of_means, float(scale.high - scale.low) / 2, self._farthest(scale) ** self.power / 2)

    def _farthest(self, scale: Any) -> float:
        """The largest error there is, or what errors are cut off at: a few say too much of a mean behind noise."""
        largest = self.limits[1] - self.limits[0]
        return min(largest, FARTHEST * float(scale.spread)) if self.cuts_errors else largest

    def sides(self, scale: Any, means: Floats) -> Floats:
        """The left-hand side of every line, by the means of the statistics."""
        coefficients, of_means, _ = self.lines
        sides: Floats = self.units(scale) * (np.einsum("lgs,gs->l", coefficients, means) + ~of_means)
        return sides

    def __str__(self) -> str:
        """What is asked, in words."""
        asked = {
            "means of groups differ by {} at most": self.difference,
            "the loss of each group is {} at most": self.largest_loss,
        }
        return ", and ".join(words.format(rounded_up(most, 3)) for words, most in asked.items() if most is not None)


def _distance_asked(estimator: Any) -> float:
    """The largest distance between distributions, which a fit has to have a budget for and no price."""
    owner, gamma = type(estimator).__name__, estimator.gamma
    if gamma is not None and gamma > 1:
        raise ValueError(
            f"'gamma' of {owner} with constraints='demographic_parity' is the largest Kolmogorov-Smirnov distance of "
            f"two groups, at most 1. Got {gamma:g}. For a difference of means, in units of y, leave out 'constraints'."
        )
    if estimator.lam:
        raise ValueError(
            f"{owner} with constraints='demographic_parity' moves predictions after training, at no price. Leave out "
            f"'lam' ({estimator.lam:g})."
        )
    return USUAL_DISTANCE if gamma is None else float(gamma)


@dataclass(frozen=True)
class AmountJudgement:
    """What one noisy table of sums by group (rows, statistics, squares of these) says of the population, sampling and
    noise included. Post-processing."""

    constraints: AmountConstraints
    scale: Any
    table: Floats
    noise: float
    #: How far predictions follow the amounts of rows that have taught them.
    by_heart: float = 0.0

    @cached_property
    def sides(self) -> tuple[Floats, Floats]:
        """The left-hand sides by these rows, and their standard errors; infinite where a group is too small."""
        k = self.constraints.n_statistics
        rows = self.table[:, :1]
        seen = rows > max(FEWEST, CLEAR * self.noise)
        size = np.where(seen, rows, 1.0)
        means = np.clip(self.table[:, 1 : 1 + k] / size, -1.0, 1.0)
        spread = np.clip(self.table[:, 1 + k :] / size - means**2 + 2 * self.noise / size, 0.0, 1.0)
        variance = np.where(seen, spread / size + (1 + means**2) * (self.noise / size) ** 2, np.inf)
        coefficients = self.constraints.lines[0]
        errors = np.sqrt((coefficients**2 * np.where(coefficients != 0, variance, 0.0)).sum(axis=(1, 2)))
        return self.constraints.sides(self.scale, means), self.constraints.units(self.scale) * errors

    @cached_property
    def said(self) -> tuple[float, float, str]:
        """What becomes ``gap_``, ``gap_bound_`` and ``constraint_holds_``."""
        sides, errors = self.sides
        _, of_means, bounds = self.constraints.lines
        most = 2 * self.constraints.units(self.scale)
        # Each by itself: the largest of them is at least that of the line that is broken most, whichever that is.
        # with some rows more at either end, as Agresti and Coull's bounds: few rows need not show what is rare
        table = self.table.copy()
        table[:, 0] += 2 * AT_EITHER_END
        table[:, 1 + self.constraints.n_statistics :] += 2 * AT_EITHER_END
        above, unsure = replace(self, table=table).sides
        upper = np.maximum(sides, above) + norm.ppf(LEVEL) * np.maximum(errors, unsure)
        # Groups may be a spread off, either in its own direction; errors that a row sees less of, others see more of.
        owed = np.where(of_means, float(self.scale.spread), upper)
        upper += 2 * self.by_heart * owed
        upper = np.minimum(upper, most)
        lower = np.where(np.isfinite(errors), sides - norm.ppf(1 - (1 - LEVEL) / len(sides)) * errors, -np.inf)
        shown = of_means if of_means.any() else ~of_means
        known = shown & np.isfinite(errors)
        gap = float(sides[known].max()) if known.any() else math.nan
        holds = "yes" if (upper <= bounds).all() else "no" if (lower > bounds).any() else "within the noise"
        return gap, float(upper[shown].max()), holds

    def warn(self, owner: str, advice: str) -> None:
        """Say so where a constraint is broken by more than noise and sampling explain."""
        gap, bound, holds = self.said
        if holds == "no":
            warn_caller(
                f"{owner} did not reach its constraint ({self.constraints}): its predictions for its private rows "
                f"differ by {'too much' if math.isnan(gap) else f'about {gap:.3g}'}, in the population by at most "
                f"{rounded_up(bound, 3)} at {LEVEL:.0%} confidence. {advice}",
                FairnessWarning,
            )


@dataclass(frozen=True)
class AmountJudge:
    """One noisy table of sums of the predictions by group: rows, statistics in [-1, 1] and their squares. A record has
    one line, of a norm of √(1 + 2k) at most: one that comes, goes or gives way to a null record moves it by that."""

    constraints: AmountConstraints
    epsilon: float
    delta: float
    relation: NeighboringRelation
    share: float
    by_heart: float = 0.0
    releases: ClassVar[tuple[str, ...]] = ("a noisy table of predictions by group, summed",)

    @property
    def table(self) -> GaussianMechanism:
        """For the table."""
        moved = math.sqrt(1 + 2 * self.constraints.n_statistics)
        mu = math.sqrt(self.share) * gdp_mu(self.epsilon, self.delta)
        return GaussianMechanism((1 + 1e-9) * moved / mu, sensitivity=moved, relation=self.relation)

    @property
    def event(self) -> DpEvent:
        """The release."""
        return self.table.event

    def release(self, module: Any, data: TrainingData, noise: NoiseSource) -> AmountJudgement:
        """Release the table of a trained network, whose last layer is a scale, and judge by it."""
        from skfairdp._networks import sums_by_group

        of_rows = self.constraints.statistics(module[-1], predicted_amounts(module, data.X, self.relation), *data.y.T)
        lines = np.column_stack([np.ones(len(of_rows)), of_rows, of_rows**2])
        sums = sums_by_group(lines, data.groups, len(self.constraints.groups))
        told = self.table.release(sums, noise), self.table.sigma
        return AmountJudgement(self.constraints, module[-1], *told, self.by_heart)


def predicted_amounts(module: Any, X: Any, relation: NeighboringRelation) -> Floats:
    """Predictions for private rows, NaN where there is none. Private."""
    return np.concatenate([logits[:, 0] for _, logits in private_answers(module, X, relation)])


@dataclass(frozen=True)
class CountTables:
    """Where counts lie, and their rate: tables of counts and, where there are, exposures; then the mean of counts, of
    which quantiles of what is mostly 0 say nothing."""

    tables: ColumnTables
    mean: AmountMean

    @property
    def event(self) -> DpEvent:
        """All of it."""
        return compose(self.tables.event, self.mean.event)

    @property
    def releases(self) -> tuple[str, ...]:
        """In words, for the ledger."""
        return (*self.tables.releases, *self.mean.releases)

    def release(self, counts: Floats, noise: NoiseSource) -> tuple[float, float, float]:
        """The rate for an exposure of 1, the mean count and the spread of counts; beside each its exposure."""
        knots = self.tables.release(counts, noise)
        exposure = 1.0 if len(knots) == 1 else max(float(knots[1, 1:-1].mean()), SMALLEST)
        middle, _, spread = where_amounts_lie(knots[0, 1:-1], (-1.0, 1.0))
        found = self.mean.release(counts[:, 0], middle, max(spread, spread_of_counts(middle)), noise)
        return found / exposure, found, float(max(spread, spread_of_counts(found)))


def spread_of_counts(mean: float) -> float:
    """A standard deviation of counts, at least: as far as it takes for one event to count as one."""
    return max(math.sqrt(max(mean, 0.0)), 1 / REACH)


@dataclass(frozen=True)
class HopelessGradients:
    """Gradients of so few rows that a network says next to nothing but a constant, by public numbers."""

    n_rows: int
    n_features: int
    epsilon: float
    delta: float
    relation: NeighboringRelation

    @property
    def noise(self) -> float:
        """What the gradients have."""
        return gradient_noise(self.n_rows, self.n_features + 1, epsilon=self.epsilon, delta=self.delta)

    def warn(self, amount: float, owner: str) -> None:
        """Say that the noisy mean of the amounts alone is predicted."""
        enough = what_is_enough(self, lambda other: other.noise <= HOPELESS)
        ways = ("" if enough[0] is None else "about ") + ways_of(enough, self.relation)
        warn_caller(
            f"{owner} predicts for every row the noisy mean {amount:.4g}: with {self.n_rows:,} "
            f"{units_of(self.relation)}, {self.n_features} features and epsilon={self.epsilon:g} the relative noise "
            f"of the gradients is {self.noise:.2g}, and above {HOPELESS:g} a network learns hardly anything. "
            f"To learn more needs at least {ways or 'a larger delta'}.",
            UtilityWarning,
        )


class _OfAmounts:
    """What the parts of a regressor share: the constraints, and the scale that a network's outputs are read on."""

    def __init__(self, asked: AmountConstraints, loss: str, bounds: tuple[float, float]) -> None:
        super().__init__()
        self.asked, self.loss, self.bounds = asked, loss, bounds

    @property
    def scale(self) -> Any:
        from skfairdp._networks import AmountScale

        return AmountScale(self.loss, *self.bounds)


class AmountParity(_OfAmounts, SignedLoss):
    """The signed loss of amounts: pulls at the means of groups and weighs their losses, by noisy sums of both."""

    def judge(self, data: TrainingData, n_rows: int, net: "Net", cost: Cost) -> Any:
        """Plan the look at the predictions of the network that is returned: at errors as large as they are."""
        owed = by_heart(net.width(data.X.shape[1], 1), n_rows, net.max_epochs)
        return AmountJudge(replace(self.asked, cuts_errors=False), *cost[:3], JUDGED * self.budget_share, owed)

    def terms(self, plan: DPSGDPlan, data: TrainingData, network: "Network", lam: float | None, seed: int) -> Any:
        """Say what the training adds to its private gradients."""
        from skfairdp.gradient._signed_loss import AmountLagrangian

        return {
            "loss": AmountLagrangian(self.scale, self.asked, plan.duals, plan.step.steps, lam, plan.step.max_grad_norm)
        }


@dataclass(frozen=True)
class MovedAmounts:
    """How a trained network's predictions of each group move, and how far apart groups are then. Released."""

    transport: Transport
    seen: KSJudgement
    gamma: float

    @property
    def said(self) -> tuple[float, float, str]:
        """What becomes ``gap_``, ``gap_bound_`` and ``constraint_holds_``."""
        return self.seen.said(self.gamma)

    def warn(self, owner: str, advice: str) -> None:
        """Say so where distributions are farther apart than noise and sampling explain, or a group is not seen."""
        gap, bound, holds = self.said
        if not self.seen.sees_all or holds == "no":
            most = f"in the population at most {rounded_up(bound, 2)} with a confidence of {LEVEL:.0%}"
            found = f"are about {gap:.2g} apart, {most}"
            hidden = "of a group are hidden by noise, so they may be moved anywhere"
            warn_caller(
                f"{owner} did not reach its constraint ('demographic_parity' up to {self.gamma:g}): moved predictions "
                f"{found if self.seen.sees_all else hidden}. {advice}",
                FairnessWarning,
            )


@dataclass(frozen=True)
class MovingPlan:
    """The tables of a barycenter at the end of a fit: they read a network that is released, so that what they cost
    beside its gradients is what they cost alone."""

    tables: TransportPlan
    bounds: tuple[float, float]
    gamma: float
    by_heart: float

    @property
    def event(self) -> DpEvent:
        """All tables."""
        return self.tables.event

    @property
    def releases(self) -> tuple[str, ...]:
        """In words, for the ledger."""
        return self.tables.releases

    def release(self, module: Any, data: TrainingData, noise: NoiseSource) -> MovedAmounts:
        """Release how predictions of each group are spread, and how once they are moved."""
        scores = as_scores(predicted_amounts(module, data.X, self.tables.relation), self.bounds)
        transport = self.tables.release(scores, data.groups, noise)
        own = 2 * self.by_heart * float(module[-1].spread) / (self.bounds[1] - self.bounds[0])
        seen = self.tables.release_judgement(transport, scores, data.groups, data.groups, noise, own=own)
        return MovedAmounts(transport, seen, self.gamma)


class AmountsMoved(_OfAmounts, PublicPenalty):
    """The whole distributions: the network trains as it does without a constraint, and its predictions are moved."""

    share_left = 1 - FOR_MOVES

    def judge(self, data: TrainingData, n_rows: int, net: "Net", cost: Cost) -> Any:
        """Plan the tables."""
        n_groups, of = len(self.asked.groups), "" if data.subjects is None else data.subjects.name
        if not 2 <= n_groups <= MOST_GROUPS:
            raise ValueError(
                f"constraints='demographic_parity' compares every two 'groups', and got {n_groups}: list at least 2, "
                f"and at most {MOST_GROUPS}, as each needs rows enough to show through the noise."
            )
        tables = TransportPlan(n_rows, n_groups, *cost[:3], of, FOR_MOVES)
        return MovingPlan(
            tables, self.bounds, self.asked.distance, by_heart(net.width(data.X.shape[1], 1), n_rows, net.max_epochs)
        )

    def terms(self, plan: DPSGDPlan, data: TrainingData, network: "Network", lam: float | None, seed: int) -> Any:
        """The loss alone: a network that is as good as it can be."""
        from skfairdp._networks import AmountLoss

        return {"loss": AmountLoss(self.scale, len(self.asked.groups))}


class AmountPenalty(_OfAmounts, PublicPenalty):
    """The price of differences between groups' mean predictions on public rows."""

    def terms(self, plan: DPSGDPlan, data: TrainingData, network: "Network", lam: float | None, seed: int) -> Any:
        """Say what the training adds to its private gradients."""
        from skfairdp._networks import AmountLoss, MeanPenalty

        public, scale, weight = data.public, self.scale, self.usual_lam if lam is None else lam
        rows = network.tensor(public.X), network.codes(public.groups)
        how: dict[str, Any] = {"batch_size": self.batch_size, "seed": seed, "scale": scale}
        return {"loss": AmountLoss(scale), "penalty": MeanPenalty(weight, *rows, public.n_groups, 1.0, "hard", **how)}
