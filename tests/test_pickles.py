"""Private state dies with fit: what a fitted estimator holds, and what its pickle contains."""

import copy
import gc
import inspect
import io
import pickle
import struct
import weakref

import cloudpickle
import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

import skfairdp
from skfairdp import FairPATEClassifier, PATEClassifier, PrivacyLedger, PublicData
from skfairdp.ensemble import MLPTeachers
from skfairdp.pate import ParityPenaltyStudent
from tests._tools.estimators import estimator_classes
from tests._tools.problems import make_rows
from tests._tools.sources import RecordingNoise, installed
from tests._tools.teachers import WatchedTeachers

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*draws its noise from 'noise_seed'"),
    pytest.mark.filterwarnings("ignore:The smallest demographic disparity"),
    pytest.mark.filterwarnings("ignore:The student of FairPATEClassifier has"),
]

N, N_PUBLIC = 300, 100
CANARIES = (98765.4321, -31415.92653, 27182.81828)  # of a magnitude that no feature, vote or weight has
TAGS = ("canary-group-one", "canary-group-two")


class Case:
    """A fit under watch: its private rows, the raw votes, the teachers' numbers, and whether they are alive."""

    def __init__(self, cls, *, own_rows=False, **settings):
        X, y, groups = make_rows(N + N_PUBLIC, seed=3)
        # Few rows carry a canary, so that the teachers still learn.
        X[[0, 1, 2], [0, 1, 3]] = CANARIES
        self.private, self.public = X[:N], X[N:]
        labels, names = np.array(["no", "yes"])[y[:N]], np.array(["f", "m"], dtype=object)
        self.secret_numbers = []
        looks = cls is FairPATEClassifier and settings == {"voting": "soft"} and not own_rows  # at private groups
        given = {} if own_rows else {"X_public": PublicData(self.public, names[groups[N:]])}
        if cls is FairPATEClassifier:
            given["sensitive_features"] = (names if own_rows or looks else np.array(TAGS, dtype=object))[groups[:N]]
            settings = {**settings, "groups": list(names)} if own_rows else settings
        teachers = WatchedTeachers(look=self._note_teachers)
        self.estimator = cls(
            n_teachers=9, epsilon=50.0, classes=["no", "yes"], random_state=0, noise_seed=0, memory=teachers, **settings
        )
        with installed(VotesInSight()) as source:
            self.estimator.fit(X[:N], labels, **given)
        self.estimator.set_params(memory=None)  # it knows all that is secret
        (predictions,), (votes, *others) = teachers.predictions, source.votes[::-1] if own_rows else source.votes
        assert bool(others) == (own_rows or looks)
        self.secret_numbers += [votes, votes / 9.0, np.ascontiguousarray(votes[:, 1]), predictions]
        self.references = [*teachers.ensembles, *teachers.answers, *source.references]

    def _note_teachers(self, ensemble):
        self.secret_numbers += [array.copy() for array in arrays_in(ensemble)]


class VotesInSight(RecordingNoise):
    """Notes the table of raw votes that releases are made from, and whether it is alive."""

    def __init__(self):
        super().__init__(seed=0)
        self.votes, self.references = [], []

    def release(self, mechanism, *private, **public):
        for value in private:
            if isinstance(value, np.ndarray):
                table = value if value.base is None else value.base
                if not any(reference() is table for reference in self.references):
                    self.votes.append(table.copy())
                    self.references.append(weakref.ref(table))
        return super().release(mechanism, *private, **public)


def arrays_in(root):
    """Every array, Series and DataFrame that an object holds, however deep."""
    seen, stack, found = set(), [root], []
    while stack:
        value = stack.pop()
        if id(value) in seen or isinstance(value, str | bytes | int | float | type | None.__class__):
            continue
        seen.add(id(value))
        if isinstance(value, np.ndarray):
            found.append(value)
            if value.base is not None:
                stack.append(value.base)
            if value.dtype == object:
                stack.extend(value.ravel().tolist())
        elif isinstance(value, pd.DataFrame | pd.Series):
            found.append(value.to_numpy())
        elif isinstance(value, dict):
            stack.extend([*value.keys(), *value.values()])
        elif isinstance(value, list | tuple | set | frozenset):
            stack.extend(value)
        elif hasattr(value, "numpy") and hasattr(value, "detach"):
            found.append(value.detach().numpy())
        elif callable(value) and getattr(value, "__closure__", None):
            stack.extend(cell.cell_contents for cell in value.__closure__)
        elif hasattr(value, "__dict__") and type(value).__module__.split(".")[0] != "builtins":
            stack.extend(vars(value).values())
            for slot in getattr(type(value), "__slots__", ()):
                stack.append(getattr(value, slot, None))
    return found


