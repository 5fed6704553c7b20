"""Private gradient descent, plain and fair."""

from skfairdp.gradient._fair_clipping import FairClippingClassifier
from skfairdp.gradient._fair_dpsgd import FairDPSGDClassifier
from skfairdp.gradient._pfld import PFLDClassifier

__all__ = ["FairClippingClassifier", "FairDPSGDClassifier", "PFLDClassifier"]
