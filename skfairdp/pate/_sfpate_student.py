"""Students of SF-PATE: what is learnt from released votes and public rows. All of it is post-processing."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import Generator

from skfairdp._judge import Judgement, held_by_network
from skfairdp._teachers import check_fair_learner
from skfairdp._typing import Floats as Array, Ints as Codes
from skfairdp._utils import child_seeds, warn_caller
from skfairdp.exceptions import FairnessWarning
from skfairdp.lagrangian import Perceptron, as_perceptron
from skfairdp.pate._fair_votes import AttributeRows, features_and_labels
from skfairdp.pate._soft_label_student import SoftLabelStudent
from skfairdp.pate._student_training import ConstantStudent, seeded
from skfairdp.pate._votes import ReleasedVotes

FEW_ROWS = 10
_OWNER = "SFPATEClassifier"
#: Noise in the rates of a group that is worth a word: gaps that were left on made-up tables were about as large.
FAIR_RATE = 0.1


@dataclass(frozen=True)
class Released:
    """Public rows and what was released about some of them."""

    X: Array
    y: Codes
    n_classes: int
    queries: Codes
    labels: Codes | None
    shares: Array | Any
    noise_std: float
    n_values: int
    center: Array
    scale: Array
    doubted: bool = False
    groups: tuple[Any, ...] = ()
    classes: tuple[Any, ...] = ()
    is_part: bool = False
    subjects: Codes | None = None

    @classmethod
    def of(
        cls, rows: AttributeRows, queries: Codes, votes: ReleasedVotes, *, n_values: int, doubted: bool = False
    ) -> "Released":
        """All that a student may learn from: everything but the groups."""
        return cls(
            rows.X, rows.y, len(rows.classes), queries, votes.labels, votes.shares, votes.noise_std, n_values,
            rows.center, rows.scale, doubted, tuple(rows.domain.tolist()), tuple(rows.classes.tolist()),
            subjects=rows.subject_of_each,
        )  # fmt: skip

    def part(self, rows: Codes) -> "Released":
        """What was released about some of the rows, given by their positions in increasing order."""
        asked = np.isin(self.queries, rows)
        of: list[Any] = [self.labels, self.shares]
        labels, shares = (None if one is None else one[asked] for one in of)
        queries = np.searchsorted(rows, self.queries[asked])
        some = replace(self, queries=queries, labels=labels, shares=shares, is_part=True)
        return replace(some, X=self.X[rows], y=self.y[rows], subjects=None)

    def estimates(self, features: Array) -> tuple[Codes | slice, Array]:
        """Rows to learn from (all as a slice, for no copy), and the estimated share of every value for each: released
        labels of the rows asked about, noisy shares denoised by a regression on ``features``, for all rows."""
        if self.labels is not None:
            return self.queries, np.eye(self.n_values)[self.labels]
        asked = features if len(self.queries) == len(features) else features[self.queries]  # positions, in order
        model = SoftLabelStudent().fit(asked, self.shares, noise_std=self.noise_std)
        return slice(None), model.predict_proba(features)


@dataclass
class NetworkStudent:
    """A trained network as a classifier of class codes."""

    network: Perceptron
    classes_: Codes
    judgement: Judgement | None = None

    @property
    def violation_(self) -> float | None:
        return None if self.judgement is None else self.judgement.violation

    def predict_proba(self, X: Array) -> Array:
        return self.network.predict_proba(X)

    def predict(self, X: Array) -> Codes:
        return self.predict_proba(X).argmax(axis=1)


def fair_student(released: Released, learner: Any, default: Any, weight: float, rng: Generator) -> Any:
    """A fair learner on rows, labels and released groups (the "student" variant). ``default`` is the network used where
    ``learner`` is None, tied with ``weight`` to one trained without constraint."""
    rows, membership = released.estimates(features_and_labels(released.X, released.y, released.n_classes))
    X, y = released.X[rows], released.y[rows]
    if not released.is_part:
        _warn_of_small_groups(released, membership)
    if learner is None:
        return _network(released, default, X, y, membership, weight, rng)
    # Whoever takes no weights gets groups drawn from them: their rates are right on average, those of the likeliest
    # groups are not.
    drawn = (rng.random(len(X))[:, None] > membership.cumsum(axis=1)[:, :-1]).sum(axis=1)
    if len(np.unique(y)) < 2:
        return ConstantStudent(released.n_classes, int(y[0]) if len(y) else 0)
    given: dict[str, Any] = {"sensitive_features": drawn}
    if check_fair_learner(learner, "SFPATEClassifier"):
        given["group_weights"] = membership
    return seeded(learner, rng).fit(_unscale(released, X), y, **given)


def _warn_of_small_groups(released: Released, membership: Array) -> None:
    """Where the released votes know too little of a group; of noise only what was not said before the fit."""
    n_rows, least = len(membership), float(membership.sum(axis=0).min())
    if least < FEW_ROWS:
        warn_caller(
            f"By the released votes of SFPATEClassifier, one of the groups has about {least:.0f} of the {n_rows} "
            "rows that the student learns from: too few to compare its rates with those of the others. Raise "
            "'max_queries', or merge groups.",
            FairnessWarning,
        )
        return
    share = least / n_rows
    noise = released.noise_std / (math.sqrt(max(1, len(released.queries))) * share)
    if noise > FAIR_RATE and not released.doubted:
        warn_caller(
            f"By the released votes of SFPATEClassifier, the smallest group has a share of about {share:.2f}, and "
            f"the noise in its rates has a standard deviation of {noise:.2g}: a gap of about that size may be left. "
            f"Take at least {noise / FAIR_RATE:.1f} times the epsilon, or merge groups. PFLDClassifier has the same "
            "guarantee and less noise.",
            FairnessWarning,
        )


def plain_student(released: Released, learner: Any, default: Any, weight: float, rng: Generator) -> Any:
    """A classifier of the released labels (the "teacher" variant)."""
    rows, shares = released.estimates(released.X)
    X = released.X[rows]
    if learner is None:
        return _network(released, default, X, shares, None, weight, rng)
    labels = shares.argmax(axis=1)
    if len(np.unique(labels)) < 2:
        return ConstantStudent(released.n_classes, int(labels[0]) if len(labels) else 0)
    return seeded(learner, rng).fit(_unscale(released, X), labels)


def _network(
    released: Released, default: Any, X: Array, targets: Any, members: Array | None, weight: float, rng: Generator
) -> Any:
    if released.n_classes < 2:
        return ConstantStudent()
    first, second = (int(seed) for seed in child_seeds(rng, 2))
    perceptron, start = as_perceptron(default), None
    assert perceptron is not None
    if weight > 0:  # θ*, of all rows: features and labels are public
        start, _ = replace(perceptron, notions=()).train(released.X, released.y, released.n_classes, None, first)
    network, _ = perceptron.train(X, targets, released.n_classes, members, second, start=start, anchor=weight)
    judgement = None
    if members is not None and not released.is_part:  # what it is held to goes by positions
        held = held_by_network(perceptron.notions, range(released.n_values), range(released.n_classes), _OWNER)
        noise = 0.0 if released.shares is None else released.noise_std * len(X) / math.sqrt(len(released.queries))
        judgement = Judgement.by_weights(held, members, targets, network.predict_proba(X).argmax(axis=1), noise)
    return NetworkStudent(network.unscaled(released.center, released.scale), np.arange(released.n_classes), judgement)


def _unscale(released: Released, X: Array) -> Array:
    return X * released.scale + released.center
