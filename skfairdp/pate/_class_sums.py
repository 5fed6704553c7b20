"""Noisy sums of the features of each class: what the private rows themselves say of the labels of public rows."""

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, softmax

from skfairdp._teachers import fit_teachers, position_partition, vote_histogram
from skfairdp._utils import BLAS, fit_softmax, row_blocks
from skfairdp.privacy import DpEvent, GaussianMechanism, NeighboringRelation, NoiseSource

Array = NDArray[np.float64]

#: Of the squared cost of the fit, as tables get where there are no public rows.
SHARE = 0.5
FARTHEST = 3.0  # standard deviations of the public rows, beyond which a number counts as no more
#: Features are multiples of this, so that sums of up to 2^23 rows are exact, and a row moves them by no rounding more.
GRID = 2.0**-30
#: Weights of the rows of a subject are multiples of this, so that products with numbers of rows are exact.
WEIGHTS = 2.0**-20
PRIORS = np.geomspace(1e-3, 1e3, 61)


@dataclass(frozen=True)
class PublicScale:
    """Puts a row into the unit ball: centred and scaled by public rows, shortened where it is longer than half of
    them.
    """

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
        """Rows of at most unit length, on the grid, each by itself.

        Squares and their sum, in whatever order, are off by ``d u``, of ``u = 2**-53``; root, quotients and products
        add less than ``8 u``, and cutting to the grid shortens. Twice that is left out of the unit ball.
        """
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
class ClassSums:
    """The number of private rows of each class and the sum of their features, released once.

    A row is a vector ``(1, u)`` with ``‖u‖ ≤ 1`` in the block of its class. A replaced row moves the sums by
    ``‖u - u'‖ ≤ 2`` within a class, and by ``√(1 + ‖u‖² + 1 + ‖u'‖²) ≤ 2`` from one class to another: the sensitivity
    is 2. The logistic regression whose expected sums on the public rows are these is what a regression on all private
    rows would be, as far as the public rows are alike. It knows as much as n teachers of one row each: votes of
    ``k < n`` teachers have ``n / k`` times the noise.

    A subject adds the sum of its rows, all of them with one weight, by which it is no longer than ``√2``, as a row is.
    In the block of a class let it have the number ``a`` and the features ``f``: ``‖f‖ ≤ a``, as ``‖u‖ ≤ 1``. Of two
    subjects ``(a - a')² + ‖f - f'‖² ≤ (a - a')² + (‖f‖ + ‖f'‖)² ≤ a² + ‖f‖² + a'² + ‖f'‖²``, since
    ``‖f‖ ‖f'‖ ≤ a a'``. Over all blocks that is at most ``2 + 2``, so the sensitivity stays 2. Rows that say different
    things add up to less than their number, and count for more than by a mean of them, at the same noise. Weights and
    what they make of features are on public grids: a component is cut towards zero, and sums are exact.
    """

    mu: float
    n_rows: int
    n_classes: int
    relation: NeighboringRelation = NeighboringRelation.REPLACE_ONE
    releases: ClassVar[tuple[str, ...]] = ("sums of the features of each class",)

    @property
    def mechanism(self) -> GaussianMechanism:
        """For all sums together."""
        return GaussianMechanism(2.0 / self.mu, sensitivity=2.0, relation=self.relation)

    @property
    def event(self) -> DpEvent:
        """One release."""
        return self.mechanism.event

    def release(
        self,
        X: Array,
        y: NDArray[np.int64],
        X_public: Array,
        noise: NoiseSource,
        terms: Callable[[Array], Array] = np.asarray,
        of: NDArray[np.int64] | None = None,
    ) -> tuple[Array, float]:
        """Release the sums; return how likely each label of the public rows is by them, and the variance of that.
        ``of`` is the subject of each row, where rows are those of subjects."""
        public = terms(X_public)
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
        noisy = self.mechanism.release(sums.ravel(), noise).reshape(sums.shape)
        # Released values only from here on.
        if of is None:
            return self.regression(noisy, public)
        # Rows of subjects weigh more than there are subjects, by as much as was released.
        return replace(self, n_rows=max(self.n_rows, int(noisy[:, 0].sum()))).regression(noisy, public)

    @BLAS.wrap(limits=1)
    def regression(self, noisy: Array, public: Array) -> tuple[Array, float]:
        """The logistic regression on public rows that expects the released sums; post-processing.
        Weights have a normal prior, whose variance is the one with the largest evidence under the known noise."""
        rates, apart, noise = self._apart(noisy)
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
        weights = fit_softmax(
            rows,
            stands_for * rows.sum(axis=0)[:, None] * rates + found / bend,
            penalty / bend**2,
            start=np.zeros(found.shape),
            weights=stands_for,
            offset=odds,
            constant=-float(self.n_rows * rates @ odds),
            maxiter=500,
        )
        scores = odds + rows @ weights
        unknown = 1 / (1 / (prior * values[:, None]) + slopes**2 / errors)
        variance = float((slopes**2 * unknown.sum(axis=0)).mean()) / self.n_rows
        if scores.shape[1] > 1:
            return softmax(scores, axis=1), variance
        second = expit(scores[:, 0])
        return np.column_stack([1 - second, second]), variance

    def _apart(self, noisy: Array) -> tuple[Array, Array, Array]:
        """Rates of the classes, how far sums are from those of rows without any difference, and the variance of that.
        Of two classes the second says it all."""
        sigma = self.mechanism.sigma
        counts = np.maximum(noisy[:, 0], sigma)
        rates = counts / counts.sum()
        apart = noisy - np.outer(rates, noisy.sum(axis=0))
        noise = np.square(sigma) * (np.square(1 - rates) + (self.n_classes - 1) * np.square(rates))
        told = slice(1, None) if self.n_classes == 2 else slice(None)
        return rates[told], apart[told], noise[told]


