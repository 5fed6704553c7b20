"""An operating system whose entropy is known: the noise of a test is secret to the package, and the same in every run.

A test that forgets to choose its noise would otherwise pass by chance on one day and fail on another. So each test,
each fixture and each module that is imported draws from a stream of its own, which follows from its name alone: not
from what ran before it, nor from the process that runs it. Forked children go back to the real entropy: two of them
would otherwise draw the same.
"""

import contextlib
import os
import random
import secrets
import sys
import zlib
from collections.abc import Iterator

import numpy as np

__all__ = ["named_entropy", "open_streams"]

_SECRET = random.SystemRandom()
_process = os.getpid()
_stream: random.Random = _SECRET


def _known() -> random.Random:
    return _stream if os.getpid() == _process else _SECRET


def _bytes(n: int) -> bytes:
    return _known().randbytes(n)


def _below(n: int) -> int:
    return _known().randrange(n)


def open_streams() -> None:
    """From here on the functions that the package draws its secrets with read the stream of what runs."""
    os.urandom = _bytes
    secrets.randbelow = _below


@contextlib.contextmanager
def named_entropy(name: str) -> Iterator[None]:
    """Secrets and the global generators follow from ``name``; those of the caller go on behind."""
    global _stream
    outer, _stream = _stream, random.Random(zlib.crc32(name.encode()))
    _seed_generators(_stream.getrandbits(32))
    try:
        yield
    finally:
        _stream = outer


def _seed_generators(seed: int) -> None:
    """Of the standard library, numpy and torch, where ``random_state=None`` leads.

    Of torch the generator of the processor alone: ``torch.manual_seed`` also notes down, with the call stack, what
    every accelerator shall do once it is there, which takes longer than many a test.
    """
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    if "torch" in sys.modules:
        sys.modules["torch"].default_generator.manual_seed(seed)
