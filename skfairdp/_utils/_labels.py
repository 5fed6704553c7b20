"""Labels, groups and ids, read in every form users have them."""

import contextlib
import math
import re
import unicodedata
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import repeat
from numbers import Integral
from traceback import walk_stack
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_array, column_or_1d

from skfairdp._typing import Array, ArrayLike, Codes, Floats, Ints, Objects
from skfairdp._utils._containers import as_pandas, label_array, refuse_masked
from skfairdp._utils._messages import PrivateRowsError, private_error, silence, warn_caller, without_values
from skfairdp.exceptions import FairnessWarning

#: Whole numbers further apart than this are looked up one by one.
_WIDEST_TABLE = 2**16
#: What of scikit-learn calls the fit of a member once it has numbered the labels.
_ENSEMBLES = {("sklearn.ensemble._base", "_fit_single_estimator"), ("sklearn.ensemble._stacking", "fit")}
#: What an estimator is marked with that answers with numbers of classes.
_NUMBERED = "_labels_are_numbered"


# ---- the form of answers -------------------------------------------------------------------------------------


def note_label_codes(estimator: Any, y: Any) -> bool:
    """Mark an estimator whose labels an ensemble of scikit-learn has numbered, which expects numbers back.
    VotingClassifier counts votes by number, and tells its members nothing of it. Who calls says it: the labels, which
    are private, must not decide in which form they are answered."""
    vars(estimator).pop(_NUMBERED, None)
    frames = () if y is None else walk_stack(None)
    numbered = any((frame.f_globals.get("__name__"), frame.f_code.co_name) in _ENSEMBLES for frame, _ in frames)
    if numbered:
        setattr(estimator, _NUMBERED, True)
    return numbered


def labels_are_codes(estimator: Any) -> bool:
    """Whether :func:`note_label_codes` has marked an estimator."""
    return bool(vars(estimator).get(_NUMBERED))


def copy_label_encoding(estimator: Any, reader: Any) -> None:
    """Mark an estimator as the one is marked that has read its labels for it."""
    vars(estimator).pop(_NUMBERED, None)
    if labels_are_codes(reader):
        setattr(estimator, _NUMBERED, True)


def decode_labels(estimator: Any, codes: Codes) -> Array:
    """The classes with these codes; the codes themselves where the estimator answers with numbers."""
    return np.asarray(codes) if labels_are_codes(estimator) else np.asarray(estimator.classes_)[codes]


# ---- labels and groups ---------------------------------------------------------------------------------------


@contextlib.contextmanager
def without_context() -> Iterator[None]:
    """What is raised inside holds no error in whose place it is raised: that may quote a private cell."""
    try:
        yield
    except Exception as error:
        error.__context__ = None
        raise


def as_groups(
    sensitive_features: ArrayLike | pd.DataFrame, n_rows: int, *, owner: str, name: str = "sensitive_features"
) -> Objects:
    """Read one group per row."""
    refuse_masked(sensitive_features, owner=owner, name=name)
    columns = _read_or_refused("ragged", _columns, sensitive_features, owner=owner, name=name)
    if isinstance(columns, int):
        raise ValueError(f"{name} of {owner} must be one column, or a table of columns; got {columns} dimensions.")
    if not columns:
        raise ValueError(f"{name} of {owner} is a table with no columns.")
    if len(columns[0]) != n_rows:
        raise ValueError(f"{name} of {owner} has inconsistent length: it must have one entry per row of X.")
    out = _read_or_refused("no groups", _cells, columns, owner=owner, name=name)
    if out is None:
        raise private_error("missing value", owner=owner, name=name)
    return out


def _read_or_refused(kind: str, read: Callable[[Any], Any], values: Any, **names: str) -> Any:
    """What is read of values. Whatever numpy or pandas raise of a strange cell, its type would speak of that cell."""
    with without_context():
        try:
            return read(values)
        except Exception:
            raise private_error(kind, **names) from None


def _columns(sensitive_features: Any) -> list[pd.Series] | int:
    """One Series per column; the number of dimensions where that is neither 1 nor 2."""
    if isinstance(sensitive_features, pd.Series):
        return [sensitive_features]
    if isinstance(sensitive_features, pd.DataFrame):
        return [sensitive_features.iloc[:, j] for j in range(sensitive_features.shape[1])]
    # A list keeps its own types: numpy would read ["a", nan] and [("a", 1)] as strings.
    kind = object if isinstance(sensitive_features, list | tuple) else None
    array = np.asarray(sensitive_features, dtype=kind)
    if array.ndim not in (1, 2):
        return array.ndim
    columns = array[:, None].T if array.ndim == 1 else array.T
    return [pd.Series(column, dtype=object if array.dtype.kind in "OU" else None) for column in columns]


