"""Run a gate over a call's rows, and say when its decisions mean little."""

import numpy as np
from numpy.typing import NDArray

from skfairdp.exceptions import FairnessWarning
from skfairdp.fairness import FairnessGate
from skfairdp.utils import warn_caller

__all__ = ["admitted"]


def admitted(gate: FairnessGate, groups: NDArray[np.int64], labels: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which rows are answered; rows with label code ``n_classes`` are refusals already and are not counted."""
    cold = gate.n_groups * gate.min_count
    if gate.gamma is not None and len(labels) < cold and not gate.counts.any():
        warn_caller(
            f"IDP3 got {len(labels)} row(s) and starts from zero counts: with {gate.n_groups} groups, up to {cold} "
            "rows are answered whatever they do to the gap. Ask about more rows in one call, or carry the counts "
            "with update().",
            FairnessWarning,
        )
    mask = labels < gate.n_classes
    mask[mask] = gate.run(groups[mask], labels[mask])
    if gate.is_stuck():
        warn_caller(
            "IDP3 is stuck: after these rows every further answer would widen the gap, so all are refused. Raise "
            "'min_count' or 'gamma', or let people decide and commit that with update().",
            FairnessWarning,
        )
    return mask
