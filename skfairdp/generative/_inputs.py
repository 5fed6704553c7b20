"""How the generator reads its private and public inputs. Nothing here releases anything."""

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse
from numpy.typing import NDArray
from sklearn.utils.validation import check_array, column_or_1d, validate_data

from skfairdp._base import FairPrivateMixin
from skfairdp.exceptions import FairnessWarning, PrivacyLeakWarning
from skfairdp.generative._dataframes import Table, as_cells, as_container, codes_of_cells, read_table
from skfairdp.generative._declared import Declarations, Form, array_of, dtype_of, filled, type_of
from skfairdp.generative._group_rates import given_rates
from skfairdp.generative._table_codec import TableCodec, plan_table
from skfairdp.generative._vector_codec import UnitCodec, plan_units
from skfairdp.utils import PublicData, given_domain, private_error

__all__ = ["ReadsRows"]


@dataclass(frozen=True)
class Rows:
    """Private rows, what turns them into cells or units, and public rows.

    Parameters
    ----------
    private : Table or ndarray
    groups : Table or None
        The columns that ``sensitive_columns`` names.
    codec : TableCodec or UnitCodec
    reference : Table, ndarray or None
    """

    private: Any
    groups: Table | None
    codec: TableCodec | UnitCodec
    reference: Any


