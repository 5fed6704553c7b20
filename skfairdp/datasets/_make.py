"""Synthetic classification data whose gap between groups is known exactly."""

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import Bunch

from skfairdp._typing import ArrayLike, Floats
from skfairdp._utils import RandomStateLike, invalid_parameter, public_generator
from skfairdp.datasets._images import _averaged, _checked_count, _checked_images, _one_label_each

_OWNER = "make_biased_classification"


def make_biased_classification(
    n_samples: int,
    *,
    n_features: int = 10,
    disparity: float = 0.2,
    group_proportions: Sequence[float] = (0.5, 0.5),
    n_classes: int = 2,
    base_rate: float | None = None,
    class_sep: float = 2.0,
    group_sep: float = 1.0,
    as_frame: bool = False,
    random_state: RandomStateLike = None,
) -> tuple[Any, Any, Any]:
    """Draw labelled rows in groups whose population demographic disparity equals ``disparity``.

    The last group is the favoured one. Write π for its share, r for ``base_rate`` and δ for ``disparity``. The last
    class (the favourable one) has probability r + δ(1 − π) in the last group and r − δπ in every other group, so that r
    is its overall rate and the favoured group is ahead of the others by exactly δ. The other classes share the rest
    evenly. δ is then the largest gap both by the "others" definition (a group against all the others pooled) and by the
    "between" definition (a group against another one), over all groups and classes.

    Given its class k and group z a row is Gaussian, x ~ N(``class_sep`` u_k + ``group_sep`` v_z, I), with u_k
    and v_z orthonormal directions drawn from ``random_state``: with ``group_sep`` > 0 the features betray the
    group, and a classifier can be unfair without seeing it.

    Parameters
    ----------
    n_samples : int
        Number of rows, at least 1.
    n_features : int, default=10
        At least the number of classes plus the number of groups.
    disparity : float, default=0.2
        δ, in [0, 1].
    group_proportions : sequence of floats, default=(0.5, 0.5)
        Positive shares of the groups, which are numbered 0, 1, …; they are divided by their sum.
    n_classes : int, default=2
        Classes are 0, …, ``n_classes`` − 1.
    base_rate : float, default=None
        r. None: 1 / ``n_classes``.
    class_sep, group_sep : float, default=2.0, 1.0
        In units of the standard deviation of a feature.
    as_frame : bool, default=False
        Return a DataFrame with columns ``x0``, ``x1``, … and two Series, instead of arrays.
    random_state : int, RandomState, Generator or None, default=None
        Draws directions and rows.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features) or DataFrame
        Features.
    y : ndarray of shape (n_samples,) or Series, of int
        Classes.
    sensitive_features : ndarray of shape (n_samples,) or Series, of int
        Groups.

    Raises
    ------
    ValueError
        A parameter out of range, or a gap that cannot exist at this base rate (a probability outside [0, 1]).

    Examples
    --------
    >>> from skfairdp.datasets import make_biased_classification
    >>> X, y, groups = make_biased_classification(20_000, disparity=0.3, random_state=0)
    >>> round(float(y[groups == 1].mean() - y[groups == 0].mean()), 1)
    0.3
    """
    shares = _shares(group_proportions)
    _check_sizes(n_samples, n_features, n_classes, shares.size)
    favoured, others = _rates(disparity, 1 / n_classes if base_rate is None else base_rate, shares[-1])
    rng = public_generator(random_state)
    directions = np.linalg.qr(rng.normal(size=(n_features, n_classes + shares.size)))[0].T
    groups = rng.choice(shares.size, size=n_samples, p=shares)
    last = rng.random(n_samples) < np.where(groups == shares.size - 1, favoured, others)
    y = np.where(last, n_classes - 1, rng.integers(n_classes - 1, size=n_samples))
    X = rng.normal(size=(n_samples, n_features)) + class_sep * directions[y]
    X = X + group_sep * directions[n_classes + groups]
    if as_frame:
        frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(n_features)])
        return frame, pd.Series(y, name="y"), pd.Series(groups, name="group")
    return X, y, groups


