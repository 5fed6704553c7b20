"""The Lagrangian-dual trainer: a network held to fairness constraints by multipliers that follow their violations.

``J(θ) + Σ λ_a (mean of h in group a - mean of h)``, minimised over θ, maximised over λ in turns (F-LD, Tran, Fioretto
& Van Hentenryck 2021, Algorithm 1, with equalities: a multiplier has a sign of its own, so that no absolute value of
anything private is taken). Whatever is read of the groups goes through a :class:`PFLDPlan`, which adds no noise where
nobody asked for privacy.
"""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from skfairdp._networks._training import Network
from skfairdp.fairness import FairnessConstraints
from skfairdp.lagrangian._constraint_gradient import ConstraintGradient
from skfairdp.lagrangian._dual_ascent import dual_schedule, first_dual_step
from skfairdp.lagrangian._plan import PFLDPlan
from skfairdp.privacy import NoiseSource
from skfairdp.utils import progress_bar

__all__ = ["LagrangianTraining", "train_lagrangian"]

Array = NDArray[np.float64]
_WALK = 0.5  # standard deviation that noise may give a multiplier


@dataclass(frozen=True)
class LagrangianTraining:
    """How to train; all of it public.

    Parameters
    ----------
    epochs : float or None
        Passes over the rows. None is 20, and as many more as 2000 steps take.
    batch_size : int
    lr : float
        Step size of Adam.
    weight_decay : float
    lam_max : float
        Multipliers stay in [-lam_max, lam_max].
    dual_step : float or None
        How far a multiplier moves for a violation of 1 in the first of the dual steps. Later ones are shorter, the last
        of n a share 1/n of it: large steps reach large multipliers, small ones settle. None is 10 (1 for
        several notions at once, which may contradict each other: multipliers then grow for as long as they are moved),
        or as much less as keeps the standard deviation of a multiplier that follows nothing but noise at 0.5.
    average_last : float
        Share of the last iterates whose average is kept.
    violations : {"predictions", "probabilities"}
        Whether multipliers follow the classes that are predicted or their probabilities, which is what the primal steps
        can differentiate. (Cotter et al. 2019: softened rates can agree while the predictions stay apart.)
    clip : float or None
    n_components : int or None
        See :class:`ConstraintGradient`.
    seed : int
        Public randomness: batches, dropout.
    verbose : int

    Examples
    --------
    >>> from skfairdp.lagrangian import LagrangianTraining
    >>> LagrangianTraining(epochs=2, batch_size=100).steps(1000)
    20
    """

    epochs: float | None = None
    batch_size: int = 256
    lr: float = 1e-3
    weight_decay: float = 0.0
    lam_max: float = 5.0
    dual_step: float | None = None
    average_last: float = 0.25
    violations: str = "predictions"
    clip: float | None = None
    n_components: int | None = None
    seed: int = 0
    verbose: int = 0

    def steps(self, n_rows: int) -> int:
        """Steps in so many passes."""
        a_pass = n_rows / min(self.batch_size, n_rows)
        return max(1, round(self.epochs * a_pass)) if self.epochs is not None else max(2000, round(20 * a_pass))


