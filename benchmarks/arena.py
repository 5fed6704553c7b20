"""Every method on every data set at every ε, beside what is glued together from other libraries, and who is ahead.

    python benchmarks/arena.py                                     # five data sets, ε = 0.5, 1 and 3
    python benchmarks/arena.py --data bank --epsilons 1 --seeds 1
    python benchmarks/arena.py --constraints equalized_odds --epsilons 1
    python benchmarks/arena.py --table my.csv --schema my.yaml --label y --group g

70 % of the rows are private, 5 % are public without their labels, 25 % are for measuring; splits are by position. Every
method reads the table by its schema. Four competitions: without public rows or with them, and without the group at
prediction or with it; who needs less may enter where more is given. Ours have default parameters, rivals the best of
several settings. RaCO-DP and DP-FERMI are restated from their papers. DP-EBM and error-parity live in an environment of
their own (python -m venv peers; peers/bin/pip install interpret-core error-parity; --peers-python peers/bin/python) and
are left out without it.

What was measured lies in a CSV file beside the JSON file, and is not measured again unless the package has changed.
"""

import argparse
import time
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import _arena_ours
import _arena_papers
import _arena_rivals
import _arena_verdicts as verdicts
import _common as common
import pandas as pd
from _arena_task import CONSTRAINTS, DELTA, GAPS, WORST_GAP, Task, Unit, tasks

EPSILONS = (0.5, 1.0, 3.0)
SETS = ("adult", "adult-race", "bank", "credit", "parkinsons")
#: What tells one piece of work from another.
WORK = ("data", "epsilon", "constraint", "seed", "unit")
#: All that is done for a task with privacy.
UNITS = (*_arena_ours.UNITS, *_arena_rivals.UNITS, *_arena_papers.UNITS)
#: How many digits of a figure are kept.
DIGITS = 6
#: Said of work that a method does not do for this constraint, or without the peers' interpreter.
NOT_OFFERED = "not offered"


def main() -> None:
    arguments = parsed()
    out = arguments.out or (None if arguments.quick else common.RESULTS / f"{arguments.name}.json")
    points = stored(out, keep=arguments.keep)
    for data, task in () if arguments.report else tasks_of(arguments):
        for unit in units_of(task, arguments.units):
            work = (data, task.epsilon, task.constraint, task.seed, unit.name)
            if any(tuple(point[name] for name in WORK) == work for point in points):
                continue
            points += done(dict(zip(WORK, work, strict=True)), unit, task)
            if out is not None:
                out.parent.mkdir(parents=True, exist_ok=True)
                pd.DataFrame(points).to_csv(out.with_suffix(".csv"), index=False)
    known = [point for point in whole(points, arguments.units) if point["failed"] is None]
    found = verdicts.competitions(known)
    show(found)
    common.save(
        arguments,
        delta=DELTA,
        gaps=GAPS,
        worst_gap=WORST_GAP,
        sets=sizes(known),
        peers=_arena_rivals.peer_versions(arguments.peers_python),
        settings={
            "Opacus": _arena_rivals.OPACUS,
            "DP-EBM": _arena_rivals.EBM,
            "RaCO-DP": _arena_papers.RACO,
            "DP-FERMI": _arena_papers.FERMI,
        },
        competitions=found,
        single=verdicts.single_estimators(found) if found else [],
        bounds=verdicts.bounds(known),
        goals=verdicts.goals(known),
        revision=", ".join(sorted({str(point["revision"]) for point in known})),
        failed=[
            {name: p[name] for name in (*WORK, "failed")} for p in points if p["failed"] not in (None, NOT_OFFERED)
        ],
    )


def parsed() -> argparse.Namespace:
    parser = common.parser(__doc__ or "", "arena", seeds=3, first_seed=200, data=True)
    parser.add_argument("--epsilons", type=float, nargs="+", default=list(EPSILONS))
    parser.add_argument("--constraints", nargs="+", choices=CONSTRAINTS, default=["demographic_parity"])
    parser.add_argument("--units", nargs="+", default=None, help="pieces of work to do (default: all)")
    parser.add_argument("--peers-python", default=None, help="interpreter that has interpret-core and error-parity")
    parser.add_argument("--keep", action="store_true", help="keep points that an earlier revision has measured")
    parser.add_argument("--report", action="store_true", help="measure nothing: report what was measured in full")
    parser.add_argument("--table", help="any CSV file, in place of the data sets")
    parser.add_argument("--schema", help="what is public about it (see: skfairdp schema)")
    parser.add_argument("--label", help="column to predict (default: that of the schema)")
    parser.add_argument("--group", nargs="+", help="columns of the groups (default: those of the schema)")
    arguments = parser.parse_args()
    if arguments.table:
        if not arguments.schema:
            parser.error("--table needs --schema: what is public about it (python -m skfairdp schema FILE)")
        arguments.name = f"arena_{Path(arguments.table).name.partition('.')[0]}"
    elif arguments.constraints != ["demographic_parity"]:  # a file of its own, and a section of its own on the page
        arguments.name = "_".join(["arena", *arguments.constraints])
    if arguments.quick:
        arguments.epsilons = arguments.epsilons[:1]
    return arguments


