"""Accuracy and fairness that FairPATE reaches at a certified ε, for every voting mode, beside models without privacy.

    python benchmarks/bench_utility.py --data adult

70 / 5 / 25 % of the rows are private, public and test; the encoder sees public rows only, the group is not a feature,
δ = 1e-5. Every ε is certified for one private record. All figures are of test rows, which no ε covers.
"""

import argparse
import json
import time
import warnings
from collections.abc import Iterator
from typing import Any

import _common as common
import numpy as np

EPSILONS = (0.5, 1.0, 2.0, 5.0)
GAMMAS = (0.01, 0.02, 0.05, 0.1, None)
SHOWN = (0.05, None)  # gated and ungated in the printed table; all of GAMMAS are in the JSON and the hypervolume
IDP3_GAMMA = 0.05
VOTING = ("soft", "confident", "gnmax")
DELTA = 1e-5
FAIREST = 0.8  # reference point of the hypervolume, in 1 − disparity
FLOOR = {1.0: (0.80, 0.05), 5.0: (0.815, 0.05)}  # Adult by sex: least accuracy and largest gap
CLASSES = (0, 1)


def estimator(voting: str, epsilon: float, gamma: float | None, seed: int) -> Any:
    """Return FairPATE with its defaults: nothing here is tuned."""
    from skfairdp import FairPATEClassifier

    return FairPATEClassifier(
        epsilon=epsilon, delta=DELTA, gamma=gamma, voting=voting, classes=list(CLASSES), random_state=seed
    )


def refused(model: Any, split: Any, gamma: float) -> dict[str, float]:
    """Measure the model behind IDP3, which reads the group of each test row in turn."""
    from sklearn.frozen import FrozenEstimator

    from skfairdp import IDP3

    idp = IDP3(FrozenEstimator(model), gamma=gamma)
    idp.fit(split.X_public, sensitive_features=split.sensitive_features_public)
    predicted = idp.predict(split.X_test, sensitive_features=split.sensitive_features_test)
    return common.measure(predicted, split, idp.reject_label_)


def private_points(split: Any, seed: int, epsilons: tuple[float, ...], votings: tuple[str, ...]) -> Iterator[dict]:
    """Yield the measured points of FairPATE on one split."""
    for epsilon in epsilons:
        for voting in votings:
            released = None
            for gamma in GAMMAS:
                started = time.perf_counter()
                if released is None or voting == "confident":  # its gate acted before each vote: γ needs a new fit
                    model = estimator(voting, epsilon, gamma, seed).fit(split.X, split.y, X_public=split.public)
                    release_seconds = time.perf_counter() - started
                    released, seconds = model, release_seconds
                else:
                    model = released.refit(gamma=gamma)
                    seconds = release_seconds + time.perf_counter() - started
                point = {
                    "method": voting,
                    "epsilon": epsilon,
                    "epsilon_certified": model.privacy_.epsilon,
                    "gamma": gamma,
                    "idp3": None,
                    "answered": model.n_answered_,
                    "queries": model.n_queries_,
                    "teachers": model.n_teachers_,
                    "seconds": seconds,
                }
                yield point | common.measure(model.predict(split.X_test), split)
                if gamma in SHOWN:
                    yield point | {"idp3": IDP3_GAMMA} | refused(model, split, IDP3_GAMMA)


def public_points(split: Any, seed: int) -> Iterator[dict]:
    """Yield what is reached without privacy: the largest class, logistic regression, and fairlearn's reduction."""
    from fairlearn.reductions import DemographicParity, ExponentiatedGradient
    from sklearn.dummy import DummyClassifier
    from sklearn.linear_model import LogisticRegression

    y = np.asarray(split.y)
    regression = LogisticRegression(solver="newton-cholesky")
    fits: list[tuple[str, float | None, Any]] = [
        ("majority class", None, DummyClassifier(strategy="most_frequent")),
        ("logistic regression", None, regression),
        *(
            (
                "exponentiated gradient",
                gamma,
                ExponentiatedGradient(regression, DemographicParity(difference_bound=gamma)),
            )
            for gamma in (0.01, 0.05)
        ),
    ]
    for name, gamma, model in fits:
        started = time.perf_counter()
        if gamma is None:
            model.fit(split.X, y)
            predicted = model.predict(split.X_test)
        else:
            model.fit(split.X, y, sensitive_features=split.sensitive_features)
            predicted = model.predict(split.X_test, random_state=seed)
        yield {
            "method": name,
            "epsilon": None,
            "epsilon_certified": None,
            "gamma": gamma,
            "idp3": None,
            "seconds": time.perf_counter() - started,
            **common.measure(predicted, split),
        }


def memory_of(task: dict[str, Any]) -> dict[str, int]:
    """Fit once; meant for a process of its own."""
    common.quiet_fairness()
    split = common.load_split(task["data"], task["seed"], share=task["share"])
    before = common.peak_memory()
    estimator(task["voting"], 1.0, 0.05, task["seed"]).fit(split.X, split.y, X_public=split.public)
    return {"bytes_before_fit": before, "bytes_peak": common.peak_memory()}


def summarise(points: list[dict]) -> list[dict]:
    """Average over seeds."""
    names = ("accuracy", "disparity", "eo_disparity", "coverage", "seconds", "answered", "queries", "teachers")
    rows = common.averaged(
        points, ("method", "epsilon", "gamma", "idp3"), names, by_seed=("accuracy", "disparity", "coverage")
    )
    return [row | {"largest_disparity": max(row["by_seed"]["disparity"])} for row in rows]


