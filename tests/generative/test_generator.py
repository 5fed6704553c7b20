"""PFGuardGenerator for its users: containers, dtypes, missing values, balance, conditions, bad input."""

import pickle
import struct
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone

from skfairdp import PFGuardGenerator, PrivacyLedger, PublicData
from skfairdp.exceptions import BudgetExceededError, FairnessWarning, PrivacyLeakWarning
from skfairdp.generative import MarginalsBackend, PATEGANBackend, TableCodec
from skfairdp.generative._group_rates import given_label_rates, target_rates

# So few rows that a group of them is hardly more than the noise; what is said about it is tested on its own.
pytestmark = pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning")

N = 3000
DTYPES = {
    "age": np.dtype("int64"),
    "small": np.dtype("uint8"),
    "height": np.dtype("float32"),
    "income": np.dtype("float64"),
    "visits": pd.Int32Dtype(),
    "job": np.dtype("O"),
    "town": "string",
    "level": pd.CategoricalDtype(["low", "mid", "high"], ordered=True),
    "married": np.dtype("bool"),
    "maybe": pd.BooleanDtype(),
}
BOUNDS = {"age": (17, 90), "small": (0, 9), "height": (100.0, 220.0), "visits": (0, 50)}
CATEGORIES = {
    "job": ["cook", "smith"],
    "town": ["here", "there"],
    "level": ["low", "mid", "high"],
    "maybe": [False, True],
}


def mixed_table(n=N, seed=0):
    rng = np.random.default_rng(seed)
    group = rng.random(n) < 0.3
    y = (rng.random(n) < np.where(group, 0.1, 0.4)).astype(int)
    job = np.where(rng.random(n) < 0.2 + 0.5 * y, "cook", "smith").astype(object)
    job[rng.random(n) < 0.1] = None
    visits = pd.array(rng.poisson(4, n), dtype="Int32")
    visits[rng.random(n) < 0.2] = pd.NA
    maybe = pd.array(rng.random(n) < 0.5, dtype="boolean")
    maybe[rng.random(n) < 0.3] = pd.NA
    income = np.where(rng.random(n) < 0.5, 0.0, rng.lognormal(8, 2, n))
    income[rng.random(n) < 0.15] = np.nan
    frame = pd.DataFrame(
        {
            "age": rng.integers(17, 91, n),
            "small": rng.integers(0, 10, n).astype("uint8"),
            "height": rng.normal(170 - 10 * group, 8, n).astype("float32"),
            "income": income,
            "visits": visits,
            "job": job,
            "town": pd.array(np.where(rng.random(n) < 0.6, "here", "there"), dtype="string"),
            "level": pd.Categorical(rng.choice(["low", "mid", "high"], n), ["low", "mid", "high"], ordered=True),
            "married": rng.random(n) < 0.5,
            "maybe": maybe,
        }
    )
    sex = pd.Series(np.where(group, "f", "m"), name="sex")
    return frame, pd.Series(np.where(y == 1, ">50K", "<=50K"), name="pay"), sex


def make(**more):
    given = {
        "epsilon": 5.0,
        "bounds": BOUNDS,
        "categories": CATEGORIES,
        "dtypes": DTYPES,
        "classes": ["<=50K", ">50K"],
        "groups": ["f", "m"],
        "random_state": 0,
    }
    return PFGuardGenerator(**{**given, **more})


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
    generator = make(epsilon=50.0, balance=None, label_rates=None).fit(X, y, sensitive_features=s)
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
    generator = make(sensitive_columns=["sex", "race"], groups=groups, dtypes=dtypes).fit(X, y)
    new, drawn = generator.sample(4000, return_sensitive=True, random_state=0)
    assert list(new.columns) == list(X.columns) and new.dtypes.to_dict() == X.dtypes.to_dict()
    assert generator.n_features_in_ == X.shape[1]
    assert list(zip(new["sex"], new["race"], strict=True)) == list(drawn)
    assert new.value_counts(["sex", "race"]).tolist() == [1000] * 4
    one = make(sensitive_columns="sex").fit(X.drop(columns="race"), y).sample(100, random_state=0)
    assert one["sex"].value_counts().to_dict() == {"f": 50, "m": 50}


