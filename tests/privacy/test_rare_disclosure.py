"""Values of one record only: what their rare disclosure costs, and how rare it is."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.special import ndtr

from skfairdp import PrivacyLedger
from skfairdp.exceptions import BudgetExceededError
from skfairdp.privacy import (
    CommonValues,
    GaussianDpEvent,
    LaplaceDpEvent,
    PrivacySpent,
    RareDisclosure,
    RepeatAndSelectDpEvent,
    WorstOf,
    compose,
    epsilon_of,
    gdp_delta,
    repeat,
    verify_file,
)
from tests._tools.inside import SecondOpinion
from tests._tools.replay import distance
from tests._tools.sources import RecordingNoise
from tests._tools.statements import digested

GAUSSIAN = GaussianDpEvent(4.0)
RECORD = {"protects": "record", "neighboring_relation": "replace one record"}


@settings(max_examples=40, deadline=None)
@given(st.floats(1e-9, 1e-4), st.integers(1, 20), st.floats(1.0, 20.0), st.sampled_from([1e-3, 1e-5, 1e-8]))
def test_delta_pays_for_the_disclosure_and_the_rest_for_the_noise(probability, times, noise, delta):
    """ε is where P + (1 - P) δ(ε) of the Gaussian alone reaches δ, or a little above."""
    event = compose(GaussianDpEvent(noise), repeat(RareDisclosure(probability), times))
    epsilon = epsilon_of(event, delta)
    exposed = -math.expm1(times * math.log1p(-probability))
    if math.isinf(epsilon):
        assert delta <= times * probability * (1 + 1e-9)
    else:
        assert exposed + (1 - exposed) * gdp_delta(epsilon, 1 / noise) <= delta * (1 + 1e-12)
        assert SecondOpinion(event).epsilon(delta) <= epsilon * (1 + 1e-9) + 1e-12
        assert epsilon <= epsilon_of(GaussianDpEvent(noise), delta - times * probability * (1 + 1e-9)) * (1 + 1e-6)


def test_there_is_no_epsilon_at_a_delta_that_the_disclosure_uses_up():
    rare = repeat(RareDisclosure(1e-6), 10)
    assert epsilon_of(rare, 1.01e-5) == 0
    assert epsilon_of(rare, 1e-5) == epsilon_of(compose(GAUSSIAN, rare), 1e-5) == epsilon_of(rare, 0) == math.inf
    assert SecondOpinion(compose(GAUSSIAN, rare)).epsilon(9.9e-6) == math.inf
    assert SecondOpinion(rare).mu is None


@pytest.mark.few(1)
@pytest.mark.parametrize("also", [[RareDisclosure(1e-6)], [], [LaplaceDpEvent(5.0), RareDisclosure(1e-6)]])
def test_what_every_record_pays_is_part_of_every_branch(also):
    branches = (compose(GAUSSIAN, repeat(RareDisclosure(1e-6), 8)), GaussianDpEvent(2.0), LaplaceDpEvent(3.0))
    event = compose(WorstOf(branches), *also)
    worst = max(epsilon_of(compose(branch, *also), 1e-5) for branch in branches)
    assert epsilon_of(event, 1e-5) == worst
    assert 0.99 * worst < SecondOpinion(event).epsilon(1e-5) <= worst * (1 + 1e-9)


def test_a_worst_case_is_the_worst_of_its_branches_each_with_its_own_disclosure():
    rare, more = RareDisclosure(1e-6), GaussianDpEvent(2.0)
    assert epsilon_of(WorstOf((GAUSSIAN, rare)), 1e-5) == epsilon_of(GAUSSIAN, 1e-5)
    branches = (compose(GAUSSIAN, repeat(rare, 8)), more, LaplaceDpEvent(3.0))
    for several in (repeat(WorstOf(branches), 2), compose(WorstOf(branches), WorstOf((more, rare)))):
        assert epsilon_of(several, 1e-5) >= epsilon_of(compose(more, more), 1e-5)
        assert SecondOpinion(several).epsilon(1e-5) <= epsilon_of(several, 1e-5) * (1 + 1e-9)
    assert (
        epsilon_of(WorstOf((GAUSSIAN, rare)), 9e-7)
        == SecondOpinion(WorstOf((GAUSSIAN, rare))).epsilon(9e-7)
        == math.inf
    )
    assert epsilon_of(WorstOf((rare, RareDisclosure(2e-6))), 1e-5) == 0
    assert epsilon_of(compose(WorstOf((rare, LaplaceDpEvent(2.0))), repeat(rare, 9)), 1e-5) == math.inf


def test_the_best_of_many_trials_has_no_proof_with_disclosures():
    assert epsilon_of(RepeatAndSelectDpEvent(compose(GAUSSIAN, RareDisclosure(1e-9)), 5.0, 0.5), 1e-5) == math.inf


def test_a_ledger_adds_disclosures_up_and_refuses_the_one_that_delta_cannot_pay():
    ledger = PrivacyLedger(epsilon=5.0, delta=1e-5)
    for _ in range(9):
        ledger.charge(RareDisclosure(1.05e-6), label="a schema", **RECORD)
    with pytest.raises(BudgetExceededError):
        ledger.charge(RareDisclosure(1.05e-6), label="a schema", **RECORD)


@settings(max_examples=60, deadline=None)
@given(st.floats(0.5, 5000.0), st.floats(1e-14, 0.49))
def test_one_record_reaches_the_threshold_with_at_most_the_probability_that_is_paid(sigma, failure):
    mechanism = CommonValues(sigma, failure)
    grid = mechanism._counts.grid
    assert mechanism.threshold / grid == round(mechanism.threshold / grid)
    reached = float(ndtr((1 - (mechanism.threshold - grid / 2)) / sigma))
    assert reached <= failure
    assert float(ndtr((1 - (mechanism.threshold - 3 * grid / 2)) / sigma)) >= failure * (1 - 1e-6)


def test_a_value_of_one_record_is_shown_as_often_as_is_paid():
    """The frequency in real runs, and its Clopper-Pearson bound at one in ten thousand."""
    from scipy.stats import beta

    mechanism, runs = CommonValues(2.0, 0.05), 4000
    source = RecordingNoise(entropy=3)
    shown = sum(mechanism.release({"common": 50, "Ms Smith": 1}, source) == ("Ms Smith", "common") for _ in range(runs))
    assert beta.ppf(1e-4, shown, runs - shown + 1) <= mechanism.failure
    assert beta.ppf(1 - 1e-4, shown + 1, runs - shown) >= mechanism.failure * 0.9  # nothing is given away either


def test_no_noise_shows_exactly_what_reaches_the_threshold():
    mechanism = CommonValues(1.0, 1e-3)
    at = math.ceil(mechanism.threshold)
    counts = {"b": at, 3: at, "a": at - 1, None: at + 5, -1.5: 1000}
    assert mechanism.noisy(RecordingNoise(0), counts) == (None, -1.5, 3, "b")


@settings(max_examples=30, deadline=None)
@given(st.permutations(["d", "c", "a", "b", 7, 1.5, None]), st.integers(0, 5))
def test_the_order_of_appearance_does_not_show(order, seed):
    mechanism = CommonValues(3.0, 1e-3)
    counts = {value: 10 + i for i, value in enumerate(["a", "b", "c", "d", 1.5, 7, None])}
    shuffled = {value: counts[value] for value in order}
    expected = mechanism.noisy(RecordingNoise(seed=seed), counts)
    assert mechanism.noisy(RecordingNoise(seed=seed), shuffled) == expected


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from("abcde"), min_size=1, max_size=30), st.integers(0, 29), st.sampled_from("abcdexyz"))
def test_a_replaced_record_moves_the_counts_by_no_more_than_is_declared(cells, at, other):
    changed = [*cells]
    changed[at % len(cells)] = other
    mechanism = CommonValues(3.0, 1e-3)
    source = RecordingNoise(0)
    for column in (cells, changed):
        mechanism.release({value: column.count(value) for value in set(column)}, source)
    moved, allowed = distance(*source.releases)
    assert moved <= allowed == math.sqrt(2)


@pytest.mark.parametrize("failure", [0.0, 0.5, -1.0, math.nan])
def test_a_failure_that_is_no_small_probability_is_refused(failure):
    with pytest.raises(ValueError, match="failure must lie"):
        CommonValues(1.0, failure)


@pytest.mark.parametrize("sigma", [0.0, -1.0, math.inf, math.nan])
def test_a_scale_that_is_none_is_refused(sigma):
    with pytest.raises(ValueError, match="sigma must be"):
        CommonValues(sigma, 0.1)


def test_its_event_is_noise_on_counts_and_a_rare_disclosure():
    assert CommonValues(2.0, 1e-6).event == compose(GaussianDpEvent(2.0 / math.sqrt(2)), RareDisclosure(1e-6))
    assert np.isfinite(epsilon_of(CommonValues(20.0, 1e-6).event, 1e-5))


def test_a_statement_says_where_delta_does_not_suffice_and_is_refuted_where_it_says_less(tmp_path):
    event = compose(GAUSSIAN, repeat(RareDisclosure(1e-7), 10))
    document = PrivacySpent.of(event, 1e-5, **RECORD).statement(subject="a schema").to_dict()
    path = tmp_path / "statement.json"
    path.write_text(json.dumps(document))
    assert all(check.holds for check in verify_file(path))
    (at,) = (i for i, point in enumerate(document["curve"]) if point["delta"] == 1e-7)
    assert document["curve"][at]["epsilon"] == "inf" and document["mu"] is None
    assert any("part of δ" in row["noise"] for row in document["releases"])
    document["curve"][at]["epsilon"] = 50.0
    path.write_text(json.dumps(digested(document)))
    assert not all(check.holds for check in verify_file(path))
