"""Ordinary tables that go wrong: what is read of each, or what is said."""

import datetime
import decimal
import pickle
import sys
import warnings
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.model_selection import permutation_test_score

from skfairdp import FairDPSGDClassifier, FairDPSGDRegressor, PFGuardGenerator, RandomizedResponseClassifier
from skfairdp.exceptions import UtilityWarning
from skfairdp.gradient import mlp
from skfairdp.schema import Boolean, Category, Date, Number, Schema

pytestmark = [
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.PrivacyLeakWarning"),
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning"),
]

nan, inf = np.nan, np.inf
SOME = Number(0, 5000, missing=True)
DAYS = Date("1990-01-01", "2030-01-01", missing=True)

#: What a column is declared to be; its cells; what they are read as; how many are missing, unreadable, beyond.
CELLS = {
    "infinity": (SOME, [1.0, inf, -inf], [1, nan, nan], (0, 2, 0)),
    "the largest float": (SOME, [1.0, 1e308, -1e308], [1, nan, nan], (0, 2, 0)),
    "infinity as a text": (SOME, ["1", "inf", "-Infinity"], [1, nan, nan], (0, 2, 0)),
    "infinity where none may be missing": (Number(0, 10), [1.0, inf], [1, 5], (0, 1, 0)),
    "far beyond": (SOME, [1.0, 1e18, -1e39], [1, 5000, 0], (0, 0, 2)),
    "money": (SOME, ["$5", "5", None], [nan, 5, nan], (1, 1, 0)),
    "money with its unit": (Number(0, 5000, unit="$"), ["$5", "-$5", "$ 7", "9"], [5, 0, 7, 9], (0, 0, 1)),
    "thousands": (SOME, ["1,200", "1200"], [nan, 1200], (0, 1, 0)),
    "thousands that are said": (Number(0, 5000, thousands=","), ["1,200", "1200.5"], [1200, 1200.5], (0, 0, 0)),
    "a decimal comma read as thousands": (
        Number(0, 5000, thousands=",", missing=True), ["0,173", "1,20"], [nan, nan], (0, 2, 0)
    ),
    "a decimal comma": (SOME, ["0,173", "0.173"], [nan, 0.173], (0, 1, 0)),
    "a decimal comma that is said": (
        Number(0, 5000, decimal=",", thousands=".", missing=True), ["0,173", "1.200,5", "1.20"], [0.173, 1200.5, nan],
        (0, 1, 0),
    ),
    "per cent": (SOME, ["5 %", "5"], [nan, 5], (0, 1, 0)),
    "per cent that is said": (Number(0, 100, unit="%"), ["5 %", "5%", "5"], [5, 5, 5], (0, 0, 0)),
    "dates with slashes": (DAYS, ["25/04/2001", "2001-04-25"], [nan, 11437], (0, 1, 0)),
    "dates with slashes, said": (
        Date("1990-01-01", "2030-01-01", format="%d/%m/%Y"), ["25/04/2001"], [11437], (0, 0, 0)
    ),
    "dates with points": (DAYS, ["04.03.2019"], [nan], (0, 1, 0)),
    "date objects": (DAYS, [datetime.date(2001, 4, 25), pd.NaT, None], [11437, nan, nan], (2, 0, 0)),
    "an infinite day": (DAYS, [inf, 11437.0], [nan, 11437], (0, 1, 0)),
    "Decimals": (SOME, [decimal.Decimal("1.5"), decimal.Decimal("NaN"), decimal.Decimal("sNaN")], [1.5, nan, nan],
                 (2, 0, 0)),
    "lists": (SOME, [[1], 1, {"a": 1}], [nan, 1, nan], (0, 2, 0)),
    "intervals": (SOME, [pd.Interval(0, 1), 1], [nan, 1], (0, 1, 0)),
    "bands that pandas has cut": (Category(["(0, 30]", "(30, 50]"], missing=True),
                                  [pd.Interval(30, 50), pd.Interval(0, 30), pd.Interval(50, 60), None],
                                  [1, 0, nan, nan], (1, 0, 1)),
    "durations": (SOME, [pd.Timedelta(1, "D"), 1], [nan, 1], (0, 1, 0)),
    "bytes": (SOME, [b"7", 7], [nan, 7], (0, 1, 0)),
    "words for nothing": (SOME, ["NA", "?", "", "nan", 3], [nan, nan, nan, nan, 3], (4, 0, 0)),
    "two kinds of nothing": (SOME, [None, nan, pd.NA, 3], [nan, nan, nan, 3], (3, 0, 0)),
    "yes in another language": (Boolean(missing=True), ["yes", "no", "ja"], [1, 0, nan], (0, 1, 0)),
    "truths and texts": (Category(["true", "false"], missing=True), [True, "True", "FALSE", 2], [0, 0, 1, nan],
                         (0, 0, 1)),
    "another case": (Category(["LO", "HI"], missing=True), ["lo", "LO", None], [nan, 0, nan], (1, 0, 1)),
    "a listed question mark": (Category(["?", "a"]), ["?", "a", None], [0, 1, nan], (1, 0, 0)),
    "others": (Category(["a", "other"], others="other"), ["b", None, "a"], [1, 1, 0], (1, 0, 1)),
}  # fmt: skip


