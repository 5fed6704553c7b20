"""SF-PATE: fairness carried through an ensemble while the groups of its training rows stay private."""

from dataclasses import field, replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.utils.metadata_routing import UNUSED

from skfairdp._docs import shared_docs
from skfairdp._estimator import PrivateClassifier
from skfairdp._inputs import read_any_training, read_public_rows_of
from skfairdp._judge import Judge, Judgement, asked_constraints, held_by_learner, set_judgement, tightened
from skfairdp._rows import check_free_disk
from skfairdp._teachers import bytes_on_disk, check_fair_learner, refuse_callbacks, rehearse_student, seeded_predictions
from skfairdp._typing import Array, ArrayLike, Floats, Ints, MaybeArray, SubjectLike
from skfairdp._usefulness import (
    MOST_ROWS,
    ByHeart,
    Comparison,
    VoteForecast,
    may_fall_back,
    rows_to_try,
    seen,
    tried_on_parts,
)
from skfairdp._utils import public_generator, silence, warn_caller
from skfairdp._utils._sklearn import A_LEARNER, Interval, StrOptions
from skfairdp.exceptions import FairnessWarning
from skfairdp.fairness import constant_meets, read_constraints
from skfairdp.lagrangian import LagrangianClassifier, as_perceptron, in_codes
from skfairdp.pate import _fair_votes as ensemble
from skfairdp.pate._query_plan import count_teachers, warn_of_many_teachers
from skfairdp.pate._sfpate_student import Released, fair_student, plain_student
from skfairdp.pate._student_training import ConstantStudent, LearnsFromVotes, note_votes_are_released
from skfairdp.pate._usefulness import FairForecast
from skfairdp.pate._votes import NOTHING, GNMaxVoting, SoftVoting, VotePlan
from skfairdp.privacy import NoiseSource, Protects, carrying, compose
from skfairdp.schema import with_schema

STUDENT_ROWS = 200
PROXIMAL_WEIGHT = 1e-3
#: Of a bound, until released votes say that the gap is as much smaller as private groups ask.
_MOST_HALVINGS = 4
#: By their shorthands.
VOTINGS = {"soft": SoftVoting, "gnmax": GNMaxVoting}
#: What says what is fair, and to whom.
FAIR = frozenset({"fair_estimator", "constraints", "gamma"})


