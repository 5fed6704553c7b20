"""Stacked discriminators against discriminators one by one, and the generator's rows."""

import numpy as np
import pytest
import torch

from tests._tools.inside import GeneratorNet, StackedDiscriminators


def as_modules(stack, which):
    """One discriminator of a stack as a torch module."""
    *hidden, last, bias = [p[which] for p in stack.params]
    layers = []
    for weight, offset in zip(hidden[::2], hidden[1::2], strict=True):
        layer = torch.nn.Linear(*weight.shape)
        layer.weight.data, layer.bias.data = weight.T.clone(), offset[0].clone()
        layers += [layer, torch.nn.ReLU()]
    out = torch.nn.Linear(last.shape[1], 1)
    out.weight.data, out.bias.data = last.clone(), bias[:, 0].clone()
    return torch.nn.Sequential(*layers, out)


def value_of(module, loss, real, fake, between, weights):
    """The loss of one discriminator, by automatic differentiation twice where slopes are penalised."""
    scores = module(real)[:, 0], module(fake)[:, 0]
    if loss == "logistic":
        real_part = torch.nn.functional.softplus(-scores[0])
        return (weights * real_part).sum() + torch.nn.functional.softplus(scores[1]).mean()
    middle = (real + between * (fake - real)).requires_grad_()
    (slopes,) = torch.autograd.grad(module(middle).sum(), middle, create_graph=True)
    return scores[1].mean() - (weights * scores[0]).sum() + 10 * ((slopes.norm(dim=1) - 1) ** 2).mean()


@pytest.mark.covering
@pytest.mark.parametrize("weighted", [False, True], ids=["even", "weighted"])
@pytest.mark.parametrize("loss", ["logistic", "wasserstein"])
@pytest.mark.parametrize("hidden", [(), (5,), (6, 4)])
def test_gradients_of_a_stack_are_those_of_its_discriminators_one_by_one(loss, hidden, weighted):
    torch.manual_seed(0)
    stack = StackedDiscriminators(3, hidden, range(4), loss=loss, lr=0.01)
    between = torch.Generator().manual_seed(0)
    for _ in range(5):
        alone = [as_modules(stack, k) for k in range(4)]
        real, fake = torch.randn(4, 7, 3) + 1, torch.randn(7, 3)
        weights = torch.rand(4, 7) if weighted else None
        rows = torch.randn(6, 3)
        scores, slopes = stack.scores(rows), stack.input_gradients(rows)
        one_by_one = [stack.input_gradients(rows, k) for k in range(4)]
        stack.step(real, fake, weights=weights)
        at = torch.rand((7, 1), generator=between)
        for k, module in enumerate(alone):
            shares = weights[k] / weights[k].sum() if weighted else torch.full((7,), 1 / 7)
            value_of(module, loss, real[k], fake, at, shares).backward()
            expected = [p.grad for p in module.parameters()]
            found = [g[k] for g in stack._gradients]
            found[:-2:2] = [g.T for g in found[:-2:2]]
            for one, two in zip(found, expected, strict=True):
                torch.testing.assert_close(one, two.reshape(one.shape), atol=1e-5, rtol=1e-4)
            asked = rows.clone().requires_grad_(True)
            score = module(asked)[:, 0]
            torch.testing.assert_close(scores[k], score.detach(), atol=1e-5, rtol=1e-4)
            value = score if loss == "wasserstein" else torch.nn.functional.logsigmoid(score)
            (slope,) = torch.autograd.grad(value.sum(), asked)
            torch.testing.assert_close(slopes[k], slope, atol=1e-5, rtol=1e-4)
            torch.testing.assert_close(one_by_one[k], slope, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("hidden", [(), (5,), (6, 4)])
def test_a_stack_steps_like_its_discriminators_one_by_one(hidden):
    torch.manual_seed(0)
    stack = StackedDiscriminators(3, hidden, range(4), loss="logistic", lr=0.01)
    alone = [as_modules(stack, k) for k in range(4)]
    optimizers = [torch.optim.Adam(module.parameters(), lr=0.01, betas=(0.5, 0.999)) for module in alone]
    for _ in range(5):
        real, fake = torch.randn(4, 7, 3) + 1, torch.randn(7, 3)
        stack.step(real, fake)
        for k, (module, optimizer) in enumerate(zip(alone, optimizers, strict=True)):
            optimizer.zero_grad()
            value_of(module, "logistic", real[k], fake, None, torch.full((7,), 1 / 7)).backward()
            optimizer.step()
    rows = torch.randn(6, 3)
    for scores, module in zip(stack.scores(rows), alone, strict=True):
        torch.testing.assert_close(scores, module(rows)[:, 0].detach(), atol=1e-5, rtol=1e-4)


def test_the_penalty_holds_slopes_between_real_and_fake_where_theory_says():
    """Along the line of length D between two clouds a slope g gains D g and costs 10 (g − 1)²: g = 1 + D/20 is best."""
    torch.manual_seed(0)
    stack = StackedDiscriminators(3, (16, 16), range(3), loss="wasserstein", lr=0.01)
    centres = torch.tensor([2.0, -1.0, 0.0])
    for _ in range(400):
        stack.step(0.3 * torch.randn(3, 32, 3) + centres, 0.3 * torch.randn(32, 3))
    middle = torch.rand(200, 1) * centres + 0.3 * torch.randn(200, 3)
    norms = stack.input_gradients(middle).norm(dim=2)
    torch.testing.assert_close(norms.mean(dim=1), (1 + centres.norm() / 20).expand(3), atol=0.05, rtol=0)
    assert (stack.scores(centres[None]) > stack.scores(torch.zeros(1, 3))).all()


def test_gold_weighs_the_rows_that_look_real_by_their_ratio_of_densities():
    stack = StackedDiscriminators(1, (), [0], loss="logistic", lr=0.1)
    stack.params[0].fill_(1.0), stack.params[1].fill_(0.0)
    real = torch.tensor([[[-9.0], [0.0], [9.0]]])
    kept = []
    original = stack.net.backpropagate
    stack.net.backpropagate = lambda p, g, a, s: (kept.append(s.clone()), original(p, g, a, s))
    stack.step(real, torch.zeros(3, 1), gold=True)
    slopes = torch.sigmoid(real[0, :, 0]) - 1
    weights = kept[0][0, 0, :3] / slopes
    torch.testing.assert_close(weights, torch.tensor([0.2, 1.0, 5.0]) / 6.2, atol=1e-4, rtol=1e-3)


def test_generator_rows_are_codes_that_may_be_sampled_and_gradients_flow_through_them():
    allowed = np.array([True, True, False, True, False])
    net = GeneratorNet(2, (3, 2), 0, allowed, (8,), 4, seed=0)
    rows = net.rows(np.array([0, 1] * 200), np.random.default_rng(0))
    assert set(rows[:, 0]) == {0, 1} and set(rows[:, 1]) == {0}
    fakes = net.fakes(np.zeros(5, dtype=np.int64), np.random.default_rng(0))
    assert torch.allclose(fakes.detach().sum(dim=1), torch.full((5,), 2.0))
    fakes.backward(torch.randn(5, 5))
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in net.parameters())
