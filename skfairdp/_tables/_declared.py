"""What is publicly known of columns, labels and groups: kind, type, bounds and values, from declarations alone."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.random import Generator

from skfairdp._typing import Array, Bools, Floats, Ints, Objects, Values
from skfairdp._utils import PlainState, as_objects, as_pandas, given_domain, private_error
from skfairdp.schema import places_of, positions

_OBJECT = np.dtype(object)


@dataclass(frozen=True)
class Declared:
    """What parameters say of one column; None for what they leave open."""

    bounds: tuple[float, float] | None
    values: list[Any] | None
    dtype: Any

    @property
    def kind(self) -> str | None:
        """ "categories", "numbers", or None where nothing tells."""
        if self.values is not None:
            return "categories"
        if self.bounds is not None:
            return "numbers"
        return None if self.dtype is None else kind_of(self.dtype)


@dataclass(frozen=True)
class Declarations:
    """The parameters ``bounds``, ``categories`` and ``dtypes`` by column."""

    bounds: dict[Any, Any]
    categories: dict[Any, Any]
    dtypes: dict[Any, Any]
    owner: str

    @classmethod
    def read(
        cls, names: Values, bounds: Any, categories: Any, dtypes: Any, owner: str, *, further: Values = ()
    ) -> "Declarations":
        """Spread declarations for all columns over those that have none of their own."""
        lists = _by_column(categories, names, "categories", owner)
        numbers = [name for name in names if name not in lists]
        if isinstance(bounds, tuple) and len(bounds) == 2:
            bounds = dict.fromkeys(numbers, bounds)
        if isinstance(dtypes, pd.Series):
            dtypes = dtypes.to_dict()
        elif dtypes is not None and not isinstance(dtypes, Mapping):
            dtypes = dict.fromkeys(numbers, dtypes)
        bounds = _by_column(bounds, names, "bounds", owner)
        return cls(bounds, lists, _by_column(dtypes, [*names, *further], "dtypes", owner), owner)

    def of(self, name: Any) -> Declared:
        """Everything that is declared of a column."""
        dtype = self.dtype(name)
        values = self._values(name, dtype)
        bounds = self._bounds(name)
        if bounds is not None and (values is not None or (dtype is not None and kind_of(dtype) != "numbers")):
            raise ValueError(f"The 'bounds' parameter of {self.owner} names column {name!r}, which holds no numbers.")
        if values is not None and dtype is None and type_of(self.categories[name]) is not None:
            dtype = dtype_of(type_of(self.categories[name]), values)
        return Declared(bounds, values, dtype)

    def dtype(self, name: Any) -> Any:
        """The dtype that ``dtypes`` gives, or None."""
        given = self.dtypes.get(name)
        if given is None:
            return None
        try:
            dtype = pd.api.types.pandas_dtype(given)
        except TypeError:
            dtype = None
        if dtype is None or getattr(dtype, "kind", "O") in "mMcV":
            raise ValueError(
                f"The 'dtypes' parameter of {self.owner} must give column {name!r} a dtype of numbers, booleans, "
                f"strings or categories. Got {given!r} instead."
            )
        return pd.Series(["a"]).dtype if getattr(dtype, "kind", "O") in "US" else dtype

    def _values(self, name: Any, dtype: Any) -> list[Any] | None:
        given = self.categories.get(name)
        if given is None and isinstance(dtype, pd.CategoricalDtype) and dtype.categories is not None:
            given = dtype
        if given is None:
            return [False, True] if dtype is not None and getattr(dtype, "kind", "O") == "b" else None
        kind = type_of(given)
        labels = kind.categories if isinstance(kind, pd.CategoricalDtype) else given
        values = given_domain(labels, owner=self.owner, parameter="categories").tolist()
        if dtype is not None and not isinstance(dtype, pd.CategoricalDtype) and not _fits(values, dtype):
            raise ValueError(
                f"The 'dtypes' parameter of {self.owner} gives column {name!r} a dtype that 'categories' do not fit."
            )
        return values

    def _bounds(self, name: Any) -> tuple[float, float] | None:
        given = self.bounds.get(name)
        if given is None:
            return None
        try:
            low, high = (float(limit) for limit in given)
        except (TypeError, ValueError):
            low, high = math.nan, math.nan
        if not (math.isfinite(low) and math.isfinite(high) and low <= high):
            raise ValueError(
                f"The 'bounds' parameter of {self.owner} must give two finite numbers, the smaller one first, for "
                f"column {name!r}. Got {given!r} instead."
            )
        return low, high


def _by_column(given: Any, names: Values, parameter: str, owner: str) -> dict[Any, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ValueError(
            f"The '{parameter}' parameter of {owner} must be a dict with column names as keys. "
            f"Got {type(given).__name__} instead."
        )
    unknown = [name for name in given if name not in names]
    if unknown:
        raise ValueError(
            f"The '{parameter}' parameter of {owner} names {unknown[0]!r}, which is no column of X. Leave it out, or "
            "correct its spelling."
        )
    return dict(given)


def kind_of(dtype: Any) -> str:
    """ "numbers" or "categories"."""
    number = pd.api.types.is_numeric_dtype(dtype) and getattr(dtype, "kind", "O") != "b"
    return "numbers" if number else "categories"


def can_be_missing(dtype: Any) -> bool:
    """Whether a column of this dtype can hold a missing value."""
    return isinstance(dtype, pd.api.extensions.ExtensionDtype) or dtype.kind not in "biu"


def type_of(given: Any) -> Any:
    """The type that a declared list has of itself: an array's, a Series', a CategoricalDtype; None for plain lists."""
    return given if isinstance(given, pd.CategoricalDtype) else getattr(given, "dtype", None)


def dtype_of(dtype: Any, labels: Values) -> Any:
    """Type of a column of these public labels: that of their list, else what pandas makes of them."""
    if isinstance(dtype, pd.CategoricalDtype):
        return pd.CategoricalDtype(pd.Index(labels), ordered=dtype.ordered)
    if isinstance(dtype, pd.api.extensions.ExtensionDtype):
        return dtype
    if isinstance(dtype, np.dtype) and dtype.kind not in "US":
        return dtype
    return _OBJECT if any(isinstance(label, tuple) for label in labels) else pd.Series(list(labels)).dtype


def array_of(dtype: Any, labels: Values) -> Array:
    """These public labels as one array: of numbers, of strings as wide as the longest of them, or of objects."""
    if isinstance(dtype, np.dtype) and dtype.kind in "biuf":
        return as_objects(labels).astype(dtype)
    kinds = {type(label) for label in labels}
    if kinds <= {int, float} or kinds == {bool} or kinds == {str}:
        return np.array(labels)
    return as_objects(labels)


def _fits(values: Values, dtype: Any) -> bool:
    try:
        return bool((pd.array(list(values), dtype=dtype).astype(object) == as_objects(values)).all())
    except (TypeError, ValueError, OverflowError):
        return False


@dataclass(frozen=True)
class Form(PlainState):
    """How public labels are handed out: in the container that the private ones came in, with the type of the public."""

    container: str
    names: tuple[Any, ...]
    dtype: Any = None

    @classmethod
    def of(cls, container: Any, public: Any, width: int = 1) -> "Form":
        """The form of a private ``container`` of ``width`` columns, whose labels are those of the ``public`` list."""
        if isinstance(container, pd.DataFrame):
            return cls("frame", tuple(container.columns), type_of(public))
        if isinstance(container, pd.Series):
            return cls("series", (container.name,), type_of(public))
        return cls("array", tuple(range(width)), type_of(public))

    def restore(self, labels: list[Any], codes: Ints) -> Any:
        """Rows of public ``labels`` (tuples where there are several columns) in this container."""
        several = len(self.names) > 1
        parts = [[label[k] if several else label for label in labels] for k in range(len(self.names))]
        dtype = None if several else self.dtype
        if self.container == "array":
            arrays = [array_of(dtype, part) for part in parts]
            if len({array.dtype.kind for array in arrays}) > 1:
                arrays = [array.astype(object) for array in arrays]
            return np.column_stack([array[codes] for array in arrays]) if several else arrays[0][codes]
        columns = [filled(part, codes, dtype_of(dtype, part)) for part in parts]
        if self.container == "series":
            return pd.Series(columns[0], name=self.names[0])
        frame = pd.DataFrame(dict(enumerate(columns)))
        frame.columns = pd.Index(list(self.names))
        return frame


def filled(labels: Values, codes: Ints, dtype: Any) -> Any:
    """A column of this dtype with the labels that the codes name."""
    if isinstance(dtype, pd.CategoricalDtype):
        distinct = list(dict.fromkeys(labels))  # of intersections a label of one column has several
        places = np.array([distinct.index(label) for label in labels])
        return pd.Categorical.from_codes(places[codes], categories=pd.Index(distinct), ordered=bool(dtype.ordered))
    lookup = as_objects(labels)
    if isinstance(dtype, np.dtype) and dtype.kind != "O":
        return lookup.astype(dtype)[codes]
    return pd.array(lookup[codes], dtype=dtype)


@dataclass(frozen=True)
class SampleForm(PlainState):
    """How samples are handed out: public domains, and the containers that labels and groups came in."""

    classes: Array | Any
    groups: Objects | None
    labels_form: Form | Any
    groups_form: Form | None
    group_columns: tuple[tuple[int, Any, Any], ...]
    owner: str

    def placed(self, codes: Ints, rng: Generator) -> Any:
        """What is known of sampled labels: their codes."""
        return codes

    def decode_labels(self, codes: Ints) -> Any:
        """Labels of sampled rows in the container that fit was given."""
        return self.labels_form.restore(self.classes.tolist(), codes)

    def groups_of(self, codes: Ints) -> Any:
        """Groups of sampled rows in the container that fit was given."""
        if self.groups is None or self.groups_form is None:
            raise ValueError(
                f"{self.owner} was fitted without groups, so it has none to return. Pass sensitive_features to fit."
            )
        return self.groups_form.restore(self.groups.tolist(), codes)

    def columns_of_groups(self, codes: Ints) -> dict[int, tuple[Any, Any]]:
        """The columns of X that hold the group, by position, for sampled rows."""
        several = len(self.group_columns) > 1
        columns = {}
        for k, (position, name, dtype) in enumerate(self.group_columns):
            labels = [group[k] if several else group for group in ([] if self.groups is None else self.groups.tolist())]
            columns[position] = (name, filled(labels, codes, dtype_of(None, labels) if dtype is None else dtype))
        return columns


_BLOCK = 8192  # rows


@dataclass(frozen=True)
class Table:
    """The columns of a DataFrame, an array or a list of rows."""

    names: list[Any]
    columns: list[Any]
    n_rows: int
    is_frame: bool

    def __len__(self) -> int:
        return self.n_rows

    def of(self, positions: Sequence[int]) -> "Table":
        """Some of the columns, under the names they have."""
        columns = [self.columns[j] for j in positions]
        return Table([self.names[j] for j in positions], columns, self.n_rows, self.is_frame)

    def blocks(self) -> list[tuple[slice, "Table"]]:
        """The rows of a table of numbers, some at a time: a row of an array is fetched once for all its columns.
        Anything else is one block, and is read as a whole."""
        dtypes = [values.dtype for values in self.columns]
        if not all(isinstance(dtype, np.dtype) and dtype.kind in "fiub" for dtype in dtypes):
            return [(slice(None), self)]
        columns = [np.asarray(values) for values in self.columns]
        rows = [range(self.n_rows)[start : start + _BLOCK] for start in range(0, max(self.n_rows, 1), _BLOCK)]
        places = [slice(of.start, of.stop) for of in rows]
        return [
            (place, Table(self.names, [values[place] for values in columns], len(of), self.is_frame))
            for place, of in zip(places, rows, strict=True)
        ]

    def without(self, positions: Sequence[int]) -> "Table":
        """The other columns."""
        return self.of([j for j in range(len(self.names)) if j not in positions])


def as_container(X: Any, owner: str, *, table: bool = True) -> Any:
    """X as a DataFrame or an array. Lists become arrays of objects, whose entries are as they were."""
    X = as_pandas(X)
    if isinstance(X, pd.DataFrame):
        return X
    if hasattr(X, "__array__"):
        return np.asarray(X)
    if not table:
        try:
            arrays = [np.array(image, dtype=object) for image in X]
        except Exception:  # whatever numpy says of unlike shapes speaks of private ones
            arrays = []
        if len({array.shape for array in arrays}) != 1 or not arrays[0].ndim:
            raise private_error("ragged", owner=owner, name="X")
        return np.stack(arrays)
    if not isinstance(X, Iterable):
        raise ValueError(f"X of {owner} must be a DataFrame, an array or rows. Got {type(X).__name__}: read it first.")
    # each entry as it is: numpy would give all entries one type
    lists = [list(row) if isinstance(row, list | tuple | np.ndarray | pd.Series) else None for row in list(X)]
    if any(row is None or len(row) != len(lists[0] or ()) for row in lists):
        raise private_error("ragged", owner=owner, name="X")
    out = np.empty((len(lists), len(lists[0] or ()) if lists else 0), dtype=object)
    for i, row in enumerate(lists):
        for j, entry in enumerate(row or ()):
            out[i, j] = entry
    return out


def read_table(X: Any) -> Table:
    """Read a DataFrame or an array that has been checked to have rows and columns."""
    if isinstance(X, pd.DataFrame):
        return Table(list(X.columns), [X.iloc[:, j] for j in range(X.shape[1])], len(X), True)
    return Table(list(range(X.shape[1])), [X[:, j] for j in range(X.shape[1])], len(X), False)


def as_entries(column: Any) -> Objects:
    """One Python object per row."""
    if isinstance(column, pd.Series | pd.Index):
        return np.asarray(column.astype(object), dtype=object)
    return column.astype(object) if isinstance(column, np.ndarray) else as_objects(column)


def as_numbers(column: Any) -> Floats:
    """Floats; NaN for every entry that is missing or no number. Strings that spell a number are numbers."""
    dtype = getattr(column, "dtype", None)
    if isinstance(dtype, np.dtype) and dtype.kind in "fiub":
        with np.errstate(all="ignore"):  # a long double may be too large
            return np.asarray(column, dtype=np.float64)
    if isinstance(dtype, pd.api.extensions.ExtensionDtype) and getattr(dtype, "kind", "O") in "fiub":
        if isinstance(dtype, pd.SparseDtype):
            return np.asarray(column, dtype=np.float64)
        return np.asarray(pd.Series(column, copy=False).to_numpy(dtype=np.float64, na_value=np.nan))
    with np.errstate(all="ignore"):
        return np.array([_number(entry) for entry in as_entries(column)], dtype=np.float64)


def _number(entry: Any) -> float:
    if isinstance(entry, complex | np.complexfloating):  # as one such cell makes all others of a column
        return float(entry.real) if entry.imag == 0 else math.nan
    numeric = isinstance(entry, Real | np.bool_ | Decimal | str) and not isinstance(entry, np.timedelta64)
    try:
        return float(entry) if numeric else math.nan
    except OverflowError:
        return math.inf if entry > 0 else -math.inf
    except Exception:  # whatever a private entry does, it is no number
        return math.nan


def codes_of_entries(entries: Objects, labels: Values, *, missing: int, other: int) -> Ints:
    """Position of each entry among public labels, ``missing`` for a missing entry and ``other`` for any other one,
    without errors. Equality is Python's: 1, 1.0 and True are one label, and "1" where no label is that text."""
    places = positions(entries, places_of(labels))
    codes = np.where(np.isnan(places), other, places)
    return np.where(_missing(entries), missing, codes).astype(np.int64)


def _missing(entries: Objects) -> Bools:
    """Which entries are missing; one that cannot say (a signalling NaN) is."""
    try:
        return np.asarray(pd.isna(entries))
    except Exception:
        if len(entries) == 1:
            return np.array([True])
        return np.concatenate([_missing(entries[[i]]) for i in range(len(entries))])
