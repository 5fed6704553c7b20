"""A schema is the only source of what comes out of a table, and reading by it is total."""

import copy
import datetime
import functools
import io
import json
import pickle
import time
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from skfairdp import FairDPSGDClassifier
from skfairdp.schema import Boolean, Category, Date, Number, Schema, SchemaEncoder
from tests._tools.inside import opened
from tests._tools.layers import examples

COLUMNS = {
    "age": Number(17, 90, step=1),
    "wage": Number(0.0, 1e5, missing=True),
    "job": Category(["clerk", "nurse", "pilot"], missing=True),
    "level": Category([1, 2, 3]),
    "citizen": Boolean(),
    "hired": Date("1990-01-01", "2026-01-01", missing=True),
    "sex": Category(["Female", "Male"]),
    "income": Category(["<=50K", ">50K"]),
}
SCHEMA = Schema(COLUMNS, label="income", groups="sex", n_rows=4)
OPEN = {"sex": Category(["Female", "Male"], missing=True), "income": Category(["<=50K", ">50K"], others=">50K")}
TOTAL = Schema({**COLUMNS, **OPEN}, label="income", groups="sex")
TABLE = pd.DataFrame(
    {
        "age": [39, 17, 64, 90],
        "wage": [1000.0, np.nan, 99999.5, 0.0],
        "job": ["clerk", None, "pilot", "nurse"],
        "level": [1, 2, 3, 1],
        "citizen": [True, False, True, True],
        "hired": ["1999-05-01", "2025-12-31", "missing", "1990-01-01"],
        "sex": ["Male", "Female", "Male", "Female"],
        "income": [">50K", "<=50K", "<=50K", ">50K"],
    }
)


class Hostile:
    """A cell that fails at whatever is done with it."""

    def __hash__(self):
        raise RuntimeError("hash")

    def __eq__(self, other):
        raise RuntimeError("eq")

    def __float__(self):
        raise RuntimeError("float")


CELLS = st.one_of(
    st.builds(Hostile), st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.dates(),
    st.datetimes(),
    st.sampled_from([10**400, "39", " 40 ", "inf", "<NA>", b"7", [1], {"a": 1}, pd.NA, pd.NaT,
                     np.datetime64("NaT"), np.float32(3), complex(1, 2), "2020-02-30"]),
)  # fmt: skip


def forms(rows):
    """All that is observable of a table beside its values."""
    return (
        [(name, str(rows.X[name].dtype)) for name in rows.X],
        str(rows.y.dtype),
        [(name, str(dtype)) for name, dtype in rows.sensitive_features.dtypes.items()],
    )


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.fixed_dictionaries(dict.fromkeys(COLUMNS, CELLS)), min_size=1, max_size=4))
def test_no_private_cell_makes_reading_fail_or_warn_or_changes_a_type(cells):
    table = pd.DataFrame({name: pd.Series([row[name] for row in cells], dtype=object) for name in COLUMNS})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rows = TOTAL.read(table)
        encoded = SchemaEncoder(TOTAL).transform(table)
        found = TOTAL.misfits_by_kind(table)
    assert forms(rows) == forms(TOTAL.read(TABLE))
    assert (found.sum(axis=1) <= len(cells)).all() and (TOTAL.misfits(table) <= found.sum(axis=1)).all()
    assert encoded.shape == (len(cells), len(SchemaEncoder(SCHEMA).get_feature_names_out()))
    assert np.isfinite(encoded).all() and np.abs(encoded).max() <= 1
    assert set(rows.y) <= {"<=50K", ">50K"} and set(rows.sensitive_features["sex"]) <= {"Female", "Male", "missing"}
    assert rows.X["age"].between(17, 90).all() and not rows.X["age"].isna().any()


def test_values_that_the_schema_foresees_come_back_as_they_were():
    rows = SCHEMA.read(TABLE)
    for name in ("age", "wage", "job", "level", "citizen"):
        want = TABLE[name].astype(object).where(TABLE[name].notna(), None).tolist()
        assert rows.X[name].astype(object).where(rows.X[name].notna(), None).tolist() == want
    assert rows.X["hired"].dt.strftime("%Y-%m-%d").fillna("missing").tolist() == [
        "1999-05-01", "2025-12-31", "missing", "1990-01-01",
    ]  # fmt: skip
    assert rows.y.tolist() == TABLE["income"].tolist()
    assert rows.sensitive_features["sex"].tolist() == TABLE["sex"].tolist()
    assert rows.X.index.equals(TABLE.index)


