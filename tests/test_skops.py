"""Fitted estimators and statements in the format of skops: read by trusting types of ours alone, and as they were."""

import copy
import importlib
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from torch import nn

from skfairdp import IDP3, FairDPSGDClassifier, PATEClassifier, PrivacyLedger, PublicData, PublicPreprocessor, Schema
from skfairdp.datasets import make_biased_classification
from skfairdp.export import trusted_types
from skfairdp.gradient import mlp
from skfairdp.privacy import held_by
from skfairdp.schema import Category
from tests._tools.catalogue import CATALOGUE, OF_EACH_KIND, make_rows
from tests._tools.inside import PlainLedger
from tests._tools.observing import handed_on

pytestmark = [
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.PrivacyLeakWarning"),
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning"),
]
R = make_rows()
#: All but one, which is a class of the tests under the name of ours.
ENTRIES = [
    pytest.param(entry, id=entry.name, marks=[] if entry in OF_EACH_KIND else pytest.mark.slow)
    for entry in CATALOGUE
    if entry.name != "SFPATE-some-kept"
]


@pytest.fixture(scope="module")
def sio():
    return pytest.importorskip("skops.io", reason="skops is not installed: pip install skfairdp[export]")


@pytest.fixture(scope="module")
def again(sio):
    """Write and read, trusting types of ours alone."""

    def through(saved, *more):
        data = sio.dumps(saved)
        tests = [name for name in sio.get_untrusted_types(data=data) if name.startswith("tests.")]
        return sio.loads(data, trusted=[*trusted_types(), *tests, *more])

    return through


def private(**options):
    return FairDPSGDClassifier(lam=0.0, classes=[0, 1], random_state=0, **options)


@pytest.mark.parametrize("entry", ENTRIES)
def test_what_is_loaded_is_what_was_saved(entry, again):
    model, rows = entry.make(), entry.rows()
    fitted = entry.fit(model, rows)
    saved = model if isinstance(fitted, tuple) else fitted
    loaded = again(saved)
    assert type(loaded) is type(saved) and handed_on(loaded) == handed_on(saved)
    if hasattr(saved, "privacy_"):
        assert loaded.privacy_ == saved.privacy_ and str(loaded.privacy_) == str(saved.privacy_)
        assert loaded.privacy_statement().to_json() == saved.privacy_statement().to_json()
    if fitted is saved:
        answers = entry.probe(loaded, rows)
        for name, answer in entry.probe(saved, rows).items():
            np.testing.assert_array_equal(np.asarray(answers[name]), np.asarray(answer))


def test_a_model_of_sums_of_few_rows_is_read_as_it_was(again):
    X, y, _ = make_biased_classification(1300, n_features=4, random_state=0)
    model = PATEClassifier(classes=[0, 1], random_state=0).fit(X[300:], y[300:], X_public=X[:300])
    np.testing.assert_array_equal(again(model).predict_proba(X), model.predict_proba(X))


def test_a_statement_is_read_as_it_was(again):
    statement = private().fit(R.X, R.y).privacy_statement()
    assert again(statement).to_html() == statement.to_html()


@pytest.mark.parametrize("told", [0.5, 0.0, float("nan")])
def test_a_file_that_states_less_than_its_releases_cost_is_refused(again, told):
    """Found: whoever writes a file could state any epsilon, which the loaded model printed as certified."""
    model = private().fit(R.X, R.y)
    forged = copy.copy(model.privacy_)
    for name in ("epsilon", "mechanism_epsilon"):
        object.__setattr__(forged, name, told)
    with pytest.raises(ValueError, match="less than its releases cost"):
        again(forged)
    assert again(model.privacy_) == model.privacy_ == copy.deepcopy(model.privacy_)


def test_a_ledger_counts_on_in_the_same_file(again):
    ledger = PrivacyLedger(epsilon=3.0)
    loaded = again(private(ledger=ledger).fit(R.X, R.y))
    loaded.fit(R.X, R.y)
    assert loaded.ledger is ledger and len(ledger.entries) == 2


def test_a_path_is_read_as_its_text(again, tmp_path):
    groups = [0, 1, 0, 1]
    model = IDP3(store=tmp_path / "answers.json").fit(None, np.array([0, 1, 1, 0]), sensitive_features=groups)
    assert again(model).store == str(tmp_path / "answers.json")


