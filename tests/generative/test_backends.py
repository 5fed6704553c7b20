"""Backends whose teachers are discriminators: accounting vectors, samplers, networks, images, unknown groups."""

import math
import pickle

import numpy as np
import pandas as pd
import pytest
import torch

from skfairdp import PFGuardGenerator, PrivacyLedger
from skfairdp._networks import GeneratorNet, StackedDiscriminators
from skfairdp.generative import DataLensBackend, GPATEBackend, GSWGANBackend, PATEGANBackend
from skfairdp.generative._releases import (
    BinnedGradients,
    CountsOfRows,
    MajorityBits,
    MeanGradient,
    SanitisedGradient,
    TopSigns,
)
from skfairdp.generative._samplers import TeacherParts, density_ratios, importance_weights, normalized
from skfairdp.privacy import NoiseSource, calibrate_noise, epsilon_of, gdp_epsilon, gdp_mu, repeat

# So few rows that a group of them is hardly more than the noise; what is said about it is tested on its own.
pytestmark = pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning")

SMALL = {"n_teachers": 10, "n_steps": 3, "batch_size": 6, "hidden": (8,), "latent": 4}
BACKENDS = {
    "pate_gan": PATEGANBackend(student_steps=2, generator_steps=2, **SMALL),
    "gs_wgan": GSWGANBackend(**SMALL),
    "gs_wgan, one": GSWGANBackend(answers="one", **SMALL),
    "gs_wgan, global_adapt": GSWGANBackend(clipping="global_adapt", **SMALL),
    "datalens": DataLensBackend(k=4, **SMALL),
    "g_pate": GPATEBackend(n_coordinates=3, **SMALL),
}
every_backend = pytest.mark.parametrize("backend", BACKENDS.values(), ids=BACKENDS)


# ---- accounting ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("queries", "sigma", "epsilon"), [(6400, 100, 3.386933), (6400, 200, 1.554982), (1000, 50, 2.594383)]
)
def test_bits_of_pate_gan_cost_at_most_the_gaussian_figure(queries, sigma, epsilon):
    event = repeat(MajorityBits(100, float(sigma)).event, queries)
    assert epsilon_of(event, 1e-5, accountant="gdp") == pytest.approx(epsilon, rel=1e-5)
    assert 0.6 * epsilon < epsilon_of(event, 1e-5) < epsilon  # exact for bits, hence less


@pytest.mark.parametrize("batch_size", [8, 32])
def test_gs_wgan_is_accounted_as_the_joint_event_whatever_the_batch(batch_size):
    event = repeat(SanitisedGradient(1000, batch_size, 1.0, 0.7).event, 20_000)
    assert epsilon_of(event, 1e-5) == pytest.approx(2.0577, rel=0.01)


@pytest.mark.parametrize(("multiplier", "epsilon"), [(0.4646, 10.0), (0.9438, 1.0)])
def test_multipliers_of_gs_wgan_for_a_budget(multiplier, epsilon):
    spent = epsilon_of(repeat(SanitisedGradient(1000, 32, 1.0, multiplier).event, 20_000), 1e-5)
    assert spent == pytest.approx(epsilon, rel=0.01)


def test_datalens_and_g_pate_are_accounted_without_data():
    event = repeat(TopSigns(300, 800.0).event, 2000)
    assert epsilon_of(event, 1e-5) == pytest.approx(9.608352, rel=1e-6)
    assert gdp_mu(epsilon_of(event, 1e-5), 1e-5) == pytest.approx(1.936492, rel=1e-5)
    event = repeat(BinnedGradients(10, 600.0, 100.0).event, 64_000)
    assert gdp_mu(epsilon_of(event, 1e-5), 1e-5) == pytest.approx(11.39, abs=0.005)
    assert epsilon_of(event, 1e-5) == pytest.approx(112.6, abs=0.1)


