"""How sure a network may be: one table in ε changes no answer, and no fit is surer than it is right."""

import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from sklearn.metrics import log_loss
from torch import nn

from skfairdp import FairDPSGDClassifier, PublicData, _networks
from skfairdp.datasets import make_biased_classification
from skfairdp.exceptions import UtilityWarning
from skfairdp.gradient import mlp
from skfairdp.privacy import GaussianMechanism, NeighboringRelation, compose, epsilon_of
from tests._tools.inside import EDGES, MLP, ODDS, Temperature
from tests._tools.layers import examples
from tests._tools.sources import ZeroNoise, recording_noise

pytestmark = pytest.mark.filterwarnings("ignore:.*draws its noise from 'noise_seed'")

ZERO_OUT, ADD_REMOVE = NeighboringRelation.ZERO_OUT, NeighboringRelation.ADD_OR_REMOVE_ONE
ONE = Temperature(1.0, 1e-5, ZERO_OUT)


def network(n_classes=3, scale=1.0, seed=0):
    torch.manual_seed(seed)
    net = MLP(4, n_classes, hidden=(5,))
    with torch.no_grad():
        net[-1].weight.normal_(std=scale)
        net[-1].bias.normal_(std=scale)
    return net.eval()


@pytest.mark.covering
@pytest.mark.parametrize("relation", [ZERO_OUT, ADD_REMOVE])
@pytest.mark.parametrize("scale", [0.3, 8.0])
def test_removing_any_record_moves_the_table_by_exactly_the_sensitivity_of_one(relation, scale):
    rng, net = np.random.default_rng(0), network(scale=scale)
    X, y = rng.normal(size=(40, 4)), rng.integers(3, size=40)
    X[7] = np.nan  # no answer: a null record
    one = Temperature(1.0, 1e-5, relation)
    whole = one.table(net, X, y)
    rest = [np.arange(40) != i for i in range(40)]
    moves = [np.linalg.norm(whole - one.table(net, X[kept], y[kept])) for kept in rest]
    assert moves == [float(i != 7) for i in range(40)] and whole.sum() == 39 and one.counts.sensitivity == 1


def test_rows_without_a_finite_answer_count_nowhere_and_say_nothing():
    net = network()
    with torch.no_grad():
        net[-1].bias[0] = np.inf
    assert ONE.table(net, np.ones((5, 4)), np.zeros(5, int)).sum() == 0  # warnings are errors


@given(st.integers(0, 10_000), st.integers(2, 4))
@settings(max_examples=examples(40), deadline=None, derandomize=True)
def test_no_answer_changes_and_all_logits_have_one_factor(seed, n_classes):
    rng, net = np.random.default_rng(seed), network(n_classes, scale=3.0, seed=seed)
    X = torch.tensor(rng.normal(size=(50, 4)), dtype=torch.float32)
    before = net(X).detach()
    after = ONE.release(net, X.numpy(), rng.integers(n_classes, size=50), ZeroNoise())(X).detach()
    factor = float(after[0, 0] / before[0, 0])
    assert 0 < factor <= 2.01 and torch.allclose(after, factor * before, rtol=1e-4, atol=1e-5)
    assert torch.equal(before.argmax(1), after.argmax(1))


@pytest.mark.parametrize("true_factor", [0.2, 0.5, 1.0, 1.6])
def test_the_factor_is_that_by_which_answers_are_right(true_factor):
    rows = np.full(len(ODDS), 5000.0)
    right = rows / (1 + np.exp(-true_factor * ODDS))
    assert ONE.factor(np.stack([rows - right, right], axis=1)) == pytest.approx(true_factor, rel=0.08)


def test_tables_of_noise_alone_leave_the_network_as_it_is():
    assert ONE.factor(np.full((len(EDGES) + 1, 2), -5.0)) == 1.0
    assert 0.05 <= ONE.factor(np.array([[0.0, 1e9]] + [[-1e9, 1e9]] * len(EDGES))) <= 2.0


