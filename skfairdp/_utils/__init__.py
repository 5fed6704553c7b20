"""Validation, public randomness and the only door to scikit-learn's private names."""

from skfairdp._utils._containers import (
    PublicData,
    as_dense as as_dense,
    as_pandas as as_pandas,
    check_same_index as check_same_index,
    column_names as column_names,
    label_array as label_array,
    refuse_group_among_features as refuse_group_among_features,
    refuse_masked as refuse_masked,
    refuse_private_as_public as refuse_private_as_public,
    row_blocks as row_blocks,
)
from skfairdp._utils._files import (
    html_table as html_table,
    page as page,
    section as section,
    write_csv as write_csv,
    write_text as write_text,
)
from skfairdp._utils._labels import (
    as_amounts as as_amounts,
    as_exposures as as_exposures,
    as_groups as as_groups,
    as_labels as as_labels,
    as_series as as_series,
    copy_label_encoding as copy_label_encoding,
    declared_classes as declared_classes,
    decode_labels as decode_labels,
    encode_groups as encode_groups,
    encode_labels as encode_labels,
    encode_many as encode_many,
    encode_within as encode_within,
    given_domain as given_domain,
    group_domain as group_domain,
    group_membership as group_membership,
    labels_are_codes as labels_are_codes,
    note_label_codes as note_label_codes,
    sensitive_positions as sensitive_positions,
    split_sensitive_columns as split_sensitive_columns,
    texts_of_ids as texts_of_ids,
)
from skfairdp._utils._messages import (
    PRIVATE_ERRORS as PRIVATE_ERRORS,
    PrivateRowsError as PrivateRowsError,
    invalid_parameter as invalid_parameter,
    open_stream as open_stream,
    private_error as private_error,
    progress_bar as progress_bar,
    say as say,
    silence as silence,
    warn_caller as warn_caller,
    warn_of_seed as warn_of_seed,
    without_cells as without_cells,
    without_values as without_values,
)
from skfairdp._utils._numeric import (
    BLAS as BLAS,
    RandomStateLike as RandomStateLike,
    child_seeds as child_seeds,
    coins_of as coins_of,
    fit_softmax as fit_softmax,
    public_generator as public_generator,
)
from skfairdp._utils._plain_rows import PlainRows as PlainRows, by_halves as by_halves
from skfairdp._utils._plain_state import Plain as Plain, PlainState as PlainState, plain as plain, restored as restored
from skfairdp._utils._sklearn import NamedEstimator as NamedEstimator

__all__ = ["PublicData"]
