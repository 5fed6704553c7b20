"""Canaries, the neighbouring tables that they make, and what an observer sees of a model fitted to one of them."""

import hashlib
import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri
from scipy.stats import beta as beta_distribution, binom
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, RobustScaler, StandardScaler

from skfairdp._typing import Array, ArrayLike, Floats, Ints
from skfairdp.privacy import NeighboringRelation, Protects

RELATIONS = tuple(map(str, NeighboringRelation))
#: Of these a unit is present in one world, and not in the other.
ABSENT = tuple(str(relation) for relation in NeighboringRelation if relation.by_null)
OF_GROUPS = tuple(str(one) for one in NeighboringRelation if one.protects == Protects.SENSITIVE_ATTRIBUTE)


_FAR = 10.0  # how far outside the table the extreme canaries lie, in units of its largest number
_LARGEST_ATTRIBUTE = 2000  # numbers of one fitted attribute that are looked at
_PROBES = 8


@dataclass(frozen=True, eq=False)
class Canary:
    """One record in the two forms between which neighbouring tables differ.

    Parameters
    ----------
    first, second : tuple or None
        ``(x, y)`` or ``(x, y, group)``: what the row holds in either world. None: the row is absent.
    row : int, default=0
        Position of the row.
    name : str, default="canary"
        For the report.

    Examples
    --------
    >>> from skfairdp.inspection import Canary
    >>> Canary(([3.0, 0.0], 1), ([0.0, 3.0], 0)).row
    0
    """

    first: tuple[Any, ...] | None
    second: tuple[Any, ...] | None
    row: int = 0
    name: str = "canary"


@dataclass(frozen=True, eq=False)
class World:
    """One table: features, labels and groups."""

    X: Any
    y: Array
    groups: Array | None
    ids: "pd.Series[Any] | None" = None

    def rows_with(self, row: int) -> Ints:
        """The rows of the subject of a row; the row itself where no subjects are protected."""
        return np.array([row]) if self.ids is None else np.flatnonzero(self.ids == self.ids.iloc[row])


@dataclass(frozen=True, eq=False)
class Claim:
    """What a fitted model states of itself; None where it says nothing."""

    epsilon: float | None = None
    delta: float | None = None
    relation: str | None = None
    event: Any = None


@dataclass(frozen=True, eq=False)
class Seen:
    """What one fit shows: numbers, the shape of everything else as a short text, and its claim."""

    numbers: Floats
    signature: str
    claim: Claim = Claim()


# ---------------------------------------------------------------- canaries and worlds


def default_canaries(world: World, relation: str) -> list[Canary]:
    """Canaries for a table of which nothing is known: another label, and records far outside, on either side."""
    x = world.X.iloc[0] if isinstance(world.X, pd.DataFrame) else np.array(world.X[0])
    label, group = world.y[0], None if world.groups is None else world.groups[0]
    if relation in OF_GROUPS:
        if world.groups is None:
            raise ValueError("audit needs sensitive_features where the estimator protects the sensitive attribute.")
        others = [other for other in np.unique(world.groups) if other != group]
        return [Canary((x, label, group), (x, label, other), name="another group") for other in others[:1]]
    labels = np.unique(world.y)
    other = labels[labels != label][0] if len(labels) > 1 else label
    size = _FAR * max(1.0, float(np.nanmax(np.abs(_numbers(world.X)))))
    up, down = _filled(x, size), _filled(x, -size)
    if relation in ABSENT:
        return [
            Canary((x, label, group), None, name="a record"),
            Canary((up, label, group), None, name="a record far out"),
            Canary((down, other, group), None, name="a record far out, the other label"),
        ]
    return [
        Canary((x, label, group), (x, other, group), name="another label"),
        Canary((up, label, group), (up, other, group), name="far out, another label"),
        Canary((up, label, group), (down, label, group), name="far out, two sides"),
        Canary((up, label, group), (down, other, group), name="far out, two sides and labels"),
    ]


