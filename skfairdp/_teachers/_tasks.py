"""What every kind of teacher needs: checked parameters, finite rows, and a loop over tasks that nobody hears."""

import math
import numbers
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.utils import check_array
from sklearn.utils.parallel import Parallel, delayed

from skfairdp.utils import progress_bar, silence

__all__ = ["check_number", "numeric_rows", "run_tasks"]


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


def check_number(
    owner: object, name: str, *, above: float | None = None, least: float | None = None, integer: bool = False
) -> None:
    """Raise a ValueError unless parameter ``name`` of ``owner`` is a finite number in the range."""
    value = getattr(owner, name)
    kind = numbers.Integral if integer else numbers.Real
    good = isinstance(value, kind) and not isinstance(value, bool) and math.isfinite(value)
    if not good or (above is not None and value <= above) or (least is not None and value < least):
        raise ValueError(
            f"The '{name}' parameter of {type(owner).__name__} must be {'an integer' if integer else 'a float'} "
            f"in the range {f'({above}' if above is not None else f'[{least}'}, inf). Got {value!r} instead."
        )


def numeric_rows(X: Any, *, owner: str, n_features: int | None = None, allow_nd: bool = False) -> NDArray[np.floating]:
    """Return X as a finite float array without copying a float32 or float64 one.

    Raises
    ------
    ValueError
        Not numbers, not finite, wrong number of columns. The message contains no value of X.
    """
    problem: Exception | None = None
    try:
        X = check_array(
            X,
            dtype=[np.float64, np.float32],
            allow_nd=allow_nd,
            ensure_min_samples=0,
            input_name="X",
            ensure_all_finite=False,
        )
    except (ValueError, TypeError):
        # scikit-learn quotes the entry it could not convert; here that entry may be private.
        problem = ValueError(
            f"X of {owner} must be a dense table of numbers. Encode its columns first (with an encoder fitted on "
            "public rows), or give a scikit-learn Pipeline that encodes them as the teacher."
        )
    if problem is not None:
        raise problem  # outside the block: no context that quotes a value
    if not np.isfinite(X).all():
        raise ValueError(f"X of {owner} contains NaN or infinity. Impute those entries, or drop the rows.")
    if n_features is not None and X.shape[1] != n_features:
        raise ValueError(f"X of {owner} has {X.shape[1]} features, but the teachers were trained on {n_features}.")
    return X
