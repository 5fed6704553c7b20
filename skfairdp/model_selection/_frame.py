"""The table of operating points that frontier(), the searches and the display share, and which no other one beats."""

import inspect
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from skfairdp import privacy
from skfairdp._typing import ArrayLike, Bools, Floats
from skfairdp._utils import invalid_parameter
from skfairdp.privacy import DpEvent, LedgerEntry, NeighboringRelation, PrivacyLedger, PrivacySpent, Protects

Kind = tuple[str, str]
COLUMNS = [
    "dataset", "estimator", "epsilon", "delta", "protects", "neighboring_relation", "gamma", "student_gamma",
    "lam", "idp3", "disparity", "accuracy", "coverage", "non_dominated", "params",
]  # fmt: skip
# Where to look for the trade-off; the sign says which way is better.
_MINIMIZE = {"epsilon": True, "disparity": True, "accuracy": False, "r2": False, "coverage": False}
#: Baselines of classes and of amounts, by what says how good predictions are.
ONE_ANSWER = {"accuracy": "majority class", "r2": "constant prediction"}


def one_answer(dataset: str, utility: str, value: float) -> dict[str, Any]:
    """The mark of one answer for everybody, which is that good."""
    mark = {"dataset": dataset, "name": ONE_ANSWER[utility], "private": True, "disparity": 0.0, "coverage": 1.0}
    return {**mark, utility: value}


def stated(spent: PrivacySpent) -> dict[str, Any]:
    """What a model costs, as columns."""
    return {name: getattr(spent, name) for name in ("epsilon", "delta", "protects", "neighboring_relation")}


def columns_with(utility: str) -> list[str]:
    """Columns of a frame whose models are judged by accuracy, or, of amounts, by R²."""
    return [utility if name == "accuracy" else name for name in COLUMNS]


def utility_in(frame: pd.DataFrame | Mapping[str, Any]) -> str:
    """What says how good predictions of a frame are."""
    return "r2" if "r2" in frame and "accuracy" not in frame else "accuracy"


def mark_non_dominated(frame: pd.DataFrame, references: Sequence[Mapping[str, Any]] = ()) -> pd.Series:
    """Non-dominated among rows of one data set and one guarantee: unlike ε are never compared, nor what is known of no
    row. The class that ``references`` have for everybody costs no ε, and beats what is less accurate."""
    marks, utility = pd.Series(False, index=frame.index), utility_in(frame)
    for (dataset, *_), part in frame.groupby(["dataset", "protects", "neighboring_relation"], sort=False):
        known = [name for name in _MINIMIZE if name in part and part[name].notna().any()]
        values = part[known].astype(float).replace(math.inf, 1e300)
        best = pareto_frontier(values.to_numpy(), [_MINIMIZE[name] for name in known])
        for mark in references:
            if mark["private"] and mark["dataset"] == dataset and utility in known:
                best &= ~beaten_by(mark[utility], part)
        marks[part.index] = best
    return marks


def beaten_by(baseline: float | Floats, part: pd.DataFrame) -> Bools:
    """Rows that are no better than one answer for everybody, which answers every row and has no gap."""
    worse, found = (part["disparity"] > 0) | (part["coverage"] < 1), part[utility_in(part)]
    return np.asarray((found < baseline) | ((found == baseline) & worse))


def parity_weight(estimator: Any) -> str | None:
    """Name of the parameter that weighs parity in place of γ; None where γ bounds the gap, or nothing does."""
    params = estimator.get_params()
    if hasattr(estimator, "refit"):  # with a gate, γ is swept; a weight beside released votes may weigh anything
        of_student = "student__penalty_weight"
        return of_student if of_student in params and params.get("gate") is None else None
    return "lam" if "lam" in params else None


def guarantee_record(
    protects: Any, relation: Any, delta: float, epsilon: float, n_fits: int, rows_of: str = ""
) -> dict[str, Any]:
    """What publishing a table costs under one kind of guarantee, as ``attrs["guarantees"]`` holds it."""
    total = {"protects": protects, "neighboring_relation": relation, "delta": delta, "epsilon_total": epsilon}
    return {**total, "n_fits": n_fits, **({"rows_of": rows_of} if rows_of else {})}


def sweeps_gamma(estimator: Any) -> bool:
    """Whether one release is answered for every γ, by a student or a gate; elsewhere γ is short for constraints."""
    has: Mapping[str, Any] = getattr(estimator, "get_params", dict)()
    return "gamma" in has and hasattr(estimator, "refit") and ("student" in has or "constraints" not in has)


