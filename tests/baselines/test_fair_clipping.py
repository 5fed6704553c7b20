"""FairClippingClassifier: weights, bounds by group and global scaling cost what the event says, counts included."""

import numpy as np
import pytest
import torch

from skfairdp import PrivacyLedger
from skfairdp.exceptions import BudgetExceededError, PrivacyLeakWarning
from skfairdp.papers import FairClippingClassifier, _fair_clipping
from skfairdp.privacy import GaussianDpEvent, NeighboringRelation, epsilon_of
from tests._tools.inside import (
    BoundsByGroup,
    ColumnTables,
    FairClippingStep,
    GlobalScaling,
    WeightsByGroup,
    clipped_gradient_sum,
)
from tests._tools.networks import clipping, dpsgd
from tests._tools.problems import make_rows
from tests.gradient.test_fair_dpsgd import FixedSource, trace_of

pytestmark = pytest.mark.filterwarnings("ignore:.*draws its noise from 'noise_seed'")

N, C, METHODS = 24, 0.7, ("reweight", "dpsgd_f", "global_adapt")
QUICK = {
    "classes": [0, 1],
    "groups": [0, 1, 2],
    "hidden": (5,),
    "max_epochs": 1.5,
    "batch_size": 6,
    "max_grad_norm": C,
    "random_state": 0,
    "epsilon": 30.0,
    "lr": 1.0,
    "start": 0.5,
    "public_n_rows": N,
    "count_share": 0.3,
    "max_ratio": 2.5,
}


def world(n=N):
    """Groups of three sizes, one of them small, one with larger gradients."""
    X, y, _ = make_rows(n, n_groups=2, seed=1)
    groups = np.where(np.arange(n) % 8 == 0, 2, np.arange(n) % 3 == 1).astype(int)
    X[groups == 1] *= 4
    return X, y, groups


class Constant(FixedSource):
    """Noise that is the same number everywhere, so that its scale can be read off."""

    value = 0.0

    def normal(self, size=1):
        super().normal(size)
        return np.full(size, self.value)


class Watched(FairClippingClassifier):
    """Takes its groups where ``trace_of`` passes public rows."""

    def fit(self, X, y, X_public=None):
        return super().fit(X, y, sensitive_features=X_public)


def run(method, rows, members, value=0.0, told=None, follow=None, present=None):
    """Fit; return model, trace, what was counted exactly and what was released, batch by batch.

    With ``told`` the rules hear that in place of their own counts, as in an adaptive composition.
    """
    X, y, groups = rows
    model = clipping(Watched, **{**QUICK, "method": method})
    source = Constant(members, present=present)
    source.value = value
    exact, released, sizes = [], [], []
    release, balancing = FairClippingStep.release_counts, WeightsByGroup.balancing

    def counting(self, counts, source):
        exact.append(counts.numpy().copy())
        released.append(release(self, counts, source))
        return released[-1] if told is None else told[0][len(exact) - 1]

    def balanced(noisy, max_weight):
        sizes.append(noisy.copy())
        return balancing(noisy if told is None else told[1][0], max_weight)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ColumnTables, "should_release", False)  # its releases have tests of their own
        patch.setattr(_fair_clipping, "MajorityBaselineTest", lambda *cost: None)  # and so have these
        patch.setattr(FairClippingStep, "release_counts", counting)
        patch.setattr(WeightsByGroup, "balancing", staticmethod(balanced))
        trace = trace_of(model, X, y, groups, source, follow=follow)
    return model, trace, exact, released, sizes


