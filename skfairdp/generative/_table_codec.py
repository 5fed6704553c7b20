"""Tables in and out: which columns are numbers or categories, what is known of them, what has to be paid for."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.random import Generator
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from skfairdp import _tables
from skfairdp._tables import Declarations, Table
from skfairdp._typing import Array, Codes, Ints, Reals
from skfairdp._utils._sklearn import Interval
from skfairdp.privacy import GaussianMechanism, NoiseSource, gdp_mu

LEAST_BINS, MOST_BINS = 6, 24
FEW_BINS = 10  # where labels follow sums: fewer blur numbers, more hold noise


#: What may be a category, as in a schema.
_CELLS = (str, Real, Decimal, np.bool_, date, pd.Interval)


class TableCodec(BaseEstimator):
    """Turn the columns of a table into integer codes: one for each category, one for each bin of a number.

    Parameters
    ----------
    n_bins : int, default=None
        Bins that a column of numbers is cut into. Values are drawn evenly within a bin. None: 6 to 24, as many as the
        noise leaves something in.

    Examples
    --------
    >>> from skfairdp.generative import PFGuardGenerator, TableCodec
    >>> PFGuardGenerator(codec=TableCodec(n_bins=8)).codec
    TableCodec(n_bins=8)
    """

    _parameter_constraints: dict[str, Any] = {"n_bins": [Interval(Integral, 2, 1000, closed="both"), None]}

    def __init__(self, *, n_bins: int | None = None) -> None:
        self.n_bins = n_bins

    def plan(
        self, table: Table, declarations: Declarations, *, public: Table | None, default_bins: int, owner: str
    ) -> tuple["TableEncoder", list[Any]]:
        """Decide what is known of every column before any value is counted.

        Parameters
        ----------
        table : Table
            Private. Only columns of which nothing is known are looked at.
        declarations : Declarations
            What parameters say of the columns.
        public : Table or None
            Public rows in the same columns.
        default_bins : int
            Bins of a number where ``n_bins`` is None.
        owner : str
            Class name for error messages.

        Returns
        -------
        encoder : TableEncoder
            Turns rows into codes.
        read : list of labels
            Columns whose kind, type or values were read from the private rows, which is a release outside the
            guarantee.
        """
        self._validate_params()
        n_bins = default_bins if self.n_bins is None else self.n_bins
        columns: list[_tables.Column] = []
        unsettled, read = [], []
        for j, name in enumerate(table.names):
            declared = declarations.of(name)
            known = None if public is None else public.columns[j]
            is_open = declared.kind is None or (declared.kind == "categories" and declared.values is None)
            is_read = known is None and is_open
            read += [name] * is_read
            column, paid_for = _column(name, declared, table.columns[j] if is_read else known, known, n_bins, owner)
            columns.append(column)
            unsettled += [j] * paid_for
        return TableEncoder(tuple(columns), table.names if table.is_frame else None, tuple(unsettled), n_bins), read


@dataclass(frozen=True)
class TableEncoder:
    """Turns a table into codes and codes into a table of the same columns and container, of public types."""

    columns: tuple[_tables.Column, ...]
    labels: list[Any] | None
    unsettled: tuple[int, ...]
    n_bins: int
    evenly: bool = False

    @property
    def n_codes(self) -> tuple[int, ...]:
        return tuple(column.n_codes for column in self.columns)

    @property
    def sensitivity(self) -> float:
        """Of the histograms of the unsettled columns, released together: one replaced row moves two counts in each."""
        return math.sqrt(2 * len(self.unsettled))

    def on_wide_bins(self, n_bins: int | None) -> "TableEncoder":
        """The same for few rows, which between bounds show in wide bins only."""
        columns = [one.on_wide_bins() if j in self.unsettled else one for j, one in enumerate(self.columns)]
        return replace(self, columns=tuple(columns), n_bins=n_bins or FEW_BINS, evenly=True)

    def with_numbers(self, columns: Sequence[_tables.Column]) -> "TableEncoder":
        """The same with other bins of the unsettled columns."""
        new = dict(zip(self.unsettled, columns, strict=True))
        return replace(self, columns=tuple(new.get(j, one) for j, one in enumerate(self.columns)))

    def fine_counts(self, table: Table) -> list[Ints]:
        """The fine histograms of the unsettled columns."""
        fine = [self.columns[j] for j in self.unsettled]
        encodings = [column.encoding(len(table)) for column in fine]

        def count(block: tuple[slice, Table]) -> Ints:
            of_each = zip(encodings, block[1].columns, fine, strict=True)
            return np.concatenate([np.bincount(encode(cells), minlength=of.n_codes) for encode, cells, of in of_each])

        if not fine:
            return []
        total = np.asarray(sum(_tables.made_on_all_cores(count, table.of(self.unsettled).blocks())))
        counts = np.split(total, np.cumsum([column.n_codes for column in fine])[:-1])
        return [of[: column.n_values] for of, column in zip(counts, fine, strict=True)]

    def release_bins(
        self,
        count: Callable[["TableEncoder"], list[Ints]],
        mechanism: GaussianMechanism | None,
        noise: NoiseSource,
        n_rows: int,
    ) -> "TableEncoder":
        """Release the fine histograms, where a plan has them, and merge their bins."""
        if mechanism is None:
            return self
        fine = [self.columns[j] for j in self.unsettled]

        def counts(columns: Sequence[_tables.Column]) -> list[Ints]:
            return count(self if columns is fine else self.with_numbers(columns))

        merged = _tables.release_bins(fine, counts, mechanism, noise, self.n_bins, n_rows, self.evenly)
        return replace(self.with_numbers(merged), unsettled=())

    def encode(self, table: Table) -> NDArray[np.unsignedinteger[Any]]:
        """Codes of shape (n_rows, n_columns), of the smallest type that holds them, those of a column side by side."""
        codes = np.empty(
            (len(table), len(self.columns)), dtype=_tables.code_type(max(self.n_codes, default=1)), order="F"
        )
        encodings = [column.encoding(len(table)) for column in self.columns]

        def fill(block: tuple[slice, Table]) -> None:
            rows, some = block
            for j, encode in enumerate(encodings):
                codes[rows, j] = encode(some.columns[j])

        for _ in _tables.made_on_all_cores(fill, table.blocks()):
            pass
        return codes

    def made_up(self, n_rows: int, rng: Generator) -> Ints:
        """Codes of made-up rows: of each column any that may be sampled."""
        return np.column_stack([rng.choice(np.flatnonzero(column.sampled), n_rows) for column in self.columns])

    def decode(self, codes: Codes, rng: Generator, further: Mapping[int, tuple[Any, Array]] | None = None) -> Any:
        """Return a table in the container given to fit."""
        values = [column.decode(codes[:, j].astype(np.int64), rng) for j, column in enumerate(self.columns)]
        labels = list(range(len(values))) if self.labels is None else list(self.labels)
        for position, (label, column_values) in sorted((further or {}).items(), key=lambda item: item[0]):
            values.insert(position, column_values)
            labels.insert(position, label)
        if self.labels is not None:
            frame = pd.DataFrame(dict(enumerate(values)), copy=False)
            frame.columns = pd.Index(labels)
            return frame
        # columns side by side: of one type of numbers where all are numbers or booleans, else of objects
        arrays = [_as_array(column) for column in values]
        if any(array.dtype.kind not in "biuf" for array in arrays):
            arrays = [array.astype(object) for array in arrays]
        return np.column_stack(arrays)


def default_bins(n_rows: int, n_columns: int, *, epsilon: float, delta: float) -> int:
    """How many bins to cut a number into, by public numbers: as many as hold twelve standard deviations of noise each,
    that of a table's counts of two groups and two labels. Where bins hold little but noise, fewer teach more
    (tests/generative/test_usefulness.py); with many rows more bins show more of a column."""
    n_groups, n_classes = 2, 2
    layout = _tables.Layout("codes", n_rows, max(n_columns, 1), n_groups, n_classes, None, True)
    plan = _tables.MarginalsBackend(structure="tree").plan(layout)
    sigma = plan.noise_by_label_at(1 / gdp_mu(epsilon, delta)) / math.sqrt(n_groups)
    return int(np.clip(layout.bins_above_noise(sigma), LEAST_BINS, MOST_BINS))


def _column(name: Any, declared: _tables.Declared, shown: Any, known: Any, n_bins: int, owner: str) -> tuple[Any, bool]:
    """One column, from declarations, from what is ``shown`` of it (public rows, or private ones); and whether its bins
    have to be paid for."""
    if shown is not None:
        series = pd.Series(shown, copy=False)
        shown = _of_own_type(series) if series.dtype == object else series
        if declared.kind is None and getattr(shown.dtype, "kind", "O") in "mMc":
            raise ValueError(
                f"Column {name!r} of {owner} holds times or complex numbers. Turn it into numbers, for example "
                "days since a public date."
            )
    missing = known is None or bool(pd.isna(_tables.as_entries(known)).any())
    if (declared.kind or _tables.kind_of(shown.dtype)) == "categories":
        listed, dtype = declared.values, declared.dtype
        if listed is None:
            listed = [False, True] if getattr(shown.dtype, "kind", "O") == "b" else _distinct(shown)
        odd = [type(one).__name__ for one in listed if not isinstance(one, _CELLS)]
        days = sum(isinstance(one, date) for one in listed)
        odd = odd or ["days beside others"] * (0 < days < len(listed))
        if odd:
            raise ValueError(
                f"Column {name!r} of X of {owner} holds values that are neither numbers nor categories, such as "
                f"{odd[0]}. Make texts of them, make columns of it, or leave it out."
            )
        if dtype is None:
            dtype = None if shown is None else shown.dtype
            if declared.values is not None and not isinstance(dtype, pd.CategoricalDtype):
                dtype = _tables.dtype_of(None, listed)
        if isinstance(dtype, pd.CategoricalDtype):
            dtype = _tables.dtype_of(dtype, listed)
        nullable, ordered = missing and _tables.can_be_missing(dtype), bool(getattr(dtype, "ordered", False))
        return _tables.CategoryColumn(name, dtype, nullable, tuple(listed), ordered), False
    # a column of numbers, and whether its bins have to be paid for
    dtype = declared.dtype
    if dtype is None:  # that of the rows, if it is one of 64 bits at most
        dtype = np.dtype(np.float64) if shown is None else shown.dtype
        own = getattr(dtype, "numpy_dtype", dtype)
        usual = _tables.kind_of(dtype) == "numbers" and getattr(own, "kind", "O") in "iuf" and own.itemsize <= 8
        dtype = dtype if usual else np.dtype(np.float64)
    integer = pd.api.types.is_integer_dtype(dtype)
    values = None if known is None else _tables.as_numbers(known)
    limits = declared.bounds
    if limits is None and values is not None and np.isfinite(values).any():
        finite = values[np.isfinite(values)]
        limits = (float(finite.min()), float(finite.max()))
    nullable = missing and _tables.can_be_missing(dtype)
    if values is not None and limits is not None:
        starts = _tables.quantile_starts(values, n_bins, *limits, integer)
        return _tables.NumberColumn(name, dtype, nullable, starts, limits[1], integer), False
    starts, high = _tables.fine_grid(limits, integer)
    return _tables.NumberColumn(name, dtype, nullable, starts, high, integer), True


def _of_own_type(entries: pd.Series) -> pd.Series:
    """Objects in the type that they have: which word for nothing stands among them, and how large a number is, is no
    part of it."""
    series = entries.mask(entries.isna(), None).infer_objects()
    known = series.dropna()
    if (
        series.dtype == object
        and len(known)
        and all(isinstance(n, Real | Decimal) and not isinstance(n, bool) for n in known)
    ):
        return pd.Series(_tables.as_numbers(series))
    return series


def _distinct(series: pd.Series) -> list[Any]:
    if isinstance(series.dtype, pd.CategoricalDtype):
        return list(series.cat.categories)
    try:
        values = pd.unique(series.dropna().astype(object)).tolist()
        return sorted(values, key=lambda value: (str(type(value)), value))
    except TypeError:  # of lists, which are no categories
        return [[]]


def _as_array(column: Any) -> Array:
    if isinstance(column, np.ndarray):
        return column
    dtype = column.dtype
    if isinstance(dtype, pd.api.extensions.ExtensionDtype) and getattr(dtype, "kind", "O") in "biuf":
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    entries = np.array(column, dtype=object)
    entries[pd.isna(entries)] = None
    return entries


class UnitCodec(BaseEstimator):
    """Learn numbers as they are, between public bounds: images, and tables of plain numbers for networks.

    Examples
    --------
    >>> from skfairdp.generative import PFGuardGenerator, UnitCodec
    >>> from skfairdp.papers import GSWGANBackend
    >>> PFGuardGenerator(backend=GSWGANBackend(), codec=UnitCodec(), bounds=(0, 1)).codec
    UnitCodec()
    """

    def plan(self, shape: tuple[int, ...], given: np.dtype[Any], bounds: Any, dtype: Any, owner: str) -> "UnitEncoder":
        """Decide bounds and type of an array.

        Parameters
        ----------
        shape : tuple of int
            Of one row.
        given : numpy dtype
            Of the array. Only an array of bytes has bounds by itself.
        bounds : (low, high) or None
            The public range of all numbers.
        dtype : dtype or None
            Of what is sampled: float64 where neither this nor bytes say otherwise.
        owner : str
            Class name for error messages.

        Returns
        -------
        UnitEncoder
            Turns rows into numbers from 0 to 1.

        Raises
        ------
        ValueError
            No bounds where there are no bytes, or a dtype that holds no plain numbers.
        """
        if bounds is None and given == np.uint8:
            bounds, dtype = (0.0, 255.0), np.uint8 if dtype is None else dtype
        try:
            low, high = (float(limit) for limit in bounds)
        except (TypeError, ValueError):
            low, high = 0.0, 0.0
        if not (np.isfinite(low) and np.isfinite(high) and low < high):
            raise ValueError(
                f"{owner} needs public bounds of the numbers to learn units: give 'bounds' as two finite numbers, the "
                "smaller one first, such as (0, 1)."
            )
        try:
            sampled = np.dtype(np.float64 if dtype is None else dtype)
        except TypeError:
            sampled = np.dtype(object)
        if sampled.kind not in "fiu":
            raise ValueError(f"The 'dtypes' parameter of {owner} must be one numpy dtype of numbers for units.")
        return UnitEncoder(shape, low, high, sampled)


@dataclass(frozen=True)
class UnitEncoder:
    """Turns arrays of numbers into units and back; values beyond the bounds count as the bound."""

    shape: tuple[int, ...]
    low: float
    high: float
    dtype: Any

    columns: tuple[Any, ...] = ()
    n_codes: tuple[int, ...] = ()
    sensitivity: float = 0.0  # nothing is paid for

    def fine_counts(self, rows: Any) -> list[Ints]:
        """Nothing has to be paid for."""
        return []

    def release_bins(self, count: Any, mechanism: Any, noise: Any, n_rows: int) -> "UnitEncoder":
        """Bounds are public: nothing is released."""
        return self

    def encode(self, rows: Array) -> NDArray[np.float32]:
        """Units (n_rows, n_numbers); what is missing or no number counts as the lower bound."""
        numbers = np.nan_to_num(_tables.as_numbers(rows.reshape(-1)).reshape(len(rows), -1), nan=self.low)
        return (2 * (np.clip(numbers, self.low, self.high) - self.low) / (self.high - self.low) - 1).astype(np.float32)

    def made_up(self, n_rows: int, rng: Generator) -> NDArray[np.float32]:
        """Units of made-up rows."""
        return rng.uniform(-1, 1, (n_rows, math.prod(self.shape))).astype(np.float32)

    def decode(self, units: Reals, rng: Generator, further: Any = None) -> Array:
        """Rows of the shape and dtype given to fit."""
        numbers = self.low + (np.asarray(units, dtype=np.float64) + 1) / 2 * (self.high - self.low)
        numbers = np.clip(numbers, self.low, self.high)
        if self.dtype.kind in "iu":
            numbers = np.rint(numbers)
        return numbers.reshape(len(units), *self.shape).astype(self.dtype)
