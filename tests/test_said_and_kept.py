"""What is returned or said in situations that used to pass in silence, and what the ledger holds before and after."""

import numpy as np
import pandas as pd
import pytest
from fairlearn.reductions import DemographicParity, ExponentiatedGradient
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from skfairdp import (
    IDP3,
    FairPATEClassifier,
    PATEClassifier,
    PrivacyLedger,
    PublicData,
    SyntheticDataClassifier,
)
from skfairdp.exceptions import FairnessWarning
from skfairdp.metrics import demographic_disparity


# ---- one meaning of a constraint --------------------------------------------------------------------------------
@pytest.mark.parametrize("bound", [0.02, 0.05, 0.1])
@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.1, 0.9), (0.2, 0.3, 0.5)])
def test_the_bound_of_a_fairlearn_moment_holds_between_every_two_groups(bound, shares):
    rng = np.random.default_rng(0)
    groups = rng.choice(len(shares), size=6000, p=shares)
    predicted = (rng.random(6000) < np.linspace(0.3, 0.7, len(shares))[groups]).astype(int)
    idp = IDP3(constraints=DemographicParity(difference_bound=bound), groups=range(len(shares)))
    answered = idp.fit(None, predicted).transform(predicted, sensitive_features=groups)
    kept = answered != idp.reject_label_
    rates = pd.Series(answered[kept]).groupby(groups[kept]).mean()
    assert rates.max() - rates.min() <= bound + 0.002 and kept.mean() > 0.3


