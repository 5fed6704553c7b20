"""The rows of some folds: a source over another one, which keeps a row if its public key says so."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from skfairdp._rows._keyed import row_hashes
from skfairdp._rows._source import Chunk, PartWork, RowsOfAnother, RowSource, Split

Made = TypeVar("Made")
Sum = TypeVar("Sum")


@dataclass(frozen=True)
class FoldRule:
    """Which fold a row is in: a keyed hash of its public key, or of its place where there is no key.

    **One record, one fold.** A neighbouring table has the same keys at the same places, so each of its records is in
    the fold of the record that it stands for, and has the same number of fold mates: nothing but the key is looked at.
    Folds of two neighbours hence differ in one record at most, in one of them, as folds by position do.
    """

    key: str | None
    seed: int
    n_folds: int
    test_share: float | None = None

    def __call__(self, chunk: Chunk) -> NDArray[np.int64]:
        """The fold of each row of a chunk."""
        hashes = row_hashes(chunk, self.key, self.seed)
        if self.test_share is None:
            return (hashes % np.uint64(self.n_folds)).astype(np.int64)
        return (hashes >= np.uint64(min(int(self.test_share * 2.0**64), 2**64 - 1))).astype(np.int64)


class FoldRows(RowsOfAnother):
    """The rows of a source that are in a fold, or those that are not. Its number of rows follows the keys: public."""

    def __init__(self, source: RowSource, rule: FoldRule, fold: int, inside: bool, n_rows: int) -> None:
        super().__init__(source)
        self.rule, self.fold, self.inside = rule, fold, inside
        self._n_rows = n_rows

    @property
    def n_rows(self) -> int:
        return self._n_rows

    @property
    def _kept(self) -> "_Kept":
        return _Kept(self.rule, self.fold, self.inside)

    def chunks(self) -> Iterator[Chunk]:
        for chunk in self.source.chunks():
            yield from self._kept(chunk)

    def each(self, function: Callable[[Chunk], Made]) -> Iterator[Made]:
        for made in self.source.each(partial(_of_kept, self._kept, function)):
            yield from made

    def map_reduce(self, function: Callable[[Chunk], Sum], add: Callable[[Sum, Sum], Sum]) -> Sum | None:
        total = self.source.map_reduce(partial(_of_kept, self._kept, function), partial(_added, add))
        return total[0] if total else None

    def by_part(self, work: PartWork[Sum]) -> Sum | None:
        return self.source.by_part(replace(work, split=partial(_split_kept, self._kept, work.split, work.dtype)))


@dataclass(frozen=True)
class _Kept:
    """The rows of a chunk that stay, with their places."""

    rule: FoldRule
    fold: int
    inside: bool

    def __call__(self, chunk: Chunk) -> list[Chunk]:
        """A chunk, or none where no row stays."""
        rows = np.flatnonzero((self.rule(chunk) == self.fold) == self.inside)
        if not len(rows):
            return []
        before = rows if chunk.rows is None else chunk.rows[rows]
        return [replace(chunk, table=chunk.table.iloc[rows], rows=before)]


def _of_kept(kept: _Kept, function: Callable[[Chunk], Made], chunk: Chunk) -> list[Made]:
    return [function(some) for some in kept(chunk)]


def _added(add: Callable[[Sum, Sum], Sum], one: list[Sum], other: list[Sum]) -> list[Sum]:
    return [add(one[0], other[0])] if one and other else one or other


def _split_kept(kept: _Kept, split: Callable[[Chunk], Split], dtype: np.dtype[Any], chunk: Chunk) -> Split:
    found = _of_kept(kept, split, chunk)
    return found[0] if found else (np.empty(0, dtype), np.empty(0, np.int64))


def fold_sizes(source: RowSource, rule: FoldRule) -> NDArray[np.int64]:
    """How many rows each fold has, from one pass over the keys; public, as the keys are."""
    found = source.map_reduce(partial(_counted, rule), np.add)
    return np.zeros(rule.n_folds, np.int64) if found is None else found


def _counted(rule: FoldRule, chunk: Chunk) -> NDArray[np.int64]:
    return np.bincount(rule(chunk), minlength=rule.n_folds)
