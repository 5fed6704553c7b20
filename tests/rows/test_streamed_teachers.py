"""Teachers of rows that are read in chunks: the same votes, bit for bit, from every engine, order and retry."""

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from skfairdp import FairPATEClassifier, KeyedRows, PATEClassifier, PrivacyLedger, PublicData
from skfairdp._utils import child_seeds
from skfairdp.papers import FairClippingClassifier
from skfairdp.schema import RawTable
from tests._tools.engines import Doubled, Lost, Retried
from tests._tools.inside import Chunk, FrameRows, fit_teachers, opened, row_hashes, streamed_votes, vote_histogram
from tests._tools.sources import recording_noise
from tests._tools.spark import spark_frame
from tests.rows.test_streamed_generator import SCHEMA, N, chunked, of_engine, released, table

pytestmark = [
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning"),
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.UtilityWarning"),
]

PUBLIC = table(300, seed=1).replace({"job": {"astronaut": "other"}})
PUBLIC["since"] = PUBLIC["since"].clip("2020-01-01", "2024-12-31")
PUBLIC["age"], PUBLIC["score"] = PUBLIC["age"].clip(17, 90), PUBLIC["score"].clip(-3, 3)
N_TEACHERS = 12


def fair_pate(**options):
    usual = {
        "epsilon": 4.0,
        "schema": SCHEMA,
        "n_teachers": N_TEACHERS,
        "random_state": 0,
        "public_data": PublicData(PUBLIC),
    }
    return FairPATEClassifier(**(usual | options))


def votes(X, **options):
    """What is released without noise, and what the student makes of it."""
    with recording_noise(0) as record:
        model = fair_pate(**options).fit(X)
    return np.concatenate([np.ravel(release.output) for release in record.releases]), model.predict(PUBLIC)


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def public_votes(X, *, key=None, seed=0, **options):
    """Votes by the function itself, on 40 public rows."""
    source = opened(KeyedRows(X, key=key) if key else X)
    queries = RawTable.read(SCHEMA, PUBLIC, owner="test").features[:40]
    options = {"teacher": "logistic", "n_teachers": N_TEACHERS, "n_classes": 2, **options}
    return streamed_votes(
        options.pop("teacher"), source, queries, schema=SCHEMA, owner="test", rng=np.random.default_rng(seed), **options
    )


@pytest.mark.parametrize("teacher", ["logistic", DecisionTreeClassifier(max_depth=3, random_state=0)])
def test_votes_are_those_of_arrays_with_the_same_parts(teacher):
    rng = np.random.default_rng(0)
    seed, seeds = int(rng.integers(2**63 - 1)), child_seeds(rng, N_TEACHERS)
    hashes = row_hashes(Chunk(table(), (0,)), "id", seed)
    order, raw = np.argsort(hashes), RawTable.read(SCHEMA, table(), owner="test")
    teachers = fit_teachers(
        teacher, raw.features[order], raw.labels()[order], (hashes[order] % np.uint64(N_TEACHERS)).astype(np.int64),
        n_teachers=N_TEACHERS, n_classes=2, seeds=seeds,
    )  # fmt: skip
    queries = RawTable.read(SCHEMA, PUBLIC, owner="test").features[:40]
    expected = vote_histogram(teachers.predict(queries), 2)
    np.testing.assert_array_equal(public_votes(table(), key="id", teacher=teacher), expected)
    assert (expected.sum(axis=1) == N_TEACHERS).all() and len(np.unique(expected[:, 0])) > 3


@pytest.mark.few(2)
@pytest.mark.parametrize("engine", ["chunks", "polars chunks", "parquet", "dataset", "lazy", "dask"])
def test_with_a_key_votes_are_the_same_bit_for_bit_from_every_engine(engine, tmp_path):
    expected = votes(KeyedRows(table(), key="id"))
    assert_same(votes(KeyedRows(of_engine(engine, table(), tmp_path), key="id")), expected)


def test_partitions_without_rows_are_passed_over():
    frames = pytest.importorskip("dask.dataframe")
    few = frames.from_pandas(table(), npartitions=5)
    few = few[few["id"] < 900]
    assert_same(votes(KeyedRows(few, key="id")), votes(KeyedRows(table()[:900], key="id")))
    for one, other in zip(released(few)[0], released(table()[:900])[0], strict=True):
        np.testing.assert_array_equal(one, other)


