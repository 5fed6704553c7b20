"""What a release can carry is told from public numbers, and the numbers of teachers that follow serve well."""

import numpy as np
import pytest

from skfairdp import FairPATEClassifier, PATEClassifier
from tests._tools.inside import MOST_TEACHERS, ROWS_PER_TEACHER, default_n_teachers

BUDGET = {"epsilon": 1.0, "delta": 1e-5}


def test_more_rows_and_more_noise_ask_for_more_teachers():
    for n_values in (2, 3, 8):
        counts = [default_n_teachers(n, n_values=n_values, **BUDGET) for n in (10, 100, 1000, 10_000, 10**5, 10**7)]
        assert counts == sorted(counts) and counts[0] == 1 and counts[-1] <= MOST_TEACHERS
        counts = [
            default_n_teachers(50_000, n_values=n_values, epsilon=e, delta=1e-5) for e in (0.1, 0.5, 1.0, 4.0, 64.0)
        ]
        assert counts == sorted(counts, reverse=True) and counts[-1] >= 1


@pytest.mark.parametrize("n_values", [1, 2, 3, 10])
def test_every_teacher_keeps_enough_rows_to_see_the_classes(n_values):
    for n_rows in (1, 7, 8, 9, 150, 999, 40_000):
        for epsilon in (1e-3, 0.5, 1e3):
            k = default_n_teachers(n_rows, n_values=n_values, epsilon=epsilon, delta=1e-5)
            assert 1 <= k <= n_rows and (k == 1 or n_rows // k >= max(ROWS_PER_TEACHER, 3 * n_values))


def test_eight_times_the_rows_are_twice_the_teachers():
    few, many = (default_n_teachers(n, n_values=2, epsilon=2.0, delta=1e-5) for n in (10_000, 80_000))
    assert abs(many - 2 * few) <= 2


def logistic_table(n, n_features, rate, seed, strength=2.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features))
    score = X @ rng.normal(size=n_features)
    score = strength * score / score.std() + rng.logistic(size=n)
    return X, (score > np.quantile(score, 1 - rate)).astype(int)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::skfairdp.exceptions.PrivacyLeakWarning")
def test_a_sixth_and_six_times_the_teachers_are_no_better():
    """On a table that no setting was chosen by."""

    def accuracy(n_teachers, seed):
        X, y = logistic_table(6000, 12, 0.35, seed)
        model = PATEClassifier(n_teachers=n_teachers, classes=[0, 1], random_state=0, noise_seed=seed, **BUDGET)
        return model.fit(X[:4000], y[:4000], X_public=X[4000:4400]).score(X[4400:], y[4400:])

    auto = default_n_teachers(4000, n_values=2, **BUDGET)
    usual, few, many = (
        np.mean([accuracy(k, seed) for seed in range(5)]) for k in (auto, auto // 6, min(6 * auto, 2000))
    )
    assert usual > few + 0.02 and usual > many


def test_the_number_of_teachers_reads_no_private_value():
    X, y = logistic_table(900, 4, 0.5, seed=0)
    settings = {"random_state": 0, **BUDGET}
    for labels in (y, 1 - y, np.zeros_like(y)):
        plain = PATEClassifier(classes=[0, 1], **settings).fit(X, labels, X_public=X[:60].copy())
        fair = FairPATEClassifier(gamma=None, classes=[0, 1], **settings).fit(X, labels, X_public=X[:60].copy())
        assert plain.n_teachers_ == fair.n_teachers_ == default_n_teachers(900, n_values=2, **BUDGET)
