"""Opacus as an independent truth: per-sample gradients, the accountant, and why public rows go another way."""

import warnings

import mpmath
import pytest
import torch
from torch import nn

from skfairdp._networks import DPStep, fused_layers
from skfairdp.privacy import epsilon_of
from tests._tools.inside import SLACK, clipped_gradient_sum

opacus = pytest.importorskip("opacus")

from opacus import GradSampleModule  # noqa: E402
from opacus.accountants import PRVAccountant, RDPAccountant  # noqa: E402
from opacus.layers import DPLSTM, DPMultiheadAttention  # noqa: E402
from opacus.validators import ModuleValidator  # noqa: E402

pytestmark = [
    # Opacus' hooks sit on every layer, also on the first, whose input asks for no gradient.
    pytest.mark.filterwarnings("ignore:Full backward hook is firing:UserWarning"),
    # torch's own note that it batches an operation of EmbeddingBag, LSTM or attention row by row
    pytest.mark.filterwarnings("ignore:There is a performance drop because we have not yet implemented:UserWarning"),
]

DELTA, N, BOUND = 1e-5, 7, 0.5
cross_entropy = nn.CrossEntropyLoss(reduction="none")


# ---- per-sample gradients --------------------------------------------------------------------------------------
class Pooled(nn.Module):
    """Tokens or steps through ``layers``, averaged over the positions."""

    def __init__(self, *layers):
        super().__init__()
        self.layers = nn.Sequential(*layers)

    def forward(self, x):
        return self.layers(x).mean(1)


class Bags(nn.Module):
    """Opacus' rule for bags reads indices and offsets, and counts a token that a bag names twice only once."""

    def __init__(self):
        super().__init__()
        self.bag, self.head = nn.EmbeddingBag(9, 5, mode="mean"), nn.Linear(5, 3)

    def forward(self, x):
        return self.head(self.bag(x.flatten(), x.shape[1] * torch.arange(len(x))))


class Recurrent(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer, self.head = layer, nn.Linear(4, 3)

    def forward(self, x):
        return self.head(self.layer(x)[0][:, -1])


class Attentive(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer, self.head = layer, nn.Linear(4, 3)

    def forward(self, x):
        return self.head(self.layer(x, x, x)[0].mean(1))


def images(*layers):
    return nn.Sequential(*layers, nn.Flatten(), nn.LazyLinear(3))


NETS = {
    "linear": (lambda: nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3)), (6,)),
    "linear on a sequence": (lambda: Pooled(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3)), (6, 4)),
    "conv1d": (lambda: images(nn.Conv1d(3, 5, 4, stride=2, padding=1), nn.ReLU()), (3, 10)),
    "conv2d": (lambda: images(nn.Conv2d(4, 6, 3, groups=2, padding="same"), nn.ReLU()), (4, 6, 6)),
    "conv3d": (lambda: images(nn.Conv3d(2, 3, 2), nn.ReLU()), (2, 4, 4, 4)),
    "embedding": (lambda: Pooled(nn.Embedding(9, 5), nn.Linear(5, 3)), None),
    "embedding bag": (Bags, None),
    "layer norm": (lambda: Pooled(nn.Linear(4, 5), nn.LayerNorm(5), nn.Linear(5, 3)), (6, 4)),
    "group norm": (lambda: images(nn.Conv2d(2, 4, 3), nn.GroupNorm(2, 4), nn.ReLU()), (2, 6, 6)),
    "instance norm": (lambda: images(nn.Conv2d(2, 4, 3), nn.InstanceNorm2d(4, affine=True), nn.ReLU()), (2, 6, 6)),
    "rms norm": (lambda: Pooled(nn.Linear(4, 5), nn.RMSNorm(5), nn.Linear(5, 3)), (6, 4)),
    "recurrent": (lambda: Recurrent(DPLSTM(3, 4, batch_first=True)), (5, 3)),
    "attention": (lambda: Attentive(DPMultiheadAttention(4, 2, batch_first=True, dropout=0.0)), (5, 4)),
}
FUSED = {"linear", "linear on a sequence", "conv1d", "conv2d", "embedding", "layer norm", "group norm", "attention"}


def net_and_rows(name):
    make, shape = NETS[name]
    torch.manual_seed(1)
    module = make()
    if shape is not None:
        X = 3 * torch.randn(N, *shape)
    elif name == "embedding bag":
        X = torch.rand(N, 9).argsort(dim=1)[:, :4]
    else:
        X = torch.randint(0, 9, (N, 4))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Lazy modules", UserWarning)
        module(X)
    return module, X, torch.randint(0, 3, (N,))


