"""Metrics by hand, against fairlearn's, and inside fairlearn's MetricFrame."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from skfairdp.exceptions import FairnessWarning
from skfairdp.metrics import (
    accuracy_disparity,
    coverage_score,
    demographic_disparity,
    equalized_odds_disparity,
    gap_bound,
    rejection_rate_by_group,
    selective_accuracy,
)

GROUPS = ["a"] * 4 + ["b"] * 4
Y_TRUE = [1, 1, 0, 0, 1, 1, 0, 0]
Y_PRED = [1, 1, 1, 0, 1, 0, 0, 0]
BY_GROUP = [demographic_disparity, equalized_odds_disparity, accuracy_disparity]


def test_by_hand():
    assert demographic_disparity(Y_TRUE, Y_PRED, sensitive_features=GROUPS) == 0.75 - 0.25
    assert equalized_odds_disparity(Y_TRUE, Y_PRED, sensitive_features=GROUPS) == 0.5
    assert accuracy_disparity(Y_TRUE, Y_PRED, sensitive_features=GROUPS) == 0.0
    assert accuracy_disparity(Y_TRUE, [1, 1, 0, 0, 0, 0, 1, 0], sensitive_features=GROUPS) == 0.75


def test_rejected_rows_are_left_out():
    predicted = np.array([1, -1, -1, 0, 1, 0, 0, -1])
    assert coverage_score(Y_TRUE, predicted, reject_label=-1) == 5 / 8
    assert selective_accuracy(Y_TRUE, predicted, reject_label=-1) == 4 / 5
    assert rejection_rate_by_group(Y_TRUE, predicted, sensitive_features=GROUPS, reject_label=-1) == {
        "a": 0.5,
        "b": 0.25,
    }
    for metric in BY_GROUP:
        kept = predicted != -1
        expected = metric(np.array(Y_TRUE)[kept], predicted[kept], sensitive_features=np.array(GROUPS)[kept])
        assert metric(Y_TRUE, predicted, sensitive_features=GROUPS, reject_label=-1) == expected
    assert demographic_disparity(None, predicted, sensitive_features=GROUPS, reject_label=-1) == pytest.approx(1 / 6)


@pytest.mark.parametrize(("gap", "expected"), [("others", 0.75), ("overall", 0.5), ("between", 1.0)])
def test_gap_definitions_with_three_groups(gap, expected):
    groups, predicted = list("aabbcc"), [1, 1, 0, 0, 0, 1]
    assert demographic_disparity(None, predicted, sensitive_features=groups, gap=gap) == pytest.approx(expected)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(st.integers(0, 2**31), st.integers(2, 4))
def test_two_class_disparities_equal_fairlearns(seed, n_groups):
    metrics = pytest.importorskip("fairlearn.metrics")
    rng = np.random.default_rng(seed)
    groups = np.concatenate([np.repeat(np.arange(n_groups), 4), rng.integers(n_groups, size=40)])
    y = np.concatenate([np.tile([0, 0, 1, 1], n_groups), rng.integers(2, size=40)])
    predicted = rng.integers(2, size=len(y))
    given_groups = {"sensitive_features": groups}
    assert demographic_disparity(y, predicted, gap="between", **given_groups) == pytest.approx(
        metrics.demographic_parity_difference(y, predicted, **given_groups)
    )
    assert equalized_odds_disparity(y, predicted, **given_groups) == pytest.approx(
        metrics.equalized_odds_difference(y, predicted, **given_groups)
    )


def test_inside_fairlearns_metric_frame():
    metrics = pytest.importorskip("fairlearn.metrics")
    predicted = ["yes", "reject", "reject", "no", "yes", "no", "no", "no"]
    y = ["yes", "yes", "no", "no"] * 2
    frame = metrics.MetricFrame(
        metrics={
            "coverage": partial(coverage_score, reject_label="reject"),
            "accuracy": partial(selective_accuracy, reject_label="reject"),
        },
        y_true=y,
        y_pred=predicted,
        sensitive_features=GROUPS,
    )
    assert frame.overall.to_dict() == {"coverage": 0.75, "accuracy": 5 / 6}
    assert frame.by_group["coverage"].to_dict() == {"a": 0.5, "b": 1.0}
    assert frame.difference()["coverage"] == 0.5


@pytest.mark.parametrize("container", [list, np.array, pd.Series, lambda v: pd.Series(v, index=range(100, 108))])
def test_every_container_gives_the_same_figure(container):
    expected = [metric(Y_TRUE, Y_PRED, sensitive_features=GROUPS) for metric in BY_GROUP]
    got = [metric(container(Y_TRUE), container(Y_PRED), sensitive_features=container(GROUPS)) for metric in BY_GROUP]
    assert got == expected


def test_a_table_of_groups_means_intersections():
    frame = pd.DataFrame({"sex": list("ffmmffmm"), "old": [0, 0, 0, 0, 1, 1, 1, 1]})
    rates = rejection_rate_by_group(None, [-1, 1, 1, 1, -1, -1, 1, 1], sensitive_features=frame, reject_label=-1)
    assert rates == {("f", 0): 0.5, ("f", 1): 1.0, ("m", 0): 0.0, ("m", 1): 0.0}
    domain = [("m", 0), ("m", 1), ("f", 0), ("f", 1)]
    given = rejection_rate_by_group(
        None, [-1, 1, 1, 1, -1, -1, 1, 1], sensitive_features=frame, reject_label=-1, groups=domain
    )
    assert given == rates and list(given) == domain
    both = demographic_disparity(None, Y_PRED, sensitive_features=frame)
    assert both == demographic_disparity(
        None, Y_PRED, sensitive_features=["f0", "f0", "m0", "m0", "f1", "f1", "m1", "m1"]
    )


def test_given_groups_without_rows_are_reported_as_unknown():
    rates = rejection_rate_by_group(None, [0, -1], sensitive_features=["a", "a"], reject_label=-1, groups=["a", "b"])
    assert rates["a"] == 0.5 and np.isnan(rates["b"])


def test_nothing_answered_is_not_a_number():
    assert coverage_score(None, [-1, -1], reject_label=-1) == 0.0
    assert np.isnan(selective_accuracy([0, 1], [-1, -1], reject_label=-1))


@pytest.mark.parametrize("metric", BY_GROUP)
def test_nothing_to_compare_is_said_to_be_vacuous(metric):
    with pytest.warns(FairnessWarning, match="fewer than two groups"):
        assert metric([0, 1], [0, 1], sensitive_features=["a", "a"]) == 0.0
    with pytest.warns(FairnessWarning, match="fewer than two groups"):
        assert metric([0, 1], [0, -1], sensitive_features=["a", "b"], reject_label=-1) == 0.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y_pred": [0]}, "y_pred"),
        ({"y_pred": []}, "y_pred"),
        ({"y_pred": [[0, 1]]}, "y_pred"),
        ({"y_pred": [0.0, np.nan]}, "missing"),
        ({"y_true": [0.0, np.nan]}, "missing"),
        ({"y_true": ["a", np.nan]}, "missing"),
        ({"sensitive_features": ["a", np.nan]}, "missing"),
        ({"sensitive_features": ["a"]}, "sensitive_features"),
        ({"sensitive_features": ["a", None]}, "missing"),
        ({"reject_label": "reject"}, "reject_label"),
        ({"groups": ["a", "c"]}, "'groups'"),
    ],
)
@pytest.mark.parametrize("metric", BY_GROUP)
def test_bad_input_is_a_value_error(metric, arguments, message):
    good = {"y_true": [0, 1], "y_pred": [0, 1], "sensitive_features": ["a", "b"]}
    with pytest.raises(ValueError, match=message):
        metric(**{**good, **arguments})


def test_bad_options_are_named():
    with pytest.raises(ValueError, match="'gap'"):
        demographic_disparity(Y_TRUE, Y_PRED, sensitive_features=GROUPS, gap="else")
    with pytest.raises(ValueError, match="'classes'"):
        demographic_disparity(Y_TRUE, Y_PRED, sensitive_features=GROUPS, classes=[0, 2])
    with pytest.raises(ValueError, match="y_true"):
        selective_accuracy(None, Y_PRED, reject_label=-1)


@pytest.mark.parametrize("metric", [equalized_odds_disparity, accuracy_disparity, gap_bound])
@pytest.mark.parametrize("truth", [[1, 0, 1, 0], [True, False, True, False]])
def test_texts_are_not_compared_with_other_labels(metric, truth):
    """Found: no answer was right in any group, a gap of 0."""
    for y_true, y_pred in ((truth, ["yes", "no", "no", "no"]), (["yes", "no", "no", "no"], truth)):
        with pytest.raises(ValueError, match="got texts as labels and no texts"):
            metric(y_true, y_pred, sensitive_features=list("aabb"))


@pytest.mark.filterwarnings("ignore:.*found fewer than two groups with rows")
@pytest.mark.parametrize("metric", [equalized_odds_disparity, accuracy_disparity])
def test_a_refusal_is_no_label_of_another_kind(metric):
    truth, refused = ["yes", "no", "yes", "no"], np.array([-1, -1, -1, -1])
    assert metric(truth, refused, sensitive_features=list("aabb"), reject_label=-1) == 0
    assert np.isnan(selective_accuracy(truth, refused, reject_label=-1))


def test_scores_are_not_taken_for_labels():
    """Found: each score was a class of its own, and the gap next to nothing."""
    with pytest.raises(ValueError, match=r"y_pred of demographic_disparity holds fractions.*wasserstein_disparity"):
        demographic_disparity(None, np.array([0.2, 0.4, 0.7, 0.9]), sensitive_features=list("aabb"))
    assert demographic_disparity(None, np.array([1.0, 0.0, 1.0, 1.0]), sensitive_features=list("aabb")) == 0.5
