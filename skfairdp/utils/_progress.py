"""Progress of work on private rows: public totals, and no timing."""

import sys
from collections.abc import Iterable
from typing import Any

from tqdm import tqdm

from skfairdp.utils._quiet import open_stream

__all__ = ["progress_bar"]


def progress_bar(
    items: Iterable[Any] | None = None, *, desc: str, total: int | None = None, verbose: int = 0, leave: bool = False
) -> Any:
    """Iterate with a bar on standard error that shows counts and no rate.

    How long a query or a batch took can depend on private rows (the size of a Poisson batch, the number of rejection
    steps of a sampler), and logs get shared. For the same reason ``total`` has to be a public number: of parts, not of
    parts with two classes.
    """
    return tqdm(
        items,
        desc=desc,
        total=total,
        disable=verbose <= 0,
        leave=leave,
        file=open_stream(sys.stderr),
        bar_format="{desc}: {bar} {n_fmt}/{total_fmt}{postfix}",
    )
