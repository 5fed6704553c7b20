"""pareto_frontier and hypervolume against their definitions."""

import itertools
import time

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp

from skfairdp.model_selection import hypervolume, pareto_frontier
from tests._tools.layers import examples

# Few distinct values, so that ties in one objective, in several and in all are common.
COARSE = st.integers(-2, 2).map(float)
VALUES = COARSE | st.sampled_from([np.nan, np.inf, -np.inf]) | st.floats(-1, 1)


def brute_force(points, minimize):
    """The definition, pair by pair."""
    losses = np.where(minimize, points, -points)
    keep = []
    for p in losses:
        dominated = any(np.all(q <= p) and np.any(q < p) for q in losses)
        keep.append(not dominated and not np.isnan(p).any())
    return np.array(keep, dtype=bool)


@st.composite
def tables(draw, values=VALUES, max_rows=25):
    shape = (draw(st.integers(0, max_rows)), draw(st.integers(1, 4)))
    return draw(hnp.arrays(float, shape, elements=values)), draw(hnp.arrays(bool, shape[1]))


@pytest.mark.slow
@given(tables())
@settings(deadline=None, max_examples=examples(200))
def test_frontier_equals_the_brute_force_definition(case):
    points, minimize = case
    np.testing.assert_array_equal(pareto_frontier(points, minimize.tolist()), brute_force(points, minimize))


@pytest.mark.slow
@given(tables(values=COARSE), st.randoms())
@settings(deadline=None)
def test_frontier_does_not_depend_on_the_order_of_points(case, random):
    points, minimize = case
    order = list(range(len(points)))
    random.shuffle(order)
    mask = pareto_frontier(points, minimize.tolist())
    np.testing.assert_array_equal(pareto_frontier(points[order], minimize.tolist()), mask[order])


def test_all_of_equal_points_are_kept():
    assert pareto_frontier([[1, 2], [1, 2], [0, 3], [1, 3]]).tolist() == [True, True, True, False]
    assert pareto_frontier([[1], [1], [2]]).tolist() == [True, True, False]


@pytest.mark.parametrize("columns", [2, 3])
def test_frontier_of_two_hundred_thousand_points_is_quick(columns):
    points = np.random.default_rng(0).random((200_000, columns))
    started = time.process_time()
    mask = pareto_frontier(points)
    assert 0 < mask.sum() < 2_000
    assert time.process_time() - started < 5  # a pairwise comparison would take minutes


def by_grid(points, reference, minimize):
    """Independent computation: cut space at every coordinate, add up the cells that some point dominates."""
    losses = np.where(minimize, points, -points)
    corner = np.where(minimize, reference, -np.asarray(reference))
    losses = losses[(losses < corner).all(axis=1)]
    cuts = [np.unique(np.r_[losses[:, j], corner[j]]) for j in range(len(corner))]
    total = 0.0
    for cell in itertools.product(*(range(len(cut) - 1) for cut in cuts)):
        low = np.array([cut[i] for cut, i in zip(cuts, cell, strict=True)])
        if (losses <= low).all(axis=1).any():
            total += np.prod([cut[i + 1] - cut[i] for cut, i in zip(cuts, cell, strict=True)])
    return total


@given(tables(values=COARSE | st.floats(-3, 3), max_rows=7))
@settings(deadline=None, max_examples=examples(150))
def test_hypervolume_equals_a_cell_by_cell_sum(case):
    points, minimize = case
    reference = np.where(minimize, 1.5, -1.5)
    assert hypervolume(points, reference, minimize.tolist()) == pytest.approx(
        by_grid(points, reference, minimize), abs=1e-9
    )


def test_hypervolume_agrees_with_monte_carlo_in_four_dimensions():
    rng = np.random.default_rng(1)
    points, darts = rng.random((12, 4)), rng.random((100_000, 4))
    hit = np.zeros(len(darts), dtype=bool)
    for point in points:
        hit |= (darts <= point).all(axis=1)
    slack = 4 * np.sqrt(0.25 / len(darts))
    assert hypervolume(points, np.zeros(4), minimize=False) == pytest.approx(hit.mean(), abs=slack)


def test_hypervolume_of_nothing_beyond_the_reference_is_zero():
    assert hypervolume([[0.7, 0.9], [np.nan, 1.0]], (0.75, 0.8), minimize=False) == 0.0
    assert hypervolume(np.empty((0, 2)), (0, 0)) == 0.0


@pytest.mark.parametrize("minimize", [[True], "yes", [True, False, True], 1])
def test_directions_that_do_not_fit_are_refused(minimize):
    with pytest.raises(ValueError, match="'minimize' parameter of pareto_frontier must be a bool, or 2 bools"):
        pareto_frontier([[1, 2]], minimize)
    with pytest.raises(ValueError, match="'minimize' parameter of hypervolume"):
        hypervolume([[1, 2]], [0, 0], minimize)


@pytest.mark.parametrize("reference", [[0], [0, np.inf], [0, np.nan], 0])
def test_reference_that_does_not_fit_is_refused(reference):
    with pytest.raises(ValueError, match="'reference' parameter of hypervolume must be 2 finite numbers"):
        hypervolume([[1, 2]], reference)


def test_points_must_be_a_table():
    with pytest.raises(ValueError, match="'points' parameter of pareto_frontier must be a table"):
        pareto_frontier([1, 2, 3])
