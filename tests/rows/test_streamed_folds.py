"""Searches scored on private folds of rows that are read in chunks: folds by public keys, tables that add up."""

import numpy as np
import pytest

from skfairdp import FairDPSGDClassifier, KeyedRows, PrivacyLedger
from skfairdp.gradient import mlp
from skfairdp.model_selection import ParetoSearchCV, PrivateSearchCV
from skfairdp.privacy import NeighboringRelation
from tests._tools.inside import (
    Chunk,
    ChunkScores,
    FoldRows,
    FoldRule,
    ScoreTable,
    SearchFailedError,
    fold_sizes,
    opened,
    read_scoring,
    read_search,
)
from tests._tools.sources import recording_noise
from tests._tools.spark import spark_frame
from tests.rows.test_streamed_generator import SCHEMA, N, chunked, of_engine, table
from tests.rows.test_streamed_teachers import PUBLIC, fair_pate, spoiled

pytestmark = [
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning"),
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.UtilityWarning"),
]

GRID = {"gamma": [0.05]}
UNHELD = {"gamma": [None]}  # where rows are in memory, held students are looked at by their groups
ENGINES = ["chunks", "parquet", "lazy", "dask"]


def searched(X, *, estimator=None, grid=GRID, cv=2, **options):
    search = ParetoSearchCV(estimator or fair_pate(**options), grid, cv=cv, random_state=0)
    return search.fit(X)


def shown(search):
    scores = [values for name, values in search.cv_results_.items() if "test" in name]
    return [*scores, search.best_estimator_.predict(PUBLIC)]


def assert_same(found, expected):
    for one, other in zip(shown(found), shown(expected), strict=True):
        np.testing.assert_array_equal(one, other)
    assert found.best_params_ == expected.best_params_ and found.privacy_ == expected.privacy_


def dpsgd(**options):
    net = mlp((4,), batch_size=256, max_epochs=1)
    return FairDPSGDClassifier(epsilon=4.0, schema=SCHEMA, net=net, parity=None, random_state=0, **options)


def folds_of(source, rule):
    """Ids of each fold, in the order of the source."""
    sizes = fold_sizes(source, rule)
    parts = [FoldRows(source, rule, j, True, sizes[j]) for j in range(rule.n_folds)]
    return [[int(one) for chunk in part.chunks() for one in chunk.table["id"]] for part in parts]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["parquet", "dask"])
def test_with_a_key_scores_and_winner_are_the_same_bit_for_bit_from_every_engine(engine, tmp_path):
    found = []
    for X in (table(), of_engine(engine, table(), tmp_path)):
        with recording_noise(0):
            found.append(searched(KeyedRows(X, key="id")))
    assert_same(*found)


@pytest.mark.slow
def test_scores_are_those_of_a_search_in_memory_with_the_same_folds():
    """Fits of DP-SGD are the same in memory and in chunks, so all of both searches must be."""
    grid = {"net__lr": [0.5]}
    with recording_noise(entropy=3) as first:
        streamed = searched(chunked(table()), estimator=dpsgd(), grid=grid)
    pairs = folds_in(dpsgd(), grid)
    with recording_noise(entropy=3) as second:
        in_memory = searched(table(), estimator=dpsgd(), grid=grid, cv=pairs)
    for one, other in zip(shown(streamed), shown(in_memory), strict=True):
        np.testing.assert_array_equal(one, other)
    assert [release.declared for release in first.releases] == [release.declared for release in second.releases]
    assert streamed.privacy_.epsilon == in_memory.privacy_.epsilon
    for one, other in zip(first.releases, second.releases, strict=True):
        np.testing.assert_array_equal(one.value, other.value)
    assert sum(len(test) for _, test in pairs) == N and min(len(test) for _, test in pairs) > N / 3


def folds_in(estimator, grid):
    """Places of the rows that a search in chunks learns from and scores on, fold by fold."""
    search = ParetoSearchCV(estimator, grid, cv=2, random_state=0)
    nothing = dict.fromkeys(("sensitive_features", "X_public", "sensitive_features_public", "validation"))
    scoring = read_scoring(["accuracy"], owner="ParetoSearchCV")
    splits = read_search(search, chunked(table()), None, **nothing, objectives=scoring).splits
    ids = table()["id"]
    kept = [[np.concatenate([chunk.table["id"] for chunk in part.chunks()]) for part in parts[:2]] for parts in splits]
    return [tuple(np.flatnonzero(np.isin(ids, some)) for some in parts) for parts in kept]


def test_a_fold_reads_its_rows_alone_and_all_folds_read_each_row_once(tmp_path):
    rule = FoldRule("id", 5, 4)
    expected = folds_of(opened(KeyedRows(table(), key="id")), rule)
    assert sorted(one for fold in expected for one in fold) == list(range(N))
    assert min(map(len, expected)) > N / 5
    for engine in ENGINES:
        source = opened(KeyedRows(of_engine(engine, table(), tmp_path), key="id"))
        assert list(map(sorted, folds_of(source, rule))) == list(map(sorted, expected))
        rest = FoldRows(source, rule, 0, False, N - len(expected[0]))
        ids = rest.map_reduce(lambda chunk: list(chunk.table["id"]), lambda one, other: one + other)
        assert sorted(ids) == sorted(set(range(N)) - set(expected[0]))
        assert sum(rest.each(lambda chunk: len(chunk.table))) == rest.n_rows


