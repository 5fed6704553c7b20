"""A fit that is refused leaves the fitted object as it was: the next prediction is that of the model it describes."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from skfairdp import ParetoSearchCV, PATEClassifier, PrivacyLedger
from skfairdp.exceptions import BudgetExceededError
from skfairdp.model_selection import PrivateSearchCV
from tests._tools.catalogue import CATALOGUE
from tests._tools.layers import cover

pytestmark = pytest.mark.filterwarnings("ignore")

#: An entry of each class that keeps what it has fitted.
OF_EACH_CLASS = [CATALOGUE[i] for i in cover([{type(entry.make()).__name__} for entry in CATALOGUE])]


def fewer_columns(table):
    return table.iloc[:, ::-1].iloc[:, 1:] if isinstance(table, pd.DataFrame) else table[:, ::-1][:, 1:]


def refusals(entry, rows):
    """Second fits that are refused: other columns without a budget for them, and labels or groups of fewer rows."""
    if rows.X is not None:
        public = None if rows.X_public is None else fewer_columns(rows.X_public)
        yield replace(rows, X=fewer_columns(rows.X), X_public=public)
    yield replace(rows, y=rows.y[:-1], groups=None if rows.groups is None else rows.groups[:-1])
    yield rows


@pytest.mark.parametrize("entry", OF_EACH_CLASS, ids=lambda entry: entry.name)
def test_a_refused_fit_leaves_all_attributes_of_the_model(entry):
    rows = entry.rows()
    model = entry.make()
    entry.fit(model, rows)
    spent, part = PrivacyLedger(epsilon=1e-9), model
    while entry.spends and not hasattr(part, "ledger"):
        part = part.estimator
    if entry.spends:
        part.ledger = spent
    before, refused = dict(vars(model)), 0
    for bad in refusals(entry, rows):
        try:
            entry.fit(model, bad)
        except Exception:
            refused += 1
            now = vars(model)
            assert now.keys() == before.keys()
            assert all(now[name] is value for name, value in before.items())
        else:
            assert not entry.spends
            before = dict(vars(model))
    assert refused or not entry.spends
    assert not spent.entries


def visits(n=400):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc"))
    return X, (X.a > 0).astype(int), pd.DataFrame(rng.normal(size=(60, 3)), columns=list("abc"))


@pytest.mark.parametrize("why", ["budget", "label", "missing"])
def test_other_columns_are_refused_as_before_by_a_model_whose_second_fit_was_refused(why):
    """Found: it had the names of the columns of the fit that was refused, and answered for them."""
    X, y, public = visits()
    ledger = PrivacyLedger(epsilon=1.0)
    model = PATEClassifier(epsilon=1.0, classes=[0, 1], n_teachers=4, random_state=0, ledger=ledger)
    model.fit(X.assign(pid=range(len(X))), y, X_public=public, subject="pid")
    answers, turned = model.predict(X), list("bca")
    if why != "budget":
        model.set_params(ledger=None)
    wrong = {"label": {"y": y.replace({1: 5})}, "missing": {"X": X[turned].assign(b=np.nan)}}.get(why, {})
    with pytest.raises(BudgetExceededError if why == "budget" else ValueError):
        model.fit(**{"X": X[turned], "y": y, "X_public": public[turned], **wrong})
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(X[turned])
    np.testing.assert_array_equal(model.predict(X), answers)
    np.testing.assert_array_equal(model.predict(X.assign(pid=0)), answers)
    assert len(ledger.entries) == 1


@pytest.mark.parametrize("search", [ParetoSearchCV, PrivateSearchCV])
def test_a_search_that_is_refused_keeps_its_winner(search):
    X, y, public = visits()
    ledger = PrivacyLedger(epsilon=5.0)
    base = PATEClassifier(epsilon=0.5, classes=[0, 1], n_teachers=4, random_state=0, ledger=ledger)
    model = search(base, {"n_teachers": [3, 4]}, cv=2, scoring="accuracy", random_state=0).fit(X, y, X_public=public)
    answers, spent, entries = model.predict(X), model.privacy_, len(ledger.entries)
    base.set_params(epsilon=50.0)
    with pytest.raises(BudgetExceededError):
        model.fit(X, y, X_public=public)
    assert model.privacy_ is spent and len(ledger.entries) == entries
    np.testing.assert_array_equal(model.predict(X), answers)
