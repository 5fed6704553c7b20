"""A container for public rows that scikit-learn's searches do not slice."""

from typing import Any

from skfairdp._utils._plain_state import PlainState


class PublicData(PlainState):
    """Public rows handed to ``fit(..., X_public=)``: features and, where the method needs them, groups.

    Everything in here is treated as public: it is read without noise and nothing about it is protected.
    The object has neither ``__len__`` nor ``shape`` on purpose: ``GridSearchCV`` slices every fit argument that
    has as many rows as ``X``, and would silently hand each fold a part of the public rows.

    Parameters
    ----------
    X : array-like or DataFrame of shape (n_public, n_features)
        Public feature rows, in the columns of the private ``X``.
    sensitive_features : array-like of shape (n_public,) or DataFrame, default=None
        Public groups of those rows.
    y : array-like of shape (n_public,), default=None
        Public labels of those rows. No estimator learns from them; searches score candidates on them at no cost, and
        ``FairnessCalibrator(constraints=...)`` holds answers to rates by them.

    Attributes
    ----------
    X, sensitive_features, y
        As given.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp import PublicData
    >>> public = PublicData(np.zeros((4, 2)), sensitive_features=["a", "a", "b", "b"])
    >>> hasattr(public, "__len__"), public
    (False, PublicData(4 rows, 2 columns, with groups))
    """

    def __init__(self, X: Any, sensitive_features: Any = None, y: Any = None) -> None:
        self.X = X
        self.sensitive_features = sensitive_features
        self.y = y

    def __sklearn_clone__(self) -> "PublicData":
        return self

    def __repr__(self) -> str:
        shape = getattr(self.X, "shape", None)
        rows, columns = shape if shape is not None and len(shape) == 2 else (len(self.X), "?")
        return (
            f"PublicData({rows} rows, {columns} columns, "
            f"{'without' if self.sensitive_features is None else 'with'} groups"
            f"{'' if self.y is None else ', with labels'})"
        )
