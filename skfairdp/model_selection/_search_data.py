"""What the searches read before they spend anything: rows, candidates, folds, and where to score them."""

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import model_selection as sk
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array, check_consistent_length, get_tags, indexable
from sklearn.utils.validation import column_or_1d

from skfairdp import _rows as sources, _utils, privacy
from skfairdp._estimator import steps_fitted_on_private_rows
from skfairdp._inputs import check_public_columns, in_order, refuse_columns_beside
from skfairdp._row_wise import check_rows_alone
from skfairdp._rows import FoldRows, KeyedRows, RowSource, SubjectRows, Subjects, keyed_by_subject, opened
from skfairdp._utils._sklearn import n_columns
from skfairdp.exceptions import PrivacyLeakWarning, UnplannedReleaseError
from skfairdp.model_selection._amount_scores import AmountScores, AmountTable
from skfairdp.model_selection._candidate import Candidate, Part, Rows
from skfairdp.model_selection._scores import ChunkScores, Objective, PaidScores, PrivateScores, PublicScores, ScoreTable
from skfairdp.schema import RawTable

Entry = privacy.LedgerEntry
#: Classes and codes of labels, and the domain and codes of groups where there are any.
Scored = tuple[NDArray[Any], NDArray[Any], NDArray[np.object_] | None, NDArray[np.int64] | None]


def read_scored(owner: str, candidate: Candidate, rows: Rows, *, private: bool) -> Scored:
    """Read the private rows that are scored; of amounts there are no classes. With a schema every cell can be read, so
    nothing about them is an error."""
    schema, classes = candidate.domain("schema"), candidate.domain("classes")
    labels: NDArray[Any]
    if schema is not None:
        raw = RawTable.roles(schema, rows.X, owner=owner)
        if candidate.of_amounts:
            classes, labels = np.empty(0), candidate.amounts(rows.y, raw)
        else:
            classes, labels = raw.classes, raw.labels(rows.y, public=not private)
        if rows.sensitive_features is None and not raw.has_groups:
            return classes, labels, None, None
        return classes, labels, raw.domain, raw.groups(rows.sensitive_features)
    if candidate.of_amounts:
        classes, labels = np.empty(0), candidate.amounts(rows.y)
    else:
        if classes is not None:
            classes = np.asarray(sorted(_utils.given_domain(classes, owner=owner, parameter="classes").tolist()))
        else:
            if private:
                _leaks(owner, "classes")
            classes = np.unique(rows.y)
        labels = _utils.encode_labels(rows.y, classes, owner=owner, name="y", parameter="classes")
    columns = candidate.domain("sensitive_columns")
    if rows.sensitive_features is not None:
        groups: Any = _utils.as_groups(rows.sensitive_features, len(rows.y), owner=owner)
    elif columns is not None:
        groups = _utils.split_sensitive_columns(rows.X, columns, owner=owner)[1]
    else:
        return classes, labels, None, None
    domain = _group_domain(owner, candidate, rows, groups)
    of_groups = _utils.encode_labels(groups, domain, owner=owner, name="sensitive_features", parameter="groups")
    return classes, labels, domain, of_groups


def _group_domain(owner: str, candidate: Candidate, rows: Rows, groups: NDArray[Any]) -> NDArray[Any]:
    if (given := candidate.domain("groups")) is not None:
        return _utils.given_domain(given, owner=owner, parameter="groups")
    public, known = rows.public["X_public"], rows.public["sensitive_features_public"]
    if isinstance(public, _utils.PublicData) and known is None:
        known, public = public.sensitive_features, public.X
    if known is not None and public is not None:
        named = _utils.as_groups(known, len(np.asarray(public)), owner=owner, name="the public groups")
        return _utils.group_domain(named)
    _leaks(owner, "groups")
    return _utils.group_domain(groups)


def _leaks(owner: str, domain: str) -> None:
    _utils.warn_caller(
        f"{owner} read its {domain} from the private rows, which reveals them outside the guarantee. Give them with "
        f"the '{domain}' parameter of the estimator.",
        PrivacyLeakWarning,
    )


