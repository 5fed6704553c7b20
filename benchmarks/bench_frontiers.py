"""Frontiers of two papers: FairPATE's on one data set and on another, and the default generator's over ε.

    python benchmarks/bench_frontiers.py

*Transfer* (RQ3 of the FairPATE paper): how far the operating points (ε, γ) of a frontier move from one half of Adult to
the other half, and to Credit default and Bank, which are other tasks. *Generator* (Figures 6 to 9 of the PFGuard
paper): AUROC of a logistic regression and gaps of what it learns from 20,000 synthetic rows of Adult, with and without
fair label rates, and the worst seed. 70 / 5 / 25 % private, public and test rows; δ = 1e-5, one record replaced.
"""

import warnings
from collections.abc import Iterator
from typing import Any

import _common as common
import numpy as np

EPSILONS = (0.5, 1.0, 2.0)
GENERATOR_EPSILONS = (0.3, 1.0, 3.0, 10.0)
GAMMAS = (0.02, 0.05, 0.1, None)
DELTA = 1e-5
MOVES = ("accuracy_shift_median", "disparity_shift_median", "attainable")
SCORES = ("auroc", "accuracy", "equalized_odds_disparity", "demographic_disparity")
KEYS = ("part", "source", "target", "method", "epsilon")


def frontier_of(rows: tuple[Any, ...], seed: int) -> Any:
    """The frontier of FairPATE on these rows."""
    from skfairdp import FairPATEClassifier, frontier
    from skfairdp.datasets import train_private_public_test_split
    from skfairdp.preprocessing import make_tabular_encoder

    split = train_private_public_test_split(*rows, sizes=(0.70, 0.05, 0.25), random_state=seed)
    split = split.encode(make_tabular_encoder())
    return frontier(
        FairPATEClassifier(classes=[0, 1], delta=DELTA), split.X, split.y, X_public=split.public, X_test=split.X_test,
        y_test=split.y_test, sensitive_features_test=split.sensitive_features_test, epsilons=EPSILONS, gammas=GAMMAS,
        idp3=(False,), random_state=seed,
    )  # fmt: skip


def halves(seed: int) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Two halves of Adult (or of what is made up), in a random order."""
    X, y, groups = common.load_rows(common.default_data(), seed)
    order = np.random.default_rng(seed).permutation(len(y))
    parts = (order[: len(y) // 2], order[len(y) // 2 :])
    return tuple((X.iloc[at], np.asarray(y)[at], np.asarray(groups)[at]) for at in parts)


def moved(seed: int, quick: bool) -> Iterator[dict[str, Any]]:
    """Yield how far points move from the first half to each target."""
    from skfairdp import transfer_frontier

    first, second = halves(seed)
    targets = {"the other half": second}
    if not quick and common.default_data() == "adult":
        targets |= {name: common.load_rows(name, seed) for name in ("adult-race", "credit", "bank")}
    source = frontier_of(first, seed)
    for name, rows in targets.items():
        found = transfer_frontier(source, frontier_of(rows, seed), tolerance=0.02)
        summary = found.attrs["summary"][0]
        reached = found["attainable_accuracy"] - found["accuracy_source"]
        key = dict(zip(KEYS, ("transfer", "half of Adult", name, "FairPATE", None), strict=True))
        values = (summary["accuracy_shift_median"], summary["disparity_shift_median"], float(reached.median()))
        yield key | {"epsilon_certified": source.attrs["epsilon_total"]} | dict(zip(MOVES, values, strict=True))


def generated(seed: int, quick: bool) -> Iterator[dict[str, Any]]:
    """Yield what a classifier learns from synthetic rows, over ε."""
    from bench_pfguard import FAIR, learners, load, scores_of

    from skfairdp import PFGuardGenerator

    data = common.default_data()
    split, groups = load(data, seed, 0.2 if quick else 1.0)
    test = {"X_test": split.X_test, "y_test": split.y_test, "sensitive_features": split.sensitive_features_test}
    learner = learners()["logistic regression"]
    for epsilon in GENERATOR_EPSILONS[1:2] if quick else GENERATOR_EPSILONS:
        for name, settings in (("as it is", {"balance": None}), ("fair rates", FAIR)):
            generator = PFGuardGenerator(
                epsilon=epsilon, delta=DELTA, classes=[0, 1], groups=groups, random_state=seed, **settings
            )
            generator.fit(split.X, split.y, sensitive_features=split.sensitive_features, X_public=split.X_public)
            X, y = generator.sample_labels(2000 if quick else 20_000, random_state=seed)[:2]
            key = dict(zip(KEYS, ("generator", data, data, name, epsilon), strict=True))
            yield key | {"epsilon_certified": generator.privacy_.epsilon} | scores_of(learner, X, y, test)


def main() -> None:
    parser = common.parser(__doc__, "frontiers", seeds=3, first_seed=100)
    arguments = parser.parse_args()
    common.quiet_fairness()
    warnings.filterwarnings("ignore", category=UserWarning)
    found: list[dict[str, Any]] = []
    for seed in common.seeds_of(arguments):
        for point in (*generated(seed, arguments.quick), *moved(seed, arguments.quick)):
            found.append({"seed": seed, **point})
            print(seed, *(point[key] for key in KEYS), flush=True)
        rows = [
            row
            for part, names in (("generator", SCORES), ("transfer", MOVES))
            for row in common.averaged([p for p in found if p["part"] == part], KEYS, names, by_seed=names)
        ]
        common.save(arguments, delta=DELTA, rows=rows)
    nothing = {"mean": None, "standard_error": None}
    cells = [
        [*(row[key] for key in KEYS), *(common.plus_minus(row.get(name, nothing)) for name in (*SCORES, *MOVES))]
        for row in rows
    ]
    common.print_table([*KEYS, *SCORES, *MOVES], cells)


if __name__ == "__main__":
    main()
