"""Searches whose rows are read in chunks: fits on all of them, scored on public rows; the same from every engine."""

import numpy as np
import pytest

from skfairdp import KeyedRows, PrivacyLedger, PublicData
from skfairdp.model_selection import ParetoSearchCV, PrivateSearchCV
from tests._tools.inside import SearchFailedError
from tests._tools.sources import recording_noise
from tests.rows.test_streamed_generator import SCHEMA, chunked, of_engine, table
from tests.rows.test_streamed_teachers import PUBLIC, fair_pate, spoiled

pytestmark = [
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning"),
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.UtilityWarning"),
]

GRID = {"gamma": [0.05, None], "n_teachers": [8, 12]}
VALIDATION = PublicData(PUBLIC.drop(columns="label"), PUBLIC["group"], PUBLIC["label"])


def searched(X, grid=GRID, ledger=None, **fit):
    search = ParetoSearchCV(fair_pate(ledger=ledger), grid, random_state=0)
    return search.fit(X, **({"validation": VALIDATION} | fit))


def shown(search):
    scores = [values for name, values in search.cv_results_.items() if name.startswith("mean_test")]
    return [*scores, search.best_estimator_.predict(PUBLIC)]


@pytest.mark.few(1)
@pytest.mark.parametrize("engine", ["chunks", "parquet", "dask"])
def test_scores_and_winner_are_the_same_bit_for_bit_from_every_engine(engine, tmp_path):
    found = []
    for X in (table(), of_engine(engine, table(), tmp_path)):
        with recording_noise(0):
            found.append(searched(KeyedRows(X, key="id")))
    for one, other in zip(*map(shown, found), strict=True):
        np.testing.assert_array_equal(one, other)
    assert found[0].best_params_ == found[1].best_params_ and found[0].privacy_ == found[1].privacy_


def test_a_search_in_chunks_is_charged_as_one_in_memory_and_reads_the_rows_once_for_each_fit():
    ledgers, readings = [PrivacyLedger(epsilon=12.0, delta=1e-4), PrivacyLedger(epsilon=12.0, delta=1e-4)], []

    def rows():
        readings.append(1)
        yield from chunked(table())()

    whole = table().drop(columns=list(SCHEMA.groups))  # private groups are read in memory alone
    in_memory, in_chunks = (searched(X, ledger=ledger) for X, ledger in zip((whole, rows), ledgers, strict=True))
    assert [entry.event for entry in ledgers[0].entries] == [entry.event for entry in ledgers[1].entries]
    assert in_memory.privacy_.epsilon == in_chunks.privacy_.epsilon and in_chunks.n_splits_ == 0
    assert len(readings) == 3  # their number, and the teachers of two candidates: the gate is post-processing
    assert any(fact.startswith("number of private rows: 3000") for fact in in_chunks.privacy_.public)
    assert any(fact.name == "rows of X" for fact in in_chunks.privacy_.public)


def test_what_a_search_shows_of_a_replayed_neighbour_is_the_same():
    with recording_noise(entropy=0) as first:
        one = searched(chunked(table()))
    with recording_noise(entropy=0, replay=first) as second:
        other = searched(chunked(spoiled()))
    assert [release.declared for release in first.releases] == [release.declared for release in second.releases]
    for a, b in zip(shown(one), shown(other), strict=True):
        np.testing.assert_array_equal(a, b)
    assert one.best_params_ == other.best_params_ and one.privacy_ == other.privacy_


def test_a_reader_that_fails_leaves_the_ledger_charged_and_no_winner():
    readings, ledger = [], PrivacyLedger(epsilon=12.0, delta=1e-4)

    def failing():
        readings.append(1)
        yield table()[:1000]
        if len(readings) > 2:
            raise OSError
        yield table()[1000:]

    search = ParetoSearchCV(fair_pate(ledger=ledger), GRID, random_state=0)
    with pytest.raises(SearchFailedError):
        search.fit(failing, validation=VALIDATION)
    assert len(ledger.entries) == 2 and not hasattr(search, "best_estimator_") and not hasattr(search, "cv_results_")


def test_private_selection_runs_on_chunks_as_well():
    search = PrivateSearchCV(fair_pate(), {"gamma": [0.05, None]}, method="composition", random_state=0)
    search.fit(chunked(table()), validation=VALIDATION)
    assert search.best_score_ > 0.5 and search.n_candidates_ == 2


@pytest.mark.parametrize(
    ("fit", "text"),
    [
        ({"y": ["no"] * 3000}, "Name their columns in the schema"),
        ({"sensitive_features": ["a"] * 3000}, "Name their columns in the schema"),
    ],
)
@pytest.mark.parametrize("search", [ParetoSearchCV, PrivateSearchCV])
def test_what_cannot_be_searched_in_chunks_is_refused_before_anything_is_spent(search, fit, text):
    ledger = PrivacyLedger(epsilon=12.0, delta=1e-4)
    with pytest.raises(ValueError, match=f"{search.__name__} .*{text}"):
        search(fair_pate(ledger=ledger), GRID).fit(chunked(table()), **({"validation": VALIDATION} | fit))
    assert not ledger.entries


def test_an_estimator_without_a_schema_is_refused():
    with pytest.raises(ValueError, match="reads rows in chunks only with a 'schema'"):
        ParetoSearchCV(fair_pate(schema=None, classes=["no", "yes"]), GRID).fit(chunked(table()), validation=VALIDATION)
    assert SCHEMA.label == "label"
