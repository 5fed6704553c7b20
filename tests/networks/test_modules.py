"""Stacks of arbitrary torch modules: what is drawn anew, what is refused, what shapes are asked for."""

import numpy as np
import pytest
import torch
from torch import nn

from skfairdp.ensemble import ModuleTeachers
from tests._tools.inside import StackedModule, fit_teachers, train_stacked


class Scaled(nn.Module):
    """A parameter and a buffer of its own beside a Linear layer."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.full((1,), 2.0))
        self.register_buffer("shift", torch.full((1,), 0.5))
        self.linear = nn.Linear(3, 2, bias=False)

    def forward(self, x):
        return self.linear(x * self.scale + self.shift)


def test_linear_and_conv_layers_are_drawn_anew_and_the_rest_starts_as_given():
    net = StackedModule(Scaled(), 2)
    stacked = dict(zip(net.names, net.initial([0, 1, 0]), strict=True))
    assert stacked["scale"].tolist() == [[2.0]] * 3
    weight = stacked["linear.weight"]
    assert torch.equal(weight[0], weight[2]) and not torch.equal(weight[0], weight[1])
    # torch's default law for Linear: uniform within 1 / sqrt(inputs).
    assert weight.abs().max() <= 1 / np.sqrt(3)


def test_frozen_parameters_are_neither_drawn_nor_trained():
    module = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    module[0].requires_grad_(False)
    net = StackedModule(module, 2)
    assert net.names == ["2.weight", "2.bias"] and net.n_parameters == 10
    x = torch.eye(3)
    params = train_stacked(net, np.eye(3), np.array([0, 1, 0]), np.array([3]), [0], epochs=2)
    expected = torch.tanh(module[0](x)) @ params[0][0].T + params[1][0]
    torch.testing.assert_close(net.logits(params, x)[0], expected.detach())
    module.requires_grad_(False)
    with pytest.raises(ValueError, match="no parameters to train"):
        StackedModule(module, 2)


def test_the_given_module_is_never_changed():
    module = Scaled()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    net = StackedModule(module, 2)
    train_stacked(net, np.eye(3), np.array([0, 1, 0]), np.array([3]), [0], epochs=2)
    for name, value in module.state_dict().items():
        assert torch.equal(value, before[name])
    assert all(p.grad is None for p in module.parameters())


def test_a_factory_is_called_without_moving_the_global_generator():
    state = torch.get_rng_state()
    net = StackedModule(lambda: nn.Linear(3, 2), 2)
    assert torch.equal(torch.get_rng_state(), state)
    assert net.n_parameters == 8


def test_images_reach_a_convolution_in_their_own_shape():
    rng = np.random.default_rng(0)
    y = np.arange(64) % 2
    # Vertical against horizontal stripes.
    stripes = np.tile(np.arange(6) % 2, (6, 1)).astype(np.float32)
    X = np.where((y == 0)[:, None, None], stripes, stripes.T)[:, None] + 0.1 * rng.standard_normal((64, 1, 6, 6))
    module = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(4, 2))
    teacher = ModuleTeachers(module, epochs=40, batch_size=8, lr=0.02)
    teachers = fit_teachers(teacher, X, y, np.arange(64) // 2 % 2, n_teachers=2, n_classes=2, random_state=0)
    assert (teachers.predict(X) == y).mean() > 0.95
    with pytest.raises(ValueError, match="Rows of X have shape"):
        teachers.predict(np.zeros((2, 1, 5, 6)))


@pytest.mark.parametrize(
    ("layer", "match"),
    [
        (nn.BatchNorm1d(3), "BatchNorm1d.*use GroupNorm or LayerNorm"),
        (nn.Dropout(0.5), "Dropout.*set p=0"),
        (nn.InstanceNorm1d(3, track_running_stats=True), "InstanceNorm1d"),
    ],
)
def test_layers_that_would_tie_rows_or_seeds_together_are_refused(layer, match):
    with pytest.raises(ValueError, match=match):
        StackedModule(nn.Sequential(layer, nn.Linear(3, 2)), 2, owner="ModuleTeachers")


def test_harmless_forms_of_those_layers_pass():
    stack = StackedModule(nn.Sequential(nn.Dropout(0.0), nn.LayerNorm(3), nn.Linear(3, 2)), 2)
    weights = stack.initial([0, 1])
    assert [tuple(one.shape) for one in weights] == [(2, 3), (2, 3), (2, 2, 3), (2, 2)]


@pytest.mark.parametrize(("module", "match"), [(nn.ReLU(), "no parameters"), (lambda: 3, "callable returned int")])
def test_what_is_no_trainable_module_is_refused(module, match):
    with pytest.raises(ValueError, match=match):
        StackedModule(module, 2)


@pytest.mark.parametrize("module", [nn.Linear(3, 1), nn.Sequential(nn.Linear(3, 2), nn.Flatten(0))])
def test_outputs_of_another_shape_are_named(module):
    with pytest.raises(ValueError, match=r"one logit per row and class, shape \(rows, 2\)"):
        fit_teachers(module, np.eye(3), [0, 1, 0], [0, 0, 0], n_teachers=1, n_classes=2)
