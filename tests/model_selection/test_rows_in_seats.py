"""What is said of a private row follows from the row and its place: not from rows beside it, nor from the engine."""

import numpy as np
import pandas as pd
import pytest
from fairlearn.postprocessing import ThresholdOptimizer
from fairlearn.reductions import DemographicParity, ExponentiatedGradient
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder
from skorch import NeuralNetClassifier
from torch import nn

from skfairdp import FairDPSGDClassifier
from skfairdp.gradient import mlp
from skfairdp.schema import Category, Number, Schema
from tests._tools.inside import BLOCK, NO_CLASS, known_row_wise, row_wise_predictions

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


class OfTypes(ClassifierMixin, BaseEstimator):
    """Says which types it was given, and what it read of them."""

    def __init__(self, alone):
        self.alone = alone

    @property
    def predicts_rows_alone(self):
        return self.alone

    def predict(self, X):
        types = " ".join(map(str, X.dtypes)) if isinstance(X, pd.DataFrame) else str(X.dtype)
        return np.array([f"{types} {row}" for row in np.asarray(X, dtype=object).tolist()])


COLUMNS = {
    "whole": np.arange(12),
    "short": np.arange(12, dtype=np.int8),
    "nullable": pd.array([*range(11), None], dtype="Int64"),
    "flag": np.arange(12) > 5,
    "real": np.arange(12) / 4,
    "date": [*pd.date_range("2020-01-01", periods=11), pd.NaT],
    "text": [*"abcdefghijk", None],
    "span": pd.to_timedelta(np.arange(12), unit="D"),
}


@pytest.mark.few(4)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("alone", [True, None])
@pytest.mark.parametrize("name", COLUMNS)
def test_a_cell_of_another_type_changes_the_types_of_no_other_row(name, alone):
    """One text makes objects of a column of numbers or dates, one gap makes reals of whole numbers."""
    rows = pd.DataFrame({name: COLUMNS[name], "other": 1.0})
    here = row_wise_predictions(OfTypes(alone), rows, None, places=np.arange(12))
    for value in ("x", None, 0.5, True, pd.Timestamp("2021-05-05"), 10**30):
        changed = rows.astype({name: object})
        changed.at[3, name] = value
        for other in (changed, changed.infer_objects(), changed.convert_dtypes()):
            there = row_wise_predictions(OfTypes(alone), other, None, places=np.arange(12))
            assert np.delete(here, 3).tolist() == np.delete(there, 3).tolist()


def test_where_chunks_end_changes_no_answer():
    whole = row_wise_predictions(Kernel(), ROWS, None, places=np.arange(1300))
    for ends in ([16, 700, 1030], [14, 1024], [1, 1299]):
        parts = np.split(np.arange(1300), ends)
        found = [row_wise_predictions(Kernel(), ROWS[part], None, places=part) for part in parts]
        assert np.concatenate(found).tolist() == whole.tolist()


class Recorder(Kernel):
    """Keeps the rows that it was asked."""

    def __init__(self):
        self.calls = []

    def predict(self, X):
        self.calls.append(np.asarray(X))
        return super().predict(X)


