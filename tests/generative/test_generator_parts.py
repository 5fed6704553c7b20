"""Parts of the marginals backend against brute force: simplex, bins, trees, rates, entries."""

import itertools
import math
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from skfairdp._tables._columns import NumberColumn, drawn_cells, fine_grid, merged_grid, on_simplex, quantile_starts
from skfairdp._tables._marginals import (
    TreeModel,
    _both_counts,
    best_tree,
    combined_shares,
    conditional_tables,
    joint_given_cells,
    with_mean,
)
from tests._tools.inside import (
    Layout,
    MarginalsPlan,
    as_entries,
    as_numbers,
    codes_of_entries,
    fair_label_rates,
    tilted_label_rates,
)
from tests._tools.layers import examples


@given(st.lists(st.floats(-50, 100), min_size=1, max_size=8))
@settings(max_examples=examples(60), deadline=None)
def test_the_nearest_point_of_the_simplex_is_nearer_than_any_other(values):
    noisy = np.array(values)
    shares = on_simplex(noisy)
    assert (shares >= 0).all() and shares.sum() == pytest.approx(1)
    total = noisy.sum()
    if total > 1e-6:
        rng = np.random.default_rng(0)
        others = rng.dirichlet(np.ones(len(noisy)), size=200) * total
        assert np.linalg.norm(shares * total - noisy) <= np.linalg.norm(others - noisy, axis=1).min() + 1e-6


def test_shares_of_many_rows_are_projected_row_by_row():
    noisy = np.array([[3.0, -1.0, 2.0], [0.0, 0.0, 0.0], [-5.0, 1.0, -2.0]])
    np.testing.assert_allclose(on_simplex(noisy), [on_simplex(row) for row in noisy])
    np.testing.assert_allclose(on_simplex(noisy)[1:], 1 / 3)


def test_without_noise_shares_are_frequencies_and_with_much_of_it_those_of_all_rows():
    counts = np.array([[30.0, 10, 0], [5, 15, 0], [40, 20, 0], [1, 9, 0]])
    sampled = np.array([True, True, False])
    observed = counts.sum(axis=1).reshape(2, 2) / counts.sum()
    exact = conditional_tables(counts, 1e-9, observed, sampled, None)
    np.testing.assert_allclose(exact[:, :2], counts[:, :2] / counts.sum(axis=1, keepdims=True), atol=1e-6)
    assert (exact[:, 2] == 0).all()
    drowned = conditional_tables(counts, 1e3, observed, sampled, None)
    np.testing.assert_allclose(drowned, np.tile([76 / 130, 54 / 130, 0], (4, 1)))


@pytest.mark.parametrize(("missing", "kept"), [(3.0, False), (500.0, True)])
def test_a_code_of_missing_values_within_the_noise_is_empty(missing, kept):
    counts = np.array([[100.0, 50, missing, 0], [100, 50, missing, 0]])
    shares = conditional_tables(counts, 10.0, np.array([[0.5, 0.5]]), np.array([True, True, True, False]), 2)
    assert (shares[:, 2] > 0).all() == kept


def test_counts_by_label_are_those_of_both_tables_with_the_least_noise():
    """Three and four times the counts: what is left of the noise is that of the declared mean of both, and no more."""
    rng = np.random.default_rng(0)
    plan = MarginalsPlan(Layout("codes", 1000, 5, 3, 2, None, groups_known=True), True, 0.03, 0.12)
    sigma, (by_label, by_cell) = plan.tables_at(1.0).sigma, plan.times
    found = []
    for _ in range(4000):
        labels, left = _both_counts(
            sigma / by_cell * rng.normal(size=(3, 2, 4)), sigma / by_cell, sigma / by_label * rng.normal(size=(2, 4)),
            sigma / by_label,
        )  # fmt: skip
        found.append(labels)
    assert left == pytest.approx(plan.noise_by_label_at(1.0))
    assert np.std(found) == pytest.approx(left, rel=4 / math.sqrt(2 * 32_000))
    alone = math.sqrt(3) * sigma / math.sqrt(by_label**2 + by_cell**2)  # all of it on the counts by group and label
    assert left < 0.8 * alone  # .76 for three groups; counts by label four times would be .62, and groups drowned


