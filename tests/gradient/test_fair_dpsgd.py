"""FairDPSGDClassifier: what each step releases, what is charged for it, and what is left behind."""

import copy
import math
import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold
from torch import nn

from skfairdp import FairDPSGDClassifier, PrivacyLedger, PublicData
from skfairdp.exceptions import BudgetExceededError, PrivacyLeakWarning
from skfairdp.privacy import GaussianMechanism, NeighboringRelation, NoiseSource, PoissonSampledDpEvent, epsilon_of
from tests._tools.formulas import noise_scale_interval, plain_formula
from tests._tools.inside import (
    DPStep,
    MajorityBaselineTest,
    ParityPenalty,
    Places,
    Temperature,
    check_network,
    clipped_gradient_sum,
    vectorizes,
)
from tests._tools.networks import clipping, dpsgd
from tests._tools.problems import make_rows
from tests._tools.sources import ChosenNoise, installed, recording_noise
from tests.test_pickles import arrays_in, dumps, forms_of

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*draws its noise from 'noise_seed'"),
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.UtilityWarning"),  # a handful of rows carries nothing
]

N, C = 16, 0.7
QUICK = {
    "classes": [0, 1],
    "hidden": (5,),
    "max_epochs": 1.0,
    "batch_size": 4,
    "max_grad_norm": C,
    "random_state": 0,
    "noise_multiplier": 1.0,
    "epsilon": 100.0,
    "temperature": 0.3,
    "lr": 1.0,
}


def world(n=N, n_groups=2):
    X, y, groups = make_rows(n + 40, n_groups=n_groups, seed=1)
    return X[:n], y[:n], PublicData(X[n:], groups[n:])


# ---- watching a training ---------------------------------------------------------------------------------------
class FixedSource(ChosenNoise):
    """No noise, and for every step a membership that belongs to the record, not to its position.

    ``present`` says which records there are. Their places in a table of declared size pair the randomness of
    neighbours.
    """

    def __init__(self, members, seed=0, present=None):
        super().__init__()
        self.members, self.t, self.shapes, self._seed = members, 0, [], seed
        if members is not None:
            self.places = np.flatnonzero(np.ones(members.shape[1]) if present is None else present)

    def placed(self, n_rows, declared):
        assert n_rows == len(self.places)
        return Places(Places.room(declared), torch.from_numpy(self.places))

    def seed(self):
        return self._seed

    def bernoulli(self, probability, size):
        members = self.members[self.t]
        self.t += 1
        if len(self.places) == size:
            return members[self.places]
        table = np.arange(size) % 3 == 0  # null records are drawn like any other
        table[: len(members)] = members
        return table

    def normal(self, size=1):
        self.shapes.append(size)
        return np.zeros(size)


class Trace:
    """The gradients that a fit applied, step by step, and the parameters they were taken at."""

    def __init__(self):
        self.gradients, self.parameters = [], []


def trace_of(model, X, y, public, source=None, follow=None):
    """Fit and record every applied gradient; with ``follow`` the parameters are put where that run had them."""
    trace = Trace()

    class Watched(torch.optim.SGD):
        def step(self):
            group = [p for g in self.param_groups for p in g["params"]]
            t = len(trace.gradients)
            trace.gradients.append(torch.cat([p.grad.flatten() for p in group]).double())
            super().step()
            if follow is not None:
                with torch.no_grad():
                    for p, value in zip(group, follow.parameters[t], strict=True):
                        p.copy_(value)
            trace.parameters.append([p.detach().clone() for p in group])

    model.set_params(net__optimizer=Watched)
    if source is None:
        model.fit(X, y, X_public=public)
    else:
        with pytest.MonkeyPatch.context() as patch, installed(source):
            patch.setattr(Places, "secret", source.placed)
            model.fit(X, y, X_public=public)
    return trace


