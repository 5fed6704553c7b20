"""SFPATEClassifier: what a changed group may move, what is charged, and what comes of it."""

import copy
import itertools
import json
import math
import pickle
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skfairdp import PrivacyLedger, SFPATEClassifier
from skfairdp._teachers import Parts, _partition, fit_teachers, position_partition
from skfairdp.baselines import LagrangianClassifier, ParityLogisticRegression
from skfairdp.datasets import make_biased_classification
from skfairdp.ensemble import MLPTeachers
from skfairdp.exceptions import BudgetExceededError, FairnessWarning, PrivacyLeakWarning
from skfairdp.inspection import audit_count_statistic, audit_matched_filter
from skfairdp.lagrangian import mlp
from skfairdp.metrics import demographic_disparity, equalized_odds_disparity, wasserstein_disparity
from skfairdp.model_selection import ParetoSearchCV
from skfairdp.pate import FairTeachers, GNMaxVoting, GroupTeachers, SoftVoting, _fair_votes
from skfairdp.privacy import GNMax, NoiseSource, epsilon_of, gdp_mu
from tests._tools.inside import SHARE, ConstantStudent, ReleasedVotes
from tests._tools.sources import fixed_entropy, recording_noise

#: So few rows say little of a group; that this is said has a test of its own.
pytestmark = pytest.mark.filterwarnings("ignore:By the released votes:skfairdp.exceptions.FairnessWarning")
N_ROWS, N_TEACHERS = 60, 8
#: Fits small parts closely, so that a changed group shows in the votes.
CLOSE = LagrangianClassifier(net=mlp((), max_epochs=40, batch_size=8, lr=0.1), dual_step=5.0, dual_steps=10)
QUICK = LagrangianClassifier(net=mlp((4,), max_epochs=3, batch_size=8), dual_steps=5)
VECTORS = Path(__file__).parents[1] / "vectors" / "sfpate.json"


def problem(n=N_ROWS, n_classes=2, n_groups=2, seed=0):
    rng = np.random.default_rng(seed)
    groups = rng.integers(n_groups, size=n)
    X = 2 * rng.normal(size=(n, 3)) + groups[:, None]
    y = np.digitize(X[:, 0] + 0.5 * rng.normal(size=n), np.linspace(-0.5, 1.5, n_classes + 1)[1:-1])
    return X, y, groups


def make(n_classes=2, n_groups=2, **more):
    given = {"n_teachers": N_TEACHERS, "classes": range(n_classes), "groups": range(n_groups), "fair_estimator": QUICK}
    student = more.pop("variant__student", QUICK)
    if more.get("variant") == "teacher":
        more["variant"] = FairTeachers(student)
    return SFPATEClassifier(**{**given, "epsilon": 2.0, "random_state": 0, **more})


# ---- one group changes one teacher ---------------------------------------------------------------------------
def raw_votes(model, X, y, groups, monkeypatch):
    """What the noise of a fit is added to, what it declares, and who teaches whom."""
    seen, sorted_by_teacher = {}, Parts.of

    def parts(assignment, *args):
        seen["parts"] = assignment
        return sorted_by_teacher(assignment, *args)

    def release(part, votes, plan, noise, **kwargs):
        seen["votes"], seen["plan"] = np.asarray(votes, dtype=float), plan
        return ReleasedVotes(np.zeros(len(votes), dtype=np.int64))

    with monkeypatch.context() as patch:
        patch.setattr(Parts, "of", parts)
        for voting in (SoftVoting, GNMaxVoting):
            patch.setattr(voting, "release", release)
        patch.setattr(SFPATEClassifier, "_train", lambda self: setattr(self, "student_", ConstantStudent(2)))
        model.fit(X, y, sensitive_features=groups)
    return seen["votes"], seen["plan"], seen["parts"]


LEARNERS = {
    "SFS-soft": {},
    "SFS-gnmax": {"voting": "gnmax"},
    "SFS-discrete": {"voting": SoftVoting(noise="discrete_gaussian")},
    "SFS-mlp": {"variant": GroupTeachers(MLPTeachers(hidden=(4,), epochs=2))},
    "SFS-bayes": {"variant": GroupTeachers(GaussianNB())},
    "SFT-soft": {"variant": "teacher", "fair_estimator": CLOSE},
    "SFT-gnmax": {"variant": "teacher", "voting": "gnmax", "fair_estimator": CLOSE},
    "SFT-clones": {"variant": "teacher", "fair_estimator": ParityLogisticRegression(max_rounds=2)},
}


