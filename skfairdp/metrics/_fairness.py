"""Disparities between groups, over the rows that were answered."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfairdp._docs import shared_docs
from skfairdp._typing import ArrayLike
from skfairdp._utils import check_same_index, encode_labels, given_domain, group_domain
from skfairdp.fairness import largest_disparity, tally
from skfairdp.metrics._rows import group_codes, read_labels, read_rejected, warn_if_vacuous


def demographic_disparity(
    y_true: ArrayLike | None,
    y_pred: ArrayLike,
    *,
    sensitive_features: Any,
    gap: str = "others",
    classes: Sequence[Hashable] | None = None,
    groups: Sequence[Hashable] | None = None,
    reject_label: Hashable | None = None,
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
    labels = group_domain(answered) if classes is None else given_domain(classes, owner=owner, parameter="classes")
    columns = encode_labels(answered, labels, owner=owner, name="y_pred", parameter="classes")
    counts = tally(codes[~rejected], columns, (len(domain), max(len(labels), 1)))
    warn_if_vacuous(int(np.count_nonzero(counts.sum(axis=1))), owner)
    return largest_disparity(counts, gap)


@shared_docs
def equalized_odds_disparity(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    sensitive_features: Any,
    groups: Sequence[Hashable] | None = None,
    reject_label: Hashable | None = None,
) -> float:
    """Return max over labels y and groups s, t of |P(ŷ = y | y, s) - P(ŷ = y | y, t)| over the answered rows.

    For two classes this is the larger of the differences in true and in false positive rates.

    Parameters
    ----------
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
    cells = encode_labels(truth, group_domain(truth), owner=owner, name="y_true", parameter="y_true")
    return _largest_difference(truth == predicted, codes, cells, ~rejected, len(domain), owner)


@shared_docs
def accuracy_disparity(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    sensitive_features: Any,
    groups: Sequence[Hashable] | None = None,
    reject_label: Hashable | None = None,
) -> float:
    """Return the largest difference in accuracy between two groups over the answered rows.

    Parameters
    ----------
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
    return _largest_difference(truth == predicted, codes, one_cell, ~rejected, len(domain), owner)


def _read(
    y_true: ArrayLike | None,
    y_pred: ArrayLike,
    sensitive_features: Any,
    groups: Sequence[Hashable] | None,
    reject_label: Hashable | None,
    owner: str,
) -> tuple[NDArray[np.object_], NDArray[np.bool_], NDArray[np.int64], NDArray[np.object_]]:
    """Return predictions, which of them are refusals, group codes and groups."""
    check_same_index(owner, y_true=y_true, y_pred=y_pred, sensitive_features=sensitive_features)
    n_rows = None if y_true is None else len(read_labels(y_true, "y_true", owner))
    predicted = read_labels(y_pred, "y_pred", owner, n_rows)
    codes, domain = group_codes(sensitive_features, groups, len(predicted), owner)
    return predicted, read_rejected(predicted, reject_label, owner), codes, domain


def _largest_difference(
    hit: NDArray[Any],
    codes: NDArray[np.int64],
    cells: NDArray[np.int64],
    kept: NDArray[np.bool_],
    n_groups: int,
    owner: str,
) -> float:
    """Return the largest difference between two groups' mean of ``hit`` within one cell."""
    shape = (int(cells.max()) + 1, n_groups)
    right = kept & hit.astype(bool)
    rows, hits = tally(cells[kept], codes[kept], shape), tally(cells[right], codes[right], shape)
    compared = [h[r > 0] / r[r > 0] for h, r in zip(hits, rows, strict=True)]
    warn_if_vacuous(max(len(rates) for rates in compared), owner)
    return max(float(np.ptp(rates)) if len(rates) else 0.0 for rates in compared)
