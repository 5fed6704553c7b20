"""One table: its features as numbers, its labels and groups as codes, and a note of what of them is public."""

from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, validate_data

from skfairdp import _utils
from skfairdp._inputs._data import Table
from skfairdp._typing import Array, Floats, Ints, Objects
from skfairdp.exceptions import PrivacyLeakWarning, UtilityWarning
from skfairdp.privacy import PublicReads
from skfairdp.schema import SCHEMA_PARAMETERS, RawTable, note_columns, schema_of

#: Of the range of bounds, counted as lying at one end of it.
AT_BOUND = 0.01
#: And no cell of three rounds is much narrower than this.
TOLD_APART = 1e-4
#: Squares of larger numbers are not finite.
LARGEST_PUBLIC = 1e100

# ---- X and y -------------------------------------------------------------------------------------------------


def read_table(estimator: BaseEstimator, X: Any, reads: PublicReads, *, with_groups: bool, private: bool) -> Table:
    """Read the X of a fit, and begin the list of public facts with its shape."""
    table = read_columns(estimator, X, reset=True, with_groups=with_groups)
    shape = getattr(estimator, "feature_names_in_", getattr(estimator, "n_features_in_", None))
    if table.raw is None:
        reads.note("columns of X", "read", shape, "their number and names are public")
    elif private:
        note_columns(reads, table.raw.schema, type(estimator).__name__)
    else:
        reads.note("columns of X", "given", shape, "by the schema, which allows every cell", by=table.raw.schema)
    reads.note_number_of_rows(len(table.X))
    return table


def read_unprotected(estimator: Any, X: Any, y: Any, sensitive_features: Any = None) -> tuple[Floats, Array, Ints]:
    """Read the rows of a learner without a guarantee, whose errors quote no cell all the same: it may run inside
    one."""
    owner = type(estimator).__name__
    _utils.check_same_index(owner, X=X, y=y, sensitive_features=sensitive_features)
    features = read_columns(estimator, X, reset=True, with_groups=False).X
    classes, codes = np.unique(_utils.as_labels(y, len(features), owner=owner), return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"{owner} can't train when only one class is present in y. Give rows of two classes or more.")
    return features, classes, codes


def read_features(estimator: BaseEstimator, X: Any) -> Floats:
    """Read the X of a prediction, which has the columns of the fit's."""
    table = read_columns(estimator, X, reset=False, with_groups=False)
    if table.raw is not None:
        table.raw.warn_of_unread()
    return table.X


def read_columns(estimator: BaseEstimator, X: Any, *, reset: bool, with_groups: bool, name: str = "X") -> Table:
    """Read a table of rows as numbers; with a schema by it alone. ``reset`` sets what is known of the columns of X."""
    if getattr(estimator, "schema", None) is not None:
        return _raw_table(estimator, X, reset=reset, with_groups=with_groups, name=name)
    columns, owner = parameter_of(estimator, "sensitive_columns"), type(estimator).__name__
    X = without_subject(estimator, X)
    X = _utils.as_dense(X, owner=owner, name=name)
    X = X if isinstance(X, np.ndarray) else _utils.as_pandas(X)
    features, groups = X, None
    if columns is not None:
        features, groups = _utils.split_sensitive_columns(X, columns, owner=owner, read_groups=with_groups)
    # of sums of private numbers, by which those are looked at, no warning may say that they overflow
    with _utils.without_context(), np.errstate(over="ignore", invalid="ignore"):
        try:
            kinds = " ".join(map(str, np.ravel(getattr(features, "dtypes", getattr(features, "dtype", "")))))
            if "date" in kinds or "time" in kinds or ("object" in kinds and _utils.holds_times(features)):
                raise TypeError  # numpy takes these for numbers
            if columns is None and name == "X":
                features = validate_data(estimator, X, reset=reset, dtype=np.float64)
            else:
                features = check_array(features, dtype=np.float64, estimator=estimator, input_name=name)
                if name == "X":
                    validate_data(estimator, X, reset=reset, skip_check_array=True)
        except Exception as error:  # whatever a strange cell makes numpy raise, its type would speak of that cell
            raise _utils.without_values(error, owner=owner, name=name) from None
    return Table(features, groups)