@pytest.mark.few(5)
@pytest.mark.parametrize(("n_classes", "n_groups"), [(2, 2), (3, 3)])
@pytest.mark.parametrize("name", LEARNERS)
def test_any_changed_group_changes_one_teacher_and_moves_votes_by_root_two(name, n_classes, n_groups, monkeypatch):
    X, y, groups = problem(N_ROWS, n_classes, n_groups)
    model = make(n_classes, n_groups, **LEARNERS[name])
    base, plan, parts = raw_votes(model, X, y, groups, monkeypatch)
    largest = 0.0
    step = 3 if name in ("SFS-soft", "SFS-gnmax") and n_groups == 2 else 15 if name == "SFT-clones" else 7
    rows = range(0, N_ROWS, step)
    for row in rows:
        other = groups.copy()
        other[row] = (other[row] + 1) % n_groups
        votes, other_plan, other_parts = raw_votes(model, X, y, other, monkeypatch)
        assert other_plan == plan, "noise, counts or sensitivity depend on the groups"
        np.testing.assert_array_equal(other_parts, parts)
        largest = max(largest, np.linalg.norm(votes - base, axis=1).max())
        if base.shape[1] == 2:  # one number is released for each row
            assert np.abs(votes - base).max() <= 1 + 1e-9
    assert 0 < largest <= math.sqrt(2) + 1e-9
    if name in ("SFS-gnmax", "SFS-discrete", "SFS-bayes") and n_groups == 2:
        assert largest > 0.5


class FewKept(SFPATEClassifier):
    _most_kept = 25


def kept_votes(X, y, groups, **more):
    """What is released of a table of which only some rows are asked about, without noise."""
    model = FewKept(**{**make(**more).get_params(deep=False), "n_teachers": N_TEACHERS})
    with recording_noise(0) as record:
        model.fit(X, y, sensitive_features=groups)
    released, *_ = record.releases  # and what the student does to the groups
    return model, np.asarray(released.value, dtype=float), released


@pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning", "ignore::skfairdp.exceptions.UtilityWarning")
@pytest.mark.parametrize("ready", [10, 10_000])
def test_of_many_rows_some_are_asked_about_and_all_of_them_teach(ready, monkeypatch):
    """A million rows took 5 GiB, for every one of them was asked about and taught the student."""
    monkeypatch.setattr(_partition, "READY", ready)
    X, y, groups = problem()
    model, released, _ = kept_votes(X, y, groups)
    kept = model.query_indices_
    assert len(kept) == 25 == len(model.released_votes_) and (np.diff(kept) > 0).all() and kept[-1] < N_ROWS
    center, scale = X[kept].mean(axis=0), X[kept].std(axis=0)
    told = _fair_votes.features_and_labels((X - center) / scale, y, 2)
    rng = np.random.default_rng(0)
    rng.permutation(25)
    parts = position_partition(N_ROWS, N_TEACHERS, random_state=rng)
    teachers = fit_teachers("logistic", told, groups, parts, n_teachers=N_TEACHERS, n_classes=2, random_state=rng)
    expected = teachers.summed_probabilities(told[kept], 2)[:, 1:]
    short = expected - released.reshape(expected.shape)
    assert short.min() > -1e-9 and short.max() < N_TEACHERS * _fair_votes.STEP


@pytest.mark.few(1)
@pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning", "ignore::skfairdp.exceptions.UtilityWarning")
@pytest.mark.parametrize("variant", ["student", "teacher"])
def test_where_some_rows_are_asked_about_any_changed_group_still_moves_one_vote(variant, monkeypatch):
    monkeypatch.setattr(_partition, "READY", 10)
    monkeypatch.setattr(_fair_votes, "TOGETHER", 2)
    monkeypatch.setattr(SFPATEClassifier, "_train", lambda self: setattr(self, "student_", ConstantStudent(2)))
    X, y, groups = problem()
    _, base, first = kept_votes(X, y, groups, variant=variant, fair_estimator=CLOSE)
    largest = 0.0
    for row in range(0, N_ROWS, 4 if variant == "student" else 12):
        other = groups.copy()
        other[row] = 1 - other[row]
        _, votes, release = kept_votes(X, y, other, variant=variant, fair_estimator=CLOSE)
        assert release.mechanism == first.mechanism
        largest = max(largest, np.abs(votes - base).max())
    assert 0 < largest <= 1 + 1e-9


@pytest.mark.parametrize("variant", ["student", "teacher"])
def test_the_partition_is_a_function_of_the_number_of_rows_alone(variant, monkeypatch):
    X, y, groups = problem()
    model = make(variant=variant)
    parts = [raw_votes(model, X, y, g, monkeypatch)[2] for g in (groups, 1 - groups, np.zeros_like(groups))]
    parts.append(raw_votes(model, X[::-1].copy(), 1 - y, groups, monkeypatch)[2])
    for other in parts[1:]:
        np.testing.assert_array_equal(other, parts[0])


