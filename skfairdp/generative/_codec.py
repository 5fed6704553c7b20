"""Tables in and out: which columns are numbers or categories, what is known of them, what has to be paid for."""

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skfairdp.exceptions import PrivacyLeakWarning
from skfairdp.generative._columns import (
    CategoryColumn,
    Column,
    NumberColumn,
    as_numbers,
    fine_grid,
    merged_grid,
    quantile_starts,
)
from skfairdp.privacy import GaussianMechanism, NoiseSource
from skfairdp.utils import given_domain

__all__ = ["TableCodec", "plan_table"]


@dataclass(frozen=True)
class TableCodec:
    """Turns a table into cells and cells into a table of the same columns, dtypes and container.

    Parameters
    ----------
    columns : tuple of Column
    labels : pandas Index or None
        Column labels; None where an array was given.
    dtype : numpy dtype or None
        Of an array that was given.
    unsettled : tuple of int
        Positions of number columns whose cells are a fine grid as yet, to be merged after one noisy histogram each.
    n_bins : int
    """

    columns: tuple[Column, ...]
    labels: Any
    dtype: Any
    unsettled: tuple[int, ...]
    n_bins: int

    @property
    def n_cells(self) -> tuple[int, ...]:
        return tuple(column.n_cells for column in self.columns)

    @property
    def sensitivity(self) -> float:
        """Of the histograms of the unsettled columns, released together: one replaced row moves two counts in each."""
        return math.sqrt(2 * len(self.unsettled))

    def settle(self, table: pd.DataFrame, mechanism: GaussianMechanism, source: NoiseSource) -> "TableCodec":
        """Release the fine histograms and merge their cells."""
        if not self.unsettled:
            return self
        counts = []
        for j in self.unsettled:
            fine = self.columns[j]
            counts.append(np.bincount(fine.encode(table.iloc[:, j]), minlength=fine.n_cells)[: fine.n_values])
        noisy = np.split(mechanism.release(np.concatenate(counts), source), np.cumsum([len(c) for c in counts])[:-1])
        columns = list(self.columns)
        for j, histogram in zip(self.unsettled, noisy, strict=True):
            column = columns[j]
            assert isinstance(column, NumberColumn)
            starts, high = merged_grid(column.starts, column.high, histogram, mechanism.sigma, self.n_bins)
            columns[j] = replace(column, starts=starts, high=float(np.floor(high)) if column.integer else high)
        return replace(self, columns=tuple(columns), unsettled=())

    def encode(self, table: pd.DataFrame) -> NDArray[np.int64]:
        """Cells of shape (n_rows, n_columns)."""
        cells = np.empty((len(table), len(self.columns)), dtype=np.int64)
        for j, column in enumerate(self.columns):
            cells[:, j] = column.encode(table.iloc[:, j])
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
        out = np.empty((len(cells), len(values)), dtype=self.dtype)
        for j, column in enumerate(values):
            out[:, j] = column
        return out


def plan_table(
    table: pd.DataFrame,
    *,
    is_frame: bool,
    dtype: Any,
    reference: pd.DataFrame | None,
    bounds: Any,
    categories: Any,
    n_bins: int,
    owner: str,
) -> TableCodec:
    """Decide what is known of every column before any value is counted.

    Column names and dtypes are public. A column of numbers takes its bounds from ``bounds``, else from the reference,
    else it has none; its cells come from quantiles of the reference, else they will be paid for. Any other column takes
    its values from ``categories``, else from the reference, else from the private rows, which is a release that a
    PrivacyLeakWarning names. Missing values get a cell where the dtype has them, unless the reference has none.
    """
    names = list(table.columns)
    given_bounds = _by_column(bounds, names, "bounds", owner)
    given_categories = _by_column(categories, names, "categories", owner)
    columns: list[Column] = []
    unsettled, leaking = [], []
    for j, name in enumerate(names):
        series = table.iloc[:, j]
        known = None if reference is None else reference.iloc[:, j]
        kind = getattr(series.dtype, "kind", "O")
        nullable = kind not in "biu" or isinstance(series.dtype, pd.api.extensions.ExtensionDtype)
        nullable = nullable and (known is None or bool(known.isna().any()))
        number = pd.api.types.is_numeric_dtype(series.dtype) and kind != "b"
        if kind in "mMc":
            raise ValueError(
                f"Column {name!r} of {owner} has dtype {series.dtype}. Turn it into numbers, for example days since a "
                "public date."
            )
        if name in given_categories or not number:
            if name in given_bounds:
                raise ValueError(f"The 'bounds' parameter of {owner} names column {name!r}, which holds no numbers.")
            ordered = bool(getattr(series.dtype, "ordered", False))
            if name in given_categories:
                values = given_domain(given_categories[name], owner=owner, parameter="categories").tolist()
            elif kind == "b":
                values = [False, True]
            else:
                values = _distinct(series if known is None else known, owner)
                if known is None:
                    leaking.append(name)
            columns.append(CategoryColumn(name, series.dtype, nullable, tuple(values), ordered))
            continue
        integer = kind in "iu" or pd.api.types.is_integer_dtype(series.dtype)
        limits = given_bounds.get(name)
        values = None if known is None else as_numbers(known)
        if limits is not None:
            limits = _bounds(limits, name, owner)
        elif values is not None and np.isfinite(values).any():
            finite = values[np.isfinite(values)]
            limits = (float(finite.min()), float(finite.max()))
        if values is not None and limits is not None:
            starts, high = quantile_starts(values, n_bins, *limits, integer), limits[1]
        else:
            starts, high = fine_grid(limits, integer)
            unsettled.append(j)
        columns.append(NumberColumn(name, series.dtype, nullable, starts, high, integer))
    if leaking:
        warnings.warn(
            f"{owner} read the categories of {len(leaking)} column(s) from the private rows, which reveals them "
            "outside the guarantee. Give them with the 'categories' parameter, or pass public rows as X_reference.",
            PrivacyLeakWarning,
            stacklevel=4,
        )
    return TableCodec(tuple(columns), table.columns if is_frame else None, dtype, tuple(unsettled), n_bins)


def _by_column(given: Any, names: Sequence[Any], parameter: str, owner: str) -> dict[Any, Any]:
    if given is None:
        return {}
    if parameter == "bounds" and isinstance(given, tuple) and len(given) == 2:
        return dict.fromkeys(names, given)
    if not isinstance(given, Mapping):
        raise ValueError(f"The '{parameter}' parameter of {owner} must be a dict with column names as keys.")
    unknown = [name for name in given if name not in names]
    if unknown:
        raise ValueError(f"The '{parameter}' parameter of {owner} names {unknown[0]!r}, which is no column of X.")
    return dict(given)


def _bounds(given: Any, name: Any, owner: str) -> tuple[float, float]:
    try:
        low, high = (float(limit) for limit in given)
    except (TypeError, ValueError):
        low, high = math.nan, math.nan
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise ValueError(
            f"The 'bounds' parameter of {owner} must give two finite numbers, the smaller one first, for column "
            f"{name!r}. Got {given!r} instead."
        )
    return low, high


def _distinct(series: pd.Series, owner: str) -> list[Any]:
    if isinstance(series.dtype, pd.CategoricalDtype):
        return list(series.cat.categories)
    try:
        distinct = pd.unique(series.dropna().astype(object)).tolist()
        return sorted(distinct, key=lambda value: (str(type(value)), value))
    except TypeError:
        raise ValueError(
            f"A column of X of {owner} holds values that are neither numbers nor categories, such as lists."
        ) from None
