"""Every estimator fits a raw table by its schema: any dataframe library, label and groups inside or apart."""

import functools
import inspect
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone, is_regressor
from sklearn.model_selection import KFold, cross_val_predict

import skfairdp
from skfairdp.baselines import GroupRandomizer, LagrangianClassifier
from skfairdp.exceptions import UtilityWarning
from skfairdp.gradient import SignedLoss, mlp
from skfairdp.pate import SoftVoting, VoteGate
from skfairdp.schema import Boolean, Category
from tests._tools.inside import PrivateEstimator
from tests._tools.raw import RAW_SCHEMA, raw_rows

pytestmark = [  # of seeded noise, and of few rows
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.PrivacyLeakWarning"),
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.FairnessWarning"),
]

TABLE = raw_rows(300, seed=0)
PUBLIC = raw_rows(90, seed=1)
TEST = raw_rows(40, seed=2)
AMOUNTS = np.arange(len(TABLE), dtype=float)
ROLES = ["income", "sex"]
SEEDED = {"schema": RAW_SCHEMA, "noise_seed": 0}
FEW_STEPS = mlp((), max_epochs=1, batch_size=100)
#: Enough of them to answer with both classes, and otherwise for other labels or another seed.
FEW_FAIR_STEPS = LagrangianClassifier(net=mlp((), max_epochs=8, batch_size=20), dual_steps=3)

#: What is fitted, and whether fit takes public rows.
RECORD = {
    "pate": (skfairdp.PATEClassifier(n_teachers=10, epsilon=5.0, random_state=0, **SEEDED), True),
    "fair_pate": (
        skfairdp.FairPATEClassifier(
            n_teachers=10, epsilon=5.0, gamma=0.2, gate=VoteGate(min_count=5), random_state=0, **SEEDED
        ),
        True,
    ),
    "dpsgd": (skfairdp.FairDPSGDClassifier(net=FEW_STEPS, random_state=0, **SEEDED), True),
    "dpsgd_signed": (skfairdp.FairDPSGDClassifier(net=FEW_STEPS, parity=SignedLoss(), random_state=0, **SEEDED), False),
    "fair_clipping": (skfairdp.FairClippingClassifier(net=FEW_STEPS, random_state=0, **SEEDED), False),
    "synthetic": (skfairdp.SyntheticDataClassifier(n_samples=300, random_state=0, **SEEDED), False),
}
ATTRIBUTE = {
    "pfld": (skfairdp.PFLDClassifier(net=mlp((), max_epochs=1), random_state=0, **SEEDED), False),
    "sf_pate": (
        skfairdp.SFPATEClassifier(
            n_teachers=2, voting=SoftVoting(max_queries=60), fair_estimator=FEW_FAIR_STEPS, random_state=0, **SEEDED
        ),
        False,
    ),
    "randomized_response": (skfairdp.RandomizedResponseClassifier(random_state=0, **SEEDED), False),
}
every_classifier = pytest.mark.parametrize("name", [*RECORD, *ATTRIBUTE])


def made(name):
    return (RECORD | ATTRIBUTE)[name]


def fitted(name, table=TABLE, y=None, **given):
    model, takes_public = made(name)
    public = {"X_public": PUBLIC} if takes_public else {}
    return clone(model).fit(table, y, **{**public, **given})


@functools.cache
def as_it_is(name):
    """The fit of the table itself, with which others are compared. Not to be changed."""
    return fitted(name)


def answers(model, table=TEST):
    found = [model.predict(table)]
    if hasattr(model, "predict_proba"):
        found.append(model.predict_proba(table))
    return found


def assert_same(mine, theirs):
    for a, b in zip(answers(mine), answers(theirs), strict=True):
        np.testing.assert_array_equal(a, b)
    assert mine.privacy_ == theirs.privacy_


@pytest.mark.few(2)
@every_classifier
def test_what_comes_out_of_a_raw_table_is_what_the_schema_says(name):
    model = as_it_is(name)
    assert model.classes_.tolist() == ["<=50K", ">50K"] and model.classes_.dtype == np.dtype("<U5")
    assert model.feature_names_in_.tolist() == [*RAW_SCHEMA.features]
    assert model.n_features_in_ == len(RAW_SCHEMA.features)
    if hasattr(model, "groups_"):
        assert model.groups_.tolist() == ["Female", "Male"]
    assert model.score(TEST) == model.score(TEST, TEST["income"]) == np.mean(model.predict(TEST) == TEST["income"])


