"""A statement speaks of the ledger that a fit was charged to, where it is at hand, and of what is not on it."""

import gc
import os
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import VotingClassifier

from skfairdp import ParetoSearchCV, PATEClassifier, PrivacyLedger
from skfairdp.exceptions import LedgerError, PrivacyLeakWarning
from skfairdp.postprocessing import PrivateThresholds
from skfairdp.privacy import GaussianDpEvent, privacy_of
from tests._tools.inside import verify_file

pytestmark = pytest.mark.filterwarnings("ignore::skfairdp.exceptions.UtilityWarning",
                                        "ignore::skfairdp.exceptions.FairnessWarning")  # fmt: skip

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(600, 3)), columns=list("abc"))
Y = (X["a"] > 0).astype(int)
GROUPS = np.where(X["b"] > 0, "f", "m")
PUBLIC = pd.DataFrame(RNG.normal(size=(100, 3)), columns=list("abc"))
REGISTRY = {
    "name": "n", "data_curators": ["a"], "description": "", "intended_use": "", "data_product_region": "",
    "publication_date": "2026-01-01", "registry_authors": ["b"],
}  # fmt: skip


def pate(epsilon=1.0, **given):
    return PATEClassifier(epsilon=epsilon, classes=[0, 1], random_state=0, **given).fit(X, Y, X_public=PUBLIC)


def told(statement):
    return statement.to_registry(**REGISTRY)["deployment"]["deployment_model"]["release_type_details"]


def refuted(statement, folder):
    (folder / "s.json").write_text(statement.to_json(), encoding="utf-8")
    return [check for check in verify_file(folder / "s.json") if not check.holds]


def test_of_a_model_inside_of_another_the_ledger_of_the_outer_fit_is_stated(tmp_path):
    inner, outer = PrivacyLedger(50), PrivacyLedger(50)
    base = pate(ledger=inner)
    for epsilon in (2.0, 3.0):
        pate(epsilon, ledger=outer)
    model = PrivateThresholds(base, groups=["f", "m"], random_state=0, ledger=outer)
    statement = model.fit(X, Y, sensitive_features=GROUPS).privacy_statement()
    assert told(statement).startswith("3 fits") and "on top: PATEClassifier, epsilon" in told(statement)
    assert "not on this ledger, and on top: PATEClassifier" in statement.to_markdown()
    assert privacy_of(model).epsilon > outer.epsilon_spent and not refuted(statement, tmp_path)


def test_what_is_on_no_ledger_is_said_to_come_on_top(tmp_path):
    base = pate(ledger=PrivacyLedger(50))
    model = PrivateThresholds(base, groups=["f", "m"], random_state=0).fit(X, Y, sensitive_features=GROUPS)
    statement = model.privacy_statement()
    assert told(statement).startswith("1 fits") and "on top: PrivateThresholds, epsilon" in told(statement)
    assert not refuted(statement, tmp_path)


@pytest.mark.parametrize("how", ["deleted", "another one", "collected"])
def test_a_ledger_that_is_not_at_hand_is_said_not_to_be(how, tmp_path):
    path = tmp_path / "ledger.jsonl"
    if how == "collected":
        with PrivacyLedger(50):
            model = pate()
        gc.collect()
    else:
        model = pate(ledger=PrivacyLedger(50, path=path))
    if how == "deleted":
        os.remove(path)
        with pytest.raises(LedgerError, match="Restore its file"):
            model.privacy_.statement(ledger=model.ledger)
    if how == "another one":
        model.set_params(ledger=PrivacyLedger(50))
        gc.collect()
    statement = model.privacy_statement()
    assert statement.content["ledger"] is None and told(statement).startswith("Without a ledger")
    assert not refuted(statement, tmp_path)
    with pytest.warns(PrivacyLeakWarning, match="cannot see the ledger that PATEClassifier was charged to"):
        spent = privacy_of(model)
    assert "what else is on the ledger of PATEClassifier" in spent.public


def test_a_model_that_comes_with_its_ledger_states_it(tmp_path):
    ledger = PrivacyLedger(50)
    pate(2.0, ledger=ledger)
    model = pickle.loads(pickle.dumps(pate(ledger=ledger)))
    assert told(model.privacy_statement()).startswith("2 fits")
    assert privacy_of(model).epsilon == pytest.approx(ledger.epsilon_spent)


@pytest.mark.filterwarnings("ignore:PATEClassifier protects a record, and the earlier fits")
def test_fits_for_records_and_for_subjects_on_one_ledger_are_verified(tmp_path):
    ledger = PrivacyLedger(50)
    who = pd.Series(np.repeat(np.arange(300), 2), name="pid")
    given = {"classes": [0, 1], "random_state": 0, "ledger": ledger}
    by_subject = PATEClassifier(**given).fit(X, Y, X_public=PUBLIC, subject=who)
    vote = VotingClassifier([("a", by_subject), ("b", pate(ledger=ledger))])
    vote.estimators_ = [by_subject, vote.estimators[1][1]]
    spent = privacy_of(vote)
    assert spent.epsilon == pytest.approx(ledger.epsilon_spent, rel=1e-6) and not refuted(spent.statement(), tmp_path)


def test_what_a_search_certifies_does_not_follow_which_candidate_won():
    found = {}
    for trial in range(12):
        search = ParetoSearchCV(
            PATEClassifier(classes=[0, 1], random_state=trial), {"epsilon": [0.2, 2.0]}, scoring=["accuracy"],
            score_epsilon=0.05, random_state=0,
        )  # fmt: skip
        search.fit(X, Y, X_public=PUBLIC)
        found.setdefault(search.best_params_["epsilon"], set()).add(search.privacy_.epsilon)
        assert search.privacy_.epsilon == search.planned_privacy(X, Y, X_public=PUBLIC).epsilon
    assert len(found) == 2 and len(set.union(*found.values())) == 1


def test_a_ledger_that_cannot_be_read_has_no_story(tmp_path):
    ledger = PrivacyLedger(9, path=tmp_path / "l.jsonl")
    ledger.charge(GaussianDpEvent(5.0), label="a", protects="record", neighboring_relation="replace one record")
    spent = ledger.spent()
    os.remove(tmp_path / "l.jsonl")
    with pytest.raises(LedgerError, match="cannot be read"):
        spent.statement(ledger=ledger)
