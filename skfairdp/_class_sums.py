"""Noisy sums of the features of each class, and the logistic regression that they tell."""

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import expit, logit, softmax

from skfairdp._typing import Floats as Array, Ints as Codes
from skfairdp._utils import BLAS, fit_softmax, row_blocks
from skfairdp.privacy import DpEvent, GaussianMechanism, NeighboringRelation, NoiseSource

Terms = Callable[[Array], Array]

FARTHEST = 3.0  # standard deviations of the public rows, beyond which a number counts as no more
#: Features are multiples of this, so that sums of up to 2^23 rows are exact, and a row moves them by no rounding more.
GRID = 2.0**-30
#: Weights of the rows of a subject are multiples of this, so that products with numbers of rows are exact.
WEIGHTS = 2.0**-20
PRIORS = np.geomspace(1e-3, 1e3, 61)


@dataclass(frozen=True)
class PublicScale:
    """Puts a row into the unit ball: centred and scaled by public rows, shortened where it is longer than half of
    them."""

    center: Array
    scale: Array
    radius: float

    @classmethod
    def of(cls, X_public: Array) -> "PublicScale":
        """The scale that follows from public rows."""
        center, spread = X_public.mean(axis=0), X_public.std(axis=0)
        low, high = X_public.min(axis=0), X_public.max(axis=0)
        is_flag = ((X_public == low) | (X_public == high)).all(axis=0)
        scale = np.where(is_flag, high - low, spread)
        scale = np.where(scale > 0, scale, np.inf)
        blocks = (X_public[some] for some in row_blocks(len(X_public)))
        units = (np.clip((rows - center) / scale, -FARTHEST, FARTHEST) for rows in blocks)
        radius = float(np.median(np.concatenate([np.linalg.norm(rows, axis=1) for rows in units])))
        return cls(center, scale, radius if radius > 0 else 1.0)

    def __call__(self, X: Array) -> Array:
        """Rows of at most unit length, on the grid, each by itself. Squares and their sum are off by ``d u``, ``u =
        2**-53``; root, quotients and products add less than ``8 u``, cutting to the grid shortens: twice that is left
        out of the ball."""
        with np.errstate(over="ignore", invalid="ignore"):  # of a number far away: it counts as no more than FARTHEST
            units = np.subtract(X, self.center, order="C")
            units /= self.scale
        units[:, np.isinf(self.scale)] = 0.0  # also where a row is an infinity away
        np.clip(units, -FARTHEST, FARTHEST, out=units)
        units /= self.radius
        just_within = 1 - (units.shape[1] + 8) * 2.0**-52
        lengths = np.sqrt(np.einsum("ij,ij->i", units, units))
        units *= (just_within / GRID / np.maximum(lengths, 1.0))[:, None]
        return np.multiply(np.trunc(units, out=units), GRID, out=units)


@dataclass(frozen=True)
class SoftmaxRule:
    """How likely each label of a row is: constants and weights of its features, once they are scaled."""

    scale: PublicScale
    weights: Array

    def __call__(self, X: Array) -> Array:
        """Shares of the labels of each row."""
        return shares_by(self.weights[0] + self.scale(X) @ self.weights[1:])


