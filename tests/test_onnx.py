"""Graphs of ONNX predict what the models predict, and what has none says so."""

import doctest
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from skfairdp import IDP3, LagrangianClassifier, PATEClassifier
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
        "whole": Number(0, 5, step=1),
        "town": Category(["Athens", "Bergen"], missing=True),
        "kind": Category(["a", "b", "other"], others="other"),
        "level": Category([1, 2.5, 4]),
        "open": Boolean(),
        "maybe": Boolean(missing=True),
        "day": Date("2020-01-01", "2020-01-31"),
        "seen": Date("2020-01-01", "2021-01-31", missing=True),
    }
)
TABLE = pd.DataFrame(
    {
        "amount": [0.1, -5.0, np.nan, np.inf],
        "count": [4.4, np.nan, 99.0, -1e301],
        "whole": [np.nan, 2.5, 3.5, 7.0],
        "town": ["Bergen", "Rome", "", "Athens"],
        "kind": ["b", "z", "a", "other"],
        "level": [2.5, 3.0, 1.0, np.nan],
        "open": [1.0, 0.0, np.nan, 7.0],
        "maybe": [1.0, 0.0, np.nan, 1.0],
        "day": pd.to_datetime(["2020-01-03", "1999-01-01", None, "2030-01-01"]),
        "seen": pd.to_datetime(["2020-01-03", "1999-01-01", None, "2030-01-01"]),
    }
)


def answer(graph, X):
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: pip install onnxruntime")
    session = runtime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    if not isinstance(X, pd.DataFrame):
        return session.run(None, {"X": np.asarray(X, dtype=np.float64)})[0]
    given = {}
    for one in session.get_inputs():
        column = X[one.name]
        if "string" in one.type:
            cells = column.astype(object).where(column.notna(), "").to_numpy(dtype=object)
        elif column.dtype.kind == "M":
            cells = (column - pd.Timestamp(0)) / pd.Timedelta(days=1)
        else:
            cells = column.to_numpy(dtype=np.float64, na_value=np.nan)
        given[one.name] = np.asarray(cells)[:, None]
    return session.run(None, given)[0]


def check(model, X, within=1e-6):
    pytest.importorskip("onnxscript", reason="onnx and onnxscript are not installed: pip install skfairdp[export]")
    graph = to_onnx(model)
    (output,) = graph.graph.output
    expected = model.predict_proba(X) if output.name == "probabilities" else model.predict(X)
    found = answer(graph, X)
    assert found.shape == expected.shape and found.dtype == np.float64
    assert np.abs(found - expected).max() <= within
    return graph


FAST = {"PATE-own-rows-3": 1e-9, "FairDPSGD-plain": 1e-6, "FairDPSGD-additive-raw": 1e-9, "SyntheticData": 1e-9}
SKIPPED = ("PFGuard", "GroupRandomizer", "ParityFilter", "Schema", "IDP3", "Calibrator", "PrivateThresholds")
REST = [
    entry.name
    for entry in CATALOGUE
    if entry.name not in FAST and not entry.name.startswith((*SKIPPED, "PrivateBarycenter", "SyntheticData-amounts"))
    and "constrained" not in entry.name
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "within"), [*FAST.items(), *(pytest.param(name, 1e-6, marks=pytest.mark.slow) for name in REST)]
)
def test_a_graph_predicts_what_the_model_does(name, within):
    entry = by_name(name)
    rows = entry.rows()
    check(entry.fit(entry.make(), rows), rows.X_test, within)


@pytest.mark.slow
def test_so_does_that_of_images_and_of_any_number_of_rows():
    X = np.random.default_rng(0).normal(size=(120, 36))
    y = (X[:, :18].sum(axis=1) > 0).astype(int)
    model = LagrangianClassifier(net=cnn((1, 6, 6), max_epochs=2), random_state=0).fit(X, y, sensitive_features=y)
    graph = check(model, X)
    assert np.unique(model.predict_proba(X)).size > 100
    for n in (1, 7):
        assert answer(graph, X[:n]).shape == (n, 2)


class Counting(nn.Linear):
    def forward(self, rows):
        return super().forward(rows) + torch.zeros(len(rows), 1)


def test_a_network_that_counts_its_rows_is_refused():
    pytest.importorskip("onnxscript", reason="onnx and onnxscript are not installed: pip install skfairdp[export]")
    model = LagrangianClassifier(net=Counting(4, 2), random_state=0).fit(R.X, R.y, sensitive_features=R.groups)
    with pytest.raises(ValueError, match="one number of rows only"):
        to_onnx(model)


def test_the_classes_are_told():
    model = PATEClassifier(n_teachers=10, classes=["no", "yes"], random_state=0)
    graph = check(model.fit(R.X, np.array(["no", "yes"])[R.y], X_public=R.X_public), R.X_test, 1e-9)
    assert {one.key: one.value for one in graph.metadata_props} == {"classes": '["no", "yes"]'}


def test_a_schema_encodes_good_and_bad_cells_as_its_encoder_does():
    pytest.importorskip("onnxscript", reason="onnx and onnxscript are not installed: pip install skfairdp[export]")
    found = answer(to_onnx(SchemaEncoder(SCHEMA)), TABLE)
    np.testing.assert_allclose(found, SchemaEncoder(SCHEMA).transform(TABLE), rtol=0, atol=1e-12)


def test_what_has_no_graph_says_so():
    pytest.importorskip("onnxscript", reason="onnx and onnxscript are not installed: pip install skfairdp[export]")
    entry = by_name("FairPATE-constrained")
    with pytest.raises(ValueError, match="no graph of the ConstrainedStudent of this FairPATEClassifier"):
        to_onnx(entry.fit(entry.make(), entry.rows()))
    with pytest.raises(ValueError, match="no graph of IDP3"):
        to_onnx(IDP3(gamma=None).fit(None, [0, 1], sensitive_features=["a", "b"]))
    mixed = Schema({"x": Category(["a", 1])})
    with pytest.raises(ValueError, match="values of one type in column 'x'"):
        to_onnx(SchemaEncoder(mixed))


def test_without_onnx_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install skfairdp\[export\]"):
        to_onnx(SchemaEncoder(SCHEMA))


def test_the_example_of_the_reference_runs():
    pytest.importorskip("onnxscript", reason="onnx and onnxscript are not installed: pip install skfairdp[export]")
    example = to_onnx.__doc__.split("Examples\n")[1].replace("# doctest: +SKIP", "")
    test = doctest.DocTestParser().get_doctest(example, {}, "to_onnx", None, None)
    assert doctest.DocTestRunner().run(test) == doctest.TestResults(failed=0, attempted=5)
