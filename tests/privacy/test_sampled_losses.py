"""Many sampled Gaussians: both bounds hold against dp-accounting, and are quick for any rate, noise and steps."""

import math
import time

import dp_accounting as dp
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

from skfairdp.privacy import (
    GaussianDpEvent,
    PoissonSampledDpEvent,
    ReplaceSampledGaussian,
    calibrate_noise,
    compose,
    epsilon_of,
    gdp_epsilon,
    repeat,
)
from tests._tools.inside import SecondOpinion, inclusion_epsilon, losses_epsilon

DELTA = 1e-5
SETTINGS = [
    (0.8, 2.0, 25), (0.8, 0.3, 25), (0.0667, 4.5, 300), (0.005, 1.4, 3907), (0.005, 0.5, 400), (0.3, 0.8, 7),
    (0.01, 30.0, 2000), (0.005, 0.131, 3907),
]  # fmt: skip


def composed(q, noise, steps, *, pessimistic=True):
    """dp-accounting's losses; the optimistic ones give a δ that is below the truth."""
    grid = (0.5 / noise**2 + 9 / noise) / 6000
    one = pld.from_gaussian_mechanism(
        noise,
        sampling_prob=q,
        value_discretization_interval=grid,
        pessimistic_estimate=pessimistic,
        use_connect_dots=pessimistic,
    )
    return one.self_compose(steps)


@pytest.mark.covering
@pytest.mark.parametrize(("q", "noise", "steps"), SETTINGS)
@pytest.mark.parametrize("delta", [1e-3, 1e-7])
def test_losses_and_inclusions_lie_above_the_truth_and_losses_next_to_it(q, noise, steps, delta):
    below, above = composed(q, noise, steps, pessimistic=False), composed(q, noise, steps)
    for coarseness in (1, 4, 64):
        found = losses_epsilon([(q, noise, steps)], delta, coarseness)
        assert below.get_delta_for_epsilon(found) <= delta
        assert coarseness > 1 or found <= 1.01 * above.get_epsilon_for_delta(delta) + 1e-6
    assert below.get_delta_for_epsilon(inclusion_epsilon([(q, 1 / noise, steps)], delta)) <= delta


def test_a_plain_gaussian_costs_what_its_closed_form_says():
    for noise, steps in ((3.0, 50), (0.4, 5), (40.0, 1000)):
        exact = dp.get_epsilon_gaussian(noise / math.sqrt(steps), DELTA)
        for found in (
            losses_epsilon([(1.0, noise, steps)], DELTA),
            inclusion_epsilon([(1.0, 1 / noise, steps)], DELTA),
        ):
            assert exact * (1 - 1e-9) <= found <= 1.01 * exact


def test_releases_of_two_rates_and_a_gaussian_compose():
    parts = [(0.05, 1.1, 200), (0.2, 3.0, 20), (1.0, 5.0, 3)]
    grid = 2e-3
    laws = [
        pld.from_gaussian_mechanism(noise, sampling_prob=q, value_discretization_interval=grid).self_compose(steps)
        for q, noise, steps in parts
    ]
    together = laws[0].compose(laws[1]).compose(laws[2]).get_epsilon_for_delta(DELTA)
    assert 0.995 * together <= losses_epsilon(parts, DELTA) <= 1.01 * together


def test_one_step_follows_the_hockey_stick_in_closed_form():
    """A single step, in both directions, against its density integrated on a fine line."""
    for q, noise in ((0.3, 0.7), (0.01, 0.4), (0.9, 5.0)):
        x = np.linspace(-12 * noise, 1 + 12 * noise, 400_001)
        plain = np.exp(-(x**2) / 2 / noise**2)
        mixed = (1 - q) * plain + q * np.exp(-((x - 1) ** 2) / 2 / noise**2)
        total = plain.sum()
        found = losses_epsilon([(q, noise, 1)], DELTA)
        for one, other in ((mixed, plain), (plain, mixed)):
            assert np.maximum(one - math.exp(found) * other, 0).sum() / total <= DELTA * (1 + 1e-6)


