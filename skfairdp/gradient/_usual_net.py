"""Which network ``net="auto"`` takes, and how one is trained where nobody says so: by public numbers."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from skfairdp._second_look import DOUBTFUL
from skfairdp._usefulness import gradient_noise, larger_batches

if TYPE_CHECKING:
    from skfairdp._networks import Net

__all__ = ["settled", "usual_net"]


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


def settled(net: "Net", n_rows: int, max_grad_norm: float) -> "Net":
    """The net with steps, batches and passes chosen where it leaves them open.

    With all three open, batches and steps are larger for many rows, and passes fewer (:func:`larger_batches`).

    Examples
    --------
    >>> from skfairdp._networks import as_net
    >>> from skfairdp.gradient import mlp
    >>> from skfairdp.gradient._usual_net import settled
    >>> for net in ("mlp", mlp(max_epochs=5)):
    ...     net = as_net(net, owner="FairDPSGDClassifier", lr=None, batch_size=None, max_epochs=None)
    ...     net = settled(net, 10**6, max_grad_norm=4.0)
    ...     print(net.batch_size, round(net.max_epochs, 2), round(net.lr, 2))
    4426 2.31 4.32
    512 5 0.5
    """
    larger = larger_batches(n_rows) if net.lr is net.batch_size is net.max_epochs is None else 1.0
    return replace(
        net,
        lr=2.0 * larger / max_grad_norm if net.lr is None else net.lr,
        batch_size=round(512 * larger) if net.batch_size is None else net.batch_size,
        max_epochs=20 / larger if net.max_epochs is None else net.max_epochs,
    )
