"""The law of groups and labels that synthetic rows are drawn from. It is chosen, never learnt by the generator."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["BALANCES", "given_rates", "on_simplex", "target_law", "tilted_rates"]

BALANCES = ("group", "group_and_label")


def on_simplex(noisy: NDArray[np.float64]) -> NDArray[np.float64]:
    """Nearest non-negative vectors with the totals of the given ones, as shares; even where the total is not positive.

    Rows of a matrix are projected one by one (Euclidean projection; Duchi et al. 2008).
    """
    rows = np.atleast_2d(np.asarray(noisy, dtype=np.float64))
    totals = rows.sum(axis=1, keepdims=True)
    falling = -np.sort(-rows, axis=1)
    excess = (np.cumsum(falling, axis=1) - totals) / np.arange(1, rows.shape[1] + 1)
    last = np.count_nonzero(falling > excess, axis=1, keepdims=True) - 1
    kept = np.maximum(rows - np.take_along_axis(excess, np.maximum(last, 0), axis=1), 0.0)
    total = kept.sum(axis=1, keepdims=True)
    shares = np.where((totals > 0) & (total > 0), kept / np.where(total > 0, total, 1.0), 1.0 / rows.shape[1])
    return shares.reshape(np.shape(noisy))


def target_law(
    observed: NDArray[np.float64], balance: str | None, rates: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    """Shares of (group, label) in what is sampled.

    Parameters
    ----------
    observed : ndarray of shape (n_groups, n_classes)
        Released shares of the private rows.
    balance : {"group", "group_and_label"} or None
    rates : ndarray of shape (n_groups, n_classes) or None
        Law of the label in each group, in place of what ``balance`` says about it.
    """
    n_groups = len(observed)
    groups = observed.sum(axis=1) if balance is None else np.full(n_groups, 1.0 / n_groups)
    if rates is None:
        rates = tilted_rates(observed, 0.0 if balance == "group_and_label" else -1.0)
    return groups[:, None] * rates


def tilted_rates(observed: NDArray[np.float64], tilt: float, sharpening: float = 0.0) -> NDArray[np.float64]:
    """Law of the label in each group, moved against the group's own: p(y)^(1 + sharpening) (p(y | s) / p(y))^(-tilt).

    A tilt of −1 is each group's own law, 0 the overall one in every group; beyond 0 a label that is rarer in a group
    becomes more frequent there than overall. Sharpening makes frequent labels more frequent in all groups.
    """
    overall = observed.sum(axis=0)
    floor = 1e-9
    own = observed / np.maximum(observed.sum(axis=1, keepdims=True), floor)
    ratio = np.maximum(own, floor) / np.maximum(overall, floor)
    rates = np.maximum(overall, floor) ** (1 + sharpening) * ratio**-tilt
    return np.asarray(rates / rates.sum(axis=1, keepdims=True))


def given_rates(given: Any, groups: list[Any], n_classes: int, owner: str) -> NDArray[np.float64]:
    """Read ``label_rates`` given as {group: share of the last class, or shares of all classes}."""
    problem = ValueError(
        f"The 'label_rates' parameter of {owner} must map each group to the share of the last class, or to the shares "
        f"of all {n_classes} classes, which add up to 1."
    )
    if not isinstance(given, Mapping) or set(given) != set(groups):
        raise problem
    rates = np.empty((len(groups), n_classes))
    for row, group in zip(rates, groups, strict=True):
        try:
            shares = np.asarray(given[group], dtype=np.float64)
        except (TypeError, ValueError):
            raise problem from None
        if shares.ndim == 0 and n_classes == 2:
            shares = np.array([1 - shares, shares])
        if shares.shape != (n_classes,) or not np.all(shares >= 0) or abs(shares.sum() - 1) > 1e-6:
            raise problem
        row[:] = shares / shares.sum()
    return rates
