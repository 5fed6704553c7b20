"""Non-dominated points and the volume they dominate."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from skfairdp._typing import ArrayLike


def pareto_frontier(points: ArrayLike, minimize: bool | Sequence[bool] = True) -> NDArray[np.bool_]:
    """Say which points no other point dominates.

    A point dominates another one where it is at least as good in every objective and better in one
    (Definition 3, Pareto efficiency, of "Learning to Walk Impartially on the Pareto Frontier of Fairness,
    Privacy, and Utility"). Equal points do not dominate each other: ties are all kept.

    Parameters
    ----------
    points : array-like of shape (n_points, n_objectives)
        Objective values, of any unit. A point with a NaN is not comparable: it is not on the frontier and
        dominates nothing.
    minimize : bool or sequence of n_objectives bools, default=True
        Whether small values are good, for all objectives or one by one.

    Returns
    -------
    ndarray of shape (n_points,), dtype bool
        True for the non-dominated points, in the order given.

    Raises
    ------
    ValueError
        ``points`` is not a table of numbers, or ``minimize`` does not fit it.

    Notes
    -----
    O(n log n) for one and two objectives, O(n × size of the frontier) otherwise.

    Examples
    --------
    >>> from skfairdp.model_selection import pareto_frontier
    >>> accuracy_and_gap = [[0.80, 0.03], [0.82, 0.10], [0.79, 0.05], [0.80, 0.03]]
    >>> pareto_frontier(accuracy_and_gap, minimize=[False, True])
    array([ True,  True, False,  True])
    """
    losses = _losses(points, minimize, owner="pareto_frontier")
    mask = np.zeros(len(losses), dtype=bool)
    usable = np.flatnonzero(~np.isnan(losses).any(axis=1))
    if usable.size and losses.shape[1]:
        mask[usable[_non_dominated(losses[usable])]] = True
    return mask


def hypervolume(points: ArrayLike, reference: ArrayLike, minimize: bool | Sequence[bool] = True) -> float:
    """Return the volume between ``reference`` and the points that beat it in every objective.

    The larger it is the better the frontier, over all objectives at once.

    Parameters
    ----------
    points : array-like of shape (n_points, n_objectives)
        Points with a NaN, and points that do not beat the reference, add nothing.
    reference : array-like of shape (n_objectives,)
        The worst acceptable value of every objective, for example (majority-class accuracy, 0.8) for the
        objectives (accuracy, 1 − disparity).
    minimize : bool or sequence of n_objectives bools, default=True
        Whether small values are good, for all objectives or one by one.

    Returns
    -------
    float
        In the product of the objectives' units; 0.0 where no point beats the reference.

    Raises
    ------
    ValueError
        The shapes do not fit, or the reference is not finite.

    Notes
    -----
    Exact. Two objectives by one sweep, O(n log n); more by recursion over exclusive volumes, which is
    exponential in the worst case and quick for the tens of points of a frontier.

    Examples
    --------
    >>> from skfairdp.model_selection import hypervolume
    >>> hypervolume([[3.0, 1.0], [1.0, 2.0]], reference=[0.0, 0.0], minimize=False)
    4.0
    """
    losses = _losses(points, minimize, owner="hypervolume")
    origin = np.asarray(reference, dtype=float)
    if origin.shape != (losses.shape[1],) or not np.isfinite(origin).all():
        raise ValueError(
            f"The 'reference' parameter of hypervolume must be {losses.shape[1]} finite numbers, one for "
            "each objective. "
            f"Got {reference!r} instead."
        )
    gains = origin * _signs(minimize, losses.shape[1], owner="hypervolume") - losses
    gains = gains[(gains > 0).all(axis=1)]  # comparisons with NaN are False
    return float(_volume(gains[_non_dominated(-gains)])) if len(gains) else 0.0


def _signs(minimize: bool | Sequence[bool], n_objectives: int, *, owner: str) -> NDArray[np.float64]:
    flags = np.asarray(minimize)
    if flags.dtype != bool or flags.shape not in ((), (n_objectives,)):
        raise ValueError(
            f"The 'minimize' parameter of {owner} must be a bool, or {n_objectives} bools, one for each "
            "objective. "
            f"Got {minimize!r} instead."
        )
    return np.where(np.broadcast_to(flags, (n_objectives,)), 1.0, -1.0)


def _losses(points: ArrayLike, minimize: bool | Sequence[bool], *, owner: str) -> NDArray[np.float64]:
    table = np.asarray(points, dtype=float)
    if table.ndim != 2:
        raise ValueError(
            f"The 'points' parameter of {owner} must be a table of shape (n_points, n_objectives). "
            f"Got {table.ndim} dimension(s) instead."
        )
    return table * _signs(minimize, table.shape[1], owner=owner)


def _non_dominated(losses: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Mask of the non-dominated rows of a table without NaN and with at least one column."""
    if losses.shape[1] == 1:
        return losses[:, 0] == losses.min()
    order = np.lexsort(losses.T[::-1])  # a dominating row always comes before the rows it dominates
    ordered = losses[order]
    keep = np.zeros(len(losses), dtype=bool)
    if losses.shape[1] == 2:
        first, second = ordered.T
        # Rows that tie in the first objective: only the best of them in the second can survive (it comes
        # first), and only where it is better than everything with a smaller first objective.
        new = np.r_[True, first[1:] != first[:-1]]
        start = np.flatnonzero(new)
        before = np.r_[np.inf, np.minimum.accumulate(second)[start[1:] - 1]]
        best, run = second[start], np.cumsum(new) - 1
        keep[order] = (second == best[run]) & ((best < before) | (np.arange(len(start)) == 0))[run]
        return keep
    remaining = np.arange(len(losses))
    while remaining.size:
        leader = ordered[remaining[0]]
        keep[order[remaining[0]]] = True
        rest = ordered[remaining[1:]]
        dominated = (leader <= rest).all(axis=1) & (leader < rest).any(axis=1)
        remaining = remaining[1:][~dominated]
    return keep


def _volume(gains: NDArray[np.float64]) -> float:
    """Volume of the union of the boxes [0, gain]; no box lies inside another one unless they are equal."""
    if gains.shape[1] == 1:
        return float(gains.max())
    ordered = gains[np.argsort(-gains[:, 0], kind="stable")]
    if gains.shape[1] == 2:
        height = np.maximum.accumulate(ordered[:, 1])
        return float(np.sum(ordered[:, 0] * np.diff(height, prepend=0.0)))
    total = 0.0
    for i, box in enumerate(ordered):
        overlap = np.minimum(ordered[i + 1 :], box)  # what later boxes share with this one
        total += float(np.prod(box))
        if len(overlap):
            total -= _volume(overlap[_non_dominated(-overlap)])
    return total
