"""The parts of a partition, and the loop over them."""

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.utils.parallel import Parallel, delayed

from skfairdp.utils import progress_bar, silence

__all__ = ["Parts", "run_tasks"]


@dataclass(frozen=True)
class Parts:
    """Rows, seeds and seen classes of every teacher. Private, like the assignment it is made from.

    Attributes
    ----------
    rows : list of ndarray of int
        Row numbers of each teacher, ascending.
    seeds : ndarray of shape (n_teachers,), dtype int64
    seen : ndarray of shape (n_teachers, n_classes), dtype bool
        Classes among the teacher's rows. A teacher without rows counts as having seen class 0.
    """

    rows: list[NDArray[np.int64]]
    seeds: NDArray[np.int64]
    seen: NDArray[np.bool_]

    @classmethod
    def of(
        cls, assignment: NDArray[np.int64], y: NDArray[np.int64], seeds: NDArray[np.int64], n_classes: int
    ) -> "Parts":
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

    def blocks(self, at_most: int) -> list["Parts"]:
        """Cut into runs of teachers of even size, as few as ``at_most`` teachers a run allow.

        Where the cuts fall depends on the number of teachers only, never on rows or on how many workers there are.
        """
        n_teachers = len(self.seeds)
        size = -(-n_teachers // -(-n_teachers // at_most))
        runs = (slice(start, start + size) for start in range(0, n_teachers, size))
        return [Parts(self.rows[run], self.seeds[run], self.seen[run]) for run in runs]


def run_tasks(
    function: Callable[..., Any],
    tasks: Iterable[tuple[Any, ...]],
    n_tasks: int,
    *,
    n_jobs: int | None,
    verbose: int,
    default_threads: int = 1,
) -> list[Any]:
    """Call ``function(*task)`` for every task through joblib's active backend, in order, with a bar when verbose.

    ``n_tasks`` is what the bar shows: a public number. Nothing else is seen or heard of the tasks.

    ``default_threads`` is how many threads to use where neither ``n_jobs`` nor a ``joblib.parallel_config`` says
    anything; for functions that spend their time outside the interpreter lock.
    """
    prefer = "threads" if default_threads > 1 else None
    if n_jobs is None and effective_n_jobs(None) == 1:
        n_jobs = default_threads
    parallel = Parallel(n_jobs=n_jobs, prefer=prefer, return_as="generator")
    with silence():
        results = parallel(delayed(_in_silence)(function, *task) for task in tasks)
        return list(progress_bar(results, total=n_tasks, desc="teachers", verbose=verbose))


def _in_silence(function: Callable[..., Any], *task: Any) -> Any:
    with silence():  # once more: the task may run in another process
        return function(*task)
