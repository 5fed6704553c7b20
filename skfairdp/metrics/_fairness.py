"""Disparities between groups: of the rows that were answered, of whole distributions, and of the population at most."""

from collections.abc import Hashable
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import ks_2samp, wasserstein_distance

from skfairdp import _utils, fairness
from skfairdp._docs import shared_docs
from skfairdp._typing import Array, ArrayLike, Bools, Ints, MaybeArray, MaybeValue, MaybeValues, Objects
from skfairdp.exceptions import FairnessWarning


def read_labels(y: ArrayLike, name: str, owner: str, n_rows: int | None = None) -> Objects:
    """Return one column of labels as plain Python scalars; a ValueError names what is wrong with it."""
    _utils.refuse_masked(y, owner=owner, name=name)
    try:
        # A list keeps its own types: numpy would read ["a", nan] as two strings.
        array = np.asarray(y, dtype=object if isinstance(y, list | tuple) else None)
    except ValueError:
        array = np.empty((0, 0))
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"{name} of {owner} must be one column with at least one row.")
    if n_rows is not None and len(array) != n_rows:
        raise ValueError(f"y_true and y_pred of {owner} have inconsistent lengths: {n_rows} and {len(array)}.")
    if bool(pd.isna(array).any()):
        raise ValueError(f"{name} of {owner} contains missing values (NaN or None).")
    if array.dtype.kind == "f" and np.any(array % 1):
        raise ValueError(f"{name} of {owner} holds fractions, not labels. wasserstein_disparity compares scores.")
    return _utils.as_objects(array.tolist())


def read_rejected(y_pred: Objects, reject_label: MaybeValue, owner: str) -> Bools:
    """Return which predictions are refusals; ``reject_label=None`` means none is."""
    if reject_label is None:
        return np.zeros(len(y_pred), dtype=bool)
    if any(isinstance(label, str) for label in y_pred) != isinstance(reject_label, str):
        raise ValueError(
            f"The 'reject_label' of {owner} must be of the type of the predictions. Got {reject_label!r} instead."
        )
    return np.array([label == reject_label for label in y_pred], dtype=bool)


def group_codes(sensitive_features: Any, groups: Any, n_rows: int, owner: str) -> tuple[Ints, Objects]:
    """Return each row's group code and the groups (``groups`` as given, else those that occur)."""
    return _utils.encode_within(_utils.as_groups(sensitive_features, n_rows, owner=owner), groups, owner=owner)


def warn_if_vacuous(n_compared: int, owner: str) -> None:
    if n_compared < 2:
        _utils.warn_caller(
            f"{owner} found fewer than two groups with rows: the 0 that it returns means nothing. Give two groups.",
            FairnessWarning,
        )


def demographic_disparity(
    y_true: MaybeArray,
    y_pred: ArrayLike,
    *,
    sensitive_features: Any,
    gap: str = "others",
    classes: MaybeValues = None,
    groups: MaybeValues = None,
    reject_label: MaybeValue = None,
) -> float:
    """Return max over groups z and classes k of the demographic disparity Γ(z, k) of the answered rows.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,) or None
        Not read; there so that the signature is that of every metric.
    y_pred : array-like of shape (n_rows,)
        Predicted labels.
    sensitive_features : array-like of shape (n_rows,), Series or DataFrame
        Group of each row; the columns of a DataFrame form intersections.
    gap : {"others", "overall", "between"}, default="others"
        What a group's rate is compared with, see :func:`skfairdp.fairness.disparities`.
    classes, groups : sequence or None, default=None
        The possible labels and groups; None takes those that occur. A row outside them is an error.
    reject_label : label or None, default=None
        Predictions equal to it are refusals and left out; None: every row is an answer.

    Returns
    -------
    float
        In [0, 1]; 0 with a ``FairnessWarning`` where fewer than two groups have an answered row.

    Raises
    ------
    ValueError
        Lengths differ, values are missing or outside ``classes`` or ``groups``, no rows, unknown ``gap``,
        ``reject_label`` of another type than the predictions.

    Examples
    --------
    >>> from skfairdp.metrics import demographic_disparity
    >>> demographic_disparity(None, [1, 1, 1, 0, 1, 0, 0, 0], sensitive_features=list("aaaabbbb"))
    0.5
    """
    owner = "demographic_disparity"
    predicted, rejected, codes, domain = _read(y_true, y_pred, sensitive_features, groups, reject_label, owner)
    answered = predicted[~rejected]
    columns, labels = _utils.encode_within(answered, classes, owner=owner, name="y_pred", parameter="classes")
    counts = fairness.tally(codes[~rejected], columns, (len(domain), max(len(labels), 1)))
    warn_if_vacuous(int(np.count_nonzero(counts.sum(axis=1))), owner)
    return fairness.largest_disparity(counts, gap)


