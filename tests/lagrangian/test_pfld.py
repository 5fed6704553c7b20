"""PFLDClassifier: what is released of the groups, how far it can move, what is charged, and what comes of it."""

import itertools
import json
import math
import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism
from sklearn.linear_model import LogisticRegression

from skfairdp.datasets import make_biased_classification
from skfairdp.exceptions import BudgetExceededError, PrivacyLeakWarning
from skfairdp.fairness import FairnessConstraints
from skfairdp.gradient import PFLDClassifier
from skfairdp.inspection import audit_matched_filter
from skfairdp.lagrangian import ConstraintGradient, PFLDPlan
from skfairdp.lagrangian._group_model import estimate_groups, public_features
from skfairdp.privacy import (
    GaussianDpEvent,
    GaussianMechanism,
    NoiseSource,
    NonPrivateDpEvent,
    PrivacyLedger,
    ReplaceSampledGaussian,
    compose,
    epsilon_of,
    event_from_dict,
    event_to_dict,
    repeat,
)
from tests._tools.sources import ChosenNoise, UnitNoise, ZeroNoise, installed

NOTIONS = ["demographic_parity", "equalized_odds", "accuracy_parity"]
ALONE_AND_TOGETHER = [[notion] for notion in NOTIONS] + [NOTIONS[:2], NOTIONS]


def problem(m, seed, n=24, n_classes=2):
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    y[:n_classes] = np.arange(n_classes)
    return rng.normal(size=(n, 3)), y, rng.integers(m, size=n)


def flips(groups, m):
    for i, new in itertools.product(range(len(groups)), range(m)):
        if new != groups[i]:
            other = groups.copy()
            other[i] = new
            yield other


def half_noisy(m, **more):
    return PFLDPlan(m, 3, 2, 1.0, 1.0, 1.0, **more)


def table(notions, y, n_classes, seed):
    rng = np.random.default_rng(seed)
    proba = torch.tensor(rng.dirichlet(np.ones(n_classes), size=len(y)))
    constraints = FairnessConstraints(notions, torch.tensor(y), n_classes)
    return constraints, constraints.values(proba, torch.tensor(y)).numpy()


# ---- vectors -------------------------------------------------------------------------------------------------
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


# ---- brute force over all single changes ------------------------------------------------------------------------
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


