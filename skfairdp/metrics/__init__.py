"""Fairness and selective-prediction metrics: exact, non-private figures of predictions."""

from skfairdp.metrics._fairness import accuracy_disparity, demographic_disparity, equalized_odds_disparity
from skfairdp.metrics._selective import coverage_score, rejection_rate_by_group, selective_accuracy

__all__ = [
    "accuracy_disparity",
    "coverage_score",
    "demographic_disparity",
    "equalized_odds_disparity",
    "rejection_rate_by_group",
    "selective_accuracy",
]
