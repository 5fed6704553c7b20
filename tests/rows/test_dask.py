"""dask, on threads, processes and a cluster: one bar over rows, and counts and votes that no scheduler changes."""

import contextlib
import io
import itertools
import re
import time

import cloudpickle
import numpy as np
import pytest

from skfairdp import KeyedRows
from skfairdp.generative import MarginalsBackend
from tests._tools.catalogue import Tied
from tests._tools.inside import PartWork, opened
from tests._tools.sources import recording_noise
from tests.rows.test_streamed_dpsgd import trained
from tests.rows.test_streamed_generator import N, generator, table
from tests.rows.test_streamed_teachers import assert_same, votes
from tests.rows.test_streamed_thresholds import ENCODED, tables

dask = pytest.importorskip("dask", reason="needs dask")
frames = pytest.importorskip("dask.dataframe", reason="needs dask")
pytestmark = [
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning"),
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.UtilityWarning"),
    pytest.mark.filterwarnings("ignore:.*given to PrivateThresholds has no privacy_"),
]


TENTHS = {N * tenth // 10 for tenth in range(11)}


def slowly(rows):
    time.sleep(0.11)  # longer than bars wait before they are drawn again
    return rows


def slow_frame():
    return frames.from_pandas(table(), npartitions=3).map_partitions(slowly, meta=table()[:0])


def counts(X, **options):
    with recording_noise(0) as record:
        generator(**options).fit(X)
    return [np.asarray(release.output) for release in record.releases]


def numbers_shown(shown, name):
    """What a bar counted to, and its totals."""
    found = [tuple(map(int, pair)) for pair in re.findall(rf"{name}: .*? (\d+)/(\d+)", shown)]
    return {done for done, _ in found}, {total for _, total in found}


@pytest.mark.few(1)
@pytest.mark.parametrize("verbose", [0, 1])
def test_a_bar_counts_rows_of_partitions_whose_task_has_ended_and_shows_no_rate(verbose, capsys):
    with dask.config.set(scheduler="synchronous"):
        found = counts(slow_frame(), backend=MarginalsBackend(verbose=verbose))
    shown = capsys.readouterr().err
    done, totals = numbers_shown(shown, "rows of X")
    assert_same(found, counts(table()))
    assert totals == ({N} if verbose else set()) and done == (TENTHS if verbose else set())
    assert "it/s" not in shown


@pytest.mark.few(1)
@pytest.mark.parametrize("scheduler", ["threads", "synchronous"])
def test_teachers_show_rows_and_then_parts_and_vote_the_same(scheduler, capsys):
    with dask.config.set(scheduler=scheduler):
        found = votes(KeyedRows(slow_frame(), key="id"), verbose=1)
    shown = capsys.readouterr().err
    assert_same(found, votes(KeyedRows(table(), key="id")))
    assert [numbers_shown(shown, name)[1] for name in ("rows of X", "parts of X")] == [{N}, {8}]
    assert numbers_shown(shown, "rows of X")[0] == TENTHS


@pytest.mark.few(1)
@pytest.mark.parametrize("scheduler", ["threads", "synchronous"])
def test_bars_do_not_show_where_partitions_end(scheduler):
    """A block of a text file ends after so many bytes, and so where a private text is longer."""
    shown = []
    for ends in ((1000, 2000), (993, 1999)):
        edges = itertools.pairwise([0, *ends, N])
        parts = [dask.delayed(slowly)(table().iloc[start:stop]) for start, stop in edges]
        frame = frames.from_delayed(parts, meta=table()[:0])
        with dask.config.set(scheduler=scheduler), contextlib.redirect_stderr(io.StringIO()) as printed:
            counts(frame, backend=MarginalsBackend(verbose=1))
            votes(KeyedRows(frame, key="id"), verbose=1)
        shown.append(re.findall(r"rows of X: .*? \d+/\d+", printed.getvalue()))
    assert shown[0] == shown[1] and len(shown[0]) >= 3 * 11


def test_blocks_that_end_elsewhere_change_no_answer_but_that_of_their_own_row(tmp_path):
    """The scores of this classifier hang on where a row stands in a call."""
    model, found, ends = Tied().fit(None, None), [], []
    model.classes_ = ENCODED.classes_
    for text in ("clerk", 500 * "x"):
        path, rows = tmp_path / f"{len(text)}.csv", table(600)
        rows.loc[3, "job"] = text
        rows.to_csv(path, index=False)
        frame = frames.read_csv(path, blocksize=8000, dtype={"job": object, "group": object}, parse_dates=["since"])
        with dask.config.set(scheduler="synchronous"):
            ends.append(frame.map_partitions(len).compute().tolist())
            found.append(tables(frame, model)[0])
    assert len(ends[0]) > 2 and ends[0] != ends[1]
    assert np.linalg.norm(found[0] - found[1]) <= 2**0.5


@pytest.mark.dask
def test_processes_give_the_counts_votes_network_and_thresholds_of_the_frame():
    frame = frames.from_pandas(table(), npartitions=2)
    with dask.config.set(scheduler="processes", num_workers=2):
        found = [counts(frame), votes(KeyedRows(frame, key="id")), trained(frame), tables(frame)]
    expected = [counts(table()), votes(KeyedRows(table(), key="id")), trained(table()), tables(table())]
    for some, others in zip(found, expected, strict=True):
        assert_same(some, others)


@pytest.mark.dask
def test_a_cluster_shows_the_bars_of_threads_and_gives_the_counts_votes_network_and_thresholds_of_the_frame(capsys):
    distributed = pytest.importorskip("distributed", reason="needs dask and distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster, set_as_default=False).as_current(),
    ):
        frame = slow_frame()
        assert_same(counts(frame, backend=MarginalsBackend(verbose=1)), counts(table()))
        assert numbers_shown(capsys.readouterr().err, "rows of X")[1] == {N}
        assert_same(votes(KeyedRows(frame, key="id"), verbose=1), votes(KeyedRows(table(), key="id")))
        shown = capsys.readouterr().err
        assert [numbers_shown(shown, name)[1] for name in ("rows of X", "parts of X")] == [{N}, {8}]
        assert_same(trained(frame), trained(table()))
        assert_same(tables(frame), tables(table()))


class Heavy:
    """A function that carries a MB along, as teachers carry their queries."""

    def __init__(self):
        self.carried = np.zeros(125_000)

    def __call__(self, *arguments):
        return np.array([len(arguments[-1].table)])

    def split(self, chunk):
        return np.zeros((len(chunk.table), 1)), np.zeros(len(chunk.table), np.int64)

    def use(self, part, rows):
        return np.array([len(rows)])


@pytest.mark.parametrize("way", ["sums", "parts"])
def test_what_a_function_carries_is_in_one_task_however_many_partitions_there_are(way):
    source = opened(frames.from_pandas(table(200), npartitions=20))
    assert source.n_rows == 200  # a graph of its own
    graphs = []

    def watching(graph, keys, **options):
        graphs.append(graph)
        return dask.get(graph, keys, **options)

    heavy = Heavy()
    with dask.config.set(scheduler=watching):
        if way == "sums":
            found = source.map_reduce(heavy, np.add)
        else:
            found = source.by_part(PartWork(heavy.split, heavy.use, 10, np.dtype(float), np.add))
    assert found.tolist() == [200]
    sizes = sorted(len(cloudpickle.dumps(task)) for task in dict(graphs[-1].__dask_graph__()).values())
    heavy_tasks = [size for size in sizes if size > heavy.carried.nbytes]
    assert len(sizes) > 20 and len(heavy_tasks) == (1 if way == "sums" else 2)
