"""The arguments of ``fit``, read and checked: private rows, public rows, domains, and the list of what is public.

An estimator is asked here for its constructor parameters (``schema``, or ``classes``, ``groups`` and
``sensitive_columns``; ``public_data``) and its name, and gets the attributes that scikit-learn's validation sets.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, validate_data

from skfairdp._rows import KeyedRows, RowSource, gathered, opened
from skfairdp._tables import SyntheticRows
from skfairdp.exceptions import PrivacyLeakWarning
from skfairdp.privacy import Protects, PublicReads
from skfairdp.schema import SAID_BY_SCHEMA, RawTable, chosen_public_rows, kept_rows, schema_of
from skfairdp.utils import (
    PublicData,
    as_dense,
    as_groups,
    as_labels,
    check_same_index,
    column_names,
    encode_labels,
    given_domain,
    group_domain,
    private_error,
    refuse_group_among_features,
    refuse_private_as_public,
    split_sensitive_columns,
    warn_caller,
    without_values,
)

__all__ = [
    "PublicRows",
    "Table",
    "TrainingData",
    "check_public_columns",
    "public_arguments",
    "read_any_training",
    "read_classes",
    "read_features",
    "read_labels",
    "read_private_groups",
    "read_public_rows_of",
    "read_source",
    "read_table",
    "read_training",
    "read_unprotected",
    "refuse_chunks",
]

#: Squares of larger numbers are not finite.
LARGEST_PUBLIC = 1e100

#: Whose groups a fit reads: of all private rows; of the public rows, which must have them or may have them; of both; of
#: none.
Groups = Literal["private", "public", "public, if given", "both", "none"]
#: Whether there are public rows, and where they come from.
PublicRowsFrom = Literal["given", "given or own", "optional", "none"]


@dataclass(frozen=True)
class PublicRows:
    """Public rows after validation: features, and group codes with their domain where groups are used.

    Parameters
    ----------
    X : ndarray of shape (n_public, n_features)
    groups : ndarray of int of shape (n_public,) or None
    domain : ndarray of shape (n_groups,) or None
        Names of the groups.
    """

    X: NDArray[np.float64]
    groups: NDArray[np.int64] | None = None
    domain: NDArray[np.object_] | None = None

    @property
    def n_groups(self) -> int:
        return 0 if self.domain is None else len(self.domain)


@dataclass(frozen=True)
class Table:
    """X after validation.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
    groups : ndarray of shape (n_rows,) or None
        What ``sensitive_columns`` or a schema names, where it was asked for.
    raw : RawTable or None
        The table with its label and groups, where a schema reads it.
    """

    X: NDArray[np.float64]
    groups: NDArray[np.object_] | None
    raw: RawTable | None = None


@dataclass(frozen=True)
class TrainingData:
    """All that a fit learns from.

    Parameters
    ----------
    X : ndarray or KeptRows of shape (n_rows, n_features)
        Private, unless only the group is protected.
    y : ndarray of int of shape (n_rows,)
        Class codes, as private as X.
    classes : ndarray of shape (n_classes,)
        Public.
    groups : ndarray of int of shape (n_rows,) or None
        Private group codes, where the fit needs them.
    domain : ndarray of shape (n_groups,) or None
        Public names of the groups, where any are used.
    public : PublicRows or None
    reads : PublicReads
        Every public value that the outcome may follow; grows until the budget is spent.
    own_rows : SyntheticRows or None
        What makes rows from the private ones, where there are no public ones.
    source : RowSource or None
        Reads the private rows where they do not lie in memory; X and y are then blank, of the right shape.
    """

    X: NDArray[np.float64]
    y: NDArray[np.int64]
    classes: NDArray[Any]
    groups: NDArray[np.int64] | None
    domain: NDArray[np.object_] | None
    public: PublicRows | None
    reads: PublicReads
    own_rows: SyntheticRows | None = None
    source: RowSource | None = None

    @property
    def share_for_votes(self) -> float:
        """What is left of the squared cost of the fit for what is asked about rows."""
        return 1.0 if self.own_rows is None else 1 - self.own_rows.budget_share


def read_training(
    estimator: BaseEstimator,
    X: Any,
    y: Any,
    *,
    sensitive_features: Any = None,
    X_public: Any = None,
    sensitive_features_public: Any = None,
    groups: Groups = "none",
    public_rows: PublicRowsFrom = "none",
    protects: Protects = Protects.RECORD,
) -> TrainingData:
    """Read everything a fit needs, or say what is wrong with it.

    Parameters
    ----------
    estimator : BaseEstimator
        Its parameters name the domains, the sensitive columns and where public rows come from.
    X, y, sensitive_features, X_public, sensitive_features_public
        The arguments of ``fit``.
    groups : {"private", "public", "public, if given", "both", "none"}, default="none"
        Whose groups are read.
    public_rows : {"given", "given or own", "optional", "none"}, default="none"
        Whether there are public rows: given ones, or where none are given rows that the private table pays for.
    protects : Protects, default=Protects.RECORD
        Features and labels are public where only the sensitive attribute is protected.

    Returns
    -------
    TrainingData

    Raises
    ------
    ValueError
        On unusable input. No message holds a private value or count.
    """
    reads, owner = PublicReads(), _name(estimator)
    if not isinstance(X, np.ndarray | pd.DataFrame):
        refuse_chunks(owner, X=X)
    check_same_index(owner, X=X, y=y, sensitive_features=sensitive_features)
    X_public, sensitive_features_public = public_arguments(estimator, X_public, sensitive_features_public)
    none_given = X_public is None or isinstance(X_public, SyntheticRows)
    own = _own_rows(estimator, X_public, sensitive_features_public, public_rows) if none_given else None
    if own is not None:
        X_public, groups = None, _groups_of_own_rows(estimator, groups, sensitive_features)
    check_same_index(owner, X_public=X_public, sensitive_features_public=sensitive_features_public)
    refuse_private_as_public(X, X_public, owner=owner)
    table = read_table(estimator, X, reads, with_groups=groups in ("private", "both"))
    if only_groups := protects == Protects.SENSITIVE_ATTRIBUTE:
        _check_public_table(table, X, y, sensitive_features, owner)
    classes, codes = read_classes(estimator, y, len(table.X), reads, public=only_groups, raw=table.raw)
    if groups == "private":
        read = read_private_groups(estimator, table.groups, sensitive_features, len(table.X), reads, raw=table.raw)
        return TrainingData(table.X, codes, classes, *read, None, reads, own)
    if X_public is None or public_rows == "none":
        return TrainingData(table.X, codes, classes, None, None, None, reads, own)
    needed, groups_given = groups in ("public", "both"), not (sensitive_features is sensitive_features_public is None)
    if groups_given and _parameter(estimator, "sensitive_columns") is not None:
        raise _groups_twice(owner)
    features, names = _given_rows(estimator, X_public, sensitive_features_public, reads, needed=needed)
    _refuse_large(features, f"The public rows of {owner} hold")
    public = _public_rows(estimator, features, None if groups == "none" else names, reads, needed=needed)
    private = _groups_like(estimator, table, sensitive_features, public.domain) if groups == "both" else None
    return TrainingData(table.X, codes, classes, private, public.domain, public, reads)


def read_any_training(
    estimator: BaseEstimator,
    X: Any,
    y: Any,
    *,
    sensitive_features: Any = None,
    by_key: bool = True,
    checks_public: bool = False,
    **arguments: Any,
) -> TrainingData:
    """Read everything a fit needs, where private rows may be such as do not fit into memory.

    Parameters
    ----------
    estimator : BaseEstimator
    X, y, sensitive_features
        The arguments of ``fit``. X may be what :func:`skfairdp._rows.opened` opens; the others are then columns of it.
    by_key : bool, default=True
        Whether rows are dealt to teachers by their keys, who are asked about public rows; else rows are read in their
        order.
    checks_public : bool, default=False
        Whether the caller checks features that are public, chunk by chunk: see :func:`read_public_rows_of`.
    **arguments
        Of :func:`read_training`.

    Returns
    -------
    TrainingData
        With a ``source``, and blank X, y and groups of its shape, where X does not lie in memory.
    """
    source = None if isinstance(X, np.ndarray | pd.DataFrame) else opened(X)
    if source is None:
        return read_training(estimator, X, y, sensitive_features=sensitive_features, **arguments)
    _check_source(estimator, source, y, sensitive_features, by_key)
    if arguments.get("protects") == Protects.SENSITIVE_ATTRIBUTE and not checks_public:
        raise ValueError(
            f"{_name(estimator)} reads X in chunks only where whole records are protected: features that are public "
            "are checked in memory. Pass the rows as a DataFrame."
        )
    if isinstance(X, KeyedRows) and opened(X.rows) is None:  # a DataFrame
        X_public, _ = public_arguments(estimator, arguments.get("X_public"), None)
        refuse_private_as_public(X.rows, X_public, owner=_name(estimator))
    # One row in the columns of the source, from which all that is public follows as from any other.
    made_up = pd.DataFrame({name: [None] for name in source.columns})
    data = read_training(estimator, made_up, None, **(arguments | {"protects": Protects.RECORD}))
    if data.public is None and by_key and not checks_public:
        raise ValueError(
            f"{_name(estimator)} needs public rows where X is read in chunks: pass X_public to fit, or set "
            "'public_data'."
        )
    data.reads.note_number_of_rows(source.n_rows)
    if by_key:
        key = "their file and row number" if source.key is None else f"column {source.key!r}"
        data.reads.note("keys of the rows of X", "read", key, "they say which teacher learns from a row")
    shape = source.n_rows, data.X.shape[1]
    blank = np.broadcast_to(np.zeros(()), shape), np.broadcast_to(np.zeros((), dtype=np.int64), shape[:1])
    return replace(data, X=blank[0], y=blank[1], groups=None if data.groups is None else blank[1], source=source)


def refuse_chunks(owner: str, **arguments: Any) -> None:
    """Refuse rows that do not lie in memory where they are all needed there, and say what to pass instead.

    Parameters
    ----------
    owner : str
    **arguments : object
        Arguments of ``fit``, by name.

    Raises
    ------
    ValueError
        One of them is a file, a query, a table of a cluster or a function.
    """
    for name, given in arguments.items():
        way = gathered(given)
        if way is not None:
            raise ValueError(
                f"{owner} needs its rows in memory, and {name} is an object of type {type(given).__name__}, which is "
                f"read in chunks. Pass {way.replace('X', name)}. PATEClassifier, FairPATEClassifier, "
                "SFPATEClassifier, FairDPSGDClassifier and PFGuardGenerator read chunks."
            )


def read_source(estimator: BaseEstimator, data: TrainingData) -> TrainingData:
    """Read the rows of a source once, in their order, for fits that come back to single rows.

    Parameters
    ----------
    estimator : BaseEstimator
    data : TrainingData
        As :func:`read_any_training` returns it.

    Returns
    -------
    TrainingData
        Whose X is a matrix of which only the rows are made that are asked for; y and groups are arrays.
    """
    if data.source is None:
        return data
    schema: Any = schema_of(estimator)
    data.source.verbose = getattr(estimator, "verbose", 0)
    X: Any
    X, y, groups = kept_rows(
        data.source, schema, owner=_name(estimator), n_features=data.X.shape[1], groups=data.groups is not None
    )
    return replace(data, X=X, y=y, groups=groups)


def read_public_rows_of(estimator: BaseEstimator, data: TrainingData, most: int) -> TrainingData:
    """Check all rows of a source of which everything but the groups is public, and keep some of them in memory.

    Parameters
    ----------
    estimator : BaseEstimator
    data : TrainingData
        As :func:`read_any_training` returns it.
    most : int
        How many rows to keep, where there are as many: those whose keys have the smallest hashes.

    Returns
    -------
    TrainingData
        With features and labels of the rows that were kept.
    """
    if data.source is None:
        return data
    schema: Any = schema_of(estimator)
    data.source.verbose = getattr(estimator, "verbose", 0)
    kept = chosen_public_rows(data.source, schema, owner=_name(estimator), most=most)
    _refuse_large(kept.features, f"X of {_name(estimator)} holds")
    data.reads.note("rows kept in memory", "computed", kept.n_rows, "chosen by the hashes of their keys")
    return replace(data, X=kept.features, y=kept.labels())


def _check_source(estimator: BaseEstimator, source: RowSource, y: Any, groups: Any, by_key: bool) -> None:
    """Refuse rows out of memory where they cannot be read, before one is."""
    owner = _name(estimator)
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
        raise ValueError(
            f"{owner} needs public ids of rows that have no place, such as Spark's. Name their column: "
            "KeyedRows(X, key=...)."
        )
    if not source.n_rows:
        raise ValueError(f"Found array with 0 sample(s) while a minimum of 1 is required: X of {owner}.")


# ---------------------------------------------------------------------- X and y


def read_table(estimator: BaseEstimator, X: Any, reads: PublicReads, *, with_groups: bool) -> Table:
    """Read the X of a fit, and begin the list of public facts with its shape.

    Parameters
    ----------
    estimator : BaseEstimator
        Gets ``n_features_in_`` and, where there are names, ``feature_names_in_``.
    X : array-like of shape (n_rows, n_columns)
    reads : PublicReads
    with_groups : bool
        Whether to read the columns that ``sensitive_columns`` names. Otherwise they may hold anything.

    Returns
    -------
    Table
    """
    table = _table(estimator, X, reset=True, with_groups=with_groups)
    names = getattr(estimator, "feature_names_in_", None)
    shape = getattr(estimator, "n_features_in_", None) if names is None else names
    if table.raw is None:
        reads.note("columns of X", "read", shape, "their number and names are public")
    else:
        reads.note("columns of X", "given", shape, "by the schema, with all values that they may hold")
    reads.note_number_of_rows(len(table.X))
    return table


def read_unprotected(
    estimator: BaseEstimator, X: Any, y: Any, sensitive_features: Any = None
) -> tuple[NDArray[np.float64], NDArray[Any], NDArray[np.int64]]:
    """Read the rows of a learner without a guarantee, whose errors quote no cell all the same: it may run inside one.

    Parameters
    ----------
    estimator : BaseEstimator
        Gets ``n_features_in_`` and, where there are names, ``feature_names_in_``.
    X : array-like of shape (n_rows, n_features)
    y : array-like of shape (n_rows,)
    sensitive_features : array-like of shape (n_rows,), default=None
        Only compared with the others.

    Returns
    -------
    features : ndarray of shape (n_rows, n_features)
    classes : ndarray of shape (n_classes,), sorted
    codes : ndarray of int of shape (n_rows,)
    """
    owner = _name(estimator)
    check_same_index(owner, X=X, y=y, sensitive_features=sensitive_features)
    features = _table(estimator, X, reset=True, with_groups=False).X
    classes, codes = np.unique(as_labels(y, len(features), owner=owner), return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"{owner} can't train when only one class is present in y. Give rows of two classes or more.")
    return features, classes, codes


def _check_public_table(table: Table, X: Any, y: Any, sensitive_features: Any, owner: str) -> None:
    _refuse_large(table.X, f"X of {owner} holds")
    if table.raw is None:
        refuse_group_among_features(X, sensitive_features, owner=owner)
    else:
        table.raw.check("X", label=y is None)


def read_features(estimator: BaseEstimator, X: Any) -> NDArray[np.float64]:
    """Read the X of a prediction, which has the columns of the fit's.

    Parameters
    ----------
    estimator : BaseEstimator
    X : array-like of shape (n_rows, n_columns)

    Returns
    -------
    ndarray of shape (n_rows, n_features)
        Without the sensitive columns.
    """
    return _table(estimator, X, reset=False, with_groups=False).X


def _table(estimator: BaseEstimator, X: Any, *, reset: bool, with_groups: bool, name: str = "X") -> Table:
    if getattr(estimator, "schema", None) is not None:
        return _raw_table(estimator, X, reset=reset, with_groups=with_groups, name=name)
    columns, owner = _parameter(estimator, "sensitive_columns"), _name(estimator)
    X = as_dense(X, owner=owner, name=name)
    features, groups, problem = X, None, None
    if columns is not None:
        features, groups = split_sensitive_columns(X, columns, owner=owner, read_groups=with_groups)
    try:
        if columns is None and name == "X":
            features = validate_data(estimator, X, reset=reset, dtype=np.float64)
        else:
            features = check_array(features, dtype=np.float64, estimator=estimator, input_name=name)
            if name == "X":
                validate_data(estimator, X, reset=reset, skip_check_array=True)
    except Exception as error:  # whatever a strange cell makes numpy raise, its type would speak of that cell
        problem = without_values(error, owner=owner, name=name)
    if problem is not None:
        raise problem
    return Table(features, groups)


def check_public_columns(estimator: BaseEstimator, X_public: Any) -> None:
    """Refuse public rows in other columns than those of X, which has been read.

    Parameters
    ----------
    estimator : BaseEstimator
        Has the number and the names of the columns of X.
    X_public : array-like
    """
    owner, names, given = _name(estimator), getattr(estimator, "feature_names_in_", None), column_names(X_public)
    shape: tuple[int, ...] = tuple(getattr(X_public, "shape", ()))
    if len(shape) == 2 and shape[0] == 0:
        raise ValueError(f"X_public of {owner} has no rows. Give some, unlabelled ones will do.")
    if len(shape) == 2 and shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"X_public of {owner} must have the {estimator.n_features_in_} columns of X, in the same order. Got "
            f"{shape[1]} columns instead."
        )
    if names is None or given is None:
        if (names is None) != (given is None) and all(isinstance(name, str) for name in given or []):
            unnamed, named = ("X", "X_public") if names is None else ("X_public", "X")
            warn_caller(f"{unnamed} of {owner} has no names of columns, {named} has: they are matched by position.")
        return
    if given != names.tolist():
        raise ValueError(
            f"X_public of {owner} must have the columns of X, in the same order: {_few(names.tolist())}. Got "
            f"{_few(given)} instead. Pass X_public[X.columns]."
        )


def _few(names: list[Any]) -> str:
    return f"[{', '.join(map(repr, names[:8]))}{', ...' if len(names) > 8 else ''}]"


def _raw_table(estimator: Any, X: Any, *, reset: bool, with_groups: bool, name: str) -> Table:
    """A DataFrame read by a schema, which says what its features are."""
    schema: Any = schema_of(estimator)
    raw = RawTable.read(schema, X, owner=_name(estimator), name=name)
    if reset:
        estimator.n_features_in_ = len(schema.features)
        estimator.feature_names_in_ = np.asarray(schema.features, dtype=object)
    groups = raw.domain[raw.groups()] if with_groups and raw.has_groups else None
    return Table(raw.features, groups, raw)


def read_labels(estimator: BaseEstimator, y: Any, n_rows: int, X: Any = None) -> NDArray[Any]:
    """Read one label per row, to compare predictions with.

    Parameters
    ----------
    estimator : BaseEstimator
        Given ``classes`` settle what is a label; without them the kind of y is read along with its classes.
    y : array-like of shape (n_rows,)
    n_rows : int
    X : DataFrame, default=None
        Holds the labels where y is None and a schema reads them.

    Returns
    -------
    ndarray of shape (n_rows,)
        With a schema: objects, None for a label that it does not list.
    """
    if getattr(estimator, "schema", None) is not None:
        schema: Any = schema_of(estimator)
        return RawTable.read(schema, X, owner=_name(estimator)).known_labels(y)
    return as_labels(y, n_rows, owner=_name(estimator), check_kind=_parameter(estimator, "classes") is None)


def read_classes(
    estimator: BaseEstimator,
    y: Any,
    n_rows: int,
    reads: PublicReads,
    *,
    public: bool = False,
    raw: RawTable | None = None,
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Read the labels and what classes there are.

    Parameters
    ----------
    estimator : BaseEstimator
        Its ``classes`` are the domain. None reads them from y, with a PrivacyLeakWarning where y is private.
    y : array-like of shape (n_rows,)
    n_rows : int
    reads : PublicReads
    public : bool, default=False
        Whether labels are public.
    raw : RawTable or None, default=None
        X with a schema, which names the classes; it may hold the labels.

    Returns
    -------
    classes : ndarray of shape (n_classes,), sorted
    codes : ndarray of int of shape (n_rows,)
    """
    if raw is not None:
        classes, codes = raw.classes, raw.labels(y, public=public)
        reads.note("classes", "given", classes)
        return classes, codes
    owner, given = _name(estimator), _parameter(estimator, "classes")
    labels = as_labels(y, n_rows, owner=owner, check_kind=given is None)
    if given is not None:
        classes = _declared_classes(given, owner)
        reads.note("classes", "given", classes)
        return classes, encode_labels(labels, classes, owner=owner, name="y", parameter="classes")
    classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise private_error("one class", owner=owner)
    if public:
        reads.note("classes", "read", classes, "from y, which is public here")
    else:
        warn_caller(
            f"{owner} read its classes from the private y, which reveals them outside the guarantee. "
            "Give them with the 'classes' parameter.",
            PrivacyLeakWarning,
        )
        reads.note("classes", "read", classes, "from the private y, outside the guarantee")
    return classes, codes.astype(np.int64)


