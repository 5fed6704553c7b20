"""SoftLabelStudent: unbiased under noise, held to parity on public rows, the same for every order of the classes."""

import warnings

import numpy as np
import pytest
from scipy.special import expit, softmax
from scipy.stats import norm
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from skfairdp.fairness import largest_disparity
from skfairdp.pate import SoftLabelStudent
from tests._tools.inside import SmoothRates


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 4))
    groups = rng.integers(2, size=500)
    X[:, 0] += 0.8 * groups
    share = expit(1.5 * X[:, 0] - X[:, 1] + 0.3)
    return X, np.column_stack([1 - share, share]), groups


@pytest.fixture(scope="module")
def three():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 3))
    groups = rng.integers(3, size=400)
    X[:, 0] += groups - 1
    return X, softmax(X @ rng.normal(size=(3, 3)), axis=1), groups


def test_exact_shares_of_a_logistic_model_are_recovered(data, three):
    X, shares, _ = data
    student = SoftLabelStudent(alpha=1e-6).fit(X, shares)
    np.testing.assert_allclose(student.coef_[:, 0], [1.5, -1, 0, 0], atol=1e-3)
    np.testing.assert_allclose(student.intercept_, 0.3, atol=1e-3)
    np.testing.assert_allclose(student.predict_proba(X), shares, atol=1e-3)
    X, shares, _ = three
    np.testing.assert_allclose(SoftLabelStudent(alpha=1e-6).fit(X, shares).predict_proba(X), shares, atol=5e-3)


@pytest.mark.few(1)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_noise_leaves_no_bias(data, three, n_classes):
    """The mean over noise draws is the fit without noise, up to the 1/n of any fitted model; not if clipped."""
    X, shares, _ = data if n_classes == 2 else three
    X, shares = np.repeat(X, 4, axis=0), np.repeat(shares, 4, axis=0)
    noiseless = SoftLabelStudent(alpha=1.0).fit(X, shares).predict_proba(X[:200])
    rng = np.random.default_rng(2)
    raw, clipped = [], []
    for _ in range(60):
        noisy = shares + 0.7 * rng.normal(size=shares.shape)
        if n_classes == 2:
            noisy[:, 0] = 1 - noisy[:, 1]
        raw.append(SoftLabelStudent(alpha=1.0).fit(X, noisy).predict_proba(X[:200]))
        clipped.append(SoftLabelStudent(alpha=1.0).fit(X, np.clip(noisy, 0, 1)).predict_proba(X[:200]))
    deviation = np.abs(np.mean(raw, axis=0) - noiseless)
    error = np.std(raw, axis=0) / np.sqrt(60)
    assert (deviation <= 5 * error + 0.005).all()
    assert np.abs(np.mean(clipped, axis=0) - noiseless).max() > 0.05


def test_noise_off_the_simplex_changes_nothing(three):
    X, shares, _ = three
    shift = np.random.default_rng(3).normal(size=(400, 1))
    first = SoftLabelStudent(alpha=1.0).fit(X, shares).predict_proba(X)
    second = SoftLabelStudent(alpha=1.0).fit(X, shares + shift).predict_proba(X)
    np.testing.assert_allclose(first, second, atol=1e-9)


def test_the_order_of_the_classes_does_not_matter(data, three):
    X, shares, groups = data
    first = SoftLabelStudent(gamma=0.05).fit(X, shares, noise_std=0.2, groups=groups)
    second = SoftLabelStudent(gamma=0.05).fit(X, shares[:, ::-1], noise_std=0.2, groups=groups)
    assert first.level_ == second.level_
    np.testing.assert_allclose(first.predict_proba(X), second.predict_proba(X)[:, ::-1], atol=1e-6)
    X, shares, _ = three
    order = [2, 0, 1]
    first = SoftLabelStudent(alpha=1.0).fit(X, shares).predict_proba(X)
    second = SoftLabelStudent(alpha=1.0).fit(X, shares[:, order]).predict_proba(X)
    np.testing.assert_allclose(first[:, order], second, atol=1e-3)  # the solver's own tolerance


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("gap", ["others", "overall", "between"])
def test_the_gap_on_the_public_rows_is_what_it_says(data, three, n_classes, gap):
    X, shares, groups = data if n_classes == 2 else three
    levels = []
    for gamma in (None, 0.2, 0.1, 0.03):
        student = SoftLabelStudent(gamma=gamma, disparity=gap).fit(X, shares, groups=groups)
        counts = np.zeros((n_classes, n_classes), dtype=int)  # as many groups as classes here
        np.add.at(counts, (groups, student.predict(X)), 1)
        assert student.gap_ == largest_disparity(counts, gap)
        assert student.satisfied_ == (gamma is None or student.gap_ <= gamma)
        levels.append(student.level_)
    assert levels[0] == 0 and levels == sorted(levels) and levels[-1] > 0
    if n_classes == 2:
        assert student.satisfied_


