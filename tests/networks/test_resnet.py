"""The built-in residual network: fused clipping equals micro-batches, rows stay apart, and it learns in private."""

import numpy as np
import pytest
import torch
from skorch import NeuralNetClassifier
from torch import nn

from skfairdp import PATEClassifier
from skfairdp._networks import ResNet, as_net, fused_layers
from skfairdp.ensemble import ModuleTeachers
from skfairdp.gradient import FairDPSGDClassifier, resnet
from tests._tools.inside import check_network, clipped_gradient_sum, fit_teachers, position_partition
from tests.networks.test_cnn import clipped_row_by_row, cross_entropy, one_thread, stripes  # noqa: F401

SHAPES = [((3, 8, 8), (4, 8)), ((1, 7, 5), (3,)), ((3, 6, 6), (4, 6, 8))]


def network(shape, n_classes=3, *, seed=0, **settings):
    net = as_net(NeuralNetClassifier(ResNet, module__image_shape=shape, **_prefixed(settings)), owner="Owner")
    return net.build(int(np.prod(shape)), n_classes, seed=seed)


def _prefixed(settings):
    return {f"module__{name}": value for name, value in settings.items()}


def awake(net, seed=1):
    """Logits that are not all zero, and scales and shifts of their own in each channel."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        net[-1].weight.copy_(torch.randn(net[-1].weight.shape, generator=generator))
        for part in net.modules():
            if isinstance(part, nn.GroupNorm):
                part.weight.copy_(1 + 0.3 * torch.randn(part.weight.shape, generator=generator))
                part.bias.copy_(0.3 * torch.randn(part.bias.shape, generator=generator))
    return net


@pytest.mark.parametrize(("shape", "channels"), SHAPES)
@pytest.mark.parametrize("max_norm", [0.3, 1e6])
def test_fused_clipped_sum_equals_clipping_one_row_at_a_time(shape, channels, max_norm):
    net = awake(network(shape, channels=channels))
    X = torch.rand(5, int(np.prod(shape)), generator=torch.Generator().manual_seed(2))
    y = torch.arange(5) % 3
    expected, clipped = clipped_row_by_row(net, X, y, max_norm)
    assert clipped == (5 if max_norm < 1 else 0)
    assert {name for name, _ in fused_layers(net)} >= {"2", "4.body.1", "4.body.4"}  # normalisation has a rule of ours
    fused = clipped_gradient_sum(net, cross_entropy, X, y, max_norm, fused=True)
    assert set(fused) == {name for name, _ in net.named_parameters()}
    for (name, _), value in zip(net.named_parameters(), expected, strict=True):
        torch.testing.assert_close(fused[name].float(), value, rtol=3e-4, atol=1e-5)


@pytest.mark.parametrize(("shape", "channels"), SHAPES)
def test_logits_of_a_row_do_not_depend_on_the_other_rows(shape, channels):
    net = awake(network(shape, channels=channels)).double()
    X = torch.rand(6, int(np.prod(shape)), generator=torch.Generator().manual_seed(3)).double()
    alone = torch.cat([net(x[None]) for x in X])
    torch.testing.assert_close(net(X), alone, rtol=1e-10, atol=1e-10)
    others = torch.cat([X[:1], 100 * torch.rand(5, X.shape[1]).double()])
    torch.testing.assert_close(net(others)[0], alone[0], rtol=1e-10, atol=1e-10)
    assert not any("BatchNorm" in type(part).__name__ for part in net.modules()) and not list(net.buffers())


def test_it_passes_the_check_of_private_training_and_fuses():
    assert check_network(network((3, 8, 8)), 192, 3, owner="FairDPSGDClassifier")


def test_normalisation_keeps_what_tells_channels_apart_on_one_pixel():
    net = awake(network((2, 1, 1), channels=(4,)))
    rows = torch.tensor([[0.0, 1.0], [1.0, 0.0], [0.3, 0.2]])
    assert net(rows).std(dim=0).min() > 1e-3


@pytest.mark.parametrize("channels", [(1,), (2,), (3,), (5, 7), (6,), (16, 32)])
def test_groups_of_normalisation_divide_the_channels_and_hold_two_where_there_are_two(channels):
    for part in network((1, 4, 4), channels=channels).modules():
        if isinstance(part, nn.GroupNorm):
            assert part.num_channels % part.num_groups == 0
            assert part.num_channels == 1 or part.num_channels >= 2 * part.num_groups


def test_weights_follow_the_seed_alone_and_first_logits_are_zero():
    before = torch.random.get_rng_state()
    first, again, other = (network((3, 8, 8), seed=seed) for seed in (3, 3, 4))
    assert torch.equal(torch.random.get_rng_state(), before)
    for a, b in zip(first.parameters(), again.parameters(), strict=True):
        assert torch.equal(a, b)
    kernels = [(a.weight, b.weight) for a, b in zip(first.modules(), other.modules(), strict=True)
               if isinstance(a, nn.Conv2d)]  # fmt: skip
    assert len(kernels) == 6 and not any(torch.equal(a, b) for a, b in kernels)
    assert torch.equal(first(torch.rand(3, 192)), torch.zeros(3, 3))


def test_the_shorthand_takes_square_images_and_other_sizes_are_refused_by_name():
    assert as_net("resnet", owner="Owner").build(147, 2, seed=0)[0].unflattened_size == (3, 7, 7)
    for given, n_features, message in (
        ("resnet", 50, "rows of 50 features are no square images"),
        (resnet((3, 4)), 12, "must be three positive integers"),
        (resnet((3, 4, 4)), 12, "rows of 48 features, but X has 12"),
        (resnet(channels=()), 49, "'channels' must list positive integers"),
    ):
        with pytest.raises(ValueError, match=f"Owner.*{message}"):
            as_net(given, owner="Owner").build(n_features, 2, seed=0)


@pytest.mark.slow
def test_private_training_with_it_learns():
    X, y = stripes(700, side=6)
    model = FairDPSGDClassifier(  # a loose budget: what is asked is whether it trains through the fused path
        epsilon=20.0,
        lam=0.0,
        net=resnet((1, 6, 6), channels=(4,), max_epochs=3, batch_size=50),
        classes=[0, 1],
        random_state=0,
    ).fit(X, y)
    X_test, y_test = stripes(200, side=6, seed=1)
    assert model.score(X_test, y_test) > 0.9
    assert model.privacy_.epsilon <= 20


def test_teachers_can_be_copies_of_it():
    X, y = stripes(150, side=6)
    teachers = fit_teachers(
        ModuleTeachers(network((1, 6, 6), 2, channels=(4,)), epochs=10),
        X,
        y,
        position_partition(150, 3, random_state=0),
        n_teachers=3,
        n_classes=2,
        random_state=0,
    )
    X_test, y_test = stripes(100, side=6, seed=1)
    votes = teachers.predict(X_test)
    assert votes.shape == (3, 100) and (votes == y_test).mean() > 0.9


def test_pate_learns_from_teachers_of_it():
    X, y = stripes(400, side=6)
    model = PATEClassifier(
        teacher=ModuleTeachers(network((1, 6, 6), 2, channels=(4,)), epochs=8),
        n_teachers=10,
        epsilon=8.0,
        classes=[0, 1],
        random_state=0,
    ).fit(X, y, X_public=stripes(100, side=6, seed=1)[0])
    X_test, y_test = stripes(100, side=6, seed=2)
    assert model.score(X_test, y_test) > 0.8
