"""Differences between groups of public rows as a penalty, of labels and amounts, and how a network says an amount."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from itertools import cycle
from typing import Any, Self

import numpy as np
import torch
from threadpoolctl import threadpool_limits
from torch import Tensor, nn

from skfairdp._networks._nets import ConstantModule, is_constant
from skfairdp._networks._process import own_generator
from skfairdp._networks._shorthands import MLP
from skfairdp._typing import Floats, Ints

Keep = Callable[[Ints], bool]


def group_contrasts(groups: Tensor, n_groups: int, dtype: torch.dtype) -> Tensor:
    """Weights of shape (n_compared, n_rows) that take the mean of a group minus the mean of all others.
    One line for each group that has rows and does not have them all."""
    member = torch.nn.functional.one_hot(groups, n_groups).to(dtype).T
    size = member.sum(1, keepdim=True)
    compared = ((size > 0) & (size < len(groups)))[:, 0]
    member, size = member[compared], size[compared]
    return member / size - (1 - member) / (len(groups) - size)


def disparity_of_contrasts(logits: Tensor, contrasts: Tensor, *, temperature: float, maximum: str) -> Tensor:
    """Largest disparity of predictions softened to ``softmax(logits / temperature)``, ``max_k max_z { P(k | z) - P(k |
    others) }``: DPFR of FairDP-SGD (paper, equation 1). It tends to the hard gap as the temperature goes to 0."""
    disparity = (contrasts @ _soft_predictions(logits, temperature)).flatten()
    if len(disparity) == 0:
        return logits.sum() * 0.0
    return disparity.max() if maximum == "hard" else torch.softmax(disparity / temperature, dim=0) @ disparity


@torch.no_grad()
def disparity_and_slope(
    logits: Tensor, contrasts: Tensor, *, temperature: float, maximum: str, scale: float = 1.0
) -> tuple[Tensor, Tensor]:
    """:func:`disparity_of_contrasts` and ``scale`` times its derivative by the logits, in closed form.
    These tensors are small, so that automatic differentiation would spend most of its time on bookkeeping."""
    predictions = _soft_predictions(logits, temperature)
    disparity = contrasts @ predictions
    if disparity.numel() == 0:
        return logits.new_zeros(()), torch.zeros_like(logits)
    if maximum == "hard":
        group, k = divmod(int(disparity.argmax()), disparity.shape[1])
        pull = contrasts[group] * (predictions[:, k] * (scale / temperature))
        slope = predictions * -pull[:, None]
        slope[:, k] += pull
        return disparity[group, k], slope
    weight = torch.softmax((disparity / temperature).flatten(), dim=0).view_as(disparity)
    value = (weight * disparity).sum()
    by_disparity = weight * (1 + (disparity - value) / temperature)
    by_prediction = contrasts.T @ by_disparity
    mean = (predictions * by_prediction).sum(1, keepdim=True)
    return value, predictions * (by_prediction - mean) * (scale / temperature)


def _soft_predictions(logits: Tensor, temperature: float) -> Tensor:
    if temperature == 1:
        return torch.softmax(logits, dim=1)
    # the largest logit goes first, so that no temperature overflows
    return torch.softmax((logits - logits.detach().amax(1, keepdim=True)) / temperature, dim=1)


@dataclass(frozen=True)
class ParityPenalty:
    """Weight and public rows of the demographic-parity term."""

    lam: float
    X: Tensor
    groups: Tensor
    n_groups: int
    temperature: float
    maximum: str
    batch_size: int | None = None
    seed: int = 0
    per_sample: bool = False  # added to the gradient of every private row before clipping, not to the released sum

    @classmethod
    def of_rows(cls, X: Floats, groups: Ints, n_groups: int, lam: float, temperature: float) -> Self:
        """The term on all of these rows, in double precision, with a soft maximum."""
        rows, codes = torch.from_numpy(np.array(X)), torch.from_numpy(np.array(groups))
        return cls(float(lam), rows, codes, n_groups, float(temperature), "soft")

    def of(self, module: nn.Module) -> Tensor:
        """The weighted penalty at the module's present parameters, on the next batch."""
        X, contrasts = next(self._turns)
        how: dict[str, Any] = {"temperature": self.temperature, "maximum": self.maximum}
        return self.lam * disparity_of_contrasts(module(X), contrasts, **how)

    def gradients(self, module: nn.Module) -> dict[str, Tensor]:
        """Gradient of :meth:`of`, by the name of the trainable parameter; those it does not reach are left out."""
        X, contrasts = next(self._turns)
        logits = module(X)
        how: dict[str, Any] = {"temperature": self.temperature, "maximum": self.maximum, "scale": self.lam}
        _, slope = disparity_and_slope(logits, contrasts, **how)
        named = {name: p for name, p in module.named_parameters() if p.requires_grad}
        found = torch.autograd.grad(logits, list(named.values()), grad_outputs=slope, allow_unused=True)
        return {name: g for name, g in zip(named, found, strict=True) if g is not None}

    @cached_property
    def _turns(self) -> Iterator[tuple[Tensor, Tensor]]:
        return cycle(self._batches())

    def _batches(self) -> list[tuple[Tensor, Tensor]]:
        n = len(self.X)
        if self.batch_size is None or self.batch_size >= n:
            return [(self.X, group_contrasts(self.groups, self.n_groups, self.X.dtype))]
        groups = self.groups.cpu()
        order = torch.randperm(n, generator=torch.Generator().manual_seed(self.seed))
        place = torch.empty(n)
        for code in range(self.n_groups):  # spread the rows of each group evenly over [0, 1)
            mine = order[groups[order] == code]
            place[mine] = (torch.arange(len(mine)) + 0.5) / max(len(mine), 1)
        parts = torch.argsort(place, stable=True).tensor_split(max(1, round(n / self.batch_size)))
        X, device = self.X, self.X.device
        return [(X[r.to(device)], group_contrasts(groups[r], self.n_groups, X.dtype).to(device)) for r in parts]


