"""How far the rates of groups may lie apart, or where: the nearest differences that a bound allows."""

import math

import numpy as np
from numpy.typing import NDArray

from skfairdp.fairness._rates import RateBound, RateParity

Array = NDArray[np.float64]
#: Halvings of an interval of length 2 or so, down to rounding.
_HALVINGS = 50


def project_to_bounds(constraint: RateParity | RateBound, differences: Array, means: Array) -> Array:
    """The point nearest to some differences among those that a constraint allows."""
    if isinstance(constraint, RateBound):
        lower, upper = _interval(constraint)
        within = np.clip(differences, lower - means, upper - means)
        if constraint.groups in (None, "overall"):
            return within
        of_named = np.isin(np.arange(len(differences)), constraint.groups)
        return np.where(of_named.reshape(-1, *[1] * means.ndim), within, differences)
    factor, slack = constraint.factor_and_slack
    room = slack + (1.0 - factor) * means
    if constraint.method == "to_overall":
        return np.clip(differences, -room, room / factor)
    # the least t; the others lie between t and (t + room) / factor, and t where both sides pull alike
    low, high = differences.min(0), differences.max(0)
    allowed = factor * high <= room + low
    if factor < 1:  # below it lies no room at all
        low = np.maximum(low, -room / (1.0 - factor))
        high = np.maximum(low, high)
    for _ in range(_HALVINGS):
        t = (low + high) / 2
        pull = np.maximum(t - differences, 0.0).sum(0)
        pull -= np.maximum(differences - (t + room) / factor, 0.0).sum(0) / factor
        low, high = np.where(pull < 0, t, low), np.where(pull < 0, high, t)
    least = (low + high) / 2
    found: Array = np.where(allowed, differences, np.clip(differences, least, (least + room) / factor))
    return found


def _interval(bound: RateBound) -> tuple[float, float]:
    """From where to where a rate may lie."""
    return (-math.inf if bound.lower is None else bound.lower), (math.inf if bound.upper is None else bound.upper)
