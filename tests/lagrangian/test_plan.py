"""The plan of PF-LD: how the budget is spent, and how far sizes, violations and moments can move."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism

from skfairdp.fairness import FairnessConstraints, RateBound, RateParity
from skfairdp.privacy import (
    GaussianDpEvent,
    NoiseSource,
    NonPrivateDpEvent,
    ReplaceSampledGaussian,
    compose,
    epsilon_of,
    event_from_dict,
    event_to_dict,
    repeat,
)
from tests._tools.inside import PFLDPlan, release_asked
from tests._tools.lagrangian import ALONE_AND_TOGETHER, flips, half_noisy, in_words, problem
from tests._tools.sources import UnitNoise, ZeroNoise


def table(notions, y, n_classes, seed):
    rng = np.random.default_rng(seed)
    proba = torch.tensor(rng.dirichlet(np.ones(n_classes), size=len(y)))
    constraints = FairnessConstraints(notions, torch.tensor(y), n_classes)
    return constraints, constraints.values(proba, torch.tensor(y)).numpy()


@pytest.mark.parametrize(
    ("epsilon", "mu", "count", "primal", "dual"),
    [(1.0, 0.268051, 26.379549, 59.737916, 52.759099), (3.0, 0.719117, 9.832981, 22.267316, 19.665961)],
)
def test_the_plan_spends_the_budget_as_declared(epsilon, mu, count, primal, dual):
    plan = PFLDPlan.calibrated(epsilon=epsilon, delta=1e-5, n_groups=2, primal_steps=200, dual_steps=40)
    assert (plan.count_noise, plan.sigma_primal, plan.sigma_dual) == pytest.approx((count, primal, dual), rel=1e-6)
    assert epsilon * (1 - 1e-6) < epsilon_of(plan.event, 1e-5) <= epsilon
    total = 1 / plan.sigma_count**2 + 200 / plan.sigma_primal**2 + 40 / plan.sigma_dual**2
    assert math.sqrt(total) == pytest.approx(mu, abs=1e-6)


def test_more_than_two_groups_cost_a_root_of_two():
    plan = PFLDPlan.calibrated(epsilon=1.0, delta=1e-5, n_groups=3, primal_steps=200, dual_steps=40)
    assert plan.count_noise == pytest.approx(37.30631596508562, rel=1e-6)
    assert epsilon_of(plan.event, 1e-5) <= 1.0


def test_poisson_steps_counts_and_violations_compose():
    event = PFLDPlan(2, 400, 20, 40.0, 4.0, 50.0, sampling_probability=0.05).event
    assert epsilon_of(event, 1e-5) == pytest.approx(2.029240, rel=1e-4)
    assert epsilon_of(event, 1e-5) >= 2.029240 * (1 - 1e-6)


def test_poisson_steps_are_calibrated():
    # sc and sigma_d of the split (.02, .78, .20) for these step counts; the rest goes to the primal steps
    plan = PFLDPlan.calibrated(
        epsilon=1.0, delta=1e-5, n_groups=2, primal_steps=400, dual_steps=20, sampling_probability=0.05
    )
    assert plan.sigma_primal == pytest.approx(8.4460, rel=2e-3)
    assert 0.99 < epsilon_of(plan.event, 1e-5) <= 1.0


@pytest.mark.parametrize(("noise", "difference", "epsilon"), [(2.0, 2.0, 1.20521), (1.0, 1.0, 2.198914)])
def test_replacing_a_contribution_of_a_poisson_sample(noise, difference, epsilon):
    """q = .01, noise/difference = 1, 1000 steps: centred (c = D/2), and with c = D."""
    event = repeat(ReplaceSampledGaussian(0.01, noise, difference), 1000)
    assert epsilon * (1 - 1e-6) <= epsilon_of(event, 1e-5) <= epsilon * (1 + 1e-4)
    assert event_from_dict(json.loads(json.dumps(event_to_dict(event)))) == event


def test_contributions_at_right_angles_cost_less_than_the_bound_for_their_norms():
    """c = D/√2, q = .01, noise/difference = 1, 1000 steps.

    Such a pair is one sampled contribution removed along one axis and one added along another: dp-accounting knows
    both. Our bound knows norms and distance only, so it lies above that pair, and below the curve for c = D.
    """
    one = from_gaussian_mechanism(math.sqrt(2), sampling_prob=0.01, value_discretization_interval=1e-4)
    both = one._pmf_remove.self_compose(1000).compose(one._pmf_add.self_compose(1000))
    exact = both.get_epsilon_for_delta(1e-5)
    assert exact == pytest.approx(1.383168, rel=1e-4)
    bound = epsilon_of(repeat(ReplaceSampledGaussian(0.01, math.sqrt(2), math.sqrt(2)), 1000), 1e-5)
    assert 1.383168 < bound < 2.198914


def test_the_two_ways_to_the_centred_bound_agree():
    """Our curve just below D = 2c, against dp-accounting at D = 2c."""
    for q, noise, steps in [(0.01, 2.0, 1000), (0.2, 5.0, 50), (1.0, 20.0, 10)]:
        at = epsilon_of(repeat(ReplaceSampledGaussian(q, noise), steps), 1e-5)
        below = epsilon_of(repeat(ReplaceSampledGaussian(q, noise, 2 - 1e-9), steps), 1e-5)
        assert below == pytest.approx(at, rel=1e-4)


def test_a_sample_of_everything_is_the_plain_release():
    sampled = epsilon_of(repeat(ReplaceSampledGaussian(1.0, 20.0), 10), 1e-5)
    assert sampled == pytest.approx(epsilon_of(repeat(GaussianDpEvent(10.0), 10), 1e-5), rel=1e-3)


@pytest.mark.parametrize("m", [2, 3])
def test_no_change_of_a_group_moves_the_counts_further_than_declared(m):
    best = 0.0
    for seed in range(5):
        _, y, groups = problem(m, seed, n=400)
        plan = PFLDPlan(m, 1, 1, 1e-9, 1e-9, 1e-9)
        sensitivity = plan.count_noise / plan.sigma_count
        base = _released_lines(plan, plan.release_counts(groups, y, 2, ZeroNoise()))
        for other in flips(groups, m):
            moved = np.linalg.norm(_released_lines(plan, plan.release_counts(other, y, 2, ZeroNoise())) - base)
            assert moved <= sensitivity * (1 + 1e-9)
            best = max(best, moved / sensitivity)
    assert best >= 0.99


def _released_lines(plan, table):
    """What carries the noise: with two groups, the sums of the second alone."""
    return table[1:] if plan.n_groups == 2 else table


@pytest.mark.covering
@pytest.mark.parametrize("m", [2, 3])
@pytest.mark.parametrize("notions", ALONE_AND_TOGETHER, ids=in_words)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_no_change_of_a_group_moves_the_violations_further_than_declared(m, notions, n_classes):
    best = 0.0
    for seed in range(4):
        _, y, groups = problem(m, seed, n_classes=n_classes)
        constraints, values = table(notions, y, n_classes, seed)
        cells, plan = constraints.cells.numpy(), half_noisy(m)

        def released(a, source, cells=cells, values=values, plan=plan, n=constraints.n_cells):
            return _released_lines(plan, plan.release_violations(values, cells, n, a, source))

        base = released(groups, ZeroNoise())
        scale = released(groups, UnitNoise()) - base
        if m == 3:  # the projection on sum zero takes a common shift away: read the scale off the plan
            scale = np.where(base != 0, _scale_of(plan, values, cells, constraints.n_cells), 0.0)
        used = scale > 0
        for other in flips(groups, m):
            moved = (released(other, ZeroNoise()) - base)[used] / scale[used]
            assert np.linalg.norm(moved) <= 1 + 1e-9
            best = max(best, np.linalg.norm(moved))
            if m == 2:
                assert np.allclose(released(other, UnitNoise()) - released(other, ZeroNoise()), scale, rtol=1e-12)
    assert best >= 0.99


def test_all_that_is_asked_of_one_rate_shares_its_release_and_what_is_asked_of_all_rows_has_none():
    _, y, groups = problem(3, 0)
    alone = RateParity("selection_rate", 0.05)
    others = [
        RateBound("selection_rate", upper=0.3, groups=(1,)),
        RateBound("selection_rate", upper=0.4, groups="overall"),
        RateBound("error_rate", upper=0.2, groups="overall"),
    ]
    one, all_ = (FairnessConstraints(asked, y, 2) for asked in ([alone], [alone, *others]))
    scores = all_.values(np.random.default_rng(0).dirichlet([1, 1], size=len(y)), y)
    plan = half_noisy(3)
    expected = release_asked(plan, one, groups, UnitNoise(), scores[:, :1])
    found = release_asked(plan, all_, groups, UnitNoise(), scores)
    np.testing.assert_array_equal(found[..., :2], np.repeat(expected, 2, axis=2))
    of_all = FairnessConstraints(others[1:], y, 2)
    assert not release_asked(plan, of_all, groups, None, scores[:, 2:]).any()  # nobody to draw noise


def _scale_of(plan, values, cells, n_cells):
    """Noise per sum with σ = 1: √2 times the largest joint violation, in units of each column's own bound."""
    centred = np.zeros_like(values)
    for c in range(values.shape[1]):
        for s in np.unique(cells[:, c]):
            rows = cells[:, c] == s
            centred[rows, c] = values[rows, c] - values[rows, c].mean()
    bounds = np.abs(centred).max(0)
    return math.sqrt(2) * np.linalg.norm(centred / bounds, axis=1).max() * bounds


