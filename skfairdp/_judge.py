"""The judge: what the model that is returned does to the groups, by its answers to rows, and how sure that is."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.base import clone

from skfairdp import fairness, privacy
from skfairdp._typing import Array, Bools, Floats, Ints
from skfairdp._utils import warn_caller
from skfairdp.exceptions import FairnessWarning

#: Of the squared cost of a fit, at most.
SHARE = 0.04
#: A rate wants no more noise than half of what the rows of an even group leave open: √(n/12) on a count.
OF_SAMPLING = 0.5
#: So much beyond its usual bound a constraint that was asked for by name alone goes without a word.
WORTH_A_WORD = 0.02
#: A constraint that may be broken by more than this, at 95 % confidence, was not checked. So of models that break
#: theirs by more, at least 95 % are told of, whatever rows and noise are: gaps of .1 to .2 are those of models that
#: nobody holds to anything, on public tables.
UNSEEN = 0.1
LOOK_ANEW = "Fit anew, which looks at private rows"
#: In so many of 100 fits the bound holds; in the others, a model that holds its constraint is told of.
LEVEL = 0.95
#: A group whose rows are within so much noise says nothing of how amounts are spread.
CLEAR_OF_NOISE = 5.0
#: Right answers that a network owes to having seen its rows are, in all, up to twice as many as rows have features,
#: whatever ε from 1 to 30 is: once for the line, once for hidden units (tests/test_optimism.py). So it is up to 60
#: passes over the rows; of 200 it is 4.5 times as many as features.
_PER_FEATURE, _FEW_PASSES = 2.0, 60
#: Parity between groups is off by up to a quarter of that: it follows answers that groups of rows seen have changed.
_OF_GROUPS = 0.25
#: Answers to rows seen follow their labels, and what holds parity makes up for how these differ between groups: by half
#: at most, where nobody has looked.
_OF_LABELS = 0.5
#: Of a model that has followed labels more often next to nothing is known.
_MOST_FOLLOWED = 0.95
#: Draws of noise and sampling, and points of each cell where sampling is drawn.
_DRAWS, _FINER = 2000, 2


def by_heart(n_features: int, n_rows: int, passes: float = 0.0) -> float:
    """What a model of so many features owes to having seen a row: of right answers as a part of all rows, and of an
    amount how far its prediction follows it."""
    return _PER_FEATURE * max(1.0, passes / _FEW_PASSES) * n_features / n_rows


def labels_of_groups(membership: Floats, y: Ints, n_classes: int) -> Floats:
    """Shares of the classes in each group, (n_groups, n_classes), by how much each row belongs to it."""
    sums = np.stack([np.maximum(membership[y == k].sum(axis=0), 0.0) for k in range(n_classes)], axis=1)
    return np.asarray(sums / np.maximum(sums.sum(axis=1, keepdims=True), 1e-9))


@dataclass(frozen=True)
class Judgement:
    """What a table of the model's answers, group × true class × answer, says of its constraints, by post-processing,
    for the **population** that the rows were drawn from, noise and sampling included. Where the same rows have taught
    the model, its answers to them are right more often by its optimism: bounds leave room for that. Where labels are
    not told apart, a network that is held to parity has learned by heart of some rows in which group they are."""

    constraints: fairness.RateConstraints
    counts: Floats
    noise: Any = 0.0
    level: float = LEVEL
    #: What is broken only where what was asked is broken, which the constraints imply; None: they are what was asked.
    weaker: fairness.RateConstraints | None = None
    #: By how much more often answers are right to these rows than to others, at most: of every group and true class.
    optimism: Floats | None = None
    #: And by how much closer to parity a group's answers are.
    apart: float = 0.0
    #: And how much of what is broken on these rows may not be on others.
    doubt: float = 0.0
    #: The same without all that answers may owe to labels that were seen: in between no difference is larger.
    on_others: "Judgement | None" = None
    #: Standard deviation of counts as the model that is returned has them, where others have answered in its stead.
    unsure: Any = 0.0
    #: How sure it is that no inequality is broken by more, where the model depends on what is chance of these rows.
    together: float | None = None
    #: By other answers in its stead, which may be those that chance on these rows sets apart: the larger bound counts.
    beside: "Judgement | None" = None

    @classmethod
    def by_rows(cls, constraints: fairness.RateConstraints, groups: Any, truth: Any, answers: Any) -> "Judgement":
        """By rows that nobody has to protect; their true classes where the constraints look at them, else None."""
        answers = np.asarray(answers)
        truth = np.zeros(len(answers), dtype=np.int64) if truth is None else truth
        return cls(constraints, constraints.tally(groups, truth, answers).astype(np.float64))

    @classmethod
    def by_fifths(
        cls, constraints: fairness.RateConstraints, groups: Any, truth: Any, answers: Any, own: Any
    ) -> "Judgement":
        """By answers of models that four fifths of the rows teach, each to the other fifth, or those that all teach:
        either is as good a guess. Of one and the average of five a difference has the variance (1 + 1/5)τ², with 2τ²
        the number of rows answered otherwise; what goes to one answer comes from another, and both add up."""
        found, moved = cls.by_rows(constraints, groups, truth, answers), answers != own
        truth = np.zeros(len(groups), dtype=np.int64) if truth is None else truth
        turned = sum(constraints.tally(groups[moved], truth[moved], each[moved]) for each in (answers, own))
        return replace(found.held_on_its_rows, unsure=np.sqrt(2 * 0.6 * turned))

    @classmethod
    def by_weights(
        cls, constraints: fairness.RateConstraints, weights: Floats, truth: Any, answers: Any, noise: float = 0.0
    ) -> "Judgement":
        """By rows whose groups are known as weights, (n_rows, n_groups), with noise in a sum of those of all rows. Of a
        weight w that is 0 or 1 on average, ``w² - w`` is on average its variance. Those of a row add up to 1, so that
        what noise gives to one group it takes from another: of a difference both add up."""
        n_classes, weights = len(constraints.classes), np.asarray(weights, dtype=np.float64)
        cells = np.asarray(truth, dtype=np.int64) * n_classes + np.asarray(answers, dtype=np.int64)

        def table(values: Floats) -> Floats:
            sums = [np.bincount(cells, column, minlength=n_classes**2) for column in values.T]
            return np.array(sums, dtype=np.float64).reshape(-1, n_classes, n_classes)

        variance = np.maximum(table(weights**2 - weights), 0.0) + noise**2
        return cls(constraints, table(weights), np.sqrt(2 * variance))

    @property
    def held_on_its_rows(self) -> "Judgement":
        """A model that is made to hold a bound on these rows is beyond it elsewhere on the side that is chance on them:
        each of two opposite inequalities may be missed in half as many of the fits, all in no more than usual."""
        return replace(self, level=1 - (1 - LEVEL) / 2, together=LEVEL)

    def moved(self, constraints: fairness.RateConstraints, flows: Floats) -> "Judgement":
        """Of another model than was looked at, by sampled rows counted by group, true class, and answer of either. As
        large a part of private rows changes its answer, give or take half: twice as many, or none, are within 95 %."""
        before, after = flows.sum(axis=3), flows.sum(axis=2)
        scale = np.maximum(self.counts.sum(axis=2), 0.0) / np.maximum(flows.sum(axis=(2, 3)), 1e-9)
        changed = before + after - 2 * flows.diagonal(axis1=2, axis2=3)
        noise = np.hypot(self.noise, math.sqrt(0.5) * scale[..., None] * changed)
        counts = self.counts + scale[..., None] * (after - before)
        return replace(self, constraints=constraints, counts=counts, noise=noise)

    def of_one_class(self) -> "Judgement":
        """Of a model that answers one class to every row: what that is sure to meet needs no look."""
        left = () if fairness.constant_meets(self.constraints.constraints) else self.constraints.constraints
        return replace(self, constraints=replace(self.constraints, constraints=left), weaker=None)

    @cached_property
    def gap(self) -> float:
        """The largest difference between two groups, of the rates that are constrained; of another constraint, by how
        much it is broken. Of groups that the noise lets anybody see; NaN where there are no two."""
        gaps, counts = fairness.gaps_of(self.constraints), np.maximum(self.counts, 0.0)
        cells, variance = gaps.cells[:, : self.counts.shape[1]], np.broadcast_to(self.noise, self.counts.shape) ** 2
        rows, noise = (np.einsum("ayk,ry->ar", table, cells) for table in (self.counts, variance))
        noise = np.sqrt(noise)
        clear = np.vstack([rows > fairness.CLEAR_SIZE * noise, np.ones((1, rows.shape[1]), dtype=bool)])
        line, group, rate, _ = gaps.terms
        told = np.bincount(line, ~clear[group, rate], minlength=gaps.n_inequalities) == 0
        unknown = math.nan if self.constraints.constraints else 0.0
        return float(np.where(told, gaps.violations(counts), 0.0).max()) if told.any() else unknown

    @cached_property
    def gap_bound(self) -> float:
        """What the same number is at most in the population, with a confidence of 95 %."""
        return min(max(self._largest(fairness.gaps_of(self.constraints), self.level), 0.0), 1.0)

    @cached_property
    def holds(self) -> str:
        """Whether all constraints hold in the population: "yes", "no", or "within the noise", where nobody can say."""
        bounds = self.constraints.bounds - fairness.gaps_of(self.constraints).bounds
        same = bounds.size > 0 and np.ptp(bounds) == 0  # then it is one computation for both
        most = self.gap_bound - bounds[0] if same else self._largest(self.constraints, self.level)
        if most <= 0:
            return "yes"
        return "no" if self._surely_broken.max(initial=-1.0) > 0 else "within the noise"

    @cached_property
    def _surely_broken(self) -> Floats:
        """By how much each inequality is broken at least."""
        # of a pair of opposite inequalities only one can be broken
        asked = self.weaker or self.constraints
        alarms = (1 - self.level) / max(1.0, asked.n_inequalities / 2)
        noise = np.hypot(self.noise, self.unsure)
        found = fairness.violation_bounds(asked, self.counts, level=alarms, noise=noise) - self.doubt
        return found if self.on_others is None else np.minimum(found, self.on_others._surely_broken)

    @cached_property
    def violation(self) -> float:
        """By how much the worst constraint is broken, by the counts as they are; 0 where all hold."""
        return float(self.constraints.violations(np.maximum(self.counts, 0.0)).max(initial=0.0))

    @property
    def tightening(self) -> float:
        """How many times its bound the worst constraint would hold at, if what is left followed the bound. 1 where all
        hold, but for what may be noise."""
        beyond = self.constraints.violations(np.maximum(self.counts, 0.0))
        worst = int(beyond.argmax())
        bound = float(self.constraints.bounds[worst])
        return bound / (bound + float(beyond[worst])) if bound > 0 and beyond[worst] > self.violation_noise else 1.0

    @property
    def violation_noise(self) -> float:
        """Standard deviation of the one noise of a released table in that; infinite where no group can be told."""
        broken_by, noise = fairness.noise_of_violations(self.constraints, [self.counts], self.noise)
        told = np.isfinite(noise)
        return float(noise[np.where(told, broken_by, -math.inf).argmax()]) if told.any() else math.inf

    def warn(self, owner: str, rows: str, instead: str, *, in_doubt: bool = False, check: str = LOOK_ANEW) -> None:
        """Say so where a constraint is broken by more than the error of what is known; one without a bound of its own,
        by .02 as well. Where it was given one, also that it could not be checked, and how it can be."""
        asked = self.weaker or self.constraints
        named = all(
            isinstance(one, fairness.RateParity) and one.difference_bound is None and one.ratio_bound is None
            for one in self.constraints.constraints
        )
        if self.holds != "no":
            if not named and asked.n_inequalities and (in_doubt or self._largest(asked, self.level) > UNSEEN):
                self._warn_unchecked(owner, rows, check if in_doubt else None)
            return
        beyond = asked.violations(np.maximum(self.counts, 0.0))
        worst = int(self._surely_broken.argmax())  # of a group that noise hides the counts may say anything
        if not named or beyond[worst] > WORTH_A_WORD:
            differ = asked.bounds[worst] if np.count_nonzero(asked.terms[0] == worst) > 1 else 0.0
            is_known = self.gap > differ + self._surely_broken[worst]  # else it is that of other groups
            found = (
                f"a gap of about {self.gap:.2g}"
                if is_known
                else f"a violation of {privacy.rounded_down(self._surely_broken[worst], 2)}"
            )
            warn_caller(
                f"{owner} did not reach its constraint '{asked.inequalities[worst]}': its predictions for {rows} have "
                f"{found}{'' if is_known else ' or more'}, which noise and sampling do not explain (in the population "
                f"at most {privacy.rounded_up(self.gap_bound, 2)}, at {LEVEL:.0%} confidence). {instead}",
                FairnessWarning,
            )

    def _warn_unchecked(self, owner: str, rows: str, check: str | None) -> None:
        asked = self.weaker or self.constraints
        worst = asked.inequalities[int(asked.violations(np.maximum(self.counts, 0.0)).argmax())]
        at_most = privacy.rounded_up(self.gap_bound, 2)
        known = (
            f"nobody has looked at its predictions for private rows, and {rows} may differ from these"
            if check
            else f"by its predictions for {rows} the gap may be up to {at_most} in the population"
        )
        ways = check or "Give more rows of the smallest group"
        ways += ", raise 'epsilon'" if np.any(self.noise) and not check else ""
        warn_caller(
            f"{owner} could not check its constraint '{worst}': {known}. {ways}, or measure the gap on other rows.",
            FairnessWarning,
        )

    def _largest(self, constraints: fairness.RateConstraints, level: float) -> float:
        noise = np.hypot(self.noise, self.unsure)
        found = fairness.violation_bounds(constraints, self.counts, level=level, noise=noise, together=self.together)
        if self.optimism is not None or self.apart:
            found += self._hidden(constraints)
        largest = float(found.max(initial=-1.0))
        for other in (self.beside, self.on_others):
            if other is not None and largest < 1:  # no gap is larger
                largest = max(largest, other._largest(constraints, level))
        return largest

    def after_learning(
        self, right: float, spared: Floats | None = None, wrong: Floats | None = None, labels: Floats | None = None
    ) -> "Judgement":
        """With so many of the rows ``right`` for having been seen: shared by true classes, and maybe all in one group.
        Where the model is ``wrong`` about others it has followed labels as often as errors are ``spared``, by group or
        in all, and labels may differ: ``labels`` are shares of the classes, (n_groups, n_classes), if known."""
        rows, n_classes = np.maximum(self.counts.sum(axis=2), 1.0), self.counts.shape[2]
        each = np.minimum(right * rows.sum() / n_classes / rows, 1.0)
        found = replace(self, optimism=each, apart=min(_OF_GROUPS * right, 1.0))
        if self.constraints.needs_labels or n_classes < 2 or spared is None or wrong is None:
            return found
        followed = np.minimum(spared, _MOST_FOLLOWED)
        times = followed / (1 - followed)
        if rows.shape[1] == 1 and labels is None:
            gap = np.nan_to_num(self.gap, nan=1.0)
            moved = min(float(times.max()) * (gap + _OF_LABELS), 2 * right, 1.0)
            return replace(found, apart=moved, doubt=moved)
        known = labels * rows if labels is not None else rows[:, :, None] * np.eye(n_classes)
        most = ((spared * wrong) * rows.sum(axis=1))[:, None, None]
        moved = np.clip(times[:, None, None] * (self.counts - known.reshape(self.counts.shape)), -most, most)
        chance = np.hypot(self.noise, np.sqrt(np.maximum(self.counts, 0.0)))
        found = replace(found, optimism=None)
        others = replace(found, counts=self.counts + moved, unsure=np.minimum(times[:, None, None] * chance, most))
        return replace(found, on_others=others)

    def after_by_heart(self, in_all: float, most: float = 1.0) -> "Judgement":
        """With so much of all rows right for having been seen. Where there are errors, since little decides there."""
        optimism, rows = None, np.maximum(self.counts.sum(axis=2), 1.0)
        if self.counts.shape[1] > 1:
            right = self.counts.diagonal(axis1=1, axis2=2)
            wrong = np.clip((rows - right + self.noise) / rows, 0.0, 1.0)
            optimism = np.minimum(in_all * wrong / np.average(wrong, weights=rows), min(1.0, most))
        n_classes = self.counts.shape[2]
        by_labels = _OF_LABELS * n_classes / max(n_classes - 1, 1)  # a right answer more is fewer of all others
        apart = (_OF_GROUPS if self.constraints.needs_labels else by_labels) * in_all
        return replace(self, optimism=optimism, apart=min(apart, 1.0, most))

    def _hidden(self, constraints: fairness.RateConstraints) -> Floats:
        """By how much more each inequality may be broken on other rows: as if one of its rates had all of that."""
        found, (line, group, rate, value) = np.zeros(constraints.n_inequalities), constraints.terms
        whatever_is_true = (constraints.events == constraints.events[:, :1]).all(axis=(1, 2))
        np.maximum.at(found, line, self.apart * np.abs(value) * whatever_is_true[rate])
        if self.counts.shape[1] == 1 or self.optimism is None:
            return found
        n_classes, rows = self.counts.shape[2], np.maximum(self.counts.sum(axis=2), 1.0)
        answers = (1 - n_classes * np.eye(n_classes)) / (n_classes - 1)  # a right one less, any other one more
        shifts = np.einsum("ay,yk,ryk->ar", rows * self.optimism, answers, constraints.events)
        sizes = np.einsum("ay,ry->ar", rows, constraints.cells)
        shifts, sizes = (np.vstack([each, each.sum(axis=0)]) for each in (shifts, sizes))
        np.maximum.at(found, line, value * shifts[group, rate] / sizes[group, rate])
        return found


@dataclass(frozen=True)
class Judge:
    """A noisy table of the model's answers to private rows, group × true class (where constraints ask) × answer. A
    record is in one cell: one that comes, goes or gives way to a null record moves it by 1, one for another by √2."""

    constraints: fairness.RateConstraints
    n_rows: int
    epsilon: float
    delta: float
    relation: privacy.NeighboringRelation
    share: float = SHARE
    looks: int = 1
    n_features: int = 0  # of a model that the same rows teach
    passes: float = 0.0  # over these rows

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of a table."""
        n_classes = len(self.constraints.classes)
        return len(self.constraints.groups), n_classes if self.constraints.needs_labels else 1, n_classes

    @property
    def table(self) -> privacy.GaussianMechanism:
        """For the table."""
        sensitivity = 1.0 if self.relation.by_null else math.sqrt(2.0)
        of_a_group = self.n_rows / (self.shape[0] * self.shape[1])
        wanted = OF_SAMPLING * math.sqrt(of_a_group / 2)  # a rate of 1/2 has σ √.5 / n, and rows leave .5 / √n open
        mu = min(sensitivity / wanted, math.sqrt(self.share / self.looks) * privacy.gdp_mu(self.epsilon, self.delta))
        return privacy.GaussianMechanism((1 + 1e-9) * sensitivity / mu, sensitivity=sensitivity, relation=self.relation)

    @property
    def left_in_counts(self) -> float:
        """Standard deviation of the noise in a count."""
        return self.table.sigma

    @property
    def event(self) -> privacy.DpEvent:
        """The tables of all looks."""
        return privacy.repeat(self.table.event, self.looks)

    @property
    def squared_cost(self) -> float:
        """What it takes of the μ² of a fit."""
        table = self.table
        return self.looks * (table.sensitivity / table.sigma) ** 2

    @property
    def releases(self) -> tuple[str, ...]:
        """In words, for the ledger."""
        what = "by group, true class and answer" if self.shape[1] > 1 else "by group and answer"
        return (f"a noisy table of rows {what} of the model",)

    def counts(self, groups: Array, truth: Array, answers: Array) -> Ints:
        """The table without noise. Private. A row with a negative code counts nowhere."""
        _, n_labels, n_classes = self.shape
        known = (np.asarray(answers) >= 0) & (np.asarray(groups) >= 0)
        label = np.asarray(truth)[known] if n_labels > 1 else 0
        cells = (np.asarray(groups)[known] * n_labels + label) * n_classes + np.asarray(answers)[known]
        return np.bincount(cells.astype(np.int64), minlength=math.prod(self.shape)).reshape(self.shape)

    def release(self, counts: Array, noise: privacy.NoiseSource) -> Judgement:
        """Release a table of hard answers, and judge by it: with 95 % what is said of all models looked at is right."""
        level = 1 - (1 - LEVEL) / self.looks
        found = Judgement(self.constraints, self.table.release(counts, noise), self.table.sigma, level)
        if not self.n_features:
            return found
        most = math.tanh(self.epsilon / 2) + self.delta  # ε bounds what a row does for the answer to itself
        return found.after_by_heart(by_heart(self.n_features, self.n_rows, self.passes), most)


