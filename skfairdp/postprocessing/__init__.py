"""Post-processing of predictions: refusing what would widen the fairness gap."""

from skfairdp.postprocessing._idp3 import IDP3

__all__ = ["IDP3"]
