"""The three small networks that ``net="mlp"``, ``"cnn"`` and ``"resnet"`` stand for."""

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn


class MLP(nn.Sequential):
    """A plain network with tanh units; bounded activations lose least to clipping. All logits are equal at first: noisy
    steps set the direction, not an accident of initialisation. Weights are drawn from torch's generator."""

    predicts_rows_alone = True

    def __init__(self, n_features: int, n_classes: int, hidden: Sequence[int] = (64,)) -> None:
        sizes = (n_features, *widths(hidden))
        layers: list[nn.Module] = []
        # skip_init: a plain layer would draw weights of its own first
        for size_in, size_out in pairwise(sizes):
            layers += [nn.utils.skip_init(nn.Linear, size_in, size_out), nn.Tanh()]
        super().__init__(*layers, nn.utils.skip_init(nn.Linear, sizes[-1], n_classes))
        draw_weights(self)


def widths(hidden: Sequence[int] = (64,)) -> tuple[int, ...]:
    """Widths of the hidden layers of an :class:`MLP`, refused where they are no list of sizes."""
    if not _positive(hidden):
        raise ValueError(f"'hidden' must list positive integers. Got {hidden!r} instead.")
    return tuple(int(size) for size in hidden)


class CNN(nn.Sequential):
    """Convolutional network for images that come as flat rows: blocks of convolution (3 x 3, stride 2) and tanh, then
    one linear layer; no layer mixes rows, and all logits are 0 at first. The paper's ColorMNIST network made small
    (Yaghini et al. 2023, "Learning to walk impartially on the Pareto frontier", Appendix I, Table 3)."""

    predicts_rows_alone = True

    def __init__(
        self,
        n_features: int,
        n_classes: int,
        image_shape: Sequence[int] | None = None,
        channels: Sequence[int] = (16, 32),
    ) -> None:
        depth, height, width = image_sizes(image_shape, n_features)
        layers: list[nn.Module] = [nn.Unflatten(1, (depth, height, width))]
        for before, after in pairwise([depth, *listed_channels(channels)]):
            layers += [_convolution(before, after, stride=2), nn.Tanh()]
            height, width = (height + 1) // 2, (width + 1) // 2
        last = nn.utils.skip_init(nn.Linear, int(channels[-1]) * height * width, n_classes)
        super().__init__(*layers, nn.Flatten(), last)
        draw_weights(self)


class ResNet(nn.Sequential):
    """Residual network for images that come as flat rows: a convolution (3 x 3), one residual block for each entry of
    ``channels`` (all but the first halve height and width), the mean over all positions, one linear layer; all logits
    are 0 at first. Group normalisation in place of that of batches, which mixes rows. (He et al. 2016; Wu & He 2018)"""

    predicts_rows_alone = True

    def __init__(
        self,
        n_features: int,
        n_classes: int,
        image_shape: Sequence[int] | None = None,
        channels: Sequence[int] = (16, 32),
    ) -> None:
        sizes, widths = image_sizes(image_shape, n_features), listed_channels(channels)
        layers: list[nn.Module] = [nn.Unflatten(1, sizes), _convolution(sizes[0], widths[0]), group_norm(widths[0])]
        layers.append(nn.Tanh())
        before = widths[0]
        for position, after in enumerate(widths):
            layers.append(ResidualBlock(before, after, stride=1 if position == 0 else 2))
            before = after
        last = nn.utils.skip_init(nn.Linear, before, n_classes)
        super().__init__(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), last)
        draw_weights(self)


class ResidualBlock(nn.Module):
    """Two convolutions beside the image itself; its weights are drawn by the network that holds it."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        first = _convolution(before, after, stride=stride), group_norm(after), nn.Tanh()
        self.body = nn.Sequential(*first, _convolution(after, after), group_norm(after))
        same = before == after and stride == 1
        self.past = nn.Identity() if same else _convolution(before, after, stride=stride, width=1)
        self.last = nn.Tanh()

    def forward(self, images: Tensor) -> Tensor:
        return self.last(self.body(images) + self.past(images))


def _convolution(before: int, after: int, *, stride: int = 1, width: int = 3) -> nn.Module:
    # skip_init: a plain layer would draw weights of its own first
    return nn.utils.skip_init(nn.Conv2d, before, after, width, stride=stride, padding=width // 2)


def group_norm(channels: int) -> nn.Module:
    """Up to four groups of at least two channels: one channel of one pixel would be normalised to nothing."""
    groups = next(n for n in (4, 2, 1) if n == 1 or (channels % n == 0 and channels >= 2 * n))
    return nn.GroupNorm(groups, channels)


@torch.no_grad()
def draw_weights(layers: nn.Sequential) -> None:
    """Draw the weights of all linear and convolutional layers, uniform by fan-in; zeros in the last and all biases."""
    last = layers[-1]
    for layer in layers.modules():
        if isinstance(layer, nn.Linear | nn.Conv2d):
            layer.weight.copy_((torch.rand(layer.weight.shape) * 2 - 1) * (layer.weight[0].numel() ** -0.5))
            assert layer.bias is not None
            layer.bias.zero_()
            if layer is last:
                layer.weight.zero_()


def listed_channels(channels: Sequence[int]) -> tuple[int, ...]:
    """Output channels of the blocks of a convolutional network, refused where they are no list of sizes."""
    if not _positive(channels) or len(channels) == 0:
        raise ValueError(f"'channels' must list positive integers, one per block. Got {channels!r} instead.")
    return tuple(int(n) for n in channels)


def image_sizes(image_shape: Sequence[int] | None, n_features: int) -> tuple[int, int, int]:
    """Channels, height and width of images in flat rows; None stands for square images."""
    if image_shape is None:
        for depth in (1, 3):
            side = math.isqrt(n_features // depth)
            if depth * side**2 == n_features:
                return depth, side, side
        raise ValueError(
            f"rows of {n_features} features are no square images of one or three channels. Give 'image_shape', the "
            "channels, height and width that a row holds flat, for example cnn(image_shape=(3, 14, 20))."
        )
    if not _positive(image_shape) or len(image_shape) != 3:
        raise ValueError(
            f"'image_shape' must be three positive integers (channels, height, width). Got {image_shape!r} instead."
        )
    depth, height, width = (int(n) for n in image_shape)
    if depth * height * width != n_features:
        raise ValueError(
            f"image_shape={tuple(image_shape)} stands for rows of {depth * height * width} features, but X has "
            f"{n_features}."
        )
    return depth, height, width


def _positive(sizes: object) -> bool:
    return isinstance(sizes, tuple | list) and all(
        isinstance(n, int | np.integer) and not isinstance(n, bool) and n >= 1 for n in sizes
    )
