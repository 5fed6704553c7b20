"""Fair batches of each teacher's own part, and rows dealt by position."""

import numpy as np
import pytest

from tests._tools.inside import TeacherParts, density_ratios, importance_weights, normalized


def test_importance_weights_sum_to_the_rates_in_every_cell_that_is_there():
    cells = np.array([0] * 90 + [1] * 9 + [3])
    rates = np.array([0.1, 0.2, 0.3, 0.4])
    weights = importance_weights(cells, rates)
    sums = np.bincount(cells, weights, minlength=4)
    np.testing.assert_allclose(sums, np.array([0.1, 0.2, 0, 0.4]) / 0.7)
    ratios = np.array([1.0, 2.0, 3.0])
    expected = ratios / (6 - ratios)
    np.testing.assert_allclose(normalized(ratios, "N2"), expected / expected.sum())
    np.testing.assert_allclose(normalized(np.array([0.0, 0.0]), "N1"), 0.5)
    np.testing.assert_allclose(normalized(np.array([0.0, 5.0]), "N2"), [0, 1])


@pytest.mark.parametrize("sampling", ["importance", "stratified"])
def test_batches_are_balanced_to_the_rates_within_every_part(sampling):
    rng = np.random.default_rng(0)
    cells = rng.choice(4, size=4000, p=[0.7, 0.1, 0.15, 0.05])
    rates = np.full(4, 0.25)
    parts = TeacherParts(cells, rates, 8, np.random.default_rng(1), sampling=sampling)
    index = np.concatenate([parts.batch(64) for _ in range(20)], axis=1)
    shares = np.stack([np.bincount(cells[own], minlength=4) / len(own) for own in index])
    np.testing.assert_allclose(shares, 0.25, atol=0.06)
    if sampling == "stratified":
        one = parts.batch(64)
        assert all(np.ptp(np.bincount(cells[own], minlength=4)) <= 2 for own in one)
    plain = TeacherParts(cells, rates, 8, np.random.default_rng(1), balanced=False).batch(2000)
    assert np.mean(cells[plain] == 0) == pytest.approx(0.7, abs=0.03)


def test_weights_of_the_loss_balance_batches_that_are_drawn_as_they_are():
    rng = np.random.default_rng(0)
    cells = rng.choice(4, size=4000, p=[0.7, 0.1, 0.15, 0.05])
    parts = TeacherParts(cells, np.full(4, 0.25), 8, np.random.default_rng(1), sampling="weights")
    index = parts.batch(2000)
    assert np.mean(cells[index] == 0) == pytest.approx(0.7, abs=0.03)
    for own in parts.rows:
        sums = np.bincount(cells[own], parts.loss_weights[own], minlength=4)
        np.testing.assert_allclose(sums / len(own), 0.25)
    even = TeacherParts(cells, np.full(4, 0.25), 8, np.random.default_rng(1), sampling="weights", balanced=False)
    np.testing.assert_allclose(even.loss_weights, 1.0)
    assert TeacherParts(cells, np.full(4, 0.25), 8, np.random.default_rng(1)).loss_weights is None


def test_the_sizes_of_parts_and_draws_are_the_same_whatever_the_cells():
    rates = np.full(2, 0.5)
    one = TeacherParts(np.zeros(50, dtype=int), rates, 7, np.random.default_rng(3))
    two = TeacherParts(np.arange(50) % 2, rates, 7, np.random.default_rng(3))
    np.testing.assert_array_equal(one.assignment, two.assignment)
    assert one.batch(9).shape == two.batch(9).shape == (7, 9)


def test_a_teacher_of_one_group_draws_its_rows_alone_and_a_row_that_changes_its_group_stays_with_its_teacher():
    cells = np.random.default_rng(0).choice(4, size=400, p=[0.6, 0.2, 0.15, 0.05])  # two groups, two labels
    by_group = np.array([[0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5]])
    parts = TeacherParts(cells, by_group, 6, np.random.default_rng(1))
    before = parts.batch(200)
    for teacher, own in enumerate(before):
        drawn = np.bincount(cells[own], minlength=4) / 200
        assert drawn.reshape(2, 2)[teacher % 2].sum() == 1
        np.testing.assert_allclose(drawn.reshape(2, 2)[teacher % 2], 0.5, atol=0.12)
    moved = cells.copy()
    moved[7] = 3 - moved[7]
    after = TeacherParts(moved, by_group, 6, np.random.default_rng(1)).batch(200)
    assert set(np.flatnonzero((before != after).any(axis=1))) <= {parts.assignment[7]}


def test_estimated_ratios_favour_rows_like_the_public_ones():
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(-2, 1, (450, 2)), rng.normal(2, 1, (50, 2))])
    public = np.concatenate([rng.normal(-2, 1, (50, 2)), rng.normal(2, 1, (50, 2))])
    ratios = density_ratios(rows, public)
    assert ratios[450:].mean() > 4 * ratios[:450].mean()
    assert ratios.min() >= 1 / 20 and ratios.max() <= 20
    assert len(density_ratios(np.zeros((0, 2)), public)) == 0
