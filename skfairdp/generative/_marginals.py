"""The default for tables: a graphical model over noisy tables of counts that include the group and the label."""

import itertools
import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfairdp.generative._backend import RELATION, BackendPlan, FittedModel, GeneratorBackend, Layout, PrivateRows
from skfairdp.generative._junction_tree import check_installed, fitted_junction_tree, further_pairs
from skfairdp.generative._tree import (
    TreeModel,
    best_tree,
    conditional_tables,
    drawn_towards,
    joint_given_strata,
)
from skfairdp.privacy import DpEvent, GaussianMechanism, NoiseSource, compose
from skfairdp.utils._sklearn import Interval, StrOptions

__all__ = ["MarginalsBackend"]

_GRID = 1024.0  # steps of one row


class MarginalsBackend(GeneratorBackend):
    """Draw each column from noisy tables of counts, given group, label and (in a tree) one other column.

    **Guarantee.** Differential privacy for one replaced record, by three Gaussian releases. (1) One table of counts for
    every column by group and label: one replaced row moves two counts by one in each, so all of them together by √(2d)
    in L2 norm. (2) One score per pair of columns, the L1 distance of its joint counts from what (1) would make of them:
    it moves by at most 2, so all pairs together by 2√(d(d−1)/2). (3) The joint counts of the pairs of a tree that (2)
    chose: √2 times the root of the number of pairs. The rest is post-processing.

    With ``structure="junction_tree"`` (3) has ``extra_pairs`` more pairs, of the largest scores: √2 times the root of
    the declared number, whether or not as many are worth it.

    The tree (Chow & Liu 1968) gives each column one parent beside group and label; what a pair has in common is taken
    to be the same in every group, the law of largest entropy that agrees with the released tables.

    Parameters
    ----------
    structure : {"tree", "star", "junction_tree"}, default="tree"
        ``"star"`` makes columns independent given group and label: release (1) only. ``"junction_tree"`` lets columns
        depend on more than one other; the ``mbi`` package fits it (``pip install 'skfairdp[mbi]'``), in half a minute
        where a tree takes a second.
    extra_pairs : int, default=8
        Pairs beyond those of a tree, with ``structure="junction_tree"``.
    scores_share, pairs_share : float, default=0.06, 0.34
        Shares of the squared cost of (2) and (3); (1) has the rest.

    Examples
    --------
    >>> from skfairdp.generative import MarginalsBackend, PFGuardGenerator
    >>> PFGuardGenerator(backend=MarginalsBackend(structure="star")).backend
    MarginalsBackend(structure='star')
    """

    _parameter_constraints: dict[str, Any] = {
        "structure": [StrOptions({"tree", "star", "junction_tree"})],
        "extra_pairs": [Interval(Integral, 0, None, closed="left")],
        "scores_share": [Interval(Real, 0, 1, closed="neither")],
        "pairs_share": [Interval(Real, 0, 1, closed="neither")],
    }

    def __init__(
        self, *, structure: str = "tree", extra_pairs: int = 8, scores_share: float = 0.06, pairs_share: float = 0.34
    ) -> None:
        self.structure = structure
        self.extra_pairs = extra_pairs
        self.scores_share = scores_share
        self.pairs_share = pairs_share

    def plan(self, layout: Layout) -> "MarginalsPlan":
        """Decide the three releases.

        Raises
        ------
        ValueError
            The rows are images, or the shares leave nothing for the tables by group and label.
        ImportError
            ``structure="junction_tree"`` without the ``mbi`` package.
        """
        self._validate_params()
        if layout.kind != "cells":
            raise ValueError(
                "MarginalsBackend counts cells of a table and cannot learn images. Use backend='gs_wgan', or give X as "
                "a table."
            )
        if layout.settings["unknown_groups"]:
            raise ValueError(
                "MarginalsBackend cannot balance groups that are unknown. Pass sensitive_features, set balance=None, "
                "or take a backend whose teachers estimate ratios from X_reference, such as 'pate_gan'."
            )
        if self.scores_share + self.pairs_share >= 1:
            raise ValueError(
                "'scores_share' and 'pairs_share' of MarginalsBackend must add up to less than 1, for the tables by "
                f"group and label need the rest. Got {self.scores_share:g} and {self.pairs_share:g}."
            )
        tree = self.structure != "star" and layout.n_columns > 1
        extra = None
        if tree and self.structure == "junction_tree":
            check_installed()
            extra = min(self.extra_pairs, math.comb(layout.n_columns - 1, 2))  # all that a tree leaves
        return MarginalsPlan(layout, tree, self.scores_share if tree else 0.0, self.pairs_share if tree else 0.0, extra)