def dumps(estimator):
    """The bytes of every way to store an estimator."""
    stored = io.BytesIO()
    joblib.dump(estimator, stored)
    pickles = [pickle.dumps(estimator), pickle.dumps(estimator, protocol=2), cloudpickle.dumps(estimator)]
    return [*pickles, stored.getvalue()]


def forms_of(number):
    return [struct.pack(form, number) for form in ("<d", ">d", "<f", ">f")] + [repr(number).encode()]


def check_nothing_private(estimator, case):
    for stored in dumps(estimator):
        for canary in CANARIES:
            assert not any(form in stored for form in forms_of(canary))
        for cell in case.private.ravel():
            assert cell.tobytes() not in stored
        for tag in TAGS:
            assert tag.encode() not in stored and tag.encode("utf-32-le") not in stored
        for secret in case.secret_numbers:
            for dtype in (secret.dtype, np.int64, np.int32, np.float64, np.float32):
                coded = secret.astype(dtype)
                # A row of zeros is nobody's secret, nor is a table of equal rows: votes that all say [0, 1] have the
                # bytes of released labels that all say 1.
                if coded.size >= 16 and len(np.unique(coded)) > 1 and len(np.unique(coded, axis=0)) > 1:
                    assert coded.tobytes() not in stored and coded.tobytes(order="F") not in stored
    rows = {row.tobytes() for row in case.private}
    for array in arrays_in(estimator):
        assert len(array) != len(case.private) if array.ndim else True
        if array.ndim == 2 and array.shape[1] == case.private.shape[1]:
            assert not any(np.ascontiguousarray(row, dtype=float).tobytes() in rows for row in array)


S_PRE, S_IN = {"gate": "labels"}, {"gate": None, "student": ParityPenaltyStudent()}
settings = pytest.mark.parametrize(
    ("cls", "more"),
    [
        pytest.param(PATEClassifier, {"voting": "soft"}, id="PATE-soft"),
        pytest.param(PATEClassifier, {"voting": "confident"}, id="PATE-confident"),
        pytest.param(PATEClassifier, {"voting": "gnmax", "own_rows": True}, id="PATE-gnmax-own-rows"),
        pytest.param(FairPATEClassifier, {"voting": "soft"}, id="Fair-soft"),
        pytest.param(FairPATEClassifier, {"voting": "confident"}, id="Fair-confident"),
        pytest.param(FairPATEClassifier, {"voting": "gnmax"}, id="Fair-gnmax"),
        pytest.param(FairPATEClassifier, {"voting": "soft", "own_rows": True}, id="Fair-own-rows"),
        pytest.param(FairPATEClassifier, {**S_PRE, "voting": "confident"}, id="S_pre-confident"),
        pytest.param(FairPATEClassifier, {**S_PRE, "own_rows": True}, id="S_pre-soft-own-rows"),
        pytest.param(FairPATEClassifier, {**S_IN, "voting": "gnmax"}, id="S_in-gnmax"),
        pytest.param(
            FairPATEClassifier,
            {**S_IN, "student": ParityPenaltyStudent(hidden=(3,), alpha=1.0, max_iter=20)},
            id="S_in-network",
        ),
        pytest.param(FairPATEClassifier, {"teacher": GaussianNB(), "student": LogisticRegression()}, id="Fair-given"),
        pytest.param(
            FairPATEClassifier,
            {"voting": "confident", "student": LogisticRegression(), "teacher": MLPTeachers(hidden=(3,), epochs=1)},
            id="Fair-mlp",
        ),
    ],
)


@pytest.mark.few(6)
@settings
@pytest.mark.filterwarnings("ignore:The smallest group")
def test_no_private_number_is_held_or_stored(cls, more):
    case = Case(cls, **more)
    assert len(case.secret_numbers) >= 5  # the watch was on: teachers' weights and votes
    check_nothing_private(case.estimator, case)
    for student in (None, ParityPenaltyStudent() if cls is FairPATEClassifier else LogisticRegression()):
        check_nothing_private(case.estimator.refit(student=student), case)
    if more.get("voting") != "confident" and cls is FairPATEClassifier:
        check_nothing_private(case.estimator.refit(gamma=0.5), case)
    if isinstance(more.get("student"), ParityPenaltyStudent):
        check_nothing_private(case.estimator.refit(student__penalty_weight=0.1), case)


