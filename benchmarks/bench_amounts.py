"""Private amounts: R² of two regressors beside a ridge, and the price of one distribution for all groups.

    python benchmarks/bench_amounts.py --seeds 3 --peers-python peers/bin/python

Parkinsons' total_UPDRS (``parkinsons.csv.gz``, guarantee for one recording, rows dealt out at random), limits of credit
cards in thousands (``credit.csv.gz``), and three tables that are made up: a linear one, one with curves, and skewed
amounts, of which 4,000 rows teach and 20,000 measure. The ridge has no privacy. ``SyntheticDataRegressor`` has its own
learner, and pays for the bins of all columns. DP-EBM (interpret-core, in an environment of its own, without which it is
left out) is told the range of every column for nothing, and has the best of four settings. The group is no feature.
Behind each ``FairDPSGDRegressor`` a ``PrivateBarycenter`` spends ε = 1 more; KS is the distance between groups on rows
that neither has seen, and the error is in squares of what it was before.

With ``--coverage N`` instead: how often ``gap_bound_`` holds in N fits of the barycenter around a known rule, by the
distance of 100,000 further rows; once with half of the rows of one group at one point.
"""

import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _arena_rivals as rivals
import _common as common
import numpy as np

EPSILONS = (0.15, 0.5, 1.0, 3.0)
#: Rows of tables that are made up: so many teach, as a fit of a small table would have, and all others measure.
LEARNED, MADE = 4000, 24_000
Table = tuple[np.ndarray, np.ndarray, np.ndarray, tuple[float, float]]


def parkinsons(rng: np.random.Generator) -> Table:
    """Recordings: all columns but the scores, the person and the sex, which is the group."""
    import pandas as pd

    from skfairdp.datasets import data_file

    frame = pd.read_csv(data_file("parkinsons"))
    columns = frame.drop(columns=["subject#", "motor_UPDRS", "total_UPDRS", "sex"])
    return columns.to_numpy(float), frame["total_UPDRS"].to_numpy(float), frame["sex"].to_numpy(), (0.0, 176.0)


def credit(rng: np.random.Generator) -> Table:
    """Clients: all columns but sex, the default and the limit, which is the amount; the group is the sex."""
    import pandas as pd

    from skfairdp.datasets import data_file

    frame = pd.read_csv(data_file("credit"))
    columns = frame.drop(columns=["LIMIT_BAL", "SEX", "default"])
    return columns.to_numpy(float), frame["LIMIT_BAL"].to_numpy(float) / 1000, frame["SEX"].to_numpy(), (0.0, 1000.0)


