"""Validation, public randomness and the only door to scikit-learn's private names."""

from skfairdp.utils._containers import (
    as_dense,
    as_pandas,
    check_same_index,
    column_names,
    label_array,
    refuse_group_among_features,
    refuse_masked,
    refuse_private_as_public,
    row_blocks,
)
from skfairdp.utils._csv import write_csv
from skfairdp.utils._files import write_text
from skfairdp.utils._labels import (
    answer_like,
    as_groups,
    as_labels,
    as_series,
    encode_groups,
    encode_labels,
    encode_many,
    given_domain,
    group_domain,
    group_membership,
    is_numbered,
    labels_of,
    note_numbering,
    split_sensitive_columns,
)
from skfairdp.utils._messages import open_stream, progress_bar, say, silence, warn_caller
from skfairdp.utils._named import NamedEstimator
from skfairdp.utils._plain_rows import PlainRows, by_halves
from skfairdp.utils._private_errors import (
    PRIVATE_ERRORS,
    PrivateRowsError,
    private_error,
    without_cells,
    without_values,
)
from skfairdp.utils._public import PublicData
from skfairdp.utils._random import RandomStateLike, child_seeds, coins_of, public_generator
from skfairdp.utils._softmax_regression import fit_softmax
from skfairdp.utils._threads import BLAS

__all__ = [
    "BLAS",
    "PRIVATE_ERRORS",
    "NamedEstimator",
    "PlainRows",
    "PrivateRowsError",
    "PublicData",
    "RandomStateLike",
    "answer_like",
    "as_dense",
    "as_groups",
    "as_labels",
    "as_pandas",
    "as_series",
    "by_halves",
    "check_same_index",
    "child_seeds",
    "coins_of",
    "column_names",
    "encode_groups",
    "encode_labels",
    "encode_many",
    "fit_softmax",
    "given_domain",
    "group_domain",
    "group_membership",
    "is_numbered",
    "label_array",
    "labels_of",
    "note_numbering",
    "open_stream",
    "private_error",
    "progress_bar",
    "public_generator",
    "refuse_group_among_features",
    "refuse_masked",
    "refuse_private_as_public",
    "row_blocks",
    "say",
    "silence",
    "split_sensitive_columns",
    "warn_caller",
    "without_cells",
    "without_values",
    "write_csv",
    "write_text",
]