def test_the_student_is_a_function_of_released_votes_and_public_rows():
    """Two fits on different groups whose releases happen to be equal end with the same student."""
    X, y, groups = problem(200)
    for settings in ({}, {"voting": GNMaxVoting(max_queries=60)}, {"variant": "teacher"}):
        fits = []
        for g in (groups, 1 - groups):
            with pytest.MonkeyPatch.context() as patch:
                values = np.linspace(0.1, 0.9, 200)
                constant = ReleasedVotes(
                    (values[:60] > 0.5).astype(int) if "voting" in settings else None,
                    None if "voting" in settings else np.column_stack([1 - values, values]),
                    0.1,
                )
                for voting in (SoftVoting, GNMaxVoting):
                    patch.setattr(voting, "release", lambda *a, c=constant, **k: c)
                fits.append(make(**settings).fit(X, y, sensitive_features=g))
        np.testing.assert_array_equal(fits[0].predict_proba(X), fits[1].predict_proba(X))


# ---- accounting ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("vector", json.loads(VECTORS.read_text())["sfpate"])
def test_vectors_of_three_groups(vector):
    """The Gaussian bound of the histogram, for two hundred queries."""
    X, y, groups = problem(300, 2, 3)
    settings = {"voting": GNMaxVoting(max_queries=vector["queries"]), "delta": vector["delta"], "n_groups": 3,
                "fair_estimator": Watched()}  # fmt: skip
    if vector["epsilon"] == 1.0:
        model = make(epsilon=1.0, **settings).fit(X, y, sensitive_features=groups)
        assert model.sigma_ == pytest.approx(vector["sigma"], rel=2e-3)
        assert model.sigma_ >= vector["sigma"] * (1 - 1e-6)
    else:
        model = (
            make(epsilon=2.0, **settings).set_params(voting__sigma=vector["sigma"]).fit(X, y, sensitive_features=groups)
        )
        assert model.privacy_.epsilon == pytest.approx(vector["epsilon"], rel=1e-5)


@pytest.mark.parametrize("vector", json.loads(VECTORS.read_text())["soft_labels"])
def test_vectors_of_soft_labels(vector):
    X, y, groups = problem(300, 2, 3)
    model = make(
        voting=SoftVoting(sigma=float(vector["sigma"]), max_queries=vector["queries"]),
        delta=vector["delta"],
        n_groups=3,
        fair_estimator=Watched(),
    ).fit(X, y, sensitive_features=groups)
    assert model.privacy_.epsilon == pytest.approx(vector["epsilon"], rel=1e-5)
    assert model.released_votes_.shape == (200, 3)


@pytest.mark.parametrize("variant", ["student", "teacher"])
def test_two_groups_or_classes_pay_for_a_bit_or_for_one_number(variant):
    X, y, groups = problem(300)
    settings = {"variant": variant, "delta": 1e-4, "epsilon": 1.0, "fair_estimator": Watched()}
    gaussian = 63.71406  # of a histogram with sensitivity √2
    soft = make(voting=SoftVoting(max_queries=200), **settings).fit(X, y, sensitive_features=groups)
    bits = make(voting=GNMaxVoting(max_queries=200), **settings).fit(X, y, sensitive_features=groups)
    assert soft.sigma_ == pytest.approx(gaussian / math.sqrt(2), rel=2e-3)
    assert bits.sigma_ < 0.9 * gaussian
    for model in (soft, bits):
        assert 0.99 < model.privacy_.epsilon == epsilon_of(model.privacy_.event, 1e-4) <= 1.0
        assert model.privacy_.protects == "sensitive attribute"


def test_two_classes_and_three_groups_vote_on_what_the_variant_says():
    X, y, groups = problem(200, 2, 3)
    student = make(n_groups=3).fit(X, y, sensitive_features=groups)
    teacher = make(n_groups=3, variant="teacher").fit(X, y, sensitive_features=groups)
    assert (student.released_votes_.shape, teacher.released_votes_.shape) == ((200, 3), (200, 2))
    hard = make(n_groups=3, voting=GNMaxVoting(max_queries=50)).fit(X, y, sensitive_features=groups)
    assert hard.released_votes_.shape == hard.query_indices_.shape == (50,)
    assert (np.diff(hard.query_indices_) > 0).all()


@pytest.mark.few(1)
@pytest.mark.parametrize("k", [10, 40, 100])
def test_a_unanimous_vote_flips_with_the_probability_of_the_paper(k):
    """004, Theorem 2: 1 - Φ(k / (√2 σ)); a noise too small or too large by a factor 3/2 is rejected."""
    n, sigma = 10_000, 60.0
    mechanism, source = GNMax(sigma, n_teachers=k, n_classes=2), NoiseSource(seed=k)
    flips = sum(mechanism.release([0, k], source) == 0 for _ in range(n))

    def far(scale):
        p = 1 - ndtr(k / (math.sqrt(2) * scale))
        return abs(flips - n * p) / math.sqrt(n * p * (1 - p))

    assert far(sigma) < 4
    if k >= 40:
        assert far(2 / 3 * sigma) > 6 < far(3 / 2 * sigma)


