"""Empirical privacy audits: what an attacker who sees many runs of two neighbouring worlds can prove."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import nctdtrinc, ndtri
from scipy.stats import chi2

from skfairdp._docs import shared_docs
from skfairdp._typing import ArrayLike
from skfairdp.inspection._audit_worlds import (
    bits_epsilon,
    bits_mu,
    clopper_pearson_upper,
    rates_epsilon,
    rates_mu,
    rates_of_band,
)

Array = NDArray[np.float64]

# Beyond this the inverse noncentral t distribution does not converge. Both limits stay valid, only wider.
_T_LIMIT = 1e3
_METHODS = ("gdp", "clopper_pearson", "band")
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
            from skfairdp.privacy import gdp_epsilon

            return gdp_epsilon(self.mu_lower, delta)
        if not 0 <= delta < 1:
            raise ValueError(f"delta must be a float in the range [0.0, 1.0). Got {delta!r} instead.")
        if self.method == "bits":
            return bits_epsilon(self.error_rates[0], 1 - self.error_rates[1], self.n_queries, delta)
        return rates_epsilon(self.all_rates or (self.error_rates,), delta)

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
    transcripts_0: ArrayLike,
    transcripts_1: ArrayLike,
    *,
    label: object = 1,
    confidence: float = 0.95,
    method: str = "gdp",
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
    >>> result.refutes(0.5), result.refutes(0.25)  # accounted: sqrt(2 * 200) / 40 = 0.5
    (False, True)
    """
    worlds = [np.asarray(transcripts) for transcripts in (transcripts_0, transcripts_1)]
    if any(world.ndim != 2 for world in worlds) or worlds[0].shape[1] != worlds[1].shape[1]:
        raise ValueError(
            "transcripts_0 and transcripts_1 must be arrays of shape (n_runs, n_queries) with equal n_queries. "
            f"Got shapes {worlds[0].shape} and {worlds[1].shape} instead."
        )
    counts = [(world == label).sum(axis=1).astype(float) for world in worlds]
    if method == "bits":
        _check_confidence(confidence)
        _check_runs((len(worlds[0]), len(worlds[1])), method)
        return _audit_bits(counts[0], counts[1], worlds[0].shape[1], confidence)
    return _audit(counts[0], counts[1], confidence, method)


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
    >>> 0.85 < result.mu_lower < result.mu_hat < 1.1
    True
    >>> result.epsilon_lower(1e-5) < 4.377  # the exact ε of μ = 1
    True
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
    >>> 0.95 * 4.377 < result.epsilon_lower(1e-5) < 4.377
    True
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


def noise_scale_interval(draws: ArrayLike, *, confidence: float = 0.95) -> tuple[float, float]:
    """Two-sided confidence interval for the standard deviation of zero-mean Gaussian noise.

    A declared scale outside it is refuted, whether it is too large or too small: 10 000 draws give ±1.4 %.
    """
    values = np.asarray(draws, dtype=float).ravel()
    if values.size < 2 or not np.isfinite(values).all():
        raise ValueError(f"draws must hold at least 2 finite numbers. Got {values.size} numbers instead.")
    _check_confidence(confidence)
    squares = float(values @ values)
    tail = (1 - confidence) / 2
    most, least = float(chi2.isf(tail, values.size)), float(chi2.ppf(tail, values.size))
    return math.sqrt(squares / most), math.sqrt(squares / least)


def _audit(scores_0: Array, scores_1: Array, confidence: float, method: str) -> AuditResult:
    _check_confidence(confidence)
    if method not in _METHODS:
        raise ValueError(f"method must be 'gdp', 'clopper_pearson' or 'band'. Got {method!r} instead.")
    _check_runs((scores_0.size, scores_1.size), method)
    audit = {"gdp": _audit_gdp, "clopper_pearson": _audit_clopper_pearson, "band": _audit_band}[method]
    return audit(scores_0, scores_1, confidence)


def _check_runs(n_runs: tuple[int, int], method: str) -> None:
    least = _LEAST_RUNS[method]
    if min(n_runs) < least:
        raise ValueError(f"An audit by {method!r} needs at least {least} runs a world. Got {n_runs} instead.")


def _check_confidence(confidence: float) -> None:
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be a float in the range (0.0, 1.0). Got {confidence!r} instead.")


