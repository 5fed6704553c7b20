"""The private side of SF-PATE: teachers on parts that positions decide, and their votes."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfairdp._inputs import TrainingData
from skfairdp._teachers import LogisticTeachers, fit_teachers, position_partition, vote_histogram
from skfairdp.fairness import read_constraints
from skfairdp.lagrangian import LagrangianClassifier, as_perceptron, mlp, standard_scale
from skfairdp.pate._fair_teachers import fit_fair_teachers
from skfairdp.pate._rehearsal import rehearse_fair_teacher, rehearse_teacher
from skfairdp.pate._votes import ReleasedVotes, VotePlan
from skfairdp.privacy import NoiseSource, PublicReads

__all__ = ["AttributeRows", "fair_network", "features_and_labels", "teach_and_vote"]


@dataclass(frozen=True)
class AttributeRows:
    """Rows that have passed every check; all but ``groups`` public.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        Standardised by ``center`` and ``scale``, which are those of all rows.
    codes : ndarray of int of shape (n_rows,)
        Class codes.
    classes : ndarray of shape (n_classes,)
    groups : ndarray of int of shape (n_rows,)
        Private group codes.
    domain : ndarray of shape (n_groups,), dtype object
    center, scale : ndarray of shape (n_features,)
    reads : PublicReads
        What is public of them.
    """

    X: NDArray[np.float64]
    codes: NDArray[np.int64]
    classes: NDArray[Any]
    groups: NDArray[np.int64]
    domain: NDArray[np.object_]
    center: NDArray[np.float64]
    scale: NDArray[np.float64]
    reads: PublicReads

    @classmethod
    def of(cls, data: TrainingData) -> "AttributeRows":
        """Rows whose features are public, standardised."""
        assert data.groups is not None and data.domain is not None
        center, scale = standard_scale(data.X)
        return cls((data.X - center) / scale, data.y, data.classes, data.groups, data.domain, center, scale, data.reads)

    @property
    def with_labels(self) -> NDArray[np.float64]:
        """What tells the group: see :func:`features_and_labels`."""
        return features_and_labels(self.X, self.codes, len(self.classes))


def rehearse(rows: AttributeRows, variant: str, learner: Any, n_teachers: int) -> None:
    """Try the learner of :func:`teach_and_vote` on its features, which are public, with made-up groups.

    Raises
    ------
    ValueError
        It fails whatever the groups are; nothing is spent yet.
    """
    settings: dict[str, Any] = {"n_rows": -(-len(rows.X) // n_teachers), "owner": "SFPATEClassifier"}
    if variant == "student":
        learner = LogisticTeachers() if learner is None else learner
        rehearse_teacher(learner, rows.with_labels, n_classes=len(rows.domain), **settings)
    elif as_perceptron(learner) is None:
        rehearse_fair_teacher(learner, rows.X, n_classes=len(rows.classes), n_groups=len(rows.domain), **settings)


def teach_and_vote(
    rows: AttributeRows,
    variant: str,
    learner: Any,
    queries: NDArray[np.int64],
    voting: Any,
    plan: VotePlan,
    source: NoiseSource,
    rng: np.random.Generator,
    *,
    n_jobs: int | None,
    verbose: int,
) -> ReleasedVotes:
    """Train teachers and release their votes on some rows; everything private lives and dies in here.

    Parameters
    ----------
    rows : AttributeRows
    variant : {"student", "teacher"}
        Whether teachers learn the group (``learner`` as in :func:`fit_teachers`, None for logistic regression) or, fair
        on their own part, the label (``learner`` as in :func:`fit_fair_teachers`).
    learner : object
    queries : ndarray of int of shape (n_queries,)
    voting : SoftVoting or GNMaxVoting
    plan : VotePlan
    source : NoiseSource
    rng : Generator
        Public randomness.
    n_jobs, verbose

    Returns
    -------
    ReleasedVotes
    """
    # A function of positions alone: no group decides who teaches whom.
    assignment = position_partition(len(rows.X), plan.n_teachers, random_state=rng)
    settings: dict[str, Any] = {"random_state": rng, "n_jobs": n_jobs, "verbose": verbose}
    settings["n_teachers"] = plan.n_teachers
    if variant == "student":
        features, n_values = rows.with_labels, len(rows.domain)
        learner = LogisticTeachers() if learner is None else learner
        teachers = fit_teachers(learner, features, rows.groups, assignment, n_classes=n_values, **settings)
    else:
        features, n_values = rows.X, len(rows.classes)
        teachers = fit_fair_teachers(
            learner,
            features,
            rows.codes,
            rows.groups,
            assignment,
            n_classes=n_values,
            n_groups=len(rows.domain),
            **settings,
        )
    votes: NDArray[Any]
    if variant == "student" and plan.histogram is not None and plan.histogram.noise == "gaussian":
        # Probabilities say more than winners: their mean is right on average where the likeliest group is not.
        votes = teachers.summed_probabilities(features[queries], n_values)
    else:
        votes = vote_histogram(teachers.predict(features[queries]), n_values)
    released: ReleasedVotes = voting.release(votes, plan, source, verbose=verbose)
    return released


def features_and_labels(X: NDArray[np.float64], y: NDArray[np.int64], n_classes: int) -> NDArray[np.float64]:
    """All that is public of a row: features, classes, and features by class.

    Constraints on errors ask for the rates of a group among rows of equal features and unequal labels; without the
    products no linear model of the group can tell them.
    """
    labels = np.eye(n_classes)[y][:, 1:]
    return np.column_stack([X, labels, *(X * labels[:, [k]] for k in range(n_classes - 1))])


def fair_network(variant: str, fair_estimator: Any, constraints: Any) -> LagrangianClassifier:
    """The network of the built-in fair learner: the one given, or the usual one of the variant."""
    if isinstance(fair_estimator, LagrangianClassifier):
        if fair_estimator.constraints is None:
            raise ValueError(
                "The 'fair_estimator' of SFPATEClassifier is a LagrangianClassifier with constraints=None: groups "
                "would be protected for nothing. Give it a constraint."
            )
        if as_perceptron(fair_estimator) is not None:
            return fair_estimator
    # Mean predictions by estimated shares are off by their errors: short steps stop before they follow those.
    constraints = "demographic_parity" if constraints is None else constraints
    notions = read_constraints(constraints, "SFPATEClassifier")
    step = 2.0 if variant == "student" and len(notions) == 1 and not notions[0].startswith("generalized") else None
    settings: dict[str, Any] = {"constraints": constraints, "dual_step": step}
    if variant == "teacher":  # parts are small: a small network, many short epochs
        settings["net"] = mlp((16,), max_epochs=60, batch_size=32, lr=0.01, optimizer__weight_decay=0.03)
    return LagrangianClassifier(**settings)
