"""What torch has once for a whole process, ours for a while and given back: its generator, its number of threads."""

import contextlib
import math
import os
import threading
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from skfairdp._utils import BLAS

#: Steps of fewer products than this are over before threads have met: some five milliseconds of one core.
_SMALL = 2**26

_ONE_AT_A_TIME = threading.RLock()


@contextlib.contextmanager
def own_generator(seed: int | None = None, device: Any = "cpu") -> Iterator[None]:
    """Seed torch for a while, and give its generators back as they were.

    A module draws its weights and its dropout from a generator that all threads of the process have in common. Two
    trainings at once would each read what the other left there, and give back each other's state; they take turns.
    """
    device = torch.device(device)
    with _ONE_AT_A_TIME, torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        if seed is not None:
            torch.default_generator.manual_seed(seed)
            if device.type == "cuda":
                with torch.cuda.device(device):
                    torch.cuda.manual_seed(seed)
        yield


def products_of_step(n_rows: float, module: nn.Module) -> float:
    """How many products a step makes on so many rows; no number for convolutions, whose weights count many times."""
    if any("conv" in type(part).__name__.lower() for part in module.modules()):
        return math.inf
    return n_rows * sum(p.numel() for p in module.parameters())


def seconds_of_steps(n_steps: int, n_products: float, *, row_by_row: bool = False) -> float:
    """About how long so many steps take one core; four times as long where the gradient of every row is measured."""
    return n_steps * (5e-4 + 5e-10 * min(n_products, 2**27)) * (4 if row_by_row else 1)


@contextlib.contextmanager
def threads_of_steps(n_products: float) -> Iterator[None]:
    """One thread where steps are small; torch has its own number again behind it, also after an error.

    Threads that wait for each other cost more than they bring there, and many times more on a busy machine.
    """
    if n_products >= _SMALL:
        yield
        return
    given = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with BLAS.limit(limits=1):
            yield
    finally:
        torch.set_num_threads(given)


def _forked() -> None:
    """The thread that held the lock does not exist in the child."""
    global _ONE_AT_A_TIME
    _ONE_AT_A_TIME = threading.RLock()


os.register_at_fork(after_in_child=_forked)
