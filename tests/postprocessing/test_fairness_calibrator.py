"""FairnessCalibrator: the gap on the public rows never rises, every row is answered, ε stays what it was.

scikit-learn's suite is in test_estimator_checks.py.
"""

import copy
import pickle
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import HealthCheck, given, settings, strategies as st
from scipy.optimize import linprog
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV, KFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from skorch import NeuralNetClassifier

from skfairdp import FairDPSGDClassifier, FairnessCalibrator, FairPATEClassifier, PrivacyLedger
from skfairdp.datasets import make_biased_classification, train_private_public_test_split
from skfairdp.exceptions import FairnessWarning, PrivacyLeakWarning
from skfairdp.gradient import mlp
from skfairdp.metrics import demographic_disparity
from skfairdp.postprocessing import FineTuning, Thresholds
from tests._tools.inside import CalibrationRows, TradeOff, contrast, search_multipliers

METHODS = [
    pytest.param({"method": "fine_tune"}, id="fine_tune"),
    pytest.param({"method": "threshold"}, id="threshold"),
    pytest.param({"method": Thresholds(group_at_prediction=True)}, id="group-at-prediction"),
]
AWARE = Thresholds(group_at_prediction=True)
every_method = pytest.mark.parametrize("method", METHODS)


class Net(ClassifierMixin, BaseEstimator):
    """The least that has a network: logits of a module that is given, with labels of any kind."""

    def __init__(self, module=None, labels=(0, 1)):
        self.module, self.labels = module, labels

    def fit(self, X, y=None):
        self.net_, self.classes_ = self.module, np.asarray(self.labels)
        return self

    def _logits(self, X):
        with torch.no_grad():
            return self.net_(torch.from_numpy(np.asarray(X, dtype=np.float32))).numpy()

    rule = 1  # -1: predictions that have little to do with its probabilities

    def predict(self, X):
        return self.classes_[self._logits(self.rule * np.asarray(X)).argmax(1)]

    def predict_proba(self, X):
        return torch.softmax(torch.from_numpy(self._logits(X)), 1).double().numpy()


def linear_net(coef, intercept, labels):
    layer = torch.nn.utils.skip_init(torch.nn.Linear, *coef.shape[::-1])
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(coef))
        layer.bias.copy_(torch.from_numpy(intercept))
    return Net(layer, labels).fit(None)


@pytest.fixture(scope="module")
def biased():
    """Rows with a gap of .3, and a model that has learned it, as a regression and as a network."""
    split = train_private_public_test_split(
        *make_biased_classification(6000, disparity=0.3, class_sep=1.5, random_state=0),
        sizes=(0.4, 0.25, 0.35),
        random_state=0,
    )
    regression = LogisticRegression().fit(split.X, split.y)
    coef = np.vstack([np.zeros_like(regression.coef_), regression.coef_])
    net = linear_net(coef, np.array([0.0, regression.intercept_[0]]), (0, 1))
    return SimpleNamespace(split=split, regression=regression, net=net, groups=split.sensitive_features_public)


def gap_on_test(predicted, split):
    return demographic_disparity(None, predicted, sensitive_features=split.sensitive_features_test)


# ---- what is promised ----------------------------------------------------------------------------------------
@pytest.mark.slow
@every_method
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    seed=st.integers(0, 2**20),
    m=st.integers(2, 4),
    k=st.integers(2, 4),
    n=st.integers(8, 120),
    scale=st.sampled_from([0.0, 0.3, 3.0, 40.0]),
    lam=st.sampled_from([0.0, 0.1, 1.0, 50.0]),
    gamma=st.sampled_from([None, None, 0.0, 0.1]),
    gap=st.sampled_from(["others", "overall", "between"]),
    rule=st.sampled_from([1, 1, -1]),
)
@pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning")
def test_gap_on_the_public_rows_is_never_above_the_uncalibrated(method, seed, m, k, n, scale, lam, gamma, gap, rule):
    rng = np.random.default_rng(seed)
    groups = np.concatenate([np.arange(m), rng.integers(m, size=n - m)])
    X = rng.normal(size=(n, 3)) + 1.5 * np.eye(4, 3)[groups]
    model = linear_net(scale * rng.normal(size=(k, 3)), scale * rng.normal(size=k), [f"c{j}" for j in range(k)])
    model.rule = rule
    price = {"gap_weight": lam} if gamma is None else {"gamma": gamma}
    if method["method"] == "fine_tune":
        method = {"method": FineTuning(steps=20)}
    calibrator = FairnessCalibrator(model, **method, **price, disparity=gap)
    calibrator.fit(X, sensitive_features=groups)

    def measured(predicted):
        return demographic_disparity(None, predicted, sensitive_features=groups, gap=gap, classes=model.classes_)

    predicted = calibrator.predict(X, sensitive_features=groups)
    assert calibrator.gap_before_ == measured(model.predict(X))
    assert calibrator.gap_after_ == measured(predicted) <= calibrator.gap_before_
    assert calibrator.agreement_ == np.mean(predicted == model.predict(X))
    assert calibrator.satisfied_ == (gamma is None or calibrator.gap_after_ <= gamma)
    assert hasattr(calibrator, "gap_bound_") == (gamma is not None)
    if gamma is not None:  # by rows that did not calibrate what answers them
        assert 0 <= calibrator.gap_ <= calibrator.gap_bound_
        assert calibrator.gap_ < calibrator.gap_bound_ or calibrator.gap_ == 1
    if rule == 1 and ((gamma is None and lam == 0) or (gamma is not None and calibrator.gap_before_ <= gamma)):
        assert calibrator.agreement_ == 1  # nothing is asked for, and nothing changes


@pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning")
@pytest.mark.parametrize("seed", range(3))
def test_what_is_learned_by_heart_of_few_public_rows_is_not_taken_for_parity(seed):
    """A network of many weights holds any bound on 300 rows; the gap of others is what is told of."""
    X, y, groups = make_biased_classification(12_000, n_features=8, disparity=0.3, random_state=seed)
    torch.manual_seed(seed)
    net = torch.nn.Sequential(torch.nn.Linear(8, 64), torch.nn.ReLU(), torch.nn.Linear(64, 2))
    steps = torch.optim.Adam(net.parameters(), lr=0.02)
    rows, labels = torch.from_numpy(X[:2000]).float(), torch.from_numpy(y[:2000])
    for _ in range(60):
        steps.zero_grad()
        torch.nn.functional.cross_entropy(net(rows), labels).backward()
        steps.step()
    model, public, others = Net(net).fit(X), slice(2000, 2300), slice(2300, None)
    tuned, found = (
        FairnessCalibrator(model, method=method, gamma=0.05).fit(X[public], sensitive_features=groups[public])
        for method in ("fine_tune", "auto")
    )

    def gap(calibrator):
        answers = calibrator.predict(X[others])
        return demographic_disparity(None, answers, sensitive_features=groups[others], gap="between")

    assert tuned.gap_after_ < 0.051 and gap(tuned) > 0.15  # by heart
    assert tuned.gap_ > 0.15 and tuned.constraint_holds_ == "no" and gap(tuned) <= tuned.gap_bound_
    assert isinstance(found.method_, Thresholds) and gap(found) < gap(tuned) - 0.05 and gap(found) <= found.gap_bound_


def few_rows(n, seed):
    rng = np.random.default_rng(seed)
    groups = (rng.random(n) < 0.3).astype(int)
    X = rng.normal(size=(n, 4)) + 1.2 * groups[:, None] * [1, 0.5, 0, 0]
    return X, (X[:, 0] + 0.7 * X[:, 2] + 0.8 * rng.normal(size=n) > 0.8).astype(int), groups


#: What 400 rows calibrate.
ON_400_ROWS = {
    "parity": {"constraints": "demographic_parity"},
    "threshold": {"method": "threshold", "gamma": 0.05},
    "by group": {"method": AWARE, "gamma": 0.05},
}


@pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning")
@pytest.mark.parametrize(
    ("kind", "seeds", "most"),
    [
        ("parity", range(78, 91), 1),
        *(pytest.param(kind, range(300), 15, marks=pytest.mark.slow) for kind in ON_400_ROWS),
    ],
)
def test_the_gap_of_what_is_returned_is_below_its_bound_in_95_of_100_fits(kind, seeds, most):
    """A bound of what four fifths of the rows calibrate is beaten in 9 of 100 fits, and in 3 of the 13."""
    model = LogisticRegression().fit(*few_rows(3000, 10_000)[:2])
    X, _, groups = few_rows(20_000, 10_001)
    beyond = 0
    for seed in seeds:
        rows, labels, of_rows = few_rows(400, seed)
        calibrator = FairnessCalibrator(model, **ON_400_ROWS[kind]).fit(rows, labels, sensitive_features=of_rows)
        answers = calibrator.predict(X, sensitive_features=groups)
        beyond += abs(answers[groups == 1].mean() - answers[groups == 0].mean()) > calibrator.gap_bound_
    assert beyond <= most


@pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning")
def test_no_gap_at_all_is_a_bound_like_any_other():
    X, y, groups = few_rows(400, 0)
    calibrator = FairnessCalibrator(LogisticRegression().fit(X, y), gamma=0, method=AWARE)
    assert calibrator.fit(X, sensitive_features=groups).constraint_holds_ != "yes"