def tasks_of(arguments: argparse.Namespace) -> Iterator[tuple[str, Task]]:
    """Yield data sets with their tasks, seed by seed."""
    sets = [arguments.data] if arguments.data else list(SETS) if common.default_data() == "adult" else ["synthetic"]
    if arguments.table:
        sets = [arguments.name.removeprefix("arena_")]
    for seed in common.seeds_of(arguments):
        for data in sets[:1] if arguments.quick else sets:
            for task in tasks(data, seed, arguments):
                yield data, task


def units_of(task: Task, names: list[str] | None) -> list[Unit]:
    """What is to be done for a task; a task without privacy is the reference."""
    units = (_arena_rivals.REFERENCE,) if task.epsilon is None else UNITS
    return [unit for unit in units if names is None or unit.name in names or task.epsilon is None]


def done(work: dict[str, Any], unit: Unit, task: Task) -> list[dict[str, Any]]:
    """Do one piece of work; what fails is a result as well, with its error."""
    started, revision = time.perf_counter(), common.revision()
    stamp = {**work, "kind": unit.kind, "rows": unit.rows, "revision": revision, "n_private": len(task.split.X)}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # gaps that are not reached: they are in the table
            answers = list(unit.answers(task))
        failed = None if answers else NOT_OFFERED
    except Exception as error:
        answers, failed = [], f"{type(error).__name__}: {error}"[:300]
        traceback.print_exc(limit=-2)
    seconds = time.perf_counter() - started
    print(*work.values(), f"{len(answers)} points in {seconds:.1f} s", failed or "", flush=True)
    empty = dict.fromkeys(("method", "sees", "setting", "knob", "epsilon_certified", "accuracy", *CONSTRAINTS, "auroc"))
    return [
        {**stamp, **{k: round(v, DIGITS) if isinstance(v, float) else v for k, v in one.items()}, "failed": failed}
        | {"seconds": round(seconds, 2)}
        for one in answers or [empty]
    ]


def whole(points: list[dict[str, Any]], names: list[str] | None) -> list[dict[str, Any]]:
    """Points of tasks of which no work is left to be done: who is not there yet must not be beaten."""
    asked = {unit.name for unit in UNITS if names is None or unit.name in names}
    found: dict[tuple[Any, ...], set[str]] = {}
    for point in points:
        found.setdefault(tuple(point[name] for name in WORK[:-1]), set()).add(point["unit"])
    complete = {task for task, units in found.items() if asked <= units}
    data = {task[0] for task in complete}
    return [
        point
        for point in points
        if tuple(point[name] for name in WORK[:-1]) in complete or (point["epsilon"] is None and point["data"] in data)
    ]


def stored(out: Path | None, *, keep: bool) -> list[dict[str, Any]]:
    """Points that were measured already, by the package of today."""
    file = None if out is None else out.with_suffix(".csv")
    if file is None or not file.exists():
        return []
    table = pd.read_csv(file, dtype={"revision": str}, keep_default_na=False, na_values=[""]).astype(object)
    points = table.where(table.notna(), None).to_dict("records")
    now = common.revision()
    return [p for p in points if (keep or p["revision"] == now) and p["failed"] in (None, NOT_OFFERED)]


def sizes(points: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Private rows and accuracy of the most frequent class, by data set."""
    found = {}
    for (data,) in verdicts.unique(points, "data"):
        mine = [p for p in points if p["data"] == data]
        common_class = [p["accuracy"] for p in mine if p["method"] == "most frequent class"]
        found[data] = {
            "n_private": mine[0]["n_private"],
            "most_frequent": sum(common_class) / max(len(common_class), 1),
        }
    return found


def show(found: list[dict[str, Any]]) -> None:
    """Print who is ahead in every competition."""
    common.print_table(
        ["data", "ε", "constraint", "public rows", "group", "ours", "best glue", "ahead by (× 10⁴)"],
        [
            [one["data"], f"{one['epsilon']:g}", one["constraint"], one["rows"], one["sees"], one["ours"],
             one["theirs"], common.plus_minus(one["ahead_by"], 1)]
            for one in found
        ],
    )  # fmt: skip


if __name__ == "__main__":
    main()
