"""Where a search measures its models: on public rows, exactly, or on private ones, by noisy tables that it pays for."""

import contextlib
import math
import operator
import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, is_regressor
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.metrics import get_scorer, get_scorer_names

from skfairdp import metrics, privacy
from skfairdp._row_wise import predict_with_groups, row_wise_predictions
from skfairdp._rows import Chunk, RowSource, SubjectRows, total_of
from skfairdp._teachers import counted_once
from skfairdp._utils import PublicData, encode_labels, encode_within, invalid_parameter
from skfairdp._utils._sklearn import take_rows
from skfairdp.fairness import largest_disparity, tally
from skfairdp.privacy import DpEvent, GaussianMechanism, NeighboringRelation, NoiseSource, gdp_mu
from skfairdp.schema import RawTable, Schema

Codes = NDArray[np.int64]
_GAPS = ("demographic_disparity", "equalized_odds_disparity", "accuracy_disparity")
_GAPS_OF_AMOUNTS = ("ks_disparity", "wasserstein_disparity")
_ALL = {"coverage": False, "disparity": True, "epsilon": True}
_OF_CLASSES = {"accuracy": False, **_ALL, **dict.fromkeys(_GAPS, True)}
_OF_AMOUNTS = {**_ALL, **dict.fromkeys(_GAPS_OF_AMOUNTS, True)}
_BUILT_IN = {**_OF_CLASSES, **_OF_AMOUNTS}


@dataclass(frozen=True)
class Answers:
    """Rows to measure on: true labels, predictions, which of them are refusals, and groups where there are any.
    ``classes`` is None where labels are amounts."""

    y_true: NDArray[Any]
    y_pred: NDArray[Any]
    answered: NDArray[np.bool_]
    groups: NDArray[Any] | None
    classes: NDArray[Any] | None


@dataclass(frozen=True)
class Objective:
    """One thing to measure."""

    name: str
    minimize: bool
    kind: str
    function: Any = None
    scorer: str = ""

    def measure(self, answers: Answers, epsilon: float, fitted: Any = None, X: Any = None) -> float:
        """The value on these rows; NaN where they do not determine it. Where the rows are public a scorer sees the
        estimator and X; elsewhere one that answers what was released."""
        if self.name == "epsilon" and self.kind == "built in":
            return epsilon
        kept = answers.answered
        if self.kind == "scorer":
            if fitted is not None:
                return float(self.function(fitted, X, answers.y_true))
            try:
                return float(self.function(_Answering(answers.classes), answers.y_pred[kept], answers.y_true[kept]))
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
            return float(self.function(y_true, y_pred)) if self.kind == "metric" else math.nan
        groups = answers.groups[kept]
        if self.name == "disparity" and self.kind == "built in":
            if answers.classes is None:
                return metrics.ks_disparity(y_true, y_pred, sensitive_features=groups)
            return largest_disparity(_counts(groups, y_pred, answers.classes))
        function = self.function if self.kind == "metric" else getattr(metrics, self.name)
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


def _counts(groups: NDArray[Any], y_pred: NDArray[Any], classes: NDArray[Any]) -> Codes:
    owner = {"owner": "disparity", "parameter": "groups"}
    z, domain = encode_within(groups, None, name="groups", **owner)
    return tally(z, encode_labels(y_pred, classes, name="predictions", **owner), (len(domain), len(classes)))


def utility_of(estimator: Any) -> str:
    """The objective that says how good predictions are, whatever else they are."""
    return "r2" if is_regressor(estimator) else "accuracy"


def read_scoring(given: Any, *, owner: str, of_amounts: bool = False) -> list[Objective]:
    """The objectives that the ``scoring`` of a search names."""
    listed, named = [given] if isinstance(given, str) else given, given if isinstance(given, Mapping) else {}
    if isinstance(listed, Sequence) and all(isinstance(name, str) for name in listed):
        named = {name: name for name in listed}
    known = _OF_AMOUNTS if of_amounts else _OF_CLASSES
    if not named:
        must = "a name, a list of names or a dict of name → objective, not empty"
        names = f"Names are {sorted(known)} and those of scikit-learn's scorers"
        raise invalid_parameter("scoring", owner, f"{must}. {names}", given)
    for what in named.values():
        if isinstance(what, str) and what in _BUILT_IN and what not in known:
            kind = "amounts" if of_amounts else "classes"
            raise ValueError(
                f"The objective {what!r} of {owner} does not judge predicted {kind}. Take one of {sorted(known)}, or a "
                f"scorer of scikit-learn such as {'r2' if of_amounts else 'accuracy'!r}."
            )
    return [_objective(str(name), what, owner) for name, what in named.items()]


