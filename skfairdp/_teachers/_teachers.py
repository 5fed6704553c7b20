"""Fitting one teacher per part, with any engine, and asking all of them."""

import contextlib
import hmac
import operator
import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from joblib import Memory, hash as hash_of
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils.validation import check_memory

from skfairdp._rows import LISTED, Chunk, PartWork, RowSource, both_added, one_of_each, other_rows, row_hashes, total_of
from skfairdp._teachers._classifiers import ClassifierEnsemble, fit_classifiers
from skfairdp._teachers._logistic import LogisticEnsemble, LogisticTeachers
from skfairdp._teachers._network_teachers import MLPTeachers, ModuleTeachers, StackedEnsemble
from skfairdp._teachers._partition import Parts, vote_histogram
from skfairdp._typing import ArrayLike, Ints
from skfairdp._utils import RandomStateLike, child_seeds, public_generator, silence
from skfairdp.schema import CompactRows, RawTable, Schema


class TeacherCache(Protocol):
    """Remembers trained teachers: a ``joblib.Memory``, or anything with this method. What a result depends on is given
    by position, and only that; by name, and listed in ``ignore``, is how to work (``n_jobs``, ``verbose``)."""

    def cache(self, function: Callable[..., Any], *, ignore: list[str]) -> Callable[..., Any]:
        """Return a function that calls ``function`` once for each list of positional arguments."""


_Ensemble = ClassifierEnsemble | LogisticEnsemble | StackedEnsemble


class Teachers:
    """Fitted teachers. **Private**: no object that outlives a private fit may hold one, nor its predictions.
    Made by :func:`fit_teachers`."""

    def __init__(self, ensemble: _Ensemble, n_teachers: int) -> None:
        self._ensemble, self.n_teachers = ensemble, n_teachers

    def predict(self, X: Any) -> NDArray[np.int32]:
        """Return every teacher's vote on every row."""
        with silence():
            return self._ensemble.predict(X)

    def summed_probabilities(self, X: Any, n_classes: int, step: float | None = None) -> NDArray[np.float64]:
        """Return the sum over teachers of their class probabilities: votes that may be split."""
        with silence():
            return self._ensemble.summed_probabilities(X, n_classes, step)

    def __repr__(self) -> str:
        return f"Teachers(n_teachers={self.n_teachers})"


def fit_teachers(
    teacher: Any, X: Any, y: ArrayLike, assignment: ArrayLike, *, n_teachers: int, n_classes: int,
    random_state: RandomStateLike = None, seeds: Ints | None = None, n_jobs: int | None = None,
    memory: TeacherCache | Memory | str | os.PathLike[str] | None = None, verbose: int = 0,
) -> Teachers:  # fmt: skip
    """Train one teacher on the rows assigned to it, independently of all other rows (Papernot et al. 2017). With a
    ``memory``, **the cache holds private teachers**, some of which hold rows: keep it where the private data may be.

    Teacher i is a function of its own rows, its own seed and public settings only, bit for bit: with a data-independent
    assignment this bounds the influence of one record by one vote. So **every part has its vote, whatever its rows do
    to its teacher**: one class is answered always; class 0 where there are no rows, and where a classifier cannot be
    fitted, cannot predict, or predicts what is no class. Nothing tells it: no error, warning, print, log record or
    count.
    """
    if not hasattr(X, "shape"):
        X = np.asarray(X)
    codes, part_of = (np.asarray(values, dtype=np.int64) for values in (y, assignment))
    engine = engine_of(teacher)
    if engine is not None:
        X = engine._validate(X)
    if seeds is None:
        seeds = child_seeds(public_generator(random_state), n_teachers)
    store = check_memory(os.fspath(memory) if isinstance(memory, os.PathLike) else memory)
    asked = teacher if engine is None else engine, X, codes, part_of, seeds, n_classes
    with silence():
        if isinstance(store, Memory) and store.location is not None:
            ensemble = _remembered(store, asked, n_jobs, verbose)
        else:
            cache = partial(store.cache, verbose=0) if isinstance(store, Memory) else store.cache
            train = cache(_train_private_teachers, ignore=["n_jobs", "verbose"])
            ensemble = train(*asked, n_jobs=n_jobs, verbose=verbose)
    return Teachers(ensemble, n_teachers)


