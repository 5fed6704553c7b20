"""Every main fit at 1e4, 1e5, 3e5 and 1e6 rows of 50 numbers in memory: seconds of the processor, and peak memory.

    python benchmarks/bench_scaling.py --fits FairPATE PATE --sizes 100000

Each fit runs alone in a fresh process, with one thread, after a small one that imports what it needs. Peak memory is
that of the whole process: the interpreter, its packages and the table are in it. A figure that has grown by more than a
tenth since it was stored is a regression: it is said, and with ``--check``, which stores nothing, the command fails.
Seconds are compared in units of a yardstick, products and functions of arrays that no change of the package can slow,
so that another machine or other work beside it count for less. Fits that are not run keep their figures.
"""

import argparse
import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import _common as common
import numpy as np

SIZES = (10_000, 100_000, 300_000, 1_000_000)
N_FEATURES = 50
PUBLIC_SHARE = 5 / 70  # public rows per private row, as in all other benchmarks
GROWTH = 1.1
#: Smaller differences are no growth: yardsticks (about a second each), GiB.
LEAST = {"yardsticks": 0.2, "gib_peak": 0.05}


def rows(n_rows: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw features, labels and groups without more than one copy of the features."""
    X = np.empty((n_rows, N_FEATURES))
    rng.standard_normal(out=X)
    groups = rng.integers(2, size=n_rows)
    X[:, 0] += groups
    weights = np.linspace(1.0, 0.0, N_FEATURES)
    return X, (X @ weights + rng.logistic(size=n_rows) > 1.0).astype(np.int64), groups


def _fair_pate(rng: Any, *table: Any, public: bool = True) -> None:
    from skfairdp import FairPATEClassifier, PublicData

    X, y, groups = table
    model = FairPATEClassifier(classes=[0, 1], groups=[0, 1], random_state=0)
    if not public:
        model.fit(X, y, sensitive_features=groups)
        return
    X_public, _, of_public = rows(max(200, round(PUBLIC_SHARE * len(X))), rng)
    model.fit(X, y, X_public=PublicData(X_public, of_public))


def _pate(rng: Any, X: Any, y: Any, groups: Any) -> None:
    from skfairdp import PATEClassifier

    X_public = rows(max(200, round(PUBLIC_SHARE * len(X))), rng)[0]
    PATEClassifier(classes=[0, 1], random_state=0).fit(X, y, X_public=X_public)


def _fair_dpsgd(rng: Any, X: Any, y: Any, groups: Any) -> None:
    from skfairdp import FairDPSGDClassifier, PublicData

    X_public, _, of_public = rows(max(200, round(PUBLIC_SHARE * len(X))), rng)
    model = FairDPSGDClassifier(classes=[0, 1], groups=[0, 1], random_state=0)
    model.fit(X, y, X_public=PublicData(X_public, of_public))


def _with_groups(name: str, **parameters: Any) -> Callable[..., None]:
    def fit(rng: Any, X: Any, y: Any, groups: Any) -> None:
        import skfairdp

        getattr(skfairdp, name)(random_state=0, **parameters).fit(X, y, sensitive_features=groups)

    return fit


DOMAINS = {"classes": [0, 1], "groups": [0, 1]}
FITS: dict[str, Callable[..., None]] = {
    "FairPATE": _fair_pate,
    "PATE": _pate,
    "FairPATE, no public rows": lambda *given: _fair_pate(*given, public=False),
    "FairDPSGD": _fair_dpsgd,
    "SyntheticDataClassifier": lambda rng, X, y, groups: _with_groups("SyntheticDataClassifier")(rng, X, y, None),
    "PFGuard": _with_groups("PFGuardGenerator"),
    "PF-LD": _with_groups("PFLDClassifier", **DOMAINS),
    "SF-PATE": _with_groups("SFPATEClassifier", **DOMAINS),
}


def yardstick() -> float:
    """Seconds that this machine takes, just now, for what fits are made of."""
    a, started = np.random.default_rng(0).standard_normal((1500, 1500)), time.process_time()
    for _ in range(4):
        np.tanh(a @ a).sort(axis=0)
    return time.process_time() - started


def run(task: dict[str, Any]) -> dict[str, Any]:
    """Fit once and measure; meant for a process of its own."""
    warnings.simplefilter("ignore")  # whether parity is reached on random rows is not the subject
    rng, fit = np.random.default_rng(task["seed"]), FITS[task["fit"]]
    fit(rng, *rows(2000, rng))  # imports
    table = rows(task["n_rows"], rng)
    before, unit, started = common.peak_memory(), yardstick(), time.process_time()
    fit(rng, *table)
    seconds, unit = time.process_time() - started, (unit + yardstick()) / 2
    return {
        "fit": task["fit"],
        "n_rows": task["n_rows"],
        "cpu_seconds": seconds,
        "yardsticks": seconds / unit,
        "gib_before_fit": before / 2**30,
        "gib_peak": common.peak_memory() / 2**30,
    }


def grown(row: dict[str, Any], stored: dict[str, Any] | None) -> list[str]:
    """Which figures of a row are more than a tenth above those stored."""
    if stored is None:
        return []
    return [
        f"{row['fit']}, {row['n_rows']:,} rows: {name} {row[name]:.2f}, stored {stored[name]:.2f}"
        for name, least in LEAST.items()
        if row[name] > GROWTH * stored[name] and row[name] - stored[name] > least
    ]


def main() -> None:
    parser = common.parser(__doc__, "scaling", seeds=1)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), help="rows")
    parser.add_argument("--fits", nargs="+", choices=list(FITS), default=list(FITS))
    parser.add_argument("--check", action="store_true", help="store nothing, and fail where a figure has grown")
    parser.add_argument("--task", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.task:
        print(json.dumps(run(json.loads(arguments.task))))
        return
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")  # of the processes that fit
    out = arguments.out or common.RESULTS / "scaling.json"
    stored = json.loads(out.read_text(encoding="utf-8")) if out.exists() else {"rows": []}
    known = {
        (row["fit"], row["n_rows"]): {"revision": stored["revision"], **row}
        for row in stored["rows"]
        if "yardsticks" in row
    }
    found, growth, revision = {}, [], common.revision()
    for fit in arguments.fits:
        for n_rows in [2000, 4000] if arguments.quick else sorted(arguments.sizes):
            tasks = [{"fit": fit, "n_rows": n_rows, "seed": seed} for seed in common.seeds_of(arguments)]
            runs = [common.in_new_process(__file__, task) for task in tasks]
            row = min(runs, key=lambda one: one["yardsticks"]) | {"gib_peak": max(one["gib_peak"] for one in runs)}
            found[fit, n_rows] = row | {"revision": revision}
            growth += grown(row, known.get((fit, n_rows)))
            print(f"{fit:26} {n_rows:9,} rows {row['cpu_seconds']:6.1f} s {row['gib_peak']:5.2f} GiB", flush=True)
    order = list(FITS)
    every = sorted((known | found).values(), key=lambda row: (order.index(row["fit"]), row["n_rows"]))
    print("\n".join([*growth, f"{len(growth)} regressions: figures that grew by more than a tenth"]))
    if arguments.check:
        sys.exit(bool(growth))
    every_revision = ", ".join(dict.fromkeys(str(row["revision"]) for row in every))
    # of whatever sizes it was measured this time
    whole = {} if arguments.quick else {"command": "python benchmarks/bench_scaling.py"}
    common.save(arguments, n_features=N_FEATURES, rows=every, revision=every_revision, **whole)


if __name__ == "__main__":
    main()
