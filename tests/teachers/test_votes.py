"""Vote histograms: what they count, and how far one teacher moves them."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import arrays

from tests._tools.inside import vote_histogram


@settings(deadline=None, max_examples=50)
@given(st.data())
def test_histogram_equals_counting_one_by_one(data):
    n_classes = data.draw(st.integers(1, 5))
    shape = data.draw(st.tuples(st.integers(0, 6), st.integers(0, 8)))
    votes = data.draw(arrays(np.int64, shape, elements=st.integers(0, n_classes - 1)))
    histogram = vote_histogram(votes, n_classes)
    expected = [[int((votes[:, row] == k).sum()) for k in range(n_classes)] for row in range(shape[1])]
    assert histogram.tolist() == expected
    assert (histogram.sum(axis=1) == shape[0]).all()


def test_histogram_in_several_chunks_equals_one():
    votes = np.random.default_rng(0).integers(0, 3, (2**16, 101), dtype=np.int8)  # 64 rows are counted at once
    row_by_row = [vote_histogram(votes[:, [row]], 3)[0] for row in range(101)]
    assert np.array_equal(vote_histogram(votes, 3), row_by_row)


def test_one_teacher_moves_the_histogram_by_root_two_and_the_maximum_by_one():
    rng = np.random.default_rng(0)
    votes = rng.integers(0, 4, (30, 500))
    other = votes.copy()
    other[11] = rng.integers(0, 4, 500)
    a, b = vote_histogram(votes, 4), vote_histogram(other, 4)
    assert np.linalg.norm(a - b, axis=1).max() == pytest.approx(np.sqrt(2))
    assert np.abs(a.max(axis=1) - b.max(axis=1)).max() == 1


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64])
def test_narrow_integer_votes_do_not_overflow(dtype):
    votes = np.full((3, 400), 99, dtype=dtype)
    assert vote_histogram(votes, 100)[:, 99].tolist() == [3] * 400
