"""What is public about a table, and tables read by it alone."""

from skfairdp.schema._columns import Boolean, Category, Column, Date, Number
from skfairdp.schema._encoder import SchemaEncoder
from skfairdp.schema._schema import Schema, SchemaRows

__all__ = ["Boolean", "Category", "Column", "Date", "Number", "Schema", "SchemaEncoder", "SchemaRows"]