@pytest.mark.parametrize(("disparity", "k"), [("overall", 2), ("overall", 3), ("others", 3), ("between", 2)])
def test_what_is_asked_of_the_gap_is_what_is_judged(disparity, k):
    rng = np.random.default_rng(0)

    def rows(n):
        groups = rng.integers(0, k, n)
        X = rng.normal(size=(n, 3))
        X[:, 0] += groups
        return X, (X[:, 0] + rng.normal(size=n) > 0.7).astype(int), groups

    (X, y, _), (X_public, _, public), (new, _, groups) = rows(3000), rows(3000), rows(100_000)
    model = LogisticRegression().fit(X, y)
    calibrator = FairnessCalibrator(model, method="threshold", gamma=0.08, disparity=disparity)
    calibrator.fit(X_public, sensitive_features=public)
    gap = demographic_disparity(None, calibrator.predict(new), sensitive_features=groups, gap=disparity)
    assert gap <= 0.1 and calibrator.constraint_holds_ != "no"


def test_a_calibration_that_fails_leaves_the_paid_model_alone_and_its_price(biased, monkeypatch):
    split, ledger = biased.split, PrivacyLedger()
    given = {"X_public": split.public}
    private = FairDPSGDClassifier(epsilon=1.0, lam=0.0, classes=[0, 1], ledger=ledger)
    calibrator = FairnessCalibrator(private, method="threshold")

    calibrator.fit(split.X, split.y, **given)
    first = calibrator.estimator_
    monkeypatch.setattr(FairnessCalibrator, "_calibrate", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        calibrator.fit(split.X, split.y, **given)
    assert calibrator.estimator_ is not first and calibrator.estimator_.privacy_.epsilon == pytest.approx(1, abs=0.01)
    assert not hasattr(calibrator, "gap_after_") and not hasattr(calibrator, "_calibrated")
    with pytest.raises(NotFittedError):
        calibrator.predict(split.X[:3])


class ByAnotherColumn(Net):
    """Predicts by a column that knows nothing of the group, whatever its probabilities say."""

    def predict(self, X):
        self._logits(X)
        return (np.asarray(X)[:, 1] > 0).astype(int)


class Contrary(Net):
    """Predicts by the group's proxy as soon as its network is another."""

    def predict(self, X):
        return super().predict(X) if self.net_ is self.module else (np.asarray(X)[:, 0] > 0.5).astype(int)


@pytest.mark.few(2)
@pytest.mark.filterwarnings("ignore:FairnessCalibrator follows noise")
@every_method
@pytest.mark.parametrize("kind", [ByAnotherColumn, Contrary])
def test_models_whose_labels_do_not_follow_their_scores_are_left_alone_rather_than_made_worse(method, kind):
    rng = np.random.default_rng(0)
    groups = rng.integers(2, size=600)
    X = np.column_stack([groups + 0.3 * rng.normal(size=600), rng.normal(size=600), rng.normal(size=600)])
    by_proxy = linear_net(np.array([[0.0, 0, 0], [4.0, 1, 0]]), np.array([0.0, -2.0]), (0, 1)).net_
    hardly = linear_net(np.array([[0.0, 0, 0], [0.2, 1, 0]]), np.array([0.0, -0.1]), (0, 1)).net_
    model = kind(by_proxy if kind is ByAnotherColumn else hardly).fit(X)
    calibrator = FairnessCalibrator(model, **method, gap_weight=0.05 if kind is ByAnotherColumn else 5.0)
    calibrator.fit(X, sensitive_features=groups)
    predicted = calibrator.predict(X, sensitive_features=groups)
    assert 0 < calibrator.gap_before_ < 0.2
    assert demographic_disparity(None, predicted, sensitive_features=groups) <= calibrator.gap_before_


@every_method
def test_gap_falls_to_a_third_on_new_rows_for_little_accuracy(biased, method):
    split = biased.split
    model = biased.net if method["method"] == "fine_tune" else biased.regression
    before = model.predict(split.X_test)
    assert gap_on_test(before, split) > 0.25
    calibrator = FairnessCalibrator(model, **method).fit(split.X_public, sensitive_features=biased.groups)
    predicted = calibrator.predict(split.X_test, sensitive_features=split.sensitive_features_test)
    assert calibrator.gap_after_ < 0.02
    assert gap_on_test(predicted, split) < 0.1
    # Perfect parity costs at least about half of the gap where labels have it: .3 × the share of the smaller group
    assert np.mean(predicted == split.y_test) > np.mean(before == split.y_test) - 0.16
    assert len(predicted) == len(split.y_test) and set(predicted) == {0, 1}


@pytest.mark.slow
@every_method
def test_gap_weight_is_the_price_of_the_gap_and_gamma_a_bound_on_it(biased, method):
    model = biased.net if method["method"] == "fine_tune" else biased.regression
    X, z = biased.split.X_public, biased.groups
    by_lam = [FairnessCalibrator(model, **method, gap_weight=w).fit(X, sensitive_features=z) for w in (0, 0.25, 5)]
    assert by_lam[0].agreement_ == 1 and by_lam[0].gap_after_ == by_lam[0].gap_before_
    assert by_lam[0].gap_after_ > by_lam[1].gap_after_ > by_lam[2].gap_after_
    assert by_lam[1].agreement_ > by_lam[2].agreement_
    bounds = (0.2, 0.05)
    by_gamma = [FairnessCalibrator(model, **method, gamma=gamma).fit(X, sensitive_features=z) for gamma in bounds]
    for gamma, calibrator in zip(bounds, by_gamma, strict=True):
        assert 0.6 * gamma < calibrator.gap_after_ <= gamma and calibrator.satisfied_  # met, and no more than asked
    assert by_gamma[0].agreement_ > by_gamma[1].agreement_


def test_thresholds_lose_hardly_more_expected_accuracy_than_any_randomised_classifier_must():
    """The linear program over all (randomised) classifiers of these rows that know the group is the truth."""
    rng = np.random.default_rng(0)
    n, m, k, gamma = 240, 3, 3, 0.05
    groups = rng.integers(m, size=n)
    logits = rng.normal(size=(n, k)) + np.eye(m, k)[groups]
    utility = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    share = np.bincount(groups) / n
    weights = contrast(np.eye(m)[groups], share) / n
    parity = np.zeros((m * k, n, k))
    for z in range(m):
        for c in range(k):
            parity[z * k + c, :, c] = weights[:, z]
    one_answer = np.kron(np.eye(n), np.ones(k))
    best = linprog(
        -utility.ravel() / n,
        A_ub=parity.reshape(m * k, -1),
        b_ub=np.full(m * k, gamma),
        A_eq=one_answer,
        b_eq=np.ones(n),
    )
    rows = CalibrationRows(None, None, groups, m, np.arange(utility.shape[1]), utility.argmax(1))
    choice = TradeOff(rows, utility, gap_weight=0.0, gamma=gamma, disparity="others")
    multipliers = search_multipliers(choice, contrast(np.eye(m)[groups], share))
    codes = (utility - contrast(np.eye(m)[groups], share) @ multipliers).argmax(1)
    assert choice.gap_before > 0.2 and choice.gap_of(codes) <= gamma
    reached, largest = utility[np.arange(n), codes].mean(), utility.max(1).mean()
    assert largest - reached < 1.15 * (largest + best.fun)


def test_group_at_prediction_needs_no_informative_features():
    rng = np.random.default_rng(0)
    groups = rng.integers(2, size=2000)
    X = np.column_stack([rng.normal(size=2000) + groups, rng.normal(size=2000)])
    model = LogisticRegression().fit(X, X[:, 0] + 0.5 * rng.normal(size=2000) > 0.5)
    aware = FairnessCalibrator(model, method=AWARE).fit(X, sensitive_features=groups)
    assert aware.gap_before_ > 0.25 and aware.gap_after_ < 0.01
    assert not hasattr(aware, "group_estimator_")
    swapped = aware.predict(X, sensitive_features=1 - groups)
    assert (swapped != aware.predict(X, sensitive_features=groups)).any()
    blind = FairnessCalibrator(model).fit(X, sensitive_features=groups)
    np.testing.assert_array_equal(blind.predict(X), blind.predict(X, sensitive_features=1 - groups))


@pytest.mark.few(1)
@every_method
def test_model_is_not_changed_and_two_fits_agree(biased, method):
    model = copy.deepcopy(biased.net)
    before = pickle.dumps(model.net_.state_dict())
    state = torch.get_rng_state()
    public = biased.split.X_public
    fits = [FairnessCalibrator(model, **method).fit(public, sensitive_features=biased.groups) for _ in range(2)]
    assert pickle.dumps(model.net_.state_dict()) == before and torch.equal(torch.get_rng_state(), state)
    X, z = biased.split.X_test, biased.split.sensitive_features_test
    np.testing.assert_array_equal(*(fit.predict(X, sensitive_features=z) for fit in fits))


# ---- private models ------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def private(biased):
    split = biased.split
    shared = {"epsilon": 3.0, "classes": [0, 1], "random_state": 0}
    return {
        "dpsgd": FairDPSGDClassifier(lam=0, net=mlp((8,), max_epochs=4), **shared).fit(split.X, split.y),
        "pate": FairPATEClassifier(gamma=None, n_teachers=30, **shared).fit(split.X, split.y, X_public=split.public),
    }


@pytest.mark.slow
@pytest.mark.parametrize(("name", "method"), [("dpsgd", FineTuning), ("pate", Thresholds)])
def test_private_models_keep_their_epsilon_and_lose_most_of_their_gap(biased, private, name, method):
    split, model = biased.split, private[name]
    calibrator = FairnessCalibrator(model).fit(split.X_public, sensitive_features=biased.groups)
    assert isinstance(calibrator.method_, method)
    assert calibrator.privacy_ is model.privacy_
    assert calibrator.gap_after_ < 0.3 * calibrator.gap_before_
    assert gap_on_test(calibrator.predict(split.X_test), split) < 0.6 * gap_on_test(model.predict(split.X_test), split)
    assert hasattr(calibrator, "predict_proba") == (method is FineTuning)


def test_no_ledger_is_charged(biased):
    split, ledger = biased.split, PrivacyLedger(epsilon=1.0)
    model = FairDPSGDClassifier(lam=0, net=mlp((4,), max_epochs=1), classes=[0, 1], ledger=ledger).fit(split.X, split.y)
    spent = ledger.epsilon_spent
    FairnessCalibrator(model).fit(split.X_public, sensitive_features=biased.groups)
    assert ledger.epsilon_spent == spent and len(ledger.entries) == 1


def test_probabilities_of_a_fine_tuned_model_agree_with_its_predictions(biased, private):
    calibrator = FairnessCalibrator(private["dpsgd"]).fit(biased.split.X_public, sensitive_features=biased.groups)
    proba = calibrator.predict_proba(biased.split.X_test)
    np.testing.assert_array_equal(proba.argmax(1), calibrator.predict(biased.split.X_test))


def test_models_without_a_report_hand_none_through(biased):
    calibrator = FairnessCalibrator(biased.regression).fit(biased.split.X_public, sensitive_features=biased.groups)
    assert not hasattr(calibrator, "privacy_")


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["dpsgd", "pate"])
def test_pickles_predict_the_same(biased, private, name):
    calibrator = FairnessCalibrator(private[name]).fit(biased.split.X_public, sensitive_features=biased.groups)
    other = pickle.loads(pickle.dumps(calibrator))
    np.testing.assert_array_equal(other.predict(biased.split.X_test), calibrator.predict(biased.split.X_test))
    assert other.privacy_ == calibrator.privacy_