Positions = tuple[NDArray[np.int64], NDArray[np.int64]]
Split = Positions | tuple[SubjectRows, SubjectRows] | tuple[RowSource, RowSource]  # a train and a test part

_BY_POSITION = (sk.KFold, sk.RepeatedKFold, sk.ShuffleSplit, sk.LeaveOneOut, sk.LeavePOut, sk.TimeSeriesSplit)
_BY_LABEL = (sk.StratifiedKFold, sk.StratifiedShuffleSplit)


def make_splits(cv: Any, y: Any, *, planned: Entry, secret: privacy.SecretDraws, owner: str) -> list[Split]:
    """Train and test positions of every fold, none of which depends on what the ``planned`` fit protects. Removing a
    record that may come and go would move all behind it: there each row draws its fold in secret."""
    n_rows = len(y)
    comes_and_goes = planned.neighboring_relation == privacy.NeighboringRelation.ADD_OR_REMOVE_ONE
    if isinstance(cv, Integral) and not isinstance(cv, bool):
        if int(cv) < 2 or (not comes_and_goes and int(cv) > n_rows):  # where records come and go, n_rows is secret
            raise ValueError(f"The 'cv' parameter of {owner} must be at least 2 and at most n_samples. Got {cv!r}.")
        if not comes_and_goes:
            return _checked(sk.KFold(int(cv)).split(np.zeros(n_rows)), n_rows, owner)
        fold = secret.folds(n_rows, int(cv))
        return [(np.flatnonzero(fold != j), np.flatnonzero(fold == j)) for j in range(int(cv))]
    if comes_and_goes:
        raise ValueError(
            f"The 'cv' parameter of {owner} must be a number of folds here: neighbours add or remove one record, which "
            "moves all rows behind it to other folds unless every row draws its fold by itself. Got "
            f"{type(cv).__name__}."
        )
    if isinstance(cv, _BY_LABEL):
        if planned.protects != "sensitive attribute":
            raise ValueError(
                f"The 'cv' parameter of {owner} is stratified: which fold a record is in would depend on the private "
                "labels of others, and one changed label could move many of them. Use KFold, which goes by position."
            )
        return _checked(cv.split(np.zeros(n_rows), np.asarray(y)), n_rows, owner)  # labels are public here
    if isinstance(cv, _BY_POSITION):
        return _checked(cv.split(np.zeros(n_rows)), n_rows, owner)
    if isinstance(cv, sk.BaseCrossValidator | sk.BaseShuffleSplit) or hasattr(cv, "split"):
        names = [cls.__name__ for cls in _BY_POSITION]
        raise ValueError(
            f"The 'cv' parameter of {owner} must go by position: a number of folds, one of {names}, or pairs of "
            f"(train, test) positions, which then count as public. Got {type(cv).__name__}."
        )
    return _checked(cv, n_rows, owner)


def make_source_splits(
    source: RowSource, *, cv: Any, test_size: float | None, planned: Entry, seed: int, owner: str
) -> list[Split]:
    """The same for rows that are read in chunks: folds by a keyed hash of each row's public key, on every engine."""
    remedy = "score on public rows: fit(..., validation=PublicData(X, groups, y))"
    if planned.neighboring_relation == privacy.NeighboringRelation.ADD_OR_REMOVE_ONE:
        raise ValueError(
            f"{owner} folds rows that are read in chunks by their public keys, and here neighbours add or remove one. "
            f"Leave 'public_n_rows' out, or {remedy}."
        )
    if source.key is None and not source.knows_places:
        raise ValueError(f"{sources.key_wanted(owner)}, or {remedy}.")
    if test_size is None and (not isinstance(cv, Integral) or isinstance(cv, bool) or not 2 <= int(cv) <= 1000):
        must = "a number of folds from 2 to 1000 where rows are read in chunks, as they have no positions"
        raise _utils.invalid_parameter("cv", owner, must, cv)
    rule = sources.FoldRule(source.key, seed, 2 if test_size is not None else int(cv), test_size)
    return _folds(source, rule, owner, [(None, None)] * (rule.n_folds if test_size is None else 1))


