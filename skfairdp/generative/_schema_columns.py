"""A raw table as the generator counts it, by its schema alone; and sampled counts as a raw table again."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skfairdp._tables import Declarations
from skfairdp.schema import Boolean, Category, Date, Number, RawTable, Schema


def declarations_of(schema: Schema, owner: str) -> Declarations:
    """What a schema says of its features, once :func:`numbers_of` has made numbers of them."""
    bounds: dict[str, tuple[float, float]] = {}
    categories: dict[str, list[int]] = {}
    dtypes: dict[str, str] = {}
    for name in schema.features:
        column = schema.columns[name]
        if isinstance(column, Number | Date):
            ends = [column.low, column.high] if isinstance(column, Number) else [column.first, column.last]
            low, high = column.read(ends)
            bounds[name] = (float(low), float(high))
            whole = pd.api.types.is_integer_dtype(column.restore(np.array([low])).dtype) or isinstance(column, Date)
            dtypes[name] = ("Int64" if column.missing else "int64") if whole else "float64"
        else:
            assert isinstance(column, Category | Boolean)
            categories[name] = list(range(len(column.values) if isinstance(column, Category) else 2))
            dtypes[name] = "float64" if column.missing else "int64"
    return Declarations.read(schema.features, bounds, categories, dtypes, owner)


def numbers_of(raw: RawTable) -> pd.DataFrame:
    """The features of a raw table as columns of floats: values, days, positions; NaN where there is none."""
    return pd.DataFrame({name: raw.numbers[name] for name in raw.schema.features})


def raw_features(schema: Schema, sampled: pd.DataFrame) -> pd.DataFrame:
    """Sampled numbers as the values that the schema gives these columns."""
    return schema.restore(_numbers(schema, sampled))


def raw_table(schema: Schema, sampled: pd.DataFrame, labels: Any, groups: Any) -> pd.DataFrame:
    """Sampled numbers, labels and groups as a table with all columns of the schema, in its order."""
    numbers = _numbers(schema, sampled)
    if labels is not None and schema.label is not None:
        numbers[schema.label] = schema.columns[schema.label].read(labels)
    if groups is not None:
        columns = groups if isinstance(groups, pd.DataFrame) else pd.DataFrame({schema.groups[0]: groups})
        numbers |= {name: schema.columns[name].read(columns[name]) for name in schema.groups}
    return schema.restore({name: numbers[name] for name in schema.columns if name in numbers})


def _numbers(schema: Schema, sampled: pd.DataFrame) -> dict[str, NDArray[np.float64]]:
    numbers: Mapping[str, NDArray[np.float64]] = {
        name: sampled[name].to_numpy(dtype=np.float64, na_value=np.nan) for name in schema.features
    }
    # A bin may reach between two steps of a number, and its noise may count a missing value where none may be.
    return {
        name: schema.columns[name].read(column) if isinstance(schema.columns[name], Number | Date) else column
        for name, column in numbers.items()
    }
