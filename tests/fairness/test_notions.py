"""The notions h(·): values and strata, and that means of h are the rates the notion speaks of."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from skfairdp.fairness import AccuracyParity, DemographicParity, EqualizedOdds


@pytest.fixture
def hard():
    """Hard 0/1 predictions, so that means of h are the rates the definitions speak of."""
    rng = np.random.default_rng(0)
    y, predicted = rng.integers(3, size=400), rng.integers(3, size=400)
    return np.eye(3)[predicted], y, predicted


def test_demographic_parity_averages_to_predicted_rates(hard):
    proba, y, predicted = hard
    notion = DemographicParity()
    assert notion.strata(y).tolist() == [0] * 400
    np.testing.assert_allclose(notion.values(proba, y).mean(axis=0), np.bincount(predicted) / 400)


def test_equalized_odds_averages_to_conditional_rates(hard):
    proba, y, predicted = hard
    notion = EqualizedOdds()
    h, strata = notion.values(proba, y), notion.strata(y)
    for label in range(3):
        np.testing.assert_allclose(
            h[strata == label].mean(axis=0), np.bincount(predicted[y == label]) / (y == label).sum()
        )


def test_accuracy_parity_averages_to_the_error_rate(hard):
    proba, y, predicted = hard
    notion = AccuracyParity()
    assert notion.values(proba, y).shape == (400, 1)
    assert notion.values(proba, y).mean() == pytest.approx((predicted != y).mean())
    assert notion.strata(y).tolist() == [0] * 400


@pytest.mark.parametrize("notion", [DemographicParity(), EqualizedOdds()])
def test_two_classes_are_one_constraint(notion):
    proba = np.array([[0.75, 0.25], [0.5, 0.5]])
    np.testing.assert_array_equal(notion.values(proba, [0, 1]), [[0.25], [0.5]])


def test_they_are_frozen_values():
    assert DemographicParity() == DemographicParity() and hash(EqualizedOdds()) == hash(EqualizedOdds())
    with pytest.raises(FrozenInstanceError):
        DemographicParity().weight = 1


@pytest.mark.parametrize(
    ("proba", "y"),
    [([0.1, 0.9], [0, 1]), ([[1.0]], [0]), ([[0.1, 0.9]], [2]), ([[0.1, 0.9]], [0, 1]), ([[0.1, 0.9]], [-1])],
)
def test_bad_input_is_a_value_error(proba, y):
    with pytest.raises(ValueError, match=r"proba|'y'"):
        AccuracyParity().values(proba, y)
