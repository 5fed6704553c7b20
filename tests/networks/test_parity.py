"""The public parity term, the coin flips of Poisson sampling, and clipping where sums cancel."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from scipy.stats import binomtest
from torch import nn

from skfairdp.fairness import largest_disparity
from skfairdp.privacy import NoiseSource
from tests._tools.formulas import plain_formula
from tests._tools.inside import (
    ParityPenalty,
    check_rows_stay_apart,
    clipped_gradient_sum,
    disparity_and_slope,
    disparity_of_contrasts,
    group_contrasts,
)
from tests._tools.layers import examples

TABLES = st.tuples(st.integers(0, 10_000), st.integers(2, 40), st.integers(2, 5), st.integers(1, 5))


def penalty(logits, groups, n_groups, *, temperature, maximum="soft"):
    contrasts = group_contrasts(groups, n_groups, logits.dtype)
    return disparity_of_contrasts(logits, contrasts, temperature=temperature, maximum=maximum)


def table(drawn):
    seed, n, n_classes, n_groups = drawn
    rng = np.random.default_rng(seed)
    logits = torch.tensor(rng.normal(size=(n, n_classes)))
    # the last code is never drawn where there are three or more: a group without rows
    groups = torch.tensor(rng.integers(0, max(n_groups - (n_groups > 2), 1), size=n))
    return logits, groups, n_groups


@given(TABLES, st.sampled_from(["soft", "hard"]))
@settings(max_examples=examples(60), deadline=None, derandomize=True)
def test_the_term_tends_to_the_hard_gap_as_the_temperature_goes_to_zero(drawn, maximum):
    logits, groups, n_groups = table(drawn)
    counts = np.zeros((n_groups, logits.shape[1]), dtype=int)
    np.add.at(counts, (groups.numpy(), logits.argmax(1).numpy()), 1)
    hard = largest_disparity(counts, gap="others")
    for temperature in (1e-8, 1e-30):
        value = penalty(logits, groups, n_groups, temperature=temperature, maximum=maximum)
        assert float(value) == pytest.approx(hard, abs=1e-5)
    far = float(penalty(logits, groups, n_groups, temperature=100.0, maximum=maximum))
    assert abs(far) < 0.1  # and to nothing as it grows


@given(TABLES, st.sampled_from(["soft", "hard"]), st.sampled_from([0.05, 0.5, 2.0]))
@settings(max_examples=examples(60), deadline=None, derandomize=True)
def test_value_and_gradient_are_those_of_the_plain_formula(drawn, maximum, temperature):
    logits, groups, n_groups = table(drawn)
    ours, theirs = logits.clone().requires_grad_(), logits.clone().requires_grad_()
    value = penalty(ours, groups, n_groups, temperature=temperature, maximum=maximum)
    expected = plain_formula(theirs, groups, n_groups, temperature, maximum)
    torch.testing.assert_close(value, expected, rtol=1e-10, atol=1e-12)
    value.backward()
    expected.backward()
    torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-8, atol=1e-10)
    contrasts = group_contrasts(groups, n_groups, logits.dtype)
    closed, slope = disparity_and_slope(logits, contrasts, temperature=temperature, maximum=maximum)
    torch.testing.assert_close(closed, expected.detach(), rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(slope, theirs.grad, rtol=1e-8, atol=1e-10)


@given(st.integers(0, 1000), st.sampled_from([None, 7, 40]), st.sampled_from(["soft", "hard"]))
@settings(max_examples=30, deadline=None, derandomize=True)
def test_gradients_of_the_term_are_those_of_automatic_differentiation_on_every_batch(seed, batch_size, maximum):
    rng = np.random.default_rng(seed)
    generator = torch.Generator().manual_seed(seed)
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 3)).double()
    with torch.no_grad():
        for p in net.parameters():
            p.copy_(torch.randn(p.shape, generator=generator))
    net[0].bias.requires_grad_(False)
    X, groups = torch.tensor(rng.normal(size=(50, 3))), torch.tensor(rng.permutation(np.arange(50) % 3))
    ours, theirs = (ParityPenalty(2.0, X, groups, 3, 0.7, maximum, batch_size, seed) for _ in range(2))
    for _ in range(9):
        expected = torch.autograd.grad(theirs.of(net), [net[0].weight, net[2].weight, net[2].bias])
        found = ours.gradients(net)
        assert list(found) == ["0.weight", "2.weight", "2.bias"]
        for a, b in zip(found.values(), expected, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-10)


def test_public_batches_hold_every_row_once_and_every_group_in_its_share():
    rng = np.random.default_rng(0)
    groups = torch.tensor(rng.permutation(np.repeat([0, 1, 2], [700, 250, 50])))
    X = torch.arange(1000.0)[:, None]
    batches = ParityPenalty(1.0, X, groups, 3, 1.0, "soft", 100, seed=4)._batches()
    rows = torch.cat([part.flatten() for part, _ in batches]).long()
    assert len(batches) == 10 and torch.equal(rows.sort().values, torch.arange(1000))
    assert not torch.equal(rows, torch.arange(1000))
    for part, contrasts in batches:
        counts = torch.bincount(groups[part.flatten().long()], minlength=3)
        assert len(part) == 100 and (counts - torch.tensor([70, 25, 5])).abs().max() <= 1
        assert contrasts.shape == (3, 100)


def test_no_temperature_overflows():
    logits = torch.tensor([[300.0, -200.0], [-50.0, 90.0], [10.0, 10.5]], requires_grad=True)
    for temperature in (1e-30, 1e-3, 1.0, 1e30):
        value = penalty(logits, torch.tensor([0, 1, 1]), 2, temperature=temperature)
        (gradient,) = torch.autograd.grad(value, logits)
        assert torch.isfinite(value) and torch.isfinite(gradient).all()


# ---- coin flips ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("probability", [1e-3, 0.015, 0.5, 0.999])
def test_coin_flips_have_their_probability_and_are_independent(probability):
    n = 200_000
    flips = NoiseSource(seed=3).bernoulli(probability, n)
    assert flips.dtype == bool and flips.shape == (n,)
    assert binomtest(int(flips.sum()), n, probability).pvalue > 1e-4
    assert binomtest(int(flips.sum()), n, probability * 0.6).pvalue < 1e-4
    expected = n * probability**2
    for lag in (1, 2, 64):
        both = int((flips[lag:] & flips[:-lag]).sum())
        assert abs(both - expected) < 5 * max(np.sqrt(expected), 1) + 5 * probability**1.5 * np.sqrt(2 * n)
    again = NoiseSource().bernoulli(probability, n)
    other = NoiseSource().bernoulli(probability, n)
    assert (again != other).any()


def test_coin_flips_are_exact_at_the_ends_and_never_more_likely_than_asked():
    source = NoiseSource()
    assert source.bernoulli(1.0, 5000).all() and not source.bernoulli(0.0, 5000).any()
    almost = NoiseSource(seed=0)
    almost._words = lambda n: np.full(n, 2**64 - 1, dtype=np.uint64)
    assert not almost.bernoulli(np.nextafter(1.0, 0.0), 3).any() and almost.bernoulli(1.0, 3).all()
    almost._words = lambda n: np.zeros(n, dtype=np.uint64)
    assert not almost.bernoulli(1e-17, 3).any() and almost.bernoulli(2.0**-53, 3).all()
    for wrong in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match="probability"):
            source.bernoulli(wrong, 2)


# ---- clipping where sums cancel --------------------------------------------------------------------------------
def first_output(out, y):
    return out[:, 0]


def test_positions_that_cancel_do_not_escape_the_bound():
    """Two huge positions of opposite sign leave a small true norm that float32 products lose altogether."""

    class Difference(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(64, 1, bias=False)

        def forward(self, x):
            out = self.layer(x.reshape(len(x), 2, 64))
            return 1e4 * (out[:, 0] - out[:, 1])

    torch.manual_seed(0)
    base = torch.randn(50, 64)
    X = torch.cat([base, base * (1 + 3e-5)], dim=1)
    for i in range(50):
        total = clipped_gradient_sum(Difference(), first_output, X[[i]], torch.zeros(1), 1.0, fused=True)
        assert float(total["layer.weight"].norm()) <= 1.0 + 1e-3


def test_tokens_that_cancel_do_not_escape_the_bound():
    class Difference(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(3, 64)

        def forward(self, x):
            out = self.embed(x.long())
            return 1e4 * (out[:, 0] * (1 + 3e-5) - out[:, 1]).sum(1, keepdim=True)

    total = clipped_gradient_sum(Difference(), first_output, torch.ones(1, 2), torch.zeros(1), 1.0, fused=True)
    assert float(total["embed.weight"].norm()) <= 1.0 + 1e-3


def test_a_row_left_out_for_its_infinite_gradient_changes_nothing_for_the_others():
    """The others keep the dropout masks they have: running them again would make them depend on the bad row."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 40), nn.Dropout(0.5), nn.Linear(40, 2))
    X, y = torch.randn(9, 6), torch.zeros(9, dtype=torch.long)
    X[-1] = 3e38  # the last, so that all masks are drawn alike

    def total(X, y):
        torch.manual_seed(1)
        loss = nn.CrossEntropyLoss(reduction="none")
        return clipped_gradient_sum(net, loss, X, y, 1.0, fused=True)

    X_zero = X.clone()
    X_zero[-1] = 0.0
    with_zero = total(X_zero, y)
    without = total(X, y)
    assert all(torch.isfinite(value).all() for value in without.values())
    # the zero row has a gradient only in its biases and the last layer; the first layer's weights tell the rest
    torch.testing.assert_close(without["0.weight"], with_zero["0.weight"])


def test_a_table_that_rescales_its_rows_in_the_forward_pass_is_refused():
    for layer in (nn.Embedding(3, 2, max_norm=1.0), nn.EmbeddingBag(3, 2, max_norm=1.0)):
        with pytest.raises(ValueError, match="max_norm=None"):
            check_rows_stay_apart(layer)