def _declared_classes(given: Any, owner: str) -> NDArray[Any]:
    labels = given_domain(given, owner=owner, parameter="classes").tolist()
    try:
        classes: NDArray[Any] = np.asarray(sorted(labels))  # scikit-learn keeps classes_ sorted
    except TypeError:
        classes = np.empty((0, 0))
    if classes.ndim != 1:
        raise ValueError(f"The 'classes' parameter of {owner} must be labels of one kind, such as strings or ints.")
    return classes


# ---------------------------------------------------------------------- groups


def read_private_groups(
    estimator: BaseEstimator,
    groups_in_X: Any,
    sensitive_features: Any,
    n_rows: int,
    reads: PublicReads,
    *,
    raw: RawTable | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.object_]]:
    """Read the group of every private row.

    Parameters
    ----------
    estimator : BaseEstimator
        Its ``groups`` are the domain. None reads them from the rows, with a PrivacyLeakWarning.
    groups_in_X : ndarray of shape (n_rows,) or None
        From the columns of X that ``sensitive_columns`` names.
    sensitive_features : array-like of shape (n_rows,), DataFrame or None
    n_rows : int
    reads : PublicReads
    raw : RawTable or None, default=None
        X with a schema, which names the groups; it may hold them.

    Returns
    -------
    codes : ndarray of int of shape (n_rows,)
    domain : ndarray of shape (n_groups,)
    """
    if raw is None and getattr(estimator, "schema", None) is not None:  # groups without a table
        schema: Any = schema_of(estimator)
        raw = RawTable(schema, _name(estimator), None, {}, n_rows)
    if raw is not None:
        reads.note("names of the groups", "given", raw.domain)
        return raw.groups(sensitive_features), raw.domain
    owner, given = _name(estimator), _parameter(estimator, "groups")
    if groups_in_X is not None and sensitive_features is not None:
        raise _groups_twice(owner)
    groups = groups_in_X if sensitive_features is None else as_groups(sensitive_features, n_rows, owner=owner)
    if groups is None:
        raise ValueError(
            f"{owner} needs the groups of the private rows: pass sensitive_features to fit, or name the columns "
            "of X that hold them with 'sensitive_columns'."
        )
    if given is not None:
        domain = given_domain(given, owner=owner, parameter="groups")
        reads.note("names of the groups", "given", domain)
    else:
        domain = group_domain(groups)
        if len(domain) < 2:
            raise private_error("one group", owner=owner)
        warn_caller(
            f"{owner} read its groups from the private rows, which reveals them outside the guarantee. Give them "
            "with the 'groups' parameter.",
            PrivacyLeakWarning,
        )
        reads.note("names of the groups", "read", domain, "from the private rows, outside the guarantee")
    return encode_labels(groups, domain, owner=owner, name="sensitive_features", parameter="groups"), domain


