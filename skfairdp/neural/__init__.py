"""Networks: many small ones as one tensor program, and clipped sums of per-sample gradients.

This room imports torch when it is imported; ``skfairdp.ensemble`` loads it on first use.
"""

from skfairdp.neural._clipping import check_rows_stay_apart, clipped_gradient_sum, fused_layers
from skfairdp.neural._mlp import StackedMLP
from skfairdp.neural._modules import StackedModule
from skfairdp.neural._stacked import StackedNet, batch_stream, predict_stacked, resolve_device, train_stacked

__all__ = [
    "StackedMLP",
    "StackedModule",
    "StackedNet",
    "batch_stream",
    "check_rows_stay_apart",
    "clipped_gradient_sum",
    "fused_layers",
    "predict_stacked",
    "resolve_device",
    "train_stacked",
]
