"""torch's global generator, ours for a while: seeded, given back as it was, and never shared by two threads."""

import contextlib
import os
import threading
from collections.abc import Iterator
from typing import Any

import torch

__all__ = ["own_generator"]

_ONE_AT_A_TIME = threading.RLock()


@contextlib.contextmanager
def own_generator(seed: int | None = None, device: Any = "cpu") -> Iterator[None]:
    """Seed torch for a while, and give its generators back as they were.

    A module draws its weights and its dropout from a generator that all threads of the process have in common. Two
    trainings at once would each read what the other left there, and give back each other's state; they take turns.

    Parameters
    ----------
    seed : int or None, default=None
        None leaves the generator in the state it has, and takes back what was drawn.
    device : torch.device or str, default="cpu"
        Whose generator is seeded beside the processor's.

    Examples
    --------
    >>> import torch
    >>> from skfairdp._networks import own_generator
    >>> before = torch.get_rng_state()
    >>> with own_generator(0):
    ...     first = torch.rand(2)
    >>> with own_generator(0):
    ...     again = torch.rand(2)
    >>> bool((first == again).all()), bool((torch.get_rng_state() == before).all())
    (True, True)
    """
    device = torch.device(device)
    with _ONE_AT_A_TIME, torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        if seed is not None:
            torch.default_generator.manual_seed(seed)
            if device.type == "cuda":
                with torch.cuda.device(device):
                    torch.cuda.manual_seed(seed)
        yield


def _forked() -> None:
    """The thread that held the lock does not exist in the child."""
    global _ONE_AT_A_TIME
    _ONE_AT_A_TIME = threading.RLock()


os.register_at_fork(after_in_child=_forked)
