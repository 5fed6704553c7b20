"""Votes of teachers whose rows do not fit into memory: some teachers at a time, and nothing of them but votes."""

import operator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfairdp._rows import Chunk, RowSource, row_hashes
from skfairdp._teachers._partition import vote_histogram
from skfairdp._teachers._teachers import fit_teachers
from skfairdp.schema import CompactRows, RawTable, Schema
from skfairdp.utils import child_seeds

__all__ = ["bytes_on_disk", "streamed_votes"]

_MOST_BYTES = 2**29  # of the features of teachers that are trained at once


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

    Parameters
    ----------
    teacher : object
        As for :func:`fit_teachers`.
    source : RowSource
        Private, but for keys, columns and number of rows.
    queries : ndarray of shape (n_queries, n_features)
        Public.
    schema : Schema
    owner : str
        Class name for error messages.
    n_teachers, n_classes : int
    rng : Generator
        Public randomness.
    n_jobs : int, default=None
    verbose : int, default=0
        Above 0: a bar over the rows that have been read and one over parts, where this machine reads them.
    most_bytes : int, default=512 MiB
        Of the features of teachers that are trained at once. Votes do not depend on it.

    Returns
    -------
    ndarray of int of shape (n_queries, n_classes)
    """
    seed, seeds = int(rng.integers(2**63 - 1)), child_seeds(rng, n_teachers)
    n_parts = max(source.fewest_parts, -(-source.n_rows * queries.shape[1] * 8 // most_bytes))
    edges = np.linspace(0, n_teachers, min(n_parts, n_teachers) + 1).astype(np.int64)
    compact = _compact(schema, owner)
    parts = _Teaching(teacher, queries, compact, source.key, seed, seeds, edges, n_classes, n_jobs)
    source.verbose = verbose
    total = source.by_part(parts.split, parts.vote, len(edges) - 1, _dtype(compact), operator.add)
    if total is None or int(total[-1]) != source.n_rows:
        raise RuntimeError(f"{owner} read X again and got another number of rows. X must give the same rows each time.")
    return total[:-1].reshape(len(queries), n_classes)


def bytes_on_disk(schema: Schema, n_rows: int) -> int:
    """How much disk the encoded rows of a table take while teachers learn from them: public.

    Parameters
    ----------
    schema : Schema
    n_rows : int

    Returns
    -------
    int
    """
    return n_rows * _dtype(_compact(schema, "")).itemsize


def _compact(schema: Schema, owner: str) -> CompactRows:
    return CompactRows(schema, owner, (*schema.features, *((schema.label,) if schema.label else ())))


def _dtype(compact: CompactRows) -> np.dtype[Any]:
    return np.dtype([("hash", np.uint64), *compact.fields])


@dataclass(frozen=True)
class _Teaching:
    """What a task has to know: public, and pickled with it."""

    teacher: Any
    queries: NDArray[np.float64]
    compact: CompactRows
    key: str | None
    seed: int
    seeds: NDArray[np.int64]
    edges: NDArray[np.int64]
    n_classes: int
    n_jobs: int | None

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
        raw = self.compact.table(rows)
        fitted = fit_teachers(
            self.teacher, raw.features, raw.labels(), self._teachers(rows["hash"]) - first, n_teachers=stop - first,
            n_classes=self.n_classes, seeds=self.seeds[first:stop], n_jobs=self.n_jobs,
        )  # fmt: skip
        votes = vote_histogram(fitted.predict(self.queries), self.n_classes)
        return np.append(votes.ravel(), len(rows))