def as_gamma(value: float | None) -> float:
    """γ as a column holds it: NaN where there is none."""
    return math.nan if value is None else float(value)


def join_frontiers(tables: Any) -> pd.DataFrame:
    """Join tables of operating points into one, and judge anew which points are not dominated.

    No private row is read and nothing is spent. Fitted searches that ran on the same private rows are composed, so that
    the ε of publishing all of them is known. Of plain frames with the same kind of guarantee it is not, and stays NaN:
    ε of different frames are never added.

    Parameters
    ----------
    tables : DataFrame or fitted ParetoSearchCV, list of them, or dict of name → one
        Frames as :func:`frontier` returns them. Names replace the column ``estimator``.

    Returns
    -------
    DataFrame
        All rows, with ``attrs["guarantees"]`` as for :func:`frontier`. A single table is returned as it is.

    Raises
    ------
    ValueError
        Something that has no table: of a PrivateSearchCV only the winner may be seen.

    Examples
    --------
    >>> import pandas as pd
    >>> from skfairdp.model_selection import join_frontiers
    >>> points = pd.DataFrame({
    ...     "dataset": "", "epsilon": 1.0, "protects": "record", "neighboring_relation": "replace one record",
    ...     "disparity": [0.03, 0.10], "accuracy": [0.80, 0.82], "coverage": 1.0})
    >>> joined = join_frontiers({"first": points, "second": points.assign(accuracy=[0.79, 0.84])})
    >>> joined["non_dominated"].tolist(), joined["estimator"].tolist()
    ([True, False, False, True], ['first', 'first', 'second', 'second'])
    """
    named = dict(tables) if isinstance(tables, Mapping) else None
    listed = list(named.values()) if named else list(tables) if isinstance(tables, list | tuple) else [tables]
    frames = [getattr(table, "pareto_table_", table) for table in listed]
    if not listed or not all(isinstance(frame, pd.DataFrame) for frame in frames):
        raise ValueError(
            "join_frontiers needs frames of frontier(), or searches with a pareto_table_, as a fitted ParetoSearchCV; "
            "of a PrivateSearchCV only the winner may be seen."
        )
    if len(frames) == 1 and named is None:
        return frames[0]
    if named is not None:
        frames = [frame.assign(estimator=name) for name, frame in zip(named, frames, strict=True)]
    return _joined(frames, [getattr(table, "privacy_", None) for table in listed])


def _joined(frames: Sequence[pd.DataFrame], spent: Sequence[PrivacySpent | None]) -> pd.DataFrame:
    # Columns without a value say nothing about the type of the others.
    plain = [pd.DataFrame(frame).dropna(axis=1, how="all") for frame in frames]
    columns = list(dict.fromkeys(column for frame in frames for column in frame.columns))
    for part in plain:
        part.attrs = {}
    joined = pd.concat(plain, ignore_index=True).reindex(columns=columns)
    marks = [mark for frame in frames for mark in frame.attrs.get("references", [])]
    joined["non_dominated"] = mark_non_dominated(joined, marks)
    joined.attrs["guarantees"] = _joined_records(frames, spent)
    if marks:  # of one data set the same ones come again
        joined.attrs["references"] = list({(mark["dataset"], mark["name"]): mark for mark in marks}.values())
    scored = {frame.attrs.get("scored_on") for frame in frames}
    if len(scored) == 1:
        joined.attrs["scored_on"] = scored.pop()
    return joined


def _joined_records(frames: Sequence[pd.DataFrame], spent: Sequence[PrivacySpent | None]) -> list[dict[str, Any]]:
    """One record for each kind of guarantee: composed where all tables with it say what they spent."""
    found: dict[Kind, list[tuple[dict[str, Any], PrivacySpent | None]]] = {}
    private: list[PrivacySpent | None] = []
    for frame, cost in zip(frames, spent, strict=True):
        for record in frame.attrs.get("guarantees", []):
            found.setdefault((record["protects"], record["neighboring_relation"]), []).append((record, cost))
        private += [cost] * ("guarantees" in frame.attrs)
    joined = []
    for kind, records in found.items():
        parts = [cost for _, cost in records]
        if kind[0] == Protects.SENSITIVE_ATTRIBUTE:  # which the fits for records have seen too
            parts = [None if cost is None else of_the_attribute(cost) for cost in private]
        if len(parts) == 1:
            joined.append(dict(records[0][0]))
            continue
        delta, n_fits = max(record["delta"] for record, _ in records), sum(record["n_fits"] for record, _ in records)
        joined.append(guarantee_record(*kind, delta, composed_epsilon(parts), n_fits))
    return joined


