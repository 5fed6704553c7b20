"""Metrics of predictions that may be refused."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from skfairdp._typing import ArrayLike
from skfairdp._utils import check_same_index
from skfairdp.metrics._fairness import group_codes, read_labels, read_rejected


def coverage_score(y_true: ArrayLike | None, y_pred: ArrayLike, *, reject_label: Hashable) -> float:
    """Return the share of rows that were answered.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,) or None
        Not read; there so that the function works in fairlearn's ``MetricFrame``.
    y_pred : array-like of shape (n_rows,)
        Predictions, refusals among them.
    reject_label : label
        What a refusal looks like.

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    ValueError
        No rows, missing values, lengths differ, ``reject_label`` of another type than the predictions.

    Examples
    --------
    >>> from skfairdp.metrics import coverage_score
    >>> coverage_score(None, [0, 1, -1, 1], reject_label=-1)
    0.75
    """
    check_same_index("coverage_score", y_true=y_true, y_pred=y_pred)
    n_rows = None if y_true is None else len(read_labels(y_true, "y_true", "coverage_score"))
    predicted = read_labels(y_pred, "y_pred", "coverage_score", n_rows)
    return float(1.0 - read_rejected(predicted, reject_label, "coverage_score").mean())


def selective_accuracy(y_true: ArrayLike, y_pred: ArrayLike, *, reject_label: Hashable) -> float:
    """Return the accuracy on the answered rows.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_rows,)
        True labels and predictions, refusals among them.
    reject_label : label
        What a refusal looks like.

    Returns
    -------
    float
        In [0, 1]; NaN where nothing was answered.

    Raises
    ------
    ValueError
        As for :func:`coverage_score`.

    Examples
    --------
    >>> from skfairdp.metrics import selective_accuracy
    >>> selective_accuracy([0, 1, 0, 0], [0, 1, -1, 1], reject_label=-1)
    0.6666666666666666
    """
    check_same_index("selective_accuracy", y_true=y_true, y_pred=y_pred)
    truth = read_labels(y_true, "y_true", "selective_accuracy")
    predicted = read_labels(y_pred, "y_pred", "selective_accuracy", len(truth))
    kept = ~read_rejected(predicted, reject_label, "selective_accuracy")
    return float(np.mean(truth[kept] == predicted[kept])) if kept.any() else float("nan")


def rejection_rate_by_group(
    y_true: ArrayLike | None,
    y_pred: ArrayLike,
    *,
    sensitive_features: Any,
    reject_label: Hashable,
    groups: Sequence[Hashable] | None = None,
) -> dict[Hashable, float]:
    """Return each group's share of refused rows.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,) or None
        Not read.
    y_pred : array-like of shape (n_rows,)
        Predictions, refusals among them.
    sensitive_features : array-like of shape (n_rows,), Series or DataFrame
        Group of each row; the columns of a DataFrame form intersections.
    reject_label : label
        What a refusal looks like.
    groups : sequence or None, default=None
        The possible groups; None takes those that occur.

    Returns
    -------
    dict
        Group to rate in [0, 1], in the order of ``groups``; NaN for a group without rows.

    Raises
    ------
    ValueError
        As for :func:`coverage_score`, and a group outside ``groups``.

    Examples
    --------
    >>> from skfairdp.metrics import rejection_rate_by_group
    >>> rejection_rate_by_group(None, [0, -1, 1, 1], sensitive_features=list("aabb"), reject_label=-1)
    {'a': 0.5, 'b': 0.0}
    """
    owner = "rejection_rate_by_group"
    check_same_index(owner, y_true=y_true, y_pred=y_pred, sensitive_features=sensitive_features)
    n_rows = None if y_true is None else len(read_labels(y_true, "y_true", owner))
    predicted = read_labels(y_pred, "y_pred", owner, n_rows)
    codes, domain = group_codes(sensitive_features, groups, len(predicted), owner)
    rejected = read_rejected(predicted, reject_label, owner)
    rows = np.bincount(codes, minlength=len(domain))
    refused = np.bincount(codes[rejected], minlength=len(domain))
    return {
        group: float(r / n) if n else float("nan") for group, r, n in zip(domain.tolist(), refused, rows, strict=True)
    }
