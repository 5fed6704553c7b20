"""The Lagrangian dual, once: how to train, multipliers that follow violations, and the mean of the last iterates."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from skfairdp.fairness import FairnessConstraints, name_of

__all__ = ["ERROR_STEP", "DualAscent", "LagrangianTraining", "LastIterates", "dual_schedule", "followed_scores"]

# Of multipliers, whose violations lie between -1 and 1: first steps of one notion, and of several.
_LONG_STEP, _SHORT_STEP = 10.0, 1.0
#: How much dearer an error gets, in nats, for a surplus of errors of 1: as fast as multipliers grow at first.
ERROR_STEP = 10.0
_WALK = 0.5  # standard deviation that noise may give a multiplier
_SMALL = 0.1  # share of the rows below which a group takes shorter steps


@dataclass(frozen=True)
class LagrangianTraining:
    """How to train; all of it public.

    Parameters
    ----------
    epochs : float
        Passes over the rows.
    batch_size : int
    lr : float
        Step size of Adam.
    optimizer_options : mapping
        Others of Adam, such as ``weight_decay``.
    lam_max : float
        Multipliers stay in [-lam_max, lam_max].
    dual_step : float or None
        How far a multiplier moves for a violation of 1 in the first of the dual steps. Later ones are shorter, the last
        of n a share 1/n of it: large steps reach large multipliers, small ones settle. None is 10 (1 for several
        notions at once, which may contradict each other: multipliers then grow for as long as they are moved), or as
        much less as keeps the standard deviation of a multiplier that follows nothing but noise at 0.5. Few rows share
        the multiplier of a small group, and weigh the more in the loss. With less than a tenth of the rows a group has
        a standard deviation less by the part that it has of a tenth, as that weight is the multiplier over the share;
        and steps less by the root of that part, as batches differ by the multiplier over the root of the share.
    dual_steps : int
        Moves of the multipliers, evenly over the training.
    average_last : float
        Share of the last iterates whose average is kept.
    violations : {"predictions", "probabilities"}
        Whether multipliers follow the classes that are predicted or their probabilities, which is what the primal steps
        can differentiate. (Cotter et al. 2019: softened rates can agree while the predictions stay apart.) Generalized
        demographic parity always follows probabilities.

    Examples
    --------
    >>> from skfairdp.lagrangian import LagrangianTraining
    >>> LagrangianTraining(epochs=2, batch_size=100).steps(1000)
    20
    """

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

    Parameters
    ----------
    steps : int
        Steps of the training.
    dual_steps : int
        Moves; fewer where there are not as many steps.

    Returns
    -------
    dict of int to float

    Examples
    --------
    >>> from skfairdp.lagrangian import dual_schedule
    >>> dual_schedule(100, 4)
    {20: 1.0, 40: 0.75, 60: 0.5, 80: 0.25}
    """
    at = sorted({max(1, round((r + 1) * steps / (dual_steps + 1))) for r in range(dual_steps)})
    return {t: 1 - moved / dual_steps for moved, t in enumerate(at)}


class DualAscent:
    """Multipliers that follow violations: λ ← clip(λ + step · violation).

    Of constraints with a bound they follow what lies beyond it: with w = λ / step + violation, λ is step times the
    difference of w to the nearest point that is allowed. That is the method of multipliers (Rockafellar 1976); where
    |violation| has a bound b, it draws λ + step · violation towards 0 by step · b.

    It knows no groups and adds no noise: whoever gives ``violations`` has seen to both. They are arrays or tensors.

    Parameters
    ----------
    training : LagrangianTraining
    constraints : FairnessConstraints
    violations : callable
        Scores h of all rows, (n_rows, n_constraints) → for every group, cell and constraint the sum over the group of h
        less its mean in the cell.
    sizes : ndarray or Tensor
        What these sums are divided by: sizes of the groups; ones, where they are means already.
    noise : float, default=0.0
        Standard deviation of the noise on a sum.
    nearest_allowed : callable or None, default=None
        Violations and the scores h → the nearest violations that bounds allow. None: none is allowed.
    shares : ndarray or Tensor or None, default=None
        Of all rows, what each group has in each cell. None: no group counts as small.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.fairness import FairnessConstraints
    >>> from skfairdp.lagrangian import DualAscent, LagrangianTraining
    >>> groups, y = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    >>> parity = FairnessConstraints(["demographic_parity"], y, 2)
    >>> def violations(h):
    ...     return np.stack([(h - h.mean(0))[groups == a].sum(0) for a in range(2)])[:, None]
    >>> ascent = DualAscent(LagrangianTraining(lam_max=2.0), parity, violations, np.full((2, 1, 1), 2.0))
    >>> ascent.follow(np.array([[0.0], [0.2], [0.3], [0.5]]), 1.0)
    >>> ascent.multipliers.ravel()
    array([-1.5,  1.5])
    """

    def __init__(
        self,
        training: LagrangianTraining,
        constraints: FairnessConstraints,
        violations: Callable[[Any], Any],
        sizes: Any,
        noise: float = 0.0,
        nearest_allowed: Callable[[Any, Any], Any] | None = None,
        shares: Any = None,
    ) -> None:
        self.violations, self.sizes, self.bound = violations, sizes, training.lam_max
        self.nearest_allowed = nearest_allowed if constraints.has_bounds else None
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
        if self.nearest_allowed is not None:  # which compares groups: they go in step
            self.first_step = _slowest(self.first_step)

    def follow(self, scores: Any, share: float) -> None:
        """Move by a share of the first step."""
        step = share * self.first_step
        moved = self.multipliers + step * self.violations(scores) / self.sizes
        if self.nearest_allowed is not None:
            beyond = moved / step - self.nearest_allowed(moved / step, scores)
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
    """The running mean of some parameters.

    Parameters
    ----------
    parameters : sequence of Tensor
    """

    def __init__(self, parameters: Sequence[Tensor]) -> None:
        self._parameters = parameters
        self.mean = [torch.zeros_like(p) for p in parameters]

    def add(self, share: float | Tensor) -> None:
        """Let the present values enter the mean with this share, one for all or one per network of a stack."""
        for m, p in zip(self.mean, self._parameters, strict=True):
            of_each = share if isinstance(share, float) else share.to(p.dtype).view(-1, *[1] * (p.ndim - 1))
            m.lerp_(p.detach(), of_each)