@shared_docs
def equalized_odds_disparity(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    sensitive_features: Any,
    groups: MaybeValues = None,
    reject_label: MaybeValue = None,
) -> float:
    """Return max over labels y and groups s, t of |P(ŷ = y | y, s) - P(ŷ = y | y, t)| over the answered rows.

    For two classes this is the larger of the differences in true and in false positive rates.

    {true_and_predicted, as_for_demographic_disparity}

    Returns
    -------
    float
        In [0, 1]. A group without answered rows of a label is left out for that label; 0 with a
        ``FairnessWarning`` where no label has two groups to compare.

    {raises_as_demographic_disparity}

    Examples
    --------
    >>> from skfairdp.metrics import equalized_odds_disparity
    >>> equalized_odds_disparity([1, 1, 1, 1], [1, 1, 1, 0], sensitive_features=list("aabb"))
    0.5
    """
    owner = "equalized_odds_disparity"
    truth = read_labels(y_true, "y_true", owner)
    predicted, rejected, codes, domain = _read(y_true, y_pred, sensitive_features, groups, reject_label, owner)
    cells = _utils.encode_labels(truth, _utils.group_domain(truth), owner=owner, name="y_true", parameter="y_true")
    right = _utils.hits(truth, np.where(rejected, truth, predicted), owner)
    return _largest_difference(right, codes, cells, ~rejected, len(domain), owner)


@shared_docs
def accuracy_disparity(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    sensitive_features: Any,
    groups: MaybeValues = None,
    reject_label: MaybeValue = None,
) -> float:
    """Return the largest difference in accuracy between two groups over the answered rows.

    {true_and_predicted, as_for_demographic_disparity}

    Returns
    -------
    float
        In [0, 1]; 0 with a ``FairnessWarning`` where fewer than two groups have an answered row.

    {raises_as_demographic_disparity}

    Examples
    --------
    >>> from skfairdp.metrics import accuracy_disparity
    >>> accuracy_disparity([1, 0, 1, 0], [1, 0, 1, 1], sensitive_features=list("aabb"))
    0.5
    """
    owner = "accuracy_disparity"
    truth = read_labels(y_true, "y_true", owner)
    predicted, rejected, codes, domain = _read(y_true, y_pred, sensitive_features, groups, reject_label, owner)
    one_cell = np.zeros(len(truth), dtype=np.int64)
    right = _utils.hits(truth, np.where(rejected, truth, predicted), owner)
    return _largest_difference(right, codes, one_cell, ~rejected, len(domain), owner)


def _read(
    y_true: MaybeArray, y_pred: ArrayLike, sensitive_features: Any, groups: MaybeValues, refusal: MaybeValue, owner: str
) -> tuple[Objects, Bools, Ints, Objects]:
    """Return predictions, which of them are refusals, group codes and groups."""
    _utils.check_same_index(owner, y_true=y_true, y_pred=y_pred, sensitive_features=sensitive_features)
    n_rows = None if y_true is None else len(read_labels(y_true, "y_true", owner))
    predicted = read_labels(y_pred, "y_pred", owner, n_rows)
    codes, domain = group_codes(sensitive_features, groups, len(predicted), owner)
    return predicted, read_rejected(predicted, refusal, owner), codes, domain


