"""Reading what users pass as X, y and groups, and giving synthetic rows back in the same form."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

__all__ = ["Form", "as_table", "named_columns"]


def as_table(X: Any) -> pd.DataFrame:
    """A DataFrame of the same columns; object arrays get the column types that their entries have."""
    if isinstance(X, pd.DataFrame):
        return X
    table = pd.DataFrame(np.asarray(X))
    return table.infer_objects() if "O" in {getattr(dtype, "kind", "") for dtype in table.dtypes} else table


def named_columns(table: pd.DataFrame, wanted: Any) -> list[Any]:
    """Labels of the columns that ``sensitive_columns`` names, by label or by position."""
    items = [wanted] if isinstance(wanted, str | int | np.integer) else list(wanted)
    return [table.columns[int(item)] if isinstance(item, int | np.integer) else item for item in items]


@dataclass(frozen=True)
class Form:
    """The container that labels or groups came in.

    Parameters
    ----------
    container : {"array", "series", "frame"}
    names : tuple of labels
    dtypes : tuple of dtypes
    """

    container: str
    names: tuple[Any, ...]
    dtypes: tuple[Any, ...]

    @classmethod
    def of(cls, given: Any) -> "Form":
        if isinstance(given, pd.DataFrame):
            return cls("frame", tuple(given.columns), tuple(given.dtypes))
        if isinstance(given, pd.Series):
            return cls("series", (given.name,), (given.dtype,))
        array = np.asarray(given)
        width = array.shape[1] if array.ndim == 2 else 1
        return cls("array", tuple(range(width)), (array.dtype,) * width)

    def restore(self, labels: list[Any], codes: NDArray[np.int64]) -> Any:
        """Rows of public ``labels`` (tuples where there are several columns) in this container."""
        several = len(self.names) > 1
        columns = [
            _filled([label[k] if several else label for label in labels], codes, dtype)
            for k, dtype in enumerate(self.dtypes)
        ]
        if self.container == "frame":
            frame = pd.DataFrame(dict(enumerate(columns)))
            frame.columns = pd.Index(list(self.names))
            return frame
        if self.container == "series":
            return pd.Series(columns[0], name=self.names[0])
        return columns[0] if not several else np.column_stack(columns)


def _filled(labels: list[Any], codes: NDArray[np.int64], dtype: Any) -> Any:
    if isinstance(dtype, pd.CategoricalDtype):
        return pd.Categorical.from_codes(codes, categories=pd.Index(labels), ordered=bool(dtype.ordered))
    lookup = np.empty(len(labels), dtype=object)
    lookup[:] = labels
    if isinstance(dtype, np.dtype):
        return lookup.astype(dtype)[codes]
    return pd.array(lookup[codes], dtype=dtype)
