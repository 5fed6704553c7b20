"""What PATE and FairPATE do: votes, gate, labels, and the student that learns from them."""

import warnings
from collections import Counter

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from skfairdp import FairPATEClassifier, PATEClassifier, PrivacyLedger, PublicData
from skfairdp.exceptions import FairnessWarning
from skfairdp.fairness import FairnessGate, largest_disparity
from skfairdp.pate import ConfidentVoting, ConstantStudent, LabelGate, SoftVoting, VoteGate
from skfairdp.privacy import GNMax, NoisyThreshold, NoisyVotes
from tests._tools.inside import UNANSWERED, default_n_teachers, warn_of_gaps
from tests._tools.problems import make_rows
from tests._tools.sources import ZeroNoise, installed

pytestmark = [
    # Small data: what the warnings say is tested where they are the subject.
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning"),
    pytest.mark.filterwarnings("ignore:.*draws its noise from 'noise_seed'"),
]
VOTINGS = ("soft", "confident", "gnmax")
every_voting = pytest.mark.parametrize("voting", VOTINGS)


def fair(**more):
    given = {"epsilon": 20.0, "n_teachers": 20, "classes": [0, 1], "random_state": 0, "noise_seed": 0}
    return FairPATEClassifier(**{"gate": VoteGate(min_count=20), **given, **more})


@pytest.fixture
def released(monkeypatch):
    """Count the releases of each mechanism, and add up their squared Gaussian costs."""
    counts = Counter()

    def watch(cls, n_of):
        real = cls.release

        def release(self, values, *args, **kwargs):
            counts[cls.__name__] += n_of(values)
            if self.noise == "gaussian" and cls is not NoisyVotes:
                counts["mu_squared"] += self.mu_squared
            return real(self, values, *args, **kwargs)

        monkeypatch.setattr(cls, "release", release)

    watch(NoisyVotes, len)
    watch(NoisyThreshold, lambda value: 1)
    watch(GNMax, lambda value: 1)
    return counts


# ---- what is released ----------------------------------------------------------------------------------------
def test_soft_votes_release_each_query_once(rows, released):
    model = fair(voting=SoftVoting(max_queries=150)).fit(rows.X, rows.y, X_public=rows.public)
    assert released == {"NoisyVotes": 150} and model.released_votes_.shape == (150, 2)
    np.testing.assert_allclose(model.released_votes_.sum(axis=1), 1)  # two classes: one number, and its rest
    model.refit(gamma=0.3).refit(voting__threshold=0.7).predict(rows.X)
    assert released["NoisyVotes"] == 150


def test_noisy_maxima_release_each_query_once(rows, released):
    model = fair(voting="gnmax").fit(rows.X, rows.y, X_public=rows.public)
    assert released["GNMax"] == 200 == model.n_queries_ and released["NoisyThreshold"] == 0
    assert set(model.released_votes_) <= {0, 1}


@pytest.mark.parametrize("noise", ["gaussian", "discrete_gaussian"])
@pytest.mark.parametrize("max_answers", [None, 7])
def test_confident_votes_stay_within_declared_counts(rows, released, noise, max_answers):
    model = fair(voting=ConfidentVoting(accounting="binary", max_answers=max_answers, noise=noise), gamma=None)
    model.fit(rows.X, rows.y, X_public=rows.X_public)
    cap = 120 if max_answers is None else max_answers
    assert released["NoisyThreshold"] <= 200 and released["GNMax"] <= cap
    if max_answers is not None:  # most queries pass: without the cap there would be many more
        assert released["GNMax"] == 7 == model.n_answered_
        assert released["NoisyThreshold"] < 200  # nothing is asked that could not be finished


@pytest.mark.parametrize("gamma", [None, 0.05])
@pytest.mark.parametrize("epsilon", [2.0, 5.0])
def test_confident_votes_stay_within_the_filter(rows, released, gamma, epsilon):
    model = fair(voting=ConfidentVoting(accounting="gdp", sigma=8.0), epsilon=epsilon, gamma=gamma)
    model.fit(rows.X, rows.y, X_public=rows.public)
    assert 0 < released["mu_squared"] <= 1 / model.privacy_.event.noise_multiplier**2
    assert 10 < released["NoisyThreshold"] < 200  # it is the filter that ended it


class OneClass:
    """A gate that admits one class, or none."""

    def __init__(self, *admitted):
        self.admitted, self.recorded = admitted, []

    def admissible(self, z):
        return np.isin(np.arange(2), self.admitted)

    def record(self, z, k):
        self.recorded.append((z, k))


