"""Confident votes: a noisy threshold first, a noisy maximum where it is passed, both as far as the budget goes."""

import math
from collections.abc import Callable
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfairdp._utils import progress_bar
from skfairdp._utils._sklearn import Interval, StrOptions
from skfairdp.pate._votes import NOISE_SCALE, UNANSWERED, Asked, ReleasedVotes, VotePlan, Voting
from skfairdp.privacy import (
    DpEvent,
    GaussianDpEvent,
    GDPFilter,
    GNMax,
    NoiseSource,
    NoisyThreshold,
    calibrate_noise,
    compose,
    epsilon_of,
    repeat,
)


class ConfidentVoting(Voting):
    """Ask, with noise, whether the winner of a query has enough votes, and only then who it is.

    Confident-GNMax of Papernot et al. (2018). With a gate it is CF-GNMax+: the gate is asked first, on public counters,
    which classes a group may be given; the threshold is for the best of those; an argmax follows only where there is
    more than one. (In FairPATE's published CF-GNMax the gate comes after the noise, and a label that it rejects has
    still been paid for.)

    Parameters
    ----------
    threshold : float, default=0.6
        Share of the votes a label needs, in (0.5, 1].
    sigma_threshold : float or None, default=None
        Noise on the largest count, in votes. None: calibrated to the budget.
    sigma : float or None, default=None
        Noise on each count of a noisy maximum, in votes. None: calibrated to the budget.
    max_answers : int or None, default=None
        Most noisy maxima paid for, where they are counted. None: 60 % of the queries.
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

    _parameter_constraints: dict[str, Any] = {
        "threshold": [Interval(Real, 0.5, 1, closed="right")],
        "sigma_threshold": NOISE_SCALE,
        "sigma": NOISE_SCALE,
        "max_answers": [Interval(Integral, 1, None, closed="left"), None],
        "accounting": [StrOptions({"auto", "binary", "gdp"})],
    }
    name, asks_gate = "confident", True

    def __init__(
        self,
        *,
        threshold: float = 0.6,
        sigma_threshold: float | None = None,
        sigma: float | None = None,
        max_answers: int | None = None,
        accounting: str = "auto",
    ) -> None:
        self.threshold = threshold
        self.sigma_threshold = sigma_threshold
        self.sigma = sigma
        self.max_answers = max_answers
        self.accounting = accounting

    def _plan(self, asked: Asked) -> VotePlan:
        """A threshold per query, and noisy maxima up to a count or a filter."""
        n_queries, mu = asked.n_queries, asked.mu
        votes = asked.of_mechanisms
        n_maxima = min(n_queries, self.max_answers or math.ceil(0.6 * n_queries))

        # Equal shares of the squared Gaussian cost for thresholds and maxima.
        def mechanisms(factor: float) -> tuple[NoisyThreshold, GNMax]:
            first = self.sigma_threshold or factor * math.sqrt(2 * n_queries) / mu
            second = self.sigma or factor * math.sqrt(4 * n_maxima) / mu
            threshold = NoisyThreshold(first, threshold=self.threshold * asked.n_teachers, **votes)
            return threshold, GNMax(second, n_classes=asked.n_classes, **votes)

        plan = partial(VotePlan, relation=asked.relation, n_queries=n_queries, n_teachers=asked.n_teachers)
        if self._filters(asked.n_classes, asked.noise):
            return self._filtered(plan, *mechanisms(1.0), asked)
        return self._counted(plan, mechanisms, n_maxima, asked)

    def _filters(self, n_classes: int, noise: str) -> bool:
        """Whether the adaptive Gaussian filter accounts for the transcript."""
        if self.accounting == "gdp" and noise != "gaussian":
            raise ValueError(
                "accounting='gdp' of ConfidentVoting needs noise='gaussian': the discrete Gaussian is not exactly "
                "Gaussian-DP. Use accounting='binary' or 'auto' with noise='discrete_gaussian'."
            )
        return self.accounting == "gdp" or (self.accounting == "auto" and n_classes > 2 and noise == "gaussian")

    def _filtered(self, plan: Callable[..., VotePlan], bit: NoisyThreshold, maximum: GNMax, asked: Asked) -> VotePlan:
        step = bit.mu_squared + maximum.mu_squared
        cap = min(asked.mu, math.sqrt(asked.n_queries * step))  # never certify more than the queries could ever use
        while epsilon_of(compose(asked.beside, GaussianDpEvent(1 / cap)), asked.delta) > asked.epsilon:
            cap *= 1 - 1e-12  # 1/cap was rounded down
        filter_mu = cap * (1 - 1e-12)  # the filter stays below what the event states, whatever 1/cap rounded to
        if step > filter_mu**2:
            raise ValueError(
                f"With the noise scales given to ConfidentVoting not even one query fits epsilon={asked.epsilon:g}. "
                "Raise 'sigma_threshold' or 'sigma', or leave them None."
            )
        releases = (f"thresholds and noisy maxima until mu={filter_mu:.6g}",)
        return plan(event=GaussianDpEvent(1 / cap), releases=releases, bit=bit, maximum=maximum, filter_mu=filter_mu)

    def _counted(
        self,
        plan: Callable[..., VotePlan],
        mechanisms: Callable[[float], tuple[NoisyThreshold, GNMax]],
        n_maxima: int,
        asked: Asked,
    ) -> VotePlan:
        n_queries = asked.n_queries

        def declared(factor: float) -> DpEvent:
            bit, maximum = mechanisms(factor)
            return compose(repeat(bit.event, n_queries), repeat(maximum.event, n_maxima))

        def cost(factor: float) -> DpEvent:
            return compose(asked.beside, declared(factor))

        factor = 1.0
        if self.sigma_threshold is None or self.sigma is None:
            try:
                factor = calibrate_noise(cost, asked.epsilon, asked.delta, guess=0.85)
            except ValueError:
                raise ValueError(
                    f"The noise scale given to ConfidentVoting alone costs more than epsilon={asked.epsilon:g}. "
                    "Raise it, lower 'max_queries', or leave it None."
                ) from None
        bit, maximum = mechanisms(factor)
        releases = (f"{n_queries} thresholds", f"at most {n_maxima} noisy maxima")
        return plan(event=declared(factor), releases=releases, bit=bit, maximum=maximum, n_maxima=n_maxima)

    def _release(
        self, votes: NDArray[Any], plan: VotePlan, noise: NoiseSource, gate: Any, groups: Any, verbose: int
    ) -> ReleasedVotes:
        """Ask query by query, as far as the plan pays."""
        assert plan.bit is not None and plan.maximum is not None
        labels = np.full(len(votes), UNANSWERED, dtype=np.int64)
        budget, everything = Budget(plan), np.ones(votes.shape[1], dtype=bool)
        for i in progress_bar(range(len(votes)), desc="voting", verbose=verbose):
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
        self._plan = plan
        self._filter = GDPFilter(plan.filter_mu) if plan.filter_mu is not None else None
        self._thresholds = plan.n_queries
        self._maxima = plan.n_maxima

    def admits(self, *, may_need_argmax: bool) -> bool:
        """Whether one more query may start. Depends on public values and earlier outputs only."""
        plan = self._plan
        assert plan.bit is not None and plan.maximum is not None
        if self._filter is not None:
            worst = plan.bit.mu_squared + (plan.maximum.mu_squared if may_need_argmax else 0.0)
            return self._filter.fits(worst)
        return self._thresholds > 0 and (self._maxima > 0 or not may_need_argmax)

    def spend_threshold(self) -> None:
        assert self._plan.bit is not None
        if self._filter is not None:
            self._filter.spend(self._plan.bit.mu_squared)
        self._thresholds -= 1

    def spend_argmax(self) -> None:
        assert self._plan.maximum is not None
        if self._filter is not None:
            self._filter.spend(self._plan.maximum.mu_squared)
        self._maxima -= 1
