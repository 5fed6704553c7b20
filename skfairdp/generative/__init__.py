"""Synthetic data: private generators that sample from a balanced law of groups and labels."""

from skfairdp.generative._backend import BackendPlan, FittedModel, GeneratorBackend, Layout, PrivateRows
from skfairdp.generative._generator import PFGuardGenerator
from skfairdp.generative._gradient_gan import DataLensBackend, GPATEBackend
from skfairdp.generative._gs_wgan import GSWGANBackend
from skfairdp.generative._marginals import MarginalsBackend
from skfairdp.generative._pate_gan import PATEGANBackend

__all__ = [
    "BackendPlan",
    "DataLensBackend",
    "FittedModel",
    "GPATEBackend",
    "GSWGANBackend",
    "GeneratorBackend",
    "Layout",
    "MarginalsBackend",
    "PATEGANBackend",
    "PFGuardGenerator",
    "PrivateRows",
]
