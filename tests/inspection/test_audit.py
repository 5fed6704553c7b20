"""Audits: lower bounds stay below the truth as often as they say, and see noise that is too small."""

import dataclasses
import math

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom

from skfairdp.inspection import audit_count_statistic, audit_matched_filter
from skfairdp.papers import NonPrivateDiagnostic, pate_data_dependent_epsilon
from skfairdp.privacy import (
    GaussianMechanism,
    GNMax,
    NoiseSource,
    bit_deltas,
    gdp_epsilon,
    smooth_sensitivity_release,
    smooth_sensitivity_release_cost,
)
from tests._tools.formulas import noise_scale_interval
from tests._tools.inside import data_dependent_rdp, log_q, smooth_sensitivity
from tests._tools.sources import recording_noise

DELTA = 1e-5
# The two-world audit of GNMax: 200 answers, sigma 40, votes (51, 50) against (50, 51).
N_QUERIES, SIGMA, N_RUNS = 200, 40.0, 2000


def count_mu(sigma):
    """μ of the count of label 1, exactly: a binomial count whose probability moves with the canary."""
    p = ndtr(1 / (math.sqrt(2) * sigma))
    return N_QUERIES * (2 * p - 1) / math.sqrt(N_QUERIES * p * (1 - p))


def transcripts(sigma, rng, n_runs=N_RUNS):
    """Answers to exchangeable queries; which query carried label 1 is irrelevant, so runs are drawn by count."""
    p = ndtr(1 / (math.sqrt(2) * sigma))
    counts = binom.rvs(N_QUERIES, [[1 - p], [p]], size=(2, n_runs), random_state=rng)
    return (np.arange(N_QUERIES) < counts[..., None]).astype(int)


def share(flags):
    flags = np.asarray(flags)
    return flags.mean(), math.sqrt(max(flags.mean() * (1 - flags.mean()), 0.25 / flags.size) / flags.size)


# ---------------------------------------------------------------- coverage


@pytest.mark.covering
@pytest.mark.parametrize("mu", [0.0, 0.4, 1.0, 3.0])
@pytest.mark.parametrize(("n_0", "n_1"), [(200, 200), (20, 60)])
def test_gdp_limits_hold_in_exactly_the_nominal_share_of_repetitions(mu, n_0, n_1):
    rng = np.random.default_rng(7)
    results = [
        audit_matched_filter(rng.normal(size=n_0), rng.normal(loc=mu, size=n_1), confidence=0.9) for _ in range(1500)
    ]
    covered, error = share([result.mu_lower <= mu for result in results])
    assert abs(covered - 0.9) <= 4 * error
    covered, error = share([result.mu_upper >= mu for result in results])
    # Limits are cut at 0, so at mu = 0 the upper one always covers.
    assert abs(covered - 0.9) <= 4 * error if mu else covered == 1.0


@pytest.mark.parametrize("method", ["gdp", "clopper_pearson"])
def test_the_certified_epsilon_of_gnmax_is_never_passed_by_its_audit(method):
    rng = np.random.default_rng(1)
    certified = gdp_epsilon(math.sqrt(2 * N_QUERIES) / SIGMA, DELTA)
    assert certified == pytest.approx(1.993091, abs=1e-6)
    found = [audit_count_statistic(*transcripts(SIGMA, rng), method=method).epsilon_lower(DELTA) for _ in range(40)]
    assert max(found) <= certified


def test_distribution_free_bound_holds_for_randomised_response():
    # Pure ε: the attacker's likelihood ratio reaches e^ε exactly, so nothing is lost but the confidence.
    epsilon, rng = 1.0, np.random.default_rng(2)
    p = math.exp(epsilon) / (1 + math.exp(epsilon))
    found = []
    for _ in range(300):
        worlds = rng.random(1000) < 1 - p, rng.random(1000) < p
        found.append(audit_matched_filter(*worlds, method="clopper_pearson").epsilon_lower(0.0))
    covered, error = share(np.array(found) <= epsilon)
    assert covered >= 0.95 - 4 * error
    assert np.median(found) >= 0.7 * epsilon


@pytest.mark.slow
def test_choosing_the_threshold_does_not_bias_the_distribution_free_bound():
    # Equal worlds at a threshold fixed by other runs: both limits (97.5 % each) fail together in one direction with
    # probability P(N > 1.96 sqrt 2) = .0028. A threshold judged on the runs that chose it fails ten times as often.
    rng = np.random.default_rng(11)
    results = [
        audit_matched_filter(rng.normal(size=400), rng.normal(size=400), method="clopper_pearson") for _ in range(500)
    ]
    assert np.mean([result.epsilon_lower(0.0) > 0 for result in results]) <= 0.0028 + 4 * math.sqrt(0.0028 / 500)


