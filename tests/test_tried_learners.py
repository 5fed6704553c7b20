"""Learners of the user's are tried with all that a fit asks of them, before anything is paid for."""

import re

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.svm import LinearSVC

from skfairdp import (
    IDP3,
    FairDPSGDClassifier,
    FairnessCalibrator,
    FairPATEClassifier,
    PATEClassifier,
    PrivacyLedger,
    PublicData,
    SFPATEClassifier,
    SyntheticDataClassifier,
)
from skfairdp.baselines import ParityLogisticRegression
from skfairdp.datasets import make_biased_classification
from skfairdp.exceptions import BudgetExceededError
from skfairdp.gradient import mlp
from skfairdp.pate import FairTeachers, GroupTeachers, SoftVoting
from skfairdp.postprocessing import PrivateThresholds

X, y, GROUPS = make_biased_classification(600, disparity=0.3, random_state=0)
PUBLIC = make_biased_classification(120, disparity=0.3, random_state=1)
ROWS = PublicData(PUBLIC[0], PUBLIC[2])
NAMED = {"classes": [0, 1], "n_teachers": 4, "epsilon": 8.0, "random_state": 0}
SF = {
    "fair_estimator": ParityLogisticRegression(),
    "groups": [0, 1],
    "n_teachers": 4,
    "epsilon": 8.0,
    "voting": SoftVoting(max_queries=40),
    "random_state": 0,
}


def stacked():
    return StackingClassifier([("a", LogisticRegression()), ("b", GaussianNB())], cv=2)


#: What predicts only once it is fitted, and what has to be asked for its kind.
META = {
    "stacking": stacked(),
    "a pipeline": make_pipeline(StandardScaler(), stacked()),
    "a search": GridSearchCV(stacked(), {"a__C": [0.1, 1.0]}, cv=2),
    "a pipeline of a search": make_pipeline(StandardScaler(), GridSearchCV(LogisticRegression(), {"C": [1.0]}, cv=2)),
    "a search of a pipeline": GridSearchCV(make_pipeline(StandardScaler(), GaussianNB()), {}, cv=2),
    "self-training": SelfTrainingClassifier(LogisticRegression()),
    "soft votes": VotingClassifier([("a", LogisticRegression()), ("b", GaussianNB())], voting="soft"),
    "calibration": CalibratedClassifierCV(LinearSVC(), cv=2),
}

#: Where a classifier of the user's may be given.
HOSTS = {
    "PATE's student": lambda one, **given: PATEClassifier(student=one, public_data=ROWS, **NAMED, **given),
    "FairPATE's student": lambda one, **given: FairPATEClassifier(
        student=one, public_data=ROWS, groups=[0, 1], **NAMED, **given
    ),
    "FairPATE's student without public rows": lambda one, **given: FairPATEClassifier(
        student=one, groups=[0, 1], **NAMED, **given
    ),
    "PATE's teacher": lambda one, **given: PATEClassifier(teacher=one, public_data=ROWS, **NAMED, **given),
    "SF-PATE's student": lambda one, **given: SFPATEClassifier(variant=FairTeachers(student=one), **SF, **given),
    "SF-PATE's teacher": lambda one, **given: SFPATEClassifier(variant=GroupTeachers(teacher=one), **SF, **given),
    "synthetic rows": lambda one, **given: SyntheticDataClassifier(
        one, classes=[0, 1], groups=[0, 1], bounds=(-6, 6), n_samples=300, epsilon=8.0, random_state=0, **given
    ),
}


pytestmark = pytest.mark.filterwarnings("ignore")


def fitted(model):
    given = {} if isinstance(model, PATEClassifier) else {"sensitive_features": GROUPS}
    return model.fit(X, y, **given)


@pytest.mark.covering
@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("learner", META)
def test_what_predicts_once_it_is_fitted_is_a_learner(host, learner):
    """Found: a StackingClassifier without final_estimator was refused, for want of 'fit' and 'predict'."""
    model = fitted(HOSTS[host](META[learner]))
    assert set(model.predict(X)) <= {0, 1}


