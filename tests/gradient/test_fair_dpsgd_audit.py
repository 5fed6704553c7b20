"""What an attacker gets out of FairDPSGDClassifier, beside what its certificate allows."""

import dataclasses
import math

import numpy as np
import pytest
import torch
from torch import nn

from skfairdp import PublicData
from skfairdp.inspection import audit_matched_filter, audit_one_run
from skfairdp.privacy import GaussianDpEvent, GaussianMechanism, NoiseSource, epsilon_of, gdp_mu
from tests._tools.inside import Comparison, DPStep, DualPlan, clipped_gradient_sum
from tests._tools.networks import dpsgd

pytestmark = pytest.mark.filterwarnings("ignore:.*draws its noise from 'noise_seed'")

C, DELTA = 0.7, 1e-5


# ---- the step alone --------------------------------------------------------------------------------------------
def audit(step, runs=400):
    """Matched filter on the noisy gradients with and without a canary whose clipped gradient is known."""
    torch.manual_seed(0)
    net = nn.Linear(4, 2)
    rng = np.random.default_rng(0)
    X = torch.tensor(rng.normal(size=(20, 4)), dtype=torch.float32)
    y = torch.tensor(rng.integers(0, 2, size=20))
    X[-1] = 30.0  # the canary: far out and wrongly labelled
    y[-1] = int(net(X[-1:]).argmin())

    def loss(out, target):
        return nn.functional.cross_entropy(out, target, reduction="none")

    canary = clipped_gradient_sum(net, loss, X[-1:], y[-1:], step.max_grad_norm)
    direction = torch.cat([value.flatten() for value in canary.values()]).double()
    # clipped to a ten-thousandth less than the bound, which is the room left for rounding, and never to more
    assert 0.9998 * step.max_grad_norm <= float(direction.norm()) <= step.max_grad_norm
    scores = []
    for n in (19, 20):
        source = NoiseSource(seed=n)
        of_runs = []
        for _ in range(runs):
            total = 0.0
            for _ in range(step.steps):
                rows = torch.from_numpy(step.sample(n, source))
                released = step.release(net, loss, X[rows], y[rows], source)
                total += float(torch.cat([value.flatten() for value in released.values()]).double() @ direction)
            of_runs.append(total)
        scores.append(of_runs)
    return audit_matched_filter(*scores)


@pytest.mark.slow
def test_audit_of_the_full_batch_step_comes_close_to_the_certified_epsilon():
    step = DPStep.calibrated(epsilon=4.0, delta=DELTA, n_rows=20, batch_size=20, epochs=4, max_grad_norm=C)
    assert step.event.event == GaussianDpEvent(step.noise_multiplier)
    certified = epsilon_of(step.event, DELTA)
    assert 0.6 * certified <= audit(step).epsilon_lower(DELTA) <= certified


@pytest.mark.slow
def test_audit_of_the_sampled_step_stays_below_the_certified_epsilon():
    step = DPStep.calibrated(epsilon=4.0, delta=DELTA, n_rows=20, batch_size=10, epochs=2, max_grad_norm=C)
    assert 0 < audit(step).epsilon_lower(DELTA) <= epsilon_of(step.event, DELTA)


# ---- the whole estimator, release by release -------------------------------------------------------------------
N = 20
RNG = np.random.default_rng(0)
X, Y, GROUPS = RNG.normal(size=(N, 4)), RNG.integers(0, 2, size=N), np.arange(N) % 2
X[-1] = 300.0  # the canary, whose gradient is clipped whatever the weights
PUBLIC = PublicData(RNG.normal(size=(30, 4)), np.arange(30) % 2)
WAYS = {
    "plain": {"lam": 0.0},
    "aggregate": {"lam": 1.0},
    "per sample": {"lam": 1.0, "apply_to": "per_sample"},
    "signed loss": {"lam": 0.5, "parity": "signed_loss", "groups": [0, 1], "dual_steps": 2, "budget_share": 0.4},
}


class WhiteBox:
    """Knows all rows but whether the canary is among them, and sees every release of a fit.

    At each release the weights are known from the ones before: so are the others' part of it, and the canary's. What
    is left is noise, with the canary's part or without. Both filters are in units of their noise, so that their sum is
    the optimal statistic.
    """

    def __init__(self, monkeypatch):
        self.steps = self.rates = 0.0
        step_release, table_release = DPStep.release, DualPlan.release

        def watch_step(plan, module, loss, rows, targets, source, *, present=None, **options):
            released = step_release(plan, module, loss, rows, targets, source, present=present, **options)
            all_rows = torch.tensor(X, dtype=torch.float32)
            known = torch.tensor(Y if targets.ndim == 1 else np.column_stack([Y, GROUPS]))
            others, canary = (
                clipped_gradient_sum(module, loss, all_rows[part], known[part], plan.max_grad_norm, **options)
                for part in (slice(N - 1), slice(N - 1, N))
            )
            found = sum(
                float(((released[name].double() * plan.expected_batch_size - others[name]) * part).sum())
                for name, part in canary.items()
            )
            self.steps += found / (plan.noise_multiplier * plan.max_grad_norm) ** 2
            return released

        def watch_table(plan, module, rows, groups, n_groups, source, **more):
            table = table_release(plan, module, rows, groups, n_groups, source, **more)
            all_rows = torch.tensor(X, dtype=torch.float32)
            others, canary = (
                plan.exact(module, all_rows[part], torch.tensor(GROUPS[part]), n_groups)
                for part in (slice(N - 1), slice(N - 1, N))
            )
            self.rates += float(((table - others) * canary).sum()) / plan.noise**2
            return table

        monkeypatch.setattr(DPStep, "release", watch_step)
        monkeypatch.setattr(DualPlan, "release", watch_table)


