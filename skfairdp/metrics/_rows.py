"""Reading the rows of a metric: labels, groups and which rows were answered."""

from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skfairdp._typing import ArrayLike
from skfairdp._utils import as_groups, encode_labels, given_domain, group_domain, refuse_masked, warn_caller
from skfairdp.exceptions import FairnessWarning


def read_labels(y: ArrayLike, name: str, owner: str, n_rows: int | None = None) -> NDArray[np.object_]:
    """Return one column of labels as plain Python scalars; a ValueError names what is wrong with it."""
    refuse_masked(y, owner=owner, name=name)
    try:
        # A list keeps its own types: numpy would read ["a", nan] as two strings.
        array = np.asarray(y, dtype=object if isinstance(y, list | tuple) else None)
    except ValueError:
        array = np.empty((0, 0))
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"{name} of {owner} must be one column with at least one row.")
    if n_rows is not None and len(array) != n_rows:
        raise ValueError(f"y_true and y_pred of {owner} have inconsistent lengths: {n_rows} and {len(array)}.")
    if bool(pd.isna(array).any()):
        raise ValueError(f"{name} of {owner} contains missing values (NaN or None).")
    out = np.empty(len(array), dtype=object)
    out[:] = array.tolist()
    return out


def read_rejected(y_pred: NDArray[np.object_], reject_label: Hashable | None, owner: str) -> NDArray[np.bool_]:
    """Return which predictions are refusals; ``reject_label=None`` means none is."""
    if reject_label is None:
        return np.zeros(len(y_pred), dtype=bool)
    if any(isinstance(label, str) for label in y_pred) != isinstance(reject_label, str):
        raise ValueError(
            f"The 'reject_label' of {owner} must be of the type of the predictions. Got {reject_label!r} instead."
        )
    return np.array([label == reject_label for label in y_pred], dtype=bool)


def group_codes(
    sensitive_features: Any, groups: Any, n_rows: int, owner: str
) -> tuple[NDArray[np.int64], NDArray[np.object_]]:
    """Return each row's group code and the groups (``groups`` as given, else those that occur)."""
    values = as_groups(sensitive_features, n_rows, owner=owner)
    domain = group_domain(values) if groups is None else given_domain(groups, owner=owner, parameter="groups")
    return encode_labels(values, domain, owner=owner, name="sensitive_features", parameter="groups"), domain


def warn_if_vacuous(n_compared: int, owner: str) -> None:
    if n_compared < 2:
        warn_caller(
            f"{owner} found fewer than two groups with rows to compare: the 0 it returns says nothing.",
            FairnessWarning,
        )
