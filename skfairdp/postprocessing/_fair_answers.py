"""The most accurate randomised answers, bin by bin, that meet constraints on rates: a small linear program."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from skfairdp.fairness import RateConstraints

Array = NDArray[np.float64]

# What a violation of 1 costs, in accuracy: no constraint is ever broken for accuracy's sake.
_PRICE = 100.0
#: Standard deviations of noise by which counts have to speak against a classifier's own answers.
DOUBT = 2.0


def fair_answers(
    constraints: RateConstraints,
    counts: Array,
    *,
    by_group: bool,
    sizes: Array | None = None,
    in_favour: Array | None = None,
) -> Array:
    """Return how often each bin is answered by the second class, so that constraints hold on the counts.

    Where nothing meets them, they are broken by as little as possible. With groups a higher score has never less of a
    chance within its group. Without, bins are free: a rule that knows nothing but the score has no other way to parity.
    """
    n_bins, n_groups, _ = counts.shape
    n_rules = n_groups if by_group else 1
    sizes = sizes_of(counts) if sizes is None else sizes
    total = sizes.sum()
    for_second = counts[..., 1] - counts[..., 0] + (0.0 if in_favour is None else in_favour)
    gain = _by_rule(for_second / total, by_group)
    lines, bounds = [], []
    for j in range(constraints.n_inequalities):
        weights = constraints.row_weights(np.arange(constraints.n_inequalities) == j, sizes)
        slope = np.einsum("bgy,gy->bg", counts, weights[..., 1] - weights[..., 0]) / total
        lines.append(np.append(_by_rule(slope, by_group), -1.0))
        bounds.append(constraints.bounds[j] - float((counts * weights[..., 0]).sum() / total))
    if by_group:
        for rule in range(n_rules):
            for low in range(n_bins - 1):
                line = np.zeros(n_rules * n_bins + 1)
                line[rule * n_bins + low], line[rule * n_bins + low + 1] = 1.0, -1.0
                lines.append(line)
                bounds.append(0.0)
    limits = [(0.0, 1.0)] * (n_rules * n_bins) + [(0.0, None)]
    found = linprog(np.append(-gain, _PRICE), A_ub=np.array(lines), b_ub=np.array(bounds), bounds=limits)
    assert found.x is not None  # all answers are feasible at the price of a violation
    return np.clip(found.x[:-1], 0.0, 1.0).reshape(n_rules, n_bins)


def for_own_answers(counts: Array, edges: Array, sigma: float, n_rows: float) -> Array:
    """Rows by which a classifier is in the right before any is counted: ``DOUBT`` times the noise of all counts.

    They lie where its rows lie, so that answering all rows otherwise takes that much evidence, and a part of them as
    large a part. Without it noise alone had a classifier of 150 rows answer the rarer class for all of them.
    """
    rows = np.maximum(counts.sum(2), 0.0)
    own = np.where(np.append(0.0, edges) >= 0.5, 1.0, -1.0)[:, None]
    found: Array = DOUBT * sigma * np.sqrt(counts.size) * own * rows / max(float(rows.sum()), n_rows)
    return found


def predicted_counts(counts: Array, answers: Array) -> Array:
    """Rows by group, true and predicted class, as the answers have them on average."""
    chances = np.broadcast_to(answers, (counts.shape[1], counts.shape[0])).T
    second = np.einsum("bgy,bg->gy", counts, chances)
    return np.stack([counts.sum(0) - second, second], axis=-1)


def sizes_of(counts: Array) -> Array:
    """Rows by group and true class; noise may leave a small cell with nothing, or less."""
    sizes = counts.sum(0)
    return np.maximum(sizes, max(float(sizes.sum()), 1.0) / (100 * sizes.size))


def answer_counts(constraints: RateConstraints, groups: Any, labels: Any, given: Any) -> NDArray[np.int64]:
    """Rows by group, true class and answer; all true classes together where no constraint looks at them."""
    counts = constraints.tally(groups, labels if constraints.needs_labels else np.zeros_like(labels), given)
    return counts if constraints.needs_labels else counts[:, :1]


def _by_rule(slopes: Array, by_group: bool) -> Array:
    """One number for each group and bin, or for each bin: (n_bins, n_groups) → (n_rules * n_bins,)."""
    return (slopes.T if by_group else slopes.sum(1, keepdims=True).T).ravel()
