"""Teachers from any scikit-learn classifier, one clone per part: each has one vote, whatever its part does to it."""

import contextlib
import inspect
import sys
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import get_tags

from skfairdp._teachers._partition import Parts, rounded_down, run_tasks
from skfairdp._typing import ArrayLike
from skfairdp._utils import RandomStateLike, child_seeds, public_generator, silence
from skfairdp.privacy import PrivacyLedger, ledger_in_use


class NetClassifier(ClassifierMixin, BaseEstimator):
    """A skorch net as a classifier of class codes. Rows reach it as float32, labels as int64 (float32 for a
    ``NeuralNetBinaryClassifier``). Weights, shuffling and dropout follow from ``random_state`` alone, without torch's
    generator: no teacher depends on how much randomness another one has used."""

    def __init__(self, net: Any, *, random_state: RandomStateLike = None) -> None:
        self.net, self.random_state = net, random_state

    def fit(self, X: Any, y: ArrayLike, **arguments: Any) -> Self:
        """Train a clone of the net; further arguments are handed to it."""
        rows, net = _rows(X), clone(self.net)
        with _own_generator(net, self.random_state):
            self.net_ = net.fit(rows, _labels(y, net), **arguments)
            self.classes_ = np.arange(net.predict_proba(rows[:1]).shape[1])
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return class codes."""
        with _own_generator(self.net_, 0):  # skorch's loader draws a number even where nothing is shuffled
            return np.asarray(self.net_.predict(_rows(X)))

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Return one probability per class code."""
        with _own_generator(self.net_, 0):
            return np.asarray(self.net_.predict_proba(_rows(X)))


def as_classifiers(learner: Any, random_state: RandomStateLike = None) -> Any:
    """Return a learner in which every skorch net, at any depth, is a :class:`NetClassifier`; it is changed in place.
    But for the ``net`` of this package's own estimators, which read it and do not fit it."""
    if _is_net(learner):
        return NetClassifier(learner, random_state=random_state)
    if not hasattr(learner, "get_params"):
        return learner
    params = learner.get_params()
    nets = {}
    for name in filter(lambda name: _is_net(params[name]), params):
        owner, _, last = name.rpartition("__")
        kinds = type(params[owner] if owner else learner).__mro__
        if last != "net" or not any(kind.__module__.partition(".")[0] == "skfairdp" for kind in kinds):
            nets[name] = NetClassifier(params[name], random_state=random_state)
    return learner.set_params(**nets) if nets else learner


def _is_net(value: Any) -> bool:
    skorch = sys.modules.get("skorch")  # whoever has a net has loaded it
    return skorch is not None and isinstance(value, skorch.NeuralNet)


def _rows(X: Any) -> NDArray[np.float32]:
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float32)


def _labels(y: ArrayLike, net: Any) -> NDArray[Any]:
    from skorch import NeuralNetBinaryClassifier

    return np.asarray(y, dtype=np.float32 if isinstance(net, NeuralNetBinaryClassifier) else np.int64)


def _own_generator(net: Any, random_state: RandomStateLike) -> "contextlib.AbstractContextManager[None]":
    from skfairdp._networks import own_generator

    return own_generator(int(public_generator(random_state).integers(2**31)), getattr(net, "device", None) or "cpu")


#: The vote of a teacher that has no rows, or that its rows keep from being trained or from predicting. Public, and the
#: same for all: a record that makes a teacher fail moves one vote, as any other record does.
FALLBACK = 0

#: Made-up rows of each class and group that a learner is tried on: two, and more for one that sets rows aside.
_MADE_UP = (2, 50)

#: By how much probabilities of a network in single precision may miss a sum of 1.
_ROUNDED = 1e-3

#: What a part may do to its teacher. KeyboardInterrupt and the like come from outside, and end the fit.
_FAILURES = (Exception, SystemExit)


def seeded_predictions(learner: Any, X: Any, seed: int) -> Any:
    """What a fitted learner predicts; one that draws lots takes its ``random_state`` here, not the global generator."""
    seeded = "random_state" in inspect.signature(learner.predict).parameters
    return learner.predict(X, random_state=seed) if seeded else learner.predict(X)


