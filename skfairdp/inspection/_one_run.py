"""A privacy audit from a single run: many canaries at once, each in or out by a coin (Steinke et al. 2023)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from skfairdp._docs import shared_docs
from skfairdp._typing import ArrayLike

Array = NDArray[np.float64]

# Shares of the canaries to guess on where the caller names none: few sure guesses pay at large ε, many at small ε.
_SHARES = (0.05, 0.3)


@dataclass(frozen=True)
class OneRunAuditResult:
    """What one run gave away. A lower bound refutes a claimed guarantee; it never certifies one."""

    epsilon_lower: float
    delta: float
    confidence: float
    n_canaries: int
    n_guesses: int
    n_correct: int

    def refutes(self, epsilon: float) -> bool:
        """Whether a claim of at most (ε, ``delta``) is refuted at the audit's confidence."""
        return self.epsilon_lower > epsilon


@shared_docs
def audit_one_run(
    scores: ArrayLike,
    included: ArrayLike,
    *,
    delta: float,
    confidence: float = 0.95,
    n_guesses: int | Sequence[int] | None = None,
) -> OneRunAuditResult:
    """Audit any mechanism from one run, by guessing which of many canaries it had seen.

    **Guarantee.** Where the mechanism is (ε, δ)-differentially private for adding or removing one record, the bound
    exceeds ε with probability at most ``1 - confidence``, whatever the scores: nothing is assumed of the noise, and the
    canaries need not be independent of each other inside the mechanism. It holds for ``included`` drawn by independent
    fair coins after the canaries were fixed, and for scores that were computed from the mechanism's output without
    knowledge of the coins.

    The canaries with the highest scores are guessed to be in, as many with the lowest to be out, and the rest is left
    open. Of r guesses on m canaries no more than v are right except with probability ``f(v) + 2 m δ max_i (f(v - i) -
    f(v)) / i``, where ``f(v) = P[Bin(r, e^ε / (1 + e^ε)) >= v]``; the bound is the smallest ε that this leaves
    possible. (Steinke, Nasr and Jagielski 2023, "Privacy auditing with one (1) training run", Theorem 5.2.) It is far
    below the true ε where that is large: use it as a smoke test of a whole training,
    :func:`audit_one_run_f_dp` and :func:`audit_one_run_gaussian` where more is known of the noise, and
    :func:`audit_matched_filter` where a training can be repeated.

    Parameters
    ----------
    {canaries_of_one_run}
    delta : float
        The δ of the guarantee under audit, in [0, 1).
    confidence : float, default=0.95
        Of the limit, in (0, 1).
    n_guesses : int or sequence of int, default=None
        How many canaries to guess on, **chosen before the scores are seen**. Of several numbers the best counts, and
        they share the risk of error equally. None takes 5 and 30 percent of the canaries.

    Returns
    -------
    OneRunAuditResult
        With the lower bound on ε.

    {notes_of_one_run}
    For a guarantee under *replacing* a record, let the coin choose between two canaries.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.inspection import audit_one_run
    >>> rng = np.random.default_rng(0)
    >>> included = rng.random(1000) < 0.5
    >>> scores = included + rng.normal(size=1000)  # one Gaussian release: μ = 1, or (4.377, 1e-5)
    >>> result = audit_one_run(scores, included, delta=1e-5)
    >>> 0.5 < result.epsilon_lower < 4.377
    True
    >>> result.refutes(0.5)
    True
    """
    values, coins = _checked(scores, included)
    _check_shares(delta, confidence)
    m = len(values)
    numbers = _numbers_of_guesses(n_guesses, m)
    risk = (1 - confidence) / len(numbers)
    order = np.argsort(values, kind="stable")
    found = []
    for r in numbers:
        lowest, highest = order[: r // 2], order[m - (r - r // 2) :]
        v = int((~coins[lowest]).sum() + coins[highest].sum())
        found.append((_epsilon_lower(m, r, v, delta, risk), r, v))
    epsilon, r, v = max(found, key=lambda bound: bound[0])
    return OneRunAuditResult(epsilon, delta, confidence, m, r, v)


def _check_shares(delta: float, confidence: float) -> None:
    if not 0 <= delta < 1:
        raise ValueError(f"delta must be a float in the range [0.0, 1.0). Got {delta!r} instead.")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be a float in the range (0.0, 1.0). Got {confidence!r} instead.")


def _checked(scores: ArrayLike, included: ArrayLike) -> tuple[Array, NDArray[np.bool_]]:
    values, coins = np.asarray(scores, dtype=float), np.asarray(included)
    if values.ndim != 1 or len(values) == 0 or not np.isfinite(values).all():
        raise ValueError(f"scores must be a finite array of shape (n_canaries,). Got shape {values.shape} instead.")
    if coins.shape != values.shape:
        raise ValueError(
            f"included must have the shape of scores, {values.shape}: one boolean for each canary. "
            f"Got shape {coins.shape} instead."
        )
    if coins.dtype != bool and not (np.issubdtype(coins.dtype, np.number) and np.isin(coins, (0, 1)).all()):
        raise ValueError("included must hold booleans, or the numbers 0 and 1.")
    return values, coins.astype(bool)


def _numbers_of_guesses(n_guesses: int | Sequence[int] | None, m: int, shares: Sequence[float] = _SHARES) -> list[int]:
    if n_guesses is None:
        return sorted({max(1, round(share * m)) for share in shares})
    numbers: list[Any] = [n_guesses] if np.ndim(n_guesses) == 0 else list(cast(Sequence[int], n_guesses))
    if not numbers or not all(_is_integer(r) and 1 <= r <= m for r in numbers):
        raise ValueError(
            f"n_guesses must be an integer between 1 and the number of canaries, {m}, or a sequence of such integers. "
            f"Got {n_guesses!r} instead."
        )
    return sorted({int(r) for r in numbers})


def _is_integer(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _epsilon_lower(m: int, r: int, v: int, delta: float, risk: float) -> float:
    """The largest ε up to which v right guesses of r have a probability of at most ``risk``, rounded down."""
    goal = math.log(risk)
    if _log_probability(m, r, v, delta, 0.0) > goal:
        return 0.0
    low, high = 0.0, 1.0
    while _log_probability(m, r, v, delta, high) <= goal:
        low, high = high, 2 * high
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        if _log_probability(m, r, v, delta, middle) <= goal:
            low = middle
        else:
            high = middle
    return low


def _log_probability(m: int, r: int, v: int, delta: float, epsilon: float) -> float:
    """Logarithm of the theorem's bound on the probability of at least v right guesses, for v <= r <= m.

    In logarithms, because q = e^ε / (1 + e^ε) is 1 in floating point from ε = 37 on. The maximum over i stops at v:
    beyond it f(v - i) is 1 and only the divisor grows.
    """
    if v == 0:
        return 0.0
    k = np.arange(r + 1)
    log_pmf = gammaln(r + 1) - gammaln(k + 1) - gammaln(r - k + 1)
    log_pmf += -k * np.logaddexp(0, -epsilon) - (r - k) * np.logaddexp(0, epsilon)
    log_tail = float(logsumexp(log_pmf[v:]))
    if delta == 0:
        return log_tail
    below = np.logaddexp.accumulate(log_pmf[v - 1 :: -1]) - np.log(np.arange(1, v + 1))
    return float(np.logaddexp(log_tail, math.log(2 * m * delta) + below.max()))
