"""A classifier's network: what it reads, and a copy of the classifier with the network fine-tuned."""

from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from skfairdp.postprocessing._models import attribute_of
from skfairdp.postprocessing._thresholding import Choice

__all__ = ["fine_tuned", "network_view"]


def network_view(model: Any, X: Any, n_rows: int, n_classes: int, *, owner: str) -> tuple[Any, NDArray[np.float64]]:
    """Return the rows that the network reads when the model predicts X, and its probabilities for them.

    Raises
    ------
    ValueError
        The network does not give one logit for each class and row.
    """
    from skfairdp._networks import predict_logits, rows_read_by

    net = attribute_of(model, "net_")
    rows = rows_read_by(net, lambda: model.predict(X))
    logits = predict_logits(net, rows.numpy())
    if logits.shape != (n_rows, n_classes):
        raise ValueError(
            f"method='fine_tune' of {owner} needs a network that gives one logit for each of the {n_classes} classes "
            f"and each row: shape ({n_rows}, {n_classes}). Got {logits.shape} instead."
        )
    return rows, softmax(logits, axis=1)


def fine_tuned(model: Any, rows: Any, choice: Choice, **settings: Any) -> Any:
    """Return the model with its network fine-tuned, or the model itself where no iterate is better."""
    from skfairdp._networks import fine_tune_for_parity

    net = attribute_of(model, "net_")
    tuned = fine_tune_for_parity(net, rows, choice.groups, choice.shape[0], choice.keep, **settings)
    return model if tuned is None else _with_network(model, tuned)


def _with_network(model: Any, net: Any) -> Any:
    """Return a copy of a classifier (frozen, or at the end of a pipeline) that holds another network."""
    other = copy(model)
    if isinstance(model, FrozenEstimator):
        other.estimator = _with_network(model.estimator, net)
    elif isinstance(model, Pipeline):
        name, last = model.steps[-1]
        other.steps = [*model.steps[:-1], (name, _with_network(last, net))]
    else:
        other.net_ = net
    return other
