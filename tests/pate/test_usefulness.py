"""What votes cannot carry is told; no student is worse than the most frequent class, and a warning says so."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from skfairdp import FairPATEClassifier, PATEClassifier, PFLDClassifier, PrivacyLedger, SFPATEClassifier
from skfairdp._usefulness import CLEAR, HOPELESS, VoteForecast, seen
from skfairdp.ensemble import LogisticTeachers
from skfairdp.exceptions import BudgetExceededError, FairnessWarning, UtilityWarning
from skfairdp.lagrangian import mlp
from skfairdp.pate import GNMaxVoting, SoftVoting
from skfairdp.privacy import GaussianDpEvent, LaplaceCounts, NoisyVotes, compose, epsilon_of, gdp_mu
from skfairdp.schema import Category, Number, Schema
from tests._tools.inside import (
    ALL_BUT,
    COUNT_NOISE,
    UNANSWERED,
    ConstantStudent,
    PublicRows,
    ReleasedVotes,
    StudentTrainingSet,
    fall_back_to_majority,
    majority_class,
    plan_counts,
    what_is_enough,
)
from tests._tools.sources import recording_noise

SMALL = {"classes": [0, 1], "random_state": 0}


def table(n, rate, n_features=6, n_classes=2, seed=0, strength=3.0):
    """Features of which a rule of strength 0 says nothing about the class."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features))
    score = strength * X[:, 0] + rng.logistic(size=n)
    edges = np.quantile(score, np.cumsum([1 - rate] + [rate / (n_classes - 1)] * (n_classes - 2)))
    return X, np.digitize(score, edges)


def fitted(model, X, y, n_public=100, **given):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X[n_public:], y[n_public:], X_public=X[:n_public], **given)
    return model, [str(w.message) for w in caught if w.category is UtilityWarning]


# ---- forecast --------------------------------------------------------------------------------------------------
def test_rows_and_epsilon_of_a_forecast_are_enough_and_hardly_less_would_do():
    for n_values in (2, 3, 5):
        for n_rows, epsilon in ((150, 0.5), (400, 0.5), (1000, 1.0)):
            forecast = VoteForecast(n_rows, n_values, epsilon, 1e-5)
            target = min(CLEAR, forecast.noise / 2)
            rows, enough = what_is_enough(forecast, lambda other, noise=target: other.noise <= noise)
            assert VoteForecast(rows, n_values, epsilon, 1e-5).noise <= target
            assert VoteForecast(int(0.85 * rows), n_values, epsilon, 1e-5).noise > 0.95 * target
            assert VoteForecast(n_rows, n_values, enough, 1e-5).noise <= target
            assert VoteForecast(n_rows, n_values, 0.85 * enough, 1e-5).noise > 0.95 * target
    assert what_is_enough(VoteForecast(400, 2, 0.5, 1e-5, n_teachers=10), lambda one: one.noise <= 0.04)[0] is None


def test_the_noise_of_the_forecast_is_that_of_the_mean_of_released_shares():
    X, y = table(900, 0.5)
    model = PATEClassifier(epsilon=2.0, teacher=LogisticTeachers(), **SMALL)  # a given one votes without sums
    plan = model._plan(model._read(X[100:], y[100:], X_public=X[:100]))
    mean = plan.votes.sigma / plan.votes.n_teachers / np.sqrt(plan.votes.n_queries)
    assert abs(mean / plan.forecast.noise - 1) < 0.01


# ---- counts of the classes -------------------------------------------------------------------------------------
@pytest.mark.covering
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("voting", ["soft", "gnmax", "confident"])
def test_counts_and_votes_together_cost_at_most_epsilon(n_classes, voting):
    X, y = table(400, 0.3, n_classes=n_classes)
    for epsilon in (0.5, 1.0):
        model = PATEClassifier(epsilon=epsilon, classes=range(n_classes), voting=voting, teacher=LogisticTeachers())
        model.set_params(voting__max_queries=40)
        plan = model._plan(model._read(X[100:], y[100:], X_public=X[:100]))
        assert plan.counts is not None
        together = compose(plan.counts.event, plan.votes.event)
        assert 0.97 * epsilon <= epsilon_of(together, 1e-5) <= epsilon
        pure = isinstance(plan.counts, LaplaceCounts)
        assert pure == plan.forecast.snr_too_low  # then the shares say that votes get next to nothing
        assert plan.counts.sensitivity == (1 if n_classes == 2 else 2 if pure else np.sqrt(2))


