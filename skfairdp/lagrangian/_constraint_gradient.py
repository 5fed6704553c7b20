"""The primal step of PF-LD as a released gradient: on all rows, or on a secret Poisson sample of them.

Rows, labels and hence all gradients are public here; a row's group picks the weight of its gradient, and nothing else.
So on two neighbours everything is equal bit by bit but one weight, and what is left to bound is the rounding of the
weighted sums, in double precision. It follows the sizes that are added, ``weight · (A + M)``, A what the positions of
a row give had they not cancelled, M the norm of its cell's mean. :meth:`ConstraintGradient.full` adds a bound of it,
which is public, to the radius. The radius of :meth:`ConstraintGradient.sampled` must not tell who is in the sample. So
that takes no norm of a centred gradient below (A + M)/κ: in pieces of at most 1,024 rows and 2^18 positions, with κ =
1e5, and 500 where there are positions, two sums of private rows then differ by less than 6e-5 of the radius from what
they should.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from skfairdp import _networks
from skfairdp._typing import Floats, Ints, Pair
from skfairdp.fairness import FairnessConstraints
from skfairdp.lagrangian._numpy_mlp import NumpyMLP, PlainRows
from skfairdp.lagrangian._plan import PFLDPlan
from skfairdp.privacy import NoiseSource, PoissonSample

FusedLayers = list[tuple[str, nn.Module]]

_PIECE = 1024


def centred_norms(rows: "RowGradients", cells: Ints, means: dict[Pair, Floats]) -> Floats:
    """Norms of the gradients minus the mean of their cell, shape (n_rows, n_columns with cells).
    Never below the true norm by more than rounding of the last digits: what subtraction may have lost is added back."""
    squared = rows.squared_norms()[:, : cells.shape[1]]
    sizes = rows.squared_sizes()[:, : cells.shape[1]] if rows.positions > 1 else squared
    numbers = max(len(mean) for mean in means.values())
    cross, mean_squared = np.zeros_like(squared), np.zeros_like(squared)
    for (c, cell), mean in means.items():
        here = cells[:, c] == cell
        cross[:, c] += here * rows.inner(c, mean)
        mean_squared[:, c] += here * (mean @ mean)
    lost = (2 * numbers + 64) * 2.0**-52 * (sizes + mean_squared)
    return np.sqrt(np.maximum(squared - 2 * cross + mean_squared, 0) + lost)


class _TorchRows:
    """Gradients of several columns of numbers at each row, by layers with rules or each row's formed, times factors by
    column. One base serves all columns, or each has its own. In double precision, but for sums that are public."""

    def __init__(self, bases: Sequence[Any], factors: Tensor, shapes: dict[str, torch.Size]) -> None:
        self._bases, self._factors, self._shapes = bases, factors, shapes
        self._squared: Floats | None = None

    @property
    def positions(self) -> int:
        """The most positions that a layer sums over within a row."""
        return max(base.positions for base in self._bases)

    @property
    def terms(self) -> int:
        """How many numbers are added up for one of a weighted sum, at most, one after the other."""
        return max(base.terms for base in self._bases) * len(self._bases)

    def squared_norms(self) -> Floats:
        if self._squared is None:
            squared = torch.stack([base.squared_norms() for base in self._bases], 1) * self._factors.square()
            self._squared = squared.cpu().numpy()
        return self._squared

    def squared_sizes(self) -> Floats:
        """The same, had nothing cancelled between the positions of a row: what rounding follows."""
        if self.positions == 1:
            return self.squared_norms()
        sizes = torch.stack([base.squared_sizes() for base in self._bases], dim=1) * self._factors.square()
        return np.asarray(sizes.cpu().numpy())

    def weighted_sum(self, weights: Floats, *, start: int = 0, public: bool = False) -> Floats:
        scaled = torch.from_numpy(weights).to(self._factors.device) * self._factors[start : start + len(weights)]
        per_base = scaled.sum(1, keepdim=True) if len(self._bases) == 1 else scaled
        total: dict[str, Tensor] = {}
        for b, base in enumerate(self._bases):
            if len(self._bases) > 1 and not per_base[:, b].any():
                continue
            found = base.public_sum(per_base[:, b]) if public else base.weighted_sum(per_base[:, b], start=start)
            for key, value in found.items():
                total[key] = total[key] + value if key in total else value
        pieces = [
            total[name].flatten() if name in total else scaled.new_zeros(shape.numel())
            for name, shape in self._shapes.items()
        ]
        return np.asarray(torch.cat(pieces).cpu().numpy())

    def inner(self, column: int, gradient: Floats) -> Floats:
        pieces = torch.from_numpy(gradient).to(self._factors.device).split([s.numel() for s in self._shapes.values()])
        given = {n: piece.view(shape) for (n, shape), piece in zip(self._shapes.items(), pieces, strict=True)}
        base = self._bases[0 if len(self._bases) == 1 else column]
        return np.asarray((base.inner(given) * self._factors[:, column]).cpu().numpy())


#: What :class:`ConstraintGradient` reads of a batch, in whatever form is cheapest.
RowGradients = _TorchRows | PlainRows


def _times_slope(outputs: Tensor, slopes: Tensor) -> Tensor:
    return (outputs * slopes).sum(1)


_CHUNK = 8192
_KEPT = 2e7  # numbers of prepared rows that may stay in memory between the two passes, in two precisions
_DOTS = 1024


@dataclass(frozen=True)
class ConstraintGradient:
    """Noisy gradients of ``Σ_a λ_a (mean of h in group a - mean of h)``. Centred gradients, their clipping bound (by
    default the largest there is: no bias) and the weights of all groups are public; which weight a row has is not: the
    largest and smallest of its cell define the sensitivity. Only rows that are ``asked`` for their group contribute,
    one of each subject: another group of all its rows moves a sum as that of one row does."""

    X: Tensor
    y: Tensor
    groups: Tensor
    constraints: FairnessConstraints
    plan: PFLDPlan
    source: NoiseSource
    clip: float | None = None
    n_components: int | None = None
    asked: Ints | None = None
    fused: bool | None = None
    vectorized: bool = True
    dtype: torch.dtype = torch.float32
    _seen: dict[str, Any] = field(default_factory=dict, init=False)

    @classmethod
    def of(
        cls,
        network: _networks.Network,
        X: Tensor,
        groups: Ints,
        constraints: FairnessConstraints,
        plan: PFLDPlan,
        source: NoiseSource,
        **options: Any,
    ) -> "ConstraintGradient":
        """For rows where a network is trained, with arrays of groups and constraints."""
        y, codes = (torch.from_numpy(np.array(part)).to(X.device) for part in (constraints.y, groups))
        dtype = next(p.dtype for p in network.module.parameters() if p.requires_grad)
        how = {"fused": network.fused, "vectorized": network.vectorized, "dtype": dtype, **options}
        return cls(X, y, codes, constraints.of_labels(y), plan, source, **how)

    @np.errstate(all="ignore")  # what is not finite is looked for
    def full(self, module: nn.Module, weights: Tensor) -> Tensor:
        """Release from all rows; weights λ/size of shape (n_groups, n_cells, n_constraints), result flat."""
        asked, wide_weights, (cells, _, groups) = self._asked, _as_array(weights), self._arrays
        n, cells, groups = len(asked), cells[asked], groups[asked]
        chunks = [slice(start, min(n, start + _CHUNK)) for start in range(0, n, _CHUNK)]
        keep = n * sum(p.numel() ** 0.5 for p in module.parameters()) < _KEPT
        made = [partial(self._rows, module, asked[chunk]) for chunk in chunks]
        parts: list[Callable[[], RowGradients]] = [cache(make) if keep else make for make in made]
        each = [(part, cells[chunk]) for part, chunk in zip(parts, chunks, strict=True)]
        means = self._mean_gradients(each, cells.shape[1])
        norms = np.concatenate([centred_norms(part(), of_part, means) for part, of_part in each])
        bounds = self._bounds(norms, cells)
        factors = self._factors(norms, bounds, cells)
        sizes = np.concatenate([_sizes(part(), of_part, means) for part, of_part in each])
        largest = np.abs(wide_weights).max(0)[cells, self._columns] * factors * sizes
        terms = len(parts) + max(part().terms for part in parts) + n // _DOTS + _DOTS
        radius = self._radius(wide_weights, bounds) + 1.02 * 2.0**-53 * terms * float(largest.sum())
        if not np.isfinite(radius):  # the public part has diverged
            return torch.zeros(len(next(iter(means.values()))), dtype=self.dtype, device=self.X.device)
        mine = wide_weights[groups[:, None], cells, self._columns] * factors
        total = -_mean_part(mine, cells, means)
        for part, chunk in zip(parts, chunks, strict=True):
            total += part().weighted_sum(mine[chunk])
        return self._released(total, radius, module)

    @np.errstate(all="ignore")
    def sampled(self, module: nn.Module, weights: Tensor, public: Tensor, *, with_loss: bool = False) -> Tensor:
        """Release from a Poisson sample, which shares a pass with an independent ``public`` batch: that gives means to
        centre by, bounds, what needs no group, and, ``with_loss``, the gradient of the loss, part of the result."""
        n, k, size, wide_weights = len(self._asked), self.constraints.n_constraints, len(public), _as_array(weights)
        of_all, _, groups = self._arrays
        private = self._asked[PoissonSample(self.plan.sampling_probability).draw(n, self.source)]
        both = np.concatenate([public.cpu().numpy(), private])
        rows, cells = self._rows(module, both, with_loss), of_all[both]
        means = self._mean_gradients([(lambda: rows, cells[:size])], k + with_loss)
        norms = centred_norms(rows, cells, means)
        bounds = self._bounds(norms[:size], cells[:size])
        radius = self._radius(wide_weights, bounds)
        kappa = 1e5 if rows.positions == 1 else 500.0
        factors = self._factors(np.maximum(norms, _sizes(rows, cells, means) / kappa), bounds, cells)
        if not np.isfinite(radius):
            factors, radius = np.zeros_like(factors), 0.0
        middle = ((wide_weights.max(0) + wide_weights.min(0)) / 2)[cells, self._columns]
        # what needs no group comes from public rows; what does, centred, from the sample
        open_part = middle[:size] * (n / size) * factors[:size]
        mine = wide_weights[groups[private][:, None], cells[size:], self._columns] - middle[size:]
        mine = mine / self.plan.sampling_probability * factors[size:]
        of_loss = [1 / size, 0.0] if with_loss else []
        total = rows.weighted_sum(_with_column(open_part, *of_loss[:1]), public=True)
        total = total - _mean_part(open_part, cells[:size], means)
        total += rows.weighted_sum(_with_column(mine, *of_loss[1:]), start=size)
        total -= _mean_part(mine, cells[size:], means)
        return self._released(total, radius, module)

    # ------------------------------------------------------------------ parts

    def _rows(self, module: nn.Module, positions: Ints, with_loss: bool = False) -> RowGradients:
        layers, by_hand = self._layers(module)
        if by_hand:
            of_rows = self._arrays[1][positions]

            return PlainRows(
                NumpyMLP(module),
                self.X.numpy().take(positions, axis=0),
                lambda logits: self._slopes(torch.softmax(logits, dim=1).numpy(), of_rows, with_loss),
            )
        at = torch.from_numpy(positions).to(self.X.device)
        X, y = self.X[at], self.y[at]
        trace = None if layers is None else _networks.trace_layers(module, layers, X)
        with torch.no_grad():
            slopes = self._slopes(torch.softmax(module(X) if trace is None else trace.outputs, dim=1), y, with_loss)
        shapes = {name: p.shape for name, p in module.named_parameters() if p.requires_grad}
        factors = torch.ones(slopes.shape[:2], dtype=torch.float64, device=slopes.device)
        columns = range(slopes.shape[1])
        if trace is None:
            form = _networks.vectorized_gradients if self.vectorized else _networks.looped_gradients
            formed = [form(module, _times_slope, X, slopes[:, c]) for c in columns]
            return _TorchRows([_networks.DenseRows(gradients) for gradients in formed], factors, shapes)
        if slopes.shape[2] == 2:
            # slopes by the two logits are opposite: one signal, and a factor per row and column
            signal = torch.tensor([-1.0, 1.0]).to(slopes).expand(len(slopes), 2)
            prepared, factors = [trace.prepared(trace.outputs, signal)], _networks.wide(slopes[:, :, 1])
        else:
            prepared = [trace.prepared(trace.outputs, slopes[:, c], retain_graph=c < columns[-1]) for c in columns]
        return _TorchRows([_networks.LayerRows(trace.layers, base, _PIECE) for base in prepared], factors, shapes)

    def _slopes(self, probabilities: Any, y: Any, with_loss: bool) -> Any:
        """Of the columns and, last, the loss, by the logits, (n_rows, n_columns, n_classes); of arrays or tensors."""
        columns = self.constraints.slopes(probabilities, y)
        if not with_loss:
            return columns
        namespace = torch if isinstance(probabilities, Tensor) else np
        of_loss = probabilities + 0
        of_loss[namespace.arange(len(y)), y] -= 1
        return namespace.concatenate([columns, of_loss[:, None]], 1)

    def _layers(self, module: nn.Module) -> tuple[FusedLayers | None, bool]:
        """The layers that have rules, if all have, and whether they are written out."""
        if self._seen.get("module") is not module:  # walking through a module takes as long as a small batch
            layers = None if self.fused is False else _networks.fused_layers(module)
            self._seen.update(module=module, layers=(layers, layers is not None and NumpyMLP.reads(module, self.X)))
        return self._seen["layers"]

    @cached_property
    def _pairs(self) -> list[Pair]:
        """The cells that each constraint compares rows in."""
        return sorted({(c, cell) for line in self.constraints.merged_cells.tolist() for c, cell in enumerate(line)})

    @cached_property
    def _asked(self) -> Ints:
        return np.arange(len(self.X)) if self.asked is None else self.asked

    @cached_property
    def _columns(self) -> Ints:
        return np.arange(self.constraints.n_constraints)

    @cached_property
    def _arrays(self) -> tuple[Ints, ...]:
        """Cells, labels and groups of all rows."""
        return tuple(part.cpu().numpy() for part in (self.constraints.cells, self.y, self.groups))

    def _mean_gradients(self, parts: Sequence[tuple[Any, Ints]], n_columns: int) -> dict[Pair, Floats]:
        """Mean gradient of each constraint in each of its cells, over (the first) rows that come in parts."""
        means: dict[Pair, Floats] = {}
        for c, cell in self._pairs:
            inside = [cells[:, c] == cell for _, cells in parts]
            size = max(1, sum(int(here.sum()) for here in inside))
            total = None
            for (rows, cells), here in zip(parts, inside, strict=True):
                weights = np.zeros((len(cells), n_columns))
                weights[:, c] = here / size
                value = rows().weighted_sum(weights, public=True)
                total = value if total is None else total + value
            assert total is not None
            means[c, cell] = total
        return means

    def _bounds(self, norms: Floats, cells: Ints) -> Floats:
        """Clipping bound of each cell, shape (n_cells, n_constraints): given, or the largest public norm."""
        bounds = np.zeros((self.constraints.n_cells, norms.shape[1]))
        if self.clip is not None:
            bounds[:] = self.clip
            return bounds
        for c, cell in self._pairs:
            bounds[cell, c] = np.max(norms[:, c], initial=0.0, where=cells[:, c] == cell)
        return bounds

    def _radius(self, weights: Floats, bounds: Floats) -> float:
        """Half the sensitivity: the norm that the centred contribution of one row cannot exceed."""
        reach = (weights.max(0) - weights.min(0)) / 2 * bounds  # (n_cells, n_constraints)
        return float(reach[self.constraints.merged_cells, self._columns].sum(1).max())

    def _factors(self, norms: Floats, bounds: Floats, cells: Ints) -> Floats:
        """min(1, bound / norm), a little less so that rounding cannot take a sum past its bound."""
        return np.minimum(bounds[cells, self._columns] * (1 - _networks.SLACK) / np.maximum(norms, 1e-300), 1.0)

    def _released(self, total: Floats, radius: float, module: nn.Module) -> Tensor:
        noisy = torch.from_numpy(self.plan.release_gradient(total, radius, self.source))
        noisy = noisy.to(self.X.device, self.dtype)
        return noisy if self.n_components is None else self._projected(noisy, module)

    def _projected(self, gradient: Tensor, module: nn.Module) -> Tensor:
        assert self.n_components is not None
        some = torch.linspace(0, len(self.X) - 1, min(len(self.X), max(256, 2 * self.n_components))).long()
        some = some.to(self.X.device).unique()
        form = _networks.vectorized_gradients if self.vectorized else _networks.looped_gradients
        with torch.no_grad():
            slopes = self.constraints.slopes(torch.softmax(module(self.X[some]), dim=1), self.y[some])
        spans = []
        for c in range(slopes.shape[1]):
            parts = form(module, _times_slope, self.X[some], slopes[:, c])
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


def _as_array(weights: Tensor) -> Floats:
    return weights.detach().cpu().double().numpy()


def _with_column(weights: Floats, *value: float) -> Floats:
    return np.column_stack([weights, *(np.full(len(weights), v) for v in value)])


def _sizes(rows: RowGradients, cells: Ints, means: dict[Pair, Floats]) -> Floats:
    """A + M of every row and constraint: what the rounding of its centred gradient follows."""
    sizes = np.sqrt(rows.squared_sizes()[:, : cells.shape[1]])
    for (c, cell), mean in means.items():
        sizes[:, c] += (cells[:, c] == cell) * np.sqrt(mean @ mean)
    return sizes


def _mean_part(mine: Floats, cells: Ints, means: dict[Pair, Floats]) -> Floats:
    """Σ weight times the mean of the row's cell; weights are added up in pieces, which keeps their rounding short."""
    total = np.zeros(len(next(iter(means.values()))))
    for (c, cell), mean in means.items():
        here = mine[:, c] * (cells[:, c] == cell)
        total += mean * sum(float(here[start : start + _DOTS].sum()) for start in range(0, len(here), _DOTS))
    return total
