"""PF-LD by subject over rows in chunks: whose group a row has, and which one is asked for, are those in memory."""

import numpy as np
import pytest

from skfairdp import KeyedRows, PFLDClassifier, PrivacyLedger
from skfairdp.lagrangian import GroupModel, mlp
from skfairdp.schema import Schema
from tests._tools.sources import recording_noise
from tests._tools.spark import spark_frame
from tests.rows.test_streamed_generator import of_engine
from tests.rows.test_streamed_subjects import COLUMNS, N, in_chunks, visits

pytestmark = [
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning"),
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.UtilityWarning"),
]


#: With the group as its first column, by which rows would have an order if they were sorted by all of them.
SCHEMA = Schema({"sex": COLUMNS["sex"], **COLUMNS}, label="ill", groups="sex")


class OfSomeRows(GroupModel):
    """Asks some of the subjects, as of more than 131,072."""

    MOST_ROWS = 40


WAYS = {"all": {}, "some asked": {"primal": OfSomeRows(32)}, "no privacy": {"epsilon": None}}


def rows():
    """Features are public, so that none is beyond its bounds."""
    table = visits()
    return table.assign(a=table["a"].clip(-3, 3), b=table["b"].clip(-3, 3))


def trained(X, way="all", **options):
    net = mlp((4,), max_epochs=2, batch_size=50)
    usual = {"epsilon": 4.0, "schema": SCHEMA, "net": net, "dual_steps": 5, "random_state": 0}
    with recording_noise(entropy=1) as record:
        fitted = PFLDClassifier(**(usual | WAYS[way] | options)).fit(X, subject="patient_id")
    network = [value.numpy() for value in fitted.net_.module_.state_dict().values()]
    return [*network, fitted.multipliers_, *(np.asarray(release.value) for release in record.releases)], fitted


def assert_same(found, expected):
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("way", WAYS)
def test_a_fit_in_chunks_is_that_in_memory(way):
    expected, here = trained(rows(), way)
    found, there = trained(in_chunks(rows()), way)
    assert_same(found, expected)
    assert here.privacy_.event == there.privacy_.event and there.privacy_.rows_of == "patient_id"
    assert list(map(str, here.privacy_.public))[1:] == list(map(str, there.privacy_.public))[1:]
    assert str(there.privacy_.neighboring_relation) == "replace the sensitive attribute of one subject"


@pytest.mark.few(1)
@pytest.mark.parametrize("engine", ["polars chunks", "parquet", "dataset", "lazy", "dask"])
def test_it_is_the_same_from_every_engine(engine, tmp_path):
    table = rows().astype({"patient_id": str})
    assert_same(trained(of_engine(engine, table, tmp_path))[0], trained(table)[0])


def test_the_group_of_a_subject_is_that_of_its_first_row_and_no_other_row_says_anything_of_it():
    table, mixed = rows(), rows()
    later = mixed["patient_id"].duplicated()
    mixed.loc[later, "sex"] = np.where(mixed.loc[later, "sex"] == "f", "m", "f")
    assert_same(trained(KeyedRows(in_chunks(mixed, 11), key="patient_id"))[0], trained(in_chunks(table))[0])
    assert later.sum() > N


def test_rows_without_an_order_are_refused_before_anything_is_spent():
    ledger = PrivacyLedger()
    with pytest.raises(ValueError, match="only where rows come in the same order each time"):
        trained(spark_frame(rows()), ledger=ledger)
    assert not ledger.entries
