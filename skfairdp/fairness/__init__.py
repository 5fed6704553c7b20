"""What fairness means here: constraints, gaps and the running-count gate. Knows no privacy and no model."""

from skfairdp.fairness._constraints import FairnessConstraints
from skfairdp.fairness._gate import AmountGate, FairnessGate, disparities, largest_disparity, rejection_rates, tally
from skfairdp.fairness._rate_gate import (
    CLEAR_SIZE,
    AnswerGate,
    RateGate,
    gaps_of,
    noise_of_violations,
    parity_bound,
    rate_bounds,
    violation_bounds,
)
from skfairdp.fairness._rates import (
    BY_CHANCE,
    NOTIONS,
    RateBound,
    RateConstraints,
    RateParity,
    by_position,
    constant_meets,
    name_of,
    read_constraints,
    read_rate_constraints,
    refuse_beside_constraints,
    rule_of_gate,
)

__all__ = ["FairnessGate", "RateBound", "RateParity", "disparities"]
