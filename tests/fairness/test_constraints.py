"""The one definition of a constraint: scores and cells, numpy and torch alike, and what a parameter may ask for."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest
import torch
from fairlearn import reductions
from sklearn.base import clone

from skfairdp.baselines import LagrangianClassifier, ParityLogisticRegression
from skfairdp.fairness import FairnessConstraints, RateBound, RateParity, by_position, read_constraints
from skfairdp.lagrangian import PFLDClassifier, mlp
from tests._tools.lagrangian import OF_TWO_AND_OF_THREE


@pytest.fixture
def hard():
    """Hard 0/1 predictions, so that means of h are the rates the definitions speak of."""
    rng = np.random.default_rng(0)
    y, predicted = rng.integers(3, size=400), rng.integers(3, size=400)
    return np.eye(3)[predicted], y, predicted


def of(notions, y, n_classes=2, **more):
    return FairnessConstraints(notions, np.asarray(y), n_classes, **more)


# ---- what a notion says ----------------------------------------------------------------------------------------
def test_demographic_parity_averages_to_predicted_rates(hard):
    proba, y, predicted = hard
    notion = of(["demographic_parity"], y, 3)
    assert notion.row_cells.tolist() == [0] * 400 and notion.cells.shape == (400, 3) and notion.n_cells == 1
    np.testing.assert_allclose(notion.values(proba, y).mean(axis=0), np.bincount(predicted) / 400)


def test_equalized_odds_averages_to_conditional_rates(hard):
    proba, y, predicted = hard
    notion = of(["equalized_odds"], y, 3)
    h, cells = notion.values(proba, y), notion.row_cells
    for label in range(3):
        np.testing.assert_allclose(
            h[cells == label].mean(axis=0), np.bincount(predicted[y == label]) / (y == label).sum()
        )


def test_accuracy_parity_averages_to_the_error_rate(hard):
    proba, y, predicted = hard
    notion = of(["accuracy_parity"], y, 3)
    assert notion.values(proba, y).shape == (400, 1)
    assert notion.values(proba, y).mean() == pytest.approx((predicted != y).mean())
    assert notion.row_cells.tolist() == [0] * 400


def test_generalized_demographic_parity_averages_to_moments():
    rng = np.random.default_rng(0)
    proba, y = rng.dirichlet([1, 2], size=50), rng.integers(2, size=50)
    notion = of(["generalized_demographic_parity"], y, moments=3)
    np.testing.assert_allclose(notion.values(proba, y), proba[:, [1]] ** [1, 2, 3])


@pytest.mark.parametrize("notion", ["demographic_parity", "equalized_odds"])
def test_two_classes_are_one_constraint(notion):
    proba = np.array([[0.75, 0.25], [0.5, 0.5]])
    np.testing.assert_array_equal(of([notion], [0, 1]).values(proba, np.array([0, 1])), [[0.25], [0.5]])


def test_they_are_frozen_values():
    notion = of(["equalized_odds"], [0, 1])
    assert notion.columns == of(["equalized_odds"], [1, 1]).columns and hash(notion.columns[0])
    with pytest.raises(FrozenInstanceError):
        notion.columns[0].power = 2
    with pytest.raises(FrozenInstanceError):
        notion.n_classes = 3


def test_sizes_of_the_finest_cells_become_sizes_of_the_cells_of_each_constraint():
    both = of(["demographic_parity", "equalized_odds"], [0, 1, 1])
    sizes = both.sizes(np.array([[3.0, 4.0], [5.0, 0.0]]))
    np.testing.assert_array_equal(sizes[:, :, 0], [[7, 1], [5, 1]])  # all rows are one cell; the other is not used
    np.testing.assert_array_equal(sizes[:, :, 1], [[3, 4], [5, 1]])


@pytest.mark.parametrize(
    ("notion", "true_class", "n_classes"),
    [("true_positive_rate_parity", 1, 2), ("false_positive_rate_parity", 0, 2), ("true_positive_rate_parity", 2, 3)],
)
def test_a_rate_of_one_true_class_is_compared_among_its_rows_alone(hard, notion, true_class, n_classes):
    table, y, _ = hard
    table, y = (table, y) if n_classes == 3 else (table[:, :2] + table[:, 2:] * [0, 1], np.minimum(y, 1))
    one, odds = of([notion], y, n_classes), of(["equalized_odds"], y, n_classes)
    column = len(one.columns) - 1
    assert np.flatnonzero(one.compared[:, column]).tolist() == [true_class]
    of_odds = [k for k, other in enumerate(odds.columns) if other.of_class == one.columns[column].of_class]
    np.testing.assert_array_equal(one.values(table, y)[:, column], odds.values(table, y)[:, of_odds[0]])
    np.testing.assert_array_equal(one.cells[:, column], y)
    violations = np.ones((2, one.n_cells, one.n_constraints))
    np.testing.assert_array_equal(one.where_compared(violations)[0] > 0, one.compared)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("equal_opportunity", "true_positive_rate_parity"),
        ("false_negative_rate_parity", "true_positive_rate_parity"),
        ("true_negative_rate_parity", "false_positive_rate_parity"),
        (RateParity("false_negative_rate"), "true_positive_rate_parity"),
        (RateParity("selection_rate_by_label"), "equalized_odds"),
        (RateParity("accuracy"), "accuracy_parity"),
        (reductions.TruePositiveRateParity(), "true_positive_rate_parity"),
        (reductions.FalsePositiveRateParity(), "false_positive_rate_parity"),
    ],
)
def test_a_rate_goes_by_every_name_that_people_have_for_it(given, name):
    assert read_constraints(given, "X") == (name,)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (RateParity("true_positive_rate", 0.1), RateParity("true_positive_rate", 0.1)),
        (reductions.DemographicParity(difference_bound=0.1), RateParity("selection_rate", 0.1)),
        (reductions.EqualizedOdds(ratio_bound=0.8, ratio_bound_slack=0.02),
         RateParity("selection_rate_by_label", 0.02, 0.8)),
        (RateBound("error_rate", upper=0.1), RateBound("error_rate", upper=0.1)),
        (RateParity("selection_rate", method="to_overall"), "demographic_parity"),
        (reductions.ErrorRateParity(), "accuracy_parity"),
    ],
)  # fmt: skip
def test_a_bound_of_its_own_is_kept_and_the_usual_one_is_equality(given, kept):
    assert read_constraints(given, "X") == (kept,)


# ---- numpy and torch -------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("notions", "n_classes"), OF_TWO_AND_OF_THREE)
def test_arrays_and_tensors_give_the_same_numbers_and_the_derivatives_are_those_of_h(notions, n_classes):
    rng = np.random.default_rng(0)
    scores, y = rng.normal(size=(7, n_classes)), np.r_[rng.integers(n_classes, size=7)]
    logits, codes = torch.tensor(scores, requires_grad=True), torch.tensor(y)
    proba = torch.softmax(logits, dim=1)
    here, there = of(notions, y, n_classes), FairnessConstraints(notions, codes, n_classes)
    array = proba.detach().numpy()
    np.testing.assert_array_equal(here.cells, there.cells.numpy())
    np.testing.assert_array_equal(here.row_cells, there.row_cells.numpy())
    np.testing.assert_array_equal(here.values(array, y), there.values(proba, codes).detach().numpy())
    np.testing.assert_array_equal(here.slopes(array, y), there.slopes(proba, codes).detach().numpy())
    weights = rng.normal(size=(7, here.n_constraints))
    total = (there.values(proba, codes) * torch.tensor(weights)).sum()
    by_logit, by_probability = torch.autograd.grad(total, [logits, proba])
    found = here.probability_weights(weights, array, y)
    np.testing.assert_allclose(found, by_probability, atol=1e-12)
    np.testing.assert_allclose(np.einsum("nc,nck->nk", weights, here.slopes(array, y)), by_logit, atol=1e-12)


# ---- what a parameter may ask for ------------------------------------------------------------------------------
MOMENTS = {
    "demographic_parity": reductions.DemographicParity,
    "equalized_odds": reductions.EqualizedOdds,
    "accuracy_parity": reductions.ErrorRateParity,
}


@pytest.mark.parametrize("notion", MOMENTS)
def test_fairlearns_moments_name_the_same_constraint(notion):
    moment = MOMENTS[notion]()
    assert (
        read_constraints(moment, "X") == read_constraints([moment], "X") == read_constraints(notion, "X") == (notion,)
    )


def test_names_and_moments_mix():
    given = ["accuracy_parity", reductions.DemographicParity()]
    assert read_constraints(given, "X") == ("accuracy_parity", "demographic_parity")
    assert read_constraints(None, "X", optional=True) == ()


class Own(reductions.DemographicParity):
    """May mean anything."""


@pytest.mark.parametrize(
    ("given", "options", "said"),
    [
        ([], {}, "one or several different ones of"),
        (None, {}, "Got None"),
        (5, {}, "Got 5"),
        ("parity", {}, "'constraints' parameter of X must be one or several"),
        (["equalized_odds", reductions.EqualizedOdds()], {}, "different"),
        ("accuracy_parity", {"supported": ("equalized_odds",)}, r"\['equalized_odds'\]"),
        (["accuracy_parity", "equalized_odds"], {"several": False}, "must be one of"),
        (reductions.BoundedGroupLoss(reductions.ZeroOneLoss()), {}, "must be one or several.*BoundedGroupLoss"),
        (RateBound("error_rate", upper=0.1), {"bounds": False}, "without a bound.*RateBound.*give 'accuracy_parity'"),
        (RateBound("error_rate", upper=0.1, groups=["f"]), {"bounds": False}, "without a bound"),
        ([RateParity("error_rate", 0.1), RateParity("accuracy", 0.1)], {}, "different"),
        (["equalized_odds", RateParity("selection_rate_by_label", 0.1)], {}, "different"),
        (["equal_opportunity", "false_negative_rate_parity"], {}, "different"),
        (reductions.EqualizedOdds(ratio_bound=0.8), {"bounds": False}, "without a bound.*give 'equalized_odds'"),
        (Own(), {}, "must be one or several"),
    ],
)
def test_what_is_no_constraint_is_refused_with_what_would_be(given, options, said):
    with pytest.raises(ValueError, match=said):
        read_constraints(given, "X", **options)


def test_bounds_of_one_rate_may_come_together_and_beside_its_parity():
    asked = ["accuracy_parity", RateBound("error_rate", upper=0.3, groups="overall"), RateBound("accuracy", lower=0.6)]
    assert read_constraints(asked, "X") == tuple(asked)


def test_names_become_positions_and_what_is_none_is_refused_without_a_list_of_groups_that_may_be_private():
    bound = RateBound("true_positive_rate", lower=0.5, of_class="yes", groups=["m", ("f", 1)])
    placed = by_position(["equalized_odds", bound], [("f", 1), "f", "m"], ["no", "yes"], "X")
    assert placed == ("equalized_odds", RateBound("true_positive_rate", lower=0.5, of_class=1, groups=(2, 0)))
    with pytest.raises(ValueError, match=r"^The constraints of X name 'd' in 'groups', which is none of its groups\.$"):
        by_position([RateBound("accuracy", lower=0.5, groups=["d"])], ["f", "m"], [0, 1], "X")
    with pytest.raises(ValueError, match="name 'maybe' in 'of_class'"):
        by_position([RateParity("selection_rate", 0.1, of_class="maybe")], ["f", "m"], ["no", "yes"], "X")


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "make",
    [
        lambda constraints: PFLDClassifier(
            constraints=constraints, epsilon=None, groups=[0, 1], net=mlp(max_epochs=1), random_state=0
        ),
        lambda constraints: LagrangianClassifier(constraints=constraints, net=mlp(max_epochs=1), random_state=0),
        lambda constraints: ParityLogisticRegression(constraints=constraints),
    ],
    ids=["PF-LD", "F-LD", "logistic"],
)
def test_an_estimator_fits_alike_with_a_name_and_with_fairlearns_moment(make):
    rng = np.random.default_rng(0)
    X, y, groups = rng.normal(size=(80, 2)), rng.integers(2, size=80), rng.integers(2, size=80)
    named, moment = make("equalized_odds"), make(reductions.EqualizedOdds())
    expected = named.fit(X, y, sensitive_features=groups)
    found = clone(moment).fit(X, y, sensitive_features=groups)
    np.testing.assert_array_equal(found.predict_proba(X), expected.predict_proba(X))
    assert found.multipliers_.shape == expected.multipliers_.shape
    with pytest.raises(ValueError, match=r"'constraints' parameter of .*BoundedGroupLoss"):
        make(reductions.BoundedGroupLoss(reductions.ZeroOneLoss())).fit(X, y, sensitive_features=groups)
