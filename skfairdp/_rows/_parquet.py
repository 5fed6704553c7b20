"""Rows of Parquet files, row group by row group."""

from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import pyarrow.dataset

from skfairdp._rows._chunks import as_pandas
from skfairdp._rows._source import MOST_ROWS, Chunk, RowSource, made_by_threads, summed

__all__ = ["ParquetRows"]

Made = TypeVar("Made")
Sum = TypeVar("Sum")


class ParquetRows(RowSource):
    """A Parquet file, a folder of them, or a dataset of pyarrow.

    Parameters
    ----------
    files : str, Path or pyarrow.dataset.Dataset
    """

    def __init__(self, files: Any) -> None:
        self.files = str(files) if isinstance(files, Path) else files

    @property
    def _dataset(self) -> Any:
        if not isinstance(self.files, str):
            return self.files
        return pyarrow.dataset.dataset(self.files, format="parquet")

    @property
    def columns(self) -> list[Any]:
        return list(self._dataset.schema.names)

    @cached_property
    def knows_places(self) -> bool:
        """Not of files in folders that are named after values.

        A record with another value lies in another file there, and moves the rows behind it in both.
        """
        return not _follow_values(list(self._dataset.get_fragments()))

    @cached_property
    def n_rows(self) -> int:
        return int(self._dataset.count_rows())

    def _tasks(self) -> Iterator[tuple[Any, tuple[Any, ...]]]:
        """Row groups, and where they are."""
        for fragment in self._dataset.get_fragments():
            groups = fragment.split_by_row_group() if hasattr(fragment, "split_by_row_group") else [fragment]
            start = 0
            for group in groups:
                yield group, (fragment.path, start)
                start += group.count_rows()

    def _read(self, task: tuple[Any, tuple[Any, ...]]) -> Iterator[Chunk]:
        group, (path, start) = task
        for batch in group.to_batches(batch_size=MOST_ROWS, use_threads=False, batch_readahead=1):
            if batch.num_rows:
                yield Chunk(as_pandas(batch), (path, start))
                start += batch.num_rows

    def chunks(self) -> Iterator[Chunk]:
        for task in self._tasks():
            yield from self._read(task)

    def each(self, function: Callable[[Chunk], Made]) -> Iterator[Made]:
        def of_group(task: tuple[Any, tuple[Any, ...]]) -> tuple[int, list[Made]]:
            made = [(len(chunk.table), function(chunk)) for chunk in self._read(task)]
            return sum(length for length, _ in made), [value for _, value in made]

        of_groups = self._shown(made_by_threads(self._tasks(), of_group))
        return (value for values in of_groups for value in values)

    def map_reduce(self, function: Callable[[Chunk], Sum], add: Callable[[Sum, Sum], Sum]) -> Sum | None:
        def of_group(task: tuple[Any, tuple[Any, ...]]) -> tuple[int, Sum | None]:
            lengths: list[int] = []
            total = summed((function(_noted(chunk, lengths)) for chunk in self._read(task)), add)
            return sum(lengths), total

        of_groups = self._shown(made_by_threads(self._tasks(), of_group))
        return summed((value for value in of_groups if value is not None), add)


def _follow_values(fragments: list[Any]) -> bool:
    """Whether files lie in folders that say what their rows have in a column, as ``sex=f`` beside ``sex=m`` does."""
    folders = [set(Path(getattr(fragment, "path", "")).parts[:-1]) for fragment in fragments]
    named = {part for parts in folders for part in parts if "=" in part}
    declared = (pyarrow.dataset.get_partition_keys(fragment.partition_expression) for fragment in fragments)
    return any(part not in parts for part in named for parts in folders) or any(declared)


def _noted(chunk: Chunk, lengths: list[int]) -> Chunk:
    lengths.append(len(chunk.table))
    return chunk