def test_distribution_free_bound_sees_a_rare_total_failure_the_gaussian_one_does_not_certify():
    # With probability 0.2 the canary's presence is published outright: no ε at δ = 1e-5 covers that, and the mean
    # shift alone is small.
    rng = np.random.default_rng(3)
    without = rng.normal(size=4000)
    with_canary = np.where(rng.random(4000) < 0.2, 5.0, rng.normal(size=4000))
    free = audit_matched_filter(without, with_canary, method="clopper_pearson")
    assert free.epsilon_lower(DELTA) > 3.0
    fpr, fnr = free.error_rates
    assert fpr < 0.01
    assert 0.75 < fnr < 0.85


# ---------------------------------------------------------------- figures


def test_count_statistic_reaches_the_exact_bit_value():
    exact = count_mu(SIGMA)
    assert exact == pytest.approx(math.sqrt(2 / math.pi) * 0.5, rel=2e-3)  # .399
    rng = np.random.default_rng(0)
    results = [audit_count_statistic(*transcripts(SIGMA, rng)) for _ in range(100)]
    standard_error = math.sqrt(2 / N_RUNS)
    assert np.mean([r.mu_hat for r in results]) == pytest.approx(exact, abs=4 * standard_error / 10)
    # One standard error below at 95 %: lower = exact - 1.645 * .0316 in the median.
    assert np.median([r.mu_lower for r in results]) == pytest.approx(exact - 1.66 * standard_error, abs=0.015)
    reached = np.median([r.epsilon_lower(DELTA) for r in results]) / 1.993091
    assert 0.6 <= reached <= 0.8


def test_lower_limit_of_the_published_run_is_reproduced():
    # mu_hat = .452 from 2000 + 2000 runs: lower limit .399, hence ε >= 1.55 where 1.99 is accounted.
    half = N_RUNS // 2
    scores = np.concatenate([np.full(half, -1.0), np.full(half, 1.0)]) * math.sqrt((2 * N_RUNS - 2) / (2 * N_RUNS))
    result = audit_matched_filter(scores, scores + 0.452)
    assert result.mu_hat == pytest.approx(0.452, rel=1e-12)
    assert result.mu_lower == pytest.approx(0.399, abs=1e-3)
    assert result.epsilon_lower(DELTA) == pytest.approx(1.55, abs=0.01)


def test_distribution_free_audit_of_gnmax_is_valid_and_weak():
    rng = np.random.default_rng(4)
    found = [
        audit_count_statistic(*transcripts(SIGMA, rng), method="clopper_pearson").epsilon_lower(DELTA)
        for _ in range(60)
    ]
    assert 0.15 <= np.median(found) <= 0.5


@pytest.mark.parametrize(("n_runs", "quoted"), [(1000, 4.006), (200, 3.537)])
def test_matched_filter_reaches_the_quoted_share_of_epsilon(n_runs, quoted):
    rng = np.random.default_rng(5)
    found = [
        audit_matched_filter(rng.normal(size=n_runs), rng.normal(loc=1.0, size=n_runs)).epsilon_lower(DELTA)
        for _ in range(200)
    ]
    exact = gdp_epsilon(1.0, DELTA)
    assert exact == pytest.approx(4.377178, abs=1e-6)
    # The quoted medians come from fewer repetitions.
    assert np.median(found) == pytest.approx(quoted, abs=0.06)


# ---------------------------------------------------------------- power, two-sided


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("factor", "least", "most"),
    [(1.0, 0.0, 0.12), (1.1, 0.25, 0.52), (1.2, 0.7, 0.92), (math.sqrt(2), 0.97, 1.0), (1.5, 0.97, 1.0)],
)
def test_power_to_refute_a_sigma_smaller_than_declared(factor, least, most):
    rng = np.random.default_rng(6)
    declared = count_mu(SIGMA)
    refuted = [audit_count_statistic(*transcripts(SIGMA / factor, rng)).refutes(declared) for _ in range(100)]
    assert least <= np.mean(refuted) <= most


@pytest.mark.parametrize(("factor", "seen"), [(1.0, False), (1.5, True)])
def test_a_sigma_larger_than_declared_is_seen_from_above(factor, seen):
    rng = np.random.default_rng(8)
    below = [audit_count_statistic(*transcripts(SIGMA * factor, rng)).mu_upper < count_mu(SIGMA) for _ in range(60)]
    assert np.mean(below) > 0.95 if seen else np.mean(below) < 0.15


