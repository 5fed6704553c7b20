"""Convolutional networks of the backends: a stack is its networks one by one, fits on tiny images, refusals."""

import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone

from skfairdp import PFGuardGenerator, PrivacyLedger
from skfairdp.papers import ConvolutionalLayers, DataLensBackend, GPATEBackend, GSWGANBackend, PATEGANBackend
from tests._tools.inside import GeneratorNet, ImageLayers, StackedDiscriminators

SIZES = ImageLayers((2, 5, 4), (3, 4))  # 40 pixels
SMALL = {"n_teachers": 6, "n_steps": 2, "batch_size": 4, "hidden": ConvolutionalLayers(channels=(2, 3)), "latent": 3}


def stack_of(loss, n=3, lr=0.01):
    return StackedDiscriminators(43, SIZES, range(n), loss=loss, lr=lr)


def as_module(stack, which):
    """One discriminator of a stack, written out."""
    w1, b1, w2, b2, w3, b3 = [p[which].clone().requires_grad_() for p in stack.params]
    leaky = torch.nn.functional.leaky_relu

    def score(rows):
        condition = rows[:, 40:, None, None].expand(-1, 3, 5, 4)
        maps = torch.cat([rows[:, :40].reshape(-1, 2, 5, 4), condition], dim=1)
        for weight, bias in ((w1, b1), (w2, b2)):
            maps = leaky(torch.conv2d(maps, weight, bias, stride=2, padding=1), 0.2)
        return (maps.flatten(1) @ w3.T + b3)[:, 0]

    return score, [w1, b1, w2, b2, w3, b3]