def _folds(source: RowSource, rule: sources.FoldRule | sources.SubjectFolds, owner: str, listed: Any) -> list[Split]:
    """The train and test part of each fold, with the hashes of the subjects that are ``listed`` for either."""
    sizes = sources.fold_sizes(source, rule)
    if not sizes.all() or sizes.sum() != source.n_rows:
        raise ValueError(
            f"{owner} found a fold without rows, by the public keys of X. Take fewer folds, or check that keys are "
            "unique ids and that X gives the same rows each time."
        )
    found: list[Split] = []
    for j, (train, test) in enumerate(listed):
        rest = FoldRows(source, rule, j, False, sizes.sum() - sizes[j], train)
        found.append((rest, FoldRows(source, rule, j, True, sizes[j], test)))
    return found


def _subject_splits(source: RowSource, subjects: Subjects, cut: Sequence[Any], owner: str) -> list[Split]:
    """Parts with all rows of their subjects, who are cut as in memory, in the order in which they are listed."""
    folds = np.full(subjects.n, len(cut))
    for j, (_, test) in enumerate(cut):
        folds[test] = j
    rule = sources.SubjectFolds.dealt(subjects.name, subjects.hashes, folds)
    return _folds(source, rule, owner, [(subjects.hashes[train], subjects.hashes[test]) for train, test in cut])


def _checked(pairs: Iterable[Any], n_rows: int, owner: str) -> list[Split]:
    try:
        splits: list[Positions] = [(np.asarray(a, dtype=np.int64), np.asarray(b, dtype=np.int64)) for a, b in pairs]
    except (TypeError, ValueError):
        splits = []
    parts = [part for split in splits for part in split]
    known = all(part.ndim == 1 and len(part) and 0 <= part.min() <= part.max() < n_rows for part in parts)
    usable = known and all(len(np.unique(part)) == len(part) for part in parts)
    if not splits or not usable or any(np.intersect1d(train, test).size for train, test in splits):
        raise ValueError(
            f"The 'cv' parameter of {owner} must be a number of folds, a splitter such as KFold, or pairs of disjoint, "
            f"non-empty (train, test) positions below n_samples = {n_rows}."
        )
    return list(splits)


def split_event(
    splits: list[Split], fits: Sequence[privacy.DpEvent], score: privacy.DpEvent, n_scores: int, n_rows: int | None
) -> privacy.DpEvent:
    """What one record pays for a fit on every train part it is in, and ``n_scores`` releases on every test part.
    ``n_rows`` is None where splits were drawn in secret, or follow public keys: then that is the same in every fold."""
    if n_rows is None:
        places = np.eye(max(2, len(splits)), dtype=bool)[:, : len(splits)]
        member = np.hstack([~places, places])
    else:
        member = np.zeros((n_rows, 2 * len(splits)), dtype=bool)
        for j, (train, test) in enumerate(splits):
            assert isinstance(train, np.ndarray) and isinstance(test, np.ndarray)
            member[train, j] = True
            member[test, len(splits) + j] = True
    options = []
    for pattern in np.unique(member, axis=0):
        trained, tested = pattern[: len(splits)], pattern[len(splits) :]
        paid = [fits[j] for j in np.flatnonzero(trained).tolist()]
        options.append(privacy.compose(*paid, privacy.repeat(score, n_scores * int(tested.sum()))))
    return privacy.WorstOf(tuple(options))


_PLACE = "validation"
_VALIDATION = "PublicData(X, sensitive_features, y)"
_NEED_GROUPS = ("disparity", "demographic_disparity", "equalized_odds_disparity", "accuracy_disparity",
                "ks_disparity", "wasserstein_disparity")  # fmt: skip


