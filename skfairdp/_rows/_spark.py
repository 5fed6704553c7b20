"""Rows of a Spark DataFrame: one sum for each partition, made where the rows are (``mapInPandas``)."""

import itertools
import pickle
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, TypeVar

import pandas as pd

from skfairdp._rows._source import MOST_ROWS, Chunk, RowSource

Made = TypeVar("Made")
Sum = TypeVar("Sum")


class SparkRows(RowSource):
    """A Spark DataFrame. Tests drive it by Spark itself where pyspark is installed, and by a stand-in everywhere."""

    knows_places = knows_order = False

    def __init__(self, frame: Any) -> None:
        self.frame = frame

    @property
    def columns(self) -> list[Any]:
        return list(self.frame.columns)

    @cached_property
    def n_rows(self) -> int:
        return int(self.frame.count())

    def chunks(self) -> Iterator[Chunk]:
        rows, start = iter(self.frame.toLocalIterator()), 0
        while some := list(itertools.islice(rows, MOST_ROWS)):
            yield Chunk(pd.DataFrame.from_records([tuple(row) for row in some], columns=self.columns), (start,))
            start += len(some)

    def each(self, function: Callable[[Chunk], Made]) -> Iterator[Made]:
        """Spark makes them where the rows are; what it made reaches the driver one partition after the other."""

        def of_partition(tables: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
            for table in tables:
                if len(table):
                    yield pd.DataFrame({"sum": [pickle.dumps((len(table), function(Chunk(table, ()))))]})

        # Only what a task that ended yielded counts, however often Spark tried it.
        rows = self.frame.mapInPandas(of_partition, "sum binary").toLocalIterator()
        return self._shown(pickle.loads(row["sum"]) for row in rows)

    def map_reduce(self, function: Callable[[Chunk], Sum], add: Callable[[Sum, Sum], Sum]) -> Sum | None:
        def of_partition(tables: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
            total: list[Sum] = []
            for table in tables:
                if len(table):
                    value = function(Chunk(table, ()))
                    total = [add(total[0], value) if total else value]
            yield pd.DataFrame({"sum": [pickle.dumps(total)]})

        total: list[Sum] = []
        # Only the result of a task that ended counts, however often Spark tried it.
        for row in self.frame.mapInPandas(of_partition, "sum binary").toLocalIterator():
            for value in pickle.loads(row["sum"]):
                total = [add(total[0], value) if total else value]
        return total[0] if total else None
