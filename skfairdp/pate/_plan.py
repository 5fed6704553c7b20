"""What a PATE fit will release, decided before any private row is read: mechanisms, caps, event."""

import math
from dataclasses import dataclass
from typing import Any

from skfairdp.privacy import (
    DpEvent,
    GaussianDpEvent,
    GDPFilter,
    GNMax,
    NeighboringRelation,
    NoisyThreshold,
    NoisyVotes,
    NoOpDpEvent,
    calibrate_noise,
    compose,
    epsilon_of,
    gdp_mu,
    repeat,
)

__all__ = ["Budget", "VotePlan", "plan_votes"]

# Beyond this many votes of discrete noise, summing its exact distribution takes minutes and then all memory.
MAX_DISCRETE_SIGMA = 2.0**18


@dataclass(frozen=True)
class VotePlan:
    """Mechanisms of a vote, how often each may run, and the event that caps it all.

    Parameters
    ----------
    voting : {"confident", "gnmax", "soft"}
    n_queries : int
        Public rows that may be asked about.
    event : DpEvent
        The cap. It depends on public values only, so it is the same for every data set and transcript.
    threshold : NoisyThreshold or None
    gnmax : GNMax or None
    soft : NoisyVotes or None
    n_gnmax : int
        Most argmax releases, where counts are declared.
    filter_mu : float or None
        With the Gaussian filter: the cap on root-sum-of-squares, instead of counts.
    """

    voting: str
    n_queries: int
    event: DpEvent
    threshold: NoisyThreshold | None = None
    gnmax: GNMax | None = None
    soft: NoisyVotes | None = None
    n_gnmax: int = 0
    filter_mu: float | None = None

    @property
    def releases(self) -> tuple[str, ...]:
        """The kinds of release, in words, for the ledger."""
        if self.n_queries == 0:
            return ("nothing: one class",)
        if self.filter_mu is not None:
            return (f"thresholds and noisy maxima until mu={self.filter_mu:.6g}",)
        if self.voting == "confident":
            return (f"{self.n_queries} thresholds", f"at most {self.n_gnmax} noisy maxima")
        return (f"{self.n_queries} {'noisy maxima' if self.voting == 'gnmax' else 'noisy vote histograms'}",)


class Budget:
    """Counts down a plan. A threshold starts only if the argmax it may lead to is paid for as well."""

    def __init__(self, plan: VotePlan) -> None:
        self._plan = plan
        self._filter = GDPFilter(plan.filter_mu) if plan.filter_mu is not None else None
        self._thresholds = plan.n_queries
        self._maxima = plan.n_gnmax

    def admits(self, *, may_need_argmax: bool) -> bool:
        """Whether one more query may start. Depends on public values and earlier outputs only."""
        plan = self._plan
        assert plan.threshold is not None and plan.gnmax is not None
        if self._filter is not None:
            worst = plan.threshold.mu_squared + (plan.gnmax.mu_squared if may_need_argmax else 0.0)
            return self._filter.fits(worst)
        return self._thresholds > 0 and (self._maxima > 0 or not may_need_argmax)

    def spend_threshold(self) -> None:
        assert self._plan.threshold is not None
        if self._filter is not None:
            self._filter.spend(self._plan.threshold.mu_squared)
        self._thresholds -= 1

    def spend_argmax(self) -> None:
        assert self._plan.gnmax is not None
        if self._filter is not None:
            self._filter.spend(self._plan.gnmax.mu_squared)
        self._maxima -= 1


