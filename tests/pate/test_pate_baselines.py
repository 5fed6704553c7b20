"""The paper's baselines behind plain PATE: PATE-S_pre filters the student's data, PATE-S_in penalises its loss."""

import warnings
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from skfairdp import DemographicParityFilter, FairPATEClassifier, PATEClassifier, PrivacyLedger, PublicData, frontier
from skfairdp.exceptions import FairnessWarning
from skfairdp.fairness import largest_disparity
from skfairdp.pate import ConfidentVoting, LabelGate, ParityPenaltyStudent, SoftLabelStudent, SoftVoting, VoteGate
from tests._tools.inside import UNANSWERED
from tests._tools.problems import make_rows

pytestmark = [
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning"),
    pytest.mark.filterwarnings("ignore:.*draws its noise from 'noise_seed'"),
]
VOTINGS = ("soft", "confident", "gnmax")
BASELINES = {"S_pre": {"gate": LabelGate(min_count=20)}, "S_in": {"gate": None, "student": ParityPenaltyStudent()}}
every_voting = pytest.mark.parametrize("voting", VOTINGS)
every_baseline = pytest.mark.parametrize("baseline", BASELINES)
shapes = pytest.mark.parametrize(("n_classes", "n_groups"), [(2, 2), (3, 4)])


@cache
class World:
    """Rows of any number of classes and groups, and fits on them. Not to be changed."""

    def __init__(self, n_classes=2, n_groups=2, n=1500):
        self.X, self.y, self.groups = make_rows(n, n_classes=n_classes, n_groups=n_groups, seed=4)
        self.half, self.n_groups = n // 3, n_groups
        self.public = PublicData(self.X[self.half :], self.groups[self.half :])
        self.common = {"epsilon": 100.0, "n_teachers": 20, "classes": list(range(n_classes)), "random_state": 0,
                       "noise_seed": 0}  # fmt: skip
        self._fitted = {}

    def s_in(self, weight, **parameters):
        return self.fit(gate=None, student=ParityPenaltyStudent(penalty_weight=weight), **parameters)

    def fit(self, cls=FairPATEClassifier, **parameters):
        fair = {} if cls is PATEClassifier else {"gate": VoteGate(min_count=20), "gamma": 0.1}
        model = cls(**{**self.common, **fair, **parameters}).set_params(voting__max_queries=700)
        if repr(model) not in self._fitted:  # seeded noise: fits of one setting are equal
            public = self.public.X if cls is PATEClassifier else self.public
            self._fitted[repr(model)] = model.fit(self.X[: self.half], self.y[: self.half], X_public=public)
        return self._fitted[repr(model)]

    def asked(self, model):
        return self.groups[self.half :][model.query_indices_]

    def gap_of(self, model):
        """Disparity of the student's predictions on the public rows."""
        predicted = np.searchsorted(model.classes_, model.predict(self.public.X))
        groups = self.groups[self.half :]
        shape = (self.n_groups, len(model.classes_))
        return largest_disparity(
            np.bincount(shape[1] * groups + predicted, minlength=shape[0] * shape[1]).reshape(shape)
        )


def codes(model):
    return np.array([UNANSWERED if label is None else label for label in model.released_labels_])


# ---- the same release as PATE's ------------------------------------------------------------------------------
@pytest.mark.covering
@every_voting
@every_baseline
@shapes
def test_votes_and_guarantee_are_those_of_pate(voting, baseline, n_classes, n_groups):
    world = World(n_classes, n_groups)
    plain = world.fit(PATEClassifier, voting=voting)
    model = world.fit(voting=voting, **BASELINES[baseline])
    np.testing.assert_array_equal(model.released_votes_, plain.released_votes_)
    np.testing.assert_array_equal(model.query_indices_, plain.query_indices_)
    # What was read as public differs: the constraint reads the groups of the public rows.
    assert replace(model.privacy_, public=()) == replace(plain.privacy_, public=())
    if baseline == "S_in":
        np.testing.assert_array_equal(codes(model), codes(plain))
    else:  # fewer labels, none of them another
        kept = model.answered_mask_
        assert (plain.answered_mask_ | ~kept).all() and kept.sum() < plain.answered_mask_.sum()
        np.testing.assert_array_equal(codes(model)[kept], codes(plain)[kept])


