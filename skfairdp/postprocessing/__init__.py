"""Post-processing of predictions: refusing what would widen the fairness gap, and calibrating on public rows."""

from skfairdp._transport import TransportPlan as TransportPlan
from skfairdp.postprocessing._calibrator import FairnessCalibrator
from skfairdp.postprocessing._idp3 import IDP3
from skfairdp.postprocessing._private_barycenter import PrivateBarycenter
from skfairdp.postprocessing._private_thresholds import PrivateThresholds
from skfairdp.postprocessing._thresholding import FineTuning, Thresholds

__all__ = ["IDP3", "FairnessCalibrator", "FineTuning", "PrivateBarycenter", "PrivateThresholds", "Thresholds"]