def test_one_replaced_row_moves_the_counts_by_their_sensitivity():
    counts = NoisyVotes(1.0, n_teachers=50, n_classes=3)
    y = np.arange(50) % 3
    moved = [
        np.linalg.norm(np.bincount(y, minlength=3) - np.bincount(np.r_[y[:i], other, y[i + 1 :]], minlength=3))
        for i in range(50)
        for other in range(3)
    ]
    assert max(moved) == counts.sensitivity


@pytest.mark.parametrize("n_values", [2, 3])
@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_where_votes_decide_nothing_counts_are_released_with_the_less_noise_of_two_kinds(n_values, epsilon):
    forecast = VoteForecast(int(60 / epsilon), n_values, epsilon, 1e-5)
    assert forecast.snr_too_low
    counts, left, _ = plan_counts(forecast, SoftVoting())
    assert isinstance(counts, LaplaceCounts) and left.share == pytest.approx(1 - ALL_BUT)
    gaussian = (1 if n_values == 2 else np.sqrt(2)) / (np.sqrt(ALL_BUT) * gdp_mu(epsilon, 1e-5))
    assert counts.sigma < 0.75 * gaussian
    together = compose(counts.event, GaussianDpEvent(1 / left.mu))
    assert 0.97 * epsilon <= epsilon_of(together, 1e-5) <= epsilon
    half = replace(forecast, share=0.5)  # the other half is another's: a pure ε would have to be added to it
    other, _, _ = plan_counts(half, SoftVoting())
    assert isinstance(other, LaplaceCounts if n_values == 2 else NoisyVotes)


def test_classes_are_counted_only_where_votes_cannot_name_the_most_frequent():
    for forecast in (VoteForecast(n, k, e, 1e-5) for n in (150, 1000, 5000) for k in (1, 2, 4) for e in (0.5, 1, 4)):
        counts, left, _ = plan_counts(forecast, SoftVoting())
        assert (counts is not None) == (forecast.n_values > 1 and forecast.noise > CLEAR)
        if counts is None:
            assert left == forecast
        else:
            assert left.share < forecast.share and left.noise > forecast.noise
            assert counts.sigma / forecast.n_rows <= COUNT_NOISE * 1.001 or left.snr_too_low
    assert plan_counts(VoteForecast(150, 2, 0.5, 1e-5), SoftVoting(noise="discrete_gaussian"))[0] is None
    assert plan_counts(VoteForecast(150, 2, 0.5, 1e-5), GNMaxVoting(sigma=40.0))[0] is None


def test_the_counts_are_released_and_on_record():
    X, y = table(300, 0.3)
    model = PATEClassifier(epsilon=0.5, **SMALL)
    with recording_noise(0) as record:
        _, told = fitted(model, X, y)
    counted = [release for release in record.releases if np.shape(release.output) == (1, 2)]
    assert len(counted) == 1 and counted[0].output[0].tolist() == np.bincount(y[100:]).tolist()
    plan = model._plan(model._read(X[100:], y[100:], X_public=X[:100]))
    assert plan.releases[0] == "noisy counts of the classes" and model.privacy_.epsilon <= 0.5 and told


# ---- never worse than the most frequent class ------------------------------------------------------------------
@pytest.mark.parametrize("make", [PATEClassifier, FairPATEClassifier])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_hopeless_fit_predicts_the_most_frequent_class_and_says_what_would_do(make, n_classes):
    X, y = table(300, 0.3, n_classes=n_classes)
    names = np.array([f"class {k}" for k in range(n_classes)])
    given = {"sensitive_features_public": np.arange(100) % 2} if make is FairPATEClassifier else {}
    model, told = fitted(make(epsilon=0.5, classes=names, random_state=0), X, names[y], **given)
    assert set(model.predict(X)) == {names[np.bincount(y[100:]).argmax()]}
    assert len(told) == 1 and "private rows" in told[0] and "epsilon=" in told[0] and "class 0" in told[0]
    assert np.isfinite(model.predict_proba(X)).all()


