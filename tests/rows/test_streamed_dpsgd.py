"""DP-SGD on rows that are read in chunks: the network of a fit in memory, from one pass and the rows of each batch."""

import numpy as np
import pytest

from skfairdp import FairDPSGDClassifier, KeyedRows, PrivacyLedger, PublicData
from skfairdp.gradient import SignedLoss, mlp
from skfairdp.schema import RawTable, RowStore, kept_rows
from tests._tools.engines import Doubled, Lost
from tests._tools.inside import FrameRows, opened
from tests._tools.sources import recording_noise
from tests._tools.spark import spark_frame
from tests.rows.test_streamed_generator import SCHEMA, chunked, of_engine, table
from tests.rows.test_streamed_teachers import PUBLIC, spoiled

pytestmark = [
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning"),
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.UtilityWarning"),
]

WAYS = {
    "penalty": {"public_data": PublicData(PUBLIC)},
    "signed loss": {"parity": SignedLoss(dual_steps=2)},
    "plain": {"lam": 0.0},
    "looked at again": {"lam": 0.0, "epsilon": 0.2},
}


def model(way="penalty", **options):
    usual = {"epsilon": 3.0, "schema": SCHEMA, "net": mlp((8,), max_epochs=1, batch_size=300), "random_state": 0}
    return FairDPSGDClassifier(**(usual | WAYS[way] | options))


def trained(X, **options):
    with recording_noise(entropy=1):
        fitted = model(**options).fit(X)
    return [value.numpy() for value in fitted.net_.module_.state_dict().values()]


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.few(1)
@pytest.mark.parametrize("way", WAYS)
def test_the_network_is_that_of_a_fit_in_memory_bit_for_bit(way):
    assert_same(trained(chunked(table()), way=way), trained(table(), way=way))


@pytest.mark.slow
def test_other_rows_give_another_network():
    """So that the equalities of this page say something."""
    assert not np.array_equal(trained(chunked(table()))[0], trained(chunked(table(seed=5)))[0])


@pytest.mark.few(1)
@pytest.mark.parametrize("engine", ["polars chunks", "parquet", "dataset", "lazy", "dask"])
def test_the_network_is_the_same_bit_for_bit_from_every_engine(engine, tmp_path):
    assert_same(trained(of_engine(engine, table(), tmp_path)), trained(table()))


@pytest.mark.slow
def test_a_stand_in_for_spark_gives_the_same_network_and_rows_need_no_key():
    assert_same(trained(spark_frame(table())), trained(table()))
    assert_same(trained(KeyedRows(table(), key="id")), trained(table()))


def kept(held):
    raw = RawTable.read(SCHEMA, table(), owner="test")
    found = kept_rows(
        opened(chunked(table())), SCHEMA, owner="test", n_features=raw.features.shape[1], groups=True, held=held
    )
    assert found[3] is None
    return raw, *found[:3]


@pytest.mark.parametrize("held", [1, 2**26])
def test_any_row_comes_back_from_memory_and_from_the_disk(held):
    raw, X, y, groups = kept(held)
    assert isinstance(X.rows, np.memmap) == (held == 1) and X.shape == raw.features.shape
    rows = np.array([0, 5, 5, 2999])
    np.testing.assert_array_equal(X[rows], raw.features[rows])
    np.testing.assert_array_equal(X[70:75], raw.features[70:75])
    np.testing.assert_array_equal(y, raw.labels())
    np.testing.assert_array_equal(groups, raw.groups())


def test_what_lies_on_the_disk_has_no_name(tmp_path, monkeypatch):
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    _, X, _, _ = kept(1)
    assert not list(tmp_path.iterdir()) and isinstance(X.rows, np.memmap)
    assert not X.rows.flags.writeable


class Counted(FrameRows):
    reads = 0

    def chunks(self):
        self.reads += 1
        return super().chunks()


def test_one_pass_and_then_the_rows_of_each_batch_alone(monkeypatch):
    asked, read = [], RowStore.__getitem__

    def noted(self, index):
        found = read(self, index)
        asked.append(len(found))
        return found

    monkeypatch.setattr(RowStore, "__getitem__", noted)
    source = Counted(table(), 700)
    fitted = model("plain").fit(source)
    # all rows, in pieces: thrice for the tables of numbers, and at the end for the table of answers and the second look
    whole, asked = asked[:3] + asked[-2:], asked[3:-2]
    assert source.reads == 1 and len(asked) == fitted.n_steps_ == 10 and whole == 5 * [3000]
    assert 0.7 * 3000 < sum(asked) < 1.3 * 3000 and max(asked) < 450


def test_what_a_fit_shows_of_a_replayed_neighbour_is_the_same():
    """One record differs: with the outputs of the first fit, the second shows the same to the last bit."""
    with recording_noise(entropy=0) as first:
        one = model("signed loss").fit(chunked(table()))
    with recording_noise(entropy=0, replay=first) as second:
        other = model("signed loss").fit(chunked(spoiled()))
    assert [release.declared for release in first.releases] == [release.declared for release in second.releases]
    np.testing.assert_array_equal(one.predict_proba(PUBLIC), other.predict_proba(PUBLIC))
    assert repr(one) == repr(other) and one.privacy_ == other.privacy_


def test_a_fit_in_chunks_is_planned_and_charged_as_one_in_memory():
    in_memory = model().planned_privacy(table())
    assert model().planned_privacy(chunked(table())).event == in_memory.event
    assert model().fit(chunked(table())).privacy_.event == in_memory.event


def test_a_private_number_of_rows_is_not_read_off_files():
    """Files, bars and the room on the disk follow the true number of rows, which a declared one keeps private."""
    ledger = PrivacyLedger(epsilon=5.0, delta=1e-4)
    with pytest.raises(ValueError, match="'public_n_rows'"):
        model(public_n_rows=3000, ledger=ledger).fit(chunked(table()))
    assert not ledger.entries


@pytest.mark.parametrize(
    ("options", "fit", "text"),
    [({"schema": None, "classes": ["no", "yes"]}, {}, "schema"), ({}, {"y": ["no"] * 3000}, "label")],
)
def test_what_cannot_be_read_in_chunks_is_refused_before_anything_is_spent(options, fit, text):
    ledger = PrivacyLedger(epsilon=5.0, delta=1e-4)
    with pytest.raises(ValueError, match=text):
        model(ledger=ledger, **options).fit(chunked(table()), **fit)
    assert not ledger.entries


@pytest.mark.parametrize(("source", "error"), [(Doubled, RuntimeError), (Lost, KeyboardInterrupt)])
def test_rows_that_are_lost_or_counted_twice_end_the_fit_before_anything_is_spent(source, error):
    ledger = PrivacyLedger(epsilon=5.0, delta=1e-4)
    fitted = model(ledger=ledger)
    with recording_noise() as record, pytest.raises(error):
        fitted.fit(source(table(), 500))
    assert not record.releases and not ledger.entries and not hasattr(fitted, "net_")
