"""Convolutions in place of hidden layers, for backends of networks that learn images."""

from collections.abc import Sequence
from typing import Any

from sklearn.base import BaseEstimator


class ConvolutionalLayers(BaseEstimator):
    """Convolutional generator and discriminators, for ``hidden=`` of a backend; "cnn" is this with its defaults.

    A discriminator has one convolution (3 x 3, stride 2) for each entry of ``channels``, and every position of the
    image is shown which group and label is asked for. The generator has the same channels in reverse, doubling height
    and width, with group normalisation. The networks change what is learnt, not what is released or what it costs.

    Parameters
    ----------
    image_shape : tuple of three int, default=None
        Channels, height and width of the images that rows hold, channels first. None is for square images of one or
        three channels.
    channels : tuple of int, default=(16, 32)
        Of each block.

    Examples
    --------
    >>> from skfairdp.papers import ConvolutionalLayers, GSWGANBackend
    >>> GSWGANBackend(hidden=ConvolutionalLayers(channels=(8, 16))).get_params()["hidden__channels"]
    (8, 16)
    """

    def __init__(self, image_shape: Sequence[int] | None = None, channels: Sequence[int] = (16, 32)) -> None:
        self.image_shape = image_shape
        self.channels = channels


def layers_for(hidden: Any, kind: str, n_columns: int, owner: str) -> Any:
    """Widths of hidden layers, or the sizes of convolutions for rows of this public shape."""
    if isinstance(hidden, tuple | list):
        return tuple(hidden)
    from skfairdp._networks import ImageLayers

    asked = ConvolutionalLayers() if isinstance(hidden, str) else hidden
    if kind != "units":
        raise ValueError(
            f"The 'hidden' parameter of {owner} asks for convolutions, which need images: an array of numbers between "
            "'bounds'. A table has columns of codes; give widths of hidden layers, such as (64, 64)."
        )
    try:
        return ImageLayers.of(asked.image_shape, asked.channels, n_columns)
    except ValueError as error:
        raise ValueError(f"The 'hidden' parameter of {owner} does not fit the rows: {error}") from None
