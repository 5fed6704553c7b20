"""Layers without a fused rule: opacus' hooks form their gradients, and clipping, noise and checks stay ours."""

import numpy as np
import pytest
import torch
from opacus.layers import DPGRU, DPLSTM, DPMultiheadAttention
from opacus.validators import ModuleValidator
from skorch import NeuralNetClassifier
from torch import nn

from skfairdp.gradient import FairDPSGDClassifier
from tests._tools.inside import as_net, check_network, clipped_gradient_sum, has_hooks, hooks_agree, prepare_network
from tests._tools.problems import make_rows


class Recurrent(nn.Module):
    """Reads a row as pairs, one after the other."""

    def __init__(self, cells=DPGRU, hidden=3):
        super().__init__()
        self.cells, self.head = cells(2, hidden, batch_first=True), nn.Linear(hidden, 2)

    def forward(self, x):
        return self.head(self.cells(x.reshape(len(x), -1, 2))[0][:, -1])


class Attentive(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Linear(2, 4), nn.Linear(4, 2)
        self.attend = DPMultiheadAttention(4, 2, batch_first=True)

    def forward(self, x):
        h = self.embed(x.reshape(len(x), -1, 2))
        return self.head(self.attend(h, h, h)[0].mean(1))


class Reused(nn.Module):
    """Uses the weight of a layer once inside and once outside of it, which no hook sees."""

    def __init__(self):
        super().__init__()
        self.layer, self.head = nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, x):
        return self.head(torch.tanh(self.layer(x)) @ self.layer.weight)


def one_row_at_a_time(module, loss, X, y, bound):
    """The micro-batch truth, in double precision."""
    parameters = dict(module.named_parameters())
    total = {name: torch.zeros_like(p, dtype=torch.float64) for name, p in parameters.items()}
    for x, target in zip(X, y, strict=True):
        row = torch.autograd.grad(loss(module(x[None]), target[None]).sum(), list(parameters.values()))
        norm = torch.sqrt(sum(g.double().square().sum() for g in row))
        for name, g in zip(parameters, row, strict=True):
            total[name] += g.double() * min(1.0, bound / float(norm))
    return total


def prepared(net, n_features=8):
    return prepare_network(as_net(net, owner="FairDPSGDClassifier"), n_features, 2, seed=0, owner="FairDPSGDClassifier")


@pytest.mark.parametrize("make", [Recurrent, lambda: Recurrent(DPLSTM), Attentive], ids=["GRU", "LSTM", "attention"])
@pytest.mark.parametrize("bound", [0.3, 1e3])
def test_clipped_sums_by_opacus_hooks_are_those_of_one_row_at_a_time(make, bound):
    torch.manual_seed(0)
    module, X, y = make(), torch.randn(20, 8), torch.randint(0, 2, (20,))
    loss = nn.CrossEntropyLoss(reduction="none")
    expected = one_row_at_a_time(module, loss, X, y, bound)
    found = clipped_gradient_sum(module, loss, X, y, bound, fused=False, hooked=True)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=2e-4, atol=1e-6)
    # neither gradients nor hooks stay behind
    assert all(p.grad is None and not hasattr(p, "grad_sample") for p in module.parameters())
    assert not any(layer._forward_hooks or layer._backward_hooks for layer in module.modules())


def test_a_row_without_a_finite_gradient_contributes_nothing_here_either():
    torch.manual_seed(0)
    module, X, y = Recurrent(), torch.randn(6, 8), torch.randint(0, 2, (6,))
    loss, rest = nn.CrossEntropyLoss(reduction="none"), torch.tensor([0, 1, 3, 4, 5])
    X[2] = torch.inf
    found = clipped_gradient_sum(module, loss, X, y, 0.5, fused=False, hooked=True)
    expected = clipped_gradient_sum(module, loss, X[rest], y[rest], 0.5, fused=False, hooked=True)
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=1e-5, atol=1e-7)


def test_a_gru_through_opacus_layer_trains_privately():
    X, y, _ = make_rows(200, seed=1)
    net = NeuralNetClassifier(Recurrent, module__hidden=4, lr=1.0, batch_size=50, max_epochs=2)
    network = prepared(net, X.shape[1])
    assert network.hooked and not network.fused
    before = network.module.state_dict()
    model = FairDPSGDClassifier(epsilon=8.0, lam=0.0, net=net, classes=[0, 1], random_state=0).fit(X, y)
    assert model.n_steps_ == 8 and model.predict_proba(X).shape == (200, 2) and model.privacy_.epsilon <= 8.0
    after = model.net_.module_.state_dict()
    assert before.keys() == after.keys() and any(not torch.equal(after[name], before[name]) for name in after)
    np.testing.assert_allclose(model.net_.predict_proba(X), model.predict_proba(X), rtol=1e-5)


@pytest.mark.parametrize(
    ("module", "hooked"),
    [
        (Recurrent(), True),
        (Recurrent(nn.GRU), False),
        (Reused(), False),
        (nn.Sequential(nn.Linear(8, 3), nn.PReLU(), nn.Linear(3, 2)), False),
    ],
    ids=["opacus' GRU", "torch's GRU", "a weight used twice", "a layer without a rule"],
)
def test_hooks_are_taken_only_where_they_give_the_gradients(module, hooked):
    n_features = 4 if isinstance(module, Reused) else 8
    assert check_network(module, n_features, 2, owner="test") is False
    assert hooks_agree(module, n_features, 2) is hooked
    assert not hooked or has_hooks(module)


def test_batch_norm_is_refused_and_opacus_fix_of_it_is_trained():
    module = nn.Sequential(nn.Linear(8, 64), nn.BatchNorm1d(64), nn.Tanh(), nn.Linear(64, 2))
    with pytest.raises(ValueError, match=r"use GroupNorm. opacus' ModuleValidator.fix\(module\) does this"):
        prepared(module)
    assert prepared(ModuleValidator.fix(module)).fused
