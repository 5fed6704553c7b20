"""What is public about a table, and tables read by it alone."""

from skfairdp._rows import KeyedRows
from skfairdp.schema._columns import Boolean, Category, Column as Column, Date, Number
from skfairdp.schema._compact import CompactRows as CompactRows
from skfairdp.schema._encoder import (
    NumberPlace as NumberPlace,
    SchemaEncoder,
    feature_places as feature_places,
    number_places as number_places,
)
from skfairdp.schema._kept_rows import (
    KeptRows as KeptRows,
    bytes_kept as bytes_kept,
    chosen_public_rows as chosen_public_rows,
    kept_rows as kept_rows,
    number_rows as number_rows,
)
from skfairdp.schema._raw_table import (
    A_SCHEMA as A_SCHEMA,
    SAID_BY_SCHEMA as SAID_BY_SCHEMA,
    RawTable as RawTable,
    check_roles as check_roles,
    made_up as made_up,
    note_columns as note_columns,
    schema_of as schema_of,
)
from skfairdp.schema._release import IncompleteSchemaError, SchemaPlan as SchemaPlan, planned_schema as planned_schema
from skfairdp.schema._schema import Schema, SchemaParameter as SchemaParameter, SchemaRows as SchemaRows

__all__ = ["Boolean", "Category", "Date", "IncompleteSchemaError", "KeyedRows", "Number", "Schema", "SchemaEncoder"]
