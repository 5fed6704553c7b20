"""Rules that bend: by public rows alone, row by row, where shares are for it, and only where votes are clear."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

from skfairdp import FairPATEClassifier
from skfairdp.pate import ConstrainedStudent, ParityPenaltyStudent, SoftLabelStudent
from skfairdp.pate._soft_label_student import FARTHEST, NO_HINGES, HingeFeatures
from tests._tools.sources import recording_noise


def beyond_a_threshold(n=3000, seed=0):
    """A class that follows two numbers only where they are large; a third says nothing."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    score = 4 * np.maximum(X[:, 0] - 0.7, 0) + 4 * np.maximum(X[:, 1] - 0.7, 0) - 1.5
    return X, (rng.random(n) < 1 / (1 + np.exp(-score))).astype(int), score


def test_a_number_has_a_column_for_each_side_and_a_flag_has_none():
    rng = np.random.default_rng(0)
    public = np.column_stack([rng.normal(size=500), rng.integers(2, size=500), np.full(500, 7.0)])
    bent = HingeFeatures.of(public)(public)
    assert bent.shape == (500, 5)
    np.testing.assert_array_equal(bent[:, :3], public)
    low, high = np.quantile(public[:, 0], [0.25, 0.75])
    mean, std = public[:, 0].mean(), public[:, 0].std()
    inside = np.clip(public[:, 0], mean - FARTHEST * std, mean + FARTHEST * std)
    np.testing.assert_allclose(bent[:, 3], np.maximum(low - inside, 0) / std, atol=1e-12)
    np.testing.assert_allclose(bent[:, 4], np.maximum(inside - high, 0) / std, atol=1e-12)


def test_a_side_on_which_no_public_row_lies_has_no_column():
    public = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 2.0])[:, None]
    bends = HingeFeatures.of(public)
    assert not len(bends.below) and bends.above.tolist() == [0]


@given(arrays(float, (4, 2), elements=st.floats(-1e308, 1e308)))
def test_whatever_a_row_holds_its_bends_are_finite_and_its_own(X):
    public = np.random.default_rng(1).normal(size=(40, 2))
    bends = HingeFeatures.of(public)
    bent = bends(X)
    assert np.isfinite(bent[:, 2:]).all() and bent[:, 2:].max() <= 2 * FARTHEST
    np.testing.assert_array_equal(bent, np.vstack([bends(row[None]) for row in X]))


@given(arrays(float, (6, 2), elements=st.floats(allow_nan=False, allow_infinity=False)))
def test_whatever_public_rows_hold_there_are_bends_or_none(public):
    assert np.isfinite(HingeFeatures.of(public)(np.zeros((1, 2)))).all()


def test_a_bent_student_follows_a_number_that_matters_only_where_it_is_large():
    X, y, score = beyond_a_threshold()
    shares = np.eye(2)[y]
    straight, bent = (SoftLabelStudent().fit(X, shares, bends=bends) for bends in (False, True))
    chance = 1 / (1 + np.exp(-score))
    off = [float(np.abs(student.predict_proba(X)[:, 1] - chance).mean()) for student in (straight, bent)]
    assert off[1] < 0.6 * off[0], off
    assert bent.coef_.shape == (9, 1) and bent.n_features_in_ == straight.n_features_in_ == 3


def test_where_noise_hides_all_there_are_no_bends():
    X, y, _ = beyond_a_threshold(1000)
    noisy = y + 50.0 * np.random.default_rng(1).normal(size=1000)
    student = SoftLabelStudent().fit(X, np.column_stack([1 - noisy, noisy]), noise_std=50.0, bends=True)
    assert student.coef_.shape == (3, 1)


def test_a_rule_that_cannot_come_near_to_parity_gives_its_bends_up():
    rng = np.random.default_rng(0)
    groups = (rng.random(4000) < 0.1).astype(int)
    X = rng.normal(size=(4000, 2))
    X[:, 0] *= 1 + 2 * groups
    X -= np.stack([X[groups == z].mean(axis=0) for z in (0, 1)])[groups]
    chance = 1 / (1 + np.exp(-2 * (X.sum(axis=1) - 1)))
    student = SoftLabelStudent(gamma=0.02).fit(X, np.column_stack([1 - chance, chance]), groups=groups, bends=True)
    assert student.satisfied_ and student.coef_.shape == (2, 1)


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", [SoftLabelStudent, ParityPenaltyStudent, ConstrainedStudent])
def test_students_by_themselves_are_straight_and_bend_on_demand(kind):
    X, y, _ = beyond_a_threshold(600)
    groups = np.arange(600) % 2
    student = kind("demographic_parity") if kind is ConstrainedStudent else kind()
    for bends in (False, True):
        fitted = student.fit(X, np.eye(2)[y], groups=groups, bends=bends)
        inner = fitted._shares if kind is ConstrainedStudent else fitted
        assert bool(len(inner.bends_.numbers)) == bends


@pytest.mark.slow
def test_a_network_has_no_bends():
    X, y, _ = beyond_a_threshold(300)
    student = ParityPenaltyStudent(penalty_weight=0.0, hidden=(4,), max_iter=5).fit(X, np.eye(2)[y], bends=True)
    assert not len(student.bends_.numbers)


@pytest.mark.parametrize(("n", "epsilon", "bent"), [(10_000, 20.0, True), (300, 1.0, False)])
def test_a_fit_bends_only_where_its_votes_are_clear(n, epsilon, bent):
    X, y, _ = beyond_a_threshold(n + 1000)
    groups = np.arange(n + 1000) % 2
    with recording_noise(entropy=0):
        model = FairPATEClassifier(epsilon=epsilon, classes=[0, 1], groups=[0, 1], gamma=None, random_state=0)
        model.fit(X[:n], y[:n], X_public=X[n:], sensitive_features=groups[:n], sensitive_features_public=groups[n:])
    assert bool(len(getattr(model._lessons.denoiser, "bends_", NO_HINGES).numbers)) == bent
