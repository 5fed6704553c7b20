"""What is sampled: containers, columns, types, missing values; what a fitted generator keeps."""

import pickle
import struct

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from skfairdp import PFGuardGenerator, PrivacyLedger
from skfairdp.papers import PATEGANBackend
from tests.generative.tables import BOUNDS, CATEGORIES, DTYPES, N, make, mixed_table

# So few rows that a group of them is hardly more than the noise; what is said about it is tested on its own.
pytestmark = pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning")


@pytest.fixture(scope="module")
def fitted():
    X, y, s = mixed_table()
    return make().fit(X, y, sensitive_features=s)


# ---- containers ------------------------------------------------------------------------------------------------
def test_a_mixed_table_comes_back_with_its_columns_dtypes_and_ranges(fitted):
    X, _, _ = mixed_table()
    new = fitted.sample(2000, random_state=0)
    assert list(new.columns) == list(X.columns) == list(DTYPES)
    assert new.dtypes.to_dict() == X.dtypes.to_dict()
    for name, (low, high) in BOUNDS.items():
        assert low <= new[name].min() and new[name].max() <= high
    for name, values in CATEGORIES.items():
        assert set(new[name].dropna().unique()) <= set(values)
    assert new["level"].cat.ordered
    assert len(new) == 2000 and new.index.equals(pd.RangeIndex(2000))


def test_missing_values_are_as_frequent_as_they_were_and_absent_where_there_were_none(fitted):
    X, _, _ = mixed_table()
    shares = fitted.sample(20_000, random_state=0).isna().mean()
    truth = X.isna().mean()
    assert (shares[truth == 0] == 0).all()
    np.testing.assert_allclose(shares, truth, atol=0.05)


def test_means_and_frequencies_are_near_those_of_the_rows(fitted):
    X, y, s = mixed_table()
    generator = make(epsilon=50.0, balance=None).fit(X, y, sensitive_features=s)
    new, labels, groups = generator.sample_labels(30_000, return_sensitive=True, random_state=0)
    assert abs(new["height"].mean() - X["height"].mean()) < 1.0
    assert abs((new["income"] == 0).mean() - (X["income"] == 0).mean()) < 0.03
    assert abs((labels == ">50K").mean() - (y == ">50K").mean()) < 0.02
    assert abs((groups == "f").mean() - (s == "f").mean()) < 0.02
    cook = (new["job"] == "cook").groupby(labels.to_numpy()).mean()
    true = (X["job"] == "cook").groupby(y.to_numpy()).mean()
    np.testing.assert_allclose(cook, true, atol=0.06)
    tall = new["height"].groupby(groups.to_numpy()).mean()
    assert 6 < tall["m"] - tall["f"] < 14