@dataclass(frozen=True)
class MarginalsPlan(BackendPlan):
    layout: Layout
    tree: bool
    scores_share: float
    pairs_share: float
    extra_pairs: int | None = None  # None: a tree

    @property
    def n_pairs(self) -> int:
        """Declared tables of pairs."""
        return self.layout.n_columns - 1 + (self.extra_pairs or 0)

    def tables_at(self, noise: float) -> GaussianMechanism:
        sensitivity = math.sqrt(2 * self.layout.n_columns)
        share = 1 - self.scores_share - self.pairs_share
        return _counts_at(noise / math.sqrt(share), sensitivity)

    def scores_at(self, noise: float) -> GaussianMechanism:
        d = self.layout.n_columns
        sensitivity = 2 * math.sqrt(d * (d - 1) / 2)
        return _counts_at(noise / math.sqrt(self.scores_share), sensitivity)

    def pairs_at(self, noise: float) -> GaussianMechanism:
        """For all declared pairs; fewer cost less than is charged."""
        sensitivity = math.sqrt(2 * self.n_pairs)
        return _counts_at(noise / math.sqrt(self.pairs_share), sensitivity)

    def event_at(self, noise: float) -> DpEvent:
        if not self.tree:
            return self.tables_at(noise).event
        return compose(self.tables_at(noise).event, self.scores_at(noise).event, self.pairs_at(noise).event)

    @property
    def releases(self) -> tuple[str, ...]:
        d = self.layout.n_columns
        tables = (f"{d} tables of counts by group and label",)
        pairs = (f"{d * (d - 1) // 2} scores of pairs", f"{self.n_pairs} tables of pairs")
        return (*tables, *pairs) if self.tree else tables

    def learn(self, rows: PrivateRows, noise: float, source: NoiseSource) -> "MarginalsModel":
        n_strata, d = self.layout.n_strata, self.layout.n_columns
        strata = rows.groups * self.layout.n_classes + rows.labels
        sizes = rows.n_cells
        mechanism = self.tables_at(noise)
        counts = [
            np.bincount(strata * size + rows.values[:, j], minlength=n_strata * size) for j, size in enumerate(sizes)
        ]
        noisy = np.split(mechanism.release(np.concatenate(counts), source), np.cumsum([len(c) for c in counts])[:-1])
        given_strata = [
            conditional_tables(
                table.reshape(n_strata, size),
                mechanism.sigma,
                self.layout.n_groups,
                sampled,
                size - 2 if rows.nullable[j] else None,
            )
            for j, (table, size, sampled) in enumerate(zip(noisy, sizes, rows.sampled, strict=True))
        ]
        weights = rows.observed.ravel()
        edges: list[tuple[int, int]] = []
        if self.tree:
            scores = self._scores(rows, given_strata, weights, noise, source)
            edges = best_tree(scores, sizes, self.pairs_at(noise).sigma)
            if self.extra_pairs is not None:
                return self._junction_tree(rows, noisy, scores, edges, given_strata, noise, source)
        parents = {child: parent for parent, child in edges}
        joint = self._joint_tables(rows, edges, given_strata, weights, noise, source)
        order: list[tuple[int, tuple[int, ...]]] = [(j, ()) for j in range(d) if j not in parents]
        tables = [given_strata[j] for j, _ in order]
        for parent, child in edges:
            first, second = given_strata[parent], given_strata[child]
            law = joint_given_strata(joint[parent, child], first, second, weights)
            of_parent = law.sum(axis=2, keepdims=True)
            order.append((child, (parent,)))
            tables.append(np.where(of_parent > 0, law / np.maximum(of_parent, 1e-300), second[:, None, :]))
        return MarginalsModel(TreeModel(order, tables))

    def _scores(
        self,
        rows: PrivateRows,
        given_strata: list[NDArray[np.float64]],
        weights: NDArray[np.float64],
        noise: float,
        source: NoiseSource,
    ) -> NDArray[np.float64]:
        d = self.layout.n_columns
        pairs = list(itertools.combinations(range(d), 2))
        exact = np.empty(len(pairs))
        for k, (i, j) in enumerate(pairs):
            expected = self.layout.n_rows * np.einsum("s,si,sj->ij", weights, given_strata[i], given_strata[j])
            # On this grid every difference and every sum is exact, so that a score moves by 2 and not by rounding more.
            expected = np.rint(expected * _GRID) / _GRID
            exact[k] = np.abs(_pair_counts(rows, i, j) - expected).sum()
        scores = np.zeros((d, d))
        for (i, j), score in zip(pairs, self.scores_at(noise).release(exact, source), strict=True):
            scores[i, j] = scores[j, i] = score
        return scores

    def _joint_tables(
        self,
        rows: PrivateRows,
        edges: list[tuple[int, int]],
        given_strata: list[NDArray[np.float64]],
        weights: NDArray[np.float64],
        noise: float,
        source: NoiseSource,
    ) -> dict[tuple[int, int], NDArray[np.float64]]:
        return {
            (i, j): _shares_of_pair(
                table,
                np.einsum("s,si,sj->ij", weights, given_strata[i], given_strata[j]),
                np.ix_(rows.sampled[i], rows.sampled[j]),
                self.pairs_at(noise).sigma,
            )
            for (i, j), table in self._noisy_pairs(rows, edges, noise, source).items()
        }

    def _noisy_pairs(
        self, rows: PrivateRows, pairs: list[tuple[int, int]], noise: float, source: NoiseSource
    ) -> dict[tuple[int, int], NDArray[np.float64]]:
        """Joint counts of at most the declared number of pairs, in one release."""
        if not pairs:
            return {}
        if len(pairs) > self.n_pairs:
            raise ValueError(f"{self.n_pairs} tables of pairs were declared, but there are {len(pairs)}.")
        counts = [_pair_counts(rows, i, j) for i, j in pairs]
        ends = np.cumsum([table.size for table in counts])[:-1]
        noisy = self.pairs_at(noise).release(np.concatenate([table.ravel() for table in counts]), source)
        return {
            pair: part.reshape(table.shape)
            for pair, table, part in zip(pairs, counts, np.split(noisy, ends), strict=True)
        }

    def _junction_tree(
        self,
        rows: PrivateRows,
        by_stratum: list[NDArray[np.float64]],
        scores: NDArray[np.float64],
        edges: list[tuple[int, int]],
        given_strata: list[NDArray[np.float64]],
        noise: float,
        source: NoiseSource,
    ) -> "MarginalsModel":
        n_strata, sigma = self.layout.n_strata, self.pairs_at(noise).sigma
        edges = [*edges, *further_pairs(scores, edges, rows.n_cells, sigma, n_strata, self.extra_pairs or 0)]
        tables = [table.reshape(n_strata, -1) for table in by_stratum]
        pairs = self._noisy_pairs(rows, edges, noise, source)
        return MarginalsModel(
            fitted_junction_tree(tables, self.tables_at(noise).sigma, pairs, sigma, self.layout.n_rows, given_strata)
        )


