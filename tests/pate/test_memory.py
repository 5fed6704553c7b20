"""No fit copies its table: what is held beside it is told in shares of it, which no machine changes."""

import tracemalloc

import numpy as np
import pytest
import torch  # noqa: F401 - what importing it takes is no table
from sklearn.linear_model import LogisticRegression

from skfairdp import FairPATEClassifier, PATEClassifier, PublicData, SFPATEClassifier, SyntheticDataClassifier
from skfairdp.pate import SoftLabelStudent
from tests._tools.inside import ConstantStudent, refuse_large

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
    monkeypatch.setattr(SFPATEClassifier, "_train", lambda self: setattr(self, "student_", ConstantStudent(2)))
    assert peak_of(lambda: model.fit(X, y, sensitive_features=groups)) < 2.5 * X.nbytes


def test_a_student_works_on_one_copy_of_the_rows_it_was_asked_about():
    """Rows and public rows, with a 1 and without, were four."""
    rng, n_rows = np.random.default_rng(0), 10_000
    X, groups = rng.standard_normal((n_rows, 10)), np.arange(n_rows) % 2
    shares = (X[:, 0] + X[:, 1] + groups > 0.5) + 0.1 * rng.standard_normal(n_rows)
    student = SoftLabelStudent(gamma=0.05)
    told = {"noise_std": 0.1, "groups": groups, "bends": True}
    peak = peak_of(lambda: student.fit(X, np.column_stack([1 - shares, shares]), **told))
    assert len(student.coef_) == 30  # with bends
    assert peak < 3 * n_rows * 31 * 8


@pytest.mark.filterwarnings("ignore::skfairdp.exceptions.PrivacyLeakWarning")  # of types
def test_of_private_rows_that_no_learner_is_asked_about_none_is_encoded():
    """The whole table was made ready to draw a few of its rows: four times its size."""
    X = np.random.default_rng(0).standard_normal((200_000, 10))
    y = (X[:, 0] > 0).astype(int)
    model = SyntheticDataClassifier(LogisticRegression(), n_samples=2000, balance=None, classes=[0, 1], random_state=0)
    assert peak_of(lambda: model.fit(X, y)) < 2 * X.nbytes


def test_numbers_are_refused_as_too_large_without_a_copy():
    X = np.ones((N_ROWS, 10))
    assert peak_of(lambda: refuse_large(X, "X of PFLDClassifier holds")) < 0.1 * X.nbytes
    for far in (1e150, -1e150):
        X[-1, -1] = far
        with pytest.raises(ValueError, match="numbers beyond 1e"):
            refuse_large(X, "X of PFLDClassifier holds")