def _largest_difference(hit: Array, codes: Ints, cells: Ints, kept: Bools, n_groups: int, owner: str) -> float:
    """Return the largest difference between two groups' mean of ``hit`` within one cell."""
    shape = (int(cells.max()) + 1, n_groups)
    right = kept & hit.astype(bool)
    rows, hits = fairness.tally(cells[kept], codes[kept], shape), fairness.tally(cells[right], codes[right], shape)
    compared = [h[r > 0] / r[r > 0] for h, r in zip(hits, rows, strict=True)]
    warn_if_vacuous(max(len(rates) for rates in compared), owner)
    return max(float(np.ptp(rates)) if len(rates) else 0.0 for rates in compared)


@shared_docs
def wasserstein_disparity(
    y_true: MaybeArray, y_score: ArrayLike, *, sensitive_features: Any, groups: MaybeValues = None
) -> float:
    """Return max over pairs of groups of the Wasserstein-1 distance between the distributions of their scores.

    0 is generalized demographic parity: the same share of every group lies above any threshold. For scores in [0, 1] it
    is the mean, over all thresholds, of the gap in the rates above it. (Tran et al. 2022, Definition 4 and Figure 4.)

    Parameters
    ----------
    {labels_not_read}
    y_score : array-like of shape (n_rows,)
        Scores, such as probabilities of the positive class.
    {groups_of_scores}

    Returns
    -------
    float
        At least 0, in units of the score; 0 with a ``FairnessWarning`` where fewer than two groups have rows.

    {raises_of_scores}

    Examples
    --------
    >>> from skfairdp.metrics import wasserstein_disparity
    >>> wasserstein_disparity(None, [0.1, 0.3, 0.6, 0.8], sensitive_features=list("aabb"))
    0.5
    """
    of_groups = _scores_by_group("wasserstein_disparity", y_true, y_score, sensitive_features, groups)
    return float(max((wasserstein_distance(a, b) for a, b in combinations(of_groups, 2)), default=0.0))


@shared_docs
def ks_disparity(
    y_true: MaybeArray, y_score: ArrayLike, *, sensitive_features: Any, groups: MaybeValues = None
) -> float:
    """Return max over pairs of groups of the Kolmogorov-Smirnov distance between the distributions of their scores.

    The largest difference, over all thresholds, of the shares of two groups that lie at or below it: 0 is statistical
    parity of amounts or scores, whatever is decided by them. It has no unit.

    Parameters
    ----------
    {labels_not_read}
    y_score : array-like of shape (n_rows,)
        Predicted amounts, or scores.
    {groups_of_scores}

    Returns
    -------
    float
        In [0, 1]; 0 with a ``FairnessWarning`` where fewer than two groups have rows.

    {raises_of_scores}

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
    _utils.refuse_masked(y_score, owner=owner, name="y_score")
    try:
        scores = np.asarray(y_score, dtype=np.float64)
    except (TypeError, ValueError):
        scores = np.full((0, 0), np.nan)
    if scores.ndim != 1 or not len(scores) or not np.isfinite(scores).all():
        raise ValueError(f"y_score of {owner} must be one column of finite numbers with at least one row.")
    if y_true is not None and len(np.asarray(y_true, dtype=object)) != len(scores):
        raise ValueError(f"y_true and y_score of {owner} have inconsistent lengths.")
    _utils.check_same_index(owner, y_true=y_true, y_score=y_score, sensitive_features=sensitive_features)
    codes, domain = group_codes(sensitive_features, groups, len(scores), owner)
    of_groups = [scores[codes == code] for code in range(len(domain)) if np.any(codes == code)]
    warn_if_vacuous(len(of_groups), owner)
    return of_groups


def coverage_score(y_true: MaybeArray, y_pred: ArrayLike, *, reject_label: Hashable) -> float:
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
    _utils.check_same_index("coverage_score", y_true=y_true, y_pred=y_pred)
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
    _utils.check_same_index("selective_accuracy", y_true=y_true, y_pred=y_pred)
    truth = read_labels(y_true, "y_true", "selective_accuracy")
    predicted = read_labels(y_pred, "y_pred", "selective_accuracy", len(truth))
    kept = ~read_rejected(predicted, reject_label, "selective_accuracy")
    right = _utils.hits(truth[kept], predicted[kept], "selective_accuracy")
    return float(right.mean()) if kept.any() else float("nan")


def rejection_rate_by_group(
    y_true: MaybeArray,
    y_pred: ArrayLike,
    *,
    sensitive_features: Any,
    reject_label: Hashable,
    groups: MaybeValues = None,
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
    _, rejected, codes, domain = _read(y_true, y_pred, sensitive_features, groups, reject_label, owner)
    return fairness.rejection_rates(~rejected, codes, domain)


def gap_bound(
    y_true: MaybeArray,
    y_pred: ArrayLike,
    *,
    sensitive_features: Any,
    constraints: Any = "demographic_parity",
    level: float = 0.95,
    classes: MaybeValues = None,
    groups: MaybeValues = None,
) -> float:
    """Return an upper bound on the gap in the population, at confidence ``level``.

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
    asked, counts = _counted(y_true, y_pred, sensitive_features, constraints, classes, groups, level, "gap_bound")
    return float(fairness.violation_bounds(asked, counts, level=level).max())


