"""Spark: sums of partitions by ``mapInPandas``. A stand-in drives the module; pyspark itself where it is installed."""

import numpy as np
import pandas as pd
import pytest

from skfairdp._rows import opened
from skfairdp._rows._spark import SparkRows
from tests._tools.sources import recording_noise
from tests._tools.spark import spark_frame
from tests.rows.test_streamed_generator import N, generator, table

pytestmark = pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning")


def counts(X):
    with recording_noise(0) as record:
        generator().fit(X)
    return [np.asarray(release.output) for release in record.releases]


def assert_same_counts(found, expected):
    assert len(found) == len(expected) > 0
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_stand_in_for_spark_whose_tasks_fail_once_gives_the_counts_of_the_frame():
    stand_in = spark_frame(table())
    assert_same_counts(counts(stand_in), counts(table()))
    assert stand_in.attempts > len(stand_in.partitions)  # some tasks did run twice


def test_a_stand_in_for_spark_hands_out_all_rows_in_order():
    source = opened(spark_frame(table()))
    assert isinstance(source, SparkRows) and source.n_rows == N and source.columns == list(table().columns)
    rows = pd.concat([chunk.table for chunk in source.chunks()])
    for name in ("id", "age", "score", "member", "label"):
        np.testing.assert_array_equal(rows[name].to_numpy(), table()[name].to_numpy())


@pytest.mark.spark
def test_spark_itself_gives_the_counts_of_the_frame():
    sessions = pytest.importorskip("pyspark.sql", reason="pyspark is not installed").SparkSession
    session = sessions.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    try:
        assert_same_counts(counts(session.createDataFrame(table()).repartition(3)), counts(table()))
    finally:
        session.stop()