def as_series(values: Array) -> "pd.Series[Any]":
    """Make a column of the type that an array has. pandas has a type of its own for texts, for which half of a
    surrogate pair is an error: a private cell may hold one."""
    return pd.Series(values, dtype=object if values.dtype.kind in "OU" else None)


def _cells(columns: list[pd.Series]) -> Objects | None:
    """One group per row; None where a cell is missing. Values that cannot be groups raise."""
    if any(bool(column.isna().any()) for column in columns):
        return None
    # tolist() turns numpy scalars into Python ones: True == 1 and np.str_ == str then hash alike everywhere.
    lists = [
        column.tolist()
        if column.dtype.kind in "biuf"
        else [str(cell) if isinstance(cell, np.str_) else cell for cell in column.astype(object).tolist()]
        for column in columns
    ]
    rows = lists[0] if len(lists) == 1 else zip(*lists, strict=True)
    out = np.fromiter(rows, dtype=object, count=len(columns[0]))
    set(out.tolist())
    return out


def given_domain(values: Any, *, owner: str, parameter: str) -> Objects:
    """Read a list of labels given as a parameter (``groups=``, ``classes=``), keeping its order."""
    try:
        plain = (label.item() if isinstance(label, np.generic) else label for label in values)
        labels = [tuple(label) if isinstance(label, list) else label for label in plain]
        distinct = len(set(labels))
        missing = any(label is None or label != label for label in labels)
    except (TypeError, ValueError):
        raise ValueError(f"The '{parameter}' parameter of {owner} must be a list of labels.") from None
    if isinstance(values, str) or not labels or missing:
        raise ValueError(f"The '{parameter}' parameter of {owner} must be a list of labels, none missing.")
    if distinct != len(labels):
        raise ValueError(f"The '{parameter}' parameter of {owner} lists a value twice.")
    return np.fromiter(labels, dtype=object)


def group_domain(values: Sequence[Hashable] | Objects) -> Objects:
    """Return the distinct labels in a reproducible order (sorted where they can be compared)."""
    plain = (label.item() if isinstance(label, np.generic) else label for label in dict.fromkeys(values))
    distinct: list[Any] = list(dict.fromkeys(plain))
    try:
        distinct.sort()
    except TypeError:
        distinct.sort(key=repr)
    return np.fromiter(distinct, dtype=object)


def declared_classes(given: Any, owner: str) -> Array:
    """The classes of a parameter, sorted, as scikit-learn keeps its classes_."""
    labels = given_domain(given, owner=owner, parameter="classes").tolist()
    try:
        classes: Array = np.asarray(sorted(labels))
    except TypeError:
        classes = np.empty((0, 0))
    if classes.ndim != 1:
        raise ValueError(f"The 'classes' parameter of {owner} must be labels of one kind, such as strings or ints.")
    return classes


def encode_labels(values: Array, domain: Array, *, owner: str, name: str, parameter: str) -> Ints:
    """Return each value's position in ``domain``."""
    index = dict(zip(domain.tolist(), range(len(domain)), strict=True))
    if len(index) != len(domain):
        raise ValueError(f"The '{parameter}' parameter of {owner} lists a value twice.")
    try:
        codes = np.fromiter(map(index.get, values.tolist(), repeat(-1)), dtype=np.int64, count=len(values))
        known = not len(codes) or bool(codes.min() >= 0)
    except Exception:  # a cell that cannot be hashed or compared, such as a list, which can be in no domain either
        known = False
    if not known:
        kind = "other classes" if parameter == "estimator" else "unknown value"  # a model's classes are not given
        raise private_error(kind, owner=owner, name=name, parameter=parameter)
    return codes


def encode_within(
    values: Array, given: Any, *, owner: str, name: str = "sensitive_features", parameter: str = "groups"
) -> tuple[Ints, Objects]:
    """Return each value's position in a domain, and the domain: that of a parameter, else the values that occur."""
    domain = group_domain(values) if given is None else given_domain(given, owner=owner, parameter=parameter)
    return encode_labels(values, domain, owner=owner, name=name, parameter=parameter), domain


