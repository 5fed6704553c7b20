"""Stacked training against each network trained alone with plain torch, and the batches both see."""

import itertools

import numpy as np
import pytest
import torch
from torch import nn

from tests._tools.inside import StackedMLP, StackedModule, batch_stream, predict_stacked, resolve_device, train_stacked

SIZES = np.array([25, 24, 9, 0, 17])
SEEDS = [3, 1, 4, 1, 5]
SETTINGS = {"epochs": 4, "batch_size": 8, "lr": 5e-3, "weight_decay": 1e-3}
cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no CUDA device")


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    return rng.standard_normal((SIZES.sum(), 6)), rng.integers(0, 3, SIZES.sum())


def sequential(*widths):
    layers = []
    for a, b in itertools.pairwise(widths):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def as_module(params, k, module):
    """Network k of a stack of perceptrons as an ordinary module."""
    linear = [layer for layer in module if isinstance(layer, nn.Linear)]
    with torch.no_grad():
        for i, layer in enumerate(linear):
            weight, bias = params[2 * i][k], params[2 * i + 1][k]
            # Hidden weights are (inputs, outputs), the output layer's (outputs, inputs).
            layer.weight.copy_(weight if i == len(linear) - 1 else weight.T)
            layer.bias.copy_(bias.ravel())
    return module


def train_alone(module, X, y, seed, *, epochs, batch_size, lr, weight_decay):
    """The textbook loop: shuffle, slice, loss.backward(), Adam."""
    optimizer = torch.optim.Adam(module.parameters(), lr=lr, weight_decay=weight_decay)
    X, y = torch.as_tensor(X, dtype=torch.float32), torch.as_tensor(y)
    rng = np.random.default_rng(seed)
    for _ in range(epochs):
        for batch in torch.as_tensor(rng.permutation(len(X))).split(batch_size):
            optimizer.zero_grad()
            nn.functional.cross_entropy(module(X[batch]), y[batch]).backward()
            optimizer.step()
    return module


@pytest.mark.parametrize("hidden", [(), (7,), (9, 5), (4, 4, 4)])
def test_stacked_perceptrons_equal_each_trained_alone(rows, hidden):
    X, y = rows
    net = StackedMLP(6, hidden, 3)
    initial = net.initial(SEEDS)
    trained = train_stacked(net, X, y, SIZES, SEEDS, **SETTINGS)
    queries = torch.as_tensor(np.random.default_rng(1).standard_normal((50, 6)), dtype=torch.float32)
    ends = np.cumsum(SIZES)
    for k, seed in enumerate(SEEDS):
        alone = as_module(initial, k, sequential(6, *hidden, 3))
        if SIZES[k]:
            mine = slice(ends[k] - SIZES[k], ends[k])
            train_alone(alone, X[mine], y[mine], seed, **SETTINGS)
        together = as_module(trained, k, sequential(6, *hidden, 3))
        # float32; the two sum in different orders.
        for a, b in zip(alone.parameters(), together.parameters(), strict=True):
            torch.testing.assert_close(a, b, rtol=0, atol=1e-4)
        torch.testing.assert_close(net.logits(trained, queries)[k], alone(queries), rtol=0, atol=1e-4)


def test_stacked_modules_equal_each_trained_alone(rows):
    X, y = rows
    architecture = nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8), nn.Tanh(), nn.Linear(8, 3))
    net = StackedModule(architecture, 3)
    initial = net.initial(SEEDS)
    trained = train_stacked(net, X, y, SIZES, SEEDS, **SETTINGS)
    names = [name for name, _ in architecture.named_parameters()]
    ends = np.cumsum(SIZES)
    for k, seed in enumerate(SEEDS):
        architecture.load_state_dict({name: p[k] for name, p in zip(names, initial, strict=True)})
        if SIZES[k]:
            mine = slice(ends[k] - SIZES[k], ends[k])
            train_alone(architecture, X[mine], y[mine], seed, **SETTINGS)
        for a, b in zip(architecture.parameters(), trained, strict=True):
            torch.testing.assert_close(a, b[k], rtol=0, atol=1e-4)


def test_training_moves_every_parameter_of_networks_with_rows_and_none_of_the_others(rows):
    net = StackedMLP(6, (7,), 3)
    for before, after in zip(net.initial(SEEDS), train_stacked(net, *rows, SIZES, SEEDS, **SETTINGS), strict=True):
        moved = (before != after).flatten(1).any(dim=1)
        assert moved.tolist() == [True, True, True, False, True]


@pytest.mark.parametrize(
    "make", [lambda: StackedMLP(6, (7, 5), 3), lambda: StackedModule(sequential(6, 7, 3), 3)], ids=["mlp", "module"]
)
def test_parameters_do_not_depend_on_other_networks_bit_for_bit(rows, make):
    """Rows of network 0 replaced, and half of them removed: the shapes of a step must not follow."""
    X, y = rows
    base = train_stacked(make(), X, y, SIZES, SEEDS, **SETTINGS)
    replaced = X.copy()
    replaced[:25] *= -100
    fewer = SIZES.copy()
    fewer[0] = 12
    for trained in (
        train_stacked(make(), replaced, y, SIZES, SEEDS, **SETTINGS),
        train_stacked(make(), X[13:], y[13:], fewer, SEEDS, **SETTINGS),
    ):
        for a, b in zip(base, trained, strict=True):
            assert torch.equal(a[1:], b[1:]) and not torch.equal(a[0], b[0])