def test_a_fit_that_carries_its_task_keeps_its_student_without_a_word():
    X, y = table(2100, 0.4)
    model, told = fitted(PATEClassifier(epsilon=3.0, **SMALL), X, y)
    assert not told and model.score(X, y) > 0.8 and model.student_ is model._lessons.denoiser


def test_students_are_kept_in_doubt_where_votes_show_that_they_are_better():
    X, y = table(500, 0.5, strength=9.0)
    kept = []
    for seed in range(6):
        with recording_noise(entropy=seed):
            model, told = fitted(PATEClassifier(epsilon=1.5, teacher=LogisticTeachers(C=3.0), **SMALL), X, y)
        assert CLEAR < model._lessons.votes.forecast.noise < HOPELESS
        kept += [] if told else [model.score(X, y)]
    assert len(kept) >= 3 and np.mean(kept) > 0.7


@pytest.mark.few(1)
@pytest.mark.parametrize("student", [None, LogisticRegression()])
def test_without_a_signal_students_cost_no_accuracy_on_average(student):
    lost = []
    for seed in range(8):
        X, y = table(1500, 0.25, strength=0.0, seed=seed)
        with recording_noise(entropy=seed):
            model, told = fitted(PATEClassifier(epsilon=1.5, student=student, **SMALL), X[:500], y[:500])
        lost.append(np.mean(y[500:] == 0) - model.score(X[500:], y[500:]))
        assert told or len(set(model.predict(X[500:]))) == 2
    assert np.mean(lost) <= 0.01


def test_predictions_of_one_class_are_told_whatever_the_noise():
    X, y = table(3000, 0.02, strength=0.0)
    model, told = fitted(PATEClassifier(epsilon=8.0, **SMALL), X, y)
    assert model._lessons.votes.forecast.noise < CLEAR and set(model.predict(X)) == {0} and len(told) == 1


def test_one_declared_class_is_no_news():
    X, y = table(200, 0.3)
    assert not fitted(PATEClassifier(epsilon=0.5, classes=[0]), X, np.zeros_like(y))[1]


def test_the_warning_follows_from_what_was_released():
    """Another table, the same releases: the same student and the same words."""
    X, y = table(300, 0.3)
    with recording_noise(entropy=0) as record:
        first, told = fitted(PATEClassifier(epsilon=0.5, **SMALL), X, y)
    with recording_noise(replay=record):
        second, again = fitted(PATEClassifier(epsilon=0.5, **SMALL), X, np.r_[y[:100], 1 - y[100:]])
    assert told == again and np.array_equal(first.predict(X), second.predict(X))


def test_refit_holds_another_student_to_the_same():
    X, y = table(300, 0.3)
    model, _ = fitted(PATEClassifier(epsilon=0.5, **SMALL), X, y)
    with pytest.warns(UtilityWarning):
        other = model.refit(student=LogisticRegression())
    assert np.array_equal(other.predict(X), model.predict(X))


# ---- attribute privacy: labels are public ----------------------------------------------------------------------
def groups_table(n, seed=0):
    rng = np.random.default_rng(seed)
    groups = rng.integers(2, size=n)
    X = rng.normal(size=(n, 3)) + groups[:, None]
    return X, (X[:, 0] + 0.3 * rng.normal(size=n) > 0.5).astype(int), groups


