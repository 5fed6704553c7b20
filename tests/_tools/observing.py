"""Everything an observer sees of a fit, as plain values that can be compared byte by byte."""

import contextlib
import copyreg
import functools
import inspect
import io
import itertools
import logging
import os
import pickle
import random
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import torch
import tqdm
from sklearn.base import BaseEstimator

from skfairdp import PrivacyLedger

__all__ = ["Seen", "handed_on", "observed", "plain", "stored"]

#: scikit-learn numbers the HTML pages of a process; objects without a text of their own show where they lie.
_PAGE = re.compile(r"sk-container-id-\d+|sk-estimator-id-\d+|(0x|\.\.\.x?)[0-9a-f]{6,}")
#: A page quotes the docstring of its class, which it dedents anew for every parameter.
_getdoc = functools.cache(inspect.getdoc)


@dataclass
class Seen:
    """What one run showed, part by part."""

    parts: dict[str, Any]

    def differences(self, other: "Seen") -> list[str]:
        """Each part that is not the same, in words."""
        told = []
        for name in dict.fromkeys([*self.parts, *other.parts]):
            told += list(_unlike(name, self.parts.get(name), other.parts.get(name)))
        # A page, a state and the bytes of a pickle say no more than the attributes, where these tell already.
        named = [text for text in told if not text.startswith(("pickle", "HTML", "handed on"))]
        return named or told

    @property
    def error(self) -> tuple[str, str] | None:
        """Type and text of the exception that ended the fit."""
        chain = self.parts["exceptions"]
        return chain[0] if chain else None


def observed(make: Callable[[], Any], fit: Callable[[Any], Any], probe: Callable[[Any], Any] | None = None) -> Seen:
    """Make an estimator, fit it, look at everything, and ask it for what ``probe`` asks."""
    parts: dict[str, Any] = {"exceptions": []}
    estimator, fitted = None, None
    _seed_global_generators()
    with _watched(parts):
        try:
            estimator = make()
            fitted = fit(estimator)
        except Exception as error:
            parts["exceptions"] = _chain(error)
    parts["global generators"] = _global_generators()
    with _watched(parts, suffix=" afterwards"):
        parts.update(_looks(estimator if fitted is None else fitted))
        if fitted is not None and probe is not None:
            parts["answers"] = plain(probe(fitted))
    return Seen(parts)


def _looks(thing: Any) -> dict[str, Any]:
    """An object as a user can look at it."""
    found = {"attributes": plain(thing), "pickle": stored(thing), "repr": repr(thing)}
    with mock.patch.object(PrivacyLedger, "__reduce__", return_value=(type, ("a ledger",))):
        found["handed on"] = handed_on(thing)
    for part in thing if isinstance(thing, tuple) else (thing,):
        page = getattr(part, "_repr_html_", None)
        if page is not None:
            with mock.patch.object(inspect, "getdoc", _getdoc):
                found[f"HTML of {type(part).__name__}"] = _PAGE.sub("id", page() or "")
        for name, value in sorted(getattr(part, "__dict__", {}).items()):
            if name.endswith("_") and not name.startswith("_"):
                found[f"repr of {name}"] = repr(value)
    return found


