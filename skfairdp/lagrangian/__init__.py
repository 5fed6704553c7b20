"""Networks held to fairness constraints by Lagrange multipliers: F-LD without privacy, PF-LD with private groups.

The trainer and its parts load torch, on first use.
"""

from skfairdp._network_classifier import cnn, mlp, resnet
from skfairdp.lagrangian._fld import LagrangianClassifier, as_perceptron, in_codes
from skfairdp.lagrangian._perceptron import FairPerceptron, Perceptron, standard_scale
from skfairdp.lagrangian._pfld import PFLDClassifier
from skfairdp.lagrangian._plan import GroupModel, NoisyGradients

__all__ = ["GroupModel", "LagrangianClassifier", "NoisyGradients", "PFLDClassifier"]
