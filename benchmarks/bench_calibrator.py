"""What calibration on public rows does to the gap and the accuracy of private models that know nothing of fairness.

    python benchmarks/bench_calibrator.py --data adult

70 / 5 / 25 % of the rows are private, public and test; the encoder sees public rows only, the group is not a feature.
DP-SGD without its fairness term and plain PATE are fitted once per seed; each calibration reads that model and the
unlabelled public rows with their groups, and costs no privacy. Gaps and accuracy are of test rows.
"""

import time
from collections.abc import Iterator
from typing import Any

import _common as common
import numpy as np

from skfairdp.postprocessing import Thresholds

EPSILON, DELTA = 1.0, 1e-5
CLASSES = (0, 1)
METHODS: dict[str, Any] = {
    "fine_tune": "fine_tune",
    "threshold": "threshold",
    "threshold, group at prediction": Thresholds(group_at_prediction=True),
}
TRADES: tuple[dict[str, float], ...] = ({"gap_weight": 0.3}, {"gap_weight": 1.0}, {"gamma": 0.05})


def models(split: Any, seed: int) -> Iterator[tuple[str, Any, float]]:
    """Yield private models without any fairness constraint, and the seconds of their fit."""
    from skfairdp import FairDPSGDClassifier, PATEClassifier

    shared = {"epsilon": EPSILON, "delta": DELTA, "classes": list(CLASSES), "random_state": seed}
    started = time.perf_counter()
    model = FairDPSGDClassifier(lam=0, **shared).fit(split.X, split.y)
    yield "DP-SGD", model, time.perf_counter() - started
    started = time.perf_counter()
    model = PATEClassifier(**shared).fit(split.X, split.y, X_public=split.X_public)
    yield "PATE", model, time.perf_counter() - started


def points(split: Any, seed: int) -> Iterator[dict[str, Any]]:
    """Yield each model as it is and after each calibration that can serve it."""
    from skfairdp import FairnessCalibrator
    from skfairdp.metrics import demographic_disparity

    truth, groups = np.asarray(split.y_test), split.sensitive_features_test
    public_groups = split.sensitive_features_public

    def measured(predicted: Any) -> dict[str, float]:
        gap = demographic_disparity(None, predicted, classes=list(CLASSES), sensitive_features=groups)
        return {"disparity": gap, "accuracy": float(np.mean(predicted == truth))}

    for name, model, seconds in models(split, seed):
        public = demographic_disparity(
            None, model.predict(split.X_public), classes=list(CLASSES), sensitive_features=public_groups
        )
        plain = {"model": name, "calibration": None, "gap_weight": None, "gamma": None}
        certified = {"epsilon_certified": model.privacy_.epsilon}
        before = measured(model.predict(split.X_test))
        yield plain | certified | before | {"public_disparity": public, "agreement": 1.0, "seconds": seconds}
        for calibration, method in METHODS.items():
            if calibration == "fine_tune" and not hasattr(model, "net_"):
                continue
            for trade in TRADES:
                started = time.perf_counter()
                calibrator = FairnessCalibrator(model, method=method, **trade)
                calibrator.fit(split.X_public, sensitive_features=public_groups)
                seconds = time.perf_counter() - started
                assert calibrator.privacy_ == model.privacy_
                yield {
                    **plain,
                    **trade,
                    "calibration": calibration,
                    "epsilon_certified": calibrator.privacy_.epsilon,
                    **measured(calibrator.predict(split.X_test, sensitive_features=groups)),
                    "public_disparity": calibrator.gap_after_,
                    "agreement": calibrator.agreement_,
                    "seconds": seconds,
                }


def main() -> None:
    parser = common.parser(__doc__, "calibrator", seeds=3, first_seed=100, data=True)
    arguments = parser.parse_args()
    common.quiet_fairness()
    data = arguments.data or common.default_data()
    found: list[dict[str, Any]] = []
    for seed in common.seeds_of(arguments):
        split = common.load_split(data, seed, share=0.1 if arguments.quick else 1.0)
        found += [{"seed": seed, **point} for point in points(split, seed)]
        common.tell_split(seed, split)
    table = common.averaged(
        found,
        ("model", "calibration", "gap_weight", "gamma"),
        ("accuracy", "disparity", "public_disparity", "agreement", "seconds"),
        by_seed=("accuracy", "disparity"),
    )
    print()
    common.print_table(
        ["model", "calibration", "gap weight", "γ", "ε", "public gap", "gap", "accuracy", "agreement", "seconds"],
        [
            [
                row["model"],
                row["calibration"] or "none",
                "–" if row["gap_weight"] is None else f"{row['gap_weight']:g}",
                "–" if row["gamma"] is None else f"{row['gamma']:g}",
                f"{row['epsilon_certified']:.3f}",
                *(common.plus_minus(row[name]) for name in ("public_disparity", "disparity", "accuracy", "agreement")),
                common.plus_minus(row["seconds"], 1),
            ]
            for row in table
        ],
    )
    common.save(arguments, data=data, **common.sizes(split), epsilon=EPSILON, delta=DELTA, rows=table)


if __name__ == "__main__":
    main()
