"""Progress of work on private rows, without its timing."""

from collections.abc import Iterable
from typing import Any

from tqdm import tqdm

__all__ = ["progress_bar"]


def progress_bar(items: Iterable[Any], *, desc: str, total: int | None = None, verbose: int = 0) -> Any:
    """Iterate with a bar on standard error that shows counts and no rate.

    How long a query or a batch took can depend on private rows (the size of a Poisson batch, the number of rejection
    steps of a sampler), and logs get shared.
    """
    return tqdm(
        items, desc=desc, total=total, disable=verbose <= 0, leave=False, bar_format="{desc}: {bar} {n_fmt}/{total_fmt}"
    )
