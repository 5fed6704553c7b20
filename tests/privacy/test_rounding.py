"""No printed figure lies below the truth: ε and δ are rounded up, μ down, by more than the arithmetic can be wrong.

The truth is computed with 60 digits or more. Each test also says how much is given away.
"""

import math
import re

import mpmath
import numpy as np
import pytest
from mpmath import mp, mpf
from scipy.special import log_ndtr

from skfairdp.inspection import EstimatorAudit
from skfairdp.privacy import (
    ArgmaxBit,
    GaussianDpEvent,
    LaplaceDpEvent,
    PoissonSampledDpEvent,
    RandomizedResponseDpEvent,
    ReplaceSampledGaussian,
    ThresholdBit,
    bit_deltas,
    bit_rdp,
    calibrate_noise,
    compose,
    epsilon_of,
    gdp_delta,
    gdp_epsilon,
    gdp_mu,
    rdp_of,
    rdp_to_epsilon,
    repeat,
)
from tests._tools.inside import epsilon_from_pld, epsilon_text, gaussian_pld, rounded_down, rounded_up, self_compose

DELTAS = (1e-300, 1e-100, 1e-30, 1e-15, 1e-12, 1e-10, 1e-6, 1e-5, 1e-3, 0.01, 0.1, 0.5)
MUS = (*np.geomspace(1e-4, 300.0, 28), 0.25, 0.5, 1.0, 2.0)


@pytest.fixture(autouse=True)
def many_digits():
    with mp.workdps(80):
        yield


def log_phi(x):
    return mp.log(mp.erfc(-x / mp.sqrt(2)) / 2) if x < 0 else mp.log1p(-mp.erfc(x / mp.sqrt(2)) / 2)


def true_delta(epsilon, mu):
    epsilon, mu = mpf(epsilon), mpf(mu)
    first, second = -epsilon / mu + mu / 2, -epsilon / mu - mu / 2
    return (mp.erfc(-first / mp.sqrt(2)) - mp.exp(epsilon) * mp.erfc(-second / mp.sqrt(2))) / 2


@pytest.mark.parametrize("delta", DELTAS)
@mp.workdps(80)
def test_epsilon_of_a_gaussian_never_lies_below_the_truth(delta):
    for mu in map(float, MUS):
        epsilon = gdp_epsilon(mu, delta)
        assert true_delta(epsilon, mu) <= delta, (mu, delta)
        assert epsilon == 0 or true_delta(epsilon * (1 - 1e-8), mu) > delta  # and a hundred-millionth above at most


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("times", [1, 37, 2000])
def test_epsilon_of_composed_gaussians_never_lies_below_the_truth(delta, times):
    """The sum of squared costs is rounded too."""
    for scale in (0.31, 1.7, 3.3, 29.0):
        epsilon = epsilon_of(compose(repeat(GaussianDpEvent(scale), times), GaussianDpEvent(0.77)), delta)
        mu = mp.sqrt(times / mpf(scale) ** 2 + 1 / mpf(0.77) ** 2)
        assert true_delta(epsilon, mu) <= delta, (scale, delta)
        assert epsilon == 0 or true_delta(epsilon * (1 - 1e-9), mu) > delta


def test_delta_of_a_gaussian_never_lies_below_the_truth():
    for mu in map(float, MUS):
        for epsilon in (-2.0, 0.0, 1e-6, 0.01, 0.3, 1.0, 4.0, 30.0, 500.0):
            delta, truth = gdp_delta(epsilon, mu), true_delta(epsilon, mu)
            assert delta >= truth
            if truth > 1e-290:
                assert delta <= truth * (1 + mpf(10) ** -6)


@pytest.mark.parametrize("delta", DELTAS)
def test_calibrated_mu_never_lies_above_the_truth_and_survives_the_roundings_of_a_plan(delta):
    for epsilon in (1e-3, 0.1, 0.5, 1.0, 2.7, 8.0, 40.0):
        mu = gdp_mu(epsilon, delta)
        assert true_delta(epsilon, mu) <= delta
        assert true_delta(epsilon, mu * (1 + 1e-7)) > delta
        for times in (1, 3, 7, 1000):
            for sensitivity in (1.0, math.sqrt(2), 0.3):
                sigma = sensitivity * math.sqrt(times) / mu
                assert epsilon_of(repeat(GaussianDpEvent(sigma / sensitivity), times), delta) <= epsilon


def test_the_error_of_the_normal_law_is_well_inside_the_margin():
    """The margins of ``_gdp`` and ``_binary`` take 32 units in the last place, and 16 units of 1."""
    unit = mpf(2) ** -53
    points = np.concatenate([-np.geomspace(1e-9, 3e4, 600), np.linspace(-40, 0, 500), np.linspace(0, 9, 300)])
    for x in map(float, points):
        error = abs(mpf(float(log_ndtr(x))) - log_phi(mpf(x)))
        assert error <= unit * (8 * abs(log_phi(mpf(x))) + 4), x


