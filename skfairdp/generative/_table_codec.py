"""Tables in and out: which columns are numbers or categories, what is known of them, what has to be paid for."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skfairdp.generative._columns import (
    CategoryColumn,
    Column,
    NumberColumn,
    fine_grid,
    merged_grid,
    quantile_starts,
)
from skfairdp.generative._dataframes import Table, as_cells, as_numbers
from skfairdp.generative._declared import Declarations, Declared, can_be_missing, dtype_of, kind_of
from skfairdp.privacy import GaussianMechanism, NoiseSource

__all__ = ["TableCodec", "plan_table"]


@dataclass(frozen=True)
class TableCodec:
    """Turns a table into cells and cells into a table of the same columns and container, of public types.

    Parameters
    ----------
    columns : tuple of Column
    labels : list or None
        Column labels; None where an array was given.
    unsettled : tuple of int
        Positions of number columns whose cells are a fine grid as yet, to be merged after one noisy histogram each.
    n_bins : int
    """

    columns: tuple[Column, ...]
    labels: list[Any] | None
    unsettled: tuple[int, ...]
    n_bins: int

    @property
    def n_cells(self) -> tuple[int, ...]:
        return tuple(column.n_cells for column in self.columns)

    @property
    def sensitivity(self) -> float:
        """Of the histograms of the unsettled columns, released together: one replaced row moves two counts in each."""
        return math.sqrt(2 * len(self.unsettled))

    def settle(self, table: Table, mechanism: GaussianMechanism, source: NoiseSource) -> "TableCodec":
        """Release the fine histograms and merge their cells."""
        if not self.unsettled:
            return self
        counts = []
        for j in self.unsettled:
            fine = self.columns[j]
            counts.append(np.bincount(fine.encode(table.columns[j]), minlength=fine.n_cells)[: fine.n_values])
        noisy = np.split(mechanism.release(np.concatenate(counts), source), np.cumsum([len(c) for c in counts])[:-1])
        columns = list(self.columns)
        for j, histogram in zip(self.unsettled, noisy, strict=True):
            column = columns[j]
            assert isinstance(column, NumberColumn)
            starts, high = merged_grid(column.starts, column.high, histogram, mechanism.sigma, self.n_bins)
            columns[j] = replace(column, starts=starts, high=float(np.floor(high)) if column.integer else high)
        return replace(self, columns=tuple(columns), unsettled=())

    def encode(self, table: Table) -> NDArray[np.int64]:
        """Cells of shape (n_rows, n_columns)."""
        cells = np.empty((len(table), len(self.columns)), dtype=np.int64)
        for j, column in enumerate(self.columns):
            cells[:, j] = column.encode(table.columns[j])
        return cells

    def decode(
        self,
        cells: NDArray[np.integer],
        rng: np.random.Generator,
        extra: Mapping[int, tuple[Any, NDArray[Any]]] | None = None,
    ) -> Any:
        """Return a table in the container given to fit.

        Parameters
        ----------
        cells : ndarray of shape (n_rows, n_columns)
        rng : Generator
            Places numbers within their cells.
        extra : dict of position to (label, values)
            Columns of the whole table that this codec does not hold (the groups).
        """
        values = [column.decode(cells[:, j].astype(np.int64), rng) for j, column in enumerate(self.columns)]
        labels = list(range(len(values))) if self.labels is None else list(self.labels)
        for position in sorted(extra or {}):
            label, filled = extra[position]  # type: ignore[index]
            values.insert(position, filled)
            labels.insert(position, label)
        if self.labels is not None:
            frame = pd.DataFrame(dict(enumerate(values)), copy=False)
            frame.columns = pd.Index(labels)
            return frame
        return _one_array(values)


def plan_table(
    table: Table, declarations: Declarations, *, reference: Table | None, n_bins: int, owner: str
) -> tuple[TableCodec, list[Any]]:
    """Decide what is known of every column before any value is counted.

    Parameters
    ----------
    table : Table
        Private. Only columns of which nothing is known are looked at.
    declarations : Declarations
    reference : Table or None
        Public rows in the same columns.
    n_bins : int
    owner : str
        Class name for error messages.

    Returns
    -------
    codec : TableCodec
    read : list of labels
        Columns whose kind, type or values were read from the private rows, which is a release outside the guarantee.
    """
    columns: list[Column] = []
    unsettled, read = [], []
    for j, name in enumerate(table.names):
        declared = declarations.of(name)
        known = None if reference is None else reference.columns[j]
        if known is None and (declared.kind is None or (declared.kind == "categories" and declared.values is None)):
            read.append(name)
            shown = table.columns[j]
        else:
            shown = known
        if shown is not None:
            shown = _typed(shown)
            if declared.kind is None and getattr(shown.dtype, "kind", "O") in "mMc":
                raise ValueError(
                    f"Column {name!r} of {owner} holds times or complex numbers. Turn it into numbers, for example "
                    "days since a public date."
                )
        missing = known is None or bool(pd.isna(as_cells(known)).any())
        kind = declared.kind or kind_of(shown.dtype)
        if kind == "categories":
            columns.append(_category_column(name, declared, shown, missing, owner))
            continue
        column, paid_for = _number_column(name, declared, shown, known, missing, n_bins)
        columns.append(column)
        if paid_for:
            unsettled.append(j)
    return TableCodec(tuple(columns), table.names if table.is_frame else None, tuple(unsettled), n_bins), read


def _typed(column: Any) -> Any:
    """A column whose type may be read, as a Series of the type that its entries have."""
    series = pd.Series(column, copy=False)
    return series.infer_objects() if series.dtype == object else series


def _category_column(name: Any, declared: Declared, shown: Any, missing: bool, owner: str) -> CategoryColumn:
    values = declared.values
    if values is None:
        values = [False, True] if getattr(shown.dtype, "kind", "O") == "b" else _distinct(shown, owner)
    dtype = declared.dtype
    if dtype is None:
        shown_dtype = None if shown is None else shown.dtype
        dtype = shown_dtype if declared.values is None else dtype_of(None, values)
        if isinstance(shown_dtype, pd.CategoricalDtype):
            dtype = shown_dtype
    if isinstance(dtype, pd.CategoricalDtype):
        dtype = dtype_of(dtype, values)
    ordered = bool(getattr(dtype, "ordered", False))
    return CategoryColumn(name, dtype, missing and can_be_missing(dtype), tuple(values), ordered)


def _number_column(
    name: Any, declared: Declared, shown: Any, known: Any, missing: bool, n_bins: int
) -> tuple[NumberColumn, bool]:
    """A column of numbers, and whether its cells have to be paid for."""
    dtype = declared.dtype
    if dtype is None:
        dtype = shown.dtype if shown is not None and kind_of(shown.dtype) == "numbers" else np.dtype(np.float64)
    integer = pd.api.types.is_integer_dtype(dtype)
    values = None if known is None else as_numbers(known)
    limits = declared.bounds
    if limits is None and values is not None and np.isfinite(values).any():
        finite = values[np.isfinite(values)]
        limits = (float(finite.min()), float(finite.max()))
    nullable = missing and can_be_missing(dtype)
    if values is not None and limits is not None:
        starts = quantile_starts(values, n_bins, *limits, integer)
        return NumberColumn(name, dtype, nullable, starts, limits[1], integer), False
    starts, high = fine_grid(limits, integer)
    return NumberColumn(name, dtype, nullable, starts, high, integer), True


def _distinct(series: pd.Series, owner: str) -> list[Any]:
    if isinstance(series.dtype, pd.CategoricalDtype):
        return list(series.cat.categories)
    try:
        distinct = pd.unique(series.dropna().astype(object)).tolist()
        distinct = sorted(distinct, key=lambda value: (str(type(value)), value))
    except TypeError:
        distinct = None
    if distinct is None:
        raise ValueError(
            f"A column of X of {owner} holds values that are neither numbers nor categories, such as lists."
        )
    return distinct


def _one_array(columns: list[Any]) -> NDArray[Any]:
    """Columns side by side: of one type of numbers where all are numbers or booleans, else of objects."""
    arrays = [_as_array(column) for column in columns]
    if any(array.dtype.kind not in "biuf" for array in arrays):
        arrays = [array.astype(object) for array in arrays]
    return np.column_stack(arrays)


def _as_array(column: Any) -> NDArray[Any]:
    if isinstance(column, np.ndarray):
        return column
    dtype = column.dtype
    if isinstance(dtype, pd.api.extensions.ExtensionDtype) and getattr(dtype, "kind", "O") in "biuf":
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    cells = np.array(column, dtype=object)
    cells[pd.isna(cells)] = None
    return cells
