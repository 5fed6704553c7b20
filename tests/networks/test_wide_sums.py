"""One row moves a clipped sum by its bound at most: in float arithmetic as it runs, whatever the row holds."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn

from skfairdp._networks._clipping import _gradient_rows, fused_layers, vectorized_gradients
from tests._tools.inside import SLACK, Total, clipped_gradient_sum, private_outputs, wide

ce = nn.CrossEntropyLoss(reduction="none")


def first_output(outputs, _):
    return outputs[:, 0]


class Tokens(nn.Module):
    """Table, norm and a layer at six positions; the tokens are the features, cut to what the table holds."""

    def __init__(self):
        super().__init__()
        self.embed, self.norm = nn.Embedding(7, 5), nn.LayerNorm(5)
        self.mix, self.head = nn.Linear(5, 4), nn.Linear(4, 3)

    def forward(self, x):
        tokens = x.float().nan_to_num(0.0).abs().clamp(0, 6).long()
        return self.head(torch.tanh(self.mix(self.norm(self.embed(tokens)))).mean(1)) * x[:, :1]


class Picky(nn.Module):
    """Fails at rows whose first feature is no row of its table."""

    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(4, 3), nn.Linear(8, 3)

    def forward(self, x):
        return self.head(torch.cat([self.embed(x[:, 0].long()), x[:, 1:]], dim=1))


NETS = {
    "odd widths": (lambda: nn.Sequential(nn.Linear(6, 53), nn.GELU(), nn.Linear(53, 3)), (6,)),
    "conv": (
        lambda: nn.Sequential(
            nn.Conv2d(2, 5, 3, padding=1), nn.Tanh(), nn.GroupNorm(1, 5), nn.Flatten(), nn.Linear(45, 3)
        ),
        (2, 3, 3),
    ),
    "tokens": (Tokens, (6,)),
    "not fused": (lambda: nn.Sequential(nn.Linear(6, 5), nn.PReLU(), nn.Linear(5, 3)), (6,)),
    "picky": (Picky, (6,)),
}
EXTREMES = (0.0, 1e-45, 1e-30, 1e-19, 1.8e19, 1e30, 1e39, 1e308, math.inf, math.nan)
DTYPES = (torch.float32, torch.float64)  # less is refused: tests/networks/test_precision.py


def build(name, dtype, n, seed=0):
    generator = torch.Generator().manual_seed(seed)
    make, shape = NETS[name]
    net = make()
    with torch.no_grad():
        for p in net.parameters():
            p.copy_(torch.randn(p.shape, generator=generator))
    X = torch.randn((n, *shape), generator=generator) * torch.linspace(0.05, 9, n).reshape(-1, *[1] * len(shape))
    if name == "picky":
        X[:, 0] = X[:, 0].abs().clamp(0, 3.5).floor()
    return net.to(dtype), X.double(), torch.randint(0, 3, (n,), generator=generator)


def flat(total):
    assert all(value.dtype == torch.float64 for value in total.values())
    out = torch.cat([value.flatten() for value in total.values()])
    assert torch.isfinite(out).all()
    return out


def rows_of(name, X):
    """What one record may hold: all kinds of numbers, everywhere and in one place."""
    base = X[0].clone()
    for extreme in EXTREMES:
        yield torch.full_like(base, extreme)
        signs = torch.where(torch.arange(base.numel()).reshape(base.shape) % 2 == 0, 1.0, -1.0).to(base)
        yield signs * extreme
        mixed = base.clone()
        mixed.flatten()[-1] = extreme
        yield mixed
    if name == "picky":
        for token in (-1.0, 4.0, 1e18):
            odd = base.clone()
            odd[0] = token
            yield odd


@pytest.mark.covering
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", NETS)
def test_a_row_moves_the_sum_by_at_most_the_bound_whatever_it_holds(name, dtype):
    bound = 1e-3
    reached = 0.0
    for n in (2, 37):
        net, X, y = build(name, dtype, n)
        present = torch.ones(n, dtype=torch.bool)
        present[n // 2] = False
        absent = flat(clipped_gradient_sum(net, ce, X.to(dtype), y, bound, present=present))
        for row in rows_of(name, X):
            X[n // 2] = row
            found = flat(clipped_gradient_sum(net, ce, X.to(dtype), y, bound))
            moved = float((found - absent).norm())
            assert moved <= bound, f"one row moved the sum by {moved / bound:.6f} C"
            reached = max(reached, moved / bound)
            # what it holds does not show where it is absent
            assert torch.equal(flat(clipped_gradient_sum(net, ce, X.to(dtype), y, bound, present=present)), absent)
    assert reached > 0.99


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", sorted(NETS.keys() - {"picky"}))
def test_the_gradients_of_the_other_rows_are_the_same_bit_by_bit(name, dtype):
    """The one fact on kernels that the proof rests on: shape and place decide how a row is computed, not the others."""
    n = 37
    net, X, y = build(name, dtype, n)
    layers = fused_layers(net)

    def measured():
        rows = _gradient_rows(
            net, ce, X.to(dtype), y, layers=layers, fused=None, form=vectorized_gradients, shared=None
        )
        one_by_one = [flat_of(rows, i, n) for i in (0, 1, n - 1)]
        return rows.norms()[kept], one_by_one

    def flat_of(rows, i, n):
        weights = torch.zeros(n, dtype=torch.float64)
        weights[i] = 1.0
        return torch.cat([v.flatten() for v in rows.weighted_sum(weights, weights == 0).values()])

    kept = torch.arange(n) != 20
    norms, gradients = measured()
    for row in (1e30, -1e19, math.nan, 3.0, 1e-40):
        X[20] = row
        again, others = measured()
        assert torch.equal(norms, again)
        assert all(torch.equal(a, b) for a, b in zip(gradients, others, strict=True))


class Table(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(2, 1)

    def forward(self, x):
        return self.e(x[:, 0].long()) * x[:, 1:2]


def test_rounding_does_not_pile_up_over_many_rows():
    """Sums in single precision pass 2^14 with one canary, and 2^15 small terms are then rounded up one by one."""
    big = 2**14
    one_by_one = np.cumsum(np.full(big + 10, 1 - SLACK, dtype=np.float32), dtype=np.float32)
    ones = int(np.searchsorted(one_by_one, big))  # with the canary they reach 2^14, without it they do not
    values = np.concatenate([[1.0], np.full(ones, 2.0), np.full(2 * big, -(2.0 ** (14 - 1 - 23)))])
    X = torch.tensor(np.stack([np.zeros_like(values), values], axis=1), dtype=torch.float32)
    y = torch.zeros(len(X))
    for net in (Table(), nn.Linear(2, 1, bias=False)):
        for fused in (True, False):
            present = torch.ones(len(X), dtype=torch.bool)
            whole = flat(clipped_gradient_sum(net, first_output, X, y, 1.0, fused=fused))
            present[0] = False
            part = flat(clipped_gradient_sum(net, first_output, X, y, 1.0, fused=fused, present=present))
            assert 0.99 < float((whole - part).norm()) <= 1.0


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize(("width", "bound"), [(2, 1e-4), (1000, 1e-3), (4096, 1e-2)])
def test_norms_do_not_underflow(width, bound, fused):
    """|a|² |b|² with |b|² below the smallest float."""
    net = nn.Linear(64, width, bias=False)
    X = torch.full((1, 64), 1.8e19 / 8.0001)
    total = clipped_gradient_sum(net, lambda out, _: (out * 2.5e-23).sum(1), X, torch.zeros(1), bound, fused=fused)
    assert 0.99 * bound < float(flat(total).norm()) <= bound


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_double_precision_neither_underflows_nor_overflows(dtype):
    net = nn.Linear(3, 1, bias=False).to(dtype)
    for size in (1e-200, 1e-90, 1e-30, 1.0, 1e30, 1e100, 1e200):
        for back in (1e-250, 1e-60, 1.0, 1e60, 1e250):
            X = torch.full((2, 3), size, dtype=torch.float64).to(dtype)
            total = clipped_gradient_sum(net, lambda out, _, b=back: out[:, 0] * b, X, torch.zeros(2), 1e-9)
            assert float(flat(total).norm()) <= 2e-9


class Positions(nn.Module):
    """A layer at every position, whose signals come with the rows."""

    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(width, 1, bias=False)

    def forward(self, x):
        return (self.layer(x[..., 1:]) * x[..., :1]).sum((1, 2))[:, None]


@pytest.mark.parametrize("positions", [2, 40])
@pytest.mark.parametrize("width", [1, 30])
def test_positions_that_cancel_do_not_carry_their_rounding_into_the_sum(positions, width):
    """Each row's gradient is small, what its positions give is 1e12 times as large: sums would round at that size."""
    n = 2000
    rng = np.random.default_rng(0)
    X = np.zeros((n, positions, 1 + width))
    X[:, :, 0] = np.where(np.arange(positions) % 2 == 0, 1.0, -1.0)
    common = rng.normal(size=(n, 1, width)) * 1e12
    X[:, :, 1:] = common + rng.normal(size=(n, positions, width)) * 1e-4
    X = torch.tensor(X)
    net = Positions(width).double()
    for i in (0, 777):
        present = torch.ones(n, dtype=torch.bool)
        whole = flat(clipped_gradient_sum(net, first_output, X, torch.zeros(n), 1e-4))
        present[i] = False
        part = flat(clipped_gradient_sum(net, first_output, X, torch.zeros(n), 1e-4, present=present))
        assert float((whole - part).norm()) <= 1e-4


