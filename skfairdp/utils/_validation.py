"""Reading tables and labels that may be private: errors keep scikit-learn's kinds, without the entries they quote."""

import re
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import column_or_1d

from skfairdp.utils._private_errors import private_error

__all__ = ["as_labels", "without_values"]

#: What scikit-learn says of the shape or the columns of a table, which are public, and of nothing else.
_PUBLIC = re.compile(
    r"Found array with|X has \d+ features|The feature names should match|Feature names are only supported|"
    r"Sparse data was passed|.* is expecting \d+ features|Unable to set |Reshape your data|.*requires y to be passed"
)


def without_values(error: Exception, *, owner: str, name: str = "X") -> Exception:
    """Return an error that says what was wrong with a table and repeats none of its entries.

    Parameters
    ----------
    error : Exception
        Raised by scikit-learn or numpy while they read the table.
    owner : str
        Class name for the message.
    name : str, default="X"
        Argument name for the message.

    Returns
    -------
    Exception
        ``error`` itself where its message is about public things (number of dimensions and features, names of the
        columns), else one of the constant texts of ``PRIVATE_ERRORS``. Raise it *outside* the ``except`` block: an
        error raised inside carries the first one as its context, for loggers to find.

    Examples
    --------
    >>> from skfairdp.utils import without_values
    >>> try:
    ...     raise without_values(ValueError("could not convert string to float: 'Ms Smith'"), owner="IDP3", name="y")
    ... except ValueError as error:
    ...     print(str(error)[:46])
    y of IDP3 has entries that are not numbers. Th
    """
    said = str(error)
    if said.startswith("Expected 2D array"):
        return ValueError(
            f"Expected 2D array: {name} of {owner} must have rows and columns. Reshape your data with "
            "array.reshape(-1, 1) if it has a single feature, or array.reshape(1, -1) if it is a single row."
        )
    if said.startswith("y should be a 1d array"):
        return ValueError(f"{name} of {owner} should be a 1d array: one column of labels, one entry per row.")
    if said.startswith(("Mix of label input types", "Classification metrics can't handle")):
        return ValueError(f"{name} of {owner} has labels of another type than the predictions.")
    if said.startswith("Found unknown categories") and "in column" in said:
        return ValueError(f"{name} of {owner} has categories unknown to the encoder. Set its handle_unknown='ignore'.")
    if said.startswith("Complex data not supported"):
        return private_error("complex", owner=owner, name=name)
    if "inhomogeneous" in said:
        return private_error("ragged", owner=owner, name=name)
    if isinstance(error, OverflowError) or "contains NaN" in said or "contains infinity" in said:
        return (
            private_error("not finite", owner=owner)
            if name == "X"
            else private_error("missing value", owner=owner, name=name)
        )
    if _PUBLIC.match(said):
        return error
    return private_error("not numbers", owner=owner, name=name)


def as_labels(y: Any, n_rows: int, *, owner: str, name: str = "y", check_kind: bool = True) -> NDArray[Any]:
    """Read one label per row.

    Parameters
    ----------
    y : array-like of shape (n_rows,) or (n_rows, 1)
    n_rows : int
        Number of rows of X.
    owner : str
        Class name for the error message.
    name : str, default="y"
        Argument name for the error message.
    check_kind : bool, default=True
        Whether to look at the labels together: are they of one kind, and no measurements? Not needed where the domain
        is given, which settles what is a label.

    Returns
    -------
    ndarray of shape (n_rows,)
        Its dtype follows the labels; nothing that leaves a fit may follow it.

    Raises
    ------
    ValueError
        Missing or another number of labels, or one of the constant texts of ``PRIVATE_ERRORS``.

    Examples
    --------
    >>> from skfairdp.utils import as_labels
    >>> as_labels([0, 1], 2, owner="PATEClassifier", check_kind=False).shape
    (2,)
    """
    if y is None:
        raise ValueError(f"{owner} requires y to be passed, but the target y is None.")
    problem: Exception | None = None
    try:
        labels = column_or_1d(y, warn=True)
        if labels.dtype.kind == "c":
            problem = private_error("complex", owner=owner, name=name)
        elif bool(pd.isna(labels).any()) or (labels.dtype.kind == "f" and not np.all(np.isfinite(labels))):
            problem = private_error("missing value", owner=owner, name=name)
        elif check_kind and len(labels):
            np.unique(labels)
            if type_of_target(labels, raise_unknown=True) not in ("binary", "multiclass"):
                problem = private_error("no labels", owner=owner, name=name)
    except Warning:  # (n, 1) where (n,) is meant, in a program that turns warnings into errors
        raise
    except Exception as error:  # whatever a strange cell makes numpy raise, its type would speak of that cell
        if str(error).startswith(("y should be a 1d array", "Complex data")):
            problem = without_values(error, owner=owner, name=name)
        else:
            problem = private_error("no labels", owner=owner, name=name)
    if problem is not None:
        raise problem
    if len(labels) != n_rows:
        raise ValueError(f"{name} of {owner} has inconsistent length: it must have one label per row of X.")
    return np.asarray(labels)
