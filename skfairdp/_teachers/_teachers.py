"""Fitting one teacher per part, with any engine, and asking all of them."""

import contextlib
import hmac
import os
import secrets
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from joblib import Memory, hash as hash_of
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils.validation import check_memory

from skfairdp._teachers._classifiers import fit_classifiers
from skfairdp._teachers._logistic import LogisticTeachers
from skfairdp._teachers._network_teachers import MLPTeachers, ModuleTeachers
from skfairdp._teachers._partition import Parts, check_count
from skfairdp._typing import ArrayLike
from skfairdp._utils import RandomStateLike, child_seeds, public_generator, silence


class TeacherCache(Protocol):
    """Remembers trained teachers: a ``joblib.Memory``, or anything with this method.

    What a result depends on is given by position, and only that; what is given by name, and listed in ``ignore``, says
    how to work (``n_jobs``, ``verbose``).
    """

    def cache(self, function: Callable[..., Any], *, ignore: list[str]) -> Callable[..., Any]:
        """Return a function that calls ``function`` once for each list of positional arguments."""


class _Ensemble(Protocol):
    def predict(self, X: Any) -> NDArray[np.int32]: ...

    def summed_probabilities(self, X: Any, n_classes: int, step: float | None = None) -> NDArray[np.float64]: ...


class Teachers:
    """Fitted teachers. **Private**: no object that outlives a private fit may hold one, nor its predictions.

    Made by :func:`fit_teachers`.
    """

    def __init__(self, ensemble: _Ensemble, n_teachers: int) -> None:
        self._ensemble = ensemble
        self.n_teachers = n_teachers

    def predict(self, X: Any) -> NDArray[np.int32]:
        """Return every teacher's vote on every row."""
        with silence():
            return self._ensemble.predict(X)

    def summed_probabilities(self, X: Any, n_classes: int, step: float | None = None) -> NDArray[np.float64]:
        """Return the sum over teachers of their class probabilities: votes that may be split."""
        with silence():
            return self._ensemble.summed_probabilities(X, n_classes, step)

    def __repr__(self) -> str:
        return f"Teachers(n_teachers={self.n_teachers})"


def fit_teachers(
    teacher: Any,
    X: Any,
    y: ArrayLike,
    assignment: ArrayLike,
    *,
    n_teachers: int,
    n_classes: int,
    random_state: RandomStateLike = None,
    seeds: NDArray[np.int64] | None = None,
    n_jobs: int | None = None,
    memory: TeacherCache | Memory | str | os.PathLike[str] | None = None,
    verbose: int = 0,
) -> Teachers:
    """Train one teacher on the rows assigned to it, independently of all other rows.

    With a ``memory``, **the cache holds private teachers**, some of which hold rows: keep it where the private data may
    be, and delete it with them.

    Teacher i is a function of its own rows, its own seed and public settings only: whatever the other parts hold,
    it comes out the same bit for bit. Together with a data-independent assignment this is what bounds the influence
    of one record by one vote. Where a part has a single class its teacher always answers that class, and where it
    has no rows, class 0: a constant vote keeps the influence of a record at one vote, re-drawing the part would not.

    **Every part has its vote, whatever its rows do to its teacher.** Where a classifier cannot be fitted on its part
    (one fold without a class, a number that overflows) it always answers class 0; where it cannot predict, or predicts
    what is no class, that vote is for class 0. Nothing tells it: no error, warning, print, log record or count. Errors
    that parameters cause are the matter of :func:`dry_run_teacher`, which reads public rows.

    References
    ----------
    Papernot, Abadi, Erlingsson, Goodfellow, Talwar (2017), "Semi-supervised knowledge transfer for deep learning
    from private training data": teachers on disjoint parts, votes as the only thing aggregated.
    """
    check_count("n_teachers", n_teachers, "fit_teachers", lowest=1)
    check_count("n_classes", n_classes, "fit_teachers", lowest=1)
    if not hasattr(X, "shape"):
        X = np.asarray(X)
    codes = _codes(y, "y", X.shape[0], n_classes)
    part_of = _codes(assignment, "assignment", X.shape[0], n_teachers)
    engine = engine_of(teacher)
    if engine is not None:
        X = engine._validate(X)
    if seeds is None:
        seeds = child_seeds(public_generator(random_state), n_teachers)
    store = check_memory(os.fspath(memory) if isinstance(memory, os.PathLike) else memory)
    asked = teacher if engine is None else engine, X, codes, part_of, seeds, n_classes
    with silence():
        if isinstance(store, Memory) and store.location is not None:
            ensemble = _remembered(store, asked, n_jobs, verbose)
        else:
            cache = partial(store.cache, verbose=0) if isinstance(store, Memory) else store.cache
            ensemble = cache(_train_private_teachers, ignore=["n_jobs", "verbose"])(
                *asked, n_jobs=n_jobs, verbose=verbose
            )
    return Teachers(ensemble, n_teachers)


