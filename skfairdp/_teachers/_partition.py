"""Which teacher gets which row, without looking at any row."""

import numbers

import numpy as np
from numpy.typing import NDArray

from skfairdp.utils import RandomStateLike, public_generator

__all__ = ["iid_partition", "position_partition"]


def position_partition(n_rows: int, n_teachers: int, *, random_state: RandomStateLike = None) -> NDArray[np.int64]:
    """Assign every row *position* to one teacher, at random and evenly.

    Sound when neighbouring datasets differ by replacing one row, and the number of rows is public: the result is a
    function of ``n_rows``, ``n_teachers`` and ``random_state`` alone, so that replacing a row changes the training
    set of exactly one teacher and the vote histogram by at most ``sqrt(2)`` in L2 norm. The seed may be public.
    It is **not** sound under adding or removing rows, which shifts positions; see :func:`iid_partition`.

    Stratifying by a private column, hashing row contents or cutting rows into consecutive chunks after a removal
    all change many teachers at once; none of them is offered.

    Parameters
    ----------
    n_rows : int
        Number of private rows, at least ``n_teachers``.
    n_teachers : int
        Number of teachers, at least 1.
    random_state : int, RandomState, Generator or None, default=None
        Seeds the shuffle of positions. None draws fresh entropy.

    Returns
    -------
    ndarray of shape (n_rows,), dtype int64
        Teacher of each row, in [0, n_teachers). Sizes differ by at most 1; no teacher is without rows.

    Raises
    ------
    ValueError
        ``n_teachers`` is not a positive integer, or there are more teachers than rows.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp._teachers import position_partition
    >>> np.bincount(position_partition(10, 3, random_state=0)).tolist()
    [4, 3, 3]
    """
    _check_count("n_rows", n_rows, "position_partition", lowest=0)
    _check_count("n_teachers", n_teachers, "position_partition", lowest=1)
    if n_teachers > n_rows:
        raise ValueError(
            f"The 'n_teachers' parameter must be an integer in [1, number of private rows]: there are more teachers "
            f"than rows ({n_teachers} > {n_rows}). Use fewer teachers."
        )
    return public_generator(random_state).permutation(np.arange(n_rows, dtype=np.int64) % n_teachers)


def iid_partition(n_rows: int, n_teachers: int, *, random_state: RandomStateLike = None) -> NDArray[np.int64]:
    """Draw a teacher for every row independently and uniformly.

    Sound when neighbouring datasets differ by adding or removing one row, **provided the draw is fresh and secret**:
    each assignment of the larger dataset, less the one entry, is an equally likely assignment of the smaller one,
    and exactly one teacher differs between the two. With a seed that others know the coupling is void (all later
    rows move), so give ``random_state`` in tests only.

    Parameters
    ----------
    n_rows : int
        Number of private rows.
    n_teachers : int
        Number of teachers, at least 1.
    random_state : int, RandomState, Generator or None, default=None
        None, the only sound choice for a release, draws from the operating system's entropy.

    Returns
    -------
    ndarray of shape (n_rows,), dtype int64
        Teacher of each row, in [0, n_teachers). Teachers may be without rows.

    Raises
    ------
    ValueError
        ``n_rows`` is negative or ``n_teachers`` is not a positive integer.

    Examples
    --------
    >>> from skfairdp._teachers import iid_partition
    >>> iid_partition(5, 3, random_state=0).tolist()
    [2, 1, 1, 0, 0]
    """
    _check_count("n_rows", n_rows, "iid_partition", lowest=0)
    _check_count("n_teachers", n_teachers, "iid_partition", lowest=1)
    return public_generator(random_state).integers(0, n_teachers, size=n_rows, dtype=np.int64)


def _check_count(name: str, value: object, owner: str, *, lowest: int) -> None:
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < lowest:
        raise ValueError(f"The '{name}' parameter of {owner} must be an integer >= {lowest}. Got {value!r} instead.")
