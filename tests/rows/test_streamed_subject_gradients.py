"""DP-SGD by subject over rows in chunks: the network of a fit in memory, from one pass and the rows of each batch."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest

from skfairdp import FairDPSGDClassifier, KeyedRows, ParetoSearchCV, PrivacyLedger, PublicData
from skfairdp.gradient import SignedLoss, mlp
from skfairdp.schema import RowStore
from tests._tools.engines import Doubled
from tests._tools.inside import FrameRows, Subjects
from tests._tools.sources import FixedAnswers, installed, moves, recording_noise
from tests._tools.spark import spark_frame
from tests.rows.test_streamed_generator import of_engine
from tests.rows.test_streamed_subjects import PUBLIC, SCHEMA, N, in_chunks, visits

pytestmark = [
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning"),
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.UtilityWarning"),
]
K = 3  # of one to six rows of a subject
WAYS = {
    "penalty": {"public_data": PublicData(PUBLIC)},
    "signed loss": {"parity": SignedLoss(dual_steps=2)},
    "plain": {"lam": 0.0},
    "one row of each": {"lam": 0.0, "max_rows_per_subject": 1},
}


def model(way="plain", **options):
    net = mlp((4,), max_epochs=2, batch_size=20)
    usual = {"epsilon": 8.0, "schema": SCHEMA, "net": net, "random_state": 0, "max_rows_per_subject": K}
    return FairDPSGDClassifier(**(usual | WAYS[way] | options))


def trained(X, way="plain", **options):
    """All weights, and what is released."""
    with recording_noise(entropy=1) as record:
        fitted = model(way, **options).fit(X, subject="patient_id")
    weights = [value.numpy() for value in fitted.net_.module_.state_dict().values()]
    return [*weights, *(np.asarray(release.value) for release in record.releases)], fitted


def assert_same(found, expected):
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.few(2)
@pytest.mark.parametrize("way", WAYS)
def test_the_network_is_that_of_a_fit_in_memory_bit_for_bit(way):
    table = visits()
    expected, here = trained(table, way)
    found, there = trained(in_chunks(table), way)
    assert_same(found, expected)
    assert here.privacy_ == there.privacy_ and list(here.privacy_.public) == list(there.privacy_.public)
    assert there.privacy_.rows_of == "patient_id" and there.privacy_.protects == "subject"
    assert not np.array_equal(found[0], trained(in_chunks(visits(seed=1)), way)[0][0])


@pytest.mark.few(1)
@pytest.mark.parametrize("engine", ["polars chunks", "parquet", "dataset", "lazy", "dask"])
def test_the_network_is_the_same_bit_for_bit_from_every_engine(engine, tmp_path):
    table = visits().astype({"patient_id": str})
    assert_same(trained(of_engine(engine, table, tmp_path), "signed loss")[0], trained(table, "signed loss")[0])


def test_neither_the_order_of_rows_nor_where_chunks_end_matters():
    """Also which rows of a subject are learned from, of which it has more than so many."""
    expected, mixed = trained(visits())[0], visits().sample(frac=1, random_state=1)
    for X in (mixed, in_chunks(mixed, 11), KeyedRows(in_chunks(mixed), key="patient_id"), spark_frame(mixed)):
        assert_same(trained(X)[0], expected)


class Counted(FrameRows):
    def __init__(self, *given):
        super().__init__(*given)
        self.read = []  # shared by the source that reads the same rows by their key

    def chunks(self):
        self.read.append(self)
        return super().chunks()


def test_two_passes_and_then_the_rows_of_each_batch_alone(monkeypatch):
    """One pass lists the subjects, as the plan follows their number; the other keeps encoded rows."""
    asked, read = [], RowStore.__getitem__

    def noted(self, index):
        found = read(self, index)
        asked.append(len(found))
        return found

    monkeypatch.setattr(RowStore, "__getitem__", noted)
    source = Counted(visits(), 70)
    fitted = model().fit(source, subject="patient_id")
    of_batches = [n for n in asked if n not in (1, N)]  # the others look at one row of each subject
    assert len(source.read) == 2 and len(of_batches) == fitted.n_steps_
    assert 0.7 < np.mean(of_batches) / (20 * K) < 1.3 and max(of_batches) < N * K


class NoCoins(FixedAnswers):
    """Batches are of the same subjects in both worlds, and all releases as well."""

    def joined(self, probability, n_rows):
        return np.flatnonzero(np.random.default_rng(len(self.log)).random(n_rows) < probability)


@pytest.mark.parametrize("way", ["plain", "signed loss"])
def test_in_chunks_no_release_moves_further_where_a_subject_has_no_rows(way):
    found = []
    for one in range(0, N, 9):
        here = visits()
        its = here["patient_id"] == f"p{one}"
        here.loc[its, "a"] = np.resize([1e9, -3.0, np.nan], its.sum())
        sources = []
        for table in (here, here[~its]):
            with installed(NoCoins()) as source, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model(way).fit(in_chunks(table), subject="patient_id")
            sources.append(source)
        found.append(max(moves(*sources)))
    assert max(found) > 0.95


def test_the_number_of_subjects_is_stated_and_that_of_rows_follows_from_nothing(monkeypatch):
    ledger, table = PrivacyLedger(), visits()
    fitted = model(ledger=ledger).fit(in_chunks(table), subject="patient_id")
    facts = {fact.name: fact.value for fact in fitted.privacy_.public}
    assert facts["number of subjects"] == N and "number of private rows" not in facts
    assert (
        not re.search(rf"\b{len(table)}\b", fitted.privacy_statement().to_json())
        and ledger.entries[0].rows_of == "patient_id"
    )
    assert not [value for value in vars(fitted).values() if isinstance(value, Subjects | RowStore | pd.DataFrame)]
    planned = [
        model().planned_privacy(in_chunks(pd.concat([table] * times)), subject="patient_id").event for times in (1, 3)
    ]
    assert planned[0] == planned[1] == fitted.privacy_.event


def test_a_search_folds_subjects_in_chunks_as_in_memory():
    shown = []
    for X in (visits(), in_chunks(visits())):
        with recording_noise(entropy=3):
            search = ParetoSearchCV(model(), {"net__lr": [0.5, 2.0]}, cv=2, random_state=0)
            search.fit(X, subject="patient_id")
        shown.append([values for name, values in search.cv_results_.items() if "test" in name])
    assert_same(*shown)


def test_what_cannot_be_read_is_refused_before_anything_is_spent():
    ledger = PrivacyLedger()
    with pytest.raises(ValueError, match="'subject' and a declared number of rows"):
        model(public_n_rows=300, ledger=ledger).fit(in_chunks(visits()), subject="patient_id")
    with pytest.raises(ValueError, match="'subject' must name exactly one column of it"):
        model(ledger=ledger).fit(in_chunks(visits()), subject=visits()["patient_id"])
    with pytest.raises(RuntimeError, match="another number of rows"):
        model(ledger=ledger).fit(Doubled(visits(), 40), subject="patient_id")
    assert not ledger.entries