def test_shares_from_all_tables_of_a_column_are_those_of_generalised_least_squares():
    rng = np.random.default_rng(0)
    truth, n_rows = np.array([0.5, 0.3, 0.2]), 1000.0
    own = truth + 0.01 * rng.normal(size=3)
    own /= own.sum()
    seen = [
        (truth * size + math.sqrt(variance) * rng.normal(size=3), variance)
        for size, variance in ((990, 300), (700, 60))
    ]
    # Shares that add up to 1: the last one is what the others leave.
    free, fixed = np.vstack([np.eye(2), -np.ones((1, 2))]), np.array([0.0, 0.0, 1.0])
    measured = [(own * n_rows, 150.0, n_rows), *((counts, variance, counts.sum()) for counts, variance in seen)]
    left = np.vstack([size / math.sqrt(variance) * free for _, variance, size in measured])
    right = np.concatenate([(counts - size * fixed) / math.sqrt(variance) for counts, variance, size in measured])
    expected = free @ np.linalg.lstsq(left, right, rcond=None)[0] + fixed
    np.testing.assert_allclose(combined_shares(own, n_rows, 150.0, seen), expected, rtol=1e-10)


def test_shares_from_all_tables_of_a_column_are_unbiased_and_have_less_noise_than_from_any_of_them():
    rng = np.random.default_rng(0)
    truth, n_rows, variances = np.array([0.4, 0.3, 0.2, 0.1]), 1000.0, np.array([100.0, 200.0, 400.0])
    centred = np.eye(4) - 1 / 4  # the totals are known or taken from the counts themselves
    found = []
    for _ in range(4000):
        own, *others = (n_rows * truth + centred @ rng.normal(size=4) * math.sqrt(v) for v in variances)
        seen = list(zip(others, variances[1:], strict=True))
        found.append(combined_shares(own / n_rows, n_rows, variances[0], seen))
    noise = math.sqrt(1 / (1 / variances).sum() * 3 / 4) / n_rows
    np.testing.assert_allclose(np.mean(found, axis=0), truth, rtol=0, atol=5 * noise / math.sqrt(4000))
    assert np.std(found, axis=0) == pytest.approx(noise, rel=5 / math.sqrt(2 * 4000))


def test_a_code_without_a_share_gets_none_from_other_tables_and_a_table_without_rows_says_nothing():
    own = np.array([0.6, 0.4, 0.0])
    np.testing.assert_array_equal(combined_shares(own, 100.0, 1.0, [(np.array([-9.0, 3.0, 50.0]), 1.0)]), own)
    assert combined_shares(own, 100.0, 1.0, [(np.array([60.0, 30.0, 50.0]), 1.0)])[2] == 0


def test_shares_of_cells_are_raked_towards_their_mean_and_stay_shares():
    shares = np.array([[0.5, 0.5, 0.0], [0.2, 0.8, 0.0], [0.0, 1.0, 0.0]])
    weights = np.array([0.5, 0.3, 0.2])
    mean = weights @ shares
    np.testing.assert_allclose(with_mean(shares, mean, mean), shares, rtol=1e-12)
    wanted = np.array([0.4, 0.6, 0.0])
    raked = with_mean(shares, mean, wanted)
    np.testing.assert_allclose(raked.sum(axis=1), 1.0, rtol=1e-12)
    assert np.abs(weights @ raked - wanted).sum() < np.abs(mean - wanted).sum()
    np.testing.assert_array_equal(with_mean(shares, mean, np.array([1.0, 0.0, 0.0]))[2], shares[2])  # nothing is left


def test_a_rare_cell_has_the_size_that_is_known_of_it():
    """Noise in its codes adds up to more than the cell holds; its size is released with less."""
    rng = np.random.default_rng(0)
    observed = np.array([[0.9, 0.1]])
    truth = 5000 * observed.reshape(2, 1) * np.array([[0.1] * 9 + [0.1], [0.05] * 9 + [0.55]])
    wrong = [
        np.abs(
            conditional_tables(truth + 60 * rng.normal(size=truth.shape), 60.0, observed, np.full(10, True), None)[1]
            - truth[1] / 500
        ).sum()
        for _ in range(50)
    ]
    assert np.mean(wrong) < 0.75


def test_the_joint_shares_agree_with_all_three_tables():
    rng = np.random.default_rng(0)
    weights = np.array([0.6, 0.3, 0.1])
    truth = rng.dirichlet(np.ones(12), size=3).reshape(3, 3, 4)
    pair = np.einsum("s,sij->ij", weights, truth)
    joint = joint_given_cells(pair, truth.sum(axis=2), truth.sum(axis=1), weights, n_steps=400)
    np.testing.assert_allclose(joint.sum(axis=2), truth.sum(axis=2), atol=1e-4)
    np.testing.assert_allclose(joint.sum(axis=1), truth.sum(axis=1), atol=1e-6)
    np.testing.assert_allclose(np.einsum("s,sij->ij", weights, joint), pair, atol=1e-3)


