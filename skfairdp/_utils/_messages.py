"""What is said: warnings at the caller's line, progress in public totals, errors that name no private value."""

import contextlib
import logging
import re
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from tqdm import tqdm

from skfairdp.exceptions import PrivacyLeakWarning

_LONG = 10.0  # seconds

#: Packages whose frames lie between the user's line and a warning: meta-estimators and ``np.errstate`` call for users.
_INSIDE = frozenset({"skfairdp", "sklearn", "joblib", "mlflow", "numpy"})


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the first line of the call stack outside skfairdp and what calls for the user. ``warnings.warn(...,
    stacklevel=4)`` would make the number of calls in between an interface."""
    frame, depth = sys._getframe(1), 2
    while frame.f_back is not None and str(frame.f_globals.get("__name__", "")).partition(".")[0] in _INSIDE:
        frame, depth = frame.f_back, depth + 1
    try:
        warnings.warn(message, category, stacklevel=depth)
    except Warning as error:
        if not PAID.has_paid:
            raise
        PAID.first = PAID.first or error


class _Paid(threading.local):
    """The first warning that is an error, of a fit that has paid: raised at once it would cost what was bought. It is
    raised once the outermost fit of the thread is through."""

    is_fit = has_paid = False
    first: Warning | None = None


PAID = _Paid()


def warn_of_seed(owner: str) -> None:
    """Say what seeded noise is good for."""
    warn_caller(
        f"{owner} draws its noise from 'noise_seed': whoever knows the seed can remove the noise. privacy_.epsilon "
        "will be inf; use this for research and tests only.",
        PrivacyLeakWarning,
    )


class _Muted:
    """Stands in for ``sys.stdout`` or ``sys.stderr``: drops what is written during a silence, else hands it on. Whoever
    has kept it, because a stream was redirected meanwhile, has an ordinary stream once the silence is over."""

    def __init__(self, original: Any) -> None:
        self.original = original

    def write(self, text: Any) -> Any:
        return len(text) if _Silence.inside else self.original.write(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    @property
    def buffer(self) -> "_Muted":
        return _Muted(self.original.buffer)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.original, name)


class _Silence:
    """Who asks for silence: filters and streams are one for the whole process, whatever its threads do."""

    inside: ClassVar[set[object]] = set()
    lock = threading.RLock()
    undo = contextlib.ExitStack()
    within = threading.local()  # how many of a thread's own are around what it does


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Let no warning, print, log record or run of MLflow out while the block runs, in this process and all its threads;
    numpy's floating-point errors are ignored in the calling one. Ctrl-C still works. **Not covered**: what compiled
    code writes to file descriptors 1 and 2 on its own (``verbose`` of teachers is 0 for that), handles that a learner
    opens, and files."""
    # The first one in changes them, the last one out restores them. ``warnings.catch_warnings`` alone would restore in
    # the wrong order where threads overlap. Ctrl-C may come anywhere in here, and a count could then be off for good.
    one, depth = object(), getattr(_Silence.within, "depth", 0)
    _Silence.within.depth = depth + 1
    try:
        with _Silence.lock:
            if not _Silence.inside:
                # A record of its own: what a learner lets through by filters of its own goes there, and is dropped.
                _Silence.undo.enter_context(warnings.catch_warnings(record=True))
                warnings.simplefilter("ignore")
                _Silence.undo.callback(logging.disable, logging.root.manager.disable)
                logging.disable(sys.maxsize)
                if (mlflow := sys.modules.get("mlflow.utils.autologging_utils")) is not None:
                    _Silence.undo.enter_context(mlflow.disable_autologging())  # it logs learners with their scores
                for name in ("stdout", "stderr"):
                    _Silence.undo.enter_context(_muted(name))
            _Silence.inside.add(one)
        with np.errstate(all="ignore"):
            yield
    finally:
        _Silence.within.depth = depth
        with _Silence.lock:
            _Silence.inside.discard(one)
            if not _Silence.inside:
                _Silence.undo.pop_all().close()


#: What a fit returns, and its warnings.
Told = tuple[Any, dict[str, type[Warning]]]


def recorded(fit: Callable[[], Any]) -> Told:
    """What one of many fits returns, and its warnings, which are not given; nor kept, where it is silent itself. A
    silence within another one sets no filters of its own: what is warned of there is told by its depth."""
    told: dict[str, type[Warning]] = {}
    here = threading.get_ident(), getattr(_Silence.within, "depth", 0)

    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        if (threading.get_ident(), getattr(_Silence.within, "depth", 0)) == here:
            told[str(message)] = category

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", PrivacyLeakWarning)  # the plan has given them, once
        warnings.showwarning = show
        return fit(), told


@contextlib.contextmanager
def _muted(name: str) -> Iterator[None]:
    muted = _Muted(getattr(sys, name))
    setattr(sys, name, muted)
    yield
    if getattr(sys, name) is muted:  # else somebody has redirected it since, and will restore it
        setattr(sys, name, muted.original)


