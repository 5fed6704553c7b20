"""Votes of teachers whose rows do not fit into memory: some teachers at a time, and nothing of them but votes."""

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfairdp._rows import Chunk, PartWork, RowSource, other_rows, row_hashes
from skfairdp._teachers._partition import vote_histogram
from skfairdp._teachers._teachers import fit_teachers
from skfairdp._utils import child_seeds
from skfairdp.schema import CompactRows, RawTable, Schema

_MOST_BYTES = 2**29  # of the features of teachers that are trained at once

#: What teachers make of their rows, the teacher of each and a seed for every teacher: counts that are added up.
Learns = Callable[[RawTable, NDArray[np.int64], NDArray[np.int64]], NDArray[np.int64]]


def streamed_votes(
    teacher: Any,
    source: RowSource,
    queries: NDArray[np.float64],
    *,
    schema: Schema,
    owner: str,
    n_teachers: int,
    n_classes: int,
    rng: np.random.Generator,
    n_jobs: int | None = None,
    verbose: int = 0,
    most_bytes: int = _MOST_BYTES,
) -> NDArray[np.int64]:
    r"""Count the votes of teachers on queries; **private**.

    Row *i* with public key :math:`k_i` belongs to teacher :math:`h_s(k_i) \bmod T`, where the seed *s* is public.

    **One record, one teacher.** Neighbouring tables have the same number of rows and the same keys, and differ in the
    cells of one row. (1) :math:`h_s(k_i)` is a function of *s* and :math:`k_i` alone, so every row of both tables has
    the same teacher in both. (2) A teacher is a function of the rows that have its number, in the order of their
    hashes, of its seed and of public settings: no chunk, no part and no other row enters. So the teachers of all rows
    but the one that differs are the same bit for bit, and one teacher of *T* may differ: a query's histogram moves by
    at most :math:`\sqrt 2` in L2 norm, as in memory. (3) A task that is tried again computes the same value, and the
    engine adds the value of one attempt only. Were one counted twice, the number of rows behind the votes would not be
    the public number of rows, and the fit ends with an error before anything is released.

    Equal keys share a teacher, which makes parts uneven and changes none of this.
    """
    learns = _Votes(teacher, queries, n_classes, n_jobs)
    columns = (*schema.features, *((schema.label,) if schema.label else ()))
    counts = streamed_counts(
        learns, source, columns=columns, schema=schema, owner=owner, n_teachers=n_teachers,
        n_features=queries.shape[1], rng=rng, verbose=verbose, most_bytes=most_bytes,
    )  # fmt: skip
    return counts.reshape(len(queries), n_classes)


def streamed_counts(
    learns: Learns,
    source: RowSource,
    *,
    columns: tuple[str, ...],
    schema: Schema,
    owner: str,
    n_teachers: int,
    n_features: int,
    rng: np.random.Generator,
    verbose: int = 0,
    most_bytes: int = _MOST_BYTES,
    together: int = 1,
) -> NDArray[np.int64]:
    """Add up what teachers say, whatever they learn; **private**. The argument is that of :func:`streamed_votes`."""
    seed, seeds = int(rng.integers(2**63 - 1)), child_seeds(rng, n_teachers)
    n_parts = max(source.fewest_parts, -(-source.n_rows * n_features * 8 // most_bytes))
    n_runs = -(-n_teachers // together)
    edges = np.linspace(0, n_runs, min(n_parts, n_runs) + 1).astype(np.int64) * together
    compact = CompactRows(schema, owner, columns)
    parts = _Teaching(learns, compact, source.key, seed, seeds, np.minimum(edges, n_teachers))
    source.verbose = verbose
    total = source.by_part(PartWork(parts.split, parts.vote, len(edges) - 1, _dtype(compact), operator.add))
    if total is None or int(total[-1]) != source.n_rows:
        raise other_rows(owner)
    return total[:-1]


def streamed_class_counts(source: RowSource, schema: Schema, owner: str) -> NDArray[np.int64]:
    """Count the rows of each class of the schema, chunk by chunk; **private**."""
    counts = source.map_reduce(_ClassesOfAChunk(schema, owner), operator.add)
    if counts is None or int(counts.sum()) != source.n_rows:
        raise other_rows(owner)
    return counts


@dataclass(frozen=True)
class _ClassesOfAChunk:
    """What counts the classes of a chunk: public, and pickled for engines that run elsewhere."""

    schema: Schema
    owner: str

    def __call__(self, chunk: Chunk) -> NDArray[np.int64]:
        raw = RawTable.read(self.schema, chunk.table, owner=self.owner, may_be_empty=True)
        return np.bincount(raw.labels(), minlength=len(raw.classes))


def bytes_on_disk(schema: Schema, n_rows: int, *, groups: bool = False) -> int:
    """How much disk the encoded rows of a table take while teachers learn from them: public."""
    columns = (*schema.features, *((schema.label,) if schema.label else ()), *(schema.groups if groups else ()))
    return n_rows * _dtype(CompactRows(schema, "", columns)).itemsize


def _dtype(compact: CompactRows) -> np.dtype[Any]:
    return np.dtype([("hash", np.uint64), *compact.fields])


@dataclass(frozen=True)
class _Votes:
    """Teachers of the label, and their votes on queries."""

    teacher: Any
    queries: NDArray[np.float64]
    n_classes: int
    n_jobs: int | None

    def __call__(self, raw: RawTable, teachers: NDArray[np.int64], seeds: NDArray[np.int64]) -> NDArray[np.int64]:
        fitted = fit_teachers(
            self.teacher, raw.features, raw.labels(), teachers, n_teachers=len(seeds), n_classes=self.n_classes,
            seeds=seeds, n_jobs=self.n_jobs,
        )  # fmt: skip
        return vote_histogram(fitted.predict(self.queries), self.n_classes)


@dataclass(frozen=True)
class _Teaching:
    """What a task has to know: public, and pickled with it."""

    learns: Learns
    compact: CompactRows
    key: str | None
    seed: int
    seeds: NDArray[np.int64]
    edges: NDArray[np.int64]

    def _teachers(self, hashes: NDArray[np.uint64]) -> NDArray[np.int64]:
        return (hashes % np.uint64(len(self.seeds))).astype(np.int64)

    def split(self, chunk: Chunk) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """The rows of a chunk with the hashes of their keys, and the part of each."""
        raw = RawTable.read(self.compact.schema, chunk.table, owner=self.compact.owner, may_be_empty=True)
        rows = np.empty(raw.n_rows, dtype=_dtype(self.compact))
        rows["hash"] = row_hashes(chunk, self.key, self.seed)
        self.compact.fill(rows, raw.numbers)
        parts = np.searchsorted(self.edges, self._teachers(rows["hash"]), side="right") - 1
        return rows, parts.astype(np.int64)

    def vote(self, part: int, rows: NDArray[Any]) -> NDArray[np.int64]:
        """Train the teachers of a part; their votes, one after the other, and how many rows they learned from."""
        first, stop = int(self.edges[part]), int(self.edges[part + 1])
        rows = rows[np.argsort(rows["hash"], kind="stable")]
        votes = self.learns(self.compact.table(rows), self._teachers(rows["hash"]) - first, self.seeds[first:stop])
        return np.append(votes.ravel(), len(rows))
