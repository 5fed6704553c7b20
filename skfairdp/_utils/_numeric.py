"""Public randomness, whatever may be reproduced from random_state, and penalised softmax regression from moments.

Noise is not drawn here; see ``skfairdp.privacy`` for the secret source.
"""

import hashlib
import numbers
import os
import threading
from typing import Any

import numpy as np
from numpy.random import Generator, RandomState
from scipy.optimize import minimize
from scipy.special import expit
from threadpoolctl import ThreadpoolController

from skfairdp._typing import Floats, Ints, RandomStateLike

#: Whoever sets a global generator for a while, or puts it back, waits for all others: threads have them in common.
GENERATORS = [threading.RLock()]
os.register_at_fork(after_in_child=lambda: GENERATORS.__setitem__(0, threading.RLock()))  # its holder is not there


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


def child_seeds(rng: Generator, n: int) -> Ints:
    """Draw ``n`` seeds for independent parts of one computation (teachers, folds)."""
    return rng.integers(0, 2**31 - 1, size=n, dtype=np.int64)


def coins_of(rows: Floats, key: bytes) -> Floats:
    """A number in [0, 1) for every row, which looks random and follows from the row and the key alone."""
    cells = np.ascontiguousarray(rows, dtype="<f8") + 0.0  # one zero, not two
    words = [hashlib.blake2b(row.tobytes(), digest_size=8, key=key).digest() for row in cells]
    return (np.frombuffer(b"".join(words), dtype="<u8") >> np.uint64(11)) / 2.0**53


#: numpy's and scipy's. ``threadpoolctl.threadpool_limits`` would look through all loaded libraries whenever it is
#: called, and that takes as long as a third of a small fit.
BLAS = ThreadpoolController().select(user_api="blas")


def fit_softmax(
    rows: Floats, moments: Floats, penalty: Floats | float, *, start: Floats, weights: Floats | float = 1.0,
    offset: Floats | float = 0.0, constant: float = 0.0, **options: Any,
) -> Floats:  # fmt: skip
    r"""Minimise :math:`\sum_i w_i \log\sum_k e^{s_{ik}} - \langle M, \theta \rangle + \frac12 \sum p\,\theta^2`.

    The scores are :math:`s = o + X\theta`. Where the moments are :math:`M = X^\top (w\,t)` of targets t, this is the
    cross-entropy with an L2 penalty; targets outside [0, 1], and moments with noise in them, are as good as any. One
    column of coefficients stands for two classes, of which the first has score 0.
    """
    of_rows = np.reshape(weights, (-1, 1))

    def value_and_slope(flat: Floats) -> tuple[float, Floats]:
        theta = flat.reshape(start.shape)
        scores = offset + rows @ theta
        if scores.shape[1] == 1:
            total, proba = np.logaddexp(0.0, scores[:, 0]), expit(scores)
        else:
            top = scores.max(axis=1, keepdims=True)
            powers = np.exp(scores - top)
            sums = powers.sum(axis=1, keepdims=True)
            total, proba = (np.log(sums) + top)[:, 0], powers / sums
        value = np.sum(weights * total) - np.sum(moments * theta) + 0.5 * np.sum(penalty * theta**2) + constant
        return float(value), (rows.T @ (of_rows * proba) - moments + penalty * theta).ravel()

    found = minimize(value_and_slope, start.ravel(), jac=True, method="L-BFGS-B", options=options)
    return found.x.reshape(start.shape)