def make_world(world: World, placed: Sequence[tuple[int, tuple[Any, ...] | None]]) -> World:
    """The table with these rows replaced, or left out where the record is None."""
    X, y = _copy(world.X), np.array(world.y)
    groups, at = None if world.groups is None else np.array(world.groups), getattr(X, "iloc", X)
    everywhere = [(row, record) for first, record in placed for row in world.rows_with(first).tolist()]
    for row, record in everywhere:
        if record is None:
            continue
        at[row] = record[0]
        y[row] = record[1]
        if groups is not None and len(record) > 2 and record[2] is not None:
            groups[row] = record[2]
    if not (gone := {row for row, record in everywhere if record is None}):
        return World(X, y, groups, world.ids)
    kept = np.array([row for row in range(len(y)) if row not in gone])
    ids = None if world.ids is None else world.ids.iloc[kept]
    return World(at[kept], y[kept], None if groups is None else groups[kept], ids)


def _numbers(X: Any) -> Floats:
    if isinstance(X, pd.DataFrame):
        X = X.select_dtypes("number")
    values = np.asarray(X, dtype=float)
    return values if values.size else np.zeros((1, 1))


def _filled(x: Any, value: float) -> Any:
    if not isinstance(x, pd.Series):
        return np.full(np.shape(x), value, dtype=float)
    numeric = [isinstance(entry, int | float | np.number) and not isinstance(entry, bool) for entry in x]
    return pd.Series([value if is_number else entry for entry, is_number in zip(x, numeric, strict=True)], x.index)


def _copy(X: Any) -> Any:
    if isinstance(X, pd.DataFrame):
        return X.astype(dict.fromkeys(X.select_dtypes("number").columns, float))
    X = np.array(X)
    return X.astype(float) if X.dtype.kind in "iub" else X


# ---------------------------------------------------------------- what is seen


def fit_and_see(
    estimator: Any, world: World, look: Callable[[Any], Any], seed: int | None, fit_params: Mapping[str, Any]
) -> Seen:
    """Fit a clone and look at it. An error is something that is seen, and so is the number of warnings."""
    model = clone(estimator)
    if seed is not None:
        model.set_params(**dict.fromkeys(seeds_of_noise(model), seed))
    given = dict(fit_params)
    if world.groups is not None:
        given["sensitive_features"] = world.groups
    if world.ids is not None:  # those who have no row are listed as well
        given["subject"] = world.ids.set_axis(world.X.index) if isinstance(world.X, pd.DataFrame) else world.ids
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model.fit(world.X, world.y, **given)
            looked = look(model)
        except Exception as error:  # whatever a user would see
            return Seen(np.empty(0), f"{type(error).__name__}: {error}")
    numbers, signature = looked if isinstance(looked, tuple) else (looked, "")
    kinds = sorted({warning.category.__name__ for warning in caught})
    return Seen(np.asarray(numbers, dtype=float).ravel(), f"{kinds} {signature}", claim_of(model))


def seeds_of_noise(estimator: Any) -> list[str]:
    """Names of the parameters that seed its noise: each ``random_state``, but of what has a ``noise_seed`` apart."""
    names = estimator.get_params(deep=True)
    apart = tuple(name.removesuffix("noise_seed") for name in names if name.split("__")[-1] == "noise_seed")
    return [name for name in names if name.split("__")[-1] == "random_state" and not name.startswith(apart or ("\0",))]


def claim_of(model: Any) -> Claim:
    """ε, δ, neighbours and releases as a fitted model states them, in our words or in those of a parameter ``epsilon``.
    A pipeline states what its last step states."""
    if isinstance(model, Pipeline):
        model = model[-1]
    spent: Any = getattr(model, "privacy_", None)
    if spent is not None and hasattr(spent, "neighboring_relation"):
        relation = str(spent.neighboring_relation)
        return Claim(float(spent.epsilon), float(spent.delta), relation, getattr(spent, "event", None))
    parameters = model.get_params(deep=False) if hasattr(model, "get_params") else {}
    epsilon = getattr(model, "epsilon_spent_", parameters.get("epsilon"))
    delta = parameters.get("delta")
    return Claim(None if epsilon is None else float(epsilon), None if delta is None else float(delta))


