"""How far released tables may be believed: columns that say the same count twice in them, and votes tell how much."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfairdp._teachers import fit_teachers, position_partition, vote_histogram

Array = NDArray[np.float64]

TEACHERS = 60
MOST_ROWS = 2000  # of a teacher; one of more rows learns what its rows say, and is as sure as they are
STEEPEST = 8.0
#: Below it votes on rows of the tables hardly follow the tables: then nothing can be told by them.
FLATTEST = 0.05
LEAST = 0.1
#: Variances of the power by which it is drawn to 1, as James and Stein do: tables that are right stay as they are.
CAUTION = 1.0
SMALLEST_SHARE = 1e-5


def temperature_scaled(told: Array, queries: NDArray[np.int64], shares: Array, rehearsed: Array) -> Array:
    """Labels that tables tell of rows, as sure as the votes on those rows confirm.

    Tables of single columns know nothing of how columns go together, and sum up what each of them says: two that say
    the same make a row look twice as certain. Teachers see whole rows. How steeply their released shares follow what
    the tables say, beside how steeply those of teachers follow it that learn from rows of the tables themselves, is how
    much of it is right. Post-processing of released values.
    """
    logs = np.log(np.maximum(told, SMALLEST_SHARE))
    if_right, its_error = _steepness(logs[queries], rehearsed)
    if if_right < FLATTEST:
        return told
    found, error = _steepness(logs[queries], shares)
    excess = 1 - max(found / if_right, LEAST)
    variance = (error**2 + (1 - excess) ** 2 * its_error**2) / if_right**2
    if excess <= 0 or excess**2 <= CAUTION * variance:
        return told
    return _with_rates((1 - excess * (1 - CAUTION * variance / excess**2)) * logs, told.mean(axis=0))


def rehearsed_votes(
    teacher: Any, X: Array, told: Array, queries: NDArray[np.int64], *, n_rows: int, n_teachers: int, rng: Any
) -> Array:
    """Shares of the votes of teachers on rows that the tables have made, labels included."""
    n_classes, n_here = told.shape[1], min(n_teachers, TEACHERS)
    rows = rng.integers(len(X), size=n_here * min(max(n_rows // n_teachers, 1), MOST_ROWS))
    labels = (rng.random(len(rows))[:, None] > told[rows].cumsum(axis=1)[:, :-1]).sum(axis=1)
    parts = position_partition(len(rows), n_here, random_state=rng)
    teachers = fit_teachers(teacher, X[rows], labels, parts, n_teachers=n_here, n_classes=n_classes, random_state=rng)
    return vote_histogram(teachers.predict(X[queries]), n_classes) / n_here


def _steepness(logs: Array, shares: Array) -> tuple[float, float]:
    """The power to which the tables' shares, at the rates of these, expect the scores that these have; its error."""
    rates = np.maximum(shares.mean(axis=0), 1e-3)
    rates /= rates.sum()
    low, high = 0.0, STEEPEST
    for _ in range(20):
        power = (low + high) / 2
        expected = _with_rates(power * logs, rates)
        apart = (logs * (shares - expected)).sum(axis=1)
        low, high = (power, high) if float(apart.sum()) > 0 else (low, power)
    spread = (expected * np.square(logs - (expected * logs).sum(axis=1, keepdims=True))).sum(axis=1)
    return power, float(apart.std() / max(float(spread.mean()), 1e-12)) / np.sqrt(len(logs))


def _with_rates(scores: Array, rates: Array) -> Array:
    """Shares that follow from scores, each column moved so that it has that mean."""
    # A class is a contiguous row here: sums over the few classes of each of many rows take longer.
    shares = np.ascontiguousarray(np.exp(scores - scores.max(axis=1, keepdims=True)).T)
    for _ in range(60):
        before = shares.copy()
        shares /= shares.sum(axis=0)
        means = shares.cumsum(axis=1)[:, -1] / shares.shape[1]  # added in the order of the rows, as a table's columns
        shares *= (rates / np.maximum(means, 1e-300))[:, None]
        if np.array_equal(shares, before):  # and so it would stay
            break
    return np.ascontiguousarray((shares / shares.sum(axis=0)).T)
