"""The primal steps of a stack of networks, each with multipliers of its own: by hand, as one tensor program."""

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.types import Device

from skfairdp._networks import StackedMLP, batch_stream, one_vector
from skfairdp._typing import Floats, Ints, Reals
from skfairdp.fairness import FairnessConstraints
from skfairdp.lagrangian._dual_ascent import ERROR_STEP, LagrangianTraining, followed_scores

# Floats of one hidden activation while violations are measured.
_ACTIVATION_FLOATS = 2**23


class StackedParity:
    """Constraints of many networks: how far the groups of each violate them, and what multipliers ask of its rows.
    A segment is a cell of a network: the cells of the first network come first, then those of the second, and so on."""

    def __init__(
        self, constraints: FairnessConstraints, membership: Floats, sizes: Ints, device: Device = "cpu"
    ) -> None:
        self.constraints = constraints.of_labels(torch.as_tensor(np.array(constraints.y), device=device))
        self.membership = torch.as_tensor(np.array(membership), dtype=torch.float64, device=device)
        self.n_networks, self.rows_of = len(sizes), torch.as_tensor(sizes, device=device)
        self.network = torch.repeat_interleave(torch.arange(len(sizes), device=device), self.rows_of)
        self.index = self.network[:, None] * constraints.n_cells + self.constraints.cells
        self.n_segments = len(sizes) * constraints.n_cells
        self.counts, self.group_sizes = self._sizes()
        compared = torch.as_tensor(constraints.compared, dtype=torch.float64, device=device)
        self.compared = compared.repeat(len(sizes), 1)[:, :, None]
        self.of_errors = [c for c, column in enumerate(constraints.columns) if column.of_class is None]

    @cached_property
    def most_errors(self) -> Tensor:
        """The share of errors of who answers the most frequent class of a network's rows, (n_networks,)."""
        n_classes, codes = self.constraints.n_classes, self.network * self.constraints.n_classes + self.constraints.y
        of_classes = torch.bincount(codes, minlength=self.n_networks * n_classes).view(-1, n_classes)
        return 1.0 - of_classes.amax(1) / self.rows_of.clamp(min=1)

    @property
    def shares(self) -> Tensor:
        """Of the rows of a network, what each group has in each segment, (n_segments, n_constraints, n_groups)."""
        return self.group_sizes / self.rows_of.clamp(min=1).repeat_interleave(self.constraints.n_cells)[:, None, None]

    def errors(self, scores: Tensor) -> Tensor:
        """The share of errors of each network by the scores h, (n_networks,)."""
        total = torch.zeros(self.n_networks, dtype=torch.float64, device=scores.device)
        total.index_add_(0, self.network, scores[:, self.of_errors[0]].to(torch.float64))
        return total / self.rows_of.clamp(min=1)

    def _sums(self, values: Tensor, c: int) -> Tensor:
        """Sums over each network's cells of constraint c, shape (n_segments, ...)."""
        out = torch.zeros(self.n_segments, *values.shape[1:], dtype=torch.float64, device=values.device)
        return out.index_add_(0, self.index[:, c], values)

    def _sizes(self) -> tuple[Tensor, Tensor]:
        """Rows, and weight of each group, by segment: (n_segments, n_constraints[, n_groups])."""
        ones = torch.ones(len(self.network), dtype=torch.float64, device=self.network.device)
        # What no share of a person can be is noise; a group cannot be told from it below twice its size.
        noise = (self.membership - self.membership.clamp(0, 1)).square()
        counts, sizes = [], []
        for c in range(self.constraints.n_constraints):
            counts.append(self._sums(ones, c).clamp(min=1.0))
            least = (2 * self._sums(noise, c).sqrt()).clamp(min=1.0)
            sizes.append(torch.maximum(self._sums(self.membership, c), least))
        return torch.stack(counts, 1), torch.stack(sizes, 1)

    def violations(self, scores: Tensor) -> Tensor:
        """Mean of h in each group less that of all rows of its cell, (n_segments, n_constraints, n_groups).
        ``scores`` is (n_rows, n_constraints)."""
        values = scores.to(torch.float64)
        out = torch.empty_like(self.group_sizes)
        for c in range(self.constraints.n_constraints):
            centred = values[:, c] - (self._sums(values[:, c], c) / self.counts[:, c])[self.index[:, c]]
            out[:, c] = self._sums(self.membership * centred[:, None], c) / self.group_sizes[:, c]
        return out * self.compared

    def project_to_bounds(self, violations: Tensor, scores: Tensor) -> Tensor:
        """The nearest violations that bounds allow, of the same shape; see :class:`FairnessConstraints`."""
        columns = range(self.constraints.n_constraints)
        sums = torch.stack([self._sums(scores[:, c].to(torch.float64), c) for c in columns], 1)
        means = self.by_network((sums / self.counts)[:, :, None])[:, 0]
        found = self.constraints.project_to_bounds(self.by_network(violations).transpose(1, 0, 2, 3), means)
        by_segment = np.ascontiguousarray(found.transpose(1, 2, 3, 0)).reshape(violations.shape)
        return torch.from_numpy(by_segment).to(violations)

    def row_weights(self, multipliers: Tensor) -> Tensor:
        """Weight of each row's h in the loss of its network, (n_rows, n_constraints); centred in its cell, for
        multipliers ask for less than the others have, but where a rate itself has a bound. One of all rows has one
        multiplier."""
        per_row = torch.empty(self.index.shape, dtype=torch.float64, device=self.index.device)
        weights = multipliers / self.group_sizes
        rows = self.rows_of[self.network].to(torch.float64)
        for c, column in enumerate(self.constraints.columns):
            if column.is_overall:
                per_row[:, c] = (multipliers[:, c, 0] / self.counts[:, c])[self.index[:, c]] * rows
                continue
            mine = (self.membership * weights[self.index[:, c], c]).sum(1)
            if not column.is_bound:
                mine = mine - (self._sums(mine, c) / self.counts[:, c])[self.index[:, c]]
            per_row[:, c] = mine * rows
        return per_row

    def by_network(self, multipliers: Tensor) -> Floats:
        """By segment → (n_networks, n_groups, n_cells, n_constraints)."""
        table: Floats = multipliers.view(self.n_networks, -1, *multipliers.shape[1:]).cpu().numpy()
        return np.ascontiguousarray(table.transpose(0, 3, 1, 2))


