"""The first layer of a network for tables: numbers scaled by public knots, with a piecewise linear basis or without."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from skfairdp._networks._shorthands import MLP

#: Numbers are cut off at so many half ranges from the centre.
FAR = 2.0
#: Of the basis beside a scaled number: what it adds to the squared norm of a row, and so to the noise, is then about a
#: sixth of a column, beside a third.
WEIGHT = 0.5


class ColumnScales(nn.Module):
    """Scale columns by the range of their knots, and add hat functions around the knots where they are asked for.

    Without knots of their own columns have equally spaced ones. A column that is marked as missing becomes zeros.
    """

    columns: Tensor
    missing: Tensor
    knots: Tensor
    far: Tensor

    def __init__(
        self, columns: Sequence[int], missing: Sequence[int | None], n_knots: int, *, hats: bool = True
    ) -> None:
        super().__init__()
        self.has_hats = hats
        marks = [-1 if place is None else place for place in missing]
        self.register_buffer("columns", torch.tensor(columns), persistent=False)
        self.register_buffer("missing", torch.tensor(marks), persistent=False)
        self.register_buffer("knots", torch.linspace(-1, 1, n_knots).repeat(len(columns), 1))
        self.register_buffer("far", torch.full((len(columns),), FAR))

    @property
    def n_added(self) -> int:
        """How many features it adds."""
        return self.knots.numel() if self.has_hats else 0

    def set_knots(self, knots: NDArray[np.float64], far: NDArray[np.float64] | None = None) -> None:
        """Take public or released knots."""
        self.knots.copy_(torch.as_tensor(knots))
        if far is not None:
            self.far.copy_(torch.as_tensor(far))

    def forward(self, X: Tensor) -> Tensor:
        numbers = X[:, self.columns]
        absent = torch.where(self.missing >= 0, X[:, self.missing.clamp(min=0)], torch.zeros_like(numbers)) > 0.5
        low, high = self.knots[:, 0], self.knots[:, -1]
        scaled = ((numbers - (low + high) / 2) / ((high - low) / 2)).clamp(-self.far, self.far)
        features = X.clone()
        features[:, self.columns] = scaled.masked_fill(absent, 0.0)
        if not self.has_hats:
            return features
        hats = WEIGHT * self._hats(numbers)
        return torch.cat([features, hats.masked_fill(absent[:, :, None], 0.0).flatten(1)], dim=1)

    def _hats(self, numbers: Tensor) -> Tensor:
        """Of shape (n_rows, n_columns, n_knots); they add up to 1."""
        # how far a number is from each knot to the next, from 0 to 1: a hat is one such ramp less the next
        gaps = self.knots.diff(dim=1)
        ramps = ((numbers[:, :, None] - self.knots[:, :-1]) / gaps).clamp(0.0, 1.0)
        ones, zeros = torch.ones_like(ramps[:, :, :1]), torch.zeros_like(ramps[:, :, :1])
        return torch.cat([ones, ramps], dim=2) - torch.cat([ramps, zeros], dim=2)


class ScaledMLP(nn.Sequential):
    """A plain network behind :class:`ColumnScales`."""

    predicts_rows_alone = True

    def __init__(self, scales: ColumnScales, n_features: int, n_classes: int, hidden: Sequence[int] = (64,)) -> None:
        super().__init__(scales, *MLP(n_features + scales.n_added, n_classes, hidden))

    @classmethod
    def of(cls, scales: ColumnScales, layers: MLP) -> "ScaledMLP":
        """Put a network that was trained on scaled columns behind them."""
        found = cls.__new__(cls)
        nn.Sequential.__init__(found, scales, *layers)
        return found.eval()


class ScaledModule(nn.Module):
    """A network of the user's behind :class:`ColumnScales`."""

    def __init__(self, scales: ColumnScales, module: nn.Module) -> None:
        super().__init__()
        self.scales, self.module = scales, module

    @property
    def predicts_rows_alone(self) -> bool | None:
        """What the network says of itself."""
        return getattr(self.module, "predicts_rows_alone", None)

    def forward(self, X: Tensor) -> Tensor:
        outputs: Tensor = self.module(self.scales(X))
        return outputs


def behind(scales: ColumnScales | None, module: nn.Module) -> nn.Module:
    """Return the module for columns as they were before the scaling."""
    if scales is None:
        return module
    if isinstance(module, MLP):
        return ScaledMLP.of(scales, module)
    return ScaledModule(scales, module).eval()
