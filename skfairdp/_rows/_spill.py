"""Encoded rows on the local disk, in a file without a name: dealt into parts once, and read again part by part."""

import shutil
import tempfile
from collections.abc import Iterable
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfairdp._utils import say

HELD = 2**26  # bytes that wait in memory, so that small tables never reach the disk


class Spill:
    """Rows of one structured dtype, each of one part.

    **Private.** They lie in memory up to 64 MiB, then in one file of Python's temporary folder, which only its user can
    read and which has no name (or loses it at once, where the system knows no other way): nobody else can open it, and
    the system frees it when the process ends, whatever ends it.
    """

    def __init__(self, n_parts: int, held: int = HELD) -> None:
        self.n_parts = n_parts
        self.held = held
        self._waiting: list[tuple[NDArray[Any], NDArray[np.int64]]] = []
        self._bytes_waiting = 0
        self._file: Any = None
        self._runs: list[NDArray[np.int64]] = []  # of each writing: at which row the parts begin, and the end

    def __enter__(self) -> "Spill":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._waiting.clear()
        if self._file is not None:
            self._file.close()

    def add(self, rows: NDArray[Any], parts: NDArray[np.int64]) -> None:
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

    def read(self, part: int, dtype: np.dtype[Any]) -> NDArray[Any]:
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


def stored(
    pieces: Iterable[NDArray[Any]], n_rows: int, dtype: np.dtype[Any], held: int = HELD, *, writeable: bool = False
) -> NDArray[Any]:
    """One array of all pieces, in their order: in memory up to 64 MiB, else mapped from a file without a name.

    **Private**, as :class:`Spill`; the file is gone with the array.
    """
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
