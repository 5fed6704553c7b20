"""The paper plan for 10¹⁰ rows: what passes, tasks and parts hand on is what the formulas of the page on speed say."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from skfairdp.schema import RawTable, kept_rows, storage_bytes
from tests._tools.inside import FrameRows, bytes_on_disk
from tests.rows.test_streamed_generator import SCHEMA, N, generator, table
from tests.rows.test_streamed_teachers import N_TEACHERS, public_votes

pytestmark = pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning")
PAGE = (Path(__file__).parents[2] / "docs" / "benchmarks" / "speed.md").read_text(encoding="utf-8")


class Weighed(FrameRows):
    """Counts what tasks return, and what parts hand on."""

    def __init__(self, frame, n_rows_per_chunk):
        super().__init__(frame, n_rows_per_chunk)
        self.passes, self.dealt, self.handed = [], 0, []

    def map_reduce(self, function, add):
        self.passes.append([])

        def noted(chunk):
            found = function(chunk)
            self.passes[-1].append(found[0].nbytes)  # beside which it says how many rows it was
            return found

        return super().map_reduce(noted, add)

    def by_part(self, work):
        def noted_split(chunk):
            rows, parts = work.split(chunk)
            self.dealt += rows.nbytes
            return rows, parts

        def noted_use(part, rows):
            found = work.use(part, rows)
            self.handed.append(found[0].nbytes + 8)  # and how many rows it was
            return found

        return super().by_part(replace(work, split=noted_split, use=noted_use))


@pytest.mark.parametrize("rows_of_a_task", [500, 1500])
def test_the_generator_takes_two_passes_of_tasks_whose_sums_follow_the_codes_alone(rows_of_a_task):
    source = Weighed(table(), rows_of_a_task)
    codes = np.array(generator().fit(source)._codec.n_codes)
    pairs = (codes.sum() ** 2 - (codes**2).sum()) // 2
    assert [len(sizes) for sizes in source.passes] == 2 * [N // rows_of_a_task]
    assert set(source.passes[1]) == {8 * (6 * codes.sum() + pairs)}  # three groups times two labels


@pytest.mark.parametrize("most_bytes", [2**29, 20_000])
def test_teachers_move_encoded_rows_once_and_votes_of_each_part(most_bytes):
    source = Weighed(table(), 500)
    features = RawTable.read(SCHEMA, table(), owner="test").features.shape[1]
    public_votes(source, most_bytes=most_bytes)
    parts = min(N_TEACHERS, -(-N * features * 8 // most_bytes))
    assert source.dealt == bytes_on_disk(SCHEMA, N)
    assert source.handed == parts * [8 * (40 * 2 + 1)]  # queries times classes, and the number of rows behind them


def test_dp_sgd_keeps_the_encoded_rows_with_the_driver():
    features = RawTable.read(SCHEMA, table(), owner="test").features.shape[1]
    rows, labels, groups, _ = kept_rows(Weighed(table(), 500), SCHEMA, owner="test", n_features=features, groups=True)
    assert rows.rows.nbytes == storage_bytes(SCHEMA, N) and labels.nbytes == groups.nbytes == 8 * N


def test_the_table_of_the_page_follows_from_the_formulas():
    """20 columns of 24 codes at most, 4 groups times labels; 63 features, 85 bytes a row; 5000 queries, 2 classes."""
    rows, workers, tasks, teachers = 10**10, 100, 10**4, 1000
    sums = 8 * (4 * 20 * 24 + 20 * 19 * 24**2 // 2)
    parts = min(teachers, -(-rows * 63 * 8 // 2**29))
    found = {
        "sums of a task": f"{sums / 1e6:.1f} MB",
        "sums of a pass": f"{sums * tasks / 1e9:.0f} GB",
        "rows between workers": f"{rows * 85 / 1e9:.0f} GB",
        "of a worker": f"{rows * 85 / workers / 1e9:.1f} GB",
        "features of a teacher": f"{rows / parts * 63 * 8 / 1e9:.1f} GB",
        "votes": f"{parts * 8 * (5000 * 2 + 1) / 1e6:.0f} MB",
    }
    for name, figure in found.items():
        assert re.search(rf"\| {name} \|[^|]*\| {figure} \|", PAGE), (name, figure)