def set_judgement(estimator: Any, judgement: "Judgement | None", *, in_doubt: bool = False) -> None:
    """Set what is known of the groups, in place of what was known of another model. In doubt are rows that are not the
    population's own: sampled, or with groups or labels that are estimated."""
    for name in ("gap_", "gap_bound_", "constraint_holds_"):
        vars(estimator).pop(name, None)
    if judgement is not None:
        in_doubt = in_doubt and judgement.constraints.n_inequalities > 0
        estimator.gap_, estimator.gap_bound_ = judgement.gap, 1.0 if in_doubt else judgement.gap_bound
        estimator.constraint_holds_ = "within the noise" if in_doubt and judgement.holds == "yes" else judgement.holds


def asked_constraints(estimator: Any, usual: Any = None) -> Any:
    """What is to hold: ``constraints``, or the gap between every two groups that ``gamma`` is short for."""
    if estimator.gamma is None:
        return estimator.constraints
    fairness.refuse_beside_constraints(type(estimator).__name__, {"gamma": estimator.constraints != usual})
    return fairness.RateParity("selection_rate", float(estimator.gamma))


def held_by_network(
    constraints: Any, groups: Sequence[Any], classes: Sequence[Any], owner: str
) -> fairness.RateConstraints:
    """What the hard answers of a network are judged by that follows Lagrange multipliers."""
    notions = fairness.read_constraints(constraints, owner)
    asked = ["demographic_parity" if one == "generalized_demographic_parity" else one for one in notions]
    return fairness.RateConstraints(fairness.read_rate_constraints(asked, owner), list(groups), list(classes), owner)


