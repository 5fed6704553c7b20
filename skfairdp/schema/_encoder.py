"""A table as numbers, by its schema alone: the first step of a pipeline that needs no public rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin

from skfairdp._docs import shared_docs
from skfairdp._utils import NamedEstimator, PublicData
from skfairdp.schema._columns import Boolean, Category, Column, Date, Number
from skfairdp.schema._schema import Schema, SchemaParameter


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
        tags.requires_fit = False
        tags.input_tags.two_d_array = False
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
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
    return tuple(
        NumberPlace(place.start, place.start + 1 if schema.columns[name].missing else None)
        for name, place in feature_places(schema).items()
        if isinstance(schema.columns[name], Number | Date)
    )


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
    if isinstance(column, Category):
        return [f"_{value}" for value in column.values] + (["_missing"] if column.missing else [])
    return [""] + (["_missing"] if column.missing else [])


def _encoded(column: Column, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Numbers in [-1, 1], categories one-hot, a column for what is missing where the schema allows that."""
    absent = np.isnan(numbers)
    if isinstance(column, Category):
        block = (numbers[:, None] == np.arange(len(column.values))).astype(np.float64)
    elif isinstance(column, Boolean):
        block = np.nan_to_num(2 * numbers - 1)[:, None]
    else:
        assert isinstance(column, Number | Date)
        ends = [column.low, column.high] if isinstance(column, Number) else [column.first, column.last]
        low, high = column.read(ends)
        block = np.nan_to_num((2 * numbers - low - high) / (high - low))[:, None]
    return np.hstack([block, absent[:, None]]) if column.missing else block
