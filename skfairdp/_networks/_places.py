"""Places for private rows, so that a row more or less moves no other row.

How a kernel rounds a row follows from the shape of its batch and the row's place in it. Where neighbours differ by
*replacing* a row by nothing, rows keep their positions and batches their shape by themselves. Where a row may be there
or not, the table gets a public number of places, more than the rows that were declared, and each row a secret random
one. All other places hold null records, which are drawn into batches like any row and contribute nothing. Two
neighbours can then be paired so that every row but one has the same place and every batch the same places: what holds
for a row replaced by nothing holds for a row more or less.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Places:
    """Where each row lies."""

    size: int
    of_rows: Tensor | None = None

    @classmethod
    def secret(cls, n_rows: int, declared: int) -> "Places":
        """Random places, from torch's generator, in a table for so many declared rows.

        Their number is public as long as there are not more rows than places, six standard deviations of a count
        beyond the declared ones. Past that the table doubles, triples and so on.
        """
        room = cls.room(declared)
        size = room * max(1, -(-n_rows // room))
        return cls(size, torch.randperm(size)[:n_rows])

    @staticmethod
    def room(declared: int) -> int:
        """Places in a table for so many declared rows."""
        return declared + math.ceil(6 * math.sqrt(declared))

    @property
    def present(self) -> Tensor | None:
        """Which places hold a row; None: all."""
        if self.of_rows is None:
            return None
        out = torch.zeros(self.size, dtype=torch.bool)
        out[self.of_rows] = True
        return out

    def lay(self, values: Tensor) -> Tensor:
        """Values of the rows at their places, zeros elsewhere."""
        if self.of_rows is None:
            return values
        out = values.new_zeros((self.size, *values.shape[1:]))
        out[self.of_rows.to(values.device)] = values
        return out
