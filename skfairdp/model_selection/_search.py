"""What the two searches share: reading rows, scoring fitted candidates, handing on to the winner."""

import inspect
import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils import check_consistent_length, get_tags, indexable
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import column_or_1d

from skfairdp.exceptions import PrivacyLeakWarning
from skfairdp.model_selection._candidate import Candidate, Rows
from skfairdp.model_selection._objectives import Answers, Objective
from skfairdp.model_selection._row_wise import predict_with_groups, row_wise_predictions
from skfairdp.model_selection._score_table import ScoreTable
from skfairdp.privacy import LedgerEntry, NeighboringRelation, NoiseSource, StatesPrivacy
from skfairdp.utils import (
    PublicData,
    as_groups,
    encode_labels,
    given_domain,
    group_domain,
    split_sensitive_columns,
    without_values,
)
from skfairdp.utils._sklearn import take_rows

__all__ = ["PrivateScores", "PublicScores", "SearchBase"]

_NEED_GROUPS = ("disparity", "demographic_disparity", "equalized_odds_disparity", "accuracy_disparity")


@dataclass(frozen=True)
class PublicScores:
    """Scores on public rows with public labels: exact, and free.

    What goes wrong here goes wrong with a released model on public rows: ``raises`` shows it, else the scores are NaN.
    """

    rows: PublicData
    groups: NDArray[Any] | None
    raises: bool = False

    def measure(self, fitted: Any, objectives: list[Objective], epsilon: float) -> dict[str, float]:
        try:
            y, classes = np.asarray(self.rows.y), np.asarray(fitted.classes_)
            predicted = np.asarray(predict_with_groups(fitted, self.rows.X, self.groups))
            answers = Answers(y, predicted, np.isin(predicted, classes), self.groups, classes)
            return {o.name: o.measure(answers, epsilon, fitted, self.rows.X) for o in objectives}
        except Exception:
            if self.raises:
                raise
            return {o.name: math.nan for o in objectives}


@dataclass(frozen=True)
class PrivateScores:
    """Scores on private rows, from one paid table each."""

    table: ScoreTable
    label_codes: NDArray[np.int64]
    group_codes: NDArray[np.int64] | None
    groups: NDArray[Any] | None

    def measure(
        self, fitted: Any, rows: Rows, test: NDArray[np.int64], objectives: list[Objective], epsilon: float,
        source: NoiseSource,
    ) -> dict[str, float]:  # fmt: skip
        """Release one table of the test part, and read the objectives from it."""
        answers = self.release(fitted, rows, test, source)
        return {o.name: _of_released(o, answers, epsilon) for o in objectives}

    def release(self, fitted: Any, rows: Rows, test: NDArray[np.int64], source: NoiseSource) -> Answers:
        """The noisy table of the test part. Everything private of a score is in here."""
        groups = None if self.groups is None else self.groups[test]
        fixed_size = self.table.public_size(len(rows.y)) is not None
        predicted = row_wise_predictions(fitted, take_rows(rows.X, test), groups, at_once=fixed_size)
        codes = None if self.group_codes is None else self.group_codes[test]
        return self.table.release(self.label_codes[test], codes, predicted, source)

    def rehearse(self, objectives: list[Objective]) -> None:
        """Read the objectives from a made-up table: one that cannot be read from any is an error before the charge."""
        for objective in objectives:
            objective.measure(self.table.made_up(self.group_codes is not None), 1.0)


def _of_released(objective: Objective, answers: Answers, epsilon: float) -> float:
    """A metric that fails on a released table fails for reasons that are released."""
    try:
        return objective.measure(answers, epsilon)
    except Exception:
        return math.nan


def _winner_has(name: str) -> Any:
    def check(search: "SearchBase") -> bool:
        getattr(getattr(search, "best_estimator_", search.estimator), name)
        return True

    return check


