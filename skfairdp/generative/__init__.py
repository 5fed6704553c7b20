"""Synthetic data: private generators that sample from a balanced law of groups and labels."""

from skfairdp.generative._backend import BackendPlan, FittedModel, GeneratorBackend, Layout, PrivateRows
from skfairdp.generative._generator import PFGuardGenerator
from skfairdp.generative._marginals import MarginalsBackend

__all__ = [
    "BackendPlan",
    "FittedModel",
    "GeneratorBackend",
    "Layout",
    "MarginalsBackend",
    "PFGuardGenerator",
    "PrivateRows",
]
