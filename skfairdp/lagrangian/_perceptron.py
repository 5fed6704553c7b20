"""Perceptrons under constraints: how they are trained, alone or as a stack, and what one of them is as plain arrays."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from skfairdp.fairness import FairnessConstraints, RateBound, RateParity
from skfairdp.lagrangian._schedule import default_lr, usual_batches, usual_passes

if TYPE_CHECKING:
    from skfairdp._networks import StackedMLP
    from skfairdp.lagrangian._dual_ascent import LagrangianTraining
    from skfairdp.lagrangian._stack import StackedParity

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Perceptron:
    """A network of linear layers with ReLU units between them."""

    weights: list[Array]
    biases: list[Array]

    @classmethod
    def of_stack(cls, params: list[Any]) -> "Perceptron":
        """The first network of the parameters that :func:`train_stacked_lagrangian` returns."""
        *hidden, last, bias = [p[0].numpy().astype(np.float64) for p in params]
        return cls([*hidden[::2], last.T], [*(b.ravel() for b in hidden[1::2]), bias.ravel()])

    def as_stack(self) -> list[Any]:
        """The parameters of a stack of this one network, to train on."""
        import torch

        found = []
        for w, b in zip(self.weights[:-1], self.biases[:-1], strict=True):
            found += [w[None], b[None, None]]
        found += [self.weights[-1].T[None], self.biases[-1][None, :, None]]
        return [torch.as_tensor(np.ascontiguousarray(p), dtype=torch.float32) for p in found]

    def as_module(self) -> Any:
        """The same as a torch module, in double precision."""
        import torch
        from torch import nn

        layers: list[nn.Module] = []
        for w, b in zip(self.weights, self.biases, strict=True):
            linear = nn.utils.skip_init(nn.Linear, *w.shape, dtype=torch.float64)
            with torch.no_grad():
                linear.weight.copy_(torch.from_numpy(np.array(w.T)))
                linear.bias.copy_(torch.from_numpy(np.array(b)))
            layers += [linear, nn.ReLU()]
        return nn.Sequential(*layers[:-1])

    def unscaled(self, center: Array, scale: Array) -> "Perceptron":
        """The same network for features that are not standardised."""
        first = self.weights[0] / scale[:, None]
        return Perceptron([first, *self.weights[1:]], [self.biases[0] - center @ first, *self.biases[1:]])

    def scores(self, X: Array) -> Array:
        """Scores of the classes, (n_rows, n_classes)."""
        layers = zip(self.weights, self.biases, strict=True)
        for w, b in itertools.islice(layers, len(self.weights) - 1):
            X = np.maximum(X @ w + b, 0.0)
        return X @ self.weights[-1] + self.biases[-1]

    def predict_proba(self, X: Array) -> Array:
        """Class probabilities, (n_rows, n_classes)."""
        found: Array = softmax(self.scores(X), axis=1)
        return found


def standard_scale(X: Array) -> tuple[Array, Array]:
    """Centre and scale of the columns; 1 where a column says nothing."""
    center, scale = X.mean(axis=0), X.std(axis=0)
    return center, np.where(scale > 0, scale, 1.0)


@dataclass(frozen=True)
class FairPerceptron:
    """How a perceptron is trained under constraints; what a :class:`LagrangianClassifier` with an "mlp" comes to."""

    hidden: tuple[int, ...]
    notions: tuple[str | RateParity | RateBound, ...]
    moments: int
    epochs: int | None
    batch_size: int | None
    device: Any
    settings: Mapping[str, Any] = field(default_factory=dict)
    verbose: int = 0

    def training(self, n_rows: int) -> "LagrangianTraining":
        """How networks of at most so many rows are trained."""
        from skfairdp.lagrangian._dual_ascent import LagrangianTraining

        batch, larger = usual_batches(self.epochs, self.batch_size, n_rows)
        a_pass, settings = -(-n_rows // batch), dict(self.settings)
        passes = math.ceil(usual_passes(a_pass, larger) if self.epochs is None else self.epochs)
        if settings.get("lr") is None:
            settings["lr"] = default_lr(passes * a_pass, larger)
        return LagrangianTraining(epochs=passes, batch_size=min(batch, max(1, n_rows)), **settings)

    def network(self, n_features: int, n_classes: int) -> "StackedMLP":
        """The architecture, for a stack of any length."""
        from skfairdp._networks import StackedMLP

        return StackedMLP(n_features, self.hidden, n_classes)

    def parity(
        self, y: NDArray[Any], n_classes: int, membership: Array | None, sizes: NDArray[np.int64]
    ) -> "StackedParity | None":
        """The constraints of a stack; None where there are none, no groups or no rows.
        ``membership`` are the weights of the rows in the groups, ``sizes`` the rows of each network."""
        from skfairdp.lagrangian._stack import StackedParity

        if membership is None or not self.notions or not len(y):
            return None
        constraints = FairnessConstraints(self.notions, np.asarray(y), n_classes, self.moments)
        return StackedParity(constraints, membership, sizes, self.device)

    def train_stack(
        self, net: "StackedMLP", X: Array, targets: NDArray[np.int64] | Array, membership: Array | None,
        sizes: NDArray[np.int64], seeds: Sequence[int], n_rows: int, **options: Any,
    ) -> tuple[list[Any], Array | None]:  # fmt: skip
        """Train networks of so many rows, as networks of at most ``n_rows`` are; parameters and multipliers."""
        from skfairdp.lagrangian._trainer import train_stacked_lagrangian

        parity = self.parity(targets, net.n_classes, membership, sizes)
        how = {"parity": parity, "device": self.device, **options}
        return train_stacked_lagrangian(net, X, targets, sizes, seeds, self.training(n_rows), **how)

    def train(
        self, X: Array, targets: NDArray[np.int64] | Array, n_classes: int, membership: Array | None, seed: int, *,
        start: Perceptron | None = None, anchor: float = 0.0,
    ) -> tuple[Perceptron, Array | None]:  # fmt: skip
        """Train one network."""
        net, n_rows = self.network(X.shape[1], n_classes), len(X)
        params, multipliers = self.train_stack(
            net, X, targets, membership, np.array([n_rows]), [seed], n_rows,
            start=None if start is None else start.as_stack(), anchor=anchor, verbose=self.verbose,
        )  # fmt: skip
        return Perceptron.of_stack(params), None if multipliers is None else multipliers[0]
