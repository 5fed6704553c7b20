"""What is said: warnings at the caller's line, progress in public totals, silence around private rows."""

import contextlib
import logging
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

import numpy as np
from tqdm import tqdm

_LONG = 10.0  # seconds

#: Packages whose frames lie between the user's line and a warning: meta-estimators call fit for the user.
_INSIDE = frozenset({"skfairdp", "sklearn", "joblib"})


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the first line of the call stack outside skfairdp, scikit-learn and joblib.

    ``warnings.warn(..., stacklevel=4)`` would make the number of calls in between an interface.
    """
    frame, depth = sys._getframe(1), 2
    while frame.f_back is not None and str(frame.f_globals.get("__name__", "")).partition(".")[0] in _INSIDE:
        frame, depth = frame.f_back, depth + 1
    warnings.warn(message, category, stacklevel=depth)


class _Muted:
    """Stands in for ``sys.stdout`` or ``sys.stderr``: drops what is written during a silence, else hands it on.

    Whoever has kept it, because a stream was redirected meanwhile, has an ordinary stream once the silence is over.
    """

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


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Let no warning, print or log record out while the block runs, in this process and its threads.

    Python's warnings, ``sys.stdout``, ``sys.stderr`` and ``logging`` are one for the whole process, so other threads
    are silent as well for as long as it takes. Numpy's floating-point errors are ignored in the calling thread.
    Ctrl-C still works. **Not covered**: what compiled code writes to file descriptors 1 and 2 on its own (the
    ``verbose`` parameters of teachers are 0 for that reason), handles of those that a learner opens, and files.
    """
    # The first one in changes them, the last one out restores them. ``warnings.catch_warnings`` alone would restore in
    # the wrong order where threads overlap. Ctrl-C may come anywhere in here, and a count could then be off for good.
    one = object()
    try:
        with _Silence.lock:
            if not _Silence.inside:
                # A record of its own: what a learner lets through by filters of its own goes there, and is dropped.
                _Silence.undo.enter_context(warnings.catch_warnings(record=True))
                warnings.simplefilter("ignore")
                _Silence.undo.callback(logging.disable, logging.root.manager.disable)
                logging.disable(sys.maxsize)
                for name in ("stdout", "stderr"):
                    _Silence.undo.enter_context(_muted(name))
            _Silence.inside.add(one)
        with np.errstate(all="ignore"):
            yield
    finally:
        with _Silence.lock:
            _Silence.inside.discard(one)
            if not _Silence.inside:
                _Silence.undo.pop_all().close()


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
    items: Iterable[Any] | None = None,
    *,
    desc: str,
    total: int | None = None,
    verbose: int = 0,
    leave: bool = False,
    seconds: float = 0.0,
) -> Any:
    """Iterate with a bar on standard error that shows counts and no rate.

    How long a query or a batch took can depend on private rows (the size of a Poisson batch, the number of rejection
    steps of a sampler), and logs get shared. For the same reason ``total`` has to be a public number: of parts, not of
    parts with two classes. So has ``seconds``, a forecast; without a bar, one of more than ten says how to see one.
    """
    if verbose <= 0 and seconds > _LONG:
        say(f"{desc}: some {seconds:.0f} seconds of work. verbose=1 shows how far it is.", verbose=1)
    return tqdm(
        items,
        desc=desc,
        total=total,
        disable=verbose <= 0,
        leave=leave,
        file=open_stream(sys.stderr) if verbose > 0 else None,
        bar_format="{desc}: {bar} {n_fmt}/{total_fmt}{postfix}",
    )
