"""After the release nothing private is read: labels, gate, student and post-processors see public and released values.

Two ways of asking. *Replay*: the released votes of one fit are handed to a fit on entirely different private rows;
every bit of the fitted state has to agree. *Taint*: arrays that reach a student are compared with the private rows.
"""

import contextlib
import pickle
from collections.abc import Iterator
from typing import Any, ClassVar

import joblib
import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from skfairdp import IDP3, FairPATEClassifier
from skfairdp.pate import ParityPenaltyStudent, SoftLabelStudent, _fair_pate
from tests._tools.inside import vote_histogram
from tests._tools.sources import Record, fixed_entropy, recording_noise
from tests._tools.teachers import WatchedTeachers
from tests._tools.worlds import SETTINGS, World, in_turn, make_estimator, make_world

MODES = [name for name in SETTINGS if name.startswith("FairPATE") and "discrete" not in name]
BASELINE_MODES = [name for name in SETTINGS if name.startswith("S_")]


def replaying() -> Iterator[contextlib.AbstractContextManager[Record]]:
    """Sources for fits in a row: the first releases, the next ones hear the same outputs, whatever the votes are."""
    original = Record()
    yield recording_noise(record=original)
    while True:
        yield recording_noise(replay=original)


def unrelated(world: World) -> World:
    """Other private rows, as many of them; the public rows stay."""
    rng = np.random.default_rng(99)
    return World(100 + rng.normal(size=world.X.shape), rng.permutation(world.y), world.public, world.n_classes)


