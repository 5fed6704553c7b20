"""The private side of SF-PATE: its two kinds of teachers, on parts that positions or keys decide, and their votes."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone

from skfairdp import _teachers
from skfairdp._inputs import TrainingData
from skfairdp._judge import Judge
from skfairdp._typing import Bools, Floats as Array, Ints as Codes, Objects
from skfairdp._utils import RandomStateLike, child_seeds, progress_bar, public_generator, row_blocks, silence
from skfairdp._utils._sklearn import A_LEARNER
from skfairdp.fairness import RateBound, RateParity, name_of
from skfairdp.lagrangian import FairPerceptron, as_perceptron, mlp, standard_scale
from skfairdp.pate._votes import VotePlan
from skfairdp.schema import RawTable, Schema


def fit_fair_teachers(
    learner: Any, X: Array, y: Codes, groups: Codes, assignment: Codes,
    *, n_teachers: int, n_classes: int, n_groups: int, random_state: RandomStateLike = None,
    seeds: Codes | None = None, **how: Any,
) -> _teachers.Teachers:  # fmt: skip
    """Train one fair classifier on the rows assigned to each teacher, independently of all other rows; as
    :func:`fit_teachers`, with groups. A part with one class answers it always, one without rows class 0. A learner that
    may not take a part with one group, or whose fit fails, is replaced by the most frequent class of the part, a vote
    that is no class by class 0: nothing tells that, or how often, it happened."""
    if seeds is None:
        seeds = child_seeds(public_generator(random_state), n_teachers)
    parts = _teachers.Parts.of(assignment, y, seeds, n_classes)
    perceptron, rows = as_perceptron(learner), _Whole(X, y, groups)
    if perceptron is None:
        return _teachers.Teachers(_fit_clones(learner, rows, parts, **how), n_teachers)
    # Public: the largest part of a partition by position. Every stack follows the same schedule.
    largest = max(len(part) for part in parts.rows)
    ensemble = _teachers.fit_stacks(
        perceptron.network(X.shape[1], n_classes), _train_stack,
        lambda block: (perceptron, rows, block, n_groups, largest), parts,
        device=str(perceptron.device), row_shape=X.shape[1:], owner="LagrangianClassifier", **how,
    )  # fmt: skip
    return _teachers.Teachers(ensemble, n_teachers)


def _train_stack(
    net: Any, perceptron: FairPerceptron, of_all: "_Whole", block: _teachers.Parts, n_groups: int, largest: int
) -> list[Any]:
    rows, sizes = block.rows_to_train()
    X, y, membership = of_all.features[rows], of_all.y[rows], np.eye(n_groups)[of_all.of_groups[rows]]
    return perceptron.train_stack(net, X, y, membership, sizes, block.seeds.tolist(), largest)[0]


def _fit_clones(learner: Any, of_all: "_Whole", parts: _teachers.Parts, **how: Any) -> _teachers.ClassifierEnsemble:
    X, y, groups = of_all.features, of_all.y, of_all.of_groups

    def task(rows: Codes, seed: int, is_constant: bool) -> tuple[Any, ...]:
        usual = int(np.bincount(y[rows], minlength=1).argmax())  # labels are public: it stands in for a failed fit
        if is_constant or len(np.unique(groups[rows])) < 2:
            return usual, 0
        return None, usual, fair_copy(learner, seed), X[rows], y[rows], groups[rows]

    tasks = map(task, parts.rows, parts.seeds.tolist(), parts.constant.tolist())
    fitted = _teachers.run_tasks(_teachers.total_fit, tasks, len(parts.seeds), **how)
    return _teachers.ClassifierEnsemble(fitted, parts.seen.shape[1], parts.seeds)


def fair_copy(learner: Any, seed: int) -> Any:
    """A clone with seeds of its own, also of what is no scikit-learn estimator."""
    return _teachers.seeded_clone(learner, seed) if hasattr(learner, "get_params") else clone(learner, safe=False)


_PASSED: set[str] = set()  # by hash: a search plans the same fit many times
_MOST_PASSED = 1024


def dry_run_teacher(teacher: Any, X_public: Array, *, n_rows: int, n_classes: int, owner: str) -> None:
    """Fit a teacher on public rows with made-up labels, as many as a part has, and let it predict them, before anything
    is spent: teachers of private rows are total (see :func:`fit_teachers`), so that a wrong parameter would be as
    silent there as a private value. Nothing here depends on private rows."""
    _teachers.refuse_callbacks(teacher, parameter="teacher", owner=owner)
    engine = _teachers.engine_of(teacher)
    if engine is None:

        def attempt(rows: Any, labels: Any) -> Any:
            fitted = _teachers.seeded_clone(teacher, 0).fit(rows, labels)
            _teachers.check_answers(fitted, predicted := fitted.predict(X_public), X_public, labels)
            return predicted

        _attempts(attempt, teacher, X_public, n_rows, n_classes, "teacher", owner)
    elif len(X_public):
        engine._rehearse(X_public, n_classes)


def _attempts(
    attempt: Callable[[Any, Any], Any], learner: Any, X: Array, n_rows: int, n_classes: int,
    parameter: str, owner: str,
) -> None:  # fmt: skip
    if min(n_rows, n_classes) < 2 or not len(X):
        return  # nothing is trained
    try:
        key = joblib.hash((learner, X, n_rows, n_classes, parameter))
    except Exception:  # what cannot be hashed is tried again
        key = None
    watch: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()
    settings = None
    if "torch" in sys.modules:  # whoever has a network has loaded it: too little precision is noticed
        from skfairdp._networks import PrecisionWatch, reduced_precision

        watch, settings = PrecisionWatch(f"The '{parameter}' of {owner}"), reduced_precision()
    if key is not None and key in _PASSED and settings is None:
        return
    rows, problem = X[np.arange(n_rows) % len(X)], None
    for n_labels in dict.fromkeys((min(n_rows, n_classes), 2)):  # two where it cannot do with a few rows of each
        labels = np.arange(n_rows) % n_labels
        try:
            with silence(), watch:
                predicted = np.asarray(attempt(rows, labels))
            if predicted.shape != (len(X),) or not np.isin(predicted, labels).all():
                raise ValueError("predict must return one of the labels of fit for every row.")
        except Exception as error:
            problem = problem or error
            continue
        if key is not None and len(_PASSED) < _MOST_PASSED:
            _PASSED.add(key)
        return
    raise ValueError(
        f"The '{parameter}' of {owner} fails on {n_rows} public rows with labels of several classes, as many rows as a "
        f"teacher gets, so that all of them would vote a constant. Change its parameters, or 'n_teachers'. "
        f"{type(problem).__name__}: {problem}"
    ) from problem


#: To multiples of this, shares of a vote are rounded down where they are added up in any order: sums are then exact.
STEP = 2.0**-16
#: Fair teachers that are trained together wherever rows are read: a stack.
TOGETHER = 32


@dataclass(frozen=True, kw_only=True)
class AttributeRows(TrainingData):
    """Rows that have passed every check, with standardised features; all but ``groups`` public."""

    groups: Codes
    domain: Objects
    center: Array
    scale: Array
    schema: Schema | Any = None
    kept: Codes | None = None
    whole: "_Whole | None" = None
    owner: ClassVar[str] = "SFPATEClassifier"

    @classmethod
    def of(cls, data: TrainingData, schema: Schema | None, most: int) -> "AttributeRows":
        """Rows whose features are public, standardised: all of them, or so many by positions that are public."""
        X, y, groups, kept, whole = data.X, data.y, data.groups, None, None
        if data.source is None:  # in chunks the group of a subject is found where its rows are together
            groups = data.of_each_row(data.groups_of_units)
        if data.source is None and len(X) > most:
            kept = np.sort(np.random.default_rng(0).choice(len(X), most, replace=False, shuffle=False))
            X, y, whole = X[kept], y[kept], _Whole(X, y, groups)
            data.reads.note("rows asked about", "computed", most, "positions drawn in public")
        center, scale = standard_scale(X)
        rows = {**vars(data), "X": (X - center) / scale, "y": y, "groups": groups}
        return cls(**rows, center=center, scale=scale, schema=schema, kept=kept, whole=whole)

    @property
    def n_rows(self) -> int:
        """All rows, kept or not."""
        return len(self.groups) if self.source is None else self.source.n_rows

    @property
    def n_units(self) -> int:
        """How many there are of what is dealt to teachers, rows or subjects: public."""
        return self.n_rows if self.subjects is None else self.subjects.n

    @property
    def subject_of_each(self) -> Codes | None:
        """Whose the rows are that are asked about; None where each stands alone."""
        if self.subjects is None:
            return None
        return self.subjects.of if self.kept is None else self.subjects.of[self.kept]

    def partition(self, n_teachers: int, rng: np.random.Generator) -> Codes:
        """The teacher of each row, by its position, or that of its subject: no group decides who teaches whom."""
        if self.subjects is not None:
            return self.subjects.parts(n_teachers, rng)
        return _teachers.position_partition(self.n_rows, n_teachers, random_state=rng)

    def each(self) -> "Iterator[Rows]":
        """The rows that are asked about, or all that are read in chunks, with features as given; private are groups."""
        if self.source is None:
            groups = self.groups if self.kept is None else self.groups[self.kept]
            judged = np.arange(len(self.X))
            if self.subjects is not None:
                rows = self.subjects.one_row_each
                judged = rows if self.kept is None else np.flatnonzero(np.isin(self.kept, rows))
            for some in (judged[block] for block in row_blocks(len(judged))):
                yield _Whole(self.X[some] * self.scale + self.center, self.y[some], groups[some])
            return
        schema, read = self.schema, RawTable.read
        yield from self.source.each(lambda chunk: read(schema, chunk.table, owner=self.owner, may_be_empty=True))

    def counted(self, judge: Judge, student: Any, seed: int) -> Codes:
        """What a student answers to these rows, one of each subject, as a judge counts it. Private."""

        def answers(raw: Rows, *_: Any) -> Codes:
            said = _teachers.seeded_predictions(student, raw.features, seed)
            return judge.counts(raw.groups(), raw.labels(), np.asarray(said, dtype=np.int64))

        if self.source is None or self.subjects is None:
            return np.sum([answers(rows) for rows in self.each()], axis=0)
        how: dict[str, Any] = {"columns": self.columns, "of_first": self.schema.groups}
        return _teachers.counted_once(answers, self.source, self.schema, self.owner, self.subjects.n, **how)

    @property
    def columns(self) -> tuple[str, ...]:
        """Of rows in chunks those that are read, what is public first."""
        return (*self.schema.features, *filter(None, [self.schema.label]), *self.schema.groups)

    @property
    def with_labels(self) -> Array:
        """What reveals the group: see :func:`features_and_labels`."""
        return features_and_labels(self.X, self.y, len(self.classes))


class GroupTeachers(BaseEstimator):
    """Teachers learn the *group* from features and label, and vote on it: the "student" variant of SF-PATE.

    A fair learner is then trained on rows, labels and released groups.

    Parameters
    ----------
    teacher : None, "logistic", "mlp", estimator or module, default=None
        What learns the group, as in :class:`PATEClassifier`. None is ``LogisticTeachers()``.

    See Also
    --------
    FairTeachers

    Examples
    --------
    >>> from skfairdp import SFPATEClassifier
    >>> from skfairdp.pate import GroupTeachers
    >>> SFPATEClassifier(variant=GroupTeachers(teacher="mlp")).get_params()["variant__teacher"]
    'mlp'
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {"teacher": "no_validation"}

    def __init__(self, teacher: Any = None) -> None:
        self.teacher = teacher

    def _n_values(self, rows: AttributeRows) -> int:
        """How many groups teachers vote on."""
        return len(rows.domain)

    def _network_settings(self, notions: tuple[str | RateParity | RateBound, ...]) -> dict[str, Any]:
        # Mean predictions by estimated shares are off by their errors: short steps stop before they follow those.
        names = set(map(name_of, notions))
        return {"dual_step": 2.0 if len(names) == 1 and names != {"generalized_demographic_parity"} else None}

    def _rehearse(self, rows: AttributeRows, fair: Any, n_teachers: int) -> None:
        """Try the teacher on its features, which are public, with made-up groups."""
        n_rows, n_groups = -(-rows.n_rows // n_teachers), len(rows.domain)
        dry_run_teacher(self._learner(), rows.with_labels, n_rows=n_rows, n_classes=n_groups, owner=rows.owner)

    def _votes(
        self, rows: AttributeRows, fair: Any, queries: Codes, plan: VotePlan, rng: np.random.Generator,
        **how: Any,
    ) -> NDArray[Any]:  # fmt: skip
        """Votes on some rows. Private."""
        soft = plan.histogram is not None and plan.histogram.noise == "gaussian"
        if rows.source is not None or rows.whole is not None:
            lessons = _LessonsOnGroups(_Asked.of(rows, queries), self._learner(), STEP if soft else None, how["n_jobs"])
            return _some_at_a_time(rows, lessons, plan, rng, verbose=how["verbose"])
        assignment = rows.partition(plan.n_teachers, rng)
        teachers = _teachers.fit_teachers(
            self._learner(), rows.with_labels, rows.groups, assignment, n_teachers=plan.n_teachers,
            n_classes=len(rows.domain), random_state=rng, **how,
        )  # fmt: skip
        asked = rows.with_labels[queries]
        if soft:
            # Probabilities say more than winners: their mean is right on average where the likeliest group is not.
            return teachers.summed_probabilities(asked, len(rows.domain))
        return _teachers.vote_histogram(teachers.predict(asked), len(rows.domain))

    def _learner(self) -> Any:
        return _teachers.LogisticTeachers() if self.teacher is None else self.teacher


class FairTeachers(BaseEstimator):
    """Teachers are fair classifiers of the *label*, each on the groups of its own rows: SF-PATE's "teacher" variant.

    They vote on the label, and a plain student learns the released labels.

    Parameters
    ----------
    student : classifier or None, default=None
        What learns the released labels. None is the network of :class:`LagrangianClassifier`, which learns estimated
        shares; one with other settings may be given.

    See Also
    --------
    GroupTeachers

    Examples
    --------
    >>> from skfairdp import SFPATEClassifier
    >>> from skfairdp.pate import FairTeachers
    >>> from sklearn.linear_model import LogisticRegression
    >>> SFPATEClassifier(variant=FairTeachers(student=LogisticRegression())).variant.student
    LogisticRegression()
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {"student": [A_LEARNER, None]}

    def __init__(self, student: Any = None) -> None:
        self.student = student

    def _n_values(self, rows: AttributeRows) -> int:
        """How many classes teachers vote on."""
        return len(rows.classes)

    def _network_settings(self, notions: tuple[str | RateParity | RateBound, ...]) -> dict[str, Any]:
        # Parts are small: a small network, many short epochs.
        net = mlp((16,), max_epochs=60, batch_size=32, lr=0.01, optimizer__weight_decay=0.03)
        return {"dual_step": None, "net": net}

    def _rehearse(self, rows: AttributeRows, fair: Any, n_teachers: int) -> None:
        """Try the fair learner on public features, with made-up groups."""
        n_groups = len(rows.domain)
        if n_groups < 2 or as_perceptron(fair) is not None:
            return

        def attempt(X: Any, labels: Any) -> Any:
            groups = np.arange(len(labels)) // (int(labels.max()) + 1) % n_groups
            return _teachers.seeded_predictions(fair_copy(fair, 0).fit(X, labels, sensitive_features=groups), rows.X, 0)

        n_rows = -(-rows.n_rows // n_teachers)
        _attempts(attempt, fair, rows.X, n_rows, len(rows.classes), "fair_estimator", "SFPATEClassifier")

    def _votes(
        self, rows: AttributeRows, fair: Any, queries: Codes, plan: VotePlan, rng: np.random.Generator,
        **how: Any,
    ) -> NDArray[Any]:  # fmt: skip
        """Votes on some rows. Private."""
        if rows.source is not None or rows.whole is not None:
            lessons = _FairLessons(_Asked.of(rows, queries), fair, how["n_jobs"])
            return _some_at_a_time(rows, lessons, plan, rng, verbose=how["verbose"])
        assignment = rows.partition(plan.n_teachers, rng)
        teachers = fit_fair_teachers(
            fair, rows.X, rows.y, rows.groups, assignment, n_teachers=plan.n_teachers,
            n_classes=len(rows.classes), n_groups=len(rows.domain), random_state=rng, **how,
        )  # fmt: skip
        return _teachers.vote_histogram(teachers.predict(rows.X[queries]), len(rows.classes))


@dataclass(frozen=True)
class _Asked:
    """What is public of a fit, and pickled with each task: rows asked about, and how others are read."""

    X: Array
    codes: Codes
    n_classes: int
    n_groups: int
    center: Array
    scale: Array

    @classmethod
    def of(cls, rows: AttributeRows, queries: Codes) -> "_Asked":
        sizes = len(rows.classes), len(rows.domain)
        return cls(rows.X[queries], rows.y[queries], *sizes, rows.center, rows.scale)

    def standardised(self, raw: "Rows") -> Array:
        return (raw.features - self.center) / self.scale


@dataclass(frozen=True)
class _Whole:
    """A table in memory, or rows of it, read as a :class:`RawTable` is."""

    features: Array
    y: Codes
    of_groups: Codes

    def labels(self) -> Codes:
        return self.y

    def groups(self) -> Codes:
        return self.of_groups

    def part(self, rows: Bools) -> "_Whole":
        return _Whole(self.features[rows], self.y[rows], self.of_groups[rows])


Rows = RawTable | _Whole


@dataclass(frozen=True)
class _LessonsOnGroups:
    """Teachers of the group, and their votes: whole ones, or shares in steps."""

    asked: _Asked
    teacher: Any
    step: float | None
    n_jobs: int | None
    together = 1

    def __call__(self, raw: Rows, teachers: Codes, seeds: Codes) -> Codes:
        asked = self.asked
        told = features_and_labels(asked.standardised(raw), raw.labels(), asked.n_classes)
        fitted = _teachers.fit_teachers(
            self.teacher, told, raw.groups(), teachers, n_teachers=len(seeds), n_classes=asked.n_groups, seeds=seeds,
            n_jobs=self.n_jobs,
        )  # fmt: skip
        queries = features_and_labels(asked.X, asked.codes, asked.n_classes)
        if self.step is None:
            return _teachers.vote_histogram(fitted.predict(queries), asked.n_groups)
        return np.rint(fitted.summed_probabilities(queries, asked.n_groups, self.step) / self.step).astype(np.int64)


@dataclass(frozen=True)
class _FairLessons:
    """Fair teachers of the label, and their votes."""

    asked: _Asked
    fair: Any
    n_jobs: int | None
    step = None

    together = TOGETHER

    def __call__(self, raw: Rows, teachers: Codes, seeds: Codes) -> Codes:
        asked = self.asked
        X, y, groups = asked.standardised(raw), raw.labels(), raw.groups()
        votes = np.zeros((len(asked.X), asked.n_classes), dtype=np.int64)
        # The largest part of a stack, which is public, says how long its networks train: stacks are always the same.
        for first in range(0, len(seeds), TOGETHER):
            mine = (teachers >= first) & (teachers < first + TOGETHER)
            of_stack = seeds[first : first + TOGETHER]
            fitted = fit_fair_teachers(
                self.fair, X[mine], y[mine], groups[mine], teachers[mine] - first, n_teachers=len(of_stack),
                n_classes=asked.n_classes, n_groups=asked.n_groups, seeds=of_stack, n_jobs=self.n_jobs,
            )  # fmt: skip
            votes += _teachers.vote_histogram(fitted.predict(asked.X), asked.n_classes)
        return votes


def _some_at_a_time(
    rows: AttributeRows, lessons: "_LessonsOnGroups | _FairLessons", plan: VotePlan, rng: np.random.Generator, *,
    verbose: int,
) -> NDArray[Any]:  # fmt: skip
    """Votes of teachers of which some are taught at a time, so that the rows of the others need not be made ready."""
    asked, n_teachers = lessons.asked, plan.n_teachers
    if rows.whole is None:  # rows are dealt by the hashes of their public keys: the group of a row moves no row
        counts: Any = _teachers.streamed_counts(
            lessons, rows.source, columns=rows.columns, schema=rows.schema, owner=rows.owner, n_teachers=n_teachers,
            n_features=asked.X.shape[1] * asked.n_classes, rng=rng, verbose=verbose, together=lessons.together,
            of_first=() if rows.subjects is None else rows.schema.groups,
        ).reshape(len(asked.X), -1)  # fmt: skip
    else:
        counts = 0
        # Functions of positions and sizes alone: no group decides who teaches whom, nor who is taught together.
        assignment, seeds = rows.partition(n_teachers, rng), child_seeds(rng, n_teachers)
        with progress_bar(desc="teachers", total=n_teachers, verbose=verbose) as bar:
            for mine, turn in _teachers.in_turns(assignment, n_teachers):
                counts = counts + lessons(rows.whole.part(mine), assignment[mine] - turn.start, seeds[turn])
                bar.update(turn.stop - turn.start)
    return counts if lessons.step is None else counts * lessons.step


#: By their shorthands: who has the fairness.
VARIANTS: dict[str, Any] = {"student": GroupTeachers, "teacher": FairTeachers}


def features_and_labels(X: Array, y: Codes, n_classes: int) -> Array:
    """All that is public of a row: features, classes, and features by class. Constraints on errors ask for rates of a
    group among equal features and unequal labels, of which a linear model knows by the products alone."""
    labels = np.eye(n_classes)[y][:, 1:]
    return np.column_stack([X, labels, *(X * labels[:, [k]] for k in range(n_classes - 1))])