def _train_private_teachers(
    teacher: Any, X: Any, y: Ints, assignment: Ints, seeds: Ints, n_classes: int, *, n_jobs: int | None, verbose: int
) -> _Ensemble:
    """Train all teachers. A cache of this function holds PRIVATE teachers: it is as private as the rows themselves.
    Whoever reads it can query each teacher without noise. Nothing that is published may point to it."""
    parts = Parts.of(assignment, y, seeds, n_classes)
    if isinstance(teacher, LogisticTeachers | MLPTeachers | ModuleTeachers):
        return teacher._fit_parts(X, y, parts, n_jobs=n_jobs, verbose=verbose)
    return fit_classifiers(teacher, X, y, parts, n_jobs=n_jobs, verbose=verbose)


def _remembered(store: Memory, asked: tuple[Any, ...], n_jobs: int | None, verbose: int) -> _Ensemble:
    """Train, or find trained teachers under a keyed digest: joblib writes down the arguments that it sees.
    The key lies beside them, in a folder that only its owner can enter."""
    folder = Path(str(store.store_backend.location))
    before = os.umask(0o077)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
        key = folder / "key"
        with contextlib.suppress(FileExistsError), key.open("xb") as file:
            file.write(secrets.token_bytes(32))
        digest = hmac.new(key.read_bytes(), hash_of(asked).encode(), "sha256").hexdigest()
        # A Memory prints the arguments of what it calls, which here are private rows, unless it is told not to.
        train = store.cache(_train_once, ignore=["asked", "n_jobs", "verbose"], verbose=0)
        return train(digest, asked, n_jobs, verbose)
    finally:
        os.umask(before)


def _train_once(digest: str, asked: tuple[Any, ...], n_jobs: int | None, verbose: int) -> _Ensemble:
    return _train_private_teachers(*asked, n_jobs=n_jobs, verbose=verbose)


def engine_of(teacher: Any) -> LogisticTeachers | MLPTeachers | ModuleTeachers | None:
    """The batched engine that ``teacher`` names, or None for a classifier that is cloned for each part."""
    if isinstance(teacher, LogisticTeachers | MLPTeachers | ModuleTeachers):
        return teacher
    if isinstance(teacher, str) and teacher in ("logistic", "mlp"):
        return LogisticTeachers() if teacher == "logistic" else MLPTeachers()
    learns = hasattr(teacher, "fit") and not isinstance(teacher, type)
    if learns and isinstance(teacher, BaseEstimator):  # some have 'predict' only once they are fitted
        if is_classifier(teacher):
            return None
    elif learns and hasattr(teacher, "predict"):
        return None
    elif callable(teacher) and not hasattr(teacher, "get_params"):
        return ModuleTeachers(teacher)
    raise ValueError(
        "The 'teacher' parameter must be 'logistic', 'mlp', a LogisticTeachers, MLPTeachers or ModuleTeachers, a "
        f"scikit-learn classifier, or a torch module. Got {teacher!r} instead."
    )


_MOST_BYTES = 2**29  # of the features of teachers that are trained at once

#: What teachers make of their rows, the teacher of each and a seed for every teacher: counts that are added up. What
#: looks at one row of each subject gets the hashes by which these are listed instead of teachers.
Learns = Callable[..., Any]


