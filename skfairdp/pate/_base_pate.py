"""The private-aggregation loop that PATE and FairPATE share."""

from numbers import Integral, Real
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone

from skfairdp._base import PublicRows
from skfairdp._teachers import LogisticTeachers, fit_teachers, position_partition, vote_histogram
from skfairdp.fairness import FairnessGate, largest_disparity, rejection_rates, tally
from skfairdp.pate._after_release import AfterRelease
from skfairdp.pate._aggregate import UNANSWERED, ReleasedVotes, gate_labels, release_votes
from skfairdp.pate._constant import ConstantStudent
from skfairdp.pate._plan import VotePlan, plan_votes
from skfairdp.pate._rehearsal import rehearse_teacher
from skfairdp.pate._soft_label_student import SoftLabelStudent
from skfairdp.privacy import NeighboringRelation, NoiseSource
from skfairdp.utils import public_generator
from skfairdp.utils._sklearn import HasMethods, Interval, StrOptions

__all__ = ["BasePATE"]

# Chosen on Adult (benchmarks/bench_utility.py): more teachers drown the noise, until each sees too few rows.
ROWS_PER_TEACHER = 130
MAX_EPSILON = 1e9  # far beyond any guarantee, and still exact in floating point
LARGEST_INT = 2**31 - 1
TEACHER_C = 3.0  # few rows, many votes: averaging does the regularising that a lone model would need


