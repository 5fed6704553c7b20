"""The tables of a search: scikit-learn's cv_results_, and the frame that the frontier display reads."""

import math
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import rankdata

from skfairdp.model_selection._composed_epsilon import expression
from skfairdp.model_selection._frame import (
    COLUMNS,
    as_gamma,
    beaten_by,
    guarantee_record,
    mark_non_dominated,
    parity_weight,
)
from skfairdp.model_selection._objectives import Objective
from skfairdp.model_selection._scores import COMMONEST
from skfairdp.model_selection._search_data import SearchData
from skfairdp.model_selection._search_run import SearchRun
from skfairdp.privacy import PrivacySpent


def results_table(data: SearchData, run: SearchRun, searched: list[Objective]) -> dict[str, Any]:
    """cv_results_ in scikit-learn's form: params, fold scores, means, deviations, ranks; no times."""
    grid = data.grid
    results: dict[str, Any] = {"params": grid, "status": np.array([run.status[j] for j in range(len(grid))])}
    for name in dict.fromkeys(name for params in grid for name in params):
        column = np.ma.masked_all(len(grid), dtype=object)
        for j, params in enumerate(grid):
            if name in params:
                column[j] = params[name]
        results[f"param_{name}"] = column
    for objective in data.scores.objectives:
        results.update(_of_objective(objective, run.measured, len(grid), ranked=objective in searched))
    return results


def _of_objective(
    objective: Objective, measured: dict[int, list[dict[str, float]]], n_candidates: int, *, ranked: bool
) -> dict[str, NDArray[Any]]:
    """The columns of one objective: each fold, mean, deviation, and rank."""
    n_folds = max((len(folds) for folds in measured.values()), default=0)
    table = np.full((n_candidates, n_folds), np.nan)
    for j, folds in measured.items():
        table[j] = [values[objective.name] for values in folds]
    columns = {f"split{fold}_test_{objective.name}": table[:, fold] for fold in range(n_folds)}
    mean = table.mean(axis=1) if n_folds else np.full(n_candidates, np.nan)
    columns[f"mean_test_{objective.name}"] = mean
    with np.errstate(invalid="ignore"):  # ε is infinite where the noise was seeded
        columns[f"std_test_{objective.name}"] = table.std(axis=1) if n_folds else mean
    if ranked:
        worst_last = np.nan_to_num(mean if objective.minimize else -mean, nan=math.inf)
        columns[f"rank_test_{objective.name}"] = rankdata(worst_last, method="min").astype(np.int32)
    return columns


def pareto_table(data: SearchData, run: SearchRun, results: dict[str, Any], privacy: PrivacySpent) -> pd.DataFrame:
    """The scored candidates as :func:`frontier` gives them: ready for the display."""
    scored = np.flatnonzero(results["status"] == "scored").tolist()
    rows = [_point(data, run, results, j) for j in scored]
    frame = pd.DataFrame(rows, columns=None if rows else COLUMNS)
    common = np.array([np.mean([fold.get(COMMONEST, math.nan) for fold in run.measured[j]]) for j in scored])
    frame["non_dominated"] = mark_non_dominated(frame) & ~beaten_by(common, frame)
    frame = frame[[*COLUMNS, *(c for c in frame.columns if c not in COLUMNS)]]
    record = guarantee_record(
        privacy.protects, privacy.neighboring_relation, privacy.delta, privacy.epsilon, run.n_fits
    )
    frame.attrs["scored_on"] = "private" if data.splits else "public"
    if np.isfinite(common).any():
        mark = {"dataset": "", "name": COMMONEST, "private": True, "disparity": 0.0, "coverage": 1.0}
        frame.attrs["references"] = [{**mark, "accuracy": float(np.nanmean(common))}]
    frame.attrs.update({"guarantees": [record], **record})
    return frame


def _point(data: SearchData, run: SearchRun, results: dict[str, Any], j: int) -> dict[str, Any]:
    """A candidate as a row of the frontier's frame, and its other scores."""
    entry, model = run.groups[j].whole, data.candidate.model(data.grid[j])
    part = data.candidate.private_part(model)
    given = model.get_params(deep=True)
    held = given if "gamma" in given else part.get_params()
    # what holds constraints follows those, and 'params' says them
    gamma = math.nan if held.get("constraints") is not None else as_gamma(held.get("gamma"))
    weight = parity_weight(part)
    lam = None if weight is None else part.get_params()[weight]
    means = {key.removeprefix("mean_test_"): values[j] for key, values in results.items() if key.startswith("mean_")}
    return {
        "dataset": "",
        "estimator": type(part).__name__,
        "epsilon": run.epsilon(entry.event),
        "delta": part.delta,
        "protects": entry.protects,
        "neighboring_relation": entry.neighboring_relation,
        "gamma": gamma,
        "student_gamma": gamma,
        "lam": math.nan if lam is None else float(lam),
        "idp3": hasattr(model, "reject_mask"),
        **{name: means[name] for name in ("disparity", "accuracy", "coverage")},
        "params": expression(model),
        "candidate": j,
        **{name: value for name, value in means.items() if name not in COLUMNS},
    }
