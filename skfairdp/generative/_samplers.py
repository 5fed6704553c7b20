"""Fair batches for teachers: rows dealt by position, weights from a teacher's own part."""

import warnings

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from skfairdp._teachers import position_partition

__all__ = ["NORMALIZATIONS", "SAMPLINGS", "TeacherParts", "importance_weights", "reference_ratios"]

SAMPLINGS = ("importance", "stratified", "weights")
NORMALIZATIONS = ("N1", "N2")


def importance_weights(
    strata: NDArray[np.int64], law: NDArray[np.float64], normalization: str = "N1"
) -> NDArray[np.float64]:
    """Probabilities of sampling-importance resampling from the rows of **one** teacher to the law wanted.

    h(x) = law(s, y) / share of (s, y) among these rows (PFGuard, Eq. 5, with the teacher's own counts in place of those
    of the whole table, which would let one record reach every teacher).

    Parameters
    ----------
    strata : ndarray of int of shape (n_rows,)
    law : ndarray of shape (n_strata,)
    normalization : {"N1", "N2"}
        Skare et al. (2003): N1 is w ∝ h; N2 is w ∝ h / (Σh − h), which lowers the bias of small samples.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.generative._samplers import importance_weights
    >>> importance_weights(np.array([0, 0, 0, 1]), np.array([0.5, 0.5])).round(3).tolist()
    [0.167, 0.167, 0.167, 0.5]
    """
    counts = np.bincount(strata, minlength=len(law))
    return normalized(law[strata] / np.maximum(counts, 1)[strata], normalization)


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


def reference_ratios(rows: NDArray[np.float64], reference: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ratio of densities, unbiased reference to these rows, where groups are unknown.

    A classifier tells the reference from the rows of **one** teacher; its odds are the ratio (Choi et al. 2020).
    Ratios are held within [1/20, 20]. A part on which no classifier can be fitted gets even ratios, and no warning of
    one is let through: what goes wrong in a part follows from its rows.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_features)
        Of one teacher.
    reference : ndarray of shape (n_reference, n_features)
        Public.
    """
    if not len(rows):
        return np.zeros(0)
    truth = np.repeat([0, 1], [len(rows), len(reference)])
    model = LogisticRegression(C=0.1, class_weight="balanced", max_iter=200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            odds = model.fit(np.vstack([rows, reference]), truth).decision_function(rows)
        except Exception:
            odds = np.zeros(len(rows))
    return np.exp(np.clip(odds, -np.log(20), np.log(20)))


class TeacherParts:
    """The rows of each teacher, fixed for the whole fit, and batches of equal size from all of them.

    Which positions a teacher has depends on the number of rows and on public randomness alone. The uniform numbers that
    pick rows are public too, and the same whatever the rows are; only a teacher's own rows turn them into a batch.

    Parameters
    ----------
    strata : ndarray of int of shape (n_rows,)
        Private.
    law : ndarray of shape (n_strata,)
        What batches are balanced to: chosen from public or released values.
    n_teachers : int
    rng : Generator
        Public.
    balanced : bool
        False resamples every part as it is.
    sampling : {"importance", "stratified", "weights"}
        ``"stratified"`` gives every batch the rows of each stratum in the proportions of ``law`` instead of on average;
        a stratum that a part lacks is left to the others. ``"weights"`` draws batches from a part as it is, and leaves
        the balance to ``loss_weights``.
    normalization : {"N1", "N2"}
    features, reference : ndarray or None
        With both, weights come from :func:`reference_ratios` and strata are not read.

    Attributes
    ----------
    loss_weights : ndarray of shape (n_rows,) or None
        With ``"weights"``: of each row in the loss of the teacher that has it.
    """

    def __init__(
        self,
        strata: NDArray[np.int64],
        law: NDArray[np.float64],
        n_teachers: int,
        rng: np.random.Generator,
        *,
        balanced: bool = True,
        sampling: str = "importance",
        normalization: str = "N1",
        features: NDArray[np.float64] | None = None,
        reference: NDArray[np.float64] | None = None,
    ) -> None:
        self._rng = rng
        self.assignment = position_partition(len(strata), n_teachers, random_state=rng)
        self.rows = [np.flatnonzero(self.assignment == teacher) for teacher in range(n_teachers)]
        self._reached = []
        self.loss_weights = np.ones(len(strata)) if sampling == "weights" else None
        for own in self.rows:
            order, weights = np.arange(len(own)), np.full(len(own), 1.0 / len(own))
            if features is not None and reference is not None:
                weights = normalized(reference_ratios(features[own], reference), normalization)
            elif balanced:
                weights = importance_weights(strata[own], law, normalization)
                if sampling == "stratified":
                    order = np.argsort(strata[own], kind="stable")
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
            # Evenly spaced marks over rows sorted by stratum: each stratum's number is right up to one row.
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
