"""Graphs of ONNX predict what the models predict, and what has none says so."""

import json
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch import nn

from skfairdp import IDP3, FairDPSGDClassifier, LagrangianClassifier, PATEClassifier, SyntheticDataClassifier
from skfairdp.export import to_onnx
from skfairdp.lagrangian import cnn
from skfairdp.schema import Boolean, Category, Date, Number, Schema, SchemaEncoder
from tests._tools.catalogue import CATALOGUE, by_name, make_rows

pytestmark = [
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.PrivacyLeakWarning"),
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning"),
]
R = make_rows()
SCHEMA = Schema(
    {
        "amount": Number(-1.3, 7.7),
        "count": Number(0, 10, step=3, missing=True),
        "town": Category(["Athens", "Bergen"], missing=True),
        "kind": Category(["a", 1, "other"], others="other"),
        "open": Boolean(),
        "maybe": Boolean(missing=True),
        "seen": Date("2020-01-01", "2021-01-31", missing=True),
        "income": Category([0, 1]),
    },
    label="income",
)
RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {
        "amount": RNG.normal(size=400, scale=5),
        "count": np.where(RNG.random(400) < 0.2, np.nan, RNG.uniform(-5, 15, 400)),
        "town": RNG.choice(np.array(["Bergen", "Rome", None], dtype=object), 400),
        "kind": RNG.choice(np.array(["a", 1, "z", None], dtype=object), 400),
        "open": RNG.choice(np.array([True, False, None], dtype=object), 400),
        "maybe": RNG.choice(np.array(["yes", "no", "?"], dtype=object), 400),
        "seen": RNG.choice(pd.to_datetime(["2020-01-03", "1999-01-01", None, "2030-01-01"]), 400),
        "income": RNG.integers(2, size=400),
    }
)


@pytest.fixture
def exported():
    """The graph of a model and what it answers to rows."""
    for needed in ("onnxscript", "onnxruntime"):
        pytest.importorskip(needed, reason=f"{needed} is not installed: pip install skfairdp[export] onnxruntime")

    def through(model):
        graph = to_onnx(model)
        session = sys.modules["onnxruntime"].InferenceSession(graph.SerializeToString())
        return graph, lambda X: session.run(None, {"X": np.asarray(X, dtype=np.float64)})[0]

    return through


def numbers(schema, table):
    """What a graph takes."""
    return table if schema is None else np.column_stack([schema.numbers(table)[name] for name in schema.features])


FAST = {"PATE-own-rows-3": 1e-9, "FairDPSGD-plain": 1e-6, "FairDPSGD-additive-raw": 1e-9, "SyntheticData": 1e-9,
        "FairPATE-constrained-own-rows": 1e-9}  # fmt: skip
NONE = (
    "PFGuard", "GroupRandomizer", "ParityFilter", "Schema", "IDP3", "Calibrator-threshold", "Calibrator-group",
    "Calibrator-odds", "Calibrator-several", "PrivateThresholds", "PrivateBarycenter", "FairDPSGDRegressor-moved",
    "SyntheticData-amounts", "SFPATE-some-kept",
)  # fmt: skip
REST = [
    entry.name
    for entry in CATALOGUE
    if entry.name not in FAST and not entry.name.startswith(NONE)
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "within"), [*FAST.items(), *(pytest.param(name, 1e-6, marks=pytest.mark.slow) for name in REST)]
)
def test_a_graph_predicts_what_the_model_does(name, within, exported):
    entry = by_name(name)
    rows = entry.rows()
    model = entry.fit(entry.make(), rows)
    graph, answer = exported(model)
    (output,) = graph.graph.output
    tables = [X for X in (rows.X, rows.X_public, rows.X_test) if X is not None]
    if isinstance(rows.X, np.ndarray):
        tables += [scale * rows.X for scale in (-1e3, -3, -1, 0, 1e-9, 1.5, 1e9)]
    for X in tables:
        # Networks are of single precision: terms of thousands that cancel leave about 1e-4 of a sum to its order.
        far = isinstance(X, np.ndarray) and X.dtype.kind == "f" and np.abs(X).max() > 100
        expected = model.predict_proba(X) if output.name == "probabilities" else model.predict(X)
        inner = getattr(model, "best_estimator_", model)
        found = answer(numbers(getattr(getattr(inner, "encoder_", inner), "schema", None), X))
        assert found.shape == expected.shape and found.dtype == np.float64
        assert np.abs(found - expected).max() <= (1e-4 if far and within == 1e-6 else within)


