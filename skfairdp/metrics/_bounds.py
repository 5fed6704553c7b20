"""What the gap of a population is at most, and where its rates lie, as far as a sample of it lets one say."""

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skfairdp._typing import ArrayLike
from skfairdp._utils import encode_labels, given_domain, group_domain
from skfairdp.fairness import RateConstraints, RateParity, rate_bounds, read_rate_constraints, violation_bounds
from skfairdp.metrics._fairness import group_codes, read_labels


def gap_bound(
    y_true: ArrayLike | None,
    y_pred: ArrayLike,
    *,
    sensitive_features: Any,
    constraints: Any = "demographic_parity",
    level: float = 0.95,
    classes: Sequence[Hashable] | None = None,
    groups: Sequence[Hashable] | None = None,
) -> float:
    """Return a number that the gap of the population exceeds with probability 1 - ``level`` only.

    The rows must be independent draws from the population, **and the predictor must not have seen them**: neither in
    training nor in calibration. What a model was fitted on makes it look fairer than it is.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,) or None
        True labels; None where the constraints do not look at them (demographic parity).
    y_pred : array-like of shape (n_rows,)
        Predicted labels.
    sensitive_features : array-like of shape (n_rows,), Series or DataFrame
        Group of each row; the columns of a DataFrame form intersections.
    constraints : str, RateParity, RateBound, fairlearn moment, or list of them, default="demographic_parity"
        What the gap is of. The name of a notion (see :class:`skfairdp.gradient.SignedLoss`) stands for the largest
        difference between two groups; anything with a bound of its own, for by how much it is broken.
    level : float, default=0.95
        In (0.5, 1).
    classes, groups : sequence or None, default=None
        The possible labels and groups; None takes those that occur. A group that the rows lack cannot be bounded.

    Returns
    -------
    float
        At most 0 where constraints with bounds are found to hold, with that confidence.

    Raises
    ------
    ValueError
        Lengths differ, values are missing or outside ``classes`` or ``groups``, labels are needed and not given, or
        ``level`` is outside its range.

    See Also
    --------
    rate_intervals : Where each rate of each group lies.

    Notes
    -----
    Each difference has an upper bound from the laws behind Clopper and Pearson's bounds of its rates (Fay, Proschan &
    Brittain 2015), and the largest is returned. That needs no correction for many groups: it is at least the bound of
    the one difference that is the largest in the population. Where one difference is clearly the largest, the gap stays
    below the bound in about 95 of 100 samples, in more where rows are few; at parity, in nearly all. Rates of 0 and 1
    are no exception, and of a group without rows nothing is certified.

    Examples
    --------
    >>> from skfairdp.metrics import demographic_disparity, gap_bound
    >>> predicted, groups = [1] * 30 + [0] * 70 + [1] * 40 + [0] * 60, ["f"] * 100 + ["m"] * 100
    >>> round(demographic_disparity(None, predicted, sensitive_features=groups), 2)
    0.1
    >>> round(gap_bound(None, predicted, sensitive_features=groups), 2)
    0.22
    """
    asked, counts = _read(y_true, y_pred, sensitive_features, constraints, classes, groups, level, "gap_bound")
    return float(violation_bounds(asked, counts, level=level).max())


