"""Thresholds from rows that are read in chunks: the tables of a fit in memory, from one pass."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skfairdp import PFLDClassifier, PrivacyLedger, SchemaEncoder
from skfairdp.lagrangian import mlp
from skfairdp.postprocessing import PrivateThresholds
from tests._tools.engines import Doubled
from tests._tools.sources import recording_noise
from tests._tools.spark import spark_frame
from tests.rows.test_streamed_generator import SCHEMA, chunked, of_engine, table
from tests.rows.test_streamed_teachers import spoiled

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*given to PrivateThresholds has no privacy_"),
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning"),
]

PUBLIC = table(800, seed=3)
ENCODED = LogisticRegression().fit(SchemaEncoder(SCHEMA).transform(PUBLIC), PUBLIC["label"])
RAW = make_pipeline(SchemaEncoder(SCHEMA), LogisticRegression()).fit(PUBLIC, PUBLIC["label"])


def made(model=ENCODED, **options):
    """With the group: of rows in memory it is guessed without, of rows in chunks it is not."""
    given = {"epsilon": 2.0, "schema": SCHEMA, "group_at_prediction": True, "random_state": 0}
    return PrivateThresholds(model, **(given | options))


def tables(X, model=ENCODED):
    """What is released without noise, and what is answered."""
    with recording_noise(0, entropy=0) as record:
        fitted = made(model).fit(X)
    return [*(np.asarray(release.output) for release in record.releases), fitted.predict(table())]


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.few(1)
@pytest.mark.parametrize("model", [ENCODED, RAW], ids=["encoded", "raw"])
def test_tables_are_those_of_a_fit_in_memory_bit_for_bit(model):
    expected = tables(table(), model)
    assert len(expected) == 4 and expected[0].sum() == expected[1].sum() == expected[2].sum() == len(table())
    for sizes in ((7, 1000, 1, 400), (3000,)):
        assert_same(tables(chunked(table(), sizes=sizes), model), expected)


@pytest.mark.few(1)
@pytest.mark.parametrize("engine", ["polars chunks", "parquet", "dataset", "lazy", "dask"])
def test_tables_are_the_same_bit_for_bit_from_every_engine(engine, tmp_path):
    assert_same(tables(of_engine(engine, table(), tmp_path)), tables(table()))


@pytest.mark.slow
def test_a_stand_in_for_spark_and_another_order_of_rows_give_the_same_tables():
    assert_same(tables(spark_frame(table())), tables(table()))
    assert_same(tables(chunked(table().sample(frac=1, random_state=0))), tables(table()))


def test_what_a_fit_shows_of_a_replayed_neighbour_is_the_same():
    """One record differs: with the outputs of the first fit, the second shows the same to the last bit."""
    with recording_noise(entropy=0) as first:
        one = made().fit(chunked(table()))
    with recording_noise(entropy=0, replay=first) as second:
        other = made().fit(chunked(spoiled()))
    assert [release.declared for release in first.releases] == [release.declared for release in second.releases]
    for a, b in zip(first.releases, second.releases, strict=True):
        assert np.linalg.norm(np.ravel(a.value) - np.ravel(b.value)) <= a.sensitivity * (1 + 1e-12)
    np.testing.assert_array_equal(one.predict(table()), other.predict(table()))
    assert repr(one) == repr(other) and one.privacy_ == other.privacy_


def test_a_fit_in_chunks_is_planned_and_charged_as_one_in_memory():
    assert made().planned_privacy(chunked(table())).event == made().planned_privacy(table()).event


def test_of_rows_in_chunks_no_group_is_guessed():
    model = made(group_at_prediction=False)
    plans = [model._plan(model._read(rows)) for rows in (table(), chunked(table()))]
    assert [plan.n_kinds > 1 for plan in plans] == [True, False]
    assert len(made(group_at_prediction=False).fit(chunked(table())).answers_) == 1


def test_rows_that_are_counted_twice_are_noticed_before_anything_is_released_or_spent():
    ledger = PrivacyLedger(epsilon=5.0, delta=1e-4)
    with recording_noise() as record, pytest.raises(RuntimeError, match="another number of rows"):
        made(ledger=ledger).fit(Doubled(table(), 500))
    assert not record.releases and not ledger.entries


def test_public_features_are_not_read_in_chunks():
    rows = table(400).replace({"job": {"astronaut": "other"}})
    rows["since"] = rows["since"].clip("2020-01-01", "2024-12-31")
    rows["age"], rows["score"] = rows["age"].clip(17, 90), rows["score"].clip(-3, 3)
    model = PFLDClassifier(schema=SCHEMA, epsilon=50.0, net=mlp((4,), max_epochs=1), random_state=0).fit(rows)
    with pytest.raises(ValueError, match="whole records"):
        made(model).fit(chunked(rows))