def test_noise_of_the_sanitised_gradient_is_that_of_the_whole_batch():
    mechanism = SanitisedGradient(10, 16, 0.5, 3.0)
    noise = mechanism.release(np.zeros((16, 400)), NoiseSource(0))
    assert noise.std() == pytest.approx(3.0 * 2 * 0.5 * 4, rel=0.03)
    long = mechanism.clipped(np.full((16, 400), 7.0))
    assert np.linalg.norm(long, axis=1) == pytest.approx(0.5)
    assert np.linalg.norm(mechanism.clipped(np.full((16, 4), np.inf)), axis=1).max() <= 0.5
    with pytest.raises(ValueError, match="lets out 16 gradients"):
        mechanism.release(np.zeros((3, 4)), NoiseSource(0))
    draws = [mechanism.draw(NoiseSource(seed)) for seed in range(300)]
    assert set(draws) == set(range(10))


def test_opposite_answers_move_the_mean_as_far_as_declared():
    mechanism = MeanGradient(10, 16, 0.5, 3.0)
    gradients = np.zeros((10, 16, 400))
    gradients[:, :, 0] = 9.0
    other = gradients.copy()
    other[4] *= -1
    moved = np.linalg.norm(mechanism.mean(gradients) - mechanism.mean(other))
    sensitivity = 2 * 0.5 * 4 / 10
    assert moved == pytest.approx(sensitivity)
    noise = mechanism.release(gradients, NoiseSource(0)) - mechanism.mean(gradients)
    assert noise.std() == pytest.approx(3.0 * sensitivity, rel=0.03)
    assert epsilon_of(mechanism.event, 1e-5) == pytest.approx(gdp_epsilon(1 / 3.0, 1e-5))
    other[4, 2, :2] = [np.nan, np.inf]
    assert np.isfinite(mechanism.mean(other)).all()
    with pytest.raises(ValueError, match="lets out 10 x 16 gradients, but there are 10 x 3"):
        mechanism.release(gradients[:, :3], NoiseSource(0))


@pytest.mark.parametrize(
    ("two_sided", "sensitivity"), [(True, math.sqrt(2 * (5**2 + 11**2))), (False, math.hypot(5, 11))]
)
def test_counts_of_long_gradients_move_as_far_as_declared_when_all_rows_of_a_discriminator_change_sides(
    two_sided, sensitivity
):
    mechanism = CountsOfRows((5, 11), 2.0, two_sided)
    before, after = np.array([[5.0, 0.0], [11.0, 0.0]]), np.array([[0.0, 5.0], [0.0, 11.0]])
    moved = (after - before) if two_sided else (after - before)[:, 1]
    assert np.linalg.norm(moved) == pytest.approx(sensitivity)
    noise = mechanism.release(np.zeros(20_000), NoiseSource(0))
    assert noise.std() == pytest.approx(2.0 * sensitivity, rel=0.02)
    assert epsilon_of(mechanism.event, 1e-5) == pytest.approx(gdp_epsilon(0.5, 1e-5))


def test_clipping_by_group_needs_groups_and_all_discriminators():
    X, y, s = easy(60)
    ledger = PrivacyLedger()
    with pytest.raises(ValueError, match=r"GSWGANBackend\(clipping='dpsgd_f'\) has a bound for each group"):
        make(GSWGANBackend(clipping="dpsgd_f", **SMALL), groups=None, balance=None, ledger=ledger).fit(X, y)
    backend = GSWGANBackend(clipping="global_adapt", answers="one", **SMALL)
    with pytest.raises(ValueError, match="counts the gradients of all discriminators and needs answers='all'"):
        make(backend, ledger=ledger).fit(X, y, sensitive_features=s)
    assert ledger.entries == ()


