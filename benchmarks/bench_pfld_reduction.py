"""PF-LD beside a one-dimensional reduction on debiased groups: CPU seconds, accuracy and gap, on the same splits.

    python benchmarks/bench_pfld_reduction.py

The reduction is what is quickest for two groups: randomised response once, read without bias; then logistic regressions
of rows weighted by what their label brings and a multiplier costs, and a bisection over that multiplier until the
estimated gap is .002 (at most eleven of them). PF-LD has its defaults. ε = 1, δ = 1e-5, demographic parity; ε protects
the group of one training row. Seconds are those of this process, so that others on the machine do not count.
"""

import time
import warnings
from typing import Any

import _common as common
import numpy as np

EPSILON = 1.0
ENOUGH, MOST = 0.002, 11
OURS, REDUCTION = "PF-LD", "reduction on debiased groups"


class Reduction:
    """Cost-sensitive logistic regressions along one multiplier, on groups released by randomised response."""

    def __init__(self, groups: list[Any]) -> None:
        self.groups = groups

    def fit(self, X: Any, y: Any, sensitive_features: Any) -> "Reduction":
        from skfairdp.baselines import GroupRandomizer

        randomizer = GroupRandomizer(epsilon=EPSILON, groups=self.groups)
        weights = randomizer.weights(randomizer.release(sensitive_features))
        weights = weights / weights.sum(0)
        pull = (weights[:, 1] - weights[:, 0]) * len(y)
        self.center, self.scale = X.mean(0), np.where(X.std(0) > 0, X.std(0), 1.0)
        rows = (X - self.center) / self.scale
        self.model, gap = self._at(0.0, rows, y, pull)
        best, low, high = abs(gap), 0.0, 2.0 * np.sign(gap)
        for _ in range(MOST - 1):
            if best <= ENOUGH:
                break
            middle = (low + high) / 2
            model, left = self._at(middle, rows, y, pull)
            low, high = (middle, high) if left * gap > 0 else (low, middle)
            if abs(left) < best:
                self.model, best = model, abs(left)
        return self

    def _at(self, multiplier: float, rows: Any, y: Any, pull: Any) -> tuple[Any, float]:
        """The model at a multiplier, and its gap by the released groups."""
        from sklearn.linear_model import LogisticRegression

        gain = 2 * y - 1 - multiplier * pull
        model = LogisticRegression().fit(rows, gain > 0, sample_weight=np.abs(gain))
        return model, float(np.mean(model.predict(rows) * pull))

    def predict(self, X: Any) -> Any:
        return self.model.predict((X - self.center) / self.scale).astype(int)


def measured(method: str, split: Any, seed: int) -> dict[str, float]:
    """Fit once; CPU seconds, and what comes of it."""
    from skfairdp import PFLDClassifier

    groups = sorted(set(split.sensitive_features))
    model: Any = Reduction(groups)
    if method == OURS:
        model = PFLDClassifier(epsilon=EPSILON, groups=groups, random_state=seed)
    X, y = np.asarray(split.X, dtype=float), np.asarray(split.y, dtype=np.int64)
    started = time.process_time()
    model.fit(X, y, sensitive_features=split.sensitive_features)
    seconds = time.process_time() - started
    found = common.measure(model.predict(np.asarray(split.X_test, dtype=float)), split)
    return {"seconds": seconds, "accuracy": found["accuracy"], "gap": found["disparity"]}


def main() -> None:
    parser = common.parser(__doc__, "pfld_reduction", seeds=3, first_seed=300)
    parser.add_argument("--data", nargs="+", choices=common.DATA, default=None, help="default: those with a file")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    there = common.default_data() != "synthetic"
    chosen = arguments.data or ([name for name in common.DATA if name != "synthetic"] if there else ["synthetic"])
    measured(OURS, common.load_split("synthetic", 0, share=0.01), 0)  # what is loaded once is not counted
    rows = []
    for data in chosen[:1] if arguments.quick else chosen:
        pairs: list[dict[str, dict[str, float]]] = []
        for seed in common.seeds_of(arguments):
            split = common.load_split(data, seed, share=0.05 if arguments.quick else 1.0)
            pairs.append({method: measured(method, split, seed) for method in (OURS, REDUCTION)})
        ahead = {
            name: common.summary([pair[OURS][name] - pair[REDUCTION][name] for pair in pairs])
            for name in ("accuracy", "gap")
        }
        rows.append(
            {
                "data": data,
                "n_rows": len(split.y),
                "n_features": split.X.shape[1],
                **{
                    method: {name: common.summary([pair[method][name] for pair in pairs]) for name in pairs[0][method]}
                    for method in (OURS, REDUCTION)
                },
                "difference": ahead,
                "ratio": float(np.median([pair[OURS]["seconds"] / pair[REDUCTION]["seconds"] for pair in pairs])),
            }
        )
        if len(rows) == 1:
            print(f"{'data':14} {'method':30} {'seconds':>8} {'accuracy':>9} {'gap':>6}")
        for method in (OURS, REDUCTION):
            seconds, accuracy, gap = (rows[-1][method][name]["mean"] for name in ("seconds", "accuracy", "gap"))
            print(f"{rows[-1]['data']:14} {method:30} {seconds:8.2f} {accuracy:9.3f} {gap:6.3f}", flush=True)
        common.save(arguments, epsilon=EPSILON, to_reach={"ratio": 5.0}, rows=rows)


if __name__ == "__main__":
    main()
