"""A tree of columns given group and label: which columns hang together, and the tables that a tree is sampled from.

Everything here works on released tables. No private row comes near it.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfairdp._tables._backend import Model
from skfairdp._tables._cells import on_simplex

_MEAN_ABS_NORMAL = float(np.sqrt(2 / np.pi))
_LEAST = 1e-12
_TINY = 1e-300


def conditional_tables(
    noisy: NDArray[np.float64],
    sigma: float,
    observed: NDArray[np.float64],
    sampled: NDArray[np.bool_],
    null_code: int | None,
    of_labels: NDArray[np.float64] | None = None,
    sigma_of_labels: float = math.inf,
) -> NDArray[np.float64]:
    """Shares of a column's codes in each cell (group and label), from noisy tables of counts.

    Counts of a cell are made to add up to what is known of its size. Where the noise of a cell drowns what sets it
    apart from the other groups with its label, its shares are drawn towards theirs, and those of a label towards all
    labels', by the positive-part rule of James and Stein.
    """
    n_codes, (n_groups, n_classes) = noisy.shape[1], observed.shape
    cells = noisy.reshape(n_groups, n_classes, n_codes)
    labels, sigma_of_labels = _both_counts(cells, sigma, of_labels, sigma_of_labels)
    used = sampled.copy()
    doubt = 4 * sigma_of_labels * np.sqrt(n_classes)
    if null_code is not None and used[:null_code].any() and labels[:, null_code].sum() < doubt:
        used[null_code] = False
    out = np.zeros(noisy.shape)
    if not used.any():
        out[:, : max(int(sampled.sum()), 1)] = 1.0 / max(int(sampled.sum()), 1)
        return out
    labels = labels[:, used]
    overall = labels.sum(axis=0)
    cells = cells[:, :, used] + (labels - cells[:, :, used].sum(axis=0)) / n_groups
    labels = _adding_up(labels, observed.sum(axis=0) * overall.sum())
    shares = drawn_towards(on_simplex(overall), labels, sigma_of_labels)
    kept = _adding_up(cells.reshape(len(noisy), -1), observed.ravel() * overall.sum())
    out[:, used] = drawn_towards(np.tile(shares, (n_groups, 1)), kept, sigma)
    return out


def _both_counts(
    cells: NDArray[np.float64], sigma: float, of_labels: NDArray[np.float64] | None, sigma_of_labels: float
) -> tuple[NDArray[np.float64], float]:
    """Counts by label from both tables, each as far as it can be trusted, and the noise that is left in them."""
    summed, variance = cells.sum(axis=0), len(cells) * sigma**2
    if of_labels is None:
        return summed, math.sqrt(variance)
    share = variance / (variance + sigma_of_labels**2)
    return share * of_labels + (1 - share) * summed, math.sqrt(share) * sigma_of_labels


def _adding_up(noisy: NDArray[np.float64], totals: NDArray[np.float64]) -> NDArray[np.float64]:
    """The nearest rows that add up to totals."""
    return np.asarray(noisy + ((totals - noisy.sum(axis=1)) / noisy.shape[1])[:, None])


def drawn_towards(shares: NDArray[np.float64], noisy: NDArray[np.float64], sigma: float) -> NDArray[np.float64]:
    """Shares of each row of noisy counts, drawn towards given ones as far as the noise explains the difference."""
    totals = np.maximum(noisy.sum(axis=1, keepdims=True), 0.0)
    apart = np.square(noisy - totals * shares).sum(axis=1, keepdims=True)
    weight = np.maximum(0.0, 1.0 - noisy.shape[1] * sigma**2 / np.maximum(apart, _LEAST))
    return np.asarray(weight * on_simplex(noisy) + (1 - weight) * shares)


def combined_shares(
    own: NDArray[np.float64],
    n_rows: float,
    own_variance: float,
    seen: Sequence[tuple[NDArray[np.float64], float]],
) -> NDArray[np.float64]:
    """Shares of a column's codes over all rows, from every released table that holds the column.

    Generalised least squares: the shares p for which counts T p are nearest to all measured counts, each measured
    with a variance of its own and a total T of its own, and then the nearest shares to them.
    """
    used = own > 0
    total, weight = own[used] * n_rows**2 / own_variance, n_rows**2 / own_variance
    for counts, variance in seen:
        size = max(float(counts[used].sum()), 0.0)
        total = total + size * counts[used] / variance
        weight += size**2 / variance
    out = np.zeros(own.shape)
    out[used] = on_simplex(total / weight)
    return out


def with_mean(
    shares: NDArray[np.float64], mean: NDArray[np.float64], wanted: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Shares of each cell, times what takes their mean over all rows to a wanted one: a step of proportional fitting.

    A cell that keeps nothing stays as it was.
    """
    raked = shares * _quotient(wanted, mean)
    totals = raked.sum(axis=1, keepdims=True)
    return np.asarray(np.where(totals > _TINY, raked / np.maximum(totals, _TINY), shares))


def joint_given_cells(
    pair: NDArray[np.float64],
    first: NDArray[np.float64],
    second: NDArray[np.float64],
    weights: NDArray[np.float64],
    n_steps: int = 60,
) -> NDArray[np.float64]:
    """Joint shares of two columns in each cell (group and label) that agree with all three of their released tables.

    Iterative proportional fitting from independence given the cell, hence the joint shares of largest entropy: what two
    columns have in common is the same in every cell.
    """
    one, other = weights[:, None] * first, weights[:, None] * second
    pair = np.where(one.T @ second > 0, np.maximum(pair, _LEAST), 0.0)
    with np.errstate(over="ignore", invalid="ignore"):  # of factors, where noisy tables contradict each other
        joint = _joint_by_factors(pair, one, other, second, n_steps)
    if not np.isfinite(joint).all():
        joint = _joint_by_sums(pair, one, other, one[:, :, None] * second[:, None, :], n_steps)
    totals = joint.sum(axis=(1, 2), keepdims=True)
    independent = first[:, :, None] * second[:, None, :]
    return np.where(totals > 0, joint / np.maximum(totals, _TINY), independent)


