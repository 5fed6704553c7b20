"""Convolutional generators and stacked convolutional discriminators of images that come as flat rows."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from skfairdp._networks._generator import own_generator
from skfairdp._networks._resnet import group_norm
from skfairdp._networks._shorthands import image_sizes, listed_channels


@dataclass(frozen=True)
class ImageLayers:
    """Sizes of the convolutions of a generator and of discriminators. Public."""

    image_shape: tuple[int, int, int]
    channels: tuple[int, ...]

    @classmethod
    def of(cls, image_shape: Sequence[int] | None, channels: Sequence[int], n_features: int) -> "ImageLayers":
        """Read the sizes that a user gave for rows of ``n_features``."""
        return cls(image_sizes(image_shape, n_features), listed_channels(channels))

    @property
    def sides(self) -> list[tuple[int, int]]:
        """Height and width before the first block and after each."""
        found = [self.image_shape[1:]]
        for _ in self.channels:
            found.append(((found[-1][0] + 1) // 2, (found[-1][1] + 1) // 2))
        return found

    def generator(self, n_inputs: int) -> nn.Sequential:
        """A linear layer to the smallest maps; each block then doubles height and width. Ends in flat rows."""
        *larger, (height, width) = self.sides
        widths = (*reversed(self.channels), self.image_shape[0])
        layers: list[nn.Module] = [
            nn.Linear(n_inputs, widths[0] * height * width),
            nn.Unflatten(1, (widths[0], height, width)),
        ]
        for (before, after), side in zip(pairwise(widths), reversed(larger), strict=True):
            layers += [group_norm(before), nn.LeakyReLU(0.2), nn.Upsample(size=side)]
            layers.append(nn.Conv2d(before, after, 3, padding=1))
        return nn.Sequential(*layers, nn.Flatten())


class ImageScore(nn.Module):
    """One score of a row that has the pixels of an image first, then a condition, which every position is shown."""

    def __init__(self, sizes: ImageLayers, n_features: int) -> None:
        super().__init__()
        depth, height, width = sizes.image_shape
        self.image_shape, self.n_pixels = sizes.image_shape, depth * height * width
        layers: list[nn.Module] = []
        for before, after in pairwise((depth + n_features - self.n_pixels, *sizes.channels)):
            layers += [nn.Conv2d(before, after, 3, stride=2, padding=1), nn.LeakyReLU(0.2)]
        height, width = sizes.sides[-1]
        self.layers = nn.Sequential(*layers, nn.Flatten(), nn.Linear(sizes.channels[-1] * height * width, 1))

    def forward(self, rows: Tensor) -> Tensor:
        images = rows[:, : self.n_pixels].reshape(-1, *self.image_shape)
        condition = rows[:, self.n_pixels :, None, None].expand(-1, -1, *self.image_shape[1:])
        return self.layers(torch.cat([images, condition], dim=1))


class StackedImageScores:
    """Many convolutional discriminators as one program, with what :class:`StackedMLP` offers for discriminators.

    Each network has its own parameters, rows and gradients; none is computed from another's.
    """

    def __init__(self, sizes: ImageLayers, n_features: int) -> None:
        with own_generator():
            self._module = ImageScore(sizes, n_features)
        self._names = [name for name, _ in self._module.named_parameters()]

    def initial(self, seeds: Sequence[int]) -> list[Tensor]:
        """Draw one set of parameters per seed, from torch's default law."""
        copies = [deepcopy(self._module) for _ in seeds]
        for seed, module in zip(seeds, copies, strict=True):
            with own_generator(int(seed)):
                for layer in module.layers:
                    if isinstance(layer, nn.Conv2d | nn.Linear):
                        layer.reset_parameters()
        stacked, _ = stack_module_state(copies)
        return [stacked[name].detach() for name in self._names]

    def forward(self, params: list[Tensor], x: Tensor) -> tuple[list[Tensor], Tensor]:
        """The rows (networks, rows, n_features), and their scores (networks, 1, rows)."""
        return [x], self._scores(params, x)[:, None, :]

    def backpropagate(
        self, params: list[Tensor], gradients: list[Tensor], activations: list[Tensor], signal: Tensor
    ) -> None:
        """Write into ``gradients`` what the derivatives ``signal`` (networks, 1, rows) by the scores come to."""
        with torch.enable_grad():
            own = [p.detach().requires_grad_() for p in params]
            scores = self._scores(own, activations[0])
        for gradient, found in zip(gradients, torch.autograd.grad(scores, own, signal[:, 0, :]), strict=True):
            gradient.copy_(found)

    def signals(self, params: list[Tensor], activations: list[Tensor], signal: Tensor) -> list[Tensor]:
        """What derivatives ``signal`` by the scores are by the rows: one tensor (networks, rows, n_features)."""
        with torch.enable_grad():
            rows = activations[0].detach().requires_grad_()
            scores = self._scores(params, rows)
        return list(torch.autograd.grad(scores, rows, signal[:, 0, :]))

    def penalise_slopes(self, params: list[Tensor], gradients: list[Tensor], x: Tensor, strength: float) -> None:
        """Add to ``gradients`` those of ``strength`` times the mean of (‖∂ score/∂ row‖ − 1)² over the rows ``x``."""
        with torch.enable_grad():
            own = [p.detach().requires_grad_() for p in params]
            rows = x.detach().requires_grad_()
            (slopes,) = torch.autograd.grad(self._scores(own, rows).sum(), rows, create_graph=True)
            norms = (slopes.square().sum(dim=2) + 1e-24).sqrt()
            penalty = strength * (norms - 1).square().mean(dim=1).sum()
        found = torch.autograd.grad(penalty, own, allow_unused=True)  # biases change no slope
        for gradient, more in zip(gradients, found, strict=True):
            if more is not None:
                gradient.add_(more)

    def logits(self, params: list[Tensor], x: Tensor) -> Tensor:
        """Scores (networks, rows, 1) of rows (rows, n_features) that all are shown."""
        return self._scores(params, x.expand(params[0].shape[0], *x.shape))[:, :, None]

    def _scores(self, params: list[Tensor], x: Tensor) -> Tensor:
        def one(own: dict[str, Tensor], rows: Tensor) -> Tensor:
            return functional_call(self._module, own, (rows,))[:, 0]

        return vmap(one)(dict(zip(self._names, params, strict=True)), x)
