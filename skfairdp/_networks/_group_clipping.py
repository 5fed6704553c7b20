"""What a row may add to a private gradient where groups are weighed, or bounds follow noisy counts; and the step of it.

Three rules of others, each with the sensitivity it has: weights raise it to the largest weight times C, bounds by group
to the largest bound, and the counts that move a bound are releases of the same batch.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from skfairdp._networks._clipping import PerSampleLoss, clipped_gradient_sum
from skfairdp._networks._dp_step import DPStep, released_mean
from skfairdp._networks._wide_sums import SLACK
from skfairdp._typing import ArrayLike
from skfairdp.privacy import GaussianMechanism, NoiseSource

Counting = Callable[[Tensor], Tensor]
_ROOM = 1 - SLACK  # rounding cannot take a sum past the bound


class ClippingRule(ABC):
    """What each row's gradient is multiplied by.

    ``count_share`` is the share of a step's squared cost that pays for its counts; 0 where a rule makes none.
    """

    count_share: float = 0.0

    @property
    @abstractmethod
    def bound(self) -> float:
        """No row adds more than this norm to the sum, given what was released so far."""

    @abstractmethod
    def factors(self, norms: Tensor, groups: Tensor, counted: Counting) -> Tensor:
        """Factors of shape (n_rows,)."""

    def factors_of_arrays(
        self,
        norms: NDArray[np.float64],
        groups: NDArray[np.int64],
        counted: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    ) -> NDArray[np.float64]:
        """The same from and to arrays."""
        return self.factors(
            torch.from_numpy(norms), torch.from_numpy(groups), lambda exact: torch.from_numpy(counted(exact.numpy()))
        ).numpy()


class WeightsByGroup(ClippingRule):
    """Clipped gradients times a public or released weight of their group: sensitivity C times the largest weight."""

    def __init__(self, weights: ArrayLike, *, max_norm: float) -> None:
        self.weights, self.max_norm = torch.tensor(np.asarray(weights, dtype=np.float64)), max_norm

    @staticmethod
    def balancing(sizes: NDArray[np.float64], max_weight: float) -> NDArray[np.float64]:
        """Weights that make groups of these (noisy) sizes count alike, none above ``max_weight``."""
        total = max(float(sizes.sum()), 1.0)
        # noise may leave a small group with nothing, or less
        sizes = np.maximum(sizes, total / (100 * len(sizes)))
        return np.minimum(total / (len(sizes) * sizes), max_weight)

    @property
    def bound(self) -> float:
        return self.max_norm * float(self.weights.max())

    def factors(self, norms: Tensor, groups: Tensor, counted: Counting) -> Tensor:
        clipped = (self.max_norm * _ROOM / norms.clamp_min(1e-300)).clamp_max(1.0)
        return clipped * self.weights.to(norms)[groups]


class BoundsByGroup(ClippingRule):
    """DP-SGD-F: a clipping bound for each group, larger where more of its gradients are above C.

    ``C_k = C (1 + share of group k above C / share of all rows above C)``, from noisy counts of the batch (Xu, Du & Wu
    2020), at most ``max_ratio`` times C. The sum moves by the *largest* bound of any group, of an empty one too.
    """

    def __init__(self, n_groups: int, *, max_norm: float, max_ratio: float, count_share: float) -> None:
        self.n_groups, self.max_norm, self.max_ratio, self.count_share = n_groups, max_norm, max_ratio, count_share
        self.bounds = torch.full((n_groups,), max_norm, dtype=torch.float64)

    @property
    def bound(self) -> float:
        return float(self.bounds.max())

    def factors(self, norms: Tensor, groups: Tensor, counted: Counting) -> Tensor:
        above = (norms > self.max_norm).long()
        cells = torch.zeros(self.n_groups * 2, dtype=torch.float64, device=norms.device)
        cells.index_add_(0, groups * 2 + above, torch.isfinite(norms).double())
        self.update(counted(cells.cpu()).reshape(self.n_groups, 2))
        bounds = (self.bounds * _ROOM).to(norms)[groups]
        return (bounds / norms.clamp_min(1e-300)).clamp_max(1.0)

    def update(self, counts: Tensor) -> None:
        """Set the bounds by noisy counts of shape (n_groups, 2), of gradients within and above C; post-processing."""
        counts = counts.double().clamp_min(0.0)
        share = counts[:, 1] / counts.sum(1).clamp_min(1.0)
        overall = counts[:, 1].sum() / counts.sum().clamp_min(1.0)
        ratio = 1 + share / overall.clamp_min(1e-9)
        self.bounds = self.max_norm * ratio.clamp_max(self.max_ratio)


class GlobalScaling(ClippingRule):
    """DPSGD-Global-Adapt: gradients are scaled by C/Z, and only those above Z are clipped, to C.

    ``Z ← Z exp(share of the rows above Z - quantile)``, the share from a noisy count (Esipova et al. 2022). Sensitivity
    C; no groups are read.
    """

    def __init__(
        self, *, max_norm: float, start: float, quantile: float, batch_size: float, count_share: float
    ) -> None:
        self.max_norm, self.strict, self.quantile = max_norm, start, quantile
        self.batch_size, self.count_share = batch_size, count_share

    @property
    def bound(self) -> float:
        return self.max_norm

    def factors(self, norms: Tensor, groups: Tensor, counted: Counting) -> Tensor:
        out = self.max_norm * _ROOM / norms.clamp_min(self.strict)
        above = ((norms > self.strict) & torch.isfinite(norms)).sum().double().cpu()
        self.update(counted(above[None]))
        return out

    def update(self, above: Tensor) -> None:
        """Move Z by a noisy count; post-processing."""
        step = float(above[0]) / self.batch_size - self.quantile
        # a wild draw of the noise must not end the training
        self.strict = min(max(self.strict * math.exp(min(step, 1.0)), 1e-2 * self.max_norm), 1e3 * self.max_norm)


@dataclass(frozen=True)
class FairClippingStep(DPStep):
    """A step of private SGD whose gradients a :class:`ClippingRule` scales.

    Counts and gradients of a step are one release of one Poisson batch: adding or removing a row moves the counts by 1
    and then, given them, the sum by the rule's bound. With noise σ/√f on the counts (f is ``count_share``) and
    σ/√(1-f) times the bound on the sum, μ² = f/σ² + (1-f)/σ²: given the batch, N(0, 1) against N(1/σ, 1) dominates the
    two, and sampling the batch keeps what dominates (Zhu, Dong & Wang 2022, Theorem 11). So the event is that of one
    sampled Gaussian with multiplier σ, in every step. ``max_grad_norm`` is the rule's base C; targets have shape
    (n_rows, 2) and hold classes and groups.
    """

    rule: Any = None

    @classmethod
    def of(cls, step: DPStep, rule: ClippingRule) -> "FairClippingStep":
        """The same plan with a rule."""
        return cls(
            step.sampling_probability,
            step.noise_multiplier,
            step.max_grad_norm,
            step.steps,
            step.expected_batch_size,
            step.relation,
            rule,
        )

    @property
    def counts(self) -> GaussianMechanism:
        """For the counts of a batch."""
        sigma = self.noise_multiplier / math.sqrt(self.rule.count_share)
        return GaussianMechanism(sigma, sensitivity=1.0, relation=self.relation)

    @property
    def sums(self) -> GaussianMechanism:
        """For the sum of a batch, given its released counts."""
        bound = self.rule.bound
        sigma = self.noise_multiplier / math.sqrt(1 - self.rule.count_share) * bound
        return GaussianMechanism(sigma, sensitivity=bound, relation=self.relation)

    def release_counts(self, exact: Tensor, source: NoiseSource) -> Tensor:
        """Noisy counts of a batch."""
        return torch.from_numpy(self.counts.release(exact.numpy(), source))

    def release(
        self, module: nn.Module, loss: PerSampleLoss, X: Tensor, y: Tensor, source: NoiseSource, **options: Any
    ) -> dict[str, Tensor]:
        """The noisy mean gradient of a batch, by parameter name."""

        def factors(norms: Tensor) -> Tensor:
            return self.rule.factors(norms, y[:, 1], lambda exact: self.release_counts(exact, source))

        total = clipped_gradient_sum(module, loss, X, y, self.max_grad_norm, factors=factors, **options)
        return released_mean(total, self.sums, source, self.expected_batch_size)
