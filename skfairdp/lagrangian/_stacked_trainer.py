"""Many networks, each held to fairness constraints by multipliers of its own, as one tensor program.

Every network k minimises ``loss + Σ_a λ_{k,a} (mean of h in group a - mean of h)`` over its own rows while its
multipliers follow its own violations (F-LD, Tran, Fioretto & Van Hentenryck 2021, Algorithm 1, with equalities). As in
:func:`train_stacked`, no operation mixes two networks and all shapes and schedules depend on public sizes only: a
network comes out the same, bit for bit, whatever rows the others hold. Nothing here adds noise.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from skfairdp._networks._mlp import StackedMLP
from skfairdp._networks._stacked import batch_stream
from skfairdp.fairness import FairnessConstraints
from skfairdp.lagrangian._dual_ascent import dual_schedule, first_dual_step
from skfairdp.utils import progress_bar

__all__ = ["StackedDual", "StackedParity", "train_stacked_lagrangian"]

Array = NDArray[np.float64]
# Floats of one hidden activation while violations are measured.
_ACTIVATION_FLOATS = 2**23


@dataclass(frozen=True)
class StackedDual:
    """How to train a stack; all of it public.

    Parameters
    ----------
    epochs : int
        Passes of each network over its own rows.
    batch_size : int
    lr : float
        Step size of Adam.
    weight_decay : float
    lam_max : float
        Multipliers stay in [-lam_max, lam_max].
    dual_step : float or None
        How far a multiplier moves for a violation of 1 in the first of the dual steps. Later ones are shorter, the last
        of n a share 1/n of it. None is 10, or 1 for several notions at once.
    dual_steps : int
        Moves of the multipliers, evenly over the training.
    average_last : float
        Share of the last iterates whose average is kept.
    violations : {"predictions", "probabilities"}
        What multipliers follow; generalized demographic parity always follows probabilities.

    Examples
    --------
    >>> from skfairdp.lagrangian import StackedDual
    >>> StackedDual(epochs=5, batch_size=10).lr
    0.001
    """

    epochs: int = 30
    batch_size: int = 32
    lr: float = 1e-3
    weight_decay: float = 0.0
    lam_max: float = 5.0
    dual_step: float | None = None
    dual_steps: int = 40
    average_last: float = 0.25
    violations: str = "predictions"


class StackedParity:
    """Constraints of many networks: the group weights of their rows, sizes, multipliers and what these pull.

    Parameters
    ----------
    constraints : FairnessConstraints
        Of all rows of the stack.
    y : Tensor of int of shape (n_rows,)
    membership : ndarray of shape (n_rows, n_groups)
        Weight of each row in each group: 0 and 1 where groups are known, else estimates, which may be negative.
    sizes : ndarray of int of shape (n_networks,)
        Rows of each network, one network after the other.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from skfairdp.fairness import FairnessConstraints
    >>> from skfairdp.lagrangian import StackedParity
    >>> y, groups = torch.tensor([0, 1, 0, 1]), np.eye(2)[[0, 1, 0, 1]]
    >>> parity = StackedParity(FairnessConstraints(["demographic_parity"], y, 2), y, groups, np.array([2, 2]))
    >>> parity.violations(torch.tensor([[0.0], [1.0], [0.5], [0.5]])).flatten().tolist()
    [-0.5, 0.5, 0.0, 0.0]
    """

    def __init__(
        self, constraints: FairnessConstraints, y: Tensor, membership: Array, sizes: NDArray[np.int64]
    ) -> None:
        self.constraints, self.y = constraints, y
        device = y.device
        self.membership = torch.as_tensor(np.array(membership), dtype=torch.float64, device=device)
        self.n_networks, self.rows_of = len(sizes), torch.as_tensor(sizes, device=device)
        self.network = torch.repeat_interleave(torch.arange(len(sizes), device=device), self.rows_of)
        self.index = self.network[:, None] * constraints.n_cells + constraints.cells
        self.n_segments = len(sizes) * constraints.n_cells
        self.counts, self.group_sizes = self._sizes()
        self.multipliers = torch.zeros_like(self.group_sizes)

    @property
    def columns(self) -> int:
        return self.constraints.n_constraints

    def _sums(self, values: Tensor, c: int) -> Tensor:
        """Sums over each network's cells of constraint c, shape (n_segments, ...)."""
        out = torch.zeros(self.n_segments, *values.shape[1:], dtype=torch.float64, device=values.device)
        return out.index_add_(0, self.index[:, c], values)

    def _sizes(self) -> tuple[Tensor, Tensor]:
        """Rows, and weight of each group, by segment: (n_segments, n_constraints[, n_groups])."""
        ones = torch.ones(len(self.y), dtype=torch.float64, device=self.y.device)
        # What no share of a person can be is noise; a group cannot be told from it below twice its size.
        noise = (self.membership - self.membership.clamp(0, 1)).square()
        counts, sizes = [], []
        for c in range(self.columns):
            counts.append(self._sums(ones, c).clamp(min=1.0))
            least = (2 * self._sums(noise, c).sqrt()).clamp(min=1.0)
            sizes.append(torch.maximum(self._sums(self.membership, c), least))
        return torch.stack(counts, 1), torch.stack(sizes, 1)

    def violations(self, values: Tensor) -> Tensor:
        """Mean of h in each group less that of all rows of its cell, (n_segments, n_constraints, n_groups).

        ``values`` is (n_rows, n_constraints).
        """
        values = values.to(torch.float64)
        out = torch.empty_like(self.group_sizes)
        for c in range(self.columns):
            mean = self._sums(values[:, c], c) / self.counts[:, c]
            centred = values[:, c] - mean[self.index[:, c]]
            out[:, c] = self._sums(self.membership * centred[:, None], c) / self.group_sizes[:, c]
        return out

    def follow(self, values: Tensor, step: float, bound: float) -> None:
        """λ ← clip(λ + step · violation)."""
        self.multipliers = (self.multipliers + step * self.violations(values)).clamp(-bound, bound)

    def pulls(self) -> Tensor:
        """Weight of each row's h in the loss of its network, (n_rows, n_constraints), centred in its cell."""
        per_row = torch.empty(len(self.y), self.columns, dtype=torch.float64, device=self.y.device)
        weights = self.multipliers / self.group_sizes
        rows = self.rows_of[self.network].to(torch.float64)
        for c in range(self.columns):
            mine = (self.membership * weights[self.index[:, c], c]).sum(1)
            mean = self._sums(mine, c) / self.counts[:, c]
            per_row[:, c] = (mine - mean[self.index[:, c]]) * rows
        return per_row


