"""Counts of pairs: the same integers however they are counted, and costs that are linear in groups and labels."""

import itertools
import os
import time

import numpy as np
import pandas as pd
import pytest

from skfairdp._tables import NumberColumn, fine_grid, read_table
from skfairdp.generative import PFGuardGenerator
from tests._tools.inside import (
    BinSearch,
    TableEncoder,
    TreeModel,
    code_type,
    counted_pairs,
    fair_label_rates,
    joint_given_cells,
    together,
)


def by_hand(values, n_codes, pairs):
    tables = []
    for i, j in pairs:
        table = np.zeros((n_codes[i], n_codes[j]), dtype=np.int64)
        np.add.at(table, (values[:, i].astype(np.int64), values[:, j].astype(np.int64)), 1)
        tables.append(table)
    return tables


@pytest.mark.parametrize("n_codes", [(2, 3, 5, 2), (256, 255, 1, 4), (257, 300, 2, 999), (70_000, 2, 3, 3)])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [None, np.int64])
def test_counts_are_those_of_a_loop_over_rows(n_codes, order, dtype):
    rng = np.random.default_rng(0)
    codes = np.column_stack([rng.integers(0, size, 3000) for size in n_codes])
    values = np.asarray(codes, dtype=dtype or code_type(max(n_codes)), order=order)
    values[-1] = np.array(n_codes) - 1  # the largest codes, and the largest products of them
    pairs = [*itertools.combinations(range(4), 2), (2, 0)]
    for found, expected in zip(counted_pairs(values, n_codes, pairs), by_hand(values, n_codes, pairs), strict=True):
        assert found.dtype == np.int64
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("n_codes", "n_rows", "most"), [(8, 10**6, 160), (10, 10**6, 240), (30, 10**6, 470), (10, 100, 1225)]
)
def test_a_table_of_many_rows_is_gone_through_for_several_pairs_at_once(n_codes, n_rows, most):
    pairs = list(itertools.combinations(range(50), 2))
    tables = list(together([n_codes] * 50, pairs, n_rows))
    assert len(tables) <= most
    assert sorted(pair for _, found in tables for pair in found) == pairs
    assert all(set(pair) <= set(columns) for columns, found in tables for pair in found)


def test_counts_of_many_rows_on_all_cores_are_the_sums_of_parts_on_one():
    rng = np.random.default_rng(1)
    values, n_codes = rng.integers(0, 9, (200_000, 6)).astype(np.uint8), [9] * 6
    pairs = list(itertools.combinations(range(6), 2))
    parts = [list(counted_pairs(part, n_codes, pairs)) for part in np.array_split(values, 9)]
    for k, found in enumerate(counted_pairs(values, n_codes, pairs)):
        np.testing.assert_array_equal(found, sum(part[k] for part in parts))


@pytest.mark.slow
def test_tables_that_do_not_fit_together_are_counted_one_after_the_other():
    rng = np.random.default_rng(2)
    n_codes = (2100, 2100, 3)
    values, pairs = rng.integers(0, n_codes, (500, 3)), [(0, 1), (0, 2), (1, 0)]
    for found, expected in zip(counted_pairs(values, n_codes, pairs), by_hand(values, n_codes, pairs), strict=True):
        np.testing.assert_array_equal(found, expected)


def starts_of(rng):
    """Starts of bins as they come: fine grids, whole numbers, quantiles, far from 1, close together."""
    kind = rng.integers(6)
    if kind < 3:
        return fine_grid([None, (-4.0, 4.0), (17.0, 90.0)][kind], bool(rng.integers(2)))[0]
    drawn = rng.standard_normal(rng.integers(1, 40)) * 10.0 ** int(rng.integers(-320, 300))
    return np.unique(drawn if kind < 5 else 1 + drawn / np.abs(drawn).max() * 1e-6) + 0.0


@pytest.mark.parametrize("seed", range(40))
def test_bins_found_by_first_bytes_are_those_of_a_search_for_every_number(seed):
    rng = np.random.default_rng(seed)
    starts = starts_of(rng)
    drawn = rng.standard_normal(300) * 10.0 ** rng.integers(-300, 300, 300)
    near = [starts, np.nextafter(starts, np.inf), np.nextafter(starts, -np.inf), -starts]
    odd = [0.0, -0.0, 5e-324, -5e-324, np.inf, -np.inf, 1.7e308, -1.7e308]
    numbers = np.concatenate([*near, odd, drawn, rng.standard_normal(300) * np.abs(starts).max()])
    expected = np.searchsorted(starts, numbers, side="right")
    np.testing.assert_array_equal(BinSearch(starts, 10**6)(numbers), expected)
    np.testing.assert_array_equal(BinSearch(starts, 1)(numbers), expected)
    np.testing.assert_array_equal(BinSearch(starts, 10**6)(np.repeat(numbers, 2)[::2]), expected)  # every other one


@pytest.mark.parametrize("container", [np.asarray, pd.DataFrame])
@pytest.mark.parametrize("n_rows", [1, 5000, 40_000])
def test_rows_in_blocks_on_all_cores_are_encoded_as_columns_as_a_whole(container, n_rows, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2}, raising=False)
    rng = np.random.default_rng(n_rows)
    X = rng.standard_normal((n_rows, 3)).round(1)
    X[rng.random(X.shape) < 0.01] = np.nan
    starts, high = fine_grid((-3.0, 3.0), integer=False)
    columns = tuple(NumberColumn(None, np.dtype(float), nullable, starts, high) for nullable in (True, False, True))
    encoder, table = TableEncoder(columns, None, (0, 2), 24), read_table(container(X))
    whole = [
        np.where(np.isnan(X[:, j]), column.n_values, np.clip(np.searchsorted(starts, X[:, j], "right") - 1, 0, None))
        for j, column in enumerate(columns)
    ]
    np.testing.assert_array_equal(encoder.encode(table), np.column_stack(whole))
    for j, found in zip((0, 2), encoder.fine_counts(table), strict=True):
        np.testing.assert_array_equal(found, np.bincount(whole[j], minlength=len(starts) + 1)[: len(starts)])


