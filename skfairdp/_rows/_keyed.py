"""Which part or fold a row belongs to: a keyed hash of its public key, the same on every engine."""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skfairdp._rows._source import Chunk, Made, PartWork, RowSource, Split, Sum
from skfairdp._typing import Array, Ints
from skfairdp._utils import texts_of_ids

#: The seed of the hash by which subjects are listed, and which says what row of each is counted.
LISTED = 0
_LONG = 10**18 - 1  # whole numbers of 18 digits, which 64 bits hold with their sign
_STEPS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))  # of splitmix64


class KeyedRows:
    """A table with a column of public ids, one for each row: they decide which teacher learns from a row.

    The ids are public and belong to the place of a record: a neighbouring table has the same ones. Do not name a column
    that says something about a person. Nothing is read from it but the hash.

    Without it a row's place is its key: its number over all files, chunks or partitions, in their order. Give a key
    where rows are sorted, or files named, by what is in them: a record that differs moves others then.

    Parameters
    ----------
    rows : object
        What ``fit`` takes as X: a DataFrame, a path of Parquet files, a Polars LazyFrame, a dask or Spark DataFrame, or
        a function without arguments that returns an iterable of DataFrames.
    key : str
        The column of ids: whole numbers or texts. Where ``subject`` is given to a fit, its column. What readers of
        files make one number of is one id, whatever they read it as: ``7``, ``007``, ``7.0``, ``7e0`` and ``" 7"``, or
        ``1234`` and ``"1,234"`` (where a point stands between thousands read the column as texts: ``dtype=str``).
        Dates and other objects, and floats of more than 15 digits, are refused.

    See Also
    --------
    PATEClassifier, FairPATEClassifier : Their teachers learn from such rows.

    Examples
    --------
    >>> import pandas as pd
    >>> from skfairdp import KeyedRows
    >>> KeyedRows(pd.DataFrame({"id": [7, 8, 9], "age": [20, 30, 40]}), key="id").key
    'id'
    """

    def __init__(self, rows: Any, key: str) -> None:
        self.rows, self.key = rows, key


def with_key(source: RowSource, key: str) -> RowSource:
    """What reads the rows of a :class:`KeyedRows`."""
    if key not in source.columns:
        raise ValueError(f"The 'key' parameter of KeyedRows must be a column of the rows. Got {key!r} instead.")
    keyed = copy.copy(source)
    keyed.key = key
    return keyed


def keyed_by_subject(source: RowSource, subject: Any, owner: str) -> RowSource:
    """The same rows with the column of their subjects as their key; how many rows there are is told nowhere."""
    if not isinstance(subject, str) or source.columns.count(subject) != 1:
        raise ValueError(
            f"X of {owner} is read in chunks, and 'subject' must name exactly one column of it: the ids cannot be "
            "given beside the rows. Name the column that says who a row is about."
        )
    if source.key not in (None, subject):
        raise ValueError(
            f"X of {owner} is KeyedRows with key={source.key!r}, and 'subject' names {subject!r}. Each of them "
            "assigns rows to teachers: name the same column, or pass the rows without KeyedRows."
        )
    source = source if source.key == subject else with_key(source, subject)
    source.shows_number = False
    return source


def key_wanted(owner: str) -> str:
    """What to say of rows that have neither a key nor a public place."""
    return (
        f"{owner} needs public ids of these rows, because their order may depend on private values: that of Spark's "
        "rows, and of files that are not numbered in one folder. Name the column of ids: KeyedRows(X, key=...)"
    )


def row_hashes(chunk: Chunk, key: str | None, seed: int) -> NDArray[np.uint64]:
    """A keyed hash of each row's public key, which no private cell enters."""
    if key is None:
        *where, _ = chunk.place
        numbers = chunk.numbers.astype(np.uint64) ^ _of_texts(np.array([repr(where)], dtype=object), seed)
        return _mixed(_mixed(numbers, seed), seed >> 7)
    return id_hashes(chunk.table[key], seed)


def id_hashes(ids: "pd.Series[Any]", seed: int) -> NDArray[np.uint64]:
    """A keyed hash of each id, by itself."""
    return _mixed(_mixed(_of_ids(ids, seed), seed), seed >> 7)


