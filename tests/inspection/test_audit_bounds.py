"""The audits from one run, from counts and from records: valid under what they assume, and strong enough to accuse."""

import math
from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.special import ndtr, ndtri
from scipy.stats import binom

from skfairdp.inspection import (
    audit_count_statistic,
    audit_known_shift,
    audit_matched_filter,
    audit_one_run,
    audit_one_run_f_dp,
    audit_one_run_gaussian,
)
from skfairdp.inspection._audit import _needed, _parameter_lower, _refuted
from skfairdp.privacy import gdp_epsilon, gdp_mu
from tests._tools.inside import bits_delta, bits_epsilon, rates_epsilon, rates_of_band

DELTA = 1e-5
#: How often an audit is repeated: in ``make test``, and in ``make test-all`` as well.
repeated = pytest.mark.parametrize("repeats", [150, pytest.param(600, marks=pytest.mark.slow)])
FACTORS = pytest.mark.parametrize("factor", [1.2, 2**0.5, 2.0])


def share_above(found, truth):
    return float(np.mean(np.asarray(found) > truth))


# ---------------------------------------------------------------- f-DP in one run: the figure


@pytest.mark.parametrize(("r", "c", "m"), [(4, 3, 4), (5, 5, 9), (6, 4, 6), (3, 0, 5)])
@pytest.mark.parametrize("epsilon", [0.0, 0.4, 1.5])
def test_recursion_is_the_largest_probability_that_the_theorems_inequalities_allow(r, c, m, epsilon):
    """A linear program over all distributions of the number of right guesses; the (ε, δ) curve is piecewise linear."""
    delta = 0.01
    j = np.arange(r + 1)
    above, limits = [], []
    for least in range(1, r + 1):  # H >= e^-ε (R - δ) and H >= 1 - δ - e^ε (1 - R)
        right, wrong = np.where(j >= least, j, 0) / m, np.where(j >= least - 1, r - j, 0) / m
        above += [math.exp(-epsilon) * right - wrong, math.exp(epsilon) * right - wrong]
        limits += [math.exp(-epsilon) * delta, math.exp(epsilon) - 1 + delta]
    program = linprog(-(j >= c).astype(float), A_ub=above, b_ub=limits, A_eq=[np.ones(r + 1)], b_eq=[1.0])
    largest = -program.fun
    curve, at = _needed("epsilon_delta", delta), np.array([epsilon])
    assert not _refuted(curve, at, m, r, c, largest * 0.999)[0]
    if largest < 0.999:
        assert _refuted(curve, at, m, r, c, min(1.0, largest * 1.001))[0]


def test_no_strategy_against_randomised_response_beats_the_bound():
    """All 2^m strings of coins and answers of pure ε: guess what is answered on the first r canaries."""
    m, r, epsilon = 6, 4, 0.8
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))
    for c in range(1, r + 1):
        exact = sum(keep ** sum(o) * (1 - keep) ** (r - sum(o)) for o in product((0, 1), repeat=r) if sum(o) >= c)
        assert not _refuted(_needed("epsilon_delta", 0.0), np.array([epsilon]), m, r, c, exact * 0.999)[0]


