"""Audits that count: limits of error rates at many thresholds at once, and of the probability of a published bit."""

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import beta as beta_distribution, binom

Array = NDArray[np.float64]
Rates = tuple[float, float]

_SHARES = 10.0 ** -np.arange(0.3, 6.1, 0.2)  # thresholds of the band: 50 %, 32 %, 20 %, ... of a world lie beyond


def clopper_pearson_upper(errors: NDArray[np.int64], n: int, confidence: float) -> Array:
    """Upper limit of an error rate."""
    limit = beta_distribution.ppf(confidence, errors + 1, np.maximum(n - errors, 1))
    return np.where(errors >= n, 1.0, limit)


def rates_epsilon(rates: Iterable[Rates], delta: float) -> float:
    """Lower bound on ε from upper limits of both error rates: the best of all pairs, in both directions."""
    ratio = max(max((1 - delta - fnr) / fpr, (1 - delta - fpr) / fnr) for fpr, fnr in rates)
    return math.log(ratio) if ratio > 1 else 0.0


def rates_mu(rates: Iterable[Rates]) -> float:
    """Lower bound on the μ of a mechanism that is μ-GDP."""
    return max(0.0, *(-float(ndtri(fpr) + ndtri(fnr)) for fpr, fnr in rates))


# ---------------------------------------------------------------- real-valued scores


def rates_of_band(scores_0: Array, scores_1: Array, confidence: float) -> tuple[Rates, ...]:
    """Upper limits of (false-positive, false-negative) rates at many thresholds, that hold all together.

    The thresholds are order statistics, chosen by rank before any score is seen: those that few of world 0 exceed, and
    those that few of world 1 fall below. The share of a world beyond its own order statistic is at most a beta
    variable (exactly so where there are no ties); the other world, independent of it, is counted (Clopper-Pearson).
    No run is set aside to choose a threshold.
    """
    first, second = np.sort(scores_0), np.sort(scores_1)
    n_0, n_1 = len(first), len(second)
    ranks = [sorted({0, *np.rint(_SHARES * n).astype(int).tolist()} - {n}) for n in (n_0, n_1)]
    each = 1 - (1 - confidence) / (2 * sum(map(len, ranks)))
    out = []
    for k in ranks[0]:  # k of world 0 lie above the threshold
        threshold = first[n_0 - 1 - k]
        missed = np.searchsorted(second, threshold, side="right")
        out.append((_tail(k, n_0, each), float(clopper_pearson_upper(missed, n_1, each))))
    for k in ranks[1]:  # k of world 1 lie below
        threshold = second[k]
        false = n_0 - np.searchsorted(first, threshold, side="left")
        out.append((float(clopper_pearson_upper(false, n_0, each)), _tail(k, n_1, each)))
    return tuple(out)


def _tail(k: int, n: int, confidence: float) -> float:
    return float(beta_distribution.ppf(confidence, k + 1, n - k))


# ---------------------------------------------------------------- bits


def bits_delta(epsilon: float, low: float, high: float, n_queries: int) -> float:
    """δ at ε of so many independent bits, each 1 with probability ``low`` in one world and ``high`` in the other."""
    k = np.arange(n_queries + 1)
    first, second = binom.logpmf(k, n_queries, low), binom.logpmf(k, n_queries, high)
    found = 0.0
    for up, down in ((second, first), (first, second)):
        more = up > down + epsilon
        found = max(found, float(-np.sum(np.exp(up[more]) * np.expm1(down[more] + epsilon - up[more]))))
    return found


def bits_epsilon(low: float, high: float, n_queries: int, delta: float) -> float:
    """The largest ε at which these bits give away more than δ, rounded down."""
    if high <= low or bits_delta(0.0, low, high, n_queries) <= delta:
        return 0.0
    least, most = 0.0, 1.0
    while bits_delta(most, low, high, n_queries) > delta:
        least, most = most, 2 * most
        if most > 1e4:
            return math.inf
    while most - least > 1e-9 * most:
        middle = (least + most) / 2
        if bits_delta(middle, low, high, n_queries) > delta:
            least = middle
        else:
            most = middle
    return least


def bits_mu(low: float, high: float, n_queries: int) -> float:
    """Lower bound on the μ of a μ-GDP mechanism that answers so: the best threshold on the number of ones."""
    if high <= low:
        return 0.0
    k = np.arange(1, n_queries + 1)
    fpr, fnr = binom.sf(k - 1, n_queries, low), binom.cdf(k - 1, n_queries, high)
    known = (fpr > 1e-300) & (fnr > 1e-300)
    return max(0.0, float(np.max(-(ndtri(fpr[known]) + ndtri(fnr[known])), initial=0.0)))
