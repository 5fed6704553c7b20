"""What a fitted model computes of its rows, as one torch module in double precision, and as an ONNX graph."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from skfairdp._networks._row_isolation import input_dtype
from skfairdp._utils import silence
from skfairdp.schema import Boolean, Category, Date, Schema

Array = NDArray[np.float64]
FARTHEST = 1e300  # numbers beyond are none


def perceptron(weights: list[Array], biases: list[Array]) -> nn.Sequential:
    """Linear layers from matrices (inputs, outputs), with tanh units between them."""
    layers: list[nn.Module] = []
    for weight, bias in zip(weights, biases, strict=True):
        linear = nn.utils.skip_init(nn.Linear, *weight.shape, dtype=torch.float64)
        linear.load_state_dict({"weight": torch.as_tensor(weight.T), "bias": torch.as_tensor(bias)})
        layers += [linear, nn.Tanh()]
    return nn.Sequential(*layers[:-1])


class ExportedColumns(nn.Module):
    """Encodes cells as ``SchemaEncoder`` does. They are numbers, NaN where there is none; texts are their places."""

    def __init__(self, schema: Schema) -> None:
        super().__init__()
        self.columns = [schema.columns[name] for name in schema.features]

    def forward(self, X: Tensor) -> Tensor:
        return torch.cat([_encoded(column, X[:, j : j + 1]) for j, column in enumerate(self.columns)], dim=1)


def _encoded(column: Any, cells: Tensor) -> Tensor:
    if isinstance(column, Category):
        texts = isinstance(column.values[0], str)
        listed = range(len(column.values)) if texts else map(float, column.values)
        block = (cells == torch.tensor(list(listed), dtype=torch.float64)).double()
        absent = block.sum(1, keepdim=True) == 0
        if column.others is not None:
            block = torch.where(
                absent, torch.tensor([float(value == column.others) for value in column.values]).double(), block
            )
    elif isinstance(column, Boolean):
        absent = (cells != 0) & (cells != 1)
        block = torch.where(absent, torch.zeros_like(cells), 2 * cells - 1)
    else:
        ends = [column.first, column.last] if isinstance(column, Date) else [column.low, column.high]
        low, high, middle = torch.as_tensor(column.read([*ends, None]))  # a bare number would become a float32
        absent = ~(cells.abs() <= torch.tensor(FARTHEST, dtype=torch.float64))
        known = torch.where(absent, low if column.missing else middle, cells).clamp(low, high)
        if getattr(column, "step", None) is not None:
            step = torch.tensor(column.step, dtype=torch.float64)
            known = (low + step * torch.round((known - low) / step)).clamp(low, high)
        block = (2 * known - low - high) / (high - low)
        block = torch.where(absent, torch.zeros_like(block), block) if column.missing else block
    return torch.cat([block, absent.double()], dim=1) if column.missing else block


class ExportedAnswers(nn.Module):
    """Probabilities of the classes, or, within bounds, amounts: of rows that may be cut, get bends, and pass layers."""

    def __init__(
        self, layers: nn.Module, *, limits: Any = None, bends: Any = None, places: Any = None, bounds: Any = None
    ) -> None:
        super().__init__()
        self.layers, self.bounds = layers, bounds
        self.precision = input_dtype(layers)
        self.limits = None if limits is None else [torch.as_tensor(np.array(limit)) for limit in limits]
        self.bends: Any = None if bends is None or not len(bends.numbers) else bends
        self.places = places

    def forward(self, X: Tensor) -> Tensor:
        if self.limits is not None:
            X = torch.minimum(torch.maximum(X, self.limits[0]), self.limits[1])
        if self.bends is not None:
            X = torch.cat([X, *self._bent(X)], dim=1)
        scores = self.layers(X.to(self.precision)).double()
        if self.bounds is not None:
            return scores[:, 0].clamp(*torch.tensor(self.bounds, dtype=torch.float64))
        if scores.shape[1] == 1:
            scores = torch.cat([torch.zeros_like(scores), scores], dim=1)
        found = scores.softmax(dim=1)
        return found if self.places is None else found @ torch.as_tensor(self.places)

    def _bent(self, X: Tensor) -> tuple[Tensor, Tensor]:
        numbers, below, above, *arrays = (
            torch.as_tensor(getattr(self.bends, name))
            for name in ("numbers", "below", "above", "center", "scale", "low", "high")
        )
        center, scale, low, high = arrays
        units = ((X[:, numbers] - center) / scale).clamp(-self.bends.farthest, self.bends.farthest)
        return (low - units[:, below]).clamp_min(0.0), (units[:, above] - high).clamp_min(0.0)


def as_onnx(parts: list[nn.Module], n_inputs: int, output: str) -> Any:
    """Return the graph of modules one after the other, for any number of rows "X" of so many numbers."""
    rows, batch = torch.zeros((2, n_inputs), dtype=torch.float64), torch.export.Dim("n_rows")
    with silence():
        made = torch.onnx.export(
            nn.Sequential(*parts).eval(), (rows,), dynamo=True, input_names=["X"], output_names=[output],
            dynamic_shapes=({0: batch},), verbose=False,
        )  # fmt: skip
    assert made is not None
    graph = made.model_proto
    if not graph.graph.input[0].type.tensor_type.shape.dim[0].dim_param:
        raise ValueError(
            "to_onnx: this network has a graph for one number of rows only. Let it use X.shape[0], not len(X)."
        )
    return graph
