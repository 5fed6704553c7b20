"""How far to tilt the label's law against the groups: judged by the best classifier of the released model itself."""

import itertools

import numpy as np
from numpy.typing import NDArray

from skfairdp.generative._backend import FittedModel
from skfairdp.generative._group_rates import tilted_rates

__all__ = ["fair_rates"]

_ROWS_PER_STRATUM = 4000
_TILTS = np.arange(-1.0, 1.01, 0.1)
_SHARPENINGS = np.arange(0.0, 0.61, 0.1)
_ACCURACY_GIVEN = 0.01  # most that may be lost for fairness
_DEMOGRAPHIC_WEIGHT = 1.8  # against equalized odds, which this classifier overstates more than trained ones show


def fair_rates(model: FittedModel, observed: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Law of the label in each group under which a classifier trained on the synthetic rows is least unfair.

    Rows of every stratum are drawn from the model, and the model's own densities give the classifier that an
    unlimited number of synthetic rows without the group would teach, for each tilt and sharpening of
    :func:`tilted_rates`. Of those with at most .01 less accuracy than the overall law in every group, the one with the
    smallest sum of squares of equalized-odds disparity and 1.8 times demographic disparity wins. All three are weighed
    with the released shares of the private rows, not with those that are sampled. Post-processing: no private row is
    read.

    Parameters
    ----------
    model : FittedModel
        With a density; without one the overall law of the label is returned for every group.
    observed : ndarray of shape (n_groups, n_classes)
        Released shares.
    rng : Generator

    Returns
    -------
    ndarray of shape (n_groups, n_classes)
    """
    n_groups, n_classes = observed.shape
    if n_groups < 2 or n_classes < 2:
        return tilted_rates(observed, 0.0)
    drawn = np.repeat(np.arange(n_groups * n_classes), _ROWS_PER_STRATUM)
    values = model.sample(drawn, rng)
    logs = model.log_likelihood(values)
    if logs is None:
        return tilted_rates(observed, 0.0)
    logs = np.exp(logs - logs.max(axis=1, keepdims=True)).reshape(len(values), n_groups, n_classes)
    of_label = observed / np.maximum(observed.sum(axis=1, keepdims=True), 1e-12)
    best, smallest, least = tilted_rates(observed, 0.0), np.inf, -np.inf
    for tilt, sharpening in [(0.0, 0.0), *itertools.product(_TILTS, _SHARPENINGS)]:
        rates = tilted_rates(observed, tilt, sharpening)
        predicted = np.einsum("nsy,sy->ny", logs, rates).argmax(axis=1)
        hits = np.eye(n_classes)[predicted].reshape(n_groups, n_classes, _ROWS_PER_STRATUM, n_classes).mean(axis=2)
        of_truth = np.einsum("syy->sy", hits)
        odds = np.ptp(of_truth, axis=0).max()
        demographic = np.ptp(np.einsum("sy,syk->sk", of_label, hits), axis=0).max()
        unfairness = float(odds**2 + (_DEMOGRAPHIC_WEIGHT * demographic) ** 2)
        accuracy = float((observed * of_truth).sum())
        if least == -np.inf:
            least = accuracy - _ACCURACY_GIVEN
        if accuracy >= least and unfairness < smallest:
            best, smallest = rates, unfairness
    return best