def _objective(name: str, what: Any, owner: str) -> Objective:
    if isinstance(what, str) and what in _BUILT_IN:
        if what == name:
            return Objective(name, _BUILT_IN[what], "built in")
        if what in (*_GAPS, *_GAPS_OF_AMOUNTS):
            return Objective(name, True, "metric", getattr(metrics, what))
        raise ValueError(f"The objective {what!r} of {owner} keeps its own name: write {{{what!r}: {what!r}}}.")
    if isinstance(what, str) and what in get_scorer_names():
        return Objective(name, False, "scorer", get_scorer(what), what)
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


#: Beside the objectives of a model: how good one answer for everybody is on the same rows.
BASELINE = "baseline"


@dataclass(frozen=True)
class PublicScores:
    """Scores on public rows with public labels: exact, and free. What goes wrong goes wrong with a released model on
    public rows: ``raises`` shows it, else the scores are NaN."""

    rows: PublicData
    groups: NDArray[Any] | None
    objectives: Sequence[Objective]
    raises: bool = False

    def paid(self, noise_seed: int | None, n_tables: int) -> contextlib.AbstractContextManager[NoiseSource | None]:
        """No noise is needed."""
        return contextlib.nullcontext()

    def measure(self, fitted: Any, test: Any, epsilon: float, noise: Any) -> dict[str, float]:
        """The objectives of a released model, on all of the public rows."""
        try:
            return self._measured(fitted, epsilon)
        except Exception:
            if self.raises:
                raise
            return {o.name: math.nan for o in self.objectives}

    def _measured(self, fitted: Any, epsilon: float) -> dict[str, float]:
        predicted = np.asarray(predict_with_groups(fitted, self.rows.X, self.groups))
        classes, answered = None, np.ones(len(predicted), dtype=bool)
        if not is_regressor(fitted):
            classes = np.asarray(fitted.classes_)
            answered = np.isin(predicted, classes)
        answers = Answers(np.asarray(self.rows.y), predicted, answered, self.groups, classes)
        measured = {o.name: o.measure(answers, epsilon, fitted, self.rows.X) for o in self.objectives}
        return {**measured, BASELINE: _of_one_answer(answers)}

    def problem(self, fitted: Any) -> str:
        """Why a released model has no score: what scoring it on the public rows raises."""
        try:
            self._measured(fitted, math.nan)
        except Exception as error:
            return f" Scoring on 'validation' raised {type(error).__name__}: {error}"
        return ""

    def rehearse(self, demanded: Sequence[Objective], owner: str, *, of_amounts: bool) -> None:
        """Before a model is paid for, read objectives from labels as predictions, or from a dummy."""
        y = np.asarray(self.rows.y)
        answers = Answers(y, y, np.ones(len(y), dtype=bool), self.groups, None if of_amounts else np.unique(y))
        nothing = np.zeros((len(y), 1))
        dummy = (DummyRegressor() if of_amounts else DummyClassifier()).fit(nothing, y)
        for objective in demanded:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    usual = objective.kind == "scorer" and isinstance(objective.function, type(get_scorer("accuracy")))
                    if objective.kind == "metric" or usual:  # else it is the user's, and may ask for any model
                        objective.measure(answers, 1.0, None if objective.kind == "metric" else dummy, nothing)
            except Exception as error:
                raise ValueError(
                    f"The objective {objective.name!r} of {owner} cannot be computed on the rows of validation: "
                    f"{error} Nothing was spent."
                ) from error