@shared_docs
@with_schema
class SFPATEClassifier(LearnsFromVotes, PrivateClassifier):
    """Fair classifier from noisy votes of an ensemble; only the groups are protected; takes any fair learner.

    **Guarantee.** (ε, δ)-differential privacy for the *sensitive attribute* of one row: neighbours differ in the group
    of one row. **Features, labels and the number of rows count as public**, and so do the names of the groups, the
    classes and all constructor parameters. ``privacy_.epsilon`` is computed from the declared votes alone. It is no
    guarantee for the rows themselves, and none at all where a feature says which group a row belongs to: drop such
    columns (``sensitive_columns``). The group is needed by ``fit`` only.

    Each row belongs to one teacher, chosen by its position (or by a hash of its public key, where rows are read in
    chunks). So one changed group changes one teacher's votes and nothing else (Tran, Zhu, Fioretto & Van Hentenryck
    2022, Section 5). There are two variants:

    * ``variant="student"``: teachers learn the *group* from features and label and vote on it; a fair learner is
      trained on rows, labels and released groups.
    * ``variant="teacher"``: teachers are fair classifiers of the *label*, each fair on the groups of its own rows; they
      vote on it, and a plain student learns the released labels.

    Parameters
    ----------
    {epsilon, delta}
    variant : {"student", "teacher"}, GroupTeachers or FairTeachers, default="student"
        Who is fair: "student" is :class:`GroupTeachers`, which has the parameter ``teacher``, "teacher" is
        :class:`FairTeachers`, which has ``student``.
    constraints : str, fairlearn moment, RateParity, RateBound, list of them or None, default=None
        Of the built-in fair learner: "demographic_parity" (same predictions; also for None), "equalized_odds" (same
        predictions within each true class), "true_positive_rate_parity" or "equal_opportunity",
        "false_positive_rate_parity" (the same within one true class), "accuracy_parity" (same errors),
        "generalized_demographic_parity" (same distribution of scores, for parity at any threshold), or several of them
        at once. ``RateParity("selection_rate", ratio_bound=0.8)`` and fairlearn's moments let rates differ by their
        bound; ``RateBound("false_negative_rate", upper=0.1)`` bounds a rate of each group, of some of them
        (``groups=["f"]``) or of all rows together (``groups="overall"``). Same errors are not bought with more of them
        than the most frequent class makes. A ``fair_estimator`` brings its own, so only one of the two may be given.
    {gamma_of_rates}
    fair_estimator : estimator or None, default=None
        Anything with ``fit(X, y, sensitive_features=...)`` whose ``predict`` needs no groups: the student of the
        "student" variant, every teacher of the other. It gets classes and groups as codes and, where its fit has that
        parameter, released groups as ``group_weights=`` (n_rows, n_groups). None is :class:`LagrangianClassifier` with
        ``constraints``; of those all teachers are trained in one tensor program. Give one of your own for other
        settings, such as its ``moments``.
    voting : {"soft", "gnmax"}, SoftVoting or GNMaxVoting, default="soft"
        "soft" releases the noisy shares of the votes, denoises them by a regression on public features, and trains the
        student on all rows that are kept: groups enter as estimated shares (teachers give theirs as probabilities),
        which are right on average where likeliest groups are not. "gnmax" is the paper's: the noisy winner of every
        query, and a student that sees the rows asked about only. The parts :class:`SoftVoting` and
        :class:`GNMaxVoting` have the noise (of the discrete one votes are whole) and ``max_queries``: rows asked about,
        drawn by position, all that are kept for "soft" and at most 200 for "gnmax". Of more than 100,000 rows so many
        are kept, or ``max_queries``: by position or, of rows that are read in chunks, those whose keys have the
        smallest hashes. The student learns from these; teachers learn from all rows.
    proximal_weight : float or None, default=None
        The built-in student minimises its mean loss plus ``proximal_weight · ‖θ - θ*‖²``, where θ* is the same network
        trained without constraint on all that are kept (public), and starts from θ*. 0 starts anew. None: 0 for "soft",
        1e-3 for "gnmax".
    n_teachers : int or "auto", default="auto"
        Number of disjoint parts. "auto" balances the noise of the votes against what a part can learn, as in
        :class:`PATEClassifier`.
    {public_classes, groups, sensitive_columns, schema}
    n_jobs : int, default=None
        Processes that train teachers which are not batched (through joblib, and so dask or ray).
    {random_state, noise_seed, ledger, verbose}

    Attributes
    ----------
    student_ : estimator
        Predicts class codes. Differentially private in the groups: trained on released votes and public rows.
    released_votes_ : ndarray
        Noisy shares (n_queries, n_groups) for "soft", codes (n_queries,) for "gnmax"; of classes instead of groups for
        ``variant="teacher"``. Differentially private.
    query_indices_ : ndarray of shape (n_queries,)
        Rows asked about (public); of rows that were read in chunks, positions among those that were kept.
    sigma_ : float
        Noise on each released count, in votes.
    n_teachers_, n_queries_ : int
    {judged}
        Of a student that ``refit`` has trained, which costs nothing, nobody has looked at the private groups: by
        released votes there is ``gap_``, ``gap_bound_`` is 1, and whether a constraint holds is in doubt at least.
    {classes_, groups_, privacy_, epsilon_spent_, n_features_in_, feature_names_in_}

    {fit_raises}

    Warns
    -----
    FairnessWarning
        By public numbers, before anything is spent: the votes are too noisy to hold any constraint, or fair teachers
        have too few rows each, or winners are released on too few rows; the message says how many rows, or which ε,
        would do. Or by the released votes a group has too few rows to speak of, or too much noise in its rates; or
        ``constraint_holds_`` is "no", and the message says which constraint is broken. That is told of both variants,
        wherever the fair learner says by its ``constraints`` what it holds.
    UtilityWarning
        By its labels, which are public, it is no better than the most frequent class: on its rows or, of the built-in
        network and at most 10,000 rows, on thirds of them that are kept from students like it. That network then gives
        way to that class, which is predicted for every row, unless the constraint is "accuracy_parity", which that need
        not meet.

    See Also
    --------
    PFLDClassifier : the same guarantee from noisy violations of one network.
    RandomizedResponseClassifier : the same from groups released row by row.
    skfairdp.papers.sfpate_bounds : the paper's bounds on the fairness of the outcome, for the curator's eyes.

    Notes
    -----
    The partition is never stratified by the group: one changed group would then move rows between all teachers.

    Examples
    --------
    >>> from skfairdp import SFPATEClassifier
    >>> from skfairdp.datasets import make_biased_classification
    >>> X, y, groups = make_biased_classification(3000, disparity=0.3, random_state=0)
    >>> model = SFPATEClassifier(epsilon=1.0, groups=sorted(set(groups)), random_state=0)
    >>> model = model.fit(X, y, sensitive_features=groups)
    >>> print(model.privacy_.protects, round(model.privacy_.epsilon, 3))
    sensitive attribute 1.0
    >>> other = model.refit(constraints="equalized_odds")  # from the same votes: costs nothing
    >>> round(other.privacy_.epsilon, 3)
    1.0
    """

    variant: Any = "student"
    constraints: Any = None
    gamma: float | None = None
    fair_estimator: Any = None
    voting: Any = "soft"
    proximal_weight: float | None = None
    n_teachers: int | str = "auto"
    classes: MaybeArray = None
    n_jobs: int | None = None
    verbose: int = 0

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "variant": "no_validation",
        "fair_estimator": [A_LEARNER, None],
        "voting": "no_validation",
        "proximal_weight": [Interval(Real, 0, None, closed="left"), None],
        "n_teachers": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
    }
    groups_: Array = field(init=False)
    _released: Released = field(init=False)
    _student_seed: int = field(init=False)

    #: Rows that are asked about, of a table that has more: chance in the rates of a group of one row in a hundred is
    #: then below .016.
    _most_kept: ClassVar[int] = 100_000

    # All is public.
    __metadata_request__fit = {"X_public": UNUSED, "sensitive_features_public": UNUSED, "subject": True}

    def fit(
        self, X: ArrayLike, y: MaybeArray = None, *, sensitive_features: MaybeArray = None, subject: SubjectLike = None
    ) -> "SFPATEClassifier":
        """Train teachers, release their noisy votes, train the student.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Public features. With a ``schema`` also what does not fit into memory, with label and groups among the
            columns: a path of Parquet files, a ``pyarrow.dataset.Dataset``, a Polars LazyFrame, a dask or Spark
            DataFrame, a function without arguments that returns an iterable of DataFrames, or :class:`KeyedRows`.
        y : array-like of shape (n_rows,)
            Public labels.
        sensitive_features : array-like of shape (n_rows,) or DataFrame, default=None
            Private groups of the rows, unless ``sensitive_columns`` names the columns that hold them.
        {subject_of_a_group}

        {returns_self}
        """
        data = self._read(X, y, sensitive_features=sensitive_features, subject=subject)
        plan, variant = self._plan(data), self._variant
        teachers = None if self.n_teachers == "auto" else int(self.n_teachers)
        votes = VoteForecast(data.n_units, variant._n_values(data), self.epsilon, self.delta, teachers)
        fair_parts = isinstance(variant, ensemble.FairTeachers) and len(data.domain) > 1
        of = plan.n_queries, self._voting.sigma, fair_parts, self._releases_winners
        forecast = FairForecast(votes, *of, units=data.units)
        doubted = bool(forecast.problems)
        if doubted:
            warn_caller(forecast.words(type(self).__name__), FairnessWarning)
        rng = public_generator(self.random_state)
        queries = np.sort(rng.permutation(len(data.X))[: plan.n_queries])

        judge, problem, by_heart = self._judge(data), None, None
        with self._spend(plan, data.reads) as noise:
            how = {"n_jobs": self.n_jobs, "verbose": self.verbose}
            counted = variant._votes(data, self._fair_learner(data), queries, plan, rng, **how)
            released = self._voting.release(counted, plan, noise, verbose=self.verbose)
            self.classes_, self.groups_ = data.classes, data.domain
            self.n_teachers_, self.n_queries_ = plan.n_teachers, len(queries)
            self.query_indices_ = queries if data.kept is None else data.kept[queries]
            self.released_votes_, self.sigma_ = released.values, plan.sigma
            self._released = Released.of(data, queries, released, n_values=variant._n_values(data), doubted=doubted)
            self._student_seed = int(rng.integers(2**31 - 1))
            try:
                by_heart = self._train()
            except Exception as error:  # the votes are paid for, and stay
                problem = error
            judgement = None
            if judge is not None and problem is None:
                judgement = self._retry(self._looked_at(judge, data, noise), judge, data, noise)
                judgement = judgement.after_learning(*self._by_heart(by_heart))
        if problem is not None:
            other = "fair_estimator" if isinstance(variant, ensemble.GroupTeachers) else "variant__student"
            with note_votes_are_released(f"; refit({other}=...) trains another from them"):
                raise problem
        carrying(self.student_, self.privacy_)
        self._tell_judgement(judgement, "its rows")
        return self

    def _read(self, X: Any, y: Any, *, sensitive_features: Any = None, subject: Any = None) -> ensemble.AttributeRows:
        """Rows with standardised features. The learner is tried on them, which are public, with made-up groups, and so
        is what learns from released votes, where it is the user's."""
        self._check()
        read = read_any_training(
            self, X, y, sensitive_features=sensitive_features, subject=subject, groups="private", checks_public=True,
            protects=Protects.SENSITIVE_ATTRIBUTE,
        )  # fmt: skip
        most = max(self._most_kept, self._voting.max_queries or 0)
        data = ensemble.AttributeRows.of(read_public_rows_of(self, read, most), self.schema, most)
        if data.source is not None and data.source.spills:
            assert self.schema is not None
            n_bytes = bytes_on_disk(self.schema, data.n_rows, groups=True)
            check_free_disk(n_bytes, type(self).__name__, verbose=self.verbose)
        variant, fair = self._variant, self._fair_learner(data)
        if hasattr(fair, "net"):
            from skfairdp._networks import check_precision

            check_precision(type(self).__name__)
        n_cells = len(data.domain) * (len(data.classes) if isinstance(variant, ensemble.FairTeachers) else 1)
        if self.n_teachers != "auto":
            warn_of_many_teachers(self, data.n_units, n_cells, data.units)
        n_teachers = count_teachers(self, data.n_units, variant._n_values(data), units=data.units)
        variant._rehearse(data, fair, n_teachers)
        student, owner = self._given_student, type(self).__name__
        if student is None or as_perceptron(student) is not None:
            return data
        rows, n_classes = data.X * data.scale + data.center, len(data.classes)
        if isinstance(variant, ensemble.FairTeachers):
            rehearse_student(student, rows, n_classes, None, parameter="variant__student", owner=owner)
        else:
            groups, weighted = np.arange(len(data.domain)), check_fair_learner(fair, owner)
            of = {"parameter": "fair_estimator", "owner": owner}
            rehearse_student(fair, rows, n_classes, groups, with_weights=weighted, **of)
        return data

    def _judge(self, data: ensemble.AttributeRows) -> Judge | None:
        """What looks at the answers of the student; None where the fair learner does not say what it holds."""
        learner = self._built_in() if self.fair_estimator is None else self.fair_estimator
        held = held_by_learner(learner, data.domain.tolist(), data.classes.tolist(), type(self).__name__)
        if held is None or min(len(data.domain), len(data.classes)) < 2:
            return None
        looks = 2 if isinstance(self._variant, ensemble.GroupTeachers) and tightened(learner, 0.5) is not None else 1
        n_kept = len(data.X) if data.source is None else data.n_rows
        n_judged = n_kept if data.subjects is None else min(data.subjects.n, n_kept)  # one row of each subject
        return Judge(held, n_judged, self.epsilon, self.delta, data.attribute_relation, looks=looks)

    def _looked_at(self, judge: Judge, data: ensemble.AttributeRows, noise: NoiseSource) -> Judgement:
        """Release what the answers of the student do to the groups."""
        return judge.release(data.counted(judge, self.student_, self._student_seed).reshape(judge.shape), noise)

    def _retry(self, first: Judgement, judge: Judge, data: ensemble.AttributeRows, noise: NoiseSource) -> Judgement:
        """Where the student breaks its constraints, train one with smaller bounds of the same votes, and look once
        more; the one that breaks them by less is kept. By the released votes the gap is another one than by groups, but
        shrinks along: the bound is halved until it has shrunk as needed."""
        kept = self.student_
        if judge.looks == 1 or first.tightening == 1 or isinstance(kept, ConstantStudent):
            return first
        try:
            with silence():  # all is told already
                for halvings in range(_MOST_HALVINGS):
                    self.student_ = self._student(self._released, first.tightening / 2**halvings)
                    before, now = (getattr(one, "judgement", None) for one in (kept, self.student_))
                    if before is None or now is None or now.gap <= first.tightening * before.gap:
                        break
        except Exception:  # what was bought is kept: the first student, of which the first look speaks
            self.student_ = kept
            return first
        second = self._looked_at(judge, data, noise)
        if second.violation < first.violation:
            return second
        self.student_ = kept
        return first

    def _plan(self, data: ensemble.AttributeRows) -> VotePlan:
        judge, n_kept, n_values = self._judge(data), len(data.X), self._variant._n_values(data)
        most = self._voting.max_queries or (STUDENT_ROWS if self._releases_winners else n_kept)
        n_teachers = count_teachers(self, data.n_units, n_values, units=data.units)
        sizes: dict[str, int] = {"n_queries": min(most, n_kept), "n_teachers": n_teachers, "n_classes": n_values}
        of, beside = data.attribute_relation, NOTHING if judge is None else judge.event
        votes = self._voting.plan(epsilon=self.epsilon, delta=self.delta, relation=of, beside=beside, **sizes)
        votes = replace(votes, rows_of=data.rows_of)
        if judge is None:
            return votes
        return replace(votes, event=compose(votes.event, judge.event), releases=(*votes.releases, *judge.releases))

    def _learn(self) -> "SFPATEClassifier":
        """Train another student, for nothing: what it does to the groups is known by released votes at most."""
        self._train()
        found: Judgement | None = getattr(carrying(self.student_, self.privacy_), "judgement", None)
        self._tell_judgement(found, "its rows, with groups by its released votes,", in_doubt=True)
        return self

    def _tell_judgement(self, judgement: Judgement | None, rows: str, *, in_doubt: bool = False) -> None:
        """What the student does to the groups, and a warning where it does not hold what was asked."""
        is_constant = isinstance(self.student_, ConstantStudent)  # which is told already
        set_judgement(self, judgement.of_one_class() if judgement and is_constant else judgement, in_doubt=in_doubt)
        if judgement is None or is_constant:
            return
        advice = (
            "Take another constraint, which features and the price of errors may allow, or a larger 'epsilon'; "
            "PFLDClassifier has the same guarantee, and its multipliers follow the private groups."
        )
        judgement.warn(type(self).__name__, rows, advice, in_doubt=in_doubt)

    def _train(self) -> ByHeart | None:
        """Train the student: post-processing of released votes and public rows; the same seed for every student. Where
        others are tried, return what these know by heart."""
        if not hasattr(self, "_released"):
            raise ValueError(
                f"This {type(self).__name__} is a copy or comes from a pickle, which hold no rows to train a student "
                "on. Call refit on the estimator that was fitted."
            )
        released, (trial, lost, by_heart) = self._released, self._tried()
        perceptron = as_perceptron(self._built_in())
        may_be_constant = by_heart is not None and constant_meets(() if perceptron is None else perceptron.notions)
        if trial is None or trial.is_passed or not may_be_constant:
            self.student_ = self._student(released)
        if trial is None or trial.is_passed:
            on_its_rows = seen(
                self._codes_of(self.student_, released.X), released.y, released.X.shape[1], released.subjects
            )
            on_its_rows = replace(on_its_rows, ahead=on_its_rows.ahead - lost)
            trial = on_its_rows if trial is None or not on_its_rows.is_passed else trial
        falls_back = may_be_constant and not trial.is_passed
        if falls_back:
            self.student_ = ConstantStudent(released.n_classes, trial.usual)
        if not trial.is_better and released.n_classes > 1:
            trial.warn(released.classes[trial.usual], type(self).__name__, falls_back=falls_back)
        return by_heart

    def _student(self, released: Released, times: float = 1.0) -> Any:
        """A student of released votes and public rows, those of a trial too; held to so many times its bounds."""
        rng, weight = np.random.default_rng(self._student_seed), self.proximal_weight
        if weight is None:
            weight = PROXIMAL_WEIGHT if self._releases_winners else 0.0
        variant, usual = self._variant, LagrangianClassifier(constraints=None)
        if isinstance(variant, ensemble.GroupTeachers):
            given = None if as_perceptron(self.fair_estimator) is not None else self.fair_estimator
            own = (one if times == 1 or one is None else tightened(one, times) for one in (given, self._built_in()))
            names = released.groups, released.classes, type(self).__name__
            given, usual = (in_codes(learner, *names) for learner in own)
            return fair_student(released, given, usual, weight, rng)
        if as_perceptron(variant.student) is not None:  # learns shares, and may be tied to θ*
            return plain_student(released, None, variant.student, weight, rng)
        return plain_student(released, variant.student, usual, weight, rng)

    def _by_heart(self, of_trial: ByHeart | None) -> ByHeart:
        """What the student knows of its rows by heart, whose labels are public."""
        if isinstance(self.student_, ConstantStudent) or of_trial is not None:
            return of_trial or ByHeart(0.0, np.zeros(1))
        try:
            with silence():
                return self._on_parts()[2]
        except Exception:  # of a learner that needs more rows
            return ByHeart()

    def _on_parts(self) -> tuple[Comparison, float, ByHeart]:
        """Whether students taught by some rows beat one class alone on the others, and what they know by heart."""
        released = self._released
        some = np.sort(rows_to_try(len(released.y), self._student_seed, released.subjects))
        of = None if released.subjects is None else released.subjects[some]

        def answers(learned: Ints) -> Ints:
            return self._codes_of(self._student(released.part(some[learned])), released.X[some])

        n_rows = None if self._has_other_learner else len(released.y)
        return tried_on_parts(released.y[some], answers, self._student_seed, n_rows, of=of)

    def _tried(self) -> tuple[Comparison | None, float, ByHeart | None]:
        """The same of our own network, where one class may stand in for it. Of many rows a trial says by how much it is
        less ahead on others, and not whether."""
        y = self._released.y
        if self._has_other_learner or not (may_fall_back(y) or (len(y) > MOST_ROWS and len(np.unique(y)) > 1)):
            return None, 0.0, None
        trial, lost, by_heart = self._on_parts()
        return (trial, 0.0, by_heart) if may_fall_back(y) else (None, lost, by_heart)

    @property
    def _has_other_learner(self) -> bool:
        """Whether a student may be anything but our own network, such as a tree, which knows rows by heart however many
        there are."""
        learners = [learner for learner in (self.fair_estimator, self._given_student) if learner is not None]
        return any(as_perceptron(learner) is None for learner in learners)

    def _codes_of(self, student: Any, X: Floats) -> Ints:
        """Classes of rows that are standardised."""
        rows = X * self._released.scale + self._released.center
        return np.asarray(seeded_predictions(student, rows, self._student_seed), dtype=np.int64)

    # ------------------------------------------------------------------ pieces

    def _check(self) -> None:
        """Raise what can be said of the parameters before any row is read."""
        self._validate_params()
        owner = type(self).__name__
        asked = asked_constraints(self)
        read_constraints(asked, owner, optional=True)
        if self.fair_estimator is not None and asked is not None:
            name = "constraints" if self.gamma is None else "gamma"
            raise ValueError(
                f"{owner} got both {name!r} and a 'fair_estimator', which has constraints already. Leave {name!r} "
                "None, and give the constraint to the 'fair_estimator'."
            )
        if getattr(self._voting, "threshold", SoftVoting.threshold) != SoftVoting.threshold:
            raise ValueError(
                f"{owner} trains its student on the vote shares of every query, so the 'threshold' "
                f"({self._voting.threshold:g}) of 'voting' has no effect. Leave it out."
            )
        if getattr(self._variant, "student", None) is not None:
            clone(self._variant.student, safe=False)
        if self.fair_estimator is not None:
            check_fair_learner(clone(self.fair_estimator, safe=False), owner)
        teachers = self.fair_estimator if isinstance(self._variant, ensemble.FairTeachers) else self._variant.teacher
        refuse_callbacks(teachers, parameter="teacher", owner=owner)
        self._built_in().read_net()

    def _built_in(self) -> LagrangianClassifier:
        """The network of the built-in fair learner: the one given, or the usual one of the variant."""
        given, constraints = self.fair_estimator, asked_constraints(self)
        if isinstance(given, LagrangianClassifier):
            if given.constraints is None:
                raise ValueError(
                    "The 'fair_estimator' of SFPATEClassifier is a LagrangianClassifier with constraints=None: it "
                    "would need no groups. Set its 'constraints'."
                )
            if as_perceptron(given) is not None:
                return given
        constraints = "demographic_parity" if constraints is None else constraints
        settings = self._variant._network_settings(read_constraints(constraints, "SFPATEClassifier"))
        return LagrangianClassifier(constraints=constraints, **settings)

    def _fair_learner(self, data: ensemble.AttributeRows) -> Any:
        """The fair learner, given or the built-in network, for rows whose groups and classes go by codes."""
        learner = self._built_in() if self.fair_estimator is None else self.fair_estimator
        return in_codes(learner, data.domain.tolist(), data.classes.tolist(), type(self).__name__)

    @property
    def _variant(self) -> ensemble.GroupTeachers | ensemble.FairTeachers:
        return self._parts()["variant"]

    @property
    def _voting(self) -> SoftVoting | GNMaxVoting:
        return self._parts()["voting"]

    @property
    def _releases_winners(self) -> bool:
        return isinstance(self._voting, GNMaxVoting)

    # ------------------------------------------------------------------ what refit may change

    _shorthands: ClassVar[dict[str, Any]] = {"variant": ensemble.VARIANTS, "voting": VOTINGS}

    @property
    def _given_student(self) -> Any:
        part = self._variant
        return self.fair_estimator if isinstance(part, ensemble.GroupTeachers) else part.student

    @property
    def _free_parameters(self) -> frozenset[str]:
        """What refit can change: a search pays once for all their values."""
        students = FAIR if isinstance(self._variant, ensemble.GroupTeachers) else {"variant__student"}
        return frozenset({"proximal_weight", *students})

    def _refuse_paid(self, name: str) -> None:
        if isinstance(self._variant, ensemble.FairTeachers) and name in FAIR:
            raise ValueError(
                f"The teachers of {type(self).__name__}(variant='teacher') are fair already, so another '{name}' needs "
                "a new fit. Their votes determine another 'variant__student' or 'proximal_weight'."
            )
        super()._refuse_paid(name)

    def __getstate__(self) -> dict[str, Any]:
        """All but the rows: they are public, but nobody expects them in a model that is handed on."""
        state: dict[str, Any] = dict(super().__getstate__())
        state.pop("_released", None)
        return state
