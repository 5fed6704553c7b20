"""How long, in which batches and by which steps a network is trained, where nobody says so: from public sizes alone.

Multipliers follow the network. Where it takes few steps between two of their moves, it lags behind, and they swing.
"""

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skfairdp._networks import Net

__all__ = ["LEFT_OPEN", "settled", "usual_batch", "usual_lr"]

_BATCH, _LEAST_BATCH = 256, 16
_ENOUGH_STEPS = 1000  # 25 for each move of the multipliers
_LR, _LARGEST_LR = 1e-3, 1e-2
_REACH = 2.0  # how far a parameter can go


#: Passes over the rows, and steps where these take fewer. With half of both PF-LD's gap on a table with a group of 3 %
#: was 2.5 times as wide.
_EPOCHS, _LEAST_STEPS = 20, 2000
#: Of a net, as :func:`as_net` reads it: what :func:`settled` chooses.
LEFT_OPEN: dict[str, Any] = {"lr": None, "batch_size": None, "max_epochs": None}


def usual_batch(epochs: float | None, n_rows: int) -> int:
    """256 rows; of so many passes as few as 1000 steps take, but no fewer than 16."""
    if epochs is None:
        return _BATCH
    return min(_BATCH, max(_LEAST_BATCH, math.floor(epochs * n_rows / _ENOUGH_STEPS)))


def usual_lr(steps: int) -> float:
    """Steps of Adam move a parameter by as much at most; all together by 2, and none by less than .001, more than .01.

    Examples
    --------
    >>> from skfairdp.lagrangian._schedule import usual_lr
    >>> [usual_lr(steps) for steps in (10, 500, 20_000)]
    [0.01, 0.004, 0.001]
    """
    return min(_LARGEST_LR, max(_LR, _REACH / max(1, steps)))


def settled(net: "Net", n_rows: int) -> "Net":
    """The net with batches, passes and step size chosen, where it leaves them open."""
    batch = usual_batch(net.max_epochs, n_rows) if net.batch_size is None else net.batch_size
    a_pass = n_rows / min(batch, n_rows)
    epochs = max(_EPOCHS, _LEAST_STEPS / a_pass) if net.max_epochs is None else net.max_epochs
    lr = usual_lr(round(epochs * a_pass)) if net.lr is None else net.lr
    return replace(net, batch_size=batch, max_epochs=epochs, lr=lr)
