"""IDP3 and FairnessCalibrator around any model, fitted or not, in scikit-learn's machinery."""

import warnings
from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from skfairdp import (
    IDP3,
    FairDPSGDClassifier,
    FairnessCalibrator,
    FairPATEClassifier,
    ParetoSearchCV,
    PATEClassifier,
    PrivacyLedger,
    PublicData,
    SyntheticDataClassifier,
)
from skfairdp.datasets import make_biased_classification, train_private_public_test_split
from skfairdp.exceptions import FairnessWarning, PrivacyLeakWarning
from skfairdp.gradient import SignedLoss, mlp
from skfairdp.pate import VoteGate
from skfairdp.postprocessing import Thresholds

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*draws its noise from:skfairdp.exceptions.PrivacyLeakWarning"),
    pytest.mark.filterwarnings("ignore:epsilon=50 of:skfairdp.exceptions.PrivacyLeakWarning"),
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning"),
]

SPLIT = train_private_public_test_split(
    *make_biased_classification(1600, disparity=0.4, as_frame=True, random_state=0), random_state=0
)
X, Y, Z = SPLIT.X, SPLIT.y, SPLIT.sensitive_features
PUBLIC, X_TEST, Y_TEST, Z_TEST = SPLIT.public, SPLIT.X_test, SPLIT.y_test, SPLIT.sensitive_features_test
WITH_SEX, TEST_WITH_SEX = X.assign(sex=Z), X_TEST.assign(sex=Z_TEST)
PUBLIC_WITH_SEX = PublicData(SPLIT.X_public.assign(sex=SPLIT.sensitive_features_public))
GIVEN = {"epsilon": 50.0, "noise_seed": 0, "random_state": 0, "classes": [0, 1]}
SECRET = {"epsilon": 2.0, "classes": [0, 1], "random_state": 0}


def pate(**options):
    return PATEClassifier(n_teachers=8, **{**GIVEN, **options})


def fair(**options):
    return FairPATEClassifier(n_teachers=8, gamma=0.5, gate=VoteGate(min_count=5), **{**GIVEN, **options})


def signed(**options):
    net = mlp((), max_epochs=5, batch_size=100)
    return FairDPSGDClassifier(net=net, parity=SignedLoss(), groups=[0, 1], **{**GIVEN, **options})


def synthetic(**options):
    learner = LogisticRegression()
    return SyntheticDataClassifier(learner, n_samples=800, bounds=(-6.0, 6.0), groups=[0, 1], **{**GIVEN, **options})


# ---- one convention: what is fitted is used, what is not is fitted -------------------------------------------------
@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("wrapper", [IDP3, FairnessCalibrator])
def test_a_fitted_model_is_used_as_it_is(wrapper, frozen):
    model = LogisticRegression().fit(X, Y)
    given = FrozenEstimator(model) if frozen else model
    wrapped = wrapper(given).fit(SPLIT.X_public, sensitive_features=SPLIT.sensitive_features_public)
    assert wrapped.estimator_ is given
    assert set(wrapped.predict(X_TEST, sensitive_features=Z_TEST)) <= {0, 1, -1}


@pytest.mark.covering
@pytest.mark.parametrize("make", [pate, fair, signed, synthetic, LogisticRegression])
@pytest.mark.parametrize("wrapper", [IDP3, FairnessCalibrator])
def test_an_unfitted_model_is_fitted_on_what_it_asks_for(wrapper, make):
    takes_none = wrapper is IDP3 and make in (synthetic, signed, LogisticRegression)
    public = {} if takes_none else {"X_public": PUBLIC}
    options = {"groups": [0, 1]} if wrapper is IDP3 else {"method": "threshold"}
    wrapped = wrapper(make(), **options).fit(X, Y, sensitive_features=Z, **public)
    alone = make()
    taken = {} if make is LogisticRegression else {} if make is pate else {"sensitive_features": Z}
    if make in (pate, fair):
        taken["X_public"] = PUBLIC
    alone.fit(X, Y, **taken)
    np.testing.assert_array_equal(wrapped.estimator_.predict(X_TEST), alone.predict(X_TEST))
    if wrapper is FairnessCalibrator:
        assert wrapped.gap_after_ <= wrapped.gap_before_
        assert getattr(wrapped, "privacy_", None) is getattr(wrapped.estimator_, "privacy_", None)


