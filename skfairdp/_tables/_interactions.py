"""Columns that say together of a label what no pair of them says: a set is chosen, counted, and given to a model."""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from skfairdp._tables._backend import Model
from skfairdp._tables._columns import drawn_towards, on_simplex
from skfairdp._typing import Codes, Floats, Ints

MOST_COLUMNS, MOST_SETS = 5, 5000
ROWS_PER_CELL = 8
#: Rows of a table that are looked at, by position, and rows of the model that are sampled beside them.
LOOKED_AT = 2**15
MOST_LEVELS, RARE = 4, 0.01
#: Standard deviations, from which on the model follows the counts: four, and what the largest of 5,000 is by chance.
CLEAR_BY = 8.0
LARGEST_WEIGHT, ROUNDS = 16.0, 60
#: Shares are rounded down to this grid, so that all sums of a score are exact and it moves by no more than is declared.
GRID = 2.0**20


@dataclass(frozen=True)
class Levels:
    """The codes of each column in few levels: each common code by itself, or below and above the median."""

    of_code: tuple[Ints, ...]

    @classmethod
    def of(cls, shares: Sequence[Floats]) -> "Levels":
        """From released shares of the codes of each column."""
        found = []
        for share in shares:
            common = share >= RARE
            n_levels = int(common.sum()) if 0 < common.sum() <= MOST_LEVELS else 2
            level = np.cumsum(common) - common if n_levels == common.sum() else np.cumsum(share) - share / 2 >= 0.5
            found.append(np.minimum(level, n_levels - 1).astype(np.int64))
        return cls(tuple(found))

    @cached_property
    def sizes(self) -> list[int]:
        return [int(levels.max(initial=0)) + 1 for levels in self.of_code]

    def n_cells(self, columns: Sequence[int]) -> int:
        """Of all combinations of the levels of some columns."""
        return math.prod(self.sizes[j] for j in columns)

    def __call__(self, codes: Codes) -> Ints:
        """Of rows, (n_columns, n_rows)."""
        return np.stack([levels[codes[:, j]] for j, levels in enumerate(self.of_code)])

    def place(self, codes: Codes, columns: Sequence[int]) -> Ints:
        """Of each row among all combinations of the levels of some columns."""
        levels = [self.of_code[j][codes[:, j]] for j in columns]
        return np.ravel_multi_index(levels, [self.sizes[j] for j in columns])

    def places(self, levels: Ints, sets: Iterable[Sequence[int]]) -> Iterator[Ints]:
        """The same for each set, of rows as levels. Sets that begin alike, one after the other, are begun once."""
        done: list[tuple[int, Ints]] = []
        for columns in sets:
            kept = sum(itertools.takewhile(bool, (j == begun for j, (begun, _) in zip(columns, done, strict=False))))
            del done[kept:]
            for j in columns[kept:]:
                done.append((j, done[-1][1] * self.sizes[j] + levels[j] if done else levels[j]))
            yield done[-1][1]


@dataclass(frozen=True)
class Surprise:
    """How far labels are, in each cell of a set of columns, from what a model says of them by sampled rows: half the L1
    distance of the counts from the model's shares, less what it would be by chance. A row that comes or goes moves that
    of its cell by at most 1 - f and the others' shares, together 2 (1 - f): a replaced row moves it by 2 at most."""

    levels: Levels
    sampled: Ints
    sampled_labels: Ints
    n_classes: int
    n_rows: int  # public, as is who among them is looked at: how many have a row may be neither

    def counts(self, places: Ints, labels: Ints, n_cells: int) -> Ints:
        """Rows by cell and label."""
        found = np.bincount(places * self.n_classes + labels, minlength=n_cells * self.n_classes)
        return found.reshape(n_cells, self.n_classes)

    def shares(self, counts: Ints) -> Floats:
        """Of each label in each cell, by sampled rows."""
        of_labels = counts.sum(axis=0) / counts.sum()
        shares = (counts + of_labels) / (counts.sum(axis=1, keepdims=True) + 1)
        return np.asarray(np.floor(shares * GRID) / GRID)

    def scores(self, levels: Ints, labels: Ints, sets: Sequence[tuple[int, ...]]) -> Floats:
        """Of each set. Private."""
        n, n_sampled, found = levels.shape[1], self.sampled.shape[1], np.empty(len(sets))
        times = self.n_rows / n_sampled
        both = self.levels.places(np.concatenate([levels, self.sampled], axis=1), sets)
        for k, places in enumerate(both):
            n_cells = self.levels.n_cells(sets[k])
            counts = self.counts(places[:n], labels, n_cells)
            sampled = self.counts(places[n:], self.sampled_labels, n_cells)
            shares, rows = self.shares(sampled), times * sampled.sum(axis=1, keepdims=True)
            chance = np.sqrt(2 / np.pi * (1 + times) * rows * shares * (1 - shares)).sum()
            apart = np.abs(counts - shares * counts.sum(axis=1, keepdims=True)).sum()
            found[k] = apart / 2 - math.floor(chance / 2 * GRID) / GRID
        return found


