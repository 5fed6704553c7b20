"""Randomised groups of rows that are read in chunks: those of a release in memory; the others as they were."""

import numpy as np
import pandas as pd
import pytest

from skfairdp import KeyedRows, PrivacyLedger
from skfairdp.baselines import GroupRandomizer
from skfairdp.exceptions import BudgetExceededError
from skfairdp.privacy import _mechanisms as _randomized_response
from skfairdp.schema import Category, Number, Schema
from tests._tools.inside import FrameRows, even_tables, opened
from tests._tools.sources import recording_noise
from tests._tools.spark import spark_frame
from tests.rows.test_streamed_generator import SCHEMA, chunked, of_engine, table

TABLE = table(900)


def handed_out(X, **options):
    """All rows with released groups, under noise that is the same for every call."""
    with recording_noise(entropy=3):
        return pd.concat(GroupRandomizer(**({"schema": SCHEMA} | options)).release_chunks(X), ignore_index=True)


@pytest.mark.parametrize("engine", ["chunks", "polars chunks", "parquet", "dataset", "lazy", "dask"])
def test_groups_are_those_of_a_release_in_memory_and_everything_else_is_as_it_was(engine, tmp_path):
    with recording_noise(entropy=3):
        expected = GroupRandomizer(schema=SCHEMA).release(TABLE["group"])
    found = handed_out(of_engine(engine, TABLE, tmp_path))
    assert found["group"].tolist() == expected.tolist() and found["group"].dtype == object
    assert 0.4 < (found["group"] == TABLE["group"]).mean() < 0.75  # .576 at ε = 1
    assert found["id"].tolist() == TABLE["id"].tolist() and found["label"].tolist() == TABLE["label"].tolist()
    assert list(found) == list(TABLE)


def test_nearly_without_noise_groups_come_back_in_any_order_of_chunks():
    mixed = TABLE.sample(frac=1, random_state=0)
    found = handed_out(chunked(mixed, sizes=(1, 333)), epsilon=1e9)
    assert found["group"].tolist() == mixed["group"].tolist()


def test_many_rows_are_one_release_however_many_are_randomised_at_once(monkeypatch):
    monkeypatch.setattr(_randomized_response, "_AT_ONCE", 16)
    schema = Schema({"age": Number(0, 9), "group": Category(["a", "b"])}, groups="group")
    many = pd.DataFrame({"group": pd.Categorical.from_codes(np.arange(100) % 2, ["a", "b"])})
    with recording_noise(entropy=3) as record:
        chunks = list(GroupRandomizer(schema=schema, epsilon=1e9).release_chunks(lambda: [many]))
    assert [len(release.value) for release in record.releases] == [100]
    assert pd.concat(chunks)["group"].tolist() == many["group"].tolist()


def test_several_columns_are_one_group():
    columns = {name: SCHEMA.columns[name] for name in ("age", "group")}
    schema = Schema({**columns, "job": Category(["clerk", "nurse", "other"])}, groups=["job", "group"])
    rows = TABLE[["job", "group"]].replace({"job": {"astronaut": "other", None: "other"}})
    found = handed_out(chunked(rows), schema=schema, epsilon=1e9)
    pd.testing.assert_frame_equal(found, rows.reset_index(drop=True).astype(object))


def regrouped(row, to):
    other = TABLE.astype({"group": object})
    other.loc[row, "group"] = to
    return other


@pytest.mark.parametrize("to", ["a", "no such group", None, 7.5])
def test_what_is_handed_out_of_a_replayed_neighbour_is_the_same(to):
    """One group differs, and no list has it: with the answers of the first release the second hands out the same."""
    X = chunked(TABLE), chunked(regrouped(17, to))
    one, other = GroupRandomizer(schema=SCHEMA), GroupRandomizer(schema=SCHEMA)
    with recording_noise(entropy=0) as first:
        here = pd.concat(one.release_chunks(X[0]))
    with recording_noise(entropy=0, replay=first) as second:
        there = pd.concat(other.release_chunks(X[1]))
    assert [release.declared for release in first.releases] == [release.declared for release in second.releases]
    moved = sum(np.count_nonzero(a.value != b.value) for a, b in zip(first.releases, second.releases, strict=True))
    assert moved <= 1
    pd.testing.assert_frame_equal(here, there)
    assert one.privacy_ == other.privacy_ and repr(one) == repr(other)


