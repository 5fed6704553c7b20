"""scikit-learn's machinery on raw tables: ensembles that only call fit(X, y), searches, pipelines."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from skfairdp import (
    FairDPSGDClassifier,
    FairnessCalibrator,
    FairPATEClassifier,
    PATEClassifier,
    PublicData,
    PublicPreprocessor,
    SchemaEncoder,
    SyntheticDataClassifier,
)
from skfairdp.gradient import SignedLoss, mlp
from skfairdp.pate import VoteGate
from skfairdp.schema import Category, Schema
from tests._tools.raw import RAW_SCHEMA, raw_rows

pytestmark = [
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.PrivacyLeakWarning"),
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning"),
]

TABLE = raw_rows(600, seed=0)
TEST = raw_rows(200, seed=2)
PUBLIC = PublicData(raw_rows(150, seed=1))
GIVEN = {"schema": RAW_SCHEMA, "noise_seed": 0, "random_state": 0, "epsilon": 20.0}
PATE = PATEClassifier(n_teachers=8, public_data=PUBLIC, **GIVEN)
FAIR = FairPATEClassifier(n_teachers=8, gamma=0.5, gate=VoteGate(min_count=5), public_data=PUBLIC, **GIVEN)
SIGNED = FairDPSGDClassifier(net=mlp((), max_epochs=5, batch_size=100), parity=SignedLoss(), **GIVEN)
MAJORITY = (TEST["income"] == "<=50K").mean()


@pytest.mark.few(1)
@pytest.mark.parametrize("library", [None, pl.from_pandas], ids=["pandas", "polars"])
def test_a_stack_of_private_models_learns_from_a_raw_table(library):
    table, test = (rows if library is None else library(rows) for rows in (TABLE, TEST))
    model = StackingClassifier([("pate", PATE), ("fair", FAIR), ("signed", SIGNED)], cv=2)
    model.fit(table, TABLE["income"])
    assert model.classes_.tolist() == ["<=50K", ">50K"]
    assert model.score(test, TEST["income"]) > MAJORITY + 0.1


def test_a_stack_mixes_private_models_and_pipelines_by_the_same_schema():
    plain = make_pipeline(SchemaEncoder(RAW_SCHEMA), LogisticRegression())
    synthetic = SyntheticDataClassifier(LogisticRegression(), n_samples=600, **GIVEN)
    model = StackingClassifier([("synthetic", synthetic), ("plain", plain)], cv=2).fit(TABLE, TABLE["income"])
    assert model.score(TEST, TEST["income"]) > MAJORITY + 0.1


def test_private_models_vote_softly():
    model = VotingClassifier([("pate", PATE), ("fair", FAIR)], voting="soft").fit(TABLE, TABLE["income"])
    assert model.score(TEST, TEST["income"]) > MAJORITY + 0.1
    assert all(member.public_data is PUBLIC for member in model.estimators_)


SYNTHETIC = SyntheticDataClassifier(LogisticRegression(), n_samples=600, **GIVEN)
SEARCHED = GridSearchCV(FAIR, {"gamma": [0.3, 0.8]}, cv=2)
OTHER_LABELS = {"texts": None, "numbers": {"<=50K": 1, ">50K": 2}, "texts of numbers": {"<=50K": "1", ">50K": "2"}}


@pytest.mark.few(3)
@pytest.mark.parametrize("labels", OTHER_LABELS.values(), ids=OTHER_LABELS)
@pytest.mark.parametrize(
    "member", [PATE, FAIR, SIGNED, SYNTHETIC, FairnessCalibrator(SYNTHETIC), SEARCHED],
    ids=["pate", "fair", "signed", "synthetic", "calibrated", "searched"],
)  # fmt: skip
def test_private_models_vote_by_number_whatever_the_classes_are(member, labels):
    table, y, truth, schema = TABLE, TABLE["income"], TEST["income"], RAW_SCHEMA
    if labels is not None:
        y, truth = y.map(labels), truth.map(labels)
        schema = Schema({**schema.columns, "income": Category([*labels.values()])}, label="income", groups="sex")
        table = table.assign(income=y)
    renamed = {name: schema for name in member.get_params() if name.split("__")[-1] == "schema"}
    member = clone(member).set_params(**{name: value for name, value in renamed.items() if member.get_params()[name]})
    model = VotingClassifier([("one", member), ("two", member)]).fit(table, y)  # scikit-learn's default: hard
    assert model.score(TEST, truth) > MAJORITY + 0.1
    assert set(model.predict(TEST)) == set(model.classes_) == set(y)


def test_a_stack_of_answers_learns_from_numbers():
    model = StackingClassifier([("one", PATE), ("two", FAIR)], cv=2, stack_method="predict")
    assert model.fit(TABLE, TABLE["income"]).score(TEST, TEST["income"]) > MAJORITY + 0.1


def test_labels_without_a_schema_are_numbered_as_well():
    X, X_test = (SchemaEncoder(RAW_SCHEMA).transform(rows) for rows in (TABLE, TEST))
    member = SyntheticDataClassifier(LogisticRegression(), n_samples=600, classes=["<=50K", ">50K"], epsilon=20.0,
                                     bounds=(-1.0, 1.0), noise_seed=0, random_state=0)  # fmt: skip
    plain = PATEClassifier(n_teachers=8, classes=["<=50K", ">50K"], public_data=PublicData(X_test), epsilon=20.0,
                           noise_seed=0, random_state=0)  # fmt: skip
    model = VotingClassifier([("one", member), ("two", plain), ("three", member)]).fit(X, TABLE["income"])
    assert model.score(X_test, TEST["income"]) > MAJORITY + 0.1


def test_the_form_of_answers_follows_from_who_calls_and_never_from_the_private_labels():
    numbers = (TABLE["income"] == ">50K").to_numpy(dtype=int)
    with pytest.warns(UserWarning, match="positions of the classes"):
        model = clone(PATE).fit(TABLE, numbers)  # nobody but an ensemble says that numbers are asked for
    assert set(model.predict(TEST)) == {"<=50K", ">50K"}
    (member,) = VotingClassifier([("one", PATE)]).fit(TABLE, TABLE["income"]).estimators_
    assert set(member.predict(TEST)) == {0, 1} and member.classes_.tolist() == ["<=50K", ">50K"]
    assert member.score(TEST, (TEST["income"] == ">50K").astype(int)) > MAJORITY
    again = member.fit(TABLE)
    assert set(again.predict(TEST)) == {"<=50K", ">50K"} and again.score(TEST) > MAJORITY


def test_a_search_needs_neither_y_nor_metadata():
    folds = KFold(2)  # without y scikit-learn takes these, and with it stratified ones
    with_y = GridSearchCV(FAIR, {"gamma": [0.3, 0.8]}, cv=folds).fit(TABLE, TABLE["income"])
    without = GridSearchCV(FAIR, {"gamma": [0.3, 0.8]}, cv=folds).fit(TABLE)
    assert with_y.best_score_ == without.best_score_ > MAJORITY
    assert without.best_estimator_.public_data is PUBLIC


def test_cross_validation_gives_one_answer_a_row():
    scores = cross_val_score(PATE, TABLE, cv=2)
    assert scores.min() > MAJORITY
    labels = cross_val_predict(PATE, TABLE, TABLE["income"], cv=2)
    proba = cross_val_predict(PATE, TABLE, TABLE["income"], cv=2, method="predict_proba")
    np.testing.assert_array_equal(proba.argmax(axis=1) == 1, labels == ">50K")


def test_probabilities_are_calibrated_around_a_raw_table():
    model = CalibratedClassifierCV(PATE, cv=2).fit(TABLE, TABLE["income"])
    assert model.score(TEST, TEST["income"]) > MAJORITY


# ---- PublicData in a pipeline --------------------------------------------------------------------------------------
def test_a_pipeline_encodes_public_rows_with_transform_input(routing):
    unread = {"schema": None, "public_data": None}
    model = clone(FAIR).set_params(**unread, classes=["<=50K", ">50K"], groups=["Female", "Male"])
    pipeline = Pipeline([("encode", SchemaEncoder(RAW_SCHEMA)), ("model", model)], transform_input=["X_public"])
    pipeline.fit(TABLE, TABLE["income"], X_public=PUBLIC)
    direct = clone(FAIR).fit(TABLE)
    np.testing.assert_array_equal(pipeline.predict(TEST), direct.predict(TEST))
    search = GridSearchCV(pipeline, {"model__gamma": [0.3, 0.8]}, cv=2)
    assert search.fit(TABLE, TABLE["income"], X_public=PUBLIC).best_score_ > MAJORITY


def test_a_pipeline_scales_public_rows_with_transform_input(routing):
    X, X_public = TABLE[["age"]].astype(float), PUBLIC.X[["age"]].astype(float)
    public = PublicData(X_public, PUBLIC.X["sex"])
    scaler = PublicPreprocessor(StandardScaler().set_output(transform="pandas"), X_public=public)
    model = FairPATEClassifier(n_teachers=8, gamma=0.5, gate=VoteGate(min_count=5), classes=["<=50K", ">50K"],
                               noise_seed=0, random_state=0)  # fmt: skip
    pipeline = Pipeline([("scale", scaler), ("model", model)], transform_input=["X_public"])
    pipeline.fit(X, TABLE["income"], X_public=public)
    scaled = StandardScaler().set_output(transform="pandas").fit(X_public)
    direct = clone(model).fit(scaled.transform(X), TABLE["income"], X_public=PublicData(
        scaled.transform(X_public), PUBLIC.X["sex"]))  # fmt: skip
    rows = TEST[["age"]].astype(float)
    np.testing.assert_array_equal(pipeline.predict(rows), direct.predict(scaled.transform(rows)))


def test_public_data_keeps_its_groups_and_labels_on_the_way():
    encoded = SchemaEncoder(RAW_SCHEMA).transform(PUBLIC)
    assert isinstance(encoded, PublicData) and encoded.y is None
    assert encoded.sensitive_features["sex"].tolist() == PUBLIC.X["sex"].tolist()
    kept = SchemaEncoder(RAW_SCHEMA).transform(PublicData(PUBLIC.X, ["a"] * 150, PUBLIC.X["income"]))
    assert kept.sensitive_features == ["a"] * 150
    pd.testing.assert_series_equal(kept.y, PUBLIC.X["income"])