@pytest.mark.parametrize(
    ("column", "cell", "read"),
    [
        (Number(0, 10), 99, 10),
        (Number(0, 10), -np.inf, 5),
        (Number(0, 10, missing=True), 1e308, np.nan),
        (Number(0, 10, missing=True), "inf", np.nan),
        (Date("2020-01-01", "2020-12-31", missing=True), np.inf, np.nan),
        (Number(0, 10), None, 5),
        (Number(0, 10, missing=True), "?", np.nan),
        (Number(0, 10, step=4), 6.5, 8),
        (Number(0, 10, step=4), 10, 8),
        (Category(["a"]), "b", np.nan),
        (Category([1, 2]), True, 0),
        (Category([1, 2]), 2.0, 1),
        (Boolean(), "TRUE", 1),
        (Date("2020-01-01", "2020-12-31"), datetime.datetime(2020, 1, 2, 23, 59), 18263),
        (Date("2020-01-01", "2020-12-31"), pd.Timestamp("2030-01-01"), 18627),
        # What pandas makes of a column of digits, and how it writes whole numbers where another cell is blank.
        (Date("1970-01-01", "2020-12-31", format="%Y"), 1978, 2922),
        (Date("1970-01-01", "2020-12-31", format="%Y"), 1978.0, 2922),
        (Date("1970-01-01", "2020-12-31", format="%Y", missing=True), 1978.5, np.nan),
        (Date("1970-01-01", "2020-12-31", format="%d%m%Y"), 1021978, 2953),
        (Date("1970-01-01", "2020-12-31", format="%d.%m.%Y", missing=True), 2922, np.nan),
        (Date("1970-01-01", "2020-12-31"), 2922, 2922),
        (Category([0, 1]), "1.0", 1),
        (Category(["007", "x"]), "7.0", 0),
        (Category(["1.0", "1"]), "1.0", 0),
        (Category(["1.0", "1"]), 1, np.nan),  # either
        (Category(["01234", "1234"]), 1234, np.nan),
        (Date("2020-01-01", "2020-12-31", missing=True), "2020-01-03T10:11:12.5+01:00", 18264),
        (Date("2020-01-01", "2020-12-31", missing=True), "20200103", 18264),
        (Date("2020-01-01", "2020-12-31", missing=True), "2020-W01-5", 18264),
        *(
            (Date("2019-12-01", "2020-12-31", missing=True), text, np.nan)
            for text in (
                "2020-01-0399",
                "2020-01-03 or 04",
                "2020-01-03/2020-06-30",
                "20200103xx",
                "2020-W01-15",
                "2020-01-03T25:99",
                "2020010399",
            )
        ),
        (Boolean(), "0.0", 0),
        # One blank cell, or one cut at a fraction, makes floats of the ends of all bands.
        (Category(["(0, 10]", "(10, 12.5]"]), pd.Interval(0.0, 10.0), 0),
        (Category(["(0.0, 10.0]", "(10.0, 12.5]"]), pd.Interval(0, 10), 0),
        (Category(["(0.0, 10.0]", "(10.0, 12.5]"]), pd.Interval(10, 12.5), 1),
        (Category(["(0, 10]"]), "(0.0, 10.0]", 0),
        (Category(["[0, 10)"]), pd.Interval(0, 10), np.nan),
        (Category(["(-inf, 10.0]", "(10.0, inf]"]), pd.Interval(-np.inf, 10.0), 0),
        (Category(["(-inf, 10.0]", "(10.0, inf]"]), pd.Interval(10.0, np.inf), 1),
        (Category(["(1e-05, 1.0]", "(1.0, 1e+20]"]), pd.Interval(1e-5, 1.0), 0),
        (Category(["(1e-05, 1.0]", "(1.0, 1e+20]"]), pd.Interval(1.0, 1e20), 1),
    ],
)
def test_what_one_cell_is_read_as(column, cell, read):
    np.testing.assert_array_equal(column.read(pd.Series([cell], dtype=object)), [read])


@pytest.mark.parametrize("column", [Number(0, 1), Category(["a"]), Boolean(), Date("2020-01-01", "2020-01-31")])
@pytest.mark.parametrize("form", [list, np.array, functools.partial(np.array, dtype=object)])
def test_half_a_surrogate_pair_is_a_text_as_any_other(column, form):
    """Found: pandas' own type for texts encodes them, and cannot encode this one."""
    np.testing.assert_array_equal(column.read(form(["\ud800", "a"])), column.read(form(["b", "a"])))


