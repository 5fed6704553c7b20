"""Accountants and calibration against figures and implementations that are not ours."""

import json
import math
from pathlib import Path

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.stats import norm

from skfairdp.exceptions import BudgetExceededError
from skfairdp.privacy import (
    ArgmaxBit,
    DiscreteGaussian,
    GaussianDpEvent,
    GDPFilter,
    LaplaceDpEvent,
    NonPrivateDpEvent,
    NoOpDpEvent,
    PoissonSampledDpEvent,
    PrivacySpent,
    RandomizedResponseDpEvent,
    ReplaceSampledGaussian,
    ThresholdBit,
    _accountants,
    accountant_of,
    bit_deltas,
    bit_rdp,
    calibrate_noise,
    compose,
    epsilon_of,
    event_from_dict,
    event_to_dict,
    flatten,
    gdp_delta,
    gdp_epsilon,
    gdp_mu,
    rdp_of,
    repeat,
)
from tests._tools.inside import rdp_to_epsilon, self_compose

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "accounting.json").read_text())
ROOT2 = math.sqrt(2)


def assert_certified(value: float, printed: float, *, below: float = 1e-5) -> None:
    """Never more than 1 % above the reference, and below it only by the rounding of its print."""
    assert printed * (1 - below) - 5e-7 <= value <= printed * 1.01, (value, printed)


# ------------------------------------------------------------------ vectors


@pytest.mark.parametrize("v", VECTORS["gdp"], ids=str)
def test_exact_gaussian_epsilon_matches_the_vectors(v):
    # mu is printed to six decimals, which moves epsilon by up to 5e-7/mu relative
    assert gdp_epsilon(v["mu"], v["delta"]) == pytest.approx(v["epsilon"], rel=3e-6)


@pytest.mark.parametrize("v", VECTORS["gnmax_data_independent"], ids=str)
def test_gnmax_as_gaussian_matches_the_vectors(v):
    event = repeat(GaussianDpEvent(v["sigma"] / ROOT2), v["queries"])
    assert_certified(epsilon_of(event, v["delta"]), v["epsilon"])
    assert accountant_of(event, v["delta"]) == "gdp"
    if "epsilon_rdp" in v:
        assert_certified(epsilon_of(event, v["delta"], accountant="rdp"), v["epsilon_rdp"])


@pytest.mark.parametrize("v", VECTORS["confident_gnmax"], ids=str)
def test_confident_gnmax_as_gaussian_matches_the_vectors(v):
    event = compose(
        repeat(GaussianDpEvent(v["sigma_threshold"]), v["n_threshold"]),
        repeat(GaussianDpEvent(v["sigma_gnmax"] / ROOT2), v["n_gnmax"]),
    )
    assert_certified(epsilon_of(event, v["delta"]), v["epsilon"])
    bits = compose(
        repeat(ThresholdBit(200, 120.0, v["sigma_threshold"]), v["n_threshold"]),
        repeat(ArgmaxBit(200, v["sigma_gnmax"]), v["n_gnmax"]),
    )
    assert epsilon_of(bits, v["delta"], accountant="gdp") == pytest.approx(epsilon_of(event, v["delta"]), rel=1e-12)
    assert epsilon_of(bits, v["delta"]) < 0.95 * epsilon_of(event, v["delta"])  # bits reveal less than the counts


@pytest.mark.parametrize("v", VECTORS["binary_rdp"], ids=lambda v: v["kind"])
def test_bits_match_the_vectors(v):
    if v["kind"] == "threshold":
        rdp = bit_rdp(ThresholdBit(v["n_teachers"], v["threshold"], v["sigma"]), np.array([v["order"]]))[0]
        assert rdp == pytest.approx(v["rdp"], rel=3e-6)
    elif v["kind"] == "gnmax_two_classes":
        assert bit_rdp(ArgmaxBit(v["n_teachers"], v["sigma"]), np.array([v["order"]]))[0] == pytest.approx(
            v["rdp"], rel=1e-6
        )
    else:
        event = repeat(ArgmaxBit(v["n_teachers"], v["sigma"]), v["queries"])
        # The figure was printed on integer orders; on those ours agrees, and our finer grid may only be tighter.
        orders = np.arange(2.0, 64.0)
        assert_certified(rdp_to_epsilon(orders, rdp_of(event, orders), v["delta"]), v["epsilon"])
        ours = epsilon_of(event, v["delta"])
        assert 0.999 * v["epsilon"] < ours <= v["epsilon"]