def test_the_tree_is_the_spanning_tree_of_the_largest_gain_and_drops_pairs_that_are_noise():
    rng = np.random.default_rng(1)
    scores = rng.random((5, 5)) * 1000
    scores = scores + scores.T
    edges = best_tree(scores, [2] * 5, 1.0)
    assert len(edges) == 4 and {child for _, child in edges} | {0} == set(range(5))
    gain = sum(scores[i, j] for i, j in edges)
    pairs = list(itertools.combinations(range(5), 2))
    for chosen in itertools.combinations(pairs, 4):
        reached = {0}
        for _ in range(4):
            reached |= {b for a, b in chosen if a in reached} | {a for a, b in chosen if b in reached}
        if len(reached) == 5:
            assert sum(scores[i, j] for i, j in chosen) <= gain + 1e-9
    assert best_tree(scores, [100] * 5, 1.0) == []


def tree_model():
    rng = np.random.default_rng(2)
    root, child = rng.dirichlet(np.ones(3), size=2), rng.dirichlet(np.ones(4), size=(2, 3))
    return TreeModel([(1, None), (0, 1)], [root, child]), root, child


def test_a_tree_is_sampled_from_its_tables_and_its_density_is_theirs():
    model, root, child = tree_model()
    cells = np.repeat([0, 1], 40_000)
    codes = model.sample(cells, np.random.default_rng(0))
    for s in (0, 1):
        found = np.zeros((3, 4))
        np.add.at(found, (codes[cells == s, 1], codes[cells == s, 0]), 1 / 40_000)
        np.testing.assert_allclose(found, root[s][:, None] * child[s], atol=0.01)
    logs = model.log_likelihood(codes[:5])
    for row, values in zip(logs, codes[:5], strict=True):
        expected = [np.log(root[s, values[1]] * child[s, values[1], values[0]]) for s in (0, 1)]
        np.testing.assert_allclose(row, expected)


def test_codes_without_a_share_are_never_sampled():
    table = np.array([[0.0, 0.5, 0.0, 0.5, 0.0]])
    codes = TreeModel([(0, None)], [table]).sample(np.zeros(5000, dtype=np.int64), np.random.default_rng(0))
    assert set(codes[:, 0]) == {1, 3}


@pytest.mark.parametrize("n_columns", [2, 6, 9])
def test_every_pair_that_a_tree_may_have_is_paid_for_and_one_more_is_refused(n_columns):
    layout = Layout("codes", 1000, n_columns, 2, 2, "group_and_label", groups_known=True)
    plan = MarginalsPlan(layout, True, 0.06, 0.34)
    mechanism = plan.pairs_at(1.0)
    assert mechanism.sensitivity == pytest.approx(math.sqrt(2 * (n_columns - 1)))  # one row moves two counts in each
    assert f"{n_columns - 1} tables of pairs" in plan.releases
    loop = [(j, (j + 1) % n_columns) for j in range(n_columns)]
    with pytest.raises(ValueError, match=f"{n_columns - 1} tables of pairs were declared, but there are {n_columns}"):
        plan._release_pairs(None, loop, 1.0, None)


# ---- numbers ---------------------------------------------------------------------------------------------------
def test_a_value_that_fills_a_bin_alone_gets_a_bin_of_its_own():
    values = np.array([0.0] * 80 + list(range(1, 21)))
    starts = quantile_starts(values, 5, 0.0, 20.0, True)
    assert starts[0] == 0 and starts[1] == 1
    column = NumberColumn("x", np.dtype("int64"), False, starts, 20.0, True)
    drawn = column.decode(column.encode(values), np.random.default_rng(0))
    assert (drawn[:80] == 0).all() and (drawn[80:] >= 1).all() and drawn.max() <= 20


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30), st.integers(2, 12))
@settings(max_examples=examples(60), deadline=None)
def test_a_value_decoded_lies_in_its_own_bin(values, n_bins):
    numbers = np.array(values)
    starts = quantile_starts(numbers, n_bins, numbers.min(), numbers.max(), False)
    column = NumberColumn("x", np.dtype("float64"), True, starts, float(numbers.max()))
    codes = column.encode(numbers)
    drawn = column.decode(codes, np.random.default_rng(0))
    np.testing.assert_array_equal(column.encode(drawn), codes)
    assert numbers.min() <= drawn.min() and drawn.max() <= numbers.max()


