"""The table of operating points that frontier(), the searches and the display share: its columns and its frontier."""

import math
from typing import Any

import pandas as pd

from skfairdp.model_selection._pareto import pareto_frontier

__all__ = ["COLUMNS", "as_gamma", "guarantee_record", "mark_non_dominated", "parity_weight"]

COLUMNS = [
    "dataset",
    "estimator",
    "epsilon",
    "delta",
    "protects",
    "neighboring_relation",
    "gamma",
    "student_gamma",
    "lam",
    "idp3",
    "disparity",
    "accuracy",
    "coverage",
    "non_dominated",
    "params",
]
# Where to look for the trade-off; the sign says which way is better.
_MINIMIZE = {"epsilon": True, "disparity": True, "accuracy": False, "coverage": False}


def mark_non_dominated(frame: pd.DataFrame) -> pd.Series:
    """Non-dominated among rows of one data set and one guarantee: unlike ε are never compared."""
    marks = pd.Series(False, index=frame.index)
    for _, part in frame.groupby(["dataset", "protects", "neighboring_relation"], sort=False):
        marks[part.index] = pareto_frontier(part[list(_MINIMIZE)].to_numpy(float), list(_MINIMIZE.values()))
    return marks


def parity_weight(estimator: Any) -> str | None:
    """Name of the parameter that weighs parity in place of γ; None where γ bounds the gap, or nothing does."""
    params = estimator.get_params(deep=False)
    if hasattr(estimator, "refit_student") and params.get("constraint_at") != "student_loss":
        return None
    return next((name for name in ("lam", "penalty_weight") if name in params), None)


def guarantee_record(protects: Any, relation: Any, delta: float, epsilon: float, n_fits: int) -> dict[str, Any]:
    """What publishing a table costs under one kind of guarantee, as ``attrs["guarantees"]`` holds it."""
    return {
        "protects": protects,
        "neighboring_relation": relation,
        "delta": delta,
        "epsilon_total": epsilon,
        "n_fits": n_fits,
    }


def as_gamma(value: float | None) -> float:
    """γ as a column holds it: NaN where there is none."""
    return math.nan if value is None else float(value)
