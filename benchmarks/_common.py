"""What every benchmark script shares: data, seeds, the table on the screen, the JSON file, the machine."""

import argparse
import json
import os
import platform
import resource
import shlex
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

import skfairdp
from skfairdp.exceptions import FairnessWarning

RESULTS = Path(__file__).parent / "results"
DATA = ("adult", "adult-race", "bank", "credit", "parkinsons", "synthetic")
PACKAGES = ("numpy", "scipy", "pandas", "scikit-learn", "torch", "dp-accounting", "fairlearn", "joblib")


def parser(
    description: str, name: str, *, seeds: int | None = None, first_seed: int = 0, data: bool = False
) -> argparse.ArgumentParser:
    """Return a command line with ``--out``, ``--quick`` and, where they are asked for, ``--seeds`` and ``--data``."""
    made = argparse.ArgumentParser(description=description.split("\n", 1)[0])
    made.add_argument(
        "--out", type=Path, help=f"JSON file to write (default: {RESULTS.name}/{name}.json; with --quick: none)"
    )
    made.add_argument("--quick", action="store_true", help="a few seconds, to see that it runs; figures mean nothing")
    if seeds is not None:
        made.add_argument("--seeds", type=int, default=seeds, help=f"repetitions, one split each (default: {seeds})")
        made.add_argument(
            "--first-seed", type=int, default=first_seed, help=f"seed of the first (default: {first_seed})"
        )
    if data:
        made.add_argument("--data", choices=DATA, default=None, help="default: adult where found, else synthetic")
    made.set_defaults(name=name, started=time.perf_counter())
    return made


def seeds_of(arguments: argparse.Namespace) -> list[int]:
    """Return the seeds of the repetitions: one with ``--quick``."""
    return list(range(arguments.first_seed, arguments.first_seed + (1 if arguments.quick else arguments.seeds)))