@pytest.mark.parametrize("m", [2, 3])
def test_no_change_of_a_group_moves_the_moments_further_than_declared(m):
    best = 0.0
    for seed in range(5):
        X, _, groups = problem(m, seed)
        plan = half_noisy(m)
        base = _released_lines(plan, plan.release_moments(X, groups, ZeroNoise()))
        for other in flips(groups, m):
            moved = np.linalg.norm(_released_lines(plan, plan.release_moments(X, other, ZeroNoise())) - base)
            best = max(best, moved / plan.moment_noise(X))
    assert 0.99 <= best <= 1.0


def test_without_privacy_there_is_no_noise_and_no_guarantee():
    _, y, groups = problem(3, 0, n=600)
    plan = PFLDPlan.without_privacy(n_groups=3, primal_steps=4, dual_steps=2)
    assert plan.release_counts(groups, y, 2, UnitNoise())[1, 0] == np.sum((groups == 1) & (y == 0))
    assert isinstance(plan.event, NonPrivateDpEvent)
    assert epsilon_of(compose(plan.event), 1e-5) == math.inf


@pytest.mark.parametrize("m", [2, 25])
def test_counts_of_empty_groups_and_cells_stay_above_zero(m):
    groups, cells = np.zeros(60, dtype=int), np.zeros(60, dtype=int)
    plan = PFLDPlan.calibrated(epsilon=0.5, delta=1e-5, n_groups=m, primal_steps=1, dual_steps=1)
    counts = plan.release_counts(groups, cells, 3, NoiseSource(0))
    assert counts.shape == (m, 3) and np.all(counts > 0) and np.all(np.isfinite(counts))


