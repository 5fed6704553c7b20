"""A case study on Adult as its file comes: a schema for part of ε, one fair model, its figures, its statement checked.

    python benchmarks/bench_case_study.py

What the page "A case study" of the guide shows. The first three quarters of the file are the private rows, the rest is
kept aside. Noise is new in each repetition. Without the file, and with ``--quick``, people are made up.
"""

import tempfile
import warnings
from pathlib import Path
from typing import Any

import _common as common
import pandas as pd

from skfairdp import FairDPSGDClassifier, PrivacyLedger, Schema
from skfairdp.datasets import data_file, make_raw_table
from skfairdp.metrics import demographic_disparity
from skfairdp.privacy import verify_file
from skfairdp.schema import Category, Number

BUDGET, DELTA = 2.0, 1e-5
EPSILON_SCHEMA, EPSILON, GAMMA, DELTA_EACH = 0.3, 1.0, 0.05, 1e-6
#: Of the columns of Adult, what its documentation says; the values of all others are released. None leaves one out.
KNOWN = {
    "age": Number(17, 90, step=1),
    "education-num": Number(1, 16, step=1),
    "hours-per-week": Number(1, 99, step=1),
    "capital-gain": Number(0, 100_000),
    "capital-loss": Number(0, 10_000),
    "sex": Category(["Female", "Male"]),
    "class": Category(["<=50K", ">50K"]),
    **dict.fromkeys(["fnlwgt", "education", "split"]),
}


def table(quick: bool) -> tuple[str, pd.DataFrame, str, dict[str, Any]]:
    """Return what the rows are, the rows, the column of the label, and what is known of columns."""
    path = None if quick else data_file("adult")
    if path is None:
        return "made-up people", make_raw_table(random_state=0), "income", {"sex": Category(["Female", "Male"])}
    return "Adult", pd.read_csv(path), "class", KNOWN


def study(rows: pd.DataFrame, label: str, known: dict[str, Any], seed: int) -> dict[str, Any]:
    """Release a schema, fit, and measure."""
    private, aside = rows.iloc[: len(rows) * 3 // 4], rows.iloc[len(rows) * 3 // 4 :]
    ledger = PrivacyLedger(epsilon=BUDGET, delta=DELTA)
    schema = Schema.release(
        private, label=label, groups="sex", epsilon=EPSILON_SCHEMA, delta=DELTA_EACH, ledger=ledger, known=known
    )
    shared = {"epsilon": EPSILON, "delta": DELTA_EACH, "schema": schema, "random_state": seed}
    model = FairDPSGDClassifier(gamma=GAMMA, ledger=ledger, **shared).fit(private)
    free = FairDPSGDClassifier(lam=0, **shared).fit(private)  # for the comparison on the page; not in the ledger
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "statement.json").write_text(model.privacy_statement().to_json(), encoding="utf-8")
        checks = verify_file(Path(folder) / "statement.json")
    gaps = {
        name: demographic_disparity(None, labels, sensitive_features=aside["sex"])
        for name, labels in (
            ("gap_labels", aside[label]),
            ("gap_free", free.predict(aside)),
            ("gap_aside", model.predict(aside)),
        )
    }
    return gaps | {
        "n_private": len(private),
        "n_aside": len(aside),
        "n_columns": len(schema.columns) - 2,
        "accuracy": model.score(aside),
        "accuracy_free": free.score(aside),
        "gap": model.gap_,
        "gap_bound": model.gap_bound_,
        "holds": model.constraint_holds_,
        "epsilon_certified": model.privacy_.epsilon,
        "epsilon_ledger": ledger.spent().epsilon,
        "n_entries": len(ledger.entries),
        "n_claims": len(checks),
        "n_claims_that_hold": sum(check.holds for check in checks),
    }


FIGURES = ("accuracy", "accuracy_free", "gap_labels", "gap_free", "gap_aside", "gap", "gap_bound")


def main() -> None:
    arguments = common.parser(__doc__, "case_study", seeds=5).parse_args()
    data, rows, label, known = table(arguments.quick)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        points = [study(rows, label, known, seed) for seed in common.seeds_of(arguments)]
    figures = {name: common.summary([float(point[name]) for point in points]) for name in FIGURES}
    common.print_table(["figure", "mean ± error"], [[name, common.plus_minus(one)] for name, one in figures.items()])
    same = {name: points[0][name] for name in ("n_private", "n_aside", "n_entries", "n_claims", "n_claims_that_hold")}
    most = {name: max(point[name] for point in points) for name in ("epsilon_certified", "epsilon_ledger", "n_columns")}
    print(" ".join(f"{name}={value}" for name, value in (same | most).items()))
    common.save(
        arguments,
        data=data,
        n_rows=len(rows),
        settings={"budget": BUDGET, "delta": DELTA, "epsilon_schema": EPSILON_SCHEMA, "epsilon": EPSILON,
                  "gamma": GAMMA},
        holds=[point["holds"] for point in points],
        **figures,
        **same,
        **most,
    )  # fmt: skip


if __name__ == "__main__":
    main()
