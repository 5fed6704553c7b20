"""Poisoned queries: the record and the questions with which an attacker moves a vote of an ensemble for certain."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfairdp._typing import ArrayLike
from skfairdp.inspection._audit_worlds import Canary


def poisoned_queries(
    X: ArrayLike, *, n_queries: int, labels: Sequence[Any], row: int = 0, distance: float = 10.0
) -> tuple[Canary, NDArray[np.float64]]:
    """Place a record where no other is, and ask nothing but what is there.

    An attacker who may put one record into the private rows, and choose the questions, controls the vote of the one
    teacher that gets the record: the record lies far outside, every question lies on it, and its label is one or the
    other. A teacher that goes by its nearest rows then turns in each answer, which is all that one record can do to the
    votes of an ensemble, whatever the other rows are (Chadha et al. 2024, "Auditing private prediction"). The two
    labels are the canary's forms; pass both results on to :func:`audit`, or fit on the two worlds yourself.

    Parameters
    ----------
    X : array-like of shape (n_rows, n_features)
        The private rows among which the record will lie.
    n_queries : int
        At least 1. Each costs what a query costs, and moves by a vote.
    labels : sequence of two labels
        Of the poisoned record, in the first and the second world.
    row : int, default=0
        Position that the poisoned record takes.
    distance : float, default=10.0
        How far outside, in units of the largest number of X (at least 1).

    Returns
    -------
    canary : Canary
        The record to plant.
    queries : ndarray of shape (n_queries, n_features)
        Public rows to ask about.

    Raises
    ------
    ValueError
        Not two different labels, fewer than one query, or a row that X does not have.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.inspection import poisoned_queries
    >>> canary, queries = poisoned_queries(np.array([[0.5, 2.0], [1.0, -3.0]]), n_queries=3, labels=(0, 1))
    >>> queries
    array([[30., 30.],
           [30., 30.],
           [30., 30.]])
    >>> canary.first[1], canary.second[1]
    (0, 1)
    """
    rows = np.asarray(X, dtype=float)
    if len(labels) != 2 or labels[0] == labels[1]:
        raise ValueError(f"labels must be two different labels. Got {labels!r} instead.")
    if isinstance(n_queries, bool) or not isinstance(n_queries, int | np.integer) or n_queries < 1:
        raise ValueError(f"n_queries must be an integer of at least 1. Got {n_queries!r} instead.")
    if rows.ndim != 2 or not 0 <= row < len(rows):
        raise ValueError(f"row must be a position in X, which has {len(rows)} rows. Got {row!r} instead.")
    place = np.full(rows.shape[1], distance * max(1.0, float(np.abs(rows).max())))
    canary = Canary((place, labels[0]), (place, labels[1]), row, name="poisoned record")
    return canary, np.tile(place, (n_queries, 1))