def test_a_diverging_network_leaves_the_others_alone(rows):
    X, y = rows
    net = StackedMLP(6, (7,), 3)
    base = train_stacked(net, X, y, SIZES, SEEDS, **SETTINGS)
    broken = X.astype(np.float32)
    broken[:25] = 3e38
    for a, b in zip(base, trained := train_stacked(net, broken, y, SIZES, SEEDS, **SETTINGS), strict=True):
        assert torch.equal(a[1:], b[1:])
    allowed = np.tile([False, True, True], (5, 1))
    assert np.isin(predict_stacked(net, trained, broken[:4], allowed), [1, 2]).all()


def test_every_epoch_visits_every_row_of_its_own_once():
    first = np.cumsum(SIZES) - SIZES
    visits = [[] for _ in SIZES]
    for index, weight, _ in batch_stream(SIZES, SEEDS, batch_size=8, epochs=3):
        assert index.shape == weight.shape == (5, 8)
        # Slots without weight still point at rows of their own (a network without rows has no weight at all).
        own = (index >= first[:, None]) & (index < (first + SIZES)[:, None])
        assert own[SIZES > 0].all()
        np.testing.assert_allclose(weight.sum(axis=1)[weight.any(axis=1)], 1, rtol=1e-6)
        for k in range(5):
            visits[k].append(index[k][weight[k] > 0].tolist())
    for k, size in enumerate(SIZES):
        per_epoch = -(-size // 8)
        epochs = [[row for batch in visits[k][e * per_epoch : (e + 1) * per_epoch] for row in batch] for e in range(3)]
        assert all(sorted(e) == list(range(first[k], first[k] + size)) for e in epochs)
        if size > 9:
            assert epochs[0] != epochs[1] != epochs[2]


def test_every_network_with_rows_finishes_once():
    finished = np.concatenate([f for *_, f in batch_stream(SIZES, SEEDS, batch_size=8, epochs=3)])
    assert sorted(finished) == [0, 1, 2, 4]
    assert list(batch_stream(np.zeros(3, int), [0, 1, 2], batch_size=8, epochs=3)) == []


@pytest.mark.parametrize("chunk", [1, 7, 2**21])
def test_prediction_in_chunks_equals_the_largest_logit(monkeypatch, chunk):
    import skfairdp._networks._stacked as module

    net = StackedMLP(6, (7,), 3)
    params = net.initial([0, 1, 2])
    X = np.random.default_rng(0).standard_normal((40, 6))
    expected = net.logits(params, torch.as_tensor(X, dtype=torch.float32))
    expected[1, :, 2] = -torch.inf
    monkeypatch.setattr(module, "_ACTIVATION_FLOATS", chunk * 3 * 7)
    monkeypatch.setattr(module, "_LEAST_ROWS", 1)
    allowed = np.array([[True] * 3, [True, True, False], [True] * 3])
    assert np.array_equal(predict_stacked(net, params, X, allowed), expected.argmax(dim=2).numpy())


def test_initial_weights_differ_between_seeds_and_repeat_for_one():
    net = StackedMLP(6, (7,), 3)
    weight = net.initial([0, 1, 0])[0]
    assert torch.equal(weight[0], weight[2]) and not torch.equal(weight[0], weight[1])
    # Glorot: uniform within sqrt(6 / (inputs + outputs)).
    assert np.sqrt(6 / 13) * 0.9 < weight.abs().max() <= np.sqrt(6 / 13)
    # As torch's layers: within sqrt(1 / inputs).
    narrow = StackedMLP(6, (7,), 3, narrow=True).initial([0])[0]
    assert np.sqrt(1 / 6) * 0.9 < narrow.abs().max() <= np.sqrt(1 / 6)


def test_a_missing_device_is_named_before_any_work(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match="'device' parameter of MLPTeachers is 'cuda', but torch finds no CUDA device"):
        resolve_device("cuda", owner="MLPTeachers")
    with pytest.raises(ValueError, match="must name a torch device"):
        resolve_device("abacus", owner="MLPTeachers")


@cuda
@pytest.mark.parametrize(
    "make", [lambda: StackedMLP(6, (7, 5), 3), lambda: StackedModule(sequential(6, 7, 3), 3)], ids=["mlp", "module"]
)
def test_cuda_equals_cpu(rows, make):
    net = make()
    on_cpu = train_stacked(net, *rows, SIZES, SEEDS, **SETTINGS)
    on_gpu = train_stacked(net, *rows, SIZES, SEEDS, **SETTINGS, device="cuda")
    for a, b in zip(on_cpu, on_gpu, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-3)
    X, allowed = np.random.default_rng(1).standard_normal((60, 6)), np.ones((5, 3), bool)
    agree = predict_stacked(net, on_gpu, X, allowed, device="cuda") == predict_stacked(net, on_cpu, X, allowed)
    assert agree.mean() > 0.98
