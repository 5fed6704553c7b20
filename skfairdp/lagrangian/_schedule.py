"""How long, in which batches and by which steps a network is trained, where nobody says so: from public sizes alone.

Multipliers follow the network. Where it takes few steps between two of their moves, it lags behind, and they swing.
"""

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from skfairdp._usefulness import larger_batches

if TYPE_CHECKING:
    from skfairdp._networks import Net

_BATCH, _LEAST_BATCH = 256, 16
_ENOUGH_STEPS = 1000  # 25 for each move of the multipliers
_LR, _LARGEST_LR = 1e-3, 1e-2
_REACH = 2.0  # how far a parameter can go


#: Passes over the rows by the usual batches, and steps where these take fewer. With half of both PF-LD's gap on a table
#: with a group of 3 % was 2.5 times as wide.
_EPOCHS, _LEAST_STEPS = 20, 2000
#: Of a net, as :func:`as_net` reads it: what :func:`settled` chooses.
LEFT_OPEN: dict[str, Any] = {"lr": None, "batch_size": None, "max_epochs": None}


def usual_batches(epochs: float | None, batch_size: int | None, n_rows: int) -> tuple[int, float]:
    """Rows of a batch, and how many times the usual ones they are.

    256 rows; of so many passes as few as 1000 steps take, but no fewer than 16. Of more than 50,000 rows more, where
    passes are left open as well.
    """
    if batch_size is not None:
        return batch_size, 1.0
    if epochs is None:
        larger = larger_batches(n_rows)
        return round(_BATCH * larger), larger
    return min(_BATCH, max(_LEAST_BATCH, math.floor(epochs * n_rows / _ENOUGH_STEPS))), 1.0


def usual_passes(steps_of_pass: float, larger: float = 1.0) -> float:
    """20, or as many fewer as batches are larger than usual; as many more as 2000 steps take."""
    return max(_EPOCHS / larger, _LEAST_STEPS / max(1.0, steps_of_pass))


def default_lr(steps: int, larger: float = 1.0) -> float:
    """Steps of Adam move a parameter by as much at most; all together by 2, and none by less than .001, more than .01.
    By batches that are larger than usual they are longer by the root of that: so much less noise has their slope."""
    return math.sqrt(larger) * min(_LARGEST_LR, max(_LR, _REACH / max(1, steps)))


def settled(net: "Net", n_rows: int) -> "Net":
    """The net with batches, passes and step size chosen, where it leaves them open."""
    batch, larger = usual_batches(net.max_epochs, net.batch_size, n_rows)
    a_pass = n_rows / min(batch, n_rows)
    epochs = usual_passes(a_pass, larger) if net.max_epochs is None else net.max_epochs
    lr = default_lr(round(epochs * a_pass), larger) if net.lr is None else net.lr
    return replace(net, batch_size=batch, max_epochs=epochs, lr=lr)
