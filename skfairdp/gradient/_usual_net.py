"""Which network ``net="auto"`` takes, and how one is trained where nobody says so: by public numbers."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from skfairdp._majority_baseline import DOUBTFUL
from skfairdp._usefulness import gradient_noise, larger_batches

if TYPE_CHECKING:
    from skfairdp._networks import Net


def default_net(
    n_rows: int,
    n_features: int,
    n_outputs: int,
    *,
    epsilon: float,
    delta: float,
    hidden: Sequence[int] = (64,),
    most: float = DOUBTFUL,
) -> str:
    """Return "additive" where noise drowns hidden units, else "mlp".

    Every parameter carries noise of its own, of standard deviation ``C / (μ n)`` beside gradients of a norm of up to C,
    so that P parameters together carry ``√P / (μ n)``. The usual bound is the one above which ``MajorityBaselineTest``
    doubts a linear rule whatever its features say. Beyond it hidden units cost more than they find: without them a
    table of two classes has about a thirtieth of the parameters, and still a curve for each of its columns. This is
    about accuracy: what drowns in noise has no gap between groups either, so parity is no reason for it.
    """
    n_parameters = sum((before + 1) * after for before, after in pairwise([n_features, *hidden, n_outputs]))
    noise = gradient_noise(n_rows, n_parameters, epsilon=epsilon, delta=delta)
    return "additive" if noise > most else "mlp"


def settled(net: "Net", n_rows: int, max_grad_norm: float, *, lr: float = 2.0) -> "Net":
    """The net with steps, batches and passes chosen where it leaves them open.

    With all three open, batches and steps are larger for many rows, and passes fewer (:func:`larger_batches`).
    """
    larger = larger_batches(n_rows) if net.lr is net.batch_size is net.max_epochs is None else 1.0
    return replace(
        net,
        lr=lr * larger / max_grad_norm if net.lr is None else net.lr,
        batch_size=round(512 * larger) if net.batch_size is None else net.batch_size,
        max_epochs=20 / larger if net.max_epochs is None else net.max_epochs,
    )
