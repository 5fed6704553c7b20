"""Fits on tables of 150 to 4,000 rows beside the most frequent class, and whether they say where it is no better.

    python benchmarks/bench_small_tables.py --seeds 3                  # every estimator, six kinds of tables
    python benchmarks/bench_small_tables.py --seeds 10 --sizes 150 400 --keep    # more seeds where noise decides
    python benchmarks/bench_small_tables.py --seeds 3 --methods PF-LD SF-PATE --kinds noise

Made-up tables of eight features and two groups; a class has a fixed rate in a table. Two hundred public rows, or none.
Noise is secret. Beside each figure stands what the most frequent class of the private rows gets, counted without noise:
few rows may name the wrong class themselves.
Interrupted, it goes on where it stopped: what is in the output file is not measured again, unless the package has
changed since.
"""

import json
import warnings
from argparse import Namespace
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import _common
import numpy as np
from sklearn.frozen import FrozenEstimator

from skfairdp import (
    IDP3,
    FairClippingClassifier,
    FairDPSGDClassifier,
    FairPATEClassifier,
    PATEClassifier,
    PFLDClassifier,
    RandomizedResponseClassifier,
    SFPATEClassifier,
    SyntheticDataClassifier,
)
from skfairdp.exceptions import UtilityWarning
from skfairdp.postprocessing import PrivateThresholds

SIZES, EPSILONS, N_CLASSES = (150, 400, 1000, 4000), (0.5, 1.0), (2, 3)
N_PUBLIC, N_TEST, N_FEATURES = 200, 4000, 8
RATES = {2: (0.76, 0.24), 3: (0.55, 0.3, 0.15)}
RARE = {2: (0.93, 0.07), 3: (0.85, 0.1, 0.05)}
EVEN = {2: (0.6, 0.4), 3: (0.45, 0.35, 0.2)}
#: Of each kind: what features say of the class, what the group does, the noise, rates of classes, size of group 1.
KINDS: dict[str, tuple[float, float, float, Any, float]] = {
    "logistic": (2.5, 0.5, 1.0, RATES, 0.5),
    "separable": (2.5, 0.5, 0.0, RATES, 0.5),
    "noisy": (0.7, 0.5, 1.0, RATES, 0.5),
    "unfair": (1.5, 2.0, 1.0, EVEN, 0.3),
    "imbalanced": (2.5, 0.5, 1.0, RARE, 0.1),
    "noise": (0.0, 0.0, 1.0, RATES, 0.5),
}
KEYS = ("method", "kind", "n_rows", "n_classes", "epsilon")
FIGURES = ("accuracy", "gain", "warned")
Rows = tuple[Any, Any, Any]


def table(kind: str, n: int, n_classes: int, seed: int) -> Rows:
    """Return features, classes and groups."""
    signal, of_group, noise, rates, share = KINDS[kind]
    rng = np.random.default_rng(seed)
    groups = (rng.random(n) < share).astype(int)
    X = rng.normal(size=(n, N_FEATURES))
    X[:, 0] += of_group * groups
    score = X @ rng.normal(size=N_FEATURES)
    score = signal * score / score.std() + of_group * groups + noise * rng.logistic(size=n)
    return X, np.digitize(score, np.quantile(score, np.cumsum(rates[n_classes])[:-1])), groups


def methods(given: dict[str, Any], private: Rows, public: Rows) -> dict[str, Callable[[], Any]]:
    """Return what fits each estimator, with two hundred public rows or with none."""
    (X, y, groups), (X_public, _, groups_public) = private, public
    grouped = {**given, "groups": [0, 1]}
    own, rows = {"sensitive_features": groups}, {"X_public": X_public, "sensitive_features_public": groups_public}
    half = {**given, "epsilon": given["epsilon"] / 2}

    def thresholds() -> Any:
        model = FairDPSGDClassifier(lam=0.0, **half).fit(X, y)
        return PrivateThresholds(FrozenEstimator(model), epsilon=half["epsilon"], groups=[0, 1]).fit(X, y, **own)

    return {
        "PATE": lambda: PATEClassifier(**given).fit(X, y, X_public=X_public),
        "PATE, no public rows": lambda: PATEClassifier(**given).fit(X, y),
        "FairPATE": lambda: FairPATEClassifier(**grouped).fit(X, y, **rows),
        "FairPATE, no public rows": lambda: FairPATEClassifier(**grouped).fit(X, y, **own),
        "IDP3, no public rows": lambda: IDP3(FairPATEClassifier(**grouped)).fit(X, y, **own),
        "synthetic rows": lambda: SyntheticDataClassifier(bounds=(-6.0, 8.0), **grouped).fit(X, y, **own),
        "DP-SGD": lambda: FairDPSGDClassifier(lam=0.0, **given).fit(X, y),
        "FairDP-SGD": lambda: FairDPSGDClassifier(**grouped).fit(X, y, **rows),
        "FairDP-SGD, no public rows": lambda: FairDPSGDClassifier(**grouped).fit(X, y, **own),
        "private thresholds": thresholds,
        "reweighting": lambda: FairClippingClassifier(**grouped).fit(X, y, **own),
        "DP-SGD-F": lambda: FairClippingClassifier(method="dpsgd_f", **grouped).fit(X, y, **own),
        "Global-Adapt": lambda: FairClippingClassifier(method="global_adapt", **given).fit(X, y),
        "PF-LD": lambda: PFLDClassifier(**grouped).fit(X, y, **own),
        "SF-PATE": lambda: SFPATEClassifier(**grouped).fit(X, y, **own),
        "randomised response": lambda: RandomizedResponseClassifier(**_pure(grouped)).fit(X, y, **own),
    }


