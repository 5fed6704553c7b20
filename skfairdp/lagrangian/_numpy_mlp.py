"""Perceptrons in NumPy: their gradients by hand, and their training under constraints."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits
from torch import Tensor, nn

from skfairdp._networks import Total
from skfairdp._typing import Array, Floats, Ints
from skfairdp.fairness import FairnessConstraints
from skfairdp.lagrangian._dual_ascent import ROUNDING, OneNetwork, followed_scores

Floats32 = NDArray[np.float32]

_PIECE = 1024  # rows of one sum


class NumpyMLP:
    """Linear layers with tanh or ReLU between them, of a module that it reads: as views of its parameters."""

    def __init__(self, module: nn.Module) -> None:
        layers: list[Any] = list(module.children())
        self.weights_of = [(layer.weight.detach().numpy(), layer.bias.detach().numpy()) for layer in layers[::2]]
        self.activations = [_ACTIVATIONS[type(activation)] for activation in layers[1::2]]

    @staticmethod
    def reads(module: nn.Module, X: Tensor) -> bool:
        """Whether a module is one, in single precision and nobody listening, and rows are what it takes."""
        layers = list(module) if isinstance(module, nn.Sequential) else []
        hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks")  # who listens would hear nothing here
        return (
            len(layers) % 2 == 1
            and type(module).forward is nn.Sequential.forward
            and all(type(layer) is nn.Linear and layer.bias is not None for layer in layers[::2])
            and all(type(layer) in _ACTIVATIONS for layer in layers[1::2])
            and all(p.requires_grad for p in module.parameters())
            and all(v.dtype == torch.float32 and v.device.type == "cpu" for v in (X, *module.parameters()))
            and not any(getattr(part, name) for part in module.modules() for name in hooks)
            and X.ndim == 2
        )

    @property
    def n_parameters(self) -> int:
        """Weights and biases of all layers."""
        return sum(weights.size + bias.size for weights, bias in self.weights_of)

    def split(self, flat: Array) -> list[tuple[Array, Array]]:
        """Weights and bias of each layer, as views of one vector that has all of them in their order."""
        found, start = [], 0
        for weights, bias in self.weights_of:
            middle, stop = start + weights.size, start + weights.size + bias.size
            found.append((flat[start:middle].reshape(weights.shape), flat[middle:stop]))
            start = stop
        return found

    def forward(self, x: Floats32) -> list[Floats32]:
        """What enters each layer, and the logits."""
        found = [x]
        for k, (weights, bias) in enumerate(self.weights_of):
            x = x @ weights.T
            x += bias
            if k < len(self.activations):
                x = self.activations[k][0](x)
            found.append(x)
        return found

    def signals(self, entering: list[Floats32], signal: Floats32) -> list[Floats32]:
        """What comes back to the output of each layer, given what comes back to the logits."""
        found = [signal]
        for k in range(len(self.weights_of) - 1, 0, -1):
            found.append(self.activations[k - 1][1](found[-1] @ self.weights_of[k][0], entering[k]))
        return found[::-1]


class PlainRows:
    """Gradients of some columns of numbers at each row, as ``_TorchRows`` of any module, for a perceptron in NumPy."""

    positions = 1

    def __init__(self, layers: NumpyMLP, x: Floats32, outputs_to_slopes: Callable[[Tensor], Floats32]) -> None:
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
        self._squared: Floats | None = None

    @property
    def terms(self) -> int:
        """How many numbers are added up for one of a weighted sum, at most, one after the other."""
        return (len(self._factors) // _PIECE + 1 + _PIECE) * len(self._signals)

    def squared_norms(self) -> Floats:
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

    def weighted_sum(self, weights: Floats, *, start: int = 0, public: bool = False) -> Floats:
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
        total: Any = Total()
        for part in parts or [np.zeros(self._layers.n_parameters)]:
            total.add(part)
        return total.value

    def _summed(self, entering: list[Any], signals: list[Any], weights: Floats, start: int) -> Floats:
        """Of one piece of rows, in the precision of what is given."""
        rows = slice(start, start + len(weights))
        flat = np.empty(self._layers.n_parameters, dtype=signals[0].dtype)
        of_rows = weights.astype(flat.dtype, copy=False)
        for (of_weights, of_bias), a, b in zip(self._layers.split(flat), entering, signals, strict=True):
            np.matmul((b[rows] * of_rows[:, None]).T, a[rows], out=of_weights)
            np.matmul(of_rows, b[rows], out=of_bias)
        return flat.astype(np.float64, copy=False)

    def inner(self, column: int, gradient: Floats) -> Floats:
        """Inner products of one column's gradients with a flat gradient, shape (n_rows,)."""
        signals = self._wide_signals[0 if len(self._wide_signals) == 1 else column]
        given = self._layers.split(gradient)
        found = np.zeros(len(self._factors))
        for (of_weights, of_bias), a, b in zip(given, self._wide_entering, signals, strict=True):
            # the product with the smaller of the two sides is the smaller intermediate
            found += _dots(b @ of_weights, a) if a.shape[1] < b.shape[1] else _dots(a @ of_weights.T, b)
            found += b @ of_bias
        return found * self._factors[:, column]


