"""Containers of rows: public ones, and what others can get wrong: other indexes, a mask, sparse storage."""

import contextlib
from collections import Counter
from collections.abc import Iterator
from itertools import product
from traceback import walk_stack
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse

from skfairdp._typing import Array, Objects
from skfairdp._utils._messages import private_error
from skfairdp._utils._plain_state import PlainState

#: Sparse tables are written out up to this size: a fit holds a few copies of its rows beside each other.
LARGEST_DENSE = 2**31

#: What of scikit-learn gives each row the label of another one on purpose.
_MIXING = {("sklearn.model_selection._validation", "_permutation_test_score")}

_WIDE = {"int64": pd.Int64Dtype(), "uint64": pd.UInt64Dtype()}  # whole numbers that floats do not hold
ROWS_AT_ONCE = 2048  # see row_blocks
_MOST_WORK: Any = 10_000  # steps of a comparison of two views; numpy's own types know its two special values only


def row_blocks(n_rows: int) -> Iterator[slice]:
    """Runs of rows that stay in the cache, of a size that nothing private decides."""
    return (slice(start, start + ROWS_AT_ONCE) for start in range(0, n_rows, ROWS_AT_ONCE))


def check_same_index(owner: str, **arguments: Any) -> None:
    """Refuse pandas objects whose indexes name other rows, or the same rows in another order: rows are matched by
    position, and here two arguments say themselves that this is wrong. One without an index is matched by position. An
    index is public, like a row's position; it is compared and never printed."""
    indexed = {name: given.index for name, given in arguments.items() if hasattr(given, "iloc")}
    if len(indexed) < 2:
        return
    first, *others = indexed
    for name in others:
        if len(indexed[name]) == len(indexed[first]) and not indexed[name].equals(indexed[first]):
            if any((frame.f_globals.get("__name__"), frame.f_code.co_name) in _MIXING for frame, _ in walk_stack(None)):
                return
            raise private_error("other index", owner=owner, name=name, parameter=first)


