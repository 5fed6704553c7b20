"""Accuracy, fairness gap and coverage of a fitted classifier on test rows."""

import math
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator

from skfairdp.fairness import largest_disparity
from skfairdp.postprocessing import IDP3
from skfairdp.utils import PublicData, as_groups, encode_labels, group_domain

__all__ = ["TestSet"]


class TestSet:
    """Rows to measure on."""

    def __init__(self, X: Any, y: Any, sensitive_features: Any) -> None:
        self.X, self.y = X, np.asarray(y)
        self.groups = as_groups(sensitive_features, len(self.y), owner="frontier", name="sensitive_features_test")
        self.codes = encode_labels(
            self.groups,
            group_domain(self.groups),
            owner="frontier",
            name="sensitive_features_test",
            parameter="sensitive_features_test",
        )
        rows = X.shape[0] if hasattr(X, "shape") else len(X)
        if rows != len(self.y):
            raise ValueError(f"y_test of frontier has inconsistent length: {len(self.y)} rows where X_test has {rows}.")

    def measure(self, student: Any, public: PublicData, gamma: float | None) -> dict[str, float]:
        """Accuracy and disparity of the answered rows, and their share; with IDP3 where gamma is given."""
        if gamma is None:
            predicted = student.predict(self.X)
        else:
            refusing = IDP3(FrozenEstimator(student), gamma=gamma)
            refusing.fit(public.X, sensitive_features=public.sensitive_features)
            predicted = refusing.predict(self.X, sensitive_features=self.groups)
        return self.measure_predictions(predicted, student.classes_)

    def measure_predictions(self, predicted: Any, known_classes: Any) -> dict[str, float]:
        """The same of predictions; what is no class is a refusal."""
        classes = list(known_classes)
        answered = np.isin(predicted, classes)
        if not answered.any():
            return {"accuracy": math.nan, "disparity": math.nan, "coverage": 0.0}
        counts = np.zeros((int(self.codes.max()) + 1, len(classes)), dtype=np.int64)
        columns = np.array([classes.index(label) for label in predicted[answered].tolist()])
        np.add.at(counts, (self.codes[answered], columns), 1)
        return {
            "accuracy": float(np.mean(predicted[answered] == self.y[answered])),
            "disparity": largest_disparity(counts),
            "coverage": float(answered.mean()),
        }
