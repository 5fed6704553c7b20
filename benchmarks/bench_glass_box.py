"""A model that can be read, one curve for each column, beside DP-EBM and beside our network, at equal ε.

    python benchmarks/bench_glass_box.py --peers-python peers/bin/python
    python benchmarks/bench_glass_box.py --peers-python peers/bin/python --tables unseen

70 % of the rows are private, 25 % are for measuring; splits are by position. Everybody reads the table by its schema.
Ours have default parameters; DP-EBM gets the best of several settings, chosen on the test rows by the mean over seeds,
once by accuracy and once by AUROC, which flatters it. It lives in an environment of its own (python -m venv peers;
peers/bin/pip install interpret-core) and is left out without it. --tables names a folder of CSV files, each beside a
schema of the same name (unseen_tables.py writes some). With --points a call that was cut short goes on where it was.
"Default" is net="auto": the figures of whichever of the two networks it takes, which follows from its plan.
"""

import json
import tempfile
import warnings
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import _arena_rivals as rivals
import _common as common
import numpy as np
from _arena_task import DELTA, Task, tasks

EPSILONS = (0.25, 0.5, 1.0, 3.0)
SETS = ("adult", "adult-race", "bank", "credit", "parkinsons")
#: Learning rate and rounds of DP-EBM; the first is its default.
EBM = ((0.01, 300), (1.0, 30), (1.0, 10))
OURS = {"additive": "additive", "network": "mlp"}
FIGURES = ("accuracy", "auroc")


def main() -> None:
    parser = common.parser(__doc__ or "", "glass_box", seeds=3, first_seed=300, data=True)
    parser.add_argument("--epsilons", type=float, nargs="+", default=list(EPSILONS))
    parser.add_argument("--peers-python", default=None, help="interpreter that has interpret-core")
    parser.add_argument("--tables", type=Path, help="folder of CSV files with schemas, in place of the data sets")
    parser.add_argument("--points", type=Path, help="file for every task as it is done, and to go on from")
    arguments = parser.parse_args()
    if arguments.tables:
        arguments.name = f"{arguments.name}_{arguments.tables.name}"
    if arguments.quick:
        arguments.epsilons = arguments.epsilons[:1]
    points = [point for data, task in tasks_of(arguments) for point in kept(data, task, arguments.points)]
    rows = common.averaged(points, ("data", "epsilon", "method"), FIGURES, by_seed=FIGURES)
    cells = [beside(rows, data, epsilon) for data, epsilon in dict.fromkeys((r["data"], r["epsilon"]) for r in rows)]
    show(cells)
    peers = {} if arguments.peers_python is None else rivals.peer_versions(arguments.peers_python)
    sizes = {point["data"]: point["n_private"] for point in points}
    common.save(arguments, delta=DELTA, settings={"DP-EBM": EBM}, peers=peers, sizes=sizes, cells=cells, rows=rows)


def tasks_of(arguments: Namespace) -> Iterator[tuple[str, Task]]:
    """Yield data sets with their tasks, seed by seed."""
    arguments.constraints, arguments.label, arguments.group, arguments.table = ["none"], None, None, None
    names = [arguments.data] if arguments.data else list(SETS) if common.default_data() == "adult" else ["synthetic"]
    if arguments.tables:
        names = sorted(path.stem for path in arguments.tables.glob("*.csv"))
    for name in names[:1] if arguments.quick else names:
        if arguments.tables:
            arguments.table, arguments.schema = (arguments.tables / f"{name}.{end}" for end in ("csv", "yaml"))
        for seed in common.seeds_of(arguments):
            yield from ((name, task) for task in tasks(name, seed, arguments) if task.epsilon is not None)


def kept(data: str, task: Task, file: Path | None) -> list[dict[str, Any]]:
    """The points of one task: those of an earlier call on the same commit with the same peers, or measured now."""
    revision = str(common.revision())
    key = [revision, data, task.epsilon, task.seed, task.peers, task.quick]
    again = file and file.exists() and not revision.endswith("+changes")
    lines = file.read_text(encoding="utf-8").splitlines() if file and again else []
    for one in map(json.loads, lines):
        if one["key"] == key:
            return list(one["points"])
    points = list(measured(data, task))
    if file:
        with file.open("a", encoding="utf-8") as out:
            out.write(json.dumps({"key": key, "points": points}) + "\n")
    return points


