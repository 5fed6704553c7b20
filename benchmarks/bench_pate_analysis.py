"""Directions of the PATE fairness analysis on every data set: correlations, signs, and the bound above what it bounds.

    python benchmarks/bench_pate_analysis.py

What Tran, Dinh & Fioretto (2021) plot in Figures 2 to 7 and 14 to 16, as figures: model sensitivity and excessive-risk
gap over λ and over the number of teachers, hard beside soft labels, Spearman correlations, and Corollary 1's bound. The
analysis reads raw votes of rows that anyone may see here; nothing of it is private.
"""

from typing import Any

import _common as common
import numpy as np
from scipy.stats import spearmanr

LAMS = (0.1, 0.3, 1.0, 3.0, 10.0)
TEACHERS = (20, 50, 100, 150, 250)
SIGMA, LAM, K = 50.0, 1.0, 150
PUBLIC = 600
DIRECTED = ("sensitivity", "risk_gap", "flipping_probability")


def direction(xs: tuple[float, ...], ys: list[float]) -> float:
    """Spearman correlation of a curve with its parameter: -1 falls all the way, 0 stays."""
    if np.ptp(ys) == 0:
        return 0.0
    return float(spearmanr(xs, ys).statistic)


def analyse(rows: tuple[Any, ...], k: int, lam: float, repeats: int, seed: int) -> Any:
    """One analysis on one split."""
    from skfairdp import PATEClassifier
    from skfairdp.papers import PATEFairnessAnalysis
    from skfairdp.pate import GNMaxVoting

    X, y, X_public, groups, y_public = rows
    model = PATEClassifier(n_teachers=k, voting=GNMaxVoting(sigma=SIGMA), random_state=seed)
    analysis = PATEFairnessAnalysis(model, repeats=repeats, alpha=lam, noise_seed=seed)
    return analysis.analyse(X, y, X_public, groups, y_public=y_public)


def curve(found: list[Any]) -> dict[str, list[float]]:
    """What is plotted over a parameter."""
    return {
        "sensitivity": [f.hard.sensitivity for f in found],
        "bound": [f.sensitivity_bound for f in found],
        "risk_gap": [f.hard.risk_gap for f in found],
        "risk_gap_soft": [f.soft.risk_gap for f in found],
        "sensitivity_soft": [f.soft.sensitivity for f in found],
        "accuracy": [f.hard.accuracy for f in found],
        "accuracy_soft": [f.soft.accuracy for f in found],
        "flipping_probability": [float(f.flipping_probability.mean()) for f in found],
    }


def mean_of(curves: list[dict[str, list[float]]]) -> dict[str, list[float]]:
    return {name: np.mean([c[name] for c in curves], axis=0).tolist() for name in curves[0]}


def main() -> None:
    parser = common.parser(__doc__, "pate_analysis", seeds=5)
    parser.add_argument("--data", nargs="+", choices=common.DATA, default=None, help="default: those with a file")
    parser.add_argument("--repeats", type=int, default=30)
    arguments = parser.parse_args()
    chosen = arguments.data or (
        ["synthetic"] if common.default_data() == "synthetic" else ["credit", "adult-race", "bank", "parkinsons"]
    )
    lams, teachers = (LAMS[::4], (20, 40)) if arguments.quick else (LAMS, TEACHERS)
    repeats = 3 if arguments.quick else arguments.repeats
    rows = []
    for data in chosen[:1] if arguments.quick else chosen:
        by_lam, by_k, correlations, above = [], [], [], []
        for seed in common.seeds_of(arguments):
            split = common.load_split(data, seed, share=0.1 if arguments.quick else 1.0)
            given = (
                split.X,
                split.y,
                np.asarray(split.X_test, dtype=float)[:PUBLIC],
                split.sensitive_features_test[:PUBLIC],
                np.asarray(split.y_test)[:PUBLIC],
            )
            k = min(K, len(split.y) // 20)
            over_lam = [analyse(given, k, lam, repeats, seed) for lam in lams]
            over_k = [analyse(given, k, LAM, repeats, seed) for k in teachers]
            above += [f.sensitivity_bound / f.hard.sensitivity for f in [*over_lam, *over_k]]
            middle = over_lam[len(lams) // 2].correlations
            correlations.append({" ~ ".join(pair): rank for pair, rank in middle.items()})
            by_lam.append(curve(over_lam))
            by_k.append(curve(over_k))
        rows.append(
            {
                "data": data,
                "lams": list(lams),
                "teachers": list(teachers),
                "over_lam": mean_of(by_lam),
                "over_k": mean_of(by_k),
                "correlations": {name: common.summary([c[name] for c in correlations]) for name in correlations[0]},
                "directions": {
                    over: {what: common.summary([direction(tuple(xs), c[what]) for c in curves]) for what in DIRECTED}
                    for over, xs, curves in (("lam", lams, by_lam), ("k", teachers, by_k))
                },
                "soft_over_hard": {
                    over: {
                        what: common.summary([np.mean(c[f"{what}_soft"]) / np.mean(c[what]) for c in curves])
                        for what in ("sensitivity", "risk_gap")
                    }
                    for over, curves in (("lam", by_lam), ("k", by_k))
                },
                "least_bound_over_measured": min(above),
            }
        )
        row = rows[-1]
        common.print_table(
            ["data", "over", "sensitivity", "risk gap", "accuracy", "flips", "soft/hard sensitivity", "soft/hard gap"],
            [
                [
                    data,
                    name,
                    *(
                        f"{direction(xs, c[what]):+.2f}"
                        for what in ("sensitivity", "risk_gap", "accuracy", "flipping_probability")
                    ),
                    f"{np.mean(c['sensitivity_soft']) / np.mean(c['sensitivity']):.2f}",
                    f"{np.mean(c['risk_gap_soft']) / np.mean(c['risk_gap']):.2f}",
                ]
                for name, xs, c in (("λ", lams, row["over_lam"]), ("k", teachers, row["over_k"]))
            ],
        )
        means = {name: round(found["mean"], 2) for name, found in row["correlations"].items()}
        print(
            f"{data}: correlations {means}; the bound is at least {min(above):.1f} times the measured sensitivity",
            flush=True,
        )
        common.save(  # after each data set, so that a run that is cut off leaves what it has
            arguments, repeats=repeats, sigma=SIGMA, lam=LAM, n_teachers=K, n_public=PUBLIC, rows=rows
        )


if __name__ == "__main__":
    main()
