"""Rows that do not lie in memory: where they are refused, and where a fit comes back to single rows of them."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from skfairdp._inputs._data import TrainingData
from skfairdp._inputs._table import refuse_large
from skfairdp._rows import RowSource, check_free_disk, check_order, gathered, key_wanted
from skfairdp.schema import kept_rows, numeric_memmap, schema_of, subsample_rows


def refuse_chunks(owner: str, **arguments: Any) -> None:
    """Refuse rows that do not lie in memory where they are all needed there, and say what to pass instead."""
    for name, given in arguments.items():
        way = gathered(given)
        if way is not None:
            raise ValueError(
                f"{owner} needs its rows in memory, and {name} is an object of type {type(given).__name__}, which is "
                f"read in chunks. Pass {way.replace('X', name)}. PATEClassifier, FairPATEClassifier, "
                "SFPATEClassifier, PFLDClassifier, FairDPSGDClassifier, PFGuardGenerator, SyntheticDataClassifier and "
                "PrivateThresholds read chunks."
            )


def read_source(estimator: BaseEstimator, data: TrainingData) -> TrainingData:
    """Read the rows of a source once, in their order, for fits that come back to single rows."""
    if data.source is None:
        return data
    check_order(data.source, type(estimator).__name__)
    schema: Any = schema_of(estimator)
    data.source.verbose = getattr(estimator, "verbose", 0)
    X: Any
    X, y, groups = kept_rows(
        data.source, schema, owner=type(estimator).__name__, n_features=data.X.shape[1], groups=data.groups is not None
    )
    return replace(data, X=X, y=y, groups=groups)


def read_numbers_of(
    estimator: BaseEstimator, data: TrainingData, dtype: np.dtype[Any], chosen: NDArray[np.int64] | None
) -> tuple[NDArray[Any], TrainingData]:
    """Check all rows of a source of which everything but the groups is public, and keep them as numbers of a
    network.
    """
    assert data.source is not None
    schema: Any = schema_of(estimator)
    owner, verbose = type(estimator).__name__, getattr(estimator, "verbose", 0)
    n_rows, n_features = data.X.shape
    check_order(data.source, owner)
    check_free_disk(n_rows * n_features * dtype.itemsize, owner, verbose=verbose)
    data.source.verbose = verbose
    rows, some, y, groups = numeric_memmap(
        data.source, schema, owner=owner, n_features=n_features, dtype=dtype, chosen=chosen
    )
    return rows, replace(data, X=some, y=y, groups=groups)


def read_public_rows_of(estimator: BaseEstimator, data: TrainingData, most: int) -> TrainingData:
    """Check all rows of a source of which everything but the groups is public, and keep some of them in memory."""
    if data.source is None:
        return data
    schema: Any = schema_of(estimator)
    data.source.verbose = getattr(estimator, "verbose", 0)
    owner = type(estimator).__name__
    kept = subsample_rows(data.source, schema, owner=owner, most=most)
    refuse_large(kept.features, f"X of {owner} holds")
    data.reads.note("rows kept in memory", "computed", kept.n_rows, "chosen by the hashes of their keys")
    return replace(data, X=kept.features, y=kept.labels())


def check_source(estimator: BaseEstimator, source: RowSource, y: Any, groups: Any, by_key: bool) -> None:
    """Refuse rows out of memory where they cannot be read, before one is."""
    owner = type(estimator).__name__
    if schema_of(estimator) is None:
        raise ValueError(
            f"{owner} reads rows in chunks only with a 'schema', which says what their values are. Set it."
        )
    if y is not None or groups is not None:
        raise ValueError(
            f"{owner} got y or sensitive_features beside an X that is read in chunks. Name their columns in the schema "
            "(label, groups), and leave them out."
        )
    if getattr(estimator, "memory", None) is not None:
        raise ValueError(f"{owner} keeps no teachers of rows that are read in chunks. Set 'memory' to None.")
    if by_key and source.key is None and not source.knows_places:
        raise ValueError(key_wanted(owner) + ".")
    if not source.n_rows:
        raise ValueError(f"Found array with 0 sample(s) while a minimum of 1 is required: X of {owner}.")