def test_a_column_of_digits_is_read_by_the_format_whatever_its_type():
    column = Date("1950-01-01", "2010-12-31", format="%Y%m%d")
    cells = [19780405, 20011231]
    for form in (cells, np.array(cells), np.array(cells, float), pd.Series(cells, dtype="Int64"), [*map(str, cells)]):
        np.testing.assert_array_equal(column.read(form), [3016, 11687])


@pytest.mark.parametrize(
    "column",
    [
        Date(pd.Timestamp("2000-01-01"), datetime.datetime(2001, 1, 1, 5)),
        Date(datetime.date(2000, 1, 1), pd.Timestamp("2001-01-01", tz="UTC")),
        Number(np.int64(0), np.float32(5), step=np.int8(1)),
    ],
)
def test_bounds_of_other_types_come_back_from_pickles_and_files(column, tmp_path):
    schema = Schema({"a": column, "b": Boolean()})
    schema.save(tmp_path / "s.yaml")
    assert Schema.load(tmp_path / "s.yaml") == schema == pickle.loads(pickle.dumps(schema)) == copy.deepcopy(schema)
    assert isinstance(hash(schema), int)


@pytest.mark.parametrize("column", [Number(0, 5, decimal=",", thousands=".", unit="$"), Number(0, 5, thousands=",")])
def test_a_column_of_numbers_is_what_its_words_say(column):
    assert eval(repr(column)) == column


def test_floats_that_were_to_have_thousands_are_told_of():
    schema = Schema({"a": Number(0, 5000, decimal=",", thousands="."), "b": Number(0, 5)})
    with pytest.warns(UserWarning, match=r"\['a'\] declare thousands and are floats already.*dtype=str"):
        schema.misfits(pd.DataFrame({"a": [1.162, 813.0], "b": [1.5, 2.5]}))
    schema.misfits(pd.DataFrame({"a": ["1.162", "813"], "b": [1.5, 2.5]}))


def test_a_step_never_leads_beyond_the_bounds():
    values = np.linspace(-5, 15, 1001)
    for step in (0.3, 1.0, 3.0, 7.0, 10.0):
        read = Number(0, 10, step=step).read(values)
        assert read.min() >= 0 and read.max() <= 10


def test_the_type_of_a_column_does_not_follow_how_the_rows_are_kept():
    kept = [TABLE, TABLE.astype({"age": "float32", "sex": "category", "job": "category"}), TABLE.astype(object),
            TABLE.convert_dtypes()]  # fmt: skip
    found = [SCHEMA.read(table) for table in kept]
    for rows in found[1:]:
        pd.testing.assert_frame_equal(rows.X, found[0].X)
        np.testing.assert_array_equal(rows.y, found[0].y)
        pd.testing.assert_frame_equal(rows.sensitive_features, found[0].sensitive_features)


@pytest.mark.parametrize("suffix", [".json", ".yaml", ".yml"])
def test_a_schema_comes_back_from_its_file(tmp_path, suffix):
    path = tmp_path / f"schema{suffix}"
    SCHEMA.save(path)
    back = Schema.load(path)
    assert back == SCHEMA and hash(back) == hash(SCHEMA)
    assert SCHEMA.read(TABLE).X.equals(back.read(TABLE).X)


def test_truths_are_listed_values_however_a_file_spells_them():
    """The command line reads every cell of a CSV file as a text."""
    assert Category([False, True]).read(["True", "false", True, 0, "FALSE", "yes"])[:5].tolist() == [1, 0, 1, 0, 0]
    assert Category(["True", True]).read(["True", True]).tolist() == [0, 1]


#: Columns of a file of which pandas makes truths or numbers, and what may be declared of them.
YEAR = ("2020-01-01", "2021-01-01")
IN_FILES = {
    "True False": (Number(0, 1), Category([0, 1]), Category(["1", "0"]), Category([True, False])),
    "TRUE FALSE": (Number(0, 1, decimal=","), Category(["true", "false"]), Boolean()),
    "0 1": (Number(0, 1), Category(["True", "False"]), Category([False, True]), Boolean()),
    "1 2 30": (Number(0, 40), Category([1, 2, 30]), Category(["1", "2", "30"])),
    "007 012": (Number(0, 40), Category([7, 12]), Category(["7", "12"]), Category(["007", "012"])),
    "1.50 2.00": (Number(0, 4), Category([1.5, 2]), Category(["1.5", "2"]), Category(["1.50", "2"])),
    "20200103 20200220": (Date(*YEAR), Date(*YEAR, format="%Y%m%d")),
    "03012020 20022020": (Date(*YEAR, format="%d%m%Y"),),
    "18264 18312 -5": (Date("1960-01-01", "2021-01-01"),),
}