def _audit_gdp(scores_0: Array, scores_1: Array, confidence: float) -> AuditResult:
    """Exact limits of the standardised difference of two Gaussians with one unknown variance (noncentral t)."""
    n_0, n_1 = scores_0.size, scores_1.size
    freedom = n_0 + n_1 - 2
    shift = float(scores_1.mean() - scores_0.mean())
    spread = math.sqrt(float(scores_0.var() * n_0 + scores_1.var() * n_1) / freedom)
    if spread > 0:
        mu_hat = shift / spread
    else:
        mu_hat = math.copysign(math.inf, shift) if shift else 0.0
    root = math.sqrt(n_0 * n_1 / (n_0 + n_1))
    t = min(max(mu_hat * root, -_T_LIMIT), _T_LIMIT)
    lower = float(nctdtrinc(freedom, confidence, t)) / root
    upper = math.inf if t == _T_LIMIT else float(nctdtrinc(freedom, 1 - confidence, t)) / root
    return AuditResult("gdp", mu_hat, max(lower, 0.0), max(upper, 0.0), confidence, (n_0, n_1))


def _audit_clopper_pearson(scores_0: Array, scores_1: Array, confidence: float) -> AuditResult:
    """Choose a threshold on every other run, bound its error rates on the rest."""
    each = (1 + confidence) / 2  # two rates share the risk
    candidates = np.quantile(np.concatenate([scores_0[::2], scores_1[::2]]), np.linspace(0, 1, 201))

    def rates(part_0: Array, part_1: Array, threshold: Array) -> tuple[Array, Array]:
        false_positives = (part_0[:, None] > threshold).sum(axis=0)
        false_negatives = (part_1[:, None] <= threshold).sum(axis=0)
        return (
            clopper_pearson_upper(false_positives, part_0.size, each),
            clopper_pearson_upper(false_negatives, part_1.size, each),
        )

    fpr, fnr = rates(scores_0[::2], scores_1[::2], candidates)
    best = np.argmax(np.maximum((1 - fnr) / fpr, (1 - fpr) / fnr))
    fpr, fnr = rates(scores_0[1::2], scores_1[1::2], candidates[[best]])
    held_out_0, held_out_1 = scores_0[1::2] > candidates[best], scores_1[1::2] <= candidates[best]
    # Half an error is added on each side, so that no errors at all still give a finite estimate.
    plain = [(part.sum() + 0.5) / (part.size + 1) for part in (held_out_0, held_out_1)]
    mu_hat = -float(ndtri(plain[0]) + ndtri(plain[1]))
    mu_lower = max(-float(ndtri(fpr[0]) + ndtri(fnr[0])), 0.0)
    limits = (float(fpr[0]), float(fnr[0]))
    n_runs = (scores_0.size, scores_1.size)
    return AuditResult("clopper_pearson", mu_hat, mu_lower, math.inf, confidence, n_runs, limits)


def _audit_band(scores_0: Array, scores_1: Array, confidence: float) -> AuditResult:
    """Limits of both error rates at many thresholds, jointly."""
    rates = rates_of_band(scores_0, scores_1, confidence)
    best = max(rates, key=lambda pair: -float(ndtri(pair[0]) + ndtri(pair[1])))
    middle = float(np.median(np.concatenate([scores_0, scores_1])))
    plain = [(part.sum() + 0.5) / (part.size + 1) for part in (scores_0 > middle, scores_1 <= middle)]
    mu_hat = -float(ndtri(plain[0]) + ndtri(plain[1]))
    n_runs = (scores_0.size, scores_1.size)
    return AuditResult("band", mu_hat, rates_mu(rates), math.inf, confidence, n_runs, best, rates)


def _audit_bits(counts_0: Array, counts_1: Array, n_queries: int, confidence: float) -> AuditResult:
    """Limits of the probability of one answer, from all answers of all runs."""
    each = (1 + confidence) / 2  # two probabilities share the risk
    n_0, n_1 = counts_0.size * n_queries, counts_1.size * n_queries
    ones, zeros = int(counts_0.sum()), n_1 - int(counts_1.sum())
    high_0 = float(clopper_pearson_upper(np.asarray(ones), n_0, each))
    low_1 = 1 - float(clopper_pearson_upper(np.asarray(zeros), n_1, each))
    mu_hat = bits_mu((ones + 0.5) / (n_0 + 1), 1 - (zeros + 0.5) / (n_1 + 1), n_queries)
    return AuditResult(
        "bits",
        mu_hat,
        bits_mu(high_0, low_1, n_queries),
        math.inf,
        confidence,
        (counts_0.size, counts_1.size),
        (high_0, 1 - low_1),
        n_queries=n_queries,
    )