@dataclass(frozen=True)
class SearchData:
    """A search before it spends. Its rows, folds and scores are private."""

    owner: str
    candidate: Candidate
    rows: Rows
    grid: list[dict[str, Any]]
    scores: PublicScores | PaidScores
    splits: list[Split]
    train_share: float
    delta: float
    planned: Entry
    total_epsilon: float | None = None

    def scaled(self, factor: float) -> "SearchData":
        """The same, with so many times the ε for every fit and every table of scores."""
        scores = self.scores
        if isinstance(scores, PaidScores):
            scores = replace(scores, table=replace(scores.table, epsilon=factor * scores.table.epsilon))
        return replace(self, candidate=self.candidate.scaled(factor), scores=scores)

    def spent(self, event: privacy.DpEvent, **own: Any) -> privacy.PrivacySpent:
        """What this event of the search costs, with all that was paid for before and is in it."""
        spent = self._stated(event, self.delta, secret_noise=self.noise_seed is None, **own)
        return privacy.composed(spent, *self.holds)

    def _stated(self, event: privacy.DpEvent, delta: float, **own: Any) -> privacy.PrivacySpent:
        of: dict[str, Any] = {"protects": self.relation.protects, "neighboring_relation": self.relation}
        return privacy.PrivacySpent.of(event, delta, rows_of=self.planned.rows_of, **of, **own)

    @property
    def holds(self) -> tuple[privacy.PrivacySpent, ...]:
        """What was paid for before: among parameters of the estimator or of candidates, or public rows of the fits."""
        rows = [*self.rows.public.values(), self.scores.rows if isinstance(self.scores, PublicScores) else None]
        return privacy.held_by(self.candidate.estimator, self.grid, *rows)

    @property
    def relation(self) -> privacy.NeighboringRelation:
        """Of the estimator, and so of the search."""
        return privacy.NeighboringRelation(self.planned.neighboring_relation)

    @property
    def ledger(self) -> privacy.PrivacyLedger | None:
        """Of the search."""
        return privacy.ledger_in_use(self.candidate.parameter("ledger"))

    @property
    def noise_seed(self) -> int | None:
        """For research and tests."""
        return self.candidate.parameter("noise_seed")

    @property
    def fold_options(self) -> dict[str, Any]:
        """Parameters of a fit on a train part: where records come and go its size is secret, and the estimator takes a
        public one."""
        if isinstance(self.scores, PublicScores) or self.scores.table.public_size(self.rows.n_rows) is not None:
            return {}
        declared, private = self.candidate.declared_rows, self.candidate.private_part(self.candidate.estimator)
        if declared is None:
            raise ValueError(
                f"Rows cannot be folded for {type(private).__name__}, whose neighbours add or remove a record and for "
                "which no 'public_n_rows' is declared: their number is secret. Declare it, or score on public rows: "
                "fit(..., validation=PublicData(X, groups, y))."
            )
        return {"public_n_rows": max(1, round(declared * self.train_share))}

    def plan(self, params: dict[str, Any], *, folds: bool = True) -> tuple[Entry, list[Entry]]:
        """The fit of a candidate on all rows, and those on the train parts."""
        whole = self.candidate.plan(self.candidate.model(params), self.rows, warn=False)
        if not (self.splits and folds):
            return whole, []
        model = self.candidate.model(params, **self.fold_options)
        return whole, [self.candidate.plan(model, self.rows, train, warn=False) for train, _ in self.splits]

    def fit(
        self, params: Mapping[str, Any], part: Part | None, planned: privacy.DpEvent, **options: Any
    ) -> _utils.Told:
        """A candidate that is fitted on all rows, or on some, and has released what was planned, and its warnings."""
        model = self.candidate.model(params, **options)
        X, y, arguments = self.rows.arguments(model, part)
        fitted, told = _utils.recorded(partial(model.fit, X, y, **arguments))
        spent = getattr(self.candidate.private_part(fitted), "privacy_", None)
        if spent is not None and privacy.flatten(spent.own.event) != privacy.flatten(planned):
            name = type(fitted).__name__
            raise UnplannedReleaseError(f"{name} released something else than it had planned; its cost is unknown.")
        return fitted, told

    def cost(self, fits: Sequence[privacy.DpEvent], n_scores: int) -> privacy.DpEvent:
        """What one record pays for a fit on each train part, and for ``n_scores`` tables of each test part."""
        assert isinstance(self.scores, PaidScores)
        table = self.scores.table
        n_rows = table.public_size(self.rows.n_rows) if self.rows.y is not None and self.rows.subjects is None else None
        return split_event(self.splits, fits, table.event, n_scores, n_rows=n_rows)

    def epsilon(self, event: privacy.DpEvent) -> float:
        """Of one fit and what it was given, at the estimator's own δ."""
        fit = self._stated(event, self.candidate.private_part(self.candidate.estimator).delta)
        return privacy.composed(fit, *privacy.held_by(self.candidate.estimator)).epsilon