@pytest.mark.parametrize("v", VECTORS["dpsgd_poisson_add_remove"], ids=lambda v: str(v["q"]))
def test_poisson_sampled_gaussian_matches_the_vectors(v):
    event = repeat(PoissonSampledDpEvent(v["q"], GaussianDpEvent(v["sigma"])), v["steps"])
    assert_certified(epsilon_of(event, v["delta"]), v["pld"], below=1e-4)
    assert accountant_of(event, v["delta"]) == "pld"
    assert_certified(epsilon_of(event, v["delta"], accountant="rdp"), v["rdp"])


@pytest.mark.parametrize("v", VECTORS["dpsgd_calibration"], ids=lambda v: str(v["epsilon"]))
def test_calibrated_poisson_noise_matches_the_vectors(v):
    def event_at(sigma):
        return repeat(PoissonSampledDpEvent(v["q"], GaussianDpEvent(sigma)), v["steps"])

    sigma = calibrate_noise(event_at, v["epsilon"], v["delta"], guess=v["sigma"])
    assert epsilon_of(event_at(sigma), v["delta"]) <= v["epsilon"]
    assert sigma == pytest.approx(v["sigma"], rel=2e-3)  # calibration's own bracket is 1e-3 wide


@pytest.mark.parametrize(
    ("v", "sensitivity"),
    [(v, ROOT2) for v in [*VECTORS["soft_labels"], VECTORS["sfpate"][2]]]
    + [(v, 1.0) for v in VECTORS["pate_gan_gaussian_bit"]],
    ids=str,
)
def test_repeated_gaussian_releases_match_the_vectors(v, sensitivity):
    event = repeat(GaussianDpEvent(v["sigma"] / sensitivity), v["queries"])
    assert_certified(epsilon_of(event, v["delta"]), v["epsilon"])


@pytest.mark.parametrize("v", VECTORS["sfpate"][:2], ids=str)
def test_vote_noise_for_a_target_matches_the_vectors(v):
    assert ROOT2 * math.sqrt(v["queries"]) / gdp_mu(v["epsilon"], v["delta"]) == pytest.approx(v["sigma"], rel=1e-6)


@pytest.mark.parametrize("v", VECTORS["datalens"], ids=str)
def test_top_k_sign_votes_match_the_vectors(v):
    event = repeat(GaussianDpEvent(v["sigma"] / (2 * math.sqrt(v["k"]))), v["aggregations"])
    assert_certified(epsilon_of(event, v["delta"]), v["epsilon"])


# ------------------------------------------------------------------ independent truths


@settings(max_examples=40, deadline=None)
@given(mu=st.floats(0.01, 8.0), delta=st.sampled_from([1e-10, 1e-6, 1e-5, 1e-2]))
def test_gdp_epsilon_is_the_smallest_upper_bound_by_high_precision_arithmetic(mu, delta):
    epsilon = gdp_epsilon(mu, delta)
    with mpmath.workdps(60):

        def true_delta(e):
            phi = mpmath.ncdf
            e, m = mpmath.mpf(e), mpmath.mpf(mu)
            return phi(-e / m + m / 2) - mpmath.exp(e) * phi(-e / m - m / 2)

        assert true_delta(epsilon) <= delta * (1 + mpmath.mpf(10) ** -9)
        if epsilon > 0:
            assert true_delta(epsilon * (1 - 1e-6)) > delta


