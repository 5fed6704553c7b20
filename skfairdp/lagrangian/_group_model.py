"""The group of a row given its features and label, from one noisy table of moments.

Features of X and y are public under attribute privacy, so any of their linear statistics of the groups is one vector
release: ``Σ_{i in group} φ(x_i, y_i)`` plus noise. Those moments are all that a logistic regression of the group on φ
needs. Where φ spans what gradients of the constraint vary in, a primal step with estimated groups follows the same
direction as with true ones.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from skfairdp._utils import BLAS, fit_softmax
from skfairdp.lagrangian._plan import PFLDPlan
from skfairdp.privacy import NoiseSource

Array = NDArray[np.float64]
_ROWS, _AT_ONCE = 8192, 2**14  # estimated together, and described together
_N_BLOCKS = 4
_MOST_STEPS = 100


class PublicFeatures:
    """Orthonormal public features of some rows, and of others in the same way.

    First come indicators of the classes, then X and X by class, then random tanh features of X and y, each block made
    orthogonal to those before it. A row's squared length is its leverage; rows of more than four times the average are
    scaled down to that (in the features and so in the moments, an estimating equation as valid as before).
    """

    @BLAS.wrap(limits=1)
    def __init__(
        self,
        X: Array,
        y: NDArray[np.int64],
        n_classes: int,
        n_features: int,
        seed: int,
        which: NDArray[np.int64] | None = None,
    ) -> None:
        n, rng = len(y), np.random.default_rng(seed)
        room = max(n_classes, min(n_features, n // 20))
        self._n_classes, hidden, width = n_classes, max(0, room - n_classes), X.shape[1] + n_classes
        self._middle, self._spread = _common_scale(X if which is None else X[which])
        self._slope = rng.normal(size=(width, hidden)) / math.sqrt(max(1, min(X.shape[1], 20)))
        self._offset = rng.normal(size=hidden) * 0.5
        self._steps: list[tuple[Array, Array, Array]] = []  # of each block: what is taken off, twice, and what is kept
        basis, used = np.empty((n, room)), 0
        some = [slice(start, start + _AT_ONCE) for start in range(0, n, _AT_ONCE)]  # only the basis is kept of all
        for block in range(_N_BLOCKS):
            before, width = basis[:, :used], self._block(block, X[:1], y[:1]).shape[1]
            rest: Any = np.empty((n, width))
            for rows in some:
                rest[rows] = self._block(block, X[rows if which is None else which[rows]], y[rows])
            first = sum(before[rows].T @ rest[rows] for rows in some)
            for rows in some:
                rest[rows] -= before[rows] @ first
            second = sum(before[rows].T @ rest[rows] for rows in some)
            for rows in some:
                rest[rows] -= before[rows] @ second  # once more, for what rounding left
            values, vectors = np.linalg.eigh(rest.T @ rest)  # of a small matrix; the largest come last
            order = np.flatnonzero(values > 1e-8 * n)[::-1][: room - used]
            kept = vectors[:, order] / np.sqrt(values[order])
            np.matmul(rest, kept, out=basis[:, used : used + len(order)])
            used += len(order)
            self._steps.append((first, second, kept))
            if used == room:
                break
        self.features = basis[:, :used]
        length = np.sqrt(np.einsum("ij,ij->i", self.features, self.features))
        self.weights = np.minimum(1.0, 2 * math.sqrt(used / n) / np.maximum(length, 1e-12))

    def _block(self, block: int, X: Array, y: NDArray[np.int64]) -> Array:
        """What they are made of, from the plainest to the most involved; nobody makes what is not asked for."""
        labels = np.eye(self._n_classes)[y]
        if block == 0:
            return labels
        scaled = X - self._middle
        scaled /= self._spread
        np.clip(scaled, -5.0, 5.0, out=scaled)  # no row may hide what the others say
        if block == 1:
            return scaled
        if block == 2:
            return np.concatenate([scaled * labels[:, [k]] for k in range(1, self._n_classes)], axis=1)
        return np.tanh(np.concatenate([scaled, labels], axis=1) @ self._slope + self._offset)

    @BLAS.wrap(limits=1)
    def estimates(self, coefficients: Array, X: Any, y: NDArray[np.int64]) -> Array:
        """Probabilities of the groups of any rows, some rows at a time, shape (n_rows, n_groups)."""
        found = np.empty((len(y), len(coefficients)))
        for start in range(0, len(y), _ROWS):
            here = slice(start, start + _ROWS)
            found[here] = _probabilities(self._of(np.asarray(X[here], dtype=np.float64), y[here]), coefficients)
        return found

    def _of(self, X: Array, y: NDArray[np.int64]) -> Array:
        basis, used = np.empty((len(X), self.features.shape[1])), 0
        for block, (first, second, kept) in enumerate(self._steps):
            before = basis[:, :used]
            rest = self._block(block, X, y) - before @ first
            rest -= before @ second
            basis[:, used : used + kept.shape[1]] = rest @ kept
            used += kept.shape[1]
        return basis


def _common_scale(X: Array) -> tuple[Array, Array]:
    """Median and spread of columns: by quartiles, by standard deviation where those agree."""
    low, middle, high = np.quantile(X, [0.25, 0.5, 0.75], axis=0)
    spread = (high - low) / 1.35
    if not (high > low).all():
        spread = np.where(high > low, spread, X.std(0))
    return middle, np.where(spread > 0, spread, 1.0)


@BLAS.wrap(limits=1)
def group_coefficients(
    features: Array,
    weights: Array,
    n_free: int,
    groups: NDArray[np.int64],
    plan: PFLDPlan,
    source: NoiseSource,
) -> Array:
    """Release the moments and return what a linear model of the groups makes of them, shape (n_groups, n_features).

    The coefficients solve the logistic regression's moment equations, with a ridge penalty on all but the first
    ``n_free``: the ratio of noise to signal, of which the released moments themselves show how large it is.
    """
    m, p = plan.n_groups, features.shape[1]
    sent = features * weights[:, None]
    moments = plan.release_moments(sent, groups, source)
    noise = plan.moment_noise(sent)
    few = features[:, :n_free], moments[:, :n_free]
    free = _fit(weights, *few, np.full(n_free, 1e-6), np.zeros((m, n_free)), noise)
    start = np.concatenate([free, np.zeros((m, p - n_free))], axis=1)
    residual = (moments - _probabilities(features, start).T @ sent)[:, n_free:]
    # of the residual's mean square, the part that the noise does not explain is signal
    signal = max(float(np.mean(residual**2)) - noise**2, 1e-3 * noise**2) if residual.size else 1.0
    shares = _probabilities(features, start).mean(0)
    information = float(np.mean(shares * (1 - shares)))
    ridge = np.full(p, information * noise**2 / signal + 1e-6)
    ridge[:n_free] = 1e-6
    return _fit(weights, features, moments, ridge, start, noise)


def estimate_groups(features: Array, *args: Any, **kwargs: Any) -> Array:
    """Probabilities of the groups of the same rows, shape (n_rows, n_groups); see :func:`group_coefficients`."""
    return _probabilities(features, group_coefficients(features, *args, **kwargs))


def _probabilities(features: Array, coefficients: Array) -> Array:
    if len(coefficients) == 2:  # several times as fast as the same by two columns
        second = expit(features @ (coefficients[1] - coefficients[0]))
        return np.stack([1 - second, second], axis=1)
    return softmax(features @ coefficients.T, axis=1)


def _fit(weights: Array, features: Array, moments: Array, ridge: Array, start: Array, noise: float) -> Array:
    """Solve ``Σ weight · φ · probability + ridge · β = moments``, the zero slope of a convex function.

    The features are orthonormal, so that its curvature is much the same in all directions and L-BFGS needs few steps.
    It stops where the equations hold within a hundredth of the noise in the moments: what is left says nothing.
    """
    options: dict[str, Any] = {"weights": weights, "maxiter": _MOST_STEPS, "gtol": noise / 100}
    if len(moments) > 2:
        return fit_softmax(features, moments.T, ridge[:, None], start=start.T, **options).T
    # The moments of both add up to those of all rows, hence β of the first is minus β of the second: one column does.
    column = fit_softmax(features, moments[1:].T, ridge[:, None] / 2, start=2 * start[1:].T, **options).T
    return np.concatenate([-column, column]) / 2