def test_a_gap_that_is_met_already_changes_nothing(data):
    X, shares, groups = data
    free, held = SoftLabelStudent().fit(X, shares), SoftLabelStudent(gamma=1.0).fit(X, shares, groups=groups)
    assert held.level_ == 0 and held.satisfied_
    np.testing.assert_allclose(free.coef_, held.coef_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(free.intercept_, held.intercept_, rtol=1e-6)


def wide_and_narrow(n_rows=4000):
    """Rows of two groups with equal means, of which the smaller is three times as spread, and shares of a class."""
    rng = np.random.default_rng(0)
    groups = (rng.random(n_rows) < 0.1).astype(int)
    X = rng.normal(size=(n_rows, 2))
    X[:, 0] *= 1 + 2 * groups
    X -= np.stack([X[groups == z].mean(axis=0) for z in (0, 1)])[groups]
    chance = 1 / (1 + np.exp(-2 * (X.sum(axis=1) - 1)))
    return X, np.column_stack([1 - chance, chance]), groups


def test_rates_are_brought_together_where_mean_scores_agree():
    X, shares, groups = wide_and_narrow()
    free, held = (SoftLabelStudent(gamma=gamma).fit(X, shares, groups=groups) for gamma in (None, 0.02))
    assert free.gap_ > 0.1 and held.satisfied_
    rates = [held.predict(X[groups == z]).mean() for z in (0, 1)]
    assert abs(rates[1] - rates[0]) <= 0.02
    right, constant = shares[np.arange(len(X)), held.predict(X)].mean(), shares.mean(axis=0).max()
    assert right > constant + 0.05  # parity, and not of a constant


def test_slopes_of_smooth_rates_are_those_of_their_differences():
    X, _, groups = wide_and_narrow(300)
    rows, weights = np.column_stack([X, np.ones(300)]), np.array([0.7, -0.4, 0.2])
    members = np.stack([(groups == z) / np.sum(groups == z) - 1 / 300 for z in (0, 1)])
    rates = SmoothRates(members, width=0.8)
    apart, by_scores = rates.apart(rows @ weights)
    for j, step in enumerate(1e-6 * np.eye(3)):
        change = rates.apart(rows @ (weights + step))[0] - rates.apart(rows @ (weights - step))[0]
        np.testing.assert_allclose((by_scores @ rows)[:, j], change / 2e-6, atol=1e-6)
    soft = norm.cdf(rows @ weights / rates.width)
    np.testing.assert_allclose(apart, [soft[groups == z].mean() - soft.mean() for z in (0, 1)], atol=1e-12)


def test_out_of_reach_is_the_smallest_gap_there_is(data):
    X, shares, groups = data
    held = SoftLabelStudent(gamma=0.0).fit(X, shares, groups=groups)
    if not held.satisfied_:
        assert held.gap_ == min(held.with_gamma(g).gap_ for g in np.linspace(0, 1, 50))
    # One feature that is the group itself: without it there would be no student, so parity cannot be had.
    alone = SoftLabelStudent(gamma=0.05).fit(groups[:, None].astype(float), np.eye(2)[groups], groups=groups)
    assert not alone.satisfied_ and alone.gap_ == 1.0


@pytest.mark.parametrize("n_classes", [2, 3])
def test_another_gamma_is_what_a_fresh_fit_gives(data, three, n_classes):
    X, shares, groups = data if n_classes == 2 else three
    path = SoftLabelStudent().fit(X, shares, noise_std=0.1, groups=groups)
    for gamma in (0.02, 0.1, None):
        fresh = SoftLabelStudent(gamma=gamma).fit(X, shares, noise_std=0.1, groups=groups)
        other = path.with_gamma(gamma)
        assert (other.gamma, other.level_, other.gap_, other.satisfied_) == (
            gamma,
            fresh.level_,
            fresh.gap_,
            fresh.satisfied_,
        )
        np.testing.assert_array_equal(other.coef_, fresh.coef_)
    assert path.level_ == 0 and path.gamma is None  # the path itself is unchanged


def test_parity_is_required_on_the_public_rows_not_on_the_answered_ones(data):
    X, shares, groups = data
    answered = (X[:, 1] > 0) == (groups == 1)  # a biased choice
    student = SoftLabelStudent(gamma=0.03).fit(X[answered], shares[answered], X_public=X, groups=groups)
    rates = [student.predict(X[groups == z]).mean() for z in (0, 1)]
    assert student.satisfied_ and abs(rates[0] - rates[1]) <= 0.03
    misled = SoftLabelStudent(gamma=0.03).fit(X[answered], shares[answered], groups=groups[answered])
    rates = [misled.predict(X[groups == z]).mean() for z in (0, 1)]
    assert misled.satisfied_ and abs(rates[0] - rates[1]) > 0.1


def test_more_noise_asks_for_more_shrinkage(data):
    X, shares, _ = data
    rng = np.random.default_rng(0)
    alphas = []
    for std in (0.05, 1.0, 20.0):
        noisy = shares[:, 1] + std * rng.normal(size=500)
        alphas.append(SoftLabelStudent().fit(X, np.column_stack([1 - noisy, noisy]), noise_std=std).alpha_)
    assert alphas == sorted(alphas) and alphas[0] < alphas[2] / 10
    assert SoftLabelStudent(alpha=7.0).fit(X, shares).alpha_ == 7.0


@pytest.mark.parametrize("value", [0.0, 3.0])
def test_a_constant_column_does_no_harm(data, value):
    X, shares, groups = data
    wide = np.column_stack([X, np.full(500, value)])
    first = SoftLabelStudent(gamma=0.05, alpha=1.0).fit(X, shares, groups=groups)
    second = SoftLabelStudent(gamma=0.05, alpha=1.0).fit(wide, shares, groups=groups)
    assert np.isfinite(second.predict_proba(wide)).all()
    assert np.mean(first.predict(X) == second.predict(wide)) > 0.97


def test_shares_far_outside_the_unit_interval_give_probabilities(data):
    X, shares, groups = data
    noisy = shares[:, 1] + 1e4 * np.random.default_rng(0).normal(size=500)
    for rows in (slice(None), slice(0, 1), slice(0, 3)):
        student = SoftLabelStudent(gamma=0.05).fit(
            X[rows], np.column_stack([1 - noisy, noisy])[rows], noise_std=1e4, X_public=X, groups=groups
        )
        probabilities = student.predict_proba(X)
        assert np.isfinite(probabilities).all() and ((probabilities >= 0) & (probabilities <= 1)).all()
        assert set(student.predict(X)) <= {0, 1}


def test_what_it_refuses(data):
    X, shares, groups = data
    with pytest.raises(ValueError, match="'groups'"):
        SoftLabelStudent(gamma=0.1).fit(X, shares)
    with pytest.raises(ValueError, match="without groups"):
        SoftLabelStudent().fit(X, shares).with_gamma(0.1)
    for bad in ({"gamma": -1}, {"disparity": "x"}, {"alpha": 0}):
        with pytest.raises(ValueError, match=f"'{next(iter(bad))}' parameter of SoftLabelStudent"):
            SoftLabelStudent(**bad).fit(X, shares, groups=groups)
    with pytest.raises(NotFittedError):
        SoftLabelStudent().predict(X)
    assert clone(SoftLabelStudent(gamma=0.1)).gamma == 0.1


def test_answers_to_private_rows_say_nothing_of_numbers_that_are_too_large():
    """Found by replay: a RuntimeWarning told that a private row held a huge number."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)) * 1e-3
    chance = 1 / (1 + np.exp(-1e4 * X[:, 0]))
    student = SoftLabelStudent(alpha=1e-6).fit(X, np.column_stack([1 - chance, chance]))
    huge = np.array([[1e308, 0, 0], [1e308, -1e308, 1e308], [-1e308, 0, 0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answers = student.answers_at_levels(huge)
    assert all(len(codes) == 3 for codes in answers)


@pytest.mark.parametrize("seed", [0, 203])
def test_a_nearly_constant_student_is_left_where_no_row_is_near_its_threshold(seed):
    """Weights that would bring rates of nothing together lie beyond all numbers: the fit broke off with an overflow."""
    rng = np.random.default_rng(seed)
    X, groups = rng.normal(size=(80, 4)), rng.integers(2, size=80)
    share = np.clip(0.06 + 0.03 * (X[:, 0] + groups) + rng.normal(0, 0.05, 80), 0, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        student = SoftLabelStudent().fit(X, np.column_stack([1 - share, share]), noise_std=0.05, groups=groups)
    assert np.isfinite(student.coef_).all() and student.predict(X).mean() < 0.1