@pytest.mark.parametrize("written", IN_FILES)
def test_one_cell_of_a_file_does_not_change_how_the_others_are_read(written):
    """pandas makes numbers of a column, floats of all where one cell is blank, and texts where one is none."""
    cells = written.split()
    for column in IN_FILES[written]:
        read = []
        for odd in (cells[0], "", "odd"):
            file = pd.read_csv(io.StringIO("\n".join(["c,k", *(f"{cell},1" for cell in [*cells, odd])])))
            read.append(column.read(file["c"])[:-1].tolist())
        assert read[0] == read[1] == read[2] and len(set(read[0])) == len(cells), column


def test_words_of_a_file_written_by_hand_are_texts(tmp_path):
    """YAML 1.1 takes no for False, so that no label of a table would be listed and each would count as the first."""
    words = ["no", "yes", "NO", "off", "n", "012", "12:30", "0x1f", "1e3"]
    path = tmp_path / "schema.yaml"
    path.write_text(
        f"columns:\n  x: {{kind: category, values: [{', '.join(words)}]}}\n  n: {{kind: number, low: -1.5, high: 20}}\n"
    )
    assert Schema.load(path).columns == {"x": Category(words), "n": Number(-1.5, 20)}
    assert Schema.load_known(path)["known"] == Schema.load(path).columns
    path.write_text("columns:\n  x: {kind: category, values: [true, False, 7, 0.5]}\n")
    with pytest.raises(ValueError, match="different texts or numbers"):  # 0 and 1 would be truths as well
        Schema.from_dict({"columns": {"x": {"kind": "category", "values": [True, 1]}}})
    assert Schema.load(path).columns["x"] == Category([True, False, 7, 0.5])


#: Texts that YAML takes for something else, or loses.
AWKWARD = ["no", "1e3", "012", "1:30", "~", "=", "y", "-", "\x85", "\u2028", "\r"]


@given(st.lists(st.one_of(st.text(max_size=6), st.sampled_from(AWKWARD)), min_size=1, max_size=5, unique=True))
@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_texts_come_back_from_a_file(tmp_path, texts):
    schema = Schema({"x": Category(texts)})
    for name in ("schema.yaml", "schema.json"):
        schema.save(tmp_path / name)
        assert Schema.load(tmp_path / name) == schema


