"""The primal steps of a plain perceptron on the CPU: forward, backward and Adam written out, on one vector.

A step of a small network is a few matrix products of some microseconds; automatic differentiation, and an optimizer
that walks over parameters, cost ten times that.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits
from torch import Tensor, nn

from skfairdp.fairness import FairnessConstraints
from skfairdp.lagrangian._by_hand import Floats, NumpyMLP
from skfairdp.lagrangian._dual_ascent import followed_scores
from skfairdp.lagrangian._one_network import ROUNDING, OneNetwork

_CHUNK = 1024  # rows whose activations stay in a cache


class NumpyMLPTraining(OneNetwork):
    """As :class:`OneNetwork` for what :meth:`fits`: the same steps, up to the last digits of their sums."""

    ROWS_OF_A_THREAD: ClassVar[int] = 16 * _CHUNK  # at a time

    @staticmethod
    def fits(module: nn.Module, X: Tensor, constraints: FairnessConstraints, optimizer: torch.optim.Optimizer) -> bool:
        """Whether it is linear layers with tanh or ReLU between them, on the CPU, and Adam as it usually is."""
        return (
            NumpyMLP.reads(module, X)
            and all(column.power == 1 for column in constraints.columns)
            and _Adam.is_usual(optimizer)
        )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.vector = np.concatenate([p.detach().numpy().ravel() for p in self.parameters])
        self.slope, self.mean = np.zeros_like(self.vector), np.zeros_like(self.vector)
        pieces = NumpyMLP.of(self.module).split(self.vector)
        for p, view in zip(self.parameters, (view for of_layer in pieces for view in of_layer), strict=True):
            p.data = torch.from_numpy(view)
        self.layers = NumpyMLP.of(self.module)
        self.slopes_of = self.layers.split(self.slope)
        self.adam = _Adam(self.optimizer, self.vector)
        self.rows: Floats = self.X.numpy()
        self.truth = np.eye(self.constraints.n_classes, dtype=np.float32)[self.y.numpy()]
        self.all_classes = np.ones((self.constraints.n_classes, 1), dtype=np.float32)
        self.all_rows = np.ones(min(self.training.batch_size, len(self.rows)), dtype=np.float32)
        self.pulls: Floats | None = None  # on the probability of each class, row by row
        self.n_threads = 1

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Keep libraries from cutting products of some microseconds into threads, which wait for each other longer.

        Threads of our own take thousands of rows each, where all rows are scored; as many as the libraries would.
        """
        self.n_threads = torch.get_num_threads()
        with threadpool_limits(limits=1):
            yield

    # ------------------------------------------------------------------ dual

    @np.errstate(all="ignore")  # torch says nothing of overflow either
    def scores(self) -> NDArray[np.float64]:
        """The scores h of the rows that multipliers follow."""
        logits = self._logits()
        predicted = torch.from_numpy(logits.argmax(1))
        probabilities = torch.from_numpy(logits).double()
        if self.training.violations == "probabilities":
            probabilities = torch.softmax(probabilities, dim=1)
        h = followed_scores(self.watched, probabilities, predicted, self.training.violations)
        return self._priced(np.nan_to_num(h.numpy()))

    def _logits(self) -> Floats:
        """Of all that are watched; the same bits by one thread and by several."""
        rows: Floats = self.watched_X.numpy()
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

    def pull(self, multipliers: NDArray[np.float64]) -> None:
        """Let primal steps follow these multipliers."""
        super().pull(multipliers)
        asked = self.row_weights if self.gradient is None else self._asked_of_all()
        if asked is None:
            self.pulls = None
            return
        nothing = torch.zeros(1, dtype=self.dtype).expand(len(self.rows), self.constraints.n_classes)
        self.pulls = self.constraints.probability_weights(asked, nothing, self.y).numpy()

    def _asked_of_all(self) -> Tensor | None:
        """Weight of each row's h in what is asked of all rows, whatever their groups."""
        if not self._has_open_part:
            return None
        found = torch.zeros(self.constraints.cells.shape, dtype=self.dtype)
        if self.open_weights is not None:
            found += self.open_weights
        found[:, self.of_errors] += self.price
        return found

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
        if t >= self.first_averaged:
            self.mean += (self.vector - self.mean) / np.float32(t - self.first_averaged + 1)

    def _released(self, rows: Tensor, *, with_loss: bool = False) -> Tensor:
        assert self.gradient is not None
        if self.gradient.from_sample:
            return super()._released(rows, with_loss=with_loss)
        with threadpool_limits(limits=self.n_threads):  # products of thousands of rows
            return super()._released(rows, with_loss=with_loss)

    def _public_slope(self, rows: NDArray[np.int64], *, with_loss: bool = True) -> None:
        """Write the slopes of all parameters, of the loss on a batch and of what is asked of its rows."""
        *entering, logits = self.layers.forward(self.rows.take(rows, axis=0))
        probabilities: Floats = torch.softmax(torch.from_numpy(logits), dim=1).numpy()
        signal: Floats = probabilities - self.truth.take(rows, axis=0) if with_loss else np.zeros_like(probabilities)
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
        if self.first_averaged < self.steps:
            self.vector[:] = self.mean
        self.module.eval()


def _one_thread() -> None:
    """torch asks once in each thread how many it may begin: that has to lie behind it."""
    torch.get_num_threads()
    threadpool_limits(limits=1, user_api="openmp")


class _Adam:
    """Adam on one vector, in place (Kingma & Ba 2015; weight decay enters the slope, as in torch)."""

    def __init__(self, optimizer: torch.optim.Optimizer, vector: Floats) -> None:
        group = optimizer.param_groups[0]
        self.vector = vector
        self.lr, (self.beta1, self.beta2) = float(group["lr"]), group["betas"]
        self.eps, self.decay = float(group["eps"]), float(group["weight_decay"])
        self.first, self.second, self.t = np.zeros_like(vector), np.zeros_like(vector), 0

    @staticmethod
    def is_usual(optimizer: torch.optim.Optimizer) -> bool:
        """Whether it is torch's Adam with no other options than step size, betas, eps and weight decay."""
        groups, usual = optimizer.param_groups, ("lr", "betas", "eps", "weight_decay", "params")
        plain = torch.optim.Adam([torch.zeros(1)]).param_groups[0]
        return (
            type(optimizer) is torch.optim.Adam
            and len(groups) == 1
            and all(groups[0].get(name) == value for name, value in plain.items() if name not in usual)
        )

    def step(self, slope: Floats) -> None:
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
