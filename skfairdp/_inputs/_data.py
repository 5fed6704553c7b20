"""What is left of the arguments of ``fit`` once they are read: rows, codes, and the list of what is public."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfairdp._inputs._subjects import Subjects
from skfairdp._rows import RowSource
from skfairdp._tables import SyntheticRows
from skfairdp.privacy import NeighboringRelation, PublicReads
from skfairdp.schema import RawTable


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