@pytest.mark.parametrize("m", [2, 3])
@pytest.mark.parametrize("notions", ALONE_AND_TOGETHER, ids="+".join)
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
def test_counts_of_empty_groups_and_strata_stay_above_zero(m):
    groups, strata = np.zeros(60, dtype=int), np.zeros(60, dtype=int)
    plan = PFLDPlan.calibrated(epsilon=0.5, delta=1e-5, n_groups=m, primal_steps=1, dual_steps=1)
    counts = plan.release_counts(groups, strata, 3, NoiseSource(0))
    assert counts.shape == (m, 3) and np.all(counts > 0) and np.all(np.isfinite(counts))


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"n_groups": 1}, "n_groups"),
        ({"sampling_probability": 0.0}, "sampling_probability"),
        ({"sigma_dual": -1.0}, "noises"),
        ({"sigma_dual": 0.0}, "no privacy"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(settings, named):
    given = {
        "n_groups": 2,
        "primal_steps": 1,
        "dual_steps": 1,
        "sigma_count": 1.0,
        "sigma_primal": 1.0,
        "sigma_dual": 1.0,
    }
    with pytest.raises(ValueError, match=named):
        PFLDPlan(**{**given, **settings})


# ---- gradients of the constraints ---------------------------------------------------------------------------------
def small_net(kind, n_classes):
    torch.manual_seed(0)
    activation = torch.nn.Tanh() if kind == "fused" else torch.nn.PReLU()  # which has no rule
    return torch.nn.Sequential(torch.nn.Linear(3, 5), activation, torch.nn.Linear(5, n_classes)).double()


def one_row_at_a_time(module, X, y, constraints):
    """Gradients of h minus their mean in the cell, shape (n_rows, n_constraints, n_parameters)."""
    parameters = list(module.parameters())
    rows = []
    for i in range(len(X)):
        values = constraints.values(torch.softmax(module(X[i : i + 1]), dim=1), y[i : i + 1])[0]
        rows.append(
            torch.stack(
                [
                    torch.cat([g.flatten() for g in torch.autograd.grad(value, parameters, retain_graph=True)])
                    for value in values
                ]
            )
        )
    centred = torch.stack(rows)
    for c in range(centred.shape[1]):
        for cell in constraints.cells[:, c].unique():
            here = constraints.cells[:, c] == cell
            centred[here, c] -= centred[here, c].mean(0)
    return centred


def setting(kind, m, notions, n_classes=2, seed=0, **more):
    X, y, groups = problem(m, seed, n_classes=n_classes)
    X, y = torch.tensor(X), torch.tensor(y)
    constraints = FairnessConstraints(notions, y, n_classes)
    module = small_net(kind, n_classes)
    weights = torch.from_numpy(
        np.random.default_rng(seed).normal(size=(m, constraints.n_cells, constraints.n_constraints))
    )

    def gradient(a, source, plan=None, **options):
        plan = half_noisy(m) if plan is None else plan
        return ConstraintGradient(
            X, y, torch.tensor(a), constraints, plan, source, dtype=torch.double, **{**more, **options}
        )

    return module, X, y, groups, constraints, weights, gradient


@pytest.mark.parametrize("notions", ALONE_AND_TOGETHER, ids="+".join)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kind", ["fused", "not fused"])
@pytest.mark.parametrize("clip", [None, 0.05])
def test_gradients_equal_those_of_one_row_at_a_time(notions, n_classes, kind, clip):
    module, X, y, groups, constraints, weights, gradient = setting(kind, 3, notions, n_classes, clip=clip)
    centred = one_row_at_a_time(module, X, y, constraints)
    expected = torch.zeros(centred.shape[2], dtype=torch.double)
    for c in range(centred.shape[1]):
        norms = centred[:, c].norm(dim=1, keepdim=True)
        factors = 1.0 if clip is None else (clip / norms).clamp_max(1.0)
        expected += (weights[groups, constraints.cells[:, c], c][:, None] * centred[:, c] * factors).sum(0)
    found = gradient(groups, ZeroNoise()).full(module, weights)
    assert torch.allclose(found, expected, rtol=0, atol=5e-5 * float(expected.norm() + centred.norm()))


@pytest.mark.parametrize("m", [2, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("notions", ALONE_AND_TOGETHER, ids="+".join)
def test_no_change_of_a_group_moves_the_gradient_further_than_declared(m, notions):
    best = 0.0
    for seed, clip in itertools.product(range(3), [None, 0.1]):
        module, _, _, groups, _, weights, gradient = setting("fused", m, notions, seed=seed, clip=clip)
        base = gradient(groups, ZeroNoise()).full(module, weights)
        sensitivity = float((gradient(groups, UnitNoise()).full(module, weights) - base)[0])
        for other in flips(groups, m):
            moved = gradient(other, ZeroNoise()).full(module, weights)
            assert float((moved - base).norm()) <= sensitivity * (1 + 1e-9)
            best = max(best, float((moved - base).norm()) / sensitivity)
        # what is declared does not depend on the groups
        noisy = gradient(other, UnitNoise()).full(module, weights) - moved
        assert torch.allclose(noisy, torch.full_like(noisy, sensitivity), rtol=1e-9)
    assert best <= 1 and (len(notions) > 1 or best >= 0.99)


class Drawn(ZeroNoise):
    """No noise, and a Poisson sample that is given."""

    def __init__(self, members):
        super().__init__()
        self.members = members

    def bernoulli(self, probability, size):
        return np.isin(np.arange(size), self.members)


@pytest.mark.parametrize("m", [2, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("notions", ALONE_AND_TOGETHER, ids="+".join)
def test_contributions_to_a_poisson_sample_are_centred_and_bounded(m, notions):
    """With and without the row in the sample: what it adds has at most the norm that the noise is scaled to."""
    best = 0.0
    plan = half_noisy(m, sampling_probability=0.25)
    for seed in range(3):
        module, X, _, groups, _, weights, gradient = setting("fused", m, notions, seed=seed)
        public = torch.arange(len(X))
        base = gradient(groups, Drawn([]), plan).sampled(module, weights, public)
        noisy = UnitNoise()
        noisy.bernoulli = lambda probability, size: np.zeros(size, dtype=bool)
        bound = float((gradient(groups, noisy, plan).sampled(module, weights, public) - base)[0])
        for i, a in itertools.product(range(len(X)), range(m)):
            other = groups.copy()
            other[i] = a
            added = float((gradient(other, Drawn([i]), plan).sampled(module, weights, public) - base).norm())
            assert added <= bound * (1 + 1e-9)
            best = max(best, added / bound)
    assert len(notions) > 1 or best >= 0.99


def test_tables_of_sums_are_exact_however_many_rows_there_are():
    """Rows that reach 2^16 with the first one of them, and then small ones: sums in sequence round those otherwise."""
    n = 2**17
    features = np.ones((n, 2))
    features[2**16 :] = 1.25 * 2.0**-37
    plan, source = half_noisy(2), ZeroNoise()
    groups = np.ones(n, dtype=int)
    whole = plan.release_moments(features, groups, source)[1]
    groups[0] = 0
    part = plan.release_moments(features, groups, source)[1]
    declared = plan.moment_noise(features) / plan.sigma_primal
    assert 0.99 < float(np.linalg.norm(whole - part)) / declared <= 1


@pytest.mark.parametrize("kind", ["fused", "not fused"])
@pytest.mark.parametrize("everyone", [True, False])
def test_rounding_does_not_take_a_sum_past_what_is_declared(monkeypatch, kind, everyone):
    """Gradients that agree in their first six digits, in single precision: the sum is 1e6 times what a row moves."""
    n = 4000
    rng = np.random.default_rng(0)
    X = torch.tensor(1e4 + 0.03 * rng.normal(size=(n, 3)), dtype=torch.float32)
    y, groups = torch.zeros(n, dtype=torch.long), rng.integers(2, size=n)
    constraints = FairnessConstraints(["demographic_parity"], y, 2)
    module = torch.nn.Sequential(torch.nn.Linear(3, 2), *([] if kind == "fused" else [torch.nn.PReLU(2)]))
    with torch.no_grad():
        module[0].weight.copy_(torch.tensor([[1e-5, -1e-5, 0.0], [0.0, 1e-5, -1e-5]]))
        module[0].bias.copy_(torch.tensor([0.3, 0.1]))
    weights = torch.tensor([3.0, 3.1]).reshape(2, 1, 1) / n
    released = []
    monkeypatch.setattr(
        PFLDPlan, "release_gradient", lambda self, total, radius, source: released.append((total, radius)) or total
    )
    plan = half_noisy(2) if everyone else half_noisy(2, sampling_probability=0.25)
    members = rng.permutation(n)[:1000]
    for change in (None, *members[:6]):
        a = groups.copy()
        if change is not None:
            a[change] = 1 - a[change]
        gradient = ConstraintGradient(X, y, torch.tensor(a), constraints, plan, Drawn(members))
        if everyone:
            gradient.full(module, weights)
        else:
            gradient.sampled(module, weights, torch.arange(500))
    (base, radius), *others = released
    declared = 2 * radius * (1 if everyone else 4)
    moved = [float(np.linalg.norm(other - base)) / declared for other, _ in others]
    assert {r for _, r in released} == {radius}
    assert max(moved) <= 1 and max(moved) > 1e-3


def test_a_poisson_sample_of_everything_estimates_the_full_gradient():
    module, X, y, groups, _, weights, gradient = setting("fused", 2, NOTIONS)
    plan = half_noisy(2, sampling_probability=0.5)
    public = torch.arange(len(X))
    total = torch.zeros(sum(p.numel() for p in module.parameters()), dtype=torch.double)
    for i in range(len(X)):  # each row in every second sample
        total += gradient(groups, Drawn([i]), plan).sampled(module, weights, public, with_loss=True)
    nothing = gradient(groups, Drawn([]), plan).sampled(module, weights, public, with_loss=True)
    bare = gradient(groups, Drawn([]), plan).sampled(module, weights, public)
    loss = torch.nn.functional.cross_entropy(module(X), y)
    of_loss = torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(module.parameters()))])
    expected = gradient(groups, ZeroNoise()).full(module, weights)
    # room for rounding shortens the longest gradients by 1e-4, and these sums of centred gradients are 0 without it
    assert torch.allclose(nothing - bare, of_loss, atol=1e-5) and float(bare.norm()) < 2e-4
    assert torch.allclose((total - len(X) * nothing) * 0.5, expected, atol=3e-4 * float(expected.norm()) + 1e-6)


def test_a_projection_keeps_the_constraints_direction_and_drops_noise():
    module, X, _, groups, _, weights, gradient = setting("fused", 2, NOTIONS[:1])
    exact = gradient(groups, ZeroNoise()).full(module, weights)
    kept = gradient(groups, ZeroNoise(), n_components=len(X)).full(module, weights)
    assert torch.allclose(kept, exact, atol=1e-6 * float(exact.norm()) + 1e-9)
    noise = gradient(groups, NoiseSource(0)).full(module, weights) - exact
    left = gradient(groups, NoiseSource(0), n_components=2).full(module, weights)
    left = left - gradient(groups, ZeroNoise(), n_components=2).full(module, weights)
    assert float(left.norm()) < 0.7 * float(noise.norm())


# ---- the estimator ------------------------------------------------------------------------------------------------
QUICK = {"groups": ["f", "m"], "hidden": (4,), "epochs": 2, "dual_steps": 3, "random_state": 0, "batch_size": 64}


def biased(n=600, seed=0):
    """Groups that differ in their features, and a label that follows the feature they differ in."""
    rng = np.random.default_rng(seed)
    groups = np.where(rng.random(n) < 0.4, "f", "m")
    X = rng.normal(size=(n, 4))
    X[:, 0] += 1.2 * (groups == "m")
    y = (X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=n) > 0.6).astype(int)
    return X, y, groups


def gap(predicted, groups):
    rates = [predicted[groups == a].mean() for a in np.unique(groups)]
    return max(rates) - min(rates)


@pytest.mark.parametrize(
    "settings",
    [{}, {"primal": "gradient"}, {"primal": "gradient", "sampling": "poisson", "sampling_probability": 0.3}],
    ids=["group model", "gradient", "Poisson"],
)
@pytest.mark.parametrize("constraint", ["demographic_parity", NOTIONS])
def test_epsilon_follows_from_the_event_and_is_what_was_asked(settings, constraint):
    X, y, groups = biased()
    model = PFLDClassifier(epsilon=2.0, constraints=constraint, **QUICK, **settings).fit(
        X, y, sensitive_features=groups
    )
    assert 1.98 < model.privacy_.epsilon <= 2.0
    assert model.privacy_.epsilon == epsilon_of(model.privacy_.event, 1e-5)
    assert model.privacy_.protects == "sensitive attribute"
    assert np.all(np.isfinite(model.predict_proba(X))) and np.all(np.abs(model.multipliers_) <= 5.0)


class Watched(ChosenNoise):
    """Remembers how often noise was drawn, and how much of it."""

    def __init__(self):
        super().__init__()
        self.sizes = []

    def normal(self, size=1):
        self.sizes.append(int(np.prod(size)))
        return super().normal(size)


@pytest.mark.parametrize("primal", ["group_model", "gradient"])
def test_no_more_is_released_than_accounted(primal):
    X, y, groups = biased()
    source = Watched()
    with installed(source):
        model = PFLDClassifier(primal=primal, primal_steps=7, **QUICK).fit(X, y, sensitive_features=groups)
    primal_releases = 1 if primal == "group_model" else 7
    parameters = sum(p.numel() for p in model.net_.parameters())
    long = 30 if primal == "group_model" else parameters  # no more than 600 / 20 features
    assert source.sizes.count(1) == 1 + 3  # sizes, then one number per dual step
    assert 1 <= source.sizes.count(long) <= primal_releases
    assert set(source.sizes) == {1, long}


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
            plan._release(np.ones((40, 400)), groups, np.full(400, 40.0), plan.count_noise, 1.0, source)
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


def test_without_epsilon_the_gap_of_the_training_rows_closes():
    X, y, groups = biased(3000)
    settings = {**QUICK, "hidden": (8,), "epochs": 30, "dual_steps": 60, "lr": 5e-3}
    free = PFLDClassifier(epsilon=None, lam_max=0.0, **settings).fit(X, y, sensitive_features=groups)
    fair = PFLDClassifier(epsilon=None, **settings).fit(X, y, sensitive_features=groups)
    assert gap(free.predict(X), groups) > 0.2
    assert gap(fair.predict(X), groups) < 0.01
    assert fair.score(X, y) > 0.7
    assert fair.privacy_.epsilon == math.inf and isinstance(fair.privacy_.event, NonPrivateDpEvent)


def test_notions_that_contradict_each_other_do_not_ruin_the_network():
    """Base rates differ by .3: no classifier worth having has both."""
    X, y, groups = make_biased_classification(4000, disparity=0.3, random_state=0)
    settings = {"epsilon": None, "groups": [0, 1], "epochs": 15, "batch_size": 64, "random_state": 0}
    free = PFLDClassifier(lam_max=0.0, **settings).fit(X, y, sensitive_features=groups)
    both = PFLDClassifier(constraints=NOTIONS[:2], **settings).fit(X, y, sensitive_features=groups)
    assert gap(both.predict(X), groups) < gap(free.predict(X), groups)
    assert both.score(X, y) > free.score(X, y) - 0.08


@pytest.mark.parametrize("m", [2, 3])
def test_where_nothing_is_violated_the_noise_moves_multipliers_by_half_at_most(m):
    """Labels and features say nothing of the group; ε is small and the rows few, so that full steps would be noise."""
    rng = np.random.default_rng(0)
    X, y, groups = rng.normal(size=(1500, 2)), np.arange(1500) % 2, np.arange(1500) // 2 % m
    settings = {**QUICK, "groups": list(range(m)), "dual_steps": 40, "lam_max": 50.0, "epochs": 1}

    def ends(step):
        found = []
        for seed in range(8):
            model = PFLDClassifier(epsilon=0.3, dual_step=step, noise_seed=seed, **settings)
            with pytest.warns(PrivacyLeakWarning, match="'noise_seed'"):
                model.fit(X, y, sensitive_features=groups)
            found.append(model.multipliers_.ravel())
        return np.sqrt(np.mean(np.square(found)))

    assert ends(None) < 0.5
    assert ends(10.0) > 1.0


@pytest.mark.parametrize("primal", ["group_model", "gradient"])
def test_private_multipliers_close_most_of_the_gap(primal):
    X, y, groups = biased(3000)
    settings = {**QUICK, "hidden": (8,), "epochs": 30, "dual_steps": 40, "lr": 5e-3, "noise_seed": 0}
    with pytest.warns(PrivacyLeakWarning, match="'noise_seed'"):
        model = PFLDClassifier(epsilon=2.0, primal=primal, **settings).fit(X, y, sensitive_features=groups)
    assert gap(model.predict(X), groups) < 0.05
    assert model.score(X, y) > 0.65  # without privacy .74; a constant has .53


def test_more_than_twenty_groups_some_of_them_empty():
    X, y, _ = biased()
    names = [f"group {i}" for i in range(25)]
    groups = np.array(names)[np.random.default_rng(0).integers(21, size=len(X))]
    for primal in ("group_model", "gradient"):
        model = PFLDClassifier(primal=primal, **{**QUICK, "groups": names, "constraints": NOTIONS})
        model.fit(X, y, sensitive_features=groups)
        assert model.noisy_counts_.shape == (25, 2) and np.all(model.noisy_counts_ > 0)
        assert np.all(np.isfinite(model.predict_proba(X))) and np.all(np.isfinite(model.multipliers_))


@pytest.mark.parametrize("primal", ["group_model", "gradient"])
def test_a_label_that_is_constant_within_a_group(primal):
    X, y, groups = biased()
    y = np.where(groups == "f", 0, y)
    model = PFLDClassifier(primal=primal, constraints="equalized_odds", **QUICK).fit(X, y, sensitive_features=groups)
    assert np.all(np.isfinite(model.predict_proba(X)))


def test_three_classes():
    X, y, groups = biased()
    y = y + (X[:, 2] > 1)
    model = PFLDClassifier(constraints=NOTIONS, **QUICK).fit(X, y, sensitive_features=groups)
    assert model.multipliers_.shape == (2, 3, 7) and set(model.predict(X)) <= {0, 1, 2}


def test_one_given_group_is_no_error():
    X, y, _ = biased()
    model = PFLDClassifier(**{**QUICK, "groups": ["f"]}).fit(X, y, sensitive_features=np.full(len(X), "f"))
    assert len(model.multipliers_) == len(model.groups_) == 1


def test_groups_that_are_read_off_private_rows_are_a_release_and_classes_are_none():
    X, y, groups = biased()
    with pytest.warns(PrivacyLeakWarning, match="'groups' parameter") as caught:
        PFLDClassifier(**{**QUICK, "groups": None}).fit(X, y, sensitive_features=groups)
    assert len(caught) == 1 and caught[0].filename == __file__


def test_sensitive_columns_are_dropped_from_the_features():
    X, y, groups = biased()
    frame = pd.DataFrame(X, columns=list("abcd")).assign(sex=groups)
    model = PFLDClassifier(sensitive_columns="sex", **QUICK).fit(frame, y)
    assert model.n_features_in_ == 5 and next(model.net_.parameters()).shape[1] == 4
    other = frame.assign(sex=groups[::-1])
    np.testing.assert_array_equal(model.predict(frame), model.predict(other))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"epsilon": 0.0}, "'epsilon' parameter of PFLDClassifier"),
        ({"constraints": []}, "'constraints' parameter of PFLDClassifier"),
        ({"constraints": ["equalized_odds", "equalized_odds"]}, "'constraints' parameter of PFLDClassifier"),
        ({"constraints": ["calibration"]}, "'constraints' parameter of PFLDClassifier"),
        ({"budget_split": (0.5, 0.5)}, "'budget_split' parameter of PFLDClassifier"),
        ({"budget_split": (0.0, 0.5, 0.5)}, "'budget_split' parameter of PFLDClassifier"),
        ({"sampling": "poisson"}, "sampling='poisson' of PFLDClassifier"),
        ({"hidden": (0,)}, "'hidden' parameter of PFLDClassifier"),
        ({"device": "nowhere"}, "PFLDClassifier"),
        ({"classes": [0]}, "y of PFLDClassifier"),
        ({"groups": ["f", "x"]}, "sensitive_features of PFLDClassifier"),
        ({"module": torch.nn.Sequential(torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2))}, "BatchNorm1d"),
    ],
)
def test_bad_settings_are_errors_before_anything_is_spent(settings, said):
    X, y, groups = biased()
    ledger = PrivacyLedger(epsilon=10)
    with pytest.raises(ValueError, match=said) as caught:
        PFLDClassifier(**{**QUICK, "ledger": ledger, **settings}).fit(X, y, sensitive_features=groups)
    assert ledger.entries == ()
    assert "'m'" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda X, y, g: (X, y, None), "needs the groups"),
        (lambda X, y, g: (X, y, g[:-1]), "inconsistent length"),
        (lambda X, y, g: (X, np.zeros_like(y), g), "only one class"),
        (lambda X, y, g: (X * 1e200, y, g), "Scale the features"),
    ],
)
def test_bad_rows_are_errors_before_anything_is_spent(change, said):
    X, y, groups = change(*biased())
    ledger = PrivacyLedger(epsilon=10)
    with pytest.raises(ValueError, match=said):
        PFLDClassifier(ledger=ledger, **QUICK).fit(X, y, sensitive_features=groups)
    assert ledger.entries == ()


