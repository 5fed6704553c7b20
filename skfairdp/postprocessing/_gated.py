"""What a gate can hold of a constraint, its run over a call's rows, and a word where its decisions mean little."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfairdp.exceptions import FairnessWarning
from skfairdp.fairness import FairnessGate, RateParity, read_rate_constraints
from skfairdp.utils import warn_caller

__all__ = ["admitted", "parity_of"]


def parity_of(constraints: Any) -> RateParity:
    """Return the parity that a gate over groups and answers holds, or raise a ValueError that says why it cannot.

    A gate counts answers, so it can hold what is a function of those counts: differences of selection rates.

    Parameters
    ----------
    constraints : str, RateParity, fairlearn moment, or a list of one of them
        As ``IDP3`` takes it.
    """
    asked = read_rate_constraints(constraints, "IDP3")
    for one in asked:
        if one.rate != "selection_rate":
            raise ValueError(
                f"The 'constraints' parameter of IDP3 asks for {one.rate}, which needs the true label of every row "
                "that is answered. It is not known when the answer is given, and labels that come later can break any "
                "bound kept by then. Use FairnessCalibrator(constraints=...) on labelled public rows, "
                "PrivateThresholds on private ones, or FairDPSGDClassifier(parity=SignedLoss(constraints=...)); once "
                "labels are there, metrics.gap_bound says how far the answers are from it."
            )
    (one, *others) = asked
    if others or not isinstance(one, RateParity) or one.ratio_bound is not None or one.of_class is not None:
        raise ValueError(
            "The 'constraints' parameter of IDP3 must be one parity of the selection rates of all classes with a bound "
            f'on their difference, RateParity("selection_rate", difference_bound=0.05). Got {constraints!r} instead. '
            "FairnessCalibrator and PrivateThresholds hold ratios, bounds and several at once."
        )
    return one


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
