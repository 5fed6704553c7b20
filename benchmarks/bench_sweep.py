"""A γ sweep: 50 fairness constraints from one FairPATE release, against one fit.

    python benchmarks/bench_sweep.py --help

Both sides run in turn in one process on the same rows. To reach: the sweep costs at most two fits.
"""

import time

import _common as common
import numpy as np

from skfairdp.pate import FairPATEClassifier

BAR = 2.0


def run(data: str, seed: int, n_gammas: int, epsilon: float, share: float) -> dict[str, float]:
    """Time one fit, then the sweep over its release: every student is trained and predicts the test rows."""
    split = common.load_split(data, seed, share=share)
    model = FairPATEClassifier(epsilon=epsilon, classes=[0, 1], random_state=seed)
    started = time.perf_counter()
    model.fit(split.X, split.y, X_public=split.public)
    fitted = time.perf_counter()
    for gamma in np.linspace(0.005, 0.25, n_gammas):
        model.refit(gamma=float(gamma)).predict(split.X_test)
    swept = time.perf_counter()
    return {
        "seed": seed,
        "n_private": len(split.y),
        "n_public": len(split.y_public),
        "fit_seconds": fitted - started,
        "sweep_seconds": swept - fitted,
        "sweep_over_fit": (swept - fitted) / (fitted - started),
    }


def main() -> None:
    parser = common.parser(__doc__, "sweep", seeds=5)
    parser.add_argument("--data", choices=common.DATA, default=common.default_data())
    parser.add_argument("--gammas", type=int, default=50, help="values of γ in the sweep (default: 50)")
    parser.add_argument("--epsilon", type=float, default=1.0)
    arguments = parser.parse_args()
    common.quiet_fairness()
    share = 0.1 if arguments.quick else 1.0
    run(arguments.data, 0, 2, arguments.epsilon, 0.1)  # imports and compilation are neither side's cost
    rows = [
        run(arguments.data, seed, arguments.gammas, arguments.epsilon, share) for seed in common.seeds_of(arguments)
    ]
    common.print_table(
        ["seed", "fit, s", f"sweep of {arguments.gammas} γ, s", "sweep / fit"],
        [[r["seed"], *(f"{r[k]:.2f}" for k in ("fit_seconds", "sweep_seconds", "sweep_over_fit"))] for r in rows],
    )
    ratio = common.summary([row["sweep_over_fit"] for row in rows])
    print(f"a sweep of {arguments.gammas} γ costs {common.plus_minus(ratio, 2)} fits; to reach: at most {BAR:g}")
    common.save(
        arguments,
        data=arguments.data,
        epsilon=arguments.epsilon,
        gammas=arguments.gammas,
        sweep_over_fit=ratio,
        to_reach=BAR,
        rows=rows,
    )


if __name__ == "__main__":
    main()