@pytest.mark.covering
@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 1e2, 1e4, 1e5, 1e6, 1e9])
@pytest.mark.parametrize(("q", "steps"), [(0.8, 25), (0.005, 3907), (1e-5, 195313)])
def test_any_accepted_epsilon_has_a_noise_that_costs_no_more(q, steps, epsilon):
    def event_at(noise):
        return repeat(PoissonSampledDpEvent(q, GaussianDpEvent(noise)), steps)

    noise = calibrate_noise(event_at, epsilon, DELTA, rtol=0.02)
    assert 0.95 * epsilon <= epsilon_of(event_at(noise), DELTA) <= epsilon


def test_noise_of_a_large_epsilon_is_found_at_once():
    """Twenty rows in batches of 16, ε = 1e5, which once had no answer: a few times what ε = 10 takes."""

    def seconds(epsilon):
        start = time.perf_counter()
        calibrate_noise(lambda s: repeat(PoissonSampledDpEvent(0.8, GaussianDpEvent(s)), 25), epsilon, DELTA)
        return time.perf_counter() - start

    seconds(10.0)
    assert seconds(1e5) < 10 * seconds(11.0)


@pytest.mark.parametrize(
    ("rows", "batch", "epochs", "epsilon"),
    [(10**7, 512, 20, 1e-3), (10**8, 2048, 20, 1e-3), (10**8, 2048, 20, 1e-2), (10**6, 512, 1, 1e-2)],
)
def test_steps_of_large_tables_and_small_epsilon_take_the_noise_of_the_central_limit(rows, batch, epochs, epsilon):
    """A step loses less than the finest grid of dp-accounting, whose rounding once asked for twelve times the noise."""
    q, steps = batch / rows, -(-epochs * rows // batch)
    noise = calibrate_noise(lambda s: repeat(PoissonSampledDpEvent(q, GaussianDpEvent(s)), steps), epsilon, DELTA)
    mu = q * math.sqrt(steps * math.expm1(noise**-2))
    assert 0.95 * epsilon <= gdp_epsilon(mu, DELTA) <= epsilon


@pytest.mark.parametrize("noise", [1e-3, 1e-2, 0.05, 0.2])
def test_epsilon_falls_with_the_noise_where_one_bound_hands_over_to_the_other(noise):
    event = [repeat(PoissonSampledDpEvent(0.1, GaussianDpEvent(scale * noise)), 100) for scale in (0.99, 1.01)]
    assert epsilon_of(event[0], DELTA) > epsilon_of(event[1], DELTA)


@pytest.mark.parametrize(
    "event",
    [
        repeat(PoissonSampledDpEvent(0.8, GaussianDpEvent(0.0113)), 25),
        repeat(PoissonSampledDpEvent(0.8, GaussianDpEvent(3.5e-3)), 25),
        repeat(PoissonSampledDpEvent(0.005, GaussianDpEvent(0.131)), 3907),
        compose(repeat(PoissonSampledDpEvent(0.05, GaussianDpEvent(0.03)), 300), repeat(GaussianDpEvent(0.5), 4)),
        repeat(ReplaceSampledGaussian(0.2, 2e-3), 40),
    ],
    ids=["1e5", "1e6", "1e3", "beside Gaussians", "replaced"],
)
def test_the_second_opinion_reaches_a_large_epsilon(event):
    claim = epsilon_of(event, DELTA)
    opinion = SecondOpinion(event).epsilon(DELTA, claim)
    assert 0.9 * claim <= opinion <= claim * (1 + 1e-9)


def test_a_record_that_is_hardly_ever_sampled_is_not_free():
    """One sampling at least is charged: δ alone would let a record through as it is."""
    event = PoissonSampledDpEvent(1e-6, GaussianDpEvent(1e-4))
    assert epsilon_of(event, DELTA) > 1e6


def test_the_second_opinion_of_inclusions_lies_above_the_truth():
    for q, noise, steps in SETTINGS:
        event = repeat(PoissonSampledDpEvent(q, GaussianDpEvent(noise)), steps)
        found = SecondOpinion(event)._inclusions(DELTA)
        assert composed(q, noise, steps, pessimistic=False).get_delta_for_epsilon(found) <= DELTA