@pytest.mark.few(6)
@settings
@pytest.mark.filterwarnings("ignore:The smallest group")
def test_teachers_and_votes_are_dead_after_fit(cls, more):
    case = Case(cls, **more)
    gc.collect()
    assert len(case.references) >= 4
    assert not any(reference() for reference in case.references)


@pytest.mark.few(6)
@settings
@pytest.mark.filterwarnings("ignore:The smallest group")
def test_copies_predict_the_same_and_cost_nothing(cls, more):
    case = Case(cls, **more)
    original = case.estimator
    for other in (*(pickle.loads(stored) for stored in dumps(original)[:3]), copy.deepcopy(original)):
        np.testing.assert_array_equal(other.predict(case.public), original.predict(case.public))
        np.testing.assert_array_equal(other.predict_proba(case.public), original.predict_proba(case.public))
        assert other.privacy_ == original.privacy_ and other.get_params().keys() == original.get_params().keys()
        again = other.refit(student=None)
        np.testing.assert_array_equal(again.released_labels_, original.released_labels_)
    assert not hasattr(clone(original), "student_")


def test_the_scan_finds_what_it_looks_for():
    """Each check must fail on an estimator that keeps what it should not."""
    case = Case(PATEClassifier)
    weights = next(secret for secret in case.secret_numbers if len(np.unique(secret)) > 9)
    for leak in (
        case.private,
        case.private[:1].copy(),
        {"row": case.private.astype(np.float32)},
        [CANARIES[0]],
        np.array([TAGS[0]]),
        case.secret_numbers[-1],
        weights.astype(np.float32),
        weights.T.copy(),
        f"value {CANARIES[1]!r}",
    ):
        leaky = copy.copy(case.estimator)
        leaky.leak_ = leak
        with pytest.raises(AssertionError):
            check_nothing_private(leaky, case)
    check_nothing_private(case.estimator, case)


def test_private_labels_are_not_kept():
    """Labels are few different values, so what is looked for is a column of them, in any coding."""
    case = Case(PATEClassifier)
    assert all(array.shape[0] != N for array in arrays_in(case.estimator) if array.ndim)
    assert not any(array.ndim == 2 and N in array.shape for array in arrays_in(case.estimator))


def test_a_pickle_shares_its_ledger(rows):
    ledger = PrivacyLedger()
    model = PATEClassifier(classes=[0, 1], n_teachers=5, ledger=ledger).fit(rows.X, rows.y, X_public=rows.X_public)
    copied = pickle.loads(pickle.dumps(model))
    assert copied.ledger is ledger
    copied.fit(rows.X, rows.y, X_public=rows.X_public)
    assert len(ledger.entries) == 2


def test_a_failed_fit_leaves_nothing_private_behind(rows):
    model = PATEClassifier(classes=[0, 1], n_teachers=5, teacher="no such teacher")
    with pytest.raises(ValueError, match="'teacher'"):
        model.fit(rows.X, rows.y, X_public=rows.X_public)
    assert not any(len(array) == len(rows.X) for array in arrays_in(model) if array.ndim)
    assert not hasattr(model, "privacy_")


# ---- versions ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("cls", [one for one in estimator_classes().values() if hasattr(one, "fit")])
def test_a_pickle_of_another_version_says_so(cls):
    needed = {name for name, p in inspect.signature(cls).parameters.items() if p.default is p.empty}
    estimator = cls(**dict.fromkeys(needed))
    stored = pickle.dumps(estimator)
    again = pickle.loads(stored)  # a warning would be an error
    assert vars(again).keys() == vars(estimator).keys()
    assert joblib.hash(again) == joblib.hash(estimator)
    version = skfairdp.__version__
    state = estimator.__getstate__()
    assert state.pop("_skfairdp_version") == version
    for written, said in (({"_skfairdp_version": "0.0.1"}, "0.0.1"), ({}, "of unknown number")):
        with pytest.warns(
            InconsistentVersionWarning, match=f"{cls.__name__} of skfairdp from version {said} .*{version}"
        ):
            cls.__new__(cls).__setstate__({**state, **written})


def test_a_class_of_a_script_goes_to_another_process():
    """Found: GridSearchCV(n_jobs=2) of a class that a script derives ended in an error of pickle."""

    def fit(self, X, y, *, X_public=None):
        return PATEClassifier.fit(self, X, y, X_public=X_public)

    own = type("Own", (PATEClassifier,), {"__module__": "__main__", "fit": fit})
    assert type(pickle.loads(cloudpickle.dumps(own(epsilon=2.0)))).__name__ == "Own"
