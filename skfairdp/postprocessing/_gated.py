"""What a gate can hold of a constraint, its run over a call's rows, and a word where its decisions mean little."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfairdp.exceptions import FairnessWarning
from skfairdp.fairness import FairnessGate, RateBound, RateGate, RateParity, read_rate_constraints
from skfairdp.utils import warn_caller

__all__ = ["admitted", "admitted_by_rates", "asked_of_labels", "parity_of", "warn_of_noise"]


def asked_of_labels(constraints: Any) -> tuple[RateParity | RateBound, ...]:
    """Return what is asked where any of it looks at true labels; nothing where answers alone decide."""
    if constraints is None:
        return ()
    asked = read_rate_constraints(constraints, "IDP3")
    return asked if any(one.rate != "selection_rate" for one in asked) else ()


def warn_of_noise(constraints: Any, min_count: int) -> None:
    """Say so where the gaps with which constraints come into force are the noise of few labels.

    Two shares of M rows each differ by about 1/√(2M) in groups that are alike, where the share is a half.
    """
    bounds = [one.factor_and_slack[1] for one in asked_of_labels(constraints) if isinstance(one, RateParity)]
    smallest = min((bound for bound in bounds if bound > 0), default=math.inf)
    needed = math.ceil(round(0.5 / smallest**2, 6))  # 0 where no difference is bounded
    if min_count < needed:
        warn_caller(
            f"The rates that IDP3 compares come into force with min_count={min_count} labels each. By chance alone "
            f"they differ by about {math.sqrt(0.5 / max(min_count, 1)):.3f} then, and {smallest:g} is asked: the gate "
            f"may begin in a state that no answer leads out of. Raise 'min_count' to {needed}, or the bound.",
            FairnessWarning,
        )


def parity_of(constraints: Any) -> RateParity:
    """Return the parity that a gate over groups and answers holds, or raise a ValueError that says why it cannot.

    Such a gate counts answers, so it can hold what is a function of those counts: differences of selection rates.

    Parameters
    ----------
    constraints : str, RateParity, fairlearn moment, or a list of one of them
        As ``IDP3`` takes it, where nothing of it looks at true labels.
    """
    one, *others = read_rate_constraints(constraints, "IDP3")
    if others or not isinstance(one, RateParity) or one.ratio_bound is not None or one.of_class is not None:
        raise ValueError(
            "The 'constraints' parameter of IDP3 must be one parity of the selection rates of all classes with a bound "
            'on their difference, RateParity("selection_rate", difference_bound=0.05), or look at true labels. '
            f"Got {constraints!r} instead. FairnessCalibrator and PrivateThresholds hold ratios, bounds and several at "
            "once."
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


def admitted_by_rates(gate: RateGate, groups: NDArray[np.int64], labels: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which rows are answered where labels come later; refusals, of code ``n_classes``, are not counted."""
    if not gate.all_in_force():
        warn_caller(
            f"IDP3 does not hold all of its constraints yet: fewer than min_count={gate.min_count} labels have come "
            "back for some rate that they compare, so that answers are given whatever they do to it. Hand labels in "
            "with update_labels().",
            FairnessWarning,
        )
    if gate.is_stuck():
        waits = bool(gate.outstanding.any())
        what = (
            "hand labels that have come back to update_labels(), None for those that never will"
            if waits
            else "let people decide and commit that with update() and update_labels(), allow a larger difference, or "
            "make the classifier fairer first, with FairnessCalibrator or PrivateThresholds of the same constraints"
        )
        why = "could break a constraint by the label that comes back" if waits else "would widen a gap or could"
        warn_caller(f"IDP3 refuses all rows: every further answer {why}. To go on, {what}.", FairnessWarning)
    mask = labels < gate.n_classes
    mask[mask] = gate.run(groups[mask], labels[mask])
    return mask
