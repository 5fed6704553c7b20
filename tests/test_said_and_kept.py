"""What is returned or said in situations that used to pass in silence, and what the ledger holds before and after."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from fairlearn.reductions import DemographicParity, ExponentiatedGradient
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from skfairdp import (
    IDP3,
    FairDPSGDClassifier,
    FairnessCalibrator,
    FairPATEClassifier,
    PATEClassifier,
    PFGuardGenerator,
    PFLDClassifier,
    PrivacyLedger,
    PublicData,
    RandomizedResponseClassifier,
    SFPATEClassifier,
    SyntheticDataClassifier,
)
from skfairdp.baselines import ParityLogisticRegression
from skfairdp.exceptions import FairnessWarning
from skfairdp.fairness import RateParity
from skfairdp.metrics import demographic_disparity
from skfairdp.model_selection import PrivateSearchCV
from skfairdp.pate import FairTeachers
from skfairdp.privacy import UnreadableStatementError, verify_file
from skfairdp.schema import Category, IncompleteSchemaError, Number, Schema


# ---- one meaning of a constraint --------------------------------------------------------------------------------
@pytest.mark.covering
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


@pytest.mark.few(1)
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


@pytest.mark.few(1)
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


@pytest.mark.slow
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


class Detector(LogisticRegression):
    """Answers as those that look for outliers."""

    def predict(self, X):
        return np.where(super().predict(X) == 0, -1, 1)


class Regression(LogisticRegression):
    def predict(self, X):
        return self.predict_proba(X)[:, 1] * 0.9


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
        "SF-PATE": lambda: SFPATEClassifier(fair_estimator=with_groups(student), groups=[0, 1], **given).fit(
            X, y, sensitive_features=groups
        ),
        "SF-PATE, teacher": lambda: SFPATEClassifier(
            variant=FairTeachers(student), constraints="demographic_parity", groups=[0, 1], **given
        ).fit(X, y, sensitive_features=groups),
        "randomised response": lambda: RandomizedResponseClassifier(
            fair_estimator=with_groups(student), debias=False, groups=[0, 1], **given
        ).fit(X, y, sensitive_features=groups),
    }


def with_groups(learner):
    """The same, of a class whose fit takes groups."""

    class Taking(type(learner)):
        def fit(self, X, y, sensitive_features):
            assert len(sensitive_features) == len(y)
            return super().fit(X, y)

    return Taking()


ALL = ["PATE", "FairPATE", "FairPATE, own rows", "synthetic", "SF-PATE", "SF-PATE, teacher", "randomised response"]


@pytest.mark.covering
@pytest.mark.parametrize("where", ALL)
@pytest.mark.parametrize("student", [Unable(), PredictsTwoColumns(), Detector(), Regression()])
def test_a_learner_that_cannot_learn_is_refused_before_anything_is_paid(where, student):
    ledger = PrivacyLedger(epsilon=5)
    with pytest.raises(ValueError, match=r"fails on (made-up|[0-9]+ public) rows"):
        attempts(ledger, student)[where]()
    assert len(ledger.entries) == 0


@pytest.mark.parametrize(
    "learner", [SFPATEClassifier, lambda **given: RandomizedResponseClassifier(debias=False, **given)]
)
def test_a_learner_that_hands_no_groups_on_is_refused_before_anything_is_paid(learner):
    X, y, groups = gap_table(3000)
    ledger = PrivacyLedger(epsilon=5)
    model = learner(
        fair_estimator=make_pipeline(LogisticRegression()), groups=[0, 1], classes=[0, 1], ledger=ledger, random_state=0
    )
    with pytest.raises(ValueError, match=r"'fair_estimator' of .* fails on (made-up|[0-9]+ public) rows"):
        model.fit(X, y, sensitive_features=groups)
    assert len(ledger.entries) == 0


@pytest.mark.parametrize("where", ["PATE", "FairPATE", "synthetic", "SF-PATE", "randomised response"])
def test_what_fails_after_paying_keeps_what_was_bought(where):
    ledger = PrivacyLedger(epsilon=5)
    found = attempts(ledger, FailsOnReal())[where]
    with pytest.raises(RuntimeError, match="out of memory") as failed:
        found()
    assert len(ledger.entries) == 1
    assert ("released_groups_" if where == "randomised response" else "refit") in failed.value.__notes__[0]


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


@pytest.mark.parametrize("of_labels", [csr_matrix, iter, set, lambda y: dict(enumerate(y)), lambda y: np.eye(2)[y]])
@pytest.mark.parametrize("model", [SyntheticDataClassifier, PFGuardGenerator, FairPATEClassifier, FairDPSGDClassifier])
def test_what_is_no_column_of_labels_is_told_and_costs_nothing(model, of_labels):
    X, y, groups = gap_table(300)
    ledger = PrivacyLedger(epsilon=5)
    bounds = {"bounds": (-9, 9)} if model in (SyntheticDataClassifier, PFGuardGenerator) else {}
    with pytest.raises(ValueError, match=r"y of .* (should be a 1d array|must be one column of class labels)"):
        model(classes=[0, 1], groups=[0, 1], ledger=ledger, **bounds).fit(
            pd.DataFrame(X, columns=list("abcd")), of_labels(y), sensitive_features=groups
        )
    assert len(ledger.entries) == 0


# ---- mistakes that were told from inside, or not at all ------------------------------------------------------------
def mistakes(ledger):
    """What is done, and what is said."""
    X, y, groups = gap_table(600)
    dpsgd = FairDPSGDClassifier(classes=[0, 1], ledger=ledger)
    masked = np.ma.array(X, mask=X > 2)
    fitted = LogisticRegression().fit(X, y)
    bounded = RateParity("true_positive_rate", 0.1)
    template = Schema.template(pd.DataFrame({"age": [1.0], "y": ["a"]}), label="y")
    given = {"classes": [0, 1], "ledger": ledger}
    return {
        "weights": (lambda: dpsgd.fit(X, y, sample_weight=y), "no sample_weight: a weight would scale"),
        "weights of a calibrator": (
            lambda: FairnessCalibrator(fitted).fit(X, y, sensitive_features=groups, sample_weight=y),
            "FairnessCalibrator.fit takes X and y and, by name.*no sample_weight",
        ),
        "groups without a name": (lambda: dpsgd.fit(X, y, groups), "by name, as 'sensitive_features'"),
        "another name": (lambda: dpsgd.fit(X, y, groups=groups), "by name, .'sensitive_features'.*argument 'groups'"),
        "rows": (lambda: FairDPSGDClassifier(ledger=ledger, public_n_rows=2**70).fit(X, y), "'public_n_rows'"),
        "no candidate": (lambda: PrivateSearchCV(dpsgd, []).fit(X, y), "'param_grid' .* lists no candidate"),
        "a regressor": (
            lambda: IDP3(LinearRegression()).fit(X, y, sensitive_features=groups),
            "IDP3 around a regressor needs public knowledge of where its amounts lie",
        ),
        "several labels": (
            lambda: IDP3(fitted, reject_label=np.array([-1, -2])).fit(X, y, sensitive_features=groups),
            "'reject_label' parameter of IDP3 must be one label",
        ),
        "a mask": (lambda: IDP3(LogisticRegression()).fit(masked, y, sensitive_features=groups), "masked"),
        "a mask, calibrated": (lambda: FairnessCalibrator(fitted).fit(masked, y, sensitive_features=groups), "masked"),
        "a notion": (
            lambda: ParityLogisticRegression(constraints=bounded).fit(X, y, sensitive_features=groups),
            r"give one of \['accuracy_parity', 'demographic_parity', 'equalized_odds'\]",
        ),
        "a name": (lambda: PFLDClassifier(constraints="x", ledger=ledger).fit(X, y), "'equal_opportunity'"),
        "a template": (
            lambda: FairPATEClassifier(schema=template, ledger=ledger).fit(X, y),
            "'schema' parameter of FairPATEClassifier must be a Schema.*Schema.from_dict",
        ),
        "too many teachers": (
            lambda: PATEClassifier(n_teachers=601, **given).fit(X, y, X_public=gap_table(50, seed=1)[0]),
            "more teachers than rows",
        ),
    }


@pytest.mark.parametrize("which", mistakes(None))
def test_a_mistake_is_told_with_what_to_do_and_costs_nothing(which):
    ledger = PrivacyLedger(epsilon=5)
    make, said = mistakes(ledger)[which]
    with pytest.raises((TypeError, ValueError), match=said) as told:
        make()
    assert len(ledger.entries) == 0 and "np.int64" not in str(told.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"age,sex\n30,f\n", "is a table, and neither a privacy statement nor a ledger. Give the JSON"),
        (b"PAR1\0\0", "is a Parquet file"), (b"\x80\x04K\0.", "is a pickle"), (b"\xc3\x28\0", "is a binary file"),
        (b"a\0b", "is a binary file"), ("{}".encode("utf-16"), "is UTF-16 text"), (b" \n", "is empty"),
        (b"<html></html>", "is a page of HTML"), (b"# A report", "is plain text"),
        (b'{"format": "skfairdp-statement-1",\n "epsilon": ', "its JSON is broken at line 2"),
        (b"[]", "what should be an object is none"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_statement_is_told_what_it_is(tmp_path, content, said):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(UnreadableStatementError, match=said) as told:
        verify_file(tmp_path / "file")
    assert "Expecting value: line 1" not in str(told.value)


@pytest.mark.parametrize("name", ["id", "PassengerId", "case_id"])
def test_a_number_that_is_an_identifier_becomes_one_with_a_word(name):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({name: np.arange(4000), "wide": rng.integers(0, 9999, 4000), "sex": ["f", "m"] * 2000})
    for describe in (Schema.from_public, lambda rows, **roles: Schema.release(rows, epsilon=5.0, **roles)):
        with pytest.warns(UserWarning, match=rf"describes \['{name}'\] as whole numbers"):
            describe(table, groups="sex")


def test_more_teachers_than_can_have_seen_both_classes_are_told():
    X, y, groups = gap_table(120)
    plain = PATEClassifier(n_teachers=90, classes=[0, 1])
    by_group = SFPATEClassifier(n_teachers=90, classes=[0, 1], groups=[0, 1])
    for read in (
        lambda: plain.fit(X, y, X_public=gap_table(60, seed=1)[0]),
        lambda: by_group._read(X, y, sensitive_features=groups),  # its fit takes minutes
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            read()
        told = [str(one.message) for one in caught if "'n_teachers'=90" in str(one.message)]
        assert len(told) == 1 and "about 1.3 of the 120 rows, fewer than the 2 values" in told[0]
        assert "Set at most 6, or n_teachers='auto'" in told[0]


def test_a_schema_may_be_given_as_what_to_dict_says():
    schema = Schema({"age": Number(0, 9), "y": Category(["a", "b"])}, label="y")
    for model in (IDP3(schema=schema.to_dict()), PATEClassifier().set_params(schema=schema.to_dict())):
        assert model.schema == schema == clone(model).schema == pickle.loads(pickle.dumps(model)).schema


def test_a_network_that_gave_way_to_one_class_is_calibrated_as_it_is():
    X, _, groups = gap_table(400)
    y = (np.arange(400) % 10 < 3).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        constant = FairDPSGDClassifier(epsilon=0.5, classes=[0, 1], random_state=0)
        constant.fit(X, y, sensitive_features=groups)
        assert len(np.unique(constant.predict(X))) == 1
        fitted = FairnessCalibrator(FrozenEstimator(constant)).fit(X, y, sensitive_features=groups)
    assert (fitted.predict(X) == constant.predict(X)).all()


def test_a_tiny_gamma_is_no_traceback():
    X, y, groups = gap_table(400)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = FairnessCalibrator(LogisticRegression().fit(X, y), gamma=1e-300).fit(X, y, sensitive_features=groups)
    assert demographic_disparity(None, fitted.predict(X), sensitive_features=groups) < 0.02


def test_what_a_schema_found_is_in_the_error_and_paid_for():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.integers(18, 66, 2000), "sex": ["f", "m"] * 1000, "y": range(2000)})
    with pytest.raises(IncompleteSchemaError, match=r"in \['y'\].*'found' of this error") as told:
        Schema.release(table, epsilon=2.0, label="y", groups="sex")
    assert {*told.value.found} == {"age", "sex"} == {*pickle.loads(pickle.dumps(told.value)).found}
    known = {**told.value.found, "y": Category([0, 1], others=0)}
    assert Schema(known, label="y", groups="sex").privacy_.epsilon == pytest.approx(2.0)
    ledger = PrivacyLedger()
    found = Schema.release(table, epsilon=1.0, label="y", groups="sex", known=known, ledger=ledger)
    assert not ledger.entries and found.privacy_.epsilon == pytest.approx(2.0)  # nothing was left to find


def test_what_a_schema_found_is_in_a_warning_that_is_an_error():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"age": rng.integers(18, 66, 2000), "sex": ["f", "m"] * 1000, "code": [f"c{i}" for i in range(2000)]}
    )
    ledger = PrivacyLedger()
    with pytest.raises(UserWarning, match=r"leaves out \['code'\]") as told:  # in tests all warnings are errors
        Schema.release(table, epsilon=1.0, groups="sex", ledger=ledger)
    schema = Schema(told.value.found, groups="sex")
    assert {*schema.columns} == {"age", "sex"}
    assert schema.privacy_.epsilon == pytest.approx(ledger.epsilon_spent) == pytest.approx(1.0)