def n_choices(n_columns: int) -> int:
    """One, and of so many columns that unions of pairs may be scored another one within a union."""
    return 1 if _order(n_columns) == MOST_COLUMNS else 2


def _order(n_columns: int) -> int:
    """Of the largest sets that can all be scored."""
    numbers = itertools.accumulate(math.comb(n_columns, k) for k in range(2, MOST_COLUMNS + 1))
    return 1 + sum(number <= MOST_SETS for number in numbers)


def sets_of(levels: Levels, n_rows: int, within: Sequence[int] | None = None) -> list[tuple[int, ...]]:
    """All sets of columns with rows enough in each cell, or unions of neighbouring pairs where these hold larger ones.
    Unions of k pairs hold every set of k columns: of thirty columns 3,003 unions hold the 142,506 sets of five."""
    used = [j for j in (range(len(levels.sizes)) if within is None else within) if levels.sizes[j] > 1]
    pairs = [used[i : i + 2] for i in range(0, len(used), 2)]
    order = _order(len(used))

    def with_rows(sets: Iterable[tuple[int, ...]]) -> list[tuple[int, ...]]:
        return [some for some in sets if levels.n_cells(some) * ROWS_PER_CELL <= n_rows]

    for k in range(MOST_COLUMNS, order, -1):
        unions = (tuple(itertools.chain(*some)) for some in itertools.combinations(pairs, k))
        if math.comb(len(pairs), k) <= MOST_SETS and (found := with_rows(unions)):
            return found
    return with_rows(itertools.chain(*(itertools.combinations(used, k) for k in range(2, order + 1))))


def chosen(surprise: Surprise, levels: Ints, labels: Ints, choose: Callable[[Floats], int]) -> tuple[int, ...]:
    """The set that a private choice by the scores finds, and of a large union a set within it; () where none fits."""
    found: tuple[int, ...] | None = None
    while found is None or len(found) > MOST_COLUMNS:
        sets = sets_of(surprise.levels, surprise.n_rows, found)
        if not sets:
            return ()
        found = sets[choose(surprise.scores(levels, labels, sets))]
    return found


def corrections(noisy: Floats, shares: Floats, sigma: float, n_sampled: int) -> Floats | None:
    """By how much more frequent a label is in a cell than the model says; None where noise and chance explain it."""
    n_classes, of_cells = noisy.shape[1], np.maximum(noisy.sum(axis=1, keepdims=True), 0.0)
    chance = of_cells * shares * (1 - shares) * (1 + of_cells.sum() / n_sampled)
    noise = sigma**2 * ((1 - shares) ** 2 + (n_classes - 1) * shares**2)
    apart = np.square(noisy - of_cells * shares) / np.maximum(noise + chance, 1e-12)
    if apart.sum() <= noisy.size + CLEAR_BY * n_classes * math.sqrt(2.0 * len(noisy)):
        return None
    return np.clip(drawn_towards(shares, noisy, sigma) / np.maximum(shares, 1 / GRID), 1 / GRID, LARGEST_WEIGHT)


class InteractionModel(Model):
    """Rows of another model, kept by how much more frequent their label is where they are than that model says."""

    def __init__(
        self, base: Model, levels: Levels, columns: tuple[int, ...], shares: Floats, weights: Floats, kept: Floats
    ) -> None:
        self.base, self.levels, self.columns, self.weights = base, levels, columns, weights
        self.log_kept, self._shares = np.log(np.maximum(kept, 1e-12)), on_simplex(shares * weights)

    def label_shares(self, codes: Codes) -> Floats:
        """Of each label, where each row is among the cells of the interaction: (n_rows, n_classes)."""
        return np.asarray(self._shares[self.levels.place(codes, self.columns)])

    def sample(self, cells: Ints, rng: np.random.Generator) -> NDArray[np.int32]:
        """Codes (len(cells), n_columns), one row for each given group and label."""
        codes, open_rows = self.base.sample(cells, rng), np.arange(len(cells))
        most = self.weights.max(axis=0)
        for _ in range(ROUNDS):
            labels = cells[open_rows] % self.weights.shape[1]
            chance = self.weights[self.levels.place(codes[open_rows], self.columns), labels] / most[labels]
            open_rows = open_rows[rng.random(len(open_rows)) >= chance]
            if not len(open_rows):
                break
            codes[open_rows] = self.base.sample(cells[open_rows], rng)
        return codes

    def log_likelihood(self, codes: Codes) -> Floats | None:
        """Log density of rows in each cell, (n_rows, n_cells)."""
        base = self.base.log_likelihood(codes)
        return None if base is None else base + self._of_cells(codes)

    def log_likelihood_of(self, codes: Codes, columns: Sequence[int]) -> Floats:
        """The same of some columns; what only all columns of the set say is not said by some of them."""
        base = self.base.log_likelihood_of(codes, columns)
        return base + self._of_cells(codes) if set(self.columns) <= set(columns) else base

    def _of_cells(self, codes: Codes) -> Floats:
        n_classes = self.weights.shape[1]
        logs = np.log(self.weights)[self.levels.place(codes, self.columns)]
        return np.asarray(np.tile(logs, (1, len(self.log_kept) // n_classes)) - self.log_kept)
