"""FairDPSGDRegressor(constraints="demographic_parity"): one fit, one budget, and distributions that agree."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest

from skfairdp import PrivacyLedger
from skfairdp.exceptions import FairnessWarning
from skfairdp.gradient import FairDPSGDRegressor
from skfairdp.metrics import ks_disparity
from skfairdp.privacy import GaussianMechanism, NeighboringRelation, epsilon_of
from skfairdp.schema import Category, Number, Schema
from tests._tools.sources import recording_noise

BOUNDS = (0.0, 60.0)


def made(n, seed):
    rng = np.random.default_rng(seed)
    groups = rng.integers(2, size=n)
    X = rng.normal(size=(n, 3))
    X[:, 0] += 0.5 * groups
    return X, 25 + X @ [3.0, 2.0, 0.0] + 3 * rng.normal(size=n), groups


X, Y, GROUPS = made(5000, 0)
X_NEW, Y_NEW, GROUPS_NEW = made(20_000, 1)


def asked(**options):
    given = {"constraints": "demographic_parity", "bounds": BOUNDS, "groups": [0, 1], "random_state": 0, **options}
    return FairDPSGDRegressor(**given)


def fitted(rows=slice(None), **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairnessWarning)
        return asked(**options).fit(X[rows], Y[rows], sensitive_features=GROUPS[rows])


def ks(amounts):
    return ks_disparity(None, amounts, sensitive_features=GROUPS_NEW)


def test_distributions_agree_at_a_tenth_more_error_within_the_same_epsilon():
    with recording_noise(entropy=0):
        plain = FairDPSGDRegressor(epsilon=1.0, bounds=BOUNDS, random_state=0).fit(X, Y)
        fair = fitted(epsilon=1.0)
    before, after = plain.predict(X_NEW), fair.predict(X_NEW, sensitive_features=GROUPS_NEW)
    assert ks(before) > 0.12 and ks(after) < 0.07 and ks(after) <= fair.gap_bound_ < 0.2
    assert np.mean((after - Y_NEW) ** 2) < 1.12 * np.mean((before - Y_NEW) ** 2) and fair.epsilon_spent_ <= 1.0
    for group in (0, 1):  # every group has taught the network
        mine = group == GROUPS_NEW
        assert np.corrcoef(after[mine], Y_NEW[mine])[0, 1] > 0.7
    assert fair.score(X_NEW, Y_NEW, sensitive_features=GROUPS_NEW) > 0.5
    again = pickle.loads(pickle.dumps(fair)).predict(X_NEW, sensitive_features=GROUPS_NEW)
    np.testing.assert_array_equal(again, after)


@pytest.mark.parametrize("options", [{}, {"public_n_rows": 5000}])
def test_everything_that_is_released_is_on_the_event_and_within_epsilon(options):
    ledger = PrivacyLedger(epsilon=1.0)
    with recording_noise(entropy=0) as record:
        fair = fitted(epsilon=1.0, ledger=ledger, **options)
    plan = fair._plan(fair._read(X, Y, sensitive_features=GROUPS))
    tables = plan.judge.tables
    released = [one.mechanism for one in record.of(GaussianMechanism)]
    assert released[-5:] == [*[tables.cells.counts] * 3, tables.table, tables.look]
    assert len(released) == plan.step.steps + 3 * (plan.tables is not None) + 3 + 1 + 5  # where amounts lie, the check
    (entry,) = ledger.entries
    assert entry.event == plan.event and 0.97 < epsilon_of(plan.event, 1e-5) <= 1.0
    assert "a noisy table of moved scores by group" in entry.releases
    assert plan.relation is (NeighboringRelation.ADD_OR_REMOVE_ONE if options else NeighboringRelation.ZERO_OUT)


def test_counts_with_exposure_have_rates_that_agree():
    rng = np.random.default_rng(0)
    years = rng.uniform(0.2, 2.0, len(X))
    counts = rng.poisson(years * np.exp(0.5 * X[:, 0]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairnessWarning)
        fair = asked(loss="poisson", bounds=(0, 20), epsilon=3.0)
        fair.fit(X, counts, exposure=years, sensitive_features=GROUPS)
    rates = fair.predict(X_NEW, sensitive_features=GROUPS_NEW)
    assert ks(np.exp(0.5 * X_NEW[:, 0])) > 0.15 > 0.09 > ks(rates)
    twice = fair.predict(X_NEW, sensitive_features=GROUPS_NEW, exposure=np.full(len(X_NEW), 2.0))
    np.testing.assert_allclose(twice, 2 * rates)


def test_groups_come_from_the_columns_of_a_table_that_a_schema_describes():
    table = pd.DataFrame(X, columns=list("abc")).assign(sex=np.where(GROUPS == 1, "f", "m"), cost=Y)
    columns = {name: Number(-6, 6) for name in "abc"} | {"cost": Number(0, 60)}
    schema = Schema({**columns, "sex": Category(["f", "m"])}, label="cost", groups=["sex"])
    model = FairDPSGDRegressor(epsilon=2.0, constraints="demographic_parity", schema=schema, random_state=0)
    model = model.fit(table)
    assert np.isfinite(model.predict(table)).all() and model.score(table) > 0.4


def test_a_gap_that_is_left_and_a_group_that_nobody_sees_are_told():
    with pytest.warns(FairnessWarning, match="of a group are hidden by noise"):
        few = asked(epsilon=0.3).fit(X[:400], Y[:400], sensitive_features=GROUPS[:400])
    assert few.gap_bound_ == 1.0 and few.constraint_holds_ == "within the noise"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"gamma": 2.0}, "the largest Kolmogorov-Smirnov distance"),
        ({"lam": 1.0}, "at no price"),
        ({"constraints": ["demographic_parity", "mean_parity"]}, "'demographic_parity' alone"),
        ({"groups": [0]}, "compares every two 'groups'"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_spent(options, says):
    ledger = PrivacyLedger()
    with pytest.raises(ValueError, match=says):
        asked(ledger=ledger, **options).fit(X, Y, sensitive_features=0 * GROUPS if "groups" in options else GROUPS)
    with pytest.raises(ValueError, match="groups of the private rows"):
        asked(ledger=ledger).fit(X, Y)
    assert ledger.entries == ()


def test_predictions_need_the_group_and_without_a_constraint_they_do_not():
    fair = fitted(slice(0, 2000), epsilon=5.0)
    with pytest.raises(ValueError, match="needs sensitive_features to predict"):
        fair.predict(X_NEW)
    held = fitted(slice(0, 2000), epsilon=5.0, lam=0)
    assert not hasattr(held, "gap_") and len(held.predict(X_NEW)) == len(X_NEW)
