"""Private gradient descent with a fairness term."""

from skfairdp._network_classifier import cnn, mlp, resnet
from skfairdp.gradient._dpsgd import MajorityBaselineTest as MajorityBaselineTest
from skfairdp.gradient._fair_dpsgd import FairDPSGDClassifier
from skfairdp.gradient._fair_dpsgd_regressor import FairDPSGDRegressor
from skfairdp.gradient._parity import DPSGDPlan as DPSGDPlan, PublicPenalty, SignedLoss, beside as beside
from skfairdp.lagrangian import PFLDClassifier

__all__ = ["FairDPSGDClassifier", "FairDPSGDRegressor", "PFLDClassifier", "PublicPenalty", "SignedLoss", "cnn"]
__all__ += ["mlp", "resnet"]
