"""What is left of the arguments of ``fit`` once they are read: rows, codes, and the list of what is public."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfairdp._rows import RowSource
from skfairdp._tables import SyntheticRows
from skfairdp.privacy import PublicReads
from skfairdp.schema import RawTable

__all__ = ["PublicRows", "Table", "TrainingData"]


@dataclass(frozen=True)
class PublicRows:
    """Public rows after validation: features, and group codes with their domain where groups are used.

    Parameters
    ----------
    X : ndarray of shape (n_public, n_features)
    groups : ndarray of int of shape (n_public,) or None
    domain : ndarray of shape (n_groups,) or None
        Names of the groups.
    """

    X: NDArray[np.float64]
    groups: NDArray[np.int64] | None = None
    domain: NDArray[np.object_] | None = None

    @property
    def n_groups(self) -> int:
        return 0 if self.domain is None else len(self.domain)


@dataclass(frozen=True)
class Table:
    """X after validation.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
    groups : ndarray of shape (n_rows,) or None
        What ``sensitive_columns`` or a schema names, where it was asked for.
    raw : RawTable or None
        The table with its label and groups, where a schema reads it.
    """

    X: NDArray[np.float64]
    groups: NDArray[np.object_] | None
    raw: RawTable | None = None


@dataclass(frozen=True)
class TrainingData:
    """All that a fit learns from.

    Parameters
    ----------
    X : ndarray or KeptRows of shape (n_rows, n_features)
        Private, unless only the group is protected.
    y : ndarray of int of shape (n_rows,)
        Class codes, as private as X.
    classes : ndarray of shape (n_classes,)
        Public.
    groups : ndarray of int of shape (n_rows,) or None
        Private group codes, where the fit needs them.
    domain : ndarray of shape (n_groups,) or None
        Public names of the groups, where any are used.
    public : PublicRows or None
    reads : PublicReads
        Every public value that the outcome may follow; grows until the budget is spent.
    own_rows : SyntheticRows or None
        What makes rows from the private ones, where there are no public ones.
    source : RowSource or None
        Reads the private rows where they do not lie in memory; X and y are then blank, of the right shape.
    """

    X: NDArray[np.float64]
    y: NDArray[np.int64]
    classes: NDArray[Any]
    groups: NDArray[np.int64] | None
    domain: NDArray[np.object_] | None
    public: PublicRows | None
    reads: PublicReads
    own_rows: SyntheticRows | None = None
    source: RowSource | None = None

    @property
    def share_for_votes(self) -> float:
        """What is left of the squared cost of the fit for what is asked about rows."""
        return 1.0 if self.own_rows is None else 1 - self.own_rows.budget_share