def _train_private_teachers(
    teacher: Any,
    X: Any,
    y: NDArray[np.int64],
    assignment: NDArray[np.int64],
    seeds: NDArray[np.int64],
    n_classes: int,
    *,
    n_jobs: int | None,
    verbose: int,
) -> _Ensemble:
    """Train all teachers. A cache of this function holds PRIVATE teachers: it is as private as the rows themselves.

    Whoever reads it can query each teacher without noise. Nothing that is published may point to it.
    """
    parts = Parts.of(assignment, y, seeds, n_classes)
    if isinstance(teacher, LogisticTeachers | MLPTeachers | ModuleTeachers):
        return teacher._fit_parts(X, y, parts, n_jobs=n_jobs, verbose=verbose)
    return fit_classifiers(teacher, X, y, parts, n_jobs=n_jobs, verbose=verbose)


def _remembered(store: Memory, asked: tuple[Any, ...], n_jobs: int | None, verbose: int) -> _Ensemble:
    """Train, or find trained teachers under a keyed digest: joblib writes down the arguments that it sees.

    The key lies beside them, in a folder that only its owner can enter.
    """
    folder = Path(str(store.store_backend.location))
    before = os.umask(0o077)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
        key = folder / "key"
        with contextlib.suppress(FileExistsError), key.open("xb") as file:
            file.write(secrets.token_bytes(32))
        digest = hmac.new(key.read_bytes(), hash_of(asked).encode(), "sha256").hexdigest()
        # A Memory prints the arguments of what it calls, which here are private rows, unless it is told not to.
        train = store.cache(_train_once, ignore=["asked", "n_jobs", "verbose"], verbose=0)
        found: _Ensemble = train(digest, asked, n_jobs, verbose)
        return found
    finally:
        os.umask(before)


def _train_once(digest: str, asked: tuple[Any, ...], n_jobs: int | None, verbose: int) -> _Ensemble:
    return _train_private_teachers(*asked, n_jobs=n_jobs, verbose=verbose)


def engine_of(teacher: Any) -> LogisticTeachers | MLPTeachers | ModuleTeachers | None:
    """The batched engine that ``teacher`` names, or None for a classifier that is cloned for each part."""
    if isinstance(teacher, LogisticTeachers | MLPTeachers | ModuleTeachers):
        return teacher
    if isinstance(teacher, str) and teacher in ("logistic", "mlp"):
        return LogisticTeachers() if teacher == "logistic" else MLPTeachers()
    learns = hasattr(teacher, "fit") and not isinstance(teacher, type)
    if learns and isinstance(teacher, BaseEstimator):  # some have 'predict' only once they are fitted
        if is_classifier(teacher):
            return None
    elif learns and hasattr(teacher, "predict"):
        return None
    elif callable(teacher) and not hasattr(teacher, "get_params"):
        return ModuleTeachers(teacher)
    raise ValueError(
        "The 'teacher' parameter must be 'logistic', 'mlp', a LogisticTeachers, MLPTeachers or ModuleTeachers, a "
        f"scikit-learn classifier, or a torch module. Got {teacher!r} instead."
    )


def rehearse_engine(engine: LogisticTeachers | MLPTeachers | ModuleTeachers, X: Any, n_classes: int) -> None:
    """Try the parameters of a batched engine on public rows, and raise the error that training would meet."""
    engine._rehearse(X, n_classes)


def _codes(values: ArrayLike, name: str, n_rows: int, stop: int) -> NDArray[np.int64]:
    codes = np.asarray(values)
    if codes.shape != (n_rows,):
        raise ValueError(
            f"{name} of fit_teachers must have shape ({n_rows},), one entry per row of X. Got shape {codes.shape}."
        )
    if codes.dtype.kind not in "iu" or (n_rows and (codes.min() < 0 or codes.max() >= stop)):
        raise ValueError(f"{name} of fit_teachers must be integer codes in [0, {stop}).")
    return codes.astype(np.int64)