@pytest.mark.parametrize("situation", CELLS)
def test_what_is_read_and_what_is_counted(situation):
    column, cells, read, counts = CELLS[situation]
    plain = all(isinstance(cell, float) for cell in cells)
    table = pd.DataFrame({"x": pd.Series(cells, dtype=float if plain else object)})
    schema = Schema({"x": column})
    np.testing.assert_array_equal(schema.numbers(table)["x"], read)
    assert tuple(schema.misfits_by_kind(table).loc["x"]) == counts
    missing, unreadable, beyond = counts
    total = 0 if getattr(column, "others", None) else unreadable + beyond + (0 if column.missing else missing)
    assert schema.misfits(table)["x"] == total
    assert Schema.from_dict(schema.to_dict()) == schema


# ---- groups and labels ---------------------------------------------------------------------------------------------
RNG = np.random.default_rng(0)
TABLE = pd.DataFrame({
    "a": RNG.normal(size=200), "region": RNG.choice(["North", "South"], 200), "y": RNG.choice(["no", "yes"], 200)
})  # fmt: skip
ROLES = {"label": "y", "groups": "region"}


def regional(**region):
    columns = {"a": Number(-3, 3), "region": Category(["North", "South"], **region), "y": Category(["no", "yes"])}
    return Schema(columns, **ROLES)


@pytest.mark.parametrize("cell", [None, "north", "East", pd.NA])
def test_a_group_that_is_not_listed_is_never_another_group(cell):
    table = TABLE.assign(region=TABLE["region"].astype(object).where(np.arange(200) > 28, cell))
    with pytest.raises(ValueError, match=r"'region' of Schema\.read holds a label or a group that is missing or not"):
        regional().read(table)
    schema = regional(missing=True)
    assert schema.group_values == ("North", "South", "missing")
    found = schema.read(table).sensitive_features["region"].value_counts()
    assert found["missing"] == 29 and found["North"] == (table["region"] == "North").sum()


def test_a_misspelt_label_is_said_to_be_one():
    with pytest.raises(ValueError, match=r"'y' of Schema\.read holds a label or a group"):
        regional().read(TABLE.assign(y=TABLE["y"].str.upper()))
    named = Schema({"a": Number(0, 1), "y": Category(["False", "True"])}, label="y")
    assert named.read(pd.DataFrame({"a": [0, 1], "y": [False, True]})).y.tolist() == ["False", "True"]


# ---- names and containers ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "call",
    [Schema.from_public, Schema.template, lambda table: Schema({"a": Number(0, 1)}).misfits(table),
     lambda table: Schema({"a": Number(0, 1)}).read(table), lambda table: Schema.release(table, epsilon=1.0),
     lambda table: FairDPSGDClassifier(classes=[0, 1]).fit(table, [0, 1] * 10),
     lambda table: FairDPSGDClassifier(schema=Schema({"a": Number(0, 1), "y": Boolean()}, label="y")).fit(table),
     lambda table: PFGuardGenerator(bounds=(0, 1)).fit(table)],
)  # fmt: skip
def test_two_columns_of_one_name_are_named(call):
    table = pd.DataFrame(np.zeros((20, 3)), columns=["a", "a", "b"])
    with pytest.raises(ValueError, match="more than one column 'a'"):
        call(table)


