"""Rates by group and constraints on them: what they are, what fairlearn says they are, and what a parameter may ask."""

from dataclasses import replace

import numpy as np
import pytest
from fairlearn import metrics as fairlearn_metrics, reductions
from hypothesis import given, settings, strategies as st

from skfairdp.fairness import RateBound, RateConstraints, RateParity, read_rate_constraints
from skfairdp.metrics import accuracy_disparity, demographic_disparity, equalized_odds_disparity
from tests._tools.inside import RATE_NOTIONS, RATES

seeds = given(seed=st.integers(0, 10_000), n_groups=st.integers(2, 4), n_classes=st.integers(2, 3))
quick = settings(max_examples=25, deadline=None, derandomize=True)


def rows(seed=0, n=600, n_groups=3, n_classes=2):
    """Groups, true and predicted classes; every cell of groups and true classes has rows."""
    rng = np.random.default_rng(seed)
    groups = np.arange(n) % n_groups
    truth = np.arange(n) // n_groups % n_classes
    drawn = rng.random(n)
    either = np.where(drawn < 0.1 + 0.1 * groups, rng.integers(n_classes, size=n), truth)
    return groups, truth, np.where(drawn > 0.95 - 0.1 * groups, n_classes - 1, either)


def constraints(asked, n_groups=3, n_classes=2):
    return RateConstraints(read_rate_constraints(asked, "Test"), range(n_groups), range(n_classes))


# ---- rates -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "rate", ["selection_rate", "true_positive_rate", "false_positive_rate", "true_negative_rate", "false_negative_rate"]
)
def test_rates_of_groups_and_of_all_rows_are_those_of_fairlearn(rate):
    groups, truth, predicted = rows()
    asked = constraints(RateParity(rate))
    function = getattr(fairlearn_metrics, rate)
    frame = fairlearn_metrics.MetricFrame(metrics=function, y_true=truth, y_pred=predicted, sensitive_features=groups)
    expected = [*frame.by_group, frame.overall]
    np.testing.assert_allclose(asked.rates(asked.tally(groups, truth, predicted))[:, 0], expected)


def test_rates_of_three_classes_take_each_as_positive_in_turn():
    groups, truth, predicted = rows(n_classes=3)
    counts = constraints("accuracy_parity", n_classes=3).tally(groups, truth, predicted)
    found = constraints("equal_opportunity", n_classes=3).rates(counts)
    hits = truth == predicted
    for group in range(3):
        for k in range(3):
            mine = (groups == group) & (truth == k)
            assert found[group, k] == pytest.approx(hits[mine].mean())
    one = constraints(RateParity("true_positive_rate", of_class=2), n_classes=3)
    np.testing.assert_allclose(one.rates(counts)[:, 0], found[:, 2])
    assert constraints("equalized_odds", n_classes=3).rates(counts).shape == (4, 9)


@pytest.mark.parametrize(
    ("notion", "gap"),
    [
        ("demographic_parity", lambda y, p, g: demographic_disparity(y, p, sensitive_features=g, gap="between")),
        ("equalized_odds", lambda y, p, g: equalized_odds_disparity(y, p, sensitive_features=g)),
        ("accuracy_parity", lambda y, p, g: accuracy_disparity(y, p, sensitive_features=g)),
    ],
)
@pytest.mark.parametrize("n_groups", [2, 4])
def test_the_largest_violation_is_the_gap_that_the_metrics_report_less_the_bound(notion, gap, n_groups):
    groups, truth, predicted = rows(n_groups=n_groups)
    asked = constraints(notion, n_groups)
    found = asked.largest_violation(asked.tally(groups, truth, predicted))
    assert found == pytest.approx(gap(truth, predicted, groups) - 0.01) and found > 0.05


