"""Canaries, the neighbouring tables that they make, and what an observer sees of a model fitted to one of them."""

import hashlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline

RELATIONS = (
    "replace one record",
    "add or remove one record",
    "replace one sensitive attribute",
    "replace one record by a null record",
)
ABSENT = RELATIONS[1], RELATIONS[3]  # of these a record is present in one world, and not in the other

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
    y: NDArray[Any]
    groups: NDArray[Any] | None


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

    numbers: NDArray[np.float64]
    signature: str
    claim: Claim = Claim()


# ---------------------------------------------------------------- canaries and worlds


def default_canaries(world: World, relation: str) -> list[Canary]:
    """Canaries for a table of which nothing is known: another label, and records far outside, on either side."""
    x = _record(world.X, 0)
    label, group = world.y[0], None if world.groups is None else world.groups[0]
    if relation == RELATIONS[2]:
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
    groups = None if world.groups is None else np.array(world.groups)
    for row, record in placed:
        if record is None:
            continue
        _put(X, row, record[0])
        y[row] = record[1]
        if groups is not None and len(record) > 2 and record[2] is not None:
            groups[row] = record[2]
    gone = {row for row, record in placed if record is None}
    if not gone:
        return World(X, y, groups)
    kept = np.array([row for row in range(len(y)) if row not in gone])
    X = X.iloc[kept] if isinstance(X, pd.DataFrame) else X[kept]
    return World(X, y[kept], None if groups is None else groups[kept])


def _numbers(X: Any) -> NDArray[np.float64]:
    if isinstance(X, pd.DataFrame):
        X = X.select_dtypes("number")
    values = np.asarray(X, dtype=float)
    return values if values.size else np.zeros((1, 1))


def _record(X: Any, row: int) -> Any:
    return X.iloc[row] if isinstance(X, pd.DataFrame) else np.array(X[row])


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


def _put(X: Any, row: int, x: Any) -> None:
    if isinstance(X, pd.DataFrame):
        X.iloc[row] = x
    else:
        X[row] = x


# ---------------------------------------------------------------- what is seen


def fit_and_see(
    estimator: Any,
    world: World,
    look: Callable[[Any], Any],
    seed: int | None,
    fit_params: Mapping[str, Any],
) -> Seen:
    """Fit a clone and look at it. An error is something that is seen, and so is the number of warnings."""
    model = clone(estimator)
    if seed is not None:
        model.set_params(**dict.fromkeys(seeds_of_noise(model), seed))
    given = dict(fit_params)
    if world.groups is not None:
        given["sensitive_features"] = world.groups
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

    A pipeline states what its last step states.
    """
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

    def __call__(self, model: Any) -> tuple[NDArray[np.float64], str]:
        seen = {"predictions": self._predictions(model)}
        if self.attributes:
            for name in sorted(vars(model)):
                if name.endswith("_") and not name.startswith("_"):
                    seen[name] = _as_numbers(getattr(model, name))
        shapes = [
            (name, type(value).__name__, str(getattr(value, "dtype", "")), np.shape(value))
            for name, value in seen.items()
            if value is not None
        ]
        text = hashlib.sha256(repr(shapes).encode()).hexdigest()[:12]
        arrays = [np.ravel(value).astype(float) for value in seen.values() if value is not None]
        return np.concatenate(arrays) if arrays else np.empty(0), text

    def _predictions(self, model: Any) -> Any:
        for name in ("predict_proba", "decision_function", "predict"):
            if hasattr(model, name):
                return _as_numbers(getattr(model, name)(self.probes))
        return None


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
    if array.dtype.kind not in "iufb" or array.size > _LARGEST_ATTRIBUTE:
        return None
    return array