@settings(max_examples=40, deadline=None)
@given(epsilon=st.floats(0.01, 50.0), delta=st.sampled_from([1e-10, 1e-6, 1e-5, 1e-2]))
def test_calibrated_mu_never_costs_more_than_asked_and_is_tight(epsilon, delta):
    mu = gdp_mu(epsilon, delta)
    assert gdp_epsilon(mu, delta) <= epsilon
    assert gdp_delta(epsilon, mu * (1 + 1e-6)) > delta


@pytest.mark.parametrize("order", [1.5, 2.0, 8.0, 64.0])
def test_bit_divergence_equals_a_plain_double_loop(order):
    n, threshold, sigma = 12, 7.2, 3.0
    worst = 0.0
    with mpmath.workdps(40):
        p = [mpmath.ncdf((m - threshold) / mpmath.mpf(sigma)) for m in range(n + 1)]
        for m in range(n + 1):
            for other in (m - 1, m + 1):
                if 0 <= other <= n:
                    a, b = p[m], p[other]
                    moment = a**order * b ** (1 - order) + (1 - a) ** order * (1 - b) ** (1 - order)
                    worst = max(worst, float(mpmath.log(moment) / (order - 1)))
    assert bit_rdp(ThresholdBit(n, threshold, sigma), np.array([order]))[0] == pytest.approx(worst, rel=1e-9)


@pytest.mark.parametrize("restricted", [False, True])
@pytest.mark.parametrize("sigma", [0.7, 2.0, 5.0])
def test_discrete_argmax_bit_equals_enumeration_with_its_tie_rule(sigma, restricted):
    n, order = 6, 8.0
    support = range(-60, 61)
    weights = {x: math.exp(-(x**2) / (2 * sigma**2)) for x in support}
    total = sum(weights.values())

    def second_wins(difference):  # second - first; a tie goes to the first
        return sum(weights[a] * weights[b] for a in support for b in support if difference + b - a > 0) / total**2

    states = range(-n, n + 1) if restricted else range(-n, n + 1, 2)
    probabilities = {d: second_wins(d) for d in states}
    worst = 0.0
    for d in states:
        for step in (-2, -1, 1, 2) if restricted else (-2, 2):
            if d + step in probabilities:
                a, b = probabilities[d], probabilities[d + step]
                moment = a**order * b ** (1 - order) + (1 - a) ** order * (1 - b) ** (1 - order)
                worst = max(worst, math.log(moment) / (order - 1))
    event = ArgmaxBit(n, sigma, "discrete_gaussian", restricted)
    assert bit_rdp(event, np.array([order]))[0] == pytest.approx(worst, rel=1e-8)


def test_fixed_tie_break_of_discrete_noise_costs_more_than_continuous_noise():
    discrete = bit_rdp(ArgmaxBit(20, 2.0, "discrete_gaussian"), np.array([8.0]))[0]
    continuous = bit_rdp(ArgmaxBit(20, 2.0), np.array([8.0]))[0]
    assert discrete == pytest.approx(1.786, abs=5e-4)
    assert continuous == pytest.approx(1.762, abs=5e-4)


@pytest.mark.parametrize(
    "event",
    [
        ThresholdBit(30, 18.0, 6.0),
        ThresholdBit(30, 18.0, 6.0, "discrete_gaussian"),
        ArgmaxBit(30, 6.0),
        ArgmaxBit(31, 6.0, "gaussian", True),
    ],
    ids=str,
)
def test_one_bit_costs_no_more_than_the_noisy_number_behind_it(event):
    orders = np.array([1.5, 2, 4, 16, 64])
    behind = (1.0 if isinstance(event, ThresholdBit) else ROOT2) / event.sigma
    assert np.all(bit_rdp(event, orders) <= orders * behind**2 / 2)
    epsilons = np.linspace(-1, 1, 41)
    gaussian = np.array([gdp_delta(e, behind) for e in epsilons])
    # A discrete bit is not a post-processing of continuous noise; its curve only has to stay near the Gaussian's.
    slack = 1e-12 if event.noise == "gaussian" else 5e-3
    assert np.all(bit_deltas(event, epsilons) <= gaussian + slack)


