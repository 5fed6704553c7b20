"""Equal accuracy is not bought with more errors than the most frequent class makes."""

import numpy as np
import pytest

from skfairdp import PFLDClassifier
from skfairdp.lagrangian import NoisyGradients, mlp


def table(n=3000, seed=0):
    """One positive in eight, easy to tell but in a small group whose labels are noisy."""
    rng = np.random.default_rng(seed)
    groups = (rng.random(n) < 0.1).astype(int)
    X = rng.normal(size=(n, 3))
    X[:, 2] += 3 * groups
    y = (X[:, 0] + np.where(groups == 1, 1.5, 0.1) * rng.normal(size=n) > 1.15).astype(int)
    return X, y, groups


@pytest.mark.parametrize("epsilon", [None, 2.0])
def test_equal_accuracy_is_not_bought_with_errors_for_everybody(epsilon):
    X, y, groups = table()
    model = PFLDClassifier(
        epsilon=epsilon, constraints="accuracy_parity", groups=[0, 1], net=mlp((8,), max_epochs=25, lr=0.01),
        random_state=0,
    ).fit(X, y, sensitive_features=groups)  # fmt: skip
    assert model.score(X, y) > max(y.mean(), 1 - y.mean()) - 0.06


PARTS = {"all rows": {}, "sampled": {"sampling_probability": 0.2}}


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_noisy_gradients_do_not_buy_it_with_errors_either(part):
    X, y, groups = table()
    model = PFLDClassifier(
        epsilon=20.0, constraints="accuracy_parity", groups=[0, 1], net=mlp((8,), max_epochs=25, lr=0.01),
        primal=NoisyGradients(**part), random_state=0,
    ).fit(X, y, sensitive_features=groups)  # fmt: skip
    assert model.score(X, y) > max(y.mean(), 1 - y.mean()) - 0.06


def test_where_no_more_errors_are_made_nothing_is_priced():
    """Accuracy is given for parity as long as the constant is beaten."""
    rng = np.random.default_rng(1)
    groups = rng.integers(2, size=3000)
    X = rng.normal(size=(3000, 3))
    X[:, 2] = 2 * groups + 0.3 * X[:, 2]
    y = (X[:, 0] + np.where(groups == 1, 0.8, 0.1) * rng.normal(size=3000) > 0).astype(int)
    model = PFLDClassifier(
        epsilon=None, constraints="accuracy_parity", groups=[0, 1], net=mlp((8,), max_epochs=25, lr=0.01),
        random_state=0,
    ).fit(X, y, sensitive_features=groups)  # fmt: skip
    right = model.predict(X) == y
    assert abs(right[groups == 0].mean() - right[groups == 1].mean()) < 0.1 and right.mean() > 0.7