# ---- audits: one changed group, many fits --------------------------------------------------------------------
def canary_world(flipped):
    """Parts of one row each, whose teachers always answer its group: one flip moves one vote of every query."""
    return np.zeros((4, 1)), np.array([0, 1, 0, 1]), np.array([0, 1, int(flipped), 1])


def transcripts(flipped, runs, **settings):
    X, y, groups = canary_world(flipped)
    model = SFPATEClassifier(epsilon=8.0, n_teachers=4, groups=[0, 1], classes=[0, 1], random_state=0, **settings)
    out = []
    with fixed_entropy(int(flipped)), pytest.MonkeyPatch.context() as patch:
        patch.setattr(SFPATEClassifier, "_train", lambda self: setattr(self, "student_", ConstantStudent(2)))
        model.set_params(voting__sigma=model.fit(X, y, sensitive_features=groups).sigma_)  # calibrated once
        for _ in range(runs):
            out.append(model.fit(X, y, sensitive_features=groups).released_votes_)
    return np.array(out), model


@pytest.mark.slow
def test_audit_of_noisy_shares_finds_the_budget_and_no_more():
    here, model = transcripts(False, 250)
    there, _ = transcripts(True, 250)
    # All four numbers move by the canary's vote: the matched filter is their sum.
    result = audit_matched_filter(*(votes[:, :, 1].sum(axis=1) for votes in (here, there)))
    mu = gdp_mu(model.privacy_.epsilon, 1e-5)
    # the rest is for the table that judges the student
    assert mu * math.sqrt(1 - SHARE) == pytest.approx(math.sqrt(4) / model.sigma_, rel=0.01)
    assert not result.refutes(mu)
    assert result.mu_lower > 0.7 * mu


@pytest.mark.slow
def test_audit_of_noisy_winners_finds_most_of_the_bits():
    here, model = transcripts(False, 400, voting="gnmax")
    there, _ = transcripts(True, 400, voting="gnmax")
    result = audit_count_statistic(here, there)
    assert not result.epsilon_lower(1e-5) > model.privacy_.epsilon
    assert result.epsilon_lower(1e-5) > 0.5 * model.privacy_.epsilon


# ---- what comes of it ----------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def biased():
    X, y, groups = make_biased_classification(12_000, disparity=0.35, random_state=0)
    return np.asarray(X), np.asarray(y), np.asarray(groups)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("variant", "voting", "share"),
    [
        ("student", "soft", 0.25),
        ("teacher", "soft", 0.5),
        pytest.param("teacher", "gnmax", 0.5, marks=pytest.mark.slow),
    ],
)
def test_the_gap_falls_and_accuracy_stays(biased, variant, voting, share):
    X, y, groups = biased
    plain = LogisticRegression().fit(X, y)
    gap = demographic_disparity(y, plain.predict(X), sensitive_features=groups)
    model = SFPATEClassifier(
        variant=variant, voting=voting, epsilon=8.0, n_teachers=60, groups=[0, 1], random_state=0, noise_seed=1
    )
    with pytest.warns(PrivacyLeakWarning, match="noise_seed"):
        model.fit(X, y, sensitive_features=groups)
    assert gap > 0.3
    assert demographic_disparity(y, model.predict(X), sensitive_features=groups) < share * gap
    assert model.score(X, y) > 0.7


@pytest.mark.slow
@pytest.mark.parametrize("notion", ["equalized_odds", "generalized_demographic_parity", "accuracy_parity"])
def test_every_constraint_reaches_the_student(biased, notion):
    X, y, groups = biased
    rng = np.random.default_rng(2)
    y = np.where((groups == 1) & (rng.random(len(y)) < 0.2), 1 - y, y)
    measure = {
        "equalized_odds": lambda m: equalized_odds_disparity(y, m.predict(X), sensitive_features=groups),
        "generalized_demographic_parity": lambda m: wasserstein_disparity(
            y, m.predict_proba(X)[:, 1], sensitive_features=groups
        ),
        "accuracy_parity": lambda m: abs(
            np.mean((m.predict(X) == y)[groups == 0]) - np.mean((m.predict(X) == y)[groups == 1])
        ),
    }[notion]
    settings = {"epsilon": 100.0, "n_teachers": 100, "groups": [0, 1], "random_state": 0, "noise_seed": 0}
    with pytest.warns(PrivacyLeakWarning, match="noise_seed"):
        model = SFPATEClassifier(constraints=notion, **settings).fit(X, y, sensitive_features=groups)
    assert measure(model) < 0.6 * measure(LogisticRegression().fit(X, y))


