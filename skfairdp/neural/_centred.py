"""Gradients of fairness constraints, row by row, centred in their cells and clipped: no row's gradient is ever formed.

Where the layers allow it, the norm of a centred gradient comes from ‖g - ḡ‖² = ‖g‖² - 2⟨g, ḡ⟩ + ‖ḡ‖², each term from
the inputs of the layers and the signals that come back to them, and the weighted sum over rows is one more product.
For two classes all constraints and the loss send the same signal back, up to a factor per row: one backward for all.
"""

from typing import Protocol

import torch
from torch import Tensor, nn

from skfairdp.neural._clipping import (
    LayerTrace,
    Prepared,
    _looped_gradients,
    _vectorized_gradients,
    trace_layers,
)

FusedLayers = list[tuple[str, nn.Module]]

__all__ = ["RowGradients", "centred_norms", "row_gradients"]


class RowGradients(Protocol):
    """Gradients of several columns of numbers at each row of a batch, kept in whatever form is cheapest."""

    def squared_norms(self) -> Tensor:
        """Shape (n_rows, n_columns)."""

    def weighted_sum(self, weights: Tensor) -> Tensor:
        """Σ over rows and columns of weight times gradient; weights of shape (n_rows, n_columns), result flat.

        With fewer lines of weights than rows, over the first rows only.
        """

    def inner(self, column: int, gradient: Tensor) -> Tensor:
        """Inner products of one column's gradients with a flat gradient, shape (n_rows,)."""


def row_gradients(
    module: nn.Module, X: Tensor, outputs_to_slopes: "SlopesOf", layers: FusedLayers | None, *, vectorized: bool
) -> RowGradients:
    """Run the module on a batch and prepare the gradients of the columns.

    Parameters
    ----------
    module : nn.Module
    X : Tensor of shape (n_rows, ...)
    outputs_to_slopes : callable
        Logits → derivatives of every column by the logits of its row, shape (n_rows, n_columns, n_classes).
    layers : list of (str, nn.Module) or None
        From :func:`fused_layers`; None forms every row's gradient.
    vectorized : bool
        See :func:`clipped_gradient_sum`.
    """
    if layers is not None:
        trace = trace_layers(module, layers, X)
        if trace is not None:
            return _Fused(module, trace, outputs_to_slopes(trace.outputs.detach()))
    with torch.no_grad():
        slopes = outputs_to_slopes(module(X))
    return _Dense(module, X, slopes, vectorized)


def centred_norms(rows: RowGradients, cells: Tensor, means: dict[tuple[int, int], Tensor]) -> Tensor:
    """Norms of the gradients minus the mean of their cell, shape (n_rows, n_columns with cells).

    Never below the true norm by more than rounding of the last digits: what subtraction may have lost is added back.
    """
    squared = rows.squared_norms()[:, : cells.shape[1]]
    cross, mean_squared = torch.zeros_like(squared), torch.zeros_like(squared)
    for (c, cell), mean in means.items():
        here = (cells[:, c] == cell).to(squared.dtype)
        cross[:, c] += here * rows.inner(c, mean)
        mean_squared[:, c] += here * mean.dot(mean)
    lost = 64 * torch.finfo(squared.dtype).eps * (squared + mean_squared)
    return ((squared - 2 * cross + mean_squared).clamp_min(0) + lost).sqrt()


class SlopesOf(Protocol):
    def __call__(self, logits: Tensor) -> Tensor: ...


class _Fused:
    """From layer inputs and back-propagated signals."""

    def __init__(self, module: nn.Module, trace: LayerTrace, slopes: Tensor) -> None:
        self._layers = trace.layers
        self._shapes = {name: p.shape for name, p in module.named_parameters() if p.requires_grad}
        self._bases: list[dict[str, Prepared]]
        if slopes.shape[2] == 2:
            # slopes by the two logits are opposite: one signal, and a factor per row and column
            signal = torch.tensor([-1.0, 1.0]).to(slopes).expand(len(slopes), 2)
            self._bases, self._factors = [trace.prepared(trace.outputs, signal)], slopes[:, :, 1]
        else:
            last = slopes.shape[1] - 1
            self._bases = [
                trace.prepared(trace.outputs, slopes[:, c], retain_graph=c < last) for c in range(slopes.shape[1])
            ]
            self._factors = torch.ones_like(slopes[:, :, 0])

    def squared_norms(self) -> Tensor:
        norms = []
        for base in self._bases:
            total = torch.zeros_like(self._factors[:, 0])
            for name, (rule, parts) in base.items():
                total = total + rule.squared_norms(self._layers[name], parts)
            norms.append(total)
        return torch.stack(norms, dim=1) * self._factors.square()

    def weighted_sum(self, weights: Tensor) -> Tensor:
        scaled = weights * self._factors[: len(weights)]
        per_base = scaled.sum(1, keepdim=True) if len(self._bases) == 1 else scaled
        total: dict[str, Tensor] = {}
        for b, base in enumerate(self._bases):
            if len(self._bases) > 1 and not per_base[:, b].any():
                continue
            for name, (rule, parts) in base.items():
                first = tuple(part[: len(weights)] for part in parts) if len(weights) < len(self._factors) else parts
                for parameter, value in rule.weighted_sum(self._layers[name], first, per_base[:, b]).items():
                    key = f"{name}.{parameter}" if name else parameter
                    total[key] = total[key] + value if key in total else value
        return torch.cat([
            total[name].flatten() if name in total else scaled.new_zeros(shape.numel())
            for name, shape in self._shapes.items()
        ])

    def inner(self, column: int, gradient: Tensor) -> Tensor:
        parts_of: dict[str, dict[str, Tensor]] = {}
        pieces = gradient.split([shape.numel() for shape in self._shapes.values()])
        for (key, shape), piece in zip(self._shapes.items(), pieces, strict=True):
            layer, _, parameter = key.rpartition(".")
            parts_of.setdefault(layer, {})[parameter] = piece.view(shape)
        base = self._bases[0 if len(self._bases) == 1 else column]
        total = torch.zeros_like(self._factors[:, 0])
        for name, (rule, parts) in base.items():
            total = total + rule.inner(self._layers[name], parts, parts_of.get(name, {}))
        return total * self._factors[:, column]


class _Dense:
    """Every row's gradient formed, for modules without rules for all their layers."""

    def __init__(self, module: nn.Module, X: Tensor, slopes: Tensor, vectorized: bool) -> None:
        form = _vectorized_gradients if vectorized else _looped_gradients
        columns = []
        for c in range(slopes.shape[1]):
            gradients = form(module, _times_slope, X, slopes[:, c])
            columns.append(torch.cat([g.flatten(1) for g in gradients.values()], dim=1))
        self.gradients = torch.stack(columns, dim=1)

    def squared_norms(self) -> Tensor:
        return self.gradients.square().sum(2)

    def weighted_sum(self, weights: Tensor) -> Tensor:
        return torch.einsum("nc,ncd->d", weights, self.gradients[: len(weights)])

    def inner(self, column: int, gradient: Tensor) -> Tensor:
        return self.gradients[:, column] @ gradient


def _times_slope(outputs: Tensor, slopes: Tensor) -> Tensor:
    return (outputs * slopes).sum(1)
