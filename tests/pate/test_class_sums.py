"""Noisy sums of the features of each class: what goes in, what is charged, what follows, and when there are any."""

import itertools
import math

import joblib
import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from skfairdp import FairPATEClassifier, PATEClassifier, PublicData
from skfairdp._class_sums import GRID, ClassSums, PublicScale, stretched
from skfairdp.datasets import make_biased_classification, train_private_public_test_split
from skfairdp.ensemble import LogisticTeachers
from skfairdp.pate import GNMaxVoting, SoftLabelStudent, SoftVoting
from skfairdp.pate._query_plan import ALONE
from skfairdp.privacy import GaussianDpEvent, GaussianMechanism, NoiseSource, NoisyVotes, compose, epsilon_of, gdp_mu
from tests._tools.inside import PublicRows, shrink_gaps
from tests._tools.sources import FixedAnswers, fixed_entropy, installed, recording_noise

N = 300
#: Rows that may take the place of any other: far out on either side, in the middle, and not to be squared.
STRANGERS = [([1e12, -1e12, 1.0], 1), ([-1e12, 1e12, 0.0], 1), ([0.0, 0.0, 0.0], 0), ([1e308, -1e308, -1.0], 0)]


def world(n_classes=2):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3)) * [1.0, 100.0, 1.0]
    X[:, 2] = X[:, 2] > 0
    return X, np.digitize(X[:, 0], np.linspace(-1, 1, n_classes + 1)[1:-1])


def public_rows():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(160, 3)) * [1.0, 100.0, 1.0]
    X[:, 2] = X[:, 2] > 0
    return PublicData(X, rng.integers(2, size=160))


def fit(table, n_classes=2, make=FairPATEClassifier, **settings):
    return make(epsilon=100.0, classes=range(n_classes), random_state=0, **settings).fit(*table, X_public=public_rows())


def releases_of(table, n_classes):
    with installed(FixedAnswers()) as source:
        model = fit(table, n_classes)
    return source.log, model


@pytest.mark.few(1)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_no_release_moves_further_than_its_declared_sensitivity(n_classes):
    here, model = releases_of(world(n_classes), n_classes)
    assert [type(mechanism) for mechanism, _ in here] == [GaussianMechanism, NoisyVotes]
    farthest = 0.0
    for position in range(0, N, 43):
        for stranger in STRANGERS:
            X, y = world(n_classes)
            X[position], y[position] = stranger
            there, other = releases_of((X, y), n_classes)
            assert model.privacy_ == other.privacy_
            assert [one for one, _ in here] == [one for one, _ in there]
            move = float(np.linalg.norm(here[0][1] - there[0][1]))
            assert move <= here[0][0].sensitivity == 2.0
            farthest = max(farthest, move)
    assert farthest > 1.4, "the neighbours are too tame to test anything"


def test_two_rows_of_a_class_at_opposite_ends_move_the_sums_by_all_of_the_sensitivity():
    sums, public = ClassSums(1.0, n_rows=1, n_classes=2), np.random.default_rng(0).normal(size=(50, 4))
    ends = []
    for side in (1e6, -1e6):
        with installed(FixedAnswers()) as source:
            sums.release(np.full((1, 4), side), np.array([1]), public, source)
        ends.append(source.log[0][1])
    assert 1.999 < np.linalg.norm(ends[0] - ends[1]) <= 2.0


@pytest.mark.parametrize("n_classes", [2, 3])
def test_squares_beside_the_sums_move_them_by_no_more_than_is_declared_and_add_up_in_any_order(n_classes):
    X, y = world(n_classes)
    sums = ClassSums(1.0, n_rows=N, n_classes=n_classes, alone=True, of_squares=True)

    def released(X, y):
        with installed(FixedAnswers()) as source:
            sums.release(X, y, public_rows().X, source, once=X)
        return source.log[0][1]

    here, farthest = released(X, y), 0.0
    order = np.random.default_rng(0).permutation(N)
    np.testing.assert_array_equal(released(X[order], y[order]), here)
    for label in range(n_classes):
        for end, there in itertools.product(([9e9, 9e9, 1.0], [0.0, 0.0, 0.0]), ([-9e9, -9e9, 0.0], [9e9, 0.0, 0.0])):
            first, second = X.copy(), X.copy()
            first[0], second[0], other = end, there, y.copy()
            other[0] = label
            move = float(np.linalg.norm(released(first, y) - released(second, other)))
            assert move <= sums.mechanism.sensitivity == math.sqrt(4.5)
            farthest = max(farthest, move)
    assert farthest > 2.0, "without the squares rows are no further apart than that"


def test_rows_are_stretched_to_the_means_and_squares_that_were_released():
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.uniform(-0.4, 0.4, size=(4000, 3)), rng.integers(2, size=4000) * 0.3])
    found = stretched(rows, np.array([0.1, -0.1, 0.0, 0.2]), np.array([0.05, 0.04, 0.08, 0.0]))
    np.testing.assert_allclose(np.square(found[:, :3]).mean(axis=0), [0.05, 0.04, 0.08], rtol=0.03)
    assert np.abs(found).max() <= 0.4 and np.linalg.norm(found, axis=1).max() <= 1.0
    np.testing.assert_array_equal(found[:, 3], rows[:, 3])  # a flag stays one


