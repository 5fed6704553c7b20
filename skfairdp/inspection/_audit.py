"""Empirical privacy audits: what an attacker who sees many runs of two neighbouring worlds can prove."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import nctdtrinc, ndtri
from scipy.stats import beta as beta_distribution
from scipy.stats import chi2

__all__ = ["AuditResult", "audit_count_statistic", "audit_matched_filter", "noise_scale_interval"]

Array = NDArray[np.float64]

# Beyond this the inverse noncentral t distribution does not converge. Both limits stay valid, only wider.
_T_LIMIT = 1e3
_METHODS = ("gdp", "clopper_pearson")


@dataclass(frozen=True)
class AuditResult:
    """What an audit found. Lower bounds refute a claimed guarantee; they never certify one.

    Attributes
    ----------
    method : {"gdp", "clopper_pearson"}
        ``"gdp"``: limits of μ *under GDP*, that is, assuming the statistic is Gaussian in both worlds with one
        variance. ``"clopper_pearson"``: distribution-free, and much weaker.
    mu_hat : float
        Estimate of μ as seen by this statistic, at most the mechanism's own μ.
    mu_lower, mu_upper : float
        One-sided limits, each at ``confidence``. ``mu_upper`` limits what the statistic sees, so it can show that
        the noise is larger than declared; it is inf for ``"clopper_pearson"``.
    confidence : float
    n_runs : tuple of int
        Runs in world 0 and world 1.
    error_rates : tuple of float or None
        ``"clopper_pearson"`` only: upper limits of the false-positive and false-negative rate, jointly at
        ``confidence``.
    """

    method: str
    mu_hat: float
    mu_lower: float
    mu_upper: float
    confidence: float
    n_runs: tuple[int, int]
    error_rates: tuple[float, float] | None = None

    def epsilon_lower(self, delta: float) -> float:
        """Lower bound on the ε of every (ε, δ) guarantee the mechanism can have.

        From ``mu_lower`` by the exact GDP conversion, or, distribution-free, from the error rates:
        ``log((1 - δ - fnr) / fpr)`` or the same with the rates exchanged, whichever is larger.
        """
        if self.error_rates is None:
            from skfairdp.privacy import gdp_epsilon

            return gdp_epsilon(self.mu_lower, delta)
        if not 0 <= delta < 1:
            raise ValueError(f"delta must be a float in the range [0.0, 1.0). Got {delta!r} instead.")
        fpr, fnr = self.error_rates
        ratio = max((1 - delta - fnr) / fpr, (1 - delta - fpr) / fnr)
        return math.log(ratio) if ratio > 1 else 0.0

    def refutes(self, mu: float) -> bool:
        """Whether a claim of at most μ is refuted at the audit's confidence."""
        return self.mu_lower > mu


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
    method : {"gdp", "clopper_pearson"}, default="gdp"
        See :class:`AuditResult`.

    Returns
    -------
    AuditResult

    Raises
    ------
    ValueError
        Shapes that do not fit, fewer than 2 runs a world (8 for ``"clopper_pearson"``), or a parameter out of range.

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
    return _audit(counts[0], counts[1], confidence, method)


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
    method : {"gdp", "clopper_pearson"}, default="gdp"
        See :class:`AuditResult`.

    Returns
    -------
    AuditResult

    Raises
    ------
    ValueError
        Scores not finite vectors, fewer than 2 runs a world (8 for ``"clopper_pearson"``), or a parameter out of
        range.

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


def noise_scale_interval(draws: ArrayLike, *, confidence: float = 0.95) -> tuple[float, float]:
    """Two-sided confidence interval for the standard deviation of zero-mean Gaussian noise.

    A declared scale outside it is refuted, whether it is too large or too small: 10 000 draws give ±1.4 %.

    Parameters
    ----------
    draws : array-like
        Recorded noise, of any shape. Its mean is taken as 0, so that a shift counts as noise of a wrong scale.
    confidence : float, default=0.95

    Returns
    -------
    tuple of float
        Lower and upper limit.

    Raises
    ------
    ValueError
        Fewer than 2 draws, or a confidence outside (0, 1).

    Examples
    --------
    >>> from skfairdp.inspection import noise_scale_interval
    >>> from skfairdp.privacy import NoiseSource
    >>> low, high = noise_scale_interval(40 * NoiseSource(seed=0).normal(10_000))
    >>> low < 40 < high
    True
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
        raise ValueError(f"method must be 'gdp' or 'clopper_pearson'. Got {method!r} instead.")
    least = 2 if method == "gdp" else 8
    n_runs = (scores_0.size, scores_1.size)
    if min(n_runs) < least:
        raise ValueError(f"An audit by {method!r} needs at least {least} runs a world. Got {n_runs} instead.")
    audit = _audit_gdp if method == "gdp" else _audit_clopper_pearson
    return audit(scores_0, scores_1, confidence)


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
        return _upper(false_positives, part_0.size, each), _upper(false_negatives, part_1.size, each)

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


def _upper(errors: NDArray[np.int64], n: int, confidence: float) -> Array:
    """Clopper-Pearson upper limit of an error rate."""
    limit = beta_distribution.ppf(confidence, errors + 1, np.maximum(n - errors, 1))
    return np.where(errors >= n, 1.0, limit)
