"""Raw tables, read by a schema: as numbers (SchemaEncoder), as the rows, labels and groups of a fit, and kept."""

import contextlib
import itertools
import math
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NoReturn

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import TransformerMixin, is_regressor

from skfairdp._docs import shared_docs
from skfairdp._rows import HELD, LISTED, Chunk, RowSource, gathered, other_rows, row_hashes, stored, total_of
from skfairdp._typing import Array, Floats, Ints
from skfairdp._utils import NamedEstimator, PublicData, given_domain, private_error, warn_caller
from skfairdp._utils._sklearn import Having, encoded_by_cross_val_predict
from skfairdp.exceptions import UtilityWarning
from skfairdp.privacy import PublicReads
from skfairdp.schema._columns import Category, Column, Date, Number, is_word
from skfairdp.schema._frames import SameNameError, as_columns, as_dataframe, column_names
from skfairdp.schema._schema import Schema, SchemaParameter, values_of


@dataclass(frozen=True)
class NumberPlace:
    """Where a column of numbers is in an encoded table."""

    column: int
    missing: int | None = None


@shared_docs
class SchemaEncoder(TransformerMixin, NamedEstimator):
    """Scale numbers by their bounds, one-hot encode categories, mark what is missing. Nothing is learnt from rows.

    **Guarantee.** The encoding of a row follows from that row and the schema, never from another row. Fitting it on
    private rows releases nothing, so it costs nothing.

    {public_schema}

    Attributes
    ----------
    {n_features_in_}
    feature_names_in_ : ndarray of str
        The features of the schema.

    Examples
    --------
    >>> import pandas as pd
    >>> from skfairdp.schema import Category, Number, Schema, SchemaEncoder
    >>> schema = Schema({"age": Number(0, 100, missing=True), "job": Category(["clerk", "nurse"])})
    >>> encoder = SchemaEncoder(schema).set_output(transform="pandas")
    >>> table = pd.DataFrame({"age": [25, None], "job": ["nurse", "pilot"]})
    >>> print(encoder.fit_transform(table).to_string(index=False))
     age  age_missing  job_clerk  job_nurse
    -0.5          0.0        0.0        1.0
     0.0          1.0        0.0        0.0
    """

    schema: Any = SchemaParameter()

    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    def fit(self, X: Any = None, y: Any = None) -> "SchemaEncoder":
        """Check the parameters; no row is read.

        Parameters
        ----------
        X, y : ignored
            A transformer of scikit-learn accepts them.

        Returns
        -------
        self : object
            The encoder.
        """
        self._check()
        return self

    def transform(self, X: Any) -> Any:
        """Encode a table.

        Parameters
        ----------
        X : DataFrame with the columns of the schema, or PublicData
            Label and groups may be among them; they are left out. Of PublicData the rows are encoded, as a Pipeline
            with ``transform_input=["X_public"]`` asks for.

        Returns
        -------
        ndarray of shape (n_rows, n_encoded)
            Or another container, where ``set_output`` asks for it.
        """
        self._check()
        if isinstance(X, PublicData):
            groups = self.schema.read(X.X).sensitive_features if X.sensitive_features is None else X.sensitive_features
            return PublicData(self.transform(X.X), groups, X.y)
        return encoded_features(self.schema, self.schema.numbers(X))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the encoded columns.

        Parameters
        ----------
        input_features : ignored
            The schema has the names.

        Returns
        -------
        ndarray of str of shape (n_encoded,)
            The column, followed by the value it stands for.
        """
        self._check()
        names = [name + suffix for name in self.schema.features for suffix in _suffixes(self.schema.columns[name])]
        return np.asarray(names, dtype=object)

    @property
    def feature_names_in_(self) -> NDArray[np.object_]:
        """Names of the columns that are encoded."""
        return np.asarray(self.schema.features, dtype=object)

    @property
    def n_features_in_(self) -> int:
        """How many columns are encoded."""
        return len(self.schema.features)

    def _check(self) -> None:
        if not isinstance(self.schema, Schema):
            raise ValueError(
                f"The 'schema' parameter of SchemaEncoder must be a Schema. Got {type(self.schema).__name__} instead. "
                "Write one by hand, or start from Schema.template(table)."
            )

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = tags.input_tags.two_d_array = False
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags


def encoded_features(schema: Schema, numbers: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
    """What SchemaEncoder makes of a table that was read as numbers.

    {public_schema}
    numbers : dict of str to ndarray of shape (n_rows,)
        As ``schema.numbers`` returns them.
    """
    return np.hstack([_encoded(schema.columns[name], numbers[name]) for name in schema.features])


@shared_docs
def number_places(schema: Schema) -> tuple[NumberPlace, ...]:
    """Where SchemaEncoder puts numbers and dates.

    {public_schema}
    """
    places = {name: place.start for name, place in feature_places(schema).items()}
    numbers = {name: column for name, column in schema.columns.items() if isinstance(column, Number | Date)}
    return tuple(NumberPlace(at, at + 1 if numbers[n].missing else None) for n, at in places.items() if n in numbers)


@shared_docs
def feature_places(schema: Schema) -> dict[str, slice]:
    """Where SchemaEncoder puts each column; a mark of what is missing comes last.

    {public_schema}
    """
    places, start = {}, 0
    for name in schema.features:
        end = start + len(_suffixes(schema.columns[name]))
        places[name], start = slice(start, end), end
    return places


def _suffixes(column: Column) -> list[str]:
    own = [f"_{value}" for value in column.values] if isinstance(column, Category) else [""]
    return own + ["_missing"] * column.missing


def _encoded(column: Column, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Numbers in [-1, 1], categories one-hot, a column for what is missing where the schema allows that."""
    absent = np.isnan(numbers)
    if isinstance(column, Category):
        block = (numbers[:, None] == np.arange(len(column.values))).astype(np.float64)
    else:
        low, high = column.ends
        block = np.nan_to_num((2 * numbers - low - high) / (high - low))[:, None]
    return np.hstack([block, absent[:, None]]) if column.missing else block


