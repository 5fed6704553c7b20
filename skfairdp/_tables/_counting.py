"""Joint counts of pairs of columns: exact integers, from codes of one or two bytes, on all cores."""

import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["code_type", "counted_pairs", "made_on_all_cores"]

Counts = NDArray[np.int64]
Part = TypeVar("Part")
Made = TypeVar("Made")

_WORTH_THREADS = 2_000_000  # additions
_WORTH_POOL = 4  # parts of some milliseconds each
_MOST_CELLS = 2**22  # of the tables that are counted at a time
_BLOCK = 65_536  # rows, whose codes of two columns stay in the cache


def code_type(n_codes: int) -> type[np.unsignedinteger[Any]]:
    """The smallest type that holds so many codes."""
    return np.uint8 if n_codes <= 2**8 else np.uint16 if n_codes <= 2**16 else np.uint32


def counted_pairs(
    values: NDArray[np.integer], n_codes: Sequence[int], pairs: Sequence[tuple[int, int]]
) -> Iterator[Counts]:
    """Joint counts of each pair of columns, one after the other.

    Parameters
    ----------
    values : ndarray of shape (n_rows, n_columns)
        Codes; fastest where the codes of a column lie side by side.
    n_codes : sequence of int
        Of each column.
    pairs : sequence of (int, int)

    Yields
    ------
    ndarray of int64 of shape (codes of the first, codes of the second)
        The same numbers whatever counts them, and however rows are cut into parts.
    """
    columns = np.ascontiguousarray(values.T, dtype=code_type(max(n_codes, default=1)))
    for batch in _batches(n_codes, pairs):
        shapes = [(n_codes[i], n_codes[j]) for i, j in batch]
        ends = np.cumsum([first * second for first, second in shapes])
        counts = np.split(_counted(columns, batch, shapes, ends), ends[:-1])
        yield from (table.reshape(shape) for table, shape in zip(counts, shapes, strict=True))


def _batches(n_codes: Sequence[int], pairs: Sequence[tuple[int, int]]) -> Iterator[list[tuple[int, int]]]:
    """Pairs whose tables fit into memory together."""
    batch: list[tuple[int, int]] = []
    cells = 0
    for i, j in pairs:
        size = n_codes[i] * n_codes[j]
        if batch and cells + size > _MOST_CELLS:
            yield batch
            batch, cells = [], 0
        batch.append((i, j))
        cells += size
    if batch:
        yield batch


def _counted(
    columns: NDArray[Any], pairs: list[tuple[int, int]], shapes: list[tuple[int, int]], ends: Counts
) -> Counts:
    n_rows = columns.shape[1]
    work = n_rows * len(pairs)
    plan = [
        (i, j, second, end - first * second, end)
        for (i, j), (first, second), end in zip(pairs, shapes, ends.tolist(), strict=True)
    ]

    def count(rows: slice) -> Counts:
        out = np.zeros(int(ends[-1]), dtype=np.int64)
        _count(columns, plan, rows, out)
        return out

    n_parts = min(_n_cores(), n_rows // _BLOCK + 1) if work >= _WORTH_THREADS else 1
    edges = np.linspace(0, n_rows, n_parts + 1).astype(int).tolist()
    parts = [slice(*pair) for pair in itertools.pairwise(edges)]
    if n_parts == 1:
        return count(parts[0])
    with ThreadPoolExecutor(n_parts) as pool:
        return np.asarray(sum(pool.map(count, parts)))


def made_on_all_cores(function: Callable[[Part], Made], parts: Sequence[Part]) -> Iterator[Made]:
    """What a function makes of each of many parts, in their order. It must spend its time in numpy."""
    if len(parts) < _WORTH_POOL:
        yield from map(function, parts)
        return
    with ThreadPoolExecutor(_n_cores()) as pool:
        yield from pool.map(function, parts)


def _n_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _count(columns: NDArray[Any], plan: list[tuple[int, int, int, int, int]], rows: slice, out: Counts) -> None:
    for i, j, width, start, end in plan:
        size = end - start
        step = max(_BLOCK, 4 * size)
        for low in range(rows.start, rows.stop, step):
            block = slice(low, min(low + step, rows.stop))
            codes: NDArray[Any] = columns[i, block].astype(np.uint16 if size <= 2**16 else np.int64)
            np.multiply(codes, width, out=codes)
            np.add(codes, columns[j, block], out=codes)
            out[start:end] += np.bincount(codes, minlength=size)
