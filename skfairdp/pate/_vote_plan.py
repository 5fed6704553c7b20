"""What a vote is going to release, and what it released."""

import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfairdp.privacy import (
    DpEvent,
    GNMax,
    NeighboringRelation,
    NoisyThreshold,
    NoisyVotes,
    NoOpDpEvent,
    compose,
    epsilon_of,
    flatten,
    gdp_mu,
)
from skfairdp.utils._sklearn import Interval

__all__ = [
    "NOISE_SCALE",
    "NOTHING",
    "UNANSWERED",
    "ReleasedVotes",
    "VotePlan",
    "allowed_mu",
    "check_numbers",
    "nothing_asked",
    "within_budget",
]

UNANSWERED = -1
#: What is released beside votes on public rows.
NOTHING = NoOpDpEvent()
# Beyond this many votes of discrete noise, summing its exact distribution takes minutes and then all memory.
MAX_DISCRETE_SIGMA = 2.0**18
LARGEST_INT = 2**31 - 1
#: What a scale of noise may be, in votes; None is calibrated.
NOISE_SCALE = [Interval(Real, 1e-9, 1e9, closed="both"), None]


@dataclass(frozen=True)
class VotePlan:
    """Mechanisms of a vote, how often each may run, and the event that caps it all.

    Nothing in it depends on a private value, so it is the same for every data set and transcript.

    Parameters
    ----------
    event : DpEvent
        The cap.
    relation : NeighboringRelation
        Of the guarantee. One changed record, or one changed group of a record, changes one teacher: the sensitivities
        hold under either.
    releases : tuple of str
        The kinds of release, in words, for the ledger.
    n_queries : int
        Rows that may be asked about.
    n_teachers : int
    histogram : NoisyVotes or None
        Of soft votes.
    maximum : GNMax or None
    bit : NoisyThreshold or None
        Of confident votes.
    n_maxima : int
        Most noisy maxima, where counts are declared.
    filter_mu : float or None
        With the Gaussian filter: the cap on root-sum-of-squares, instead of counts.
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

    def only_class(self, votes: NDArray[Any]) -> "ReleasedVotes | None":
        """What a vote gives where there is one class, by which nothing private is asked; None where there are more.

        Raises
        ------
        ValueError
            More queries than the plan covers; nothing is released then.
        """
        if len(votes) > self.n_queries:
            raise ValueError(
                f"The plan pays for {self.n_queries} queries, but there are votes on {len(votes)}. Plan more."
            )
        return ReleasedVotes(np.zeros(len(votes), dtype=np.int64)) if isinstance(self.event, NoOpDpEvent) else None


@dataclass(frozen=True)
class ReleasedVotes:
    """What left the private side, in the order of the queries.

    Parameters
    ----------
    labels : ndarray of int of shape (n_queries,) or None
        Class codes, ``UNANSWERED`` where the vote gave none; None for soft votes.
    shares : ndarray of shape (n_queries, n_classes) or None
        Noisy vote shares; None for hard votes.
    noise_std : float
        Standard deviation of the noise in a share.
    """

    labels: NDArray[np.int64] | None
    shares: NDArray[np.float64] | None = None
    noise_std: float = 0.0

    @property
    def values(self) -> NDArray[Any]:
        """Shares or labels, whichever were released."""
        return self.shares if self.labels is None else self.labels  # type: ignore[return-value]


def nothing_asked(n_queries: int, n_teachers: int, relation: NeighboringRelation) -> VotePlan:
    """A public domain of one class: nothing private is asked."""
    return VotePlan(NoOpDpEvent(), relation, ("nothing: one class",), n_queries, n_teachers)


def allowed_mu(part: Any, epsilon: float, delta: float, n_queries: int, noise: str, beside: DpEvent) -> float:
    """The Gaussian cost that the budget allows beside other releases, once discrete noise of that size can be offered.

    The others are Gaussian, so that costs add up as squares.
    """
    spent = math.fsum(times / leaf.noise_multiplier**2 for leaf, times in flatten(beside).items())
    mu = math.sqrt(gdp_mu(epsilon, delta) ** 2 - spent)
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


def within_budget(plan: VotePlan, part: Any, epsilon: float, delta: float, beside: DpEvent) -> VotePlan:
    """The plan, whose votes and what is released beside them cost at most ``epsilon``."""
    cost = epsilon_of(compose(beside, plan.event), delta)
    if cost > epsilon:
        raise ValueError(
            f"The noise scales given to {type(part).__name__} cost epsilon={cost:.4g} at delta={delta:g} for "
            f"{plan.n_queries} queries, more than the epsilon={epsilon:g} asked for. Raise them, lower 'max_queries', "
            "or leave them None."
        )
    return plan


def check_numbers(estimator: Any) -> None:
    """Refuse what scikit-learn's constraints let through: booleans as numbers, and integers beyond any machine's."""
    for name in sorted(estimator._parameter_constraints.keys() - {"random_state", "noise_seed", "verbose"}):
        value = getattr(estimator, name)
        if isinstance(value, bool | np.bool_) or (isinstance(value, Integral) and int(value) > LARGEST_INT):
            raise ValueError(
                f"The '{name}' parameter of {type(estimator).__name__} must be neither a bool nor an integer beyond "
                f"{LARGEST_INT}."
            )
