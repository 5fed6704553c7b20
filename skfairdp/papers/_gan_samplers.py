"""Fair batches for teachers, from a teacher's own part alone."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from skfairdp._teachers import position_partition

SAMPLINGS = ("importance", "stratified", "weights")
NORMALIZATIONS = ("N1", "N2")

_LARGEST_RATIO = 20.0


def importance_weights(
    cells: NDArray[np.int64], rates: NDArray[np.float64], normalization: str = "N1"
) -> NDArray[np.float64]:
    """Probabilities of sampling-importance resampling from the rows of **one** teacher to the rates wanted.

    h(x) = rate of (s, y) / share of (s, y) among these rows (PFGuard, Eq. 5, with the teacher's own counts in place of
    those of the whole table, which would let one record reach every teacher).
    """
    counts = np.bincount(cells, minlength=len(rates))
    return normalized(rates[cells] / np.maximum(counts, 1)[cells], normalization)


def normalized(ratios: NDArray[np.float64], normalization: str) -> NDArray[np.float64]:
    """Resampling probabilities from likelihood ratios; even ones where no ratio is positive."""
    total = ratios.sum()
    if not total > 0:
        return np.full(len(ratios), 1.0 / max(len(ratios), 1))
    if normalization == "N2" and len(ratios) > 1:
        rest = total - ratios
        if (rest > 1e-12 * total).all():
            ratios = ratios / rest
    return np.asarray(ratios / ratios.sum())


def density_ratios(
    rows: NDArray[np.float64], public: NDArray[np.float64], classifier: Any = None
) -> NDArray[np.float64]:
    """Ratio of densities, unbiased public rows to these rows, where groups are unknown.

    A classifier tells the public rows from the rows of **one** teacher; its odds are the ratio (Choi et al. 2020).
    Ratios are held within [1/20, 20]. A part on which no classifier can be fitted gets even ratios, and no warning of
    one is let through: what goes wrong in a part follows from its rows.
    """
    if not len(rows):
        return np.zeros(0)
    if classifier is None:
        classifier = LogisticRegression(C=0.1, class_weight="balanced", max_iter=200)
    truth = np.repeat([0, 1], [len(rows), len(public)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            odds = classifier.fit(np.vstack([rows, public]), truth).decision_function(rows)
        except Exception:
            odds = np.zeros(len(rows))
    return np.exp(np.clip(odds, -np.log(_LARGEST_RATIO), np.log(_LARGEST_RATIO)))


class TeacherParts:
    """The rows of each teacher, fixed for the whole fit, and batches of equal size from all of them.

    Which positions a teacher has depends on the number of rows and on public randomness alone. The uniform numbers that
    pick rows are public too, and the same whatever the rows are; only a teacher's own rows turn them into a batch.
    """

    def __init__(
        self,
        cells: NDArray[np.int64],
        rates: NDArray[np.float64],
        n_teachers: int,
        rng: np.random.Generator,
        *,
        balanced: bool = True,
        sampling: str = "importance",
        normalization: str = "N1",
        features: NDArray[np.float64] | None = None,
        public: NDArray[np.float64] | None = None,
    ) -> None:
        self._rng = rng
        self.assignment = position_partition(len(cells), n_teachers, random_state=rng)
        self.rows = [np.flatnonzero(self.assignment == teacher) for teacher in range(n_teachers)]
        self._reached = []
        self.loss_weights = np.ones(len(cells)) if sampling == "weights" else None
        for own in self.rows:
            order, weights = np.arange(len(own)), np.full(len(own), 1.0 / len(own))
            if features is not None and public is not None:
                weights = normalized(density_ratios(features[own], public), normalization)
            elif balanced:
                weights = importance_weights(cells[own], rates, normalization)
                if sampling == "stratified":
                    order = np.argsort(cells[own], kind="stable")
            if self.loss_weights is not None:
                self.loss_weights[own] = weights * len(own)
                weights = np.full(len(own), 1.0 / len(own))
            reached = np.cumsum(weights[order])
            self._reached.append((own[order], reached / reached[-1]))
        self._systematic = sampling == "stratified" and balanced

    def batch(self, batch_size: int) -> NDArray[np.int64]:
        """Row positions (n_teachers, batch_size), those of a line from one part only."""
        n_teachers = len(self.rows)
        if self._systematic:
            # Evenly spaced marks over rows sorted by cell: each cell's number is right up to one row.
            marks = (np.arange(batch_size) + self._rng.random((n_teachers, batch_size))) / batch_size
            marks = self._rng.permuted(marks, axis=1)
        else:
            marks = self._rng.random((n_teachers, batch_size))
        return np.stack(
            [
                own[np.minimum(np.searchsorted(reached, mark, side="right"), len(own) - 1)]
                for (own, reached), mark in zip(self._reached, marks, strict=True)
            ]
        )
