"""The private-aggregation loop that PATE and FairPATE share."""

import math
from numbers import Integral, Real
from typing import Any

import joblib
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skfairdp._base import FairPrivateMixin, PublicRows
from skfairdp.ensemble import LogisticTeachers, fit_teachers, position_partition, vote_histogram
from skfairdp.fairness import FairnessGate, largest_disparity
from skfairdp.pate._aggregate import UNANSWERED, ReleasedVotes, gate_labels, release_votes
from skfairdp.pate._constant import ConstantStudent
from skfairdp.pate._plan import VotePlan, plan_votes
from skfairdp.pate._student import SoftLabelStudent
from skfairdp.utils import public_generator
from skfairdp.utils._sklearn import HasMethods, Interval, StrOptions

__all__ = ["BasePATE"]

# Chosen on Adult (benchmarks/bench_utility.py): more teachers drown the noise, until each sees too few rows.
ROWS_PER_TEACHER = 130
MAX_EPSILON = 1e9  # far beyond any guarantee, and still exact in floating point
LARGEST_INT = 2**31 - 1
TEACHER_C = 3.0  # few rows, many votes: averaging does the regularising that a lone model would need


def _student_has_proba(estimator: "BasePATE") -> bool:
    student = getattr(estimator, "student_", None)
    if student is None:
        return estimator.student is None or hasattr(estimator.student, "predict_proba")
    return hasattr(student, "predict_proba")