def test_audit_of_the_packages_gnmax_agrees_with_its_exact_bit():
    mechanism = GNMax(sigma=4.0, n_teachers=21, n_classes=2)
    worlds = [
        np.array([[mechanism.release(votes, source) for _ in range(10)] for _ in range(700)])
        for votes, source in (([11, 10], NoiseSource(seed=0)), ([10, 11], NoiseSource(seed=1)))
    ]
    result = audit_count_statistic(*worlds, confidence=0.999)
    p = ndtr(1 / (math.sqrt(2) * 4.0))
    exact = 10 * (2 * p - 1) / math.sqrt(10 * p * (1 - p))
    assert result.mu_lower <= exact <= result.mu_upper
    assert not result.refutes(math.sqrt(10 * mechanism.mu_squared))
    # The distribution-free rates against the exact hockey-stick curve of one such bit.
    one = audit_count_statistic(worlds[0].reshape(-1, 1), worlds[1].reshape(-1, 1), method="clopper_pearson")
    epsilon = one.epsilon_lower(0.0)
    assert epsilon > 0
    assert bit_deltas(mechanism.event, np.array([epsilon]))[0] > 0  # a smaller ε than the true one


def test_audit_of_the_packages_gaussian_mechanism_agrees_with_its_event():
    mechanism = GaussianMechanism(sigma=2.0, sensitivity=math.sqrt(2.0))
    canary = np.array([1.0, -1.0])
    releases = mechanism.release(np.zeros((3000, 2)), NoiseSource(seed=2)) @ canary
    moved = mechanism.release(np.zeros((3000, 2)) + canary, NoiseSource(seed=3)) @ canary
    result = audit_matched_filter(releases, moved, confidence=0.999)
    exact = 1 / mechanism.event.noise_multiplier
    assert result.mu_lower <= exact <= result.mu_upper
    assert result.mu_lower >= 0.8 * exact


# ---------------------------------------------------------------- noise scale


@pytest.mark.parametrize("factor", [2 / 3, 1.0, 1.5])
def test_noise_scale_interval_accepts_the_declared_sigma_only(factor):
    low, high = noise_scale_interval(factor * 40.0 * NoiseSource(seed=0).normal((100, 100)), confidence=0.999)
    assert (low <= 40.0 <= high) is (factor == 1.0)


def test_noise_scale_interval_has_the_stated_width_and_coverage():
    rng = np.random.default_rng(9)
    intervals = np.array([noise_scale_interval(rng.normal(size=500)) for _ in range(1000)])
    covered, error = share((intervals[:, 0] <= 1) & (intervals[:, 1] >= 1))
    assert abs(covered - 0.95) <= 4 * error
    low, high = noise_scale_interval(rng.normal(size=10_000))
    assert (high - low) / 2 == pytest.approx(0.0139, abs=5e-4)


def test_noise_scale_interval_counts_a_shift_as_a_wrong_scale():
    low, _ = noise_scale_interval(NoiseSource(seed=1).normal(10_000) + 0.5)
    assert low > 1.0


# ---------------------------------------------------------------- edges and errors


def test_worlds_without_any_noise_are_told_apart_and_equal_ones_are_not():
    result = audit_matched_filter(np.zeros(50), np.ones(50))
    assert result.mu_hat == math.inf
    assert result.mu_lower > 100
    assert result.mu_upper == math.inf
    same = audit_matched_filter(np.zeros(50), np.zeros(50))
    assert (same.mu_hat, same.mu_lower) == (0.0, 0.0)
    assert same.epsilon_lower(DELTA) == 0.0


def test_a_canary_pushing_the_other_way_proves_nothing():
    rng = np.random.default_rng(10)
    result = audit_matched_filter(rng.normal(loc=5.0, size=100), rng.normal(size=100))
    assert result.mu_hat < -4
    assert result.epsilon_lower(DELTA) == 0.0


def test_results_cannot_be_changed_afterwards():
    result = audit_matched_filter([0.0, 1.0], [0.0, 1.0])
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.mu_lower = 0.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: audit_count_statistic([0, 1], [0, 1]), "n_runs, n_queries"),
        (lambda: audit_count_statistic([[0, 1]] * 3, [[0]] * 3), "equal n_queries"),
        (lambda: audit_matched_filter([[0.0]], [[1.0]]), "n_runs"),
        (lambda: audit_matched_filter([0.0, np.nan], [1.0, 2.0]), "finite"),
        (lambda: audit_matched_filter([0.0], [1.0, 2.0]), "at least 2 runs"),
        (lambda: audit_matched_filter([0.0] * 7, [1.0] * 7, method="clopper_pearson"), "at least 8 runs"),
        (lambda: audit_matched_filter([0.0] * 9, [1.0] * 9, method="exact"), "method must be"),
        (lambda: audit_matched_filter([0.0] * 9, [1.0] * 9, confidence=1.0), "confidence must be"),
    ],
)
def test_malformed_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_delta_out_of_range_is_refused_by_both_methods():
    scores = np.arange(10.0), np.arange(10.0) + 3
    for method in ("gdp", "clopper_pearson"):
        with pytest.raises(ValueError, match="delta must be"):
            audit_matched_filter(*scores, method=method).epsilon_lower(1.0)