@pytest.mark.slow
def test_lam_ties_the_student_to_a_network_without_constraint(biased):
    X, y, groups = (part[:2000] for part in biased)
    theta = LagrangianClassifier(constraints=None, random_state=0).fit(X, y).predict_proba(X)
    distances = []
    for weight in (1e-3, 100.0):
        model = SFPATEClassifier(
            voting="gnmax", proximal_weight=weight, epsilon=5.0, groups=[0, 1], random_state=0, n_teachers=50
        )
        proba = model.fit(X, y, sensitive_features=groups).predict_proba(X)
        distances.append(np.abs(proba - theta).mean())
    assert distances[0] > 1.5 * distances[1]
    assert distances[1] < 0.05


# ---- learners of one's own -----------------------------------------------------------------------------------
class Watched:
    """Somebody's class: neither scikit-learn's nor ours."""

    def fit(self, X, y, sensitive_features):
        self.seen = X, y, np.asarray(sensitive_features)
        self.model = LogisticRegression().fit(X, y)
        return self

    def predict(self, X):
        return self.model.predict(X)


class Says(Watched):
    """The same, and it says what it holds: what its answers do to the groups is part of the budget."""

    constraints = "demographic_parity"


def test_a_learner_without_weights_gets_groups_drawn_from_the_released_shares():
    X, y, groups = problem(2000)
    model = make(fair_estimator=Watched(), epsilon=50.0).fit(X, y, sensitive_features=groups)
    seen_X, seen_y, seen_groups = model.student_.seen
    np.testing.assert_allclose(seen_X, X)
    np.testing.assert_array_equal(seen_y, y)
    assert set(seen_groups) == {0, 1} and 0.05 < np.mean(seen_groups != groups) < 0.5
    assert not hasattr(model, "predict_proba")
    assert set(model.predict(X)) == {0, 1}
    paper = make(fair_estimator=Watched(), voting=GNMaxVoting(max_queries=30)).fit(X, y, sensitive_features=groups)
    assert len(paper.student_.seen[1]) == 30
    np.testing.assert_array_equal(paper.student_.seen[2], paper.released_votes_)


def test_a_learner_of_ones_own_can_be_every_teacher():
    X, y, groups = problem(400)
    model = make(fair_estimator=Watched(), variant=FairTeachers(LogisticRegression()), epsilon=50.0)
    model.fit(X, y, sensitive_features=groups)
    assert np.mean(model.predict(X) == y) > 0.6


def test_teachers_that_draw_lots_at_prediction_do_so_from_seeds_of_their_own():
    """A reduction of fairlearn takes the global generator where it is given no seed."""
    asked = []

    class Drawing(Watched):
        def predict(self, X, random_state=None):
            asked.append(random_state)
            return super().predict(X)

    X, y, groups = problem(400)
    model = make(fair_estimator=Drawing(), variant=FairTeachers(LogisticRegression()), epsilon=50.0)
    model.fit(X, y, sensitive_features=groups)
    assert None not in asked and len(set(asked)) > N_TEACHERS


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Setting a")  # fairlearn on a pandas newer than itself
def test_reductions_of_fairlearn_inside_both_variants():
    reductions = pytest.importorskip("fairlearn.reductions")
    X, y, groups = problem(600)
    learner = reductions.ExponentiatedGradient(
        LogisticRegression(), reductions.DemographicParity(difference_bound=0.05), max_iter=5
    )
    for options in ({"variant": "student"}, {"variant": FairTeachers(LogisticRegression())}):
        model = make(fair_estimator=learner, n_teachers=4, epsilon=1e4, **options)
        model.fit(X, y, sensitive_features=groups)
        assert np.mean(model.predict(X) == y) > 0.7


def test_what_a_teacher_warns_of_is_not_passed_on():
    """Whether a warning is given depends on private groups."""
    asked = []

    class Talkative(Watched):
        def fit(self, X, y, sensitive_features):
            asked.append(len(X))
            warnings.warn(f"{np.mean(sensitive_features):.3f}", UserWarning, stacklevel=2)
            return super().fit(X, y, sensitive_features)

    X, y, groups = problem(100)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = make(fair_estimator=Talkative(), variant=FairTeachers(LogisticRegression()))
        model.fit(X, y, sensitive_features=groups)
    assert len(asked) >= N_TEACHERS and not [one for one in caught if one.category is UserWarning]


def test_an_error_of_the_learner_says_that_the_votes_are_paid_for():
    class Broken(Watched):
        def fit(self, X, y, sensitive_features):
            if len(ledger.entries):  # it has passed the trial on made-up rows
                raise RuntimeError("no")
            return super().fit(X, y, sensitive_features)

    X, y, groups = problem(100)
    ledger = PrivacyLedger(epsilon=5)
    with pytest.raises(RuntimeError, match="no") as caught:
        make(fair_estimator=Broken(), ledger=ledger).fit(X, y, sensitive_features=groups)
    assert "released and charged" in caught.value.__notes__[0] and len(ledger.entries) == 1