#: What ``schema=`` may be.
SCHEMA_CONSTRAINT = Having(["numbers"], "a Schema, as Schema({...}), Schema.from_dict and Schema.load make it,")
#: What a schema says, so that no parameter may say it once more.
SCHEMA_PARAMETERS = ("classes", "groups", "bounds", "categories", "dtypes", "sensitive_columns")
#: What to do where a label or a group that is public is missing.
_MISSING_ROLE = (
    " A label or group that is missing is such a value: drop its row, or fillna('unknown') and list 'unknown', or let "
    "missing groups be one of their own: Category([...], missing=True)."
)


def schema_of(estimator: Any) -> Schema | None:
    """The ``schema`` of an estimator, where it has one."""
    schema, owner = getattr(estimator, "schema", None), type(estimator).__name__
    if schema is None:
        return None
    if not isinstance(schema, Schema):
        raise ValueError(
            f"The 'schema' parameter of {owner} must be a Schema or None. Got {type(schema).__name__} instead. Use "
            "Schema.from_dict or Schema.load."
        )
    of_amounts = is_regressor(estimator) and not hasattr(estimator, "bounds_y")
    said = {*SCHEMA_PARAMETERS} - ({"bounds"} if of_amounts else set())
    twice = [name for name in SCHEMA_PARAMETERS if name in said and getattr(estimator, name, None) is not None]
    if twice:
        raise ValueError(
            f"{owner} got 'schema' together with {', '.join(map(repr, twice))}. The schema describes all that is "
            "public about the table: leave the others out, and change the schema if it differs."
        )
    return schema


