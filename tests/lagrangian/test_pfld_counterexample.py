"""The figures of ``examples/plot_pfld_counterexample.py``: what the published PF-LD really costs."""

import runpy
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "plot_pfld_counterexample.py"


@pytest.fixture(scope="module")
def page():
    """Everything the example defines; it is run once."""
    if not EXAMPLE.exists():
        pytest.skip("not run from a source tree: examples/ is not beside the tests")
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("Agg")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plt, "show", lambda: None)
        try:
            return runpy.run_path(str(EXAMPLE))
        finally:
            plt.close("all")


@pytest.mark.few(2)
@pytest.mark.parametrize(("m", "ratio"), [(5, 6.6), (20, 33.4), (100, 177.0), (1000, 1797.0)])
def test_a_flipped_sign_moves_the_gradient_far_beyond_theorem_1(page, m, ratio):
    found = page["sign_flip_jump"](m) / page["claimed_gradient_sensitivity"](m)
    assert found == pytest.approx(ratio, rel=2e-3)
    assert found == pytest.approx(0.9 * (m - 1) * (1 + m / (m + 1)), rel=1e-6)  # by hand


def test_the_two_neighbours_obey_the_premises_of_theorem_1(page):
    import numpy as np

    for m in page["SIZES"]:
        rows, groups, theta = page["two_groups"](m)
        other = page["flipped"](groups)
        assert np.linalg.norm(rows, axis=1).max() <= page["CLIP"]  # gradients of linear scores are the rows
        assert int(np.sum(groups != other)) == 1
        violations = [theta @ (rows[g == 1].mean(axis=0) - rows[g == 0].mean(axis=0)) for g in (groups, other)]
        assert violations[0] > 0 > violations[1]


def test_one_step_sold_for_less_than_one_costs_more_than_seven_hundred(page):
    assert page["epsilon_sold"]() == pytest.approx(0.7255, abs=5e-5)
    assert page["epsilon_of_the_pair"](100) == pytest.approx(779.1, abs=0.05)


@pytest.mark.parametrize(("m", "ratio"), [(5, 22 / 15), (20, 19 * 41 / 420), (100, 99 * 201 / 10100), (1000, 2.0)])
def test_public_signs_would_still_cost_nearly_twice_the_claim(page, m, ratio):
    """(m - 1)(1/m + 1/(m + 1)): the group that is left and the group that is joined."""
    found = page["fixed_sign_jump"](m) / page["claimed_gradient_sensitivity"](m)
    assert found == pytest.approx(ratio, rel=2e-3) and 1.3 < found < 2


def test_the_sound_release_stays_within_its_bound(page):
    for m in page["SIZES"]:
        moved, bound = page["sound_jump_and_bound"](m)
        assert moved <= bound * (1 + 1e-12) and moved > 0.8 * bound


def test_a_clipped_mean_turns_around_whatever_the_size_of_the_group(page):
    for m in (5, 1000):
        assert page["clipped_mean_jump"](m) == pytest.approx(2 * page["CLIP"], rel=1e-6)


@pytest.mark.parametrize(("m", "ratio"), [(20, 1.73), (100, 1.94), (1000, 1.99)])
def test_theorem_2_holds_for_scores_of_one_sign_only(page, m, ratio):
    assert page["violation_ratio"](m, 0) <= 1
    assert page["violation_ratio"](m, -1) >= ratio
    assert page["violation_ratio"](m, -1) < 2
    assert page["violation_ratio"](1000, 0) > 0.996  # and is tight there


def test_the_scale_of_the_noise_tells_the_size_of_a_group(page):
    assert page["scale_divergence"]() == pytest.approx(4.31, abs=5e-3)


@pytest.mark.parametrize(
    ("settings", "sold", "exact"),
    [((0.01, 1.0, 1000), 1.828244, 23.391371), ((0.01, 5.0, 20_000), 1.075606, 15.774061)],
)
def test_batches_that_are_seen_amplify_nothing(page, settings, sold, exact):
    assert page["epsilon_of_hidden_batches"](*settings) == pytest.approx(sold, rel=3e-4)
    assert page["epsilon_of_seen_batches"](*settings) == pytest.approx(exact, abs=2e-6 * exact)


def test_divergence_of_seen_batches(page):
    assert page["renyi_of_seen_batches"](0.01, 5.0, 8) == pytest.approx(0.002919750, abs=5e-10)


@pytest.mark.parametrize(("centre", "divergence"), [(0.5, 1.72e-4), (2.0, 8.1e-3), (8.0, 1.70e-2)])
def test_contributions_far_from_zero_are_not_hidden_by_sampling(page, centre, divergence):
    assert page["order_2_divergence"](centre) == pytest.approx(divergence, rel=5e-3)
