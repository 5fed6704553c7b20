"""Methods of the papers, as they reproduce them: no other room imports this one."""

from skfairdp.papers._adversarial import ConvolutionalLayers
from skfairdp.papers._data_dependent import NonPrivateDiagnostic, SmoothSensitivityRelease, pate_data_dependent_epsilon
from skfairdp.papers._fair_clipping import DPSGDF, FairClippingClassifier, GlobalAdapt, Reweighting
from skfairdp.papers._gan_ensembles import DataLensBackend, GPATEBackend, GSWGANBackend, PATEGANBackend
from skfairdp.papers._pate_analysis import (
    ExcessiveRiskDisplay,
    FlippingProbabilityDisplay,
    LabelEffect,
    PATEAnalysis,
    PATEFairnessAnalysis,
    SFPATEBounds,
    sfpate_bounds,
)

__all__ = ["DPSGDF", "ConvolutionalLayers", "DataLensBackend", "FairClippingClassifier", "GPATEBackend"]
__all__ += ["GSWGANBackend", "GlobalAdapt", "PATEAnalysis", "PATEFairnessAnalysis", "PATEGANBackend"]
__all__ += ["Reweighting", "pate_data_dependent_epsilon", "sfpate_bounds"]
