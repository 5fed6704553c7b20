"""The fused clipped sum equals clipping every row's own gradient, layer by layer."""

import pytest
import torch
from torch import nn

from skfairdp._networks import fused_layers
from skfairdp._networks._clipping import _gradient_rows, vectorized_gradients
from tests._tools.inside import SLACK, DenseRows, LayerRows, check_rows_stay_apart, clipped_gradient_sum


class TokenNet(nn.Module):
    """Embedding with repeated tokens and padding, a layer norm over positions, a linear layer on a sequence."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(7, 5, padding_idx=0)
        self.norm = nn.LayerNorm(5)
        self.mix = nn.Linear(5, 4)
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        return self.head(torch.tanh(self.mix(self.norm(self.embed(x)))).mean(1))


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(6, 6), nn.Linear(6, 3)

    def forward(self, x):
        return self.second(x + torch.relu(self.first(x)))


NETS = {
    "linear": (lambda: nn.Linear(6, 3), (6,)),
    "linear without bias": (lambda: nn.Linear(6, 3, bias=False), (6,)),
    "mlp": (lambda: nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3)), (6,)),
    "in-place activation": (lambda: nn.Sequential(nn.Linear(6, 8), nn.ReLU(inplace=True), nn.Linear(8, 3)), (6,)),
    "residual": (Residual, (6,)),
    "conv2d": (
        lambda: nn.Sequential(
            nn.Conv2d(2, 4, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(4, 4, 3, padding="same"),
            nn.Flatten(),
            nn.Linear(64, 3),
        ),
        (2, 8, 8),
    ),
    "grouped, dilated, reflected conv2d": (
        lambda: nn.Sequential(
            nn.Conv2d(4, 6, 3, groups=2, dilation=2, padding=2, padding_mode="reflect"),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(216, 3),
        ),
        (4, 6, 6),
    ),
    "conv1d": (
        lambda: nn.Sequential(nn.Conv1d(3, 5, 4, stride=2, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(25, 3)),
        (3, 10),
    ),
    "group norm": (
        lambda: nn.Sequential(nn.Conv2d(2, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3)),
        (2, 6, 6),
    ),
    "tokens": (TokenNet, None),
}


def build(name, n=9):
    generator = torch.Generator().manual_seed(0)
    make, shape = NETS[name]
    net = make().double()
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64) * 0.7)
    if shape is None:
        X = torch.randint(0, 7, (n, 6), generator=generator)
    else:
        X = torch.randn((n, *shape), generator=generator, dtype=torch.float64) * torch.linspace(0.1, 5, n).reshape(
            -1, *[1] * len(shape)
        )
    return net, X.double() if shape else X, torch.randint(0, 3, (n,), generator=generator)


def loss(outputs, targets):
    return nn.functional.cross_entropy(outputs, targets, reduction="none")


def micro_batches(net, X, y, max_norm):
    """The truth: one row at a time."""
    total = {name: torch.zeros_like(p) for name, p in net.named_parameters() if p.requires_grad}
    norms = []
    for i in range(len(X)):
        gradients = torch.autograd.grad(
            loss(net(X[i : i + 1]), y[i : i + 1]).sum(), [p for p in net.parameters() if p.requires_grad]
        )
        norm = torch.sqrt(sum(g.square().sum() for g in gradients))
        norms.append(float(norm))
        for name, g in zip(total, gradients, strict=True):
            total[name] += g * min(1.0, max_norm * (1 - SLACK) / float(norm))  # the package's own room for rounding
    return total, norms


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("name", NETS)
def test_clipped_sum_equals_micro_batches(name, fused):
    net, X, y = build(name)
    _, norms = micro_batches(net, X, y, 1.0)
    max_norm = sorted(norms)[len(norms) // 2]  # half of the rows are clipped
    expected, _ = micro_batches(net, X, y, max_norm)
    total = clipped_gradient_sum(net, loss, X, y, max_norm, fused=fused)
    assert set(total) == set(expected)
    for key, value in expected.items():
        torch.testing.assert_close(total[key], value, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("frozen", [False, True], ids=["all", "without biases"])
@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("name", NETS)
def test_what_the_rows_say_of_their_gradients_is_what_each_gradient_is(name, fused, frozen):
    """Norms, inner products and weighted sums, without forming a gradient, against every row's own."""
    net, X, y = build(name)
    if frozen:
        for parameter_name, parameter in net.named_parameters():
            parameter.requires_grad_(not parameter_name.endswith("bias"))
    named = {key: p for key, p in net.named_parameters() if p.requires_grad}
    own = [
        dict(zip(named, torch.autograd.grad(loss(net(X[i : i + 1]), y[i : i + 1]).sum(), named.values()), strict=True))
        for i in range(len(X))
    ]
    rows = _gradient_rows(
        net, loss, X, y, layers=fused_layers(net), fused=fused, form=vectorized_gradients, shared=None
    )
    assert isinstance(rows, LayerRows if fused else DenseRows)
    generator = torch.Generator().manual_seed(1)
    given = {key: torch.randn(p.shape, generator=generator, dtype=torch.float64) for key, p in named.items()}
    weights = torch.rand(len(X), generator=generator, dtype=torch.float64)

    expected = torch.stack([sum((one[key] * given[key]).sum() for key in named) for one in own])
    torch.testing.assert_close(rows.inner(given), expected, rtol=1e-9, atol=1e-9)
    norms = torch.stack([torch.sqrt(sum(g.square().sum() for g in one.values())) for one in own])
    torch.testing.assert_close(rows.squared_norms().sqrt(), norms, rtol=1e-6, atol=1e-12)
    least = norms * (1 - 1e-9) - 1e-12
    assert (rows.norms() >= least).all() and (rows.squared_sizes().sqrt() >= least).all()
    public = rows.public_sum(weights[:4])
    for key in named:
        summed = sum(weights[i] * own[i][key] for i in range(4))
        torch.testing.assert_close(public[key].reshape(summed.shape), summed, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", NETS)
def test_removing_any_row_moves_the_sum_by_at_most_the_bound(name):
    net, X, y = build(name)
    whole = clipped_gradient_sum(net, loss, X, y, 0.5)
    for i in range(len(X)):
        rest = [j for j in range(len(X)) if j != i]
        part = clipped_gradient_sum(net, loss, X[rest], y[rest], 0.5)
        moved = torch.sqrt(sum((whole[k] - part[k]).square().sum() for k in whole))
        assert float(moved) <= 0.5


def test_frozen_parameters_count_neither_in_the_norm_nor_in_the_sum():
    net, X, y = build("mlp")
    net[0].weight.requires_grad_(False)
    expected, norms = micro_batches(net, X, y, 0.3)
    assert max(norms) > 0.3
    total = clipped_gradient_sum(net, loss, X, y, 0.3, fused=True)
    assert set(total) == {"0.bias", "2.weight", "2.bias"}
    for key, value in expected.items():
        torch.testing.assert_close(total[key], value, rtol=1e-9, atol=1e-12)


def test_a_row_with_an_infinite_gradient_contributes_nothing():
    net, X, y = build("mlp")
    expected = clipped_gradient_sum(net, loss, X[1:], y[1:], 1.0)
    X = X.clone()
    X[0] = float("inf")
    for fused in (True, False):
        total = clipped_gradient_sum(net, loss, X, y, 1.0, fused=fused)
        for key, value in expected.items():
            torch.testing.assert_close(total[key], value)


def test_an_empty_batch_gives_zeros():
    net, X, y = build("mlp")
    total = clipped_gradient_sum(net, loss, X[:0], y[:0], 1.0)
    assert all(not value.any() for value in total.values())
    assert set(total) == {name for name, _ in net.named_parameters()}


def test_shared_and_unknown_layers_leave_the_fused_path_and_stay_right():
    class Shared(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.head = nn.Linear(6, 6), nn.Linear(6, 3)

        def forward(self, x):
            return self.head(torch.tanh(self.layer(torch.tanh(self.layer(x)))))

    net = Shared().double()
    _, X, y = build("mlp")
    expected, _ = micro_batches(net, X, y, 0.4)
    total = clipped_gradient_sum(net, loss, X, y, 0.4)
    for key, value in expected.items():
        torch.testing.assert_close(total[key], value, rtol=1e-9, atol=1e-12)
    with pytest.raises(ValueError, match="more than once"):
        clipped_gradient_sum(net, loss, X, y, 0.4, fused=True)
    assert fused_layers(nn.Sequential(nn.Linear(2, 2), nn.PReLU())) is None


def test_an_input_changed_in_place_is_noticed():
    class Sneaky(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(6, 6), nn.Linear(6, 3)

        def forward(self, x):
            h = self.first(x) + 1
            out = self.second(h)
            with torch.no_grad():
                h.mul_(2.0)
            return out

    _, X, y = build("mlp")
    with pytest.raises(ValueError, match="in place"):
        clipped_gradient_sum(Sneaky().double(), loss, X, y, 1.0, fused=True)


def test_losses_that_are_not_one_per_row_are_an_error():
    net, X, y = build("mlp")
    for fused in (True, False):
        with pytest.raises(ValueError, match="one number per row"):
            clipped_gradient_sum(net, lambda out, y: out, X, y, 1.0, fused=fused)


@pytest.mark.parametrize(
    "layer", [nn.BatchNorm1d(3), nn.BatchNorm2d(3), nn.SyncBatchNorm(3), nn.InstanceNorm1d(3, track_running_stats=True)]
)
def test_modules_that_mix_rows_are_refused_with_the_replacement(layer):
    with pytest.raises(ValueError, match=r"GroupNorm|track_running_stats=False"):
        check_rows_stay_apart(nn.Sequential(nn.Linear(3, 3), layer))


def test_gradients_already_stored_in_the_module_are_left_alone():
    net, X, y = build("mlp")
    clipped_gradient_sum(net, loss, X, y, 1.0)
    assert all(p.grad is None for p in net.parameters())