def test_the_ledger_refuses_before_any_release():
    X, y, groups = biased()
    ledger = PrivacyLedger(epsilon=1.2)
    PFLDClassifier(ledger=ledger, **QUICK).fit(X, y, sensitive_features=groups)
    (entry,) = ledger.entries
    assert entry.protects == "sensitive attribute" and len(entry.releases) == 3
    model = PFLDClassifier(ledger=ledger, **QUICK)
    with pytest.raises(BudgetExceededError):
        model.fit(X, y, sensitive_features=groups)
    assert not hasattr(model, "net_") and len(ledger.entries) == 1


def test_a_pickle_holds_no_private_group():
    X, y, groups = biased()
    stored = pickle.dumps(PFLDClassifier(**{**QUICK, "groups": ["f", "m"]}).fit(X, y, sensitive_features=groups))
    again = pickle.loads(stored)
    arrays = [v for v in vars(again).values() if isinstance(v, np.ndarray)]
    assert all(len(X) not in array.shape for array in arrays)
    assert len(stored) < 12_000  # 600 groups in any coding would not fit beside net and report
    assert np.array_equal(again.predict(X), again.predict(X))


def test_dropout_and_modules_without_rules_can_be_trained():
    X, y, groups = biased()
    module = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.PReLU(), torch.nn.Dropout(0.3), torch.nn.Linear(6, 2))
    for settings in ({}, {"primal": "gradient"}, {"primal": "gradient", "sampling": "poisson"}):
        model = PFLDClassifier(module=module, **QUICK, **settings).fit(X, y, sensitive_features=groups)
        assert np.all(np.isfinite(model.predict_proba(X)))
        assert next(model.net_.parameters()) is not next(module.parameters())


