"""Where noise drowns gradients a network is looked at again, at a price, and is no worse than the usual class."""

import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import example, given, settings, strategies as st
from scipy.stats import norm
from sklearn.metrics import roc_auc_score

from skfairdp import FairDPSGDClassifier, PrivacyLedger
from skfairdp._usefulness import CLEARLY, DOUBTFUL, EVIDENCE, LEAST, Comparison
from skfairdp.exceptions import UtilityWarning
from skfairdp.gradient import SignedLoss, mlp
from skfairdp.gradient._dpsgd import FOR_GAIN, GAIN_NOISE, MajorityBaselineTest
from skfairdp.papers import FairClippingClassifier
from skfairdp.privacy import GaussianMechanism, NeighboringRelation, compose, epsilon_of, gdp_mu
from skfairdp.schema import Category, Number, Schema
from tests._tools.inside import as_net, beside, constant_module, is_constant, module_of, one_answer, prepare_network
from tests._tools.layers import examples
from tests._tools.sources import ZeroNoise, recording_noise

QUICK = mlp((4,), max_epochs=3, batch_size=60)
HARD = {"epsilon": 0.5, "lam": 0.0, "net": QUICK, "random_state": 0}


def noise_table(n=120, n_features=12, rate=0.2, n_classes=2, seed=0):
    """Features that say nothing about the classes."""
    rng = np.random.default_rng(seed)
    rest = (1 - rate) / (n_classes - 1) * (1 + 0.2 * np.arange(n_classes - 1)) if n_classes > 2 else [1 - rate]
    shares = np.array([rate, *rest]) / (rate + sum(rest))
    return rng.normal(size=(n, n_features)), rng.choice(n_classes, size=n, p=shares)


def look(n_rows=120, n_features=12, epsilon=0.5, **options):
    return MajorityBaselineTest(n_rows, n_features, epsilon, 1e-5, NeighboringRelation.ZERO_OUT, **options)


class Linear(torch.nn.Module):
    """A fixed rule on the first feature."""

    def forward(self, X):
        return torch.stack([-X[:, 0], X[:, 0]], dim=1)


def values_of(X, y):
    with recording_noise(0, exact=True):
        source = ZeroNoise()
        look().release(Linear(), X, y, 2, source)
    return [np.asarray(release.value, dtype=float) for release in source.record.releases]


def test_one_record_moves_each_of_the_two_releases_by_at_most_one():
    X, y = noise_table(60)
    counts, ahead = values_of(X, y)
    moved = []
    for i in range(len(X)):
        less = np.arange(len(X)) != i
        fewer, behind = values_of(X[less], y[less])
        if counts.argmax() == fewer.argmax():  # the second release follows the first one, which is then given
            moved.append((np.linalg.norm(counts - fewer), np.abs(ahead - behind).max()))
    assert moved and np.max(moved) <= 1 and np.max(moved, axis=0).tolist() == [1, 1]
    assert look().counts.sensitivity == look().gain.sensitivity == 1


@pytest.mark.covering
@pytest.mark.parametrize("options", [{}, {"lam": 0.5, "parity": SignedLoss(dual_steps=4), "groups": [0, 1]}])
@pytest.mark.parametrize("epsilon", [0.2, 0.5])
def test_gradients_rates_and_second_look_together_cost_at_most_epsilon(options, epsilon):
    X, y = noise_table()
    given = {"sensitive_features": (X[:, 0] > 0).astype(int)} if options else {}
    model = FairDPSGDClassifier(**{**HARD, "classes": [0, 1], "epsilon": epsilon, **options})
    plan = model._plan(model._read(X, y, **given))
    assert plan.look is not None
    alone = [plan.step.event, plan.temperature.event, plan.look.counts.event, plan.look.gain.event]
    together = compose(*alone, *([] if plan.duals is None else [plan.duals.event, plan.judge.event]))
    assert 0.99 * epsilon <= epsilon_of(together, 1e-5) <= epsilon
    assert all(epsilon_of(event, 1e-5) < epsilon for event in alone)
    with recording_noise(entropy=0) as record, warnings.catch_warnings():
        warnings.simplefilter("ignore", UtilityWarning)
        model.fit(X, y, **given)
    judged = [] if plan.judge is None else [plan.judge.table]
    expected = [plan.temperature.counts, plan.look.counts, plan.look.gain, *judged]
    assert [r.mechanism for r in record.of(GaussianMechanism)][-len(expected) :] == expected
    assert model.privacy_.epsilon <= epsilon