def _groups_like(estimator: BaseEstimator, table: Table, sensitive_features: Any, domain: Any) -> NDArray[np.int64]:
    """Codes of the private groups, where the public rows say what groups there are."""
    owner = _name(estimator)
    if table.raw is not None:
        return table.raw.groups(sensitive_features)
    groups = table.groups
    if sensitive_features is not None:
        groups = as_groups(sensitive_features, len(table.X), owner=owner)
    if groups is None:
        raise ValueError(
            f"{owner} needs the groups of the private rows here: pass sensitive_features to fit, or name the columns "
            "of X that hold them with 'sensitive_columns'."
        )
    return encode_labels(groups, domain, owner=owner, name="sensitive_features", parameter="groups")


def _groups_twice(owner: str) -> ValueError:
    return ValueError(
        f"{owner} got groups twice: by 'sensitive_columns' and as an argument of fit. Leave one of them out."
    )


# ---------------------------------------------------------------------- public rows


def public_arguments(estimator: BaseEstimator, X_public: Any, groups: Any) -> tuple[Any, Any]:
    """Public features and groups, as ``fit`` or the constructor got them.

    Parameters
    ----------
    estimator : BaseEstimator
        Its ``public_data`` is taken where ``fit`` got none.
    X_public : array-like, PublicData or None
    groups : array-like or None

    Returns
    -------
    X_public, groups
        Out of their PublicData.
    """
    owner, kept = _name(estimator), _parameter(estimator, "public_data")
    if kept is not None:
        if X_public is not None or groups is not None:
            raise ValueError(
                f"{owner} got public rows twice: by its 'public_data' parameter and as an argument of fit. Leave one "
                "of them out."
            )
        X_public = kept
    if not isinstance(X_public, PublicData):
        return X_public, groups
    if groups is not None and X_public.sensitive_features is not None:
        raise ValueError(
            f"{owner} got public groups twice: inside X_public (PublicData) and as sensitive_features_public."
        )
    return X_public.X, X_public.sensitive_features if groups is None else groups


