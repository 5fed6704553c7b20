"""What leaves teachers of generative networks: accounting vectors, scales of noise, sensitivities."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from skfairdp.papers import _adversarial as releases
from skfairdp.privacy import NeighboringRelation, NoiseSource, calibrate_noise, epsilon_of, gdp_epsilon, gdp_mu, repeat
from tests._tools.inside import PATEGANPlan


def bits_of_pate_gan(sigma):
    """What a round of one row releases, by 100 teachers."""
    backend = SimpleNamespace(n_teachers=100, n_steps=1, batch_size=1)
    return PATEGANPlan(backend, SimpleNamespace(relation=NeighboringRelation.REPLACE_ONE)).mechanism_at(sigma)


@pytest.mark.parametrize(
    ("queries", "sigma", "epsilon"), [(6400, 100, 3.386933), (6400, 200, 1.554982), (1000, 50, 2.594383)]
)
def test_bits_of_pate_gan_cost_at_most_the_gaussian_figure(queries, sigma, epsilon):
    event = repeat(bits_of_pate_gan(float(sigma)).event, queries)
    assert epsilon_of(event, 1e-5, accountant="gdp") == pytest.approx(epsilon, rel=1e-5)
    assert 0.6 * epsilon < epsilon_of(event, 1e-5) < epsilon  # exact for bits, hence less


@pytest.mark.parametrize("batch_size", [8, 32])
def test_gs_wgan_is_accounted_as_the_joint_event_whatever_the_batch(batch_size):
    event = repeat(releases.SanitisedGradient(1000, batch_size, 1.0, 0.7).event, 20_000)
    assert epsilon_of(event, 1e-5) == pytest.approx(2.0577, rel=0.01)


@pytest.mark.parametrize(("multiplier", "epsilon"), [(0.4646, 10.0), (0.9438, 1.0)])
def test_multipliers_of_gs_wgan_for_a_budget(multiplier, epsilon):
    spent = epsilon_of(repeat(releases.SanitisedGradient(1000, 32, 1.0, multiplier).event, 20_000), 1e-5)
    assert spent == pytest.approx(epsilon, rel=0.01)


def test_datalens_and_g_pate_are_accounted_without_data():
    event = repeat(releases.TopSigns(300, 800.0).event, 2000)
    assert epsilon_of(event, 1e-5) == pytest.approx(9.608352, rel=1e-6)
    assert gdp_mu(epsilon_of(event, 1e-5), 1e-5) == pytest.approx(1.936492, rel=1e-5)
    event = repeat(releases.BinnedGradients(10, 600.0, 100.0).event, 64_000)
    assert gdp_mu(epsilon_of(event, 1e-5), 1e-5) == pytest.approx(11.39, abs=0.005)
    assert epsilon_of(event, 1e-5) == pytest.approx(112.6, abs=0.1)


def test_noise_of_the_sanitised_gradient_is_that_of_the_whole_batch():
    mechanism = releases.SanitisedGradient(10, 16, 0.5, 3.0)
    noise = mechanism.release(np.zeros((16, 400)), NoiseSource(0))
    assert noise.std() == pytest.approx(3.0 * 2 * 0.5 * 4, rel=0.03)
    long = mechanism.clipped(np.full((16, 400), 7.0))
    assert np.linalg.norm(long, axis=1) == pytest.approx(0.5)
    assert np.linalg.norm(mechanism.clipped(np.full((16, 4), np.inf)), axis=1).max() <= 0.5
    with pytest.raises(ValueError, match="releases 16 gradients"):
        mechanism.release(np.zeros((3, 4)), NoiseSource(0))
    draws = [mechanism.draw(NoiseSource(seed)) for seed in range(300)]
    assert set(draws) == set(range(10))


def test_opposite_answers_move_the_mean_as_far_as_declared():
    mechanism = releases.MeanGradient(10, 16, 0.5, 3.0)
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
    with pytest.raises(ValueError, match="releases 10 x 16 gradients, but there are 10 x 3"):
        mechanism.release(gradients[:, :3], NoiseSource(0))


@pytest.mark.parametrize(
    ("two_sided", "sensitivity"), [(True, math.sqrt(2 * (5**2 + 11**2))), (False, math.hypot(5, 11))]
)
def test_counts_of_long_gradients_move_as_far_as_declared_when_all_rows_of_a_discriminator_change_sides(
    two_sided, sensitivity
):
    mechanism = releases.CountsOfRows((5, 11), 2.0, two_sided)
    before, after = np.array([[5.0, 0.0], [11.0, 0.0]]), np.array([[0.0, 5.0], [0.0, 11.0]])
    moved = (after - before) if two_sided else (after - before)[:, 1]
    assert np.linalg.norm(moved) == pytest.approx(sensitivity)
    noise = mechanism.release(np.zeros(20_000), NoiseSource(0))
    assert noise.std() == pytest.approx(2.0 * sensitivity, rel=0.02)
    assert epsilon_of(mechanism.event, 1e-5) == pytest.approx(gdp_epsilon(0.5, 1e-5))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon", "n_teachers", "steps", "ratio"),
    [(1.0, 100, 400, 1.58), (10.0, 100, 400, 5.03), (1.0, 1000, 20_000, 1.79), (10.0, 1000, 20_000, 6.57)],
)
def test_the_mean_of_all_discriminators_has_less_noise_than_one_that_is_drawn(epsilon, n_teachers, steps, ratio):
    """The figures of the docstring: at the same ε, after as many steps of as large batches."""
    drawn = calibrate_noise(
        lambda noise: repeat(releases.SanitisedGradient(n_teachers, 8, 1.0, noise).event, steps),
        epsilon,
        1e-5,
        guess=1.0,
    )
    one = releases.SanitisedGradient(n_teachers, 8, 1.0, drawn)
    together = releases.MeanGradient(n_teachers, 8, 1.0, math.sqrt(steps) / gdp_mu(epsilon, 1e-5))
    assert one._vector.sigma / together._vector.sigma == pytest.approx(ratio, abs=0.01)


def test_noise_of_signs_bits_and_bins_has_the_declared_scale():
    signs = releases.TopSigns(9, 5.0).release(np.zeros(20_000), NoiseSource(0), least=5.0)
    assert np.mean(signs == 0) == pytest.approx(0.6827, abs=0.01)
    bits = bits_of_pate_gan(10.0).release_each(np.full(20_000, 40), NoiseSource(0))
    assert bits.mean() == pytest.approx(0.1587, abs=0.01)
    counts = np.tile([10, 0], (20_000, 1, 1))
    winners, answered = releases.BinnedGradients(1, 8.0, 10.0).release(counts, NoiseSource(0), threshold=18.0)
    assert answered.mean() == pytest.approx(0.1587, abs=0.01)
    assert winners.mean() == pytest.approx(0.2398, abs=0.01)  # Φ(−10 / (10 √2))


def test_top_signs_are_those_of_the_largest_coordinates():
    gradients = np.array([[3.0, -0.1, -2.0, 0.5], [0.0, 1.0, -5.0, 0.1], [np.nan, 0.2, 0.1, -3.0]])
    assert releases.TopSigns(2, 1.0).votes(gradients).tolist() == [1.0, 2.0, -2.0, -1.0]
    assert releases.TopSigns(9, 1.0).votes(gradients[:1]).tolist() == [1.0, -1.0, -1.0, 1.0]
