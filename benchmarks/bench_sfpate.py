"""SF-PATE beside its peers of attribute privacy: accuracy, fairness and the released groups, on one data set.

    python benchmarks/bench_sfpate.py --data bank

70 / 5 / 25 % of the rows are private, public and test; the group is not a feature, δ = 1e-4 as in the paper (Tran et
al. 2022). ε protects the group of one training row; features and labels are public. *paper* is the published setting
(noisy winners on 200 rows, a student of those rows); without it, our defaults (noisy shares of all rows, a student of
all rows). M is randomised response and the network of SF-PATE on the released groups, as they are or without bias.
All figures are of test rows.
"""

import time
import warnings
from collections.abc import Iterator
from typing import Any

import _common as common
import numpy as np
from bench_utility import CLASSES, measure

EPSILONS = (0.5, 1.0)
DELTA = 1e-4
ROWS = 200  # of the paper's student
SFS, SFT, SFS_PAPER, SFT_PAPER = "SFS", "SFT", "SFS, paper", "SFT, paper"
M, DEBIASED, PFLD, FLD = "M", "M, debiased", "PF-LD", "F-LD"
GENERALIZED = "generalized_demographic_parity"


def make(method: str, epsilon: float, groups: list[Any], constraint: str, seed: int) -> Any:
    """Return the estimator behind a name; nothing is tuned."""
    from skfairdp import LagrangianClassifier, PFLDClassifier, RandomizedResponseClassifier, SFPATEClassifier

    step = 3.0 if constraint == GENERALIZED else 1.0
    network = LagrangianClassifier(constraint=constraint, dual_step=step, random_state=seed)
    if method == FLD:
        return network
    if method in (M, DEBIASED):
        return RandomizedResponseClassifier(
            fair_estimator=network, epsilon=epsilon, debias=method == DEBIASED, groups=groups, random_state=seed
        )
    if method == PFLD:
        return PFLDClassifier(
            epsilon=epsilon, delta=DELTA, constraint=constraint, groups=groups, classes=list(CLASSES), random_state=seed
        )
    as_published = {"voting": "gnmax", "student_rows": ROWS, "n_teachers": 300} if "paper" in method else {}
    return SFPATEClassifier(
        variant="student" if method.startswith("SFS") else "teacher",
        epsilon=epsilon,
        delta=DELTA,
        constraint=constraint,
        groups=groups,
        classes=list(CLASSES),
        random_state=seed,
        **as_published,
    )


def group_accuracy(model: Any, groups: Any) -> float | None:
    """Share of released groups that are the true ones (the paper's Figure 2), where groups are released."""
    groups = np.asarray(groups, dtype=object)
    if hasattr(model, "released_groups_"):
        return float(np.mean(model.released_groups_ == groups))
    if getattr(model, "variant", "") == "student" and model.voting == "gnmax":
        return float(np.mean(model.groups_[model.released_votes_] == groups[model.query_indices_]))
    return None


def points_of(split: Any, seed: int, epsilons: tuple[float, ...], *, quick: bool) -> Iterator[dict[str, Any]]:
    """Yield the measured points of every method on one split."""
    from skfairdp.metrics import wasserstein_disparity

    groups = sorted(set(split.sensitive_features))
    private = [SFS, SFT, SFS_PAPER, SFT_PAPER, M, DEBIASED, PFLD]
    plan = [(FLD, None, "demographic_parity")]
    plan += [(method, epsilon, "demographic_parity") for epsilon in epsilons for method in private]
    plan += [(method, 1.0, GENERALIZED) for method in (SFS, SFT, M, DEBIASED)] + [(FLD, None, GENERALIZED)]
    for method, epsilon, constraint in plan[:3] if quick else plan:
        started = time.perf_counter()
        model = make(method, epsilon or 1.0, groups, constraint, seed)
        model.fit(split.X, split.y, sensitive_features=split.sensitive_features)
        seconds = time.perf_counter() - started
        scores = model.predict_proba(split.X_test)[:, 1]
        distance = wasserstein_disparity(None, scores, sensitive_features=split.sensitive_features_test)
        yield {
            "method": method,
            "epsilon": epsilon,
            "constraint": constraint,
            "epsilon_certified": None if epsilon is None else model.privacy_.epsilon,
            "delta": None if epsilon is None else model.privacy_.delta,
            "group_accuracy": group_accuracy(model, split.sensitive_features),
            "wasserstein": distance,
            "seconds": seconds,
            **measure(model.predict(split.X_test), split),
        }


def average(points: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Average over seeds."""
    keys = ("method", "epsilon", "constraint")
    rows = []
    for key in dict.fromkeys(tuple(point[k] for k in keys) for point in points):
        mine = [point for point in points if tuple(point[k] for k in keys) == key]
        row: dict[str, Any] = dict(zip(keys, key, strict=True))
        row["epsilon_certified"] = max((p["epsilon_certified"] for p in mine if p["epsilon_certified"]), default=None)
        row["delta"] = mine[0]["delta"]
        for name in ("accuracy", "disparity", "eo_disparity", "wasserstein", "seconds", "group_accuracy"):
            known = [point[name] for point in mine if point[name] is not None]
            row[name] = common.summary(known) if known else None
        rows.append(row)
    return rows


def main() -> None:
    parser = common.parser(__doc__, "sfpate", seeds=20, first_seed=100)
    parser.add_argument("--data", choices=common.DATA, default=None, help="default: adult where found, else synthetic")
    arguments = parser.parse_args()
    data = arguments.data or common.default_data()
    warnings.simplefilter("ignore")
    started = time.perf_counter()
    epsilons = (1.0,) if arguments.quick else EPSILONS
    points: list[dict[str, Any]] = []
    for seed in common.seeds_of(arguments):
        split = common.load_split(data, seed, share=0.05 if arguments.quick else 1.0)
        points += [{"seed": seed, **point} for point in points_of(split, seed, epsilons, quick=arguments.quick)]
        print(f"seed {seed}: {len(split.y):,} private, {len(split.y_test):,} test rows", flush=True)
    table = average(points)
    common.print_table(
        ["constraint", "method", "ε", "certified", "accuracy", "gap", "Wasserstein", "groups right", "seconds"],
        [
            [
                "gdp" if row["constraint"] == GENERALIZED else "dp",
                row["method"],
                row["epsilon"] or "none",
                "–" if row["epsilon"] is None else f"{row['epsilon_certified']:.3f}",
                *(common.plus_minus(row[name]) for name in ("accuracy", "disparity", "wasserstein")),
                "–" if row["group_accuracy"] is None else common.plus_minus(row["group_accuracy"]),
                common.plus_minus(row["seconds"], 1),
            ]
            for row in table
        ],
    )
    common.save(
        arguments,
        {
            "data": data,
            "seeds": common.seeds_of(arguments),
            "n_private": len(split.y),
            "n_test": len(split.y_test),
            "delta": DELTA,
            "student_rows": ROWS,
            "protects": "sensitive attribute (change the group of one record)",
            "rows": table,
        },
        started=started,
        name=f"sfpate_{data}",
    )


if __name__ == "__main__":
    main()
