"""Validation, public randomness and the only door to scikit-learn's private names."""

from skfairdp._utils._containers import (
    PublicData,
    as_dense,
    as_objects,
    as_pandas,
    check_same_index,
    column_names,
    from_arrow,
    label_array,
    refuse_group_among_features,
    refuse_masked,
    refuse_private_as_public,
    row_blocks,
)
from skfairdp._utils._files import html_table, page, section, write_csv, write_text
from skfairdp._utils._labels import (
    as_amounts,
    as_exposures,
    as_groups,
    as_labels,
    as_series,
    copy_label_encoding,
    declared_classes,
    decode_labels,
    encode_groups,
    encode_labels,
    encode_many,
    encode_within,
    given_domain,
    group_domain,
    group_membership,
    hits,
    holds_times,
    labels_are_codes,
    note_label_codes,
    sensitive_positions,
    split_sensitive_columns,
    texts_of_ids,
    without_context,
)
from skfairdp._utils._messages import (
    PAID,
    PRIVATE_ERRORS,
    PrivateRowsError,
    Told,
    invalid_parameter,
    open_stream,
    private_error,
    progress_bar,
    recorded,
    say,
    silence,
    warn_caller,
    warn_of_seed,
    without_cells,
    without_values,
)
from skfairdp._utils._numeric import (
    BLAS,
    GENERATORS,
    RandomStateLike,
    child_seeds,
    coins_of,
    fit_softmax,
    public_generator,
)
from skfairdp._utils._plain_rows import PlainRows, by_halves
from skfairdp._utils._plain_state import Plain, PlainState, plain, restored
from skfairdp._utils._sklearn import NamedEstimator

__all__ = ["PublicData"]