@pytest.mark.slow
def test_without_a_key_folds_and_the_parts_of_their_teachers_follow_the_place_whatever_the_chunks():
    rule = FoldRule(None, 5, 3)
    one, other = (opened(chunked(table(), sizes=sizes)) for sizes in ((1000,), (7, 333)))
    assert folds_of(one, rule) == folds_of(other, rule)
    with recording_noise(0):
        first = searched(chunked(table(), sizes=(1000,)))
    with recording_noise(0):
        second = searched(chunked(table(), sizes=(7, 333)))
    assert_same(first, second)


@pytest.mark.parametrize("row", [0, 17, N - 1])
def test_a_record_that_differs_in_every_cell_stays_in_its_fold(row):
    for key in ("id", None):
        rule = FoldRule(key, 3, 4)
        np.testing.assert_array_equal(rule(Chunk(table(), (0,))), rule(Chunk(spoiled(row), (0,))))


def test_a_share_that_is_held_out_has_about_its_size():
    rule = FoldRule("id", 3, 2, 0.2)
    sizes = fold_sizes(opened(KeyedRows(table(), key="id")), rule)
    assert abs(sizes[0] - 0.2 * N) < 5 * np.sqrt(0.16 * N) and sizes.sum() == N


def test_what_a_search_on_folds_shows_of_a_replayed_neighbour_is_the_same():
    with recording_noise(entropy=0) as first:
        one = searched(chunked(table()))
    with recording_noise(entropy=0, replay=first) as second:
        other = searched(chunked(spoiled()))
    assert [release.declared for release in first.releases] == [release.declared for release in second.releases]
    assert_same(one, other)


@pytest.mark.few(1)
@pytest.mark.parametrize("row", [0, 17, N - 1])
def test_tables_of_neighbours_differ_by_one_row_in_one_fold(row):
    """The same fitted model, asked about the test part of every fold of two neighbours."""
    model = fair_pate().fit(table())
    groups = np.array(["a", "b", "c"], dtype=object)
    kind = ScoreTable(groups, 1.0, 1e-5, NeighboringRelation.REPLACE_ONE, np.array(["no", "yes"]), refusals=False)
    scores, rule = ChunkScores(kind, [], SCHEMA, "ParetoSearchCV"), FoldRule("id", 3, 3)
    moved = []
    for j in range(3):
        found = []
        for frame in (table(), spoiled(row)):
            source = opened(KeyedRows(chunked(frame), key="id"))
            found.append(scores.counts(model, FoldRows(source, rule, j, True, fold_sizes(source, rule)[j])))
        moved.append(int(np.abs(found[0] - found[1]).sum()))
    assert sorted(moved)[:2] == [0, 0] and max(moved) <= 2


@pytest.mark.slow
def test_a_search_on_folds_is_charged_as_one_by_position_in_memory():
    ledgers = [PrivacyLedger(epsilon=40.0, delta=1e-3) for _ in range(2)]
    kinds = zip((table(), chunked(table())), ledgers, strict=True)
    one, other = (searched(X, ledger=ledger, grid=UNHELD) for X, ledger in kinds)
    assert one.privacy_.epsilon == other.privacy_.epsilon
    assert [entry.event for entry in ledgers[0].entries] == [entry.event for entry in ledgers[1].entries]
    assert any(fact.name == "folds" for fact in other.privacy_.public)
    assert other.n_splits_ == 2


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"cv": 2}, {"method": "selection", "test_size": 0.3}])
def test_private_selection_runs_on_folds_of_chunks(options):
    search = PrivateSearchCV(fair_pate(), {"n_teachers": [8, 12]}, random_state=0, **options)
    search.fit(chunked(table()))
    assert search.best_score_ > 0.3 and search.n_candidates_ == 2


def test_a_reader_that_fails_while_it_is_scored_leaves_the_ledger_charged_and_no_winner():
    readings, ledger = [], PrivacyLedger(epsilon=40.0, delta=1e-3)

    def failing():
        readings.append(1)
        yield table()[:1500]
        if len(readings) == 4:  # rows are counted, then folds; after the first fit its table is
            raise OSError("row 1500 is broken")
        yield table()[1500:]

    search = ParetoSearchCV(fair_pate(ledger=ledger), {"gamma": [0.05]}, cv=2, random_state=0)
    with pytest.raises(SearchFailedError) as caught:
        search.fit(failing)
    assert "1500" not in str(caught.value) and len(readings) == 6  # the other fold goes on
    assert len(ledger.entries) == 1 and not hasattr(search, "cv_results_")


@pytest.mark.parametrize(
    ("X", "estimator", "cv", "text"),
    [
        (lambda: spark_frame(table()), fair_pate, 3, "KeyedRows"),
        (lambda: chunked(table()), fair_pate, [([0], [1])], "number of folds from 2 to 1000"),
        (lambda: chunked(table()), fair_pate, 1, "number of folds from 2 to 1000"),
        (lambda: chunked(table()[:30]), lambda **more: fair_pate(n_teachers=2, **more), 900, "a fold without rows"),
    ],
    ids=["no keys", "positions", "one fold", "too many folds"],
)
def test_what_cannot_be_folded_is_refused_before_anything_is_spent(X, estimator, cv, text):
    ledger = PrivacyLedger(epsilon=40.0, delta=1e-3)
    with pytest.raises(ValueError, match=text):
        searched(X(), estimator=estimator(ledger=ledger), cv=cv)
    assert not ledger.entries