def encode_many(values: Array, domain: Array, *, owner: str, name: str, parameter: str) -> Ints:
    """As :func:`encode_labels`; for columns so long that a Python object for each whole number is too much."""
    codes = _codes_of_integers(values, domain.tolist())
    if codes is None or (codes < 0).any():  # it says what is wrong
        return encode_labels(values, domain, owner=owner, name=name, parameter=parameter)
    return codes


def _codes_of_integers(values: Array, labels: list[Any]) -> Ints | None:
    """Positions of whole numbers among labels, from a table, -1 for others; None where a table cannot say."""
    index = {label: code for code, label in enumerate(labels)}
    plain = len(index) == len(labels) and all(type(label) in (bool, int, float, str, tuple) for label in index)
    wholes = [label for label in index if isinstance(label, int) or (isinstance(label, float) and label.is_integer())]
    low, high = int(min(wholes, default=0)), int(max(wholes, default=0))
    if values.dtype.kind not in "iub" or values.dtype == np.uint64 or not plain or high - low > _WIDEST_TABLE:
        return None
    if low - 1 < np.iinfo(np.int64).min or high + 1 > np.iinfo(np.int64).max:
        return None
    table = np.full(high - low + 3, -1, dtype=np.int64)  # with one place below and one above for all other numbers
    table[[int(label) - low + 1 for label in wholes]] = [index[label] for label in wholes]
    places = np.clip(values.astype(np.int64, copy=False), low - 1, high + 1)
    places -= low - 1
    return np.take(table, places, out=places, mode="clip")


def encode_groups(sensitive_features: Any, domain: Objects, n_rows: int, *, owner: str, parameter: str) -> Ints:
    """Return the position of each row's group in ``domain``; whole numbers need no Python object for each row."""
    numpys = isinstance(sensitive_features, pd.Series) and isinstance(sensitive_features.dtype, np.dtype)
    column: Any = sensitive_features.to_numpy() if numpys else sensitive_features
    whole = type(column) is np.ndarray and column.ndim == 1 and column.dtype.kind in "iub" and len(column) == n_rows
    values = column if whole else as_groups(sensitive_features, n_rows, owner=owner)
    return encode_many(values, domain, owner=owner, name="sensitive_features", parameter=parameter)


def split_sensitive_columns(
    X: Any, sensitive_columns: Sequence[str | int] | str | int, *, owner: str, read_groups: bool = True
) -> tuple[Any, Objects | None]:
    """Take the named columns out of X and read them as groups."""
    X = as_pandas(X)
    frame = isinstance(X, pd.DataFrame)
    X = X if frame else _read_or_refused("ragged", np.asarray, X, owner=owner, name="X")
    positions = sensitive_positions(X, sensitive_columns, owner=owner)
    by_position = X.iloc if frame else X
    features = by_position[:, [j for j in range(X.shape[1]) if j not in positions]]
    if not read_groups:
        return features, None
    named = by_position[:, positions if len(positions) > 1 else positions[0]]
    return features, as_groups(named, X.shape[0], owner=owner, name="sensitive_columns")


def sensitive_positions(X: Any, sensitive_columns: Sequence[str | int] | str | int, *, owner: str) -> list[int]:
    """Positions of the named columns in a DataFrame or an array, of which one is left at least."""
    wanted = [sensitive_columns] if isinstance(sensitive_columns, str | int | np.integer) else list(sensitive_columns)
    if not wanted:
        raise ValueError(f"The 'sensitive_columns' parameter of {owner} is empty.")
    if X.ndim != 2:
        raise ValueError(f"{owner} needs a 2-d X to take 'sensitive_columns' from; got {X.ndim} dimension(s).")
    names = list(X.columns) if isinstance(X, pd.DataFrame) else []
    positions = []
    for column in wanted:
        if isinstance(column, int | np.integer) and not isinstance(column, bool):
            if not -X.shape[1] <= column < X.shape[1]:
                raise ValueError(
                    f"'sensitive_columns' of {owner} names column {column}, but X has {X.shape[1]} columns."
                )
            positions.append(int(column) % X.shape[1])
        elif names.count(column) == 1:
            positions.append(names.index(column))
        else:
            where = "is not exactly one column of X" if names else "needs X to be a DataFrame"
            raise ValueError(f"'sensitive_columns' of {owner} names {column!r}, which {where}.")
    if len(set(positions)) == X.shape[1]:
        raise ValueError(f"'sensitive_columns' of {owner} takes every column of X; no feature is left.")
    return positions


