"""fit_softmax against scikit-learn and against the zero slope of its own definition."""

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from skfairdp._utils import fit_softmax

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 4))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_labels_and_weights_give_scikit_learns_coefficients(n_classes):
    y, weights = (X @ RNG.normal(size=(4, n_classes))).argmax(1), RNG.uniform(0.5, 2.0, size=200)
    targets = np.eye(n_classes)[y] if n_classes > 2 else y[:, None].astype(float)
    found = fit_softmax(X, X.T @ (weights[:, None] * targets), 0.5, start=np.zeros((4, targets.shape[1])),
                        weights=weights, maxiter=500, ftol=1e-14, gtol=1e-9)  # fmt: skip
    reference = LogisticRegression(C=2.0, fit_intercept=False, tol=1e-10, max_iter=1000).fit(
        X, y, sample_weight=weights
    )
    np.testing.assert_allclose(found.T, reference.coef_, atol=1e-4)


def test_the_slope_is_zero_with_offset_noisy_moments_and_a_penalty_of_each_row():
    moments, offset = RNG.normal(size=(4, 3)), RNG.normal(size=(200, 3))
    penalty = np.array([[1.0], [2.0], [3.0], [4.0]])
    theta = fit_softmax(X, moments, penalty, start=np.zeros((4, 3)), offset=offset, constant=7.0, maxiter=500,
                        ftol=1e-14, gtol=1e-9)  # fmt: skip
    np.testing.assert_allclose(X.T @ softmax(offset + X @ theta, axis=1) + penalty * theta, moments, atol=1e-4)


def test_one_column_is_two_classes_of_which_the_first_has_score_zero():
    shares = RNG.uniform(-0.1, 1.1, size=(200, 1))
    one = fit_softmax(X, X.T @ shares, 1.0, start=np.zeros((4, 1)), maxiter=500)
    both = np.concatenate([1 - shares, shares], axis=1)
    two = fit_softmax(X, X.T @ both, 2.0, start=np.zeros((4, 2)), maxiter=500)
    np.testing.assert_allclose(one[:, 0], two[:, 1] - two[:, 0], atol=1e-3)