class BasePATE(AfterRelease, ClassifierMixin, BaseEstimator):
    """Partition, teach, vote, release, student. Not public: see PATEClassifier and FairPATEClassifier."""

    _parameter_constraints: dict[str, Any] = {
        "epsilon": [Interval(Real, 0, MAX_EPSILON, closed="right")],
        "delta": [Interval(Real, 0, 1, closed="neither")],
        "n_teachers": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "voting": [StrOptions({"soft", "confident", "gnmax"})],
        "threshold": [Interval(Real, 0.5, 1, closed="right")],
        "sigma_threshold": [Interval(Real, 1e-9, 1e9, closed="both"), None],
        "sigma_gnmax": [Interval(Real, 1e-9, 1e9, closed="both"), None],
        "max_queries": [Interval(Integral, 1, None, closed="left"), None],
        "max_answers": [Interval(Integral, 1, None, closed="left"), None],
        "accounting": [StrOptions({"auto", "binary", "gdp"})],
        "noise": [StrOptions({"gaussian", "discrete_gaussian"})],
        "teacher": "no_validation",
        "student": [HasMethods(["fit", "predict"]), None],
        "public_size": [Interval(Real, 0, 1, closed="neither"), None],
        "classes": ["array-like", None],
        "memory": [str, HasMethods(["cache"]), None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "noise_seed": [Interval(Integral, 0, None, closed="left"), None],
        "ledger": [HasMethods(["charge"]), None],
        "verbose": ["verbose"],
    }

    # What changes neither parts nor teachers: a search trains them once for all values of these.
    _after_teachers = frozenset({
        "epsilon", "delta", "accounting", "noise", "sigma_threshold", "sigma_gnmax", "max_queries", "max_answers",
        "voting", "threshold", "gamma", "min_count", "gap", "gate", "constraint_at", "lam", "student",
    })  # fmt: skip

    # PATEClassifier has no fairness parameters; FairPATEClassifier sets its own.
    groups: Any = None
    sensitive_columns: Any = None
    gamma: float | None = None
    gap: str = "others"

    @property
    def _constrained(self) -> bool:
        return self.gamma is not None

    @property
    def _use_groups(self) -> str:
        return "ignored"

    def _fit(
        self, X: Any, y: Any, sensitive_features: Any, X_public: Any, sensitive_features_public: Any
    ) -> "BasePATE":
        self._validate_params()
        self._check_parameters()
        # Private groups are read only where public rows are held out of the private ones.
        features, groups_in_X = self._split_features(X, reset=True, read_groups=X_public is None)
        target = self._check_target(y, len(features))
        classes, codes = self._encode_classes(target)
        features, codes, public = self._public_rows(
            features,
            codes,
            groups_in_X,
            sensitive_features,
            X_public,
            sensitive_features_public,
            use_groups=self._use_groups,
        )
        rng = public_generator(self.random_state)
        n_teachers = self._count_teachers(len(features))
        queries = self._choose_queries(len(public.X), rng)
        rehearse_teacher(self._teacher(), public.X[np.sort(queries)], n_rows=-(-len(features) // n_teachers),
                         n_classes=len(classes), owner=type(self).__name__)  # fmt: skip
        plan = plan_votes(
            voting=self.voting,
            epsilon=self.epsilon,
            delta=self.delta,
            n_queries=len(queries),
            n_teachers=n_teachers,
            n_classes=len(classes),
            threshold=self.threshold,
            noise=self.noise,
            accounting=self.accounting,
            sigma_threshold=self.sigma_threshold,
            sigma_gnmax=self.sigma_gnmax,
            max_gnmax=self.max_answers,
            owner=type(self).__name__,
            relation=NeighboringRelation.REPLACE_ONE,
        )
        spending = self._spend(
            plan.event,
            relation=NeighboringRelation.REPLACE_ONE,
            releases=plan.releases,
        )
        with spending as noise:
            self._check_groups(public)
            self.classes_ = classes
            released = self._teach_and_vote(
                features, codes, len(classes), public, queries, n_teachers, plan, noise, rng
            )
        self.n_teachers_ = n_teachers
        self.n_queries_ = len(queries)
        self._public, self._queries, self._released = public, queries, released
        # One fit on the released shares serves every gamma and threshold of a sweep.
        self._denoiser: Any = None
        if released.shares is not None:
            self._denoiser = self._fit_default_student(public.X[queries], released.shares, released.noise_std)
        try:
            return self._finish()
        except Exception as error:
            error.add_note("The votes are released and paid for; refit_student(student=...) trains another from them.")
            raise

    def _teach_and_vote(
        self,
        X: NDArray[np.float64],
        y: NDArray[np.int64],
        n_classes: int,
        public: PublicRows,
        queries: NDArray[np.int64],
        n_teachers: int,
        plan: VotePlan,
        noise: NoiseSource,
        rng: np.random.Generator,
    ) -> ReleasedVotes:
        """Everything private lives and dies in here."""
        if plan.n_queries == 0:
            return ReleasedVotes(np.zeros(len(queries), dtype=np.int64), None)
        assignment = position_partition(len(X), n_teachers, random_state=rng)
        teachers = fit_teachers(
            self._teacher(),
            X,
            y,
            assignment,
            n_teachers=n_teachers,
            n_classes=n_classes,
            random_state=rng,
            n_jobs=self.n_jobs,
            memory=joblib.Memory(self.memory, verbose=0) if isinstance(self.memory, str) else self.memory,
            verbose=self.verbose,
        )
        votes = vote_histogram(teachers.predict(public.X[queries]), n_classes)
        return release_votes(
            votes,
            plan,
            noise,
            gate=self._gate(public) if self._gates_votes else None,
            verbose=self.verbose,
            groups=None if public.groups is None else public.groups[queries],
        )

    def _finish(self) -> "BasePATE":
        """Label, gate, teach the student, measure: post-processing of released votes and public rows."""
        public, queries, released = self._public, self._queries, self._released
        X = public.X[queries]
        groups = None if public.groups is None else public.groups[queries]
        if released.shares is not None:
            estimate = self._denoiser.predict_proba(X)
            labels = np.where(estimate.max(axis=1) >= self.threshold, estimate.argmax(axis=1), UNANSWERED)
        else:
            assert released.labels is not None
            labels = released.labels
        if not self._gates_votes:
            gate = self._gate(public)
            labels = labels if gate is None or groups is None else gate_labels(labels, groups, gate)
        self.student_ = self._teach_student(X, labels)
        answered = labels != UNANSWERED
        self.released_votes_ = released.shares if released.shares is not None else released.labels
        self.query_indices_ = queries
        self.released_labels_ = self._decode(labels)
        self.answered_mask_ = answered
        self.n_answered_ = int(answered.sum())
        if groups is not None:
            assert public.domain is not None
            counts = tally(groups[answered], labels[answered], (public.n_groups, len(self.classes_)))
            self.gap_ = largest_disparity(counts, self.gap)
            self._check_answers(public, counts)
            self.rejection_rate_by_group_ = rejection_rates(answered, groups, public.domain)
        return self

    # ------------------------------------------------------------------ pieces

    def _check_parameters(self) -> None:
        for name in sorted(self._parameter_constraints.keys() - {"random_state", "noise_seed", "verbose"}):
            value = getattr(self, name)
            if isinstance(value, bool | np.bool_) or (isinstance(value, Integral) and int(value) > LARGEST_INT):
                raise ValueError(
                    f"The '{name}' parameter of {type(self).__name__} must be neither a bool nor an integer beyond "
                    f"{LARGEST_INT}."
                )
        if self.student is not None:
            clone(self.student)  # raises where it is no estimator, before anything is spent
        if self.voting != "confident":
            ignored = {"sigma_threshold": self.sigma_threshold, "max_answers": self.max_answers}
            for name, value in ignored.items():
                if value is not None:
                    raise ValueError(f"'{name}' of {type(self).__name__} only applies to voting='confident'.")

    def _teacher(self) -> Any:
        return LogisticTeachers(C=TEACHER_C) if self.teacher is None else self.teacher

    def _count_teachers(self, n_rows: int) -> int:
        if self.n_teachers == "auto":
            return int(np.clip(n_rows // ROWS_PER_TEACHER, 1, 1000))
        if self.n_teachers > n_rows:
            raise ValueError(
                f"The 'n_teachers' parameter of {type(self).__name__} is {self.n_teachers}, more teachers than rows: "
                f"X has n_samples = {n_rows} private rows. Use at most one teacher per row."
            )
        return int(self.n_teachers)

    def _choose_queries(self, n_public: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Positions of the public rows to ask about, in the order of asking: a public shuffle."""
        default = n_public if self.voting == "soft" else 1000
        n = min(n_public, default if self.max_queries is None else self.max_queries)
        return rng.permutation(n_public)[:n].astype(np.int64)

    def _check_groups(self, public: PublicRows) -> None:
        """Nothing to check without groups; FairPATEClassifier warns of groups too small for its claim."""

    def _check_answers(self, public: PublicRows, counts: NDArray[np.int64]) -> None:
        """Nothing to check without a constraint; FairPATEClassifier warns where its gate had to stop answering."""

    def _gate(self, public: PublicRows, counts: NDArray[np.int64] | None = None) -> FairnessGate | None:
        """A fresh gate over the public counters; None without a fairness constraint."""
        return None

    def _teach_student(self, X: NDArray[np.float64], labels: NDArray[np.int64]) -> Any:
        """The student of the queries X, of which ``labels`` says what was answered."""
        if self.student is not None:
            answered = labels != UNANSWERED
            return self._fit_given_student(X[answered], labels[answered])
        if self._released.shares is not None:
            return self._held_to_parity(self._denoiser)
        return self._held_to_parity(self._fit_default_student(*self._lessons(X, labels)))

    def _lessons(
        self, X: NDArray[np.float64], labels: NDArray[np.int64], *, answered_only: bool = False
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
        """What a student of shares learns from: queries, their shares or one-hot labels, and the noise in a share.

        Of shares all queries count, answered or not, unless told otherwise.
        """
        answered, released = labels != UNANSWERED, self._released
        if released.shares is None:
            return X[answered], np.eye(len(self.classes_))[labels[answered]], 0.0
        if answered_only:
            return X[answered], released.shares[answered], released.noise_std
        return X, released.shares, released.noise_std

    def _constant_student(self, n_rows: int) -> ConstantStudent | None:
        if len(self.classes_) < 2:
            return ConstantStudent()
        # Nothing was answered. Predicting the first class is as good as any data-free rule.
        return None if n_rows else ConstantStudent(len(self.classes_))

    def _fit_default_student(self, X: NDArray[np.float64], shares: NDArray[np.float64], noise_std: float) -> Any:
        public, constant = self._public, self._constant_student(len(X))
        if constant is not None:
            return constant
        return SoftLabelStudent(gap=self.gap).fit(
            X, shares, noise_std=noise_std, X_public=public.X, groups=public.groups, n_groups=public.n_groups or None
        )

    def _held_to_parity(self, student: Any) -> Any:
        return student

    def _fit_given_student(self, X: NDArray[np.float64], labels: NDArray[np.int64]) -> Any:
        if len(np.unique(labels)) < 2:
            return ConstantStudent(len(self.classes_), int(labels[0]) if len(labels) else 0)
        return self._seeded(clone(self.student)).fit(X, labels)

    def _seeded(self, student: Any) -> Any:
        if "random_state" in student.get_params() and student.get_params()["random_state"] is None:
            student.set_params(random_state=int(public_generator(self.random_state).integers(2**31 - 1)))
        return student

    def _decode(self, labels: NDArray[np.int64]) -> NDArray[Any]:
        decoded = np.empty(len(labels), dtype=object)
        decoded[:] = None
        answered = labels != UNANSWERED
        decoded[answered] = self.classes_[labels[answered]]
        return decoded