@pytest.mark.parametrize(
    ("epsilon", "n_teachers", "steps", "ratio"),
    [(1.0, 100, 400, 1.58), (10.0, 100, 400, 5.03), (1.0, 1000, 20_000, 1.79), (10.0, 1000, 20_000, 6.57)],
)
def test_the_mean_of_all_discriminators_has_less_noise_than_one_that_is_drawn(epsilon, n_teachers, steps, ratio):
    """The figures of the docstring: at the same ε, after as many steps of as large batches."""
    drawn = calibrate_noise(
        lambda noise: repeat(SanitisedGradient(n_teachers, 8, 1.0, noise).event, steps), epsilon, 1e-5, guess=1.0
    )
    one = SanitisedGradient(n_teachers, 8, 1.0, drawn)
    together = MeanGradient(n_teachers, 8, 1.0, math.sqrt(steps) / gdp_mu(epsilon, 1e-5))
    assert one._vector.sigma / together._vector.sigma == pytest.approx(ratio, abs=0.01)


def test_noise_of_signs_bits_and_bins_has_the_declared_scale():
    signs = TopSigns(9, 5.0).release(np.zeros(20_000), NoiseSource(0), least=5.0)
    assert np.mean(signs == 0) == pytest.approx(0.6827, abs=0.01)
    bits = MajorityBits(100, 10.0).release(np.full(20_000, 40), NoiseSource(0))
    assert bits.mean() == pytest.approx(0.1587, abs=0.01)
    counts = np.tile([10, 0], (20_000, 1, 1))
    winners, answered = BinnedGradients(1, 8.0, 10.0).release(counts, NoiseSource(0), threshold=18.0)
    assert answered.mean() == pytest.approx(0.1587, abs=0.01)
    assert winners.mean() == pytest.approx(0.2398, abs=0.01)  # Φ(−10 / (10 √2))


def test_top_signs_are_those_of_the_largest_coordinates():
    gradients = np.array([[3.0, -0.1, -2.0, 0.5], [0.0, 1.0, -5.0, 0.1], [np.nan, 0.2, 0.1, -3.0]])
    assert TopSigns(2, 1.0).votes(gradients).tolist() == [1.0, 2.0, -2.0, -1.0]
    assert TopSigns(9, 1.0).votes(gradients[:1]).tolist() == [1.0, -1.0, -1.0, 1.0]


# ---- fair batches ----------------------------------------------------------------------------------------------
def test_importance_weights_sum_to_the_rates_in_every_cell_that_is_there():
    cells = np.array([0] * 90 + [1] * 9 + [3])
    rates = np.array([0.1, 0.2, 0.3, 0.4])
    weights = importance_weights(cells, rates)
    sums = np.bincount(cells, weights, minlength=4)
    np.testing.assert_allclose(sums, np.array([0.1, 0.2, 0, 0.4]) / 0.7)
    ratios = np.array([1.0, 2.0, 3.0])
    expected = ratios / (6 - ratios)
    np.testing.assert_allclose(normalized(ratios, "N2"), expected / expected.sum())
    np.testing.assert_allclose(normalized(np.array([0.0, 0.0]), "N1"), 0.5)
    np.testing.assert_allclose(normalized(np.array([0.0, 5.0]), "N2"), [0, 1])


@pytest.mark.parametrize("sampling", ["importance", "stratified"])
def test_batches_are_balanced_to_the_rates_within_every_part(sampling):
    rng = np.random.default_rng(0)
    cells = rng.choice(4, size=4000, p=[0.7, 0.1, 0.15, 0.05])
    rates = np.full(4, 0.25)
    parts = TeacherParts(cells, rates, 8, np.random.default_rng(1), sampling=sampling)
    index = np.concatenate([parts.batch(64) for _ in range(20)], axis=1)
    shares = np.stack([np.bincount(cells[own], minlength=4) / len(own) for own in index])
    np.testing.assert_allclose(shares, 0.25, atol=0.06)
    if sampling == "stratified":
        one = parts.batch(64)
        assert all(np.ptp(np.bincount(cells[own], minlength=4)) <= 2 for own in one)
    plain = TeacherParts(cells, rates, 8, np.random.default_rng(1), balanced=False).batch(2000)
    assert np.mean(cells[plain] == 0) == pytest.approx(0.7, abs=0.03)


