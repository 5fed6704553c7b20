"""The only door to dp-accounting: its events, its accountants, its privacy loss distributions."""

import math
from collections.abc import Sequence

import numpy as np
from dp_accounting.dp_event import (
    ComposedDpEvent,
    DpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    NonPrivateDpEvent,
    NoOpDpEvent,
    PoissonSampledDpEvent,
    RandomizedResponseDpEvent,
    RepeatAndSelectDpEvent,
    SelfComposedDpEvent,
    ZCDpEvent,
)
from dp_accounting.pld import pld_pmf
from dp_accounting.pld.privacy_loss_distribution import (
    PrivacyLossDistribution,
    from_gaussian_mechanism,
    from_laplace_mechanism,
    from_randomized_response,
)
from dp_accounting.privacy_accountant import NeighboringRelation
from dp_accounting.rdp import RdpAccountant
from dp_accounting.rdp.rdp_privacy_accountant import compute_epsilon

from skfairdp._typing import Floats

ROUNDING = 2.0**-46  # relative; far above the rounding errors of a sum of a few terms
CONVOLUTION = 2.0**-45  # mass that the Fourier transforms of one composition may misplace
TAIL_MASS = 1e-15  # far below every delta anyone reports; truncated mass is charged as infinite loss


def rdp_to_epsilon(orders: Sequence[float] | Floats, rdp: Floats, delta: float) -> float:
    """Convert Rényi divergences to ε (Canonne, Kamath & Steinke 2020, Proposition 12)."""
    return rdp_to_epsilon_and_order(orders, rdp, delta)[0]


def rdp_to_epsilon_and_order(orders: Sequence[float] | Floats, rdp: Floats, delta: float) -> tuple[float, float]:
    """As :func:`rdp_to_epsilon`, with the order that gave the smallest ε, rounded up. A divergence that is no number
    proves nothing."""
    if np.any(np.less(rdp, 0)):
        raise ValueError("A Rényi divergence is at least 0.")
    certain = np.where(np.isnan(rdp), np.inf, rdp) * (1 + ROUNDING)
    epsilon, order = compute_epsilon(list(orders), list(certain), delta)
    if math.isnan(epsilon) or epsilon == 0 or not order > 1:
        return (0.0 if epsilon == 0 else math.inf), float(order)
    terms = epsilon - math.log1p(-1 / order) + 2 * abs(math.log(delta * order)) / (order - 1)  # of no sign
    return float(epsilon) + ROUNDING * terms, float(order)


def rdp_epsilon(event: DpEvent, delta: float) -> float | None:
    """ε of an event made of dp-accounting's own releases, through its Rényi accountant; None where it has no proof."""
    accountant = RdpAccountant()
    if not accountant.supports(event):
        return None
    value = float(accountant.compose(event).get_epsilon(delta))
    return math.inf if math.isnan(value) else value * (1 + ROUNDING)


def gaussian_pld(
    noise_multiplier: float, grid: float, sampling_probability: float = 1.0, *, replaced: bool = False
) -> PrivacyLossDistribution:
    """Privacy loss of a (Poisson-sampled) Gaussian with unit sensitivity, pessimistic, add/remove. ``replaced``:
    dp-accounting's multiplier is noise over the norm of a contribution, so that u = -v, at distance 2, is the worst."""
    neighbours = NeighboringRelation.REPLACE_ONE if replaced else NeighboringRelation.ADD_OR_REMOVE_ONE
    return from_gaussian_mechanism(
        noise_multiplier, value_discretization_interval=grid, sampling_prob=sampling_probability,
        neighboring_relation=neighbours,
    )  # fmt: skip


def pld_from_deltas(deltas: Floats, half_width: int, grid: float) -> PrivacyLossDistribution:
    """Turn a hockey-stick curve on the grid ``-half_width..half_width`` into a distribution that lies above it
    everywhere: connect-the-dots (Doroshenko et al. 2022). The curve is symmetric, so one serves both directions."""
    curve = np.clip(np.minimum.accumulate(deltas), 0.0, 1.0)
    pmf = pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(grid, -half_width, half_width, curve)
    return PrivacyLossDistribution(pmf)


def self_compose(pld: PrivacyLossDistribution, times: int) -> PrivacyLossDistribution:
    """Compose a distribution with itself, its truncated tails charged as infinite loss. Where the outermost mass is
    subnormal SciPy's ``logsumexp`` overflows and takes the plain sum instead: the moments stay what they are."""
    with np.errstate(over="ignore"):
        return pld if times == 1 else pld.self_compose(times, tail_mass_truncation=TAIL_MASS)


def epsilon_from_pld(pld: PrivacyLossDistribution, delta: float, compositions: int = 1) -> float:
    """Smallest ε of a distribution at δ, rounded up; inf where none exists.
    A T-fold convolution by Fourier transform misplaces at most ``T log2(N) 2**-53 ||p|| sqrt(N)`` of the mass: the
    transform is wrong by ``log2(N) 2**-53`` of it, its T-th power by T times that, and Cauchy and Schwarz turn the root
    of the sum of squares into a sum. With log2(N) ≤ 25 and a pmf p that spreads over a hundredth of the grid that is
    below T ``CONVOLUTION``, and δ pays for it."""
    certain = delta * (1 - 2.0**-40) - compositions * CONVOLUTION
    if certain <= 0:
        return math.inf
    with np.errstate(over="ignore"):  # the far lower tail of an ε in the hundreds
        value = float(pld.get_epsilon_for_delta(certain))
    return math.inf if math.isnan(value) else max(0.0, value) * (1 + ROUNDING)
