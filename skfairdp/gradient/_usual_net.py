"""Which network ``net="auto"`` takes, by public numbers: hidden units where gradients are clear of their noise."""

from collections.abc import Sequence
from itertools import pairwise

from skfairdp._second_look import DOUBTFUL
from skfairdp._usefulness import gradient_noise

__all__ = ["usual_net"]


def usual_net(
    n_rows: int, n_features: int, n_classes: int, *, epsilon: float, delta: float, hidden: Sequence[int] = (64,)
) -> str:
    """Return "additive" where noise drowns hidden units, else "mlp".

    Every parameter carries noise of its own, of standard deviation ``C / (μ n)`` beside gradients of a norm of up to C,
    so that P parameters together carry ``√P / (μ n)``. The bound is the one above which ``SecondLook`` doubts a linear
    rule whatever its features say. Beyond it hidden units cost more than they find: without them a table of two classes
    has about a thirtieth of the parameters, and still a curve for each of its columns. This is about accuracy: what
    drowns in noise has no gap between groups either, so parity is no reason for it.

    Parameters
    ----------
    n_rows : int
        Private rows, declared where a number is declared.
    n_features, n_classes : int
        What the network is given, with what the scaling of columns adds, and what it tells apart.
    epsilon, delta : float
        Of the fit.
    hidden : sequence of int, default=(64,)
        Widths of the hidden layers that it would have.

    Examples
    --------
    >>> from skfairdp.gradient._usual_net import usual_net
    >>> usual_net(3_000, 60, 2, epsilon=1.0, delta=1e-5), usual_net(3_000, 60, 2, epsilon=3.0, delta=1e-5)
    ('additive', 'mlp')
    >>> usual_net(30_000, 60, 2, epsilon=0.5, delta=1e-5)
    'mlp'
    """
    n_parameters = sum((before + 1) * after for before, after in pairwise([n_features, *hidden, n_classes]))
    noise = gradient_noise(n_rows, n_parameters, epsilon=epsilon, delta=delta)
    return "additive" if noise > DOUBTFUL else "mlp"
