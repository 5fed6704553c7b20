"""More pairs than a tree has: which of them, and the graphical model that the ``mbi`` package (an extra) fits to them.

Everything here works on released tables and scores. No private row comes near it.
"""

import importlib.util
import itertools
import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfairdp.generative._tree import TreeModel, gains_of_pairs

__all__ = ["check_installed", "fitted_junction_tree", "further_pairs", "sampling_order"]

_LARGEST_TABLE = 250_000  # entries of one conditional table: 2 MB
_ITERATIONS = 500
Pair = tuple[int, int]
Array = NDArray[np.float64]


def check_installed() -> None:
    """Say what to install, before anything is paid for."""
    if importlib.util.find_spec("mbi") is None:
        raise ImportError(
            "MarginalsBackend(structure='junction_tree') needs the mbi package: pip install 'skfairdp[mbi]'. "
            "structure='tree' needs nothing."
        )


def sampling_order(n_columns: int, pairs: Sequence[Pair], n_cells: Sequence[int]) -> list[tuple[int, tuple[int, ...]]]:
    """Columns in the order they are drawn in, each with the columns that it is drawn given.

    A junction tree's: columns are taken out of the graph of ``pairs``, the one with the smallest table first, and its
    neighbours are joined; drawing goes the other way. The stratum goes with every column.

    Examples
    --------
    >>> from skfairdp.generative._junction_tree import sampling_order
    >>> sampling_order(3, [(0, 1), (1, 2), (0, 2)], [2, 3, 4])
    [(2, ()), (1, (2,)), (0, (1, 2))]
    """
    around: dict[int, set[int]] = {j: set() for j in range(n_columns)}
    for i, j in pairs:
        around[i].add(j)
        around[j].add(i)
    taken: list[tuple[int, tuple[int, ...]]] = []
    while around:
        column = min(around, key=lambda j: (math.prod(n_cells[k] for k in (j, *around[j])), j))
        neighbours = around.pop(column)
        for neighbour in neighbours:
            around[neighbour] |= neighbours - {neighbour}
            around[neighbour].discard(column)
        taken.append((column, tuple(sorted(neighbours))))
    return taken[::-1]


def further_pairs(
    scores: Array, tree: Sequence[Pair], n_cells: Sequence[int], sigma: float, n_strata: int, n_pairs: int
) -> list[Pair]:
    """Pairs with the largest gain (as for :func:`best_tree`) beyond those of the tree, at most ``n_pairs``.

    Left out are those with no gain, and those that would need a table of more than 250,000 shares.
    """
    gains = gains_of_pairs(scores, n_cells, sigma)
    there = {frozenset(pair) for pair in tree}
    rest = [p for p in itertools.combinations(range(len(n_cells)), 2) if frozenset(p) not in there and gains[p] > 0]
    chosen: list[Pair] = []
    for pair in sorted(rest, key=lambda p: -gains[p]):
        if len(chosen) == n_pairs:
            break
        order = sampling_order(len(n_cells), [*tree, *chosen, pair], n_cells)
        largest = max(math.prod(n_cells[k] for k in (column, *parents)) for column, parents in order)
        if n_strata * largest <= _LARGEST_TABLE:
            chosen.append(pair)
    return chosen


def fitted_junction_tree(
    by_stratum: Sequence[Array],
    sigma: float,
    pairs: dict[Pair, Array],
    sigma_pairs: float,
    n_rows: int,
    fallback: Sequence[Array],
) -> TreeModel:
    """The law of largest entropy that comes closest to noisy counts, as tables to sample from.

    McKenna, Sheldon & Miklau (2019), by the mirror descent of ``mbi``.

    Parameters
    ----------
    by_stratum : list of ndarray of shape (n_strata, n_cells)
        Noisy counts of each column.
    sigma : float
        Their noise.
    pairs : dict of (column, column) to ndarray of shape (n_cells, n_cells)
        Noisy joint counts.
    sigma_pairs : float
    n_rows : int
    fallback : list of ndarray of shape (n_strata, n_cells)
        Shares of each column that are known without pairs; cells without a share there get none.
    """
    n_strata, n_cells = len(by_stratum[0]), [table.shape[1] for table in by_stratum]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of settings of jax, which are the user's
        import jax
        import mbi

        with jax.enable_x64(True):
            domain = mbi.Domain(["s", *map(str, range(len(n_cells)))], [n_strata, *n_cells])
            measured = [
                mbi.LinearMeasurement(table.ravel(), ("s", str(j)), sigma) for j, table in enumerate(by_stratum)
            ]
            measured += [
                mbi.LinearMeasurement(table.ravel(), (str(i), str(j)), sigma_pairs) for (i, j), table in pairs.items()
            ]
            model = mbi.estimation.MirrorDescent().estimate(
                domain, measured, known_total=float(n_rows), iters=_ITERATIONS
            )
            order = sampling_order(len(n_cells), list(pairs), n_cells)
            tables = [_conditional(model, column, parents, fallback[column]) for column, parents in order]
    return TreeModel(order, tables)


def _conditional(model: Any, column: int, parents: tuple[int, ...], fallback: Array) -> Array:
    """Law of a column in each stratum and each combination of its parents' cells."""
    names = ("s", *map(str, parents), str(column))
    joint = np.array(model.project(names).transpose(names).datavector(flatten=False), dtype=np.float64)
    joint = np.where(fallback.any(axis=0), np.maximum(np.nan_to_num(joint), 0.0), 0.0)
    totals = joint.sum(axis=-1, keepdims=True)
    alone = fallback.reshape(len(fallback), *(1,) * len(parents), -1)
    return np.where(totals > 0, joint / np.maximum(totals, 1e-300), alone)
