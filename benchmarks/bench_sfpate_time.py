"""How long SF-PATE takes beside one network without privacy, model M and PF-LD: ratios of CPU time, the sides in turn.

    python benchmarks/bench_sfpate_time.py

The paper's setting (Tran et al. 2022, Table 1): two hidden layers, batches of 32, 300 teachers, noisy winners on 200
rows, ε = 1, δ = 1e-4. Every network, θ* of all rows included, takes the same number of epochs in the same engine (the
paper: 200; fewer here, as only ratios are read). PF-LD runs in the engine of its own.
"""

import time
import warnings
from typing import Any

import _common as common
import numpy as np

HIDDEN = (64, 64)
BATCH = 32
TEACHERS = 300
METHODS = ("network", "SFS", "SFT", "M", "PF-LD", "SFS, our defaults")


def run(method: str, split: Any, epochs: int, seed: int) -> float:
    """Fit once and return the CPU seconds of this process: others on the machine do not count."""
    from skfairdp import LagrangianClassifier, PFLDClassifier, RandomizedResponseClassifier, SFPATEClassifier
    from skfairdp.lagrangian import mlp
    from skfairdp.pate import FairTeachers, GNMaxVoting

    groups = sorted(set(split.sensitive_features))
    same: dict[str, Any] = {"net": mlp(HIDDEN, max_epochs=epochs, batch_size=BATCH), "random_state": seed}
    private: dict[str, Any] = {"epsilon": 1.0, "groups": groups, "classes": [0, 1], "random_state": seed}
    pate: dict[str, Any] = {**private, "delta": 1e-4, "n_teachers": min(TEACHERS, len(split.y) // 4)}
    paper = {"voting": GNMaxVoting(max_queries=min(200, len(split.y)))}
    network = LagrangianClassifier(**same)
    model: Any = {
        "network": lambda: LagrangianClassifier(constraints=None, **same),
        "SFS": lambda: SFPATEClassifier(fair_estimator=network, **paper, **pate),
        "SFT": lambda: SFPATEClassifier(
            variant=FairTeachers(LagrangianClassifier(**same)), fair_estimator=network, **paper, **pate
        ),
        "M": lambda: RandomizedResponseClassifier(fair_estimator=network, debias=False, **private),
        "PF-LD": lambda: PFLDClassifier(delta=1e-4, net=same["net"], **private),
        "SFS, our defaults": lambda: SFPATEClassifier(fair_estimator=network, **pate),
    }[method]()
    given = {} if method == "network" else {"sensitive_features": split.sensitive_features}
    started = time.process_time()
    model.fit(split.X, split.y, **given)
    return time.process_time() - started


def main() -> None:
    parser = common.parser(__doc__, "sfpate_time")
    parser.add_argument("--data", nargs="+", choices=common.DATA, default=None, help="default: those with a file")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--turns", type=int, default=3, help="medians of so many (default: 3)")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    chosen = arguments.data or (
        ["synthetic"] if common.default_data() == "synthetic" else ["bank", "parkinsons", "adult-race", "credit"]
    )
    epochs, turns = (1, 1) if arguments.quick else (arguments.epochs, arguments.turns)
    run("network", common.load_split("synthetic", 0, share=0.01), 1, 0)  # what is loaded once is not counted
    rows = []
    for data in chosen[:1] if arguments.quick else chosen:
        split = common.load_split(data, 0, share=0.05 if arguments.quick else 1.0)
        seconds: dict[str, list[float]] = {method: [] for method in METHODS}
        for turn in range(turns):
            for method in METHODS:
                seconds[method].append(run(method, split, epochs, turn))
        medians = {method: float(np.median(values)) for method, values in seconds.items()}
        # The sides of a ratio were measured in the same turn: what slows the machine down slows both.
        ratios = {method: float(np.median(np.divide(seconds[method], seconds["network"]))) for method in METHODS}
        rows.append(
            {"data": data, "n_rows": len(split.y), "cpu_seconds": medians, "by_turn": seconds, "ratios": ratios}
        )
        common.print_table(["data", *METHODS], [[data, *(f"{rows[-1]['ratios'][m]:.2f}" for m in METHODS)]])
        common.save(  # after each data set, so that a run that is cut off leaves what it has
            arguments,
            epochs=epochs,
            turns=turns,
            batch_size=BATCH,
            hidden=list(HIDDEN),
            n_teachers=TEACHERS,
            to_reach={"SFS on bank, of one network": 3.0, "SFS": "faster than M"},
            rows=rows,
        )


if __name__ == "__main__":
    main()
