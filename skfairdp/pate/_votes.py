"""How teachers vote: what a vote is going to release, and parts that plan their releases and make them."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from skfairdp._usefulness import VoteForecast
from skfairdp._utils import progress_bar
from skfairdp._utils._sklearn import Interval
from skfairdp.fairness import FairnessGate
from skfairdp.privacy import (
    DpEvent,
    GaussianDpEvent,
    GNMax,
    LaplaceDpEvent,
    NeighboringRelation,
    NoiseSource,
    NoisyThreshold,
    NoisyVotes,
    NoOpDpEvent,
    calibrate_noise,
    compose,
    epsilon_of,
    flatten,
    gdp_mu,
    repeat,
)

UNANSWERED = -1
#: What is released beside votes on public rows.
NOTHING = NoOpDpEvent()
# Beyond this many votes of discrete noise, summing its exact distribution takes minutes and then all memory.
MAX_DISCRETE_SIGMA = 2.0**18
#: What a scale of noise may be, in votes; None is calibrated.
NOISE_SCALE = [Interval(Real, 1e-9, 1e9, closed="both"), None]


@dataclass(frozen=True)
class VotePlan:
    """Mechanisms of a vote, how often each may run, and the event that caps it all.

    Nothing in it depends on a private value, so it is the same for every data set and transcript.
    """

    event: DpEvent
    relation: NeighboringRelation
    releases: tuple[str, ...]
    n_queries: int
    n_teachers: int
    histogram: NoisyVotes | None = None
    maximum: GNMax | None = None
    bit: NoisyThreshold | None = None
    n_maxima: int = 0
    filter_mu: float | None = None

    @property
    def sigma(self) -> float:
        """Noise on each released count, in votes."""
        mechanism = self.histogram or self.maximum
        return 0.0 if mechanism is None else mechanism.sigma


@dataclass(frozen=True)
class ReleasedVotes:
    """What left the private side, in the order of the queries."""

    labels: NDArray[np.int64] | None
    shares: NDArray[np.float64] | None = None
    noise_std: float = 0.0
    class_counts: NDArray[np.float64] | None = None
    forecast: VoteForecast | None = None

    @property
    def values(self) -> NDArray[Any]:
        """Shares or labels, whichever were released."""
        if self.labels is not None:
            return self.labels
        assert self.shares is not None
        return self.shares


def allowed_mu(part: Any, epsilon: float, delta: float, n_queries: int, noise: str, beside: DpEvent) -> float:
    """The Gaussian cost that the budget allows beside other releases, once discrete noise of that size can be offered.

    Those of the others that are Gaussian add up as squares; a pure ε is taken off before.
    """
    cost = {GaussianDpEvent: 0.0, LaplaceDpEvent: 0.0}
    for leaf, times in flatten(beside).items():
        cost[type(leaf)] += times / leaf.noise_multiplier ** (2 if isinstance(leaf, GaussianDpEvent) else 1)
    mu = math.sqrt(gdp_mu(epsilon - cost[LaplaceDpEvent], delta) ** 2 - cost[GaussianDpEvent])
    largest = max(
        math.sqrt(4 * n_queries) / mu, *(getattr(part, name, None) or 0.0 for name in ("sigma_threshold", "sigma"))
    )
    if noise == "discrete_gaussian" and largest > MAX_DISCRETE_SIGMA:
        raise ValueError(
            f"noise='discrete_gaussian' would need a scale of about {largest:.3g} votes in {type(part).__name__}, more "
            f"than the {MAX_DISCRETE_SIGMA:.0f} up to which it is offered. Raise 'epsilon', lower 'max_queries', or "
            "take noise='gaussian'."
        )
    return mu


@dataclass(frozen=True)
class Asked:
    """What votes are planned for: the arguments of :meth:`Voting.plan`, and the Gaussian cost μ that they may have."""

    epsilon: float
    delta: float
    n_queries: int
    n_teachers: int
    n_classes: int
    noise: str
    relation: NeighboringRelation
    beside: DpEvent
    mu: float

    @property
    def of_mechanisms(self) -> dict[str, Any]:
        """What every mechanism of votes is told."""
        return {"noise": self.noise, "n_teachers": self.n_teachers, "relation": self.relation}


def _calibrated(at: Callable[[float], Any], asked: Asked, guess: float) -> float:
    """The least noise at which every query may be answered once."""
    return calibrate_noise(
        lambda sigma: compose(asked.beside, repeat(at(sigma).event, asked.n_queries)),
        asked.epsilon,
        asked.delta,
        guess=guess,
    )


# ---- parts ---------------------------------------------------------------------------------------------------
class Voting(BaseEstimator):
    """How teachers vote: what is planned, and what is released as planned. Parts fill in ``_plan`` and ``_release``."""

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
        noise: str = "gaussian",
        relation: NeighboringRelation = NeighboringRelation.REPLACE_ONE,
        beside: DpEvent = NOTHING,
    ) -> VotePlan:
        """Choose the noise so that what is asked costs at most ``epsilon``.

        Parameters
        ----------
        epsilon, delta : float
            What the votes may cost.
        n_queries, n_teachers, n_classes : int
            How many rows are asked about, how many vote, and how many answers there are.
        noise : {"gaussian", "discrete_gaussian"}, default="gaussian"
            Noise on the counts.
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
            A given scale of noise costs more than ``epsilon``, or discrete noise would have to be too large.
        """
        if n_classes < 2:  # a public domain of one class: nothing private is asked
            return VotePlan(NoOpDpEvent(), relation, ("nothing: one class",), n_queries, n_teachers)
        mu = allowed_mu(self, epsilon, delta, n_queries, noise, beside)
        plan = self._plan(Asked(epsilon, delta, n_queries, n_teachers, n_classes, noise, relation, beside, mu))
        cost = epsilon_of(compose(beside, plan.event), delta)
        if cost > epsilon:
            raise ValueError(
                f"The noise scales given to {type(self).__name__} cost epsilon={cost:.4g} at delta={delta:g} for "
                f"{n_queries} queries, more than the epsilon={epsilon:g} asked for. Raise them, lower 'max_queries', "
                "or leave them None."
            )
        return plan

    def release(
        self,
        votes: NDArray[Any],
        plan: VotePlan,
        noise: NoiseSource,
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
                f"The plan pays for {plan.n_queries} queries, but there are votes on {len(votes)}. Plan more."
            )
        if isinstance(plan.event, NoOpDpEvent):  # one class
            return ReleasedVotes(np.zeros(len(votes), dtype=np.int64))
        return self._release(votes, plan, noise, gate, groups, verbose)

    def _plan(self, asked: Asked) -> VotePlan:
        raise NotImplementedError

    def _release(
        self, votes: NDArray[Any], plan: VotePlan, noise: NoiseSource, gate: Any, groups: Any, verbose: int
    ) -> ReleasedVotes:
        raise NotImplementedError


class SoftVoting(Voting):
    """Release the noisy share of the votes that each class of each query got.

    Labels, gates and students are then post-processing, so all of them can be changed for free. (Papernot et al.'s
    aggregation without its argmax: the student learns from shares.)

    Parameters
    ----------
    threshold : float, default=0.6
        Share of the votes a label needs, in (0.5, 1]; of the share that a regression on all queries estimates.
    sigma : float or None, default=None
        Noise on each released count, in votes. None: calibrated to the budget.

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

    _parameter_constraints: dict[str, Any] = {
        "threshold": [Interval(Real, 0.5, 1, closed="right")],
        "sigma": NOISE_SCALE,
    }
    name, usual_queries = "soft", None

    def __init__(self, *, threshold: float = 0.6, sigma: float | None = None) -> None:
        self.threshold = threshold
        self.sigma = sigma

    def _plan(self, asked: Asked) -> VotePlan:
        times = asked.n_queries
        at: Callable[[float], NoisyVotes] = partial(NoisyVotes, n_classes=asked.n_classes, **asked.of_mechanisms)
        guess = at(1.0).sensitivity * math.sqrt(times) / asked.mu
        histogram = at(self.sigma or _calibrated(at, asked, guess))
        event, releases = repeat(histogram.event, times), (f"{times} noisy vote histograms",)
        return VotePlan(event, asked.relation, releases, times, asked.n_teachers, histogram=histogram)

    def _release(
        self, votes: NDArray[Any], plan: VotePlan, noise: NoiseSource, gate: Any, groups: Any, verbose: int
    ) -> ReleasedVotes:
        """All shares at once."""
        assert plan.histogram is not None
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