def released_confidently(votes, gate):
    voting = ConfidentVoting(accounting="binary")
    plan = voting.plan(epsilon=5.0, delta=1e-5, n_queries=4, n_teachers=10, n_classes=2)
    return voting.release(np.array(votes), plan, ZeroNoise(), gate=gate, groups=np.zeros(len(votes), dtype=int))


def test_one_admissible_class_is_answered_without_an_argmax(released):
    gate = OneClass(1)
    out = released_confidently([[2, 8], [9, 1], [4, 6], [5, 5]], gate)
    assert out.labels.tolist() == [1, UNANSWERED, 1, UNANSWERED]
    assert released["NoisyThreshold"] == 4 and released["GNMax"] == 0 and gate.recorded == [(0, 1), (0, 1)]


def test_no_admissible_class_asks_nothing(released):
    out = released_confidently([[2, 8], [9, 1]], OneClass())
    assert out.labels.tolist() == [UNANSWERED] * 2 and not released


def test_both_admissible_classes_need_both_releases(released):
    out = released_confidently([[2, 8], [9, 1], [5, 5]], OneClass(0, 1))
    assert out.labels.tolist() == [1, 0, UNANSWERED]
    assert released["NoisyThreshold"] == 3 and released["GNMax"] == 2


# ---- what the fitted attributes say --------------------------------------------------------------------------
@pytest.mark.few(3)
@every_voting
@pytest.mark.parametrize(("n_classes", "n_groups"), [(2, 2), (3, 4)])
def test_the_attributes_tell_one_story(voting, n_classes, n_groups):
    X, y, groups = make_rows(1200, n_classes=n_classes, n_groups=n_groups, seed=2)
    public = PublicData(X[600:], groups[600:])
    model = fair(voting=voting, epsilon=200, classes=list(range(n_classes)), gamma=0.1)
    model.set_params(voting__max_queries=400).fit(X[:600], y[:600], X_public=public)
    assert model.n_queries_ == 400 == len(model.query_indices_) == len(set(model.query_indices_.tolist()))
    answered, labels = model.answered_mask_, model.released_labels_
    assert model.n_answered_ == answered.sum() > 100
    assert all((label is not None) == mask for label, mask in zip(labels, answered, strict=True))
    asked = groups[600:][model.query_indices_]
    expected = {z: 1 - answered[asked == z].mean() for z in range(n_groups)}
    assert model.rejection_rate_by_group_ == pytest.approx(expected)
    counts = np.zeros((n_groups, n_classes), dtype=int)
    np.add.at(counts, (asked[answered], labels[answered].astype(int)), 1)
    assert model.released_gap_ == largest_disparity(counts)
    votes = model.released_votes_
    if voting == "soft":
        assert votes.shape == (400, n_classes)
    else:
        np.testing.assert_array_equal(votes[answered], labels[answered].astype(int))


@pytest.mark.covering
@every_voting
@pytest.mark.parametrize("rule", ["excess", "local"])
def test_the_gap_stays_below_gamma_once_every_group_is_past_the_cold_start(voting, rule):
    X, y, groups = make_rows(1500, seed=4)
    model = fair(voting=voting, epsilon=500, gamma=0.15, gate=VoteGate(min_count=20, rule=rule), classes=[0, 1])
    model.fit(X[:500], y[:500], X_public=PublicData(X[500:], groups[500:]))
    watch = FairnessGate(2, 2, gamma=0.15)
    settled, after = False, 0
    for i, label in zip(model.query_indices_, model.released_labels_, strict=True):
        if label is None:
            continue
        watch.record(int(groups[500 + i]), int(label))
        settled = settled or (watch.counts.sum(axis=1).min() >= 20 and watch.excess() == 0)
        after += settled
        assert not settled or largest_disparity(watch.counts) <= 0.15 + 1e-12
    assert after > 200 and model.released_gap_ <= 0.15
    assert largest_disparity(np.bincount(2 * groups + y).reshape(2, 2)) > 0.2  # what the labels have without a gate


@pytest.mark.parametrize("voting", ["soft", "confident"])  # "gnmax" has no threshold
def test_nobody_answered(rows, voting):
    # Teachers disagree (labels at random) and must be unanimous: nothing passes.
    y = np.random.default_rng(0).integers(2, size=400)
    voting = {"soft": SoftVoting(threshold=1.0), "confident": ConfidentVoting(threshold=1.0)}[voting]
    model = fair(voting=voting, epsilon=500, n_teachers=40).fit(rows.X, y, X_public=rows.public)
    assert model.n_answered_ == 0 == model.released_gap_ and set(model.rejection_rate_by_group_.values()) == {1.0}
    assert model.released_labels_.tolist() == [None] * 200
    given = model.refit(student=LogisticRegression())
    assert set(given.predict(rows.X)) == {0} and given.predict_proba(rows.X).tolist() == [[1.0, 0.0]] * 400