def test_sf_pate_says_before_it_spends_that_its_votes_are_too_noisy():
    X, y, groups = groups_table(300)
    ledger = PrivacyLedger(epsilon=0.1)  # refuses the fit, after the warning
    model = SFPATEClassifier(epsilon=0.5, groups=[0, 1], ledger=ledger, random_state=0)
    with (
        pytest.warns(FairnessWarning, match=r"[\d,]+ rows or epsilon=[\d.]+ would suffice.*PFLDClassifier"),
        pytest.raises(BudgetExceededError),
    ):
        model.fit(X, y, sensitive_features=groups)
    assert not ledger.entries


@pytest.mark.slow
def test_sf_pate_is_silent_where_its_votes_can_hold_the_constraint():
    model = SFPATEClassifier(epsilon=8.0, groups=[0, 1], random_state=0)
    X, y, groups = groups_table(1500)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y, sensitive_features=groups)
    assert not caught and len(set(model.predict(X))) == 2


def test_rows_right_no_more_often_than_the_most_frequent_class_are_told_by_public_labels():
    y = np.array([0, 0, 0, 1])
    behind = seen(np.array([0, 0, 1, 0]), y)
    assert not behind.is_passed and not seen(np.zeros(4, dtype=int), y).is_passed and seen(y, y).is_passed
    with pytest.warns(UtilityWarning, match=r"right on 0\.500.*on 0\.750"):
        behind.warn("a", "PFLDClassifier", falls_back=True)


def test_pfld_tells_what_its_constraint_costs():
    """Rates of the classes differ so much between groups that parity is worse than any constant."""
    rng = np.random.default_rng(0)
    groups = rng.integers(2, size=600)
    X, y = rng.normal(size=(600, 2)), (rng.random(600) < 0.05).astype(int)
    net = mlp((4,), max_epochs=1, lr=1e-6)
    model = PFLDClassifier(epsilon=8.0, groups=[0, 1], net=net, dual_steps=2, random_state=0)
    with recording_noise(entropy=0), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y, sensitive_features=groups)
    assert [w.category for w in caught if w.category is not FairnessWarning] == [UtilityWarning]
    assert set(model.predict(X)) == {0} and model.violation_ == 0.0  # it gives way to that class


def test_a_student_that_answers_a_rare_class_far_more_often_than_it_occurs_gives_way():
    """It knows a little, and its votes show that; it loses a third of the rows all the same."""
    rng = np.random.default_rng(0)
    n, rate, noise = 600, 0.15, 0.5
    y = (rng.random(n) < rate).astype(int)
    X = y[:, None] + 3.0 * rng.normal(size=(n, 1))
    shares = y + noise * rng.normal(size=n)
    votes = ReleasedVotes(
        None, np.column_stack([1 - shares, shares]), noise, class_counts=np.array([1 - rate, rate]) * n,
        forecast=VoteForecast(n, 2, 1.0, 1e-5, n_teachers=int(1 / 0.05 / gdp_mu(1.0, 1e-5))),
    )  # fmt: skip
    lessons = StudentTrainingSet(PublicRows(X, None, None), np.arange(n), votes, 2)
    assert CLEAR < votes.forecast.noise <= HOPELESS

    class Eager:
        """Answers the rare class for every row above a threshold."""

        def __init__(self, threshold):
            self.threshold = threshold

        def predict(self, X):
            return (X[:, 0] > self.threshold).astype(int)

    with pytest.warns(UtilityWarning):
        student = fall_back_to_majority(
            Eager(0.0), lessons, np.array([0, 1]), "PATEClassifier", lambda part: Eager(0.0), None
        )
    assert isinstance(student, ConstantStudent)
    assert np.mean(Eager(0.0).predict(X) == y) < 1 - rate - 0.3


