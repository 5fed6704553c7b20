"""Networks held to fairness constraints by Lagrange multipliers: F-LD without privacy, PF-LD with private groups.

The trainer and its parts load torch, on first use.
"""

from skfairdp._network_classifier import cnn as cnn, mlp as mlp, resnet as resnet
from skfairdp.lagrangian._fld import LagrangianClassifier, as_perceptron as as_perceptron, in_codes as in_codes
from skfairdp.lagrangian._perceptron import (
    FairPerceptron as FairPerceptron,
    Perceptron as Perceptron,
    standard_scale as standard_scale,
)
from skfairdp.lagrangian._pfld import PFLDClassifier
from skfairdp.lagrangian._plan import GroupModel, NoisyGradients

__all__ = ["GroupModel", "LagrangianClassifier", "NoisyGradients", "PFLDClassifier"]
