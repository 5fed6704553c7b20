"""Predictions of whatever holds a student."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

__all__ = ["StudentPredictions"]


def _has_probabilities(classifier: "StudentPredictions") -> bool:
    student = getattr(classifier, "student_", None)
    if student is None:
        student = classifier._given_student
    return student is None or hasattr(student, "predict_proba")


class StudentPredictions:
    """``predict`` and ``predict_proba`` of a classifier that holds ``student_``; the group is never needed."""

    student: Any
    student_: Any
    classes_: NDArray[Any]

    @property
    def _given_student(self) -> Any:
        """What ``student_`` will be a clone of; None is a built-in one, which has probabilities."""
        return self.student

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict the class of each row; the group is not needed.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        check_is_fitted(self, "student_")
        features, _ = self._split_features(X)  # type: ignore[attr-defined]
        return self.classes_[np.asarray(self.student_.predict(features), dtype=np.int64)]

    @available_if(_has_probabilities)
    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Class probabilities of the student (of one that learns vote shares: those); only where it has them.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
        """
        check_is_fitted(self, "student_")
        features, _ = self._split_features(X)  # type: ignore[attr-defined]
        probabilities = np.zeros((len(features), len(self.classes_)))
        probabilities[:, np.asarray(self.student_.classes_, dtype=np.int64)] = self.student_.predict_proba(features)
        return probabilities
