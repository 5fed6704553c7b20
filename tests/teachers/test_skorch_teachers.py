"""skorch nets as teachers: bare, in a Pipeline, in another classifier; each of its own seed, and total."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.calibration import CalibratedClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from skorch import NeuralNetBinaryClassifier, NeuralNetClassifier
from skorch.callbacks import EpochScoring
from torch import nn

from skfairdp import FairPATEClassifier, PATEClassifier, SFPATEClassifier
from skfairdp.baselines import RandomizedResponseClassifier
from skfairdp.pate import VoteGate
from tests._tools.inside import NetClassifier, as_classifiers, fit_teachers, position_partition, vote_histogram

N_TEACHERS = 5


class Two(nn.Module):
    """One hidden layer; ``far`` rows raise."""

    def __init__(self, n_features=3, n_classes=3, dropout=0.0):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(n_features, 16), nn.ReLU(), nn.Dropout(dropout), nn.Linear(16, n_classes))

    def forward(self, rows):
        if float(rows.abs().max()) > 1e3:
            raise ValueError("private rows")
        return self.layers(rows)


def net(**options):
    kind = options.pop("kind", NeuralNetClassifier)
    usual = {"criterion": nn.CrossEntropyLoss, "optimizer": torch.optim.Adam, "lr": 0.03, "max_epochs": 15,
             "batch_size": 16, "train_split": None}  # fmt: skip
    return kind(Two, **{**usual, **options})


@pytest.fixture(scope="module")
def blobs():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 200)
    return 4 * np.eye(3)[y] + 0.5 * rng.standard_normal((200, 3)), y


def fit(teacher, X, y, n_classes=3, random_state=0, n_jobs=None):
    part = position_partition(len(y), N_TEACHERS, random_state=0)
    return fit_teachers(teacher, X, y, part, n_teachers=N_TEACHERS, n_classes=n_classes, random_state=random_state,
                        n_jobs=n_jobs)  # fmt: skip


TEACHERS = {
    "bare": net(),
    "verbose, scored and validated": net(verbose=1, train_split=None, callbacks=[EpochScoring("accuracy")]),
    "pipeline": make_pipeline(StandardScaler(), net()),
    "in another classifier": CalibratedClassifierCV(net(), cv=2),
}


@pytest.mark.few(1)
@pytest.mark.parametrize("teacher", TEACHERS.values(), ids=TEACHERS)
def test_a_skorch_net_is_a_teacher(teacher, blobs, capfd):
    X, y = blobs
    teachers = fit(teacher, X, y)
    assert (teachers.predict(X) == y).mean(axis=1).min() > 0.95
    np.testing.assert_allclose(teachers.summed_probabilities(X, 3).sum(axis=1), N_TEACHERS, rtol=1e-6)
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
def test_lists_of_integers_and_frames_reach_a_net_as_float32(blobs):
    X, y = blobs
    whole = np.rint(X).astype(int)
    votes = fit(net(), whole, y).predict(whole)
    np.testing.assert_array_equal(votes, fit(net(), whole.tolist(), y.tolist()).predict(whole.tolist()))
    frame = pd.DataFrame(whole, columns=list("abc"))
    np.testing.assert_array_equal(votes, fit(net(), frame, y).predict(frame))
    words = pd.DataFrame({"word": np.array(["a", "b", "c"])[y]})
    encoded = make_pipeline(OneHotEncoder(), net())  # sparse, of float64
    assert (fit(encoded, words, y).predict(words) == y).mean() > 0.95


def test_a_binary_net_gets_the_labels_it_wants(blobs):
    X, y = blobs
    teacher = net(kind=NeuralNetBinaryClassifier, criterion=nn.BCEWithLogitsLoss, module__n_classes=1)
    assert (fit(teacher, X, (y == 1).astype(int), n_classes=2).predict(X) == (y == 1)).mean() > 0.95


def test_parts_without_a_class_keep_the_right_codes(blobs):
    X, y = blobs
    kept = y != 0
    part = np.zeros(kept.sum(), dtype=int)
    teachers = fit_teachers(net(), X[kept], y[kept], part, n_teachers=1, n_classes=3, random_state=0)
    assert (teachers.predict(X[kept])[0] == y[kept]).mean() > 0.95
    assert (teachers.summed_probabilities(X[kept], 3).argmax(axis=1) == y[kept]).mean() > 0.95


@pytest.mark.few(1)
@pytest.mark.usefixtures("two_workers")
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_net_is_a_function_of_its_own_rows_and_seed(n_jobs, blobs):
    """Also where other teachers need no training, and so draw nothing, or are trained by another worker."""
    X, y = blobs
    part = position_partition(len(y), N_TEACHERS, random_state=0)
    teacher = net(module__dropout=0.2)
    torch.manual_seed(1)
    before = fit(teacher, X, y).predict(X)
    state = torch.get_rng_state()
    after = fit(teacher, X, np.where(part == 1, 2, y), n_jobs=n_jobs).predict(X)
    others = np.arange(N_TEACHERS) != 1
    np.testing.assert_array_equal(before[others], after[others])
    assert (after[1] == 2).all()
    assert torch.equal(torch.get_rng_state(), state), "torch's generator is the user's"
    other_seed = fit(teacher, X, y, random_state=1)
    shares = [teachers.summed_probabilities(X, 3) for teachers in (fit(teacher, X, y), other_seed)]
    assert not np.array_equal(*shares)


def test_a_net_that_its_rows_make_fail_votes_for_class_zero_and_says_nothing(blobs, capfd):
    X, y = blobs
    far = X.copy()
    far[3] = 1e4
    part = position_partition(len(y), N_TEACHERS, random_state=0)
    here, there = (fit(net(verbose=2), rows, y) for rows in (X, far))
    before, after = here.predict(X), there.predict(X)
    others = np.arange(N_TEACHERS) != part[3]
    np.testing.assert_array_equal(before[others], after[others])
    assert (after[part[3]] == 0).all() and (vote_histogram(after, 3).sum(axis=1) == N_TEACHERS).all()
    assert (here.predict(far) == 0).all(), "where a net cannot read a batch of queries, it votes for class 0"
    moved = there.summed_probabilities(X, 3) - here.summed_probabilities(X, 3)
    assert np.linalg.norm(moved, axis=1).max() <= np.sqrt(2) + 1e-6
    assert capfd.readouterr() == ("", "")


def test_every_net_at_any_depth_is_adapted_and_the_users_is_left_alone():
    bare, nested = net(), CalibratedClassifierCV(make_pipeline(StandardScaler(), net()))
    assert isinstance(as_classifiers(bare), NetClassifier) and not hasattr(bare, "module_")
    assert isinstance(as_classifiers(nested).estimator[-1], NetClassifier)
    plain = make_pipeline(StandardScaler())
    assert as_classifiers(plain) is plain


# ---- the estimators that take one --------------------------------------------------------------------------
class Fair(NeuralNetClassifier):
    """A net of the user's that takes the groups; what it does with them is no matter here."""

    def fit(self, X, y=None, *, sensitive_features=None, **arguments):
        assert X.dtype == np.float32 and y.dtype == np.int64 and len(sensitive_features) == len(y)
        return super().fit(X, y, **arguments)


