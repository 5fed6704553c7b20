"""Joint counts of pairs of columns: exact integers, from codes of one or two bytes, on all cores."""

import itertools
import math
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from skfairdp._typing import Array, Codes, Floats, Ints, Pair

Counts = Ints
Part = TypeVar("Part")
Made = TypeVar("Made")

_WORTH_POOL = 4  # parts of some milliseconds each
_MOST_CELLS = 2**22  # of the tables that are counted at a time
_BLOCK = 65_536  # rows, whose codes of a few columns stay in the cache
#: Of the joint table of some columns: adding it up for each pair of them is little beside counting rows.
_MOST_TOGETHER = 2**15


def code_type(n_codes: int) -> type[np.unsignedinteger[Any]]:
    """The smallest type that holds so many codes."""
    return np.uint8 if n_codes <= 2**8 else np.uint16 if n_codes <= 2**16 else np.uint32


def counted_pairs(values: Codes, n_codes: Sequence[int], pairs: Sequence[Pair]) -> Iterator[Counts]:
    """Joint counts of each pair of columns, one after the other."""
    columns = np.ascontiguousarray(values.T, dtype=code_type(max(n_codes, default=1)))
    for batch in _batches(n_codes, pairs):
        counts: dict[Pair, Counts] = {}
        for found in made_on_all_cores(partial(_counted, columns), list(together(n_codes, batch, columns.shape[1]))):
            counts |= found
        yield from (counts[pair] for pair in batch)


def together(n_codes: Sequence[int], pairs: Sequence[Pair], n_rows: int) -> Iterator[tuple[dict[int, int], list[Pair]]]:
    """Columns that are counted in one joint table, with the codes of each, and the pairs that are read off it."""
    sizes, most, left = np.asarray(n_codes), min(n_rows, _MOST_TOGETHER), dict.fromkeys(pairs)
    wanted = np.zeros((len(sizes), len(sizes)), dtype=np.int64)
    for pair in left:
        wanted[pair] += 1
        wanted[pair[::-1]] += 1
    while left:
        columns = list(next(iter(left)))
        while True:  # one more column, of which the most pairs are left
            gain = wanted[columns].sum(axis=0) * (sizes <= most // math.prod(n_codes[j] for j in columns))
            gain[columns] = 0
            if not gain.any():
                break
            columns.append(int(gain.argmax()))
        found = [pair for pair in itertools.permutations(columns, 2) if pair in left]
        for pair in found:
            del left[pair]
            wanted[pair] -= 1
            wanted[pair[::-1]] -= 1
        yield {j: n_codes[j] for j in columns}, found


def _batches(n_codes: Sequence[int], pairs: Sequence[Pair]) -> Iterator[list[Pair]]:
    """Pairs whose tables fit into memory together."""
    batch: list[Pair] = []
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


def made_on_all_cores(function: Callable[[Part], Made], parts: Sequence[Part]) -> Iterator[Made]:
    """What a function makes of each of many parts, in their order. It must spend its time in numpy."""
    if len(parts) < _WORTH_POOL:
        yield from map(function, parts)
        return
    n_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with ThreadPoolExecutor(n_cores) as pool:
        yield from pool.map(function, parts)


def _counted(columns: Array, table: tuple[dict[int, int], list[Pair]]) -> dict[Pair, Counts]:
    """Counts of pairs of columns, from one count by all columns of a table."""
    sizes, pairs = table
    (first, *others), size, n_rows = sizes, math.prod(sizes.values()), columns.shape[1]
    joint = np.zeros(size, dtype=np.int64)
    step = max(_BLOCK, 4 * size)
    for low in range(0, n_rows, step):
        block = slice(low, min(low + step, n_rows))
        codes: Array = columns[first, block].astype(np.uint16 if size <= 2**16 else np.int64)
        for j in others:
            np.multiply(codes, sizes[j], out=codes)
            np.add(codes, columns[j, block], out=codes)
        joint += np.bincount(codes, minlength=size)
    axes = {j: axis for axis, j in enumerate(sizes)}
    by_all = joint.reshape(*sizes.values())
    return {(i, j): np.einsum(by_all, list(axes.values()), [axes[i], axes[j]]) for i, j in pairs}


_FEW = 16  # starts: so many comparisons of all numbers are faster than a look at their first bytes
_WORTH_A_TABLE = 32_768  # numbers: a table of 65,536 entries is made first
_MOST_COMPARED = 4  # starts, one after the other; with more numpy's search is as fast


class BinSearch:
    """How many starts are at most a number: what ``np.searchsorted(starts, numbers, side="right")`` says. The first two
    bytes of a float are its sign, its power of two and four bits more. A table says how many starts have lower ones;
    those with the same, mostly one or none, are compared with the number itself, as all of few are."""

    def __init__(self, starts: Floats, n_numbers: int) -> None:
        self.starts, self._ends = starts, np.append(starts, np.nan)  # which no number reaches
        self._below: NDArray[np.uint16] | None = None
        if len(starts) <= _FEW or n_numbers < _WORTH_A_TABLE:
            return
        ranks = _ranks()
        at_rank = np.bincount(ranks[_first_bytes(starts)], minlength=len(ranks))
        self._n_compared = int(at_rank.max(initial=0))
        if self._n_compared <= _MOST_COMPARED:
            self._below = (np.cumsum(at_rank) - at_rank)[ranks].astype(np.uint16)

    def __call__(self, numbers: Floats) -> Codes:
        """Starts at most each number, of a type that holds a few more; of NaN anything."""
        numbers = np.ascontiguousarray(numbers)
        if len(self.starts) <= _FEW:
            few = np.zeros(len(numbers), dtype=np.uint8)
            for start in self.starts:
                few += (numbers >= start).view(np.uint8)
            return few
        if self._below is None:
            return np.searchsorted(self.starts, numbers, side="right")
        found = self._below.take(_first_bytes(numbers))
        for _ in range(self._n_compared):
            found += numbers >= self._ends.take(found)
        return found


def _first_bytes(numbers: Floats) -> NDArray[np.uint16]:
    """As one whole number; those of -0.0 are those of 0.0."""
    return (numbers + 0.0).astype("<f8", copy=False).view("<u2")[3::4]


@cache
def _ranks() -> Ints:
    """Place of each pair of bytes among all, in the order of the numbers they begin: the negative ones turn round."""
    pairs = np.arange(2**16)
    return np.where(pairs < 2**15, pairs + 2**15, 2**16 - 1 - pairs)
