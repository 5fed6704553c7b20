"""FairPATE: private aggregation that releases no label that would break demographic parity."""

from dataclasses import replace
from typing import Any, ClassVar

import joblib
import numpy as np
import pandas as pd

from skfairdp import fairness
from skfairdp._docs import shared_docs
from skfairdp._estimator import PrivateClassifier
from skfairdp._inputs import PublicRows, TrainingData, read_any_training
from skfairdp._judge import Judge, Judgement, set_judgement, tightened
from skfairdp._row_wise import NO_CLASS, row_wise_predictions
from skfairdp._rows import opened
from skfairdp._tables import SyntheticRows, table_of
from skfairdp._typing import ArrayLike, Ints
from skfairdp._utils import PublicData, public_generator, warn_caller
from skfairdp.exceptions import FairnessWarning
from skfairdp.pate import _student_training as training
from skfairdp.pate._constrained_student import ConstrainedStudent
from skfairdp.pate._parity_penalty_student import ParityPenaltyStudent
from skfairdp.pate._pate import PATEClassifier
from skfairdp.pate._query_plan import VOTINGS, ask_teachers, check_learners, check_student, plan_votes
from skfairdp.pate._soft_label_student import SoftLabelStudent
from skfairdp.pate._usefulness import fall_back_to_majority, warn_of_gaps
from skfairdp.pate._votes import UNANSWERED, SoftVoting
from skfairdp.privacy import NoiseSource, carrying
from skfairdp.schema import with_schema

#: Public rows up to which a student is judged by those that it was not taught: that takes five students more.
_MOST_LEFT_OUT = 20_000


