"""SF-PATE says beforehand, from public numbers, where its votes cannot hold a constraint, and what would do."""

import re
import warnings

import numpy as np
import pytest

from skfairdp import PrivacyLedger, SFPATEClassifier
from skfairdp.exceptions import BudgetExceededError, FairnessWarning
from skfairdp.lagrangian import LagrangianClassifier, mlp
from skfairdp.metrics import demographic_disparity
from skfairdp.pate import SoftVoting
from tests._tools.inside import FAIR_NOISE, FAIR_PART, FairForecast, VoteForecast
from tests._tools.sources import recording_noise

TOLD = "The votes are too noisy or too few for the constraint of SFPATEClassifier"
QUICK = LagrangianClassifier(net=mlp((), max_epochs=3, batch_size=8), dual_steps=5)


def table(n, seed):
    rng = np.random.default_rng(seed)
    groups = rng.integers(2, size=n)
    X = rng.normal(size=(n, 4)) + np.outer(groups, [1.2, 0.6, 0, 0])
    y = (1.5 * X[:, 0] + rng.logistic(size=n) > 1).astype(int)
    return X, y, groups


def forecast(n_rows, epsilon=1.0, *, n_teachers=None, n_values=2, sigma=None, fair_parts=False):
    votes = VoteForecast(n_rows, n_values, epsilon=epsilon, delta=1e-5, n_teachers=n_teachers)
    return FairForecast(votes, n_rows, sigma, fair_parts)


def told(caught):
    return [str(one.message) for one in caught if TOLD in str(one.message)]


@pytest.mark.parametrize("fair_parts", [False, True])
@pytest.mark.parametrize("epsilon", [0.1, 0.3, 1.0])
@pytest.mark.parametrize("n_rows", [300, 9000])
def test_what_is_said_to_be_enough_is_enough_and_hardly_less(n_rows, epsilon, fair_parts):
    found = forecast(n_rows, epsilon, fair_parts=fair_parts)
    if not found.problems:
        assert found.noise <= FAIR_NOISE and (not fair_parts or found.votes.n_rows // found.votes.n_parts >= FAIR_PART)
        return
    rows, larger = found.enough
    if rows is None and larger is None:
        assert "More rows at a larger epsilon would suffice" in found.words("SFPATEClassifier")
    if rows is not None:  # None where even the most teachers there may be are too few
        assert not forecast(rows, epsilon, fair_parts=fair_parts).problems
        assert forecast(int(0.8 * rows), epsilon, fair_parts=fair_parts).problems
        assert f"{rows:,} rows" in found.words("SFPATEClassifier")
    if larger is not None:
        assert not forecast(n_rows, larger, fair_parts=fair_parts).problems
        assert forecast(n_rows, 0.8 * larger, fair_parts=fair_parts).problems


def test_noise_that_is_given_counts_and_no_epsilon_is_named_against_it():
    assert not forecast(50_000).problems
    loud = forecast(50_000, sigma=1e6)
    assert loud.problems and loud.enough[1] is None and "A smaller sigma" in loud.words("SFPATEClassifier")


def test_a_given_number_of_teachers_counts_and_one_value_needs_no_votes():
    few = forecast(50_000, n_teachers=3)
    assert few.problems and few.enough[0] is None and "another number of teachers" in few.words("SFPATEClassifier")
    assert not forecast(20, n_values=1, fair_parts=True).problems


def test_winners_on_few_rows_are_not_enough_and_on_many_are():
    votes = VoteForecast(50_000, 2, epsilon=1.0, delta=1e-5)
    few, many = (FairForecast(votes, n, None, fair_parts=False, hard=True) for n in (200, FAIR_PART))
    assert not many.problems and few.problems and few.enough[0] is None
    assert f"Voting='soft' or max_queries={FAIR_PART} or more would suffice" in few.words("SFPATEClassifier")


@pytest.mark.slow
def test_a_small_group_is_told_of_by_the_released_votes_where_nothing_was_said_before():
    X, y, groups = table(12_000, 3)
    rare = np.flatnonzero(groups)[::8]  # one row in nine
    kept = np.sort(np.concatenate([np.flatnonzero(groups == 0), rare]))
    learner = LagrangianClassifier(net=mlp((), max_epochs=6, batch_size=8), dual_steps=5)
    given = {"epsilon": 0.7, "classes": [0, 1], "groups": [0, 1], "fair_estimator": learner, "random_state": 0}
    with recording_noise(entropy=0), pytest.warns(FairnessWarning, match="the smallest group has a share") as caught:
        SFPATEClassifier(**given).fit(X[kept], y[kept], sensitive_features=groups[kept])
    assert not told(caught)


@pytest.mark.parametrize(
    "settings", [{}, {"variant": "teacher"}, {"voting": "gnmax"}, {"voting": SoftVoting(sigma=1e4)}]
)
def test_it_is_said_before_anything_is_spent(settings):
    """Whatever the budget says afterwards: here it refuses every charge."""
    X, y, groups = table(200, 0)
    ledger = PrivacyLedger(epsilon=1e-6)
    model = SFPATEClassifier(
        epsilon=0.5, classes=[0, 1], groups=[0, 1], fair_estimator=QUICK, ledger=ledger, random_state=0, **settings
    )
    with pytest.warns(FairnessWarning, match=TOLD), pytest.raises(BudgetExceededError):
        model.fit(X, y, sensitive_features=groups)
    assert not ledger.entries


def test_it_is_the_same_whatever_the_groups_are():
    X, y, groups = table(200, 1)
    said = []
    for private in (groups, 1 - groups, np.zeros_like(groups)):
        model = SFPATEClassifier(epsilon=0.5, classes=[0, 1], groups=[0, 1], n_teachers=5, fair_estimator=QUICK)
        with recording_noise(entropy=0), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(X, y, sensitive_features=private)
        said.append(told(caught))
    assert len(said[0]) == 1 and said[0] == said[1] == said[2]


@pytest.mark.slow
@pytest.mark.parametrize(("n_rows", "epsilon"), [(600, 1.0), (4000, 0.5)])
def test_a_fair_student_that_leaves_half_of_the_gap_says_so(n_rows, epsilon):
    X, y, groups = table(n_rows + 3000, 2)
    train, test = slice(0, n_rows), slice(n_rows, None)
    model = SFPATEClassifier(epsilon=epsilon, classes=[0, 1], groups=[0, 1], random_state=0)
    with recording_noise(entropy=n_rows), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X[train], y[train], sensitive_features=groups[train])
    left = demographic_disparity(None, model.predict(X[test]), sensitive_features=groups[test])
    before = demographic_disparity(None, y[test], sensitive_features=groups[test])
    assert told(caught) or left <= before / 2, (left, before)
    assert all(
        re.search(r"rows or epsilon=[\d.]+ would suffice|Epsilon=[\d.]+ would suffice", words) for words in told(caught)
    )