def test_several_group_columns_come_back_as_a_frame():
    X, y, s = mixed_table()
    groups = pd.DataFrame({"sex": s, "old": np.arange(N) % 2 == 0})
    domain = [("f", False), ("f", True), ("m", False), ("m", True)]
    _, drawn = make(groups=domain).fit(X, y, sensitive_features=groups).sample(40, return_sensitive=True)
    assert drawn.dtypes.to_dict() == groups.dtypes.to_dict()
    assert drawn.value_counts().tolist() == [10] * 4


def test_without_labels_and_without_groups():
    X, _, s = mixed_table()
    generator = make(balance=None, label_rates=None, classes=None, groups=None).fit(X)
    assert generator.classes_ is None and generator.groups_ is None
    assert generator.sample(5).shape == (5, 10)
    with pytest.raises(ValueError, match="fitted without y"):
        generator.sample_labels(5)
    with pytest.raises(ValueError, match="fitted without groups"):
        generator.sample(5, return_sensitive=True)
    balanced = make(classes=None, balance="group", label_rates=None).fit(X, sensitive_features=s)
    assert balanced.sample(10, return_sensitive=True)[1].value_counts().to_dict() == {"f": 5, "m": 5}


# ---- rates of groups and labels --------------------------------------------------------------------------------
def test_groups_are_equally_frequent_and_labels_independent_of_them():
    X, y, s = mixed_table()
    generator = make(label_rates=None).fit(X, y, sensitive_features=s)
    _, labels, groups = generator.sample_labels(10_000, return_sensitive=True)
    table = pd.crosstab(groups, labels, normalize="index")
    assert groups.value_counts().tolist() == [5000, 5000]
    assert abs(table.loc["f", ">50K"] - table.loc["m", ">50K"]) < 1e-3
    assert abs(table.loc["f", ">50K"] - (y == ">50K").mean()) < 0.02


def test_balance_group_keeps_each_groups_own_rates_of_the_label():
    X, y, s = mixed_table()
    generator = make(balance="group", label_rates=None).fit(X, y, sensitive_features=s)
    rates = generator.rates_[:, 1] / generator.rates_.sum(axis=1)
    np.testing.assert_allclose(generator.rates_.sum(axis=1), 0.5)
    np.testing.assert_allclose(rates, [(y[s == g] == ">50K").mean() for g in "fm"], atol=0.03)


