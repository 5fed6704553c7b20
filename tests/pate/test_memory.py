"""No fit of PATE copies the private table: what it holds beside it is less than half of it."""

import tracemalloc

import numpy as np
import pytest
import torch  # noqa: F401 - what importing it takes is no table

from skfairdp import FairPATEClassifier, PATEClassifier, PublicData, SFPATEClassifier

N_ROWS, N_FEATURES = 100_000, 40


def peak_of(fit):
    tracemalloc.start()
    try:
        fit()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.few(1)
@pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning")
@pytest.mark.parametrize("make", [PATEClassifier, FairPATEClassifier])
def test_a_fit_holds_no_copy_of_the_table(make):
    rng = np.random.default_rng(0)
    X, groups = rng.standard_normal((N_ROWS, N_FEATURES)), np.arange(600) % 2
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    X_public = PublicData(rng.standard_normal((600, N_FEATURES)), groups if make is FairPATEClassifier else None)
    model = make(classes=[0, 1], random_state=0)
    assert peak_of(lambda: model.fit(X, y, X_public=X_public)) < 0.5 * X.nbytes


@pytest.mark.slow
def test_without_public_rows_a_fit_holds_no_copy_of_the_table():
    """Codes of eight bytes, rows within limits and rows with their groups took three times the table."""
    rng = np.random.default_rng(0)
    n_rows = 3 * N_ROWS  # beside what a student takes, which is the same for any table
    X, groups = rng.standard_normal((n_rows, N_FEATURES)), np.arange(n_rows) % 2
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    model = FairPATEClassifier(delta=1e-6, classes=[0, 1], groups=[0, 1], random_state=0)
    assert peak_of(lambda: model.fit(X, y, sensitive_features=groups)) < 0.75 * X.nbytes


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning")
def test_of_rows_that_are_not_asked_about_no_copy_is_made(monkeypatch):
    monkeypatch.setattr(SFPATEClassifier, "_most_kept", 2000)
    rng = np.random.default_rng(0)
    X, groups = rng.standard_normal((2 * N_ROWS, 20)), rng.integers(2, size=2 * N_ROWS)
    y = (X[:, 0] + groups > 0.5).astype(int)
    model = SFPATEClassifier(delta=1e-6, classes=[0, 1], groups=[0, 1], random_state=0)
    monkeypatch.setattr(SFPATEClassifier, "_learn", lambda self: self)
    assert peak_of(lambda: model.fit(X, y, sensitive_features=groups)) < 2.5 * X.nbytes