def train_lagrangian(
    network: Network,
    X: Array,
    y: NDArray[np.int64],
    groups: NDArray[np.int64],
    constraints: FairnessConstraints,
    counts: Array,
    plan: PFLDPlan,
    source: NoiseSource,
    training: LagrangianTraining,
    *,
    membership: Array | None = None,
) -> tuple[nn.Module, Array]:
    """Train a copy of a network, and return it with its multipliers.

    Parameters
    ----------
    network : Network
        From :func:`prepare_network`.
    X : ndarray of shape (n_rows, n_features)
    y : ndarray of int of shape (n_rows,)
        Rows and class codes; public where a plan with noise is to protect the groups.
    groups : ndarray of int of shape (n_rows,)
        Private.
    constraints : FairnessConstraints
    counts : ndarray of shape (n_groups, n_cells)
        Sizes as released.
    plan : PFLDPlan
    source : NoiseSource
    training : LagrangianTraining
    membership : ndarray of shape (n_rows, n_groups) or None, default=None
        Public estimates of the groups of the rows, for the primal steps, which then release nothing. Without privacy
        the groups themselves. None releases gradients instead, as the plan says.

    Returns
    -------
    module : nn.Module
        On the CPU, in evaluation mode.
    multipliers : ndarray of shape (n_groups, n_cells, n_constraints)

    Examples
    --------
    F-LD, without privacy: the groups are their own estimates.

    >>> import numpy as np
    >>> import torch
    >>> from skfairdp._networks import prepare_network
    >>> from skfairdp.fairness import FairnessConstraints
    >>> from skfairdp.lagrangian import LagrangianTraining, PFLDPlan, train_lagrangian
    >>> from skfairdp.privacy import NoiseSource
    >>> rng = np.random.default_rng(0)
    >>> groups = rng.integers(2, size=600)
    >>> X = rng.normal(size=(600, 2)) + groups[:, None]
    >>> y = (X[:, 0] > 0.5).astype(int)
    >>> network = prepare_network("mlp", 2, 2, hidden=(4,), seed=0, device="cpu", owner="F-LD")
    >>> parity = FairnessConstraints(["demographic_parity"], y, 2)
    >>> plan, source = PFLDPlan.without_privacy(n_groups=2, primal_steps=1, dual_steps=30), NoiseSource()
    >>> counts = plan.release_counts(groups, np.zeros(600, dtype=int), 1, source)
    >>> net, multipliers = train_lagrangian(network, X, y, groups, parity, counts, plan, source,
    ...                                     LagrangianTraining(epochs=30, batch_size=50, lr=0.01),
    ...                                     membership=np.eye(2)[groups])
    >>> multipliers.shape, bool(multipliers[1] > 0 > multipliers[0])
    ((2, 1, 1), True)
    """
    module = deepcopy(network.module).to(network.device)
    devices = [network.device] if network.device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(training.seed)
        loop = _Loop(
            module,
            network,
            network.tensor(X),
            torch.from_numpy(np.array(y)).to(network.device),
            groups,
            constraints,
            counts,
            plan,
            source,
            training,
            membership,
        )
        multipliers = loop.run()
    # what a module may have put on itself while it saw the rows stays behind
    result = deepcopy(network.module)
    result.load_state_dict({name: value.cpu() for name, value in module.state_dict().items()})
    return result.eval(), multipliers