def test_many_bits_mixed_with_sampled_releases_stay_above_each_part():
    bits = repeat(ArgmaxBit(100, 60.0), 100)
    sampled = repeat(PoissonSampledDpEvent(0.01, GaussianDpEvent(1.0)), 200)
    together = epsilon_of(compose(bits, sampled), 1e-5)
    assert accountant_of(compose(bits, sampled), 1e-5) == "pld"
    assert together > max(epsilon_of(bits, 1e-5), epsilon_of(sampled, 1e-5))
    # bits are at most the Gaussian they come from, and dp-accounting composes that with the rest on its own
    gaussian = repeat(GaussianDpEvent(60.0 / ROOT2), 100)
    assert together <= epsilon_of(compose(gaussian, sampled), 1e-5) * 1.002


def test_pure_mechanisms_keep_their_epsilon():
    assert epsilon_of(LaplaceDpEvent(2.0), 1e-9) == pytest.approx(0.5, rel=1e-3)
    # k-ary randomised response that lies with probability p*(k-1)/k
    p, k = 0.5, 3
    assert epsilon_of(RandomizedResponseDpEvent(p, k), 1e-12) == pytest.approx(
        math.log((1 - p + p / k) / (p / k)), rel=1e-3
    )


def test_discrete_gaussian_is_certified_as_zcdp():
    rho = 100 / (2 * 10.0**2)
    orders = np.arange(1.01, 200, 0.01)
    expected = np.min(rho * orders + np.log1p(-1 / orders) - np.log(1e-5 * orders) / (orders - 1))
    assert epsilon_of(repeat(DiscreteGaussian(10.0), 100), 1e-5) == pytest.approx(expected, rel=1e-4)
    assert accountant_of(repeat(DiscreteGaussian(10.0), 100), 1e-5) == "rdp"


def test_discrete_gaussian_never_enters_a_gaussian_sum():
    with pytest.raises(ValueError, match="no proof"):
        epsilon_of(DiscreteGaussian(1.0), 1e-5, accountant="gdp")


# ------------------------------------------------------------------ properties


EVENTS = st.sampled_from(
    [GaussianDpEvent(5.0), ThresholdBit(20, 12.0, 9.0), ArgmaxBit(20, 9.0), DiscreteGaussian(6.0, ROOT2)]
)


@settings(max_examples=40, deadline=None)
@given(first=EVENTS, second=EVENTS, n=st.integers(1, 50))
def test_epsilon_grows_with_every_further_release_and_falls_with_delta(first, second, n):
    one, more = repeat(first, n), compose(repeat(first, n), second)
    assert 0 <= epsilon_of(one, 1e-5) <= epsilon_of(more, 1e-5)
    assert epsilon_of(more, 1e-4) <= epsilon_of(more, 1e-5) <= epsilon_of(more, 1e-6)


@settings(max_examples=30, deadline=None)
@given(parts=st.lists(st.tuples(EVENTS, st.integers(1, 5)), min_size=1, max_size=5), seed=st.randoms())
def test_epsilon_does_not_depend_on_how_a_tree_is_written(parts, seed):
    shuffled = [event for event, times in parts for _ in range(times)]
    seed.shuffle(shuffled)
    tree = compose(*(repeat(event, times) for event, times in parts))
    assert epsilon_of(compose(*shuffled), 1e-5) == epsilon_of(tree, 1e-5)
    assert flatten(tree) == flatten(compose(*shuffled))


def test_events_survive_json():
    tree = compose(
        repeat(ThresholdBit(10, 6.0, 2.0), 3),
        ArgmaxBit(10, 2.0, "discrete_gaussian", True),
        repeat(PoissonSampledDpEvent(0.1, GaussianDpEvent(1.5)), 7),
        DiscreteGaussian(2.5, ROOT2),
        NoOpDpEvent(),
    )
    assert event_from_dict(json.loads(json.dumps(event_to_dict(tree)))) == tree


def test_unknown_events_are_refused_before_anything_is_composed():
    from dp_accounting.dp_event import UnsupportedDpEvent

    with pytest.raises(ValueError, match="UnsupportedDpEvent"):
        epsilon_of(compose(GaussianDpEvent(1.0), UnsupportedDpEvent()), 1e-5)
    with pytest.raises(ValueError, match="UnsupportedDpEvent"):
        event_to_dict(UnsupportedDpEvent())