def tightened(learner: Any, times: float) -> Any | None:
    """A fair learner with so many times its bound on differences; None where it has no such bound."""
    asked: Any = getattr(learner, "constraints", None)
    slack, tighter = _of_ours(learner, "slack") or 0.0, clone(learner, safe=False)
    if slack > 0:
        return tighter.set_params(slack=times * slack)
    if isinstance(asked, fairness.RateParity) and asked.difference_bound and asked.ratio_bound is None:
        return tighter.set_params(constraints=replace(asked, difference_bound=times * asked.difference_bound))
    if getattr(asked, "ratio", None) == 1.0 and getattr(asked, "eps", 0.0) > 0:  # as a moment of fairlearn keeps it
        tighter.constraints = type(asked)(difference_bound=times * asked.eps)
        return tighter
    return None


def _of_ours(learner: Any, name: str) -> Any:
    """A parameter of a learner of this package: of others it may be anything, as the gamma of a kernel."""
    ours = any(kind.__module__.startswith("skfairdp.") for kind in type(learner).__mro__)
    return getattr(learner, name, None) if ours else None


def held_by_learner(
    learner: Any, groups: Sequence[Any], classes: Sequence[Any], owner: str
) -> fairness.RateConstraints | None:
    """What the answers are judged by of a model that follows a fair learner; None where it says of no rate it holds."""
    asked, slack = getattr(learner, "constraints", None), _of_ours(learner, "slack") or 0.0
    if (gamma := _of_ours(learner, "gamma")) is not None:
        asked = fairness.RateParity("selection_rate", float(gamma))
    try:
        held = held_by_network(asked, groups, classes, owner)
    except ValueError:
        return None
    if slack > 0:
        rates = (one.rate for one in held.constraints)
        within = tuple(fairness.RateParity(rate, float(slack), method="to_overall") for rate in rates)
        return fairness.RateConstraints(within, held.groups, held.classes, owner)
    return held


