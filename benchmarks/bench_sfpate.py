"""SF-PATE beside its peers of attribute privacy: accuracy, fairness and the released groups, on one data set.

    python benchmarks/bench_sfpate.py --data bank

70 / 5 / 25 % of the rows are private, public and test; the group is not a feature, δ = 1e-4 as in the paper (Tran et
al. 2022). ε protects the group of one training row; features and labels are public. *paper* is the published setting
(noisy winners on 200 rows, a student of those rows); without it, our defaults (noisy shares of all rows, a student of
all rows). M is randomised response and the network of SF-PATE on the released groups, as they are or without bias.
All figures are of test rows, seconds are those of the processor.

Results are written after every seed. A later run measures only what is missing in the file (more seeds, another ε),
provided that data, settings and versions are those of the file; --anew starts over.
"""

import argparse
import json
import time
import warnings
from typing import Any

import _common as common
import numpy as np
from bench_utility import CLASSES, FAIREST

EPSILONS = (0.5, 1.0)
DELTA = 1e-4
ROWS = 200  # of the paper's student
SFS, SFT, SFS_PAPER, SFT_PAPER = "SFS", "SFT", "SFS, paper", "SFT, paper"
M, DEBIASED, PFLD, FLD = "M", "M, debiased", "PF-LD", "F-LD"
GENERALIZED = "generalized_demographic_parity"
MEASURED = (
    "accuracy",
    "disparity",
    "eo_disparity",
    "wasserstein",
    "hypervolume",
    "seconds",
    "group_accuracy",
    "epsilon_certified",
)
Key = tuple[str, float | None, str]
Points = dict[Key, dict[int, dict[str, Any]]]


def make(method: str, epsilon: float, groups: list[Any], constraint: str, seed: int) -> Any:
    """Return the estimator behind a name; nothing is tuned."""
    from skfairdp import LagrangianClassifier, PFLDClassifier, RandomizedResponseClassifier, SFPATEClassifier
    from skfairdp.pate import GNMaxVoting

    network = LagrangianClassifier(constraints=constraint, random_state=seed)
    if method == FLD:
        return network
    if method in (M, DEBIASED):
        return RandomizedResponseClassifier(
            fair_estimator=network, epsilon=epsilon, debias=method == DEBIASED, groups=groups, random_state=seed
        )
    public: dict[str, Any] = {"delta": DELTA, "groups": groups, "classes": list(CLASSES), "random_state": seed}
    if method == PFLD:
        return PFLDClassifier(epsilon=epsilon, constraints=constraint, **public)
    as_published = {"voting": GNMaxVoting(max_queries=ROWS), "n_teachers": 300} if "paper" in method else {}
    return SFPATEClassifier(
        variant="student" if method.startswith("SFS") else "teacher",
        epsilon=epsilon,
        constraints=constraint,
        **public,
        **as_published,
    )


def group_accuracy(model: Any, groups: Any) -> float | None:
    """Share of released groups that are the true ones (the paper's Figure 2), where groups are released."""
    from skfairdp.pate import GNMaxVoting

    groups = np.asarray(groups, dtype=object)
    if hasattr(model, "released_groups_"):
        return float(np.mean(model.released_groups_ == groups))
    if getattr(model, "variant", "") == "student" and isinstance(model.voting, GNMaxVoting):
        return float(np.mean(model.groups_[model.released_votes_] == groups[model.query_indices_]))
    return None


def plan(epsilons: tuple[float, ...], *, quick: bool) -> list[Key]:
    """Return what is measured on every split: method, ε, constraint."""
    private = (SFS, SFT, SFS_PAPER, SFT_PAPER, M, DEBIASED, PFLD)
    keys: list[Key] = [(FLD, None, "demographic_parity")]
    keys += [(method, epsilon, "demographic_parity") for epsilon in epsilons for method in private]
    if 1.0 in epsilons:
        keys += [(method, 1.0, GENERALIZED) for method in (SFS, SFT, M, DEBIASED)] + [(FLD, None, GENERALIZED)]
    return keys[:3] if quick else keys


def point(key: Key, split: Any, seed: int) -> dict[str, Any]:
    """Measure one method on one split."""
    from skfairdp.metrics import wasserstein_disparity
    from skfairdp.model_selection import hypervolume

    method, epsilon, constraint = key
    model = make(method, epsilon or 1.0, sorted(set(split.sensitive_features)), constraint, seed)
    started = time.process_time()
    model.fit(split.X, split.y, sensitive_features=split.sensitive_features)
    seconds = time.process_time() - started
    scores = model.predict_proba(split.X_test)[:, 1]
    found = common.measure(model.predict(split.X_test), split)
    majority = float(max(np.mean(np.asarray(split.y_test) == label) for label in CLASSES))
    return found | {
        "wasserstein": wasserstein_disparity(None, scores, sensitive_features=split.sensitive_features_test),
        "hypervolume": hypervolume([(found["accuracy"], 1 - found["disparity"])], (majority, FAIREST), minimize=False),
        "seconds": seconds,
        "group_accuracy": group_accuracy(model, split.sensitive_features),
        "epsilon_certified": None if epsilon is None else model.privacy_.epsilon,
    }


