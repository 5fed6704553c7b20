"""Fair teachers: one fair learner per part, each reading the groups of its own part."""

import inspect
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from skfairdp._teachers import (
    ClassifierEnsemble,
    Parts,
    StackedEnsemble,
    Teachers,
    fit_stacks,
    run_tasks,
    seeded_clone,
    total_fit,
)
from skfairdp._utils import RandomStateLike, child_seeds, public_generator
from skfairdp.lagrangian import FairPerceptron, as_perceptron


def fit_fair_teachers(
    learner: Any,
    X: NDArray[np.float64],
    y: NDArray[np.int64],
    groups: NDArray[np.int64],
    assignment: NDArray[np.int64],
    *,
    n_teachers: int,
    n_classes: int,
    n_groups: int,
    random_state: RandomStateLike = None,
    seeds: NDArray[np.int64] | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Teachers:
    """Train one fair classifier on the rows assigned to each teacher, independently of all other rows.

    As :func:`fit_teachers`, with groups: teacher i is a function of its own rows, groups and seed and of public
    settings only. A part with one class answers it always, one without rows class 0. A part with one group trains a
    :class:`LagrangianClassifier` without effect of the constraint; any other learner, which may not be able to, is
    replaced by the most frequent class of the part. So is one whose fit fails, and a vote that is no class by class 0:
    nothing tells that, or how often, it happened.
    """
    if seeds is None:
        seeds = child_seeds(public_generator(random_state), n_teachers)
    parts = Parts.of(assignment, y, seeds, n_classes)
    perceptron = as_perceptron(learner)
    if perceptron is not None:
        ensemble: Any = _fit_stacks(perceptron, X, y, groups, parts, n_groups, n_jobs=n_jobs, verbose=verbose)
    else:
        ensemble = _fit_clones(learner, X, y, groups, parts, n_jobs=n_jobs, verbose=verbose)
    return Teachers(ensemble, n_teachers)


def _fit_stacks(
    perceptron: FairPerceptron,
    X: NDArray[np.float64],
    y: NDArray[np.int64],
    groups: NDArray[np.int64],
    parts: Parts,
    n_groups: int,
    *,
    n_jobs: int | None,
    verbose: int,
) -> StackedEnsemble:
    # Public: the largest part of a partition by position. Every stack follows the same schedule.
    largest = max(len(rows) for rows in parts.rows)

    def task(block: Parts) -> tuple[Any, ...]:
        return perceptron, X, y, groups, block, n_groups, largest

    return fit_stacks(
        perceptron.network(X.shape[1], parts.seen.shape[1]),
        _train_stack,
        task,
        parts,
        device=str(perceptron.device),
        row_shape=X.shape[1:],
        owner="LagrangianClassifier",
        n_jobs=n_jobs,
        verbose=verbose,
    )


def _train_stack(
    net: Any,
    perceptron: FairPerceptron,
    X: NDArray[np.float64],
    y: NDArray[np.int64],
    groups: NDArray[np.int64],
    block: Parts,
    n_groups: int,
    largest: int,
) -> list[Any]:
    from skfairdp.lagrangian import train_stacked_lagrangian

    rows, sizes = block.rows_to_train()
    params, _ = train_stacked_lagrangian(
        net,
        X[rows],
        y[rows],
        sizes,
        block.seeds.tolist(),
        perceptron.training(largest),
        parity=perceptron.parity(y[rows], net.n_classes, np.eye(n_groups)[groups[rows]], sizes),
        device=perceptron.device,
    )
    return params


def _fit_clones(
    learner: Any,
    X: NDArray[np.float64],
    y: NDArray[np.int64],
    groups: NDArray[np.int64],
    parts: Parts,
    *,
    n_jobs: int | None,
    verbose: int,
) -> ClassifierEnsemble:
    one_group = np.array([len(np.unique(groups[rows])) < 2 for rows in parts.rows])
    tasks = (
        (_most_frequent(y[rows]), 0) if no_fit else _task(learner, int(seed), X[rows], y[rows], groups[rows])
        for rows, seed, no_fit in zip(parts.rows, parts.seeds, parts.constant | one_group, strict=True)
    )
    fitted = run_tasks(_fit_one, tasks, len(parts.seeds), n_jobs=n_jobs, verbose=verbose)
    return SeededEnsemble(fitted, parts.seeds, parts.seen.shape[1])


class SeededEnsemble(ClassifierEnsemble):
    """Learners that randomise their predictions do so from the seed of their teacher, not from the global generator."""

    def __init__(self, estimators: list[Any], seeds: NDArray[np.int64], n_classes: int) -> None:
        super().__init__(estimators, n_classes)
        self.seeds = seeds

    def _predict(self, k: int, X: Any) -> Any:
        return seeded_predictions(self.estimators[k], X, int(self.seeds[k]))


def seeded_predictions(learner: Any, X: Any, seed: int) -> Any:
    """What a fitted learner predicts; one that draws lots takes its ``random_state`` here."""
    if "random_state" in inspect.signature(learner.predict).parameters:
        return learner.predict(X, random_state=seed)
    return learner.predict(X)


def fair_copy(learner: Any, seed: int) -> Any:
    """A clone with seeds of its own, also of what is no scikit-learn estimator."""
    return seeded_clone(learner, seed) if hasattr(learner, "get_params") else clone(learner, safe=False)


def _task(learner: Any, seed: int, X: Any, y: NDArray[np.int64], groups: NDArray[np.int64]) -> tuple[Any, ...]:
    return None, _most_frequent(y), fair_copy(learner, seed), X, y, groups


def _most_frequent(y: NDArray[np.int64]) -> int:
    return int(np.bincount(y, minlength=1).argmax())


def _fit_one(
    constant: int | None, fallback: int, learner: Any = None, X: Any = None, y: Any = None, groups: Any = None
) -> Any:
    """As :func:`total_fit`; labels are public here, so that the most frequent one stands in for a failed fit."""
    return total_fit(constant, fallback, learner, X, y, sensitive_features=groups)
