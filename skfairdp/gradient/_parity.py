"""Where the parity of FairDP-SGD comes from, and how sure its answers may be."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.special import expit, logsumexp
from sklearn.base import BaseEstimator, clone

from skfairdp._docs import shared_docs
from skfairdp._estimator import as_part
from skfairdp._inputs import PublicRows, TrainingData
from skfairdp._judge import Judge
from skfairdp._typing import Floats, Ints
from skfairdp._utils._sklearn import Interval, StrOptions
from skfairdp.fairness import RateConstraints, read_rate_constraints
from skfairdp.privacy import DpEvent, GaussianMechanism, NeighboringRelation, NoiseSource, Protects, compose, gdp_mu

if TYPE_CHECKING:
    from skfairdp._column_tables import ColumnTables, Cost, Scaling
    from skfairdp._networks import DPStep, Net, Network
    from skfairdp._usefulness import AmountMean
    from skfairdp.gradient._signed_loss import DualPlan

#: Of what rates may cost, what is kept for the judge.
JUDGED = 0.3


@dataclass(frozen=True)
class DPSGDPlan:
    """What a FairDP-SGD releases."""

    net: "Net"
    step: "DPStep"
    duals: "DualPlan | Any" = None
    look: Any = None
    temperature: "Temperature | None" = None
    scaling: "Scaling | None" = None
    taken: str | None = None
    parity: "PublicPenalty | SignedLoss | None" = None
    judge: Any = None
    target: "ColumnTables | AmountMean | None" = None
    rows_of: str = ""

    @property
    def tables(self) -> "ColumnTables | None":
        """What releases where the numbers of each column lie, where public rows do not say so."""
        return None if self.scaling is None else self.scaling.tables

    @property
    def event(self) -> DpEvent:
        """Gradients, rates, the tables of numbers and of answers, the second look and the judge together."""
        more = beside(self.duals, self.tables, self.temperature, self.target, self.look, self.judge)
        return self.step.event_with(more)

    @property
    def relation(self) -> NeighboringRelation:
        """Of the guarantee."""
        return self.step.relation

    @property
    def releases(self) -> tuple[str, ...]:
        """In words, for the ledger."""
        network = "" if self.taken is None else f" of the network {self.taken!r}"
        of_subjects = " of subjects" if self.relation.protects == Protects.SUBJECT else ""
        gradients = f"{self.step.steps} noisy clipped gradient sums{of_subjects}{network}"
        rates = () if self.duals is None else (f"{self.duals.releases} noisy tables of predictions by group",)
        looks = (self.tables, self.temperature, self.target, self.look, self.judge)
        return (gradients, *rates, *chain.from_iterable(one.releases for one in looks if one is not None))


def beside(*plans: Any) -> DpEvent | None:
    """What is released beside the gradients, by those of the plans that there are."""
    events = [plan.event for plan in plans if plan is not None]
    return compose(*events) if len(events) > 1 else events[0] if events else None


@shared_docs
@dataclass(kw_only=True, eq=False, repr=False)
class PublicPenalty(BaseEstimator):
    """A penalty on the disparity of predictions on public rows with groups: costs no privacy.

    The largest difference between a group's mean prediction and that of all others, softened so that it has a gradient
    (DPFR of FairDP-SGD, Yaghini et al. 2023, equation 1). It reads public rows and the present network only.

    Parameters
    ----------
    temperature : float, default=1.0
        Softness of predictions and maximum; the penalty tends to the hard gap as this goes to 0. At 0.01, which the
        paper takes, most rows have no gradient left.
    max_type : {"hard", "soft"}, default="hard"
        How the largest disparity is taken. "soft" (the paper's) averages with weights ``softmax(disparity /
        temperature)``, which flattens the penalty near parity unless the temperature is small.
    batch_size : int, default=256
        Evaluate the penalty on about so many public rows a step, in batches that hold every group in its share and take
        turns. None takes all: exact, and slower than the private step where they outnumber its batch.
    apply_to : {"batch", "per_sample"}, default="batch"
        "batch" adds the gradient of the penalty to the released one: unbiased, unclipped. "per_sample" adds it to the
        gradient of every private row, inside the clipping (Algorithm 6 of the paper as printed; divided by the
        *expected* batch size, since the realised one, which the paper takes, is private).

    See Also
    --------
    SignedLoss : Parity without public rows.

    Examples
    --------
    >>> from skfairdp.gradient import FairDPSGDClassifier, PublicPenalty
    >>> FairDPSGDClassifier(parity=PublicPenalty(temperature=0.3)).get_params()["parity__temperature"]
    0.3
    """

    temperature: float = 1.0
    max_type: str = "hard"
    batch_size: int | None = 256
    apply_to: str = "batch"

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "temperature": [Interval(Real, 0, None, closed="neither")],
        "max_type": [StrOptions({"soft", "hard"})],
        "batch_size": [Interval(Integral, 2, None, closed="left"), None],
        "apply_to": [StrOptions({"batch", "per_sample"})],
    }

    shorthand = "public_penalty"
    #: Where the user gives none. A smaller bound shortens what rows pull at, and not the penalty, which then wins.
    usual_max_grad_norm = 4.0
    usual_lam = 1.0
    #: Of the squared cost of a fit: a penalty on public rows costs nothing.
    share_left = 1.0

    def rows_read(self, lam: float | None) -> dict[str, Any]:
        """Say which rows and groups a fit reads.

        {rows_read}
        """
        if lam != 0:
            return {"groups": "public", "public_rows": "given"}
        return {"groups": "public, if given", "public_rows": "optional"}

    def plan(self, epsilon: float, delta: float, relation: NeighboringRelation) -> None:
        """Plan nothing: a penalty on public rows releases nothing of private ones.

        {parity_to_plan}
        """

    def judge(self, data: TrainingData, n_rows: int, net: "Net", cost: "Cost") -> None:
        """Plan nothing: the network is judged by the public rows.

        {judge_to_plan}
        """

    def terms(self, plan: "DPSGDPlan", data: TrainingData, network: "Network", lam: float | None, seed: int) -> Any:
        """Say what the training adds to its private gradients.

        {parity_terms}
        """
        from skfairdp._networks import ParityPenalty

        public = data.public
        rows = network.tensor(public.X), network.codes(public.groups), public.n_groups
        how: Any = self.temperature, self.max_type, self.batch_size, seed, self.apply_to == "per_sample"
        return {"penalty": ParityPenalty(self.usual_lam if lam is None else lam, *rows, *how)}


@shared_docs
@dataclass(kw_only=True, eq=False, repr=False)
class SignedLoss(BaseEstimator):
    """Fairness constraints on the private rows: a signed loss that follows noisy rates; no public rows needed.

    It trains under any constraint on the rates of the predictions, and several at once. Each row carries its prediction
    with the sign and weight that the constraints give to its group (and its true class), inside the clipping. The
    weights follow the rates of the groups. These are released with noise a fixed number of times, as a table of counts,
    and are part of ε.

    Parity of errors is not bought with errors: a group that does better is given less weight, never a reward for being
    wrong. Where no other way leads to parity, a gap is left.

    Parameters
    ----------
    constraints : str, RateParity, RateBound, fairlearn moment, or list of them, default="demographic_parity"
        What to hold: "demographic_parity", "equalized_odds", "equal_opportunity" ("true_positive_rate_parity"),
        "false_positive_rate_parity", "false_negative_rate_parity", "accuracy_parity"; with a bound of your own
        :class:`~skfairdp.fairness.RateParity` and :class:`~skfairdp.fairness.RateBound`; or
        ``fairlearn.reductions.EqualizedOdds(difference_bound=0.02)`` and its like.
    dual_steps : int, default=40
        How often the rates of the groups are released, evenly over the training.
    dual_step : float, default=None
        How far a weight moves for a difference of rates of 1. None is 0.5, or more where that moves it by less than
        0.05, and as much less as keeps what the noise of all releases together moves it by at 0.25: less for a group
        of few rows, by released sizes.
    budget_share : float, default=0.1
        Share of the budget (of μ²) for those releases; in (0, 1). Up to 30 % of it are kept for the look at the end, at
        the answers of the network that is returned. The gradients, and what is released beside them, share the rest.

    See Also
    --------
    PublicPenalty : Parity on public rows, which costs no privacy.

    Examples
    --------
    >>> from skfairdp.gradient import FairDPSGDClassifier, SignedLoss
    >>> from skfairdp.fairness import RateBound
    >>> few_missed = SignedLoss(constraints=["equal_opportunity", RateBound("false_negative_rate", upper=0.1)])
    >>> FairDPSGDClassifier(parity=few_missed).get_params()["parity__dual_steps"]
    40
    """

    constraints: Any = "demographic_parity"
    dual_steps: int = 40
    dual_step: float | None = None
    budget_share: float = 0.1

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "constraints": "no_validation",  # read_rate_constraints says what is wrong
        "dual_steps": [Interval(Integral, 1, None, closed="left")],
        "dual_step": [Interval(Real, 0, None, closed="neither"), None],
        "budget_share": [Interval(Real, 0, 1, closed="neither")],
    }

    shorthand = "signed_loss"
    #: Its weights make gradients larger.
    usual_max_grad_norm = 4.0

    @property
    def share_left(self) -> float:
        """Of the squared cost of a fit, what the rates leave for gradients and what is released beside them."""
        return 1.0 - self.budget_share

    def rows_read(self, lam: float | None) -> dict[str, Any]:
        """Say which rows and groups a fit reads.

        {rows_read}
        """
        return {"groups": "none" if lam == 0 else "private", "public_rows": "none"}

    def plan(self, epsilon: float, delta: float, relation: NeighboringRelation) -> "DualPlan":
        """Plan the noisy rates, for their share of the budget.

        {parity_to_plan}

        Returns
        -------
        plan : DualPlan
            The noisy rates, with their event.
        """
        from skfairdp.gradient._signed_loss import DualPlan

        how: dict[str, Any] = {"share": (1 - JUDGED) * self.budget_share, "releases": self.dual_steps}
        return DualPlan.calibrated(epsilon=epsilon, delta=delta, relation=relation, **how)

    def constraints_for(self, data: TrainingData) -> RateConstraints:
        """The constraints on the rates of these groups and classes.

        Parameters
        ----------
        data : TrainingData
            With groups.

        Returns
        -------
        constraints : RateConstraints
            For the training and for the judge.
        """
        asked = read_rate_constraints(self.constraints, "SignedLoss")
        return RateConstraints(asked, data.domain.tolist(), data.classes.tolist(), "SignedLoss")

    def judge(self, data: TrainingData, n_rows: int, net: "Net", cost: "Cost") -> "Judge":
        """Plan the look at the answers of the network that is returned.

        {judge_to_plan}

        Returns
        -------
        judge : Judge
            The noisy table, with its event.
        """
        how: dict[str, Any] = {"share": JUDGED * self.budget_share, "passes": net.max_epochs}
        how["n_features"] = net.width(data.X.shape[1], data.n_outputs)
        return Judge(self.constraints_for(data), n_rows, *cost[:3], **how)

    def terms(self, plan: "DPSGDPlan", data: TrainingData, network: "Network", lam: float | None, seed: int) -> Any:
        """Say what the training adds to its private gradients.

        {parity_terms}
        """
        from skfairdp.gradient._signed_loss import RateLagrangian

        how: Any = {"bound": lam, "dual_step": self.dual_step, "plan": plan.duals, "steps": plan.step.steps}
        how["max_grad_norm"] = plan.step.max_grad_norm
        return {"groups": data.groups, "loss": RateLagrangian(self.constraints_for(data), **how)}


_PARTS: dict[str, Any] = {part.shorthand: part for part in (PublicPenalty, SignedLoss)}
_HINT = " A constraint is not one: constraints='equalized_odds'."


def as_parity(parity: Any, owner: str, *, has_public_rows: bool, constraints: Any = None) -> PublicPenalty | SignedLoss:
    """Return the part that ``parity`` is or names, with its parameters checked; None follows the rows there are. With
    ``constraints`` it is the signed loss of those, with what else a given one says."""
    if parity is None:
        parity = "public_penalty" if has_public_rows and constraints is None else "signed_loss"
    part: PublicPenalty | SignedLoss = as_part(parity, _PARTS, parameter="parity", owner=owner, hint=_HINT)
    if constraints is None:
        return part
    asked = read_rate_constraints(constraints, owner)
    if isinstance(part, PublicPenalty):
        raise ValueError(
            f"{owner} got constraints (or 'gamma') and a penalty on public rows, which enforces no bound. Leave out "
            "'parity', or take parity='signed_loss'."
        )
    if part.constraints != "demographic_parity" and read_rate_constraints(part.constraints, owner) != asked:
        raise ValueError(
            f"{owner} got constraints (or 'gamma') and a SignedLoss that has others. Leave out those of the SignedLoss."
        )
    return clone(part).set_params(constraints=constraints)


def default_parity(public: PublicRows, n_rows: int, rates: "DualPlan") -> PublicPenalty | SignedLoss:
    """The signed loss where it knows the rates of the smallest group clearly better, by public numbers. A penalty is
    fair to m public rows of a group, a rate off by ``.5 / sqrt(m)`` at most; the private table has r times as many and
    noise on each count. The penalty is free and the signed loss is not, so it has to halve the error."""
    fewest = np.bincount(public.groups, minlength=public.n_groups).min()
    fewest_private = fewest * n_rows / len(public.X)
    noise = rates.noise / math.sqrt(rates.releases) / fewest_private
    by_private, by_public = math.hypot(0.5 / math.sqrt(fewest_private), noise), 0.5 / math.sqrt(fewest)
    return SignedLoss() if by_private < by_public / 2 else PublicPenalty()


#: Of the squared cost that rates of groups leave: gradients have 4 % more noise, and the log loss is a third lower.
SHARE = 0.08
#: Between the log odds that the predicted class has for the network, and what stands for each part.
EDGES = np.array([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0])
ODDS = np.concatenate([[0.0], (EDGES[1:] + EDGES[:-1]) / 2, [14.0]])
FACTORS = np.geomspace(0.05, 2.0, 61)
CLEAR_OF_NOISE = 1.0  # standard deviations that a line of the table has to hold
OPINION = 0.25  # of a standard deviation: rows as sure as they are right, against tables of right answers alone
ROWS_AT_ONCE = 8192


def private_answers(module: Any, X: Any, relation: NeighboringRelation) -> Iterator[tuple[slice, Floats]]:
    """Which private rows, and their logits. Where a row may come or go each is asked alone: how it is rounded hangs on
    its batch."""
    from skfairdp._networks import private_logits

    size = ROWS_AT_ONCE if relation.number_is_public else 1
    for start in range(0, len(X), ROWS_AT_ONCE):
        some = slice(start, start + ROWS_AT_ONCE)
        yield some, private_logits(module, X[some], size)


@dataclass(frozen=True)
class Temperature:
    """A table of rows, by how sure the network is of its answer and whether that is right, released once. Clipping
    makes networks surer than they should be; a factor on all logits mends that, changes no answer, and so no rate of
    any group. A record that comes, goes or gives way to a null record moves one count by one."""

    epsilon: float
    delta: float
    relation: NeighboringRelation
    share: float = 1.0
    releases: ClassVar[tuple[str, ...]] = ("a noisy table of how sure and how often right the network is",)

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

    def table(self, module: Any, X: Any, y: Ints) -> Floats:
        """Count rows by how sure the network is, and by whether it is wrong or right. Private."""
        found = np.zeros((len(ODDS), 2))
        for some, logits in private_answers(module, X, self.relation):
            known = ~np.isnan(logits).any(axis=1)  # a row without an answer counts nowhere
            logits, truth = logits[known], y[some][known]
            answer = logits.argmax(axis=1)[:, None]
            best = np.take_along_axis(logits, answer, axis=1)[:, 0]
            np.put_along_axis(logits, answer, -np.inf, axis=1)
            sure = best - logsumexp(logits, axis=1)
            right = (answer[:, 0] == truth).astype(np.int64)
            np.add.at(found, (np.searchsorted(EDGES, sure, side="right"), right), 1.0)
        return found

    def factor(self, noisy: Floats) -> float:
        """Return the factor under which so many right answers are least surprising; post-processing. Lines that may be
        noise alone are left out. Each of the others gets a few rows of the network's own opinion."""
        sigma = self.counts.sigma
        rows = noisy.sum(axis=1)
        kept = rows > CLEAR_OF_NOISE * math.sqrt(2) * sigma
        believed = np.stack([expit(-ODDS), expit(ODDS)], axis=1)
        counts = (np.maximum(noisy, 0.0) + OPINION * sigma * believed)[kept]
        odds = np.outer(FACTORS, ODDS[kept])
        surprise = np.logaddexp(0, odds) @ counts[:, 0] + np.logaddexp(0, -odds) @ counts[:, 1]
        return float(FACTORS[surprise.argmin()]) if kept.any() else 1.0

    def release(self, module: Any, X: Any, y: Ints, noise: NoiseSource) -> Any:
        """Release how sure and how right the module is; return it with its last layer scaled by that."""
        from skfairdp._networks import scale_last_layer

        return scale_last_layer(module, self.factor(self.counts.release(self.table(module, X, y), noise)))
