"""Networks held to fairness constraints by Lagrange multipliers: F-LD without privacy, PF-LD with private groups.

The trainer and its parts load torch, on first use (PEP 562).
"""

import importlib
from typing import TYPE_CHECKING, Any

from skfairdp._network_classifier import cnn as cnn, mlp as mlp, resnet as resnet
from skfairdp.lagrangian._fld import LagrangianClassifier, as_perceptron as as_perceptron, in_codes as in_codes
from skfairdp.lagrangian._perceptron import (
    FairPerceptron as FairPerceptron,
    Perceptron as Perceptron,
    standard_scale as standard_scale,
)
from skfairdp.lagrangian._pfld import PFLDClassifier
from skfairdp.lagrangian._plan import GroupModel, NoisyGradients, PFLDPlan as PFLDPlan

if TYPE_CHECKING:
    from skfairdp.lagrangian._constraint_gradient import ConstraintGradient as ConstraintGradient
    from skfairdp.lagrangian._dual_ascent import (
        DualAscent as DualAscent,
        LagrangianTraining as LagrangianTraining,
        dual_schedule as dual_schedule,
    )
    from skfairdp.lagrangian._stack import StackedParity as StackedParity
    from skfairdp.lagrangian._trainer import (
        train_lagrangian as train_lagrangian,
        train_stacked_lagrangian as train_stacked_lagrangian,
    )

__all__ = ["GroupModel", "LagrangianClassifier", "NoisyGradients", "PFLDClassifier"]

_WITH_TORCH = {
    "ConstraintGradient": "_constraint_gradient",
    "DualAscent": "_dual_ascent",
    "LagrangianTraining": "_dual_ascent",
    "StackedParity": "_stack",
    "dual_schedule": "_dual_ascent",
    "train_lagrangian": "_trainer",
    "train_stacked_lagrangian": "_trainer",
}


def __getattr__(name: str) -> Any:
    if name in _WITH_TORCH:
        return getattr(importlib.import_module(f"skfairdp.lagrangian.{_WITH_TORCH[name]}"), name)
    raise AttributeError(f"module 'skfairdp.lagrangian' has no attribute {name!r}")
