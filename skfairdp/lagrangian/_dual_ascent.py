"""The dual half of the training: when multipliers move, and how far."""

from skfairdp.fairness import FairnessConstraints

__all__ = ["dual_schedule", "first_dual_step"]

# Of multipliers, whose violations lie between -1 and 1: first steps of one notion, and of several.
_LONG_STEP, _SHORT_STEP = 10.0, 1.0


def dual_schedule(steps: int, dual_steps: int) -> dict[int, float]:
    """When multipliers move, evenly over the training, and by which share of their first step.

    The last of n moves is 1/n as long as the first: long steps reach large multipliers, short ones settle.

    Parameters
    ----------
    steps : int
        Steps of the training.
    dual_steps : int
        Moves; fewer where there are not as many steps.

    Returns
    -------
    dict of int to float

    Examples
    --------
    >>> from skfairdp.lagrangian import dual_schedule
    >>> dual_schedule(100, 4)
    {20: 1.0, 40: 0.75, 60: 0.5, 80: 0.25}
    """
    at = sorted({max(1, round((r + 1) * steps / (dual_steps + 1))) for r in range(dual_steps)})
    return {t: 1 - moved / dual_steps for moved, t in enumerate(at)}


def first_dual_step(constraints: FairnessConstraints) -> float:
    """How far a multiplier moves for a violation of 1, unless somebody knows better.

    Several notions may contradict each other: multipliers then grow for as long as they are moved, and their steps are
    short.
    """
    return _LONG_STEP if len(set(constraints.notions)) == 1 else _SHORT_STEP
