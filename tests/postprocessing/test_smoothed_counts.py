"""Smoothed counts: nearer to the truth than the noisy ones, and the counts themselves where there is no noise."""

import numpy as np
import pytest
from scipy.special import expit, logit

from tests._tools.inside import smoothed_counts

EDGES = np.linspace(0, 1, 13)[1:-1]


def smooth_table(rows):
    """Counts of two groups whose scores are calibrated up to a shift of each group."""
    odds = logit(np.linspace(0.04, 0.96, 12))
    first = rows * np.exp(-0.5 * (odds + 0.7) ** 2)
    second = rows * np.exp(-0.5 * (odds - 0.4) ** 2) / 2
    chance = expit(odds[:, None] + np.array([0.3, -0.2]))
    totals = np.stack([first, second], axis=1)
    return np.stack([totals * (1 - chance), totals * chance], axis=-1)


def bumpy_table(rows):
    """Counts that no smooth curve comes near to: every other bin is empty of one label."""
    table = smooth_table(rows)
    table[::2, :, 0] = 0.0
    table[1::2, :, 1] = 0.0
    return table


def errors(truth, sigma, seeds=40):
    """Squared error of smoothed and of noisy counts, over seeds."""
    found = np.zeros(2)
    for seed in range(seeds):
        noisy = truth + np.random.default_rng(seed).normal(0, sigma, truth.shape)
        found += [np.square(counts - truth).sum() for counts in (smoothed_counts(noisy, EDGES, sigma)[0], noisy)]
    return found


@pytest.mark.parametrize("rows", [20, 100])
def test_counts_near_a_smooth_table_lose_most_of_their_noise(rows):
    smoothed, noisy = errors(smooth_table(rows), sigma=15.0)
    assert smoothed < noisy / 2


@pytest.mark.covering
@pytest.mark.parametrize("table", [bumpy_table, smooth_table])
@pytest.mark.parametrize("rows", [20, 100, 1000, 10_000])
def test_no_counts_are_made_worse_than_by_chance(table, rows):
    smoothed, noisy = errors(table(rows), sigma=15.0)
    assert smoothed < 1.02 * noisy  # two parts in a hundred are the chance of 40 draws


def test_counts_without_noise_stay_as_they_are():
    table = bumpy_table(100)
    smoothed, weight = smoothed_counts(table, EDGES, 0.0)
    np.testing.assert_allclose(smoothed, table, rtol=0, atol=1e-9)
    assert weight == 1.0


@pytest.mark.parametrize("table", [np.zeros((12, 2, 2)), np.full((12, 2, 2), -9.0), 1e12 * smooth_table(1)])
def test_whatever_the_noise_makes_of_counts_is_smoothed_to_finite_numbers(table):
    smoothed, weight = smoothed_counts(table, EDGES, 20.0)
    assert np.isfinite(smoothed).all()
    assert 0.0 <= weight <= 1.0
