"""What fairness means here: constraints, gaps and the running-count gate. Knows no privacy and no model."""

from skfairdp.fairness._constraints import FairnessConstraints
from skfairdp.fairness._gaps import (
    CLEAR_SIZE,
    disparities,
    largest_disparity,
    noise_of_violations,
    rejection_rates,
    tally,
)
from skfairdp.fairness._gate import AmountGate, FairnessGate
from skfairdp.fairness._rate_gate import AnswerGate, RateGate, gaps_of, parity_bound, rate_bounds, violation_bounds
from skfairdp.fairness._rates import (
    NOTIONS,
    RateBound,
    RateConstraints,
    RateParity,
    by_position,
    name_of,
    read_constraints,
    read_rate_constraints,
    refuse_beside_constraints,
    rule_of_gate,
)

__all__ = ["FairnessGate", "RateBound", "RateParity", "disparities"]
