"""A fit beside other work on all cores against the same fit with one thread: seconds of the clock.

    python benchmarks/bench_busy.py

As many processes as there are cores multiply matrices meanwhile. Threads that wait for each other cost a busy machine
many times what they bring: each fit should take at most 1.5 times what it takes with ``OMP_NUM_THREADS=1``.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from typing import Any

import _common as common
import numpy as np

MOST = 1.5
#: Ends with whoever began it, whatever that dies of.
WORK = """
import os
import numpy as np
mine, a = os.getppid(), np.random.default_rng(0).normal(size=(400, 400))
while os.getppid() == mine:
    a = np.tanh(a @ a)
"""
FITS = {"FairDPSGD": "FairDPSGDClassifier", "PF-LD": "PFLDClassifier", "SF-PATE": "SFPATEClassifier"}


def run(task: dict[str, Any]) -> dict[str, Any]:
    """Fit twice, the first time to import what it needs; meant for a process of its own."""
    import skfairdp

    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    X, groups = rng.standard_normal((task["n_rows"], 20)), rng.integers(2, size=task["n_rows"])
    y = (X[:, 0] + groups + rng.logistic(size=len(X)) > 0.5).astype(int)
    model = getattr(skfairdp, FITS[task["fit"]])(classes=[0, 1], groups=[0, 1], random_state=0)
    model.fit(X[:500], y[:500], sensitive_features=groups[:500])
    started = time.perf_counter()
    model.fit(X, y, sensitive_features=groups)
    return {"seconds": time.perf_counter() - started}


def main() -> None:
    parser = common.parser(__doc__, "busy", seeds=3)
    parser.add_argument("--rows", type=int, default=8000)
    parser.add_argument("--task", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.task:
        print(json.dumps(run(json.loads(arguments.task))))
        return
    n_rows = 1000 if arguments.quick else arguments.rows
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    others = [
        subprocess.Popen([sys.executable, "-c", WORK], env=environment, stderr=subprocess.DEVNULL)
        for _ in range(os.cpu_count() or 1)
    ]
    rows = []
    try:
        for fit in FITS:
            seconds: dict[str, list[float]] = {"one thread": [], "as it is": []}
            for _ in common.seeds_of(arguments):  # in turn, for a minute that is busier still
                for how, found in seconds.items():
                    os.environ.pop("OMP_NUM_THREADS", None)
                    if how == "one thread":
                        os.environ["OMP_NUM_THREADS"] = "1"
                    found.append(common.in_new_process(__file__, {"fit": fit, "n_rows": n_rows})["seconds"])
            one, usual = (float(np.median(found)) for found in seconds.values())
            rows.append({"fit": fit, "seconds": usual, "seconds_one_thread": one, "ratio": usual / one})
            print(
                f"{fit:10} {usual:6.1f} s, {one:6.1f} s with one thread: {usual / one:.2f} (at most {MOST})", flush=True
            )
    finally:
        for other in others:
            other.kill()
    common.save(arguments, n_rows=n_rows, most=MOST, rows=rows)


if __name__ == "__main__":
    main()