def test_columns_may_have_numbers_for_names():
    table = pd.DataFrame({0: np.arange(3000) % 7, 1: RNG.choice(["f", "m"], 3000), 2: RNG.choice(["no", "yes"], 3000)})
    found = Schema.release(table, label=2, groups=[1], epsilon=5.0, known={"0": Number(0, 6)}, noise_seed=0)
    assert (found.label, found.groups, found.features) == ("2", ("1",), ("0",))
    assert found.misfits(table).sum() == 0 and Schema.template(table, label=2)["label"] == "2"
    assert Schema.from_public(table, label=2).read(table).y[:3].tolist() == table[2][:3].tolist()


@pytest.mark.parametrize("library", [pl.from_pandas, pa.Table.from_pandas], ids=["polars", "pyarrow"])
def test_sensitive_columns_are_those_of_any_library(library):
    table, y = TABLE[["a", "region"]], (TABLE["y"] == "yes").to_numpy().astype(int)
    for cls in (RandomizedResponseClassifier, PFGuardGenerator):
        model = cls(classes=[0, 1], groups=["North", "South"], sensitive_columns="region", noise_seed=0, random_state=0)
        if cls is PFGuardGenerator:
            model.set_params(bounds={"a": (-3, 3)})
            found, expected = (
                rows.sample(20, random_state=0) for rows in (model.fit(library(table), y), model.fit(table, y))
            )
            pd.testing.assert_frame_equal(found, expected)
        else:
            expected = model.fit(table, y).predict(table)
            np.testing.assert_array_equal(model.fit(library(table), y).predict(library(table)), expected)


def test_a_permutation_test_may_mix_labels_that_have_an_index():
    model = FairDPSGDClassifier(net=mlp((), max_epochs=1), lam=0, classes=["no", "yes"], noise_seed=0)
    found, expected = (
        permutation_test_score(model, TABLE[["a"]], y, n_permutations=3, cv=2, random_state=0)
        for y in (TABLE["y"], TABLE["y"].to_numpy())
    )
    np.testing.assert_array_equal(found[1], expected[1])


@pytest.mark.parametrize("cell", ["$5", "5"])
def test_a_fit_says_whatever_the_cells_that_nobody_has_looked_at_what_a_schema_misses(cell):
    table, columns = TABLE.assign(pay=cell), {"a": Number(-3, 3), "pay": SOME, "y": Category(["no", "yes"])}

    def said(schema):
        model = FairDPSGDClassifier(net=mlp((), max_epochs=1), lam=0, schema=schema, noise_seed=0)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UtilityWarning)
            model.fit(table)
        return [str(one.message) for one in caught if "was not compared with a table" in str(one.message)]

    schema = Schema(columns, label="y")
    (message,) = said(schema)
    assert said(schema) == said(Schema.from_dict(schema.to_dict())) == [message]  # no fit changes what the next says
    assert "reads 'a', 'pay' by a schema that was not compared" in message and "counts as missing" in message
    looked_at, by_kind = Schema(columns, label="y"), Schema(columns, label="y")
    assert looked_at.misfits(table)["pay"] == by_kind.misfits_by_kind(table).loc["pay", "unreadable"]
    assert said(looked_at) == said(by_kind) == said(pickle.loads(pickle.dumps(looked_at))) == []
    assert said(Schema.from_public(table[["a", "y"]], label="y")) == []


def test_amounts_that_nobody_has_looked_at_are_named_as_well():
    schema = Schema({"a": Number(-3, 3), "pay": Number(0, 9)}, label="pay")
    model = FairDPSGDRegressor(net=mlp((), max_epochs=1), lam=0, schema=schema, noise_seed=0)
    with pytest.warns(UtilityWarning, match="reads 'a', 'pay' by a schema that was not compared"):
        model.fit(TABLE.assign(pay="12,3 EUR"))


def test_rows_whose_features_are_public_are_checked_and_need_no_such_warning():
    schema = Schema({"a": Number(-9, 9), "region": Category(["North", "South"]), "y": Category(["no", "yes"])},
                    label="y", groups="region")  # fmt: skip
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = RandomizedResponseClassifier(schema=schema, noise_seed=0).fit(TABLE)
    assert not any("was not compared with a table" in str(one.message) for one in caught)
    assert not any("cannot be read" in fact.consequence for fact in model.privacy_.public)