# ---- a student with parity in its loss --------------------------------------------------------------------------
def fit_with_parity(
    X: Floats,
    targets: Floats,
    parity: ParityPenalty | None,
    *,
    alpha: float,
    hidden: tuple[int, ...] = (),
    max_iter: int = 300,
    seed: int = 0,
) -> list[tuple[Floats, Floats]]:
    """Minimise cross-entropy + λ · DPFR + L2 by L-BFGS on all rows at once. Nothing here is private.
    The loss is linear in its targets, which may be noisy shares outside [0, 1]."""
    # doubles: the line search compares losses that differ in few digits
    with own_generator(seed):
        module = MLP(X.shape[1], targets.shape[1], hidden).double()
    rows, wanted = torch.from_numpy(np.array(X)), torch.from_numpy(np.array(targets))
    layers = [layer for layer in module.modules() if isinstance(layer, nn.Linear)]
    how: dict[str, Any] = {"tolerance_grad": 1e-6, "tolerance_change": 1e-10, "line_search_fn": "strong_wolfe"}
    optimizer = torch.optim.LBFGS(module.parameters(), max_iter=max_iter, **how)

    def loss() -> Tensor:
        scores = module(rows)
        value = (scores.logsumexp(1) - (wanted * scores).sum(1)).mean()
        for layer in layers:
            # a little on the biases keeps them finite when noise drives all shares past 0 or 1
            value = value + alpha / (2 * len(rows)) * (layer.weight**2).sum() + 5e-7 * (layer.bias**2).sum()
        return value if parity is None else value + parity.of(module)

    def closure() -> Tensor:
        optimizer.zero_grad()
        value = loss()
        value.backward()
        return value

    optimizer.step(closure)
    return [(layer.weight.detach().numpy().T.copy(), layer.bias.detach().numpy().copy()) for layer in layers]


# ---- a trained network, tuned on public rows ---------------------------------------------------------------------
_BATCH = 8192
_SMALL = 5e7

#: Weights of the parity term, in the order in which the training passes through them. From the first, which hardly
#: moves a network, to the last, which leaves little of the gap: the iterates on the way are the trade-off.
_WEIGHTS = np.geomspace(0.05, 10.0, 10)