def token_net():
    class Tokens(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.norm, self.head = nn.Embedding(9, 3), nn.LayerNorm(3), nn.Linear(3, 2)

        def forward(self, x):
            return self.head(self.norm(self.embed(x.abs().clamp(0, 8).long())).mean(1))

    torch.manual_seed(5)
    return Tokens()


CASES = {
    "aggregate": {"lam": 2.0},
    "per sample": {"lam": 2.0, "apply_to": "per_sample"},
    "no fairness": {"lam": 0.0},
    "not fused": {"lam": 1.0, "module": lambda: nn.Sequential(nn.Linear(4, 4), nn.PReLU(), nn.Linear(4, 2))},
    "public batches": {"lam": 2.0, "public_batch_size": 10},
    "hard maximum": {"lam": 2.0, "max_type": "hard"},
    "full batch": {"lam": 1.0, "batch_size": 100, "max_epochs": 2},
    "embedding": {"lam": 1.0, "module": token_net},
}


@pytest.mark.few(4)
@pytest.mark.parametrize("name", CASES)
def test_no_step_moves_further_than_the_clipping_bound_when_any_record_is_removed(name):
    """With the noise gone and every record keeping its own batches, at the parameters that the run on all rows had."""
    settings = {**QUICK, "public_n_rows": N, **CASES[name]}
    if callable(settings.get("module")):
        settings["module"] = settings["module"]()
    X, y, public = world()
    model = dpsgd(**settings)
    steps = math.ceil(settings["max_epochs"] / min(1.0, settings["batch_size"] / N))
    members = np.random.default_rng(3).random((steps, N)) < 0.2  # also batches below the expected size
    if name == "full batch":
        members[:] = True
    here = FixedSource(members)
    whole = trace_of(model, X, y, public, here)
    assert len(whole.gradients) == model.n_steps_ == steps
    divisor = min(settings["batch_size"], N)
    largest = 0.0
    for i in range(N):
        rest = np.arange(N) != i
        there = FixedSource(members, present=rest)
        other = dpsgd(**settings)
        part = trace_of(other, X[rest], y[rest], public, there, follow=whole)
        assert other.privacy_ == model.privacy_ and other.noise_multiplier_ == model.noise_multiplier_
        assert there.shapes == here.shapes
        for t in range(steps):
            moved = float((whole.gradients[t] - part.gradients[t]).norm()) * divisor
            # what is applied is rounded to single precision, and may hold a public part
            assert moved <= C * (1 + 1e-6), f"removing one record moved a release by {moved:.4f}, declared is {C}"
            assert members[t, i] or moved == 0
            largest = max(largest, moved)
    assert largest > 0.9 * C  # the records tried reach the bound, so a wrong one would have shown


def test_the_noise_of_a_fit_has_the_accounted_scale():
    X, y, _ = world(200)
    model = dpsgd(
        **{
            **QUICK,
            "lam": 0.0,
            "noise_multiplier": 1.3,
            "hidden": (20,),
            "batch_size": 20,
            "max_epochs": 10,
            "noise_seed": 4,
        }
    )
    with recording_noise() as record:
        trace = trace_of(model, X, y, None)
    sums = [torch.from_numpy(release.value.ravel()) for release in record.of(GaussianMechanism)]
    noise = torch.stack([g * 20 - total for g, total in zip(trace.gradients, sums, strict=True)])
    assert noise.numel() >= 10_000
    low, high = noise_scale_interval(noise.numpy(), confidence=1 - 1e-6)
    (accounted,) = {model.privacy_.event.event.event.noise_multiplier * C}
    assert low <= accounted <= high
    assert not low <= accounted * 2 / 3 <= high and not low <= accounted * 3 / 2 <= high
    # fresh for every step and every parameter
    assert noise.unique().numel() > 0.99 * noise.numel()
    assert abs(float((noise[1:] * noise[:-1]).mean()) / accounted**2) < 6 / math.sqrt(noise.numel())


def test_every_row_is_drawn_with_the_accounted_probability_whatever_its_label(monkeypatch):
    batches = []
    sample = DPStep.sample

    def noting(self, n_rows, source):
        batches.append(sample(self, n_rows, source))
        return batches[-1]

    monkeypatch.setattr(DPStep, "sample", noting)
    X, y, _ = world(50)
    model = dpsgd(**{**QUICK, "lam": 0.0, "hidden": (), "batch_size": 5, "max_epochs": 30, "noise_seed": 2})
    model.fit(X, y)
    sampled = model.privacy_.event.event
    assert isinstance(sampled, PoissonSampledDpEvent) and len(batches) == model.n_steps_ == 300
    q = sampled.sampling_probability
    assert q == 0.1
    drawn = np.bincount(np.concatenate(batches), minlength=50)
    standard = (drawn - 300 * q) / math.sqrt(300 * q * (1 - q))
    assert abs(standard).max() < 4.5
    assert abs(standard.sum()) / math.sqrt(50) < 4.5
    sizes = np.array([len(batch) for batch in batches])
    assert sizes.var() == pytest.approx(50 * q * (1 - q), rel=0.3)  # sizes vary: no fixed-size batches
    assert all(len(set(batch.tolist())) == len(batch) for batch in batches)


def test_empty_batches_are_steps_of_pure_noise_and_count():
    X, y, public = world()
    members = np.zeros((16, N), dtype=bool)
    members[::3, 0] = True
    for at in ("batch", "per_sample"):
        source = FixedSource(members)
        model = dpsgd(**{**QUICK, "batch_size": 1, "lam": 0.5, "apply_to": at})
        trace = trace_of(model, X, y, public, source)
        assert len(trace.gradients) == model.n_steps_ == 16 == model.privacy_.event.count
        n_parameters = sum(p.numel() for p in model.net_.module_.parameters())
        assert source.shapes == [(n_parameters,)] * 16  # noise for every step and parameter, batch empty or not
    plain = trace_of(dpsgd(**{**QUICK, "batch_size": 1, "lam": 0.0}), X, y, None, FixedSource(members))
    assert not plain.gradients[1].any() and plain.gradients[0].any()


@pytest.mark.parametrize("n_rows", [None, 2 * N])
def test_the_sum_is_divided_by_the_expected_batch_size(n_rows):
    """The divisor is q times the public number of rows for every batch: its true size, a secret, plays no part.

    A released mean times that divisor is the sum of clipped gradients, for batches of no row, one, five and all.
    """
    X, y, _ = world()
    settings = {**QUICK, "lam": 0.0, "public_n_rows": n_rows}
    members = np.zeros((4 if n_rows is None else 8, N), dtype=bool)
    members[1, 3] = members[2, :5] = members[3] = True
    source = FixedSource(members)
    trace = trace_of(dpsgd(**settings), X, y, None, source)
    sums = [torch.from_numpy(release.value.ravel()) for release in source.record.of(GaussianMechanism)]
    assert len(sums) == len(trace.gradients) == len(members)
    for total, mean in zip(sums, trace.gradients, strict=True):
        torch.testing.assert_close(mean * 4.0, total, rtol=1e-6, atol=1e-8)  # 4 is q n, of 16 rows and of 32
    assert not sums[0].any() and float(sums[1].norm()) <= C < float(sums[3].norm())


def test_one_row_more_leaves_all_but_its_own_contribution_bit_for_bit_as_it_is():
    """Also in a network whose rounding depends on the shape of a batch, and with dropout."""
    X, y, public = world()
    module = nn.Sequential(nn.Linear(4, 53), nn.Dropout(0.3), nn.GELU(), nn.Linear(53, 2))
    members = np.random.default_rng(3).random((4, N)) < 0.6
    for i in (0, 7, N - 1):
        members[:, i] = [True, False, True, False]
        rest = np.arange(N) != i
        given = {**QUICK, "public_n_rows": N, "module": module}
        whole = trace_of(dpsgd(**given), X, y, public, FixedSource(members))
        part = trace_of(dpsgd(**given), X[rest], y[rest], public, FixedSource(members, present=rest), follow=whole)
        for t in range(4):
            assert torch.equal(whole.gradients[t], part.gradients[t]) != members[t, i]


def test_a_record_whose_gradient_is_no_number_is_a_null_record():
    """What neighbours that replace a record by nothing differ in: the others keep what they give, and n is the same."""
    X, y, public = world()
    X = X.copy()
    members = np.random.default_rng(3).random((4, N)) < 0.6
    X[5] = 1e300
    null = trace_of(dpsgd(**QUICK), X, y, public, FixedSource(members))
    without = members.copy()
    without[:, 5] = False
    absent = trace_of(dpsgd(**QUICK), X, y, public, FixedSource(without), follow=null)
    for a, b in zip(null.gradients, absent.gradients, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-7)  # batches of other shapes: the module rounds otherwise


@pytest.mark.few(1)
@pytest.mark.parametrize("method", ["FairDPSGDClassifier", "FairClippingClassifier"])
def test_nothing_but_the_number_that_is_declared_follows_from_how_many_rows_there_are(method, capsys):
    """Plan, report, ledger entry, number of draws and prints, for 5 rows, 30 and 41 under a declared 40."""
    seen = []
    for n in (5, 30, 41):
        X, y, _ = world(n)
        ledger = PrivacyLedger()
        given = {
            "classes": [0, 1],
            "max_epochs": 2,
            "batch_size": 8,
            "hidden": (3,),
            "public_n_rows": 40,
            "random_state": 0,
            "verbose": 1,
            "ledger": ledger,
        }
        model = {"FairDPSGDClassifier": dpsgd, "FairClippingClassifier": clipping}[method](**given)
        if method == "FairDPSGDClassifier":
            model.set_params(lam=0.0).fit(X, y)
        else:
            model.set_params(groups=[0, 1]).fit(X, y, sensitive_features=np.arange(n) % 2)
        out = capsys.readouterr()
        bars = [line for line in (out.out + out.err).replace("\r", "\n").splitlines() if "100%" in line]
        public = {
            name: value
            for name, value in vars(model).items()
            if name.endswith("_") and name not in ("net_", "group_weights_")
        }
        seen.append(
            (
                repr(public),
                repr(ledger.entries[0].event),
                ledger.entries[0].releases,
                [line.split("[")[0] for line in bars],
            )
        )
    assert seen[0] == seen[1] == seen[2]


@pytest.mark.parametrize("canary", [False, True])
def test_the_weights_of_a_step_are_those_of_multiples_of_the_public_grid_in_either_world(canary):
    """In double precision nothing is rounded away, so a weight shows the noisy sum to its last bit.

    Without rounding of the sum, weights lay on the lattice of the noise if and only if nobody had moved that weight.
    """
    rng = np.random.default_rng(0)
    X = np.zeros((64, 6))
    X[:, 0] = rng.normal(size=64)
    y = (X[:, 0] > 0).astype(int)  # so that the network is kept
    if canary:
        X[-1] = np.r_[0, rng.normal(size=5)]
    net = nn.Linear(6, 2, bias=False).double()
    nn.init.zeros_(net.weight)
    model = dpsgd(
        epsilon=8.0,
        lam=0,
        module=net,
        max_epochs=1,
        batch_size=64,
        classes=[0, 1],
        optimizer__average_last=0.0,
        lr=1.0,
        max_grad_norm=1.0,
    ).fit(X, y)
    assert model.n_steps_ == 1 and model.net_.module_.weight.dtype == torch.float64
    grid = GaussianMechanism(model.noise_multiplier_).grid
    weights_found = model.net_.module_.weight.detach().numpy().ravel()
    multiples = np.rint(weights_found * -64 / grid)
    assert grid < model.noise_multiplier_ / 500 and len(set(multiples)) == 12
    np.testing.assert_array_equal(weights_found, -(multiples * grid / 64))


def test_a_place_is_as_likely_as_any_other_and_rows_keep_theirs_when_one_goes():
    counts = np.zeros(Places.room(4))
    for _ in range(400):
        places = Places.secret(3, 4)
        assert places.size == Places.room(4) == 16 and len(set(places.of_rows.tolist())) == 3
        counts[places.of_rows] += 1
    assert counts.min() > 40  # 75 expected
    assert Places.secret(17, 4).size == 32 and Places.secret(0, 4).size == 16


# ---- fairness term ---------------------------------------------------------------------------------------------
def weights(model):
    return [p.detach().numpy() for p in model.net_.module_.parameters()]


def test_lam_zero_is_plain_dpsgd_bit_for_bit(monkeypatch):
    X, y, public = world()
    given = {**QUICK, "max_epochs": 5, "noise_seed": 7}
    plain = weights(dpsgd(**given, lam=0.0).fit(X, y))

    def never(*args, **kwargs):
        raise AssertionError("the penalty was entered")

    fair = weights(dpsgd(**given, lam=1.0).fit(X, y, X_public=public))
    monkeypatch.setattr(ParityPenalty, "gradients", never)
    monkeypatch.setattr(ParityPenalty, "__init__", never)
    for at in ("batch", "per_sample"):
        for X_public in (None, public):
            model = dpsgd(**given, lam=0.0, apply_to=at)
            for a, b in zip(plain, weights(model.fit(X, y, X_public=X_public)), strict=True):
                np.testing.assert_array_equal(a, b)
    assert any((a != b).any() for a, b in zip(plain, fair, strict=True))


def test_the_fairness_gradient_is_added_whole_beside_the_private_one():
    """λ times the gradient at the present parameters: not clipped, averaged with nothing, no noise drawn for it."""
    X, y, public = world()
    members = np.random.default_rng(3).random((4, N)) < 0.4
    lam = 1e4  # far beyond any clipping bound
    plain_source, fair_source = FixedSource(members), FixedSource(members)
    plain = trace_of(dpsgd(**{**QUICK, "lr": 4.0, "lam": 0.0}), X, y, None, plain_source)
    model = dpsgd(**{**QUICK, "lr": 4.0, "lam": lam, "max_type": "soft"})
    fair = trace_of(model, X, y, public, fair_source, follow=plain)
    assert fair_source.shapes == plain_source.shapes
    net = copy.deepcopy(model.net_.module_).train()
    z = torch.from_numpy(public.sensitive_features)
    rows = torch.tensor(public.X, dtype=torch.float32)
    for t in range(1, 4):
        with torch.no_grad():
            for p, value in zip(net.parameters(), plain.parameters[t - 1], strict=True):
                p.copy_(value)
        term = lam * plain_formula(net(rows), z, 2, 0.3, "soft")
        gradient = torch.cat([g.flatten() for g in torch.autograd.grad(term, list(net.parameters()))])
        assert float(gradient.norm()) > 100 * C
        torch.testing.assert_close(
            (fair.gradients[t] - plain.gradients[t]).float(), gradient, rtol=1e-3, atol=1e-3 * float(gradient.norm())
        )


@pytest.mark.slow
def test_fairness_term_lowers_the_gap():
    X, y, groups = make_rows(2500, seed=2)
    X[:, 0] += 0.8 * groups
    public = PublicData(X[2000:], groups[2000:])

    def gap(lam):
        model = dpsgd(epsilon=8.0, lam=lam, classes=[0, 1], max_epochs=8, batch_size=200, random_state=0, noise_seed=1)
        predicted = model.fit(X[:2000], y[:2000], X_public=public).predict(public.X)
        return abs(predicted[groups[2000:] == 1].mean() - predicted[groups[2000:] == 0].mean())

    assert gap(5.0) < 0.4 * gap(0.0)


# ---- guarantee, ledger, what is left ---------------------------------------------------------------------------
def test_the_report_follows_from_the_declared_steps():
    X, y, public = world(200)
    model = dpsgd(epsilon=2.0, classes=[0, 1], max_epochs=5, batch_size=20, hidden=(3,)).fit(X, y, X_public=public)
    spent = model.privacy_
    assert 0.99 * 2.0 <= spent.epsilon <= 2.0 and spent.epsilon == epsilon_of(spent.event, 1e-5)
    assert (spent.protects, spent.neighboring_relation) == ("record", NeighboringRelation.ZERO_OUT)
    steps, beside = spent.event.events
    assert steps.count == model.n_steps_ == 50 and steps.event.sampling_probability == 0.1
    table = Temperature(2.0, 1e-5, NeighboringRelation.ZERO_OUT)
    look = MajorityBaselineTest(200, 4, 2.0, 1e-5, NeighboringRelation.ZERO_OUT)
    assert list(beside.events) == [table.event, look.event]
    assert spent.accountant == "pld" and not spent.data_dependent
    assert "number of private rows" in {fact.name for fact in spent.public}
    declared = dpsgd(epsilon=2.0, classes=[0, 1], max_epochs=5, batch_size=20, hidden=(3,), public_n_rows=200)
    assert declared.fit(X[:190], y[:190], X_public=public).privacy_.event == spent.event
    assert "number of private rows" not in {fact.name for fact in declared.privacy_.public}
    assert declared.privacy_.neighboring_relation == NeighboringRelation.ADD_OR_REMOVE_ONE


@pytest.mark.parametrize(("q", "steps", "epsilon"), [(0.01, 1000, 1.0), (0.05, 400, 8.0), (1.0, 20, 4.0)])
def test_calibrated_steps_cost_at_most_the_target(q, steps, epsilon):
    step = DPStep.calibrated(
        epsilon=epsilon, delta=1e-5, n_rows=1000, batch_size=int(1000 * q), epochs=q * steps, max_grad_norm=1.0
    )
    assert step.steps == steps
    assert 0.997 * epsilon <= epsilon_of(step.event, 1e-5) <= epsilon


def test_an_interrupted_fit_stays_in_the_ledger(monkeypatch):
    release, done = DPStep.release, []

    def interrupted(self, *args, **kwargs):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(1)
        return release(self, *args, **kwargs)

    monkeypatch.setattr(DPStep, "release", interrupted)
    ledger = PrivacyLedger()
    X, y, public = world()
    model = dpsgd(**QUICK, ledger=ledger)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y, X_public=public)
    (entry,) = ledger.entries
    assert entry.event.count == 4 and not hasattr(model, "net_") and not hasattr(model, "privacy_")