class Observer:
    """Everything numeric that a fitted model shows: predictions at a few rows, and fitted attributes."""

    def __init__(self, world: World, canaries: Sequence[Canary], *, attributes: bool) -> None:
        records = [record for canary in canaries for record in (canary.first, canary.second) if record is not None]
        rows = _PROBES + len(records)
        probes = world.X.iloc[:rows] if isinstance(world.X, pd.DataFrame) else np.array(world.X[:rows])
        start = max(0, len(probes) - len(records))
        placed = [(start + k, record) for k, record in enumerate(records[: len(probes) - start])]
        self.probes = make_world(World(probes, world.y[: len(probes)], None), placed).X
        self.attributes = attributes

    def __call__(self, model: Any) -> tuple[Floats, str]:
        way = next((name for name in ("predict_proba", "decision_function", "predict") if hasattr(model, name)), None)
        seen = {"predictions": None if way is None else _as_numbers(getattr(model, way)(self.probes))}
        if self.attributes:
            for name in sorted(vars(model)):
                if name.endswith("_") and not name.startswith("_"):
                    seen[name] = _as_numbers(getattr(model, name))
        known = {name: value for name, value in seen.items() if value is not None}
        shapes = [(n, type(v).__name__, str(getattr(v, "dtype", "")), np.shape(v)) for n, v in known.items()]
        text = hashlib.sha256(repr(shapes).encode()).hexdigest()[:12]
        arrays = [np.ravel(value).astype(float) for value in known.values()]
        return np.concatenate(arrays) if arrays else np.empty(0), text


def _as_numbers(value: Any) -> Any:
    if hasattr(value, "state_dict"):
        parts = [np.asarray(tensor.detach().cpu(), dtype=float).ravel() for tensor in value.state_dict().values()]
        value = np.concatenate(parts) if parts else None
    if isinstance(value, pd.DataFrame | pd.Series):
        value = value.to_numpy()
    try:
        array = np.asarray(value)
    except ValueError:
        return None
    return array if array.dtype.kind in "iufb" and array.size <= _LARGEST_ATTRIBUTE else None


def poisoned_queries(
    X: ArrayLike, *, n_queries: int, labels: Sequence[Any], row: int = 0, distance: float = 10.0
) -> tuple[Canary, Floats]:
    """Return a canary far from all other records, and queries at its place: the worst case for votes.

    An attacker who may put one record into the private rows, and choose the questions, controls the vote of the one
    teacher that gets the record: the record lies far outside, every question lies on it, and its label is one or the
    other. A teacher that goes by its nearest rows then turns in each answer, which is all that one record can do to the
    votes of an ensemble, whatever the other rows are (Chadha et al. 2024, "Auditing private prediction"). The two
    labels are the canary's forms; pass both results on to :func:`audit`, or fit on the two worlds yourself.

    Parameters
    ----------
    X : array-like of shape (n_rows, n_features)
        The private rows among which the record will lie.
    n_queries : int
        At least 1. Each costs what a query costs, and moves by a vote.
    labels : sequence of two labels
        Of the poisoned record, in the first and the second world.
    row : int, default=0
        Position that the poisoned record takes.
    distance : float, default=10.0
        How far outside, in units of the largest number of X (at least 1).

    Returns
    -------
    canary : Canary
        The record to plant.
    queries : ndarray of shape (n_queries, n_features)
        Public rows to ask about.

    Raises
    ------
    ValueError
        Not two different labels, fewer than one query, or a row that X does not have.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.inspection import poisoned_queries
    >>> canary, queries = poisoned_queries(np.array([[0.5, 2.0], [1.0, -3.0]]), n_queries=3, labels=(0, 1))
    >>> queries
    array([[30., 30.],
           [30., 30.],
           [30., 30.]])
    >>> canary.first[1], canary.second[1]
    (0, 1)
    """
    rows = np.asarray(X, dtype=float)
    if len(labels) != 2 or labels[0] == labels[1]:
        raise ValueError(f"labels must be two different labels. Got {labels!r} instead.")
    if isinstance(n_queries, bool) or not isinstance(n_queries, int | np.integer) or n_queries < 1:
        raise ValueError(f"n_queries must be an integer of at least 1. Got {n_queries!r} instead.")
    if rows.ndim != 2 or not 0 <= row < len(rows):
        raise ValueError(f"row must be a position in X, which has {len(rows)} rows. Got {row!r} instead.")
    place = np.full(rows.shape[1], distance * max(1.0, float(np.abs(rows).max())))
    return Canary((place, labels[0]), (place, labels[1]), row, name="poisoned record"), np.tile(place, (n_queries, 1))