def _shares(group_proportions: Sequence[float]) -> Floats:
    """Shares of the groups, which add up to 1."""
    shares = np.asarray(group_proportions, dtype=float)
    if shares.ndim != 1 or shares.size < 2 or not np.all(np.isfinite(shares)) or shares.min() <= 0:
        raise invalid_parameter("group_proportions", _OWNER, "two or more positive numbers", group_proportions)
    return shares / shares.sum()


def _check_sizes(n_samples: int, n_features: int, n_classes: int, n_groups: int) -> None:
    enough = f"at least the number of classes plus the number of groups, {n_classes + n_groups}"
    for name, given, least, must in (
        ("n_classes", n_classes, 2, "an int in the range [2, inf)"),
        ("n_samples", n_samples, 1, "an int in the range [1, inf)"),
        ("n_features", n_features, n_classes + n_groups, enough),
    ):
        if given < least:
            raise invalid_parameter(name, _OWNER, must, given)


def _rates(disparity: float, rate: float, favoured_share: float) -> tuple[float, float]:
    """Probabilities of the last class in the favoured group and in the others."""
    if not 0 <= disparity <= 1:
        raise invalid_parameter("disparity", _OWNER, "a float in the range [0, 1]", disparity)
    favoured, others = rate + disparity * (1 - favoured_share), rate - disparity * favoured_share
    if not 0 <= others <= favoured <= 1:
        raise ValueError(
            f"disparity={disparity!r} of {_OWNER} cannot exist at base_rate={rate:.4g}: the rate of the last class "
            f"would be {favoured:.4g} in the last group and {others:.4g} in the others. Lower 'disparity' or change "
            "'base_rate'."
        )
    return favoured, others


def make_raw_table(n_rows: int = 6000, *, random_state: RandomStateLike = None) -> pd.DataFrame:
    """Draw a raw table of made-up people: texts, gaps marked by a question mark, the group among the columns.

    Men of the same age and hours earn more often above 50K, so that a model without a bound is unfair.

    Parameters
    ----------
    n_rows : int, default=6000
        Number of rows.
    random_state : int, RandomState or None, default=None
        Of the draws.

    Returns
    -------
    DataFrame of shape (n_rows, 5)
        Age and hours a week as numbers; work, sex and income as texts.

    Examples
    --------
    >>> from skfairdp.datasets import make_raw_table
    >>> table = make_raw_table(1000, random_state=0)
    >>> table.columns.tolist(), sorted(table["workclass"].unique())
    (['age', 'workclass', 'hours', 'sex', 'income'], ['?', 'Private', 'State-gov'])
    """
    rng = public_generator(random_state)
    sex = rng.choice(["Female", "Male"], n_rows)
    age, hours = rng.integers(17, 91, n_rows), rng.integers(10, 80, n_rows)
    work = rng.choice(["Private", "State-gov", "?"], n_rows, p=[0.7, 0.2, 0.1])
    score = 0.05 * (age - 40) + 0.06 * (hours - 40) + 0.8 * (sex == "Male") + rng.logistic(size=n_rows)
    income = np.where(score > 1, ">50K", "<=50K")
    return pd.DataFrame({"age": age, "workclass": work, "hours": hours, "sex": sex, "income": income})


