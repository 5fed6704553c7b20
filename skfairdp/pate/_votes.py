"""How teachers vote: what a vote is going to release, and parts that plan their releases and make them."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from skfairdp import privacy
from skfairdp._docs import shared_docs
from skfairdp._usefulness import VoteForecast
from skfairdp._utils import progress_bar
from skfairdp._utils._sklearn import Interval, StrOptions
from skfairdp.fairness import FairnessGate

BitAndMaximum = tuple[privacy.NoisyThreshold, privacy.GNMax]
UNANSWERED = -1
#: What is released beside votes on public rows.
NOTHING = privacy.NoOpDpEvent()
# Beyond this many votes of discrete noise, summing its exact distribution takes minutes and then all memory.
MAX_DISCRETE_SIGMA = 2.0**18
#: What a scale of noise may be, in votes; None is calibrated.
NOISE_SCALE = [Interval(Real, 1e-9, 1e9, closed="both"), None]


@dataclass(frozen=True)
class VotePlan:
    """Mechanisms of a vote, how often each may run, and the event that caps it all.
    Nothing in it depends on a private value, so it is the same for every data set and transcript."""

    event: privacy.DpEvent
    relation: privacy.NeighboringRelation
    releases: tuple[str, ...]
    n_queries: int
    n_teachers: int
    histogram: privacy.NoisyVotes | Any = None
    maximum: privacy.GNMax | Any = None
    bit: privacy.NoisyThreshold | Any = None
    n_maxima: int = 0
    filter_mu: float | None = None
    rows_of: str = ""

    @property
    def sigma(self) -> float:
        """Noise on each released count, in votes."""
        mechanism = self.histogram or self.maximum
        return 0.0 if mechanism is None else mechanism.sigma


@dataclass(frozen=True)
class ReleasedVotes:
    """What left the private side, in the order of the queries."""

    labels: NDArray[np.int64] | Any
    shares: NDArray[np.float64] | Any = None
    noise_std: float = 0.0
    class_counts: NDArray[np.float64] | None = None
    forecast: VoteForecast | None = None

    @property
    def values(self) -> NDArray[Any]:
        """Shares or labels, whichever were released."""
        return self.shares if self.labels is None else self.labels


@dataclass(frozen=True)
class Asked:
    """What votes are planned for: the arguments of :meth:`Voting.plan`, and the Gaussian cost μ that they may have."""

    epsilon: float
    delta: float
    n_queries: int
    n_teachers: int
    n_classes: int
    noise: str
    relation: privacy.NeighboringRelation
    beside: privacy.DpEvent
    mu: float

    @property
    def of_mechanisms(self) -> dict[str, Any]:
        """What every mechanism of votes is told."""
        return {"noise": self.noise, "n_teachers": self.n_teachers, "relation": self.relation}


# ---- parts ---------------------------------------------------------------------------------------------------
@dataclass(kw_only=True, eq=False, repr=False)
class Voting(BaseEstimator):
    """How teachers vote: what is planned, and what is released as planned. Parts fill in ``_plan`` and ``_release``."""

    sigma: float | None = None
    noise: str = "gaussian"
    max_queries: int | None = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "sigma": NOISE_SCALE,
        "noise": [StrOptions({"gaussian", "discrete_gaussian"})],
        "max_queries": [Interval(Integral, 1, None, closed="left"), None],
    }
    #: The name a part goes by, and the most rows asked about unless told otherwise (None: all).
    name: ClassVar[str]
    usual_queries: ClassVar[int | None] = 1000
    #: Whether the gate is consulted before each vote, instead of on labels that are released already.
    asks_gate: ClassVar[bool] = False

    def plan(
        self,
        *,
        epsilon: float,
        delta: float,
        n_queries: int,
        n_teachers: int,
        n_classes: int,
        relation: privacy.NeighboringRelation = privacy.NeighboringRelation.REPLACE_ONE,
        beside: privacy.DpEvent = NOTHING,
    ) -> VotePlan:
        """Choose the noise so that what is asked costs at most ``epsilon``.

        Parameters
        ----------
        epsilon, delta : float
            What the votes may cost.
        n_queries, n_teachers, n_classes : int
            How many rows are asked about, how many vote, and how many answers there are.
        relation : NeighboringRelation, default=NeighboringRelation.REPLACE_ONE
            Which data sets count as neighbours.
        beside : DpEvent, default=NoOpDpEvent()
            Gaussian and pure releases of the same fit, which ``epsilon`` has to cover as well.

        Returns
        -------
        plan : VotePlan
            The releases, with their noise and their event.

        Raises
        ------
        ValueError
            A given scale of noise costs more than ``epsilon``, nothing is left, or discrete noise would be too large.
        """
        if n_classes < 2:  # a public domain of one class: nothing private is asked
            return VotePlan(privacy.NoOpDpEvent(), relation, ("nothing: one class",), n_queries, n_teachers)
        # Of the budget what other releases leave: the Gaussian ones add up as squares, a pure ε is taken off before.
        spent = {privacy.GaussianDpEvent: 0.0, privacy.LaplaceDpEvent: 0.0}
        for leaf, times in privacy.flatten(beside).items():
            power = 2 if isinstance(leaf, privacy.GaussianDpEvent) else 1
            spent[type(leaf)] += times / leaf.noise_multiplier**power
        left = privacy.gdp_mu(epsilon - spent[privacy.LaplaceDpEvent], delta) ** 2 - spent[privacy.GaussianDpEvent]
        if left <= 0:
            raise ValueError(
                f"{type(self).__name__} has nothing left for its votes: what else is released costs all of the epsilon="
                f"{epsilon:g}. Lower 'budget_share' of SyntheticRows."
            )
        mu = math.sqrt(left)
        given = [getattr(self, name, None) or 0.0 for name in ("sigma_threshold", "sigma")]
        largest = max(math.sqrt(4 * n_queries) / mu, *given)
        if self.noise == "discrete_gaussian" and largest > MAX_DISCRETE_SIGMA:
            raise ValueError(
                f"noise='discrete_gaussian' would need a scale of about {largest:.3g} votes in {type(self).__name__}, "
                f"more than the {MAX_DISCRETE_SIGMA:.0f} up to which it is offered. Raise 'epsilon', lower "
                "'max_queries', or take noise='gaussian'."
            )
        plan = self._plan(Asked(epsilon, delta, n_queries, n_teachers, n_classes, self.noise, relation, beside, mu))
        cost = privacy.epsilon_of(privacy.compose(beside, plan.event), delta)
        if cost > epsilon:
            raise ValueError(
                f"The noise scales given to {type(self).__name__} cost epsilon={privacy.rounded_up(cost)} at "
                f"delta={delta:g} for {n_queries} queries, more than the epsilon={epsilon:g} asked for. Raise them, "
                "lower 'max_queries', or leave them None."
            )
        return plan

    def release(
        self,
        votes: NDArray[Any],
        plan: VotePlan,
        noise: privacy.NoiseSource,
        *,
        gate: FairnessGate | None = None,
        groups: NDArray[np.int64] | None = None,
        verbose: int = 0,
    ) -> ReleasedVotes:
        """Release as much of the votes as the plan pays for.

        Parameters
        ----------
        votes : ndarray of shape (n_queries, n_classes)
            Private. Counts; for soft votes also sums of what teachers split.
        plan : VotePlan
            What may be released.
        noise : NoiseSource
            Where the noise comes from.
        gate : FairnessGate or None, default=None
            Consulted before each query where ``asks_gate`` says so; its counters are public.
        groups : ndarray of int of shape (n_queries,) or None, default=None
            Public group codes, needed with a gate.
        verbose : int, default=0
            Above 0, show a progress bar.

        Returns
        -------
        released : ReleasedVotes
            Labels, or noisy shares.

        Raises
        ------
        ValueError
            More queries than the plan covers; nothing is released then.
        """
        if len(votes) > plan.n_queries:
            raise ValueError(
                f"The plan covers {plan.n_queries} queries, but there are votes on {len(votes)}. Plan more."
            )
        if isinstance(plan.event, privacy.NoOpDpEvent):  # one class
            return ReleasedVotes(np.zeros(len(votes), dtype=np.int64))
        return self._release(votes, plan, noise, gate=gate, groups=groups, verbose=verbose)

    def _plan(self, asked: Asked) -> VotePlan:
        raise NotImplementedError

    def _mechanism(self, kind: Callable[..., Any], asked: Asked, guess: float) -> Any:
        """With the noise that is given, else with the least at which every query may be answered once."""
        at, times = partial(kind, n_classes=asked.n_classes, **asked.of_mechanisms), asked.n_queries
        if self.sigma is not None:
            return at(self.sigma)

        def cost(sigma: float) -> privacy.DpEvent:
            return privacy.compose(asked.beside, privacy.repeat(at(sigma).event, times))

        return at(privacy.calibrate_noise(cost, asked.epsilon, asked.delta, guess=guess))

    def _release(self, votes: NDArray[Any], plan: VotePlan, noise: privacy.NoiseSource, **how: Any) -> ReleasedVotes:
        raise NotImplementedError


@shared_docs
@dataclass(kw_only=True, eq=False, repr=False)
class SoftVoting(Voting):
    """Release the noisy share of the votes that each class of each query got.

    Labels, gates and students are then post-processing, so all of them can be changed for free. (Papernot et al.'s
    aggregation without its argmax: the student learns from shares.)

    Parameters
    ----------
    {noise_of_votes, max_queries}
    threshold : float, default=0.6
        Share of the votes a label needs, in (0.5, 1]; of the share that a regression on all queries estimates.

    See Also
    --------
    GNMaxVoting, ConfidentVoting

    Examples
    --------
    >>> from skfairdp.pate import SoftVoting
    >>> plan = SoftVoting().plan(epsilon=1.0, delta=1e-5, n_queries=100, n_teachers=50, n_classes=2)
    >>> plan.releases, round(plan.sigma, 1)
    (('100 noisy vote histograms',), 37.3)
    """

    threshold: float = 0.6

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **Voting._parameter_constraints,
        "threshold": [Interval(Real, 0.5, 1, closed="right")],
    }
    name, usual_queries = "soft", None

    def _plan(self, asked: Asked) -> VotePlan:
        times, moved = asked.n_queries, 1.0 if asked.n_classes <= 2 else math.sqrt(2.0)
        histogram = self._mechanism(privacy.NoisyVotes, asked, moved * math.sqrt(times) / asked.mu)
        event, releases = privacy.repeat(histogram.event, times), (f"{times} noisy vote histograms",)
        return VotePlan(event, asked.relation, releases, times, asked.n_teachers, histogram=histogram)

    def _release(self, votes: NDArray[Any], plan: VotePlan, noise: privacy.NoiseSource, **how: Any) -> ReleasedVotes:
        """All shares at once."""
        n_teachers = plan.histogram.n_teachers
        return ReleasedVotes(None, plan.histogram.release(votes, noise) / n_teachers, plan.sigma / n_teachers)

    def labels(self, shares: NDArray[np.float64]) -> NDArray[np.int64]:
        """The labels of estimated shares, ``UNANSWERED`` where none reaches the threshold.

        Parameters
        ----------
        shares : ndarray of shape (n_rows, n_classes)
            Released, or estimated from what was released.

        Returns
        -------
        labels : ndarray of int of shape (n_rows,)
            Codes of classes.
        """
        return np.where(shares.max(axis=1) >= self.threshold, shares.argmax(axis=1), UNANSWERED)


@shared_docs
@dataclass(kw_only=True, eq=False, repr=False)
class GNMaxVoting(Voting):
    """Release the noisy winner of every query: GNMax of Papernot et al. (2018).

    Parameters
    ----------
    {noise_of_votes, max_queries}

    See Also
    --------
    SoftVoting, ConfidentVoting

    Examples
    --------
    >>> from skfairdp.pate import GNMaxVoting
    >>> plan = GNMaxVoting().plan(epsilon=1.0, delta=1e-5, n_queries=100, n_teachers=50, n_classes=3)
    >>> plan.releases, round(plan.sigma, 1)
    (('100 noisy maxima',), 52.8)
    """

    name = "gnmax"

    def _plan(self, asked: Asked) -> VotePlan:
        times = asked.n_queries
        maximum = self._mechanism(privacy.GNMax, asked, math.sqrt(2 * times) / asked.mu)
        event, releases = privacy.repeat(maximum.event, times), (f"{times} noisy maxima",)
        return VotePlan(event, asked.relation, releases, times, asked.n_teachers, maximum=maximum, n_maxima=times)

    def _release(self, votes: NDArray[Any], plan: VotePlan, noise: privacy.NoiseSource, **how: Any) -> ReleasedVotes:
        """The winners one by one."""
        labels = np.full(len(votes), UNANSWERED, dtype=np.int64)
        for i in progress_bar(range(len(votes)), desc="voting", verbose=how["verbose"]):
            labels[i] = plan.maximum.release(votes[i], noise)
        return ReleasedVotes(labels)


@shared_docs
@dataclass(kw_only=True, eq=False, repr=False)
class ConfidentVoting(Voting):
    """Release the noisy winner of a query only if a noisy count shows that it has enough votes (CF-GNMax).

    Confident-GNMax of Papernot et al. (2018). With a gate it is CF-GNMax+: the gate is asked first, on public counters,
    which classes a group may be given; the threshold is for the best of those; an argmax follows only where there is
    more than one. (In FairPATE's published CF-GNMax the gate comes after the noise, and a label that it rejects has
    still been charged.)

    Parameters
    ----------
    {noise_of_votes, max_queries}
    threshold : float, default=0.6
        Share of the votes a label needs, in (0.5, 1].
    sigma_threshold : float or None, default=None
        Noise on the largest count, in votes. None: calibrated to the budget.
    max_answers : int or None, default=None
        Most noisy maxima released, where they are counted. None: 60 % of the queries.
    accounting : {"auto", "binary", "gdp"}, default="auto"
        "binary" declares counts and sums the exact cost of each published bit; "gdp" runs the adaptive Gaussian
        filter, which takes Gaussian noise only. "auto": binary for two classes or discrete noise, else the filter.

    See Also
    --------
    SoftVoting, GNMaxVoting

    Examples
    --------
    >>> from skfairdp.pate import ConfidentVoting
    >>> plan = ConfidentVoting().plan(epsilon=1.0, delta=1e-5, n_queries=100, n_teachers=50, n_classes=2)
    >>> plan.releases, round(plan.sigma, 1)
    (('100 thresholds', 'at most 60 noisy maxima'), 50.1)
    """

    threshold: float = 0.6
    sigma_threshold: float | None = None
    max_answers: int | None = None
    accounting: str = "auto"

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **Voting._parameter_constraints,
        "threshold": [Interval(Real, 0.5, 1, closed="right")],
        "sigma_threshold": NOISE_SCALE,
        "max_answers": [Interval(Integral, 1, None, closed="left"), None],
        "accounting": [StrOptions({"auto", "binary", "gdp"})],
    }
    name, asks_gate = "confident", True

    def _plan(self, asked: Asked) -> VotePlan:
        """A threshold per query, and noisy maxima up to a count or a filter."""
        n_queries, mu, votes = asked.n_queries, asked.mu, asked.of_mechanisms
        n_maxima = min(n_queries, self.max_answers or math.ceil(0.6 * n_queries))

        # Equal shares of the squared Gaussian cost for thresholds and maxima.
        def mechanisms(factor: float) -> BitAndMaximum:
            first = self.sigma_threshold or factor * math.sqrt(2 * n_queries) / mu
            second = self.sigma or factor * math.sqrt(4 * n_maxima) / mu
            threshold = privacy.NoisyThreshold(first, threshold=self.threshold * asked.n_teachers, **votes)
            return threshold, privacy.GNMax(second, n_classes=asked.n_classes, **votes)

        plan = partial(VotePlan, relation=asked.relation, n_queries=n_queries, n_teachers=asked.n_teachers)
        if self.accounting == "gdp" and asked.noise != "gaussian":
            raise ValueError(
                "accounting='gdp' of ConfidentVoting needs noise='gaussian': the discrete Gaussian is not exactly "
                "Gaussian-DP. Use accounting='binary' or 'auto' with noise='discrete_gaussian'."
            )
        several = asked.n_classes > 2 and asked.noise == "gaussian"
        if self.accounting == "gdp" or (self.accounting == "auto" and several):
            return self._filtered(plan, *mechanisms(1.0), asked)
        return self._counted(plan, mechanisms, n_maxima, asked)

    def _filtered(
        self, plan: Callable[..., VotePlan], bit: privacy.NoisyThreshold, maximum: privacy.GNMax, asked: Asked
    ) -> VotePlan:
        step = bit.mu_squared + maximum.mu_squared
        cap = min(asked.mu, math.sqrt(asked.n_queries * step))  # never certify more than the queries could ever use

        def cost(cap: float) -> float:
            return privacy.epsilon_of(privacy.compose(asked.beside, privacy.GaussianDpEvent(1 / cap)), asked.delta)

        while cost(cap) > asked.epsilon:
            cap *= 1 - 1e-12  # 1/cap was rounded down
        filter_mu = cap * (1 - 1e-12)  # the filter stays below what the event states, whatever 1/cap rounded to
        if step > filter_mu**2:
            raise ValueError(
                f"With the noise scales given to ConfidentVoting not even one query fits epsilon={asked.epsilon:g}. "
                "Raise 'sigma_threshold' or 'sigma', or leave them None."
            )
        releases = (f"thresholds and noisy maxima until mu={privacy.rounded_up(filter_mu, 6)}",)
        event = privacy.GaussianDpEvent(1 / cap)
        return plan(event=event, releases=releases, bit=bit, maximum=maximum, filter_mu=filter_mu)

    def _counted(
        self, plan: Callable[..., VotePlan], mechanisms: Callable[[float], BitAndMaximum], n_maxima: int, asked: Asked
    ) -> VotePlan:
        n_queries = asked.n_queries

        def declared(factor: float) -> privacy.DpEvent:
            bit, maximum = mechanisms(factor)
            return privacy.compose(privacy.repeat(bit.event, n_queries), privacy.repeat(maximum.event, n_maxima))

        def cost(factor: float) -> privacy.DpEvent:
            return privacy.compose(asked.beside, declared(factor))

        factor = 1.0
        if self.sigma_threshold is None or self.sigma is None:
            try:
                factor = privacy.calibrate_noise(cost, asked.epsilon, asked.delta, guess=0.85)
            except ValueError:
                raise ValueError(
                    f"The noise scale given to ConfidentVoting alone costs more than epsilon={asked.epsilon:g}. "
                    "Raise it, lower 'max_queries', or leave it None."
                ) from None
        bit, maximum = mechanisms(factor)
        releases = (f"{n_queries} thresholds", f"at most {n_maxima} noisy maxima")
        return plan(event=declared(factor), releases=releases, bit=bit, maximum=maximum, n_maxima=n_maxima)

    def _release(self, votes: NDArray[Any], plan: VotePlan, noise: privacy.NoiseSource, **how: Any) -> ReleasedVotes:
        """Ask query by query, as far as the plan pays."""
        labels = np.full(len(votes), UNANSWERED, dtype=np.int64)
        budget, everything = Budget(plan), np.ones(votes.shape[1], dtype=bool)
        gate, groups = how["gate"], how["groups"]
        for i in progress_bar(range(len(votes)), desc="voting", verbose=how["verbose"]):
            z = -1 if groups is None else int(groups[i])
            admissible = everything if gate is None else gate.admissible(z)
            n_admissible = int(np.count_nonzero(admissible))
            # All that decides whether to ask is public: counters of earlier answers, groups of public rows.
            if n_admissible == 0 or not budget.admits(may_need_argmax=n_admissible > 1):
                continue
            budget.spend_threshold()
            if not plan.bit.release(int(votes[i, admissible].max()), noise):
                continue
            if n_admissible == 1:
                labels[i] = int(np.argmax(admissible))  # the bit already says it: no argmax, no further cost
            else:
                budget.spend_argmax()
                labels[i] = plan.maximum.release(votes[i], noise, admissible)
            if gate is not None:
                gate.record(z, int(labels[i]))
        return ReleasedVotes(labels)


class Budget:
    """Counts down a plan. A threshold starts only if the argmax it may lead to is paid for as well."""

    def __init__(self, plan: VotePlan) -> None:
        self._plan, self._thresholds, self._maxima = plan, plan.n_queries, plan.n_maxima
        self._filter = privacy.GDPFilter(plan.filter_mu) if plan.filter_mu is not None else None

    def admits(self, *, may_need_argmax: bool) -> bool:
        """Whether one more query may start. Depends on public values and earlier outputs only."""
        plan = self._plan
        if self._filter is not None:
            return self._filter.fits(plan.bit.mu_squared + (plan.maximum.mu_squared if may_need_argmax else 0.0))
        return self._thresholds > 0 and (self._maxima > 0 or not may_need_argmax)

    def spend_threshold(self) -> None:
        if self._filter is not None:
            self._filter.spend(self._plan.bit.mu_squared)
        self._thresholds -= 1

    def spend_argmax(self) -> None:
        if self._filter is not None:
            self._filter.spend(self._plan.maximum.mu_squared)
        self._maxima -= 1
