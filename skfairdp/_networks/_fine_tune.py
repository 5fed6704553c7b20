"""Fine-tune a trained network on public rows: close to what it said before, and closer to demographic parity."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits
from torch import Tensor, nn

from skfairdp._networks._parity import disparity_and_slope, group_contrasts

__all__ = ["fine_tune_for_parity", "rows_read_by"]

_BATCH = 8192
_SMALL = 5e7

#: Weights of the parity term, in the order in which the training passes through them. From the first, which hardly
#: moves a network, to the last, which leaves little of the gap: the iterates on the way are the trade-off.
_WEIGHTS = np.geomspace(0.05, 10.0, 10)


def rows_read_by(module: nn.Module, predict: Callable[[], Any]) -> Tensor:
    """Return the rows that a module reads during a call, whatever its owner does to them first.

    Parameters
    ----------
    module : nn.Module
    predict : callable
        Makes the owner predict the rows in order, in one or several batches.

    Returns
    -------
    Tensor of shape (n_rows, ...)

    Raises
    ------
    ValueError
        The module was not called with one tensor of rows.
    """
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
    module: nn.Module,
    X: Tensor,
    groups: NDArray[np.int64],
    n_groups: int,
    keep: Callable[[NDArray[np.int64]], bool],
    *,
    steps: int,
    lr: float,
    temperature: float,
) -> nn.Module | None:
    """Return a copy of the module at its best iterate, or None where no iterate is kept.

    Minimises ``KL(softmax(before) || softmax(now)) + weight * DPFR`` over all rows by Adam, in evaluation mode (dropout
    off, statistics as they are), with a weight that rises in ten equal parts of the steps. There is no randomness.

    Parameters
    ----------
    module : nn.Module
        Maps rows to logits. It is not changed.
    X : Tensor of shape (n_rows, ...)
    groups : ndarray of int of shape (n_rows,)
    n_groups : int
    keep : callable
        Gets the predicted class codes of an iterate and says whether it is the best so far.
    steps : int
    lr : float
        Step size of Adam.
    temperature : float
        Softness of predictions and maximum in the parity term, see :func:`demographic_disparity_penalty`, in units of
        the median lead of the largest logit: networks differ by far in how large their logits are.

    Raises
    ------
    ValueError
        Nothing in the module can be trained.
    """
    tuned = deepcopy(module).eval()
    parameters = [p for p in tuned.parameters() if p.requires_grad]
    if not parameters:
        raise ValueError("The network has no trainable parameter. Set requires_grad of those to fine-tune.")
    small = len(X) * sum(p.numel() for p in parameters) < _SMALL
    # Threads do not pay for products this small; on a busy machine their waiting took most of the time.
    with threadpool_limits(limits=1 if small else None):
        return _fine_tune(tuned, parameters, X, groups, n_groups, keep, steps, lr, temperature)


def _fine_tune(
    tuned: nn.Module,
    parameters: list[nn.Parameter],
    X: Tensor,
    groups: NDArray[np.int64],
    n_groups: int,
    keep: Callable[[NDArray[np.int64]], bool],
    steps: int,
    lr: float,
    temperature: float,
) -> nn.Module | None:
    batches = X.split(_BATCH)
    optimizer = torch.optim.Adam(parameters, lr=lr)
    before: Tensor | None = None
    best: dict[str, Tensor] | None = None
    for t in range(steps + 1):
        with torch.no_grad():
            logits = torch.cat([tuned(batch) for batch in batches])
        if before is None:
            before = torch.softmax(logits, dim=1)
            temperature *= _median_lead(logits)
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


def _median_lead(logits: Tensor) -> float:
    """Median over rows of the largest logit minus the second; 1 where there is none."""
    if logits.shape[1] < 2:
        return 1.0
    two = logits.topk(2, dim=1).values
    return float((two[:, 0] - two[:, 1]).median()) or 1.0
