"""The quick paths of the accountant give what the slow, obvious ones give."""

import numpy as np
import pytest

from skfairdp.privacy import (
    RDP_ORDERS,
    ArgmaxBit,
    DiscreteGaussian,
    GaussianDpEvent,
    ThresholdBit,
    compose,
    epsilon_of,
    rdp_of,
    rdp_to_epsilon,
    repeat,
)
from skfairdp.privacy._divergences import _discrete_gaussian_tails

EVENTS = {
    "few strong thresholds": repeat(ThresholdBit(40, 24.0, 3.0), 5),
    "many weak thresholds": repeat(ThresholdBit(250, 150.0, 4000.0), 2000),
    "argmax, discrete": repeat(ArgmaxBit(100, 60.0, "discrete_gaussian"), 300),
    "one argmax, nearly noiseless": ArgmaxBit(30, 0.5),
    "both bits": compose(repeat(ThresholdBit(99, 60.0, 80.0), 500), repeat(ArgmaxBit(99, 99.0, restricted=True), 300)),
    "discrete Gaussian": repeat(DiscreteGaussian(50.0), 400),
    "bits beside noise": compose(repeat(ThresholdBit(20, 11.0, 9.0, "discrete_gaussian"), 40), GaussianDpEvent(2.0)),
}


@pytest.mark.parametrize("delta", [1e-2, 1e-5, 1e-12])
@pytest.mark.parametrize("name", EVENTS)
def test_coarse_search_over_orders_finds_the_smallest_epsilon_of_the_whole_grid(name, delta):
    event = EVENTS[name]
    of_all_orders = rdp_to_epsilon(RDP_ORDERS, rdp_of(event, RDP_ORDERS), delta)
    assert epsilon_of(event, delta, accountant="rdp") == pytest.approx(of_all_orders, rel=1e-12)


@pytest.mark.parametrize(("sigma", "low", "high"), [(0.7, -12, 9), (3.0, -30, 40), (3.0, -150, 160), (60.0, -40, 80)])
@pytest.mark.parametrize("difference", [False, True])
def test_discrete_gaussian_tails_match_plain_sums_with_a_wider_exponent(sigma, low, high, difference):
    if np.finfo(np.longdouble).minexp > -16000:
        pytest.skip("needs a long double in which exp(-5000) is not zero")
    reach = max(abs(low), abs(high)) + int(15 * sigma)
    x = np.arange(-reach, reach + 1)
    mass = np.exp(-(np.longdouble(x) ** 2) / (2 * np.longdouble(sigma) ** 2))
    if difference:  # of two independent draws, by the convolution that defines it
        mass = np.convolve(mass, mass, mode="same")
    mass /= mass.sum()
    expected_above = np.log(mass[::-1].cumsum()[::-1])[low + reach : high + reach + 1]
    expected_below = np.log(mass.cumsum())[low + reach - 1 : high + reach]
    above, below = _discrete_gaussian_tails(sigma, low, high, difference=difference)
    np.testing.assert_allclose(above, expected_above.astype(float), rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(below, expected_below.astype(float), rtol=1e-11, atol=1e-13)
