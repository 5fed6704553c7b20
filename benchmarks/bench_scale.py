"""Work on tables of up to 10⁸ rows: seconds and peak memory by the number of rows, beside what was to be reached.

    python benchmarks/bench_scale.py --rows fair-dpsgd --sizes 10000000

Parquet tables of 20 columns (8 numbers, 12 categories) with a label, a group and an id are written chunk by chunk and
kept between runs. Each row of the table runs alone in a fresh process, and the memory is that of all its processes at
their common peak. What the result file already has is not run again, so that a run that was stopped goes on.
"""

import argparse
import json
import operator
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import _common as common
import numpy as np
import pandas as pd
from _scale_goals import GOALS, MILLION, Goal

CHUNK = 250_000
N_NUMBERS, N_CATEGORIES = 8, 12
LETTERS = [*"abcdefgh"]
STEPS, BATCH = 5000, 2048  # of DP-SGD, whatever the rows
WORKERS = 2


def schema():
    from skfairdp.schema import Category, Number, Schema

    columns = {f"number{j}": Number(-4, 4) for j in range(N_NUMBERS)}
    columns |= {f"category{j}": Category(LETTERS[: 2 + j % 7]) for j in range(N_CATEGORIES)}
    return Schema(columns | {"sex": Category(["f", "m"]), "rich": Category([0, 1])}, label="rich", groups="sex")


def chunk(n_rows: int, rng: np.random.Generator, first: int = 0) -> pd.DataFrame:
    """Draw rows whose label follows half of the numbers, and the group a little."""
    numbers = rng.standard_normal((n_rows, N_NUMBERS)).clip(-4, 4).round(3)
    groups = rng.integers(2, size=n_rows)
    score = numbers[:, :4].sum(axis=1) + 0.5 * groups + rng.logistic(size=n_rows)
    made = {"id": np.arange(first, first + n_rows)} | {f"number{j}": numbers[:, j] for j in range(N_NUMBERS)}
    for j in range(N_CATEGORIES):
        codes = (rng.integers(2 + j % 7, size=n_rows) + (score > 0) * (j % 2)) % (2 + j % 7)
        made[f"category{j}"] = pd.Categorical.from_codes(codes, LETTERS[: 2 + j % 7])
    sex = pd.Categorical.from_codes(groups, ["f", "m"])
    return pd.DataFrame(made | {"sex": sex, "rich": (score > 0.5).astype(np.int8)})


def written(n_rows: int, folder: Path) -> Path:
    """Write a file for each chunk, unless they are there."""
    path = folder / f"rows{n_rows}"
    if not (path / "done").exists():
        (path / "parts").mkdir(parents=True, exist_ok=True)
        rng = np.random.default_rng(0)
        for start in range(0, n_rows, CHUNK):
            some = chunk(min(CHUNK, n_rows - start), rng, start)
            some.to_parquet(path / "parts" / f"{start:012d}.parquet", index=False)
        (path / "done").touch()
    return path / "parts"


def arrays(n_rows: int, n_features: int = 50, n_groups: int = 2, n_classes: int = 2, seed: int = 0):
    """Draw features, labels that follow the first of them, and groups, in memory."""
    rng = np.random.default_rng(seed)
    X = np.empty((n_rows, n_features))
    rng.standard_normal(out=X)
    groups = rng.integers(n_groups, size=n_rows)
    y = np.digitize(X[:, 0] + 0.3 * rng.logistic(size=n_rows), np.linspace(-1.5, 1.5, n_classes + 1)[1:-1])
    return X, y, groups


# What is timed. Each function prepares, and returns what the clock sees: a function that may return further figures.