def refuse_masked(values: Any, *, owner: str, name: str, kind: str = "missing value") -> None:
    """Refuse a masked array with masked entries, whose mask numpy drops without a word."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise private_error(kind, owner=owner, name=name)


def as_dense(X: Any, *, owner: str, name: str = "X") -> Any:
    """Return a table that can be read: sparse storage written out, and what is no table refused."""
    if isinstance(X, PublicData):
        raise ValueError(f"{name} of {owner} must be a table; got PublicData. Pass it as X_public, or pass its X.")
    if isinstance(X, tuple) and 2 <= len(X) <= 3 and getattr(X[0], "ndim", 0) == 2:
        together = (
            "X_public=PublicData(X, sensitive_features)" if name == "X_public" else f"{name} and the others apart"
        )
        raise ValueError(f"{name} of {owner} must be one table; got a tuple of {len(X)}. Pass {together}.")
    if getattr(X, "requires_grad", None) is True:  # a tensor's numbers without their gradients
        X = X.detach()
    X = np.asarray(X) if isinstance(X, np.matrix) else X
    refuse_masked(X, owner=owner, name=name, kind="not finite")
    if not isinstance(X, np.ndarray):
        refuse_same_names(X, owner=owner, name=name)
    if not scipy.sparse.issparse(X) or X.ndim != 2:
        return X
    if X.dtype.kind == "c":
        raise private_error("complex", owner=owner, name=name)
    if 8 * X.shape[0] * X.shape[1] > LARGEST_DENSE:  # how much it is would tell the number of rows
        raise ValueError(
            f"{name} of {owner} is sparse and would take more than {LARGEST_DENSE / 2**30:g} GiB as a dense table, "
            "the most that is converted automatically. Set sparse_output=False in its encoder if you have that "
            "memory, or join rare categories first (min_frequency=)."
        )
    return X.toarray()


def as_pandas(table: Any) -> Any:
    """A table of polars or pyarrow as pandas has it, with sparse columns written out; anything else as it is."""
    if isinstance(table, pd.DataFrame) and any(isinstance(dtype, pd.SparseDtype) for dtype in table.dtypes):
        of_all = [table.iloc[:, j] for j in range(table.shape[1])]
        dense = [one.sparse.to_dense() if isinstance(one.dtype, pd.SparseDtype) else one for one in of_all]
        return pd.concat(dense, axis=1).set_axis(table.columns, axis=1)
    names = None if isinstance(table, pd.DataFrame | np.ndarray) else column_names(table)
    if names is None or not hasattr(table, "__arrow_c_stream__"):
        return table
    columns = ((name, table[name]) for name in names)
    read = ((name, from_arrow(own) if hasattr(own, "to_pylist") else own.to_numpy()) for name, own in columns)
    return pd.DataFrame({name: cells.tolist() if cells.dtype == object else cells for name, cells in read})


def from_arrow(column: Any) -> "pd.Series[Any]":
    """A column of pyarrow, of which no cell decides how others are read: whole numbers are none of floats beside
    nothing, days lie beyond the calendar of Python, and a text that is none is its bytes."""
    how = {"strings_to_categorical": True, "date_as_object": False, "types_mapper": lambda kind: _WIDE.get(str(kind))}
    with contextlib.suppress(Exception):  # of one cell, which its text may quote
        return pd.Series(column.to_pandas(**how))
    cells: list[Any] = []
    for cell in column:
        try:
            cells.append(cell.as_py())
        except Exception:  # whatever is wrong with it is this cell's alone
            cells.append(cell.as_buffer().to_pybytes() if hasattr(cell, "as_buffer") else b"")
    return pd.Series(cells, dtype=object)


def refuse_same_names(X: Any, *, owner: str, name: str = "X") -> None:
    """Refuse a table in which two columns have one name: which of them is meant would be a guess."""
    twice = [one for one, times in Counter(map(str, column_names(X) or ())).items() if times > 1]
    if twice:
        raise ValueError(
            f"{name} of {owner} has more than one column {', '.join(map(repr, twice[:5]))}. Rename or drop all but one."
        )


def column_names(X: Any) -> list[Any] | None:
    """Names of the columns of a table, None where it has none."""
    names = getattr(X, "column_names", None)  # pyarrow, whose columns are the columns themselves
    names = getattr(X, "columns", None) if names is None else names
    return None if names is None or callable(names) else list(names)


def refuse_private_as_public(X: Any, X_public: Any, *, owner: str) -> None:
    """Refuse public rows that are the private ones: the same object, or the same memory. No value is compared."""
    arrays = isinstance(X, np.ndarray) and isinstance(X_public, np.ndarray)
    if X_public is None or (arrays and not np.may_share_memory(X, X_public)):  # the usual case
        return
    if X_public is X or _share_memory(X, X_public):
        raise ValueError(
            f"X_public of {owner} has rows of X, and public rows are not protected. Remove them from one of the two."
        )


def refuse_group_among_features(X: Any, sensitive_features: Any, *, owner: str) -> None:
    """Refuse a private group that is a column of public features: by its name, or its memory. No value is compared."""
    if sensitive_features is None:
        return
    named = column_names(sensitive_features) or [getattr(sensitive_features, "name", None)]
    known = set(column_names(X) or [])
    shared = [name for name in named if isinstance(name, str) and name in known]
    if shared or sensitive_features is X or _share_memory(X, sensitive_features):
        names = f" ({', '.join(map(repr, shared))})" if shared else ""
        raise ValueError(
            f"X of {owner} holds sensitive_features{names}, and X is public here, so that the group is not protected "
            "at all. Name the column in 'sensitive_columns', or drop it from X."
        )


def _share_memory(one: Any, other: Any) -> bool:
    for a, b in product(_memory(one), _memory(other)):
        try:
            if np.may_share_memory(a, b) and np.shares_memory(a, b, _MOST_WORK):
                return True
        except np.exceptions.TooHardError:  # two views with strides that would take long to compare
            continue
    return False


def _memory(values: Any) -> list[Array]:
    """The arrays that hold a table, where it is held by arrays; a few columns of a wide one."""
    if isinstance(values, np.ndarray):
        return [values]
    if hasattr(values, "iloc"):
        columns = [values] if values.ndim == 1 else [values.iloc[:, j] for j in range(min(values.shape[1], 64))]
        return [column.to_numpy() for column in columns if isinstance(column.dtype, np.dtype)]
    return []


def label_array(values: Any) -> Any:
    """A list with strings and numbers as the objects they are, where numpy would write ``[1, "a"]`` as two strings."""
    if not isinstance(values, list | tuple):
        values = np.asarray(values) if isinstance(values, np.matrix) else values
        return values.detach() if getattr(values, "requires_grad", None) is True else values
    array: Array = np.asarray(values)
    if array.dtype.kind not in "US":
        return array
    objects = np.asarray(values, dtype=object)
    return array if all(isinstance(value, str | bytes) for value in objects.flat) else objects


def as_objects(values: Any) -> Objects:
    """One object for each value; tuples stay tuples."""
    return np.fromiter(values, dtype=object, count=len(values))


class PublicData(PlainState):
    """Public rows passed to ``fit(..., X_public=)``: features and, where the method needs them, groups.

    Everything in here is treated as public: it is read without noise and nothing about it is protected.
    The object has neither ``__len__`` nor ``shape`` on purpose: ``GridSearchCV`` slices every fit argument that
    has as many rows as ``X``, and would silently hand each fold a part of the public rows.

    Parameters
    ----------
    X : array-like or DataFrame of shape (n_public, n_features)
        Public feature rows, in the columns of the private ``X``.
    sensitive_features : array-like of shape (n_public,) or DataFrame, default=None
        Public groups of those rows.
    y : array-like of shape (n_public,), default=None
        Public labels of those rows. No estimator learns from them; searches score candidates on them at no cost, and
        ``FairnessCalibrator(constraints=...)`` holds answers to rates by them.

    Attributes
    ----------
    X, sensitive_features, y
        As given.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp import PublicData
    >>> public = PublicData(np.zeros((4, 2)), sensitive_features=["a", "a", "b", "b"])
    >>> hasattr(public, "__len__"), public
    (False, PublicData(4 rows, 2 columns, with groups))
    """

    def __init__(self, X: Any, sensitive_features: Any = None, y: Any = None) -> None:
        self.X, self.sensitive_features, self.y = X, sensitive_features, y

    def __sklearn_clone__(self) -> "PublicData":
        return self

    def __repr__(self) -> str:
        shape = getattr(self.X, "shape", None)
        rows, columns = shape if shape is not None and len(shape) == 2 else (len(self.X), "?")
        return (
            f"PublicData({rows} rows, {columns} columns, {'without' if self.sensitive_features is None else 'with'} "
            f"groups{'' if self.y is None else ', with labels'})"
        )
