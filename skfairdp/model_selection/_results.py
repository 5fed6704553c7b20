"""The tables of a search: scikit-learn's cv_results_, and the frame that the frontier display reads."""

import math
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from skfairdp.model_selection._candidate import Candidate
from skfairdp.model_selection._composed_epsilon import expression
from skfairdp.model_selection._objectives import Objective
from skfairdp.model_selection._pareto import pareto_frontier
from skfairdp.privacy import LedgerEntry, PrivacySpent, epsilon_of

__all__ = ["pareto_table", "results_table"]


def results_table(
    grid: list[dict[str, Any]],
    objectives: list[Objective],
    searched: list[Objective],
    measured: dict[int, list[dict[str, float]]],
    status: dict[int, str],
) -> dict[str, Any]:
    """cv_results_ in scikit-learn's form: params, fold scores, means, deviations, ranks; no times."""
    n_folds = max((len(folds) for folds in measured.values()), default=0)
    results: dict[str, Any] = {"params": grid, "status": np.array([status[j] for j in range(len(grid))])}
    for name in dict.fromkeys(name for params in grid for name in params):
        column = np.ma.masked_all(len(grid), dtype=object)
        for j, params in enumerate(grid):
            if name in params:
                column[j] = params[name]
        results[f"param_{name}"] = column
    for objective in objectives:
        table = np.full((len(grid), n_folds), np.nan)
        for j, folds in measured.items():
            table[j] = [values[objective.name] for values in folds]
        for fold in range(n_folds):
            results[f"split{fold}_test_{objective.name}"] = table[:, fold]
        mean = table.mean(axis=1) if n_folds else np.full(len(grid), np.nan)
        results[f"mean_test_{objective.name}"] = mean
        with np.errstate(invalid="ignore"):  # ε is infinite where the noise was seeded
            results[f"std_test_{objective.name}"] = table.std(axis=1) if n_folds else mean
        if objective in searched:
            worst_last = np.nan_to_num(mean if objective.minimize else -mean, nan=math.inf)
            results[f"rank_test_{objective.name}"] = rankdata(worst_last, method="min").astype(np.int32)
    return results


def pareto_table(
    candidate: Candidate,
    grid: list[dict[str, Any]],
    entries: dict[int, LedgerEntry],
    results: dict[str, Any],
    privacy: PrivacySpent,
    n_fits: int,
    scored_on: str,
) -> pd.DataFrame:
    """The scored candidates as :func:`frontier` gives them: ready for the display."""
    from skfairdp.model_selection._frontier import COLUMNS, weighs_parity

    rows = []
    for j in np.flatnonzero(results["status"] == "scored"):
        entry, model = entries[int(j)], candidate.model(grid[int(j)])
        part = candidate.private_part(model)
        gamma = model.get_params(deep=True).get("gamma", part.get_params().get("gamma"))
        refuses = hasattr(model, "reject_mask")
        secret = candidate.parameter("noise_seed") is None
        rows.append(
            {
                "dataset": "",
                "estimator": type(part).__name__,
                "epsilon": epsilon_of(entry.event, part.delta) if secret else math.inf,
                "delta": part.delta,
                "protects": entry.protects,
                "neighboring_relation": entry.neighboring_relation,
                "gamma": math.nan if gamma is None else float(gamma),
                "student_gamma": math.nan if gamma is None else float(gamma),
                "lam": float(part.lam) if weighs_parity(part) else math.nan,
                "idp3": refuses,
                **{name: results[f"mean_test_{name}"][j] for name in ("disparity", "accuracy", "coverage")},
                "params": expression(model),
                "candidate": int(j),
                **{
                    key.removeprefix("mean_test_"): values[j]
                    for key, values in results.items()
                    if key.startswith("mean_test_") and key.removeprefix("mean_test_") not in COLUMNS
                },
            }
        )
    frame = pd.DataFrame(rows, columns=None if rows else COLUMNS)
    # A gap that is not known (no groups) does not count.
    compared = [c for c in ("epsilon", "disparity", "accuracy", "coverage") if frame[c].notna().all()]
    frame["non_dominated"] = pareto_frontier(
        frame[compared].replace(math.inf, 1e300).to_numpy(float), [c in ("epsilon", "disparity") for c in compared]
    )
    frame = frame[[*COLUMNS, *(c for c in frame.columns if c not in COLUMNS)]]
    record = {
        "protects": privacy.protects,
        "neighboring_relation": privacy.neighboring_relation,
        "delta": privacy.delta,
        "epsilon_total": privacy.epsilon,
        "n_fits": n_fits,
    }
    frame.attrs["scored_on"] = scored_on
    frame.attrs.update({"guarantees": [record], **record})
    return frame