@dataclass(frozen=True)
class PaidScores(ABC):
    """Scores on private rows, from one paid table each. Private but for ``table``."""

    table: Any
    objectives: Sequence[Objective]

    @abstractmethod
    def release(self, fitted: Any, test: Any, noise: NoiseSource) -> Any:
        """The noisy table of the test part. Everything private of a score is in here."""

    def read(self, objective: Objective, released: Any, epsilon: float) -> float:
        """An objective, as a released table has it."""
        return objective.measure(released, epsilon)

    @property
    def with_groups(self) -> bool:
        """Whether rows have groups."""
        return self.table.groups[0] is not None

    def measure(self, fitted: Any, test: Any, epsilon: float, noise: Any) -> dict[str, float]:
        """Release one table of the test part, and read the objectives from it."""
        released = self.release(fitted, test, noise)
        measured = {o.name: math.nan for o in self.objectives}
        for objective in self.objectives:
            with contextlib.suppress(Exception):  # what fails on a released table fails for reasons that are released
                measured[objective.name] = self.read(objective, released, epsilon)
        return {**measured, BASELINE: _of_one_answer(released)}

    def rehearse(self, demanded: Sequence[Objective]) -> None:
        """Read objectives from a made-up table: one that cannot be read from any is an error before the charge."""
        for objective in demanded:
            self.read(objective, self.table.made_up(self.with_groups), 1.0)

    def paid(self, noise_seed: int | None, n_tables: int) -> privacy.Spending:
        """The noise of the tables of a fold, for which the search has charged its ledger beforehand."""
        table, event = self.table, privacy.repeat(self.table.event, n_tables)
        account: dict[str, Any] = {"ledger": privacy.UNCHARGED, "noise_seed": noise_seed}
        return privacy.Spending(event, table.delta, table.relation, label="scores of a fold", **account)

    def problem(self, fitted: Any) -> str:
        """Nothing is told of private rows but what was released of them."""
        return ""


@dataclass(frozen=True)
class RowScores(PaidScores):
    """Scores on rows in memory."""

    X: Any
    truth: NDArray[Any]
    group_codes: Codes | None

    def asked(self, predict: Callable[..., Any], fitted: Any, test: Any) -> tuple[Codes, Codes | None, NDArray[Any]]:
        """The rows at these positions, or one row of each of these subjects, their groups, and what is predicted."""
        rows: Codes = test.one_each if isinstance(test, SubjectRows) else test
        places = np.arange(len(rows)) if self.table.public_size(len(rows)) is not None else None
        if isinstance(test, SubjectRows):
            places = test.places
        codes = None if self.group_codes is None else self.group_codes[rows]
        groups = None if codes is None else self.table.groups[codes]
        return rows, codes, predict(fitted, take_rows(self.X, rows), groups, places=places)


@dataclass(frozen=True)
class PrivateScores(RowScores):
    """Scores of predicted classes on rows in memory."""

    def release(self, fitted: Any, test: Codes | SubjectRows, noise: NoiseSource) -> Answers:
        rows, codes, predicted = self.asked(row_wise_predictions, fitted, test)
        counts = self.table.counts(self.truth[rows], codes, predicted)
        return self.table.release(counts, noise, with_groups=self.with_groups)


@dataclass(frozen=True)
class ChunkScores(PaidScores):
    """Scores on rows that are read in chunks: integer tables of chunks are added up, and noise once to their sum.

    **One record, one cell of one table.** Its fold follows its public key (:class:`~skfairdp._rows._keyed.FoldRule`),
    its cell its own cells and the fitted model, read by the schema alone. So a replaced record moves one row from a
    cell to another in the table of its own fold: sensitivity √2, as in memory. **One subject, one cell of one table**,
    where subjects are ``listed``: all rows of one are in the fold of its id, and one of them is counted, by its id and
    its own rows (:func:`~skfairdp._teachers.counted_once`), at its place in the list.
    """

    schema: Schema
    owner: str
    listed: NDArray[np.uint64] | Any = None

    def release(self, fitted: Any, test: RowSource, noise: NoiseSource) -> Answers:
        return self.table.release(self.counts(fitted, test), noise, with_groups=self.with_groups)

    def counts(self, fitted: Any, test: RowSource) -> Codes:
        """Of the rows of a source, or of one row of each subject. A task that is tried again counts once."""
        if test.listed is not None:
            return counted_once(partial(self._of_subjects, fitted), test, self.schema, self.owner, len(test.listed))
        return total_of(test, partial(self._of_chunk, fitted, test.knows_numbers), operator.add, self.owner)

    def _of_chunk(self, fitted: Any, numbered: bool, chunk: Chunk) -> tuple[Codes, int]:
        raw = RawTable.roles(self.schema, chunk.table, owner=self.owner)
        return self._of_rows(fitted, raw, chunk.table, chunk.numbers if numbered else None), raw.n_rows

    def _of_subjects(self, fitted: Any, raw: RawTable, hashes: NDArray[np.uint64], seeds: Codes) -> Codes:
        return self._of_rows(fitted, raw, self.schema.restore(raw.numbers), np.searchsorted(self.listed, hashes))

    def _of_rows(self, fitted: Any, raw: RawTable, rows: pd.DataFrame, places: Codes | None) -> Codes:
        labels, codes = raw.labels(), raw.groups() if self.with_groups else None
        groups = None if codes is None else raw.domain[codes]
        return self.table.counts(labels, codes, row_wise_predictions(fitted, rows, groups, places=places))