def group_membership(
    sensitive_features: Any, group_weights: Any, n_rows: int, *, owner: str, otherwise: str = ""
) -> Floats:
    """Read how much each row belongs to each group: given weights, or 0 and 1 from groups."""
    if group_weights is not None:
        return _several(_weights(group_weights, n_rows, owner), owner)
    if sensitive_features is None:
        raise ValueError(f"{owner} needs groups: pass sensitive_features or group_weights to fit{otherwise}.")
    groups = as_groups(sensitive_features, n_rows, owner=owner)
    codes, domain = encode_within(groups, None, owner=owner, parameter="sensitive_features")
    return _several(np.eye(len(domain))[codes], owner)


def _weights(given: Any, n_rows: int, owner: str) -> Floats:
    try:
        weights = np.asarray(given, dtype=np.float64)
    except Exception:  # whatever a strange cell makes numpy raise, its type would speak of that cell
        weights = np.empty(0)
    if weights.ndim != 2 or len(weights) != n_rows or not np.isfinite(weights).all():
        raise ValueError(f"group_weights of {owner} must be finite numbers, one row for each of X, one column a group.")
    return weights


def _several(weights: Floats, owner: str) -> Floats:
    if weights.shape[1] < 2:
        warn_caller(
            f"{owner} was given one group only, so its constraint has no effect. Give rows of several groups.",
            FairnessWarning,
        )
    return weights


def holds_times(values: Any) -> bool:
    """Tell whether there are days or durations among cells, which numpy takes for numbers."""
    cells = np.asarray(values)
    among = cells.dtype == object and any(isinstance(cell, np.datetime64 | np.timedelta64) for cell in cells.flat)
    return cells.dtype.kind in "mM" or among


def as_amounts(y: Any, n_rows: int, *, owner: str, name: str = "y") -> Floats:
    """Read one finite number per row."""
    if y is None:
        raise ValueError(f"{owner} requires y to be passed, but the target y is None.")
    with without_context(), np.errstate(over="ignore", invalid="ignore"):
        try:
            refuse_masked(y, owner=owner, name=name, kind="missing amount")
            column = column_or_1d(label_array(y), warn=True)
            if holds_times(column):
                raise private_error("no amounts", owner=owner, name=name)
            amounts = check_array(column, ensure_2d=False, ensure_min_samples=0, dtype=np.float64, input_name=name)
        except (Warning, PrivateRowsError):
            raise
        except Exception as error:  # whatever a strange cell makes numpy raise, its type would speak of that cell
            raise without_values(error, owner=owner, name=name, missing="missing amount") from None
    return _one_for_each(np.asarray(amounts, dtype=np.float64), n_rows, owner, name, "number")


def _one_for_each(values: Array, n_rows: int, owner: str, name: str, what: str) -> Array:
    if len(values) != n_rows:
        raise ValueError(
            f"{name} of {owner} has inconsistent length: it must have one {what} per row of X. Compare len({name}) "
            "with len(X): counts of private rows are not printed."
        )
    return values


def as_exposures(exposure: Any, n_rows: int, *, owner: str) -> Floats:
    """Read one number above 0 per row."""
    found = as_amounts(exposure, n_rows, owner=owner, name="exposure")
    if (found <= 0).any():
        raise private_error("no exposure", owner=owner)
    return found


def as_labels(y: Any, n_rows: int, *, owner: str, name: str = "y", check_kind: bool = True) -> Array:
    """Read one label per row."""
    if y is None:
        raise ValueError(f"{owner} requires y to be passed, but the target y is None.")
    with without_context():
        try:
            refuse_masked(y, owner=owner, name=name)
            labels = column_or_1d(label_array(y), warn=True)
            if labels.dtype.kind == "c":
                raise private_error("complex", owner=owner, name=name)
            if bool(pd.isna(labels).any()) or (labels.dtype.kind == "f" and not np.all(np.isfinite(labels))):
                raise private_error("missing value", owner=owner, name=name)
            if check_kind and len(labels):
                np.unique(labels)
                with silence():  # scikit-learn 1.6 warns where every other label is another one
                    kind = type_of_target(labels, raise_unknown=True)
                if kind not in ("binary", "multiclass"):
                    raise private_error("no labels", owner=owner, name=name)
        except (Warning, PrivateRowsError):  # (n, 1) where (n,) is meant, in a program that turns warnings into errors
            raise
        except Exception as error:  # whatever a strange cell makes numpy raise, its type would speak of that cell
            if str(error).startswith(("y should be a 1d array", "Complex data")):
                raise without_values(error, owner=owner, name=name) from None
            raise private_error("no labels", owner=owner, name=name) from None
    return _one_for_each(np.asarray(labels), n_rows, owner, name, "label")


