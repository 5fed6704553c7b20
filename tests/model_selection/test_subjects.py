"""Searches over fits for subjects: folds hold all rows of their subjects, and the whole is stated for them."""

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier

from skfairdp import (
    FairDPSGDClassifier,
    FairPATEClassifier,
    ParetoSearchCV,
    PrivacyLedger,
    PrivateSearchCV,
    PublicData,
    SyntheticDataClassifier,
    frontier,
)
from skfairdp.privacy import verify_file
from skfairdp.schema import Category, Number, Schema
from tests._tools.inside import Subjects


class RowByRow(SyntheticDataClassifier):
    """Takes no ids."""

    def __init__(self, *, epsilon=1.0, delta=1e-5, bounds=(-6.0, 6.0), dtypes=float, classes=(0, 1), ledger=None):
        super().__init__(epsilon=epsilon, delta=delta, bounds=bounds, dtypes=dtypes, classes=classes, ledger=ledger)

    def fit(self, X, y=None):
        return super().fit(X, y)


pytestmark = pytest.mark.filterwarnings("ignore")  # so few rows, so much noise

N = 300


def visits(most=6):
    rng = np.random.default_rng(0)
    ids = rng.permutation(np.repeat(np.arange(N), rng.integers(1, most + 1, N)))
    groups = (ids % 2).astype(int)
    X = pd.DataFrame(rng.normal(size=(len(ids), 3)) + groups[:, None], columns=list("abc"))
    return X, (X["a"] > 0.5).astype(int), groups, pd.Series(ids, name="patient_id")


def searched(search, model, grid, *, subject="patient_id", **more):
    X, y, groups, ids = visits()
    found = search(model, grid, random_state=0, **more)
    return found.fit(X.assign(patient_id=ids), y, sensitive_features=groups, subject=subject)


def pate(**given):
    return FairPATEClassifier(classes=[0, 1], groups=[0, 1], random_state=0, **given)


@pytest.mark.parametrize("search", [ParetoSearchCV, PrivateSearchCV])
def test_a_search_is_stated_for_subjects_and_costs_what_it_planned(search, tmp_path):
    ledger = PrivacyLedger(epsilon=9)
    found = searched(search, pate(ledger=ledger), {"gamma": [0.05, 0.2]}, total_epsilon=4, cv=3)
    assert found.privacy_.protects == "subject" and found.privacy_.rows_of == "patient_id"
    assert found.privacy_.epsilon <= 4 and ledger.epsilon_spent == pytest.approx(found.privacy_.epsilon)
    assert {entry.rows_of for entry in ledger.entries} == {"patient_id"}
    path = tmp_path / "statement.json"
    path.write_text(found.privacy_statement().to_json())
    assert all(check.holds for check in verify_file(path))
    X, y, groups, ids = visits()
    again = search(pate(), {"gamma": [0.05, 0.2]}, total_epsilon=4, cv=3, random_state=0)
    planned = again.planned_privacy(X, y, sensitive_features=groups, subject=ids)
    assert planned.rows_of == "patient_id" and planned.epsilon == pytest.approx(found.privacy_.epsilon)
    assert found.predict(X.assign(patient_id=ids)).shape == y.shape  # the column of ids is no feature


def test_a_search_over_rows_is_on_its_ledger_as_well(tmp_path):
    X, y, groups, _ = visits()
    found = ParetoSearchCV(pate(ledger=PrivacyLedger()), {"gamma": [0.05, 0.2]}, cv=2, random_state=0)
    found.fit(X, y, sensitive_features=groups)
    path = tmp_path / "statement.json"
    path.write_text(found.privacy_statement().to_json())
    assert all(check.holds for check in verify_file(path))


def test_a_fold_holds_all_rows_of_its_subjects_and_lists_those_without_rows():
    ids = visits()[3]
    listed = pd.Series(pd.Categorical(ids, categories=range(N + 10)), name="patient_id")  # ten have no rows
    subjects = Subjects.read(None, listed, len(ids), owner="a search")
    places = np.arange(0, N + 10, 2)
    part, rest = subjects.part(places), subjects.part(places + 1)
    assert sorted([*part.rows, *rest.rows]) == list(range(len(ids)))
    assert not set(ids[part.rows]) & set(ids[rest.rows])
    assert len(part.subject.cat.categories) == len(places) and part.subject.name == "patient_id"
    assert part.subject.astype(int).tolist() == ids[part.rows].tolist()
    assert Subjects.read(None, part.subject, len(part.rows), owner="a fit").n == len(places)
    assert sorted(ids[part.one_each]) == sorted(set(ids[part.rows])) and set(part.places) <= set(places)


def test_a_schema_that_names_the_subject_is_enough():
    X, y, groups, ids = visits()
    columns = {name: Number(-6, 6) for name in X} | {"sex": Category([0, 1]), "ill": Category([0, 1])}
    schema = Schema(columns, label="ill", groups="sex", subject="patient_id")
    model = SyntheticDataClassifier(schema=schema, random_state=0)
    table = X.assign(ill=y, sex=groups, patient_id=ids)
    found = PrivateSearchCV(model, {"gamma": [0.1, 0.2]}, scoring="accuracy", random_state=0).fit(table)
    assert found.privacy_.rows_of == "patient_id" and found.best_estimator_.privacy_ == found.privacy_