def of_the_attribute(spent: PrivacySpent) -> PrivacySpent:
    """What a fit tells of one sensitive attribute, if it was for records too."""
    relation = NeighboringRelation.REPLACE_ATTRIBUTE
    event = privacy.attribute_event(spent.event, spent.neighboring_relation)
    secret = spent.epsilon == spent.mechanism_epsilon
    of: dict[str, Any] = {"protects": relation.protects, "neighboring_relation": relation, "public": spent.public}
    return PrivacySpent.of(event, spent.delta, secret_noise=secret, **of)


def composed_epsilon(spent: Sequence[PrivacySpent | None]) -> float:
    """ε of all of them together; NaN where one is not known, or they are stated at unlike δ."""
    known = [cost for cost in spent if cost is not None]
    if len(known) < len(spent):
        return math.nan
    try:
        return sum(known[1:], start=known[0]).epsilon
    except ValueError:  # unlike δ: no total is certified
        return math.nan


# Not part of what a reader needs to make the model again.
_HOUSEKEEPING = frozenset({"ledger", "memory", "n_jobs", "verbose", "random_state"})
_ALWAYS = ("epsilon", "delta", "gamma")


class Totals:
    """Counts what the fits of one call spend: by their ledgers, by ``privacy_`` where those say nothing. Whatever was
    charged stays in the total: a fit that tried, failed and tried again has spent twice."""

    def __init__(self) -> None:
        self._ledgers: dict[int, tuple[PrivacyLedger, int]] = {}
        self._fits: list[tuple[PrivacySpent, tuple[LedgerEntry, ...] | None]] = []

    def prepare(self, estimator: Any, seed: int) -> Any:
        """Clone an estimator, seed its public randomness, and watch the ledger it was given."""
        base = clone(estimator)
        params = base.get_params(deep=False)
        if "random_state" in params and params["random_state"] is None:
            base.set_params(random_state=seed)
        ledger = privacy.ledger_in_use(params.get("ledger")) if "ledger" in params else None
        if ledger is not None and id(ledger) not in self._ledgers:
            self._ledgers[id(ledger)] = (ledger, len(ledger.entries))
        return base

    def add(self, spent: PrivacySpent, charged: tuple[LedgerEntry, ...] | None) -> None:
        """Note one finished fit: what it says it spent, and what it charged; None where a given ledger was charged."""
        self._fits.append((spent, charged))

    def guarantees(self, delta: float) -> list[dict[str, Any]]:
        """Compose what was spent, one total for each kind of guarantee: unlike ones are never added. What fits for
        records tell of the attribute is part of the total for attributes."""
        given = [entry for ledger, before in self._ledgers.values() for entry in ledger.entries[before:]]
        own = [entry for _, charged in self._fits for entry in charged or ()]
        kinds = dict.fromkeys([*(_kind(spent) for spent, _ in self._fits), *map(_kind, own), *map(_kind, given)])
        events = {kind: self._events(kind, given, own) for kind in kinds}
        return [self._guarantee(kind, delta, events) for kind in kinds]

    def _events(self, kind: Kind, given: list[LedgerEntry], own: list[LedgerEntry]) -> list[DpEvent]:
        fits = self._of(kind)
        on_ledger = [spent.own.event for spent, charged in fits if charged is None]
        # What was paid for before and given to these fits, such as a schema: once each.
        held = {part.release or id(part): part for spent, _ in fits for part in spent.parts[1:]}
        before = [(part.event, part.neighboring_relation) for part in held.values()]
        charged_there = [entry.event for entry in given if _kind(entry) == kind]
        return [
            # A ledger knows more than the fits (a fit that failed has spent); it can never know less.
            *(charged_there if len(charged_there) >= len(on_ledger) else on_ledger),
            *(entry.event for entry in own if _kind(entry) == kind),
            *(spent.own.event for spent, charged in fits if charged == ()),  # it keeps no books
            *(privacy.attribute_event(*of) if kind[0] == Protects.SENSITIVE_ATTRIBUTE else of[0] for of in before),
        ]

    def _guarantee(self, kind: Kind, delta: float, events: dict[Kind, list[DpEvent]]) -> dict[str, Any]:
        counted, secret = events[kind], self._of(kind)
        if kind[0] == Protects.SENSITIVE_ATTRIBUTE:  # which fits for records have seen too
            counted = [privacy.attribute_event(event, other[1]) for other, spent in events.items() for event in spent]
            secret = self._fits
        is_secret = all(math.isfinite(spent.epsilon) for spent, _ in secret)
        of: dict[str, Any] = {"protects": kind[0], "neighboring_relation": kind[1], "secret_noise": is_secret}
        total = PrivacySpent.of(privacy.compose(*counted), delta, **of)
        whose = next((spent.rows_of for spent, _ in self._of(kind) if spent.rows_of), "")
        return guarantee_record(*kind, delta, total.epsilon, len(self._of(kind)), whose)

    def _of(self, kind: Kind) -> list[tuple[PrivacySpent, tuple[LedgerEntry, ...] | None]]:
        return [(spent, charged) for spent, charged in self._fits if _kind(spent) == kind]


