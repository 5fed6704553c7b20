"""What a gate left: how many of each group got each class, and what share of each group was refused."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["rejection_rates", "tally"]


def tally(groups: NDArray[np.int64], labels: NDArray[np.int64], shape: tuple[int, int]) -> NDArray[np.int64]:
    """Return how many rows of each group have each class.

    Parameters
    ----------
    groups, labels : ndarray of int of shape (n_rows,)
        Codes of the rows that were answered or kept.
    shape : (n_groups, n_classes)

    Returns
    -------
    ndarray of int of shape (n_groups, n_classes)
    """
    return np.bincount(groups * shape[1] + labels, minlength=shape[0] * shape[1]).reshape(shape)


def rejection_rates(
    kept: NDArray[np.bool_], groups: NDArray[np.int64], domain: NDArray[np.object_]
) -> dict[Any, float]:
    """Return for every group the share of its rows that were refused; NaN for a group without rows.

    Parameters
    ----------
    kept : ndarray of bool of shape (n_rows,)
    groups : ndarray of int of shape (n_rows,)
        Positions in ``domain``.
    domain : ndarray of shape (n_groups,), dtype object

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.fairness import rejection_rates
    >>> domain = np.array(["f", "m"], dtype=object)
    >>> rejection_rates(np.array([True, False, True]), np.array([0, 0, 1]), domain)
    {'f': 0.5, 'm': 0.0}
    """
    asked = np.bincount(groups, minlength=len(domain))
    refused = np.bincount(groups[~kept], minlength=len(domain))
    return {name: float(r / a) if a else math.nan for name, r, a in zip(domain.tolist(), refused, asked, strict=True)}