def test_labels_and_groups_come_back_in_their_containers(fitted):
    X, y, s = fitted.sample_labels(50, return_sensitive=True, random_state=0)
    assert isinstance(y, pd.Series) and y.name == "pay" and set(y) <= {"<=50K", ">50K"}
    assert isinstance(s, pd.Series) and s.name == "sex" and set(s) == {"f", "m"}
    table, groups = fitted.sample(50, return_sensitive=True, random_state=0)
    assert groups.equals(s)
    pd.testing.assert_frame_equal(table, X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_an_array_comes_back_as_an_array_of_the_dtype_that_is_declared(rows, dtype):
    X = (rows.X * 3).astype(dtype)
    generator = PFGuardGenerator(bounds=(-20.0, 20.0), dtypes=dtype, classes=[0, 1], groups=[0, 1])
    generator.fit(X, rows.y, sensitive_features=rows.groups)
    new, y = generator.sample_labels(17)
    assert isinstance(new, np.ndarray) and new.dtype == dtype and new.shape == (17, 4)
    assert isinstance(y, np.ndarray) and y.dtype == rows.y.dtype and y.shape == (17,)


def test_groups_among_the_columns_are_sampled_as_columns():
    X, y, s = mixed_table()
    X.insert(2, "sex", s)
    X["race"] = pd.Categorical(np.where(np.arange(N) % 3 == 0, "a", "b"))
    groups = [("f", "a"), ("f", "b"), ("m", "a"), ("m", "b")]
    dtypes = {**DTYPES, "race": "category"}
    generator = make(balance="group", sensitive_columns=["sex", "race"], groups=groups, dtypes=dtypes).fit(X, y)
    new, drawn = generator.sample(4000, return_sensitive=True, random_state=0)
    assert list(new.columns) == list(X.columns) and new.dtypes.to_dict() == X.dtypes.to_dict()
    assert generator.n_features_in_ == X.shape[1]
    assert list(zip(new["sex"], new["race"], strict=True)) == list(drawn)
    assert new.value_counts(["sex", "race"]).tolist() == [1000] * 4
    one = make(balance="group", sensitive_columns="sex").fit(X.drop(columns="race"), y).sample(100, random_state=0)
    assert one["sex"].value_counts().to_dict() == {"f": 50, "m": 50}


def test_several_group_columns_come_back_as_a_frame():
    X, y, s = mixed_table()
    groups = pd.DataFrame({"sex": s, "old": np.arange(N) % 2 == 0})
    domain = [("f", False), ("f", True), ("m", False), ("m", True)]
    _, drawn = (
        make(balance="group", groups=domain).fit(X, y, sensitive_features=groups).sample(40, return_sensitive=True)
    )
    assert drawn.dtypes.to_dict() == groups.dtypes.to_dict()
    assert drawn.value_counts().tolist() == [10] * 4


def test_without_labels_and_without_groups():
    X, _, s = mixed_table()
    generator = make(balance=None, classes=None, groups=None).fit(X)
    assert generator.classes_ is None and generator.groups_ is None
    assert generator.sample(5).shape == (5, 10)
    with pytest.raises(ValueError, match="fitted without y"):
        generator.sample_labels(5)
    with pytest.raises(ValueError, match="fitted without groups"):
        generator.sample(5, return_sensitive=True)
    balanced = make(classes=None, balance="group").fit(X, sensitive_features=s)
    assert balanced.sample(10, return_sensitive=True)[1].value_counts().to_dict() == {"f": 5, "m": 5}


# ---- conventions -----------------------------------------------------------------------------------------------
def test_a_pickle_samples_the_same_rows_and_a_clone_is_unfitted(fitted):
    copy = pickle.loads(pickle.dumps(fitted))
    pd.testing.assert_frame_equal(copy.sample(50, random_state=0), fitted.sample(50, random_state=0))
    assert not hasattr(clone(fitted), "model_")
    assert not hasattr(fitted, "score") and not hasattr(fitted, "predict")


@pytest.mark.parametrize("backend", ["marginals", PATEGANBackend(n_teachers=5, n_steps=2, batch_size=4, hidden=(4,))])
def test_a_pickle_holds_no_private_row(backend):
    X, y, s = mixed_table(400)
    X.loc[:2, "job"] = "canary-of-a-row"
    X["height"] = X["height"].astype("float64")
    X.loc[:2, "height"] = [98765.4321, -31415.92653, 27182.81828]
    generator = make(backend=backend, ledger=PrivacyLedger()).fit(X, y, sensitive_features=s)
    stored = pickle.dumps(generator)
    assert b"canary-of-a-row" not in stored
    for canary in (98765.4321, -31415.92653, 27182.81828):
        assert struct.pack("<d", canary) not in stored and struct.pack("<f", canary) not in stored
    sizes = {len(value) for value in vars(generator).values() if hasattr(value, "__len__")}
    assert 400 not in sizes, "something as long as the private table was kept"


def test_what_a_fit_will_certify_is_known_beforehand():
    X, y, s = mixed_table(200)
    generator = make()
    planned = generator.planned_privacy(X, y, sensitive_features=s)
    assert planned.event == generator.fit(X, y, sensitive_features=s).privacy_.event
