"""Fixtures that several test modules share."""

import os
from types import SimpleNamespace

# Tests run on all cores at once: a second thread inside each of these small tensors costs more than it gives.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import joblib
import pytest
import sklearn

from tests._tools.layers import leave_for_later
from tests._tools.problems import make_rows


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Before pytest looks at ``-m``, which leaves out what is marked here."""
    leave_for_later(items)


@pytest.fixture
def routing():
    """Metadata routing switched on."""
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.fixture
def two_workers():
    """joblib's worker processes for ``n_jobs=2``: those of an earlier test, or new ones.

    Started before the test, since they keep the folder that they start in, and a test may work in one that goes away.
    """
    joblib.Parallel(n_jobs=2)(joblib.delayed(abs)(-1) for _ in range(2))


@pytest.fixture(scope="session")
def rows():
    """400 private rows and 200 public ones, two classes and two groups. Not to be changed."""
    # Imported here: what the package warns of when it is imported is an error of the test module that does it first.
    from skfairdp._utils import PublicData

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
