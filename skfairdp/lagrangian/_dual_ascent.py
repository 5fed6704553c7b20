"""The Lagrangian dual, once: how to train, multipliers that follow violations, and the mean of the last iterates."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from skfairdp.fairness import FairnessConstraints, name_of

# Of multipliers, whose violations lie between -1 and 1: first steps of one notion, and of several.
_LONG_STEP, _SHORT_STEP = 10.0, 1.0
#: How much dearer an error gets, in nats, for a surplus of errors of 1: as fast as multipliers grow at first.
ERROR_STEP = 10.0
_WALK = 0.5  # standard deviation that noise may give a multiplier
_SMALL = 0.1  # share of the rows below which a group takes shorter steps


@dataclass(frozen=True)
class LagrangianTraining:
    """How to train; all of it public."""

    epochs: float = 20
    batch_size: int = 256
    lr: float = 1e-3
    optimizer_options: Mapping[str, Any] = field(default_factory=dict)
    lam_max: float = 5.0
    dual_step: float | None = None
    dual_steps: int = 40
    average_last: float = 0.25
    violations: str = "predictions"

    def steps(self, n_rows: int) -> int:
        """Steps of one network: batches of so many passes, the rest of a pass left out."""
        return max(1, round(self.epochs * (n_rows / min(self.batch_size, n_rows))))


def dual_schedule(steps: int, dual_steps: int) -> dict[int, float]:
    """When multipliers move, evenly over the training, and by which share of their first step.
    The last of n moves is 1/n as long as the first: long steps reach large multipliers, short ones settle."""
    at = sorted({max(1, round((r + 1) * steps / (dual_steps + 1))) for r in range(dual_steps)})
    return {t: 1 - moved / dual_steps for moved, t in enumerate(at)}


class DualAscent:
    """Multipliers that follow violations: λ ← clip(λ + step · violation).

    Of constraints with a bound they follow what lies beyond it: with w = λ / step + violation, λ is step times the
    difference of w to the nearest point that is allowed. That is the method of multipliers (Rockafellar 1976); where
    |violation| has a bound b, it draws λ + step · violation towards 0 by step · b.

    It knows no groups and adds no noise: whoever gives ``violations`` has seen to both. They are arrays or tensors.
    """

    def __init__(
        self,
        training: LagrangianTraining,
        constraints: FairnessConstraints,
        violations: Callable[[Any], Any],
        sizes: Any,
        noise: float = 0.0,
        project_to_bounds: Callable[[Any, Any], Any] | None = None,
        shares: Any = None,
    ) -> None:
        self.violations, self.sizes, self.bound = violations, sizes, training.lam_max
        self.project_to_bounds = project_to_bounds if constraints.has_bounds else None
        self.multipliers = 0.0 * sizes
        if training.dual_step is not None:
            self.first_step: Any = training.dual_step
            return
        part = 1.0 if shares is None else (shares / _SMALL).clip(None, 1.0) ** 0.5
        self.first_step = part * (_LONG_STEP if len(set(map(name_of, constraints.notions))) == 1 else _SHORT_STEP)
        if noise > 0:
            # steps that shrink to nothing add up a third of the variance that as many full ones would
            walked = noise / sizes * np.sqrt(max(1, training.dual_steps) / 3)
            self.first_step = np.minimum(self.first_step, part**2 * _WALK / np.maximum(walked, 1e-12))
        if self.project_to_bounds is not None:  # which compares groups: they go in step
            # of all groups, in each cell: they come first in arrays, last in tensors
            if isinstance(self.first_step, Tensor):
                self.first_step = self.first_step.amin(-1, keepdim=True)
            elif np.ndim(self.first_step):
                self.first_step = self.first_step.min(0, keepdims=True)

    def follow(self, scores: Any, share: float) -> None:
        """Move by a share of the first step."""
        step = share * self.first_step
        moved = self.multipliers + step * self.violations(scores) / self.sizes
        if self.project_to_bounds is not None:
            beyond = moved / step - self.project_to_bounds(moved / step, scores)
            moved = step * beyond
        self.multipliers = moved.clip(-self.bound, self.bound)


def followed_scores(
    constraints: FairnessConstraints, probabilities: Tensor, predicted: Tensor, violations: str
) -> Tensor:
    """The scores h of all rows that multipliers follow, of predictions or of probabilities."""
    # The moments of a distribution of scores are not those of 0 and 1.
    generalized = [column.notion == "generalized_demographic_parity" for column in constraints.columns]
    if violations == "predictions":
        of_predictions = torch.nn.functional.one_hot(predicted, constraints.n_classes).to(probabilities.dtype)
        hard: Tensor = constraints.values(of_predictions, constraints.y)
        if not any(generalized):
            return hard
    soft: Tensor = constraints.values(probabilities, constraints.y)
    if violations == "probabilities":
        return soft
    return torch.where(torch.tensor(generalized, device=soft.device), soft, hard)


class LastIterates:
    """The running mean of some parameters."""

    def __init__(self, parameters: Sequence[Tensor]) -> None:
        self._parameters = parameters
        self.mean = [torch.zeros_like(p) for p in parameters]

    def add(self, share: float | Tensor) -> None:
        """Let the present values enter the mean with this share, one for all or one per network of a stack."""
        for m, p in zip(self.mean, self._parameters, strict=True):
            of_each = share if isinstance(share, float) else share.to(p.dtype).view(-1, *[1] * (p.ndim - 1))
            m.lerp_(p.detach(), of_each)