def fifths(groups: Ints, labels: Ints | None) -> Iterator[tuple[Bools, Bools]]:
    """Rows that teach, and a fifth of every group and label that is asked; which is where follows no feature. A row
    that is alone in its group teaches always: nobody else can."""
    cells = groups if labels is None else 2 * groups + labels
    order = np.random.default_rng(0).permutation(len(groups))
    order = order[np.argsort(cells[order], kind="stable")]
    part = np.empty(len(groups), dtype=np.int64)
    part[order] = np.arange(len(groups)) % 5
    alone = np.bincount(cells)[cells] == 1
    for one in range(5):
        yield (part != one) | alone, part == one


@dataclass(frozen=True)
class KSJudgement:
    """How far moved scores of the groups are apart, by one noisy table of them. Its bound is one for the population,
    though the same rows have said how to move: how far a group's distribution function is from that of its population
    follows from scores as they were, and no rising map changes it (Kolmogorov's statistic). What is seen, less draws of
    noise and of sampling, is how far the population may be; 95 of 100 draws are below the bound.

    The laws of noise and of sampling at ends of cells are proven; that so many draws cover the population so often is
    asymptotic in rows, and straight lines within cells, but for sampling, in cells. A cell in which a group has more
    than twice the rows of an even one may hold points: there one group is taken to have all its rows before the other
    has any. In one of ``points`` all rows are at the same point, so that its ends say all.
    """

    counts: Floats
    noise: float
    points: Bools | bool = False
    #: How much closer groups of rows that taught the scores are than those of others.
    owed: float = 0.0

    @cached_property
    def rows(self) -> Floats:
        """Of each group."""
        return np.maximum(self.counts.sum(axis=1), 1.0)

    @property
    def sees_all(self) -> bool:
        """Whether every group shows through the noise."""
        return bool((self.rows > CLEAR_OF_NOISE * self.noise * math.sqrt(self.counts.shape[1])).all())

    @cached_property
    def _levels(self) -> Floats:
        """Distribution functions at the ends of cells, by noisy counts."""
        return np.pad(self.counts.cumsum(axis=1) / self.rows[:, None], ((0, 0), (1, 0)))

    @cached_property
    def _lumps(self) -> Bools:
        """Cells in which a group may have many rows at one point of several."""
        masses = self.counts / self.rows[:, None]
        most = 2 / self.counts.shape[1] + 2 * self.noise / self.rows[:, None]
        return (masses > most) & ~np.asarray(self.points)

    @cached_property
    def _limits(self) -> tuple[float, float, float]:
        """What is seen at ends of cells, and between what the population's distance is, each with 95 % confidence."""
        sizes = zip(self.rows, np.maximum.accumulate(np.clip(self._levels, 0.0, 1.0), axis=1), strict=True)
        spread = [_deviations(size, _between(line), self.noise, seed) for seed, (size, line) in enumerate(sizes)]
        pairs = list(combinations(range(len(self.counts)), 2))
        seen, least, most = 0.0, -1.0, np.zeros(_DRAWS)
        for a, b in pairs:
            apart, hidden = self._levels[a] - self._levels[b], spread[a] - spread[b]
            largest = float(np.abs(apart).max())
            by_chance = np.quantile(np.abs(hidden).max(axis=1), 1 - (1 - LEVEL) / len(pairs))
            seen, least = max(seen, largest), max(least, largest - float(by_chance))
            most = np.maximum(most, np.abs(_between(apart) - hidden).max(axis=1))
            lumps = np.flatnonzero(self._lumps[a] | self._lumps[b])
            for low, high in ((lumps, lumps + 1), (lumps + 1, lumps)):
                apart, hidden = self._levels[a, high] - self._levels[b, low], spread[a][:, _FINER * high]
                inside = np.abs(apart - hidden + spread[b][:, _FINER * low]).max(axis=1, initial=0.0)
                most = np.maximum(most, inside)
        return seen, least, float(np.quantile(most, LEVEL)) + self.owed

    def said(self, bound: float) -> tuple[float, float, str]:
        """What becomes ``gap_``, ``gap_bound_`` and ``constraint_holds_``."""
        seen, least, most = self._limits
        gap = min(1.0, seen)
        if not self.sees_all:
            return gap, 1.0, "within the noise"
        return gap, min(1.0, most), "yes" if most <= bound else "no" if least > bound else "within the noise"


