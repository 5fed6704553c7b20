"""What fairness means here: constraints, gaps and the running-count gate. Knows no privacy and no model."""

from skfairdp.fairness._answer_gate import AnswerGate
from skfairdp.fairness._constraints import ConstraintColumn, FairnessConstraints
from skfairdp.fairness._gaps import GAPS, disparities, largest_disparity, rejection_rates, tally
from skfairdp.fairness._gate import FairnessGate
from skfairdp.fairness._notions import NOTIONS, by_position, name_of, read_constraints
from skfairdp.fairness._rate_bounds import gaps_of, parity_bound, rate_bounds, violation_bounds
from skfairdp.fairness._rate_gate import RateGate
from skfairdp.fairness._rates import (
    RATE_NOTIONS,
    RATES,
    RateBound,
    RateConstraints,
    RateParity,
    read_rate_constraints,
    rule_of_gate,
)
from skfairdp.fairness._reached import CLEAR_SIZE, LeftOver, last_quarter

__all__ = [
    "CLEAR_SIZE",
    "GAPS",
    "NOTIONS",
    "RATES",
    "RATE_NOTIONS",
    "AnswerGate",
    "ConstraintColumn",
    "FairnessConstraints",
    "FairnessGate",
    "LeftOver",
    "RateBound",
    "RateConstraints",
    "RateGate",
    "RateParity",
    "by_position",
    "disparities",
    "gaps_of",
    "largest_disparity",
    "last_quarter",
    "name_of",
    "parity_bound",
    "rate_bounds",
    "read_constraints",
    "read_rate_constraints",
    "rejection_rates",
    "rule_of_gate",
    "tally",
    "violation_bounds",
]
