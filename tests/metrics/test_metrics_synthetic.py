"""Metrics of synthetic data against closed forms and brute force."""

import math

import numpy as np
import pandas as pd
import pytest
import scipy.linalg
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression, Perceptron

from skfairdp.metrics import (
    demographic_disparity,
    distribution_disparity,
    downstream_scores,
    frechet_distance,
    kl_to_uniform,
    recall_disparity,
)


def test_the_two_balance_figures_agree_with_pairs_printed_in_the_paper():
    """A share of .5 + a in one of two groups: the paper prints .305 with .522, and .220 with .450."""
    for a, kl, distance in ((0.369, 0.305, 0.522), (0.318, 0.220, 0.450)):
        groups = ["x"] * round(1000 * (0.5 + a)) + ["y"] * round(1000 * (0.5 - a))
        assert kl_to_uniform(groups) == pytest.approx(kl, abs=0.003)
        assert distribution_disparity(groups) == pytest.approx(distance, abs=0.003)


def test_balance_of_intersections_and_of_groups_without_rows():
    frame = pd.DataFrame({"sex": list("ffmm"), "race": list("abab")})
    assert kl_to_uniform(frame) == distribution_disparity(frame) == 0
    assert kl_to_uniform(["a"], groups=["a", "b", "c"]) == pytest.approx(math.log(3))
    assert distribution_disparity(["a"], groups=["a", "b", "c"]) == pytest.approx(math.sqrt(2 / 3))
    with pytest.raises(ValueError, match="at least one row"):
        kl_to_uniform([])
    with pytest.raises(ValueError, match="not in '"):
        distribution_disparity(["a", "z"], groups=["a", "b"])


def test_recall_disparity_is_the_largest_difference_of_recalls():
    y, p = [0, 0, 1, 1, 2, 2, 2, 2], [0, 0, 1, 0, 2, 0, 0, 0]
    assert recall_disparity(y, p) == 0.75
    assert recall_disparity([1, 1], [0, 1]) == 0.0


def test_frechet_distance_is_the_formula_with_a_matrix_root():
    rng = np.random.default_rng(0)
    one, two = rng.normal(size=(300, 4)), rng.normal(size=(200, 4)) @ rng.normal(size=(4, 4)) + 1
    c1, c2 = np.cov(one, rowvar=False), np.cov(two, rowvar=False)
    brute = np.sum((one.mean(0) - two.mean(0)) ** 2) + np.trace(c1 + c2 - 2 * scipy.linalg.sqrtm(c1 @ c2).real)
    assert frechet_distance(one, two) == pytest.approx(brute, rel=1e-9)
    assert frechet_distance(two, one) == pytest.approx(brute, rel=1e-9)
    assert frechet_distance(one, one) == pytest.approx(0, abs=1e-9)
    assert frechet_distance(one, two, extractor=lambda rows: rows[:, :1]) == pytest.approx(
        (one[:, 0].mean() - two[:, 0].mean()) ** 2 + (one[:, 0].std(ddof=1) - two[:, 0].std(ddof=1)) ** 2
    )
    with pytest.raises(ValueError, match="as many features"):
        frechet_distance(one, two[:, :2])
    with pytest.raises(ValueError, match="two or more rows"):
        frechet_distance(one[:1], two)


def test_downstream_scores_are_those_of_a_model_trained_on_the_synthetic_rows_alone(rows):
    flipped = 1 - rows.y
    scores = downstream_scores(
        LogisticRegression(), rows.X, flipped, rows.X_public, rows.y_public, sensitive_features=rows.groups_public
    )
    assert scores["auroc"] < 0.1 and scores["accuracy"] < 0.2
    model = LogisticRegression().fit(rows.X, rows.y)
    predicted = model.predict(rows.X_public)
    right = downstream_scores(
        LogisticRegression(), rows.X, rows.y, rows.X_public, rows.y_public, sensitive_features=rows.groups_public
    )
    rate = [predicted[rows.groups_public == z].mean() for z in (0, 1)]
    assert right["demographic_disparity"] == pytest.approx(abs(rate[0] - rate[1]))
    assert right["accuracy"] == pytest.approx((predicted == rows.y_public).mean())
    assert right["recall_disparity"] == recall_disparity(rows.y_public, predicted)
    bare = downstream_scores(
        Perceptron(), rows.X, rows.y, rows.X_public, rows.y_public, sensitive_features=rows.groups_public
    )
    assert math.isnan(bare["auroc"])


class Fixed(ClassifierMixin, BaseEstimator):
    """Predicts the first column of X."""

    def fit(self, X, y):
        self.classes_ = np.array([0, 1])
        return self

    def predict(self, X):
        return np.asarray(X)[:, 0].astype(int)


def test_gaps_downstream_are_those_between_the_two_groups_furthest_apart_of_three():
    """With two groups "against the others" and "between" are the same number; with three they are not."""
    rng = np.random.default_rng(0)
    groups = np.repeat(["a", "b", "c"], [500, 300, 200])
    y = (rng.random(1000) < 0.5).astype(int)
    rate = np.select([groups == "a", groups == "b"], [0.3, 0.5], 0.9)
    predicted = (rng.random(1000) < np.where(y == 1, rate, rate / 2)).astype(int)
    scores = downstream_scores(
        Fixed(), np.zeros((2, 1)), [0, 1], predicted[:, None].astype(float), y, sensitive_features=groups
    )

    def widest(values):
        return max(values) - min(values)

    parts = [groups == name for name in "abc"]
    rates = [predicted[part].mean() for part in parts]
    assert scores["demographic_disparity"] == pytest.approx(widest(rates)) == pytest.approx(rates[2] - rates[0])
    assert scores["accuracy_disparity"] == pytest.approx(widest([(predicted == y)[part].mean() for part in parts]))
    odds = [widest([predicted[part & (y == label)].mean() for part in parts]) for label in (0, 1)]
    assert scores["equalized_odds_disparity"] == pytest.approx(max(odds))
    pairs = [
        demographic_disparity(None, predicted[p | q], sensitive_features=groups[p | q])
        for p, q in ((parts[0], parts[1]), (parts[1], parts[2]), (parts[0], parts[2]))
    ]
    assert scores["demographic_disparity"] == pytest.approx(max(pairs))