def test_weights_of_the_loss_balance_batches_that_are_drawn_as_they_are():
    rng = np.random.default_rng(0)
    cells = rng.choice(4, size=4000, p=[0.7, 0.1, 0.15, 0.05])
    parts = TeacherParts(cells, np.full(4, 0.25), 8, np.random.default_rng(1), sampling="weights")
    index = parts.batch(2000)
    assert np.mean(cells[index] == 0) == pytest.approx(0.7, abs=0.03)
    for own in parts.rows:
        sums = np.bincount(cells[own], parts.loss_weights[own], minlength=4)
        np.testing.assert_allclose(sums / len(own), 0.25)
    even = TeacherParts(cells, np.full(4, 0.25), 8, np.random.default_rng(1), sampling="weights", balanced=False)
    np.testing.assert_allclose(even.loss_weights, 1.0)
    assert TeacherParts(cells, np.full(4, 0.25), 8, np.random.default_rng(1)).loss_weights is None


def test_the_sizes_of_parts_and_draws_are_the_same_whatever_the_cells():
    rates = np.full(2, 0.5)
    one = TeacherParts(np.zeros(50, dtype=int), rates, 7, np.random.default_rng(3))
    two = TeacherParts(np.arange(50) % 2, rates, 7, np.random.default_rng(3))
    np.testing.assert_array_equal(one.assignment, two.assignment)
    assert one.batch(9).shape == two.batch(9).shape == (7, 9)


def test_estimated_ratios_favour_rows_like_the_reference():
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(-2, 1, (450, 2)), rng.normal(2, 1, (50, 2))])
    reference = np.concatenate([rng.normal(-2, 1, (50, 2)), rng.normal(2, 1, (50, 2))])
    ratios = density_ratios(rows, reference)
    assert ratios[450:].mean() > 4 * ratios[:450].mean()
    assert ratios.min() >= 1 / 20 and ratios.max() <= 20
    assert len(density_ratios(np.zeros((0, 2)), reference)) == 0


# ---- networks --------------------------------------------------------------------------------------------------
def as_modules(stack, which):
    """One discriminator of a stack as a torch module."""
    *hidden, last, bias = [p[which] for p in stack.params]
    layers = []
    for weight, offset in zip(hidden[::2], hidden[1::2], strict=True):
        layer = torch.nn.Linear(*weight.shape)
        layer.weight.data, layer.bias.data = weight.T.clone(), offset[0].clone()
        layers += [layer, torch.nn.ReLU()]
    out = torch.nn.Linear(last.shape[1], 1)
    out.weight.data, out.bias.data = last.clone(), bias[:, 0].clone()
    return torch.nn.Sequential(*layers, out)


def value_of(module, loss, real, fake, between, weights):
    """The loss of one discriminator, by automatic differentiation twice where slopes are penalised."""
    scores = module(real)[:, 0], module(fake)[:, 0]
    if loss == "logistic":
        real_part = torch.nn.functional.softplus(-scores[0])
        return (weights * real_part).sum() + torch.nn.functional.softplus(scores[1]).mean()
    middle = (real + between * (fake - real)).requires_grad_()
    (slopes,) = torch.autograd.grad(module(middle).sum(), middle, create_graph=True)
    return scores[1].mean() - (weights * scores[0]).sum() + 10 * ((slopes.norm(dim=1) - 1) ** 2).mean()