def open_stream(stream: Any) -> Any:
    """The stream itself where a silence has muted it: for bars, which show public totals."""
    while isinstance(stream, _Muted):
        stream = stream.original
    return stream


def say(text: str, *, verbose: int) -> None:
    """Write a line of public facts to standard error, where ``verbose`` is above 0."""
    if verbose > 0:
        tqdm.write(text, file=open_stream(sys.stderr))


def progress_bar(
    items: Any = None, *, desc: str, total: int | None = None, verbose: int, leave: bool = False, seconds: float = 0.0
) -> Any:
    """Iterate with a bar on standard error that shows counts and no rate: how long a query or a batch took can depend
    on private rows, and logs get shared. ``total`` has to be a public number as well, and so ``seconds``, a forecast;
    without a bar, one of more than ten says how to see one."""
    if verbose <= 0 and seconds > _LONG:
        say(f"{desc}: about {seconds:.0f} seconds. Set verbose=1 to see progress.", verbose=1)
    stream, shown = open_stream(sys.stderr) if verbose > 0 else None, "{desc}: {bar} {n_fmt}/{total_fmt}{postfix}"
    how = {"disable": verbose <= 0, "leave": leave, "file": stream, "bar_format": shown}
    return tqdm(items, desc=desc, total=total, **how)


class PrivateRowsError(ValueError, TypeError):
    """Rows that cannot be used as they are. One type for every cause, so that the type says nothing either."""


@dataclass(frozen=True)
class PrivateError:
    """A text with places for public names, and the reason why it may depend on private rows."""

    text: str
    why: str


PRIVATE_ERRORS: dict[str, PrivateError] = {
    "unknown value": PrivateError(
        "{name} of {owner} holds a value that is not in '{parameter}'. Add it to '{parameter}' (numbers are no texts), "
        "or drop those rows.",
        "A value outside the public domain has no code. Any other value in its place would be made up.",
    ),
    "other classes": PrivateError(
        "{name} of {owner} holds a value that is none of the classes of its '{parameter}'. Drop those rows, correct "
        "the spelling of their labels, or fit it with these classes.",
        "A label that the model does not know has no code. Any other one in its place would be made up.",
    ),
    "unlisted": PrivateError(
        "{name} of {owner} holds a label or a group that is missing or not among those that its schema lists. "
        "Schema.misfits(table) counts them by column (do not publish its counts). Correct their spelling, list them, "
        "drop those rows, or set what they count as: Category([...], others=...), or missing=True for a group column.",
        "A label or group outside the public list has no code. Any listed one in its place would be made up.",
    ),
    "missing value": PrivateError(
        "{name} of {owner} contains missing values (None, NaN, infinity or masked). Give them a value of their own, "
        "for example fillna('unknown'), or drop those rows.",
        "A missing label or group stands for none of the public domain.",
    ),
    "no ids": PrivateError(
        "Ids of subjects or rows must be whole numbers or texts. Some are infinite, dates, durations or other objects, "
        "or floats of more digits than the 15 that they keep. Read the column as texts: pd.read_csv(..., "
        "dtype={{'id': str}}).",
        "A reader may have made one of two ids of it, or two of one: whose a row is would follow the rows beside it.",
    ),
    "missing amount": PrivateError(
        "{name} of {owner} holds amounts that are missing or not finite (None, NaN, infinity or masked). Drop those "
        "rows, or write down the amount that they stand for, such as fillna(0).",
        "A missing amount is none, and any other one in its place would be made up.",
    ),
    "no amounts": PrivateError(
        "{name} of {owner} holds dates or durations, and must hold numbers. Make numbers of them in a unit that "
        "'bounds' are in, such as y.dt.total_seconds() / 3600.",
        "A date counted in nanoseconds is beyond any bounds that somebody would give.",
    ),
    "not finite": PrivateError(
        "{name} of {owner} contains NaN, infinity, a masked entry or a number too large for a float. Impute those "
        "entries with values fitted on public rows, or drop those rows.",
        "scikit-learn's contract for estimators that do not accept missing values.",
    ),
    "not numbers": PrivateError(
        "{name} of {owner} has entries that are not numbers. The argument must be a table of numbers, or of strings "
        "that each read as a number. For texts, dates and missing cells set schema=Schema(...), or encode columns "
        "with a transformer fitted on public rows: PublicPreprocessor(make_tabular_encoder(), X_public).",
        "A cell that is no number has no place in a table of floats.",
    ),
    "complex": PrivateError(
        "Complex data not supported: {name} of {owner} must hold real numbers.",
        "scikit-learn's contract: complex numbers are refused, not cut.",
    ),
    "ragged": PrivateError(
        "{name} of {owner} is inhomogeneous: it must have one entry per row, all of the same shape.",
        "Rows of several lengths are no table.",
    ),
    "no labels": PrivateError(
        "Unknown label type: {name} of {owner} must be one column of class labels of one kind, such as strings or "
        "ints. Amounts are not classes: cut them at public limits first.",
        "Labels that have no common order, or that are measurements, name no classes.",
    ),
    "no exposure": PrivateError(
        "exposure of {owner} holds values that are not above 0. Drop those rows: nothing was counted in them.",
        "A count without exposure says nothing of a rate, and a negative one has no meaning.",
    ),
    "no groups": PrivateError(
        "{name} of {owner} contains values that cannot be groups, such as lists. Give one label per row.",
        "A group has to be comparable with the names of the groups.",
    ),
    "one class": PrivateError(
        "{owner} can't train when only one class is present in y. If this is intended, list the classes "
        "with the 'classes' parameter.",
        "Only without 'classes', where the classes are read from y outside of the guarantee.",
    ),
    "one group": PrivateError(
        "{owner} found only one group, so every fairness statement would be vacuous. If this is intended, list the "
        "groups with the 'groups' parameter.",
        "Only without 'groups', where their names are read from the rows outside of the guarantee.",
    ),
    "other index": PrivateError(
        "{name} of {owner} has another index than {parameter}. Rows are matched by position: pass "
        "{name}.loc[{parameter}.index], or {name}.to_numpy() where the rows are in the same order.",
        "Two pandas objects that match their rows otherwise than by position: one of them is wrong. An index names "
        "rows and is public like their positions; should it hold private values, all that shows is that it differs.",
    ),
    "search failed": PrivateError(
        "A fit of {owner} failed after the search was charged. The planned epsilon is spent and there is no result; "
        "the cause is not shown, because it may depend on private rows. Fit the candidates on public rows to see the "
        "error.",
        "A failed fit must not lose to the others, or a record that makes it fail would choose the winner.",
    ),
}