class ClassifierEnsemble:
    """Fitted clones, and the constants that stand where a part had one class or none, or where no clone came out."""

    def __init__(self, estimators: list[BaseEstimator | int], n_classes: int, seeds: Any = None) -> None:
        self.estimators, self.n_classes, self.seeds = estimators, n_classes, seeds

    def predict(self, X: Any) -> NDArray[np.int32]:
        """Votes (n_teachers, n_rows), all of them class codes."""
        if not hasattr(X, "shape"):
            X = np.asarray(X)
        out = np.empty((len(self.estimators), X.shape[0]), dtype=np.int32)
        if X.shape[0]:  # scikit-learn refuses to predict no rows
            for k in range(len(self.estimators)):
                out[k] = self._votes(k, X)
        return out

    def summed_probabilities(self, X: Any, n_classes: int, step: float | None = None) -> NDArray[np.float64]:
        """Sum over teachers of their class probabilities; a classifier without any gives 1 to what it predicts."""
        out = np.zeros((X.shape[0], n_classes))
        if X.shape[0]:
            for k, estimator in enumerate(self.estimators):
                constant = isinstance(estimator, int)
                out += np.eye(n_classes)[self._votes(k, X)] if constant else rounded_down(self._shares(k, X), step)
        return out

    def _votes(self, k: int, X: Any) -> NDArray[np.int32]:
        estimator: Any = self.estimators[k]
        if isinstance(estimator, int):
            return np.full(X.shape[0], estimator, dtype=np.int32)
        try:
            with silence():
                seeds = self.seeds
                found = estimator.predict(X) if seeds is None else seeded_predictions(estimator, X, int(seeds[k]))
                return _as_codes(found, X.shape[0], self.n_classes)
        except _FAILURES:
            return np.full(X.shape[0], FALLBACK, dtype=np.int32)

    def _shares(self, k: int, X: Any) -> NDArray[np.float64]:
        out = np.zeros((X.shape[0], self.n_classes))
        estimator: Any = self.estimators[k]
        try:
            with silence():
                if not hasattr(estimator, "predict_proba"):
                    return np.eye(self.n_classes)[self._votes(k, X)]
                columns = np.asarray(estimator.classes_, dtype=np.int64)
                proba = _on_the_simplex(estimator.predict_proba(X))
                fits = proba.shape == (X.shape[0], len(columns)) and len(np.unique(columns)) == len(columns)
                if not fits or columns.min() < 0:
                    raise ValueError("not one column per class code")
                out[:, columns] = proba
        except _FAILURES:
            out[:], out[:, FALLBACK] = 0.0, 1.0
        return out


def _as_codes(predicted: Any, n_rows: int, n_classes: int) -> NDArray[np.int32]:
    """Predictions as class codes; an entry that is none becomes the fallback, and so does an array of no fit shape."""
    values = np.asarray(predicted)
    if values.shape != (n_rows,):
        values = values.ravel() if values.size == n_rows else np.full(n_rows, np.nan)
    numbers = np.asarray(values, dtype=np.float64)
    usable = (numbers >= 0) & (numbers < n_classes) & (numbers == np.floor(numbers))  # comparisons with NaN are False
    return np.where(usable, numbers, FALLBACK).astype(np.int32)


def _on_the_simplex(proba: ArrayLike) -> NDArray[np.float64]:
    """Probabilities that are none would be more than one vote: whatever a classifier says, a row here sums to 1."""
    proba = np.nan_to_num(np.asarray(proba, dtype=np.float64), nan=0.0, posinf=0.0, neginf=0.0).clip(min=0.0)
    if proba.ndim != 2:
        raise ValueError("not a table")
    with np.errstate(over="ignore"):
        total = proba.sum(axis=1, keepdims=True)
    proba = np.where(np.isfinite(total), proba, proba / proba.max(axis=1, keepdims=True, initial=1.0))
    total = proba.sum(axis=1, keepdims=True)
    return np.where(total > 0, proba / np.where(total > 0, total, 1.0), 1 / proba.shape[1])


