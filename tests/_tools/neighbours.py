"""Pairs of neighbouring data sets, chosen to be nasty: what a fit may not tell apart once its releases are given."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from .catalogue import GUEST, NULL, Fit, Rows

__all__ = ["Pair", "containers", "everyday", "lonely", "pairs", "refused"]

HUGE = (1e308, -1e308, 1e39, -1e154)
TINY = (5e-324, -0.0, -1e-310, 2.2e-308)


@dataclass(frozen=True)
class Pair:
    """Two data sets of which one record (or one group of a record) differs.

    ``times`` is how many sensitivities their true values may be apart: two where each of them is a neighbour of the
    data set with a null record, which cannot be given to ``fit``. It is None where they are not comparable: a removed
    first row moves all others, and with them secret samples and parts.
    """

    name: str
    data: Rows
    neighbour: Rows
    times: float | None = 1.0

    def __repr__(self) -> str:
        return self.name


def pairs(entry: Fit) -> list[Pair]:
    """Every pair of neighbours for this fit."""
    return [*everyday(entry), *lonely(entry), *containers(entry)]


def everyday(entry: Fit) -> list[Pair]:
    """One record with other values, or one more or less, in the containers of the entry itself."""
    if entry.relation == GUEST:
        return list(_coming_and_going(entry))
    return [_through_null(entry, pair) for pair in _replaced(entry)]


def lonely(entry: Fit) -> list[Pair]:
    """A label or a group that occurs nowhere else, among declared ones, and is gone in the neighbour."""
    return [_through_null(entry, pair) for pair in _lonely(entry)]


def containers(entry: Fit) -> list[Pair]:
    """The same neighbours in other containers, and a value by which a container changes its type."""
    if isinstance(entry.rows().X, pd.DataFrame):
        return []  # the entry has a table of its own
    made = [_through_null(entry, pair) for pair in _other_containers(entry)]
    return [_last_to_go(entry, pair) for pair in made] if entry.relation == GUEST else made


def _through_null(entry: Fit, pair: Pair) -> Pair:
    """Two neighbours of a data set with a null record are twice as far apart."""
    return replace(pair, times=2.0) if entry.relation == NULL else pair


# ---- one record, in arrays -------------------------------------------------------------------------------------
def _coming_and_going(entry: Fit) -> Iterator[Pair]:
    rows = entry.rows()
    yield Pair("the last row missing", rows, _without(rows, -1))
    yield Pair("the first row missing", rows, _without(rows, 0), times=None)
    yield Pair("one extreme row more", rows, _with_row(rows, HUGE))
    yield Pair("one tiny row more", rows, _with_row(rows, TINY))
    # Large, and of the class that such rows do not have: its gradient reaches the bound whenever it is drawn.
    yield Pair("one large row more", rows, _with_row(rows, (40.0, 40.0, 7.0, 30.0), label=rows.y.min()))


def _replaced(entry: Fit) -> Iterator[Pair]:
    rows = entry.rows()
    first, *_, last = positions = range(len(rows.y))
    middle = positions[len(positions) // 3]
    if "X" in entry.private:
        yield Pair("huge numbers in the first row", rows, _features(rows, first, HUGE))
        yield Pair("tiny numbers in the last row", rows, _features(rows, last, TINY))
        yield Pair("a duplicate", rows, _copied(rows, entry, last, first))
    if "y" in entry.private:
        yield Pair("the label of the first row", rows, _next(rows, "y", first))
    if "groups" in entry.private:
        yield Pair("the group of the first row", rows, _next(rows, "groups", first))
        yield Pair("the group of the last row", rows, _next(rows, "groups", last))
    if "X" in entry.private:
        other = _features(rows, middle, (40.0, -40.0, 7.0, 1e8))
        for name in set(entry.private) - {"X"}:
            other = _next(other, name, middle)
        yield Pair("all of a row in the middle", rows, other)


def _lonely(entry: Fit) -> Iterator[Pair]:
    rows = entry.rows()
    positions = range(len(rows.y))
    for name in ("y", "groups"):
        if name not in entry.private:
            continue
        values = _values(getattr(rows, name))
        common, rare = (np.unique(values)[i] for i in (0, -1))
        alike = values.copy()
        alike[positions] = common
        one = alike.copy()
        one[positions[-1]] = rare
        without, data = (rows.but(**{name: _like(column, getattr(rows, name))}) for column in (alike, one))
        if entry.relation == GUEST:
            yield Pair(f"the only one of its kind in {name} missing", data, _without(data, -1))
        else:
            yield Pair(f"the only one of its kind in {name}", data, without)


# ---- other containers and types --------------------------------------------------------------------------------
def _other_containers(entry: Fit) -> Iterator[Pair]:
    rows = entry.rows()
    at = len(rows.y) - 1
    if "X" in entry.private:
        whole = np.round(rows.X) + 0.0
        short = rows.X.astype(np.float32)
        half, third = _bumped(whole, at, 0.5), _bumped(rows.X, at, 1 / 3)
        objects = rows.X.astype(object)
        objects[at] = [10**30, True, np.float32(3.5), "7"]
        listed = rows.X.tolist()
        forms = {
            "integers, and a half": (whole.astype(np.int64), half),
            "an array of objects": (rows.X, objects),
            "lists, and integers": (listed, [*listed[:at], [7, 0, -3, 1], *listed[at + 1 :]]),
            "single precision, and double": (short, _bumped(short.astype(np.float64), at, 1 / 3)),
            "a DataFrame": (_frame(rows.X), _frame(third)),
            "a DataFrame of integers, and floats": (_frame(whole.astype(np.int64)), _frame(half)),
            "a DataFrame of integers, and objects": (_frame(whole.astype(np.int64)), _frame(half.astype(object))),
            "nullable integers, and floats": (_frame(whole).astype("Int64"), _frame(half).astype("Float64")),
        }
        for what, (before, after) in forms.items():
            yield Pair(what, rows.but(X=before), rows.but(X=after))
    for name in ("y", "groups"):
        if name in entry.private:
            yield from _columns(entry, rows, name, at)


def _columns(entry: Fit, rows: Rows, name: str, at: int) -> Iterator[Pair]:
    """A column of labels: its container and type with and without one value."""
    values = getattr(rows, name)
    other = getattr(_next(rows, name, at), name)
    listed = other.tolist()
    forms = {
        "a list": (values.tolist(), listed),
        "a list, and one float": (values.tolist(), [*listed[:at], float(listed[at]), *listed[at + 1 :]]),
        "a list, and one truth": (values.tolist(), [*listed[:at], bool(listed[at]), *listed[at + 1 :]]),
        "a Series": (pd.Series(values), pd.Series(other)),
        "integers, and floats": (values, other.astype(float)),
        "a categorical": (pd.Series(values).astype("category"), _with_a_category(other)),
        "small integers, and large": (values.astype(np.int8), other.astype(np.uint64)),
    }
    if name == "groups":  # labels of objects that are no strings are refused, as scikit-learn does
        forms["integers, and objects"] = (values, other.astype(object))
    for what, (before, after) in forms.items():
        yield Pair(f"{name} in {what}", rows.but(**{name: before}), rows.but(**{name: after}))


def _last_to_go(entry: Fit, pair: Pair) -> Pair:
    """Neighbours differ by the presence of the last row: what it does to the types goes with it."""
    return Pair(f"{pair.name}, missing", pair.neighbour, _without(pair.data, -1))


# ---- what has to be refused ------------------------------------------------------------------------------------
def refused(entry: Fit) -> Iterator[tuple[str, Rows, Rows]]:
    """Unusable private values: two data sets each, which must be refused in the same words."""
    rows = entry.rows()
    if isinstance(rows.X, pd.DataFrame):
        return
    first, second, *_, last = range(len(rows.y))
    if "X" in entry.private and not entry.name.startswith("PFGuard"):  # a generator knows missing values
        for name, value in (("NaN", np.nan), ("an infinity", np.inf)):
            one, more = _features(rows, first, (value, 1.0, 2.0, 3.0)), _features(rows, last, (0.0, value, value, 0.0))
            yield f"{name} in X", one, _features(more, second, (value,) * 4)
        words = rows.but(X=rows.X.astype(object))
        yield "words in X", _features(words, first, ("Ms Smith", 1, 2, 3)), _features(words, last, (0, "x", "y", 0))
    bad = {"a label outside the domain": (7, 8), "None": (None, None), "NaN": (np.nan, np.nan)}
    for name in ("y", "groups"):
        for what, values in bad.items() if name in entry.private else ():
            if name == "y" and what.startswith("a label") and "Regressor" in entry.name:
                continue  # an amount beyond the bounds counts as the bound
            column = _values(getattr(rows, name)).astype(float if what == "NaN" else object)
            one, more = column.copy(), column.copy()
            one[first], more[[second, last]] = values[0], values[1]
            yield f"{what} in {name}", rows.but(**{name: one}), rows.but(**{name: more})


# ---- changes ---------------------------------------------------------------------------------------------------
def _values(column: Any) -> Any:
    return column.to_numpy() if isinstance(column, pd.Series) else np.asarray(column)


def _like(values: Any, column: Any) -> Any:
    return pd.Series(values, index=column.index, name=column.name) if isinstance(column, pd.Series) else values


def _features(rows: Rows, i: int, values: Any) -> Rows:
    X = rows.X.copy()
    if isinstance(X, pd.DataFrame):  # a table has kinds of columns: its numbers take the number that fits
        X.iloc[i, 0] = float(values[0])
        X.iloc[i, 1] = 11 if values[1] > 0 else 0
        X.iloc[i, 2] = "Cork"
        X.iloc[i, 3] = "up" if X.iloc[i, 3] == "down" else "down"
    else:
        X[i] = values
    return rows.but(X=X)


def _next(rows: Rows, name: str, i: int) -> Rows:
    """The next value of the column in row i."""
    column = getattr(rows, name)
    values = _values(column).copy()
    known = np.unique(values)
    values[i] = known[(np.searchsorted(known, values[i]) + 1) % len(known)]
    return rows.but(**{name: _like(values, column)})


def _copied(rows: Rows, entry: Fit, source: int, target: int) -> Rows:
    changed = {}
    for name in entry.private:
        column = getattr(rows, name).copy()
        if isinstance(column, pd.DataFrame | pd.Series):
            column.iloc[target] = column.iloc[source]
        else:
            column[target] = column[source]
        changed[name] = column
    return rows.but(**changed)


def _without(rows: Rows, i: int) -> Rows:
    """The rows but for the first or the last."""
    kept = slice(1, None) if i == 0 else slice(None, -1)

    def shorter(column: Any) -> Any:
        return column.iloc[kept] if isinstance(column, pd.DataFrame | pd.Series) else column[kept]

    return rows.but(**{name: shorter(getattr(rows, name)) for name in ("X", "y", "groups")})


def _with_row(rows: Rows, values: Any, label: Any = None) -> Rows:
    y = np.append(rows.y, rows.y[0] if label is None else label)
    return rows.but(X=np.vstack([rows.X, values]), y=y, groups=np.append(rows.groups, rows.groups[0]))


def _bumped(X: Any, i: int, by: float) -> Any:
    X = X.copy()
    X[i, 1] += by
    return X


def _frame(X: Any) -> pd.DataFrame:
    return pd.DataFrame(X, columns=["a", "b", "c", "d"])


def _with_a_category(values: Any) -> pd.Series:
    return pd.Series(pd.Categorical(values, categories=[*np.unique(values), 99]))