def _joint_by_factors(pair: Any, one: Any, other: Any, second: Any, n_steps: int) -> NDArray[np.float64]:
    """The shares are scale_one[s, i] * between[i, j] * scale_other[s, j] throughout: three products of matrices a step.

    Fast, but factors may grow beyond all numbers where the shares do not: what comes out is then not finite.
    """
    # A factor that would be infinite belongs to shares that are 0.
    scale_one, scale_other, between = one, second, np.ones(pair.shape)
    for _ in range(n_steps):
        between = _quotient(pair, scale_one.T @ scale_other)
        scale_one = _quotient(one, scale_other @ between.T)
        scale_other = _quotient(other, scale_one @ between)
        if not (np.isfinite(scale_one).all() and np.isfinite(scale_other).all() and np.isfinite(between).all()):
            return np.full((*one.shape, other.shape[1]), np.nan)
    return np.asarray(scale_one[:, :, None] * between * scale_other[:, None, :])


def _joint_by_sums(pair: Any, one: Any, other: Any, joint: NDArray[np.float64], n_steps: int) -> NDArray[np.float64]:
    """The same by three sums over the whole table a step."""
    for _ in range(n_steps):
        joint *= _quotient(pair, joint.sum(axis=0))[None]
        joint *= _quotient(one, joint.sum(axis=2))[:, :, None]
        joint *= _quotient(other, joint.sum(axis=1))[:, None, :]
    return joint


def _quotient(wanted: NDArray[np.float64], found: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.divide(wanted, found, out=np.zeros_like(wanted), where=found > _TINY)


def best_tree(scores: NDArray[np.float64], n_codes: Sequence[int], sigma: float) -> list[tuple[int, int]]:
    """Return (parent, child) pairs of the spanning forest with the largest gain, a child after its parent."""
    sizes = np.asarray(n_codes, dtype=np.float64)
    gains = scores - _MEAN_ABS_NORMAL * sigma * np.outer(sizes, sizes)
    inside, edges = [0], []
    outside = list(range(1, len(gains)))
    while outside:
        block = gains[np.ix_(inside, outside)]
        i, j = np.unravel_index(int(np.argmax(block)), block.shape)
        child = outside.pop(int(j))
        if block[i, j] > 0:
            edges.append((inside[int(i)], child))
        inside.append(child)
    return edges


class TreeModel(Model):
    """Columns drawn one after the other: each from its shares given group, label and the code of its parent."""

    def __init__(self, order: Sequence[tuple[int, int | None]], tables: list[NDArray[np.float64]]) -> None:
        self.order = order
        self.tables = tables

    def sample(self, cells: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int32]:
        """Codes (len(cells), n_columns), one row for each given group and label."""
        codes = np.empty((len(cells), len(self.order)), dtype=np.int32)
        for (column, parent), table in zip(self.order, self.tables, strict=True):
            n_codes = table.shape[-1]
            line = cells if parent is None else cells * table.shape[1] + codes[:, parent]
            reached = np.cumsum(table.reshape(-1, n_codes), axis=1)
            reached /= reached[:, -1:]
            # One search over the cumulative shares of all lines, each lifted above the one before it.
            lifted = (reached + np.arange(len(reached))[:, None]).ravel()
            place = np.searchsorted(lifted, line + rng.random(len(line)), side="right") - line * n_codes
            codes[:, column] = np.clip(place, 0, n_codes - 1)
        return codes

    def log_likelihood_of(self, codes: NDArray[np.integer], columns: Sequence[int]) -> NDArray[np.float64]:
        """Log density of the codes of some columns in each cell, the others summed out, (n_rows, n_cells)."""
        rows = np.arange(len(codes))
        total = np.zeros((len(codes), self.tables[0].shape[0]))
        below: dict[int, Any] = {}  # what hangs below a column says of each of its codes: (n_rows, n_cells, n_codes)
        for (column, parent), table in reversed(list(zip(self.order, self.tables, strict=True))):
            given = table if parent is not None else table[:, None, :]
            said = below.pop(column, None)
            if column in columns:
                found = given[:, :, codes[:, column]].transpose(2, 0, 1)
                found = found if said is None else found * said[rows, :, codes[:, column]][:, :, None]
            elif said is not None:
                found = np.einsum("cpk,nck->ncp", given, said)
            else:
                continue
            if parent is None:
                total += np.log(np.maximum(found[:, :, 0], _TINY))
            else:
                below[parent] = found * below.get(parent, 1.0)
        return total

    def log_likelihood(self, codes: NDArray[np.integer]) -> NDArray[np.float64]:
        """Log density of rows in each cell, (n_rows, n_cells)."""
        n_cells = self.tables[0].shape[0]
        total = np.zeros((len(codes), n_cells))
        for (column, parent), table in zip(self.order, self.tables, strict=True):
            place = codes[:, column].astype(np.int64)
            if parent is not None:
                place += codes[:, parent].astype(np.int64) * table.shape[2]
            total += np.log(np.maximum(table.reshape(n_cells, -1), _LEAST)).T[place]
        return total
