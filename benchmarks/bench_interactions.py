"""Labels that follow from several columns only together: what synthetic rows keep of them, and what the look costs.

    python benchmarks/bench_interactions.py

Made tables of flags, whose label is the parity of some of them, and public tables, on which nothing should be lost. A
boosted tree learns from rows of the generator with and without interactions, and from the private rows.
"""

import warnings
from collections.abc import Iterator
from typing import Any

import _common as common
import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

from skfairdp import Schema, SyntheticDataClassifier
from skfairdp.datasets import train_private_public_test_split
from skfairdp.generative import MarginalsBackend

#: Rows that teach, columns, and how many of them decide; the share of labels that are turned.
PARITIES = {
    "5 of 10 flags, 20,000 rows": (20_000, 10, 5, 0.0),
    "5 of 10 flags, 20,000 rows, 25 % of the labels turned": (20_000, 10, 5, 0.25),
    "5 of 10 flags, 5,000 rows": (5000, 10, 5, 0.0),
    "5 of 30 flags, 20,000 rows": (20_000, 30, 5, 0.0),
}
SETS = ("adult", "bank", "credit")
NEW_ROWS = 20_000
STRUCTURES = ("tree", "interactions")


def parity(n: int, n_columns: int, k: int, flip: float, seed: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (n + NEW_ROWS, n_columns))
    y = X[:, rng.choice(n_columns, k, replace=False)].sum(axis=1) % 2
    y = np.where(rng.random(len(y)) < flip, 1 - y, y)
    return X[:n], y[:n], X[n:], y[n:], {"classes": [0, 1], "bounds": (0, 1), "dtypes": "int64"}


def public(data: str, seed: int) -> tuple[Any, ...]:
    X, y, groups = common.load_rows(data, seed)
    table = X.assign(label_=np.asarray(y).astype(int), group_=np.asarray(groups).astype(str))
    schema = Schema.from_public(table, label="label_", groups="group_")
    split = train_private_public_test_split(
        table, table["label_"], table["group_"], sizes=[0.70, 0.05, 0.25], random_state=seed
    )
    return split.X, None, split.X_test, np.asarray(split.y_test), {"schema": schema}


def tables(seed: int, quick: bool) -> Iterator[tuple[str, tuple[Any, ...]]]:
    for name, (n, n_columns, k, flip) in PARITIES.items():
        yield name, parity(n, n_columns, k, flip, seed)
    for data in () if quick or common.default_data() != "adult" else SETS:
        yield data, public(data, seed)


def main() -> None:
    parser = common.parser(__doc__ or "", "interactions", seeds=5)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # of tables from which nothing is learned
    found: dict[tuple[str, str], list[float]] = {}
    for seed in common.seeds_of(arguments):
        for name, (X, y, X_new, y_new, public_facts) in tables(seed, arguments.quick):
            for structure in STRUCTURES:
                backend = MarginalsBackend(structure=structure)
                model = SyntheticDataClassifier(epsilon=1.0, backend=backend, random_state=seed, **public_facts)
                scores = model.fit(X, y).predict_proba(X_new)[:, 1]
                found.setdefault((name, structure), []).append(float(roc_auc_score(y_new, scores)))
            if y is not None:
                scores = HistGradientBoostingClassifier(random_state=seed).fit(X, y).predict_proba(X_new)[:, 1]
                found.setdefault((name, "private rows"), []).append(float(roc_auc_score(y_new, scores)))
            print(
                seed, name, {structure: kept[-1] for (one, structure), kept in found.items() if one == name}, flush=True
            )
            if arguments.quick:
                break
    rows = [{"table": n, "structure": s, "auroc": common.summary(kept)} for (n, s), kept in found.items()]
    cells = [[row["table"], row["structure"], common.plus_minus(row["auroc"])] for row in rows]
    common.print_table(["table", "structure", "AUROC"], cells)
    common.save(arguments, epsilon=1.0, new_rows=NEW_ROWS, rows=rows)


if __name__ == "__main__":
    main()