@pytest.mark.parametrize("weighted", [False, True], ids=["even", "weighted"])
@pytest.mark.parametrize("loss", ["logistic", "wasserstein"])
@pytest.mark.parametrize("hidden", [(), (5,), (6, 4)])
def test_gradients_of_a_stack_are_those_of_its_discriminators_one_by_one(loss, hidden, weighted):
    torch.manual_seed(0)
    stack = StackedDiscriminators(3, hidden, range(4), loss=loss, lr=0.01)
    between = torch.Generator().manual_seed(0)
    for _ in range(5):
        alone = [as_modules(stack, k) for k in range(4)]
        real, fake = torch.randn(4, 7, 3) + 1, torch.randn(7, 3)
        weights = torch.rand(4, 7) if weighted else None
        rows = torch.randn(6, 3)
        scores, slopes = stack.scores(rows), stack.input_gradients(rows)
        one_by_one = [stack.input_gradients(rows, k) for k in range(4)]
        stack.step(real, fake, weights=weights)
        at = torch.rand((7, 1), generator=between)
        for k, module in enumerate(alone):
            shares = weights[k] / weights[k].sum() if weighted else torch.full((7,), 1 / 7)
            value_of(module, loss, real[k], fake, at, shares).backward()
            expected = [p.grad for p in module.parameters()]
            found = [g[k] for g in stack._gradients]
            found[:-2:2] = [g.T for g in found[:-2:2]]
            for one, two in zip(found, expected, strict=True):
                torch.testing.assert_close(one, two.reshape(one.shape), atol=1e-5, rtol=1e-4)
            asked = rows.clone().requires_grad_(True)
            score = module(asked)[:, 0]
            torch.testing.assert_close(scores[k], score.detach(), atol=1e-5, rtol=1e-4)
            value = score if loss == "wasserstein" else torch.nn.functional.logsigmoid(score)
            (slope,) = torch.autograd.grad(value.sum(), asked)
            torch.testing.assert_close(slopes[k], slope, atol=1e-5, rtol=1e-4)
            torch.testing.assert_close(one_by_one[k], slope, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("hidden", [(), (5,), (6, 4)])
def test_a_stack_steps_like_its_discriminators_one_by_one(hidden):
    torch.manual_seed(0)
    stack = StackedDiscriminators(3, hidden, range(4), loss="logistic", lr=0.01)
    alone = [as_modules(stack, k) for k in range(4)]
    optimizers = [torch.optim.Adam(module.parameters(), lr=0.01, betas=(0.5, 0.999)) for module in alone]
    for _ in range(5):
        real, fake = torch.randn(4, 7, 3) + 1, torch.randn(7, 3)
        stack.step(real, fake)
        for k, (module, optimizer) in enumerate(zip(alone, optimizers, strict=True)):
            optimizer.zero_grad()
            value_of(module, "logistic", real[k], fake, None, torch.full((7,), 1 / 7)).backward()
            optimizer.step()
    rows = torch.randn(6, 3)
    for scores, module in zip(stack.scores(rows), alone, strict=True):
        torch.testing.assert_close(scores, module(rows)[:, 0].detach(), atol=1e-5, rtol=1e-4)


def test_the_penalty_holds_slopes_between_real_and_fake_where_theory_says():
    """Along the line of length D between two clouds a slope g gains D g and costs 10 (g − 1)²: g = 1 + D/20 is best."""
    torch.manual_seed(0)
    stack = StackedDiscriminators(3, (16, 16), range(3), loss="wasserstein", lr=0.01)
    centres = torch.tensor([2.0, -1.0, 0.0])
    for _ in range(400):
        stack.step(0.3 * torch.randn(3, 32, 3) + centres, 0.3 * torch.randn(32, 3))
    middle = torch.rand(200, 1) * centres + 0.3 * torch.randn(200, 3)
    norms = stack.input_gradients(middle).norm(dim=2)
    torch.testing.assert_close(norms.mean(dim=1), (1 + centres.norm() / 20).expand(3), atol=0.05, rtol=0)
    assert (stack.scores(centres[None]) > stack.scores(torch.zeros(1, 3))).all()


def test_gold_weighs_the_rows_that_look_real_by_their_ratio_of_densities():
    stack = StackedDiscriminators(1, (), [0], loss="logistic", lr=0.1)
    stack.params[0].fill_(1.0), stack.params[1].fill_(0.0)
    real = torch.tensor([[[-9.0], [0.0], [9.0]]])
    kept = []
    original = stack.net.backpropagate
    stack.net.backpropagate = lambda p, g, a, s: (kept.append(s.clone()), original(p, g, a, s))
    stack.step(real, torch.zeros(3, 1), gold=True)
    slopes = torch.sigmoid(real[0, :, 0]) - 1
    weights = kept[0][0, 0, :3] / slopes
    torch.testing.assert_close(weights, torch.tensor([0.2, 1.0, 5.0]) / 6.2, atol=1e-4, rtol=1e-3)


def test_generator_rows_are_cells_that_may_be_sampled_and_gradients_flow_through_them():
    allowed = np.array([True, True, False, True, False])
    net = GeneratorNet(2, (3, 2), 0, allowed, (8,), 4, seed=0)
    rows = net.rows(np.array([0, 1] * 200), np.random.default_rng(0))
    assert set(rows[:, 0]) == {0, 1} and set(rows[:, 1]) == {0}
    fakes = net.fakes(np.zeros(5, dtype=np.int64), np.random.default_rng(0))
    assert torch.allclose(fakes.detach().sum(dim=1), torch.full((5,), 2.0))
    fakes.backward(torch.randn(5, 5))
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in net.parameters())


