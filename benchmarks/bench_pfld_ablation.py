"""What each part of PF-LD is worth: its choices changed one at a time, at one attribute ε.

    python benchmarks/bench_pfld_ablation.py

Rows, encoder and ε as in bench_pfld.py. Every line is the estimator with its defaults but for what it names, swept over
the largest multiplier; the volume is that of the sweep, accuracy and gap those of the largest multiplier.
"""

import time

import _common as common
import numpy as np
from bench_pfld import estimator, hypervolumes
from bench_utility import CLASSES, DELTA, summarise

from skfairdp.lagrangian import GroupModel, NoisyGradients, mlp

LAMS = (0.2, 0.5, 5.0)
VARIANTS = {
    "group model (the default)": {},
    "group model, 16 features": {"primal": GroupModel(16)},
    "group model, 256 features": {"primal": GroupModel(256)},
    "group model, last iterate": {"average_last": 0.0},
    "group model, violations of probabilities": {"violations": "probabilities"},
    "group model, 10 dual steps": {"dual_steps": 10},
    "noisy gradients": {"primal": "gradient"},
    "noisy gradients, last iterate": {"primal": "gradient", "average_last": 0.0},
    "noisy gradients on 32 public directions": {"primal": NoisyGradients(n_components=32)},
    "noisy gradients of Poisson samples": {"primal": NoisyGradients(sampling_probability=0.05)},
}


def main() -> None:
    parser = common.parser(__doc__, "pfld_ablation", seeds=3, first_seed=200, data=True)
    parser.add_argument("--epsilon", type=float, default=0.5)
    arguments = parser.parse_args()
    common.quiet_fairness()
    data = arguments.data or common.default_data()
    share, lams, shorter = (
        (0.05, LAMS[-1:], {"net": mlp(max_epochs=1), "dual_steps": 2}) if arguments.quick else (1.0, LAMS, {})
    )
    variants = dict(list(VARIANTS.items())[::4]) if arguments.quick else VARIANTS
    points: list[dict] = []
    majority: dict[int, float] = {}
    for seed in common.seeds_of(arguments):
        split = common.load_split(data, seed, share=share)
        groups = sorted(set(split.sensitive_features))
        majority[seed] = float(max(np.mean(np.asarray(split.y_test) == label) for label in CLASSES))
        for name, settings in variants.items():
            for lam in lams:
                begun = time.perf_counter()
                model = estimator(arguments.epsilon, lam, groups, seed, **(settings | shorter))
                model.fit(split.X, split.y, sensitive_features=split.sensitive_features)
                points.append(
                    {
                        "seed": seed,
                        "method": name,
                        "epsilon": arguments.epsilon,
                        "epsilon_certified": model.privacy_.epsilon,
                        "gamma": lam,
                        "idp3": None,
                        "seconds": time.perf_counter() - begun,
                        **common.measure(model.predict(split.X_test), split),
                    }
                )
        print(f"seed {seed} done", flush=True)
    table = [row for row in summarise(points) if row["gamma"] == lams[-1]]
    volumes = {row["method"]: row["hypervolume"] for row in hypervolumes(points, majority)}
    common.print_table(
        ["variant", "ε certified", "accuracy", "gap", "hypervolume × 1000", "seconds"],
        [
            [
                row["method"],
                f"{row['epsilon_certified']:.3f}",
                common.plus_minus(row["accuracy"]),
                common.plus_minus(row["disparity"]),
                common.plus_minus({key: value and 1000 * value for key, value in volumes[row["method"]].items()}, 2),
                common.plus_minus(row["seconds"], 1),
            ]
            for row in table
        ],
    )
    common.save(
        arguments,
        data=data,
        delta=DELTA,
        epsilon=arguments.epsilon,
        lams=list(lams),
        protects="sensitive attribute (change the group of one record)",
        rows=[{**row, "hypervolume": volumes[row["method"]]} for row in table],
    )


if __name__ == "__main__":
    main()