def measured(data: str, task: Task) -> Iterator[dict[str, Any]]:
    """Fit everybody on the private rows, and measure them on the test rows."""
    stamp = {"data": data, "epsilon": task.epsilon, "seed": task.seed, "n_private": len(task.split.X)}
    found = [(method, *own(task, net)) for method, net in OURS.items()]
    default = taken(task)
    found += [("default", *rest) for method, *rest in found if OURS[method] == default]
    found += [(f"DP-EBM, rate {rate:g}, {rounds} rounds", task.epsilon, s) for rate, rounds, s in dp_ebm(task)]
    for method, epsilon, scores in found:
        figures = task.measured((scores > 0.5).astype(int), scores)
        print(data, task.epsilon, task.seed, method, *(f"{figures[name]:.4f}" for name in FIGURES), flush=True)
        yield stamp | {"method": method, "epsilon_certified": epsilon} | {name: figures[name] for name in FIGURES}


def own(task: Task, net: str) -> tuple[float, Any]:
    """The ε and the scores of our own model, which reads raw rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where the most frequent class is all that comes out, figures say so
        model = unfitted(task, net).fit(rows_of(task))
    return model.privacy_.epsilon, model.predict_proba(task.split.X_test)[:, 1]


def taken(task: Task) -> str:
    """Which network the default takes for these rows."""
    model = unfitted(task, "auto")
    return str(model._plan(model._read(rows_of(task), None)).taken)


def unfitted(task: Task, net: str) -> Any:
    """Our own model without fairness."""
    from skfairdp import FairDPSGDClassifier

    given = {"epsilon": task.epsilon, "delta": DELTA, "schema": task.schema, "random_state": task.seed}
    return FairDPSGDClassifier(lam=0, net=net, **given)


def rows_of(task: Task) -> Any:
    """The private rows without their groups."""
    return task.split.X.drop(columns=list(task.schema.groups))


def dp_ebm(task: Task) -> Iterator[tuple[float, int, Any]]:
    """The scores of interpret's private boosting of single features, by learning rate and rounds."""
    from skfairdp.schema import Number

    if task.peers is None:
        return
    columns = {name: task.schema.columns[name] for name in task.schema.features}
    numbers = [isinstance(column, Number) for column in columns.values()]
    details = {
        "types": {name: "continuous" if n else "nominal" for name, n in zip(columns, numbers, strict=True)},
        "bounds": {j: (c.low, c.high) for j, c in enumerate(columns.values()) if numbers[j]},
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = [str(folder / f"{j}.csv") for j in range(2)]
        for path, table in zip(paths, (task.split.X, task.split.X_test), strict=True):
            rivals.as_read(table, columns, numbers).to_csv(path, index=False)
        np.save(folder / "y.npy", task.labels(task.split.X))
        for rate, rounds in EBM[1:2] if task.quick else EBM:
            (scores,) = rivals.arrays_of(
                task.peers, "dp_ebm", folder, tables=paths, labels=str(folder / "y.npy"), epsilon=task.epsilon,
                delta=DELTA, rate=rate, rounds=min(rounds, 5) if task.quick else rounds, **details,
            )  # fmt: skip
            yield rate, rounds, scores


def beside(rows: list[dict[str, Any]], data: str, epsilon: float) -> dict[str, Any]:
    """Ours beside the best setting of DP-EBM in each figure, seed by seed."""
    here = {row["method"]: row for row in rows if (row["data"], row["epsilon"]) == (data, epsilon)}
    cell: dict[str, Any] = {"data": data, "epsilon": epsilon}
    for figure in FIGURES:
        settings = [method for method in here if method.startswith("DP-EBM")]
        best = max(settings, key=lambda method: here[method][figure]["mean"], default=None)
        cell[figure] = {method: here[method][figure] for method in (*OURS, "default")}
        if best is not None:
            theirs = np.array(here[best]["by_seed"][figure])
            cell[figure]["DP-EBM"] = here[best][figure] | {"setting": best}
            for method in (*OURS, "default"):
                ahead = np.array(here[method]["by_seed"][figure]) - theirs
                cell[figure][f"{method} ahead by"] = common.summary(ahead.tolist())
    return cell


def show(cells: list[dict[str, Any]]) -> None:
    """Print every cell."""
    for figure in FIGURES:
        common.print_table(
            ["data", "ε", f"{figure}: additive", "network", "default", "DP-EBM", "default ahead by"],
            [
                [cell["data"], f"{cell['epsilon']:g}"]
                + [
                    common.plus_minus(cell[figure].get(name, {"mean": None}), 4)
                    for name in (*OURS, "default", "DP-EBM", "default ahead by")
                ]
                for cell in cells
            ],
        )


if __name__ == "__main__":
    main()
