"""Parity without public rows: a signed per-sample loss, steered by noisy rates of the private groups.

A constraint on rates of a classifier asks that inequalities hold between means over groups (and true classes). Its
Lagrangian is a sum over rows, so that it can be trained by private SGD like any loss: each row carries the probability
of the predictions that the rates count, with a weight that follows from the multipliers and the sizes of groups. What
these need to know of the private rows, how large the groups are and which rates they have, is one table of counts,
released with noise a fixed number of times. (Multipliers that follow the hard rates while the loss carries the soft
ones: the proxy Lagrangian of Cotter et al. 2019. Tables of batches, instead of all rows: RaCO-DP, Yaghini et al. 2025.)
"""

import math
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from skfairdp._inputs import TrainingData
from skfairdp._judge import Judge, Judgement
from skfairdp._networks import AmountLoss, Network, PrivateRows, RowsOnDemand, private_outputs, sums_by_group
from skfairdp._typing import Floats
from skfairdp.fairness import BY_CHANCE, RateConstraints, noise_of_violations
from skfairdp.privacy import DpEvent, GaussianMechanism, NeighboringRelation, NoiseSource, gdp_mu, repeat

#: How far a constraint may stay broken where nothing else says so, as in fairlearn.
USUAL_SLACK = 0.01
#: Of a multiplier: per violation of 1, and by what the noise of all releases moves it. About 1 closes most gaps.
USUAL_STEP, MOST_BY_NOISE = 0.5, 0.25
#: What a violation moves its multiplier by at the least, where it is more than noise. In steps of its own size alone
#: one of .01 would be left as it is: 40 releases were over before its multiplier was at .2.
LEAST_MOVE = 0.05
ROWS_AT_ONCE = 8192


def largest_price(n_classes: int, noise: ArrayLike) -> Any:
    """The largest multipliers that constraints can need, in nats of loss per violation of 1. Equal probabilities meet
    every parity and lose ``log K``: so with the multiplier at its bound B the violation is at most ``log K / B`` (1/ε
    of Agarwal et al. 2018). To ask for less than the noise lets anybody see would follow the noise; of a hidden group
    the price is 0."""
    return math.log(max(n_classes, 2)) / np.maximum(USUAL_SLACK, noise)


