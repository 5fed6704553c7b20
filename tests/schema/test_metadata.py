"""A schema from pandera's and SDV's descriptions of a table: what they say, and what they are asked for."""

import datetime
import json
import warnings

import pandas as pd
import pytest

from skfairdp.schema import Boolean, Category, Date, Number, Schema

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pa = pytest.importorskip("pandera.pandas")

CHECKED = pa.DataFrameSchema({
    "age": pa.Column(int, pa.Check.in_range(17, 90)),
    "wage": pa.Column(float, [pa.Check.ge(0), pa.Check.lt(1e5)], nullable=True),
    "children": pa.Column("Int64", [pa.Check.gt(-1), pa.Check.lt(12), pa.Check.le(20)], nullable=True),
    "share": pa.Column("uint8", [pa.Check.gt(0.5), pa.Check.lt(9.5)]),
    "job": pa.Column(str, pa.Check.isin(["clerk", "nurse"]), nullable=True),
    "level": pa.Column(int, pa.Check.isin([1, 2, 3])),
    "kind": pa.Column(pd.CategoricalDtype(["x", "y"])),
    "citizen": pa.Column(bool),
    "hired": pa.Column("datetime64[ns]", pa.Check.between(pd.Timestamp("1990-01-01"), pd.Timestamp("2026-01-01"))),
    "income": pa.Column(str, pa.Check.isin(["<=50K", ">50K"])),
})  # fmt: skip


def test_dtypes_checks_and_nullable_are_taken_from_pandera():
    schema = Schema.from_pandera(CHECKED, label="income", groups=["kind"])
    assert dict(schema.columns) == {
        "age": Number(17, 90, step=1),
        "wage": Number(0.0, 1e5, missing=True),
        "children": Number(0, 11, step=1, missing=True),
        "share": Number(1, 9, step=1),
        "job": Category(["clerk", "nurse"], missing=True),
        "level": Category([1, 2, 3]),
        "kind": Category(["x", "y"]),
        "citizen": Boolean(),
        "hired": Date("1990-01-01", "2026-01-01"),
        "income": Category(["<=50K", ">50K"]),
    }
    assert schema.classes == ("<=50K", ">50K") and schema.group_values == ("x", "y")


def test_a_model_of_pandera_is_a_schema():
    class Model(pa.DataFrameModel):
        age: int = pa.Field(ge=0, le=120)
        sex: str = pa.Field(isin=["f", "m"])

    assert Schema.from_pandera(Model, groups="sex") == Schema(
        {"age": Number(0, 120, step=1), "sex": Category(["f", "m"])}, groups="sex"
    )


def test_what_pandera_does_not_bound_is_asked_for_and_can_be_added_or_left_out():
    open_ended = pa.DataFrameSchema({"age": pa.Column(int, pa.Check.ge(0)), "town": pa.Column(str), "x": pa.Column()})
    with pytest.raises(
        ValueError, match=r"\(age: bounds; town: values; x: values\).*Number\(0, 100, step=1\).*'town': 'category'"
    ):
        Schema.from_pandera(open_ended)
    schema = Schema.from_pandera(open_ended, columns={"age": Number(0, 99, step=1), "town": None, "x": None})
    assert dict(schema.columns) == {"age": Number(0, 99, step=1)}
    with pytest.raises(ValueError, match=r"not in the description: \['city'\]"):
        Schema.from_pandera(open_ended, columns={"city": None})
    with pytest.raises(ValueError, match=r"x: values"):
        Schema.from_pandera(open_ended, columns={"age": Number(0, 9), "town": None, "x": None}, label="x")


@pytest.mark.parametrize(
    "thing", [3, {"columns": {}}, pd.DataFrame({"a": [1]}), type("No", (), {"columns": {"a": 1}})()]
)
def test_what_is_no_pandera_schema_is_named(thing):
    with pytest.raises(ValueError, match=r"takes a DataFrameSchema or a DataFrameModel of pandera\. Got"):
        Schema.from_pandera(thing)


COLUMNS = {
    "guest_email": {"sdtype": "email", "pii": True},
    "key": {"sdtype": "id", "regex_format": "[A-Z]{3}"},
    "amenities": {"sdtype": "numerical", "computer_representation": "Int64"},
    "rate": {"sdtype": "numerical"},
    "room": {"sdtype": "categorical"},
    "passport": {"sdtype": "categorical", "pii": True},
    "checkin": {"sdtype": "datetime", "datetime_format": "%d %b %Y"},
    "rewards": {"sdtype": "boolean"},
    "note": {"sdtype": "unknown"},
}
ONE = {"METADATA_SPEC_VERSION": "SINGLE_TABLE_V1", "primary_key": "guest_email", "columns": COLUMNS}
MANY = {"METADATA_SPEC_VERSION": "V1", "tables": {"guests": {"columns": COLUMNS}}, "relationships": []}
ADDED = {
    "amenities": Number(0, 9, step=1),
    "rate": Number(0.0, 900.0),
    "room": Category(["basic", "suite"]),
    "checkin": Date("2020-01-01", datetime.date(2026, 1, 1)),
}


class Metadata:
    """As SDV's own: what matters is ``to_dict``."""

    def to_dict(self):
        return MANY


@pytest.mark.parametrize("form", ["dict", "many tables", "object", "text", "path", "str path"])
def test_kinds_are_taken_from_sdv_in_every_form(form, tmp_path):
    path = tmp_path / "metadata.json"
    path.write_text(json.dumps(ONE))
    metadata = {"dict": ONE, "many tables": MANY, "object": Metadata(), "text": json.dumps(MANY), "path": path,
                "str path": str(path)}[form]  # fmt: skip
    schema = Schema.from_sdv(metadata, columns=ADDED, groups="room")
    assert dict(schema.columns) == {**ADDED, "rewards": Boolean(missing=True)}
    assert list(schema.columns) == ["amenities", "rate", "room", "checkin", "rewards"]


def test_bounds_and_values_that_sdv_does_not_know_are_asked_for():
    with pytest.raises(ValueError, match=r"amenities: bounds; rate: bounds; room: values; checkin: first and last day"):
        Schema.from_sdv(ONE, columns={})
    with pytest.raises(ValueError, match=r"known=\{'rate': 'number'\}"):
        Schema.from_sdv(ONE, columns={name: column for name, column in ADDED.items() if name != "rate"})
    with pytest.raises(ValueError, match=r"passport: values"):
        Schema.from_sdv(ONE, columns=ADDED, label="passport")


def test_what_it_asks_for_can_be_paid_for_as_it_says():
    known = {"rate": "number"}
    table = pd.DataFrame({"rate": [1.0, 2.0, 3.0, 50.0] * 50})
    assert Schema.release(table, epsilon=50.0, known=known).columns["rate"].high >= 50


@pytest.mark.parametrize(
    ("metadata", "table", "says"),
    [
        ({"tables": {"a": {}, "b": {}}}, None, r"Name one of \['a', 'b'\]"),
        (MANY, "rooms", r"no table 'rooms'. Name one of \['guests'\]"),
        ({"columns": {"a": {"type": "numerical"}}}, None, "maps each name to its 'sdtype'"),
        ("{broken", None, "cannot read the metadata as JSON"),
        (7, None, "Got int"),
    ],
)
def test_metadata_that_are_none_are_named(metadata, table, says):
    with pytest.raises(ValueError, match=says):
        Schema.from_sdv(metadata, columns={}, table=table)
