"""The fairness bounds of the SF-PATE paper as figures: for the curator's eyes."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from skfairdp._typing import ArrayLike

Array = NDArray[np.float64]


@dataclass(frozen=True)
class SFPATEBounds:
    """Bounds on the unfairness of an outcome, computed from true groups: not private, never publish.

    :func:`sfpate_bounds` returns it. A fairness function h takes values in [0, bound]; unfairness is the largest
    distance of the mean of h in a group from its mean over all rows.

    Attributes
    ----------
    eta : float
        Largest distance between the probabilities of true and of released groups, given features and label.
    theorem_1 : float
        ``eta · bound / min_a min(P(Ã = a), P(A = a)) + alpha``: the unfairness for the true groups of a model whose
        unfairness for the released ones is ``alpha``.
    theorem_1_shares : float
        The same with ``min_a P(A = a) - eta`` below the line, which asks for no share of released groups; inf unless
        every share exceeds ``eta``.
    corollary_1 : float or None
        Theorem 1 for randomised response at the ``epsilon`` given, whose eta is ``(m - 1) / (e^ε + m - 1)``.
    theorem_2 : float or None
        ``bound`` times the largest total variation distance between the votes (with the label) of a group and of all
        rows, where votes were given: the unfairness of the vote itself.
    private : bool
        False.
    """

    eta: float
    theorem_1: float
    theorem_1_shares: float
    corollary_1: float | None = None
    theorem_2: float | None = None
    private: ClassVar[bool] = False


def sfpate_bounds(
    group_probabilities: ArrayLike,
    released_probabilities: ArrayLike,
    *,
    alpha: float = 0.0,
    bound: float = 1.0,
    epsilon: float | None = None,
    votes: ArrayLike | None = None,
    y: ArrayLike | None = None,
) -> SFPATEBounds:
    """Compute Theorems 1 and 2 and Corollary 1 of Tran et al. (2022) on a set of rows.

    **No guarantee**: they read true groups and raw votes. ``SFPATEClassifier`` has no attribute that holds them.

    Parameters
    ----------
    group_probabilities : array-like of shape (n_rows, n_groups)
        P(A = a | x, y) of each row. A table of 0 and 1, the true groups, speaks of these rows as the whole population;
        as every row then counts alone, the bounds say little.
    released_probabilities : array-like of shape (n_rows, n_groups)
        P(Ã = a | x, y): how likely each group is to be released for a row.
    alpha : float, default=0.0
        Unfairness of the model for the released groups.
    bound : float, default=1.0
        Largest value B of h; h is at least 0.
    epsilon : float or None, default=None
        Of randomised response, for Corollary 1.
    votes : array-like of int of shape (n_rows, n_classes), default=None
        Raw vote counts of fair teachers ("teacher" variant), for Theorem 2. The noisy winner depends on the teachers
        through these counts only, so their distance serves and is the smaller one.
    y : array-like of shape (n_rows,), default=None
        Labels, with ``votes``. None: h does not read them.

    Returns
    -------
    SFPATEBounds
        The figures; not to be published.

    Raises
    ------
    ValueError
        Tables that are no probabilities or do not fit together, negative ``alpha``, ``bound`` or ``epsilon``.

    Examples
    --------
    >>> from skfairdp.papers import sfpate_bounds
    >>> truth, released = [[0.9, 0.1], [0.2, 0.8]], [[0.8, 0.2], [0.3, 0.7]]
    >>> found = sfpate_bounds(truth, released, alpha=0.01, epsilon=1.0)
    >>> round(found.eta, 3), round(found.theorem_1, 3), found.private
    (0.1, 0.232, False)
    """
    truth, released = _probabilities(group_probabilities, "group"), _probabilities(released_probabilities, "released")
    if truth.shape != released.shape:
        raise ValueError(
            f"group_probabilities and released_probabilities of sfpate_bounds must have one shape. Got {truth.shape} "
            f"and {released.shape}."
        )
    for name, value in (("alpha", alpha), ("bound", bound), ("epsilon", 0.0 if epsilon is None else epsilon)):
        if not value >= 0:
            raise ValueError(f"The '{name}' parameter of sfpate_bounds must be at least 0. Got {value!r} instead.")
    eta = float(np.abs(truth - released).max())
    shares = truth.mean(axis=0)
    corollary_1 = None
    if epsilon is not None:
        m = truth.shape[1]
        lie = 1 / (math.exp(epsilon) + m - 1)
        corollary_1 = _theorem_1((m - 1) * lie, bound, shares, shares * (1 - m * lie) + lie, alpha)
    least = float(shares.min()) - eta
    return SFPATEBounds(
        eta=eta,
        theorem_1=_theorem_1(eta, bound, shares, released.mean(axis=0), alpha),
        theorem_1_shares=eta * bound / least + alpha if least > 0 else math.inf,
        corollary_1=corollary_1,
        theorem_2=None if votes is None else bound * _variation(votes, y, truth),
    )


def _theorem_1(eta: float, bound: float, shares: Array, released: Array, alpha: float) -> float:
    least = float(np.minimum(shares, released).min())
    if least <= 0:
        return math.inf
    return eta * bound / least + alpha


def _variation(votes: ArrayLike, y: ArrayLike | None, truth: Array) -> float:
    """Largest total variation distance between (votes, label) in a group and in all rows."""
    counts = np.asarray(votes)
    if counts.ndim != 2 or len(counts) != len(truth):
        raise ValueError("votes of sfpate_bounds must have one row of counts for each row of group_probabilities.")
    labels = np.zeros(len(truth)) if y is None else np.unique(np.asarray(y), return_inverse=True)[1].ravel()
    if len(labels) != len(truth):
        raise ValueError("y of sfpate_bounds must have one label for each row of group_probabilities.")
    value = np.unique(np.column_stack([counts, labels]), axis=0, return_inverse=True)[1].ravel()
    overall = np.bincount(value) / len(value)
    distances = [
        0.5 * np.abs(np.bincount(value, weights=column) / column.sum() - overall).sum()
        for column in truth.T
        if column.sum() > 0
    ]
    return float(max(distances))


def _probabilities(table: ArrayLike, name: str) -> Array:
    try:
        array = np.asarray(table, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.full((0, 0), np.nan)
    good = array.ndim == 2 and array.size > 0 and array.shape[1] >= 2 and bool((array >= -1e-9).all())
    if not good or not np.allclose(array.sum(axis=1), 1.0):
        raise ValueError(
            f"{name}_probabilities of sfpate_bounds must be a table (n_rows, n_groups) of probabilities that sum to 1 "
            "in every row, with at least two groups."
        )
    return array