def _counts_at(noise_multiplier: float, sensitivity: float) -> GaussianMechanism:
    return GaussianMechanism(noise_multiplier * sensitivity, sensitivity=sensitivity, relation=RELATION)


def _pair_counts(rows: PrivateRows, i: int, j: int) -> NDArray[np.int64]:
    n_first, n_second = rows.n_cells[i], rows.n_cells[j]
    codes = rows.values[:, i] * n_second + rows.values[:, j]
    return np.bincount(codes, minlength=n_first * n_second).reshape(n_first, n_second)


def _shares_of_pair(
    noisy: NDArray[np.float64], independent: NDArray[np.float64], kept: tuple[Any, ...], sigma: float
) -> NDArray[np.float64]:
    """Joint shares of two columns, drawn towards independence given the stratum as far as noise explains the rest."""
    out = np.zeros(noisy.shape)
    out[kept] = drawn_towards(independent[kept].reshape(1, -1), noisy[kept].reshape(1, -1), sigma).reshape(
        noisy[kept].shape
    )
    return out


class MarginalsModel(FittedModel):
    """Released shares of cells, ready to sample from.

    Parameters
    ----------
    tree : TreeModel
    """

    def __init__(self, tree: TreeModel) -> None:
        self.tree = tree

    def sample(self, strata: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int32]:
        return self.tree.sample(strata, rng)

    def log_likelihood(self, values: NDArray[Any]) -> NDArray[np.float64]:
        return self.tree.log_likelihood(values)