def pairs_of(event):
    n = event.n_teachers
    if isinstance(event, ThresholdBit):
        votes, steps = {m: (m - mpf(event.threshold)) / mpf(event.sigma) for m in range(n + 1)}, (1, -1)
    else:
        states = range(-n, n + 1, 1 if event.restricted else 2)
        votes = {d: d / (mp.sqrt(2) * mpf(event.sigma)) for d in states}
        steps = (1, -1, 2, -2) if event.restricted else (2, -2)
    logs = {vote: (log_phi(z), log_phi(-z)) for vote, z in votes.items()}
    return [(logs[vote], logs[vote + step]) for vote in logs for step in steps if vote + step in logs]


@pytest.mark.parametrize(
    "event",
    [
        ThresholdBit(20, 12.0, 3.0),
        ThresholdBit(20, 12.3, 40.0),
        ThresholdBit(10, 6.0, 0.4),
        ThresholdBit(20, 12.0, 3000.0),
        ArgmaxBit(9, 2.0),
        ArgmaxBit(10, 30.0, "gaussian", True),
    ],
    ids=str,
)
def test_divergences_of_bits_never_lie_below_the_truth(event):
    pairs = pairs_of(event)
    orders = np.array([1.02, 1.5, 2.0, 3.3, 8.0, 64.0, 1000.0, 1e5])
    for order, divergence in zip(orders, bit_rdp(event, orders), strict=True):
        a = mpf(float(order))
        truth = max(
            mp.log(mp.exp(a * p[0] + (1 - a) * q[0]) + mp.exp(a * p[1] + (1 - a) * q[1])) / (a - 1) for p, q in pairs
        )
        assert divergence >= truth, order
        # The error of a logarithm near 0 is about 1e-15, however small the logarithm is.
        assert divergence <= truth * (1 + mpf(10) ** -9) + mpf(10) ** -13 * a / (a - 1)
    epsilons = np.array([-1.0, -0.1, 0.0, 1e-3, 0.05, 0.3])
    for epsilon, delta in zip(epsilons, bit_deltas(event, epsilons), strict=True):
        gamma = mp.exp(mpf(float(epsilon)))
        truth = max(sum(max(mp.exp(p[i]) - gamma * mp.exp(q[i]), 0) for i in (0, 1)) for p, q in pairs)
        assert truth <= delta <= truth + mpf(10) ** -12


@pytest.mark.parametrize("p", [1e-9, 0.01, 0.5, 0.999, 1 - 1e-12])
@pytest.mark.parametrize("k", [2, 3, 1000])
def test_randomised_response_never_lies_below_the_truth(p, k):
    event, lie = RandomizedResponseDpEvent(p, k), mpf(p) / k
    truth = 1 - (k - 1) * lie
    assert epsilon_of(event, 0.0) >= mp.log(truth / lie)
    assert epsilon_of(repeat(event, 7), 0.0) >= 7 * mp.log(truth / lie)
    orders = np.array([1.1, 2.0, 7.7, 500.0])
    for order, divergence in zip(orders, rdp_of(event, orders), strict=True):
        a = mpf(float(order))
        exact = mp.log(truth**a * lie ** (1 - a) + lie**a * truth ** (1 - a) + (k - 2) * lie) / (a - 1)
        assert exact <= divergence <= exact * (1 + mpf(10) ** -9) + mpf(10) ** -13 * a / (a - 1)


@pytest.mark.parametrize("scale", [0.05, 0.7, 3.0, 1e4])
def test_laplace_never_lies_below_the_truth(scale):
    assert epsilon_of(LaplaceDpEvent(scale), 0.0) >= 1 / mpf(scale)
    orders = np.array([1.1, 2.0, 7.7, 500.0])
    for order, divergence in zip(orders, rdp_of(LaplaceDpEvent(scale), orders), strict=True):
        a, b = mpf(float(order)), mpf(scale)
        exact = mp.log(a / (2 * a - 1) * mp.exp((a - 1) / b) + (a - 1) / (2 * a - 1) * mp.exp(-a / b)) / (a - 1)
        assert exact <= divergence <= exact * (1 + mpf(10) ** -9) + mpf(10) ** -13 * a / (a - 1)


@pytest.mark.parametrize("q", [1e-4, 0.05, 0.6])
@pytest.mark.parametrize("noise", [0.8, 5.0])
def test_sampled_gaussians_never_lie_below_the_truth_at_integer_orders(q, noise):
    """At integer orders the divergence of adding a record is a binomial sum, exactly."""
    orders = np.array([2.0, 5.0, 16.0])
    for order, divergence in zip(orders, rdp_of(PoissonSampledDpEvent(q, GaussianDpEvent(noise)), orders), strict=True):
        a = int(order)
        moment = mp.fsum(
            mp.binomial(a, k) * (1 - mpf(q)) ** (a - k) * mpf(q) ** k * mp.exp((k * k - k) / (2 * mpf(noise) ** 2))
            for k in range(a + 1)
        )
        exact = mp.log(moment) / (a - 1)
        assert exact <= divergence <= exact * (1 + mpf(10) ** -8) + mpf(10) ** -13