def test_a_group_within_the_noise_is_named_by_its_released_number_only():
    X, y, s = mixed_table()
    tiny = s.where(s.index > 5, "x")
    said = r"1 of the 3 groups .* released count below \d+, four standard deviations"
    with pytest.warns(FairnessWarning, match=said) as caught:
        make(groups=["f", "m", "x"]).fit(X, y, sensitive_features=tiny)
    assert caught[0].filename == __file__ and "'x'" not in str(caught[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FairnessWarning)
        make().fit(X, y, sensitive_features=s)
        make(groups=["f", "m", "x"], balance=None, label_rates=None).fit(X, y, sensitive_features=tiny)


def test_label_rates_are_what_is_sampled():
    X, y, s = mixed_table()
    generator = make(label_rates={"f": 0.7, "m": [0.9, 0.1]}).fit(X, y, sensitive_features=s)
    np.testing.assert_allclose(generator.rates_, [[0.15, 0.35], [0.45, 0.05]])
    shares = target_rates(np.array([[0.1, 0.1], [0.4, 0.4]]), None, given_label_rates({0: 0.5, 1: 1.0}, [0, 1], 2, "x"))
    np.testing.assert_allclose(shares, [[0.1, 0.1], [0.0, 0.8]])


def test_fair_rates_lower_the_unfairness_of_a_classifier_trained_on_the_rows():
    from sklearn.naive_bayes import GaussianNB

    from skfairdp.datasets import make_biased_classification
    from skfairdp.metrics import demographic_disparity

    data = make_biased_classification(12_000, disparity=0.4, group_sep=2.0, random_state=0)
    X, y, s = (part[:9000] for part in data)
    gaps = {}
    for name, settings in {
        "none": {"balance": None, "label_rates": None},
        "equal": {"label_rates": None},
        "fair": {},
    }.items():
        generator = PFGuardGenerator(epsilon=5.0, bounds=(-6.0, 6.0), classes=[0, 1], groups=[0, 1], **settings)
        generator.fit(X, y, sensitive_features=s)
        model = GaussianNB().fit(*generator.sample_labels(20_000, random_state=0))
        predicted = model.predict(data[0][9000:])
        gaps[name] = demographic_disparity(None, predicted, sensitive_features=data[2][9000:])
    assert gaps["fair"] <= gaps["equal"] + 0.02
    assert gaps["equal"] < gaps["none"] - 0.1


def test_conditions_fix_the_label_the_group_or_both(fitted):
    _, y, s = fitted.sample_labels(200, conditions={"y": ">50K"}, return_sensitive=True)
    assert set(y) == {">50K"} and set(s) == {"f", "m"}
    _, y, s = fitted.sample_labels(200, conditions={"sensitive_features": "f", "y": "<=50K"}, return_sensitive=True)
    assert set(y) == {"<=50K"} and set(s) == {"f"}


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ({"y": "a lot"}, "asks for y='a lot', which is not among the 2 known ones"),
        ({"sensitive_features": "x"}, "not among the 2 known ones"),
        ({"age": 3}, "must be a dict with the keys 'y' and 'sensitive_features'"),
        ([("y", ">50K")], "must be a dict"),
    ],
)
def test_unseen_conditions_are_errors(fitted, conditions, message):
    with pytest.raises(ValueError, match=message):
        fitted.sample(10, conditions=conditions)


@pytest.mark.parametrize("n_samples", [0, -1, 2.5, True, "ten"])
def test_numbers_of_rows_that_are_none(fitted, n_samples):
    with pytest.raises(ValueError, match=r"n_samples of PFGuardGenerator\.sample must be an integer >= 1"):
        fitted.sample(n_samples)


def test_random_state_fixes_the_sample_and_nothing_else_does(fitted):
    pd.testing.assert_frame_equal(fitted.sample(100, random_state=3), fitted.sample(100, random_state=3))
    assert not fitted.sample(100, random_state=3).equals(fitted.sample(100, random_state=4))
    assert not fitted.sample(100).equals(fitted.sample(100))


# ---- bounds, categories, references ----------------------------------------------------------------------------
def test_values_beyond_the_bounds_count_as_the_bound_and_unknown_categories_are_never_sampled():
    X, y, s = mixed_table()
    narrow = {**BOUNDS, "age": (30, 40)}
    known = {**CATEGORIES, "job": ["cook", "judge"]}
    new = make(bounds=narrow, categories=known).fit(X, y, sensitive_features=s).sample(3000)
    assert new["age"].between(30, 40).all()
    assert (new["age"] == 40).mean() > 0.4  # most rows are older
    assert "smith" not in set(new["job"].dropna())


@pytest.mark.parametrize("strange", [["a"], ("a", ["b"]), {"a": 1}])
def test_a_private_value_of_no_category_at_all_fails_no_fit_that_is_paid_for(strange):
    cells = ["a", "b"] * 50
    cells[3] = strange
    X = pd.DataFrame({"c": pd.Series(cells, dtype=object)})
    generator = PFGuardGenerator(epsilon=1000, categories={"c": ["a", "b"]}, balance=None).fit(X)
    assert set(generator.sample(100, random_state=0)["c"].dropna()) == {"a", "b"}