def fit_classifiers(
    teacher: Any, X: Any, y: NDArray[np.int64], parts: Parts, *, n_jobs: int | None, verbose: int
) -> ClassifierEnsemble:
    """Clone and fit ``teacher`` once per part; see :func:`fit_teachers`."""

    def task(rows: NDArray[np.int64], seed: int, seen: NDArray[np.bool_], constant: bool) -> tuple[Any, ...]:
        if constant:
            return int(seen.argmax()), FALLBACK
        mine = X.iloc[rows] if hasattr(X, "iloc") else X[rows]
        return None, FALLBACK, seeded_clone(teacher, int(seed)), mine, y[rows]

    tasks = map(task, parts.rows, parts.seeds, parts.seen, parts.constant)
    # Constant ones are tasks as well: a bar that left them out would count the parts with two classes.
    fitted = run_tasks(total_fit, tasks, len(parts.seeds), n_jobs=n_jobs, verbose=verbose)
    return ClassifierEnsemble(fitted, parts.seen.shape[1])


def total_fit(
    constant: int | None, fallback: int, estimator: Any = None, X: Any = None, y: Any = None, groups: Any = None
) -> Any:
    """Fit a teacher of private rows in silence; return its constant vote where it has one, or fails.
    That it fails depends on private rows, and nothing but a vote may: no error, no warning, no count."""
    if constant is not None:
        return constant
    try:
        with silence():
            estimator.fit(X, y, **({} if groups is None else {"sensitive_features": groups}))
    except _FAILURES:
        return fallback
    return estimator


def seeded_clone(teacher: Any, seed: int) -> Any:
    """A clone with seeds of its own for every ``random_state`` and every skorch net, and with nothing to say."""
    estimator = as_classifiers(clone(teacher))
    params = estimator.get_params()
    names = sorted(name for name in params if name.split("__")[-1] == "random_state")
    seeds = child_seeds(np.random.default_rng(seed), len(names)).tolist() if names else []
    # Compiled learners print past Python's streams, so that a silence would not hold them back.
    quiet = {n: type(v)(0) for n, v in params.items() if n.split("__")[-1] == "verbose" and isinstance(v, bool | int)}
    changes = {**dict(zip(names, seeds, strict=True)), **quiet}
    return estimator.set_params(**changes) if changes else estimator


def check_fair_learner(learner: Any, owner: str, *, parameter: str = "fair_estimator") -> bool:
    """Say what keeps a learner from being a ``fair_estimator``, and whether its fit takes ``group_weights``."""
    parameters = inspect.signature(learner.fit).parameters
    open_ended = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    if "sensitive_features" not in parameters and not open_ended:
        raise ValueError(
            f"The '{parameter}' of {owner} must have fit(X, y, sensitive_features=...). That of "
            f"{type(learner).__name__} takes no groups."
        )
    predict = getattr(learner, "predict", None)  # some have it once they are fitted
    at_prediction = None if predict is None else inspect.signature(predict).parameters.get("sensitive_features")
    if at_prediction is not None and at_prediction.default is inspect.Parameter.empty:
        raise ValueError(
            f"The '{parameter}' of {owner} must predict without groups; {type(learner).__name__} needs them."
        )
    return "group_weights" in parameters


def refuse_callbacks(learner: Any, *, parameter: str, owner: str) -> None:
    """Refuse callbacks of scikit-learn in what learns from private rows: these are handed to them."""
    inside = learner.get_params(deep=True).values() if isinstance(learner, BaseEstimator) else ()
    if any(getattr(part, "_skl_callbacks", None) for part in (learner, *inside)):
        raise ValueError(
            f"The '{parameter}' of {owner} has callbacks, and private rows would be handed to them. Take them off with "
            "set_callbacks() without arguments; 'verbose' shows progress."
        )


def takes_groups(learner: Any) -> bool:
    """Whether a learner's fit is to be given groups: it names them, or is one of fairlearn, which hides the name."""
    parameters = inspect.signature(learner.fit).parameters
    open_ended = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    return "sensitive_features" in parameters or (open_ended and type(learner).__module__.startswith("fairlearn."))


