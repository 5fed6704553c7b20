"""IDP3 in pipelines, searches and metadata routing; scikit-learn's suite is in test_estimator_checks.py."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skfairdp.postprocessing import IDP3


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(600, 3)), columns=["x0", "x1", "x2"])
    groups = pd.Series(np.where(X["x0"] > 0, "m", "f"))
    y = np.where(X["x1"] + 0.8 * (groups == "m") + rng.normal(size=600) > 0.4, "yes", "no")
    return X, y, groups


def test_repr_clone_and_parameters():
    idp = IDP3(LogisticRegression(C=2.0), gamma=0.1)
    assert repr(idp) == "IDP3(estimator=LogisticRegression(C=2.0), gamma=0.1)"
    assert clone(idp).get_params()["estimator__C"] == 2.0
    with pytest.raises(TypeError, match="takes its parameters by name"):
        IDP3(LogisticRegression(), 0.1)


def test_tags_follow_the_estimator():
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.utils import get_tags

    assert get_tags(IDP3(HistGradientBoostingClassifier())).input_tags.allow_nan
    assert not get_tags(IDP3(LogisticRegression())).input_tags.allow_nan
    assert get_tags(IDP3(LogisticRegression())).input_tags.sparse
    assert not get_tags(IDP3(LogisticRegression(), sensitive_columns=0)).input_tags.sparse
    assert get_tags(IDP3()).estimator_type == "classifier"


def test_in_a_pipeline_with_columns(rows):
    X, y, groups = rows
    model = make_pipeline(StandardScaler(), LogisticRegression())
    frame = X.assign(sex=groups)
    idp = IDP3(model, sensitive_columns="sex").fit(frame, y)
    assert set(idp.predict(frame)) == {"yes", "no", "reject"}


def test_grid_search_over_gamma_with_columns_from_X(rows):
    X, y, groups = rows
    frame = X.assign(sex=groups)
    search = GridSearchCV(
        IDP3(LogisticRegression(), sensitive_columns="sex"),
        {"gamma": [0.02, 0.1], "estimator__C": [0.1, 1.0]},
        cv=KFold(3),
    ).fit(frame, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@pytest.mark.usefixtures("routing")
def test_groups_are_routed_through_pipeline_and_search(rows):
    X, y, groups = rows
    pipeline = make_pipeline(StandardScaler(), IDP3(LogisticRegression()))
    pipeline.fit(X, y, sensitive_features=groups)
    direct = pipeline[-1].predict(pipeline[0].transform(X), sensitive_features=groups)
    np.testing.assert_array_equal(pipeline.predict(X, sensitive_features=groups), direct)
    kept = direct != "reject"
    assert pipeline.score(X, y, sensitive_features=groups) == np.mean(direct[kept] == y[kept])
    search = GridSearchCV(pipeline, {"idp3__gamma": [0.02, 0.1]}, cv=KFold(3)).fit(X, y, sensitive_features=groups)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    scores = cross_val_score(IDP3(LogisticRegression()), X, y, cv=KFold(3), params={"sensitive_features": groups})
    assert np.isfinite(scores).all()


class WantsGroups(LogisticRegression):
    def fit(self, X, y, sensitive_features=None):
        self.seen_ = sensitive_features
        return super().fit(X, y)


def test_groups_reach_the_estimator_only_where_it_asks_for_them(rows, routing):
    X, y, groups = rows
    idp = IDP3(WantsGroups().set_fit_request(sensitive_features=True)).fit(X, y, sensitive_features=groups)
    assert idp.estimator_.seen_ is groups
    idp = IDP3(WantsGroups().set_fit_request(sensitive_features=False)).fit(X, y, sensitive_features=groups)
    assert idp.estimator_.seen_ is None


def test_groups_stay_outside_the_estimator_without_routing(rows):
    X, y, groups = rows
    assert IDP3(WantsGroups()).fit(X, y, sensitive_features=groups).estimator_.seen_ is None


def test_requests_can_be_set(rows, routing):
    for method in ("fit", "predict", "score"):
        idp = getattr(IDP3(LogisticRegression()), f"set_{method}_request")(sensitive_features="z")
        assert getattr(idp.get_metadata_routing()._serialize(), "get", dict.get)("$self_request", {})[method] == {
            "sensitive_features": "z",
            **({"sample_weight": None} if method == "score" else {}),
        }
    assert IDP3().set_transform_request(sensitive_features="z").get_metadata_routing() is not None


class OnlyScores(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.full((len(X), 2), 0.5)


def test_an_estimator_that_only_scores_is_refused_before_it_is_asked_to_predict(rows):
    X, y, groups = rows
    with pytest.raises(ValueError, match=r"'estimator' of IDP3 must have 'predict'.* OnlyScores has none"):
        IDP3(OnlyScores().fit(X, y)).fit(X, y, sensitive_features=groups)