@pytest.mark.filterwarnings("ignore:Setting a")  # in fairlearn
@pytest.mark.parametrize("bounds", [{"difference_bound": 0.03}, {"ratio_bound": 0.8}, {}])
@pytest.mark.parametrize(
    "name",
    ["DemographicParity", "EqualizedOdds", "TruePositiveRateParity", "FalsePositiveRateParity", "ErrorRateParity"],
)
def test_a_moment_of_fairlearn_holds_here_between_groups_and_so_there_to_all_rows(name, bounds):
    groups, truth, predicted = rows(7)
    moment = getattr(reductions, name)(**bounds)
    (between,) = read_rate_constraints(moment, "Test")
    assert between.method == "between_groups"
    asked = constraints(replace(between, method="to_overall"))
    moment.load_data(np.zeros((len(truth), 1)), truth, sensitive_features=groups)
    theirs = moment.gamma(lambda X: predicted) - moment.bound()
    mine = asked.violations(asked.tally(groups, truth, predicted))
    # fairlearn lists the classes of equalized odds as events; a true class without positives is left out there
    np.testing.assert_allclose(sorted(mine), sorted(theirs), atol=1e-12)
    counts = asked.tally(groups, truth, predicted)
    assert constraints(moment).largest_violation(counts) >= max(0.0, *theirs) - 1e-12


def test_the_four_fifths_rule_is_broken_exactly_below_four_fifths():
    asked = constraints(RateParity("selection_rate", ratio_bound=0.8), 2)
    for selected, broken in ((40, False), (39, True)):
        counts = [[[100 - selected, selected], [0, 0]], [[50, 50], [0, 0]]]
        assert (asked.largest_violation(counts) > 1e-12) == broken


def test_a_bound_holds_for_each_group_for_those_named_or_for_all_rows_together():
    groups, truth, predicted = rows()
    counts = constraints("accuracy_parity").tally(groups, truth, predicted)
    errors = constraints("accuracy_parity").rates(counts)[:, 0]
    bounds = {None: errors[:3], "overall": errors[3:]}
    for whose, expected in bounds.items():
        found = constraints(RateBound("error_rate", upper=0.2, groups=whose)).violations(counts)
        np.testing.assert_allclose(found, expected - 0.2)
    found = constraints(RateBound("accuracy", lower=0.9, groups=[2, 0])).violations(counts)
    np.testing.assert_allclose(found, 0.9 - (1 - errors[[2, 0]]))


def test_an_intersection_is_a_group_like_any_other():
    names = [("f", "old"), ("f", "young"), ("m", "old")]
    asked = RateConstraints([RateBound("error_rate", upper=0.2, groups=[("m", "old")])], names, ["no", "yes"])
    assert asked.inequalities == ("error_rate of ('m', 'old') <= 0.2",)


def test_a_group_without_rows_breaks_nothing():
    asked = constraints(["equalized_odds", RateBound("false_negative_rate", upper=0.0)], 2)
    assert asked.largest_violation(np.zeros((2, 2, 2))) == 0
    assert asked.violations([[[1, 1], [0, 0]], [[1, 0], [1, 1]]]).tolist()[4:] == [0.0, 0.5]


# ---- the Lagrangian --------------------------------------------------------------------------------------------
@seeds
@quick
def test_the_mean_weight_of_the_rows_is_the_lagrangian_of_the_inequalities(seed, n_groups, n_classes):
    rng = np.random.default_rng(seed)
    groups, truth, _ = rows(seed, 60, n_groups, n_classes)
    everything = [RateParity(rate, 0.05, 0.9) for rate in RATES] + [
        RateParity("true_positive_rate", method="to_overall"),
        RateBound("error_rate", upper=0.1, groups="overall"),
        RateBound("false_negative_rate", upper=0.2, lower=0.1),
    ]
    asked = constraints(everything, n_groups, n_classes)
    p = rng.dirichlet(np.ones(n_classes), size=len(groups))
    soft = np.zeros((n_groups, n_classes, n_classes))
    np.add.at(soft, (groups, truth), p)
    multipliers = rng.random(asked.n_inequalities)
    weights = asked.row_weights(multipliers, soft.sum(2))
    mean = (weights[groups, truth] * p).sum(1).mean()
    assert mean == pytest.approx(multipliers @ (asked.violations(soft) + asked.bounds))


