"""Rows of Parquet files, row group by row group."""

import os
import re
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow.dataset
import pyarrow.fs

from skfairdp._rows._opened import as_pandas
from skfairdp._rows._source import MOST_ROWS, Chunk, Made, RowSource, made_by_threads

_UUID = re.compile(r"(?=[0-9-]*[a-f])[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)


class ParquetRows(RowSource):
    """A Parquet file, a folder of them, or a dataset of pyarrow. A row's place is its number over all files, in the
    order of the numbers in their names. Where a file ends may follow what is in it: writers cut by bytes, so that one
    longer text moves rows from one file to the next."""

    def __init__(self, files: Any) -> None:
        self.files = str(files) if isinstance(files, Path) else files

    @property
    def _dataset(self) -> Any:
        if not isinstance(self.files, str):
            return self.files
        try:
            return pyarrow.dataset.dataset(self.files, format="parquet")
        except pyarrow.ArrowInvalid:
            broken = True  # its own message may hold bytes of the file
        if broken:
            raise ValueError(
                f"{self.files} is no Parquet file, nor a folder of such: no other format is read in chunks. Read it "
                "into memory (pandas.read_csv, pandas.read_excel), or write it as Parquet (DataFrame.to_parquet)."
            )

    @property
    def columns(self) -> list[Any]:
        return list(self._dataset.schema.names)

    def _files(self) -> list[Any]:
        """In the order of the numbers in their names: ``part.2`` comes before ``part.10``."""
        return sorted(self._dataset.get_fragments(), key=_numbers_first)

    @cached_property
    def knows_places(self) -> bool:
        """Not of files whose folders, or names beside their numbers, may say what their rows have in a column.
        A record with another value lies in another file there, and moves the rows behind it in both."""
        paths = [PurePosixPath(fragment.path) for fragment in self._files() if hasattr(fragment, "path")]
        declared = (pyarrow.dataset.get_partition_keys(fragment.partition_expression) for fragment in self._files())
        return self._lie_in_one_folder(paths) and _are_numbered(paths) and not any(declared)

    def _lie_in_one_folder(self, paths: list[PurePosixPath]) -> bool:
        """Of a path, that folder itself: which folders are below it follows values, also where there is but one."""
        folders = {path.parent for path in paths}
        if not isinstance(self.files, str):
            return len(folders) <= 1 and not any("=" in folder.name for folder in folders)
        asked = pyarrow.fs.FileSystem.from_uri(self.files)[1] if "://" in self.files else self.files
        return paths == [PurePosixPath(asked)] or all(os.path.abspath(one) == os.path.abspath(asked) for one in folders)

    @cached_property
    def n_rows(self) -> int:
        return int(self._dataset.count_rows())

    def _tasks(self) -> Iterator[tuple[Any, int]]:
        """Row groups, and how many rows are before them."""
        start = 0
        for fragment in self._files():
            if not hasattr(fragment, "split_by_row_group"):
                yield fragment, start
                start += fragment.count_rows()
                continue
            for group in fragment.split_by_row_group():
                yield group, start
                start += sum(rows.num_rows for rows in group.row_groups)  # count_rows() says that of the whole file

    def _read(self, task: tuple[Any, int]) -> Iterator[Chunk]:
        group, start = task
        for batch in group.to_batches(batch_size=MOST_ROWS, use_threads=False, batch_readahead=1):
            if batch.num_rows:
                yield Chunk(as_pandas(batch), (start,))
                start += batch.num_rows

    def chunks(self) -> Iterator[Chunk]:
        for task in self._tasks():
            yield from self._read(task)

    def each(self, function: Callable[[Chunk], Made]) -> Iterator[Made]:
        def of_group(task: tuple[Any, int]) -> tuple[int, list[Made]]:
            made = [(len(chunk.table), function(chunk)) for chunk in self._read(task)]
            return sum(length for length, _ in made), [value for _, value in made]

        return (value for values in self._shown(made_by_threads(self._tasks(), of_group)) for value in values)


def _split(path: PurePosixPath) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """The name of a file in words and numbers, without what a writer draws at random."""
    pieces = re.split(r"([0-9]+)", _UUID.sub("", path.name))
    return tuple(pieces[::2]), tuple(map(int, pieces[1::2]))


def _numbers_first(fragment: Any) -> tuple[tuple[int, ...], str]:
    path = getattr(fragment, "path", "")
    return _split(PurePosixPath(path))[1], path


def _are_numbered(paths: list[PurePosixPath]) -> bool:
    """Whether names differ by numbers alone, no two of them by none: only then do rows that move to the next file stay
    in their order, and ``f.parquet`` beside ``m.parquet`` may be named after values."""
    names = [_split(path) for path in paths]
    return len({words for words, _ in names}) <= 1 and len({numbers for _, numbers in names}) == len(names)
