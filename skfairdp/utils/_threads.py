"""Numerical libraries held to one thread, where products are too small to share."""

import sys
from functools import lru_cache
from typing import Any

from threadpoolctl import ThreadpoolController

__all__ = ["one_thread"]


def one_thread(user_api: str | None = None) -> Any:
    """Return a context, or a decorator, inside which libraries use one thread: ``user_api`` ("blas"), or all of them.

    Examples
    --------
    >>> from skfairdp.utils import one_thread
    >>> with one_thread("blas"):
    ...     pass
    """
    return _controller("torch" in sys.modules).limit(limits=1, user_api=user_api)


@lru_cache(maxsize=2)
def _controller(with_torch: bool) -> ThreadpoolController:
    """Of the libraries that are loaded: to look for them takes milliseconds, and torch brings its own."""
    return ThreadpoolController()