def table_of(points: Points) -> list[dict[str, Any]]:
    """Return one row per method, ε and constraint: averages over its seeds, and the figures of each seed."""
    rows = []
    for (method, epsilon, constraint), by_seed in points.items():
        seeds = sorted(by_seed)
        row: dict[str, Any] = {"method": method, "epsilon": epsilon, "constraint": constraint, "seeds": seeds}
        values = {name: [by_seed[seed][name] for seed in seeds] for name in MEASURED}
        certified = values.pop("epsilon_certified")
        row["epsilon_certified"] = None if epsilon is None else max(certified)
        row["delta"] = None if epsilon is None else 0.0 if method in (M, DEBIASED) else DELTA
        for name, column in values.items():
            row[name] = common.summary(column) if None not in column else None
        row["by_seed"] = {
            name: [float(f"{value:.5g}") for value in column] for name, column in values.items() if None not in column
        }
        rows.append(row)
    return rows


def points_in(rows: list[dict[str, Any]]) -> Points:
    """Return what :func:`table_of` was given, to five digits."""
    points: Points = {}
    for row in rows:
        by_seed = points.setdefault((row["method"], row["epsilon"], row["constraint"]), {})
        for i, seed in enumerate(row["seeds"]):
            by_seed[seed] = {name: row["by_seed"][name][i] if name in row["by_seed"] else None for name in MEASURED}
            by_seed[seed]["epsilon_certified"] = row["epsilon_certified"]
    return points


def settings_of(data: str) -> dict[str, Any]:
    """Return what two runs must share for their seeds to be averaged: parameters of all estimators, defaults too."""
    made = {
        f"{method}, {constraint}": {
            name: repr(value) for name, value in make(method, 1.0, [0, 1], constraint, 0).get_params(deep=False).items()
        }
        for constraint in ("demographic_parity", GENERALIZED)
        for method in (FLD, SFS, SFT, SFS_PAPER, SFT_PAPER, M, DEBIASED, PFLD)
    }
    return {"data": data, "delta": DELTA, "student_rows": ROWS, "estimators": made}


def found_in(arguments: argparse.Namespace, data: str, settings: dict[str, Any]) -> Points:
    """Return the points that the file holds already."""
    path = arguments.out or common.RESULTS / f"sfpate_{data}.json"
    if arguments.anew or not path.exists() or (arguments.quick and arguments.out is None):
        return {}
    record = json.loads(path.read_text(encoding="utf-8"))
    if record.get("settings") != settings or record.get("versions") != common.versions():
        print(f"{path.name} holds other settings or versions, and is written anew")
        return {}
    return points_in(record["rows"])


def main() -> None:
    parser = common.parser(__doc__, "sfpate", seeds=20, first_seed=100, data=True)
    parser.add_argument("--epsilons", type=float, nargs="+", default=list(EPSILONS))
    parser.add_argument("--anew", action="store_true", help="measure again what the file holds")
    arguments = parser.parse_args()
    data = arguments.data or common.default_data()
    warnings.simplefilter("ignore")
    keys = plan((1.0,) if arguments.quick else tuple(arguments.epsilons), quick=arguments.quick)
    settings = settings_of(data)
    points = found_in(arguments, data, settings)
    for seed in common.seeds_of(arguments):
        missing = [key for key in keys if seed not in points.get(key, {})]
        if not missing:
            continue
        split = common.load_split(data, seed, share=0.05 if arguments.quick else 1.0)
        for key in missing:
            points.setdefault(key, {})[seed] = point(key, split, seed)
        common.save(
            arguments,
            name=f"sfpate_{data}",
            data=data,
            seeds=sorted({seed for by_seed in points.values() for seed in by_seed}),
            n_private=len(split.y),
            n_test=len(split.y_test),
            delta=DELTA,
            student_rows=ROWS,
            hypervolume_reference={"accuracy": "majority class of the test rows", "fairness": FAIREST},
            protects="sensitive attribute (change the group of one record)",
            rows=table_of(points),
            settings=settings,
        )
        print(f"seed {seed}: {len(split.y):,} private, {len(split.y_test):,} test rows", flush=True)
    common.print_table(
        [
            "constraint",
            "method",
            "ε",
            "seeds",
            "certified",
            "accuracy",
            "gap",
            "Wasserstein",
            "hypervolume",
            "groups right",
            "seconds",
        ],
        [
            [
                "gdp" if row["constraint"] == GENERALIZED else "dp",
                row["method"],
                row["epsilon"] or "none",
                len(row["seeds"]),
                "–" if row["epsilon"] is None else f"{row['epsilon_certified']:.3f}",
                *(common.plus_minus(row[name]) for name in ("accuracy", "disparity", "wasserstein")),
                common.plus_minus(row["hypervolume"], 5),
                "–" if row["group_accuracy"] is None else common.plus_minus(row["group_accuracy"]),
                common.plus_minus(row["seconds"], 1),
            ]
            for row in table_of(points)
        ],
    )


if __name__ == "__main__":
    main()