@dataclass(frozen=True)
class DualPlan:
    """Noisy counts of the predicted classes in every cell of rows (groups, or groups by true class), a fixed number of
    times. A row adds 1 to one count: the sensitivity to adding or removing one is 1, and sizes cost nothing of their
    own. Predictions are counted, as softened rates can agree while they stay apart."""

    releases: int
    noise: float
    relation: NeighboringRelation = NeighboringRelation.ADD_OR_REMOVE_ONE

    @classmethod
    def calibrated(
        cls, *, epsilon: float, delta: float, share: float, releases: int, relation: NeighboringRelation
    ) -> "DualPlan":
        """The plan that spends ``share`` of the μ² of (ε, δ) on all releases together."""
        return cls(releases, math.sqrt(releases / share) / gdp_mu(epsilon, delta), relation)

    @property
    def counts(self) -> GaussianMechanism:
        """For one table of counts."""
        return GaussianMechanism(self.noise, sensitivity=1.0, relation=self.relation)

    @property
    def event(self) -> DpEvent:
        """All releases together."""
        return repeat(self.counts.event, self.releases)

    def times(self, steps: int) -> frozenset[int]:
        """The steps before which to release: evenly spread, none at the start, at most ``releases`` of them."""
        return frozenset(r * steps // (self.releases + 1) for r in range(1, self.releases + 1)) - {0}

    def steps(self, violations: ArrayLike, noise: ArrayLike, alike: float = 1.0) -> Any:
        """How far multipliers move for a violation of 1: all by ``LEAST_MOVE``, but no further than the noise
        allows; less where ``alike`` many push a group the same way."""
        wanted = np.maximum(USUAL_STEP, LEAST_MOVE / np.maximum(np.abs(violations), 1e-9)) / alike
        return np.minimum(wanted, MOST_BY_NOISE / np.maximum(self.releases * np.asarray(noise), 1e-9))

    @torch.no_grad()
    def release(
        self, module: nn.Module, X: Tensor, cells: Tensor, n_cells: int, source: NoiseSource, *, present: Tensor | None
    ) -> Tensor:
        """The noisy counts, of shape (n_cells, n_classes), in double precision on the CPU."""
        exact = self.exact(module, X, cells, n_cells, present=present)
        return torch.from_numpy(self.counts.release(exact.numpy(), source))

    @torch.no_grad()
    def exact(
        self,
        module: nn.Module,
        X: Tensor | RowsOnDemand,
        cells: Tensor,
        n_cells: int,
        batch: int = ROWS_AT_ONCE,
        *,
        present: Tensor | None = None,
    ) -> Tensor:
        """The counts without noise. Private. Absent rows, and those without a finite prediction, count nowhere."""
        found: Any = 0
        for i in range(0, max(len(X), 1), 4 * ROWS_AT_ONCE):
            some = slice(i, i + 4 * ROWS_AT_ONCE)
            logits = private_outputs(module, X[some], batch)
            ones = ~logits.isnan().any(1)
            if present is not None:
                ones &= present[some]
            counts = torch.zeros(n_cells, logits.shape[1], dtype=torch.float64)
            places = cells[some].cpu(), logits.argmax(1).cpu()
            found = found + counts.index_put_(places, ones.double().cpu(), accumulate=True)
        return found


def pushes(coefficients: Floats) -> float:
    """How many inequalities push a group the same way, at most: compared with k others it is in 2k, half of which it
    can break. Together they moved rates of twelve groups so far that gaps were .7, and .3 without constraints."""
    return max(1.0, float((coefficients != 0).sum(axis=0).max(initial=0)) / 2)


class RateLagrangian:
    """Cross-entropy plus ``Σ_k w[a, y, k] p_k`` for a row of group a and class y, with the weights of
    :meth:`skfairdp.fairness.RateConstraints.row_weights`: over all rows n times ``Σ_j λ_j (left-hand side)_j``. Each
    λ_j follows the noisy violation of its inequality by the predictions, in [0, bound]; of a small group, as releases
    say, it moves less and has a lower bound. No row gains by a wrong prediction as such. Where chance may break an
    inequality its λ_j stops where clipping cuts what it adds to a row: rows of 5 % weigh 20 times as much as all
    others, whose push in the other direction would pass whole, and move everybody to one answer."""

    def __init__(
        self,
        constraints: RateConstraints,
        *,
        bound: float | None = None,
        dual_step: float | None = None,
        plan: DualPlan | Any = None,
        steps: int = 0,
        max_grad_norm: float = math.inf,
    ) -> None:
        self.constraints, self.bound, self.dual_step, self.plan = constraints, bound, dual_step, plan
        self.max_grad_norm = max_grad_norm
        n_groups, n_classes = len(constraints.groups), len(constraints.classes)
        self.shape = (n_groups, n_classes if constraints.needs_labels else 1, n_classes)
        self.multipliers = np.zeros(constraints.n_inequalities)
        self.weights = torch.zeros(self.shape)
        self._most: Any = math.inf if bound is None else bound  # that a multiplier may be, by the releases so far
        self._times = frozenset[int]() if plan is None else plan.times(steps)
        self._released: list[Floats] = []
        self._alike = pushes(constraints.coefficients[:, :-1])

    def update(self, t: int, module: nn.Module, rows: PrivateRows, source: NoiseSource) -> None:
        """Before step ``t``: release the rates if it is time, and move the multipliers."""
        if self.plan is not None and t in self._times:
            n_groups, n_labels, _ = self.shape
            rows = rows.counted(len(self._released))
            cells = rows.targets[:, 1] * n_labels + self._labels(rows.targets)
            noisy = self.plan.release(module, rows.X, cells, n_groups * n_labels, source, present=rows.present)
            self.move(noisy.numpy())

    def judgement(
        self, judge: Judge, network: Network, module: nn.Module, data: TrainingData, source: NoiseSource
    ) -> Judgement:
        """Release what a trained network answers to the private rows, and judge by it."""
        n_groups, n_labels, _ = self.shape
        cells = torch.from_numpy(data.groups * n_labels + data.y * int(n_labels > 1))
        # Where a row may come or go, one by one: how a row is rounded hangs on its batch.
        size = ROWS_AT_ONCE if judge.relation.number_is_public else 1
        looked_at = deepcopy(module).to(network.device)
        exact = self.plan.exact(looked_at, network.rows(data.X), cells, n_groups * n_labels, size)
        return judge.release(exact.numpy().reshape(self.shape), source)

    @property
    def is_at_its_bound(self) -> bool:
        """Whether a multiplier would have gone on."""
        return bool(((self.multipliers > 0) & (self.multipliers >= self._most)).any())

    def move(self, counts: Floats) -> None:
        """Move the multipliers by what a release says; post-processing."""
        counts = counts.reshape(self.shape)
        self._released.append(counts)
        sizes = np.mean([table.sum(2) for table in self._released], axis=0)  # of the same rows every time
        # noise may leave a small cell with nothing, or less
        sizes = np.maximum(sizes, max(float(sizes.sum()), 1.0) / (100 * sizes.size))
        violations = self.constraints.violations(counts, sizes)
        self._most, step = self._reach(violations)
        self.multipliers = np.clip(self.multipliers + step * violations, 0.0, self._most)
        weights = self.constraints.row_weights(self.multipliers, sizes, forgive=1.0)
        self.weights = torch.from_numpy(weights).to(self.weights)

    def _reach(self, violations: Floats) -> tuple[Any, Any]:
        """How large multipliers may be, by what noise lets anybody see and clipping lets through, and how far they move
        for a violation of 1."""
        if self.plan is None or (self.bound is not None and self.dual_step is not None):
            return self.bound, self.dual_step
        _, noise = noise_of_violations(self.constraints, self._released, self.plan.noise)
        noise = noise * math.sqrt(len(self._released) / self.plan.releases)  # that all will leave together
        bound = self.bound
        if bound is None:
            counts = np.maximum(np.mean(self._released, axis=0), 0.0)
            chance = self.constraints.variances(counts) ** 0.5
            is_clear = BY_CHANCE * chance <= np.maximum(self.constraints.bounds, USUAL_SLACK)
            passes = np.where(is_clear, np.inf, self.max_grad_norm / self.constraints.heaviest(counts.sum(2)))
            bound = np.minimum(largest_price(len(self.constraints.classes), noise), passes)
        return bound, self.plan.steps(violations, noise, self._alike) if self.dual_step is None else self.dual_step

    def _labels(self, targets: Tensor) -> Tensor:
        """The class of each row where the constraints look at it, else 0."""
        return targets[:, 0] * int(self.shape[1] > 1)

    def __call__(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Losses of shape (n_rows,); targets of shape (n_rows, 2) hold the class and the group."""
        weights = self.weights.to(targets.device)[targets[:, 1], self._labels(targets)].to(outputs.dtype)
        signed = (torch.softmax(outputs, dim=1) * weights).sum(1)
        return nn.functional.cross_entropy(outputs, targets[:, 0], reduction="none") + signed


class AmountLagrangian(AmountLoss):
    """The loss of amounts plus the Lagrangian of constraints on means and losses of groups, row by row. Multipliers
    follow noisy means, in units of the spread of amounts, as those of rates follow noisy rates."""

    def __init__(
        self, scale: Any, asked: Any, plan: DualPlan, steps: int, bound: float | None, max_grad_norm: float
    ) -> None:
        super().__init__(scale, len(asked.groups))
        self.asked, self.plan, self.bound, self.max_grad_norm = asked, plan, bound, max_grad_norm
        self.multipliers = np.zeros(len(asked.lines[2]))
        self._times = plan.times(steps)
        self._sizes: list[Floats] = []
        #: A record has one line of the table, of this norm at most; the table is released in units of it.
        self.moved = math.sqrt(1 + asked.n_statistics)

    def update(self, t: int, module: nn.Module, rows: PrivateRows, source: NoiseSource) -> None:
        """Before step ``t``: release the sums of groups if it is time, and move the multipliers."""
        if t not in self._times:
            return
        rows = rows.counted(len(self._sizes))
        said = self.scale(private_outputs(module, rows.X, ROWS_AT_ONCE)[:, 0]).cpu().numpy()
        targets = rows.targets.cpu().numpy()
        of_rows = self.asked.statistics(self.scale, said, targets[:, 0], targets[:, 2])
        if rows.present is not None:
            of_rows[~rows.present.cpu().numpy()] = np.nan
        lines = np.column_stack([np.ones(len(of_rows)), of_rows])
        sums = sums_by_group(lines, targets[:, 1].astype(np.int64), len(self.asked.groups))
        self.move(self.moved * self.plan.counts.release(sums / self.moved, source))

    def move(self, table: Floats) -> None:
        """Move the multipliers by what a release says; post-processing."""
        self._sizes.append(table[:, 0])
        sizes = np.mean(self._sizes, axis=0)  # of the same rows every time
        sizes = np.maximum(sizes, max(float(sizes.sum()), 1.0) / (100 * len(sizes)))
        coefficients, of_means, bounds = self.asked.lines
        half = float(self.scale.spread) ** np.where(of_means, 1, self.asked.power)
        violations = (self.asked.sides(self.scale, np.clip(table[:, 1:] / sizes[:, None], -1.0, 1.0)) - bounds) / half
        errors = np.sqrt(np.einsum("lgs,g->l", coefficients**2, 1 / sizes**2)) * self.moved * self.plan.noise
        noise = self.asked.units(self.scale) / half * errors / math.sqrt(self.plan.releases)
        most: Any = self.bound
        if most is None:
            heaviest = np.einsum("lgs,g->lg", np.abs(coefficients), sizes.sum() / sizes).max(axis=1)
            most = np.minimum(largest_price(2, noise), self.max_grad_norm / heaviest)
        alike = pushes(coefficients)
        steps = self.plan.steps(violations, noise, alike * (alike + 1) / 2)  # and each group has as much fewer rows
        self.multipliers = np.clip(self.multipliers + steps * violations, 0.0, most)
        weights = np.einsum("l,lgs->gs", self.multipliers, coefficients) * (sizes.sum() / sizes)[:, None]
        if of_means.any():
            self.of_means = torch.from_numpy(weights[:, 0]).float()
        if not of_means.all():
            self.of_losses = torch.from_numpy(weights[:, -1]).float()
