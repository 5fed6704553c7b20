"""PF-LD's Theorems 4 and 5 and its Figure 4: what clipping and noise do to one gradient and one violation.

    python benchmarks/bench_pfld_theorems.py

A logistic regression of all rows is the model; h is its score, and demographic parity the constraint, at λ = 1 for each
group. Measured are the expected error of the noisy gradient of a batch and of the noisy violation of all rows, beside
the bounds of the paper, with the sensitivities that the paper states (Theorems 1 and 2), and how many gradients of each
group exceed the clipping bound. Nothing of it is private.
"""

from typing import Any

import _common as common
import numpy as np

SETS = ("adult", "bank", "credit", "parkinsons")
CLIPS = (0.01, 0.03, 0.1, 0.3, 1.0)
SIGMA, BATCH, REPEATS = 1.0, 512, 200
FIGURES = ("gradient_error", "gradient_bound", "violation_error", "violation_bound", "exceed_small", "exceed_large")


def scores_and_gradients(split: Any) -> tuple[np.ndarray, np.ndarray]:
    """Scores of a logistic regression, and their gradients with respect to its weights."""
    from sklearn.linear_model import LogisticRegression

    X, y = np.asarray(split.X, dtype=float), np.asarray(split.y).astype(int)
    scores = LogisticRegression(max_iter=500).fit(X, y).predict_proba(X)[:, 1]
    rows = np.column_stack([X, np.ones(len(X))])
    return scores, (scores * (1 - scores))[:, None] * rows


def clipped(values: np.ndarray, bound: float) -> np.ndarray:
    """Each row (or number) shrunk to this norm."""
    norms = np.abs(values) if values.ndim == 1 else np.linalg.norm(values, axis=1, keepdims=True)
    return values / np.maximum(1.0, norms / bound)


def point(split: Any, clip: float, seed: int) -> dict[str, float]:
    """Errors and bounds at one clipping bound."""
    rng = np.random.default_rng(seed)
    scores, gradients = scores_and_gradients(split)
    groups = np.asarray(split.sensitive_features)
    names = sorted(set(groups), key=lambda name: int(np.sum(groups == name)))
    norms = np.linalg.norm(gradients, axis=1)
    errors, bounds = [], []
    for _ in range(REPEATS):
        batch = rng.choice(len(groups), BATCH, replace=False)
        members = [batch[groups[batch] == name] for name in names]
        smallest = min(map(len, members))
        if smallest < 2:
            continue
        sensitivity = 2 * clip / (smallest - 1)
        error = sum(gradients[own].mean(axis=0) - clipped(gradients[own], clip).mean(axis=0) for own in members)
        noise = rng.normal(0, SIGMA * sensitivity, gradients.shape[1])
        errors.append(float(np.linalg.norm(error + noise)))
        lost = sum(float(np.maximum(0, norms[own] - clip).mean()) for own in members)
        bounds.append(2 * np.sqrt(gradients.shape[1]) * SIGMA * clip / (smallest - 1) + lost)
    own = groups == names[0]
    least = min(int(np.sum(groups == name)) for name in names)
    noise = rng.normal(0, SIGMA * np.sqrt(2) * clip / (least - 1), REPEATS)
    moved = scores[own].mean() - clipped(scores[own], clip).mean()
    lost = float(np.maximum(0, scores[own] - clip).mean())
    return {
        "gradient_error": float(np.mean(errors)),
        "gradient_bound": float(np.mean(bounds)),
        "violation_error": float(np.mean(np.abs(moved + noise))),
        "violation_bound": float(np.sqrt(2) * clip * SIGMA / (least - 1) + lost),
        "exceed_small": float(np.mean(norms[own] > clip)),
        "exceed_large": float(np.mean(norms[~own] > clip)),
    }


def main() -> None:
    parser = common.parser(__doc__, "pfld_theorems", seeds=3, first_seed=100)
    arguments = parser.parse_args()
    real = common.default_data() == "adult"
    found = []
    for data in SETS if real and not arguments.quick else ("adult" if real else "synthetic",):
        for seed in common.seeds_of(arguments):
            split = common.load_split(data, seed, share=0.1 if arguments.quick else 1.0)
            found += [
                {"data": data, "clip": clip, "seed": seed, "epsilon_certified": None} | point(split, clip, seed)
                for clip in CLIPS
            ]
    rows = common.averaged(found, ("data", "clip"), FIGURES)
    common.print_table(
        ["data", "clip", *FIGURES],
        [[row["data"], row["clip"], *(common.plus_minus(row[name], 5) for name in FIGURES)] for row in rows],
    )
    common.save(arguments, sigma=SIGMA, batch=BATCH, rows=rows)


if __name__ == "__main__":
    main()
