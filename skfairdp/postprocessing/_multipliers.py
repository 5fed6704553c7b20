"""Re-thresholding by Lagrange multipliers: the corrections that lower the gap at the least expected cost."""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skfairdp.fairness import disparities, largest_disparity
from skfairdp.postprocessing._thresholding import Choice, count_table

__all__ = ["contrast", "fit_group_estimator", "group_probabilities", "own_threshold", "search_multipliers"]

Array = NDArray[np.float64]

_LEVELS = 10
_STEPS = 40


def contrast(membership: Array, shares: Array) -> Array:
    """Return how much an answer to each row moves Γ(z, ·), times the number of rows; shape (n_rows, n_groups).

    Parameters
    ----------
    membership : ndarray of shape (n_rows, n_groups)
        Probability of each group: 0 or 1 where the group is known.
    shares : ndarray of shape (n_groups,)
        Share of each group among the public rows; each in (0, 1).
    """
    return membership / shares - (1 - membership) / (1 - shares)


def search_multipliers(choice: Choice, contrasts: Array) -> Array:
    """Return multipliers of shape (n_groups, n_classes); zeros where nothing is better than no change.

    The best classifier under parity constraints Γ(z, k) <= t answers ``argmax_k utility_k - Σ_z μ_zk contrast_z`` for
    some μ >= 0. μ is found by dual ascent on the disparities measured on the public rows, while t goes down from the
    present gap to 0 (with ``gamma``, until it is met); every iterate is offered to ``choice``.

    Parameters
    ----------
    choice : Choice
    contrasts : ndarray of shape (n_rows, n_groups)
    """
    shares = np.bincount(choice.groups, minlength=choice.shape[0]) / len(choice.groups)
    rate = 0.4 * (shares * (1 - shares))[:, None]  # a step then moves scores alike for groups of any size
    multipliers = np.zeros(choice.shape)
    best = multipliers
    for target in _targets(choice.gap_before, choice.gamma):
        if choice.is_settled():
            break
        for t in range(_STEPS):
            codes = (choice.utility - contrasts @ multipliers).argmax(axis=1)
            table = count_table(choice.groups, codes, choice.shape)
            disparity = disparities(table)
            gap = float(disparity.max()) if choice.gap == "others" else largest_disparity(table, choice.gap)
            if multipliers.any() and choice.keep(codes, gap):
                best = multipliers
            multipliers = np.maximum(0.0, multipliers + rate / np.sqrt(1 + t) * (disparity - target))
    return best


def _targets(gap: float, gamma: float | None) -> Array:
    if gamma is None or gamma >= gap:
        return np.linspace(gap, 0.0, _LEVELS + 1)[1:]
    return np.concatenate([np.linspace(gap, gamma, _LEVELS + 1)[1:], np.linspace(gamma, 0.0, _LEVELS + 1)[1:]])


def own_threshold(utility: Array, before: NDArray[np.int64]) -> Array:
    """Return what to add to the probabilities so that the largest is what a two-class model predicts.

    A model may have a threshold of its own (``TunedThresholdClassifierCV``); it is kept, and moved from there.
    """
    shift = np.zeros(utility.shape[1])
    if len(shift) == 2 and 0 < before.sum() < len(before) and (utility.argmax(axis=1) != before).any():
        difference = utility[:, 1] - utility[:, 0]
        shift[1] = -(difference[before == 0].max() + difference[before == 1].min()) / 2
    return shift


def fit_group_estimator(estimator: Any, X: Any, groups: NDArray[np.int64], *, owner: str) -> Any:
    """Return a clone fitted to give the probability of each group; None: a logistic regression.

    Raises
    ------
    ValueError
        The logistic regression cannot read the features.
    """
    if estimator is not None:
        return clone(estimator).fit(X, groups)
    try:
        return _logistic_regression(X).fit(X, groups)
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"{owner} cannot estimate the group from these features by logistic regression ({error}). Give a "
            "classifier that reads them with the 'group_estimator' parameter, or use group_at_prediction=True."
        ) from error


def group_probabilities(estimator: Any, X: Any, n_groups: int, *, owner: str) -> Array:
    """Return the probability of each group, shape (n_rows, n_groups), or raise a ValueError."""
    found = np.asarray(estimator.predict_proba(X), dtype=float)
    if found.ndim != 2 or found.shape[1] != n_groups or not np.isfinite(found).all():
        raise ValueError(
            f"The 'group_estimator' of {owner} must give one probability for each of the {n_groups} groups, all "
            f"finite. Got an array of shape {found.shape}."
        )
    return found


def _logistic_regression(X: Any) -> Pipeline:
    """Return a regularised logistic regression on tables of numbers, and of names where X is a frame."""
    numeric = make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler(with_mean=not issparse(X)))
    encoder: Any = numeric
    if isinstance(X, pd.DataFrame):
        numbers = make_column_selector(dtype_include=["number", "bool"])
        names = make_column_selector(dtype_exclude=["number", "bool"])
        one_hot = OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=10)
        encoder = make_column_transformer((numeric, numbers), (one_hot, names))
    return make_pipeline(encoder, LogisticRegression(C=0.1, max_iter=1000))
