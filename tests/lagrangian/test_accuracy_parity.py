"""Equal accuracy is not bought with more errors than the most frequent class makes."""

import warnings

import numpy as np
import pytest

from skfairdp import PFLDClassifier, SFPATEClassifier
from skfairdp.exceptions import FairnessWarning
from skfairdp.fairness import FairnessConstraints
from skfairdp.lagrangian import LagrangianClassifier, NoisyGradients, mlp
from tests._tools.inside import LagrangianTraining, StackedMLP, StackedParity, train_stacked_lagrangian


def table(n=3000, seed=0):
    """One positive in eight, easy to tell but in a small group whose labels are noisy."""
    rng = np.random.default_rng(seed)
    groups = (rng.random(n) < 0.1).astype(int)
    X = rng.normal(size=(n, 3))
    X[:, 2] += 3 * groups
    y = (X[:, 0] + np.where(groups == 1, 1.5, 0.1) * rng.normal(size=n) > 1.15).astype(int)
    return X, y, groups


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [None, 2.0])
def test_equal_accuracy_is_not_bought_with_errors_for_everybody(epsilon):
    X, y, groups = table()
    model = PFLDClassifier(
        epsilon=epsilon, constraints="accuracy_parity", groups=[0, 1], net=mlp((8,), max_epochs=25, lr=0.01),
        random_state=0,
    ).fit(X, y, sensitive_features=groups)  # fmt: skip
    assert model.score(X, y) > max(y.mean(), 1 - y.mean()) - 0.06


PARTS = {"all rows": {}, "sampled": {"sampling_probability": 0.2}}


@pytest.mark.slow
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


def test_a_perceptron_of_its_own_does_not_buy_it_with_errors_either():
    X, y, groups = table()
    net = mlp((8,), max_epochs=25, lr=0.01, batch_size=256)  # few steps: with many, even a free price is hardly paid
    model = LagrangianClassifier(constraints="accuracy_parity", net=net, random_state=0)
    assert model.fit(X, y, sensitive_features=groups).score(X, y) > max(y.mean(), 1 - y.mean()) - 0.06


SFPATE = {
    "student": (12_000, {"variant": "student", "epsilon": 4.0}),
    "teacher": (6000, {"variant": "teacher", "epsilon": 20.0, "n_teachers": 8}),
}


@pytest.mark.slow
@pytest.mark.parametrize(("n_rows", "settings"), SFPATE.values(), ids=SFPATE)
def test_neither_kind_of_sfpate_buys_it_with_errors(n_rows, settings):
    X, y, groups = table(n_rows)
    model = SFPATEClassifier(constraints="accuracy_parity", groups=[0, 1], random_state=0, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairnessWarning)  # noise in the rates of the small group
        model.fit(X, y, sensitive_features=groups)
    assert model.score(X, y) > max(y.mean(), 1 - y.mean())


def test_each_network_of_a_stack_has_a_price_of_its_own():
    """Beside a network that makes many errors another comes out as if it were alone, bit for bit."""
    X, y, groups = table(800)
    training = LagrangianTraining(epochs=12, batch_size=32, lr=0.02, dual_steps=10)

    def trained(labels):
        parity = StackedParity(FairnessConstraints(["accuracy_parity"], labels, 2), np.eye(2)[groups], [400, 400])
        net, sizes = StackedMLP(3, (4,), 2), np.array([400, 400])
        return train_stacked_lagrangian(net, X, labels, sizes, [0, 1], training, parity=parity)[0]

    coins = np.where(np.arange(800) < 400, y, np.random.default_rng(0).integers(2, size=800))
    for one, other in zip(trained(y), trained(coins), strict=True):
        assert np.array_equal(one[0], other[0]) and not np.array_equal(one[1], other[1])
