"""Fitted estimators and statements in the format of skops: read by trusting types of ours alone, and as they were."""

import importlib
import re
import types
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch import nn

from skfairdp import FairDPSGDClassifier, PATEClassifier, PrivacyLedger, PublicData
from skfairdp.export import trusted_types
from skfairdp.gradient import mlp
from skfairdp.privacy import NeighboringRelation, Protects
from tests._tools.catalogue import CATALOGUE, OF_EACH_KIND, make_rows

sio = pytest.importorskip("skops.io", reason="skops is not installed: pip install skfairdp[export]")
pytestmark = [
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.PrivacyLeakWarning"),
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning"),
]

R = make_rows()
#: What is worked out again after loading, or is nobody's business in a model that is handed on.
_MADE_AGAIN = {"fifths", "_released", "_asked", "_rates", "comparisons", "_cache"}


def unlike(saved, loaded, path=""):
    """Where two objects differ in type or value."""
    if type(saved) is not type(loaded):
        yield f"{path}: {type(saved).__name__} became {type(loaded).__name__}"
    elif isinstance(saved, np.ndarray) and saved.dtype != object:
        if saved.dtype != loaded.dtype or not np.array_equal(saved, loaded, equal_nan=saved.dtype.kind in "fc"):
            yield f"{path}: other numbers"
    elif isinstance(saved, pd.DataFrame | pd.Series):
        pd.testing.assert_frame_equal(pd.DataFrame(saved), pd.DataFrame(loaded))
    elif isinstance(saved, torch.Tensor):
        yield from unlike(saved.detach().numpy(), loaded.detach().numpy(), path)
    elif isinstance(saved, dict):
        if list(saved) != list(loaded):
            yield f"{path}: other keys"
        for key in saved.keys() & loaded.keys():
            yield from unlike(saved[key], loaded[key], f"{path}[{key!r}]")
    elif isinstance(saved, list | tuple | np.ndarray):
        if len(saved) != len(loaded):
            yield f"{path}: another length"
        for place, pair in enumerate(zip(saved, loaded, strict=False)):
            yield from unlike(*pair, f"{path}[{place}]")
    elif hasattr(saved, "__dict__") and not isinstance(saved, type | types.FunctionType | np.random.RandomState):
        if type(saved).__module__.startswith(("torch.optim", "skorch.")):
            return
        mine, others = ({k: v for k, v in vars(one).items() if k not in _MADE_AGAIN} for one in (saved, loaded))
        if mine.keys() != others.keys():
            yield f"{path}: {mine.keys() ^ others.keys()}"
        for name in mine.keys() & others.keys():
            if not (name == "module" and hasattr(saved, "module_")):  # a skorch net is its module_
                yield from unlike(mine[name], others[name], f"{path}.{name}")
    elif not isinstance(saved, np.random.RandomState) and saved != loaded and saved == saved:
        yield f"{path}: {saved!r} became {loaded!r}"


def handed_on(saved, *more):
    data = sio.dumps(saved)
    ours = {name for name in sio.get_untrusted_types(data=data) if not name.startswith("tests.")}
    assert ours <= {*trusted_types(), *more}
    return sio.loads(data, trusted=[*sio.get_untrusted_types(data=data)])


#: All but one, which is a class of the tests under the name of ours.
ENTRIES = [
    pytest.param(entry, id=entry.name, marks=[] if entry in OF_EACH_KIND else pytest.mark.slow)
    for entry in CATALOGUE
    if entry.name != "SFPATE-some-kept"
]


@pytest.mark.parametrize("entry", ENTRIES)
def test_what_is_loaded_is_what_was_saved(entry):
    model, rows = entry.make(), entry.rows()
    fitted = entry.fit(model, rows)
    saved = model if isinstance(fitted, tuple) else fitted
    loaded = handed_on(saved)
    assert list(unlike(saved, loaded)) == []
    if fitted is saved:
        answers = entry.probe(loaded, rows)
        for name, answer in entry.probe(saved, rows).items():
            pd.testing.assert_series_equal(pd.Series(list(answer)), pd.Series(list(answers[name])))


def private(**options):
    return FairDPSGDClassifier(lam=0.0, classes=[0, 1], random_state=0, **options)


def test_the_guarantee_and_its_statement_are_those_that_were_saved():
    model = PATEClassifier(n_teachers=10, classes=[0, 1], random_state=0).fit(R.X, R.y, X_public=R.X_public)
    loaded = handed_on(model)
    assert loaded.privacy_ == model.privacy_ and str(loaded.privacy_) == str(model.privacy_)
    assert loaded.privacy_.protects is Protects.RECORD
    assert loaded.privacy_.neighboring_relation is NeighboringRelation.REPLACE_ONE
    assert loaded.privacy_statement().to_json() == model.privacy_statement().to_json()
    statement = model.privacy_statement()
    assert handed_on(statement).to_html() == statement.to_html()


def test_a_ledger_counts_on_in_the_same_file():
    ledger = PrivacyLedger(epsilon=3.0)
    loaded = handed_on(private(ledger=ledger).fit(R.X, R.y))
    loaded.fit(R.X, R.y)
    assert len(ledger.entries) == len(loaded.ledger.entries) == 2
    assert loaded.ledger.head == ledger.head


def test_frames_keep_their_names_types_and_index():
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
    loaded = handed_on(PublicData(frame, frame["town"]))
    pd.testing.assert_frame_equal(loaded.X, frame)
    pd.testing.assert_series_equal(loaded.sensitive_features, frame["town"])


class Own(nn.Module):
    """A network of a user's."""

    def __init__(self, n_features, n_classes):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(n_features, 3), nn.LayerNorm(3), nn.Tanh(), nn.Linear(3, n_classes))

    def forward(self, rows):
        return self.layers(rows)


@pytest.mark.parametrize("net", [mlp((3,), lr=0.5), "additive", Own], ids=["mlp", "additive", "own"])
def test_networks_are_read_without_a_pickle(net, monkeypatch):
    model = private(net=net).fit(R.X, R.y)
    data, trusted = sio.dumps(model), [*trusted_types(), *([f"{__name__}.Own"] if net is Own else [])]
    assert set(sio.get_untrusted_types(data=data)) <= set(trusted)
    for name in ("Unpickler", "loads", "load"):
        monkeypatch.setattr(f"pickle.{name}", None)
    loaded = sio.loads(data, trusted=trusted)
    np.testing.assert_array_equal(loaded.predict_proba(R.X_test), model.predict_proba(R.X_test))


def test_a_file_cannot_have_networks_call_what_is_no_layer():
    net = private(net=mlp((3,))).fit(R.X, R.y).net_
    for harm in ({"module": LogisticRegression}, {"criterion": PrivacyLedger}, {"callbacks": [("x", PublicData)]}):
        state = net.__getstate__()
        state["settings"] |= harm
        with pytest.raises(ValueError, match="calls something else than layers and optimisers"):
            type(net).__new__(type(net)).__setstate__(state)
    stored = net.__getstate__()["settings"]["module"].kind
    for module, name in (("os", "system"), ("torch.nn.modules.linear", "Tensor")):
        with pytest.raises(ValueError, match="is no layer and no optimiser"):
            type(stored)(module, name).restored()


def test_the_block_of_the_guide_runs(tmp_path, monkeypatch):
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
