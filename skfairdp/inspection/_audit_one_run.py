"""Sharper audits from one run: each assumes more of the mechanism than ``audit_one_run``, says what, proves more."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp, ndtr, ndtri

from skfairdp._docs import shared_docs
from skfairdp._typing import ArrayLike
from skfairdp.inspection._audit import AuditResult, audit_matched_filter
from skfairdp.privacy import gdp_epsilon

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


_CURVES = ("gdp", "epsilon_delta")
_UP = 1 + 1e-9  # above the rounding errors of a recursion of a few thousand steps
_GRID = 33  # values of the parameter that one pass of the recursion tries at once


@dataclass(frozen=True)
class TradeOffAuditResult(OneRunAuditResult):
    """What one run gave away under a family of trade-off curves. It refutes claims; it never certifies one."""

    curve: str = field(kw_only=True)
    parameter_lower: float = field(kw_only=True)


@shared_docs
def audit_one_run_f_dp(
    scores: ArrayLike,
    included: ArrayLike,
    *,
    delta: float,
    curve: str = "gdp",
    confidence: float = 0.95,
    n_guesses: int | Sequence[int] | None = None,
) -> TradeOffAuditResult:
    """Audit a mechanism that claims a whole trade-off curve, by guessing which of many canaries one run had seen.

    **Guarantee.** Where the mechanism is μ-GDP (``curve="gdp"``) or (ε, δ)-private (``curve="epsilon_delta"``) for
    adding or removing one record, ``parameter_lower`` exceeds that μ or ε with probability at most ``1 - confidence``.
    Nothing is assumed of the scores, and canaries may disturb each other. ``epsilon_lower`` of ``"gdp"`` is the ε of
    ``parameter_lower``: it refutes claims that were computed from a Gaussian trade-off, such as those of Gaussian
    noise, and no others. Coins and scores are as in :func:`audit_one_run`.

    If each record is protected by the trade-off f, and j of the r guesses on m canaries are right with probability
    ``p_j``, then ``Σ_{j≥c} j p_j / m <= 1 - f(Σ_{j≥c-1} (r - j) p_j / m)`` for all c (Mahloujifar, Melis and Chaudhuri
    2025, "Auditing f-differential privacy in one run"). These inequalities bound the probability of at least so many
    right guesses; the bound is the largest parameter whose curve makes them less likely than ``1 - confidence``.

    Parameters
    ----------
    {canaries_of_one_run}
    delta : float
        In (0, 1) for ``"gdp"``, in [0, 1) for ``"epsilon_delta"``.
    curve : {"gdp", "epsilon_delta"}, default="gdp"
        ``"epsilon_delta"`` assumes no more than :func:`audit_one_run` does, and loses less to δ.
    confidence : float, default=0.95
    n_guesses : int or sequence of int, default=None
        How many canaries to guess on, **chosen before the scores are seen**. Of several numbers the best counts, and
        they share the risk of error equally. None takes 2 and 10 percent of the canaries for ``"gdp"``, 5 and 30
        percent for ``"epsilon_delta"``.

    Returns
    -------
    TradeOffAuditResult

    {notes_of_one_run}

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.inspection import audit_one_run, audit_one_run_f_dp
    >>> rng = np.random.default_rng(0)
    >>> included = rng.random(5000) < 0.5
    >>> scores = included + rng.normal(size=5000)  # one Gaussian release: μ = 1, or (4.377, 1e-5)
    >>> found = audit_one_run_f_dp(scores, included, delta=1e-5)
    >>> 0.5 * 4.377 < found.epsilon_lower < 4.377
    True
    >>> found.epsilon_lower > audit_one_run(scores, included, delta=1e-5).epsilon_lower
    True
    """
    values, coins = _checked(scores, included)
    _check_shares(delta, confidence)
    if curve not in _CURVES:
        raise ValueError(f"curve must be 'gdp' or 'epsilon_delta'. Got {curve!r} instead.")
    if curve == "gdp" and delta == 0:
        raise ValueError("delta must be a float in the range (0.0, 1.0) for curve='gdp'. Got 0 instead.")
    m = len(values)
    shares = (0.02, 0.1) if curve == "gdp" else (0.05, 0.3)
    numbers = _numbers_of_guesses(n_guesses, m, shares)
    risk = (1 - confidence) / len(numbers)
    order = np.argsort(values, kind="stable")
    found = []
    for r in numbers:
        lowest, highest = order[: r // 2], order[m - (r - r // 2) :]
        c = int((~coins[lowest]).sum() + coins[highest].sum())
        found.append((_parameter_lower(_needed(curve, delta), m, r, c, risk), r, c))
    parameter, r, c = max(found, key=lambda bound: bound[0])
    epsilon = gdp_epsilon(parameter, delta) if curve == "gdp" else parameter
    return TradeOffAuditResult(epsilon, delta, confidence, m, r, c, curve=curve, parameter_lower=parameter)


def audit_one_run_gaussian(scores: ArrayLike, included: ArrayLike, *, confidence: float = 0.95) -> AuditResult:
    """Audit Gaussian noise from one run, by how far canaries that were in lie from canaries that were not.

    **Guarantee.** ``mu_lower`` exceeds the mechanism's μ with probability at most ``1 - confidence``, *if* the scores
    are independent and Gaussian with one variance, with one mean for canaries that were in and another for the rest.
    That is so for a white box: a canary's score is what the releases say along its own gradient, summed over the steps;
    the noise is Gaussian, the canaries' gradients are orthogonal to each other and to all other rows. It is so in the
    limit of many steps where a canary is in each batch by chance (Agrawal et al. 2026, "Let's ask Gauss"), and there it
    says nothing of the far tail, where a small δ lies. Nothing is known of scale and means: the limits are those of the
    noncentral t distribution, exact for any number of canaries.

    Parameters
    ----------
    scores : array-like of shape (n_canaries,) or (n_canaries, n_steps)
        Larger scores speak for the canary being in. Steps are summed: give each in units of its noise.
    included : array-like of bool of shape (n_canaries,)
        Which canaries were in.
    confidence : float, default=0.95
        Of each one-sided limit.

    Returns
    -------
    AuditResult
        ``n_runs`` holds the numbers of canaries that were out and in.

    Raises
    ------
    ValueError
        Scores not finite, ``included`` of another length or not of booleans, fewer than 2 canaries in or out, or a
        confidence out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.inspection import audit_one_run_gaussian
    >>> rng = np.random.default_rng(1)
    >>> included = rng.random(2000) < 0.5
    >>> steps = 0.25 * included[:, None] + rng.normal(size=(2000, 16))  # 16 steps of μ = 0.25: together 1
    >>> result = audit_one_run_gaussian(steps, included)
    >>> 0.9 * 4.377 < result.epsilon_lower(1e-5) < 4.377  # the exact ε of μ = 1
    True
    """
    values = np.asarray(scores, dtype=float)
    if values.ndim == 2 and values.shape[1] > 0:
        values = values.sum(axis=1)
    values, coins = _checked(values, included)
    return audit_matched_filter(values[~coins], values[coins], confidence=confidence)


# ---------------------------------------------------------------- the recursion


def _needed(curve: str, delta: float) -> Callable[[Array, Array], Array]:
    """Return the smallest error rate that a trade-off leaves beside a power, as a function of power and parameter."""
    if curve == "gdp":
        return lambda power, mu: ndtr(ndtri(power) - mu)
    return lambda power, epsilon: np.maximum(
        np.exp(-epsilon) * (power - delta), 1 - delta - np.exp(np.minimum(epsilon, 700.0)) * (1 - power)
    ).clip(min=0.0)


def _parameter_lower(needed: Callable[[Array, Array], Array], m: int, r: int, c: int, risk: float) -> float:
    """The largest parameter at which c right guesses of r are less likely than ``risk``, rounded down."""
    if not _refuted(needed, np.zeros(1), m, r, c, risk)[0]:
        return 0.0
    low, high = 0.0, 1.0
    while _refuted(needed, np.array([high]), m, r, c, risk)[0]:
        low, high = high, 2 * high
    while high - low > 1e-7 * high:
        grid = np.linspace(low, high, _GRID)
        first = int(np.argmin([*_refuted(needed, grid[1:-1], m, r, c, risk).tolist(), False]))
        low, high = float(grid[first]), float(grid[first + 1])
    return low


def _refuted(
    needed: Callable[[Array, Array], Array], parameters: Array, m: int, r: int, c: int, risk: float
) -> NDArray[np.bool_]:
    """Whether at least c right guesses of r have a probability below ``risk``, for each parameter.

    Write R_j for ``Σ_{l≥j} l p_l / m`` and H_j for ``Σ_{l≥j} (r - l) p_l / m``. The theorem asks that ``H_{j-1} >=
    needed(R_j)``, and all probabilities together make ``R_0 + H_0 = r / m``. Suppose that c or more are right with
    probability ``risk``. The least R_0 + H_0 arises where all of that lies at c itself and each H is as small as the
    theorem lets it be: moving probability up from there, or adding some, changes (R_j, H_j) by a direction (a, b) with
    ``-a <= b <= a (r - j) / j``; each step maps such directions into such, and they never lower the sum. Where even the
    least is more than r / m, the supposition is false.
    """
    right = np.full(len(parameters), risk * c / m)
    wrong = np.full(len(parameters), risk * (r - c) / m)
    for j in range(c - 1, -1, -1):
        more = np.maximum(needed(np.minimum(right, 1.0), parameters), wrong)
        right = right + j / (r - j) * (more - wrong)
        wrong = more
        if np.all(right + wrong > r / m * _UP):
            break
    return np.asarray(right + wrong > r / m * _UP)