# ---- values ----------------------------------------------------------------------------------------------------
def plain(value: Any, *, depth: int = 0) -> Any:
    """A value as nested tuples and dicts of plain ones, in which equal means byte for byte the same."""
    kind = type(value).__name__
    assert depth < 40, "a cycle"

    def inside(part: Any) -> Any:
        return plain(part, depth=depth + 1)

    if value is None or isinstance(value, int | str | bytes):
        return value if type(value) in (type(None), int, str, bytes) else (kind, str(value))
    if isinstance(value, float):
        return (kind, value.hex())
    if isinstance(value, np.ndarray):
        if value.dtype == object:
            return ("ndarray", "object", value.shape, [inside(entry) for entry in value.ravel().tolist()])
        return ("ndarray", str(value.dtype), value.shape, value.tobytes())
    if isinstance(value, np.generic):
        return (kind, str(value.dtype), value.tobytes())
    if isinstance(value, pd.DataFrame | pd.Series | pd.Index):
        return (kind, _table(value, inside))
    if isinstance(value, dict):
        return {"kind": kind, "keys": repr(list(value)), **{repr(key): inside(entry) for key, entry in value.items()}}
    if isinstance(value, list | tuple):
        return (kind, [inside(entry) for entry in value])
    if isinstance(value, set | frozenset):
        return (kind, sorted((inside(entry) for entry in value), key=repr))
    if isinstance(value, PrivacyLedger):
        return kind  # its charges are on record
    if isinstance(value, torch.Tensor):
        return (kind, str(value.dtype), tuple(value.shape), value.detach().cpu().contiguous().numpy().tobytes())
    if isinstance(value, torch.nn.Module):
        return {"kind": kind, "training": value.training, **{k: inside(v) for k, v in value.state_dict().items()}}
    if isinstance(value, np.random.Generator):
        return (kind, repr(value.bit_generator.state))
    if is_dataclass(value) and not isinstance(value, BaseEstimator):
        return {"kind": kind, **{f.name: inside(getattr(value, f.name)) for f in fields(value)}}
    if isinstance(value, type) or (callable(value) and hasattr(value, "__qualname__")):
        return f"{value.__module__}.{value.__qualname__}"
    return {"kind": kind, **{name: inside(entry) for name, entry in sorted(_state(value).items())}}


def _table(value: Any, inside: Callable[[Any], Any]) -> Any:
    if isinstance(value, pd.DataFrame):
        return [inside(value.columns), inside(value.index), [inside(value.iloc[:, j]) for j in range(value.shape[1])]]
    said = [str(value.dtype), repr(value.name)]
    if isinstance(value.dtype, pd.CategoricalDtype):
        codes = value.cat.codes if isinstance(value, pd.Series) else pd.Series(value.codes)
        return [*said, inside(value.dtype.categories), value.dtype.ordered, inside(codes.to_numpy())]
    index = [] if isinstance(value, pd.Index) else [inside(value.index)]
    return [*said, *index, inside(value.to_numpy())]


def _state(value: Any) -> dict[str, Any]:
    if hasattr(value, "__dict__"):
        return dict(vars(value))
    slots = [name for cls in type(value).__mro__ for name in getattr(cls, "__slots__", ())]
    return {name: getattr(value, name) for name in slots if hasattr(value, name)} or {"repr": repr(value)}


