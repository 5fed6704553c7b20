"""How each entry of the catalogue is replayed: made talkative, and asked for everything it answers."""

import functools
from collections.abc import Callable
from typing import Any

from sklearn.linear_model import LogisticRegression

from skfairdp.pate import FairTeachers
from tests._tools.catalogue import CATALOGUE, Fit, Rows
from tests._tools.neighbours import Pair
from tests._tools.replay import Recording, Replay, replay

__all__ = ["REPLAYED", "compared", "made_by", "neighbours", "planned", "recording"]

_RECORDINGS: dict[tuple[str, int], tuple[Recording, Rows]] = {}

#: Entries with a guarantee. The others promise nothing about the rows they are fitted on.
REPLAYED = [entry for entry in CATALOGUE if entry.spends]


def recording(entry: Fit, pair: Pair) -> Recording:
    """The fit of an entry on the first of two neighbours; kept, since pairs share it."""
    key = (entry.name, id(pair.data))
    if key not in _RECORDINGS:
        # The data set stays alive with its recording, so that no other gets its id.
        _RECORDINGS[key] = (
            Recording(made_by(entry), entry.fit, pair.data, lambda fitted: _answers(entry, fitted, pair.data)),
            pair.data,
        )
    return _RECORDINGS[key][0]


def compared(entry: Fit, pair: Pair, *, same_secrets: bool = True) -> Replay:
    """The fit of an entry, replayed on the neighbour."""
    return recording(entry, pair).on(pair.neighbour, same_secrets=same_secrets)


@functools.cache
def neighbours(entry: Fit, kind: Callable[[Fit], list[Pair]]) -> list[Pair]:
    """The pairs of one kind, with the same data sets whenever they are asked for."""
    return kind(entry)


def planned(entry: Fit, pair: Pair) -> Replay:
    """The plan of the fit, asked for on the neighbour."""
    return replay(made_by(entry), lambda made, rows: entry.fit(_Planner(made), rows), pair.data, pair.neighbour)


def made_by(entry: Fit) -> Callable[..., Any]:
    """Makes the estimator with all its progress on show."""

    def make(**given: Any) -> Any:
        made = entry.make(**given)
        params = made.get_params() if hasattr(made, "get_params") else {}
        talkative = {name: 1 for name in params if name.split("__")[-1] == "verbose"}
        return made.set_params(**talkative) if talkative else made

    return make


class _Planner:
    """Stands for an estimator; its fit asks for the plan only."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, *args: Any, **kwargs: Any) -> Any:
        return self.estimator.planned_privacy(*args, **kwargs)


def _answers(entry: Fit, fitted: Any, rows: Rows) -> dict[str, Any]:
    """What the fitted object answers, in the containers in which it answers."""
    found: dict[str, Any] = {"probe": dict(entry.probe(fitted, rows))}
    for name, ask in _QUESTIONS.items():
        if name == "refit" and isinstance(getattr(fitted, name, None), bool):  # a parameter of a search, no method
            continue
        if all(hasattr(fitted, part) for part in name.split(" and ")):
            found[name] = ask(fitted)
    return found


def _another_student(fitted: Any) -> dict[str, Any]:
    """The built-in one; where that is a network which trains for seconds, a quick one, or the same again. Of a
    generator: rows by another balance."""
    if "balance" in fitted.get_params(deep=False):
        return {"balance": None}
    variant = getattr(fitted, "variant", None)
    if isinstance(variant, FairTeachers):
        return {"variant__student": LogisticRegression()}
    return {} if variant == "student" or not hasattr(fitted, "student") else {"student": None}


_QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "sample": lambda fitted: fitted.sample(25, random_state=2),
    "sample_labels and sample": lambda fitted: fitted.sample_labels(25, random_state=3),
    "refit": lambda fitted: fitted.refit(**_another_student(fitted)),
    "epsilon_spent_": lambda fitted: fitted.epsilon_spent_,
    "privacy_": lambda fitted: str(fitted.privacy_),
    "privacy_statement": lambda fitted: fitted.privacy_statement(),
}
