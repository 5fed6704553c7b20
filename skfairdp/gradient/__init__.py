"""Private gradient descent, plain and fair."""

from skfairdp.gradient._fair_dpsgd import FairDPSGDClassifier

__all__ = ["FairDPSGDClassifier"]
