"""Private selection: its law, its accounting against vectors and dp-accounting, and what the winner really leaks."""

import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
from dp_accounting.rdp import RdpAccountant
from scipy.stats import beta, chisquare

from skfairdp import privacy as dp
from skfairdp.privacy import (
    NoiseSource,
    PrivateSelection,
    compose,
    epsilon_of,
    event_from_dict,
    event_to_dict,
    flatten,
    gdp_epsilon,
    rdp_of,
    rdp_to_epsilon,
    repeat,
)
from tests._tools.inside import selection_rdp, stopping_parameter

LAWS = ("logarithmic", "half", "geometric", "poisson")
SHAPE = {"logarithmic": 0.0, "half": 0.5, "geometric": 1.0, "poisson": math.inf}
KEY = {"logarithmic": "logarithmic_eta0", "half": "eta_half", "geometric": "geometric", "poisson": "poisson"}
#: The grid that the vectors were computed on.
ORDERS = np.array([*np.arange(1.25, 10.01, 0.25), *range(11, 64), *range(64, 513, 8)], dtype=float)
VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "private_selection.json").read_text())["vectors"]


# ---- accounting ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("vector", VECTORS)
def test_reference_vectors(law, vector):
    rdp = selection_rdp(ORDERS, ORDERS / 200, vector["expected_trials"], SHAPE[law], ORDERS, ORDERS / 200)
    assert rdp_to_epsilon(ORDERS, rdp, vector["delta"]) == pytest.approx(vector[KEY[law]], abs=1e-6)
    event = PrivateSelection(dp.GaussianDpEvent(10.0), vector["expected_trials"], law).event
    assert epsilon_of(event, vector["delta"]) == pytest.approx(vector[KEY[law]], rel=1e-3)
    assert epsilon_of(event, vector["delta"]) <= vector[KEY[law]] + 1e-6  # on a finer grid of orders


@pytest.mark.parametrize("vector", VECTORS)
def test_showing_one_run_or_all_ten_costs_what_the_vectors_say(vector):
    assert rdp_to_epsilon(ORDERS, ORDERS / 200, vector["delta"]) == pytest.approx(vector["base_epsilon"], abs=1e-6)
    assert gdp_epsilon(math.sqrt(10) / 10, vector["delta"]) == pytest.approx(vector["release_all_ten"], abs=1e-6)


@pytest.mark.parametrize("shape", [0.0, 0.5, 1.0, 3.0, math.inf])
@pytest.mark.parametrize("mean", [1.5, 10.0, 200.0])
@pytest.mark.parametrize("base", [dp.GaussianDpEvent(4.0), dp.PoissonSampledDpEvent(0.01, dp.GaussianDpEvent(1.0))])
def test_equal_to_dp_accountings_bound_for_repeat_and_select(shape, mean, base):
    orders = [2.0, 3.0, 5.0, 8.0, 16.0, 32.0, 64.0]  # whole numbers: elsewhere dp-accounting interpolates
    event = dp.RepeatAndSelectDpEvent(base, mean, shape)
    theirs = RdpAccountant(orders=orders).compose(event).get_epsilon(1e-5)
    grid = np.array(orders)
    one_run = rdp_of(base, grid)
    ours = rdp_to_epsilon(grid, selection_rdp(grid, one_run, mean, shape, grid, one_run), 1e-5)
    assert ours == pytest.approx(theirs, rel=1e-6)
    assert epsilon_of(event, 1e-5) <= theirs * (1 + 1e-6)


@pytest.mark.parametrize(("shape", "gamma"), [(0.0, 0.026918), (0.5, 0.0625), (1.0, 0.1)])
def test_stopping_parameters_of_ten_trials(shape, gamma):
    assert stopping_parameter(10, shape) == pytest.approx(gamma, abs=1e-6)


