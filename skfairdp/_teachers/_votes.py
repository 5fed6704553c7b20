"""Counting votes."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["vote_histogram"]

# Votes counted at once: bounds the temporary index array (32 MiB).
_CHUNK_VOTES = 2**22


def vote_histogram(predictions: ArrayLike, n_classes: int) -> NDArray[np.int64]:
    """Count the teachers' votes for each row and class.

    The counts are **private**. Where one record changes one teacher, they change by at most ``sqrt(2)`` in L2 norm
    per row of the histogram, and their maximum by at most 1.

    Parameters
    ----------
    predictions : array-like of shape (n_teachers, n_rows), integer
        Class codes in [0, n_classes).
    n_classes : int

    Returns
    -------
    ndarray of shape (n_rows, n_classes), dtype int64
        Every row sums to ``n_teachers``.

    Raises
    ------
    ValueError
        Not two-dimensional, not integer, or a code outside [0, n_classes).

    Examples
    --------
    >>> from skfairdp._teachers import vote_histogram
    >>> vote_histogram([[0, 1], [0, 2], [1, 2]], n_classes=3).tolist()
    [[2, 1, 0], [0, 1, 2]]
    """
    votes = np.asarray(predictions)
    if votes.ndim != 2 or votes.dtype.kind not in "iu":
        raise ValueError(
            "predictions of vote_histogram must be an integer array of shape (n_teachers, n_rows). "
            f"Got shape {votes.shape} and dtype {votes.dtype} instead."
        )
    if votes.size and (votes.min() < 0 or votes.max() >= n_classes):
        raise ValueError(f"predictions of vote_histogram must be class codes in [0, {n_classes}).")
    n_teachers, n_rows = votes.shape
    out = np.empty((n_rows, n_classes), dtype=np.int64)
    chunk = max(1, _CHUNK_VOTES // max(n_teachers, 1))
    for start in range(0, n_rows, chunk):
        part = votes[:, start : start + chunk]
        width = part.shape[1]
        cells = part.astype(np.int64) + n_classes * np.arange(width)
        out[start : start + width] = np.bincount(cells.ravel(), minlength=width * n_classes).reshape(width, n_classes)
    return out