def test_a_student_is_judged_by_votes_that_did_not_teach_it():
    """Each vote is kept from one student, which answers it and no other."""
    n, rng = 90, np.random.default_rng(0)
    X, shares = np.arange(n, dtype=float)[:, None], rng.random(n)
    votes = ReleasedVotes(
        None, np.column_stack([1 - shares, shares]), 0.5, class_counts=np.array([0.8, 0.2]) * n,
        forecast=VoteForecast(n, 2, 1.0, 1e-5, n_teachers=int(1 / 0.05 / gdp_mu(1.0, 1e-5))),
    )  # fmt: skip
    lessons, asked = StudentTrainingSet(PublicRows(X, None, None), np.arange(n), votes, 2), []
    assert CLEAR < votes.forecast.noise <= HOPELESS

    class Watched:
        def __init__(self, taught):
            self.taught = taught

        def predict(self, X):
            assert not set(X[:, 0].astype(int)) & set(self.taught)
            asked.extend(X[:, 0].astype(int))
            return np.zeros(len(X), dtype=int)

    with pytest.warns(UtilityWarning):
        fall_back_to_majority(ConstantStudent(2, 0), lessons, np.array([0, 1]), "PATEClassifier",
                 lambda part: Watched(part.queries.tolist()), None)  # fmt: skip
    assert sorted(asked) == list(range(n))


@pytest.mark.parametrize("usual", [0, 1, 2])
def test_a_query_without_an_answer_counts_for_no_class(usual):
    """Neither for the first nor for the last, of which its code would be one."""
    labels = np.array([usual] * 5 + [(usual + 1) % 3] * 3 + [UNANSWERED] * 40)
    lessons = StudentTrainingSet(PublicRows(np.zeros((48, 1)), None, None), np.arange(48), ReleasedVotes(labels), 3)
    assert majority_class(lessons) == usual


def test_a_wide_one_hot_makes_no_useless_model_of_a_good_one():
    """Found: of a category with 300 values every direction counted as noise, and a student that is right on three rows
    of four was told to be "right on 0.154 of the released votes"."""
    rng = np.random.default_rng(0)
    X, y = table(1000, 0.5, n_features=2)
    wide = np.column_stack([X, np.eye(300)[rng.integers(300, size=len(X))]])
    for seed in range(3):
        with recording_noise(entropy=seed):
            model, told = fitted(PATEClassifier(epsilon=2.0, **SMALL), wide, y, n_public=500)
        assert model._lessons.denoiser.n_followed_ < 120
        assert model.score(wide, y) > 0.65 and all("may be no better" in words for words in told)
    with recording_noise(entropy=0):
        _, told = fitted(PATEClassifier(epsilon=2.0, **SMALL), wide, rng.integers(2, size=len(y)), n_public=500)
    assert told


def test_few_public_rows_are_named_where_noise_alone_is_not_why_one_class_is_all():
    """Found: 5 public rows, and "160,000 private rows or epsilon=27" as the way out."""
    _, told = fitted(PATEClassifier(epsilon=2, **SMALL), *table(20_000, rate=0.02), n_public=5)
    assert len(told) == 1 and "more public rows than 5." in told[0]


def test_a_student_far_behind_the_most_frequent_class_gives_way_to_it():
    """Where one column tells the label, and the group by nothing but that, what takes the gap away turns answers round:
    such a student is right on a tenth to four tenths of the rows, and one class has no gap at all."""
    rng, n = np.random.default_rng(0), 8000
    groups = rng.choice(["a", "b"], n, p=[0.6, 0.4])
    y = (rng.random(n) < 0.4 + 0.2 * (groups == "b")).astype(int)
    table = pd.DataFrame({"mark": rng.normal(30 + 20 * y, 3), "sex": groups, "label": y})
    schema = Schema(
        {"mark": Number(0, 100), "sex": Category(["a", "b"]), "label": Category([0, 1])}, label="label", groups="sex"
    )
    constant = []
    for seed in range(6):
        model = FairPATEClassifier(gamma=0.05, schema=schema, random_state=0, noise_seed=seed)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(table)
        told = [str(one.message) for one in caught if one.category in (UtilityWarning, FairnessWarning)]
        assert model.score(table) > max(y.mean(), 1 - y.mean()) - 0.05
        if isinstance(model.student_, ConstantStudent):
            constant.append(model)
            assert any("predicts the class" in one and "it is right on 0." in one for one in told)
            assert not any("smallest demographic disparity" in one for one in told) and model.constraint_holds_ == "yes"
    assert constant
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert constant[0].refit(gamma=1.0).score(table) > 0.9