def make_rotated_subgroups(
    images: ArrayLike,
    labels: ArrayLike,
    *,
    minority_share: float = 0.2,
    quarter_turns: int = 1,
    size: int | None = None,
    random_state: RandomStateLike = None,
) -> Bunch:
    """Turn a share of the images: the turned ones are the minority group, whatever their class.

    Parameters
    ----------
    images : array-like of shape (n, s, s)
        uint8, or floats in [0, 1].
    labels : array-like of shape (n,)
        Their classes.
    minority_share : float, default=0.2
        Probability that an image is turned, in (0, 1).
    quarter_turns : int, default=1
        1, 2 or 3, against the clock.
    size : int, default=None
        Side of the images returned, at most s: each pixel averages the area it covers. None keeps s.
    random_state : int, RandomState, Generator or None, default=None
        Which images are turned: a function of positions alone.

    Returns
    -------
    Bunch
        data : ndarray of shape (n, size, size), float32 in [0, 1];
        target : ndarray of shape (n,);
        sensitive_features : ndarray of ``"turned"`` and ``"upright"``.

    Raises
    ------
    ValueError
        Images that are not square or out of range, lengths that differ, a parameter out of range.

    References
    ----------
    Kim et al. (2024), PFGuard, Appendix D.1 ("subgroup bias").

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from skfairdp.datasets import make_rotated_subgroups
    >>> digits = load_digits()
    >>> rows = make_rotated_subgroups(digits.images / 16, digits.target, random_state=0)
    >>> rows.data.shape, round(float((rows.sensitive_features == "turned").mean()), 1)
    ((1797, 8, 8), 0.2)
    """
    owner = "make_rotated_subgroups"
    pixels = _checked_images(images, owner)
    target = _one_label_each(labels, len(pixels), owner)
    if not isinstance(minority_share, Real) or not 0 < minority_share < 1:
        raise invalid_parameter("minority_share", owner, "a float in the range (0, 1)", minority_share)
    if quarter_turns not in (1, 2, 3):
        raise invalid_parameter("quarter_turns", owner, "1, 2 or 3", quarter_turns)
    side = pixels.shape[1]
    size = side if size is None else _checked_count("size", size, side, "the side of the images", owner)
    turned = public_generator(random_state).random(len(pixels)) < minority_share
    data = _averaged(pixels, size)
    data[turned] = np.rot90(data[turned], quarter_turns, axes=(1, 2))
    return Bunch(data=data, target=target, sensitive_features=np.where(turned, "turned", "upright"))


def make_class_bias(
    images: ArrayLike, labels: ArrayLike, *, minority: Any, level: float = 2.0, random_state: RandomStateLike = None
) -> Bunch:
    """Leave out rows of one class, so that one in ``level`` stays.

    Parameters
    ----------
    images : array-like of shape (n, ...)
        Rows of any shape.
    labels : array-like of shape (n,)
        Their classes.
    minority : label
        The class to make rare.
    level : float, default=2.0
        At least 1.
    random_state : int, RandomState, Generator or None, default=None
        Which of its rows stay.

    Returns
    -------
    Bunch
        data : the images that stay, in their order;
        target : their labels;
        sensitive_features : the same labels, the groups of a class bias;
        indices : ndarray of int, their positions.

    Raises
    ------
    ValueError
        Lengths that differ, a class that does not occur, a level below 1.

    References
    ----------
    Kim et al. (2024), PFGuard, Appendix D.1 ("binary class bias", "multi-class bias").

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.datasets import make_class_bias
    >>> rows = make_class_bias(np.zeros((6, 2, 2)), list("aaaabb"), minority="a", level=4, random_state=0)
    >>> rows.target.tolist()
    ['a', 'b', 'b']
    """
    owner = "make_class_bias"
    pixels = np.asarray(images)
    target = _one_label_each(labels, len(pixels), owner)
    rare = np.flatnonzero(target == minority)
    if not len(rare):
        raise invalid_parameter("minority", owner, "one of the labels", minority)
    if not isinstance(level, Real) or not level >= 1:
        raise invalid_parameter("level", owner, "a number >= 1", level)
    left = public_generator(random_state).permutation(rare)[: max(round(len(rare) / level), 1)]
    kept = np.sort(np.concatenate([np.flatnonzero(target != minority), left]))
    return Bunch(data=pixels[kept], target=target[kept], sensitive_features=target[kept], indices=kept)
