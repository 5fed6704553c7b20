"""What a user declares of columns, labels and groups, and input that cannot be used."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from skfairdp import PFGuardGenerator, PrivacyLedger, PublicData
from skfairdp.exceptions import BudgetExceededError, PrivacyLeakWarning
from skfairdp.generative import MarginalsBackend, TableCodec
from tests.generative.tables import BOUNDS, CATEGORIES, N, make, mixed_table

# So few rows that a group of them is hardly more than the noise; what is said about it is tested on its own.
pytestmark = pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning")


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
    new, labels = attempt(X, y, s).sample_labels(500, conditions={"sensitive_features": "f"})
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
        ({"balance": {"f": 0.5}}, "'balance' parameter.*dict.*must map each group"),
        ({"balance": {"f": 0.5, "m": 1.5}}, "'balance' parameter.*dict"),
        ({"epsilon": 0.0}, "'epsilon' parameter of PFGuardGenerator"),
        ({"epsilon": np.inf}, "'epsilon' parameter of PFGuardGenerator"),
        ({"delta": 0.0}, "'delta' parameter of PFGuardGenerator"),
        ({"backend": "gan"}, "'backend' parameter of PFGuardGenerator"),
        ({"balance": "labels"}, "'balance' parameter of PFGuardGenerator"),
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
    with pytest.raises(ValueError, match=r"'balance'.*that is a dict needs both y and groups"):
        attempt(X, None, s, classes=None, balance={"f": 0.5, "m": 0.5})
    with pytest.raises(ValueError, match="Turn it into numbers"):
        attempt(X.assign(age=pd.Timestamp("2020-01-01")), y, s, bounds=None, dtypes=None)
    with pytest.raises(ValueError, match="neither numbers nor categories"):
        attempt(X.assign(job=[["a"]] * 50), y, s, categories={"level": ["low"]})
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        attempt(X[:0], y[:0], s[:0])
    with pytest.raises(ValueError, match="no column of X"):  # sparse rows are written out, and have no names
        attempt(scipy.sparse.eye(50).tocsr(), y, s)


def test_a_budget_that_is_spent_is_noticed_before_any_release():
    X, y, s = mixed_table(200)
    ledger = PrivacyLedger(epsilon=7.0)
    make(ledger=ledger).fit(X, y, sensitive_features=s)
    with pytest.raises(BudgetExceededError):
        make(ledger=ledger).fit(X, y, sensitive_features=s)
    assert len(ledger.entries) == 1
