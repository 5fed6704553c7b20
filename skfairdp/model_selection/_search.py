"""What the two searches share after their fit: predictions, scores and attributes of the winner."""

import inspect
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import MetaEstimatorMixin, clone, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if

from skfairdp._docs import shared_docs
from skfairdp._typing import ArrayLike
from skfairdp._utils import NamedEstimator
from skfairdp.generative import PFGuardGenerator
from skfairdp.model_selection._facts import search_facts
from skfairdp.model_selection._search_data import SearchData
from skfairdp.privacy import PrivacySpent, StatesPrivacy

_NOT_GIVEN = dict.fromkeys(("sensitive_features", "X_public", "sensitive_features_public", "validation"))


def _winner_has(name: str) -> Any:
    def check(search: "SearchBase") -> bool:
        getattr(getattr(search, "best_estimator_", search.estimator), name)
        return True

    return check


@shared_docs
class SearchBase(StatesPrivacy, MetaEstimatorMixin, NamedEstimator):
    """Hands on to the winner. Not public: see ParetoSearchCV and PrivateSearchCV."""

    estimator: Any
    bounds: Mapping[str, str] | None
    privacy_: PrivacySpent
    __metadata_request__fit = {
        "sensitive_features": True,
        "X_public": True,
        "sensitive_features_public": True,
        "validation": True,
    }
    __metadata_request__score = {"sensitive_features": True}

    def _validate_params(self) -> None:
        if isinstance(self.estimator, PFGuardGenerator):
            raise ValueError(
                f"{type(self).__name__} scores predictions, and PFGuardGenerator makes none. Search "
                "SyntheticDataClassifier(learner, ...), which takes the generator's parameters, trains the learner on "
                "its rows and keeps it as best_estimator_.generator_."
            )
        if is_regressor(self.estimator):
            raise ValueError(
                f"{type(self).__name__} scores classes by tables of labels and predictions, and "
                f"{type(self.estimator).__name__} predicts amounts. Give its fits one ledger, and compare them on "
                "public rows."
            )
        super()._validate_params()

    def _forget(self) -> None:
        """Drop what an earlier fit has left: a search that ends without a winner must not show another's."""
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)

    def planned_privacy(self, X: Any, y: Any = None, **fit_params: Any) -> PrivacySpent:
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

    def _winner(self) -> Any:
        winner = getattr(self, "best_estimator_", None)
        if winner is None:
            raise NotFittedError(f"This {type(self).__name__} {self._lacks_winner()}")
        return winner

    def _lacks_winner(self) -> str:
        """Why there is none, and what to do."""
        if not hasattr(self, "privacy_"):
            return "instance is not fitted yet. Call 'fit' with appropriate arguments before using this estimator."
        if getattr(self, "refit", True) is False:
            return "has no best estimator, for 'refit' is False. Set refit=True and fit again."
        if getattr(self, "best_index_", None) is None and self.bounds:
            return (
                f"has no best estimator: no candidate meets the bounds {dict(self.bounds)}. Loosen them, or take the "
                "parameters of a point of pareto_table_ and fit them."
            )
        return (
            "has no best estimator: no trial was made, no score is known, or the ledger could not pay for the refit. "
            "Look at privacy_ and, of ParetoSearchCV, at cv_results_['status']."
        )

    @property
    def epsilon_spent_(self) -> float:
        """Shorthand for ``privacy_.epsilon``."""
        return self.privacy_.epsilon

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

        {predicts_labels}
        """
        return self._winner().predict(X)

    @available_if(_winner_has("predict_proba"))
    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
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
        sample_weight : array-like of shape (n_rows,), default=None
            Their weights.

        Returns
        -------
        score : float
            Accuracy, or what the winner's own ``score`` is.
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
