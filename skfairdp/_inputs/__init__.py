"""The arguments of ``fit``, read and checked: private rows, public rows, domains, and the list of what is public.

An estimator is asked here for its constructor parameters (``schema``, or ``classes``, ``groups`` and
``sensitive_columns``; ``public_data``) and its name, and gets the attributes that scikit-learn's validation sets.
"""

from skfairdp._inputs._data import PublicRows, TrainingData, note_subject_column, subject_given
from skfairdp._inputs._table import (
    amount_bounds,
    amounts_of,
    check_public_columns,
    groups_to_come,
    groups_twice,
    read_amounts,
    read_classes,
    read_features,
    read_labels,
    read_private_groups,
    read_unprotected,
    warn_of_other_units,
    without_subject,
)
from skfairdp._inputs._training import (
    in_order,
    public_arguments,
    read_any_training,
    read_numbers_of,
    read_public_rows_of,
    read_source,
    read_training,
    refuse_chunks,
    refuse_columns_beside,
)
