"""Rows that need not fit into memory: one narrow protocol over files, frames and clusters."""

from skfairdp._rows._keyed import KeyedRows, row_hashes
from skfairdp._rows._source import Chunk, RowSource, opened
from skfairdp._rows._spill import Spill, check_free_disk

__all__ = ["Chunk", "KeyedRows", "RowSource", "Spill", "check_free_disk", "opened", "row_hashes"]