@pytest.mark.parametrize(
    ("name", "text"),
    [("s.yaml", "columns:\n  x: {kind: boolean}\n  x: {kind: number, low: 0, high: 1}\n"),
     ("s.json", '{"columns": {"x": {"kind": "boolean"}, "x": {"kind": "boolean"}}}')],
)  # fmt: skip
def test_a_file_that_describes_a_column_twice_is_refused(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    for read in (Schema.load, Schema.load_known):
        with pytest.raises(ValueError, match="it says 'x' twice"):
            read(tmp_path / name)


def test_a_schema_survives_copies_pickles_and_clones():
    assert pickle.loads(pickle.dumps(SCHEMA)) == copy.deepcopy(SCHEMA) == SCHEMA
    assert clone(SchemaEncoder(SCHEMA)).schema is SCHEMA
    assert Schema.from_dict(json.loads(json.dumps(SCHEMA.to_dict()))) == SCHEMA


@pytest.mark.parametrize("name", ["columns", "label", "groups", "n_rows", "subject"])
def test_what_a_schema_says_does_not_change(name):
    """Found: a label that was set anew after a fit made its prediction fail in a product of matrices."""
    before = SCHEMA.to_dict()
    with pytest.raises(AttributeError, match=f"The '{name}' of a Schema cannot be changed, .* Make another one"):
        setattr(SCHEMA, name, None)
    assert SCHEMA.to_dict() == before
    pickle.loads(pickle.dumps(SCHEMA)).was_compared = True


def test_the_schema_of_public_rows_reads_them_without_loss():
    schema = Schema.from_public(TABLE, label="income", groups=["sex"])
    rows = schema.read(TABLE)
    assert rows.X["wage"].dropna().tolist() == TABLE["wage"].dropna().tolist()
    assert rows.X["job"].dropna().tolist() == TABLE["job"].dropna().tolist()
    assert schema.classes == ("<=50K", ">50K") and schema.group_values == ("Female", "Male")
    assert schema.columns["wage"].missing and not schema.columns["age"].missing


def test_a_template_reads_names_and_types_only():
    other = TABLE.assign(age=[1, 2, 3, 4], job=["x"] * 4, income=["y"] * 4)
    assert Schema.template(TABLE, label="income", groups="sex") == Schema.template(other, label="income", groups="sex")
    with pytest.raises(ValueError, match=r"Column 'age' of a Schema is not filled in yet: high, low\. Write what is"):
        Schema.from_dict(Schema.template(TABLE, label="income", groups="sex"))


def test_groups_of_two_columns_are_their_intersections():
    schema = Schema(COLUMNS, label="income", groups=["sex", "citizen"])
    assert schema.group_values == (("Female", False), ("Female", True), ("Male", False), ("Male", True))
    assert list(schema.read(TABLE).sensitive_features.columns) == ["sex", "citizen"]
    assert "citizen" not in schema.features


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Number(3, 3), "Number needs finite bounds, low below high"),
        (lambda: Number(0, np.inf), "Number needs finite bounds"),
        (lambda: Number(0, 1, step=2), "The 'step' of a Number must be in"),
        (lambda: Number(0, 1, missing="false"), "The 'missing' of a Number must be True or False. Got 'false'"),
        (lambda: Category(["a"], missing=None), "The 'missing' of a Category must be True or False"),
        (lambda: Boolean(missing="no"), "The 'missing' of a Boolean must be True or False"),
        (lambda: Date("2020-01-01", "2021-01-01", missing=1), "The 'missing' of a Date must be True or False"),
        (lambda: Category([]), "at least one"),
        (lambda: Category(["a", "a"]), "must be different"),
        (lambda: Category("abc"), "must be a list"),
        (lambda: Category([None]), "none of them missing"),
        (lambda: Date("2020-01-01", "2019-01-01"), "'first' before 'last'"),
        (lambda: Date("soon", "later"), "'first' before 'last'"),
        (lambda: Date(pd.NaT, pd.NaT), "'first' before 'last'"),
        (lambda: Date("2020-01-01", "2021-01-01", format="%Q"), "The 'format' of a Date"),
        (lambda: Date("2020-01-01", "2021-01-01", format="%H:%M"), "The 'format' of a Date"),
        (lambda: Schema(None), "must be a dict of columns by their names"),
        (lambda: Schema.template(TABLE, label="Income"), "must be different columns of the table"),
        (lambda: Schema.template(TABLE, label="sex", groups="sex"), "must be different columns of the table"),
        (lambda: Schema({"a": "number"}), "must map names to Number, Category, Boolean or Date"),
        (lambda: Schema(COLUMNS, label="rage"), "The 'label' of a Schema must be a Category or Boolean or Number"),
        (lambda: Schema(COLUMNS, label="wage"), r"'wage' is a Number\(missing=True\)"),
        (lambda: Schema(COLUMNS, groups="race"), "The 'groups' of a Schema must be a Category or Boolean"),
        (lambda: Schema(COLUMNS, label="sex", groups="sex"), "both its label and one of its groups"),
        (lambda: Schema({"y": Boolean()}, label="y"), "at least one column that is neither"),
        (lambda: Schema(COLUMNS, n_rows=0), "'n_rows' of a Schema must be an integer >= 1"),
        (lambda: Schema.from_dict({"columns": {"a": {"kind": "text"}}}), "Free text is refused"),
        (lambda: Schema.from_dict({"columns": {"a": {"kind": "number", "low": 0, "hihg": 1}}}), "Column 'a'.*hihg"),
        (lambda: Schema.from_dict({"colums": {}}), "A Schema is a mapping with 'columns'"),
        (lambda: SCHEMA.read(TABLE.drop(columns="age")), r"lacks 1 column\(s\) of the Schema: \['age'\]"),
        (lambda: SCHEMA.read([[1, 2]]), "A Schema reads a DataFrame"),
        (lambda: Schema.from_public(pd.DataFrame({"t": [str(j) for j in range(200)]})), "Free text is refused"),
        (lambda: SchemaEncoder(None).fit(), "must be a Schema. Got NoneType"),
    ],
)
def test_mistakes_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_the_message_of_an_incomplete_table_names_columns_and_no_value():
    with pytest.raises(ValueError) as caught:
        SCHEMA.read(TABLE.drop(columns=["age", "job"]).assign(secret=["Ms Smith"] * 4))
    assert "Smith" not in str(caught.value) and "secret" in str(caught.value)


