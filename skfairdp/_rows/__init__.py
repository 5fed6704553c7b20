"""Rows that need not fit into memory: one narrow protocol over files, frames and clusters."""

from skfairdp._rows._keyed import KeyedRows, row_hashes
from skfairdp._rows._source import Chunk, RowSource, opened

__all__ = ["Chunk", "KeyedRows", "RowSource", "opened", "row_hashes"]