@pytest.mark.parametrize("loss", ["logistic", "wasserstein"])
def test_gradients_of_a_stack_are_those_of_its_networks_one_by_one(loss):
    torch.manual_seed(0)
    stack, between = stack_of(loss), torch.Generator().manual_seed(0)
    for _ in range(2):
        alone = [as_module(stack, k) for k in range(3)]
        real, fake, rows = torch.randn(3, 6, 43) + 1, torch.randn(6, 43), torch.randn(5, 43)
        scores, slopes = stack.scores(rows), stack.input_gradients(rows)
        one_by_one = [stack.input_gradients(rows, k) for k in range(3)]
        stack.step(real, fake)
        at = torch.rand((6, 1), generator=between)
        for k, (score, parameters) in enumerate(alone):
            softplus = torch.nn.functional.softplus
            if loss == "logistic":
                value = softplus(-score(real[k])).mean() + softplus(score(fake)).mean()
            else:
                middle = (real[k] + at * (fake - real[k])).requires_grad_()
                (slope,) = torch.autograd.grad(score(middle).sum(), middle, create_graph=True)
                value = score(fake).mean() - score(real[k]).mean() + 10 * ((slope.norm(dim=1) - 1) ** 2).mean()
            value.backward()
            for found, parameter in zip([g[k] for g in stack._gradients], parameters, strict=True):
                torch.testing.assert_close(found, parameter.grad, atol=1e-5, rtol=1e-4)
            asked = rows.clone().requires_grad_(True)
            torch.testing.assert_close(scores[k], score(asked).detach(), atol=1e-5, rtol=1e-4)
            value = score(asked) if loss == "wasserstein" else torch.nn.functional.logsigmoid(score(asked))
            (slope,) = torch.autograd.grad(value.sum(), asked)
            torch.testing.assert_close(slopes[k], slope, atol=1e-5, rtol=1e-4)
            torch.testing.assert_close(one_by_one[k], slope, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("loss", ["logistic", "wasserstein"])
@pytest.mark.parametrize("strange", [5.0, 1e30, float("nan")])
def test_what_one_network_is_taught_reaches_no_other(loss, strange):
    generator = torch.Generator().manual_seed(0)
    real, fake = torch.randn(3, 6, 43, generator=generator), torch.randn(6, 43, generator=generator)
    other = real.clone()
    other[1, 2] = strange
    first, second = stack_of(loss), stack_of(loss)
    for _ in range(3):
        first.step(real, fake), second.step(other, fake)
    for one, two in zip(first.params, second.params, strict=True):
        assert torch.equal(one[0], two[0]) and torch.equal(one[2], two[2])
    assert not all(torch.equal(one[1], two[1]) for one, two in zip(first.params, second.params, strict=True))


def test_a_score_depends_on_its_own_row_and_on_the_condition_at_every_pixel():
    stack = stack_of("wasserstein")
    rows = torch.randn(4, 43, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(torch.cat([stack.scores(row[None]) for row in rows], dim=1), stack.scores(rows))
    asked = rows.clone()
    asked[:, 40:] = torch.tensor([4.0, 0.0, 0.0])
    before = stack.input_gradients(asked)
    asked[:, 40:] = torch.tensor([0.0, 4.0, 0.0])
    changed = (stack.input_gradients(asked)[:, :, :40] - before[:, :, :40]).abs() > 0
    assert changed.any(dim=(0, 1)).float().mean() > 0.9  # no additive condition: how pixels should change depends on it


@pytest.mark.parametrize("shape", [(1, 6, 6), (3, 7, 5), (1, 1, 1)])
def test_a_generator_makes_images_of_the_shape_and_gradients_reach_all_of_it(shape):
    pixels = int(np.prod(shape))
    net = GeneratorNet(2, (), pixels, np.zeros(0, dtype=bool), ImageLayers(shape, (4, 6)), 3, seed=0)
    again = GeneratorNet(2, (), pixels, np.zeros(0, dtype=bool), ImageLayers(shape, (4, 6)), 3, seed=0)
    cells = np.array([0, 1, 1])
    rows = net.rows(cells, np.random.default_rng(0))
    assert rows.shape == (3, pixels) and np.abs(rows).max() <= 1
    np.testing.assert_array_equal(rows, again.rows(cells, np.random.default_rng(0)))
    fakes = net.fakes(cells, np.random.default_rng(0))
    fakes.backward(torch.randn(fakes.shape, generator=torch.Generator().manual_seed(0)))
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in net.parameters())


def bars(n, side=6, seed=0):
    """Images whose bright half is the group."""
    rng = np.random.default_rng(seed)
    s = rng.integers(2, size=n)
    images = rng.random((n, side, side)) * 0.2
    images[s == 0, : side // 2] += 0.7
    images[s == 1, side // 2 :] += 0.7
    return images, s


@pytest.mark.few(2)
@pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning")
@pytest.mark.parametrize(
    "backend",
    [
        GSWGANBackend(**SMALL),
        GSWGANBackend(discriminators="one", **{**SMALL, "hidden": "cnn"}),
        GSWGANBackend(clipping="global_adapt", **SMALL),
        PATEGANBackend(student_steps=2, generator_steps=2, **SMALL),
        DataLensBackend(k=4, **SMALL),
        GPATEBackend(n_coordinates=3, **SMALL),
    ],
    ids=["gs_wgan", "gs_wgan, one", "gs_wgan, global_adapt", "pate_gan", "datalens", "g_pate"],
)
def test_every_backend_fits_images_with_convolutions_at_the_same_price(backend):
    images, s = bars(80)

    def fitted(some):
        made = PFGuardGenerator(epsilon=5.0, bounds=(0, 1), groups=[0, 1], random_state=0, backend=some)
        return made.fit(images, sensitive_features=s)

    generator = fitted(backend)
    assert generator.privacy_.event == fitted(clone(backend).set_params(hidden=(4,))).privacy_.event
    made, group = generator.sample(12, return_sensitive=True, random_state=0)
    assert made.shape == (12, 6, 6) and set(group) == {0, 1} and 0 <= made.min() <= made.max() <= 1
    copy = pickle.loads(pickle.dumps(generator))
    np.testing.assert_array_equal(copy.sample(5, random_state=1), generator.sample(5, random_state=1))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*draws its noise from 'noise_seed'")
def test_images_of_a_group_look_like_that_group():
    images, s = bars(300, side=4)
    layers = {"hidden": ConvolutionalLayers(channels=(4,)), "latent": 4, "lr": 5e-3, "teacher_lr": 5e-3}
    backend = GSWGANBackend(n_teachers=5, n_steps=70, batch_size=16, teacher_steps=2, **layers)
    generator = PFGuardGenerator(
        epsilon=200.0, backend=backend, bounds=(0, 1), groups=[0, 1], random_state=0, noise_seed=0
    ).fit(images, sensitive_features=s)
    made, group = generator.sample(200, return_sensitive=True, random_state=0)
    above = made[:, :2].mean(axis=(1, 2)) > made[:, 2:].mean(axis=(1, 2))
    assert np.mean(above == (np.asarray(group) == 0)) > 0.85


@pytest.mark.parametrize(
    ("hidden", "shape", "message"),
    [
        ("cnn", (30, 7), "does not fit the rows: rows of 7 features are no square images"),
        (ConvolutionalLayers((3, 4)), (30, 12), "must be three positive integers"),
        (ConvolutionalLayers((1, 3, 3)), (30, 4, 4), "rows of 9 features, but X has 16"),
        (ConvolutionalLayers(channels=(0,)), (30, 4, 4), "'channels' must list positive integers"),
        ("resnet", (30, 4, 4), "must be an instance of 'tuple'"),
    ],
)
def test_layers_that_do_not_fit_are_refused_before_anything_is_spent(hidden, shape, message):
    ledger = PrivacyLedger()
    generator = PFGuardGenerator(
        backend=GSWGANBackend(**{**SMALL, "hidden": hidden}), codec="units", bounds=(0, 1), groups=[0, 1], ledger=ledger
    )
    with pytest.raises(ValueError, match=rf"'hidden' parameter of GSWGANBackend .*{message}"):
        generator.fit(np.zeros(shape), sensitive_features=np.arange(30) % 2)
    assert ledger.entries == ()


def test_convolutions_of_a_table_are_refused():
    generator = PFGuardGenerator(backend=GSWGANBackend(**SMALL), codec="table", bounds=(0, 1), groups=[0, 1])
    with pytest.raises(
        ValueError, match=r"'hidden' parameter of GSWGANBackend asks for convolutions, which need images"
    ):
        generator.fit(np.zeros((30, 4)), sensitive_features=np.arange(30) % 2)
