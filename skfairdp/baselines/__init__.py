"""Baselines of attribute privacy: randomised response, and a learner that reads its answers without bias."""

from skfairdp.baselines._parity_logistic import ParityLogisticRegression
from skfairdp.baselines._randomized_response import GroupRandomizer, RandomizedResponseClassifier
from skfairdp.lagrangian import LagrangianClassifier

__all__ = ["GroupRandomizer", "LagrangianClassifier", "ParityLogisticRegression", "RandomizedResponseClassifier"]