def rate_intervals(
    y_true: MaybeArray,
    y_pred: ArrayLike,
    *,
    sensitive_features: Any,
    constraints: Any = "demographic_parity",
    level: float = 0.95,
    classes: MaybeValues = None,
    groups: MaybeValues = None,
) -> pd.DataFrame:
    """Return confidence intervals for the rates of each group in the population, which hold simultaneously.

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
    asked, counts = _counted(y_true, y_pred, sensitive_features, constraints, classes, groups, level, "rate_intervals")
    lower, upper = fairness.rate_bounds(asked, counts, level=level)
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


def _counted(
    y_true: MaybeArray,
    y_pred: ArrayLike,
    sensitive_features: Any,
    constraints: Any,
    classes: MaybeValues,
    groups: MaybeValues,
    level: float,
    owner: str,
) -> tuple[fairness.RateConstraints, Ints]:
    """What is asked, and the counts it is asked of."""
    if not 0.5 < level < 1:
        raise ValueError(f"The 'level' of {owner} must lie between 0.5 and 1. Got {level!r} instead.")
    truth = None if y_true is None else read_labels(y_true, "y_true", owner)
    predicted = read_labels(y_pred, "y_pred", owner, None if truth is None else len(truth))
    if truth is not None:
        _utils.hits(truth, predicted, owner)
    codes, domain = group_codes(sensitive_features, groups, len(predicted), owner)
    if len(domain) < 2:
        raise ValueError(f"{owner} found one group: there is no gap to bound. Give rows of every group.")
    if classes is None:
        labels = _utils.group_domain(predicted if truth is None else np.concatenate([predicted, truth]))
        if len(labels) < 2:
            raise ValueError(f"{owner} found one class: give the possible labels with 'classes'.")
    else:
        labels = _utils.given_domain(classes, owner=owner, parameter="classes")
    asked = fairness.RateConstraints(_without_slack(constraints, owner), domain.tolist(), labels.tolist(), owner)
    if truth is None and asked.needs_labels:
        raise ValueError(f"The constraints of {owner} look at the true labels: pass y_true.")
    how = {"owner": owner, "parameter": "classes"}
    answers = _utils.encode_labels(predicted, labels, name="y_pred", **how)
    truths = answers if truth is None else _utils.encode_labels(truth, labels, name="y_true", **how)
    return asked, asked.tally(codes, truths, answers)


def _without_slack(constraints: Any, owner: str) -> tuple[Any, ...]:
    """Names stand for the difference itself; what has a bound of its own keeps it."""
    given = [constraints] if isinstance(constraints, str) or not isinstance(constraints, list | tuple) else constraints
    return tuple(
        replace(one, difference_bound=0.0) if isinstance(was, str) and isinstance(one, fairness.RateParity) else one
        for was, one in zip(given, fairness.read_rate_constraints(given, owner), strict=True)
    )