@pytest.mark.slow
def test_a_skorch_net_is_fine_tuned_bare_or_in_net_(biased):
    split = biased.split
    rows, public = (np.asarray(table, dtype=np.float32) for table in (split.X, split.X_public))
    bare = NeuralNetClassifier(torch.nn.Linear(10, 2), criterion=torch.nn.CrossEntropyLoss, lr=0.5, verbose=0,
                               train_split=None).fit(rows, np.asarray(split.y, dtype=np.int64))  # fmt: skip
    held = Net().fit(public)
    held.net_ = bare
    held._logits = lambda X: bare.predict_proba(np.asarray(X, dtype=np.float32))
    before = pickle.dumps(bare.module_.state_dict())
    for model in (bare, held):
        calibrator = FairnessCalibrator(model).fit(public, sensitive_features=biased.groups)
        assert isinstance(calibrator.method_, FineTuning) and calibrator.gap_after_ <= calibrator.gap_before_
        tuned = getattr(calibrator.estimator_, "net_", calibrator.estimator_)
        assert tuned is not bare and hasattr(tuned, "save_params")
        assert pickle.dumps(bare.module_.state_dict()) == before
    assert FairnessCalibrator(bare).fit(public, sensitive_features=biased.groups).gap_after_ < 0.02


# ---- any classifier ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "model",
    [GaussianNB(), DecisionTreeClassifier(max_depth=6, random_state=0), RidgeClassifier(), RidgeClassifier(alpha=1e4)],
    ids=["GaussianNB", "tree", "decision_function", "small decision values"],
)
def test_any_classifier_with_scores_can_be_calibrated(biased, model):
    split = biased.split
    model = clone(model).fit(split.X, split.y)
    calibrator = FairnessCalibrator(model, gap_weight=5).fit(split.X_public, sensitive_features=biased.groups)
    assert calibrator.gap_after_ < 0.5 * calibrator.gap_before_


