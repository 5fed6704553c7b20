"""How often each group and label is sampled, and what conditions make of it."""

import warnings

import numpy as np
import pandas as pd
import pytest

from skfairdp import PFGuardGenerator, PrivacyLedger
from skfairdp.exceptions import FairnessWarning
from skfairdp.papers import GSWGANBackend
from tests._tools.inside import given_label_rates, target_rates
from tests._tools.sources import recording_noise
from tests.generative.tables import make, mixed_table

# So few rows that a group of them is hardly more than the noise; what is said about it is tested on its own.
pytestmark = pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning")


@pytest.fixture(scope="module")
def fitted():
    X, y, s = mixed_table()
    return make().fit(X, y, sensitive_features=s)


def test_groups_are_equally_frequent_and_labels_independent_of_them():
    X, y, s = mixed_table()
    generator = make(balance="group_and_label").fit(X, y, sensitive_features=s)
    _, labels, groups = generator.sample_labels(10_000, return_sensitive=True)
    table = pd.crosstab(groups, labels, normalize="index")
    assert groups.value_counts().tolist() == [5000, 5000]
    assert abs(table.loc["f", ">50K"] - table.loc["m", ">50K"]) < 1e-3
    assert abs(table.loc["f", ">50K"] - (y == ">50K").mean()) < 0.02


def test_by_default_groups_are_as_frequent_as_they_were_and_labels_independent_of_them():
    X, y, s = mixed_table()
    generator = make().fit(X, y, sensitive_features=s)
    rates, observed = generator.rates_, generator.observed_rates_
    np.testing.assert_allclose(rates, np.outer(observed.sum(axis=1), observed.sum(axis=0)))
    np.testing.assert_allclose(rates.sum(axis=1), [(s == g).mean() for g in "fm"], atol=0.02)


def test_balance_group_keeps_each_groups_own_rates_of_the_label():
    X, y, s = mixed_table()
    generator = make(balance="group").fit(X, y, sensitive_features=s)
    rates = generator.rates_[:, 1] / generator.rates_.sum(axis=1)
    np.testing.assert_allclose(generator.rates_.sum(axis=1), 0.5)
    np.testing.assert_allclose(rates, [(y[s == g] == ">50K").mean() for g in "fm"], atol=0.03)