@shared_docs
@with_schema
class FairPATEClassifier(training.LearnsFromVotes, PrivateClassifier):
    """Private and fair classifier: a student learns from noisy votes of teachers under demographic parity (FairPATE).

    **Guarantee.** (ε, δ)-differential privacy for the private *records*, neighbours differing in one replaced row. The
    number of rows, the classes, all constructor parameters, the public rows *and their groups* count as public.
    ``privacy_.epsilon`` is computed from the declared releases alone and does not depend on your data.

    **No public rows?** Then call ``fit(X, y, sensitive_features=groups)``. The fit samples rows from noisy tables of
    the private ones (:class:`SyntheticRows`), within the same ε, and protects groups as it protects features and
    labels. Give them beside few public rows too: noisy counts of them say better how fair the student is.

    **Fairness.** ``gamma`` bounds the demographic disparity of the released labels (``released_gap_``) and of the
    student's predictions, as far as it is measured (``student_gap_``). The built-in student is trained to keep to it;
    around one of yours that has probabilities and breaks it, ``student_`` is a rule over these that needs no group.
    Where ``gamma`` is out of reach, a FairnessWarning says so. On other rows the gap is an estimate:
    measure it with ``skfairdp.metrics.demographic_disparity``, and enforce it at prediction with :class:`IDP3`.

    This is FairPATE (Yaghini et al. 2023, Algorithm 1). Its published accounting does not hold: a label that is
    rejected after the noisy argmax has cost ε all the same. Here the fit asks the gate *before* the vote, on public
    counters (CF-GNMax+), or applies it to votes that are released already.

    *Gate and student.* ``gate`` says which labels count, and ``student`` what learns from them. You can change one
    without the other. The paper's baselines use the same queries, votes and ε: ``gate="labels"`` is PATE-S_pre, and
    ``gate=None`` with ``student=ParityPenaltyStudent(penalty_weight=...)`` is PATE-S_in. Neither holds the student to
    ``gamma``. The paper calls these designs not impartial: they spend privacy on labels that fairness then throws away
    or works against.

    Parameters
    ----------
    {epsilon, delta}
    gamma : float or None, default=0.05
        Largest demographic disparity that is let through, from 0 to 1. None is no constraint: plain PATE.
    constraints : str, RateParity, RateBound, fairlearn moment, list of them or None, default=None
        What to hold instead of ``gamma``: "equalized_odds", ``RateParity("selection_rate", difference_bound=0.05)`` and
        others, between every two groups; see :class:`~skfairdp.fairness.RateParity`. One difference of selection rates
        is held as ``gamma`` is; all else is short for ``student=ConstrainedStudent(constraints)``.
    gate : {"votes", "labels"}, VoteGate, LabelGate or None, default="votes"
        What holds the labels to ``gamma``: "votes" is :class:`VoteGate`, "labels" is :class:`LabelGate`. With None
        nothing is held to ``gamma``, and a FairnessWarning says where the student's gap on the public rows is larger.
    {n_teachers, teacher}
    student : classifier or None, default=None
        None: :class:`SoftLabelStudent`, which learns from noisy shares without bias and is held to parity on the public
        rows by ``gate="votes"``. A :class:`ParityPenaltyStudent` learns from shares as well, with the demographic
        disparity of its predictions in its loss, and a :class:`ConstrainedStudent` is held to equalized odds or any
        constraint on rates instead of ``gamma``. Any other classifier, a skorch net too, is trained on the labels, with
        the public groups where its ``fit`` takes ``sensitive_features``, and then held to ``gamma`` as well.
    voting : {"soft", "gnmax", "confident"}, SoftVoting, GNMaxVoting or ConfidentVoting, default="soft"
        "soft" releases the noisy vote share of every query; gate, labels and students are post-processing, so
        :meth:`refit` sweeps ``gamma`` for free. "gnmax" releases the noisy winner of every query and gates it.
        "confident" is CF-GNMax+: gate first, then a noisy threshold among the admissible classes, then an argmax only
        where more than one is admissible. The parts :class:`SoftVoting`, :class:`GNMaxVoting` and
        :class:`ConfidentVoting` have the parameters of each.
    {classes, public_groups, sensitive_columns, schema, rows_asked, memory, processes}
    {random_state, noise_seed, ledger, verbose}

    Attributes
    ----------
    {student_, classes_}
    groups_ : ndarray of shape (n_groups,), dtype object
        Groups of the public rows (only where groups were used).
    {privacy_, epsilon_spent_}
    released_gap_ : float
        Largest demographic disparity of the *released labels* that were not withdrawn (only where groups were used).
    student_gap_ : float
        That of the student's predictions on the public rows (only where groups were used). Without public rows, or with
        few beside private groups, that of the private ones, estimated from noisy counts: the root mean square of what
        they leave likely (but where ``fit`` had a :class:`ConstrainedStudent`: of the public or sampled rows).
    {judged}
        They are answers to the public rows, each fifth of them by a student that the others taught (of more than
        20,000, by the student itself). Where private groups are read, to the private rows: by the noisy counts of
        ``student_gap_``; of a student held to ``constraints`` by noisy counts of group, answer and, where they matter,
        labels. One that breaks them by more than the noise gives way to one that is held to less. After ``refit``
        with other constraints on error rates, the answers that change on sampled rows are added to these counts, with
        an error of half of them. Where there are no such counts, as with a student of your own, ``gap_bound_`` is 1,
        and whether a constraint holds is in doubt at least.
    rejection_rate_by_group_ : dict
        Share of unanswered queries in each group of public rows.
    {what_was_asked}
    released_labels_ : ndarray of shape (n_queries,), dtype object
        Label of each query, None where there is none or the gate withdrew it.
    answered_mask_ : ndarray of bool of shape (n_queries,)
    {n_features_in_, feature_names_in_}

    {fit_raises}

    Warns
    -----
    PrivacyLeakWarning
        Classes were read from private labels, or the noise is seeded.
    FairnessWarning
        A group has fewer public rows than the gate's ``min_count``, the gate came to a state in which no label is
        admissible, the student does not reach ``gamma`` on the public rows, or ``constraint_holds_`` is "no".
    {no_better}

    See Also
    --------
    VoteGate, LabelGate : where parity is held.
    SoftVoting, GNMaxVoting, ConfidentVoting : how teachers vote.

    Examples
    --------
    >>> from skfairdp import FairPATEClassifier
    >>> from skfairdp.datasets import make_biased_classification, train_private_public_test_split
    >>> data = make_biased_classification(8000, disparity=0.3, random_state=0)
    >>> split = train_private_public_test_split(*data, random_state=0)
    >>> model = FairPATEClassifier(epsilon=2.0, gamma=0.05, classes=[0, 1], random_state=0)
    >>> model = model.fit(split.X, split.y, X_public=split.public)
    >>> print(f"ε = {model.privacy_.epsilon:.2f}, gap of the released labels {model.released_gap_:.2f}")
    ε = 2.00, gap of the released labels 0.0...
    >>> looser = model.refit(gamma=0.2)  # from the same votes: costs nothing
    >>> round(looser.privacy_.epsilon, 2)
    2.0
    """

    gamma: float | None = 0.05
    constraints: Any = None
    gate: str | training.VoteGate | None = "votes"
    n_teachers: int | str = "auto"
    teacher: Any = None
    student: Any = None
    voting: Any = "soft"
    classes: ArrayLike | None = None
    public_data: PublicData | SyntheticRows | None = None
    memory: str | joblib.Memory | None = None
    n_jobs: int | None = None
    verbose: int = 0

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **PATEClassifier._parameter_constraints,
        "gate": "no_validation",
    }
    _shorthands: ClassVar[dict[str, Any]] = {"voting": VOTINGS, "gate": training.GATES}
    _optional_parts: ClassVar[frozenset[str]] = frozenset({"gate"})
    __metadata_request__fit = {"subject": True}

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        sensitive_features: ArrayLike | None = None,
        X_public: ArrayLike | PublicData | None = None,
        sensitive_features_public: ArrayLike | None = None,
        subject: ArrayLike | str | None = None,
    ) -> "FairPATEClassifier":
        """Train teachers, release their noisy votes on public rows, train the student.

        Parameters
        ----------
        {X_or_source, y_private}
        sensitive_features : array-like of shape (n_rows,) or DataFrame, default=None
            Private groups of the rows of X. With public rows they are read where a :class:`ConstrainedStudent` looks at
            labels, and where noisy counts of them, within the same ``epsilon``, say more of how fair the student is
            than so few public rows. Columns of a DataFrame form intersections.
        {X_public}
        sensitive_features_public : array-like of shape (n_public,) or DataFrame, default=None
            Public groups of the public rows; may be part of ``PublicData``.
        {subject}

        {returns_self}
        """
        given = {"sensitive_features": sensitive_features, "X_public": X_public, "subject": subject}
        data = self._read(X, y, **given, sensitive_features_public=sensitive_features_public)
        plan, n_classes, judged = self._plan(data), len(data.classes), None
        gate = self._open_gate(data.domain, n_classes) if self._gates_votes else None

        with self._spend(plan, data.reads) as noise:
            asked, released = ask_teachers(self, data, plan, noise, public_generator(self.random_state), gate)
            lessons = training.StudentTrainingSet.of(asked, released, n_classes, self._held_to(n_classes)[1])
            self.classes_, seen = data.classes, data.one_row_each
            if isinstance(plan.look, Judge):
                rows = asked.limited(seen.X)
                judged = self._judged_student(plan.look, lessons, replace(seen, X=rows), data.unit_places, noise)
            elif plan.look is not None and seen.groups is not None:
                denoiser = plan.look.release(lessons.denoiser, seen.X, seen.groups, asked, noise)
                lessons = replace(lessons, denoiser=denoiser)

        self.n_teachers_, self.n_queries_ = plan.votes.n_teachers, plan.votes.n_queries
        self._lessons, self._looked = lessons, judged
        with training.note_votes_are_released("; refit(student=...) trains another from them"):
            if asked.limits is not None:
                self._warn_of_small_groups(asked.public, asked.n_small_groups)
            return self._learn(judged)

    def _read(self, X: Any, y: Any, **given: Any) -> TrainingData:
        self._check()
        check_student(self._given_student)
        if self._votes_by_group and not isinstance(X, np.ndarray | pd.DataFrame) and opened(X) is not None:
            raise ValueError(
                f"{type(self).__name__} reads X in chunks only where its teachers need no groups, and the "
                "'constraints' of its student need labels. Pass the rows as a DataFrame, or constrain selection "
                "rates alone."
            )
        student, parts = self._given_student, self._parts()
        is_soft = isinstance(parts["voting"], SoftVoting) and not isinstance(parts["gate"], training.LabelGate)
        looks = isinstance(student, ConstrainedStudent) or (student is None and is_soft)
        of_both = "both" if self._votes_by_group else "both, if given" if looks else "public"
        groups = of_both if self._needs_groups else "public, if given"
        data = read_any_training(self, X, y, **given, groups=groups, public_rows="given or own")
        if isinstance(student, ConstrainedStudent):
            student.rates_of(data.domain, data.classes)
        check_learners(self, data)
        if data.public is not None:
            self._warn_of_small_groups(data.public)
        return data

    _plan = plan_votes

    def _judged_student(
        self, judge: Judge, lessons: training.StudentTrainingSet, seen: TrainingData, places: Any, noise: NoiseSource
    ) -> tuple[Any, Judgement]:
        """A student held to constraints, and what its answers to private rows do; where it breaks them by more than
        the noise, one held to as much less, if that breaks them by less."""

        def look(student: Any) -> tuple[Any, Judgement]:
            said = row_wise_predictions(student, seen.X, None, places=places)
            codes = np.array([-1 if answer is NO_CLASS else int(answer) for answer in said], dtype=np.int64)
            return student, judge.release(judge.counts(seen.groups, seen.y, codes), noise)

        labels = self._labels(lessons)
        first = look(self._teach(lessons, labels))
        if judge.looks == 1 or first[1].tightening == 1:
            return first
        tighter: Any = tightened(self._given_student, first[1].tightening)
        second = look(lessons.teach(tighter.of_names(lessons.public.domain, self.classes_), labels))
        return min(first, second, key=lambda found: found[1].violation)

    def _learn(self, judged: tuple[Any, Judgement] | None = None) -> "FairPATEClassifier":
        """Label, gate, teach the student, measure: post-processing of released votes and public rows."""
        lessons = self._lessons = self._lessons.comparing(self._held_to(len(self.classes_))[1])
        labels = self._labels(lessons)
        taught = self._teach(lessons, labels) if judged is None else judged[0]
        student = fall_back_to_majority(
            taught, lessons, self.classes_, type(self).__name__, self._teach, self._given_student
        )
        self.student_ = carrying(student, self.privacy_)
        training.set_release_attributes(self, lessons, labels)
        if lessons.groups is not None:
            seen = judged[1] if judged is not None and student is taught else None
            self._set_gap_attributes(lessons.public, lessons.groups, labels, seen)
        return self

    def _set_gap_attributes(self, public: Any, groups: Ints, labels: Ints, seen: Judgement | None) -> None:
        """Set what is known of parity: of the labels of the queries, whose groups are given, and of the student."""
        answered, n_classes = labels != UNANSWERED, len(self.classes_)
        disparity = self._held_to(n_classes)[1]
        counts = fairness.tally(groups[answered], labels[answered], (public.n_groups, n_classes))
        gap = self.student_.gap_ if getattr(self.student_, "counted", None) is not None else None
        if gap is None:
            predicted = fairness.tally(public.groups, self.student_.predict(public.X), counts.shape)
            gap = fairness.largest_disparity(predicted, disparity)
        self.groups_ = public.domain
        self.released_gap_, self.student_gap_ = fairness.largest_disparity(counts, disparity), gap
        self.rejection_rate_by_group_ = fairness.rejection_rates(answered, groups, public.domain)
        is_stuck = self._gated and self._open_gate(public.domain, n_classes, counts).is_stuck()
        told = warn_of_gaps(self, is_stuck, public.X)
        judged = self._judged(public) if seen is None else (seen, "private")
        if judged is None:
            return set_judgement(self, None)
        judgement, rows = judged
        if disparity == "others" and public.n_groups > 2 and not judgement.constraints.needs_labels:
            # A group is no further from all others than from the furthest of them, and no nearer than to all rows.
            asked = [fairness.RateParity("selection_rate", self._held_to(n_classes)[0], method="to_overall")]
            judgement = replace(judgement, weaker=replace(judgement.constraints, constraints=asked))
        is_constant = isinstance(self.student_, training.ConstantStudent)  # which is told already
        set_judgement(self, judgement.of_one_class() if is_constant else judgement, in_doubt=rows == "sampled")
        if not told and not is_constant:
            advice = (
                "Ask for less than you need (a smaller 'gamma' is free with refit), raise 'epsilon', or use IDP3 at "
                "prediction."
            )
            judgement.warn(type(self).__name__, f"{rows} rows", advice, in_doubt=rows == "sampled")

    def _judged(self, public: PublicRows) -> tuple[Judgement, str] | None:
        """What the student's answers do to the groups, and to which rows; None where nobody asked for anything."""
        held, student, own = self._held(public.domain), self.student_, self._lessons.limits is not None
        if held is None:
            return None
        counted = student.counted if isinstance(student, SoftLabelStudent) else None
        if counted is not None and not held.needs_labels:
            return Judgement(held, counted[0][:, None, :], counted[1][:, None, :]), "private"
        if held.needs_labels:  # labels are estimated
            if isinstance(student, ConstrainedStudent):
                if self._looked is None:
                    return Judgement(held, student.counts), "sampled"
                other, look = self._looked
                return look.moved(held, student.flows_from(other, public.X, public.groups)), "private"
            shape = len(held.groups), len(self.classes_), len(self.classes_)  # of one class for everybody
            return Judgement(held, np.zeros(shape), 1.0), "sampled"  # nobody has looked how often it is right
        answers = student.predict(public.X)
        if not own and not isinstance(student, training.ConstantStudent) and len(public.X) <= _MOST_LEFT_OUT:
            others = answers.copy()
            for lessons, asked in self._lessons.fifths:
                others[asked] = self._teach(lessons).predict(public.X[asked])
            taught = Judgement.by_fifths(held, public.groups, None, answers, others)
            return replace(Judgement.by_fifths(held, public.groups, None, others, answers), beside=taught), "public"
        return Judgement.by_rows(held, public.groups, None, answers), "sampled" if own else "public"

    def _held(self, domain: Any) -> fairness.RateConstraints | None:
        """What the student is judged by: constraints, or the gap that is asked for."""
        gamma, disparity = self._held_to(len(self.classes_))
        asked = getattr(self._given_student, "constraints", self.constraints)
        if asked is None and gamma is not None:
            method = "to_overall" if disparity == "overall" else "between_groups"
            asked = fairness.RateParity("selection_rate", float(gamma), method=method)
        if asked is None:
            return None
        owner, names = type(self).__name__, (domain.tolist(), self.classes_.tolist())
        return fairness.RateConstraints(fairness.read_rate_constraints(asked, owner), *names, owner)

    def _check_votes(self) -> None:
        if self._needs_groups and self._lessons.public.groups is None:
            raise ValueError(
                f"{type(self).__name__} was fitted without the groups of the public rows, so nothing can be held to "
                "parity afterwards. Fit it with sensitive_features_public."
            )
        if self._votes_by_group and not self._lessons.by_group:
            raise ValueError(
                f"A student of {type(self).__name__} whose 'constraints' need labels is trained on votes about labels "
                "and groups, and these votes are about labels alone. Fit again: clone, set_params, fit."
            )

    def _releases_rows(self, has_groups: bool) -> bool:
        """Whether a fit is going to sample rows with groups, which others may use: told before it spends."""
        own = self.public_data is None or isinstance(self.public_data, SyntheticRows)
        named = self.schema is not None and bool(self.schema.groups)
        return own and (has_groups or named) and self.sensitive_columns is None

    def _released_rows(self) -> PublicData:
        """The rows that the fit has sampled, in the columns of X."""
        public: Any = self._lessons.public
        if self.schema is not None:
            rows = table_of(self.schema, public.X, public.groups)
            return PublicData(rows, rows[list(self.schema.groups)])
        names = getattr(self, "feature_names_in_", None)
        rows = public.X if names is None else pd.DataFrame(public.X, columns=names)
        return PublicData(rows, public.domain[public.groups])

    # ------------------------------------------------------------------ parity

    # What changes neither parts nor teachers: a search trains them once for all values of these.
    _after_teachers = PATEClassifier._after_teachers | {"gamma", "gate"}

    def _check(self) -> None:
        super()._check()
        if self.constraints is None:
            return
        beside = {"gamma": self.gamma != 0.05, "gate__disparity": self._disparity != "others"}
        beside["student"] = self.student is not None
        fairness.refuse_beside_constraints(type(self).__name__, beside, ", and trains a ConstrainedStudent")
        if isinstance(self._parts()["gate"], training.LabelGate):
            raise ValueError(
                f"{type(self).__name__} got 'constraints' and gate='labels', whose student enforces no constraint. "
                "Set gate='votes' or None."
            )
        check_student(self._given_student)

    @property
    def _given_student(self) -> Any:
        """What is to be trained; None: the built-in one, which holds one difference of selection rates as ``gamma``."""
        if self.constraints is None:
            return self.student
        is_built_in = self._gated and isinstance(self._parts()["voting"], SoftVoting)
        return None if is_built_in else ConstrainedStudent(self.constraints)

    def _held_to(self, n_classes: int = 2) -> tuple[float | None, str]:
        """γ of the gate and what it compares a group with: as given, or by the one difference in 'constraints'."""
        if self.constraints is None:
            return self.gamma, self._disparity
        return fairness.rule_of_gate(self.constraints, n_classes, type(self).__name__) or (None, "between")

    @property
    def _disparity(self) -> str:
        """What a group is compared with: by the gate or, where there is none, by a student that says so."""
        gate = self._parts()["gate"]
        return str(getattr(self.student, "disparity", "others")) if gate is None else str(gate.disparity)

    @property
    def _gated(self) -> bool:
        """Whether labels have to pass the gate, before or after they are released."""
        return self._held_to()[0] is not None and self.gate is not None

    @property
    def _gates_votes(self) -> bool:
        """Whether the gate is consulted before each vote (CF-GNMax+), not on labels that are released already."""
        parts = self._parts()
        return self._gated and parts["voting"].asks_gate and not isinstance(parts["gate"], training.LabelGate)

    @property
    def _penalised(self) -> bool:
        return isinstance(self.student, ParityPenaltyStudent)

    @property
    def _needs_groups(self) -> bool:
        if isinstance(self._given_student, ConstrainedStudent) or self.gamma is not None:
            return True
        return bool(self._penalised and self.student.penalty_weight > 0)

    @property
    def _votes_by_group(self) -> bool:
        """Whether labels are estimated by group: without it a constraint on error rates would see half of them."""
        student = self._given_student
        return isinstance(student, ConstrainedStudent) and student.looks_at_labels

    def _open_gate(self, domain: Any, n_classes: int, counts: Ints | None = None) -> fairness.FairnessGate:
        gate: training.VoteGate = self._parts()["gate"]
        gamma, disparity = self._held_to(n_classes)
        return fairness.FairnessGate(
            len(domain), n_classes, gamma=gamma, min_count=gate.min_count, disparity=disparity,
            gate=gate.rule, counts=counts,
        )  # fmt: skip

    def _labels(self, lessons: training.StudentTrainingSet) -> Ints:
        """The label of each query, withdrawn, in order, where it would break parity: post-processing."""
        labels = lessons.labels(self._parts()["voting"])
        if not self._gated or self._gates_votes:
            return labels
        gate, answered = self._open_gate(lessons.public.domain, len(self.classes_)), labels != UNANSWERED
        kept = labels.copy()
        kept[np.flatnonzero(answered)[~gate.run(lessons.groups[answered], labels[answered])]] = UNANSWERED
        return kept

    def _teach(self, lessons: training.StudentTrainingSet, labels: Ints | None = None) -> Any:
        """The student that learns from the labels, or from the shares that they follow."""
        labels = self._labels(lessons) if labels is None else labels
        gate = self._parts()["gate"] if self._gated else None
        answered_only = isinstance(gate, training.LabelGate)
        constrained = self._given_student
        if isinstance(constrained, ConstrainedStudent):
            return lessons.teach(constrained.of_names(lessons.public.domain, self.classes_), labels)
        if self._penalised:
            return lessons.teach(training.seeded(self.student, self.random_state), labels, answered_only=answered_only)
        if self.student is not None and not isinstance(self.student, SoftLabelStudent):
            student = training.fit_student(self.student, lessons, labels, self.random_state)
            if gate is None or answered_only or self.gamma is None:
                return student
            return training.held_student(student, lessons, self.gamma, gate.disparity)
        if lessons.denoiser is None or answered_only or self.student is not None:
            alpha = None if self.student is None else self.student.alpha
            soft = SoftLabelStudent(disparity=self._held_to(len(self.classes_))[1], alpha=alpha)
            student = lessons.teach(soft, labels, answered_only=answered_only)
        else:
            student = lessons.denoiser
        held = gate is not None and not answered_only and isinstance(student, SoftLabelStudent)
        return student.with_gamma(self._held_to(len(self.classes_))[0]) if held else student

    @property
    def _free_parameters(self) -> frozenset[str]:
        """What refit can change, given how this one votes: a search pays once for all their values."""
        voting = self._parts()["voting"]
        # Named apart, so that no search serves a student that needs votes by group with votes that know none.
        free = {"student": True, "student__constraints": self._votes_by_group,
                "constraints": self._votes_by_group and not voting.asks_gate,
                "gamma": not self._gates_votes, "gate": not voting.asks_gate,
                "voting__threshold": isinstance(voting, SoftVoting)}  # fmt: skip
        return frozenset(name for name, is_free in free.items() if is_free)

    def _warn_of_small_groups(self, public: PublicRows, n_within_noise: int | None = None) -> None:
        """Where a gate knows too little of a group to hold anything. Of sampled rows, some groups are within noise."""
        if not self._gated or public.groups is None:
            return
        if n_within_noise:
            warn_caller(
                f"{n_within_noise} of the {public.n_groups} groups of {type(self).__name__} have a released "
                "count within its noise: rows sampled for them are mostly rows of other groups, so the student is not "
                "held to parity with them. Raise 'epsilon', merge groups, or give public rows.",
                FairnessWarning,
            )
        min_count = self._parts()["gate"].min_count
        smallest = int(np.bincount(public.groups, minlength=public.n_groups).min())
        if smallest < min_count:
            kind, ways = ("public", "Add") if n_within_noise is None else ("sampled", "Merge groups, give")
            warn_caller(
                f"The smallest group has {smallest} {kind} rows, fewer than min_count={min_count}: its labels "
                f"stay in the cold start, where the gate admits everything. {ways} public rows of that group, or "
                "lower 'min_count'.",
                FairnessWarning,
            )
