"""What fairness means here: constraints, gaps and the running-count gate. Knows no privacy and no model."""

from skfairdp.fairness._constraints import FairnessConstraints as FairnessConstraints
from skfairdp.fairness._gaps import (
    CLEAR_SIZE as CLEAR_SIZE,
    disparities,
    largest_disparity as largest_disparity,
    noise_of_violations as noise_of_violations,
    rejection_rates as rejection_rates,
    tally as tally,
)
from skfairdp.fairness._gate import AmountGate as AmountGate, FairnessGate
from skfairdp.fairness._rate_gate import (
    AnswerGate as AnswerGate,
    RateGate as RateGate,
    gaps_of as gaps_of,
    parity_bound as parity_bound,
    rate_bounds as rate_bounds,
    violation_bounds as violation_bounds,
)
from skfairdp.fairness._rates import (
    NOTIONS as NOTIONS,
    RateBound,
    RateConstraints as RateConstraints,
    RateParity,
    by_position as by_position,
    name_of as name_of,
    read_constraints as read_constraints,
    read_rate_constraints as read_rate_constraints,
    refuse_beside_constraints as refuse_beside_constraints,
    rule_of_gate as rule_of_gate,
)

__all__ = ["FairnessGate", "RateBound", "RateParity", "disparities"]