class ReadsRows(FairPrivateMixin):
    """Tables, images, labels, groups and public references, checked before anything is spent."""

    balance: str | None
    label_rates: Any
    codec: str
    bounds: Any
    categories: Any
    dtypes: Any
    classes: Any
    groups: Any
    sensitive_columns: Any
    n_bins: int

    def _read_rows(self, X: Any, X_reference: Any) -> Rows:
        """Everything about X that a fit needs, from its shape, its names and declarations."""
        owner = type(self).__name__
        self._group_columns: list[tuple[int, Any, Any]] = []
        given = X_reference.X if isinstance(X_reference, PublicData) else X_reference
        units = self.codec == "units" or (self.codec == "auto" and getattr(X, "ndim", 2) > 2)
        X = self._checked(X, units, reset=True)
        self._start_reading(X)
        self._note("container of X", "read", type(X).__name__, "samples come back in it")
        if given is not None:
            given = self._checked(given, units, reset=False)
            self._note("public rows X_reference", "given", len(given))
        if units:
            if self.sensitive_columns is not None:
                raise ValueError(f"'sensitive_columns' of {owner} names columns of a table; units have none.")
            units_codec = plan_units(X.shape[1:], X.dtype, self.bounds, self.dtypes, owner)
            self._note("shape of a unit", "read", [*X.shape[1:]], "of the array, no value")
            if self.bounds is None:
                self._note("that X is an array of bytes", "read", None, "its dtype, no value")
            return Rows(X, None, units_codec, given)
        whole = read_table(X)
        taken = _positions(self.sensitive_columns, whole, owner)
        table, groups = whole.without(taken), whole.of(taken)
        declarations = Declarations.read(
            table.names, self.bounds, self.categories, self.dtypes, owner, further=groups.names
        )
        self._group_columns = [(j, whole.names[j], declarations.dtype(whole.names[j])) for j in taken]
        reference = None if given is None else read_table(given).without(taken)
        codec, read = plan_table(table, declarations, reference=reference, n_bins=self.n_bins, owner=owner)
        if read:
            shown = ", ".join(repr(name) for name in read[:5]) + (", ..." if len(read) > 5 else "")
            warnings.warn(
                f"{owner} read the types or categories of {len(read)} column(s) from the private rows, which reveals "
                f"them outside the guarantee: {shown}. Declare them with the 'categories', 'bounds' or 'dtypes' "
                "parameter, or pass public rows as X_reference.",
                PrivacyLeakWarning,
                stacklevel=3,
            )
        for name in read:
            self._note(f"type or categories of column {name!r}", "read", None, "outside the guarantee")
        return Rows(table, groups if taken else None, codec, reference)

    def _checked(self, X: Any, units: bool, *, reset: bool) -> Any:
        """X as a DataFrame or an array, of whose shape and names, which are public, scikit-learn approves."""
        owner = type(self).__name__
        if scipy.sparse.issparse(X):
            raise TypeError(f"Sparse data was passed as X of {owner}, but dense data is required. Use X.toarray().")
        X = as_container(X, owner, table=not units)
        shape = (len(X), math.prod(X.shape[1:])) if units and X.ndim > 2 else X.shape
        blank = np.broadcast_to(np.zeros(()), shape)
        if isinstance(X, pd.DataFrame):
            validate_data(self, X, reset=reset, skip_check_array=True)
            check_array(blank, estimator=self, ensure_all_finite=False)
            return X.to_numpy() if units else X
        if X.dtype.kind == "c":
            raise private_error("complex", owner=owner, name="X")
        validate_data(self, blank, reset=reset, ensure_all_finite=False)
        return X

    def _read_labels(self, y: Any, n_rows: int) -> tuple[NDArray[np.int64], NDArray[Any] | None]:
        """Codes of the private labels, and the classes."""
        if y is None:
            return np.zeros(n_rows, dtype=np.int64), None
        if self.classes is None:
            classes, codes = self._encode_classes(self._check_target(y, n_rows))
            self._labels_form = Form.of(y, classes)
            return codes, classes
        owner = type(self).__name__
        self._labels_form = Form.of(y, self.classes)
        classes = self._declared_classes()
        cells = _single_column(y, n_rows, owner)
        codes = codes_of_cells(cells, classes.tolist(), missing=-1, other=-1)
        if (codes < 0).any():
            raise private_error("unknown value", owner=owner, name="y", parameter="classes")
        self._note("classes", "given", classes)
        return codes, classes

    def _declared_classes(self) -> NDArray[Any]:
        owner = type(self).__name__
        labels = given_domain(self.classes, owner=owner, parameter="classes").tolist()
        try:
            labels = sorted(labels)  # scikit-learn keeps classes_ sorted
        except TypeError:
            labels = [()]
        if any(isinstance(label, tuple) for label in labels):
            raise ValueError(f"The 'classes' parameter of {owner} must be labels of one kind, such as strings or ints.")
        return array_of(type_of(self.classes), labels)

    def _read_groups(
        self, group_columns: Table | None, sensitive_features: Any, n_rows: int, *, estimated: bool
    ) -> tuple[NDArray[np.int64], NDArray[np.object_] | None]:
        """Codes of the private groups, and their domain."""
        owner = type(self).__name__
        if group_columns is None and sensitive_features is None:
            if self.balance is not None and not estimated:
                raise ValueError(
                    f"{owner} needs the groups of the private rows to balance them: pass "
                    "sensitive_features to fit, name their columns with 'sensitive_columns', pass unbiased public rows "
                    "as X_reference, or set balance=None."
                )
            return np.zeros(n_rows, dtype=np.int64), None
        if group_columns is not None and sensitive_features is not None:
            raise ValueError(
                f"{owner} got groups twice: by 'sensitive_columns' and as an argument of fit. Leave one of them out."
            )
        domain = None if self.groups is None else given_domain(self.groups, owner=owner, parameter="groups")
        if group_columns is None:
            cells, width = _group_cells(sensitive_features, n_rows, owner, domain)
        else:
            cells, width = _joined([as_cells(column) for column in group_columns.columns]), 1
        self._groups_form = Form.of(sensitive_features, self.groups, width)
        if domain is None:
            return self._private_groups(None, cells.tolist(), n_rows)
        codes = codes_of_cells(cells, domain.tolist(), missing=-1, other=-1)
        if (codes < 0).any():
            raise private_error("unknown value", owner=owner, name="sensitive_features", parameter="groups")
        self._note("names of the groups", "given", domain)
        return codes, domain

    def _warn_of_small_groups(self, noisy: NDArray[np.float64], sigma: float, domain: Any) -> None:
        """Say where balance rests on too few rows, by released counts only."""
        if domain is None or self.balance is None:
            return
        least = 4 * sigma * np.sqrt(noisy.shape[1])
        small = int(np.count_nonzero(noisy.sum(axis=1) < least))
        if small:
            warnings.warn(
                f"{small} of the {len(domain)} groups of {type(self).__name__} have a released count below "
                f"{least:.0f}, four standard deviations of its noise: their synthetic rows are mostly those of the "
                "other groups with the same label. Raise 'epsilon', or merge groups.",
                FairnessWarning,
                stacklevel=3,
            )

    def _restored(self, groups: tuple[Any, NDArray[np.int64]]) -> Any:
        """Groups of sampled rows in the container that fit was given."""
        if groups[0] is None:
            raise ValueError(f"{type(self).__name__} was fitted without groups, so it has none to return.")
        return self._groups_form.restore(*groups)

    def _columns_of_groups(self, domain: list[Any] | None, codes: NDArray[np.int64]) -> dict[int, tuple[Any, Any]]:
        """The columns of X that hold the group, by position, for sampled rows."""
        if domain is None:
            return {}
        several = len(self._group_columns) > 1
        columns = {}
        for k, (position, name, dtype) in enumerate(self._group_columns):
            labels = [group[k] if several else group for group in domain]
            columns[position] = (name, filled(labels, codes, dtype_of(None, labels) if dtype is None else dtype))
        return columns

    def _rates_asked_for(self, classes: Any, domain: Any) -> NDArray[np.float64] | None:
        if not isinstance(self.label_rates, Mapping):
            return None
        if classes is None or domain is None:
            raise ValueError(f"'label_rates' of {type(self).__name__} needs both y and groups.")
        return given_rates(self.label_rates, domain.tolist(), len(classes), type(self).__name__)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.no_validation = False
        return tags