def made_up_cells(n_classes: int, n_groups: int, each: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Codes of labels and groups of made-up rows, so many of each pair."""
    cells = np.arange(each * n_classes * n_groups) % (n_classes * n_groups)
    return cells % n_classes, cells // n_classes


def rehearse_learner(
    learner: Any, made_up: Callable[[int], tuple[Any, ...]], *, parameter: str, owner: str, kind: str = "classifier"
) -> None:
    """Fit a learner that is going to be trained on released values on made-up rows, before those are paid for.
    Whatever it can be asked for later it is asked for here. Of several errors that on most rows is repeated."""
    found = getattr(get_tags(learner), "estimator_type", None) if isinstance(learner, BaseEstimator) else None
    if found not in (kind, None):  # None: reductions do not say
        raise ValueError(f"The '{parameter}' of {owner} must be a {kind}. Got {learner!r}, a {found}, instead.")
    check = check_answers if kind == "classifier" else _check_amounts
    problem: Exception | None = None
    for each in _MADE_UP:
        with silence():
            X, y, given = made_up(each)
        # Made-up rows are nobody's: what a private learner spends on them is on no ledger of the user's.
        ledger = contextlib.nullcontext() if ledger_in_use() is None else PrivacyLedger()
        try:
            with silence(), ledger:
                unfitted = clone(learner, safe=False)
                if isinstance(unfitted, BaseEstimator):
                    own = (name for name in unfitted.get_params() if name.rpartition("__")[-1] == "ledger")
                    unfitted.set_params(**dict.fromkeys(own))
                fitted = (as_classifiers(unfitted, 0) if kind == "classifier" else unfitted).fit(X, y, **given)
                for n_rows in (len(y), 1):
                    check(fitted, fitted.predict(X[:n_rows]), X[:n_rows], y)
            return
        except Exception as error:
            problem = error
    raise ValueError(
        f"The '{parameter}' of {owner} fails on made-up rows, in a trial of {_MADE_UP[0]} and {_MADE_UP[1]} of each "
        f"class and group, so nothing is spent. Its own error: {type(problem).__name__}: {problem}"
    ) from problem


def rehearse_student(
    student: Any, X: NDArray[np.float64], n_classes: int, groups: Any, *, parameter: str, owner: str,
    with_weights: bool = False,
) -> None:  # fmt: skip
    """Fit a learner of the user's on public rows with made-up labels and groups, before anything is paid for.
    ``groups`` are what groups are called there; None where there are none."""
    if n_classes < 2 or not len(X):
        return
    with_groups = groups is not None and (parameter == "fair_estimator" or takes_groups(student))

    def made_up(each: int) -> tuple[Any, Any, dict[str, Any]]:
        labels, codes = made_up_cells(n_classes, len(groups) if with_groups else 1, each)
        given: dict[str, Any] = {"sensitive_features": groups[codes]} if with_groups else {}
        if with_weights:
            given["group_weights"] = np.eye(len(groups))[codes]
        return X[np.arange(len(labels)) % len(X)], labels, given

    rehearse_learner(student, made_up, parameter=parameter, owner=owner)


def _check_amounts(fitted: Any, predicted: Any, X: Any, y: Any) -> None:
    if np.shape(predicted) != (len(X),) or not np.isfinite(np.asarray(predicted, dtype=np.float64)).all():
        raise ValueError("predict must return one finite number for every row.")


def check_answers(fitted: Any, predicted: Any, X: Any, labels: Any) -> None:
    """Raise where answers to rows are no labels that were taught, or probabilities, if any, are none of them."""
    known, predicted = np.unique(np.asarray(labels)), np.asarray(predicted)
    if predicted.shape != (len(X),):
        raise ValueError("predict must return one label for every row.")
    if not np.isin(predicted, known).all():
        raise ValueError("predict must return labels seen in fit: give a classifier.")
    if not hasattr(fitted, "predict_proba"):
        return
    columns = np.asarray(fitted.classes_)
    proba = np.asarray(fitted.predict_proba(X), dtype=np.float64)
    if proba.shape != (len(X), len(columns)) or not np.isin(columns, known).all():
        raise ValueError(
            "predict_proba must return one column for each class in classes_, and know no class that fit has not seen."
        )
    if not ((proba >= -_ROUNDED) & np.isfinite(proba)).all() or (np.abs(proba.sum(axis=1) - 1) > _ROUNDED).any():
        raise ValueError("predict_proba must return probabilities: none negative or NaN, those of a row with sum 1.")
