"""What comes after the votes are released: gates, labels, students, predictions, refits. No private row is read."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skfairdp._docs import shared_docs
from skfairdp._estimator import as_part
from skfairdp._inputs import read_features
from skfairdp._judge import fifths
from skfairdp._row_wise import all_probabilities, predict_codes
from skfairdp._teachers import as_classifiers, takes_groups
from skfairdp._typing import ArrayLike, Bools, Floats as Array, Ints as Codes
from skfairdp._usefulness import CLEAR
from skfairdp._utils import RandomStateLike, decode_labels, public_generator
from skfairdp._utils._sklearn import Interval, StrOptions, answers_as_fitted
from skfairdp.fairness import RateParity, largest_disparity, tally
from skfairdp.pate._constrained_student import ConstrainedStudent, seen_at_levels, shrink_gaps
from skfairdp.pate._query_plan import QuerySet, check_student
from skfairdp.pate._soft_label_student import SoftLabelStudent
from skfairdp.pate._votes import UNANSWERED, ReleasedVotes
from skfairdp.privacy import composed, held_by

_MANY_GROUPS = 8
_TIGHTER = (1.0, 0.9, 0.7, 0.4, 0.0)  # of γ: a rule over few distinct probabilities may miss its bound by a little


# ---- where parity is held --------------------------------------------------------------------------------------


@dataclass(kw_only=True, eq=False, repr=False)
class VoteGate(BaseEstimator):
    """Gate of FairPATE: votes that would violate demographic parity are withdrawn, and the student is constrained too.

    :class:`ConfidentVoting` asks the gate before each vote, so that a refused label costs nothing. Elsewhere it goes
    through the released labels in their order, which costs nothing either. The built-in student is then held to
    ``gamma`` on the public rows. A student of yours is trained on the labels that the gate let through; where it breaks
    ``gamma`` on the public rows all the same, and has probabilities, a rule over them is put around it that does not.

    Parameters
    ----------
    min_count : int, default=50
        Answers a group gets before the gate judges it (cold start).
    rule : {"excess", "local"}, default="excess"
        "excess" never raises the total violation; "local" is the paper's check (equal for two groups and two classes).
    disparity : {"others", "overall", "between"}, default="others"
        Disparity of a group against all others, against everyone, or against the least favoured (paper, App. H.1).

    See Also
    --------
    LabelGate
    skfairdp.fairness.FairnessGate : the gate itself.

    Examples
    --------
    >>> from skfairdp.pate import FairPATEClassifier, VoteGate
    >>> FairPATEClassifier(gate=VoteGate(min_count=20)).gate.rule
    'excess'
    """

    min_count: int = 50
    rule: str = "excess"
    disparity: str = "others"

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "min_count": [Interval(Integral, 0, None, closed="left")],
        "rule": [StrOptions({"excess", "local"})],
        "disparity": [StrOptions({"others", "overall", "between"})],
    }


class LabelGate(VoteGate):
    """Gate on released labels (the baseline PATE-S_pre): the student sees only labels that keep parity.

    Released labels that would break parity are withdrawn, as :class:`~skfairdp.DemographicParityFilter` does, and the
    student learns from the rows that are left. It is held to nothing. The gate never reaches the votes: in the paper's
    words the design is not impartial, as budget is spent on labels that fairness then throws away.

    Parameters
    ----------
    min_count : int, default=50
        Answers a group gets before the gate judges it (cold start).
    rule, disparity : str
        As in :class:`VoteGate`.

    See Also
    --------
    VoteGate

    Examples
    --------
    >>> from skfairdp.pate import LabelGate
    >>> LabelGate(min_count=20)
    LabelGate(min_count=20)
    """


#: By their shorthands.
GATES: dict[str, Any] = {"votes": VoteGate, "labels": LabelGate}


# ---- students --------------------------------------------------------------------------------------------------


class ConstantStudent:
    """Predicts one class. For a public domain of one class, or when no query was answered."""

    def __init__(self, n_classes: int = 1, constant: int = 0) -> None:
        self.classes_ = np.arange(n_classes)
        self.constant = constant

    def __repr__(self) -> str:
        return f"ConstantStudent(n_classes={len(self.classes_)}, constant={self.constant})"

    def predict(self, X: Array) -> Codes:
        return np.full(len(X), self.constant, dtype=np.int64)

    def predict_proba(self, X: Array) -> Array:
        return np.eye(len(self.classes_))[self.predict(X)]


@dataclass(frozen=True)
class StudentTrainingSet(QuerySet):
    """All that a student may learn from: public rows, and what was released about those that were asked about."""

    votes: ReleasedVotes
    n_classes: int
    denoiser: Any = None

    @classmethod
    def of(cls, asked: QuerySet, votes: ReleasedVotes, n_classes: int, disparity: str = "others") -> Self:
        """Lessons with their denoiser, where shares were released."""
        told = None if votes.shares is None or asked.told is None else asked.told[asked.queries]
        lessons = cls(**{**vars(asked), "told": told}, votes=votes, n_classes=n_classes)
        return lessons if votes.shares is None else lessons.comparing(disparity)

    def comparing(self, disparity: str) -> Self:
        """The same, with levels of parity of the denoiser that have gaps of this kind."""
        known = self.denoiser
        if self.votes.shares is None or getattr(known, "disparity", None) == disparity:
            return self
        if getattr(known, "_released", None) is not None:
            return replace(self, denoiser=seen_at_levels(known, self, disparity, *known._released))
        denoiser = self.teach(SoftLabelStudent(disparity=disparity), np.zeros(len(self.queries), dtype=np.int64))
        if self.told is not None and self.limits is None and self.groups is not None:
            denoiser = shrink_gaps(denoiser, self.public)
        return replace(self, denoiser=denoiser)

    def __getstate__(self) -> dict[str, Any]:
        """All but what can be made again."""
        return {name: value for name, value in vars(self).items() if name != "fifths"}

    def part(self, rows: Codes) -> "StudentTrainingSet":
        """The lessons of some of the queries, with a denoiser of their own."""
        of: list[Any] = [self.votes.labels, self.votes.shares, self.told]
        labels, shares, told = (None if one is None else one[rows] for one in of)
        votes = replace(self.votes, labels=labels, shares=shares)
        some = replace(self, queries=self.queries[rows], votes=votes, told=told)
        if not isinstance(self.denoiser, SoftLabelStudent):
            return some
        student = SoftLabelStudent(disparity=self.denoiser.disparity)
        return replace(some, denoiser=some.teach(student, np.zeros(len(rows), dtype=np.int64)))

    @cached_property
    def fifths(self) -> list[tuple["StudentTrainingSet", Bools]]:
        """Lessons without a fifth of the public rows, and those rows."""
        found = []
        for taught, asked in fifths(self.public.groups, None):
            public = replace(self.public, X=self.public.X[taught], groups=self.public.groups[taught])
            renumbered = replace(self, public=public, queries=(np.cumsum(taught) - 1)[self.queries])
            found.append((renumbered.part(np.flatnonzero(taught[self.queries])), asked))
        return found

    @property
    def shares(self) -> Array | None:
        """Released shares, averaged with what the tables say of the rows, where they say something."""
        if self.told is None or self.votes.shares is None:
            return self.votes.shares
        return self.trust * self.told + (1 - self.trust) * self.votes.shares

    @property
    def believed(self) -> tuple[Codes, Array]:
        """Which queries have an answer, and what the votes say of their classes: by their regression, or labels."""
        if self.denoiser is not None:
            return np.arange(len(self.queries)), np.asarray(self.denoiser.predict_proba(self.X))
        rows = np.flatnonzero(self.votes.labels != UNANSWERED)
        return rows, np.eye(self.n_classes)[self.votes.labels[rows]]

    @property
    def noise_std(self) -> float:
        """Standard deviation of the noise that is drawn anew for each of these shares."""
        return (1 - self.trust) * self.votes.noise_std

    @property
    def X(self) -> Array:
        """The queries."""
        return self.public.X[self.queries]

    def labels(self, voting: Any) -> Codes:
        """The label of each query, ``UNANSWERED`` where there is none, before any gate on labels."""
        if self.votes.labels is not None:
            return self.votes.labels
        return voting.labels(self.denoiser.predict_proba(self.X))

    @property
    def groups_held(self) -> Codes | None:
        """Groups of the public rows, as a student is held to parity of them. Rows sampled for a group within its noise
        are mostly rows of others, and go to them: to make up for what noise sets apart costs accuracy alone."""
        groups, small = self.public.groups, self.is_within_noise
        if groups is None or small is None or not small.any():
            return groups
        others = np.flatnonzero(~small) if not small.all() else np.zeros(1, dtype=np.int64)
        return np.where(small[groups], np.random.default_rng(0).choice(others, len(groups)), groups)

    def teach(self, student: Any, labels: Codes, *, answered_only: bool = False) -> Any:
        """Fit a student of shares. All released shares count, answered or not, unless told otherwise."""
        if self.n_classes < 2:
            return ConstantStudent()
        shares, told = self.shares, labels != UNANSWERED
        if shares is None:
            shares = np.eye(self.n_classes)[labels]  # of the unanswered, which are left out, any row
        elif not answered_only:
            told = np.ones(len(labels), dtype=bool)
        if not told.any():  # predicting the first class is as good as any data-free rule
            return ConstantStudent(self.n_classes)
        public, more = self.public, dict[str, Any](noise_std=self.noise_std)
        if self.by_group and isinstance(student, ConstrainedStudent):
            more["groups_asked"] = self.groups[told]
        # Where all public rows were asked about they need not be worked on twice.
        same = len(self.queries) == len(public.X) and bool(told.all())
        groups = self.groups_held
        more["X_public"] = None if same else public.X
        more["groups"] = groups if groups is None or not same else groups[self.queries]
        more["bends"] = self.votes.forecast is None or self.votes.forecast.noise <= CLEAR
        return student.fit(self.X[told], shares[told], n_groups=public.n_groups or None, **more)


def fit_student(student: Any, lessons: StudentTrainingSet, labels: Codes, random_state: RandomStateLike) -> Any:
    """Fit a clone of a classifier on the answered queries; a constant where there is nothing to tell apart."""
    told = labels != UNANSWERED
    if len(np.unique(labels[told])) < 2:
        return ConstantStudent(lessons.n_classes, int(labels[told][0]) if told.any() else 0)
    given = {}
    if lessons.groups is not None and takes_groups(student):
        given["sensitive_features"] = lessons.groups[told]
    return seeded(student, random_state).fit(lessons.X[told], labels[told], **given)


def held_student(student: Any, lessons: StudentTrainingSet, gamma: float, disparity: str) -> Any:
    """A student of the user's, moved on the public rows to where its demographic disparity is at most ``gamma``.
    It stays as it is where it keeps to that by itself, is one class, or has no probabilities to be moved by."""
    public, groups, n_classes = lessons.public, lessons.public.groups, lessons.n_classes

    def gap(of: Any) -> float:
        counts = tally(groups, np.asarray(of.predict(public.X), dtype=np.int64), (public.n_groups, n_classes))
        return largest_disparity(counts, disparity)

    if isinstance(student, ConstantStudent) or gap(student) <= gamma or not hasattr(student, "predict_proba"):
        return student
    # What holds between every two groups, or by half between each and all, bounds every disparity; and pairs of many
    # groups are too many for a linear program.
    many = public.n_groups > _MANY_GROUPS
    method = "to_overall" if many or (disparity == "overall" and n_classes == 2) else "between_groups"
    held = []
    for share in _TIGHTER:
        parity = RateParity("selection_rate", share * gamma / (2 if many else 1), method=method)
        held.append(ConstrainedStudent.around(student, parity, public.X, groups, public.n_groups, n_classes))
        if gap(held[-1]) <= gamma:
            return held[-1]
    return min(held, key=gap)


def seeded(student: Any, random_state: RandomStateLike) -> Any:
    """A clone, with a public seed where it takes one and has none."""
    student = as_classifiers(clone(student, safe=False))
    parameters = student.get_params() if hasattr(student, "get_params") else {}
    if parameters.get("random_state", 0) is None:
        student.set_params(random_state=int(public_generator(random_state).integers(2**31 - 1)))
    return student


def set_release_attributes(estimator: Any, lessons: StudentTrainingSet, labels: Codes) -> None:
    """Set the attributes that say what was asked, what was released, and which labels came of it."""
    answered = labels != UNANSWERED
    told = np.full(len(labels), None, dtype=object)
    told[answered] = estimator.classes_[labels[answered]]
    estimator.released_votes_, estimator.query_indices_ = lessons.votes.values, lessons.queries
    estimator.released_labels_, estimator.answered_mask_ = told, answered
    estimator.n_answered_ = int(answered.sum())


@contextmanager
def note_votes_are_released(advice: str = "") -> Iterator[None]:
    """Say beside an error that the votes are released and paid for, and what can still be done with them."""
    try:
        yield
    except Exception as error:
        error.add_note(f"The votes are released and charged{advice}.")
        raise


# ---------------------------------------------------------------------- the half of an estimator that has a student


def _has_probabilities(classifier: "LearnsFromVotes") -> bool:
    student = getattr(classifier, "student_", None)
    if student is None:
        student = classifier._given_student
    return student is None or hasattr(student, "predict_proba")


@shared_docs
class LearnsFromVotes(BaseEstimator):
    """``predict``, ``predict_proba`` and ``refit`` of a classifier that holds ``student_``. Its ``_learn`` makes a
    student from what was released, its ``_check`` looks at parameters, and ``_free_parameters`` says which of them
    (with the parameters of what they hold) are post-processing."""

    student: Any
    student_: Any
    classes_: NDArray[Any]

    @property
    def _free_parameters(self) -> frozenset[str]:
        """Which parameters are post-processing of the votes; those of what they hold are as well."""
        raise NotImplementedError

    #: The parts that a parameter may be, by their shorthands.
    _shorthands: ClassVar[dict[str, dict[str, Any]]]

    def _check_votes(self) -> None:
        """Refuse parameters that the released votes cannot answer for, before a refit."""

    @property
    def _given_student(self) -> Any:
        """What ``student_`` will be a clone of; None is a built-in one, which has probabilities."""
        return self.student

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict the class of each row; the group is not needed.

        {predicts_labels}
        """
        check_is_fitted(self, "student_")
        return decode_labels(self, predict_codes(self.student_, self._read_rows(X)))

    _settles_coins = True

    @available_if(_has_probabilities)
    def predict_proba(self, X: ArrayLike) -> Array:
        """Class probabilities of the student (of one that learns vote shares: those); only where it has them.

        {predicts_proba}
        """
        check_is_fitted(self, "student_")
        return all_probabilities(self.student_, self._read_rows(X), len(self.classes_))

    @property
    def row_limits(self) -> Array | None:
        """Lowest and highest numbers of what was asked about: others count as these. None where nothing is cut."""
        lessons = getattr(self, "_lessons", None)
        return None if lessons is None else lessons.limits

    @answers_as_fitted
    def _read_rows(self, X: ArrayLike) -> Array:
        """Features of rows to predict, within the limits of what was asked about."""
        features, limits = read_features(self, X), self.row_limits
        return features if limits is None else np.clip(features, *limits)

    @np.errstate(all="warn", under="ignore")
    def refit(self, **changes: Any) -> Self:
        """Label again and train another student from the votes already released, at no privacy cost.

        Parameters
        ----------
        **changes
            Other values of parameters that are post-processing of the votes, nested ones as in ``set_params``; all
            others stay as they are.

        Returns
        -------
        estimator
            A new fitted estimator with the same ``privacy_``, and the cost of a private student that is fitted already;
            this one is unchanged, and nothing is charged.

        Raises
        ------
        ValueError
            A parameter needs a new fit, or the released votes do not determine the answer asked for.
        """
        check_is_fitted(self, "privacy_")
        for name in changes:
            self._refuse_paid(name)
        other: Any = clone(self)
        other.set_params(**changes)
        other._check()
        check_student(getattr(other, "student", None))
        parameters = other.get_params(deep=False)
        for name, value in vars(self).items():
            if name not in parameters:
                setattr(other, name, value)
        other._check_votes()
        other.privacy_ = composed(self.privacy_, *held_by(other))
        return other._learn()

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also those of the part that a shorthand such as ``voting="soft"`` stands for.

        Parameters
        ----------
        **params
            As in scikit-learn.

        {returns_self}
        """
        nested = {name: value for name, value in params.items() if "__" in name}
        super().set_params(**{name: value for name, value in params.items() if name not in nested})
        for name in self._shorthands.keys() & {name.partition("__")[0] for name in nested}:
            if isinstance(getattr(self, name), str):
                part = as_part(getattr(self, name), self._shorthands[name], parameter=name, owner=type(self).__name__)
                setattr(self, name, part)
        return super().set_params(**nested)

    def _refuse_paid(self, name: str) -> None:
        """Raise where the released votes cannot answer for another value of this parameter."""
        owner, free = type(self).__name__, self._free_parameters
        if any(name == one or name.startswith(f"{one}__") for one in free):
            return
        known = name.split("__")[0] in self.get_params(deep=False)
        problem = "needs a new fit: clone, set_params, fit" if known else f"is no parameter of {owner}"
        raise ValueError(
            f"refit of {owner} changes what is post-processing of the released votes: "
            f"{', '.join(sorted(free))}. Got '{name}', which {problem}."
        )
