"""Validation, public randomness and the only door to scikit-learn's private names."""

from skfairdp.utils._groups import (
    as_groups,
    encode_labels,
    given_domain,
    group_domain,
    group_membership,
    split_sensitive_columns,
    without_types,
)
from skfairdp.utils._private_errors import PRIVATE_ERRORS, PrivateRowsError, private_error
from skfairdp.utils._progress import progress_bar
from skfairdp.utils._public import PublicData
from skfairdp.utils._quiet import open_stream, silence
from skfairdp.utils._random import RandomStateLike, child_seeds, public_generator
from skfairdp.utils._softmax_regression import fit_softmax
from skfairdp.utils._validation import as_labels, without_values
from skfairdp.utils._warn import warn_caller

__all__ = [
    "PRIVATE_ERRORS",
    "PrivateRowsError",
    "PublicData",
    "RandomStateLike",
    "as_groups",
    "as_labels",
    "child_seeds",
    "encode_labels",
    "fit_softmax",
    "given_domain",
    "group_domain",
    "group_membership",
    "open_stream",
    "private_error",
    "progress_bar",
    "public_generator",
    "silence",
    "split_sensitive_columns",
    "warn_caller",
    "without_types",
    "without_values",
]
