"""The privacy property of teachers: each is a function of its own rows and seed, for every engine.

Together with a data-independent assignment this bounds what one record does to the votes; a zero-noise differential
test of the histogram closes the file.
"""

import random

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from torch import nn

from skfairdp.ensemble import LogisticTeachers, MLPTeachers, ModuleTeachers
from tests._tools.inside import fit_teachers, position_partition, vote_histogram

N_ROWS, N_FEATURES, N_TEACHERS, N_CLASSES = 180, 4, 8, 3


class MLPsByThrees(MLPTeachers):
    """Several stacks and tasks even for eight teachers."""

    _networks_per_stack = 3


class ModulesByThrees(ModuleTeachers):
    _networks_per_stack = 3


ENGINES = {
    "logistic": LogisticTeachers(C=2.0),
    "mlp": MLPsByThrees(hidden=(8, 8), epochs=3, batch_size=8, lr=0.02),
    "module": ModulesByThrees(
        nn.Sequential(nn.Linear(N_FEATURES, 8), nn.Tanh(), nn.Linear(8, N_CLASSES)), epochs=3, batch_size=8, lr=0.02
    ),
    "tree": DecisionTreeClassifier(max_features=2),
    "pipeline": make_pipeline(StandardScaler(), LogisticRegression()),
}
engines = pytest.mark.parametrize("teacher", ENGINES.values(), ids=ENGINES.keys())


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N_ROWS, N_FEATURES))
    y = (X @ rng.standard_normal((N_FEATURES, N_CLASSES)) + rng.standard_normal((N_ROWS, N_CLASSES))).argmax(axis=1)
    return X, y, rng.standard_normal((400, N_FEATURES))


def legacy_state():
    return np.random.get_state()[1].tobytes()  # noqa: NPY002  (it is the global generator that is watched)


def votes(teacher, X, y, assignment, queries, n_jobs=None):
    fitted = fit_teachers(
        teacher, X, y, assignment, n_teachers=N_TEACHERS, n_classes=N_CLASSES, random_state=0, n_jobs=n_jobs
    )
    return fitted.predict(queries)


def assert_only_teacher_changes(before, after, changed):
    others = np.arange(N_TEACHERS) != changed
    assert np.array_equal(before[others], after[others])
    assert not np.array_equal(before[changed], after[changed])


@pytest.mark.covering
@engines
@pytest.mark.parametrize("changed", [0, 5])
def test_replacing_the_rows_of_one_part_changes_that_teacher_only(teacher, changed, data):
    X, y, queries = data
    assignment = position_partition(N_ROWS, N_TEACHERS, random_state=1)
    mine = assignment == changed
    other_X, other_y = X.copy(), y.copy()
    other_X[mine] = 3 * X[mine][::-1] - 1
    other_y[mine] = (y[mine] + 1) % N_CLASSES
    before = votes(teacher, X, y, assignment, queries)
    assert_only_teacher_changes(before, votes(teacher, other_X, other_y, assignment, queries), changed)


@engines
def test_making_a_part_constant_changes_that_teacher_only(teacher, data):
    """A teacher that needs no training any more must not move the seeds or the place of those after it."""
    X, y, queries = data
    assignment = position_partition(N_ROWS, N_TEACHERS, random_state=1)
    constant = np.where(assignment == 2, 1, y)
    before = votes(teacher, X, y, assignment, queries)
    after = votes(teacher, X, constant, assignment, queries)
    assert_only_teacher_changes(before, after, 2)
    assert (after[2] == 1).all()


@engines
def test_removing_rows_of_one_part_changes_that_teacher_only(teacher, data):
    """Add/remove: other parts keep their rows at shifted positions, and padding and batches change with the sizes."""
    X, y, queries = data
    assignment = np.random.default_rng(2).integers(0, N_TEACHERS, N_ROWS)
    # The largest part, down to a single row: it is the one that sets how far the others are padded.
    changed = int(np.bincount(assignment).argmax())
    keep = np.ones(N_ROWS, dtype=bool)
    keep[np.flatnonzero(assignment == changed)[:-1]] = False
    before = votes(teacher, X, y, assignment, queries)
    after = votes(teacher, X[keep], y[keep], assignment[keep], queries)
    assert_only_teacher_changes(before, after, changed)


