"""A fitted classifier from outside: what it can do, its probabilities and its privacy report."""

from copy import copy, deepcopy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from skfairdp._utils import encode_labels, without_cells


def check_fitted(estimator: Any, owner: str, kind: str = "classifier") -> None:
    """Refuse an estimator that is not fitted."""
    fitted = True
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        fitted = False
    if not fitted:
        raise NotFittedError(
            f"{owner} calibrates a {kind} that is fitted already; this {type(estimator).__name__} is not. Fit it "
            "first, and wrap it in sklearn.frozen.FrozenEstimator where the calibrator is cloned."
        )


def fitted_classifier(estimator: Any, *, owner: str) -> Any:
    """Return the estimator, or raise an error that says why it cannot be calibrated."""
    check_fitted(estimator, owner)
    if not is_classifier(estimator) or not hasattr(estimator, "classes_"):
        raise ValueError(
            f"The 'estimator' parameter of {owner} must be a classifier with classes_. "
            f"Got {type(estimator).__name__} instead."
        )
    return estimator


def attribute_of(model: Any, name: str) -> Any:
    """Return an attribute of a classifier, or of the last step of a pipeline; None where there is none."""
    while isinstance(model, FrozenEstimator | Pipeline):
        model = model.estimator if isinstance(model, FrozenEstimator) else model.steps[-1][1]
    return getattr(model, name, None)


def probabilities(model: Any, X: Any, n_classes: int, *, owner: str, finite: bool = True) -> NDArray[np.float64]:
    """Return the model's own probabilities, shape (n_rows, n_classes); decision values are read as log-odds."""
    if hasattr(model, "predict_proba"):
        found = np.asarray(without_cells(model.predict_proba, X, owner=owner), dtype=float)
    elif hasattr(model, "decision_function"):
        found = np.asarray(model.decision_function(X), dtype=float)
        found = softmax(np.column_stack([np.zeros(len(found)), found]) if found.ndim == 1 else found, axis=1)
    else:
        raise ValueError(
            f"Thresholds of {owner} needs an estimator with predict_proba or decision_function; "
            f"{type(model).__name__} has neither."
        )
    if found.ndim != 2 or found.shape[1] != n_classes:
        raise ValueError(
            f"{owner} expects one score for each of the {n_classes} classes of {type(model).__name__}; got an array "
            f"of shape {found.shape}."
        )
    if finite and not np.isfinite(found).all():
        raise ValueError(f"The scores of {type(model).__name__} given to {owner} are not all finite.")
    return found


def class_codes(predicted: Any, classes: NDArray[Any], *, owner: str) -> NDArray[np.int64]:
    """Return the position of each predicted label in ``classes``."""
    return encode_labels(np.asarray(predicted), classes, owner=owner, name="y_pred", parameter="estimator")


def network_of(model: Any) -> Any:
    """Return the torch module of a fitted classifier (of a skorch net, or in ``net_``); None where there is none."""
    net = attribute_of(model, "net_")
    return attribute_of(model, "module_") if net is None else getattr(net, "module_", net)


def network_view(model: Any, X: Any, n_rows: int, n_classes: int, *, owner: str) -> tuple[Any, NDArray[np.float64]]:
    """Return the rows that the network reads when the model predicts X, and its probabilities for them."""
    from skfairdp._networks import predict_logits, rows_read_by

    net = network_of(model)
    rows = rows_read_by(net, lambda: model.predict(X))
    logits = predict_logits(net, rows.numpy())
    if logits.shape != (n_rows, n_classes):
        raise ValueError(
            f"FineTuning of {owner} needs a network that gives one logit for each of the {n_classes} classes "
            f"and each row: shape ({n_rows}, {n_classes}). Got {logits.shape} instead."
        )
    return rows, softmax(logits, axis=1)


def with_network(model: Any, module: Any) -> Any:
    """Return a copy of a classifier (frozen, or at the end of a pipeline) that holds another network."""
    if hasattr(model, "module_"):
        net = deepcopy(model)
        net.module_.load_state_dict(module.state_dict())
        return net
    other = copy(model)
    if isinstance(model, FrozenEstimator):
        other.estimator = with_network(model.estimator, module)
    elif isinstance(model, Pipeline):
        name, last = model.steps[-1]
        other.steps = [*model.steps[:-1], (name, with_network(last, module))]
    else:
        other.net_ = with_network(model.net_, module) if hasattr(model.net_, "module_") else module
    return other
