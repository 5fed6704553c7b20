"""What it costs to protect all rows of one person: by subject, by row, and by row with a sixth of the budget.

    python benchmarks/bench_subjects.py --seeds 3

PATE has 8, 30 and 100 features, DP-SGD and a logistic regression on synthetic rows 8. Tables are made up: subjects
with 1 to 6 rows each, whose rows are alike to some degree, or whose number of rows goes with the label. By group
privacy a guarantee for all six rows of a subject is had from one for a single row at a smaller (ε, δ); that is what a
fit without ``subject=`` would have to spend. Accuracy is that of other subjects, by row, and by subject, each of which
counts once.
"""

import warnings
from typing import Any

import _common as common
import numpy as np

DELTA, MOST_ROWS = 1e-5, 6
EPSILONS = (0.3, 1.0)
KINDS = {"alike 0": (0.0, False), "alike .5": (0.5, False), "alike .9": (0.9, False), "rows by label": (0.5, True)}
#: At which ε, by the number of features.
METHODS = {
    "PATE": {8: EPSILONS, 30: EPSILONS, 100: EPSILONS[1:]},
    "DP-SGD": {8: EPSILONS[1:]},
    "synthetic rows": {8: EPSILONS[1:]},
}
UNITS = ("row", "subject", "group privacy")


def made(
    n_subjects: int, n_features: int, kind: str, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw features, labels and the subject of each row."""
    alike, by_label = KINDS[kind]
    of_subject = rng.standard_normal((n_subjects, n_features))
    weights = np.linspace(1.0, 0.0, n_features)
    weights /= np.linalg.norm(weights) / 2
    n_rows = rng.integers(1, MOST_ROWS + 1, n_subjects)
    if by_label:
        n_rows = np.where(of_subject @ weights > 0, rng.integers(4, MOST_ROWS + 1, n_subjects), rng.integers(1, 4))
    subjects = np.repeat(np.arange(n_subjects), n_rows)
    own = rng.standard_normal((len(subjects), n_features))
    X = np.sqrt(alike) * of_subject[subjects] + np.sqrt(1 - alike) * own
    y = (X @ weights + rng.logistic(size=len(X)) > 0).astype(np.int64)
    return X, y, subjects


def for_one_row(epsilon: float) -> tuple[float, float]:
    """The (ε, δ) for one row that is (ε, DELTA) for all rows of a subject."""
    from skfairdp.privacy import group_privacy

    own = epsilon / MOST_ROWS
    scale = group_privacy(own, DELTA, MOST_ROWS)[1] / DELTA  # it is linear in δ
    assert group_privacy(own, DELTA / scale, MOST_ROWS) <= (epsilon * (1 + 1e-9), DELTA * (1 + 1e-9))
    return own, DELTA / scale


def fit(
    method: str, seed: int, n_subjects: int, n_features: int, kind: str, epsilon: float, unit: str
) -> dict[str, Any]:
    """Fit once; every unit has the same rows and the same seed."""
    from sklearn.linear_model import LogisticRegression

    from skfairdp import FairDPSGDClassifier, PATEClassifier, SyntheticDataClassifier

    rng = np.random.default_rng([seed, n_features, list(KINDS).index(kind)])
    X, y, subjects = made(n_subjects, n_features, kind, rng)
    X_public = made(1000, n_features, kind, rng)[0]
    X_test, y_test, of_test = made(n_subjects, n_features, kind, rng)
    own = for_one_row(epsilon) if unit == "group privacy" else (epsilon, DELTA)
    given: dict[str, Any] = {"epsilon": own[0], "delta": own[1], "classes": [0, 1], "random_state": seed}
    of_tables = {"bounds": (-5.0, 5.0), "dtypes": float}
    models: dict[str, Any] = {
        "PATE": PATEClassifier(**given),
        "DP-SGD": FairDPSGDClassifier(lam=0.0, **given),
        "synthetic rows": SyntheticDataClassifier(LogisticRegression(), **given, **of_tables),
    }
    model = models[method]
    public = {"X_public": X_public} if method == "PATE" else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y, **public, **({"subject": subjects} if unit == "subject" else {}))
    right = np.asarray(model.predict(X_test) == y_test, dtype=float)
    by_subject = np.bincount(of_test, right) / np.bincount(of_test)
    return {
        "method": method,
        "n_features": n_features,
        "kind": kind,
        "epsilon": epsilon,
        "unit": unit,
        "seed": seed,
        "epsilon_certified": model.privacy_.epsilon,
        "accuracy": float(right.mean()),
        "accuracy_by_subject": float(by_subject.mean()),
    }


def main() -> None:
    parser = common.parser(__doc__ or "", "subjects", seeds=3)
    parser.add_argument("--subjects", type=int, default=8000, help="private subjects (default: 8000)")
    arguments = parser.parse_args()
    n_subjects = 600 if arguments.quick else arguments.subjects
    kinds, most = (["alike .5"], 1) if arguments.quick else (list(KINDS), 3)
    points = [
        fit(method, seed, n_subjects, n_features, kind, epsilon, unit)
        for method, settings in METHODS.items()
        for n_features, epsilons in list(settings.items())[:most]
        for kind in kinds
        for epsilon in epsilons
        for unit in UNITS
        for seed in common.seeds_of(arguments)
    ]
    keys = ("method", "n_features", "kind", "epsilon", "unit")
    rows = common.averaged(points, keys, ["accuracy", "accuracy_by_subject"], by_seed=["accuracy_by_subject"])
    common.print_table(
        [*keys, "by row", "by subject"],
        [
            [
                *(row[key] for key in keys),
                *(common.plus_minus(row[of], 4) for of in ("accuracy", "accuracy_by_subject")),
            ]
            for row in rows
        ],
    )
    common.save(arguments, delta=DELTA, n_subjects=n_subjects, most_rows=MOST_ROWS, rows=rows)


if __name__ == "__main__":
    main()
