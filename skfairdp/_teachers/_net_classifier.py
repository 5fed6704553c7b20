"""A skorch net among other classifiers: rows reach it as float32, and its randomness is of its own seed."""

import contextlib
import sys
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone

from skfairdp._typing import ArrayLike
from skfairdp._utils import RandomStateLike, public_generator


class NetClassifier(ClassifierMixin, BaseEstimator):
    """A skorch net as a classifier of class codes.

    Rows reach the net as float32 and labels as int64 (float32 for a ``NeuralNetBinaryClassifier``), which is what torch
    computes with. Weights, shuffling and dropout follow from ``random_state`` alone and leave torch's generator as it
    was: a teacher must not depend on how much randomness another one has used.
    """

    def __init__(self, net: Any, *, random_state: RandomStateLike = None) -> None:
        self.net = net
        self.random_state = random_state

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

    But for the ``net`` of this package's own estimators, which read it and do not fit it.
    """
    if _is_net(learner):
        return NetClassifier(learner, random_state=random_state)
    if not hasattr(learner, "get_params"):
        return learner
    params = learner.get_params()
    found = {
        name: value for name, value in params.items() if _is_net(value) and not _is_settings(name, learner, params)
    }
    nets = {name: NetClassifier(net, random_state=random_state) for name, net in found.items()}
    return learner.set_params(**nets) if nets else learner


def _is_settings(name: str, learner: Any, params: dict[str, Any]) -> bool:
    """Whether this is the ``net`` of an estimator of this package."""
    owner, _, last = name.rpartition("__")
    kinds = type(params[owner] if owner else learner).__mro__
    return last == "net" and any(kind.__module__.partition(".")[0] == "skfairdp" for kind in kinds)


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
