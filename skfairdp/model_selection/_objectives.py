"""What a search measures: accuracy, coverage, gaps, ε, any scorer or metric; and what it demands of them."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import get_scorer, get_scorer_names

from skfairdp import metrics
from skfairdp._utils import encode_labels, group_domain
from skfairdp.fairness import largest_disparity, tally

_GAPS = ("demographic_disparity", "equalized_odds_disparity", "accuracy_disparity")
_BUILT_IN = {"accuracy": False, "coverage": False, "disparity": True, "epsilon": True, **dict.fromkeys(_GAPS, True)}


@dataclass(frozen=True)
class Answers:
    """Rows to measure on: true labels, predictions, which of them are refusals, and groups where there are any."""

    y_true: NDArray[Any]
    y_pred: NDArray[Any]
    answered: NDArray[np.bool_]
    groups: NDArray[Any] | None
    classes: NDArray[Any]


@dataclass(frozen=True)
class Objective:
    """One thing to measure."""

    name: str
    minimize: bool
    kind: str
    function: Callable[..., float] | None = None

    @property
    def is_usual_scorer(self) -> bool:
        """Whether it is one of scikit-learn's, which score any classifier."""
        return self.kind == "scorer" and isinstance(self.function, type(get_scorer("accuracy")))

    def measure(self, answers: Answers, epsilon: float, fitted: Any = None, X: Any = None) -> float:
        """The value on these rows; NaN where they do not determine it.

        ``fitted`` and ``X`` are given where the rows are public: a scorer then sees the estimator itself. Elsewhere it
        sees one that answers what was released.
        """
        if self.name == "epsilon" and self.kind == "built in":
            return epsilon
        kept = answers.answered
        if self.kind == "scorer":
            assert self.function is not None
            if fitted is not None:
                return float(self.function(fitted, X, answers.y_true))
            try:
                stand_in = _Answering(answers.classes)
                return float(self.function(stand_in, answers.y_pred[kept], answers.y_true[kept]))
            except AttributeError:
                raise ValueError(
                    f"The objective {self.name!r} needs more than predicted labels, and a noisy table of labels is all "
                    "that private folds release. Score on public rows: fit(..., validation=PublicData(X, groups, y))."
                ) from None
        if self.name == "coverage" and self.kind == "built in":
            return float(kept.mean()) if len(kept) else math.nan
        if not kept.any():
            return math.nan
        y_true, y_pred = answers.y_true[kept], answers.y_pred[kept]
        if self.name == "accuracy" and self.kind == "built in":
            return float(np.mean(y_true == y_pred))
        if answers.groups is None:
            if self.kind == "metric":
                assert self.function is not None
                return float(self.function(y_true, y_pred))
            return math.nan
        groups = answers.groups[kept]
        if self.name == "disparity" and self.kind == "built in":
            return largest_disparity(_counts(groups, y_pred, answers.classes))
        function = self.function if self.kind == "metric" else getattr(metrics, self.name)
        assert function is not None
        try:
            return float(function(y_true, y_pred, sensitive_features=groups))
        except ValueError:  # a group or a label that no answered row has
            return math.nan


class _Answering(ClassifierMixin, BaseEstimator):
    """Predicts what it is given: what a scorer sees where only answers were released."""

    def __init__(self, classes: Any = None) -> None:
        self.classes = classes
        self.classes_ = classes

    def fit(self, X: Any, y: Any = None) -> "_Answering":
        return self

    def predict(self, X: Any) -> Any:
        return np.asarray(X)


def _counts(groups: NDArray[Any], y_pred: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.int64]:
    domain = group_domain(groups)
    owner = {"owner": "disparity", "parameter": "groups"}
    z = encode_labels(groups, domain, name="groups", **owner)
    k = encode_labels(y_pred, classes, name="predictions", **owner)
    return tally(z, k, (len(domain), len(classes)))


def read_scoring(given: Any, *, owner: str) -> list[Objective]:
    """The objectives that the ``scoring`` of a search names."""
    named: Mapping[str, Any]
    if isinstance(given, str):
        named = {given: given}
    elif isinstance(given, Mapping):
        named = given
    elif isinstance(given, Sequence) and all(isinstance(name, str) for name in given):
        named = {name: name for name in given}
    else:
        named = {}
    if not named:
        raise ValueError(
            f"The 'scoring' parameter of {owner} must be a name, a list of names or a dict of name → objective, not "
            f"empty. Names are {sorted(_BUILT_IN)} and those of scikit-learn's scorers. Got {given!r} instead."
        )
    return [_objective(str(name), what, owner) for name, what in named.items()]


def _objective(name: str, what: Any, owner: str) -> Objective:
    if isinstance(what, str) and what in _BUILT_IN:
        if what == name:
            return Objective(name, _BUILT_IN[what], "built in")
        if what in _GAPS:
            return Objective(name, True, "metric", getattr(metrics, what))
        raise ValueError(f"The objective {what!r} of {owner} keeps its own name: write {{{what!r}: {what!r}}}.")
    if isinstance(what, str) and what in get_scorer_names():
        return Objective(name, False, "scorer", get_scorer(what))
    if isinstance(what, tuple) and len(what) == 2 and callable(what[0]) and what[1] in ("minimize", "maximize"):
        return Objective(name, what[1] == "minimize", "metric", what[0])
    if callable(what) and not isinstance(what, str):
        return Objective(name, False, "scorer", what)
    raise ValueError(
        f"{owner} does not know the objective {name!r}: {what!r}. It must be one of {sorted(_BUILT_IN)}, the name of a "
        "scorer of scikit-learn, a scorer (estimator, X, y), or a pair (metric, 'minimize' or 'maximize')."
    )


@dataclass(frozen=True)
class Bound:
    """What the winner has to meet in one objective."""

    name: str
    upper: bool
    limit: float

    def excess(self, value: float) -> float:
        """By how much a value misses the bound; 0 where it meets it, inf where it is not known."""
        if math.isnan(value):
            return math.inf
        return max(0.0, value - self.limit if self.upper else self.limit - value)


def read_bounds(given: Mapping[str, str] | None, objectives: Sequence[Objective], *, owner: str) -> list[Bound]:
    """Bounds such as ``{"disparity": "<= 0.05"}``, each on an objective of the search."""
    names = [objective.name for objective in objectives]
    bounds = []
    for name, text in (given or {}).items():
        found = re.fullmatch(r"\s*(<=|>=)\s*([-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?)\s*", str(text))
        if name not in names or found is None:
            raise ValueError(
                f"The 'bounds' parameter of {owner} must map an objective ({names}) to '<= number' or '>= number'."
                f" Got {name!r}: {text!r} instead."
            )
        bounds.append(Bound(name, found[1] == "<=", float(found[2])))
    return bounds
