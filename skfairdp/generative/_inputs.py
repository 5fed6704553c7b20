"""How the generator reads its private and public inputs. Nothing here releases anything."""

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from skfairdp._base import FairPrivateMixin
from skfairdp.exceptions import FairnessWarning
from skfairdp.generative._codec import TableCodec, plan_table
from skfairdp.generative._law import given_rates
from skfairdp.generative._tables import Form, as_table, named_columns
from skfairdp.generative._units import UnitCodec, plan_units
from skfairdp.utils import PublicData, split_sensitive_columns, without_values

__all__ = ["ReadsRows"]


class ReadsRows(FairPrivateMixin):
    """Tables, images, labels, groups and public references, checked before anything is spent."""

    balance: str | None
    label_rates: Any
    codec: str
    bounds: Any
    categories: Any
    n_bins: int

    def _read_rows(self, X: Any, X_reference: Any) -> tuple[Any, Any, TableCodec | UnitCodec, Any]:
        """Private rows, the groups among their columns, what turns them into cells or units, and public rows."""
        owner = type(self).__name__
        self._group_columns: list[tuple[int, Any, Form]] = []
        given = X_reference.X if isinstance(X_reference, PublicData) else X_reference
        dimensions = getattr(X, "ndim", 2)
        if self.codec == "units" or (self.codec == "auto" and dimensions > 2):
            if self.sensitive_columns is not None:  # type: ignore[attr-defined]
                raise ValueError(f"'sensitive_columns' of {owner} names columns of a table; units have none.")
            rows = self._read_array(X, reset=True)
            codec = plan_units(rows, self.bounds, owner)
            return rows, None, codec, None if given is None else self._read_array(given, reset=False)
        table, groups = self._read_table(X, reset=True)
        reference = None
        if given is not None:
            reference, _ = self._read_table(given, reset=False)
            reference.columns = table.columns
        return table, groups, plan_table(
            table,
            is_frame=isinstance(X, pd.DataFrame),
            dtype=None if isinstance(X, pd.DataFrame) else np.asarray(X).dtype,
            reference=reference,
            bounds=self.bounds,
            categories=self.categories,
            n_bins=self.n_bins,
            owner=owner,
        ), reference

    def _read_array(self, X: Any, *, reset: bool) -> NDArray[Any]:
        """Numbers of any number of dimensions, one row along the first."""
        array = np.asarray(X)
        flat = array.reshape(len(array), -1) if array.ndim > 2 and len(array) else array
        validate_data(self, flat, reset=reset, dtype="numeric", ensure_all_finite=False)
        return array

    def _read_table(self, X: Any, *, reset: bool) -> tuple[pd.DataFrame, NDArray[np.object_] | None]:
        """The columns to be learnt, and the groups among the columns of X where ``sensitive_columns`` names them."""
        owner = type(self).__name__
        if scipy.sparse.issparse(X):
            raise TypeError(f"Sparse data was passed as X of {owner}, but dense data is required. Use X.toarray().")
        try:
            if isinstance(X, pd.DataFrame):
                validate_data(self, X, reset=reset, skip_check_array=True)
                if not X.shape[0] or not X.shape[1]:
                    raise ValueError(
                        f"Found array with {X.shape[0]} sample(s) and {X.shape[1]} feature(s) (shape={X.shape}) while "
                        f"a minimum of 1 is required by {owner}."
                    )
            else:
                X = validate_data(self, X, reset=reset, dtype=None, ensure_all_finite=False)
        except (ValueError, TypeError, OverflowError) as error:
            problem: Exception | None = without_values(error, owner=owner)
        else:
            problem = None
        if problem is not None:
            raise problem
        if self.sensitive_columns is None:  # type: ignore[attr-defined]
            return as_table(X), None
        features, groups = split_sensitive_columns(X, self.sensitive_columns, owner=owner)  # type: ignore[attr-defined]
        kept = as_table(features)
        whole = X if isinstance(X, pd.DataFrame) else pd.DataFrame(X)
        self._group_columns = [
            (list(whole.columns).index(name), name, Form.of(whole[name]))
            for name in named_columns(whole, self.sensitive_columns)  # type: ignore[attr-defined]
        ]
        return kept, groups

    def _read_labels(self, y: Any, n_rows: int) -> tuple[NDArray[np.int64], NDArray[Any] | None]:
        if y is None:
            return np.zeros(n_rows, dtype=np.int64), None
        classes, codes = self._encode_classes(self._check_target(y, n_rows))
        self._labels_form = Form.of(y if hasattr(y, "dtype") else np.asarray(y).ravel())
        return codes, classes

    def _read_groups(
        self, groups_in_X: NDArray[np.object_] | None, sensitive_features: Any, n_rows: int, *, estimated: bool
    ) -> tuple[NDArray[np.int64], NDArray[np.object_] | None]:
        if groups_in_X is None and sensitive_features is None:
            if self.balance is not None and not estimated:
                raise ValueError(
                    f"{type(self).__name__} needs the groups of the private rows to balance them: pass "
                    "sensitive_features to fit, name their columns with 'sensitive_columns', pass unbiased public rows "
                    "as X_reference, or set balance=None."
                )
            return np.zeros(n_rows, dtype=np.int64), None
        codes, domain = self._private_groups(groups_in_X, sensitive_features, n_rows)
        self._groups_form = Form.of(sensitive_features if groups_in_X is None else groups_in_X)
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
        return {
            position: (name, form.restore([group[k] if several else group for group in domain], codes))
            for k, (position, name, form) in enumerate(self._group_columns)
        }

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