Rates = tuple[float, float]

_SHARES = 10.0 ** -np.arange(0.3, 6.1, 0.2)  # thresholds of the band: 50 %, 32 %, 20 %, ... of a world lie beyond


def clopper_pearson_upper(errors: Ints, n: int, confidence: float) -> Floats:
    """Upper limit of an error rate."""
    return np.where(errors >= n, 1.0, beta_distribution.ppf(confidence, errors + 1, np.maximum(n - errors, 1)))


def rates_epsilon(rates: Iterable[Rates], delta: float) -> float:
    """Lower bound on ε from upper limits of both error rates: the best of all pairs, in both directions."""
    ratio = max(max((1 - delta - fnr) / fpr, (1 - delta - fpr) / fnr) for fpr, fnr in rates)
    return math.log(ratio) if ratio > 1 else 0.0


def mu_of_rates(rates: Rates) -> float:
    """μ of the Gaussian mechanism at which a test has these two error rates."""
    return -float(ndtri(rates[0]) + ndtri(rates[1]))


def largest_refuted(refuted: Callable[[float], bool], *, most: float = math.inf) -> float:
    """The largest figure up to which every one is refuted, rounded down; inf where those beyond ``most`` are."""
    if not refuted(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while refuted(high):
        low, high = high, 2 * high
        if high > most:
            return math.inf
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low


# ---------------------------------------------------------------- real-valued scores


def rates_of_band(scores_0: Floats, scores_1: Floats, confidence: float) -> tuple[Rates, ...]:
    """Upper limits of (false-positive, false-negative) rates at many thresholds, that hold all together. The thresholds
    are order statistics, chosen by rank before any score is seen. The share of a world beyond its own is at most a beta
    variable (exactly so without ties); the other world, independent of it, is counted (Clopper-Pearson)."""
    first, second = np.sort(scores_0), np.sort(scores_1)
    n_0, n_1 = len(first), len(second)
    above, below = (np.array(sorted({0, *np.rint(_SHARES * n).astype(int).tolist()} - {n})) for n in (n_0, n_1))
    upper = partial(clopper_pearson_upper, confidence=1 - (1 - confidence) / (2 * (len(above) + len(below))))
    # so many of world 0 lie above a threshold, and so many of world 1 below
    missed = np.searchsorted(second, first[n_0 - 1 - above], side="right")
    false = n_0 - np.searchsorted(first, second[below], side="left")
    fpr, fnr = np.r_[upper(above, n_0), upper(false, n_0)], np.r_[upper(missed, n_1), upper(below, n_1)]
    return tuple(zip(fpr.tolist(), fnr.tolist(), strict=True))


# ---------------------------------------------------------------- bits


def bits_delta(epsilon: float, low: float, high: float, n_queries: int) -> float:
    """δ at ε of so many independent bits, each 1 with probability ``low`` in one world and ``high`` in the other."""
    k = np.arange(n_queries + 1)
    first, second = binom.logpmf(k, n_queries, low), binom.logpmf(k, n_queries, high)
    found = 0.0
    for up, down in ((second, first), (first, second)):
        more = up > down + epsilon
        found = max(found, float(-np.sum(np.exp(up[more]) * np.expm1(down[more] + epsilon - up[more]))))
    return found


def bits_epsilon(low: float, high: float, n_queries: int, delta: float) -> float:
    """The largest ε at which these bits give away more than δ, rounded down."""
    return largest_refuted(lambda epsilon: high > low and bits_delta(epsilon, low, high, n_queries) > delta, most=1e4)


def bits_mu(low: float, high: float, n_queries: int) -> float:
    """Lower bound on the μ of a μ-GDP mechanism that answers so: the best threshold on the number of ones."""
    if high <= low:
        return 0.0
    k = np.arange(1, n_queries + 1)
    fpr, fnr = binom.sf(k - 1, n_queries, low), binom.cdf(k - 1, n_queries, high)
    known = (fpr > 1e-300) & (fnr > 1e-300)
    return max(0.0, float(np.max(-(ndtri(fpr[known]) + ndtri(fnr[known])), initial=0.0)))


_HUGE = 1e30  # beyond, numbers are as good as infinite, and their squares overflow
_RIDGES = (1e-9, 1e-3, 0.3)  # the least finds differences that have no noise at all; the others survive many columns


class LearnedScore:
    """The best of a few classifiers of runs, chosen by cross-validation among the runs that it learns from."""

    def __init__(self, runs: Sequence[Sequence[Seen]], *, linear: bool, seed: int) -> None:
        everything = [seen for world in runs for seen in world]
        sizes = [len(seen.numbers) for seen in everything]
        self._length = max(set(sizes), key=sizes.count)
        self._signatures = list(dict.fromkeys(seen.signature for seen in everything))[:20]
        table, labels = self._table(everything), np.repeat([0, 1], [len(world) for world in runs])
        self._kept = np.ptp(table, axis=0) > 0
        self.strength = 0.0
        self._model: Any = None
        if not self._kept.any():
            return  # both worlds look alike in every run
        for model in self._candidates(linear, seed):
            logits = _logit(cross_val_predict(model, table[:, self._kept], labels, cv=3, method="predict_proba")[:, 1])
            worlds = logits[labels == 0], logits[labels == 1]
            strength = rates_epsilon(rates_of_band(*worlds, 0.95), 0.0) + max(0.0, chance_of_order(*worlds) - 0.5)
            if strength > self.strength:
                self.strength, self._model = strength, model
        if self._model is not None:
            self._model.fit(table[:, self._kept], labels)

    def __call__(self, runs: Sequence[Seen]) -> Floats:
        """Score runs that were not learned from."""
        if self._model is None:
            return np.zeros(len(runs))
        return _logit(self._model.predict_proba(self._table(runs)[:, self._kept])[:, 1])

    def _table(self, runs: Sequence[Seen]) -> Floats:
        rows = []
        for seen in runs:
            fits = len(seen.numbers) == self._length
            numbers = np.nan_to_num(seen.numbers, posinf=_HUGE, neginf=-_HUGE) if fits else np.zeros(self._length)
            rows.append([*numbers, *(float(seen.signature == known) for known in self._signatures), float(fits)])
        return np.array(rows).clip(-_HUGE, _HUGE)

    @staticmethod
    def _candidates(linear: bool, seed: int) -> list[Any]:
        lda = partial(LinearDiscriminantAnalysis, solver="lsqr")
        models: list[Any] = [make_pipeline(StandardScaler(), lda(shrinkage=ridge)) for ridge in _RIDGES]
        if not linear:
            models.append(ExtraTreesClassifier(40, min_samples_leaf=3, random_state=seed))
            squashed = make_pipeline(RobustScaler(), FunctionTransformer(np.tanh), StandardScaler())
            models.append(make_pipeline(squashed, lda(shrinkage=1e-3)))  # for heavy tails
        return models


def _logit(probability: Floats) -> Floats:
    p = np.clip(probability, 1e-300, 1 - 1e-16)
    return np.log(p) - np.log1p(-p)


def chance_of_order(scores_0: Floats, scores_1: Floats) -> float:
    """That a run of world 1 has the larger score (the area under the curve)."""
    return float(np.mean(scores_0[:, None] < scores_1) + np.mean(scores_0[:, None] == scores_1) / 2)
