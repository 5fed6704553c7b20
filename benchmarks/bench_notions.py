"""Equalized odds and accuracy parity with a private group: PF-LD, SF-PATE and randomised response at ε = 1.

    python benchmarks/bench_notions.py

Figures 1 and 2 of the PF-LD paper and 3 and 6 of the SF-PATE paper report three notions of fairness; ``bench_pfld`` and
``bench_sfpate`` measure demographic parity. Here are the other two, and the groups sex × race of Adult under
demographic parity: four with White against Non-White, ten with the five races of the file. ``--parts clipping`` alone
has the clipping bound of PF-LD's noisy gradients (Figures 3 and 4) on Adult and Credit default, in a file of its own: a
minute or less a fit. 70 / 5 / 25 % of the rows are private, public and test; δ = 1e-5; ε protects the group of one
training row. Defaults everywhere, nothing is tuned.
"""

import time
import warnings
from collections.abc import Iterator
from typing import Any

import _common as common
import numpy as np

SETS = ("adult", "adult-race", "bank", "credit", "parkinsons")
NOTIONS = ("equalized_odds", "accuracy_parity")
EPSILON, DELTA = 1.0, 1e-5
PARTS = ("notions", "crossed", "crossed, ten", "clipping")
CLIPS = (0.1, 1.0, 10.0, 100.0, None)
FIGURES = ("accuracy", "gap", "majority", "always", "seconds")
KEYS = ("part", "data", "notion", "method")


def methods(notion: str, groups: list[Any], seed: int) -> dict[str, Any]:
    """Estimators by name; the first has no privacy and no constraint."""
    from skfairdp import LagrangianClassifier, PFLDClassifier, RandomizedResponseClassifier, SFPATEClassifier

    given = {"epsilon": EPSILON, "groups": groups, "classes": [0, 1], "random_state": seed}
    fair = LagrangianClassifier(constraints=notion, random_state=seed)
    return {
        "no constraint, no privacy": LagrangianClassifier(constraints=notion, lam_max=0.0, random_state=seed),
        "F-LD, no privacy": fair,
        "PF-LD": PFLDClassifier(constraints=notion, delta=DELTA, **given),
        "SF-PATE": SFPATEClassifier(constraints=notion, delta=DELTA, **given),
        "randomised response, debiased": RandomizedResponseClassifier(fair_estimator=fair, **given),
    }


def gap_of(notion: str, truth: Any, predicted: Any, groups: Any) -> float:
    """What the notion asks to be 0."""
    from skfairdp import metrics

    if notion == "demographic_parity":
        return metrics.demographic_disparity(None, predicted, classes=[0, 1], sensitive_features=groups)
    of = {"equalized_odds": metrics.equalized_odds_disparity, "accuracy_parity": metrics.accuracy_disparity}
    return of[notion](truth, predicted, sensitive_features=groups)


def measured(model: Any, split: Any, notion: str) -> dict[str, Any]:
    """Fit, and measure on the test rows; ``always`` is the share of rows that are given the most frequent class."""
    started = time.process_time()
    model.fit(split.X, split.y, sensitive_features=split.sensitive_features)
    seconds, truth, predicted = time.process_time() - started, np.asarray(split.y_test), model.predict(split.X_test)
    frequent = int(truth.mean() > 0.5)
    spent = getattr(model, "privacy_", None)
    return {
        "epsilon_certified": spent.epsilon if spent is not None else None,
        "accuracy": float(np.mean(predicted == truth)),
        "gap": gap_of(notion, truth, predicted, split.sensitive_features_test),
        "majority": float(np.mean(truth == frequent)),
        "always": float(np.mean(predicted == frequent)),
        "seconds": seconds,
    }


def crossed(part: str, seed: int, share: float) -> Any:
    """Adult with the groups sex × race, which are texts; race as the papers have it, or as the file has it."""
    from skfairdp.datasets import fetch_adult, train_private_public_test_split
    from skfairdp.preprocessing import make_tabular_encoder

    table = fetch_adult(sensitive=["sex", "race"])
    names = table.sensitive_features
    if part == "crossed, ten":
        names = fetch_adult(include_sensitive=True).data[["sex", "race"]].astype(object)
    groups = names.agg(", ".join, axis=1)
    sizes = tuple(share * size for size in (0.70, 0.05, 0.25))
    split = train_private_public_test_split(table.data, table.target, groups, sizes=sizes, random_state=seed)
    return split.encode(make_tabular_encoder())


def clipped_at(bound: float | None) -> str:
    """The name of a setting; without a bound the largest norm that there is counts."""
    return "not clipped" if bound is None else f"clipped at {bound:g}"


def points(part: str, data: str, seed: int, share: float) -> Iterator[dict[str, Any]]:
    """Yield the measured points of one part on one split."""
    from skfairdp import PFLDClassifier
    from skfairdp.lagrangian import NoisyGradients

    split = crossed(part, seed, share) if part.startswith("crossed") else common.load_split(data, seed, share=share)
    groups = sorted(set(split.sensitive_features))
    if part == "clipping":
        for clip in CLIPS:
            model = PFLDClassifier(
                epsilon=EPSILON, delta=DELTA, groups=groups, classes=[0, 1], random_state=seed,
                primal=NoisyGradients(max_grad_norm=clip),
            )  # fmt: skip
            key = {"part": part, "data": data, "notion": "demographic_parity", "method": clipped_at(clip)}
            yield key | measured(model, split, "demographic_parity")
        return
    for notion in NOTIONS if part == "notions" else ("demographic_parity",):
        for name, model in methods(notion, groups, seed).items():
            yield {"part": part, "data": data, "notion": notion, "method": name} | measured(model, split, notion)


def main() -> None:
    parser = common.parser(__doc__, "notions", seeds=2, first_seed=100)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS[:3]))
    arguments = parser.parse_args()
    arguments.name = "notions_clipping" if arguments.parts == ["clipping"] else arguments.name
    common.quiet_fairness()
    warnings.filterwarnings("ignore", category=UserWarning)
    real = common.default_data() == "adult"
    jobs = [("notions", data) for data in (SETS if real else ("synthetic",))]
    jobs += [("crossed", "adult"), ("crossed, ten", "adult")] if real else []
    jobs += [("clipping", data) for data in (("adult", "credit") if real else ("synthetic",))]
    jobs = [(part, data) for part, data in jobs if part in arguments.parts]
    found: list[dict[str, Any]] = []
    for part, data in jobs[:1] if arguments.quick else jobs:
        for seed in common.seeds_of(arguments):
            for point in points(part, data, seed, 0.05 if arguments.quick else 1.0):
                found.append(point | {"seed": seed})
                print(*(point[key] for key in KEYS), *(f"{point[name]:.3f}" for name in FIGURES), flush=True)
            common.save(
                arguments,
                epsilon=EPSILON,
                delta=DELTA,
                rows=common.averaged(found, KEYS, FIGURES, by_seed=("accuracy", "gap")),
            )
    rows = common.averaged(found, KEYS, FIGURES, by_seed=("accuracy", "gap"))
    cells = [[*(row[key] for key in KEYS), *(common.plus_minus(row[name]) for name in FIGURES)] for row in rows]
    common.print_table([*KEYS, *FIGURES], cells)


if __name__ == "__main__":
    main()