def note_columns(reads: PublicReads, schema: Schema, owner: str | None = None) -> None:
    """Note that columns are read by a schema, and warn where nobody has seen what it misses."""
    unread = "a cell that cannot be read counts as missing or, where none may be missing, as the middle of the bounds"
    said = f"by the schema, with all values that they may hold; {unread}"
    reads.note("columns of X", "given", schema.features, said, by=schema)
    if owner is not None and schema.privacy_ is None and not schema.was_compared:
        names = [*schema.features[:5], *([schema.label] if schema.amounts is not None else [])]
        shown = ", ".join(map(repr, names)) + (", ..." if len(schema.features) > 5 else "")
        warn_caller(
            f"{owner} reads {shown} by a schema that was not compared with a table: {unread}, and a fit does not "
            "report in how many rows. Call schema.misfits_by_kind(X) first, and do not publish its exact counts.",
            UtilityWarning,
        )


@shared_docs
@dataclass(frozen=True)
class RawTable:
    """A table whose columns a schema has read. Reading of features is total: what is not foreseen counts as a bound, or
    as missing. A label or group that is not listed is refused, in constant words. Public rows are checked instead."""

    schema: Schema
    owner: str
    table: Any
    numbers: dict[str, NDArray[np.float64]]
    n_rows: int

    @classmethod
    def read(cls, schema: Schema, table: Any, *, owner: str, name: str = "X", may_be_empty: bool = False) -> "RawTable":
        """Read a table that must have all features of the schema."""
        try:
            column_names(table)
        except SameNameError:
            raise
        except ValueError:
            if (way := gathered(table)) is not None:
                raise ValueError(
                    f"{name} of {owner} is an object of type {type(table).__module__}.{type(table).__qualname__}, "
                    f"which is read in chunks, and is needed in memory here. Pass {way.replace('X', name)}."
                ) from None
            raise ValueError(
                f"{name} of {owner} must be a DataFrame with the columns of its schema (pandas, polars, pyarrow or "
                f"another one that narwhals knows). Got {type(table).__name__} instead. Make one (for one row in a "
                "dict or Series pd.DataFrame([row])), or leave 'schema' out."
            ) from None
        numbers = schema.numbers(table)
        read = cls(schema, owner, table, numbers, len(next(iter(numbers.values()))))
        if not read.n_rows and not may_be_empty:
            raise ValueError(f"Found array with 0 sample(s) while a minimum of 1 is required: {name} of {owner}.")
        return read

    @classmethod
    def roles(cls, schema: Schema, table: Any, *, owner: str) -> "RawTable":
        """Read label and groups alone, as far as they are columns of the table, whose others may be any."""
        try:
            names = [name for name in (schema.label, *schema.groups) if name in column_names(table)]
        except ValueError:  # an array
            names = []
        cells = as_columns(as_dataframe(table, names)) if names else []
        numbers = {str(name): schema.columns[str(name)].read(own) for name, own in zip(names, cells, strict=True)}
        return cls(schema, owner, table, numbers, table.shape[0] if hasattr(table, "shape") else len(table))

    @property
    def features(self) -> NDArray[np.float64]:
        """As :class:`SchemaEncoder` has them, of shape (n_rows, n_encoded)."""
        return encoded_features(self.schema, self.numbers)

    def said_of_others(self, *names: str | None) -> str:
        """What a row without a listed value counts as, by the columns where a release and not their author says so."""
        columns = {name: self.schema.columns[name] for name in names if name is not None}
        rest = {name: getattr(one, "others", None) for name, one in columns.items() if one.privacy_ is not None}
        told = [f"{own!r} in {name}" for name, own in rest.items() if own is not None]
        return f"a row without one of them counts as {' and '.join(told)}" if told else ""

    def check(self, name: str, *, label: bool = False, groups: bool = False) -> None:
        """Refuse public rows that the schema does not foresee."""
        counts = self.schema.count_misfits(self.table)
        also = (*((self.schema.label,) if label else ()), *(self.schema.groups if groups else ()))
        wrong = [column for column in (*self.schema.features, *also) if counts.get(column, 0)]
        if wrong:
            raise ValueError(
                f"{name} of {self.owner} has values that its schema does not allow, in {len(wrong)} column(s): "
                f"{wrong[:5]}. These rows are public, so no value is replaced: correct them, or let the schema allow "
                f"more (Schema.misfits(table) counts such cells).{_MISSING_ROLE if set(wrong) & set(also) else ''}"
            )

    def warn_of_unread(self, *, by_user: bool = True) -> None:
        """Tell of cells of rows to predict that are no value; of private rows nothing of it may be told. By a schema
        that is not the user's, such as one of sampled rows, none is missing that should not be."""
        features = self.schema.features
        unread = {name: n for name in features if (n := self._unread(name, self.numbers[name], by_user))}
        if unread:
            shown = ", ".join(f"{n:,} of {name!r}" for name, n in itertools.islice(unread.items(), 5))
            warn_caller(
                f"{self.owner} got rows with cells that cannot be read, {shown}: they count as missing or, where none "
                "may be missing, as the middle of the bounds. Compare how they are written"
                + (", with schema.misfits_by_kind(X)." if by_user else " with the rows of the fit."),
                UtilityWarning,
            )

    def _unread(self, name: Any, numbers: Any, by_user: bool) -> int:
        """How many cells cannot be read; of a list of values, where none is one of these, those that are not listed."""
        column = self.schema.columns[name]
        as_nothing = np.flatnonzero(np.isnan(numbers) | (numbers == column.read([None])[0]))
        if not len(as_nothing):
            return 0
        found = column.misfits(as_dataframe(self.table, [name])[name].iloc[as_nothing])
        wrong = found["unreadable"] | (found["missing"] & (by_user and not column.missing))
        if isinstance(column, Category):
            alone = getattr(column, "others", None) is not None or self.n_rows == 1 or found["missing"].all()
            is_left = len(column.values) == 1 and not by_user  # by noise, of a column that may hold more
            wrong = found["beyond"] & (not (alone or is_left) and len(as_nothing) == self.n_rows)
        return int(wrong.sum())

    # ------------------------------------------------------------------ label

    @property
    def classes(self) -> NDArray[Any]:
        """The classes of the schema, sorted as scikit-learn has them."""
        if self.schema.amounts is not None:
            raise ValueError(
                f"{self.owner} works with classes, and the label of its schema, {self.schema.label!r}, is a Number. "
                "FairDPSGDRegressor and SyntheticDataRegressor predict amounts. For classes let the label be a "
                "Category or Boolean, such as whether the amount is above a public limit."
            )
        if self.schema.classes is None:
            raise ValueError(
                f"{self.owner} needs labels, and its schema names none. Say which column it is: "
                "Schema(columns, label=...)."
            )
        with contextlib.suppress(TypeError):
            return np.asarray(sorted(self.schema.classes))
        raise ValueError(f"The label of the schema of {self.owner} mixes texts and numbers. Use one kind.")

    def labels(
        self, y: Any = None, *, public: bool = False, unknown: int | None = None, numbered: bool = False
    ) -> NDArray[np.int64]:
        """Read one label per row, as its position in ``classes``. Where all classes are words, whole numbers count as
        such positions, as scikit-learn's ensembles and cross_val_predict hand labels on. Anybody else is told of it."""
        classes, label, declared = self.classes, self.schema.label, self.schema.classes
        assert label is not None and declared is not None
        if y is None and label not in self.numbers:
            self._refuse_missing_labels()
        ranks = np.array([*np.argsort(np.argsort(np.asarray(declared))), np.nan])  # of what is no class: NaN
        if y is None:
            codes = _taken(ranks, self.numbers[label])
        else:
            cells = one_column(y, self.n_rows, owner=self.owner, name="y")
            positions = Category(tuple(range(len(classes))))
            counted = cells.dtype.kind in "iu" and classes.dtype.kind == "U" and all(map(is_word, classes.tolist()))
            if counted and not numbered and not encoded_by_cross_val_predict():
                shown = ", ".join(f"{j} is {text!r}" for j, text in enumerate(classes.tolist()))
                warn_caller(
                    f"{self.owner} read the whole numbers of y as positions of the classes of its schema: {shown}. "
                    "Pass the labels themselves."
                )
            codes = (
                positions.read(cells) if numbered or counted else _taken(ranks, self.schema.columns[label].read(cells))
            )
        if public and np.isnan(codes).any():
            raise ValueError(
                f"y of {self.owner} holds labels that are none of the classes of its schema, {classes.tolist()}. "
                "These labels are public, so none is replaced: correct them, or let the schema allow more."
            )
        if unknown is None and np.isnan(codes).any():
            raise private_error("unlisted", owner=self.owner, name="y")
        return np.where(np.isnan(codes), 0 if unknown is None else unknown, codes).astype(np.int64)

    def amounts(self, y: Any = None) -> NDArray[np.float64]:
        """Read one amount per row, those beyond the bounds of the label as the bound, in its unit."""
        schema = self.schema
        assert schema.amounts is not None
        if y is None and schema.label not in self.numbers:
            self._refuse_missing_labels()
        if y is None:
            return self.numbers[str(schema.label)]
        return schema.amounts.read(one_column(y, self.n_rows, owner=self.owner, name="y"))

    def label_cells(self, y: Any = None) -> Array:
        """The labels as they were given, one cell a row, to be handed on and read later.

        {cells_of_labels}
        """
        if y is None and self.schema.label in self.numbers:
            y = as_columns(as_dataframe(self.table, [self.schema.label]))[0]
        if y is None:
            self._refuse_missing_labels()
        cells = one_column(y, self.n_rows, owner=self.owner, name="y")
        return cells.to_numpy() if cells.dtype.kind in "iu" else cells.to_numpy(dtype=object)

    def _refuse_missing_labels(self) -> NoReturn:
        label = self.schema.label
        raise ValueError(
            f"{self.owner} requires y to be passed, but the target y is None and X has no column {label!r}, the label "
            "of its schema."
        )

    # ------------------------------------------------------------------ groups

    @property
    def has_groups(self) -> bool:
        """Whether the table holds all columns of the group."""
        return bool(self.schema.groups) and all(name in self.numbers for name in self.schema.groups)

    @property
    def names_no_groups(self) -> str:
        """In words."""
        return (
            f"{self.owner} needs groups, and its schema names none. Say which columns they are: "
            "Schema(columns, groups=...)."
        )

    @property
    def domain(self) -> NDArray[np.object_]:
        """The groups of the schema; tuples where it names several columns."""
        if self.schema.group_values is None:
            raise ValueError(self.names_no_groups)
        return given_domain(self.schema.group_values, owner=self.owner, parameter="schema")

    def groups(
        self, sensitive_features: Any = None, *, name: str = "sensitive_features", public: bool = False
    ) -> NDArray[np.int64]:
        """Read one group per row, as its position in ``domain``."""
        columns = self.schema.groups
        if sensitive_features is not None:
            given = self._given_groups(sensitive_features, name)
            read = [self.schema.columns[column].read(cells) for column, cells in zip(columns, given, strict=True)]
        elif self.has_groups:
            read = [self.numbers[column] for column in columns]
        else:
            raise ValueError(
                f"{self.owner} needs groups: X lacks {list(columns)}, the group of its schema, and there is no {name}."
            )
        if public and np.isnan(read).any():
            raise ValueError(
                f"{name} of {self.owner} holds values that its schema does not list for {list(columns)}. These groups "
                f"are public, so none is replaced: correct them, or let the schema list more.{_MISSING_ROLE}"
            )
        if np.isnan(read).any():
            raise private_error("unlisted", owner=self.owner, name=name)
        sizes = [len(values_of(self.schema.columns[column])) for column in columns]
        return np.asarray(np.ravel_multi_index([numbers.astype(np.int64) for numbers in read], sizes), dtype=np.int64)

    def _given_groups(self, given: Any, name: str) -> "list[pd.Series[Any]]":
        """One column for each column of the group, by name where all of them have that name, else in their order."""
        wanted = self.schema.groups
        if len(wanted) > 1 and isinstance(given, list | tuple):
            given = _unpacked(given, len(wanted))
        columns = as_columns(given)
        names = column_names(given) if len(columns) > 1 and hasattr(given, "columns") else []
        if set(wanted) <= set(names):
            columns = [columns[names.index(column)] for column in wanted]
        if len(columns) != len(wanted):
            raise ValueError(
                f"{name} of {self.owner} must have the {len(wanted)} column(s) that its schema names as groups: "
                f"{list(wanted)}. Got {len(columns)}."
            )
        if len(columns[0]) != self.n_rows:
            raise ValueError(f"{name} of {self.owner} has inconsistent length: it must have one entry per row of X.")
        return columns


