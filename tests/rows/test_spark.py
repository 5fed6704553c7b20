"""Spark: sums of partitions by ``mapInPandas``. A stand-in drives the module; pyspark itself where it is installed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from skfairdp import KeyedRows, PrivacyLedger
from skfairdp.generative import MarginalsBackend
from tests._tools.inside import SparkRows, opened
from tests._tools.sources import recording_noise
from tests._tools.spark import spark_frame, started_spark
from tests.rows.test_streamed_decisions import filtered, skewed
from tests.rows.test_streamed_dpsgd import trained
from tests.rows.test_streamed_folds import assert_same as assert_same_search, searched
from tests.rows.test_streamed_generator import N, generator, table
from tests.rows.test_streamed_teachers import fair_pate, votes
from tests.rows.test_streamed_thresholds import tables

pytestmark = [
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning"),
    pytest.mark.filterwarnings("ignore:.*given to PrivateThresholds has no privacy_"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]


def counts(X, **options):
    with recording_noise(0) as record:
        generator(**options).fit(X)
    return [np.asarray(release.output) for release in record.releases]


def assert_same(found, expected):
    assert len(found) == len(expected) > 0
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_stand_in_for_spark_whose_tasks_fail_once_gives_the_counts_of_the_frame():
    stand_in = spark_frame(table())
    assert_same(counts(stand_in), counts(table()))
    assert stand_in.attempts > len(stand_in.partitions)  # some tasks did run twice


def test_a_stand_in_for_spark_hands_out_all_rows_in_order():
    source = opened(spark_frame(table()))
    assert isinstance(source, SparkRows) and source.n_rows == N and source.columns == list(table().columns)
    rows = pd.concat([chunk.table for chunk in source.chunks()])
    for name in ("id", "age", "score", "member", "label"):
        np.testing.assert_array_equal(rows[name].to_numpy(), table()[name].to_numpy())


@pytest.fixture(scope="module")
def spark():
    session = started_spark()
    yield session
    session.stop()


@pytest.mark.spark
@pytest.mark.parametrize("structure", ["tree", "star"])
def test_spark_itself_gives_the_counts_of_the_frame(spark, structure):
    backend = MarginalsBackend(structure=structure)
    assert_same(
        counts(spark.createDataFrame(table()).repartition(3), backend=backend), counts(table(), backend=backend)
    )


@pytest.mark.spark
def test_spark_itself_gives_the_votes_of_the_frame_in_any_order_of_rows(spark):
    expected = votes(KeyedRows(table(), key="id"))
    mixed = spark.createDataFrame(table().sample(frac=1, random_state=0)).repartition(5)
    assert_same(votes(KeyedRows(mixed, key="id")), expected)


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore::skfairdp.exceptions.UtilityWarning")
def test_spark_itself_gives_the_scores_and_the_winner_of_the_frame_on_private_folds(spark):
    found = []
    for X in (table(), spark.createDataFrame(table()).repartition(3)):
        with recording_noise(0):
            found.append(searched(KeyedRows(X, key="id")))
    assert_same_search(*found)


@pytest.mark.spark
def test_spark_itself_gives_the_network_of_the_frame_where_it_keeps_the_order(spark):
    assert_same(trained(spark.createDataFrame(table())), trained(table()))


@pytest.mark.spark
def test_spark_itself_gives_the_thresholds_of_the_frame(spark):
    assert_same(tables(spark.createDataFrame(table())), tables(table()))


@pytest.mark.spark
def test_spark_itself_hands_the_filter_the_rows_that_it_keeps_in_memory(spark):
    frame = skewed()
    frame["job"] = frame["job"].where(frame["job"] != "astronaut")
    parity, rows, labels = filtered(spark.createDataFrame(frame))
    in_memory, expected, names = filtered(lambda: [frame])
    np.testing.assert_array_equal(rows["id"], expected["id"])
    np.testing.assert_array_equal(labels, names)
    np.testing.assert_array_equal(parity.counts_, in_memory.counts_)


def failing(frame, folder, *, deaths=1, kill=False, reads=0):
    """The same rows; a task fails after it has handed on some, the first times after as many that did not."""

    def of_partition(parts):
        yield from parts
        attempts = len(list(Path(folder).iterdir()))
        if reads <= attempts < reads + deaths:
            (Path(folder) / str(attempts)).touch()
            if kill:
                os.kill(os.getpid(), signal.SIGKILL)
            raise OSError("A disk was lost.")
        if attempts < reads:
            (Path(folder) / str(attempts)).touch()

    return frame.mapInPandas(of_partition, frame.schema)


@pytest.mark.spark
@pytest.mark.parametrize("kill", [False, True], ids=["an error", "a killed worker"])
def test_a_task_that_spark_tries_again_counts_once(spark, kill, tmp_path):
    made = {name: tmp_path / name for name in ("counts", "votes", "network")}
    for folder in made.values():
        folder.mkdir()
    frame = spark.createDataFrame(table())
    assert_same(counts(failing(frame, made["counts"], deaths=2, kill=kill)), counts(table()))
    keyed = KeyedRows(failing(frame, made["votes"], kill=kill), key="id")
    assert_same(votes(keyed), votes(KeyedRows(table(), key="id")))
    assert_same(trained(failing(frame, made["network"], kill=kill)), trained(table()))
    assert [len(list(folder.iterdir())) for folder in made.values()] == [2, 1, 1]  # they did fail


@pytest.mark.spark
@pytest.mark.parametrize(("reads", "charged"), [(0, 0), (4, 1)], ids=["before noise", "after noise"])
def test_workers_that_are_killed_for_good_leave_the_ledger_as_it_must_be_and_no_half_fit(
    spark, reads, charged, tmp_path
):
    """The count of rows and the first pass are two tasks each; the second pass begins when noise has been drawn."""
    ledger = PrivacyLedger(epsilon=9.0, delta=1e-3)
    model = generator(ledger=ledger)
    frame = failing(spark.createDataFrame(table()).coalesce(2), tmp_path, deaths=99, kill=True, reads=reads)
    with recording_noise() as record, pytest.raises(Exception, match=r"(?s)worker|Job aborted"):
        model.fit(frame)
    assert bool(record.releases) == bool(charged) and len(ledger.entries) == charged
    assert not hasattr(model, "model_") and not hasattr(model, "rates_")


@pytest.mark.spark
def test_workers_that_are_killed_while_teachers_read_cost_nothing(spark, tmp_path):
    ledger = PrivacyLedger(epsilon=9.0, delta=1e-3)
    model = fair_pate(ledger=ledger)
    frame = failing(spark.createDataFrame(table()), tmp_path, deaths=99, kill=True)
    with recording_noise() as record, pytest.raises(Exception, match=r"(?s)worker|Job aborted"):
        model.fit(KeyedRows(frame, key="id"))
    assert not record.releases and not ledger.entries and not hasattr(model, "student_")


DRIVER = """
import sys, warnings
warnings.simplefilter("ignore")
from skfairdp import PrivacyLedger
from tests._tools.processes import die_at_the_first_noise
from tests._tools.spark import started_spark
from tests.rows.test_streamed_generator import generator, table

die_at_the_first_noise()
frame = started_spark().createDataFrame(table())
print("begun", flush=True)
generator(ledger=PrivacyLedger(9.0, delta=1e-3, path=sys.argv[1])).fit(frame)
print("ended", flush=True)
"""


@pytest.mark.spark
def test_a_driver_of_spark_that_is_killed_after_the_first_noise_has_paid(tmp_path):
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    path = tmp_path / "ledger.jsonl"
    PrivacyLedger(9.0, delta=1e-3, path=path)
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, str(path)],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False, cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL and done.stdout == "begun\n"
    assert len(PrivacyLedger(9.0, delta=1e-3, path=path).entries) == 1