@pytest.mark.few(1)
@pytest.mark.parametrize("method", METHODS)
def test_no_record_costs_more_than_the_event_says_counts_included(method):
    """Noise is read off a fit with constant noise, distances off fits without each of the rows. Per step, the squared
    distance over noise of counts and of the sum given those counts must add up to at most 1/σ² of the event.
    """
    rows = world()
    members = np.random.default_rng(3).random((6, N)) < 0.5
    members[2] = False  # a batch of nobody
    model, whole, exact, told, sizes = run(method, rows, members)
    _, noisy, _, with_noise, noisy_sizes = run(method, rows, members, value=1.0, told=(told, sizes), follow=whole)
    event = model.privacy_.event
    steps = event.events[0] if method == "reweight" else event
    accounted = steps.event.event.noise_multiplier
    assert steps.count == model.n_steps_ == len(whole.gradients) == 6
    divisor = QUICK["batch_size"]
    noise = [float((b - a).mean()) * divisor for a, b in zip(whole.gradients, noisy.gradients, strict=True)]
    count_noise = [float(np.mean(np.asarray(b) - np.asarray(a))) for a, b in zip(exact, with_noise, strict=True)]
    assert len(exact) == (0 if method == "reweight" else 6)
    largest = 0.0
    for i in range(N):
        rest = np.arange(N) != i
        part = tuple(values[rest] for values in rows)
        other, trace, counts, _, fewer = run(method, part, members, told=(told, sizes), follow=whole, present=rest)
        assert other.privacy_ == model.privacy_
        for t in range(6):
            moved = float((whole.gradients[t] - trace.gradients[t]).norm()) * divisor
            cost = (moved / noise[t]) ** 2
            if counts:
                cost += float(np.square(counts[t] - exact[t]).sum()) / count_noise[t] ** 2
            assert cost <= (1 + 1e-2) / accounted**2, "a record costs more than is accounted for a step"
            assert members[t, i] or cost < 1e-6
            largest = max(largest, cost * accounted**2)
        if method == "reweight":
            (sized,) = (e for e in event.events if isinstance(e, GaussianDpEvent))
            scale = float(np.mean(noisy_sizes[0] - sizes[0]))
            assert np.linalg.norm(fewer[0] - sizes[0]) * sized.noise_multiplier <= scale * (1 + 1e-9)
    assert largest > 0.9  # the records tried reach what is accounted, so less noise would have shown


@pytest.mark.few(1)
@pytest.mark.parametrize("method", METHODS)
def test_steps_and_counts_together_cost_at_most_epsilon(method):
    X, y, groups = world(200)
    ledger = PrivacyLedger()
    model = clipping(
        method=method,
        epsilon=2.0,
        classes=[0, 1],
        groups=[0, 1, 2],
        max_epochs=5,
        batch_size=20,
        hidden=(3,),
        ledger=ledger,
    )
    spent = model.fit(X, y, sensitive_features=groups).privacy_
    assert 0.99 * 2.0 <= spent.epsilon <= 2.0 and spent.epsilon == epsilon_of(spent.event, 1e-5)
    assert (spent.protects, spent.neighboring_relation) == ("record", NeighboringRelation.ZERO_OUT)
    (entry,) = ledger.entries
    assert entry.event == spent.event and len(entry.releases) == 4  # and the second look
    read = {fact.name for fact in spent.public}
    assert not spent.data_dependent and ("names of the groups" in read) == (method != "global_adapt")
    with pytest.raises(BudgetExceededError):
        model.set_params(ledger=PrivacyLedger(epsilon=0.1)).fit(X, y, sensitive_features=groups)


def test_weights_are_capped_however_small_a_group_is_said_to_be():
    for sizes in ([1000.0, 1.0], [1000.0, -50.0], [-3.0, -4.0], [0.0, 0.0]):
        weights = WeightsByGroup.balancing(np.array(sizes), 4.0)
        assert np.isfinite(weights).all() and weights.max() <= 4.0 and weights.min() > 0
    np.testing.assert_allclose(WeightsByGroup.balancing(np.array([30.0, 10.0]), 4.0), [2 / 3, 2.0])


def test_the_bound_of_a_group_grows_with_its_share_of_large_gradients_and_the_noise_with_the_largest():
    rule = BoundsByGroup(3, max_norm=2.0, max_ratio=3.0, count_share=0.1)
    rule.update(torch.tensor([[90.0, 10.0], [50.0, 50.0], [-3.0, -2.0]]))
    # overall 60 of 200 are above C; nobody of the third group
    expected = torch.tensor([2 * (1 + 0.1 / 0.3), 2 * (1 + 0.5 / 0.3), 2.0], dtype=torch.float64)
    torch.testing.assert_close(rule.bounds, expected)
    assert rule.bound == pytest.approx(float(expected[1]))
    rule.update(torch.tensor([[100.0, 0.0], [0.0, 10.0], [0.0, 0.0]]))
    assert rule.bound == 6.0  # max_ratio
    step = FairClippingStep(0.1, 1.5, 2.0, 10, 10.0, rule=rule)
    assert step.sums.sigma == pytest.approx(1.5 / np.sqrt(0.9) * 6.0)
    assert step.counts.sigma == pytest.approx(1.5 / np.sqrt(0.1))


