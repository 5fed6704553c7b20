"""Rows that need not fit into memory: one narrow protocol over files, frames and clusters."""

from skfairdp._rows._keyed import (
    LISTED,
    FoldRows,
    FoldRule,
    KeyedRows,
    SubjectFolds,
    fold_sizes,
    key_wanted,
    keyed_by_subject,
    row_hashes,
)
from skfairdp._rows._opened import gathered, opened
from skfairdp._rows._source import (
    HELD,
    Chunk,
    PartWork,
    RowSource,
    both_added,
    check_free_disk,
    check_order,
    even_tables,
    other_rows,
    stored,
    total_of,
)
from skfairdp._rows._subjects import SubjectRows, Subjects, name_of_subjects, one_of_each