def test_models_that_make_their_own_rows_get_the_private_groups():
    wrapped = IDP3(fair(groups=[0, 1])).fit(X, Y, sensitive_features=Z)
    alone = fair(groups=[0, 1]).fit(X, Y, sensitive_features=Z)
    np.testing.assert_array_equal(wrapped.estimator_.predict(X_TEST), alone.predict(X_TEST))


@pytest.mark.parametrize("wrapper", [IDP3, FairnessCalibrator])
def test_group_columns_reach_the_model_as_groups_and_leave_its_features(wrapper):
    wrapped = wrapper(fair(), sensitive_columns="sex").fit(WITH_SEX, Y, X_public=PUBLIC_WITH_SEX)
    assert wrapped.estimator_.feature_names_in_.tolist() == X.columns.tolist()
    assert wrapped.estimator_.groups_.tolist() == [0, 1] == wrapped.groups_.tolist()
    assert len(wrapped.predict(TEST_WITH_SEX)) == len(X_TEST)


@pytest.mark.parametrize("wrapper", [IDP3, FairnessCalibrator])
def test_a_model_that_takes_the_group_columns_out_itself_gets_them(wrapper):
    wrapped = wrapper(fair(sensitive_columns="sex"), sensitive_columns="sex")
    wrapped.fit(WITH_SEX, Y, X_public=PUBLIC_WITH_SEX)
    assert wrapped.estimator_.n_features_in_ == WITH_SEX.shape[1] and len(wrapped.predict(TEST_WITH_SEX)) == len(X_TEST)


def test_groups_of_idp3_that_are_public_are_not_read_from_private_rows():
    secret = {"noise_seed": None, "epsilon": 2.0}
    IDP3(fair(**secret)).fit(X, Y, sensitive_features=Z, X_public=PUBLIC)  # those of the public rows
    IDP3(signed(**secret)).fit(X, Y, sensitive_features=Z)  # those that the model lists
    with pytest.warns(PrivacyLeakWarning, match="IDP3 read its groups"):
        IDP3(pate(**secret)).fit(X, Y, sensitive_features=Z, X_public=SPLIT.X_public)


def test_what_is_missing_is_said_before_anything_is_spent():
    ledger = PrivacyLedger()
    model = fair(ledger=ledger, noise_seed=None)
    with pytest.raises(NotFittedError, match=r"X_public=PublicData\(X, groups\)"):
        FairnessCalibrator(model).fit(X, Y)
    with pytest.raises(ValueError, match="needs the group of every public row"):
        FairnessCalibrator(model).fit(X, Y, sensitive_features=Z, X_public=SPLIT.X_public)
    with pytest.raises(ValueError, match="sensitive_features_public without X_public"):
        FairnessCalibrator(model).fit(X, Y, sensitive_features_public=Z)
    with pytest.raises(ValueError, match=r"both 'gap_weight'.* and 'gamma'"):
        FairnessCalibrator(model, gap_weight=1, gamma=0.1).fit(X, Y, X_public=PUBLIC)
    with pytest.raises(ValueError, match="IDP3 requires y"):
        IDP3(model).fit(X, sensitive_features=Z)
    with pytest.raises(ValueError, match="LogisticRegression takes none"):
        IDP3(LogisticRegression()).fit(X, Y, sensitive_features=Z, X_public=PUBLIC)
    assert ledger.entries == ()


def test_a_model_that_was_paid_for_stays_when_it_cannot_be_calibrated():
    calibrator = FairnessCalibrator(pate(), method="fine_tune")
    with pytest.raises(ValueError, match="torch network"):
        calibrator.fit(X, Y, X_public=PUBLIC)
    assert calibrator.estimator_.score(X_TEST, Y_TEST) > 0.6


