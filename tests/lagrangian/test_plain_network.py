"""A plain perceptron that is trained by hand is the one that automatic differentiation trains."""

import numpy as np
import pytest
import torch
from torch import nn

from skfairdp.fairness import FairnessConstraints
from skfairdp.lagrangian import PFLDClassifier, mlp
from skfairdp.lagrangian._numpy_mlp import NumpyMLPTraining, _Adam
from skfairdp.privacy import NoiseSource
from tests._tools.inside import (
    ConstraintGradient,
    LagrangianTraining,
    PFLDPlan,
    as_net,
    prepare_network,
    train_lagrangian,
)
from tests._tools.lagrangian import BOUNDED, NAMED, adam, in_words
from tests._tools.sources import recording_noise


class Unknown(nn.Sequential):
    """The same network with a forward pass of its own, which nobody writes out by hand."""

    def forward(self, X):
        return super().forward(X)


def plain(n_features, n_classes, hidden, activation=nn.Tanh, kind=nn.Sequential):
    layers = []
    for size_in, size_out in zip((n_features, *hidden[:-1]), hidden, strict=True) if hidden else ():
        layers += [nn.Linear(size_in, size_out), activation()]
    return kind(*layers, nn.Linear(hidden[-1] if hidden else n_features, n_classes))


def trained(module, notions, n_classes, *, options=None, **settings):
    rng = np.random.default_rng(0)
    groups = rng.integers(3, size=300)
    X = rng.normal(size=(300, 4)) + groups[:, None]
    y = np.digitize(X[:, 0] + rng.normal(size=300), np.linspace(0, 2, n_classes + 1)[1:-1])
    network = prepare_network(as_net(module, owner="F-LD"), 4, n_classes, seed=0, owner="F-LD")
    constraints, membership = FairnessConstraints(notions, y, n_classes), np.eye(3)[groups]
    counts = np.stack([membership[constraints.row_cells == cell].sum(0) for cell in range(constraints.n_cells)], 1)

    def violations(h):
        found = np.zeros((3, constraints.n_cells, constraints.n_constraints))
        for c in range(constraints.n_constraints):
            for cell in range(constraints.n_cells):
                here = constraints.cells[:, c] == cell
                if here.any():
                    found[:, cell, c] = membership[here].T @ (h[here, c] - h[here, c].mean())
        return found

    training = LagrangianTraining(epochs=6, batch_size=32, dual_steps=8, **settings)
    how = {"violations": violations, "membership": membership, "make_optimizer": adam(**(options or {}))}
    module, multipliers = train_lagrangian(network, X, y, constraints, constraints.sizes(counts), training, **how)
    return torch.cat([p.detach().flatten() for p in module.parameters()]).numpy(), multipliers


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("notions", "n_classes", "hidden", "activation", "settings"),
    [
        (["demographic_parity"], 2, (8,), nn.Tanh, {}),
        (["demographic_parity"], 3, (), nn.Tanh, {"violations": "probabilities"}),
        (["equalized_odds"], 2, (6, 5), nn.ReLU, {"options": {"weight_decay": 0.02, "betas": (0.8, 0.99)}}),
        (["accuracy_parity", "equalized_odds"], 3, (8,), nn.Tanh, {"average_last": 0.0}),
        (BOUNDED, 3, (8,), nn.Tanh, {"dual_step": 10.0}),
        (NAMED, 2, (8,), nn.Tanh, {"dual_step": 10.0}),
    ],
)
def test_it_takes_the_same_steps(notions, n_classes, hidden, activation, settings):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        weights = plain(4, n_classes, hidden, activation)
        by_autograd = plain(4, n_classes, hidden, activation, Unknown)
    by_autograd.load_state_dict(weights.state_dict())
    mine, multipliers = trained(weights, notions, n_classes, **settings)
    other, others = trained(by_autograd, notions, n_classes, **settings)
    assert np.abs(multipliers).max() > 0.1
    np.testing.assert_allclose(multipliers, others, atol=2e-3)
    np.testing.assert_allclose(mine, other, atol=2e-3)


def test_numbers_that_overflow_are_no_warning():
    X = np.full((40, 2), 3e38) * np.array([1.0, -1.0])
    y, groups = np.arange(40) % 2, np.arange(40) % 2
    model = PFLDClassifier(net=mlp((3,), max_epochs=1, batch_size=8), dual_steps=2, classes=[0, 1], groups=[0, 1])
    with recording_noise(0):
        assert model.fit(X, y, sensitive_features=groups).predict(X).shape == (40,)


def fits(module, optimizer=None, notions=("demographic_parity",), X=None):
    y = np.array([0, 1])
    constraints = FairnessConstraints(notions, y, 2).of_labels(torch.from_numpy(y))
    optimizer = torch.optim.Adam(module.parameters()) if optimizer is None else optimizer
    return NumpyMLPTraining.fits(module, torch.zeros(2, 4) if X is None else X, constraints, optimizer)