def test_the_conversion_from_renyi_never_lies_below_its_formula():
    for order in (1.5, 2.0, 9.3, 1000.0):
        for rdp in (0.01, 0.3, 12.0):
            for delta in (1e-300, 1e-10, 1e-5, 0.1):
                a, d = mpf(order), mpf(delta)
                exact = mpf(rdp) + mp.log1p(-1 / a) - mp.log(d * a) / (a - 1)
                value = rdp_to_epsilon([order], np.array([rdp]), delta)
                if value > 0:
                    assert exact <= value <= exact * (1 + mpf(10) ** -11) + mpf(10) ** -11


@pytest.mark.covering
@pytest.mark.parametrize("delta", [1e-12, 1e-9, 1e-5, 1e-2])
@pytest.mark.parametrize(("noise", "times"), [(1.0, 1), (8.0, 50), (40.0, 2000)])
def test_composed_privacy_losses_never_lie_below_the_truth(delta, noise, times):
    """A Gaussian's losses on a grid, composed by Fourier transform: its exact ε is known."""
    value = epsilon_from_pld(self_compose(gaussian_pld(noise, 1e-4 * 8 / noise), times), delta, compositions=times)
    assert value == math.inf or true_delta(value, mp.sqrt(times) / mpf(noise)) <= delta
    if delta >= 1e-9:
        assert value <= gdp_epsilon(math.sqrt(times) / noise, delta) * 1.002


def test_a_delta_that_convolutions_could_misplace_is_no_delta():
    pld = self_compose(gaussian_pld(40.0, 1e-4), 5000)
    assert epsilon_from_pld(pld, 1e-10, compositions=5000) == math.inf
    sampled = repeat(PoissonSampledDpEvent(0.01, GaussianDpEvent(2.0)), 5000)
    # Then a bound serves that is none of mass: how often a record is sampled, or Rényi's.
    assert epsilon_of(sampled, 1e-30, accountant="rdp") <= epsilon_of(sampled, 1e-30) < math.inf


@pytest.mark.parametrize("epsilon", [0.1, 1 / 3, 1.0, 2.7])
def test_calibration_is_judged_to_the_last_digit(epsilon):
    """A quotient of ε and its target can round to 1 where ε is one unit in the last place above it."""
    above = math.nextafter(epsilon, math.inf)
    assert above / epsilon - 1 <= 2.3e-16
    for event_at in (GaussianDpEvent, lambda s: ReplaceSampledGaussian(1.0, s), lambda s: ArgmaxBit(30, s)):
        noise = calibrate_noise(event_at, epsilon, 1e-5, rtol=1e-15)
        assert epsilon_of(event_at(noise), 1e-5) <= epsilon


def test_the_reference_of_this_file_is_right():
    assert mpmath.almosteq(true_delta("1.993091", "0.5"), mpf("1e-5"), rel_eps=1e-5)


# ---- figures in texts ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "value", [1.23451, 1.23449, 0.1, 0.99996, 12345.6, 1e-7 / 3, 2.0, 1.0000000001, -0.123456, 0.0]
)
@pytest.mark.parametrize("digits", [2, 3, 4, 6])
def test_printed_bounds_are_rounded_to_their_own_side(value, digits):
    low, high = float(rounded_down(value, digits)), float(rounded_up(value, digits))
    assert low <= value <= high
    assert high - low <= abs(value) * 10.0 ** (1 - digits) * (1 + 1e-9)
    if value == float(f"{value:.{digits}g}"):
        assert low == value == high


def test_a_page_rounds_epsilon_up_by_the_smallest_part():
    assert epsilon_text(1.0) == "1" and epsilon_text(1.0 + 1e-9) == "1.01" and epsilon_text(0.7) == "0.7"


@pytest.mark.parametrize(("claim", "lower", "reach"), [(1.00004, 0.99996, 1.49996), (2.0, 1.23456, math.inf)])
def test_an_audit_prints_no_more_than_it_has_found(claim, lower, reach):
    found = EstimatorAudit(
        estimator="A", claim=claim, epsilon_lower=lower, confidence=0.95, delta=1e-5, method="counts",
        relation="replace one record", assumes="nothing", canary="a row", n_runs=9, n_canaries=1, n_fits=18,
        reach=reach,
    )  # fmt: skip
    text, page = str(found), found._repr_html_()
    said = {
        "claim": float(re.search(r"its claim of epsilon=([\d.]+)", text)[1]),
        "lower": float(re.search(r"is at least ([\d.]+)", text)[1]),
        "reach": float(re.search(r"most that so many runs can prove</t[hd]><td[^>]*>([\d.inf]+)", page)[1]),
    }
    assert said["claim"] >= claim and said["lower"] <= lower and said["reach"] <= reach
    assert f"{said['lower']:g} at 95%" in page and f"{said['claim']:g} at δ" in page
