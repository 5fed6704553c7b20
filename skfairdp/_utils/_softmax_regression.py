"""Penalised softmax regression from moments: the problem of students, of estimated groups and of analyses."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

Array = NDArray[np.float64]


def fit_softmax(
    rows: Array,
    moments: Array,
    penalty: Array | float,
    *,
    start: Array,
    weights: Array | float = 1.0,
    offset: Array | float = 0.0,
    constant: float = 0.0,
    **options: Any,
) -> Array:
    r"""Minimise :math:`\sum_i w_i \log\sum_k e^{s_{ik}} - \langle M, \theta \rangle + \frac12 \sum p\,\theta^2`.

    The scores are :math:`s = o + X\theta`. Where the moments are :math:`M = X^\top (w\,t)` of targets t, this is the
    cross-entropy with an L2 penalty; targets outside [0, 1], and moments with noise in them, are as good as any. One
    column of coefficients stands for two classes, of which the first has score 0.
    """
    of_rows = np.reshape(weights, (-1, 1))

    def value_and_slope(flat: Array) -> tuple[float, Array]:
        theta = flat.reshape(start.shape)
        total, proba = _normaliser(offset + rows @ theta)
        value = np.sum(weights * total) - np.sum(moments * theta) + 0.5 * np.sum(penalty * theta**2) + constant
        slope = rows.T @ (of_rows * proba) - moments + penalty * theta
        return float(value), slope.ravel()

    found = minimize(value_and_slope, start.ravel(), jac=True, method="L-BFGS-B", options=options)
    return found.x.reshape(start.shape)


def _normaliser(scores: Array) -> tuple[Array, Array]:
    """Log of the sum of exponentials of each row, and the probabilities of the outputs."""
    if scores.shape[1] == 1:
        return np.logaddexp(0.0, scores[:, 0]), expit(scores)
    top = scores.max(axis=1, keepdims=True)
    powers = np.exp(scores - top)
    sums = powers.sum(axis=1, keepdims=True)
    return (np.log(sums) + top)[:, 0], powers / sums