@pytest.mark.few(1)
@pytest.mark.parametrize("method", ["reweight", "dpsgd_f", "global_adapt"])
def test_fair_clippings_are_looked_at_within_their_epsilon(method):
    """A baseline of differently clipped groups was 65 points below the most frequent class of an imbalanced table."""
    X, y = noise_table(150, 8, rate=0.07)
    groups = (X[:, 0] > 0).astype(int)
    model = FairClippingClassifier(method=method, epsilon=0.5, net=QUICK, classes=[0, 1], groups=[0, 1], random_state=0)
    plan = model._plan(model._read(X, y, sensitive_features=groups))
    sizes = [] if plan.sizes is None else [plan.sizes.event]
    together = compose(plan.step.event, *sizes, plan.look.counts.event, plan.look.gain.event)
    assert 0.99 * 0.5 <= epsilon_of(together, 1e-5) <= 0.5 and epsilon_of(plan.event, 1e-5) <= 0.5
    assert epsilon_of(compose(plan.step.event, *sizes), 1e-5) < 0.49
    with recording_noise(entropy=0) as record, pytest.warns(UtilityWarning, match="FairClippingClassifier predicts"):
        model.fit(X, y, sensitive_features=groups)
    assert [release.mechanism for release in record.of(GaussianMechanism)][-2:] == [plan.look.counts, plan.look.gain]
    assert model.privacy_.epsilon <= 0.5 and set(model.predict(X)) == {1}


@pytest.mark.few(1)
@pytest.mark.parametrize(("n_rows", "n_features", "epsilon"), [(600, 4, 5.0), (20_000, 4, 0.5), (400, 2, 100.0)])
def test_there_is_a_look_however_little_noise_there_is(n_rows, n_features, epsilon):
    """Law school: 48 of 20,798 rows got another class than the most frequent one, without a word."""
    X, y = noise_table(n_rows, n_features)
    model = FairDPSGDClassifier(**{**HARD, "epsilon": epsilon, "classes": [0, 1]})
    plan = model._plan(model._read(X, y))
    assert plan.look == look(n_rows, n_features, epsilon) and 0.98 * epsilon < epsilon_of(plan.event, 1e-5) <= epsilon
    model = FairDPSGDClassifier(**{**HARD, "classes": [0], "epsilon": epsilon})
    assert model._plan(model._read(X, np.zeros(len(X), dtype=int))).look is None


@pytest.mark.parametrize("n_classes", [2, 3])
def test_without_a_signal_the_most_frequent_class_is_predicted_and_told(n_classes):
    X, y = noise_table(300, 60, n_classes=n_classes)
    classes = [f"class {k}" for k in range(n_classes)]
    labels = np.array(classes)[y]
    model = FairDPSGDClassifier(**HARD, classes=classes)
    would_do = r"every row.*[\d,]+ private rows or epsilon=[\d.]+ would suffice"
    with pytest.warns(UtilityWarning, match=would_do) as told, recording_noise(entropy=1):
        model.fit(X, labels)
    usual = classes[np.bincount(y).argmax()]
    assert set(model.predict(X)) == {usual} and usual in str(told[0].message)
    assert is_constant(module_of(model.net_)) and np.allclose(model.predict_proba(X).sum(axis=1), 1)