# ---- the generator ---------------------------------------------------------------------------------------------
def easy(n=600, seed=0):
    rng = np.random.default_rng(seed)
    s = (rng.random(n) < 0.2).astype(int)
    X = pd.DataFrame(
        {
            "colour": pd.Series(np.where(rng.random(n) < 0.9, "red", "blue"), dtype=object),
            "size": np.where(rng.random(n) < 0.85, 1, 4),
        }
    )
    return X, (rng.random(n) < 0.5).astype(int), s


def make(backend, **more):
    given = {
        "epsilon": 50.0,
        "bounds": {"size": (0, 5)},
        "categories": {"colour": ["red", "blue"]},
        "dtypes": {"size": int},
        "classes": [0, 1],
        "groups": [0, 1],
        "random_state": 0,
    }
    return PFGuardGenerator(backend=backend, **{**given, **more})


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*draws its noise from 'noise_seed'")
@pytest.mark.parametrize(
    "backend",
    [
        PATEGANBackend(
            n_teachers=10, n_steps=150, teacher_steps=1, student_steps=5, generator_steps=5, hidden=(16,), latent=4
        ),
        GSWGANBackend(n_teachers=10, n_steps=200, hidden=(16,), latent=4),
        GSWGANBackend(answers="one", n_teachers=10, n_steps=400, hidden=(16,), latent=4),
        GSWGANBackend(clipping="global_adapt", n_teachers=10, n_steps=200, hidden=(16,), latent=4),
        DataLensBackend(n_teachers=10, n_steps=200, k=4, hidden=(16,), latent=4, least=0.5, lr=2e-3),
        GPATEBackend(n_teachers=10, n_steps=300, hidden=(16,), latent=4, n_coordinates=12, lr=1e-3),
    ],
    ids=BACKENDS,
)
def test_with_a_large_budget_a_backend_learns_what_is_frequent(backend):
    X, y, s = easy()
    epsilon = 100.0 if isinstance(backend, GSWGANBackend) else 2000.0
    generator = make(backend, epsilon=epsilon, noise_seed=0)
    new = generator.fit(X, y, sensitive_features=s).sample(2000, random_state=0)
    assert (new["colour"] == "red").mean() > 0.6
    assert (new["size"] <= 2).mean() > 0.5


@pytest.mark.filterwarnings("ignore:.*draws its noise from 'noise_seed'")
def test_rows_of_gs_wgan_are_those_of_the_group_they_are_asked_for():
    rng = np.random.default_rng(0)
    s = (rng.random(2000) < 0.2).astype(int)
    X = rng.normal(np.where(s == 1, 0.4, -0.4)[:, None], 0.2, (2000, 30))
    backend = GSWGANBackend(n_teachers=50, n_steps=80, batch_size=16, teacher_steps=2, hidden=(32,))
    generator = PFGuardGenerator(
        epsilon=10.0,
        backend=backend,
        codec="units",
        bounds=(-1, 1),
        groups=[0, 1],
        random_state=0,
        noise_seed=0,
    )
    new, group = generator.fit(X, sensitive_features=s).sample(1000, return_sensitive=True, random_state=0)
    assert np.mean((new.mean(axis=1) > 0) == (np.asarray(group) == 1)) > 0.9