FAR = [2**53, 2**53 + 1, 2**53 + 2]


@pytest.mark.parametrize("listed", [FAR, [str(number) for number in FAR]], ids=["numbers", "texts"])
@pytest.mark.parametrize(
    "cells",
    [FAR, np.array(FAR), pd.Series(FAR, dtype="UInt64"), pd.Series(FAR, dtype="int64[pyarrow]"), [*map(str, FAR)],
     pd.Series(FAR, dtype="category")],
    ids=["list", "array", "nullable", "arrow", "texts", "categorical"],
)  # fmt: skip
def test_whole_numbers_next_to_each_other_stay_apart_however_large(listed, cells):
    """Found: read by way of floats, where 2^53 and 2^53 + 1 are one, and none of three sites was a misfit."""
    column = Category(listed)
    assert column.read(cells).tolist() == [0, 1, 2]
    assert Schema({"x": column}).misfits(pd.DataFrame({"x": cells}))["x"] == 0


def test_a_float_that_may_have_been_any_of_several_whole_numbers_is_none_of_them():
    far = np.array(FAR, dtype=float)  # as readers of files make it where a cell is empty
    assert np.isnan(Category(FAR).read(far)).all() and np.isnan(Category([str(FAR[0])]).read(far)).all()
    assert Category([2.0**60, 1]).read([2.0**60, 1.0, 2**60]).tolist() == [0, 1, 0]
    missing = pd.Series([1, None, 3], dtype="Int64")
    assert np.array_equal(Category([3, 1], missing=True).read(missing), [1, np.nan, 0], equal_nan=True)


@pytest.mark.parametrize(
    "dtype", [object, "str", "string", pd.ArrowDtype(pa.string()), pd.ArrowDtype(pa.large_string())]
)
def test_words_for_nothing_are_missing_in_texts_of_every_library(dtype):
    """Found: four cells of a column of pyarrow counted as unreadable."""
    table = pd.DataFrame({
        "n": pd.Series(["1", "?", "NA", "", None, "x"], dtype=dtype),
        "c": pd.Series(["a", "?", "NA", "", None, "x"], dtype=dtype),
    })  # fmt: skip
    counts = Schema({"n": Number(0, 10, missing=True), "c": Category(["a"], missing=True)}).misfits_by_kind(table)
    assert counts.loc["n"].tolist() == [4, 1, 0] and counts.loc["c"].tolist() == [4, 0, 1]


@pytest.mark.parametrize("dtype", ["str", pd.ArrowDtype(pa.string()), "category"])
def test_texts_of_every_library_are_read_once(dtype):
    """Found: categories of pyarrow's texts were categories again, a thousand levels deep, with a copy at each."""
    cells, calls = pd.Series(["1,5", "2,5", None]).astype(dtype), Counter()
    sys.setprofile(lambda frame, event, arg: calls.update([frame.f_code.co_name] * (event == "call")))
    try:
        numbers = Number(0, 10, decimal=",", missing=True).read(cells)
    finally:
        sys.setprofile(None)
    np.testing.assert_array_equal(numbers, [1.5, 2.5, np.nan])
    assert max(calls.values()) < 100


@pytest.mark.parametrize("dtype", [pd.ArrowDtype(pa.float64()), "Float64", float])
def test_what_is_no_number_is_missing_in_numbers_of_every_library(dtype):
    cells = pd.Series(
        pd.array(pa.array([1.0, np.nan, None]), dtype=dtype) if dtype is not float else [1.0, np.nan, None]
    )
    counts = Schema({"n": Number(0, 10, missing=True)}).misfits_by_kind(pd.DataFrame({"n": cells}))
    assert counts.loc["n"].tolist() == [2, 0, 0]


def test_a_template_that_is_not_filled_in_says_which_column():
    template = Schema.template(TABLE, **ROLES)
    with pytest.raises(ValueError, match=r"must be a Schema, .* Column 'a' .* is not filled in yet: high, low"):
        RandomizedResponseClassifier(schema=template).fit(TABLE)
    with pytest.raises(ValueError, match=r"given as a template .* Schema\.from_dict"):
        Schema(template)
