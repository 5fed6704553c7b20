"""Labels that depend on the group through admissible columns alone."""

import itertools

import numpy as np
import pandas as pd
import pytest

from skfairdp import PrivacyLedger, SyntheticDataClassifier
from skfairdp.papers import PATEGANBackend
from tests._tools.inside import TreeModel
from tests._tools.sources import recording_noise
from tests.generative.tables import make, mixed_table

ADMISSIBLE = ["job", "level"]
N_DRAWN = 60_000


def drawn(**settings):
    X, y, s = mixed_table(6000)
    with recording_noise(entropy=3):
        generator = make(epsilon=15.0, **settings).fit(X, y, sensitive_features=s)
    new, labels, groups = generator.sample_labels(N_DRAWN, return_sensitive=True, random_state=0)
    table = new.assign(job=new["job"].fillna("?"), rich=(labels == ">50K").to_numpy(), sex=groups.to_numpy())
    return generator, table


@pytest.fixture(scope="module")
def fitted():
    return drawn(admissible=ADMISSIBLE)


def largest_gap(table, other):
    """Largest difference between two halves, in standard errors, over the strata of the admissible columns."""
    strata = table.groupby([*ADMISSIBLE, other], observed=True)["rich"].agg(["mean", "size"])
    strata["variance"] = strata["mean"] * (1 - strata["mean"]) / strata["size"]
    one, two = (half.droplevel(other) for _, half in strata.groupby(other))
    return ((one["mean"] - two["mean"]).abs() / np.sqrt(one["variance"] + two["variance"])).max()


@pytest.mark.slow
def test_the_label_is_independent_of_the_group_given_the_admissible_columns():
    _, table = drawn(admissible=ADMISSIBLE)
    assert largest_gap(table, "sex") < 4
    _, as_it_is = drawn(balance=None)
    assert largest_gap(as_it_is, "sex") > 8  # the same measure sees what was there before


def test_the_label_is_independent_of_every_other_column_given_the_admissible_ones(fitted):
    _, table = fitted
    assert largest_gap(table.assign(tall=table["height"] > 170), "tall") < 4


def test_groups_keep_their_own_columns_and_the_admissible_ones_tell_of_the_label_what_they_told(fitted):
    X, y, s = mixed_table(6000)
    _, table = fitted
    for group in "fm":
        kept = (table.loc[table["sex"] == group, "job"] == "cook").mean()
        assert abs(kept - (X.loc[(s == group).to_numpy(), "job"] == "cook").mean()) < 0.03
    for job in ("cook", "smith"):
        told = table.loc[table["job"] == job, "rich"].mean()
        assert abs(told - (y[(X["job"] == job).to_numpy()] == ">50K").mean()) < 0.04


def test_rates_are_those_of_the_rows_and_balance_counts_for_groups(fitted):
    generator, table = fitted
    np.testing.assert_allclose(generator.rates_, pd.crosstab(table["sex"], table["rich"], normalize=True), atol=0.01)
    np.testing.assert_allclose(generator.rates_.sum(axis=1), generator.observed_rates_.sum(axis=1))
    even, _ = drawn(admissible=ADMISSIBLE, balance="group_and_label")
    np.testing.assert_allclose(even.rates_.sum(axis=1), 0.5)


def test_the_density_of_some_columns_is_the_sum_over_the_others():
    rng = np.random.default_rng(0)
    sizes = (2, 3, 2, 3)
    order = [(1, None), (0, 1), (3, 0), (2, None)]
    tables = [
        rng.dirichlet(np.ones(sizes[column]), size=(4,) if parent is None else (4, sizes[parent]))
        for column, parent in order
    ]
    tree = TreeModel(order, tables)
    every = np.array(list(itertools.product(*map(range, sizes))))
    np.testing.assert_allclose(tree.log_likelihood_of(every, range(4)), tree.log_likelihood(every))
    for columns in ([0], [1, 3], [2], [0, 2, 3], [3]):
        summed = pd.DataFrame(np.exp(tree.log_likelihood(every))).groupby([every[:, j] for j in columns])
        np.testing.assert_allclose(np.exp(tree.log_likelihood_of(every, columns)), summed.transform("sum"))


@pytest.mark.slow
def test_a_classifier_of_the_rows_takes_admissible_columns():
    X, y, s = mixed_table(2000)
    given = make(epsilon=15.0, balance=None, admissible="job").get_params(deep=False)
    del given["public_data"]
    with recording_noise(entropy=3):
        model = SyntheticDataClassifier(**given).fit(X, y, sensitive_features=s)
    assert model.generator_._admissible.columns == (5,)
    by_position = model.set_params(admissible=[5, -3]).fit(X, y, sensitive_features=s)
    assert by_position.generator_._admissible.columns == (5, 7)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"admissible": ["jobs"]}, "names 'jobs', which is no column that is learnt. Name columns of X"),
        ({"admissible": []}, "'admissible' parameter of PFGuardGenerator is empty"),
        ({"admissible": "job", "balance": {"f": 0.5, "m": 0.5}}, "'admissible' and a 'balance' with.*Leave out"),
        ({"admissible": "job", "balance": "fair"}, "'admissible' and a 'balance' with"),
        ({"admissible": "job", "backend": PATEGANBackend()}, "needs the tables of backend='marginals'"),
    ],
)
def test_what_cannot_be_admissible_is_said_before_anything_is_spent(change, message):
    X, y, s = mixed_table(50)
    ledger = PrivacyLedger()
    with pytest.raises(ValueError, match=message):
        make(ledger=ledger, **change).fit(X, y, sensitive_features=s)
    with pytest.raises(ValueError, match="'admissible' of PFGuardGenerator needs both y and groups"):
        make(ledger=ledger, admissible="job", classes=None).fit(X, sensitive_features=s)
    assert not ledger.entries


def test_a_label_that_follows_from_columns_cannot_be_a_condition(fitted):
    generator, _ = fitted
    with pytest.raises(ValueError, match="cannot fix y, as 'admissible' draws it"):
        generator.sample(10, conditions={"y": ">50K"})
    assert set(generator.sample(10, conditions={"sensitive_features": "f"}, return_sensitive=True)[1]) == {"f"}
