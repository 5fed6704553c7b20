"""PATE and FairPATE as scikit-learn citizens: pipelines, searches, routing, DataFrames, ledgers across processes."""

import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from joblib.externals.loky import get_reusable_executor
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from skfairdp import (
    FairPATEClassifier,
    PATEClassifier,
    PFGuardGenerator,
    PrivacyLedger,
    PublicData,
    PublicPreprocessor,
    Schema,
)
from skfairdp.exceptions import BudgetExceededError
from skfairdp.fairness import largest_disparity
from skfairdp.pate import VoteGate, _fair_votes as _rehearsal
from tests._tools.problems import make_rows

# With this little data and this much noise, now and then no student reaches gamma on the public rows.
pytestmark = [
    pytest.mark.filterwarnings("ignore:The smallest demographic disparity"),
    pytest.mark.filterwarnings("ignore:The gate of FairPATEClassifier ended"),
    pytest.mark.filterwarnings("ignore:.*draws its noise from 'noise_seed'"),
]

THREE = KFold(3)


@pytest.fixture(scope="module", autouse=True)
def stop_workers():
    yield
    get_reusable_executor().shutdown(wait=True)


def fair(**more):
    return FairPATEClassifier(**{"epsilon": 2.0, "n_teachers": 10, "classes": [0, 1], "random_state": 0, **more})


def accurate(**more):
    """Hardly any noise, and the same at every run."""
    return fair(epsilon=1e4, noise_seed=0, **more)


def frame(X):
    return pd.DataFrame(X, columns=["age", "hours", "pay", "score"])


def table(X, groups, names=("f", "m")):
    return frame(X).assign(sex=np.array(names)[groups])


# ---- pipelines -----------------------------------------------------------------------------------------------
def test_pipeline_whose_scaler_learns_from_public_rows_only(rows):
    scaler = PublicPreprocessor(StandardScaler(), PublicData(rows.X_public))
    scaled = PublicData(StandardScaler().fit_transform(rows.X_public), rows.groups_public)
    model = make_pipeline(scaler, accurate()).fit(rows.X, rows.y, fairpateclassifier__X_public=scaled)
    np.testing.assert_allclose(model[0].transformer_.mean_, rows.X_public.mean(axis=0))
    assert model.score(rows.X_public, rows.y_public) > 0.8
    assert model.predict_proba(rows.X_public).shape == (200, 2)


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("scaler", [StandardScaler(), "public"])
def test_pipeline_transforms_public_rows_with_transform_input(rows, scaler):
    if scaler == "public":
        scaler = PublicPreprocessor(StandardScaler(), PublicData(rows.X_public * 3))
    model = Pipeline([("scale", scaler), ("model", accurate())], transform_input=["X_public"])
    model.fit(rows.X, rows.y, X_public=rows.X_public, sensitive_features_public=rows.groups_public)
    np.testing.assert_allclose(model["model"]._lessons.public.X, model["scale"].transform(rows.X_public))
    assert model.score(rows.X, rows.y, sensitive_features=rows.groups) > 0.8


@pytest.mark.usefixtures("routing")
@pytest.mark.filterwarnings("ignore:The Pipeline around")
def test_set_output_hands_names_through(rows):
    model = Pipeline([("scale", StandardScaler()), ("model", fair())], transform_input=["X_public"])
    model.set_output(transform="pandas")
    model.fit(frame(rows.X), rows.y, X_public=frame(rows.X_public), sensitive_features_public=rows.groups_public)
    assert list(model["model"].feature_names_in_) == ["age", "hours", "pay", "score"]
    assert len(model.predict(frame(rows.X))) == 400