@pytest.mark.parametrize("net", ["mlp", "additive"])
def test_a_network_that_is_given_up_still_ranks_rows_of_a_rare_class(net):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 6))
    y = (rng.random(4000) < 1 / (1 + np.exp(4.5 - X[:, 0] - X[:, 1]))).astype(int)  # hardly ever above one half
    model = FairDPSGDClassifier(epsilon=1.0, lam=0.0, net=net, classes=[0, 1], random_state=0)
    with pytest.warns(UtilityWarning, match="Its probabilities only rank rows"), recording_noise(entropy=1):
        model.fit(X[:2000], y[:2000])
    told = model.predict_proba(X[2000:])[:, 1]
    assert is_constant(module_of(model.net_)) and set(model.predict(X[2000:])) == {0}
    assert roc_auc_score(y[2000:], told) > 0.65 and np.ptp(told) < 0.03
    assert abs(told.mean() - y.mean()) < 0.03  # the rates of the classes, as released


def test_no_encoded_row_gets_another_answer_from_terms_however_steep():
    """What is given up is so steep here that it would answer anything; its order is all that is left of it."""
    net = as_net("additive", owner="Some")
    rng = np.random.default_rng(0)
    steep = prepare_network(net, 4, 2, seed=0, owner="Some").module
    with torch.no_grad():
        for parameter in steep.parameters():
            parameter.copy_(torch.as_tensor(1e3 * rng.normal(size=parameter.shape)))
    X = torch.as_tensor(rng.choice([-1.0, 1.0], (200, 4)), dtype=torch.float32)
    module = one_answer(np.array([0.52, 0.48]), steep)
    scores, before = module(X), steep(X)
    assert (scores.argmax(dim=1) == 0).all()
    order = (scores[:, 1] - scores[:, 0]).argsort(), (before[:, 1] - before[:, 0]).argsort()
    assert torch.equal(*order) and len(scores.unique(dim=0)) > 1
    expected = torch.log(torch.tensor([0.52, 0.48])) + module.share * before
    assert torch.allclose(scores, expected, atol=1e-6)  # nowhere cut off, so terms add up


def test_an_answer_that_would_be_another_one_falls_back_on_the_rates():
    module = one_answer(np.array([0.2, 0.8]), Linear())
    with torch.no_grad():
        told = module(torch.tensor([[1e9] * 12, [-1e9] * 12, [float("nan")] * 12, [0.1] * 12]))
    assert (told.argmax(dim=1) == 1).all()
    rates = torch.log(torch.tensor([0.2, 0.8]))
    assert any(torch.allclose(row, rates) for row in told[:2]) and torch.allclose(told[2], rates)
    assert not is_constant(Linear()) and is_constant(one_answer(np.array([0.5, 0.5]), Linear()))


def test_the_rows_and_epsilon_told_are_enough_and_no_more_than_needed():
    one = look()
    assert look(n_rows=one.enough[0]).noise <= DOUBTFUL < look(n_rows=int(0.9 * one.enough[0])).noise
    assert look(epsilon=one.enough[1]).noise <= DOUBTFUL < look(epsilon=0.85 * one.enough[1]).noise


def test_little_noise_that_leaves_nothing_clear_is_told_with_what_would_halve_it():
    one = look(2000, 8, 1.0)
    assert one.noise < DOUBTFUL
    words = one.words("no", "FairDPSGDClassifier")
    assert f"{one.enough[0]:,} private rows or epsilon={one.enough[1]:g} would halve it" in words
    assert look(one.enough[0], 8, 1.0).noise <= one.noise / 2 < look(int(0.9 * one.enough[0]), 8, 1.0).noise


@pytest.mark.parametrize(("n_rows", "does"), [(2000, "halve it: try {} first"), (120, "suffice")])
def test_advice_names_the_constraint_where_noise_is_no_reason(n_rows, does):
    """Found: with a group of few rows a model at ε = 20 was advised more ε and other features, which do not help; and
    a kept network that its noise would be halved, where it would be enough."""
    one, found = look(n_rows, 8, 1.0), Comparison(0, 0.0, 0.6)
    for constrained, more in ((False, ""), (True, "a looser constraint, groups of more rows or ")):
        for module in (constant_module(np.array([0.6, 0.4])), Linear()):
            with pytest.warns(UtilityWarning, match=f"epsilon=[0-9.]+ would {does.format(more + 'other features')}"):
                one.warn(found, module, np.array(["no", "yes"]), "FairDPSGDClassifier", constrained=constrained)