class _Loop:
    def __init__(
        self,
        module: nn.Module,
        network: Network,
        X: Tensor,
        y: Tensor,
        groups: NDArray[np.int64],
        constraints: FairnessConstraints,
        counts: Array,
        plan: PFLDPlan,
        source: NoiseSource,
        training: LagrangianTraining,
        membership: Array | None,
    ) -> None:
        self.module, self.X, self.y, self.groups, self.constraints = module, X, y, groups, constraints.of_labels(y)
        self.plan, self.source, self.training = plan, source, training
        self.parameters = [p for p in module.parameters() if p.requires_grad]
        self.sizes = constraints.sizes(counts)
        self.multipliers = np.zeros_like(self.sizes)
        self.first_step = self._first_step()
        self.dtype = self.parameters[0].dtype
        self.membership = None if membership is None else torch.from_numpy(membership).to(X.device, self.dtype)
        self.pulls: Tensor | None = None  # weight of each row's h in the loss
        self.held: Tensor | None = None  # last released gradient
        self.gradient = None
        if membership is None:
            self.gradient = ConstraintGradient(
                X,
                y,
                torch.from_numpy(np.array(groups)).to(X.device),
                self.constraints,
                plan,
                source,
                training.clip,
                training.n_components,
                network.fused,
                network.vectorized,
                self.dtype,
            )

    def run(self) -> Array:
        n, training, plan = len(self.X), self.training, self.plan
        steps = max(training.steps(n), plan.dual_steps + 1)
        if self.gradient is not None:
            steps = max(steps, plan.primal_steps)
        sampled = self.gradient is not None and plan.sampling_probability < 1
        at_once = sampled and plan.primal_steps == steps  # then loss and release share a pass, and nothing is held
        dual_at = dual_schedule(steps, plan.dual_steps)
        primal_at = {r * steps // plan.primal_steps for r in range(plan.primal_steps)} if self.gradient else set()
        optimizer = torch.optim.Adam(self.parameters, lr=training.lr, weight_decay=training.weight_decay)
        first_averaged = steps - max(1, round(training.average_last * steps)) if training.average_last else steps
        mean: list[Tensor] = []
        batches = _batches(n, min(training.batch_size, n), self.X.device)
        for t in progress_bar(range(steps), desc="Lagrangian dual", verbose=training.verbose):
            if t in dual_at:
                self._dual_step(dual_at[t])
            rows = next(batches)
            if at_once:
                self._set(self._release(rows, with_loss=True))
            else:
                if t in primal_at:
                    self.held = self._release(rows if sampled else None) if np.any(self.multipliers) else None
                self._public_gradient(rows)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            if t >= first_averaged:
                weight = 1.0 / (t - first_averaged + 1)
                values = [p.detach() for p in self.parameters]
                mean = (
                    [v.clone() for v in values]
                    if not mean
                    else [m.lerp_(v, weight) for m, v in zip(mean, values, strict=True)]
                )
        with torch.no_grad():
            for p, value in zip(self.parameters, mean, strict=False):
                p.copy_(value)
        self.module.eval()
        return self.multipliers

    def _first_step(self) -> Array:
        """Length of the first dual step, for every multiplier."""
        if self.training.dual_step is not None:
            return np.full_like(self.sizes, self.training.dual_step)
        noise = self.plan.largest_dual_noise(self.sizes.shape[2]) / self.sizes
        # steps that shrink to nothing add up a third of the variance that as many full ones would
        walked = noise * np.sqrt(max(1, self.plan.dual_steps) / 3)
        return np.minimum(first_dual_step(self.constraints), _WALK / np.maximum(walked, 1e-12))

    @torch.no_grad()
    def _dual_step(self, share: float) -> None:
        """λ ← clip(λ + step · violation), the violation a noisy sum over a noisy size."""
        self.module.eval()
        logits = torch.cat([self.module(part) for part in self.X.split(8192)])
        if self.training.violations == "predictions":
            probabilities = nn.functional.one_hot(logits.argmax(1), logits.shape[1]).double()
        else:
            probabilities = torch.softmax(logits.double(), dim=1)
        values = self.constraints.values(probabilities, self.y).cpu().numpy()
        values = np.nan_to_num(values)
        sums = self.plan.release_violations(
            values, self.constraints.cells.cpu().numpy(), self.constraints.n_cells, self.groups, self.source
        )
        bound = self.training.lam_max
        self.multipliers = np.clip(self.multipliers + share * self.first_step * sums / self.sizes, -bound, bound)
        if self.membership is not None:
            self.pulls = self._pulls()

    def _pulls(self) -> Tensor:
        """Each row's weight: the multipliers of its estimated group over their sizes, centred in its cell."""
        assert self.membership is not None
        cells = self.constraints.cells
        weights = self._weights()
        pulls = torch.zeros(cells.shape, dtype=self.dtype, device=cells.device)
        for c in range(cells.shape[1]):
            for cell in range(self.constraints.n_cells):
                here = cells[:, c] == cell
                if here.any():
                    mine = self.membership[here] @ weights[:, cell, c]
                    pulls[here, c] = mine - mine.mean()
        return pulls * len(self.X)

    def _weights(self) -> Tensor:
        return torch.from_numpy(self.multipliers / self.sizes).to(self.X.device, self.dtype)

    def _release(self, public: Tensor | None, *, with_loss: bool = False) -> Tensor:
        assert self.gradient is not None
        self.module.eval()
        if public is None:
            return self.gradient.full(self.module, self._weights())
        return self.gradient.sampled(self.module, self._weights(), public, with_loss=with_loss)

    def _public_gradient(self, rows: Tensor) -> None:
        """Gradient of the loss on a batch, with the pulls or the held release."""
        self.module.train()
        y = self.y[rows]
        logits = self.module(self.X[rows])
        with torch.no_grad():
            probabilities = torch.softmax(logits, dim=1)
            slope = (probabilities - nn.functional.one_hot(y, logits.shape[1])) / len(rows)
            if self.pulls is not None:
                slopes = self.constraints.slopes(probabilities, y)
                slope += torch.einsum("nc,nck->nk", self.pulls[rows], slopes) / len(rows)
        found = torch.autograd.grad(logits, self.parameters, grad_outputs=slope, allow_unused=True)
        for p, g in zip(self.parameters, found, strict=True):
            p.grad = torch.zeros_like(p) if g is None else g
        if self.held is not None:
            self._set(self.held, add=True)

    def _set(self, flat: Tensor, *, add: bool = False) -> None:
        for p, piece in zip(self.parameters, flat.split([p.numel() for p in self.parameters]), strict=True):
            value = piece.view_as(p)
            p.grad = p.grad + value if add and p.grad is not None else value.clone()


def _batches(n: int, size: int, device: torch.device) -> Iterator[Tensor]:
    """Batches of ``size`` rows without end: shuffled passes, the rest of a pass left out."""
    while True:
        order = torch.randperm(n).to(device)
        yield from order[: n - n % size].split(size)
