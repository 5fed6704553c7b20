"""Differentiable demographic disparity (DPFR), computed on public rows."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import cycle

import torch
from torch import Tensor, nn

__all__ = [
    "ParityPenalty",
    "demographic_disparity_penalty",
    "disparity_and_slope",
    "disparity_of_contrasts",
    "group_contrasts",
]


def demographic_disparity_penalty(
    logits: Tensor, groups: Tensor, n_groups: int, *, temperature: float = 0.01, maximum: str = "soft"
) -> Tensor:
    """Largest disparity of softened predictions: DPFR of FairDP-SGD (paper, equation 1).

    ``max_k max_z { P(k | z) - P(k | others) }`` with predictions softened to ``softmax(logits / temperature)``. It
    tends to the hard gap as the temperature goes to 0.

    Parameters
    ----------
    logits : Tensor of shape (n_rows, n_classes)
    groups : Tensor of int of shape (n_rows,)
        Codes 0..n_groups-1. A group without rows, or one that has them all, contributes no disparity.
    n_groups : int
    temperature : float, default=0.01
        Of the predictions and, with ``maximum="soft"``, of the maximum.
    maximum : {"soft", "hard"}, default="soft"
        "soft" averages the disparities with weights ``softmax(disparity / temperature)``.

    Returns
    -------
    Tensor of shape ()

    Examples
    --------
    >>> import torch
    >>> from skfairdp._networks import demographic_disparity_penalty
    >>> logits = torch.tensor([[5.0, 0.0], [5.0, 0.0], [0.0, 5.0], [5.0, 0.0]])
    >>> float(demographic_disparity_penalty(logits, torch.tensor([0, 0, 1, 1]), 2, maximum="hard"))
    0.5
    """
    contrasts = group_contrasts(groups, n_groups, logits.dtype)
    return disparity_of_contrasts(logits, contrasts, temperature=temperature, maximum=maximum)


def group_contrasts(groups: Tensor, n_groups: int, dtype: torch.dtype) -> Tensor:
    """Weights of shape (n_compared, n_rows) that take the mean of a group minus the mean of all others.

    One line for each group that has rows and does not have them all.
    """
    member = torch.nn.functional.one_hot(groups, n_groups).to(dtype).T
    size = member.sum(1, keepdim=True)
    compared = ((size > 0) & (size < len(groups)))[:, 0]
    member, size = member[compared], size[compared]
    return member / size - (1 - member) / (len(groups) - size)


def disparity_of_contrasts(logits: Tensor, contrasts: Tensor, *, temperature: float, maximum: str) -> Tensor:
    """:func:`demographic_disparity_penalty` for contrasts made once."""
    disparity = (contrasts @ _soft_predictions(logits, temperature)).flatten()
    if len(disparity) == 0:
        return logits.sum() * 0.0
    if maximum == "hard":
        return disparity.max()
    return torch.softmax(disparity / temperature, dim=0) @ disparity


@torch.no_grad()
def disparity_and_slope(
    logits: Tensor, contrasts: Tensor, *, temperature: float, maximum: str, scale: float = 1.0
) -> tuple[Tensor, Tensor]:
    """:func:`disparity_of_contrasts` and ``scale`` times its derivative by the logits, in closed form.

    These tensors are small, so that automatic differentiation would spend most of its time on bookkeeping.

    Returns
    -------
    value : Tensor of shape ()
    slope : Tensor of shape (n_rows, n_classes)
    """
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
    """Weight and public rows of the demographic-parity term.

    Parameters
    ----------
    lam : float
    X : Tensor of shape (n_public, ...)
    groups : Tensor of int of shape (n_public,)
    n_groups : int
    temperature : float
    maximum : {"soft", "hard"}
    batch_size : int or None, default=None
        Evaluate it on about so many rows a step: the public rows are dealt once into batches that hold every group in
        its share, and the batches take turns. None takes all rows.
    seed : int, default=0
        Public randomness of the dealing.
    per_sample : bool, default=False
        Add its gradient to that of every private row, inside the clipping (Algorithm 6 as printed).
    """

    lam: float
    X: Tensor
    groups: Tensor
    n_groups: int
    temperature: float
    maximum: str
    batch_size: int | None = None
    seed: int = 0
    per_sample: bool = False

    def of(self, module: nn.Module) -> Tensor:
        """The weighted penalty at the module's present parameters, on the next batch."""
        X, contrasts = next(self._turns)
        return self.lam * disparity_of_contrasts(
            module(X), contrasts, temperature=self.temperature, maximum=self.maximum
        )

    def gradients(self, module: nn.Module) -> dict[str, Tensor]:
        """Gradient of :meth:`of`, by the name of the trainable parameter; those it does not reach are left out."""
        X, contrasts = next(self._turns)
        logits = module(X)
        _, slope = disparity_and_slope(
            logits, contrasts, temperature=self.temperature, maximum=self.maximum, scale=self.lam
        )
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
        return [
            (
                self.X[rows.to(self.X.device)],
                group_contrasts(groups[rows], self.n_groups, self.X.dtype).to(self.X.device),
            )
            for rows in parts
        ]