@pytest.mark.parametrize("order", [2.0, 3.0, 7.0, 31.0])
@pytest.mark.parametrize(("q", "noise"), [(0.01, 1.0), (0.2, 0.6), (0.05, 4.0)])
def test_divergences_of_sampled_gaussians(q, noise, order):
    event = dp.PoissonSampledDpEvent(q, dp.GaussianDpEvent(noise))
    theirs = RdpAccountant(orders=[order]).compose(event).get_epsilon(1e-9)
    assert rdp_to_epsilon([order], rdp_of(event, np.array([order])), 1e-9) == pytest.approx(theirs, rel=1e-6)
    # Records that change contributions cost more than records that come and go, and less than both moves at once.
    replaced = rdp_of(dp.ReplaceSampledGaussian(q, noise), np.array([order]))[0]
    assert rdp_of(event, np.array([order]))[0] < replaced


def test_replaced_contributions_cost_what_the_monte_carlo_integral_says():
    q, noise, order = 0.1, 1.5, 3.0
    rng = np.random.default_rng(0)
    x = rng.normal(0, noise, 2_000_000) - np.where(rng.random(2_000_000) < q, 1.0, 0.0)  # from the mixture with -1

    def density(mean):
        return (1 - q) * np.exp(-(x**2) / (2 * noise**2)) + q * np.exp(-((x - mean) ** 2) / (2 * noise**2))

    measured = math.log(np.mean((density(1.0) / density(-1.0)) ** order)) / (order - 1)
    assert rdp_of(dp.ReplaceSampledGaussian(q, noise), np.array([order]))[0] == pytest.approx(measured, rel=0.01)


@pytest.mark.parametrize("order", [1.5, 2.0, 10.0])
def test_divergence_of_the_laplace_mechanism(order):
    theirs = RdpAccountant(orders=[order]).compose(dp.LaplaceDpEvent(0.7)).get_epsilon(1e-9)
    ours = rdp_to_epsilon([order], rdp_of(dp.LaplaceDpEvent(0.7), np.array([order])), 1e-9)
    assert ours == pytest.approx(theirs, rel=1e-9)


def test_pure_costs_of_a_selection():
    base = dp.RandomizedResponseDpEvent(2 / (1 + math.e), 2)  # ε = 1
    for law, factor in (("logarithmic", 2.0), ("half", 2.5), ("geometric", 3.0)):
        event = PrivateSelection(base, 50.0, law).event
        assert epsilon_of(event, 0) == pytest.approx(factor, rel=1e-9)  # Liu & Talwar's 3 ε for the geometric law
    with pytest.raises(ValueError, match="delta=0"):
        epsilon_of(PrivateSelection(base, 50.0, "poisson").event, 0)


def test_selections_compose_with_other_releases():
    selection = PrivateSelection(dp.GaussianDpEvent(10.0), 10.0).event
    alone, both = epsilon_of(selection, 1e-5), epsilon_of(compose(selection, dp.GaussianDpEvent(10.0)), 1e-5)
    assert alone < both < alone + gdp_epsilon(0.1, 1e-5)
    bits = PrivateSelection(repeat(dp.ThresholdBit(100, 60.0, 50.0), 20), 5.0).event
    assert epsilon_of(bits.event, 1e-5) < epsilon_of(bits, 1e-5) < 3 * epsilon_of(bits.event, 1e-5)
    assert epsilon_of(PrivateSelection(dp.NonPrivateDpEvent(), 5.0).event, 1e-5) == math.inf
    assert PrivateSelection(dp.GaussianDpEvent(1.0), 1.0).event == dp.GaussianDpEvent(1.0)