class BasePATE(FairPrivateMixin, ClassifierMixin, BaseEstimator):
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
        )
        source = self._noise_source()
        guarantee = {"protects": "record", "neighboring_relation": "replace one record"}
        self._charge(plan.event, **guarantee, releases=plan.releases, dry_run=True)  # before the long work

        self._check_groups(public)
        self.classes_ = classes
        released = self._teach_and_vote(
            features, codes, len(classes), public, queries, n_teachers, plan, source, guarantee, rng
        )

        self.privacy_ = self._report(
            plan.event,
            source,
            **guarantee,
            public=("number of rows", "classes", "public rows and their groups", "all constructor parameters"),
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
        source: Any,
        guarantee: dict[str, str],
        rng: np.random.Generator,
    ) -> ReleasedVotes:
        """Everything private lives and dies in here."""
        if plan.n_queries == 0:
            return ReleasedVotes(np.zeros(len(queries), dtype=np.int64), None)
        assignment = position_partition(len(X), n_teachers, random_state=rng)
        teachers = fit_teachers(
            LogisticTeachers(C=TEACHER_C) if self.teacher is None else self.teacher,
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
        self._charge(plan.event, **guarantee, releases=plan.releases, dry_run=False)
        return release_votes(
            votes,
            plan,
            source,
            gate=self._gate(public) if plan.voting == "confident" else None,
            verbose=self.verbose,
            groups=None if public.groups is None else public.groups[queries],
        )

    def _finish(self) -> "BasePATE":
        """Label, gate, teach the student, measure: post-processing of released votes and public rows."""
        public, queries, released = self._public, self._queries, self._released
        n_classes = len(self.classes_)
        X = public.X[queries]
        groups = None if public.groups is None else public.groups[queries]
        if released.shares is not None:
            estimate = self._denoiser.predict_proba(X)
            labels = np.where(estimate.max(axis=1) >= self.threshold, estimate.argmax(axis=1), UNANSWERED)
        else:
            assert released.labels is not None
            labels = released.labels
        gate = self._gate(public)
        if gate is not None and groups is not None and self.voting != "confident":
            labels = gate_labels(labels, groups, gate)
        answered = labels != UNANSWERED
        if self.student is not None:
            self.student_ = self._fit_given_student(X[answered], labels[answered])
        elif released.shares is not None:
            self.student_ = self._held_to_parity(self._denoiser)
        else:
            hard = np.eye(n_classes)[labels[answered]]
            self.student_ = self._held_to_parity(self._fit_default_student(X[answered], hard, 0.0))
        self.released_votes_ = released.shares if released.shares is not None else released.labels
        self.query_indices_ = queries
        self.released_labels_ = self._decode(labels)
        self.answered_mask_ = answered
        self.n_answered_ = int(answered.sum())
        if groups is not None:
            counts = np.zeros((public.n_groups, n_classes), dtype=np.int64)
            np.add.at(counts, (groups[answered], labels[answered]), 1)
            self.gap_ = largest_disparity(counts, self.gap)
            self._check_answers(public, counts)
            asked = np.bincount(groups, minlength=public.n_groups)
            refused = np.bincount(groups[~answered], minlength=public.n_groups)
            assert public.domain is not None
            self.rejection_rate_by_group_ = {
                name: float(r / a) if a else math.nan
                for name, r, a in zip(public.domain.tolist(), refused, asked, strict=True)
            }
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

    def _fit_default_student(self, X: NDArray[np.float64], shares: NDArray[np.float64], noise_std: float) -> Any:
        public = self._public
        if len(self.classes_) < 2:
            return ConstantStudent()
        if not len(X):
            # Nothing was answered. Predicting the first class is as good as any data-free rule.
            return ConstantStudent(len(self.classes_))
        return SoftLabelStudent(gap=self.gap).fit(
            X, shares, noise_std=noise_std, X_public=public.X, groups=public.groups, n_groups=public.n_groups or None
        )

    def _held_to_parity(self, student: Any) -> Any:
        return student

    def _fit_given_student(self, X: NDArray[np.float64], labels: NDArray[np.int64]) -> Any:
        if len(np.unique(labels)) < 2:
            return ConstantStudent(len(self.classes_), int(labels[0]) if len(labels) else 0)
        student = clone(self.student)
        if "random_state" in student.get_params() and student.get_params()["random_state"] is None:
            student.set_params(random_state=int(public_generator(self.random_state).integers(2**31 - 1)))
        return student.fit(X, labels)

    def _decode(self, labels: NDArray[np.int64]) -> NDArray[Any]:
        decoded = np.empty(len(labels), dtype=object)
        decoded[:] = None
        answered = labels != UNANSWERED
        decoded[answered] = self.classes_[labels[answered]]
        return decoded

    # ------------------------------------------------------------------ prediction

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict the class of each row; the group is not needed.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        check_is_fitted(self, "student_")
        features, _ = self._split_features(X)
        return self.classes_[np.asarray(self.student_.predict(features), dtype=np.int64)]

    @available_if(_student_has_proba)
    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Class probabilities of the student (for the built-in student: estimated vote shares).

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
        """
        check_is_fitted(self, "student_")
        features, _ = self._split_features(X)
        probabilities = np.zeros((len(features), len(self.classes_)))
        probabilities[:, np.asarray(self.student_.classes_, dtype=np.int64)] = self.student_.predict_proba(features)
        return probabilities

    # ------------------------------------------------------------------ post-processing

    def refit_student(
        self, *, gamma: Any = "unchanged", threshold: float | None = None, student: Any = "unchanged"
    ) -> "BasePATE":
        """Label again and train another student from the votes already released, at no privacy cost.

        Parameters
        ----------
        gamma : float or None, default="unchanged"
            Another fairness bound (``voting="soft"`` and ``"gnmax"``; a confident vote has its bound built in).
        threshold : float, default=None
            Another share a label needs (``voting="soft"``).
        student : estimator or None, default="unchanged"
            Another student; None is the built-in one.

        Returns
        -------
        estimator
            A new fitted estimator with the same ``privacy_``; this one is unchanged, and nothing is charged.

        Raises
        ------
        ValueError
            The released votes do not determine the answer asked for.
        """
        check_is_fitted(self, "_released")
        changes: dict[str, Any] = {}
        if not isinstance(gamma, str):
            if self.voting == "confident":
                raise ValueError(
                    "voting='confident' consulted its gate before each vote, so another 'gamma' needs a new fit. "
                    "Use voting='soft' or 'gnmax' to sweep it for free."
                )
            changes["gamma"] = gamma
        if threshold is not None:
            if self.voting != "soft":
                raise ValueError("Another 'threshold' needs released vote shares: voting='soft'.")
            changes["threshold"] = threshold
        if not isinstance(student, str):
            changes["student"] = student
        other = clone(self).set_params(**changes)
        other._validate_params()
        other._check_parameters()
        kept = (
            "privacy_",
            "n_teachers_",
            "n_queries_",
            "classes_",
            "n_features_in_",
            "feature_names_in_",
            "_public",
            "_queries",
            "_released",
            "_denoiser",
        )
        for name in kept:
            if hasattr(self, name):
                setattr(other, name, getattr(self, name))
        return other._finish()
