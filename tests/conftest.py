"""Fixtures that several test modules share."""

import os
from types import SimpleNamespace

# Tests run on all cores at once: a second thread inside each of these small tensors costs more than it gives.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pytest
import sklearn

from skfairdp.utils import PublicData


@pytest.fixture
def routing():
    """Metadata routing switched on."""
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def make_rows(n, *, n_classes=2, n_groups=2, seed=0):
    """Features, labels and groups: the class follows two features and, weakly, the group."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    groups = rng.integers(n_groups, size=n)
    score = X[:, 0] + 0.5 * X[:, 1] + 0.6 * (groups - (n_groups - 1) / 2) + 0.3 * rng.normal(size=n)
    X[:, 2] += 2 * groups
    y = np.digitize(score, np.linspace(-1.2, 1.2, n_classes + 1)[1:-1])
    return X, y, groups


@pytest.fixture(scope="session")
def rows():
    """400 private rows and 200 public ones, two classes and two groups. Not to be changed."""
    X, y, groups = make_rows(600)
    return SimpleNamespace(
        X=X[:400],
        y=y[:400],
        groups=groups[:400],
        public=PublicData(X[400:], groups[400:]),
        X_public=X[400:],
        groups_public=groups[400:],
        y_public=y[400:],
    )