def _positions(wanted: Any, table: Table, owner: str) -> list[int]:
    """Positions of the columns that ``sensitive_columns`` names, by label or by position."""
    if wanted is None:
        return []
    places = []
    for item in [wanted] if isinstance(wanted, str | int | np.integer) else list(wanted):
        if isinstance(item, int | np.integer) and not isinstance(item, bool):
            if not -len(table.names) <= item < len(table.names):
                raise ValueError(
                    f"'sensitive_columns' of {owner} names column {item}, but X has {len(table.names)} columns."
                )
            places.append(int(item) % len(table.names))
        elif table.is_frame and table.names.count(item) == 1:
            places.append(table.names.index(item))
        else:
            where = "is not exactly one column of X" if table.is_frame else "needs X to be a DataFrame"
            raise ValueError(f"'sensitive_columns' of {owner} names {item!r}, which {where}.")
    if not places:
        raise ValueError(f"The 'sensitive_columns' parameter of {owner} is empty.")
    if len(set(places)) == len(table.names):
        raise ValueError(f"'sensitive_columns' of {owner} takes every column of X; no feature is left.")
    return places


def _single_column(y: Any, n_rows: int, owner: str) -> NDArray[np.object_]:
    """The cells of labels in any container. Only its shape is checked."""
    if not isinstance(y, pd.Series | pd.DataFrame) and hasattr(y, "__array__"):
        y = np.asarray(y)
    shape: tuple[int, ...] = y.shape if hasattr(y, "shape") else (len(y),)
    if len(shape) > 2 or (len(shape) == 2 and shape[1] != 1):
        raise ValueError(f"y of {owner} should be a 1d array: one column of labels, one entry per row.")
    column_or_1d(np.broadcast_to(np.zeros(()), shape), warn=True)
    if shape[0] != n_rows:
        raise ValueError(f"y of {owner} has inconsistent length: it must have one label per row of X.")
    if isinstance(y, pd.DataFrame):
        return as_cells(y.iloc[:, 0])
    return as_cells(y.reshape(-1) if isinstance(y, np.ndarray) else y)


def _group_cells(given: Any, n_rows: int, owner: str, domain: Any) -> tuple[NDArray[np.object_], int]:
    """One cell for each row, tuples where there are several columns, and the number of columns."""
    if isinstance(given, pd.DataFrame):
        columns = [as_cells(given.iloc[:, j]) for j in range(given.shape[1])]
    elif not isinstance(given, pd.Series) and hasattr(given, "__array__"):
        array = np.asarray(given)
        if array.ndim not in (1, 2):
            raise ValueError(
                f"sensitive_features of {owner} must be one column, or a table of columns; got {array.ndim} dimensions."
            )
        columns = [as_cells(array[:, j]) for j in range(array.shape[1])] if array.ndim == 2 else [as_cells(array)]
    else:
        columns = [as_cells(given)]
    if not columns:
        raise ValueError(f"sensitive_features of {owner} is a table with no columns.")
    if len(columns[0]) != n_rows:
        raise ValueError(f"sensitive_features of {owner} has inconsistent length: it must have one entry per row of X.")
    if not isinstance(given, list | tuple):
        return _joined(columns), len(columns)
    labels = columns[0] if domain is None else domain  # a list's rows are tuples where the declared groups are
    width = max((len(label) for label in labels if isinstance(label, list | tuple)), default=1)
    return as_cells([_group_of_list(cell, width) for cell in columns[0]]), width


def _group_of_list(cell: Any, width: int) -> Any:
    if not isinstance(cell, list | tuple) and not (isinstance(cell, np.ndarray) and cell.ndim == 1):
        return cell
    return cell[0] if width == 1 and len(cell) == 1 else tuple(cell)


def _joined(columns: list[NDArray[np.object_]]) -> NDArray[np.object_]:
    if len(columns) == 1:
        return columns[0]
    out = np.empty(len(columns[0]), dtype=object)
    out[:] = list(zip(*columns, strict=True))
    return out
