"""The place of a row, where it has no key: no private cell of any record moves it."""

import itertools
import operator

import numpy as np
import pytest

from skfairdp import KeyedRows, ParetoSearchCV
from skfairdp._rows import PartWork, opened, row_hashes
from skfairdp.model_selection import PrivateSearchCV
from tests.rows.test_streamed_generator import table
from tests.rows.test_streamed_teachers import fair_pate

frames = pytest.importorskip("dask.dataframe", reason="needs dask")
N = 90


def hashes(X):
    """The hash of each row's key or place, by the id of the row."""
    found = {}
    for chunk in opened(X).chunks():
        found.update(zip(chunk.table["id"].tolist(), row_hashes(chunk, None, 7).tolist(), strict=True))
    return found


def dask_rows(ends):
    """A dask frame whose partitions end before these rows, as blocks of a text file may."""
    import dask

    rows, edges = table(N), [0, *ends, N]
    parts = [dask.delayed(rows.iloc[start:stop]) for start, stop in itertools.pairwise(edges)]
    return frames.from_delayed(parts, meta=rows[:0])


def seen_by_workers(frame):
    """Hashes that tasks on partitions make, by both ways in which a fit reads them."""
    source = opened(frame)
    split = lambda chunk: (row_hashes(chunk, None, 7), np.zeros(len(chunk.table), np.int64))  # noqa: E731
    listed = lambda part, rows: [rows.tolist()]  # noqa: E731
    dealt = source.by_part(PartWork(split, listed, 1, np.dtype(np.uint64), operator.add))
    each = [hash for made in source.each(lambda chunk: row_hashes(chunk, None, 7).tolist()) for hash in made]
    summed = source.map_reduce(lambda chunk: row_hashes(chunk, None, 7).tolist(), lambda one, two: one + two)
    return sorted(dealt[0]), each, summed


def test_a_record_that_moves_the_ends_of_partitions_moves_no_row_to_another_teacher():
    """A longer text in one line of a CSV file: the blocks that dask reads end elsewhere."""
    one, other = dask_rows([30, 60]), dask_rows([29, 59])
    assert hashes(one) == hashes(other) == hashes(lambda: iter([table(N)]))
    expected = list(hashes(one).values())
    for frame in (one, other, dask_rows([30, 30, 60])):  # also where a partition is empty
        dealt, each, summed = seen_by_workers(frame)
        assert dealt == sorted(expected) and each == summed == expected


@pytest.mark.parametrize("declared", [False, True])
def test_files_in_folders_named_after_values_need_a_key(declared, tmp_path):
    dataset = pytest.importorskip("pyarrow.dataset")
    for name, rows in table(N).groupby("group"):
        (tmp_path / f"group={name}").mkdir()
        columns = rows.drop(columns="group") if declared else rows
        columns.to_parquet(tmp_path / f"group={name}" / "part-0.parquet", index=False)
    X = dataset.dataset(tmp_path, partitioning="hive") if declared else tmp_path
    with pytest.raises(ValueError, match="named after values"):
        fair_pate().fit(X)
    for search in (ParetoSearchCV, PrivateSearchCV):
        with pytest.raises(ValueError, match="named after values"):
            search(fair_pate(), {"epsilon": [1.0]}, cv=2).fit(X)
    assert opened(KeyedRows(X, key="id")).n_rows == N


def test_a_folder_that_all_files_share_says_nothing(tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "run=3").mkdir()
    for j in (0, 1):
        table(N).to_parquet(tmp_path / "run=3" / f"part-{j}.parquet")
    assert opened(tmp_path).knows_places
