"""Looking at teachers through the parameter that is there for it: ``memory`` takes anything with a method ``cache``."""

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["WatchedTeachers"]


class WatchedTeachers:
    """A ``memory`` that remembers nothing and notes what teachers are trained on: ``PATEClassifier(memory=watched)``.

    Attributes
    ----------
    rows, labels, partitions : list of ndarray
        What each training was given: private rows, their codes, and the part of each row.
    ensembles : list of weakref.ref
        The trained teachers, which may not outlive their fit.
    predictions : list of ndarray
        Copies of what they answered; ``answers`` are weak references to the arrays themselves.
    look : callable of an ensemble, default=None
        Called with the trained teachers, while they live.
    """

    def __init__(self, look: Callable[[Any], Any] | None = None) -> None:
        self.look = look
        self.rows: list[np.ndarray] = []
        self.labels: list[np.ndarray] = []
        self.partitions: list[np.ndarray] = []
        self.ensembles: list[weakref.ref[Any]] = []
        self.predictions: list[np.ndarray] = []
        self.answers: list[weakref.ref[Any]] = []

    def __deepcopy__(self, memo: Any) -> "WatchedTeachers":
        return self  # clones of an estimator are watched by the same

    def cache(self, function: Callable[..., Any], *, ignore: list[str]) -> Callable[..., Any]:
        def trained(teacher: Any, X: Any, y: Any, assignment: Any, *rest: Any, **how: Any) -> Any:
            self.rows.append(np.array(X))
            self.labels.append(np.array(y))
            self.partitions.append(np.array(assignment))
            ensemble = function(teacher, X, y, assignment, *rest, **how)
            if self.look is not None:
                self.look(ensemble)
            answering = _Answering(ensemble, self)
            self.ensembles += [weakref.ref(ensemble), weakref.ref(answering)]
            return answering

        return trained


class _Answering:
    """Teachers whose answers are noted."""

    def __init__(self, ensemble: Any, watched: WatchedTeachers) -> None:
        self._ensemble, self._watched = ensemble, watched

    def predict(self, X: Any) -> Any:
        answers = self._ensemble.predict(X)
        self._watched.predictions.append(answers.copy())
        self._watched.answers.append(weakref.ref(answers))
        return answers

    def summed_probabilities(self, X: Any, n_classes: int, step: float | None = None) -> Any:
        return self._ensemble.summed_probabilities(X, n_classes, step)