def test_global_scaling_follows_the_share_above_and_stays_finite():
    rule = GlobalScaling(max_norm=1.0, start=4.0, quantile=0.1, batch_size=100.0, count_share=0.1)
    factors = rule.factors(torch.tensor([2.0, 4.0, 8.0, torch.inf]), torch.zeros(4, dtype=torch.long), lambda n: n)
    torch.testing.assert_close(factors, torch.tensor([0.25, 0.25, 0.125, 0.0]), rtol=2e-4, atol=0)
    # one row above Z, of 100 expected; one that is not finite counts nowhere, as if it were absent
    assert rule.strict == pytest.approx(4.0 * np.exp(0.01 - 0.1))
    for wild in (1e9, -1e9):
        for _ in range(30):
            rule.update(torch.tensor([wild]))
        assert 0 < rule.strict <= 1e3


@pytest.mark.few(1)
@pytest.mark.parametrize("method", METHODS)
def test_with_flat_bounds_it_is_plain_dpsgd(method):
    """Without noise and with nothing to tell groups apart, all three are the gradients of FairDPSGDClassifier."""
    X, y, _ = world()
    members = np.random.default_rng(3).random((6, N)) < 0.5
    given = {**QUICK, "max_ratio": 1.0, "start": 1e-2, "quantile": 0.999, "count_share": 0.01, "max_grad_norm": 1e-3}
    model = clipping(Watched, **{**given, "method": method, "groups": [0, 1]})
    found = trace_of(model, X, y, np.arange(N) % 2, Constant(members))
    shared = ("classes", "hidden", "max_epochs", "batch_size", "max_grad_norm", "random_state", "epsilon", "lr")
    plain = dpsgd(lam=0.0, public_n_rows=N, **{name: given[name] for name in shared})
    expected = trace_of(plain, X, y, None, FixedSource(members))
    for a, b in zip(found.gradients, expected.gradients, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-6)  # releases are rounded to a grid
        assert float(b.norm()) > 1e-4


@pytest.mark.parametrize("fused", [True, False])
def test_factors_are_asked_for_once_per_batch_and_see_what_is_not_finite_as_infinite(fused):
    net, asked = torch.nn.Linear(2, 1), []

    def factors(norms):
        asked.append(norms)
        return torch.full_like(norms, 0.5)

    def loss(out, _):
        return out[:, 0]

    X = torch.tensor([[3.0, 0.0], [0.0, torch.inf], [0.0, 4.0]])
    total = clipped_gradient_sum(net, loss, X, torch.zeros(3), 1.0, fused=fused, factors=factors)
    torch.testing.assert_close(total["weight"], torch.tensor([[1.5, 2.0]], dtype=torch.float64))
    (norms,) = asked
    torch.testing.assert_close(norms, torch.tensor([10.0**0.5, torch.inf, 17.0**0.5], dtype=torch.float64))
    clipped_gradient_sum(net, loss, X[:0], torch.zeros(0), 1.0, fused=fused, factors=factors)
    assert len(asked) == 2 and asked[1].shape == (0,)


def test_groups_are_read_where_they_are_needed_and_not_in_silence():
    X, y, groups = world()
    quick = {**QUICK, "public_n_rows": None, "noise_seed": 0}
    with pytest.warns(PrivacyLeakWarning, match="'groups' parameter"):
        model = clipping(**{**quick, "groups": None}).fit(X, y, sensitive_features=groups)
    assert model.groups_.tolist() == [0, 1, 2] and model.group_weights_.shape == (3,)
    with pytest.raises(ValueError, match="needs the groups of the private rows"):
        clipping(**quick).fit(X, y)
    without = clipping(**{**quick, "method": "global_adapt"}).fit(X, y)
    assert not hasattr(without, "groups_") and not hasattr(without, "group_weights_")
    assert without.predict_proba(X).shape == (N, 2)
    in_table = clipping(**quick, sensitive_columns=4).fit(np.column_stack([X, groups]), y)
    assert in_table.n_features_in_ == 5


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "none"}, "'method' parameter"),
        ({"max_ratio": 0.5}, "'max_ratio' parameter"),
        ({"count_share": 1.0}, "'count_share' parameter"),
        ({"hidden": (0,)}, "'hidden' must list"),
        ({"groups": [0, 1]}, "groups"),
        ({"noise_seed": 0}, "'noise_seed' and 'ledger'"),
    ],
)
def test_bad_input_is_an_error_before_anything_is_spent(settings, message, monkeypatch):
    monkeypatch.setattr(FairClippingStep, "release", None)
    X, y, groups = world()
    ledger = PrivacyLedger()
    with pytest.raises(ValueError, match=message):
        clipping(**{**QUICK, "ledger": ledger, **settings}).fit(X, y, sensitive_features=groups)
    assert ledger.entries == ()