def test_without_labels_the_true_classes_may_be_merged():
    groups, truth, predicted = rows(n_classes=3)
    asked = constraints("demographic_parity", n_classes=3)
    counts = asked.tally(groups, truth, predicted)
    merged = counts.sum(1, keepdims=True)
    assert not asked.needs_labels and constraints("equalized_odds").needs_labels
    np.testing.assert_array_equal(asked.violations(counts), asked.violations(merged))
    multipliers = np.arange(asked.n_inequalities)
    whole, part = (asked.row_weights(multipliers, c.sum(2)) for c in (counts, merged))
    np.testing.assert_allclose(whole, np.broadcast_to(part, whole.shape))


@seeds
@quick
def test_no_row_gains_by_being_wrong_where_errors_are_forgiven_up_to_one(seed, n_groups, n_classes):
    rng = np.random.default_rng(seed)
    asked = constraints(["accuracy_parity", RateParity("accuracy", 0.02)], n_groups, n_classes)
    sizes = rng.integers(1, 50, size=(n_groups, n_classes))
    multipliers = 20 * rng.random(asked.n_inequalities)
    weights = asked.row_weights(multipliers, sizes, forgive=1.0)
    right = np.einsum("ayy->ay", weights)[..., None]
    assert (right <= weights + 1 + 1e-9).all()  # the error of the row itself costs 1
    assert (np.einsum("ayy->ay", asked.row_weights(multipliers, sizes)) > 1 + 1e-9).any()


# ---- the parameter ---------------------------------------------------------------------------------------------
def test_a_parity_by_the_name_of_a_notion_is_that_of_the_rate_which_the_notion_compares():
    for notion, parity in RATE_NOTIONS.items():
        assert RateParity(notion) == parity == read_rate_constraints(notion, "Test")[0]
    assert RateParity("demographic_parity", difference_bound=0.05) == RateParity("selection_rate", 0.05)


def test_every_name_of_a_notion_is_read_and_a_list_keeps_its_order():
    for name, stands_for in RATE_NOTIONS.items():
        assert read_rate_constraints(name, "Test") == (stands_for,)
    several = ["equal_opportunity", reductions.DemographicParity(ratio_bound=0.8), RateBound("accuracy", lower=0.7)]
    found = read_rate_constraints(several, "Test")
    assert [one.rate for one in found] == ["true_positive_rate", "selection_rate", "accuracy"]
    assert (found[1].ratio_bound, found[1].difference_bound, found[1].method) == (0.8, 0.0, "between_groups")


