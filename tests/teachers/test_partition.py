"""Which assignments of rows to teachers let one record change one teacher, and which do not."""

import inspect
import zlib

import numpy as np
import pytest

import skfairdp._teachers
from tests._tools.inside import position_partition

N_ROWS, N_TEACHERS = 10_000, 100


def teachers_that_change(content, assignment, other_content, other_assignment):
    """Number of teachers whose training set differs between two datasets of distinct records."""
    return sum(
        not np.array_equal(np.sort(content[assignment == k]), np.sort(other_content[other_assignment == k]))
        for k in range(N_TEACHERS)
    )


def stratified_round_robin(group, shuffle):
    """Deal the records out group by group, as a stratified split of the private attribute would."""
    rng = np.random.default_rng(0)
    order = []
    for value in (0, 1):
        members = np.flatnonzero(group == value)
        order.append(rng.permutation(members) if shuffle else members)
    assignment = np.empty(len(group), dtype=int)
    assignment[np.concatenate(order)] = np.arange(len(group)) % N_TEACHERS
    return assignment


def chunks(n_rows, permute):
    """Consecutive chunks of n // K rows; what is left over belongs to the last."""
    position = np.random.default_rng(0).permutation(n_rows) if permute else np.arange(n_rows)
    assignment = np.empty(n_rows, dtype=int)
    assignment[position] = np.minimum(np.arange(n_rows) // (n_rows // N_TEACHERS), N_TEACHERS - 1)
    return assignment


def content_hash(content):
    return np.array([zlib.crc32(int(value).to_bytes(8, "big")) % N_TEACHERS for value in content])


@pytest.fixture
def content():
    return np.arange(N_ROWS)


def replaced(content, row):
    other = content.copy()
    other[row] = 10**9 + row
    return other


@pytest.mark.parametrize("shuffle", [False, True])
def test_stratified_round_robin_changes_all_teachers(content, shuffle):
    group = np.random.default_rng(1).integers(0, 2, N_ROWS)
    row = np.flatnonzero(group == 0)[10]
    flipped = group.copy()
    flipped[row] = 1
    before, after = stratified_round_robin(group, shuffle), stratified_round_robin(flipped, shuffle)
    changed = teachers_that_change(content, before, replaced(content, row), after)
    assert changed == 100


@pytest.mark.parametrize("permute", [False, True])
def test_chunks_change_all_teachers_when_a_record_is_removed(content, permute):
    changed = teachers_that_change(
        content, chunks(N_ROWS, permute), np.delete(content, 10), chunks(N_ROWS - 1, permute)
    )
    assert changed == 100


def test_content_hash_changes_two_teachers_when_a_record_is_replaced(content):
    other = replaced(content, 10)
    assert teachers_that_change(content, content_hash(content), other, content_hash(other)) == 2


def test_position_partition_changes_one_teacher_whichever_record_is_replaced(content):
    assignment = position_partition(N_ROWS, N_TEACHERS, random_state=0)
    for row in np.random.default_rng(2).choice(N_ROWS, 100, replace=False):
        other = replaced(content, row)
        # Partitioned anew, as a fit on the neighbouring dataset would.
        again = position_partition(len(other), N_TEACHERS, random_state=0)
        assert teachers_that_change(content, assignment, other, again) == 1


def test_position_partition_is_refused_for_removal_by_what_it_does(content):
    """The docstring's warning is true: with a row fewer nearly every teacher changes."""
    changed = teachers_that_change(
        content,
        position_partition(N_ROWS, N_TEACHERS, random_state=0),
        np.delete(content, 10),
        position_partition(N_ROWS - 1, N_TEACHERS, random_state=0),
    )
    assert changed > 2


def test_no_partition_that_could_read_the_data_is_offered():
    """There is one partition, and it takes two numbers and a seed: neither rows nor labels nor groups."""
    offered = [name for name in vars(skfairdp._teachers) if "partition" in name and not name.startswith("_")]
    assert offered == ["position_partition"]
    assert list(inspect.signature(position_partition).parameters) == ["n_rows", "n_teachers", "random_state"]


@pytest.mark.parametrize(("n_rows", "n_teachers"), [(1, 1), (7, 7), (10, 3), (1003, 100), (50, 1)])
def test_position_partition_is_even_and_leaves_nobody_out(n_rows, n_teachers):
    assignment = position_partition(n_rows, n_teachers, random_state=0)
    sizes = np.bincount(assignment, minlength=n_teachers)
    # One entry per row makes the parts disjoint; every row belongs to one of them.
    assert assignment.shape == (n_rows,) and assignment.dtype == np.int64
    assert len(sizes) == n_teachers and sizes.min() >= 1 and sizes.max() - sizes.min() <= 1


def test_partition_follows_random_state_only():
    first = position_partition(500, 20, random_state=3)
    np.random.default_rng().random()
    assert np.array_equal(first, position_partition(500, 20, random_state=3))
    assert not np.array_equal(first, position_partition(500, 20, random_state=4))
    assert not np.array_equal(position_partition(500, 20), position_partition(500, 20))


def test_position_partition_is_a_random_deal():
    """Neighbouring positions do not follow each other through the teachers."""
    assignment = position_partition(10_000, 10, random_state=0)
    assert abs(np.mean(assignment[1:] == assignment[:-1]) - 0.1) < 0.02


def test_more_teachers_than_rows_is_an_error_that_names_the_parameter():
    with pytest.raises(ValueError, match=r"'n_teachers'.*more teachers than rows \(5 > 3\)"):
        position_partition(3, 5)


@pytest.mark.parametrize("n_teachers", [0, -1, 2.0, True, None])
def test_partition_refuses_counts_that_are_none(n_teachers):
    with pytest.raises(ValueError, match="'n_teachers' parameter"):
        position_partition(10, n_teachers)