class GNMaxVoting(Voting):
    """Release the noisy winner of every query: GNMax of Papernot et al. (2018).

    Parameters
    ----------
    sigma : float or None, default=None
        Noise on each count, in votes. None: calibrated to the budget.

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

    _parameter_constraints: dict[str, Any] = {"sigma": NOISE_SCALE}
    name = "gnmax"

    def __init__(self, *, sigma: float | None = None) -> None:
        self.sigma = sigma

    def _plan(self, asked: Asked) -> VotePlan:
        times = asked.n_queries
        at: Callable[[float], GNMax] = partial(GNMax, n_classes=asked.n_classes, **asked.of_mechanisms)
        maximum = at(self.sigma or _calibrated(at, asked, math.sqrt(2 * times) / asked.mu))
        event, releases = repeat(maximum.event, times), (f"{times} noisy maxima",)
        return VotePlan(event, asked.relation, releases, times, asked.n_teachers, maximum=maximum, n_maxima=times)

    def _release(
        self, votes: NDArray[Any], plan: VotePlan, noise: NoiseSource, gate: Any, groups: Any, verbose: int
    ) -> ReleasedVotes:
        """The winners one by one."""
        assert plan.maximum is not None
        labels = np.full(len(votes), UNANSWERED, dtype=np.int64)
        for i in progress_bar(range(len(votes)), desc="voting", verbose=verbose):
            labels[i] = plan.maximum.release(votes[i], noise)
        return ReleasedVotes(labels)
