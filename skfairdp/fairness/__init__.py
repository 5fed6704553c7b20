"""What fairness means here: gaps, notions h(·) and the running-count gate. Knows no privacy and no model."""

from skfairdp.fairness._counts import rejection_rates, tally
from skfairdp.fairness._gaps import GAPS, disparities, largest_disparity
from skfairdp.fairness._gate import FairnessGate
from skfairdp.fairness._notions import AccuracyParity, DemographicParity, EqualizedOdds

__all__ = [
    "GAPS",
    "AccuracyParity",
    "DemographicParity",
    "EqualizedOdds",
    "FairnessGate",
    "disparities",
    "largest_disparity",
    "rejection_rates",
    "tally",
]
