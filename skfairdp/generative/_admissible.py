"""Labels that follow from admissible columns alone: drawn anew from released tables, whatever the group is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from skfairdp._tables import MarginalsBackend, Model

_AT_ONCE = 2000  # rows: each takes groups times labels times codes of a column


def read_admissible(estimator: Any, names: Sequence[Any], classes: Any, groups: Any) -> tuple[int, ...]:
    """Positions of the admissible columns among those that are learnt, from public values only."""
    given, owner, backend = estimator.admissible, type(estimator).__name__, estimator.backend
    if given is None:
        return ()
    if not (backend == "marginals" or isinstance(backend, MarginalsBackend)):
        raise ValueError(f"'admissible' of {owner} needs the tables of backend='marginals'. Set it, or leave it out.")
    if classes is None or groups is None:
        raise ValueError(f"'admissible' of {owner} needs both y and groups.")
    if estimator.balance == "fair" or isinstance(estimator.balance, Mapping):
        raise ValueError(
            f"{owner} got 'admissible' and a 'balance' that gives shares of the labels: both say which labels are "
            "drawn. Leave out 'admissible', or set balance='label' or 'group'."
        )
    columns = getattr(estimator, "feature_names_in_", ())  # an array's are numbered as they are
    wanted = [_name(item, columns) for item in ([given] if isinstance(given, str | Integral) else list(given))]
    unknown = [name for name in wanted if name not in names]
    if unknown or not wanted:
        said = f"names {unknown[0]!r}, which is no column that is learnt" if unknown else "is empty"
        raise ValueError(
            f"The 'admissible' parameter of {owner} {said}. Name columns of X, among them none of the label or groups."
        )
    return tuple(sorted({list(names).index(name) for name in wanted}))


def _name(item: Any, columns: Sequence[Any]) -> Any:
    """The label of a column that is named, or that is meant by its position in X."""
    position = int(item) if isinstance(item, Integral) and item not in list(columns) else len(columns)
    return columns[position] if -len(columns) <= position < len(columns) else item


@dataclass(frozen=True)
class AdmissibleLabels:
    """The label given admissible columns, by a released model: P(y | admissible), the same for every group.

    Labels drawn from it are independent of the group, and of every other column, given the admissible ones.
    """

    model: Model
    columns: tuple[int, ...]
    observed: NDArray[np.float64]

    def shares(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """P(label | admissible columns) of each row, (n_rows, n_classes)."""
        known = np.log(np.maximum(self.observed, 1e-300)).ravel()
        parts = [values[start : start + _AT_ONCE] for start in range(0, len(values), _AT_ONCE)]
        of_cells = [softmax(self.model.log_likelihood_of(part, self.columns) + known, axis=1) for part in parts]
        return np.concatenate(of_cells).reshape(-1, *self.observed.shape).sum(axis=1)

    def draw(self, values: NDArray[Any], rng: np.random.Generator) -> NDArray[np.int64]:
        """A label for each row."""
        reached = np.cumsum(self.shares(values), axis=1)
        marks = rng.random((len(values), 1)) * reached[:, -1:]
        return np.asarray((marks >= reached[:, :-1]).sum(axis=1), dtype=np.int64)

    def rates(self, drawn: NDArray[np.float64], n_rows: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Shares of groups and labels after the labels are drawn anew, measured on rows of the model."""
        of_groups = drawn.sum(axis=1)
        out = np.zeros(drawn.shape)
        for group in np.flatnonzero(of_groups > 0):
            labels = rng.choice(drawn.shape[1], n_rows, p=drawn[group] / of_groups[group])
            values = self.model.sample(group * drawn.shape[1] + labels, rng)
            out[group] = of_groups[group] * self.shares(values).mean(axis=0)
        return out
