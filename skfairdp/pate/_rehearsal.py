"""A teacher tried on public rows: what its parameters make go wrong shows here, and not as a hundred constant votes."""

import contextlib
import sys
from collections.abc import Callable
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray

from skfairdp._teachers import (
    check_answers,
    engine_of,
    made_up_cells,
    refuse_callbacks,
    rehearse_engine,
    rehearse_learner,
    seeded_clone,
    takes_groups,
)
from skfairdp._utils import silence
from skfairdp.pate._fair_teachers import fair_copy, seeded_predictions

_PASSED: set[str] = set()  # by hash: a search plans the same fit many times
_MOST_PASSED = 1024


def dry_run_teacher(teacher: Any, X_public: NDArray[np.float64], *, n_rows: int, n_classes: int, owner: str) -> None:
    """Fit a teacher on public rows with made-up labels, as many as a part has; let it predict them.

    Teachers of private rows are total (see :func:`fit_teachers`), so that a wrong parameter would be as silent there
    as a private value. Nothing here depends on private rows: features are public, labels go round the classes, and the
    number of rows follows from public numbers. One teacher's work, before anything is spent.
    """
    refuse_callbacks(teacher, parameter="teacher", owner=owner)
    engine = engine_of(teacher)
    if engine is None:

        def attempt(rows: Any, labels: Any) -> Any:
            fitted = seeded_clone(teacher, 0).fit(rows, labels)
            check_answers(fitted, predicted := fitted.predict(X_public), X_public, labels)
            return predicted

        _attempts(attempt, teacher, X_public, n_rows, n_classes, "teacher", owner)
    elif len(X_public):
        rehearse_engine(engine, X_public, n_classes)


def rehearse_fair_teacher(
    learner: Any, X_public: NDArray[np.float64], *, n_rows: int, n_classes: int, n_groups: int, owner: str
) -> None:
    """As :func:`dry_run_teacher`, of a fair classifier: labels and groups go round as well."""

    def attempt(rows: Any, labels: Any) -> Any:
        groups = np.arange(len(labels)) // (int(labels.max()) + 1) % n_groups
        fitted = fair_copy(learner, 0).fit(rows, labels, sensitive_features=groups)
        return seeded_predictions(fitted, X_public, 0)

    if n_groups > 1:
        _attempts(attempt, learner, X_public, n_rows, n_classes, "fair_estimator", owner)


def rehearse_student(
    student: Any, X: NDArray[np.float64], n_classes: int, domain: Any, *, parameter: str, owner: str,
    with_weights: bool = False,
) -> None:  # fmt: skip
    """Fit a student of the user's on public rows with made-up labels and groups, before anything is paid for."""
    if n_classes < 2 or not len(X):
        return
    with_groups = domain is not None and (parameter == "fair_estimator" or takes_groups(student))

    def made_up(each: int) -> tuple[Any, Any, dict[str, Any]]:
        labels, groups = made_up_cells(n_classes, len(domain) if with_groups else 1, each)
        given: dict[str, Any] = {"sensitive_features": groups} if with_groups else {}
        if with_weights:
            given["group_weights"] = np.eye(len(domain))[groups]
        return X[np.arange(len(labels)) % len(X)], labels, given

    rehearse_learner(student, made_up, parameter=parameter, owner=owner)


def _attempts(
    attempt: Callable[[Any, Any], Any], learner: Any, X: NDArray[np.float64], n_rows: int, n_classes: int,
    parameter: str, owner: str,
) -> None:  # fmt: skip
    if min(n_rows, n_classes) < 2 or not len(X):
        return  # nothing is trained
    try:
        key = joblib.hash((learner, X, n_rows, n_classes, parameter))
    except Exception:  # what cannot be hashed is tried again
        key = None
    watch, settings = _precision(f"The '{parameter}' of {owner}")
    if key is not None and key in _PASSED and settings is None:
        return
    rows, problem = X[np.arange(n_rows) % len(X)], None
    for n_labels in dict.fromkeys((min(n_rows, n_classes), 2)):  # two where it cannot do with a few rows of each
        labels = np.arange(n_rows) % n_labels
        try:
            with silence(), watch:
                predicted = np.asarray(attempt(rows, labels))
            if predicted.shape != (len(X),) or not np.isin(predicted, labels).all():
                raise ValueError("predict must return one of the labels of fit for every row.")
        except Exception as error:
            problem = problem or error
            continue
        if key is not None and len(_PASSED) < _MOST_PASSED:
            _PASSED.add(key)
        return
    raise ValueError(
        f"The '{parameter}' of {owner} fails on {n_rows} public rows with labels of several classes, as many rows as a "
        f"teacher gets, so that all of them would vote a constant. Change its parameters, or 'n_teachers'. "
        f"{type(problem).__name__}: {problem}"
    ) from problem


def _precision(what: str) -> "tuple[contextlib.AbstractContextManager[Any], str | None]":
    """What notices too little precision of a network, and which setting of torch brings it; torch is not loaded."""
    if "torch" not in sys.modules:  # whoever has a network has loaded it
        return contextlib.nullcontext(), None
    from skfairdp._networks import PrecisionWatch, reduced_precision

    return PrecisionWatch(what), reduced_precision()
