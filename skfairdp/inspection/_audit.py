"""Empirical privacy audits: what an attacker who sees many runs of two neighbouring worlds, or one run, can prove."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from numbers import Integral
from typing import Any, cast

import numpy as np
from scipy.special import gammaln, logsumexp, nctdtrinc, ndtr, ndtri
from scipy.stats import chi2

from skfairdp._docs import shared_docs
from skfairdp._typing import ArrayLike, Bools, Floats
from skfairdp.inspection import _audit_worlds as worlds
from skfairdp.privacy import gdp_epsilon

Needed = Callable[[Floats, Floats], Floats]

# Beyond this the inverse noncentral t distribution does not converge. Both limits stay valid, only wider.
_T_LIMIT = 1e3
_LEAST_RUNS = {"gdp": 2, "clopper_pearson": 8, "band": 8, "bits": 2}


@dataclass(frozen=True)
class AuditResult:
    """What an audit found. Lower bounds refute a claimed guarantee; they never certify one.

    :func:`audit_matched_filter` and the other audits of transcripts return it.

    Attributes
    ----------
    method : {"gdp", "clopper_pearson", "band", "bits", "known_shift"}
        What is assumed of the statistic. ``"gdp"``: it is Gaussian in both worlds with one variance.
        ``"clopper_pearson"``: nothing; a threshold is chosen on half of the runs and judged on the rest. ``"band"``:
        nothing; all runs judge many thresholds at once. ``"bits"``: each answer is a bit of its own, with one
        probability in each world. ``"known_shift"``: see :func:`audit_known_shift`.
    mu_hat : float
        Estimate of μ as seen by this statistic, at most the mechanism's own μ.
    mu_lower, mu_upper : float
        One-sided limits, each at ``confidence``. ``mu_lower`` of the methods that assume nothing of the statistic
        refutes claims of μ-GDP. ``mu_upper`` limits what the statistic sees, so it can show that the noise is larger
        than declared; it is inf for the methods that count.
    confidence : float
    n_runs : tuple of int
        Runs in world 0 and world 1.
    error_rates : tuple of float or None
        ``"clopper_pearson"``, ``"band"`` and ``"bits"``: upper limits of the false-positive and false-negative rate,
        jointly at ``confidence``; of one bit, for ``"bits"``; those of the largest μ, for ``"band"``.
    all_rates : tuple of tuple of float
        ``"band"`` only: such a pair for each threshold, all of them jointly at ``confidence``.
    n_queries : int
        Answers in a run, for ``"bits"``; else 1.
    """

    method: str
    mu_hat: float
    mu_lower: float
    mu_upper: float
    confidence: float
    n_runs: tuple[int, int]
    error_rates: tuple[float, float] | None = None
    all_rates: tuple[tuple[float, float], ...] = ()
    n_queries: int = 1

    def epsilon_lower(self, delta: float) -> float:
        """Lower bound on the ε of every (ε, δ) guarantee the mechanism can have.

        From ``mu_lower`` by the exact GDP conversion; from limits of error rates as ``log((1 - δ - fnr) / fpr)`` or
        the same with the rates exchanged, whichever is larger; for ``"bits"`` from as many independent bits as a run
        has, exactly.

        Parameters
        ----------
        delta : float
            In [0, 1).

        Returns
        -------
        epsilon : float
            At least 0.
        """
        if self.error_rates is None:
            return gdp_epsilon(self.mu_lower, delta)
        _check_delta(delta)
        if self.method == "bits":
            return worlds.bits_epsilon(self.error_rates[0], 1 - self.error_rates[1], self.n_queries, delta)
        return worlds.rates_epsilon(self.all_rates or (self.error_rates,), delta)

    def refutes(self, mu: float) -> bool:
        """Whether a claim of at most μ is refuted at the audit's confidence.

        Parameters
        ----------
        mu : float
            The claim.

        Returns
        -------
        refuted : bool
            True, where the lower bound is above the claim.
        """
        return self.mu_lower > mu


@shared_docs
def audit_count_statistic(
    transcripts_0: ArrayLike, transcripts_1: ArrayLike, *, label: Any = 1, confidence: float = 0.95, method: str = "gdp"
) -> AuditResult:
    """Audit label releases (PATE argmax, threshold bits) by how often one label is answered.

    World 0 and world 1 differ by one record, the canary, which pushes answers towards ``label`` in world 1: for
    GNMax, votes (m+1, m) against (m, m+1). Gives a **μ lower bound under GDP**; it sees at most what the answers
    carry, about ``sqrt(2/π)`` of the noisy counts' μ.

    Parameters
    ----------
    transcripts_0, transcripts_1 : array-like of shape (n_runs, n_queries)
        Published answers of independent runs in each world; the numbers of runs may differ.
    label : default=1
        The answer counted.
    confidence : float, default=0.95
        Of each one-sided limit.
    method : {"gdp", "clopper_pearson", "band", "bits"}, default="gdp"
        See :class:`AuditResult`. ``"bits"`` proves nearly all that the answers give away, where each is drawn for
        itself: all queries have the same votes, and their noise is independent.

    {two_worlds}

    Notes
    -----
    Every run is a release: audit worlds whose data may be shown, such as synthetic ones.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.inspection import audit_count_statistic
    >>> rng = np.random.default_rng(0)
    >>> noise = rng.normal(scale=40, size=(2, 2000, 200, 2))
    >>> worlds = [(np.array([51, 50]) + noise[0]).argmax(-1), (np.array([50, 51]) + noise[1]).argmax(-1)]
    >>> result = audit_count_statistic(*worlds)
    >>> round(result.mu_lower, 2)  # accounted: sqrt(2 * 200) / 40 = 0.5
    0.35
    """
    runs = [np.asarray(transcripts) for transcripts in (transcripts_0, transcripts_1)]
    if any(world.ndim != 2 for world in runs) or runs[0].shape[1] != runs[1].shape[1]:
        raise ValueError(
            "transcripts_0 and transcripts_1 must be arrays of shape (n_runs, n_queries) with equal n_queries. "
            f"Got shapes {runs[0].shape} and {runs[1].shape} instead."
        )
    counts = [(world == label).sum(axis=1).astype(float) for world in runs]
    return _audit(counts[0], counts[1], confidence, method, bits=partial(_audit_bits, n_queries=runs[0].shape[1]))


@shared_docs
def audit_matched_filter(
    scores_0: ArrayLike, scores_1: ArrayLike, *, confidence: float = 0.95, method: str = "gdp"
) -> AuditResult:
    """Audit real-valued releases (noisy histograms, noisy gradients) by projecting them on the canary.

    The score of a run is the inner product of the release with the direction in which the canary moves it, divided
    by the noise's standard deviation and summed over steps: for Gaussian noise exactly N(0, μ²) without and
    N(μ², μ²) with the canary, up to scale and shift. Gives a **μ lower bound under GDP** that loses only what the
    finite number of runs loses.

    Parameters
    ----------
    scores_0, scores_1 : array-like of shape (n_runs,)
        Without and with the canary; larger scores speak for the canary. Any common scale and shift will do.
    confidence : float, default=0.95
        Of each one-sided limit.
    method : {"gdp", "clopper_pearson", "band"}, default="gdp"
        See :class:`AuditResult`.

    {two_worlds}

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.inspection import audit_matched_filter
    >>> rng = np.random.default_rng(0)
    >>> result = audit_matched_filter(rng.normal(size=1000), rng.normal(loc=1.0, size=1000))
    >>> round(result.mu_lower, 2), round(result.mu_hat, 2)
    (0.96, 1.04)
    >>> round(result.epsilon_lower(1e-5), 2)  # the exact ε of μ = 1 is 4.377
    4.18
    """
    scores = [np.asarray(values, dtype=float) for values in (scores_0, scores_1)]
    if any(values.ndim != 1 or not np.isfinite(values).all() for values in scores):
        raise ValueError(
            "scores_0 and scores_1 must be finite arrays of shape (n_runs,). "
            f"Got shapes {scores[0].shape} and {scores[1].shape} instead."
        )
    return _audit(scores[0], scores[1], confidence, method)


def audit_known_shift(shift: float, residuals: ArrayLike, *, confidence: float = 0.95) -> AuditResult:
    """Audit Gaussian releases whose two worlds are known without their noise, by the scale of the noise alone.

    **Guarantee.** ``mu_lower`` exceeds the mechanism's μ with probability at most ``1 - confidence``, *if* the
    residuals are independent, Gaussian with mean 0 and one variance, the same in both worlds, and ``shift`` is how far
    apart the worlds are. It is the white box of a recorded fit: a test that sees what goes into each release knows the
    shift exactly, and each coordinate of each release adds a residual. So one fit proves what takes thousands of them
    without the records. Noise that is *shared* by several releases goes unseen: let :func:`audit_matched_filter` look
    at a few hundred fits as well.

    Parameters
    ----------
    shift : float
        L2 distance between the two worlds over all releases, each in units of the noise that it declares:
        ``sqrt(Σ_t |v_t - v'_t|² / σ_t²)``, the same earlier releases given in both.
    residuals : array-like
        Released minus true values in those units, one number for each coordinate of each release.
    confidence : float, default=0.95
        Of each one-sided limit.

    Returns
    -------
    AuditResult
        ``n_runs`` holds the number of residuals twice.

    Raises
    ------
    ValueError
        A negative shift, fewer than 2 residuals, or a confidence out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.inspection import audit_known_shift
    >>> residuals = np.random.default_rng(0).normal(size=5000)
    >>> result = audit_known_shift(1.0, residuals)
    >>> round(result.epsilon_lower(1e-5), 2)  # the exact ε of μ = 1 is 4.377
    4.32
    >>> audit_known_shift(1.0, residuals / 1.1).refutes(1.0)  # noise smaller than declared
    True
    """
    _check_confidence(confidence)
    if not 0 <= shift < math.inf:
        raise ValueError(f"shift must be a finite float, at least 0. Got {shift!r} instead.")
    values = np.asarray(residuals, dtype=float).ravel()
    if values.size < 2 or not np.isfinite(values).all():
        raise ValueError(f"residuals must hold at least 2 finite numbers. Got {values.size} numbers instead.")
    squares = float(values @ values)
    if squares == 0:
        lower = hat = upper = math.inf if shift else 0.0
    else:
        quantiles = chi2.ppf(1 - confidence, values.size), values.size, chi2.ppf(confidence, values.size)
        lower, hat, upper = (shift * math.sqrt(float(quantile) / squares) for quantile in quantiles)
    return AuditResult("known_shift", hat, lower, upper, confidence, (values.size, values.size))


def _audit(scores_0: Floats, scores_1: Floats, confidence: float, method: str, **others: Any) -> AuditResult:
    _check_confidence(confidence)
    audits = {"gdp": _audit_gdp, "clopper_pearson": _audit_clopper_pearson, "band": _audit_band, **others}
    if method not in audits:
        raise ValueError(f"method must be 'gdp', 'clopper_pearson' or 'band'. Got {method!r} instead.")
    n_runs, least = (scores_0.size, scores_1.size), _LEAST_RUNS[method]
    if min(n_runs) < least:
        raise ValueError(
            f"An audit by {method!r} needs at least {least} runs of each of the two tables. Got {n_runs} instead."
        )
    return audits[method](scores_0, scores_1, confidence)


def _check_delta(delta: float) -> None:
    if not 0 <= delta < 1:
        raise ValueError(f"delta must be a float in the range [0.0, 1.0). Got {delta!r} instead.")


def _check_confidence(confidence: float) -> None:
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be a float in the range (0.0, 1.0). Got {confidence!r} instead.")


def _audit_gdp(scores_0: Floats, scores_1: Floats, confidence: float) -> AuditResult:
    """Exact limits of the standardised difference of two Gaussians with one unknown variance (noncentral t)."""
    n_0, n_1 = scores_0.size, scores_1.size
    freedom = n_0 + n_1 - 2
    shift = float(scores_1.mean() - scores_0.mean())
    spread = math.sqrt(float(scores_0.var() * n_0 + scores_1.var() * n_1) / freedom)
    mu_hat = shift / spread if spread > 0 else math.copysign(math.inf, shift) if shift else 0.0
    root = math.sqrt(n_0 * n_1 / (n_0 + n_1))
    t = min(max(mu_hat * root, -_T_LIMIT), _T_LIMIT)
    lower = float(nctdtrinc(freedom, confidence, t)) / root
    upper = math.inf if t == _T_LIMIT else float(nctdtrinc(freedom, 1 - confidence, t)) / root
    return AuditResult("gdp", mu_hat, max(lower, 0.0), max(upper, 0.0), confidence, (n_0, n_1))


def _audit_clopper_pearson(scores_0: Floats, scores_1: Floats, confidence: float) -> AuditResult:
    """Choose a threshold on every other run, bound its error rates on the rest."""
    each = (1 + confidence) / 2  # two rates share the risk
    candidates = np.quantile(np.concatenate([scores_0[::2], scores_1[::2]]), np.linspace(0, 1, 201))

    def rates(part_0: Floats, part_1: Floats, threshold: Floats) -> tuple[Floats, Floats]:
        wrong = (part_0[:, None] > threshold).sum(axis=0), (part_1[:, None] <= threshold).sum(axis=0)
        upper = worlds.clopper_pearson_upper
        return upper(wrong[0], part_0.size, each), upper(wrong[1], part_1.size, each)

    fpr, fnr = rates(scores_0[::2], scores_1[::2], candidates)
    best = np.argmax(np.maximum((1 - fnr) / fpr, (1 - fpr) / fnr))
    fpr, fnr = rates(scores_0[1::2], scores_1[1::2], candidates[[best]])
    limits = (float(fpr[0]), float(fnr[0]))
    mu_hat = _estimated(scores_0[1::2], scores_1[1::2], float(candidates[best]))
    lower, n_runs = max(worlds.mu_of_rates(limits), 0.0), (scores_0.size, scores_1.size)
    return AuditResult("clopper_pearson", mu_hat, lower, math.inf, confidence, n_runs, limits)


def _estimated(scores_0: Floats, scores_1: Floats, threshold: float) -> float:
    """μ of the errors at a threshold. Half an error is added on each side: no errors at all have a finite μ too."""
    wrong = scores_0 > threshold, scores_1 <= threshold
    return worlds.mu_of_rates(tuple((part.sum() + 0.5) / (part.size + 1) for part in wrong))


def _audit_band(scores_0: Floats, scores_1: Floats, confidence: float) -> AuditResult:
    """Limits of both error rates at many thresholds, jointly."""
    rates = worlds.rates_of_band(scores_0, scores_1, confidence)
    best = max(rates, key=worlds.mu_of_rates)
    mu_hat = _estimated(scores_0, scores_1, float(np.median(np.concatenate([scores_0, scores_1]))))
    n_runs = (scores_0.size, scores_1.size)
    return AuditResult("band", mu_hat, max(0.0, worlds.mu_of_rates(best)), math.inf, confidence, n_runs, best, rates)


def _audit_bits(counts_0: Floats, counts_1: Floats, confidence: float, *, n_queries: int) -> AuditResult:
    """Limits of the probability of one answer, from all answers of all runs."""
    each = (1 + confidence) / 2  # two probabilities share the risk
    n_0, n_1 = counts_0.size * n_queries, counts_1.size * n_queries
    ones, zeros = int(counts_0.sum()), n_1 - int(counts_1.sum())
    high_0 = float(worlds.clopper_pearson_upper(np.asarray(ones), n_0, each))
    low_1 = 1 - float(worlds.clopper_pearson_upper(np.asarray(zeros), n_1, each))
    mu_hat = worlds.bits_mu((ones + 0.5) / (n_0 + 1), 1 - (zeros + 0.5) / (n_1 + 1), n_queries)
    lower, n_runs = worlds.bits_mu(high_0, low_1, n_queries), (counts_0.size, counts_1.size)
    return AuditResult("bits", mu_hat, lower, math.inf, confidence, n_runs, (high_0, 1 - low_1), n_queries=n_queries)


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
    >>> round(result.epsilon_lower, 2)
    1.6
    >>> result.refutes(0.5)
    True
    """
    values, coins = _checked(scores, included, delta, confidence)
    m = len(values)
    numbers = _numbers_of_guesses(n_guesses, m, (0.05, 0.3))
    epsilon, r, v = _best_guesses(values, coins, numbers, confidence, partial(_epsilon_lower, m, delta=delta))
    return OneRunAuditResult(epsilon, delta, confidence, m, r, v)


def _best_guesses(
    values: Floats, coins: Bools, numbers: list[int], confidence: float, lower: Callable[..., float]
) -> tuple[float, int, int]:
    """The largest of the lower bounds by so many guesses, which share the risk; how many, and how many are right."""
    order, found = np.argsort(values, kind="stable"), []
    for r in numbers:
        lowest, highest = order[: r // 2], order[len(order) - (r - r // 2) :]
        right = int((~coins[lowest]).sum() + coins[highest].sum())
        found.append((lower(r, right, (1 - confidence) / len(numbers)), r, right))
    return max(found, key=lambda bound: bound[0])


def _checked(scores: ArrayLike, included: ArrayLike, delta: float, confidence: float) -> tuple[Floats, Bools]:
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
    _check_delta(delta)
    _check_confidence(confidence)
    return values, coins.astype(bool)


def _numbers_of_guesses(n_guesses: int | Sequence[int] | None, m: int, shares: Sequence[float]) -> list[int]:
    """As given, or these shares of the canaries: few sure guesses pay at large ε, many at small ε."""
    if n_guesses is None:
        return sorted({max(1, round(share * m)) for share in shares})
    numbers: list[Any] = [n_guesses] if np.ndim(n_guesses) == 0 else list(cast(Sequence[int], n_guesses))
    fit = [isinstance(r, Integral) and not isinstance(r, bool) and 1 <= int(r) <= m for r in numbers]
    if not fit or not all(fit):
        raise ValueError(
            f"n_guesses must be an integer between 1 and the number of canaries, {m}, or a sequence of such integers. "
            f"Got {n_guesses!r} instead."
        )
    return sorted({int(r) for r in numbers})


def _epsilon_lower(m: int, r: int, v: int, risk: float, *, delta: float) -> float:
    """The largest ε up to which v right guesses of r have a probability of at most ``risk``, rounded down."""
    return worlds.largest_refuted(lambda epsilon: _log_probability(m, r, v, delta, epsilon) <= math.log(risk))


def _log_probability(m: int, r: int, v: int, delta: float, epsilon: float) -> float:
    """Logarithm of the theorem's bound on the probability of at least v right guesses, for v <= r <= m: q = e^ε / (1 +
    e^ε) is 1 in floating point from ε = 37 on. Beyond i = v f(v - i) is 1, and only the divisor grows."""
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
    >>> round(found.epsilon_lower, 2)
    2.56
    >>> round(audit_one_run(scores, included, delta=1e-5).epsilon_lower, 2)
    2.1
    """
    values, coins = _checked(scores, included, delta, confidence)
    if curve not in _CURVES:
        raise ValueError(f"curve must be 'gdp' or 'epsilon_delta'. Got {curve!r} instead.")
    if curve == "gdp" and delta == 0:
        raise ValueError("delta must be a float in the range (0.0, 1.0) for curve='gdp'. Got 0 instead.")
    m = len(values)
    numbers = _numbers_of_guesses(n_guesses, m, (0.02, 0.1) if curve == "gdp" else (0.05, 0.3))
    lower = partial(_parameter_lower, _needed(curve, delta), m)
    parameter, r, c = _best_guesses(values, coins, numbers, confidence, lower)
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
    >>> round(result.epsilon_lower(1e-5), 2)  # the exact ε of μ = 1 is 4.377
    4.3
    """
    values = np.asarray(scores, dtype=float)
    if values.ndim == 2 and values.shape[1] > 0:
        values = values.sum(axis=1)
    values, coins = _checked(values, included, 0.0, confidence)
    return audit_matched_filter(values[~coins], values[coins], confidence=confidence)


# ---------------------------------------------------------------- the recursion


def _needed(curve: str, delta: float) -> Needed:
    """Return the smallest error rate that a trade-off leaves beside a power, as a function of power and parameter."""
    if curve == "gdp":
        return lambda power, mu: ndtr(ndtri(power) - mu)
    return lambda power, epsilon: np.maximum(
        np.exp(-epsilon) * (power - delta), 1 - delta - np.exp(np.minimum(epsilon, 700.0)) * (1 - power)
    ).clip(min=0.0)


def _parameter_lower(needed: Needed, m: int, r: int, c: int, risk: float) -> float:
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


def _refuted(needed: Needed, parameters: Floats, m: int, r: int, c: int, risk: float) -> Bools:
    """Whether at least c right guesses of r have a probability below ``risk``, for each parameter.
    Write R_j for ``Σ_{l≥j} l p_l / m`` and H_j for ``Σ_{l≥j} (r - l) p_l / m``. The theorem asks that ``H_{j-1} >=
    needed(R_j)``, and all probabilities together make ``R_0 + H_0 = r / m``. Suppose that c or more are right with
    probability ``risk``. The least R_0 + H_0 arises where all of that lies at c itself and each H is as small as the
    theorem lets it be: moving probability up from there, or adding some, changes (R_j, H_j) by a direction (a, b) with
    ``-a <= b <= a (r - j) / j``; each step maps such directions into such, and they never lower the sum. Where even the
    least is more than r / m, the supposition is false."""
    right = np.full(len(parameters), risk * c / m)
    wrong = np.full(len(parameters), risk * (r - c) / m)
    for j in range(c - 1, -1, -1):
        more = np.maximum(needed(np.minimum(right, 1.0), parameters), wrong)
        right = right + j / (r - j) * (more - wrong)
        wrong = more
        if np.all(right + wrong > r / m * _UP):
            break
    return np.asarray(right + wrong > r / m * _UP)