def hits(truth: Array, predicted: Array, owner: str) -> Array:
    """Where predictions are right; a ValueError where texts stand beside other labels, so that none can be."""
    if any(isinstance(label, str) for label in truth) != any(isinstance(label, str) for label in predicted):
        raise ValueError(f"{owner} got texts as labels and no texts as predictions, or the opposite. Use the same.")
    return np.asarray(truth == predicted)


_DIGITS = 15  # a float keeps so many
_WHOLE = re.compile(r"[+-]?[0-9]+")
#: A number with signs between its thousands, which a reader takes out where all of a chunk are numbers. A point is none
#: of them: 1.234 is a fraction as well.
_BETWEEN = ",'’_ \u00a0\u202f"
_NONE_BETWEEN = dict.fromkeys(map(ord, _BETWEEN))
_GROUPED = re.compile(rf"[+-]?[0-9][0-9{_BETWEEN}]*(\.[0-9]*)?([eE][+-]?[0-9]+)?")


def texts_of_ids(ids: Iterable[Any]) -> list[str]:
    """The one text of each id, none of which is missing."""
    texts = [_text_of(cell) for cell in ids]
    found = [text for text in texts if text is not None]
    if len(found) < len(texts):
        raise private_error("no ids")
    return found


def _text_of(cell: Any) -> str | None:
    """The text of an id, by it alone and the same whatever type a reader gave it; None where there is no such text.
    Where readers make one number of two texts, so does this: two ids may become one, which protects both together, and
    one never becomes two. Dates, floats that may have lost digits, and objects whose text need not follow their value
    have none."""
    if isinstance(cell, str):
        return _text_of_text(cell)
    if isinstance(cell, float | np.floating):
        # Of as many digits as its type keeps for certain: readers may be wrong in the last place of those behind them
        number, digits, unsure = float(cell), _DIGITS, math.ulp(float(cell))
        if isinstance(cell, np.float16 | np.float32):
            digits, unsure = np.finfo(type(cell)).precision, abs(float(np.spacing(cell)))
        if not abs(number) < 10**digits:
            return None
        near = f"{number:.{digits}g}"
        return _text_of_text(near) if abs(float(near) - number) <= unsure else None
    if isinstance(cell, tuple):
        texts = [_text_of(part) for part in cell]
        return None if None in texts else repr(texts)
    if isinstance(cell, bool | np.bool_ | Integral):
        return str(int(cell))
    if isinstance(cell, bytes | bytearray | memoryview):
        return _text_of_text(bytes(cell).decode("utf-8", "backslashreplace"))
    if isinstance(cell, Decimal) and not cell.is_finite():
        return None
    return _text_of_text(str(cell)) if isinstance(cell, Decimal | UUID) else None


def _text_of_text(text: str) -> str:
    """Digits alone with all of them but zeros in front; another number as its float; the rest without blanks around.
    Signs between thousands are none of a number."""
    text = unicodedata.normalize("NFC", text.strip().encode("utf-8", "backslashreplace").decode())
    if text.lower() in ("true", "false"):
        return str(int(text.lower() == "true"))
    if _GROUPED.fullmatch(text):
        text = text.translate(_NONE_BETWEEN)
    try:
        number = float(text)
    except ValueError:
        return text
    if math.isnan(number):
        return ""
    digits = text.replace("_", "")  # pandas.read_json reads through them
    if not _WHOLE.fullmatch(digits):
        digits = f"{number:.{_DIGITS}g}" if abs(number) < 10**_DIGITS else _exactly(text, number)
    if not _WHOLE.fullmatch(digits):
        return digits
    size = digits.lstrip("+-0") or "0"
    return f"-{size}" if digits[0] == "-" and size != "0" else size


def _exactly(text: str, number: float) -> str:
    """All digits of a number of which a float keeps some, so that such a float would be refused."""
    found = text if math.isinf(number) else f"{Decimal(text):f}"
    return found.rstrip("0").rstrip(".") if "." in found else found
