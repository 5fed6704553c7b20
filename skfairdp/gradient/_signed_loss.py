"""Parity without public rows: a signed per-sample loss, steered by noisy rates of the private groups.

Demographic parity asks that the mean prediction of every group equal that of all rows. Its Lagrangian is a sum over
rows, so that it can be trained by private SGD like any loss: each row carries the mean prediction of its own group with
one sign and that of all rows with the other. What the weights need to know of the private rows, how large the groups
are and how far they are apart, is released with noise a fixed number of times. (Multipliers that follow the hard rates
while the loss carries the soft ones: the proxy Lagrangian of Cotter et al. 2019.)
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from skfairdp._networks import PrivateRows, outputs_where_it_can
from skfairdp.privacy import DpEvent, GaussianMechanism, NeighboringRelation, NoiseSource, gdp_mu, repeat

__all__ = ["DualPlan", "ParityLagrangian"]


@dataclass(frozen=True)
class DualPlan:
    """Noisy counts of the predicted classes in every group, a fixed number of times.

    A row adds 1 to one cell, so that the sensitivity to adding or removing a row is 1. The sum over a line is the noisy
    size of that group: sizes cost nothing of their own. Predictions are counted, not probabilities, since parity is
    asked of them: softened rates can agree while the predictions stay apart.

    Parameters
    ----------
    releases : int
    noise : float
        Standard deviation of the noise on every count.
    relation : NeighboringRelation, default=ADD_OR_REMOVE_ONE
        A row more, or a row in place of a null record, adds 1 to one cell.

    Examples
    --------
    >>> from skfairdp.gradient._signed_loss import DualPlan
    >>> from skfairdp.privacy import epsilon_of
    >>> plan = DualPlan.calibrated(epsilon=1.0, delta=1e-5, share=1.0, releases=20)
    >>> round(plan.noise, 2), round(epsilon_of(plan.event, 1e-5), 6)
    (16.68, 1.0)
    """

    releases: int
    noise: float
    relation: NeighboringRelation = NeighboringRelation.ADD_OR_REMOVE_ONE

    @classmethod
    def calibrated(
        cls,
        *,
        epsilon: float,
        delta: float,
        share: float,
        releases: int,
        relation: NeighboringRelation = NeighboringRelation.ADD_OR_REMOVE_ONE,
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

    @torch.no_grad()
    def release(
        self,
        module: nn.Module,
        X: Tensor,
        groups: Tensor,
        n_groups: int,
        source: NoiseSource,
        batch: int = 8192,
        *,
        present: Tensor | None = None,
    ) -> Tensor:
        """The noisy counts, of shape (n_groups, n_classes), in double precision on the CPU."""
        exact = self.exact(module, X, groups, n_groups, batch, present=present)
        return torch.from_numpy(self.counts.release(exact.numpy(), source))

    @torch.no_grad()
    def exact(
        self,
        module: nn.Module,
        X: Tensor,
        groups: Tensor,
        n_groups: int,
        batch: int = 8192,
        *,
        present: Tensor | None = None,
    ) -> Tensor:
        """The counts without noise. Private. Absent rows, and those without a finite prediction, count nowhere."""
        training = module.training
        module.eval()
        outputs, counted = [], []
        for i in range(0, max(len(X), 1), batch):
            found, fails = outputs_where_it_can(module, X[i : i + batch])
            outputs.append(found)
            counted.append(~fails & torch.isfinite(found).all(1))
        module.train(training)
        logits, ones = torch.cat(outputs), torch.cat(counted)
        if present is not None:
            ones &= present
        counts = torch.zeros(n_groups, logits.shape[1], dtype=torch.float64)
        cells = (groups.cpu(), logits.argmax(1).cpu())
        counts.index_put_(cells, ones.double().cpu(), accumulate=True)
        return counts


class ParityLagrangian:
    """Cross-entropy plus the Lagrangian of demographic parity, row by row.

    The loss of a row of group a is ``cross-entropy + Σ_k w[a, k] p_k``, with
    ``w[a, k] = λ[a, k] n / n_a - Σ_b λ[b, k]``: summed over all rows, n times ``Σ_a λ[a, k] (rate_a - rate)``. The
    multipliers λ follow the noisy differences of the rates of predicted classes, in [-bound, bound].

    Parameters
    ----------
    n_groups, n_classes : int
    bound : float
        Largest multiplier.
    dual_step : float
        How far a multiplier moves for a difference of 1.
    plan : DualPlan or None, default=None
        What is released of the private rows, and how often.
    steps : int, default=0
        Length of the training, over which the releases are spread.

    Examples
    --------
    >>> import torch
    >>> from skfairdp.gradient._signed_loss import ParityLagrangian
    >>> loss = ParityLagrangian(2, 2, bound=5.0, dual_step=1.0)
    >>> loss.move(torch.tensor([[30.0, 10.0], [30.0, 30.0]]))  # of group 0 a quarter, of group 1 a half
    >>> loss.weights
    tensor([[ 0.3250, -0.3250],
            [-0.2167,  0.2167]])
    """

    def __init__(
        self,
        n_groups: int,
        n_classes: int,
        *,
        bound: float,
        dual_step: float,
        plan: DualPlan | None = None,
        steps: int = 0,
    ) -> None:
        self.bound, self.dual_step, self.plan = bound, dual_step, plan
        self.multipliers = torch.zeros(n_groups, n_classes, dtype=torch.float64)
        self.weights = torch.zeros(n_groups, n_classes)
        self._times = frozenset[int]() if plan is None else plan.times(steps)
        self._sizes: list[Tensor] = []

    def update(self, t: int, module: nn.Module, rows: PrivateRows, source: NoiseSource) -> None:
        """Before step ``t``: release the rates if it is time, and move the multipliers."""
        if self.plan is not None and t in self._times:
            n_groups = len(self.weights)
            self.move(self.plan.release(module, rows.X, rows.targets[:, 1], n_groups, source, present=rows.present))

    def move(self, counts: Tensor) -> None:
        """Move the multipliers by what a release says; post-processing."""
        self._sizes.append(counts.sum(1))
        sizes = torch.stack(self._sizes).mean(0)  # of the same rows every time
        # noise may leave a small group with nothing, or less
        total = sizes.sum().clamp_min(1.0)
        sizes = sizes.clamp_min(float(total) / (100 * len(sizes)))
        differences = counts / sizes[:, None] - counts.sum(0) / total
        self.multipliers = (self.multipliers + self.dual_step * differences).clamp(-self.bound, self.bound)
        weights = self.multipliers * (total / sizes)[:, None] - self.multipliers.sum(0)
        self.weights = weights.to(self.weights)

    def __call__(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Losses of shape (n_rows,); targets of shape (n_rows, 2) hold the class and the group."""
        weights = self.weights.to(targets.device)[targets[:, 1]].to(outputs.dtype)
        signed = (torch.softmax(outputs, dim=1) * weights).sum(1)
        return nn.functional.cross_entropy(outputs, targets[:, 0], reduction="none") + signed
