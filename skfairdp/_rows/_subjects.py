"""Several rows of one subject, such as a person: whose each row is."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.random import Generator
from numpy.typing import NDArray

from skfairdp._rows._keyed import LISTED, id_hashes
from skfairdp._rows._source import MOST_ROWS, Chunk, RowSource
from skfairdp._typing import Array, Ints
from skfairdp._utils import PrivateRowsError, as_groups, as_pandas, column_names, private_error
from skfairdp._utils._sklearn import take_rows


def name_of_subjects(subject: Any) -> str | None:
    """The column that says who a row is about: as it was named, or as the ids that were given are called."""
    names = [subject] if isinstance(subject, str) else column_names(subject) or [getattr(subject, "name", None)]
    return names[0] if len(names) == 1 and isinstance(names[0], str) else None


@dataclass(frozen=True)
class SubjectRows:
    """Rows of some subjects, who are a list that anyone may see, and one row of each of them with its place."""

    rows: Ints
    subject: "pd.Series[Any]"
    one_each: Ints
    places: Ints


@dataclass(frozen=True)
class Subjects:
    """The subject of each row. Ids, and with them how many subjects there are, are public; who has which rows is not.
    They are listed by ``hashes`` of their ids, of which the teacher follows, whatever the rows are and wherever they
    stand. Of rows in chunks only these and the name of their column are kept. Rows of one come in the order of the
    table or, where ``contents`` says what is in them, in that of these columns, as in chunks, which have no order."""

    ids: "pd.Series[Any]"
    of: Ints
    hashes: NDArray[np.uint64]
    name: str
    contents: tuple[Array, ...] = ()

    @property
    def n(self) -> int:
        """How many there are."""
        return len(self.hashes)

    @classmethod
    def read(cls, X: Any, subject: Any, n_rows: int, *, owner: str) -> "Subjects":
        """Read one id per row: given, or a column of X by its name."""
        name = name_of_subjects(subject)
        if isinstance(subject, str):
            table = as_pandas(X)
            if not isinstance(table, pd.DataFrame) or list(table.columns).count(subject) != 1:
                raise ValueError(
                    f"'subject' of {owner} names {subject!r}, which is not exactly one column of X. Name a column of a "
                    "DataFrame, or pass one id per row."
                )
            subject = table[subject]
        subject = subject.iloc[:, 0] if isinstance(subject, pd.DataFrame) and subject.shape[1] == 1 else subject
        rows, ids = pd.factorize(pd.Series(as_groups(subject, n_rows, owner=owner, name="subject"), dtype=object))
        listed = pd.Series(ids, dtype=object)
        if isinstance(getattr(subject, "dtype", None), pd.CategoricalDtype):  # it lists those without rows as well
            listed = pd.Series([*ids, *subject.dtype.categories], dtype=object)
        hashes, first, of = np.unique(id_hashes(listed, LISTED), return_index=True, return_inverse=True)
        return cls(listed.iloc[first], of[: len(ids)][rows], hashes, name or "")

    @classmethod
    def read_source(cls, source: RowSource, *, owner: str) -> "Subjects":
        """List who is in the key of rows in chunks, in a pass of its own where the source does not know.
        As in memory ids are told apart by their hashes, and categories list subjects without rows as well."""
        if source.listed is not None:
            return cls(pd.Series(dtype=object), np.empty(0, dtype=np.int64), source.listed, str(source.key))
        listed, more, wrong = np.empty(0, dtype=np.uint64), list[NDArray[np.uint64]](), set[str]()
        for hashes, problem in source.each(partial(_subjects_of, str(source.key))):
            more.append(hashes)
            wrong.add(problem)
            if sum(map(len, more)) > len(listed) + MOST_ROWS:
                listed, more = pd.unique(np.concatenate([listed, *more])), []
        for problem in sorted(wrong - {""}):
            raise private_error(problem, owner=owner, name="subject")
        source.listed = np.unique(np.concatenate([listed, *more]))
        return cls.read_source(source, owner=owner)

    def outside(self, table: Any) -> Any:
        """The table without the column that names them, which is no feature; as it is where it has none."""
        return as_pandas(table).drop(columns=self.name) if self.name in (column_names(table) or ()) else table

    def parts(self, n_teachers: int, rng: Generator) -> Ints:
        """The teacher of each row: that of its subject, by a hash that no row and no other id enters."""
        teachers: Ints = (id_hashes(self.ids, int(rng.integers(2**63 - 1))) % np.uint64(n_teachers)).astype(np.int64)
        return teachers[self.of]

    def rows_of_each(self, most: int, rng: Generator) -> Ints:
        """Positions of at most so many rows of each subject, of shape (n, most); -1 where there is none.
        Of more rows some are kept, by a keyed hash of their place among the subject's own: nothing else enters."""
        order, sizes = self._in_order
        whose, place = self.of[order], np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        hashes = id_hashes(pd.Series(np.arange(sizes.max(initial=0))), int(rng.integers(2**63 - 1)))
        rows = order[np.lexsort((hashes[place], whose))]
        kept = np.full((self.n, most), -1)
        kept[whose[place < most], place[place < most]] = rows[place < most]
        return kept

    @property
    def _in_order(self) -> tuple[Ints, Ints]:
        """Rows subject by subject, those of one in their order; and how many each has."""
        return np.lexsort([*self.contents[::-1], self.of]), np.bincount(self.of, minlength=self.n)

    @property
    def row_of_each(self) -> Ints:
        """The position of one row of each subject, by a hash of its id and how many rows it has; -1 where it has none.
        A subject keeps its place, whatever rows others have."""
        order, sizes = self._in_order
        chosen = (self.hashes % np.maximum(sizes, 1).astype(np.uint64)).astype(np.int64)
        rows = np.full(self.n, -1)
        rows[sizes > 0] = order[(np.cumsum(sizes) - sizes + chosen)[sizes > 0]]
        return rows

    @property
    def one_row_each(self) -> Ints:
        """The same, of the subjects that have rows."""
        rows = self.row_of_each
        return rows[rows >= 0]

    def part(self, places: Ints) -> SubjectRows:
        """The rows of the subjects at these places of the list."""
        inside, one = np.isin(np.arange(self.n), places), self.row_of_each
        rows, scored = np.flatnonzero(inside[self.of]), np.flatnonzero(inside & (one >= 0))
        codes = (np.cumsum(inside) - 1)[self.of[rows]]
        ids = pd.Categorical.from_codes(codes, categories=pd.Index(self.ids[inside], dtype=object))
        return SubjectRows(rows, pd.Series(ids, name=self.name or None), one[scored], scored)

    def one_row_or_none_of(self, table: pd.DataFrame) -> pd.DataFrame:
        """One row of each subject, in which all cells are missing where it has none: as many rows as subjects."""
        rows = self.row_of_each
        kept = table.iloc[np.maximum(rows, 0)].reset_index(drop=True)
        if (rows < 0).any():
            kept = kept.astype(object)
            kept.loc[rows < 0, :] = None
        return kept

    def one_row_of(self, owner: str, **given: Any) -> list[Any]:
        """The same rows of each of some tables and columns; None stays None."""
        for name, rows in given.items():
            if rows is not None and (rows.shape[0] if hasattr(rows, "shape") else len(rows)) != len(self.of):
                raise ValueError(f"{name} of {owner} must have one entry for each row of X, as 'subject' has.")
        return [None if rows is None else take_rows(rows, self.one_row_each) for rows in given.values()]

    @property
    def first_row_each(self) -> Ints:
        """For each row the first one of its subject, in the order of the table."""
        first = np.full(self.n, len(self.of))
        np.minimum.at(first, self.of, np.arange(len(self.of)))
        return first[self.of]


def _subjects_of(key: str, chunk: Chunk) -> tuple[NDArray[np.uint64], str]:
    """Hashes of the ids that a chunk lists, each once, and the private error that they call for."""
    ids = chunk.table[key]
    if ids.isna().any():
        return np.empty(0, dtype=np.uint64), "missing value"
    try:
        listed = pd.Series(ids.cat.categories) if isinstance(ids.dtype, pd.CategoricalDtype) else ids
        return pd.unique(id_hashes(listed, LISTED)), ""
    except PrivateRowsError:  # raised where the source is read: an engine would wrap it
        return np.empty(0, dtype=np.uint64), "no ids"


def one_of_each(hashes: NDArray[np.uint64]) -> Ints:
    """The position of one row of each subject, by a hash of its id and how many rows it has; hashes are sorted."""
    subjects, first, sizes = np.unique(hashes, return_index=True, return_counts=True)
    return first + (subjects % sizes.astype(np.uint64)).astype(np.int64)