def _of_one_answer(answers: Any) -> float:
    """Accuracy of one class for everybody, by the same rows, NaN where there are none; or R² of one amount."""
    if not isinstance(answers, Answers) or answers.classes is None:
        return 0.0
    counts = np.unique(answers.y_true, return_counts=True)[1]
    return float(counts.max() / counts.sum()) if len(counts) else math.nan


@dataclass(frozen=True)
class PaidTable(ABC):
    """What a score of private rows is read from: one noisy table, paid for at ``epsilon`` and ``delta``."""

    groups: NDArray[Any]
    epsilon: float
    delta: float
    relation: NeighboringRelation

    @property
    @abstractmethod
    def sensitivity(self) -> float:
        """How far a table moves with one record."""

    @property
    def mechanism(self) -> GaussianMechanism:
        """Noise and event of one table: a hair more noise than the budget asks for, as rounding must not end above."""
        sigma = self.sensitivity / gdp_mu(self.epsilon, self.delta) * (1 + 1e-9)
        return GaussianMechanism(sigma, sensitivity=self.sensitivity, relation=self.relation)

    @property
    def event(self) -> DpEvent:
        """One table."""
        return self.mechanism.event

    def public_size(self, n_rows: int) -> int | None:
        """The number of rows, or None where it is nothing public: there records come and go."""
        return None if self.relation is NeighboringRelation.ADD_OR_REMOVE_ONE else n_rows


@dataclass(frozen=True)
class ScoreTable(PaidTable):
    """Releases how predictions on private rows turned out. Each row is one cell of the table: its group, its label, and
    its prediction or refusal. A replaced record, or a changed group, moves one row from a cell to another (sensitivity
    √2); a record that comes or goes changes one cell (1). All metrics are post-processing of the noisy table."""

    classes: NDArray[Any]
    refusals: bool = True

    @property
    def sensitivity(self) -> float:
        return 1.0 if self.relation is NeighboringRelation.ADD_OR_REMOVE_ONE else math.sqrt(2.0)

    def counts(self, label_codes: Codes, group_codes: Codes | None, y_pred: NDArray[Any]) -> Codes:
        """The exact table."""
        n_classes, n_groups = len(self.classes), len(self.groups)
        position = {label: code for code, label in enumerate(self.classes.tolist())}
        other = n_classes if self.refusals else 0
        predicted = np.array([_code(label, position, other) for label in np.asarray(y_pred).tolist()], dtype=np.int64)
        codes = np.zeros(len(label_codes), dtype=np.int64) if group_codes is None else group_codes
        counts = np.zeros((n_groups if group_codes is not None else 1, n_classes, n_classes + 1), dtype=np.int64)
        np.add.at(counts, (codes, label_codes, predicted), 1)
        return counts if self.refusals else counts[:, :, :n_classes]

    def release(self, counts: Codes, source: NoiseSource, *, with_groups: bool) -> Answers:
        """The noisy table, as rows that have those counts."""
        noisy = self.mechanism.release(counts.astype(np.float64), source)
        return self._answers(np.maximum(np.rint(noisy), 0.0).astype(np.int64), with_groups)

    def made_up(self, with_groups: bool) -> Answers:
        """A table with one row in every cell: to try on it what will be read from a released one."""
        shape = (len(self.groups) if with_groups else 1, len(self.classes), len(self.classes) + self.refusals)
        return self._answers(np.ones(shape, dtype=np.int64), with_groups)

    def _answers(self, table: Codes, with_groups: bool) -> Answers:
        n_classes = len(self.classes)
        z, y, k = np.indices(table.shape).reshape(3, -1).repeat(table.ravel(), axis=1)
        groups, predicted = self.groups[z] if with_groups else None, self.classes[np.minimum(k, n_classes - 1)]
        return Answers(self.classes[y], predicted, k < n_classes, groups, self.classes)


def _code(label: Any, position: dict[Any, int], other: int) -> int:
    try:
        return position.get(label, other)
    except Exception:  # a label that cannot be looked up
        return other
