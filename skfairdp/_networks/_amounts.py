"""What the one output of a network says of an amount: where amounts lie, how it is wrong, and how means differ."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from skfairdp._networks._nets import ConstantModule
from skfairdp._networks._parity import ParityPenalty

#: So many spreads from their centre predictions may go: of normal amounts, further than one in ten thousand.
REACH = 3.0
#: How far a price moves for a difference of one spread.
FOLLOWS = 0.05


class AmountScale(nn.Module):
    """The last layer of a network that predicts amounts: from its output to an amount within public bounds.
    Until :meth:`settle` says where amounts lie, they may lie anywhere between the bounds."""

    predicts_rows_alone = True
    center: Tensor
    spread: Tensor
    low: Tensor
    high: Tensor

    def __init__(self, loss: str, low: float, high: float) -> None:
        super().__init__()
        self.loss, self.bounds = loss, (low, high)
        for name, value in (("center", (low + high) / 2), ("spread", (high - low) / 2), ("low", low), ("high", high)):
            self.register_buffer(name, torch.tensor(value, dtype=torch.float64))

    def settle(self, center: float, spread: float) -> None:
        """Say where amounts lie, by what was released: predictions keep within REACH spreads of the centre."""
        low, high = self.bounds
        within = max(low, center - REACH * spread), min(high, center + REACH * spread)
        for buffer, value in zip(self.buffers(), (center, spread, *within), strict=True):
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
    """Row by row the loss, and what group means and group losses add to it.
    Targets have three columns: amount, group, exposure. The weights of groups are moved by what was released."""

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
    """A price on differences between a group's mean prediction on public rows and all others', of λ at most.

    The price of each difference follows it, step by step, so that it settles where the difference is gone. In units of
    the spread of amounts.
    """

    scale: AmountScale | None = None
    prices: dict[str, Tensor] = field(default_factory=dict)

    def gradients(self, module: nn.Module) -> dict[str, Tensor]:
        """Its gradient, by the name of the trainable parameter; those it does not reach are left out."""
        assert self.scale is not None
        X, contrasts = next(self._turns)
        apart = (contrasts @ (self.scale(module(X)) / self.scale.spread).to(contrasts.dtype))[:, 0]
        seen = apart.detach()
        paid = (self.prices.get("", torch.zeros_like(seen)) + FOLLOWS * seen).clamp(-self.lam, self.lam)
        self.prices[""] = paid
        named = {name: p for name, p in module.named_parameters() if p.requires_grad}
        price = (paid + 2 * FOLLOWS * seen).clamp(-self.lam, self.lam)
        found = torch.autograd.grad((price * apart).sum(), list(named.values()), allow_unused=True)
        return {name: g for name, g in zip(named, found, strict=True) if g is not None}


def predicting(module: nn.Module, scale: AmountScale) -> nn.Module:
    """Return the network whose last layer makes amounts of what it says."""
    return nn.Sequential(module, scale).eval()


def constant_amount(scale: AmountScale, amount: float) -> nn.Module:
    """Return a network that predicts the same amount for every row."""
    output = (torch.tensor(amount) - scale.center) / scale.spread
    return predicting(ConstantModule(output.float().reshape(1)), scale)


def sums_by_group(statistics: NDArray[np.float64], groups: NDArray[np.int64], n_groups: int) -> NDArray[np.float64]:
    """Sum lines of numbers in [-1, 1] by group. Exact: numbers are cut to a grid; lines with a NaN count nowhere."""
    known = np.isfinite(statistics).all(axis=1)
    cut = np.trunc(statistics[known] * 2**20) / 2**20
    return np.stack([np.bincount(groups[known], column, minlength=n_groups) for column in cut.T], axis=1)
