"""Searches over private folds of a raw table: classes and groups are the schema's, none is read from the rows."""

import functools
import warnings

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skfairdp import (
    IDP3,
    FairPATEClassifier,
    ParetoSearchCV,
    PFLDClassifier,
    PrivateSearchCV,
    PublicData,
    SyntheticDataClassifier,
)
from skfairdp.exceptions import PrivacyLeakWarning
from skfairdp.gradient import mlp
from skfairdp.pate import VoteGate
from tests._tools.raw import RAW_SCHEMA, raw_rows
from tests._tools.replay import Recording
from tests.schema.test_raw_replay import OPEN, ROWS, nasty

pytestmark = pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning")

TABLE, TEST = raw_rows(240, seed=0), raw_rows(40, seed=2)
PUBLIC = raw_rows(90, seed=1)
GIVEN = {"schema": RAW_SCHEMA, "random_state": 0}
CODES = TABLE["income"].eq(">50K").to_numpy(dtype=int)


def synthetic(**options):
    return SyntheticDataClassifier(LogisticRegression(), epsilon=8.0, n_samples=300, **GIVEN, **options)


def fair_pate(**options):
    return FairPATEClassifier(
        n_teachers=6, epsilon=8.0, gate=VoteGate(min_count=5), public_data=PublicData(PUBLIC), **GIVEN, **options
    )


def pfld(**options):
    return PFLDClassifier(epsilon=8.0, net=mlp((), max_epochs=1), dual_steps=2, **GIVEN, **options)


SEARCHED = {
    "synthetic": (synthetic, {"n_samples": [200, 300]}),
    "fair_pate": (fair_pate, {"gamma": [0.1, 0.3]}),
    "pfld": (pfld, {"epsilon": [6.0, 8.0]}),
}
every_method = pytest.mark.parametrize("name", SEARCHED)
both_searches = pytest.mark.parametrize("cls", [ParetoSearchCV, PrivateSearchCV])


def search(name, cls=ParetoSearchCV, wrap=lambda model: model, prefix="", **options):
    make, grid = SEARCHED[name]
    more = {"scoring": ("accuracy", "disparity"), "cv": 2} if cls is ParetoSearchCV else {"bounds": BOUND}
    grid = {prefix + key: values for key, values in grid.items()}
    return cls(wrap(make(**options)), grid, score_epsilon=6.0, random_state=0, **more)


BOUND = {"disparity": "<= 0.9"}


def scores(found):
    results = getattr(found, "cv_results_", {"best": [found.best_score_]})
    return {key: values for key, values in results.items() if key.startswith(("mean_test", "best"))}


def fitted(found, table=TABLE, *arguments, **given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", PrivacyLeakWarning)
        return found.fit(table, *arguments, **given)


@pytest.mark.few(1)
@both_searches
@every_method
def test_a_raw_table_is_searched_and_scored_by_its_schema_alone(name, cls):
    found = fitted(search(name, cls))
    assert found.classes_.tolist() == ["<=50K", ">50K"] and set(found.predict(TEST)) <= {"<=50K", ">50K"}
    assert found.score(TEST) == np.mean(found.predict(TEST) == TEST["income"])
    public = {fact.name: fact for fact in found.privacy_.public}
    assert public["classes"].how == public["names of the groups"].how == public["columns of X"].how == "given"
    if cls is ParetoSearchCV:
        assert (found.cv_results_["mean_test_accuracy"] > 0.4).all()
        assert np.isfinite(found.cv_results_["mean_test_disparity"]).all()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@every_method
def test_label_and_groups_may_be_columns_or_arguments(name):
    plain = fitted(search(name, noise_seed=0))
    apart = TABLE.drop(columns=["income", "sex"])
    for y in (TABLE["income"], TABLE["income"].tolist(), CODES):
        other = fitted(search(name, noise_seed=0), apart, y, sensitive_features=TABLE["sex"])
        for key, values in scores(plain).items():
            np.testing.assert_array_equal(values, scores(other)[key])
    polars = fitted(search(name, noise_seed=0), pl.from_pandas(TABLE))
    for key, values in scores(plain).items():
        np.testing.assert_array_equal(values, scores(polars)[key])


@pytest.mark.slow
@every_method
def test_the_schema_may_be_that_of_the_last_step_of_a_pipeline(name):
    step = SEARCHED[name][0]().__class__.__name__.lower()

    def wrapped(model):
        return make_pipeline(FunctionTransformer(), model)

    found = fitted(search(name, wrap=wrapped, prefix=f"{step}__", noise_seed=0))
    assert isinstance(found.best_estimator_, Pipeline)
    for key, values in scores(fitted(search(name, noise_seed=0))).items():
        # Candidates share no release through a Pipeline, so that all but the first get other noise.
        np.testing.assert_array_equal(values[:1], scores(found)[key][:1])


def test_public_rows_to_score_on_have_the_groups_of_their_columns():
    inside = IDP3(synthetic(), gamma=0.2, min_count=3, schema=RAW_SCHEMA)
    validation = PublicData(PUBLIC, y=PUBLIC["income"].to_numpy())
    found = fitted(ParetoSearchCV(inside, {"gamma": [0.05, 0.9]}, refit=False), validation=validation)
    assert np.isfinite(found.pareto_table_[["accuracy", "disparity", "coverage"]].to_numpy(float)).all()


def test_a_table_without_its_label_is_an_error_before_anything_is_spent():
    with pytest.raises(ValueError, match=r"ParetoSearchCV requires y to be passed.*no column 'income'"):
        search("synthetic").fit(TABLE.drop(columns="income"))


@functools.cache
def recorded(name):
    make = functools.partial(_of_seed, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = Recording(make, lambda estimator, table: estimator.fit(table), TABLE, _seen)
    assert found.seen.error is None, found.seen.error
    return found


def _of_seed(name, **given):
    return search(name, **given).set_params(estimator__schema=OPEN)


def _seen(found):
    return {"predicted": found.predict(TEST), **scores(found)}


@pytest.mark.few(2)
@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("name", ["synthetic", "fair_pate"])
def test_an_unforeseen_private_record_does_not_show(name, row):
    cells = nasty(row).iloc[3]
    neighbour = TABLE.astype(object).copy()
    for column in TABLE:
        neighbour.at[3, column] = cells[column]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seen = recorded(name).on(neighbour)
    assert not seen.differences(times=1.0)