def made_up(schema: Schema, source: RowSource) -> pd.DataFrame:
    """One row in the columns that a source has, from which all that is public follows as from any other."""
    label = schema.label if schema.classes is not None else None
    roles = {name: values_of(schema.columns[name])[0] for name in (label, *schema.groups) if name is not None}
    return pd.DataFrame({name: pd.Series([roles.get(name)], dtype=object) for name in source.columns})


def check_roles(source: RowSource, schema: Schema, *, owner: str, groups: bool) -> None:
    """Refuse labels and groups of a source that a schema does not list, in a pass of its own, before a budget is
    spent."""
    asked = {"y": (schema.label,), "sensitive_features": schema.groups if groups else ()}
    named = [name for names in asked.values() for name in names if name is not None]
    columns = [name for name in named if getattr(schema.columns[name], "others", None) is None]
    unlisted = source.map_reduce(partial(_unlisted, schema, owner, columns), np.add) if columns else None
    for name, names in asked.items():
        if unlisted is not None and any(unlisted[j] for j, column in enumerate(columns) if column in names):
            raise private_error("unlisted", owner=owner, name=name)


def _unlisted(schema: Schema, owner: str, names: list[str], chunk: Chunk) -> NDArray[np.int64]:
    numbers = RawTable.roles(schema, chunk.table, owner=owner).numbers
    return np.array([np.isnan(numbers.get(name, np.zeros(0))).sum() for name in names], dtype=np.int64)


