"""Private gradient descent with a fairness term."""

from skfairdp.gradient._fair_dpsgd import FairDPSGDClassifier
from skfairdp.lagrangian import PFLDClassifier

__all__ = ["FairDPSGDClassifier", "PFLDClassifier"]
