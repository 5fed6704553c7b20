"""PublicPreprocessor and the default encoder: nothing is learnt from the rows given to fit."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

from skfairdp._utils import PublicData
from skfairdp.preprocessing import PublicPreprocessor, make_tabular_encoder


@pytest.mark.parametrize("transformer", [StandardScaler(), MinMaxScaler(), PCA(2, svd_solver="full")])
def test_private_rows_change_nothing(transformer):
    rng = np.random.default_rng(0)
    public, probe = rng.normal(size=(30, 3)), rng.normal(size=(5, 3))
    expected = clone(transformer).fit(public).transform(probe)
    for private in (rng.normal(size=(10, 3)) * 1e9, np.full((4, 3), np.nan), np.zeros((1, 3))):
        fitted = PublicPreprocessor(transformer, X_public=public).fit(private)
        np.testing.assert_array_equal(fitted.transform(probe), expected)


@pytest.mark.parametrize(
    ("transformer", "usual", "odd"),
    [
        (OneHotEncoder(drop="first", handle_unknown="ignore"), ["a", "b"], "secret"),
        (StandardScaler(), [0.0, 1e-9], 1e308),
    ],
)
def test_no_warning_tells_of_a_private_row(transformer, usual, odd):
    """Found: "unknown categories in columns [0]", and of numpy that a number overflows."""
    fitted = PublicPreprocessor(transformer, X_public=pd.DataFrame({"x": usual * 9})).fit(pd.DataFrame({"x": usual}))
    fitted.transform(pd.DataFrame({"x": [*usual, odd]}))  # warnings are errors here


def test_a_category_of_private_rows_does_not_appear():
    public = pd.DataFrame({"job": ["a", "b"]})
    encoder = PublicPreprocessor(OneHotEncoder(handle_unknown="ignore", sparse_output=False), PublicData(public))
    encoder.fit(pd.DataFrame({"job": ["secret", "a"]}))
    assert encoder.get_feature_names_out().tolist() == ["job_a", "job_b"]
    assert b"secret" not in pickle.dumps(encoder)


def test_pipeline_search_clone_and_set_output():
    rng = np.random.default_rng(1)
    X, public = rng.normal(size=(60, 2)), PublicData(rng.normal(size=(60, 2)))
    y = (X[:, 0] > 0).astype(int)
    pipeline = make_pipeline(PublicPreprocessor(StandardScaler(), public), LogisticRegression())
    search = GridSearchCV(pipeline, {"logisticregression__C": [0.1, 1.0]}, cv=2).fit(X, y)
    scaler = search.best_estimator_[0].transformer_
    np.testing.assert_allclose(scaler.mean_, public.X.mean(axis=0))  # all 60 public rows, not a fold of them
    frame = pd.DataFrame(X, columns=["a", "b"])
    named = PublicPreprocessor(StandardScaler(), pd.DataFrame(public.X, columns=["a", "b"])).set_output(
        transform="pandas"
    )
    assert list(named.fit(frame).transform(frame).columns) == ["a", "b"]
    np.testing.assert_allclose(named.inverse_transform(named.transform(frame)), X)


@pytest.mark.parametrize(
    ("transformer", "public", "message"),
    [
        (StandardScaler(), None, "needs public rows"),
        (StandardScaler(), np.zeros((3, 4)), "must be a table with the 2 columns of X"),
        (StandardScaler(), np.zeros(3), "must be a table with the 2 columns of X"),
        (StandardScaler(), pd.DataFrame(np.zeros((3, 2)), columns=["b", "a"]), "must have the column names"),
        (StandardScaler(), np.zeros((3, 2)), "must have the column names of X"),
        (None, np.zeros((3, 2)), "must be a transformer"),
    ],
)
def test_bad_public_rows_are_refused(transformer, public, message):
    frame = pd.DataFrame(np.zeros((3, 2)), columns=["a", "b"])
    with pytest.raises(ValueError, match=message):
        PublicPreprocessor(transformer, public).fit(frame)


def test_default_encoder_standardises_clips_and_ignores_unknown_categories():
    public = pd.DataFrame({"n": [0.0, 2.0], "c": ["x", "y"], "m": [5, 7]})
    encoder = make_tabular_encoder(clip=3.0).fit(public)
    out = encoder.transform(pd.DataFrame({"n": [1e9, -1e9, 1.0], "c": ["x", "new", "y"], "m": [6, 6, 6]}))
    np.testing.assert_array_equal(out, [[3, 0, 1, 0], [-3, 0, 0, 0], [0, 0, 0, 1]])
    assert encoder.get_feature_names_out().tolist() == ["n", "m", "c_x", "c_y"]
    pickle.loads(pickle.dumps(encoder))


@pytest.mark.parametrize("clip", [0.0, -1.0, float("nan")])
def test_default_encoder_refuses_an_impossible_clip(clip):
    with pytest.raises(ValueError, match="'clip' parameter of make_tabular_encoder"):
        make_tabular_encoder(clip=clip)


# ---- what the transformer can do -------------------------------------------------------------------------------
def test_rows_come_back_and_columns_keep_their_names():
    public = pd.DataFrame({"age": [20.0, 40.0, 60.0], "pay": [1.0, 3.0, 8.0]})
    private = pd.DataFrame({"age": [30.0], "pay": [5.0]})
    scaler = PublicPreprocessor(StandardScaler(), PublicData(public)).fit(private)
    np.testing.assert_allclose(scaler.inverse_transform(scaler.transform(private)), private.to_numpy())
    assert scaler.get_feature_names_out().tolist() == ["age", "pay"]
    assert scaler.get_feature_names_out(["age", "pay"]).tolist() == ["age", "pay"]


def test_public_rows_that_pass_through_keep_their_groups_and_labels():
    public = PublicData(np.array([[0.0], [2.0]]), ["f", "m"], [1, 0])
    scaler = PublicPreprocessor(StandardScaler(), public).fit(np.array([[9.0]]))
    passed = scaler.transform(public)
    assert isinstance(passed, PublicData) and passed.X.ravel().tolist() == [-1.0, 1.0]
    assert list(passed.sensitive_features) == ["f", "m"] and list(passed.y) == [1, 0]


def test_an_error_on_private_cells_quotes_none_of_them():
    scaler = PublicPreprocessor(StandardScaler(), PublicData(np.array([[0.0], [2.0]]))).fit(np.array([[9.0]]))
    with pytest.raises(ValueError, match="PublicPreprocessor") as told:
        scaler.transform(np.array([["canary"]], dtype=object))
    assert "canary" not in str(told.value) and told.value.__context__ is None