@dataclass(frozen=True)
class ClassSums:
    """The number of private rows of each class and the sum of their features, released once.
    A row is a vector ``(1, u)`` with ``‖u‖ ≤ 1`` in the block of its class. A replaced row moves the sums by ``‖u - u'‖
    ≤ 2`` within a class, and by ``√(1 + ‖u‖² + 1 + ‖u'‖²) ≤ 2`` from one class to another: the sensitivity is 2. The
    logistic regression whose expected sums on the public rows are these is what a regression on all private rows would
    be, as far as the public rows are alike. It knows as much as n teachers of one row each: votes of ``k < n`` teachers
    have ``n / k`` times the noise.
    A subject adds the sum of its rows, all of them with one weight, by which it is no longer than ``√2``, as a row is.
    In the block of a class let it have the number ``a`` and the features ``f``: ``‖f‖ ≤ a``, as ``‖u‖ ≤ 1``. Of two
    subjects ``(a - a')² + ‖f - f'‖² ≤ (a - a')² + (‖f‖ + ‖f'‖)² ≤ a² + ‖f‖² + a'² + ‖f'‖²``, since ``‖f‖ ‖f'‖ ≤ a a'``.
    Over all blocks that is at most ``2 + 2``, so the sensitivity stays 2. Rows that say different things add up to less
    than their number, and count for more than by a mean of them, at the same noise. Weights and what they make of
    features are on public grids: a component is cut towards zero, and sums are exact.
    Sampled rows are not spread as private ones are, so half the squares of features are summed as well, once for each
    subject. Those of a row are a vector no longer than 1/2 without negative numbers; two are at most ``√½`` apart, and
    the sensitivity is ``√4.5``."""

    mu: float
    n_rows: int
    n_classes: int
    relation: NeighboringRelation = NeighboringRelation.REPLACE_ONE
    alone: bool = False
    of_squares: bool = False

    @property
    def releases(self) -> tuple[str, ...]:
        """The kinds of release, in words, for the ledger."""
        return ("sums of the features of each class" + (", and of squares of all" if self.of_squares else ""),)

    @property
    def mechanism(self) -> GaussianMechanism:
        """For all sums together."""
        sensitivity = math.sqrt(4.5) if self.of_squares else 2.0
        return GaussianMechanism(sensitivity / self.mu, sensitivity=sensitivity, relation=self.relation)

    @property
    def event(self) -> DpEvent:
        """One release."""
        return self.mechanism.event

    def release(
        self,
        X: Array,
        y: Codes,
        public: Array,
        noise: NoiseSource,
        terms: Terms = np.asarray,
        of: Codes | None = None,
        once: Array | None = None,
    ) -> tuple["SoftmaxRule", float, Array]:
        """Release the sums; return what says how likely each label of a row is by them, its variance, and the counts of
        classes. ``of`` is the subject of each row, where there are any; ``once`` the rows whose squares count."""
        public = terms(public)
        scale = PublicScale.of(public)
        public = scale(public)
        sums = np.zeros((self.n_classes, 1 + public.shape[1]))
        order, blocks = (None, row_blocks(len(y))) if of is None else _together(of, y)
        for some in blocks:  # sums of multiples of the grid are exact, in whatever order
            rows = some if order is None else order[some]
            of_class = np.equal.outer(np.arange(self.n_classes), y[rows]).astype(np.float64)
            units = scale(terms(X[rows]))
            if of is None:
                sums[:, 0] += of_class.sum(axis=1)
                sums[:, 1:] += of_class @ units
            else:
                sums += _of_subjects(units, y[rows], of[rows], self.n_classes)
        flat, alike = sums.ravel(), public
        if self.of_squares:
            assert once is not None
            squares = sum(_halves_of_squares(scale(terms(once[some]))) for some in row_blocks(len(once)))
            flat = np.concatenate([flat, np.broadcast_to(squares, public.shape[1])])
        released = self.mechanism.release(flat, noise)
        noisy = released[: sums.size].reshape(sums.shape)
        # Released values only from here on. Rows of subjects weigh more than there are subjects, by as much as is said.
        if self.of_squares:
            means = noisy[:, 1:].sum(axis=0) / max(noisy[:, 0].sum(), 1.0)
            alike = stretched(public, means, 2 * released[sums.size :] / self.n_rows)
        n_rows = self.n_rows if of is None else max(self.n_rows, int(noisy[:, 0].sum()))
        weights, variance = replace(self, n_rows=n_rows).regression(noisy, alike)
        return SoftmaxRule(scale, weights), variance, noisy[:, 0]

    @BLAS.wrap(limits=1)
    def regression(self, noisy: Array, public: Array) -> tuple[Array, float]:
        """The logistic regression on public rows that expects the released sums: constants and weights, one line each,
        and the variance of its shares. The prior's variance is that of largest evidence under the known noise."""
        sigma = self.mechanism.sigma
        counts = np.maximum(noisy[:, 0], sigma)
        rates = counts / counts.sum()
        apart = noisy - np.outer(rates, noisy.sum(axis=0))  # from sums of rows without any difference
        noise = np.square(sigma) * (np.square(1 - rates) + (self.n_classes - 1) * np.square(rates))
        if self.n_classes == 2:  # the second says it all
            rates, apart, noise = rates[1:], apart[1:], noise[1:]
        odds = logit(rates) if self.n_classes == 2 else np.log(rates)
        stands_for = self.n_rows / len(public)
        total, count = public.sum(axis=0)[None], np.full((1, 1), len(public))
        values, vectors = np.linalg.eigh(stands_for * np.block([[count, total], [total.T, public.T @ public]]))
        kept = values > 1e-9 * values[-1]
        values = values[kept]
        turned = vectors[:, kept] / np.sqrt(values)
        rows = public @ turned[1:] + turned[0]  # in these directions, as much is known of each
        found = (apart @ turned).T
        slopes = rates * (1 - rates)
        errors = noise / values[:, None] + slopes
        # the variance of weights under which what was found is the least surprising
        v = np.square(PRIORS)[:, None, None] * (values[:, None] * slopes**2) + errors
        prior = float(PRIORS[int((np.log(v) + np.square(found) / v).sum(axis=(1, 2)).argmin())] ** 2)
        penalty = errors / (prior * values[:, None] * slopes)
        # Public columns that say nearly the same leave directions with a penalty of 1e13, on which the solver would
        # take no step: all directions bend by about as much here.
        bend = np.sqrt((slopes + penalty).mean(axis=1, keepdims=True))
        rows /= bend.T
        expected, constant = stands_for * rows.sum(axis=0)[:, None] * rates, -float(self.n_rows * rates @ odds)
        loss: dict[str, Any] = {"weights": stands_for, "offset": odds, "constant": constant, "maxiter": 500}
        weights = fit_softmax(rows, expected + found / bend, penalty / bend**2, start=np.zeros(found.shape), **loss)
        weights = turned / bend.T @ weights
        weights[0] += odds
        unknown = 1 / (1 / (prior * values[:, None]) + slopes**2 / errors)
        return weights, float((slopes**2 * unknown.sum(axis=0)).mean()) / self.n_rows