def test_label_and_groups_may_be_absent_at_prediction():
    rows = SCHEMA.read(TABLE.drop(columns=["income", "sex"]))
    assert rows.y is None and rows.sensitive_features is None


def test_the_encoder_names_its_columns_and_knows_no_row():
    encoder = SchemaEncoder(SCHEMA)
    names = encoder.get_feature_names_out().tolist()
    assert names[:5] == ["age", "wage", "wage_missing", "job_clerk", "job_nurse"] and "income" not in names
    one = encoder.transform(TABLE.iloc[[2]])
    np.testing.assert_array_equal(encoder.transform(TABLE)[[2]], one)  # a row is encoded alike beside any others
    framed = encoder.set_output(transform="pandas").transform(TABLE)
    assert list(framed.columns) == names and framed.index.equals(TABLE.index)


def test_a_raw_table_goes_through_a_pipeline_without_public_rows():
    rng = np.random.default_rng(0)
    table = TABLE.loc[rng.integers(4, size=400)].reset_index(drop=True)
    rows = SCHEMA.read(table)
    model = make_pipeline(
        SchemaEncoder(SCHEMA), FairDPSGDClassifier(epsilon=2.0, lam=0.0, classes=SCHEMA.classes, random_state=0)
    )
    model.fit(table, rows.y)
    assert model[-1].privacy_.epsilon <= 2.0
    assert set(model.predict(table)) <= set(SCHEMA.classes)


# ---- columns of other libraries ----------------------------------------------------------------------------------
_DAY, _FIRST, _LAST = datetime.date(2020, 1, 3), datetime.date(1, 1, 1), datetime.date(9999, 12, 31)


def _as_type(kind, *numbers):
    """Cells as they lie in a file, whose type has room for more than Python."""
    return pa.array(numbers, getattr(pa, f"int{kind.bit_width}")()).view(kind)


def _as_text(*cells):
    """Bytes that a file calls texts: of a foreign encoding, say."""
    ends = np.cumsum([0, *map(len, cells)], dtype=np.int32)
    return pa.StringArray.from_buffers(len(cells), pa.py_buffer(ends), pa.py_buffer(b"".join(cells)))