# ---- searches ------------------------------------------------------------------------------------------------
@pytest.mark.few(1)
@pytest.mark.parametrize("route", [False, True], ids=["no routing", "routing"])
@pytest.mark.usefixtures("two_workers")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_grid_search_over_gamma_and_teachers(rows, route, n_jobs):
    grid = {"gamma": [0.05, 0.5], "n_teachers": [5, 10]}
    with sklearn.config_context(enable_metadata_routing=route):
        search = GridSearchCV(fair(), grid, cv=THREE, error_score="raise", n_jobs=n_jobs)
        search.fit(rows.X, rows.y, X_public=rows.public, sensitive_features=rows.groups)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    best = search.best_estimator_
    assert (best.gamma, best.n_teachers) == (search.best_params_["gamma"], search.best_params_["n_teachers"])
    assert best.n_queries_ == len(rows.X_public)


@pytest.mark.parametrize("route", [False, True], ids=["no routing", "routing"])
def test_as_many_public_rows_as_private_ones_are_not_sliced(rows, route):
    X, _, groups = make_rows(400, seed=9)
    asked = []

    class Watched(FairPATEClassifier):
        def fit(self, X, y, *, sensitive_features=None, X_public=None, sensitive_features_public=None):
            asked.append((len(X), len(X_public.X)))
            return super().fit(X, y, X_public=X_public)

    model = Watched(**fair().get_params())
    with sklearn.config_context(enable_metadata_routing=route):
        GridSearchCV(model, {"gamma": [0.1]}, cv=KFold(2), error_score="raise").fit(
            rows.X, rows.y, X_public=PublicData(X, groups)
        )
    assert asked == [(200, 400), (200, 400), (400, 400)]


@pytest.mark.usefixtures("routing")
def test_pate_and_fairpate_take_the_same_call_with_routing(rows):
    for model in (fair(), PATEClassifier(n_teachers=10, classes=[0, 1])):
        search = GridSearchCV(model, {"epsilon": [1.0, 2.0]}, cv=THREE, error_score="raise")
        search.fit(rows.X, rows.y, X_public=rows.public, sensitive_features=rows.groups)
        scores = cross_validate(model, rows.X, rows.y, cv=THREE, params={"X_public": rows.public})
        assert len(scores["test_score"]) == 3


def test_cross_validation_without_routing_samples_rows_from_own_tables(rows):
    model = accurate(sensitive_columns=0, gate=VoteGate(min_count=5), groups=[0, 1])
    X = np.column_stack([rows.groups, rows.X])
    scores = cross_validate(model, X, rows.y, cv=THREE, scoring=make_scorer(accuracy_score), return_estimator=True)
    assert all(0.7 < score <= 1 for score in scores["test_score"])
    assert {est.n_queries_ for est in scores["estimator"]} == {1000}


# ---- the ledger ----------------------------------------------------------------------------------------------
@pytest.mark.usefixtures("two_workers")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_seven_fits_are_seven_entries(rows, n_jobs):
    ledger = PrivacyLedger()
    search = GridSearchCV(fair(ledger=ledger), {"gamma": [0.05, 0.2]}, cv=THREE, n_jobs=n_jobs)
    search.fit(rows.X, rows.y, X_public=rows.public)
    assert len(ledger.entries) == 7 and search.best_estimator_.ledger is ledger
    alone = search.best_estimator_.privacy_.epsilon
    assert alone <= 2.0 < ledger.epsilon_spent < 7 * alone


@pytest.mark.few(1)
@pytest.mark.usefixtures("two_workers")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_search_that_may_raise_stops_before_the_fit_that_would_exceed_the_ceiling(rows, n_jobs):
    ledger = PrivacyLedger(epsilon=4.0)
    search = GridSearchCV(fair(ledger=ledger), {"gamma": [0.05, 0.2]}, cv=THREE, n_jobs=n_jobs, error_score="raise")
    with pytest.raises(BudgetExceededError, match=r"FairPATEClassifier would bring .* over its ceiling of 4"):
        search.fit(rows.X, rows.y, X_public=rows.public)
    assert len(ledger.entries) == 3 and ledger.epsilon_spent <= 4.0


