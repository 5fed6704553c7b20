"""Votes of teachers whose rows do not fit into memory: some teachers at a time, and nothing of them but votes."""

import itertools
import operator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfairdp._rows import Chunk, RowSource, row_hashes
from skfairdp._teachers._partition import vote_histogram
from skfairdp._teachers._teachers import fit_teachers
from skfairdp.schema import RawTable, Schema
from skfairdp.utils import child_seeds

__all__ = ["streamed_votes"]

_MOST_BYTES = 2**29  # of encoded rows that are gathered at once


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
    most_bytes : int, default=512 MiB
        Of encoded rows that are gathered at once. Votes do not depend on it.

    Returns
    -------
    ndarray of int of shape (n_queries, n_classes)
    """
    seed, seeds = int(rng.integers(2**63 - 1)), child_seeds(rng, n_teachers)
    parts = _Teaching(teacher, queries, schema, owner, source.key, seed, seeds, n_classes, n_jobs)
    n_parts = max(source.fewest_parts, -(-source.n_rows * queries.shape[1] * 8 // most_bytes))
    edges = np.linspace(0, n_teachers, min(n_parts, n_teachers) + 1).astype(int).tolist()
    ranges = list(itertools.pairwise(edges))
    total = source.by_part(parts.pick, parts.vote, ranges, operator.add)
    if total is None or int(total[-1]) != source.n_rows:
        raise RuntimeError(f"{owner} read X again and got another number of rows. X must give the same rows each time.")
    return total[:-1].reshape(len(queries), n_classes)


@dataclass(frozen=True)
class _Teaching:
    """What a task has to know: public, and pickled with it."""

    teacher: Any
    queries: NDArray[np.float64]
    schema: Schema
    owner: str
    key: str | None
    seed: int
    seeds: NDArray[np.int64]
    n_classes: int
    n_jobs: int | None

    def pick(self, part: tuple[int, int], chunk: Chunk) -> list[Any]:
        """Hash, teacher, features and label of the chunk's rows that belong to some teachers."""
        hashes = row_hashes(chunk, self.key, self.seed)
        teachers = (hashes % np.uint64(len(self.seeds))).astype(np.int64)
        mine = np.flatnonzero((teachers >= part[0]) & (teachers < part[1]))
        if not len(mine):
            return []
        raw = RawTable.read(self.schema, chunk.table.iloc[mine], owner=self.owner)
        return [(hashes[mine], teachers[mine], raw.features, raw.labels())]

    def vote(self, part: tuple[int, int], picked: list[Any]) -> NDArray[np.int64]:
        """Train the teachers of a part; their votes, one after the other, and how many rows they learned from."""
        first, stop = part
        blank = np.zeros(0, dtype=np.uint64), np.zeros(0, np.int64), self.queries[:0], np.zeros(0, np.int64)
        hashes, teachers, X, y = (np.concatenate(columns) for columns in zip(blank, *picked, strict=True))
        order = np.argsort(hashes, kind="stable")
        fitted = fit_teachers(
            self.teacher, X[order], y[order], teachers[order] - first, n_teachers=stop - first,
            n_classes=self.n_classes, seeds=self.seeds[first:stop], n_jobs=self.n_jobs,
        )  # fmt: skip
        votes = vote_histogram(fitted.predict(self.queries), self.n_classes)
        return np.append(votes.ravel(), len(y))
