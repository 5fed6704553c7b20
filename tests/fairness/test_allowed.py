"""Bounds on rates: what they allow, the nearest that they allow, and the same inequalities as everywhere else."""

import itertools

import numpy as np
import pytest

from skfairdp.fairness import FairnessConstraints, RateBound, RateConstraints, RateParity
from tests._tools.inside import project_to_bounds

ASKED = {
    "a difference": RateParity("selection_rate", 0.07),
    "a ratio": RateParity("selection_rate", ratio_bound=0.8),
    "both": RateParity("selection_rate", 0.03, 0.7),
    "no difference": RateParity("selection_rate", 0.0),
    "a difference to all": RateParity("selection_rate", 0.05, method="to_overall"),
    "a ratio to all": RateParity("selection_rate", ratio_bound=0.9, method="to_overall"),
    "from below and above": RateBound("selection_rate", lower=0.4, upper=0.5),
    "from above": RateBound("selection_rate", upper=0.45),
    "of one group": RateBound("selection_rate", lower=0.4, upper=0.5, groups=(1,)),
}


def comparisons(constraint, groups):
    """``factor · rate of one - rate of the other ≤ slack``, where ``groups`` are all rows together, and then nobody."""
    if isinstance(constraint, RateBound):
        named = range(groups) if constraint.groups is None else constraint.groups
        for a in [groups] if constraint.groups == "overall" else named:
            if constraint.upper is not None:
                yield a, groups + 1, 1.0, constraint.upper
            if constraint.lower is not None:
                yield groups + 1, a, 1.0, -constraint.lower
    else:
        pairs = list(itertools.permutations(range(groups), 2))
        if constraint.method == "to_overall":
            pairs = [pair for a in range(groups) for pair in ((a, groups), (groups, a))]
        yield from ((a, b, *constraint.factor_and_slack) for a, b in pairs)


def broken_by(constraint, differences, mean):
    """Left-hand sides less right-hand sides, by definition."""
    rates = [*(mean + differences), mean, 0.0]
    return [factor * rates[a] - rates[b] - slack for a, b, factor, slack in comparisons(constraint, len(differences))]


@pytest.mark.covering
@pytest.mark.parametrize("constraint", ASKED.values(), ids=ASKED)
@pytest.mark.parametrize("groups", [2, 5])
def test_the_nearest_is_allowed_and_no_allowed_point_is_nearer(constraint, groups):
    rng = np.random.default_rng(0)
    for _ in range(12):
        mean = rng.uniform(0.1, 0.9)
        given = rng.normal(scale=0.2, size=groups).clip(-mean, 1 - mean)
        nearest = project_to_bounds(constraint, given[:, None], np.array([mean]))[:, 0]
        assert max(broken_by(constraint, nearest, mean)) < 1e-9
        # of a convex set, the nearest point is the one from which the given one lies opposite to all others
        for other in rng.normal(scale=0.2, size=(8, groups)):
            other = project_to_bounds(constraint, other[:, None], np.array([mean]))[:, 0]
            assert (given - nearest) @ (other - nearest) < 1e-9


@pytest.mark.parametrize("constraint", ASKED.values(), ids=ASKED)
def test_what_is_allowed_stays_as_it_is(constraint):
    rng = np.random.default_rng(0)
    given = project_to_bounds(constraint, rng.normal(size=(3, 50)), np.full(50, 0.45))
    np.testing.assert_allclose(project_to_bounds(constraint, given, np.full(50, 0.45)), given, atol=1e-12)


@pytest.mark.parametrize("constraint", ASKED.values(), ids=ASKED)
def test_many_cells_at_once_are_as_each_alone(constraint):
    rng = np.random.default_rng(1)
    given, means = rng.normal(scale=0.3, size=(3, 4, 2)), rng.uniform(size=(4, 2))
    together = project_to_bounds(constraint, given, means)
    for cell in np.ndindex(4, 2):
        alone = project_to_bounds(constraint, given[:, *cell][:, None], means[cell][None])
        np.testing.assert_array_equal(together[:, *cell], alone[:, 0])


RATES = ("selection_rate", "true_positive_rate", "false_negative_rate", "false_positive_rate", "true_negative_rate",
         "accuracy", "error_rate", "selection_rate_by_label")  # fmt: skip
KINDS = {
    "difference": lambda rate: RateParity(rate, 0.1),
    "ratio": lambda rate: RateParity(rate, ratio_bound=0.8),
    "to all": lambda rate: RateParity(rate, 0.02, 0.9, method="to_overall"),
    "bound": lambda rate: RateBound(rate, lower=0.2, upper=0.4),
    "bound of some": lambda rate: RateBound(rate, lower=0.2, upper=0.4, groups=(0, 2)),
    "bound of all": lambda rate: RateBound(rate, lower=0.2, upper=0.4, groups="overall"),
    "of a class": lambda rate: RateParity(rate, 0.1, of_class=0),
}


@pytest.mark.covering
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_left_of_every_rate_is_what_counts_of_predictions_say(kind, rate, n_classes):
    """The Lagrangian's scores and cells on one side, tables of counts on the other."""
    rng = np.random.default_rng(0)
    y, predicted, groups = (rng.integers(n, size=900) for n in (n_classes, n_classes, 3))
    asked = KINDS[kind](rate)
    counts = RateConstraints([asked], [0, 1, 2], list(range(n_classes)))
    expected = counts.violations(counts.tally(groups, y, predicted))
    constraints = FairnessConstraints([asked], y, n_classes)
    scores = constraints.values(np.eye(n_classes)[predicted], y)
    broken_by = []
    for c, column in enumerate(constraints.columns):
        for cell in column.cells(constraints.n_cells):
            here = constraints.cells[:, c] == cell
            of_all = scores[here, c].mean()
            rates = np.array([scores[here & (groups == a), c].mean() for a in range(3)] + [of_all])
            rates = np.append(1 - rates if column.is_complement else rates, 0.0)
            broken_by += [factor * rates[a] - rates[b] - slack for a, b, factor, slack in comparisons(asked, 3)]
    np.testing.assert_allclose(np.sort(broken_by), np.sort(expected), atol=1e-9)


def test_false_positives_of_a_class_are_those_of_all_other_rows():
    rng = np.random.default_rng(0)
    y, predicted = rng.integers(3, size=300), rng.integers(3, size=300)
    constraints = FairnessConstraints(["false_positive_rate_parity"], y, 3)
    means = constraints.means(constraints.values(np.eye(3)[predicted], y))
    for k in range(3):
        assert means[0, k] == pytest.approx((predicted[y != k] == k).mean())
    np.testing.assert_array_equal(constraints.compared, [[True] * 3, [False] * 3, [False] * 3])
    sizes = constraints.sizes(np.array([[3.0, 4.0, 5.0]]))
    np.testing.assert_array_equal(sizes[0, 0], [9, 8, 7])
