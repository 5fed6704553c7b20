"""Counts of answers, group × class, and their demographic disparity Γ(z, k) as FairPATE defines it (App. H.1)."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfairdp._typing import ArrayLike

GAPS = ("others", "overall", "between")


def check_option(value: Any, allowed: tuple[str, ...], name: str, owner: str) -> None:
    if not (isinstance(value, str) and value in allowed):
        raise ValueError(f"The {name!r} parameter of {owner} must be one of {sorted(allowed)}. Got {value!r} instead.")


def as_counts(counts: ArrayLike, shape: tuple[int, int] | None, *, owner: str) -> NDArray[np.int64]:
    """Return ``counts`` as a fresh (Z, K) integer table, or raise a ValueError that names ``owner``."""
    wanted = "a table (groups, classes) of non-negative integers" + ("" if shape is None else f" of shape {shape}")
    try:
        given = np.asarray(counts)
        table = given.astype(np.int64) if given.dtype.kind in "iufb" and np.isfinite(given).all() else None
    except (TypeError, ValueError):
        table = None
    if table is None or table.ndim != 2 or table.size == 0 or (shape is not None and table.shape != shape):
        raise ValueError(f"The 'counts' parameter of {owner} must be {wanted}.")
    if (table < 0).any() or (table != given).any():
        raise ValueError(
            f"The 'counts' parameter of {owner} must be {wanted}; some entries are negative or fractional."
        )
    return table


def disparities(counts: ArrayLike, gap: str = "others") -> NDArray[np.float64]:
    """Return the demographic disparity Γ(z, k) of every group and class.

    Parameters
    ----------
    counts : array-like of shape (n_groups, n_classes)
        ``counts[z, k]``: how many members of group z were given class k. Non-negative integers.
    gap : {"others", "overall", "between"}, default="others"
        What a group's rate P(k | z) is compared with:

        - ``"others"``: the pooled rate of all other groups (the paper's choice, its equation 4);
        - ``"overall"``: the rate of everyone, the group included (equation 3);
        - ``"between"``: the group that differs most, in absolute value (equation 2).

    Returns
    -------
    ndarray of shape (n_groups, n_classes)
        Differences of rates, in [-1, 1]; 0 where either side of the comparison is empty.

    Raises
    ------
    ValueError
        ``counts`` is not a table of non-negative integers, or ``gap`` is unknown.

    References
    ----------
    Yaghini et al. (2023), "Learning to walk impartially on the Pareto frontier", Section 2 and Appendix H.1.

    Examples
    --------
    >>> from skfairdp.fairness import disparities
    >>> disparities([[30, 10], [20, 20]])
    array([[ 0.25, -0.25],
           [-0.25,  0.25]])
    """
    check_option(gap, GAPS, "gap", "disparities")
    table = as_counts(counts, None, owner="disparities")
    size = table.sum(axis=1, keepdims=True)
    filled = size > 0
    rate = table / np.maximum(size, 1)
    if gap == "between":
        present = rate[filled[:, 0]]
        if len(present) < 2:
            return np.zeros(table.shape)
        return np.where(filled, np.maximum(rate - present.min(axis=0), present.max(axis=0) - rate), 0.0)
    others = table.sum(axis=0) - (0 if gap == "overall" else table)
    others_size = table.sum() - (0 if gap == "overall" else size)
    return np.where(filled & (others_size > 0), rate - others / np.maximum(others_size, 1), 0.0)


def largest_disparity(counts: ArrayLike, gap: str = "others") -> float:
    """Return max over z and k of Γ(z, k), the fairness gap that γ bounds.

    Parameters
    ----------
    counts, gap : object
        As for :func:`disparities`.

    Returns
    -------
    float
        In [0, 1]; 0 for perfect parity, and while fewer than two groups have counts.

    Examples
    --------
    >>> from skfairdp.fairness import largest_disparity
    >>> largest_disparity([[30, 10], [20, 20]])
    0.25
    """
    return float(disparities(counts, gap).max())


def tally(groups: NDArray[np.int64], labels: NDArray[np.int64], shape: tuple[int, int]) -> NDArray[np.int64]:
    """Return how many rows of each group have each class."""
    return np.bincount(groups * shape[1] + labels, minlength=shape[0] * shape[1]).reshape(shape)


def rejection_rates(
    kept: NDArray[np.bool_], groups: NDArray[np.int64], domain: NDArray[np.object_]
) -> dict[Any, float]:
    """Return for every group the share of its rows that were refused; NaN for a group without rows."""
    asked = np.bincount(groups, minlength=len(domain))
    refused = np.bincount(groups[~kept], minlength=len(domain))
    return {name: float(r / a) if a else math.nan for name, r, a in zip(domain.tolist(), refused, asked, strict=True)}
