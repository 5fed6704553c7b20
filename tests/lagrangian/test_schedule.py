"""How long and by which steps networks are trained where nobody says so, and that multipliers then settle."""

import math

import numpy as np
import pytest

from skfairdp import PFLDClassifier
from skfairdp.datasets import make_biased_classification
from skfairdp.fairness import FairnessConstraints
from skfairdp.lagrangian import LagrangianClassifier, mlp
from skfairdp.lagrangian._perceptron import LEFT_OPEN, default_lr, settled, usual_batches
from skfairdp.metrics import demographic_disparity
from tests._tools.inside import DualAscent, LagrangianTraining, as_net, as_perceptron, dual_schedule

NETS = {
    "8-units-large-steps": mlp((8,), lr=0.01, max_epochs=15),
    "8-units": mlp((8,), max_epochs=15),
    "none": mlp((), lr=3e-3, max_epochs=15),
    "two-layers": mlp((16, 16), max_epochs=10),
}


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", [10, 11, 12])
@pytest.mark.parametrize("net", NETS.values(), ids=NETS)
def test_the_constraint_is_met_on_training_rows_by_few_passes_without_noise(net, seed):
    """With batches of 256 rows and 40 moves of the multipliers in 90 steps, gaps of .16 to .26 were left."""
    rows, disparity = [(1500, 0.2), (2000, 0.3)][seed % 2]
    X, y, groups = make_biased_classification(rows, disparity=disparity, random_state=seed)
    truth = demographic_disparity(None, y, sensitive_features=groups)
    learners = (
        LagrangianClassifier(net=net, random_state=seed),
        PFLDClassifier(epsilon=None, net=net, groups=sorted(set(groups)), random_state=seed),
    )
    for model in learners:
        predicted = model.fit(X, y, sensitive_features=groups).predict(X)  # and warns of nothing
        assert demographic_disparity(None, predicted, sensitive_features=groups) < 0.05 < truth
        assert np.mean(predicted == y) > 0.75


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_groups_of_one_row_in_a_hundred_do_not_keep_the_others_from_being_held(seed):
    """With steps as long as those of large groups, gaps of .67 to .81 were left, and .20 to .25 between large ones."""
    rng = np.random.default_rng(seed)
    groups = rng.choice(8, size=4000, p=[0.45, 0.35, 0.15, 0.01, 0.01, 0.01, 0.01, 0.01])
    X = rng.normal(size=(4000, 5))
    X[:, 0] += np.array([0, 0.8, 0.4, 1.5, -1.5, 1, -1, 2])[groups]
    y = (X[:, 0] + X[:, 1] + rng.normal(size=4000) > 0.7).astype(int)
    predicted = LagrangianClassifier(random_state=seed).fit(X, y, sensitive_features=groups).predict(X)
    rates = np.array([predicted[groups == group].mean() for group in range(8)])
    assert np.ptp(rates[:3]) < 0.1 and np.ptp(rates) < 0.4
    assert np.mean(predicted == y) > max(y.mean(), 1 - y.mean()) + 0.05


def test_what_is_given_is_kept_and_the_rest_follows_from_public_sizes():
    given = as_net(mlp((8,), lr=0.5, batch_size=7, max_epochs=3), owner="PF-LD", **LEFT_OPEN)
    assert settled(given, 1000) == given
    chosen = settled(as_net("mlp", owner="PF-LD", **LEFT_OPEN), 50_000)
    assert (chosen.lr, chosen.batch_size, chosen.max_epochs) == (1e-3, 256, 20)
    few = settled(as_net("mlp", owner="PF-LD", **LEFT_OPEN), 100)
    assert (few.lr, few.max_epochs) == (1e-3, 2000)  # all rows are one batch


@pytest.mark.parametrize("n_rows", [60_000, 300_000, 1_000_000, 10_000_000])
def test_many_rows_come_in_larger_batches_and_fewer_passes_unless_a_net_says_otherwise(n_rows):
    """20 passes over a million rows took minutes, and taught no more."""
    times = min(n_rows / 50_000, 20) ** 0.72
    chosen, stacked = settled(as_net("mlp", owner="PF-LD", **LEFT_OPEN), n_rows), as_perceptron(LagrangianClassifier())
    steps_of_pass = n_rows / chosen.batch_size
    assert chosen.batch_size == stacked.training(n_rows).batch_size == round(256 * times)
    assert chosen.max_epochs == pytest.approx(max(20 / times, 2000 / steps_of_pass))
    assert chosen.max_epochs <= stacked.training(n_rows).epochs < chosen.max_epochs + 1
    assert chosen.max_epochs * steps_of_pass >= 1999.9
    assert chosen.lr == pytest.approx(1e-3 * math.sqrt(times)) == stacked.training(n_rows).lr
    own = settled(as_net(mlp(batch_size=256), owner="PF-LD", **LEFT_OPEN), n_rows)
    assert (own.batch_size, own.max_epochs) == (256, 20)
    assert as_perceptron(LagrangianClassifier(net=mlp(batch_size=256))).training(n_rows).epochs == 20


def test_a_net_that_takes_so_many_passes_gets_batches_small_enough_for_a_thousand_steps():
    found = [usual_batches(epochs, None, n) for epochs, n in ((15, 2000), (1, 2000), (15, 10**6), (None, 2000))]
    assert found == [(30, 1.0), (16, 1.0), (256, 1.0), (256, 1.0)]
    assert [default_lr(steps) for steps in (1, 1000, 10**6)] == [0.01, 2e-3, 1e-3]


def test_pf_ld_shrinks_the_weights_of_its_own_perceptron_and_of_no_other_net():
    model = PFLDClassifier(net="mlp")._net(1000)
    assert model.optimizer_options == {"weight_decay": 1e-3} and model.max_epochs * 1000 / 256 == 2000
    own = PFLDClassifier(net=mlp(optimizer__weight_decay=0.5))._net(1000)
    assert own.optimizer_options == {"weight_decay": 0.5}
    assert PFLDClassifier(net="cnn")._net(1000).optimizer_options == {}


@pytest.mark.few(1)
@pytest.mark.parametrize("noise", [20.0, 500.0])
def test_noise_carries_multipliers_as_far_in_many_steps_as_in_few(noise):
    """Of steps that shrink to nothing: the variance of all of them together does not grow with their number."""
    y, rng = np.arange(100) % 2, np.random.default_rng(0)
    parity, walked = FairnessConstraints(["demographic_parity"], y, 2), []
    for n in (10, 40, 160):
        training = LagrangianTraining(lam_max=1e9, dual_steps=n)
        sizes, ends = np.full((2, 1, 1), 50.0), []
        for _ in range(300):
            of_noise = lambda scores: rng.normal(scale=noise, size=(2, 1, 1))  # noqa: E731
            ascent = DualAscent(training, parity, of_noise, sizes, noise)
            for share in dual_schedule(10 * n, n).values():
                ascent.follow(np.zeros((100, 1)), share)
            ends.append(ascent.multipliers.ravel()[0])
        walked.append(np.std(ends))
    assert max(walked) < 1.25 * min(walked)
