"""Training of many independent networks at once: batches, Adam and prediction over stacked parameters.

Axis 0 of every parameter counts the networks. No operation mixes two networks: each step multiplies, sums and
updates along the other axes only. Which rows a network sees and in which order depends on its own seed and its
own number of rows, and the shapes of a step depend on public settings only, so that a network comes out the same,
bit for bit, whatever rows the others hold.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.types import Device

from skfairdp._networks._layers import StackedModule
from skfairdp._networks._mlp import StackedMLP
from skfairdp._networks._process import seconds_of_steps
from skfairdp._typing import Bools, Floats, Ints, Reals
from skfairdp._utils import progress_bar

# Floats of one intermediate activation during prediction (8 MiB in float32, about a cache), and the rows below
# which the calls themselves would cost more than the arithmetic.
_ACTIVATION_FLOATS = 2**21
_LEAST_ROWS = 256


#: Architectures that are trained and used in stacks.
StackedNet = StackedMLP | StackedModule


def batch_stream(sizes: Ints, seeds: Sequence[int], *, batch_size: int, epochs: int) -> Iterator[tuple[Any, ...]]:
    """Yield the minibatches of many networks, step by step, in an order shuffled every epoch from each one's own seed.
    All are ``batch_size`` wide: where rows are fewer the rest has weight zero. Who has fewer rows idles at the end."""
    per_epoch = -(-sizes // batch_size)
    total = per_epoch * epochs
    if not total.any():
        return
    first = np.cumsum(sizes) - sizes
    rngs = [np.random.default_rng(seed) for seed in seeds]
    networks = np.arange(len(sizes))
    shape = (len(sizes), int(per_epoch.max()), batch_size)
    real = np.arange(shape[1] * batch_size).reshape(shape[1:]) < sizes[:, None, None]
    weight = (real / np.maximum(real.sum(axis=2, keepdims=True), 1)).astype(np.float32)
    # An empty last network would point one past the end; weight zero makes the row it borrows irrelevant.
    order = np.tile(np.minimum(first, sizes.sum() - 1)[:, None], (1, shape[1] * batch_size))
    batches = order.reshape(shape)
    for step in range(total.max()):
        position = step % np.maximum(per_epoch, 1)
        for k in np.flatnonzero((position == 0) & (step < total)):
            order[k, : sizes[k]] = first[k] + rngs[k].permutation(sizes[k])
        yield batches[networks, position], weight[networks, position], np.flatnonzero(total == step + 1)


def one_vector(parts: list[Tensor]) -> tuple[Tensor, list[Tensor], list[Tensor]]:
    """One long vector for the optimizer, with a gradient, and the views of both that the networks see."""
    vector = torch.cat([p.ravel() for p in parts])
    vector.grad = torch.zeros_like(vector)
    lengths = [p.numel() for p in parts]
    params, gradients = (
        [part.view_as(p) for part, p in zip(v.split(lengths), parts, strict=True)] for v in (vector, vector.grad)
    )
    return vector, params, gradients


def train_stacked(
    net: StackedNet,
    X: Reals,
    y: Ints,
    sizes: Ints,
    seeds: Sequence[int],
    *,
    epochs: int = 30,
    batch_size: int = 32,
    lr: float = 1e-3,
    weight_decay: float = 0.0,
    device: Device = "cpu",
) -> list[Tensor]:
    """Train one network per entry of ``sizes`` with Adam, all of them in the same tensor operations.
    The work is ``n_networks`` times the steps of the largest network; sizes that differ much waste some of it."""
    result = [p.to(device) for p in net.initial(seeds)]
    if not sizes.any():
        return [p.cpu() for p in result]
    rows, codes = torch.as_tensor(X, device=device).to(result[0].dtype), torch.as_tensor(y, device=device)
    vector, params, gradients = one_vector(result)
    optimizer = torch.optim.Adam([vector], lr=lr, weight_decay=weight_decay, fused=True)
    steps = int((-(-sizes // batch_size)).max()) * epochs
    stream = batch_stream(sizes, seeds, batch_size=batch_size, epochs=epochs)
    seconds = seconds_of_steps(steps, batch_size * vector.numel())
    for index, weight, finished in progress_bar(stream, total=steps, desc="steps", verbose=0, seconds=seconds):
        flat = torch.as_tensor(index.ravel(), device=device)
        x = rows.index_select(0, flat).view(*index.shape, *rows.shape[1:])
        target = codes.index_select(0, flat).view(index.shape)
        net.backward(params, gradients, x, target, torch.as_tensor(weight, device=device).to(rows.dtype))
        optimizer.step()
        if finished.size:
            # From here on the others may need more steps, in which these only idle: their result is taken now.
            done = torch.as_tensor(finished, device=device)
            for kept, p in zip(result, params, strict=True):
                kept[done] = p[done]
    return [p.cpu() for p in result]


@torch.no_grad()
def predict_stacked(net: StackedNet, params: list[Tensor], X: Reals, allowed: Bools, *, device: Device = "cpu") -> Any:
    """Return each network's most likely class for each row."""
    out = np.empty((allowed.shape[0], X.shape[0]), dtype=np.int32)
    for start, scores in _scores(net, params, X, allowed, device):
        out[:, start : start + scores.shape[1]] = scores.argmax(dim=2).cpu().numpy()
    return out


@torch.no_grad()
def predict_stacked_proba(
    net: StackedNet, params: list[Tensor], X: Reals, allowed: Bools, *, device: Device, step: float | None = None
) -> Floats:
    """Return the networks' class probabilities of each row, added up; rounded down to multiples of a ``step``."""
    out = np.empty((X.shape[0], allowed.shape[1]))
    for start, scores in _scores(net, params, X, allowed, device):
        shares = scores.double().softmax(dim=2)
        shares = shares if step is None else (shares / step).floor() * step
        out[start : start + scores.shape[1]] = shares.sum(dim=0).cpu().numpy()
    return out


def _scores(net: StackedNet, params: list[Tensor], X: Reals, allowed: Bools, device: Device) -> Iterator[Any]:
    """Scores (networks, some rows, classes) and the number of the first row; -inf where a class is not allowed."""
    params = [p.to(device) for p in params]
    forbidden = torch.as_tensor(~allowed, device=device)[:, None, :]
    chunk = max(_LEAST_ROWS, _ACTIVATION_FLOATS // (allowed.shape[0] * net.widest))
    for start in range(0, X.shape[0], chunk):
        x = torch.as_tensor(X[start : start + chunk], device=device).to(params[0].dtype)
        # A diverged network may score NaN; it must still answer one of its own classes.
        yield start, net.logits(params, x).nan_to_num(nan=0.0).masked_fill(forbidden, -torch.inf)
