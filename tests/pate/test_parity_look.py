"""A noisy look at the private rows corrects the gaps of a student's levels as far as the noise allows."""

import numpy as np
import pytest

from skfairdp import FairPATEClassifier
from skfairdp.datasets import make_biased_classification
from skfairdp.fairness import disparities, largest_disparity
from skfairdp.pate._parity_look import corrected

LEVELS = np.linspace(0, 2, 21)


def tables(sizes, rates):
    """Counts (level, group, class) of groups of these sizes who get the second class at these rates."""
    positive = np.stack([size * rate for size, rate in zip(sizes, rates, strict=True)], axis=1)
    return np.stack([np.asarray(sizes) - positive, positive], axis=2)


def rates_of(counts):
    return counts / counts.sum(axis=2, keepdims=True)


def test_without_noise_rates_are_those_of_the_private_rows_where_a_line_sets_the_two_apart():
    expected = tables([500, 300], [0.4 - 0.1 * LEVELS, 0.2 + 0.0 * LEVELS])
    true = tables([9000, 1000], [0.45 - 0.12 * LEVELS, 0.15 + 0.05 * LEVELS])
    found = corrected(true, expected, sigma=0.0)
    np.testing.assert_allclose(
        found / found.sum(axis=2, keepdims=True), true / true.sum(axis=2, keepdims=True), atol=1e-6
    )
    np.testing.assert_allclose(disparities(found[5]), disparities(np.rint(true[5]).astype(int)), atol=1e-3)


def test_where_the_noise_explains_the_difference_rates_are_those_of_the_sampled_rows():
    rng = np.random.default_rng(0)
    expected = tables([500, 300], [0.4 - 0.1 * LEVELS, 0.2 + 0.0 * LEVELS])
    noisy = tables([900, 100], [0.4 - 0.1 * LEVELS, 0.2 + 0.0 * LEVELS]) + 5.0 * rng.normal(size=(21, 2, 2))
    found = corrected(noisy, expected, sigma=100.0)
    np.testing.assert_allclose(rates_of(found), rates_of(expected), atol=1e-6)


@pytest.mark.parametrize("sigma", [1.0, 1e6])
def test_corrected_counts_are_counts_whatever_the_noise(sigma):
    rng = np.random.default_rng(1)
    for n_levels in (1, 2, 21):
        noisy = rng.normal(size=(n_levels, 3, 4)) * sigma
        found = corrected(noisy, rng.integers(0, 9, (n_levels, 3, 4)).astype(float), sigma)
        assert found.dtype == np.int64 and (found >= 0).all()
        assert all(0 <= largest_disparity(table) <= 1 for table in found)


@pytest.mark.parametrize("gamma", [0.05, 0.15])
def test_the_gap_that_a_fit_states_is_that_of_the_private_rows(gamma):
    X, y, groups = make_biased_classification(20_000, disparity=0.3, random_state=0)
    model = FairPATEClassifier(epsilon=8.0, gamma=gamma, classes=[0, 1], groups=[0, 1], random_state=0)
    model = model.fit(X, y, sensitive_features=groups)
    counts = np.zeros((2, 2), dtype=int)
    np.add.at(counts, (groups, model.predict(X)), 1)
    assert model.student_gap_ <= gamma
    assert abs(model.student_gap_ - largest_disparity(counts)) < 0.015
    tighter = model.refit(gamma=0.02)  # every level was looked at
    counts[:] = 0
    np.add.at(counts, (groups, tighter.predict(X)), 1)
    assert abs(tighter.student_gap_ - largest_disparity(counts)) < 0.02