@pytest.mark.parametrize(("bounds", "integer"), [(None, False), (None, True), ((-3.0, 7.0), False), ((2, 9e6), True)])
def test_the_fine_grid_rises_and_gives_its_anchor_a_bin_of_its_own(bounds, integer):
    starts, high = fine_grid(bounds, integer)
    assert (np.diff(starts) > 0).all() and starts[-1] <= high
    anchor = 0.0 if bounds is None or bounds[0] <= 0 else float(bounds[0])
    place = np.searchsorted(starts, anchor)
    assert starts[place] == anchor
    assert starts[place + 1] == (anchor + 1 if integer else np.nextafter(anchor, np.inf))
    assert not integer or (starts == np.round(starts)).all()


def test_merged_bins_have_about_equal_counts_and_empty_outer_bins_are_cut_off():
    starts = np.arange(100.0)
    truth = np.where((starts >= 20) & (starts < 70), 200.0, 0.0)
    truth[30] = 5000
    noisy = truth + 10 * np.random.default_rng(0).normal(size=100)
    merged, high = merged_grid(starts, 99.0, noisy, 10.0, 10)
    assert 17 <= merged[0] <= 22 and 66 <= high <= 75
    assert 30 in merged and 31 in merged
    counts = np.add.reduceat(truth, merged.astype(int))
    assert np.delete(counts, list(merged).index(30)).max() < 2.5 * truth.sum() / 10
    nothing, high = merged_grid(starts, 99.0, np.zeros(100), 10.0, 10)
    assert 2 <= len(nothing) <= 10 and high == 99.0


@pytest.mark.parametrize("bounds", [(0.0, 1000.0), (-1e4, 1e4), None])
def test_few_rows_between_wide_bounds_are_not_cut_off(bounds):
    """No bin of theirs is above the noise, and empty ones are many: all of them together show where the rows are."""
    starts, high = fine_grid(bounds, False)
    cut, told = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        values = rng.uniform(400, 600, 1000)
        counts = np.bincount(np.searchsorted(starts, values, "right") - 1, minlength=len(starts))
        merged, end = merged_grid(starts, high, counts + 10 * rng.normal(size=len(starts)), 10.0, 16)
        cut.append(np.mean((values < merged[0]) | (values > end)))
        told.append(end - merged[0])
    assert np.mean(cut) < 0.15 and np.median(told) < 800  # 7 in 10 were cut off


def test_nothing_but_noise_hardly_ever_counts_as_occupied():
    starts, high = fine_grid((0.0, 1.0), False)
    for seed in range(300):
        noisy = 5 * np.random.default_rng(seed).normal(size=len(starts))
        merged, end = merged_grid(starts, high, noisy, 5.0, 10)
        assert (merged[0], end) == (0.0, 1.0), seed


# ---- rates -----------------------------------------------------------------------------------------------------
def test_tilts_run_from_the_groups_own_shares_through_the_overall_ones():
    observed = np.array([[0.3, 0.1], [0.3, 0.3]])
    np.testing.assert_allclose(tilted_label_rates(observed, -1.0), [[0.75, 0.25], [0.5, 0.5]])
    np.testing.assert_allclose(tilted_label_rates(observed, 0.0), [[0.6, 0.4]] * 2)
    beyond = tilted_label_rates(observed, 1.0)
    assert beyond[0, 1] > 0.4 > beyond[1, 1]
    sharper = tilted_label_rates(observed, 0.0, 0.5)
    assert sharper[0, 1] < 0.4 and sharper[0, 1] == pytest.approx(sharper[1, 1])