def handed_on(value: Any) -> Any:
    """What a format such as skops stores: of estimators and our objects their ``__getstate__``."""
    if isinstance(value, dict):
        return {key if isinstance(key, str) else repr(key): handed_on(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return type(value).__name__, [handed_on(entry) for entry in value]
    ours = isinstance(value, BaseEstimator) or type(value).__module__.startswith("skfairdp.")
    if ours and hasattr(value, "__dict__") and not isinstance(value, str | type | Callable):
        return {"kind": type(value).__name__, **handed_on(value.__getstate__())}
    return plain(value)


class _Pickler(pickle.Pickler):
    """Pickles as usual, but for tensors, whose storages are named by addresses, and ledgers, which are shared."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return copyreg.__newobj__, (object,), plain(value)
        if isinstance(value, PrivacyLedger):
            return copyreg.__newobj__, (object,), "a ledger"
        return NotImplemented


def stored(thing: Any) -> bytes | str:
    """The bytes of its pickle; where it has none, why."""
    found = io.BytesIO()
    try:
        _Pickler(found, protocol=5).dump(thing)
    except (TypeError, AttributeError, pickle.PicklingError) as error:
        return f"{type(error).__name__}: {error}"
    return found.getvalue()


# ---- what a run leaves around ----------------------------------------------------------------------------------
@contextlib.contextmanager
def _watched(parts: dict[str, Any], suffix: str = "") -> Iterator[None]:
    """Warnings, printed text, log records and files of what happens within."""
    records = _Records()
    root = logging.getLogger()
    level = root.level
    with (
        tempfile.TemporaryDirectory() as folder,
        tempfile.TemporaryFile() as printed,
        tempfile.TemporaryFile() as complained,
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always")
        root.addHandler(records)
        root.setLevel(1)
        try:
            with _regular_clock(), _working_in(folder), _into(printed, "stdout", 1), _into(complained, "stderr", 2):
                yield
        finally:
            root.setLevel(level)
            root.removeHandler(records)
            parts[f"warnings{suffix}"] = [(w.category.__name__, str(w.message)) for w in caught]
            parts[f"log{suffix}"] = records.lines
            parts[f"stdout{suffix}"] = _text(printed)
            parts[f"stderr{suffix}"] = _text(complained)
            files = sorted(path for path in Path(folder).rglob("*") if path.is_file())
            parts[f"files{suffix}"] = {str(path.relative_to(folder)): path.read_bytes() for path in files}


class _Records(logging.Handler):
    def __init__(self) -> None:
        super().__init__(level=1)
        self.lines: list[tuple[str, int, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append((record.name, record.levelno, record.getMessage()))


@contextlib.contextmanager
def _working_in(folder: str) -> Iterator[None]:
    before, temporary = Path.cwd(), tempfile.tempdir
    os.chdir(folder)
    tempfile.tempdir = folder
    try:
        yield
    finally:
        tempfile.tempdir = temporary
        os.chdir(before)


@contextlib.contextmanager
def _regular_clock() -> Iterator[None]:
    """A clock that moves on by a second whenever a progress bar looks: it draws every step, and the same times."""
    seconds = itertools.count()
    before, interval = tqdm.std.time, tqdm.tqdm.monitor_interval
    tqdm.std.time, tqdm.tqdm.monitor_interval = lambda: float(next(seconds)), 0
    try:
        yield
    finally:
        tqdm.std.time, tqdm.tqdm.monitor_interval = before, interval


@contextlib.contextmanager
def _into(file: Any, name: str, descriptor: int) -> Iterator[None]:
    """What Python prints and what is written to the descriptor, by libraries in C and by child processes."""
    saved = os.dup(descriptor)
    getattr(sys, name).flush()
    os.dup2(file.fileno(), descriptor)
    text = io.TextIOWrapper(io.FileIO(os.dup(file.fileno()), "a"), encoding="utf-8", write_through=True)
    redirect = contextlib.redirect_stdout if name == "stdout" else contextlib.redirect_stderr
    try:
        with redirect(text):
            yield
    finally:
        text.close()
        os.dup2(saved, descriptor)
        os.close(saved)


def _text(file: Any) -> str:
    file.seek(0)
    return str(file.read().decode(errors="replace"))


def _chain(error: BaseException) -> list[tuple[str, str]]:
    """Type and text of an exception and of all that it carries: a logger prints them."""
    found: list[tuple[str, str]] = []
    waiting: list[BaseException | None] = [error]
    while waiting:
        at = waiting.pop(0)
        if at is not None:
            found.append((type(at).__name__, str(at)))
            waiting += [at.__cause__, None if at.__context__ is at.__cause__ else at.__context__]
    return found


def _seed_global_generators() -> None:
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002 - whether anybody draws from it is what is watched
    torch.manual_seed(0)


def _global_generators() -> list[Any]:
    return [repr(random.getstate()), repr(np.random.get_state()), torch.get_rng_state().numpy().tobytes()]  # noqa: NPY002


# ---- where two values part -------------------------------------------------------------------------------------
def _unlike(where: str, a: Any, b: Any) -> Iterator[str]:
    if a == b and type(a) is type(b):
        return
    if isinstance(a, dict) and isinstance(b, dict):
        for key in dict.fromkeys([*a, *b]):
            if key not in a or key not in b:
                side = "D" if key in a else "D'"
                yield f"{where}: only {side} has {key}"
            else:
                yield from _unlike(f"{where}.{key}", a[key], b[key])
    elif isinstance(a, list | tuple) and isinstance(b, list | tuple) and len(a) == len(b):
        for i, (one, other) in enumerate(zip(a, b, strict=True)):
            yield from _unlike(f"{where}[{i}]", one, other)
    else:
        one, other = _excerpts(a, b)
        yield f"{where}: {one} on D, {other} on D'"


def _excerpts(a: Any, b: Any) -> tuple[str, str]:
    """Both values, cut to where they begin to differ."""
    one, other = repr(a), repr(b)
    at = next((i for i, pair in enumerate(zip(one, other, strict=False)) if len(set(pair)) > 1), 0)
    cut = [text if len(text) <= 120 else f"...{text[max(at - 40, 0) : at + 60]}..." for text in (one, other)]
    return cut[0], cut[1]