def save(arguments: argparse.Namespace, *, name: str | None = None, **payload: Any) -> None:
    """Write the result with how and where it was made; with ``--quick`` only where ``--out`` names a file."""
    out = arguments.out
    if out is None:
        if arguments.quick:
            return
        out = RESULTS / f"{name or arguments.name}.json"
    record = {
        "benchmark": name or arguments.name,
        "command": command_line(),
        "revision": revision(),
        **({"seeds": seeds_of(arguments)} if hasattr(arguments, "seeds") else {}),
        **payload,
        "seconds_in_all": time.perf_counter() - arguments.started,
        "versions": versions(),
        "machine": machine(),
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(record, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    print(f"wrote {out}")


def command_line() -> str:
    """Return the command as anyone may type it, without the places of the files that it writes."""
    words, skip = [], False
    for word in sys.argv[1:]:
        if skip or word in ("--out", "--points"):
            skip = not skip
        elif not word.startswith(("--out=", "--points=")):
            words.append(word)
    return shlex.join(["python", f"benchmarks/{Path(sys.argv[0]).name}", *words])


def revision() -> str | None:
    """Return the commit that is measured, with ``+changes`` where the package differs from it; None without git."""
    found = []
    for words in (["rev-parse", "--short=10", "HEAD"], ["status", "--porcelain", "--", "skfairdp", "benchmarks/*.py"]):
        done = subprocess.run(["git", *words], cwd=RESULTS.parent.parent, capture_output=True, text=True, check=False)
        if done.returncode:
            return None
        found.append(done.stdout.strip())
    return f"{found[0]}+changes" if found[1] else found[0]


def versions() -> dict[str, str]:
    """Return versions of Python, this package and what it computes with."""
    found = {"python": platform.python_version(), "skfairdp": skfairdp.__version__}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def machine() -> dict[str, Any]:
    """Return processor, cores, memory, and how busy the machine was in the last five minutes."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line.split(":", 1)[1].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        model = names[0] if names else model
    return {
        "processor": model,
        "system": platform.system(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "load_average_5_min": round(os.getloadavg()[1], 1),
    }


def print_table(headers: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print rows in aligned columns."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(line[j]) for line in [list(headers), *cells]) for j in range(len(headers))]
    for line in [list(headers), *cells]:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def summary(values: Sequence[float]) -> dict[str, float | None]:
    """Return mean and standard error of repetitions (None where there is none)."""
    known = np.array([value for value in values if np.isfinite(value)])
    return {
        "mean": float(known.mean()) if len(known) else None,
        "standard_error": float(known.std(ddof=1) / np.sqrt(len(known))) if len(known) > 1 else None,
    }


def plus_minus(entry: dict[str, float | None], digits: int = 3) -> str:
    """Return ``mean ± standard error`` in words."""
    if entry["mean"] is None:
        return "–"
    text = f"{entry['mean']:.{digits}f}"
    return text if entry["standard_error"] is None else f"{text} ± {entry['standard_error']:.{digits}f}"


def averaged(
    points: Sequence[dict[str, Any]], keys: Sequence[str], names: Sequence[str], *, by_seed: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Average the points that agree in ``keys`` over seeds: one row each, in the order of their first points.

    Parameters
    ----------
    points : sequence of dict
        One for each setting and seed, with its ``epsilon_certified`` (None or 0: there is none).
    keys : sequence of str
        What tells settings apart.
    names : sequence of str
        Figures to average; those that a setting does not have are left out.
    by_seed : sequence of str, default=()
        Figures to list seed by seed as well.
    """
    rows = []
    for key in dict.fromkeys(tuple(point[k] for k in keys) for point in points):
        mine = [point for point in points if tuple(point[k] for k in keys) == key]
        row: dict[str, Any] = dict(zip(keys, key, strict=True))
        row["epsilon_certified"] = max((p["epsilon_certified"] for p in mine if p["epsilon_certified"]), default=None)
        row.update({name: summary([point[name] for point in mine]) for name in names if name in mine[0]})
        if by_seed:
            row["by_seed"] = {name: [round(point[name], 5) for point in mine] for name in by_seed}
        rows.append(row)
    return rows


def measure(
    predicted: Any, split: Any, reject_label: Any = None, *, classes: Sequence[int] = (0, 1)
) -> dict[str, float]:
    """Measure predictions of the test rows; refused ones count for coverage only."""
    from skfairdp import metrics

    truth, groups = np.asarray(split.y_test), split.sensitive_features_test
    label = -1 if reject_label is None else reject_label
    fairness = {"sensitive_features": groups, "reject_label": label}
    return {
        "accuracy": metrics.selective_accuracy(truth, predicted, reject_label=label),
        "disparity": metrics.demographic_disparity(None, predicted, classes=list(classes), **fairness),
        "eo_disparity": metrics.equalized_odds_disparity(truth, predicted, **fairness),
        "coverage": metrics.coverage_score(None, predicted, reject_label=label),
    }


def sizes(split: Any) -> dict[str, int]:
    """Return the numbers of private, public and test rows."""
    return {"n_private": len(split.y), "n_public": len(split.y_public), "n_test": len(split.y_test)}


def tell_split(seed: int, split: Any) -> None:
    """Print how many rows each part of a split has."""
    counts = (f"{n:,} {name.removeprefix('n_')}" for name, n in sizes(split).items())
    print(f"seed {seed}: {', '.join(counts)} rows", flush=True)


def load_rows(data: str, seed: int) -> tuple[Any, Any, Any]:
    """Return features, labels and groups; the group is never among the features."""
    from skfairdp import datasets

    if data == "synthetic":
        return datasets.make_biased_classification(
            40_000, disparity=0.2, group_proportions=(0.33, 0.67), base_rate=0.25, as_frame=True, random_state=seed
        )
    name, _, sensitive = data.partition("-")
    fetch = getattr(datasets, f"fetch_{name}")
    table = fetch(sensitive=sensitive) if sensitive else fetch()
    return table.data, table.target, table.sensitive_features


def load_split(data: str, seed: int, *, share: float = 1.0) -> Any:
    """Return 70 / 5 / 25 rows by position, encoded by what the public rows show, clipped to ±5."""
    from skfairdp.datasets import train_private_public_test_split
    from skfairdp.preprocessing import make_tabular_encoder

    sizes = tuple(share * size for size in (0.70, 0.05, 0.25))
    split = train_private_public_test_split(*load_rows(data, seed), sizes=sizes, random_state=seed)
    return split.encode(make_tabular_encoder())


def default_data() -> str:
    """Return Adult where the file is found, else the synthetic rows."""
    from skfairdp.datasets import data_file

    return "adult" if data_file("adult") is not None else "synthetic"


def peak_memory() -> int:
    """Return the largest resident size of this process so far, in bytes.

    Linux hands ru_maxrss on from the process that started this one, so the kernel's own mark is read where it is.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


class PeakOfAllProcesses:
    """The most memory that this process and all that it started held together while the block ran: ``peak``, in bytes.

    A thread adds up their resident sizes every so often; pages that two of them share count twice. Without other
    processes it is the kernel's own mark.
    """

    def __init__(self, every: float = 0.5) -> None:
        self.every = every
        self.peak = 0

    def __enter__(self) -> "PeakOfAllProcesses":
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join()
        self.peak = max(self.peak, peak_memory())

    def _watch(self) -> None:
        while not self._ended.wait(self.every):
            self.peak = max(self.peak, sum(map(_resident, _descendants(os.getpid()))))


def _descendants(process: int) -> list[int]:
    """A process and all that it started; itself alone where the kernel does not say."""
    parents = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(file.parent.name)] = int(file.read_text().rpartition(")")[2].split()[1])
        except OSError:  # it has ended
            continue
    found = [process]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found


def _resident(process: int) -> int:
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def in_new_process(script: str, task: dict[str, Any], *, timeout: float | None = None) -> dict[str, Any]:
    """Run ``script --task JSON`` alone in a fresh interpreter and return the JSON of its last line."""
    done = subprocess.run(
        [sys.executable, script, "--task", json.dumps(task)],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{Path(script).name} failed on {task}:\n{done.stderr}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def quiet_fairness() -> None:
    """Silence the warning that γ is out of reach on the public rows: the measured gap is in the table."""
    warnings.simplefilter("ignore", FairnessWarning)
