"""Which bin a number is in: a look at its first two bytes, and few comparisons in place of a search."""

from functools import cache

import numpy as np
from numpy.typing import NDArray

_FEW = 16  # starts: so many comparisons of all numbers are faster than a look at their first bytes
_WORTH_A_TABLE = 32_768  # numbers: a table of 65,536 entries is made first
_MOST_COMPARED = 4  # starts, one after the other; with more numpy's search is as fast


class BinSearch:
    """How many starts are at most a number: what ``np.searchsorted(starts, numbers, side="right")`` says.

    The first two bytes of a float are its sign, its power of two and four bits more. A table says how many starts have
    lower first bytes; those with the same ones, mostly one or none, are compared with the number itself. Few starts are
    all compared.
    """

    def __init__(self, starts: NDArray[np.float64], n_numbers: int) -> None:
        self.starts, self._ends = starts, np.append(starts, np.nan)  # which no number reaches
        self._below: NDArray[np.uint16] | None = None
        if len(starts) <= _FEW or n_numbers < _WORTH_A_TABLE:
            return
        ranks = _ranks()
        at_rank = np.bincount(ranks[_first_bytes(starts)], minlength=len(ranks))
        self._n_compared = int(at_rank.max(initial=0))
        if self._n_compared <= _MOST_COMPARED:
            self._below = (np.cumsum(at_rank) - at_rank)[ranks].astype(np.uint16)

    def __call__(self, numbers: NDArray[np.float64]) -> NDArray[np.integer]:
        """Starts at most each number, of a type that holds a few more; of NaN anything."""
        numbers = np.ascontiguousarray(numbers)
        if len(self.starts) <= _FEW:
            few = np.zeros(len(numbers), dtype=np.uint8)
            for start in self.starts:
                few += (numbers >= start).view(np.uint8)
            return few
        if self._below is None:
            return np.searchsorted(self.starts, numbers, side="right")
        found = self._below.take(_first_bytes(numbers))
        for _ in range(self._n_compared):
            found += numbers >= self._ends.take(found)
        return found


def _first_bytes(numbers: NDArray[np.float64]) -> NDArray[np.uint16]:
    """As one whole number; those of -0.0 are those of 0.0."""
    return (numbers + 0.0).astype("<f8", copy=False).view("<u2")[3::4]


@cache
def _ranks() -> NDArray[np.int64]:
    """Place of each pair of bytes among all, in the order of the numbers they begin: the negative ones turn round."""
    pairs = np.arange(2**16)
    return np.where(pairs < 2**15, pairs + 2**15, 2**16 - 1 - pairs)