def one_column(values: Any, n_rows: int, *, owner: str, name: str) -> "pd.Series[Any]":
    """Labels in any container as one column of cells."""
    columns = as_columns(values)
    if len(columns) != 1:
        raise ValueError(f"{name} of {owner} should be a 1d array: one column of labels, one entry per row.")
    if len(columns[0]) != n_rows:
        raise ValueError(f"{name} of {owner} has inconsistent length: it must have one label per row of X.")
    return columns[0]


def _taken(ranks: NDArray[np.float64], positions: NDArray[np.float64]) -> NDArray[np.float64]:
    return ranks[np.where(np.isnan(positions), -1, positions).astype(np.int64)]


def _unpacked(rows: Sequence[Any], width: int) -> pd.DataFrame:
    """Rows of several cells as columns. A row of another length has no cell at all."""
    table = np.full((len(rows), width), None, dtype=object)
    for i, row in enumerate(rows):
        if isinstance(row, list | tuple | np.ndarray) and len(row) == width:
            table[i] = [*row]
    return pd.DataFrame(table)


#: Grids of numbers up to here are told apart by float64 arithmetic with room to spare: the error of a quotient is below
#: 2^-10 steps where no bound lies further than 2^40 steps from zero.
_FINEST, _MOST_CODES = 2.0**40, 2**32


