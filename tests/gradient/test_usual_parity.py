"""Where parity comes from by default, if public rows are given and the groups of the private rows are known as well."""

import numpy as np
import pandas as pd
import pytest

from skfairdp import FairDPSGDClassifier, PublicData, Schema
from skfairdp.datasets import make_biased_classification
from skfairdp.gradient import PublicPenalty, SignedLoss, mlp
from skfairdp.metrics import demographic_disparity
from skfairdp.privacy import NeighboringRelation, epsilon_of
from tests._tools.inside import PublicRows, default_parity

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*draws its noise from 'noise_seed'"),
    pytest.mark.filterwarnings("ignore:FairDPSGDClassifier did not reach its:skfairdp.exceptions.FairnessWarning"),
]

X, Y, GROUPS = make_biased_classification(900, disparity=0.3, random_state=0)
FEW, MANY = slice(800, 900), slice(0, 700)
NET = mlp((3,), max_epochs=2, batch_size=50)


def model(**given):
    return FairDPSGDClassifier(net=NET, classes=[0, 1], random_state=0, noise_seed=0, **given)


def fitted(private, public, *, groups=True, **given):
    known = {"sensitive_features": GROUPS[private]} if groups else {}
    return model(**given).fit(X[private], Y[private], X_public=PublicData(X[public], GROUPS[public]), **known)


def rates_of(epsilon):
    return SignedLoss().plan(epsilon, 1e-5, NeighboringRelation.ZERO_OUT)


@pytest.mark.parametrize(("n_public", "n_private"), [(40, 4000), (400, 4000), (4000, 4000), (4000, 1000), (60, 100)])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_the_signed_loss_is_taken_where_it_halves_the_error_of_the_rate_of_the_smallest_group(
    n_public, n_private, epsilon
):
    rng, share, repeated = np.random.default_rng(0), 0.25, 20_000
    few, few_private = round(share * n_public), round(share * n_private)
    by_public = rng.binomial(few, 0.5, repeated) / few - 0.5
    noise = rates_of(epsilon).noise / np.sqrt(rates_of(epsilon).releases) * rng.normal(size=repeated)
    by_private = (rng.binomial(few_private, 0.5, repeated) + noise) / few_private - 0.5
    expected = SignedLoss if by_private.std() < by_public.std() / 2 else PublicPenalty

    public = PublicRows(np.zeros((n_public, 1)), np.arange(n_public) // few == 0, np.array([False, True], dtype=object))
    assert isinstance(default_parity(public, n_private, rates_of(epsilon)), expected)


def test_few_public_rows_leave_the_fit_to_the_signed_loss_bit_for_bit():
    asked = fitted(MANY, slice(840, 900), epsilon=3.0)  # too few to scale columns by as well
    named = model(epsilon=3.0, parity="signed_loss", groups=[0, 1]).fit(
        X[MANY], Y[MANY], sensitive_features=GROUPS[MANY]
    )
    assert asked.parity_taken_ == named.parity_taken_ == "signed_loss"
    assert asked.privacy_.event == named.privacy_.event and asked.gap_bound_ == named.gap_bound_
    assert np.array_equal(asked.predict_proba(X), named.predict_proba(X))


def test_many_public_rows_leave_the_fit_to_the_penalty_bit_for_bit():
    asked, named = fitted(FEW, MANY, epsilon=0.5), fitted(FEW, MANY, epsilon=0.5, parity="public_penalty", groups=False)
    assert asked.parity_taken_ == named.parity_taken_ == "public_penalty"
    assert asked.privacy_.event == named.privacy_.event and asked.gap_ == named.gap_
    assert np.array_equal(asked.predict_proba(X), named.predict_proba(X))


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "given", [{"lam": 0.5}, {"noise_multiplier": 5.0}, {"groups": False}, {"parity": PublicPenalty()}]
)
def test_the_penalty_is_taken_where_something_else_is_asked_for_or_private_groups_are_unknown(given):
    assert fitted(MANY, FEW, epsilon=3.0, **given).parity_taken_ == "public_penalty"


def test_plain_dp_sgd_takes_no_parity_whatever_is_known():
    assert fitted(MANY, FEW, lam=0.0).parity_taken_ is None


def test_the_plan_and_its_public_facts_say_what_is_taken():
    asked = model(epsilon=3.0)
    given = {"X_public": PublicData(X[FEW], GROUPS[FEW]), "sensitive_features": GROUPS[MANY]}
    planned = asked.planned_privacy(X[MANY], Y[MANY], **given)
    spent = asked.fit(X[MANY], Y[MANY], **given).privacy_
    assert planned.event == spent.event and epsilon_of(spent.event, 1e-5) <= 3.0
    assert any(fact.name == "where parity comes from" and fact.value == "signed_loss" for fact in spent.public)


def test_a_schema_that_names_the_groups_lets_private_rows_be_asked():
    table = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]).assign(y=Y, group=GROUPS)
    schema = Schema.from_public(table, label="y", groups="group")
    asked = FairDPSGDClassifier(epsilon=3.0, net=NET, schema=schema, random_state=0, noise_seed=0)
    assert asked.fit(table[MANY], X_public=table[FEW].drop(columns="y")).parity_taken_ == "signed_loss"


@pytest.mark.slow
def test_with_few_public_rows_of_a_group_the_gap_of_others_is_smaller_than_by_the_penalty():
    rows, y, groups = make_biased_classification(24_000, disparity=0.3, random_state=1)
    private, public, test = slice(0, 12_000), slice(12_000, 12_150), slice(12_150, None)
    gaps = {}
    for parity in (None, "public_penalty"):
        given = {"sensitive_features": groups[private], "X_public": PublicData(rows[public], groups[public])}
        net = mlp((8,), max_epochs=10, batch_size=256)
        made = [
            FairDPSGDClassifier(net=net, classes=[0, 1], parity=parity, random_state=seed, noise_seed=seed)
            for seed in range(3)
        ]
        predicted = [m.fit(rows[private], y[private], **given).predict(rows[test]) for m in made]
        gaps[parity] = [
            demographic_disparity(None, p, sensitive_features=groups[test], classes=[0, 1]) for p in predicted
        ]
    assert np.mean(gaps[None]) < np.mean(gaps["public_penalty"])
