"""Released gradients of constraints: equal to those of one row at a time, and never moved further than declared."""

import itertools

import numpy as np
import pytest
import torch

from skfairdp.fairness import FairnessConstraints
from skfairdp.inspection import audit_matched_filter
from skfairdp.privacy import NoiseSource
from tests._tools.inside import ConstraintGradient, PFLDPlan
from tests._tools.lagrangian import (
    ALONE_AND_TOGETHER,
    NOTIONS,
    Drawn,
    flips,
    half_noisy,
    in_words,
    one_row_at_a_time,
    setting,
)
from tests._tools.sources import UnitNoise, ZeroNoise


@pytest.mark.covering
@pytest.mark.parametrize("notions", ALONE_AND_TOGETHER, ids=in_words)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kind", ["by hand", "fused", "not fused"])
@pytest.mark.parametrize("clip", [None, 0.05])
def test_gradients_equal_those_of_one_row_at_a_time(notions, n_classes, kind, clip):
    module, X, y, groups, constraints, weights, gradient = setting(kind, 3, notions, n_classes, clip=clip)
    centred = one_row_at_a_time(module, X, y, constraints).double()
    expected = torch.zeros(centred.shape[2], dtype=torch.double)
    for c in range(centred.shape[1]):
        norms = centred[:, c].norm(dim=1, keepdim=True)
        factors = 1.0 if clip is None else (clip / norms).clamp_max(1.0)
        expected += (weights[groups, constraints.cells[:, c], c][:, None] * centred[:, c] * factors).sum(0)
    found = gradient(groups, ZeroNoise()).full(module, weights)
    assert torch.allclose(found, expected, rtol=0, atol=5e-5 * float(expected.norm() + centred.norm()))


