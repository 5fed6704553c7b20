"""From raw votes to released votes: the only place where private counts meet noise."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skfairdp.fairness import FairnessGate
from skfairdp.pate._plan import Budget, VotePlan
from skfairdp.privacy import NoiseSource
from skfairdp.utils import progress_bar

__all__ = ["UNANSWERED", "ReleasedVotes", "gate_labels", "release_votes"]

UNANSWERED = -1


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
    shares: NDArray[np.float64] | None
    noise_std: float = 0.0


def release_votes(
    votes: NDArray[np.int64] | NDArray[np.float64],
    plan: VotePlan,
    source: NoiseSource,
    *,
    gate: FairnessGate | None,
    groups: NDArray[np.int64] | None,
    verbose: int,
) -> ReleasedVotes:
    """Release the votes on each query as the plan says.

    Parameters
    ----------
    votes : ndarray of int, or (split votes, soft voting only) of float, of shape (n_queries, n_classes)
        Private.
    plan : VotePlan
    source : NoiseSource
    gate : FairnessGate or None
        Consulted before each query of a confident vote (CF-GNMax+); its counters are public.
    groups : ndarray of int of shape (n_queries,) or None
        Public group codes, needed with a gate.
    verbose : int

    Returns
    -------
    ReleasedVotes

    Raises
    ------
    ValueError
        More queries than the plan covers; nothing is released then.
    """
    if len(votes) > plan.n_queries:
        raise ValueError(f"The plan pays for {plan.n_queries} queries, but there are votes on {len(votes)}. Plan more.")
    if plan.voting == "soft":
        assert plan.soft is not None
        shares = plan.soft.release(votes, source) / plan.soft.n_teachers
        return ReleasedVotes(None, shares, plan.soft.sigma / plan.soft.n_teachers)
    labels = np.full(len(votes), UNANSWERED, dtype=np.int64)
    progress = progress_bar(range(len(votes)), desc="voting", verbose=verbose)
    if plan.voting == "gnmax":
        assert plan.gnmax is not None
        for i in progress:
            labels[i] = plan.gnmax.release(votes[i], source)
        return ReleasedVotes(labels, None)
    assert plan.threshold is not None and plan.gnmax is not None
    budget = Budget(plan)
    everything = np.ones(votes.shape[1], dtype=bool)
    for i in progress:
        z = -1 if groups is None else int(groups[i])
        admissible = everything if gate is None else gate.admissible(z)
        n_admissible = int(np.count_nonzero(admissible))
        # All that decides whether to ask is public: counters of earlier answers, groups of public rows.
        if n_admissible == 0 or not budget.admits(may_need_argmax=n_admissible > 1):
            continue
        budget.spend_threshold()
        if not plan.threshold.release(int(votes[i, admissible].max()), source):
            continue
        if n_admissible == 1:
            label = int(np.argmax(admissible))  # the bit already says it: no argmax, no further cost
        else:
            budget.spend_argmax()
            label = plan.gnmax.release(votes[i], source, admissible)
        labels[i] = label
        if gate is not None:
            gate.record(z, label)
    return ReleasedVotes(labels, None)


def gate_labels(labels: NDArray[np.int64], groups: NDArray[np.int64], gate: FairnessGate) -> NDArray[np.int64]:
    """Withdraw the released labels that would break parity, in order. Post-processing of released labels."""
    kept = labels.copy()
    answered = labels != UNANSWERED
    admitted = gate.run(groups[answered], labels[answered])
    kept[np.flatnonzero(answered)[~admitted]] = UNANSWERED
    return kept
