"""Fits on tables of 150 to 4,000 rows beside the most frequent class, and whether they say where it is no better.

    python benchmarks/bench_small_tables.py --seeds 10

Tables follow a logistic rule of eight features; classes have fixed rates. Two hundred public rows, or none.
"""

import warnings
from typing import Any

import _common
import numpy as np

from skfairdp import FairDPSGDClassifier, FairPATEClassifier, PATEClassifier, SyntheticDataClassifier
from skfairdp.exceptions import UtilityWarning

RATES = {2: (0.76, 0.24), 3: (0.55, 0.3, 0.15)}
N_PUBLIC, N_TEST, N_FEATURES = 200, 2000, 8


def table(n: int, n_classes: int, seed: int) -> tuple[Any, Any, Any]:
    """Return features, classes and groups."""
    rng = np.random.default_rng(seed)
    X, groups = rng.normal(size=(n, N_FEATURES)), rng.integers(2, size=n)
    score = X @ rng.normal(size=N_FEATURES)
    score = 2.5 * score / score.std() + 0.5 * groups + rng.logistic(size=n)
    return X, np.digitize(score, np.quantile(score, np.cumsum(RATES[n_classes])[:-1])), groups


def fit(method: str, epsilon: float, n_classes: int, private: Any, public: Any, seed: int) -> Any:
    """Return a fitted model."""
    (X, y, groups), (X_public, _, groups_public) = private, public
    given: dict[str, Any] = {"epsilon": epsilon, "classes": range(n_classes), "random_state": seed}
    if method == "DP-SGD":
        return FairDPSGDClassifier(lam=0.0, **given).fit(X, y)
    if method == "PATE":
        return PATEClassifier(**given).fit(X, y, X_public=X_public)
    if method == "PATE, no public rows":
        return PATEClassifier(**given).fit(X, y)
    if method == "synthetic rows":
        return SyntheticDataClassifier(groups=[0, 1], bounds=(-6.0, 6.0), **given).fit(X, y, sensitive_features=groups)
    if method == "FairPATE":
        fair = FairPATEClassifier(groups=[0, 1], **given)
        return fair.fit(X, y, X_public=X_public, sensitive_features_public=groups_public)
    return FairPATEClassifier(groups=[0, 1], **given).fit(X, y, sensitive_features=groups)


METHODS = ("PATE", "PATE, no public rows", "FairPATE", "FairPATE, no public rows", "DP-SGD", "synthetic rows")


def point(method: str, n_rows: int, n_classes: int, epsilon: float, seed: int) -> dict[str, Any]:
    """Return what one fit came to."""
    data = table(n_rows + N_PUBLIC + N_TEST, n_classes, seed)
    cuts = slice(0, n_rows), slice(n_rows, n_rows + N_PUBLIC), slice(n_rows + N_PUBLIC, None)
    private, public, (X, y, _) = (tuple(values[cut] for values in data) for cut in cuts)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = fit(method, epsilon, n_classes, private, public, seed)
    return {
        "method": method, "n_rows": n_rows, "n_classes": n_classes, "epsilon": epsilon,
        "epsilon_certified": model.privacy_.epsilon, "accuracy": float(model.score(X, y)),
        "most_frequent": float(np.bincount(y).max() / len(y)),
        "warned": float(any(w.category is UtilityWarning for w in caught)),
    }  # fmt: skip


def main() -> None:
    """Measure, print, save."""
    arguments = _common.parser(__doc__ or "", "small_tables", seeds=10).parse_args()
    sizes = (150,) if arguments.quick else (150, 400, 1000, 4000)
    points = []
    for n_rows in sizes:
        for n_classes in RATES:
            for epsilon in (0.5, 1.0):
                for method in METHODS:
                    points += [point(method, n_rows, n_classes, epsilon, seed) for seed in _common.seeds_of(arguments)]
    rows = _common.averaged(
        points, ("method", "n_rows", "n_classes", "epsilon"), ("accuracy", "most_frequent", "warned"),
        by_seed=("accuracy", "most_frequent", "warned"),
    )  # fmt: skip
    _common.print_table(
        ("method", "rows", "classes", "epsilon", "accuracy", "most frequent", "warned"),
        [
            (r["method"], r["n_rows"], r["n_classes"], r["epsilon"], _common.plus_minus(r["accuracy"]),
             f"{r['most_frequent']['mean']:.3f}", f"{r['warned']['mean']:.0%}")
            for r in rows
        ],
    )  # fmt: skip
    _common.save(arguments, rows=rows)


if __name__ == "__main__":
    main()
