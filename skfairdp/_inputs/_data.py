"""What is left of the arguments of ``fit`` once they are read: rows, codes, and the list of what is public."""

import inspect
import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skfairdp._rows import RowSource, Subjects, name_of_subjects
from skfairdp._tables import SyntheticRows
from skfairdp._typing import Array, Floats, Ints, Objects
from skfairdp._utils import column_names, warn_caller
from skfairdp.exceptions import PrivacyLeakWarning
from skfairdp.privacy import NeighboringRelation, PublicReads
from skfairdp.schema import RawTable, RowStore

_PERSON = "person|patient|subject|customer|household"
#: Names of columns, in words, that say whose a row is.
_SAYS_WHOSE = re.compile(rf"^(({_PERSON})|.+ ids?|ssn|({_PERSON}|client|user|member|account|policy) (no|nr|number))$")


def subject_given(estimator: Any, subject: Any) -> Any:
    """Whose each row is: as given to a fit, or by the column that a schema names."""
    named = getattr(getattr(estimator, "schema", None), "subject", None)
    if isinstance(subject, str) and named is not None and subject != named:
        raise ValueError(
            f"{type(estimator).__name__} got subject={subject!r}, and its schema says that rows are those of one "
            f"{named!r}: one guarantee is for one of them. Leave 'subject' out, or make a schema of the other column."
        )
    if subject is not None or named is None:
        return subject
    if not hasattr(estimator, "fit") or "subject" not in inspect.signature(estimator.fit).parameters:
        raise ValueError(
            f"{type(estimator).__name__} protects each row by itself, and its schema says that rows are those of one "
            f"{named!r}. Take an estimator whose fit has 'subject', or a schema without."
        )
    return named


def note_subject_column(estimator: Any, X: Any, y: Any, subject: Any) -> None:
    """Remember which column is no feature: the one that was named, or is called as the ids that were given."""
    name, owner = name_of_subjects(subject), type(estimator).__name__
    described = getattr(getattr(estimator, "schema", None), "columns", ())
    if name is not None and (name in described or name == getattr(y, "name", None)):
        what = "a column of its schema" if name in described else "the column of labels"
        raise ValueError(
            f"'subject' of {owner} names {name!r}, which is {what}: a feature or label cannot hold the ids. Name "
            "another column, or pass one id per row; a schema lists no ids."
        )
    if name is not None:  # tables to come may hold it, where this one does not
        vars(estimator)["_subject_column"] = name
    # Where a column is called like an id and nobody said it is one; names are public, nothing else is looked at.
    listed = (column_names(X) if hasattr(X, "shape") else None) or ()
    names = [name for name in listed if name != getattr(estimator, "_subject_column", None)]
    words = (re.sub(r"(?<=[a-z])(?=[A-Z])|[\W_]+", " ", str(name)).strip().lower() for name in names)
    named = [name for name, said in zip(names, words, strict=True) if _SAYS_WHOSE.match(said)]
    if not named:
        return
    how, more = "private classifiers, regressors and generators protect", " (subject=)"
    if "subject" in inspect.signature(estimator.fit).parameters:
        how, more = f"fit(..., subject={named[0]!r}) protects", ""
    says = (
        f"If a person has several rows, the epsilon of {owner} covers one row only, and the person is protected less: "
        f"{how} all rows of a person together{more}. If each person has one row, leave the column out."
    )
    if subject is not None:
        says = (
            f"The model learns from it like from any feature. Leave it out, or pass subject={named[0]!r} where it "
            "holds the ids."
        )
    warn_caller(f"X of {owner} has a column {named[0]!r}, which is an id by its name. {says}", PrivacyLeakWarning)


# A field of type ``X | Any`` is None where a fit does not ask for it, and who reads it has asked: of ``X | None`` each
# reader would have to assert so. The same is written in plans, of what only some fits release.


@dataclass(frozen=True)
class PublicRows:
    """Public rows after validation: features, and group codes with their domain where groups are used."""

    X: Floats
    groups: Ints | Any = None
    domain: Objects | Any = None

    @property
    def n_groups(self) -> int:
        return 0 if self.domain is None else len(self.domain)


@dataclass(frozen=True)
class Table:
    """X after validation."""

    X: Floats
    groups: Objects | None
    raw: RawTable | None = None


@dataclass(frozen=True)
class TrainingData:
    """All that a fit learns from: codes of classes, or amounts, of which there are no classes."""

    X: Floats
    y: Array
    classes: Array
    groups: Ints | Any
    domain: Objects | Any
    public: PublicRows | Any
    reads: PublicReads
    own_rows: SyntheticRows | None = None
    source: RowSource | Any = None
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
    def rows_of(self) -> str:
        """The column that says who a subject is, where subjects are protected and a column does."""
        return "" if self.subjects is None else self.subjects.name

    @property
    def relation(self) -> NeighboringRelation:
        """One of them replaced."""
        return NeighboringRelation.REPLACE_ONE if self.subjects is None else NeighboringRelation.REPLACE_SUBJECT

    @property
    def attribute_relation(self) -> NeighboringRelation:
        """The group of one of them replaced, where all else is public."""
        of_rows, of_subjects = NeighboringRelation.REPLACE_ATTRIBUTE, NeighboringRelation.REPLACE_SUBJECT_ATTRIBUTE
        return of_rows if self.subjects is None else of_subjects

    @property
    def groups_of_units(self) -> Ints:
        """Private: the group of each row, or of each subject, which is that of its first row; 0 where it has none."""
        if self.subjects is None:
            return self.groups
        groups = np.zeros(self.subjects.n, dtype=np.int64)
        groups[self.subjects.of] = self.groups[self.subjects.first_row_each]
        return groups

    def of_each_row(self, of_units: Array) -> Array:
        """What is known of units, for each of their rows."""
        return of_units if self.subjects is None else of_units[self.subjects.of]

    @property
    def one_row_each(self) -> "TrainingData":
        """One row of each subject, for counts that a unit adds one to; where rows are protected, all of them. Of rows
        in chunks that are not kept one of each is taken where they are counted."""
        if self.subjects is None or not len(self.subjects.of):
            return self
        kept = self.subjects.one_row_each
        groups = None if self.groups is None else self.groups[kept]
        X: Any = self.X.part(kept) if isinstance(self.X, RowStore) else self.X[kept]
        return replace(self, X=X, y=self.y[kept], groups=groups, subjects=None)

    @property
    def unit_places(self) -> Ints:
        """The places of the rows of ``one_row_each`` among all units: a subject keeps its own, whoever has no rows."""
        return np.arange(len(self.X)) if self.subjects is None else np.flatnonzero(self.subjects.row_of_each >= 0)

    @property
    def share_for_votes(self) -> float:
        """What is left of the squared cost of the fit for what is asked about rows."""
        return 1.0 if self.own_rows is None else 1 - self.own_rows.budget_share