# ---- pipelines -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("wrapper", [IDP3, FairnessCalibrator])
@pytest.mark.filterwarnings("ignore:The Pipeline around")
def test_around_a_pipeline_without_routing(wrapper):
    pipeline = make_pipeline(StandardScaler().set_output(transform="pandas"), fair())
    scaled = PublicData(StandardScaler().set_output(transform="pandas").fit_transform(SPLIT.X_public),
                        SPLIT.sensitive_features_public)  # fmt: skip
    stated = wrapper is FairnessCalibrator  # and that of the pipeline is stated with it
    unseen = pytest.warns(PrivacyLeakWarning, match=r"cannot see .* \(StandardScaler\)") if stated else nullcontext()
    with unseen:
        wrapped = wrapper(pipeline).fit(X, Y, sensitive_features=Z, X_public=scaled)
    assert len(wrapped.estimator_[-1].released_labels_) == len(SPLIT.X_public)


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("wrapper", [IDP3, FairnessCalibrator])
def test_at_the_end_of_a_pipeline_with_routing(wrapper):
    pipeline = make_pipeline(StandardScaler().set_output(transform="pandas"), wrapper(fair()))
    pipeline.fit(X, Y, sensitive_features=Z, X_public=PUBLIC)
    assert set(pipeline.predict(X_TEST, sensitive_features=Z_TEST)) <= {0, 1, -1}


# ---- searches ------------------------------------------------------------------------------------------------------
@pytest.mark.few(1)
@pytest.mark.parametrize("wrapper", [IDP3, FairnessCalibrator])
def test_grid_search_with_columns_of_groups_and_public_rows(wrapper):
    grid = {"gamma": [0.05, 0.5], "estimator__gamma": [0.2]}
    search = GridSearchCV(wrapper(fair(), sensitive_columns="sex"), grid, cv=KFold(2), error_score="raise")
    search.fit(WITH_SEX, Y, X_public=PUBLIC_WITH_SEX)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@pytest.mark.few(1)
@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("wrapper", [IDP3, FairnessCalibrator])
def test_grid_search_with_routed_groups_and_public_rows(wrapper):
    search = GridSearchCV(wrapper(fair()), {"gamma": [0.05, 0.5]}, cv=KFold(2), error_score="raise")
    search.fit(X, Y, sensitive_features=Z, X_public=PUBLIC)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_a_search_that_scores_without_groups_is_an_error_not_nan():
    with pytest.raises(ValueError, match="its scores would be NaN"):
        cross_val_score(IDP3(fair()), X, Y, cv=2, params={"sensitive_features": Z, "X_public": PUBLIC},
                        error_score="raise")  # fmt: skip
    by_group = FairnessCalibrator(LogisticRegression(), method=Thresholds(group_at_prediction=True))
    with pytest.raises(ValueError, match="would be NaN"):
        cross_val_score(by_group, X, Y, cv=2, params={"X_public": PUBLIC}, error_score="raise")


@pytest.mark.covering
@pytest.mark.parametrize("columns", [None, "sex"])
@pytest.mark.parametrize("piped", [False, True])
def test_pareto_search_of_idp3_with_coverage_as_an_objective(columns, piped):
    model = IDP3(fair(), sensitive_columns=columns)
    model, prefix = (make_pipeline(model), "idp3__") if piped else (model, "")
    search = ParetoSearchCV(
        model, {f"{prefix}gamma": [0.02, 0.9]}, scoring=["accuracy", "coverage", "disparity"], error_score="raise"
    )
    if columns is None:
        rows, groups, public, test = X, Z, PUBLIC, X_TEST
    else:
        rows, groups, public, test = WITH_SEX, None, PUBLIC_WITH_SEX, TEST_WITH_SEX
    search.fit(rows, Y, sensitive_features=groups, X_public=public, validation=PublicData(test, Z_TEST, Y_TEST))
    coverage = search.cv_results_["mean_test_coverage"]
    assert coverage[0] < coverage[1] <= 1
    assert np.isfinite(search.cv_results_["mean_test_disparity"]).all()


def test_pareto_search_of_a_calibrator_on_private_folds_pays_for_its_model():
    model = FairnessCalibrator(fair(**SECRET, noise_seed=None))
    search = ParetoSearchCV(model, {"gap_weight": [0.0, 3.0]}, cv=2, score_epsilon=1.0, error_score="raise")
    search.fit(X, Y, sensitive_features=Z, X_public=PUBLIC)
    assert search.privacy_.epsilon > SECRET["epsilon"]
    assert np.isfinite(search.cv_results_["mean_test_disparity"]).all()


