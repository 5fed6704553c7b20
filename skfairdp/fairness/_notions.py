"""Group-fairness notions as a score h(·) per row and the strata it is averaged in (PF-LD's constraints).

A model is fair in the sense of a notion if, in every stratum, the mean of h is the same in every group.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["AccuracyParity", "DemographicParity", "EqualizedOdds"]


@dataclass(frozen=True)
class DemographicParity:
    """The predicted rate of each class is the same in every group.

    Examples
    --------
    >>> from skfairdp.fairness import DemographicParity
    >>> DemographicParity().values([[0.9, 0.1], [0.25, 0.75]], [0, 1])
    array([[0.1 ],
           [0.75]])
    """

    def values(self, proba: ArrayLike, y: ArrayLike) -> NDArray[np.float64]:
        """Return h, (n_rows, n_constraints): p(1|x) for two classes, else each p(k|x); ``y`` is ignored."""
        return _predicted(_check_proba(proba))

    def strata(self, y: ArrayLike) -> NDArray[np.int64]:
        """Return each row's stratum: 0, all rows are compared together."""
        return np.zeros(len(_check_labels(y)), dtype=np.int64)


@dataclass(frozen=True)
class EqualizedOdds:
    """Among the rows of each true class, the predicted rate of each class is the same in every group.

    Examples
    --------
    >>> from skfairdp.fairness import EqualizedOdds
    >>> EqualizedOdds().strata([0, 1, 1])
    array([0, 1, 1])
    """

    def values(self, proba: ArrayLike, y: ArrayLike) -> NDArray[np.float64]:
        """Return h per row, as for :class:`DemographicParity`."""
        return _predicted(_check_proba(proba))

    def strata(self, y: ArrayLike) -> NDArray[np.int64]:
        """Return each row's stratum: its true class."""
        return _check_labels(y)


@dataclass(frozen=True)
class AccuracyParity:
    """The expected error is the same in every group.

    Examples
    --------
    >>> from skfairdp.fairness import AccuracyParity
    >>> AccuracyParity().values([[0.75, 0.25], [0.25, 0.75]], [0, 0])
    array([[0.25],
           [0.75]])
    """

    def values(self, proba: ArrayLike, y: ArrayLike) -> NDArray[np.float64]:
        """Return h per row, shape (n_rows, 1): 1 - p(y|x), the probability of a wrong prediction."""
        table, codes = _check_proba(proba), _check_labels(y)
        if len(codes) != len(table):
            raise ValueError(f"AccuracyParity needs one label per row of 'proba'; got {len(codes)} and {len(table)}.")
        if codes.size and codes.max() >= table.shape[1]:
            raise ValueError(f"AccuracyParity needs labels in 0..{table.shape[1] - 1}, the columns of 'proba'.")
        return 1.0 - np.take_along_axis(table, codes[:, None], axis=1)

    def strata(self, y: ArrayLike) -> NDArray[np.int64]:
        """Return each row's stratum: 0, all rows are compared together."""
        return np.zeros(len(_check_labels(y)), dtype=np.int64)


def _predicted(proba: NDArray[np.float64]) -> NDArray[np.float64]:
    return proba[:, 1:] if proba.shape[1] == 2 else proba


def _check_proba(proba: ArrayLike) -> NDArray[np.float64]:
    table = np.asarray(proba, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] < 2:
        raise ValueError("'proba' must have shape (n_rows, n_classes) with at least two classes.")
    return table


def _check_labels(y: ArrayLike) -> NDArray[np.int64]:
    codes = np.asarray(y)
    if codes.ndim != 1 or (codes.size and (codes.dtype.kind not in "iub" or codes.min() < 0)):
        raise ValueError("'y' must be one column of class codes 0..K-1.")
    return codes.astype(np.int64)
