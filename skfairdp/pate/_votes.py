"""How teachers vote: each part plans its releases, and makes them."""

import math
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from skfairdp._docs import shared_docs
from skfairdp.fairness import FairnessGate
from skfairdp.pate._confident_voting import ConfidentVoting
from skfairdp.pate._vote_plan import (
    NOISE_SCALE,
    NOTHING,
    UNANSWERED,
    ReleasedVotes,
    VotePlan,
    allowed_mu,
    check_numbers,
    nothing_asked,
    within_budget,
)
from skfairdp.privacy import (
    DpEvent,
    GNMax,
    NeighboringRelation,
    NoiseSource,
    NoisyVotes,
    calibrate_noise,
    compose,
    repeat,
)
from skfairdp.utils import progress_bar
from skfairdp.utils._sklearn import Interval

__all__ = ["ConfidentVoting", "GNMaxVoting", "SoftVoting", "as_voting"]


@shared_docs
class SoftVoting(BaseEstimator):
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
    #: The name this part goes by, and the most rows asked about unless told otherwise (None: all).
    name, usual_queries = "soft", None
    #: Whether the gate is consulted before each vote, instead of on labels that are released already.
    asks_gate = False

    def __init__(self, *, threshold: float = 0.6, sigma: float | None = None) -> None:
        self.threshold = threshold
        self.sigma = sigma

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
        """Choose the noise so that releasing every query costs at most ``epsilon``.

        Parameters
        ----------
        {votes_to_plan}

        Returns
        -------
        {returns_vote_plan}

        Raises
        ------
        ValueError
            A given ``sigma`` costs more than ``epsilon``, or discrete noise would have to be too large.
        """
        if n_classes < 2:
            return nothing_asked(n_queries, n_teachers, relation)
        histogram = partial(NoisyVotes, n_classes=n_classes, noise=noise, n_teachers=n_teachers, relation=relation)
        mu = allowed_mu(self, epsilon, delta, n_queries, noise, beside)
        sigma = self.sigma or calibrate_noise(
            lambda s: compose(beside, repeat(histogram(s).event, n_queries)),
            epsilon,
            delta,
            guess=histogram(1.0).sensitivity * math.sqrt(n_queries) / mu,
        )
        event, releases = repeat(histogram(sigma).event, n_queries), (f"{n_queries} noisy vote histograms",)
        plan = VotePlan(event, relation, releases, n_queries, n_teachers, histogram=histogram(sigma))
        return within_budget(plan, self, epsilon, delta, beside)

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
        """Release all shares at once.

        Parameters
        ----------
        votes : ndarray of shape (n_queries, n_classes)
            Private. Counts, or sums of what teachers split.
        {votes_to_release}

        Returns
        -------
        {returns_votes}
        """
        answer = plan.only_class(votes)
        if answer is not None:
            return answer
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


@shared_docs
class GNMaxVoting(BaseEstimator):
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
    name, usual_queries, asks_gate = "gnmax", 1000, False

    def __init__(self, *, sigma: float | None = None) -> None:
        self.sigma = sigma

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
        """Choose the noise for one noisy maximum per query, at most at the cost of ``epsilon``.

        Parameters
        ----------
        {votes_to_plan}

        Returns
        -------
        {returns_vote_plan}

        Raises
        ------
        ValueError
            A given scale of noise costs more than ``epsilon``, or discrete noise would have to be too large.
        """
        if n_classes < 2:
            return nothing_asked(n_queries, n_teachers, relation)
        maximum = partial(GNMax, n_classes=n_classes, noise=noise, n_teachers=n_teachers, relation=relation)
        mu = allowed_mu(self, epsilon, delta, n_queries, noise, beside)
        sigma = self.sigma or calibrate_noise(
            lambda s: compose(beside, repeat(maximum(s).event, n_queries)),
            epsilon,
            delta,
            guess=math.sqrt(2 * n_queries) / mu,
        )
        event, releases = repeat(maximum(sigma).event, n_queries), (f"{n_queries} noisy maxima",)
        plan = VotePlan(event, relation, releases, n_queries, n_teachers, maximum=maximum(sigma), n_maxima=n_queries)
        return within_budget(plan, self, epsilon, delta, beside)

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
        """Release the winners one by one.

        Parameters
        ----------
        votes : ndarray of int of shape (n_queries, n_classes)
            Private counts.
        {votes_to_release}

        Returns
        -------
        {returns_votes}
        """
        answer = plan.only_class(votes)
        if answer is not None:
            return answer
        assert plan.maximum is not None
        labels = np.full(len(votes), UNANSWERED, dtype=np.int64)
        for i in progress_bar(range(len(votes)), desc="voting", verbose=verbose):
            labels[i] = plan.maximum.release(votes[i], noise)
        return ReleasedVotes(labels)


_PARTS: dict[str, Any] = {part.name: part for part in (SoftVoting, GNMaxVoting, ConfidentVoting)}


def as_voting(voting: Any, owner: str, allowed: tuple[str, ...] = tuple(_PARTS)) -> Any:
    """The part that ``voting`` is or names, with its parameters checked.

    Parameters
    ----------
    voting : str, SoftVoting, GNMaxVoting or ConfidentVoting
    owner : str
        Class name for the error message.
    allowed : tuple of str

    Returns
    -------
    SoftVoting, GNMaxVoting or ConfidentVoting

    Raises
    ------
    ValueError
        It is none of those allowed, or one of its parameters is outside its range.
    """
    part: Any = _PARTS[voting]() if isinstance(voting, str) and voting in _PARTS else voting
    if not isinstance(part, tuple(_PARTS[name] for name in allowed)):
        names = ", ".join(f"'{name}'" for name in allowed)
        parts = ", ".join(f"{_PARTS[name].__name__}()" for name in allowed)
        raise ValueError(f"The 'voting' parameter of {owner} must be {names}, {parts}. Got {voting!r} instead.")
    checked: Any = part
    checked._validate_params()
    check_numbers(checked)
    return checked