def test_the_look_costs_no_more_than_it_needs():
    """A share of the rows known to .001 is enough; to tell it better than by .01 a few hundredths are spent at most."""
    for n_rows, most in ((400, 0.5), (4000, 0.05), (30_000, 0.02), (300_000, 0.0002)):
        one = look(n_rows, 8, 1.0)
        assert (1 / one.gain.sigma**2 + 1 / one.counts.sigma**2) / gdp_mu(1.0, 1e-5) ** 2 < most


@pytest.mark.parametrize("share", [1.0, 0.9])
def test_a_part_of_the_cost_tells_gains_that_a_hundredth_of_the_rows_drowns(share):
    """A network ahead by .01 of 6,000 rows was given up every other time. Where .01 costs more nothing changes."""
    mu = gdp_mu(1.0, 1e-5)
    one = look(6000, 9, 1.0, share=share)
    assert norm.sf(EVIDENCE - 0.01 * one.n_rows / one.gain.sigma) > 0.95  # is kept
    assert 1 / one.gain.sigma**2 == pytest.approx(FOR_GAIN * share * mu**2)
    assert look(400, 9, 1.0, share=share).gain.sigma == pytest.approx(max(400 * GAIN_NOISE, 2 / mu / share**0.5))


def test_fair_dpsgd_looks_that_closely_and_spends_no_more_than_its_epsilon():
    X, y = noise_table(3000)
    plan = (model := FairDPSGDClassifier(epsilon=1.0, lam=0.0, classes=[0, 1]))._plan(model._read(X, y))
    assert plan.look == look(3000, 12, 1.0) and plan.look.gain.sigma < 0.007 * 3000
    assert 0.99 < epsilon_of(plan.event, 1e-5) <= 1.0


def told_of(ahead, n=20_000, rate=0.11, epsilon=1.0):
    """Whether a network that is ahead by so many rows is kept, and what is said of it."""
    one = look(n, 8, epsilon)
    found = one._compared(np.array([1 - rate, rate]), 0, ahead)
    return found.may_stay, not found.is_better


@pytest.mark.parametrize(
    ("ahead", "kept", "told"),
    [
        (-300, False, True),  # behind
        (10, True, True),  # 48 of 20,798: nothing is lost by it, and it has probabilities
        (0.9 * LEAST * 2200, True, True),  # clearly ahead, by fewer rows than anyone would notice
        (1.2 * LEAST * 2200, True, False),
        (1000, True, False),
    ],
)
def test_what_is_no_better_is_told_and_what_is_worse_gives_way(ahead, kept, told):
    assert told_of(ahead) == (kept, told)


def test_few_rows_have_to_be_clear_of_the_noise():
    sigma = look(400, 8, 1.0).gain.sigma
    assert told_of(0.9 * EVIDENCE * sigma, 400) == (False, True)
    assert told_of(0.9 * CLEARLY * sigma, 400) == (True, True) and told_of(1.3 * CLEARLY * sigma, 400) == (True, False)


def test_a_network_that_is_clearly_ahead_is_kept():
    X, y = noise_table(400)
    y = (X[:, 0] > 0).astype(int)
    module = Linear()
    kept, found = look(400).release(module, X, y, 2, ZeroNoise())
    assert kept is module and found.is_better
    other, found = look(400).release(module, X, 1 - y, 2, ZeroNoise())
    assert is_constant(other) and not found.may_stay


def test_given_the_releases_the_network_does_not_hang_on_the_rows():
    X, y = noise_table(80)

    def told(labels):
        with recording_noise(
            answer=lambda release: np.array([10.0, 70.0]) if np.size(release.value) == 2 else np.zeros(1)
        ):
            from skfairdp.privacy import _noise

            module, found = look(80).release(Linear(), X, labels, 2, _noise.open_source(0))
            return module(torch.zeros(3, 12)).argmax(dim=1).tolist(), found

    assert told(y) == told(1 - y) and told(y)[0] == [1, 1, 1]