def test_a_search_that_records_failures_says_so_for_each_refused_fit(rows):
    ledger = PrivacyLedger(epsilon=4.0)
    search = GridSearchCV(fair(ledger=ledger), {"gamma": [0.05, 0.2]}, cv=THREE, refit=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        search.fit(rows.X, rows.y, X_public=rows.public)
    (failed,) = [w for w in caught if "fits failed" in str(w.message)]
    assert "3 fits failed out of a total of 6" in str(failed.message)
    assert "BudgetExceededError" in str(failed.message) and "over its ceiling of 4" in str(failed.message)
    results = [search.cv_results_[f"split{i}_test_score"] for i in range(3)]
    assert np.isnan(results).sum() == 3 and len(ledger.entries) == 3


def test_the_refit_is_a_fit_like_any_other(rows):
    ledger = PrivacyLedger(epsilon=4.0)
    search = GridSearchCV(fair(ledger=ledger), {"gamma": [0.1]}, cv=THREE)
    with pytest.raises(BudgetExceededError, match="over its ceiling"):
        search.fit(rows.X, rows.y, X_public=rows.public)
    assert len(ledger.entries) == 3


# ---- containers, labels, groups ------------------------------------------------------------------------------
def test_dataframe_in_keeps_names(rows):
    public = PublicData(frame(rows.X_public), pd.Series(rows.groups_public))
    model = fair().fit(frame(rows.X), pd.Series(rows.y), X_public=public)
    assert list(model.feature_names_in_) == ["age", "hours", "pay", "score"] and model.n_features_in_ == 4
    model.predict(frame(rows.X))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame(rows.X)[["hours", "age", "pay", "score"]])
    with pytest.raises(ValueError, match="X_public of FairPATEClassifier must have the columns of X"):
        fair().fit(frame(rows.X), rows.y, X_public=PublicData(public.X.iloc[:, ::-1], rows.groups_public))


@pytest.mark.few(1)
@pytest.mark.parametrize("voting", ["soft", "confident", "gnmax"])
def test_more_classes_and_groups_with_string_labels(voting):
    X, y, groups = make_rows(1500, n_classes=4, n_groups=3, seed=1)
    names, regions = np.array(["none", "low", "mid", "high"]), np.array(["north", "south", "west"])
    model = accurate(n_teachers=12, voting=voting, gamma=0.2, gate=VoteGate(min_count=20)).set_params(
        classes=names.tolist()
    )
    model.fit(X[:1000], names[y[:1000]], X_public=PublicData(X[1000:], regions[groups[1000:]]))
    assert model.classes_.tolist() == sorted(names) and model.groups_.tolist() == regions.tolist()
    assert model.released_gap_ <= 0.2 and set(model.rejection_rate_by_group_) == set(regions)
    probabilities = model.predict_proba(X)
    assert probabilities.shape == (1500, 4)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    predicted = model.predict(X)
    np.testing.assert_array_equal(predicted, model.classes_[probabilities.argmax(axis=1)])
    assert model.score(X, names[y]) == np.mean(predicted == names[y]) > 0.5
    labels = model.released_labels_
    assert set(labels[model.answered_mask_]) <= set(names) and set(labels[~model.answered_mask_]) <= {None}


def test_columns_of_a_dataframe_form_intersections(rows):
    names = np.array(["f", "m"])[rows.groups_public]
    public = PublicData(rows.X_public, pd.DataFrame({"sex": names, "age": np.arange(200) % 2}))
    model = fair(gamma=0.3, gate=VoteGate(min_count=5)).fit(rows.X, rows.y, X_public=public)
    assert model.groups_.tolist() == [("f", 0), ("f", 1), ("m", 0), ("m", 1)]
    assert set(model.rejection_rate_by_group_) == set(model.groups_.tolist())
    given = [("m", 1), ("m", 0), ("f", 1), ("f", 0)]
    assert (
        fair(gamma=0.3, gate=VoteGate(min_count=5), groups=given).fit(rows.X, rows.y, X_public=public).groups_.tolist()
        == given
    )
    with pytest.raises(ValueError, match="have no public row"):
        fair(groups=[*given, ("x", 0)]).fit(rows.X, rows.y, X_public=public)