def _own_rows(
    estimator: BaseEstimator, given: SyntheticRows | None, groups: Any, public_rows: PublicRowsFrom
) -> SyntheticRows | None:
    """What makes rows from the private table, where there are no public ones and an estimator asks about rows."""
    owner = _name(estimator)
    if given is None and public_rows == "given":
        raise ValueError(f"{owner} needs public rows: pass X_public to fit, or set 'public_data'.")
    own = SyntheticRows() if given is None and public_rows == "given or own" else given
    if own is None:
        return None
    if groups is not None:
        raise ValueError(f"{owner} got sensitive_features_public without X_public.")
    own.check()
    return own


def _groups_of_own_rows(estimator: BaseEstimator, groups: Groups, sensitive_features: Any) -> Groups:
    """Where rows come from the private table, so do their groups."""
    known = sensitive_features is not None or _parameter(estimator, "sensitive_columns") is not None
    return "private" if groups in ("public", "both") or (groups == "public, if given" and known) else "none"


def _given_rows(
    estimator: BaseEstimator, X_public: Any, sensitive_features_public: Any, reads: PublicReads, *, needed: bool
) -> tuple[NDArray[np.float64], NDArray[np.object_] | None]:
    owner = _name(estimator)
    if getattr(estimator, "schema", None) is None:
        check_public_columns(estimator, X_public)
    table = _table(estimator, X_public, reset=False, with_groups=True, name="X_public")
    public, groups = table.X.copy(), table.groups  # a view would keep the array alive that private rows may share
    if table.raw is not None:
        groups = _raw_public_groups(table.raw, sensitive_features_public, groups)
    elif sensitive_features_public is not None:
        groups = as_groups(sensitive_features_public, len(public), owner=owner, name="sensitive_features_public")
    if needed and groups is None:
        raise ValueError(
            f"{owner} needs the groups of the public rows: pass sensitive_features_public (or "
            "X_public=PublicData(X, sensitive_features)), or name them with 'sensitive_columns'."
        )
    reads.note("public rows", "given", len(public), f"{'without' if groups is None else 'with'} their groups")
    return public, groups


