"""The default for tables: a graphical model over noisy tables of counts that include the group and the label."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from sklearn.utils import gen_batches

from skfairdp._docs import shared_docs
from skfairdp._tables._backend import BackendPlan, GeneratorBackend, Layout, Model, Rows
from skfairdp._tables._columns import drawn_towards, on_simplex, released_together
from skfairdp._tables._interactions import LOOKED_AT, InteractionModel, Levels, Surprise, chosen, corrections, n_choices
from skfairdp._typing import Bools, Codes, Floats, Ints, Pair
from skfairdp._utils._sklearn import StrOptions
from skfairdp.privacy import DpEvent, ExponentialMechanism, GaussianMechanism, NoiseSource, compose, repeat

_MEAN_ABS_NORMAL = float(np.sqrt(2 / np.pi))
_LEAST = 1e-12
_TINY = 1e-300


def conditional_tables(
    noisy: Floats,
    sigma: float,
    observed: Floats,
    sampled: Bools,
    null_code: int | None,
    of_labels: Floats | None = None,
    sigma_of_labels: float = math.inf,
) -> Floats:
    """Shares of a column's codes in each cell (group and label), from noisy tables of counts, which are made to add up
    to what is known of the cell. Where noise drowns what sets a cell apart from others with its label, its shares are
    drawn towards theirs, and those of a label towards all, by the positive-part rule of James and Stein."""
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


def _both_counts(cells: Floats, sigma: float, of_labels: Floats | None, sigma_of_labels: float) -> tuple[Floats, float]:
    """Counts by label from both tables, each as far as it can be trusted, and the noise that is left in them."""
    summed, variance = cells.sum(axis=0), len(cells) * sigma**2
    if of_labels is None:
        return summed, math.sqrt(variance)
    share = variance / (variance + sigma_of_labels**2)
    return share * of_labels + (1 - share) * summed, math.sqrt(share) * sigma_of_labels


def _adding_up(noisy: Floats, totals: Floats) -> Floats:
    """The nearest rows that add up to totals."""
    return np.asarray(noisy + ((totals - noisy.sum(axis=1)) / noisy.shape[1])[:, None])


def combined_shares(own: Floats, n_rows: float, own_variance: float, seen: Sequence[tuple[Floats, float]]) -> Floats:
    """Shares of a column's codes over all rows, from every released table that holds the column. Generalised least
    squares: the shares p for which counts T p are nearest to all measured counts, each measured with a variance of its
    own and a total T of its own, and then the nearest shares to them."""
    used = own > 0
    total, weight = own[used] * n_rows**2 / own_variance, n_rows**2 / own_variance
    for counts, variance in seen:
        size = max(float(counts[used].sum()), 0.0)
        total = total + size * counts[used] / variance
        weight += size**2 / variance
    out = np.zeros(own.shape)
    out[used] = on_simplex(total / weight)
    return out


def with_mean(shares: Floats, mean: Floats, wanted: Floats) -> Floats:
    """Shares of each cell, times what takes their mean over all rows to a wanted one: a step of proportional fitting. A
    cell that keeps nothing stays as it was."""
    raked = shares * _quotient(wanted, mean)
    totals = raked.sum(axis=1, keepdims=True)
    return np.asarray(np.where(totals > _TINY, raked / np.maximum(totals, _TINY), shares))


def joint_given_cells(pair: Floats, first: Floats, second: Floats, weights: Floats, n_steps: int = 60) -> Floats:
    """Joint shares of two columns in each cell (group and label) that agree with all three of their released tables.
    Iterative proportional fitting from independence given the cell, hence the joint shares of largest entropy: what two
    columns have in common is the same in every cell."""
    one, other = weights[:, None] * first, weights[:, None] * second
    pair = np.where(one.T @ second > 0, np.maximum(pair, _LEAST), 0.0)
    with np.errstate(over="ignore", invalid="ignore"):  # of factors, where noisy tables contradict each other
        joint = _joint_by_factors(pair, one, other, second, n_steps)
    if not np.isfinite(joint).all():
        joint = one[:, :, None] * second[:, None, :]
        for _ in range(n_steps):
            joint *= _quotient(pair, joint.sum(axis=0))[None]
            joint *= _quotient(one, joint.sum(axis=2))[:, :, None]
            joint *= _quotient(other, joint.sum(axis=1))[:, None, :]
    totals = joint.sum(axis=(1, 2), keepdims=True)
    independent = first[:, :, None] * second[:, None, :]
    return np.where(totals > 0, joint / np.maximum(totals, _TINY), independent)


def _joint_by_factors(pair: Any, one: Any, other: Any, second: Any, n_steps: int) -> Floats:
    """The shares are scale_one[s, i] * between[i, j] * scale_other[s, j] throughout: three products of matrices a step.
    Fast, but factors may grow beyond all numbers where the shares do not: what comes out is then not finite."""
    # A factor that would be infinite belongs to shares that are 0.
    scale_one, scale_other, between = one, second, np.ones(pair.shape)
    for _ in range(n_steps):
        between = _quotient(pair, scale_one.T @ scale_other)
        scale_one = _quotient(one, scale_other @ between.T)
        scale_other = _quotient(other, scale_one @ between)
        if not (np.isfinite(scale_one).all() and np.isfinite(scale_other).all() and np.isfinite(between).all()):
            return np.full((*one.shape, other.shape[1]), np.nan)
    return np.asarray(scale_one[:, :, None] * between * scale_other[:, None, :])


def _quotient(wanted: Floats, found: Floats) -> Floats:
    return np.divide(wanted, found, out=np.zeros_like(wanted), where=found > _TINY)


def best_tree(scores: Floats, n_codes: Sequence[int], sigma: float) -> list[Pair]:
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

    def __init__(self, order: Sequence[tuple[int, int | None]], tables: list[Floats]) -> None:
        self.order, self.tables = order, tables

    def sample(self, cells: Ints, rng: Generator) -> NDArray[np.int32]:
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

    def log_likelihood_of(self, codes: Codes, columns: Sequence[int]) -> Floats:
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

    def log_likelihood(self, codes: Codes) -> Floats:
        """Log density of rows in each cell, (n_rows, n_cells)."""
        n_cells = self.tables[0].shape[0]
        total, parts = np.zeros((len(codes), n_cells)), []
        for (column, parent), table in zip(self.order, self.tables, strict=True):
            place = codes[:, column].astype(np.int64)
            if parent is not None:
                place += codes[:, parent].astype(np.int64) * table.shape[2]
            parts.append((np.ascontiguousarray(np.log(np.maximum(table.reshape(n_cells, -1), _LEAST)).T), place))
        for some in gen_batches(len(codes), 256):  # of many cells, whose sums a processor keeps at hand
            for of_code, place in parts:
                total[some] += of_code[place[some]]
        return total


_GRID = 1024.0  # steps of one row
_TREE_SPLIT = {"tables": 0.6, "scores": 0.06, "pairs": 0.34}
_INTERACTIONS_SPLIT = {"tables": 0.54, "scores": 0.054, "pairs": 0.306, "choice": 0.02, "joint": 0.08}
#: From so many rows on, for then its tenth of the cost hardly shows; of more columns no set would be scored.
_MANY_ROWS, _MOST_COLUMNS = 5000, 200
#: Each row is counted so many times by label, and by group and label: 3² + 4² = 5². The other way round labels are
#: known better still, but groups so little that a learner held to a constraint on the rows does not keep it on others.
_BY_LABEL, _BY_CELL, _TOGETHER = 3, 4, 5


@shared_docs
class MarginalsBackend(GeneratorBackend):
    """Draw each column from noisy tables of counts, given group, label and (in a tree) one other column.

    **Guarantee.** Differential privacy for one replaced record, by Gaussian releases and a choice. (1) Two tables for
    every column: its counts by label three times, and by group and label four times. One replaced row moves two counts
    by 3 in the one and two by 4 in the other, so all of them together by √(d (2·3² + 2·4²)) = 5√(2d) in L2 norm. With a
    single group there is one table, and they move by √(2d). (2) One score per pair of columns, the L1 distance of its
    joint counts from what (1) would make of them: it moves by at most 2, so all pairs together by 2√(d(d−1)/2). (3) The
    joint counts of the pairs of a tree that (2) chose: √2 times the root of the number of pairs. (4) With interactions,
    a set of columns, by an exponential mechanism over scores that move by at most 2, in up to two steps, and its counts
    by label, which move by √2. The rest is post-processing, also that each column's shares over all rows are weighed
    together from (1) and from the tables of its pairs in (3), each by the inverse of its variance.

    The tree (Chow & Liu 1968) gives each column one parent beside group and label; what a pair has in common is taken
    to be the same in every group, the joint shares of largest entropy that agree with the released tables. An
    interaction is a set of two to five columns whose labels are furthest from what the tree makes of them; the rows
    follow its counts where these are off by more than noise and chance.

    Parameters
    ----------
    structure : {"auto", "tree", "star", "interactions"}, default="auto"
        ``"star"`` makes columns independent given group and label: release (1) only. ``"interactions"`` looks for a set
        of columns that tell the label only together, as an exclusive or does, in a table of 3 to 200 columns that lies
        in memory. ``"auto"`` does so from 5,000 rows on, and is ``"tree"`` otherwise.
    budget_split : dict, default=None
        Shares of the squared cost of the releases that the structure has: (1) is ``"tables"``, (2) ``"scores"``, (3)
        ``"pairs"``, (4) ``"choice"`` and ``"joint"``. None is ``{"tables": 0.6, "scores": 0.06, "pairs": 0.34}`` for a
        tree, and nine tenths of that, 0.02 and 0.08 with interactions.
    verbose : int, default=0
        Above 0: a bar over rows in each pass, where X is read in chunks by this machine.

    Examples
    --------
    >>> from skfairdp.generative import MarginalsBackend, PFGuardGenerator
    >>> PFGuardGenerator(backend=MarginalsBackend(structure="star")).backend
    MarginalsBackend(structure='star')
    """

    _parameter_constraints: dict[str, Any] = {
        "structure": [StrOptions({"auto", "tree", "star", "interactions"})],
        "budget_split": [dict, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self, *, structure: str = "auto", budget_split: Mapping[str, float] | None = None, verbose: int = 0
    ) -> None:
        self.structure, self.budget_split, self.verbose = structure, budget_split, verbose

    def plan(self, layout: Layout) -> "MarginalsPlan":
        """Decide the three releases.

        {layout}

        {returns_plan}
        """
        self._validate_params()
        if layout.kind != "codes":
            raise ValueError(
                "MarginalsBackend counts the values of a table's columns and cannot learn images. Use "
                "backend='gs_wgan', or give X as a table."
            )
        if not layout.groups_known:
            raise ValueError(
                "MarginalsBackend cannot balance groups that are unknown. Pass sensitive_features, set balance=None, "
                "or take a backend whose teachers estimate ratios from X_public, such as 'pate_gan'."
            )
        if self.structure == "interactions" and not layout.tells_interactions:
            raise ValueError(
                "MarginalsBackend(structure='interactions') counts sets of columns by class, and reads a table in "
                "memory only. Use structure='tree', or give X as a DataFrame and classes as labels."
            )
        wanted = layout.n_rows >= _MANY_ROWS if self.budget_split is None else "joint" in self.budget_split
        structure = {"auto": "interactions" if wanted else "tree"}.get(self.structure, self.structure)
        may_look = layout.tells_interactions and layout.n_classes > 1 and 2 < layout.n_columns <= _MOST_COLUMNS
        structure = "tree" if structure == "interactions" and not may_look else structure
        usual = {"star": {"tables": 1.0}, "tree": _TREE_SPLIT, "interactions": _INTERACTIONS_SPLIT}[structure]
        split = self._split(usual)
        if structure == "star" or layout.n_columns < 2:
            return MarginalsPlan(layout, False, 0.0, 0.0)
        more = {f"{name}_share": split[name] for name in ("choice", "joint") if name in split}
        return MarginalsPlan(layout, True, split["scores"], split["pairs"], **more)

    def _split(self, usual: Mapping[str, float]) -> Mapping[str, float]:
        """The shares, all of them in (0, 1] and adding up to 1."""
        if self.budget_split is None:
            return usual
        shares = list(self.budget_split.values())
        if (
            set(self.budget_split) != set(usual)
            or not all(isinstance(share, Real) and 0 < share <= 1 for share in shares)
            or abs(math.fsum(shares) - 1) > 1e-9
        ):
            raise ValueError(
                f"The 'budget_split' parameter of MarginalsBackend(structure={self.structure!r}) must give a positive "
                f"share to each of {', '.join(map(repr, usual))}, and they must add up to 1. Got "
                f"{dict(self.budget_split)!r} instead."
            )
        return self.budget_split


@dataclass(frozen=True)
class MarginalsPlan(BackendPlan):
    """Three releases of counts, or the first of them alone."""

    layout: Layout
    tree: bool
    scores_share: float
    pairs_share: float
    choice_share: float = 0.0
    joint_share: float = 0.0

    @property
    def n_pairs(self) -> int:
        """Declared tables of pairs: those of a tree."""
        return self.layout.n_columns - 1

    @property
    def times(self) -> Pair:
        """How many times a row is counted by label, and by group and label; these are the same with a single group."""
        return (_BY_LABEL, _BY_CELL) if self.layout.n_groups > 1 else (0, 1)

    def tables_at(self, scale: float) -> GaussianMechanism:
        """For the tables of all columns by label, and by group and label."""
        share = 1 - self.scores_share - self.pairs_share - self.choice_share - self.joint_share
        together = _TOGETHER if self.layout.n_groups > 1 else 1
        return self._counts_at(scale / math.sqrt(share), together * math.sqrt(2 * self.layout.n_columns))

    def noise_by_label_at(self, scale: float) -> float:
        """Standard deviation of the noise in a count by label, from both tables."""
        by_label, by_cell = self.times
        return self.tables_at(scale).sigma / math.sqrt(by_label**2 + by_cell**2 / self.layout.n_groups)

    def scores_at(self, scale: float) -> GaussianMechanism:
        """For the scores of all pairs."""
        d = self.layout.n_columns
        return self._counts_at(scale / math.sqrt(self.scores_share), 2 * math.sqrt(d * (d - 1) / 2))

    def pairs_at(self, scale: float) -> GaussianMechanism:
        """For all declared pairs; fewer cost less than is charged."""
        return self._counts_at(scale / math.sqrt(self.pairs_share), math.sqrt(2 * self.n_pairs))

    def choice_at(self, scale: float) -> ExponentialMechanism:
        """For each choice of a set of columns by scores that a replaced row moves by 2."""
        mu = math.sqrt(self.choice_share / n_choices(self.layout.n_columns)) / scale
        return ExponentialMechanism(mu, sensitivity=2.0, relation=self.layout.relation)

    def joint_at(self, scale: float) -> GaussianMechanism:
        """For the counts of that set by label."""
        return self._counts_at(scale / math.sqrt(self.joint_share), math.sqrt(2.0))

    def event_at(self, scale: float) -> DpEvent:
        if not self.tree:
            return self.tables_at(scale).event
        usual = self.tables_at(scale).event, self.scores_at(scale).event, self.pairs_at(scale).event
        if not self.joint_share:
            return compose(*usual)
        choices = repeat(self.choice_at(scale).event, n_choices(self.layout.n_columns))
        return compose(*usual, choices, self.joint_at(scale).event)

    def _counts_at(self, noise_multiplier: float, sensitivity: float) -> GaussianMechanism:
        sigma = noise_multiplier * sensitivity
        return GaussianMechanism(sigma, sensitivity=sensitivity, relation=self.layout.relation)

    @property
    def releases(self) -> tuple[str, ...]:
        d = self.layout.n_columns
        alone, beside = (" by label", " and label") if self.layout.n_classes > 1 else ("", "")
        by_label = (f"{d} tables of counts{alone}",) if self.layout.n_groups > 1 else ()
        tables = (*by_label, f"{d} tables of counts by group{beside}")
        pairs = (f"{d * (d - 1) // 2} scores of pairs", f"{self.n_pairs} tables of pairs")
        joint = ("the columns of an interaction", "its counts by label") if self.joint_share else ()
        return (*tables, *pairs, *joint) if self.tree else tables

    def release(self, rows: Rows, scale: float, noise: NoiseSource, rng: Generator) -> Model:
        given_cell = self._release_tables(rows, scale, noise)
        edges: list[Pair] = []
        if self.tree:
            scores = self._release_scores(rows, given_cell, scale, noise)
            edges = best_tree(scores, rows.n_codes, self.pairs_at(scale).sigma)
        pairs = self._release_pairs(rows, edges, scale, noise)
        given_cell = self._agreed(given_cell, rows, pairs, scale)
        joint = {}
        for (i, j), noisy in pairs.items():
            kept, joint[i, j] = np.ix_(rows.sampled[i], rows.sampled[j]), np.zeros(noisy.shape)
            own, wanted = noisy[kept], _independent(rows.observed, given_cell[i], given_cell[j])[kept]
            shares = drawn_towards(wanted.reshape(1, -1), own.reshape(1, -1), self.pairs_at(scale).sigma)
            joint[i, j][kept] = shares.reshape(own.shape)
        children = {child for _, child in edges}
        order: list[tuple[int, int | None]] = [(j, None) for j in range(len(given_cell)) if j not in children]
        tables = [given_cell[j] for j, _ in order]
        for parent, child in edges:
            first, second = given_cell[parent], given_cell[child]
            shares = joint_given_cells(joint[parent, child], first, second, rows.observed.ravel())
            of_parent = shares.sum(axis=2, keepdims=True)
            order.append((child, parent))
            tables.append(np.where(of_parent > 0, shares / np.maximum(of_parent, 1e-300), second[:, None, :]))
        tree = TreeModel(order, tables)
        return self._with_interaction(tree, rows, given_cell, scale, noise, rng) if self.joint_share else tree

    def _with_interaction(
        self, tree: TreeModel, rows: Rows, given_cell: list[Floats], scale: float, noise: NoiseSource, rng: Generator
    ) -> Model:
        """The tree, and the set of columns whose labels it explains the least, where noise and chance do not."""
        n_classes, observed = self.layout.n_classes, rows.observed.ravel()
        levels = Levels.of([observed @ shares for shares in given_cell])
        cells = rng.choice(len(observed), min(LOOKED_AT, 4 * self.layout.n_rows), p=observed / observed.sum())
        sampled = tree.sample(cells, rng)
        surprise = Surprise(levels, levels(sampled), cells % n_classes, n_classes, min(LOOKED_AT, self.layout.n_rows))
        labels, choice = rows.cells % n_classes, self.choice_at(scale)
        some = slice(LOOKED_AT) if rows.places is None else rows.places < LOOKED_AT
        columns = chosen(surprise, levels(rows.values[some]), labels[some], partial(choice.release, source=noise))
        if not columns:
            return tree
        n_cells, mechanism = levels.n_cells(columns), self.joint_at(scale)
        counts = surprise.counts(levels.place(rows.values, columns), labels, n_cells)
        noisy = mechanism.release(counts.ravel(), noise).reshape(counts.shape)
        # Released values only from here on.
        places = levels.place(sampled, columns)
        shares = surprise.shares(surprise.counts(places, surprise.sampled_labels, n_cells))
        weights = corrections(noisy, shares, mechanism.sigma, len(cells))
        if weights is None:
            return tree
        n_sampled = np.maximum(np.bincount(cells, minlength=len(observed)), 1)
        kept = np.bincount(cells, weights[places, cells % n_classes], minlength=len(observed)) / n_sampled
        return InteractionModel(tree, levels, columns, shares, weights, np.where(kept > 0, kept, 1.0))

    def _release_tables(self, rows: Rows, scale: float, noise: NoiseSource) -> list[Floats]:
        """Released shares of each column's codes, given group and label."""
        shape, mechanism = (self.layout.n_groups, self.layout.n_classes), self.tables_at(scale)
        by_label, by_cell = self.times
        tables = [line.reshape(*shape, -1) for line in rows.column_counts(self._all_pairs() if self.tree else ())]
        counted = [by_cell * table for table in tables]
        counted += [by_label * table.sum(axis=0) for table in tables] if by_label else []
        released = released_together(counted, mechanism, noise)
        sized = zip(released, itertools.cycle(rows.n_codes), strict=False)
        lines = [line.reshape(-1, size) for line, size in sized]
        of_cells = [line / by_cell for line in lines[: len(tables)]]
        of_labels: list[Any] = [line / by_label for line in lines[len(tables) :]] or [None] * len(tables)
        sigma, sigma_of_labels = mechanism.sigma / by_cell, mechanism.sigma / max(by_label, 1)
        missing = [size - 2 if may_miss else None for size, may_miss in zip(rows.n_codes, rows.nullable, strict=True)]
        return [
            conditional_tables(cells, sigma, rows.observed, sampled, at, labels, sigma_of_labels)
            for cells, labels, sampled, at in zip(of_cells, of_labels, rows.sampled, missing, strict=True)
        ]

    def _all_pairs(self) -> list[Pair]:
        return list(itertools.combinations(range(self.layout.n_columns), 2))

    def _release_scores(self, rows: Rows, given_cell: list[Floats], scale: float, noise: NoiseSource) -> Floats:
        """Released distance of every pair of columns from independence given group and label."""
        d = self.layout.n_columns
        pairs = self._all_pairs()
        exact = np.empty(len(pairs))
        for k, counts in enumerate(rows.pair_counts(pairs)):
            i, j = pairs[k]
            expected = self.layout.n_rows * _independent(rows.observed, given_cell[i], given_cell[j])
            # On this grid every difference and every sum is exact, so that a score moves by 2 and not by rounding more.
            expected = np.rint(expected * _GRID) / _GRID
            exact[k] = np.abs(counts - expected).sum()
        scores = np.zeros((d, d))
        for (i, j), score in zip(pairs, self.scores_at(scale).release(exact, noise), strict=True):
            scores[i, j] = scores[j, i] = score
        return scores

    def _release_pairs(self, rows: Rows, edges: list[Pair], scale: float, noise: NoiseSource) -> dict[Pair, Floats]:
        """Released joint counts of at most the declared number of pairs."""
        if not edges:
            return {}
        if len(edges) > self.n_pairs:
            raise ValueError(f"{self.n_pairs} tables of pairs were declared, but there are {len(edges)}.")
        counts = list(rows.pair_counts(edges))
        released = released_together(counts, self.pairs_at(scale), noise)
        return {edge: noisy.reshape(exact.shape) for edge, exact, noisy in zip(edges, counts, released, strict=True)}

    # ------------------------------------------------------------------ released values only from here on

    def _agreed(self, given_cell: list[Floats], rows: Rows, pairs: Mapping[Pair, Floats], scale: float) -> list[Floats]:
        """Shares given group and label, whose means over all rows take in what the pairs say of each column."""
        own_variance = self.layout.n_classes * self.noise_by_label_at(scale) ** 2
        sigma = self.pairs_at(scale).sigma if pairs else 0.0
        out = []
        for j, shares in enumerate(given_cell):
            tables = [table if j == i else table.T for (i, k), table in pairs.items() if j in (i, k)]
            # Over all codes of the other column: left out, rows with an entry outside its list would be missed here.
            seen = [(table.sum(axis=1) * rows.sampled[j], table.shape[1] * sigma**2) for table in tables]
            own = rows.observed.ravel() @ shares
            wanted = combined_shares(own, self.layout.n_rows, own_variance, seen) if seen else own
            out.append(with_mean(shares, own, wanted) if seen else shares)
        return out


def _independent(observed: Floats, first: Floats, second: Floats) -> Floats:
    """Joint shares of two columns that are independent given group and label."""
    return np.asarray((observed.reshape(-1, 1) * first).T @ second)