def rows_read_by(module: nn.Module, predict: Callable[[], Any]) -> Tensor:
    """Return the rows that a module reads during a call, whatever its owner does to them first."""
    batches: list[Any] = []
    handle = module.register_forward_pre_hook(lambda _, arguments: batches.append(arguments))
    try:
        predict()
    finally:
        handle.remove()
    if not batches or any(len(batch) != 1 or not isinstance(batch[0], Tensor) for batch in batches):
        raise ValueError("The network is not called with one tensor of rows, so it cannot be fine-tuned.")
    return torch.cat([batch[0].detach() for batch in batches])


def fine_tune_for_parity(
    module: nn.Module, X: Tensor, groups: Ints, n_groups: int, keep: Keep, *, steps: int, lr: float, temperature: float
) -> nn.Module | None:
    """A copy of the module at its best iterate, None where none is kept: Adam on ``KL(softmax(before) || softmax(now))
    + weight * DPFR`` over all rows, in evaluation mode, with a weight that rises in ten equal parts."""
    if is_constant(module):
        return None  # it has no gap, and nothing to move
    tuned = deepcopy(module).eval()
    parameters = [p for p in tuned.parameters() if p.requires_grad]
    if not parameters:
        raise ValueError("The network has no trainable parameter. Set requires_grad of those to fine-tune.")
    small = len(X) * sum(p.numel() for p in parameters) < _SMALL
    # Threads do not pay for products this small; on a busy machine their waiting took most of the time.
    optimizer, batches = torch.optim.Adam(parameters, lr=lr), X.split(_BATCH)
    before: Tensor | None = None
    best: dict[str, Tensor] | None = None
    with threadpool_limits(limits=1 if small else None):
        for t in range(steps + 1):
            with torch.no_grad():
                logits = torch.cat([tuned(batch) for batch in batches])
            if before is None:
                before = torch.softmax(logits, dim=1)
                if logits.shape[1] > 1:  # by the median lead of the likeliest class
                    temperature *= float(logits.topk(2, dim=1).values.diff(dim=1).neg().median()) or 1.0
                contrasts = group_contrasts(torch.from_numpy(groups).to(logits.device), n_groups, logits.dtype)
            elif keep(logits.argmax(1).cpu().numpy()):
                best = {name: value.clone() for name, value in tuned.state_dict().items()}
            if t == steps:
                break
            weight = float(_WEIGHTS[t * len(_WEIGHTS) // steps])
            _, slope = disparity_and_slope(logits, contrasts, temperature=temperature, maximum="soft")
            slope = weight * slope + (torch.softmax(logits, dim=1) - before) / len(X)
            # A second forward pass per batch keeps the memory of a step independent of the number of rows.
            optimizer.zero_grad(set_to_none=True)
            for batch, part in zip(batches, slope.split(_BATCH), strict=True):
                torch.autograd.backward(tuned(batch), part)
            optimizer.step()
    if best is None:
        return None
    tuned.load_state_dict(best)
    tuned.zero_grad(set_to_none=True)
    return tuned


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
        is_rate = self.loss == "poisson"
        amounts = self.bounds[1] * torch.sigmoid(outputs) if is_rate else self.center + self.spread * outputs
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
    """A price on differences between a group's mean prediction on public rows and all others', in spreads of amounts,
    of λ at most. It follows each difference, step by step, so that it settles where that is gone."""

    scale: AmountScale | Any = None
    prices: dict[str, Tensor] = field(default_factory=dict)

    def gradients(self, module: nn.Module) -> dict[str, Tensor]:
        """Its gradient, by the name of the trainable parameter; those it does not reach are left out."""
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
    if scale.loss == "poisson":
        output = torch.logit(torch.tensor(amount / scale.bounds[1]), eps=1e-7)
    else:
        output = (torch.tensor(amount) - scale.center) / scale.spread
    return predicting(ConstantModule(output.float().reshape(1)), scale)


def sums_by_group(statistics: Floats, groups: Ints, n_groups: int) -> Floats:
    """Sum lines of numbers in [-1, 1] by group. Exact: numbers are cut to a grid; lines with a NaN count nowhere."""
    known = np.isfinite(statistics).all(axis=1)
    cut = np.trunc(statistics[known] * 2**20) / 2**20
    return np.stack([np.bincount(groups[known], column, minlength=n_groups) for column in cut.T], axis=1)
