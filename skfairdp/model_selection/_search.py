"""What the two searches share after their fit: predictions, scores and attributes of the winner."""

import inspect
import warnings
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Real
from typing import Any, ClassVar, Self

from sklearn.base import MetaEstimatorMixin, clone, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if

from skfairdp import privacy
from skfairdp._docs import shared_docs
from skfairdp._typing import Array, ArrayLike, Floats
from skfairdp._utils import NamedEstimator, PublicData, warn_caller
from skfairdp._utils._sklearn import HasMethods, Interval
from skfairdp.generative import PFGuardGenerator
from skfairdp.model_selection._candidate import Candidate
from skfairdp.model_selection._scores import Objective, PublicScores, read_scoring
from skfairdp.model_selection._search_data import SearchData
from skfairdp.schema import note_columns


def divided(data: SearchData, total: float | None, plan: Callable[[SearchData], Any]) -> tuple[SearchData, Any]:
    """The search whose fits and scores cost ``total`` altogether, and its plan. One factor scales the ε of both: a
    winner is refitted at the ε at which it was scored. The accountant is asked, with all that was paid for before."""
    if total is None:
        return data, plan(data)
    name = f"{data.candidate.prefix}epsilon"
    if not data.candidate.has("epsilon"):
        raise ValueError(f"total_epsilon of {data.owner} needs an estimator with a parameter 'epsilon' to divide it.")
    if any(name in params for params in data.grid):
        raise ValueError(
            f"{data.owner} got total_epsilon and a grid over {name!r}. All fits share the total equally: leave one of "
            "the two out."
        )
    data = replace(data, total_epsilon=total)
    factor = privacy.scale_for(
        total, lambda factor: data.scaled(factor).spent(plan(data.scaled(factor)).event), owner=data.owner
    )
    return data.scaled(factor), plan(data.scaled(factor))


def search_facts(data: SearchData) -> tuple[privacy.PublicFact, ...]:
    """Facts of all fits and of the scores."""
    reads, candidate, rows = privacy.PublicReads(), data.candidate, data.rows
    inner = candidate.private_part(candidate.estimator)
    shape = getattr(rows.X, "shape", (0, 0))
    names = getattr(rows.X, "columns", None)
    schema = candidate.domain("schema")
    if schema is None:
        reads.note("columns of X", "read", shape[1] if names is None and len(shape) > 1 else names, "public")
    else:
        note_columns(reads, schema)
    if (declared := candidate.declared_rows) is not None:
        reads.note("declared number of rows", "given", declared, "nothing follows the true number")
    elif rows.subjects is None:
        reads.note("number of private rows", "read", rows.n_rows, "public, as neighbours have equally many")
    else:
        reads.note_subjects(rows.subjects.n, rows.subjects.name)
    if rows.y is None:
        reads.note(
            "rows of X", "read", None, "in chunks: in every fit, by their places or their keys, which are public"
        )
        if data.splits:
            reads.note("folds", "computed", len(data.splits), "by hashes of the public keys or places of rows")
    _note_domains(reads, candidate, inner, data.relation.protects == privacy.Protects.SENSITIVE_ATTRIBUTE)
    if (public := rows.public.get("X_public")) is not None:
        public = public.X if isinstance(public, PublicData) else public
        reads.note("public rows", "given", len(public), "passed on to every fit", by=PublicData(public))
    elif isinstance(getattr(inner, "public_data", None), PublicData):
        kept = inner.public_data
        reads.note("public rows", "given", len(kept.X), "by 'public_data', in every fit", by=kept)
    if isinstance(data.scores, PublicScores):
        reads.note("public rows to score on", "given", len(data.scores.rows.y), "with labels", by=data.scores.rows)
    if data.total_epsilon is not None:
        reads.note("total epsilon", "given", data.total_epsilon, "of fits, scores and refit together")
        reads.note("epsilon of each fit", "computed", candidate.parameter("epsilon"), "the refit of the winner's too")
        if not isinstance(data.scores, PublicScores):
            reads.note("epsilon of each table of scores", "computed", data.scores.table.epsilon)
    reads.note("candidates of the grid", "given", len(data.grid), "public, and the order of trying them")
    reads.note("constructor parameters", "given", None, "public, and the budget among them")
    return tuple(reads)


def _note_domains(reads: privacy.PublicReads, candidate: Candidate, inner: Any, of_attribute: bool) -> None:
    """Classes and groups: given, or read from rows, and what that means."""
    if of_attribute:
        reads.note("features and labels", "read", None, "used without noise: the guarantee is for the group only")
    schema = candidate.domain("schema")
    if schema is not None:
        reads.note("classes", "given", schema.classes, by=schema.classes)
        reads.note("names of the groups", "given", schema.group_values, by=schema.group_values)
        return
    private = "from the rows: outside the guarantee where those are private"
    of_classes = "from y, which is public here" if of_attribute else private
    for name, parameter, how in (("classes", "classes", of_classes), ("names of the groups", "groups", private)):
        given = candidate.domain(parameter)
        if parameter in inner.get_params(deep=False) and given is not None:
            reads.note(name, "given", given, by=given)
        elif parameter in inner.get_params(deep=False):
            reads.note(name, "read", None, how)


