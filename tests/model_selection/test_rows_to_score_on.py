"""Public rows to score on are compared with the private ones before a search is charged for models that they judge."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skfairdp import (
    FairDPSGDClassifier,
    FairPATEClassifier,
    ParetoSearchCV,
    PrivacyLedger,
    PrivateSearchCV,
    PublicData,
    PublicPreprocessor,
    Schema,
    SyntheticDataClassifier,
)
from skfairdp.exceptions import UtilityWarning
from skfairdp.schema import Category, Number
from tests._tools.catalogue import make_rows

pytestmark = [
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning"),
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.PrivacyLeakWarning"),
]

R = make_rows()
NAMES = list("abcd")
X = pd.DataFrame(R.X, columns=NAMES)
CHECK = pd.DataFrame(R.X_public, columns=NAMES)
Y, GROUPS = np.asarray(R.y_public), R.validation.sensitive_features
SEARCHES = {
    "pareto": lambda model, **more: ParetoSearchCV(model, {}, **more),
    "private": lambda model, **more: PrivateSearchCV(model, {}, **{"scoring": "accuracy", **more}),
}


def model(**given):
    return FairPATEClassifier(**{"n_teachers": 5, "classes": [0, 1], "groups": [0, 1], "random_state": 0, **given})


def with_cell(table, value):
    table = table.copy()
    table.iloc[3, 1] = value
    return table


UNFIT = {
    "columns in another order": (PublicData(CHECK[NAMES[::-1]], GROUPS, Y), "must have the columns of X"),
    "columns of other names": (PublicData(CHECK.add_prefix("v"), GROUPS, Y), "must have the columns of X"),
    "a column too few": (PublicData(CHECK[NAMES[:3]], GROUPS, Y), "must have the 4 columns of X"),
    "a column too many": (PublicData(CHECK.assign(e=0), GROUPS, Y), "must have the 4 columns of X"),
    "an array with a column too few": (PublicData(R.X_public[:, :3], GROUPS, Y), "must have the 4 columns of X"),
    "a missing cell": (PublicData(with_cell(CHECK, np.nan), GROUPS, Y), "cannot read.*NaN"),
    "an infinite cell": (PublicData(with_cell(CHECK, np.inf), GROUPS, Y), "cannot read.*infinity"),
    "a cell of text": (PublicData(with_cell(CHECK.astype(object), "x"), GROUPS, Y), "cannot read.*'x'"),
    "labels as texts": (PublicData(CHECK, GROUPS, Y.astype(str)), "holds labels that are not among its 'classes'"),
    "labels of -1 and 1": (PublicData(CHECK, GROUPS, 2 * Y - 1), r"holds labels.*\[-1\]"),
    "groups as texts": (PublicData(CHECK, np.asarray(GROUPS).astype(str), Y), "holds groups that are not among"),
    "no row": (PublicData(CHECK[:0], np.asarray(GROUPS)[:0], Y[:0]), "has no rows"),
}


def refused(search, match, *, private=X, y=R.y, check, **more):
    ledger = search.estimator.get_params()[next(n for n in search.estimator.get_params() if n.endswith("ledger"))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match=match):
            search.fit(private, y, validation=check, **more)
    assert ledger.entries == ()


@pytest.mark.parametrize("kind", SEARCHES)
@pytest.mark.parametrize("name", UNFIT)
def test_rows_that_no_model_could_be_scored_on_are_refused_before_the_charge(kind, name):
    check, match = UNFIT[name]
    search = SEARCHES[kind](model(ledger=PrivacyLedger()))
    refused(search, match, check=check, sensitive_features=R.groups)


@pytest.mark.parametrize("kind", SEARCHES)
def test_steps_of_a_pipeline_are_tried_on_the_rows_to_score_on(kind):
    public = PublicPreprocessor(StandardScaler(), R.X_public)
    inside = make_pipeline(public, model(ledger=PrivacyLedger()))
    check = PublicData(with_cell(CHECK, np.inf).to_numpy(), GROUPS, Y)
    refused(SEARCHES[kind](inside), "cannot read", private=R.X, check=check, sensitive_features=R.groups)


@pytest.mark.parametrize("kind", SEARCHES)
def test_a_table_with_a_schema_is_read_by_it(kind):
    schema = Schema(
        {n: Number(-9, 9) for n in NAMES} | {"y": Category([0, 1]), "g": Category([0, 1])}, label="y", groups="g"
    )
    table, public = X.assign(y=R.y, g=R.groups), CHECK.assign(y=Y, g=GROUPS)
    inside = FairPATEClassifier(n_teachers=5, schema=schema, random_state=0, ledger=PrivacyLedger())
    cases = {
        "lacks|misses|needs|has no": PublicData(public.drop(columns="a"), y=Y),
        "values that its schema does not allow": PublicData(with_cell(public, np.nan), y=Y),
        "none of the classes": PublicData(public, y=Y + 5),
        "does not list": PublicData(public.assign(g=7), y=Y),
    }
    for match, check in cases.items():
        refused(SEARCHES[kind](inside), match, private=table, y=None, check=check)
    if kind == "pareto":
        fitted = SEARCHES[kind](inside).fit(table, validation=PublicData(public, y=Y))
        assert np.isfinite(fitted.cv_results_["mean_test_disparity"]).all()


def test_a_table_of_any_cells_is_accepted_where_the_learner_reads_it():
    inside = SyntheticDataClassifier(
        LogisticRegression(), classes=[0, 1], groups=[0, 1], bounds=(-9.0, 9.0), random_state=0, noise_seed=0
    )  # fmt: skip
    check = PublicData(CHECK, GROUPS, Y)
    fitted = ParetoSearchCV(inside, {}).fit(X, R.y, sensitive_features=R.groups, validation=check)
    assert np.isfinite(fitted.cv_results_["mean_test_accuracy"]).all()


@pytest.mark.parametrize("kind", SEARCHES)
@pytest.mark.parametrize("scoring", [{"f": (lambda y, p, **_: 1 / 0, "maximize")}, {"f": "neg_mean_gamma_deviance"}])
def test_an_objective_that_cannot_be_computed_is_refused_before_the_charge(kind, scoring):
    search = SEARCHES[kind](model(ledger=PrivacyLedger()), scoring=scoring)
    refused(search, "objective 'f' of .* cannot be computed", check=R.validation, sensitive_features=R.groups)


@pytest.mark.parametrize("kind", SEARCHES)
def test_a_search_without_any_score_says_why(kind):
    def broken(fitted, X, y):
        raise KeyError("no such thing")

    search = SEARCHES[kind](model(noise_seed=0), scoring={"mine": broken})
    with pytest.warns(UtilityWarning, match="raised KeyError: 'no such thing'"):
        search.fit(X, R.y, sensitive_features=R.groups, validation=PublicData(CHECK, GROUPS, Y))
    assert hasattr(search, "privacy_")


@pytest.mark.parametrize("n_jobs", [0, 2.5])
def test_a_number_of_jobs_that_joblib_refuses_costs_nothing(n_jobs):
    ledger = PrivacyLedger()
    for search in (ParetoSearchCV(model(ledger=ledger), {}, n_jobs=n_jobs), model(ledger=ledger, n_jobs=n_jobs)):
        with pytest.raises(ValueError, match="n_jobs"):
            search.fit(R.X, R.y, sensitive_features=R.groups)
    assert ledger.entries == ()


BAD = {"student": [None, LogisticRegression(C=-1)], "gamma": [0.05, -1.0], "constraints": [None, "no such constraint"]}


@pytest.mark.parametrize("name", BAD)
def test_a_candidate_that_differs_in_what_is_free_is_tried_before_the_charge(name):
    ledger = PrivacyLedger(epsilon=100)
    search = ParetoSearchCV(model(ledger=ledger), {name: BAD[name]}, error_score="raise")
    with pytest.raises(ValueError, match=r"C|gamma|constraint"):
        search.fit(R.X, R.y, sensitive_features=R.groups, X_public=R.public, validation=R.validation)
    assert ledger.entries == ()
    with pytest.warns(match=r"Candidates \[1\] cannot be fitted"):
        fitted = search.set_params(error_score=np.nan).fit(
            R.X, R.y, sensitive_features=R.groups, X_public=R.public, validation=R.validation
        )
    assert fitted.cv_results_["status"].tolist() == ["scored", "failed"]
    assert fitted.best_index_ == 0


def test_dpsgd_is_not_asked_for_groups_that_only_the_private_rows_have():
    inside = FairDPSGDClassifier(classes=[0, 1], groups=[0, 1], random_state=0, noise_seed=0)
    search = ParetoSearchCV(inside, {}, scoring="accuracy")
    fitted = search.fit(X, R.y, sensitive_features=R.groups, validation=PublicData(CHECK, y=Y))
    assert np.isfinite(fitted.cv_results_["mean_test_accuracy"]).all()
