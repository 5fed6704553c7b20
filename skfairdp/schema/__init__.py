"""What is public about a table, and tables read by it alone."""

from skfairdp._rows import KeyedRows
from skfairdp.schema._columns import Boolean, Category, Column, Date, Number
from skfairdp.schema._compact import CompactRows
from skfairdp.schema._encoder import NumberPlace, SchemaEncoder, feature_places, number_places
from skfairdp.schema._kept_rows import KeptRows, bytes_kept, chosen_public_rows, kept_rows, number_rows
from skfairdp.schema._raw_table import A_SCHEMA, SAID_BY_SCHEMA, RawTable, check_roles, made_up, note_columns, schema_of
from skfairdp.schema._release import IncompleteSchemaError, SchemaPlan, planned_schema
from skfairdp.schema._schema import Schema, SchemaParameter, SchemaRows

__all__ = [
    "A_SCHEMA",
    "SAID_BY_SCHEMA",
    "Boolean",
    "Category",
    "Column",
    "CompactRows",
    "Date",
    "IncompleteSchemaError",
    "KeptRows",
    "KeyedRows",
    "Number",
    "NumberPlace",
    "RawTable",
    "Schema",
    "SchemaEncoder",
    "SchemaParameter",
    "SchemaPlan",
    "SchemaRows",
    "bytes_kept",
    "check_roles",
    "chosen_public_rows",
    "feature_places",
    "kept_rows",
    "made_up",
    "note_columns",
    "number_places",
    "number_rows",
    "planned_schema",
    "schema_of",
]
