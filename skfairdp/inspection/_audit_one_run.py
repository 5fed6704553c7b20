"""Sharper audits from one run: each assumes more of the mechanism than ``audit_one_run``, says what, proves more."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from skfairdp._docs import shared_docs
from skfairdp._typing import ArrayLike
from skfairdp.inspection._audit import AuditResult, audit_matched_filter
from skfairdp.inspection._one_run import OneRunAuditResult, _check_shares, _checked, _numbers_of_guesses
from skfairdp.privacy import gdp_epsilon

Array = NDArray[np.float64]

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