@dataclass(frozen=True)
class CompactRows:
    """One structured array in place of a table: codes of one, two or four bytes, float64 for numbers without steps. The
    types follow from the schema alone. Everything that a fit reads of a table comes back bit for bit."""

    schema: Schema
    owner: str
    names: tuple[str, ...]

    @property
    def fields(self) -> list[tuple[str, np.dtype[Any]]]:
        """Of a structured dtype: a field for each column, in their order."""
        return [(f"column{j}", _dtype(self.schema.columns[name])) for j, name in enumerate(self.names)]

    def fill(self, rows: Array, numbers: Mapping[str, Floats]) -> None:
        """Write a table into the fields."""
        for (field, _), name in zip(self.fields, self.names, strict=True):
            rows[field] = _codes(self.schema.columns[name], numbers[name])

    def rows(self, numbers: Mapping[str, Floats]) -> Array:
        """A table, written into the fields."""
        rows = np.empty(len(next(iter(numbers.values()))), dtype=self.fields)
        self.fill(rows, numbers)
        return rows

    def contents(self, rows: Array) -> tuple[Array, ...]:
        """What is in each column, by which rows without an order are sorted."""
        return tuple(rows[field] for field, _ in self.fields)

    def table(self, rows: Array) -> RawTable:
        """The inverse of :meth:`fill`."""
        places = zip(self.fields, self.names, strict=True)
        numbers = {name: _numbers(self.schema.columns[name], rows[field]) for (field, _), name in places}
        return RawTable(self.schema, self.owner, None, numbers, len(rows))