def _features(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    groups = rng.integers(2, size=n)
    X = rng.normal(size=(n, 8))
    X[:, 1] += groups
    return X, groups


def linear(rng: np.random.Generator) -> Table:
    """A sum of three columns of eight, one of which follows the group."""
    X, groups = _features(rng, MADE)
    return X, 20 + X[:, :3] @ [4.0, 2.0, 1.0] + 4 * rng.normal(size=len(X)), groups, (-20.0, 60.0)


def curved(rng: np.random.Generator) -> Table:
    """The same, with a column that counts by its size."""
    X, groups = _features(rng, MADE)
    signal = X[:, :2] @ [3.0, 2.0] + 3 * np.abs(X[:, 2])
    return X, 20 + signal + 3 * rng.normal(size=len(X)), groups, (-20.0, 60.0)


def skewed(rng: np.random.Generator) -> Table:
    """Amounts of a long tail, between bounds that are far too wide."""
    X, groups = _features(rng, MADE)
    return X, np.exp(3 + X[:, :2] @ [0.4, 0.3] + 0.4 * rng.normal(size=len(X))), groups, (0.0, 2000.0)


TABLES: dict[str, Callable[[np.random.Generator], Table]] = {
    "parkinsons": parkinsons,
    "credit": credit,
    "linear": linear,
    "curved": curved,
    "skewed": skewed,
}


def boosted(python: str, rows: dict[str, np.ndarray], truth: np.ndarray, **given: Any) -> dict[str, float]:
    """R² of DP-EBM by setting."""
    from sklearn.metrics import r2_score

    found = {}
    for rate, rounds in rivals.EBM_OF_AMOUNTS:
        with tempfile.TemporaryDirectory() as folder:
            np.savez(Path(folder) / "rows.npz", **rows)
            how = {"rows": str(Path(folder) / "rows.npz"), "delta": 1e-5, "rate": rate, "rounds": rounds, **given}
            (said,) = rivals.arrays_of(python, "dp_ebm_amounts", Path(folder), **how)
        found[f"r2_ebm_{rate:g}_{rounds}"] = float(r2_score(truth, said))
    return found


def fit(name: str, epsilon: float, seed: int, peers: str | None) -> dict[str, Any]:
    """Fit a ridge, both private regressors, and the barycenter behind one, on the same rows."""
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from skfairdp import FairDPSGDRegressor, SyntheticDataRegressor
    from skfairdp.metrics import ks_disparity
    from skfairdp.postprocessing import PrivateBarycenter

    rng = np.random.default_rng([seed, list(TABLES).index(name)])
    X, y, groups, bounds = TABLES[name](rng)
    order = rng.permutation(len(X))
    learned = LEARNED if len(X) == MADE else len(X) * 4 // 5
    train, test = order[:learned], order[learned:]
    ridge = make_pipeline(StandardScaler(), Ridge()).fit(X[train], y[train])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = FairDPSGDRegressor(epsilon=epsilon, bounds=bounds, random_state=seed).fit(X[train], y[train])
        synthetic = SyntheticDataRegressor(epsilon=epsilon, bounds_y=bounds, dtypes=float, random_state=seed)
        synthetic.fit(X[train], y[train])
        fair = PrivateBarycenter(model, epsilon=1.0, groups=np.unique(groups).tolist())
        fair.fit(X[train], sensitive_features=groups[train])
    rows = {"X": X[train], "y": y[train], "X_test": X[test]}
    ebm = {} if peers is None else boosted(peers, rows, y[test], epsilon=epsilon, bounds=bounds)
    said, moved = model.predict(X[test]), fair.predict(X[test], sensitive_features=groups[test])
    return {
        "table": name,
        "epsilon": epsilon,
        "seed": seed,
        "epsilon_certified": max(model.privacy_.epsilon, synthetic.privacy_.epsilon),
        "r2": model.score(X[test], y[test]),
        "r2_synthetic": synthetic.score(X[test], y[test]),
        "r2_ridge": ridge.score(X[test], y[test]),
        **ebm,
        "ks": ks_disparity(None, said, sensitive_features=groups[test]),
        "ks_moved": ks_disparity(None, moved, sensitive_features=groups[test]),
        "ks_alike": ks_disparity(None, moved, sensitive_features=rng.permutation(groups[test])),
        "ks_bound": fair.gap_bound_,
        "error_ratio": float(np.mean((moved - y[test]) ** 2) / np.mean((said - y[test]) ** 2)),
    }


def _scores(rng: np.random.Generator, n: int, at_a_point: float) -> tuple[np.ndarray, np.ndarray]:
    groups = rng.integers(2, size=n)
    scores = np.clip(rng.normal(size=n) + 0.7 * groups, -4, 5)
    return np.where((groups == 1) & (rng.random(n) < at_a_point), 1.0, scores)[:, None], groups


def covered(seed: int, epsilon: float, n: int, at_a_point: float) -> dict[str, float]:
    """Whether the certificate of one barycenter holds in the population."""
    from sklearn.linear_model import LinearRegression

    from skfairdp.metrics import ks_disparity
    from skfairdp.postprocessing import PrivateBarycenter

    rng = np.random.default_rng([seed, n])
    X, groups = _scores(rng, n, at_a_point)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rule = LinearRegression().fit([[0.0], [1.0]], [0.0, 1.0])
        fair = PrivateBarycenter(rule, epsilon=epsilon, bounds=(-4, 5), groups=[0, 1])
        fair.fit(X, sensitive_features=groups)
    Z, others = _scores(np.random.default_rng(1), 100_000, at_a_point)
    gap = ks_disparity(None, fair.predict(Z, sensitive_features=others), sensitive_features=others)
    return {"gap": gap, "bound": fair.gap_bound_, "holds": float(gap <= fair.gap_bound_)}


def coverage(n_fits: int) -> list[dict[str, Any]]:
    """How often certificates hold, by rows and ε."""
    rows: list[dict[str, Any]] = []
    for n, epsilon, at_a_point in ((2000, 1.0, 0.0), (8000, 1.0, 0.0), (8000, 3.0, 0.0), (8000, 3.0, 0.5)):
        fits = [covered(seed, epsilon, n, at_a_point) for seed in range(n_fits)]
        means = {name: float(np.mean([fit[name] for fit in fits])) for name in ("gap", "bound", "holds")}
        rows.append({"n_rows": n, "epsilon": epsilon, "at_a_point": at_a_point, "n_fits": n_fits, **means})
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    parser = common.parser(__doc__ or "", "amounts", seeds=3)
    parser.add_argument("--coverage", type=int, metavar="N", help="fits for each setting of the coverage alone")
    parser.add_argument("--peers-python", default=None, help="interpreter that has interpret-core")
    arguments = parser.parse_args()
    if arguments.coverage:
        del arguments.seeds  # the k-th fit has the seed k
        common.save(arguments, name="amounts_coverage", rows=coverage(arguments.coverage))
        return
    tables, epsilons = (["linear"], (1.0,)) if arguments.quick else (list(TABLES), EPSILONS)
    points = [
        fit(name, epsilon, seed, arguments.peers_python)
        for name in tables
        for epsilon in epsilons
        for seed in common.seeds_of(arguments)
    ]
    figures = ["r2", "r2_synthetic", "r2_ridge", "ks", "ks_moved", "ks_alike", "ks_bound", "error_ratio"]
    figures += [name for name in points[0] if name.startswith("r2_ebm")]
    rows = common.averaged(points, ("table", "epsilon"), figures, by_seed=["r2", "r2_synthetic"])
    common.print_table(
        [
            "table",
            "ε",
            "R²",
            "R², synthetic rows",
            "R² of a ridge",
            "KS",
            "KS moved",
            "of equal groups",
            "its bound",
            "error, times",
            *(f"R² of DP-EBM, {name.removeprefix('r2_ebm_')}" for name in figures[8:]),
        ],
        [[row["table"], row["epsilon"], *(common.plus_minus(row[of], 3) for of in figures)] for row in rows],
    )
    common.save(arguments, rows=rows, peers=rivals.peer_versions(arguments.peers_python))


if __name__ == "__main__":
    main()
