"""Two private fair learners restated from their papers, as rivals in the arena: RaCO-DP and DP-FERMI.

Neither has a package that can be installed beside this one, so the boxes of their papers are written out here, with two
differences that flatter them. Their noise is Gaussian throughout and accounted for as one Gaussian of each Poisson
batch, which costs less than Laplace noise beside Gaussian noise. What DP-FERMI takes for public, how large the groups
are, is told to it exactly. And one that does not: DP-FERMI protects the group alone in its paper; here it protects
records, as all others do, so the gradient of the loss is clipped and gets noise as well.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from _arena_task import DELTA, Answer, Task, Unit, answer

#: Learning rate of the network, and of the multipliers, and how sharp the softmax of the rates is; batches of 512,
#: 10 epochs, clipping at 1, as for Opacus.
RACO = ((2.0, 1.0, 1.0), (2.0, 1.0, 3.0), (0.5, 1.0, 3.0))
#: Learning rate of the network, and of the adversary W.
FERMI = ((2.0, 0.1), (0.5, 0.1))
#: Weights of DP-FERMI's penalty.
FERMI_WEIGHTS = (0.5, 1.0, 2.5, 5.0)
BATCH, EPOCHS, CLIP = 512, 10, 1.0
#: Part of the squared cost of a step that pays for the histogram, or for the gradient of W.
SECOND_SHARE = 0.1
#: No multiplier grows beyond this, and no entry of W.
LARGEST = 5.0
#: Bound of a row's gradient of W.
CLIP_W = 4.0


class Rows:
    """Private rows as tensors, and which cell of the constraint each of them is in.

    Parameters
    ----------
    task : Task
    """

    def __init__(self, task: Task) -> None:
        import torch

        table = task.split.X
        y, s = task.labels(table), task.groups(table)
        self.X = torch.tensor(np.asarray(task.features(table))).float()
        self.y = torch.tensor(y)
        self.n_groups = int(max(s.max(), task.test[2].max())) + 1
        #: Demographic parity compares all rows, equalized odds those of one label.
        self.conditions = 1 if task.constraint == "demographic_parity" else 2
        self.s = torch.tensor(s)
        self.condition = torch.tensor(y if self.conditions == 2 else np.zeros_like(y))
        self.rate = min(1.0, BATCH / len(y))
        self.steps = math.ceil(EPOCHS / self.rate)

    @property
    def batch(self) -> float:
        """Expected number of rows in a batch."""
        return self.rate * len(self.y)

    def shares(self) -> Any:
        """Shares of the groups under each condition, exact."""
        import torch

        counts = torch.zeros(self.conditions, self.n_groups)
        counts.index_put_((self.condition, self.s), torch.ones(len(self.y)), accumulate=True)
        return (counts / counts.sum(1, keepdim=True)).clamp(min=1e-3)


def multiplier(rows: Rows, epsilon: float) -> tuple[float, float]:
    """Noise multipliers of the gradients and of the second release of a batch, for both together."""
    from opacus.accountants.utils import get_noise_multiplier

    both = get_noise_multiplier(
        target_epsilon=epsilon, target_delta=DELTA, sample_rate=rows.rate, steps=rows.steps, accountant="prv"
    )
    return both / math.sqrt(1 - SECOND_SHARE), both / math.sqrt(SECOND_SHARE)


def network(n_features: int) -> Any:
    """The network that Opacus has in the arena, with a gradient for each row."""
    import torch
    from opacus import GradSampleModule

    layers = torch.nn.Sequential(torch.nn.Linear(n_features, 64), torch.nn.Tanh(), torch.nn.Linear(64, 2))
    return GradSampleModule(layers, loss_reduction="sum")


def noisy_step(net: Any, losses: Any, rows: Rows, rate: float, noise: float) -> None:
    """Clip the gradient of each row's loss, add up, add noise, take a step."""
    import torch

    net.zero_grad(set_to_none=True)
    losses.sum().backward()
    gradients = [p.grad_sample for p in net.parameters()]
    norms = torch.stack([g.flatten(1).norm(dim=1) for g in gradients]).norm(dim=0)
    scale = (CLIP / norms.clamp(min=1e-12)).clamp(max=1.0)
    with torch.no_grad():
        for weights, g in zip(net.parameters(), gradients, strict=True):
            total = torch.einsum("i,i...->...", scale, g) + noise * CLIP * torch.randn_like(weights)
            weights -= rate / rows.batch * total
            weights.grad_sample = None