@contextlib.contextmanager
def taught_once():
    """Without the students that judge the one that is returned: they learn from parts of the same rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_fair_pate, "_MOST_LEFT_OUT", 0)
        yield


class RecordingStudent(ClassifierMixin, BaseEstimator):
    """Keeps what it is given, for the test to look at."""

    seen: ClassVar[list[tuple[np.ndarray, np.ndarray]]] = []

    def fit(self, X: Any, y: Any) -> "RecordingStudent":
        self.seen.append((X, y))
        self.classes_ = np.unique(y)
        return self

    def predict(self, X: Any) -> np.ndarray:
        return np.full(len(X), self.classes_[0])


@pytest.mark.covering
@pytest.mark.parametrize("student", [None, LogisticRegression()], ids=["built-in", "given"])
@pytest.mark.parametrize("name", in_turn([*MODES, *BASELINE_MODES]))
def test_the_fitted_state_is_a_function_of_the_released_votes_and_public_rows(name, student):
    if student is not None and name.startswith("S_in"):  # it takes no other; one with a hidden layer instead
        student = ParityPenaltyStudent(hidden=(3,))
    world = make_world(SETTINGS[name]["n_classes"])
    states = []
    for one, noise in zip((world, unrelated(world)), replaying(), strict=False):
        # epsilon large: labels of several classes are released, so the students have something to learn
        model = make_estimator(SETTINGS[name], student=student, epsilon=200.0, gamma=0.5)
        with fixed_entropy(0), noise:
            states.append(vars(model.fit(one.X, one.y, X_public=one.public)))
        assert len(set(model.released_labels_[model.answered_mask_])) > 1
    assert states[0].keys() == states[1].keys()
    for attribute, value in states[0].items():
        assert joblib.hash(value) == joblib.hash(states[1][attribute]), f"{attribute} depends on private rows"


@pytest.mark.few(6)
@pytest.mark.filterwarnings("ignore:The gate of FairPATEClassifier reached")  # of so few rows it may
@pytest.mark.parametrize("name", [*MODES, *(name for name in BASELINE_MODES if name.startswith("S_pre"))])
@taught_once()
def test_a_student_is_given_public_rows_and_released_labels_only(name):
    world = make_world(SETTINGS[name]["n_classes"])
    RecordingStudent.seen.clear()
    model = make_estimator(SETTINGS[name], student=RecordingStudent(), epsilon=200.0)
    with fixed_entropy(0):
        model.fit(world.X, world.y, X_public=world.public)
    *tried, (X, y) = RecordingStudent.seen  # on rows that are made up, before the noise: they hold no row of the table
    assert not any((row == world.X).all(axis=1).any() for rows, _ in tried for row in np.asarray(rows))
    np.testing.assert_array_equal(X, world.public.X[model.query_indices_][model.answered_mask_])
    np.testing.assert_array_equal(y, model.released_labels_[model.answered_mask_].astype(int))


def assert_public_rows_only(given, world, asked):
    """Public rows and their groups as they are; where it learns from all of them, in the order of the questions."""
    once = given["X_public"] is None
    assert not once or sorted(asked) == list(range(len(world.public.X)))
    np.testing.assert_array_equal(world.public.X if once else given["X_public"], world.public.X)
    groups = world.public.sensitive_features
    np.testing.assert_array_equal(given["groups"], groups[asked] if once else groups)


@pytest.mark.few(4)
@pytest.mark.parametrize("name", MODES)
@taught_once()
def test_the_built_in_student_is_given_public_rows_and_released_votes_only(name):
    world = make_world(SETTINGS[name]["n_classes"])
    seen = []
    original = SoftLabelStudent.fit

    def noting(self, X, shares, **kwargs):
        seen.append((X, shares, kwargs))
        return original(self, X, shares, **kwargs)

    with pytest.MonkeyPatch.context() as patch, fixed_entropy(0):
        patch.setattr(SoftLabelStudent, "fit", noting)
        model = make_estimator(SETTINGS[name], epsilon=200.0, gamma=0.5)
        model.fit(world.X, world.y, X_public=world.public)
    assert seen
    for X, shares, kwargs in seen:
        asked = world.public.X[model.query_indices_]
        if "soft" in name:
            np.testing.assert_array_equal(X, asked)
            np.testing.assert_array_equal(shares, model.released_votes_)
        else:
            np.testing.assert_array_equal(X, asked[model.answered_mask_])
            np.testing.assert_array_equal(shares.argmax(axis=1), model.released_votes_[model.answered_mask_])
        assert_public_rows_only(kwargs, world, model.query_indices_)


@pytest.mark.few(4)
@pytest.mark.filterwarnings("ignore:The student of FairPATEClassifier has a demographic disparity")  # no gate holds it
@pytest.mark.parametrize("name", BASELINE_MODES)
@taught_once()
def test_the_student_of_a_baseline_is_given_public_rows_and_released_votes_only(name):
    """PATE-S_pre: what was kept. PATE-S_in: all that was released, and the public groups."""
    world, kept_only = make_world(SETTINGS[name]["n_classes"]), name.startswith("S_pre")
    seen = []
    with pytest.MonkeyPatch.context() as patch, fixed_entropy(0):
        for kind in (SoftLabelStudent, ParityPenaltyStudent):

            def noting(self, X, shares, *, original=kind.fit, **kwargs):
                seen.append((type(self), X, shares, kwargs))
                return original(self, X, shares, **kwargs)

            patch.setattr(kind, "fit", noting)
        model = make_estimator(SETTINGS[name], epsilon=200.0, gamma=0.15)
        model.fit(world.X, world.y, X_public=world.public)
    kind, X, shares, kwargs = seen.pop()
    assert kind is (SoftLabelStudent if kept_only else ParityPenaltyStudent) and type(model.student_) is kind
    assert [entry[0] for entry in seen] == [SoftLabelStudent] * ("soft" in name)  # which denoises shares into labels
    asked, released = world.public.X[model.query_indices_], model.released_votes_
    taught = np.ones(len(asked), dtype=bool) if "soft" in name and not kept_only else model.answered_mask_
    np.testing.assert_array_equal(X, asked[taught])
    expected = released[taught] if "soft" in name else np.eye(world.n_classes)[released[taught]]
    np.testing.assert_array_equal(shares, expected)
    assert_public_rows_only(kwargs, world, model.query_indices_)


@pytest.mark.covering
@pytest.mark.parametrize("teacher", [None, LogisticRegression()], ids=["built-in", "given"])
@pytest.mark.parametrize("name", in_turn([*MODES, *BASELINE_MODES]))
def test_a_fitted_estimator_keeps_no_private_row_and_no_raw_vote(name, teacher):
    world = make_world(SETTINGS[name]["n_classes"])
    teachers = WatchedTeachers()
    with fixed_entropy(0):
        model = make_estimator(SETTINGS[name], teacher=teacher, gamma=0.5, memory=teachers)
        model.fit(world.X, world.y, X_public=world.public)
    model.set_params(memory=None)  # it knows all that is looked for
    stored = pickle.dumps(model, protocol=4)
    assert world.public.X[model.query_indices_[0], 0].tobytes() in stored  # the scan finds what is there
    for value in world.X.ravel():
        assert value.tobytes() not in stored
    (predictions,) = teachers.predictions
    votes = vote_histogram(predictions, world.n_classes)
    for kind in (np.int64, np.int32, np.float64):
        for block in (votes, votes.T, votes / model.n_teachers_):
            assert np.ascontiguousarray(block, dtype=kind).tobytes() not in stored
    assert b"skfairdp._teachers" not in stored, "a teacher is in the pickle"
    assert not any(reference() for reference in teachers.ensembles)
    if teacher is not None:  # the unfitted parameter is
        students = pickle.dumps((model.student_, model._lessons.denoiser), protocol=4)
        assert stored.count(b"coef_") == students.count(b"coef_")


def test_idp3_keeps_and_counts_nothing_of_the_rows_its_model_was_fitted_on():
    world = make_world(2)
    with fixed_entropy(0):
        model = make_estimator(SETTINGS["FairPATE-soft-2classes"], gamma=0.5)
        model.fit(world.X, world.y, X_public=world.public)
    states = []
    for one, groups in ((world, np.arange(48) % 2), (unrelated(world), np.zeros(48, dtype=int))):
        guard = IDP3(FrozenEstimator(model), gamma=0.1, groups=[0, 1]).fit(one.X, one.y, sensitive_features=groups)
        assert guard.counts_.sum() == 0
        states.append(joblib.hash({key: value for key, value in vars(guard).items() if key != "estimator"}))
        stored = pickle.dumps(guard, protocol=4)
        assert not any(value.tobytes() in stored for value in one.X.ravel())
    assert states[0] == states[1]


def test_idp3_around_a_private_fit_is_post_processing_of_that_fit():
    """Model and post-processor fitted in one call, on the private table's own noisy tables."""
    rng = np.random.default_rng(4)
    X, y, groups = rng.normal(size=(200, 2)), rng.integers(2, size=200), np.arange(200) % 2
    model = FairPATEClassifier(epsilon=8.0, gamma=None, n_teachers=10, classes=[0, 1], groups=[0, 1], random_state=0)
    idp = IDP3(model, gamma=0.2, min_count=5, groups=[0, 1])
    states = []
    noise = replaying()
    with fixed_entropy(0), next(noise):
        idp.fit(X, y, sensitive_features=groups)
    states.append(joblib.hash(vars(idp)))
    with fixed_entropy(0), next(noise):
        idp.fit(-50 * X, 1 - y, sensitive_features=1 - groups)
    states.append(joblib.hash(vars(idp)))
    assert states[0] == states[1]