def test_a_threshold_that_the_model_has_already_is_where_the_calibration_starts(biased):
    split = biased.split
    strict = FixedThresholdClassifier(biased.regression, threshold=0.8, response_method="predict_proba")
    strict.fit(split.X, split.y)
    assert np.mean(strict.predict(split.X_public) != biased.regression.predict(split.X_public)) > 0.1
    slightly = FairnessCalibrator(
        strict,
        gamma=demographic_disparity(None, strict.predict(split.X_public), sensitive_features=biased.groups) - 0.02,
    ).fit(split.X_public, sensitive_features=biased.groups)
    assert 0.95 < slightly.agreement_ < 1


@pytest.mark.few(1)
@pytest.mark.parametrize("with_net", [False, True])
def test_frames_with_names_and_string_labels_behind_a_pipeline(biased, with_net):
    split = biased.split
    rng = np.random.default_rng(0)

    def frame(X, z):
        table = pd.DataFrame(np.asarray(X)[:, :4], columns=list("abcd"))
        return table.assign(job=pd.Categorical(rng.choice(["x", "y"], size=len(table))), proxy=np.where(z, "u", "v"))

    def names(z):
        return pd.DataFrame({"sex": np.where(z, "m", "f"), "old": np.asarray(z) * 0 + rng.integers(2, size=len(z))})

    X, public = frame(split.X, split.sensitive_features), frame(split.X_public, split.sensitive_features_public)
    labels = np.where(split.y, "yes", "no")
    one_hot = OneHotEncoder(sparse_output=False)
    encoder = make_column_transformer((StandardScaler(), list("abcd")), (one_hot, ["job", "proxy"]))
    private = FairDPSGDClassifier(lam=0, epsilon=8, net=mlp((4,), max_epochs=3), classes=["no", "yes"])
    last = private if with_net else GaussianNB()
    told = pytest.warns(PrivacyLeakWarning, match="The Pipeline around FairDPSGDClassifier fits 'columntransformer'")
    with told if with_net else nullcontext():
        model = make_pipeline(encoder, last).fit(X, labels)
    groups = names(split.sensitive_features_public)
    for fitted in (model, FrozenEstimator(model)):
        unseen = pytest.warns(PrivacyLeakWarning, match="cannot see what these read: .*StandardScaler")
        with unseen if with_net else nullcontext():
            calibrator = FairnessCalibrator(fitted, gap_weight=3).fit(public, sensitive_features=groups)
        assert isinstance(calibrator.method_, FineTuning if with_net else Thresholds)
        assert hasattr(calibrator, "privacy_") is with_net
        assert list(calibrator.groups_) == [("f", 0), ("f", 1), ("m", 0), ("m", 1)]
        assert set(calibrator.predict(public)) == {"no", "yes"}
        assert list(calibrator.feature_names_in_) == list(public) and calibrator.n_features_in_ == 6
        assert calibrator.gap_after_ < 0.5 * calibrator.gap_before_
        with pytest.raises(ValueError, match="feature names"):
            calibrator.predict(public.rename(columns={"a": "other"}))


