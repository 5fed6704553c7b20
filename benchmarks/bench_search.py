"""A search of 20 candidates in three folds, with 200 teachers: seconds, releases, and the ε of all of it.

    python benchmarks/bench_search.py --help

The grid is gamma × voting × epsilon: soft votes give every gamma from one release, and all candidates of a fold share
its teachers. To reach: three minutes on two cores. Beside it, two candidates through scikit-learn's GridSearchCV, which
trains the teachers anew for each fit; seconds per candidate.
"""

import time

import _common as common
from sklearn.model_selection import GridSearchCV, KFold

from skfairdp.model_selection import ParetoSearchCV
from skfairdp.pate import FairPATEClassifier
from skfairdp.privacy import PrivacyLedger

BAR = 180.0
GRID = {"gamma": [0.02, 0.05, 0.1, 0.2, None], "voting": ["soft", "confident"], "epsilon": [1.0, 2.0]}
FOLDS = 3
COLUMNS = ("seconds", "seconds_per_candidate", "grid_search_seconds_per_candidate", "epsilon")


def run(data: str, seed: int, n_jobs: int, n_teachers: int, share: float) -> dict[str, float]:
    """One search, refit included, and one candidate through GridSearchCV."""
    split = common.load_split(data, seed, share=share)
    ledger = PrivacyLedger(delta=1e-5)
    model = FairPATEClassifier(n_teachers=n_teachers, classes=[0, 1], random_state=seed, ledger=ledger)
    search = ParetoSearchCV(model, GRID, cv=FOLDS, n_jobs=n_jobs)
    started = time.perf_counter()
    search.fit(split.X, split.y, sensitive_features=split.sensitive_features, X_public=split.public)
    seconds = time.perf_counter() - started
    plain = GridSearchCV(
        model.set_params(ledger=PrivacyLedger()), {"gamma": [0.05, 0.1]}, cv=KFold(FOLDS), n_jobs=n_jobs, refit=False
    )
    started = time.perf_counter()
    plain.fit(split.X, split.y, X_public=split.public)
    per_candidate = (time.perf_counter() - started) / 2
    return {
        "seed": seed,
        "n_private": len(split.y),
        "candidates": len(search.cv_results_["params"]),
        "folds": FOLDS,
        "releases": len(ledger.entries) - 1,
        "seconds": seconds,
        "seconds_per_candidate": seconds / len(search.cv_results_["params"]),
        "grid_search_seconds_per_candidate": per_candidate,
        "epsilon": search.privacy_.epsilon,
        "hypervolume": search.hypervolume_,
    }


def main() -> None:
    parser = common.parser(__doc__, "search", seeds=3)
    parser.add_argument("--data", choices=common.DATA, default=common.default_data())
    parser.add_argument("--teachers", type=int, default=200)
    parser.add_argument("--n-jobs", type=int, default=2)
    arguments = parser.parse_args()
    common.quiet_fairness()
    share, teachers = (0.1, 20) if arguments.quick else (1.0, arguments.teachers)
    rows = [run(arguments.data, seed, arguments.n_jobs, teachers, share) for seed in common.seeds_of(arguments)]
    common.print_table(
        ["seed", "candidates", "releases", "search, s", "s / candidate", "GridSearchCV, s / candidate", "ε of it all"],
        [[r["seed"], r["candidates"], r["releases"], *(f"{r[k]:.2f}" for k in COLUMNS)] for r in rows],
    )
    total = common.summary([row["seconds"] for row in rows])
    print(
        f"a search of {rows[0]['candidates']} candidates in {FOLDS} folds takes {common.plus_minus(total, 1)} s; "
        f"to reach: at most {BAR:g}"
    )
    common.save(
        arguments,
        data=arguments.data,
        teachers=teachers,
        n_jobs=arguments.n_jobs,
        seconds=total,
        to_reach=BAR,
        rows=rows,
    )


if __name__ == "__main__":
    main()