@pytest.mark.covering
@pytest.mark.parametrize("wrapper", [FairnessCalibrator, IDP3])
@pytest.mark.parametrize("learner", META)
def test_post_processors_fit_what_predicts_once_it_is_fitted(wrapper, learner):
    """Found: a search was handed groups that nothing in it takes, and all of its fits failed."""
    given = {"public_data": ROWS} if wrapper is FairnessCalibrator else {}
    model = wrapper(META[learner], groups=[0, 1], **given).fit(X, y, sensitive_features=GROUPS)
    assert len(model.predict(X[:20], sensitive_features=GROUPS[:20])) == 20


def test_thresholds_say_that_a_classifier_is_not_fitted():
    with pytest.raises(ValueError, match=r"fitted already; this StackingClassifier is not\. Fit it first"):
        PrivateThresholds(stacked(), groups=[0, 1]).fit(X, y, sensitive_features=GROUPS)


class Raises(GaussianNB):
    def predict_proba(self, X):
        raise RuntimeError("no probabilities today")


class Wide(GaussianNB):
    def predict_proba(self, X):
        return np.full((len(X), 5), 0.2)


class Flat(GaussianNB):
    def predict_proba(self, X):
        return np.full(len(X), 0.5)


class Missing(GaussianNB):
    def predict_proba(self, X):
        return np.full((len(X), 2), np.nan)


class Heavy(GaussianNB):
    def predict_proba(self, X):
        return np.full((len(X), 2), 3.0)


class Negative(GaussianNB):
    def predict_proba(self, X):
        return np.tile([1.5, -0.5], (len(X), 1))


class Stuck(GaussianNB):
    def fit(self, X, y):
        self.told_ = y
        return super().fit(X, y)

    def predict(self, X):
        return self.told_


class Mute(GaussianNB):
    predict = property()


BROKEN = {
    Raises: "RuntimeError: no probabilities today",
    Wide: "predict_proba must return one column for each class",
    Flat: "predict_proba must return one column for each class",
    Missing: "predict_proba must return probabilities",
    Heavy: "predict_proba must return probabilities",
    Negative: "predict_proba must return probabilities",
    Mute: "has no",
}


@pytest.mark.covering
@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("kind", [*BROKEN, Stuck])
def test_a_learner_that_cannot_answer_costs_nothing(host, kind):
    """Found: a student whose predict_proba fails passed the trial, and FairPATE failed with its votes paid for."""
    says = BROKEN.get(kind, "predict must return one")
    ledger = PrivacyLedger()
    with pytest.raises(ValueError, match=says):
        fitted(HOSTS[host](kind(), ledger=ledger))
    assert not ledger.entries


@pytest.mark.parametrize("host", HOSTS)
def test_the_error_of_a_failed_trial_is_the_one_that_many_rows_would_bring(host):
    """Found: a search over a parameter that does not exist was said to have too few rows for its splits."""
    ledger = PrivacyLedger()
    with pytest.raises(ValueError, match="Invalid parameter 'nope' for estimator LogisticRegression") as caught:
        fitted(HOSTS[host](GridSearchCV(LogisticRegression(), {"nope": [1]}), ledger=ledger))
    assert not ledger.entries and "n_splits" not in str(caught.value)
    assert re.search("made-up rows, in a trial|fails on .* public rows", str(caught.value))


@pytest.mark.filterwarnings("ignore::skfairdp.exceptions.UtilityWarning")
def test_a_trial_is_on_no_ledger():
    learner = FairDPSGDClassifier(epsilon=0.1, lam=0.0, net=mlp((), max_epochs=1), classes=[0, 1], random_state=0)
    model = SyntheticDataClassifier(learner, classes=[0, 1], groups=[0, 1], bounds=(-9, 9), random_state=0)
    with PrivacyLedger() as ledger:
        model.fit(X, y, sensitive_features=GROUPS)
    assert [entry.label for entry in ledger.entries] == ["SyntheticDataClassifier", "FairDPSGDClassifier"]
    with PrivacyLedger(epsilon=0.5) as ledger, pytest.raises(BudgetExceededError):
        model.fit(X, y, sensitive_features=GROUPS)
    assert ledger.entries == ()
    learner.set_params(ledger=PrivacyLedger())
    model.fit(X, y, sensitive_features=GROUPS)
    assert len(learner.ledger.entries) == 1  # of the fit that counts
