"""Confidence bounds on gaps and rates: how often they hold, also with noise on the counts, and what they read."""

import math

import numpy as np
import pytest
from scipy.stats import beta

from skfairdp.fairness import (
    RateBound,
    RateConstraints,
    RateParity,
    parity_bound,
    rate_bounds,
    read_rate_constraints,
    violation_bounds,
)
from skfairdp.metrics import demographic_disparity, equalized_odds_disparity, gap_bound, rate_intervals

#: How often samples are drawn: in ``make test``, and in ``make test-all`` as well. Forty tell a bound that forgets the
#: noise or miscounts its rows from one that holds, as a test below says; one that is off by a few percent needs all.
repeated = pytest.mark.parametrize("repeats", [40, pytest.param(1000, marks=pytest.mark.slow)])


def off(repeats):
    """What a share of so many repetitions may be off by, with one chance in a thousand."""
    return 3.3 * math.sqrt(0.95 * 0.05 / repeats)


def tables(sizes, rates, noise=0.0, *, repeats, seed=0, random=False):
    """Counts of (group, true class, predicted class); ``rates`` are those of being predicted 1, by group and class."""
    rng = np.random.default_rng(seed)
    sizes, rates = np.broadcast_to(sizes, np.shape(rates)), np.asarray(rates)
    for _ in range(repeats):
        drawn = rng.multinomial(sizes.sum(), sizes.ravel() / sizes.sum()).reshape(sizes.shape) if random else sizes
        hits = rng.binomial(drawn, rates)
        counts = np.stack([drawn - hits, hits], axis=-1)
        yield counts + noise * rng.normal(size=counts.shape)


def of(asked, n_groups=2):
    return RateConstraints(read_rate_constraints(asked, "Test"), range(n_groups), [0, 1])


def coverage(constraints, truth, drawn, noise=0.0):
    found = [violation_bounds(constraints, counts, noise=noise).max() for counts in drawn]
    return float(np.mean([bound >= truth for bound in found]))


DIFFERENT = {
    "many rows": ([[1000], [300]], [[0.5], [0.3]], 0.0),
    "few rows": ([[60], [30]], [[0.6], [0.1]], 0.0),
    "much noise": ([[1000], [100]], [[0.7], [0.1]], 20.0),
    "noise on rare predictions": ([[3000], [1000]], [[0.15], [0.05]], 15.0),
}


@pytest.mark.few(1)
@repeated
@pytest.mark.parametrize("name", DIFFERENT)
def test_the_gap_stays_below_its_bound_in_95_of_100_samples(name, repeats):
    sizes, rates, noise = DIFFERENT[name]
    parity = of(RateParity("selection_rate", 0.0))
    found = coverage(parity, abs(rates[0][0] - rates[1][0]), tables(sizes, rates, noise, repeats=repeats), noise)
    assert 0.95 - off(repeats) <= found <= 0.97 + off(repeats), found


@pytest.mark.slow
def test_forty_samples_are_enough_to_find_a_bound_that_forgets_noise_or_rows():
    """The errors that the tests around this one are there for: each falls short by more than ``off(40)`` forgives."""
    sizes, rates, noise = DIFFERENT["much noise"]
    parity = of(RateParity("selection_rate", 0.0))
    drawn = list(tables(sizes, rates, noise, repeats=40))
    assert coverage(parity, 0.6, drawn) < 0.95 - off(40)  # the noise is forgotten
    few, apart, _ = DIFFERENT["few rows"]
    found = [violation_bounds(parity, 100 * counts).max() for counts in tables(few, apart, repeats=40)]
    assert np.mean(np.array(found) >= 0.5) < 0.95 - off(40)  # a row is taken for a hundred