def test_multipliers_of_a_convex_problem_are_those_of_the_constrained_optimum():
    """Logistic regression on one binary feature: the optimum under parity of probabilities has a closed form.

    With p0, p1 the prediction at x = 0 and 1, the mean of h in group a is p0 + (p1 - p0) P(x = 1 | a): parity means
    p0 = p1 = the share p of y. There the slope is stationary where Σ λ_a d_a = Cov(x, y) / (p (1 - p)), with
    d_a = P(x = 1 | a) - P(x = 1).
    """
    cells = [
        (0, 0, 0, 60),
        (0, 1, 0, 20),
        (1, 0, 0, 40),
        (1, 1, 0, 80),  # x, y, group, rows
        (0, 0, 1, 30),
        (0, 1, 1, 30),
        (1, 0, 1, 60),
        (1, 1, 1, 180),
    ]
    x, y, groups = (np.repeat([cell[k] for cell in cells], [cell[3] for cell in cells]) for k in range(3))
    model = PFLDClassifier(
        epsilon=None,
        hidden=(),
        violations="probabilities",
        epochs=1500,
        batch_size=len(x),
        lr=0.02,
        dual_step=2.0,
        dual_steps=750,
        groups=[0, 1],
        random_state=0,
    ).fit(x[:, None], y, sensitive_features=groups)
    share = y.mean()
    d = [x[groups == a].mean() - x.mean() for a in (0, 1)]
    # d/dw of the loss at p = share is -Cov(x, y); of the mean of h in group a beyond all, p (1 - p) d_a
    expected = np.cov(x, y, bias=True)[0, 1] / (share * (1 - share))
    found = sum(lam * part for lam, part in zip(model.multipliers_.ravel(), d, strict=True))
    np.testing.assert_allclose(model.predict_proba([[0], [1]])[:, 1], share, atol=2e-3)
    assert found == pytest.approx(expected, abs=1e-2)


