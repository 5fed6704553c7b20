"""Speed of the fairness gate and of IDP3: decisions a second with and without numba, and linearity in n.

    python benchmarks/bench_idp3.py --help

Streams: "fair" (every group has the same rates; nearly all is answered) and "unfair" (every group has its own, γ binds,
part is refused). "gate" is FairnessGate.run on integer codes, "IDP3" is IDP3.transform on an array of group names and
labels, reading and checking them included, with numba where it is installed. All of it runs in one thread; the seconds
are those of the processor, so that other work on the machine does not count. Each figure is the fastest of several runs
on one stream, averaged over the streams.
"""

import argparse
import time
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

import _common as common
import numpy as np

from skfairdp.fairness import FairnessGate
from skfairdp.postprocessing import IDP3

GAMMA = 0.05
SHAPES = ((2, 2), (5, 10))


def make_stream(n_groups: int, n_classes: int, kind: str, n_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return group and label codes; in an unfair stream each group has rates of its own, drawn from a Dirichlet law."""
    rng = np.random.default_rng(seed)
    rates = rng.dirichlet(np.full(n_classes, 5.0), size=n_groups)
    if kind == "fair":
        rates[:] = rates[0]
    groups = rng.integers(n_groups, size=n_rows)
    labels = (rng.random(n_rows)[:, None] > rates.cumsum(axis=1)[groups, :-1]).sum(axis=1)
    return groups, labels


def fastest(action: Any, repeats: int) -> float:
    seconds = []
    for _ in range(repeats):
        started = time.process_time()
        action()
        seconds.append(time.process_time() - started)
    return min(seconds)


def time_gate(groups: np.ndarray, labels: np.ndarray, shape: tuple[int, int], engine: str, repeats: int) -> float:
    return fastest(lambda: FairnessGate(*shape, gamma=GAMMA).run(groups, labels, engine=engine), repeats)


def time_idp3(groups: np.ndarray, labels: np.ndarray, shape: tuple[int, int], repeats: int) -> float:
    names = np.array([f"group {z}" for z in range(shape[0])])
    idp3 = IDP3(gamma=GAMMA, groups=names.tolist()).fit(None, np.arange(shape[1]))
    given = names[groups]
    return fastest(lambda: idp3.transform(labels, sensitive_features=given), repeats)


def rate_rows(arguments: argparse.Namespace, engines: list[str]) -> list[dict[str, Any]]:
    rows = []
    for shape in SHAPES:
        for kind in ("fair", "unfair"):
            streams = [make_stream(*shape, kind, arguments.rows, seed) for seed in common.seeds_of(arguments)]
            masks = [FairnessGate(*shape, gamma=GAMMA).run(*stream) for stream in streams]
            row: dict[str, Any] = {
                "groups": shape[0],
                "classes": shape[1],
                "stream": kind,
                "coverage": common.summary([float(mask.mean()) for mask in masks]),
            }
            for engine in engines:
                seconds = [time_gate(*stream, shape, engine, arguments.repeats) for stream in streams]
                row[f"gate_{engine}"] = common.summary([arguments.rows / s for s in seconds])
            seconds = [time_idp3(*stream, shape, arguments.repeats) for stream in streams]
            row["idp3"] = common.summary([arguments.rows / s for s in seconds])
            rows.append(row)
    return rows


def linear_rows(arguments: argparse.Namespace, engines: list[str]) -> list[dict[str, Any]]:
    """Time 2 groups and 2 classes at growing n; the exponent is the slope of log time on log n."""
    rows = []
    for engine in engines:
        largest = arguments.rows * (20 if engine == "numba" else 1)  # long enough to be timed
        sizes = [largest // 8, largest // 4, largest // 2, largest]
        for kind in ("fair", "unfair"):
            groups, labels = make_stream(2, 2, kind, largest, arguments.first_seed)
            seconds = [time_gate(groups[:n], labels[:n], (2, 2), engine, arguments.repeats) for n in sizes]
            exponent = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
            rows.append({"engine": engine, "stream": kind, "n": sizes, "seconds": seconds, "exponent": exponent})
    return rows


def main() -> None:
    parser = common.parser(__doc__ or "", "idp3", seeds=3)
    parser.add_argument("--rows", type=int, default=400_000, help="rows of each stream (default: 400000)")
    parser.add_argument("--repeats", type=int, default=3, help="runs per figure, the fastest counts (default: 3)")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.rows, arguments.repeats = 20_000, 1
    engines = ["python", "numba"] if find_spec("numba") else ["python"]
    first_call = None
    if "numba" in engines:
        before = time.perf_counter()
        FairnessGate(2, 2, gamma=GAMMA).run([0], [0], engine="numba")
        first_call = time.perf_counter() - before

    rates = rate_rows(arguments, engines)
    common.print_table(
        ["groups x classes", "stream", "coverage", *[f"gate, {engine} /s" for engine in engines], "IDP3 /s"],
        [
            [
                f"{row['groups']} x {row['classes']}",
                row["stream"],
                f"{row['coverage']['mean']:.3f}",
                *[f"{row[f'gate_{engine}']['mean']:,.0f}" for engine in engines],
                f"{row['idp3']['mean']:,.0f}",
            ]
            for row in rates
        ],
    )
    linear = linear_rows(arguments, engines)
    print()
    common.print_table(
        ["2 x 2 gate", "stream", "seconds at n", "", "", "", "time grows as n to the"],
        [
            [
                row["engine"],
                row["stream"],
                *[f"{s:.3f} at {n:,}" for n, s in zip(row["n"], row["seconds"], strict=True)],
                f"{row['exponent']:.2f}",
            ]
            for row in linear
        ],
    )
    if first_call is not None:
        print(f"\nfirst call of the compiled loop in this process (import and load, or compile): {first_call:.1f} s")
    common.save(
        arguments,
        gamma=GAMMA,
        min_count=50,
        rows=arguments.rows,
        repeats=arguments.repeats,
        numba=version("numba") if "numba" in engines else None,
        numba_first_call_seconds=first_call,
        decisions_per_second=rates,
        linearity=linear,
    )


if __name__ == "__main__":
    main()
