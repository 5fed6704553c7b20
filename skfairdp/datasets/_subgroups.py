"""Images with a bias that is known: a group of turned images that is rare, a class of which few are left."""

from collections.abc import Hashable
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from skfairdp._typing import ArrayLike
from skfairdp._utils import RandomStateLike, public_generator
from skfairdp.datasets._images import _averaged, _checked_count, _checked_images


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
    pixels, target = _labelled(images, labels, owner)
    if not isinstance(minority_share, Real) or not 0 < minority_share < 1:
        raise ValueError(
            f"The 'minority_share' parameter of {owner} must be a float in the range (0, 1). Got {minority_share!r} "
            "instead."
        )
    if quarter_turns not in (1, 2, 3):
        raise ValueError(f"The 'quarter_turns' parameter of {owner} must be 1, 2 or 3. Got {quarter_turns!r} instead.")
    side = pixels.shape[1]
    size = side if size is None else _checked_count("size", size, side, "the side of the images", owner)
    turned = public_generator(random_state).random(len(pixels)) < minority_share
    data = _averaged(pixels, size)
    data[turned] = np.rot90(data[turned], quarter_turns, axes=(1, 2))
    return Bunch(data=data, target=target, sensitive_features=np.where(turned, "turned", "upright"))


def make_class_bias(
    images: ArrayLike,
    labels: ArrayLike,
    *,
    minority: Hashable,
    level: float = 2.0,
    random_state: RandomStateLike = None,
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
    pixels, target = np.asarray(images), np.asarray(labels)
    if target.shape != (len(pixels),):
        raise ValueError(
            f"The 'labels' parameter of {owner} must have shape ({len(pixels)},), one per image. Got {target.shape}."
        )
    rare = np.flatnonzero(target == minority)
    if not len(rare):
        raise ValueError(f"The 'minority' parameter of {owner} must be one of the labels. Got {minority!r} instead.")
    if not isinstance(level, Real) or not level >= 1:
        raise ValueError(f"The 'level' parameter of {owner} must be a number >= 1. Got {level!r} instead.")
    left = public_generator(random_state).permutation(rare)[: max(round(len(rare) / level), 1)]
    kept = np.sort(np.concatenate([np.flatnonzero(target != minority), left]))
    return Bunch(data=pixels[kept], target=target[kept], sensitive_features=target[kept], indices=kept)


def _labelled(images: ArrayLike, labels: ArrayLike, owner: str) -> tuple[Any, Any]:
    pixels, target = _checked_images(images, owner), np.asarray(labels)
    if target.shape != (len(pixels),):
        raise ValueError(
            f"The 'labels' parameter of {owner} must have shape ({len(pixels)},), one per image. Got {target.shape}."
        )
    return pixels, target