def generator(path: str, n_rows: int) -> Callable[[], Any]:
    """Noisy tables from Parquet, and what its tasks handed to the driver, beside the formula of the guide."""
    from skfairdp import PFGuardGenerator
    from skfairdp._rows._parquet import ParquetRows

    class Counted(ParquetRows):
        def map_reduce(self, function, add):
            sizes: list[int] = []

            def noted(some):
                found = function(some)
                parts = found if isinstance(found, tuple) else (found,)
                sizes.append(sum(np.asarray(part).nbytes for part in parts))
                return found

            total = super().map_reduce(noted, add)
            passes.append(sizes)
            return total

    passes: list[list[int]] = []
    model = PFGuardGenerator(epsilon=1.0, schema=schema(), random_state=0)

    def fit() -> dict[str, Any]:
        model.fit(Counted(path))
        codes = model._codec.n_codes
        formula = 8 * (4 * sum(codes) + (sum(codes) ** 2 - sum(size**2 for size in codes)) // 2)
        return {
            "counters": {
                "passes": len(passes),
                "tasks_of_a_pass": len(passes[-1]),
                "bytes_of_a_task": max(passes[-1]),
                "formula_bytes_of_a_task": formula,
            }
        }

    return fit


def generator_on_a_cluster(path: str, n_rows: int) -> Callable[[], Any]:
    """The same from dask: its threads, then a cluster of two workers, in turn; the counts must be the same."""
    return partial(_on_a_cluster, path, _fitted_generator)


def teachers_on_a_cluster(path: str, n_rows: int) -> Callable[[], Any]:
    return partial(_on_a_cluster, path, _fitted_teachers)


def _fitted_generator(frame: Any) -> None:
    from skfairdp import PFGuardGenerator

    PFGuardGenerator(epsilon=1.0, schema=schema(), random_state=0).fit(frame)


def _fitted_teachers(frame: Any) -> None:
    from skfairdp import FairPATEClassifier, KeyedRows, PublicData

    public = PublicData(chunk(5000, np.random.default_rng(1)).drop(columns="rich"))
    model = FairPATEClassifier(epsilon=1.0, schema=schema(), random_state=0, n_teachers=1000)
    model.fit(KeyedRows(frame, key="id"), X_public=public)


def _on_a_cluster(path: str, fit: Callable[[Any], None]) -> dict[str, Any]:
    import dask.dataframe
    import distributed

    def seconds() -> float:
        started = time.perf_counter()
        fit(dask.dataframe.read_parquet(path))
        return time.perf_counter() - started

    found: dict[str, list[float]] = {"threads": [], "cluster": []}
    with distributed.LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None) as cluster:
        for _ in range(4):  # the first round warms up
            found["threads"].append(seconds())
            with distributed.Client(cluster):
                found["cluster"].append(seconds())
    ratios = [there / here for here, there in zip(found["threads"][1:], found["cluster"][1:], strict=True)]
    return {"seconds_of": found, "ratio": float(np.median(ratios))}


def generator_in_memory(path: str, n_rows: int) -> Callable[[], Any]:
    from skfairdp import PFGuardGenerator

    X, y, groups = arrays(n_rows)
    return lambda: PFGuardGenerator(epsilon=1.0, random_state=0).fit(X, y, sensitive_features=groups) and None


def fair_pate(path: str, n_rows: int) -> Callable[[], Any]:
    return partial(_fitted_teachers, path)