# ---- odd shapes ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("variant", "voting"), [("student", "soft"), ("student", "gnmax"), ("teacher", "soft")])
def test_parts_smaller_than_their_groups_and_classes(variant, voting):
    X, y, groups = problem(12, 3, 3)
    model = make(3, 4, variant=variant, voting=voting, n_teachers=12).fit(X, y, sensitive_features=groups)
    assert model.predict_proba(X).shape == (12, 3)


@pytest.mark.parametrize("variant", ["student", "teacher"])
def test_one_group_or_one_class_given_is_no_error(variant):
    X, y, groups = problem(40)
    alone = make(groups=[0], variant=variant).fit(X, y, sensitive_features=np.zeros(40, dtype=int))
    assert alone.predict(X).shape == (40,)
    if variant == "student":  # nothing is asked
        assert alone.privacy_.epsilon == 0.0
    same = make(classes=["yes"], variant=variant).fit(X, ["yes"] * 40, sensitive_features=groups)
    assert set(same.predict(X)) == {"yes"}
    both_given = make(variant=variant).fit(X, np.zeros(40, dtype=int), sensitive_features=groups)
    assert set(both_given.predict(X)) <= {0, 1}


def test_a_group_that_the_votes_do_not_show_is_warned_of():
    X, y, groups = problem(80)
    learner = LagrangianClassifier(net=mlp((4,), max_epochs=30, lr=0.05), lam_max=0.1)  # does not give way
    given = {"groups": [0, 1, 2], "voting": GNMaxVoting(max_queries=60), "epsilon": 1e6, "fair_estimator": learner}
    with pytest.warns(FairnessWarning, match="one of the groups has about 0 of the 60 rows") as caught:
        make(**given).fit(X, y, sensitive_features=groups)
    assert caught[0].filename == __file__


def test_groups_as_columns_tuples_and_names():
    X, y, groups = problem(80)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(sex=np.where(groups, "m", "f"), old=np.arange(80) % 2)
    pairs = list(itertools.product(["f", "m"], [0, 1]))
    model = make(groups=pairs, sensitive_columns=["sex", "old"]).fit(frame, y)
    assert (model.n_features_in_, model.released_votes_.shape) == (5, (80, 4))
    assert model.predict(frame.assign(sex="nobody", old=-1)).shape == (80,)
    np.testing.assert_array_equal(model.feature_names_in_, frame.columns)
    named = make(groups=["f", "m"]).fit(frame[["a", "b", "c"]], y, sensitive_features=frame["sex"])
    assert named.groups_.tolist() == ["f", "m"]
    with pytest.raises(ValueError, match="groups twice"):
        make(sensitive_columns=["sex"]).fit(frame, y, sensitive_features=groups)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"variant": "both"}, "'variant' parameter of SFPATEClassifier must be 'student', 'teacher', GroupTeachers"),
        ({"variant": FairTeachers("mlp")}, "'student' parameter of FairTeachers"),
        ({"voting": "confident"}, "'voting'"),
        ({"constraints": "parity"}, "'constraints'"),
        ({"constraints": "equalized_odds", "fair_estimator": QUICK}, "got both 'constraints' and a 'fair_estimator'"),
        ({"constraints": ["accuracy_parity", "accuracy_parity"]}, "'constraints' parameter of SFPATEClassifier"),
        ({"n_teachers": 61}, "more teachers than rows"),
        ({"voting": SoftVoting(max_queries=0)}, "'max_queries'"),
        ({"proximal_weight": -1.0}, "'proximal_weight'"),
        ({"voting": SoftVoting(sigma=0.5)}, "cost epsilon=.*lower 'max_queries'"),
        ({"fair_estimator": LogisticRegression()}, r"'fair_estimator' of SFPATEClassifier must have fit\(X, y, sens"),
        ({"fair_estimator": LagrangianClassifier(net=mlp((-1,)))}, "'hidden'"),
        ({"fair_estimator": LagrangianClassifier(constraints=None)}, "constraints=None.*Set its 'constraints'"),
        ({"variant": GroupTeachers("forest")}, "'teacher'"),
        ({"noise_seed": 0}, "'noise_seed' and 'ledger'"),
    ],
)
def test_what_cannot_be_used_is_said_before_anything_is_spent(change, message):
    X, y, groups = problem()
    ledger = PrivacyLedger(epsilon=10)
    with pytest.raises(ValueError, match=message):
        make(ledger=ledger, **change).fit(X, y, sensitive_features=groups)
    assert ledger.entries == ()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y, g: (X * np.nan, y, g), "NaN"),
        (lambda X, y, g: (np.where(np.arange(3) == 1, 1e200, X), y, g), "beyond 1e"),
        (lambda X, y, g: (X, y[:-1], g), "inconsistent"),
        (lambda X, y, g: (X, y, g[:-1]), "inconsistent length"),
        (lambda X, y, g: (X, y, None), "needs the groups"),
        (lambda X, y, g: (X, y, g + 1), "not in 'groups'"),
        (lambda X, y, g: (X, y + 5, g), "not in 'classes'"),
        (lambda X, y, g: (X, y, np.where(g == 1, np.nan, g)), "missing"),
    ],
)
def test_bad_rows_are_refused_before_anything_is_spent(change, message):
    ledger = PrivacyLedger(epsilon=10)
    X, y, groups = change(*problem())
    with pytest.raises(ValueError, match=message) as caught:
        make(ledger=ledger).fit(X, y, sensitive_features=groups)
    assert ledger.entries == () and caught.value.__context__ is None


