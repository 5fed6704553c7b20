"""The small problem that most tests fit."""

import numpy as np

__all__ = ["make_rows"]


def make_rows(n, *, n_classes=2, n_groups=2, seed=0):
    """Features, labels and groups: the class follows two features and, weakly, the group."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    groups = rng.integers(n_groups, size=n)
    score = X[:, 0] + 0.5 * X[:, 1] + 0.6 * (groups - (n_groups - 1) / 2) + 0.3 * rng.normal(size=n)
    X[:, 2] += 2 * groups
    y = np.digitize(score, np.linspace(-1.2, 1.2, n_classes + 1)[1:-1])
    return X, y, groups
