"""What is public about a table, and tables read by it alone."""

from skfairdp._rows import KeyedRows
from skfairdp.schema._columns import Boolean, Category, Column, Date, Number, places_of, positions
from skfairdp.schema._raw_table import (
    SCHEMA_CONSTRAINT,
    SCHEMA_PARAMETERS,
    CompactRows,
    NumberPlace,
    RawTable,
    RowStore,
    SchemaEncoder,
    check_roles,
    feature_places,
    kept_rows,
    made_up,
    note_columns,
    number_places,
    numeric_memmap,
    schema_of,
    storage_bytes,
    subsample_rows,
)
from skfairdp.schema._release import IncompleteSchemaError, SchemaPlan, planned_schema
from skfairdp.schema._schema import Schema, SchemaParameter, SchemaRows, with_schema

__all__ = ["Boolean", "Category", "Date", "IncompleteSchemaError", "KeyedRows", "Number", "Schema", "SchemaEncoder"]