def test_a_ledger_without_budget_refuses_before_any_step(monkeypatch):
    monkeypatch.setattr(DPStep, "release", None)
    X, y, public = world()
    with pytest.raises(BudgetExceededError):
        dpsgd(**QUICK, ledger=PrivacyLedger(epsilon=0.1)).fit(X, y, X_public=public)


class NotAModule:
    def parameters(self):
        return iter(())

    def forward(self, x):
        return x


class MixesRows(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        return self.head(x - x.mean(0))


class MixesRowsInTraining(MixesRows):
    def forward(self, x):
        return self.head(x - x.mean(0) if self.training else x)


class Counts(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(4, 2)
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x):
        self.seen += len(x)
        return self.head(x)


class ChangesWeights(Counts):
    def forward(self, x):
        with torch.no_grad():
            self.head.weight += 1e-3
        return self.head(x)


def frozen():
    return nn.Linear(4, 2).requires_grad_(False)


X_, y_, PUBLIC = world()
REFUSED = {
    "batch norm": ({"module": nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 2))}, PUBLIC, "use GroupNorm"),
    "too wide": ({"module": nn.Linear(4, 3)}, PUBLIC, r"one logit for each of the 2 classes"),
    "too few features": ({"module": nn.Linear(3, 2)}, PUBLIC, r"rows of shape \(n_rows, 4\)"),
    "no module": (
        {"module": NotAModule()},
        PUBLIC,
        "must be 'auto', 'mlp', 'additive', 'cnn', 'resnet', a torch.nn.Module",
    ),
    "nothing to train": ({"module": frozen()}, PUBLIC, "no trainable parameter"),
    "mixes rows": ({"module": MixesRows()}, PUBLIC, "depends on the other rows"),
    "mixes rows in training": ({"module": MixesRowsInTraining()}, PUBLIC, "depends on the other rows"),
    "keeps statistics": ({"module": Counts()}, PUBLIC, "buffer 'seen'"),
    "changes weights": ({"module": ChangesWeights()}, PUBLIC, "changes its own parameters"),
    "renormalised table": ({"module": nn.Sequential(nn.Embedding(9, 2, max_norm=1.0))}, PUBLIC, "max_norm=None"),
    "epochs too many": ({"noise_multiplier": 1.0, "epsilon": 0.5, "max_epochs": 50}, PUBLIC, "lower 'net__max_epochs'"),
    "lam negative": ({"lam": -1.0}, PUBLIC, "'lam' parameter"),
    "lam nan": ({"lam": float("nan")}, PUBLIC, "'lam' parameter"),
    "epochs zero": ({"max_epochs": 0}, PUBLIC, "'net__max_epochs' parameter"),
    "no image shape": ({"module": "cnn", "image_shape": (1, 3)}, PUBLIC, "three positive integers"),
    "another image shape": ({"module": "cnn", "image_shape": (3, 2, 2)}, PUBLIC, "12 features, but X has 4"),
    "a flat image": ({"module": "cnn", "image_shape": (2, 2)}, PUBLIC, "'image_shape'"),
    "another network": ({"module": "rnn"}, PUBLIC, "'net' parameter"),
    "no layer": ({"hidden": (0,)}, PUBLIC, "'hidden' must list"),
    "a bound that is no float when squared": ({"max_grad_norm": 1e-200}, PUBLIC, "between 1e-100 and 1e100"),
    "no device": ({"device": "abacus"}, PUBLIC, "'device' parameter"),
    "group without public rows": ({"groups": [0, 1, 2]}, PUBLIC, "have no public row"),
    "one group": ({}, PublicData(PUBLIC.X, np.zeros(40, int)), "only one group"),
    "no public groups": ({}, PUBLIC.X, "needs the groups of the public rows"),
    "no public rows": ({"parity": "public_penalty"}, None, "needs public rows"),
    "no public rows, no groups": ({}, None, "needs public rows"),
    "seeded and counted": ({"noise_seed": 0}, PUBLIC, "'noise_seed' and 'ledger'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_is_an_error_before_anything_is_spent(name, monkeypatch):
    settings, public, message = REFUSED[name]
    monkeypatch.setattr(DPStep, "release", None)
    ledger = PrivacyLedger()
    model = dpsgd(**{**QUICK, "ledger": ledger, **settings})
    with pytest.raises(ValueError, match=message):
        model.fit(X_, y_, X_public=public)
    assert ledger.entries == () and not hasattr(model, "net_")


def test_a_fitted_model_holds_nothing_of_private_rows():
    X, y, public = world(60)
    canaries = (98765.4321, -31415.92653)
    X[[3, 20], [0, 2]] = canaries

    class Remembers(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = nn.Linear(4, 2)

        def forward(self, x):
            if self.training:
                self.last = x.detach().clone()
            return self.head(x)

    for module in ("mlp", Remembers()):
        model = dpsgd(**{**QUICK, "max_epochs": 4, "module": module, "lr": 0.01}).fit(X, y, X_public=public)
        state = {name for name in vars(model) if not name.startswith("_")} - set(model.get_params(deep=False))
        public_or_released = {
            "net_taken_",
            "parity_taken_",
            "noise_multiplier_",
            "n_steps_",
            "n_features_in_",
            "gap_",
            "gap_bound_",
            "constraint_holds_",
        }
        assert state == {"net_", "classes_", "groups_", "privacy_", *public_or_released}
        private = {row.tobytes() for row in [*X, *X.astype(np.float32)]}
        for array in arrays_in(model):
            assert array.ndim == 0 or len(array) != len(X)
            assert array.ndim != 2 or not any(row.tobytes() in private for row in array)
        assert all(p.grad is None for p in model.net_.module_.parameters())
        if module == "mlp":
            for stored in dumps(model):
                for canary in canaries:
                    assert not any(form in stored for form in forms_of(canary))
            again = pickle.loads(pickle.dumps(model))
            np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
            assert again.privacy_ == model.privacy_
        else:
            assert not hasattr(model.net_.module_, "last")


def test_clone_and_the_given_module_are_left_alone():
    X, y, public = world()
    module = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2))
    module[0].weight.grad = torch.ones(6, 4)
    before = copy.deepcopy(module.state_dict())
    model = dpsgd(**QUICK, module=module).fit(X, y, X_public=public)
    assert model.net.module is module and model.net_.module_ is not module
    for key, value in module.state_dict().items():
        assert torch.equal(value, before[key])
    assert module.training and torch.equal(module[0].weight.grad, torch.ones(6, 4))
    assert any(not torch.equal(value, before[key]) for key, value in model.net_.module_.state_dict().items())
    copied = clone(model)
    assert not hasattr(copied, "net_") and copied.get_params().keys() == model.get_params().keys()
    copied.fit(X, y, X_public=public)