def read_search(
    search: Any,
    X: Any,
    y: Any,
    *,
    sensitive_features: Any,
    X_public: Any,
    sensitive_features_public: Any,
    validation: Any,
    subject: Any = None,
    exposure: Any = None,
    objectives: Sequence[Objective],
    shown: Sequence[Objective] = (),
    holdout: float | None = None,
    quiet: bool = False,
) -> SearchData:
    """Whatever can fail on bad input fails here, where nothing is spent."""
    owner = type(search).__name__
    seeds = _utils.child_seeds(_utils.public_generator(search.random_state), 2)
    candidate = Candidate(search.estimator, owner=owner, seed=int(seeds[0]), quiet=quiet)
    schema = candidate.domain("schema")
    public = {"X_public": X_public, "sensitive_features_public": sensitive_features_public}
    subject = getattr(schema, "subject", None) if subject is None else subject
    rows = _rows(owner, X, y, sensitive_features, public, schema, subject)
    if exposure is not None:
        rows = replace(rows, exposure=_exposure(owner, candidate, rows, exposure, validation))
    if not (grid := list(sk.ParameterGrid(search.param_grid))):
        raise ValueError(
            f"The 'param_grid' parameter of {owner} lists no candidate. Give a dict of lists, such as "
            "{'epsilon': [1.0, 2.0]}; {} is the estimator as it is."
        )
    planned = _first_plan(candidate, grid, rows, raises=getattr(search, "error_score", "raise") == "raise")
    if rows.subjects is not None and not privacy.NeighboringRelation(planned.neighboring_relation).of_subjects:
        raise ValueError(
            f"The 'estimator' of {owner}, {type(search.estimator).__name__}, protects each row by itself, so {owner} "
            "takes no 'subject'. Search an estimator whose fit has 'subject', or leave it out."
        )
    delta = _delta(search, candidate, validation)
    scores: PublicScores | PaidScores
    splits: list[Split] = []
    if validation is not None:
        raises = getattr(search, "error_score", None) == "raise"
        scores = _public_scores(owner, candidate, rows, validation, [*objectives, *shown], raises)
        _need_groups(owner, scores.groups, objectives, f"give them in validation={_VALIDATION}")
        scores.rehearse(objectives, owner, of_amounts=candidate.of_amounts)
        _check_groups_at_prediction(owner, map(candidate.model, grid), scores.groups)
    else:
        check_rows_alone(map(candidate.model, grid), owner)
        table = search.score_epsilon, delta, privacy.NeighboringRelation(planned.neighboring_relation)
        scores = _private_scores(owner, candidate, rows, planned, objectives, shown, table)
        splits = _splits(search, candidate, rows, planned, holdout, int(seeds[1]))
    share = 1 - (1 / max(len(splits), 2) if holdout is None else holdout)
    return SearchData(owner, candidate, rows, grid, scores, splits, share, delta, planned)