def without_subject(estimator: BaseEstimator, X: Any) -> Any:
    """The table without the column that names subjects, which is no feature; as it is where there is none."""
    column = getattr(estimator, "_subject_column", None)
    is_there = column is not None and column in (_utils.column_names(X) or [])
    return _utils.as_pandas(X).drop(columns=column) if is_there else X


def check_public_columns(owner: str, names: Any, n_columns: int, public: Any, name: str = "X_public") -> None:
    """Refuse public rows in other columns than those of X, which has been read."""
    given = _utils.column_names(public)
    shape: tuple[int, ...] = tuple(getattr(public, "shape", ()))
    if len(shape) == 2 and shape[0] == 0:
        raise ValueError(f"{name} of {owner} has no rows. Give some.")
    if len(shape) == 2 and shape[1] != n_columns:
        raise ValueError(
            f"{name} of {owner} must have the {n_columns} columns of X, in the same order. Got {shape[1]} columns "
            "instead."
        )
    if names is None or given is None:
        if (names is None) != (given is None) and all(isinstance(one, str) for one in given or []):
            unnamed, named = ("X", name) if names is None else (name, "X")
            _utils.warn_caller(
                f"{unnamed} of {owner} has no names of columns, {named} has: they are matched by position."
            )
        return
    if given != list(names):
        raise ValueError(
            f"{name} of {owner} must have the columns of X, in the same order: {_few(list(names))}. Got "
            f"{_few(given)} instead. Pass {name}[X.columns]."
        )


def _few(names: list[Any]) -> str:
    return f"[{', '.join(map(repr, names[:8]))}{', ...' if len(names) > 8 else ''}]"


def _raw_table(estimator: Any, X: Any, *, reset: bool, with_groups: bool, name: str) -> Table:
    """A DataFrame read by a schema, which says what its features are."""
    schema: Any = schema_of(estimator)
    raw = RawTable.read(schema, X, owner=type(estimator).__name__, name=name)
    if reset:
        estimator.n_features_in_ = len(schema.features)
        estimator.feature_names_in_ = np.asarray(schema.features, dtype=object)
    groups = raw.domain[raw.groups()] if with_groups and raw.has_groups and name == "X" else None  # others are checked
    return Table(raw.features, groups, raw)


def read_labels(estimator: BaseEstimator, y: Any, n_rows: int, X: Any = None) -> Array:
    """Read one label per row, to compare predictions with."""
    if getattr(estimator, "schema", None) is not None:
        schema: Any = schema_of(estimator)
        raw = RawTable.read(schema, X, owner=type(estimator).__name__)
        if _utils.labels_are_codes(estimator):
            return raw.labels(y, unknown=-1, numbered=y is not None)
        # None where it is none of the classes.
        return np.array([*raw.classes.tolist(), None], dtype=object)[raw.labels(y, unknown=-1)]
    return _utils.as_labels(
        y, n_rows, owner=type(estimator).__name__, check_kind=parameter_of(estimator, "classes") is None
    )


def read_classes(
    estimator: Any, y: Any, n_rows: int, reads: PublicReads, *, public: bool = False, raw: RawTable | None = None
) -> tuple[Array, Ints]:
    """Read the labels and what classes there are."""
    numbered = _utils.note_label_codes(estimator, y)
    if raw is not None:
        classes, codes = raw.classes, raw.labels(y, public=public, numbered=numbered)
        reads.note("classes", "given", classes, raw.said_of_others(raw.schema.label), by=raw.schema.classes)
        return classes, codes
    owner, given = type(estimator).__name__, parameter_of(estimator, "classes")
    labels = _utils.as_labels(y, n_rows, owner=owner, check_kind=given is None)
    if given is not None:
        classes = _utils.declared_classes(given, owner)
        reads.note("classes", "given", classes, by=given)
        known = np.arange(len(classes)) if numbered else classes
        own = "classes" in estimator.get_params(deep=False)
        parameter = "classes" if own else "estimator"  # whose classes are those that count
        return classes, _utils.encode_labels(labels, known, owner=owner, name="y", parameter=parameter)
    classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise _utils.private_error("one class", owner=owner)
    if public:
        reads.note("classes", "read", classes, "from y, which is public here")
    else:
        _utils.warn_caller(
            f"{owner} read its classes from the private y, which reveals them outside the guarantee. "
            "Give them with the 'classes' parameter.",
            PrivacyLeakWarning,
        )
        reads.note("classes", "read", classes, "from the private y, outside the guarantee")
    return classes, codes.astype(np.int64)


