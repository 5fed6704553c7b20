"""The built-in convolutional network: fused clipping equals micro-batches, and nothing of it is drawn globally."""

import numpy as np
import pytest
import torch
from torch import nn

from skfairdp._networks import CNN, fused_layers, own_generator
from skfairdp.ensemble import ModuleTeachers
from skfairdp.gradient import FairDPSGDClassifier, cnn
from tests._tools.inside import check_network, clipped_gradient_sum, fit_teachers, position_partition


@pytest.fixture(autouse=True)
def one_thread():
    """Steps this small gain nothing from threads, which wait for each other where the machine is busy."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def cross_entropy(outputs, targets):
    return nn.functional.cross_entropy(outputs, targets, reduction="none")


def clipped_row_by_row(net, X, y, max_norm):
    """The truth about a sum of clipped gradients, one row at a time; and how many rows were clipped."""
    parameters = list(net.parameters())
    sums, clipped = [torch.zeros_like(p) for p in parameters], 0
    for x, target in zip(X, y, strict=True):
        gradients = torch.autograd.grad(cross_entropy(net(x[None]), target[None]).sum(), parameters)
        norm = torch.cat([g.flatten() for g in gradients]).norm()
        clipped += int(norm > max_norm)
        for total, g in zip(sums, gradients, strict=True):
            total += g * min(1.0, max_norm / float(norm))
    return sums, clipped


def network(shape=(3, 8, 8), n_classes=4, *, seed=0, **settings):
    with own_generator(seed):
        return CNN(int(np.prod(shape)), n_classes, shape, **settings)


def stripes(n, side=8, seed=0):
    """Flat images whose class is the way the stripes run."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    images = np.zeros((n, 1, side, side), dtype=np.float32)
    images[:, :, ::2, :] = 1.0
    images[y == 1] = images[y == 1].transpose(0, 1, 3, 2)
    return (images + 0.1 * rng.normal(size=images.shape)).reshape(n, -1).astype(np.float32), y


@pytest.mark.parametrize(("shape", "channels"), [((3, 8, 8), (16, 32)), ((1, 7, 5), (4,)), ((3, 14, 14), (4, 6, 8))])
@pytest.mark.parametrize("max_norm", [0.3, 1e6])
def test_fused_clipped_sum_equals_clipping_one_row_at_a_time(shape, channels, max_norm):
    generator = torch.Generator().manual_seed(1)
    net = network(shape, channels=channels)
    with torch.no_grad():  # zero logits would hide what the layers before them do
        net[-1].weight.copy_(torch.randn(net[-1].weight.shape, generator=generator))
    X = torch.rand(6, int(np.prod(shape)), generator=generator)
    y = torch.arange(6) % 4
    expected, clipped = clipped_row_by_row(net, X, y, max_norm)
    assert clipped == (6 if max_norm < 1 else 0)
    assert fused_layers(net) is not None
    fused = clipped_gradient_sum(net, cross_entropy, X, y, max_norm, fused=True)
    for (name, _), value in zip(net.named_parameters(), expected, strict=True):
        torch.testing.assert_close(fused[name].float(), value, rtol=3e-4, atol=1e-5)  # room for rounding: 1e-4


def test_network_passes_the_check_for_private_training_and_fuses():
    assert check_network(network((3, 14, 14), 10), 588, 10, owner="FairDPSGDClassifier")


def test_weights_follow_the_seed_and_the_global_generator_is_left_alone():
    before = torch.random.get_rng_state()
    first, again, other = network(seed=3), network(seed=3), network(seed=4)
    assert torch.equal(torch.random.get_rng_state(), before)
    for a, b in zip(first.parameters(), again.parameters(), strict=True):
        assert torch.equal(a, b)
    assert not torch.equal(first[1].weight, other[1].weight)


def test_first_logits_are_equal_for_all_classes():
    assert torch.equal(network()(torch.rand(3, 192)), torch.zeros(3, 4))


def test_flat_rows_are_read_channels_first():
    net = network((3, 8, 8))
    with torch.no_grad():
        net[-1].weight.fill_(0.1)
        net[-1].weight[1:] = 0
    image = torch.zeros(1, 3, 8, 8)
    image[0, 1] = 1.0
    with torch.no_grad():
        net[1].weight[:, 1] = 0  # blind to the second channel
        blind = net(torch.zeros(1, 192))
        assert torch.equal(net(image.flatten(1)), blind)
        assert not torch.equal(net(image.roll(1, dims=1).flatten(1)), blind)


@pytest.mark.slow
def test_private_training_with_it_learns():
    X, y = stripes(1500)
    # a loose budget: what is asked is whether the network trains through the fused path at all
    model = FairDPSGDClassifier(
        epsilon=20.0,
        lam=0.0,
        net=cnn((1, 8, 8), channels=(4, 8), max_epochs=4, batch_size=100),
        classes=[0, 1],
        random_state=0,
    ).fit(X, y)
    X_test, y_test = stripes(300, seed=1)
    assert model.score(X_test, y_test) > 0.95


def test_teachers_can_be_copies_of_it():
    X, y = stripes(400)
    teachers = fit_teachers(
        ModuleTeachers(network((1, 8, 8), 2, channels=(4, 8)), epochs=10),
        X,
        y,
        position_partition(400, 4, random_state=0),
        n_teachers=4,
        n_classes=2,
        random_state=0,
    )
    X_test, y_test = stripes(200, seed=1)
    votes = teachers.predict(X_test)
    assert votes.shape == (4, 200) and (votes == y_test).mean() > 0.95


@pytest.mark.parametrize(
    ("shape", "settings", "words"),
    [
        ((3, 8), {}, "'image_shape' must be three positive integers"),
        ((3, 8, 0), {}, "Got (3, 8, 0)"),
        ((3, 8.0, 8), {}, "'image_shape'"),
        (192, {}, "Got 192"),
        ((3, 8, 8), {"channels": ()}, "'channels' must list positive integers"),
        ((3, 8, 8), {"channels": (4, -1)}, "Got (4, -1)"),
    ],
)
def test_impossible_shapes_are_refused_by_name(shape, settings, words):
    with pytest.raises(ValueError) as refusal:
        network(shape, **settings)
    assert words in str(refusal.value)