def test_chunks_that_are_handed_out_do_not_end_where_those_of_the_source_do():
    """Those of a text file end after so many bytes, and so follow the length of a group's name."""
    handed = [
        list(GroupRandomizer(schema=SCHEMA).release_chunks(chunked(TABLE, sizes))) for sizes in ((70, 30), (69, 31))
    ]
    assert [len(chunk) for chunk in handed[0]] == [len(chunk) for chunk in handed[1]] == [len(TABLE)]
    assert [len(some) for some in even_tables(opened(chunked(TABLE, (70, 30))), 400)] == [400, 400, 100]


def test_files_whose_order_says_what_is_in_them_are_refused_before_anything_is_spent(tmp_path):
    pytest.importorskip("pyarrow")
    for name, rows in TABLE.groupby("group", observed=True):
        (tmp_path / str(name)).mkdir()
        rows.to_parquet(tmp_path / str(name) / "part-0.parquet", index=False)
    for X in (tmp_path, KeyedRows(tmp_path, key="id")):
        ledger = PrivacyLedger()
        with pytest.raises(ValueError, match="uses rows in their order, which may depend on private values"):
            GroupRandomizer(schema=SCHEMA, ledger=ledger).release_chunks(X)
        assert not ledger.entries


def test_a_release_in_chunks_is_charged_as_one_in_memory():
    ledgers = [PrivacyLedger(epsilon=1.5), PrivacyLedger(epsilon=1.5)]
    one, other = (GroupRandomizer(schema=SCHEMA, ledger=ledger) for ledger in ledgers)
    one.release(TABLE["group"])
    chunks = other.release_chunks(chunked(TABLE))
    assert [entry.event for entry in ledgers[0].entries] == [entry.event for entry in ledgers[1].entries]
    assert other.privacy_ == one.privacy_  # before a chunk is handed out
    assert sum(map(len, chunks)) == len(TABLE)
    with pytest.raises(BudgetExceededError):
        other.release_chunks(chunked(TABLE))


class Changing(FrameRows):
    """Rows of which some are gone, or doubled, from a reading on."""

    def __init__(self, rows, lost, reading):
        super().__init__(rows, 200)
        self.rows, self.lost, self.reading, self.readings = rows, lost, reading, 0

    def chunks(self):
        self.readings += 1
        for k, chunk in enumerate(super().chunks()):
            changed = k == 2 and self.readings >= self.reading
            if not (changed and self.lost):
                yield chunk
            if changed and not self.lost:
                yield chunk


@pytest.mark.parametrize("lost", [True, False])
def test_a_source_that_changes_is_noticed_before_anything_is_spent_or_ends_the_second_pass(lost):
    for reading, charged in ((1, 0), (2, 1)):
        ledger = PrivacyLedger(epsilon=1.5)
        randomizer = GroupRandomizer(schema=SCHEMA, ledger=ledger)
        with pytest.raises(RuntimeError, match="another number of rows"):
            list(randomizer.release_chunks(Changing(TABLE, lost, reading)))
        assert len(ledger.entries) == charged


def test_a_reader_that_fails_has_cost_nothing():
    def failing():
        yield TABLE[:100]
        raise KeyboardInterrupt

    ledger = PrivacyLedger(epsilon=1.5)
    source = FrameRows(TABLE, 100)
    source.chunks = lambda: (chunk for frame in failing() for chunk in FrameRows(frame).chunks())
    randomizer = GroupRandomizer(schema=SCHEMA, ledger=ledger)
    with recording_noise() as record, pytest.raises(KeyboardInterrupt):
        randomizer.release_chunks(source)
    assert not record.releases and not ledger.entries and not hasattr(randomizer, "privacy_")


@pytest.mark.parametrize(
    ("X", "options", "text"),
    [
        (TABLE, {}, "read in chunks"),
        (chunked(TABLE), {"schema": None, "groups": ["a", "b"]}, "needs a 'schema'"),
        (spark_frame(TABLE), {}, "Spark's rows have none"),
        (KeyedRows(spark_frame(TABLE), key="id"), {}, "Spark's rows have none"),
        (chunked(TABLE[:0]), {}, "0 sample"),
        (chunked(TABLE.drop(columns="group")), {}, "needs groups"),
    ],
)
def test_what_cannot_be_released_in_chunks_is_refused_before_anything_is_spent(X, options, text):
    ledger = PrivacyLedger(epsilon=1.5)
    with pytest.raises(ValueError, match=text):
        GroupRandomizer(ledger=ledger, **({"schema": SCHEMA} | options)).release_chunks(X)
    assert not ledger.entries