def test_no_rows_and_no_pairs_count_nothing():
    assert list(counted_pairs(np.zeros((5, 2), dtype=np.uint8), (2, 2), [])) == []
    (table,) = counted_pairs(np.zeros((0, 2), dtype=np.uint8), (2, 3), [(0, 1)])
    assert table.shape == (2, 3) and not table.any()


def test_the_largest_number_of_codes_of_a_type_fits_it():
    for n_codes in (1, 255, 256, 257, 65_536, 65_537):
        assert np.iinfo(code_type(n_codes)).max >= n_codes - 1


def fitted_joint(pair, first, second, weights, n_steps=60):
    """Iterative proportional fitting as in the books: three sums of the whole table in every step."""
    joint = (weights[:, None] * first)[:, :, None] * second[:, None, :]
    pair = np.where(joint.sum(axis=0) > 0, np.maximum(pair, 1e-12), 0.0)
    weight = weights[:, None]
    for _ in range(n_steps):
        joint *= (pair / np.maximum(joint.sum(axis=0), 1e-300))[None]
        joint *= (weight * first / np.maximum(joint.sum(axis=2), 1e-300))[:, :, None]
        joint *= (weight * second / np.maximum(joint.sum(axis=1), 1e-300))[:, None, :]
    return joint / np.maximum(joint.sum(axis=(1, 2), keepdims=True), 1e-300)


@pytest.mark.parametrize("zeros", [0.0, 0.3])
def test_joint_shares_by_products_of_matrices_are_those_of_sums_over_the_table(zeros):
    rng = np.random.default_rng(2)

    def shares(*shape):
        drawn = rng.random(shape) * (rng.random(shape) >= zeros) + 1e-3 * (np.arange(shape[-1]) == 0)
        return drawn / drawn.sum(axis=-1, keepdims=True)

    pair, first, second, weights = shares(1, 42).reshape(6, 7), shares(5, 6), shares(5, 7), shares(1, 5)[0]
    found, expected = joint_given_cells(pair, first, second, weights), fitted_joint(pair, first, second, weights)
    held = weights > 0
    np.testing.assert_allclose(found[held], expected[held], atol=1e-9)
    np.testing.assert_allclose(found.sum(axis=(1, 2)), 1.0, atol=1e-9)


@pytest.mark.slow
def test_many_groups_and_labels_take_fewer_rows_of_each_to_choose_rates():
    def model_of(n_cells):
        rng = np.random.default_rng(3)
        return TreeModel([(0, None), (1, None)], [rng.dirichlet(np.ones(4), n_cells) for _ in range(2)])

    drawn = []

    class Watched(TreeModel):
        def sample(self, cells, rng):
            drawn.append(len(cells))
            return super().sample(cells, rng)

    for n_groups, n_classes in ((2, 2), (60, 5), (400, 10)):
        tree = model_of(n_groups * n_classes)
        observed = np.full((n_groups, n_classes), 1 / (n_groups * n_classes))
        rates = fair_label_rates(Watched(tree.order, tree.tables), observed, np.random.default_rng(0))
        np.testing.assert_allclose(rates.sum(axis=1), 1.0)
    assert drawn == [16_000, 300 * 111]  # and none where even one of each is too many


@pytest.mark.parametrize("seed", range(30))
def test_joint_shares_are_finite_where_noisy_tables_contradict_each_other(seed):
    rng = np.random.default_rng(seed)
    n_cells, first, second = 4, int(rng.integers(2, 25)), int(rng.integers(2, 25))

    def sparse(*shape):
        shares = rng.random(shape) ** 8 * (rng.random(shape) < 0.4)
        shares[..., 0] += 1e-9
        return shares / shares.sum(axis=-1, keepdims=True)

    pair = sparse(first * second).reshape(first, second)
    joint = joint_given_cells(pair, sparse(n_cells, first), sparse(n_cells, second), sparse(n_cells))
    assert np.isfinite(joint).all() and (joint >= 0).all()
    np.testing.assert_allclose(joint.sum(axis=(1, 2)), 1.0)


def seconds_of_a_fit(n_groups, n_classes):
    rng = np.random.default_rng(4)
    n = 6000
    groups, y = rng.integers(0, n_groups, n), rng.integers(0, n_classes, n)
    X = pd.DataFrame({"a": rng.normal(size=n), "b": rng.integers(0, 5, n), "c": rng.integers(0, 5, n)})
    generator = PFGuardGenerator(
        bounds={"a": (-4.0, 4.0)},
        categories={"b": list(range(5)), "c": list(range(5))},
        dtypes={"a": "float64", "b": "int64", "c": "int64"},
        groups=list(range(n_groups)),
        classes=list(range(n_classes)),
        random_state=0,
    )
    start = time.process_time()
    generator.fit(X, y, sensitive_features=groups)
    return time.process_time() - start


@pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning")
def test_time_of_a_fit_is_about_linear_in_groups_times_labels():
    seconds_of_a_fit(4, 5)
    few, many = seconds_of_a_fit(20, 5), seconds_of_a_fit(100, 10)
    assert many < 20 * few + 2  # ten times the cells; the square of them would be a hundred times
