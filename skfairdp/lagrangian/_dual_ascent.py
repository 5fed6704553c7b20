"""The Lagrangian dual: how to train, multipliers that follow violations, and the primal steps of one network."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from skfairdp._networks import TailAverage, products_of_step, threads_of_steps
from skfairdp._typing import Floats
from skfairdp.fairness import FairnessConstraints, name_of

if TYPE_CHECKING:
    from skfairdp.lagrangian._constraint_gradient import ConstraintGradient

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
    """Multipliers that follow violations: λ ← clip(λ + step · violation); beyond bounds, with w = λ / step + violation,
    λ is step times the difference of w to the nearest point allowed: the method of multipliers (Rockafellar 1976). It
    knows no groups and adds no noise: whoever gives ``violations``, arrays or tensors, has seen to both."""

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
            moved = step * (moved / step - self.project_to_bounds(moved / step, scores))
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


#: Of the largest slope, what counts as nothing. Where slopes cancel, as that of a bias does on as many rows of each
#: class, rounding is left of them, and in its first step Adam makes as much of that as of any other: the processor
#: would decide which way to go, and a later count of answers would tell.
ROUNDING = 2.0**-20


class OneNetwork:
    """A module on its way; see :func:`train_lagrangian`, which has the parameters."""

    def __init__(
        self,
        module: nn.Module,
        X: Tensor,
        constraints: FairnessConstraints,
        training: LagrangianTraining,
        sizes: Floats,
        *,
        membership: Floats | None,
        gradient: "ConstraintGradient | Any",
        optimizer: torch.optim.Optimizer,
        watched: tuple[Tensor, FairnessConstraints] | None = None,
    ) -> None:
        assert (membership is None) != (gradient is None)
        self.module, self.X, self.y, self.constraints = module, X, constraints.y, constraints
        self.training, self.sizes, self.gradient = training, sizes, gradient
        self.watched_X, self.watched = (X, constraints) if watched is None else watched
        self.parameters = [p for p in module.parameters() if p.requires_grad]
        self.dtype = self.parameters[0].dtype
        self.membership = None if membership is None else torch.from_numpy(membership).to(X.device, self.dtype)
        self.row_weights: Tensor | None = None  # weight of each row's h in the loss
        self.weights: Tensor | None = None  # λ/size, None as long as all of them are 0
        self.open_weights: Tensor | None = None  # of each row's h in the part of bounds that needs no group
        self.of_errors = [column.of_class is None for column in constraints.columns]
        # the share of errors of who always answers the most frequent class, and what an error costs beyond it
        self.most_errors = 1.0 - float(torch.bincount(self.y).max()) / len(self.y)
        self.price = 0.0
        self.held: Tensor | None = None  # last released gradient
        steps = max(training.steps(len(X)), training.dual_steps + 1)
        released = 0 if gradient is None else gradient.plan.primal_steps
        self.steps = max(steps, released)
        self.primal_at = {r * self.steps // released for r in range(released)}
        self.from_sample = gradient is not None and gradient.plan.sampling_probability < 1
        # then loss and release share a pass, and nothing is held
        self.at_once = self.from_sample and released == self.steps
        self.optimizer = optimizer
        self.average = TailAverage(module, self.steps, training.average_last)
        self.batches = _batches(len(X), min(training.batch_size, len(X)), X.device)

    @property
    def of_step(self) -> float:
        """How many products a step makes."""
        return products_of_step(self.training.batch_size, self.module)

    def at_work(self) -> AbstractContextManager[None]:
        """Where it is trained: with one thread, unless its steps are large."""
        return threads_of_steps(self.of_step)

    # ------------------------------------------------------------------ dual

    @torch.no_grad()
    def scores(self) -> Floats:
        """The scores h of the rows that multipliers follow."""
        self.module.eval()
        logits = torch.cat([self.module(part) for part in self.watched_X.split(8192)])
        probabilities = torch.softmax(logits.double(), dim=1)
        h = followed_scores(self.watched, probabilities, logits.argmax(1), self.training.violations)
        return self._priced(np.nan_to_num(h.cpu().numpy()))

    def _priced(self, h: Floats) -> Floats:
        """The same scores; errors get dearer while there are more than the most frequent class makes, as errors for
        everybody buy equal accuracy. How many there are in all is no secret: features and labels decide it."""
        if any(self.of_errors):
            self.price = max(0.0, self.price + ERROR_STEP * (float(h[:, self.of_errors].mean()) - self.most_errors))
        return h

    def pull(self, multipliers: Floats) -> None:
        """Let primal steps follow these multipliers."""
        weights = torch.from_numpy(multipliers / self.sizes).to(self.X.device, self.dtype)
        columns = self.constraints.columns
        if self.membership is not None:
            # over the sizes of the estimated groups; centred in a row's cell, but of a bound
            cells = self.constraints.cells
            found = torch.zeros(cells.shape, dtype=self.dtype, device=cells.device)
            for c, column in enumerate(columns):
                for cell in range(0 if column.is_overall else self.constraints.n_cells):
                    here: Any = cells[:, c] == cell
                    if here.any():
                        here = slice(None) if here.all() else here  # without copies of all rows
                        mine = self.membership[here] @ weights[:, cell, c]
                        found[here, c] = mine if column.is_bound else mine - mine.mean()
            found *= len(self.watched_X)  # which the sizes are of
            if self.price > 0:
                found[:, self.of_errors] += self.price
            self.row_weights = found
            of_all = self._open_weights(multipliers, [column.is_overall for column in columns])
            if of_all is not None:
                self.row_weights += of_all
        else:
            weights = self._once(weights)
            self.weights = weights if bool(weights.any()) else None
            self.open_weights = self._open_weights(multipliers, [column.is_bound for column in columns])

    def _once(self, weights: Tensor) -> Tensor:
        """The weights of what is released: all that is asked of a score together, and nothing of all rows."""
        first, place = self.constraints.unique_columns
        if len(first) == len(place):
            return weights
        found = torch.zeros_like(weights)
        for c, column in enumerate(self.constraints.columns):
            if not column.is_overall:
                found[..., first[place[c]]] += weights[..., c]
        return found

    def _open_weights(self, multipliers: Floats, asked: list[bool]) -> Tensor | None:
        """Of ``λ · mean of h in a group`` the part ``λ · mean of h``, row by row; what is released is centred."""
        if not any(asked) or not np.any(multipliers[..., asked]):
            return None
        cells = self.constraints.cells.cpu().numpy()
        found, totals = np.zeros(cells.shape), multipliers.sum(0)
        for c in np.flatnonzero(asked):
            of_cells = np.bincount(cells[:, c], minlength=len(totals))
            total = multipliers[0, :, c] if self.constraints.columns[c].is_overall else totals[:, c]
            found[:, c] = (total * len(cells) / np.maximum(of_cells, 1))[cells[:, c]]
        return torch.from_numpy(found).to(self.X.device, self.dtype)

    # ------------------------------------------------------------------ primal

    def step(self, t: int) -> None:
        """One step of the optimizer on a batch."""
        rows = next(self.batches)
        if self.at_once:
            self._set(self._released(rows, with_loss=True))
            if self._has_open_part:
                found = self._gradients(rows, partial(self._open_slope, rows=rows))
                for p, g in zip(self.parameters, found, strict=True):
                    if g is not None:
                        p.grad = g if p.grad is None else p.grad + g
        else:
            if t in self.primal_at:
                self.held = None if self.weights is None else self._released(rows)
            self._public_gradient(rows)
        slopes = [p.grad for p in self.parameters if p.grad is not None]
        least = ROUNDING * max((float(slope.abs().max()) for slope in slopes if slope.numel()), default=0.0)
        for slope in slopes:
            slope.masked_fill_(slope.abs() <= least, 0.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.average.add(t)

    def finish(self) -> None:
        """Put the mean of the last iterates in the place of the last one."""
        self.average.put()
        self.module.eval()

    def _released(self, rows: Tensor, *, with_loss: bool = False) -> Tensor:
        if self.module.training:  # walking through a module takes as long as a small batch
            self.module.eval()
        weights = self.weights
        if weights is None:
            weights = torch.zeros(self.sizes.shape, dtype=self.dtype, device=self.X.device)
        if not self.from_sample:
            return self.gradient.full(self.module, weights)
        return self.gradient.sampled(self.module, weights, rows, with_loss=with_loss)

    def _public_gradient(self, rows: Tensor) -> None:
        """Gradient of the loss on a batch, with the weights of its rows or the held release."""

        def slope_of(probabilities: Tensor) -> Tensor:
            y = self.y[rows]
            slope: Tensor = (probabilities - nn.functional.one_hot(y, probabilities.shape[1])) / len(rows)
            if self.row_weights is not None:
                slopes = self.constraints.slopes(probabilities, y)
                slope += torch.einsum("nc,nck->nk", self.row_weights[rows], slopes) / len(rows)
            elif self._has_open_part:
                slope += self._open_slope(probabilities, rows)
            return slope

        for p, g in zip(self.parameters, self._gradients(rows, slope_of), strict=True):
            p.grad = torch.zeros_like(p) if g is None else g
        if self.held is not None:
            self._set(self.held, add=True)

    def _gradients(self, rows: Tensor, slope_of: Callable[[Tensor], Tensor]) -> Sequence[Tensor | None]:
        """Of what has these derivatives by the logits of some rows, given their probabilities."""
        self.module.train()
        logits = self.module(self.X[rows])
        with torch.no_grad():
            slope = slope_of(torch.softmax(logits, dim=1))
        return torch.autograd.grad(logits, self.parameters, grad_outputs=slope, allow_unused=True)

    @property
    def _has_open_part(self) -> bool:
        """Whether multipliers ask for something of all rows, whatever their groups."""
        return self.price > 0 or self.open_weights is not None

    def _open_slope(self, probabilities: Tensor, rows: Tensor) -> Tensor:
        """Derivative by the logits of what is asked of all rows, in the mean over these."""
        slopes: Tensor = self.constraints.slopes(probabilities, self.y[rows])
        found: Tensor = self.price * slopes[:, self.of_errors].sum(1) / len(rows)
        if self.open_weights is not None:
            found = found + torch.einsum("nc,nck->nk", self.open_weights[rows], slopes) / len(rows)
        return found

    def _set(self, flat: Tensor, *, add: bool = False) -> None:
        for p, piece in zip(self.parameters, flat.split([p.numel() for p in self.parameters]), strict=True):
            value = piece.view_as(p)
            p.grad = p.grad + value if add and p.grad is not None else value.clone()


def _batches(n: int, size: int, device: torch.device) -> Iterator[Tensor]:
    """Batches of ``size`` rows without end: shuffled passes, the rest of a pass left out."""
    while True:
        yield from torch.randperm(n).to(device)[: n - n % size].split(size)