def plan_votes(
    *,
    voting: str,
    epsilon: float,
    delta: float,
    n_queries: int,
    n_teachers: int,
    n_classes: int,
    threshold: float,
    noise: str,
    accounting: str,
    sigma_threshold: float | None,
    sigma_gnmax: float | None,
    max_gnmax: int | None,
    owner: str,
    relation: NeighboringRelation,
    caps_queries: str = "max_queries",
) -> VotePlan:
    """Choose noise scales and caps so that the event costs at most ``epsilon``.

    Parameters are those of :class:`PATEClassifier`; ``threshold`` is a share of the votes. Scales given by the user are
    kept, those left None are calibrated. One changed record, or one changed group of a record, changes one teacher, so
    the sensitivities hold under either ``relation``. ``caps_queries`` is what ``owner`` calls the parameter that caps
    the queries.

    Raises
    ------
    ValueError
        The given scales cost more than ``epsilon``, no scale brings the cost down to it, discrete noise would have
        to be too large, or the filter is asked to account for it.
    """
    if n_classes < 2:  # a public domain of one class: nothing private is asked
        return VotePlan(voting, 0, NoOpDpEvent())
    votes: dict[str, Any] = {"noise": noise, "n_teachers": n_teachers, "relation": relation}

    def histogram(sigma: float) -> NoisyVotes:
        return NoisyVotes(sigma, n_classes=n_classes, **votes)

    def maximum(sigma: float) -> GNMax:
        return GNMax(sigma, n_classes=n_classes, **votes)

    def bit(sigma: float) -> NoisyThreshold:
        return NoisyThreshold(sigma, threshold=threshold * n_teachers, **votes)

    mu = gdp_mu(epsilon, delta)
    largest = max(math.sqrt(4 * n_queries) / mu, sigma_threshold or 0.0, sigma_gnmax or 0.0)
    if noise == "discrete_gaussian" and largest > MAX_DISCRETE_SIGMA:
        raise ValueError(
            f"noise='discrete_gaussian' of {owner} would need a scale of about {largest:.3g} votes, more than the "
            f"{MAX_DISCRETE_SIGMA:.0f} up to which it is offered. Raise 'epsilon', lower '{caps_queries}', or take "
            "noise='gaussian'."
        )
    if voting == "soft":
        sensitivity = histogram(1.0).sensitivity
        sigma = sigma_gnmax or calibrate_noise(
            lambda s: repeat(histogram(s).event, n_queries),
            epsilon,
            delta,
            guess=sensitivity * math.sqrt(n_queries) / mu,
        )
        plan = VotePlan(voting, n_queries, repeat(histogram(sigma).event, n_queries), soft=histogram(sigma))
        return _within(plan, epsilon, delta, owner, caps_queries)
    if voting == "gnmax":
        sigma = sigma_gnmax or calibrate_noise(
            lambda s: repeat(maximum(s).event, n_queries), epsilon, delta, guess=math.sqrt(2 * n_queries) / mu
        )
        plan = VotePlan(
            voting, n_queries, repeat(maximum(sigma).event, n_queries), gnmax=maximum(sigma), n_gnmax=n_queries
        )
        return _within(plan, epsilon, delta, owner, caps_queries)

    n_gnmax = min(n_queries, math.ceil(0.6 * n_queries) if max_gnmax is None else max_gnmax)
    if accounting == "gdp" and noise != "gaussian":
        raise ValueError(
            f"accounting='gdp' of {owner} needs noise='gaussian': the discrete Gaussian is not exactly Gaussian-DP. "
            "Use accounting='binary' or 'auto' with noise='discrete_gaussian'."
        )
    use_filter = accounting == "gdp" or (accounting == "auto" and n_classes > 2 and noise == "gaussian")
    # Equal shares of the squared Gaussian cost for thresholds and maxima.
    first_guess, second_guess = math.sqrt(2 * n_queries) / mu, math.sqrt(4 * n_gnmax) / mu

    def scales(factor: float) -> tuple[float, float]:
        return sigma_threshold or factor * first_guess, sigma_gnmax or factor * second_guess

    def declared(s1: float, s2: float) -> DpEvent:
        return compose(repeat(bit(s1).event, n_queries), repeat(maximum(s2).event, n_gnmax))

    if use_filter:
        s1, s2 = scales(1.0)
        step = bit(s1).mu_squared + maximum(s2).mu_squared
        cap = min(mu, math.sqrt(n_queries * step))  # never certify more than the queries could ever use
        while epsilon_of(GaussianDpEvent(1 / cap), delta) > epsilon:
            cap *= 1 - 1e-12  # 1/cap was rounded down
        filter_mu = cap * (1 - 1e-12)  # the filter stays below what the event states, whatever 1/cap rounded to
        if step > filter_mu**2:
            raise ValueError(
                f"With the given noise scales not even one query of {owner} fits epsilon={epsilon:g}. Raise "
                "'sigma_threshold' or 'sigma_gnmax', or leave them None."
            )
        return VotePlan(voting, n_queries, GaussianDpEvent(1 / cap), bit(s1), maximum(s2), filter_mu=filter_mu)
    if sigma_threshold is None or sigma_gnmax is None:
        try:
            factor = calibrate_noise(lambda f: declared(*scales(f)), epsilon, delta, guess=0.85)
        except ValueError:
            raise ValueError(
                f"The noise scale given to {owner} alone costs more than epsilon={epsilon:g}. Raise it, lower "
                f"'{caps_queries}', or leave it None."
            ) from None
    else:
        factor = 1.0
    s1, s2 = scales(factor)
    plan = VotePlan(voting, n_queries, declared(s1, s2), bit(s1), maximum(s2), n_gnmax=n_gnmax)
    return _within(plan, epsilon, delta, owner, caps_queries)


def _within(plan: VotePlan, epsilon: float, delta: float, owner: str, caps_queries: str) -> VotePlan:
    cost = epsilon_of(plan.event, delta)
    if cost > epsilon:
        raise ValueError(
            f"The noise scales given to {owner} cost epsilon={cost:.4g} at delta={delta:g} for {plan.n_queries} "
            f"queries, more than the epsilon={epsilon:g} asked for. Raise them, lower '{caps_queries}', or leave "
            "them None."
        )
    return plan