def test_a_release_without_noise_costs_infinity():
    assert epsilon_of(compose(GaussianDpEvent(1.0), NonPrivateDpEvent()), 1e-5) == math.inf
    assert epsilon_of(GaussianDpEvent(0.0), 1e-5) == math.inf


@pytest.mark.parametrize("delta", [0.0, 1.0, -1e-5, 2.0, math.nan])
def test_delta_outside_the_open_unit_interval_is_an_error(delta):
    for call in (lambda: epsilon_of(GaussianDpEvent(1.0), delta), lambda: gdp_mu(1.0, delta)):
        with pytest.raises(ValueError, match="delta"):
            call()


@pytest.mark.parametrize("field", ["n_teachers", "sigma"])
@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf])
def test_events_without_noise_or_votes_cannot_be_described(field, value):
    with pytest.raises(ValueError, match=field):
        ArgmaxBit(**{"n_teachers": 10, "sigma": 1.0, field: value})


@settings(max_examples=25, deadline=None)
@given(epsilon=st.floats(0.05, 20.0), n=st.integers(1, 3000), guess=st.floats(0.1, 1000.0))
def test_calibration_never_exceeds_the_target_and_wastes_little(epsilon, n, guess):
    def event_at(sigma):
        return repeat(ArgmaxBit(100, sigma), n)

    sigma = calibrate_noise(event_at, epsilon, 1e-5, guess=guess)
    assert epsilon_of(event_at(sigma), 1e-5) <= epsilon
    assert epsilon_of(event_at(sigma * 0.99), 1e-5) > epsilon * 0.97


def test_calibration_says_so_when_no_noise_is_enough():
    fixed = ThresholdBit(10, 6.0, 0.5)
    with pytest.raises(ValueError, match="Plan fewer releases"):
        calibrate_noise(lambda sigma: compose(repeat(fixed, 1000), ArgmaxBit(10, sigma)), 0.1, 1e-5)


# ------------------------------------------------------------------ filter and report


@settings(max_examples=50, deadline=None)
@given(mu=st.floats(0.05, 3.0), costs=st.lists(st.floats(0, 0.5), min_size=1, max_size=200))
def test_filter_never_passes_its_cap_by_any_amount(mu, costs):
    from fractions import Fraction

    gate, spent = GDPFilter(mu), Fraction(0)
    for cost in costs:
        if gate.fits(cost):
            gate.spend(cost)
            spent += Fraction(cost)
        else:
            with pytest.raises(BudgetExceededError):
                gate.spend(cost)
    assert spent <= Fraction(mu) ** 2


def test_stopping_when_it_pays_and_certifying_the_realised_spend_would_be_wrong():
    """Why the cap is certified: mu_0=.1, at most 200 steps, stop at the transcript that tells the worlds apart best.

    An adversary who stops at the first step where the accumulated evidence exceeds the realised epsilon has a
    distinguishing advantage above delta; under the cap it stays below.
    """
    mu0, steps, delta = 0.1, 200, 1e-5
    rng = np.random.default_rng(0)
    realised = np.array([gdp_epsilon(mu0 * math.sqrt(t), delta) for t in range(1, steps + 1)])
    cap = gdp_epsilon(mu0 * math.sqrt(steps), delta)
    above_realised = above_cap = 0.0
    for _ in range(20):  # importance sampling: draw under a third world shifted so far that the tail is common
        shift = 3.4 / math.sqrt(steps) + mu0
        draws = rng.normal(shift, 1, size=(10_000, steps)).cumsum(axis=1)
        t = np.arange(1, steps + 1)
        loss = mu0 * draws - mu0**2 * t / 2  # log P/Q after t steps
        log_p = mu0 * draws - t * mu0**2 / 2 - (shift * draws - t * shift**2 / 2)
        crossed = loss > realised
        first = np.where(crossed.any(axis=1), crossed.argmax(axis=1), steps - 1)
        rows = np.arange(len(draws))
        gain = np.maximum(1 - np.exp(realised[first] - loss[rows, first]), 0) * crossed.any(axis=1)
        above_realised += float(np.mean(np.exp(log_p[rows, first]) * gain))
        capped = np.maximum(1 - np.exp(cap - loss[:, -1]), 0)
        above_cap += float(np.mean(np.exp(log_p[:, -1]) * capped))
    assert above_realised / 20 > 2 * delta
    assert above_cap / 20 == pytest.approx(delta, rel=0.2)