def rate_intervals(
    y_true: ArrayLike | None,
    y_pred: ArrayLike,
    *,
    sensitive_features: Any,
    constraints: Any = "demographic_parity",
    level: float = 0.95,
    classes: Sequence[Hashable] | None = None,
    groups: Sequence[Hashable] | None = None,
) -> pd.DataFrame:
    """Return where the rates of each group lie in the population: all intervals together hold with this probability.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,) or None
        True labels; None where the constraints do not look at them.
    y_pred : array-like of shape (n_rows,)
        Predicted labels.
    sensitive_features : array-like of shape (n_rows,), Series or DataFrame
        Group of each row; the columns of a DataFrame form intersections.
    constraints : str, RateParity, RateBound, fairlearn moment, or list of them, default="demographic_parity"
        Whose rates.
    level : float, default=0.95
        In (0.5, 1).
    classes, groups : sequence or None, default=None
        The possible labels and groups; None takes those that occur.

    Returns
    -------
    DataFrame
        One line for each rate of each group, and of all rows: ``rate``, ``group``, ``value``, ``lower``, ``upper``.

    Raises
    ------
    ValueError
        As for :func:`gap_bound`.

    See Also
    --------
    gap_bound : One number for all of it.

    Examples
    --------
    >>> from skfairdp.metrics import rate_intervals
    >>> predicted, groups = [1] * 30 + [0] * 70 + [1] * 40 + [0] * 60, ["f"] * 100 + ["m"] * 100
    >>> rate_intervals(None, predicted, sensitive_features=groups).round(2)
                      rate    group  value  lower  upper
    0  selection_rate of 1        f   0.30   0.20   0.42
    1  selection_rate of 1        m   0.40   0.28   0.52
    2  selection_rate of 1  overall   0.35   0.27   0.44
    """
    asked, counts = _read(y_true, y_pred, sensitive_features, constraints, classes, groups, level, "rate_intervals")
    lower, upper = rate_bounds(asked, counts, level=level)
    names = [*asked.groups, "overall"]
    return pd.DataFrame(
        {
            "rate": np.repeat(asked.rate_names, len(names)),
            "group": pd.Series(names * len(asked.rate_names), dtype=object),
            "value": asked.rates(counts).T.ravel(),
            "lower": lower.T.ravel(),
            "upper": upper.T.ravel(),
        }
    )


def _read(
    y_true: ArrayLike | None,
    y_pred: ArrayLike,
    sensitive_features: Any,
    constraints: Any,
    classes: Sequence[Hashable] | None,
    groups: Sequence[Hashable] | None,
    level: float,
    owner: str,
) -> tuple[RateConstraints, NDArray[np.int64]]:
    """What is asked, and the counts it is asked of."""
    if not 0.5 < level < 1:
        raise ValueError(f"The 'level' of {owner} must lie between 0.5 and 1. Got {level!r} instead.")
    truth = None if y_true is None else read_labels(y_true, "y_true", owner)
    predicted = read_labels(y_pred, "y_pred", owner, None if truth is None else len(truth))
    codes, domain = group_codes(sensitive_features, groups, len(predicted), owner)
    if len(domain) < 2:
        raise ValueError(f"{owner} found one group: there is no gap to bound. Give rows of every group.")
    labels = _labels(classes, predicted if truth is None else np.concatenate([predicted, truth]), owner)
    asked = RateConstraints(_without_slack(constraints, owner), domain.tolist(), labels.tolist(), owner)
    if truth is None and asked.needs_labels:
        raise ValueError(f"The constraints of {owner} look at the true labels: pass y_true.")
    answers = encode_labels(predicted, labels, owner=owner, name="y_pred", parameter="classes")
    truths = answers if truth is None else encode_labels(truth, labels, owner=owner, name="y_true", parameter="classes")
    return asked, asked.tally(codes, truths, answers)


def _labels(classes: Sequence[Hashable] | None, seen: NDArray[Any], owner: str) -> NDArray[Any]:
    if classes is not None:
        return given_domain(classes, owner=owner, parameter="classes")
    found = group_domain(seen)
    if len(found) < 2:
        raise ValueError(f"{owner} found one class: give the possible labels with 'classes'.")
    return found


def _without_slack(constraints: Any, owner: str) -> tuple[Any, ...]:
    """Names stand for the difference itself; what has a bound of its own keeps it."""
    given = [constraints] if isinstance(constraints, str) or not isinstance(constraints, list | tuple) else constraints
    read = read_rate_constraints(given, owner)
    return tuple(
        replace(one, difference_bound=0.0) if isinstance(was, str) and isinstance(one, RateParity) else one
        for was, one in zip(given, read, strict=True)
    )
