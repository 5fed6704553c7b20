"""What a container of rows can get wrong before a value is read: other indexes, a mask, sparse storage."""

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from skfairdp.utils._private_errors import private_error
from skfairdp.utils._public import PublicData

__all__ = ["as_dense", "check_same_index", "column_names", "label_array", "refuse_masked"]

#: Sparse tables are written out up to this size: a fit holds a few copies of its rows beside each other.
LARGEST_DENSE = 2**31


def check_same_index(owner: str, **arguments: Any) -> None:
    """Refuse pandas objects whose indexes name other rows, or the same rows in another order.

    Rows are matched by position, here as in all of scikit-learn. Two pandas objects say themselves which of their rows
    belong together; where that is another matching, one of the two is wrong. An argument without an index (an array, a
    list, a polars frame) is matched by position, which is what whoever passes it asks for.

    An index names rows and describes nobody: like a row's position it is public. It is compared and never printed, so
    that even an index made of private values shows no more than that it differs from another one.

    Parameters
    ----------
    owner : str
        Class or function name for the error message.
    **arguments : object
        By the names the user knows. Those of another length are left to the check that names lengths.

    Raises
    ------
    ValueError
        A constant text of ``PRIVATE_ERRORS``.

    Examples
    --------
    >>> import pandas as pd
    >>> from skfairdp.utils import check_same_index
    >>> X, y = pd.DataFrame({"age": [30, 40]}, index=[7, 8]), pd.Series([0, 1], index=[8, 7])
    >>> check_same_index("PATEClassifier", X=X, y=y.to_numpy())
    >>> check_same_index("PATEClassifier", X=X, y=y)
    Traceback (most recent call last):
        ...
    skfairdp.utils._private_errors.PrivateRowsError: y of PATEClassifier has another index than X. Rows are \
matched by position: pass y.loc[X.index], or y.to_numpy() where the rows are in the same order.
    """
    indexed = {name: given.index for name, given in arguments.items() if hasattr(given, "iloc")}
    if len(indexed) < 2:
        return
    first, *others = indexed
    for name in others:
        if len(indexed[name]) == len(indexed[first]) and not indexed[name].equals(indexed[first]):
            raise private_error("other index", owner=owner, name=name, parameter=first)


def refuse_masked(values: Any, *, owner: str, name: str, kind: str = "missing value") -> None:
    """Refuse a masked array with masked entries, whose mask numpy drops without a word."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise private_error(kind, owner=owner, name=name)


def as_dense(X: Any, *, owner: str, name: str = "X") -> Any:
    """Return a table that can be read: sparse storage written out, and what is no table refused.

    Parameters
    ----------
    X : array-like
    owner, name : str
        Class and argument for the error message.

    Returns
    -------
    array-like
        ``X`` itself unless it is sparse.

    Raises
    ------
    ValueError
        A tuple or ``PublicData`` where a table is meant, a masked array with masked entries, a sparse table that is
        too large to be written out.

    Examples
    --------
    >>> import scipy.sparse
    >>> from skfairdp.utils import as_dense
    >>> as_dense(scipy.sparse.eye_array(2), owner="PATEClassifier").tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    if isinstance(X, PublicData):
        raise ValueError(f"{name} of {owner} must be a table; got PublicData. Pass it as X_public, or pass its X.")
    if isinstance(X, tuple) and 2 <= len(X) <= 3 and getattr(X[0], "ndim", 0) == 2:
        together = (
            "X_public=PublicData(X, sensitive_features)" if name == "X_public" else f"{name} and the others apart"
        )
        raise ValueError(f"{name} of {owner} must be one table; got a tuple of {len(X)}. Pass {together}.")
    refuse_masked(X, owner=owner, name=name, kind="not finite")
    if not scipy.sparse.issparse(X) or X.ndim != 2:
        return X
    if X.dtype.kind == "c":
        raise private_error("complex", owner=owner, name=name)
    if 8 * X.shape[0] * X.shape[1] > LARGEST_DENSE:  # how much it is would tell the number of rows
        raise ValueError(
            f"{name} of {owner} is sparse and would take more than {LARGEST_DENSE / 2**30:g} GiB as a dense table, "
            "which is the most that is written out unasked. Set sparse_output=False in its encoder if you "
            "have that memory, or join rare categories first (min_frequency=)."
        )
    return X.toarray()


def column_names(X: Any) -> list[Any] | None:
    """Names of the columns of a table, None where it has none."""
    names = getattr(X, "columns", None)
    if names is None and hasattr(X, "column_names"):  # pyarrow
        names = X.column_names
    return None if names is None or callable(names) else list(names)


def label_array(values: Any) -> Any:
    """A list with strings and numbers as the objects they are, where numpy would write ``[1, "a"]`` as two strings."""
    if not isinstance(values, list | tuple):
        return values
    array: NDArray[Any] = np.asarray(values)
    if array.dtype.kind in "US" and not all(isinstance(value, str | bytes) for value in np.ravel(_as_objects(values))):
        return _as_objects(values)
    return array


def _as_objects(values: Any) -> NDArray[np.object_]:
    return np.asarray(values, dtype=object)