@pytest.mark.covering
@every_voting
@every_baseline
@pytest.mark.parametrize("noise", ["gaussian", "discrete_gaussian"])
def test_certified_epsilon_is_that_of_pate_whatever_the_constraint(rows, voting, baseline, noise):
    given = {"epsilon": 2.0, "n_teachers": 20, "classes": [0, 1], "random_state": 0}
    votes = {"voting__noise": noise, "voting__max_queries": 60}
    plain = PATEClassifier(voting=voting, **given).set_params(**votes)
    plain = plain.fit(rows.X, rows.y, X_public=rows.X_public).privacy_
    for gamma, weight in ((0.02, 0.5), (0.3, 5.0)):
        ledger = PrivacyLedger()
        model = FairPATEClassifier(
            voting=voting, gamma=gamma, **BASELINES[baseline], ledger=ledger, **given
        ).set_params(**votes)
        if baseline == "S_in":
            model.set_params(student__penalty_weight=weight)
        model.fit(rows.X, rows.y, X_public=rows.public)
        assert replace(model.privacy_, public=()) == replace(plain, public=()) and model.privacy_.epsilon <= 2.0
        (entry,) = ledger.entries
        assert entry.event == plain.event


# ---- PATE-S_pre ----------------------------------------------------------------------------------------------
@pytest.mark.covering
@every_voting
@shapes
@pytest.mark.parametrize("rule", ["excess", "local"])
def test_s_pre_keeps_what_the_parity_filter_keeps(voting, n_classes, n_groups, rule):
    world = World(n_classes, n_groups)
    model = world.fit(voting=voting, gate=LabelGate(min_count=20, rule=rule))
    plain = world.fit(voting=voting, gamma=None)
    answered = np.flatnonzero(plain.answered_mask_)
    parity = DemographicParityFilter(
        gamma=0.1, min_count=20, gate=rule, classes=range(n_classes), groups=range(n_groups)
    )
    parity.fit_resample(answered[:, None], codes(plain)[answered], sensitive_features=world.asked(plain)[answered])
    np.testing.assert_array_equal(np.flatnonzero(model.answered_mask_), answered[parity.sample_indices_])
    assert model.released_gap_ == parity.kept_gap_ and model.n_answered_ == len(parity.sample_indices_)
    if rule == "excess":
        assert model.released_gap_ <= 0.1 + 1e-12 < plain_gap(world, plain)
    refused = {z: 1 - model.answered_mask_[world.asked(model) == z].mean() for z in range(n_groups)}
    assert model.rejection_rate_by_group_ == pytest.approx(refused)


def plain_gap(world, plain):
    counts = np.zeros((world.n_groups, len(plain.classes_)), dtype=int)
    np.add.at(counts, (world.asked(plain)[plain.answered_mask_], codes(plain)[plain.answered_mask_]), 1)
    return largest_disparity(counts)


@pytest.mark.few(1)
@every_voting
def test_the_student_of_s_pre_sees_kept_rows_only_and_is_held_to_nothing(voting):
    world = World()
    model = world.fit(voting=voting, gate=LabelGate(min_count=20))
    X, kept = world.public.X[model.query_indices_], model.answered_mask_
    votes = model.released_votes_[kept] if voting == "soft" else np.eye(2)[model.released_votes_[kept]]
    expected = SoftLabelStudent().fit(
        X[kept],
        votes,
        noise_std=model._lessons.votes.noise_std,
        X_public=world.public.X,
        groups=world.groups[world.half :],
        bends=True,
    )
    np.testing.assert_allclose(model.predict_proba(world.X), expected.predict_proba(world.X))
    assert model.student_.level_ == 0 and model.student_gap_ == world.gap_of(model)
    given = model.refit(student=LogisticRegression())
    by_hand = LogisticRegression().fit(X[kept], codes(model)[kept])
    np.testing.assert_allclose(given.predict_proba(world.X), by_hand.predict_proba(world.X))


