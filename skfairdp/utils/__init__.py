"""Validation, public randomness and the only door to scikit-learn's private names."""

from skfairdp.utils._groups import (
    as_groups,
    encode_labels,
    given_domain,
    group_domain,
    split_sensitive_columns,
)
from skfairdp.utils._progress import progress_bar
from skfairdp.utils._public import PublicData
from skfairdp.utils._random import RandomStateLike, child_seeds, public_generator
from skfairdp.utils._validation import without_values

__all__ = [
    "PublicData",
    "RandomStateLike",
    "as_groups",
    "child_seeds",
    "encode_labels",
    "given_domain",
    "group_domain",
    "progress_bar",
    "public_generator",
    "split_sensitive_columns",
    "without_values",
]