def test_with_a_key_a_stand_in_for_spark_gives_the_same_votes():
    assert_same(votes(KeyedRows(spark_frame(table()), key="id")), votes(KeyedRows(table(), key="id")))


def test_without_a_key_chunks_of_any_size_and_polars_agree(tmp_path):
    expected = votes(chunked(table()))
    assert_same(votes(chunked(table(), sizes=(333,))), expected)
    assert_same(votes(of_engine("lazy", table(), tmp_path)), expected)


def test_with_a_key_neither_the_order_of_rows_nor_how_many_are_gathered_at_once_matters():
    expected = public_votes(table(), key="id")
    for seed in range(2):
        mixed = table().sample(frac=1, random_state=seed)
        found = public_votes(chunked(mixed, sizes=(1 + 500 * seed, 333)), key="id", most_bytes=20_000 * (seed + 1))
        np.testing.assert_array_equal(found, expected)


def test_ids_are_hashed_alike_whatever_type_an_engine_gives_them():
    ids = np.arange(5, 400)
    one = row_hashes(Chunk(pd.DataFrame({"id": ids}), ()), "id", 3)
    for dtype in ("int32", "uint16", "Int64", "int64[pyarrow]", "object"):
        np.testing.assert_array_equal(row_hashes(Chunk(pd.DataFrame({"id": pd.array(ids, dtype)}), ()), "id", 3), one)
    names = pd.Series([f"person {j}" for j in ids])
    text = row_hashes(Chunk(pd.DataFrame({"id": names.astype(object)}), ()), "id", 3)
    for dtype in ("string", "category"):
        np.testing.assert_array_equal(row_hashes(Chunk(pd.DataFrame({"id": names.astype(dtype)}), ()), "id", 3), text)
    for hashes in (one, text):
        sizes = np.bincount((hashes % np.uint64(5)).astype(int))
        assert len(np.unique(hashes)) == len(ids) and sizes.min() > 50
    assert not np.array_equal(one, row_hashes(Chunk(pd.DataFrame({"id": ids}), ()), "id", 4))


def spoiled(row=17):
    neighbour = table().astype(object)
    neighbour.loc[row, ["age", "score", "job", "group", "label"]] = [1e308, np.inf, "no such job", "z", None]
    return neighbour


@pytest.mark.parametrize("key", [None, "id"])
def test_one_record_changes_one_teacher(key):
    """A record that differs in every cell moves one vote of each query at most."""
    one = public_votes(chunked_source(table(), key))
    for row in (0, 17, N - 1):
        other = public_votes(chunked_source(spoiled(row), key))
        assert np.abs(one - other).sum(axis=1).max() <= 2


def chunked_source(frame, key):
    return KeyedRows(FrameRows(frame, 170), key=key) if key else FrameRows(frame, 170)


def test_what_a_fit_shows_of_a_replayed_neighbour_is_the_same():
    """One record differs: with the outputs of the first fit, the second shows the same to the last bit."""
    with recording_noise(entropy=0) as first:
        one = fair_pate().fit(chunked(table()))
    with recording_noise(entropy=0, replay=first) as second:
        other = fair_pate().fit(chunked(spoiled()))
    assert [release.declared for release in first.releases] == [release.declared for release in second.releases]
    for a, b in zip(first.releases, second.releases, strict=True):
        moved = np.linalg.norm(np.asarray(a.value) - np.asarray(b.value), axis=-1)  # of each query by itself
        assert moved.max() <= a.sensitivity * (1 + 1e-12)
    np.testing.assert_array_equal(one.predict_proba(PUBLIC), other.predict_proba(PUBLIC))
    assert repr(one) == repr(other) and one.privacy_ == other.privacy_


def test_tasks_that_are_tried_again_count_once():
    assert_same(votes(Retried(table(), 170)), votes(FrameRows(table(), 400)))


def test_rows_that_are_counted_twice_are_noticed_before_anything_is_released():
    ledger = PrivacyLedger(epsilon=5.0, delta=1e-4)
    with recording_noise() as record, pytest.raises(RuntimeError, match="another number of rows"):
        fair_pate(ledger=ledger).fit(Doubled(table(), 500))
    assert not record.releases