@pytest.mark.parametrize("settings", [{"sampling_probability": 0.0}, {"sigma_dual": -1.0}, {"sigma_primal": math.nan}])
def test_a_plan_that_cannot_be_has_no_event(settings):
    with pytest.raises(ValueError, match="Got"):
        _ = replace(PFLDPlan(2, 1, 1, 1.0, 1.0, 1.0), **settings).event


@pytest.mark.parametrize("without", ["sigma_count", "sigma_primal", "sigma_dual"])
def test_a_plan_with_a_release_without_noise_states_no_epsilon(without):
    assert epsilon_of(replace(PFLDPlan(2, 1, 1, 1.0, 1.0, 1.0), **{without: 0.0}).event, 1e-5) == math.inf


def test_tables_of_sums_are_exact_however_many_rows_there_are():
    """Rows that reach 2^12 with the first one of them, and then small ones: sums in sequence round those otherwise."""
    n = 2**13  # of which no block is cut
    features = np.ones((n, 2))
    features[2**12 :] = 1.25 * 2.0**-41
    plan, source = half_noisy(2), ZeroNoise()
    groups = np.ones(n, dtype=int)
    whole = plan.release_moments(features, groups, source)[1]
    groups[0] = 0
    part = plan.release_moments(features, groups, source)[1]
    declared = plan.moment_noise(features) / plan.sigma_primal
    assert 0.99 < float(np.linalg.norm(whole - part)) / declared <= 1


@pytest.mark.parametrize("scale", [2 / 3, 1.0, 3 / 2])
def test_the_noise_has_the_accounted_scale(scale):
    """Two-sided: two thirds and three halves of the noise are rejected."""
    plan = PFLDPlan.calibrated(epsilon=1.0, delta=1e-5, n_groups=3, primal_steps=5, dual_steps=4)
    rng = np.random.default_rng(0)
    groups = rng.integers(3, size=40)
    features, values = rng.normal(size=(40, 300)), rng.random((40, 1))
    source = NoiseSource(3)
    draws = {
        "count": (
            plan._release(np.ones((40, 400)), groups, np.full(400, 40.0), plan.sigma_count, 1.0, source)
            - np.bincount(groups, minlength=3)[:, None],
            plan.sigma_count * math.sqrt(2),
        ),
        "gradient": (plan.release_gradient(np.zeros(1000), 0.7, source), plan.sigma_primal * 1.4),
        "moments": (
            plan.release_moments(features, groups, source) - np.stack([features[groups == a].sum(0) for a in range(3)]),
            plan.sigma_primal * math.sqrt(2) * np.linalg.norm(features, axis=1).max(),
        ),
    }
    centred = np.abs(values - values.mean()).max()
    zeros = np.zeros((40, 1), dtype=int)
    exact = plan.release_violations(values, zeros, 1, groups, ZeroNoise())
    many = [plan.release_violations(values, zeros, 1, groups, source) - exact for _ in range(400)]
    draws["dual"] = (np.array(many), plan.sigma_dual * math.sqrt(2) * centred)
    for noise, declared in draws.values():
        # three lines made to add up lose a third of their variance
        share = 1.0 if noise.ndim == 1 else math.sqrt(2 / 3)
        ratio = np.std(noise) / (declared * share * scale)
        assert bool(0.9 < ratio < 1.1) is (scale == 1.0)