@pytest.fixture(scope="module")
def rows(blobs):
    X, y = blobs
    return X[:150], (y[:150] > 0).astype(int), np.arange(150) % 3 // 2, X[150:], np.arange(50) % 2


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_pate_takes_a_bare_net_as_teacher(rows):
    X, y, _, X_public, groups_public = rows
    teacher = net(module__n_classes=2)
    pate = PATEClassifier(n_teachers=5, classes=[0, 1], teacher=teacher, epsilon=20.0, noise_seed=0, random_state=0)
    assert pate.fit(X, y, X_public=X_public).score(X, y) > 0.9
    pate.set_params(student=teacher, teacher="logistic")
    assert pate.fit(X, y, X_public=X_public).score(X, y) > 0.8
    assert pate.predict_proba(X).shape == (len(X), 2) and hasattr(pate.student_.net_, "save_params")
    fair = FairPATEClassifier(n_teachers=5, classes=[0, 1], teacher=teacher, epsilon=20.0, noise_seed=0, gamma=0.5,
                              gate=VoteGate(min_count=5), random_state=0)  # fmt: skip
    assert fair.fit(X, y, X_public=X_public, sensitive_features_public=groups_public).score(X, y) > 0.7


def test_a_net_with_a_wrong_parameter_is_an_error_before_anything_is_spent(rows):
    X, y, _, X_public, _ = rows
    pate = PATEClassifier(n_teachers=5, classes=[0, 1], teacher=net(module__n_features=7))
    with pytest.raises(ValueError, match="'teacher' of PATEClassifier fails on 30 public rows"):
        pate.fit(X, y, X_public=X_public)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_fair_learners_may_be_nets(rows):
    X, y, groups, _, _ = rows
    learner = net(kind=Fair, module__n_classes=2)
    sf_pate = SFPATEClassifier(variant="teacher", fair_estimator=learner, groups=[0, 1], n_teachers=5, epsilon=20.0,
                               noise_seed=0, random_state=0)  # fmt: skip
    assert sf_pate.fit(X, y, sensitive_features=groups).score(X, y) > 0.9
    sf_pate.set_params(variant__student=net(module__n_classes=2), fair_estimator=None)
    assert sf_pate.fit(X, y, sensitive_features=groups).score(X, y) > 0.8
    student_variant = SFPATEClassifier(variant="student", fair_estimator=learner, groups=[0, 1], n_teachers=5,
                                       epsilon=20.0, noise_seed=0, random_state=0)  # fmt: skip
    assert student_variant.fit(X, y, sensitive_features=groups).score(X, y) > 0.8
    response = RandomizedResponseClassifier(fair_estimator=learner, epsilon=5.0, noise_seed=0, random_state=0,
                                            groups=[0, 1])  # fmt: skip
    assert response.fit(X, y, sensitive_features=groups).score(X, y) > 0.9
    assert response.predict_proba(X).shape == (len(X), 2)