def test_no_type_in_the_list_writes_where_a_file_says(tmp_path):
    assert "skfairdp.privacy._ledger.PrivacyLedger" not in trusted_types()
    PlainLedger((str(tmp_path / "new"), 1.0, 1e-5, 0, "")).restored()
    assert list(tmp_path.iterdir()) == []


def test_what_was_paid_for_still_says_so(again):
    paid = private().fit(R.X, R.y).privacy_
    classes = Schema({"x": Category(["a"]), "y": Category(["no", "yes"], privacy_=paid)}, label="y").classes
    loaded = again(PATEClassifier(classes=classes)).classes
    assert loaded == classes and held_by(loaded) == held_by(classes) == (paid,)


def test_frames_keep_their_names_types_and_index(again):
    frame = pd.DataFrame(
        {
            "n": pd.array([1, None, 3], dtype="Int64"),
            "kind": pd.Categorical(["b", "a", "b"], categories=["b", "a"], ordered=True),
            "town": pd.array(["x", None, "y"], dtype="str"),
            "x": [0.5, np.nan, 1.0],
            "any": [1, "two", None],
        },
        index=pd.Index([7, 8, 9], name="id"),
    )
    loaded = again(PublicData(frame, frame["town"]))
    pd.testing.assert_frame_equal(loaded.X, frame)
    pd.testing.assert_series_equal(loaded.sensitive_features, frame["town"])
    loaded = again(PublicPreprocessor("passthrough", frame[["x"]]))
    pd.testing.assert_frame_equal(loaded.X_public, frame[["x"]])


class Own(nn.Module):
    """A network of a user's."""

    def __init__(self, n_features, n_classes):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(n_features, 3), nn.LayerNorm(3), nn.Tanh(), nn.Linear(3, n_classes))

    def forward(self, rows):
        return self.layers(rows)


@pytest.mark.parametrize("net", [mlp((3,), lr=0.5), "additive", Own], ids=["mlp", "additive", "own"])
def test_networks_are_read_without_a_pickle(net, sio, again, monkeypatch):
    model = private(net=net).fit(R.X, R.y)
    if net is Own:
        with pytest.raises(TypeError, match=r"tests\.test_skops\.Own"):
            sio.loads(sio.dumps(model), trusted=trusted_types())
    for name in ("Unpickler", "loads", "load"):
        monkeypatch.setattr(f"pickle.{name}", None)
    np.testing.assert_array_equal(again(model).predict_proba(R.X_test), model.predict_proba(R.X_test))


def test_a_file_cannot_have_networks_call_what_is_no_layer():
    net = private(net=mlp((3,))).fit(R.X, R.y).net_
    for harm in ({"module": LogisticRegression}, {"criterion": PrivacyLedger}, {"callbacks": [("x", PublicData)]}):
        state = net.__getstate__()
        state["settings"] |= harm
        with pytest.raises(ValueError, match="calls something else than layers and optimisers"):
            type(net).__new__(type(net)).__setstate__(state)
    module = net.__getstate__()["settings"]["module"]
    for where, name in (("os", "system"), ("torch.nn.modules.linear", "Tensor")):
        with pytest.raises(ValueError, match="is no layer and no optimiser"):
            type(module.kind)(where, name).restored()
    module.attributes["_forward_hooks"] = {0: print}
    with pytest.raises(ValueError, match="has attributes of torch's"):
        module.restored()
    state = {"module_": b"a pickle", "__cuda_dependent_attributes__": b"a pickle"}  # of skorch's own
    with pytest.raises(KeyError):
        type(net).__new__(type(net)).__setstate__(state)


def test_hooks_are_functions_which_no_file_holds():
    layer = nn.Linear(4, 2)
    layer.register_forward_hook(lambda *given: None)
    with pytest.raises(ValueError, match="A Linear with hooks, which are functions, is kept by pickles alone"):
        private(net=layer).__getstate__()


def test_the_block_of_the_guide_runs(sio, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[1] / "docs" / "guide" / "statement.md").read_text("utf-8")
    (block,) = re.findall(r"```python\n(import skops.*?)```", page, re.DOTALL)
    names = {"model": private().fit(R.X, R.y)}
    before = names["model"].predict_proba(R.X_test)
    exec(block, names)
    np.testing.assert_array_equal(names["model"].predict_proba(R.X_test), before)


def test_every_type_in_the_list_is_there():
    assert len(set(trusted_types())) == len(trusted_types())
    for name in trusted_types():
        module, _, kind = name.rpartition(".")
        assert isinstance(getattr(importlib.import_module(module), kind), type)