def test_fair_rates_are_less_unfair_on_the_model_than_equal_ones_and_cost_little_accuracy():
    """One column that tells the label and one that tells the group, which is unequal in the label."""
    label = np.array([[0.8, 0.2], [0.3, 0.7], [0.7, 0.3], [0.15, 0.85]])
    group = np.array([[0.9, 0.1], [0.9, 0.1], [0.2, 0.8], [0.2, 0.8]])
    model = TreeModel([(0, None), (1, None)], [label, group])
    observed = np.array([[0.4, 0.1], [0.25, 0.25]])

    def judged(rates):
        joint = np.einsum("sa,sb->sab", label, group).reshape(2, 2, 2, 2)
        predicted = np.einsum("syab,sy->abys", joint, rates).sum(axis=3).argmax(axis=2)
        hits = np.stack([np.einsum("syab,ab->sy", joint, predicted == k) for k in (0, 1)], axis=2)
        right = np.einsum("syy->sy", hits)
        of_label = observed / observed.sum(axis=1, keepdims=True)
        gap = np.ptp(np.einsum("sy,syk->sk", of_label, hits), axis=0).max()
        return np.ptp(right, axis=0).max() ** 2 + (1.8 * gap) ** 2, (observed * right).sum()

    chosen = fair_label_rates(model, observed, np.random.default_rng(0))
    np.testing.assert_allclose(chosen.sum(axis=1), 1)
    unfair, accuracy = judged(tilted_label_rates(observed, 0.0))
    found, kept = judged(chosen)
    assert found <= unfair + 1e-3 and kept >= accuracy - 0.02
    np.testing.assert_allclose(fair_label_rates(model, np.array([[0.4, 0.6]]), np.random.default_rng(0)), [[0.4, 0.6]])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6).filter(lambda v: sum(v) > 0.01), st.integers(1, 200))
@settings(max_examples=examples(60), deadline=None)
def test_groups_and_labels_are_drawn_as_often_as_their_shares_say_up_to_one_row(shares, n_samples):
    rates = np.array(shares) / sum(shares)
    drawn = drawn_cells(rates, n_samples, np.random.default_rng(0))
    assert len(drawn) == n_samples
    assert (np.abs(np.bincount(drawn, minlength=len(rates)) - rates * n_samples) < 2).all()


# ---- entries ---------------------------------------------------------------------------------------------------
class Touchy:
    """Raises at everything a reader might try."""

    def __init__(self, *attempts):
        self.attempts = attempts

    def __hash__(self):
        if "hash" in self.attempts:
            raise RuntimeError("hash")
        return hash("a")

    def __eq__(self, other):
        raise RuntimeError("eq")


STRANGE = [
    pd.NA,
    pd.NaT,
    np.float32(0.1),
    np.int8(3),
    np.bool_(True),
    np.str_("a"),
    np.longdouble(1) / 3,
    10**400,
    -(10**400),
    "1e400",
    "inf",
    "nan",
    " 7 ",
    "\ud800",
    np.array(1.0),
    np.array([1, 2]),
    np.timedelta64(3, "D"),
    pd.Timestamp(0),
    Decimal("sNaN"),
    Decimal("1e999999"),
    pd.Series([1.0]),
    Touchy(),
    Touchy("hash"),
    "a",
    1,
    1.0,
    0,
]
CELLS = st.one_of(
    st.integers(),
    st.floats(),
    st.booleans(),
    st.text(max_size=4),
    st.binary(max_size=3),
    st.none(),
    st.complex_numbers(),
    st.decimals(),
    st.fractions(),
    st.datetimes(),
    st.tuples(st.integers()),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=1), st.integers(), max_size=1),
)


@given(st.lists(CELLS, max_size=4), st.lists(st.integers(0, len(STRANGE) - 1), min_size=1, max_size=3))
@settings(max_examples=examples(300), deadline=None)
def test_what_an_entry_is_read_as_depends_on_that_entry_alone(values, strange):
    """So that a replaced row changes the entries of that row, whatever it does to the type of its column."""
    values = [*values, *(STRANGE[k] for k in strange)]  # by position: hypothesis hashes what it draws
    entries = as_entries(values)
    labels = ["a", 1, 0, ("x", 1), 2.5]
    codes = codes_of_entries(entries, labels, missing=7, other=9)
    for container in (entries, pd.Series(entries, dtype=object)):
        np.testing.assert_array_equal(
            as_numbers(container), np.concatenate([as_numbers(as_entries([value])) for value in values])
        )
    alone = [int(codes_of_entries(as_entries([value]), labels, missing=7, other=9)[0]) for value in values]
    assert codes.tolist() == alone


@pytest.mark.parametrize(
    "dtype",
    [
        "int8",
        "uint64",
        "float32",
        "float64",
        "bool",
        "Int64",
        "Float32",
        "boolean",
        "category",
        "Sparse[float64]",
        "longdouble",
    ],
)
def test_numbers_are_the_same_in_a_column_of_any_type(dtype):
    typed = pd.Series([0, 1, 1, 0, 1]).astype(dtype)
    np.testing.assert_array_equal(as_numbers(typed), [0, 1, 1, 0, 1])
    np.testing.assert_array_equal(codes_of_entries(as_entries(typed), [0, 1], missing=7, other=9), [0, 1, 1, 0, 1])
