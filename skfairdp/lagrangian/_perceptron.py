"""Perceptrons under constraints: for how long, in which batches they are trained, and one of them as plain arrays."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import softmax

from skfairdp._typing import Array, Floats, Ints
from skfairdp._usefulness import larger_batches
from skfairdp._utils._sklearn import Interval, StrOptions
from skfairdp.fairness import FairnessConstraints, RateBound, RateParity

if TYPE_CHECKING:
    from skfairdp._networks import Net, StackedMLP
    from skfairdp.lagrangian._dual_ascent import LagrangianTraining
    from skfairdp.lagrangian._stack import StackedParity


@dataclass(frozen=True)
class Perceptron:
    """A network of linear layers with ReLU units between them."""

    weights: list[Floats]
    biases: list[Floats]

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

    def unscaled(self, center: Floats, scale: Floats) -> "Perceptron":
        """The same network for features that are not standardised."""
        first = self.weights[0] / scale[:, None]
        return Perceptron([first, *self.weights[1:]], [self.biases[0] - center @ first, *self.biases[1:]])

    def predict_proba(self, X: Floats) -> Floats:
        """Class probabilities, (n_rows, n_classes)."""
        for w, b in zip(self.weights[:-1], self.biases[:-1], strict=True):
            X = np.maximum(X @ w + b, 0.0)
        return softmax(X @ self.weights[-1] + self.biases[-1], axis=1)


def standard_scale(X: Floats) -> tuple[Floats, Floats]:
    """Centre and scale of the columns; 1 where a column says nothing."""
    return X.mean(axis=0), np.where(X.max(axis=0) > X.min(axis=0), X.std(axis=0), 1.0)


def _widths(X: Floats) -> Floats:
    """What networks divide columns by. A flag has width 1: by its deviation one that few rows have would be far from
    all others, and networks learned these rows by heart. A column that says nothing has no part in what they answer."""
    low, high = X.min(axis=0), X.max(axis=0)
    is_flag = ((low == X) | (high == X)).all(axis=0)
    return np.where(high == low, np.inf, np.where(is_flag, high - low, 1.0))


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
        decay = {"weight_decay": DECAY / max(n_rows, 1)}
        settings["optimizer_options"] = decay | dict(settings.get("optimizer_options", {}))
        passes = math.ceil(usual_passes(a_pass, larger) if self.epochs is None else self.epochs)
        if settings.get("lr") is None:
            settings["lr"] = default_lr(passes * a_pass, larger)
        return LagrangianTraining(epochs=passes, batch_size=min(batch, max(1, n_rows)), **settings)

    def network(self, n_features: int, n_classes: int) -> "StackedMLP":
        """The architecture, for a stack of any length."""
        from skfairdp._networks import StackedMLP

        return StackedMLP(n_features, self.hidden, n_classes)

    def parity(self, y: Array, n_classes: int, membership: Floats | None, sizes: Ints) -> "StackedParity | None":
        """The constraints of a stack; None where there are none, no groups or no rows.
        ``membership`` are the weights of the rows in the groups, ``sizes`` the rows of each network."""
        from skfairdp.lagrangian._stack import StackedParity

        if membership is None or not self.notions or not len(y):
            return None
        constraints = FairnessConstraints(self.notions, np.asarray(y), n_classes, self.moments)
        return StackedParity(constraints, membership, sizes, self.device)

    def train_stack(
        self, net: "StackedMLP", X: Floats, targets: Ints | Floats, membership: Floats | None,
        sizes: Ints, seeds: Sequence[int], n_rows: int, **options: Any,
    ) -> tuple[list[Any], Floats | None]:  # fmt: skip
        """Train networks of so many rows, as networks of at most ``n_rows`` are; parameters and multipliers."""
        from skfairdp.lagrangian._trainer import train_stacked_lagrangian

        how = {"parity": self.parity(targets, net.n_classes, membership, sizes), "device": self.device, **options}
        return train_stacked_lagrangian(net, X, targets, sizes, seeds, self.training(n_rows), **how)

    def train(
        self, X: Floats, targets: Ints | Floats, n_classes: int, membership: Floats | None, seed: int, *,
        start: Perceptron | None = None, anchor: float = 0.0,
    ) -> tuple[Perceptron, Floats | None]:  # fmt: skip
        """Train one network."""
        net, n_rows, widths, center = self.network(X.shape[1], n_classes), len(X), _widths(X), np.zeros(X.shape[1])
        if start is not None:
            start = start.unscaled(center, 1 / np.where(np.isfinite(widths), widths, 1.0))
        params, multipliers = self.train_stack(
            net, X / widths, targets, membership, np.array([n_rows]), [seed], n_rows,
            start=None if start is None else start.as_stack(), anchor=anchor, verbose=self.verbose,
        )  # fmt: skip
        return Perceptron.of_stack(params).unscaled(center, widths), None if multipliers is None else multipliers[0]


_BATCH, _LEAST_BATCH = 256, 16
_ENOUGH_STEPS = 1000  # 25 for each move of the multipliers
_LR, _LARGEST_LR = 1e-3, 1e-2
#: Of weights, over the number of rows (1 is a standard normal prior): of ten public tables four with rare flags were
#: learned better, the others within .002 as without; with 10 two of twelve lost .01 of accuracy.
DECAY = 3.0
_REACH = 2.0  # how far a parameter can go


#: Passes over the rows by the usual batches, and steps where these take fewer. With half of both PF-LD's gap on a table
#: with a group of 3 % was 2.5 times as wide.
_EPOCHS, _LEAST_STEPS = 20, 2000
#: Parameters of how multipliers move and iterates are averaged, of every estimator that has them.
DUAL: dict[str, Any] = {
    "lam_max": [Interval(Real, 0, None, closed="left")],
    "dual_step": [Interval(Real, 0, None, closed="neither"), None],
    "dual_steps": [Interval(Integral, 1, None, closed="left")],
    "violations": [StrOptions({"predictions", "probabilities"})],
    "average_last": [Interval(Real, 0, 1, closed="both")],
}


def dual_settings(estimator: Any) -> dict[str, Any]:
    """The same, as :class:`LagrangianTraining` has them."""
    return {name: getattr(estimator, name) for name in DUAL}


#: Of a net, as :func:`as_net` reads it: what :func:`settled` chooses.
LEFT_OPEN: dict[str, Any] = {"lr": None, "batch_size": None, "max_epochs": None}


def usual_batches(epochs: float | None, batch_size: int | None, n_rows: int) -> tuple[int, float]:
    """Rows of a batch, and how many times the usual ones they are: fewer of few passes, so that there are steps enough,
    and more of many rows, where passes are left open as well."""
    if batch_size is not None:
        return batch_size, 1.0
    if epochs is None:
        larger = larger_batches(n_rows)
        return round(_BATCH * larger), larger
    return min(_BATCH, max(_LEAST_BATCH, math.floor(epochs * n_rows / _ENOUGH_STEPS))), 1.0


def usual_passes(steps_of_pass: float, larger: float = 1.0) -> float:
    """20, or as many fewer as batches are larger than usual; as many more as 2000 steps take."""
    return max(_EPOCHS / larger, _LEAST_STEPS / max(1.0, steps_of_pass))


def default_lr(steps: int, larger: float = 1.0) -> float:
    """Steps of Adam move a parameter by as much at most; all together by 2, and none by less than .001, more than .01.
    By batches that are larger than usual they are longer by the root of that: so much less noise has their slope."""
    return math.sqrt(larger) * min(_LARGEST_LR, max(_LR, _REACH / max(1, steps)))


def settled(net: "Net", n_rows: int) -> "Net":
    """The net with batches, passes and step size chosen, where it leaves them open."""
    batch, larger = usual_batches(net.max_epochs, net.batch_size, n_rows)
    a_pass = n_rows / min(batch, n_rows)
    epochs = usual_passes(a_pass, larger) if net.max_epochs is None else net.max_epochs
    lr = default_lr(round(epochs * a_pass), larger) if net.lr is None else net.lr
    return replace(net, batch_size=batch, max_epochs=epochs, lr=lr)