def train_stacked_lagrangian(
    net: StackedMLP,
    X: NDArray[np.floating],
    targets: NDArray[np.int64] | Array,
    sizes: NDArray[np.int64],
    seeds: Sequence[int],
    training: StackedDual,
    *,
    parity: StackedParity | None = None,
    start: list[Tensor] | None = None,
    anchor: float = 0.0,
    device: torch.device | str = "cpu",
    progress: bool = False,
) -> tuple[list[Tensor], Tensor | None]:
    """Train one network per entry of ``sizes`` under its own constraints.

    Parameters
    ----------
    net : StackedMLP
    X : ndarray of shape (sum(sizes), n_features)
        The rows of the first network, then those of the second, and so on.
    targets : ndarray of int of shape (sum(sizes),), or of float of shape (sum(sizes), n_classes)
        Class codes, or shares that sum to 1 (they may lie outside [0, 1]).
    sizes : ndarray of int of shape (n_networks,)
    seeds : sequence of int of length n_networks
    training : StackedDual
    parity : StackedParity or None, default=None
        On the device; its multipliers are moved. None trains without constraints.
    start : list of Tensor or None, default=None
        Parameters to start from instead of random ones.
    anchor : float, default=0.0
        Adds ``anchor · ‖θ - start‖²`` to each network's mean loss.
    device : torch.device or str, default="cpu"
    progress : bool, default=False

    Returns
    -------
    params : list of Tensor, on the CPU
        Axis 0 counts the networks. A network without rows keeps its initial parameters.
    multipliers : Tensor of shape (n_networks, n_cells, n_constraints, n_groups), or None

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from skfairdp._networks import StackedMLP
    >>> from skfairdp.fairness import FairnessConstraints
    >>> from skfairdp.lagrangian import StackedDual, StackedParity, train_stacked_lagrangian
    >>> rng = np.random.default_rng(0)
    >>> groups, sizes = rng.integers(2, size=600), np.array([300, 300])
    >>> X = rng.normal(size=(600, 2)) + groups[:, None]
    >>> y = (X[:, 0] > 0.5).astype(int)
    >>> codes = torch.from_numpy(y)
    >>> alike = FairnessConstraints(["demographic_parity"], codes, 2)
    >>> parity = StackedParity(alike, codes, np.eye(2)[groups], sizes)
    >>> params, multipliers = train_stacked_lagrangian(
    ...     StackedMLP(2, (4,), 2), X, y, sizes, [0, 1], StackedDual(epochs=40, lr=0.02), parity=parity)
    >>> multipliers.shape, bool((multipliers[:, 0, 0, 1] > 0).all())
    (torch.Size([2, 1, 1, 2]), True)
    """
    result = [p.clone().to(device) for p in (net.initial(seeds) if start is None else start)]
    if not sizes.any():
        return [p.cpu() for p in result], None if parity is None else _by_network(parity)
    return _Stack(net, result, X, targets, sizes, seeds, training, parity, anchor, device).run(progress)


def _by_network(parity: StackedParity) -> Tensor:
    return parity.multipliers.view(parity.n_networks, -1, *parity.multipliers.shape[1:]).cpu()


