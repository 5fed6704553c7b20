"""Predictions of a fitted network, and the nets that ``net="mlp"``, ``"cnn"`` and ``"resnet"`` stand for."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skfairdp._docs import shared_docs
from skfairdp._inputs import read_features
from skfairdp._typing import Array, ArrayLike, Floats
from skfairdp._utils import decode_labels
from skfairdp._utils._sklearn import answers_as_fitted


def _is_exact(estimator: Any) -> bool:
    """Whether a fitted network computes in double precision."""
    from skfairdp._networks import input_dtype, module_of

    return hasattr(estimator, "net_") and str(input_dtype(module_of(estimator.net_))) == "torch.float64"


@shared_docs
class NetworkPredictions:
    """``predict`` and ``predict_proba`` of a classifier that holds ``net_``; the group is never needed."""

    net_: Any
    classes_: Array

    @answers_as_fitted
    def _logits(self, X: ArrayLike) -> Floats:
        from skfairdp._networks import module_of, predict_logits

        check_is_fitted(self, "net_")
        return predict_logits(module_of(self.net_), read_features(self, X))

    def predict(self, X: ArrayLike) -> Array:
        """Predict the class of each row; the group is not needed.

        {predicts_labels}
        """
        return decode_labels(self, self._logits(X).argmax(axis=1))

    @available_if(_is_exact)
    def decision_function(self, X: ArrayLike) -> Floats:
        """Log odds of the second class; of more than two classes, one score each, which add up to 0.

        Only of a network in double precision, such as a fitted "additive" one: in single precision the last digits of a
        row would hang on the rows around it.

        {predicts_scores}
        """
        logits = self._logits(X)
        if logits.shape[1] == 2:
            return np.asarray(logits[:, 1] - logits[:, 0])
        return np.asarray(logits - logits.mean(axis=1, keepdims=True))

    def predict_proba(self, X: ArrayLike) -> Floats:
        """Class probabilities, the softmax of the network's logits.

        {predicts_proba}
        """
        return softmax(self._logits(X), axis=1)


@shared_docs
def mlp(hidden: Sequence[int] = (64,), **settings: Any) -> Any:
    """Return the network that ``net="mlp"`` stands for, with other sizes or settings.

    A perceptron with tanh units, as a skorch net that is configured and not yet built. Whatever is not given here is
    chosen by the estimator that gets it.

    Parameters
    ----------
    hidden : tuple of int, default=(64,)
        Widths of the hidden layers; () is softmax regression.
    {settings_of_net}

    See Also
    --------
    cnn : A small convolutional network.

    Examples
    --------
    >>> from skfairdp.lagrangian import PFLDClassifier, mlp
    >>> model = PFLDClassifier(net=mlp((32, 16), lr=0.5, optimizer__momentum=0.9))
    >>> model.get_params()["net__module__hidden"]
    (32, 16)
    """
    from skfairdp._networks import MLP, unset_net

    return unset_net(MLP, module__hidden=hidden, **settings)


@shared_docs
def cnn(image_shape: Sequence[int] | None = None, *, channels: Sequence[int] = (16, 32), **settings: Any) -> Any:
    """Return the network that ``net="cnn"`` stands for, with other sizes or settings.

    Convolutions with tanh units, for images that are the rows of X, flat. Whatever is not given here is chosen by the
    estimator that gets it.

    Parameters
    ----------
    image_shape : tuple of three int, default=None
        Channels, height and width of the images. None is for square images of one or three channels.
    channels : tuple of int, default=(16, 32)
        Output channels of each block. Every block halves height and width.
    {settings_of_net}

    See Also
    --------
    mlp : A perceptron.
    resnet : A small residual network.

    Examples
    --------
    >>> from skfairdp.lagrangian import PFLDClassifier, cnn
    >>> model = PFLDClassifier(net=cnn((3, 14, 14), max_epochs=5))
    >>> model.get_params()["net__max_epochs"]
    5
    """
    from skfairdp._networks import CNN, unset_net

    return unset_net(CNN, module__image_shape=image_shape, module__channels=channels, **settings)


@shared_docs
def resnet(image_shape: Sequence[int] | None = None, *, channels: Sequence[int] = (16, 32), **settings: Any) -> Any:
    """Return the network that ``net="resnet"`` stands for, with other sizes or settings.

    Residual blocks with group normalisation and tanh units, for images that are the rows of X, flat. Whatever is not
    given here is chosen by the estimator that gets it.

    Parameters
    ----------
    image_shape : tuple of three int, default=None
        Channels, height and width of the images. None is for square images of one or three channels.
    channels : tuple of int, default=(16, 32)
        Output channels of each block. Every block but the first halves height and width.
    {settings_of_net}

    See Also
    --------
    cnn : A small convolutional network, several times as fast.

    Examples
    --------
    >>> from skfairdp.gradient import FairDPSGDClassifier, resnet
    >>> model = FairDPSGDClassifier(net=resnet((3, 32, 32), channels=(16, 32, 64)))
    >>> model.get_params()["net__module__channels"]
    (16, 32, 64)
    """
    from skfairdp._networks import ResNet, unset_net

    return unset_net(ResNet, module__image_shape=image_shape, module__channels=channels, **settings)