class SearchBase(StatesPrivacy, MetaEstimatorMixin, BaseEstimator):
    """Reads rows and hands on to the winner. Not public: see ParetoSearchCV and PrivateSearchCV."""

    estimator: Any
    __metadata_request__fit = {
        "sensitive_features": True,
        "X_public": True,
        "sensitive_features_public": True,
        "validation": True,
    }
    __metadata_request__score = {"sensitive_features": True}

    def _read(self, X: Any, y: Any, sensitive_features: Any, X_public: Any, sensitive_features_public: Any) -> Rows:
        owner = type(self).__name__
        if y is None:
            raise ValueError(f"{owner} requires y to be passed, but the target y is None.")
        X, y = indexable(X, y)
        problem: Exception | None = None
        try:
            y = column_or_1d(y, warn=True)
        except (ValueError, TypeError) as error:
            problem = without_values(error, owner=owner, name="y")
        if problem is not None:
            raise problem
        if sensitive_features is not None:
            check_consistent_length(X, sensitive_features)
        return Rows(X, y, sensitive_features,
                    {"X_public": X_public, "sensitive_features_public": sensitive_features_public})  # fmt: skip

    def _forget(self) -> None:
        """Drop what an earlier fit has left: a search that ends without a winner must not show another's."""
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)

    def _public_scores(self, validation: Any, objectives: list[Objective]) -> PublicScores:
        owner = type(self).__name__
        if not isinstance(validation, PublicData) or validation.y is None:
            raise ValueError(
                f"validation of {owner} must be PublicData(X, sensitive_features, y): public rows with public labels."
            )
        check_consistent_length(validation.X, validation.y)
        groups = None
        if validation.sensitive_features is not None:
            groups = as_groups(validation.sensitive_features, len(validation.y), owner=owner, name="validation")
        self._need_groups(groups, objectives, "give them in validation=PublicData(X, sensitive_features, y)")
        return PublicScores(validation, groups, getattr(self, "error_score", None) == "raise")

    def _private_scores(
        self, candidate: Candidate, rows: Rows, entry: LedgerEntry, objectives: list[Objective], delta: float,
        score_epsilon: float,
    ) -> PrivateScores:  # fmt: skip
        """Domains and codes of the noisy tables. Whatever can fail on bad input fails here."""
        owner = type(self).__name__
        labels_are_private = entry.protects == "record"
        given = candidate.domain("classes")
        if given is None:
            if labels_are_private:
                _leaks(owner, "classes", "classes")
            classes = np.unique(rows.y)
        else:
            classes = np.asarray(sorted(given_domain(given, owner=owner, parameter="classes").tolist()))
        codes = encode_labels(rows.y, classes, owner=owner, name="y", parameter="classes")
        groups = self._groups_of(candidate, rows)
        self._need_groups(groups, objectives, "pass sensitive_features to fit")
        domain, group_codes = np.array([None], dtype=object), None
        if groups is not None:
            domain = self._group_domain(candidate, rows, groups)
            group_codes = encode_labels(groups, domain, owner=owner, name="sensitive_features", parameter="groups")
        relation = NeighboringRelation(entry.neighboring_relation)
        table = ScoreTable(classes, domain, score_epsilon, delta, relation, _may_refuse(candidate.estimator))
        scores = PrivateScores(table, codes, group_codes, groups)
        scores.rehearse(objectives)
        return scores

    def _groups_of(self, candidate: Candidate, rows: Rows) -> NDArray[Any] | None:
        owner = type(self).__name__
        if rows.sensitive_features is not None:
            return as_groups(rows.sensitive_features, len(rows.y), owner=owner)
        columns = candidate.domain("sensitive_columns")
        return None if columns is None else split_sensitive_columns(rows.X, columns, owner=owner)[1]

    def _group_domain(self, candidate: Candidate, rows: Rows, groups: NDArray[Any]) -> NDArray[Any]:
        owner = type(self).__name__
        given = candidate.domain("groups")
        if given is not None:
            return given_domain(given, owner=owner, parameter="groups")
        public = rows.public["X_public"]
        known = rows.public["sensitive_features_public"]
        if isinstance(public, PublicData) and known is None:
            known, public = public.sensitive_features, public.X
        if known is not None and public is not None:
            return group_domain(as_groups(known, len(np.asarray(public)), owner=owner, name="the public groups"))
        _leaks(owner, "groups", "groups")
        return group_domain(groups)

    def _need_groups(self, groups: Any, objectives: list[Objective], remedy: str) -> None:
        wanted = [o.name for o in objectives if o.kind == "built in" and o.name in _NEED_GROUPS]
        if groups is None and wanted:
            raise ValueError(
                f"{type(self).__name__} needs the groups of the rows it scores for the objective {wanted[0]!r}: "
                f"{remedy}, or leave that objective out."
            )

    # ------------------------------------------------------------------ the winner

    def _winner(self) -> Any:
        winner = getattr(self, "best_estimator_", None)
        if winner is None:
            raise NotFittedError(
                f"This {type(self).__name__} has no best estimator: it is not fitted, 'refit' is False, or no "
                "candidate came out of the search."
            )
        return winner

    @property
    def classes_(self) -> NDArray[Any]:
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
    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predictions of the winner.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        return self._winner().predict(X)

    @available_if(_winner_has("predict_proba"))
    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Class probabilities of the winner.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
        """
        return self._winner().predict_proba(X)

    def score(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        sensitive_features: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Score of the winner on the given rows, exact.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
        sensitive_features : array-like of shape (n_rows,), default=None
        sample_weight : array-like of shape (n_rows,), default=None

        Returns
        -------
        float
        """
        winner = self._winner()
        taken = inspect.signature(winner.score).parameters
        given = {"sensitive_features": sensitive_features, "sample_weight": sample_weight}
        # Groups are handed on where they are taken; a weight that is not is an error of the winner's.
        kept = {n: v for n, v in given.items() if v is not None and (n in taken or n == "sample_weight")}
        return winner.score(X, y, **kept)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.estimator_type, tags.classifier_tags = inner.estimator_type, inner.classifier_tags
        tags.target_tags, tags.input_tags = inner.target_tags, inner.input_tags
        tags.non_deterministic = inner.non_deterministic
        return tags


def _may_refuse(estimator: Any) -> bool:
    """Whether predictions of this kind of estimator may be refusals."""
    last = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
    return hasattr(last, "reject_mask")


def _leaks(owner: str, what: str, parameter: str) -> None:
    warnings.warn(
        f"{owner} read its {what} from the private rows, which reveals them outside the guarantee. Give them with the "
        f"'{parameter}' parameter of the estimator.",
        PrivacyLeakWarning,
        stacklevel=4,
    )