def fair_dpsgd(path: str, n_rows: int) -> Callable[[], Any]:
    """As many steps of as large batches whatever the rows: what remains of the rows is reading them once."""
    from skfairdp import FairDPSGDClassifier, PublicData
    from skfairdp.gradient import mlp

    public = PublicData(chunk(5000, np.random.default_rng(1)).drop(columns="rich"))
    batch, steps = (BATCH, STEPS) if n_rows > 4 * BATCH else (n_rows // 4, 10)  # few: a quick run
    net = mlp((64,), batch_size=batch, max_epochs=steps * batch / n_rows)
    model = FairDPSGDClassifier(epsilon=1.0, schema=schema(), net=net, public_data=public, random_state=0)

    def fit() -> dict[str, Any]:
        return {"steps": model.fit(path).n_steps_, "batch": net.batch_size}

    return fit


def pf_ld(path: str, n_rows: int) -> Callable[[], Any]:
    from skfairdp import PFLDClassifier

    X, y, groups = arrays(n_rows)
    model = PFLDClassifier(epsilon=1.0, classes=[0, 1], groups=[0, 1], random_state=0)
    return lambda: model.fit(X, y, sensitive_features=groups) and None


def idp3(path: str, n_rows: int) -> Callable[[], Any]:
    """Decisions of five groups and ten classes, in chunks of a million that carry the counts."""
    from skfairdp import IDP3

    rng = np.random.default_rng(0)
    size = min(n_rows, 1_000_000)
    rates = rng.dirichlet(np.full(10, 5.0), size=5)
    groups = rng.integers(5, size=size)
    labels = (rng.random(size)[:, None] > rates.cumsum(axis=1)[groups, :-1]).sum(axis=1)
    model = IDP3(gamma=0.05, groups=list(range(5))).fit(None, np.arange(10))
    model.transform(labels[:1000], sensitive_features=groups[:1000])  # compiles

    def decide() -> dict[str, Any]:
        for start in range(0, n_rows, size):
            some = slice(0, min(size, n_rows - start))
            answered = model.transform(labels[some], sensitive_features=groups[some])
            model.update(answered, sensitive_features=groups[some])
        return {"coverage": model.coverage_}

    return decide


def many_groups(path: str, n_rows: int, *, estimator: str) -> Callable[[], Any]:
    """240 groups and 10 classes."""
    from skfairdp import FairPATEClassifier, PFGuardGenerator, PublicData

    X, y, groups = arrays(n_rows, 20, 240, 10)
    if estimator == "generator":
        model = PFGuardGenerator(epsilon=1.0, random_state=0)
        return lambda: model.fit(X, y, sensitive_features=groups) and None
    more, _, of_public = arrays(5000, 20, 240, 10, seed=1)
    asked = FairPATEClassifier(epsilon=1.0, classes=list(range(10)), random_state=0)
    return lambda: asked.fit(X, y, X_public=PublicData(more, of_public)) and None


def calibration(path: str, n_rows: int) -> Callable[[], Any]:
    """The slowest of all ε, sampling rates and steps, every cache emptied first; n_rows says nothing here."""
    from bench_calibration import forget

    from skfairdp._networks import DPStep

    plans = [
        {"epsilon": epsilon, "n_rows": rows, "batch_size": batch, "epochs": epochs}
        for epsilon in (1e-3, 1e-2, 0.1, 1.0, 10.0, 1e3, 1e5, 1e9)
        for rows, batch in ((20, 16), (5000, 512), (100_000, 512), (10_000_000, 512), (100_000_000, 2048))
        for epochs in (1, 20)
    ]

    def plan_all() -> dict[str, Any]:
        found = []
        for plan in plans:
            seconds = []
            for _ in range(2):
                forget()
                started = time.perf_counter()
                DPStep.calibrated(delta=1e-6, max_grad_norm=1.0, **plan)
                seconds.append(time.perf_counter() - started)
            found.append({**plan, "seconds": min(seconds)})
        slowest = max(found, key=operator.itemgetter("seconds"))
        return {"plans": len(plans), "slowest": slowest, "seconds": slowest["seconds"]}

    return plan_all


@dataclass(frozen=True)
class Work:
    """A row of the table: what is timed, and at how many rows where nobody says."""

    prepare: Callable[[str, int], Callable[[], Any]]
    sizes: tuple[int, ...]
    writes_files: bool = False


SMALL = (MILLION // 10, MILLION)
WORKS = {
    "generator": Work(generator, SMALL, writes_files=True),
    "fair-pate": Work(fair_pate, SMALL, writes_files=True),
    "fair-dpsgd": Work(fair_dpsgd, SMALL, writes_files=True),
    "idp3": Work(idp3, (MILLION, 10 * MILLION)),
    "generator-in-memory": Work(generator_in_memory, (MILLION,)),
    "pf-ld": Work(pf_ld, (MILLION // 10,)),
    "many-groups-generator": Work(partial(many_groups, estimator="generator"), (50_000,)),
    "many-groups-fair-pate": Work(partial(many_groups, estimator="fair-pate"), (50_000,)),
    "calibration": Work(calibration, (0,)),
    "generator-on-a-cluster": Work(generator_on_a_cluster, (MILLION,), writes_files=True),
    "fair-pate-on-a-cluster": Work(teachers_on_a_cluster, (MILLION,), writes_files=True),
}


def run(task: dict) -> dict:
    """Fit once and measure; meant for a process of its own."""
    warnings.simplefilter("ignore")
    work = WORKS[task["work"]]
    timed = work.prepare(task["path"], task["n_rows"])
    before = common.peak_memory()
    started, processor_started = time.perf_counter(), time.process_time()
    with common.PeakOfAllProcesses() as memory:
        figures = timed()
    return {
        "work": GOALS[task["work"]].work,
        "n_rows": task["n_rows"],
        "seconds": time.perf_counter() - started,
        "cpu_seconds": time.process_time() - processor_started,
        "gib_before_fit": before / 2**30,
        "gib_peak": memory.peak / 2**30,
        **(figures or {}),
        "load_average_1_min": round(common.os.getloadavg()[0], 1),
        "revision": common.revision(),
    }


def met(row: dict) -> str:
    """Whether a row reached its goal; a dash where it was measured at another number of rows."""
    return {True: "yes", False: "no", None: "–"}[goal_of(row).met(row)]


def goal_of(row: dict) -> Goal:
    return next(goal for goal in GOALS.values() if goal.work == row["work"])


def known(arguments: argparse.Namespace) -> list[dict]:
    """Return the rows of the result file, if it is to be completed."""
    path = arguments.out or common.RESULTS / f"{arguments.name}.json"
    if arguments.quick or not path.exists():
        return []
    return list(json.loads(path.read_text(encoding="utf-8"))["rows"])


def main() -> None:
    parser = common.parser(__doc__, "scale")
    parser.add_argument("--rows", choices=list(WORKS), nargs="+", default=list(WORKS), help="rows of the table")
    parser.add_argument("--sizes", type=int, nargs="+", help="private rows (default: small ones for each row)")
    parser.add_argument(
        "--folder", type=Path, default=Path(tempfile.gettempdir()) / "bench_scale", help="of Parquet files"
    )
    parser.add_argument("--again", action="store_true", help="measure what the result file already has as well")
    parser.add_argument("--task", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.task:
        print(json.dumps(run(json.loads(arguments.task))))
        return
    done = known(arguments)
    for key in arguments.rows:
        work = WORKS[key]
        for n_rows in [4000] if arguments.quick else sorted(arguments.sizes or work.sizes):
            same = [row for row in done if (row["work"], row["n_rows"]) == (GOALS[key].work, n_rows)]
            if same and not arguments.again:
                continue
            path = written(n_rows, arguments.folder) if work.writes_files else ""
            found = common.in_new_process(__file__, {"work": key, "n_rows": n_rows, "path": str(path)})
            done = sorted([row for row in done if row not in same] + [found], key=_place)
            of_rows = ", ".join(sorted({row["revision"] for row in done}))
            # after each, so that a stopped run goes on
            common.save(arguments, n_columns=N_NUMBERS + N_CATEGORIES, rows=done, revision=of_rows)
    figures = ("seconds", "cpu_seconds", "gib_before_fit", "gib_peak")
    common.print_table(
        ["work", "private rows", "seconds", "CPU seconds", "GiB before", "GiB peak", "goal", "met"],
        [
            [row["work"], f"{row['n_rows']:,}", *(f"{row[key]:.2f}" for key in figures), str(goal_of(row)), met(row)]
            for row in done
        ],
    )


def _place(row: dict) -> tuple[int, int]:
    return [goal.work for goal in GOALS.values()].index(row["work"]), row["n_rows"]


if __name__ == "__main__":
    main()