# ---- PATE-S_in -----------------------------------------------------------------------------------------------
@pytest.mark.few(1)
@every_voting
@shapes
def test_the_penalty_of_s_in_narrows_the_gap_of_the_student(voting, n_classes, n_groups):
    world = World(n_classes, n_groups)
    model = world.s_in(0.0, voting=voting)
    gaps = [world.gap_of(model.refit(student__penalty_weight=weight)) for weight in (0.0, 0.3, 2.0)]
    assert gaps[0] == world.gap_of(model) > 0.15
    assert gaps[0] > gaps[1] > gaps[2] and gaps[2] < 0.6 * gaps[0]
    free = np.mean(model.predict(world.X) == world.y)
    assert free > 0.7 and np.mean(model.refit(student__penalty_weight=0.3).predict(world.X) == world.y) > free - 0.08


@pytest.mark.few(2)
@every_voting
@shapes
def test_without_weight_s_in_is_pate(voting, n_classes, n_groups):
    """Softmax regression by L-BFGS and SoftLabelStudent by Newton have one optimum."""
    world = World(n_classes, n_groups)
    model = world.s_in(0.0, voting=voting)
    plain = world.fit(PATEClassifier, voting=voting)
    np.testing.assert_allclose(model.predict_proba(world.X), plain.predict_proba(world.X), atol=2e-3)


@pytest.mark.slow
def test_s_in_of_a_network():
    world = World()
    student = ParityPenaltyStudent(penalty_weight=0.0, hidden=(8,), alpha=1.0, max_iter=60)
    model = world.fit(gate=None, student=student)
    assert [weights.shape for weights in model.student_.coefs_] == [(4, 8), (8, 2)]
    fair = model.refit(student__penalty_weight=2.0)
    assert fair.student_.penalty_weight == 2.0 and student.penalty_weight == 0.0  # the parameter is not touched
    assert world.gap_of(fair) < 0.6 * world.gap_of(model)
    assert np.mean(model.predict(world.X) == world.y) > 0.8
    again = clone(model).fit(world.X[: world.half], world.y[: world.half], X_public=world.public)
    np.testing.assert_array_equal(again.predict_proba(world.X), model.predict_proba(world.X))  # random_state
    other = model.refit(student__random_state=5)
    assert not np.allclose(other.predict_proba(world.X), model.predict_proba(world.X))


@pytest.mark.slow
def test_a_gap_above_gamma_is_said_and_a_gap_without_gamma_is_not():
    world = World()
    with pytest.warns(FairnessWarning, match=r"The student of Fair.* above gamma=0.1, and no gate.*\. Raise") as said:
        model = world.s_in(0.01, epsilon=101.0)
    assert said[-1].filename == __file__
    with pytest.warns(FairnessWarning, match="The smallest demographic disparity") as held:
        World().fit(gamma=0, epsilon=101.0)
    assert held[-1].filename == __file__  # where fit was called
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        others = [model.refit(gamma=None), model.refit(gamma=0.9), model.refit(student__penalty_weight=3.0)]
    for free in others[:2]:
        np.testing.assert_array_equal(free.predict_proba(world.X), model.predict_proba(world.X))


# ---- the student itself --------------------------------------------------------------------------------------
def by_hand(student, X, shares, groups, n_groups):
    """The loss of a softmax regression at its coefficients, written out in numpy."""
    scale_free = X @ student.coefs_[0] + student.intercepts_[0]
    probability = np.exp(scale_free) / np.exp(scale_free).sum(axis=1, keepdims=True)
    sharp = np.exp(scale_free / student.temperature)
    sharp /= sharp.sum(axis=1, keepdims=True)
    disparities = np.array([sharp[groups == z].mean(0) - sharp[groups != z].mean(0) for z in range(n_groups)]).ravel()
    weights = np.exp((disparities - disparities.max()) / student.temperature)
    cross_entropy = -(shares * np.log(probability)).sum(axis=1).mean()
    return cross_entropy + student.penalty_weight * (weights / weights.sum()) @ disparities


@shapes
def test_the_student_is_at_a_minimum_of_cross_entropy_and_penalty(n_classes, n_groups):
    X, y, groups = make_rows(400, n_classes=n_classes, n_groups=n_groups, seed=1)
    shares = np.eye(n_classes)[y]
    student = ParityPenaltyStudent(penalty_weight=0.5, temperature=0.5, alpha=1e-3, max_iter=2000)
    student.fit(X, shares, groups=groups)
    best = by_hand(student, X, shares, groups, n_groups)
    rng = np.random.default_rng(0)
    weights = student.coefs_[0]
    for _ in range(30):
        student.coefs_[0] = weights + 0.05 * rng.normal(size=weights.shape)
        assert by_hand(student, X, shares, groups, n_groups) > best