def _grid(column: Column) -> tuple[int, float] | None:
    """How many values there are, and how far apart their numbers lie; None where they have no codes."""
    (low, high), step = column.ends, column.step if isinstance(column, Number) else 1.0
    if step is None or max(abs(low), abs(high)) / step > _FINEST:
        return None
    n_codes = int(np.round((high - low) / step)) + 1
    return (n_codes, step) if n_codes < _MOST_CODES else None


def _dtype(column: Column) -> np.dtype[Any]:
    grid = _grid(column)  # the last code is one more: no value
    return np.dtype(np.float64) if grid is None else np.min_scalar_type(grid[0])


def _codes(column: Column, numbers: Floats) -> Array:
    if (grid := _grid(column)) is None:
        return numbers
    n_codes, step = grid
    codes = np.round((numbers - column.ends[0]) / step)
    return np.where(np.isnan(numbers), n_codes, codes).astype(np.min_scalar_type(n_codes))


def _numbers(column: Column, codes: Array) -> Floats:
    if (grid := _grid(column)) is None:
        return np.ascontiguousarray(codes, dtype=np.float64)
    n_codes, step = grid
    return np.where(codes == n_codes, np.nan, np.clip(column.ends[0] + step * codes.astype(np.float64), *column.ends))


#: Of the hash that chooses public rows: anyone may know which ones are chosen.
_SEED = 0x5EED_0F_80


