"""Fits from Parquet on the local disk: seconds and peak memory by the number of private rows.

    python benchmarks/bench_scale.py --help

Tables of 20 columns (8 numbers, 12 categories) with a label, a group and an id, written chunk by chunk and kept between
runs. Every fit runs alone in a fresh process. What the result file already has is not run again.
"""

import argparse
import json
import tempfile
import time
import warnings
from pathlib import Path

import _common as common
import numpy as np
import pandas as pd

SIZES = (100_000, 1_000_000)
CHUNK = 250_000
N_NUMBERS, N_CATEGORIES = 8, 12
LETTERS = [*"abcdefgh"]


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


def run(task: dict) -> dict:
    """Fit once and measure; meant for a process of its own."""
    from skfairdp import FairPATEClassifier, KeyedRows, PFGuardGenerator, PublicData

    warnings.simplefilter("ignore")
    public = PublicData(chunk(5000, np.random.default_rng(1)).drop(columns="rich"))
    makers = {
        "PFGuard marginals": lambda: (PFGuardGenerator(epsilon=1.0, schema=schema(), random_state=0), {}),
        "FairPATE, 1000 teachers": lambda: (
            FairPATEClassifier(epsilon=1.0, schema=schema(), random_state=0, n_teachers=1000),
            {"X_public": public},
        ),
    }
    model, more = makers[task["work"]]()
    X = KeyedRows(task["path"], key="id") if "FairPATE" in task["work"] else task["path"]
    before = common.peak_memory()
    started, processor_started = time.perf_counter(), time.process_time()
    model.fit(X, **more)
    return {
        "work": task["work"],
        "n_rows": task["n_rows"],
        "seconds": time.perf_counter() - started,
        "cpu_seconds": time.process_time() - processor_started,
        "gib_before_fit": before / 2**30,
        "gib_peak": common.peak_memory() / 2**30,
        "revision": common.revision(),
    }


def known(arguments: argparse.Namespace) -> list[dict]:
    """Return the rows of the result file, if it is to be completed."""
    path = arguments.out or common.RESULTS / f"{arguments.name}.json"
    if arguments.again or arguments.quick or not path.exists():
        return []
    return list(json.loads(path.read_text(encoding="utf-8"))["rows"])


def main() -> None:
    parser = common.parser(__doc__, "scale")
    works = {"generator": "PFGuard marginals", "fair-pate": "FairPATE, 1000 teachers"}
    parser.add_argument("--rows", choices=list(works), nargs="+", default=list(works), help="rows of the table")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), help="private rows")
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
    for n_rows in [4000] if arguments.quick else sorted(arguments.sizes):
        path = written(n_rows, arguments.folder)
        for work in (works[name] for name in arguments.rows):
            if any(row["work"] == work and row["n_rows"] == n_rows for row in done):
                continue
            done.append(common.in_new_process(__file__, {"work": work, "n_rows": n_rows, "path": str(path)}))
            done.sort(key=lambda row: (row["work"], row["n_rows"]))
            common.save(arguments, n_columns=N_NUMBERS + N_CATEGORIES, rows=done)  # so that a stopped run goes on
    figures = ("seconds", "cpu_seconds", "gib_before_fit", "gib_peak")
    common.print_table(
        ["work", "private rows", "seconds", "CPU seconds", "GiB before fit", "GiB peak"],
        [[row["work"], f"{row['n_rows']:,}", *(f"{row[key]:.2f}" for key in figures)] for row in done],
    )


if __name__ == "__main__":
    main()