@pytest.mark.few(3)
@pytest.mark.parametrize("columns", ["sex", ["sex"], [4], 4, -1])
def test_sensitive_columns_are_groups_and_no_features(rows, columns):
    private, public = table(rows.X, rows.groups), table(rows.X_public, rows.groups_public)
    model = accurate(sensitive_columns=columns, gamma=0.1).fit(private, rows.y, X_public=public)
    assert model.n_features_in_ == 5 and list(model.feature_names_in_)[-1] == "sex"
    assert model.groups_.tolist() == ["f", "m"] and model.student_.n_features_in_ == 4
    np.testing.assert_array_equal(model.predict(private), model.predict(private.assign(sex="neither")))
    np.testing.assert_array_equal(model.predict(private), model.predict(private.assign(sex=None)))
    given = {"sensitive_features": private["sex"], "X_public": PublicData(rows.X_public, public["sex"])}
    beside = accurate(gamma=0.1).fit(rows.X, rows.y, **given)
    # The same numbers in another memory layout: equal up to the order of summation.
    np.testing.assert_allclose(model.predict_proba(private), beside.predict_proba(rows.X), rtol=1e-9)


@pytest.mark.parametrize("parts", [{"student": LogisticRegression()}, {"gate": "labels"}], ids=["student", "gate"])
def test_groups_of_protected_rows_are_not_read_where_nothing_would_follow_from_them(rows, parts):
    private, public = table(rows.X, rows.groups), table(rows.X_public, rows.groups_public)
    by_column, by_argument = accurate(sensitive_columns="sex", gamma=1.0, **parts), accurate(gamma=1.0, **parts)
    expected = by_column.fit(private, rows.y, X_public=public).predict_proba(private)
    for values in ("canary", None, np.nan):
        model = clone(by_column).fit(private.assign(sex=values), rows.y, X_public=public)
        np.testing.assert_array_equal(model.predict_proba(private), expected)
    expected = by_argument.fit(rows.X, rows.y, X_public=rows.public).predict_proba(rows.X)
    model = clone(by_argument).fit(rows.X, rows.y, sensitive_features=object(), X_public=rows.public)
    np.testing.assert_array_equal(model.predict_proba(rows.X), expected)


def test_two_sensitive_columns_of_an_array(rows):
    private = np.column_stack([rows.groups, rows.X, np.arange(400) % 2])
    public = np.column_stack([rows.groups_public, rows.X_public, np.arange(200) % 2])
    model = fair(sensitive_columns=[0, -1], gamma=0.3, gate=VoteGate(min_count=5)).fit(private, rows.y, X_public=public)
    assert model.groups_.tolist() == [(0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0)]
    assert model.n_features_in_ == private.shape[1]


@pytest.mark.parametrize("how", ["argument", "column"])
def test_groups_of_own_rows_come_with_the_private_rows(rows, how):
    X = np.column_stack([rows.groups, rows.X]) if how == "column" else rows.X
    model = fair(epsilon=20.0, sensitive_columns=0 if how == "column" else None, groups=[0, 1])
    model.fit(X, rows.y, **({} if how == "column" else {"sensitive_features": rows.groups}))
    assert model.n_queries_ == 1000 and list(model.groups_) == [0, 1]
    assert model.student_.n_features_in_ == rows.X.shape[1]


# ---- processes and caches ------------------------------------------------------------------------------------
CALLS = []


class CountingTeacher(GaussianNB):
    def fit(self, X, y):
        CALLS.append(len(X))
        return super().fit(X, y)


