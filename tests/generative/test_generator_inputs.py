"""What a user declares of columns, labels and groups, and input that cannot be used."""

import io
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from sklearn.linear_model import LogisticRegression

from skfairdp import (
    FairDPSGDClassifier,
    FairPATEClassifier,
    PFGuardGenerator,
    PFLDClassifier,
    PrivacyLedger,
    PublicData,
    SyntheticDataClassifier,
)
from skfairdp.exceptions import BudgetExceededError, PrivacyLeakWarning, UtilityWarning
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


def test_amounts_that_are_decimals_are_numbers_whose_own_values_no_row_that_is_drawn_has():
    amounts = np.random.default_rng(0).normal(300, 90, 2000).round(2)
    X = pd.DataFrame({"amount": [Decimal(f"{amount:.2f}") for amount in amounts]})
    with pytest.warns(PrivacyLeakWarning, match="read the types"):
        generator = PFGuardGenerator(epsilon=10, balance=None, random_state=0).fit(X)
    drawn = generator.sample(2000, random_state=0).amount
    assert drawn.dtype == np.float64 and drawn.isin(amounts).mean() < 0.1 and 200 < drawn.median() < 400


@pytest.mark.parametrize("odd", [None, pd.NA, np.nan, 10**25, 10**400])
def test_one_odd_cell_among_numbers_makes_no_list_of_their_column(odd):
    X = np.random.default_rng(0).normal(size=(300, 2)).astype(object)
    X[0, 0] = odd
    with pytest.warns(PrivacyLeakWarning, match="read the types"):
        generator = PFGuardGenerator(epsilon=1000, balance=None, random_state=0).fit(X)
    new = generator.sample(2000, random_state=0)
    assert new.dtype == np.float64 and len(np.unique(new[:, 0])) > 1000


@pytest.mark.parametrize("listed", [[1, 2, 3], [1.0, 2.0, 3.0], ["1", "2", "3"], [True, False]])
@pytest.mark.parametrize("known", ["categories", "public rows"])
def test_one_odd_cell_takes_no_other_out_of_its_list_by_making_texts_of_their_column(listed, known):
    rng = np.random.default_rng(0)
    cells = rng.choice(np.array(listed, dtype=object), 2000).tolist()
    read = pd.read_csv(io.StringIO("\n".join(["level", *map(str, cells[:-1]), "?"])))
    public = pd.DataFrame({"level": pd.Categorical(listed)}) if known == "public rows" else None
    given = {} if known == "public rows" else {"categories": {"level": listed}}
    generator = PFGuardGenerator(epsilon=50, balance=None, random_state=0, **given)
    found = [
        generator.fit(table, X_public=public).sample(2000, random_state=0).level.value_counts(normalize=True)
        for table in (pd.DataFrame({"level": cells}), read)
    ]
    assert set(found[0].index) == set(listed) and (found[0] - found[1]).abs().max() < 0.01


def test_a_cell_beyond_all_floats_stops_no_learner_that_has_paid():
    rng = np.random.default_rng(0)
    X, y, groups = rng.normal(size=(300, 2)), rng.integers(0, 2, 300), rng.integers(0, 2, 300)
    rows = [[10**400, 1.0], *X[1:].tolist()]
    for seed in range(5):
        model = SyntheticDataClassifier(epsilon=3, classes=[0, 1], groups=[0, 1], random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert model.fit(rows, y, sensitive_features=groups).predict(X[:3]).shape == (3,)


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
    with pytest.raises(ValueError, match=r"Column 'job' of X of .* neither numbers nor categories"):
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


# ---- numbers and types that are no usual ones ------------------------------------------------------------------------
def numbers(of_column, n_rows=2000):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.standard_normal(n_rows), "b": rng.standard_normal(n_rows)})
    return table.assign(a=of_column(table["a"])), rng.integers(2, size=n_rows), rng.integers(2, size=n_rows)


def sampled(of_column, **options):
    X, y, s = numbers(of_column)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        generator = PFGuardGenerator(epsilon=5.0, classes=[0, 1], groups=[0, 1], random_state=0, **options)
        return generator.fit(X, y, sensitive_features=s).sample(2000, random_state=0)["a"]


