"""Rows of a dask DataFrame: dask runs one task for each partition, on its threads or on a cluster."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, reduce
from typing import Any

import dask
import numpy as np
from dask.base import get_scheduler
from dask.callbacks import Callback

from skfairdp._rows._opened import as_pandas
from skfairdp._rows._source import Chunk, Made, PartWork, RowsOfFrame, Split, Sum, Tenths, made_by_threads, summed
from skfairdp._typing import Array
from skfairdp._utils import progress_bar

_FAN_IN = 8  # sums that are added by one task
_MOST_TASKS = 128  # of parts, some of them together, since each costs a scheduler a millisecond for every partition


class DaskRows(RowsOfFrame):
    """A dask DataFrame."""

    fewest_parts = 8
    spills = False

    @property
    def n_rows(self) -> int:
        return sum(self._lengths)

    @cached_property
    def _lengths(self) -> tuple[int, ...]:
        """Rows of each partition, from one pass."""
        count = dask.delayed(len, pure=False)
        return tuple(dask.compute(*[count(part) for part in self.frame.to_delayed()]))

    def _partitions(self) -> list[tuple[int, int, Any]]:
        """Those that have rows, as a filter may leave some without: their rows, and how many are before them. A row's
        place is its number over all partitions. Where a partition ends may follow what is in it: blocks of a text file
        end after so many bytes, so that one longer record moves rows from one partition to the next."""
        before = itertools.accumulate(self._lengths, initial=0)
        parts = zip(self._lengths, before, self.frame.to_delayed(), strict=False)
        return [(length, start, part) for length, start, part in parts if length]

    def chunks(self) -> Iterator[Chunk]:
        for _, start, part in self._partitions():
            yield Chunk(as_pandas(part.compute()), (start,))

    def map_reduce(self, function: Callable[[Chunk], Sum], add: Callable[[Sum, Sum], Sum]) -> Sum | None:
        apply, once = dask.delayed(_applied, pure=False), _sent_once(function)
        sums = [apply(once, part, start) for _, start, part in self._partitions()]
        with self._rows_shown(sums) as seen:
            return _summed(seen, add)

    def each(self, function: Callable[[Chunk], Made]) -> Iterator[Made]:
        """A few partitions at a time reach the driver."""
        apply = dask.delayed(_applied, pure=False)
        tasks = ((length, apply(function, part, start)) for length, start, part in self._partitions())
        scheduler = get_scheduler()  # of this thread
        return self._shown(made_by_threads(tasks, lambda task: (task[0], task[1].compute(scheduler=scheduler))))

    def by_part(self, work: PartWork[Sum]) -> Sum | None:
        """One pass: workers hand each other encoded rows, and only sums reach the driver."""
        n_parts, several = work.n_parts, -(-work.n_parts // _MOST_TASKS)
        deal, dealing = dask.delayed(_dealt, pure=False, nout=-(-n_parts // several)), _sent_once(work.split)
        tasks = [deal(dealing, n_parts, several, rows, start) for _, start, rows in self._partitions()]
        with self._rows_shown(tasks) as dealt:
            finish, using = dask.delayed(_used, pure=False), _sent_once(work.use)
            bundles = [range(n_parts)[first : first + several] for first in range(0, n_parts, several)]
            used = [finish(using, work.add, parts, [of[j] for of in dealt]) for j, parts in enumerate(bundles)]
            with _shown(("parts of X", n_parts), used, [*map(len, bundles)], self.verbose) as seen:
                return _summed(seen, work.add)

    def _rows_shown(self, tasks: list[Any]) -> Any:
        """A bar over the rows of partitions whose task has ended."""
        return _shown(self.bar, tasks, [length for length in self._lengths if length], self.verbose)


@contextmanager
def _shown(named: tuple[str, int], tasks: list[Any], weights: list[int], verbose: int) -> Iterator[list[Any]]:
    """Show how much of some tasks has ended, wherever they run; hands on tasks that make the same values."""
    if verbose <= 0:
        yield tasks
        return
    with progress_bar(desc=named[0], total=named[1], verbose=verbose) as bar:
        shown = Tenths(bar, sum(weights))
        client: Any = getattr(get_scheduler(), "__self__", None)  # of a cluster
        if not hasattr(client, "persist"):
            of_task = dict(zip((task.key for task in tasks), weights, strict=True))
            with Callback(posttask=lambda key, *_: shown.add(of_task.get(key, 0))):
                yield tasks
            return
        from distributed import futures_of

        tasks = client.persist(tasks)
        for task, weight in zip(tasks, weights, strict=True):
            for future in futures_of(task):
                future.add_done_callback(lambda _, weight=weight: shown.add(weight))
        yield tasks


def _summed(sums: list[Any], add: Callable[[Sum, Sum], Sum]) -> Sum | None:
    join = dask.delayed(summed, pure=False)
    while len(sums) > 1:
        sums = [join(sums[j : j + _FAN_IN], add) for j in range(0, len(sums), _FAN_IN)]
    return dask.compute(*sums)[0] if sums else None


def _sent_once(function: Any) -> Any:
    """A function as a node of the graph, which goes to each worker once: teachers carry MBs of queries along."""
    return dask.delayed(_Held(function), pure=False, traverse=False)


class _Held:
    """Keeps dask from looking into a function, and from naming its node after what is in it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)


def _dealt(split: Callable[[Chunk], Split], n_parts: int, several: int, table: Any, start: int) -> list[Split]:
    rows, parts = split(Chunk(as_pandas(table), (start,)))
    order = np.argsort(parts, kind="stable")
    ends = np.searchsorted(parts[order], np.arange(several, n_parts, several))
    return list(zip(np.split(rows[order], ends), np.split(parts[order], ends), strict=True))


def _used(use: Callable[[int, Array], Sum], add: Callable[[Sum, Sum], Sum], bundle: range, dealt: list[Split]) -> Sum:
    rows, parts = (np.concatenate(column) for column in zip(*dealt, strict=True))
    order = np.argsort(parts, kind="stable")
    of_parts = np.split(rows[order], np.searchsorted(parts[order], bundle[1:]))
    return reduce(add, map(use, bundle, of_parts))


def _applied(function: Callable[[Chunk], Sum], table: Any, start: int) -> Sum:
    return function(Chunk(as_pandas(table), (start,)))
