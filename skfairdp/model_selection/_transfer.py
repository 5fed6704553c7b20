"""Specification without the data: what a frontier measured on one data set says about another."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from skfairdp.model_selection._frame import mark_non_dominated
from skfairdp.model_selection._pareto import hypervolume

_GUARANTEE = ["protects", "neighboring_relation"]
_SETTING = ["gamma", "student_gamma", "lam", "idp3"]
_MEASURED = ["accuracy", "disparity", "coverage"]
_SAME_EPSILON = 0.01  # calibrations stop within a thousandth of what was asked for


def transfer_frontier(
    source: Any, target: Any, *, tolerance: float = 0.0, reference: Sequence[float] | None = None
) -> pd.DataFrame:
    """Compare the frontiers of two data sets of the same task: how far does each operating point move?

    A regulator who may not see the private data can measure a frontier on data of the same kind, and specify from it
    the least that has to be guaranteed (RQ3 of "Learning to walk impartially on the Pareto frontier of fairness,
    privacy, and utility"). This says what such a specification is worth: for every setting that both frontiers have,
    what was measured on either, and what the target reaches within the bounds that the source suggests.

    No private row is read and nothing is spent: the tables are what their own ε cover.

    Parameters
    ----------
    source, target : DataFrame, or fitted ParetoSearchCV
        As :func:`frontier` returns them, or searches. They share kinds of guarantee and settings (ε within 1 %, γ, λ,
        IDP3; the constructor call as well where that does not tell rows apart).
    tolerance : float, default=0.0
        How far above the source's gap, and below its coverage, a point of the target may lie and still meet the
        specification.
    reference : (accuracy, disparity), default=None
        Worst acceptable values for the hypervolumes in (accuracy, gap). None is the worst in either table.

    Returns
    -------
    DataFrame
        One row for each setting in both tables, in the order of the source: its guarantee and setting; accuracy,
        disparity and coverage on both (``_source``, ``_target``) and their ``_shift``, target minus source;
        ``non_dominated_source`` and ``_target`` among these settings; ``feasible``: some setting of the target costs no
        more ε, has no larger gap and no smaller coverage than this one has on the source; ``attainable_accuracy``: the
        best accuracy of those. ``attrs["summary"]`` says for each kind of guarantee how far points move in the median
        and at most, how alike settings rank (Spearman's correlation of accuracies), which share of the source's
        frontier lies on the target's (``frontier_kept``), the share of ``feasible`` points of the source's frontier,
        and both hypervolumes.

    Raises
    ------
    ValueError
        Not two tables, no setting in common, or rows that nothing tells apart.

    Examples
    --------
    >>> import pandas as pd
    >>> from skfairdp.model_selection import transfer_frontier
    >>> here = pd.DataFrame({"epsilon": [1.0, 1.0], "protects": "record", "neighboring_relation": "replace one record",
    ...                      "gamma": [0.05, None], "student_gamma": [0.05, None], "lam": None, "idp3": False,
    ...                      "accuracy": [0.80, 0.82], "disparity": [0.04, 0.10], "coverage": 1.0})
    >>> there = here.assign(accuracy=[0.78, 0.81], disparity=[0.03, 0.12])
    >>> moved = transfer_frontier(here, there)
    >>> moved[["gamma", "accuracy_shift", "disparity_shift", "feasible"]].round(2).values.tolist()
    [[0.05, -0.02, -0.01, True], [nan, -0.01, 0.02, True]]
    >>> moved.attrs["summary"][0]["accuracy_shift_max"].round(2)
    np.float64(0.02)
    """
    tables = [_table(given, name) for given, name in ((source, "source"), (target, "target"))]
    # An ε of the target that lies this close to one of the source, of the same guarantee, was asked for as the same.
    tables[0]["_level"] = tables[0]["epsilon"]
    tables[1]["_level"] = _levels(*tables)
    keys = [*_GUARANTEE, "_level", *(c for c in ("delta", *_SETTING) if all(c in table for table in tables))]
    if all("estimator" in table for table in tables):
        keys.append("estimator")
    if any(table.duplicated(keys).any() for table in tables) and all("params" in table for table in tables):
        keys.append("params")
    if any(table.duplicated(keys).any() for table in tables):
        raise ValueError(
            f"Rows of transfer_frontier with the same {keys} cannot be told apart. Leave one of each, or give them "
            "different names in the column 'estimator'."
        )
    both = tables[0].merge(tables[1], on=keys, suffixes=("_source", "_target"), how="inner")
    if both.empty:
        raise ValueError(
            "The two tables of transfer_frontier have no setting in common: same guarantee, δ included, ε within 1 %, "
            "and the same gamma, lam and idp3. Measure both over the same grid."
        )
    moved = both[keys].rename(columns={"_level": "epsilon"})
    for name in _MEASURED:
        for side in ("source", "target"):
            moved[f"{name}_{side}"] = both[f"{name}_{side}"]
        moved[f"{name}_shift"] = moved[f"{name}_target"] - moved[f"{name}_source"]
    for side in ("source", "target"):
        side_frame = moved[_GUARANTEE].assign(
            dataset="", epsilon=moved["epsilon"], **{name: moved[f"{name}_{side}"] for name in _MEASURED}
        )
        moved[f"non_dominated_{side}"] = mark_non_dominated(side_frame)
    attainable = [_attainable(row, moved, tolerance) for _, row in moved.iterrows()]
    moved["feasible"] = [not math.isnan(value) for value in attainable]
    moved["attainable_accuracy"] = attainable
    moved.attrs = {"summary": [_summary(part, key, reference) for key, part in moved.groupby(_GUARANTEE, sort=False)]}
    return moved


def _table(given: Any, name: str) -> pd.DataFrame:
    frame = getattr(given, "pareto_table_", given)
    needed = [*_GUARANTEE, "epsilon", *_MEASURED]
    if not isinstance(frame, pd.DataFrame) or not set(needed) <= set(frame.columns):
        raise ValueError(
            f"The {name!r} of transfer_frontier must be a frame of frontier() or a fitted ParetoSearchCV, with the "
            f"columns {needed}. Got {type(given).__name__}."
        )
    if frame.empty:
        raise ValueError(f"The {name!r} of transfer_frontier has no rows.")
    plain = pd.DataFrame({column: frame[column].to_numpy() for column in frame.columns})
    for column in ("gamma", "student_gamma", "lam"):
        if column in plain:
            plain[column] = plain[column].astype(float)
    return plain


def _levels(source: pd.DataFrame, target: pd.DataFrame) -> list[float]:
    """For each ε of the target the one of the source that it stands for. An ε of another guarantee is no likeness."""
    known = {kind: np.unique(part["epsilon"]) for kind, part in source.groupby(_GUARANTEE)}
    kinds = target[_GUARANTEE].itertuples(index=False, name=None)
    return [
        _nearest(known[kind], value) if kind in known else float(value)
        for kind, value in zip(kinds, target["epsilon"], strict=True)
    ]


def _nearest(levels: np.ndarray, value: float) -> float:
    nearest = float(levels[np.argmin(np.abs(levels - value))])
    close = nearest == value or abs(nearest - value) <= _SAME_EPSILON * abs(value)
    return nearest if close else float(value)


def _attainable(row: Any, moved: pd.DataFrame, tolerance: float) -> float:
    """Best accuracy on the target within what this point has on the source; NaN where nothing is."""
    meets = (
        (moved[_GUARANTEE] == row[_GUARANTEE]).all(axis=1)
        & (moved["epsilon"] <= row["epsilon"])
        & (moved["disparity_target"] <= row["disparity_source"] + tolerance)
        & (moved["coverage_target"] >= row["coverage_source"] - tolerance)
    )
    return float(moved.loc[meets, "accuracy_target"].max()) if meets.any() else math.nan


def _worst(*tables: np.ndarray) -> tuple[float, float]:
    """The smallest accuracy and the largest gap in any of the tables: one corner, or volumes would not compare."""
    together = np.concatenate(tables)
    return float(np.nanmin(together[:, 0])), float(np.nanmax(together[:, 1]))


def _summary(part: pd.DataFrame, key: Any, reference: Sequence[float] | None) -> dict[str, Any]:
    chosen = part[part["non_dominated_source"]]
    found: dict[str, Any] = {**dict(zip(_GUARANTEE, key, strict=True)), "n_points": len(part)}
    for name in _MEASURED:
        moves = part[f"{name}_shift"].abs()
        found[f"{name}_shift_median"], found[f"{name}_shift_max"] = moves.median(), moves.max()
    varies = all(part[f"accuracy_{side}"].nunique() > 1 for side in ("source", "target"))
    found["rank_correlation"] = (
        float(spearmanr(part["accuracy_source"], part["accuracy_target"]).statistic) if varies else math.nan
    )
    found["frontier_kept"] = float(chosen["non_dominated_target"].mean())
    found["feasible"] = float(chosen["feasible"].mean())
    pairs = {side: part[[f"accuracy_{side}", f"disparity_{side}"]].to_numpy(float) for side in ("source", "target")}
    corner = _worst(*pairs.values()) if reference is None else reference
    for side, points in pairs.items():
        found[f"hypervolume_{side}"] = hypervolume(points, corner, [False, True])
    return found