def test_report_adds_like_guarantees_and_refuses_unlike_ones():
    def spent(**changes):
        fields = {"protects": "record", "neighboring_relation": "replace one record", **changes}
        return PrivacySpent.of(
            GaussianDpEvent(4.0), changes.pop("delta", 1e-5), **{k: v for k, v in fields.items() if k != "delta"}
        )

    total = spent() + spent()
    assert total.epsilon == pytest.approx(gdp_epsilon(ROOT2 / 4, 1e-5))
    null = "replace one record by a null record"
    weaker = spent() + spent(neighboring_relation=null)  # what holds for any record holds for one that all share
    assert (weaker.neighboring_relation, weaker.epsilon) == (null, total.epsilon)
    for other in (
        spent(protects="sensitive attribute", neighboring_relation="replace one sensitive attribute"),
        spent(neighboring_relation="add or remove one record"),
        spent(delta=1e-6),
    ):
        with pytest.raises(ValueError, match="do not add up"):
            spent() + other


def test_seeded_noise_reports_infinity_and_stays_infinite_in_a_sum():
    fields = {"protects": "record", "neighboring_relation": "replace one record"}
    seeded = PrivacySpent.of(GaussianDpEvent(4.0), 1e-5, secret_noise=False, **fields)
    secret = PrivacySpent.of(GaussianDpEvent(4.0), 1e-5, **fields)
    assert seeded.epsilon == math.inf
    assert seeded.mechanism_epsilon == secret.epsilon < 1
    assert (seeded + secret).epsilon == math.inf
    assert "seeded" in str(seeded)
    with pytest.raises(AttributeError):
        secret.epsilon = 0.0  # type: ignore[misc]


def test_add_remove_is_never_reported_as_replace():
    """Same run, two relations, two figures: a report keeps them apart by name."""
    v = VECTORS["dpsgd_poisson_add_remove"][0]
    event = repeat(PoissonSampledDpEvent(v["q"], GaussianDpEvent(v["sigma"])), v["steps"])
    assert epsilon_of(event, v["delta"]) < v["replace_one"] / 1.5
    report = PrivacySpent.of(event, v["delta"], protects="record", neighboring_relation="add or remove one record")
    assert "add or remove one record" in str(report)


def test_normal_cdf_helpers_agree_with_scipy():
    assert gdp_delta(0.3, 0.7) == pytest.approx(
        norm.cdf(-0.3 / 0.7 + 0.35) - math.exp(0.3) * norm.cdf(-0.3 / 0.7 - 0.35), rel=1e-12
    )


def test_releases_whose_losses_are_nearly_all_beyond_any_grid_cost_what_their_samplings_cost(monkeypatch):
    """Next to no noise: what is left of the distribution after many steps is no mass that could be composed."""
    monkeypatch.setattr(_accountants, "_SAMPLED_GRIDS", (1e-5, 0.5))  # coarse is quick, and still a bound
    sampled = repeat(ReplaceSampledGaussian(0.5, 0.02, difference=1.0), 200)
    for event in (sampled, compose(GaussianDpEvent(0.5), sampled)):
        # Where losses prove nothing, the number of samplings does; and that is no comfort.
        assert 1e5 < epsilon_of(event, 1e-5) < math.inf
    # ... and a search that starts there finds its way out of it
    noise = calibrate_noise(
        lambda s: compose(GaussianDpEvent(0.5), repeat(ReplaceSampledGaussian(0.5, s, difference=1.0), 20)),
        1000.0,
        1e-5,
        guess=0.02,
    )
    assert 0 < noise < 1
    plan = compose(GaussianDpEvent(0.5), repeat(ReplaceSampledGaussian(0.5, noise, difference=1.0), 20))
    assert 0.9 * 1000 < epsilon_of(plan, 1e-5) <= 1000