def _between(at_ends: Floats) -> Floats:
    """Values at the ends of cells and at points between them."""
    places = np.arange(len(at_ends))
    return np.interp(np.linspace(0, places[-1], _FINER * places[-1] + 1), places, at_ends)


def _deviations(n_rows: Any, at: Floats, noise: float, seed: int) -> Floats:
    """Draws of how far a noisy distribution function is from the population's, where that has these values: of sampling
    a Brownian bridge; noise is in the counts of cells, and straight within them."""
    rng = np.random.default_rng(seed)
    n_cells = (len(at) - 1) // _FINER
    sampled = (rng.standard_normal((_DRAWS, len(at) - 1)) * np.sqrt(np.diff(at) / n_rows)).cumsum(axis=1)
    noisy = (rng.standard_normal((_DRAWS, n_cells)) * (noise / n_rows)).cumsum(axis=1)
    steps = np.linspace(0, n_cells, len(at))[1:]
    whole = np.minimum(steps.astype(np.int64), n_cells - 1)
    noisy = np.pad(noisy, ((0, 0), (1, 0)))
    sampled += noisy[:, whole] + (steps - whole) * (noisy[:, whole + 1] - noisy[:, whole])
    sampled -= at[1:] * sampled[:, -1:]
    return np.pad(sampled, ((0, 0), (1, 0)))
