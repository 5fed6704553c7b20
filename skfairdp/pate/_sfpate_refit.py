"""What a fitted SF-PATE does without reading a group again: predict, and train another student."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from skfairdp.lagrangian import LagrangianClassifier, as_perceptron
from skfairdp.pate._sfpate_student import Released, fair_student, plain_student
from skfairdp.pate._student_predictions import StudentPredictions

__all__ = ["AfterVotes"]

LAM = 1e-3


class AfterVotes(StudentPredictions):
    """The half of SFPATEClassifier that reads released votes and public rows only."""

    variant: str
    voting: str
    fair_estimator: Any
    student: Any
    lam: float | None
    groups_: NDArray[Any]
    _released: Released
    _student_seed: int

    @property
    def _given_student(self) -> Any:
        return self.fair_estimator if self.variant == "student" else self.student

    @property
    def _free_parameters(self) -> frozenset[str]:
        """What refit_student can change: a search pays once for all their values."""
        fair = {"fair_estimator", "constraint", "moments"}
        return frozenset({"lam", *(fair if self.variant == "student" else {"student"})})

    def refit_student(
        self,
        *,
        fair_estimator: Any = "unchanged",
        constraint: Any = "unchanged",
        moments: int | None = None,
        student: Any = "unchanged",
        lam: float | str | None = "unchanged",
    ) -> Any:
        """Train another student from the votes already released, at no privacy cost.

        Works on the estimator that was fitted, and on what this returns. Copies and pickles hold no rows, and cannot.

        Parameters
        ----------
        fair_estimator : estimator or None, default="unchanged"
            Another fair learner ("student" variant). None is the built-in network.
        constraint : str or list of str, default="unchanged"
            Another constraint of the built-in network ("student" variant).
        moments : int, default=None
            Other moments of generalized demographic parity ("student" variant).
        student : classifier or None, default="unchanged"
            Another student ("teacher" variant). None is the built-in one.
        lam : float or None, default="unchanged"
            How close another student is tied to θ*. None as in the constructor.

        Returns
        -------
        estimator
            A new fitted estimator with the same ``privacy_``; this one is unchanged, and nothing is charged.

        Raises
        ------
        ValueError
            The released votes do not determine the answer asked for, or the estimator is a copy without rows.
        """
        check_is_fitted(self, "student_")
        owner = type(self).__name__
        asked = {"fair_estimator": fair_estimator, "constraint": constraint, "student": student, "lam": lam}
        changes = {name: value for name, value in asked.items() if not _unchanged(value)}
        if moments is not None:
            changes["moments"] = moments
        built_in = sorted(changes.keys() - self._free_parameters - {"student"})
        if built_in:
            raise ValueError(
                f"The teachers of {owner}(variant='teacher') are fair already, so another '{built_in[0]}' needs a new "
                "fit. Their votes determine another 'student' or 'lam'."
            )
        if not hasattr(self, "_released"):
            raise ValueError(
                f"This {owner} is a copy or comes from a pickle, which hold no rows to train a student on. Call "
                "refit_student on the estimator that was fitted."
            )
        other: Any = clone(self).set_params(**changes)
        other._validate_params()
        network = other._check_learners()
        parameters = other.get_params(deep=False)
        for name, value in vars(self).items():
            if name not in parameters:
                setattr(other, name, value)
        other.student_ = other._teach_student(network)
        return other

    def _teach_student(self, network: LagrangianClassifier) -> Any:
        """Post-processing of released votes and public rows; the same seed for every student."""
        released, rng = self._released, np.random.default_rng(self._student_seed)
        lam = (LAM if self.voting == "gnmax" else 0.0) if self.lam is None else self.lam
        if self.variant == "student":
            given = None if as_perceptron(self.fair_estimator) is not None else self.fair_estimator
            return fair_student(released, given, network, lam, rng)
        if as_perceptron(self.student) is not None:  # learns shares, and may be tied to θ*
            return plain_student(released, None, self.student, lam, rng)
        return plain_student(released, self.student, LagrangianClassifier(constraints=None), lam, rng)

    def __getstate__(self) -> dict[str, Any]:
        """All but the rows: they are public, but nobody expects them in a model that is handed on."""
        state: dict[str, Any] = super().__getstate__()  # type: ignore[assignment]
        state = dict(state)
        state.pop("_released", None)
        return state


def _unchanged(value: Any) -> bool:
    return isinstance(value, str) and value == "unchanged"