def _pure(given: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name != "delta"}


NAMES = tuple(methods({"epsilon": 1.0}, (None,) * 3, (None,) * 3))
ONLY_TWO_CLASSES = ("private thresholds", "randomised response")


def point(key: tuple[Any, ...], seed: int) -> dict[str, Any]:
    """Return what one fit came to."""
    method, kind, n_rows, n_classes, epsilon = key
    data = table(kind, n_rows + N_PUBLIC + N_TEST, n_classes, seed)
    cuts = slice(0, n_rows), slice(n_rows, n_rows + N_PUBLIC), slice(n_rows + N_PUBLIC, None)
    private, public, (X, y, _) = (tuple(values[cut] for values in data) for cut in cuts)
    given: dict[str, Any] = {"epsilon": epsilon, "classes": range(n_classes), "random_state": seed}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = methods(given, private, public)[method]()
    model = getattr(model, "estimator_", model) if method.startswith("IDP3") else model  # which labels it would answer
    predicted = model.predict(X)
    usual = float(np.bincount(y).max() / len(y))
    return {
        **dict(zip(KEYS, key, strict=True)), "seed": seed, "epsilon_certified": model.privacy_.epsilon,
        "accuracy": float(np.mean(predicted == y)), "most_frequent": usual,
        "gain": float(np.mean(predicted == y)) - usual,
        "warned": float(any(issubclass(w.category, UtilityWarning) for w in caught)),
    }  # fmt: skip


@cache
def counted(kind: str, n_rows: int, n_classes: int, seed: int) -> float:
    """Return what the most frequent class of the private rows, counted without noise, loses on other rows."""
    _, y, _ = table(kind, n_rows + N_PUBLIC + N_TEST, n_classes, seed)
    rates = np.bincount(y[n_rows + N_PUBLIC :], minlength=n_classes) / N_TEST
    return float(rates[np.bincount(y[:n_rows], minlength=n_classes).argmax()] - rates.max())


def measured(arguments: Namespace) -> list[dict[str, Any]]:
    """Points of the package of today in the output file."""
    out = arguments.out or (None if arguments.quick else _common.RESULTS / f"{arguments.name}.json")
    if out is None or not out.exists():
        return []
    stored = json.loads(out.read_text(encoding="utf-8")).get("points", [])
    return [point for point in stored if arguments.keep or point["revision"] == _common.revision()]


def cells(arguments: Namespace) -> list[tuple[Any, ...]]:
    """Return the cells that are asked for, small tables first."""
    sizes: Sequence[int] = SIZES[:1] if arguments.quick else arguments.sizes
    return [
        (method, kind, n_rows, n_classes, epsilon)
        for n_rows in sizes
        for kind in arguments.kinds
        for method in arguments.methods
        for n_classes in (N_CLASSES[:1] if method in ONLY_TWO_CLASSES else N_CLASSES)
        for epsilon in EPSILONS
    ]


def below(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the cells that are below the most frequent class by more than a hundredth, on average."""
    return [row for row in rows if row["gain"]["mean"] < -0.01]


def unsaid(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the cells that are no better than the most frequent class on average, and say so in less than half."""
    return [row for row in rows if row["gain"]["mean"] < 0.001 and row["warned"]["mean"] < 0.5]


def cried(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the cells that are clearly better, by two hundredths, and warn all the same in more than half."""
    return [row for row in rows if row["gain"]["mean"] > 0.02 and row["warned"]["mean"] > 0.5]


def main() -> None:
    """Measure, print, save."""
    parser = _common.parser(__doc__ or "", "small_tables", seeds=3)
    parser.add_argument("--methods", nargs="+", default=list(NAMES), choices=NAMES, help="default: all")
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS), help="default: all")
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES), help="private rows (default: all four)")
    parser.add_argument("--keep", action="store_true", help="keep points that an earlier revision has measured")
    arguments = parser.parse_args()
    points, revision, asked = measured(arguments), _common.revision(), cells(arguments)
    done = {(*(one[key] for key in KEYS), one["seed"]) for one in points}
    for seed in _common.seeds_of(arguments):
        for i, key in enumerate(asked):
            if (*key, seed) not in done:
                points.append(point(key, seed) | {"revision": revision})
            if i % 100 == 0:
                _common.save(arguments, points=points)
    rows = _common.averaged(points, KEYS, FIGURES)
    for row in rows:
        key = row["kind"], row["n_rows"], row["n_classes"]
        seeds = [one["seed"] for one in points if all(one[name] == row[name] for name in KEYS)]
        row |= {"n_seeds": len(seeds), "counted": _common.summary([counted(*key, seed) for seed in seeds])}
    for title, kept in (("below by .01", below(rows)), ("unsaid", unsaid(rows)), ("cried", cried(rows))):
        print(f"\n{title}: {len(kept)} of {len(rows)} cells")
        _common.print_table(
            (*KEYS, "gain", "warned"),
            [(*(r[k] for k in KEYS), _common.plus_minus(r["gain"]), f"{r['warned']['mean']:.0%}") for r in kept],
        )
    of_points = ", ".join(sorted({one["revision"] for one in points}))
    _common.save(arguments, rows=rows, points=points, revision=of_points)


if __name__ == "__main__":
    main()
