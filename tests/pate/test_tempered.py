"""What tables say of a label is believed as far as votes confirm: columns that say the same count once."""

import numpy as np
import pytest
from scipy.special import logit
from sklearn.linear_model import LogisticRegression

from skfairdp import FairPATEClassifier
from skfairdp.pate._query_plan import LEAST, rehearsed_votes, temperature_scaled
from tests._tools.sources import recording_noise


def shares_of(scores):
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def scores(n=3000, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, n_classes)) + np.arange(n_classes)


@pytest.mark.covering
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("times", [1.5, 2.5])
def test_tables_that_count_the_same_column_several_times_are_made_as_sure_as_one(n_classes, times):
    """Teachers who turn every share towards one half by the same rule show the right power all the same."""
    right = shares_of(scores(n_classes=n_classes))
    twice = shares_of(times * np.log(right))
    weak = [shares_of(0.4 * np.log(shares)) for shares in (right, twice)]
    found = temperature_scaled(twice, np.arange(len(right)), *weak)
    rates = twice.mean(axis=0)
    np.testing.assert_allclose(found.mean(axis=0), rates, atol=1e-3)
    spread = [np.std(np.log(shares[:, -1] / shares[:, 0])) for shares in (right, found)]
    assert spread[1] == pytest.approx(spread[0], rel=0.03)


def test_tables_that_are_right_or_not_sure_enough_stay_as_they_are():
    told = shares_of(scores())
    queries = np.arange(0, 3000, 3)
    for sharper in (1.0, 3.0):
        votes = shares_of(sharper * np.log(told[queries]))
        assert temperature_scaled(told, queries, votes, told[queries] if sharper > 1 else 0.999 * votes + 5e-4) is told


@pytest.mark.slow
def test_noise_in_the_votes_does_not_make_tables_less_sure_on_average():
    told, rng = shares_of(scores()), np.random.default_rng(0)
    spreads = []
    for _ in range(40):
        noisy = told[:, 1] + 0.5 * rng.normal(size=len(told))
        found = temperature_scaled(told, np.arange(len(told)), np.column_stack([1 - noisy, noisy]), told)
        spreads.append(np.std(np.log(found[:, 1] / found[:, 0])) / np.std(np.log(told[:, 1] / told[:, 0])))
    assert 0.9 < np.mean(spreads) <= 1.0 + 1e-9


def test_votes_that_contradict_the_tables_leave_little_of_them_and_no_infinity():
    told = shares_of(scores())
    found = temperature_scaled(told, np.arange(len(told)), told[:, ::-1], told)
    assert np.isfinite(found).all()
    assert np.std(np.log(found[:, 1] / found[:, 0])) == pytest.approx(
        LEAST * np.std(np.log(told[:, 1] / told[:, 0])), rel=0.05
    )


def test_where_not_even_rows_of_the_tables_teach_anything_nothing_is_changed():
    told, rng = shares_of(scores()), np.random.default_rng(0)
    flat = np.full(told.shape, 0.5)
    assert temperature_scaled(told, np.arange(len(told)), rng.random(told.shape), flat) is told


def test_a_rehearsal_reads_rows_and_labels_of_the_tables_only_and_repeats():
    told = shares_of(scores(800))
    X = np.log(told[:, 1:] / told[:, :1])
    shares = [
        rehearsed_votes(
            "logistic", X, told, np.arange(200), n_rows=20_000, n_teachers=250, rng=np.random.default_rng(1)
        )
        for _ in range(2)
    ]
    np.testing.assert_array_equal(*shares)
    np.testing.assert_allclose(shares[0].sum(axis=1), 1.0)
    assert np.corrcoef(shares[0][:, 1], told[:200, 1])[0, 1] > 0.8


def repeated(n, seed):
    """One number eight times, with errors of its own each time, another once, and a class that follows both."""
    rng = np.random.default_rng(seed)
    one, other = rng.normal(size=(2, n))
    y = (rng.random(n) < 1 / (1 + np.exp(1.5 - 1.5 * one - other))).astype(int)
    return np.column_stack([*(one + 0.5 * rng.normal(size=(8, n))), other]), y


def test_a_fit_without_public_rows_is_no_surer_than_it_may_be():
    """Without the votes' word on it the slope is .65 to .7."""
    (X, y), (X_test, y_test) = repeated(12_000, 0), repeated(8000, 1)
    with recording_noise(entropy=0):
        model = FairPATEClassifier(epsilon=4.0, classes=[0, 1], groups=[0, 1], gamma=None, random_state=0)
        model.fit(X, y, sensitive_features=np.arange(12_000) % 2)
    odds = logit(np.clip(model.predict_proba(X_test)[:, 1], 1e-6, 1 - 1e-6))
    assert LogisticRegression(C=1e6).fit(odds[:, None], y_test).coef_[0, 0] > 0.8