# ---------------------------------------------------------------- data-dependent diagnostic

VOTES = np.array([[230, 20], [200, 50], [240, 10]] * 50)


def test_diagnostic_is_marked_and_says_that_it_is_not_private():
    diagnostic = pate_data_dependent_epsilon(VOTES, sigma=40, delta=DELTA)
    assert isinstance(diagnostic, NonPrivateDiagnostic)
    assert diagnostic.private is False
    assert "computed from raw votes: not private, never publish" in repr(diagnostic)
    assert f"{diagnostic.epsilon:.6g}" in repr(diagnostic)
    with pytest.raises(dataclasses.FrozenInstanceError):
        diagnostic.epsilon = 0.0
    with pytest.raises((AttributeError, TypeError)):
        diagnostic.private = True
    assert diagnostic.release is None
    assert diagnostic.n_queries == 150


def test_diagnostic_is_the_summed_bound_converted_at_its_best_order():
    diagnostic = pate_data_dependent_epsilon(VOTES, sigma=40, delta=DELTA, orders=[5.0, 20.0, 30.0])
    by_hand = []
    for order in (5.0, 20.0, 30.0):
        rdp = data_dependent_rdp(log_q(VOTES, 40), 40, order).sum()
        # Canonne, Kamath & Steinke (2020), Proposition 12
        by_hand.append(rdp + math.log1p(-1 / order) - math.log(DELTA * order) / (order - 1))
    assert diagnostic.epsilon == pytest.approx(min(by_hand), rel=1e-9)
    assert diagnostic.epsilon_certified == pytest.approx(gdp_epsilon(math.sqrt(2 * 150) / 40, DELTA), rel=1e-12)
    assert diagnostic.epsilon < diagnostic.epsilon_certified


RELEASE = {"order": 3.0, "beta": 0.1, "sigma_ss": 12.0}


def test_the_diagnostic_releases_its_sum_with_noise_of_the_smooth_sensitivity():
    votes, sigma = [[18, 2], [20, 0]], 5.0
    smooth = smooth_sensitivity(votes, sigma, RELEASE["order"], RELEASE["beta"])
    true = data_dependent_rdp(log_q(votes, sigma), sigma, RELEASE["order"]).sum()
    with recording_noise(1):
        release = pate_data_dependent_epsilon(votes, sigma=sigma, delta=DELTA, **RELEASE).release
    assert release.rdp == pytest.approx(true + RELEASE["sigma_ss"] * smooth, abs=2.0**-40)
    assert release.rdp_cost == smooth_sensitivity_release_cost(RELEASE["order"], RELEASE["beta"], RELEASE["sigma_ss"])
    total, order = max(release.rdp, 0.0) + release.rdp_cost, RELEASE["order"]
    expected = total + math.log1p(-1 / order) - math.log(DELTA * order) / (order - 1)
    assert release.epsilon_estimate == pytest.approx(expected, rel=1e-9)
    fresh = {pate_data_dependent_epsilon(votes, sigma=sigma, delta=DELTA, **RELEASE).release.rdp for _ in "123"}
    assert len(fresh) == 3  # noise from the operating system, every time


def test_release_adds_noise_of_the_declared_scale():
    true, scale = 0.25, 0.004
    draws = (np.array([smooth_sensitivity_release(true, scale) for _ in range(600)]) - true) / scale
    assert len(np.unique(draws)) == len(draws)
    # Noise from the operating system: a confidence at which a right scale fails once in 10^9 runs.
    low, high = noise_scale_interval(draws, confidence=1 - 1e-9)
    assert low <= 1.0 <= high
    for wrong in (2 / 3, 3 / 2):
        low, high = noise_scale_interval(wrong * draws, confidence=1 - 1e-9)
        assert not low <= 1.0 <= high


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"delta": 0.0}, "delta must be"),
        ({"sigma": 0.0}, "sigma must be"),
        ({"orders": [1.0]}, "orders must be"),
        ({"order": 8.0}, "belong together"),
        ({"beta": 0.1, "sigma_ss": 1.0}, "belong together"),
        ({"order": 8.0, "beta": 0.1, "sigma_ss": 1.0}, "order must lie"),
    ],
)
def test_diagnostic_refuses_malformed_parameters(change, message):
    with pytest.raises(ValueError, match=message):
        pate_data_dependent_epsilon(VOTES, **({"sigma": 40, "delta": DELTA} | change))
