"""Noisy tables of counts: columns as codes, a graphical model over them, and rows that are sampled from it.

What is counted is private until a mechanism of ``skfairdp.privacy`` has released it; codes, bins and plans are public.
"""

from skfairdp._tables._backend import RELATION, BackendPlan, GeneratorBackend, GeneratorPlan, Layout, Model, Rows
from skfairdp._tables._columns import (
    CategoryColumn,
    Column,
    NumberColumn,
    drawn_cells,
    fine_grid,
    merged_grid,
    on_simplex,
    quantile_starts,
    release_bins,
)
from skfairdp._tables._counting import code_type, counted_pairs, made_on_all_cores
from skfairdp._tables._declared import (
    Declarations,
    Declared,
    Form,
    SampleForm,
    Table,
    as_container,
    as_entries,
    as_numbers,
    can_be_missing,
    dtype_of,
    kind_of,
    read_table,
)
from skfairdp._tables._interactions import InteractionModel
from skfairdp._tables._marginals import MarginalsBackend, MarginalsPlan
from skfairdp._tables._matrix import schema_columns, table_of
from skfairdp._tables._synthetic_rows import SampledRows, SyntheticRows, SyntheticRowsPlan
