"""What the post-processors read from their inputs: rows, classes, groups and the label of a refusal."""

import math
import numbers
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import is_regressor
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import validate_data

from skfairdp._inputs import refuse_chunks, without_subject
from skfairdp._utils import (
    as_groups,
    check_same_index,
    encode_groups,
    encode_labels,
    encode_many,
    given_domain,
    group_domain,
    label_array,
    refuse_masked,
    split_sensitive_columns,
)
from skfairdp.schema import RawTable, Schema, schema_of


def refuse_regressor(estimator: Any, *, owner: str) -> None:
    """Refuse an estimator that predicts numbers, before it is fitted or asked."""
    if hasattr(estimator, "__sklearn_tags__") and is_regressor(estimator):
        raise ValueError(
            f"The 'estimator' parameter of {owner} must be a classifier, as it answers with classes. Got "
            f"{type(estimator).__name__}, which predicts numbers. Take for example LogisticRegression()."
        )


def shape_of(X: Any) -> tuple[int, ...]:
    return tuple(X.shape if hasattr(X, "shape") else np.asarray(X).shape)


def schema_for(wrapper: Any) -> Schema | None:
    """The schema of a post-processor, else that of its estimator, unless the post-processor itself names groups."""
    schema = schema_of(wrapper)
    if schema is not None or wrapper.groups is not None or wrapper.sensitive_columns is not None:
        return schema
    inner = getattr(_thawed(wrapper.estimator), "schema", None)
    return inner if isinstance(inner, Schema) and inner.groups else None


def _thawed(estimator: Any) -> Any:
    while isinstance(estimator, FrozenEstimator):
        estimator = estimator.estimator
    return estimator


def split_rows(
    estimator: Any, X: Any, sensitive_features: Any, *, reset: bool, owner: str = "IDP3", private: bool = False
) -> tuple[Any, Any]:
    """Return the features, and the groups from ``sensitive_columns`` or as given (None where there are none).

    With a schema the features are the table as it is: the wrapped estimator reads it by a schema of its own. Of private
    rows no group is an error then.
    """
    refuse_chunks(owner, X=X)
    refuse_masked(X, owner=owner, name="X", kind="not finite")
    schema = schema_for(estimator)
    if schema is not None:
        raw = RawTable.read(schema, X, owner=owner)
        if reset:
            estimator.n_features_in_ = len(schema.features)
            estimator.feature_names_in_ = np.asarray(schema.features, dtype=object)
        if sensitive_features is None and not raw.has_groups:
            return X, None
        return X, raw.domain[raw.groups(sensitive_features, public=not private)]
    check_same_index(owner, X=X, sensitive_features=sensitive_features)
    X = without_subject(_thawed(getattr(estimator, "estimator_", estimator.estimator)), X)  # as the model itself does
    shape = shape_of(X)
    if len(shape) == 2:  # anything else is the wrapped estimator's to accept or refuse
        validate_data(estimator, X, reset=reset, skip_check_array=True)
    if shape[:1] in ((), (0,)):
        raise ValueError(f"Found array with 0 sample(s) (shape={shape}) while a minimum of 1 is required by {owner}.")
    if estimator.sensitive_columns is None:
        return X, sensitive_features
    if sensitive_features is not None:
        raise ValueError(f"{owner} got both 'sensitive_columns' and sensitive_features; leave one of them out.")
    return split_sensitive_columns(X, estimator.sensitive_columns, owner=owner)


def declared_groups(estimator: Any) -> Any:
    """The groups that a parameter lists, or a schema in its place; None where neither does."""
    schema = schema_for(estimator)
    return estimator.groups if schema is None else schema.group_values


def read_classes(y: Any) -> NDArray[Any]:
    """Return the sorted distinct labels of y, or raise a ValueError that says why they cannot be classes."""
    if y is None:
        raise ValueError("IDP3 requires y to be passed, but the target y is None.")
    labels = column_of(y, "y")
    if bool(pd.isna(labels).any()):
        raise ValueError("y of IDP3 contains missing values (NaN or None).")
    if labels.dtype.kind not in "iufbUO" or (labels.dtype.kind == "f" and (labels != np.floor(labels)).any()):
        raise ValueError("Unknown label type: y of IDP3 must hold class labels, not numbers from a continuum.")
    try:
        return np.unique(labels)
    except TypeError:
        raise ValueError("Unknown label type: y of IDP3 mixes labels that cannot be ordered.") from None