def white_box_scores(way, monkeypatch, *, epsilon=4.0, runs=250):
    """Scores of the steps and of the rates, of shape (2 worlds, runs) each; and the estimator of the last fit."""
    share = WAYS[way].get("budget_share", 0.0)
    # With noise of its own a fit has no second look and no table of answers: all of ε is in what the attacker watches.
    multiplier = (1 + 1e-9) * math.sqrt(3 / (1 - share)) / gdp_mu(epsilon, DELTA)
    model = dpsgd(
        epsilon=epsilon, delta=DELTA, hidden=(3,), max_epochs=3, batch_size=N, public_n_rows=N, classes=[0, 1],
        max_grad_norm=C, lr=1e-3, random_state=0, noise_multiplier=multiplier, **WAYS[way],
    )  # fmt: skip
    scores = np.zeros((2, 2, runs))
    for run in range(2 * runs):
        included, rest = run % 2, slice(N - 1 + run % 2)
        given = {"sensitive_features": GROUPS[rest]} if way == "signed loss" else {"X_public": PUBLIC}
        with monkeypatch.context() as patch:
            attacker = WhiteBox(patch)
            model.set_params(noise_seed=run).fit(X[rest], Y[rest], **given)
        scores[:, included, run // 2] = attacker.steps, attacker.rates
    return *scores, model


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_all_releases_of_a_fit_give_away_most_of_the_certified_epsilon_and_no_more(way, monkeypatch):
    steps, rates, model = white_box_scores(way, monkeypatch)
    certified = model.privacy_.mechanism_epsilon
    assert model.n_steps_ == 3 and 3.99 < certified <= 4.0
    result = audit_matched_filter(*(steps + rates), confidence=0.99)
    assert 0.6 * certified <= result.epsilon_lower(DELTA) <= certified
    # what the filter sees is what is accounted: not much less noise, and not much more
    assert result.mu_lower <= gdp_mu(certified, DELTA) <= result.mu_upper
    if way == "signed loss":
        share = WAYS[way]["budget_share"]
        for scores, part in ((steps, 1 - share), (rates, share)):
            alone = audit_matched_filter(*scores, confidence=0.99)
            assert alone.mu_lower <= gdp_mu(certified, DELTA) * math.sqrt(part) <= alone.mu_upper
    else:
        assert not rates.any()


# ---- one fit, many canaries ------------------------------------------------------------------------------------
def one_run(n_canaries, *, epsilon, seed, **settings):
    """Each canary has a feature of its own, so that one weight of the published network is all about it."""
    rng = np.random.default_rng(seed)
    included, labels = rng.random(n_canaries) < 0.5, rng.integers(0, 2, size=n_canaries)
    canaries = np.zeros((n_canaries, n_canaries + 2))
    canaries[np.arange(n_canaries), np.arange(n_canaries)] = 1000.0
    others = np.zeros((50, n_canaries + 2))
    others[:, n_canaries:] = rng.normal(size=(50, 2))
    model = dpsgd(
        epsilon=epsilon, delta=DELTA, hidden=(), public_n_rows=n_canaries // 2, classes=[0, 1], lr=1e-5,
        optimizer__average_last=0.0, noise_seed=seed, random_state=0, **settings,
    )  # fmt: skip
    public = PublicData(others, np.arange(50) % 2)
    model.fit(np.vstack([others, canaries[included]]), np.append(np.arange(50) % 2, labels[included]), X_public=public)
    weight = model.net_.module_[0].weight.detach().numpy()[:, :n_canaries]
    scores = np.where(labels == 1, 1, -1) * (weight[1] - weight[0])
    return audit_one_run(scores, included, delta=DELTA), model


@pytest.fixture
def kept(monkeypatch):
    """The network is kept, though it is of no use."""
    monkeypatch.setattr(Comparison, "may_stay", True)


@pytest.mark.few(1)
@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize(
    "settings",
    [
        {"lam": 0.0, "batch_size": 400, "max_epochs": 1},
        {"lam": 1.0, "batch_size": 400, "max_epochs": 3},
        {"lam": 1.0, "batch_size": 400, "max_epochs": 3, "apply_to": "per_sample"},
        {"lam": 0.0, "batch_size": 200, "max_epochs": 3},
    ],
    ids=["one step", "aggregate", "per sample", "Poisson batches"],
)
def test_one_fit_with_many_canaries_shows_some_of_the_certified_epsilon_and_no_more(settings):
    result, model = one_run(800, epsilon=8.0, seed=1, **settings)
    certified = model.privacy_.mechanism_epsilon
    assert 7.9 < certified <= 8.0
    assert 0.1 * certified <= result.epsilon_lower <= certified


@pytest.mark.usefixtures("kept")
def test_one_fit_refutes_noise_that_is_too_small(monkeypatch):
    noisy = GaussianMechanism.noisy

    def nearly_quiet(self, source, values, **options):
        return noisy(dataclasses.replace(self, sigma=self.sigma / 5), source, values, **options)

    monkeypatch.setattr(GaussianMechanism, "noisy", nearly_quiet)
    result, model = one_run(800, epsilon=2.0, seed=1, lam=0.0, batch_size=400, max_epochs=1)
    assert result.refutes(model.privacy_.mechanism_epsilon)