def test_public_rows_give_bins_and_categories_without_a_release_or_a_warning():
    X, y, s = mixed_table()
    public = mixed_table(300, seed=9)[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyLeakWarning)
        paid = make(bounds=None, categories=CATEGORIES).fit(X, y, sensitive_features=s)
        free = make(bounds=None, categories=None).fit(X, y, sensitive_features=s, X_public=PublicData(public))
    assert set(free.sample(2000)["age"]) <= set(range(public["age"].min(), public["age"].max() + 1))
    from skfairdp.privacy import flatten

    assert len(flatten(paid.privacy_.event)) == len(flatten(free.privacy_.event)) + 1
    assert paid.privacy_.epsilon <= 5.0 and free.privacy_.epsilon <= 5.0


def test_unbounded_numbers_are_paid_for_and_keep_their_scale():
    X, y, s = mixed_table(20_000)
    X["income"] *= 1e6
    new = make(bounds=None, epsilon=3.0).fit(X, y, sensitive_features=s).sample(5000, random_state=0)
    assert abs((new["income"] == 0).mean() - (X["income"] == 0).mean()) < 0.05
    for quantile in (0.6, 0.75, 0.9):
        assert 0.5 < new["income"].quantile(quantile) / X["income"].quantile(quantile) < 2
    assert abs(new["age"].mean() - X["age"].mean()) < 6


def read_of(model):
    """Names of what was read from private rows outside the guarantee."""
    return {fact.name for fact in model.privacy_.public if fact.how == "read" and "outside" in fact.consequence}


def test_categories_of_private_rows_leak_and_the_warning_says_how_to_give_them():
    X, y, s = mixed_table()
    with pytest.warns(PrivacyLeakWarning, match="categories of 2 column.*'job', 'town'.*'categories'") as caught:
        leaky = make(categories={"level": ["low", "mid", "high"]}).fit(X, y, sensitive_features=s)
    assert caught[0].filename == __file__
    assert "type or categories of column 'job'" in read_of(leaky)
    with pytest.warns(PrivacyLeakWarning, match="types or categories of 1 column.*'age'"):
        make(bounds=None, dtypes={"income": float}, categories={}).fit(X[["age", "income"]], y, sensitive_features=s)
    with pytest.warns(PrivacyLeakWarning, match="its groups"):
        leaky = make(groups=None).fit(X, y, sensitive_features=s)
    assert "names of the groups" in read_of(leaky)
    with pytest.warns(PrivacyLeakWarning, match="its classes"):
        leaky = make(classes=None).fit(X, y, sensitive_features=s)
    assert "classes" in read_of(leaky)


# ---- bad input -------------------------------------------------------------------------------------------------
def attempt(X, y, s, **more):
    ledger = PrivacyLedger()
    try:
        return make(ledger=ledger, **more).fit(X, y, sensitive_features=s)
    except Exception:
        assert ledger.entries == (), "the fit failed after it had been charged"
        raise


def test_columns_that_say_nothing():
    X, y, s = mixed_table()
    X = X[["age", "height"]].assign(same=7, empty=np.nan, none=pd.Series([None] * N, dtype=object), one="x")
    numbers = {"height": float, "same": int, "empty": float}
    generator = attempt(X, y, s, bounds={"age": (17, 90)}, categories={"none": ["a"], "one": ["x"]}, dtypes=numbers)
    new = generator.sample(500)
    assert set(new["one"]) == {"x"} and list(new.columns) == list(X.columns)
    assert new["empty"].isna().mean() > 0.95 and new["none"].isna().mean() > 0.95
    assert abs(new["same"].median() - 7) <= 1