# ---- amounts -------------------------------------------------------------------------------------------------


def read_amounts(
    estimator: Any, y: Any, n_rows: int, reads: PublicReads, *, public: bool = False, raw: RawTable | None = None
) -> tuple[Array, Floats]:
    """Read the amounts, those beyond their bounds as the bound; of classes there are none."""
    low, high = amount_bounds(estimator)
    amounts = amounts_of(estimator, y, n_rows, raw)
    reads.note("bounds of y", "given", (low, high), by=(low, high))
    return np.empty(0), np.clip(amounts, low, high)


def amounts_of(estimator: BaseEstimator, y: Any, n_rows: int, raw: RawTable | None) -> Floats:
    """One amount per row: of y, or of the column that a schema names."""
    if raw is None or raw.schema.label is None:
        return _utils.as_amounts(y, n_rows, owner=type(estimator).__name__)
    return raw.amounts(y)


def amount_bounds(estimator: BaseEstimator, given: Any = None) -> tuple[float, float]:
    """The public bounds of the amounts, or what is wrong with them."""
    name, owner = "bounds_y" if hasattr(estimator, "bounds_y") else "bounds", type(estimator).__name__
    schema = schema_of(estimator)
    label = None if schema is None else schema.amounts
    if schema is not None and schema.classes is not None:
        raise ValueError(
            f"{owner} predicts amounts, and the label of its schema, {schema.label!r}, is a "
            f"{type(schema.columns[str(schema.label)]).__name__}. Classifiers predict it, such as FairDPSGDClassifier "
            "and SyntheticDataClassifier. For amounts let the label be a Number."
        )
    found = (getattr(estimator, name, None), given, None if label is None else (label.low, label.high))
    bounds: Any = next((one for one in found if one is not None), None)
    is_pair = isinstance(bounds, tuple | list | np.ndarray) and np.shape(bounds) == (2,)
    are_numbers = is_pair and all(isinstance(bound, Real) and not isinstance(bound, bool) for bound in bounds)
    low, high = (float(bound) for bound in bounds) if are_numbers else (np.nan, np.nan)
    if not -LARGEST_PUBLIC <= low < high <= LARGEST_PUBLIC:
        raise ValueError(
            f"{owner} needs {name!r}, the smallest and the largest amount that y may hold, from public knowledge and "
            f"not from y itself, for example {name}=(0, 200). Amounts beyond them count as the bound. Got {bounds!r} "
            "instead."
        )
    return low, high


def warn_of_other_units(
    owner: str, what: str, levels: Floats, bounds: tuple[float, float], name: str = "bounds"
) -> None:
    """Say so where nearly every amount is at one bound or beyond it, or where bounds are too wide to tell amounts
    apart, by released quantiles between 0 and 1 of both."""
    for bound, apart in zip(bounds, (levels, 1 - levels), strict=True):
        if (apart < AT_BOUND).all():
            return _utils.warn_caller(
                f"By released quantiles nearly all {what} of {owner} lie at {bound:g}, one end of its {name!r}, near "
                f"it or beyond it, where they count as the bound. Are both in the same unit? Else narrow {name!r}.",
                UtilityWarning,
            )
    if np.ptp(levels) < TOLD_APART:
        _utils.warn_caller(
            f"By released quantiles nearly all {what} of {owner} lie within 1/10000 of its {name!r}, and are hardly "
            f"told apart there. Narrow {name!r} if you can.",
            UtilityWarning,
        )


# ---- groups --------------------------------------------------------------------------------------------------