def test_shares_outside_the_unit_interval_leave_it_unbiased():
    X, y, groups = make_rows(4000, seed=3)
    noisy = np.eye(2)[y]
    noisy[:, 1] += 2 * np.random.default_rng(0).normal(size=4000)
    noisy[:, 0] = 1 - noisy[:, 1]
    student = ParityPenaltyStudent(penalty_weight=0.0).fit(X, noisy, noise_std=2.0, groups=groups)
    assert np.mean(student.predict(X) == y) > 0.85


@pytest.mark.covering
@pytest.mark.parametrize("scale", [1.0, 1e100, 1e-100, 0.0])
@pytest.mark.parametrize(
    "extreme", [{"penalty_weight": 1e9}, {"penalty_weight": 1e-320}, {"temperature": 1e-6}, {"temperature": 1e6}]
)
def test_no_setting_makes_the_student_anything_but_finite(scale, extreme):
    X, y, groups = make_rows(100)
    student = ParityPenaltyStudent(**extreme).fit(scale * X, np.eye(2)[y], groups=groups)
    assert np.isfinite(student.predict_proba(scale * X)).all() and np.isfinite(student.coefs_[0]).all()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"penalty_weight": -1.0}, "'penalty_weight' parameter of ParityPenaltyStudent"),
        ({"hidden": (0,)}, "'hidden' parameter of ParityPenaltyStudent must list positive integers"),
        ({"hidden": (2.5,)}, "'hidden'"),
        ({"temperature": 0}, "'temperature'"),
        ({"max_iter": 0}, "'max_iter'"),
        ({"alpha": 0}, "'alpha'"),
    ],
)
def test_unusable_parameters_of_the_student(parameters, message):
    with pytest.raises(ValueError, match=message):
        ParityPenaltyStudent(**parameters).fit(np.zeros((4, 1)), np.eye(2)[[0, 1, 0, 1]], groups=np.array([0, 1, 1, 0]))


def test_a_penalty_needs_groups():
    X, shares = np.arange(4.0)[:, None], np.eye(2)[[0, 1, 0, 1]]
    with pytest.raises(ValueError, match=r"needs 'groups'.*penalty_weight=0"):
        ParityPenaltyStudent().fit(X, shares)
    assert ParityPenaltyStudent(penalty_weight=0.0).fit(X, shares).gap_ is None


# ---- refitting, sweeping, refusing ---------------------------------------------------------------------------
@pytest.mark.few(1)
@every_voting
def test_other_bounds_and_weights_are_free_and_equal_a_fresh_fit(voting):
    world = World()
    weight = {"student__penalty_weight": 0.3}
    for model, changes, fresh in (
        (world.fit(voting=voting, gate=LabelGate(min_count=20)), {"gamma": 0.02},
         world.fit(voting=voting, gate=LabelGate(min_count=20), gamma=0.02)),
        (world.s_in(1.0, voting=voting), weight, world.s_in(0.3, voting=voting)),
    ):  # fmt: skip
        other = model.refit(**changes)
        np.testing.assert_array_equal(other.released_labels_, fresh.released_labels_)
        np.testing.assert_allclose(other.predict_proba(world.X), fresh.predict_proba(world.X), rtol=1e-9)
        assert other.privacy_ is model.privacy_ and changes.items() <= other.get_params().items()
        assert not np.allclose(other.predict_proba(world.X), model.predict_proba(world.X))