# ---- the model of the groups --------------------------------------------------------------------------------------
def described_rows(n=4000, seed=0):
    X, y, groups = biased(n, seed)
    features, weights = public_features(X, y, 2, 40, seed)
    return X, y, (groups == "m").astype(int), features, weights


def test_features_are_orthonormal_and_no_row_weighs_more_than_twice_the_average():
    X, y, *_ = described_rows()
    X[0] *= 1e4  # a row that alone would set scale and sensitivity
    features, weights = public_features(X, y, 2, 40, 0)
    assert features.shape == (4000, 40)
    np.testing.assert_allclose(features.T @ features, np.eye(40), atol=1e-8)
    lengths = np.linalg.norm(features * weights[:, None], axis=1)
    assert lengths.max() <= 2 * math.sqrt(40 / 4000) * (1 + 1e-9)
    assert weights[0] < 1 and np.mean(weights == 1) > 0.9


def test_without_noise_the_moments_give_the_logistic_regression_of_the_group():
    _, _, groups, features, weights = described_rows()
    plan = PFLDPlan.without_privacy(n_groups=2, primal_steps=1, dual_steps=1)
    proba = estimate_groups(features, weights, 2, groups, plan, ZeroNoise(), max_iter=1000)
    peer = LogisticRegression(C=np.inf, fit_intercept=False, max_iter=5000, tol=1e-8)
    peer.fit(features * math.sqrt(len(features)), groups, sample_weight=weights)
    expected = peer.predict_proba(features * math.sqrt(len(features)))
    np.testing.assert_allclose(proba, expected, atol=5e-3)