def test_pareto_search_says_before_it_pays_that_groups_to_predict_with_are_missing():
    ledger = PrivacyLedger()
    search = ParetoSearchCV(IDP3(fair(**SECRET, noise_seed=None, ledger=ledger)), {"gamma": [0.1]}, scoring="coverage")
    with pytest.raises(ValueError, match="cannot score IDP3 without the group of every row"):
        search.fit(X, Y, sensitive_features=Z, X_public=PUBLIC, validation=PublicData(X_TEST, None, Y_TEST))
    assert ledger.entries == ()


# ---- ensembles that only call fit(X, y) ----------------------------------------------------------------------------
def test_calibrators_with_public_data_vote():
    members = [("own", FairnessCalibrator(fair(public_data=PUBLIC))),
               ("regression", FairnessCalibrator(LogisticRegression(), public_data=PUBLIC))]  # fmt: skip
    vote = VotingClassifier(members).fit(X, Y)
    assert vote.score(X_TEST, Y_TEST) > 0.6
    assert vote.estimators_[1].public_data is PUBLIC


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*is fitted on folds of Stratified")
def test_post_processors_in_a_stack_and_around_one():
    public = PublicData(PUBLIC.X, PUBLIC.sensitive_features)
    stack = StackingClassifier([("calibrated", FairnessCalibrator(fair(public_data=public))),
                                ("pate", pate(public_data=public))], cv=2)  # fmt: skip
    around = IDP3(clone(stack), groups=[0, 1]).fit(X, Y, sensitive_features=Z)
    assert set(around.predict(X_TEST, sensitive_features=Z_TEST)) <= {0, 1, -1}
    with pytest.warns(PrivacyLeakWarning, match="cannot see what these read: StackingClassifier"):
        calibrated = FairnessCalibrator(stack).fit(X, Y, X_public=public)
    assert calibrated.gap_after_ <= calibrated.gap_before_


def test_idp3_in_a_stack_finds_groups_in_the_columns():
    inside = IDP3(LogisticRegression(), sensitive_columns="sex", gamma=0.3)
    stack = StackingClassifier([("refusing", inside), ("all", LogisticRegression())], cv=2).fit(WITH_SEX, Y)
    assert stack.score(TEST_WITH_SEX, Y_TEST) > 0.6


def test_idp3_votes_where_a_refusal_is_a_number_beyond_the_classes_and_goes_around_a_vote():
    inside = IDP3(LogisticRegression(), sensitive_columns="sex", gamma=0.01, min_count=5, reject_label=2)
    others = [("all", LogisticRegression()), ("strict", LogisticRegression(C=0.01))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairnessWarning)  # a gate so strict is stuck at times
        vote = VotingClassifier([("refusing", inside), *others]).fit(WITH_SEX, Y)
        refused = vote.estimators_[0].predict(TEST_WITH_SEX) == 2
        assert refused.any() and set(vote.predict(TEST_WITH_SEX)) <= {0, 1}
        # A refusal is a vote for nobody: the others decide, and the smaller class where they differ, as in any tie.
        both = np.column_stack([model.predict(TEST_WITH_SEX) for model in vote.estimators_[1:]])
        np.testing.assert_array_equal(vote.predict(TEST_WITH_SEX)[refused], both.min(axis=1)[refused])
        around = IDP3(VotingClassifier(others), sensitive_columns="sex", gamma=0.01, min_count=5).fit(WITH_SEX, Y)
        assert set(around.predict(TEST_WITH_SEX)) == {0, 1, -1}


def test_a_calibrator_around_idp3s_model_keeps_its_parameters_through_clone():
    model = FairnessCalibrator(fair(), public_data=PUBLIC)
    assert clone(model).public_data is PUBLIC
    assert isinstance(Pipeline([("all", clone(model))]).fit(X, Y)[-1].gap_after_, float)
    assert isinstance(pd.DataFrame(clone(model).fit(X, Y).multipliers_[0]), pd.DataFrame)
