"""Counts of answers, group × class, and their demographic disparity Γ(z, k) as FairPATE defines it (App. H.1)."""

import math
from typing import Any

import numpy as np

from skfairdp._typing import ArrayLike, Bools, Floats, Ints, MaybeArray, Objects, Pair, Values
from skfairdp.fairness._rates import RateConstraints

GAPS = ("others", "overall", "between")


def check_option(value: Any, allowed: tuple[str, ...], name: str, owner: str) -> None:
    if not (isinstance(value, str) and value in allowed):
        raise ValueError(f"The {name!r} parameter of {owner} must be one of {sorted(allowed)}. Got {value!r} instead.")


def as_counts(counts: MaybeArray, shape: Pair | None, *, owner: str) -> Ints:
    """Return ``counts`` (None: zeros) as a fresh (Z, K) integer table, or raise a ValueError that names ``owner``."""
    if counts is None and shape is not None:
        return np.zeros(shape, dtype=np.int64)
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


def disparities(counts: ArrayLike, gap: str = "others") -> Floats:
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
    return disparities_of(table, table.sum(axis=1), table.sum(axis=0), gap)


def disparities_of(counts: Ints, sizes: Ints, sums: Ints, gap: str) -> Floats:
    """:func:`disparities` of a table that needs no checks, with the sums of its rows and columns."""
    size = sizes[:, None]
    rates = counts / np.maximum(size, 1)
    if gap == "between":
        present = rates[sizes > 0] if sizes.any() else rates
        return np.where(size > 0, np.maximum(rates - present.min(axis=0), present.max(axis=0) - rates), 0.0)
    others = sums - (0 if gap == "overall" else counts)
    rest = sizes.sum() - (0 if gap == "overall" else size)
    return np.where((size > 0) & (rest > 0), rates - others / np.maximum(rest, 1), 0.0)


def largest_disparity(counts: ArrayLike, gap: str = "others") -> float:
    """Return max over z and k of Γ(z, k), the fairness gap that γ bounds; 0 while fewer than two groups have counts."""
    return float(disparities(counts, gap).max())


def tally(groups: Ints, labels: Ints, shape: Pair) -> Ints:
    """Return how many rows of each group have each class."""
    return np.bincount(groups * shape[1] + labels, minlength=shape[0] * shape[1]).reshape(shape)


def rejection_rates(kept: Bools, groups: Ints, domain: Objects) -> dict[Any, float]:
    """Return for every group the share of its rows that were refused; NaN for a group without rows."""
    asked = np.bincount(groups, minlength=len(domain))
    refused = np.bincount(groups[~kept], minlength=len(domain))
    return {name: float(r / a) if a else math.nan for name, r, a in zip(domain.tolist(), refused, asked, strict=True)}


#: Sizes are believed that are so many times their noise; no rate of a smaller group is spoken of.
CLEAR_SIZE = 3.0


def noise_of_violations(constraints: RateConstraints, tables: Values, noise: float) -> tuple[Floats, Floats]:
    """By how much the mean of noisy tables of counts breaks each inequality, and the noise in that; post-processing.

    The noise is a standard deviation: infinite of an inequality that cannot be spoken of, as noise hides a group.
    """
    counts, n = np.mean(tables, axis=0), len(tables)
    sizes = counts.sum(2)
    cells, events = (part[:, : sizes.shape[1]] for part in (constraints.cells, constraints.events))
    rows, n_groups, n_classes = constraints.sizes_of_rates(sizes), len(sizes), counts.shape[2]
    of_size = noise * np.sqrt(cells.sum(1) * n_classes / n) * np.array([1.0] * n_groups + [n_groups**0.5])[:, None]
    clear = rows > CLEAR_SIZE * of_size
    rates = np.nan_to_num(constraints.rates(counts, np.maximum(sizes, 1e-9)))
    # derivatives of each left-hand side by the counts and by the sizes of each group; a rate overall has all groups
    slopes = constraints.coefficients / np.where(clear, rows, 1.0)
    by_count = np.einsum("jar,ryk->jayk", slopes[:, :-1] + slopes[:, -1:], events)
    by_size = -np.einsum("jar,ry->jay", slopes[:, :-1] * rates[:-1] + slopes[:, -1:] * rates[-1], cells)[..., None]
    variance = n * np.square(by_count / n + by_size / n).sum((1, 2, 3))
    known = (clear | (constraints.coefficients == 0)).all((1, 2))
    broken_by = constraints.violations(counts, np.maximum(sizes, 1e-9))
    return broken_by, np.where(known, noise * np.sqrt(variance), math.inf)