@pytest.mark.few(4)
@every_classifier
def test_label_and_groups_may_be_columns_or_arguments(name):
    takes_groups = "sensitive_features" in inspect.signature(made(name)[0].fit).parameters
    apart = {"sensitive_features": TABLE["sex"]} if takes_groups else {}
    table = TABLE.drop(columns=ROLES) if takes_groups else TABLE.drop(columns="income")
    assert_same(as_it_is(name), fitted(name, table, TABLE["income"], **apart))
    listed = {"sensitive_features": TABLE["sex"].tolist()} if takes_groups else {}
    assert_same(as_it_is(name), fitted(name, TABLE, TABLE["income"].tolist(), **listed))


@pytest.mark.few(4)
@every_classifier
def test_predictions_ignore_the_label_and_the_groups(name):
    model = as_it_is(name)
    scrambled = TEST.assign(income="?", sex=range(len(TEST)))
    for a, b, c in zip(
        answers(model), answers(model, TEST.drop(columns=ROLES)), answers(model, scrambled), strict=True
    ):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a, c)


@pytest.mark.few(4)
@every_classifier
def test_cells_of_rows_to_predict_that_cannot_be_read_are_told(name):
    """Found: of a column in which one cell was read no word was said of the others."""
    model, n, last = as_it_is(name), len(TEST), np.arange(len(TEST)) == len(TEST) - 1
    foreign = TEST.assign(
        age="old", job=7, wage=[None] * (n - 1) + ["$5"], hired=TEST["hired"].where(last, "no day"), citizen=None,
    )  # fmt: skip
    said = rf"cannot be read, {n} of 'age', {n} of 'job', 1 of 'wage', {n - 1} of 'hired':"
    with pytest.warns(UtilityWarning, match=said):
        model.predict(foreign)
    with pytest.warns(UtilityWarning, match=r"cannot be read, 1 of 'age':"):  # one row may have a job of its own
        model.predict(foreign[-1:].assign(wage=5.0))
    with pytest.warns(UtilityWarning, match=r"cannot be read, 2 of 'age':"):  # where none may be missing
        model.predict(TEST.assign(age=TEST["age"].where(np.arange(n) > 1)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(TEST.assign(age=200, job=None, wage=-1, hired="NA"))  # as it may be


@pytest.mark.few(4)
@pytest.mark.parametrize("library", [pl.from_pandas, pa.Table.from_pandas], ids=["polars", "pyarrow"])
@every_classifier
def test_all_dataframe_libraries_give_the_same_fit(name, library):
    public = {"X_public": library(PUBLIC)} if made(name)[1] else {}
    other = fitted(name, library(TABLE), **public)
    assert_same(as_it_is(name), other)
    np.testing.assert_array_equal(other.predict(TEST), other.predict(library(TEST)))


@pytest.mark.parametrize("library", [pl.from_pandas, pa.Table.from_pandas], ids=["polars", "pyarrow"])
def test_all_dataframe_libraries_give_the_same_generator(library):
    generator = skfairdp.PFGuardGenerator(random_state=0, **SEEDED)
    mine, theirs = clone(generator).fit(TABLE), clone(generator).fit(library(TABLE))
    pd.testing.assert_frame_equal(mine.sample(50, random_state=0), theirs.sample(50, random_state=0))


def test_samples_are_raw_rows_of_the_schema():
    generator = skfairdp.PFGuardGenerator(random_state=0, **SEEDED).fit(TABLE)
    sampled = generator.sample(200, random_state=0)
    assert list(sampled.columns) == list(RAW_SCHEMA.columns)
    assert RAW_SCHEMA.misfits(sampled).sum() == 0
    assert sampled.dtypes.astype(str).tolist() == [
        "int64", "category", "float64", "datetime64[s]", "boolean", "category", "category",
    ]  # fmt: skip
    X, y, groups = generator.sample_labels(200, return_sensitive=True, random_state=0)
    assert list(X.columns) == list(RAW_SCHEMA.features)
    pd.testing.assert_frame_equal(X, sampled[list(RAW_SCHEMA.features)])
    assert y.tolist() == sampled["income"].tolist() and groups.tolist() == sampled["sex"].tolist()
    assert skfairdp.SyntheticDataClassifier(n_samples=300, **SEEDED).fit(sampled).classes_.tolist() == ["<=50K", ">50K"]


def test_a_generator_without_label_or_groups_samples_the_features_alone():
    features = TABLE.drop(columns=ROLES)
    generator = skfairdp.PFGuardGenerator(balance=None, **SEEDED).fit(features)
    assert generator.classes_ is None and generator.groups_ is None
    assert list(generator.sample(10).columns) == list(RAW_SCHEMA.features)
    with pytest.raises(
        ValueError, match=r"requires y to be passed, but the target y is None and X has no column 'income'"
    ):
        skfairdp.SyntheticDataClassifier(**SEEDED).fit(features)


def test_groups_alone_are_released_by_the_schema():
    randomizer = GroupRandomizer(**SEEDED)
    from_table, from_column = randomizer.release(TABLE), randomizer.release(TABLE["sex"])
    assert from_table.tolist() == from_column.tolist()
    assert randomizer.groups_.tolist() == ["Female", "Male"]
    assert GroupRandomizer(**SEEDED).release(pl.from_pandas(TABLE)).tolist() == from_table.tolist()


@pytest.mark.slow
def test_several_columns_of_groups_form_intersections():
    columns = {**RAW_SCHEMA.columns, "citizen": Boolean()}
    schema = skfairdp.Schema(columns, label="income", groups=["sex", "citizen"])
    settings = {**SEEDED, "schema": schema}
    model = skfairdp.PFLDClassifier(net=mlp((), max_epochs=1), random_state=0, **settings).fit(TABLE)
    assert model.groups_.tolist() == [(sex, citizen) for sex in ("Female", "Male") for citizen in (False, True)]
    pairs = list(zip(TABLE["sex"], TABLE["citizen"], strict=True))
    for given in (TABLE[["citizen", "sex"]], TABLE[["sex", "citizen"]].to_numpy(), pairs):
        other = skfairdp.PFLDClassifier(net=mlp((), max_epochs=1), random_state=0, **settings)
        assert_same(model, other.fit(TABLE, sensitive_features=given))


# ---- what a schema says is said once -----------------------------------------------------------------------------
def says_twice():
    for cls in private_classes():
        for parameter in ("classes", "groups", "bounds", "categories", "dtypes", "sensitive_columns"):
            of_amounts = is_regressor(cls()) and parameter == bounds_of_amounts(cls)
            if parameter in inspect.signature(cls).parameters and not of_amounts:
                yield pytest.param(cls, parameter, id=f"{cls.__name__}-{parameter}")


def bounds_of_amounts(cls):
    """The parameter of a regressor that says where amounts lie."""
    return "bounds_y" if "bounds_y" in inspect.signature(cls).parameters else "bounds"


def private_classes():
    found = [getattr(skfairdp, name) for name in skfairdp.__all__]
    return [cls for cls in found if inspect.isclass(cls) and issubclass(cls, PrivateEstimator)]


GIVEN = {
    "classes": ["<=50K", ">50K"],
    "groups": ["Female", "Male"],
    "bounds": {"age": (17, 90)},
    "dtypes": {"age": int},
    "categories": {"job": ["nurse"]},
    "sensitive_columns": ["sex"],
}


@pytest.mark.parametrize(("cls", "parameter"), [*says_twice()])
def test_what_the_schema_says_may_not_be_given_once_more_and_costs_nothing(cls, parameter):
    ledger = skfairdp.PrivacyLedger()
    amounts = {bounds_of_amounts(cls): (0, 400)} if is_regressor(cls()) else {}
    model = cls(schema=RAW_SCHEMA, ledger=ledger, **amounts, **{parameter: GIVEN[parameter]})
    with pytest.raises(ValueError, match=rf"{cls.__name__}.* got 'schema' together with '{parameter}'") as raised:
        fit_with_public_rows(model)
    assert "leave the others out" in str(raised.value)
    assert len(ledger.entries) == 0


def fit_with_public_rows(model):
    takes = inspect.signature(model.fit).parameters
    public = {"X_public": PUBLIC} if "X_public" in takes else {}
    return model.fit(TABLE, AMOUNTS if is_regressor(model) else None, **public)


@pytest.mark.parametrize("cls", private_classes())
def test_a_schema_must_be_a_schema(cls):
    with pytest.raises(ValueError, match=rf"'schema' parameter of {cls.__name__} must be"):
        fit_with_public_rows(cls(schema={"columns": {}}))


@pytest.mark.parametrize("cls", private_classes())
def test_a_table_without_names_is_refused_with_what_to_do(cls):
    ledger = skfairdp.PrivacyLedger()
    y, given = None, {"schema": RAW_SCHEMA}
    if is_regressor(cls()):
        features = {name: RAW_SCHEMA.columns[name] for name in RAW_SCHEMA.columns if name != RAW_SCHEMA.label}
        y, given = AMOUNTS, {"schema": skfairdp.Schema(features), bounds_of_amounts(cls): (0, 400)}
    with pytest.raises(ValueError, match="must be a DataFrame with the columns of its schema"):
        cls(ledger=ledger, **given).fit(np.zeros((20, 5)), None if y is None else y[:20])
    with pytest.raises(ValueError, match=r"lacks 1 column\(s\) of the Schema: \['age'\]"):
        cls(ledger=ledger, **given).fit(TABLE.drop(columns="age"), y)
    assert len(ledger.entries) == 0


def test_a_schema_without_the_roles_that_are_needed_says_which():
    bare = skfairdp.Schema(dict(RAW_SCHEMA.columns))
    with pytest.raises(ValueError, match=r"PATEClassifier needs labels, and its schema names none"):
        skfairdp.PATEClassifier(schema=bare).fit(TABLE, TABLE["income"], X_public=PUBLIC)
    labelled = skfairdp.Schema(dict(RAW_SCHEMA.columns), label="income")
    with pytest.raises(ValueError, match=r"PFLDClassifier needs groups, and its schema names none"):
        skfairdp.PFLDClassifier(schema=labelled).fit(TABLE)
    with pytest.raises(ValueError, match=r"PFLDClassifier needs groups: X lacks \['sex'\]"):
        skfairdp.PFLDClassifier(schema=RAW_SCHEMA).fit(TABLE.drop(columns="sex"))
    with pytest.raises(ValueError, match=r"has inconsistent length"):
        skfairdp.PFLDClassifier(schema=RAW_SCHEMA).fit(TABLE, TABLE["income"][:5])
    with pytest.raises(ValueError, match=r"1 column\(s\) that its schema names as groups"):
        skfairdp.PFLDClassifier(schema=RAW_SCHEMA).fit(TABLE, sensitive_features=TABLE[["age", "citizen"]])


# ---- private cells are read, public ones are checked ---------------------------------------------------------------
UNFORESEEN = {"age": "a lot", "job": "spy", "wage": 1e300, "hired": "tomorrow", "citizen": "perhaps"}
#: What each of them counts as.
COUNTS_AS = {"age": 53, "job": None, "wage": 200.0, "hired": None, "citizen": None}


def with_cell(table, column, value, row=3):
    cells = table[column].astype(object).copy()
    cells.iloc[row] = value
    return table.assign(**{column: cells})


@pytest.mark.covering
@pytest.mark.parametrize("column", UNFORESEEN)
@pytest.mark.parametrize("name", RECORD)
def test_an_unforeseen_private_value_counts_as_what_the_schema_says(name, column):
    mine = fitted(name, with_cell(TABLE, column, UNFORESEEN[column]))
    assert_same(mine, fitted(name, with_cell(TABLE, column, COUNTS_AS[column])))


@pytest.mark.parametrize("column", [*UNFORESEEN, "income"])
@pytest.mark.parametrize("name", ATTRIBUTE)
def test_public_features_and_labels_are_checked_where_only_the_group_is_private(name, column):
    match = (
        "none of the classes of its schema"
        if column == "income"
        else rf"does not allow, in 1 column\(s\): \['{column}'\]"
    )
    table = with_cell(TABLE, column, UNFORESEEN.get(column, 7))
    with pytest.raises(ValueError, match=match):
        fitted(name, table, table["income"] if column == "income" else None)


@pytest.mark.covering
@pytest.mark.parametrize("cell", [None, "female", "?"])
@pytest.mark.parametrize("name", ["dpsgd_signed", "fair_clipping", "synthetic", *ATTRIBUTE])
def test_a_private_group_that_is_not_listed_is_refused_in_constant_words(name, cell):
    """Found: missing groups and misspelt ones were those of the first group, in silence."""
    for table in (with_cell(TABLE, "sex", cell), TABLE.assign(sex=cell)):
        with pytest.raises(ValueError, match=r"^sensitive_features of \w+ holds a label or a group that is missing or"):
            fitted(name, table)


@pytest.mark.parametrize("cell", [None, "<=50k", 7])
@pytest.mark.parametrize("name", RECORD)
def test_a_private_label_that_is_not_listed_is_refused_in_constant_words(name, cell):
    for table in (with_cell(TABLE, "income", cell), TABLE.assign(income=cell)):
        with pytest.raises(ValueError, match=r"^y of \w+ holds a label or a group that is missing or not among those"):
            fitted(name, table)


#: A group of its own for what is not listed, and a label that stands for others.
OPEN = skfairdp.Schema(
    {
        **RAW_SCHEMA.columns,
        "sex": Category(["Female", "Male"], missing=True),
        "income": Category(["<=50K", ">50K"], others=">50K"),
    },
    label="income",
    groups="sex",
)


@pytest.mark.few(3)
@pytest.mark.parametrize("name", ["dpsgd_signed", "fair_clipping", "synthetic", *ATTRIBUTE])
def test_a_group_that_may_be_missing_has_a_group_of_its_own(name):
    rows = np.arange(len(TABLE)) % 3 == 0
    table = TABLE.assign(sex=TABLE["sex"].astype(object).where(~rows, None))
    model = clone(made(name)[0]).set_params(schema=OPEN).fit(table)
    if hasattr(model, "groups_"):
        assert model.groups_.tolist() == ["Female", "Male", "missing"]
    listed = skfairdp.Schema(
        {**OPEN.columns, "sex": Category(["Female", "Male", "missing"])}, label="income", groups="sex"
    )
    named = TABLE.assign(sex=TABLE["sex"].where(~rows, "missing"))
    assert_same(model, clone(made(name)[0]).set_params(schema=listed).fit(named))


def test_public_rows_need_none_of_the_group_of_the_rest():
    model, _ = made("fair_pate")
    fit = clone(model).set_params(schema=OPEN).fit(TABLE, X_public=PUBLIC)
    assert fit.groups_.tolist() == ["Female", "Male"]
    assert_same(clone(model).fit(TABLE.drop(columns="sex"), X_public=PUBLIC), fit)  # private groups are not read
    rest = PUBLIC.assign(sex=PUBLIC["sex"].astype(object).where(np.arange(len(PUBLIC)) % 3 > 0, None))
    assert clone(fit).fit(TABLE, X_public=rest).groups_.tolist() == ["Female", "Male", "missing"]


@pytest.mark.parametrize("name", [name for name, (_, public) in RECORD.items() if public])
def test_public_rows_are_checked(name):
    with pytest.raises(ValueError, match=r"X_public of .* has values that its schema does not allow.*\['age'\]"):
        fitted(name, X_public=with_cell(PUBLIC, "age", 200))
    if name != "pate":
        with pytest.raises(ValueError, match=r"sensitive_features_public of .* does not list for \['sex'\]"):
            fitted(name, sensitive_features_public=with_cell(PUBLIC, "sex", "?")["sex"])
        with pytest.raises(ValueError, match=r"X_public of .* does not allow.*\['sex'\]"):
            fitted(name, X_public=with_cell(PUBLIC, "sex", "?"))


def test_whole_numbers_beside_classes_that_are_words_are_positions_and_that_is_told():
    codes = (TABLE["income"] == ">50K").to_numpy().astype(int)
    with pytest.warns(UserWarning, match=r"positions of the classes.*: 0 is '<=50K', 1 is '>50K'. Pass the labels"):
        model = fitted("pate", TABLE, codes)
    assert_same(as_it_is("pate"), model)


@pytest.mark.parametrize("form", [lambda codes: codes == 1, lambda codes: codes * 1.0, lambda codes: codes.tolist()])
def test_truths_floats_and_lists_of_numbers_are_no_positions_of_words(form):
    codes = (TABLE["income"] == ">50K").to_numpy().astype(int)
    with pytest.raises(ValueError, match="y of PATEClassifier holds a label"):
        fitted("pate", TABLE, form(codes))


def test_positions_that_cross_val_predict_hands_on_are_read_without_a_word():
    likely = cross_val_predict(made("pate")[0], TABLE, TABLE["income"], cv=KFold(2), method="predict_proba")
    assert likely.shape == (len(TABLE), 2)


# ---- public rows as a parameter ------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", [name for name, (_, public) in RECORD.items() if public])
def test_public_data_of_the_constructor_is_x_public_of_fit(name):
    public = skfairdp.PublicData(PUBLIC)
    kept = clone(made(name)[0]).set_params(public_data=public)
    assert clone(kept).public_data is public
    assert_same(as_it_is(name), clone(kept).fit(TABLE))
    with pytest.raises(ValueError, match="public rows twice: by its 'public_data' parameter"):
        clone(kept).fit(TABLE, X_public=PUBLIC)


def test_public_data_of_a_generator_is_x_public_of_its_fit():
    public = skfairdp.PublicData(PUBLIC)
    mine = skfairdp.PFGuardGenerator(public_data=public, **SEEDED).fit(TABLE)
    theirs = skfairdp.PFGuardGenerator(**SEEDED).fit(TABLE, X_public=PUBLIC)
    pd.testing.assert_frame_equal(mine.sample(50, random_state=0), theirs.sample(50, random_state=0))
    assert len(mine.privacy_.public) > 3


def test_public_data_must_be_public_data():
    with pytest.raises(ValueError, match="'public_data' parameter of PATEClassifier must be"):
        skfairdp.PATEClassifier(public_data=PUBLIC, schema=RAW_SCHEMA).fit(TABLE)


@pytest.mark.few(1)
@pytest.mark.parametrize("cls", [skfairdp.FairDPSGDClassifier, skfairdp.FairClippingClassifier])
def test_a_number_of_rows_in_the_schema_is_the_declared_one(cls):
    """What ``public_n_rows`` says, unless it says something itself: neighbours then add or remove a record."""
    declared = skfairdp.Schema(RAW_SCHEMA.columns, label="income", groups="sex", n_rows=250)

    def planned(schema, **given):
        return cls(net=FEW_STEPS, random_state=0, schema=schema, **given).planned_privacy(TABLE)

    by_parameter, by_schema = planned(RAW_SCHEMA, public_n_rows=250), planned(declared)
    assert by_schema == by_parameter and str(by_schema.neighboring_relation) == "add or remove one record"
    assert planned(declared, public_n_rows=400) == planned(RAW_SCHEMA, public_n_rows=400) != by_schema
    assert str(planned(RAW_SCHEMA).neighboring_relation) == "replace one record by a null record"


@pytest.mark.slow
@pytest.mark.parametrize("cls", [skfairdp.FairDPSGDClassifier, skfairdp.FairClippingClassifier])
def test_a_number_of_rows_in_the_schema_is_the_declared_one_of_a_search(cls):
    declared = skfairdp.Schema(RAW_SCHEMA.columns, label="income", groups="sex", n_rows=250)
    search = skfairdp.ParetoSearchCV(
        cls(net=FEW_STEPS, random_state=0, schema=declared), {"epsilon": [1.0]}, cv=2, scoring="accuracy", refit=False
    ).fit(TABLE)
    assert str(search.privacy_.neighboring_relation) == "add or remove one record"
    assert {fact.name: fact.value for fact in search.privacy_.public}["declared number of rows"] == 250