def test_public_rows_show_a_network_that_answers_one_class():
    """Where the noise of the gradients is given nothing else is released that could tell."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = (rng.random(400) < 0.02).astype(int)
    model = FairDPSGDClassifier(
        epsilon=50.0, noise_multiplier=2.0, lam=0.0, net=QUICK, classes=["no", "yes"], random_state=0
    )
    with pytest.warns(UtilityWarning, match=r"class no for every public row"):
        model.fit(X[50:], np.array(["no", "yes"])[y[50:]], X_public=X[:50])


def test_a_constant_network_keeps_its_probabilities():
    module = constant_module(np.array([0.2, 0.8]))
    assert torch.allclose(torch.softmax(module(torch.zeros(2, 5)), dim=1), torch.tensor([[0.2, 0.8]] * 2))


def planned(n_rows, n_values, epsilon, share, described):
    """The plan for a table of a number and a category, with or without a schema, and noisy rates for their share."""
    rng = np.random.default_rng(n_rows)
    group, label = rng.choice(["f", "m"], n_rows), rng.integers(2, size=n_rows)
    parity = {"lam": 0.0} if share is None else {"parity": SignedLoss(budget_share=share), "groups": ["f", "m"]}
    options = {"epsilon": epsilon, "net": QUICK, **parity}
    if not described:
        model = FairDPSGDClassifier(classes=[0, 1], **options)
        rows = rng.normal(size=(n_rows, n_values + 1))
        return model._plan(model._read(rows, label, **({} if share is None else {"sensitive_features": group})))
    kinds = {"amount": Number(0, 9), "kind": Category(range(n_values)), "group": Category(["f", "m"])}
    schema = Schema({**kinds, "label": Category([0, 1])}, label="label", groups="group")
    kind = rng.integers(n_values, size=n_rows)
    frame = pd.DataFrame({"amount": 9 * rng.random(n_rows), "kind": kind, "group": group, "label": label})
    model = FairDPSGDClassifier(schema=schema, **{name: options[name] for name in options if name != "groups"})
    return model._plan(model._read(frame, None))


@given(
    n_rows=st.integers(1, 400),
    n_values=st.integers(2, 80),
    epsilon=st.floats(0.05, 20.0),
    share=st.one_of(st.none(), st.floats(1e-4, 0.9999)),
    described=st.booleans(),
)
@example(n_rows=185, n_values=80, epsilon=3.0, share=0.3, described=True)  # tables, temperature, rates and look
@example(n_rows=1, n_values=2, epsilon=1.0, share=0.2, described=False)
@settings(max_examples=examples(12), deadline=None, derandomize=True)
def test_whatever_is_released_beside_the_gradients_leaves_them_a_part_of_epsilon(
    n_rows, n_values, epsilon, share, described
):
    plan = planned(n_rows, n_values, epsilon, share, described)
    assert epsilon_of(plan.event, 1e-5) <= epsilon and (plan.duals is None) == (share is None)
    rest = beside(plan.duals, plan.tables, plan.temperature, plan.look, plan.judge)
    assert gdp_mu(epsilon_of(rest, 1e-5), 1e-5) ** 2 < (1 - 0.085 * (1 - (share or 0.0))) * gdp_mu(epsilon, 1e-5) ** 2
    if (n_rows, n_values, share) == (185, 80, 0.3):
        assert None not in (plan.tables, plan.temperature, plan.look, plan.duals)


def test_a_share_that_leaves_nothing_is_refused_by_its_name_and_spends_nothing():
    X, y = noise_table()
    ledger = PrivacyLedger()
    groups = (X[:, 0] > 0).astype(int)
    model = FairDPSGDClassifier(
        epsilon=1e-6, delta=1e-9, parity=SignedLoss(budget_share=1 - 1e-12), net=QUICK, classes=[0, 1], groups=[0, 1]
    )
    with pytest.raises(ValueError, match=r"^FairDPSGDClassifier has nothing left.*Lower budget_share of SignedLoss"):
        model.set_params(ledger=ledger).fit(X, y, sensitive_features=groups)
    with pytest.raises(ValueError, match=r"^FairDPSGDClassifier has nothing left.* Raise 'epsilon' or 'delta'\.$"):
        model.set_params(lam=0.0, epsilon=1e-12, delta=1e-12).fit(X, y)
    assert not ledger.entries