def test_positions_that_do_not_cancel_keep_their_norm():
    """The floor under the norms is for cancellation only: positions at right angles are far from it."""
    net = Positions(400).double()
    X = torch.zeros(1, 400, 401, dtype=torch.float64)
    X[0, :, 0] = 1.0
    X[0, :, 1:] = torch.eye(400)
    total = flat(clipped_gradient_sum(net, first_output, X, torch.zeros(1), 1e6))
    assert float(total.norm()) == pytest.approx(20.0, rel=1e-12)


def test_many_pieces_give_the_sum_of_one(monkeypatch):
    for name in NETS:
        net, X, y = build(name, torch.float32, 37)
        once = flat(clipped_gradient_sum(net, ce, X.float(), y, 0.5))
        with monkeypatch.context() as patch:
            patch.setattr("skfairdp._networks._wide_sums._ROWS", 5)
            patch.setattr("skfairdp._networks._wide_sums._NUMBERS", 50)
            pieces = flat(clipped_gradient_sum(net, ce, X.float(), y, 0.5))
        torch.testing.assert_close(pieces, once, rtol=1e-12, atol=1e-15)


def test_pieces_are_small_enough_for_the_bound_of_the_module():
    """The figure of the docstring: what two sums over the piece of one row may differ by, in units of C."""
    from skfairdp._networks import _wide_sums

    worst = 0.0
    for positions in (2**k for k in range(19)):
        rows = max(1, min(_wide_sums._ROWS, _wide_sums._TERMS // positions))
        kappa = 1.0 if positions == 1 else max(64.0, 8 * math.sqrt(positions))
        worst = max(worst, 2.03 * (rows * positions + 2) * 2.0**-53 * rows * kappa)
    assert 3.0e-5 < worst < 3.2e-5 < SLACK / 2


def test_a_total_keeps_what_additions_lose():
    total = Total()
    values = [1.0, *([2.0**-53] * 1000), -1.0]
    for value in values:
        total.add(torch.tensor([value], dtype=torch.float64))
    assert float(total.value) == math.fsum(values)
    assert sum(values) == 0.0  # and not for lack of loss


def test_widening_is_exact_for_narrow_numbers_and_cuts_wide_ones():
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        values = torch.tensor([0.0, 1e-45, 1.5, -3e38, math.inf], dtype=dtype)
        assert wide(values).dtype == torch.float64 and torch.equal(wide(values).to(dtype), values)
    given = torch.tensor([0.0, 1e-71, -1e-69, 1e69, -1e71, math.nan], dtype=torch.float64)
    expected = torch.tensor([0.0, 0.0, -1e-69, 1e69, math.inf, math.nan], dtype=torch.float64)
    torch.testing.assert_close(wide(given), expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("fused", [None, False])
def test_a_row_at_which_the_module_fails_contributes_nothing_and_changes_nothing_else(fused):
    torch.manual_seed(0)
    net, X, y = build("picky", torch.float32, 12)
    net = nn.Sequential(net, nn.Dropout(0.4), nn.Linear(3, 3))
    X = X.float()
    present = torch.ones(12, dtype=torch.bool)
    present[[0, 5]] = False
    torch.manual_seed(3)
    expected = flat(clipped_gradient_sum(net, ce, X, y, 0.5, present=present, fused=fused))
    after = torch.get_rng_state()
    X[0, 0], X[5, 0] = 1e9, -3.0
    torch.manual_seed(3)
    found = flat(clipped_gradient_sum(net, ce, X, y, 0.5, fused=fused))
    assert torch.equal(found, expected) and torch.equal(torch.get_rng_state(), after)
    X[:, 0] = 99.0
    assert not flat(clipped_gradient_sum(net, ce, X, y, 0.5, fused=fused)).any()


class OfMany(nn.Module):
    """Takes no batch of one row, as code with ``squeeze`` in it does not; fails at rows that are far away."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 3)

    def forward(self, x):
        if len(x) < 2 or (x.abs() > 100).any():
            raise ValueError(f"cannot take {x.sum()}")
        return self.layer(x)


@pytest.mark.parametrize("fused", [None, False])
def test_rows_are_tried_in_batches_of_the_same_shape(fused):
    """A batch of one row may fail for itself: then one row that fails took all others with it."""
    torch.manual_seed(0)
    net, (_, X, y) = OfMany(), build("odd widths", torch.float32, 5)
    X, present = X.float(), torch.arange(5) != 2
    how = {"fused": fused, "vectorized": False, "hooked": False} if fused is None else {"fused": False, "hooked": True}
    expected = flat(clipped_gradient_sum(net, ce, X, y, 0.5, present=present, **how))
    X[2, 0] = 1e9
    assert expected.any() and torch.equal(flat(clipped_gradient_sum(net, ce, X, y, 0.5, **how)), expected)


def test_a_module_that_fails_on_batches_only_says_nothing_of_its_rows():
    class Alone(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(6, 3)

        def forward(self, x):
            if len(x) > 1:
                raise ValueError(f"cannot take {x.sum()}")
            return self.layer(x)

    _, X, y = build("odd widths", torch.float32, 5)
    with pytest.raises(RuntimeError, match="fails on 5 rows of zeros") as caught:
        clipped_gradient_sum(Alone(), ce, X.float(), y, 1.0)
    assert caught.value.__cause__ is None and caught.value.__context__ is None


class Seats(nn.Module):
    """As fast arithmetic does, its answers hang on the number of rows and on the place of each. Fails far away."""

    predicts_rows_alone = True

    def forward(self, x):
        if (x.abs() > 100).any():
            raise ValueError
        self.calls = [*getattr(self, "calls", []), x.clone()]
        return torch.stack([x[:, 0] + torch.arange(len(x)), x[:, 1] * len(x)], dim=1)


def test_private_rows_keep_their_places_and_zeros_stand_for_those_that_fail():
    X = torch.linspace(-1, 1, 60).reshape(30, 2)
    here, net = private_outputs(Seats(), X, 8), Seats()
    X[[3, 11, 12]] = 1e9
    X[4, 0] = torch.nan
    there = private_outputs(net, X, 8)
    others = torch.ones(30, dtype=torch.bool)
    others[[3, 4, 11, 12]] = False
    assert torch.equal(here[others], there[others]) and there[~others].isnan().all()
    first = others[:8]
    kept = [call for call in net.calls if len(call) == 8 and torch.equal(call[first], X[:8][first])]
    assert kept and not kept[-1][3].any()  # and no other private row


def test_room_for_rounding_is_small():
    net, X, y = build("odd widths", torch.float32, 1)
    norms = [float(flat(clipped_gradient_sum(net, ce, 9 * X.float(), y, c)).norm()) / c for c in (1e-6, 1e-2)]
    assert all(a == pytest.approx(1 - SLACK, rel=1e-12) for a in norms)
    assert all(a == pytest.approx(b, rel=1e-12) for a, b in pairwise(norms))
