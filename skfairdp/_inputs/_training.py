"""All that a fit learns from, read by one call: private rows, their labels and groups, and public rows beside them."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from skfairdp import _rows, _utils, schema as schemas
from skfairdp._inputs import _table
from skfairdp._inputs._data import PublicRows, TrainingData, note_subject_column, subject_given
from skfairdp._inputs._table import parameter_of, read_classes, read_groups_like, read_private_groups
from skfairdp._tables import SyntheticRows
from skfairdp._typing import Array, Floats, Ints, Objects
from skfairdp.privacy import Protects, PublicReads


def refuse_chunks(owner: str, **arguments: Any) -> None:
    """Refuse rows that do not lie in memory where they are all needed there, and say what to pass instead."""
    for name, given in arguments.items():
        way = _rows.gathered(given)
        if way is not None:
            raise ValueError(
                f"{owner} needs its rows in memory, and {name} is an object of type {type(given).__name__}, which is "
                f"read in chunks. Pass {way.replace('X', name)}. PATEClassifier, FairPATEClassifier, "
                "SFPATEClassifier, PFLDClassifier, FairDPSGDClassifier, PFGuardGenerator, SyntheticDataClassifier and "
                "PrivateThresholds read chunks."
            )


def read_source(estimator: BaseEstimator, data: TrainingData, *, private: bool = True) -> TrainingData:
    """Read the rows of a source once, in their order, for fits that come back to single rows. Those of subjects may
    come in any order: who has them and what is in them says all."""
    if data.source is None:
        return data
    subjects = data.subjects
    if subjects is None:
        _rows.check_order(data.source, type(estimator).__name__)
    schema: Any = schemas.schema_of(estimator)
    data.source.verbose = getattr(estimator, "verbose", 0)
    X: Any
    X, y, groups, of = schemas.kept_rows(
        data.source, schema, owner=type(estimator).__name__, n_features=data.X.shape[1], groups=data.groups is not None,
        listed=None if subjects is None else subjects.hashes,
        contents=() if subjects is None else in_them(schema, data.source.columns, private=private),
    )  # fmt: skip
    if subjects is not None and of is not None:
        subjects = replace(subjects, of=of, contents=X.compact.contents(X.rows))
    return replace(data, X=X, y=y, groups=groups, subjects=subjects)


def read_numbers_of(estimator: Any, data: TrainingData, dtype: Any, chosen: Ints | None) -> tuple[Array, TrainingData]:
    """Check all rows of a source of which everything but the groups is public, and keep them as numbers of a
    network."""
    schema: Any = schemas.schema_of(estimator)
    owner, verbose = type(estimator).__name__, getattr(estimator, "verbose", 0)
    n_rows, n_features = data.X.shape
    _rows.check_order(data.source, owner)
    _rows.check_free_disk(n_rows * n_features * dtype.itemsize, owner, verbose=verbose)
    data.source.verbose = verbose
    rows, some, y, groups = schemas.numeric_memmap(
        data.source, schema, owner=owner, n_features=n_features, dtype=dtype, chosen=chosen
    )
    return rows, replace(data, X=some, y=y, groups=groups)


def read_public_rows_of(estimator: BaseEstimator, data: TrainingData, most: int) -> TrainingData:
    """Check all rows of a source of which everything but the groups is public, and keep some of them in memory."""
    if data.source is None:
        return data
    schema: Any = schemas.schema_of(estimator)
    data.source.verbose = getattr(estimator, "verbose", 0)
    owner = type(estimator).__name__
    kept, of = schemas.subsample_rows(data.source, schema, owner=owner, most=most)
    _table.refuse_large(kept.features, f"X of {owner} holds")
    data.reads.note("rows kept in memory", "computed", kept.n_rows, "chosen by the hashes of their keys")
    subjects = data.subjects and replace(data.subjects, of=of)  # whose the kept rows are
    return replace(data, X=kept.features, y=kept.labels(), subjects=subjects)


def refuse_columns_beside(owner: str, y: Any, groups: Any) -> None:
    """Refuse labels and groups that are given beside rows in chunks, where they are columns."""
    if y is not None or groups is not None:
        raise ValueError(
            f"{owner} got y or sensitive_features beside an X that is read in chunks. Name their columns in the schema "
            "(label, groups), and leave them out."
        )


def check_source(estimator: BaseEstimator, source: _rows.RowSource, y: Any, groups: Any, by_key: bool) -> None:
    """Refuse rows out of memory where they cannot be read, before one is."""
    owner = type(estimator).__name__
    if schemas.schema_of(estimator) is None:
        raise ValueError(f"{owner} reads rows in chunks only with a 'schema', which says what values are. Set it.")
    refuse_columns_beside(owner, y, groups)
    if getattr(estimator, "memory", None) is not None:
        raise ValueError(f"{owner} keeps no teachers of rows that are read in chunks. Set 'memory' to None.")
    if by_key and source.key is None and not source.knows_places:
        raise ValueError(_rows.key_wanted(owner) + ".")
    if not source.n_rows:
        raise ValueError(f"Found array with 0 sample(s) while a minimum of 1 is required: X of {owner}.")


#: Whose groups a fit reads: of all private rows; of the public rows, which must have them or may have them; of both, or
#: of private rows only where they are given; of none.
Groups = Literal["private", "public", "public, if given", "both", "both, if given", "none"]
#: Whether there are public rows, and where they come from.
PublicRowsFrom = Literal["given", "given or own", "optional", "none"]


def read_training(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    sensitive_features: Any = None,
    X_public: Any = None,
    sensitive_features_public: Any = None,
    groups: Groups = "none",
    public_rows: PublicRowsFrom = "none",
    protects: Protects = Protects.RECORD,
    subject: Any = None,
    target: Any = read_classes,
) -> TrainingData:
    """Read everything a fit needs, or say what is wrong with it; ``target`` reads y."""
    reads, owner = PublicReads(), type(estimator).__name__
    if getattr(estimator, "schema", None) is not None:
        subject = subject_given(estimator, subject)
    vars(estimator).pop("_subject_column", None)
    if subject is not None or not isinstance(X, np.ndarray):
        note_subject_column(estimator, X, y, subject)
    if not isinstance(X, np.ndarray | pd.DataFrame):
        refuse_chunks(owner, X=X)
    _utils.check_same_index(owner, X=X, y=y, sensitive_features=sensitive_features, subject=subject)
    X_public, sensitive_features_public = public_arguments(estimator, X_public, sensitive_features_public)
    none_given = X_public is None or isinstance(X_public, SyntheticRows)
    own = _own_rows(estimator, X_public, sensitive_features_public, public_rows) if none_given else None
    if own is not None:  # where rows come from the private table, so do their groups
        known = sensitive_features is not None or parameter_of(estimator, "sensitive_columns") is not None
        X_public, groups = None, "private" if groups != "none" and (groups != "public, if given" or known) else "none"
    _utils.check_same_index(owner, X_public=X_public, sensitive_features_public=sensitive_features_public)
    _utils.refuse_private_as_public(X, X_public, owner=owner)
    private = protects != Protects.SENSITIVE_ATTRIBUTE
    of_private = groups.startswith(("private", "both"))
    table = _table.read_table(estimator, X, reads, with_groups=of_private, private=private)
    if not private:
        _table.refuse_large(table.X, f"X of {owner} holds")
        if table.raw is None:
            _utils.refuse_group_among_features(X, sensitive_features, owner=owner)
        else:
            table.raw.check("X", label=y is None)
    subjects = None if subject is None else _rows.Subjects.read(X, subject, len(table.X), owner=owner)
    if subjects is not None:
        reads.note_subjects(subjects.n, subjects.name)
        subjects = subjects if table.raw is None else in_order(subjects, table.raw, private=private)
    classes, codes = target(estimator, y, len(table.X), reads, public=not private, raw=table.raw)
    read: tuple[Any, Any] = None, None
    if groups == "private":
        read = read_private_groups(estimator, table.groups, sensitive_features, len(table.X), reads, raw=table.raw)
    if groups == "private" or X_public is None or public_rows == "none":
        return TrainingData(table.X, codes, classes, *read, None, reads, own, subjects=subjects)
    given = sensitive_features is not None
    if (given or sensitive_features_public is not None) and parameter_of(estimator, "sensitive_columns") is not None:
        raise _table.groups_twice(owner)
    features, names = _given_rows(estimator, X_public, sensitive_features_public, reads, groups)
    _table.refuse_large(features, f"The public rows of {owner} hold")
    public, own_groups = _public_rows(estimator, features, names, reads, groups), None
    known = groups == "both, if given" and (given or table.groups is not None)
    # A schema's codes count groups without a public row, of which nothing can be held.
    if groups == "both" or (known and (table.raw is None or public.n_groups == len(table.raw.domain))):
        own_groups = read_groups_like(estimator, table, sensitive_features, public.domain)
    return TrainingData(table.X, codes, classes, own_groups, public.domain, public, reads, subjects=subjects)


def in_order(subjects: _rows.Subjects, raw: schemas.RawTable, *, private: bool = True) -> _rows.Subjects:
    """The rows of each subject in the order of what is in them, as in chunks: of its columns, or those that are public.
    The table has its own order where no schema reads it."""
    compact = schemas.CompactRows(raw.schema, raw.owner, in_them(raw.schema, raw.numbers, private=private))
    return replace(subjects, contents=compact.contents(compact.rows(raw.numbers)))


def in_them(schema: schemas.Schema, known: Collection[str], *, private: bool) -> tuple[str, ...]:
    """The columns by which rows of one subject are in an order."""
    names = schema.columns if private else (*schema.features, *filter(None, [schema.label]))
    return tuple(name for name in names if name in known)


def read_any_training(
    estimator: Any, X: Any, y: Any, *, by_key: bool = True, checks_public: bool = False, **arguments: Any
) -> TrainingData:
    """Read everything a fit needs, where private rows may be such as do not fit into memory."""
    owner, source = type(estimator).__name__, None if isinstance(X, np.ndarray | pd.DataFrame) else _rows.opened(X)
    if source is None:
        return read_training(estimator, X, y, **arguments)
    subject, subjects = subject_given(estimator, arguments.get("subject")), None
    of_groups = arguments.get("protects") == Protects.SENSITIVE_ATTRIBUTE  # then all rows of a subject are public
    if subject is not None:
        source = _rows.keyed_by_subject(source, subject, owner)
    check_source(estimator, source, y, arguments.get("sensitive_features"), by_key)
    if of_groups and not checks_public:
        raise ValueError(
            f"{owner} reads X in chunks only where whole records are protected: features that are public "
            "are checked in memory. Pass the rows as a DataFrame."
        )
    if isinstance(X, _rows.KeyedRows) and _rows.opened(X.rows) is None:  # a DataFrame
        X_public, _ = public_arguments(estimator, arguments.get("X_public"), None)
        _utils.refuse_private_as_public(X.rows, X_public, owner=owner)
    schema: Any = schemas.schema_of(estimator)
    one = schemas.made_up(schema, source) if subject is None else schemas.made_up(schema, source).assign(**{subject: 0})
    if arguments.get("groups") == "both, if given":  # of rows in chunks, those that a fit needs
        arguments["groups"] = "public"
    data = read_training(estimator, one, None, **(arguments | {"protects": Protects.RECORD}))
    if by_key:  # others are read as a whole before anything is spent
        schemas.check_roles(source, schema, owner=owner, groups=data.groups is not None)
    if data.public is None and by_key and not checks_public:
        raise ValueError(
            f"{owner} needs public rows where X is read in chunks: pass X_public to fit, or set 'public_data'."
        )
    if subject is not None:
        subjects = _rows.Subjects.read_source(source, owner=owner)
        data.reads.note_subjects(subjects.n, subjects.name)
    data.reads.note_number_of_rows(source.n_rows)  # which public_facts leaves out where it is not public
    if by_key and subject is None:
        key = "their row number over all files or chunks" if source.key is None else f"column {source.key!r}"
        data.reads.note("keys of the rows of X", "read", key, "they say which teacher learns from a row")
    shape = source.n_rows if subjects is None or of_groups else subjects.n, data.X.shape[1]
    blank = np.broadcast_to(np.zeros(()), shape), np.broadcast_to(np.zeros((), dtype=np.int64), shape[:1])
    groups = None if data.groups is None else blank[1]
    return replace(data, X=blank[0], y=blank[1], groups=groups, source=source, subjects=subjects)


# ---- public rows ---------------------------------------------------------------------------------------------


def public_arguments(estimator: BaseEstimator, X_public: Any, groups: Any) -> tuple[Any, Any]:
    """Public features and groups, as ``fit`` or the constructor got them."""
    owner, kept = type(estimator).__name__, parameter_of(estimator, "public_data")
    if kept is not None:
        if X_public is not None or groups is not None:
            raise ValueError(
                f"{owner} got public rows twice: by its 'public_data' parameter and as an argument of fit. Leave one "
                "of them out."
            )
        X_public = kept
    if not isinstance(X_public, _utils.PublicData):
        return X_public, groups
    if groups is not None and X_public.sensitive_features is not None:
        raise ValueError(
            f"{owner} got public groups twice: inside X_public (PublicData) and as sensitive_features_public."
        )
    return X_public.X, X_public.sensitive_features if groups is None else groups


def _own_rows(estimator: Any, given: Any, groups: Any, public_rows: PublicRowsFrom) -> SyntheticRows | None:
    """What makes rows from the private table, where there are no public ones and an estimator asks about rows."""
    owner = type(estimator).__name__
    if given is None and public_rows == "given":
        raise ValueError(f"{owner} needs public rows: pass X_public to fit, or set 'public_data'.")
    own = SyntheticRows() if given is None and public_rows == "given or own" else given
    if own is None:
        return None
    if groups is not None:
        raise ValueError(f"{owner} got sensitive_features_public without X_public.")
    own.check()
    return own


def _given_rows(
    estimator: BaseEstimator, X_public: Any, sensitive_features_public: Any, reads: PublicReads, whose: Groups
) -> tuple[Floats, Objects | None]:
    owner = type(estimator).__name__
    X_public = _table.without_subject(estimator, X_public)
    if getattr(estimator, "schema", None) is None:
        names, n_columns = getattr(estimator, "feature_names_in_", None), getattr(estimator, "n_features_in_", 0)
        _table.check_public_columns(owner, names, n_columns, X_public)
    table = _table.read_columns(estimator, X_public, reset=False, with_groups=True, name="X_public")
    public, groups = table.X.copy(), table.groups  # a view would keep the array alive that private rows may share
    if table.raw is not None:
        given, own = sensitive_features_public, sensitive_features_public is None and table.raw.has_groups
        table.raw.check("X_public", groups=own)
        asked = own or given is not None
        codes = table.raw.groups(given, public=True, name="sensitive_features_public") if asked else None
        groups = None if codes is None else table.raw.domain[codes]
    elif sensitive_features_public is not None:
        groups = _utils.as_groups(sensitive_features_public, len(public), owner=owner, name="sensitive_features_public")
    if whose in ("public", "both", "both, if given") and groups is None:
        raise ValueError(
            f"{owner} needs the groups of the public rows: pass sensitive_features_public (or "
            "X_public=PublicData(X, sensitive_features)), or name them with 'sensitive_columns'."
        )
    said, rows = "without" if groups is None else "with", _utils.PublicData(X_public, sensitive_features_public)
    reads.note("public rows", "given", len(public), f"{said} their groups", by=rows)
    return public, groups


def _public_rows(estimator: BaseEstimator, X: Floats, groups: Any, reads: PublicReads, whose: Groups) -> PublicRows:
    """Public rows with their groups as codes; every group of the domain has a row. Where the private groups are not
    read, the group of what a schema does not list is there only where public rows are in it."""
    if groups is None or whose == "none":
        return PublicRows(X)
    owner, given = type(estimator).__name__, parameter_of(estimator, "groups")
    if given is None:
        domain = _utils.group_domain(groups)
        if len(domain) < 2 and whose != "public, if given":
            raise ValueError(
                f"{owner} found only one group in the public rows, so every fairness statement "
                "would be vacuous. Add public rows of the other groups, or give the 'groups' parameter."
            )
        reads.note("names of the groups", "read", domain, "from the public rows")
    else:
        schema = schemas.schema_of(estimator)
        rest: list[Any] = []
        if schema is not None and whose != "both":
            rest = [group for group in schema.groups_of_the_rest if group not in groups.tolist()]
        given = [group for group in given if group not in rest]
        domain = _utils.given_domain(given, owner=owner, parameter="groups")
        reads.note("names of the groups", "given", domain, by=given)
    codes = _utils.encode_labels(groups, domain, owner=owner, name="The public groups", parameter="groups")
    empty = len(domain) - len(np.unique(codes))
    if empty:
        raise ValueError(
            f"{empty} of the {len(domain)} groups of {owner} have no public row, so their rates cannot be estimated. "
            "Add public rows of every group, or leave those groups out of 'groups'."
        )
    return PublicRows(X, codes, domain)
