"""A small convolutional network over flat rows, of layers that the fused clipping knows."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import nn


def build_cnn(
    image_shape: Sequence[int],
    n_classes: int,
    generator: torch.Generator,
    *,
    channels: Sequence[int] = (16, 32),
    owner: str = "build_cnn",
) -> nn.Module:
    """Convolutional network for images that come as flat rows, initialised from ``generator`` alone.

    Blocks of convolution (3 x 3, stride 2) and tanh, then one linear layer to the logits. It is the paper's ColorMNIST
    network (Table 3) made small: two blocks instead of four and no hidden linear layers; the strides stand for its
    pooling, at a quarter of the arithmetic, and tanh for its ReLU, since bounded activations lose least to clipping. No
    layer mixes rows.

    References
    ----------
    Yaghini et al. (2023), "Learning to walk impartially on the Pareto frontier", Appendix I, Table 3.
    """
    if not _positive(image_shape) or len(image_shape) != 3:
        raise ValueError(
            f"The 'image_shape' parameter of {owner} must be three positive integers (channels, height, width). "
            f"Got {image_shape!r} instead."
        )
    if not _positive(channels) or len(channels) == 0:
        raise ValueError(
            f"The 'channels' parameter of {owner} must list positive integers, one per block. Got {channels!r} instead."
        )
    depth, height, width = (int(n) for n in image_shape)
    layers: list[nn.Module] = [nn.Unflatten(1, (depth, height, width))]
    # skip_init: a plain layer would draw weights of its own from the global generator
    for before, after in pairwise([depth, *(int(n) for n in channels)]):
        layers += [nn.utils.skip_init(nn.Conv2d, before, after, 3, stride=2, padding=1), nn.Tanh()]
        height, width = (height + 1) // 2, (width + 1) // 2
    last = nn.utils.skip_init(nn.Linear, int(channels[-1]) * height * width, n_classes)
    module = nn.Sequential(*layers, nn.Flatten(), last)
    with torch.no_grad():
        for layer in module:
            if isinstance(layer, nn.Conv2d):
                bound = layer.weight[0].numel() ** -0.5
                layer.weight.copy_((torch.rand(layer.weight.shape, generator=generator) * 2 - 1) * bound)
                assert layer.bias is not None
                layer.bias.zero_()
        # equal logits at first: the first noisy steps then set the direction, not an accident of initialisation
        last.weight.zero_()
        last.bias.zero_()
    return module


def _positive(sizes: object) -> bool:
    return isinstance(sizes, tuple | list) and all(
        isinstance(n, int | np.integer) and not isinstance(n, bool) and n >= 1 for n in sizes
    )