@every_voting
@pytest.mark.parametrize("student", [None, LogisticRegression()])
def test_one_class_in_public_asks_and_costs_nothing(rows, released, voting, student):
    ledger = PrivacyLedger(epsilon=0.1)
    model = fair(voting=voting, classes=["only"], student=student, ledger=ledger, noise_seed=None)
    model.fit(rows.X, np.repeat("only", 400), X_public=rows.public)
    assert not released and model.privacy_.epsilon == 0 and ledger.entries == ()
    assert set(model.predict(rows.X)) == {"only"} == set(model.released_labels_)
    assert model.predict_proba(rows.X).tolist() == [[1.0]] * 400 and model.released_gap_ == 0


def test_number_of_teachers():
    X, y, _ = make_rows(700)
    auto = PATEClassifier(classes=[0, 1], n_teachers="auto").fit(X, y, X_public=X[:20].copy())
    assert auto.n_teachers_ == default_n_teachers(700, n_values=2, epsilon=1.0, delta=1e-5)
    assert PATEClassifier(classes=[0, 1]).fit(X[:10], y[:10], X_public=X[:20].copy()).n_teachers_ == 1


def test_without_constraint_fairpate_is_pate(rows):
    seeds = {"random_state": 0, "noise_seed": 3, "n_teachers": 10, "classes": [0, 1]}
    for voting in VOTINGS:
        plain = PATEClassifier(voting=voting, **seeds).fit(rows.X, rows.y, X_public=rows.X_public)
        for gate in ("votes", None):
            model = FairPATEClassifier(voting=voting, gamma=None, gate=gate, **seeds)
            model.fit(rows.X, rows.y, X_public=rows.X_public)
            np.testing.assert_array_equal(model.released_votes_, plain.released_votes_)
            np.testing.assert_allclose(model.predict_proba(rows.X), plain.predict_proba(rows.X))
            assert model.privacy_ == plain.privacy_ and not hasattr(model, "released_gap_")


def test_progress_is_shown_only_when_asked_for(rows, capsys):
    for verbose, teacher in ((0, None), (1, None), (1, DecisionTreeClassifier())):
        fair(voting="confident", verbose=verbose, teacher=teacher).fit(rows.X, rows.y, X_public=rows.public)
        shown = capsys.readouterr().err
        assert ("voting" in shown) == bool(verbose) == ("teachers" in shown)


def test_a_second_fit_forgets_the_first(rows):
    X, y, groups = make_rows(800, seed=8)
    model = fair().fit(rows.X, rows.y, X_public=rows.public)
    model.fit(X[:400], y[:400], X_public=PublicData(X[400:], groups[400:]))
    fresh = fair().fit(X[:400], y[:400], X_public=PublicData(X[400:], groups[400:]))
    np.testing.assert_array_equal(model.predict_proba(X), fresh.predict_proba(X))
    np.testing.assert_array_equal(model.released_labels_, fresh.released_labels_)
    assert model.refit(gamma=0.3).released_gap_ == fresh.refit(gamma=0.3).released_gap_


# ---- refit ---------------------------------------------------------------------------------------------------
def same(first, second):
    np.testing.assert_array_equal(first.released_votes_, second.released_votes_)
    np.testing.assert_array_equal(first.released_labels_, second.released_labels_)
    assert (
        first.released_gap_ == second.released_gap_
        and first.rejection_rate_by_group_ == second.rejection_rate_by_group_
    )


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("voting", "changes"),
    [
        ("soft", {"gamma": 0.3}),
        ("soft", {"gamma": None}),
        ("soft", {"voting__threshold": 0.75}),
        ("soft", {"gate__min_count": 5, "gate__rule": "local"}),
        ("gnmax", {"gate": LabelGate(min_count=20)}),
        ("gnmax", {"gate": None}),
        ("soft", {"gamma": 0.02, "voting__threshold": 0.55, "student": LogisticRegression()}),
        ("soft", {"student__C": 0.01}),
        ("gnmax", {"gamma": 0.3}),
        ("gnmax", {"student": DecisionTreeClassifier(max_depth=2)}),
        ("confident", {"student": LogisticRegression()}),
        ("confident", {}),
    ],
)
def test_refitting_is_a_fresh_labelling_of_the_same_votes(rows, voting, changes):
    if voting == "soft":
        voting = SoftVoting()
    student = LogisticRegression() if "student__C" in changes else None
    model = fair(voting=voting, epsilon=200, gamma=0.1, student=student).fit(rows.X, rows.y, X_public=rows.public)
    before = model.predict_proba(rows.X), model.released_labels_.copy(), model.get_params(deep=False)
    other = model.refit(**changes)
    # With the same seeds a fresh fit releases the same votes.
    fresh = clone(model).set_params(**changes).fit(rows.X, rows.y, X_public=rows.public)
    same(other, fresh)
    np.testing.assert_allclose(other.predict_proba(rows.X), fresh.predict_proba(rows.X), rtol=1e-9)
    assert {name: other.get_params()[name] for name in changes} == {name: fresh.get_params()[name] for name in changes}
    assert other.privacy_ is model.privacy_ and other is not model
    assert model.get_params(deep=False) == before[2]
    np.testing.assert_array_equal(model.predict_proba(rows.X), before[0])
    np.testing.assert_array_equal(model.released_labels_, before[1])
    if "gamma" in changes or "voting__threshold" in changes:
        back = other.refit(**{name: model.get_params()[name] for name in changes})
        same(back, model)


