"""The only importer of scikit-learn's private names: when one moves, this file changes and nothing else."""

import sys
from numbers import Integral
from typing import Any

from sklearn import get_config
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils import _safe_indexing as take_rows
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import _num_features as n_columns

__all__ = [
    "A_LEARNER",
    "N_JOBS",
    "HasMethods",
    "Having",
    "Interval",
    "Learning",
    "StrOptions",
    "n_columns",
    "scored_without_metadata",
    "take_rows",
]

#: Scorers that ask a model for predictions of X and hand it nothing else, unless metadata is routed.
_SCORERS = frozenset({"_PassthroughScorer", "_Scorer", "_MultimetricScorer"})


#: What joblib takes: 0 is an error of its own, which would come after the charge.
N_JOBS = [Interval(Integral, 1, None, closed="left"), Interval(Integral, None, -1, closed="right"), None]


class Having(HasMethods):
    """An object with some methods, by words that say what to give.

    Parameters
    ----------
    methods : list of str
        What it must have.
    words : str
        What a message says that the parameter must be.
    """

    def __init__(self, methods: list[str], words: str) -> None:
        super().__init__(methods)
        self.words = words

    def __str__(self) -> str:
        return self.words


class Learning(Having):
    """What has ``fit`` and ``predict``, or a classifier that has the latter once it is fitted: it is tried anyway."""

    def __init__(self, words: str = "an object implementing 'fit' and 'predict'") -> None:
        super().__init__(["fit"], words)

    def is_satisfied_by(self, val: Any) -> bool:
        learns = bool(super().is_satisfied_by(val))
        return learns and (hasattr(val, "predict") or (isinstance(val, BaseEstimator) and is_classifier(val)))


A_LEARNER = Learning()


def scored_without_metadata() -> bool:
    """Whether a search or cross-validation of scikit-learn calls this fit, and is going to score by X and y alone.

    Its scorers turn every error into NaN, so that a model which needs more would lose without a word.
    """
    if get_config()["enable_metadata_routing"]:
        return False
    frame = sys._getframe(1)
    while frame.f_back is not None:
        frame = frame.f_back
        if frame.f_code.co_name == "_fit_and_score" and frame.f_globals.get("__name__", "").startswith("sklearn."):
            return type(frame.f_locals.get("scorer")).__name__ in _SCORERS
    return False
