"""Callbacks of scikit-learn are handed the rows of a fit: never private ones without a word."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skfairdp import FairDPSGDClassifier, FairPATEClassifier, PATEClassifier, PrivacyLedger, SFPATEClassifier
from skfairdp.datasets import make_biased_classification
from skfairdp.exceptions import PrivacyLeakWarning
from skfairdp.pate import GroupTeachers

callback = pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks from 1.9 on")
pytestmark = [
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.UtilityWarning"),
    pytest.mark.filterwarnings("ignore:.*does not support callbacks"),
]
X, Y, GROUPS = make_biased_classification(300, random_state=0)


class Spy:
    """Keeps all that it is handed."""

    def __init__(self):
        self.seen = []

    def setup(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None):
        self.seen.append(X)

    on_fit_task_end, teardown = on_fit_task_begin, setup

    def holds(self, rows):
        return any(seen is not None and np.shares_memory(seen, rows) for seen in self.seen)


def spied(spy, learner=None):
    return make_pipeline(FunctionTransformer(), learner or LogisticRegression()).set_callbacks(spy)


TEACHERS = {
    "PATE": lambda spy: PATEClassifier(teacher=spied(spy), n_teachers=10, classes=[0, 1]),
    "FairPATE": lambda spy: FairPATEClassifier(teacher=spied(spy), n_teachers=10, classes=[0, 1], groups=[0, 1]),
    "SF-PATE": lambda spy: SFPATEClassifier(variant=GroupTeachers(teacher=spied(spy)), classes=[0, 1], groups=[0, 1]),
}


@pytest.mark.parametrize("which", TEACHERS)
def test_teachers_with_callbacks_are_refused_before_anything_is_spent(which):
    spy, ledger = Spy(), PrivacyLedger(epsilon=10.0)
    model = TEACHERS[which](spy).set_params(ledger=ledger)
    given = {} if which == "PATE" else {"sensitive_features": GROUPS}
    with pytest.raises(ValueError, match=r"The 'teacher' of .* has callbacks.*set_callbacks\(\)"):
        model.fit(X, Y, **given)
    assert not ledger.entries and not spy.seen


def private():
    return FairDPSGDClassifier(lam=0.0, classes=[0, 1], random_state=0)


def test_a_pipeline_that_hands_private_rows_to_callbacks_is_told_of():
    spy = Spy()
    with pytest.warns(PrivacyLeakWarning, match=r"The Pipeline around FairDPSGDClassifier .* callbacks \['Spy'\]"):
        spied(spy, private()).fit(X, Y)
    assert spy.holds(X)  # which is why


def test_so_is_a_search():
    search = GridSearchCV(private(), {"epsilon": [1.0]}, cv=KFold(2)).set_callbacks(Spy())
    with pytest.warns(PrivacyLeakWarning, match=r"The GridSearchCV around FairDPSGDClassifier .* callbacks \['Spy'\]"):
        search.fit(X, Y)


def test_a_bar_of_progress_is_nothing_to_tell_of(recwarn):
    spied(callback.ProgressBar(), private()).fit(X, Y)
    assert not [one for one in recwarn if "hands private rows" in str(one.message)]
