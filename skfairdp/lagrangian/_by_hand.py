"""Plain perceptrons on the CPU written out: forward, backward and gradients of rows as products of arrays.

A step of a small network is a few matrix products of some microseconds; automatic differentiation, and tensors of every
intermediate, cost ten times that.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

Floats = NDArray[np.float32]
Array = NDArray[np.float64]

_PIECE = 1024  # rows of one sum


class NumpyMLP:
    """Linear layers with tanh or ReLU between them, as views of their parameters."""

    def __init__(self, weights_of: list[tuple[Floats, Floats]], activations: list[nn.Module]) -> None:
        self.weights_of = weights_of
        self.activations = [_ACTIVATIONS[type(activation)] for activation in activations]

    @staticmethod
    def reads(module: nn.Module, X: Tensor) -> bool:
        """Whether a module is one, in single precision and nobody listening, and rows are what it takes."""
        layers = list(module) if isinstance(module, nn.Sequential) else []
        return (
            len(layers) % 2 == 1
            and type(module).forward is nn.Sequential.forward
            and all(type(layer) is nn.Linear and layer.bias is not None for layer in layers[::2])
            and all(type(layer) in _ACTIVATIONS for layer in layers[1::2])
            and all(
                p.requires_grad and p.dtype == torch.float32 and p.device.type == "cpu" for p in module.parameters()
            )
            and not any(_hooks(part) for part in module.modules())
            and X.ndim == 2
            and _is_plain(X)
        )

    @classmethod
    def of(cls, module: nn.Module) -> "NumpyMLP":
        """Of a module that it reads; its parameters and these are the same memory."""
        assert isinstance(module, nn.Sequential)
        layers = list(module)
        return cls([_views(layer) for layer in layers[::2]], layers[1::2])

    @property
    def n_parameters(self) -> int:
        """Weights and biases of all layers."""
        return sum(weights.size + bias.size for weights, bias in self.weights_of)

    def split(self, flat: NDArray[Any]) -> list[tuple[NDArray[Any], NDArray[Any]]]:
        """Weights and bias of each layer, as views of one vector that has all of them in their order."""
        found, start = [], 0
        for weights, bias in self.weights_of:
            middle, stop = start + weights.size, start + weights.size + bias.size
            found.append((flat[start:middle].reshape(weights.shape), flat[middle:stop]))
            start = stop
        return found

    def forward(self, x: Floats) -> list[Floats]:
        """What enters each layer, and the logits."""
        found = [x]
        for k, (weights, bias) in enumerate(self.weights_of):
            x = x @ weights.T
            x += bias
            if k < len(self.activations):
                x = self.activations[k][0](x)
            found.append(x)
        return found

    def signals(self, entering: list[Floats], signal: Floats) -> list[Floats]:
        """What comes back to the output of each layer, given what comes back to the logits."""
        found = [signal]
        for k in range(len(self.weights_of) - 1, 0, -1):
            found.append(self.activations[k - 1][1](found[-1] @ self.weights_of[k][0], entering[k]))
        return found[::-1]


class PlainRows:
    """Gradients of some columns of numbers at each row, see ``RowGradients``; in double precision where it says so."""

    positions = 1

    def __init__(self, layers: NumpyMLP, x: Floats, outputs_to_slopes: Callable[[Tensor], Floats]) -> None:
        self._layers = layers
        *self._entering, logits = layers.forward(x)
        slopes = outputs_to_slopes(torch.from_numpy(logits))
        if slopes.shape[2] == 2:
            # slopes by the two logits are opposite: one signal, and a factor per row and column
            at_logits = [np.broadcast_to(np.array([-1.0, 1.0], dtype=np.float32), (len(x), 2))]
            self._factors = slopes[:, :, 1].astype(np.float64)
        else:
            at_logits = list(slopes.transpose(1, 0, 2))
            self._factors = np.ones(slopes.shape[:2])
        self._signals = [layers.signals(self._entering, signal) for signal in at_logits]
        self._wide_entering = [a.astype(np.float64) for a in self._entering]
        self._wide_signals = [[b.astype(np.float64) for b in of_base] for of_base in self._signals]
        self._squared: Array | None = None

    @property
    def terms(self) -> int:
        """How many numbers are added up for one of a weighted sum, at most, one after the other."""
        return (len(self._factors) // _PIECE + 1 + _PIECE) * len(self._signals)

    def squared_norms(self) -> Array:
        """Shape (n_rows, n_columns)."""
        if self._squared is None:
            lengths = [_dots(a, a) + 1.0 for a in self._wide_entering]  # 1 is what enters a bias
            of_bases = [
                sum(length * _dots(b, b) for length, b in zip(lengths, signals, strict=True))
                for signals in self._wide_signals
            ]
            self._squared = np.stack(of_bases, 1) * np.square(self._factors)
        return self._squared

    squared_sizes = squared_norms

    def weighted_sum(self, weights: Array, *, start: int = 0, public: bool = False) -> Array:
        """Σ over rows and columns of weight times gradient, as many rows as there are weights, from row ``start``."""
        scaled = weights * self._factors[start : start + len(weights)]
        per_base = scaled.sum(1, keepdims=True) if len(self._signals) == 1 else scaled
        entering, signals = (self._entering, self._signals) if public else (self._wide_entering, self._wide_signals)
        size = max(1, len(weights)) if public else _PIECE
        parts = [
            self._summed(entering, signals[b], per_base[first : first + size, b], start + first)
            for b in range(len(signals))
            for first in range(0, len(weights), size)
            if len(signals) == 1 or per_base[:, b].any()
        ]
        return _added(parts) if parts else np.zeros(self._layers.n_parameters)

    def _summed(self, entering: list[Any], signals: list[Any], weights: Array, start: int) -> Array:
        """Of one piece of rows, in the precision of what is given."""
        rows = slice(start, start + len(weights))
        flat = np.empty(self._layers.n_parameters, dtype=signals[0].dtype)
        of_rows = weights.astype(flat.dtype, copy=False)
        for (of_weights, of_bias), a, b in zip(self._layers.split(flat), entering, signals, strict=True):
            np.matmul((b[rows] * of_rows[:, None]).T, a[rows], out=of_weights)
            np.matmul(of_rows, b[rows], out=of_bias)
        return flat.astype(np.float64, copy=False)

    def inner(self, column: int, gradient: Array) -> Array:
        """Inner products of one column's gradients with a flat gradient, shape (n_rows,)."""
        signals = self._wide_signals[0 if len(self._wide_signals) == 1 else column]
        given = self._layers.split(gradient)
        found = np.zeros(len(self._factors))
        for (of_weights, of_bias), a, b in zip(given, self._wide_entering, signals, strict=True):
            # the product with the smaller of the two sides is the smaller intermediate
            found += _dots(b @ of_weights, a) if a.shape[1] < b.shape[1] else _dots(a @ of_weights.T, b)
            found += b @ of_bias
        return found * self._factors[:, column]


