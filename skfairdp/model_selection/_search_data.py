"""What the searches read before they spend anything: rows, candidates, folds, and where to score them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import Pipeline
from sklearn.utils import check_consistent_length, indexable
from sklearn.utils.validation import column_or_1d

from skfairdp._row_wise import check_rows_alone
from skfairdp._rows import KeyedRows, gathered, opened
from skfairdp.model_selection._candidate import Candidate, Rows
from skfairdp.model_selection._objectives import Objective
from skfairdp.model_selection._scored_rows import read_scored
from skfairdp.model_selection._scores import ChunkScores, PaidScores, PrivateScores, PublicScores, ScoreTable
from skfairdp.model_selection._splits import Split, make_holdout, make_source_splits, make_splits, split_event
from skfairdp.privacy import (
    DpEvent,
    LedgerEntry,
    NeighboringRelation,
    PrivacyLedger,
    PrivacySpent,
    SecretDraws,
    composed,
    held_by,
    ledger_in_use,
)
from skfairdp.schema import RawTable
from skfairdp.utils import (
    PublicData,
    as_groups,
    check_same_index,
    child_seeds,
    given_domain,
    label_array,
    public_generator,
    refuse_masked,
    without_values,
)

_NEED_GROUPS = ("disparity", "demographic_disparity", "equalized_odds_disparity", "accuracy_disparity")


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
    planned: LedgerEntry
    total_epsilon: float | None = None

    def with_total(self, total_epsilon: float) -> "SearchData":
        """The same, where so much is to be divided."""
        return replace(self, total_epsilon=total_epsilon)

    def scaled(self, factor: float) -> "SearchData":
        """The same, with so many times the ε for every fit and every table of scores."""
        scores = self.scores
        if isinstance(scores, PaidScores):
            scores = replace(scores, table=replace(scores.table, epsilon=factor * scores.table.epsilon))
        return replace(self, candidate=self.candidate.scaled(factor), scores=scores)

    def spent(self, event: DpEvent, **own: Any) -> PrivacySpent:
        """What this event of the search costs, with all that was paid for before and is in it."""
        relation = self.relation
        spent = PrivacySpent.of(
            event, self.delta, protects=relation.protects, neighboring_relation=relation,
            secret_noise=self.noise_seed is None, **own,
        )  # fmt: skip
        return composed(spent, *self.holds)

    @property
    def holds(self) -> tuple[PrivacySpent, ...]:
        """What was paid for before and is among the parameters: of the estimator, or of candidates."""
        return held_by(self.candidate.estimator, self.grid)

    @property
    def relation(self) -> NeighboringRelation:
        """Of the estimator, and so of the search."""
        return NeighboringRelation(self.planned.neighboring_relation)

    @property
    def ledger(self) -> PrivacyLedger | None:
        """Of the search."""
        ledger: PrivacyLedger | None = ledger_in_use(self.candidate.parameter("ledger"))
        return ledger

    @property
    def noise_seed(self) -> int | None:
        """For research and tests."""
        return self.candidate.parameter("noise_seed")

    @property
    def fold_options(self) -> dict[str, Any]:
        """Parameters of a fit on a train part."""
        if isinstance(self.scores, PublicScores) or self.scores.table.public_size(self.rows.n_rows) is not None:
            return {}
        return self.candidate.of_secret_size(self.train_share)

    def plan(self, params: dict[str, Any]) -> tuple[LedgerEntry, list[LedgerEntry]]:
        """The fit of a candidate on all rows, and those on the train parts."""
        whole = self.candidate.plan(self.candidate.model(params), self.rows, warn=False)
        if not self.splits:
            return whole, []
        model = self.candidate.model(params, **self.fold_options)
        return whole, [self.candidate.plan(model, self.rows, train, warn=False) for train, _ in self.splits]

    def cost(self, fits: Sequence[DpEvent], n_scores: int) -> DpEvent:
        """What one record pays for a fit on each train part, and for ``n_scores`` tables of each test part."""
        assert isinstance(self.scores, PaidScores)
        table = self.scores.table
        n_rows = None if self.rows.y is None else table.public_size(self.rows.n_rows)
        return split_event(self.splits, fits, table.event, n_scores, n_rows=n_rows)

    def epsilon(self, event: DpEvent) -> float:
        """Of one fit and what it was given, at the estimator's own δ."""
        delta = self.candidate.private_part(self.candidate.estimator).delta
        relation = self.relation
        fit = PrivacySpent.of(event, delta, protects=relation.protects, neighboring_relation=relation)
        return composed(fit, *held_by(self.candidate.estimator)).epsilon


