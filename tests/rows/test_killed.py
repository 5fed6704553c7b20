"""Workers and drivers that are killed: the ledger holds what was drawn, nothing else was let out, no fit is half done.

The rule: a fit is charged when its first noise is drawn. What dies before has cost nothing, what dies after costs all.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from skfairdp import KeyedRows, PrivacyLedger
from tests._tools.sources import recording_noise
from tests.rows.test_streamed_generator import generator, table
from tests.rows.test_streamed_pfld import model as multipliers, trained
from tests.rows.test_streamed_sfpate import rows as rows_of_groups
from tests.rows.test_streamed_teachers import fair_pate, votes

pytestmark = [
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning"),
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.UtilityWarning"),
]

CASES = [
    (who, when)
    for who in (
        "generator",
        "teachers",
        "teachers of groups",
        "gradients",
        "multipliers",
        "thresholds",
        "random groups",
    )
    for when in ("reading", "the first noise")
]
#: One process that imports everything once, and dies in a fork of itself for each case.
DRIVER = """
import json, os, signal, sys, tempfile, traceback, warnings
warnings.simplefilter("ignore")
from skfairdp import PrivacyLedger
from skfairdp.baselines import GroupRandomizer
from skfairdp._rows._opened import FrameRows
from tests.rows.test_streamed_dpsgd import model
from tests.rows.test_streamed_generator import SCHEMA, generator, table
from tests.rows.test_streamed_pfld import model as multipliers
from tests.rows.test_streamed_sfpate import made, rows
from tests.rows.test_streamed_teachers import fair_pate
from tests.rows.test_streamed_thresholds import made as thresholds
from tests._tools.processes import die_at_the_first_noise

class RandomGroups(GroupRandomizer):
    def fit(self, X):
        return list(self.release_chunks(X))

def random_groups(ledger):
    return RandomGroups(schema=SCHEMA, ledger=ledger)

def fit(folder, who, when):
    class Rows(FrameRows):
        def each(self, function):
            if when == "reading":
                os.kill(os.getpid(), signal.SIGKILL)
            return super().each(function)

    tempfile.tempdir = os.path.join(folder, "temporary")
    if when == "the first noise":
        die_at_the_first_noise()
    ledger = PrivacyLedger(9.0, delta=1e-3, path=os.path.join(folder, "ledger.jsonl"))
    makers = {"generator": generator, "teachers": fair_pate, "teachers of groups": made, "gradients": model,
              "multipliers": multipliers, "thresholds": thresholds, "random groups": random_groups}
    estimator = makers[who](ledger=ledger)
    open(os.path.join(folder, "begun"), "w").close()
    estimator.fit(Rows(rows() if who in ("teachers of groups", "multipliers") else table(), 500))

ends = []
for case in json.loads(sys.argv[1]):
    child = os.fork()
    if child == 0:
        try:
            fit(*case)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    ends.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(json.dumps(ends))
