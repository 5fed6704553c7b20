"""Seconds from ε to noise: planning the releases of a PATE fit, for every voting mode, noise and accounting.

    python benchmarks/bench_calibration.py --help

Every plan starts cold: the caches of the accountants are emptied first. To reach: below 0.5 s each.
"""

import itertools
import sys
import time
from collections.abc import Iterator
from typing import Any

import _common as common

DELTA = 1e-5
BAR = 0.5
EPSILONS = (0.1, 1.0, 10.0)
QUERIES = (100, 1000, 10_000)
TEACHERS = (100, 1000)
CLASSES = (2, 5)


def settings(quick: bool) -> Iterator[dict[str, Any]]:
    """Yield everything a plan is made from."""
    modes = [
        *(("soft", noise, "auto") for noise in ("gaussian", "discrete_gaussian")),
        *(("gnmax", noise, "auto") for noise in ("gaussian", "discrete_gaussian")),
        ("confident", "gaussian", "binary"),
        ("confident", "gaussian", "gdp"),
        ("confident", "discrete_gaussian", "binary"),
    ]
    grid = itertools.product(modes, EPSILONS, QUERIES, TEACHERS, CLASSES)
    for (voting, noise, accounting), epsilon, n_queries, n_teachers, n_classes in grid:
        if quick and (epsilon, n_queries, n_teachers) != (1.0, 100, 100):
            continue
        yield {
            "voting": voting,
            "noise": noise,
            "accounting": accounting,
            "epsilon": epsilon,
            "n_queries": n_queries,
            "n_teachers": n_teachers,
            "n_classes": n_classes,
        }


def forget() -> None:
    """Empty every cache of the privacy modules."""
    for name, module in list(sys.modules.items()):
        if name.startswith("skfairdp.privacy"):
            for value in list(vars(module).values()):
                if hasattr(value, "cache_clear"):
                    value.cache_clear()


def plan(setting: dict[str, Any], repeats: int) -> dict[str, Any]:
    """Time one plan, cold each time; the quickest of a few, for the machine may be busy with other things."""
    from skfairdp.pate import ConfidentVoting, GNMaxVoting, SoftVoting
    from skfairdp.privacy import epsilon_of

    parts: dict[str, Any] = {
        "soft": SoftVoting(noise=setting["noise"]),
        "gnmax": GNMaxVoting(noise=setting["noise"]),
        "confident": ConfidentVoting(accounting=setting["accounting"], noise=setting["noise"]),
    }
    asked = {name: value for name, value in setting.items() if name not in ("voting", "noise", "accounting")}
    seconds, processor = [], []
    for _ in range(repeats):
        forget()
        started, processor_started = time.perf_counter(), time.process_time()
        made = parts[setting["voting"]].plan(delta=DELTA, **asked)
        seconds.append(time.perf_counter() - started)
        processor.append(time.process_time() - processor_started)
    certified = epsilon_of(made.event, DELTA)
    assert certified <= setting["epsilon"]
    return {**setting, "seconds": min(seconds), "cpu_seconds": min(processor), "epsilon_certified": certified}


def main() -> None:
    parser = common.parser(__doc__, "calibration")
    parser.add_argument("--repeats", type=int, default=3, help="the quickest counts (default: 3)")
    arguments = parser.parse_args()
    plan(next(settings(quick=True)), 1)  # imports
    measured = [plan(setting, arguments.repeats) for setting in settings(arguments.quick)]
    rows = []
    for mode in dict.fromkeys((p["voting"], p["noise"], p["accounting"]) for p in measured):
        mine = [p for p in measured if (p["voting"], p["noise"], p["accounting"]) == mode]
        slowest = max(mine, key=lambda p: p["seconds"])
        rows.append(
            {
                "voting": mode[0],
                "noise": mode[1],
                "accounting": mode[2],
                "plans": len(mine),
                "median_seconds": sorted(p["seconds"] for p in mine)[len(mine) // 2],
                "slowest": slowest,
                "least_share_of_epsilon_used": min(p["epsilon_certified"] / p["epsilon"] for p in mine),
            }
        )
    common.print_table(
        ["voting", "noise", "accounting", "plans", "median s", "slowest s", "at (ε, queries, teachers, classes)"],
        [
            [
                row["voting"],
                row["noise"],
                row["accounting"],
                row["plans"],
                f"{row['median_seconds']:.3f}",
                f"{row['slowest']['seconds']:.3f}",
                ", ".join(f"{row['slowest'][k]:g}" for k in ("epsilon", "n_queries", "n_teachers", "n_classes")),
            ]
            for row in rows
        ],
    )
    print(f"slowest of {len(measured)}: {max(p['seconds'] for p in measured):.3f} s (to reach: below {BAR})")
    common.save(
        arguments,
        delta=DELTA,
        repeats=arguments.repeats,
        rows=rows,
        slowest_seconds=max(p["seconds"] for p in measured),
        to_reach={"seconds_below": BAR},
        plans=measured,
    )


if __name__ == "__main__":
    main()
