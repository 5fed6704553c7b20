"""Searches and thresholds by subject over rows in chunks: the folds, tables and answers of the same rows in memory."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skfairdp import (
    FairPATEClassifier,
    KeyedRows,
    ParetoSearchCV,
    PrivacyLedger,
    PrivateSearchCV,
    PublicData,
    SchemaEncoder,
    SyntheticDataClassifier,
)
from skfairdp.postprocessing import PrivateThresholds
from skfairdp.privacy import NeighboringRelation
from skfairdp.schema import Schema
from tests._tools.engines import Retried
from tests._tools.inside import ChunkScores, ScoreTable, read_scoring, read_search
from tests._tools.sources import FixedAnswers, installed, moves, recording_noise
from tests._tools.spark import spark_frame
from tests.rows.test_streamed_generator import of_engine
from tests.rows.test_streamed_subjects import COLUMNS, PUBLIC, SCHEMA, SIZES, N, in_chunks, visits, with_other_rows

pytestmark = [
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning"),
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.UtilityWarning"),
    pytest.mark.filterwarnings("ignore:.*given to PrivateThresholds has no privacy_"),
]
ENGINES = ["chunks", "polars chunks", "parquet", "dataset", "lazy", "dask"]
ENCODED = LogisticRegression().fit(SchemaEncoder(SCHEMA).transform(visits(seed=7)), visits(seed=7)["ill"])
RAW = make_pipeline(SchemaEncoder(SCHEMA), LogisticRegression()).fit(visits(seed=7), visits(seed=7)["ill"])


def synthetic(**options):
    return SyntheticDataClassifier(LogisticRegression(), epsilon=8.0, schema=SCHEMA, random_state=0, **options)


def fair_pate(**options):
    return FairPATEClassifier(epsilon=8.0, schema=SCHEMA, n_teachers=9, gamma=0.2, random_state=0, **options)


def folds(X, estimator, grid):
    search = ParetoSearchCV(estimator, grid, cv=3, random_state=0)
    return search.fit(X, subject="patient_id", X_public=PUBLIC)


def holdout(X, estimator, grid):
    search = PrivateSearchCV(estimator, grid, method="selection", test_size=0.3, random_state=0)
    return search.fit(X, subject="patient_id", X_public=PUBLIC)


def shown(searched, X):
    """What is released, and all that a search shows; twice the same where the noise is."""
    with recording_noise(entropy=3) as record:
        search = searched(X)
    scores = [np.asarray(values) for name, values in getattr(search, "cv_results_", {}).items() if "test" in name]
    return [*(np.asarray(release.value) for release in record.releases), *scores, search.predict(visits())], search


def assert_same(found, expected):
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


# ---- searches --------------------------------------------------------------------------------------------------------
SEARCHES = {
    "folds": lambda X: folds(X, fair_pate(), {"gamma": [0.1, 0.3]}),
    "a part held out": lambda X: holdout(X, fair_pate(), {"n_teachers": [6, 9]}),
}


@pytest.mark.few(3)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("search", SEARCHES)
def test_a_search_in_chunks_is_that_in_memory(search, engine, tmp_path):
    table = visits().astype({"patient_id": str})
    expected, here = shown(SEARCHES[search], table)
    found, there = shown(SEARCHES[search], of_engine(engine, table, tmp_path))
    assert_same(found, expected)
    assert here.privacy_.epsilon == there.privacy_.epsilon and here.best_params_ == there.best_params_
    assert there.privacy_.rows_of == "patient_id" and there.privacy_.protects == "subject"


def test_a_search_follows_neither_the_order_of_rows_nor_where_chunks_end():
    search = SEARCHES["a part held out"]
    expected, _ = shown(search, visits())
    mixed = visits().sample(frac=1, random_state=5)
    keyed = KeyedRows(in_chunks(mixed), key="patient_id")
    for X in (mixed, in_chunks(mixed, 11), keyed, Retried(visits(), 40), spark_frame(visits())):
        assert_same(shown(search, X)[0], expected)


def splits_of(X, cv=3, estimator=None):
    search = ParetoSearchCV(synthetic() if estimator is None else estimator, {"n_samples": [300]}, cv=cv)
    nothing = dict.fromkeys(("sensitive_features", "X_public", "sensitive_features_public", "validation"))
    scoring = read_scoring(["accuracy"], owner="ParetoSearchCV")
    return read_search(search, X, None, **nothing, subject="patient_id", objectives=scoring)


def test_a_fold_in_chunks_holds_all_rows_of_its_subjects_and_lists_those_without_rows():
    data = splits_of(in_chunks(with_other_rows(0)))
    seen, listed = [], []
    for train, test in data.splits:
        ids = [set(pd.concat([chunk.table for chunk in part.chunks()])["patient_id"]) for part in (train, test)]
        assert not ids[0] & ids[1] and len(ids[0] | ids[1]) == N - 1
        assert len(train.listed) + len(test.listed) == N and {*train.listed} | {*test.listed} == {
            *data.rows.subjects.hashes
        }
        assert not {*train.listed} & {*test.listed}
        seen += [*ids[1]]
        listed += [*test.listed]
    assert len(seen) == N - 1 and len(listed) == N


def score_tables(X):
    data = splits_of(X)
    kind = ScoreTable(np.array(["f", "m"], dtype=object), 1.0, 1e-5, NeighboringRelation.REPLACE_SUBJECT,
                      np.array(["no", "yes"]), refusals=False)  # fmt: skip
    scores = ChunkScores(kind, [], SCHEMA, "test", data.rows.subjects.hashes)
    return [scores.counts(RAW, test) for _, test in data.splits]


@pytest.mark.parametrize("how", SIZES)
def test_a_subject_with_other_rows_moves_one_score_of_one_fold(how):
    """So the vector of all tables moves by √2 at most; by 1 where the subject has no rows."""
    here = score_tables(in_chunks(visits()))
    assert sum(counts.sum() for counts in here) == N
    for seed in range(6):
        there = score_tables(in_chunks(with_other_rows(SIZES[how], seed, f"p{7 * seed}")))
        moved = np.concatenate([(one - other).ravel() for one, other in zip(here, there, strict=True)])
        assert sorted(np.abs(moved)[moved != 0]) in ([], [1], [1, 1]) and moved.sum() == (how == "none")


def test_what_a_search_shows_of_a_replayed_neighbour_is_the_same():
    search = SEARCHES["folds"]
    with recording_noise(entropy=0) as first:
        one = search(in_chunks(visits()))
    for n in SIZES.values():
        with recording_noise(entropy=0, replay=first) as second:
            other = search(in_chunks(with_other_rows(n)))
        assert [release.declared for release in first.releases] == [release.declared for release in second.releases]
        np.testing.assert_array_equal(one.predict(visits()), other.predict(visits()))
        assert one.privacy_ == other.privacy_


def test_the_number_of_subjects_is_stated_and_charged_and_that_of_rows_is_nowhere():
    ledger, schema = PrivacyLedger(), Schema(COLUMNS, label="ill", groups="sex", subject="patient_id")
    model = SyntheticDataClassifier(LogisticRegression(), epsilon=2.0, schema=schema, random_state=0, ledger=ledger)
    search = ParetoSearchCV(model, {"n_samples": [300, 400]}, cv=2, random_state=0).fit(in_chunks(visits()))
    facts = {fact.name: fact.value for fact in search.privacy_.public}
    assert facts["number of subjects"] == N and "number of private rows" not in facts
    assert not re.search(rf"\b{len(visits())}\b", search.privacy_statement().to_json())
    assert {entry.rows_of for entry in ledger.entries} == {"patient_id"}
    assert ledger.epsilon_spent == pytest.approx(search.privacy_.epsilon)


def test_public_rows_score_a_search_by_subject_in_chunks():
    public = PublicData(PUBLIC, y=np.where(PUBLIC["a"] > 0, "yes", "no"))
    search = ParetoSearchCV(synthetic(), {"n_samples": [300, 400]}, random_state=0)
    found = search.fit(in_chunks(visits()), subject="patient_id", validation=public)
    assert found.privacy_.rows_of == "patient_id" and found.n_splits_ == 0


@pytest.mark.parametrize(
    ("subject", "options", "text"),
    [
        ("nobody", {}, "'subject' must name exactly one column of it"),
        ("patient_id", {"cv": [(np.arange(5), np.arange(5, 9))]}, "a number of folds where subjects are protected"),
        ("patient_id", {"cv": N + 1}, "at most n_samples"),
        (visits()["patient_id"], {}, "'subject' must name exactly one column of it"),
    ],
)
def test_what_cannot_be_searched_by_subject_is_refused_before_anything_is_spent(subject, options, text):
    ledger = PrivacyLedger()
    search = ParetoSearchCV(synthetic(ledger=ledger), {"n_samples": [300]}, **options)
    with pytest.raises(ValueError, match=text):
        search.fit(in_chunks(visits()), subject=subject)
    assert not ledger.entries


# ---- thresholds ------------------------------------------------------------------------------------------------------
def thresholds(model=ENCODED, **options):
    """With the group: of rows in memory it is guessed without, of rows in chunks it is not."""
    given = {"epsilon": 4.0, "schema": SCHEMA, "group_at_prediction": True, "random_state": 0}
    return PrivateThresholds(model, **(given | options))


def tables(X, model=ENCODED):
    with recording_noise(0, entropy=0) as record:
        fitted = thresholds(model).fit(X, subject="patient_id")
    return [*(np.asarray(release.output) for release in record.releases), fitted.predict(visits())], fitted


@pytest.mark.few(2)
@pytest.mark.parametrize("model", [ENCODED, RAW], ids=["encoded", "raw"])
@pytest.mark.parametrize("engine", ENGINES)
def test_thresholds_in_chunks_are_those_in_memory(model, engine, tmp_path):
    table = visits().astype({"patient_id": str})
    expected, here = tables(table, model)
    found, there = tables(of_engine(engine, table, tmp_path), model)
    assert_same(found, expected)
    assert here.privacy_ == there.privacy_ and there.privacy_.rows_of == "patient_id"
    assert expected[0].sum() == expected[1].sum() == expected[2].sum() == N  # one row of each is counted


def test_thresholds_follow_neither_the_order_of_rows_nor_where_chunks_end():
    expected, mixed = tables(visits())[0], visits().sample(frac=1, random_state=2)
    for X in (mixed, in_chunks(mixed, 1), Retried(visits(), 40), spark_frame(visits())):
        assert_same(tables(X)[0], expected)


@pytest.mark.parametrize("how", SIZES)
def test_no_table_of_thresholds_moves_further_than_declared(how):
    def released(table):
        with installed(FixedAnswers()) as source, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = thresholds().fit(in_chunks(table), subject="patient_id")
        assert str(len(table)) not in str(fitted.privacy_.public)
        return source

    here = released(visits())
    assert here.log and all(move <= 1 for move in moves(here, released(with_other_rows(SIZES[how]))))


def test_thresholds_around_a_model_that_protects_rows_are_refused_before_anything_is_spent():
    ledger = PrivacyLedger()
    rows = synthetic().fit(visits().drop(columns="patient_id"))
    with pytest.raises(ValueError, match="both guarantees do not add up"):
        thresholds(rows, ledger=ledger).fit(in_chunks(visits()), subject="patient_id")
    assert not ledger.entries