@pytest.mark.slow
@pytest.mark.usefixtures("two_workers")
@engines
def test_votes_do_not_depend_on_n_jobs(teacher, data):
    X, y, queries = data
    assignment = position_partition(N_ROWS, N_TEACHERS, random_state=1)
    serial = votes(teacher, X, y, assignment, queries, n_jobs=1)
    assert np.array_equal(serial, votes(teacher, X, y, assignment, queries, n_jobs=2))
    assert np.array_equal(serial, votes(teacher, X, y, assignment, queries))


@pytest.mark.few(1)
@pytest.mark.usefixtures("two_workers")
@engines
def test_independence_holds_across_workers(teacher, data):
    X, y, queries = data
    assignment = position_partition(N_ROWS, N_TEACHERS, random_state=1)
    other_y = np.where(assignment == 4, (y + 1) % N_CLASSES, y)
    before = votes(teacher, X, y, assignment, queries, n_jobs=2)
    assert_only_teacher_changes(before, votes(teacher, X, other_y, assignment, queries, n_jobs=2), 4)


@engines
def test_a_teacher_is_the_same_alone_and_in_company(teacher, data):
    """Its votes are those of an ensemble in which all other parts are empty."""
    X, y, queries = data
    assignment = position_partition(N_ROWS, N_TEACHERS, random_state=1)
    together = votes(teacher, X, y, assignment, queries)
    for k in (0, 7):
        mine = assignment == k
        assert np.array_equal(together[k], votes(teacher, X[mine], y[mine], assignment[mine], queries)[k])


@engines
def test_teachers_follow_random_state_and_touch_no_global_generator(teacher, data, monkeypatch):
    X, y, queries = data
    assignment = position_partition(N_ROWS, N_TEACHERS, random_state=1)

    def refuse(*args):
        raise AssertionError("a global seed was set")

    monkeypatch.setattr(torch, "manual_seed", refuse)
    monkeypatch.setattr(np.random, "seed", refuse)
    monkeypatch.setattr(random, "seed", refuse)
    states = legacy_state(), torch.get_rng_state(), random.getstate()
    first = votes(teacher, X, y, assignment, queries)
    assert legacy_state() == states[0]
    assert torch.equal(torch.get_rng_state(), states[1])
    assert random.getstate() == states[2]
    np.random.default_rng().random()
    assert np.array_equal(first, votes(teacher, X, y, assignment, queries))


@pytest.mark.parametrize("name", ["mlp", "module", "tree"])
def test_another_random_state_gives_other_teachers(name, data):
    X, y, queries = data
    assignment = position_partition(N_ROWS, N_TEACHERS, random_state=1)
    first, second = (
        fit_teachers(ENGINES[name], X, y, assignment, n_teachers=N_TEACHERS, n_classes=N_CLASSES, random_state=seed)
        for seed in (0, 1)
    )
    assert not np.array_equal(first.predict(queries), second.predict(queries))


def test_a_replaced_record_moves_each_histogram_row_by_at_most_root_two(data):
    """Zero-noise differential test of the whole room: partition, teachers, votes."""
    X, y, queries = data
    rng = np.random.default_rng(5)

    def histogram(X, y):
        assignment = position_partition(len(X), N_TEACHERS, random_state=1)
        return vote_histogram(votes("logistic", X, y, assignment, queries), N_CLASSES)

    base = histogram(X, y)
    largest = 0.0
    for row in rng.choice(N_ROWS, 20, replace=False):
        other_X, other_y = X.copy(), y.copy()
        other_X[row], other_y[row] = 50 * rng.standard_normal(N_FEATURES), (y[row] + 1) % N_CLASSES
        other = histogram(other_X, other_y)
        largest = max(largest, np.linalg.norm(other - base, axis=1).max())
        assert np.abs(other.max(axis=1) - base.max(axis=1)).max() <= 1
    # Reached, so the bound is tight and the test can fail; never exceeded.
    assert largest == pytest.approx(np.sqrt(2))
