"""Warnings that point at the caller's line, however deep in the package they arise."""

import sys
import warnings

__all__ = ["warn_caller"]

#: Packages whose frames lie between the user's line and a warning: meta-estimators call fit for the user.
_INSIDE = frozenset({"skfairdp", "sklearn", "joblib"})


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the first line of the call stack outside skfairdp, scikit-learn and joblib.

    ``warnings.warn(..., stacklevel=4)`` would make the number of calls in between an interface.

    Parameters
    ----------
    message : str
        Holds nothing private: a warning is shown and logged.
    category : type of Warning, default=UserWarning
        The kind of the warning, by which users filter.

    Examples
    --------
    >>> import warnings
    >>> from skfairdp.utils import warn_caller
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_caller("public rows without groups")
    >>> str(caught[0].message)
    'public rows without groups'
    """
    frame, depth = sys._getframe(1), 2
    while frame.f_back is not None and _package(frame.f_globals) in _INSIDE:
        frame, depth = frame.f_back, depth + 1
    warnings.warn(message, category, stacklevel=depth)


def _package(names: dict[str, object]) -> str:
    return str(names.get("__name__", "")).partition(".")[0]