@pytest.mark.covering
@pytest.mark.parametrize("kind", ["by hand", "fused"])
@pytest.mark.parametrize("m", [2, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("notions", ALONE_AND_TOGETHER, ids=in_words)
def test_no_change_of_a_group_moves_the_gradient_further_than_declared(m, notions, kind):
    best = 0.0
    for seed, clip in [(0, None), (1, 0.1), (2, 0.1)]:
        module, _, _, groups, _, weights, gradient = setting(kind, m, notions, seed=seed, clip=clip)
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


@pytest.mark.parametrize("sampled", [False, True], ids=["full", "sampled"])
def test_no_change_of_the_group_of_all_rows_of_a_subject_moves_the_gradient_further_than_declared(sampled):
    """Of seven subjects, with one to six rows, who are asked by one of them each."""
    whose, best = np.repeat(np.arange(7), [1, 2, 3, 4, 5, 6, 3]), 0.0
    asked = np.array([0, 2, 3, 8, 12, 17, 23])
    for notions, seed in itertools.product([NOTIONS[:1], NOTIONS], range(4)):
        module, X, _, groups, _, weights, gradient = setting("by hand", 2, notions, seed=seed, asked=asked)
        plan = half_noisy(2, sampling_probability=0.25) if sampled else half_noisy(2)

        source = Overheard(np.arange(7))
        for subject in [None, *range(7)]:
            made = gradient(np.where(whose == subject, 1 - groups, groups), source, plan)
            made.sampled(module, weights, torch.arange(len(X))) if sampled else made.full(module, weights)
        (base, declared), *others = source.released
        for moved, as_declared in others:
            assert as_declared == declared and np.linalg.norm(moved - base) <= declared
            best = max(best, np.linalg.norm(moved - base) / declared)
    assert best > 0.9


@pytest.mark.few(4)
@pytest.mark.parametrize("kind", ["by hand", "fused"])
@pytest.mark.parametrize("m", [2, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("notions", ALONE_AND_TOGETHER, ids=in_words)
def test_contributions_to_a_poisson_sample_are_centred_and_bounded(m, notions, kind):
    """With and without the row in the sample: what it adds has at most the norm that the noise is scaled to."""
    best = 0.0
    plan = half_noisy(m, sampling_probability=0.25)
    for seed in range(2):
        module, X, _, groups, _, weights, gradient = setting(kind, m, notions, seed=seed)
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


class Overheard(Drawn):
    """Remembers every sum that is to be released, and its declared sensitivity."""

    def __init__(self, members):
        super().__init__(members)
        self.released = []

    def release(self, mechanism, *private, **public):
        self.released.append((np.array(private[0]), mechanism.sensitivity))
        return super().release(mechanism, *private, **public)


@pytest.mark.parametrize("kind", ["by hand", "fused", "not fused"])
@pytest.mark.parametrize("everyone", [True, False])
def test_rounding_does_not_take_a_sum_past_what_is_declared(kind, everyone):
    """Gradients that agree in their first six digits, in single precision: the sum is 1e6 times what a row moves."""
    n = 4000
    rng = np.random.default_rng(0)
    X = torch.tensor(1e4 + 0.03 * rng.normal(size=(n, 3)), dtype=torch.float32)
    y, groups = torch.zeros(n, dtype=torch.long), rng.integers(2, size=n)
    constraints = FairnessConstraints(["demographic_parity"], y, 2)
    behind = {"by hand": [], "fused": [torch.nn.Identity()], "not fused": [torch.nn.PReLU(2)]}[kind]
    module = torch.nn.Sequential(torch.nn.Linear(3, 2), *behind)
    with torch.no_grad():
        module[0].weight.copy_(torch.tensor([[1e-5, -1e-5, 0.0], [0.0, 1e-5, -1e-5]]))
        module[0].bias.copy_(torch.tensor([0.3, 0.1]))
    weights = torch.tensor([3.0, 3.1]).reshape(2, 1, 1) / n
    plan = half_noisy(2) if everyone else half_noisy(2, sampling_probability=0.25)
    members = rng.permutation(n)[:1000]
    source = Overheard(members)
    for change in (None, *members[:6]):
        a = groups.copy()
        if change is not None:
            a[change] = 1 - a[change]
        gradient = ConstraintGradient(X, y, torch.tensor(a), constraints, plan, source)
        if everyone:
            gradient.full(module, weights)
        else:
            gradient.sampled(module, weights, torch.arange(500))
    (base, declared), *others = source.released
    moved = [float(np.linalg.norm(other - base)) / declared for other, _ in others]
    assert {s for _, s in source.released} == {declared}
    assert max(moved) <= 1 and max(moved) > 1e-3


class Heard(torch.nn.Sequential):
    """The same network with a forward pass of its own, which nobody writes out by hand."""

    def forward(self, X):
        return super().forward(X)


class Counted(Overheard):
    """Remembers how many words were drawn as well."""

    drawn = 0

    def _words(self, n):
        self.drawn += n
        return super()._words(n)


@pytest.mark.covering
@pytest.mark.parametrize("notions", [*ALONE_AND_TOGETHER, ["generalized_demographic_parity"]], ids=in_words)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n", [40, 3000])  # in one piece, and in several
def test_by_hand_the_same_sums_are_released_with_the_same_noise(notions, n_classes, n):
    rng = np.random.default_rng(1)
    X = torch.tensor(rng.normal(size=(n, 3)), dtype=torch.float32)
    y, groups = torch.tensor(rng.integers(n_classes, size=n)), torch.tensor(rng.integers(2, size=n))
    constraints = FairnessConstraints(notions, y, n_classes)
    weights = torch.tensor(rng.normal(size=(2, constraints.n_cells, constraints.n_constraints)))
    torch.manual_seed(0)
    layers = (
        torch.nn.Linear(3, 6),
        torch.nn.ReLU(),
        torch.nn.Linear(6, 5),
        torch.nn.Tanh(),
        torch.nn.Linear(5, n_classes),
    )
    found = {}
    for kind in (torch.nn.Sequential, Heard):
        source, module = Counted(np.arange(0, n, 2)), kind(*layers)
        plan = half_noisy(2, sampling_probability=0.5)
        for each in (half_noisy(2), plan):
            gradient = ConstraintGradient(X, y, groups, constraints, each, source)
            if each is plan:
                gradient.sampled(module, weights, torch.arange(n // 3), with_loss=True)
                gradient.sampled(module, weights, torch.arange(n // 3))
            else:
                gradient.full(module, weights)
            assert gradient._layers(module)[1] == (kind is torch.nn.Sequential)
        found[kind] = source
    mine, other = found.values()
    assert mine.drawn == other.drawn and len(mine.released) == 3
    for (total, declared), (expected, as_declared) in zip(mine.released, other.released, strict=True):
        assert declared == pytest.approx(as_declared, rel=1e-4)
        # public sums are of single precision: their rounding follows the number of rows
        np.testing.assert_allclose(total, expected, atol=1e-6 * n * float(weights.abs().max()))


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


@pytest.mark.slow
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
        yield plan._release(np.ones((len(a), 1)), a, np.array([float(len(a))]), plan.sigma_count, 1.0, source)[1]

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