@pytest.mark.few(1)
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_the_table_and_all_else_together_cost_at_most_epsilon(epsilon):
    X, y, _ = make_biased_classification(1500, random_state=0)
    net = mlp((4,), max_epochs=2)
    model = FairDPSGDClassifier(epsilon=epsilon, lam=0.0, net=net, classes=[0, 1], random_state=0)
    plan = model._plan(model._read(X, y))
    looks = [one.event for one in (plan.tables, plan.temperature, plan.look) if one is not None]
    together = compose(plan.step.event, compose(*looks))
    assert plan.event == together and 0.99 * epsilon <= epsilon_of(together, 1e-5) <= epsilon
    with recording_noise(entropy=0) as record, warnings.catch_warnings():
        warnings.simplefilter("ignore", UtilityWarning)
        model.fit(X, y)
    table, counts, gain = (release.mechanism for release in record.of(GaussianMechanism)[-3:])
    assert (table, counts, gain) == (plan.temperature.counts, plan.look.counts, plan.look.gain)


def test_given_its_release_the_network_does_not_hang_on_the_labels():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(900, 4)), rng.integers(3, size=900)

    def scaled(labels):
        from skfairdp.privacy import _noise

        table = np.tile([[3.0, 60.0]], (len(ODDS), 1))
        with recording_noise(answer=lambda release: table):
            return ONE.release(network(), X, labels, _noise.open_source(0))[-1].weight

    right = network()(torch.tensor(X, dtype=torch.float32)).argmax(dim=1).numpy()
    assert torch.equal(scaled(y), scaled(right))


def test_a_network_of_your_own_and_a_noise_of_your_own_are_left_alone():
    X, y, _ = make_biased_classification(600, random_state=0)
    own = nn.Sequential(nn.Linear(10, 2))
    for options in ({"net": own}, {"noise_multiplier": 50.0, "epsilon": 50.0}):
        model = FairDPSGDClassifier(**{"lam": 0.0, "classes": [0, 1], **options})
        assert model._plan(model._read(X, y)).temperature is None


SETS = {
    "one row in ten": {"base_rate": 0.1, "class_sep": 1.2},
    "one row in twenty": {"base_rate": 0.05, "class_sep": 2.0},
    "nine rows in ten": {"base_rate": 0.89, "class_sep": 1.2},
    "easy": {"base_rate": 0.3, "class_sep": 2.0},
}


#: Each set with no constraint, each constraint on the rarest class; every pair in ``make test-all``.
LEARNED = [
    pytest.param(name, parity, marks=[] if parity == "none" or name == "one row in twenty" else pytest.mark.slow)
    for parity in ("none", "signed_loss", "public_penalty")
    for name in SETS
]


@pytest.mark.few(1)
@pytest.mark.parametrize(("name", "parity"), LEARNED)
def test_the_rare_class_is_predicted_and_probabilities_are_better_than_the_rates_of_the_classes(name, parity):
    X, y, groups = make_biased_classification(9000, disparity=0.05, random_state=1, **SETS[name])
    train, public, test = slice(0, 5000), slice(5000, 6000), slice(6000, None)
    rows = {} if parity == "none" else {"sensitive_features": groups[train]}
    if parity == "public_penalty":
        rows = {"X_public": PublicData(X[public], groups[public])}
    model = FairDPSGDClassifier(classes=[0, 1], random_state=0, noise_seed=0, **({"lam": 0.0} if parity == "none" else
                                {"parity": parity, "groups": [0, 1]}))  # fmt: skip
    found = model.fit(X[train], y[train], **rows).predict_proba(X[test])
    rare = int(y.mean() < 0.5)
    often, rate = np.mean(found.argmax(axis=1) == rare), np.mean(y[test] == rare)
    alone = log_loss(y[test], np.full(len(y[test]), y[train].mean()))
    assert often > 0.2 * rate and log_loss(y[test], found) < 0.95 * alone, (often, rate, log_loss(y[test], found))


@pytest.mark.parametrize(("relation", "together"), [(ADD_REMOVE, 1), (ZERO_OUT, 8192)])
def test_the_size_of_a_batch_follows_no_secret_number(relation, together, monkeypatch):
    """Where a record may come or go rows are asked one by one; where their number is public, in blocks."""
    asked = []
    real = _networks.private_logits

    def watched(module, X, size):
        asked.append((len(X), size))
        return real(module, X, size)

    monkeypatch.setattr(_networks, "private_logits", watched)
    n = 8200
    Temperature(1.0, 1e-5, relation).table(network(), np.zeros((n, 4)), np.zeros(n, dtype=int))
    assert asked == [(8192, together), (8, together)]