@dataclass(frozen=True)
class RowStore:
    """The features of a table as a matrix, of which only the rows that are asked for are ever made. **Private.** Row
    *i* is row *i* of the source, bit for bit what a DataFrame in memory would give."""

    compact: CompactRows
    rows: Array
    n_features: int
    places: Ints | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the matrix."""
        return len(self), self.n_features

    def __len__(self) -> int:
        return len(self.rows if self.places is None else self.places)

    def __getitem__(self, index: slice | Ints) -> Floats:
        """The features of some rows, of shape (n_some, n_features)."""
        rows = index if self.places is None else self.places[index]
        return np.ascontiguousarray(self.compact.table(self.rows[rows]).features)

    def part(self, places: Ints) -> "RowStore":
        """The rows of these places alone."""
        return replace(self, places=places)


def storage_bytes(schema: Schema, n_rows: int) -> int:
    """How much disk :func:`kept_rows` takes: public."""
    return n_rows * np.dtype(CompactRows(schema, "", schema.features).fields).itemsize


def kept_rows(
    source: RowSource, schema: Schema, *, owner: str, n_features: int, groups: bool, held: int = HELD,
    listed: NDArray[np.uint64] | None = None, contents: tuple[str, ...] = (),
) -> tuple[RowStore, Ints, Ints | None, Ints | None]:  # fmt: skip
    """Read a source once: features, labels, groups and, where subjects are listed, whose each row is. Columns of theirs
    are kept by which the rows of one are in an order."""
    compact = CompactRows(schema, owner, contents or schema.features)

    def encoded(chunk: Chunk) -> tuple[Array, list[Any]]:
        raw = RawTable.read(schema, chunk.table, owner=owner, may_be_empty=True)
        of = None if listed is None else np.searchsorted(listed, row_hashes(chunk, source.key, LISTED))
        return compact.rows(raw.numbers), [raw.labels(), raw.groups() if groups else None, of]

    rows, (y, of_groups, of) = _kept(source, owner, source.each(encoded), np.dtype(compact.fields), held)
    return RowStore(compact, rows, n_features), y, of_groups, of


def _kept(
    source: RowSource, owner: str, made: Iterable[tuple[Array, Sequence[Any]]], dtype: Any, held: int, **how: Any
) -> tuple[Array, list[Any]]:
    """What was made of the rows of a source, stored in their order, and what came beside it, in memory."""
    beside: list[Sequence[Any]] = []

    def rows_only() -> Iterator[Array]:
        for rows, some in made:
            beside.append(some)
            yield rows

    rows = stored(rows_only(), source.n_rows, dtype, held, **how)
    if len(rows) != source.n_rows:
        raise other_rows(owner)
    return rows, [None if column[0] is None else np.concatenate(column) for column in zip(*beside, strict=True)]


def numeric_memmap(
    source: RowSource, schema: Schema, *, owner: str, n_features: int, dtype: Any, chosen: Ints | None, held: int = HELD
) -> tuple[Array, Floats, Ints, Ints]:
    """Read a source whose features and labels are public once, check it, and keep its features as numbers."""
    compact = CompactRows(schema, owner, schema.features)

    def encoded(chunk: Chunk) -> tuple[Array, tuple[Ints, Ints]]:
        raw = RawTable.read(schema, chunk.table, owner=owner, may_be_empty=True)
        raw.check("X", label=True)
        return compact.rows(raw.numbers), (raw.labels(), raw.groups())

    def numbers() -> Iterator[tuple[Array, tuple[Any, ...]]]:
        start = 0
        for rows, own in source.each(encoded):
            features = np.ascontiguousarray(compact.table(rows).features)
            stop = start + len(features)
            here = slice(None) if chosen is None else chosen[slice(*np.searchsorted(chosen, [start, stop]))] - start
            start = stop
            with np.errstate(over="ignore"):  # torch says nothing of it either
                yield features.astype(dtype), (features[here], *own)

    X, (some, y, groups) = _kept(source, owner, numbers(), np.dtype((dtype, (n_features,))), held, writeable=True)
    return X, some, y, groups


def subsample_rows(source: RowSource, schema: Schema, *, owner: str, most: int) -> tuple[RawTable, Ints]:
    """Some rows of a source whose features and labels are public, after a check of all: those whose public keys have
    the smallest hashes, in that order: the same from every engine, whatever its chunks; and a number for the key of
    each. Groups are not read."""
    compact = CompactRows(schema, owner, (*schema.features, *((schema.label,) if schema.label else ())))
    dtype = np.dtype([("hash", np.uint64), *compact.fields])
    few = most < source.n_rows  # hashes are even: the bound leaves a few rows too many
    below = min(1.0, (most + 8 * math.sqrt(most) + 64) / source.n_rows) if few else 1.0
    largest = np.uint64(min(int(below * 2.0**64), 2**64 - 1))

    def chosen(chunk: Chunk) -> tuple[list[Array], int]:
        raw = RawTable.read(schema, chunk.table, owner=owner, may_be_empty=True)
        raw.check("X", label=True)
        hashes = row_hashes(chunk, source.key, _SEED)
        kept = np.flatnonzero(hashes <= largest)
        rows = np.empty(len(kept), dtype=dtype)
        rows["hash"] = hashes[kept]
        compact.fill(rows, {name: raw.numbers[name][kept] for name in compact.names})
        return [rows], raw.n_rows

    rows = np.concatenate(total_of(source, chosen, operator.add, owner))
    if not len(rows):
        raise ValueError(f"The keys of X of {owner} are no ids: far too many rows have the same one.")
    # Equal keys by what is public of their rows.
    rows = rows[np.lexsort([rows[name] for name in reversed(dtype.names or ())])[:most]]
    return compact.table(rows), np.unique(rows["hash"], return_inverse=True)[1]