def private_error(kind: str, **names: str) -> PrivateRowsError:
    """Build the error of this kind. Raise it outside of any ``except`` block: an error raised inside carries the first
    one along as its context, and loggers find private values there."""
    return PrivateRowsError(PRIVATE_ERRORS[kind].text.format(**names))


def invalid_parameter(name: str, owner: str, must: str, got: Any) -> ValueError:
    """Build the error of a public parameter outside its range, in scikit-learn's words."""
    return ValueError(f"The '{name}' parameter of {owner} must be {must}. Got {got!r} instead.")


# ---- errors of other packages --------------------------------------------------------------------------------

#: What scikit-learn says of the shape or the columns of a table, which are public, and of nothing else.
_PUBLIC = re.compile(
    r"Found array with|X has \d+ features|The feature names should match|Feature names are only supported|"
    r"Sparse data was passed|.* is expecting \d+ features|Unable to set |Reshape your data|.*requires y to be passed"
)

#: Arguments that are tables of numbers; all others are columns of labels.
_TABLES = frozenset({"X", "X_public"})


def without_values(error: Exception, *, owner: str, name: str = "X", missing: str = "missing value") -> Exception:
    """Return an error that says what was wrong with a table and repeats none of its entries."""
    said = str(error)
    if said.startswith(("Expected 2D array", "Expected a 2-dimensional container")):
        return ValueError(
            f"Expected 2D array: {name} of {owner} must have rows and columns. Reshape your data with "
            "array.reshape(-1, 1) if it has a single feature, or array.reshape(1, -1) if it is a single row."
        )
    if said.startswith("y should be a 1d array"):
        return ValueError(f"{name} of {owner} should be a 1d array: one column of labels, one entry per row.")
    if said.startswith(("Mix of label input types", "Classification metrics can't handle")):
        return ValueError(f"{name} of {owner} has labels of another type than the predictions.")
    if said.startswith("Found unknown categories") and "in column" in said:
        return ValueError(f"{name} of {owner} has categories unknown to the encoder. Set its handle_unknown='ignore'.")
    if said.startswith("Complex data not supported"):
        return private_error("complex", owner=owner, name=name)
    if "inhomogeneous" in said:
        return private_error("ragged", owner=owner, name=name)
    if isinstance(error, OverflowError) or "contains NaN" in said or "contains infinity" in said:
        return private_error("not finite" if name in _TABLES else missing, owner=owner, name=name)
    if _PUBLIC.match(said):
        return error if owner in said and name == "X" else type(error)(f"{name} of {owner}: {said}")
    return private_error("not numbers", owner=owner, name=name)


#: What scikit-learn, numpy and others begin with where they quote an entry that they cannot read.
_QUOTES = re.compile(
    "could not convert|invalid literal|Found unknown categories|previously unseen labels|Invalid classes"
)


def without_cells(call: Callable[..., Any], *args: Any, owner: str, **more: Any) -> Any:
    """Call a learner of another package, whose errors about a cell are then said without the cell."""
    problem: Exception | None = None
    try:
        return call(*args, **more)
    except (ValueError, TypeError, OverflowError) as error:
        if not isinstance(error, OverflowError) and not _QUOTES.search(str(error)):
            raise
        problem = without_values(error, owner=owner)
    raise problem