def _together(of: NDArray[np.int64], y: NDArray[np.int64]) -> tuple[NDArray[np.int64], Iterator[slice]]:
    """An order of the rows by subject and class, and blocks of them that cut no subject."""
    order = np.lexsort([y, of])
    borders = np.append(np.flatnonzero(np.diff(of[order], prepend=-1)), len(y))
    starts = np.array([some.start for some in row_blocks(len(y))], dtype=np.int64)
    edges = np.append(borders[np.searchsorted(borders, starts)], len(y)).tolist()
    return order, (slice(start, stop) for start, stop in itertools.pairwise(edges) if stop > start)


def _of_subjects(units: Array, y: NDArray[np.int64], of: NDArray[np.int64], n_classes: int) -> Array:
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


TEACHERS = 60
MOST_ROWS = 2000  # of a teacher; one of more rows learns what its rows say, and is as sure as they are
STEEPEST = 8.0
#: Below it votes on rows of the tables hardly follow the tables: then nothing can be told by them.
FLATTEST = 0.05
LEAST = 0.1
#: Variances of the power by which it is drawn to 1, as James and Stein do: tables that are right stay as they are.
CAUTION = 1.0
SMALLEST_SHARE = 1e-5


def temperature_scaled(told: Array, queries: NDArray[np.int64], shares: Array, rehearsed: Array) -> Array:
    """Labels that tables tell of rows, as sure as the votes on those rows confirm.

    Tables of single columns know nothing of how columns go together, and sum up what each of them says: two that say
    the same make a row look twice as certain. Teachers see whole rows. How steeply their released shares follow what
    the tables say, beside how steeply those of teachers follow it that learn from rows of the tables themselves, is how
    much of it is right. Post-processing of released values.
    """
    logs = np.log(np.maximum(told, SMALLEST_SHARE))
    if_right, its_error = _steepness(logs[queries], rehearsed)
    if if_right < FLATTEST:
        return told
    found, error = _steepness(logs[queries], shares)
    excess = 1 - max(found / if_right, LEAST)
    variance = (error**2 + (1 - excess) ** 2 * its_error**2) / if_right**2
    if excess <= 0 or excess**2 <= CAUTION * variance:
        return told
    return _with_rates((1 - excess * (1 - CAUTION * variance / excess**2)) * logs, told.mean(axis=0))


def rehearsed_votes(
    teacher: Any, X: Array, told: Array, queries: NDArray[np.int64], *, n_rows: int, n_teachers: int, rng: Any
) -> Array:
    """Shares of the votes of teachers on rows that the tables have made, labels included."""
    n_classes, n_here = told.shape[1], min(n_teachers, TEACHERS)
    rows = rng.integers(len(X), size=n_here * min(max(n_rows // n_teachers, 1), MOST_ROWS))
    labels = (rng.random(len(rows))[:, None] > told[rows].cumsum(axis=1)[:, :-1]).sum(axis=1)
    parts = position_partition(len(rows), n_here, random_state=rng)
    teachers = fit_teachers(teacher, X[rows], labels, parts, n_teachers=n_here, n_classes=n_classes, random_state=rng)
    return vote_histogram(teachers.predict(X[queries]), n_classes) / n_here


def _steepness(logs: Array, shares: Array) -> tuple[float, float]:
    """The power to which the tables' shares, at the rates of these, expect the scores that these have; its error."""
    rates = np.maximum(shares.mean(axis=0), 1e-3)
    rates /= rates.sum()
    low, high = 0.0, STEEPEST
    for _ in range(20):
        power = (low + high) / 2
        expected = _with_rates(power * logs, rates)
        apart = (logs * (shares - expected)).sum(axis=1)
        low, high = (power, high) if float(apart.sum()) > 0 else (low, power)
    spread = (expected * np.square(logs - (expected * logs).sum(axis=1, keepdims=True))).sum(axis=1)
    return power, float(apart.std() / max(float(spread.mean()), 1e-12)) / np.sqrt(len(logs))


def _with_rates(scores: Array, rates: Array) -> Array:
    """Shares that follow from scores, each column moved so that it has that mean."""
    # A class is a contiguous row here: sums over the few classes of each of many rows take longer.
    shares = np.ascontiguousarray(np.exp(scores - scores.max(axis=1, keepdims=True)).T)
    for _ in range(60):
        before = shares.copy()
        shares /= shares.sum(axis=0)
        means = shares.cumsum(axis=1)[:, -1] / shares.shape[1]  # added in the order of the rows, as a table's columns
        shares *= (rates / np.maximum(means, 1e-300))[:, None]
        if np.array_equal(shares, before):  # and so it would stay
            break
    return np.ascontiguousarray((shares / shares.sum(axis=0)).T)
