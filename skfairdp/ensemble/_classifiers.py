"""Teachers from any scikit-learn classifier, one clone per part."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone

from skfairdp.ensemble._parts import Parts, run_tasks
from skfairdp.utils import child_seeds

__all__ = ["ClassifierEnsemble", "fit_classifiers"]


class ClassifierEnsemble:
    """Fitted clones, and the constants that stand where a part had one class or none."""

    def __init__(self, estimators: list[BaseEstimator | int]) -> None:
        self.estimators = estimators

    def predict(self, X: Any) -> NDArray[np.int32]:
        """Votes (n_teachers, n_rows)."""
        if not hasattr(X, "shape"):
            X = np.asarray(X)
        out = np.empty((len(self.estimators), X.shape[0]), dtype=np.int32)
        if not X.shape[0]:
            return out  # scikit-learn refuses to predict no rows
        for k, estimator in enumerate(self.estimators):
            # Clones were fitted on class codes, so predict returns entries of classes_, which are codes.
            out[k] = estimator if isinstance(estimator, int) else self._predict(k, X)
        return out

    def summed_probabilities(self, X: Any, n_classes: int) -> NDArray[np.float64]:
        """Sum over teachers of their class probabilities; a classifier without any gives 1 to what it predicts."""
        out = np.zeros((X.shape[0], n_classes))
        rows = np.arange(X.shape[0])
        for k, estimator in enumerate(self.estimators):
            if isinstance(estimator, int):
                out[:, estimator] += 1.0
            elif len(rows) and hasattr(estimator, "predict_proba"):
                out[:, np.asarray(estimator.classes_, dtype=np.int64)] += _on_the_simplex(estimator.predict_proba(X))
            elif len(rows):
                out[rows, np.asarray(self._predict(k, X), dtype=np.int64)] += 1.0
        return out

    def _predict(self, k: int, X: Any) -> Any:
        return self.estimators[k].predict(X)  # type: ignore[union-attr]


def _on_the_simplex(proba: NDArray[np.floating]) -> NDArray[np.float64]:
    """Probabilities that are none would be more than one vote: whatever a classifier says, a row here sums to 1."""
    proba = np.nan_to_num(np.asarray(proba, dtype=np.float64), nan=0.0, posinf=0.0, neginf=0.0).clip(min=0.0)
    total = proba.sum(axis=1, keepdims=True)
    return np.where(total > 0, proba / np.where(total > 0, total, 1.0), 1 / proba.shape[1])


def fit_classifiers(teacher: Any, X: Any, y: NDArray[np.int64], parts: Parts, *, n_jobs: int | None,
                    verbose: int) -> ClassifierEnsemble:
    """Clone and fit ``teacher`` once per part; see :func:`skfairdp.ensemble.fit_teachers`."""
    tasks = (
        (_seeded_clone(teacher, int(seed)), X.iloc[rows] if hasattr(X, "iloc") else X[rows], y[rows])
        for rows, seed, constant in zip(parts.rows, parts.seeds, parts.constant, strict=True)
        if not constant
    )
    fitted = iter(run_tasks(_fit_one, tasks, int((~parts.constant).sum()), n_jobs=n_jobs, verbose=verbose))
    return ClassifierEnsemble(
        [int(seen.argmax()) if constant else next(fitted)
         for seen, constant in zip(parts.seen, parts.constant, strict=True)]
    )


def _fit_one(estimator: BaseEstimator, X: Any, y: NDArray[np.int64]) -> BaseEstimator:
    return estimator.fit(X, y)


def _seeded_clone(teacher: Any, seed: int) -> Any:
    estimator = clone(teacher)
    names = sorted(name for name in estimator.get_params() if name.split("__")[-1] == "random_state")
    if names:
        seeds = child_seeds(np.random.default_rng(seed), len(names)).tolist()
        estimator.set_params(**dict(zip(names, seeds, strict=True)))
    return estimator
