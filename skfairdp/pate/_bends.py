"""Bends: by which a linear rule follows a number that matters only where it is small, or only where it is large."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Bends"]

Array = NDArray[np.float64]

#: Rules with three pieces. Of ten tables, one bend at the upper quartile, at the median or at the upper tenth gains less.
QUARTILES = 0.25, 0.75
FARTHEST = 3.0  # standard deviations of the public rows, beyond which a number is no further beyond a quartile


@dataclass(frozen=True)
class Bends:
    """Adds columns to a matrix: how far a number is below the lower and above the upper quartile of public rows.

    In standard deviations of the public rows, and in no more than three of them from their mean. A column with two
    public values has no bend, nor has one whose quartile no public row is beyond. Each row by itself, and a function of
    public rows alone.

    Parameters
    ----------
    columns : ndarray of int of shape (n_bends,)
    signs : ndarray of shape (n_bends,)
        1 for above, -1 for below.
    knots, center, scale : ndarray of shape (n_bends,)
        Quartiles in units of ``scale`` about ``center``; and these.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.pate._bends import Bends
    >>> public = np.array([[0.0], [1.0], [2.0], [3.0], [4.0]])
    >>> Bends.of(public)(public).round(2).tolist()
    [[0.0, 0.71, 0.0], [1.0, 0.0, 0.0], [2.0, 0.0, 0.0], [3.0, 0.0, 0.0], [4.0, 0.0, 0.71]]
    """

    columns: NDArray[np.int64]
    signs: Array
    knots: Array
    center: Array
    scale: Array

    @classmethod
    def of(cls, X_public: Array) -> "Bends":
        """The bends that follow from public rows."""
        low, high = X_public.min(axis=0), X_public.max(axis=0)
        with np.errstate(over="ignore", invalid="ignore"):
            center, scale = X_public.mean(axis=0), X_public.std(axis=0)
        is_flag = ((X_public == low) | (X_public == high)).all(axis=0)
        numbers = np.flatnonzero(~is_flag & np.isfinite(center) & np.isfinite(scale) & (scale > 0))
        center, scale = center[numbers], scale[numbers]
        units = (X_public[:, numbers] - center) / scale
        parts = [
            (numbers, np.full(len(numbers), sign), np.quantile(units, quartile, axis=0), center, scale)
            for sign, quartile in zip((-1.0, 1.0), QUARTILES, strict=True)
        ]
        every = cls(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
        kept = every._beyond(X_public).any(axis=0)
        return cls(*(column[kept] for column in vars(every).values()))

    @classmethod
    def none(cls) -> "Bends":
        """No bends."""
        return cls(np.zeros(0, dtype=np.int64), *np.zeros((4, 0)))

    def _beyond(self, X: Array) -> Array:
        with np.errstate(over="ignore"):  # of a number far away, which counts as no more than the farthest
            units = np.clip((X[:, self.columns] - self.center) / self.scale, -FARTHEST, FARTHEST)
        return np.maximum(self.signs * (units - self.knots), 0.0)

    def __call__(self, X: Array) -> Array:
        """The columns of X and, after them, the bends."""
        return np.column_stack([X, self._beyond(X)])