def test_a_schema_encodes_what_it_read_as_its_encoder_does(exported):
    encoder = SchemaEncoder(SCHEMA)
    X = numbers(SCHEMA, TABLE)
    assert np.isnan(X).any(axis=0).sum() == 5
    graph, answer = exported(encoder)
    np.testing.assert_allclose(answer(X), encoder.transform(TABLE), rtol=0, atol=1e-12)
    assert Schema.from_dict(json.loads({one.key: one.value for one in graph.metadata_props}["schema"])) == SCHEMA
    model = FairDPSGDClassifier(schema=SCHEMA, lam=0.0, epsilon=8.0, random_state=0).fit(TABLE)
    assert np.abs(exported(model)[1](X) - model.predict_proba(TABLE)).max() <= 1e-6


def test_a_graph_does_not_tell_where_the_code_that_made_it_lies(exported):
    """Found: paths of the machine and lines of code, those of a user's own net as well, beside each of its nodes."""
    graph, _ = exported(SchemaEncoder(SCHEMA))
    assert not any(told in graph.SerializeToString() for told in (b".py", b"site-packages", b"line "))


def test_columns_of_groups_are_no_inputs(exported):
    X = pd.DataFrame(np.column_stack([R.X, R.groups]), columns=list("abcdg"))
    model = FairDPSGDClassifier(lam=0.0, classes=[0, 1], sensitive_columns=["g"], random_state=0).fit(X, R.y)
    assert np.abs(exported(model)[1](R.X) - model.predict_proba(X)).max() <= 1e-6


def test_the_classes_are_told(exported):
    model = PATEClassifier(n_teachers=10, classes=["no", "yes"], random_state=0)
    graph, _ = exported(model.fit(R.X, np.array(["no", "yes"])[R.y], X_public=R.X_public))
    assert {one.key: one.value for one in graph.metadata_props} == {"classes": '["no", "yes"]'}


@pytest.mark.slow
def test_a_graph_of_images_takes_any_number_of_rows(exported):
    X = np.random.default_rng(0).normal(size=(120, 36))
    y = (X[:, :18].sum(axis=1) > 0).astype(int)
    model = LagrangianClassifier(net=cnn((1, 6, 6), max_epochs=2), random_state=0).fit(X, y, sensitive_features=y)
    _, answer = exported(model)
    for n in (1, 7, 120):
        np.testing.assert_allclose(answer(X[:n]), model.predict_proba(X[:n]), rtol=0, atol=1e-6)


class Reading(nn.Linear):
    def forward(self, rows):
        return super().forward(rows) * (1.0 if rows.sum().item() else 2.0)


class Counting(nn.Linear):
    def forward(self, rows):
        return super().forward(rows) + torch.zeros(len(rows), 1)


def test_what_has_no_graph_says_so(exported):
    model = LagrangianClassifier(net=Reading(4, 2), random_state=0).fit(R.X, R.y, sensitive_features=R.groups)
    with pytest.raises(ValueError, match=r"torch\.onnx has no graph of this network"):
        to_onnx(model)
    model = LagrangianClassifier(net=Counting(4, 2), random_state=0).fit(R.X, R.y, sensitive_features=R.groups)
    with pytest.raises(ValueError, match="one number of rows only"):
        to_onnx(model)
    with pytest.raises(ValueError, match=r"no graph of IDP3: an answer depends on the answers before it"):
        to_onnx(IDP3(gamma=None).fit(None, [0, 1], sensitive_features=["a", "b"]))


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("PrivateThresholds", "PrivateThresholds: a keyed hash of each row decides"),
        ("Calibrator-threshold", "FairnessCalibrator: thresholds give classes without probabilities"),
        ("PrivateBarycenter", "PrivateBarycenter: moved amounts jump"),
        ("FairDPSGDRegressor-moved", "FairDPSGDRegressor: moved amounts jump"),
        ("SyntheticData-amounts", "SyntheticDataRegressor[.] It exports"),
    ],
)
def test_what_has_no_graph_says_why(name, why, exported):
    entry = by_name(name)
    with pytest.raises(ValueError, match=f"to_onnx has no graph of {why}"):
        to_onnx(entry.fit(entry.make(), entry.rows()))


def test_what_an_interaction_says_has_no_graph(exported):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (6000, 5))
    model = SyntheticDataClassifier(LogisticRegression(), epsilon=4.0, classes=[0, 1], bounds=(0, 1), dtypes="int64")
    with pytest.raises(ValueError, match=r"no graph of the interaction .*structure='tree'"):
        to_onnx(model.fit(X, X[:, :3].sum(axis=1) % 2))


def test_without_onnx_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install skfairdp\[export\]"):
        to_onnx(SchemaEncoder(SCHEMA))
