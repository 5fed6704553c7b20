"""Metrics of fairness, of refused predictions and of synthetic data: exact, non-private figures."""

from skfairdp.metrics._fairness import (
    accuracy_disparity,
    coverage_score,
    demographic_disparity,
    equalized_odds_disparity,
    gap_bound,
    ks_disparity,
    rate_intervals,
    rejection_rate_by_group,
    selective_accuracy,
    wasserstein_disparity,
)
from skfairdp.metrics._synthetic import (
    distribution_disparity,
    downstream_scores,
    frechet_distance,
    kl_to_uniform,
    recall_disparity,
)

__all__ = ["accuracy_disparity", "coverage_score", "demographic_disparity", "distribution_disparity"]
__all__ += ["downstream_scores", "equalized_odds_disparity", "frechet_distance", "gap_bound", "kl_to_uniform"]
__all__ += ["ks_disparity", "rate_intervals", "recall_disparity", "rejection_rate_by_group"]
__all__ += ["selective_accuracy", "wasserstein_disparity"]