def test_groups_may_be_columns_of_X(biased):
    split = biased.split
    direct = FairnessCalibrator(biased.regression, method=AWARE)
    direct.fit(split.X_public, sensitive_features=biased.groups)
    last = np.column_stack([split.X_public, biased.groups])
    dropped = FairnessCalibrator(biased.regression, method=AWARE, sensitive_columns=10).fit(last)
    np.testing.assert_array_equal(
        dropped.predict(last), direct.predict(split.X_public, sensitive_features=biased.groups)
    )
    assert dropped.n_features_in_ == 11
    with pytest.raises(ValueError, match="both 'sensitive_columns' and sensitive_features"):
        dropped.predict(last, sensitive_features=biased.groups)
    # a model that was fitted with the column gets it
    private = pd.DataFrame(split.X).rename(columns=str).assign(sex=split.sensitive_features)
    public = pd.DataFrame(split.X_public).rename(columns=str).assign(sex=split.sensitive_features_public)
    own = FairDPSGDClassifier(sensitive_columns="sex", lam=0, net=mlp((4,), max_epochs=1), classes=[0, 1])
    own.fit(private, split.y)
    calibrator = FairnessCalibrator(own, sensitive_columns="sex").fit(public)
    assert (
        calibrator.gap_after_
        <= calibrator.gap_before_
        == demographic_disparity(None, own.predict(public), sensitive_features=public["sex"])
    )


def test_a_given_group_estimator_is_cloned_and_used(biased):
    given_one = GaussianNB()
    calibrator = FairnessCalibrator(biased.regression, method=Thresholds(group_estimator=given_one), gap_weight=3)
    calibrator.fit(biased.split.X_public, sensitive_features=biased.groups)
    assert isinstance(calibrator.group_estimator_, GaussianNB) and not hasattr(given_one, "classes_")
    assert calibrator.gap_after_ < 0.3 * calibrator.gap_before_


