"""A trial on labels that are public: whether a learner beats the most frequent class on rows kept from it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfairdp.exceptions import UtilityWarning
from skfairdp.fairness import NOTIONS, RateBound, RateParity, name_of
from skfairdp.utils import warn_caller

__all__ = ["Trial", "constant_meets", "may_give_way", "seen", "tried"]

Codes = NDArray[np.int64]

FOLDS = 3
#: From fewer rows than one end of a trial to the other nothing is told; with more than the other end a learner has not
#: learned them by heart, and three trainings more take long.
LEAST_ROWS, MOST_ROWS = 12, 10_000
#: Standard errors by which a learner has to be ahead: of one that is behind by L, ``L Φ(-1 - L/s)`` is lost on average,
#: .03 s at the worst.
EVIDENCE = 1.0
#: Standard errors by which the first folds decide alone, one way or the other.
BEYOND_DOUBT = 4.0
#: What a classifier that answers one class for every row never breaks.
_MET = frozenset(NOTIONS) - {"accuracy_parity"}


@dataclass(frozen=True)
class Trial:
    """What came of a look at public labels.

    Parameters
    ----------
    usual : int
        Code of the most frequent class.
    right, of_usual : float
        How often the learner and that class are right on the rows that were looked at.
    error : float
        Standard error of the difference; 0 on the rows that the learner was taught by.

    Examples
    --------
    >>> from skfairdp._public_trial import Trial
    >>> Trial(usual=0, right=0.77, of_usual=0.76, error=0.02).is_passed
    False
    """

    usual: int
    right: float
    of_usual: float
    error: float = 0.0

    @property
    def is_passed(self) -> bool:
        """Whether the learner is ahead, and not by luck."""
        return self.right - self.of_usual > EVIDENCE * self.error

    @property
    def is_clear(self) -> bool:
        """Whether no further fold would change that."""
        return abs(self.right - self.of_usual) > BEYOND_DOUBT * self.error > 0

    def warn(self, usual: Any, owner: str, *, gives_way: bool) -> None:
        """Say that the most frequent class is as good, whether it is predicted for every row, and what may help."""
        what = f"predicts the class {usual} for every row" if gives_way else f"is no better than the class {usual}"
        where = "of its rows, whose labels are public, and that class alone"
        why = (
            "Its constraint, at this noise, costs more accuracy than the features bring. Raise 'epsilon', or take a "
            "looser constraint."
        )
        if self.error > 0:
            where = "of the rows that were kept from it, whose labels are public, and that class alone"
            why = (
                "More rows, features that say more of the classes, a larger 'epsilon' or a looser constraint would do."
            )
        warn_caller(
            f"{owner} {what}: it is right on {self.right:.3f} {where} on {self.of_usual:.3f}. {why}", UtilityWarning
        )


def constant_meets(notions: Sequence[str | RateParity | RateBound]) -> bool:
    """Whether one class for every row is sure to meet constraints; equal errors and bounds it may break."""
    if any(isinstance(notion, RateBound) for notion in notions):
        return False
    return _MET.issuperset(map(name_of, notions))


def may_give_way(y: Codes) -> bool:
    """Whether a classifier of these labels may give way to a constant: they are few enough for a trial.

    So few that a network may have learned them by heart, and enough to tell that it has.
    """
    return LEAST_ROWS <= len(y) <= MOST_ROWS and len(np.unique(y)) > 1


def seen(predicted: Codes, y: Codes) -> Trial:
    """How often predictions are right on the rows that they were learned from.

    Parameters
    ----------
    predicted, y : ndarray of int of shape (n_rows,)
        Codes of classes: released, and public.
    """
    usual = int(np.bincount(y).argmax())
    return Trial(usual, float(np.mean(predicted == y)), float(np.mean(y == usual)))


def tried(y: Codes, answers: Callable[[Codes, Codes], Codes], seed: int) -> Trial:
    """Try a learner on rows that are kept from it, one third at a time, as long as there is doubt.

    All of it has to be public or released: who gives ``answers`` has seen to that.

    Parameters
    ----------
    y : ndarray of int of shape (n_rows,)
        Public class codes.
    answers : callable
        Positions of rows to learn from, positions of others → class codes for the others.
    seed : int
        Public; draws the folds.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp._public_trial import tried
    >>> y = np.arange(300) % 3 // 2
    >>> tried(y, lambda learned, asked: y[asked], seed=0).is_passed
    True
    >>> tried(y, lambda learned, asked: np.ones(len(asked), dtype=int), seed=0).is_passed
    False
    """
    usual, folds = int(np.bincount(y).argmax()), np.random.default_rng(seed).permutation(len(y)) % FOLDS
    right = of_usual = np.empty(0, dtype=bool)
    for fold in range(FOLDS):
        asked = np.flatnonzero(folds == fold)
        right = np.append(right, answers(np.flatnonzero(folds != fold), asked) == y[asked])
        of_usual = np.append(of_usual, y[asked] == usual)
        apart = right.astype(np.int64) - of_usual
        trial = Trial(usual, float(right.mean()), float(of_usual.mean()), float(apart.std(ddof=1)) / len(apart) ** 0.5)
        if trial.is_clear:
            break
    return trial