@pytest.mark.few(1)
@pytest.mark.parametrize("curve", ["gdp", "epsilon_delta"])
def test_fewer_right_guesses_or_a_larger_parameter_are_never_easier_to_refute(curve):
    needed, grid = _needed(curve, DELTA), np.linspace(0, 6, 61)
    for r, m in [(20, 200), (100, 100)]:
        by_count = [_parameter_lower(needed, m, r, c, 0.05) for c in range(r + 1)]
        assert by_count == sorted(by_count) and by_count[r // 2] == 0 < by_count[-1]
        for c in (r // 2, 3 * r // 4, r):
            refuted = _refuted(needed, grid, m, r, c, 0.05).astype(int)
            assert (np.diff(refuted) <= 0).all()


def test_the_gaussian_curve_is_that_of_one_gaussian_number():
    power, mu = np.linspace(0.01, 0.99, 50), np.full(50, 0.7)
    error = _needed("gdp", DELTA)(power, mu)
    assert np.allclose(power, ndtr(ndtri(error) + 0.7), atol=1e-12)


def test_f_dp_assumes_no_more_than_the_other_one_run_audit_and_loses_less_to_delta():
    included = np.arange(2000) % 2 == 1
    scores = included * 1.0
    for delta in (1e-5, 1e-4, 1e-3):
        given = {"delta": delta, "n_guesses": 100}
        f_dp = audit_one_run_f_dp(scores, included, curve="epsilon_delta", **given).epsilon_lower
        assert f_dp >= audit_one_run(scores, included, **given).epsilon_lower


# ---------------------------------------------------------------- validity


def gaussian_run(mu, m, seed):
    rng = np.random.default_rng(seed)
    included = rng.random(m) < 0.5
    return mu * included + rng.normal(size=m), included


@pytest.mark.parametrize("mu", [0.3, 1.0, 2.0])
def test_one_run_f_dp_passes_the_truth_in_at_most_five_percent_of_runs(mu):
    m, r, counts = 300, 40, []
    for seed in range(600):
        scores, included = gaussian_run(mu, m, seed)
        order = np.argsort(scores)
        counts.append(int((~included[order[: r // 2]]).sum() + included[order[m - r // 2 :]].sum()))
    known = {c: _parameter_lower(_needed("gdp", DELTA), m, r, c, 0.05) for c in set(counts)}
    assert share_above([known[c] for c in counts], mu) <= 0.05


@pytest.mark.few(1)
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_one_run_f_dp_of_randomised_response_passes_the_truth_in_at_most_five_percent_of_runs(epsilon):
    m, keep = 100, 1 / (1 + math.exp(-epsilon))
    counts = binom.rvs(m, keep, size=2000, random_state=3)
    known = {c: _parameter_lower(_needed("epsilon_delta", 0.0), m, m, c, 0.05) for c in set(counts.tolist())}
    found = [known[c] for c in counts.tolist()]
    assert share_above(found, epsilon) <= 0.05
    assert epsilon < 1 or np.median(found) > 0.5 * epsilon


@pytest.mark.few(1)
@pytest.mark.parametrize("mu", [0.0, 0.5, 2.0])
def test_one_run_gaussian_is_exact(mu):
    found = [audit_one_run_gaussian(*gaussian_run(mu, 200, seed)).mu_lower for seed in range(1500)]
    passed = share_above(found, mu)
    assert abs(passed - 0.05) <= 4 * math.sqrt(0.05 * 0.95 / 1500)


def test_steps_are_summed():
    scores, included = gaussian_run(1.0, 50, 0)
    steps = np.column_stack([scores / 4, scores / 4, scores / 2])
    assert audit_one_run_gaussian(steps, included).mu_lower == audit_one_run_gaussian(scores, included).mu_lower


@pytest.mark.parametrize("mu", [0.5, 1.5])
def test_known_shift_is_exact(mu):
    rng = np.random.default_rng(0)
    found = [audit_known_shift(mu, rng.normal(size=100)).mu_lower for _ in range(1500)]
    assert abs(share_above(found, mu) - 0.05) <= 4 * math.sqrt(0.05 * 0.95 / 1500)


@pytest.mark.few(1)
@repeated
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("mu", [0.5, 1.5])
def test_band_covers_all_its_rates_at_once(mu, ties, repeats):
    """At the thresholds that were chosen, true rates are known: each must lie below its limit, all together."""
    rng, n, missed = np.random.default_rng(1), 100, 0
    for _ in range(repeats):
        worlds = rng.normal(size=n), rng.normal(loc=mu, size=n)
        if ties:
            worlds = tuple(np.floor(2 * world) for world in worlds)
        missed += rates_epsilon(rates_of_band(*worlds, 0.95), DELTA) > gdp_epsilon(mu, DELTA)
    assert missed / repeats <= 0.05


@pytest.mark.slow
@repeated
def test_band_holds_for_a_pure_epsilon_that_the_attacker_reaches(repeats):
    epsilon, found = 1.0, []
    p = 1 / (1 + math.exp(-epsilon))
    for seed in range(repeats):
        rng = np.random.default_rng(seed)
        worlds = (rng.random(300) < 1 - p).astype(float), (rng.random(300) < p).astype(float)
        found.append(audit_matched_filter(*worlds, method="band").epsilon_lower(0.0))
    assert share_above(found, epsilon) <= 0.05
    assert np.median(found) > 0.4 * epsilon


@pytest.mark.slow
@repeated
def test_bits_hold_in_at_least_the_nominal_share_of_audits(repeats):
    low, high, n_queries, found = 0.45, 0.55, 20, []
    truth = bits_epsilon(low, high, n_queries, DELTA)
    for seed in range(repeats):
        rng = np.random.default_rng(seed)
        worlds = [(rng.random((50, n_queries)) < p).astype(int) for p in (low, high)]
        found.append(audit_count_statistic(*worlds, method="bits").epsilon_lower(DELTA))
    assert share_above(found, truth) <= 0.05
    assert np.median(found) > 0.25 * truth


# ---------------------------------------------------------------- figures of counts


@pytest.mark.parametrize(("low", "high", "n"), [(0.3, 0.6, 1), (0.45, 0.55, 7), (0.01, 0.02, 12)])
def test_delta_of_bits_is_brute_force_over_all_answers(low, high, n):
    for epsilon in (0.0, 0.3, 1.0):
        sums = [0.0, 0.0]
        for bits in product((0, 1), repeat=n):
            p, q = (math.prod(w if bit else 1 - w for bit in bits) for w in (low, high))
            sums[0] += max(0.0, q - math.exp(epsilon) * p)
            sums[1] += max(0.0, p - math.exp(epsilon) * q)
        assert bits_delta(epsilon, low, high, n) == pytest.approx(max(sums), abs=1e-12)
    found = bits_epsilon(low, high, n, 0.01)
    assert bits_delta(found, low, high, n) > 0.01 >= bits_delta(found + 1e-6, low, high, n)


def test_bits_prove_what_the_count_as_one_number_cannot():
    rng = np.random.default_rng(0)
    worlds = [(rng.random((200, 30)) < p).astype(int) for p in (0.4, 0.6)]
    bits, band = (audit_count_statistic(*worlds, method=method) for method in ("bits", "band"))
    assert bits.epsilon_lower(DELTA) > 2 * band.epsilon_lower(DELTA) > 0
    assert bits.epsilon_lower(DELTA) < bits_epsilon(0.4, 0.6, 30, DELTA)
    assert bits.refutes(0.5 * bits.mu_hat) and bits.mu_lower < bits.mu_hat


def test_band_proves_more_than_a_held_out_threshold_from_as_many_runs():
    rng = np.random.default_rng(0)
    wins = 0
    for _ in range(20):
        worlds = rng.normal(size=1000), rng.normal(loc=3.0, size=1000)
        band, held_out = (
            audit_matched_filter(*worlds, method=method).epsilon_lower(DELTA) for method in ("band", "clopper_pearson")
        )
        wins += band > held_out
    assert wins > 15


def test_scores_without_information_give_nothing():
    same = np.arange(50.0)
    assert audit_matched_filter(same, same, method="band").epsilon_lower(0.0) == 0.0
    assert audit_count_statistic([[0, 1]] * 9, [[0, 1]] * 9, method="bits").epsilon_lower(0.0) == 0.0
    assert audit_one_run_f_dp(np.arange(100), np.arange(100) % 2, delta=DELTA).epsilon_lower == 0.0


# ---------------------------------------------------------------- power: noise too small by a factor


@FACTORS
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_gaussian_from_one_run_finds_noise_too_small(factor, epsilon):
    mu = gdp_mu(epsilon, DELTA)
    m = round(60 * (1 / mu**2 + 0.25) / math.log(factor) ** 2)  # canaries enough for nearly five standard errors
    honest, broken = (audit_one_run_gaussian(*gaussian_run(f * mu, m, seed=4), confidence=0.99) for f in (1.0, factor))
    assert broken.refutes(mu) and not honest.refutes(mu)


@FACTORS
def test_known_shift_finds_noise_too_small(factor):
    residuals = np.random.default_rng(0).normal(size=round(9 / math.log(factor) ** 2))
    assert audit_known_shift(1.0, residuals / factor).refutes(1.0)
    assert not audit_known_shift(1.0, residuals, confidence=0.999).refutes(1.0)


def test_f_dp_from_one_run_finds_noise_too_small_by_two():
    mu = gdp_mu(2.0, DELTA)
    honest, broken = (audit_one_run_f_dp(*gaussian_run(f * mu, 5000, 1), delta=DELTA) for f in (1.0, 2.0))
    assert broken.refutes(2.0) and not honest.refutes(2.0)
    assert honest.epsilon_lower > 1.2 * audit_one_run(*gaussian_run(mu, 5000, 1), delta=DELTA).epsilon_lower > 0


@FACTORS
def test_bits_find_noise_too_small(factor):
    sigma, n_queries, n_runs = 5.0, 20, {1.2: 4000, 2**0.5: 1000, 2.0: 200}[factor]
    certified = bits_epsilon(*(float(ndtr(s / (math.sqrt(2) * sigma))) for s in (-1, 1)), n_queries, DELTA)
    rng = np.random.default_rng(0)

    def audited(f):
        p = float(ndtr(f / (math.sqrt(2) * sigma)))
        worlds = [(rng.random((n_runs, n_queries)) < q).astype(int) for q in (1 - p, p)]
        return audit_count_statistic(*worlds, method="bits").epsilon_lower(DELTA)

    assert audited(factor) > certified >= audited(1.0)


@pytest.mark.slow
@pytest.mark.parametrize(("factor", "n"), [(1.2, 200_000), (2**0.5, 40_000), (2.0, 8_000)])
def test_distribution_free_finds_randomised_response_that_is_too_sure(factor, n):
    """Pure ε: odds grow by the factor."""
    rng = np.random.default_rng(0)

    def audited(epsilon):
        p = 1 / (1 + math.exp(-epsilon))
        worlds = (rng.random(n) < 1 - p).astype(float), (rng.random(n) < p).astype(float)
        return audit_matched_filter(*worlds, method="band").epsilon_lower(0.0)

    assert audited(factor) > 1.0 >= audited(1.0)


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: audit_known_shift(-1.0, [1.0, 2.0]), "shift must be a finite float"),
        (lambda: audit_known_shift(math.inf, [1.0, 2.0]), "shift must be a finite float"),
        (lambda: audit_known_shift(1.0, [1.0]), "residuals must hold at least 2"),
        (lambda: audit_known_shift(1.0, [1.0, 2.0], confidence=0.0), "confidence must be a float"),
        (lambda: audit_one_run_f_dp([0.0, 1.0], [0, 1], delta=0.0), "for curve='gdp'"),
        (lambda: audit_one_run_f_dp([0.0, 1.0], [0, 1], delta=0.1, curve="f"), "curve must be"),
        (lambda: audit_one_run_f_dp([0.0, 1.0], [0, 1], delta=0.1, n_guesses=3), "n_guesses must be"),
        (lambda: audit_one_run_gaussian([[np.nan]], [1]), "scores must be a finite array"),
        (lambda: audit_one_run_gaussian([1.0, 2.0, 3.0], [0, 0, 1]), "needs at least 2 runs of each"),
        (lambda: audit_matched_filter([0.0] * 5, [1.0] * 9, method="band"), "at least 8 runs of each"),
        (lambda: audit_matched_filter([0.0] * 9, [1.0] * 9, method="bits"), "method must be 'gdp'"),
        (lambda: audit_count_statistic([[0]], [[1]], method="bits"), "at least 2 runs of each"),
    ],
)
def test_bad_input_is_an_error_that_names_the_parameter(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_no_noise_at_all_has_no_upper_limit():
    assert audit_known_shift(1.0, np.zeros(5)).mu_lower == math.inf
    assert audit_known_shift(0.0, np.zeros(5)).mu_lower == 0.0