def _grid_of(search: Any, owner: str) -> list[dict[str, Any]]:
    """Every candidate."""
    grid = list(ParameterGrid(search.param_grid))
    if not grid:
        raise ValueError(
            f"The 'param_grid' parameter of {owner} lists no candidate. Give a dict of lists, such as "
            "{'epsilon': [1.0, 2.0]}; {} is the estimator as it is."
        )
    return grid


def read_search(
    search: Any,
    X: Any,
    y: Any,
    *,
    sensitive_features: Any,
    X_public: Any,
    sensitive_features_public: Any,
    validation: Any,
    objectives: Sequence[Objective],
    shown: Sequence[Objective] = (),
    holdout: float | None = None,
    quiet: bool = False,
) -> SearchData:
    """Whatever can fail on bad input fails here, where nothing is spent."""
    owner = type(search).__name__
    seeds = child_seeds(public_generator(search.random_state), 2)
    candidate = Candidate(search.estimator, owner=owner, seed=int(seeds[0]), quiet=quiet)
    schema = candidate.domain("schema")
    public = {"X_public": X_public, "sensitive_features_public": sensitive_features_public}
    rows = _rows(owner, X, y, sensitive_features, public, schema)
    grid = _grid_of(search, owner)
    planned = _first_plan(candidate, grid, rows, raises=getattr(search, "error_score", "raise") == "raise")
    delta = _delta(search, candidate, validation)
    scores: PublicScores | PaidScores
    splits: list[Split] = []
    if validation is not None:
        raises = getattr(search, "error_score", None) == "raise"
        scores = _public_scores(owner, validation, objectives, shown, raises, schema)
        _check_groups_at_prediction(owner, map(candidate.model, grid), scores.groups)
    else:
        check_rows_alone(map(candidate.model, grid), owner)
        table = search.score_epsilon, delta, NeighboringRelation(planned.neighboring_relation)
        scores = _private_scores(owner, candidate, rows, planned, objectives, shown, table)
        splits = _splits(search, candidate, rows, planned, holdout, int(seeds[1]))
    share = 1 - (1 / max(len(splits), 2) if holdout is None else holdout)
    return SearchData(owner, candidate, rows, grid, scores, splits, share, delta, planned)


def _splits(
    search: Any, candidate: Candidate, rows: Rows, planned: LedgerEntry, holdout: float | None, seed: int
) -> list[Split]:
    """Train and test parts of private rows."""
    owner, secret = type(search).__name__, SecretDraws(candidate.parameter("noise_seed"))
    if rows.y is None:
        source = opened(rows.X)
        assert source is not None
        return make_source_splits(source, cv=search.cv, test_size=holdout, planned=planned, seed=seed, owner=owner)
    if holdout is None:
        return make_splits(search.cv, rows.y, planned=planned, secret=secret, owner=owner)
    return make_holdout(holdout, rows.n_rows, planned=planned, seed=seed, secret=secret, owner=owner)


def _rows_of_source(owner: str, X: Any, y: Any, sensitive_features: Any, public: dict[str, Any]) -> Rows:
    """Rows that do not lie in memory: every fit reads them, and every score that public rows do not make."""
    if y is not None or sensitive_features is not None:
        raise ValueError(
            f"{owner} got y or sensitive_features beside an X that is read in chunks. Name their columns in the schema "
            "of its estimator (label, groups), and leave them out."
        )
    # Opened once: a function is asked once for the number of its rows, and not by every fit.
    return Rows(X if isinstance(X, KeyedRows) else opened(X), None, None, public)


def _rows(owner: str, X: Any, y: Any, sensitive_features: Any, public: dict[str, Any], schema: Any) -> Rows:
    if gathered(X) is not None:
        return _rows_of_source(owner, X, y, sensitive_features, public)
    if y is None and schema is not None:
        y = RawTable.roles(schema, X, owner=owner).label_cells()
    if y is None:
        raise ValueError(f"{owner} requires y to be passed, but the target y is None.")
    check_same_index(owner, X=X, y=y, sensitive_features=sensitive_features)
    _check_lengths(owner, X, y, sensitive_features)
    X, y = indexable(X, y)
    refuse_masked(y, owner=owner, name="y")
    if schema is not None:  # it reads whatever the cells hold
        return Rows(X, RawTable.roles(schema, X, owner=owner).label_cells(y), sensitive_features, public)
    problem: Exception | None = None
    try:
        y = column_or_1d(label_array(y), warn=True)
    except (ValueError, TypeError) as error:
        problem = without_values(error, owner=owner, name="y")
    if problem is not None:
        raise problem
    return Rows(X, y, sensitive_features, public)


