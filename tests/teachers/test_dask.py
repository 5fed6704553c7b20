"""The same fit on a dask cluster, through joblib's backend."""

import joblib
import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from skfairdp.ensemble import LogisticTeachers, MLPTeachers
from tests._tools.inside import fit_teachers, position_partition

distributed = pytest.importorskip("distributed", reason="needs dask and distributed")

pytestmark = pytest.mark.dask


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 5))
    return X, (X[:, 0] + X[:, 1] ** 2 + 0.3 * rng.standard_normal(600) > 1).astype(int)


def votes(teacher, X, y, assignment):
    teachers = fit_teachers(teacher, X, y, assignment, n_teachers=80, n_classes=2, random_state=0)
    return teachers.predict(X)


@pytest.mark.parametrize("processes", [False, True], ids=["threads", "processes"])
def test_two_dask_workers_give_the_votes_of_a_local_fit(processes, data):
    X, y = data
    assignment = position_partition(600, 80, random_state=0)
    # Eighty teachers make several tasks for the batched engines too.
    kinds = [DecisionTreeClassifier(max_features=2), LogisticTeachers(), MLPTeachers(hidden=(8,), epochs=3)]
    local = [votes(teacher, X, y, assignment) for teacher in kinds]
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=processes, dashboard_address=None, memory_limit=0
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        with joblib.parallel_config(backend="dask"):
            for teacher, expected in zip(kinds, local, strict=True):
                assert np.array_equal(votes(teacher, X, y, assignment), expected)
        executed = client.run(lambda dask_worker: dask_worker.state.executed_count)
    # The work was done on the cluster, on both of its workers.
    assert len(executed) == 2 and min(executed.values()) > 0
