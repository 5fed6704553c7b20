"""What scikit-learn does with private rows around a private fit, which no event of that fit stands for."""

from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from skfairdp.exceptions import PrivacyLeakWarning
from skfairdp.utils import warn_caller

__all__ = ["steps_fitted_on_private_rows", "warn_of_caller"]

#: These learn from public rows, or are not fitted again.
_PUBLIC = ("PublicPreprocessor", "FrozenEstimator")


def steps_fitted_on_private_rows(pipeline: Pipeline) -> list[str]:
    """Names of the steps before the last that learn from the rows that the last is fitted on.

    Parameters
    ----------
    pipeline : Pipeline
    """
    return [
        name
        for name, step in pipeline.steps[:-1]
        if not (step in (None, "passthrough") or type(step).__name__ in _PUBLIC or not get_tags(step).requires_fit)
    ]


def warn_of_caller(owner: str, frame: Any) -> None:
    """Name what calls a fit and reads private rows besides, as far as a frame of the stack of calls shows it.

    Everything told is public: the kind of the caller, and how it was set up. Fits in other processes do not see who
    asked for them.

    Parameters
    ----------
    owner : str
        Class name of the private estimator.
    frame : frame
        Of a function of scikit-learn.
    """
    caller = frame.f_locals.get("self")
    steps = steps_fitted_on_private_rows(caller) if isinstance(caller, Pipeline) else []
    if steps:
        warn_caller(
            f"The Pipeline around {owner} fits {', '.join(map(repr, steps))} on private rows as well, and what that "
            f"tells is not in the epsilon of {owner}. Fit it on public rows: PublicPreprocessor(transformer, "
            "X_public).",
            PrivacyLeakWarning,
        )
    # A search keeps its splitter to itself; functions and stacks have it at hand.
    folds = type(getattr(caller, "_checked_cv_orig", frame.f_locals.get("cv"))).__name__
    if folds.startswith("Stratified"):
        warn_caller(
            f"{owner} is fitted on folds of {folds}, which deals rows out by their labels: one changed label moves "
            f"other records, and the epsilon of {owner} does not hold for private ones. Deal them out by place: "
            "cv=KFold(n_splits).",
            PrivacyLeakWarning,
        )
