"""Gaussian privacy at the edges of its range: no noise, no cost, every δ that a float can be, and its filter."""

import math

import mpmath
import pytest

from skfairdp import BudgetExceededError
from skfairdp.privacy import GDPFilter, gdp_delta, gdp_epsilon, gdp_mu


def exact_delta(epsilon, mu):
    """Corollary 1 of Dong, Roth & Su (2022), with 60 digits."""
    with mpmath.workdps(60):
        epsilon, mu = mpmath.mpf(epsilon), mpmath.mpf(mu)
        return mpmath.ncdf(-epsilon / mu + mu / 2) - mpmath.exp(epsilon) * mpmath.ncdf(-epsilon / mu - mu / 2)


@pytest.mark.parametrize("mu", [1e-6, 0.01, 0.5, 3.0, 30.0])
@pytest.mark.parametrize("epsilon", [0.0, 1e-9, 0.3, 5.0, 200.0])
def test_delta_is_rounded_up_and_hardly(epsilon, mu):
    exact, found = exact_delta(epsilon, mu), gdp_delta(epsilon, mu)
    assert found >= exact
    if exact > 1e-290:
        assert found <= exact * (1 + mpmath.mpf("1e-6")) + mpmath.mpf("1e-15")


def test_what_costs_nothing_and_what_has_no_noise():
    assert gdp_delta(0.0, 0.0) == 0.0 and gdp_epsilon(0.0, 1e-5) == 0.0
    assert gdp_delta(5.0, math.inf) == 1.0 and gdp_epsilon(math.inf, 1e-5) == math.inf
    assert gdp_mu(math.inf, 1e-5) == math.inf
    assert gdp_epsilon(1e-9, 0.5) == 0.0  # the δ alone covers it


def test_a_negative_epsilon_and_an_infinite_one():
    assert gdp_delta(-1.0, 0.0) == pytest.approx(-math.expm1(-1.0))
    assert gdp_delta(math.inf, 2.0) == 0.0 and gdp_delta(-math.inf, 2.0) == 1.0
    assert gdp_delta(-0.5, 1.0) >= exact_delta(-0.5, 1.0)


def test_a_delta_below_every_float_is_not_taken_for_zero():
    assert 0 < gdp_delta(1e5, 0.5) <= math.ulp(0.0)


@pytest.mark.parametrize("delta", [1e-300, 1e-12, 0.3, 0.999])
@pytest.mark.parametrize("epsilon", [0.0, 1e-6, 0.7, 40.0])
def test_mu_and_epsilon_undo_each_other_on_the_safe_side(epsilon, delta):
    mu = gdp_mu(epsilon, delta)
    assert gdp_epsilon(mu, delta) <= epsilon
    if epsilon > 0:
        assert gdp_epsilon(mu, delta) >= epsilon * (1 - 1e-4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gdp_epsilon(1.0, 0.0), "delta must be a float in the range"),
        (lambda: gdp_epsilon(1.0, 1.0), "delta must be a float in the range"),
        (lambda: gdp_epsilon(math.nan, 1e-5), "mu must be at least 0"),
        (lambda: gdp_epsilon(-1.0, 1e-5), "mu must be at least 0"),
        (lambda: gdp_mu(-1.0, 1e-5), "epsilon must be at least 0"),
        (lambda: gdp_mu(math.nan, 1e-5), "epsilon must be at least 0"),
        (lambda: gdp_mu(1.0, 2.0), "delta must be a float in the range"),
        (lambda: gdp_delta(math.nan, 1.0), "epsilon must be a number"),
        (lambda: gdp_delta(1.0, -1.0), "mu at least 0"),
        (lambda: GDPFilter(0.0), "'mu' parameter of GDPFilter"),
        (lambda: GDPFilter(math.inf), "'mu' parameter of GDPFilter"),
    ],
)
def test_impossible_arguments_are_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_filter_lets_through_exactly_the_square_of_its_cap():
    cap = GDPFilter(0.5)
    for _ in range(4):
        cap.spend(0.0625)
    assert cap.remaining == 0.0 and cap.fits(0.0) and not cap.fits(math.ulp(0.0))
    for refused, error in (
        (1e-300, BudgetExceededError), (math.inf, BudgetExceededError), (-0.1, ValueError), (math.nan, ValueError),
    ):  # fmt: skip
        assert not cap.fits(refused)
        with pytest.raises(error):
            cap.spend(refused)
    assert cap.remaining == 0.0  # what was refused is not counted