@pytest.mark.parametrize("voting", ["soft", SoftVoting()])
def test_a_shorthand_has_the_parameters_of_its_part_when_refitting(rows, voting):
    model = fair(voting=voting, gate="votes", gamma=0.3).fit(rows.X, rows.y, X_public=rows.public)
    other = model.refit(voting__threshold=0.8, gate__min_count=5)
    assert other.voting.threshold == 0.8 and other.gate.min_count == 5
    assert model.voting is voting and model.gate == "votes"
    assert other.n_answered_ < model.n_answered_


def test_refitting_charges_nothing(rows):
    ledger = PrivacyLedger(epsilon=5.5)
    model = fair(epsilon=5.0, ledger=ledger, noise_seed=None).fit(rows.X, rows.y, X_public=rows.public)
    for gamma in (0.01, 0.1, None):
        model.refit(gamma=gamma)
    assert len(ledger.entries) == 1


def test_fairer_students_have_smaller_gaps_on_the_public_rows(rows):
    model = fair(epsilon=2000, gamma=0.02).fit(rows.X, rows.y, X_public=rows.public)
    for gamma in (0.02, 0.05, 0.1, 0.2):
        student = model.refit(gamma=gamma)
        predicted = np.bincount(2 * rows.groups_public + student.predict(rows.X_public), minlength=4).reshape(2, 2)
        assert largest_disparity(predicted) == student.student_.gap_ == student.student_gap_ <= gamma
    free = model.refit(gamma=None)
    predicted = np.bincount(2 * rows.groups_public + free.predict(rows.X_public), minlength=4).reshape(2, 2)
    assert largest_disparity(predicted) > 0.15


def test_a_student_with_one_answer_is_not_said_to_have_a_gap(rows):
    """Whatever a look at private rows makes likely: that it has one answer was told already."""
    model = fair(epsilon=2000, gamma=0.01).fit(rows.X, rows.y, X_public=rows.public)
    model.student_gap_ = 0.3
    with pytest.warns(FairnessWarning, match="reaches on the public rows is 0.300"):
        warn_of_gaps(model, False, rows.X_public)
    model.student_ = ConstantStudent(2, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_gaps(model, False, rows.X_public)


def test_rows_that_were_sampled_are_not_called_public(rows):
    with pytest.warns(FairnessWarning, match=r"\d+ sampled rows, fewer than .*Merge groups, give public rows") as said:
        FairPATEClassifier(epsilon=16, n_teachers=5, classes=[0, 1], groups=[0, 1, 2], random_state=0).fit(
            rows.X, rows.y, sensitive_features=rows.groups
        )
    assert not any("Add public rows of that group" in str(warning.message) for warning in said)


def test_a_gap_out_of_reach_is_said(rows):
    with pytest.warns(FairnessWarning, match=r"reaches on the public rows is 0\.\d+, above gamma=0"):
        fair(epsilon=2000, gamma=0).fit(rows.X, rows.y, X_public=rows.public)


@pytest.mark.parametrize("make", [PATEClassifier, FairPATEClassifier])
def test_the_units_of_columns_change_no_vote_of_the_usual_teachers(make):
    X, y, _ = make_rows(1200)
    public, units, votes = X[:300], 2.0 ** np.resize([-9, 0, 7], X.shape[1]), []
    fairness = {"gamma": None} if make is FairPATEClassifier else {}
    for scale in (1.0, units):
        model = make(epsilon=1.0, n_teachers=40, classes=[0, 1], random_state=0, **fairness)
        with installed(ZeroNoise()):
            votes.append(model.fit(X[300:] * scale, y[300:], X_public=public * scale).released_votes_)
    assert np.array_equal(*votes) and np.ptp(votes[0]) > 0
