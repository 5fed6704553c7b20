"""Which features say to which group a row belongs: for the curator's eyes, before features are treated as public."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from skfairdp._typing import ArrayLike, Bools, Ints
from skfairdp._utils import as_groups, encode_labels, group_domain, invalid_parameter, warn_caller
from skfairdp.exceptions import PrivacyLeakWarning

_BINS = 64


@dataclass(frozen=True)
class GroupColumns:
    """How well each column relabels the groups: computed from private groups without noise, never to be published."""

    accuracy: dict[Any, float]
    baseline: float
    telling: tuple[Any, ...]
    private: ClassVar[bool] = False


def columns_telling_the_group(X: ArrayLike, sensitive_features: ArrayLike, *, threshold: float = 0.99) -> GroupColumns:
    """Predict the group from each column alone, and warn of columns that reveal it.

    ``PFLDClassifier`` and randomised response protect the group and treat the features as public. Where a feature
    determines the group there is nothing left to protect: name such columns in ``sensitive_columns``. Several columns
    that reveal the group only together are not found.

    Parameters
    ----------
    X : array-like or DataFrame of shape (n_rows, n_features)
        The features that count as public.
    sensitive_features : array-like of shape (n_rows,) or DataFrame
        Private groups.
    threshold : float, default=0.99
        Warn from this accuracy on; in (0, 1].

    Returns
    -------
    GroupColumns
        Outside every guarantee.

    Raises
    ------
    ValueError
        A threshold outside (0, 1], or fewer than two rows.

    Warns
    -----
    PrivacyLeakWarning
        Where a column reaches the threshold.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.inspection import columns_telling_the_group
    >>> groups = np.arange(400) % 2
    >>> X = np.column_stack([np.random.default_rng(0).normal(size=400), 10 * groups])
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     columns_telling_the_group(X, groups).telling
    (1,)
    """
    owner = "columns_telling_the_group"
    if not 0 < threshold <= 1:
        raise invalid_parameter("threshold", owner, "a float in the range (0.0, 1.0]", threshold)
    frame = X if isinstance(X, pd.DataFrame) else pd.DataFrame(np.asarray(X))
    if len(frame) < 2:
        raise ValueError(f"{owner} needs at least two rows: one to fit on and one to predict.")
    groups = as_groups(sensitive_features, len(frame), owner=owner)
    codes = encode_labels(groups, group_domain(groups), owner=owner, name="sensitive_features", parameter="groups")
    # Guesses made from the rows they are judged on would find that a row number tells everything.
    learn = np.random.default_rng(0).permutation(len(frame)) < len(frame) / 2
    usual = np.bincount(codes[learn]).argmax()
    accuracy = {name: _accuracy(_values(frame.iloc[:, i]), codes, learn, usual) for i, name in enumerate(frame.columns)}
    telling = tuple(name for name, share in accuracy.items() if share >= threshold)
    if telling:
        named = "1 column of X reveals" if len(telling) == 1 else f"{len(telling)} columns of X reveal"
        warn_caller(
            f"{named} the group of at least {threshold:.0%} of the rows, so that protecting it means nothing where X "
            "is public. Drop them with the 'sensitive_columns' parameter of the estimator.",
            PrivacyLeakWarning,
        )
    return GroupColumns(accuracy, float(np.mean(codes[~learn] == usual)), telling)


def _values(column: "pd.Series[Any]") -> Ints:
    """Codes of a column's values, those of long numeric columns by quantile."""
    if pd.api.types.is_numeric_dtype(column) and column.nunique() > _BINS:
        ranks = column.rank(method="average", pct=True).fillna(0).to_numpy()
        return np.minimum((ranks * _BINS).astype(np.int64), _BINS - 1)
    return pd.factorize(column, use_na_sentinel=False)[0].astype(np.int64)


def _accuracy(values: Ints, codes: Ints, learn: Bools, usual: np.intp) -> float:
    table = np.zeros((values.max() + 1, codes.max() + 1))
    np.add.at(table, (values[learn], codes[learn]), 1.0)
    return float(np.mean(np.where(table.sum(1) > 0, table.argmax(1), usual)[values[~learn]] == codes[~learn]))