"""


@pytest.fixture(scope="module")
def deaths(tmp_path_factory):
    """How each case ended, and the folder it left."""
    folders = [tmp_path_factory.mktemp("killed") for _ in CASES]
    for folder in folders:
        (folder / "temporary").mkdir()
        PrivacyLedger(9.0, delta=1e-3, path=folder / "ledger.jsonl")
    asked = json.dumps([[str(folder), *case] for folder, case in zip(folders, CASES, strict=True)])
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, asked],
        capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    ends = zip(json.loads(done.stdout), folders, strict=True)
    return {case: (*end, done.stderr) for case, end in zip(CASES, ends, strict=True)}


@pytest.mark.slow
@pytest.mark.parametrize(("who", "when"), CASES)
def test_a_driver_that_is_killed_has_paid_if_and_only_if_noise_was_drawn(deaths, who, when):
    code, folder, complained = deaths[who, when]
    assert (folder / "begun").exists() and code == -signal.SIGKILL, complained
    ledger = PrivacyLedger(9.0, delta=1e-3, path=folder / "ledger.jsonl")
    assert len(ledger.entries) == (when == "the first noise")
    assert not [file for file in (folder / "temporary").rglob("*") if file.is_file()]


class Deadly(DecisionTreeClassifier):
    """Kills the process in which it is fitted, unless that is the driver or as many have died as should."""

    def __init__(self, folder="", driver=0, deaths=0, max_depth=3, random_state=0):
        super().__init__(max_depth=max_depth, random_state=random_state)
        self.folder, self.driver, self.deaths = folder, driver, deaths

    def fit(self, X, y):
        died = len(list(Path(self.folder).iterdir()))
        if os.getpid() != self.driver and died < self.deaths:
            (Path(self.folder) / f"{died}").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().fit(X, y)


def deadly_partition(j, folder, driver, reads, whole=table, deaths=99):
    """The rows of a partition; a worker that reads one for the last time allowed dies, so often."""
    seen = Path(folder) / f"{j}"
    with seen.open("a") as file:
        file.write(".")
    if os.getpid() != driver and reads < seen.stat().st_size <= reads + deaths:
        os.kill(os.getpid(), signal.SIGKILL)
    rows = whole()
    return rows.iloc[np.array_split(np.arange(len(rows)), 3)[j]]


@pytest.fixture
def cluster():
    distributed = pytest.importorskip("distributed", reason="needs dask and distributed")
    import dask

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as workers,
        distributed.Client(workers),
    ):
        yield distributed


@pytest.mark.dask
def test_a_worker_that_is_killed_in_training_is_replaced_and_its_teachers_vote_once(cluster, tmp_path):
    import dask.dataframe as frames

    folder = tmp_path / "deaths"
    folder.mkdir()
    expected = votes(KeyedRows(table(), key="id"), teacher=Deadly(str(folder), os.getpid()))
    ledger = PrivacyLedger(epsilon=9.0, delta=1e-3)
    found = votes(
        KeyedRows(frames.from_pandas(table(), npartitions=3), key="id"),
        teacher=Deadly(str(folder), os.getpid(), deaths=1), ledger=ledger,
    )  # fmt: skip
    assert len(list(folder.iterdir())) == 1 and len(ledger.entries) == 1
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.dask
def test_workers_that_all_die_in_training_end_the_fit_before_anything_is_released_or_spent(cluster, tmp_path):
    import dask.dataframe as frames

    folder = tmp_path / "deaths"
    folder.mkdir()
    ledger = PrivacyLedger(epsilon=9.0, delta=1e-3)
    model = fair_pate(teacher=Deadly(str(folder), os.getpid(), deaths=99), ledger=ledger)
    with recording_noise() as record, pytest.raises(cluster.KilledWorker):
        model.fit(KeyedRows(frames.from_pandas(table(), npartitions=3), key="id"))
    assert not record.releases and not ledger.entries and not hasattr(model, "student_")


@pytest.mark.dask
def test_workers_that_die_after_the_first_noise_leave_the_ledger_charged_and_no_half_fit(cluster, tmp_path):
    import dask.dataframe as frames

    ledger = PrivacyLedger(epsilon=9.0, delta=1e-3)
    model = generator(ledger=ledger)
    # Read to count rows, for the ranges of numbers, and (after noise) for the tables.
    frame = frames.from_map(deadly_partition, range(3), folder=str(tmp_path), driver=os.getpid(), reads=2,
                            meta=table().iloc[:0])  # fmt: skip
    with recording_noise() as record, pytest.raises(cluster.KilledWorker):
        model.fit(frame)
    assert record.releases and len(ledger.entries) == 1
    assert not hasattr(model, "model_") and not hasattr(model, "rates_")


def rows_that_kill(n_partitions, folder, deaths):
    """Rows of PF-LD, which are counted and then read once; a worker that reads them the second time dies, so often."""
    import dask.dataframe as frames

    return frames.from_map(
        deadly_partition, range(n_partitions), folder=str(folder), driver=os.getpid(), reads=1, whole=rows_of_groups,
        deaths=deaths, meta=rows_of_groups().iloc[:0],
    )  # fmt: skip


@pytest.mark.dask
def test_a_worker_that_is_killed_while_multipliers_read_is_replaced_and_rows_are_read_once(cluster, tmp_path):
    ledger, frame = PrivacyLedger(epsilon=9.0, delta=1e-3), rows_that_kill(1, tmp_path, deaths=1)
    kept = deadly_partition(0, tmp_path.parent, os.getpid(), 0, rows_of_groups)
    for one, other in zip(trained(frame, ledger=ledger), trained(kept), strict=True):
        np.testing.assert_array_equal(one, other)
    assert (tmp_path / "0").stat().st_size == 3 and len(ledger.entries) == 1


@pytest.mark.dask
def test_workers_that_all_die_while_multipliers_read_end_the_fit_before_anything_is_spent(cluster, tmp_path):
    ledger = PrivacyLedger(epsilon=9.0, delta=1e-3)
    model = multipliers(ledger=ledger)
    with recording_noise() as record, pytest.raises(cluster.KilledWorker):
        model.fit(rows_that_kill(3, tmp_path, deaths=99))
    assert not record.releases and not ledger.entries and not hasattr(model, "net_")