@pytest.mark.parametrize("m", [2, 3])
def test_noisy_moments_still_tell_groups_apart_and_stay_finite_under_any_noise(m):
    X, _, groups, features, weights = described_rows()
    if m == 3:
        groups = groups + (X[:, 2] > 0.5)
    truth = np.eye(m)[groups]
    base = np.mean((truth.mean(0) - truth) ** 2)
    for epsilon, least in [(1.0, 0.1), (0.001, -np.inf)]:
        plan = PFLDPlan.calibrated(epsilon=epsilon, delta=1e-5, n_groups=m, primal_steps=1, dual_steps=40)
        proba = estimate_groups(features, weights, 2, groups, plan, NoiseSource(0))
        assert np.all(np.isfinite(proba)) and np.allclose(proba.sum(1), 1)
        assert 1 - np.mean((proba - truth) ** 2) / base > least


# ---- audit --------------------------------------------------------------------------------------------------------
def test_a_matched_filter_finds_most_of_the_certified_epsilon():
    """Every release of a fit on both neighbours, projected on the difference; multipliers at their bound."""
    module, X, y, groups, constraints, _, gradient = setting("fused", 2, NOTIONS[:1], seed=3)
    plan = PFLDPlan.calibrated(epsilon=4.0, delta=1e-5, n_groups=2, primal_steps=4, dual_steps=2)
    weights = torch.tensor([1.0, -1.0], dtype=torch.double)[:, None, None]
    with torch.no_grad():
        values = constraints.values(torch.softmax(module(X), dim=1), y).numpy()
    canary = int(one_row_at_a_time(module, X, y, constraints)[:, 0].norm(dim=1).argmax())
    other = groups.copy()
    other[canary] = 1 - groups[canary]
    exact = [gradient(a, ZeroNoise(), plan).full(module, weights).numpy() for a in (groups, other)]
    radius = float(gradient(groups, UnitNoise(), plan).full(module, weights)[0] - exact[0][0]) / (2 * plan.sigma_primal)
    cells = constraints.cells.numpy()
    source = NoiseSource(5)

    def releases(world, a):
        yield from (plan.release_gradient(exact[world], radius, source) for _ in range(4))
        yield from (plan.release_violations(values, cells, 1, a, source)[1] for _ in range(2))
        yield plan._release(np.ones((len(a), 1)), a, np.array([float(len(a))]), plan.count_noise, 1.0, source)[1]

    directions = [exact[1] - exact[0]] * 4
    moved = (values - values.mean())[canary] * (1 if other[canary] else -1)
    directions += [moved] * 2 + [np.array([1.0 if other[canary] else -1.0])]
    bound = np.abs(values - values.mean()).max()
    scales = [plan.primal_noise(radius)] * 4 + [plan.sigma_dual * bound] * 2 + [plan.count_noise]

    def score(world, a):
        parts = zip(releases(world, a), directions, scales, strict=True)
        return sum(float(np.ravel(out) @ np.ravel(way)) / scale**2 for out, way, scale in parts)

    result = audit_matched_filter(*([score(w, a) for _ in range(600)] for w, a in ((0, groups), (1, other))))
    assert 0.6 * 4.0 <= result.epsilon_lower(1e-5) <= 4.0


def test_published_sizes_lie_on_the_public_grid():
    """Sizes that are not clamped are multiples of the grid that their noise gives: no float betrays a count."""
    X, y, groups = biased()
    model = PFLDClassifier(**QUICK).fit(X, y, sensitive_features=groups)
    plan = model._plan(2)
    grid = GaussianMechanism(plan.count_noise).grid
    assert plan.count_noise / 2048 < grid <= plan.count_noise / 1024
    assert np.all(np.fmod(model.noisy_counts_, grid) == 0)
