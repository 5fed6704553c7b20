"""IDP3 around a regressor: the running Kolmogorov-Smirnov distance of what is answered, and what is refused."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from sklearn.base import BaseEstimator, RegressorMixin, clone, is_classifier, is_regressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score

from skfairdp import FairDPSGDRegressor, PFGuardGenerator, PublicData
from skfairdp.exceptions import FairnessWarning
from skfairdp.fairness import AmountGate, FairnessGate, RateParity, disparities
from skfairdp.gradient import mlp
from skfairdp.metrics import ks_disparity
from skfairdp.postprocessing import IDP3, PrivateBarycenter
from skfairdp.privacy import privacy_of
from skfairdp.schema import Category, Number, Schema
from tests._tools.layers import examples

GROUPS = ("a", "b")


class Says(RegressorMixin, BaseEstimator):
    """Predicts the first column."""

    def __init__(self, bounds=(0.0, 1.0)):
        self.bounds = bounds

    def fit(self, X, y=None):
        self.fitted_ = True
        return self

    def predict(self, X):
        return np.asarray(X, dtype=float)[:, 0]


def fitted(groups=GROUPS, bounds=(0.0, 1.0), **parameters):
    idp = IDP3(Says(bounds).fit(None), groups=list(groups), **{"min_count": 200, **parameters})
    return idp.fit(np.zeros((1, 1)))


def a_stream(n=2000, shift=0.3, seed=0, n_groups=2):
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, n_groups, n)
    amounts = np.clip(rng.beta(2, 3, n) + shift * groups / (n_groups - 1) * rng.random(n), 0, 1)
    return amounts[:, None], np.array(list("abcd"))[groups]


def distance_at(limits, amounts, groups, disparity):
    """By definition: the largest difference of shares at or below any of the limits."""
    names = np.unique(groups)
    upto = {name: (amounts[groups == name][:, None] <= limits).mean(axis=0) for name in names}
    others = {name: (amounts[groups != name][:, None] <= limits).mean(axis=0) for name in names}
    everyone = (amounts[:, None] <= limits).mean(axis=0)
    against = {
        "others": lambda z: [others[z]],
        "overall": lambda z: [everyone],
        "between": lambda z: [upto[a] for a in names],
    }
    return max(np.abs(upto[z] - other).max() for z in names for other in against[disparity](z))


@settings(max_examples=examples(15), deadline=None)
@given(
    seed=st.integers(0, 2**16),
    n_groups=st.integers(2, 4),
    gamma=st.sampled_from([0.05, 0.1, 0.3]),
    disparity=st.sampled_from(["others", "overall", "between"]),
)
def test_once_within_gamma_the_running_distance_stays_there_in_the_order_of_rows(seed, n_groups, gamma, disparity):
    X, groups = a_stream(600, seed=seed, n_groups=n_groups)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairnessWarning)
        idp = fitted("abcd"[:n_groups], gamma=gamma, disparity=disparity, min_count=20)
        said = idp.predict(X, sensitive_features=groups)
    given_, within = ~np.isnan(said), False
    for i in np.flatnonzero(given_):
        rows = np.flatnonzero(given_[: i + 1])
        counts = [np.sum(groups[rows] == name) for name in "abcd"[:n_groups]]
        if min(counts) <= 20:  # this answer may have been a cold start
            continue
        now = distance_at(idp.limits_, said[rows], groups[rows], disparity)
        assert not within or now <= gamma + 1e-9
        within = within or now <= gamma
    np.testing.assert_array_equal(said[given_], X[given_, 0])


def test_a_stream_of_different_groups_ends_within_gamma_and_what_is_true_between_the_limits_is_near_it():
    X, groups = a_stream(4000)
    idp = fitted(gamma=0.05)
    said = idp.answer(X, sensitive_features=groups)
    told = ~np.isnan(said)
    assert ks_disparity(None, X[:, 0], sensitive_features=groups) > 0.15
    assert distance_at(idp.limits_, said[told], groups[told], "others") <= 0.05 + 1e-9
    largest_bin = (idp.counts_ / idp.counts_.sum(axis=1, keepdims=True)).max()
    assert ks_disparity(None, said[told], sensitive_features=groups[told]) <= 0.05 + largest_bin
    assert 0.4 < idp.coverage_ == told.mean() < 1
    assert idp.rejected_counts_.sum() == (~told).sum()


def test_gamma_none_answers_everything():
    X, groups = a_stream(100)
    idp = fitted(gamma=None)
    np.testing.assert_array_equal(idp.answer(X, sensitive_features=groups), X[:, 0])
    assert idp.coverage_ == 1
    assert idp.predicts_rows_alone


def test_a_cold_start_answers_everyone_and_says_so():
    X, groups = a_stream(60)
    with pytest.warns(FairnessWarning, match="up to 400 rows are answered"):
        assert not np.isnan(fitted().predict(X, sensitive_features=groups)).any()


def test_a_min_count_whose_noise_is_above_gamma_is_told_of():
    with pytest.warns(
        FairnessWarning, match="shares of amounts .* min_count=50 answers each.* Raise 'min_count' to 200"
    ):
        fitted(min_count=50)
    fitted(min_count=50, gamma=0.1)
    fitted(min_count=50, gamma=None)


@pytest.mark.parametrize("n_groups", [2, 4])
def test_with_the_min_count_that_is_asked_for_the_gate_is_not_stuck(n_groups):
    for seed in range(3):
        X, groups = a_stream(600 * n_groups, shift=0.0, seed=seed, n_groups=n_groups)
        assert fitted("abcd"[:n_groups]).answer(X, sensitive_features=groups)[-200:].size == 200  # no warning


def test_one_call_and_many_decide_alike_and_predict_changes_nothing():
    X, groups = a_stream(1200)
    once, often = fitted(), fitted()
    pure = once.predict(X, sensitive_features=groups)
    assert once.counts_.sum() == 0
    whole = once.answer(X, sensitive_features=groups)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairnessWarning)
        parts = [often.answer(X[i : i + 60], sensitive_features=groups[i : i + 60]) for i in range(0, 1200, 60)]
    np.testing.assert_array_equal(whole, np.concatenate(parts))
    np.testing.assert_array_equal(whole, pure)
    np.testing.assert_array_equal(once.counts_, often.counts_)
    assert once.reset().counts_.sum() == 0


def test_answers_told_elsewhere_are_committed_and_nan_is_a_refusal(tmp_path):
    idp = fitted(store=tmp_path / "answers.json")
    idp.update([0.0, 0.5, np.nan, 1.0], sensitive_features=["a", "a", "b", "b"])
    assert idp.counts_.shape == (2, 64)
    assert (idp.counts_[0, 0], idp.counts_[0, 31], idp.counts_[1, 63]) == (1, 1, 1)  # 0.5 is the end of bin 31
    assert idp.rejected_counts_.tolist() == [0, 1]
    np.testing.assert_array_equal(fitted(store=tmp_path / "answers.json").counts_, idp.counts_)
    with pytest.raises(ValueError, match="holds no answers to these"):
        fitted(bounds=(0.0, 2.0), store=tmp_path / "answers.json")
    X, groups = a_stream(1000)
    mask = fitted().reject_mask(X[:, 0], sensitive_features=groups)
    np.testing.assert_array_equal(mask, np.isnan(fitted().predict(X, sensitive_features=groups)))


# ---- the gate ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("disparity", ["others", "overall", "between"])
def test_with_two_bins_the_gate_of_amounts_is_the_gate_of_two_classes(disparity):
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 2, 3000)
    labels = (rng.random(3000) < 0.3 + 0.3 * groups).astype(int)
    ours, usual = (kind(2, 2, gamma=0.05, disparity=disparity) for kind in (AmountGate, FairnessGate))
    np.testing.assert_array_equal(ours.run(groups, labels), usual.run(groups, labels))
    np.testing.assert_array_equal(ours.counts, usual.counts)
    for z in range(2):
        np.testing.assert_array_equal(ours.admissible(z), usual.admissible(z))


@pytest.mark.parametrize("disparity", ["others", "overall", "between"])
def test_every_limit_is_a_gate_of_two_classes_and_all_have_to_admit(disparity):
    rng = np.random.default_rng(1)
    counts = rng.multinomial(40, np.ones(5) / 5, size=3)
    gamma = max(float(np.abs(disparities(split(counts, t), disparity)).max()) for t in range(4)) + 1e-3
    gate = AmountGate(3, 5, gamma=gamma, disparity=disparity, min_count=0, counts=counts)
    assert gate.excess() == 0
    decisions = [gate.admissible(z) for z in range(3)]
    for z in range(3):
        gates = [
            FairnessGate(3, 2, gamma=gamma, min_count=0, disparity=disparity, counts=split(counts, t)) for t in range(4)
        ]
        admitted = [[gates[t].admissible(z)[int(k > t)] for t in range(4)] for k in range(5)]
        assert decisions[z].tolist() == [all(some) for some in admitted]
    assert 0 < np.sum(decisions) < 15


def split(counts, t):
    return np.column_stack([counts[:, : t + 1].sum(axis=1), counts[:, t + 1 :].sum(axis=1)])


@pytest.mark.parametrize("more", [0, 390])  # in each of group 0's lower bins: together nearly gamma, each far below
def test_rows_that_are_counted_at_once_are_decided_as_one_by_one(more):
    rng = np.random.default_rng(2)
    groups = rng.integers(0, 2, 4000)
    bins = rng.integers(0, 8, 4000) // np.where((more > 0) & (groups == 0), 2, 1)
    start = np.full((2, 8), 4000) + more * np.array([[1, 1, 1, 1, -1, -1, -1, -1], [0] * 8])
    at_once, alone = (AmountGate(2, 8, gamma=0.05, counts=start) for _ in range(2))
    mask = at_once.run(groups, bins)
    expected = [alone.run([z], [k])[0] for z, k in zip(groups, bins, strict=True)]
    np.testing.assert_array_equal(mask, expected)
    assert mask.all() == (more == 0)
    np.testing.assert_array_equal(at_once.counts, alone.counts)


# ---- where the limits lie ------------------------------------------------------------------------------------
def test_limits_come_from_public_numbers():
    np.testing.assert_allclose(fitted(bounds=(0, 64)).limits_, np.arange(1, 64))
    rng = np.random.default_rng(3)
    X, groups = rng.exponential(size=(400, 1)), np.array(["a", "b"] * 200)
    model = LinearRegression().fit(X, 2 * X[:, 0])
    idp = IDP3(model, min_count=200).fit(X[:200], X_public=X[200:], sensitive_features=groups[:200])
    np.testing.assert_allclose(idp.limits_, np.quantile(model.predict(X[200:]), np.arange(1, 64) / 64))
    constant = IDP3(Says(None).fit(X), min_count=200, groups=["a", "b"]).fit(X, X_public=np.ones((9, 1)))
    assert constant.limits_.tolist() == [1.0]


def test_bounds_of_a_schema_are_taken():
    schema = Schema({"x": Number(0, 8), "g": Category(GROUPS), "y": Number(0, 128)}, label="y", groups="g")
    table = pd.DataFrame({"x": [1.0, 2.0], "g": ["a", "b"], "y": [3.0, 4.0]})
    idp = IDP3(Says(None).fit(None), min_count=200, schema=schema).fit(table)
    np.testing.assert_allclose(idp.limits_, np.arange(2, 128, 2))


def test_behind_a_barycenter_whose_regressor_has_bounds():
    X, groups = a_stream(1500)
    table = np.column_stack([X[:, 0], groups == "b"])
    model = PrivateBarycenter(Says((0.0, 2.0)).fit(None), epsilon=1.0, groups=[0, 1], sensitive_columns=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # by chance of the noise
        model.fit(table[:500])
    idp = IDP3(model, gamma=None, groups=[0, 1], sensitive_columns=1).fit(table[:500])
    np.testing.assert_allclose(idp.limits_, np.arange(1, 64) / 32)
    np.testing.assert_array_equal(idp.answer(table[500:]), model.predict(table[500:]))


# ---- privacy -------------------------------------------------------------------------------------------------
def test_it_is_post_processing_of_a_private_model():
    X, groups = a_stream(600)
    y = 10 * X[:, 0]
    alone = FairDPSGDRegressor(epsilon=1.0, bounds=(0, 10), random_state=0).fit(X, y)
    idp = IDP3(FairDPSGDRegressor(epsilon=1.0, bounds=(0, 10), random_state=0), min_count=200, groups=["a", "b"]).fit(
        X, y
    )
    assert idp.estimator_.privacy_.epsilon == alone.privacy_.epsilon
    before = idp.estimator_.privacy_
    idp.answer(X, sensitive_features=groups)
    assert idp.estimator_.privacy_ == before


def test_public_rows_that_were_paid_for_count_as_their_limits_follow_them():
    X, _ = a_stream(600)
    table = pd.DataFrame({"a": X[:, 0], "b": X[:, 0] ** 2})
    made = PFGuardGenerator(epsilon=1.0, bounds=(0.0, 1.0), balance=None, random_state=0).fit(table)
    model = FairDPSGDRegressor(epsilon=0.5, bounds=(0, 1), net=mlp((), max_epochs=1), random_state=0)
    idp = IDP3(model.fit(table, X[:, 0]), groups=["a", "b"], min_count=200)
    public = made.sample(300, random_state=0)
    for rows in (public, PublicData(public)):
        both = privacy_of(pickle.loads(pickle.dumps(idp.fit(table, X_public=rows))))
        assert [part.label for part in both.parts] == ["FairDPSGDRegressor", "PFGuardGenerator"]
    assert privacy_of(idp.fit(table)).epsilon == model.privacy_.epsilon


# ---- what cannot be had --------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"constraints": RateParity("true_positive_rate", 0.1)}, "constraints"),
        ({"constraints": "demographic_parity"}, "constraints"),
        ({"gate": "local"}, "gate"),
        ({"reject_label": -1}, "reject_label"),
    ],
)
def test_what_is_for_classes_is_refused_before_the_estimator_is_fitted(parameters, name):
    class Fails(Says):
        def fit(self, X, y=None):
            raise AssertionError

    with pytest.raises(ValueError, match=f"around a regressor takes no '{name}'"):
        IDP3(Fails(), groups=["a", "b"], **parameters).fit(np.ones((3, 1)), np.ones(3))


def test_without_public_numbers_nothing_is_fitted():
    class Fails(LinearRegression):
        def fit(self, X, y=None):
            raise AssertionError

    with pytest.raises(ValueError, match="public knowledge of where its amounts lie"):
        IDP3(Fails(), groups=["a", "b"]).fit(np.ones((3, 1)), np.ones(3))


def test_labels_that_come_back_are_refused_and_nothing_is_counted():
    idp, (X, groups) = fitted(), a_stream(9)
    with pytest.raises(ValueError, match="'tickets' only with 'constraints' on true labels"):
        idp.answer(X, sensitive_features=groups, tickets=range(9))
    with pytest.raises(ValueError, match="'tickets' only with 'constraints' on true labels"):
        idp.update(X[:, 0], sensitive_features=groups, tickets=range(9))
    with pytest.raises(ValueError, match="demographic parity needs no labels"):
        idp.update_labels([1.0], tickets=[0])
    with pytest.raises(ValueError, match="which are exact without labels"):
        idp.worst_case()
    assert not hasattr(idp, "label_counts_")
    assert not hasattr(idp, "classes_")
    assert idp.counts_.sum() == 0


@pytest.mark.parametrize("y", [[0.1, np.inf], ["x", "y"], [[0.1, 0.2], [0.3, 0.4]]])
def test_what_is_no_amount_is_an_error(y):
    idp = fitted()
    with pytest.raises(ValueError):
        idp.update(y, sensitive_features=["a", "b"])
    assert idp.counts_.sum() == 0


# ---- as scikit-learn has it ----------------------------------------------------------------------------------
def test_tags_clone_and_score():
    idp = IDP3(LinearRegression(), gamma=0.1)
    assert is_regressor(idp)
    assert not is_classifier(idp)
    assert is_regressor(IDP3(FrozenEstimator(LinearRegression())))
    assert is_classifier(IDP3())
    assert clone(idp).get_params()["gamma"] == 0.1
    assert repr(idp) == "IDP3(estimator=LinearRegression(), gamma=0.1)"
    X, groups = a_stream(1000)
    y = X[:, 0] + np.random.default_rng(0).normal(0, 0.1, 1000)
    gated = fitted()
    said = gated.predict(X, sensitive_features=groups)
    told = ~np.isnan(said)
    assert gated.score(X, y, sensitive_features=groups) == pytest.approx(r2_score(y[told], said[told]))