def test_a_row_is_within_the_unit_ball_and_on_the_grid_whatever_it_holds_and_whoever_is_beside_it():
    rng = np.random.default_rng(0)
    scale = PublicScale.of(np.column_stack([rng.normal(size=(50, 3)), np.ones(50), rng.random(50) < 0.1]))
    rows = np.vstack([rng.normal(size=(200, 5)) * 10.0 ** rng.integers(-9, 9, (200, 5)), np.full((1, 5), 1e308)])
    found = scale(rows)
    assert (np.square(found).sum(axis=1) <= 1).all() and (found == np.rint(found / GRID) * GRID).all()
    np.testing.assert_array_equal(found, np.vstack([scale(row[None]) for row in rows]))
    assert (found[:, 3] == 0).all()  # a feature that no public row tells apart
    lone = PublicScale(np.array([0.0, -3e307]), np.array([1.0, np.inf]), 1.0)
    assert (lone(np.array([[0.0, 1.79e308]]))[:, 1] == 0).all()


def test_rows_of_many_features_are_within_the_ball_to_the_last_bit():
    """Squares of whole numbers of the grid are added up exactly, as whole numbers."""
    rng = np.random.default_rng(0)
    for n_features in (3, 1_000, 200_000):
        scale = PublicScale.of(rng.normal(size=(4, n_features)))
        for row in (np.full((1, n_features), 9.0), rng.normal(size=(1, n_features))):
            cells = (scale(row)[0] / GRID).astype(np.int64).tolist()
            assert sum(cell * cell for cell in cells) <= int(1 / GRID) ** 2


@pytest.mark.parametrize(("n_classes", "make"), [(2, FairPATEClassifier), (3, FairPATEClassifier), (2, PATEClassifier)])
def test_what_is_certified_is_what_the_noise_of_sums_and_votes_costs_together(n_classes, make):
    with recording_noise(0) as record:
        model = fit(world(n_classes), n_classes, make)
    squared = 0.0
    for release in record.releases:
        times = len(release.value) if isinstance(release.mechanism, NoisyVotes) else 1
        squared += times * (release.adds.sensitivity / release.adds.sigma) ** 2
    assert len(record.releases) == 2
    assert model.privacy_.epsilon == pytest.approx(epsilon_of(GaussianDpEvent(1 / math.sqrt(squared)), 1e-5), rel=1e-6)
    assert model.privacy_.epsilon <= 100.0


@pytest.mark.parametrize("n_classes", [2, 3])
def test_replaying_the_releases_gives_the_student_without_the_private_rows(n_classes):
    X, y = world(n_classes)
    with fixed_entropy(0), recording_noise(np.random.default_rng(0)) as record:
        here = fit((X, y), n_classes)
    with fixed_entropy(0), recording_noise(replay=record):
        there = fit((-50 * X[::-1], n_classes - 1 - y), n_classes)
    assert joblib.hash(vars(here)) == joblib.hash(vars(there))


# ---- what follows --------------------------------------------------------------------------------------------


def logistic_rows(n_rows, n_classes, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 4))
    scores = X @ rng.normal(size=(4, n_classes)) + rng.normal(size=n_classes)
    return X, (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)


def told_by(sums, X, y, public, noise):
    rule, variance, counts = sums.release(X, y, public, noise)
    return rule(public), variance, counts


@pytest.mark.parametrize("n_classes", [2, 3])
def test_without_noise_it_is_the_logistic_regression_of_all_private_rows_where_public_rows_are_the_same(n_classes):
    X, y = logistic_rows(4000, n_classes)
    sums = ClassSums(1e6, n_rows=len(X), n_classes=n_classes)
    told, variance, _ = told_by(sums, X, y, X, NoiseSource(0))
    inside = PublicScale.of(X)(X)
    usual = LogisticRegression(C=1e6, max_iter=1000).fit(inside, y)
    assert np.abs(told - usual.predict_proba(inside)).max() < 0.01
    assert 0 < variance < 5 / len(X)


def test_noise_that_hides_everything_leaves_the_rates_of_the_classes_at_most():
    X, y = logistic_rows(2000, 2)
    told, variance, _ = told_by(ClassSums(1e-4, n_rows=len(X), n_classes=2), X, y, X[:300], NoiseSource(0))
    assert np.ptp(told[:, 1]) < 0.05 and variance < 0.1