def clipped_by_opacus(module, X, y):
    hooked = GradSampleModule(module, loss_reduction="sum")
    cross_entropy(hooked(X), y).sum().backward()
    gradients = {name: p.grad_sample for name, p in module.named_parameters()}
    hooked.to_standard_module()
    norms = torch.stack([g.flatten(1).square().sum(1) for g in gradients.values()]).sum(0).sqrt()
    assert (norms > BOUND).any()
    weights = (BOUND * (1 - SLACK) / norms).clamp_max(1.0)  # our own room for rounding
    return {name: torch.tensordot(weights, g, dims=1) for name, g in gradients.items()}


@pytest.mark.parametrize("name", NETS)
def test_clipped_sum_is_that_of_opacus_per_sample_gradients(name):
    module, X, y = net_and_rows(name)
    assert (fused_layers(module) is not None) == (name in FUSED)
    ways = [{"fused": False, "vectorized": True}, {"fused": False, "vectorized": False}]
    ours = [clipped_gradient_sum(module, cross_entropy, X, y, BOUND, **way) for way in ways]
    if name in FUSED:
        ours.append(clipped_gradient_sum(module, cross_entropy, X, y, BOUND, fused=True))
    expected = clipped_by_opacus(module, X, y)
    for found in ours:
        assert found.keys() == expected.keys()
        for parameter, value in expected.items():
            torch.testing.assert_close(found[parameter].float(), value, rtol=1e-4, atol=2e-5)


def test_every_layer_that_opacus_has_a_rule_for_is_compared():
    inside = {"RNNLinear": "DPLSTM", "SequenceBias": "DPMultiheadAttention"}
    also = {"InstanceNorm1d", "InstanceNorm3d"}  # the same rule as InstanceNorm2d
    compared = {type(child).__name__ for name in NETS for child in net_and_rows(name)[0].modules()}
    known = {inside.get(layer.__name__, layer.__name__) for layer in GradSampleModule.GRAD_SAMPLERS}
    assert known - also <= compared


@pytest.mark.parametrize(
    ("net", "shape", "vectorized"),
    [
        (lambda: Recurrent(nn.LSTM(3, 4, batch_first=True)), (5, 3), True),
        (lambda: Attentive(nn.MultiheadAttention(4, 2, batch_first=True)), (5, 4), True),
        (lambda: Recurrent(nn.GRU(3, 4, batch_first=True)), (5, 3), False),
    ],
    ids=["LSTM", "MultiheadAttention", "GRU"],
)
def test_layers_that_opacus_refuses_are_clipped_row_by_row_or_at_once(net, shape, vectorized):
    torch.manual_seed(1)
    module, X, y = net(), 3 * torch.randn(N, *shape), torch.randint(0, 3, (N,))
    assert ModuleValidator.validate(module, strict=False)
    slow = clipped_gradient_sum(module, cross_entropy, X, y, BOUND, fused=False, vectorized=False)
    if vectorized:
        found = clipped_gradient_sum(module, cross_entropy, X, y, BOUND, fused=False, vectorized=True)
        for parameter, value in slow.items():
            torch.testing.assert_close(found[parameter], value, rtol=1e-4, atol=1e-6)
    else:
        with pytest.raises(RuntimeError):
            clipped_gradient_sum(module, cross_entropy, X, y, BOUND, fused=False, vectorized=True)
    hooked = GradSampleModule(module, loss_reduction="sum")
    with pytest.raises((TypeError, RuntimeError)):
        cross_entropy(hooked(X), y).sum().backward()


# ---- the accountant --------------------------------------------------------------------------------------------
RUNS = [
    # q, sigma, steps, and Opacus' PRV and RDP figures at its defaults
    (0.01, 1.0, 1000, 1.838372, 2.101365),
    (256 / 50000, 1.1, 3906, 1.474356, 1.616028),
    (0.05, 2.0, 200, 1.570713, 1.721307),
]


@pytest.mark.slow
@pytest.mark.parametrize(("q", "sigma", "steps", "prv", "rdp"), RUNS)
def test_certified_epsilon_lies_between_the_limits_of_the_prv_accountant(q, sigma, steps, prv, rdp):
    ours = epsilon_of(DPStep(q, sigma, 1.0, steps, 100.0).event, DELTA)
    accountant = PRVAccountant()
    accountant.history = [(sigma, q, steps)]
    assert accountant.get_epsilon(DELTA) == pytest.approx(prv, abs=1e-6)  # an upper limit, 0.01 above the estimate
    assert ours < prv
    error = 1e-3
    # With so small an error in δ it returns its estimate plus the error in ε; the truth lies at most twice that lower.
    upper = accountant.get_epsilon(DELTA, eps_error=error, delta_error=1e-10)
    assert upper - 2 * error <= ours <= upper
    # The estimate itself is far better than its proven error, and ours, which rounds against itself, lies above it.
    # (A grid of our own answers where dp-accounting is slow; its errors are charged to δ: 5e-4 above at 3906 steps.)
    assert upper - error <= ours <= upper - error + 6e-4
    accountant = RDPAccountant()
    accountant.history = [(sigma, q, steps)]
    assert ours < accountant.get_epsilon(DELTA) == pytest.approx(rdp, abs=1e-6)


