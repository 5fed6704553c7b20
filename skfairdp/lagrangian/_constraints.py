"""Fairness constraints on a network: what has to have the same mean in every group, and among which rows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

__all__ = ["CONSTRAINTS", "FairnessConstraints", "dual_schedule"]

#: Names of the notions, see :mod:`skfairdp.fairness`.
CONSTRAINTS = ("demographic_parity", "equalized_odds", "accuracy_parity", "generalized_demographic_parity")
# Of multipliers, whose violations lie between -1 and 1: first steps of one notion, and of several.
_LONG_STEP, _SHORT_STEP = 10.0, 1.0


def dual_schedule(steps: int, dual_steps: int) -> dict[int, float]:
    """When multipliers move, evenly over the training, and by which share of their first step.

    The last of n moves is 1/n as long as the first: long steps reach large multipliers, short ones settle.

    Parameters
    ----------
    steps : int
        Steps of the training.
    dual_steps : int
        Moves; fewer where there are not as many steps.

    Returns
    -------
    dict of int to float

    Examples
    --------
    >>> from skfairdp.lagrangian import dual_schedule
    >>> dual_schedule(100, 4)
    {20: 1.0, 40: 0.75, 60: 0.5, 80: 0.25}
    """
    at = sorted({max(1, round((r + 1) * steps / (dual_steps + 1))) for r in range(dual_steps)})
    return {t: 1 - moved / dual_steps for moved, t in enumerate(at)}


@dataclass(frozen=True)
class FairnessConstraints:
    """Columns h of a score table, one per constraint, each compared within cells of rows.

    Parity of predictions has one column per class (one for two classes: the other says the same) and one cell for all
    rows, or, for equalized odds, one per true class; accuracy parity has one column, the probability of an error;
    generalized demographic parity has the first powers of the probability, so that whole distributions of scores are
    alike and not their means alone (Tran et al. 2022, Definition 4). All of it is public where features and labels are.

    Parameters
    ----------
    kinds : tuple of (str, int)
        Notion and class of each column.
    powers : tuple of int
        Power of the probability in each column.
    cells : Tensor of int of shape (n_rows, n_constraints)
    strata : Tensor of int of shape (n_rows,)
        The finest partition that any column uses.
    n_cells, n_strata : int
    cells_of_stratum : Tensor of int of shape (n_strata, n_constraints)

    Examples
    --------
    >>> import torch
    >>> from skfairdp.lagrangian import FairnessConstraints
    >>> labels = torch.tensor([0, 1, 1])
    >>> both = FairnessConstraints.of(["demographic_parity", "equalized_odds"], labels, 2)
    >>> both.cells.tolist(), both.n_strata
    ([[0, 0], [0, 1], [0, 1]], 2)
    """

    kinds: tuple[tuple[str, int], ...]
    powers: tuple[int, ...]
    cells: Tensor
    strata: Tensor
    n_cells: int
    n_strata: int
    cells_of_stratum: Tensor

    @classmethod
    def of(
        cls, notions: Sequence[str], y: Tensor | NDArray[np.int64], n_classes: int, *, moments: int = 2
    ) -> "FairnessConstraints":
        """The constraints of one or several notions for rows with these labels.

        ``moments`` is how many powers generalized demographic parity compares.
        """
        y = y if isinstance(y, Tensor) else torch.from_numpy(np.array(y))  # arrays of others may not be writable
        predicted = [1] if n_classes == 2 else list(range(n_classes))
        kinds: list[tuple[str, int]] = []
        powers: list[int] = []
        for notion in notions:
            of_notion = range(1, moments + 1) if notion == "generalized_demographic_parity" else [1]
            for power in of_notion:
                kinds += [(notion, -1)] if notion == "accuracy_parity" else [(notion, k) for k in predicted]
                powers += [power] * (len(kinds) - len(powers))
        by_label = torch.tensor([notion == "equalized_odds" for notion, _ in kinds], device=y.device)
        split = bool(by_label.any())
        labels = torch.arange(n_classes, device=y.device) if split else torch.zeros(1, dtype=y.dtype, device=y.device)
        return cls(
            tuple(kinds),
            tuple(powers),
            y[:, None] * by_label,
            y if split else torch.zeros_like(y),
            n_classes if split else 1,
            len(labels),
            labels[:, None] * by_label,
        )

    @property
    def first_dual_step(self) -> float:
        """How far a multiplier moves for a violation of 1, unless somebody knows better.

        Several notions may contradict each other: multipliers then grow for as long as they are moved, and their steps
        are short.
        """
        return _LONG_STEP if len({notion for notion, _ in self.kinds}) == 1 else _SHORT_STEP

    def to(self, device: torch.device) -> "FairnessConstraints":
        """The same where a network is trained."""
        moved = {name: getattr(self, name).to(device) for name in ("cells", "strata", "cells_of_stratum")}
        return replace(self, **moved)

    def values(self, probabilities: Tensor, y: Tensor) -> Tensor:
        """The columns h, shape (n_rows, n_constraints), from class probabilities or one-hot predictions."""
        error = 1 - probabilities.gather(1, y[:, None])
        columns = [error if k < 0 else probabilities[:, k : k + 1] for _, k in self.kinds]
        return torch.cat([h if p == 1 else h**p for h, p in zip(columns, self.powers, strict=True)], dim=1)

    def slopes(self, probabilities: Tensor, y: Tensor) -> Tensor:
        """Derivatives of h by the logits of its row, shape (n_rows, n_constraints, n_classes)."""
        n, n_classes = probabilities.shape
        out = probabilities.new_empty(n, len(self.kinds), n_classes)
        eye = torch.eye(n_classes, dtype=probabilities.dtype, device=probabilities.device)
        for c, (_, k) in enumerate(self.kinds):
            of = y if k < 0 else torch.full_like(y, k)
            mine = probabilities.gather(1, of[:, None])
            slope = mine * (eye[of] - probabilities)
            if self.powers[c] > 1:
                slope *= self.powers[c] * mine ** (self.powers[c] - 1)
            out[:, c] = -slope if k < 0 else slope
        return out

    def counts(self, strata_counts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sizes of groups by stratum → by cell of each column, shape (n_groups, n_cells, n_constraints); unused: 1."""
        m, k = len(strata_counts), len(self.kinds)
        out = np.zeros((m, self.n_cells, k))
        for s, line in enumerate(self.cells_of_stratum.cpu().numpy()):
            out[:, line, np.arange(k)] += strata_counts[:, s, None]
        return np.where(out > 0, out, 1.0)