def _dots(a: Floats, b: Floats) -> Floats:
    return np.einsum("ij,ij->i", a, b)


def _tanh(x: Floats32) -> Floats32:
    """tanh(x) = 2 σ(2x) - 1, in place; torch's σ is three times as fast as either tanh."""
    x *= 2
    torch.sigmoid_(torch.from_numpy(x))
    x *= 2
    x -= 1
    return x


_ACTIVATIONS: dict[type[nn.Module], tuple[Callable[[Floats32], Floats32], Callable[[Floats32, Floats32], Floats32]]] = {
    nn.Tanh: (_tanh, lambda signal, activation: signal - signal * np.square(activation)),
    nn.ReLU: (lambda x: np.maximum(x, 0, out=x), lambda signal, activation: signal * (activation > 0)),
}


_CHUNK = 1024  # rows whose activations stay in a cache


class NumpyMLPTraining(OneNetwork):
    """As :class:`OneNetwork` for what :meth:`fits`: the same steps, up to the last digits of their sums."""

    ROWS_OF_A_THREAD: ClassVar[int] = 16 * _CHUNK  # at a time

    @staticmethod
    def fits(module: nn.Module, X: Tensor, constraints: FairnessConstraints, optimizer: torch.optim.Optimizer) -> bool:
        """Whether it is linear layers with tanh or ReLU between them, on the CPU, and torch's Adam with no other
        options than step size, betas, eps and weight decay."""
        groups, usual = optimizer.param_groups, ("lr", "betas", "eps", "weight_decay", "params")
        plain = torch.optim.Adam([torch.zeros(1)]).param_groups[0]
        return (
            NumpyMLP.reads(module, X)
            and all(column.power == 1 for column in constraints.columns)
            and type(optimizer) is torch.optim.Adam
            and len(groups) == 1
            and all(groups[0].get(name) == value for name, value in plain.items() if name not in usual)
        )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.vector = np.concatenate([p.detach().numpy().ravel() for p in self.parameters])
        self.slope, self.mean = np.zeros_like(self.vector), np.zeros_like(self.vector)
        pieces = NumpyMLP(self.module).split(self.vector)
        for p, view in zip(self.parameters, (view for of_layer in pieces for view in of_layer), strict=True):
            p.data = torch.from_numpy(view)
        self.layers = NumpyMLP(self.module)
        self.slopes_of = self.layers.split(self.slope)
        self.adam = _Adam(self.optimizer, self.vector)
        self.rows: Floats32 = self.X.numpy()
        self.truth = np.eye(self.constraints.n_classes, dtype=np.float32)[self.y.numpy()]
        self.all_classes = np.ones((self.constraints.n_classes, 1), dtype=np.float32)
        self.all_rows = np.ones(min(self.training.batch_size, len(self.rows)), dtype=np.float32)
        self.pulls: Floats32 | None = None  # on the probability of each class, row by row
        self.n_threads = 1

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Keep libraries from cutting products of some microseconds into threads, which wait for each other longer.
        Threads of our own take thousands of rows each, where all rows are scored; as many as the libraries would."""
        self.n_threads = torch.get_num_threads()
        with threadpool_limits(limits=1):
            yield

    # ------------------------------------------------------------------ dual

    @np.errstate(all="ignore")  # torch says nothing of overflow either
    def scores(self) -> Floats:
        """The scores h of the rows that multipliers follow."""
        logits = self._logits()
        predicted = torch.from_numpy(logits.argmax(1))
        probabilities = torch.from_numpy(logits).double()
        if self.training.violations == "probabilities":
            probabilities = torch.softmax(probabilities, dim=1)
        h = followed_scores(self.watched, probabilities, predicted, self.training.violations)
        return self._priced(np.nan_to_num(h.numpy()))

    def _logits(self) -> Floats32:
        """Of all that are watched; the same bits by one thread and by several."""
        rows: Floats32 = self.watched_X.numpy()
        found = np.empty((len(rows), self.constraints.n_classes), dtype=np.float32)

        @np.errstate(all="ignore")  # which each thread has for itself
        def of_rows(first: int) -> None:
            for start in range(first, min(first + self.ROWS_OF_A_THREAD, len(found)), _CHUNK):
                found[start : start + _CHUNK] = self.layers.forward(rows[start : start + _CHUNK])[-1]

        starts = range(0, len(found), self.ROWS_OF_A_THREAD)
        if self.n_threads == 1 or len(starts) == 1:
            list(map(of_rows, starts))
        else:
            with ThreadPoolExecutor(self.n_threads, initializer=_one_thread) as pool:
                list(pool.map(of_rows, starts))
        return found

    def pull(self, multipliers: Floats) -> None:
        """Let primal steps follow these multipliers."""
        super().pull(multipliers)
        asked = self.row_weights
        if self.gradient is not None:  # then only what is asked of all rows, whatever their groups
            if not self._has_open_part:
                self.pulls = None
                return
            asked = torch.zeros(self.constraints.cells.shape, dtype=self.dtype)
            if self.open_weights is not None:
                asked += self.open_weights
            asked[:, self.of_errors] += self.price
        nothing = torch.zeros(1, dtype=self.dtype).expand(len(self.rows), self.constraints.n_classes)
        self.pulls = self.constraints.probability_weights(asked, nothing, self.y).numpy()

    # ------------------------------------------------------------------ primal

    @np.errstate(all="ignore")
    def step(self, t: int) -> None:
        """One step of Adam on a batch."""
        rows = next(self.batches)
        if self.at_once:
            self.slope[:] = self._released(rows, with_loss=True).numpy()
            if self.pulls is not None:
                released = self.slope.copy()
                self._public_slope(rows.numpy(), with_loss=False)
                self.slope += released
        else:
            if t in self.primal_at:
                self.held = None if self.weights is None else self._released(rows)
            self._public_slope(rows.numpy())
            if self.held is not None:
                self.slope += self.held.numpy()
        self.adam.step(self.slope)
        if t >= self.average.first:
            self.mean += (self.vector - self.mean) / np.float32(t - self.average.first + 1)

    def _released(self, rows: Tensor, *, with_loss: bool = False) -> Tensor:
        if self.from_sample:
            return super()._released(rows, with_loss=with_loss)
        with threadpool_limits(limits=self.n_threads):  # products of thousands of rows
            return super()._released(rows, with_loss=with_loss)

    def _public_slope(self, rows: Ints, *, with_loss: bool = True) -> None:
        """Write the slopes of all parameters, of the loss on a batch and of what is asked of its rows."""
        *entering, logits = self.layers.forward(self.rows.take(rows, axis=0))
        probabilities: Floats32 = torch.softmax(torch.from_numpy(logits), dim=1).numpy()
        signal: Floats32 = probabilities - self.truth.take(rows, axis=0) if with_loss else np.zeros_like(probabilities)
        if self.pulls is not None:
            pulls = self.pulls.take(rows, axis=0)
            signal += probabilities * (pulls - (probabilities * pulls) @ self.all_classes)
        signal /= len(rows)
        signals = self.layers.signals(entering, signal)
        for (of_weights, of_bias), a, b in zip(self.slopes_of, entering, signals, strict=True):
            np.matmul(b.T, a, out=of_weights)
            np.matmul(self.all_rows, b, out=of_bias)

    def finish(self) -> None:
        """Put the mean of the last iterates in the place of the last one."""
        if self.average.first < self.steps:
            self.vector[:] = self.mean
        self.module.eval()


def _one_thread() -> None:
    """torch asks once in each thread how many it may begin: that has to lie behind it."""
    torch.get_num_threads()
    threadpool_limits(limits=1, user_api="openmp")


class _Adam:
    """Adam on one vector, in place (Kingma & Ba 2015; weight decay enters the slope, as in torch)."""

    def __init__(self, optimizer: torch.optim.Optimizer, vector: Floats32) -> None:
        group = optimizer.param_groups[0]
        self.vector = vector
        self.lr, (self.beta1, self.beta2) = float(group["lr"]), group["betas"]
        self.eps, self.decay = float(group["eps"]), float(group["weight_decay"])
        self.first, self.second, self.t = np.zeros_like(vector), np.zeros_like(vector), 0

    def step(self, slope: Floats32) -> None:
        self.t += 1
        slope = np.where(np.abs(slope) > ROUNDING * np.abs(slope).max(), slope, np.float32(0.0))
        if self.decay:
            slope = slope + np.float32(self.decay) * self.vector
        self.first += np.float32(1 - self.beta1) * (slope - self.first)
        self.second += np.float32(1 - self.beta2) * (np.square(slope) - self.second)
        room = np.sqrt(self.second)
        room *= np.float32(1 / np.sqrt(1 - self.beta2**self.t))
        room += np.float32(self.eps)
        np.divide(self.first, room, out=room)
        room *= np.float32(self.lr / (1 - self.beta1**self.t))
        self.vector -= room