def _splits(search: Any, one: Candidate, rows: Rows, planned: Entry, holdout: float | None, seed: int) -> list[Split]:
    """Train and test parts of private rows."""
    owner, secret = type(search).__name__, privacy.SecretDraws(one.parameter("noise_seed"))
    subjects, y, n_units, source = rows.subjects, rows.y, rows.n_rows, opened(rows.X) if rows.y is None else None
    if subjects is not None:
        if holdout is None and (not isinstance(search.cv, Integral) or isinstance(search.cv, bool)):
            must = "a number of folds where subjects are protected: a fold holds all rows of its subjects"
            raise _utils.invalid_parameter("cv", owner, must, search.cv)
        # The list of subjects is cut, which is public: nothing is drawn, as none comes or goes.
        y, n_units, secret = np.zeros(subjects.n), subjects.n, privacy.SecretDraws(None)
    elif source is not None:
        return make_source_splits(source, cv=search.cv, test_size=holdout, planned=planned, seed=seed, owner=owner)
    if holdout is None:
        cut: Any = make_splits(search.cv, y, planned=planned, secret=secret, owner=owner)
    elif planned.neighboring_relation == privacy.NeighboringRelation.ADD_OR_REMOVE_ONE:
        held_out = secret.sample(holdout, n_units)
        cut = [(np.flatnonzero(~held_out), np.flatnonzero(held_out))]  # not checked: how many were drawn is secret
    else:  # a public shuffle of positions
        order, n_test = _utils.public_generator(seed).permutation(n_units), max(1, round(holdout * n_units))
        cut = _checked([(np.sort(order[n_test:]), np.sort(order[:n_test]))], n_units, owner)
    if subjects is None:
        return cut
    if source is not None:
        return _subject_splits(keyed_by_subject(source, subjects.name, owner), subjects, cut, owner)
    return [(subjects.part(train), subjects.part(test)) for train, test in cut]


def _exposure(owner: str, candidate: Candidate, rows: Rows, exposure: Any, validation: Any) -> NDArray[np.float64]:
    """One number for each row, where the estimator takes it and the scores can compare by it."""
    part = candidate.private_part(candidate.estimator)
    if "exposure" not in inspect.signature(part.fit).parameters:
        raise ValueError(
            f"{owner} got an exposure, and {type(part).__name__} takes none. Leave it out, or search "
            "FairDPSGDRegressor(loss='poisson')."
        )
    if validation is not None or rows.y is None:
        raise ValueError(
            f"{owner} takes an exposure only for private rows in memory, which it scores by folds: public rows of "
            "'validation' have none. Leave out the one or the other."
        )
    _utils.check_same_index(owner, X=rows.X, exposure=exposure)
    return _utils.as_exposures(exposure, rows.n_rows, owner=owner)


def _rows(owner: str, X: Any, y: Any, groups: Any, public: dict[str, Any], schema: Any, subject: Any) -> Rows:
    if sources.gathered(X) is not None:
        refuse_columns_beside(owner, y, groups)
        # Opened once: a function is asked once for the number of its rows, and not by every fit.
        source = opened(X)
        rows = Rows(X if isinstance(X, KeyedRows) else source, None, None, public)
        if subject is None or source is None:
            return rows
        keyed = keyed_by_subject(source, subject, owner)
        X = X if isinstance(X, KeyedRows) else keyed
        return replace(rows, X=X, subjects=Subjects.read_source(keyed, owner=owner))
    if y is None and schema is not None:
        y = RawTable.roles(schema, X, owner=owner).label_cells()
    if y is None:
        raise ValueError(f"{owner} requires y to be passed, but the target y is None.")
    _utils.check_same_index(owner, X=X, y=y, sensitive_features=groups, subject=subject)
    _check_lengths(owner, X, y, groups)
    subjects = None
    if subject is not None:
        subjects = Subjects.read(X, subject, X.shape[0] if hasattr(X, "shape") else len(X), owner=owner)
        X = subjects.outside(X)
        if schema is not None and set(schema.features) <= set(_utils.column_names(X) or ()):
            subjects = in_order(subjects, RawTable.read(schema, X, owner=owner))
    X, y = indexable(X, y)
    _utils.refuse_masked(y, owner=owner, name="y")
    if schema is not None:  # it reads whatever the cells hold
        return Rows(X, RawTable.roles(schema, X, owner=owner).label_cells(y), groups, public, subjects)
    with _utils.without_context():
        try:
            y = column_or_1d(_utils.label_array(y), warn=True)
        except (ValueError, TypeError) as error:
            raise _utils.without_values(error, owner=owner, name="y") from None
    return Rows(X, y, groups, public, subjects)


def _check_lengths(owner: str, X: Any, y: Any, sensitive_features: Any) -> None:
    with _utils.without_context():
        try:
            check_consistent_length(X, y, sensitive_features)
        except ValueError:  # it counts private rows
            raise ValueError(
                f"X, y and sensitive_features of {owner} have inconsistent lengths: they must have one entry per row "
                "of X. Compare len(X) with theirs: counts of private rows are not printed."
            ) from None


