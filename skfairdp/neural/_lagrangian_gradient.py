"""The primal step of PF-LD as a released gradient: on all rows, or on a secret Poisson sample of them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from skfairdp.neural._centred import FusedLayers, RowGradients, centred_norms, row_gradients
from skfairdp.neural._clipping import _looped_gradients, _vectorized_gradients, fused_layers
from skfairdp.neural._constraints import FairnessConstraints
from skfairdp.neural._pfld_plan import PFLDPlan
from skfairdp.privacy import NoiseSource, PoissonSample

__all__ = ["ConstraintGradient"]

Cell = tuple[int, int]  # a constraint, and one of its cells

_CHUNK = 8192
_KEPT = 5e7  # numbers of prepared rows that may stay in memory between the two passes


@dataclass(frozen=True)
class ConstraintGradient:
    """Noisy gradients of ``Σ_a λ_a (mean of h in group a - mean of h)``.

    Each row contributes its centred gradient, times a weight that its group picks. Centred gradients, their clipping
    bound (by default the largest there is: no bias) and the weights of all groups are public; which weight a row has is
    not. (Rows with the largest and the smallest weight of their cell define the sensitivity; signs never depend on
    private violations.)

    Parameters
    ----------
    X : Tensor of shape (n_rows, ...)
    y : Tensor of int of shape (n_rows,)
    groups : Tensor of int of shape (n_rows,)
        Private.
    constraints : FairnessConstraints
    plan : PFLDPlan
    source : NoiseSource
    clip : float or None
        Clipping bound of centred gradients; None takes the largest norm of each cell.
    n_components : int or None
        Project what is released on so many principal directions of the public centred gradients.
    fused : bool or None
    vectorized : bool
    dtype : torch.dtype
        Of the parameters.
    """

    X: Tensor
    y: Tensor
    groups: Tensor
    constraints: FairnessConstraints
    plan: PFLDPlan
    source: NoiseSource
    clip: float | None = None
    n_components: int | None = None
    fused: bool | None = None
    vectorized: bool = True
    dtype: torch.dtype = torch.float32

    def full(self, module: nn.Module, weights: Tensor) -> Tensor:
        """Release from all rows; weights λ/size of shape (n_groups, n_cells, n_constraints), result flat."""
        chunks = list(torch.arange(len(self.X), device=self.X.device).split(_CHUNK))
        keep = len(self.X) * sum(p.numel() ** 0.5 for p in module.parameters()) < _KEPT
        cells = self.constraints.cells
        parts = [_Rows(partial(self._rows, module, chunk), keep) for chunk in chunks]
        means = self._mean_gradients(
            [(part, cells[chunk]) for part, chunk in zip(parts, chunks, strict=True)], cells.shape[1]
        )
        norms = torch.cat([
            centred_norms(part, cells[chunk], means) for part, chunk in zip(parts, chunks, strict=True)
        ])
        bounds = self._bounds(norms, cells)
        radius = self._radius(weights, bounds)
        if not np.isfinite(radius):
            return torch.zeros_like(next(iter(means.values())))  # the public part has diverged
        mine = self._of_group(weights, self.groups, cells) * _factors(norms, bounds, cells)
        total = -_mean_part(mine, cells, means)
        for part, chunk in zip(parts, chunks, strict=True):
            total += part.weighted_sum(mine[chunk])
        return self._released(total, radius, module)

    def sampled(self, module: nn.Module, weights: Tensor, public: Tensor, *, with_loss: bool = False) -> Tensor:
        """Release from a Poisson sample, which shares one forward and one backward with a public batch.

        ``public`` are the positions of the public batch, independent of the sample. It gives the means that gradients
        are centred by, their bounds, the part of the constraint's gradient that needs no group, and, ``with_loss``, the
        gradient of the mean cross-entropy, which is then part of the result.
        """
        n, k = len(self.X), len(self.constraints.kinds)
        private = torch.from_numpy(PoissonSample(self.plan.sampling_probability).draw(n, self.source))
        both = torch.cat([public, private.to(public.device)])
        size = len(public)
        rows = self._rows(module, both, with_loss)
        cells = self.constraints.cells[both]
        means = self._mean_gradients([(rows, cells[:size])], k + with_loss)
        norms = centred_norms(rows, cells, means)
        bounds = self._bounds(norms[:size], cells[:size])
        radius = self._radius(weights, bounds)
        middle = (weights.amax(0) + weights.amin(0)) / 2
        part = middle[cells, self._columns]
        mine = torch.cat([  # what needs no group, from public rows; what does, centred, from the sample
            part[:size] * (n / size),
            (self._of_group(weights, self.groups[both[size:]], cells[size:]) - part[size:])
            / self.plan.sampling_probability,
        ]) * _factors(norms, bounds, cells)
        if not np.isfinite(radius):
            mine, radius = torch.zeros_like(mine), 0.0
        everything = mine
        if with_loss:
            of_loss = torch.zeros_like(mine[:, :1])
            of_loss[:size] = 1 / size
            everything = torch.cat([mine, of_loss], dim=1)
        total = rows.weighted_sum(everything) - _mean_part(mine, cells, means)
        return self._released(total, radius, module)

    # ------------------------------------------------------------------ parts

    def _rows(self, module: nn.Module, positions: Tensor, with_loss: bool = False) -> RowGradients:
        y = self.y[positions]

        def slopes(logits: Tensor) -> Tensor:
            probabilities = torch.softmax(logits, dim=1)
            columns = self.constraints.slopes(probabilities, y)
            if not with_loss:
                return columns
            target = nn.functional.one_hot(y, logits.shape[1]).to(logits.dtype)
            return torch.cat([columns, (probabilities - target)[:, None]], dim=1)

        return row_gradients(module, self.X[positions], slopes, self._layers(module), vectorized=self.vectorized)

    def _layers(self, module: nn.Module) -> FusedLayers | None:
        if self._seen.get("module") is not module:  # walking through a module takes as long as a small batch
            self._seen.update(module=module, layers=None if self.fused is False else fused_layers(module))
        return self._seen["layers"]

    @cached_property
    def _seen(self) -> dict[str, Any]:
        return {}

    @cached_property
    def _pairs(self) -> list[tuple[int, int]]:
        """The cells that each constraint compares rows in."""
        lines = self.constraints.cells_of_stratum.tolist()
        return sorted({(c, cell) for line in lines for c, cell in enumerate(line)})

    @cached_property
    def _columns(self) -> Tensor:
        return torch.arange(len(self.constraints.kinds), device=self.X.device)

    def _mean_gradients(self, parts: list[tuple[RowGradients, Tensor]], n_columns: int) -> dict[Cell, Tensor]:
        """Mean gradient of each constraint in each of its cells, over (the first) rows that come in parts."""
        means: dict[Cell, Tensor] = {}
        for c, cell in self._pairs:
            inside = [cells[:, c] == cell for _, cells in parts]
            size = max(1, sum(int(here.sum()) for here in inside))
            total = None
            for (rows, cells), here in zip(parts, inside, strict=True):
                weights = torch.zeros(len(cells), n_columns, dtype=self.dtype, device=cells.device)
                weights[:, c] = here / size
                value = rows.weighted_sum(weights)
                total = value if total is None else total + value
            assert total is not None
            means[c, cell] = total
        return means

    def _bounds(self, norms: Tensor, cells: Tensor) -> Tensor:
        """Clipping bound of each cell, shape (n_cells, n_constraints): given, or the largest public norm."""
        bounds = torch.zeros(self.constraints.n_cells, norms.shape[1], dtype=norms.dtype, device=norms.device)
        bounds.scatter_reduce_(0, cells, norms, "amax")
        return bounds if self.clip is None else torch.full_like(bounds, self.clip)

    def _radius(self, weights: Tensor, bounds: Tensor) -> float:
        """Half the sensitivity: the norm that the centred contribution of one row cannot exceed."""
        reach = (weights.amax(0) - weights.amin(0)) / 2 * bounds  # (n_cells, n_constraints)
        return float(reach[self.constraints.cells_of_stratum, self._columns].sum(1).max())

    def _of_group(self, weights: Tensor, groups: Tensor, cells: Tensor) -> Tensor:
        return weights[groups[:, None], cells, self._columns]

    def _released(self, total: Tensor, radius: float, module: nn.Module) -> Tensor:
        noisy = torch.from_numpy(self.plan.release_gradient(total.double().cpu().numpy(), radius, self.source))
        noisy = noisy.to(total)
        return noisy if self.n_components is None else self._projected(noisy, module)

    def _projected(self, gradient: Tensor, module: nn.Module) -> Tensor:
        assert self.n_components is not None
        some = torch.linspace(0, len(self.X) - 1, min(len(self.X), max(256, 2 * self.n_components))).long()
        some = some.to(self.X.device).unique()
        form = _vectorized_gradients if self.vectorized else _looped_gradients
        with torch.no_grad():
            slopes = self.constraints.slopes(torch.softmax(module(self.X[some]), dim=1), self.y[some])
        spans = []
        for c in range(slopes.shape[1]):
            parts = form(module, lambda out, slope: (out * slope).sum(1), self.X[some], slopes[:, c])
            rows = torch.cat([g.flatten(1) for g in parts.values()], dim=1)
            for cell in self.constraints.cells[some, c].unique():
                here = rows[self.constraints.cells[some, c] == cell]
                spans.append(here - here.mean(0))
        span = torch.cat(spans).double()
        values, vectors = torch.linalg.eigh(span @ span.T)
        top = slice(max(0, len(values) - self.n_components), None)
        usable = values[top] > values[-1] * 1e-10
        directions = (vectors[:, top] / values[top].clamp_min(1e-300).sqrt())[:, usable].T @ span
        return (directions.T @ (directions @ gradient.double())).to(gradient)


class _Rows:
    """Gradients of a chunk of rows, made once and kept, or made again whenever asked for."""

    def __init__(self, make: Callable[[], RowGradients], keep: bool) -> None:
        self._make, self._keep = make, keep
        self._kept: RowGradients | None = None

    def _get(self) -> RowGradients:
        if not self._keep:
            return self._make()
        if self._kept is None:
            self._kept = self._make()
        return self._kept

    def squared_norms(self) -> Tensor:
        return self._get().squared_norms()

    def weighted_sum(self, weights: Tensor) -> Tensor:
        return self._get().weighted_sum(weights)

    def inner(self, column: int, gradient: Tensor) -> Tensor:
        return self._get().inner(column, gradient)


def _factors(norms: Tensor, bounds: Tensor, cells: Tensor) -> Tensor:
    """min(1, bound / norm), rounded so that no contribution passes its bound."""
    mine = bounds[cells, torch.arange(cells.shape[1], device=cells.device)]
    return (mine * (1 - 1e-5) / norms.clamp_min(1e-30)).clamp_max(1.0)


def _mean_part(mine: Tensor, cells: Tensor, means: dict[Cell, Tensor]) -> Tensor:
    parts = [mean * mine[:, c].dot((cells[:, c] == cell).to(mine.dtype)) for (c, cell), mean in means.items()]
    return parts[0] if len(parts) == 1 else torch.stack(parts).sum(0)
