"""DP-SGD over subjects: what all rows of one add to each release, which of many rows count, and what follows whom."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from skfairdp import FairDPSGDClassifier, PrivacyLedger
from skfairdp.exceptions import PrivacyLeakWarning, UtilityWarning
from skfairdp.gradient import mlp
from skfairdp.privacy import NeighboringRelation, verify_file
from skfairdp.schema import Category, Number, Schema
from tests._tools.inside import Subjects, clipped_gradient_sum
from tests._tools.sources import FixedAnswers, installed, moves

N, K = 60, 3
GONE = NeighboringRelation.ZERO_OUT_SUBJECT
NETS = {
    "linear": lambda: nn.Sequential(nn.Linear(8, 6), nn.Tanh(), nn.LayerNorm(6), nn.Linear(6, 3)),
    "convolution": lambda: nn.Sequential(
        nn.Unflatten(1, (2, 4)), nn.Conv1d(2, 4, 2, groups=2), nn.Tanh(), nn.GroupNorm(2, 4), nn.Flatten(),
        nn.Linear(12, 3),
    ),
    "tokens": lambda: nn.Sequential(Tokens(), nn.Embedding(5, 4), nn.Flatten(), nn.Linear(32, 3)),
}  # fmt: skip


class Tokens(nn.Module):
    def forward(self, x):
        return x.abs().clamp(0, 4).long()


def cross_entropy(outputs, targets):
    return nn.functional.cross_entropy(outputs, targets, reduction="none")


def batch(name, n=40, seed=0):
    torch.manual_seed(seed)
    net = NETS[name]().double()
    X, y = 3 * torch.randn(n, K, 8, dtype=torch.float64), torch.randint(0, 3, (n, K))
    there = torch.rand(n, K).argsort(1) < torch.randint(0, K + 1, (n, 1))
    X[~there], y[~there] = 0.0, 0
    weights = there.double() / there.sum(1, keepdim=True).clamp_min(1)
    return net, X, y, weights


def one_by_one(net, X, y, weights, bound):
    """The sum of the clipped gradients of the mean losses, subject by subject."""
    total = 0.0
    for rows, labels, weight in zip(X, y, weights, strict=True):
        there = weight > 0
        if not there.any():
            continue
        loss = cross_entropy(net(rows[there]), labels[there]).mean()
        gradient = torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(net.parameters()))])
        total = total + gradient * min(1.0, bound / float(gradient.norm()))
    return total


def flat(sums, net):
    return torch.cat([sums[name].flatten() for name, _ in net.named_parameters()])


# ---- the gradient of a subject ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("how", [{}, {"fused": False}, {"fused": False, "vectorized": False}], ids=str)
@pytest.mark.parametrize("name", NETS)
def test_the_gradient_of_a_subject_is_that_of_its_mean_loss_clipped_once(name, how):
    if name == "tokens" and how:
        pytest.skip("no gradients of single rows where they are looked up")
    net, X, y, weights = batch(name)
    for bound in (0.3, 100.0):
        found = clipped_gradient_sum(net, cross_entropy, X, y, bound, weights=weights, present=weights.any(1), **how)
        assert torch.allclose(flat(found, net), one_by_one(net, X, y, weights, bound), rtol=3e-4, atol=1e-4 * bound)


@pytest.mark.parametrize("name", NETS)
def test_no_subject_moves_the_sum_by_more_than_the_bound_whatever_its_rows_are(name):
    net, X, y, weights = batch(name)
    rng, bound, farthest = np.random.default_rng(0), 0.7, 0.0
    for _ in range(700):
        one, n = int(rng.integers(len(X))), int(rng.integers(1, K + 1))
        sums = []
        for rows in (n, 0):  # any rows, and none
            X[one], y[one], weights[one] = 0.0, 0, 0.0
            X[one, :rows] = torch.from_numpy(rng.choice([1e6, -1e3, 0.0, 1.0, np.nan, -4.0], size=(rows, 8)))
            y[one, :rows] = torch.from_numpy(rng.integers(0, 3, rows))
            weights[one, :rows] = 1 / max(rows, 1)
            found = clipped_gradient_sum(net, cross_entropy, X, y, bound, weights=weights, present=weights.any(1))
            sums.append(flat(found, net))
        farthest = max(farthest, float((sums[0] - sums[1]).norm()))
    assert 0.9 * bound < farthest <= bound


# ---- which rows ------------------------------------------------------------------------------------------------------
def visits(seed=0, most=7):
    rng = np.random.default_rng(seed)
    ids = rng.permutation(np.r_[np.arange(N), np.repeat(np.arange(N), rng.integers(0, most, N))])
    X = pd.DataFrame(rng.normal(size=(len(ids), 3)), columns=list("abc"))
    return X, (X["a"] > 0).astype(int).to_numpy(), listed(ids), rng.integers(0, 2, len(ids))


def listed(ids):
    return pd.Series(pd.Categorical(ids, categories=np.arange(N)), name="patient_id")


def test_which_rows_of_a_subject_are_learned_from_follows_its_own_rows_alone():
    ids = visits()[2].to_numpy()

    def kept(ids):
        subjects = Subjects.read(None, listed(ids), len(ids), owner="a fit")
        places = subjects.rows_of_each(K, np.random.default_rng(1))
        assert places.shape == (N, K)
        # by the place of a row among the subject's own
        of = np.array([np.count_nonzero(ids[:i] == ids[i]) for i in range(len(ids))])
        found = {}
        for one, rows in zip(subjects.ids, places, strict=True):
            rows = rows[rows >= 0]
            assert (ids[rows] == int(one)).all() and len(set(rows)) == len(rows)
            assert len(rows) == min(K, np.count_nonzero(ids == int(one)))
            found[int(one)] = sorted(of[rows])
        return found

    here = kept(ids)
    assert any(max(rows, default=0) >= K for rows in here.values())  # not just the first
    other = np.r_[ids[ids != 7], [7] * 11]
    there = kept(other)
    assert {one for one in here if here[one] != there[one]} <= {7} and not kept(ids[ids != 7])[7]


# ---- whole fits ------------------------------------------------------------------------------------------------------
WAYS = {
    "plain": {"lam": 0.0},
    "signed loss": {"gamma": 0.1, "groups": [0, 1]},
    "schema": {"lam": 0.0, "schema": Schema({**{c: Number(-50, 50) for c in "abc"}, "y": Category([0, 1])}, label="y")},
}


def made(way, **more):
    classes = {} if way == "schema" else {"classes": [0, 1]}
    net = mlp((3,), max_epochs=2, batch_size=20)
    given = {"epsilon": 8.0, "net": net, "max_rows_per_subject": K, "random_state": 0, **classes, **WAYS[way], **more}
    return FairDPSGDClassifier(**given)


def fitted(way, world, model=None, **more):
    X, y, ids, groups = world
    table = (X.assign(y=y), None) if way == "schema" else (X, y)
    given = {"sensitive_features": groups} if way == "signed loss" else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few subjects
        return (model or made(way)).fit(*table, subject=ids, **given, **more)


def without(world, one):
    """The same subject without rows."""
    kept = (world[2] != one).to_numpy()
    return tuple(part[kept].reset_index(drop=True) if hasattr(part, "reset_index") else part[kept] for part in world)


class NoCoins(FixedAnswers):
    """Batches are of the same subjects in both worlds, and all releases as well."""

    def joined(self, probability, n_rows):
        return np.flatnonzero(np.random.default_rng(len(self.log)).random(n_rows) < probability)


@pytest.mark.parametrize("way", WAYS)
def test_no_release_moves_further_than_declared_where_a_subject_has_no_rows(way):
    world, found = visits(), []
    X, _, ids, _ = world
    for one in range(0, N, 6):
        X.loc[(ids == one).to_numpy()] *= [1e3, -1.0, 40.0]
        sources = []
        for there in (world, without(world, one)):
            with installed(NoCoins()) as source:
                model = fitted(way, there)
            sources.append(source)
        found.append(moves(*sources))
        assert model.privacy_.neighboring_relation is GONE
    assert max(map(max, found)) > 0.95


def test_plans_follow_the_number_of_subjects_and_never_that_of_rows():
    X, y, ids, _ = visits()
    model = FairDPSGDClassifier(lam=0.0, classes=[0, 1])
    plans = [
        model._plan(
            model._read(
                pd.concat([X] * k, ignore_index=True), np.tile(y, k), subject=pd.concat([ids] * k, ignore_index=True)
            )
        )
        for k in (1, 3)
    ]
    assert plans[0] == plans[1] and plans[0].step.declared_rows == N
    model = fitted("plain", visits())
    facts = {fact.name: fact.value for fact in model.privacy_.public}
    assert facts["number of subjects"] == N and "number of private rows" not in facts
    assert not re.search(rf"\b{len(X)}\b", model.privacy_statement().to_json())
    with pytest.warns(UtilityWarning, match=f"{N} subjects and epsilon=0.1 the relative noise"):
        FairDPSGDClassifier(epsilon=0.1, lam=0.0, classes=[0, 1], random_state=0).fit(X, y, subject=ids)


def test_the_unit_is_in_report_ledger_and_statement(tmp_path):
    ledger = PrivacyLedger(path=tmp_path / "ledger")
    model = fitted("plain", visits(), made("plain", ledger=ledger))
    assert (model.privacy_.protects, model.privacy_.rows_of) == ("subject", "patient_id")
    assert ledger.entries[0].rows_of == "patient_id" and "sums of subjects" in ledger.entries[0].releases[0]
    assert "all rows of one patient_id" in model.privacy_statement().summary
    (tmp_path / "statement.json").write_text(model.privacy_statement().to_json())
    for file in ("ledger", "statement.json"):
        assert all(check.holds for check in verify_file(tmp_path / file))
    planned = made("plain").planned_privacy(*visits()[:2], subject=visits()[2])
    assert (planned.epsilon, planned.rows_of) == (model.privacy_.epsilon, "patient_id")


def test_a_declared_number_of_rows_beside_subjects_is_refused_before_anything_is_spent():
    ledger = PrivacyLedger()
    with pytest.raises(ValueError, match=r"'subject' and a declared number of rows.*leave 'public_n_rows'"):
        fitted("plain", visits(), made("plain", public_n_rows=100, ledger=ledger))
    assert not ledger.entries


def test_by_its_name_the_column_is_no_feature_and_an_order_of_rows_is_none_of_the_outcome():
    X, y, ids, groups = visits(most=2)
    with pytest.warns(PrivacyLeakWarning, match="draws its noise"):
        here = made("plain", noise_seed=1).fit(X.assign(patient_id=ids), y, subject="patient_id")
    order = np.argsort(ids.to_numpy(), kind="stable")
    mixed = tuple(np.asarray(part)[order] for part in (X, y, ids, groups))
    there = fitted("plain", (pd.DataFrame(mixed[0], columns=X.columns), mixed[1], listed(mixed[2]), mixed[3]),
                   made("plain", noise_seed=1))  # fmt: skip
    assert here.feature_names_in_.tolist() == list("abc")
    assert np.array_equal(here.predict_proba(X.assign(patient_id=0)), there.predict_proba(X))