def _check_lengths(owner: str, X: Any, y: Any, sensitive_features: Any) -> None:
    try:
        check_consistent_length(X, y, sensitive_features)
        same = True
    except ValueError:  # it counts private rows
        same = False
    if not same:
        raise ValueError(
            f"X, y and sensitive_features of {owner} have inconsistent lengths: they must have one entry per row of X. "
            "Compare len(X) with theirs: counts of private rows are not printed."
        )


def _first_plan(candidate: Candidate, grid: list[dict[str, Any]], rows: Rows, *, raises: bool) -> LedgerEntry:
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
    poisson = getattr(search, "law", None) == "poisson"
    if not delta > 0 and (validation is None or poisson):
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
    owner: str, validation: Any, objectives: Sequence[Objective], shown: Sequence[Objective], raises: bool, schema: Any
) -> PublicScores:
    if not isinstance(validation, PublicData) or validation.y is None:
        raise ValueError(
            f"validation of {owner} must be PublicData(X, sensitive_features, y): public rows with public labels."
        )
    check_consistent_length(validation.X, validation.y)
    groups = None
    if validation.sensitive_features is not None:
        groups = as_groups(validation.sensitive_features, len(validation.y), owner=owner, name="validation")
    elif schema is not None:
        raw = RawTable.roles(schema, validation.X, owner=owner)
        groups = raw.domain[raw.groups(public=True, name="validation")] if raw.has_groups else None
    _need_groups(owner, groups, objectives, "give them in validation=PublicData(X, sensitive_features, y)")
    return PublicScores(validation, groups, [*objectives, *shown], raises)


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
    owner: str,
    candidate: Candidate,
    rows: Rows,
    planned: LedgerEntry,
    objectives: Sequence[Objective],
    shown: Sequence[Objective],
    table: tuple[float, float, NeighboringRelation],
) -> PaidScores:
    """Domains and codes of the noisy tables."""
    if rows.y is None:
        return _chunk_scores(owner, candidate, objectives, shown, table)
    read = read_scored(owner, candidate, rows, private=planned.protects == "record")
    _need_groups(owner, read.group_codes, objectives, "pass sensitive_features to fit")
    domain = np.array([None], dtype=object) if read.domain is None else read.domain
    groups = None if read.group_codes is None else domain[read.group_codes]
    tables = ScoreTable(read.classes, domain, *table, _may_refuse(candidate.estimator))
    scores = PrivateScores(tables, [*objectives, *shown], rows.X, read.label_codes, read.group_codes, groups)
    scores.rehearse(objectives)
    return scores


def _chunk_scores(
    owner: str,
    candidate: Candidate,
    objectives: Sequence[Objective],
    shown: Sequence[Objective],
    table: tuple[float, float, NeighboringRelation],
) -> PaidScores:
    """The same for rows that are read in chunks, whose schema knows classes and groups."""
    schema = candidate.domain("schema")
    groups = np.array([None], dtype=object)
    if schema.groups:
        groups = given_domain(schema.group_values, owner=owner, parameter="schema")
    _need_groups(owner, groups if schema.groups else None, objectives, "name their columns in the schema")
    classes = np.asarray(sorted(schema.classes))
    scores = ChunkScores(
        ScoreTable(classes, groups, *table, _may_refuse(candidate.estimator)), [*objectives, *shown], schema, owner
    )
    scores.rehearse(objectives)
    return scores


def _need_groups(owner: str, groups: Any, objectives: Sequence[Objective], remedy: str) -> None:
    wanted = [o.name for o in objectives if o.kind == "built in" and o.name in _NEED_GROUPS]
    if groups is None and wanted:
        raise ValueError(
            f"{owner} needs the groups of the rows it scores for the objective {wanted[0]!r}: {remedy}, or leave that "
            "objective out."
        )


def _may_refuse(estimator: Any) -> bool:
    """Whether predictions of this kind of estimator may be refusals."""
    last = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
    return hasattr(last, "reject_mask")