# ---- a student of one's own is held to gamma --------------------------------------------------------------------
def gap_table(n=12_000, n_groups=2, seed=0):
    """Group and label hang on the same feature, so that a plain student copies the gap."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(n_groups, size=n)
    X = rng.normal(size=(n, 4))
    X[:, 0] += 1.5 * groups / max(n_groups - 1, 1)
    y = (X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=n) > 0.75).astype(int)
    return X, y, groups


def fitted_with(student, *, gamma=0.05, n_groups=2, seed=0, **given):
    X, y, groups = gap_table(n_groups=n_groups, seed=seed)
    public = PublicData(X[:2000], groups[:2000])
    model = FairPATEClassifier(epsilon=8.0, gamma=gamma, student=student, classes=[0, 1], random_state=0, **given).fit(
        X[4000:], y[4000:], X_public=public
    )
    held_out = demographic_disparity(y[2000:4000], model.predict(X[2000:4000]), sensitive_features=groups[2000:4000])
    return model, held_out, model.score(X[2000:4000], y[2000:4000])


@pytest.mark.parametrize("voting", ["soft", "gnmax"])
@pytest.mark.parametrize("n_groups", [2, 3])
@pytest.mark.parametrize("student", [LogisticRegression(), DecisionTreeClassifier(max_depth=4), GaussianNB()])
def test_a_student_of_ones_own_is_held_to_gamma(student, n_groups, voting):
    free, gap, _ = fitted_with(student, gamma=None, n_groups=n_groups, voting=voting)
    assert gap > 0.2 and type(free.student_) is type(student)
    model, gap, accuracy = fitted_with(student, n_groups=n_groups, voting=voting, gamma=0.1)
    assert model.student_gap_ <= 0.1 and gap < 0.16 and accuracy > 0.6
    assert model.predict_proba(np.zeros((3, 4))).shape == (3, 2)
    assert model.refit(gamma=0.5).student_gap_ > 0.1  # free, and the student is as it was


def test_a_student_that_keeps_to_gamma_is_the_one_that_was_given():
    model, _, _ = fitted_with(LogisticRegression(), gamma=0.9)
    assert type(model.student_) is LogisticRegression


@pytest.mark.parametrize(
    ("student", "gate", "said"),
    [
        (LinearSVC(), "votes", "no predict_proba"),
        (LogisticRegression(), "labels", "no gate holds it"),
        (LogisticRegression(), None, "no gate holds it"),
    ],
)
def test_a_student_that_nothing_holds_is_told_of(student, gate, said):
    with pytest.warns(FairnessWarning, match=said):
        model, _, _ = fitted_with(student, gate=gate)
    assert model.student_gap_ > 0.05


@pytest.mark.filterwarnings("ignore:Setting a")  # in fairlearn
def test_a_reduction_as_the_student_learns_with_the_groups_of_the_public_rows():
    reduction = ExponentiatedGradient(LogisticRegression(), DemographicParity(difference_bound=0.01), max_iter=10)
    with pytest.warns(FairnessWarning, match="no predict_proba"):  # whose own bound holds on fewer rows than all
        model, _, accuracy = fitted_with(reduction)
    assert type(model.student_) is ExponentiatedGradient and accuracy > 0.6


# ---- what a learner cannot do shows before anything is paid for --------------------------------------------------
class Unable(LogisticRegression):
    """Cannot be fitted."""

    def fit(self, X, y):
        raise TypeError("cannot do it")


class PredictsTwoColumns(LogisticRegression):
    def predict(self, X):
        return self.predict_proba(X)


class FailsOnReal(LogisticRegression):
    """Does what it is tried on, and fails on more rows than those."""

    def fit(self, X, y):
        if len(X) > 500:
            raise RuntimeError("out of memory")
        return super().fit(X, y)


def attempts(ledger, student):
    X, y, groups = gap_table(3000)
    frame, shown = pd.DataFrame(X, columns=list("abcd")), gap_table(1000, seed=1)
    public = PublicData(shown[0], shown[2])
    given = {"classes": [0, 1], "ledger": ledger, "random_state": 0}
    return {
        "PATE": lambda: PATEClassifier(student=student, **given).fit(X, y, X_public=shown[0]),
        "FairPATE": lambda: FairPATEClassifier(student=student, **given).fit(X, y, X_public=public),
        "FairPATE, own rows": lambda: FairPATEClassifier(student=student, groups=[0, 1], **given).fit(
            X, y, sensitive_features=groups
        ),
        "synthetic": lambda: SyntheticDataClassifier(student, groups=[0, 1], bounds=(-9, 9), **given).fit(
            frame, y, sensitive_features=groups
        ),
    }


@pytest.mark.parametrize("where", ["PATE", "FairPATE", "FairPATE, own rows", "synthetic"])
@pytest.mark.parametrize("student", [Unable(), PredictsTwoColumns()])
def test_a_learner_that_cannot_learn_is_refused_before_anything_is_paid(where, student):
    ledger = PrivacyLedger(epsilon=5)
    with pytest.raises(ValueError, match="fails on made-up rows"):
        attempts(ledger, student)[where]()
    assert len(ledger.entries) == 0


@pytest.mark.parametrize("where", ["PATE", "FairPATE", "synthetic"])
def test_what_fails_after_paying_keeps_what_was_bought(where):
    ledger = PrivacyLedger(epsilon=5)
    found = attempts(ledger, FailsOnReal())[where]
    with pytest.raises(RuntimeError, match="out of memory") as failed:
        found()
    assert len(ledger.entries) == 1 and "refit" in failed.value.__notes__[0]


@pytest.mark.parametrize(
    "of_labels", [lambda y: pd.DataFrame({"y": y}), lambda y: y[:, None], list, lambda y: pd.Series(y, name="y")]
)
@pytest.mark.filterwarnings("ignore:A column-vector y")
def test_labels_in_any_container_are_learned_from(of_labels):
    X, y, groups = gap_table(3000)
    ledger = PrivacyLedger(epsilon=5)
    model = SyntheticDataClassifier(
        LogisticRegression(), epsilon=4.0, classes=[0, 1], groups=[0, 1], bounds=(-9, 9), ledger=ledger, random_state=0
    ).fit(pd.DataFrame(X, columns=list("abcd")), of_labels(y), sensitive_features=groups)
    assert len(ledger.entries) == 1 and model.predict(pd.DataFrame(X[:5], columns=list("abcd"))).shape == (5,)
