"""What all our estimators do beyond scikit-learn's: they take parameters by name, and their pickles carry a version."""

import inspect
import warnings
from typing import Any, Self

from sklearn.base import BaseEstimator
from sklearn.exceptions import InconsistentVersionWarning

__all__ = ["NamedEstimator"]


class NamedEstimator(BaseEstimator):
    """An estimator whose pickle says which skfairdp wrote it, and whose constructor says how it is called.

    Warns
    -----
    InconsistentVersionWarning
        From unpickling, where another version of skfairdp wrote the pickle. scikit-learn's own category, so that one
        filter covers both.

    Examples
    --------
    >>> from skfairdp import PATEClassifier
    >>> PATEClassifier(1.0)
    Traceback (most recent call last):
        ...
    TypeError: PATEClassifier takes its parameters by name, for example PATEClassifier(epsilon=...). Got 1 argument(s) \
without a name. Rows belong in fit.
    """

    def __new__(cls, *args: Any, **parameters: Any) -> Self:
        if args:
            accepted = list(inspect.signature(cls.__init__).parameters.values())[1:]
            unnamed = [one for one in accepted if one.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
            if len(args) > len(unnamed) and len(accepted) > len(unnamed):
                example = f"{cls.__name__}({accepted[len(unnamed)].name}=...)"
                raise TypeError(
                    f"{cls.__name__} takes its parameters by name, for example {example}. Got "
                    f"{len(args) - len(unnamed)} argument(s) without a name. Rows belong in fit."
                )
        return super().__new__(cls)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_skfairdp_version": _version()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        written = state.pop("_skfairdp_version", "of unknown number")
        if written != _version():
            warnings.warn(
                InconsistentVersionWarning(
                    estimator_name=f"{type(self).__name__} of skfairdp",
                    current_sklearn_version=_version(),
                    original_sklearn_version=written,
                ),
                stacklevel=2,
            )
        super().__setstate__(state)


def _version() -> str:
    from skfairdp import __version__

    return __version__