@pytest.mark.few(1)
@every_baseline
def test_a_frontier_over_gamma_or_over_the_weight(baseline):
    world = World(n=900)
    parameters = {name: value for name, value in world.common.items() if name not in ("epsilon", "noise_seed")}
    table = frontier(
        FairPATEClassifier(**BASELINES[baseline], voting="confident", **parameters),
        world.X[:300], world.y[:300], X_public=world.public, X_test=world.X, y_test=world.y,
        sensitive_features_test=world.groups, epsilons=(50.0,), gammas=(0.05, None), lams=(0.0, 0.3),
        random_state=0,
    )  # fmt: skip
    assert table.attrs["n_fits"] == 1 and len(table) == 4 and table["epsilon"].nunique() == 1
    assert table["params"].str.contains({"S_pre": "gate=LabelGate", "S_in": "gate=None"}[baseline]).all()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"gate": "student"}, "'gate' parameter of FairPATEClassifier must be 'votes', 'labels'"),
        ({"gate": VoteGate(min_count=-1)}, "'min_count' parameter of VoteGate"),
        ({"gate": LabelGate(min_count=True)}, "'min_count' parameter of LabelGate"),
        ({"gate": LabelGate(rule="gentle")}, "'rule' parameter of LabelGate"),
        ({"student": ParityPenaltyStudent(penalty_weight=-0.1)}, "'penalty_weight' parameter of ParityPenaltyStudent"),
        ({"student": ParityPenaltyStudent(penalty_weight=True)}, "'penalty_weight' parameter"),
        ({"student": ParityPenaltyStudent(penalty_weight=np.nan)}, "'penalty_weight' parameter"),
        ({"student": ParityPenaltyStudent(hidden=(0,))}, "'hidden' parameter"),
    ],
)
def test_unusable_settings_are_refused_before_anything_is_spent(rows, parameters, message):
    ledger = PrivacyLedger()
    model = FairPATEClassifier(classes=[0, 1], n_teachers=5, ledger=ledger, **parameters)
    with pytest.raises(ValueError, match=message):
        model.fit(rows.X, rows.y, X_public=rows.public)
    assert ledger.entries == ()


@every_baseline
def test_groups_of_the_public_rows_are_needed(rows, baseline):
    ledger = PrivacyLedger()
    model = FairPATEClassifier(classes=[0, 1], n_teachers=5, **BASELINES[baseline], ledger=ledger)
    with pytest.raises(ValueError, match="needs the groups of the public rows"):
        model.fit(rows.X, rows.y, X_public=rows.X_public)
    assert ledger.entries == ()
    model.set_params(gamma=None)
    if baseline == "S_in":
        with pytest.raises(ValueError, match="needs the groups of the public rows"):
            model.fit(rows.X, rows.y, X_public=rows.X_public)
        model.set_params(student__penalty_weight=0.0)
    unconstrained = model.fit(rows.X, rows.y, X_public=rows.X_public)
    with pytest.raises(ValueError, match="without the groups of the public rows"):
        unconstrained.refit(**{"gamma": 0.1} if baseline == "S_pre" else {"student__penalty_weight": 1.0})


def test_what_released_votes_cannot_answer(rows):
    model = FairPATEClassifier(classes=[0, 1], n_teachers=5).fit(rows.X, rows.y, X_public=rows.public)
    with pytest.raises(ValueError, match=r"Got 'epsilon', which needs a new fit"):
        model.refit(epsilon=1.0)
    with pytest.raises(ValueError, match=r"Got 'lam', which is no parameter of FairPATEClassifier"):
        model.refit(lam=1.0)
    plain = PATEClassifier(classes=[0, 1], n_teachers=5).fit(rows.X, rows.y, X_public=rows.X_public)
    with pytest.raises(ValueError, match=r"student, voting__threshold\. Got 'gamma', which is no parameter of PATE"):
        plain.refit(gamma=1.0)
    with pytest.raises(ValueError, match=r"'voting__sigma', which needs a new fit"):
        plain.refit(voting__sigma=1.0)


@pytest.mark.covering
@every_voting
@every_baseline
def test_one_class_in_public_and_nobody_answered(rows, voting, baseline):
    given = {"n_teachers": 20, "noise_seed": 0, "random_state": 0, "voting": voting, **BASELINES[baseline]}
    one = FairPATEClassifier(classes=["only"], **given).fit(rows.X, np.repeat("only", 400), X_public=rows.public)
    assert set(one.predict(rows.X)) == {"only"} and one.privacy_.mechanism_epsilon == 0
    y = np.random.default_rng(0).integers(2, size=400)
    strict = {"soft": SoftVoting(threshold=1.0), "confident": ConfidentVoting(threshold=1.0)}.get(voting, voting)
    none = FairPATEClassifier(classes=[0, 1], epsilon=500, **{**given, "voting": strict})
    none.fit(rows.X, y, X_public=rows.public)
    assert none.predict_proba(rows.X).shape == (400, 2) and np.isfinite(none.predict_proba(rows.X)).all()
    assert voting == "gnmax" or none.n_answered_ == 0