#: Sizes and rates of two groups, noise: a rate at its end, a group of two rows, one that is not there.
AT_THE_ENDS = {
    "all of a small group, half of a large one": ([[10], [1000]], [[1.0], [0.5]], 0.0),
    "two rows": ([[2], [1000]], [[1.0], [0.1]], 0.0),
    "opposite ends": ([[10], [1000]], [[0.0], [1.0]], 0.0),
    "no rows": ([[0], [1000]], [[1.0], [0.1]], 0.0),
    "one end behind noise": ([[100], [1000]], [[1.0], [0.5]], 10.0),
    "opposite ends behind noise": ([[10], [1000]], [[0.0], [1.0]], 10.0),
    "no rows behind noise": ([[0], [100]], [[0.0], [1.0]], 10.0),
}


@pytest.mark.few(3)
@repeated
@pytest.mark.parametrize("name", AT_THE_ENDS)
def test_the_bound_holds_for_rates_of_zero_and_one_and_for_groups_of_few_rows_or_none(name, repeats):
    sizes, rates, noise = AT_THE_ENDS[name]
    parity = of(RateParity("selection_rate", 0.0))
    found = coverage(parity, abs(rates[0][0] - rates[1][0]), tables(sizes, rates, noise, repeats=repeats), noise)
    assert found >= 0.95 - off(repeats), found


def test_a_bound_without_noise_is_at_least_that_of_clopper_and_pearson():
    upper = RateConstraints(read_rate_constraints(RateBound("error_rate", upper=0.0, groups=[0]), "Test"), [0], [0, 1])
    for wrong in (0, 3, 12):
        counts = [[[12 - wrong, wrong], [0, 0]]]
        exact = beta.ppf(0.95, wrong + 1, 12 - wrong) if wrong < 12 else 1.0
        assert violation_bounds(upper, counts).max() == pytest.approx(exact, abs=2e-3)


@repeated
def test_near_parity_the_bound_holds_more_often_as_its_construction_says(repeats):
    sizes, rates = [[400], [400]], [[0.32], [0.28]]
    error = math.sqrt((0.32 * 0.68 + 0.28 * 0.72) / 400)
    normal = math.erfc(1.6448536 / math.sqrt(2)) / 2
    missed = normal - math.erfc((2 * 0.04 / error - 1.6448536) / math.sqrt(2)) / 2
    found = coverage(of(RateParity("selection_rate", 0.0)), 0.04, tables(sizes, rates, repeats=repeats))
    assert abs(found - (1 - max(missed, 0.0))) <= off(repeats) + 0.01


@pytest.mark.slow
@repeated
def test_the_largest_of_many_differences_is_covered_without_correction_for_their_number(repeats):
    noise = 8.0
    rates = [[0.1, 0.7], [0.12, 0.65], [0.3, 0.6], [0.2, 0.72]]  # by group, of true class 0 and 1
    odds = of(RateParity("selection_rate_by_label", 0.0), 4)
    found = coverage(odds, 0.2, tables(np.array([[300, 200]] * 4), rates, noise, repeats=repeats), noise)
    assert found >= 0.95 - off(repeats)


@pytest.mark.slow
@repeated
@pytest.mark.parametrize("noise", [0.0, 8.0])
def test_all_intervals_of_the_rates_hold_together(noise, repeats):
    rates = np.array([[0.1, 0.7], [0.3, 0.5], [0.02, 0.9]])
    sizes = np.array([[300, 200], [80, 60], [150, 40]])
    odds = of("equalized_odds", 3)
    held = 0
    for counts in tables(sizes, rates, noise, repeats=repeats):
        lower, upper = rate_bounds(odds, counts, noise=noise)
        held += bool(((lower[:-1] <= rates) & (rates <= upper[:-1])).all())
    assert held / repeats >= 0.95 - off(repeats)