def _halves_of_squares(units: Array) -> Array:
    """Sums of half the squares of features, on the grid, so that they are exact."""
    return np.asarray((np.trunc(np.square(units) / GRID) * (GRID / 2)).sum(axis=0))


def stretched(rows: Array, means: Array, squares: Array) -> Array:
    """Rows within the unit ball whose numbers have these means and mean squares, as far as their limits allow."""
    low, high, center = rows.min(axis=0), rows.max(axis=0), rows.mean(axis=0)
    factors, found = np.ones(rows.shape[1]), rows
    for _ in range(20):
        found = np.clip(means + factors * (rows - center), low, high)
        found /= np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1.0)
        reached = np.maximum(np.square(found).mean(axis=0), GRID)
        factors = np.clip(factors * np.sqrt(np.maximum(squares, 0.0) / reached), 0.5, 8.0)
    return np.where(((rows == low) | (rows == high)).all(axis=0), rows, found)


def _together(of: Codes, y: Codes) -> tuple[Codes, Iterator[slice]]:
    """An order of the rows by subject and class, and blocks of them that cut no subject."""
    order = np.lexsort([y, of])
    borders = np.append(np.flatnonzero(np.diff(of[order], prepend=-1)), len(y))
    starts = np.array([some.start for some in row_blocks(len(y))], dtype=np.int64)
    edges = np.append(borders[np.searchsorted(borders, starts)], len(y)).tolist()
    return order, (slice(start, stop) for start, stop in itertools.pairwise(edges) if stop > start)


def _of_subjects(units: Array, y: Codes, of: Codes, n_classes: int) -> Array:
    """What some subjects add, of rows in the order of subject and class: one weight for all rows of one."""
    first = np.flatnonzero(np.diff(of, prepend=-1) | np.diff(y, prepend=-1))
    added = np.add.reduceat(np.column_stack([np.ones(len(y)), units]), first, axis=0)
    _, whose = np.unique(of[first], return_inverse=True)
    lengths = np.sqrt(np.bincount(whose, np.einsum("ij,ij->i", added, added)))
    just_within = 1 - (added.shape[1] * n_classes + 16) * 2.0**-52  # what squares, sums and the root are off by
    weights = np.floor(math.sqrt(2.0) * just_within / lengths / WEIGHTS) * WEIGHTS
    weights[(np.bincount(whose, added[:, 0]) == 1) | (weights > 1)] = 1.0
    cut = np.trunc(added * (weights[whose] / GRID)[:, None]) * GRID
    return np.equal.outer(np.arange(n_classes), y[first]).astype(np.float64) @ cut


def shares_by(scores: Array) -> Array:
    """Probabilities of all classes by scores of shape (n_rows, n_outputs); of two classes the second has one."""
    if scores.shape[1] > 1:
        return softmax(scores, axis=1)
    second = expit(scores[:, 0])
    return np.column_stack([1 - second, second])
