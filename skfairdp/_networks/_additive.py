"""A network without hidden layers, taken apart into what each feature adds to its logits, and put together again."""

from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.isotonic import isotonic_regression
from torch import nn

from skfairdp._networks._column_scales import FAR, WEIGHT, ColumnScales, ScaledMLP
from skfairdp._networks._nets import ConstantModule, module_of
from skfairdp._networks._shorthands import MLP

Array = NDArray[np.float64]


@dataclass(frozen=True)
class AdditiveParts:
    """What a network without hidden layers computes: weights of features, and a curve for each column of numbers."""

    bias: Array
    weights: Array
    columns: NDArray[np.int64]
    knots: Array
    hats: Array

    def breakpoints(self, place: int) -> Array:
        """Where the curve of a column may bend, from -1 to 1: at its knots, and where numbers are cut off."""
        low, high = self.knots[place, [0, -1]]
        cut = (low + high) / 2 + np.array([-FAR, FAR]) * (high - low) / 2
        found = np.concatenate([[-1.0, 1.0], self.knots[place], cut[np.abs(cut) < 1]])
        return np.unique(found)

    def curve(self, place: int, numbers: Array) -> Array:
        """What a column adds to the logits."""
        line = np.clip(self._scaled(place, numbers), -FAR, FAR)[:, None] * self.weights[:, self.columns[place]]
        return line + np.stack([np.interp(numbers, self.knots[place], hats[place]) for hats in self.hats], axis=1)

    def monotone(self, feature: int, direction: int) -> "AdditiveParts":
        """Make the log odds of the second class never fall (1) or never rise (-1) with a feature.

        Of a feature with knots, values at the knots become the closest ones, by least squares, that go in one
        direction. Knots are released quantiles, so each stands for as many rows. Beyond the outermost knots, and of a
        feature without knots, a line that goes the wrong way becomes flat.
        """
        weights, hats = self.weights.copy(), self.hats.copy()
        slope = weights[1, feature] - weights[0, feature]
        kept = slope if direction * slope > 0 else 0.0
        weights[:, feature] += np.array([-0.5, 0.5]) * (kept - slope)
        for place in np.flatnonzero(self.columns == feature).tolist():
            scaled, added = self._scaled(place, self.knots[place]), hats[1, place] - hats[0, place]
            values = isotonic_regression(slope * scaled + added, increasing=direction > 0)
            hats[:, place] += np.array([[-0.5], [0.5]]) * (values - kept * scaled - added)
        return replace(self, weights=weights, hats=hats)

    def _scaled(self, place: int, numbers: Array) -> Array:
        low, high = self.knots[place, [0, -1]]
        return np.asarray((numbers - (low + high) / 2) / ((high - low) / 2))


def additive_parts(net: Any, n_features: int) -> AdditiveParts | None:
    """Take a trained network apart."""
    module = module_of(net)
    scales, layers = _taken_apart(module)
    if isinstance(module, ConstantModule):
        bias = _numbers(module.logits)
        return _parts(None, bias, np.zeros((len(bias), n_features)), n_features)
    if len(layers) != 1 or not isinstance(layers[0], nn.Linear):
        return None
    return _parts(scales, _numbers(layers[0].bias), _numbers(layers[0].weight), n_features)


@torch.no_grad()
def with_parts(net: Any, parts: AdditiveParts) -> Any:
    """Return a copy of a trained network that computes something else."""
    other = deepcopy(net)
    module = module_of(other)
    if not isinstance(module, ConstantModule):
        layer = _taken_apart(module)[1][0]
        hats = (parts.hats / WEIGHT).reshape(len(parts.bias), -1)
        layer.weight.copy_(torch.as_tensor(np.hstack([parts.weights, hats])))
        layer.bias.copy_(torch.as_tensor(parts.bias))
    return other


def _taken_apart(module: nn.Module) -> tuple[ColumnScales | None, list[Any]]:
    """The first layer of a ScaledMLP, and the layers of an MLP; nothing of any other network."""
    layers: list[Any] = list(module) if isinstance(module, MLP | ScaledMLP) else []
    scales = layers.pop(0) if isinstance(module, ScaledMLP) else None
    return scales, layers


def _parts(scales: ColumnScales | None, bias: Array, weights: Array, n_features: int) -> AdditiveParts:
    knots = np.zeros((0, 1)) if scales is None else _numbers(scales.knots)
    columns = np.zeros(0, dtype=np.int64) if scales is None else scales.columns.numpy()
    hats = WEIGHT * weights[:, n_features:].reshape(len(bias), *knots.shape)
    return AdditiveParts(bias, weights[:, :n_features], columns, knots, hats)


def _numbers(values: torch.Tensor) -> Array:
    return values.detach().cpu().double().numpy().copy()
