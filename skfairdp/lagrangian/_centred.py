"""Gradients of fairness constraints, row by row, centred in their cells and clipped: no row's gradient is ever formed.

Where the layers allow it, the norm of a centred gradient comes from ‖g - ḡ‖² = ‖g‖² - 2⟨g, ḡ⟩ + ‖ḡ‖², each term from
the inputs of the layers and the signals that come back to them, and the weighted sum over rows is one more product.
For two classes all constraints and the loss send the same signal back, up to a factor per row: one backward for all.
"""

from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from skfairdp._networks import (
    DenseRows,
    LayerRows,
    LayerTrace,
    looped_gradients,
    trace_layers,
    vectorized_gradients,
    wide,
)

Array = NDArray[np.float64]
FusedLayers = list[tuple[str, nn.Module]]

_PIECE = 1024


class RowGradients(Protocol):
    """Gradients of several columns of numbers at each row of a batch, kept in whatever form is cheapest.

    Arithmetic is of double precision, but for sums that are public.
    """

    def squared_norms(self) -> Array:
        """Shape (n_rows, n_columns)."""

    def squared_sizes(self) -> Array:
        """The same, had nothing cancelled between the positions of a row: what rounding follows."""

    def weighted_sum(self, weights: Array, *, start: int = 0, public: bool = False) -> Array:
        """Σ over rows and columns of weight times gradient; weights of shape (n_rows, n_columns), result flat.

        Over as many rows as there are weights, from row ``start``. Where all of it is ``public``, rounding tells
        nothing, and the precision of the layers is enough.
        """

    def inner(self, column: int, gradient: Array) -> Array:
        """Inner products of one column's gradients with a flat gradient, shape (n_rows,)."""

    @property
    def positions(self) -> int:
        """The most positions that a layer sums over within a row."""

    @property
    def terms(self) -> int:
        """How many numbers are added up for one of a weighted sum, at most, one after the other."""


def row_gradients(
    module: nn.Module, X: Tensor, outputs_to_slopes: "SlopesOf", layers: FusedLayers | None, *, vectorized: bool
) -> RowGradients:
    """Run the module on a batch and prepare the gradients of the columns."""
    if layers is not None:
        trace = trace_layers(module, layers, X)
        if trace is not None:
            return _Fused(module, trace, outputs_to_slopes(trace.outputs.detach()))
    with torch.no_grad():
        slopes = outputs_to_slopes(module(X))
    return _Dense(module, X, slopes, vectorized)


def centred_norms(rows: RowGradients, cells: NDArray[np.int64], means: dict[tuple[int, int], Array]) -> Array:
    """Norms of the gradients minus the mean of their cell, shape (n_rows, n_columns with cells).

    Never below the true norm by more than rounding of the last digits: what subtraction may have lost is added back.
    """
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


class SlopesOf(Protocol):
    def __call__(self, logits: Tensor) -> Tensor: ...


class _Fused:
    """From layer inputs and back-propagated signals."""

    def __init__(self, module: nn.Module, trace: LayerTrace, slopes: Tensor) -> None:
        self._shapes = {name: p.shape for name, p in module.named_parameters() if p.requires_grad}
        if slopes.shape[2] == 2:
            # slopes by the two logits are opposite: one signal, and a factor per row and column
            signal = torch.tensor([-1.0, 1.0]).to(slopes).expand(len(slopes), 2)
            prepared, self._factors = [trace.prepared(trace.outputs, signal)], wide(slopes[:, :, 1])
        else:
            last = slopes.shape[1] - 1
            prepared = [
                trace.prepared(trace.outputs, slopes[:, c], retain_graph=c < last) for c in range(slopes.shape[1])
            ]
            self._factors = torch.ones(slopes.shape[:2], dtype=torch.float64, device=slopes.device)
        self._bases = [LayerRows(trace.layers, base, _PIECE) for base in prepared]
        self._squared: Array | None = None

    @property
    def positions(self) -> int:
        return max(base.positions for base in self._bases)

    @property
    def terms(self) -> int:
        return max(base.terms for base in self._bases) * len(self._bases)

    def squared_norms(self) -> Array:
        if self._squared is None:
            squared = torch.stack([base.squared_norms() for base in self._bases], 1) * self._factors.square()
            self._squared = squared.cpu().numpy()
        return self._squared

    def squared_sizes(self) -> Array:
        if self.positions == 1:
            return self.squared_norms()
        sizes = torch.stack([base.squared_sizes() for base in self._bases], dim=1) * self._factors.square()
        return np.asarray(sizes.cpu().numpy())

    def weighted_sum(self, weights: Array, *, start: int = 0, public: bool = False) -> Array:
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

    def inner(self, column: int, gradient: Array) -> Array:
        parts_of: dict[str, dict[str, Tensor]] = {}
        for key, piece in _by_parameter(gradient, self._shapes, self._factors.device).items():
            layer, _, parameter = key.rpartition(".")
            parts_of.setdefault(layer, {})[parameter] = piece
        base = self._bases[0 if len(self._bases) == 1 else column]
        return np.asarray((base.inner(parts_of) * self._factors[:, column]).cpu().numpy())


class _Dense:
    """Every row's gradient formed, for modules without rules for all their layers."""

    positions = 1

    def __init__(self, module: nn.Module, X: Tensor, slopes: Tensor, vectorized: bool) -> None:
        form = vectorized_gradients if vectorized else looped_gradients
        formed = [form(module, _times_slope, X, slopes[:, c]) for c in range(slopes.shape[1])]
        self._shapes = {name: value.shape[1:] for name, value in formed[0].items()}
        self._columns = [DenseRows(gradients) for gradients in formed]
        self._device = X.device

    @property
    def terms(self) -> int:
        return max(column.terms for column in self._columns) * len(self._columns)

    def squared_norms(self) -> Array:
        found = torch.stack([column.squared_norms() for column in self._columns], dim=1)
        return np.asarray(found.cpu().numpy())

    squared_sizes = squared_norms

    def weighted_sum(self, weights: Array, *, start: int = 0, public: bool = False) -> Array:
        given = torch.from_numpy(weights).to(self._device)
        sums = [column.weighted_sum(given[:, c], start=start) for c, column in enumerate(self._columns)]
        total = torch.stack([torch.cat([value.flatten() for value in one.values()]) for one in sums]).sum(0)
        return np.asarray(total.cpu().numpy())

    def inner(self, column: int, gradient: Array) -> Array:
        parts = _by_parameter(gradient, self._shapes, self._device)
        return np.asarray(self._columns[column].inner(parts).cpu().numpy())


def _by_parameter(flat: Array, shapes: dict[str, torch.Size], device: torch.device) -> dict[str, Tensor]:
    pieces = torch.from_numpy(flat).to(device).split([shape.numel() for shape in shapes.values()])
    return {name: piece.view(shape) for (name, shape), piece in zip(shapes.items(), pieces, strict=True)}


def _times_slope(outputs: Tensor, slopes: Tensor) -> Tensor:
    return (outputs * slopes).sum(1)
