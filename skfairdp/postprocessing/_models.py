"""A fitted classifier from outside: what it can do, its probabilities and its privacy report."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

__all__ = ["attribute_of", "chosen_method", "fitted_classifier", "probabilities"]


def fitted_classifier(estimator: Any, *, owner: str) -> Any:
    """Return the estimator, or raise an error that says why it cannot be calibrated."""
    fitted = True
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        fitted = False
    if not fitted:
        raise NotFittedError(
            f"{owner} calibrates a classifier that is fitted already; this {type(estimator).__name__} is not. Fit it "
            "first, and wrap it in sklearn.frozen.FrozenEstimator where the calibrator is cloned."
        )
    if not is_classifier(estimator) or not hasattr(estimator, "classes_"):
        raise ValueError(
            f"The 'estimator' parameter of {owner} must be a classifier with classes_. "
            f"Got {type(estimator).__name__} instead."
        )
    return estimator


def chosen_method(method: str, model: Any, group_at_prediction: bool, *, owner: str) -> str:
    """Return "fine_tune" or "threshold", or raise a ValueError where the model cannot be calibrated that way."""
    has_net = attribute_of(model, "net_") is not None
    if method == "auto":
        return "fine_tune" if has_net and not group_at_prediction else "threshold"
    if method == "fine_tune" and not has_net:
        raise ValueError(
            f"method='fine_tune' of {owner} needs an estimator with a torch network in net_; "
            f"{type(model).__name__} has none. Use method='threshold'."
        )
    if method == "fine_tune" and group_at_prediction:
        raise ValueError(
            f"method='fine_tune' of {owner} does not read the group at prediction. Use method='threshold' with "
            "group_at_prediction=True."
        )
    return method


def attribute_of(model: Any, name: str) -> Any:
    """Return an attribute of a classifier, or of the last step of a pipeline; None where there is none."""
    while isinstance(model, FrozenEstimator | Pipeline):
        model = model.estimator if isinstance(model, FrozenEstimator) else model.steps[-1][1]
    return getattr(model, name, None)


def probabilities(model: Any, X: Any, n_classes: int, *, owner: str) -> NDArray[np.float64]:
    """Return the model's own probabilities, shape (n_rows, n_classes); decision values are read as log-odds.

    Raises
    ------
    ValueError
        The model gives neither, or of another shape, or not finite.
    """
    if hasattr(model, "predict_proba"):
        found = np.asarray(model.predict_proba(X), dtype=float)
    elif hasattr(model, "decision_function"):
        found = np.asarray(model.decision_function(X), dtype=float)
        found = softmax(np.column_stack([np.zeros(len(found)), found]) if found.ndim == 1 else found, axis=1)
    else:
        raise ValueError(
            f"method='threshold' of {owner} needs an estimator with predict_proba or decision_function; "
            f"{type(model).__name__} has neither."
        )
    if found.ndim != 2 or found.shape[1] != n_classes:
        raise ValueError(
            f"{owner} expects one score for each of the {n_classes} classes of {type(model).__name__}; got an array "
            f"of shape {found.shape}."
        )
    if not np.isfinite(found).all():
        raise ValueError(f"The scores of {type(model).__name__} given to {owner} are not all finite.")
    return found