def raco_dp(rows: Rows, epsilon: float, bound: float, rates: tuple[float, ...]) -> Any:
    """Descent on the weights, ascent on one multiplier a side of each constraint, from one noisy histogram a batch.

    Yaghini, Cebere, Menart, Bellet and Papernot (ICLR 2026), arXiv 2505.22703.
    """
    import torch

    net = network(rows.X.shape[1])
    noise, noise_of_counts = multiplier(rows, epsilon)
    duals = torch.zeros(2, rows.conditions, rows.n_groups)
    for _ in range(rows.steps):
        batch = torch.nonzero(torch.rand(len(rows.y)) < rows.rate)[:, 0]
        if not len(batch):
            continue
        logits = net(rows.X[batch])
        soft = torch.softmax(rates[2] * logits, dim=1)
        where = (rows.condition[batch], rows.s[batch])
        counts = torch.zeros(rows.conditions, rows.n_groups, 2)
        counts.index_put_(where, soft.detach(), accumulate=True)  # a row adds one in all: sensitivity 1
        counts += noise_of_counts * torch.randn_like(counts)
        sizes = counts.sum(2).clamp(min=max(1.0, 0.01 * rows.batch))
        everybody = counts.sum(1)
        over = counts[:, :, 1] / sizes - (everybody[:, 1] / everybody.sum(1).clamp(min=1.0))[:, None]
        pull = duals[0] - duals[1]
        weight = pull / sizes - pull.sum(1, keepdim=True) / sizes.sum(1, keepdim=True)
        losses = torch.nn.functional.cross_entropy(logits, rows.y[batch], reduction="none")
        noisy_step(net, losses + rows.batch * weight[where] * soft[:, 1], rows, rates[0], noise)
        duals = (duals + rates[1] * (torch.stack([over, -over]) - bound / 2)).clamp(0.0, LARGEST)
    return net


def dp_fermi(rows: Rows, epsilon: float, weight: float, rates: tuple[float, float]) -> Any:
    """Descent on the weights, ascent on the matrix W that estimates how much predictions tell about groups.

    Lowy, Gupta and Razaviyayn (ICLR 2023), arXiv 2210.08781, algorithm 1.
    """
    import torch

    net = network(rows.X.shape[1])
    noise, noise_of_w = multiplier(rows, epsilon)
    roots = rows.shares().sqrt()
    W = torch.zeros(rows.conditions, rows.n_groups, 2)
    for _ in range(rows.steps):
        batch = torch.nonzero(torch.rand(len(rows.y)) < rows.rate)[:, 0]
        if not len(batch):
            continue
        condition, s = rows.condition[batch], rows.s[batch]
        logits = net(rows.X[batch])
        soft = torch.softmax(logits, dim=1)
        mine = W[condition]
        root = roots[condition, s]
        told = -(mine.square().sum(1) * soft).sum(1) + 2 * (mine[torch.arange(len(s)), s] * soft).sum(1) / root
        losses = torch.nn.functional.cross_entropy(logits, rows.y[batch], reduction="none")
        noisy_step(net, losses + weight * told, rows, rates[0], noise)
        if weight:
            rising = -2 * mine * soft.detach()[:, None, :]
            rising[torch.arange(len(s)), s] += 2 * soft.detach() / root[:, None]
            rising *= (CLIP_W / rising.flatten(1).norm(dim=1).clamp(min=1e-12)).clamp(max=1.0)[:, None, None]
            total = torch.zeros_like(W).index_add_(0, condition, rising)
            total += noise_of_w * CLIP_W * torch.randn_like(W)
            W = (W + rates[1] * total / rows.batch).clamp(-LARGEST, LARGEST)
    return net


def restated(task: Task, name: str, learn: Callable[..., Any], knobs: Any, settings: Any) -> Iterator[Answer]:
    """A training for each knob and setting; each gets the whole ε, as each training of ours does."""
    import torch

    rows = Rows(task)
    X_test = torch.tensor(np.asarray(task.test[0])).float()
    for rates in settings[:1] if task.quick else settings:
        for knob in knobs[:1] if task.quick else knobs:
            with torch.random.fork_rng():
                torch.manual_seed(task.seed)
                net = learn(rows, task.epsilon, knob, rates)
            with torch.no_grad():
                scores = torch.softmax(net(X_test).double(), dim=1)[:, 1].numpy()
            yield answer(
                task, name, knob, task.epsilon, (scores >= 0.5).astype(int), scores=scores,
                setting="learning rates " + ", ".join(f"{rate:g}" for rate in rates),
            )  # fmt: skip


UNITS = (
    Unit("RaCO-DP", "glue", "none", lambda task: restated(task, "RaCO-DP", raco_dp, task.gaps, RACO)),
    Unit("DP-FERMI", "glue", "none", lambda task: restated(task, "DP-FERMI", dp_fermi, FERMI_WEIGHTS, FERMI)),
)
