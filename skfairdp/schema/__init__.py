"""What is public about a table, and tables read by it alone."""

from skfairdp._rows import KeyedRows
from skfairdp.schema._columns import Boolean, Category, Column as Column, Date, Number
from skfairdp.schema._raw_table import (
    SCHEMA_CONSTRAINT as SCHEMA_CONSTRAINT,
    SCHEMA_PARAMETERS as SCHEMA_PARAMETERS,
    NumberPlace as NumberPlace,
    RawTable as RawTable,
    SchemaEncoder,
    check_roles as check_roles,
    feature_places as feature_places,
    made_up as made_up,
    note_columns as note_columns,
    number_places as number_places,
    schema_of as schema_of,
)
from skfairdp.schema._release import IncompleteSchemaError, SchemaPlan as SchemaPlan, planned_schema as planned_schema
from skfairdp.schema._row_store import (
    CompactRows as CompactRows,
    RowStore as RowStore,
    kept_rows as kept_rows,
    numeric_memmap as numeric_memmap,
    storage_bytes as storage_bytes,
    subsample_rows as subsample_rows,
)
from skfairdp.schema._schema import (
    Schema,
    SchemaParameter as SchemaParameter,
    SchemaRows as SchemaRows,
    with_schema as with_schema,
)

__all__ = ["Boolean", "Category", "Date", "IncompleteSchemaError", "KeyedRows", "Number", "Schema", "SchemaEncoder"]
