"""Perceptrons: stacked with a hand-written backward pass, behind scaled columns of a table, and additive ones."""

import itertools
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from sklearn.isotonic import isotonic_regression
from torch import Tensor, nn

from skfairdp._networks._nets import ConstantModule, OneAnswer, constant_module, module_of
from skfairdp._networks._shorthands import MLP
from skfairdp._typing import Floats, Ints


class StackedMLP:
    """Many ReLU perceptrons with softmax outputs as one batched matrix product. Forward and backward are written out:
    for networks this small, automatic differentiation would cost more than the arithmetic."""

    def __init__(self, n_features: int, hidden: Sequence[int], n_classes: int, *, narrow: bool = False) -> None:
        self.widths = (n_features, *hidden, n_classes)
        self.n_classes, self.narrow = n_classes, narrow
        self.widest = max(self.widths)

    @property
    def n_parameters(self) -> int:
        """Parameters of one network."""
        return sum((fan_in + 1) * fan_out for fan_in, fan_out in itertools.pairwise(self.widths))

    def initial(self, seeds: Sequence[int]) -> list[Tensor]:
        """Draw uniform weights and zero biases, one network per seed: weight, bias, weight, bias, ...
        Hidden weights are (networks, inputs, outputs)."""
        # The second entry keeps this stream apart from the one that orders the batches.
        rngs = [np.random.default_rng([seed, 1]) for seed in seeds]
        params = []
        for fan_in, fan_out in itertools.pairwise(self.widths):
            bound = np.sqrt(1 / fan_in if self.narrow else 6 / (fan_in + fan_out))
            weight = np.stack([rng.uniform(-bound, bound, (fan_in, fan_out)) for rng in rngs])
            params += [torch.as_tensor(weight.astype(np.float32)), torch.zeros(len(rngs), 1, fan_out)]
        # Products with a matrix of only a few columns are slow, those with a few rows are not: the output layer
        # is kept class by class, (networks, classes, features), and so are its scores.
        params[-2:] = [p.transpose(1, 2).contiguous() for p in params[-2:]]
        return params

    def backward(self, params: list[Tensor], gradients: list[Tensor], x: Tensor, y: Tensor, weight: Tensor) -> None:
        """Write the gradients of each network's weighted cross-entropy into ``gradients``."""
        activations, signal = self.forward(params, x)
        signal = signal.softmax(dim=1)
        signal.scatter_add_(1, y[:, None, :], torch.full_like(y[:, None, :], -1, dtype=signal.dtype))
        signal.mul_(weight[:, None, :])
        self.backpropagate(params, gradients, activations, signal)

    def forward(self, params: list[Tensor], x: Tensor) -> tuple[list[Tensor], Tensor]:
        """Activations of all layers below the output, and scores (networks, classes, rows), of rows per network.
        ``x`` is (networks, rows, n_features)."""
        *hidden, last, bias = params
        activations = [x]
        for w, b in zip(hidden[::2], hidden[1::2], strict=True):
            activations.append(torch.baddbmm(b, activations[-1], w).relu_())
        return activations, torch.baddbmm(bias, last, activations[-1].transpose(1, 2))

    def backpropagate(
        self, params: list[Tensor], gradients: list[Tensor], activations: list[Tensor], signal: Tensor
    ) -> None:
        """Write into ``gradients`` what the derivatives ``signal`` by the scores come to; ``activations`` are used up.
        ``activations`` and the shape of ``signal`` are those of :meth:`forward`."""
        *hidden, last, _ = params
        torch.bmm(signal, activations[-1], out=gradients[-2])
        torch.sum(signal, 2, keepdim=True, out=gradients[-1])
        signal = signal.transpose(1, 2)
        above = last.transpose(1, 2)
        for layer in range(len(hidden) - 2, -1, -2):
            h, below = activations.pop(), activations[-1]
            # Activations are non-negative, so their sign is the derivative of the rectifier.
            signal = torch.bmm(signal, above.transpose(1, 2)).mul_(h.sign_())
            torch.bmm(below.transpose(1, 2), signal, out=gradients[layer])
            torch.sum(signal, 1, keepdim=True, out=gradients[layer + 1])
            above = hidden[layer]

    def signals(self, params: list[Tensor], activations: list[Tensor], signal: Tensor) -> list[Tensor]:
        """What derivatives ``signal`` by the scores are by what enters the hidden layers, top first, and by rows."""
        *hidden, last, _ = params
        found = [torch.bmm(signal.transpose(1, 2), last)]
        for layer in range(len(hidden) - 2, -1, -2):
            found[-1].mul_(activations[layer // 2 + 1].sign())
            found.append(torch.bmm(found[-1], hidden[layer].transpose(1, 2)))
        return found

    def penalise_slopes(self, params: list[Tensor], gradients: list[Tensor], x: Tensor, strength: float) -> None:
        """Add to ``gradients`` those of ``strength`` times the mean of (‖∂ score/∂ row‖ − 1)² over the rows ``x``.
        While the same units are active, slopes are products of weights, and ``u · slope`` is linear in each of them."""
        *hidden, _, _ = params
        activations, scores = self.forward(params, x)
        *signals, slopes = self.signals(params, activations, torch.ones_like(scores))
        norms = torch.linalg.vector_norm(slopes, dim=2, keepdim=True).clamp_min_(1e-12)
        tangent = slopes.mul_((1 - 1 / norms).mul_(2 * strength / x.shape[1]))
        for depth, layer in enumerate(range(0, len(hidden), 2)):
            gradients[layer].baddbmm_(tangent.transpose(1, 2), signals[-1 - depth])
            tangent = torch.bmm(tangent, hidden[layer]).mul_(activations[depth + 1].sign())
        gradients[-2].add_(tangent.sum(dim=1, keepdim=True))

    def logits(self, params: list[Tensor], x: Tensor) -> Tensor:
        """Scores (networks, rows, classes) of rows ``x`` (rows, n_features)."""
        *hidden, last, bias = params
        h = x.expand(last.shape[0], *x.shape)
        for w, b in zip(hidden[::2], hidden[1::2], strict=True):
            h = torch.baddbmm(b, h, w).relu_()
        return torch.baddbmm(bias.transpose(1, 2), h, last.transpose(1, 2))


#: Numbers are cut off at so many half ranges from the centre.
FAR = 2.0
#: Of a lead in log odds, how much each unit of a score may move it that is to rank rows alone.
ORDER = 0.01
#: Of the basis beside a scaled number: what it adds to the squared norm of a row, and so to the noise, is then about a
#: sixth of a column, beside a third.
WEIGHT = 0.5


class ColumnScales(nn.Module):
    """Scale columns by the range of their knots, and add hat functions around the knots where they are asked for.
    Without knots of their own columns have equally spaced ones. A column that is marked as missing becomes zeros."""

    columns: Tensor
    missing: Tensor
    knots: Tensor
    far: Tensor

    def __init__(
        self, columns: Sequence[int], missing: Sequence[int | None], n_knots: int, *, hats: bool = True
    ) -> None:
        super().__init__()
        self.height = WEIGHT * hats
        marks = [-1 if place is None else place for place in missing]
        self.register_buffer("columns", torch.tensor(columns), persistent=False)
        self.register_buffer("missing", torch.tensor(marks), persistent=False)
        self.register_buffer("knots", torch.linspace(-1, 1, n_knots).repeat(len(columns), 1))
        self.register_buffer("far", torch.full((len(columns),), FAR))

    @property
    def n_added(self) -> int:
        """How many features it adds."""
        return self.knots.numel() if self.height else 0

    def set_knots(self, knots: Floats, far: Floats | None = None) -> None:
        """Take public or released knots."""
        self.knots.copy_(torch.as_tensor(knots))
        if far is not None:
            self.far.copy_(torch.as_tensor(far))

    def forward(self, X: Tensor) -> Tensor:
        numbers = X[:, self.columns]
        absent = torch.where(self.missing >= 0, X[:, self.missing.clamp(min=0)], torch.zeros_like(numbers)) > 0.5
        low, high = self.knots[:, 0], self.knots[:, -1]
        scaled = ((numbers - (low + high) / 2) / ((high - low) / 2)).clamp(-self.far, self.far)
        features = X.clone()
        features[:, self.columns] = scaled.masked_fill(absent, 0.0)
        if not self.height:
            return features
        # of shape (n_rows, n_columns, n_knots); they add up to 1
        # how far a number is from each knot to the next, from 0 to 1: a hat is one such ramp less the next
        gaps = self.knots.diff(dim=1)
        ramps = ((numbers[:, :, None] - self.knots[:, :-1]) / gaps).clamp(0.0, 1.0)
        ones, zeros = torch.ones_like(ramps[:, :, :1]), torch.zeros_like(ramps[:, :, :1])
        hats = self.height * (torch.cat([ones, ramps], dim=2) - torch.cat([ramps, zeros], dim=2))
        return torch.cat([features, hats.masked_fill(absent[:, :, None], 0.0).flatten(1)], dim=1)


class ScaledMLP(nn.Sequential):
    """A plain network behind :class:`ColumnScales`."""

    predicts_rows_alone = True

    def __init__(self, scales: ColumnScales, n_features: int, n_classes: int, hidden: Sequence[int] = (64,)) -> None:
        super().__init__(scales, *MLP(n_features + scales.n_added, n_classes, hidden))

    @classmethod
    def of(cls, scales: ColumnScales, layers: MLP) -> "ScaledMLP":
        """Put a network that was trained on scaled columns behind them."""
        found = cls.__new__(cls)
        nn.Sequential.__init__(found, scales, *layers)
        return found.eval()


class ScaledModule(nn.Module):
    """A network of the user's behind :class:`ColumnScales`."""

    def __init__(self, scales: ColumnScales, module: nn.Module) -> None:
        super().__init__()
        self.scales, self.module = scales, module

    @property
    def predicts_rows_alone(self) -> bool | None:
        """What the network says of itself."""
        return getattr(self.module, "predicts_rows_alone", None)

    def forward(self, X: Tensor) -> Tensor:
        return self.module(self.scales(X))


def behind(scales: ColumnScales | None, module: nn.Module) -> nn.Module:
    """Return the module for columns as they were before the scaling."""
    if scales is None:
        return module
    return ScaledMLP.of(scales, module) if isinstance(module, MLP) else ScaledModule(scales, module).eval()


@dataclass(frozen=True)
class AdditiveParts:
    """What a network without hidden layers computes: weights of features, and a curve for each column of numbers."""

    bias: Floats
    weights: Floats
    columns: Ints
    knots: Floats
    hats: Floats

    def breakpoints(self, place: int) -> Floats:
        """Where the curve of a column may bend, from -1 to 1: at its knots, and where numbers are cut off."""
        low, high = self.knots[place, [0, -1]]
        cut = (low + high) / 2 + np.array([-FAR, FAR]) * (high - low) / 2
        return np.unique(np.concatenate([[-1.0, 1.0], self.knots[place], cut[np.abs(cut) < 1]]))

    def curve(self, place: int, numbers: Floats) -> Floats:
        """What a column adds to the logits."""
        line = np.clip(self._scaled(place, numbers), -FAR, FAR)[:, None] * self.weights[:, self.columns[place]]
        return line + np.stack([np.interp(numbers, self.knots[place], hats[place]) for hats in self.hats], axis=1)

    def moved(self, factor: float, shift: Floats) -> "AdditiveParts":
        """Of the logits times a factor, and a shift more."""
        given = self.weights * factor, self.columns, self.knots, self.hats * factor
        return AdditiveParts(self.bias * factor + shift, *given)

    def monotone(self, feature: int, direction: int) -> "AdditiveParts":
        """Make the log odds of the second class never fall (1) or never rise (-1) with a feature: values at knots,
        which are quantiles, become the closest that do, by least squares; beyond them a line that goes the wrong way
        becomes flat."""
        weights, hats = self.weights.copy(), self.hats.copy()
        slope = weights[1, feature] - weights[0, feature]
        kept = slope if direction * slope > 0 else 0.0
        weights[:, feature] += np.array([-0.5, 0.5]) * (kept - slope)
        for place in np.flatnonzero(self.columns == feature).tolist():
            scaled, added = self._scaled(place, self.knots[place]), hats[1, place] - hats[0, place]
            values = isotonic_regression(slope * scaled + added, increasing=direction > 0)
            hats[:, place] += np.array([[-0.5], [0.5]]) * (values - kept * scaled - added)
        return replace(self, weights=weights, hats=hats)

    def _scaled(self, place: int, numbers: Floats) -> Floats:
        low, high = self.knots[place, [0, -1]]
        return np.asarray((numbers - (low + high) / 2) / ((high - low) / 2))


def additive_parts(net: Any, n_features: int) -> AdditiveParts | None:
    """Take a trained network apart."""
    module = module_of(net)
    scales, layers = _taken_apart(module)
    if isinstance(module, OneAnswer):
        parts = additive_parts(module.network, n_features)
        return None if parts is None else parts.moved(module.share.item(), _numbers(module.logits))
    if isinstance(module, ConstantModule):
        bias = _numbers(module.logits)
        return _parts(None, bias, np.zeros((len(bias), n_features)), n_features)
    if len(layers) != 1 or not isinstance(layers[0], nn.Linear):
        return None
    return _parts(scales, _numbers(layers[0].bias), _numbers(layers[0].weight), n_features)


def one_answer(probabilities: Floats, network: nn.Module) -> nn.Module:
    """A network that answers every row with the likeliest class, and ranks rows as another does. Where that adds up
    terms, so does this one: its share is small enough that no encoded row could get another answer."""
    logits, (scales, layers) = np.log(probabilities), _taken_apart(network)
    second, first = np.sort(logits)[-2:]
    apart = 0.0  # what the logits of two classes differ by at most
    if len(layers) == 1 and isinstance(layers[0], nn.Linear):
        weights, bias = np.abs(_numbers(layers[0].weight)), np.abs(_numbers(layers[0].bias))
        of_rows = weights.sum(axis=1) * max(FAR, _height(scales)) + bias
        apart = 2 * float(of_rows.max())
    share = (first - second) * min(ORDER, 0.5 / max(apart, 1.0))
    if share == 0:
        return constant_module(probabilities)
    return OneAnswer(torch.as_tensor(logits, dtype=torch.float32), network, float(share)).eval()


@torch.no_grad()
def with_parts(net: Any, parts: AdditiveParts) -> Any:
    """Return a copy of a trained network that computes something else."""
    other = deepcopy(net)
    module = module_of(other)
    if isinstance(module, OneAnswer):
        share, logits = module.share.item(), _numbers(module.logits)
        parts, module = parts.moved(1 / share, -logits / share), module.network
    if not isinstance(module, ConstantModule):
        scales, (layer, *_) = _taken_apart(module)
        hats = (parts.hats / _height(scales)).reshape(len(parts.bias), -1)
        layer.weight.copy_(torch.as_tensor(np.hstack([parts.weights, hats])))
        layer.bias.copy_(torch.as_tensor(parts.bias))
    return other


def _taken_apart(module: nn.Module) -> tuple[ColumnScales | None, list[Any]]:
    """The first layer of a ScaledMLP, and the layers of an MLP; nothing of any other network."""
    layers: list[Any] = list(module) if isinstance(module, MLP | ScaledMLP) else []
    return layers.pop(0) if isinstance(module, ScaledMLP) else None, layers


def _parts(scales: ColumnScales | None, bias: Floats, weights: Floats, n_features: int) -> AdditiveParts:
    knots = np.zeros((0, 1)) if scales is None else _numbers(scales.knots)
    columns = np.zeros(0, dtype=np.int64) if scales is None else scales.columns.numpy()
    hats = _height(scales) * weights[:, n_features:].reshape(len(bias), *knots.shape)
    return AdditiveParts(bias, weights[:, :n_features], columns, knots, hats)


def _height(scales: ColumnScales | None) -> float:
    return WEIGHT if scales is None else scales.height


def _numbers(values: torch.Tensor) -> Floats:
    return values.detach().cpu().double().numpy().copy()
