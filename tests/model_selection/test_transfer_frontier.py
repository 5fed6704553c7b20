"""transfer_frontier(): how far an operating point moves from one data set to another."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skfairdp import FairDPSGDClassifier
from skfairdp.exceptions import PrivacyLeakWarning
from skfairdp.model_selection import hypervolume, measure_estimators, transfer_frontier
from tests._tools.searches import make_frame, two_guarantees


def shifted(frame, **by):
    moved = frame.copy()
    for name, value in by.items():
        moved[name] = moved[name] + value
    return moved


def test_the_same_frontier_does_not_move():
    moved = transfer_frontier(make_frame(), make_frame())
    assert len(moved) == 15
    assert (moved[["accuracy_shift", "disparity_shift", "coverage_shift"]] == 0).all(axis=None)
    summary = moved.attrs["summary"][0]
    assert summary["frontier_kept"] == summary["feasible"] == 1.0
    assert summary["rank_correlation"] == pytest.approx(1.0)
    assert summary["hypervolume_source"] == summary["hypervolume_target"]
    assert moved["feasible"].all()
    # Within its own bounds every point reaches itself, or something better.
    assert (moved["attainable_accuracy"] >= moved["accuracy_target"]).all()


def test_shifts_are_target_minus_source():
    moved = transfer_frontier(make_frame(), shifted(make_frame(), accuracy=-0.03, disparity=0.01))
    assert moved["accuracy_shift"].to_numpy() == pytest.approx(-0.03)
    assert moved["disparity_shift"].to_numpy() == pytest.approx(0.01)
    summary = moved.attrs["summary"][0]
    assert summary["accuracy_shift_median"] == summary["accuracy_shift_max"] == pytest.approx(0.03)
    assert summary["hypervolume_target"] < summary["hypervolume_source"]


def test_a_specification_is_feasible_where_some_point_of_the_target_meets_it():
    frame, worse = make_frame(), shifted(make_frame(), disparity=0.01)
    moved = transfer_frontier(frame, worse)
    for _, row in moved.iterrows():
        met = worse[
            (worse["epsilon"] <= row["epsilon"])
            & (worse["disparity"] <= row["disparity_source"])
            & (worse["coverage"] >= row["coverage_source"])
        ]
        assert row["feasible"] == (len(met) > 0)
        best = met["accuracy"].max() if len(met) else math.nan
        assert row["attainable_accuracy"] == pytest.approx(best, nan_ok=True)
    assert not moved["feasible"].all()
    assert transfer_frontier(frame, worse, tolerance=0.01 + 1e-9)["feasible"].all()


def test_certified_figures_that_differ_by_calibration_are_the_same_setting():
    source, target = make_frame(), make_frame()
    target["epsilon"] = target["epsilon"] * 0.9995
    assert len(transfer_frontier(source, target)) == 15
    target["epsilon"] = target["epsilon"] * 0.9
    with pytest.raises(ValueError, match="no setting in common"):
        transfer_frontier(source, target)


def test_only_settings_in_both_are_compared_in_the_order_of_the_source():
    moved = transfer_frontier(make_frame(epsilons=(0.5, 1.0, 5.0)), make_frame(epsilons=(5.0, 1.0)))
    assert moved["epsilon"].tolist() == [1.0] * 5 + [5.0] * 5


def test_unlike_guarantees_are_never_compared():
    moved = transfer_frontier(two_guarantees(), two_guarantees())
    assert [summary["protects"] for summary in moved.attrs["summary"]] == ["record", "sensitive attribute"]
    assert [summary["n_points"] for summary in moved.attrs["summary"]] == [15, 10]
    with pytest.raises(ValueError, match="no setting in common"):
        transfer_frontier(make_frame(), make_frame("sensitive attribute", "replace one sensitive attribute"))


def test_operating_points_of_unlike_relations_are_never_compared():
    """The same protection and the same figures under another neighbouring relation: no setting in common."""
    guests = make_frame("record", "add or remove one record")
    with pytest.raises(ValueError, match="no setting in common"):
        transfer_frontier(make_frame(), guests)
    both = pd.concat([make_frame(), shifted(guests, accuracy=0.1, disparity=-0.01)], ignore_index=True)
    moved = transfer_frontier(both, both)
    assert [summary["n_points"] for summary in moved.attrs["summary"]] == [15, 15]
    alone = transfer_frontier(make_frame(), make_frame())
    mine = moved["neighboring_relation"] == "replace one record"
    for column in ("non_dominated_source", "non_dominated_target", "feasible", "attainable_accuracy"):
        assert moved.loc[mine, column].tolist() == alone[column].tolist(), column


def test_an_epsilon_near_one_of_another_relation_is_not_taken_for_it():
    guests = make_frame("record", "add or remove one record").assign(epsilon=lambda frame: frame["epsilon"] * 0.9999)
    both = pd.concat([make_frame(), guests], ignore_index=True)
    target = pd.concat([make_frame().assign(epsilon=lambda frame: frame["epsilon"] * 0.9998), guests])
    assert len(transfer_frontier(both, target)) == 30


def test_epsilons_at_unlike_deltas_are_no_common_setting():
    with pytest.raises(ValueError, match="δ included"):
        transfer_frontier(make_frame().assign(delta=1e-5), make_frame().assign(delta=1e-6))


def test_the_default_corner_is_the_worst_of_both_tables():
    """From one of them alone, points of the other that are worse would have no volume."""
    frame = make_frame()
    for target in (shifted(frame, accuracy=-0.1, disparity=0.2), shifted(frame, accuracy=0.1, disparity=-0.01)):
        summary = transfer_frontier(frame, target).attrs["summary"][0]
        points = pd.concat([frame, target])
        corner = (points["accuracy"].min(), points["disparity"].max())
        for side, table in (("source", frame), ("target", target)):
            expected = hypervolume(table[["accuracy", "disparity"]].to_numpy(), corner, [False, True])
            assert summary[f"hypervolume_{side}"] == pytest.approx(expected)


def test_rows_are_told_apart_by_their_parameters_or_not_at_all():
    frame = make_frame()
    frame["params"] = [f"{params} #{j}" for j, params in enumerate(frame["params"])]
    twice = pd.concat([frame, frame.assign(params=frame["params"] + " with more teachers")], ignore_index=True)
    assert len(transfer_frontier(twice, twice)) == 30
    with pytest.raises(ValueError, match="are ambiguous"):
        transfer_frontier(pd.concat([frame, frame], ignore_index=True), frame)


def test_reference_bounds_the_hypervolumes():
    frame = make_frame()
    summary = transfer_frontier(frame, frame, reference=(0.75, 0.2)).attrs["summary"][0]
    expected = hypervolume(frame[["accuracy", "disparity"]].to_numpy(), (0.75, 0.2), [False, True])
    assert summary["hypervolume_source"] == pytest.approx(expected)


@pytest.mark.parametrize("bad", [None, 3, pd.DataFrame({"accuracy": [1.0]}), make_frame().iloc[:0]])
def test_what_is_no_frontier_is_an_error(bad):
    with pytest.raises(ValueError, match="'target' of transfer_frontier"):
        transfer_frontier(make_frame(), bad)


def test_searches_are_compared_by_their_tables():
    class Search:
        pareto_table_ = make_frame()

    assert len(transfer_frontier(Search(), Search())) == 15


def test_refusals_of_everything_have_no_accuracy_and_move_nowhere():
    target = make_frame()
    target.loc[0, ["accuracy", "disparity"]] = np.nan
    moved = transfer_frontier(make_frame(), target)
    assert np.isnan(moved["accuracy_shift"][0]) and np.isfinite(moved.attrs["summary"][0]["accuracy_shift_max"])


def test_what_learned_beside_a_private_model_is_told_of_where_it_is_measured():
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(300, 2)), rng.integers(0, 2, 300)
    y = (X[:, 0] > 0).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make_pipeline(StandardScaler(), FairDPSGDClassifier(lam=0.0, classes=[0, 1])).fit(X, y)
    with pytest.warns(PrivacyLeakWarning, match=r"measure_estimators cannot see what these read: .*StandardScaler"):
        measure_estimators([model], X, y, sensitive_features=groups)
