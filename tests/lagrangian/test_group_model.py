"""The model of the groups: features, moments and estimates."""

import math

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from skfairdp.privacy import NoiseSource
from tests._tools.inside import PFLDPlan, PublicFeatures, estimate_groups, group_coefficients
from tests._tools.lagrangian import biased
from tests._tools.sources import ZeroNoise


def described_rows(n=4000, seed=0):
    X, y, groups = biased(n, seed)
    described = PublicFeatures(X, y, 2, 40, seed)
    features, weights = described.features, described.weights
    return X, y, (groups == "m").astype(int), features, weights


def test_features_are_orthonormal_and_no_row_weighs_more_than_twice_the_average():
    X, y, *_ = described_rows()
    X[0] *= 1e4  # a row that alone would set scale and sensitivity
    described = PublicFeatures(X, y, 2, 40, 0)
    features, weights = described.features, described.weights
    assert features.shape == (4000, 40)
    np.testing.assert_allclose(features.T @ features, np.eye(40), atol=1e-8)
    lengths = np.linalg.norm(features * weights[:, None], axis=1)
    assert lengths.max() <= 2 * math.sqrt(40 / 4000) * (1 + 1e-9)
    assert weights[0] < 1 and np.mean(weights == 1) > 0.9


def test_without_noise_the_moments_give_the_logistic_regression_of_the_group():
    _, _, groups, features, weights = described_rows()
    plan = PFLDPlan.without_privacy(n_groups=2, primal_steps=1, dual_steps=1)
    proba = estimate_groups(features, weights, 2, groups, plan, ZeroNoise())
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


def test_what_noise_alone_makes_of_groups_is_not_taken_for_a_signal():
    """Groups that no feature tells: most estimates stay near the share of the group, however large the noise."""
    *_, features, weights = described_rows()
    rng, spread = np.random.default_rng(0), []
    plan = PFLDPlan.calibrated(epsilon=0.1, delta=1e-5, n_groups=2, primal_steps=1, dual_steps=40)
    for seed in range(6):
        groups = rng.integers(2, size=4000)
        coefficients = group_coefficients(features, weights, 2, groups, plan, NoiseSource(seed))
        without = np.where(np.arange(features.shape[1]) < 2, coefficients, 0.0)
        with_it, beside = (features @ (b[1] - b[0]) for b in (coefficients, without))
        spread.append(np.mean((1 / (1 + np.exp(-with_it)) - 1 / (1 + np.exp(-beside))) ** 2))
    assert np.median(spread) < 0.03