def test_dropout_is_secret_and_the_global_generator_is_untouched():
    """Masks go by position in the batch; drawn from a public seed they would part neighbours by more than C."""
    X, y, public = world()
    members = np.random.default_rng(3).random((4, N)) < 0.5
    module = nn.Sequential(nn.Linear(4, 20), nn.Dropout(0.5), nn.Linear(20, 2))

    def fit(source_seed, torch_seed):
        torch.manual_seed(torch_seed)
        state = torch.get_rng_state()
        trace = trace_of(dpsgd(**QUICK, module=module), X, y, public, FixedSource(members, source_seed))
        assert torch.equal(torch.get_rng_state(), state)
        return trace.gradients[0]

    assert torch.equal(fit(1, 0), fit(1, 99))
    assert not torch.equal(fit(1, 0), fit(2, 0))
    seeds = {NoiseSource().seed() for _ in range(20)}
    assert len(seeds) == 20


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_training_on_cuda_gives_the_same_network_up_to_rounding():
    X, y, public = world(200)
    here = dpsgd(**{**QUICK, "noise_seed": 3}).fit(X, y, X_public=public)
    there = dpsgd(**{**QUICK, "noise_seed": 3, "device": "cuda"}).fit(X, y, X_public=public)
    assert all(p.device.type == "cpu" for p in there.net_.module_.parameters())
    for a, b in zip(weights(here), weights(there), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_cuda_is_refused_where_there_is_none_before_anything_is_spent():
    X, y, public = world()
    ledger = PrivacyLedger()
    with pytest.raises(ValueError, match="no CUDA device"):
        dpsgd(**QUICK, device="cuda", ledger=ledger).fit(X, y, X_public=public)
    assert ledger.entries == ()


def test_many_groups_do_not_swing_apart_by_their_constraint():
    """All that one was compared with pushed it: the gap of twelve groups was .7, and .3 without a constraint."""
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 12, 36_000)
    X = np.column_stack([rng.normal(size=(36_000, 4)), np.eye(12)[groups] + 0.1 * rng.normal(size=(36_000, 12))])
    X[:, 0] += groups % 3
    y = (1.5 * X[:, 1] + X[:, 2] + 0.8 * (groups % 3 - 1) + rng.logistic(size=36_000) > 0).astype(int)
    how = {"epsilon": 4.0, "classes": [0, 1], "groups": range(12), "random_state": 0}
    model = FairDPSGDClassifier(gamma=0.05, **how)
    model.fit(X[:8000], y[:8000], sensitive_features=groups[:8000])
    answers = model.predict(X[8000:])
    assert np.ptp(np.bincount(groups[8000:], answers) / np.bincount(groups[8000:])) < 0.25
    assert (answers == y[8000:]).mean() > 0.72