def _dots(a: Array, b: Array) -> Array:
    found: Array = np.einsum("ij,ij->i", a, b)
    return found


def _added(parts: list[Array]) -> Array:
    """The sum of parts, with the error of every addition kept (Knuth's two-sum)."""
    total, lost = parts[0], None
    for part in parts[1:]:
        new = total + part
        back = new - total
        of_this = (total - (new - back)) + (part - back)
        total, lost = new, of_this if lost is None else lost + of_this
    return total if lost is None else total + lost


def _tanh(x: Floats) -> Floats:
    """tanh(x) = 2 σ(2x) - 1, in place; torch's σ is three times as fast as either tanh."""
    x *= 2
    torch.sigmoid_(torch.from_numpy(x))
    x *= 2
    x -= 1
    return x


def _tanh_slope(signal: Floats, activation: Floats) -> Floats:
    return signal - signal * np.square(activation)


def _relu(x: Floats) -> Floats:
    return np.maximum(x, 0, out=x)


def _relu_slope(signal: Floats, activation: Floats) -> Floats:
    return signal * (activation > 0)


_ACTIVATIONS: dict[type[nn.Module], tuple[Callable[[Floats], Floats], Callable[[Floats, Floats], Floats]]] = {
    nn.Tanh: (_tanh, _tanh_slope),
    nn.ReLU: (_relu, _relu_slope),
}


def _views(layer: nn.Module) -> tuple[Floats, Floats]:
    assert isinstance(layer, nn.Linear)
    return layer.weight.detach().numpy(), layer.bias.detach().numpy()


def _is_plain(values: Tensor) -> bool:
    return values.dtype == torch.float32 and values.device.type == "cpu"


def _hooks(module: nn.Module) -> bool:
    """Whether somebody listens to a module, who would hear nothing here."""
    return bool(module._forward_hooks or module._forward_pre_hooks or module._backward_hooks)
