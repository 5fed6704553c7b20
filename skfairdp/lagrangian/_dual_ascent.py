"""The Lagrangian dual, once: how to train, multipliers that follow violations, and the mean of the last iterates."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from skfairdp._usefulness import larger_batches
from skfairdp.fairness import FairnessConstraints, name_of

if TYPE_CHECKING:
    from skfairdp._networks import Net


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
        a_pass = n_rows / min(self.batch_size, n_rows)
        return max(1, round(self.epochs * a_pass))


def dual_schedule(steps: int, dual_steps: int) -> dict[int, float]:
    """When multipliers move, evenly over the training, and by which share of their first step.

    The last of n moves is 1/n as long as the first: long steps reach large multipliers, short ones settle.
    """
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
            self.first_step = _slowest(self.first_step)

    def follow(self, scores: Any, share: float) -> None:
        """Move by a share of the first step."""
        step = share * self.first_step
        moved = self.multipliers + step * self.violations(scores) / self.sizes
        if self.project_to_bounds is not None:
            beyond = moved / step - self.project_to_bounds(moved / step, scores)
            moved = step * beyond
        self.multipliers = moved.clip(-self.bound, self.bound)


def _slowest(steps: Any) -> Any:
    """The shortest step of all groups, in each cell: they come first in arrays, last in tensors."""
    if isinstance(steps, Tensor):
        return steps.amin(-1, keepdim=True)
    return steps.min(0, keepdims=True) if np.ndim(steps) else steps


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


_BATCH, _LEAST_BATCH = 256, 16
_ENOUGH_STEPS = 1000  # 25 for each move of the multipliers
_LR, _LARGEST_LR = 1e-3, 1e-2
_REACH = 2.0  # how far a parameter can go


#: Passes over the rows by the usual batches, and steps where these take fewer. With half of both PF-LD's gap on a table
#: with a group of 3 % was 2.5 times as wide.
_EPOCHS, _LEAST_STEPS = 20, 2000
#: Of a net, as :func:`as_net` reads it: what :func:`settled` chooses.
LEFT_OPEN: dict[str, Any] = {"lr": None, "batch_size": None, "max_epochs": None}


def usual_batches(epochs: float | None, batch_size: int | None, n_rows: int) -> tuple[int, float]:
    """Rows of a batch, and how many times the usual ones they are.

    256 rows; of so many passes as few as 1000 steps take, but no fewer than 16. Of more than 50,000 rows more, where
    passes are left open as well.
    """
    if batch_size is not None:
        return batch_size, 1.0
    if epochs is None:
        larger = larger_batches(n_rows)
        return round(_BATCH * larger), larger
    return min(_BATCH, max(_LEAST_BATCH, math.floor(epochs * n_rows / _ENOUGH_STEPS))), 1.0


def usual_passes(steps_of_pass: float, larger: float = 1.0) -> float:
    """20, or as many fewer as batches are larger than usual; as many more as 2000 steps take."""
    return max(_EPOCHS / larger, _LEAST_STEPS / max(1.0, steps_of_pass))


def default_lr(steps: int, larger: float = 1.0) -> float:
    """Steps of Adam move a parameter by as much at most; all together by 2, and none by less than .001, more than .01.

    By batches that are larger than usual they are longer by the root of that: so much less noise has their slope.
    """
    return math.sqrt(larger) * min(_LARGEST_LR, max(_LR, _REACH / max(1, steps)))


def settled(net: "Net", n_rows: int) -> "Net":
    """The net with batches, passes and step size chosen, where it leaves them open."""
    batch, larger = usual_batches(net.max_epochs, net.batch_size, n_rows)
    a_pass = n_rows / min(batch, n_rows)
    epochs = usual_passes(a_pass, larger) if net.max_epochs is None else net.max_epochs
    lr = default_lr(round(epochs * a_pass), larger) if net.lr is None else net.lr
    return replace(net, batch_size=batch, max_epochs=epochs, lr=lr)
