"""Which teacher gets which row, without looking at any row; and what every kind of teacher needs for its part."""

import itertools
import math
import numbers
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.utils import check_array
from sklearn.utils.parallel import Parallel, delayed

from skfairdp import _utils
from skfairdp._typing import ArrayLike, Ints

# Votes counted at once: the temporary index array has two MiB, which a cache holds.
_CHUNK_VOTES = 2**18
#: So many rows of a large table, or up to twice as many, are made ready for their teachers at a time.
READY = 2**16


def position_partition(n_rows: int, n_teachers: int, *, random_state: _utils.RandomStateLike = None) -> Ints:
    """Assign every row *position* to one teacher, at random and evenly: a function of public numbers alone, so that
    replacing a row changes the training set of one teacher and the vote histogram by at most ``sqrt(2)`` in L2 norm.
    The seed may be public. It is **not** sound under adding or removing rows, which shifts positions. Stratifying by a
    private column, or hashing row contents, would change many teachers at once: this is the only partition there is."""
    check_count("n_rows", n_rows, "position_partition", lowest=0)
    check_count("n_teachers", n_teachers, "position_partition", lowest=1)
    if n_teachers > n_rows:
        raise ValueError(
            f"The 'n_teachers' parameter must be an integer in [1, number of private rows]: there are more teachers "
            f"than rows ({n_teachers} > {n_rows}). Use fewer teachers."
        )
    return _utils.public_generator(random_state).permutation(np.arange(n_rows, dtype=np.int64) % n_teachers)


