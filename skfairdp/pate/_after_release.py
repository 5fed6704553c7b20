"""What a fitted PATE does without touching a private row again: predict, and refit its student."""

from typing import Any

from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from skfairdp._base import FairPrivateMixin
from skfairdp.pate._student_predictions import StudentPredictions

__all__ = ["AfterRelease"]

# What a refitted estimator shares with the one it comes from: everything released, and the public rows.
KEPT = (
    "privacy_",
    "n_teachers_",
    "n_queries_",
    "classes_",
    "n_features_in_",
    "feature_names_in_",
    "_public",
    "_queries",
    "_released",
    "_denoiser",
)


class AfterRelease(StudentPredictions, FairPrivateMixin):
    """The half of BasePATE that reads released votes and public rows only."""

    voting: str
    constraint_at: str | None = None

    @property
    def _gates_votes(self) -> bool:
        """Whether the gate is consulted before each vote (CF-GNMax+), not on labels that are released already."""
        return self.voting == "confident"

    @property
    def _free_parameters(self) -> frozenset[str]:
        """What refit_student can change, given how this one votes: a search pays once for all their values."""
        free = {
            "student": True,
            "gamma": not self._gates_votes,
            "lam": self.constraint_at == "student_loss",
            "threshold": self.voting == "soft",
        }
        return frozenset(name for name, is_free in free.items() if is_free)

    def refit_student(
        self,
        *,
        gamma: Any = "unchanged",
        lam: float | None = None,
        threshold: float | None = None,
        student: Any = "unchanged",
    ) -> Any:
        """Label again and train another student from the votes already released, at no privacy cost.

        Parameters
        ----------
        gamma : float or None, default="unchanged"
            Another fairness bound. Not for a confident vote with ``constraint_at="aggregation"`` or None, which has its
            bound built in.
        lam : float, default=None
            Another weight of the penalty (``constraint_at="student_loss"``).
        threshold : float, default=None
            Another share a label needs (``voting="soft"``).
        student : estimator or None, default="unchanged"
            Another student; None is the built-in one.

        Returns
        -------
        estimator
            A new fitted estimator with the same ``privacy_``; this one is unchanged, and nothing is charged.

        Raises
        ------
        ValueError
            The released votes do not determine the answer asked for.
        """
        check_is_fitted(self, "_released")
        changes: dict[str, Any] = {}
        if not isinstance(gamma, str):
            if self._gates_votes:
                raise ValueError(
                    "voting='confident' consulted its gate before each vote, so another 'gamma' needs a new fit. "
                    "Use voting='soft' or 'gnmax' to sweep it for free."
                )
            changes["gamma"] = gamma
        if lam is not None:
            if self.constraint_at != "student_loss":
                raise ValueError("Another 'lam' changes nothing without constraint_at='student_loss'.")
            changes["lam"] = lam
        if threshold is not None:
            if self.voting != "soft":
                raise ValueError("Another 'threshold' needs released vote shares: voting='soft'.")
            changes["threshold"] = threshold
        if not isinstance(student, str):
            changes["student"] = student
        other = clone(self).set_params(**changes)
        other._validate_params()
        other._check_parameters()
        for name in KEPT:
            if hasattr(self, name):
                setattr(other, name, getattr(self, name))
        return other._finish()
