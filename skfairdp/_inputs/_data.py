"""What is left of the arguments of ``fit`` once they are read: rows, codes, and the list of what is public."""

import inspect
import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skfairdp._rows import RowSource, id_hashes
from skfairdp._tables import SyntheticRows
from skfairdp._utils import as_groups, as_pandas, column_names, warn_caller
from skfairdp.exceptions import PrivacyLeakWarning
from skfairdp.privacy import NeighboringRelation, PublicReads
from skfairdp.schema import RawTable

#: Weights are multiples of it, so that products with features on their own grid, and sums of them, are exact.
GRID = 2.0**-20
_PERSON = "person|patient|subject|customer|household"
#: Names of columns, in words, that say whose a row is.
_SAYS_WHOSE = re.compile(rf"^(({_PERSON})|.+ ids?|ssn|({_PERSON}|client|user|member|account|policy) (no|nr|number))$")


@dataclass(frozen=True)
class Subjects:
    """The subject of each row. Ids, and with them how many subjects there are, are public; who has which rows is not.

    Nothing of it outlives the fit. A subject keeps its teacher, whatever its rows are and wherever they stand: the
    teacher is a keyed hash of the id. Other ids may be in other places; that of no other subject follows from it.
    """

    ids: "pd.Series[Any]"
    of: NDArray[np.int64]
    n: int
    name: str

    @classmethod
    def read(cls, X: Any, subject: Any, n_rows: int, *, owner: str) -> "Subjects":
        """Read one id per row: given, or a column of X by its name."""
        name = subject if isinstance(subject, str) else getattr(subject, "name", None)
        if isinstance(subject, str):
            table = as_pandas(X)
            if not isinstance(table, pd.DataFrame) or list(table.columns).count(subject) != 1:
                raise ValueError(
                    f"'subject' of {owner} names {subject!r}, which is not exactly one column of X. Name a column of a "
                    "DataFrame, or pass one id per row."
                )
            subject = table[subject]
        cells = as_groups(subject, n_rows, owner=owner, name="subject")
        rows, ids = pd.factorize(pd.Series(cells, dtype=object))
        listed = pd.Series(ids, dtype=object)
        if isinstance(getattr(subject, "dtype", None), pd.CategoricalDtype):  # it lists those without rows as well
            listed = pd.Series([*ids, *subject.dtype.categories], dtype=object)
        hashes, first, of = np.unique(id_hashes(listed, 0), return_index=True, return_inverse=True)
        return cls(listed.iloc[first], of[: len(ids)][rows], len(hashes), name if isinstance(name, str) else "")

    def parts(self, n_teachers: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """The teacher of each row: that of its subject, by a hash that no row and no other id enters."""
        hashes = id_hashes(self.ids, int(rng.integers(2**63 - 1)))
        teachers: NDArray[np.int64] = (hashes % np.uint64(n_teachers)).astype(np.int64)
        return teachers[self.of]

    @property
    def weights(self) -> NDArray[np.float64]:
        """One over the rows of its subject for each row, rounded down to the grid: a subject adds at most 1."""
        sizes = np.bincount(self.of, minlength=self.n)
        weights: NDArray[np.float64] = np.floor(1 / GRID / np.maximum(sizes, 1)) * GRID
        return weights[self.of]

    def rows_of_each(self, most: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Positions of at most so many rows of each subject, of shape (n, most); -1 where there is none.

        Of more rows some are kept, by a keyed hash of their place among the subject's own: nothing else enters.
        """
        order, sizes = np.argsort(self.of, kind="stable"), np.bincount(self.of, minlength=self.n)
        whose, place = self.of[order], np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        hashes = id_hashes(pd.Series(np.arange(sizes.max(initial=0))), int(rng.integers(2**63 - 1)))
        rows = order[np.lexsort((hashes[place], whose))]
        kept = np.full((self.n, most), -1)
        kept[whose[place < most], place[place < most]] = rows[place < most]
        return kept

    @property
    def one_row_each(self) -> NDArray[np.int64]:
        """The position of one row of each subject that has any, by a hash of its id and how many rows it has."""
        order, sizes = np.argsort(self.of, kind="stable"), np.bincount(self.of, minlength=self.n)
        chosen = (id_hashes(self.ids, 1) % np.maximum(sizes, 1).astype(np.uint64)).astype(np.int64)
        places: NDArray[np.int64] = (np.cumsum(sizes) - sizes + chosen)[sizes > 0]
        return order[places]


def note_subject_column(estimator: Any, X: Any, subject: Any) -> None:
    """Remember which column is no feature: the one that was named, or that is called like the ids that were given."""
    name = subject if isinstance(subject, str) else getattr(subject, "name", None)
    if isinstance(name, str) and (isinstance(subject, str) or name in _names(X)):
        vars(estimator)["_subject_column"] = name
    tell_of_subjects(estimator, X, type(estimator).__name__, given=subject is not None)


def tell_of_subjects(estimator: Any, X: Any, owner: str, *, given: bool = False) -> None:
    """Where a column is called like an id and nobody said it is one; names are public, nothing else is looked at."""
    names = [name for name in _names(X) if name != getattr(estimator, "_subject_column", None)]
    words = (re.sub(r"(?<=[a-z])(?=[A-Z])|[\W_]+", " ", str(name)).strip().lower() for name in names)
    named = [name for name, said in zip(names, words, strict=True) if _SAYS_WHOSE.match(said)]
    if not named:
        return
    takes = "subject" in inspect.signature(estimator.fit).parameters
    how = (
        f"fit(..., subject={named[0]!r}) protects"
        if takes
        else "PATEClassifier, FairPATEClassifier and FairDPSGDClassifier protect"
    )
    says = (
        f"Where one has several rows, the epsilon of {owner} is for one of them, and whoever it is is protected less: "
        f"{how} all rows of one together{'' if takes else ' (subject=)'}. Where each has one row, leave the column out."
    )
    if given:
        says = (
            f"It is learned from like any feature. Leave it out, or pass subject={named[0]!r} where it holds the ids."
        )
    warn_caller(f"X of {owner} has a column {named[0]!r}, by its name an id. {says}", PrivacyLeakWarning)


def _names(X: Any) -> list[Any]:
    return list((column_names(X) if hasattr(X, "shape") else None) or ())


@dataclass(frozen=True)
class PublicRows:
    """Public rows after validation: features, and group codes with their domain where groups are used."""

    X: NDArray[np.float64]
    groups: NDArray[np.int64] | None = None
    domain: NDArray[np.object_] | None = None

    @property
    def n_groups(self) -> int:
        return 0 if self.domain is None else len(self.domain)


@dataclass(frozen=True)
class Table:
    """X after validation."""

    X: NDArray[np.float64]
    groups: NDArray[np.object_] | None
    raw: RawTable | None = None


@dataclass(frozen=True)
class TrainingData:
    """All that a fit learns from: codes of classes, or amounts, of which there are no classes."""

    X: NDArray[np.float64]
    y: NDArray[Any]
    classes: NDArray[Any]
    groups: NDArray[np.int64] | None
    domain: NDArray[np.object_] | None
    public: PublicRows | None
    reads: PublicReads
    own_rows: SyntheticRows | None = None
    source: RowSource | None = None
    subjects: Subjects | None = None

    @property
    def n_outputs(self) -> int:
        """What a network says of a row: a logit of each class, or one number."""
        return len(self.classes) or 1

    @property
    def n_units(self) -> int:
        """How many there are of what is protected, rows or subjects: public."""
        return len(self.X) if self.subjects is None else self.subjects.n

    @property
    def units(self) -> str:
        """What they are called."""
        return "rows" if self.subjects is None else "subjects"

    @property
    def relation(self) -> NeighboringRelation:
        """One of them replaced."""
        return NeighboringRelation.REPLACE_ONE if self.subjects is None else NeighboringRelation.REPLACE_SUBJECT

    @property
    def one_row_each(self) -> "TrainingData":
        """One row of each subject, for counts that a unit adds one to; where rows are protected, all of them."""
        if self.subjects is None:
            return self
        kept = self.subjects.one_row_each
        groups = None if self.groups is None else self.groups[kept]
        return replace(self, X=self.X[kept], y=self.y[kept], groups=groups, subjects=None)

    @property
    def share_for_votes(self) -> float:
        """What is left of the squared cost of the fit for what is asked about rows."""
        return 1.0 if self.own_rows is None else 1 - self.own_rows.budget_share
