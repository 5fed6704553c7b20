"""What a gate can hold of a constraint, its run over a call's rows, and a word where its decisions mean little."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfairdp._utils import warn_caller
from skfairdp.exceptions import FairnessWarning
from skfairdp.fairness import AnswerGate, FairnessGate, RateBound, RateGate, RateParity, read_rate_constraints


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


def admitted(
    gate: FairnessGate | AnswerGate, groups: NDArray[np.int64], labels: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return which rows are answered; rows with label code ``n_classes`` are refusals already and are not counted."""
    cold = gate.n_groups * gate.min_count
    bounded = isinstance(gate, AnswerGate) or gate.gamma is not None
    if bounded and len(labels) < cold and not gate.counts.any():
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
            f"'min_count' or {'the bound' if isinstance(gate, AnswerGate) else repr('gamma')}, or let people decide "
            "and commit that with update().",
            FairnessWarning,
        )
    elif isinstance(gate, AnswerGate):
        _warn_of_few(gate)
    return mask


def _warn_of_few(gate: AnswerGate) -> None:
    """Say so where a ratio closes a class to all groups, as too few members have had it."""
    for k in gate.starved().tolist():
        most = int(gate.counts[:, k].max())
        warn_caller(
            f"IDP3 gives the answer {gate.constraints.classes[k]!r} to no group any more: no group has more than "
            f"{most} of it, and one more would break the ratio. Raise 'min_count', so that more of it come before "
            "the gate does, or allow a small difference beside the ratio: RateParity(..., difference_bound=0.02, "
            "ratio_bound=...).",
            FairnessWarning,
        )


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