def test_a_class_that_a_group_lacks_and_a_group_without_rows():
    X, y, s = mixed_table()
    y = y.where(s == "m", "<=50K")
    new, labels = attempt(X, y, s, label_rates=None).sample_labels(500, conditions={"sensitive_features": "f"})
    assert len(new) == 500 and (labels == ">50K").any()  # its columns are those of the other group's label
    with_empty = attempt(X, y, s, groups=["f", "m", "x"])
    assert len(with_empty.sample(30, conditions={"sensitive_features": "x"})) == 30


def test_one_row_and_one_column():
    X, y, s = mixed_table()
    assert attempt(X[:1], y[:1], s[:1]).sample(3).shape == (3, 10)
    assert attempt(X[["age"]], y, s, bounds={"age": (0, 99)}, categories=None, dtypes=int).sample(3).shape == (3, 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bounds": {"age": (90, 17)}}, "'bounds' parameter.*two finite numbers"),
        ({"bounds": {"age": (0, np.inf)}}, "'bounds' parameter.*two finite numbers"),
        ({"bounds": {"agee": (0, 1)}}, "names 'agee', which is no column of X"),
        ({"bounds": {"job": (0, 1)}, "categories": CATEGORIES}, "'bounds' parameter.*holds no numbers"),
        ({"categories": {"job": []}}, "'categories' parameter.*must be a list of labels"),
        ({"label_rates": {"f": 0.5}}, "'label_rates' parameter.*must map each group"),
        ({"label_rates": {"f": 0.5, "m": 1.5}}, "'label_rates' parameter"),
        ({"epsilon": 0.0}, "'epsilon' parameter of PFGuardGenerator"),
        ({"epsilon": np.inf}, "'epsilon' parameter of PFGuardGenerator"),
        ({"delta": 0.0}, "'delta' parameter of PFGuardGenerator"),
        ({"backend": "gan"}, "'backend' parameter of PFGuardGenerator"),
        ({"balance": "label"}, "'balance' parameter of PFGuardGenerator"),
        ({"backend": MarginalsBackend(structure="ring")}, "'structure' parameter of MarginalsBackend"),
        ({"backend": MarginalsBackend(budget_split={"tables": 0.5, "scores": 0.5, "pairs": 0.5})}, "add up to 1"),
        ({"backend": MarginalsBackend(budget_split={"tables": 0.5, "scores": 0.5})}, "'tables', 'scores', 'pairs'"),
        ({"backend": MarginalsBackend(structure="star", budget_split={"pairs": 1.0})}, "each of 'tables', and"),
        ({"codec": "bytes"}, "'codec' parameter of PFGuardGenerator"),
        ({"codec": TableCodec(n_bins=1)}, "'n_bins' parameter of TableCodec"),
    ],
)
def test_unusable_parameters(change, message):
    with pytest.raises(ValueError, match=message):
        attempt(*mixed_table(50), **change)


def test_unusable_rows():
    X, y, s = mixed_table(50)
    with pytest.raises(ValueError, match="needs the groups of the private rows"):
        attempt(X, y, None)
    with pytest.raises(ValueError, match="Turn it into numbers"):
        attempt(X.assign(age=pd.Timestamp("2020-01-01")), y, s, bounds=None, dtypes=None)
    with pytest.raises(ValueError, match="neither numbers nor categories"):
        attempt(X.assign(job=[["a"]] * 50), y, s, categories={"level": ["low"]})
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        attempt(X[:0], y[:0], s[:0])
    with pytest.raises(TypeError, match="Sparse"):
        attempt(scipy.sparse.eye(50).tocsr(), y, s)


def test_a_budget_that_is_spent_is_noticed_before_any_release():
    X, y, s = mixed_table(200)
    ledger = PrivacyLedger(epsilon=7.0)
    make(ledger=ledger).fit(X, y, sensitive_features=s)
    with pytest.raises(BudgetExceededError):
        make(ledger=ledger).fit(X, y, sensitive_features=s)
    assert len(ledger.entries) == 1


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
