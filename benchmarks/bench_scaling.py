"""FairPATE fit at 1e4, 1e5 and 1e6 private rows of 50 features: seconds and peak memory.

    python benchmarks/bench_scaling.py --help

Every size runs alone in a fresh process. To reach: time and memory linear in the rows, and below 6 GiB at 1e6.
"""

import argparse
import json
import time
import warnings

import _common as common
import numpy as np

SIZES = (10_000, 100_000, 1_000_000)
MEMORY_BAR = 6 * 2**30
PUBLIC_SHARE = 5 / 70  # public rows per private row, as in all other benchmarks


def rows(n_rows: int, n_features: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw features, labels and groups without more than one copy of the features."""
    X = np.empty((n_rows, n_features))
    rng.standard_normal(out=X)
    groups = rng.integers(2, size=n_rows)
    X[:, 0] += groups
    weights = np.linspace(1.0, 0.0, n_features)
    y = (X @ weights + rng.logistic(size=n_rows) > 1.0).astype(np.int64)
    return X, y, groups


def run(task: dict) -> dict:
    """Fit once and measure; meant for a process of its own."""
    from skfairdp import FairPATEClassifier, PublicData

    warnings.simplefilter("ignore")  # ad-hoc γ on random rows: whether parity is reached is not the subject
    rng = np.random.default_rng(task["seed"])
    X, y, _ = rows(task["n_rows"], task["n_features"], rng)
    X_public, _, groups = rows(max(200, round(PUBLIC_SHARE * task["n_rows"])), task["n_features"], rng)
    model = FairPATEClassifier(epsilon=1.0, classes=[0, 1], voting=task["voting"], random_state=task["seed"])
    small, few = rows(400, task["n_features"], rng), PublicData(X_public[:100], groups[:100])
    FairPATEClassifier(n_teachers=2, classes=[0, 1], max_queries=100).fit(*small[:2], X_public=few)  # imports
    before = common.peak_memory()
    started, processor_started = time.perf_counter(), time.process_time()
    model.fit(X, y, X_public=PublicData(X_public, groups))
    return {
        "n_rows": task["n_rows"],
        "n_public": len(X_public),
        "n_teachers": model.n_teachers_,
        "seconds": time.perf_counter() - started,
        "cpu_seconds": time.process_time() - processor_started,
        "bytes_before_fit": before,
        "bytes_peak": common.peak_memory(),
    }


def slope(sizes: list[int], values: list[float]) -> float:
    """Exponent b of the power law a·n^b through the points."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def main() -> None:
    parser = common.parser(__doc__, "scaling", seeds=3)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), help="private rows")
    parser.add_argument("--features", type=int, default=50)
    parser.add_argument("--voting", choices=["soft", "confident", "gnmax"], default="soft")
    parser.add_argument("--task", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.task:
        print(json.dumps(run(json.loads(arguments.task))))
        return
    sizes = [2000, 4000] if arguments.quick else sorted(arguments.sizes)
    measured = []
    for seed in common.seeds_of(arguments):
        for n_rows in sizes:  # in turn, so that a busy minute of the machine does not hit one size only
            task = {"n_rows": n_rows, "n_features": arguments.features, "voting": arguments.voting, "seed": seed}
            measured.append({"seed": seed, **common.in_new_process(__file__, task)})
    table = []
    for n_rows in sizes:
        mine = [row for row in measured if row["n_rows"] == n_rows]
        table.append(
            {
                "n_rows": n_rows,
                "n_public": mine[0]["n_public"],
                "n_teachers": mine[0]["n_teachers"],
                "seconds": min(row["seconds"] for row in mine),
                "cpu_seconds": min(row["cpu_seconds"] for row in mine),
                "gib_before_fit": max(row["bytes_before_fit"] for row in mine) / 2**30,
                "gib_peak": max(row["bytes_peak"] for row in mine) / 2**30,
            }
        )
    common.print_table(
        ["private rows", "public rows", "teachers", "seconds", "CPU seconds", "GiB before fit", "GiB peak"],
        [
            [
                f"{row['n_rows']:,}",
                f"{row['n_public']:,}",
                row["n_teachers"],
                f"{row['seconds']:.2f}",
                f"{row['cpu_seconds']:.2f}",
                f"{row['gib_before_fit']:.2f}",
                f"{row['gib_peak']:.2f}",
            ]
            for row in table
        ],
    )
    # From the middle size on: below it, fixed costs (imports, plan, a student on few rows) flatten the line.
    exponents = {key: slope(sizes[-2:], [row[key] for row in table[-2:]]) for key in ("seconds", "cpu_seconds")}
    floor = table[0]["gib_peak"]  # the interpreter's own 200 MiB would hide the growth
    if len(sizes) > 2:
        exponents["bytes"] = slope(sizes[-2:], [row["gib_peak"] - floor for row in table[-2:]])
    print("exponents of n: " + ", ".join(f"{key} {value:.2f}" for key, value in exponents.items()))
    if sizes[-1] >= 1_000_000:
        print(f"peak at {sizes[-1]:,} rows: {table[-1]['gib_peak']:.2f} GiB (to reach: below 6)")
    common.save(
        arguments,
        voting=arguments.voting,
        n_features=arguments.features,
        rows=table,
        exponents=exponents,
        to_reach={"exponent": 1.0, "gib_peak": MEMORY_BAR / 2**30},
    )


if __name__ == "__main__":
    main()