@pytest.mark.parametrize("options", [{}, {"bounds": {"a": (-5, 5), "b": (-5, 5)}}])
def test_infinity_is_as_missing_and_no_number_far_off(options):
    """A tenth of the cells says nothing of how large numbers are; with bounds it is none of them either."""
    found = sampled(lambda a: a.where(np.arange(len(a)) % 10 > 0, np.inf), **options)
    assert found.isna().mean() == pytest.approx(0.1, abs=0.03) and found.abs().max() < 6


@pytest.mark.parametrize("factor", [1e-12, 1e30])
def test_numbers_that_are_not_told_apart_are_told_of(factor):
    with pytest.warns(UtilityWarning, match=r"Many numbers of 'a' are smaller than 9e-10 or larger than 1e\+18"):
        sampled(lambda a: a * factor)


@pytest.mark.parametrize(
    "of_column", [lambda a: a * 1e-6, lambda a: a * 1e15, lambda a: (a > 0) * 1.0, lambda a: 0 * a]
)
def test_numbers_that_are_told_apart_and_zeros_are_not_told_of(of_column):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UtilityWarning)
        assert len(sampled(of_column)) == 2000


@pytest.mark.filterwarnings("ignore::skfairdp.exceptions.UtilityWarning")
@pytest.mark.parametrize(("factor", "is_told"), [(1.0, False), (1e-12, True), (1e30, True)])
def test_so_does_a_fit_that_samples_its_own_questions(factor, is_told):
    X, y, s = numbers(lambda a: a * factor)
    model = FairPATEClassifier(epsilon=5.0, gamma=0.3, classes=[0, 1], groups=[0, 1], random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y, sensitive_features=s)
    assert any("Many numbers of column 0" in str(one.message) for one in caught) == is_told


def test_a_public_column_of_tiny_numbers_is_scaled():
    X, y, s = numbers(lambda a: a * 1e-12, 3000)
    y = (X["a"] * 1e12 + np.random.default_rng(1).logistic(size=len(y)) > 0).astype(int)
    model = PFLDClassifier(epsilon=5.0, classes=[0, 1], groups=[0, 1], random_state=0).fit(X, y, sensitive_features=s)
    assert model.score(X, y) > 0.62  # .5 where the column counts as zero


UNUSUAL = {
    "half precision": (lambda a: a.astype(np.float16), "float16"),
    "quadruple precision": (lambda a: a.astype(np.longdouble), "float64"),
    "bytes": (lambda a: (50 * a).clip(0, 200).round().astype("uint8"), "uint8"),
    "bytes or nothing": (lambda a: (50 * a).clip(0, 200).round().astype("UInt8"), "UInt8"),
    "sparse": (lambda a: a.where(a > 0, 0).astype(pd.SparseDtype(float, 0.0)), "float64"),
    "decimals": (
        lambda a: pd.Series(
            [Decimal(f"{x:.2f}") for x in a], dtype=pd.ArrowDtype(pytest.importorskip("pyarrow").decimal128(10, 2))
        ),
        "float64",
    ),
}