def test_only_what_it_can_do_is_done_by_hand():
    usual = plain(4, 2, (3,))
    assert fits(usual) and fits(as_net(mlp((3, 2)), owner="F-LD").build(4, 2, 0)) and fits(plain(4, 2, (), nn.ReLU))
    assert not fits(plain(4, 2, (3,), kind=Unknown)) and not fits(plain(4, 2, (3,), nn.Sigmoid))
    assert not fits(nn.Sequential(nn.Linear(4, 3), nn.Dropout(), nn.Linear(3, 2)))
    assert not fits(nn.Sequential(nn.Linear(4, 2, bias=False))) and not fits(nn.Linear(4, 2))
    assert not fits(plain(4, 2, (3,)).double()) and not fits(usual, X=torch.zeros(2, 1, 4))
    assert not fits(usual, notions=["generalized_demographic_parity"])
    for other in (torch.optim.SGD(usual.parameters(), lr=0.1), torch.optim.Adam(usual.parameters(), amsgrad=True)):
        assert not fits(usual, other)
    frozen, heard = plain(4, 2, (3,)), plain(4, 2, (3,))
    frozen[0].weight.requires_grad_(False)
    heard[0].register_forward_hook(lambda *given: None)
    assert not fits(frozen, torch.optim.Adam([frozen[2].weight])) and not fits(heard)


def test_any_number_of_threads_scores_the_rows_alike_and_gives_the_libraries_theirs_back(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2000, 3)), rng.integers(2, size=2000)
    monkeypatch.setattr(NumpyMLPTraining, "ROWS_OF_A_THREAD", 128)

    def multipliers(n_threads):
        before = torch.get_num_threads()
        torch.set_num_threads(n_threads)
        try:
            net = mlp((5,), max_epochs=1)
            model = PFLDClassifier(net=net, dual_steps=4, classes=[0, 1], groups=[False, True], random_state=0)
            with recording_noise(0):
                model.fit(X, y, sensitive_features=X[:, 0] > 0)
            assert torch.get_num_threads() == n_threads
        finally:
            torch.set_num_threads(before)
        return model.multipliers_, model.predict_proba(X)

    for one, other in zip(multipliers(1), multipliers(3), strict=True):
        np.testing.assert_array_equal(one, other)


class EveryDraw(NoiseSource):
    """Counts how many words were drawn."""

    drawn = 0

    def _words(self, n):
        self.drawn += n
        return super()._words(n)


@pytest.mark.covering
@pytest.mark.parametrize("share", [1.0, 0.2])
@pytest.mark.parametrize("n_gradients", [4, 60])  # some, each followed until the next, and one at every step
@pytest.mark.parametrize("notions", [["demographic_parity"], ["accuracy_parity"], BOUNDED], ids=in_words)
def test_it_follows_the_same_noisy_gradients(notions, n_gradients, share):
    found = [trained_privately(kind, notions, n_gradients, share) for kind in (nn.Sequential, Unknown)]
    (mine, multipliers, drawn), (other, others, drawn_by_other) = found
    assert np.abs(multipliers).max() > 0.05 and drawn == drawn_by_other
    np.testing.assert_allclose(multipliers, others, atol=2e-3)
    np.testing.assert_allclose(mine, other, atol=2e-3)


def trained_privately(kind, notions, n_gradients, share):
    rng = np.random.default_rng(0)
    groups = rng.integers(2, size=320)
    X = rng.normal(size=(320, 4)) + groups[:, None]
    y = (X[:, 0] + rng.normal(size=320) > 1).astype(np.int64)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        module = plain(4, 2, (8,), kind=kind)
    network = prepare_network(as_net(module, owner="PF-LD"), 4, 2, seed=0, owner="PF-LD")
    constraints, source = FairnessConstraints(notions, y, 2), EveryDraw(0)
    plan = PFLDPlan(2, n_gradients, 8, 1.0, 1.0, 1.0, share)
    sizes = constraints.sizes(plan.release_counts(groups, constraints.row_cells, constraints.n_cells, source))
    rows = network.tensor(X)
    module, multipliers = train_lagrangian(
        network,
        rows,
        y,
        constraints,
        sizes,
        LagrangianTraining(epochs=6, batch_size=32, dual_steps=8),
        make_optimizer=adam(),
        violations=lambda h: plan.release_violations(h, constraints.cells, constraints.n_cells, groups, source),
        gradient=ConstraintGradient.of(network, rows, groups, constraints, plan, source),
    )
    return torch.cat([p.detach().flatten() for p in module.parameters()]).numpy(), multipliers, source.drawn


def test_what_rounding_leaves_of_slopes_that_cancel_moves_nothing():
    """Adam divides a slope by its own size: one of 2e-9, which another processor sums up to 0, was a step of .016."""
    vector = np.zeros(3, dtype=np.float32)
    adam = _Adam(torch.optim.Adam([torch.zeros(3)], lr=0.1), vector)
    adam.step(np.array([0.1, -0.2, 2e-9], dtype=np.float32))
    assert vector[2] == 0.0 and vector[:2] == pytest.approx([-0.1, 0.1], abs=1e-6)
