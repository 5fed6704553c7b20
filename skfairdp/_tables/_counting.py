"""Joint counts of pairs of columns: exact integers, from codes of one or two bytes, on all cores."""

import itertools
import math
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]
Part = TypeVar("Part")
Made = TypeVar("Made")

_WORTH_THREADS = 2_000_000  # additions
_WORTH_POOL = 4  # parts of some milliseconds each
_MOST_CELLS = 2**22  # of the tables that are counted at a time
_BLOCK = 65_536  # rows, whose codes of a few columns stay in the cache
#: Of the joint table of a column and some others: adding it up for each of them is nothing beside counting rows.
_MOST_TOGETHER = 2**15


def code_type(n_codes: int) -> type[np.unsignedinteger[Any]]:
    """The smallest type that holds so many codes."""
    return np.uint8 if n_codes <= 2**8 else np.uint16 if n_codes <= 2**16 else np.uint32


def counted_pairs(
    values: NDArray[np.integer], n_codes: Sequence[int], pairs: Sequence[tuple[int, int]]
) -> Iterator[Counts]:
    """Joint counts of each pair of columns, one after the other."""
    columns = np.ascontiguousarray(values.T, dtype=code_type(max(n_codes, default=1)))
    for batch in _batches(n_codes, pairs):
        shapes = [(n_codes[i], n_codes[j]) for i, j in batch]
        ends = np.cumsum([first * second for first, second in shapes])
        tables = list(together(n_codes, batch, columns.shape[1]))
        counts = np.split(_counted(columns, tables, len(batch)), ends[:-1])
        yield from (table.reshape(shape) for table, shape in zip(counts, shapes, strict=True))


def together(n_codes: Sequence[int], pairs: Sequence[tuple[int, int]], n_rows: int) -> Iterator[dict[int, int]]:
    """Pairs of one column with others that are counted in one joint table: the codes of each, the one column first."""
    most = min(n_rows, _MOST_TOGETHER)
    for i, others in itertools.groupby(pairs, key=lambda pair: pair[0]):
        joint = {i: n_codes[i]}
        for _, j in others:
            if len(joint) > 1 and (j in joint or math.prod(joint.values()) * n_codes[j] > most):
                yield joint
                joint = {i: n_codes[i]}
            joint[j] = n_codes[j]
        yield joint


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


def _counted(columns: NDArray[Any], tables: list[dict[int, int]], n_pairs: int) -> Counts:
    n_rows = columns.shape[1]

    def count(rows: slice) -> Counts:
        return np.concatenate([line for sizes in tables for line in _lines(columns, sizes, rows)])

    n_parts = min(_n_cores(), n_rows // _BLOCK + 1) if n_rows * n_pairs >= _WORTH_THREADS else 1
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


def _lines(columns: NDArray[Any], sizes: dict[int, int], rows: slice) -> list[Counts]:
    """Counts of some rows by a column and each of some others, from one count by all of them."""
    (first, *others), size = sizes, math.prod(sizes.values())
    joint = np.zeros(size, dtype=np.int64)
    step = max(_BLOCK, 4 * size)
    for low in range(rows.start, rows.stop, step):
        block = slice(low, min(low + step, rows.stop))
        codes: NDArray[Any] = columns[first, block].astype(np.uint16 if size <= 2**16 else np.int64)
        for j in others:
            np.multiply(codes, sizes[j], out=codes)
            np.add(codes, columns[j, block], out=codes)
        joint += np.bincount(codes, minlength=size)
    table, axes = joint.reshape(*sizes.values()), range(1, len(sizes))
    return [table.sum(axis=tuple(other for other in axes if other != axis)).ravel() for axis in axes]