_NOT_GIVEN = dict.fromkeys(
    ("sensitive_features", "X_public", "sensitive_features_public", "validation", "subject", "exposure")
)


def _winner_has(name: str) -> Any:
    def check(search: "SearchBase") -> bool:
        getattr(getattr(search, "best_estimator_", search.estimator), name)
        return True

    return check


@shared_docs
@dataclass(eq=False, repr=False)
class SearchBase(privacy.StatesPrivacy, MetaEstimatorMixin, NamedEstimator):
    """Hands on to the winner. Not public: see ParetoSearchCV and PrivateSearchCV."""

    estimator: Any
    param_grid: Any
    _: KW_ONLY
    scoring: Any = None
    bounds: Mapping[str, str] | None = None

    __metadata_request__fit = dict.fromkeys(_NOT_GIVEN, True)
    __metadata_request__predict = __metadata_request__score = {"sensitive_features": True, "exposure": True}

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [HasMethods(["fit", "predict"])],
        "param_grid": [dict, list],
        "scoring": "no_validation",
        "bounds": [dict, None],
        "cv": "no_validation",
        "score_epsilon": [Interval(Real, 0, 1e9, closed="right")],
        "total_epsilon": [Interval(Real, 0, 1e9, closed="right"), None],
        "delta": [Interval(Real, 0, 1, closed="neither"), None],
        "random_state": ["random_state"],
    }

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        sensitive_features: ArrayLike | None = None,
        X_public: ArrayLike | PublicData | None = None,
        sensitive_features_public: ArrayLike | None = None,
        validation: PublicData | None = None,
        subject: ArrayLike | str | None = None,
        exposure: ArrayLike | None = None,
    ) -> Self:
        """Search, and keep the winner, fitted on all rows.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features) or DataFrame
            Private rows. With a schema of the estimator also rows that are read in chunks, if the estimator reads such:
            a path of Parquet files, a Polars LazyFrame, a dask DataFrame, a function. They are folded by their keys.
        y : array-like of shape (n_rows,), default=None
            Labels. None takes those of X, where a schema of the estimator says which column holds them.
        sensitive_features : array-like of shape (n_rows,) or DataFrame, default=None
            Groups of the rows: for the estimator where it takes them, and for the gaps of the scores. None takes those
            of X, where a schema or ``sensitive_columns`` of the estimator says which columns hold them.
        X_public : array-like of shape (n_public, n_features) or PublicData, default=None
            Public rows, passed on to every fit.
        sensitive_features_public : array-like of shape (n_public,) or DataFrame, default=None
            Their groups, where ``X_public`` does not carry them.
        validation : PublicData, default=None
            Public rows with labels (and groups) to score on. None scores on private rows, which is charged.
        {subject}
            A fold holds all rows of its subjects, and a score counts one row of each.
        exposure : array-like of shape (n_rows,), default=None
            Private: how long or how much a count was taken of, for an estimator whose ``fit`` takes it. Folds cut it as
            y, and scores compare counts with the rate times it. Not with ``validation``.

        {returns_self}
        """
        self._validate_params()
        given: dict[str, Any] = {"sensitive_features": sensitive_features, "subject": subject, "exposure": exposure}
        given |= {"X_public": X_public, "sensitive_features_public": sensitive_features_public}
        told = self._search(*self._planned(X, y, **given, validation=validation))
        for message, category in told.items():
            warn_caller(message, category)
        return self

    def _validate_params(self) -> None:
        if isinstance(self.estimator, PFGuardGenerator):
            raise ValueError(
                f"{type(self).__name__} scores predictions, and PFGuardGenerator makes none. Search "
                "SyntheticDataClassifier(learner, ...), which takes the generator's parameters, trains the learner on "
                "its rows and keeps it as best_estimator_.generator_."
            )
        super()._validate_params()

    def _scoring_of(self, named: Any) -> list[Objective]:
        """What a scoring names for this kind of estimator."""
        return read_scoring(named, owner=type(self).__name__, of_amounts=is_regressor(self.estimator))

    def planned_privacy(self, X: Any, y: Any = None, **fit_params: Any) -> privacy.PrivacySpent:
        """What ``fit`` with the same arguments is going to certify, before anything is released or trained.

        Parameters
        ----------
        X, y, **fit_params : object
            As for ``fit``.

        Returns
        -------
        PrivacySpent
            A cap: of :class:`ParetoSearchCV` with the costliest refit there may be. With ``total_epsilon`` its list
            ``public`` says what every fit and every table of scores gets.
        """
        search = clone(self)
        search._validate_params()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit gives them
            data, plan = search._planned(X, y, **{**_NOT_GIVEN, **fit_params})
        return data.spent(plan.event, public=search_facts(data), label=type(self).__name__)

    def _planned(self, X: Any, y: Any = None, **given: Any) -> tuple[SearchData, Any]:
        """What the search reads, and what it is going to release."""
        raise NotImplementedError

    def _search(self, data: SearchData, plan: Any) -> dict[str, type[Warning]]:
        """Spend, keep what is found, and say what there is to warn of."""
        raise NotImplementedError

    def _winner(self) -> Any:
        if (winner := getattr(self, "best_estimator_", None)) is not None:
            return winner
        why = (
            "has no best estimator: no trial was made, no score is known, or the ledger refused the refit. "
            "Look at privacy_ and, of ParetoSearchCV, at cv_results_['status']."
        )
        if not hasattr(self, "privacy_"):
            why = "instance is not fitted yet. Call 'fit' with appropriate arguments before using this estimator."
        elif getattr(self, "refit", True) is False:
            why = "has no best estimator, for 'refit' is False. Set refit=True and fit again."
        elif getattr(self, "best_index_", None) is None and self.bounds:
            why = (
                f"has no best estimator: no candidate meets the bounds {dict(self.bounds)}. Loosen them, or take the "
                "parameters of a point of pareto_table_ and fit them."
            )
        raise NotFittedError(f"This {type(self).__name__} {why}")

    @property
    def epsilon_spent_(self) -> float:
        """Shorthand for ``privacy_.epsilon``."""
        return self.privacy_.epsilon

    @property
    def classes_(self) -> Array:
        """Class labels of the winner."""
        return self._winner().classes_

    @property
    def n_features_in_(self) -> int:
        """Number of features of the winner."""
        try:
            return self._winner().n_features_in_
        except NotFittedError as error:
            raise AttributeError(str(error)) from None

    @available_if(_winner_has("predict"))
    def predict(
        self, X: ArrayLike, *, sensitive_features: ArrayLike | None = None, exposure: ArrayLike | None = None
    ) -> Array:
        """Predictions of the winner.

        Parameters
        ----------
        {X_predict}
        sensitive_features : array-like of shape (n_rows,) or DataFrame, default=None
            Group of each row, for a winner whose predictions use it.
        exposure : array-like of shape (n_rows,), default=None
            Of counts, for a winner that takes it.

        Returns
        -------
        predictions : ndarray of shape (n_rows,)
            Class labels, or amounts.
        """
        return self._answer("predict", X, sensitive_features=sensitive_features, exposure=exposure)

    @available_if(_winner_has("predict_proba"))
    def predict_proba(self, X: ArrayLike) -> Floats:
        """Class probabilities of the winner.

        {predicts_proba}
        """
        return self._winner().predict_proba(X)

    def score(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        sensitive_features: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Score of the winner on the given rows, exact.

        Parameters
        ----------
        {X_predict}
        y : array-like of shape (n_rows,), default=None
            Their labels. None takes those of X, where a schema of the winner says which column holds them.
        sensitive_features : array-like of shape (n_rows,), default=None
            Their groups.
        exposure : array-like of shape (n_rows,), default=None
            Of counts, for a winner that takes it.
        sample_weight : array-like of shape (n_rows,), default=None
            Their weights.

        Returns
        -------
        score : float
            Accuracy, or what the winner's own ``score`` is.
        """
        given = {"sensitive_features": sensitive_features, "exposure": exposure, "sample_weight": sample_weight}
        return self._answer("score", X, y, **given)

    def _answer(self, method: str, X: Any, *y: Any, **given: Any) -> Any:
        """The winner's answer. Groups are handed on where they are taken; what else is not is an error of its own."""
        asked, given = self._winner(), {name: value for name, value in given.items() if value is not None}
        if isinstance(asked, Pipeline) and not given.keys() <= {"sample_weight"}:  # a score of it hands on no others
            X, asked = asked[:-1].transform(X) if len(asked) > 1 else X, asked[-1]
        taken = inspect.signature(getattr(asked, method)).parameters
        kept = {name: value for name, value in given.items() if name in taken or name != "sensitive_features"}
        return getattr(asked, method)(X, *y, **kept)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.estimator_type, tags.classifier_tags = inner.estimator_type, inner.classifier_tags
        tags.target_tags, tags.input_tags = inner.target_tags, inner.input_tags
        tags.non_deterministic = inner.non_deterministic
        return tags