#: A column of three cells, the second of which a private record has made what it is, and how these are read.
FOREIGN = {
    "integers of 128 bits": (Number(0, 10), pl.Series([1, 2**100, None], dtype=pl.Int128), [1, 10, 5]),
    "decimals": (Number(0, 10), pl.Series([1, 10**12, None], dtype=pl.Decimal(20, 2)), [1, 10, 5]),
    "durations": (Number(0, 10), pl.Series([datetime.timedelta(10**6)] * 3), [5, 5, 5]),
    "only nulls": (Number(0, 10), pl.Series([None] * 3), [5, 5, 5]),
    "objects": (Category(["a"]), pl.Series([object()] * 3, dtype=pl.Object), [np.nan] * 3),
    "lists": (Category(["a"]), pl.Series([["a"], [], None]), [np.nan] * 3),
    "days of polars": (Date("2020-01-01", "2020-01-31"), pl.Series([_DAY, _FIRST, _LAST]), [18264, 18262, 18292]),
    "days of arrow": (Date("2020-01-01", "2020-01-31"), pa.array([_DAY, _FIRST, _LAST]), [18264, 18262, 18292]),
    "times of arrow": (
        Date("2020-01-01", "2020-01-31"), pa.array([_DAY, _FIRST, _LAST]).cast(pa.timestamp("us", tz="UTC")),
        [18264, 18262, 18292],
    ),
    "days of arrow beyond all calendars": (
        Date("2020-01-01", "2020-01-31"), _as_type(pa.date32(), 18264, 2**31 - 1, None), [18264, 18277, 18277],
    ),
    "moments of arrow beyond all calendars": (
        Date("2020-01-01", "2020-01-31"), _as_type(pa.timestamp("s"), 18264 * 86400, 2**62, 0), [18264, 18277, 18262],
    ),
    "moments of polars beyond all calendars": (
        Date("2020-01-01", "2020-01-31", missing=True),
        pl.Series([18264 * 86_400_000_000 - 1, 2**62, None]).cast(pl.Datetime("us", "Asia/Tokyo")),
        [18264, np.nan, np.nan],
    ),
    "times of a zone in which the usual open end lies beyond all calendars": (
        Date("2020-01-01", "2020-01-31", missing=True),
        pd.Series(np.array(["2020-01-02", "9999-12-31T23:30", "20201-01-01"], "M8[us]")).dt.tz_localize("UTC")
        .dt.tz_convert("Europe/Berlin"),
        [18263, 18292, np.nan],
    ),
    "names of times of such a zone": (
        Category(["a"]), pd.Series(np.array(["2020-01-02", "9999-12-31T23:30", "0001-01-01"], "M8[s]"))
        .dt.tz_localize("UTC").dt.tz_convert("US/Pacific").astype("category"), [np.nan] * 3,
    ),
    "lengths of time beyond all calendars": (
        Number(0, 10), pl.Series([1, 2**62, 0]).cast(pl.Duration("ms")), [5, 5, 5],
    ),
    "whole numbers of arrow beside nothing": (
        Category([2**60, 2**60 + 1]), pa.array([2**60, None, 2**60 + 1]), [0, np.nan, 1],
    ),
    "whole numbers of polars beside nothing": (
        Category([2**60, 2**60 + 1]), pl.Series([2**60, None, 2**60 + 1]), [0, np.nan, 1],
    ),
    "texts that are none": (Category(["a", "b"]), _as_text(b"a", b"\xff", b"b"), [0, np.nan, 1]),
    "a dictionary of texts that are none": (
        Category(["a", "b"]), pa.DictionaryArray.from_arrays([0, 1, 2], _as_text(b"a", b"\xff", b"b")), [0, np.nan, 1],
    ),
    "halves of floats": (Number(0, 10), pa.array(np.array([1, 11, np.nan], dtype=np.float16)), [1, 10, 5]),
    "a dictionary": (Category(["a"]), pa.array(["a", "b", None]).dictionary_encode(), [0, np.nan, np.nan]),
    "runs": (Category(["a"]), pa.RunEndEncodedArray.from_arrays([3], ["a"]), [0, 0, 0]),
    "structs": (Category(["a"]), pa.array([{"a": 1}] * 3), [np.nan] * 3),
}  # fmt: skip


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_column_of_any_type_is_read_without_a_word(kind):
    column, cells, expected = FOREIGN[kind]
    of_polars = isinstance(cells, pl.Series)
    table = pl.DataFrame({"x": cells}) if of_polars else pa.table({"x": cells})
    tables = [table] if of_polars else [table, table.to_pandas(types_mapper=pd.ArrowDtype)]
    if not of_polars or cells.dtype not in (pl.Object, pl.Int128):  # which Arrow does not know
        tables += [chunk.table for chunk in opened(lambda: [table]).chunks()]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for one in tables:
            np.testing.assert_array_equal(Schema({"x": column}).numbers(one)["x"], expected)
            Schema({"x": column}).misfits_by_kind(one)


@pytest.mark.parametrize("column", ["age", "level", "citizen", "hired"])
def test_a_long_double_beyond_all_floats_is_read_without_a_warning(column):
    cells = np.array([1.0, np.finfo(np.longdouble).max])
    assert np.array_equal(COLUMNS[column].read(cells), COLUMNS[column].read([1.0, np.inf]), equal_nan=True)
    assert not COLUMNS[column].misfits(pd.Series(cells))["missing"].any()


@pytest.mark.slow
def test_a_schema_of_twenty_thousand_columns_takes_seconds():
    """Every name is looked up once: looked for among all others it took 14 s."""
    began = time.process_time()
    columns = {f"c{j}": Number(0, 1) for j in range(20_000)}
    schema = Schema.from_dict(json.loads(json.dumps(Schema(columns).to_dict())))
    assert schema == Schema(columns) and len(schema.features) == 20_000
    with pytest.raises(ValueError, match="A Schema is a mapping"):
        Schema.from_dict(schema.to_dict() | dict.fromkeys(columns, 1))
    assert time.process_time() - began < 5
