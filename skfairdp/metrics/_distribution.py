"""Disparity of whole score distributions, for thresholds that nobody knows yet."""

from collections.abc import Hashable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from scipy.stats import ks_2samp, wasserstein_distance

from skfairdp._typing import ArrayLike
from skfairdp._utils import check_same_index, refuse_masked
from skfairdp.metrics._rows import group_codes, warn_if_vacuous


def wasserstein_disparity(
    y_true: ArrayLike | None,
    y_score: ArrayLike,
    *,
    sensitive_features: Any,
    groups: Sequence[Hashable] | None = None,
) -> float:
    """Return max over pairs of groups of the Wasserstein-1 distance between the distributions of their scores.

    0 is generalized demographic parity: the same share of every group lies above any threshold. For scores in [0, 1] it
    is the mean, over all thresholds, of the gap in the rates above it. (Tran et al. 2022, Definition 4 and Figure 4.)

    Parameters
    ----------
    y_true : array-like of shape (n_rows,) or None
        Not read; there so that the signature is that of every metric.
    y_score : array-like of shape (n_rows,)
        Scores, such as probabilities of the positive class.
    sensitive_features : array-like of shape (n_rows,), Series or DataFrame
        Group of each row; the columns of a DataFrame form intersections.
    groups : sequence or None, default=None
        The possible groups; None takes those that occur. A row outside them is an error.

    Returns
    -------
    float
        At least 0, in units of the score; 0 with a ``FairnessWarning`` where fewer than two groups have rows.

    Raises
    ------
    ValueError
        Scores that are no finite numbers, lengths that differ, groups that are missing or not in ``groups``.

    Examples
    --------
    >>> from skfairdp.metrics import wasserstein_disparity
    >>> wasserstein_disparity(None, [0.1, 0.3, 0.6, 0.8], sensitive_features=list("aabb"))
    0.5
    """
    of_groups = _scores_by_group("wasserstein_disparity", y_true, y_score, sensitive_features, groups)
    return float(max((wasserstein_distance(a, b) for a, b in combinations(of_groups, 2)), default=0.0))


def ks_disparity(
    y_true: ArrayLike | None,
    y_score: ArrayLike,
    *,
    sensitive_features: Any,
    groups: Sequence[Hashable] | None = None,
) -> float:
    """Return max over pairs of groups of the Kolmogorov-Smirnov distance between the distributions of their scores.

    The largest difference, over all thresholds, of the shares of two groups that lie at or below it: 0 is statistical
    parity of amounts or scores, whatever is decided by them. It has no unit.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,) or None
        Not read; there so that the signature is that of every metric.
    y_score : array-like of shape (n_rows,)
        Predicted amounts, or scores.
    sensitive_features : array-like of shape (n_rows,), Series or DataFrame
        Group of each row; the columns of a DataFrame form intersections.
    groups : sequence or None, default=None
        The possible groups; None takes those that occur. A row outside them is an error.

    Returns
    -------
    float
        In [0, 1]; 0 with a ``FairnessWarning`` where fewer than two groups have rows.

    Raises
    ------
    ValueError
        Scores that are no finite numbers, lengths that differ, groups that are missing or not in ``groups``.

    Examples
    --------
    >>> from skfairdp.metrics import ks_disparity
    >>> ks_disparity(None, [10.0, 30.0, 20.0, 80.0], sensitive_features=list("aabb"))
    0.5
    """
    of_groups = _scores_by_group("ks_disparity", y_true, y_score, sensitive_features, groups)
    return float(max((ks_2samp(a, b, method="asymp").statistic for a, b in combinations(of_groups, 2)), default=0.0))


def _scores_by_group(owner: str, y_true: Any, y_score: Any, sensitive_features: Any, groups: Any) -> list[Any]:
    """The scores of each group that has rows."""
    refuse_masked(y_score, owner=owner, name="y_score")
    try:
        scores = np.asarray(y_score, dtype=np.float64)
    except (TypeError, ValueError):
        scores = np.full((0, 0), np.nan)
    if scores.ndim != 1 or not len(scores) or not np.isfinite(scores).all():
        raise ValueError(f"y_score of {owner} must be one column of finite numbers with at least one row.")
    if y_true is not None and len(np.asarray(y_true, dtype=object)) != len(scores):
        raise ValueError(f"y_true and y_score of {owner} have inconsistent lengths.")
    check_same_index(owner, y_true=y_true, y_score=y_score, sensitive_features=sensitive_features)
    codes, domain = group_codes(sensitive_features, groups, len(scores), owner)
    of_groups = [scores[codes == code] for code in range(len(domain)) if np.any(codes == code)]
    warn_if_vacuous(len(of_groups), owner)
    return of_groups