@pytest.mark.parametrize(("q", "sigma", "delta"), [(0.01, 0.5, 1e-5), (0.05, 1.0, 1e-6), (0.3, 2.0, 1e-5)])
def test_one_step_is_never_certified_below_its_true_epsilon(q, sigma, delta):
    """One step in closed form, removal and addition: Opacus' PRV and ours are above, ours by no more than the grid."""

    def delta_of(epsilon):
        q_, s, e = mpmath.mpf(q), mpmath.mpf(sigma), mpmath.exp(epsilon)

        def exceeds(x):  # P(noise > x), P(canary + noise > x)
            return mpmath.ncdf(-x / s), mpmath.ncdf((1 - x) / s)

        # (1 - q) + q exp((2x - 1) / 2σ²) > e^ε from x on; adding: below e^-ε up to x
        x = s**2 * mpmath.log((e - 1 + q_) / q_) + mpmath.mpf(1) / 2
        quiet, canary = exceeds(x)
        removal = (1 - q_) * quiet + q_ * canary - e * quiet
        addition = mpmath.mpf(0)
        if 1 / e > 1 - q_:
            x = s**2 * mpmath.log((1 / e - 1 + q_) / q_) + mpmath.mpf(1) / 2
            quiet, canary = exceeds(x)
            addition = (1 - quiet) - e * (1 - ((1 - q_) * quiet + q_ * canary))
        return max(removal, addition)

    with mpmath.workdps(40):
        low, high = mpmath.mpf(0), mpmath.mpf(20)
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (middle, high) if delta_of(middle) > delta else (low, middle)
        true = float(high)
    ours = epsilon_of(DPStep(q, sigma, 1.0, 1, 1.0).event, delta)
    assert true <= ours <= true * 1.001 + 1e-4
    accountant = PRVAccountant()
    accountant.history = [(sigma, q, 1)]
    assert accountant.get_epsilon(delta) >= true - 1e-9


# ---- why the public term is computed apart ---------------------------------------------------------------------
def worlds():
    """Forty private rows with slopes 1, 2, ... and forty public ones with slopes a little below or above."""
    private = torch.arange(40.0)[:, None]
    public = -(torch.arange(40.0)[:, None] + 0.5)
    return 100 * private, 100 * public


def outputs(out, _):
    return out[:, 0]


def test_public_rows_in_the_same_backward_of_opacus_mix_with_private_ones_by_index():
    """Removing one record pairs all later rows with other public rows: the sum moves by 78 C instead of C.

    GradSampleModule adds the gradients of all forwards before a backward by row index, so that public row j ends up in
    private row j before it is clipped.
    """
    X, X_public = worlds()

    def clipped_sum(rows):
        module = nn.Linear(1, 1, bias=False)
        hooked = GradSampleModule(module, loss_reduction="sum")
        (hooked(rows).sum() + hooked(X_public).sum()).backward()
        per_row = module.weight.grad_sample.flatten(1)
        assert len(per_row) == 40
        return (per_row * (1.0 / per_row.norm(dim=1, keepdim=True)).clamp_max(1.0)).sum(0)

    assert float((clipped_sum(X) - clipped_sum(X[1:])).norm()) == pytest.approx(78.0, abs=1e-3)


@pytest.mark.parametrize("inside", [False, True], ids=["beside the private gradients", "inside the clipping"])
def test_public_rows_apart_leave_the_sensitivity_at_the_clipping_bound(inside):
    X, X_public = worlds()
    module = nn.Linear(1, 1, bias=False)
    (public,) = torch.autograd.grad(module(X_public).sum(), [module.weight])

    def total(rows):
        given = {"fused": False, "shared": {"weight": public}} if inside else {}
        return clipped_gradient_sum(module, outputs, rows, torch.zeros(len(rows)), 1.0, **given)["weight"] + (
            0 if inside else public
        )

    moved = [float((total(X) - total(X[torch.arange(40) != i])).norm()) for i in range(40)]
    assert max(moved) <= 1.0 + 1e-3 and max(moved) > 0.9
