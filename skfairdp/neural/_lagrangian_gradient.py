"""The primal step of PF-LD as a released gradient: on all rows, or on a secret Poisson sample of them."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from skfairdp.neural._centred import RowGradients, centred_norms, row_gradients
from skfairdp.neural._clipping import _looped_gradients, _vectorized_gradients
from skfairdp.neural._constraints import FairnessConstraints
from skfairdp.neural._pfld_plan import PFLDPlan
from skfairdp.privacy import NoiseSource

__all__ = ["ConstraintGradient"]

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

    def full(self, module: nn.Module, weights: Tensor) -> Tensor:
        """Release from all rows; weights λ/size of shape (n_groups, n_cells, n_constraints), result flat."""
        kept: list[RowGradients] = []
        chunks = list(torch.arange(len(self.X), device=self.X.device).split(_CHUNK))
        keep = len(self.X) * sum(p.numel() ** 0.5 for p in module.parameters()) < _KEPT

        def rows_of(i: int) -> RowGradients:
            return kept[i] if keep and i < len(kept) else self._rows(module, chunks[i])

        means = self._no_means(module)
        sizes = {key: int((self.constraints.cells[:, key[0]] == key[1]).sum()) for key in means}
        for i, chunk in enumerate(chunks):
            rows = rows_of(i)
            if keep:
                kept.append(rows)
            self._add_means(rows, self.constraints.cells[chunk], sizes, means)
        cells = self.constraints.cells
        norms = torch.cat([centred_norms(rows_of(i), cells[chunk], means) for i, chunk in enumerate(chunks)])
        bounds = self._bounds(norms, cells)
        radius = self._radius(weights, bounds)
        if not np.isfinite(radius):
            return torch.zeros_like(next(iter(means.values())))  # the public part has diverged
        mine = self._of_group(weights, self.groups, cells) * _factors(norms, bounds, cells)
        total = torch.zeros_like(next(iter(means.values())))
        for i, chunk in enumerate(chunks):
            total += rows_of(i).weighted_sum(mine[chunk])
        total -= _mean_part(mine, cells, means)
        return self._released(total, radius, module)

    def sampled(self, module: nn.Module, weights: Tensor, public: Tensor, loss_slopes: bool = True) -> Tensor:
        """Loss gradient on a public batch plus a release from a Poisson sample, in one forward and one backward.

        ``public`` are the positions of the public batch, independent of the sample. It gives the loss, the means that
        gradients are centred by, their bounds, and the part of the constraint's gradient that needs no group.
        """
        n, k = len(self.X), len(self.constraints.kinds)
        private = torch.from_numpy(np.flatnonzero(self.source.bernoulli(self.plan.sampling_probability, n)))
        both = torch.cat([public, private.to(public.device)])
        size = len(public)
        rows = self._rows(module, both, loss=True)
        cells = self.constraints.cells[both]
        of_public = torch.zeros(len(both), 1, dtype=weights.dtype, device=weights.device)
        of_public[:size] = 1.0
        means = self._no_means(module)
        sizes = {key: int((cells[:size, key[0]] == key[1]).sum()) for key in means}
        self._add_means(rows, cells, sizes, means, of_public)
        norms = centred_norms(rows, cells, means)
        bounds = self._bounds(norms[:size], cells[:size])
        radius = self._radius(weights, bounds)
        middle = (weights.amax(0) + weights.amin(0)) / 2
        part = middle[cells, torch.arange(k, device=cells.device)]
        mine = torch.cat([
            part[:size] * (n / size),
            (self._of_group(weights, self.groups[both[size:]], cells[size:]) - part[size:])
            / self.plan.sampling_probability,
        ]) * _factors(norms, bounds, cells)
        if not np.isfinite(radius):
            mine, radius = torch.zeros_like(mine), 0.0
        total = rows.weighted_sum(torch.cat([mine, of_public / size], dim=1)) - _mean_part(mine, cells, means)
        return self._released(total, radius, module)

    # ------------------------------------------------------------------ parts

    def _rows(self, module: nn.Module, positions: Tensor, loss: bool = False) -> RowGradients:
        y = self.y[positions]

        def slopes(logits: Tensor) -> Tensor:
            probabilities = torch.softmax(logits, dim=1)
            columns = self.constraints.slopes(probabilities, y)
            if not loss:
                return columns
            target = nn.functional.one_hot(y, logits.shape[1]).to(logits.dtype)
            return torch.cat([columns, (probabilities - target)[:, None]], dim=1)

        return row_gradients(module, self.X[positions], slopes, fused=self.fused, vectorized=self.vectorized)

    def _no_means(self, module: nn.Module) -> dict[tuple[int, int], Tensor]:
        size = sum(p.numel() for p in module.parameters() if p.requires_grad)
        pairs = {(c, int(s)) for line in self.constraints.cells_of_stratum for c, s in enumerate(line.tolist())}
        return {pair: self.X.new_zeros(size, dtype=_dtype(module)) for pair in sorted(pairs)}

    def _add_means(
        self,
        rows: RowGradients,
        cells: Tensor,
        sizes: dict[tuple[int, int], int],
        means: dict[tuple[int, int], Tensor],
        of_public: Tensor | None = None,
    ) -> None:
        for (c, cell), mean in means.items():
            if sizes[c, cell]:
                here = (cells[:, c] == cell).to(mean.dtype) / sizes[c, cell]
                if of_public is not None:
                    here = here * of_public[:, 0]
                columns = len(self.constraints.kinds) + (of_public is not None)
                mean += rows.weighted_sum(here[:, None] * (torch.arange(columns, device=here.device) == c))

    def _bounds(self, norms: Tensor, cells: Tensor) -> Tensor:
        """Clipping bound of each cell, shape (n_cells, n_constraints): given, or the largest public norm."""
        bounds = torch.zeros(self.constraints.n_cells, norms.shape[1], dtype=norms.dtype, device=norms.device)
        bounds.scatter_reduce_(0, cells, norms, "amax")
        return bounds if self.clip is None else torch.full_like(bounds, self.clip)

    def _radius(self, weights: Tensor, bounds: Tensor) -> float:
        """Half the sensitivity: the norm that the centred contribution of one row cannot exceed."""
        reach = (weights.amax(0) - weights.amin(0)) / 2 * bounds  # (n_cells, n_constraints)
        columns = torch.arange(bounds.shape[1], device=bounds.device)
        return float(reach[self.constraints.cells_of_stratum, columns].sum(1).max())

    def _of_group(self, weights: Tensor, groups: Tensor, cells: Tensor) -> Tensor:
        return weights[groups[:, None], cells, torch.arange(cells.shape[1], device=cells.device)]

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


def _factors(norms: Tensor, bounds: Tensor, cells: Tensor) -> Tensor:
    """min(1, bound / norm), rounded so that no contribution passes its bound."""
    mine = bounds[cells, torch.arange(cells.shape[1], device=cells.device)]
    return (mine * (1 - 1e-5) / norms.clamp_min(1e-30)).clamp_max(1.0)


def _mean_part(mine: Tensor, cells: Tensor, means: dict[tuple[int, int], Tensor]) -> Tensor:
    parts = [mean * mine[cells[:, c] == cell, c].sum() for (c, cell), mean in means.items()]
    return torch.stack(parts).sum(0)


def _dtype(module: nn.Module) -> torch.dtype:
    return next(p.dtype for p in module.parameters() if p.requires_grad)