def test_events_survive_json_and_equal_trees_are_one_release():
    event = compose(
        dp.RepeatAndSelectDpEvent(
            dp.ComposedDpEvent([dp.GaussianDpEvent(2.0), dp.GaussianDpEvent(3.0)]), 5.0, math.inf
        ),
        dp.WorstOf([dp.GaussianDpEvent(2.0), dp.LaplaceDpEvent(4.0)]),
    )
    stored = json.loads(json.dumps(event_to_dict(event), allow_nan=False))
    assert flatten(event_from_dict(stored)) == flatten(event)
    twice = compose(
        dp.RepeatAndSelectDpEvent(compose(dp.GaussianDpEvent(2.0), dp.GaussianDpEvent(3.0)), 5.0, 0.0),
        dp.RepeatAndSelectDpEvent(compose(dp.GaussianDpEvent(3.0), dp.GaussianDpEvent(2.0)), 5.0, 0.0),
    )
    assert list(flatten(twice).values()) == [2]


# ---- worst case ----------------------------------------------------------------------------------------------
def test_worst_case_is_the_larger_and_of_equal_ones_either():
    small, large = dp.GaussianDpEvent(20.0), dp.GaussianDpEvent(5.0)
    assert epsilon_of(dp.WorstOf([small, large]), 1e-5) == epsilon_of(large, 1e-5)
    assert flatten(dp.WorstOf([small, small])) == {small: 1}
    assert epsilon_of(compose(dp.WorstOf([small, large]), small), 1e-5) == epsilon_of(compose(large, small), 1e-5)


def test_worst_case_of_unlike_kinds_is_above_each_of_them():
    options = [dp.PoissonSampledDpEvent(0.02, dp.GaussianDpEvent(1.0)), dp.GaussianDpEvent(6.0), dp.LaplaceDpEvent(3.0)]
    options = [repeat(option, 20) for option in options]
    worst = epsilon_of(dp.WorstOf(options), 1e-5)
    assert worst >= max(epsilon_of(option, 1e-5) for option in options)
    assert epsilon_of(repeat(dp.WorstOf(options), 2), 1e-5) >= max(epsilon_of(repeat(o, 2), 1e-5) for o in options)


def test_sampled_gaussians_in_a_worst_case_keep_the_tight_accountant():
    fit = repeat(dp.PoissonSampledDpEvent(0.02, dp.GaussianDpEvent(1.0)), 100)
    assert epsilon_of(dp.WorstOf([fit, dp.GaussianDpEvent(30.0)]), 1e-5) == epsilon_of(fit, 1e-5)


def test_an_empty_worst_case_is_an_error():
    with pytest.raises(ValueError, match="not empty"):
        dp.WorstOf([])


# ---- the law of the number of trials -------------------------------------------------------------------------
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("mean", [1.5, 10.0])
def test_numbers_of_trials_follow_their_law(law, mean):
    selection = PrivateSelection(dp.GaussianDpEvent(1.0), mean, law)
    mass = selection.probabilities()
    assert mass.sum() == pytest.approx(1, abs=1e-12)
    assert np.arange(len(mass)) @ mass == pytest.approx(mean, rel=1e-9)
    assert (mass[0] > 0) == (law == "poisson")
    drawn = selection.draw(NoiseSource(seed=3), 100_000)
    observed = np.bincount(drawn, minlength=len(mass))
    assert len(observed) == len(mass)

    def chi_squared(probabilities):
        expected = 100_000 * probabilities
        kept = expected >= 10
        pool = np.r_[observed[kept], observed[~kept].sum()], np.r_[expected[kept], expected[~kept].sum()]
        return chisquare(pool[0], pool[1] * pool[0].sum() / pool[1].sum()).pvalue

    assert chi_squared(mass) > 1e-3
    other = PrivateSelection(dp.GaussianDpEvent(1.0), 1.2 * mean, law).probabilities()
    other = np.pad(other, (0, max(0, len(mass) - len(other))))[: len(mass)]
    assert chi_squared(other) < 1e-3  # the test has the power to see a mean that is off by a fifth


def test_masses_are_those_of_the_definition():
    gamma, eta = 0.0625, 0.5
    k = np.arange(1, 30)
    product = np.cumprod([(j + eta) / (j + 1) for j in range(30)])[k - 1]
    expected = (1 - gamma) ** k / (gamma**-eta - 1) * product
    np.testing.assert_allclose(PrivateSelection(dp.GaussianDpEvent(1.0), 10.0, "half").probabilities()[k], expected)