def test_inferred_groups_are_a_leak_and_inferred_classes_are_not():
    X, y, groups = problem()
    with pytest.warns(PrivacyLeakWarning, match="'groups'") as caught:
        model = make(groups=None, classes=None).fit(X, y, sensitive_features=groups)
    leaks = [warning for warning in caught if warning.category is PrivacyLeakWarning]  # noise may add another kind
    assert len(leaks) == 1 and leaks[0].filename == __file__
    assert model.classes_.tolist() == [0, 1] and model.groups_.tolist() == [0, 1]


# ---- scikit-learn --------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_a_ledger_stops_a_search_and_counts_every_fit(routing):
    X, y, groups = problem(120)
    ledger = PrivacyLedger(epsilon=20, delta=1e-4)
    search = GridSearchCV(
        make(ledger=ledger, epsilon=1.0), {"variant": ["student", "teacher"]}, cv=KFold(2), error_score="raise"
    )
    search.fit(X, y, sensitive_features=groups)
    assert len(ledger.entries) == 5
    assert {entry.label for entry in ledger.entries} == {"SFPATEClassifier"}
    with pytest.raises(BudgetExceededError):
        make(ledger=PrivacyLedger(epsilon=0.5)).fit(X, y, sensitive_features=groups)


@pytest.mark.filterwarnings("ignore:The Pipeline around")
def test_inside_a_pipeline_and_through_a_pickle(routing):
    X, y, groups = problem(120)
    pipeline = make_pipeline(StandardScaler(), make()).fit(X, y, sensitive_features=groups)
    again = pickle.loads(pickle.dumps(pipeline))
    np.testing.assert_array_equal(again.predict_proba(X), pipeline.predict_proba(X))
    assert again.score(X, y, sensitive_features=groups) == pipeline.score(X, y, sensitive_features=groups)


def test_a_pickle_holds_neither_groups_nor_teachers_nor_raw_votes(monkeypatch):
    X, y, _ = problem(90)
    groups = np.where(np.random.default_rng(1).random(90) < 0.5, "canary-one", "canary-two").astype(object)
    secrets = []

    def watched(original):
        def release(part, votes, *args, **kwargs):
            secrets.append(np.asarray(votes))
            return original(part, votes, *args, **kwargs)

        return release

    for voting in (SoftVoting, GNMaxVoting):
        monkeypatch.setattr(voting, "release", watched(voting.release))
    codes = (groups == "canary-two").astype(np.int64)
    for settings in ({}, {"voting": "gnmax"}, {"variant": "teacher"}):
        model = make(groups=["canary-one", "canary-two"], **settings).fit(X, y, sensitive_features=groups)
        stored = pickle.dumps(model)
        for secret in (codes, groups == "canary-two", secrets[-1], secrets[-1][:, 1], secrets[-1] / N_TEACHERS):
            for dtype in (secret.dtype, np.int64, np.float64, np.float32):
                assert np.ascontiguousarray(secret.astype(dtype)).tobytes() not in stored
        assert stored.count(b"canary-one") <= 2  # the public list of groups, as parameter and as attribute
        assert X.tobytes() not in stored and X[0].tobytes() not in stored