def _first_plan(candidate: Candidate, grid: list[dict[str, Any]], rows: Rows, *, raises: bool) -> Entry:
    """Of the first candidate that can be planned; the error of the first where none can."""
    problem: Exception | None = None
    for params in grid:
        try:
            return candidate.plan(candidate.model(params), rows, warn=True)
        except Exception as error:
            if raises:
                raise
            problem = problem or error
    assert problem is not None, "a ParameterGrid is never empty"
    raise problem


def _delta(search: Any, candidate: Candidate, validation: Any) -> float:
    if search.delta is not None:
        return float(search.delta)
    delta = float(getattr(candidate.private_part(candidate.estimator), "delta", 0.0))
    if not delta > 0 and (validation is None or getattr(search, "trial_distribution", None) == "poisson"):
        what, remedy = "a Poisson number of trials has", ""
        if validation is None:
            what, remedy = "noisy tables of scores have", ", or public rows to score on (validation=)"
        raise ValueError(
            f"{type(search).__name__} needs its 'delta' parameter here: the estimator has none, and {what} no "
            f"guarantee without one. Give delta=1e-5{remedy}."
        )
    return delta


# ---------------------------------------------------------------------- where to score


def _public_scores(
    owner: str, candidate: Candidate, rows: Rows, validation: Any, objectives: Sequence[Objective], raises: bool
) -> PublicScores:
    """Rows that no model could be scored on are refused here: they are public, and no fit needs them."""
    if not isinstance(validation, _utils.PublicData) or validation.y is None:
        raise ValueError(f"validation of {owner} must be {_VALIDATION}: public rows with public labels.")
    X, y, groups, schema = validation.X, validation.y, validation.sensitive_features, candidate.domain("schema")
    if rows.subjects is not None:
        X = rows.subjects.outside(X)
    check_consistent_length(X, y)
    raw = None
    if schema is not None:
        piped = isinstance(candidate.estimator, Pipeline) and len(candidate.estimator) > 1
        raw = RawTable.roles(schema, X, owner=owner) if piped else RawTable.read(schema, X, owner=owner, name=_PLACE)
        if not piped:
            raw.check(_PLACE)
        y = candidate.amounts(y, raw) if candidate.of_amounts else raw.classes[raw.labels(y, public=True)]
    elif candidate.of_amounts:
        _check_table(owner, candidate, rows, X)
        y = candidate.amounts(y)
    else:
        _check_table(owner, candidate, rows, X)
        y = column_or_1d(_utils.label_array(y), warn=True)
        declared = candidate.domain("classes")
        classes: Any = rows.y if declared is None else _utils.given_domain(declared, owner=owner, parameter="classes")
        _check_listed(owner, y, classes, "labels", "those of y" if declared is None else "its 'classes'")
    if raw is not None and schema.groups and (groups is not None or raw.has_groups):
        groups = raw.domain[raw.groups(groups, public=True, name=_PLACE)]
    elif groups is not None:
        groups = _utils.as_groups(groups, len(y), owner=owner, name=_PLACE)
    elif raw is None and candidate.domain("sensitive_columns") is not None:
        groups = _utils.split_sensitive_columns(X, candidate.domain("sensitive_columns"), owner=owner)[1]
    if groups is not None and (domain := candidate.domain("groups")) is not None:
        listed = _utils.given_domain(domain, owner=owner, parameter="groups")
        _check_listed(owner, groups, listed, "groups", "its 'groups'")
    return PublicScores(_utils.PublicData(X, groups, y), groups, objectives, raises)


