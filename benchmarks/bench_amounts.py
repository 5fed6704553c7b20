"""Private amounts: R² beside a ridge without privacy, and what it costs that groups have the same distribution.

    python benchmarks/bench_amounts.py --seeds 3

Parkinsons' total_UPDRS (rows of ``parkinsons.csv.gz``, guarantee for one recording, rows dealt out at random) and three
tables that are made up: a linear one, one with curves, and skewed amounts. For the second part ``PrivateBarycenter``
spends ε = 1 on rows whose regressor has spent as much; KS is the distance between groups on rows that neither has seen,
and the error is in squares of what it was before.
"""

import warnings
from collections.abc import Callable
from typing import Any

import _common as common
import numpy as np

EPSILONS = (0.15, 0.5, 1.0, 3.0)
Table = tuple[np.ndarray, np.ndarray, np.ndarray, tuple[float, float]]


def parkinsons(rng: np.random.Generator) -> Table:
    """Recordings: all columns but the scores and the person; the group is the sex."""
    import pandas as pd

    from skfairdp.datasets import data_file

    frame = pd.read_csv(data_file("parkinsons"))
    columns = frame.drop(columns=["subject#", "motor_UPDRS", "total_UPDRS"])
    return columns.to_numpy(float), frame["total_UPDRS"].to_numpy(float), frame["sex"].to_numpy(), (0.0, 176.0)


def _features(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    groups = rng.integers(2, size=n)
    X = rng.normal(size=(n, 8))
    X[:, 1] += groups
    return X, groups


def linear(rng: np.random.Generator) -> Table:
    """A sum of three columns of eight, one of which follows the group."""
    X, groups = _features(rng, 5000)
    return X, 20 + X[:, :3] @ [4.0, 2.0, 1.0] + 4 * rng.normal(size=len(X)), groups, (-20.0, 60.0)


def curved(rng: np.random.Generator) -> Table:
    """The same, with a column that counts by its size."""
    X, groups = _features(rng, 5000)
    signal = X[:, :2] @ [3.0, 2.0] + 3 * np.abs(X[:, 2])
    return X, 20 + signal + 3 * rng.normal(size=len(X)), groups, (-20.0, 60.0)


def skewed(rng: np.random.Generator) -> Table:
    """Amounts of a long tail, between bounds that are far too wide."""
    X, groups = _features(rng, 5000)
    return X, np.exp(3 + X[:, :2] @ [0.4, 0.3] + 0.4 * rng.normal(size=len(X))), groups, (0.0, 2000.0)


TABLES: dict[str, Callable[[np.random.Generator], Table]] = {
    "parkinsons": parkinsons,
    "linear": linear,
    "curved": curved,
    "skewed": skewed,
}


def fit(name: str, epsilon: float, seed: int) -> dict[str, Any]:
    """Fit a ridge, a private network, and the barycenter behind it, on the same four fifths of the rows."""
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from skfairdp import FairDPSGDRegressor
    from skfairdp.metrics import ks_disparity
    from skfairdp.postprocessing import PrivateBarycenter

    rng = np.random.default_rng([seed, list(TABLES).index(name)])
    X, y, groups, bounds = TABLES[name](rng)
    order = rng.permutation(len(X))
    train, test = order[: len(X) * 4 // 5], order[len(X) * 4 // 5 :]
    ridge = make_pipeline(StandardScaler(), Ridge()).fit(X[train], y[train])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = FairDPSGDRegressor(epsilon=epsilon, bounds=bounds, random_state=seed).fit(X[train], y[train])
        fair = PrivateBarycenter(model, epsilon=1.0, groups=np.unique(groups).tolist())
        fair.fit(X[train], sensitive_features=groups[train])
    said, moved = model.predict(X[test]), fair.predict(X[test], sensitive_features=groups[test])
    return {
        "table": name,
        "epsilon": epsilon,
        "seed": seed,
        "epsilon_certified": model.privacy_.epsilon,
        "r2": model.score(X[test], y[test]),
        "r2_ridge": ridge.score(X[test], y[test]),
        "ks": ks_disparity(None, said, sensitive_features=groups[test]),
        "ks_moved": ks_disparity(None, moved, sensitive_features=groups[test]),
        "ks_bound": fair.gap_bound_,
        "error_ratio": float(np.mean((moved - y[test]) ** 2) / np.mean((said - y[test]) ** 2)),
    }


def main() -> None:
    parser = common.parser(__doc__ or "", "amounts", seeds=3)
    arguments = parser.parse_args()
    tables, epsilons = (["linear"], (1.0,)) if arguments.quick else (list(TABLES), EPSILONS)
    points = [
        fit(name, epsilon, seed) for name in tables for epsilon in epsilons for seed in common.seeds_of(arguments)
    ]
    figures = ["r2", "r2_ridge", "ks", "ks_moved", "ks_bound", "error_ratio"]
    rows = common.averaged(points, ("table", "epsilon"), figures, by_seed=["r2"])
    common.print_table(
        ["table", "ε", "R²", "R² of a ridge", "KS", "KS moved", "its bound", "error, times"],
        [[row["table"], row["epsilon"], *(common.plus_minus(row[of], 3) for of in figures)] for row in rows],
    )
    common.save(arguments, rows=rows)


if __name__ == "__main__":
    main()
