"""IDP3 where labels come back later: tickets, the gate's promise over them, and what is said of bad input."""

import copy
import pickle
import re
from threading import Thread

import numpy as np
import pandas as pd
import pytest
from fairlearn.reductions import EqualizedOdds, TruePositiveRateParity
from sklearn.linear_model import LogisticRegression

from skfairdp import FairDPSGDClassifier, PrivacyLedger
from skfairdp.exceptions import FairnessWarning
from skfairdp.fairness import RateBound, RateParity
from skfairdp.postprocessing import IDP3

ODDS = RateParity("selection_rate_by_label", 0.15)


def fitted(constraints=ODDS, **parameters):
    return IDP3(groups=["a", "b"], constraints=constraints, **parameters).fit(None, [0, 1])


@pytest.fixture
def stream():
    """A model that finds more of the positives of one group, and calls more of its negatives positive."""
    rng = np.random.default_rng(0)
    groups = rng.choice(["a", "b"], size=3000)
    y = (rng.random(3000) < 0.5).astype(int)
    chance = np.where(y == 1, np.where(groups == "a", 0.5, 0.75), np.where(groups == "a", 0.1, 0.25))
    return (rng.random(3000) < chance).astype(int), groups, y


@pytest.fixture
def started(stream):
    """The first 600 rows are past, with their labels."""
    predicted, groups, y = stream
    idp = fitted().update(predicted[:600], sensitive_features=groups[:600], tickets=range(600))
    return idp.update_labels(y[:600], tickets=range(600))


def gaps(answers, groups, y):
    rates = [[answers[(groups == z) & (y == label)].mean() for z in "ab"] for label in (0, 1)]
    return np.abs(np.diff(rates, axis=1)).ravel()


# ---- the promise ---------------------------------------------------------------------------------------------
def test_no_labels_that_come_back_in_any_order_open_the_gap_of_a_stream_asked_day_by_day(stream, started):
    predicted, groups, y = stream
    rng, idp, waiting, told = np.random.default_rng(1), started, [], np.full(3000, -1)
    told[:600] = predicted[:600]
    before = max(max(idp.worst_case().values()), 0.0)
    assert before > 0.03  # the past was nobody's choice
    for day in np.split(np.arange(600, 3000), 24):
        told[day] = idp.transform(predicted[day], sensitive_features=groups[day])
        idp.update(told[day], sensitive_features=groups[day], tickets=day)
        worst = max(idp.worst_case().values())
        assert worst <= max(before, 0.0) + 1e-9  # labels of whatever kind only ever lower it
        before = worst
        waiting += day[told[day] != -1].tolist()
        rng.shuffle(waiting)
        back, waiting = waiting[20:], waiting[:20]
        idp.update_labels(y[back], tickets=back)
    assert worst <= 0 and 0.5 < idp.coverage_ < 1
    known = np.setdiff1d(np.flatnonzero(told != -1), waiting)
    assert gaps(told[known], groups[known], y[known]).max() <= 0.15 + 1e-9
    assert gaps(predicted, groups, y).max() > 0.2
    assert idp.label_counts_.sum() == len(known) and idp.outstanding_counts_.sum() == len(waiting)


def test_rows_are_counted_when_their_label_comes_and_not_before():
    idp = fitted()
    idp.update([1, 0, -1, 1], sensitive_features=["a", "a", "b", "b"], tickets=["w", "x", "y", "z"])
    assert idp.counts_.tolist() == [[1, 1], [0, 1]] and idp.rejected_counts_.tolist() == [0, 1]
    assert idp.coverage_ == 0.75 and idp.rejection_rate_by_group_ == {"a": 0.0, "b": 0.5}
    assert not idp.label_counts_.any() and idp.outstanding_counts_.tolist() == [[1, 1], [0, 1]]
    idp.update_labels([0], tickets=["z"]).update_labels([1, None], tickets=["x", "w"])  # in another order, one never
    assert idp.label_counts_.tolist() == [[[0, 0], [1, 0]], [[0, 1], [0, 0]]]
    assert not idp.outstanding_counts_.any() and idp.counts_.tolist() == [[1, 1], [0, 1]]
    idp.update([1], sensitive_features=["b"], tickets=["y"])  # refused, then decided by a person
    idp.update_labels([1.0], tickets=["y"])
    assert idp.label_counts_[1].tolist() == [[0, 1], [0, 1]]


