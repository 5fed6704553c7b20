"""What each method reaches without public rows, beside the same method with 5 % public rows, at the same total ε.

    python benchmarks/bench_no_public_rows.py                     # four data sets, ε = 1 and 3, five seeds
    python benchmarks/bench_no_public_rows.py --data bank --seeds 1

70 % of the rows are private in both cases, 5 % public or not used at all, 25 % test rows, which no ε covers. A method
reads the raw table by a schema: its ranges and values are those of the published data set, as its code book has
them. δ = 1e-5, one record replaced (DP-SGD: by a null record). Interrupted, it goes on where it stopped: what is in the
output file already is not measured again, unless the package has changed since.
"""

import json
import time
import warnings
from argparse import Namespace
from collections.abc import Callable, Iterator
from typing import Any

import _common as common
import numpy as np

SETS = ("adult", "adult-race", "bank", "credit")
EPSILONS = (1.0, 3.0)
GAMMAS = (None, 0.05, 0.02)
FIGURES = ("accuracy", "disparity", "eo_disparity", "seconds")
KEYS = ("data", "epsilon", "method", "gamma", "rows")


def methods(epsilon: float, seed: int, schema: Any, quick: bool) -> Iterator[tuple[str, Any, str, Callable[[], Any]]]:
    """Yield name, γ, which rows ("public", "none", or "both") and what makes the estimator."""
    from fairlearn.reductions import DemographicParity, ExponentiatedGradient
    from sklearn.linear_model import LogisticRegression

    from skfairdp import FairDPSGDClassifier, FairPATEClassifier, SyntheticDataClassifier
    from skfairdp.gradient import mlp

    given = {"epsilon": epsilon, "schema": schema, "random_state": seed}
    for gamma in GAMMAS[-1:] if quick else GAMMAS:
        yield "FairPATE", gamma, "both", lambda gamma=gamma: FairPATEClassifier(gamma=gamma, **given)
        learner = LogisticRegression(max_iter=1000)
        if gamma is not None:
            learner = ExponentiatedGradient(learner, DemographicParity(difference_bound=gamma))
        yield "synthetic rows + LR", gamma, "none", lambda it=learner: SyntheticDataClassifier(it, **given)
    net = {"net": mlp((4,), max_epochs=1)} if quick else {}
    yield "FairDP-SGD", None, "both", lambda: FairDPSGDClassifier(**given, **net)
    if not quick:
        yield "DP-SGD", None, "none", lambda: FairDPSGDClassifier(lam=0, **given, **net)


def points(
    data: str, epsilon: float, seed: int, arguments: Namespace, done: set[tuple[Any, ...]]
) -> Iterator[dict[str, Any]]:
    """Yield the measured points of one split that are not done."""
    from skfairdp import PublicData, Schema
    from skfairdp.datasets import train_private_public_test_split

    X, y, groups = common.load_rows(data, seed)
    table = X.assign(label_=np.asarray(y).astype(int), group_=np.asarray(groups).astype(str))
    schema = Schema.from_public(table, label="label_", groups="group_")
    quick = arguments.quick
    share = 0.1 if quick else 1.0
    split = train_private_public_test_split(
        table, table["label_"], table["group_"], sizes=[share * size for size in (0.70, 0.05, 0.25)], random_state=seed
    )
    for method, gamma, which, make in methods(epsilon, seed, schema, quick):
        if arguments.methods is not None and method not in arguments.methods:
            continue
        for rows in ("public", "none") if which == "both" else (which,):
            key = dict(zip(KEYS, (data, epsilon, method, gamma, rows), strict=True))
            if (*key.values(), seed) in done:
                continue
            given = {} if rows == "none" else {"X_public": PublicData(split.X_public.drop(columns="label_"))}
            started = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # gaps that are not reached: they are in the table
                model = make().fit(split.X, **given)
                predicted = model.predict(split.X_test)
            point = {**key, "seed": seed, "revision": common.revision(), "seconds": time.perf_counter() - started}
            yield point | {"epsilon_certified": model.privacy_.epsilon, **common.measure(predicted, split)}


def measured(arguments: Namespace) -> list[dict[str, Any]]:
    """Points of the package of today in the output file."""
    out = arguments.out or (None if arguments.quick else common.RESULTS / f"{arguments.name}.json")
    if out is None or not out.exists():
        return []
    stored = json.loads(out.read_text(encoding="utf-8")).get("points", [])
    return [point for point in stored if arguments.keep or point["revision"] == common.revision()]


def main() -> None:
    parser = common.parser(__doc__ or "", "no_public_rows", seeds=5, data=True)
    parser.add_argument("--epsilons", type=float, nargs="+", default=list(EPSILONS))
    parser.add_argument("--methods", nargs="+", default=None, help="names of the methods to run (default: all)")
    parser.add_argument("--keep", action="store_true", help="keep points that an earlier revision has measured")
    arguments = parser.parse_args()
    found = measured(arguments)
    sets = [arguments.data] if arguments.data else list(SETS) if common.default_data() == "adult" else ["synthetic"]
    epsilons = arguments.epsilons[:1] if arguments.quick else arguments.epsilons
    for seed in common.seeds_of(arguments):
        for data in sets[:1] if arguments.quick else sets:
            for epsilon in epsilons:
                done = {(*(point[key] for key in KEYS), point["seed"]) for point in found}
                for point in points(data, epsilon, seed, arguments, done):
                    found.append(point)
                    shown = {name: round(point[name], 4) for name in FIGURES}
                    print(seed, *(point[key] for key in KEYS), shown, flush=True)
                    save(arguments, found)
    rows = common.averaged(found, KEYS, FIGURES)
    cells = [
        [*(row[key] for key in KEYS), *(common.plus_minus(row[name]) for name in ("accuracy", "disparity"))]
        for row in rows
    ]
    common.print_table([*KEYS, "accuracy", "gap"], cells)
    save(arguments, found)


def save(arguments: Namespace, found: list[dict[str, Any]]) -> None:
    of_points = ", ".join(sorted({point["revision"] for point in found}))
    common.save(arguments, rows=common.averaged(found, KEYS, FIGURES), points=found, revision=of_points)


if __name__ == "__main__":
    main()