@pytest.mark.parametrize("value", [1e200, np.inf, np.nan])
def test_a_public_row_stands_where_a_row_fails_and_where_there_is_none(value):
    rows, places = ROWS.copy(), np.arange(len(ROWS)) * 2
    rows[5, 1] = value
    model = Recorder()
    row_wise_predictions(model, rows, None, places=places)
    last = [call for call in model.calls if (call[0] == rows[0]).all()][-1]
    assert all(len(call) == BLOCK for call in model.calls) and not last[1::2].any() and not last[10].any()
    assert (np.delete(last[::2], 5, axis=0) == np.delete(rows[: BLOCK // 2], 5, axis=0)).all()


def test_where_no_row_fails_each_is_asked_once():
    model = Recorder()
    row_wise_predictions(model, ROWS, None, places=np.arange(len(ROWS)))
    assert len(model.calls) == 1 + 2  # the public row, and two blocks


class NotZero(Recorder):
    def predict(self, X):
        if not np.asarray(X).any(axis=1).all():
            raise ValueError("a row of zeros")
        return super().predict(X)


def test_where_no_public_row_is_answered_each_row_is_asked_alone():
    model = NotZero()
    found = row_wise_predictions(model, ROWS[:40], None, places=np.arange(40))
    assert [len(call) for call in model.calls] == [1] * 40 and found.tolist() == (ROWS[:40, 0] + 1e3).tolist()


@pytest.mark.few(1)
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


# ------------------------------------------------------------------ predictors of all sorts

JOBS = rng.choice(["clerk", "nurse", "pilot"], size=len(ROWS))
TABLE = pd.DataFrame({"job": JOBS, "floor": rng.integers(0, 4, len(ROWS)), "pay": ROWS[:, 0]})
FLOORS = (TABLE["floor"] > 1).astype(int)
GROUPS = rng.integers(0, 2, len(ROWS))
FLAT = ROWS.astype(np.float32)


def one_hot():
    return make_pipeline(OneHotEncoder(handle_unknown="error"), LogisticRegression())


def optimizer():
    model = LogisticRegression().fit(ROWS, LABELS)
    made = ThresholdOptimizer(estimator=model, constraints="demographic_parity", prefit=True, predict_method="auto")
    return made.fit(ROWS, LABELS, sensitive_features=GROUPS)


def reduction():
    made = ExponentiatedGradient(LogisticRegression(), DemographicParity(), max_iter=3)
    return make_pipeline(made).fit(ROWS, LABELS, exponentiatedgradient__sensitive_features=GROUPS)


class Net(nn.Sequential):
    predicts_rows_alone = True

    def __init__(self):
        super().__init__(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2), nn.Softmax(dim=1))


def skorch_net():
    return NeuralNetClassifier(Net, max_epochs=3, lr=0.1, verbose=0).fit(FLAT, LABELS)


def with_schema():
    """Reads texts by its schema, which lists no cook."""
    schema = Schema(
        {"job": Category(["clerk", "nurse", "pilot"]), "pay": Number(-4, 4), "y": Category([0, 1])}, label="y"
    )
    model = FairDPSGDClassifier(epsilon=50.0, lam=0.0, net=mlp((), max_epochs=5, batch_size=100), schema=schema)
    return model.fit(TABLE.drop(columns="floor").assign(y=LABELS))


PREDICTORS = {
    "one hot": (lambda: one_hot().fit(TABLE[["job", "floor"]], FLOORS), TABLE[["job", "floor"]], ["cook", 9]),
    "one hot of arrays": (
        lambda: one_hot().fit(TABLE[["job", "floor"]].to_numpy(), FLOORS),
        TABLE[["job", "floor"]].to_numpy(),
        ["cook", 9],
    ),
    "one hot of numbers": (
        lambda: one_hot().fit(TABLE[["floor"]].to_numpy() + 1.0, FLOORS), TABLE[["floor"]].to_numpy() + 1.0, [9.0],
    ),
    "threshold optimizer": (optimizer, ROWS, [np.nan] * 3),
    "reduction": (reduction, ROWS, [np.inf] * 3),
    "stratified dummy": (lambda: DummyClassifier(strategy="stratified").fit(ROWS, LABELS), ROWS, [np.nan] * 3),
    "skorch": (skorch_net, FLAT, [np.float32(3e38)] * 3),
    "float32": (lambda: MLPClassifier((4,), max_iter=2).fit(FLAT, LABELS), FLAT, [np.float32(np.inf)] * 3),
    "ours": (with_schema, TABLE[["job", "pay"]], ["cook", 1e300]),
}  # fmt: skip


@pytest.mark.few(3)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PREDICTORS)
def test_one_row_changes_the_answer_of_no_other(name):
    make, rows, bad = PREDICTORS[name]
    fitted, n_rows = make(), 60
    rows = rows[:n_rows].copy()
    groups = GROUPS[:n_rows] if name == "threshold optimizer" else None
    here = row_wise_predictions(fitted, rows, groups, places=np.arange(n_rows))
    if isinstance(rows, pd.DataFrame):
        rows.iloc[7] = bad
    else:
        rows[7] = bad
    there = row_wise_predictions(fitted, rows, groups, places=np.arange(n_rows))
    assert np.delete(here, 7).tolist() == np.delete(there, 7).tolist()
    assert NO_CLASS not in here.tolist() and len(set(np.delete(here, 7).tolist())) == 2


def test_a_step_that_hands_rows_on_is_no_reason_to_ask_row_by_row():
    """Three thousand rows of a network behind such a step took twenty seconds: each had a copy of its own."""
    fitted = LogisticRegression().fit([[0.0], [1.0]], [0, 1])
    assert known_row_wise(make_pipeline(FunctionTransformer(), fitted))
    own = type("Centred", (FunctionTransformer,), {"transform": lambda self, X: X - X.mean(axis=0)})
    assert not known_row_wise(make_pipeline(own(), fitted))
    assert not known_row_wise(make_pipeline(FunctionTransformer(np.abs), fitted))
