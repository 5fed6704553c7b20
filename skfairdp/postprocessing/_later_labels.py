"""What IDP3 remembers of answers whose labels come back later: counts, and which tickets are outstanding."""

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skfairdp.fairness import tally
from skfairdp.postprocessing._inputs import column_of, label_codes

Counts = NDArray[np.int64]


class LaterLabels:
    """Answers by group and label, answers without a label, and the tickets of the latter.

    Both counts are replaced together and never changed in place, so that a reader in another thread has counts of one
    moment; whoever writes holds the lock of IDP3.
    """

    def __init__(self, n_groups: int, n_classes: int) -> None:
        self.n_groups, self.n_classes = n_groups, n_classes
        self.counts: tuple[Counts, Counts] = (
            np.zeros((n_groups, n_classes, n_classes), dtype=np.int64),
            np.zeros((n_groups, n_classes), dtype=np.int64),
        )
        self._waiting: dict[Hashable, int] = {}

    def copy(self) -> "LaterLabels":
        """The same, counting on by itself."""
        found = LaterLabels(self.n_groups, self.n_classes)
        found.counts, found._waiting = self.counts, dict(self._waiting)
        return found

    def waiting(self) -> list[tuple[Any, int]]:
        """The tickets of outstanding labels, and the cell of each."""
        return list(self._waiting.items())

    def restore(self, labelled: Counts, waiting: list[tuple[Any, int]]) -> None:
        """Go on from what another process has counted."""
        self._waiting = dict(waiting)
        cells = np.fromiter(self._waiting.values(), dtype=np.int64, count=len(self._waiting))
        shape = self.n_groups, self.n_classes
        self.counts = labelled, np.bincount(cells, minlength=shape[0] * shape[1]).astype(np.int64).reshape(shape)

    def answered(self, tickets: list[Any], groups: Counts, answers: Counts) -> None:
        """Remember answers; refusals, of code ``n_classes``, have no label to wait for."""
        given = answers < self.n_classes
        cells = (groups * self.n_classes + answers)[given].tolist()
        new = dict(zip((tickets[i] for i in np.flatnonzero(given)), cells, strict=True))
        if len(new) < len(cells):
            raise ValueError("The 'tickets' of IDP3 name two rows alike. Give every row a name of its own.")
        if any(ticket in self._waiting for ticket in new):
            raise ValueError(
                "The 'tickets' of IDP3 name a row that was answered before and still waits for its label. Give "
                "every row a name of its own, and commit every answer once."
            )
        self._waiting.update(new)
        labelled, outstanding = self.counts
        self.counts = labelled, outstanding + tally(groups[given], answers[given], outstanding.shape)

    def labelled(self, tickets: list[Any], labels: Counts) -> None:
        """Take the labels of answered rows; of code -1 are those that will never come."""
        if len(set(tickets)) < len(tickets):
            raise ValueError("The 'tickets' of IDP3.update_labels name a row twice. Give every row one label.")
        unknown = [position for position, ticket in enumerate(tickets) if ticket not in self._waiting]
        if unknown:
            raise ValueError(
                f"The 'tickets' of IDP3.update_labels name a row, at position {unknown[0]}, that waits for no label: "
                "it was never given to update(), was refused there, or has its label already. Leave it out. Nothing "
                "has been counted."
            )
        cells = np.array([self._waiting.pop(ticket) for ticket in tickets], dtype=np.int64)
        groups, answers = np.divmod(cells, self.n_classes)
        labelled, outstanding = self.counts
        back, k = labels >= 0, self.n_classes
        flat = tally(groups[back], labels[back] * k + answers[back], (self.n_groups, k * k))
        gone = tally(groups, answers, outstanding.shape)
        self.counts = labelled + flat.reshape(labelled.shape), outstanding - gone


def tickets_of(tickets: Any, rows: int, method: str) -> list[Any]:
    """Return one hashable name per row, or raise a ValueError."""
    given = None if tickets is None or isinstance(tickets, str) or not isinstance(tickets, Iterable) else tickets
    names = [] if given is None else given.tolist() if hasattr(given, "tolist") else list(given)
    if given is None or len(names) != rows:
        raise ValueError(
            f"The 'tickets' of IDP3.{method} must be one name per row, such as the index of the table: constraints "
            "that look at true labels need to know whose label comes back."
        )
    if not all(isinstance(name, Hashable) and name is not None and name == name for name in names):
        raise ValueError(
            f"The 'tickets' of IDP3.{method} must be names without missing values: numbers, strings or tuples."
        )
    return names


def label_or_none(y: Any, classes: NDArray[Any]) -> Counts:
    """Return each label's position in ``classes``, -1 where it is missing."""
    values = column_of(y, "y_true")
    known = ~np.asarray(pd.isna(values), dtype=bool)
    codes = np.full(len(values), -1, dtype=np.int64)
    if known.any():
        codes[known] = label_codes(values[known], classes, "y_true")
    return codes