def test_more_classes_groups_labels_and_public_rows():
    X, y, groups = make_rows(400, n_classes=3, n_groups=3, seed=4)
    names = np.array(["low", "middle", "top"])
    model = dpsgd(
        epsilon=8.0, classes=["top", "low", "middle"], max_epochs=10, batch_size=100, random_state=0, noise_seed=0
    )
    model.fit(X[100:], names[y[100:]], X_public=PublicData(X[:100], groups[:100]))
    assert list(model.classes_) == ["low", "middle", "top"] and list(model.groups_) == [0, 1, 2]
    assert model.score(X, names[y]) > 0.6
    assert model.predict_proba(X).shape == (400, 3)
    assert model.privacy_.event.events[0].event.sampling_probability == pytest.approx(1 / 3)


@pytest.mark.slow
def test_the_built_in_convolutional_network_learns_and_belongs_to_the_common_checks():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(600, 36)), rng.integers(0, 2, size=600)
    X.reshape(600, 6, 6)[y == 1, 1:4, 1:4] += 1.0
    model = dpsgd(
        epsilon=8.0,
        lam=0.0,
        module="cnn",
        image_shape=(1, 6, 6),
        classes=[0, 1],
        max_epochs=10,
        batch_size=60,
        random_state=0,
        noise_seed=0,
    )
    assert model.fit(X[:400], y[:400]).score(X[400:], y[400:]) > 0.8
    assert any(isinstance(layer, nn.Conv2d) for layer in model.net_.module_.modules())
    again = clone(model).fit(X[:400], y[:400])
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_classes_are_not_read_in_silence():
    X, y, public = world()
    with pytest.warns(PrivacyLeakWarning, match="'classes'"):
        dpsgd(**{**QUICK, "classes": None}).fit(X, y, X_public=public)


