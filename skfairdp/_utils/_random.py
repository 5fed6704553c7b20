"""Public randomness: whatever may be reproduced from ``random_state``.

Noise is not drawn here; see ``skfairdp.privacy`` for the secret source.
"""

import hashlib
import numbers

import numpy as np
from numpy.random import Generator, RandomState
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from skfairdp._typing import RandomStateLike


def public_generator(random_state: RandomStateLike) -> Generator:
    """Return a numpy ``Generator`` for public randomness, from anything scikit-learn accepts."""
    if isinstance(random_state, Generator):
        return random_state
    if isinstance(random_state, RandomState):
        return np.random.default_rng(random_state.randint(0, 2**31 - 1, size=4))
    if random_state is None or (isinstance(random_state, numbers.Integral) and random_state >= 0):
        return np.random.default_rng(None if random_state is None else int(random_state))
    raise ValueError(
        "random_state must be None, a non-negative integer, a numpy RandomState or a numpy Generator. "
        f"Got {random_state!r} instead."
    )


def child_seeds(rng: Generator, n: int) -> NDArray[np.int64]:
    """Draw ``n`` seeds for independent parts of one computation (teachers, folds)."""
    return rng.integers(0, 2**31 - 1, size=n, dtype=np.int64)


def coins_of(rows: NDArray[np.float64], key: bytes) -> NDArray[np.float64]:
    """A number in [0, 1) for every row, which looks random and follows from the row and the key alone."""
    cells = np.ascontiguousarray(rows, dtype="<f8") + 0.0  # one zero, not two
    words = [hashlib.blake2b(row.tobytes(), digest_size=8, key=key).digest() for row in cells]
    return (np.frombuffer(b"".join(words), dtype="<u8") >> np.uint64(11)) / 2.0**53


#: numpy's and scipy's. ``threadpoolctl.threadpool_limits`` would look through all loaded libraries whenever it is
#: called, and that takes as long as a third of a small fit.
BLAS = ThreadpoolController().select(user_api="blas")