@repeated
def test_a_bound_on_the_errors_of_all_rows_reads_their_groups_in_their_shares(repeats):
    overall = of(RateBound("error_rate", upper=0.2, groups="overall"))
    sizes = np.array([[300, 100], [50, 50]])
    wrong = np.array([[0.1, 0.8], [0.3, 0.6]])  # of being predicted 1
    errors = (sizes[:, 0] * wrong[:, 0] + sizes[:, 1] * (1 - wrong[:, 1])).sum() / sizes.sum()
    found = coverage(overall, errors - 0.2, tables(sizes, wrong, repeats=repeats, random=True))
    assert 0.95 - off(repeats) <= found <= 0.98 + off(repeats), found


def test_less_noise_and_more_rows_bring_the_bound_to_the_gap():
    counts = np.array([[[700, 300]], [[400, 600]]])
    parity = of(RateParity("selection_rate", 0.0))
    bounds = [violation_bounds(parity, counts, noise=noise).max() for noise in (200.0, 50.0, 10.0, 0.0)]
    assert bounds == sorted(bounds, reverse=True) and 0.3 < bounds[-1] < 0.34
    assert violation_bounds(parity, counts * 10_000).max() == pytest.approx(0.3, abs=1e-3)
    assert violation_bounds(parity, np.zeros((2, 1, 2)), noise=5.0).max() > 0.9  # nothing is known


# ---- rows ------------------------------------------------------------------------------------------------------
def rows(n=400):
    rng = np.random.default_rng(3)
    groups = np.array(["f", "m"])[rng.integers(2, size=n)]
    truth = rng.integers(2, size=n)
    return truth, np.where(rng.random(n) < 0.2 + 0.2 * (groups == "m"), 1 - truth, truth), groups


def test_the_bound_lies_above_the_gap_of_the_rows():
    truth, predicted, groups = rows()
    for constraints, gap in (
        ("demographic_parity", demographic_disparity(None, predicted, sensitive_features=groups)),
        ("equalized_odds", equalized_odds_disparity(truth, predicted, sensitive_features=groups)),
    ):
        found = gap_bound(truth, predicted, sensitive_features=groups, constraints=constraints)
        assert gap < found < gap + 0.2
        assert found == gap_bound(truth, predicted, sensitive_features=groups, constraints=constraints)
        higher = gap_bound(truth, predicted, sensitive_features=groups, constraints=constraints, level=0.99)
        assert higher > found


def test_constraints_that_hold_for_sure_have_a_bound_below_zero():
    truth, predicted, groups = rows(4000)
    loose = RateParity("selection_rate", difference_bound=0.2)
    assert gap_bound(None, predicted, sensitive_features=groups, constraints=loose) < 0
    few = [RateBound("error_rate", upper=0.1)]
    assert gap_bound(truth, predicted, sensitive_features=groups, constraints=few) > 0.2


def test_a_group_that_the_rows_lack_is_not_certified():
    truth, predicted, groups = rows()
    found = gap_bound(truth, predicted, sensitive_features=groups, groups=["f", "m", "x"])
    assert found > 0.4


def test_intervals_hold_the_rates_of_the_rows():
    truth, predicted, groups = rows()
    frame = rate_intervals(truth, predicted, sensitive_features=groups, constraints=["equal_opportunity"])
    assert frame["group"].tolist() == ["f", "m", "overall"]
    assert ((frame["lower"] < frame["value"]) & (frame["value"] < frame["upper"])).all()
    mine = (groups == "f") & (truth == 1)
    assert frame["value"][0] == pytest.approx(predicted[mine].mean())


def test_what_cannot_be_bounded_is_refused():
    _, predicted, groups = rows(20)
    for wrong, message in (
        ({"level": 1.0}, "'level' of gap_bound"),
        ({"constraints": "equalized_odds"}, "pass y_true"),
        ({"constraints": "justice"}, "'constraints' parameter of gap_bound"),
        ({"groups": ["f"]}, "sensitive_features|one group"),
    ):
        with pytest.raises(ValueError, match=message):
            gap_bound(None, predicted, sensitive_features=groups, **wrong)
    with pytest.raises(ValueError, match="one class"):
        gap_bound(None, [1, 1], sensitive_features=["f", "m"])
    with pytest.raises(ValueError, match="one group"):
        gap_bound(None, [0, 1], sensitive_features=["f", "f"])


