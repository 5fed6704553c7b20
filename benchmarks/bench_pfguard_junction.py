"""A junction tree of marginals, which the mbi package fits, beside the default tree. Needs ``pip install mbi``.

    python benchmarks/bench_pfguard_junction.py

Same split, public rows, downstream classifiers and tests as bench_pfguard.py, on Adult where its file is found.
"""

import sys
import time
from importlib.util import find_spec
from typing import Any

import _common as common
import bench_pfguard as ours

STRUCTURES = ("tree", "junction_tree")


def points(data: str, seed: int, share: float, n_synthetic: int) -> list[dict[str, Any]]:
    """Return a measured point for each structure and downstream classifier."""
    from skfairdp import PFGuardGenerator
    from skfairdp.generative import MarginalsBackend

    split, groups = ours.load(data, seed, share)
    test = {"X_test": split.X_test, "y_test": split.y_test, "sensitive_features": split.sensitive_features_test}
    out = []
    for structure in STRUCTURES:
        started = time.perf_counter()
        generator = PFGuardGenerator(
            epsilon=ours.EPSILON, delta=ours.DELTA, classes=[0, 1], groups=groups, random_state=seed,
            backend=MarginalsBackend(structure=structure),
        ).fit(split.X, split.y, sensitive_features=split.sensitive_features, X_reference=split.X_public)  # fmt: skip
        seconds = time.perf_counter() - started
        X, y = generator.sample_labels(n_synthetic, random_state=seed)
        out += [
            {
                "method": structure,
                "learner": learner,
                "fit_seconds": seconds,
                "epsilon_certified": generator.privacy_.epsilon,
                **ours.scores_of(model, X, y, test),
            }
            for learner, model in ours.learners().items()
        ]
    return out


def main() -> None:
    arguments = common.parser(__doc__, "pfguard_junction", seeds=3, first_seed=100).parse_args()
    if find_spec("mbi") is None:
        sys.exit("This needs the mbi package: pip install mbi")
    common.quiet_fairness()
    data = "synthetic" if arguments.quick else common.default_data()
    share, n_synthetic = (0.1, 2000) if arguments.quick else (1.0, ours.N_SYNTHETIC)
    measured = []
    for seed in common.seeds_of(arguments):
        measured += points(data, seed, share, n_synthetic)
        print(f"{data}, seed {seed}: done", flush=True)
    rows = ours.summarise(measured)
    common.print_table(
        ["structure", "learner", *ours.MEASURES, "fit s"],
        [
            [
                row["method"],
                row["learner"],
                *(common.plus_minus(row[name]) for name in ours.MEASURES),
                common.plus_minus(row["fit_seconds"], 1),
            ]
            for row in rows
        ],
    )
    common.save(arguments, data=data, epsilon=ours.EPSILON, delta=ours.DELTA, rows=rows)


if __name__ == "__main__":
    main()