def test_trials_are_drawn_from_the_operating_system(monkeypatch):
    asked = []
    real = os.urandom
    monkeypatch.setattr(os, "urandom", lambda n: (asked.append(n), real(n))[1])
    PrivateSelection(dp.GaussianDpEvent(1.0), 10.0).draw(NoiseSource(), 5)
    assert asked == [40]


@pytest.mark.parametrize(
    "arguments", [{"mean": 0.5}, {"mean": math.inf}, {"mean": 2.0, "trial_distribution": "binomial"}]
)
def test_impossible_selections_are_errors(arguments):
    with pytest.raises(ValueError, match="PrivateSelection"):
        PrivateSelection(dp.GaussianDpEvent(1.0), **arguments)


def test_the_best_trial_wins_and_nan_never_does():
    scores = iter([math.nan, 1.0, 3.0, 3.0, 2.0] + [0.0] * 10_000)
    trials = []

    def trial():
        score = next(scores)
        trials.append(score)
        return score, len(trials)

    class Fixed(PrivateSelection):
        def draw(self, source, size=1):
            return np.array([5])

    assert Fixed(dp.GaussianDpEvent(1.0), 5.0).select(trial, NoiseSource()) == 3  # of equal scores, the first
    assert PrivateSelection(dp.GaussianDpEvent(1.0), 1.0).select(lambda: (math.nan, "only"), NoiseSource()) == "only"


# ---- end to end ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("law", "cuts"), [("logarithmic", (-3.83, 6.33)), ("geometric", (-2.58, 5.92))])
def test_what_the_winner_leaks_is_below_what_is_stated_and_within_a_factor_of_two(law, cuts):
    """A toy model: one number, released with Gaussian noise; neighbours move it by 1.

    Its score prefers values below one cut, and else those above another. "The winner lies above" is then likelier where
    the number is larger twice over: the value itself is, and what would have beaten it is rarer. The cuts were chosen
    by the law's generating function; the probability of the event is measured on both neighbours over whole selections,
    and bounded at confidence .9999.
    """
    noise, mean, delta, runs = 2.0, 30.0, 1e-2, 100_000
    selection = PrivateSelection(dp.GaussianDpEvent(noise), mean, law)
    stated = epsilon_of(selection.event, delta)

    def score(value):
        return np.where(value < cuts[0], 2, np.where(value > cuts[1], 1, 0))

    def share_of_winners_above(centre, seed):
        source, best = NoiseSource(seed), np.full(runs, -1)
        trials = selection.draw(source, runs)
        for k in range(1, int(trials.max()) + 1):  # all selections at once, trial by trial
            going = np.flatnonzero(trials >= k)
            best[going] = np.maximum(best[going], score(centre + noise * source.normal(len(going))))
        return int(np.sum(best == 1))

    hits, misses = share_of_winners_above(1.0, 1), share_of_winners_above(0.0, 2)
    likely, unlikely = beta.ppf(1e-4, hits, runs - hits + 1), beta.ppf(1 - 1e-4, misses + 1, runs - misses)
    found = math.log((likely - delta) / unlikely)
    assert stated / 2 <= found <= stated


def test_one_selection_is_the_loop_the_simulation_stands_for():
    selection, source = PrivateSelection(dp.GaussianDpEvent(2.0), 6.0), NoiseSource(5)
    values = np.array([selection.select(lambda: (v := float(source.normal()[0]), v), source) for _ in range(3000)])
    # P[winner ≤ x] = G(Φ(x)), with the generating function of the law: at the median of the noise it is G(1/2).
    mass = selection.probabilities()
    expected = float(mass @ 0.5 ** np.arange(len(mass)))
    assert np.mean(values <= 0) == pytest.approx(expected, abs=4 * math.sqrt(0.25 / 3000))
