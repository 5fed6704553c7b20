"""A fitted estimator answers as it was fitted: a parameter that is set afterwards counts from the next fit on."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from skfairdp import IDP3, FairDPSGDClassifier, FairDPSGDRegressor
from skfairdp.inspection import AdditiveTerms
from skfairdp.schema import Category, Number, Schema
from tests._tools.catalogue import CATALOGUE
from tests._tools.layers import cover

pytestmark = pytest.mark.filterwarnings("ignore")

#: An entry of each class, with a schema and without.
OF_EACH_KIND = [
    CATALOGUE[i]
    for i in cover([{(type(entry.make()).__name__, "raw" in entry.name)} for entry in CATALOGUE if not entry.slow])
]


class Unread:
    """Neither valid nor of any use: whatever looks at it fails."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("get_params", "continues", "attrs", "named_modules", "sensitive_features"):
            raise AttributeError(name)
        raise AssertionError(f"the parameter was asked for {name!r} after the fit")

    def __eq__(self, other: object) -> bool:
        raise AssertionError("the parameter was compared after the fit")

    def __bool__(self) -> bool:
        raise AssertionError("the parameter was looked at after the fit")

    def __deepcopy__(self, memo: Any) -> "Unread":
        return self

    __hash__ = None  # type: ignore[assignment]


def said(entry, fitted, rows):
    """Answers, score, report and statement."""
    fitted = copy.deepcopy(fitted)  # some remember what they answered
    found = dict(entry.probe(fitted, rows))
    one = fitted[0] if isinstance(fitted, tuple) else fitted
    if hasattr(one, "score") and hasattr(one, "predict") and not entry.name.startswith("PrivateBarycenter"):
        try:
            found["score"] = np.float64(one.score(rows.X_test, rows.y_test))
        except ValueError:
            found["score"] = np.float64(one.score(rows.X_test, rows.y_test, sensitive_features=rows.groups_test))
    if getattr(one, "privacy_", None) is not None:
        found["privacy"] = np.array(str(one.privacy_))
        found["statement"] = np.array(one.privacy_statement().to_json())
    return found


def assert_same(found, before, name):
    assert found.keys() == before.keys()
    for answer, values in before.items():
        np.testing.assert_array_equal(found[answer], values, err_msg=f"{name} changed {answer}")


@pytest.mark.parametrize("entry", OF_EACH_KIND, ids=lambda entry: entry.name)
def test_no_parameter_that_is_set_after_a_fit_changes_what_it_says(entry):
    rows = entry.rows()
    fitted = entry.fit(entry.make(**({"noise_seed": 3} if entry.spends else {})), rows)
    one = fitted[0] if isinstance(fitted, tuple) else fitted
    if not hasattr(one, "get_params"):
        return
    before = said(entry, fitted, rows)
    for name, value in one.get_params(deep=False).items():
        one.set_params(**{name: Unread()})
        assert_same(said(entry, fitted, rows), before, name)
        assert isinstance(one.get_params(deep=False)[name], Unread)
        one.set_params(**{name: value})


# ---- what it was about -----------------------------------------------------------------------------------------------
X = np.random.default_rng(0).normal(size=(400, 2))


def described(high):
    columns = {"a": Number(-3, high), "b": Number(-3, 3), "y": Category([0, 1])}
    return Schema(columns, label="y")


def test_a_schema_that_is_set_after_a_fit_counts_from_the_next_one_on():
    import pandas as pd

    table = pd.DataFrame(X, columns=["a", "b"]).assign(y=(X[:, 0] > 0).astype(int))
    model = FairDPSGDClassifier(epsilon=8.0, lam=0.0, schema=described(3), net="additive", noise_seed=1, random_state=0)
    before, terms = model.fit(table).predict_proba(table), AdditiveTerms(model).to_frame()
    other = described(30)
    model.set_params(schema=other)
    assert model.schema is other
    np.testing.assert_array_equal(model.predict_proba(table), before)
    assert AdditiveTerms(model).to_frame().equals(terms)
    assert not np.array_equal(model.fit(table).predict_proba(table), before)


def test_bounds_and_loss_too_and_in_copies():
    model = FairDPSGDRegressor(epsilon=8.0, bounds=(-3, 3), noise_seed=1, random_state=0).fit(X, X[:, 0])
    before = model.predict(X)
    model.bounds = (-0.1, 0.1)
    for one in (model, copy.copy(model), copy.deepcopy(model)):
        np.testing.assert_array_equal(one.predict(X), before)
    assert np.abs(model.fit(X, X[:, 0]).predict(X)).max() <= 0.1


@pytest.mark.parametrize("constraints", [None, "equalized_odds"])
def test_the_rule_of_a_gate_that_goes_on_deciding_is_that_of_its_fit(constraints, tmp_path):
    """Found: γ that was set to 0 after the fit refused at once, beside counts that another γ had let through."""
    rng = np.random.default_rng(0)
    groups, answers = rng.integers(0, 2, 600), rng.integers(0, 2, 600)
    past = {} if constraints is None else {"tickets": np.arange(600)}
    new = {} if constraints is None else {"tickets": np.arange(600, 1200)}

    def started():
        idp = IDP3(groups=[0, 1], constraints=constraints, store=tmp_path / f"{rng.integers(1 << 60)}")
        return idp.fit(None, [0, 1]).update(answers, sensitive_features=groups, **past)

    as_it_was, changed = started(), started()
    other = {"gamma": 0.0, "min_count": 0, "disparity": "between", "gate": "local", "store": tmp_path / "other"}
    changed.set_params(**other, constraints=None if constraints else "demographic_parity")
    for one in (copy.copy(changed), pickle.loads(pickle.dumps(changed)), changed):
        np.testing.assert_array_equal(one.reject_mask(answers, sensitive_features=groups),
                                      as_it_was.reject_mask(answers, sensitive_features=groups))  # fmt: skip
    np.testing.assert_array_equal(changed.answer(answers, sensitive_features=groups, **new),
                                  as_it_was.answer(answers, sensitive_features=groups, **new))  # fmt: skip
    np.testing.assert_array_equal(changed.counts_, as_it_was.counts_)
    assert changed.counts_.sum() > 600 and not (tmp_path / "other").exists()
    changed.reset()
    np.testing.assert_array_equal(changed.counts_, 0)
    changed.set_params(constraints=None, min_count=50).fit(None, [0, 1])
    assert (tmp_path / "other").exists() or changed.counts_.sum() == 0
    assert changed.answer([1], sensitive_features=[0]).shape == (1,) and (tmp_path / "other").exists()


def test_a_gate_stays_one_of_amounts_or_of_predictions():
    idp = IDP3(groups=[0, 1]).fit(None, [0, 1])
    idp.estimator = LinearRegression().fit(X, X[:, 0])
    assert idp.transform([0, 1], sensitive_features=[0, 1]).tolist() == [0, 1]
    with pytest.raises(ValueError, match="no estimator to predict with"):
        idp.predict(X, sensitive_features=np.zeros(len(X)))