def test_a_group_within_the_noise_is_named_by_its_released_number_only():
    X, y, s = mixed_table()
    tiny = s.where(s.index > 5, "x")
    said = r"1 of the 3 groups .* released count below \d+, four standard deviations"
    with pytest.warns(FairnessWarning, match=said) as caught:
        make(groups=["f", "m", "x"]).fit(X, y, sensitive_features=tiny)
    assert caught[0].filename == __file__ and "'x'" not in str(caught[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FairnessWarning)
        make().fit(X, y, sensitive_features=s)
        make(groups=["f", "m", "x"], balance=None).fit(X, y, sensitive_features=tiny)


def test_shares_of_labels_that_are_given_are_what_is_sampled():
    X, y, s = mixed_table()
    generator = make(balance={"f": 0.7, "m": [0.9, 0.1]}).fit(X, y, sensitive_features=s)
    of_groups = generator.observed_rates_.sum(axis=1)[:, None]
    np.testing.assert_allclose(generator.rates_ / of_groups, [[0.3, 0.7], [0.9, 0.1]])
    shares = target_rates(np.array([[0.1, 0.1], [0.4, 0.4]]), given_label_rates({0: 0.5, 1: 1.0}, [0, 1], 2, "x"))
    np.testing.assert_allclose(shares, [[0.1, 0.1], [0.0, 0.8]])


def test_fair_rates_lower_the_unfairness_of_a_classifier_trained_on_the_rows():
    from sklearn.naive_bayes import GaussianNB

    from skfairdp.datasets import make_biased_classification
    from skfairdp.metrics import demographic_disparity

    data = make_biased_classification(12_000, disparity=0.4, group_sep=2.0, random_state=0)
    X, y, s = (part[:9000] for part in data)
    gaps = {}
    for name, settings in {
        "none": {"balance": None},
        "label": {},
        "equal": {"balance": "group_and_label"},
        "fair": {"balance": "fair"},
    }.items():
        generator = PFGuardGenerator(epsilon=5.0, bounds=(-6.0, 6.0), classes=[0, 1], groups=[0, 1], **settings)
        generator.fit(X, y, sensitive_features=s)
        model = GaussianNB().fit(*generator.sample_labels(20_000, random_state=0))
        predicted = model.predict(data[0][9000:])
        gaps[name] = demographic_disparity(None, predicted, sensitive_features=data[2][9000:])
    assert gaps["fair"] <= gaps["equal"] + 0.02
    assert max(gaps["equal"], gaps["label"]) < gaps["none"] - 0.1


# ---- another balance of the same release -----------------------------------------------------------------------
BALANCES = {
    "label": {"balance": "label"},
    "group": {"balance": "group"},
    "fair": {"balance": "fair"},
    "given": {"balance": {"f": 0.2, "m": [0.5, 0.5]}},
    "admissible": {"balance": "group", "admissible": ["job", 7]},
}


def fitted_as_it_is():
    X, y, s = mixed_table(1000)
    ledger = PrivacyLedger()
    with recording_noise(entropy=3):
        return (X, y, s), ledger, make(balance=None, ledger=ledger).fit(X, y, sensitive_features=s)


@pytest.fixture(scope="module")
def as_it_is():
    return fitted_as_it_is()


@pytest.mark.parametrize("name", BALANCES)
def test_a_refit_draws_what_a_fit_with_the_same_releases_draws(as_it_is, name):
    (X, y, s), _, generator = as_it_is
    again = generator.refit(**BALANCES[name])
    with recording_noise(entropy=3):
        fitted = make(**BALANCES[name]).fit(X, y, sensitive_features=s)
    np.testing.assert_array_equal(again.rates_, fitted.rates_)
    for one, other in zip(
        again.sample_labels(300, return_sensitive=True, random_state=0),
        fitted.sample_labels(300, return_sensitive=True, random_state=0),
        strict=True,
    ):
        assert one.equals(other)
    back = again.refit(balance=None, admissible=None)
    np.testing.assert_array_equal(back.rates_, generator.rates_)


def test_a_refit_draws_no_noise_charges_nothing_and_leaves_the_first_as_it_is():
    _, ledger, generator = fitted_as_it_is()
    rates, before = generator.rates_.copy(), generator.sample(50, random_state=0)
    with recording_noise() as record:
        for changes in BALANCES.values():
            again = generator.refit(**changes)
            assert again.privacy_ is generator.privacy_ and again.model_ is generator.model_
            assert again.get_params()["balance"] == changes["balance"] and len(again.sample(5)) == 5
    assert not record.releases and len(ledger.entries) == 1
    np.testing.assert_array_equal(generator.rates_, rates)
    assert generator.balance is None and generator.sample(50, random_state=0).equals(before)


def test_a_refit_refuses_what_a_fit_refuses_and_groups_that_were_never_given(as_it_is):
    (X, y, _), _, generator = as_it_is
    for changes, message in (
        ({"balance": "labels"}, "'balance' parameter of PFGuardGenerator"),
        ({"balance": {"f": 0.5}}, "must map each group"),
        ({"balance": "fair", "admissible": "job"}, "'admissible' and a 'balance'"),
        ({"admissible": "jobs"}, "names 'jobs', which is no column that is learnt"),
    ):
        with pytest.raises(ValueError, match=message):
            generator.refit(**changes)
    without = make(balance=None).fit(X, y)
    assert without.refit(balance=None).rates_.shape == (1, 2)
    with pytest.raises(ValueError, match="cannot balance groups, as none were given to fit"):
        without.refit(balance="group")


def test_a_refit_names_small_groups_by_the_counts_that_were_released():
    X, y, s = mixed_table(1000)
    generator = make(groups=["f", "m", "x"], balance=None).fit(X, y, sensitive_features=s)
    with pytest.warns(FairnessWarning, match="1 of the 3 groups .* released count below"):
        generator.refit(balance="label")


def test_the_rows_of_networks_are_drawn_by_another_balance_as_well():
    X, y, s = mixed_table(300)
    generator = make(backend=GSWGANBackend(n_teachers=4, n_steps=2, batch_size=4, hidden=(4,), latent=2))
    generator = generator.fit(X, y, sensitive_features=s).refit(balance={"f": 1.0, "m": 0.0})
    _, labels, groups = generator.sample_labels(200, return_sensitive=True, random_state=0)
    assert ((labels == ">50K").to_numpy() == (groups == "f").to_numpy()).all()


# ---- conditions ------------------------------------------------------------------------------------------------
def test_conditions_fix_the_label_the_group_or_both(fitted):
    _, y, s = fitted.sample_labels(200, conditions={"y": ">50K"}, return_sensitive=True)
    assert set(y) == {">50K"} and set(s) == {"f", "m"}
    _, y, s = fitted.sample_labels(200, conditions={"sensitive_features": "f", "y": "<=50K"}, return_sensitive=True)
    assert set(y) == {"<=50K"} and set(s) == {"f"}


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ({"y": "a lot"}, "asks for y='a lot', which is not among the 2 known ones"),
        ({"sensitive_features": "x"}, "not among the 2 known ones"),
        ({"age": 3}, "must be a dict with the keys 'y' and 'sensitive_features'"),
        ([("y", ">50K")], "must be a dict"),
    ],
)
def test_unseen_conditions_are_errors(fitted, conditions, message):
    with pytest.raises(ValueError, match=message):
        fitted.sample(10, conditions=conditions)


@pytest.mark.parametrize("n_samples", [0, -1, 2.5, True, "ten"])
def test_numbers_of_rows_that_are_none(fitted, n_samples):
    with pytest.raises(ValueError, match=r"n_samples of PFGuardGenerator\.sample must be an integer >= 1"):
        fitted.sample(n_samples)


def test_random_state_fixes_the_sample_and_nothing_else_does(fitted):
    pd.testing.assert_frame_equal(fitted.sample(100, random_state=3), fitted.sample(100, random_state=3))
    assert not fitted.sample(100, random_state=3).equals(fitted.sample(100, random_state=4))
    assert not fitted.sample(100).equals(fitted.sample(100))