@every_backend
def test_a_fit_spends_what_was_asked_writes_it_down_and_pickles_without_rows(backend):
    X, y, s = easy(120)
    ledger = PrivacyLedger()
    generator = make(backend, epsilon=4.0, ledger=ledger).fit(X, y, sensitive_features=s)
    assert 0.97 * 4.0 < generator.privacy_.epsilon <= 4.0
    assert len(ledger.entries) == 1 and ledger.entries[0].event == generator.privacy_.event
    stored = pickle.dumps(generator)
    assert len(stored) < 60_000
    copy = pickle.loads(stored)
    pd.testing.assert_frame_equal(copy.sample(30, random_state=0), generator.sample(30, random_state=0))
    _, labels, groups = generator.sample_labels(100, return_sensitive=True)
    assert pd.Series(groups).value_counts().to_dict() == {0: 50, 1: 50} and set(labels) <= {0, 1}


@every_backend
def test_images_come_back_in_their_shape_dtype_and_range(backend):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (60, 4, 5), dtype=np.uint8)
    generator = PFGuardGenerator(epsilon=5.0, backend=backend, classes=[0, 1], groups=["a", "b"])
    generator.fit(images, rng.integers(0, 2, 60), sensitive_features=rng.choice(["a", "b"], 60))
    new, y = generator.sample_labels(7)
    assert new.shape == (7, 4, 5) and new.dtype == np.uint8 and y.shape == (7,)
    assert generator.n_features_in_ == 20
    with pytest.raises(ValueError, match="needs public bounds"):
        generator.set_params(backend=backend).fit(images.astype(float), None, sensitive_features=["a", "b"] * 30)
    flat = PFGuardGenerator(epsilon=5.0, backend=backend, codec="units", bounds=(0, 1), groups=[0, 1])
    X = np.array([[5.0, -3.0, np.nan, 0.5]] * 20)
    new = flat.fit(X, sensitive_features=[0, 1] * 10).sample(50)
    assert new.min() >= 0 and new.max() <= 1 and new.shape == (50, 4)


@every_backend
def test_unknown_groups_are_balanced_towards_a_reference(backend):
    X, y, _ = easy(120)
    generator = make(backend, groups=None).fit(X, y, X_public=X[:20])
    assert generator.groups_ is None and generator.sample(3).shape == (3, 2)


def test_marginals_refuse_images_and_unknown_groups():
    X, y, _ = easy(120)
    with pytest.raises(ValueError, match="cannot balance groups that are unknown"):
        make("marginals", groups=None).fit(X, y, X_public=X[:20])
    images = np.zeros((20, 3, 3), dtype=np.uint8)
    with pytest.raises(ValueError, match="cannot learn images"):
        PFGuardGenerator(groups=[0, 1]).fit(images, sensitive_features=[0, 1] * 10)


def test_more_teachers_than_rows_and_a_device_that_is_not_there_are_noticed_before_anything_is_spent():
    X, y, s = easy(20)
    ledger = PrivacyLedger()
    with pytest.raises(ValueError, match=r"more teachers than rows \(21 > 20\)"):
        make(PATEGANBackend(n_teachers=21), ledger=ledger).fit(X, y, sensitive_features=s)
    with pytest.raises(ValueError, match="'device' parameter of PATEGANBackend"):
        make(PATEGANBackend(n_teachers=2, device="abacus"), ledger=ledger).fit(X, y, sensitive_features=s)
    with pytest.raises(ValueError, match="'n_steps' parameter of GSWGANBackend"):
        make(GSWGANBackend(n_steps=0), ledger=ledger).fit(X, y, sensitive_features=s)
    assert ledger.entries == ()
