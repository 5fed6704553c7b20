"""What the one output of a network says of an amount: where amounts lie, how it is wrong, and how means differ."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from skfairdp._networks._nets import ConstantModule
from skfairdp._networks._parity import ParityPenalty

#: So many spreads from their centre predictions may go: of normal amounts, further than one in ten thousand.
REACH = 3.0


class AmountScale(nn.Module):
    """The last layer of a network that predicts amounts: from its output to an amount within public bounds.

    Until :meth:`settle` says where amounts lie, they may lie anywhere between the bounds.
    """

    predicts_rows_alone = True

    def __init__(self, loss: str, low: float, high: float) -> None:
        super().__init__()
        self.loss, self.bounds = loss, (low, high)
        for name, value in (("center", (low + high) / 2), ("spread", (high - low) / 2), ("low", low), ("high", high)):
            self.register_buffer(name, torch.tensor(value, dtype=torch.float64))

    def settle(self, center: float, half: float) -> None:
        """Say where amounts lie, by what was released: predictions keep within REACH halves of the centre."""
        low, high = self.bounds
        within = max(low, center - REACH * half), min(high, center + REACH * half)
        for buffer, value in ((self.center, center), (self.spread, half), (self.low, within[0]), (self.high, within[1])):
            buffer.fill_(value)

    def forward(self, outputs: Tensor) -> Tensor:
        """Amounts of the shape of the outputs; of a rate, for an exposure of 1."""
        outputs = outputs.double()
        if self.loss == "poisson":
            amounts = self.bounds[1] * torch.sigmoid(outputs)
        else:
            amounts = self.center + self.spread * outputs
        return torch.clamp(amounts, self.low, self.high)

    def losses(self, outputs: Tensor, amounts: Tensor, exposure: Tensor | None) -> Tensor:
        """How wrong outputs are, one number a row, in units of where amounts lie; of counts, less what is constant."""
        if self.loss == "poisson":
            sure = 1.0 if exposure is None else exposure.to(outputs.dtype)
            rate = self.bounds[1] * torch.sigmoid(outputs)
            return sure * rate - amounts.to(outputs.dtype) * nn.functional.logsigmoid(outputs)
        apart = outputs - ((amounts - self.center) / self.spread).to(outputs.dtype)
        return apart.abs() if self.loss == "absolute" else 0.5 * apart.square()


class AmountLoss:
    """Row by row the loss, and what group means and group losses add to it. Columns of targets: amount, group, exposure.

    The weights of groups are moved from outside, by what was released.
    """

    def __init__(self, scale: AmountScale, n_groups: int = 1) -> None:
        self.scale = scale
        self.of_means, self.of_losses = torch.zeros(n_groups), torch.zeros(n_groups)

    def __call__(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Losses of shape (n_rows,)."""
        said, group = outputs[:, 0], targets[:, 1].long()
        losses = self.scale.losses(said, targets[:, 0], targets[:, 2])
        of_means = self.of_means.to(said.device)[group].to(said.dtype)
        of_losses = self.of_losses.to(said.device)[group].to(said.dtype)
        means = (self.scale(said) / self.scale.spread).to(said.dtype)
        return (1 + of_losses) * losses + of_means * means

    def update(self, t: int, module: nn.Module, rows: Any, source: Any) -> None:
        """Release nothing."""


@dataclass(frozen=True)
class MeanPenalty(ParityPenalty):
    """The largest difference between the mean prediction of a group of public rows and that of all others."""

    scale: AmountScale | None = None

    def of(self, module: nn.Module) -> Tensor:
        """The weighted penalty at the module's present parameters, on the next batch."""
        assert self.scale is not None
        X, contrasts = next(self._turns)
        means = (self.scale(module(X)) / self.scale.spread).to(contrasts.dtype)
        return self.lam * (contrasts @ means).abs().max()

    def gradients(self, module: nn.Module) -> dict[str, Tensor]:
        """Gradient of :meth:`of`, by the name of the trainable parameter."""
        named = {name: p for name, p in module.named_parameters() if p.requires_grad}
        found = torch.autograd.grad(self.of(module), list(named.values()), allow_unused=True)
        return {name: g for name, g in zip(named, found, strict=True) if g is not None}


def predicting(module: nn.Module, scale: AmountScale) -> nn.Module:
    """Return the network whose last layer makes amounts of what it says."""
    return nn.Sequential(module, scale).eval()


def constant_amount(scale: AmountScale, amount: float) -> nn.Module:
    """Return a network that predicts the same amount for every row."""
    return predicting(ConstantModule(((amount - scale.center) / scale.spread).float().reshape(1)), scale)


def sums_by_group(statistics: NDArray[np.float64], groups: NDArray[np.int64], n_groups: int) -> NDArray[np.float64]:
    """Sum lines of numbers in [-1, 1] by group. Exact: numbers are cut to a grid; lines with a NaN count nowhere."""
    known = np.isfinite(statistics).all(axis=1)
    cut = np.trunc(statistics[known] * 2**20) / 2**20
    return np.stack([np.bincount(groups[known], column, minlength=n_groups) for column in cut.T], axis=1)
