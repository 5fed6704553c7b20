"""The group of a row given its features and label, from one noisy table of moments.

Features of X and y are public under attribute privacy, so any of their linear statistics of the groups is one vector
release: ``Σ_{i in group} φ(x_i, y_i)`` plus noise. Those moments are all that a logistic regression of the group on φ
needs. Where φ spans what gradients of the constraint vary in, a primal step with estimated groups follows the same
direction as with true ones.
"""

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from threadpoolctl import threadpool_limits

from skfairdp.lagrangian._plan import PFLDPlan
from skfairdp.privacy import NoiseSource
from skfairdp.utils import fit_softmax

__all__ = ["estimate_groups", "public_features"]

Array = NDArray[np.float64]


@threadpool_limits.wrap(limits=1, user_api="blas")
def public_features(X: Array, y: NDArray[np.int64], n_classes: int, n_features: int, seed: int) -> tuple[Array, Array]:
    """Orthonormal public features of the rows, and the weight by which long ones are cut.

    First come indicators of the classes, then X and X by class, then random tanh features of X and y, each block made
    orthogonal to those before it. A row's squared length is its leverage; rows of more than four times the average are
    scaled down to that (in the features and so in the moments, an estimating equation as valid as before).

    Returns
    -------
    features : ndarray of shape (n_rows, at most n_features)
    weights : ndarray of shape (n_rows,)
        In (0, 1].
    """
    n = len(X)
    room = max(n_classes, min(n_features, n // 20))
    basis, used = np.empty((n, room)), 0
    for block in _blocks(X, np.eye(n_classes)[y], max(0, room - n_classes), np.random.default_rng(seed)):
        before, rest = basis[:, :used], np.empty(block.shape)
        np.matmul(before, before.T @ block, out=rest)
        np.subtract(block, rest, out=rest)
        rest -= before @ (before.T @ rest)  # once more, for what rounding left
        values, vectors = np.linalg.eigh(rest.T @ rest)  # of a small matrix; the largest come last
        order = np.flatnonzero(values > 1e-8 * n)[::-1][: room - used]
        basis[:, used : used + len(order)] = rest @ (vectors[:, order] / np.sqrt(values[order]))
        used += len(order)
        if used == room:
            break
    basis = basis[:, :used]
    length = np.linalg.norm(basis, axis=1)
    bound = 2 * math.sqrt(basis.shape[1] / n)
    return basis, np.minimum(1.0, bound / np.maximum(length, 1e-12))


def _blocks(X: Array, labels: Array, hidden: int, rng: np.random.Generator) -> Iterator[Array]:
    """What the features are made of, from the plainest to the most involved; nobody makes what is not asked for."""
    yield labels
    scaled = _on_a_common_scale(X)
    yield scaled
    yield np.concatenate([scaled * labels[:, [k]] for k in range(1, labels.shape[1])], axis=1)
    slope = rng.normal(size=(X.shape[1] + labels.shape[1], hidden)) / math.sqrt(max(1, min(X.shape[1], 20)))
    yield np.tanh(np.concatenate([scaled, labels], axis=1) @ slope + rng.normal(size=hidden) * 0.5)


def _on_a_common_scale(X: Array) -> Array:
    """Columns by quartiles (by standard deviation where those agree), cut: no row may hide what the others say."""
    low, middle, high = np.quantile(X, [0.25, 0.5, 0.75], axis=0)
    spread = (high - low) / 1.35
    if not (high > low).all():
        spread = np.where(high > low, spread, X.std(0))
    scaled = X - middle
    scaled /= np.where(spread > 0, spread, 1.0)
    return np.clip(scaled, -5.0, 5.0, out=scaled)


@threadpool_limits.wrap(limits=1, user_api="blas")
def estimate_groups(
    features: Array,
    weights: Array,
    n_free: int,
    groups: NDArray[np.int64],
    plan: PFLDPlan,
    source: NoiseSource,
    *,
    max_iter: int = 100,
) -> Array:
    """Release the moments and return probabilities of the groups, shape (n_rows, n_groups).

    The coefficients solve the logistic regression's moment equations, with a ridge penalty on all but the first
    ``n_free``: the ratio of noise to signal, of which the released moments themselves show how large it is.
    """
    m, p = plan.n_groups, features.shape[1]
    sent = features * weights[:, None]
    moments = plan.release_moments(sent, groups, source)
    noise = plan.moment_noise(sent)
    few = features[:, :n_free], moments[:, :n_free]
    free = _fit(weights, *few, np.full(n_free, 1e-6), np.zeros((m, n_free)), max_iter)
    start = np.concatenate([free, np.zeros((m, p - n_free))], axis=1)
    residual = (moments - _probabilities(features, start).T @ sent)[:, n_free:]
    # of the residual's mean square, the part that the noise does not explain is signal
    signal = max(float(np.mean(residual**2)) - noise**2, 1e-3 * noise**2) if residual.size else 1.0
    shares = _probabilities(features, start).mean(0)
    information = float(np.mean(shares * (1 - shares)))
    ridge = np.full(p, information * noise**2 / signal + 1e-6)
    ridge[:n_free] = 1e-6
    coefficients = _fit(weights, features, moments, ridge, start, max_iter)
    return _probabilities(features, coefficients)


def _probabilities(features: Array, coefficients: Array) -> Array:
    return softmax(features @ coefficients.T, axis=1)


def _fit(weights: Array, features: Array, moments: Array, ridge: Array, start: Array, max_iter: int) -> Array:
    """Solve ``Σ weight · φ · probability + ridge · β = moments``, the zero slope of a convex function.

    The features are orthonormal, so that its curvature is much the same in all directions and L-BFGS needs few steps.
    """
    return fit_softmax(features, moments.T, ridge[:, None], start=start.T, weights=weights, maxiter=max_iter).T