def test_predicting_changes_nothing_and_is_repeated_exactly(stream, started):
    predicted, groups, _ = stream
    before = started.worst_case()
    one, two = (started.transform(predicted, sensitive_features=groups) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(one == -1, started.reject_mask(predicted, sensitive_features=groups))
    assert started.worst_case() == before and (one == -1).any()


@pytest.mark.filterwarnings("ignore:IDP3 refuses all rows")
def test_a_stream_in_chunks_is_answered_as_in_one_call(stream, started):
    predicted, groups, _ = stream
    expected = started.transform(predicted, sensitive_features=groups)
    found = []
    for chunk in np.array_split(np.arange(3000), 7):
        found.append(started.transform(predicted[chunk], sensitive_features=groups[chunk]))
        started.update(found[-1], sensitive_features=groups[chunk], tickets=chunk)
    np.testing.assert_array_equal(np.concatenate(found), expected)


# ---- state ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("duplicate", [lambda idp: pickle.loads(pickle.dumps(idp)), copy.copy, copy.deepcopy])
def test_copies_and_pickles_know_the_tickets_and_count_on_by_themselves(started, duplicate):
    started.update([1], sensitive_features=["a"], tickets=["late"])
    other = duplicate(started)
    other.update_labels([1], tickets=["late"])
    assert other.outstanding_counts_.sum() == 0 and started.outstanding_counts_.sum() == 1
    started.update_labels([0], tickets=["late"])
    assert (started.label_counts_ != other.label_counts_).sum() == 2


def test_reset_and_fit_forget_counts_labels_and_tickets(started):
    for anew in (lambda: started.reset(), lambda: started.fit(None, [0, 1])):
        started.update([1, -1], sensitive_features=["a", "b"], tickets=["x", "y"])
        anew()
        assert not (started.counts_.any() or started.label_counts_.any() or started.outstanding_counts_.any())
        assert not started.rejected_counts_.any() and not hasattr(started, "coverage_")
        with pytest.raises(ValueError, match="waits for no label"):
            started.update_labels([1], tickets=["x"])


def test_threads_that_commit_answers_and_labels_lose_none():
    idp = fitted()

    def work(name):
        for i in range(30):
            idp.update([1, 0, -1], sensitive_features=["a", "b", "b"], tickets=[(name, i, j) for j in range(3)])
            idp.update_labels([0, 1], tickets=[(name, i, 0), (name, i, 1)])
            pickle.dumps(idp)

    threads = [Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert idp.label_counts_.tolist() == [[[0, 180], [0, 0]], [[0, 0], [180, 0]]]
    assert idp.counts_.tolist() == [[0, 180], [180, 0]] and not idp.outstanding_counts_.any()


# ---- what can be asked, and what is said -----------------------------------------------------------------------
@pytest.mark.parametrize(
    "constraints",
    [
        "equalized_odds",
        "equal_opportunity",
        "false_positive_rate_parity",
        "accuracy_parity",
        EqualizedOdds(difference_bound=0.1),
        TruePositiveRateParity(ratio_bound=0.8),
        RateBound("error_rate", upper=0.2),
        ["demographic_parity", RateBound("false_negative_rate", upper=0.3, groups=["a"])],
    ],
)
def test_every_constraint_on_labels_is_gated(constraints):
    idp = fitted(constraints, min_count=5000)
    assert len(idp.worst_case()) >= 1 and np.isnan(list(idp.worst_case().values())).all()


def test_around_a_classifier_it_refuses_its_predictions():
    rng = np.random.default_rng(2)
    X = pd.DataFrame(rng.normal(size=(400, 2)), columns=["u", "v"])
    y, groups = (X["u"] > 0).astype(int), np.where(X["v"] > 0, "a", "b")
    idp = IDP3(LogisticRegression(), constraints=RateParity("true_positive_rate", 0.05), groups=["a", "b"],
               min_count=200).fit(X, y, sensitive_features=groups)  # fmt: skip
    past = np.where(groups == "a", 1, y)
    for n in range(4):
        idp.update(past, sensitive_features=groups, tickets=[(n, i) for i in X.index])
        idp.update_labels(y, tickets=[(n, i) for i in X.index])
    refused = idp.predict(X, sensitive_features=groups) == -1
    assert refused.any() and not refused.all()
    with pytest.raises(ValueError, match=r"'tickets' of IDP3\.update must be one name per row"):
        idp.update(y, sensitive_features=groups)


BAD = {
    "twice": (lambda idp: idp.update([1, 1], sensitive_features=["a", "a"], tickets=[7, 7]), "a value twice"),
    "again": (lambda idp: idp.update([1], sensitive_features=["a"], tickets=["x"]), "has no label yet"),
    "missing": (lambda idp: idp.update([1], sensitive_features=["a"], tickets=[None]), "without missing values"),
    "nan": (lambda idp: idp.update([1], sensitive_features=["a"], tickets=[np.nan]), "without missing values"),
    "list": (lambda idp: idp.update([1], sensitive_features=["a"], tickets=[[1]]), "numbers, strings or tuples"),
    "text": (lambda idp: idp.update([1], sensitive_features=["a"], tickets="t"), "one name per row"),
    "short": (lambda idp: idp.update([1, 1], sensitive_features=["a", "a"], tickets=["t"]), "one name per row"),
    "unknown": (lambda idp: idp.update_labels([0, 1], tickets=["x", "t"]), "at position 1, that waits for no label"),
    "refused": (lambda idp: idp.update_labels([1], tickets=["no"]), "was refused there"),
    "label twice": (lambda idp: idp.update_labels([0, 1], tickets=["x", "x"]), "name a row twice. Give every row one"),
    "class": (lambda idp: idp.update_labels([7], tickets=["x"]), "y_true of IDP3"),
    "reject": (lambda idp: idp.update_labels([-1], tickets=["x"]), "y_true of IDP3"),
    "number of labels": (lambda idp: idp.update_labels([1, 1], tickets=["x"]), "one name per row"),
}  # fmt: skip


@pytest.mark.parametrize(("call", "message"), BAD.values(), ids=BAD)
def test_bad_calls_name_the_mistake_and_count_nothing(call, message):
    idp = fitted().update([1, 1, -1], sensitive_features=["a", "b", "b"], tickets=["x", "z", "no"])
    idp.update_labels([1], tickets=["z"])
    before = idp.counts_, idp.label_counts_, idp.outstanding_counts_
    with pytest.raises(ValueError, match=message):
        call(idp)
    after = idp.counts_, idp.label_counts_, idp.outstanding_counts_
    assert all(np.array_equal(one, other) for one, other in zip(before, after, strict=True))
    with pytest.raises(ValueError, match="waits for no label"):
        idp.update_labels([1], tickets=["z"])  # it has one
    idp.update_labels([0], tickets=["x"])  # still waiting


def test_without_constraints_on_labels_there_are_no_tickets_and_labels():
    idp = fitted("demographic_parity")
    for call, message in [
        (lambda: idp.update([1], sensitive_features=["a"], tickets=[1]), "Leave them out"),
        (lambda: idp.update_labels([1], tickets=[1]), "needs 'constraints' on true labels"),
        (lambda: idp.worst_case(), "needs 'constraints' on true labels"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()
    assert not hasattr(idp, "label_counts_") and not hasattr(idp, "outstanding_counts_")
    assert not hasattr(IDP3(), "label_counts_")


def test_groups_and_classes_that_constraints_name_are_checked_before_anything_is_spent():
    rng = np.random.default_rng(1)
    ledger = PrivacyLedger()
    private = FairDPSGDClassifier(classes=[0, 1], groups=["a", "b"], ledger=ledger)
    for bad in (RateBound("error_rate", upper=0.2, groups=["c"]), RateParity("true_positive_rate", 0.9, of_class=3)):
        with pytest.raises(ValueError, match="which is none of"):
            IDP3(private, constraints=bad).fit(
                rng.normal(size=(40, 2)), rng.integers(2, size=40), sensitive_features=rng.choice(["a", "b"], size=40)
            )
    assert not ledger.entries


@pytest.mark.parametrize(("asked", "needed"), [("equalized_odds", 5000), (RateParity("accuracy", 0.05), 200)])
def test_a_difference_that_is_the_chance_of_few_labels_is_said_with_how_many_would_do(asked, needed):
    with pytest.warns(FairnessWarning, match=re.escape(f"Raise 'min_count' to {needed}")):
        fitted(asked)
    fitted(asked, min_count=needed)  # says nothing


def test_a_call_says_when_constraints_are_not_in_force_or_nothing_can_be_answered():
    idp = fitted(min_count=30)
    with pytest.warns(FairnessWarning, match="does not enforce all of its constraints yet: fewer than min_count=30"):
        assert not idp.reject_mask([1] * 500, sensitive_features=["a"] * 500).any()
    answers, groups, y = [0, 0, 1, 1] * 60, ["a", "b"] * 120, [0] * 120 + [1] * 120
    idp.update(answers, sensitive_features=groups, tickets=range(240)).update_labels(y, tickets=range(240))
    idp.update(answers, sensitive_features=groups, tickets=range(240))
    with pytest.warns(FairnessWarning, match="refuses all rows: .* by the label that comes back.* to update_labels"):
        assert idp.reject_mask([1, 0], sensitive_features=["a", "b"]).all()
    idp.update_labels([None] * 240, tickets=range(240))
    assert not idp.reject_mask([1, 0], sensitive_features=["a", "b"]).any()


def test_a_state_that_no_answer_leads_out_of_asks_for_people():
    idp = fitted(RateParity("selection_rate_by_label", 0.1))
    # Of a more positives are found, and of b more negatives are called positive.
    table = [("a", 1, 1, 80), ("a", 1, 0, 20), ("a", 0, 1, 20), ("a", 0, 0, 80),
             ("b", 1, 1, 60), ("b", 1, 0, 40), ("b", 0, 1, 40), ("b", 0, 0, 60)]  # fmt: skip
    groups, y, answers = (np.repeat([row[c] for row in table], [row[3] for row in table]) for c in range(3))
    idp.update(answers, sensitive_features=groups, tickets=range(400)).update_labels(y, tickets=range(400))
    with pytest.warns(FairnessWarning, match="refuses all rows: .* let people decide and record that"):
        assert idp.reject_mask([1, 0, 1, 0], sensitive_features=["a", "a", "b", "b"]).all()
