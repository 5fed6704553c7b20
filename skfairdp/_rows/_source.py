"""What a source of rows is, with sums that are the same for every engine, and the local disk that rows may lie on."""

import os
import shutil
import tempfile
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skfairdp._typing import Array, Ints
from skfairdp._utils import progress_bar, say

Made = TypeVar("Made")
Sum = TypeVar("Sum")
MOST_ROWS = 131_072  # of a chunk, where the engine lets us choose
HELD = 2**26  # bytes that wait in memory, so that small tables never reach the disk


class Spill:
    """Rows of one structured dtype, each of one part. **Private.** In memory up to 64 MiB, then in a nameless file of
    Python's temporary folder, which nobody else can open and the system frees when the process ends."""

    def __init__(self, n_parts: int, held: int = HELD) -> None:
        self.n_parts, self.held = n_parts, held
        self._waiting: list[tuple[Array, Ints]] = []
        self._bytes_waiting = 0
        self._file: Any = None
        self._runs: list[Ints] = []  # of each writing: at which row the parts begin, and the end

    def __enter__(self) -> "Spill":
        return self

    def __exit__(self, *error: object) -> None:
        self._waiting.clear()
        if self._file is not None:
            self._file.close()

    def add(self, rows: Array, parts: Ints) -> None:
        """Take rows in."""
        self._waiting.append((rows, parts))
        self._bytes_waiting += rows.nbytes
        if self._bytes_waiting >= self.held:
            self._write()

    def _write(self) -> None:
        rows, parts = (np.concatenate(columns) for columns in zip(*self._waiting, strict=True))
        order = np.argsort(parts, kind="stable")
        starts = np.searchsorted(parts[order], np.arange(self.n_parts + 1)).astype(np.int64)
        if self._file is None:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 (closed by __exit__)
        self._file.seek(0, 2)
        self._runs.append(self._file.tell() // rows.itemsize + starts)
        self._file.write(rows[order].view(np.uint8).data)
        self._file.flush()  # a disk that is full says so here
        self._waiting.clear()
        self._bytes_waiting = 0

    def read(self, part: int, dtype: np.dtype[Any]) -> Array:
        """All rows of a part, in the order in which they came."""
        places = [(int(starts[part]), int(starts[part + 1])) for starts in self._runs]
        written = np.empty(sum(stop - start for start, stop in places), dtype=dtype)
        into, done = written.view(np.uint8).data, 0
        for start, stop in places:
            self._file.seek(start * dtype.itemsize)
            done += self._file.readinto(into[done : done + (stop - start) * dtype.itemsize])
        if done != written.nbytes:
            raise RuntimeError("The temporary file of encoded rows is shorter than what was written to it.")
        return np.concatenate([written, *(rows[parts == part] for rows, parts in self._waiting)])


def stored(pieces: Iterable[Array], n_rows: int, dtype: Any, held: int = HELD, *, writeable: bool = False) -> Array:
    """One array of all pieces, in their order: in memory up to 64 MiB, else mapped from a file without a name.
    **Private**, as :class:`Spill`; the file is gone with the array."""
    if n_rows * dtype.itemsize <= held:
        return np.concatenate([np.empty(0, dtype), *pieces])
    with tempfile.TemporaryFile() as file:
        for piece in pieces:
            file.write(piece.view(np.uint8).data)
        file.flush()
        mode: Any = "r+" if writeable else "r"
        return np.memmap(file, dtype=dtype, mode=mode, shape=(file.tell() // dtype.itemsize,))


def check_free_disk(n_bytes: int, owner: str, *, verbose: int = 0) -> None:
    """Refuse a table whose encoded rows the temporary folder cannot hold, before one is read."""
    if n_bytes <= HELD:
        return
    folder = tempfile.gettempdir()
    wanted = f"{owner} keeps the encoded rows of X on disk while it learns: {n_bytes / 1e9:.2f} GB in {folder!r}"
    free = shutil.disk_usage(folder).free
    if n_bytes > free:
        raise OSError(
            f"{wanted}, where {free / 1e9:.2f} GB are free. Set the environment variable TMPDIR to a folder with more "
            "room."
        )
    say(f"{wanted}.", verbose=verbose)


Split = tuple[Array, Ints]


@dataclass(frozen=True)
class Chunk:
    """Some of the rows, and where they are: a public place that is the same whenever the source is read."""

    table: pd.DataFrame
    place: tuple[Any, ...]
    rows: Ints | None = None

    @property
    def numbers(self) -> Ints:
        """The number of each row, from the first of its file or of all; public where the source ``knows_numbers``."""
        return int(self.place[-1]) + (np.arange(len(self.table)) if self.rows is None else self.rows)


@dataclass(frozen=True)
class PartWork(Generic[Sum]):
    """Work by parts: rows of all chunks are dealt into parts, something is made of each part, and that is added up."""

    split: Callable[[Chunk], Split]
    use: Callable[[int, Array], Sum]
    n_parts: int
    dtype: np.dtype[Any]
    add: Callable[[Sum, Sum], Sum]


class RowSource(ABC):
    """Rows of a table in chunks, which can be read as often as one likes. Chunks come in any order and may be read
    anew, so that only sums over rows mean anything: a function of one chunk, and an addition that is associative and
    commutative (of integers; sums of floats would follow the order)."""

    #: Column of public ids, one for each row; None where there is none.
    key: str | None = None
    #: Whether rows come in the same order each time.
    knows_order: bool = True
    #: Into how many parts work by parts is cut at least, so that all workers have some.
    fewest_parts: int = 1
    #: Whether rows that are dealt into parts wait on the disk of this machine.
    spills: bool = True
    #: Above 0: bars over rows that have been read; with Spark only where it hands on what it made of single chunks.
    verbose: int = 0
    #: Whether bars may say how many rows there are; where not, they count tenths.
    shows_number: bool = True
    #: Hashes of the ids of subjects, sorted, once they have been read.
    listed: NDArray[np.uint64] | None = None

    @property
    @abstractmethod
    def columns(self) -> list[Any]:
        """Names of the columns, which are public."""

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """Number of rows, which is public."""

    @property
    def knows_places(self) -> bool:
        """Whether ``map_reduce`` says where a chunk is, and that place follows no private cell."""
        return True

    @property
    def knows_numbers(self) -> bool:
        """Whether the number of a row follows no private cell; a key does not make it so."""
        return self.knows_places

    @abstractmethod
    def chunks(self) -> Iterator[Chunk]:
        """All rows, chunk by chunk."""

    def each(self, function: Callable[[Chunk], Made]) -> Iterator[Made]:
        """What a function makes of each chunk, once for every chunk however often it is tried, in their order."""
        return self._shown(made_by_threads(self.chunks(), lambda chunk: (len(chunk.table), function(chunk))))

    @property
    def bar(self) -> tuple[str, int]:
        """What a bar over rows is called, and what it counts up to."""
        return ("rows of X", self.n_rows) if self.shows_number else ("tenths of X", 10)

    def _shown(self, made: Iterable[tuple[int, Made]]) -> Iterator[Made]:
        """Values that were made of so many rows each, with a bar over rows."""
        name, total = self.bar
        with progress_bar(desc=name, total=total, verbose=self.verbose) as bar:
            shown = Tenths(bar, self.n_rows)
            for n_rows, value in made:
                shown.add(n_rows)
                yield value

    def map_reduce(self, function: Callable[[Chunk], Sum], add: Callable[[Sum, Sum], Sum]) -> Sum | None:
        """The sum of a function over all chunks, by threads of this machine; None where there is no chunk."""
        return summed(self.each(function), add)

    def by_part(self, work: PartWork[Sum]) -> Sum | None:
        """The sum of what is made of each part, in one pass over all chunks; one part is in memory at a time."""
        n_parts = work.n_parts
        with Spill(n_parts) as spill:
            for rows, parts in self.each(work.split):
                spill.add(rows, parts)
            parts_left = progress_bar(range(n_parts), desc="parts of X", total=n_parts, verbose=self.verbose)
            return summed((work.use(part, spill.read(part, work.dtype)) for part in parts_left), work.add)


class RowsOfFrame(RowSource):
    """Those of a frame that knows the names of its columns."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame

    @property
    def columns(self) -> list[Any]:
        return list(self.frame.columns)


class Tenths:
    """What a bar over rows shows: every tenth of them, one after the other, wherever chunks end.
    Where a chunk ends may follow private cells, as that of a block of text does, which has so many bytes."""

    def __init__(self, bar: Any, n_rows: int) -> None:
        self.bar, self.n_rows = bar, n_rows
        self._done = self._tenths = 0
        self._one_at_a_time = threading.Lock()

    def add(self, n_rows: int) -> None:
        """Count rows that are done."""
        with self._one_at_a_time:
            self._done += n_rows
            while self._tenths < 10 and 10 * self._done >= (self._tenths + 1) * self.n_rows:
                self._tenths += 1
                self.bar.n = self._tenths * self.bar.total // 10
                self.bar.refresh()


def check_order(source: RowSource, owner: str) -> None:
    """Refuse files whose order may follow what is in them, where rows are used in their order."""
    if source.knows_order and not source.knows_places:
        raise ValueError(
            f"{owner} uses rows in their order, which may depend on private values where files are not numbered in "
            "one folder (as in folders sex=f and sex=m); a key does not change that. Write the rows to numbered "
            "files in one folder, in an order that does not depend on their values."
        )


def other_rows(owner: str) -> RuntimeError:
    """What to raise where a source that is read again has other rows than the first time."""
    return RuntimeError(f"{owner} read X again and got another number of rows. X must give the same rows each time.")


def both_added(add: Callable[[Sum, Sum], Sum], one: tuple[Sum, int], other: tuple[Sum, int]) -> tuple[Sum, int]:
    """Two sums, each with the number of rows that it is of."""
    return add(one[0], other[0]), one[1] + other[1]


def total_of(
    source: RowSource, function: Callable[[Chunk], tuple[Sum, int]], add: Callable[[Sum, Sum], Sum], owner: str
) -> Sum:
    """The sum over all chunks of what a function makes of one and of how many rows: as many as there were before."""
    found = source.map_reduce(function, partial(both_added, add))
    if found is None or found[1] != source.n_rows:
        raise other_rows(owner)
    return found[0]


def even_tables(source: RowSource, n_rows: int = MOST_ROWS) -> Iterator[pd.DataFrame]:
    """The rows of a source in their order, so many at a time, wherever its chunks end."""
    held: list[pd.DataFrame] = []
    for chunk in source.chunks():
        texts = chunk.table.select_dtypes("category").columns  # of which each chunk has its own list
        held.append(chunk.table.astype(dict.fromkeys(texts, object)))
        while sum(map(len, held)) >= n_rows:
            table = pd.concat(held)
            yield table[:n_rows]
            held = [table[n_rows:]]
    if any(map(len, held)):
        yield pd.concat(held)


def made_by_threads(tasks: Iterator[Any], function: Callable[[Any], Made]) -> Iterator[Made]:
    """What a function makes of tasks, in their order, a few of them at a time. An error of one ends all."""
    n_threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    running: deque[Future[Made]] = deque()
    with ThreadPoolExecutor(n_threads) as pool:
        try:
            for task in tasks:
                running.append(pool.submit(function, task))
                if len(running) > n_threads + 1:
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()
        finally:
            for future in running:
                future.cancel()


def summed(values: Iterable[Sum], add: Callable[[Sum, Sum], Sum]) -> Sum | None:
    """The sum of values that come one after the other; None of none."""
    total: list[Sum] = []
    for value in values:
        total = [add(total[0], value) if total else value]
    return total[0] if total else None
