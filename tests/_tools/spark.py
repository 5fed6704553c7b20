"""A DataFrame that has of Spark's what the library calls, with the same meaning: partitions, pickled tasks, retries.

And Spark itself, where pyspark and Java are installed.
"""

import os
import pickle
import shutil
import sys

import cloudpickle
import numpy as np
import pytest

__all__ = ["StandInFrame", "spark_frame", "started_spark"]


class StandInFrame:
    """Rows in partitions. A task sees its partition in batches and is pickled; every other one fails after its work.

    Spark drops what a failed task yielded and runs it again, which is what happens here.
    """

    def __init__(self, partitions, batch=170):
        self.partitions = partitions
        self.batch = batch
        self.attempts = 0

    @property
    def columns(self):
        return list(self.partitions[0].columns)

    def count(self):
        return sum(map(len, self.partitions))

    def toLocalIterator(self):
        for partition in self.partitions:
            yield from (_Row(zip(partition.columns, row, strict=True)) for row in partition.itertuples(index=False))

    def mapInPandas(self, function, schema):
        assert schema == "sum binary"
        code = cloudpickle.dumps(function)
        out = []
        for j, partition in enumerate(self.partitions):
            for _attempt in range(1 + j % 2):
                self.attempts += 1
                batches = (partition[k : k + self.batch] for k in range(0, len(partition), self.batch))
                written = list(pickle.loads(code)(batches))
            out += written
        for table in out:
            assert list(table.columns) == ["sum"] and all(isinstance(value, bytes) for value in table["sum"])
        return StandInFrame(out)


StandInFrame.__name__, StandInFrame.__module__ = "DataFrame", "pyspark.sql.dataframe"


class _Row(dict):
    """Cells by name, and in their order as a tuple of them."""

    def __iter__(self):
        return iter(self.values())


def spark_frame(frame, n_partitions=4):
    """The rows of a DataFrame in partitions, one of which is empty."""
    cuts = np.array_split(np.arange(len(frame)), n_partitions)
    return StandInFrame([*(frame.iloc[rows] for rows in cuts), frame.iloc[:0]])


def started_spark():
    """A session of two threads that tries a task four times, as clusters do; skips where there is no Spark."""
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Java is not installed")
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))  # of the workers
    return (
        sql.SparkSession.builder.master("local[2, 4]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")  # starts sooner
        .config("spark.sql.shuffle.partitions", "3")
        .config("spark.sql.execution.arrow.pyspark.enabled", "true")
        .config("spark.log.level", "OFF")
        .getOrCreate()
    )