@pytest.mark.parametrize("as_object", [False, True], ids=["path", "Memory"])
def test_memory_trains_the_teachers_of_a_sweep_once(rows, tmp_path, as_object):
    CALLS.clear()
    _rehearsal._PASSED.clear()
    memory = joblib.Memory(tmp_path, verbose=0) if as_object else str(tmp_path)
    ledger = PrivacyLedger()
    released = []
    for gamma in (0.05, 0.1, None):
        model = fair(teacher=CountingTeacher(), memory=memory, gamma=gamma, ledger=ledger)
        released.append(model.fit(rows.X, rows.y, X_public=rows.public).released_votes_)
    # Ten parts of 40 rows, and one rehearsal on as many public ones: once, for all fits with the same public rows.
    assert len(CALLS) == 11 and sum(CALLS) == 440
    assert len(ledger.entries) == 3  # fresh noise each time, and each time paid for
    assert not np.array_equal(released[0], released[1])
    fair(teacher=CountingTeacher(), memory=memory, random_state=1).fit(rows.X, rows.y, X_public=rows.public)
    assert len(CALLS) == 21  # another partition: other teachers


@pytest.mark.slow
@pytest.mark.usefixtures("two_workers")
def test_estimators_travel_to_worker_processes_and_back(rows):
    def fit(gamma):  # a closure: sent with cloudpickle
        return fair(gamma=gamma, noise_seed=0).fit(rows.X, rows.y, X_public=rows.public)

    there = joblib.Parallel(n_jobs=2)(joblib.delayed(fit)(gamma) for gamma in (0.1, None))
    here = [fit(gamma) for gamma in (0.1, None)]
    for first, second in zip(there, here, strict=True):
        np.testing.assert_array_equal(first.released_votes_, second.released_votes_)
        np.testing.assert_array_equal(first.predict(rows.X), second.predict(rows.X))


@pytest.mark.few(1)
@pytest.mark.usefixtures("two_workers")
@pytest.mark.parametrize("teacher", [LogisticRegression(), "logistic"])
def test_teachers_trained_in_processes_are_the_same(rows, teacher):
    votes = []
    for n_jobs in (None, 2):
        model = fair(teacher=teacher, n_jobs=n_jobs, noise_seed=0).fit(rows.X, rows.y, X_public=rows.public)
        votes.append(model.released_votes_)
    np.testing.assert_array_equal(*votes)


def test_given_student_keeps_its_random_state_public(rows):
    for random_state in (None, 7):
        student = DecisionTreeClassifier(max_features=1, random_state=random_state)
        model = accurate(student=student).fit(rows.X, rows.y, X_public=rows.public)
        assert student.random_state is random_state
        model = model.refit(gamma=1.0)  # that of a student that stays as it is
        assert model.student_.random_state is not None
        if random_state is not None:
            assert model.student_.random_state == 7


@pytest.mark.slow
def test_scores_of_other_metrics_follow_the_predictions(rows):
    model = accurate().fit(rows.X, rows.y, X_public=rows.public)
    weights = np.linspace(1, 2, 200)
    expected = np.average(model.predict(rows.X_public) == rows.y_public, weights=weights)
    assert model.score(rows.X_public, rows.y_public, sample_weight=weights) == pytest.approx(expected)
    scores = cross_val_score(accurate(), rows.X, rows.y, cv=THREE, params={"X_public": rows.public}, scoring="roc_auc")
    assert scores.min() > 0.8
    counts = np.zeros((2, 2), dtype=int)
    labels = model.released_labels_[model.answered_mask_].astype(int)
    np.add.at(counts, (rows.groups_public[model.query_indices_][model.answered_mask_], labels), 1)
    assert model.released_gap_ == largest_disparity(counts)


def test_the_page_of_a_fitted_estimator_states_its_guarantee_first(rows):
    model = PATEClassifier(n_teachers=5, classes=[0, 1], random_state=0)
    assert "not covered" not in model._repr_html_()
    page = model.fit(rows.X, rows.y, X_public=rows.X_public)._repr_html_()
    assert str(model.privacy_) in page
    assert page.index("A score on the private rows is not covered") < page.index("Fitted attributes")
    table = pd.DataFrame(rows.X).add_prefix("c").assign(y=rows.y)
    schema = Schema.release(table, label="y", epsilon=5, delta=1e-6)
    assert "Released: " in PFGuardGenerator(balance=None, schema=schema, random_state=0).fit(table)._repr_html_()
