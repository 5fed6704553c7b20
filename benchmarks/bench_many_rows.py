"""FairDPSGD on many rows: 20 passes by batches of 512 against fewer passes over larger batches, at the same ε.

    python benchmarks/bench_many_rows.py --rows 200000 --seeds 2

Rows are made like those of Adult: drawn from it with some columns of other rows, and labelled by the probabilities of
boosted trees that were fitted to it. So accuracy is exact but for the draw of rows, and no model of ours has an edge.
Without the file of Adult the rows are of ``make_biased_classification``.
"""

import itertools
import time
import warnings
from typing import Any

import _common as common
import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier

EPSILONS = (0.5, 1.0, 3.0)
MIXED = 0.15  # share of rows in which a column is another row's
SETTINGS: dict[str, dict[str, Any]] = {"20 passes of 512": {"batch_size": 512, "max_epochs": 20}, "the default": {}}


def encoded() -> tuple[np.ndarray, np.ndarray, np.ndarray, list[list[int]]]:
    """Features, labels and groups of the table that rows are made like, and which features are of one column."""
    from skfairdp.datasets import fetch_adult, make_biased_classification

    try:
        found = fetch_adult()
        table, target, groups = found["data"], found["target"], found["sensitive_features"]
    except FileNotFoundError:
        table, target, groups = make_biased_classification(40_000, disparity=0.3, as_frame=True, random_state=0)
    parts = []
    for name in table.columns:
        numeric = pd.api.types.is_numeric_dtype(table[name])
        column = (
            table[name].to_numpy(dtype=float) if numeric else pd.get_dummies(table[name].astype(str)).to_numpy(float)
        )
        if numeric:
            column = np.log1p(column) if column.min() >= 0 and column.max() > 1000 else column
            column = (column - column.mean()) / column.std()
        parts.append(column.reshape(len(table), -1))
    ends = np.cumsum([0] + [part.shape[1] for part in parts]).tolist()
    blocks = [list(range(*pair)) for pair in itertools.pairwise(ends)]
    codes = (pd.factorize(np.asarray(values), sort=True)[0] for values in (target, groups))
    return np.hstack(parts), *codes, blocks


def made(n_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows, labels, groups, and the probability of the label."""
    X, y, groups, blocks = encoded()
    judge = HistGradientBoostingClassifier(max_iter=150, random_state=0).fit(np.column_stack([X, groups]), y)
    rng = np.random.default_rng(seed)
    drawn = rng.integers(len(X), size=n_rows)
    rows = X[drawn]
    for block in blocks:
        some = np.flatnonzero(rng.random(n_rows) < MIXED)
        rows[np.ix_(some, block)] = X[np.ix_(rng.integers(len(X), size=len(some)), block)]
    likely = judge.predict_proba(np.column_stack([rows, groups[drawn]]))[:, 1]
    return rows, (rng.random(n_rows) < likely).astype(int), groups[drawn], likely


def fitted(
    setting: str, epsilon: float, lam: float, seed: int, n_rows: int, table: tuple[np.ndarray, ...]
) -> dict[str, Any]:
    """One fit on the first rows, with 10,000 public ones behind them, measured on the rest."""
    from skfairdp import FairDPSGDClassifier, PublicData
    from skfairdp.gradient import mlp

    X, y, groups, likely = table
    own, public, test = slice(n_rows), slice(n_rows, n_rows + 10_000), slice(n_rows + 10_000, None)
    given = {"X_public": PublicData(X[public], groups[public])} if lam else {}
    model = FairDPSGDClassifier(
        epsilon=epsilon, lam=lam, net=mlp(**SETTINGS[setting]), classes=[0, 1], groups=[0, 1], random_state=seed
    )
    started = time.process_time()
    model.fit(X[own], y[own], **given)
    seconds = time.process_time() - started
    q, p = np.clip(model.predict_proba(X[test])[:, 1].astype(float), 1e-9, 1 - 1e-9), likely[test]
    yes, of = q > 0.5, groups[test] == 1
    return {
        "setting": setting,
        "epsilon": epsilon,
        "lam": lam,
        "epsilon_certified": model.privacy_.epsilon,
        "steps": model.n_steps_,
        "accuracy": float(np.where(yes, p, 1 - p).mean()),
        "log_loss": float(-(p * np.log(q) + (1 - p) * np.log(1 - q)).mean()),
        "disparity": float(abs(yes[of].mean() - yes[~of].mean())),
        "cpu_seconds": seconds,
    }


def main() -> None:
    parser = common.parser(__doc__, "many_rows", seeds=2)
    parser.add_argument("--rows", type=int, default=200_000)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    n_rows = 60_000 if arguments.quick else arguments.rows
    tasks = [(1.0, 0.0)] if arguments.quick else [*((epsilon, 0.0) for epsilon in EPSILONS), (1.0, 1.0)]
    points = []
    for seed in common.seeds_of(arguments):
        table = made(n_rows + 50_000, seed)
        for epsilon, lam in tasks:
            for setting in SETTINGS:
                points.append(fitted(setting, epsilon, lam, seed, n_rows, table))
                print(points[-1], flush=True)
    figures = ["accuracy", "log_loss", "disparity", "cpu_seconds"]
    rows = common.averaged(points, ["setting", "epsilon", "lam", "steps"], figures)
    best = float(np.maximum(table[3], 1 - table[3]).mean())
    common.save(arguments, n_rows=n_rows, best_accuracy=best, rows=rows)


if __name__ == "__main__":
    main()