def hypervolumes(points: list[dict], majority: dict[int, float]) -> list[dict]:
    """Volume of {(accuracy, 1 − disparity)} over γ beyond (accuracy of the majority class, 0.8), seed by seed."""
    from skfairdp.model_selection import hypervolume

    cells = list(dict.fromkeys((p["method"], p["epsilon"]) for p in points if p["epsilon"] is not None))
    rows = []
    for method, epsilon in cells:
        volumes = []
        for seed, largest_class in majority.items():
            mine = [
                (p["accuracy"], 1 - p["disparity"])
                for p in points
                if (p["method"], p["epsilon"], p["seed"]) == (method, epsilon, seed) and p["idp3"] is None
            ]
            volumes.append(hypervolume(mine, (largest_class, FAIREST), minimize=False))
        rows.append({"method": method, "epsilon": epsilon, "hypervolume": common.summary(volumes)})
    return rows


def main() -> None:
    parser = common.parser(__doc__, "utility", seeds=5, first_seed=100, data=True)
    parser.add_argument("--epsilons", type=float, nargs="+", default=list(EPSILONS))
    parser.add_argument("--voting", nargs="+", choices=VOTING, default=list(VOTING))
    parser.add_argument("--no-baselines", action="store_true", help="leave out the models without privacy")
    parser.add_argument("--task", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.task:
        print(json.dumps(memory_of(json.loads(arguments.task))))
        return
    common.quiet_fairness()
    warnings.filterwarnings("ignore", module="fairlearn")
    data = arguments.data or common.default_data()
    share = 0.1 if arguments.quick else 1.0
    epsilons = (1.0,) if arguments.quick else tuple(arguments.epsilons)
    votings = tuple(arguments.voting)

    points: list[dict] = []
    majority: dict[int, float] = {}
    for seed in common.seeds_of(arguments):
        split = common.load_split(data, seed, share=share)
        majority[seed] = float(max(np.mean(np.asarray(split.y_test) == label) for label in CLASSES))
        made = list(private_points(split, seed, epsilons, votings))
        if not arguments.no_baselines:
            made += public_points(split, seed)
        points += [{"seed": seed, **point} for point in made]
        common.tell_split(seed, split)
    memory = {
        voting: common.in_new_process(
            __file__, {"data": data, "seed": arguments.first_seed, "share": share, "voting": voting}
        )
        for voting in votings
    }
    table = summarise(points)
    volumes = hypervolumes(points, majority)
    print()
    show(table)
    print()
    common.print_table(
        ["voting", "ε", "hypervolume"],
        [[row["method"], row["epsilon"], common.plus_minus(row["hypervolume"], 4)] for row in volumes],
    )
    print()
    common.print_table(
        ["voting", "MiB before fit", "MiB peak"],
        [[v, f"{m['bytes_before_fit'] / 2**20:.0f}", f"{m['bytes_peak'] / 2**20:.0f}"] for v, m in memory.items()],
    )
    floor = floor_reached(table) if data == "adult" else []
    for line in floor:
        print(
            f"ε={line['epsilon']:g}, soft, γ=0.05: accuracy {line['accuracy']:.3f} (floor {line['accuracy_floor']}), "
            f"gap {line['disparity']:.3f} (at most {line['disparity_bar']}): {'met' if line['met'] else 'NOT met'}"
        )
    common.save(
        arguments,
        name=f"utility_{data}",
        data=data,
        **common.sizes(split),
        delta=DELTA,
        protects="record (replace one record)",
        rows=table,
        hypervolumes=volumes,
        hypervolume_reference={"accuracy": common.summary(list(majority.values())), "fairness": FAIREST},
        memory=memory,
        floor=floor,
    )


def show(table: list[dict]) -> None:
    """Print gated and ungated rows, with and without refusals."""
    common.print_table(
        ["method", "ε certified", "γ", "IDP3 γ", "accuracy", "gap", "EO gap", "coverage", "seconds"],
        [
            [
                row["method"],
                "none" if row["epsilon"] is None else f"{row['epsilon_certified']:.3f}",
                "none" if row["gamma"] is None else f"{row['gamma']:g}",
                "–" if row["idp3"] is None else f"{row['idp3']:g}",
                *(common.plus_minus(row[name]) for name in ("accuracy", "disparity", "eo_disparity", "coverage")),
                common.plus_minus(row["seconds"], 1),
            ]
            for row in table
            if row["gamma"] in SHOWN or row["epsilon"] is None
        ],
    )


def floor_reached(table: list[dict]) -> list[dict]:
    """Compare soft voting with the default γ with what the project asks of itself on Adult by sex."""
    lines = []
    for row in table:
        if row["epsilon"] in FLOOR and (row["method"], row["gamma"], row["idp3"]) == ("soft", 0.05, None):
            least, largest = FLOOR[row["epsilon"]]
            accuracy, disparity = row["accuracy"]["mean"], row["disparity"]["mean"]
            lines.append(
                {
                    "epsilon": row["epsilon"],
                    "accuracy": accuracy,
                    "accuracy_floor": least,
                    "disparity": disparity,
                    "disparity_bar": largest,
                    "met": accuracy >= least and disparity <= largest,
                }
            )
    return lines


if __name__ == "__main__":
    main()