class Stack:
    """Networks on their way; see :func:`train_stacked_lagrangian`, which has the parameters.
    ``result`` gets the parameters of each network when it has had its own number of steps."""

    def __init__(
        self,
        net: StackedMLP,
        result: list[Tensor],
        X: Reals,
        targets: Ints | Floats,
        sizes: Ints,
        seeds: Sequence[int],
        training: LagrangianTraining,
        parity: StackedParity | Any,
        anchor: float,
        device: Device,
    ) -> None:
        self.net, self.result, self.training, self.parity, self.anchor = net, result, training, parity, anchor
        self.rows = torch.as_tensor(X, device=device).to(result[0].dtype)
        self.targets = torch.as_tensor(np.array(targets), device=device)
        if self.targets.is_floating_point():
            self.targets = self.targets.to(result[0].dtype)
        self.sizes, self.device = sizes, device
        self.vector, self.params, self.gradients = one_vector(result)
        self.origin = self.vector.clone()
        self.pulls: Tensor | None = None  # weight of each row's h in the loss
        # what an error costs each network beyond the share of errors that its most frequent class makes
        priced = parity is not None and bool(parity.of_errors)
        self.prices = torch.zeros(len(sizes), dtype=torch.float64, device=device) if priced else None
        options = {"fused": True, **training.optimizer_options}
        self.optimizer = torch.optim.Adam([self.vector], lr=training.lr, **options)
        epochs = math.ceil(training.epochs)
        self.stream = batch_stream(sizes, seeds, batch_size=training.batch_size, epochs=epochs)
        self.steps_of = -(-sizes // training.batch_size) * epochs
        self.n_steps = int(self.steps_of.max())
        self.averaged_of = np.maximum(1, np.rint(training.average_last * self.steps_of)).astype(int)
        self.means = [torch.zeros_like(p) for p in self.params]

    @property
    def of_step(self) -> float:
        """How many products a step makes: of all networks, each with a batch of its own."""
        return float(self.training.batch_size * self.vector.numel())

    # ------------------------------------------------------------------ dual

    @torch.no_grad()
    def scores(self) -> Tensor:
        """The scores h of all rows that multipliers follow, each row's from its own network."""
        proba = self._probabilities()
        h = followed_scores(self.parity.constraints, proba, proba.argmax(1), self.training.violations)
        if self.prices is not None:
            self.prices = (self.prices + ERROR_STEP * (self.parity.errors(h) - self.parity.most_errors)).clamp(min=0.0)
        return h

    def pull(self, multipliers: Tensor) -> None:
        """Let primal steps follow these multipliers."""
        weights = self.parity.row_weights(multipliers)
        if self.prices is not None:
            weights[:, self.parity.of_errors] += self.prices[self.parity.network][:, None]
        self.pulls = weights.to(self.rows.dtype)

    # ------------------------------------------------------------------ primal

    def step(self, t: int) -> None:
        """One step of every network that still has one to go; the others idle."""
        index, weight, finished = next(self.stream)
        self._gradient(index, weight)
        self.optimizer.step()
        # Each network's last iterates, counted from its own end: one that waits for others is averaged already.
        steps, averaged = self.steps_of, self.averaged_of
        count = np.where((t >= steps - averaged) & (t < steps), t - steps + averaged + 1, 0)
        if count.any():
            share = torch.as_tensor(np.where(count, 1 / np.maximum(count, 1), 0.0), device=self.device)
            for m, p in zip(self.means, self.params, strict=True):
                m.lerp_(p, share.to(p.dtype).view(-1, *[1] * (p.ndim - 1)))
        if finished.size:
            done = torch.as_tensor(finished, device=self.device)
            for kept, m in zip(self.result, self.means, strict=True):
                kept[done] = m[done]

    @torch.no_grad()
    def _gradient(self, index: Ints, weight: NDArray[np.float32]) -> None:
        flat = torch.as_tensor(index.ravel(), device=self.device)
        x = self.rows.index_select(0, flat).view(*index.shape, -1)
        share = torch.as_tensor(weight, device=self.device).to(x.dtype)
        activations, scores = self.net.forward(self.params, x)
        proba = scores.softmax(dim=1)
        target = self.targets.index_select(0, flat)
        if target.ndim == 1:
            y = target.view(index.shape)[:, None, :]
            slope = proba.scatter_add(1, y, torch.full_like(y, -1, dtype=proba.dtype))
        else:
            slope = proba - target.view(*index.shape, -1).transpose(1, 2)
        if self.pulls is not None:
            pulls = self.pulls.index_select(0, flat).view(*index.shape, -1)
            slope += self._constraint_slope(proba, pulls, flat, index.shape)
        self.net.backpropagate(self.params, self.gradients, activations, slope.mul_(share[:, None, :]))
        if self.anchor:
            assert self.vector.grad is not None
            self.vector.grad.add_(self.vector - self.origin, alpha=2 * self.anchor)

    def _constraint_slope(self, proba: Tensor, pulls: Tensor, flat: Tensor, shape: tuple[int, ...]) -> Tensor:
        """Derivative of Σ pull · h by the scores, (networks, classes, rows)."""
        constraints = self.parity.constraints
        weights = torch.zeros_like(proba)  # of each class's probability
        for c, column in enumerate(constraints.columns):
            k, power = column.of_class, column.power
            if k is None:
                y = constraints.y.index_select(0, flat).view(shape)[:, None, :]
                weights.scatter_add_(1, y, -pulls[:, None, :, c] * proba.gather(1, y))
            else:
                weights[:, k] += power * pulls[:, :, c] * proba[:, k] ** power
        return weights - proba * weights.sum(1, keepdim=True)

    def _probabilities(self) -> Tensor:
        """Class probabilities of every row from its own network, (n_rows, n_classes)."""
        first = np.cumsum(self.sizes) - self.sizes
        # Shapes from public sizes: a network with fewer rows repeats one of its own (or, empty, another's: not read).
        position = np.minimum(np.arange(int(self.sizes.max())), np.maximum(self.sizes[:, None], 1) - 1)
        index = np.minimum(first[:, None] + position, len(self.rows) - 1)
        real = np.arange(index.shape[1]) < self.sizes[:, None]
        out = self.rows.new_empty(len(self.rows), self.net.n_classes)
        chunk = max(256, _ACTIVATION_FLOATS // (len(self.sizes) * self.net.widest))
        for start in range(0, index.shape[1], chunk):
            part, mine = index[:, start : start + chunk], real[:, start : start + chunk]
            _, scores = self.net.forward(self.params, self.rows[torch.as_tensor(part, device=self.device)])
            proba = scores.softmax(dim=1).transpose(1, 2).nan_to_num(nan=0.0)
            out[torch.as_tensor(part[mine], device=self.device)] = proba[torch.as_tensor(mine, device=self.device)]
        return out