@pytest.mark.parametrize("mu", [0.1, 0.5])
def test_shares_are_as_far_off_as_is_said(mu):
    said, seen = [], []
    for seed in range(12):
        X, y = logistic_rows(3000, 2, seed)
        told, variance, _ = told_by(ClassSums(mu, n_rows=len(X), n_classes=2), X, y, X, NoiseSource(seed))
        exact, sampled, _ = told_by(ClassSums(1e6, n_rows=len(X), n_classes=2), X, y, X, NoiseSource(seed))
        said.append(variance - sampled)
        seen.append(np.square(told - exact).mean())
    assert 0.4 < np.mean(seen) / np.mean(said) < 2.0


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("apart", [1e-3, 1e-5, 1e-7])
def test_columns_that_say_nearly_the_same_take_nothing_away(apart, n_classes):
    """Directions of next to no rows have all noise and no signal: the solver must not stop because of them."""
    X, y = logistic_rows(4000, n_classes)
    copies = X[:, [0, 0, 0, 1, 1]] + apart * np.random.default_rng(3).normal(size=(len(X), 5))
    public, wide = X[:300], np.column_stack([X, copies])
    alone, _, _ = told_by(ClassSums(0.5, n_rows=len(X), n_classes=n_classes), X, y, public, NoiseSource(0))
    beside, _, _ = told_by(ClassSums(0.5, n_rows=len(X), n_classes=n_classes), wide, y, wide[:300], NoiseSource(0))
    assert alone.std(axis=0).min() > 0.1, "without copies nothing is learned, and this test says nothing"
    assert np.corrcoef(alone.ravel(), beside.ravel())[0, 1] > 0.95
    assert np.mean(alone.argmax(axis=1) == beside.argmax(axis=1)) > 0.9


def test_sums_tell_what_the_votes_of_small_teachers_do_not():
    """A rare class of which no teacher sees enough: by votes alone hardly a row is given it."""
    data = make_biased_classification(9000, base_rate=0.12, disparity=0.1, random_state=0)
    split = train_private_public_test_split(*data, random_state=0)
    found = {}
    for name, teacher in (("sums", None), ("votes alone", LogisticTeachers(C=3.0))):
        model = PATEClassifier(epsilon=1.0, classes=[0, 1], teacher=teacher, random_state=0, noise_seed=0)
        with pytest.warns(match="noise_seed"):
            model.fit(split.X, split.y, X_public=split.X_public)
        found[name] = float(np.mean(model.predict(split.X_test) == split.y_test))
    assert found["sums"] > found["votes alone"] + 0.005


# ---- when there are any --------------------------------------------------------------------------------------


def plan_of(n=6000, make=PATEClassifier, **settings):
    X, y = logistic_rows(n, 2)
    made = make(**{"classes": [0, 1], **settings})
    return made._plan(made._read(X, y, X_public=X[:100] + 1.0))


def test_sums_get_half_of_the_squared_cost_and_votes_the_rest():
    plan = plan_of()
    assert plan.sums.mu**2 == pytest.approx(0.5 * gdp_mu(1.0, 1e-5) ** 2)
    assert plan.forecast.share == 0.5
    assert plan.releases[0] == "sums of the features of each class"
    assert plan.event == compose(plan.sums.event, plan.votes.event) and epsilon_of(plan.event, 1e-5) <= 1.0


@pytest.mark.parametrize(
    "settings",
    [
        {"teacher": DecisionTreeClassifier()},
        {"n_teachers": 200},
        {"voting": GNMaxVoting()},
        {"voting": SoftVoting(sigma=1e4)},
        {"voting": SoftVoting(noise="discrete_gaussian", max_queries=20)},
        {"n": 200},
    ],
)
def test_votes_stand_alone_where_anything_about_them_is_given_or_sums_would_not_name_the_largest_class(settings):
    plan = plan_of(**settings)
    assert plan.sums is None and plan.trust == 0


def test_where_votes_are_not_clear_sums_get_nearly_everything_and_count_the_classes():
    plan = plan_of(n=700)
    assert plan.sums.alone and plan.sums.mu**2 == pytest.approx(ALONE * gdp_mu(1.0, 1e-5) ** 2)
    assert plan.counts is None and not plan.forecast.snr_too_low
    assert 0.999 < epsilon_of(plan.event, 1e-5) <= 1.0


# ---- how fair the student is on rows to come ----------------------------------------------------------------


def path_of(n_rows):
    """A student of shares without noise, on rows of which a group is a tenth, held to parity on them."""
    rng = np.random.default_rng(3)
    groups = (np.arange(n_rows) % 10 == 0).astype(np.int64)
    X = rng.normal(size=(n_rows, 3)) + groups[:, None] * [1.0, 0.0, 0.5]
    shares = expit(X @ [1.5, 1.0, 0.5] - 2.0)
    student = SoftLabelStudent().fit(X, np.column_stack([1 - shares, shares]), groups=groups, n_groups=2)
    return student, PublicRows(X, groups, np.array([0, 1], dtype=object))


@pytest.mark.parametrize("gamma", [0.01, 0.03, 0.1])
def test_a_level_keeps_to_gamma_on_the_public_rows_and_so_few_rows_ask_for_more_than_that(gamma):
    student, public = path_of(400)
    careful = shrink_gaps(student, public).with_gamma(gamma)
    usual = student.with_gamma(gamma)
    assert careful.satisfied_ == usual.satisfied_ and careful.gap_ <= max(gamma, usual.gap_)
    assert careful.level_ >= usual.level_


def test_many_rows_leave_the_level_as_it_is():
    student, public = path_of(100_000)
    for gamma in (0.02, 0.05, 0.1, None):
        assert shrink_gaps(student, public).with_gamma(gamma).level_ == student.with_gamma(gamma).level_