def _of_ids(ids: "pd.Series[Any]", seed: int) -> NDArray[np.uint64]:
    """Whole numbers as they are; other ids by a keyed hash of the one text that each of them has.
    Each id by itself: which type a reader gives them may follow what else is in their chunk."""
    if pd.api.types.is_integer_dtype(ids.dtype) and not ids.isna().any() and bool(ids.between(-_LONG, _LONG).all()):
        return ids.to_numpy(dtype=np.int64).view(np.uint64)
    if isinstance(ids.dtype, pd.CategoricalDtype):
        places, listed = ids.cat.codes.to_numpy(), ids.cat.categories
    else:
        places, listed = pd.factorize(ids.array)
    texts = pd.Series([*texts_of_ids(listed), ""], dtype=object)  # the last one is of a missing id, whose place is -1
    whole = texts.str.fullmatch(r"-?[0-9]{1,18}").to_numpy(dtype=bool)
    hashes = _of_texts(texts.to_numpy(), seed)
    hashes[whole] = texts[whole].astype(np.int64).to_numpy().view(np.uint64)
    return hashes[places]


def _of_texts(texts: Array, seed: int) -> NDArray[np.uint64]:
    return np.asarray(pd.util.hash_array(texts, hash_key=f"{seed & (2**63 - 1):016x}", categorize=True))


def _mixed(numbers: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    """splitmix64: a bijection of 64 bits, so that different ids never share a hash."""
    with np.errstate(over="ignore"):
        mixed = (numbers + np.uint64(seed)) + np.uint64(0x9E3779B97F4A7C15)
        for step, shift in zip(_STEPS, (30, 27), strict=True):
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * step
    return mixed ^ (mixed >> np.uint64(31))


@dataclass(frozen=True)
class FoldRule:
    """Which fold a row is in: a keyed hash of its public key, or of its place where there is no key. **One record, one
    fold.** Nothing but the key is looked at, and a neighbouring table has the same keys at the same places: folds of
    two neighbours differ in one record at most, in one of them, as folds by position do."""

    key: str | None
    seed: int
    n_folds: int
    test_share: float | None = None

    def __call__(self, chunk: Chunk) -> Ints:
        """The fold of each row of a chunk."""
        hashes = row_hashes(chunk, self.key, self.seed)
        if self.test_share is None:
            return (hashes % np.uint64(self.n_folds)).astype(np.int64)
        return (hashes >= np.uint64(min(int(self.test_share * 2.0**64), 2**64 - 1))).astype(np.int64)


@dataclass(frozen=True)
class SubjectFolds:
    """Which fold the rows of a subject are in, all of them: subjects are dealt as they are listed, by their hashes."""

    key: str
    starts: NDArray[np.uint64]
    folds: Ints

    @classmethod
    def dealt(cls, key: str, hashes: NDArray[np.uint64], folds: Ints) -> "SubjectFolds":
        """Of the fold of each of them: what is kept is where the next fold starts."""
        changes = np.flatnonzero(np.r_[True, folds[1:] != folds[:-1]])
        return cls(key, hashes[changes], folds[changes])

    @property
    def n_folds(self) -> int:
        """How many there are."""
        return int(self.folds.max()) + 1

    def __call__(self, chunk: Chunk) -> Ints:
        """The fold of each row of a chunk."""
        return self.folds[np.searchsorted(self.starts, id_hashes(chunk.table[self.key], LISTED), side="right") - 1]


Rule = FoldRule | SubjectFolds


def _of_source(name: str) -> Any:
    """An attribute that is the one of the source below, and is set there."""
    return property(lambda self: getattr(self.source, name), lambda self, value: setattr(self.source, name, value))


class FoldRows(RowSource):
    """The rows of a source that are in a fold, or those that are not.
    Their number follows the keys: public; or, where a fold has the rows of some subjects, who of these have rows."""

    n_rows: Any = 0
    columns: Any = _of_source("columns")
    knows_places: Any = _of_source("knows_places")
    knows_numbers: Any = _of_source("knows_numbers")
    verbose: Any = _of_source("verbose")
    shows_number: Any = _of_source("shows_number")

    def __init__(
        self, source: RowSource, rule: Rule, fold: int, inside: bool, n_rows: int,
        listed: NDArray[np.uint64] | None = None,
    ) -> None:  # fmt: skip
        self.source, self.key, self.listed, self.n_rows = source, source.key, listed, n_rows
        self.fewest_parts, self.spills, self.knows_order = source.fewest_parts, source.spills, source.knows_order
        self._kept = _Kept(rule, fold, inside)

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

    rule: Rule
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


def fold_sizes(source: RowSource, rule: Rule) -> Ints:
    """How many rows each fold has, from one pass over the keys; public, as the keys are, but not of subjects."""
    found = source.map_reduce(partial(_counted, rule), np.add)
    return np.zeros(rule.n_folds, np.int64) if found is None else found


def _counted(rule: Rule, chunk: Chunk) -> Ints:
    return np.bincount(rule(chunk), minlength=rule.n_folds)