@pytest.mark.parametrize("kind", UNUSUAL)
def test_columns_of_unusual_types_are_sampled_and_learned_from(kind):
    of_column, dtype = UNUSUAL[kind]
    found = sampled(of_column)
    assert str(found.dtype) == dtype and np.isfinite(found.astype(float)).all()
    X, y, s = numbers(of_column)
    given = {"epsilon": 5.0, "classes": [0, 1], "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        SyntheticDataClassifier(LogisticRegression(), groups=[0, 1], **given).fit(X, y, sensitive_features=s).predict(X)
        FairDPSGDClassifier(lam=0.0, **given).fit(X, y).predict(X)


@pytest.mark.filterwarnings("ignore::skfairdp.exceptions.PrivacyLeakWarning")
@pytest.mark.parametrize(
    ("of_column", "said"),
    [
        (lambda a: pd.period_range("2000", periods=len(a), freq="D"), r"Column 'a' .* categories, such as Period"),
        (lambda a: pd.Categorical([("x", 1), ("y", 2)] * (len(a) // 2)), "neither numbers nor categories"),
    ],
)
def test_a_column_of_no_usual_kind_is_blamed_itself_before_anything_is_paid(of_column, said):
    X, y, s = numbers(of_column)
    ledger = PrivacyLedger(epsilon=10.0)
    model = SyntheticDataClassifier(LogisticRegression(), classes=[0, 1], groups=[0, 1], ledger=ledger)
    with pytest.raises(ValueError, match=said) as problem:
        model.fit(X, y, sensitive_features=s)
    assert "estimator" not in str(problem.value) and not ledger.entries


@pytest.mark.parametrize("masked", [0, 1])
@pytest.mark.parametrize("dtype", [float, int])
def test_a_masked_entry_counts_as_missing_and_stops_nothing(masked, dtype):
    """One of one record made a fit fail that went on without it."""
    rng = np.random.default_rng(0)
    mask = np.arange(1500).reshape(500, 3) < masked
    X = np.ma.array((3 * rng.normal(size=(500, 3))).astype(dtype), mask=mask)
    given = {"bounds": (-9, 9), "dtypes": float, "classes": [0, 1], "groups": [0, 1], "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        generator, model = (
            make.fit(X, rng.integers(2, size=500), sensitive_features=rng.integers(2, size=500))
            for make in (
                PFGuardGenerator(epsilon=1.0, **given),
                SyntheticDataClassifier(LogisticRegression(), epsilon=1.0, gamma=0.1, **given),
            )
        )
        assert model.predict(X).shape == (500,)
    assert generator.sample(100).shape == (100, 3)


def test_cells_to_predict_that_cannot_be_read_are_told_without_a_schema_too():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.integers(17, 90, 500), "job": rng.choice(["a", "b"], 500)})
    how = {"bounds": {"age": (17, 90)}, "categories": {"job": ["a", "b"]}, "dtypes": {"age": int}, "classes": [0, 1]}
    model = SyntheticDataClassifier(LogisticRegression(), epsilon=5.0, random_state=0, **how)
    model.fit(table, (table["age"] > 50).astype(int))
    with pytest.warns(UtilityWarning, match="500 of 'age': they count as missing"):
        model.predict(table.assign(age=table["age"].astype(str) + "%"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(table)
        model.predict(table.assign(age=table["age"].where(table.index > 9)))  # nobody said that none is missing


def test_rows_of_an_array_are_predicted_by_their_places_after_a_fit_of_a_table():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.normal(size=500), "pay": rng.normal(size=500)})
    model = SyntheticDataClassifier(LogisticRegression(), bounds=(-4, 4), dtypes=float, classes=[0, 1], random_state=0)
    model.fit(table, (table["pay"] > 0).astype(int))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        np.testing.assert_array_equal(model.predict(table.to_numpy()), model.predict(table))
    model.fit(table.to_numpy(), (table["pay"] > 0).to_numpy().astype(int))
    with pytest.warns(UserWarning, match="X has feature names"):
        np.testing.assert_array_equal(model.predict(table.to_numpy()), model.predict(table))


@pytest.mark.filterwarnings("ignore:Determining the column names of a LazyFrame")
@pytest.mark.parametrize("rows", [None, 3, pl.LazyFrame({"0": [1.0], "1": [2.0]})], ids=["none", "number", "lazy"])
def test_what_is_no_table_is_named_by_its_kind(rows):
    X = np.random.default_rng(0).normal(size=(300, 2))
    model = SyntheticDataClassifier(LogisticRegression(), classes=[0, 1], bounds=(-4, 4), dtypes=float)
    model.fit(X, (X[:, 0] > 0).astype(int))
    with pytest.raises(ValueError, match=f"must be a DataFrame, an array or rows. Got {type(rows).__name__}: read"):
        model.predict(rows)


def test_complex_numbers_of_a_table_are_the_real_ones_that_they_are():
    """One complex cell makes all of its column complex: a refusal would tell that there is one."""
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(500, 3))).add_prefix("x")
    y = (table["x0"] > 0).astype(int)
    model = SyntheticDataClassifier(LogisticRegression(), bounds=(-4, 4), dtypes=float, classes=[0, 1], epsilon=9)
    assert (model.fit(table + 0j, y).predict(table) == y).mean() > 0.8


@pytest.mark.parametrize("wrap", [np.asarray, np.ma.array])
def test_complex_arrays_are_refused_before_anything_is_paid(wrap):
    ledger, rng = PrivacyLedger(), np.random.default_rng(0)
    model = SyntheticDataClassifier(LogisticRegression(), bounds=(-4, 4), classes=[0, 1], ledger=ledger)
    with pytest.raises(ValueError, match="Complex data not supported"):
        model.fit(wrap(rng.normal(size=(500, 3)) + 0j), rng.integers(2, size=500))
    assert not ledger.entries
