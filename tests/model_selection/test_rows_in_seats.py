"""What is said of a private row follows from the row and its place: not from rows beside it, nor from the engine."""

import numpy as np
import pandas as pd
import pytest
from fairlearn.reductions import DemographicParity, ExponentiatedGradient
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression

from skfairdp._row_wise import NO_CLASS, row_wise_predictions

rng = np.random.default_rng(0)
ROWS = rng.normal(size=(1300, 3))
LABELS = (ROWS[:, 0] > 0).astype(int)


class Kernel(ClassifierMixin, BaseEstimator):
    """As fast arithmetic does: an answer hangs on the shape of a call and the seat in it. A far row makes it fail."""

    predicts_rows_alone = True

    def predict(self, X):
        X = np.asarray(X, dtype=float)
        if not (np.abs(X) < 1e100).all():
            raise ValueError("too far")
        return X[:, 0] + len(X) * 1e3 + np.arange(len(X))


@pytest.mark.parametrize("value", [1e200, np.inf, np.nan, None, "x"])
@pytest.mark.parametrize("row", [0, 1023, 1299])
@pytest.mark.parametrize("container", [np.asarray, pd.DataFrame])
def test_a_row_that_fails_changes_no_other_answer(container, row, value):
    changed = ROWS.astype(object if value is None or isinstance(value, str) else float)
    changed[row, 1] = value
    places, others = np.arange(1300), np.arange(1300) != row
    here, there = (row_wise_predictions(Kernel(), container(X), None, places=places) for X in (ROWS, changed))
    assert there[row] is NO_CLASS and here[others].tolist() == there[others].tolist()


def test_where_chunks_end_changes_no_answer():
    whole = row_wise_predictions(Kernel(), ROWS, None, places=np.arange(1300))
    for ends in ([16, 700, 1030], [14, 1024], [1, 1299]):
        parts = np.split(np.arange(1300), ends)
        found = [row_wise_predictions(Kernel(), ROWS[part], None, places=part) for part in parts]
        assert np.concatenate(found).tolist() == whole.tolist()


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("kind", ["stratified", "reduction"])
def test_coins_follow_the_place_and_no_other_row(kind):
    if kind == "stratified":
        model, rows = DummyClassifier(strategy="stratified").fit(ROWS, LABELS), ROWS[:200]
    else:
        groups = rng.integers(0, 2, 1300)
        model = ExponentiatedGradient(LogisticRegression(), DemographicParity(), max_iter=5)
        model, rows = model.fit(ROWS, LABELS, sensitive_features=groups), ROWS
    places = np.arange(len(rows))
    changed = rows.copy()
    changed[7] = np.nan
    here, there = (row_wise_predictions(model, X, None, places=places) for X in (rows, changed))
    assert np.delete(here, 7).tolist() == np.delete(there, 7).tolist()
    assert 0.2 < np.mean(here == 1) < 0.8
    assert row_wise_predictions(model, rows, None, places=places).tolist() == here.tolist()