class _Stack:
    def __init__(
        self,
        net: StackedMLP,
        result: list[Tensor],
        X: NDArray[np.floating],
        targets: NDArray[np.int64] | Array,
        sizes: NDArray[np.int64],
        seeds: Sequence[int],
        training: StackedDual,
        parity: StackedParity | None,
        anchor: float,
        device: torch.device | str,
    ) -> None:
        self.net, self.result, self.training, self.parity, self.anchor = net, result, training, parity, anchor
        self.rows = torch.as_tensor(X, device=device).to(result[0].dtype)
        self.targets = torch.as_tensor(np.array(targets), device=device)
        if self.targets.is_floating_point():
            self.targets = self.targets.to(result[0].dtype)
        self.sizes, self.seeds, self.device = sizes, seeds, device
        # The optimizer sees one long vector, the networks see views of it.
        self.vector = torch.cat([p.ravel() for p in result])
        self.vector.grad = torch.zeros_like(self.vector)
        self.origin = self.vector.clone()
        self.params, self.gradients = self._views(self.vector), self._views(self.vector.grad)
        self.pulls: Tensor | None = None

    def _views(self, vector: Tensor) -> list[Tensor]:
        lengths = [p.numel() for p in self.result]
        return [part.view_as(p) for part, p in zip(vector.split(lengths), self.result, strict=True)]

    def run(self, progress: bool) -> tuple[list[Tensor], Tensor | None]:
        training = self.training
        optimizer = torch.optim.Adam([self.vector], lr=training.lr, weight_decay=training.weight_decay, fused=True)
        steps = -(-self.sizes // training.batch_size) * training.epochs
        total = int(steps.max())
        dual_at = {} if self.parity is None else dual_schedule(total, training.dual_steps)
        averaged = np.maximum(1, np.rint(training.average_last * steps)).astype(int)
        mean = self._views(torch.zeros_like(self.vector))
        stream = batch_stream(self.sizes, self.seeds, batch_size=training.batch_size, epochs=training.epochs)
        bar = progress_bar(stream, total=total, desc="steps", verbose=int(progress))
        for t, (index, weight, finished) in enumerate(bar):
            if t in dual_at:
                self._dual_step(dual_at[t])
            self._primal_step(index, weight)
            optimizer.step()
            # Each network's last iterates, counted from its own end: one that waits for others is averaged already.
            count = np.where((t >= steps - averaged) & (t < steps), t - steps + averaged + 1, 0)
            if count.any():
                share = torch.as_tensor(np.where(count, 1 / np.maximum(count, 1), 0.0), device=self.device)
                for m, p in zip(mean, self.params, strict=True):
                    m.lerp_(p.detach(), share.to(p.dtype).view(-1, *[1] * (p.ndim - 1)))
            if finished.size:
                done = torch.as_tensor(finished, device=self.device)
                for kept, m in zip(self.result, mean, strict=True):
                    kept[done] = m[done]
        multipliers = None if self.parity is None else _by_network(self.parity)
        return [p.cpu() for p in self.result], multipliers

    @torch.no_grad()
    def _primal_step(self, index: NDArray[np.int64], weight: NDArray[np.float32]) -> None:
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
            self.vector.grad.add_(self.vector - self.origin, alpha=2 * self.anchor)  # type: ignore[union-attr]

    def _constraint_slope(self, proba: Tensor, pulls: Tensor, flat: Tensor, shape: tuple[int, ...]) -> Tensor:
        """Derivative of Σ pull · h by the scores, (networks, classes, rows)."""
        assert self.parity is not None
        constraints = self.parity.constraints
        weights = torch.zeros_like(proba)  # of each class's probability
        for c, column in enumerate(constraints.columns):
            k, power = column.of_class, column.power
            if k is None:
                y = self.parity.y.index_select(0, flat).view(shape)[:, None, :]
                weights.scatter_add_(1, y, -pulls[:, None, :, c] * proba.gather(1, y))
            else:
                weights[:, k] += power * pulls[:, :, c] * proba[:, k] ** power
        return weights - proba * weights.sum(1, keepdim=True)

    @torch.no_grad()
    def _dual_step(self, share: float) -> None:
        parity, training = self.parity, self.training
        assert parity is not None
        proba = self._probabilities()
        soft = parity.constraints.values(proba, parity.y)
        if training.violations == "predictions":
            predicted = torch.nn.functional.one_hot(proba.argmax(1), proba.shape[1]).to(proba.dtype)
            hard = parity.constraints.values(predicted, parity.y)
            # The moments of a distribution of scores are not those of 0 and 1.
            generalized = [c.notion == "generalized_demographic_parity" for c in parity.constraints.columns]
            soft = torch.where(torch.tensor(generalized, device=soft.device), soft, hard)
        first = first_dual_step(parity.constraints) if training.dual_step is None else training.dual_step
        parity.follow(soft, share * first, training.lam_max)
        self.pulls = parity.pulls().to(self.rows.dtype)

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
            x = self.rows[torch.as_tensor(part, device=self.device)]
            _, scores = self.net.forward(self.params, x)
            proba = scores.softmax(dim=1).transpose(1, 2).nan_to_num(nan=0.0)
            keep = torch.as_tensor(mine, device=self.device)
            out[torch.as_tensor(part[mine], device=self.device)] = proba[keep]
        return out
