"""Many small networks as one tensor program: stacked training and prediction of independent teachers.

This room imports torch when it is imported; ``skfairdp.ensemble`` loads it on first use.
"""

from skfairdp.neural._mlp import StackedMLP
from skfairdp.neural._modules import StackedModule
from skfairdp.neural._stacked import StackedNet, batch_stream, predict_stacked, resolve_device, train_stacked

__all__ = [
    "StackedMLP",
    "StackedModule",
    "StackedNet",
    "batch_stream",
    "predict_stacked",
    "resolve_device",
    "train_stacked",
]
