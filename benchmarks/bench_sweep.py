"""Speed of a γ sweep: 50 fairness constraints from one FairPATE release, against one fit.

    python benchmarks/bench_sweep.py --help

Both sides run in turn in one process on the same rows; the ratio is what counts, not the seconds.
"""

import argparse
import json
import os
import platform
import time
import warnings
from pathlib import Path

import numpy as np
import sklearn

import skfairdp
from skfairdp.datasets import (
    data_file,
    fetch_adult,
    make_biased_classification,
    train_private_public_test_split,
)
from skfairdp.exceptions import FairnessWarning
from skfairdp.pate import FairPATEClassifier
from skfairdp.preprocessing import make_tabular_encoder

RESULTS = Path(__file__).parent / "results"


def rows(data: str, seed: int):
    if data == "adult":
        adult = fetch_adult()
        return adult.data, adult.target, adult.sensitive_features
    return make_biased_classification(48_000, disparity=0.2, base_rate=0.25, as_frame=True, random_state=seed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--data", choices=["auto", "adult", "synthetic"], default="auto")
    parser.add_argument("--gammas", type=int, default=50, help="values of γ in the sweep (default: 50)")
    parser.add_argument("--seeds", type=int, default=5, help="repetitions, one split each (default: 5)")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--out", type=Path, default=RESULTS / "sweep.json")
    arguments = parser.parse_args()
    data = arguments.data
    if data == "auto":
        data = "adult" if data_file("adult") is not None else "synthetic"

    # γ below what a student can reach is part of the sweep; being told so each time is not.
    warnings.simplefilter("ignore", FairnessWarning)
    table = []
    for seed in range(arguments.seeds):
        split = train_private_public_test_split(*rows(data, seed), random_state=seed).encode(
            make_tabular_encoder()
        )
        started = time.perf_counter()
        released = FairPATEClassifier(epsilon=arguments.epsilon, classes=[0, 1], random_state=seed)
        released.fit(split.X, split.y, X_public=split.public)
        fit_seconds = time.perf_counter() - started
        started = time.perf_counter()
        for gamma in np.linspace(0.005, 0.25, arguments.gammas):
            released.refit_student(gamma=float(gamma)).predict(split.X_test)
        sweep_seconds = time.perf_counter() - started
        table.append(
            {
                "seed": seed,
                "fit_seconds": fit_seconds,
                "sweep_seconds": sweep_seconds,
                "ratio": (fit_seconds + sweep_seconds) / fit_seconds,
            }
        )
        print(
            f"seed {seed}: fit {fit_seconds:7.2f} s, sweep of {arguments.gammas} γ {sweep_seconds:7.2f} s, "
            f"together {table[-1]['ratio']:.2f} fits"
        )
    ratios = np.array([row["ratio"] for row in table])
    error = float(ratios.std(ddof=1) / np.sqrt(len(ratios))) if len(ratios) > 1 else None
    print(f"fit and sweep of {arguments.gammas} γ cost {ratios.mean():.2f} fits (to reach: at most 2)")
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(
        json.dumps(
            {
                "benchmark": "sweep",
                "data": data,
                "n_private": len(split.y),
                "n_public": len(split.y_public),
                "epsilon": arguments.epsilon,
                "gammas": arguments.gammas,
                "ratio_mean": float(ratios.mean()),
                "ratio_standard_error": error,
                "to_reach": 2.0,
                "rows": table,
                "versions": {
                    "python": platform.python_version(),
                    "skfairdp": skfairdp.__version__,
                    "scikit-learn": sklearn.__version__,
                    "numpy": np.__version__,
                },
                "machine": {
                    "processor": platform.machine(),
                    "system": platform.system(),
                    "cores": os.cpu_count(),
                },
            },
            indent=1,
        )
        + "\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
