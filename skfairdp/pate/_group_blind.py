"""The most accurate answers that need no group and meet constraints on rates: a linear program over public rows."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import csr_array, eye_array, hstack, kron, vstack

from skfairdp.fairness import RateConstraints

Array = NDArray[np.float64]

MET = 1e-6  # what a linear program calls met
# Of a violation of 1, in accuracy. Gaps of a few thousand rows have noise of some hundredths, which no feature
# explains: a rule that closes them at any price is right about next to nobody.
_PRICE = 10.0
_HELD = 0.005  # what it is worth that all constraints hold, and not nearly
_ROUNDS = 12
SETTLED = 1e-3  # of a rate: to use up the bounds more closely is worth no accuracy
_MOST_ROWS = 4000  # of the program; counts are always taken of all


@dataclass(frozen=True)
class BlindRule:
    """A class for every row, by how likely each group and label are for its features.

    The answer is the class k with the largest ``P(y = k) - Σ_ay P(a, y) weights[a, y, k]``: of all rules that know
    features alone, one of this kind is the most accurate under any constraints on rates (Xian & Zhao 2024).
    """

    weights: Array
    counts: Array

    def scores(self, likely: Array) -> Array:
        """What speaks for each class, shape (n_rows, n_classes)."""
        found: Array = likely.sum(axis=1) - np.einsum("iay,ayk->ik", likely, self.weights)
        return found


def group_blind_rule(
    constraints: RateConstraints, likely: Array, groups: NDArray[np.int64], labels: Array
) -> tuple[BlindRule, BlindRule]:
    """Return the rule that meets the constraints on rows whose groups are known, and the one without constraints.

    Multipliers come from the program in which a row is in every group with the chance that its features give. What the
    rows themselves, counted by their groups, say beyond that moves its bounds, and it is solved again, a few times over
    at most; of all rules found that counts whose accuracy on the rows, less ten times its violation, is the largest.
    """
    n_groups, n_classes = likely.shape[1:]
    sizes = np.maximum(likely.sum(axis=0), 1.0)
    every = np.arange(constraints.n_inequalities)
    unit = np.stack([constraints.row_weights(every == j, sizes) for j in every])
    used = likely[:: -(-len(likely) // _MOST_ROWS)]
    slopes = np.einsum("iay,jayk->jik", used, unit) / len(used)
    gains = used.sum(axis=1) / len(used)

    def rule_of(multipliers: Array) -> tuple[BlindRule, float]:
        rule = BlindRule(constraints.row_weights(multipliers, sizes), np.zeros((n_groups, n_classes, n_classes)))
        answers = rule.scores(likely).argmax(axis=1)
        np.add.at(rule.counts.transpose(0, 2, 1), (groups, answers), labels)
        return rule, float(labels[np.arange(len(labels)), answers].mean())

    free, accuracy = rule_of(np.zeros(constraints.n_inequalities))
    violation, shift = constraints.largest_violation(free.counts), np.zeros(constraints.n_inequalities)
    best, most = free, _worth(accuracy, violation)
    if violation <= MET:
        return free, free
    for k in range(_ROUNDS):
        multipliers = _multipliers(gains, slopes, constraints.bounds - shift)
        found, accuracy = rule_of(multipliers)
        broken = constraints.violations(found.counts)
        violation = max(float(broken.max()), 0.0)
        if (value := _worth(accuracy, violation)) > most:
            best, most = found, value
        moved = np.where((broken > 0) | (multipliers > 0), broken, 0.0)
        if violation <= MET and np.abs(moved).max() <= SETTLED:
            break
        shift = shift + moved / (1 + k / 4)  # ever shorter steps, or it may go round in circles
    return best, free


def _worth(accuracy: float, violation: float) -> float:
    return accuracy - _PRICE * violation + (_HELD if violation <= MET else 0.0)


def _multipliers(gains: Array, slopes: Array, bounds: Array) -> Array:
    """Prices of the constraints where answers, which may be chances, are as right as they can be under them."""
    (n_rows, n_classes), n_lines = gains.shape, len(bounds)
    gain = (gains[:, 1:] - gains[:, :1]).ravel()  # against answering the first class
    lines: Any = np.column_stack([(slopes[:, :, 1:] - slopes[:, :, :1]).reshape(n_lines, -1), -np.ones(n_lines)])
    right = bounds - slopes[:, :, 0].sum(axis=1)
    if n_classes > 2:  # chances of a row sum to 1 at most
        once = kron(eye_array(n_rows, format="csr"), np.ones((1, n_classes - 1)))
        lines = vstack([csr_array(lines), hstack([once, csr_array((n_rows, 1))])])
        right = np.append(right, np.ones(n_rows))
    limits = [(0.0, 1.0)] * len(gain) + [(0.0, None)]
    found = linprog(np.append(-gain, _PRICE), A_ub=lines, b_ub=right, bounds=limits, method="highs")
    assert found.x is not None  # all answers are feasible at the price of a violation
    prices: Array = np.maximum(-found.ineqlin.marginals[:n_lines], 0.0)
    return prices