# ---- scikit-learn --------------------------------------------------------------------------------------------
def test_search_over_gap_weight_keeps_the_frozen_model(biased):
    split = biased.split
    public = np.column_stack([split.X_public, biased.groups])
    calibrator = FairnessCalibrator(FrozenEstimator(biased.regression), sensitive_columns=-1)
    search = GridSearchCV(calibrator, {"gap_weight": [0.0, 1.0]}, cv=KFold(2)).fit(public, split.y_public)
    assert search.best_params_ == {"gap_weight": 0.0}  # what it wins in parity it pays in accuracy
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@pytest.mark.usefixtures("routing")
def test_groups_are_routed_by_a_search(biased):
    split = biased.split
    calibrator = FairnessCalibrator(FrozenEstimator(biased.regression), method=Thresholds())
    grid = {"gap_weight": [0.0, 1.0], "method__group_at_prediction": [True]}
    search = GridSearchCV(calibrator, grid, cv=KFold(2))
    search.fit(split.X_public, split.y_public, sensitive_features=biased.groups)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    model = search.best_estimator_
    assert model.score(split.X_public, split.y_public, sensitive_features=biased.groups) == np.mean(
        model.predict(split.X_public, sensitive_features=biased.groups) == split.y_public
    )


def test_repr_clone_and_parameters():
    calibrator = FairnessCalibrator(LogisticRegression(C=2.0), gamma=0.1)
    assert repr(calibrator) == "FairnessCalibrator(estimator=LogisticRegression(C=2.0), gamma=0.1)"
    assert clone(calibrator).get_params()["estimator__C"] == 2.0
    parts = FairnessCalibrator(LogisticRegression(), method=FineTuning(steps=7))
    assert clone(parts).get_params()["method__steps"] == 7 and clone(parts).method is not parts.method
    with pytest.raises(TypeError, match="takes its parameters by name"):
        FairnessCalibrator(LogisticRegression(), "threshold")


# ---- bad input -----------------------------------------------------------------------------------------------
BAD_PARAMETERS = [
    ({"gap_weight": -1}, "'gap_weight' parameter of FairnessCalibrator"),
    ({"gap_weight": np.inf}, "'gap_weight' parameter"),
    ({"gap_weight": 1.0, "gamma": 0.1}, "both 'gap_weight'.* and 'gamma'"),
    ({"gamma": -0.1}, "'gamma' parameter"),
    ({"method": "magic"}, "'method' parameter"),
    ({"disparity": "widest"}, "'disparity' parameter"),
    ({"method": FineTuning(steps=0)}, "'steps' parameter of FineTuning"),
    ({"method": FineTuning(lr=0)}, "'lr' parameter"),
    ({"method": FineTuning(temperature=0)}, "'temperature' parameter"),
    ({"method": Thresholds(group_at_prediction="yes")}, "'group_at_prediction' parameter of Thresholds"),
    ({"method": Thresholds(group_estimator=RidgeClassifier())}, "'group_estimator' parameter"),
    ({"method": Thresholds(group_at_prediction=True, group_estimator=GaussianNB())}, "not used with"),
    ({"estimator": None}, "'estimator' parameter"),
    ({"method": "fine_tune"}, "torch network in net_; LogisticRegression has none. Use method='threshold'"),
    ({"groups": [0]}, "only one group in the groups parameter"),
    ({"groups": [0, 1, 2]}, "no public row of 1 of the 3 groups"),
    ({"groups": [0, 7]}, "not in 'groups'"),
    ({"groups": [0, 0, 1]}, "lists a value twice"),
    ({"sensitive_columns": "sex"}, "needs X to be a DataFrame"),
]


@pytest.mark.parametrize(("parameters", "message"), BAD_PARAMETERS, ids=lambda value: str(value)[:40])
def test_bad_parameters_are_named(biased, parameters, message):
    calibrator = FairnessCalibrator(**{"estimator": biased.regression, **parameters})
    given_groups = None if "sensitive_columns" in parameters else biased.groups
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        calibrator.fit(biased.split.X_public, sensitive_features=given_groups)
    assert not hasattr(calibrator, "estimator_")


BAD_GROUPS = [
    (lambda z: None, "needs the group of every public row"),
    (lambda z: np.zeros(len(z)), "only one group in the public rows"),
    (lambda z: z[:-1], "inconsistent length"),
    (lambda z: np.where(np.arange(len(z)) == 3, np.nan, z), "missing values"),
    (lambda z: np.asarray(z)[:, None, None], "3 dimensions"),
]


@pytest.mark.parametrize(("change", "message"), BAD_GROUPS, ids=[message for _, message in BAD_GROUPS])
def test_bad_groups_are_errors(biased, change, message):
    with pytest.raises(ValueError, match=message):
        FairnessCalibrator(biased.regression).fit(biased.split.X_public, sensitive_features=change(biased.groups))


