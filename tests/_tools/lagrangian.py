"""Small problems of PF-LD: rows, constraints, gradients and settings that several tests share."""

import itertools

import numpy as np
import torch

from skfairdp.fairness import NOTIONS as EVERY_NOTION, FairnessConstraints, RateBound, RateParity
from skfairdp.lagrangian import mlp
from tests._tools.inside import ConstraintGradient, PFLDPlan
from tests._tools.sources import ZeroNoise

__all__ = [
    "ALONE_AND_TOGETHER",
    "BOUNDED",
    "NAMED",
    "NOTIONS",
    "OF_TWO_AND_OF_THREE",
    "QUICK",
    "Drawn",
    "adam",
    "biased",
    "flips",
    "gap",
    "half_noisy",
    "in_words",
    "one_row_at_a_time",
    "problem",
    "quick",
    "setting",
]

#: Bounds of all kinds, beside a notion without any.
BOUNDED = [
    RateParity("selection_rate", 0.05),
    RateParity("false_negative_rate", ratio_bound=0.9),
    RateBound("false_positive_rate", upper=0.2),
    "accuracy_parity",
]
#: Bounds of one group and of all rows, beside what else is asked of the same rate; one class of several. By codes.
NAMED = [
    RateParity("selection_rate", 0.05),
    RateBound("selection_rate", upper=0.3, groups=(1,)),
    RateBound("selection_rate", lower=0.1, upper=0.5, groups="overall"),
    RateBound("error_rate", upper=0.2, groups="overall"),
    RateParity("true_positive_rate", 0.1, of_class=0),
]
NOTIONS = ["demographic_parity", "equalized_odds", "accuracy_parity"]
ALONE_AND_TOGETHER = [[notion] for notion in NOTIONS] + [
    NOTIONS[:2],
    NOTIONS,
    ["true_positive_rate_parity"],
    ["demographic_parity", "true_positive_rate_parity"],
    BOUNDED,
    NAMED,
]
#: Every notion alone, all of them together, and bounds.
OF_TWO_AND_OF_THREE = [
    (notions, n_classes)
    for n_classes in (2, 3)
    for notions in [*([notion] for notion in EVERY_NOTION), list(EVERY_NOTION), BOUNDED, NAMED]
]
QUICK = {"groups": ["f", "m"], "net": mlp((4,), max_epochs=2, batch_size=64), "dual_steps": 3, "random_state": 0}


def adam(lr=0.01, **options):
    """What makes Adam for the parameters of a module that are trained."""
    return lambda module: torch.optim.Adam([p for p in module.parameters() if p.requires_grad], lr=lr, **options)


def in_words(notions):
    """A name for a list of constraints."""
    return "+".join(map(str, notions))


def quick(hidden=(4,), **net):
    """The settings of QUICK with another net."""
    return {**QUICK, "net": mlp(hidden, **{"max_epochs": 2, "batch_size": 64, **net})}


def problem(m, seed, n=24, n_classes=2):
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    y[:n_classes] = np.arange(n_classes)
    return rng.normal(size=(n, 3)), y, rng.integers(m, size=n)


def flips(groups, m):
    for i, new in itertools.product(range(len(groups)), range(m)):
        if new != groups[i]:
            other = groups.copy()
            other[i] = new
            yield other


def half_noisy(m, **more):
    return PFLDPlan(m, 3, 2, 1.0, 1.0, 1.0, **more)


def small_net(kind, n_classes):
    torch.manual_seed(0)
    activation = torch.nn.PReLU() if kind == "not fused" else torch.nn.Tanh()  # the first has no rule
    module = torch.nn.Sequential(torch.nn.Linear(3, 5), activation, torch.nn.Linear(5, n_classes))
    return module if kind == "by hand" else module.double()


def one_row_at_a_time(module, X, y, constraints):
    """Gradients of h minus their mean in the cell, shape (n_rows, n_constraints, n_parameters)."""
    parameters = list(module.parameters())
    rows = []
    for i in range(len(X)):
        values = constraints.values(torch.softmax(module(X[i : i + 1]), dim=1), y[i : i + 1])[0]
        rows.append(
            torch.stack(
                [
                    torch.cat([g.flatten() for g in torch.autograd.grad(value, parameters, retain_graph=True)])
                    for value in values
                ]
            )
        )
    centred = torch.stack(rows)
    for c in range(centred.shape[1]):
        for cell in constraints.cells[:, c].unique():
            here = constraints.cells[:, c] == cell
            centred[here, c] -= centred[here, c].mean(0)
    return centred


def setting(kind, m, notions, n_classes=2, seed=0, **more):
    X, y, groups = problem(m, seed, n_classes=n_classes)
    module = small_net(kind, n_classes)
    X, y = torch.tensor(X).to(next(module.parameters()).dtype), torch.tensor(y)
    constraints = FairnessConstraints(notions, y, n_classes)
    weights = torch.from_numpy(
        np.random.default_rng(seed).normal(size=(m, constraints.n_cells, constraints.n_constraints))
    )

    def gradient(a, source, plan=None, **options):
        plan = half_noisy(m) if plan is None else plan
        return ConstraintGradient(
            X, y, torch.tensor(a), constraints, plan, source, dtype=torch.double, **{**more, **options}
        )

    return module, X, y, groups, constraints, weights, gradient


class Drawn(ZeroNoise):
    """No noise, and a Poisson sample that is given."""

    def __init__(self, members):
        super().__init__()
        self.members = members

    def bernoulli(self, probability, size):
        return np.isin(np.arange(size), self.members)


def biased(n=600, seed=0):
    """Groups that differ in their features, and a label that follows the feature they differ in."""
    rng = np.random.default_rng(seed)
    groups = np.where(rng.random(n) < 0.4, "f", "m")
    X = rng.normal(size=(n, 4))
    X[:, 0] += 1.2 * (groups == "m")
    y = (X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=n) > 0.6).astype(int)
    return X, y, groups


def gap(predicted, groups):
    rates = [predicted[groups == a].mean() for a in np.unique(groups)]
    return max(rates) - min(rates)