# ------------------------------------------------------------------ masses below the smallest normal number


@pytest.mark.few(1)
@pytest.mark.parametrize("grid", [2e-3, 1e-3, 1e-4])
def test_an_overflow_beside_a_subnormal_mass_moves_no_composition(grid):
    """SciPy divides by the outermost mass to take a moment; the composition is that of the plain double sum."""
    one = _accountants._pld_of(ReplaceSampledGaussian(0.3, 40.0, 0.5), grid)
    masses = one._pmf_remove._probs
    assert 0 < np.min(masses[masses > 0]) < np.finfo(float).tiny
    finest = 2e-5
    reference = _accountants._pld_of(ReplaceSampledGaussian(0.3, 40.0, 0.5), finest)
    twice, separately = self_compose(one, 2), one.compose(one)
    below = reference.compose(reference)
    losses = 2 * one._pmf_remove._lower_loss * grid + grid * np.arange(2 * len(masses) - 1)
    direct = np.convolve(masses, masses)
    for epsilon in (0.002, 0.01, 0.02, 0.03):
        exact = one._pmf_remove._infinity_mass + math.fsum((-np.expm1(epsilon - losses) * direct)[losses > epsilon])
        delta = twice.get_delta_for_epsilon(epsilon)
        assert delta >= below.get_delta_for_epsilon(epsilon)  # a coarser grid is a bound on a finer one
        assert delta == pytest.approx(exact, rel=1e-9, abs=2e-14)
        assert delta == pytest.approx(separately.get_delta_for_epsilon(epsilon), rel=1e-9, abs=2e-14)


# ------------------------------------------------------------------ responses that give away next to nothing

NEXT_TO_NOTHING = RandomizedResponseDpEvent(1 - 2.0**-53, 10**6)  # ε = 1.1e-10


@pytest.mark.parametrize(
    "others", [GaussianDpEvent(2.0), LaplaceDpEvent(3.0), PoissonSampledDpEvent(0.3, GaussianDpEvent(1.0))], ids=str
)
@pytest.mark.parametrize("times", [1, 9])
def test_a_response_next_to_nothing_costs_its_pure_epsilon_and_no_fine_grid(others, times):
    delta, cost = 1e-5, times * epsilon_of(NEXT_TO_NOTHING, 0)
    alone, both = epsilon_of(others, delta), epsilon_of(compose(others, repeat(NEXT_TO_NOTHING, times)), delta)
    assert 0 < cost < 1e-9
    assert alone + cost <= both <= (alone + cost) * (1 + 1e-12)  # never less than basic composition: that is the proof
    fine = _accountants._grid(((others, 1), (NEXT_TO_NOTHING, times))) if isinstance(others, LaplaceDpEvent) else None
    assert fine is None or fine < _accountants._grid(((others, 1),))  # what a grid for both would have been


@pytest.mark.parametrize("silent", [RandomizedResponseDpEvent(1.0, 4), RandomizedResponseDpEvent(0.3, 1)], ids=str)
def test_a_response_that_says_nothing_costs_nothing(silent):
    for others in (GaussianDpEvent(2.0), LaplaceDpEvent(3.0)):
        assert epsilon_of(compose(others, silent), 1e-5) == epsilon_of(others, 1e-5)
    assert epsilon_of(repeat(silent, 7), 1e-5) == 0


def test_a_small_response_that_is_not_next_to_nothing_stays_on_the_grid():
    many = repeat(RandomizedResponseDpEvent(1 - 1e-9, 2), 10**6)  # 2e-9 each, and far less than 2e-3 of them together
    assert epsilon_of(many, 0) == pytest.approx(2e-3)
    assert not _accountants._charged_as_pure(tuple(flatten(many).items()))[0]