def test_bad_rows_are_errors(biased):
    X = np.array(biased.split.X_public)
    calibrator = FairnessCalibrator(biased.regression)
    with pytest.raises(ValueError, match="NaN"):
        calibrator.fit(np.where(X > 2, np.nan, X), sensitive_features=biased.groups)
    with pytest.raises(ValueError, match="features"):
        calibrator.fit(X[:, :3], sensitive_features=biased.groups)
    with pytest.raises(ValueError, match="minimum of 1 is required by FairnessCalibrator"):
        calibrator.fit(X[:0], sensitive_features=biased.groups[:0])
    calibrator.fit(X, sensitive_features=biased.groups)
    with pytest.raises(ValueError, match="features"):
        calibrator.predict(X[:, :3])


def test_unfitted_models_and_calibrators_say_so(biased):
    with pytest.raises(NotFittedError, match="this LogisticRegression is not"):
        FairnessCalibrator(LogisticRegression()).fit(biased.split.X_public, sensitive_features=biased.groups)
    with pytest.raises(NotFittedError, match="FrozenEstimator is not"):
        FairnessCalibrator(FrozenEstimator(LogisticRegression())).fit(biased.split.X_public)
    with pytest.raises(NotFittedError, match="FairnessCalibrator instance is not fitted"):
        FairnessCalibrator(biased.regression).predict(biased.split.X_public)


def test_what_cannot_be_calibrated_is_refused_with_the_reason(biased):
    X, z, y = biased.split.X_public, biased.groups, biased.split.y_public
    refused = [
        (StandardScaler().fit(X), {}, "'estimator' parameter of FairnessCalibrator"),
        (NoScores().fit(X, y), {}, "needs an estimator with predict_proba or decision_function; NoScores has neither"),
        (OneLogit(torch.nn.Linear(10, 1)).fit(X), {}, "one logit for each of the 2 classes"),
        (Net(Frozen(biased.net.net_)).fit(X), {}, "no trainable parameter"),
        (
            biased.regression,
            {"method": Thresholds(group_estimator=OneClass())},
            "one probability for each of the 2 groups",
        ),
    ]
    for model, parameters, message in refused:
        with pytest.raises(ValueError, match=message):
            FairnessCalibrator(model, **parameters).fit(X, sensitive_features=z)


class NoScores(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.where(np.asarray(X)[:, 0] > 0, *self.classes_[::-1])


class OneLogit(Net):
    def predict(self, X):
        return (self._logits(X)[:, 0] > 0).astype(int)


class OneClass(BaseEstimator):
    def fit(self, X, y):
        return self

    def predict_proba(self, X):
        return np.ones((len(X), 1))


class Frozen(torch.nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = copy.deepcopy(inner).requires_grad_(False)

    def forward(self, X):
        return self.inner(X)


def test_group_at_prediction_asks_for_groups_it_knows(biased):
    X = biased.split.X_public
    calibrator = FairnessCalibrator(biased.regression, method=AWARE)
    calibrator.fit(X, sensitive_features=biased.groups)
    with pytest.raises(ValueError, match=r"group_at_prediction=True\) needs sensitive_features to predict"):
        calibrator.predict(X)
    with pytest.raises(ValueError, match="not in 'groups'"):
        calibrator.predict(X, sensitive_features=np.full(len(X), "new"))
    with pytest.raises(ValueError, match="inconsistent length"):
        calibrator.predict(X, sensitive_features=biased.groups[:5])


@pytest.mark.filterwarnings("ignore:FairnessCalibrator follows noise")
def test_warnings_name_a_small_group_and_a_bound_out_of_reach(biased):
    X, z = np.array(biased.split.X_public), np.array(biased.groups)
    with pytest.warns(FairnessWarning, match="smallest group has 5 public rows"):
        FairnessCalibrator(biased.regression).fit(
            np.concatenate([X[z == 0], X[z == 1][:5]]), sensitive_features=np.concatenate([z[z == 0], z[z == 1][:5]])
        )
    nothing_known = DummyClassifier(strategy="prior")
    blind = Thresholds(group_estimator=nothing_known)
    calibrator = FairnessCalibrator(biased.regression, gamma=0.01, method=blind)
    with pytest.warns(FairnessWarning, match=r"smallest gap that FairnessCalibrator .* above gamma=0\.01") as caught:
        calibrator.fit(X, sensitive_features=z)
    assert not calibrator.satisfied_ and calibrator.agreement_ == 1 and not calibrator.multipliers_.any()
    assert caught[0].filename == __file__


def test_labels_that_the_model_was_not_taught_are_blamed_on_its_classes():
    model = FrozenEstimator(LogisticRegression().fit([[0.0], [1.0]], [0, 1]))
    with pytest.raises(ValueError, match="none of the classes of its 'estimator'"):
        FairnessCalibrator(model, constraints="equalized_odds").fit(
            [[0.0], [1.0]] * 40, [0, 2] * 40, sensitive_features=[0, 0, 1, 1] * 20
        )
