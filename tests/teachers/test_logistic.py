"""The batched logistic engine against scikit-learn and against itself in its two forms."""

import itertools

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

from skfairdp.ensemble import LogisticTeachers
from tests._tools.inside import LogisticEnsemble, Parts, fit_teachers, position_partition


def make(n_rows, n_features, n_classes, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_features))
    return X, (X @ rng.standard_normal((n_features, n_classes)) + rng.gumbel(size=(n_rows, n_classes))).argmax(axis=1)


def coefficients(X, y, assignment, n_teachers, n_classes, engine=LogisticTeachers, **settings):
    parts = Parts.of(assignment, y, np.zeros(n_teachers, dtype=np.int64), n_classes)
    ensemble = engine(**settings)._fit_parts(X, y, parts, n_jobs=None, verbose=0)
    return ensemble.coef, ensemble.intercept


def reference(X, y, C):
    return LogisticRegression(C=C, solver="newton-cholesky", tol=1e-10, max_iter=1000).fit(X, y)


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize(("n_rows", "n_features"), [(400, 5), (100, 40), (61, 3)], ids=["tall", "wide", "ragged"])
def test_binary_teachers_equal_scikit_learn(n_rows, n_features, C):
    X, y = make(n_rows, n_features, 2)
    X = 3 * X + 1
    assignment = position_partition(n_rows, 4, random_state=0)
    coef, intercept = coefficients(X, y, assignment, 4, 2, C=C, tol=1e-10)
    for k in range(4):
        model = reference(X[assignment == k], y[assignment == k], C)
        np.testing.assert_allclose(coef[k, 1], model.coef_[0], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(intercept[k, 1], model.intercept_[0], rtol=1e-4, atol=1e-5)


def test_three_classes_equal_one_against_the_rest():
    X, y = make(600, 6, 3)
    assignment = position_partition(600, 5, random_state=0)
    teachers = fit_teachers("logistic", X, y, assignment, n_teachers=5, n_classes=3, random_state=0)
    queries = make(300, 6, 3, seed=1)[0]
    votes = teachers.predict(queries)
    coef, _ = coefficients(X, y, assignment, 5, 3, tol=1e-10)
    for k in range(5):
        mine = assignment == k
        model = OneVsRestClassifier(LogisticRegression(solver="newton-cholesky", tol=1e-10)).fit(X[mine], y[mine])
        for c, one in enumerate(model.estimators_):
            np.testing.assert_allclose(coef[k, c], one.coef_[0], rtol=1e-4, atol=1e-5)
        scores = queries @ np.stack([one.coef_[0] for one in model.estimators_]).T
        scores += np.concatenate([one.intercept_ for one in model.estimators_])
        assert (votes[k] == scores.argmax(axis=1)).mean() > 0.995


def test_a_part_with_fewer_rows_than_features_is_the_same_problem_in_the_span_of_its_rows():
    """The rotated solution satisfies the stationarity condition of the full problem, and lies in that span."""
    X, y = make(24, 60, 2)
    coef, intercept = coefficients(X, y, np.zeros(24, dtype=int), 1, 2, C=0.5)
    w, b = coef[0, 1], intercept[0, 1]
    residual = 1 / (1 + np.exp(-(X @ w + b))) - y
    np.testing.assert_allclose(X.T @ residual + w / 0.5, 0, atol=1e-4)
    assert abs(residual.sum()) < 1e-4
    projected = X.T @ np.linalg.lstsq(X.T, w, rcond=None)[0]
    np.testing.assert_allclose(projected, w, atol=1e-10)


@pytest.mark.parametrize("entries", [1, 2**18])
def test_batching_does_not_change_a_bit(entries):
    class InOtherBatches(LogisticTeachers):
        _batch_entries, _teachers_per_task = entries, 5

    X, y = make(310, 7, 3)
    assignment = np.random.default_rng(0).integers(0, 12, 310)
    one_by_one = [
        coefficients(X[assignment == k], y[assignment == k], np.zeros((assignment == k).sum(), int), 1, 3)
        for k in range(12)
    ]
    coef, intercept = coefficients(X, y, assignment, 12, 3, InOtherBatches)
    for k in range(12):
        assert np.array_equal(coef[k], one_by_one[k][0][0])
        assert np.array_equal(intercept[k], one_by_one[k][1][0])


def test_separable_parts_with_hardly_any_penalty_stay_finite():
    X, y = np.linspace(-1, 1, 40)[:, None] * [[1.0, 1e3]], (np.arange(40) >= 20).astype(int)
    coef, intercept = coefficients(X, y, np.arange(40) % 2, 2, 2, C=1e12)
    assert np.isfinite(coef).all() and np.isfinite(intercept).all()
    assert ((X @ coef[:, 1].T + intercept[:, 1] > 0) == y[:, None]).all()


def test_damping_converges_where_full_newton_steps_from_zero_diverge():
    X = np.array(
        [[0.9, 3.7], [-1.3, 0.5], [-0.9, -0.2], [0.0, -0.3], [-2.1, -14.4], [-0.2, -2.0], [2.1, -0.8], [-1.1, -23.6]]
    )
    y = np.array([0, 1, 0, 0, 0, 0, 0, 0])
    coef, intercept = coefficients(X, y, np.zeros(8, dtype=int), 1, 2, C=1e4)
    residual = 1 / (1 + np.exp(-(X @ coef[0, 1] + intercept[0, 1]))) - y
    # Undamped, the mean gradient stays at 1/8.
    assert np.abs(X.T @ residual + coef[0, 1] / 1e4).max() <= 1e-6 * 8
    assert abs(residual.sum()) <= 1e-6 * 8


@pytest.mark.parametrize("scale", [1.0, 1e6, 1e12])
def test_repeated_columns_of_any_scale_are_fitted(scale):
    """X'WX is singular; the penalty that makes the problem definite is lost in rounding beside it."""
    X, y = make(200, 3, 2)
    X = np.concatenate([X, X[:, :1], scale * X[:, 1:2], scale * X[:, 1:2], np.zeros((200, 1))], axis=1)
    teachers = fit_teachers("logistic", X, y, np.arange(200) % 2, n_teachers=2, n_classes=2)
    plain = fit_teachers("logistic", X[:, :3], y, np.arange(200) % 2, n_teachers=2, n_classes=2)
    assert (teachers.predict(X) == plain.predict(X[:, :3])).mean() > 0.97


def test_extreme_entries_give_votes_and_no_warning():
    X = np.array([[1e200, 1.0], [-1e200, 2.0], [3.0, 1e-300], [0.0, 0.0], [1e308, -1e308], [-1e308, -1e308]])
    y, assignment = np.array([1, 2, 1, 2, 1, 2]), np.array([0, 0, 1, 1, 2, 2])
    teachers = fit_teachers("logistic", X, y, assignment, n_teachers=3, n_classes=4)
    assert np.isin(teachers.predict(X), [1, 2]).all()
    coef, intercept = coefficients(X, y, assignment, 3, 4)
    assert np.isfinite(coef).all() and np.isfinite(intercept[:, 2]).all()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_how_others_are_computed_does_not_follow_from_how_many_classes_a_teacher_has_seen(n_classes):
    """Last bits follow the shape of a product. Row 0 is next to the threshold of every teacher."""
    rng = np.random.default_rng(0)
    for n_teachers in range(2, 40):
        n_features = int(rng.integers(3, 60))
        coef, intercept = np.zeros((n_teachers, n_classes, n_features)), np.full((n_teachers, n_classes), -np.inf)
        X = 1e3 * rng.normal(size=(int(rng.integers(1, 40)), n_features))
        coef[1:, 1] = rng.normal(size=(n_teachers - 1, n_features))
        intercept[:, :2] = np.stack([np.zeros(n_teachers), -(coef[:, 1] @ X[0])], axis=1)
        intercept[0, 1] = -1e9  # sure of class 0, as a teacher is that has seen it alone
        scored = np.arange(n_classes) == np.ones((n_teachers, 1))
        one = intercept.copy(), scored.copy()
        one[0][0, 1], one[1][0] = -np.inf, False
        both, alone = LogisticEnsemble(coef, intercept, scored), LogisticEnsemble(coef, *one)
        np.testing.assert_array_equal(both.predict(X), alone.predict(X))
        sums = [of.summed_probabilities(X, n_classes, 2.0**-30) for of in (both, alone)]
        np.testing.assert_array_equal(*sums)


def test_shares_of_many_classes_do_not_follow_from_how_many_teachers_have_seen_them():
    """To the last bits: on a coarser grid the difference shows at few rows, where it is a step."""
    rng = np.random.default_rng(0)
    # which shapes of a product differ in their last bits hangs on the processor
    shapes = itertools.product(range(2, 60), [(3, 60, 40), (60, 400, 40), (3, 60, 2)])
    for n_teachers, (narrow, wide, most_rows) in shapes:
        n_features, step = int(rng.integers(narrow, wide)), 2.0**-48
        coef, intercept = rng.normal(size=(n_teachers, 3, n_features)), np.zeros((n_teachers, 3))
        scored, X = np.ones((n_teachers, 3), dtype=bool), rng.normal(size=(int(rng.integers(1, most_rows)), n_features))
        coef[0], scored[0], intercept[0] = 0.0, False, -np.inf
        intercept[0, 0] = 0.0
        alone = LogisticEnsemble(coef, intercept, scored)  # the first teacher has seen class 0 alone
        scored, intercept = scored.copy(), intercept.copy()
        scored[0, 1], intercept[0, 1] = True, -1e9  # or one of class 1 as well, and is sure of class 0
        both = LogisticEnsemble(coef, intercept, scored)
        sums = [of.summed_probabilities(X, 3, step) for of in (both, alone)]
        np.testing.assert_array_equal(*sums)