def _check_table(owner: str, candidate: Candidate, rows: Rows, X: Any) -> None:
    """Columns must be those of the private rows, and cells such as the estimator can read."""
    own, features, columns = rows.X, X, candidate.domain("sensitive_columns")
    if columns is not None and n_columns(X) != n_columns(own):  # groups may lie beside the rows that are scored
        own = _utils.split_sensitive_columns(own, columns, owner=owner, read_groups=False)[0]
    elif columns is not None:
        features = _utils.split_sensitive_columns(X, columns, owner=owner, read_groups=False)[0]
    check_public_columns(owner, _utils.column_names(own), n_columns(own), X, _PLACE)
    last = candidate.estimator
    try:
        if isinstance(last, Pipeline):
            before, last = last[:-1], last.steps[-1][1]
            if steps_fitted_on_private_rows(candidate.estimator):
                return
            features = clone(before).fit(X).transform(X) if len(before) else features
        if not get_tags(last).input_tags.allow_nan:
            check_array(features, dtype=np.float64, estimator=owner, input_name=_PLACE)
    except Exception as error:
        raise ValueError(
            f"validation of {owner} has rows that {type(candidate.estimator).__name__} cannot read, so no "
            f"candidate could be scored: {error} Nothing was spent."
        ) from error


def _check_listed(owner: str, values: NDArray[Any], listed: Any, what: str, where: str) -> None:
    known = set(np.asarray(listed, dtype=object).tolist())
    strange = [value for value in dict.fromkeys(values.tolist()) if value not in known]
    if strange:
        raise ValueError(
            f"validation of {owner} holds {what} that are not among {where}: {strange[:5]}. A prediction is never "
            "one of them. Correct them, or leave their rows out. Nothing was spent."
        )


def _check_groups_at_prediction(owner: str, models: Iterable[Any], groups: Any) -> None:
    """A model that asks for the group of every row would have scores that are NaN without it."""
    for model in models:
        last = model.steps[-1][1] if isinstance(model, Pipeline) else model
        if groups is None and getattr(last, "_asks_for_groups", False):
            raise ValueError(
                f"{owner} cannot score {type(last).__name__} without the group of every row, and its scores would be "
                "NaN: give them in validation=PublicData(X, sensitive_features, y), or name the columns of X that hold "
                "them with its 'sensitive_columns'."
            )


def _private_scores(
    owner: str, candidate: Candidate, rows: Rows, planned: Entry, objectives: Sequence[Objective],
    shown: Sequence[Objective], table: tuple[float, float, privacy.NeighboringRelation],
) -> PaidScores:  # fmt: skip
    """Domains and codes of the noisy tables; where rows are read in chunks, their schema knows classes and groups."""
    last = candidate.estimator.steps[-1][1] if isinstance(candidate.estimator, Pipeline) else candidate.estimator
    may_refuse, every = hasattr(last, "reject_mask"), [*objectives, *shown]
    domain: NDArray[Any] | None = None
    if rows.y is None:
        schema = candidate.domain("schema")
        if schema.groups:
            domain = _utils.given_domain(schema.group_values, owner=owner, parameter="schema")
        _need_groups(owner, domain, objectives, "name their columns in the schema")
        tables = ScoreTable(_or_one(domain), *table, np.asarray(sorted(schema.classes)), may_refuse)
        listed = None if rows.subjects is None else rows.subjects.hashes
        scores: PaidScores = ChunkScores(tables, every, schema, owner, listed)
    else:
        private = planned.protects != "sensitive attribute"
        classes, labels, domain, of_groups = read_scored(owner, candidate, rows, private=private)
        _need_groups(owner, of_groups, objectives, "pass sensitive_features to fit")
        measured = every, rows.X, labels, of_groups
        if candidate.of_amounts:
            candidate.check_unit(owner)
            sums = AmountTable(_or_one(domain), *table)
            scores = AmountScores(sums, *measured, candidate.private_part, rows.exposure)
        else:
            scores = PrivateScores(ScoreTable(_or_one(domain), *table, classes, may_refuse), *measured)
    scores.rehearse(objectives)
    return scores


def _or_one(domain: NDArray[Any] | None) -> NDArray[Any]:
    """The groups of a table, one without a name where there are none."""
    return np.array([None], dtype=object) if domain is None else domain


def _need_groups(owner: str, groups: Any, objectives: Sequence[Objective], remedy: str) -> None:
    wanted = [o.name for o in objectives if o.kind == "built in" and o.name in _NEED_GROUPS]
    if groups is None and wanted:
        raise ValueError(
            f"{owner} needs the groups of the rows it scores for the objective {wanted[0]!r}: {remedy}, or leave that "
            "objective out."
        )