def test_the_bound_of_counts_is_that_of_the_rows_they_count():
    _, predicted, groups = rows()
    counts = [[int(np.sum((groups == g) & (predicted == k))) for k in (0, 1)] for g in ("f", "m")]
    assert parity_bound(counts) == gap_bound(None, predicted, sensitive_features=groups)
    assert parity_bound(counts, noise=20.0) > parity_bound(counts)
    assert math.isnan(parity_bound(counts[:1]))


def test_each_interval_is_that_of_its_own_rate_and_group():
    """Two rates far apart, in two groups far apart: each value lies within its own bounds, and in no other's."""
    rng = np.random.default_rng(0)
    groups, truth = np.repeat(["f", "m"], 4000), np.tile([0, 1], 4000)
    chance = np.select(
        [(groups == "f") & (truth == 0), (groups == "f") & (truth == 1), truth == 0], [0.05, 0.7, 0.3], 0.9
    )
    predicted = (rng.random(8000) < chance).astype(int)
    frame = rate_intervals(truth, predicted, sensitive_features=groups, constraints="equalized_odds")
    frame = frame[frame["group"] != "overall"]
    within = (frame["lower"].to_numpy()[:, None] < frame["value"].to_numpy()) & (
        frame["value"].to_numpy() < frame["upper"].to_numpy()[:, None]
    )
    shares = frame["value"].round(6)
    assert shares.nunique() >= 4
    np.testing.assert_array_equal(within, shares.to_numpy()[:, None] == shares.to_numpy())


def test_noise_of_several_cells_adds_up_in_what_is_counted_over_them():
    """A rate over both true classes has the noise of two cells: that of one with a variance twice as large."""
    one = RateConstraints([RateParity("selection_rate", 0.0)], [0, 1], [0, 1])
    counts = np.array([[[150.0, 50.0], [100.0, 80.0]], [[120.0, 60.0], [90.0, 130.0]]])
    together = counts.sum(axis=1, keepdims=True)
    for bounds in (violation_bounds, lambda *given, **more: np.stack(rate_bounds(*given, **more))):
        apart = bounds(one, counts, noise=15.0)
        np.testing.assert_allclose(apart, bounds(one, together, noise=15.0 * np.sqrt(2)))
        assert not np.allclose(apart, bounds(one, together, noise=15.0), atol=1e-3)


WRONG = [{"noise": np.nan}, {"noise": -1.0}, {"noise": np.inf}, {"level": 0.0}, {"level": 1.0}, {"level": np.nan},
         {"noise": "1"}, {"noise": None}, {"level": "0.9"}, {"level": [0.9]}]  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_bounds_of_no_noise_and_no_level_are_refused(wrong):
    one, counts = RateConstraints([RateParity("selection_rate", 0.0)], [0, 1], [0, 1]), [[30.0, 10.0], [35.0, 5.0]]
    name = next(iter(wrong))
    for bound in (
        lambda: parity_bound(counts, **wrong),
        lambda: violation_bounds(one, np.array(counts)[:, None], **wrong),
        lambda: rate_bounds(one, np.array(counts)[:, None], **wrong),
    ):
        with pytest.raises(ValueError, match=f"'{name}' must"):
            bound()
    masked = np.ma.masked_array([[30.0, 10.0], [35.0, 5.0]], mask=[[False, True], [False, False]])
    for no_table in ([[30.0, np.nan], [35.0, 5.0]], masked, [["a", 1.0], [2.0, 3.0]], [[1j, 2.0], [3.0, 4.0]], [1.0]):
        with pytest.raises(ValueError, match="finite numbers"):
            parity_bound(no_table)