def counting_ledger(estimator: Any) -> PrivacyLedger | None:
    """Give an estimator without a ledger one that counts; None where it has one, or none helps: of seeded noise there
    is nothing private left to count."""
    params = estimator.get_params(deep=False)
    unaware = "ledger" not in params or params.get("noise_seed") is not None
    if unaware or privacy.ledger_in_use(params["ledger"]) is not None:
        return None
    ledger = PrivacyLedger(delta=params["delta"])
    estimator.set_params(ledger=ledger)
    return ledger


def _kind(spent: PrivacySpent | LedgerEntry) -> Kind:
    return spent.protects, spent.neighboring_relation


def expression(estimator: Any) -> str:
    """The constructor call that makes the estimator, without what only concerns this machine."""
    values = estimator.get_params(deep=False)
    usual = {name: repr(one.default) for name, one in inspect.signature(type(estimator)).parameters.items()}
    always = [name for name in _ALWAYS if values.get(name) is not None]
    shown = {n: values[n] for n in usual if n in always or (n not in _HOUSEKEEPING and repr(values[n]) != usual[n])}
    inside = ", ".join(f"{name}={' '.join(repr(value).split())}" for name, value in shown.items())
    return f"{type(estimator).__name__}({inside})"


def pareto_frontier(points: ArrayLike, minimize: bool | Sequence[bool] = True) -> Bools:
    """Mark the points that no other point dominates.

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
        must = f"{losses.shape[1]} finite numbers, one for each objective"
        raise invalid_parameter("reference", "hypervolume", must, reference)
    gains = origin * _signs(minimize, losses.shape[1], owner="hypervolume") - losses
    gains = gains[(gains > 0).all(axis=1)]  # comparisons with NaN are False
    return float(_volume(gains[_non_dominated(-gains)])) if len(gains) else 0.0


def _signs(minimize: bool | Sequence[bool], n_objectives: int, *, owner: str) -> Floats:
    flags = np.asarray(minimize)
    if flags.dtype != bool or flags.shape not in ((), (n_objectives,)):
        raise invalid_parameter("minimize", owner, f"a bool, or {n_objectives} bools, one for each objective", minimize)
    return np.where(np.broadcast_to(flags, (n_objectives,)), 1.0, -1.0)


def _losses(points: ArrayLike, minimize: bool | Sequence[bool], *, owner: str) -> Floats:
    table = np.asarray(points, dtype=float)
    if table.ndim != 2:
        raise ValueError(
            f"The 'points' parameter of {owner} must be a table of shape (n_points, n_objectives). "
            f"Got {table.ndim} dimension(s) instead."
        )
    return table * _signs(minimize, table.shape[1], owner=owner)


def _non_dominated(losses: Floats) -> Bools:
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
        remaining = remaining[1:][~((leader <= rest).all(axis=1) & (leader < rest).any(axis=1))]
    return keep


def _volume(gains: Floats) -> float:
    """Volume of the union of the boxes [0, gain]; no box lies inside another one unless they are equal."""
    if gains.shape[1] == 1:
        return float(gains.max())
    ordered = gains[np.argsort(-gains[:, 0], kind="stable")]
    if gains.shape[1] == 2:
        return float(np.sum(ordered[:, 0] * np.diff(np.maximum.accumulate(ordered[:, 1]), prepend=0.0)))
    total = 0.0
    for i, box in enumerate(ordered):
        overlap = np.minimum(ordered[i + 1 :], box)  # what later boxes share with this one
        total += float(np.prod(box))
        if len(overlap):
            total -= _volume(overlap[_non_dominated(-overlap)])
    return total