def _raw_public_groups(raw: RawTable, given: Any, groups: NDArray[np.object_] | None) -> NDArray[np.object_] | None:
    """Groups of public rows that a schema reads, after a check that it foresees them."""
    own = given is None and groups is not None
    raw.check("X_public", groups=own)
    if given is None:
        return groups
    domain = raw.domain
    return domain[raw.groups(given, public=True, name="sensitive_features_public")]


def _public_rows(
    estimator: BaseEstimator, X: NDArray[np.float64], groups: Any, reads: PublicReads, *, needed: bool
) -> PublicRows:
    """Public rows with their groups as codes; every group of the domain has a row."""
    if groups is None:
        return PublicRows(X)
    owner, given = _name(estimator), _parameter(estimator, "groups")
    if given is None:
        domain = group_domain(groups)
        if len(domain) < 2 and needed:
            raise ValueError(
                f"{owner} found only one group in the public rows, so every fairness statement "
                "would be vacuous. Add public rows of the other groups, or give the 'groups' parameter."
            )
        reads.note("names of the groups", "read", domain, "from the public rows")
    else:
        domain = given_domain(given, owner=owner, parameter="groups")
        reads.note("names of the groups", "given", domain)
    codes = encode_labels(groups, domain, owner=owner, name="The public groups", parameter="groups")
    empty = len(domain) - len(np.unique(codes))
    if empty:
        raise ValueError(
            f"{empty} of the {len(domain)} groups of {owner} have no public row, so nothing can be said about "
            "them. Add public rows of every group, or leave those groups out of 'groups'."
        )
    return PublicRows(X, codes, domain)


def _refuse_large(public: NDArray[np.float64], whose: str) -> None:
    if np.abs(public).max() > LARGEST_PUBLIC:
        raise ValueError(f"{whose} numbers beyond {LARGEST_PUBLIC:g}, whose squares overflow. Scale the features.")


def _parameter(estimator: BaseEstimator, name: str) -> Any:
    """What a constructor parameter says, or a schema in its place; None where neither does."""
    if name not in SAID_BY_SCHEMA or getattr(estimator, "schema", None) is None:
        return getattr(estimator, name, None)
    schema: Any = schema_of(estimator)
    return {"classes": schema.classes, "groups": schema.group_values}.get(name)


def _name(estimator: BaseEstimator) -> str:
    return type(estimator).__name__