@pytest.mark.slow
def test_grid_search_over_lam():
    X, y, public = world(80)
    ledger = PrivacyLedger()
    search = GridSearchCV(dpsgd(**QUICK, ledger=ledger), {"lam": [0.0, 1.0]}, cv=KFold(2))
    search.fit(X, y, X_public=public)
    assert search.best_params_["lam"] in (0.0, 1.0) and len(ledger.entries) == 5


# ---- which path a module takes ---------------------------------------------------------------------------------
class Tied(nn.Module):
    """Uses the weight of a layer once inside and once outside of it."""

    def __init__(self):
        super().__init__()
        self.layer, self.head = nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, x):
        return self.head(torch.tanh(self.layer(x)) @ self.layer.weight)


class PositionsFirst(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.head = nn.Linear(1, 3), nn.Linear(3, 2)

    def forward(self, x):
        return self.head(torch.tanh(self.layer(x.T.unsqueeze(2))).mean(0))


@pytest.mark.parametrize(
    ("module", "fused"),
    [
        (nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.5), nn.Linear(3, 2)), True),
        (nn.Sequential(nn.Linear(4, 3), nn.ReLU(inplace=True), nn.Linear(3, 2)), True),
        (nn.Sequential(nn.Linear(4, 3), nn.PReLU(), nn.Linear(3, 2)), False),
        (nn.utils.parametrizations.weight_norm(nn.Linear(4, 2)), False),
        (Tied(), False),
        (PositionsFirst(), False),
    ],
    ids=["dropout", "in place", "prelu", "weight norm", "tied", "positions first"],
)
def test_the_fused_path_is_taken_only_where_it_gives_the_gradients(module, fused):
    state = torch.get_rng_state()
    before = copy.deepcopy(module.state_dict())
    assert check_network(module, 4, 2, owner="test") is fused
    assert torch.equal(torch.get_rng_state(), state)
    for key, value in module.state_dict().items():
        assert torch.equal(value, before[key])