@dataclass(frozen=True)
class Parts:
    """Rows, seeds and seen classes of every teacher. Private, like the assignment it is made from."""

    rows: list[Ints]
    seeds: Ints
    seen: NDArray[np.bool_]

    @classmethod
    def of(cls, assignment: Ints, y: Ints, seeds: Ints, n_classes: int) -> Self:
        """Sort rows by teacher."""
        n_teachers = len(seeds)
        order = np.argsort(assignment, kind="stable")
        edges = np.searchsorted(assignment[order], np.arange(n_teachers + 1))
        rows = [order[a:b] for a, b in itertools.pairwise(edges)]
        seen = np.bincount(assignment * n_classes + y, minlength=n_teachers * n_classes) > 0
        seen = seen.reshape(n_teachers, n_classes)
        seen[[len(part) == 0 for part in rows], 0] = True
        return cls(rows=rows, seeds=seeds, seen=seen)

    @property
    def constant(self) -> NDArray[np.bool_]:
        """Teachers that have seen one class only, and answer it without any training."""
        return self.seen.sum(axis=1) == 1

    def rows_to_train(self) -> tuple[Ints, Ints]:
        """The rows of all teachers, one after the other, and how many each has.
        Teachers with a constant vote keep their place, without rows: the shapes are the same for all data."""
        used = [rows[:0] if constant else rows for rows, constant in zip(self.rows, self.constant, strict=True)]
        return np.concatenate(used), np.array([len(part) for part in used])

    def blocks(self, at_most: int) -> list["Parts"]:
        """Cut into runs of teachers of even size, as few as ``at_most`` teachers a run allow.
        Where the cuts fall depends on the number of teachers only, never on rows or on how many workers there are."""
        n_teachers = len(self.seeds)
        size = -(-n_teachers // -(-n_teachers // at_most))
        runs = map(slice, range(0, n_teachers, size), range(size, n_teachers + size, size))
        return [Parts(self.rows[run], self.seeds[run], self.seen[run]) for run in runs]


def vote_histogram(predictions: ArrayLike, n_classes: int) -> Ints:
    """Count the teachers' votes for each row and class. The counts are **private**. Where one record changes one
    teacher, they change by at most ``sqrt(2)`` in L2 norm per row of the histogram, and their maximum by at most 1."""
    votes = np.asarray(predictions)
    n_teachers, n_rows = votes.shape
    out = np.empty((n_rows, n_classes), dtype=np.int64)
    chunk = max(1, _CHUNK_VOTES // max(n_teachers, 1))
    for start in range(0, n_rows, chunk):
        part = votes[:, start : start + chunk]
        width = part.shape[1]
        cells = part.astype(np.int64) + n_classes * np.arange(width)
        out[start : start + width] = np.bincount(cells.ravel(), minlength=width * n_classes).reshape(width, n_classes)
    return out


def in_turns(assigned: Ints, n_teachers: int, n_units: int | None = None) -> Iterator[tuple[NDArray[np.bool_], slice]]:
    """Rows of some teachers at a time, and which teachers: what is made ready for them is never a copy of all rows. A
    function of public sizes and of who teaches whom alone: of the number of rows, or of subjects where that is private.
    The turns of a small table are one."""
    together = -(-n_teachers // max(1, (len(assigned) if n_units is None else n_units) // READY))
    for first in range(0, n_teachers, together):
        yield (assigned >= first) & (assigned < first + together), slice(first, min(first + together, n_teachers))


def rounded_down(values: NDArray[np.float64], step: float | None) -> NDArray[np.float64]:
    """Numbers as multiples of a power of two, none of them larger than before; themselves where there is no step."""
    return values if step is None else np.floor(values / step) * step


def check_count(name: str, value: object, owner: str, *, lowest: int) -> None:
    """Raise a ValueError unless ``value`` is an integer of at least ``lowest``."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < lowest:
        raise _utils.invalid_parameter(name, owner, f"an integer >= {lowest}", value)


def run_tasks(
    function: Callable[..., Any],
    tasks: Iterable[tuple[Any, ...]],
    n_tasks: int,
    *,
    n_jobs: int | None = None,
    verbose: int = 0,
    default_threads: int = 1,
) -> list[Any]:
    """Call ``function(*task)`` for every task through joblib's active backend, in order, with a bar when verbose.
    ``n_tasks`` is what the bar shows: a public number. Nothing else is seen or heard of the tasks.
    ``default_threads`` is how many threads to use where neither ``n_jobs`` nor a ``joblib.parallel_config`` says
    anything; for functions that spend their time outside the interpreter lock."""
    prefer = "threads" if default_threads > 1 else None
    if n_jobs is None and effective_n_jobs(None) == 1:
        n_jobs = default_threads
    parallel = Parallel(n_jobs=n_jobs, prefer=prefer, return_as="generator")
    with _utils.silence():
        results = parallel(delayed(_in_silence)(function, *task) for task in tasks)
        return list(_utils.progress_bar(results, total=n_tasks, desc="teachers", verbose=verbose))


def _in_silence(function: Callable[..., Any], *task: Any) -> Any:
    with _utils.silence():  # once more: the task may run in another process
        return function(*task)


def check_number(
    owner: object, name: str, *, above: float | None = None, least: float | None = None, integer: bool = False
) -> None:
    """Raise a ValueError unless parameter ``name`` of ``owner`` is a finite number in the range."""
    value = getattr(owner, name)
    kind = numbers.Integral if integer else numbers.Real
    good = isinstance(value, kind) and not isinstance(value, bool) and math.isfinite(value)
    if not good or (above is not None and value <= above) or (least is not None and value < least):
        low = f"[{least}" if above is None else f"({above}"
        must = f"{'an integer' if integer else 'a float'} in the range {low}, inf)"
        raise _utils.invalid_parameter(name, type(owner).__name__, must, value)


def numeric_rows(X: Any, *, owner: str, n_features: int | None = None, allow_nd: bool = False) -> NDArray[np.floating]:
    """Return X as a finite float array without copying a float32 or float64 one."""
    how: dict[str, Any] = {"allow_nd": allow_nd, "ensure_min_samples": 0, "ensure_all_finite": False}
    with _utils.without_context():
        try:
            X = check_array(X, dtype=[np.float64, np.float32], input_name="X", **how)
        except (ValueError, TypeError):
            # scikit-learn quotes the entry it could not convert; here that entry may be private.
            raise ValueError(
                f"X of {owner} must be a dense table of numbers. Encode its columns first (with an encoder fitted on "
                "public rows), or give a scikit-learn Pipeline that encodes them as the teacher."
            ) from None
    if not all(np.isfinite(X[some]).all() for some in _utils.row_blocks(len(X))):
        raise ValueError(f"X of {owner} contains NaN or infinity. Impute those entries, or drop the rows.")
    if n_features is not None and X.shape[1] != n_features:
        raise ValueError(f"X of {owner} has {X.shape[1]} features, but the teachers were trained on {n_features}.")
    return X
