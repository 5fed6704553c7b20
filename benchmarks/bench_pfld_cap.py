"""What PF-LD loses as it asks 2^17 rows of a larger table for their groups, and estimates the others.

    python benchmarks/bench_pfld_cap.py

A made-up table of 400,000 rows and 10 columns, in which how likely each group is given features and label is known.
Both fits have the same rows and seeds; one asks 2^17 rows for their groups, as it does, the other all. The loss
of an estimate is the log loss of the true groups less that of the true probabilities, in nats a row, on all rows.
"""

import time
from typing import Any, ClassVar

import _common as common
import numpy as np

from skfairdp.lagrangian import GroupModel, PFLDClassifier, mlp

N_ROWS, N_TEST, N_COLUMNS = 400_000, 200_000, 10
LEARNS_FROM = {"some rows": GroupModel.MOST_ROWS, "all rows": None}
FIGURES = ("estimates", "accuracy", "gap")
SHARES = (0.5, 0.05)  # of the second group, where the columns it depends on are 0


class Watched(GroupModel):
    """The usual group model, whose estimates are looked at before they are used."""

    most_rows: ClassVar[int] = GroupModel.MOST_ROWS
    seen: ClassVar[list[np.ndarray]] = []

    def _chosen(self, n_rows: int, seed: int) -> Any:
        self.MOST_ROWS = type(self).most_rows
        return super()._chosen(n_rows, seed)

    def _on_rows(self, *arguments: Any, **rows: Any) -> Any:
        release = super()._on_rows(*arguments, **rows)

        def looked_at(groups: Any, noise: Any) -> dict[str, Any]:
            found = release(groups, noise)
            Watched.seen[:] = [np.asarray(found["membership"])]
            return found

        return looked_at


def rows(n_rows: int, share: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Features, labels, groups, and the probability of the second group given the first two."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, N_COLUMNS))
    prior = _expit(np.log(share / (1 - share)) + X[:, 0] + np.tanh(X[:, 1]) * X[:, 2])
    of_group = [_expit(X[:, 0] + X[:, 3] + 0.5 * X[:, 1] * X[:, 4] - 0.4 * z) for z in (0, 1)]
    groups = (rng.random(n_rows) < prior).astype(np.int64)
    y = (rng.random(n_rows) < np.where(groups == 1, of_group[1], of_group[0])).astype(np.int64)
    likely = [np.where(y == 1, p, 1 - p) for p in of_group]
    return X, y, groups, prior * likely[1] / (prior * likely[1] + (1 - prior) * likely[0])


def _expit(values: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-values))


def log_loss(probability: np.ndarray, groups: np.ndarray) -> float:
    told = np.where(groups == 1, probability, 1 - probability)
    return float(-np.log(np.clip(told, 1e-12, 1)).mean())


def fitted(n_rows: int, share: float, seed: int, most_rows: int, epochs: float) -> dict[str, float]:
    X, y, groups, truth = rows(n_rows, share, 10 * seed)
    X_test, y_test, groups_test, _ = rows(min(n_rows, N_TEST), share, 10 * seed + 1)
    Watched.most_rows = most_rows
    net = mlp(max_epochs=epochs)
    model = PFLDClassifier(
        epsilon=1.0, delta=1e-7, classes=[0, 1], groups=[0, 1], primal=Watched(), net=net, random_state=seed,
        dual_steps=10,
    )  # fmt: skip
    begun = time.perf_counter()
    model.fit(X, y, sensitive_features=groups)
    seconds, answers = time.perf_counter() - begun, model.predict(X_test)
    return {
        "estimates": log_loss(Watched.seen[0][:, 1], groups) - log_loss(truth, groups),
        "accuracy": float((answers == y_test).mean()),
        "second_group": float(groups.mean()),
        "gap": float(abs(answers[groups_test == 0].mean() - answers[groups_test == 1].mean())),
        "seconds": seconds,
    }


def main() -> None:
    parser = common.parser(__doc__, "pfld_cap", seeds=4, first_seed=300)
    parser.add_argument("--shrink", type=int, default=1, help="divides the rows of the table and those learnt from")
    parser.add_argument("--epochs", type=float, default=0.1, help="enough for the network, which has few columns")
    arguments = parser.parse_args()
    common.quiet_fairness()
    shrink = 1000 if arguments.quick else arguments.shrink
    n_rows = N_ROWS // shrink
    found: list[dict[str, Any]] = []
    for seed in common.seeds_of(arguments):
        for share in SHARES:
            for learns_from, most in LEARNS_FROM.items():
                most_rows = n_rows if most is None else most // shrink
                figures = fitted(n_rows, share, seed, most_rows, arguments.epochs)
                found.append({"share": share, "seed": seed, "learns_from": learns_from, **figures})
                print(found[-1], flush=True)
        results = [of_share(found, share) for share in SHARES]  # so far: a run that is stopped keeps its seeds
        common.save(
            arguments,
            n_rows=n_rows,
            learns_from=GroupModel.MOST_ROWS // shrink,
            epochs=arguments.epochs,
            results=results,
            fits=found,
        )
    headers = ["share", "learns from", *FIGURES]
    shown = [
        [f"{entry['share']:g}", who, *(common.plus_minus(entry[who][figure], 4) for figure in FIGURES)]
        for entry in results
        for who in (*LEARNS_FROM, "difference")
    ]
    common.print_table(headers, shown)


def of_share(found: list[dict[str, Any]], share: float) -> dict[str, Any]:
    """Means with standard errors of both, and of their difference seed by seed."""
    fits = [{f["seed"]: f for f in found if (f["share"], f["learns_from"]) == (share, who)} for who in LEARNS_FROM]
    few, every = fits
    entry: dict[str, Any] = {"share": share}
    for who, some in zip(LEARNS_FROM, fits, strict=True):
        entry[who] = {figure: common.summary([f[figure] for f in some.values()]) for figure in FIGURES}
    entry["difference"] = {
        figure: common.summary([few[seed][figure] - every[seed][figure] for seed in few]) for figure in FIGURES
    }
    return entry


if __name__ == "__main__":
    main()