# ---- refit ---------------------------------------------------------------------------------------------------
@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("settings", "changes"),
    [
        ({}, {"fair_estimator": ParityLogisticRegression()}),
        ({}, {"fair_estimator": Says()}),
        pytest.param({"fair_estimator": None}, {"constraints": "equalized_odds"}, marks=pytest.mark.slow),
        ({"voting": GNMaxVoting(max_queries=50)}, {"proximal_weight": 0.0}),
        ({"variant": "teacher"}, {"variant__student": LogisticRegression()}),
        ({"variant": "teacher", "voting": "gnmax"}, {"proximal_weight": 0.5}),
    ],
)
def test_refitting_is_a_fresh_student_of_the_same_votes(settings, changes):
    """With the same seeds a fresh fit releases the same votes."""
    X, y, groups = problem(120)
    with pytest.warns(PrivacyLeakWarning, match="noise_seed"):
        model = make(noise_seed=0, **settings).fit(X, y, sensitive_features=groups)
    before = model.predict(X), model.get_params(deep=False)
    other = model.refit(**changes)
    with pytest.warns(PrivacyLeakWarning, match="noise_seed"):
        fresh = make(noise_seed=0, **{**settings, **changes}).fit(X, y, sensitive_features=groups)
    np.testing.assert_array_equal(other.released_votes_, fresh.released_votes_)
    np.testing.assert_array_equal(other.predict(X), fresh.predict(X))
    if hasattr(fresh, "predict_proba"):
        np.testing.assert_array_equal(other.predict_proba(X), fresh.predict_proba(X))
    assert other.privacy_ is model.privacy_ and other is not model and other.n_features_in_ == 3
    assert type(other.student_) is type(fresh.student_)
    assert model.get_params(deep=False) == before[1]
    np.testing.assert_array_equal(model.predict(X), before[0])
    back = other.refit(**{name: model.get_params()[name] for name in changes})  # and of what it returned
    np.testing.assert_array_equal(back.predict(X), model.predict(X))


class Counting(GaussianNB):
    """Counts how often a teacher is trained."""

    fits = 0

    def fit(self, X, y):
        type(self).fits += 1
        return super().fit(X, y)


def test_refitting_charges_nothing_and_trains_no_teacher():
    X, y, groups = problem(120)
    ledger = PrivacyLedger(epsilon=5)
    model = make(ledger=ledger, variant=GroupTeachers(Counting())).fit(X, y, sensitive_features=groups)
    before = Counting.fits
    for weight in (0.0, 0.1):
        assert model.refit(proximal_weight=weight).proximal_weight == weight
    assert len(ledger.entries) == 1 and Counting.fits == before > 0


def test_what_the_votes_do_not_determine_is_refused():
    X, y, groups = problem(120)
    model = make(variant="teacher").fit(X, y, sensitive_features=groups)
    for change in ({"fair_estimator": QUICK}, {"constraints": "equalized_odds"}):
        with pytest.raises(ValueError, match=r"are fair already, so another '.*' needs a new fit"):
            model.refit(**change)
    student = make().fit(X, y, sensitive_features=groups)
    with pytest.raises(ValueError, match="Got 'variant', which needs a new fit"):
        student.refit(variant=FairTeachers(LogisticRegression()))
    with pytest.raises(ValueError, match="Got 'variant__teacher', which needs a new fit"):
        student.refit(variant__teacher="mlp")
    with pytest.raises(ValueError, match="'proximal_weight'"):
        student.refit(proximal_weight=-1.0)
    with pytest.raises(ValueError, match="'constraints'"):
        student.refit(constraints="parity")
    with pytest.raises(NotFittedError):
        make().refit()


def test_copies_and_pickles_hold_no_rows_and_say_so():
    X, y, groups = problem(120)
    model = make().fit(X, y, sensitive_features=groups)
    for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        with pytest.raises(ValueError, match="hold no rows"):
            again.refit(proximal_weight=0.1)
    assert model._released.X.tobytes() not in pickle.dumps(model)


@pytest.mark.slow
def test_a_search_over_students_pays_for_one_release_per_fold(monkeypatch):
    X, y, groups = problem(300)
    releases, original = [], SoftVoting.release
    monkeypatch.setattr(SoftVoting, "release", lambda *a, **k: (releases.append(1), original(*a, **k))[1])
    grid = {"fair_estimator": [QUICK, ParityLogisticRegression()], "proximal_weight": [0.0, 0.1]}
    search = ParetoSearchCV(make(epsilon=1e4), grid, scoring="accuracy", cv=2, refit=False)
    search.fit(X, y, sensitive_features=groups)
    assert len(search.cv_results_["params"]) == 4 and len(releases) == 2
    releases.clear()
    ParetoSearchCV(make(), {"voting__max_queries": [50, 60]}, scoring="accuracy", cv=2, refit=False).fit(
        X, y, sensitive_features=groups
    )
    assert len(releases) == 4


def test_a_threshold_that_no_label_has_to_reach_is_refused():
    with pytest.raises(ValueError, match=r"the 'threshold' \(0.8\) of 'voting' has no effect"):
        SFPATEClassifier(voting=SoftVoting(threshold=0.8), groups=[0, 1]).fit(
            np.zeros((100, 2)), np.arange(100) % 2, sensitive_features=np.arange(100) // 50
        )
