"""PATE: private aggregation of teacher ensembles."""

from numbers import Integral
from typing import Any, ClassVar

import joblib
from sklearn.utils.metadata_routing import UNUSED

from skfairdp._docs import shared_docs
from skfairdp._estimator import PrivateClassifier
from skfairdp._inputs import TrainingData, read_any_training
from skfairdp._tables import SyntheticRows
from skfairdp._typing import ArrayLike
from skfairdp._utils import PublicData, public_generator
from skfairdp._utils._sklearn import HasMethods, Interval, Learning, StrOptions
from skfairdp.pate import _student_training as training
from skfairdp.pate._query_plan import VOTINGS, ask_teachers, check_learners, check_student, plan_votes
from skfairdp.pate._soft_label_student import SoftLabelStudent
from skfairdp.pate._usefulness import fall_back_to_majority
from skfairdp.pate._votes import SoftVoting
from skfairdp.privacy import carrying
from skfairdp.schema import with_schema


@shared_docs
@with_schema
class PATEClassifier(training.LearnsFromVotes, PrivateClassifier):
    """Private classifier: teachers on disjoint private parts vote with noise, and a student learns the votes (PATE).

    **Guarantee.** (ε, δ)-differential privacy for the private *records*, neighbours differing in one replaced row. The
    number of rows, the classes, all constructor parameters and the public rows count as public; public rows are not
    protected. ``privacy_.epsilon`` is computed from the declared releases alone and does not depend on your data.

    **No public rows?** Then call ``fit(X, y)``. The fit samples rows from noisy tables of the private ones
    (:class:`SyntheticRows`), within the same ε.

    This is private aggregation (Papernot et al. 2017, 2018). Each private row belongs to one teacher, chosen by its
    position, so one changed row changes one vote. Only noisy votes leave the private side, with two additions. Where
    votes are too noisy to name the most frequent class, noisy counts of the classes are released. Where there are
    public rows, or few rows, and the usual teachers, noisy sums of the features of each class are released: they show
    what teachers of few rows cannot learn.

    Parameters
    ----------
    {epsilon, delta, n_teachers, teacher}
    student : classifier or None, default=None
        None: :class:`SoftLabelStudent`, which learns from noisy shares without bias. Any classifier is trained on the
        released labels.
    voting : {"soft", "gnmax", "confident"}, SoftVoting, GNMaxVoting or ConfidentVoting, default="soft"
        "soft" releases the noisy vote share of every query; labels, thresholds and students are post-processing.
        "gnmax" releases the noisy winner of every query. "confident" first asks, with noise, whether the winner has
        enough votes (Confident-GNMax). The parts :class:`SoftVoting`, :class:`GNMaxVoting` and
        :class:`ConfidentVoting` have the parameters of each.
    {classes, schema, rows_asked, memory, processes, random_state, noise_seed, ledger}
    {verbose}

    Attributes
    ----------
    {student_, classes_, privacy_, epsilon_spent_, what_was_asked}
    released_labels_ : ndarray of shape (n_queries,), dtype object
        Label of each query, None where there is none.
    answered_mask_ : ndarray of bool of shape (n_queries,)
    {n_features_in_, feature_names_in_}

    {fit_raises}

    Warns
    -----
    {no_better}

    See Also
    --------
    FairPATEClassifier : the same with demographic parity.
    SoftVoting, GNMaxVoting, ConfidentVoting : how teachers vote.

    Examples
    --------
    >>> from skfairdp import PATEClassifier, PublicData
    >>> from skfairdp.datasets import make_biased_classification, train_private_public_test_split
    >>> split = train_private_public_test_split(*make_biased_classification(4000, random_state=0), random_state=0)
    >>> model = PATEClassifier(epsilon=2.0, classes=[0, 1], random_state=0)
    >>> model = model.fit(split.X, split.y, X_public=split.X_public)
    >>> round(model.privacy_.epsilon, 3)
    2.0
    """

    n_teachers: int | str = "auto"
    teacher: Any = None
    student: Any = None
    voting: Any = "soft"
    classes: ArrayLike | None = None
    groups: ClassVar[None] = None  # type: ignore[misc]  # it reads none
    sensitive_columns: ClassVar[None] = None  # type: ignore[misc]  # nor these
    public_data: PublicData | SyntheticRows | None = None
    memory: str | joblib.Memory | None = None
    n_jobs: int | None = None
    verbose: int = 0

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_teachers": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "voting": "no_validation",
        "teacher": "no_validation",
        "student": [
            None,
            Learning("an object implementing 'fit' and 'predict', such as ConstrainedStudent('equalized_odds')"),
        ],
        "public_data": [PublicData, SyntheticRows, None],
        "memory": [str, HasMethods(["cache"]), None],
    }
    _shorthands: ClassVar[dict[str, Any]] = {"voting": VOTINGS}
    # No groups: its fit takes none, so nothing may be routed there.
    __metadata_request__fit = {"subject": True, "sensitive_features": UNUSED, "sensitive_features_public": UNUSED}

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        X_public: ArrayLike | PublicData | None = None,
        subject: ArrayLike | str | None = None,
    ) -> "PATEClassifier":
        """Train teachers, release their noisy votes on public rows, train the student.

        Parameters
        ----------
        {X_or_source, y_private, X_public, subject}

        {returns_self}
        """
        data = self._read(X, y, X_public=X_public, subject=subject)
        plan = self._plan(data)

        with self._spend(plan, data.reads) as noise:
            asked, released = ask_teachers(self, data, plan, noise, public_generator(self.random_state))

        self.classes_, self.n_teachers_, self.n_queries_ = data.classes, plan.votes.n_teachers, plan.votes.n_queries
        self._lessons = training.StudentTrainingSet.of(asked, released, len(data.classes))
        with training.note_votes_are_released("; refit(student=...) trains another from them"):
            return self._learn()

    def _read(self, X: Any, y: Any, *, X_public: Any = None, subject: Any = None) -> TrainingData:
        self._check()
        check_student(self.student)
        data = read_any_training(self, X, y, X_public=X_public, subject=subject, public_rows="given or own")
        check_learners(self, data)
        return data

    _votes_by_group = False  # its teachers read no groups

    _plan = plan_votes

    def _learn(self) -> "PATEClassifier":
        """Label the queries and teach the student: post-processing of released votes and public rows."""
        lessons = self._lessons
        student = fall_back_to_majority(
            self._teach(lessons), lessons, self.classes_, type(self).__name__, self._teach, self.student
        )
        self.student_ = carrying(student, self.privacy_)
        training.set_release_attributes(self, lessons, lessons.labels(self._parts()["voting"]))
        return self

    def _teach(self, lessons: training.StudentTrainingSet) -> Any:
        if self.student is None and lessons.denoiser is not None:
            return lessons.denoiser
        labels = lessons.labels(self._parts()["voting"])
        if isinstance(self.student, SoftLabelStudent):
            return lessons.teach(SoftLabelStudent(alpha=self.student.alpha), labels)
        if self.student is not None:
            return training.fit_student(self.student, lessons, labels, self.random_state)
        return lessons.teach(SoftLabelStudent(), labels)

    # What changes neither parts nor teachers: a search trains them once for all values of these.
    _after_teachers = frozenset({"epsilon", "delta", "voting", "student"})

    @property
    def _free_parameters(self) -> frozenset[str]:
        """What refit can change, given how this one votes: a search pays once for all their values."""
        soft = isinstance(self._parts()["voting"], SoftVoting)
        return frozenset({"student", "voting__threshold"} if soft else {"student"})