class Recurrent(nn.Module):
    """Its kernel has no rule in torch.func (nor in Opacus' hooks)."""

    def __init__(self):
        super().__init__()
        self.cells, self.head = nn.GRU(2, 3, batch_first=True), nn.Linear(3, 2)

    def forward(self, x):
        return self.head(self.cells(x.reshape(len(x), 2, 2))[0][:, -1])


def test_modules_that_torch_cannot_batch_are_trained_row_by_row():
    torch.manual_seed(1)
    module = Recurrent()
    assert check_network(module, 4, 2, owner="test") is False and not vectorizes(module, 4)
    assert vectorizes(Tied(), 4)
    X, y, public = world()
    model = dpsgd(**{**QUICK, "max_epochs": 2, "module": module, "apply_to": "per_sample"})
    assert model.fit(X, y, X_public=public).n_steps_ == 8
    assert any(not torch.equal(a, b) for a, b in zip(model.net_.module_.parameters(), module.parameters(), strict=True))


@pytest.mark.parametrize("module", [Tied(), nn.Sequential(nn.Linear(4, 3), nn.PReLU(), nn.Linear(3, 2))])
def test_row_by_row_and_at_once_are_the_same_clipped_sum(module):
    X, y, _ = world()
    rows, targets = torch.tensor(X, dtype=torch.float32), torch.tensor(y)
    rows[2] = float("inf")
    loss = nn.CrossEntropyLoss(reduction="none")
    shared = {name: torch.full_like(p, 0.1) for name, p in module.named_parameters()}
    for extra in (None, shared):
        slow, fast = (
            clipped_gradient_sum(module, loss, rows, targets, 0.5, fused=False, vectorized=vectorized, shared=extra)
            for vectorized in (False, True)
        )
        assert slow.keys() == fast.keys()
        for name, value in fast.items():
            assert torch.isfinite(value).all()
            torch.testing.assert_close(slow[name], value)
