"""The 70 / 5 / 25 split of every experiment: private, public and test rows, by position only."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone

from skfairdp import _utils
from skfairdp._utils._sklearn import take_rows

_OWNER = "train_private_public_test_split"


@dataclass(frozen=True)
class PrivatePublicTestSplit:
    """Rows of one data set in three roles: private, public and test.

    :func:`train_private_public_test_split` makes it.

    Parameters
    ----------
    X, y, sensitive_features : of the kind that was split, such as DataFrame, Series or ndarray
        The private rows: only a private estimator may read them.
    X_public, y_public, sensitive_features_public : DataFrame, Series or ndarray
        Public rows: read without noise, not protected.
    X_test, y_test, sensitive_features_test : DataFrame, Series or ndarray
        Held out for measuring.
    indices : tuple of three ndarrays of int
        Positions of the rows of the three parts in the table given.

    Examples
    --------
    >>> from skfairdp.datasets import make_biased_classification, train_private_public_test_split
    >>> split = train_private_public_test_split(*make_biased_classification(1000, random_state=0), random_state=0)
    >>> split.X.shape, split.X_public.shape, split.X_test.shape
    ((700, 10), (50, 10), (250, 10))
    """

    X: Any
    y: Any
    sensitive_features: Any
    X_public: Any
    y_public: Any
    sensitive_features_public: Any
    X_test: Any
    y_test: Any
    sensitive_features_test: Any
    indices: tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]

    @property
    def public(self) -> _utils.PublicData:
        """The public rows and their groups, as ``fit(..., X_public=)`` takes them."""
        return _utils.PublicData(self.X_public, self.sensitive_features_public)

    def encode(self, transformer: Any) -> "PrivatePublicTestSplit":
        """Return the split with its features transformed by what a clone of ``transformer`` sees in the public rows. It
        may be :func:`skfairdp.preprocessing.make_tabular_encoder`, for instance. Fitted on private rows a scaler or an
        encoder would be a release that no ε covers."""
        fitted = clone(transformer).fit(self.X_public)
        return replace(self, **{name: fitted.transform(getattr(self, name)) for name in ("X", "X_public", "X_test")})


def train_private_public_test_split(
    X: Any,
    y: Any,
    sensitive_features: Any,
    *,
    sizes: Sequence[float] = (0.70, 0.05, 0.25),
    subject: Any = None,
    random_state: _utils.RandomStateLike = None,
) -> PrivatePublicTestSplit:
    """Split rows into private, public and test by position, without looking at any value.

    A stratified split would let one record's label or group move other records between the parts; this one
    depends on the number of rows and on ``random_state`` alone (and on ``subject``, where given).

    Parameters
    ----------
    X : DataFrame or array of shape (n_rows, n_features)
        Features.
    y : Series or array of shape (n_rows,)
        Labels.
    sensitive_features : Series, DataFrame or array with n_rows rows
        Groups.
    sizes : three positive floats, default=(0.70, 0.05, 0.25)
        Shares of private, public and test rows. They must add up to 1 or less; rows beyond that are left out.
    subject : array-like of shape (n_rows,), default=None
        Rows of one subject stay together; ``sizes`` are then shares of subjects.
    random_state : int, RandomState, Generator or None, default=None
        Which rows take which role.

    Returns
    -------
    split : PrivatePublicTestSplit
        The rows in their three roles.

    Raises
    ------
    ValueError
        Different numbers of rows, sizes out of range, or a part without rows.

    Examples
    --------
    >>> from skfairdp.datasets import make_biased_classification, train_private_public_test_split
    >>> data = make_biased_classification(1000, random_state=0)
    >>> split = train_private_public_test_split(*data, random_state=0)
    >>> split.X.shape, split.X_public.shape, split.X_test.shape, split.public
    ((700, 10), (50, 10), (250, 10), PublicData(50 rows, 10 columns, with groups))
    """
    shares = _shares(sizes)
    _utils.check_same_index(_OWNER, X=X, y=y, sensitive_features=sensitive_features, subject=subject)
    units = _units(len(X), subject, {"y": len(y), "sensitive_features": len(sensitive_features)})
    private, public, test = _parts(units, shares, random_state)

    def taken(part: NDArray[np.intp]) -> tuple[Any, Any, Any]:
        return _take(X, part), _take(y, part), _take(sensitive_features, part)

    return PrivatePublicTestSplit(*taken(private), *taken(public), *taken(test), indices=(private, public, test))


def _shares(sizes: Sequence[float]) -> tuple[float, ...]:
    shares = tuple(float(size) for size in sizes)
    if len(shares) != 3 or min(shares) <= 0 or sum(shares) > 1 + 1e-9:
        must = "three positive shares (private, public, test) that add up to 1 or less"
        raise _utils.invalid_parameter("sizes", _OWNER, must, sizes)
    return shares


def _units(n_rows: int, subject: Any, lengths: dict[str, int]) -> NDArray[np.intp]:
    """The number of each row's subject; every row is one of its own where no subjects are given."""
    _utils.refuse_masked(subject, owner=_OWNER, name="subject")
    units: NDArray[np.intp] = np.arange(n_rows)
    if subject is not None:
        units, ids = pd.factorize(np.asarray(subject))
        if (units < 0).any():  # a row of nobody belongs to no part
            raise _utils.private_error("missing value", owner=_OWNER, name="subject")
        units = pd.factorize(np.array(_utils.texts_of_ids(ids), dtype=object))[0][units]
    for name, length in {**lengths, "subject": len(units)}.items():
        if length != n_rows:
            raise ValueError(f"{name} of {_OWNER} has inconsistent length: {length} rows where X has {n_rows}.")
    return units


def _parts(
    units: NDArray[np.intp], shares: tuple[float, ...], random_state: _utils.RandomStateLike
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """Positions of the private, public and test rows; those of one subject stand together."""
    n_units = int(units.max(initial=-1)) + 1
    cuts = np.rint(np.cumsum(shares) * n_units).astype(int)
    part = np.full(n_units, 3)
    order = _utils.public_generator(random_state).permutation(n_units)
    for j, (start, stop) in enumerate(zip((0, *cuts[:2]), cuts, strict=True)):
        part[order[start:stop]] = j
    rank = np.empty(n_units, dtype=np.intp)
    rank[order] = np.arange(n_units)
    by_unit = np.argsort(rank[units], kind="stable")
    private, public, test = (by_unit[part[units[by_unit]] == j] for j in range(3))
    lengths = [len(private), len(public), len(test)]
    if min(lengths) == 0:
        raise ValueError(
            f"{_OWNER} leaves a part without rows: {lengths} private, public and test rows. Give more rows or other "
            "'sizes'."
        )
    return private, public, test


def _take(table: Any, rows: NDArray[np.intp]) -> Any:
    return take_rows(np.asarray(table) if isinstance(table, list | tuple) else table, rows)
