"""What the privacy analysis of Papernot et al. (2018) would say about the votes of one run: a diagnostic."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skfairdp._typing import ArrayLike
from skfairdp.papers._pate_bounds import data_dependent_rdp, log_q
from skfairdp.papers._smooth_sensitivity import smooth_sensitivity


@dataclass(frozen=True)
class SmoothSensitivityRelease:
    """A data-dependent Rényi cost with noise scaled to its smooth sensitivity.

    A noisy *estimate*: neither an upper bound nor a privacy parameter that holds on every data set.
    """

    order: float
    rdp: float
    rdp_cost: float
    epsilon_estimate: float


@dataclass(frozen=True, repr=False)
class NonPrivateDiagnostic:
    """A figure computed from raw votes: not private, never publish."""

    epsilon: float
    delta: float
    n_queries: int
    epsilon_certified: float
    release: SmoothSensitivityRelease | None = None
    private: ClassVar[bool] = False

    def __repr__(self) -> str:
        return (
            f"NonPrivateDiagnostic(epsilon={self.epsilon:.6g}, delta={self.delta:g}, n_queries={self.n_queries}; "
            "computed from raw votes: not private, never publish)"
        )


def pate_data_dependent_epsilon(
    votes: ArrayLike,
    *,
    sigma: float,
    delta: float,
    orders: ArrayLike | None = None,
    order: float | None = None,
    beta: float | None = None,
    sigma_ss: float | None = None,
) -> NonPrivateDiagnostic:
    """Compute the data-dependent ε of GNMax answers that PATE papers report.

    **No guarantee**: it bounds the Rényi divergence at these votes only, it depends on them, and looking at it (or
    stopping by it) is a release nobody has paid for. The certified figure is an estimator's ``privacy_``.

    Parameters
    ----------
    votes : array-like of shape (n_queries, n_classes)
        Raw vote histograms of the queries that were answered by a noisy argmax with Gaussian noise. Not for soft
        labels or released histograms, whose cost does not depend on the votes.
    sigma : float
        Standard deviation of the noise on each count.
    delta : float
        In (0, 1).
    orders : array-like of shape (n_orders,), default=None
        Rényi orders to choose from; None takes those of the package's accountant.
    order, beta, sigma_ss : float, default=None
        Given together, they add a smooth-sensitivity release: the summed cost at ``order`` plus
        ``smooth sensitivity * N(0, sigma_ss²)``, with noise from the operating system. ``order`` must be fixed
        before the votes are seen, and lie in ``(1, 1/(2 beta))``.

    Returns
    -------
    NonPrivateDiagnostic
        Frozen, marked ``private = False``.

    Raises
    ------
    ValueError
        Malformed votes or parameters, only some of ``order``, ``beta`` and ``sigma_ss``, or conditions C5 and C6 of
        the smooth-sensitivity analysis not met.

    References
    ----------
    Papernot, Song, Mironov, Raghunathan, Talwar & Erlingsson (2018), "Scalable Private Learning with PATE",
    Theorem 6, Propositions 7 and 10, Algorithms 3-5, Theorem 23.

    Examples
    --------
    >>> from skfairdp.papers import pate_data_dependent_epsilon
    >>> votes = [[230, 20]] * 1000
    >>> pate_data_dependent_epsilon(votes, sigma=40, delta=1e-5)
    NonPrivateDiagnostic(epsilon=0.479..., delta=1e-05, n_queries=1000; computed from raw votes: not ...)
    """
    # Imported here: drawing a frontier needs no accountant.
    from skfairdp.privacy import RDP_ORDERS, gdp_epsilon, rdp_to_epsilon

    if not 0 < delta < 1:
        raise ValueError(f"delta must be a float in the range (0.0, 1.0). Got {delta!r} instead.")
    log_q_of_votes = log_q(votes, sigma)
    grid = np.asarray(RDP_ORDERS if orders is None else orders, dtype=float)
    total = data_dependent_rdp(log_q_of_votes, sigma, grid).sum(axis=0)
    n_queries = len(log_q_of_votes)
    release = None
    asked = [value is not None for value in (order, beta, sigma_ss)]
    if any(asked):
        if order is None or beta is None or sigma_ss is None:
            raise ValueError("order, beta and sigma_ss belong together: give all three, or none for no release.")
        release = _release(votes, sigma, delta, order, beta, sigma_ss)
    return NonPrivateDiagnostic(
        epsilon=rdp_to_epsilon(grid, total, delta),
        delta=float(delta),
        n_queries=n_queries,
        epsilon_certified=gdp_epsilon(math.sqrt(2 * n_queries) / sigma, delta),
        release=release,
    )


def _release(
    votes: ArrayLike, sigma: float, delta: float, order: float, beta: float, sigma_ss: float
) -> SmoothSensitivityRelease:
    from skfairdp.privacy import rdp_to_epsilon, smooth_sensitivity_release, smooth_sensitivity_release_cost

    cost = smooth_sensitivity_release_cost(order, beta, sigma_ss)
    scale = sigma_ss * smooth_sensitivity(votes, sigma, order, beta)
    rdp = float(data_dependent_rdp(log_q(votes, sigma), sigma, order).sum())
    rdp = smooth_sensitivity_release(rdp, scale)
    estimate = rdp_to_epsilon(np.array([order]), np.array([max(rdp, 0.0) + cost]), delta)
    return SmoothSensitivityRelease(float(order), rdp, cost, estimate)