def read_private_groups(
    estimator: Any, in_X: Any, sensitive_features: Any, n_rows: int, reads: PublicReads, *, raw: RawTable | None = None
) -> tuple[Ints, Objects]:
    """Read the group of every private row."""
    if raw is None and getattr(estimator, "schema", None) is not None:  # groups without a table
        schema: Any = schema_of(estimator)
        raw = RawTable(schema, type(estimator).__name__, None, {}, n_rows)
    what = getattr(estimator, "_without_groups", "")
    if raw is not None:
        if what and raw.schema.group_values is None:
            raise ValueError(raw.names_no_groups + what)
        said = raw.said_of_others(*raw.schema.groups)
        reads.note("names of the groups", "given", raw.domain, said, by=raw.schema.group_values)
        return raw.groups(sensitive_features), raw.domain
    owner, given = type(estimator).__name__, parameter_of(estimator, "groups")
    if in_X is not None and sensitive_features is not None:
        raise groups_twice(owner)
    groups = _groups_of_rows(owner, in_X, sensitive_features, n_rows, what)
    if given is not None:
        domain = _utils.given_domain(given, owner=owner, parameter="groups")
        reads.note("names of the groups", "given", domain, by=given)
    else:
        domain = _utils.group_domain(groups)
        if len(domain) < 2:
            raise _utils.private_error("one group", owner=owner)
        _utils.warn_caller(
            f"{owner} read its groups from the private rows, which reveals them outside the guarantee. Give them "
            "with the 'groups' parameter.",
            PrivacyLeakWarning,
        )
        reads.note("names of the groups", "read", domain, "from the private rows, outside the guarantee")
    return _utils.encode_labels(groups, domain, owner=owner, name="sensitive_features", parameter="groups"), domain


def _groups_of_rows(owner: str, in_X: Any, given: Any, n_rows: int, what: str = "") -> Objects:
    """The group of every private row, as it was given or lies in X."""
    groups: Objects | None = in_X if given is None else _utils.as_groups(given, n_rows, owner=owner)
    if groups is None:
        raise ValueError(
            f"{owner} needs the groups of the private rows: pass sensitive_features to fit, or name the columns "
            f"of X that hold them with 'sensitive_columns'.{what}"
        )
    return groups


def read_groups_like(estimator: BaseEstimator, table: Table, sensitive_features: Any, domain: Any) -> Ints:
    """Codes of the private groups, where the public rows say what groups there are."""
    if table.raw is not None:
        return table.raw.groups(sensitive_features)
    owner = type(estimator).__name__
    groups = _groups_of_rows(owner, table.groups, sensitive_features, len(table.X))
    return _utils.encode_labels(groups, domain, owner=owner, name="sensitive_features", parameter="groups")


def groups_to_come(estimator: BaseEstimator, X: Any, given: Any, n_rows: int) -> Ints:
    """Codes of the groups of rows to predict, by ``groups_`` of a fitted estimator."""
    owner, schema = type(estimator).__name__, parameter_of(estimator, "schema")
    columns = parameter_of(estimator, "sensitive_columns")
    if schema is not None:
        return RawTable.read(schema, X, owner=owner).groups(given)
    if columns is not None:
        _, given = _utils.split_sensitive_columns(X, columns, owner=owner)
    if given is None:
        raise ValueError(f"{owner} needs sensitive_features to predict, by which it was fitted.")
    values, known = _utils.as_groups(given, n_rows, owner=owner), parameter_of(estimator, "groups_")
    return _utils.encode_labels(values, known, owner=owner, name="sensitive_features", parameter="groups")


def groups_twice(owner: str) -> ValueError:
    return ValueError(
        f"{owner} got groups twice: by 'sensitive_columns' and as an argument of fit. Leave one of them out."
    )


# ---- what an estimator and its rows may hold -----------------------------------------------------------------


def refuse_large(public: Floats, whose: str) -> None:
    if max(public.max(), -public.min()) > LARGEST_PUBLIC:
        raise ValueError(f"{whose} numbers beyond {LARGEST_PUBLIC:g}, whose squares overflow. Scale the features.")


def parameter_of(estimator: BaseEstimator, name: str) -> Any:
    """What a constructor parameter says, or a schema in its place; None where neither does."""
    if name not in SCHEMA_PARAMETERS or getattr(estimator, "schema", None) is None:
        return getattr(estimator, name, None)
    schema: Any = schema_of(estimator)
    return {"classes": schema.classes, "groups": schema.group_values}.get(name)