@pytest.mark.parametrize("with_ids", [True, False])
def test_public_rows_to_score_on_may_hold_the_column_of_ids(with_ids):
    X, y, groups, _ = visits()
    X, y, groups = X.head(40), y.head(40), groups[:40]
    public = PublicData(X.assign(patient_id=range(40)) if with_ids else X, y=y, sensitive_features=groups)
    model = SyntheticDataClassifier(bounds=(-6, 6), dtypes=float, classes=[0, 1], groups=[0, 1], random_state=0)
    X, y, groups, ids = visits()
    found = ParetoSearchCV(model, {"gamma": [0.1, 0.2]}, random_state=0).fit(
        X.assign(patient_id=ids), y, sensitive_features=groups, subject="patient_id", validation=public
    )
    assert found.privacy_.rows_of == "patient_id"


def test_what_cannot_be_searched_by_subject_is_refused_before_anything_is_spent():
    ledger = PrivacyLedger()
    with pytest.raises(ValueError, match="RowByRow, protects each row by itself"):
        searched(ParetoSearchCV, RowByRow(ledger=ledger), {"epsilon": [1.0, 2.0]})
    model = FairDPSGDClassifier(classes=[0, 1], groups=[0, 1], lam=0.0, ledger=ledger)
    with pytest.raises(ValueError, match="must be a number of folds where subjects are protected"):
        searched(ParetoSearchCV, model, {"epsilon": [1.0]}, cv=[(np.arange(5), np.arange(5, 9))])
    with pytest.raises(ValueError, match="names 'nobody', which is not exactly one column"):
        searched(ParetoSearchCV, model, {"epsilon": [1.0]}, subject="nobody")
    assert not ledger.entries


class OneByOne(FairPATEClassifier):
    """Takes no ids."""

    def fit(self, X, y=None, *, sensitive_features=None, X_public=None):
        return super().fit(X, y, sensitive_features=sensitive_features, X_public=X_public)


# ---- frontiers -------------------------------------------------------------------------------------------------------
def swept(models, *, subject="patient_id", **more):
    X, y, _, ids = visits()
    rng = np.random.default_rng(1)
    public = pd.DataFrame(rng.normal(size=(200, 3)), columns=list("abc"))
    test = public.assign(patient_id=rng.integers(0, 50, 200))
    if isinstance(subject, str) or subject is None:
        X = X.assign(patient_id=ids)
    return frontier(
        models, X, y, X_public=PublicData(public, rng.integers(0, 2, 200)), X_test=test,
        y_test=(test["a"] > 0.5).astype(int), sensitive_features_test=rng.integers(0, 2, 200), subject=subject,
        **{"epsilons": (1.0, 2.0), "gammas": (0.2, None), "random_state": 0, **more},
    )  # fmt: skip


@pytest.mark.parametrize("by_name", [True, False])
def test_a_frontier_of_subjects_is_stated_for_them(by_name):
    ledger = PrivacyLedger()
    subject = "patient_id" if by_name else visits()[3]
    table = swept(pate(ledger=ledger), subject=subject, reference=DummyClassifier())
    assert set(table["protects"]) == {"subject"} and table.attrs["rows_of"] == "patient_id"
    assert set(table["neighboring_relation"]) == {"replace all rows of one subject"}
    assert {entry.rows_of for entry in ledger.entries} == {"patient_id"} and table.attrs["n_fits"] == 2
    assert table.attrs["epsilon_total"] == pytest.approx(ledger.spent(protects="subject").epsilon)


def test_a_frontier_without_subjects_names_none():
    X, y, groups, _ = visits()
    table = frontier(
        pate(), X[200:], y[200:], X_public=PublicData(X[:100], groups[:100]), X_test=X[100:200], y_test=y[100:200],
        sensitive_features_test=groups[100:200], epsilons=(1.0,), gammas=(None,), idp3=(False,), random_state=0,
    )  # fmt: skip
    assert "rows_of" not in table.attrs and set(table["protects"]) == {"record"}


@pytest.mark.parametrize(
    ("models", "subject", "text"),
    [
        (lambda ledger: [pate(ledger=ledger), OneByOne(ledger=ledger)], "patient_id", "'OneByOne' protects each row"),
        (lambda ledger: pate(ledger=ledger), "visit", "names 'visit'"),
        (lambda ledger: [pate(schema=SCHEMAS[0], ledger=ledger), pate(ledger=ledger)], None, "only some of them"),
        (lambda ledger: [pate(schema=one, ledger=ledger) for one in SCHEMAS], None, "different subjects"),
        (lambda ledger: pate(schema=SCHEMAS[0], ledger=ledger), "household", "different subjects"),
    ],
)
def test_a_frontier_that_cannot_protect_subjects_says_so_before_anything_is_spent(models, subject, text):
    ledger = PrivacyLedger()
    with pytest.raises(ValueError, match=text):
        swept(models(ledger), subject=subject)
    assert not ledger.entries


SCHEMAS = [Schema(dict.fromkeys("abc", Number(-6, 6)), subject=one) for one in ("patient_id", "household")]
