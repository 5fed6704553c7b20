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
            out[k] = estimator if isinstance(estimator, int) else estimator.predict(X)
        return out


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