WRONG = {
    "a word": (lambda: read_rate_constraints("fairness", "Some"), "'constraints' parameter of Some"),
    "nothing": (lambda: read_rate_constraints([], "Some"), "is empty"),
    "a foreign moment": (
        lambda: read_rate_constraints(reductions.BoundedGroupLoss(reductions.ZeroOneLoss(), upper_bound=0.1), "Some"),
        "'constraints' parameter of Some",
    ),
    "a rate": (lambda: RateParity("precision"), "'rate' of RateParity"),
    "a difference": (lambda: RateParity("accuracy", 1.5), "'difference_bound' of RateParity"),
    "a ratio": (lambda: RateParity("accuracy", ratio_bound=0), "bounds nothing"),
    "a method": (lambda: RateParity("accuracy", method="others"), "'method' of RateParity"),
    "no bound": (lambda: RateBound("accuracy"), "needs 'upper' or 'lower'"),
    "a bound": (lambda: RateBound("accuracy", upper="much"), "'upper' of RateBound"),
    "crossed bounds": (lambda: RateBound("accuracy", upper=0.2, lower=0.3), "must not lie above"),
    "one group": (lambda: RateBound("accuracy", upper=0.2, groups="f"), "list of one"),
    "an unknown group": (lambda: constraints(RateBound("accuracy", upper=0.2, groups=["f"])), "'f' in 'groups'"),
    "an unknown class": (lambda: constraints(RateParity("selection_rate", of_class="yes")), "'yes' in 'of_class'"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_meant_is_refused_in_words(name):
    act, message = WRONG[name]
    with pytest.raises(ValueError, match=message):
        act()


@pytest.mark.parametrize("notion", ["selection_rate", "true_positive_rate", "accuracy"])
def test_rates_are_shares_of_the_rows_that_are_known_to_be_there(notion):
    """Some rows have no answer that was counted: they are rows of their group and class all the same."""
    constraints = RateConstraints([RateParity(notion, 0.1)], [0, 1], [0, 1])
    counts, sizes = np.array([[[4.0, 2.0], [1.0, 5.0]], [[3.0, 1.0], [2.0, 2.0]]]), np.array([[10.0, 12.0], [5.0, 8.0]])
    hits = {"selection_rate": counts[..., 1].sum(1), "true_positive_rate": counts[:, 1, 1],
            "accuracy": counts[:, 0, 0] + counts[:, 1, 1]}[notion]  # fmt: skip
    rows = sizes[:, 1] if notion == "true_positive_rate" else sizes.sum(1)
    expected = [*(hits / rows), hits.sum() / rows.sum()]
    np.testing.assert_allclose(constraints.rates(counts, sizes)[:, -1], expected)


def test_on_few_rows_differences_get_what_sampling_leaves_open_and_nothing_else_does():
    asked = [RateParity("selection_rate", 0.1), RateParity("selection_rate", ratio_bound=0.8),
             RateBound("selection_rate", upper=0.4)]  # fmt: skip
    held = RateConstraints(asked, [0, 1], [0, 1])
    counts = np.array([[[300, 100]], [[250, 150]]])
    bounds, variances = held.bounds_on_few(counts), held.variances(counts)
    difference = held.bounds == 0.1
    assert difference.any() and not difference.all()
    np.testing.assert_allclose(bounds[difference] ** 2 + variances[difference], 0.01)
    np.testing.assert_array_equal(bounds[~difference], held.bounds[~difference])
    rng, rates = np.random.default_rng(0), np.array([101, 151]) / 402
    drawn = rng.binomial(400, rates, size=(20_000, 2)) / 400
    np.testing.assert_allclose(variances[difference], np.var(drawn[:, 0] - drawn[:, 1]), rtol=0.05)
    assert (held.bounds_on_few(counts // 50)[difference] == 0).all()
    alone = held.bounds_on_few(counts * [[[1]], [[0]]])  # nobody in the second group: nothing is asked of a rate of 0
    assert (alone[difference] == 1).all() and np.count_nonzero(alone == 0.4) == 1


# ---- chance ----------------------------------------------------------------------------------------------------
def counts_of(sizes, rates, labels=0.5):
    """A table by group, true and predicted class: so many rows, of which so many are selected."""
    truth = np.array([1 - labels, labels])[None, :, None]
    return np.array(sizes)[:, None, None] * truth * np.stack([1 - np.array(rates), np.array(rates)], 1)[:, None, :]


@pytest.mark.parametrize(
    ("sizes", "rates", "beyond"),
    [
        ([40, 4000], [0.4, 0.5], [False, False]),  # of 40 rows, two standard errors are .16
        ([40, 4000], [0.2, 0.5], [True, True]),  # which .3 is beyond
        ([4000, 4000], [0.5, 0.5], [True, True]),  # are known to differ by less than is allowed
        ([40, 4000, 4000], [0.4, 0.5, 0.5], [False, True, True]),  # one that is unknown leaves the others as they are
    ],
)
def test_a_group_is_set_apart_by_more_than_the_chance_of_its_rows_or_not(sizes, rates, beyond):
    asked = constraints(RateParity("selection_rate", 0.05), len(sizes))
    assert asked.beyond_chance(counts_of(sizes, rates)).tolist() == beyond


def test_noise_in_how_many_rows_have_a_label_sets_groups_apart_where_answers_follow_labels():
    asked = constraints(RateParity("selection_rate", 0.05), 2)
    free, follow = counts_of([200, 4000], [0.3, 0.5]), counts_of([200, 4000], [0.3, 0.5])
    follow[0] = [[100.0, 0.0], [40.0, 60.0]]  # as many are selected, all among those of the second class
    assert asked.beyond_chance(free, 80.0).all()
    assert not asked.beyond_chance(follow, 80.0).any()


def test_a_bound_on_a_rate_compares_with_no_group_that_chance_could_set_apart():
    asked = constraints(RateBound("selection_rate", lower=0.3), 2)
    assert asked.beyond_chance(counts_of([10, 4000], [0.4, 0.5])).all()