def streamed_votes(
    teacher: Any, source: RowSource, queries: NDArray[np.float64], *, schema: Schema, n_classes: int,
    n_jobs: int | None = None, **how: Any,
) -> Ints:  # fmt: skip
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

    **One subject, one teacher**, where the key is the id of a subject with several rows. Neighbouring tables have the
    same subjects, ``n_units`` of them, and differ in all rows of one, of which there may be more, fewer or none. (1)
    holds as it is; in (2) rows of one subject come in the order of what is in them, so that a teacher follows from the
    set of its rows, in whatever order an engine hands them on. How many parts there are follows ``n_units``. The number
    of rows decides nothing but whether (3) notices that the source has changed.
    """
    columns = (*schema.features, *filter(None, [schema.label]))
    learns = partial(_votes, teacher, queries, n_classes, n_jobs)
    return streamed_counts(learns, source, columns=columns, schema=schema, n_features=queries.shape[1], **how)


def streamed_counts(
    learns: Learns, source: RowSource, *, columns: tuple[str, ...], schema: Schema, owner: str, n_teachers: int,
    n_features: int, rng: np.random.Generator, verbose: int = 0, most_bytes: int = _MOST_BYTES, together: int = 1,
    n_units: int | None = None, one_each: bool = False, of_first: tuple[str, ...] = (),
    add: Callable[[Any, Any], Any] = operator.add,
) -> Any:  # fmt: skip
    """Add up what teachers say, whatever they learn; **private**. The argument is that of :func:`streamed_votes`.
    ``n_units`` is the public number of subjects, or of rows. With ``one_each`` they learn from one row of each subject.
    All rows of a subject have in the columns ``of_first`` what the first of them has, by its place or, where rows come
    in any order, by what is in it."""
    seed, seeds = LISTED if one_each else int(rng.integers(2**63 - 1)), child_seeds(rng, n_teachers)
    n_parts = max(source.fewest_parts, -(-(n_units or source.n_rows) * n_features * 8 // most_bytes))
    n_runs = -(-n_teachers // together)
    edges = np.linspace(0, n_runs, min(n_parts, n_runs) + 1).astype(np.int64) * together
    compact = CompactRows(schema, owner, columns)
    first = tuple(field for (field, _), name in zip(compact.fields, columns, strict=True) if name in of_first)
    public = seed, seeds, np.minimum(edges, n_teachers), one_each, first, source.knows_order
    parts = _Teaching(learns, compact, source.key, *public)
    source.verbose = verbose
    total = source.by_part(PartWork(parts.split, parts.vote, len(edges) - 1, parts.dtype, partial(both_added, add)))
    if total is None or total[1] != source.n_rows:
        raise other_rows(owner)
    return total[0]


def streamed_class_counts(source: RowSource, schema: Schema, owner: str, n_subjects: int | None = None) -> Ints:
    """Count the rows of each class of the schema, chunk by chunk, or one row of each subject; **private**.
    A subject adds one to one count or, without rows, to none."""
    return counted_rows(_classes_of, source, schema, owner, n_subjects)


def counted_rows(counts: Learns, source: RowSource, schema: Schema, owner: str, n_subjects: int | None) -> Any:
    """Add up what is counted of all rows of a source, or of one row of each subject; **private**."""
    if n_subjects is not None:
        return counted_once(counts, source, schema, owner, n_subjects)
    return total_of(source, partial(_of_chunk, counts, schema, owner), operator.add, owner)


def counted_once(
    counts: Learns, source: RowSource, schema: Schema, owner: str, n_subjects: int,
    *, columns: tuple[str, ...] | None = None, **how: Any,
) -> Any:  # fmt: skip
    """Add up what is counted in one row of each subject of a source; **private**. A subject is in one part with all of
    its rows, and one of them is chosen by a hash of its id and how many there are, in the order of what is in the
    columns. So a subject adds what one row adds or, without rows, nothing."""
    if columns is None:
        columns = tuple(name for name in schema.columns if name in source.columns)
    return streamed_counts(
        counts, source, columns=columns, schema=schema, owner=owner, n_teachers=_COUNTED_APART, n_features=len(columns),
        rng=np.random.default_rng(1), verbose=source.verbose, n_units=n_subjects, one_each=True, **how,
    )  # fmt: skip


_COUNTED_APART = 64  # parts of subjects, where there are so many that they are counted in parts


def _classes_of(raw: RawTable, *_: Any) -> Ints:
    return np.bincount(raw.labels(), minlength=len(raw.classes))


def _of_chunk(counts: Callable[[RawTable], Any], schema: Schema, owner: str, chunk: Chunk) -> tuple[Any, int]:
    raw = RawTable.read(schema, chunk.table, owner=owner, may_be_empty=True)
    return counts(raw), raw.n_rows


def bytes_on_disk(schema: Schema, n_rows: int, *, groups: bool = False) -> int:
    """How much disk the encoded rows of a table take while teachers learn from them: public."""
    columns = (*schema.features, *((schema.label,) if schema.label else ()), *(schema.groups if groups else ()))
    return n_rows * _dtype(CompactRows(schema, "", columns)).itemsize


def _dtype(compact: CompactRows) -> np.dtype[Any]:
    return np.dtype([("hash", np.uint64), *compact.fields])


def _votes(
    teacher: Any, queries: NDArray[np.float64], n_classes: int, n_jobs: int | None,
    raw: RawTable, teachers: Ints, seeds: Ints,
) -> Ints:  # fmt: skip
    """Train teachers of the label, and count their votes on queries."""
    how: dict[str, Any] = {"n_classes": n_classes, "seeds": seeds, "n_jobs": n_jobs}
    fitted = fit_teachers(teacher, raw.features, raw.labels(), teachers, n_teachers=len(seeds), **how)
    return vote_histogram(fitted.predict(queries), n_classes)


@dataclass(frozen=True)
class _Teaching:
    """What a task has to know: public, and pickled with it."""

    learns: Learns
    compact: CompactRows
    key: str | None
    seed: int
    seeds: Ints
    edges: Ints
    one_each: bool
    of_first: tuple[str, ...]
    ordered: bool

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of an encoded row: with its number in the end, where it matters which one is first."""
        return np.dtype([*_dtype(self.compact).descr, *([("number", "<i8")] if self.of_first else [])])

    def _teachers(self, hashes: NDArray[np.uint64]) -> Ints:
        return (hashes % np.uint64(len(self.seeds))).astype(np.int64)

    def split(self, chunk: Chunk) -> tuple[NDArray[Any], Ints]:
        """The rows of a chunk with the hashes of their keys, and the part of each."""
        raw = RawTable.read(self.compact.schema, chunk.table, owner=self.compact.owner, may_be_empty=True)
        rows = np.empty(raw.n_rows, dtype=self.dtype)
        if self.of_first:
            rows["number"] = chunk.numbers if self.ordered else 0
        rows["hash"] = row_hashes(chunk, self.key, self.seed)
        self.compact.fill(rows, raw.numbers)
        return rows, np.searchsorted(self.edges, self._teachers(rows["hash"]), side="right").astype(np.int64) - 1

    def vote(self, part: int, rows: NDArray[Any]) -> tuple[Any, int]:
        """Train the teachers of a part; their votes, one after the other, and how many rows they learned from."""
        first, stop = int(self.edges[part]), int(self.edges[part + 1])
        n_rows, rows = len(rows), rows[_by_key(rows)]
        for field in self.of_first:
            rows[field] = rows[field][_first_of_each(rows)]
        if self.one_each:
            rows = rows[one_of_each(rows["hash"])]
        whose = rows["hash"] if self.one_each else self._teachers(rows["hash"]) - first
        return self.learns(self.compact.table(rows), whose, self.seeds[first:stop]), n_rows


def _first_of_each(rows: NDArray[Any]) -> Ints:
    """For each row the first of those with the same key, by their numbers; keys are sorted."""
    order = np.lexsort([rows["number"], rows["hash"]])
    starts = np.r_[True, rows["hash"][1:] != rows["hash"][:-1]]
    return order[np.flatnonzero(starts)[np.cumsum(starts) - 1]] if len(rows) else order


def _by_key(rows: NDArray[Any]) -> Ints:
    """The order of rows by the hashes of their keys, and of those with one key by what is in them."""
    order = np.argsort(rows["hash"], kind="stable")
    hashes = rows["hash"][order]
    if (hashes[1:] != hashes[:-1]).all():
        return order
    return np.lexsort([rows[name] for name in reversed(rows.dtype.names or ())])