def test_a_worker_that_dies_leaves_no_half_fit_and_nothing_released():
    model = fair_pate()
    with recording_noise() as record, pytest.raises(KeyboardInterrupt):
        model.fit(Lost(table(), 500))
    assert not record.releases and not hasattr(model, "student_") and not hasattr(model, "classes_")


def test_a_fit_in_chunks_is_planned_and_charged_as_one_in_memory():
    rows = table().drop(columns=list(SCHEMA.groups))  # private groups are read in memory alone
    in_memory, in_chunks = fair_pate().planned_privacy(rows), fair_pate().planned_privacy(chunked(table()))
    assert in_memory.event == in_chunks.event and in_memory.epsilon == in_chunks.epsilon
    assert fair_pate().fit(chunked(table())).privacy_.event == in_memory.event


def test_where_votes_say_little_the_classes_of_rows_in_chunks_are_counted_as_in_memory():
    rows = table(300)
    for X in (rows, chunked(rows)):
        with recording_noise(0) as record:
            model = fair_pate(epsilon=0.3, n_teachers="auto").fit(X)
        assert model.privacy_.performed[-1].times == 1
        np.testing.assert_array_equal(np.ravel(record.releases[-1].value), np.sum(rows["label"] == "yes"))


def test_pate_learns_in_chunks_as_well():
    model = PATEClassifier(epsilon=40.0, schema=SCHEMA, public_data=PublicData(PUBLIC), random_state=0)
    assert model.fit(chunked(table())).score(table(), table()["label"]) > 0.6


@pytest.mark.parametrize(
    ("options", "fit", "text"),
    [
        ({"schema": None, "classes": ["no", "yes"]}, {}, "schema"),
        ({"public_data": None}, {}, "public rows"),
        ({}, {"y": ["no"] * N}, "label"),
        ({"memory": "cache"}, {}, "memory"),
    ],
)
def test_what_cannot_be_read_in_chunks_is_refused_before_anything_is_spent(options, fit, text):
    ledger = PrivacyLedger(epsilon=5.0, delta=1e-4)
    with pytest.raises(ValueError, match=text):
        fair_pate(ledger=ledger, **options).fit(chunked(table()), **fit)
    assert not ledger.entries


def test_rows_without_a_place_need_a_key():
    with pytest.raises(ValueError, match="KeyedRows"):
        fair_pate().fit(spark_frame(table()))
    with pytest.raises(ValueError, match="'key' parameter"):
        fair_pate().fit(KeyedRows(table(), key="no such column"))


def test_private_rows_are_not_taken_for_public_ones():
    with pytest.raises(ValueError, match="rows of X"):
        fair_pate(public_data=None).fit(KeyedRows(PUBLIC, key="id"), X_public=PUBLIC)


def test_estimators_that_learn_in_memory_say_so():
    with pytest.raises(ValueError, match="FairClippingClassifier needs its rows in memory"):
        FairClippingClassifier(schema=SCHEMA).fit(chunked(table()))


@pytest.mark.dask
def test_a_local_cluster_gives_the_counts_and_votes_of_threads():
    distributed = pytest.importorskip("distributed", reason="needs dask and distributed")
    frames = pytest.importorskip("dask.dataframe")
    counts, rows = votes(KeyedRows(table(), key="id")), released(table())[0]
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster),
    ):
        frame = frames.from_pandas(table(), npartitions=5)
        assert_same(votes(KeyedRows(frame, key="id")), counts)
        assert_same(released(frame)[0], rows)


@pytest.mark.parametrize("engine", ["chunks", "dask"])
def test_chunks_without_rows_are_passed_over(engine):
    frame = table()
    pieces = [frame[:0], frame[: N // 2], frame[:0], frame[N // 2 :], frame[:0]]
    if engine == "dask":
        dd = pytest.importorskip("dask.dataframe")
        X = dd.concat([dd.from_pandas(piece, npartitions=1) for piece in pieces])
    else:
        X = lambda: pieces  # noqa: E731
    source = opened(X)
    assert source.n_rows == N and all(len(chunk.table) for chunk in source.chunks())
    assert (
        source.map_reduce(lambda chunk: len(RawTable.read(SCHEMA, chunk.table, owner="test").features), int.__add__)
        == N
    )
    assert fair_pate().fit(X).n_teachers_ == N_TEACHERS