def read_groups(groups: Any, given: Any, rows: int) -> NDArray[np.object_]:
    """Return the group domain: ``given`` (every row is then checked against it), else the groups that occur."""
    if groups is None and given is None:
        raise ValueError(
            "IDP3 does not know the groups: pass sensitive_features to fit, list them with the 'groups' parameter, "
            "name the columns of X that hold them with 'sensitive_columns', or describe the table with 'schema'."
        )
    if given is not None:
        domain = given_domain(given, owner="IDP3", parameter="groups")
        if groups is not None:
            seen = as_groups(groups, rows, owner="IDP3")
            encode_labels(seen, domain, owner="IDP3", name="sensitive_features", parameter="groups")
        return domain
    domain = group_domain(as_groups(groups, rows, owner="IDP3"))
    if len(domain) < 2:
        raise ValueError(
            "IDP3 found only one group in the rows given to fit, so every fairness statement would be vacuous. "
            "If this is intended, list the groups with the 'groups' parameter."
        )
    return domain


def public_groups(groups: Any, given: Any, rows: int, *, owner: str) -> tuple[NDArray[np.object_], NDArray[np.int64]]:
    """Return groups and each public row's code, where every group needs public rows."""
    if groups is None:
        raise ValueError(
            f"{owner} needs the group of every public row: pass sensitive_features to fit, or name the columns of X "
            "that hold them with 'sensitive_columns'."
        )
    values = as_groups(groups, rows, owner=owner)
    domain = group_domain(values) if given is None else given_domain(given, owner=owner, parameter="groups")
    if len(domain) < 2:
        raise ValueError(
            f"{owner} found only one group in the {'public rows' if given is None else 'groups parameter'}, so that "
            "there is no gap to lower. Add public rows of the other groups."
        )
    codes = encode_labels(values, domain, owner=owner, name="sensitive_features", parameter="groups")
    absent = len(domain) - len(np.unique(codes))
    if absent:
        raise ValueError(
            f"{owner} got no public row of {absent} of the {len(domain)} groups. Add public rows of every group, or "
            "leave those out of 'groups'."
        )
    return domain, codes


def public_labels(estimator: Any, X: Any, y: Any, *, owner: str) -> NDArray[Any] | None:
    """Return the labels of public rows, as given or from the column that a schema names; None where there are none."""
    schema = schema_for(estimator)
    if schema is not None:
        raw = RawTable.read(schema, X, owner=owner)
        if schema.label is None or (y is None and schema.label not in raw.numbers):
            return None
        return raw.classes[raw.labels(y, public=True)]
    if y is None:
        return None
    check_same_index(owner, X=X, y=y)
    check_consistent_length(X, y)
    return column_of(y, "y", owner)


def group_codes(groups: Any, domain: NDArray[np.object_], rows: int) -> NDArray[np.int64]:
    """Return each row's position in ``domain``."""
    if groups is None:
        raise ValueError("IDP3 needs the group of every row it is asked about: pass sensitive_features.")
    return encode_groups(groups, domain, rows, owner="IDP3", parameter="groups")


def label_codes(y: Any, labels: NDArray[Any], name: str) -> NDArray[np.int64]:
    """Return each row's position in ``labels``."""
    return encode_many(column_of(y, name), labels, owner="IDP3", name=name, parameter="y")


def reject_label(given: Any, classes: NDArray[Any]) -> Any:
    """Return the label of a refusal, which is no class and of the classes' type.

    ``given`` if it is not None. Else -1 for numbers (or one less than the smallest class, where -1 is a class) and
    "reject" for strings.
    """
    if np.ndim(given):
        raise ValueError(
            f"The 'reject_label' parameter of IDP3 must be one label, of the type of the classes. Got {given!r}."
        )
    labels = classes.tolist()
    text = all(isinstance(label, str) for label in labels)
    number = all(isinstance(label, numbers.Real) for label in labels)
    if given is None:
        if not (text or number):
            raise ValueError(
                "The 'reject_label' parameter of IDP3 has no default of a type that fits these classes; give one."
            )
        given = "reject" if text else -1 if -1 not in labels else math.floor(min(labels)) - 1
    elif not _fits(given, text, number, all(isinstance(label, numbers.Integral) for label in labels)):
        raise ValueError(
            f"The 'reject_label' parameter of IDP3 must be of the type of the classes. Got {given!r} instead."
        )
    if given in labels:
        raise ValueError(
            f"The 'reject_label' parameter of IDP3 must not be a class, but {given!r} is one of the classes. "
            "Give another label."
        )
    return given


def _fits(label: Any, text: bool, number: bool, integer: bool) -> bool:
    if isinstance(label, bool | np.bool_) or (isinstance(label, float) and math.isnan(label)):
        return False
    if text:
        return isinstance(label, str)
    if number:
        return isinstance(label, numbers.Integral if integer else numbers.Real)
    try:
        hash(label)
    except TypeError:
        return False
    return True


def column_of(values: Any, name: str, owner: str = "IDP3") -> NDArray[Any]:
    refuse_masked(values, owner=owner, name=name)
    try:
        array = np.asarray(label_array(values))
    except (ValueError, TypeError, OverflowError):
        array = np.empty((0, 0))
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1 or len(array) == 0:
        raise ValueError(f"{name} of {owner} must be one column of labels with at least one row.")
    return array
